/* SPDX-License-Identifier: MIT */
/*
 * Readers of packed weights (tile.h), one per type. A reader gives, for its
 * lane of a unit:
 *
 *   Q   the bits of block column b, both row halves; load_q()
 *   S   the scales of the unit, both row halves, both blocks; load_s()
 *   word(q, r, j)      weights 4j..4j+3 of the block as four int8
 *   scale(s, r, b, h)  s and m in weight = s * int8 + m, for half h of the
 *                      block (only Q6_K differs between the halves)
 *
 * ULO says that the int8 is never negative, MIN that m is not zero.
 */
#ifndef HEARTH_KERNELS_QUANT_CUH
#define HEARTH_KERNELS_QUANT_CUH

#include "kernels/ptx.cuh"
#include "kernels/tile.h"

enum {   /* gguf/quant.h */
	T_F16 = 1, T_Q4_0 = 2, T_Q4_1 = 3, T_Q5_0 = 6, T_Q5_1 = 7, T_Q8_0 = 8,
	T_Q4_K = 12, T_Q5_K = 13, T_Q6_K = 14
};

/* Bytes of 256 weights of one row. */
template <int T> struct Bytes;
template <> struct Bytes<T_F16> { enum { V = 512 }; };
template <> struct Bytes<T_Q4_0> { enum { V = 144 }; };
template <> struct Bytes<T_Q4_1> { enum { V = 160 }; };
template <> struct Bytes<T_Q5_0> { enum { V = 176 }; };
template <> struct Bytes<T_Q5_1> { enum { V = 192 }; };
template <> struct Bytes<T_Q8_0> { enum { V = 272 }; };
template <> struct Bytes<T_Q4_K> { enum { V = 144 }; };
template <> struct Bytes<T_Q5_K> { enum { V = 176 }; };
template <> struct Bytes<T_Q6_K> { enum { V = 210 }; };

/* From memory, or (SH) from shared memory, where a copy of a unit lies. */
template <bool SH> CUDA_D uint4 ld_w16(const void *p) { return SH ? *(const uint4 *)p : ld_stream16(p); }
template <bool SH> CUDA_D uint2 ld_w8(const void *p) { return SH ? *(const uint2 *)p : ld_stream8(p); }
template <bool SH> CUDA_D u32 ld_w4(const void *p) { return SH ? *(const u32 *)p : ld_stream4(p); }
template <bool SH> CUDA_D u32 ld_w2(const void *p) { return SH ? *(const unsigned short *)p : ld_stream2(p); }

struct q_nib { uint4 v[2]; };
struct q_fif { uint4 v[2]; u32 h[2]; };
struct q_six { uint4 v[2]; uint2 h[2]; };
struct q_byte { uint4 v[4]; };
struct q_half { uint4 v[8]; };

CUDA_D u32 pick4(const uint4 &v, int j)
{
	return j == 0 ? v.x : j == 1 ? v.y : j == 2 ? v.z : v.w;
}

template <int T> struct Tile;

