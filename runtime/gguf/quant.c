// SPDX-License-Identifier: MIT
/*
 * Written to be read, not to be fast: each type is one function that gives
 * weight i of a block, straight from the layout in quant.h. The fast kernels
 * live elsewhere and are checked against these.
 */
#include "gguf/quant.h"

#include <errno.h>
#include <math.h>
#include <string.h>

const int8_t quant_iq4_values[16] = {
	-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
};

/* -- halfs ------------------------------------------------------------------ */

static float from_bits(uint32_t u)
{
	float f;

	memcpy(&f, &u, 4);
	return f;
}

static uint32_t to_bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, 4);
	return u;
}

float quant_from_half(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16;
	uint32_t exp = h >> 10 & 31, frac = h & 1023;

	if (exp == 31)
		return from_bits(sign | 0x7f800000 | frac << 13);
	if (exp)
		return from_bits(sign | (exp + 112) << 23 | frac << 13);
	/* Zero and subnormals: frac * 2^-24, exact in f32. */
	return sign ? -(float)frac * 0x1p-24f : (float)frac * 0x1p-24f;
}

uint16_t quant_to_half(float f)
{
	uint32_t u = to_bits(f), a = u & 0x7fffffff;
	uint16_t sign = (uint16_t)(u >> 16 & 0x8000);
	uint32_t shift, man, half, rest;

	if (a > 0x7f800000)                 /* NaN: quiet, keep the top of the payload */
		return (uint16_t)(sign | 0x7e00 | (a >> 13 & 0x1ff));
	if (a >= 0x477ff000)                /* rounds to 65536 or more, or infinite */
		return sign | 0x7c00;
	if (a < 0x33000000)                 /* below half of the smallest subnormal */
		return sign;
	if (a < 0x38800000) {               /* subnormal */
		shift = 126 - (a >> 23);    /* 14..24 */
		man = (a & 0x7fffff) | 0x800000;
	} else {
		shift = 13;
		man = a - (112u << 23);
	}
	half = man >> shift;
	rest = man & ((1u << shift) - 1);
	if (rest > 1u << (shift - 1) || (rest == 1u << (shift - 1) && (half & 1)))
		half++;                     /* may carry into the exponent: right so */
	return (uint16_t)(sign | half);
}

float quant_from_bf16(uint16_t b)
{
	return from_bits((uint32_t)b << 16);
}

