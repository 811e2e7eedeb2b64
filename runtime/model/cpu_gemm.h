/* SPDX-License-Identifier: MIT */
/*
 * Panel times tile, for every quantisation type, once per instruction set.
 * The including file defines, before:
 *
 *   NL            int32 lanes of a vector (16, 8 or 4): panels are walked in
 *                 16/NL passes of NL rows
 *   TILE          rows of a full tile
 *   DOT(t, w, a)  t[lane] += sum of 4: w bytes (unsigned, < 128) * a bytes
 *                 (signed), a being 4 bytes broadcast from memory
 *   DOT8(t, w, a) the same with w any unsigned byte (Q8_0 ^ 0x80). Where
 *                 DOT8_SIGNED is 1 it takes w - 128 instead, and no correction
 *                 is added
 *   LOAD_HALF(p)  NL halfs to floats
 *   LOAD_U8(p), LOAD_S8(p)  NL bytes to floats
 *
 * All loops over M are unrolled: M is a constant in each instance, so that the
 * accumulators are registers.
 */
#include <string.h>

typedef int32_t vi __attribute__((vector_size(NL * 4)));
typedef uint32_t vu __attribute__((vector_size(NL * 4)));
typedef float vf __attribute__((vector_size(NL * 4)));
typedef uint8_t vb __attribute__((vector_size(NL * 4)));
typedef uint16_t vh __attribute__((vector_size(NL * 2)));

#define INLINE static inline __attribute__((always_inline))
#ifdef CPU_NO_UNROLL
#define UNROLL
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

INLINE vb load_b(const uint8_t *p)
{
	vb v;

	memcpy(&v, p, sizeof(v));
	return v;
}

INLINE vf load_f(const float *p)
{
	vf v;

	memcpy(&v, p, sizeof(v));
	return v;
}

INLINE vf to_f(vi v)
{
	return __builtin_convertvector(v, vf);
}

INLINE float scalar_f(const uint8_t *p)
{
	float f;

	memcpy(&f, p, 4);
	return f;
}

INLINE int32_t scalar_i(const uint8_t *p)
{
	int32_t i;

	memcpy(&i, p, 4);
	return i;
}

/*
 * With one row the weights stream from memory once: ask for what comes next
 * some blocks early. With many rows they are in the cache already.
 */
#define AHEAD(M, p) do { \
	if ((M) <= 2) \
		__builtin_prefetch((p) + PREFETCH_BYTES, 0, 3); \
} while (0)
#ifndef PREFETCH_BYTES
#define PREFETCH_BYTES 4096
#endif

/* Where things are in one 32-channel record of a tile of M rows. */
#define REC(M)        (CPU_ACT_BYTES * (M))
#define A_Q(r, M, i, m)  ((r) + ((i) * (M) + (m)) * 4)
#define A_D(r, M, m)     scalar_f((r) + 32 * (M) + (m) * 4)
#define A_S(r, M, m)     scalar_f((r) + 36 * (M) + (m) * 4)
#define A_N32(r, M, m)   scalar_i((r) + 40 * (M) + (m) * 4)
#define A_N16(r, M, h, m) scalar_i((r) + 44 * (M) + ((h) * (M) + (m)) * 4)

/* acc[m] += d_a * ds * (w . a) over 8 vectors of one sub-block */
#define SUB32(M, rec, w, ds, acc) do { \
	UNROLL for (int m = 0; m < (M); m++) { \
		vi t = { 0 }; \
		UNROLL for (int i = 0; i < 8; i++) \
			t = DOT(t, w[i], A_Q(rec, M, i, m)); \
		acc[m] += to_f(t) * A_D(rec, M, m) * (ds); \
	} \
} while (0)

/* The same, with the minimum taken off: - s_a * ms */
#define SUB32_MIN(M, rec, w, ds, ms, acc) do { \
	UNROLL for (int m = 0; m < (M); m++) { \
		vi t = { 0 }; \
		UNROLL for (int i = 0; i < 8; i++) \
			t = DOT(t, w[i], A_Q(rec, M, i, m)); \
		acc[m] += to_f(t) * A_D(rec, M, m) * (ds); \
		acc[m] -= (ms) * A_S(rec, M, m); \
	} \
} while (0)

