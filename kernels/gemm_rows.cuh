/* SPDX-License-Identifier: MIT */
/*
 * A warp's weights of half a unit (one block column, 128 of k) of TM tiles of Q4_K or
 * Q6_K, from memory through shared memory to A operands. For gemm_free.cuh and
 * gemm_wide.cuh.
 *
 * Nibbles become halves by one mask each: what lies in the low bits of a half
 * is a subnormal, q * 2^-24 (or 2^-20 for the upper nibble), and one multiply-add
 * with the block's scale times 2^24 makes the weight of it. So that such a scale fits
 * into a half, weights are divided by a power of two, the largest of a lane's
 * rows so far; when it grows, the sums are brought down to it. The largest weights are
 * 2^-5 then and a half's last step is 2^-24: a row whose scales are 2^-k of the largest
 * in its lane (two rows of each of TM tiles) has 19-k bits for its own largest weight.
 */
#ifndef HEARTH_KERNELS_GEMM_ROWS_CUH
#define HEARTH_KERNELS_GEMM_ROWS_CUH

template <int T, int TM> struct Rows;

/* Exponent field of the largest of two scales and of those so far. */
CUDA_D u32 rw_top(u32 top, u32 e)
{
	top = (top >> 16 > (top & 0xffff) ? top >> 16 : top & 0xffff) >> 10;
	return top > e ? top : e;
}

template <int TM> struct Rows<T_Q4_K, TM> {
	enum { STAGE = 1280 };   /* bytes of a tile: nibbles, 1024 scales of the whole unit */
	uint4 q[TM][2];
	u32 s[TM][2], s4[TM][2];   /* scale and -min; scale / 16 and -min */

	/* @unit: the tile's; by all lanes */
	static __device__ __forceinline__ void fetch(u8 *to, const u8 *unit, u32 lane, u32 b)
	{
		const u8 *const w = unit + b * 512 + lane * 16;

		cp_async16(to + lane * 16, w);
		cp_async16(to + lane * 16 + 512, w + 1024);
	}
	/* by 16 lanes */
	static __device__ __forceinline__ void fetch_scales(u8 *to, const u8 *unit, u32 l16)
	{
		cp_async16(to + 1024 + l16 * 16, unit + 2048 + l16 * 16);
	}
	/* e: exponent field of the largest scale so far; returns it */
	__device__ __forceinline__ u32 load(const u8 *p, u32 lane, u32 b, u32 e)
	{
		u32 v[TM][2], top = 0;

#pragma unroll
		for (int m = 0; m < TM; m++) {
			const u8 *const tp = p + m * STAGE, *const sp = tp + 1024;
			const uint2 d = *(const uint2 *)(sp + lane / 4 * 8);
			const u32 x = *(const u32 *)(sp + 64 + lane * 4), y = *(const unsigned short *)(sp + 192 + lane * 2);

			q[m][0] = *(const uint4 *)(tp + lane * 16);
			q[m][1] = *(const uint4 *)(tp + 512 + lane * 16);
			s[m][0] = d.x;
			s[m][1] = d.y;
			v[m][0] = x >> (6 * b);
			v[m][1] = (x >> 24 | y << 8) >> (6 * b);
			top = h2_max(top, h2_max(d.x & 0x7fff7fffu, d.y & 0x7fff7fffu));
		}
		e = rw_top(top, e);
		/* 2^(19-e), 2^(-5-e) as halves */
		const u32 hi = e <= 9 ? (10 - e) << 10 : e <= 19 ? 1u << (19 - e) : 0x7c00u, pw = (34 - e) << 10 | hi << 16;

#pragma unroll
		for (int m = 0; m < TM; m++)
#pragma unroll
			for (int r = 0; r < 2; r++) {
				/* 64 + sc / 16, 64 + m / 16; to 32 sc, -32 m */
				u32 x = (v[m][r] & 0x3f) | 0x54005400u;

				x |= v[m][r] << 4 & 0x3f0000u;
				x = h2_fma(x, 0xe0006000u, 0x7800f800u);
				s[m][r] = h2_mul(h2_mul(x, s[m][r]), pw);
				s4[m][r] = h2_mul(s[m][r], 0x3c002c00u);   /* 1/16, 1 */
			}
		return e;
	}
	/* A operands of two steps of 16: quarter @c of tile @m's half unit */
	__device__ __forceinline__ void a(int c, int m, u32 a0[4], u32 a1[4]) const
	{
#pragma unroll
		for (int r = 0; r < 2; r++) {
			const u32 v = pick4(q[m][r], c), w = v >> 8;

			a0[r] = h2_line(v & 0x000f000fu, s[m][r]);
			a1[r] = h2_line(v & 0x00f000f0u, s4[m][r]);
			a0[2 + r] = h2_line(w & 0x000f000fu, s[m][r]);
			a1[2 + r] = h2_line(w & 0x00f000f0u, s4[m][r]);
		}
	}
	/* what the sums are to be multiplied with at the end */
	static __device__ __forceinline__ float unit(u32 e) { return __uint_as_float((127 + e) << 23); }
};

