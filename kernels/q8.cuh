/* SPDX-License-Identifier: MIT */
/* Activations of one to four rows, as the GEMV reads them and attention writes them. */
#ifndef HEARTH_KERNELS_Q8_CUH
#define HEARTH_KERNELS_Q8_CUH

#include "kernels/ptx.cuh"

/*
 * Activations as int8 with a scale per 16: for each unit 256 bytes in the order
 * in which lanes read them (chunk c of a lane's four, then t: a warp's load is
 * one run of 64 bytes, no bank conflict), then behind all units (scale,
 * scale * sum) of each 16 in natural order. q8_bytes() of kernels.h.
 */
CUDA_D u32 q8_chunk(u32 k) { return (k / 256 * 4 + k % 64 / 16) * 4 + k % 256 / 64; }

/* Four values of a 16-group that four lanes share, to their place in @q8. */
CUDA_D void q8_put4(u8 *q8, u32 units, u32 k, float4 v, bool live)
{
	float amax = fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))), d, inv;
	int q0, q1, q2, q3, sum;

	amax = fmaxf(amax, shfl_xor_f(amax, 1));
	amax = fmaxf(amax, shfl_xor_f(amax, 2));
	d = amax * (1.0f / 127);
	inv = amax > 0 ? 127 / amax : 0;
	q0 = (int)rintf(v.x * inv);
	q1 = (int)rintf(v.y * inv);
	q2 = (int)rintf(v.z * inv);
	q3 = (int)rintf(v.w * inv);
	sum = q0 + q1 + q2 + q3;
	sum += (int)shfl_xor_u((u32)sum, 1);
	sum += (int)shfl_xor_u((u32)sum, 2);
	if (!live)
		return;
	*(u32 *)(q8 + q8_chunk(k) * 16 + k % 16) = (u32)(q0 & 255) | (u32)(q1 & 255) << 8 |
						    (u32)(q2 & 255) << 16 | (u32)q3 << 24;
	if (k % 16 == 0)
		((float2 *)(q8 + units * 256))[k / 16] = make_float2(d, d * (float)sum);
}

#endif
