/* SPDX-License-Identifier: MIT */
/*
 * The GEMM for up to 64 tokens (included by gemm.cuh): the units of a block's
 * tiles and the activations come through shared memory, some units ahead, so
 * that what is in flight does not depend on how many registers there are. Two
 * warps share a pair of tiles, each with one block column of every unit.
 */
#ifndef HEARTH_KERNELS_GEMM_FEW_CUH
#define HEARTH_KERNELS_GEMM_FEW_CUH

template <int T, int NT, int WM_> struct gs_cfg {
	enum {
		NB = NT * 8, WM = WM_, LANES = 32 * WM, THREADS = LANES * 2, BLOCKS = gs_blocks(NT, WM),
		UB = 16 * Bytes<T>::V, WBYTES = 2 * WM * UB, STAGE = WBYTES + NB * 512,
		/* A block can have 163 KiB on 8.7, each of two 81; each of two 113 on 9.0. */
		ROOM = (BLOCKS == 2 ? 81 : 163) * 1024 / STAGE, MORE = (BLOCKS == 2 ? 112 : 163) * 1024 / STAGE,
		STAGES = ROOM > 3 ? 3 : ROOM > 2 || MORE < 3 ? (ROOM < 2 ? 2 : ROOM) : 3, SMEM = STAGE * STAGES,
		SUMS = NT == 1 ? 2 : 1,                   /* so that products of a sum are no neighbours */
		JM = NT < 2 ? 1 : NT == 3 ? 3 : 2,        /* token groups whose products go together */
		NJ = (NT + 1) / 2, JB = NJ < 4 ? NJ : 4
	};
	static_assert(SMEM <= (int)HK_SMEM_MAX, "more shared memory than a block has");
};

