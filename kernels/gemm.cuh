/* SPDX-License-Identifier: MIT */
/* The body of the GEMM (gemm.cu), compiled once per weight type. */
#ifndef HEARTH_KERNELS_GEMM_CUH
#define HEARTH_KERNELS_GEMM_CUH

#include "kernels/launch.cuh"
#include "kernels/quant.cuh"

struct gm_seg {
	const u8 *w;
	const float *bias;
	float *y;
	u32 ldy, tiles, block0;
	int type;
};
struct gm_args {
	gm_seg seg[3];
	const u8 *w2;
	u32 nseg, n, cols, groups, groups_out, splits;
	u32 wm;                /* pairs of tiles of a block */
	bool mixed;            /* Q4_K and Q6_K segments in one launch */
	size_t apart;          /* floats from one part of k to the next, left unadded; or 0 */
	const u8 *act;
	const float *act_scale;
	float scale, act_out_scale;
	int mode;
	unsigned short *act_out;
	float *partial;
	u32 *count;
};

/*
 * For up to 64 tokens: a block has four pairs of tiles, two blocks an SM; or five,
 * one block an SM with ten warps, where that fits the rows into one wave. 64
 * tokens take too many registers for two.
 */
constexpr u32 gs_blocks(u32 nt, u32 wm) { return nt <= 5 && wm == 4 ? 2 : 1; }

/* gemm_free.cuh: blocks an SM, and the warps that share a pair, each with its slice of k */
constexpr u32 gf_blocks(u32 wm) { return wm == 1 ? 5 : 2; }
constexpr u32 gf_slices(u32 wm) { return wm == 1 ? 4 : 2; }

int gm_f16(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k);
int gm_q4_0(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k);
int gm_q4_1(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k);
int gm_q5_0(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k);
int gm_q5_1(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k);
int gm_q8_0(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k);
int gm_q4_k(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k);
int gm_q5_k(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k);
int gm_q6_k(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k);
int gf_q4_k(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k);
int gf_q6_k(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k);
int gf_mixed(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k);
int gw_q4_k(void *st, u32 shape, u32 tm, dim3 grid, bool pdl, const gm_args &k);
int gw_q6_k(void *st, u32 shape, u32 tm, dim3 grid, bool pdl, const gm_args &k);
int gw_mixed(void *st, u32 shape, u32 tm, dim3 grid, bool pdl, const gm_args &k);

/* Weights are blown up by this before they become halves, so that the small
 * steps of small weights do not fall among F16's subnormals. */
#define GM_UP 64.0f

#ifdef GM_BODY
/*
 * Two mma steps (16 weights of a row pair) of a tile: words jp and jp+4 of both
 * rows as halves, in A-operand order (act_pos has the order of k).
 */
template <int T>
CUDA_D void gm_a(const typename Tile<T>::Q &q, const u32 s2[Tile<T>::HALVES][2], const u32 m2[2], int jp,
		 u32 a0[4], u32 a1[4])
{
	const u32 off = Tile<T>::ULO ? 0xe400e400u : 0xe480e480u;   /* -1024, -1152 */

#pragma unroll
	for (int r = 0; r < 2; r++) {
#pragma unroll
		for (int e = 0; e < 2; e++) {
			u32 w = Tile<T>::word(q, r, jp + e * 4), lo, hi;
			const u32 s = s2[e % Tile<T>::HALVES][r];

			if (!Tile<T>::ULO)
				w ^= 0x80808080u;
			lo = h2_add(prmt(w, 0x64646464u, 0x4240), off);
			hi = h2_add(prmt(w, 0x64646464u, 0x4341), off);
			if (Tile<T>::MIN) {
				lo = h2_fma(lo, s, m2[r]);
				hi = h2_fma(hi, s, m2[r]);
			} else {
				lo = h2_mul(lo, s);
				hi = h2_mul(hi, s);
			}
			(e ? a1 : a0)[r] = lo;
			(e ? a1 : a0)[2 + r] = hi;
		}
	}
}
template <>
__device__ __forceinline__ void gm_a<T_F16>(const q_half &q, const u32 (*)[2], const u32 *, int jp,
					     u32 a0[4], u32 a1[4])
{
#pragma unroll
	for (int r = 0; r < 2; r++) {
		uint4 v = q.v[r * 4 + jp];

		a0[r] = v.x;
		a0[2 + r] = v.y;
		a1[r] = v.z;
		a1[2 + r] = v.w;
	}
}

