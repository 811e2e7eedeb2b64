/* SPDX-License-Identifier: MIT */
/*
 * What happens to rows between the matmuls, once per instruction set:
 * quantise, RMS norm, rotation, SwiGLU, KV append, attention. Included behind
 * cpu_gemm.h; the including file also defines
 *
 *   REDUCE_ADD(v), REDUCE_MAX(v)   over the lanes of a vf
 *   REDUCE_ADDI(v)                 over the lanes of a vi
 *   STORE_I8(p, v)                 NL int32 (each fits) to bytes
 *   STORE_HALF(p, v)               NL floats to halfs
 *   HALF(h), HALF_OF(f)            one half to float and back
 *   LANE_OF(n)                     REDUCE_ADD adds lanes as a binary tree; the
 *                                  lane that is its leaf number n
 *
 * A row's result does not depend, to the bit, on which rows are computed with
 * it: so a prompt gives the same logits however it is cut into steps, whatever
 * of it was cached, and whoever decodes beside it.
 */
#include <math.h>

#define PER32 (32 / NL)    /* vectors in 32 channels */
/* Query rows computed together: accumulators are ROWS4 * PER32 registers. */
#define ROWS4 (NL == 16 ? 4 : 2)
#define LANE_BITS (NL == 16 ? 4 : NL == 8 ? 3 : 2)

INLINE vf splat(float f)
{
	return (vf){ 0 } + f;
}

INLINE void store_f(float *p, vf v)
{
	memcpy(p, &v, sizeof(v));
}

INLINE vf max_f(vf a, vf b)
{
	const vi m = a > b;

	return (vf)(((vi)a & m) | ((vi)b & ~m));
}

INLINE vf abs_f(vf a)
{
	return (vf)((vi)a & 0x7fffffff);
}

/* To the nearest integer, ties to even; |v| < 2^22 */
INLINE vf round_f(vf v)
{
	const vf magic = splat(12582912.0f);

	return (v + magic) - magic;
}

/*
 * e^v within 2 units in the last place; below -87 it is e^-87, above 88 e^88.
 * 2^n by the exponent field, the rest by a polynomial on [-ln2/2, ln2/2].
 */
INLINE vf exp_f(vf v)
{
	vf n, r, p;
	vi e;

	v = max_f(v, splat(-87.0f));
	v = -max_f(-v, splat(-88.0f));
	n = round_f(v * 1.44269504f);
	r = v - n * 0.693359375f;
	r = r - n * -2.12194440e-4f;
	p = splat(1.9875691500e-4f);
	p = p * r + 1.3981999507e-3f;
	p = p * r + 8.3334519073e-3f;
	p = p * r + 4.1665795894e-2f;
	p = p * r + 1.6666665459e-1f;
	p = p * r + 5.0000001201e-1f;
	p = p * (r * r) + r + 1.0f;
	e = (__builtin_convertvector(n, vi) + 127) << 23;
	return p * (vf)e;
}

static float row_dot(const float *a, const float *b, uint32_t n)
{
	vf s0 = { 0 }, s1 = { 0 };
	uint32_t i = 0;
	float s;

	for (; i + 2 * NL <= n; i += 2 * NL) {
		s0 += load_f(a + i) * load_f(b + i);
		s1 += load_f(a + i + NL) * load_f(b + i + NL);
	}
	s = REDUCE_ADD(s0 + s1);
	for (; i < n; i++)
		s += a[i] * b[i];
	return s;
}

static void row_rmsnorm(const float *x, const float *w, uint32_t n, float eps, float *out)
{
	const float scale = 1.0f / sqrtf(row_dot(x, x, n) / (float)n + eps);
	uint32_t i = 0;

	for (; i + NL <= n; i += NL)
		store_f(out + i, load_f(x + i) * scale * load_f(w + i));
	for (; i < n; i++)
		out[i] = x[i] * scale * w[i];
}