INLINE void store_out(float *out, int M, int h, const vf *acc)
{
	for (int m = 0; m < M; m++)
		memcpy(out + m * 16 + h * NL, &acc[m], sizeof(vf));
}

/* -- Q4_K, Q5_K -------------------------------------------------------------- */

/* 6-bit scales and minima of 8 sub-blocks, 16 rows each. */
INLINE void unpack_k4(const uint8_t *s, uint8_t *restrict sc, uint8_t *restrict mn)
{
	for (int i = 0; i < 64; i++) {
		const uint8_t a = s[i], b = s[64 + i], c = s[128 + i];

		sc[i] = a & 63;
		mn[i] = b & 63;
		sc[64 + i] = (uint8_t)((c & 15) | ((a >> 6) << 4));
		mn[64 + i] = (uint8_t)((c >> 4) | ((b >> 6) << 4));
	}
}

INLINE void q45k(const uint8_t *panel, uint32_t cols, const uint8_t *tile, float *out,
		 const int M, const int five)
{
	const uint32_t bytes = (five ? 176 : 144) * 16, qoff = five ? 768 : 256;

	for (int h = 0; h < 16 / NL; h++) {
		vf acc[TILE];
		const uint8_t *rec = tile, *pb = panel;

		for (int m = 0; m < M; m++)
			acc[m] = (vf){ 0 };
		for (uint32_t b = 0; b < cols; b += 256, pb += bytes) {
			const vf d = LOAD_HALF(pb + h * NL * 2);
			const vf dm = LOAD_HALF(pb + 32 + h * NL * 2);
			uint8_t sc[128], mn[128];

			for (int i = 0; i < (five ? 12 : 4); i++)
				AHEAD(M, pb + i * 64);
			unpack_k4(pb + 64, sc, mn);
			UNROLL for (int p = 0; p < 4; p++) {
				const uint8_t *q = pb + qoff + p * 512 + h * NL * 4;
				const uint8_t *hi = pb + 256 + h * NL * 4;
				vf ds, ms;
				vb w[8];

				UNROLL for (int i = 0; i < 8; i++) {
					AHEAD(M, q + i * 64);
					w[i] = load_b(q + i * 64) & 15;
					if (five)
						w[i] |= ((load_b(hi + i * 64) >> (2 * p)) & 1) << 4;
				}
				ds = d * LOAD_U8(sc + p * 32 + h * NL);
				ms = dm * LOAD_U8(mn + p * 32 + h * NL);
				SUB32_MIN(M, rec, w, ds, ms, acc);
				rec += REC(M);
				UNROLL for (int i = 0; i < 8; i++) {
					w[i] = load_b(q + i * 64) >> 4;
					if (five)
						w[i] |= ((load_b(hi + i * 64) >> (2 * p + 1)) & 1) << 4;
				}
				ds = d * LOAD_U8(sc + p * 32 + 16 + h * NL);
				ms = dm * LOAD_U8(mn + p * 32 + 16 + h * NL);
				SUB32_MIN(M, rec, w, ds, ms, acc);
				rec += REC(M);
			}
		}
		store_out(out, M, h, acc);
	}
}

INLINE void gemm_q4_k(const uint8_t *p, uint32_t cols, const uint8_t *t, float *o, const int M)
{
	q45k(p, cols, t, o, M, 0);
}

INLINE void gemm_q5_k(const uint8_t *p, uint32_t cols, const uint8_t *t, float *o, const int M)
{
	q45k(p, cols, t, o, M, 1);
}

/* -- Q6_K -------------------------------------------------------------------- */

