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
	const hk_seq *seq;
	const hk_tile *tile;
	const u32 *page;
	const unsigned short *q;
	hk_kv kv;
	float *out, *partial;
	u8 *q8;
	unsigned short *act;
	u32 *count;
	u32 heads, layer, tiles, splits, groups;
	/* few rows: what comes before attention, folded in; else qkv is NULL */
	const float *qkv, *q_norm, *k_norm, *cs;
	float eps, q_scale;
};

/* Four signed bytes times a half pair (s, s): two half pairs. */
CUDA_D void at_unpack(u32 w, u32 s2, u32 &lo, u32 &hi)
{
	w ^= 0x80808080u;
	lo = h2_mul(h2_add(prmt(w, 0x64646464u, 0x4140), 0xe480e480u), s2);
	hi = h2_mul(h2_add(prmt(w, 0x64646464u, 0x4342), 0xe480e480u), s2);
}

template <int HD> struct at_cfg {
	enum {
		PC = HD / 64,                 /* key pieces of 64 channels */
		VP = HD > 128 ? 2 : 1,        /* value pieces of 128 channels */
		DL = HD / 8 / VP,             /* channels of a lane in a value piece */
		NT = HD / 8,                  /* output column groups */
		LD = HD + 8,                  /* floats of a row in shared memory */
		QS = HD > 128,                /* queries in shared memory: too many registers */
		SMEM = (4 * 16 * LD + 2 * 4 * 16 + 16) * 4 + 16 * (HD + 8) * 2
	};
};

