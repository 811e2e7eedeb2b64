/* SPDX-License-Identifier: MIT */
/* The body of the GEMV (gemv.cu), compiled once per set of types. */
#ifndef HEARTH_KERNELS_GEMV_CUH
#define HEARTH_KERNELS_GEMV_CUH

#include "kernels/launch.cuh"
#include "kernels/q8.cuh"
#include "kernels/quant.cuh"

enum { WARPS = 8, THREADS = WARPS * 32 };

struct gv_seg {
	const u8 *w, *w2;      /* w2: the second matrix of a SwiGLU pair */
	const float *bias;
	float *y;
	u32 ldy, tiles, cta0, ctas;
	int type;
};
struct gv_args {
	gv_seg seg[3];
	u32 nseg, n, cols, ldx;
	const float *x, *norm;
	const u8 *q8;          /* or x already quantised, [n][q8_bytes(cols)] */
	u8 *q8_out;            /* SwiGLU: the product quantised, instead of y */
	const u32 *row;
	float eps;
	int mode;
};

int gv_main(void *st, u32 n, u32 grid, size_t smem, const gv_args &k);    /* Q4_K, Q6_K */
/* All types, a file for each number of rows, because they take long to compile. */
int gv_other1(void *st, u32 grid, size_t smem, const gv_args &k);
int gv_other2(void *st, u32 grid, size_t smem, const gv_args &k);
int gv_other4(void *st, u32 grid, size_t smem, const gv_args &k);

#ifdef GV_BODY

struct gv_smem {
	u8 *act;        /* [N][units * 384]: as above */
	float *part;    /* [WARPS][2][2][16 * N] */
	float *red;     /* [32 * N] */
};

template <int N> CUDA_D gv_smem gv_carve(unsigned char *p, u32 units)
{
	gv_smem s;

	s.act = p;
	s.part = (float *)(p + N * units * 384);
	s.red = s.part + WARPS * 2 * 2 * 16 * N;
	return s;
}

enum { GV_REGS = 3 };   /* float4 a thread keeps of a row: rows of 3072 in one pass */

/* What of the norm can be asked for before the kernel before has ended. */
struct gv_pre { float4 w[GV_REGS]; };

CUDA_D void gv_before(const gv_args &a, gv_pre &p)
{
	if (!a.norm || a.q8 || a.cols > GV_REGS * THREADS * 4)
		return;
#pragma unroll
	for (int i = 0; i < GV_REGS; i++)
		if (threadIdx.x + i * THREADS < a.cols / 4)
			p.w[i] = ((const float4 *)a.norm)[threadIdx.x + i * THREADS];
}

