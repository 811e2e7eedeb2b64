/* SPDX-License-Identifier: MIT */
/*
 * One head of a row in a warp: lane l holds channels l, l+32, ..., so a group
 * of 32 is one register across the warp and a rotation pair is in one lane.
 */
#ifndef HEARTH_KERNELS_ROPE_CUH
#define HEARTH_KERNELS_ROPE_CUH

#include "kernels/kernels.h"
#include "kernels/ptx.cuh"

/* To its place in a page, int8 with a half scale per 32 channels, or halves. */
template <int HD> CUDA_D void rp_store(const hk_kv &kv, u8 *base, u32 slot, const float *v, u32 lane)
{
#pragma unroll
	for (int i = 0; i < HD / 32; i++) {
		if (kv.f16) {
			((unsigned short *)base)[slot * HD + i * 32 + lane] = f2h(v[i]);
		} else {
			float amax = warp_max(fabsf(v[i]));
			/* the half that is stored is the one that divides */
			u32 d = f2h(amax * (1.0f / 127));
			float s = h2f(d), inv = s > 0 ? 1 / s : 0;
			float r = fminf(fmaxf(rintf(v[i] * inv), -127), 127);

			base[slot * HD + i * 32 + lane] = (u8)(int)r;
			if (lane == 0)
				((unsigned short *)(base + 32 * HD))[slot * (HD / 32) + i] = (unsigned short)d;
		}
	}
}

/* Norm (where there is one) and rotation of a head that a warp holds. */
template <int HD>
CUDA_D void rp_turn(float v[HD / 32], const float *w, const float2 *cs, u32 lane, float eps)
{
	enum { V = HD / 32 };

	if (w) {
		float ss = 0, r;

#pragma unroll
		for (int i = 0; i < V; i++)
			ss += v[i] * v[i];
		r = rsqrtf(warp_sum(ss) / HD + eps);
#pragma unroll
		for (int i = 0; i < V; i++)
			v[i] *= r * w[i * 32 + lane];
	}
#pragma unroll
	for (int i = 0; i < V / 2; i++) {
		float2 c = cs[i * 32 + lane];
		float p = v[i], q = v[i + V / 2];

		v[i] = p * c.x - q * c.y;
		v[i + V / 2] = q * c.x + p * c.y;
	}
}

#endif
