// SPDX-License-Identifier: MIT
/* NEON with the dot product instructions: 4 rows a vector. */
#include "model/cpu.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#define NL 4
#define TILE 8
#define DOT8_SIGNED 1

static inline __attribute__((always_inline)) int32x4_t dot4(int32x4_t t, int8x16_t w, const uint8_t *a)
{
	int32_t four;

	__builtin_memcpy(&four, a, 4);
	return vdotq_s32(t, w, vreinterpretq_s8_s32(vdupq_n_s32(four)));
}

static inline __attribute__((always_inline)) float32x4_t load_u8(const uint8_t *p)
{
	uint32_t four;

	__builtin_memcpy(&four, p, 4);
	return vcvtq_f32_u32(vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(four)))));
}

static inline __attribute__((always_inline)) float32x4_t load_s8(const int8_t *p)
{
	uint32_t four;

	__builtin_memcpy(&four, p, 4);
	return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8(four)))));
}

static inline __attribute__((always_inline)) void store_i8(int8_t *p, int32x4_t v)
{
	const int16x4_t h = vmovn_s32(v);
	const int8x8_t b = vmovn_s16(vcombine_s16(h, h));

	vst1_lane_s32((int32_t *)p, vreinterpret_s32_s8(b), 0);
}

static inline __attribute__((always_inline)) float half_to_float(uint16_t h)
{
	__fp16 f;

	__builtin_memcpy(&f, &h, 2);
	return (float)f;
}

static inline __attribute__((always_inline)) uint16_t float_to_half(float v)
{
	const __fp16 f = (__fp16)v;
	uint16_t h;

	__builtin_memcpy(&h, &f, 2);
	return h;
}

#define DOT(t, w, a) ((vi)dot4((int32x4_t)(t), (int8x16_t)(w), a))
#define DOT8(t, w, a) ((vi)dot4((int32x4_t)(t), (int8x16_t)((w) ^ 0x80), a))
#define LOAD_HALF(p) ((vf)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16((const uint16_t *)(p)))))
#define LOAD_U8(p) ((vf)load_u8(p))
#define LOAD_S8(p) ((vf)load_s8((const int8_t *)(p)))
#define STORE_I8(p, v) store_i8((int8_t *)(p), (int32x4_t)(v))
#define STORE_HALF(p, v) vst1_u16((uint16_t *)(p), \
	vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)(v))))
#define HALF(h) half_to_float(h)
#define HALF_OF(f) float_to_half(f)
#define REDUCE_ADD(v) vaddvq_f32((float32x4_t)(v))
#define REDUCE_MAX(v) vmaxvq_f32((float32x4_t)(v))
#define LANE_OF(n) (n)
#define REDUCE_ADDI(v) vaddvq_s32((int32x4_t)(v))

#include "model/cpu_gemm.h"
#include "model/cpu_rows.h"

const struct cpu_kern cpu_neon = {
	.name = "neon-dotprod",
	.tile = TILE,
	.gemm = GEMM_TABLE,
	ROWS_TABLE,
};
#endif
