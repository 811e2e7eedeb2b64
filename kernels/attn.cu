/* SPDX-License-Identifier: MIT */
/*
 * Causal attention over pages, for decode and prefill alike.
 *
 * The query rows of all heads that share a kv head are packed, 16 to a tile
 * (mma.m16n8k16). A block has one tile, one kv head and one part of the keys;
 * its four warps take chunks of 16 tokens in turn, each with its own running
 * maximum, and are merged at the end; the parts of a tile are merged by the
 * block that comes last, in order.
 *
 * In short steps norm, rotation and append are folded in: a block turns its own
 * queries, and the part with the end of the keys the step's own keys and values,
 * which then are chunks of their own, in shared memory as in a page. Each tile of
 * a sequence does so again; the last one also brings them into their page.
 *
 * int8 keys and values go from their page to registers and become halves
 * there, scaled: bytes moved are those of the pages, once per tile. As in the
 * GEMM, the order of channels inside a product is free: lane t takes channels
 * 16t .. 16t+15 of each 64, so its key bytes are one 16-byte load; lane g takes
 * channels 16g .. of a value row for the same reason.
 */
#include "kernels/launch.cuh"
#include "kernels/q8.cuh"
#include "kernels/rope.cuh"
#include "kernels/tile.h"

struct at_args {
	const hk_tile *tile;
	const u32 *page;
	const unsigned short *q;
	hk_kv kv;
	float *out, *partial;
	u8 *q8;
	unsigned short *act;
	u32 *count;
	u32 heads, layer, tiles, splits, groups, group;
	u32 inv_group;   /* 2^31 / group, rounded up: division of what is below 2^16 */
	/* short steps: what comes before attention, folded in */
	const float *qkv, *q_norm, *k_norm, *cs;
	u32 parts[3], slots;   /* new tokens that shared memory has room for */
	size_t stride;
	float eps, q_scale;
};

/* Four signed bytes times a half pair (s, s): two half pairs. */
CUDA_D void at_unpack(u32 w, u32 s2, u32 &lo, u32 &hi)
{
	w ^= 0x80808080u;
	lo = h2_mul(h2_add(prmt(w, 0x64646464u, 0x4140), 0xe480e480u), s2);
	hi = h2_mul(h2_add(prmt(w, 0x64646464u, 0x4342), 0xe480e480u), s2);
}

/*
 * Where channels d .. d + 3 lie in a row of shared memory when warps are merged: swapped
 * so that neither the lanes that write them (g a row, t and t + 4 a piece of DL channels)
 * nor those that read a row from one end to the other meet in a bank.
 */
template <int DL> CUDA_D u32 at_col(u32 d)
{
	return d ^ d / DL % 8 / (32 / DL) * 4;
}

enum { W = 4 };   /* warps of a block */

/* A score that does not count, and the maximum of none: 2 to the power of the difference is 0. */
#define MASKED -1e30f
#define NO_MAX -1e29f

template <int HD> struct at_cfg {
	enum {
		PC = HD / 64,                 /* key pieces of 64 channels */
		VP = HD > 128 ? 2 : 1,        /* value pieces of 128 channels */
		DL = HD / 8 / VP,             /* channels of a lane in a value piece */
		NT = HD / 8,                  /* output column groups */
		LD = HD + (HD > 64 ? 16 : 8), /* floats of a row in shared memory: see at_col() */
		QS = HD > 128,                /* queries in shared memory: too many registers */
		SMEM = (W * 16 * LD + 2 * W * 16 + 16) * 4 + 16 * (HD + 8) * 2
	};
	/* a new token in shared memory: K or V as in a page, and four bytes of scales for 64 channels */
	static __host__ __device__ constexpr u32 row(bool f16) { return f16 ? HD * 2 + 16 : HD + 16; }
	static __host__ __device__ constexpr u32 slot(bool f16) { return 2 * (row(f16) + (f16 ? 0 : HD / 16)); }
};

