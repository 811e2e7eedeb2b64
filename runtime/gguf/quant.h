/* SPDX-License-Identifier: MIT */
/*
 * The block formats of ggml tensors: their layout, and a slow, plain
 * conversion to and from f32 that every fast kernel is checked against.
 *
 * A row is cut into blocks of a fixed number of weights; a row's length must
 * be a multiple of it. Fields are little-endian, packed, without padding.
 * halfs are IEEE binary16 bits.
 */
#ifndef HEARTH_GGUF_QUANT_H
#define HEARTH_GGUF_QUANT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Type numbers as they stand in files. */
enum quant_id {
	QUANT_F32 = 0, QUANT_F16 = 1, QUANT_Q4_0 = 2, QUANT_Q4_1 = 3,
	QUANT_Q5_0 = 6, QUANT_Q5_1 = 7, QUANT_Q8_0 = 8, QUANT_Q8_1 = 9,
	QUANT_Q2_K = 10, QUANT_Q3_K = 11, QUANT_Q4_K = 12, QUANT_Q5_K = 13,
	QUANT_Q6_K = 14, QUANT_Q8_K = 15, QUANT_IQ2_XXS = 16, QUANT_IQ2_XS = 17,
	QUANT_IQ3_XXS = 18, QUANT_IQ1_S = 19, QUANT_IQ4_NL = 20, QUANT_IQ3_S = 21,
	QUANT_IQ2_S = 22, QUANT_IQ4_XS = 23, QUANT_I8 = 24, QUANT_I16 = 25,
	QUANT_I32 = 26, QUANT_I64 = 27, QUANT_F64 = 28, QUANT_IQ1_M = 29,
	QUANT_BF16 = 30, QUANT_TQ1_0 = 34, QUANT_TQ2_0 = 35, QUANT_MXFP4 = 39,
	QUANT_NVFP4 = 40, QUANT_Q1_0 = 41, QUANT_Q2_0 = 42,
	QUANT_IDS = 43
};

#define QUANT_BLOCK 32   /* weights of a legacy block */
#define QUANT_SUPER 256  /* weights of a K block */

struct quant_q4_0 {          /* d * (q - 8) */
	uint16_t d;
	uint8_t qs[16];      /* low nibbles: weights 0..15, high: 16..31 */
};
struct quant_q4_1 {          /* d * q + m */
	uint16_t d, m;
	uint8_t qs[16];
};
struct quant_q5_0 {          /* d * (q - 16) */
	uint16_t d;
	uint8_t qh[4];       /* bit i: bit 4 of weight i */
	uint8_t qs[16];
};
struct quant_q5_1 {          /* d * q + m */
	uint16_t d, m;
	uint8_t qh[4];
	uint8_t qs[16];
};
struct quant_q8_0 {          /* d * q */
	uint16_t d;
	int8_t qs[32];
};
struct quant_q8_1 {          /* activations only */
	uint16_t d, s;       /* s = d * sum(qs) */
	int8_t qs[32];
};
struct quant_q2_k {          /* d * sc * q - dmin * m */
	uint8_t scales[16];  /* low nibble sc, high m, per 16 weights */
	uint8_t qs[64];
	uint16_t d, dmin;
};
struct quant_q3_k {          /* d * (sc - 32) * (q - 4) */
	uint8_t hmask[32];
	uint8_t qs[64];
	uint8_t scales[12];  /* 16 six-bit scales */
	uint16_t d;
};
struct quant_q4_k {          /* d * sc * q - dmin * m */
	uint16_t d, dmin;
	uint8_t scales[12];  /* 8 six-bit scales and mins, see quant_k4_scale() */
	uint8_t qs[128];     /* per 64 weights 32 bytes: low nibbles first */
};
struct quant_q5_k {
	uint16_t d, dmin;
	uint8_t scales[12];
	uint8_t qh[32];
	uint8_t qs[128];
};
struct quant_q6_k {          /* d * sc * (q - 32) */
	uint8_t ql[128];
	uint8_t qh[64];
	int8_t scales[16];   /* per 16 weights */
	uint16_t d;
};
struct quant_q8_k {          /* activations only */
	float d;
	int8_t qs[256];
	int16_t bsums[16];   /* sums of 16 */
};
struct quant_iq4_nl {        /* d * quant_iq4_values[q] */
	uint16_t d;
	uint8_t qs[16];
};
struct quant_iq4_xs {
	uint16_t d;
	uint16_t scales_h;
	uint8_t scales_l[4];
	uint8_t qs[128];
};

#define QUANT_SIZE(t, n) _Static_assert(sizeof(struct quant_##t) == (n), #t " block size")
QUANT_SIZE(q4_0, 18);
QUANT_SIZE(q4_1, 20);
QUANT_SIZE(q5_0, 22);
QUANT_SIZE(q5_1, 24);
QUANT_SIZE(q8_0, 34);
QUANT_SIZE(q8_1, 36);
QUANT_SIZE(q2_k, 84);
QUANT_SIZE(q3_k, 110);
QUANT_SIZE(q4_k, 144);
QUANT_SIZE(q5_k, 176);
QUANT_SIZE(q6_k, 210);
QUANT_SIZE(q8_k, 292);
QUANT_SIZE(iq4_nl, 18);
QUANT_SIZE(iq4_xs, 136);
#undef QUANT_SIZE

extern const int8_t quant_iq4_values[16];

/* Six-bit scale and min of sub-block @j (0..7) of Q4_K and Q5_K. */
static inline void quant_k4_scale(int j, const uint8_t *s, uint8_t *ret_sc, uint8_t *ret_m)
{
	if (j < 4) {
		*ret_sc = s[j] & 63;
		*ret_m = s[j + 4] & 63;
	} else {
		*ret_sc = (uint8_t)((s[j + 4] & 15) | ((s[j - 4] >> 6) << 4));
		*ret_m = (uint8_t)((s[j + 4] >> 4) | ((s[j] >> 6) << 4));
	}
}

float quant_from_half(uint16_t h);
uint16_t quant_to_half(float f);   /* round to nearest even */
float quant_from_bf16(uint16_t b);
uint16_t quant_to_bf16(float f);   /* round to nearest even; NaN stays NaN */

struct quant_type {
	const char *name;      /* "Q4_K", ... */
	uint32_t id;
	uint32_t block;        /* weights a block */
	uint32_t bytes;        /* bytes a block */
	/* n: weights, a multiple of block. NULL where hearth only knows the size. */
	void (*to_f32)(const void *src, float *dst, size_t n);
	void (*from_f32)(const float *src, void *dst, size_t n);
};

/* NULL when the number is not one of a known type. */
const struct quant_type *quant_type(uint32_t id);
const char *quant_name(uint32_t id);  /* "?" when unknown */

/* Bytes of a row of @n weights; -EINVAL unknown type or n no multiple of the block, -EOVERFLOW. */
int quant_row_bytes(uint32_t id, uint64_t n, uint64_t *ret);

/* One row to f32; -EINVAL unknown type or length, -EOPNOTSUPP where only the size is known. */
int quant_to_f32(uint32_t id, const void *src, float *dst, size_t n);
int quant_from_f32(uint32_t id, const float *src, void *dst, size_t n);

#endif
