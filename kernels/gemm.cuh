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
};
struct gm_args {
	gm_seg seg[3];
	const u8 *w2;
	u32 nseg, n, cols, groups, groups_out, splits;
	const u8 *act;
	const float *act_scale;
	float scale, act_out_scale;
	int mode;
	unsigned short *act_out;
	float *partial;
	u32 *count;
};

int gm_f16(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k);
int gm_q4_0(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k);
int gm_q4_1(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k);
int gm_q5_0(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k);
int gm_q5_1(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k);
int gm_q8_0(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k);
int gm_q4_k(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k);
int gm_q5_k(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k);
int gm_q6_k(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k);

/* Weights are blown up by this before they become halves, so that the small
 * steps of small weights do not fall among F16's subnormals. */
#define GM_UP 64.0f

#ifdef GM_BODY
/*
 * Two mma steps (16 weights of a row pair) of a tile: words jp*2 and jp*2+1 of
 * both rows as halves, in A-operand order.
 */
template <int T>
CUDA_D void gm_a(const typename Tile<T>::Q &q, const u32 s2[2], const u32 m2[2], int jp,
		 u32 a0[4], u32 a1[4])
{
	const u32 off = Tile<T>::ULO ? 0xe400e400u : 0xe480e480u;   /* -1024, -1152 */

#pragma unroll
	for (int r = 0; r < 2; r++) {
#pragma unroll
		for (int e = 0; e < 2; e++) {
			u32 w = Tile<T>::word(q, r, jp * 2 + e), lo, hi;

			if (!Tile<T>::ULO)
				w ^= 0x80808080u;
			lo = h2_add(prmt(w, 0x64646464u, 0x4140), off);
			hi = h2_add(prmt(w, 0x64646464u, 0x4342), off);
			if (Tile<T>::MIN) {
				lo = h2_fma(lo, s2[r], m2[r]);
				hi = h2_fma(hi, s2[r], m2[r]);
			} else {
				lo = h2_mul(lo, s2[r]);
				hi = h2_mul(hi, s2[r]);
			}
			(e ? a1 : a0)[r] = lo;
			(e ? a1 : a0)[2 + r] = hi;
		}
	}
}
template <>
__device__ __forceinline__ void gm_a<T_F16>(const q_half &q, const u32 *, const u32 *, int jp,
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

/* Scales of block column b, for half h of it, as half pairs. */
template <int T>
CUDA_D void gm_scale(const typename Tile<T>::S &s, int b, int h, u32 s2[2], u32 m2[2])
{
#pragma unroll
	for (int r = 0; r < 2; r++) {
		float sc, m;

		Tile<T>::scale(s, r, b, h, sc, m);
		s2[r] = f2h2(sc * GM_UP, sc * GM_UP);
		m2[r] = f2h2(m * GM_UP, m * GM_UP);
	}
}
template <>
__device__ __forceinline__ void gm_scale<T_F16>(const Tile<T_F16>::S &, int, int, u32 *, u32 *)
{
}

template <int T, int NT, int WN> struct gm_cfg {
	enum {
		NB = NT * WN * 8, THREADS = 128 * WN, STAGE = NB * 512,
		STAGES = NB <= 32 ? 3 : 2, SMEM = STAGE * STAGES,
		BLOCKS = WN == 2 ? 1 : NT == 8 || T == T_F16 ? 2 : 3   /* an SM, as the registers allow */
	};
};

template <int T, int NT, int WN>
static __global__ void __launch_bounds__(gm_cfg<T, NT, WN>::THREADS, gm_cfg<T, NT, WN>::BLOCKS)
gemm(const __grid_constant__ gm_args a)
{
	typedef gm_cfg<T, NT, WN> C;
	typedef typename Tile<T>::Q Q;
	typedef typename Tile<T>::S S;
	enum { K = T == T_Q4_K || T == T_Q5_K || T == T_Q6_K };   /* whole units only */
	HK_SMEM(smem);
	const u32 units = tile_units(a.cols), UB = TILE_ROWS * Bytes<T>::V;
	const u32 nt_last = tile_nt(a.cols, units - 1);
	const size_t tile_bytes = (size_t)(units - 1) * UB + UB / 4 * nt_last;
	const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
	const u32 wm = warp / WN, wn = warp % WN;
	const bool glu = a.mode == HK_SWIGLU;
	const u32 u0 = blockIdx.z * units / a.splits, u1 = (blockIdx.z + 1) * units / a.splits;
	u32 si = 0;

	while (si + 1 < a.nseg && blockIdx.x >= a.seg[si + 1].block0)
		si++;
	const gm_seg &sg = a.seg[si];
	const u32 bx = blockIdx.x - sg.block0;
	u32 tile[2];
	const u8 *wp[2];
	bool on[2];

#pragma unroll
	for (int m = 0; m < 2; m++) {
		tile[m] = glu ? bx * 4 + wm : bx * 8 + wm * 2 + m;
		on[m] = tile[m] < sg.tiles;
		wp[m] = (glu && m ? a.w2 : sg.w) + (size_t)(on[m] ? tile[m] : 0) * tile_bytes;
	}

	Q q[2][2];      /* [b][m] */
	S sc[2], sn[2]; /* this unit's, the next one's */
	float acc[2][NT][4];

	/* A tile beyond the matrix reads tile 0, and is not stored. */
#define GM_LOAD_Q(u, b) do { \
		int nt_ = !K && (u) + 1 == units ? (int)nt_last : 4; \
		_Pragma("unroll") \
		for (int m_ = 0; m_ < 2; m_++) { \
			if (K || (int)t < nt_) { \
				Tile<T>::load_q(q[b][m_], wp[m_] + (size_t)(u) * UB, (int)g * nt_ + (int)t, nt_, b); \
			} else { \
				S z_; \
				Tile<T>::zero(q[b][m_], z_); \
			} \
		} \
	} while (0)
#define GM_LOAD_S(u) do { \
		int nt_ = !K && (u) + 1 == units ? (int)nt_last : 4; \
		_Pragma("unroll") \
		for (int m_ = 0; m_ < 2; m_++) { \
			if (K || (int)t < nt_) { \
				Tile<T>::load_s(sn[m_], wp[m_] + (size_t)(u) * UB, (int)g, (int)g * nt_ + (int)t, nt_); \
			} else { \
				Q z_; \
				Tile<T>::zero(z_, sn[m_]); \
			} \
		} \
	} while (0)

	if (u0 < u1) {
		GM_LOAD_Q(u0, 0);
		GM_LOAD_Q(u0, 1);
		GM_LOAD_S(u0);
	}
	pdl_go();
	pdl_wait();

	/* Stage of unit u: NB / 8 groups of 4096 bytes, contiguous in global memory. */
	const u8 *act = a.act + (size_t)blockIdx.y * C::NB / 8 * 4096;
	auto fetch = [&](u32 u) {
		if (u < u1) {
			const u8 *src = act + (size_t)u * a.groups * 4096;
			u8 *dst = smem + (u - u0) % C::STAGES * C::STAGE;

#pragma unroll 4
			for (u32 i = threadIdx.x; i < C::STAGE / 16; i += C::THREADS)
				cp_async16(dst + i * 16, src + i * 16);
		}
		cp_commit();
	};

