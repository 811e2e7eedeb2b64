// SPDX-License-Identifier: MIT
/*
 * The oracle: every op of ops.h in the plainest C, in float with double sums,
 * weights as they are in the file, activations never quantised, one thread.
 * Slow, and meant to be read beside the formulas.
 */
#include "model/ops.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/quant.h"

struct ref_ctx {
	struct ops_ctx base;
	struct ops_opts o;
	uint8_t *kv_base;
	struct ops_bufs bufs;
	float *logits;     /* [max_out, vocab] */
	float *row;        /* [max_batch, widest] normalised rows */
	float *wrow;       /* [widest] a weight row */
	float *score;      /* [max_ctx] */
	float *tmp;        /* [max_batch, ff] */
	atomic_bool interrupt;
};

static struct ref_ctx *ctx(struct ops_ctx *c)
{
	return (struct ref_ctx *)c;
}

static uint32_t max_u(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static size_t lay_out(const struct model_shape *s, const struct ops_opts *o, struct ref_ctx *c, float *at)
{
	const size_t n = o->max_batch, wide = (size_t)s->heads * s->head_dim;
	const size_t kvw = (size_t)s->kv_heads * s->head_dim;
	const size_t widest = max_u(max_u(s->d, (uint32_t)wide), s->ff);
	size_t used = 0;

#define PLACE(field, count) do { \
	if (c) \
		(field) = at + used; \
	used += ((size_t)(count) + 15) & ~(size_t)15; \
} while (0)
	PLACE(c->bufs.x, n * s->d);
	PLACE(c->bufs.q, n * wide);
	PLACE(c->bufs.k, n * kvw);
	PLACE(c->bufs.v, n * kvw);
	PLACE(c->bufs.a, n * wide);
	PLACE(c->bufs.h, n * s->ff);
	PLACE(c->logits, (size_t)o->max_out * s->vocab);
	PLACE(c->row, n * widest);
	PLACE(c->wrow, widest);
	PLACE(c->score, o->max_ctx);
	PLACE(c->tmp, n * s->ff);
#undef PLACE
	return used * sizeof(float);
}

static int ref_plan(const struct model_shape *s, const struct ops_opts *o, struct ops_need *ret,
		    struct hearth_err *err)
{
	*ret = (struct ops_need){ .scratch = lay_out(s, o, NULL, NULL), .host = sizeof(struct ref_ctx) };
	return 0;
}

static int ref_open(const struct model *m, const struct ops_opts *o, void *scratch, void *kv_base,
		    struct ops_ctx **ret, struct hearth_err *err)
{
	struct ref_ctx *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(err, -ENOMEM, "no memory for the reference backend");
	c->base = (struct ops_ctx){ .ops = &ops_ref, .model = m };
	c->o = *o;
	c->kv_base = kv_base;
	lay_out(&m->shape, o, c, scratch);
	*ret = &c->base;
	return 0;
}

static void ref_close(struct ops_ctx *c)
{
	free(c);
}

static void weight_row(const struct mat *w, uint32_t r, float *out)
{
	quant_type((uint32_t)w->type)->to_f32((const uint8_t *)w->data + r * w->row_bytes, out, w->cols);
}

static void rmsnorm(const float *x, const float *w, uint32_t n, float eps, float *out)
{
	double sum = 0;
	uint32_t i;
	float scale;

	for (i = 0; i < n; i++)
		sum += (double)x[i] * x[i];
	scale = (float)(1 / sqrt(sum / n + (double)eps));
	for (i = 0; i < n; i++)
		out[i] = x[i] * scale * w[i];
}

/* y[n, rows] = w x (+ bias), or += when @add */
static void matmul(struct ref_ctx *c, uint32_t n, const float *x, const struct mat *w,
		   const float *bias, bool add, float *y)
{
	uint32_t r, i, k;

	for (r = 0; r < w->rows; r++) {
		weight_row(w, r, c->wrow);
		for (i = 0; i < n; i++) {
			const float *xi = x + (size_t)i * w->cols;
			float *yi = y + (size_t)i * w->rows + r;
			double s = bias ? (double)bias[r] : 0;

			for (k = 0; k < w->cols; k++)
				s += (double)c->wrow[k] * xi[k];
			*yi = add ? *yi + (float)s : (float)s;
		}
	}
}

static void ref_embed(struct ops_ctx *base, const struct batch *b, float *x)
{
	const struct mat *w = &base->model->embd;
	uint32_t i;

	for (i = 0; i < b->n; i++)
		weight_row(w, (uint32_t)b->token[i], x + (size_t)i * w->cols);
}

