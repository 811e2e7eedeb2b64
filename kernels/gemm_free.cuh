/* SPDX-License-Identifier: MIT */
/*
 * The GEMM for up to 16 tokens of Q4_K and Q6_K (included by gemm_free_*.cu). Every warp
 * goes its own way: a warp's weights (a pair of tiles, one block column of every
 * unit that is its turn) come through a ring of its own in shared memory, the
 * activations through L1, and nobody waits for anybody until KS warps add up
 * what they have of a pair.
 */
#ifndef HEARTH_KERNELS_GEMM_FREE_CUH
#define HEARTH_KERNELS_GEMM_FREE_CUH

#include "kernels/gemm_rows.cuh"

template <int T, int NT, int WM_> struct gf_cfg {
	enum {
		WM = WM_, KS = gf_slices(WM), ACT = WM > 1,   /* activations in shared memory */ WARPS = WM * KS, THREADS = 32 * WARPS, PT = 32 * KS,
		STAGE = 2 * Rows<T, 2>::STAGE,   /* a pair's half unit */
		ABYTES = NT * 2048 * KS,
		ROOM = 32 * 1024 / (WARPS * STAGE),   /* of five blocks an SM */
		STAGES = ACT || ROOM < 3 ? 2 : 3, ROW = 36,   /* floats of a token's 32 rows, padded */
		RED = WARPS * NT * 8 * ROW * 4, WRING = WARPS * STAGE * STAGES, RING = WRING + (ACT ? ABYTES * STAGES : 0), SMEM = RED > RING ? RED : RING,
		BLOCKS = gf_blocks(WM),
		SUMS = NT == 1 ? 2 : 1,                       /* so that products of a sum are no neighbours */
		AHEAD = !ACT && NT == 1,                      /* a half unit's activations asked for before its weights are waited for */
		JM = NT                                       /* token groups whose products go together */
	};
	static_assert(SMEM <= (int)HK_SMEM_MAX, "more shared memory than a block has");
};