/* 32 floats to int8; returns the scale they were divided by. */
INLINE float quant32(const float *x, int8_t *q, int half_scale, vi *ret_sum)
{
	vf v[PER32], top = { 0 };
	float d, id;

	for (int i = 0; i < PER32; i++) {
		v[i] = load_f(x + i * NL);
		top = max_f(top, abs_f(v[i]));
	}
	d = REDUCE_MAX(top) / 127.0f;
	if (half_scale)
		d = HALF(HALF_OF(d));
	id = d > 0 ? 1.0f / d : 0;
	for (int i = 0; i < PER32; i++) {
		vf r = round_f(v[i] * id);
		vi n;

		/* A scale rounded to half can push the largest value to 128. */
		if (half_scale)
			r = -max_f(-max_f(r, splat(-127.0f)), splat(-127.0f));
		n = __builtin_convertvector(r, vi);
		STORE_I8(q + i * NL, n);
		if (ret_sum)
			ret_sum[i * NL / 16] += n;
	}
	return d;
}

static void row_quantise(const float *x, uint32_t cols, void *tile, uint32_t M, uint32_t m)
{
	uint8_t *rec = tile;

	for (uint32_t k = 0; k < cols; k += 32, rec += REC(M)) {
		int8_t q[32];
		vi sum[2] = { { 0 }, { 0 } };
		const float d = quant32(x + k, q, 0, sum);
		const int32_t s0 = REDUCE_ADDI(sum[0]), s1 = REDUCE_ADDI(sum[1]);
		const float s = d * (float)(s0 + s1);
		const int32_t n32 = -128 * (s0 + s1), n0 = -32 * s0, n1 = -32 * s1;

		for (uint32_t i = 0; i < 8; i++)
			memcpy(rec + (i * M + m) * 4, q + 4 * i, 4);
		memcpy(rec + 32 * M + m * 4, &d, 4);
		memcpy(rec + 36 * M + m * 4, &s, 4);
		memcpy(rec + 40 * M + m * 4, &n32, 4);
		memcpy(rec + 44 * M + m * 4, &n0, 4);
		memcpy(rec + 48 * M + m * 4, &n1, 4);
	}
}

static void row_swiglu(float *h, const float *up, uint32_t n)
{
	uint32_t i = 0;

	for (; i + NL <= n; i += NL) {
		const vf g = load_f(h + i);

		store_f(h + i, g / (exp_f(-g) + 1.0f) * load_f(up + i));
	}
	for (; i < n; i++)
		h[i] = h[i] / (expf(-h[i]) + 1.0f) * up[i];
}

static void row_rotate(float *x, const float *cs, const float *sn, uint32_t head_dim)
{
	const uint32_t half = head_dim / 2;
	uint32_t i = 0;

	for (; i + NL <= half; i += NL) {
		const vf a = load_f(x + i), b = load_f(x + half + i);
		const vf c = load_f(cs + i), s = load_f(sn + i);

		store_f(x + i, a * c - b * s);
		store_f(x + half + i, a * s + b * c);
	}
	for (; i < half; i++) {
		const float a = x[i], b = x[half + i];

		x[i] = a * cs[i] - b * sn[i];
		x[half + i] = a * sn[i] + b * cs[i];
	}
}

static void row_kv_store(const struct kv_cfg *kv, uint8_t *head, uint32_t slot, const float *x)
{
	const uint32_t hd = kv->head_dim;

	if (kv->type == KV_I8) {
		int8_t *q = (int8_t *)head + (size_t)slot * hd;
		uint16_t *s = (uint16_t *)(head + kv_scale_off(kv)) + (size_t)slot * (hd / KV_GROUP);

		for (uint32_t k = 0; k < hd; k += KV_GROUP)
			s[k / KV_GROUP] = HALF_OF(quant32(x + k, q + k, 1, NULL));
	} else {
		uint16_t *f = (uint16_t *)head + (size_t)slot * hd;

		for (uint32_t k = 0; k < hd; k += NL)
			STORE_HALF(f + k, load_f(x + k));
	}
}

/* -- attention ------------------------------------------------------------------ */

