// SPDX-License-Identifier: MIT
/* AVX2, FMA, F16C: 8 rows a vector. */
#include "model/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define NL 8
#define TILE 4
#define DOT8_SIGNED 1

/*
 * maddubs adds two products in 16 bits: below 128 * 127 * 2 = 32512 for weights
 * under 128, so nothing saturates.
 */
static inline __attribute__((always_inline)) __m256i dot4(__m256i t, __m256i w, const uint8_t *a)
{
	int32_t four;

	__builtin_memcpy(&four, a, 4);
	w = _mm256_maddubs_epi16(w, _mm256_set1_epi32(four));
	return _mm256_add_epi32(t, _mm256_madd_epi16(w, _mm256_set1_epi16(1)));
}

/* A signed weight: its size times the activation with its sign. */
static inline __attribute__((always_inline)) __m256i dot4s(__m256i t, __m256i w, const uint8_t *a)
{
	int32_t four;

	__builtin_memcpy(&four, a, 4);
	w = _mm256_xor_si256(w, _mm256_set1_epi8((char)0x80));
	w = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(_mm256_set1_epi32(four), w));
	return _mm256_add_epi32(t, _mm256_madd_epi16(w, _mm256_set1_epi16(1)));
}

static inline __attribute__((always_inline)) float reduce_add(__m256 v)
{
	__m128 x = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

	x = _mm_add_ps(x, _mm_movehl_ps(x, x));
	return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}

static inline __attribute__((always_inline)) float reduce_max(__m256 v)
{
	__m128 x = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

	x = _mm_max_ps(x, _mm_movehl_ps(x, x));
	return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}

static inline __attribute__((always_inline)) int32_t reduce_addi(__m256i v)
{
	__m128i x = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));

	x = _mm_add_epi32(x, _mm_unpackhi_epi64(x, x));
	return _mm_cvtsi128_si32(_mm_add_epi32(x, _mm_shuffle_epi32(x, 1)));
}

static inline __attribute__((always_inline)) void store_i8(int8_t *p, __m256i v)
{
	__m128i x = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));

	_mm_storel_epi64((__m128i_u *)p, _mm_packs_epi16(x, x));
}

#define DOT(t, w, a) ((vi)dot4((__m256i)(t), (__m256i)(w), a))
#define DOT8(t, w, a) ((vi)dot4s((__m256i)(t), (__m256i)(w), a))
#define LOAD_HALF(p) ((vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)(p))))
#define LOAD_U8(p) ((vf)_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i_u *)(p)))))
#define LOAD_S8(p) ((vf)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i_u *)(p)))))
#define STORE_I8(p, v) store_i8((int8_t *)(p), (__m256i)(v))
#define STORE_HALF(p, v) _mm_storeu_si128((__m128i_u *)(p), \
	_mm256_cvtps_ph((__m256)(v), _MM_FROUND_TO_NEAREST_INT))
#define HALF(h) _cvtsh_ss(h)
#define HALF_OF(f) _cvtss_sh(f, _MM_FROUND_TO_NEAREST_INT)
#define REDUCE_ADD(v) reduce_add((__m256)(v))
#define REDUCE_MAX(v) reduce_max((__m256)(v))
#define LANE_OF(n) (((n) >> 2 & 1) | ((n) & 2) | ((n) << 2 & 4))
#define REDUCE_ADDI(v) reduce_addi((__m256i)(v))

#include "model/cpu_gemm.h"
#include "model/cpu_rows.h"

const struct cpu_kern cpu_avx2 = {
	.name = "avx2",
	.tile = TILE,
	.gemm = GEMM_TABLE,
	ROWS_TABLE,
};
#endif
