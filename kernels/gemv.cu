/* SPDX-License-Identifier: MIT */
/*
 * Decode: y[n, rows] = W[rows, cols] rmsnorm(x[n, cols]), n = 1 .. 4.
 *
 * Bytes moved: W once. A block first asks for its warps' first weights, then
 * (weights do not depend on the kernel before) waits for x, normalises it and
 * quantises it to int8 in shared memory, every block for itself: cheaper than
 * one more kernel between two. The units (tile.h) of a block's tiles form one
 * list that its eight warps share out evenly; a tile that falls to several
 * warps is summed at the end, in warp order, so the result does not depend on
 * timing.
 */
#include "kernels/gemv.cuh"

static bool gv_type(int t)
{
	return t == T_Q4_0 || t == T_Q4_1 || t == T_Q5_0 || t == T_Q5_1 || t == T_Q8_0 ||
	       t == T_Q4_K || t == T_Q5_K || t == T_Q6_K;
}

uint32_t hk_gemv_blocks = 2;

extern "C" int hk_gemv(void *st, const struct hk_dev_info *d, const struct hk_gemv *a)
{
	struct gv_args k = {};
	u32 n = a->n <= 1 ? 1 : a->n <= 2 ? 2 : 4, units = tile_units(a->cols);
	size_t smem = (size_t)n * units * 384 + (WARPS * 2 * 2 * 16 * n + 32 * n) * 4;
	u32 grid = 0, want = (u32)d->sms * hk_gemv_blocks, set = 0;
	u32 nseg = a->mode == HK_SWIGLU ? 1 : a->nseg;
	size_t bytes = 0;

	if (!a->n)
		return 0;
	if (a->n > HK_GEMV_MAX || !a->cols || a->cols % 64 || a->ldx % 4 || a->nseg > 3 || !a->nseg ||
	    (uintptr_t)a->x % 16 || (uintptr_t)a->q8 % 16 || (uintptr_t)a->q8_out % 16 ||
	    (!a->x && !a->q8) || (a->q8_out && a->mode != HK_SWIGLU) || (uintptr_t)a->norm % 16 || smem > HK_SMEM_MAX ||
	    (a->mode == HK_SWIGLU && (a->nseg != 2 || a->seg[0].w.rows != a->seg[1].w.rows ||
				      a->seg[0].w.type != a->seg[1].w.type)))
		return -EINVAL;
	for (u32 i = 0; i < a->nseg; i++) {
		const struct hk_mat *w = &a->seg[i].w;

		if (!w->packed || !gv_type(w->type) || w->cols != a->cols || (uintptr_t)w->w % 16)
			return -EINVAL;
		if (w->type != T_Q4_K && w->type != T_Q6_K)
			set = 1;
		bytes += w->rows * w->row_bytes;
	}
	for (u32 i = 0; i < nseg; i++) {
		const struct hk_seg *s = &a->seg[i];
		struct gv_seg *o = &k.seg[i];
		u32 tiles = s->w.rows / TILE_ROWS, c;

		o->w = (const u8 *)s->w.w;
		o->w2 = a->mode == HK_SWIGLU ? (const u8 *)a->seg[1].w.w : o->w;
		o->bias = s->bias;
		o->y = s->y;
		o->ldy = s->ldy;
		o->type = s->w.type;
		o->tiles = tiles;
		o->cta0 = grid;
		c = nseg == 1 ? want : (u32)(want * (s->w.rows * s->w.row_bytes) / bytes);
		c = c < 1 ? 1 : c > tiles ? tiles : c;
		o->ctas = c;
		grid += c;
	}
	if (!grid)
		return 0;
	k.nseg = nseg;
	k.n = a->n;
	k.cols = a->cols;
	k.ldx = a->ldx;
	k.x = a->x;
	k.norm = a->norm;
	k.row = a->row;
	k.q8 = (const u8 *)a->q8;
	k.q8_out = (u8 *)a->q8_out;
	k.eps = a->eps;
	k.mode = a->mode;
	if (!set)
		return gv_main(st, n, grid, smem, k);
	return n == 1 ? gv_other1(st, grid, smem, k) : n == 2 ? gv_other2(st, grid, smem, k) : gv_other4(st, grid, smem, k);
}