/*
 * Both ways go page by page with a running maximum and sum per query row, so
 * the length of the context needs no memory. What lies in a page behind the
 * last token is never read.
 */

/* 32 channels of token @t of a page's K or V head, to floats. */
INLINE void load_kv(const struct kv_cfg *kv, const uint8_t *head, uint32_t t, uint32_t k, vf *v)
{
	const uint32_t hd = kv->head_dim;

	if (kv->type == KV_I8) {
		const uint8_t *q = head + (size_t)t * hd + k;
		uint16_t s;
		float d;

		memcpy(&s, head + kv_scale_off(kv) + ((size_t)t * (hd / KV_GROUP) + k / KV_GROUP) * 2, 2);
		d = HALF(s);
		for (int i = 0; i < PER32; i++)
			v[i] = LOAD_S8(q + i * NL) * d;
	} else {
		const uint8_t *f = head + ((size_t)t * hd + k) * 2;

		for (int i = 0; i < PER32; i++)
			v[i] = LOAD_HALF(f + i * NL * 2);
	}
}

/* exp(s - max), zero from lane @valid on; returns their sum. */
INLINE float soft32(const float *s, float max, uint32_t valid, float *p)
{
	vf sum = { 0 };

	for (int i = 0; i < PER32; i++) {
		const vf e = exp_f(load_f(s + i * NL) - max);
		vi lane = { 0 };
		vf v;

		for (int j = 0; j < NL; j++)
			lane[j] = i * NL + j;
		v = (vf)((vi)e & (lane < (int32_t)valid));
		sum += v;
		store_f(p + i * NL, v);
	}
	return REDUCE_ADD(sum);
}

INLINE float max32(const float *s, uint32_t valid)
{
	float m = s[0];

	for (uint32_t t = 1; t < valid; t++)
		m = s[t] > m ? s[t] : m;
	return m;
}

/* One token row, its group's heads two at a time: K and V are read as stored. */
INLINE void attend_one(const struct cpu_attend *a, uint32_t row, uint32_t g0, const uint32_t G)
{
	const struct kv_cfg *kv = a->kv;
	const uint32_t hd = kv->head_dim, n = a->pos0 + row + 1;
	const float scale = 1.0f / sqrtf((float)hd);
	const float *q = a->q + row * a->q_stride + (size_t)g0 * hd;
	float *out = a->out + row * a->q_stride + (size_t)g0 * hd;
	float max[2] = { -INFINITY, -INFINITY }, sum[2] = { 0, 0 };

	for (uint32_t g = 0; g < G; g++)
		memset(out + g * hd, 0, hd * sizeof(float));
	for (uint32_t t0 = 0; t0 < n; t0 += KV_PAGE) {
		const uint8_t *page = a->kv_base + (size_t)a->page[t0 / KV_PAGE] * a->page_bytes;
		const uint8_t *kh = page + a->k_off, *vh_ = page + a->v_off;
		const uint32_t valid = n - t0 < KV_PAGE ? n - t0 : KV_PAGE;
		float s[2][KV_PAGE] __attribute__((aligned(64))) = { { 0 } };

		for (uint32_t t = 0; t < valid; t++) {
			vf acc[2] = { { 0 }, { 0 } };

			for (uint32_t k = 0; k < hd; k += 32) {
				vf v[PER32];

				load_kv(kv, kh, t, k, v);
				for (int i = 0; i < PER32; i++)
					for (uint32_t g = 0; g < G; g++)
						acc[g] += v[i] * load_f(q + g * hd + k + i * NL);
			}
			for (uint32_t g = 0; g < G; g++)
				s[g][t] = REDUCE_ADD(acc[g]) * scale;
		}
		for (uint32_t g = 0; g < G; g++) {
			const float m = max32(s[g], valid);

			if (m > max[g]) {
				const float fix = expf(max[g] - m);

				for (uint32_t k = 0; k < hd; k += NL)
					store_f(out + g * hd + k, load_f(out + g * hd + k) * fix);
				sum[g] *= fix;
				max[g] = m;
			}
			sum[g] += soft32(s[g], max[g], valid, s[g]);
		}
		for (uint32_t k = 0; k < hd; k += 32) {
			vf acc[2][PER32];

			for (uint32_t g = 0; g < G; g++)
				for (int i = 0; i < PER32; i++)
					acc[g][i] = load_f(out + g * hd + k + i * NL);
			for (uint32_t t = 0; t < valid; t++) {
				vf v[PER32];

				load_kv(kv, vh_, t, k, v);
				for (int i = 0; i < PER32; i++)
					for (uint32_t g = 0; g < G; g++)
						acc[g][i] += v[i] * s[g][t];
			}
			for (uint32_t g = 0; g < G; g++)
				for (int i = 0; i < PER32; i++)
					store_f(out + g * hd + k + i * NL, acc[g][i]);
		}
	}
	for (uint32_t g = 0; g < G; g++)
		for (uint32_t k = 0; k < hd; k += NL)
			store_f(out + g * hd + k, load_f(out + g * hd + k) * (1.0f / sum[g]));
}

