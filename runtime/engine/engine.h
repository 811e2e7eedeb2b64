/* SPDX-License-Identifier: MIT */
/*
 * The language model engine.
 *
 *   engine    one loaded model: weights, KV pages, scratch, one worker thread
 *   session   one timeline of tokens with its KV. Callers always pass the whole
 *             token list; the session keeps the common prefix and computes the
 *             rest, so a conversation costs its new turn only
 *   gen       one request on a session: prefill, then tokens until it finishes
 *
 * The worker runs all active gens together, one batched step at a time: voice
 * before normal before background, one token for each that decodes, and one
 * bounded chunk of prompt. A cancel takes effect at the next step's border (a
 * long prefill step is interrupted between layers) and leaves what is in the
 * cache valid.
 *
 * Callbacks run on the worker thread: they must be quick and must not call
 * back into the engine, except gen_cancel(). All functions may be called from
 * any thread; one session has one gen at a time (-EBUSY).
 *
 * Memory: engine_plan() says, before anything is read, what each pool will be
 * charged. engine_open() takes exactly that from the tenant's regions, and
 * nothing is allocated afterwards.
 */
#ifndef HEARTH_ENGINE_ENGINE_H
#define HEARTH_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cache/kv.h"
#include "model/model.h"
#include "sample/sampler.h"

struct hearth;
struct hearth_tenant;
struct tok;
struct gguf;
struct engine;
struct session;
struct gen;

/* -- open ------------------------------------------------------------------- */

struct engine_opts {
	const char *model;              /* GGUF path (first file of a split) */
	struct hearth *hearth;          /* NULL: an embedded pool of its own */
	struct hearth_tenant *tenant;   /* NULL: an unlimited one of its own */
	const char *backend;            /* NULL: "auto"; "cpu", "cuda", "ref" ... (model/ops.h) */
	uint32_t threads;               /* 0: one per core */
	uint32_t ctx;                   /* tokens of one session; 0: min(trained, 4096) */
	uint32_t sessions;              /* open at once, 0: 1 */
	uint32_t kv_tokens;             /* KV tokens for all sessions together; 0: ctx * sessions */
	enum kv_type kv;                /* KV_I8 */
	uint32_t chunk;                 /* prompt tokens of one step; 0: 256 */
	bool prefix_cache;              /* share prefixes across sessions; default true */
	/*
	 * The KV region gets a name and stays in its pool when the engine closes: with
	 * the kernel module it outlives the process, and engine_cache_load() finds its
	 * pages where they were.
	 */
	bool keep_kv;
	/* Loading: bytes done of total, from the opening thread. May be NULL. */
	void (*progress)(void *arg, uint64_t done, uint64_t total);
	void *progress_arg;
};

void engine_defaults(struct engine_opts *o);

enum engine_pool { ENGINE_WEIGHTS, ENGINE_KV, ENGINE_SCRATCH, ENGINE_ACCOUNT, ENGINE_POOLS };

#define ENGINE_WHY 640

struct engine_plan {
	char model[64];                 /* general.name */
	char arch[16];
	char backend[32];
	/* Of it, in a line: the device and what makes it slow; why it is not the GPU; "as
	 * asked". For "computing on BACKEND: WHY". */
	char why[ENGINE_WHY];
	struct model_shape shape;
	uint64_t params;                /* weights in the file */
	uint32_t ctx, sessions, kv_tokens, kv_pages, threads, chunk;
	enum kv_type kv;
	uint64_t bytes[ENGINE_POOLS];   /* what the tenant's pools will be charged */
	uint64_t room[ENGINE_POOLS];    /* what budget and pool allow; UINT64_MAX: no limit */
	uint64_t kv_bytes_per_token;
	uint64_t total;
	bool fits;
	enum engine_pool short_of;      /* first pool that does not fit */
	uint32_t ctx_fit;               /* largest context that would fit, 0: none */
};

/*
 * Reads the header only. Returns 0 also when it does not fit (ret->fits);
 * -errno when the file cannot be used at all.
 */