/* x to int8 in shared memory, normalised on the way when there is a norm. */
template <int N>
CUDA_D void gv_quantise(const gv_args &a, const gv_smem &s, u32 units, const gv_pre &pre)
{
	const u32 nv = a.cols / 4, tid = threadIdx.x, size = units * 384;

	if (a.q8) {
#pragma unroll 4
		for (u32 i = tid; i < a.n * size / 16; i += THREADS)
			cp_async16(s.act + i * 16, a.q8 + i * 16);
		cp_commit();
		/* rows of nobody: scales of zero */
		for (u32 n = a.n; n < N; n++)
			for (u32 i = tid; i < units * 16; i += THREADS)
				((float2 *)(s.act + n * size + units * 256))[i] = make_float2(0, 0);
		cp_wait<0>();
		__syncthreads();
		return;
	}
	if (N == 1 && nv <= GV_REGS * THREADS) {   /* one pass, the row in registers */
		const float4 *x = (const float4 *)(a.x + (size_t)(a.row ? a.row[0] : 0) * a.ldx);
		float4 v[GV_REGS];
		float rms = 1, ss = 0;

#pragma unroll
		for (int i = 0; i < GV_REGS; i++)
			v[i] = tid + i * THREADS < nv ? x[tid + i * THREADS] : make_float4(0, 0, 0, 0);
		if (a.norm) {
#pragma unroll
			for (int i = 0; i < GV_REGS; i++)
				ss += v[i].x * v[i].x + v[i].y * v[i].y + v[i].z * v[i].z + v[i].w * v[i].w;
			ss = warp_sum(ss);
			if (tid % 32 == 0)
				s.red[tid / 32] = ss;
			__syncthreads();
			ss = 0;
#pragma unroll
			for (int i = 0; i < WARPS; i++)
				ss += s.red[i];
			rms = rsqrtf(ss / (float)a.cols + a.eps);
		}
#pragma unroll
		for (int i = 0; i < GV_REGS; i++) {
			if ((u32)i * THREADS >= units * 64)
				break;
			if (a.norm && tid + i * THREADS < nv) {
				v[i].x *= rms * pre.w[i].x;
				v[i].y *= rms * pre.w[i].y;
				v[i].z *= rms * pre.w[i].z;
				v[i].w *= rms * pre.w[i].w;
			}
			q8_put4(s.act, units, (tid + i * THREADS) * 4, v[i], tid + i * THREADS < units * 64);
		}
		__syncthreads();
		return;
	}
	float ss[N];
#pragma unroll
	for (int n = 0; n < N; n++)
		ss[n] = 0;
	if (a.norm) {
		for (u32 i = tid; i < nv; i += THREADS) {
#pragma unroll
			for (int n = 0; n < N; n++) {
				if ((u32)n < a.n) {
					float4 v = ((const float4 *)(a.x + (size_t)(a.row ? a.row[n] : (u32)n) *
								     a.ldx))[i];

					ss[n] += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
				}
			}
		}
#pragma unroll
		for (int n = 0; n < N; n++) {
			ss[n] = warp_sum(ss[n]);
			if (tid % 32 == 0)
				s.red[n * 32 + tid / 32] = ss[n];
		}
		__syncthreads();
#pragma unroll
		for (int n = 0; n < N; n++) {
			ss[n] = 0;
#pragma unroll
			for (int i = 0; i < WARPS; i++)
				ss[n] += s.red[n * 32 + i];
			ss[n] = rsqrtf(ss[n] / (float)a.cols + a.eps);
		}
	}
	for (u32 i0 = tid - tid % 32; i0 < units * 64; i0 += THREADS) {
		const u32 i = i0 + tid % 32;
		float4 w = make_float4(1, 1, 1, 1);

		if (a.norm && i < nv)
			w = ((const float4 *)a.norm)[i];
#pragma unroll
		for (int n = 0; n < N; n++) {
			float4 v = make_float4(0, 0, 0, 0);
			const float rms = a.norm ? ss[n] : 1;

			if ((u32)n < a.n && i < nv) {
				v = ((const float4 *)(a.x + (size_t)(a.row ? a.row[n] : (u32)n) * a.ldx))[i];
				v.x *= rms * w.x;
				v.y *= rms * w.y;
				v.z *= rms * w.z;
				v.w *= rms * w.w;
			}
			q8_put4(s.act + n * size, units, i * 4, v, i < units * 64);
		}
	}
	__syncthreads();
}

