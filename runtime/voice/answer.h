/* SPDX-License-Identifier: MIT */
/*
 * The model's part of a turn (sched.c has the loop): starting it on the
 * conversation, early or for good; its text to the chunker, its tool calls to
 * the home, and what it said into the conversation.
 *
 * All of it runs on the turn's thread; only the engine's callbacks, which post
 * to the mailbox, run on the engine's.
 */
#ifndef HEARTH_VOICE_ANSWER_H
#define HEARTH_VOICE_ANSWER_H

#include <stdatomic.h>

#include "voice/listen.h"
#include "voice/mailbox.h"
#include "voice/mouth.h"
#include "voice/sched.h"

#define CALLS_MAX 16 /* tool calls in one answer */

/* One generation of the model. */
struct answer {
	struct gen *gen;
	uint64_t id;
	bool running;
	bool committed;        /* its text counts; else it is only kept */
	bool done;
	struct gen_result result;
	char *held;            /* text of an early answer */
	size_t n_held, room;
	int64_t first_ns;      /* its first token, 0: none yet */
	bool any_content;
};

struct sched {
	struct sched_opts opts;
	struct stt_events stt_events;
	struct tts_events tts_events;
	struct sched_parts parts;
	struct session *session;
	struct mailbox *box;
	struct listen *listen;
	struct mouth *mouth;
	struct chunker *chunker;
	struct chat_parser *parser;
	atomic_bool stopped;
	uint64_t next_utterance, next_gen, next_phrase;

	/* the turn */
	struct turn_result *r;
	struct trace *trace;
	atomic_bool speaking;      /* the mouth is open */
	uint64_t utterance;        /* the one that counts */
	bool decided;              /* the end of the turn */
	bool too_long;             /* the utterance had to be ended by force */
	bool have_final;
	struct stt_result final;
	int64_t stt_from;
	size_t mark;               /* messages before this turn's user */
	bool cold;                 /* messages of this turn are not in the cache yet */
	struct answer answer;
	uint32_t rounds;
	uint64_t said, spoken;     /* phrases given to and done by the engine */
	int64_t tts_from;          /* when the engine began the running phrase; its own thread's */
	char *content;             /* of the running answer */
	size_t n_content, content_room;
	struct chat_call calls[CALLS_MAX];
	char *results[CALLS_MAX];
	size_t n_calls;
	bool call_failed;      /* of the last answer's calls; what is said then: */
	char sorry[128];
	bool bad_call;
	int64_t answered_ns;       /* when a turn was last answered, 0: none was */
	int failed;                /* -errno that ends the turn; r->err says why */
};

/* Ends the turn with @code (-errno), the first one; returns @code. */
int sched_fail(struct sched *s, int code);

/* Where the parser of the model's text sends what it finds. */
struct chat_sink answer_sink(struct sched *s);
/* Where the chunker sends phrases: to the speech engine. */
int answer_phrase(void *arg, const struct chunk *chunk);

/* Reads the conversation so far into the cache, and waits for it. */
int answer_warm(struct sched *s, struct hearth_err *err);
/* The transcript is there, early or not: the model starts on it, once. */
void answer_command(struct sched *s);
/* The early answer counts from here on. */
void answer_commit(struct sched *s);
/* Cancels a running answer, and takes the user's message back. */
void answer_drop(struct sched *s);
/* Text of the model, as the engine's thread posted it. */
void answer_text(struct sched *s, const struct mail *m);
/* The model is done: carries out what is left; *@ret_more: it was started again on the results. */
void answer_finish(struct sched *s, bool *ret_more);
/* Says @text, as if the model had written it. */
void answer_speak(struct sched *s, const char *text, size_t n);
void answer_forget_calls(struct sched *s);

#endif