uint16_t quant_to_bf16(float f)
{
	uint32_t u = to_bits(f);

	if ((u & 0x7fffffff) > 0x7f800000)
		return (uint16_t)(u >> 16 | 64);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* -- to f32 ----------------------------------------------------------------- */

#define TO_F32(t, per, expr) \
	static void t##_to_f32(const void *src, float *dst, size_t n) \
	{ \
		const struct quant_##t *b = src; \
		for (size_t k = 0; k < n; k += (per), b++) \
			for (int i = 0; i < (per); i++) \
				dst[k + (size_t)i] = (expr); \
	}

/* Nibble of weight i where a block of 32 has its first half in the low ones. */
static inline int nibble(const uint8_t *qs, int i)
{
	return i < 16 ? qs[i] & 15 : qs[i - 16] >> 4;
}

static inline int bit(const uint8_t *qh, int i)
{
	return qh[i / 8] >> (i % 8) & 1;
}

TO_F32(q4_0, 32, (float)(nibble(b->qs, i) - 8) * quant_from_half(b->d))
TO_F32(q4_1, 32, (float)nibble(b->qs, i) * quant_from_half(b->d) + quant_from_half(b->m))
TO_F32(q5_0, 32, (float)((nibble(b->qs, i) | bit(b->qh, i) << 4) - 16) * quant_from_half(b->d))
TO_F32(q5_1, 32,
       (float)(nibble(b->qs, i) | bit(b->qh, i) << 4) * quant_from_half(b->d) +
	       quant_from_half(b->m))
TO_F32(q8_0, 32, (float)b->qs[i] * quant_from_half(b->d))
TO_F32(q8_1, 32, (float)b->qs[i] * quant_from_half(b->d))
TO_F32(q8_k, 256, (float)b->qs[i] * b->d)
TO_F32(iq4_nl, 32, (float)quant_iq4_values[nibble(b->qs, i)] * quant_from_half(b->d))

/*
 * The K types keep 2 or 4 bit fields of 256 weights so that 32 (or 16)
 * neighbouring weights sit in neighbouring bytes at the same shift.
 */
static float q2_k_at(const struct quant_q2_k *b, int i)
{
	uint8_t sc = b->scales[i / 16];
	int q = b->qs[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
	float dl = quant_from_half(b->d) * (float)(sc & 15),
	      ml = quant_from_half(b->dmin) * (float)(sc >> 4);

	return dl * (float)q - ml;
}

/* Six-bit scale j (0..15): low nibbles in bytes 0..7, high pairs in 8..11. */
static int q3_k_scale(const uint8_t *s, int j)
{
	int lo = j < 8 ? s[j] & 15 : s[j - 8] >> 4;

	return lo | (s[8 + j % 4] >> (j / 4 * 2) & 3) << 4;
}

static float q3_k_at(const struct quant_q3_k *b, int i)
{
	int q = b->qs[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
	int hi = b->hmask[i % 32] >> (i / 32) & 1;
	float dl = quant_from_half(b->d) * (float)(q3_k_scale(b->scales, i / 16) - 32);

	return dl * (float)(q - (hi ? 0 : 4));
}

static inline int k_nibble(const uint8_t *qs, int i)
{
	uint8_t v = qs[i / 64 * 32 + i % 32];

	return i % 64 < 32 ? v & 15 : v >> 4;
}

static float q4_k_at(const struct quant_q4_k *b, int i)
{
	uint8_t sc, m;
	float d1, m1;

	quant_k4_scale(i / 32, b->scales, &sc, &m);
	d1 = quant_from_half(b->d) * (float)sc;
	m1 = quant_from_half(b->dmin) * (float)m;
	return d1 * (float)k_nibble(b->qs, i) - m1;
}

static float q5_k_at(const struct quant_q5_k *b, int i)
{
	int q = k_nibble(b->qs, i) | (b->qh[i % 32] >> (i / 32) & 1) << 4;
	uint8_t sc, m;
	float d1, m1;

	quant_k4_scale(i / 32, b->scales, &sc, &m);
	d1 = quant_from_half(b->d) * (float)sc;
	m1 = quant_from_half(b->dmin) * (float)m;
	return d1 * (float)q - m1;
}

/* Per 128 weights: 64 bytes ql, whose low nibbles are the first 64, and 32 bytes qh. */
static float q6_k_at(const struct quant_q6_k *b, int i)
{
	int h = i / 128, r = i % 128;
	uint8_t l = b->ql[h * 64 + r % 64];
	int lo = r < 64 ? l & 15 : l >> 4;
	int hi = b->qh[h * 32 + r % 32] >> (r / 32 * 2) & 3;

	return quant_from_half(b->d) * (float)b->scales[i / 16] * (float)((lo | hi << 4) - 32);
}

static float iq4_xs_at(const struct quant_iq4_xs *b, int i)
{
	int s = i / 32, r = i % 32;
	int ls = (b->scales_l[s / 2] >> (s % 2 * 4) & 15) | (b->scales_h >> (s * 2) & 3) << 4;
	float dl = quant_from_half(b->d) * (float)(ls - 32);

	return dl * (float)quant_iq4_values[nibble(b->qs + s * 16, r)];
}

TO_F32(q2_k, 256, q2_k_at(b, i))
TO_F32(q3_k, 256, q3_k_at(b, i))
TO_F32(q4_k, 256, q4_k_at(b, i))
TO_F32(q5_k, 256, q5_k_at(b, i))
TO_F32(q6_k, 256, q6_k_at(b, i))
TO_F32(iq4_xs, 256, iq4_xs_at(b, i))

static void f32_copy(const void *src, float *dst, size_t n)
{
	memcpy(dst, src, n * 4);
}

static void f32_store(const float *src, void *dst, size_t n)
{
	memcpy(dst, src, n * 4);
}

static uint16_t u16_at(const void *p, size_t i)
{
	uint16_t v;

	memcpy(&v, (const char *)p + i * 2, 2);
	return v;
}

static void f16_to_f32(const void *src, float *dst, size_t n)
{
	for (size_t i = 0; i < n; i++)
		dst[i] = quant_from_half(u16_at(src, i));
}

static void f16_from_f32(const float *src, void *dst, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint16_t v = quant_to_half(src[i]);

		memcpy((char *)dst + i * 2, &v, 2);
	}
}

static void bf16_to_f32(const void *src, float *dst, size_t n)
{
	for (size_t i = 0; i < n; i++)
		dst[i] = quant_from_bf16(u16_at(src, i));
}

static void bf16_from_f32(const float *src, void *dst, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint16_t v = quant_to_bf16(src[i]);

		memcpy((char *)dst + i * 2, &v, 2);
	}
}

/* -- from f32 ---------------------------------------------------------------
 * Plain rounding against the block's range: good enough to make test models,
 * not a search for the best scale.
 */

static int clamp_round(float v, int lo, int hi)
{
	if (!(v > (float)lo))
		return lo; /* and NaN */
	return v >= (float)hi ? hi : (int)lrintf(v);
}

static void range(const float *x, int n, float *ret_min, float *ret_max)
{
	float lo = x[0], hi = x[0];

	for (int i = 1; i < n; i++) {
		lo = x[i] < lo ? x[i] : lo;
		hi = x[i] > hi ? x[i] : hi;
	}
	*ret_min = lo;
	*ret_max = hi;
}

/* The value of largest magnitude, with its sign. */
static float extreme(const float *x, int n)
{
	float lo, hi;

	range(x, n, &lo, &hi);
	return -lo > hi ? lo : hi;
}

static float inverse(float d)
{
	return d != 0 ? 1 / d : 0;
}

static void q4_0_from_f32(const float *x, void *dst, size_t n)
{
	struct quant_q4_0 *b = dst;

	for (size_t k = 0; k < n; k += 32, b++, x += 32) {
		float d, id;

		b->d = quant_to_half(extreme(x, 32) / -8);
		d = quant_from_half(b->d);
		id = inverse(d);
		for (int i = 0; i < 16; i++)
			b->qs[i] = (uint8_t)(clamp_round(x[i] * id + 8, 0, 15) |
					     clamp_round(x[i + 16] * id + 8, 0, 15) << 4);
	}
}

static void q4_1_from_f32(const float *x, void *dst, size_t n)
{
	struct quant_q4_1 *b = dst;

	for (size_t k = 0; k < n; k += 32, b++, x += 32) {
		float lo, hi, m, id;

		range(x, 32, &lo, &hi);
		b->d = quant_to_half((hi - lo) / 15);
		b->m = quant_to_half(lo);
		m = quant_from_half(b->m);
		id = inverse(quant_from_half(b->d));
		for (int i = 0; i < 16; i++)
			b->qs[i] = (uint8_t)(clamp_round((x[i] - m) * id, 0, 15) |
					     clamp_round((x[i + 16] - m) * id, 0, 15) << 4);
	}
}

static void put5(uint8_t *qs, uint8_t *qh, int i, int q)
{
	qs[i % 16] |= (uint8_t)((q & 15) << (i < 16 ? 0 : 4));
	qh[i / 8] |= (uint8_t)((q >> 4) << (i % 8));
}

static void q5_0_from_f32(const float *x, void *dst, size_t n)
{
	struct quant_q5_0 *b = dst;

	for (size_t k = 0; k < n; k += 32, b++, x += 32) {
		float id;

		memset(b, 0, sizeof(*b));
		b->d = quant_to_half(extreme(x, 32) / -16);
		id = inverse(quant_from_half(b->d));
		for (int i = 0; i < 32; i++)
			put5(b->qs, b->qh, i, clamp_round(x[i] * id + 16, 0, 31));
	}
}

static void q5_1_from_f32(const float *x, void *dst, size_t n)
{
	struct quant_q5_1 *b = dst;

	for (size_t k = 0; k < n; k += 32, b++, x += 32) {
		float lo, hi, m, id;

		memset(b, 0, sizeof(*b));
		range(x, 32, &lo, &hi);
		b->d = quant_to_half((hi - lo) / 31);
		b->m = quant_to_half(lo);
		m = quant_from_half(b->m);
		id = inverse(quant_from_half(b->d));
		for (int i = 0; i < 32; i++)
			put5(b->qs, b->qh, i, clamp_round((x[i] - m) * id, 0, 31));
	}
}

static void q8_0_from_f32(const float *x, void *dst, size_t n)
{
	struct quant_q8_0 *b = dst;

	for (size_t k = 0; k < n; k += 32, b++, x += 32) {
		float id;

		b->d = quant_to_half(fabsf(extreme(x, 32)) / 127);
		id = inverse(quant_from_half(b->d));
		for (int i = 0; i < 32; i++)
			b->qs[i] = (int8_t)clamp_round(x[i] * id, -127, 127);
	}
}

static void iq4_nl_from_f32(const float *x, void *dst, size_t n)
{
	struct quant_iq4_nl *b = dst;

	for (size_t k = 0; k < n; k += 32, b++, x += 32) {
		float id;

		memset(b->qs, 0, sizeof(b->qs));
		b->d = quant_to_half(extreme(x, 32) / -127);
		id = inverse(quant_from_half(b->d));
		for (int i = 0; i < 32; i++) {
			float v = x[i] * id;
			int best = 0;

			for (int q = 1; q < 16; q++)
				if (fabsf(v - (float)quant_iq4_values[q]) <
				    fabsf(v - (float)quant_iq4_values[best]))
					best = q;
			b->qs[i % 16] |= (uint8_t)(best << (i < 16 ? 0 : 4));
		}
	}
}

/*
 * Scales and mins of n sub-blocks of w weights as d * sc and dmin * m with
 * integers up to @top; the minimum is always <= 0 in these types.
 */
struct affine {
	uint16_t d, dmin;
	uint8_t sc[16], m[16];
};

static void fit_affine(const float *x, int n, int w, int levels, int top, struct affine *ret)
{
	float sc[16], m[16], max_sc = 0, max_m = 0, isc, im;

	for (int j = 0; j < n; j++) {
		float lo, hi;

		range(x + j * w, w, &lo, &hi);
		lo = lo > 0 ? 0 : lo;
		hi = hi < 0 ? 0 : hi;
		sc[j] = (hi - lo) / (float)levels;
		m[j] = -lo;
		max_sc = sc[j] > max_sc ? sc[j] : max_sc;
		max_m = m[j] > max_m ? m[j] : max_m;
	}
	ret->d = quant_to_half(max_sc / (float)top);
	ret->dmin = quant_to_half(max_m / (float)top);
	isc = inverse(quant_from_half(ret->d));
	im = inverse(quant_from_half(ret->dmin));
	for (int j = 0; j < n; j++) {
		ret->sc[j] = (uint8_t)clamp_round(sc[j] * isc, 0, top);
		ret->m[j] = (uint8_t)clamp_round(m[j] * im, 0, top);
	}
}

static int affine_q(const struct affine *a, int j, float x, int levels)
{
	float d = quant_from_half(a->d) * a->sc[j], m = quant_from_half(a->dmin) * a->m[j];

	return clamp_round((x + m) * inverse(d), 0, levels);
}

static void put_k4_scales(const struct affine *a, uint8_t *s)
{
	for (int j = 0; j < 4; j++) {
		s[j] = (uint8_t)(a->sc[j] | a->sc[j + 4] >> 4 << 6);
		s[j + 4] = (uint8_t)(a->m[j] | a->m[j + 4] >> 4 << 6);
		s[j + 8] = (uint8_t)((a->sc[j + 4] & 15) | (a->m[j + 4] & 15) << 4);
	}
}

static void q2_k_from_f32(const float *x, void *dst, size_t n)
{
	struct quant_q2_k *b = dst;
	struct affine a;

	for (size_t k = 0; k < n; k += 256, b++, x += 256) {
		memset(b, 0, sizeof(*b));
		fit_affine(x, 16, 16, 3, 15, &a);
		b->d = a.d;
		b->dmin = a.dmin;
		for (int j = 0; j < 16; j++)
			b->scales[j] = (uint8_t)(a.sc[j] | a.m[j] << 4);
		for (int i = 0; i < 256; i++)
			b->qs[i / 128 * 32 + i % 32] |=
				(uint8_t)(affine_q(&a, i / 16, x[i], 3) << (i % 128 / 32 * 2));
	}
}

static void q4_k_from_f32(const float *x, void *dst, size_t n)
{
	struct quant_q4_k *b = dst;
	struct affine a;

	for (size_t k = 0; k < n; k += 256, b++, x += 256) {
		memset(b, 0, sizeof(*b));
		fit_affine(x, 8, 32, 15, 63, &a);
		b->d = a.d;
		b->dmin = a.dmin;
		put_k4_scales(&a, b->scales);
		for (int i = 0; i < 256; i++)
			b->qs[i / 64 * 32 + i % 32] |=
				(uint8_t)(affine_q(&a, i / 32, x[i], 15) << (i % 64 < 32 ? 0 : 4));
	}
}

static void q5_k_from_f32(const float *x, void *dst, size_t n)
{
	struct quant_q5_k *b = dst;
	struct affine a;

	for (size_t k = 0; k < n; k += 256, b++, x += 256) {
		memset(b, 0, sizeof(*b));
		fit_affine(x, 8, 32, 31, 63, &a);
		b->d = a.d;
		b->dmin = a.dmin;
		put_k4_scales(&a, b->scales);
		for (int i = 0; i < 256; i++) {
			int q = affine_q(&a, i / 32, x[i], 31);

			b->qs[i / 64 * 32 + i % 32] |= (uint8_t)((q & 15) << (i % 64 < 32 ? 0 : 4));
			b->qh[i % 32] |= (uint8_t)((q >> 4) << (i / 32));
		}
	}
}

/* Signed scales of 16 sub-blocks of 16: the largest magnitude maps to -@low. */
static void fit_signed(const float *x, int low, int bottom, uint16_t *ret_d, int *ret_sc)
{
	float sc[16], big = 0, id;

	for (int j = 0; j < 16; j++) {
		sc[j] = extreme(x + j * 16, 16) / (float)-low;
		if (fabsf(sc[j]) > fabsf(big))
			big = sc[j];
	}
	*ret_d = quant_to_half(big / (float)-bottom);
	id = inverse(quant_from_half(*ret_d));
	for (int j = 0; j < 16; j++)
		ret_sc[j] = clamp_round(sc[j] * id, -bottom, bottom - 1);
}

static void q3_k_from_f32(const float *x, void *dst, size_t n)
{
	struct quant_q3_k *b = dst;
	int sc[16];

	for (size_t k = 0; k < n; k += 256, b++, x += 256) {
		memset(b, 0, sizeof(*b));
		fit_signed(x, 4, 32, &b->d, sc);
		for (int j = 0; j < 16; j++) {
			int s = sc[j] + 32;

			b->scales[j % 8] |= (uint8_t)((s & 15) << (j < 8 ? 0 : 4));
			b->scales[8 + j % 4] |= (uint8_t)((s >> 4) << (j / 4 * 2));
		}
		for (int i = 0; i < 256; i++) {
			float dl = quant_from_half(b->d) * (float)sc[i / 16];
			int q = clamp_round(x[i] * inverse(dl), -4, 3) + 4;

			b->qs[i / 128 * 32 + i % 32] |= (uint8_t)((q & 3) << (i % 128 / 32 * 2));
			b->hmask[i % 32] |= (uint8_t)((q >> 2) << (i / 32));
		}
	}
}

static void q6_k_from_f32(const float *x, void *dst, size_t n)
{
	struct quant_q6_k *b = dst;
	int sc[16];

	for (size_t k = 0; k < n; k += 256, b++, x += 256) {
		memset(b, 0, sizeof(*b));
		fit_signed(x, 32, 128, &b->d, sc);
		for (int j = 0; j < 16; j++)
			b->scales[j] = (int8_t)sc[j];
		for (int i = 0; i < 256; i++) {
			float dl = quant_from_half(b->d) * (float)sc[i / 16];
			int q = clamp_round(x[i] * inverse(dl), -32, 31) + 32;
			int h = i / 128, r = i % 128;

			b->ql[h * 64 + r % 64] |= (uint8_t)((q & 15) << (r < 64 ? 0 : 4));
			b->qh[h * 32 + r % 32] |= (uint8_t)((q >> 4) << (r / 32 * 2));
		}
	}
}

/* -- the table -------------------------------------------------------------- */

#define SIZE_ONLY(ID, n, w, by)                                                                    \
	[QUANT_##ID] = { .name = n, .id = QUANT_##ID, .block = w, .bytes = by }
#define READS(ID, n, w, by, t) [QUANT_##ID] = { \
	.name = n, .id = QUANT_##ID, .block = w, .bytes = by, .to_f32 = t##_to_f32 }
#define BOTH(ID, n, w, by, t)                                                                      \
	[QUANT_##ID] = { .name = n,                                                                \
			 .id = QUANT_##ID,                                                         \
			 .block = w,                                                               \
			 .bytes = by,                                                              \
			 .to_f32 = t##_to_f32,                                                     \
			 .from_f32 = t##_from_f32 }

static const struct quant_type types[QUANT_IDS] = {
	[QUANT_F32] = { .name = "F32", .id = QUANT_F32, .block = 1, .bytes = 4,
			.to_f32 = f32_copy, .from_f32 = f32_store },
	BOTH(F16, "F16", 1, 2, f16),
	BOTH(BF16, "BF16", 1, 2, bf16),
	BOTH(Q4_0, "Q4_0", 32, 18, q4_0),
	BOTH(Q4_1, "Q4_1", 32, 20, q4_1),
	BOTH(Q5_0, "Q5_0", 32, 22, q5_0),
	BOTH(Q5_1, "Q5_1", 32, 24, q5_1),
	BOTH(Q8_0, "Q8_0", 32, 34, q8_0),
	READS(Q8_1, "Q8_1", 32, 36, q8_1),
	BOTH(Q2_K, "Q2_K", 256, 84, q2_k),
	BOTH(Q3_K, "Q3_K", 256, 110, q3_k),
	BOTH(Q4_K, "Q4_K", 256, 144, q4_k),
	BOTH(Q5_K, "Q5_K", 256, 176, q5_k),
	BOTH(Q6_K, "Q6_K", 256, 210, q6_k),
	READS(Q8_K, "Q8_K", 256, 292, q8_k),
	BOTH(IQ4_NL, "IQ4_NL", 32, 18, iq4_nl),
	READS(IQ4_XS, "IQ4_XS", 256, 136, iq4_xs),
	SIZE_ONLY(IQ2_XXS, "IQ2_XXS", 256, 66),
	SIZE_ONLY(IQ2_XS, "IQ2_XS", 256, 74),
	SIZE_ONLY(IQ3_XXS, "IQ3_XXS", 256, 98),
	SIZE_ONLY(IQ1_S, "IQ1_S", 256, 50),
	SIZE_ONLY(IQ3_S, "IQ3_S", 256, 110),
	SIZE_ONLY(IQ2_S, "IQ2_S", 256, 82),
	SIZE_ONLY(IQ1_M, "IQ1_M", 256, 56),
	SIZE_ONLY(I8, "I8", 1, 1),
	SIZE_ONLY(I16, "I16", 1, 2),
	SIZE_ONLY(I32, "I32", 1, 4),
	SIZE_ONLY(I64, "I64", 1, 8),
	SIZE_ONLY(F64, "F64", 1, 8),
	SIZE_ONLY(TQ1_0, "TQ1_0", 256, 54),
	SIZE_ONLY(TQ2_0, "TQ2_0", 256, 66),
	SIZE_ONLY(MXFP4, "MXFP4", 32, 17),
	SIZE_ONLY(NVFP4, "NVFP4", 64, 36),
	SIZE_ONLY(Q1_0, "Q1_0", 128, 18),
	SIZE_ONLY(Q2_0, "Q2_0", 64, 18),
};

const struct quant_type *quant_type(uint32_t id)
{
	return id < QUANT_IDS && types[id].name ? &types[id] : NULL;
}

const char *quant_name(uint32_t id)
{
	const struct quant_type *t = quant_type(id);

	return t ? t->name : "?";
}

int quant_row_bytes(uint32_t id, uint64_t n, uint64_t *ret)
{
	const struct quant_type *t = quant_type(id);

	if (!t || n % t->block)
		return -EINVAL;
	if (n / t->block > UINT64_MAX / t->bytes)
		return -EOVERFLOW;
	*ret = n / t->block * t->bytes;
	return 0;
}

int quant_to_f32(uint32_t id, const void *src, float *dst, size_t n)
{
	const struct quant_type *t = quant_type(id);

	if (!t || n % t->block)
		return -EINVAL;
	if (!t->to_f32)
		return -EOPNOTSUPP;
	t->to_f32(src, dst, n);
	return 0;
}

int quant_from_f32(uint32_t id, const float *src, void *dst, size_t n)
{
	const struct quant_type *t = quant_type(id);

	if (!t || n % t->block)
		return -EINVAL;
	if (!t->from_f32)
		return -EOPNOTSUPP;
	t->from_f32(src, dst, n);
	return 0;
}
