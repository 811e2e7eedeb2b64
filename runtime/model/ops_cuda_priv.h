/* SPDX-License-Identifier: MIT */
/* What the files of the CUDA table share: ops_cuda.c opens and closes, ops_cuda_plan.c
 * knows the sizes, ops_cuda_step.c runs, ops_cuda_warm.c does so once before anybody asks. */
#ifndef HEARTH_MODEL_OPS_CUDA_PRIV_H
#define HEARTH_MODEL_OPS_CUDA_PRIV_H

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "gguf/quant.h"
#include "kernels/kernels.h"
#include "kernels/pack.h"
#include "kernels/step.h"
#include "kernels/tile.h"
#include "model/ops.h"
#include "model/ops_cuda.h"

enum { CUDA_BUCKETS = 8, LAYERS_BETWEEN_LOOKS = 4, PICK_RECENT = 4096, APART_ROWS = 64, APART_K46 = 128, FOLD_ROWS = 8 };
/* Row counts that have a graph; more rows go by layers. */
extern const uint32_t cuda_bucket[CUDA_BUCKETS];

/* The device, once probed. */
struct cuda_gpu {
	bool probed;
	enum ops_cuda_where want, where;
	struct hk_dev_info dev;
	char name[32], line[640];
};
extern struct cuda_gpu cuda_gpu;

struct clayer {
	struct hk_mat q, k, v, o, gate, up, down;
	const float *attn_norm, *ffn_norm, *q_norm, *k_norm, *q_bias, *k_bias, *v_bias;
};

/* Buffers on the device, carved from one allocation. */
struct bufs {
	float *x, *qkv, *a, *h, *g, *u, *cs, *act_scale, *logits, *work, *gpart, *apart, *inv_freq;
	uint16_t *q;
	void *act_x, *act_a, *act_h, *step, *q8_a, *q8_h;
	uint32_t *gcount, *acount, *pick_mask;
	int32_t *pick_recent, *pick_ret;
	struct hk_pick *pick;
	size_t gpart_n, apart_n;
};

struct cuda_ctx {
	struct ops_ctx base;
	struct ops_opts o;
	struct hk_dev_info dev;
	enum ops_cuda_where where;
	void *stream;
	void *arena, *weights, *kv_mem;
	struct { void *p; } *reg;       /* registered pieces */
	uint32_t n_reg;
	struct clayer *layer;
	struct hk_mat embd, head;
	const float *out_norm;
	struct hk_kv kv;
	struct step_cap cap;
	struct hk_step step;            /* device pointers */
	struct bufs b;
	void *graph[CUDA_BUCKETS];
	struct hk_parts add;            /* while a step is launched: what x still lacks */
	bool few, many;                 /* routes this model can take */
	bool free, k46;                 /* hk_gemm.free; layers are of Q4_K and Q6_K alone, which it can mix */
	uint32_t few_rows;              /* the first one's largest step */
	uint32_t n_out;
	float *logits;                  /* host, [max_out, vocab] in scratch */
	uint8_t *have;                  /* [max_out] row was fetched */
	void *staging;                  /* host step block, in scratch */
	struct hk_pick *picks;          /* host, in scratch */
	int32_t *recent, *ret;
	uint32_t *mask;
	const uint32_t *mask_kept;   /* whose bits the device has behind those of a step; NULL: nobody's */
	bool scratch_pinned;
	unsigned long long used;
	atomic_bool interrupt;
};

static inline struct cuda_ctx *cuda_ctx(struct ops_ctx *c)
{
	return (struct cuda_ctx *)c;
}

static inline uint32_t max_u(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static inline uint32_t min_u(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* -- ops_cuda_plan.c: shapes of launches, sizes of buffers ---------------------------- */

/* Blocks of attention that fill the device. */
uint32_t cuda_attn_fill(const struct hk_dev_info *d);
uint32_t cuda_attn_tiles(const struct step_cap *cap, uint32_t n);
uint32_t cuda_attn_splits(const struct hk_dev_info *d, const struct step_cap *cap, uint32_t n);
/* Rows that a step of n rows is run as. */
uint32_t cuda_padded(uint32_t n, int *ret_bucket);
/* 8-token groups of an activation buffer for n rows. */
uint32_t cuda_groups_of(uint32_t n);
struct step_cap cuda_cap_of(const struct model_shape *s, const struct ops_opts *o);
/* Carves @b from @at; returns the bytes. Both may be NULL. */
size_t cuda_lay_out(const struct model_shape *s, const struct ops_opts *o, struct bufs *b, char *at);

struct host_lay { size_t logits, staging, picks, recent, mask, ret, have, end; };

struct host_lay cuda_host_lay(const struct model_shape *s, const struct ops_opts *o);
size_t cuda_kv_bytes(const struct ops_opts *o);
int cuda_takes(const struct model *m, char *ret_slow, size_t n, struct hearth_err *err);
int cuda_plan(const struct model_shape *s, const struct ops_opts *o, struct ops_need *ret, struct hearth_err *err);

/* -- ops_cuda_step.c ----------------------------------------------------------------- */

int cuda_fail(struct hearth_err *err, int rc);   /* the sentence of a failed launch or call */
bool cuda_is_gemv(const struct hk_mat *w);
bool cuda_is_k46(const struct hk_mat *w);
/* The whole step but the head, of n (padded) rows. */
int cuda_run_layers(struct cuda_ctx *c, uint32_t n, bool look);
/* The head over rows step.out of x, n of them. */
int cuda_run_head(struct cuda_ctx *c, uint32_t n);
int cuda_forward(struct ops_ctx *base, const struct batch *b, struct hearth_err *err);
int cuda_logits(struct ops_ctx *base, uint32_t i, float **ret, struct hearth_err *err);
int cuda_pick(struct ops_ctx *base, const struct ops_pick *p, uint32_t n, int32_t *ret_token, struct hearth_err *err);

/* -- ops_cuda_warm.c ------------------------------------------------------------------- */

/* Loads every kernel that a step can need and makes the graphs; no page changes. */
int cuda_warm(struct cuda_ctx *c);

#endif