template <int T, int N>
CUDA_D void gv_dot(const typename Tile<T>::Q &q, const typename Tile<T>::S &sc, int b,
		   const u8 *act, const float2 *ds, u32 size, float acc[2][N])
{
	u32 w[2][8];
	float s[2][2], m[2];

#pragma unroll
	for (int r = 0; r < 2; r++) {
#pragma unroll
		for (int j = 0; j < 8; j++)
			w[r][j] = Tile<T>::word(q, r, j);
#pragma unroll
		for (int h = 0; h < Tile<T>::HALVES; h++)
			Tile<T>::scale(sc, r, b, h, s[r][h], m[r]);
	}
#pragma unroll
	for (int n = 0; n < N; n++) {
		uint4 a0 = *(const uint4 *)(act + n * size);
		uint4 a1 = *(const uint4 *)(act + n * size + 64);
		float4 f = *(const float4 *)((const u8 *)ds + n * size);

#pragma unroll
		for (int r = 0; r < 2; r++) {
			int d0 = 0, d1 = 0;

			d0 = dp4a(w[r][0], a0.x, d0);
			d0 = dp4a(w[r][1], a0.y, d0);
			d0 = dp4a(w[r][2], a0.z, d0);
			d0 = dp4a(w[r][3], a0.w, d0);
			d1 = dp4a(w[r][4], a1.x, d1);
			d1 = dp4a(w[r][5], a1.y, d1);
			d1 = dp4a(w[r][6], a1.z, d1);
			d1 = dp4a(w[r][7], a1.w, d1);
			if (Tile<T>::HALVES == 2)
				acc[r][n] += f.x * s[r][0] * (float)d0 + f.z * s[r][1] * (float)d1;
			else
				acc[r][n] += s[r][0] * (f.x * (float)d0 + f.z * (float)d1);
			if (Tile<T>::MIN)
				acc[r][n] += m[r] * (f.y + f.w);
		}
	}
}

CUDA_D float gv_silu(float g) { return g / (1 + fast_exp(-g)); }

CUDA_D void gv_store(const gv_args &a, const gv_seg &s, u32 row, u32 n, float v, float up)
{
	float *y = s.y + (size_t)n * s.ldy + row;

	if (n >= a.n)
		return;
	if (a.mode == HK_SWIGLU)
		*y = gv_silu(v) * up;
	else if (a.mode == HK_ADD)
		*y += v;
	else
		*y = s.bias ? v + s.bias[row] : v;
}

/*
 * A tile's 16 products as one 16-group: rows g and g+8 are in registers, the
 * same in all four t; t = n writes token n.
 */
template <int N>
CUDA_D void gv_store_q8(const gv_args &a, const gv_seg &s, u32 tile, const float h[2][N])
{
	const u32 g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
	const u32 units = tile_units(s.tiles * 16), k = tile * 16;

#pragma unroll
	for (int n = 0; n < N; n++) {
		float amax = fmaxf(fabsf(h[0][n]), fabsf(h[1][n])), d, inv;
		int q0, q1, sum;

		amax = fmaxf(amax, shfl_xor_f(amax, 4));
		amax = fmaxf(amax, shfl_xor_f(amax, 8));
		amax = fmaxf(amax, shfl_xor_f(amax, 16));
		d = amax * (1.0f / 127);
		inv = amax > 0 ? 127 / amax : 0;
		q0 = (int)rintf(h[0][n] * inv);
		q1 = (int)rintf(h[1][n] * inv);
		sum = q0 + q1;
		sum += (int)shfl_xor_u((u32)sum, 4);
		sum += (int)shfl_xor_u((u32)sum, 8);
		sum += (int)shfl_xor_u((u32)sum, 16);
		if (t == (u32)n && (u32)n < a.n) {
			u8 *q8 = a.q8_out + (size_t)n * units * 384;

			q8[q8_chunk(k) * 16 + g] = (u8)q0;
			q8[q8_chunk(k) * 16 + g + 8] = (u8)q1;
			if (g == 0)
				((float2 *)(q8 + units * 256))[tile] = make_float2(d, d * (float)sum);
		}
	}
}