INLINE void gemm_q6_k(const uint8_t *panel, uint32_t cols, const uint8_t *tile, float *out,
		      const int M)
{
	for (int h = 0; h < 16 / NL; h++) {
		vf acc[TILE];
		const uint8_t *rec = tile, *pb = panel;

		for (int m = 0; m < M; m++)
			acc[m] = (vf){ 0 };
		for (uint32_t b = 0; b < cols; b += 256, pb += 3360) {
			const vf d = LOAD_HALF(pb + h * NL * 2);

			/* sub-block j = 4n + c: 32 weights, two scales */
			UNROLL for (int j = 0; j < 8; j++) {
				const int n = j / 4, c = j % 4;
				const uint8_t *qh = pb + 288 + n * 512 + h * NL * 4;
				const uint8_t *ql = pb + 1312 + n * 1024 + (c & 1) * 512 + h * NL * 4;
				const vf d0 = d * LOAD_S8(pb + 32 + (2 * j) * 16 + h * NL);
				const vf d1 = d * LOAD_S8(pb + 32 + (2 * j + 1) * 16 + h * NL);
				vb w[8];

				UNROLL for (int i = 0; i < 8; i++) {
					vb lo = load_b(ql + i * 64);

					if (c < 2)
						AHEAD(M, ql + i * 64);
					if (c == 0)
						AHEAD(M, qh + i * 64);
					lo = c < 2 ? lo & 15 : lo >> 4;
					w[i] = lo | ((load_b(qh + i * 64) >> (2 * c)) & 3) << 4;
				}
				UNROLL for (int m = 0; m < M; m++) {
					vi t0 = (vi){ 0 } + A_N16(rec, M, 0, m);
					vi t1 = (vi){ 0 } + A_N16(rec, M, 1, m);
					vf f;

					UNROLL for (int i = 0; i < 4; i++) {
						t0 = DOT(t0, w[i], A_Q(rec, M, i, m));
						t1 = DOT(t1, w[i + 4], A_Q(rec, M, i + 4, m));
					}
					f = to_f(t0) * d0 + to_f(t1) * d1;
					acc[m] += f * A_D(rec, M, m);
				}
				rec += REC(M);
			}
		}
		store_out(out, M, h, acc);
	}
}

/* -- the formats of 32 --------------------------------------------------------- */

INLINE void gemm_q8_0(const uint8_t *panel, uint32_t cols, const uint8_t *tile, float *out,
		      const int M)
{
	for (int h = 0; h < 16 / NL; h++) {
		vf acc[TILE];
		const uint8_t *rec = tile, *pb = panel;

		for (int m = 0; m < M; m++)
			acc[m] = (vf){ 0 };
		for (uint32_t b = 0; b < cols; b += 32, pb += 544, rec += REC(M)) {
			const vf d = LOAD_HALF(pb + h * NL * 2);
			vb w[8];

			UNROLL for (int i = 0; i < 8; i++)
				w[i] = load_b(pb + 32 + i * 64 + h * NL * 4);
			UNROLL for (int i = 0; i < 8; i++)
				AHEAD(M, pb + 32 + i * 64);
			UNROLL for (int m = 0; m < M; m++) {
				vi t = { 0 };

				if (!DOT8_SIGNED)
					t += A_N32(rec, M, m);
				UNROLL for (int i = 0; i < 8; i++)
					t = DOT8(t, w[i], A_Q(rec, M, i, m));
				acc[m] += to_f(t) * A_D(rec, M, m) * d;
			}
		}
		store_out(out, M, h, acc);
	}
}

/* Q4_0, Q4_1, Q5_0, Q5_1: @five has high bits, @min a minimum instead of an offset. */
INLINE void q45(const uint8_t *panel, uint32_t cols, const uint8_t *tile, float *out,
		const int M, const int five, const int min)
{
	const uint32_t bytes = (18 + (five ? 4 : 0) + (min ? 2 : 0)) * 16;
	const uint32_t hoff = min ? 64 : 32, qoff = hoff + (five ? 64 : 0);

	for (int h = 0; h < 16 / NL; h++) {
		vf acc[TILE];
		const uint8_t *rec = tile, *pb = panel;

		for (int m = 0; m < M; m++)
			acc[m] = (vf){ 0 };
		for (uint32_t b = 0; b < cols; b += 32, pb += bytes, rec += REC(M)) {
			const vf d = LOAD_HALF(pb + h * NL * 2);
			vf ms = min ? LOAD_HALF(pb + 32 + h * NL * 2) : d * (five ? 16.0f : 8.0f);
			vb w[8];

			if (min)
				ms = -ms;
			UNROLL for (int i = 0; i < 4; i++) {
				const vb q = load_b(pb + qoff + i * 64 + h * NL * 4);

				AHEAD(M, pb + qoff + i * 64);
				w[i] = q & 15;
				w[4 + i] = q >> 4;
				if (five) {
					const vb hb = load_b(pb + hoff + h * NL * 4);

					w[i] |= ((hb >> i) & 1) << 4;
					w[4 + i] |= ((hb >> (4 + i)) & 1) << 4;
				}
			}
			SUB32_MIN(M, rec, w, d, ms, acc);
		}
		store_out(out, M, h, acc);
	}
}

