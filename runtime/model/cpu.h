/* SPDX-License-Identifier: MIT */
/*
 * What ops_cpu*.c ask of an instruction set, and the two layouts they share.
 *
 * Weights: rows are packed by 16 into panels. A panel is, for each block of
 * the quantisation type along the row, the 16 rows' blocks taken apart and
 * laid side by side: first scales ([16] each), then quants such that one
 * 64-byte vector holds 4 consecutive weights of each of 16 rows, which is what
 * one int8 dot instruction eats. A panel has exactly the bytes of its 16 rows,
 * so packing is done in place. Rows beyond the last multiple of 16 stay as
 * they are in the file.
 *
 *   Q4_K  d[16] dmin[16] s0[4][16] s1[4][16] s2[4][16]  q[4 pairs][8][16][4]
 *         low nibble: sub-block 2p, high: 2p+1
 *   Q5_K  the same head, qh[8][16][4] (bit j: sub-block j), then q
 *   Q6_K  d[16] scale[16 groups][16] qh[2][8][16][4] ql[2][2][8][16][4]
 *   Q8_0  d[16] q[8][16][4], each byte ^ 0x80
 *   Q4_0  d[16] q[4][16][4]          low: weights 0..15, high: 16..31
 *   Q4_1  d[16] m[16] q[4][16][4]
 *   Q5_0  d[16] h[16][4] q[4][16][4] bit i of h byte t: weight 4i+t;
 *   Q5_1  d[16] m[16] h q            bit 4+i: weight 16+4i+t
 *   F32, F16, BF16   [cols][16]
 *
 * Activations: quantised to int8 by 32 with a float scale, in tiles of M rows
 * (M a power of two up to the kernel's tile). A tile is, for each 32 channels,
 * q[8][M][4] int8, then float d[M], float s[M] = d * sum(q), int32 n32[M] =
 * -128 sum(q), int32 n16[2][M] = -32 sum of each half. Float weights take tiles
 * of floats, x[cols][M].
 */
#ifndef HEARTH_MODEL_CPU_H
#define HEARTH_MODEL_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/kv.h"
#include "gguf/quant.h"
#include "model/model.h"

#define CPU_ROWS 16u           /* rows of a panel */
#define CPU_TILE_MAX 16u
#define CPU_ACT_BYTES 52u      /* a tile's bytes per row and 32 channels */

/* One panel times one tile: out[M][16]. @cols weights per row. */
typedef void (*cpu_gemm_fn)(const void *panel, uint32_t cols, const void *tile, uint32_t m,
			    float *out);

/*
 * Attention of @rows query rows (a multiple of nothing) of one KV head: the
 * rows of its @group query heads. See cpu_attend.h.
 */
struct cpu_attend {
	const struct kv_cfg *kv;
	const uint8_t *kv_base;
	const uint32_t *page;
	size_t page_bytes;
	size_t k_off, v_off;      /* of this layer and KV head in a page */
	uint32_t group;           /* query heads of this KV head */
	uint32_t rows;            /* token rows */
	uint32_t pos0;            /* position of the first */
	const float *q;           /* row r, head g at q + r*q_stride + g*head_dim */
	float *out;               /* the same way */
	size_t q_stride;
	float *tmp;               /* cpu_attend_tmp() bytes, 64-aligned, per thread */
};

struct cpu_kern {
	const char *name;
	uint32_t tile;            /* rows of a full activation tile */
	/* Indexed by quant_id; NULL: no fast kernel, row by row in float instead. */
	cpu_gemm_fn gemm[QUANT_IDS];
	/* One row of @cols floats into slot @m of a tile of @tile_m rows. */
	void (*quantise)(const float *x, uint32_t cols, void *tile, uint32_t tile_m, uint32_t m);
	void (*rmsnorm)(const float *x, const float *w, uint32_t n, float eps, float *out);
	float (*dot)(const float *a, const float *b, uint32_t n);
	/* h = silu(h) * up, over n */
	void (*swiglu)(float *h, const float *up, uint32_t n);
	/* NEOX rotation of one head by cos/sin [head_dim/2] */
	void (*rotate)(float *x, const float *cs, const float *sn, uint32_t head_dim);
	/* One K or V head row into row @slot of its place in a page. */
	void (*kv_store)(const struct kv_cfg *kv, uint8_t *head, uint32_t slot, const float *x);
	void (*attend)(const struct cpu_attend *a);
};

/* Bytes of struct cpu_attend.tmp. */
size_t cpu_attend_tmp(const struct kv_cfg *kv, uint32_t group);
#define CPU_ATTEND_ROWS 64u    /* token rows that one attend() call is given, at most */

extern const struct cpu_kern cpu_plain;   /* any machine */
#if defined(__x86_64__)
extern const struct cpu_kern cpu_avx2;
extern const struct cpu_kern cpu_avx512;  /* with VNNI */
#endif
#if defined(__aarch64__)
extern const struct cpu_kern cpu_neon;    /* with dot product */
#endif

/* Packing (cpu_pack.c). */
bool cpu_pack_type(int type);             /* panels exist for it */
void cpu_pack_panel(int type, uint32_t cols, size_t row_bytes, uint8_t *rows16, uint8_t *tmp);
/* Row @lane of a panel to float. @tmp: row_bytes. */
void cpu_unpack_row(int type, uint32_t cols, const uint8_t *panel,
		    uint32_t lane, uint8_t *tmp, float *out);

static inline uint32_t cpu_packed_rows(const struct mat *w)
{
	return w->layout ? w->rows / CPU_ROWS * CPU_ROWS : 0;
}

#endif