/* Scales of block column b, for each of its halves, as half pairs. */
template <int T>
CUDA_D void gm_scale(const typename Tile<T>::S &s, int b, u32 s2[Tile<T>::HALVES][2], u32 m2[2])
{
#pragma unroll
	for (int h = 0; h < Tile<T>::HALVES; h++) {
#pragma unroll
		for (int r = 0; r < 2; r++) {
			float sc, m;

			Tile<T>::scale(s, r, b, h, sc, m);
			s2[h][r] = f2h2(sc * GM_UP, sc * GM_UP);
			m2[r] = f2h2(m * GM_UP, m * GM_UP);
		}
	}
}
template <>
__device__ __forceinline__ void gm_scale<T_F16>(const Tile<T_F16>::S &, int, u32 (*)[2], u32 *)
{
}

/*
 * A block: WM pairs of tiles, NT groups of 8 tokens a warp. KS 2: two warps share
 * a pair, each with one block column of every unit; KS 1: one warp does both,
 * and WN warps share the weights, each with its own tokens.
 */
template <int T, int NT, int WN, int KS> struct gm_cfg {
	enum {
		NB = NT * WN * 8, WM = 4, LANES = 32 * WM * WN, THREADS = LANES * KS, STAGE = NB * 512,
		STAGES = NB <= 40 ? 3 : 2, SMEM = STAGE * STAGES,
		BLOCKS = 1,
		JM = NT < 2 ? 1 : NT == 3 ? 3 : 2,        /* token groups whose products go together */
		NJ = KS == 2 ? (NT + 1) / 2 : NT,         /* token groups a warp finishes */
		JB = NJ < 4 ? NJ : 4                      /* of which so many at once */
	};
	static_assert(SMEM <= (int)HK_SMEM_MAX, "more shared memory than a block has");
};

/*
 * Sums to where they go: o[.][i] is of token group first + i * step of those of
 * @NT that begin at token n_base.
 */
