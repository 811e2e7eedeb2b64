/* SPDX-License-Identifier: MIT */
/*
 * One generation for one request: takes a session, runs, and turns what the
 * engine says into events that the request's own thread reads.
 *
 * Grammars are enforced here, by the engine's mask hook:
 *   RUN_FREE      nothing is enforced
 *   RUN_WHOLE     the whole answer follows the grammar (response_format,
 *                 tool_choice required)
 *   RUN_LAZY      free text until the model writes <tool_call>; from there the
 *                 grammar holds
 * With @no_calls the tool-call marker itself is forbidden. In RUN_FREE a call is
 * words, since nobody offered tools; with @call_words it is those, once.
 */
#ifndef HEARTH_SERVER_RUN_H
#define HEARTH_SERVER_RUN_H

#include "server/feed.h"
#include "server/service.h"

enum run_mode { RUN_FREE, RUN_WHOLE, RUN_LAZY };

struct run_opts {
	struct service *service;
	const int32_t *tokens;     /* copied */
	size_t n_tokens;
	uint32_t max_tokens;
	struct sampler_params sample;     /* bias must stay until run_free() */
	const char *const *stop;
	uint32_t n_stop;
	enum gen_prio prio;
	int who;                   /* key index or -1 */
	uint64_t conversation;     /* 0: none; its session, where nothing speaks against it */
	uint64_t cache_key;        /* 0: none; see struct gen_request */
	uint32_t pin_tokens, pin_seconds;
	enum run_mode mode;
	struct grammar *grammar;   /* referenced; NULL with RUN_FREE */
	const char *call_words;    /* static; NULL: as the model wrote it */
	bool no_calls, raw;        /* raw: text is not taken apart (completions) */
	bool whole;                /* events are wanted at the end, all at once */
	bool thinking;             /* a think block comes first; a grammar begins after it */
	int wait_ms;               /* for a session */
	bool (*gone)(void *arg);   /* the client left: looked at while waiting */
	void *gone_arg;
};

struct run;

/* -errno as service_take() and gen_start(), with the sentence. */
int run_start(const struct run_opts *o, struct run **ret, struct hearth_err *err);
/* As feed_next() and feed_rest(). When the service stops, the run is cancelled: its end comes soon, and says so. */
const struct run_event *run_next(struct run *r, int wait_ms);
void run_rest(struct run *r, int ms);
void run_cancel(struct run *r);
/* Valid once RUN_DONE was read. Of what was cancelled .err says why: -ESHUTDOWN, the service stops; -ECANCELED. */
const struct gen_result *run_result(const struct run *r);
uint32_t run_calls(const struct run *r);
/* Cancels what still runs, gives the session back. NULL is fine. */
void run_free(struct run *r);

#endif