int engine_plan(const struct engine_opts *o, struct engine_plan *ret, struct hearth_err *err);
/* Plans, refuses with -ENOMEM and the largest context that fits, or loads. */
int engine_open(const struct engine_opts *o, struct engine **ret, struct hearth_err *err);
/* Cancels what runs, waits for callbacks, frees all. NULL is fine. */
void engine_close(struct engine *e);

const struct engine_plan *engine_the_plan(const struct engine *e);
const struct tok *engine_tokenizer(const struct engine *e);
const struct gguf *engine_gguf(const struct engine *e);
struct hearth_tenant *engine_tenant(const struct engine *e);
bool engine_can_embed(const struct engine *e);   /* the backend gives the last norm's output */

/* -- sessions ------------------------------------------------------------------ */

enum gen_prio { GEN_BACKGROUND, GEN_NORMAL, GEN_VOICE };

int session_open(struct engine *e, struct session **ret, struct hearth_err *err);
void session_close(struct session *s);     /* cancels and waits; NULL is fine */
uint32_t session_len(struct session *s);   /* tokens in its cache now */
/* Forgets everything from token @len on. -EBUSY while a gen runs. */
int session_rewind(struct session *s, uint32_t len);

/* -- generation ------------------------------------------------------------------ */

enum gen_finish {
	GEN_RUNNING,
	GEN_STOP,        /* end-of-turn token, stop token or stop string */
	GEN_LENGTH,      /* max_tokens, or the context is full */
	GEN_CANCELLED,
	GEN_MEMORY,      /* no KV page left, or the budget gave way */
	GEN_ERROR,       /* result.err says why */
};

const char *gen_finish_name(enum gen_finish f);   /* "stop", "length", ... */

struct gen_token {
	int32_t id;
	uint32_t index;             /* 0 for the first generated token */
	/* Text that became certain with it: whole UTF-8, never part of a stop
	 * string; may be empty. Not NUL-terminated. */
	const char *text;
	size_t len;
	const struct sampler_pick *pick;   /* logprobs when asked */
	uint64_t t_ns;              /* CLOCK_MONOTONIC */
};

struct gen_result {
	enum gen_finish finish;
	uint32_t n_prompt;          /* tokens of the prompt */
	uint32_t n_cached;          /* of these, found in the cache */
	uint32_t n_out;             /* tokens generated, the end token included */
	uint32_t n_forced, n_kept;  /* tokens .force named that were computed, and that came true */
	int32_t stop_token;         /* the token that ended it, or -1 */
	int32_t stop_string;        /* index of the stop string, or -1 */
	uint64_t seed;
	uint64_t mask_ns;           /* spent in .mask, at tokens that were decoded */
	/* CLOCK_MONOTONIC ns; 0: never happened */
	uint64_t t_submit, t_prefill, t_prefilled, t_first, t_last, t_done;
	struct hearth_err err;
};