template <int TM> struct Rows<T_Q6_K, TM> {
	enum { STAGE = 1824 };   /* nibbles, 1024 upper bits, 1536 scales and 1792 factors of the whole unit */
	uint4 q[TM][2];
	uint2 h[TM][2];
	u32 s[TM][2], s4[TM][2];   /* scale and its -2^-19, of each half of the block */

	static __device__ __forceinline__ void fetch(u8 *to, const u8 *unit, u32 lane, u32 b)
	{
		const u8 *const w = unit + b * 512 + lane * 16, *const x = unit + 2048 + b * 8 + lane * 16;

		cp_async16(to + lane * 16, w);
		cp_async16(to + lane * 16 + 512, w + 1024);
		cp_async8(to + 1024 + lane * 8, x);
		cp_async8(to + 1280 + lane * 8, x + 512);
	}
	static __device__ __forceinline__ void fetch_scales(u8 *to, const u8 *unit, u32 l16)
	{
		cp_async16(to + 1536 + l16 * 16, unit + 3072 + l16 * 16);
		if (l16 < 2)
			cp_async16(to + 1792 + l16 * 16, unit + 3328 + l16 * 16);
	}
	__device__ __forceinline__ u32 load(const u8 *p, u32 lane, u32 b, u32 e)
	{
		u32 d[TM], top = 0;
		uint2 sc[TM];

#pragma unroll
		for (int m = 0; m < TM; m++) {
			const u8 *const tp = p + m * STAGE;

#pragma unroll
			for (int r = 0; r < 2; r++) {
				q[m][r] = *(const uint4 *)(tp + r * 512 + lane * 16);
				h[m][r] = *(const uint2 *)(tp + 1024 + r * 256 + lane * 8);
			}
			sc[m] = *(const uint2 *)(tp + 1536 + lane * 8);
			d[m] = *(const u32 *)(tp + 1792 + lane / 4 * 4);
			top = h2_max(top, d[m] & 0x7fff7fffu);
		}
		e = rw_top(top, e);
		/* 2^(18-e) as halves, twice */
		const u32 pw = ((33 - e) << 10) * 0x10001u, sel = b ? 0x4342 : 0x4140;

#pragma unroll
		for (int m = 0; m < TM; m++)
#pragma unroll
			for (int r = 0; r < 2; r++) {
				/* 1152 + sc of both halves of the block; to 32 sc */
				u32 x = prmt((r ? sc[m].y : sc[m].x) ^ 0x80808080u, 0x64646464u, sel);

				x = h2_mul(h2_add(x, 0xe480e480u), 0x50005000u);
				x = h2_mul(h2_mul(x, prmt(d[m], d[m], r ? 0x3232 : 0x1010)), pw);
				s[m][r] = h2_mul(prmt(x, x, 0x1010), 0x80203c00u);    /* 1, -2^-19 */
				s4[m][r] = h2_mul(prmt(x, x, 0x3232), 0x80202c00u);   /* 1/16, -2^-19 */
			}
		return e;
	}
	__device__ __forceinline__ void a(int c, int m, u32 a0[4], u32 a1[4]) const
	{
#pragma unroll
		for (int r = 0; r < 2; r++) {
			const u32 v = pick4(q[m][r], c), w = v >> 8, x = h[m][r].x, y = h[m][r].y;
			/* two bits of weights 4c+i (16+4c+i) at 8i+2c: to bits 4 (8) of each half */
			const u32 x0 = c < 2 ? x << (4 - 2 * c) : x >> (2 * c - 4), x1 = x >> (4 + 2 * c);
			const u32 y0 = y << (8 - 2 * c), y1 = y >> (2 * c);

			a0[r] = h2_line((v & 0x000f000fu) | ((x0 & 0x00300030u) ^ 0x00200020u), s[m][r]);
			a0[2 + r] = h2_line((w & 0x000f000fu) | ((x1 & 0x00300030u) ^ 0x00200020u), s[m][r]);
			a1[r] = h2_line((v & 0x00f000f0u) | ((y0 & 0x03000300u) ^ 0x02000200u), s4[m][r]);
			a1[2 + r] = h2_line((w & 0x00f000f0u) | ((y1 & 0x03000300u) ^ 0x02000200u), s4[m][r]);
		}
	}
	static __device__ __forceinline__ float unit(u32 e) { return __uint_as_float((128 + e) << 23); }
};

/* The sums of a lane, after its exponent has grown from @was to @e. */
template <int N>
CUDA_D void rw_shrink(float *acc, u32 was, u32 e)
{
	const float f = __uint_as_float((127 + was - e) << 23);

#pragma unroll
	for (int i = 0; i < N; i++)
		acc[i] *= f;
}

#endif