#pragma unroll
	for (int i = 0; i < C::STAGES - 1; i++)
		fetch(u0 + i);
#pragma unroll
	for (int m = 0; m < 2; m++)
#pragma unroll
		for (int j = 0; j < NT; j++)
#pragma unroll
			for (int e = 0; e < 4; e++)
				acc[m][j][e] = 0;

	for (u32 u = u0; u < u1; u++) {
		const u8 *st = smem + (u - u0) % C::STAGES * C::STAGE + wn * NT * 4096 + lane * 16;

		cp_wait<C::STAGES - 2>();
		__syncthreads();
		fetch(u + C::STAGES - 1);
#pragma unroll
		for (int m = 0; m < 2; m++)
			sc[m] = sn[m];
		if (u + 1 < u1)
			GM_LOAD_S(u + 1);
#pragma unroll
		for (int b = 0; b < 2; b++) {
			u32 s2[2][2], m2[2][2];

#pragma unroll
			for (int jp = 0; jp < 4; jp++) {
				u32 a0[2][4], a1[2][4];

				if (jp == 0 || (Tile<T>::HALVES == 2 && jp == 2))
#pragma unroll
					for (int m = 0; m < 2; m++)
						gm_scale<T>(sc[m], b, jp / 2, s2[m], m2[m]);
#pragma unroll
				for (int m = 0; m < 2; m++)
					gm_a<T>(q[b][m], s2[m], m2[m], jp, a0[m], a1[m]);
#pragma unroll
				for (int j = 0; j < NT; j++) {
					uint4 v = *(const uint4 *)(st + j * 4096 + (b * 4 + jp) * 512);
#pragma unroll
					for (int m = 0; m < 2; m++) {
						mma16816(acc[m][j], a0[m], v.x, v.y);
						mma16816(acc[m][j], a1[m], v.z, v.w);
					}
				}
			}
			if (u + 1 < u1)
				GM_LOAD_Q(u + 1, b);
		}
	}
	cp_wait<0>();