/* K of a page as [hd][32] and V as [32][hd], floats; zero from @valid on. */
static void page_to_float(const struct cpu_attend *a, const uint8_t *page, uint32_t valid,
			  float *kt, float *v)
{
	const uint32_t hd = a->kv->head_dim;

	for (uint32_t t = 0; t < KV_PAGE; t++) {
		for (uint32_t k = 0; k < hd; k += 32) {
			vf w[PER32];
			float one[32];

			if (t < valid) {
				load_kv(a->kv, page + a->k_off, t, k, w);
				memcpy(one, w, sizeof(one));
				load_kv(a->kv, page + a->v_off, t, k, w);
				memcpy(v + (size_t)t * hd + k, w, sizeof(w));
			} else {
				memset(one, 0, sizeof(one));
				memset(v + (size_t)t * hd + k, 0, 32 * sizeof(float));
			}
			for (uint32_t i = 0; i < 32; i++)
				kt[(k + i) * KV_PAGE + t] = one[i];
		}
	}
}

/* Up to ROWS4 query rows against one page in floats. */
INLINE void attend_page(const float *const *q, float *const *out, const uint32_t *valid,
			float *max, float *sum, const float *kt, const float *v, uint32_t hd,
			float scale)
{
	float s[ROWS4][KV_PAGE] __attribute__((aligned(64)));
	vf acc[ROWS4][PER32];

	for (int i = 0; i < PER32; i++) {
		/* attend_one() sums over lanes of channels and then over the lanes: so does this. */
		vf part[LANE_BITS + 1][ROWS4];

		UNROLL for (int n = 0; n < NL; n++) {
			vf a[ROWS4];
			int l;

			for (int r = 0; r < ROWS4; r++)
				a[r] = (vf){ 0 };
			for (uint32_t k = LANE_OF(n); k < hd; k += NL) {
				const vf w = load_f(kt + k * KV_PAGE + i * NL);

				UNROLL for (int r = 0; r < ROWS4; r++)
					a[r] += w * q[r][k];
			}
			for (l = 0; n >> l & 1; l++)
				for (int r = 0; r < ROWS4; r++)
					a[r] = part[l][r] + a[r];
			for (int r = 0; r < ROWS4; r++)
				part[l][r] = a[r];
		}
		for (int r = 0; r < ROWS4; r++)
			store_f(s[r] + i * NL, part[LANE_BITS][r] * scale);
	}
	for (int r = 0; r < ROWS4; r++) {
		float m;

		if (!valid[r]) {
			memset(s[r], 0, sizeof(s[r]));
			continue;
		}
		m = max32(s[r], valid[r]);
		if (m > max[r]) {
			const float fix = expf(max[r] - m);

			for (uint32_t k = 0; k < hd; k += NL)
				store_f(out[r] + k, load_f(out[r] + k) * fix);
			sum[r] *= fix;
			max[r] = m;
		}
		sum[r] += soft32(s[r], max[r], valid[r], s[r]);
	}
	for (uint32_t k = 0; k < hd; k += 32) {
		UNROLL for (int r = 0; r < ROWS4; r++)
			for (int i = 0; i < PER32; i++)
				acc[r][i] = load_f(out[r] + k + i * NL);
		for (uint32_t t = 0; t < KV_PAGE; t++) {
			vf w[PER32];

			for (int i = 0; i < PER32; i++)
				w[i] = load_f(v + (size_t)t * hd + k + i * NL);
			UNROLL for (int r = 0; r < ROWS4; r++)
				for (int i = 0; i < PER32; i++)
					acc[r][i] += w[i] * s[r][t];
		}
		UNROLL for (int r = 0; r < ROWS4; r++)
			for (int i = 0; i < PER32; i++)
				store_f(out[r] + k + i * NL, acc[r][i]);
	}
}