/* -- nibbles with one scale (and min) per block ----------------------------- */
template <> struct Tile<T_Q4_0> {
	enum { ULO = 0, MIN = 0, HALVES = 1 };
	typedef q_nib Q;
	struct S { uint2 d; };
	static __device__ __forceinline__ void zero(Q &q, S &s) { q.v[0] = q.v[1] = make_uint4(0, 0, 0, 0); s.d = make_uint2(0, 0); }
	template <bool SH = false> static __device__ __forceinline__ void load_q(Q &q, const u8 *p, int idx, int nt, int b)
	{
		q.v[0] = ld_w16<SH>(p + (b * nt * 8 + idx) * 16);
		q.v[1] = ld_w16<SH>(p + ((b + 2) * nt * 8 + idx) * 16);
	}
	template <bool SH = false> static __device__ __forceinline__ void load_s(S &s, const u8 *p, int g, int idx, int nt)
	{
		s.d = ld_w8<SH>(p + nt * 512 + idx * 8);
	}
	static __device__ __forceinline__ u32 word(const Q &q, int r, int j)
	{
		u32 v = pick4(q.v[r], j & 3);

		return (j < 4 ? v << 4 : v) & 0xf0f0f0f0u;
	}
	static __device__ __forceinline__ void scale(const S &s, int r, int b, int h, float &sc, float &m)
	{
		sc = h2f((r ? s.d.y : s.d.x) >> (16 * b)) * 0.0625f;
		m = 0;
	}
};
template <> struct Tile<T_Q4_1> {
	enum { ULO = 1, MIN = 1, HALVES = 1 };
	typedef q_nib Q;
	struct S { uint4 d; };
	static __device__ __forceinline__ void zero(Q &q, S &s) { q.v[0] = q.v[1] = s.d = make_uint4(0, 0, 0, 0); }
	template <bool SH = false> static __device__ __forceinline__ void load_q(Q &q, const u8 *p, int idx, int nt, int b)
	{
		q.v[0] = ld_w16<SH>(p + (b * nt * 8 + idx) * 16);
		q.v[1] = ld_w16<SH>(p + ((b + 2) * nt * 8 + idx) * 16);
	}
	template <bool SH = false> static __device__ __forceinline__ void load_s(S &s, const u8 *p, int g, int idx, int nt)
	{
		s.d = ld_w16<SH>(p + nt * 512 + idx * 16);
	}
	static __device__ __forceinline__ u32 word(const Q &q, int r, int j)
	{
		u32 v = pick4(q.v[r], j & 3);

		return (j < 4 ? v : v >> 4) & 0x0f0f0f0fu;
	}
	static __device__ __forceinline__ void scale(const S &s, int r, int b, int h, float &sc, float &m)
	{
		u32 v = pick4(s.d, r * 2 + b);

		sc = h2f(v);
		m = h2f(v >> 16);
	}
};
template <> struct Tile<T_Q5_0> {
	enum { ULO = 0, MIN = 0, HALVES = 1 };
	typedef q_fif Q;
	struct S { uint2 d; };
	static __device__ __forceinline__ void zero(Q &q, S &s)
	{
		q.v[0] = q.v[1] = make_uint4(0, 0, 0, 0);
		q.h[0] = q.h[1] = 0;
		s.d = make_uint2(0, 0);
	}
	template <bool SH = false> static __device__ __forceinline__ void load_q(Q &q, const u8 *p, int idx, int nt, int b)
	{
		q.v[0] = ld_w16<SH>(p + (b * nt * 8 + idx) * 16);
		q.v[1] = ld_w16<SH>(p + ((b + 2) * nt * 8 + idx) * 16);
		q.h[0] = ld_w4<SH>(p + nt * 512 + idx * 16 + b * 4);
		q.h[1] = ld_w4<SH>(p + nt * 512 + idx * 16 + b * 4 + 8);
	}
	template <bool SH = false> static __device__ __forceinline__ void load_s(S &s, const u8 *p, int g, int idx, int nt)
	{
		s.d = ld_w8<SH>(p + nt * 640 + idx * 8);
	}
	static __device__ __forceinline__ u32 word(const Q &q, int r, int j)
	{
		u32 v = pick4(q.v[r], j & 3);

		v = (j < 4 ? v << 3 : v >> 1) & 0x78787878u;
		return v | ((q.h[r] << (7 - j)) & 0x80808080u);
	}
	static __device__ __forceinline__ void scale(const S &s, int r, int b, int h, float &sc, float &m)
	{
		sc = h2f((r ? s.d.y : s.d.x) >> (16 * b)) * 0.125f;
		m = 0;
	}
};
template <> struct Tile<T_Q5_1> {
	enum { ULO = 1, MIN = 1, HALVES = 1 };
	typedef q_fif Q;
	struct S { uint4 d; };
	static __device__ __forceinline__ void zero(Q &q, S &s)
	{
		q.v[0] = q.v[1] = s.d = make_uint4(0, 0, 0, 0);
		q.h[0] = q.h[1] = 0;
	}
	template <bool SH = false> static __device__ __forceinline__ void load_q(Q &q, const u8 *p, int idx, int nt, int b)
	{
		Tile<T_Q5_0>::template load_q<SH>(q, p, idx, nt, b);
	}
	template <bool SH = false> static __device__ __forceinline__ void load_s(S &s, const u8 *p, int g, int idx, int nt)
	{
		s.d = ld_w16<SH>(p + nt * 640 + idx * 16);
	}
	static __device__ __forceinline__ u32 word(const Q &q, int r, int j)
	{
		u32 v = pick4(q.v[r], j & 3);

		v = (j < 4 ? v : v >> 4) & 0x0f0f0f0fu;
		return v | ((j < 4 ? q.h[r] << (4 - j) : q.h[r] >> (j - 4)) & 0x10101010u);
	}
	static __device__ __forceinline__ void scale(const S &s, int r, int b, int h, float &sc, float &m)
	{
		u32 v = pick4(s.d, r * 2 + b);

		sc = h2f(v);
		m = h2f(v >> 16);
	}
};

