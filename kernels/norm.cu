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

static __global__ void __launch_bounds__(1024) norm(const __grid_constant__ nm_args a)
{
	__shared__ float red[32];
	const u32 n = blockIdx.x;

	pdl_go();
	pdl_wait();
	float4 *const x = (float4 *)(a.x + (size_t)(a.row ? a.row[n] : n) * a.cols);
	const float4 *const part = (const float4 *)(a.part + (size_t)n * a.cols);
	const float4 *w = (const float4 *)a.norm;
	float ss = 0, amax = 0, rms, scale;
	int e;

	for (u32 i = threadIdx.x; i < a.cols / 4; i += blockDim.x) {
		float4 v = x[i], u = w ? w[i] : make_float4(1, 1, 1, 1);

		/* parts in order, eight in flight; what x is now the next kernels need too */
		for (u32 p0 = 0; p0 < a.parts; p0 += 8) {
			float4 y[8];

#pragma unroll
			for (u32 p = 0; p < 8; p++)
				y[p] = ld_float4(part + (p0 + p < a.parts ? p0 + p : p0) * (a.stride / 4) + i);
#pragma unroll
			for (u32 p = 0; p < 8; p++) {
				const bool live = p0 + p < a.parts;

				v.x += live ? y[p].x : 0;
				v.y += live ? y[p].y : 0;
				v.z += live ? y[p].z : 0;
				v.w += live ? y[p].w : 0;
			}
		}
		if (a.parts)
			x[i] = v;

		ss += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
		amax = fmaxf(amax, fmaxf(fmaxf(fabsf(v.x * u.x), fabsf(v.y * u.y)),
					 fmaxf(fabsf(v.z * u.z), fabsf(v.w * u.w))));
	}
	ss = block_sum(ss, red);
	amax = block_max(amax, red);
	rms = w ? rsqrtf(ss / (float)a.cols + a.eps) : 1;
	/* NaN and infinity go through: they must show in the logits, not hide. */
	e = amax * rms > 2048 && amax * rms < 1e30f ? ilogbf(amax * rms) - 10 : 0;
	scale = ldexpf(1.0f, -e);
	if (threadIdx.x == 0)
		a.act_scale[n] = ldexpf(1.0f, e);
	rms *= scale;
	for (u32 i = threadIdx.x; i < a.cols / 8; i += blockDim.x) {
		float4 v = x[2 * i], v2 = x[2 * i + 1], u = make_float4(1, 1, 1, 1), u2 = u;
		uint4 o;

		if (w) {
			u = w[2 * i];
			u2 = w[2 * i + 1];
		}
		o.x = f2h2(v.x * u.x * rms, v.y * u.y * rms);
		o.y = f2h2(v.z * u.z * rms, v.w * u.w * rms);
		o.z = f2h2(v2.x * u2.x * rms, v2.y * u2.y * rms);
		o.w = f2h2(v2.z * u2.z * rms, v2.w * u2.w * rms);
		*(uint4 *)(a.act + act_pos(n, i * 8, 0, a.groups)) = o;
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
	/* parts are many loads: as many threads as there are, to wait for all at once */
	return HK_LAUNCH(norm, dim3(n), dim3(k.parts && cols >= 2048 ? 1024 : 256), 0, st, hk_pdl, k);
}