template <int T, int N>
CUDA_D void gv_run(const gv_args &a, const gv_seg &sg, u32 cta, unsigned char *smem)
{
	typedef typename Tile<T>::Q Q;
	typedef typename Tile<T>::S S;
	const u32 units = tile_units(a.cols), UB = TILE_ROWS * Bytes<T>::V;
	const u32 nt_last = tile_nt(a.cols, units - 1), last = UB / 4 * nt_last;
	const size_t tile_bytes = (size_t)(units - 1) * UB + last;
	const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
	const bool pair = a.mode == HK_SWIGLU;
	const u32 t0 = (u32)((unsigned long long)cta * sg.tiles / sg.ctas);
	const u32 t1 = (u32)((unsigned long long)(cta + 1) * sg.tiles / sg.ctas);
	const u32 total = (t1 - t0) * units;
	const u32 i0 = warp * total / WARPS, i1 = (warp + 1) * total / WARPS;
	gv_smem sm = gv_carve<N>(smem, units);
	Q q[2][2];
	S sc[2];
	float acc[2][2][N];
	/* the loading cursor */
	u32 lu = i0 % units, li = i0;
	const u8 *lp = sg.w + (size_t)(t0 + i0 / units) * tile_bytes + (size_t)lu * UB;
	const ptrdiff_t hop = pair ? sg.w2 - sg.w : 0;

	/* Loads unit li into buffer p; a pair's second unit is the same place of w2. */
#define GV_LOAD(p) do { \
		if (li < i1) { \
			int nt_ = lu + 1 == units ? (int)nt_last : 4; \
			if ((int)t < nt_) { \
				const u8 *u_ = lp + ((p) ? hop : 0); \
				int idx_ = (int)g * nt_ + (int)t; \
				Tile<T>::load_q(q[p][0], u_, idx_, nt_, 0); \
				Tile<T>::load_q(q[p][1], u_, idx_, nt_, 1); \
				Tile<T>::load_s(sc[p], u_, (int)g, idx_, nt_); \
			} else { \
				Tile<T>::zero(q[p][0], sc[p]); \
				Tile<T>::zero(q[p][1], sc[p]); \
			} \
			if (!pair || (p)) { \
				lp += lu + 1 == units ? last : UB; \
				lu = lu + 1 == units ? 0 : lu + 1; \
				li++; \
			} \
		} \
	} while (0)

	GV_LOAD(0);
	GV_LOAD(1);
	gv_pre pre = {};

	gv_before(a, pre);
	pdl_go();
	pdl_wait();
	gv_quantise<N>(a, sm, units, pre);

#pragma unroll
	for (int p = 0; p < 2; p++)
#pragma unroll
		for (int r = 0; r < 2; r++)
