/* SPDX-License-Identifier: MIT */
/*
 * Four heads in a warp, each in eight lanes: lane l of them holds channels 32i + 4l
 * .. 32i + 4l + 3 for every i, so a load is 128 bytes in a row, a group of 32 is four
 * registers across eight lanes, and a rotation pair is in one lane.
 */
#ifndef HEARTH_KERNELS_ROPE_CUH
#define HEARTH_KERNELS_ROPE_CUH

#include "kernels/kernels.h"
#include "kernels/ptx.cuh"

/* A head of a row, or the sum of its parts: four lanes' worth of loads in flight at once. */
template <int HD> CUDA_D void rp_ask(float4 v[HD / 32], const float *x, u32 l)
{
#pragma unroll
	for (int i = 0; i < HD / 32; i++)
		v[i] = ld_float4((const float4 *)x + i * 8 + l);
}
template <int HD> CUDA_D void rp_add(float4 v[HD / 32], const float4 y[HD / 32])
{
#pragma unroll
	for (int i = 0; i < HD / 32; i++) {
		v[i].x += y[i].x;
		v[i].y += y[i].y;
		v[i].z += y[i].z;
		v[i].w += y[i].w;
	}
}

/* Over the eight lanes of a head. */
CUDA_D float rp_sum(float v)
{
	v += shfl_xor_f(v, 1);
	v += shfl_xor_f(v, 2);
	return v + shfl_xor_f(v, 4);
}
/* Norm with w[8i] (if @norm) and rotation with @cs: (cos, sin) of channels 32i + 4l ... */
template <int HD>
CUDA_D void rp_turn(float4 v[HD / 32], bool norm, const float4 *w, const float4 cs[HD / 32], float eps)
{
	enum { V = HD / 32 };

	if (norm) {
		float s0 = 0, s1 = 0, r;

#pragma unroll
		for (int i = 0; i < V; i++) {
			s0 += v[i].x * v[i].x + v[i].y * v[i].y;
			s1 += v[i].z * v[i].z + v[i].w * v[i].w;
		}
		r = rsqrtf(rp_sum(s0 + s1) * (1.0f / HD) + eps);
#pragma unroll
		for (int i = 0; i < V; i++) {
			const float4 u = w[i * 8];

			v[i].x *= r * u.x;
			v[i].y *= r * u.y;
			v[i].z *= r * u.z;
			v[i].w *= r * u.w;
		}
	}
#pragma unroll
	for (int i = 0; i < V / 2; i++) {
		const float4 c = cs[i * 2], d = cs[i * 2 + 1], p = v[i], q = v[i + V / 2];

		v[i] = make_float4(p.x * c.x - q.x * c.y, p.y * c.z - q.y * c.w,
				   p.z * d.x - q.z * d.y, p.w * d.z - q.w * d.w);
		v[i + V / 2] = make_float4(q.x * c.x + p.x * c.y, q.y * c.z + p.y * c.w,
					   q.z * d.x + p.z * d.y, q.w * d.z + p.w * d.w);
	}
}

/*
 * A head as int8, four channels a word, and the half scale of each 32 channels. All groups
 * go step by step together: what a warp waits for here is the way from one lane to another.
 */
template <int HD> CUDA_D void rp_int8(const float4 v[HD / 32], u32 x[HD / 32], u32 d[HD / 32])
{
	enum { V = HD / 32 };
	float m[V];

#pragma unroll
	for (int i = 0; i < V; i++)
		m[i] = fmaxf(fmaxf(fabsf(v[i].x), fabsf(v[i].y)), fmaxf(fabsf(v[i].z), fabsf(v[i].w)));
#pragma unroll
	for (int k = 1; k < 8; k *= 2)
#pragma unroll
		for (int i = 0; i < V; i++)
			m[i] = fmaxf(m[i], shfl_xor_f(m[i], k));
#pragma unroll
	for (int i = 0; i < V; i++) {
		/* the half that is stored is the one that divides */
		d[i] = f2h(m[i] * (1.0f / 127));
		const float s = h2f(d[i]), inv = s > 0 ? fast_div(1, s) : 0;
		/* in the low bits of a float of 2^23 and a half a whole number is as an int */
		auto q = [&](float x) { return __float_as_uint(fminf(fmaxf(x * inv, -127), 127) + 12582912.0f); };

		x[i] = prmt(prmt(q(v[i].x), q(v[i].y), 0x0040), prmt(q(v[i].z), q(v[i].w), 0x0040), 0x5410);
	}
}

/* To its place in a page, int8 with a half scale per 32 channels, or halves, if @live. */
template <int HD> CUDA_D void rp_store(const hk_kv &kv, u8 *base, u32 slot, const float4 v[HD / 32], u32 l, bool live)
{
	u32 x[HD / 32], d[HD / 32];

	if (!kv.f16)
		rp_int8<HD>(v, x, d);
#pragma unroll
	for (int i = 0; i < HD / 32 && live; i++) {
		if (kv.f16) {
			*(uint2 *)(base + (slot * HD + i * 32 + l * 4) * 2) =
				make_uint2(f2h2(v[i].x, v[i].y), f2h2(v[i].z, v[i].w));
		} else {
			*(u32 *)(base + slot * HD + i * 32 + l * 4) = x[i];
			if (l == 0)
				((unsigned short *)(base + 32 * HD))[slot * (HD / 32) + i] = (unsigned short)d[i];
		}
	}
}

#endif
