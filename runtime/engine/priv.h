/* SPDX-License-Identifier: MIT */
/*
 * Inside of engine/: the structures, and who may touch what.
 *
 * One mutex, engine.lock, guards everything below that is not marked. The
 * worker holds it while it chooses a step and while it books the result, never
 * while the model runs or a callback is called. A gen in GEN_S_ACTIVE belongs
 * to the worker: others only set .cancel.
 */
#ifndef HEARTH_ENGINE_PRIV_H
#define HEARTH_ENGINE_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/mono.h"
#include "cache/prefix.h"
#include "dev/hearth.h"
#include "engine/engine.h"
#include "gguf/gguf.h"
#include "gguf/load.h"
#include "model/ops.h"
#include "token/tokenizer.h"

#define SESSIONS_MAX    OPS_MAX_SEQS
#define STOP_TOKENS_MAX 32u
/* Rows of one step that can go through the head, besides one for each session. */
#define OUT_EXTRA       15u

enum gen_state {
	GEN_S_IDLE,       /* no gen: the session is free for gen_start() */
	GEN_S_QUEUED,     /* waits for the worker */
	GEN_S_ACTIVE,
	GEN_S_DONE,       /* finished; waits for gen_free() */
};

struct gen {
	struct session *s;
	enum gen_state state;
	atomic_bool cancel;          /* set by anyone */
	struct gen_request r;        /* pointers inside lead into this struct */
	uint32_t n_want;             /* tokens in session.want: the timeline to compute */
	uint64_t order;              /* queue position: first come first served */
	struct stop_match stop;
	char stop_text[STOP_MAX][STOP_MAX_BYTES + 1];
	const char *stop_str[STOP_MAX];
	int32_t stop_token[STOP_TOKENS_MAX];
	struct sampler_bias bias[SAMPLER_MAX_BIAS];
	struct gen_result res;       /* worker's until DONE */
	uint32_t step_n;             /* rows in the step that runs */
	uint32_t step_first;
	uint32_t step_out;           /* its first output row */
	bool given;                  /* given_token was chosen on the device and not taken yet */
	int32_t given_token;
	uint32_t step_ahead;         /* rows of the step that are ahead[], at its end */
	int32_t ahead[OUT_EXTRA];    /* what .force named, not in session.want yet */
	uint32_t n_ahead, most_ahead;   /* most that is asked for: by what came true so far */
};

struct session {
	struct engine *e;
	bool open;
	struct kv_seq seq;
	int32_t *want;               /* [ctx] */
	struct sampler *sampler;
	struct tok_stream *stream;
	uint64_t used;               /* engine.clock of its last use */
	char *text;                  /* [engine.text_max] what a token made certain */
	struct gen gen;
};

struct engine {
	struct engine_opts o;
	struct engine_plan plan;
	struct hearth *own_hearth;
	struct hearth_tenant *own_tenant;
	struct hearth_tenant *tenant;
	struct hearth_pool *pool[ENGINE_POOLS];
	struct hearth_region *kv_region, *scratch_region;
	uint64_t charged;            /* in the account pool */
	bool kv_kept;                /* the region was there already, with its pages */
	struct gguf *gguf;
	struct load *load;
	struct model *model;
	struct tok *tok;
	const struct ops *ops;
	struct ops_ctx *ctx;
	struct kv *kv;
	struct prefix *prefix;       /* NULL: off */
	size_t text_max;
	uint32_t *mask;              /* [vocab/32] scratch of the worker */
	float *hidden;               /* [d] one row for gen_request.on_hidden */
	bool hidden_turn;            /* the next step is one for .on_hidden, which are alone in theirs */
	uint32_t *valid;             /* [vocab/32] 1: a token that exists; NULL: all do */
	int32_t *row_token;          /* [chunk + sessions] of the step */
	uint32_t *row_out;
	struct batch_seq *row_seq;
	struct gen **row_gen;
	struct ops_pick *pick;       /* [chunk + sessions] */
	int32_t *picked;

	pthread_mutex_t lock;
	pthread_cond_t work;         /* the worker waits */
	pthread_cond_t done;         /* gen_wait(), session_close() */
	pthread_t worker;
	bool started, stop;
	struct hearth_err lost;      /* .code -ENODEV: the backend lost its device, and why; the worker sets it */
	int lost_fd;                 /* eventfd: written then */
	uint64_t clock, orders;
	struct session *session;     /* [plan.sessions] */
	struct engine_stats stats;
};

/* The step under work; only the worker has one. */
struct step {
	struct batch b;
	uint32_t n_gen;          /* gens in it: e->row_gen[] */
	uint32_t extra;          /* output rows that may still be had besides one for each gen */
};

static inline struct gen *engine_gen(struct engine *e, uint32_t i)
{
	return &e->session[i].gen;
}

static inline uint32_t gen_left(const struct gen *g)
{
	return g->n_want - g->s->seq.len;
}

/* worker.c */
void *engine_worker(void *e);
void gen_finish(struct engine *e, struct gen *g, enum gen_finish f);
void gen_fail(struct engine *e, struct gen *g, int code, const char *text);

/* batch.c. Lock held. False: nothing to run, or *ret_failed ran out of memory. */
bool batch_choose(struct engine *e, struct step *st, struct gen **ret_failed, struct hearth_err *err);

/* book.c: the step was run from @t0 to @t1, or did not happen. */
void batch_book(struct engine *e, struct step *st, uint64_t t0, uint64_t t1);
void batch_unbook(struct engine *e, struct step *st);

/* Memory plan from an open file, options resolved. */
int plan_make(const struct gguf *g, const struct engine_opts *o, const struct ops *ops,
	      const struct tok *tok, struct engine_plan *ret, struct hearth_err *err);
/*
 * The same; where nobody asked for a backend and @ops cannot run the model, the
 * CPU can: *ops changes, and ret->why says it. @no_gpu: what plan_ops() left.
 */
int plan_choose(const struct gguf *g, const struct engine_opts *o, const struct ops **ops,
		const struct hearth_err *no_gpu, const struct tok *tok, struct engine_plan *ret,
		struct hearth_err *err);
/* @ret_no_gpu: why it is not the GPU where nobody asked for a backend; else 0 and "". */
int plan_ops(const char *backend, const struct ops **ret, struct hearth_err *ret_no_gpu,
	     struct hearth_err *err);
void plan_ops_opts(const struct engine_plan *p, struct ops_opts *ret);
/* Fills room[], fits, short_of, ctx_fit from what the tenant's pools allow (NULL: all fits). */
int plan_fit(const struct gguf *g, const struct engine_opts *o, const struct ops *ops,
	     const struct tok *tok, struct hearth_tenant *tenant, struct engine_plan *p,
	     struct hearth_err *err);

/* What pages of KV depend on, and the name of a region that is kept. */
#define KV_REGION_NAME "kv"
#define CACHE_ID_MAX 480u
void cache_id(const struct engine *e, char *ret /* [CACHE_ID_MAX] */);
/* The KV region: the one that was kept for this model, else a new one. */
int cache_region(struct engine *e, struct hearth_err *err);
/* Bytes of a kept KV region that nobody has open: they can be had. */
uint64_t cache_left(struct hearth_tenant *t, struct hearth_pool *pool);

int sessions_open(struct engine *e, struct hearth_err *err);
void sessions_close(struct engine *e);

static inline uint64_t now_ns(void)
{
	return (uint64_t)mono_ns();
}

#endif
