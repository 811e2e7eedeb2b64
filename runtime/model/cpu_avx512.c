// SPDX-License-Identifier: MIT
/* AVX-512 with VNNI: 16 rows a vector, 64 multiplications an instruction. */
#include "model/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define NL 16
#define TILE 16
#define DOT8_SIGNED 0

static inline __attribute__((always_inline)) __m512i dot4(__m512i t, __m512i w, const uint8_t *a)
{
	int32_t four;

	__builtin_memcpy(&four, a, 4);
	return _mm512_dpbusd_epi32(t, w, _mm512_set1_epi32(four));
}

#define DOT(t, w, a) ((vi)dot4((__m512i)(t), (__m512i)(w), a))
#define DOT8(t, w, a) DOT(t, w, a)
#define LOAD_HALF(p) ((vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i_u *)(p))))
#define LOAD_U8(p) ((vf)_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i_u *)(p)))))
#define LOAD_S8(p) ((vf)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i_u *)(p)))))
#define STORE_I8(p, v) _mm_storeu_si128((__m128i_u *)(p), _mm512_cvtepi32_epi8((__m512i)(v)))
#define STORE_HALF(p, v) _mm256_storeu_si256((__m256i_u *)(p), \
	_mm512_cvtps_ph((__m512)(v), _MM_FROUND_TO_NEAREST_INT))
#define HALF(h) _cvtsh_ss(h)
#define HALF_OF(f) _cvtss_sh(f, _MM_FROUND_TO_NEAREST_INT)
#define REDUCE_ADD(v) _mm512_reduce_add_ps((__m512)(v))
#define REDUCE_MAX(v) _mm512_reduce_max_ps((__m512)(v))
#define LANE_OF(n) (((n) >> 3 & 1) | ((n) >> 1 & 2) | ((n) << 1 & 4) | ((n) << 3 & 8))
#define REDUCE_ADDI(v) _mm512_reduce_add_epi32((__m512i)(v))

#include "model/cpu_gemm.h"
#include "model/cpu_rows.h"

const struct cpu_kern cpu_avx512 = {
	.name = "avx512-vnni",
	.tile = TILE,
	.gemm = GEMM_TABLE,
	ROWS_TABLE,
};
#endif