static void attend_many(const struct cpu_attend *a)
{
	const uint32_t hd = a->kv->head_dim, rows = a->rows * a->group;
	const uint32_t end = a->pos0 + a->rows;
	const float scale = 1.0f / sqrtf((float)hd);
	float *kt = a->tmp, *v = kt + KV_PAGE * hd, *max = v + KV_PAGE * hd, *sum = max + rows;
	float *spare = sum + rows;   /* hd: where rows that pad a group of ROWS4 go */

	memset(spare, 0, hd * sizeof(float));
	for (uint32_t r = 0; r < rows; r++) {
		max[r] = -INFINITY;
		sum[r] = 0;
		memset(a->out + r / a->group * a->q_stride + (size_t)(r % a->group) * hd, 0,
		       hd * sizeof(float));
	}
	for (uint32_t t0 = 0; t0 < end; t0 += KV_PAGE) {
		const uint8_t *page = a->kv_base + (size_t)a->page[t0 / KV_PAGE] * a->page_bytes;
		/* Rows before the page's first token see none of it. */
		uint32_t r = t0 > a->pos0 ? (t0 - a->pos0) * a->group : 0;

		page_to_float(a, page, end - t0 < KV_PAGE ? end - t0 : KV_PAGE, kt, v);
		for (; r < rows; r += ROWS4) {
			const float *q[ROWS4];
			float *out[ROWS4], m[ROWS4], s[ROWS4];
			uint32_t valid[ROWS4];

			for (uint32_t i = 0; i < ROWS4; i++) {
				const uint32_t row = r + i < rows ? r + i : rows - 1;
				const uint32_t n = a->pos0 + row / a->group + 1 - t0;
				const size_t at = row / a->group * a->q_stride +
						  (size_t)(row % a->group) * hd;

				q[i] = a->q + at;
				out[i] = r + i < rows ? a->out + at : spare;
				valid[i] = r + i >= rows ? 0 : n < KV_PAGE ? n : KV_PAGE;
				m[i] = max[row];
				s[i] = sum[row];
			}
			attend_page(q, out, valid, m, s, kt, v, hd, scale);
			for (uint32_t i = 0; i < ROWS4 && r + i < rows; i++) {
				max[r + i] = m[i];
				sum[r + i] = s[i];
			}
		}
	}
	for (uint32_t r = 0; r < rows; r++) {
		float *out = a->out + r / a->group * a->q_stride + (size_t)(r % a->group) * hd;

		for (uint32_t k = 0; k < hd; k += NL)
			store_f(out + k, load_f(out + k) * (1.0f / sum[r]));
	}
}

static void row_attend(const struct cpu_attend *a)
{
	if (a->rows >= 4) {
		attend_many(a);
		return;
	}
	for (uint32_t r = 0; r < a->rows; r++) {
		uint32_t g = 0;

		for (; g + 2 <= a->group; g += 2)
			attend_one(a, r, g, 2);
		if (g < a->group)
			attend_one(a, r, g, 1);
	}
}

#define ROWS_TABLE \
	.quantise = row_quantise, \
	.rmsnorm = row_rmsnorm, \
	.dot = row_dot, \
	.swiglu = row_swiglu, \
	.rotate = row_rotate, \
	.kv_store = row_kv_store, \
	.attend = row_attend
