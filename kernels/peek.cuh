/* SPDX-License-Identifier: MIT */
/*
 * One weight at a time, from file order or from tiles: for the embedding
 * gather, the rest rows of a matrix, and matrices that tiles do not fit.
 */
#ifndef HEARTH_KERNELS_PEEK_CUH
#define HEARTH_KERNELS_PEEK_CUH

#include "kernels/ptx.cuh"
#include "kernels/kernels.h"
#include "kernels/quant.cuh"

enum { T_F32 = 0, T_BF16 = 30 };

CUDA_D u32 rd2(const u8 *p) { return (u32)p[0] | (u32)p[1] << 8; }
CUDA_D u32 rd4(const u8 *p) { return rd2(p) | rd2(p + 2) << 16; }
CUDA_D float rdh(const u8 *p) { return h2f(rd2(p)); }

CUDA_D u32 peek_block(int type)   /* weights a block */
{
	return type == T_F32 || type == T_F16 || type == T_BF16 ? 1
	     : type == T_Q4_K || type == T_Q5_K || type == T_Q6_K ? 256 : 32;
}

/* Types that the readers below know, in file order and (BF16 has become F16) in tiles; of
 * any other they would make zeros or halves, so launchers refuse it. */
static inline bool peek_can(const struct hk_mat *w)
{
	switch (w->type) {
	case T_F32: case T_BF16:
		return !w->packed;
	case T_F16: case T_Q4_0: case T_Q4_1: case T_Q5_0: case T_Q5_1: case T_Q8_0:
	case T_Q4_K: case T_Q5_K: case T_Q6_K:
		return true;
	default:
		return false;
	}
}

CUDA_D float peek_file(int type, const u8 *row, u32 k)
{
	u32 b = k / 32, i = k % 32, q;
	const u8 *x;

	switch (type) {
	case T_F32: return __uint_as_float(rd4(row + (size_t)k * 4));
	case T_F16: return rdh(row + (size_t)k * 2);
	case T_BF16: return __uint_as_float(rd2(row + (size_t)k * 2) << 16);
	case T_Q4_0: case T_Q4_1:
		x = row + b * (type == T_Q4_0 ? 18 : 20);
		q = x[(type == T_Q4_0 ? 2 : 4) + i % 16];
		q = i < 16 ? q & 15 : q >> 4;
		return type == T_Q4_0 ? rdh(x) * (float)((int)q - 8) : rdh(x) * (float)q + rdh(x + 2);
	case T_Q5_0: case T_Q5_1:
		x = row + b * (type == T_Q5_0 ? 22 : 24);
		q = x[(type == T_Q5_0 ? 6 : 8) + i % 16];
		q = (i < 16 ? q & 15 : q >> 4) | (rd4(x + (type == T_Q5_0 ? 2 : 4)) >> i & 1) << 4;
		return type == T_Q5_0 ? rdh(x) * (float)((int)q - 16) : rdh(x) * (float)q + rdh(x + 2);
	case T_Q8_0:
		x = row + b * 34;
		return rdh(x) * (float)(signed char)x[2 + i];
	case T_Q4_K: case T_Q5_K: {
		u32 j = k % 256 / 32, sc, m;

		x = row + k / 256 * (type == T_Q4_K ? 144 : 176);
		const u8 *s = x + 4;
		if (j < 4) {
			sc = s[j] & 63;
			m = s[j + 4] & 63;
		} else {
			sc = (s[j + 4] & 15u) | (u32)(s[j - 4] >> 6) << 4;
			m = (u32)(s[j + 4] >> 4) | (u32)(s[j] >> 6) << 4;
		}
		q = x[(type == T_Q4_K ? 16 : 48) + j / 2 * 32 + i];
		q = j & 1 ? q >> 4 : q & 15;
		if (type == T_Q5_K)
			q |= (u32)(x[16 + i] >> j & 1) << 4;
		return rdh(x) * (float)sc * (float)q - rdh(x + 2) * (float)m;
	}
	case T_Q6_K: {
		u32 j = k % 256, half = j / 128, c = j % 128 / 32;

		x = row + k / 256 * 210;
		q = x[half * 64 + (c & 1) * 32 + i];
		q = (c >= 2 ? q >> 4 : q & 15) | (u32)(x[128 + half * 32 + i] >> (2 * c) & 3) << 4;
		return rdh(x + 208) * (float)(signed char)x[192 + j / 16] * (float)((int)q - 32);
	}
	default:   /* peek_can() */
		return 0;
	}
}

template <int T>
CUDA_D float peek_lane(const u8 *unit, int g, int t, int nt, int r, u32 k)
{
	typename Tile<T>::Q q;
	typename Tile<T>::S s;
	int b = (int)k / 32, j = (int)k % 32 / 4;
	float sc = 0, m = 0;
	u32 w = 0;

	Tile<T>::load_q(q, unit, g * nt + t, nt, b);
	Tile<T>::load_s(s, unit, g, g * nt + t, nt);
	/* unrolled, so that q is not indexed at run time */
#pragma unroll
	for (int rr = 0; rr < 2; rr++)
#pragma unroll
		for (int jj = 0; jj < 8; jj++)
			if (rr == r && jj == j) {
				w = Tile<T>::word(q, rr, jj);
				Tile<T>::scale(s, rr, b, jj / 4, sc, m);
			}
	return sc * (float)(signed char)(w >> (8 * (k % 4))) + m;
}

/* Weight k of row @row of a packed matrix. */
CUDA_D float peek_tile(int type, const u8 *tile, u32 cols, u32 row, u32 k)
{
	u32 u = k / 256;
	int nt = (int)tile_nt(cols, u), g = (int)(row % 8), r = (int)(row % 16 / 8), t = (int)(k % 256 / 64);
	u32 i = k % 64;

#define PEEK(T) return peek_lane<T>(tile + (size_t)u * TILE_ROWS * Bytes<T>::V, g, t, nt, r, i)
	switch (type) {
	case T_Q4_0: PEEK(T_Q4_0);
	case T_Q4_1: PEEK(T_Q4_1);
	case T_Q5_0: PEEK(T_Q5_0);
	case T_Q5_1: PEEK(T_Q5_1);
	case T_Q8_0: PEEK(T_Q8_0);
	case T_Q4_K: PEEK(T_Q4_K);
	case T_Q5_K: PEEK(T_Q5_K);
	case T_Q6_K: PEEK(T_Q6_K);
	default: {
		const u8 *p = tile + (size_t)u * TILE_ROWS * Bytes<T_F16>::V;

		i = tile_half(i);
		return rdh(p + (((u32)r * 8 + i / 8) * (u32)nt * 8 + (u32)(g * nt + t)) * 16 + i % 8 * 2);
	}
	}
#undef PEEK
}

CUDA_D float peek_mat(const hk_mat &w, u32 row, u32 k)
{
	const u8 *p = (const u8 *)w.w;

	if (!w.packed || row >= w.rows / 16 * 16)
		return peek_file(w.type, p + (size_t)row * w.row_bytes, k);
	return peek_tile(w.type, p + (size_t)(row / 16) * 16 * w.row_bytes, w.cols, row, k);
}

#endif
