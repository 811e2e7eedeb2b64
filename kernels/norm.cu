/* SPDX-License-Identifier: MIT */
/*
 * RMS norm of a row to halves in fragment order, for the GEMM. One block a
 * row; bytes: the row and the parts that are added to it, the row again (from
 * L1), halves out once. The row is
 * divided by a power of two that brings its largest value under 2048, so no
 * activation overflows F16 whatever the model does; the GEMM multiplies it in.
 */
#include "kernels/launch.cuh"
#include "kernels/tile.h"

enum { NM_QUADS = 2048 };   /* of a row, at most, for one batch of loads */

struct nm_args {
	float *x;
	const float *norm, *part;
	const u32 *row;
	unsigned short *act;
	float *act_scale;
	u32 cols, groups, parts;
	size_t stride;
	float eps;
};

/* Adds up to eight parts, all asked for before the first is added, in their order. */
CUDA_D void nm_add8(float4 &v, const float4 *part, size_t stride, u32 parts, bool live)
{
	float4 y[8];

#pragma unroll
	for (u32 p = 0; p < 8; p++)
		y[p] = live && p < parts ? ld_float4(part + p * stride) : make_float4(0, 0, 0, 0);
#pragma unroll
	for (u32 p = 0; p < 8; p++) {
		v.x += y[p].x;
		v.y += y[p].y;
		v.z += y[p].z;
		v.w += y[p].w;
	}
}

/*
 * Few rows, whose time is waiting: a thread has U groups of four channels, in registers
 * from first to last, and asks for a group and eight parts of it at once.
 */
template <int WARPS, int U>
static __global__ void __launch_bounds__(WARPS * 32, 1) norm_short(const __grid_constant__ nm_args a)
{
	__shared__ float2 red[32];
	const u32 n = blockIdx.x, i0 = threadIdx.x, quads = a.cols / 4;
	const float4 zero = make_float4(0, 0, 0, 0);
	float4 u[U], v[U];

	pdl_go();
#pragma unroll
	for (int k = 0; k < U; k++) {
		const u32 i = i0 + k * WARPS * 32;

		u[k] = !a.norm ? make_float4(1, 1, 1, 1) : i < quads ? ((const float4 *)a.norm)[i] : zero;
	}
	pdl_wait();
	float4 *const x = (float4 *)(a.x + (size_t)(a.row ? a.row[n] : n) * a.cols);
	const float4 *const part = (const float4 *)(a.part + (size_t)n * a.cols);
	const size_t stride = a.stride / 4;

#pragma unroll
	for (int k = 0; k < U; k++) {
		const u32 i = i0 + k * WARPS * 32;
		const bool live = i < quads;
		v[k] = live ? ld_float4(x + i) : zero;
		nm_add8(v[k], part + i, stride, a.parts, live);
		for (u32 p0 = 8; p0 < a.parts; p0 += 8)
			nm_add8(v[k], part + p0 * stride + i, stride, a.parts - p0, live);
		if (a.parts && live)
			x[i] = v[k];
	}
	float ss = 0, amax = 0, s1 = 0, rms;
#pragma unroll
	for (int k = 0; k < U; k++) {
		ss += v[k].x * v[k].x + v[k].y * v[k].y;
		s1 += v[k].z * v[k].z + v[k].w * v[k].w;
		v[k].x *= u[k].x;
		v[k].y *= u[k].y;
		v[k].z *= u[k].z;
		v[k].w *= u[k].w;
		amax = fmaxf(amax, fmaxf(fmaxf(fabsf(v[k].x), fabsf(v[k].y)), fmaxf(fabsf(v[k].z), fabsf(v[k].w))));
	}
	ss = warp_sum(ss + s1);
	amax = warp_max_pos(amax);
	if (threadIdx.x % 32 == 0)
		red[threadIdx.x / 32] = make_float2(ss, amax);
	__syncthreads();
	{
		/* a lane reads one warp's: all of them in every lane would be ten times the reads */
		const u32 i = threadIdx.x % 32;
		const float2 r = i < WARPS ? red[i] : make_float2(0, 0);

		ss = warp_sum(r.x);
		amax = warp_max_pos(r.y);
	}
	rms = a.norm ? rsqrtf(ss / (float)a.cols + a.eps) : 1;
	/* NaN and infinity go through: they must show in the logits, not hide. */
	const u32 e = amax * rms > 2048 && amax * rms < 1e30f ? (__float_as_uint(amax * rms) >> 23) - 127 - 10 : 0;
	if (threadIdx.x == 0)
		a.act_scale[n] = __uint_as_float((127 + e) << 23);
	rms *= __uint_as_float((127 - e) << 23);
#pragma unroll
	for (int k = 0; k < U; k++) {
		const u32 i = i0 + k * WARPS * 32;

		if (i < quads)
			*(uint2 *)(a.act + act_pos(n, i * 4, 0, a.groups)) =
				make_uint2(f2h2(v[k].x * rms, v[k].z * rms), f2h2(v[k].y * rms, v[k].w * rms));
	}
}

