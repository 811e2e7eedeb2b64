// SPDX-License-Identifier: MIT
/* Plain C over the same layouts: any machine, and what the others are checked against. */
#include "model/cpu.h"

#include <math.h>

#define NL 4
#define TILE 4
#define DOT8_SIGNED 1

typedef int32_t v4i __attribute__((vector_size(16)));
typedef uint8_t v16b __attribute__((vector_size(16)));
typedef float v4f __attribute__((vector_size(16)));

/* Byte i of all lanes at once: gcc makes vectors of that, and scalars of sums byte by byte. */
static inline __attribute__((always_inline)) v4i dot4(v4i t, v16b w, const uint8_t *a, int off)
{
	const v4i x = (v4i)w;

	for (int i = 0; i < 4; i++)
		t += ((x >> (8 * i) & 0xff) - off) * (int8_t)a[i];
	return t;
}

static inline v4f load_half(const uint8_t *p)
{
	v4f v;

	for (int i = 0; i < 4; i++)
		v[i] = quant_from_half((uint16_t)(p[2 * i] | p[2 * i + 1] << 8));
	return v;
}

static inline void store_i8(int8_t *p, v4i v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (int8_t)v[i];
}

static inline void store_half(uint16_t *p, v4f v)
{
	for (int i = 0; i < 4; i++)
		p[i] = quant_to_half(v[i]);
}

#define DOT(t, w, a) dot4(t, w, a, 0)
#define DOT8(t, w, a) dot4(t, w, a, 128)
#define LOAD_HALF(p) load_half((const uint8_t *)(p))
#define LOAD_U8(p) ((v4f){ (p)[0], (p)[1], (p)[2], (p)[3] })
#define LOAD_S8(p) ((v4f){ (int8_t)(p)[0], (int8_t)(p)[1], (int8_t)(p)[2], (int8_t)(p)[3] })
#define STORE_I8(p, v) store_i8(p, v)
#define STORE_HALF(p, v) store_half(p, v)
#define HALF(h) quant_from_half(h)
#define HALF_OF(f) quant_to_half(f)
#define REDUCE_ADD(v) (((v)[0] + (v)[1]) + ((v)[2] + (v)[3]))
#define LANE_OF(n) (n)
#define REDUCE_MAX(v) fmaxf(fmaxf((v)[0], (v)[1]), fmaxf((v)[2], (v)[3]))
#define REDUCE_ADDI(v) ((v)[0] + (v)[1] + (v)[2] + (v)[3])

#include "model/cpu_gemm.h"
#include "model/cpu_rows.h"

const struct cpu_kern cpu_plain = {
	.name = "plain",
	.tile = TILE,
	.gemm = GEMM_TABLE,
	ROWS_TABLE,
};
