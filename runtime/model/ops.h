/* SPDX-License-Identifier: MIT */
/*
 * Every operation a model may call, as a table that a backend fills: ops_ref
 * (plain C, the oracle), ops_cpu (AVX-512, AVX2, NEON, threads), ops_cuda.
 *
 * A step runs n tokens of one or several sessions through the model at once:
 * prompt chunks and single decode tokens mixed. Activations are float,
 * row-major [n, width], in scratch that the backend owns; the graph only hands
 * the pointers from one op to the next. The ops are as coarse as the fusions
 * that pay: norm+quantise+matmul over weights that share an input, QK-norm+
 * RoPE+KV append, attention, matmul+residual, gate/up+SwiGLU. A backend that
 * does better still (one captured graph, one persistent kernel) fills .forward
 * and the graph files are not used.
 *
 * Memory: .plan says before anything is loaded how many bytes .open will be
 * given; nothing is allocated after .open.
 *
 * Errors: -ENODEV from a call after .open says that the device is lost: no call of
 * this process will do again, and only .close is left.
 *
 * Threads: one thread calls the ops of a context, in order. Host pointers
 * given in a call may be reused when it returns.
 */
#ifndef HEARTH_MODEL_OPS_H
#define HEARTH_MODEL_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cache/kv.h"
#include "model/model.h"

/* Sessions that a step has at most; every table takes as many. */
#define OPS_MAX_SEQS 256u
#define OPS_SLOW_MAX 320u

/* One session's share of a step. Its tokens are rows first .. first+n-1. */
struct batch_seq {
	uint32_t first, n;
	uint32_t pos0;          /* position of its first row; rows follow on */
	const uint32_t *page;   /* page ids that hold 0 .. pos0+n-1 (cache/kv.h) */
};

struct batch {
	uint32_t n;                   /* tokens = rows, 1 .. opts.max_batch */
	const int32_t *token;         /* [n] ids, checked by the caller: < vocab */
	uint32_t n_seq;               /* 1 .. opts.max_seqs */
	const struct batch_seq *seq;  /* [n_seq] in row order */
	uint32_t n_out;               /* rows that go through the head */
	const uint32_t *out;          /* [n_out] row numbers, ascending */
	/*
	 * The residual stream is wanted, not logits: n_out may be any number of rows,
	 * the head is left out, and bufs()->x holds the n_out rows afterwards. Only
	 * for tables that say .hidden.
	 */
	bool hidden;
};

struct ops_opts {
	uint32_t max_batch;    /* rows of one step, at most */
	uint32_t max_seqs;     /* sessions of one step, at most */
	uint32_t max_out;      /* rows through the head in one step, at most */
	uint32_t max_ctx;      /* tokens of one session, at most */
	uint32_t threads;      /* CPU threads, the caller's included */
	struct kv_cfg kv;
	uint32_t kv_pages;     /* pages of the kv region */
	uint64_t weights;      /* bytes of the weights region (load_region_bytes), for a
				* backend that keeps a copy on its device */
};

struct ops_need {
	size_t scratch;        /* bytes of scratch region, 64-byte aligned */
	size_t host;           /* heap taken by .open, to be charged to an account */
	size_t device;         /* device memory the backend takes itself (CUDA) */
};

/*
 * What a backend that samples on its own device is asked for one output row.
 * Fields are those of struct sampler_params that such a backend can honour; the
 * engine falls back to .logits for all others.
 */
struct ops_pick {
	uint32_t row;             /* index into batch.out */
	float temp;               /* 0: greedy */
	uint32_t top_k;           /* 0: off */
	float top_p, min_p;       /* 1, 0: off */
	double u;                 /* uniform [0,1) drawn by the session's generator */
	float rep_pen, freq_pen, pres_pen;       /* 1, 0, 0: off */
	const int32_t *recent;    /* [n_recent] tokens the penalties see */
	uint32_t n_recent;
	const uint32_t *mask;     /* bit per token, 1 = allowed; NULL: all */
	bool mask_stays;          /* the same bits each time that this pointer comes: a device keeps them */
};

enum {
	OPS_PICK_NONE = -1,   /* the mask leaves no token */
	OPS_PICK_NAN = -2,    /* the logits are not numbers */
	OPS_PICK_HOST = -3,   /* the choice needs more candidates than the device sorts */
};

enum ops_kv {
	OPS_KV_HOST,          /* in the kv region, ordinary memory */
	OPS_KV_PINNED,        /* there, pinned for a device that reads and writes it */
	OPS_KV_DEVICE,        /* in memory of a device */
};

struct ops {
	const char *name;      /* "cpu/avx512-vnni", "cuda": said at start */
	bool hidden;           /* batch.hidden is honoured */

	/* One line about the device it computes on, for people. NULL: none. */
	const char *(*line)(void);
	/*
	 * Whether all of @m, bound to a file's head, can be computed: -ENOTSUP and
	 * the tensor of a type without a kernel. @ret_slow[@n], OPS_SLOW_MAX or more: what makes all of it
	 * slow, or "". NULL: whatever model_bind() takes.
	 */
	int (*takes)(const struct model *m, char *ret_slow, size_t n, struct hearth_err *err);
	int (*plan)(const struct model_shape *s, const struct ops_opts *o,
		    struct ops_need *ret, struct hearth_err *err);
	/*
	 * @scratch has need.scratch bytes, zeroed. @kv_base is the kv region.
	 * The model's weights are in place (and packed, see .pack).
	 */
	int (*open)(const struct model *m, const struct ops_opts *o, void *scratch,
		    void *kv_base, struct ops_ctx **ret, struct hearth_err *err);
	void (*close)(struct ops_ctx *c);   /* NULL is fine */