static void ref_norm_matmul(struct ops_ctx *base, uint32_t n, const float *x, const float *norm,
			    uint32_t nw, const struct mat *const w[], const float *const bias[],
			    float *const y[])
{
	struct ref_ctx *c = ctx(base);
	const uint32_t cols = w[0]->cols;
	uint32_t i;

	for (i = 0; i < n; i++)
		rmsnorm(x + (size_t)i * cols, norm, cols, base->model->shape.eps, c->row + (size_t)i * cols);
	for (i = 0; i < nw; i++)
		matmul(c, n, c->row, w[i], bias ? bias[i] : NULL, false, y[i]);
}

/* Pair (i, i + head_dim/2) turns by pos * base^(-2i/head_dim). */
static void rotate(float *x, uint32_t pos, uint32_t hd, float base)
{
	uint32_t i;

	for (i = 0; i < hd / 2; i++) {
		const double turn = pos * pow(base, -2.0 * i / hd);
		const double cs = cos(turn), sn = sin(turn);
		const double a = x[i], b = x[i + hd / 2];

		x[i] = (float)(a * cs - b * sn);
		x[i + hd / 2] = (float)(a * sn + b * cs);
	}
}

static void kv_put(const struct kv_cfg *kv, uint8_t *head, uint32_t slot, const float *x)
{
	const uint32_t hd = kv->head_dim;
	uint32_t i, g;

	if (kv->type == KV_F16) {
		uint16_t *f = (uint16_t *)head + (size_t)slot * hd;

		for (i = 0; i < hd; i++)
			f[i] = quant_to_half(x[i]);
		return;
	}
	for (g = 0; g < hd / KV_GROUP; g++) {
		int8_t *q = (int8_t *)head + (size_t)slot * hd + g * KV_GROUP;
		uint16_t *s = (uint16_t *)(head + kv_scale_off(kv)) + slot * (hd / KV_GROUP) + g;
		float top = 0, d;

		for (i = 0; i < KV_GROUP; i++)
			top = fmaxf(top, fabsf(x[g * KV_GROUP + i]));
		*s = quant_to_half(top / 127);
		d = quant_from_half(*s);
		for (i = 0; i < KV_GROUP; i++) {
			float v = d > 0 ? nearbyintf(x[g * KV_GROUP + i] / d) : 0;

			q[i] = (int8_t)fmaxf(-127, fminf(127, v));
		}
	}
}

static float kv_at(const struct kv_cfg *kv, const uint8_t *head, uint32_t slot, uint32_t i)
{
	const uint32_t hd = kv->head_dim;

	if (kv->type == KV_F16)
		return quant_from_half(((const uint16_t *)head)[(size_t)slot * hd + i]);
	return (float)((const int8_t *)head)[(size_t)slot * hd + i] *
	       quant_from_half(((const uint16_t *)(head + kv_scale_off(kv)))
			       [slot * (hd / KV_GROUP) + i / KV_GROUP]);
}

static uint8_t *kv_head(struct ref_ctx *c, const struct batch_seq *s, uint32_t pos, uint32_t layer, int v,
			uint32_t h)
{
	return c->kv_base + s->page[pos / KV_PAGE] * kv_page_bytes(&c->o.kv) +
	       kv_head_off(&c->o.kv, layer, v, h);
}

static void ref_rope_append(struct ops_ctx *base, const struct batch *b, uint32_t layer, float *q,
			    float *k, const float *v, const float *q_norm, const float *k_norm)
{
	struct ref_ctx *c = ctx(base);
	const struct model_shape *m = &base->model->shape;
	const uint32_t hd = m->head_dim;
	uint32_t i, row, h;

	for (i = 0; i < b->n_seq; i++) {
		const struct batch_seq *s = &b->seq[i];

		for (row = s->first; row < s->first + s->n; row++) {
			const uint32_t pos = s->pos0 + row - s->first;

			for (h = 0; h < m->heads; h++) {
				float *x = q + ((size_t)row * m->heads + h) * hd;

				if (q_norm)
					rmsnorm(x, q_norm, hd, m->eps, x);
				rotate(x, pos, hd, m->rope_base);
			}
			for (h = 0; h < m->kv_heads; h++) {
				const size_t at = ((size_t)row * m->kv_heads + h) * hd;

				if (k_norm)
					rmsnorm(k + at, k_norm, hd, m->eps, k + at);
				rotate(k + at, pos, hd, m->rope_base);
				kv_put(&c->o.kv, kv_head(c, s, pos, layer, 0, h), pos % KV_PAGE, k + at);
				kv_put(&c->o.kv, kv_head(c, s, pos, layer, 1, h), pos % KV_PAGE, v + at);
			}
		}
	}
}