template <int HD, bool F16>
static __global__ void __launch_bounds__(128, HD == 256 || (F16 && HD == 128) ? 2 : 3) attn(const __grid_constant__ at_args a)
{
	typedef at_cfg<HD> C;
	HK_SMEM(smem);
	float *so = (float *)smem;                   /* [4][16][LD] */
	float *sml = so + 4 * 16 * C::LD;            /* [4][16] max, then [4][16] sum */
	const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
	const u32 kh = blockIdx.x, z = blockIdx.z;

	/* What the step is about was written before its first kernel: no need to
	 * wait for the kernel before to read it. */
	pdl_go();
	const hk_tile tl = a.tile[blockIdx.y];
	if (tl.seq == ~0u || z >= tl.splits) {
		pdl_wait();   /* or this launch could end before the one before it */
		return;
	}
	const hk_seq sq = a.seq[tl.seq];
	const u32 group = a.heads / a.kv.kv_heads;
	const u32 len = sq.pos0 + (tl.m0 + tl.m - 1) / group + 1;   /* tokens the last row sees */
	const u32 chunks = (len + 15) / 16;
	const u32 c0 = z * chunks / tl.splits, c1 = (z + 1) * chunks / tl.splits;
	const size_t koff = ((size_t)a.layer * 2 * a.kv.kv_heads + kh) * a.kv.head_bytes;
	const size_t voff = koff + (size_t)a.kv.kv_heads * a.kv.head_bytes;
	const u32 *pages = a.page + sq.page0;
	int pos[2];

	/* A chunk's keys and values as they lie in the page. */
	enum { KW = F16 ? 2 : 1, VW = (F16 ? 2 : 1) * C::DL / 4 };
	uint4 kq[2][C::PC][KW];
	u32 ks[2][C::PC];
	u32 vq[C::VP][4][VW];
	u32 vs[C::VP][4];

	auto load_k = [&](u32 c, int j0, int j1) {
		const u8 *base = (const u8 *)a.kv.base + (size_t)pages[c / 2] * a.kv.page_bytes + koff;

#pragma unroll
		for (int j = j0; j < j1; j++) {
			const u32 slot = c % 2 * 16 + j * 8 + g;

#pragma unroll
			for (int p = 0; p < C::PC; p++) {
				const u8 *k = base + (size_t)(slot * HD + p * 64 + t * 16) * KW;

				kq[j][p][0] = *(const uint4 *)k;
				if (F16)
					kq[j][p][KW - 1] = *(const uint4 *)(k + 16);
				else
					ks[j][p] = *(const unsigned short *)(base + 32 * HD +
						(slot * (HD / 32) + p * 2 + t / 2) * 2);
			}
		}
	};
	auto load_v = [&](u32 c, int p0, int p1) {
		const u8 *base = (const u8 *)a.kv.base + (size_t)pages[c / 2] * a.kv.page_bytes + voff;

#pragma unroll
		for (int i = 0; i < 4; i++) {
			const u32 in = i / 2 * 8 + t * 2 + i % 2, slot = c % 2 * 16 + in;
			const bool live = c * 16 + in < len;

#pragma unroll
			for (int p = p0; p < p1; p++) {
				const u8 *v = base + (size_t)(slot * HD + p * 128 + g * C::DL) * (F16 ? 2 : 1);

#pragma unroll
				for (int w = 0; w < VW; w += 2) {
					uint2 x = *(const uint2 *)(v + w * 4);

					/* what was never written must not be NaN */
					vq[p][i][w] = F16 && !live ? 0 : x.x;
					vq[p][i][w + 1] = F16 && !live ? 0 : x.y;
				}
				if (!F16)
					vs[p][i] = live ? *(const unsigned short *)(base + 32 * HD +
						(slot * (HD / 32) + (p * 128 + g * C::DL) / 32) * 2) : 0;
			}
		}
	};

	/* Tokens of earlier steps do not depend on the kernel before either. */
	u32 c = c0 + warp;
	const bool early = !C::QS && c < c1 && c * 16 + 16 <= sq.pos0;

	if (early) {
		load_k(c, 0, 2);
		load_v(c, 0, C::VP);
	}

	u32 *const sq16 = (u32 *)(sml + 2 * 4 * 16 + 16);   /* [16][HD + 8] halves */

	pdl_wait();
	if (a.qkv) {
		/* queries of the tile, and the new tokens into their page by the part
		 * that has the end of the keys (it alone reads them in this launch):
		 * m heads of queries, then k and v of each token. A warp's next one is
		 * asked for before this one is turned. */
		const u32 hs = a.heads + 2 * a.kv.kv_heads;
		const u32 jobs = tl.m + (z + 1 == tl.splits ? 2 * sq.n : 0);
		float v[HD / 32], w[HD / 32] = {};

		auto ask = [&](u32 j, float *x) {
			const u32 m = tl.m0 + j, i = j - tl.m;
			const size_t row = j < tl.m
				? (size_t)(sq.first + m / group) * hs + kh * group + m % group
				: (size_t)(sq.first + i / 2) * hs + a.heads + i % 2 * a.kv.kv_heads + kh;

#pragma unroll
			for (int c = 0; c < HD / 32; c++)
				x[c] = a.qkv[row * HD + c * 32 + lane];
		};

		for (u32 i = tl.m + warp; i < 16; i += 4)
#pragma unroll
			for (int c = 0; c < HD / 64; c++)
				sq16[i * (HD / 2 + 4) + c * 32 + lane] = 0;
		if (warp < jobs)
			ask(warp, v);
		for (u32 j = warp; j < jobs; j += 4) {
			if (j + 4 < jobs)
				ask(j + 4, w);
			if (j < tl.m) {
				unsigned short *row = (unsigned short *)sq16 + j * (HD + 8);

				rp_turn<HD>(v, a.q_norm, (const float2 *)a.cs +
					    (size_t)(sq.first + (tl.m0 + j) / group) * (HD / 2), lane, a.eps);
#pragma unroll
				for (int c = 0; c < HD / 32; c++)
					row[c * 32 + lane] = f2h(v[c] * a.q_scale);
			} else {
				const u32 i = (j - tl.m) / 2, at = sq.pos0 + i, is_v = (j - tl.m) % 2;

				if (!is_v)
					rp_turn<HD>(v, a.k_norm, (const float2 *)a.cs +
						    (size_t)(sq.first + i) * (HD / 2), lane, a.eps);
				rp_store<HD>(a.kv, (u8 *)a.kv.base + (size_t)pages[at / 32] * a.kv.page_bytes +
					     (is_v ? voff : koff), at % 32, v, lane);
			}
#pragma unroll
			for (int c = 0; c < HD / 32; c++)
				v[c] = w[c];
		}
		__syncthreads();
	}

	/* Rows g and g+8 as the A operand. */
	u32 q[C::QS ? 1 : C::PC][4][4];
#pragma unroll
	for (int r = 0; r < 2; r++) {
		const u32 i = g + 8 * r, m = tl.m0 + i;
		const bool live = i < tl.m;
		const uint4 *p = a.qkv
			? (const uint4 *)(sq16 + i * (HD / 2 + 4))
			: (const uint4 *)(a.q + ((size_t)(sq.first + m / group) * a.heads +
						 kh * group + m % group) * HD);

		pos[r] = live ? (int)(sq.pos0 + m / group) : -1;
		if (C::QS && !a.qkv) {
			for (u32 c = t + warp * 4; c < HD / 8; c += 16)
				*(uint4 *)(sq16 + i * (HD / 2 + 4) + c * 4) =
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
	if (C::QS && !a.qkv)
		__syncthreads();

	float o[C::NT][4], mx[2] = { -1e30f, -1e30f }, l[2] = { 0, 0 };
#pragma unroll
	for (int j = 0; j < C::NT; j++)
#pragma unroll
		for (int e = 0; e < 4; e++)
			o[j][e] = 0;

	/* Ask for the next chunk as soon as this one's registers are free. */
	if (!C::QS && c < c1 && !early) {
		load_k(c, 0, 2);
		load_v(c, 0, C::VP);
	}
	for (; c < c1; c += 4) {
		float s[2][4];
		u32 pa[4];

#pragma unroll
		for (int j = 0; j < 2; j++) {
			s[j][0] = s[j][1] = s[j][2] = s[j][3] = 0;
			if (C::QS)
				load_k(c, j, j + 1);
#pragma unroll
			for (int p = 0; p < C::PC; p++) {
				const u32 s2 = F16 ? 0 : ks[j][p] | ks[j][p] << 16;

#pragma unroll
				for (int w = 0; w < 4; w++) {
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
						const u32 *x = sq16 + g * (HD / 2 + 4) + p * 32 + t * 8 + w * 2;
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
		if (!C::QS && c + 4 < c1)
			load_k(c + 4, 0, 2);

#pragma unroll
		for (int r = 0; r < 2; r++) {
			float m = mx[r], corr;

#pragma unroll
			for (int j = 0; j < 2; j++)
#pragma unroll
				for (int e = 0; e < 2; e++) {
					int tok = (int)(c * 16 + j * 8 + t * 2 + e);

					if (tok > pos[r])
						s[j][r * 2 + e] = -1e30f;
					m = fmaxf(m, s[j][r * 2 + e]);
				}
			m = fmaxf(m, shfl_xor_f(m, 1));
			m = fmaxf(m, shfl_xor_f(m, 2));
			corr = fast_exp2(mx[r] - m);
			mx[r] = m;
			l[r] *= corr;
#pragma unroll
			for (int j = 0; j < 2; j++) {
				float x = s[j][r * 2], y = s[j][r * 2 + 1];

				x = x > -1e29f ? fast_exp2(x - m) : 0;
				y = y > -1e29f ? fast_exp2(y - m) : 0;
				l[r] += x + y;
				pa[j * 2 + r] = f2h2(x, y);
			}
#pragma unroll
			for (int j = 0; j < C::NT; j++) {
				o[j][r * 2] *= corr;
				o[j][r * 2 + 1] *= corr;
			}
		}

#pragma unroll
		for (int p = 0; p < C::VP; p++) {
			u32 sa = 0, sb = 0;

			if (C::QS)
				load_v(c, p, p + 1);
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
		if (!C::QS && c + 4 < c1)
			load_v(c + 4, 0, C::VP);
	}

	/* Merge the warps: rows to shared memory, columns as they lie in registers. */
#pragma unroll
	for (int r = 0; r < 2; r++) {
		l[r] += shfl_xor_f(l[r], 1);
		l[r] += shfl_xor_f(l[r], 2);
		if (t == 0) {
			sml[warp * 16 + g + 8 * r] = mx[r];
			sml[64 + warp * 16 + g + 8 * r] = l[r];
		}
		if (g + 8 * r < tl.m)
#pragma unroll
			for (int j = 0; j < C::NT; j++)
				*(float2 *)&so[(warp * 16 + g + 8 * r) * C::LD + j * 8 + t * 2] =
					make_float2(o[j][r * 2], o[j][r * 2 + 1]);
	}
	__syncthreads();

	const size_t per = 16 * (HD + 4), id = (size_t)kh * a.tiles + blockIdx.y;
	float *part = a.partial + (id * a.splits + z) * per;
	/* where channel d of a row lies in a row of so */
	auto col = [](u32 d) {
		return (d / 128 * 16 + d % C::DL) * 8 + d % 128 / C::DL;
	};
	/*
	 * Four channels of a row to where they go. As int8, four lanes have a
	 * 16-group (gemv.cuh has the order), so all of a warp must come here; only
	 * the live ones store.
	 */
	auto put = [&](u32 i, u32 d, float4 v, bool live) {
		const u32 m = tl.m0 + i, n = sq.first + m / group;
		const u32 k = (kh * group + m % group) * HD + d;

		if (a.q8) {
			const u32 units = tile_units(a.heads * HD);

			q8_put4(a.q8 + (size_t)n * units * 384, units, k, v, live);
		} else if (live && a.act) {
			*(uint2 *)(a.act + act_pos(n, k, 0, a.groups)) = make_uint2(f2h2(v.x, v.z), f2h2(v.y, v.w));
		} else if (live) {
			*(float4 *)(a.out + (size_t)n * a.heads * HD + k) = v;
		}
	};

	/* What each warp's row counts for, once for all channels. */
	if (threadIdx.x < tl.m) {
		const u32 i = threadIdx.x;
		float m = sml[i], sum = 0, f[4];

#pragma unroll
		for (int w = 1; w < 4; w++)
			m = fmaxf(m, sml[w * 16 + i]);
#pragma unroll
		for (int w = 0; w < 4; w++) {
			f[w] = fast_exp2(sml[w * 16 + i] - m);
			sum += f[w] * sml[64 + w * 16 + i];
		}
		if (tl.splits > 1) {
			part[16 * HD + i] = m;
			part[16 * HD + 16 + i] = sum;
			sum = 1;
		}
		sum = 1 / sum;
#pragma unroll
		for (int w = 0; w < 4; w++)
			sml[w * 16 + i] = f[w] * sum;
	}
	__syncthreads();
	const u32 quads = tl.m * (HD / 4);

	for (u32 e0 = 0; e0 < quads; e0 += 128) {
		const u32 e = e0 + threadIdx.x, i = e / (HD / 4), d = e % (HD / 4) * 4;
		const bool live = e < quads;
		float4 v = make_float4(0, 0, 0, 0);

		if (live) {
#pragma unroll
			for (int w = 0; w < 4; w++) {
				const float f = sml[w * 16 + i], *row = so + (w * 16 + i) * C::LD + col(d);

				/* the next channel of the same lane's piece is 8 further */
				v.x += f * row[0];
				v.y += f * row[8];
				v.z += f * row[16];
				v.w += f * row[24];
			}
		}
		if (tl.splits == 1)
			put(i, d, v, live);
		else if (live)
			*(float4 *)&part[i * HD + d] = v;
	}
	if (tl.splits == 1)
		return;

	u32 *flag = (u32 *)(sml + 128);

	__threadfence();
	__syncthreads();
	if (threadIdx.x == 0) {
		*flag = atomicAdd(&a.count[id], 1u);
		if (*flag == tl.splits - 1)
			a.count[id] = 0;
	}
	__syncthreads();
	if (*flag != tl.splits - 1)
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
			x[k] = s + k < tl.splits && e < quads
				? *(const float4 *)&part[(s + k) * per + e / (HD / 4) * HD + e % (HD / 4) * 4]
				: make_float4(0, 0, 0, 0);
	};

	ask(0, threadIdx.x);
	for (u32 i = warp; i < tl.m; i += 4) {
		float m0, m1, l0, l1, sum;
		const bool two = lane + 32 < tl.splits;

		m0 = lane < tl.splits ? part[lane * per + 16 * HD + i] : -1e30f;
		l0 = lane < tl.splits ? part[lane * per + 16 * HD + 16 + i] : 0;
		m1 = two ? part[(lane + 32) * per + 16 * HD + i] : -1e30f;
		l1 = two ? part[(lane + 32) * per + 16 * HD + 16 + i] : 0;
		sum = warp_max(fmaxf(m0, m1));
		m0 = fast_exp2(m0 - sum);
		m1 = fast_exp2(m1 - sum);
		sum = 1 / warp_sum(m0 * l0 + m1 * l1);
		f[i * 64 + lane] = lane < tl.splits ? m0 * sum : 0;
		f[i * 64 + lane + 32] = two ? m1 * sum : 0;
	}
	__syncthreads();
	for (u32 e0 = 0; e0 < quads; e0 += 128) {
		const u32 e = e0 + threadIdx.x, i = e / (HD / 4), d = e % (HD / 4) * 4;
		const bool live = e < quads;
		float4 v = make_float4(0, 0, 0, 0);

		for (u32 s = 0; s < tl.splits; s += U) {
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
	struct at_args k = { s->seq, s->tile, s->page, (const unsigned short *)a->q, a->kv, a->out,
			     a->partial, (u8 *)a->q8, (unsigned short *)a->act, a->count, a->heads,
			     a->layer, a->tiles, a->splits, a->groups,
			     NULL, NULL, NULL, NULL, 0, 0 };
	dim3 grid(a->kv.kv_heads, a->tiles, a->splits);

	if (!a->n || !a->tiles)
		return 0;
	if (a->rope) {
		if (a->n * (a->heads / a->kv.kv_heads) > 16 || a->rope->parts[0] > 1 || a->rope->parts[1] > 1 ||
		    a->rope->parts[2] > 1)
			return -EINVAL;
		k.qkv = a->rope->qkv;
		k.q_norm = a->rope->q_norm;
		k.k_norm = a->rope->k_norm;
		k.cs = a->rope->cs;
		k.eps = a->rope->eps;
		k.q_scale = 1.44269504088896f / sqrtf((float)a->kv.head_dim);
	}
	if (a->heads % a->kv.kv_heads || !a->splits || a->splits > 64 || (a->splits > 1 && (!a->partial || !a->count)) ||
	    (!a->out && !a->act && !a->q8) || (!a->rope && (!a->q || (uintptr_t)a->q % 16)) || (uintptr_t)a->kv.base % 16 ||
	    a->kv.head_bytes % 16 || a->kv.page_bytes % 16)
		return -EINVAL;
#define AT_GO(HD, F) HK_LAUNCH((attn<HD, F>), grid, dim3(128), (at_cfg<HD>::SMEM), st, hk_pdl, k)
	switch (a->kv.head_dim) {
	case 64: return a->kv.f16 ? AT_GO(64, true) : AT_GO(64, false);
	case 128: return a->kv.f16 ? AT_GO(128, true) : AT_GO(128, false);
	case 256: return a->kv.f16 ? AT_GO(256, true) : AT_GO(256, false);
	default: return -EINVAL;
	}
}