/* -- bytes -------------------------------------------------------------------- */
template <> struct Tile<T_Q8_0> {
	enum { ULO = 0, MIN = 0, HALVES = 1 };
	typedef q_byte Q;
	struct S { uint2 d; };
	static __device__ __forceinline__ void zero(Q &q, S &s)
	{
		q.v[0] = q.v[1] = q.v[2] = q.v[3] = make_uint4(0, 0, 0, 0);
		s.d = make_uint2(0, 0);
	}
	template <bool SH = false> static __device__ __forceinline__ void load_q(Q &q, const u8 *p, int idx, int nt, int b)
	{
#pragma unroll
		for (int c = 0; c < 4; c++)
			q.v[c] = ld_w16<SH>(p + (((c / 2) * 4 + b * 2 + c % 2) * nt * 8 + idx) * 16);
	}
	template <bool SH = false> static __device__ __forceinline__ void load_s(S &s, const u8 *p, int g, int idx, int nt)
	{
		s.d = ld_w8<SH>(p + nt * 1024 + idx * 8);
	}
	static __device__ __forceinline__ u32 word(const Q &q, int r, int j) { return pick4(q.v[r * 2 + j / 4], j & 3); }
	static __device__ __forceinline__ void scale(const S &s, int r, int b, int h, float &sc, float &m)
	{
		sc = h2f((r ? s.d.y : s.d.x) >> (16 * b));
		m = 0;
	}
};

/* -- K types: units are always whole (nt = 4) ------------------------------------ */
struct s_k4 { uint2 dd; u32 lo, hi; };   /* lo: 24 bits of row g, hi: of row g+8 */

template <bool SH> CUDA_D void k4_load(s_k4 &s, const u8 *p, int g, int idx)
{
	u32 a, b;

	s.dd = ld_w8<SH>(p + g * 8);
	a = ld_w4<SH>(p + 64 + idx * 4);
	b = ld_w2<SH>(p + 192 + idx * 2);
	s.lo = a;
	s.hi = a >> 24 | b << 8;
}
CUDA_D void k4_scale(const s_k4 &s, int r, int b, float &sc, float &m)
{
	u32 dd = r ? s.dd.y : s.dd.x, v = r ? s.hi : s.lo;

	sc = h2f(dd) * (float)(v >> (6 * b) & 63);
	m = -h2f(dd >> 16) * (float)(v >> (12 + 6 * b) & 63);
}