static void ref_attend(struct ops_ctx *base, const struct batch *b, uint32_t layer, const float *q,
		       float *out)
{
	struct ref_ctx *c = ctx(base);
	const struct model_shape *m = &base->model->shape;
	const uint32_t hd = m->head_dim, group = m->heads / m->kv_heads;
	uint32_t i, row, h, t, k;

	for (i = 0; i < b->n_seq; i++) {
		const struct batch_seq *s = &b->seq[i];

		for (row = s->first; row < s->first + s->n; row++) {
			const uint32_t n = s->pos0 + row - s->first + 1;

			for (h = 0; h < m->heads; h++) {
				const float *qh = q + ((size_t)row * m->heads + h) * hd;
				float *oh = out + ((size_t)row * m->heads + h) * hd;
				double max = -INFINITY, sum = 0;

				for (t = 0; t < n; t++) {
					const uint8_t *kh = kv_head(c, s, t, layer, 0, h / group);
					double d = 0;

					for (k = 0; k < hd; k++)
						d += (double)qh[k] * kv_at(&c->o.kv, kh, t % KV_PAGE, k);
					c->score[t] = (float)(d / sqrt(hd));
					max = fmax(max, c->score[t]);
				}
				for (t = 0; t < n; t++)
					sum += exp(c->score[t] - max);
				for (k = 0; k < hd; k++) {
					double d = 0;

					for (t = 0; t < n; t++)
						d += exp(c->score[t] - max) *
						     kv_at(&c->o.kv, kv_head(c, s, t, layer, 1, h / group),
							   t % KV_PAGE, k);
					oh[k] = (float)(d / sum);
				}
			}
		}
	}
}

static void ref_matmul_add(struct ops_ctx *base, uint32_t n, const float *h, const struct mat *w, float *x)
{
	matmul(ctx(base), n, h, w, NULL, true, x);
}

static void ref_norm_swiglu(struct ops_ctx *base, uint32_t n, const float *x, const float *norm,
			    const struct mat *gate, const struct mat *up, float *h)
{
	struct ref_ctx *c = ctx(base);
	const struct mat *const w[2] = { gate, up };
	float *const y[2] = { h, c->tmp };
	size_t i;

	ref_norm_matmul(base, n, x, norm, 2, w, NULL, y);
	for (i = 0; i < (size_t)n * gate->rows; i++)
		h[i] = (float)(h[i] / (1 + exp(-(double)h[i])) * c->tmp[i]);
}

static void ref_narrow(struct ops_ctx *base, const struct batch *b, float *x, float *a)
{
	const struct model_shape *s = &base->model->shape;
	const size_t wide = (size_t)s->heads * s->head_dim;
	uint32_t i;

	for (i = 0; i < b->n_out; i++) {
		memmove(x + (size_t)i * s->d, x + (size_t)b->out[i] * s->d, s->d * sizeof(float));
		memmove(a + i * wide, a + b->out[i] * wide, wide * sizeof(float));
	}
}

static void ref_head(struct ops_ctx *base, const struct batch *b, const float *x)
{
	const struct mat *const w[1] = { &base->model->head };
	float *const y[1] = { ctx(base)->logits };

	ref_norm_matmul(base, b->n_out, x, base->model->out_norm, 1, w, NULL, y);
}

static struct ops_bufs *ref_bufs(struct ops_ctx *base)
{
	return &ctx(base)->bufs;
}

static int ref_forward(struct ops_ctx *base, const struct batch *b, struct hearth_err *err)
{
	return base->model->family->forward(base, b, err);
}

static int ref_logits(struct ops_ctx *base, uint32_t i, float **ret, struct hearth_err *err)
{
	*ret = ctx(base)->logits + (size_t)i * base->model->shape.vocab;
	return 0;
}

static int ref_kv_copy(struct ops_ctx *base, uint32_t dst, uint32_t src, uint32_t tokens,
		       struct hearth_err *err)
{
	struct ref_ctx *c = ctx(base);
	const size_t page = kv_page_bytes(&c->o.kv);

	memcpy(c->kv_base + dst * page, c->kv_base + src * page, page);
	return 0;
}

static void ref_interrupt(struct ops_ctx *base)
{
	atomic_store(&ctx(base)->interrupt, true);
}

static bool ref_interrupted(struct ops_ctx *base)
{
	return atomic_exchange(&ctx(base)->interrupt, false);
}

const struct ops ops_ref = {
	.name = "ref",
	.hidden = true,
	.plan = ref_plan,
	.open = ref_open,
	.close = ref_close,
	.layout_name = "",
	.forward = ref_forward,
	.embed = ref_embed,
	.norm_matmul = ref_norm_matmul,
	.rope_append = ref_rope_append,
	.attend = ref_attend,
	.matmul_add = ref_matmul_add,
	.norm_swiglu = ref_norm_swiglu,
	.narrow = ref_narrow,
	.head = ref_head,
	.bufs = ref_bufs,
	.logits = ref_logits,
	.kv_copy = ref_kv_copy,
	.interrupt = ref_interrupt,
	.interrupted = ref_interrupted,
};