template <typename C, int T, int NT>
CUDA_D void gm_store(const gm_args &a, const gm_seg &sg, u32 tile0, bool on0, bool on1, u32 n_base,
		     u32 first, u32 step, const float (&o)[2][C::NJ][4])
{
	const u32 g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
	const bool glu = a.mode == HK_SWIGLU;
	auto group_of = [&](int i) { return first + (u32)i * step; };

	/*
	 * What is added to is asked for before anything is stored, some groups at a
	 * time: one load after the other, each behind a store, took longer than
	 * the product.
	 */
	const float up = a.scale * (T == T_F16 ? 1.0f : 1.0f / GM_UP);
	float bias[2][2] = { { 0, 0 }, { 0, 0 } };
	/* A tile's rows g and g + 8 for token 0 (act_pos): two apart in sp. */
	float *const to = sg.y + blockIdx.z * a.apart;
	unsigned short *const out = a.act_out + (glu ? act_pos(0, tile0 * 16 + g, 0, a.groups_out) : 0);

	if (!glu && a.mode == HK_STORE && sg.bias && (!a.apart || blockIdx.z == 0))
#pragma unroll
		for (int m = 0; m < 2; m++)
#pragma unroll
			for (int r = 0; r < 2; r++)
				bias[m][r] = (m ? on1 : on0) ? sg.bias[(tile0 + m) * 16 + g + 8 * r] : 0;
#pragma unroll
	for (int i0 = 0; i0 < C::NJ; i0 += C::JB) {
		float f[C::JB][2], y[2][C::JB][4];

#pragma unroll
		for (int k = 0; k < C::JB; k++) {
			const u32 n0 = n_base + group_of(i0 + k) * 8 + t * 2;

#pragma unroll
			for (int e = 0; e < 2; e++)
				f[k][e] = a.act_scale && n0 + e < a.n ? up * a.act_scale[n0 + e] : up;
#pragma unroll
			for (int m = 0; m < 2; m++)
#pragma unroll
				for (int e = 0; e < 4; e++)
					y[m][k][e] = a.mode == HK_ADD && (m ? on1 : on0) && n0 + e % 2 < a.n && group_of(i0 + k) < NT
						? to[(size_t)(n0 + e % 2) * sg.ldy + (tile0 + m) * 16 + g + e / 2 * 8]
						: bias[m][e / 2];
		}
#pragma unroll
		for (int k = 0; k < C::JB; k++) {
			const int i = i0 + k;

			if (i >= C::NJ || group_of(i) >= NT)
				continue;
#pragma unroll
			for (int e = 0; e < 4; e++) {
				const u32 n = n_base + group_of(i) * 8 + t * 2 + e % 2;
				const u32 r = g + e / 2 * 8;

				if (n >= a.n)
					continue;
				if (glu) {
					float x = o[0][i][e] * f[k][e % 2], v = o[1][i][e] * f[k][e % 2];

					if (on0)
						out[(n / 8 * 256 + n % 8 * 4) * 8 + e / 2 * 512] =
							f2h(fast_div(x, 1 + fast_exp(-x)) * v * a.act_out_scale);
					continue;
				}
#pragma unroll
				for (int m = 0; m < 2; m++)
					if (m ? on1 : on0)
						to[(size_t)n * sg.ldy + (tile0 + m) * 16 + r] =
							o[m][i][e] * f[k][e % 2] + y[m][k][e];
			}
		}
	}
}