/* ROPE: norm, rotation and append folded in. */
template <int HD, bool F16, bool ROPE>
static __global__ void __launch_bounds__(W * 32, HD == 256 || (F16 && HD == 128) ? 2 : 3) attn(const __grid_constant__ at_args a)
{
	typedef at_cfg<HD> C;
	HK_SMEM(smem);
	float *so = (float *)smem;                   /* [W][16][LD] */
	float *sml = so + W * 16 * C::LD;            /* [W][16] max, then [W][16] sum */
	const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
	const u32 kh = blockIdx.x, z = blockIdx.z;

	/* What the step is about was written before its first kernel: no need to
	 * wait for the kernel before to read it. */
	pdl_go();
	const uint4 ta = ((const uint4 *)a.tile)[blockIdx.y * 2], tb = ((const uint4 *)a.tile)[blockIdx.y * 2 + 1];
	const hk_tile tl = { ta.x, ta.y, ta.z, ta.w, { tb.x, tb.y, tb.z, tb.w } };
	if (tl.seq == ~0u || z >= tl.splits) {
		if (!(blockIdx.x | blockIdx.y | blockIdx.z))
			pdl_wait();   /* or this launch could end before the one before it */
		return;
	}
	const hk_seq sq = tl.of;
	const u32 group = a.group;
	auto div_group = [&](u32 m) { return (u32)((uint64_t)m * a.inv_group >> 31); };
	/*
	 * Keys in chunks of 16. With ROPE the step's own are apart, in shared memory, and
	 * belong to the last part: those before it have the older ones alone.
	 */
	const u32 seen = div_group(tl.m0 + tl.m - 1) + 1;   /* tokens of the step that the last row sees */
	const u32 len = ROPE ? sq.pos0 : sq.pos0 + seen;
	const u32 chunks = (len + 15) / 16, most = chunks + (ROPE ? (seen + 15) / 16 : 0);
	const bool last = z + 1 == tl.splits;
	const u32 fresh = ROPE && last ? seen : 0;
	u32 c0 = z * most / tl.splits, c1 = (z + 1) * most / tl.splits;

	if constexpr (ROPE) {
		c0 = c0 < chunks ? c0 : chunks;
		c1 = c1 < chunks && !last ? c1 : chunks;
	}
	const u32 c2 = c1 + (fresh + 15) / 16;   /* c1 .. c2 - 1: in shared memory */
	/* within a page, which is smaller than 4 GiB */
	const u32 koff = (a.layer * 2 * a.kv.kv_heads + kh) * (u32)a.kv.head_bytes;
	const u32 voff = koff + a.kv.kv_heads * (u32)a.kv.head_bytes;
	/* its page's number is asked for before a chunk is: else that would wait for this */
	auto page_of = [&](u32 c) { return c < c1 ? a.page[sq.page0 + c / 2] : 0; };
	const u32 few = tl.m | tl.splits << 5;   /* one register in the loop */
	int pos[2];   /* up to where a row sees, of the sequence or with ROPE of the step */

	/* A chunk's keys and values as they lie in the page. */
	enum { KW = F16 ? 2 : 1, VW = (F16 ? 2 : 1) * C::DL / 4 };
	uint4 kq[2][C::PC][KW];
	u32 ks[2][C::PC];
	u32 vq[C::VP][4][VW];
	u32 vs[C::VP][4];

	unsigned short *const sq16 = (unsigned short *)(sml + 2 * W * 16 + 16);   /* [16][HD + 8] queries */
	u8 *const fk = (u8 *)(sq16 + 16 * (HD + 8));    /* [slots][row] keys, values, their scales */
	u8 *const fv = fk + a.slots * C::row(F16);
	unsigned short *const fks = (unsigned short *)(fv + a.slots * C::row(F16)), *const fvs = fks + a.slots * (HD / 32);

	auto load_k = [&](u32 c, u32 page, int j0, int j1) {
		const bool in_page = !ROPE || c < c1;
		const u8 *base = in_page ? (const u8 *)a.kv.base + page * a.kv.page_bytes + koff : fk;
		const u8 *scales = in_page ? base + 32 * HD : (const u8 *)fks;
		const u32 ld = in_page ? HD * KW : C::row(F16), s0 = in_page ? c % 2 * 16 : (c - c1) * 16;

#pragma unroll
		for (int j = j0; j < j1; j++) {
			const u32 slot = s0 + j * 8 + g;

#pragma unroll
			for (int p = 0; p < C::PC; p++) {
				const u8 *k = base + slot * ld + (p * 64 + t * 16) * KW;

				kq[j][p][0] = *(const uint4 *)k;
				if (F16)
					kq[j][p][KW - 1] = *(const uint4 *)(k + 16);
				else
					ks[j][p] = *(const unsigned short *)(scales +
						(slot * (HD / 32) + p * 2 + t / 2) * 2);
			}
		}
	};
	auto load_v = [&](u32 c, u32 page, int p0, int p1) {
		const bool in_page = !ROPE || c < c1;
		const u8 *base = in_page ? (const u8 *)a.kv.base + page * a.kv.page_bytes + voff : fv;
		const u8 *scales = in_page ? base + 32 * HD : (const u8 *)fvs;
		const u32 ld = in_page ? HD * KW : C::row(F16), s0 = in_page ? c % 2 * 16 : (c - c1) * 16;
		const u32 end = in_page ? len : fresh, in0 = (in_page ? c : c - c1) * 16;

#pragma unroll
		for (int i = 0; i < 4; i++) {
			const u32 in = i / 2 * 8 + t * 2 + i % 2, slot = s0 + in;
			const bool live = in0 + in < end;

#pragma unroll
			for (int p = p0; p < p1; p++) {
				const u8 *v = base + slot * ld + (p * 128 + g * C::DL) * KW;

#pragma unroll
				for (int w = 0; w < VW; w += 2) {
					uint2 x = *(const uint2 *)(v + w * 4);

					/* what was never written must not be NaN */
					vq[p][i][w] = F16 && !live ? 0 : x.x;
					vq[p][i][w + 1] = F16 && !live ? 0 : x.y;
				}
				if (!F16)
					vs[p][i] = live ? *(const unsigned short *)(scales +
						(slot * (HD / 32) + (p * 128 + g * C::DL) / 32) * 2) : 0;
			}
		}
	};

	/* Tokens of earlier steps do not depend on the kernel before either. */
	u32 c = c0 + warp;
	const bool early = !C::QS && c < c1 && (ROPE || c * 16 + 16 <= sq.pos0);

	u32 page = page_of(c), page2 = ROPE ? 0 : page_of(c + W);   /* of this chunk, and of this warp's next */

	if (early) {
		load_k(c, page, 0, 2);
		load_v(c, page, 0, C::VP);
	}

	if constexpr (ROPE) {
		/*
		 * Queries of the tile and the step's keys and values, four heads a warp at
		 * a time (rope.cuh), the next four asked for before these are turned. The
		 * part that has the end of all keys also brings them into their page.
		 */
		enum { V = HD / 32 };
		const u32 sub = lane / 8, l = lane % 8, hs = a.heads + 2 * a.kv.kv_heads;
		const u32 gq = (tl.m + 3) / 4, gk = (fresh + 3) / 4, jobs = gq + 2 * gk;
		const bool append = last && tl.m0 + tl.m == sq.n * group;
		float *const nw = so;   /* [2][HD], until the merge */
		struct head { float4 v[V], w[V], cs[V]; u32 page; } h, next;

		auto kind_of = [&](u32 j) { return j < gq ? 0 : j < gq + gk ? 1 : 2; };
		auto at_of = [&](u32 j) { return (j < gq ? j : j < gq + gk ? j - gq : j - gq - gk) * 4 + sub; };
		auto src_of = [&](u32 j, u32 &row) {
			const u32 kind = kind_of(j), at = at_of(j);
			const u32 m = tl.m0 + (at < tl.m ? at : tl.m - 1), i = kind ? at < fresh ? at : fresh - 1 : div_group(m);

			row = sq.first + i;
			return a.qkv + ((size_t)row * hs + (kind == 0 ? kh * group + m - i * group :
							    a.heads + (kind - 1) * a.kv.kv_heads + kh)) * HD;
		};
		auto ask = [&](u32 j, head &h) {
			u32 row;
			const float *x = src_of(j, row);
			const u32 kind = kind_of(j);

			rp_ask<HD>(h.v, x, l);
			if (a.parts[kind] > 1)
				rp_ask<HD>(h.w, x + a.stride, l);
			if (kind < 2)
#pragma unroll
				for (int i = 0; i < V; i++)
					h.cs[i] = ((const float4 *)a.cs)[(size_t)row * (HD / 4) + i / 2 * 16 + l * 2 + i % 2];
			if (kind && append)
				h.page = a.page[sq.page0 + (sq.pos0 + row - sq.first) / 32];
		};

		/* its own copy of the norms' weights: the registers are needed */
		if (threadIdx.x < HD / 4) {
			if (a.q_norm)
				((float4 *)nw)[threadIdx.x] = ((const float4 *)a.q_norm)[threadIdx.x];
			if (a.k_norm)
				((float4 *)nw)[HD / 4 + threadIdx.x] = ((const float4 *)a.k_norm)[threadIdx.x];
		}
		for (u32 i = gq * 4 * (HD + 8) / 2 + threadIdx.x; i < 16 * (HD + 8) / 2; i += W * 32)
			((u32 *)sq16)[i] = 0;
		__syncthreads();
		pdl_wait();
		if (warp < jobs)
			ask(warp, h);
		for (u32 j = warp; j < jobs; j += W) {
			const u32 kind = kind_of(j), at = at_of(j);

			if (j + W < jobs)
				ask(j + W, next);
			if (a.parts[kind] > 1)
				rp_add<HD>(h.v, h.w);
			for (u32 p = 2; p < a.parts[kind]; p++) {
				u32 row;

				rp_ask<HD>(h.w, src_of(j, row) + p * a.stride, l);
				rp_add<HD>(h.v, h.w);
			}
			if (kind < 2)
				rp_turn<HD>(h.v, kind ? a.k_norm : a.q_norm, (const float4 *)nw + kind * (HD / 4) + l, h.cs, a.eps);
			if (kind == 0) {
				const bool live = at < tl.m;

#pragma unroll
				for (int i = 0; i < V; i++)
					*(uint2 *)(sq16 + at * (HD + 8) + i * 32 + l * 4) = !live ? make_uint2(0, 0) :
						make_uint2(f2h2(h.v[i].x * a.q_scale, h.v[i].y * a.q_scale),
							   f2h2(h.v[i].z * a.q_scale, h.v[i].w * a.q_scale));
			} else {
				const u32 slot = (sq.pos0 + at) % 32;
				u8 *const f = (kind == 1 ? fk : fv) + at * C::row(F16);
				unsigned short *const fs = (kind == 1 ? fks : fvs) + at * V;
				u8 *const to = (u8 *)a.kv.base + (size_t)h.page * a.kv.page_bytes + (kind == 1 ? koff : voff);
				const bool live = at < fresh, store = live && append;
				u32 x[V], d[V];

				if (!F16)
					rp_int8<HD>(h.v, x, d);
#pragma unroll
				for (int i = 0; i < V && live; i++) {
					if (F16) {
						const uint2 y = make_uint2(f2h2(h.v[i].x, h.v[i].y), f2h2(h.v[i].z, h.v[i].w));

						*(uint2 *)(f + (i * 32 + l * 4) * 2) = y;
						if (store)
							*(uint2 *)(to + (slot * HD + i * 32 + l * 4) * 2) = y;
						continue;
					}
					*(u32 *)(f + i * 32 + l * 4) = x[i];
					if (l == 0)
						fs[i] = (unsigned short)d[i];
					if (store) {
						*(u32 *)(to + slot * HD + i * 32 + l * 4) = x[i];
						if (l == 0)
							((unsigned short *)(to + 32 * HD))[slot * V + i] = (unsigned short)d[i];
					}
				}
			}
			h = next;
		}
		__syncthreads();
	} else {
		pdl_wait();
	}

	/* Rows g and g+8 as the A operand. */
	u32 q[C::QS ? 1 : C::PC][4][4];
#pragma unroll
	for (int r = 0; r < 2; r++) {
		const u32 i = g + 8 * r, m = tl.m0 + i, n = div_group(m);   /* n: row of the sequence */
		const bool live = i < tl.m;
		const uint4 *p = ROPE
			? (const uint4 *)(sq16 + i * (HD + 8))
			: (const uint4 *)(a.q + ((size_t)(sq.first + n) * a.heads +
						 kh * group + m - n * group) * HD);

		pos[r] = !live ? 0 : (int)n + 1 + (ROPE ? 0 : (int)sq.pos0);
		if (C::QS && !ROPE) {
			for (u32 c = t + warp * 4; c < HD / 8; c += 16)
				*(uint4 *)(sq16 + i * (HD + 8) + c * 8) =
					live ? p[c] : make_uint4(0, 0, 0, 0);
		}
#pragma unroll
		for (int c = 0; c < (C::QS ? 0 : C::PC); c++) {
			uint4 v0 = make_uint4(0, 0, 0, 0), v1 = v0;

			if (live) {
				v0 = p[c * 8 + t * 2];
				v1 = p[c * 8 + t * 2 + 1];
			}
			u32 (*qc)[4] = q[c];

			qc[0][r] = v0.x;
			qc[0][2 + r] = v0.y;
			qc[1][r] = v0.z;
			qc[1][2 + r] = v0.w;
			qc[2][r] = v1.x;
			qc[2][2 + r] = v1.y;
			qc[3][r] = v1.z;
			qc[3][2 + r] = v1.w;
		}
	}
	if (C::QS && !ROPE)
		__syncthreads();

	float o[C::NT][4], mx[2] = { NO_MAX, NO_MAX }, l[2] = { 0, 0 };
#pragma unroll
	for (int j = 0; j < C::NT; j++)
#pragma unroll
		for (int e = 0; e < 4; e++)
			o[j][e] = 0;

	/* Ask for the next chunk as soon as this one's registers are free. */
	if (ROPE)
		page2 = page_of(c + W);
	if (!C::QS && c < c2 && !early) {
		load_k(c, page, 0, 2);
		load_v(c, page, 0, C::VP);
	}
	for (; c < c2; c += W) {
		float s[2][4];
		u32 pa[4];

#pragma unroll
		for (int j = 0; j < 2; j++)
			s[j][0] = s[j][1] = s[j][2] = s[j][3] = 0;
		/* both groups of eight in turn, or one after the other where registers are short */
#pragma unroll
		for (int jj = 0; jj < (C::QS ? 2 : 1); jj++) {
			if (C::QS)
				load_k(c, page, jj, jj + 1);
#pragma unroll
			for (int pw = 0; pw < C::PC * 4; pw++) {
#pragma unroll
				for (int j = jj; j < (C::QS ? jj + 1 : 2); j++) {
					const int p = pw / 4, w = pw % 4;
					const u32 s2 = F16 ? 0 : ks[j][p] | ks[j][p] << 16;
					u32 b0, b1;

					if (F16) {
						const uint4 v = kq[j][p][w / 2 < KW ? w / 2 : 0];

						b0 = w % 2 ? v.z : v.x;
						b1 = w % 2 ? v.w : v.y;
					} else {
						const uint4 v = kq[j][p][0];

						at_unpack(w == 0 ? v.x : w == 1 ? v.y : w == 2 ? v.z : v.w,
							  s2, b0, b1);
					}
					if (C::QS) {
						const u32 *x = (const u32 *)sq16 + g * (HD / 2 + 4) + p * 32 + t * 8 + w * 2;
						const uint2 lo = *(const uint2 *)x;
						const uint2 hi = *(const uint2 *)(x + 8 * (HD / 2 + 4));
						const u32 qa[4] = { lo.x, hi.x, lo.y, hi.y };

						mma16816(s[j], qa, b0, b1);
					} else {
						mma16816(s[j], q[C::QS ? 0 : p][w], b0, b1);
					}
				}
			}
		}
		if (!C::QS && c + W < c2)
			load_k(c + W, page2, 0, 2);

#pragma unroll
		for (int r = 0; r < 2; r++) {
			/* up to its own token, or to the last older one where those are apart */
			const int see = ROPE && c < c1 ? (int)len : pos[r], at = (int)(ROPE && c >= c1 ? c - c1 : c) * 16;
			float m = mx[r];

#pragma unroll
			for (int j = 0; j < 2; j++)
#pragma unroll
				for (int e = 0; e < 2; e++) {
					if (at + j * 8 + (int)t * 2 + e >= see)
						s[j][r * 2 + e] = MASKED;
					m = fmaxf(m, s[j][r * 2 + e]);
				}
			m = fmaxf(m, shfl_xor_f(m, 1));
			m = fmaxf(m, shfl_xor_f(m, 2));
			if (warp_any(m > mx[r])) {   /* rarely, after a warp's first chunks */
				const float corr = fast_exp2(mx[r] - m);

				mx[r] = m;
				l[r] *= corr;
#pragma unroll
				for (int j = 0; j < C::NT; j++) {
					o[j][r * 2] *= corr;
					o[j][r * 2 + 1] *= corr;
				}
			}
#pragma unroll
			for (int j = 0; j < 2; j++) {
				const float x = fast_exp2(s[j][r * 2] - m), y = fast_exp2(s[j][r * 2 + 1] - m);

				l[r] += x + y;
				pa[j * 2 + r] = f2h2(x, y);
			}
		}

#pragma unroll
		for (int p = 0; p < C::VP; p++) {
			u32 sa = 0, sb = 0;

			if (C::QS)
				load_v(c, page, p, p + 1);
			if (!F16) {
				sa = vs[p][0] | vs[p][1] << 16;
				sb = vs[p][2] | vs[p][3] << 16;
			}
#pragma unroll
			for (int w = 0; w < VW; w++) {
				u32 v0 = vq[p][0][w], v1 = vq[p][1][w], v2 = vq[p][2][w], v3 = vq[p][3][w];

				if (F16) {
					const int j = p * 16 + w * 2;

					mma16816(o[j], pa, prmt(v0, v1, 0x5410), prmt(v2, v3, 0x5410));
					mma16816(o[j + 1], pa, prmt(v0, v1, 0x7632), prmt(v2, v3, 0x7632));
				} else {
					const int j = p * 16 + w * 4;
					u32 a0, a1, a2, a3, b0, b1, b2, b3;

					/* bytes of two tokens side by side, then as halves */
					v0 ^= 0x80808080u;
					v1 ^= 0x80808080u;
					v2 ^= 0x80808080u;
					v3 ^= 0x80808080u;
					a0 = prmt(v0, v1, 0x5140);
					a2 = prmt(v0, v1, 0x7362);
					b0 = prmt(v2, v3, 0x5140);
					b2 = prmt(v2, v3, 0x7362);
					a1 = prmt(a0, 0x64646464u, 0x4342);
					a0 = prmt(a0, 0x64646464u, 0x4140);
					a3 = prmt(a2, 0x64646464u, 0x4342);
					a2 = prmt(a2, 0x64646464u, 0x4140);
					b1 = prmt(b0, 0x64646464u, 0x4342);
					b0 = prmt(b0, 0x64646464u, 0x4140);
					b3 = prmt(b2, 0x64646464u, 0x4342);
					b2 = prmt(b2, 0x64646464u, 0x4140);
#define AT_V(x, s2) h2_mul(h2_add(x, 0xe480e480u), s2)
					mma16816(o[j], pa, AT_V(a0, sa), AT_V(b0, sb));
					mma16816(o[j + 1], pa, AT_V(a1, sa), AT_V(b1, sb));
					mma16816(o[j + 2], pa, AT_V(a2, sa), AT_V(b2, sb));
					mma16816(o[j + 3], pa, AT_V(a3, sa), AT_V(b3, sb));
#undef AT_V
				}
			}
		}
		if (!C::QS && c + W < c2)
			load_v(c + W, page2, 0, C::VP);
		if (C::QS)
			page = page2;
		page2 = page_of(c + 2 * W);
	}

	const u32 rows = few % 32, splits = few / 32, m0 = tl.m0;
	/* Merge the warps that had keys: rows to shared memory, columns as they lie in registers. */
	const u32 had = !ROPE || c2 - c0 > W ? W : c2 - c0;
#pragma unroll
	for (int r = 0; r < 2; r++) {
		l[r] += shfl_xor_f(l[r], 1);
		l[r] += shfl_xor_f(l[r], 2);
		if (t == 0) {
			sml[warp * 16 + g + 8 * r] = mx[r];
			sml[W * 16 + warp * 16 + g + 8 * r] = l[r];
		}
		if (g + 8 * r < rows && warp < had)
#pragma unroll
			for (int j = 0; j < C::NT; j += 4)
#pragma unroll
				for (int e = r * 2; e < r * 2 + 2; e++)
					*(float4 *)&so[(warp * 16 + g + 8 * r) * C::LD +
						       at_col<C::DL>((j / C::DL * 8 + t * 2 + e % 2) * C::DL + j % C::DL)] =
						make_float4(o[j][e], o[j + 1][e], o[j + 2][e], o[j + 3][e]);
	}
	__syncthreads();

	const size_t per = 16 * (HD + 4), id = (size_t)kh * a.tiles + blockIdx.y;
	float *part = a.partial + (id * a.splits + z) * per;
	/*
	 * Four channels of a row to where they go. As int8, four lanes have a
	 * 16-group (gemv.cuh has the order), so all of a warp must come here; only
	 * the live ones store.
	 */
	auto put = [&](u32 i, u32 d, float4 v, bool live) {
		const u32 m = m0 + i, n0 = div_group(m), n = sq.first + n0;
		const u32 k = (kh * group + m - n0 * group) * HD + d;

		if (a.q8) {
			const u32 units = tile_units(a.heads * HD);

			q8_put4(a.q8 + (size_t)n * units * 384, units, k, v, live);
		} else if (live && a.act) {
			*(uint2 *)(a.act + act_pos(n, k, 0, a.groups)) = make_uint2(f2h2(v.x, v.z), f2h2(v.y, v.w));
		} else if (live) {
			*(float4 *)(a.out + (size_t)n * a.heads * HD + k) = v;
		}
	};

	const u32 quads = rows * (HD / 4);

	for (u32 e0 = 0; e0 < quads; e0 += W * 32) {
		const u32 e = e0 + threadIdx.x, i = e / (HD / 4), d = e % (HD / 4) * 4;
		const bool live = e < quads;
		float4 v = make_float4(0, 0, 0, 0);

		if (live) {
			/* what each warp's row counts for: again for each four channels, which
			 * costs less than another barrier */
			float m = sml[i], sum = 0, f[W];

#pragma unroll
			for (u32 w = 1; w < W; w++)
				m = fmaxf(m, sml[w * 16 + i]);
#pragma unroll
			for (u32 w = 0; w < W; w++) {
				f[w] = fast_exp2(sml[w * 16 + i] - m);
				sum += f[w] * sml[W * 16 + w * 16 + i];
			}
			if (splits > 1) {
				if (d == 0) {
					part[16 * HD + i] = m;
					part[16 * HD + 16 + i] = sum;
				}
				sum = 1;
			}
			sum = 1 / sum;
#pragma unroll
			for (u32 w = 0; w < W; w++) {
				if (w >= had)
					break;
				const float4 x = *(const float4 *)&so[(w * 16 + i) * C::LD + at_col<C::DL>(d)];

				f[w] *= sum;
				v.x += f[w] * x.x;
				v.y += f[w] * x.y;
				v.z += f[w] * x.z;
				v.w += f[w] * x.w;
			}
		}
		if (splits == 1)
			put(i, d, v, live);
		else if (live)
			*(float4 *)&part[i * HD + d] = v;
	}
	if (splits == 1)
		return;

	u32 *flag = (u32 *)(sml + 2 * W * 16);

	__threadfence();
	__syncthreads();
	if (threadIdx.x == 0) {
		*flag = atomicAdd(&a.count[id], 1u);
		if (*flag == splits - 1)
			a.count[id] = 0;
	}
	__syncthreads();
	if (*flag != splits - 1)
		return;
	__threadfence();
	part = a.partial + id * a.splits * per;

	/*
	 * Four channels a thread. The first parts are asked for before the factors
	 * of all parts are made, which the sums then find in shared memory.
	 */
	enum { U = HD == 256 ? 4 : 8 };
	float *f = so;   /* [16][64]: the warps' rows are no longer needed */
	float4 x[U];
	auto ask = [&](u32 s, u32 e) {
#pragma unroll
		for (int k = 0; k < U; k++)
			x[k] = s + k < splits && e < quads
				? *(const float4 *)&part[(s + k) * per + e / (HD / 4) * HD + e % (HD / 4) * 4]
				: make_float4(0, 0, 0, 0);
	};

	ask(0, threadIdx.x);
	for (u32 i = warp; i < rows; i += W) {
		float x0, x1, l0, l1, sum;
		const bool two = lane + 32 < splits;

		x0 = lane < splits ? part[lane * per + 16 * HD + i] : NO_MAX;
		l0 = lane < splits ? part[lane * per + 16 * HD + 16 + i] : 0;
		x1 = two ? part[(lane + 32) * per + 16 * HD + i] : NO_MAX;
		l1 = two ? part[(lane + 32) * per + 16 * HD + 16 + i] : 0;
		sum = warp_max(fmaxf(x0, x1));
		x0 = fast_exp2(x0 - sum);
		x1 = fast_exp2(x1 - sum);
		sum = 1 / warp_sum(x0 * l0 + x1 * l1);
		f[i * 64 + lane] = lane < splits ? x0 * sum : 0;
		f[i * 64 + lane + 32] = two ? x1 * sum : 0;
	}
	__syncthreads();
	for (u32 e0 = 0; e0 < quads; e0 += W * 32) {
		const u32 e = e0 + threadIdx.x, i = e / (HD / 4), d = e % (HD / 4) * 4;
		const bool live = e < quads;
		float4 v = make_float4(0, 0, 0, 0);

		for (u32 s = 0; s < splits; s += U) {
			if (s || e0)
				ask(s, e);
#pragma unroll
			for (int k = 0; k < U; k++) {
				const float w = live && s + k < 64 ? f[i * 64 + s + k] : 0;

				v.x += w * x[k].x;
				v.y += w * x[k].y;
				v.z += w * x[k].z;
				v.w += w * x[k].w;
			}
		}
		put(i, d, v, live);
	}
}

