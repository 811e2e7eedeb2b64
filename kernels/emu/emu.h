/* SPDX-License-Identifier: MIT */
/*
 * The kernels on a machine without a GPU: the same source, compiled as C++,
 * one fiber per thread of a block, one block at a time. Warp instructions are
 * meeting points of 32 fibers; shared memory is poisoned before each block, and
 * threads between two meeting points run in random order. It finds wrong
 * indices, wrong layouts, unwritten outputs, missing barriers and copies that
 * nobody waited for; it does not find races between blocks, and says nothing about
 * speed. With EMU_RACE=1 every thread of a block is one of ThreadSanitizer's, which
 * knows barriers and __syncwarp and nothing else that would order them: a race
 * is found whichever way the threads ran.
 */
#ifndef HEARTH_EMU_H
#define HEARTH_EMU_H

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint32_t u32;
typedef uint8_t u8;

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

struct uint2 { u32 x, y; };
struct __align__(16) uint4 { u32 x, y, z, w; };
struct float2 { float x, y; };
struct __align__(16) float4 { float x, y, z, w; };
static inline uint2 make_uint2(u32 x, u32 y) { return { x, y }; }
static inline uint4 make_uint4(u32 x, u32 y, u32 z, u32 w) { return { x, y, z, w }; }
static inline float2 make_float2(float x, float y) { return { x, y }; }
static inline float4 make_float4(float x, float y, float z, float w) { return { x, y, z, w }; }
struct dim3 {
	u32 x, y, z;
	dim3(u32 a = 1, u32 b = 1, u32 c = 1) : x(a), y(b), z(c) {}
};

extern dim3 threadIdx, blockIdx, blockDim, gridDim;

/* -- the machine (emu.cc) ------------------------------------------------------- */
int emu_launch_fn(dim3 grid, dim3 block, size_t smem, void (*fn)(void *), void *arg);
void *emu_smem(void);
void __syncthreads(void);
/* barrier 1 to 15, of @threads threads */
void bar_sync(u32 id, u32 threads);
/* All 32 lanes give four words; afterwards each may read every lane's. */
const u32 (*emu_warp(const u32 v[4]))[4];

/* The same, and what lanes wrote before it the others see after it: __syncwarp. */
void emu_warp_sync(void);

/* cp.async: what the running thread has asked for and has not waited for. */
enum { EMU_ASKED = 256 };
struct emu_async {
	u32 n, groups;
	struct { void *to; const void *from; u32 n, group; } ask[EMU_ASKED];
};
emu_async *emu_asked(void);

template <typename F> static int emu_launch(dim3 grid, dim3 block, size_t smem, F f)
{
	return emu_launch_fn(grid, block, smem, [](void *p) { (*(F *)p)(); }, &f);
}

#define HK_SMEM(name) unsigned char *name = (unsigned char *)emu_smem()

/* -- instructions ------------------------------------------------------------------ */
static inline void emu_aligned(const void *p, size_t n)
{
	if ((uintptr_t)p % n)
		__builtin_trap();
}
static inline uint4 ld_stream16(const void *p) { emu_aligned(p, 16); return *(const uint4 *)p; }
static inline uint2 ld_stream8(const void *p) { emu_aligned(p, 8); return *(const uint2 *)p; }
static inline u32 ld_stream4(const void *p) { emu_aligned(p, 4); return *(const u32 *)p; }
static inline u32 ld_stream2(const void *p) { emu_aligned(p, 2); return *(const uint16_t *)p; }
static inline float4 ld_float4(const float4 *p) { emu_aligned(p, 16); return *p; }
static inline uint4 ld_act16(const void *p) { emu_aligned(p, 16); return *(const uint4 *)p; }
/* What a thread has asked for is copied when it waits for it, as late as the machine may. */
static inline void cp_async(void *s, const void *g, u32 n)
{
	emu_async *a = emu_asked();

	emu_aligned(s, n);
	emu_aligned(g, n);
	if (a->n == EMU_ASKED)
		__builtin_trap();
	a->ask[a->n++] = { s, g, n, a->groups };
}
static inline void cp_async16(void *s, const void *g) { cp_async(s, g, 16); }
static inline void cp_async8(void *s, const void *g) { cp_async(s, g, 8); }
static inline void cp_commit(void) { emu_asked()->groups++; }
template <int N> static inline void cp_wait(void)
{
	emu_async *a = emu_asked();
	u32 left = 0;

	for (u32 i = 0; i < a->n; i++)
		if (a->ask[i].group + N < a->groups)
			memcpy(a->ask[i].to, a->ask[i].from, a->ask[i].n);
		else
			a->ask[left++] = a->ask[i];
	a->n = left;
}