#pragma unroll
			for (int n = 0; n < N; n++)
				acc[p][r][n] = 0;

	u32 u = i0 % units, tile = t0 + i0 / units, i = i0;
	bool mine = u == 0;       /* this warp has the tile from its start */
	int pending = -1;         /* tile that starts here and goes on in the next warp */

	while (i < i1) {
#pragma unroll
		for (int p = 0; p < 2; p++) {
			if (i < i1) {
#pragma unroll
				for (int b = 0; b < 2; b++)
					gv_dot<T, N>(q[p][b], sc[p], b,
						     sm.act + ((u * 4 + 2 * b) * 4 + t) * 16,
						     (const float2 *)(sm.act + units * 256) +
							     u * 16 + t * 4 + 2 * b,
						     units * 384, acc[p]);
				GV_LOAD(p);
				if (!pair || p) {
					i++;
					u++;
				}
				if (u == units || (i == i1 && (!pair || p))) {
					bool done = u == units && mine;
					float *part = sm.part + (warp * 2 + (mine ? 1 : 0)) * 32 * N;

#pragma unroll
					for (int r = 0; r < 2; r++)
#pragma unroll
						for (int n = 0; n < N; n++) {
							float v = acc[0][r][n], w = acc[1][r][n];

							if (!pair)
								v += w;
							v += shfl_xor_f(v, 1);
							v += shfl_xor_f(v, 2);
							if (pair) {
								w += shfl_xor_f(w, 1);
								w += shfl_xor_f(w, 2);
							}
							if (done && pair && a.q8_out) {
								acc[0][r][n] = gv_silu(v) * w;
								continue;
							}
							if (t != (u32)n % 4)
								continue;
							if (done) {
								gv_store(a, sg, tile * 16 + g + 8 * r,
									 (u32)n, v, w);
							} else {
								part[(g + 8 * r) * N + n] = v;
								part[16 * N + (g + 8 * r) * N + n] = w;
							}
						}
					if (done && pair && a.q8_out)
						gv_store_q8<N>(a, sg, tile, acc[0]);
#pragma unroll
					for (int r = 0; r < 2; r++)
#pragma unroll
						for (int n = 0; n < N; n++)
							acc[0][r][n] = acc[1][r][n] = 0;
					if (mine && u != units)
						pending = (int)tile;
					if (u == units) {
						u = 0;
						tile++;
						mine = true;
					}
				}
			}
		}
	}
	__syncthreads();
	if (pending >= 0) {
		u32 end = ((u32)pending - t0 + 1) * units;

		float h[2][N];

		/* lane (g, t): rows g and g+8; all t alike, so that sums can be quantised */
#pragma unroll
		for (int r = 0; r < 2; r++) {
#pragma unroll
			for (int n = 0; n < N; n++) {
				const u32 e = (g + 8 * r) * N + n;
				float v = sm.part[(warp * 2 + 1) * 32 * N + e];
				float w = sm.part[(warp * 2 + 1) * 32 * N + 16 * N + e];

				for (u32 o = warp + 1; o < WARPS && o * total / WARPS < end; o++) {
					if (o * total / WARPS == (o + 1) * total / WARPS)
						continue;
					v += sm.part[o * 2 * 32 * N + e];
					w += sm.part[o * 2 * 32 * N + 16 * N + e];
				}
				h[r][n] = gv_silu(v) * w;
				if (!(pair && a.q8_out) && t == (u32)n)
					gv_store(a, sg, (u32)pending * 16 + g + 8 * r, (u32)n, v, w);
			}
		}
		if (pair && a.q8_out)
			gv_store_q8<N>(a, sg, (u32)pending, h);
	}
#undef GV_LOAD
}

/* SET 0: the types of a Q4_K_M file, in few registers; 1: all others. */
template <int N, int SET>
static __global__ void __launch_bounds__(THREADS, SET == 1 && N != 2 ? 1 : 2) gemv(const __grid_constant__ gv_args a)
{
	HK_SMEM(smem);
	u32 i = 0;

	while (i + 1 < a.nseg && blockIdx.x >= a.seg[i + 1].cta0)
		i++;
	const gv_seg &s = a.seg[i];
	u32 cta = blockIdx.x - s.cta0;

	if (SET == 0) {
		if (s.type == T_Q4_K)
			gv_run<T_Q4_K, N>(a, s, cta, smem);
		else
			gv_run<T_Q6_K, N>(a, s, cta, smem);
		return;
	}
	switch (s.type) {
	case T_Q4_0: gv_run<T_Q4_0, N>(a, s, cta, smem); break;
	case T_Q4_1: gv_run<T_Q4_1, N>(a, s, cta, smem); break;
	case T_Q5_0: gv_run<T_Q5_0, N>(a, s, cta, smem); break;
	case T_Q5_1: gv_run<T_Q5_1, N>(a, s, cta, smem); break;
	case T_Q8_0: gv_run<T_Q8_0, N>(a, s, cta, smem); break;
	case T_Q4_K: gv_run<T_Q4_K, N>(a, s, cta, smem); break;
	case T_Q5_K: gv_run<T_Q5_K, N>(a, s, cta, smem); break;
	default: gv_run<T_Q6_K, N>(a, s, cta, smem); break;
	}
}


template <int N, int SET>
static int gv_launch(void *st, u32 grid, size_t smem, const gv_args &k)
{
	return HK_LAUNCH((gemv<N, SET>), dim3(grid), dim3(THREADS), smem, st, hk_pdl, k);
}
#endif /* GV_BODY */
#endif