extern "C" size_t hk_attn_partial(uint32_t kv_heads, uint32_t tiles, uint32_t splits, uint32_t head_dim)
{
	return splits <= 1 ? 0 : (size_t)kv_heads * tiles * splits * 16 * (head_dim + 4);
}

extern "C" int hk_attn(void *st, const struct hk_dev_info *d, const struct hk_step *s,
		       const struct hk_attn *a)
{
	struct at_args k = { s->tile, s->page, (const unsigned short *)a->q, a->kv, a->out,
			     a->partial, (u8 *)a->q8, (unsigned short *)a->act, a->count, a->heads,
			     a->layer, a->tiles, a->splits, a->groups };
	dim3 grid(a->kv.kv_heads, a->tiles, a->splits);

	if (!a->n || !a->tiles)
		return 0;
	if (a->heads % a->kv.kv_heads || !a->splits || a->splits > 64 || (a->splits > 1 && (!a->partial || !a->count)) ||
	    (!a->out && !a->act && !a->q8) || (uintptr_t)a->out % 16 || (uintptr_t)a->act % 16 || (uintptr_t)a->q8 % 16 ||
	    (uintptr_t)a->partial % 16 || (!a->rope && (!a->q || (uintptr_t)a->q % 16)) || (uintptr_t)a->kv.base % 16 ||
	    a->kv.head_bytes % 16 || a->kv.page_bytes % 16)
		return -EINVAL;
	k.group = a->heads / a->kv.kv_heads;
	k.inv_group = ((1u << 31) + k.group - 1) / k.group;
	if (a->n * k.group >= 65536 || k.group >= 32768 || a->kv.page_bytes > UINT32_MAX)
		return -EINVAL;
	if (a->rope) {
		if (a->n > HK_ROPE_MAX || (uintptr_t)a->rope->qkv % 16 || (uintptr_t)a->rope->cs % 16 ||
		    (uintptr_t)a->rope->q_norm % 16 || (uintptr_t)a->rope->k_norm % 16 || a->rope->stride % 4)
			return -EINVAL;
		k.qkv = a->rope->qkv;
		k.q_norm = a->rope->q_norm;
		k.k_norm = a->rope->k_norm;
		k.cs = a->rope->cs;
		k.eps = a->rope->eps;
		k.stride = a->rope->stride;
		memcpy(k.parts, a->rope->parts, sizeof(k.parts));
		k.slots = (a->n + 15) / 16 * 16;
		k.q_scale = 1.44269504088896f / sqrtf((float)a->kv.head_dim);
	}
#define AT_LAUNCH(HD, F, R) HK_LAUNCH((attn<HD, F, R>), grid, dim3(W * 32), at_cfg<HD>::SMEM + k.slots * at_cfg<HD>::slot(F), st, hk_pdl, k)
#define AT_GO(HD, F) (a->rope ? AT_LAUNCH(HD, F, true) : AT_LAUNCH(HD, F, false))
	switch (a->kv.head_dim) {
	case 64: return a->kv.f16 ? AT_GO(64, true) : AT_GO(64, false);
	case 128: return a->kv.f16 ? AT_GO(128, true) : AT_GO(128, false);
	case 256: return a->kv.f16 ? AT_GO(256, true) : AT_GO(256, false);
	default: return -EINVAL;
	}
}