	/*
	 * Reorders one matrix within its own bytes into the layout the backend
	 * reads fastest, once, after the file is read and before the region is
	 * sealed; sets w->layout. @tmp has .pack_tmp(w) bytes. NULL: no packing.
	 * The layout's name goes into the sealed region's name, so that a
	 * restart finds weights that fit.
	 */
	const char *layout_name;
	size_t (*pack_tmp)(const struct mat *w);
	int (*pack)(struct mat *w, void *tmp, struct hearth_err *err);
	/* The layout .pack would set, for a region found already packed. */
	int (*pack_layout)(const struct mat *w);

	/* -- the whole step, or NULL: family->forward over the ops below ------ */
	int (*forward)(struct ops_ctx *c, const struct batch *b, struct hearth_err *err);

	/* x[n, d] = embedding rows of b->token */
	void (*embed)(struct ops_ctx *c, const struct batch *b, float *x);

	/*
	 * y[i][n, w[i]->rows] = w[i] (rmsnorm(x) * norm) (+ bias[i]), i < nw <= 3.
	 * x[n, cols] is not changed.
	 */
	void (*norm_matmul)(struct ops_ctx *c, uint32_t n, const float *x, const float *norm,
			    uint32_t nw, const struct mat *const w[],
			    const float *const bias[], float *const y[]);

	/*
	 * Per head: rmsnorm with q_norm/k_norm where not NULL, then NEOX rotation
	 * by position. q[n, heads*head_dim] in place; k, v[n, kv_heads*head_dim]
	 * go into the pages of @layer, quantised as kv_cfg says.
	 */
	void (*rope_append)(struct ops_ctx *c, const struct batch *b, uint32_t layer,
			    float *q, float *k, const float *v,
			    const float *q_norm, const float *k_norm);

	/* out[n, heads*head_dim] = causal softmax(q k^T / sqrt(head_dim)) v, by pages */
	void (*attend)(struct ops_ctx *c, const struct batch *b, uint32_t layer,
		       const float *q, float *out);

	/* x[n, w->rows] += w h, h[n, w->cols] */
	void (*matmul_add)(struct ops_ctx *c, uint32_t n, const float *h,
			   const struct mat *w, float *x);

	/* h[n, ff] = silu(gate xn) * (up xn), xn = rmsnorm(x) * norm, x[n, d] */
	void (*norm_swiglu)(struct ops_ctx *c, uint32_t n, const float *x, const float *norm,
			    const struct mat *gate, const struct mat *up, float *h);

	/*
	 * Before the last layer's output: moves rows b->out of x[n, d] and of
	 * a[n, heads*head_dim] to the front; from here the step has n_out rows.
	 */
	void (*narrow)(struct ops_ctx *c, const struct batch *b, float *x, float *a);

	/* x[n_out, d] through the last norm and the head, into the logits. */
	void (*head)(struct ops_ctx *c, const struct batch *b, const float *x);

	/* The graph's activation buffers, in scratch. */
	struct ops_bufs *(*bufs)(struct ops_ctx *c);

	/* -- after the step ---------------------------------------------------- */
	/* Host pointer to row @i of the last step's logits, [vocab]; valid, and
	 * writable by the sampler, until the next step. */
	int (*logits)(struct ops_ctx *c, uint32_t i, float **ret, struct hearth_err *err);
	/*
	 * Samples on the device, or NULL. ret_token[n]: a token, or one of
	 * OPS_PICK_*; the caller then takes .logits and does what the sampler
	 * does. A token is the one that the sampler would choose with the same u.
	 */
	int (*pick)(struct ops_ctx *c, const struct ops_pick *p, uint32_t n,
		    int32_t *ret_token, struct hearth_err *err);

	/* First @tokens tokens of page src to page dst, all layers. */
	int (*kv_copy)(struct ops_ctx *c, uint32_t dst, uint32_t src, uint32_t tokens,
		       struct hearth_err *err);

	/* Where pages of KV lie. NULL: OPS_KV_HOST. */
	enum ops_kv (*kv_where)(struct ops_ctx *c);

	/*
	 * From any thread: the step in progress, or the next one, ends early with
	 * -ECANCELED; what it had appended to the pages counts for nothing. May be
	 * NULL. interrupted() is the question the graphs ask between layers, and
	 * clears the wish when it answers yes.
	 */
	void (*interrupt)(struct ops_ctx *c);
	bool (*interrupted)(struct ops_ctx *c);
};

/* Row-major, [max_batch, width]. */
struct ops_bufs {
	float *x;    /* [d] residual stream */
	float *q;    /* [heads*head_dim] */
	float *k;    /* [kv_heads*head_dim] */
	float *v;    /* [kv_heads*head_dim] */
	float *a;    /* [heads*head_dim] */
	float *h;    /* [ff] */
};

/* First member of every backend's context, so that graphs reach table and model. */
struct ops_ctx {
	const struct ops *ops;
	const struct model *model;
};

extern const struct ops ops_ref;    /* plain C, float, one thread: the oracle */
/* The fastest table this CPU can run, chosen by cpuid at first call. */
const struct ops *ops_cpu(void);
/* By name, for tests and --backend: "ref", "avx2", "avx512", "neon", "cpu";
 * NULL when this build or machine has no such thing. */
const struct ops *ops_by_name(const char *name);
/* The CUDA table when built in and a device is there, else -errno and why: the
 * reason alone, which also stands where the CPU does it without being told. */
int ops_cuda(const struct ops **ret, struct hearth_err *err);

#endif