template <int T, int NT, int WM_>
CUDA_D void gs_run(const gm_args &a, const gm_seg &sg, unsigned char *smem)
{
	typedef gs_cfg<T, NT, WM_> C;
	typedef typename Tile<T>::Q Q;
	typedef typename Tile<T>::S S;
	enum { K = T == T_Q4_K || T == T_Q5_K || T == T_Q6_K };   /* whole units only */
	const u32 units = tile_units(a.cols), nt_last = tile_nt(a.cols, units - 1);
	const u32 last_bytes = C::UB / 4 * nt_last;
	const size_t tile_bytes = (size_t)(units - 1) * C::UB + last_bytes;
	const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
	const u32 kb = warp / C::WM, wm = warp % C::WM;
	const bool glu = a.mode == HK_SWIGLU;
	const u32 u0 = blockIdx.z * units / a.splits, u1 = (blockIdx.z + 1) * units / a.splits;
	const u32 bx = blockIdx.x - sg.block0;
	/* A warp's pair of tiles: neighbours, or the same rows of gate and up. A tile
	 * beyond the matrix reads the first instead, and is not stored. */
	const u32 tile0 = glu ? bx * C::WM + wm : (bx * C::WM + wm) * 2;
	const bool on0 = tile0 < sg.tiles, on1 = glu ? on0 : tile0 + 1 < sg.tiles;

	/* The pair's two warps copy its units, 16 bytes a thread. */
	const u32 pt = kb * 32 + lane;
	const u8 *w0 = sg.w + (size_t)(on0 ? tile0 : 0) * tile_bytes + (size_t)u0 * C::UB + pt * 16;
	const ptrdiff_t hop = glu ? a.w2 - sg.w : on1 ? (ptrdiff_t)tile_bytes : 0;
	u32 wu = u0, wto = wm * 2 * C::UB + pt * 16;
	auto fetch_w = [&]() {
		if (wu < u1) {
			const u32 bytes = !K && wu + 1 == units ? last_bytes : (u32)C::UB;

#pragma unroll
			for (int m = 0; m < 2; m++)
#pragma unroll
				for (u32 i = 0; i < C::UB; i += 1024)
					if ((K && i + 1024 <= C::UB) || pt * 16 + i < bytes)
						cp_async16(smem + wto + m * C::UB + i, w0 + (m ? hop : 0) + i);
			w0 += C::UB;
			wto = wto >= C::STAGE * (C::STAGES - 1) ? wto - C::STAGE * (C::STAGES - 1) : wto + C::STAGE;
			wu++;
		}
	};

	for (int i = 0; i < C::STAGES - 1; i++)
		fetch_w();
	pdl_go();
	pdl_wait();

	/* A unit's activations: NB / 8 groups of 4096 bytes, contiguous. */
	const u8 *src = a.act + (size_t)blockIdx.y * C::NB / 8 * 4096 + (size_t)u0 * a.groups * 4096 + threadIdx.x * 16;
	u32 left = u1 - u0, ato = C::WBYTES + threadIdx.x * 16;
	auto fetch_a = [&]() {
		if (left) {
#pragma unroll
			for (u32 i = 0; i < C::NB * 512; i += C::THREADS * 16)
				if (i + C::THREADS * 16 <= C::NB * 512 || i + threadIdx.x * 16 < C::NB * 512)
					cp_async16(smem + ato + i, src + i);
			src += a.groups * 4096;
			ato = ato >= C::STAGE * (C::STAGES - 1) ? ato - C::STAGE * (C::STAGES - 1) : ato + C::STAGE;
			left--;
		}
		cp_commit();
	};

#pragma unroll
	for (int i = 0; i < C::STAGES - 1; i++)
		fetch_a();

	float acc[C::SUMS][2][NT][4];

#pragma unroll
	for (int h = 0; h < C::SUMS; h++)
#pragma unroll
		for (int m = 0; m < 2; m++)
#pragma unroll
			for (int j = 0; j < NT; j++)
#pragma unroll
				for (int e = 0; e < 4; e++)
					acc[h][m][j][e] = 0;

	u32 from = 0;

	for (u32 u = u0; u < u1; u++) {
		const int nt = !K && u + 1 == units ? (int)nt_last : 4;
		const u8 *const sw = smem + from + wm * 2 * C::UB;
		const u8 *const st = smem + from + C::WBYTES + kb * 2048 + lane * 16;
		u32 s2[2][Tile<T>::HALVES][2], m2[2][2];
		Q q[2];

		cp_wait<C::STAGES - 2>();
		__syncthreads();
		fetch_w();
		fetch_a();
#pragma unroll
		for (int m = 0; m < 2; m++) {
			const u8 *const p = sw + m * C::UB;
			S sc;

			if (K || (int)t < nt) {
				Tile<T>::template load_q<true>(q[m], p, (int)g * nt + (int)t, nt, (int)kb);
				Tile<T>::template load_s<true>(sc, p, (int)g, (int)g * nt + (int)t, nt);
			} else {
				Tile<T>::zero(q[m], sc);
			}
			gm_scale<T>(sc, (int)kb, s2[m], m2[m]);
		}
#pragma unroll
		for (int jp = 0; jp < 4; jp++) {
			u32 a0[2][4], a1[2][4];

#pragma unroll
			for (int m = 0; m < 2; m++)
				gm_a<T>(q[m], s2[m], m2[m], jp, a0[m], a1[m]);
			/* some groups at a time: a sum's two steps are not neighbours */
#pragma unroll
			for (int j0 = 0; j0 < NT; j0 += C::JM) {
				uint4 v[C::JM];

#pragma unroll
				for (int j = 0; j < C::JM; j++)
					if (j0 + j < NT)
						v[j] = *(const uint4 *)(st + (j0 + j) * 4096 + jp * 512);
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
		from = from == C::STAGE * (C::STAGES - 1) ? 0 : from + C::STAGE;
	}
	cp_wait<0>();
	if (C::SUMS == 2)
#pragma unroll
		for (int m = 0; m < 2; m++)
#pragma unroll
			for (int e = 0; e < 4; e++)
				acc[0][m][0][e] += acc[C::SUMS - 1][m][0][e];
	gm_finish<C, T, NT, 1, 2>(a, sg, tile0, on0, on1, 0, kb, acc[0], smem);
}

/* T2: another type that a segment can have, or T. */
template <int T, int T2, int NT, int WM>
static __global__ void __launch_bounds__(gs_cfg<T, NT, WM>::THREADS, gs_cfg<T, NT, WM>::BLOCKS)
gemm_few(const __grid_constant__ gm_args a)
{
	HK_SMEM(smem);
	u32 si = 0;

	while (si + 1 < a.nseg && blockIdx.x >= a.seg[si + 1].block0)
		si++;
	if (T2 != T && a.seg[si].type == T2)
		gs_run<T2, NT, WM>(a, a.seg[si], smem);
	else
		gs_run<T, NT, WM>(a, a.seg[si], smem);
}

#endif
