/* SPDX-License-Identifier: MIT */
/*
 * Decode: y[n, rows] = W[rows, cols] rmsnorm(x[n, cols]), n = 1 .. 4.
 *
 * Bytes moved: W once. A block first asks for its warps' first weights, then
 * (weights do not depend on the kernel before) waits for x, normalises it and
 * quantises it to int8 in shared memory, every block for itself: cheaper than
 * one more kernel between two. The units (tile.h) of a block's tiles form one
 * list that its eight warps share out evenly; a tile that falls to several
 * warps is summed at the end, in warp order, so the result does not depend on
 * timing.
 */
#include "kernels/launch.cuh"
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
	const u32 *row;
	float eps;
	int mode;
};

struct gv_smem {
	u8 *act;        /* [N][units * 256], see quantise() */
	float2 *ds;     /* [N][units * 8] scale, scale * sum */
	float *part;    /* [WARPS][2][2][16 * N] */
	float *red;     /* [32] */
};

template <int N> CUDA_D gv_smem gv_carve(unsigned char *p, u32 units)
{
	gv_smem s;

	s.act = p;
	s.ds = (float2 *)(p + N * units * 256);
	s.part = (float *)(p + N * units * (256 + 64));
	s.red = s.part + WARPS * 2 * 2 * 16 * N;
	return s;
}

/*
 * x to int8 in the order in which lanes read it: chunk c (16 of a lane's 64
 * weights) of all four t is 64 consecutive bytes, so a warp's load has no bank
 * conflict and is one broadcast.
 */
template <int N>
CUDA_D void gv_quantise(const gv_args &a, const gv_smem &s, u32 units)
{
	u32 nv = a.cols / 4, lane = threadIdx.x % 32;

#pragma unroll
	for (int n = 0; n < N; n++) {
		bool live = (u32)n < a.n;
		const float4 *x = (const float4 *)(a.x + (size_t)(live ? (a.row ? a.row[n] : (u32)n) : 0)
						   * a.ldx);
		float rms = 1;

		if (a.norm && live) {
			float ss = 0;

			for (u32 i = threadIdx.x; i < nv; i += THREADS) {
				float4 v = x[i];

				ss += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
			}
			ss = block_sum(ss, s.red);
			rms = rsqrtf(ss / (float)a.cols + a.eps);
		}
		for (u32 i0 = threadIdx.x - lane; i0 < units * 64; i0 += THREADS) {
			u32 i = i0 + lane, k = i * 4;
			float4 v = make_float4(0, 0, 0, 0);
			float amax, d, inv;
			int q0, q1, q2, q3, sum;

			if (live && i < nv) {
				v = x[i];
				if (a.norm) {
					float4 w = ((const float4 *)a.norm)[i];

					v.x *= rms * w.x;
					v.y *= rms * w.y;
					v.z *= rms * w.z;
					v.w *= rms * w.w;
				}
			}
			amax = fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
			amax = fmaxf(amax, shfl_xor_f(amax, 1));
			amax = fmaxf(amax, shfl_xor_f(amax, 2));
			amax = fmaxf(amax, shfl_xor_f(amax, 4));
			d = amax * (1.0f / 127);
			inv = amax > 0 ? 127 / amax : 0;
			q0 = (int)rintf(v.x * inv);
			q1 = (int)rintf(v.y * inv);
			q2 = (int)rintf(v.z * inv);
			q3 = (int)rintf(v.w * inv);
			sum = q0 + q1 + q2 + q3;
			sum += (int)shfl_xor_u((u32)sum, 1);
			sum += (int)shfl_xor_u((u32)sum, 2);
			sum += (int)shfl_xor_u((u32)sum, 4);
			if (i < units * 64) {
				u32 off = ((k / 256 * 4 + k % 64 / 16) * 4 + k % 256 / 64) * 16 + k % 16;

				*(u32 *)(s.act + n * units * 256 + off) =
					(u32)(q0 & 255) | (u32)(q1 & 255) << 8 |
					(u32)(q2 & 255) << 16 | (u32)q3 << 24;
				if (lane % 8 == 0)
					s.ds[n * units * 8 + k / 32] = make_float2(d, d * (float)sum);
			}
		}
	}
	__syncthreads();
}

template <int T, int N>
CUDA_D void gv_dot(const typename Tile<T>::Q &q, const typename Tile<T>::S &sc, int b,
		   const u8 *act, const float2 *ds, u32 pitch, float acc[2][N])
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
		uint4 a0 = *(const uint4 *)(act + n * pitch * 256);
		uint4 a1 = *(const uint4 *)(act + n * pitch * 256 + 64);
		float2 f = ds[n * pitch * 8];