/* From a warp's sums to where they go. Shared memory is free to be used again. */
template <typename C, int T, int NT, int WN, int KS>
CUDA_D void gm_finish(const gm_args &a, const gm_seg &sg, u32 tile0, bool on0, bool on1, u32 wn, u32 kb,
		      const float (&acc)[2][NT][4], unsigned char *smem)
{
	const u32 tid = threadIdx.x % C::LANES;

	/* Of two warps that share tiles, each finishes every other token group. */
	float o[2][C::NJ][4];

	if (KS == 2) {
		float4 *ex = (float4 *)smem;

		__syncthreads();
#pragma unroll
		for (int m = 0; m < 2; m++)
#pragma unroll
			for (int j = 0; j < NT; j++)
				if (j % 2 != (int)kb)
					ex[(m * NT + j) * C::LANES + tid] = make_float4(acc[m][j][0], acc[m][j][1],
										   acc[m][j][2], acc[m][j][3]);
		__syncthreads();
#pragma unroll
		for (int m = 0; m < 2; m++)
#pragma unroll
			for (int i = 0; i < C::NJ; i++) {
				const int j1 = 2 * i + 1 < NT ? 2 * i + 1 : 0;
				const u32 j = 2 * i + kb;
				float4 v = make_float4(0, 0, 0, 0);

				if (j < NT)
					v = ex[(m * NT + j) * C::LANES + tid];
				o[m][i][0] = (kb ? acc[m][j1][0] : acc[m][2 * i][0]) + v.x;
				o[m][i][1] = (kb ? acc[m][j1][1] : acc[m][2 * i][1]) + v.y;
				o[m][i][2] = (kb ? acc[m][j1][2] : acc[m][2 * i][2]) + v.z;
				o[m][i][3] = (kb ? acc[m][j1][3] : acc[m][2 * i][3]) + v.w;
			}
	} else {
#pragma unroll
		for (int m = 0; m < 2; m++)
#pragma unroll
			for (int j = 0; j < C::NJ; j++)
#pragma unroll
				for (int e = 0; e < 4; e++)
					o[m][j][e] = acc[m][j][e];
	}
	/* o[.][i] is of token group group_of(i) */
	auto group_of = [&](int i) { return KS == 2 ? 2 * (u32)i + kb : (u32)i; };

	if (a.splits > 1 && !a.apart) {
		const u32 id = blockIdx.y * gridDim.x + blockIdx.x, per = 32 * C::WM * C::NB;
		float4 *p = (float4 *)(a.partial + (size_t)id * a.splits * per);
		u32 *flag = (u32 *)smem;

#pragma unroll
		for (int m = 0; m < 2; m++)
#pragma unroll
			for (int i = 0; i < C::NJ; i++)
				if (group_of(i) < NT)
					p[blockIdx.z * (per / 4) + (m * NT + group_of(i)) * C::LANES + tid] =
						make_float4(o[m][i][0], o[m][i][1], o[m][i][2], o[m][i][3]);
		__threadfence();
		__syncthreads();
		if (threadIdx.x == 0) {
			*flag = atomicAdd(&a.count[id], 1u);
			if (*flag == a.splits - 1)
				a.count[id] = 0;
		}
		__syncthreads();
		if (*flag != a.splits - 1)
			return;
		__threadfence();
#pragma unroll
		for (int m = 0; m < 2; m++)
#pragma unroll
			for (int i = 0; i < C::NJ; i++)
#pragma unroll
				for (int e = 0; e < 4; e++)
					o[m][i][e] = 0;
		/* Two parts' loads are all in flight before they are added. */
#pragma unroll 2
		for (u32 z = 0; z < a.splits; z++) {
			float4 v[2][C::NJ];

#pragma unroll
			for (int m = 0; m < 2; m++)
#pragma unroll
				for (int i = 0; i < C::NJ; i++)
					if (group_of(i) < NT)
						v[m][i] = p[z * (per / 4) + (m * NT + group_of(i)) * C::LANES + tid];
#pragma unroll
			for (int m = 0; m < 2; m++)
#pragma unroll
				for (int i = 0; i < C::NJ; i++)
					if (group_of(i) < NT) {
						o[m][i][0] += v[m][i].x;
						o[m][i][1] += v[m][i].y;
						o[m][i][2] += v[m][i].z;
						o[m][i][3] += v[m][i].w;
					}
		}
	}
	gm_store<C, T, NT>(a, sg, tile0, on0, on1, blockIdx.y * C::NB + wn * NT * 8, KS == 2 ? kb : 0, KS == 2 ? 2 : 1, o);
}

