/* SPDX-License-Identifier: MIT */
/*
 * One-instruction wrappers, each with its reason, and nothing newer than
 * SM 8.0 on the default route. Half pairs travel as uint32_t, so that the same
 * kernel source also compiles for the host emulation (kernels/emu/emu.h), which
 * brings its own version of everything here.
 */
#ifndef HEARTH_KERNELS_PTX_CUH
#define HEARTH_KERNELS_PTX_CUH

#include <stdint.h>

#ifdef HEARTH_EMU
#include "kernels/emu/emu.h"
#else
#include <cuda_fp16.h>
#include <cuda_runtime.h>

typedef uint32_t u32;
typedef uint8_t u8;

/* Dynamic shared memory of a kernel, 16-byte aligned. */
#define HK_SMEM(name) extern __shared__ __align__(16) unsigned char name[]

/* Weights: read once per step, so past L1. */
static __device__ __forceinline__ uint4 ld_stream16(const void *p)
{
	uint4 v;

	asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
		     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
	return v;
}
static __device__ __forceinline__ uint2 ld_stream8(const void *p)
{
	uint2 v;

	asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0,%1}, [%2];"
		     : "=r"(v.x), "=r"(v.y) : "l"(p));
	return v;
}
static __device__ __forceinline__ u32 ld_stream4(const void *p)
{
	u32 v;

	asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(p));
	return v;
}
static __device__ __forceinline__ u32 ld_stream2(const void *p)
{
	unsigned short v;

	asm volatile("ld.global.nc.L1::no_allocate.u16 %0, [%1];" : "=h"(v) : "l"(p));
	return v;
}

/* What another kernel wrote; in the order in which it is asked for, so that a row
 * of these is in flight together. */
static __device__ __forceinline__ float4 ld_float4(const float4 *p)
{
	float4 v;

	asm volatile("ld.global.v4.f32 {%0,%1,%2,%3}, [%4];"
		     : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
	return v;
}

static __device__ __forceinline__ uint4 ld_act16(const void *p)
{
	uint4 v;

	asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];"
		     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
	return v;
}

/* Global to shared without registers: the activation stages of the GEMM. */
static __device__ __forceinline__ void cp_async16(void *smem, const void *g)
{
	u32 s = (u32)__cvta_generic_to_shared(smem);

	asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(s), "l"(g) : "memory");
}
static __device__ __forceinline__ void cp_async8(void *smem, const void *g)
{
	u32 s = (u32)__cvta_generic_to_shared(smem);

	asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" :: "r"(s), "l"(g) : "memory");
}
static __device__ __forceinline__ void cp_commit(void)
{
	asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int N> static __device__ __forceinline__ void cp_wait(void)
{
	asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
}

/* D += A B, 16x8x16, half in, float out. */
static __device__ __forceinline__ void mma16816(float d[4], const u32 a[4], u32 b0, u32 b1)
{
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
		     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ int dp4a(u32 a, u32 b, int c)
{
	return __dp4a((int)a, (int)b, c);
}
static __device__ __forceinline__ u32 prmt(u32 a, u32 b, u32 sel)
{
	return __byte_perm(a, b, sel);
}

static __device__ __forceinline__ __half2 as_h2(u32 v) { return *(__half2 *)&v; }
static __device__ __forceinline__ u32 as_u32(__half2 v) { return *(u32 *)&v; }
static __device__ __forceinline__ u32 h2_add(u32 a, u32 b) { return as_u32(__hadd2(as_h2(a), as_h2(b))); }
static __device__ __forceinline__ u32 h2_mul(u32 a, u32 b) { return as_u32(__hmul2(as_h2(a), as_h2(b))); }
static __device__ __forceinline__ u32 h2_fma(u32 a, u32 b, u32 c)
{
	return as_u32(__hfma2(as_h2(a), as_h2(b), as_h2(c)));
}
/* a times the lower half of b, and its upper half */
static __device__ __forceinline__ u32 h2_line(u32 a, u32 b)
{
	return as_u32(__hfma2(as_h2(a), __low2half2(as_h2(b)), __high2half2(as_h2(b))));
}
static __device__ __forceinline__ u32 h2_max(u32 a, u32 b) { return as_u32(__hmax2(as_h2(a), as_h2(b))); }
static __device__ __forceinline__ void warp_sync(void) { __syncwarp(); }
/* Barrier @id (1 to 15; 0 is __syncthreads) of @threads threads, whole warps. */
static __device__ __forceinline__ void bar_sync(u32 id, u32 threads)
{
	asm volatile("bar.sync %0, %1;" :: "r"(id), "r"(threads) : "memory");
}
static __device__ __forceinline__ u32 f2h2(float lo, float hi) { return as_u32(__floats2half2_rn(lo, hi)); }
static __device__ __forceinline__ float h2f(u32 h)
{
	return __half2float(__ushort_as_half((unsigned short)h));
}
static __device__ __forceinline__ unsigned short f2h(float f) { return __half_as_ushort(__float2half_rn(f)); }

static __device__ __forceinline__ float shfl_xor_f(float v, int m) { return __shfl_xor_sync(~0u, v, m); }
static __device__ __forceinline__ bool warp_any(bool v) { return __any_sync(~0u, v); }
static __device__ __forceinline__ u32 shfl_xor_u(u32 v, int m) { return __shfl_xor_sync(~0u, v, m); }
/* The largest of a warp where none is negative: their order is that of their bits. */
static __device__ __forceinline__ float warp_max_pos(float v)
{
	return __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(v)));
}
static __device__ __forceinline__ float fast_exp2(float x) { return exp2f(x); }
static __device__ __forceinline__ float fast_exp(float x) { return __expf(x); }
static __device__ __forceinline__ float fast_div(float a, float b) { return __fdividef(a, b); }

/*
 * Programmatic dependent launch, where the machine has it (9.0): a kernel may
 * start while the one before it drains. Everything before pdl_wait() must
 * touch weights only. Both are nothing on 8.7.
 */
static __device__ __forceinline__ void pdl_wait(void)
{
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
static __device__ __forceinline__ void pdl_go(void)
{
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.launch_dependents;");
#endif
}
#endif /* HEARTH_EMU */

#define CUDA_D static __device__ __forceinline__

CUDA_D float warp_sum(float v)
{
	for (int m = 16; m; m >>= 1)
		v += shfl_xor_f(v, m);
	return v;
}
CUDA_D float warp_max(float v)
{
	for (int m = 16; m; m >>= 1)
		v = fmaxf(v, shfl_xor_f(v, m));
	return v;
}

/*
 * Sum over the block; every thread gets it. @red has 32 floats of shared
 * memory. Ends with a barrier, so @red may be used again at once.
 */
CUDA_D float block_sum(float v, float *red)
{
	int w = (int)threadIdx.x / 32, n = (int)(blockDim.x + 31) / 32;
	float s = 0;

	v = warp_sum(v);
	if (threadIdx.x % 32 == 0)
		red[w] = v;
	__syncthreads();
	for (int i = 0; i < n; i++)
		s += red[i];
	__syncthreads();
	return s;
}
CUDA_D float block_max(float v, float *red)
{
	int w = (int)threadIdx.x / 32, n = (int)(blockDim.x + 31) / 32;
	float s;

	v = warp_max(v);
	if (threadIdx.x % 32 == 0)
		red[w] = v;
	__syncthreads();
	s = red[0];
	for (int i = 1; i < n; i++)
		s = fmaxf(s, red[i]);
	__syncthreads();
	return s;
}

#endif