template <> struct Tile<T_Q4_K> {
	enum { ULO = 1, MIN = 1, HALVES = 1 };
	typedef q_nib Q;
	typedef s_k4 S;
	static __device__ __forceinline__ void zero(Q &q, S &s)
	{
		q.v[0] = q.v[1] = make_uint4(0, 0, 0, 0);
		s.dd = make_uint2(0, 0);
		s.lo = s.hi = 0;
	}
	template <bool SH = false> static __device__ __forceinline__ void load_q(Q &q, const u8 *p, int idx, int nt, int b)
	{
		q.v[0] = ld_w16<SH>(p + b * 512 + idx * 16);
		q.v[1] = ld_w16<SH>(p + b * 512 + 1024 + idx * 16);
	}
	template <bool SH = false> static __device__ __forceinline__ void load_s(S &s, const u8 *p, int g, int idx, int nt) { k4_load<SH>(s, p + 2048, g, idx); }
	static __device__ __forceinline__ u32 word(const Q &q, int r, int j)
	{
		u32 v = pick4(q.v[r], j & 3);

		return (j < 4 ? v : v >> 4) & 0x0f0f0f0fu;
	}
	static __device__ __forceinline__ void scale(const S &s, int r, int b, int h, float &sc, float &m) { k4_scale(s, r, b, sc, m); }
};
template <> struct Tile<T_Q5_K> {
	enum { ULO = 1, MIN = 1, HALVES = 1 };
	typedef q_fif Q;
	typedef s_k4 S;
	static __device__ __forceinline__ void zero(Q &q, S &s)
	{
		q.v[0] = q.v[1] = make_uint4(0, 0, 0, 0);
		q.h[0] = q.h[1] = 0;
		s.dd = make_uint2(0, 0);
		s.lo = s.hi = 0;
	}
	template <bool SH = false> static __device__ __forceinline__ void load_q(Q &q, const u8 *p, int idx, int nt, int b) { Tile<T_Q5_0>::template load_q<SH>(q, p, idx, 4, b); }
	template <bool SH = false> static __device__ __forceinline__ void load_s(S &s, const u8 *p, int g, int idx, int nt) { k4_load<SH>(s, p + 2560, g, idx); }
	static __device__ __forceinline__ u32 word(const Q &q, int r, int j) { return Tile<T_Q5_1>::word(q, r, j); }
	static __device__ __forceinline__ void scale(const S &s, int r, int b, int h, float &sc, float &m) { k4_scale(s, r, b, sc, m); }
};
template <> struct Tile<T_Q6_K> {
	enum { ULO = 0, MIN = 0, HALVES = 2 };
	typedef q_six Q;
	struct S { uint2 sc; u32 d; };
	static __device__ __forceinline__ void zero(Q &q, S &s)
	{
		q.v[0] = q.v[1] = make_uint4(0, 0, 0, 0);
		q.h[0] = q.h[1] = s.sc = make_uint2(0, 0);
		s.d = 0;
	}
	template <bool SH = false> static __device__ __forceinline__ void load_q(Q &q, const u8 *p, int idx, int nt, int b)
	{
		q.v[0] = ld_w16<SH>(p + b * 512 + idx * 16);
		q.v[1] = ld_w16<SH>(p + b * 512 + 1024 + idx * 16);
		q.h[0] = ld_w8<SH>(p + 2048 + idx * 16 + b * 8);
		q.h[1] = ld_w8<SH>(p + 2560 + idx * 16 + b * 8);
	}
	template <bool SH = false> static __device__ __forceinline__ void load_s(S &s, const u8 *p, int g, int idx, int nt)
	{
		s.sc = ld_w8<SH>(p + 3072 + idx * 8);
		s.d = ld_w4<SH>(p + 3328 + g * 4);
	}
	static __device__ __forceinline__ u32 word(const Q &q, int r, int j)
	{
		u32 v = pick4(q.v[r], j & 3), h = j < 4 ? q.h[r].x : q.h[r].y;

		v = (j < 4 ? v << 2 : v >> 2) & 0x3c3c3c3cu;
		return v | ((h << (6 - 2 * (j & 3))) & 0xc0c0c0c0u);
	}
	static __device__ __forceinline__ int isc(const S &s, int r, int b, int h)
	{
		return (int)(r ? s.sc.y : s.sc.x) << (24 - 16 * b - 8 * h) >> 24;
	}
	static __device__ __forceinline__ void scale(const S &s, int r, int b, int h, float &sc, float &m)
	{
		sc = h2f(s.d >> (16 * r)) * 0.25f * (float)isc(s, r, b, h);
		m = 0;
	}
};

/* -- halves: no dp4a route -------------------------------------------------------- */
template <> struct Tile<T_F16> {
	enum { ULO = 0, MIN = 0, HALVES = 1 };
	typedef q_half Q;
	struct S { u32 none; };
	static __device__ __forceinline__ void zero(Q &q, S &s)
	{
#pragma unroll
		for (int c = 0; c < 8; c++)
			q.v[c] = make_uint4(0, 0, 0, 0);
		s.none = 0;
	}
	template <bool SH = false> static __device__ __forceinline__ void load_q(Q &q, const u8 *p, int idx, int nt, int b)
	{
#pragma unroll
		for (int c = 0; c < 8; c++)
			q.v[c] = ld_w16<SH>(p + (((c / 4) * 8 + b * 4 + c % 4) * nt * 8 + idx) * 16);
	}
	template <bool SH = false> static __device__ __forceinline__ void load_s(S &s, const u8 *p, int g, int idx, int nt) { s.none = 0; }
};

#endif