INLINE void gemm_q4_0(const uint8_t *p, uint32_t cols, const uint8_t *t, float *o, const int M)
{
	q45(p, cols, t, o, M, 0, 0);
}

INLINE void gemm_q4_1(const uint8_t *p, uint32_t cols, const uint8_t *t, float *o, const int M)
{
	q45(p, cols, t, o, M, 0, 1);
}

INLINE void gemm_q5_0(const uint8_t *p, uint32_t cols, const uint8_t *t, float *o, const int M)
{
	q45(p, cols, t, o, M, 1, 0);
}

INLINE void gemm_q5_1(const uint8_t *p, uint32_t cols, const uint8_t *t, float *o, const int M)
{
	q45(p, cols, t, o, M, 1, 1);
}

/* -- floats ------------------------------------------------------------------------ */

#define FLOAT_GEMM(NAME, STEP, LOADW) \
INLINE void gemm_##NAME(const uint8_t *panel, uint32_t cols, const uint8_t *tile, float *out, \
			const int M) \
{ \
	for (int h = 0; h < 16 / NL; h++) { \
		vf acc[TILE]; \
		const uint8_t *x = tile, *p = panel + h * NL * (STEP); \
		for (int m = 0; m < M; m++) \
			acc[m] = (vf){ 0 }; \
		for (uint32_t k = 0; k < cols; k++, p += 16 * (STEP), x += 4 * M) { \
			const vf w = LOADW; \
			UNROLL for (int m = 0; m < M; m++) \
				acc[m] += w * scalar_f(x + 4 * m); \
		} \
		store_out(out, M, h, acc); \
	} \
}

INLINE vf load_bf16(const uint8_t *p)
{
	vh v;
	vu u;
	vf f;

	memcpy(&v, p, sizeof(v));
	u = __builtin_convertvector(v, vu) << 16;
	memcpy(&f, &u, sizeof(f));
	return f;
}

INLINE vf load_f32(const uint8_t *p)
{
	vf v;

	memcpy(&v, p, sizeof(v));
	return v;
}

FLOAT_GEMM(f32, 4, load_f32(p))
FLOAT_GEMM(f16, 2, LOAD_HALF(p))
FLOAT_GEMM(bf16, 2, load_bf16(p))

/* -- one instance per tile width ------------------------------------------------------ */

#if TILE >= 16
#define CASE16(NAME) case 16: gemm_##NAME(p, cols, t, out, 16); break;
#else
#define CASE16(NAME)
#endif
#if TILE >= 8
#define CASE8(NAME) case 8: gemm_##NAME(p, cols, t, out, 8); break;
#else
#define CASE8(NAME)
#endif

#define GEMM(NAME) \
static void do_##NAME(const void *p, uint32_t cols, const void *t, uint32_t m, float *out) \
{ \
	switch (m) { \
	CASE16(NAME) \
	CASE8(NAME) \
	case 4: gemm_##NAME(p, cols, t, out, 4); break; \
	case 2: gemm_##NAME(p, cols, t, out, 2); break; \
	default: gemm_##NAME(p, cols, t, out, 1); break; \
	} \
}

GEMM(q4_k)
GEMM(q5_k)
GEMM(q6_k)
GEMM(q8_0)
GEMM(q4_0)
GEMM(q4_1)
GEMM(q5_0)
GEMM(q5_1)
GEMM(f32)
GEMM(f16)
GEMM(bf16)

#define GEMM_TABLE { \
	[QUANT_F32] = do_f32, [QUANT_F16] = do_f16, [QUANT_BF16] = do_bf16, \
	[QUANT_Q4_0] = do_q4_0, [QUANT_Q4_1] = do_q4_1, \
	[QUANT_Q5_0] = do_q5_0, [QUANT_Q5_1] = do_q5_1, [QUANT_Q8_0] = do_q8_0, \
	[QUANT_Q4_K] = do_q4_k, [QUANT_Q5_K] = do_q5_k, [QUANT_Q6_K] = do_q6_k, \
}