/* Many rows, whose time is bytes: 16 stored at once. */
static __global__ void __launch_bounds__(1024, 1) norm(const __grid_constant__ nm_args a)
{
	__shared__ float red[64];
	const u32 n = blockIdx.x, i0 = threadIdx.x;
	const float4 *const w = (const float4 *)a.norm, one = make_float4(1, 1, 1, 1);
	/* a weight, so before the wait */
	float4 u0 = w && i0 < a.cols / 4 ? w[i0] : one;

	pdl_go();
	pdl_wait();
	float4 *const x = (float4 *)(a.x + (size_t)(a.row ? a.row[n] : n) * a.cols);
	const float4 *const part = (const float4 *)(a.part + (size_t)n * a.cols);
	float ss = 0, amax = 0, rms, scale;
	int e;

	/* A thread's first four stay in registers, and with enough threads all do. */
	for (u32 i = i0; i < a.cols / 4; i += blockDim.x) {
		float4 v = x[i];
		const float4 u = i == i0 ? u0 : w ? w[i] : one;

		/* what x is now the next kernels need too */
		for (u32 p0 = 0; p0 < a.parts; p0 += 8)
			nm_add8(v, part + p0 * (a.stride / 4) + i, a.stride / 4, a.parts - p0, true);
		if (a.parts)
			x[i] = v;
		ss += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
		amax = fmaxf(amax, fmaxf(fmaxf(fabsf(v.x * u.x), fabsf(v.y * u.y)),
					 fmaxf(fabsf(v.z * u.z), fabsf(v.w * u.w))));
	}
	/* both over the block with one barrier */
	ss = warp_sum(ss);
	amax = warp_max(amax);
	if (threadIdx.x % 32 == 0) {
		red[threadIdx.x / 32] = ss;
		red[32 + threadIdx.x / 32] = amax;
	}
	__syncthreads();
	ss = amax = 0;
	for (u32 i = 0; i < blockDim.x / 32; i++) {
		ss += red[i];
		amax = fmaxf(amax, red[32 + i]);
	}
	rms = w ? rsqrtf(ss / (float)a.cols + a.eps) : 1;
	/* NaN and infinity go through: they must show in the logits, not hide. */
	e = amax * rms > 2048 && amax * rms < 1e30f ? ilogbf(amax * rms) - 10 : 0;
	scale = ldexpf(1.0f, -e);
	if (threadIdx.x == 0)
		a.act_scale[n] = ldexpf(1.0f, e);
	rms *= scale;
	for (u32 i = i0; i < a.cols / 8; i += blockDim.x) {
		const u32 f = i / 4 * 8 + i % 4;   /* 4c of a block of 32; 16+4c is four on */
		const float4 v = x[f], v2 = x[f + 4], u = w ? w[f] : one, u2 = w ? w[f + 4] : one;

		*(uint4 *)(a.act + act_pos(n, f * 4, 0, a.groups)) =
			make_uint4(f2h2(v.x * u.x * rms, v.z * u.z * rms), f2h2(v.y * u.y * rms, v.w * u.w * rms),
				   f2h2(v2.x * u2.x * rms, v2.z * u2.z * rms), f2h2(v2.y * u2.y * rms, v2.w * u2.w * rms));
	}
}

extern "C" int hk_norm(void *st, uint32_t n, uint32_t cols, float *x, const uint32_t *row,
		       const float *w, float eps, void *act, uint32_t groups, float *act_scale,
		       const struct hk_parts *add)
{
	struct nm_args k = { x, w, add ? add->part : NULL, row, (unsigned short *)act, act_scale, cols, groups,
			     add ? add->parts : 0, add ? add->stride : 0, eps };

	if (!n)
		return 0;
	if (cols % 64 || n > groups * 8 || (uintptr_t)x % 16 || (uintptr_t)w % 16 || (uintptr_t)act % 16 ||
	    (k.parts && (row || (uintptr_t)k.part % 16 || k.stride % 4)))
		return -EINVAL;
	if (n > 256 || cols > 4 * NM_QUADS)
		return HK_LAUNCH(norm, dim3(n), dim3(k.parts && cols >= 2048 ? 1024 : 256), 0, st, hk_pdl, k);
	/* as many threads as there are loads, to wait for all at once */
#define NM_GO(W, U) HK_LAUNCH((norm_short<W, U>), dim3(n), dim3((W) * 32), 0, st, hk_pdl, k)
	if (cols <= 1024)
		return NM_GO(8, 1);
	if (cols <= 2560)
		return NM_GO(20, 1);
	if (cols <= 4096)
		return NM_GO(32, 1);
	return NM_GO(32, 2);
}