static inline float h2f(u32 h)
{
	u32 s = (h & 0x8000u) << 16, e = h >> 10 & 31, m = h & 1023;
	float f;

	h &= 0xffff;
	if (e == 31)
		m = s | 0x7f800000u | m << 13;
	else if (e)
		m = s | (e + 112) << 23 | m << 13;
	else {
		f = (float)m * 5.9604644775390625e-8f;
		return s ? -f : f;
	}
	memcpy(&f, &m, 4);
	return f;
}
static inline unsigned short f2h(float f)
{
	u32 u, s, e, m, r;

	memcpy(&u, &f, 4);
	s = u >> 16 & 0x8000;
	u &= 0x7fffffff;
	if (u > 0x7f800000)
		return (unsigned short)(s | 0x7e00);
	if (u >= 0x477ff000)
		return (unsigned short)(s | 0x7c00);
	if (u < 0x38800000) {   /* subnormal */
		float a;

		memcpy(&a, &u, 4);
		return (unsigned short)(s | (u32)rintf(a * 16777216.0f));
	}
	e = (u >> 23) - 112;
	m = u & 0x7fffff;
	r = e << 10 | m >> 13;
	m &= 0x1fff;
	if (m > 0x1000 || (m == 0x1000 && (r & 1)))
		r++;
	return (unsigned short)(s | r);
}
static inline u32 f2h2(float lo, float hi) { return (u32)f2h(lo) | (u32)f2h(hi) << 16; }
static inline u32 h2_add(u32 a, u32 b) { return f2h2(h2f(a) + h2f(b), h2f(a >> 16) + h2f(b >> 16)); }
static inline u32 h2_mul(u32 a, u32 b) { return f2h2(h2f(a) * h2f(b), h2f(a >> 16) * h2f(b >> 16)); }
static inline u32 h2_max(u32 a, u32 b)
{
	return f2h2(fmaxf(h2f(a), h2f(b)), fmaxf(h2f(a >> 16), h2f(b >> 16)));
}
static inline u32 h2_fma(u32 a, u32 b, u32 c)
{
	return f2h2(fmaf(h2f(a), h2f(b), h2f(c)), fmaf(h2f(a >> 16), h2f(b >> 16), h2f(c >> 16)));
}

static inline u32 h2_line(u32 a, u32 b) { return h2_fma(a, (b & 0xffff) * 0x10001u, (b >> 16) * 0x10001u); }

static inline void mma16816(float d[4], const u32 a[4], u32 b0, u32 b1)
{
	const u32 av[4] = { a[0], a[1], a[2], a[3] }, bv[4] = { b0, b1, 0, 0 };
	u32 A[32][4], B[32][4], lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;

	memcpy(A, emu_warp(av), sizeof(A));
	memcpy(B, emu_warp(bv), sizeof(B));
	for (u32 e = 0; e < 4; e++) {
		u32 row = e / 2, col = t * 2 + e % 2;
		float s = d[e];

		for (u32 k = 0; k < 16; k++) {
			u32 src = k % 8 / 2;
			u32 x = A[g * 4 + src][row + k / 8 * 2] >> (16 * (k & 1));
			u32 y = B[col * 4 + src][k / 8] >> (16 * (k & 1));

			s += h2f(x) * h2f(y);
		}
		d[e] = s;
	}
}
static inline int dp4a(u32 a, u32 b, int c)
{
	for (int i = 0; i < 4; i++)
		c += (int)(int8_t)(a >> (8 * i)) * (int)(int8_t)(b >> (8 * i));
	return c;
}
static inline u32 prmt(u32 a, u32 b, u32 sel)
{
	uint64_t v = (uint64_t)b << 32 | a;
	u32 r = 0;

	for (int i = 0; i < 4; i++)
		r |= (u32)(v >> (8 * (sel >> (4 * i) & 7)) & 255) << (8 * i);
	return r;
}
static inline u32 shfl_xor_u(u32 v, int m)
{
	const u32 w[4] = { v, 0, 0, 0 };

	return emu_warp(w)[threadIdx.x % 32 ^ (u32)m][0];
}
static inline bool warp_any(bool v)
{
	const u32 w[4] = { v, 0, 0, 0 };
	const u32 (*all)[4] = emu_warp(w);
	u32 any = 0;

	for (u32 i = 0; i < 32; i++)
		any |= all[i][0];
	return any;
}
static inline float shfl_xor_f(float v, int m)
{
	u32 u;

	memcpy(&u, &v, 4);
	u = shfl_xor_u(u, m);
	memcpy(&v, &u, 4);
	return v;
}
static inline float warp_max_pos(float v)
{
	for (int m = 16; m; m >>= 1)
		v = fmaxf(v, shfl_xor_f(v, m));
	return v;
}
static inline void warp_sync(void) { emu_warp_sync(); }
static inline float fast_exp2(float x) { return exp2f(x); }
static inline float fast_exp(float x) { return expf(x); }
static inline float fast_div(float a, float b) { return a / b; }
static inline float rsqrtf(float x) { return 1 / sqrtf(x); }
static inline float __uint_as_float(u32 u) { float f; memcpy(&f, &u, 4); return f; }
static inline u32 __float_as_uint(float f) { u32 u; memcpy(&u, &f, 4); return u; }
static inline u32 atomicAdd(u32 *p, u32 v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
static inline unsigned long long atomicMax(unsigned long long *p, unsigned long long v)
{
	unsigned long long o = __atomic_load_n(p, __ATOMIC_RELAXED);

	while (v > o && !__atomic_compare_exchange_n(p, &o, v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return o;
}
static inline void __threadfence(void) {}
static inline void pdl_wait(void) {}
static inline void pdl_go(void) {}

#endif