template <int T, int NT, int WN, int KS>
static __global__ void __launch_bounds__(gm_cfg<T, NT, WN, KS>::THREADS, gm_cfg<T, NT, WN, KS>::BLOCKS)
gemm(const __grid_constant__ gm_args a)
{
	typedef gm_cfg<T, NT, WN, KS> C;
	typedef typename Tile<T>::Q Q;
	typedef typename Tile<T>::S S;
	enum { K = T == T_Q4_K || T == T_Q5_K || T == T_Q6_K };   /* whole units only */
	HK_SMEM(smem);
	const u32 units = tile_units(a.cols), UB = TILE_ROWS * Bytes<T>::V;
	const u32 nt_last = tile_nt(a.cols, units - 1);
	const size_t tile_bytes = (size_t)(units - 1) * UB + UB / 4 * nt_last;
	const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
	const u32 kb = KS == 2 ? warp / C::WM : 0, wm = KS == 2 ? warp % C::WM : warp / WN;
	const u32 wn = KS == 2 ? 0 : warp % WN;
	const bool glu = a.mode == HK_SWIGLU;
	const u32 u0 = blockIdx.z * units / a.splits, u1 = (blockIdx.z + 1) * units / a.splits;
	u32 si = 0;

	while (si + 1 < a.nseg && blockIdx.x >= a.seg[si + 1].block0)
		si++;
	const gm_seg &sg = a.seg[si];
	const u32 bx = blockIdx.x - sg.block0;
	/* A warp's pair of tiles: neighbours, or the same rows of gate and up. A tile
	 * beyond the matrix reads the first instead, and is not stored. */
	const u32 tile0 = glu ? bx * C::WM + wm : (bx * C::WM + wm) * 2;
	const bool on0 = tile0 < sg.tiles, on1 = glu ? on0 : tile0 + 1 < sg.tiles;
	const u8 *const w0 = sg.w + (size_t)(on0 ? tile0 : 0) * tile_bytes;
	const ptrdiff_t hop = glu ? a.w2 - sg.w : on1 ? (ptrdiff_t)tile_bytes : 0;

	Q q[2][2];      /* KS 2: [unit's parity][m]; KS 1: [block column][m] */
	S sc[2];        /* of the unit that comes next, once a unit's are halves */
	float acc[2][NT][4];

	auto load_q = [&](u32 u, int p) {
		const int nt = !K && u + 1 == units ? (int)nt_last : 4;
		const int b = KS == 2 ? (int)kb : p;

#pragma unroll
		for (int m = 0; m < 2; m++) {
			if (K || (int)t < nt) {
				Tile<T>::load_q(q[p][m], w0 + (size_t)u * UB + (m ? hop : 0), (int)g * nt + (int)t, nt, b);
			} else {
				S z;
				Tile<T>::zero(q[p][m], z);
			}
		}
	};
	auto load_s = [&](u32 u) {
		const int nt = !K && u + 1 == units ? (int)nt_last : 4;

#pragma unroll
		for (int m = 0; m < 2; m++) {
			if (K || (int)t < nt) {
				Tile<T>::load_s(sc[m], w0 + (size_t)u * UB + (m ? hop : 0), (int)g, (int)g * nt + (int)t, nt);
			} else {
				Q z;
				Tile<T>::zero(z, sc[m]);
			}
		}
	};

	if (u0 < u1) {
		load_q(u0, 0);
		load_s(u0);
		if (KS == 1 || u0 + 1 < u1)
			load_q(KS == 1 ? u0 : u0 + 1, 1);
	}
	pdl_go();
	pdl_wait();

	/*
	 * A unit's stage: NB / 8 groups of 4096 bytes, contiguous in global memory.
	 * Units come one after the other, so the ring is two running places.
	 */
	const u8 *src = a.act + (size_t)blockIdx.y * C::NB / 8 * 4096 + (size_t)u0 * a.groups * 4096 + threadIdx.x * 16;
	u32 left = u1 - u0, to = threadIdx.x * 16, from = wn * NT * 4096 + kb * 2048 + lane * 16;
	auto fetch = [&]() {
		if (left) {
#pragma unroll
			for (u32 i = 0; i < C::STAGE; i += C::THREADS * 16)
				if (C::STAGE % (C::THREADS * 16) == 0 || i + threadIdx.x * 16 < C::STAGE)
					cp_async16(smem + to + i, src + i);
			src += a.groups * 4096;
			to = to >= C::STAGE * (C::STAGES - 1) ? to - C::STAGE * (C::STAGES - 1) : to + C::STAGE;
			left--;
		}
		cp_commit();
	};

#pragma unroll
	for (int i = 0; i < C::STAGES - 1; i++)
		fetch();
#pragma unroll
	for (int m = 0; m < 2; m++)
#pragma unroll
		for (int j = 0; j < NT; j++)
#pragma unroll
			for (int e = 0; e < 4; e++)
				acc[m][j][e] = 0;

	for (u32 ub = u0; ub < u1; ub += KS) {
#pragma unroll
		for (int p = 0; p < 2; p++) {
			const u32 u = KS == 2 ? ub + p : ub;
			const int b = KS == 2 ? (int)kb : p;

			if (KS == 2 && u >= u1)
				break;
			const u8 *const st = smem + from + (KS == 1 ? p * 2048 : 0);

			if (KS == 2 || p == 0) {
				cp_wait<C::STAGES - 2>();
				__syncthreads();
				fetch();
			}
			u32 s2[2][Tile<T>::HALVES][2], m2[2][2];

#pragma unroll
			for (int m = 0; m < 2; m++)
				gm_scale<T>(sc[m], b, s2[m], m2[m]);
			if ((KS == 2 || p == 1) && u + 1 < u1)
				load_s(u + 1);
#pragma unroll
			for (int jp = 0; jp < 4; jp++) {
				u32 a0[2][4], a1[2][4];

#pragma unroll
				for (int m = 0; m < 2; m++)
					gm_a<T>(q[p][m], s2[m], m2[m], jp, a0[m], a1[m]);
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
								mma16816(acc[m][j0 + j], a0[m], v[j].x, v[j].y);
#pragma unroll
					for (int j = 0; j < C::JM; j++)
#pragma unroll
						for (int m = 0; m < 2; m++)
							if (j0 + j < NT)
								mma16816(acc[m][j0 + j], a1[m], v[j].z, v[j].w);
				}
			}
			if (u + KS < u1)
				load_q(u + KS, p);
			if (KS == 2 || p == 1)
				from = from >= C::STAGE * (C::STAGES - 1) ? from - C::STAGE * (C::STAGES - 1)
									   : from + C::STAGE;
		}
	}
	cp_wait<0>();
	gm_finish<C, T, NT, WN, KS>(a, sg, tile0, on0, on1, wn, kb, acc, smem);
}