template <int T, int NT, int WM_>
CUDA_D void gf_run(const gm_args &a, const gm_seg &sg, unsigned char *smem)
{
	typedef gf_cfg<T, NT, WM_> C;
	typedef Rows<T, 2> R;
	enum { UB = 16 * Bytes<T>::V };
	const u32 units = a.cols / 256;
	const size_t tile_bytes = (size_t)units * UB;
	const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
	const u32 ks = warp / C::WM, wm = warp % C::WM;
	const bool glu = a.mode == HK_SWIGLU;
	const u32 h0 = blockIdx.z * units / a.splits * 2, h1 = (blockIdx.z + 1) * units / a.splits * 2;
	const u32 bx = blockIdx.x - sg.block0;
	const u32 tile0 = glu ? bx * C::WM + wm : (bx * C::WM + wm) * 2;
	const bool on0 = tile0 < sg.tiles, on1 = glu ? on0 : tile0 + 1 < sg.tiles;
	const ptrdiff_t hop = glu ? a.w2 - sg.w : on1 ? (ptrdiff_t)tile_bytes : 0;
	const u8 *const base = sg.w + (size_t)(on0 ? tile0 : 0) * tile_bytes;
	const u8 *const act = a.act + lane * 16;
	u8 *const ring = smem + warp * (C::STAGE * C::STAGES);
	u32 e = 4, rd = 0;
	/* Half unit h of all of k: where it lies, to slot @slot of this warp's ring. */
	auto fetch_w = [&](u32 h, u32 slot) {
		if (h < h1) {
			const u8 *const w0 = base + (size_t)(h / 2) * UB, *const w1 = w0 + hop;
			u8 *const to = ring + slot * C::STAGE;

			R::fetch(to, w0, lane, h % 2);
			R::fetch(to + R::STAGE, w1, lane, h % 2);
			R::fetch_scales(to + lane / 16 * R::STAGE, lane < 16 ? w0 : w1, lane % 16);
		}
	};
	/* Its activations, by the warps of all pairs together. */
	auto fetch_a = [&](u32 h, u32 slot) {
		if (C::ACT && h < h1) {
			u8 *const to = smem + C::WRING + slot * C::ABYTES + ks * (NT * 2048) + wm * 512 + lane * 16;
			const u8 *const p = act + (size_t)(h / 2) * a.groups * 4096 + h % 2 * 2048;

#pragma unroll
			for (u32 i = 0; i < NT * 4; i += C::WM)
				if (i + C::WM <= NT * 4 || i + wm < NT * 4)
					cp_async16(to + i * 512, p + (i + wm) / 4 * 4096 + (i + wm) % 4 * 512);
		}
		cp_commit();
	};

#pragma unroll
	for (int i = 0; i < C::STAGES - C::ACT; i++)
		fetch_w(h0 + ks + i * C::KS, i);
	pdl_go();
	pdl_wait();
#pragma unroll
	for (int i = 0; i < C::STAGES - C::ACT; i++)
		fetch_a(h0 + ks + i * C::KS, i);

	float acc[C::SUMS][2][NT][4];

#pragma unroll
	for (int h = 0; h < C::SUMS; h++)
#pragma unroll
		for (int m = 0; m < 2; m++)
#pragma unroll
			for (int j = 0; j < NT; j++)
#pragma unroll
				for (int k = 0; k < 4; k++)
					acc[h][m][j][k] = 0;

#pragma unroll 1
	for (u32 hs = h0; hs < h1; hs += C::KS) {
		const u32 was = e, now = rd, h = hs + ks;
		const u8 *const st = ring + now * C::STAGE;
		const u8 *const from = act + (size_t)(h / 2) * a.groups * 4096 + h % 2 * 2048;
		const u8 *const stage = smem + C::WRING + now * C::ABYTES + ks * (NT * 2048) + lane * 16;
		auto ld_b = [&](int j, int c) {
			return C::ACT ? *(const uint4 *)(stage + j * 2048 + c * 512) : ld_act16(from + j * 4096 + c * 512);
		};
		uint4 ahead[C::AHEAD ? 4 : 1][C::AHEAD ? NT : 1];
		R p;

		if (C::AHEAD && h < h1)
#pragma unroll
			for (int c = 0; c < 4; c++)
#pragma unroll
				for (int j = 0; j < NT; j++)
					ahead[C::AHEAD ? c : 0][C::AHEAD ? j : 0] = ld_b(j, c);
		cp_wait<C::STAGES - 1 - C::ACT>();
		rd = rd == C::STAGES - 1 ? 0 : rd + 1;
		if (C::ACT) {
			__syncthreads();
			fetch_w(h + C::KS, rd);   /* two stages: the other one */
			fetch_a(h + C::KS, rd);
		} else {
			warp_sync();
		}
		if (h >= h1)
			continue;
		e = p.load(st, lane, h % 2, e);
		if (!C::ACT) {
			warp_sync();
			fetch_w(h + C::STAGES * C::KS, now);
			fetch_a(h + C::STAGES * C::KS, now);
		}
		if (e != was)
			rw_shrink<C::SUMS * 2 * NT * 4>(acc[0][0][0], was, e);
		warp_sync();
#pragma unroll
		for (int c = 0; c < 4; c++) {
			u32 a0[2][4], a1[2][4];
			uint4 v[C::JM];

#pragma unroll
			for (int j = 0; j < C::JM; j++)
				v[j] = C::AHEAD ? ahead[C::AHEAD ? c : 0][C::AHEAD ? j : 0] : ld_b(j, c);
			p.a(c, 0, a0[0], a1[0]);
			p.a(c, 1, a0[1], a1[1]);
#pragma unroll
			for (int j0 = 0; j0 < NT; j0 += C::JM) {
				if (j0)
#pragma unroll
					for (int j = 0; j < C::JM; j++)
						if (j0 + j < NT)
							v[j] = C::AHEAD ? ahead[C::AHEAD ? c : 0][C::AHEAD ? j0 + j : 0] : ld_b(j0 + j, c);
#pragma unroll
				for (int j = 0; j < C::JM; j++)
#pragma unroll
					for (int m = 0; m < 2; m++)
						if (j0 + j < NT)
							mma16816(acc[0][m][j0 + j], a0[m], v[j].x, v[j].y);
#pragma unroll
				for (int j = 0; j < C::JM; j++)
#pragma unroll
					for (int m = 0; m < 2; m++)
						if (j0 + j < NT)
							mma16816(acc[C::SUMS - 1][m][j0 + j], a1[m], v[j].z, v[j].w);
			}
		}
	}
	cp_wait<0>();

	/* What the warps of a pair have: [ks][token][32 rows], added in this order. */
	const float un = R::unit(e) * a.scale;
	float *const red = (float *)smem + wm * (C::KS * NT * 8 * C::ROW);

	__syncthreads();
#pragma unroll
	for (int m = 0; m < 2; m++)
#pragma unroll
		for (int j = 0; j < NT; j++)
#pragma unroll
			for (int k = 0; k < 4; k++) {
				float s = acc[0][m][j][k];

				if (C::SUMS == 2)
					s += acc[C::SUMS - 1][m][j][k];
				red[((ks * NT + j) * 8 + t * 2 + k % 2) * C::ROW + m * 16 + g + k / 2 * 8] = s * un;
			}
	__syncthreads();

	const u32 pt = ks * 32 + lane, quads = glu ? 4 : 8;

#pragma unroll 1
	for (u32 i = pt; i < NT * 8 * quads; i += C::PT) {
		const u32 n = i / quads, q = i % quads;
		const float f = a.act_scale && n < a.n ? a.act_scale[n] : 1;
		float4 o[2];

		if (n >= a.n)
			break;
#pragma unroll
		for (int m = 0; m < 2; m++) {
			o[m] = make_float4(0, 0, 0, 0);
			if (m && !glu)
				continue;
#pragma unroll
			for (int k = 0; k < C::KS; k++) {
				const float4 y = *(const float4 *)(red + (k * NT * 8 + n) * C::ROW + m * 16 + q * 4);

				o[m].x += y.x;
				o[m].y += y.y;
				o[m].z += y.z;
				o[m].w += y.w;
			}
			o[m].x *= f;
			o[m].y *= f;
			o[m].z *= f;
			o[m].w *= f;
		}
		if (glu) {
			auto h = [&](float x, float y) { return fast_div(x, 1 + fast_exp(-x)) * y * a.act_out_scale; };

			if (on0)
				*(uint2 *)(a.act_out + act_pos(n, tile0 * 16 + q * 4, 0, a.groups_out)) =
					make_uint2(f2h2(h(o[0].x, o[1].x), h(o[0].z, o[1].z)),
						   f2h2(h(o[0].y, o[1].y), h(o[0].w, o[1].w)));
		} else if (q < 4 ? on0 : on1) {
			const u32 row = tile0 * 16 + q * 4;
			float *y = sg.y + blockIdx.z * a.apart + (size_t)n * sg.ldy + row;

			if (sg.bias && blockIdx.z == 0) {
				o[0].x += sg.bias[row];
				o[0].y += sg.bias[row + 1];
				o[0].z += sg.bias[row + 2];
				o[0].w += sg.bias[row + 3];
			}
			*(float4 *)y = o[0];
		}
	}
}

template <int T, int T2, int NT, int WM>
static __global__ void __launch_bounds__(gf_cfg<T, NT, WM>::THREADS, gf_cfg<T, NT, WM>::BLOCKS)
gemm_free(const __grid_constant__ gm_args a)
{
	HK_SMEM(smem);
	u32 si = 0;

	while (si + 1 < a.nseg && blockIdx.x >= a.seg[si + 1].block0)
		si++;
	if (T2 != T && a.seg[si].type == T2)
		gf_run<T2, NT, WM>(a, a.seg[si], smem);
	else
		gf_run<T, NT, WM>(a, a.seg[si], smem);
}

template <int T, int T2, int NT, int WM>
static int gf_go(void *st, dim3 grid, bool pdl, const gm_args &k)
{
	const int one = gf_cfg<T, NT, WM>::SMEM, two = gf_cfg<T2, NT, WM>::SMEM;

	return HK_LAUNCH((gemm_free<T, T2, NT, WM>), grid, dim3(gf_cfg<T, NT, WM>::THREADS), one > two ? one : two, st, pdl, k);
}

#endif