#undef GM_LOAD_Q
#undef GM_LOAD_S

	if (a.splits > 1) {
		const u32 id = blockIdx.y * gridDim.x + blockIdx.x, per = 128 * C::NB;
		float4 *p = (float4 *)(a.partial + (size_t)id * a.splits * per);
		u32 *flag = (u32 *)smem;

#pragma unroll
		for (int m = 0; m < 2; m++)
#pragma unroll
			for (int j = 0; j < NT; j++)
				p[blockIdx.z * (per / 4) + (m * NT + j) * C::THREADS + threadIdx.x] =
					make_float4(acc[m][j][0], acc[m][j][1], acc[m][j][2], acc[m][j][3]);
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
			for (int j = 0; j < NT; j++)
#pragma unroll
				for (int e = 0; e < 4; e++)
					acc[m][j][e] = 0;
		/* A part's loads are all in flight before the next is added. */
#pragma unroll 2
		for (u32 z = 0; z < a.splits; z++) {
			float4 v[2][NT];

#pragma unroll
			for (int m = 0; m < 2; m++)
#pragma unroll
				for (int j = 0; j < NT; j++)
					v[m][j] = p[z * (per / 4) + (m * NT + j) * C::THREADS + threadIdx.x];
#pragma unroll
			for (int m = 0; m < 2; m++)
#pragma unroll
				for (int j = 0; j < NT; j++) {
					acc[m][j][0] += v[m][j].x;
					acc[m][j][1] += v[m][j].y;
					acc[m][j][2] += v[m][j].z;
					acc[m][j][3] += v[m][j].w;
				}
		}
	}

	const float up = a.scale * (T == T_F16 ? 1.0f : 1.0f / GM_UP);

#pragma unroll
	for (int j = 0; j < NT; j++) {
#pragma unroll
		for (int e = 0; e < 4; e++) {
			u32 n = blockIdx.y * C::NB + (wn * NT + j) * 8 + t * 2 + e % 2;
			u32 r = g + e / 2 * 8;
			float f;

			if (n >= a.n)
				continue;
			f = a.act_scale ? up * a.act_scale[n] : up;
			if (glu) {
				float x = acc[0][j][e] * f, y = acc[1][j][e] * f;

				if (on[0])
					a.act_out[act_pos(n, tile[0] * 16 + r, 0, a.groups_out)] =
						f2h(x / (1 + fast_exp(-x)) * y * a.act_out_scale);
				continue;
			}
#pragma unroll
			for (int m = 0; m < 2; m++) {
				u32 row = tile[m] * 16 + r;
				float *y = sg.y + (size_t)n * sg.ldy + row;
				float v = acc[m][j][e] * f;

				if (!on[m])
					continue;
				if (a.mode == HK_ADD)
					*y += v;
				else
					*y = sg.bias ? v + sg.bias[row] : v;
			}
		}
	}
}

template <int T>
static int gm_launch(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k)
{
#define GM_GO(NT, WN) HK_LAUNCH((gemm<T, NT, WN>), grid, dim3(gm_cfg<T, NT, WN>::THREADS), \
				(gm_cfg<T, NT, WN>::SMEM), st, pdl, k)
	switch (shape) {
	case 2: return GM_GO(2, 1);
	case 4: return GM_GO(4, 1);
	case 8: return GM_GO(8, 1);
	default: return GM_GO(8, 2);
	}
#undef GM_GO
}
#endif /* GM_BODY */
#endif
