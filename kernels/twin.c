/* SPDX-License-Identifier: MIT */
#include "kernels/twin.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/quant.h"
#include "kernels/tile.h"

static void file_row(const struct hk_mat *w, const void *file, int type, uint32_t r, float *out)
{
	quant_to_f32((uint32_t)type, (const uint8_t *)file + r * w->row_bytes, out, w->cols);
}

static double silu(double x)
{
	return x / (1 + exp(-x));
}

static void norm_row(const float *x, const float *w, uint32_t n, float eps, float *out)
{
	double ss = 0;

	if (!w) {
		memcpy(out, x, n * sizeof(float));
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		ss += (double)x[i] * x[i];
	ss = 1 / sqrt(ss / n + (double)eps);
	for (uint32_t i = 0; i < n; i++)
		out[i] = (float)(x[i] * ss * w[i]);
}

void twin_norm(uint32_t n, uint32_t cols, const float *x, const uint32_t *row, const float *norm,
	       float eps, float *y)
{
	for (uint32_t i = 0; i < n; i++)
		norm_row(x + (size_t)(row ? row[i] : i) * cols, norm, cols, eps, y + (size_t)i * cols);
}

/* The int8 that the kernel multiplies, as floats. */
static void quant_act(float *x, uint32_t n)
{
	for (uint32_t b = 0; b < n; b += 16) {
		float top = 0, d, inv;

		for (uint32_t i = b; i < b + 16; i++)
			top = fmaxf(top, fabsf(x[i]));
		d = top * (1.0f / 127);
		inv = top > 0 ? 127 / top : 0;
		for (uint32_t i = b; i < b + 16; i++)
			x[i] = rintf(x[i] * inv) * d;
	}
}

static double dot(const float *w, const float *x, uint32_t n, double *ret_mag)
{
	double s = 0, m = 0;

	for (uint32_t k = 0; k < n; k++) {
		s += (double)w[k] * x[k];
		m += fabs((double)w[k] * x[k]);
	}
	*ret_mag = m;
	return s;
}

void twin_gemv(const struct hk_gemv *a, const void *const file[3], const int file_type[3],
	       float *const mag[3])
{
	float *x = malloc((size_t)a->n * a->cols * sizeof(float));
	float *w = malloc(a->cols * sizeof(float)), *w2 = malloc(a->cols * sizeof(float));
	double m, m2;

	for (uint32_t n = 0; n < a->n; n++) {
		norm_row(a->x + (size_t)(a->row ? a->row[n] : n) * a->ldx, a->norm, a->cols, a->eps,
			 x + (size_t)n * a->cols);
		quant_act(x + (size_t)n * a->cols, a->cols);
	}
	for (uint32_t s = 0; s < (a->mode == HK_SWIGLU ? 1 : a->nseg); s++) {
		const struct hk_seg *g = &a->seg[s];

		for (uint32_t r = 0; r < g->w.rows / 16 * 16; r++) {
			file_row(&g->w, file[s], file_type[s], r, w);
			if (a->mode == HK_SWIGLU)
				file_row(&a->seg[1].w, file[1], file_type[1], r, w2);
			for (uint32_t n = 0; n < a->n; n++) {
				float *y = g->y + (size_t)n * g->ldy + r;
				double v = dot(w, x + (size_t)n * a->cols, a->cols, &m);

				if (a->mode == HK_SWIGLU) {
					double u = dot(w2, x + (size_t)n * a->cols, a->cols, &m2);

					m = m * (fabs(u) + 1) + m2 * (fabs(v) + 1);
					*y = (float)(silu(v) * u);
				} else {
					*y = (float)(a->mode == HK_ADD ? *y + v
						     : v + (double)(g->bias ? g->bias[r] : 0));
				}
				if (mag)
					mag[s][(size_t)n * g->ldy + r] = (float)m;
			}
		}
	}
	free(x);
	free(w);
	free(w2);
}

void twin_gemm(const struct hk_gemm *a, const void *const file[3], const int file_type[3],
	       float *const mag[3], float *swiglu)
{
	float *x = malloc((size_t)a->n * a->cols * sizeof(float));
	float *w = malloc(a->cols * sizeof(float)), *w2 = malloc(a->cols * sizeof(float));
	double m, m2;

	for (uint32_t n = 0; n < a->n; n++)
		for (uint32_t k = 0; k < a->cols; k++)
			x[(size_t)n * a->cols + k] =
				quant_from_half(((const uint16_t *)a->act)[act_pos(n, k, 0, a->groups)]) *
				(a->act_scale ? a->act_scale[n] : 1) * a->scale;
	for (uint32_t s = 0; s < (a->mode == HK_SWIGLU ? 1 : a->nseg); s++) {
		const struct hk_seg *g = &a->seg[s];

		for (uint32_t r = 0; r < g->w.rows / 16 * 16; r++) {
			file_row(&g->w, file[s], file_type[s], r, w);
			if (a->mode == HK_SWIGLU)
				file_row(&a->seg[1].w, file[1], file_type[1], r, w2);
			for (uint32_t n = 0; n < a->n; n++) {
				double v = dot(w, x + (size_t)n * a->cols, a->cols, &m);

				if (a->mode == HK_SWIGLU) {
					double u = dot(w2, x + (size_t)n * a->cols, a->cols, &m2);

					m = m * (fabs(u) + 1) + m2 * (fabs(v) + 1);
					swiglu[(size_t)n * g->w.rows + r] = (float)(silu(v) * u);
					if (mag)
						mag[s][(size_t)n * g->w.rows + r] = (float)m;
					continue;
				}
				float *y = g->y + (size_t)n * g->ldy + r;

				*y = (float)(a->mode == HK_ADD ? *y + v
					     : v + (double)(g->bias ? g->bias[r] : 0));
				if (mag)
					mag[s][(size_t)n * g->ldy + r] = (float)m;
			}
		}
	}
	free(x);
	free(w);
	free(w2);
}

void twin_raw(const struct hk_raw *a, const void *file, int file_type)
{
	float *w = malloc(a->seg.w.cols * sizeof(float)), *x = malloc(a->seg.w.cols * sizeof(float));
	double m;

	for (uint32_t n = 0; n < a->n; n++) {
		norm_row(a->x + (size_t)(a->row ? a->row[n] : n) * a->ldx, a->norm, a->seg.w.cols,
			 a->eps, x);
		for (uint32_t r = a->row0; r < a->seg.w.rows; r++) {
			float *y = a->seg.y + (size_t)n * a->seg.ldy + r;

			file_row(&a->seg.w, file, file_type, r, w);
			double v = dot(w, x, a->seg.w.cols, &m);

			*y = (float)(a->mode == HK_ADD ? *y + v
				     : v + (double)(a->seg.bias ? a->seg.bias[r] : 0));
		}
	}
	free(w);
	free(x);
}

void twin_swiglu(uint32_t n, uint32_t ff, const float *g, const float *u, float *h)
{
	for (size_t i = 0; i < (size_t)n * ff; i++)
		h[i] = (float)(silu(g[i]) * u[i]);
}

void twin_embed(uint32_t n, const struct hk_step *s, const struct hk_mat *w, const void *file,
		int file_type, const float *inv_freq, uint32_t head_dim, float *x, float *cs)
{
	for (uint32_t i = 0; i < n; i++) {
		file_row(w, file, file_type, (uint32_t)s->token[i], x + (size_t)i * w->cols);
		for (uint32_t j = 0; j < head_dim / 2; j++) {
			double th = (double)((float)s->row_pos[i] * inv_freq[j]);

			cs[((size_t)i * (head_dim / 2) + j) * 2] = (float)cos(th);
			cs[((size_t)i * (head_dim / 2) + j) * 2 + 1] = (float)sin(th);
		}
	}
}

static uint8_t *kv_at(const struct hk_kv *kv, uint32_t page, uint32_t layer, int v, uint32_t h)
{
	return (uint8_t *)kv->base + page * kv->page_bytes +
	       (((size_t)layer * 2 + (size_t)v) * kv->kv_heads + h) * kv->head_bytes;
}

static void kv_put(const struct hk_kv *kv, uint8_t *p, uint32_t slot, const float *x)
{
	uint32_t hd = kv->head_dim;

	for (uint32_t g = 0; g < hd; g += 32) {
		uint16_t *s = (uint16_t *)(p + 32 * (size_t)hd) + slot * (hd / 32) + g / 32;
		float top = 0, d;

		if (kv->f16) {
			for (uint32_t i = g; i < g + 32; i++)
				((uint16_t *)p)[(size_t)slot * hd + i] = quant_to_half(x[i]);
			continue;
		}
		for (uint32_t i = g; i < g + 32; i++)
			top = fmaxf(top, fabsf(x[i]));
		*s = quant_to_half(top * (1.0f / 127));
		d = quant_from_half(*s);
		for (uint32_t i = g; i < g + 32; i++)
			((int8_t *)p)[(size_t)slot * hd + i] =
				(int8_t)fminf(fmaxf(rintf(x[i] * (d > 0 ? 1 / d : 0)), -127), 127);
	}
}

static float kv_get(const struct hk_kv *kv, const uint8_t *p, uint32_t slot, uint32_t i)
{
	uint32_t hd = kv->head_dim;

	if (kv->f16)
		return quant_from_half(((const uint16_t *)p)[(size_t)slot * hd + i]);
	return (float)((const int8_t *)p)[(size_t)slot * hd + i] *
	       quant_from_half(((const uint16_t *)(p + 32 * (size_t)hd))[slot * (hd / 32) + i / 32]);
}

void twin_kv_copy(const struct hk_kv *kv, uint32_t layers, uint32_t dst, uint32_t src, uint32_t tokens)
{
	const size_t row = (size_t)kv->head_dim * (kv->f16 ? 2 : 1), scales = kv->f16 ? 0 : kv->head_dim / 32 * 2;

	for (uint32_t l = 0; l < layers; l++)
		for (int v = 0; v < 2; v++)
			for (uint32_t h = 0; h < kv->kv_heads; h++) {
				uint8_t *to = kv_at(kv, dst, l, v, h);
				const uint8_t *from = kv_at(kv, src, l, v, h);

				memcpy(to, from, tokens * row);
				memcpy(to + 32 * row, from + 32 * row, tokens * scales);
			}
}

void twin_rope(const struct hk_step *s, const struct hk_rope *a, float *q)
{
	uint32_t hd = a->kv.head_dim, hs = a->heads + 2 * a->kv.kv_heads;
	float v[HK_HEAD_MAX];

	for (uint32_t n = 0; n < a->n; n++) {
		uint32_t pos = s->row_pos[n];
		uint32_t page = s->page[s->seq[s->row_seq[n]].page0 + pos / 32];

		for (uint32_t h = 0; h < hs; h++) {
			const float *x = a->qkv + ((size_t)n * hs + h) * hd;

			if (h >= a->heads + a->kv.kv_heads) {
				kv_put(&a->kv, kv_at(&a->kv, page, a->layer, 1, h - a->heads - a->kv.kv_heads),
				       pos % 32, x);
				continue;
			}
			norm_row(x, h < a->heads ? a->q_norm : a->k_norm, hd, a->eps, v);
			for (uint32_t i = 0; i < hd / 2; i++) {
				const float *cs = a->cs + ((size_t)n * (hd / 2) + i) * 2;
				float p = v[i], r = v[i + hd / 2];

				v[i] = p * cs[0] - r * cs[1];
				v[i + hd / 2] = r * cs[0] + p * cs[1];
			}
			if (h >= a->heads)
				kv_put(&a->kv, kv_at(&a->kv, page, a->layer, 0, h - a->heads), pos % 32, v);
			else
				for (uint32_t i = 0; i < hd; i++)
					q[((size_t)n * a->heads + h) * hd + i] =
						v[i] * 1.44269504088896f / sqrtf((float)hd);
		}
	}
}

void twin_attn(const struct hk_step *s, const struct hk_attn *a, float *out)
{
	uint32_t hd = a->kv.head_dim, group = a->heads / a->kv.kv_heads;

	for (uint32_t n = 0; n < a->n; n++) {
		const struct hk_seq *sq = &s->seq[s->row_seq[n]];
		uint32_t len = s->row_pos[n] + 1;
		double *p = malloc(len * sizeof(double));

		for (uint32_t h = 0; h < a->heads; h++) {
			const uint16_t *q = (const uint16_t *)a->q + ((size_t)n * a->heads + h) * hd;
			double max = -INFINITY, sum = 0;

			for (uint32_t t = 0; t < len; t++) {
				const uint8_t *k = kv_at(&a->kv, s->page[sq->page0 + t / 32], a->layer, 0, h / group);

				p[t] = 0;
				for (uint32_t i = 0; i < hd; i++)
					p[t] += (double)quant_from_half(q[i]) * kv_get(&a->kv, k, t % 32, i);
				max = fmax(max, p[t]);
			}
			for (uint32_t t = 0; t < len; t++)
				sum += p[t] = exp2(p[t] - max);
			for (uint32_t i = 0; i < hd; i++) {
				double v = 0;

				for (uint32_t t = 0; t < len; t++)
					v += p[t] * kv_get(&a->kv, kv_at(&a->kv, s->page[sq->page0 + t / 32],
									 a->layer, 1, h / group), t % 32, i);
				out[((size_t)n * a->heads + h) * hd + i] = (float)(v / sum);
			}
		}
		free(p);
	}
}
