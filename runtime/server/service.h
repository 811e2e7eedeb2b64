/* SPDX-License-Identifier: MIT */
/*
 * What every front of hearthd (HTTP, Wyoming, realtime) shares: the engine,
 * its sessions, the queue for them, and the counters.
 *
 * A session serves one request at a time. A request takes the free session
 * that holds most of its prompt already, or waits: voice before normal before
 * background, of one rank the first first, and no more than the queue's limit.
 */
#ifndef HEARTH_SERVER_SERVICE_H
#define HEARTH_SERVER_SERVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/engine.h"
#include "grammar/grammar.h"
#include "server/config.h"
#include "server/keyring.h"
#include "token/chat.h"
#include "token/tokenizer.h"

struct hearth;
struct home;
struct slot;
struct grammars;
struct keeper;
struct speech;
struct tenants;

struct service {
	const struct config *cfg;
	struct hearth *hearth;
	struct hearth_tenant *llm;
	struct tenants *tenants;        /* whose budgets requests live under; NULL: nobody has one */
	struct engine *engine;
	const struct tok *tok;
	struct chat *chat;              /* NULL: the template is not known; chat_why says so */
	struct hearth_err chat_why;
	struct speech *speech;          /* NULL: no engine is switched on */
	struct gvocab *vocab;
	struct home *home;              /* simulated; NULL: none is configured */
	pthread_mutex_t home_lock;
	struct grammars *grammars;      /* compiled lately */
	struct keeper *keeper;          /* pressure, and the cache's file */
	char prompt_note[1024];         /* what hearthd's own prompts take of the context */
	char cache_note[640];           /* what came of the file; "": nothing to say */
	struct keyring *keys;           /* the daemon's */
	atomic_uint queue, request_seconds; /* limits that a reload may change */
	char model_id[128];
	int32_t tool_call_id;           /* token of "<tool_call>", -1: none */
	time_t started;

	pthread_mutex_t lock;
	pthread_cond_t freed;
	struct slot *slots;
	uint32_t n_slots;
	uint32_t waiting[GEN_VOICE + 1];
	struct waiter *line[GEN_VOICE + 1];  /* who came first is first */
	atomic_bool stopping;

	/* counters, all monotonic */
	atomic_ullong requests, refused, cancelled, prompt_tokens, cached_tokens, output_tokens, tool_calls;
	atomic_ullong ttft_ns, ttft_count, decode_ns;
	atomic_ullong sheds, shed_bytes, cache_loaded, cache_saved, cache_failed;
	atomic_ullong ttft_bucket[16];
};

struct engine_opts;
struct engine_plan;
/* What the model takes by @cfg, from its head alone; what is refused here service_open() would refuse too. */
int service_plan(const struct config *cfg, struct engine_opts *ret_o, struct engine_plan *ret, struct hearth_err *err);
/* Opens the model by @cfg; it and @keys must outlive the service. */
int service_open(const struct config *cfg, struct keyring *keys, struct service **ret, struct hearth_err *err);
/* New takers are refused from here on, who waits is sent away, and what runs is cancelled (run_next()). */
void service_stop(struct service *s);
void service_close(struct service *s);

/*
 * A session for @tokens; of those that hold as much of them, the one that
 * served @conversation (0: none) last. -EAGAIN: the queue is full (429); -ETIMEDOUT: none came free within
 * @wait_ms; -ESHUTDOWN; -ECANCELED: @gone(@arg) said so while waiting.
 */
int service_take(struct service *s, const int32_t *tokens, size_t n, enum gen_prio prio, uint64_t conversation, int wait_ms,
		 bool (*gone)(void *arg), void *arg, struct slot **ret, struct hearth_err *err);
/* Gives it back with what it holds now; as it was taken with @tokens NULL. */
void service_give(struct service *s, struct slot *slot, const int32_t *tokens, size_t n);
/* Has one run that is over give back what it holds; false: there is none. */
bool service_settle(struct service *s);
/*
 * What runs on @slot is over: from now on whoever needs a session may have it
 * given back by @settle(@run), which calls service_give(). Any thread.
 */
void service_done(struct service *s, struct slot *slot, void (*settle)(void *run), void *run);
/* After @run was given back by its own thread: when this returns nobody else is at it. */
void service_settled(struct service *s, struct slot *slot, void *run);
struct session *slot_session(struct slot *slot);

/* Tokens that a request of @who may hold, prompt and answer: the context, or what its budget of cache leaves. */
uint32_t service_most_tokens(struct service *s, int who);
/* Bytes of cache that @tokens take, in whole pages. */
uint64_t service_kv_bytes(const struct service *s, uint64_t tokens);

void service_count(struct service *s, const struct gen_result *r);

#endif