#include "kernels/gemm_few.cuh"

template <int T>
static int gm_launch(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k)
{
#define GM_GO(NT, WN, KS) HK_LAUNCH((gemm<T, NT, WN, KS>), grid, dim3(gm_cfg<T, NT, WN, KS>::THREADS), \
				    (gm_cfg<T, NT, WN, KS>::SMEM), st, pdl, k)
#define GM_FEW(T2, NT, WM) HK_LAUNCH((gemm_few<T, T2, NT, WM>), grid, dim3(gs_cfg<T, NT, WM>::THREADS), \
				     ((int)gs_cfg<T, NT, WM>::SMEM > (int)gs_cfg<T2, NT, WM>::SMEM ? \
				      (int)gs_cfg<T, NT, WM>::SMEM : (int)gs_cfg<T2, NT, WM>::SMEM), st, pdl, k)
	if constexpr (T == T_Q4_K) {
		if (k.mixed) {
			switch (shape) {
			case 1: return GM_FEW(T_Q6_K, 1, 4);
			case 2: return GM_FEW(T_Q6_K, 2, 4);
			case 3: return GM_FEW(T_Q6_K, 3, 4);
			case 5: return GM_FEW(T_Q6_K, 5, 5);
			case 8: return GM_FEW(T_Q6_K, 8, 4);
			default: return -EINVAL;
			}
		}
	}
	if constexpr (T == T_F16) {   /* its units are too large for shared memory */
		switch (shape) {
		case 1: return GM_GO(1, 1, 2);
		case 2: return GM_GO(2, 1, 2);
		case 3: return GM_GO(3, 1, 2);
		case 5: return GM_GO(5, 1, 2);
		case 8: return GM_GO(8, 1, 2);
		default: return GM_GO(8, 2, 1);
		}
	} else {
		switch (shape) {
		case 1: return GM_FEW(T, 1, 4);
		case 2: return GM_FEW(T, 2, 4);
		case 3: return GM_FEW(T, 3, 4);
		case 5:
			if constexpr (T == T_Q6_K || T == T_Q8_0)
				return GM_FEW(T, 5, 5);
			else
				return k.wm == 5 ? GM_FEW(T, 5, 5) : GM_FEW(T, 5, 4);
		case 8:
			if constexpr (T == T_Q6_K || T == T_Q8_0 || T == T_Q5_0)
				return GM_FEW(T, 8, 4);
			else
				return GM_FEW(T, 8, 5);
		default: return GM_GO(8, 2, 1);
		}
	}
#undef GM_FEW
#undef GM_GO
}
#endif /* GM_BODY */
#endif