#pragma unroll
		for (int r = 0; r < 2; r++) {
			int d0 = 0, d1;

			d0 = dp4a(w[r][0], a0.x, d0);
			d0 = dp4a(w[r][1], a0.y, d0);
			d0 = dp4a(w[r][2], a0.z, d0);
			d0 = dp4a(w[r][3], a0.w, d0);
			d1 = Tile<T>::HALVES == 2 ? 0 : d0;
			d1 = dp4a(w[r][4], a1.x, d1);
			d1 = dp4a(w[r][5], a1.y, d1);
			d1 = dp4a(w[r][6], a1.z, d1);
			d1 = dp4a(w[r][7], a1.w, d1);
			if (Tile<T>::HALVES == 2)
				acc[r][n] += f.x * (s[r][0] * (float)d0 + s[r][1] * (float)d1);
			else
				acc[r][n] += f.x * (s[r][0] * (float)d1);
			if (Tile<T>::MIN)
				acc[r][n] += m[r] * f.y;
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
	pdl_go();
	pdl_wait();
	gv_quantise<N>(a, sm, units);

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
						     sm.ds + u * 8 + 2 * t + b, units, acc[p]);
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

							acc[0][r][n] = acc[1][r][n] = 0;
							if (!pair)
								v += w;
							v += shfl_xor_f(v, 1);
							v += shfl_xor_f(v, 2);
							if (pair) {
								w += shfl_xor_f(w, 1);
								w += shfl_xor_f(w, 2);
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

		for (u32 e = lane; e < 16 * N; e += 32) {
			float v = sm.part[(warp * 2 + 1) * 32 * N + e];
			float w = sm.part[(warp * 2 + 1) * 32 * N + 16 * N + e];

			for (u32 o = warp + 1; o < WARPS && o * total / WARPS < end; o++) {
				if (o * total / WARPS == (o + 1) * total / WARPS)
					continue;
				v += sm.part[o * 2 * 32 * N + e];
				w += sm.part[o * 2 * 32 * N + 16 * N + e];
			}
			gv_store(a, sg, (u32)pending * 16 + e / N, e % N, v, w);
		}
	}
#undef GV_LOAD
}

/* SET 0: the types of a Q4_K_M file, in few registers; 1: all others. */
template <int N, int SET>
static __global__ void __launch_bounds__(THREADS, 2) gemv(const __grid_constant__ gv_args a)
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

static bool gv_type(int t)
{
	return t == T_Q4_0 || t == T_Q4_1 || t == T_Q5_0 || t == T_Q5_1 || t == T_Q8_0 ||
	       t == T_Q4_K || t == T_Q5_K || t == T_Q6_K;
}

extern "C" int hk_gemv(void *st, const struct hk_dev_info *d, const struct hk_gemv *a)
{
	struct gv_args k = {};
	u32 n = a->n <= 1 ? 1 : a->n <= 2 ? 2 : 4, units = tile_units(a->cols);
	size_t smem = (size_t)n * units * (256 + 64) + (WARPS * 2 * 2 * 16 * n + 32) * 4;
	u32 grid = 0, want = (u32)d->sms * 2, set = 0;
	u32 nseg = a->mode == HK_SWIGLU ? 1 : a->nseg;
	size_t bytes = 0;

	if (!a->n)
		return 0;
	if (a->n > HK_GEMV_MAX || !a->cols || a->cols % 64 || a->ldx % 4 || a->nseg > 3 || !a->nseg ||
	    (uintptr_t)a->x % 16 || (uintptr_t)a->norm % 16 || smem > 160 * 1024 ||
	    (a->mode == HK_SWIGLU && (a->nseg != 2 || a->seg[0].w.rows != a->seg[1].w.rows ||
				      a->seg[0].w.type != a->seg[1].w.type)))
		return -EINVAL;
	for (u32 i = 0; i < a->nseg; i++) {
		const struct hk_mat *w = &a->seg[i].w;

		if (!w->packed || !gv_type(w->type) || w->cols != a->cols || (uintptr_t)w->w % 16)
			return -EINVAL;
		if (w->type != T_Q4_K && w->type != T_Q6_K)
			set = 1;
		bytes += w->rows * w->row_bytes;
	}
	for (u32 i = 0; i < nseg; i++) {
		const struct hk_seg *s = &a->seg[i];
		struct gv_seg *o = &k.seg[i];
		u32 tiles = s->w.rows / TILE_ROWS, c;

		o->w = (const u8 *)s->w.w;
		o->w2 = a->mode == HK_SWIGLU ? (const u8 *)a->seg[1].w.w : o->w;
		o->bias = s->bias;
		o->y = s->y;
		o->ldy = s->ldy;
		o->type = s->w.type;
		o->tiles = tiles;
		o->cta0 = grid;
		c = nseg == 1 ? want : (u32)(want * (s->w.rows * s->w.row_bytes) / bytes);
		c = c < 1 ? 1 : c > tiles ? tiles : c;
		o->ctas = c;
		grid += c;
	}
	if (!grid)
		return 0;
	k.nseg = nseg;
	k.n = a->n;
	k.cols = a->cols;
	k.ldx = a->ldx;
	k.x = a->x;
	k.norm = a->norm;
	k.row = a->row;
	k.eps = a->eps;
	k.mode = a->mode;
	if (set == 0)
		return n == 1 ? HK_LAUNCH((gemv<1, 0>), dim3(grid), dim3(THREADS), smem, st, hk_pdl, k)
		     : n == 2 ? HK_LAUNCH((gemv<2, 0>), dim3(grid), dim3(THREADS), smem, st, hk_pdl, k)
			      : HK_LAUNCH((gemv<4, 0>), dim3(grid), dim3(THREADS), smem, st, hk_pdl, k);
	return n == 1 ? HK_LAUNCH((gemv<1, 1>), dim3(grid), dim3(THREADS), smem, st, hk_pdl, k)
	     : n == 2 ? HK_LAUNCH((gemv<2, 1>), dim3(grid), dim3(THREADS), smem, st, hk_pdl, k)
		      : HK_LAUNCH((gemv<4, 1>), dim3(grid), dim3(THREADS), smem, st, hk_pdl, k);
}
