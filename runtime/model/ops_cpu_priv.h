/* SPDX-License-Identifier: MIT */
/* Inside of the CPU backend: an open one, and what its files do for its table. */
#ifndef HEARTH_MODEL_OPS_CPU_PRIV_H
#define HEARTH_MODEL_OPS_CPU_PRIV_H

#include <stdatomic.h>

#include "base/thread.h"
#include "model/cpu.h"
#include "model/ops.h"

struct member_buf {
	uint8_t *act;      /* one quantised row */
	float *row;        /* [widest] a normalised row */
	float *wrow;       /* [widest] a weight row as floats */
	uint8_t *raw;      /* [widest * 4] a weight row as in the file */
	float *attend;     /* cpu_attend.tmp */
};

struct cpu_ctx {
	struct ops_ctx base;
	const struct cpu_kern *k;
	struct ops_opts o;
	struct team *team;
	uint8_t *kv_base;
	size_t page_bytes;
	uint32_t widest;         /* most columns of a weight */
	struct ops_bufs bufs;
	uint8_t *act;            /* tiles of quantised rows, [max_batch] */
	float *fact;             /* tiles of float rows, [max_batch] */
	float *cs, *sn;          /* [max_batch, head_dim/2] rotation of each row */
	double *freq;            /* [head_dim/2] */
	float *logits;           /* [max_out, vocab] */
	struct member_buf mb[TEAM_MAX];
	atomic_bool interrupt;
	struct work work, work2;
};

static inline struct cpu_ctx *cpu_ctx_of(struct ops_ctx *c)
{
	return (struct cpu_ctx *)c;
}

/* ops_cpu_matmul.c */
void cpu_norm_matmul(struct ops_ctx *base, uint32_t n, const float *x, const float *norm,
		     uint32_t nw, const struct mat *const w[], const float *const bias[],
		     float *const y[]);
void cpu_matmul_add(struct ops_ctx *base, uint32_t n, const float *h, const struct mat *w, float *x);
void cpu_norm_swiglu(struct ops_ctx *base, uint32_t n, const float *x, const float *norm,
		     const struct mat *gate, const struct mat *up, float *h);

/* ops_cpu_rows.c */
void cpu_embed(struct ops_ctx *base, const struct batch *b, float *x);
void cpu_rope_append(struct ops_ctx *base, const struct batch *b, uint32_t layer, float *q,
		     float *k, const float *v, const float *q_norm, const float *k_norm);
void cpu_attend(struct ops_ctx *base, const struct batch *b, uint32_t layer, const float *q,
		float *out);

#endif