struct gen_request {
	const int32_t *tokens;      /* whole timeline so far; copied */
	uint32_t n_tokens;          /* >= 1 */
	uint32_t max_tokens;        /* 0: prefill only (warms the cache), GEN_LENGTH */
	struct sampler_params sample;
	const char *const *stop;    /* strings, copied */
	uint32_t n_stop;
	/* Whether stop strings do not count where the text is now: in a form that they must not cut. @arg; may be NULL. */
	bool (*no_stop)(void *arg);
	const int32_t *stop_tokens; /* besides the model's end-of-turn tokens; copied */
	uint32_t n_stop_tokens;
	bool ignore_eos;            /* for benchmarks */
	enum gen_prio prio;
	/*
	 * Not 0: the beginning of this prompt stays in the prefix cache before what
	 * nobody named: @pin_tokens of it (0: all) for @pin_seconds (0: for good), or
	 * until the next request of the same key.
	 */
	uint64_t cache_key;
	uint32_t pin_tokens, pin_seconds;
	sampler_mask_fn mask;       /* called before each pick, or NULL */
	/*
	 * Beside .mask: whether its mask would allow @token, asked instead of it where
	 * the best token is taken if it may be. May say no and be wrong. Asked with
	 * -1 first: whether that is less work than the mask. May be NULL.
	 */
	bool (*allows)(void *mask_arg, int32_t token);
	void *mask_arg;
	/*
	 * Tokens that are likely to come next, best known where a grammar leaves no
	 * choice: writes up to @cap and returns how many. They go through the model
	 * in one step with the token before them, and each stays only if it is the
	 * one that is chosen there by the mask and the sampler: the answer is the
	 * same with and without. Called from gen_start(), then by the worker after
	 * each token that was not foreseen. May be NULL.
	 */
	uint32_t (*force)(void *arg, int32_t *ret_token, uint32_t cap);
	/* Each token as it comes; true cancels. May be NULL. */
	bool (*on_token)(void *arg, const struct gen_token *t);
	/* Log-probability of each prompt token i >= n_cached+1 given those before it;
	 * switches reuse off so that all come. May be NULL. */
	void (*on_prompt)(void *arg, uint32_t i, int32_t token, float logprob);
	/*
	 * For embeddings, with max_tokens 0: rows of the last norm's output, [d]
	 * floats, of the last prompt token, or with .hidden_all of each in order
	 * (which switches reuse off). engine_can_embed() says whether it can be had.
	 */
	void (*on_hidden)(void *arg, uint32_t i, const float *row, uint32_t d);
	bool hidden_all;
	void (*on_done)(void *arg, const struct gen_result *r);   /* last call; may be NULL */
	void *arg;
};

void gen_defaults(struct gen_request *r);

/*
 * Queues @r. -E2BIG with the numbers when the prompt does not fit the context
 * (never cut), -EBUSY, -EINVAL, -ENODEV (engine_lost()). On success *ret_gen must be given to gen_free().
 */
int gen_start(struct session *s, const struct gen_request *r, struct gen **ret_gen,
	      struct hearth_err *err);
void gen_cancel(struct gen *g);            /* returns at once; any thread */
/* Waits for the end; timeout in ms, negative: for ever. -ETIMEDOUT. */
int gen_wait(struct gen *g, int timeout_ms, struct gen_result *ret);
void gen_free(struct gen *g);              /* cancels and waits first; NULL is fine */

/* -- what it is doing ------------------------------------------------------------- */

struct engine_stats {
	uint64_t steps, prompt_tokens, cached_tokens, out_tokens;
	uint64_t forced_tokens, kept_tokens;   /* of gen_request.force */
	uint64_t step_ns;               /* time spent in steps */
	uint32_t active, queued, sessions;
	uint32_t kv_pages, kv_pages_free, kv_pages_cached;   /* cached: held by the prefix cache alone */
	uint64_t finished[GEN_ERROR + 1];
};

void engine_stats(struct engine *e, struct engine_stats *ret);

/*
 * -ENODEV and why: the backend has lost its device, and in this process no request
 * will be served again. What ran has ended with that sentence, and gen_start()
 * refuses with it. Else 0. The descriptor is readable from then on.
 */
int engine_lost(struct engine *e, struct hearth_err *err);
int engine_lost_fd(const struct engine *e);

/*
 * Gives back up to @bytes of KV held by the prefix cache alone, what is pinned
 * only with @pinned; returns bytes. Where pages are ordinary memory the
 * system gets it; what the tenant is charged does not change.
 */
uint64_t engine_shed(struct engine *e, uint64_t bytes, bool pinned);

/*
 * The prefix cache to a file and back (cache/store.h has the errors).
 * -EOPNOTSUPP: there is no prefix cache, or its pages lie in a GPU's own
 * memory. -ENODEV: the engine is lost, and with it what its pages are worth. Saving may be done while gens run; loading before the first.
 * @in_place: the index only, the pages stay in the region that is kept
 * (-EINVAL without .keep_kv).
 */
int engine_cache_save(struct engine *e, const char *path, uint64_t max_bytes, bool in_place,
		      uint32_t *ret_pages, struct hearth_err *err);
int engine_cache_load(struct engine *e, const char *path, uint32_t *ret_pages, uint32_t *ret_lost,
		      struct hearth_err *err);

#endif
