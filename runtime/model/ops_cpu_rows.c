// SPDX-License-Identifier: MIT
/* What the CPU backend does row by row: embedding, rotation, attention. */
#include "model/ops_cpu_priv.h"

#include <math.h>

struct rows_job {
	struct cpu_ctx *c;
	const struct batch *b;
	uint32_t layer;
	float *x, *q, *k;
	const float *v, *q_norm, *k_norm;
	float *out;
};

static const struct batch_seq *seq_of(const struct batch *b, uint32_t row)
{
	const struct batch_seq *s = b->seq;

	while (row >= s->first + s->n)
		s++;
	return s;
}

static void embed_member(void *arg, uint32_t id)
{
	struct rows_job *j = arg;
	struct cpu_ctx *c = j->c;
	const struct mat *w = &c->base.model->embd;
	const uint32_t half = c->base.model->shape.head_dim / 2;
	uint32_t row, i;

	while ((row = work_take(&c->work, 1)) < j->b->n) {
		const uint32_t t = (uint32_t)j->b->token[row];
		const struct batch_seq *s = seq_of(j->b, row);
		const double pos = s->pos0 + row - s->first;
		float *x = j->x + (size_t)row * w->cols;

		if (t < cpu_packed_rows(w))
			cpu_unpack_row(w->type, w->cols,
				       (const uint8_t *)w->data + (size_t)(t / CPU_ROWS * CPU_ROWS) * w->row_bytes,
				       t % CPU_ROWS, c->mb[id].raw, x);
		else
			quant_type((uint32_t)w->type)->to_f32((const uint8_t *)w->data + t * w->row_bytes,
							      x, w->cols);
		for (i = 0; i < half; i++) {
			c->cs[row * half + i] = (float)cos(pos * c->freq[i]);
			c->sn[row * half + i] = (float)sin(pos * c->freq[i]);
		}
	}
}

void cpu_embed(struct ops_ctx *base, const struct batch *b, float *x)
{
	struct cpu_ctx *c = cpu_ctx_of(base);
	struct rows_job j = { .c = c, .b = b, .x = x };

	work_reset(&c->work);
	if (b->n == 1)
		embed_member(&j, 0);
	else
		team_run(c->team, embed_member, &j);
}

static void rope_member(void *arg, uint32_t id)
{
	struct rows_job *j = arg;
	struct cpu_ctx *c = j->c;
	const struct cpu_kern *k = c->k;
	const struct model_shape *s = &c->base.model->shape;
	const uint32_t hd = s->head_dim, half = hd / 2;
	uint32_t row, h;

	while ((row = work_take(&c->work, 1)) < j->b->n) {
		const struct batch_seq *seq = seq_of(j->b, row);
		const uint32_t pos = seq->pos0 + row - seq->first;
		uint8_t *page = c->kv_base + seq->page[pos / KV_PAGE] * c->page_bytes;
		const float *cs = c->cs + row * half, *sn = c->sn + row * half;

		for (h = 0; h < s->heads; h++) {
			float *q = j->q + ((size_t)row * s->heads + h) * hd;

			if (j->q_norm)
				k->rmsnorm(q, j->q_norm, hd, s->eps, q);
			k->rotate(q, cs, sn, hd);
		}
		for (h = 0; h < s->kv_heads; h++) {
			const size_t at = ((size_t)row * s->kv_heads + h) * hd;
			float *kx = j->k + at;

			if (j->k_norm)
				k->rmsnorm(kx, j->k_norm, hd, s->eps, kx);
			k->rotate(kx, cs, sn, hd);
			k->kv_store(&c->o.kv, page + kv_head_off(&c->o.kv, j->layer, 0, h), pos % KV_PAGE, kx);
			k->kv_store(&c->o.kv, page + kv_head_off(&c->o.kv, j->layer, 1, h), pos % KV_PAGE,
				    j->v + at);
		}
	}
}

void cpu_rope_append(struct ops_ctx *base, const struct batch *b, uint32_t layer, float *q,
			    float *k, const float *v, const float *q_norm, const float *k_norm)
{
	struct cpu_ctx *c = cpu_ctx_of(base);
	struct rows_job j = {
		.c = c, .b = b, .layer = layer, .q = q, .k = k, .v = v, .q_norm = q_norm, .k_norm = k_norm,
	};

	work_reset(&c->work);
	if (b->n == 1)
		rope_member(&j, 0);
	else
		team_run(c->team, rope_member, &j);
}

/* Pieces of a sequence: CPU_ATTEND_ROWS rows of one KV head. */
static uint32_t pieces(const struct batch_seq *s)
{
	return (s->n + CPU_ATTEND_ROWS - 1) / CPU_ATTEND_ROWS;
}

static void attend_member(void *arg, uint32_t id)
{
	struct rows_job *j = arg;
	struct cpu_ctx *c = j->c;
	const struct model_shape *s = &c->base.model->shape;
	const uint32_t group = s->heads / s->kv_heads;
	const size_t stride = (size_t)s->heads * s->head_dim;
	const struct batch_seq *seq = j->b->seq, *last = seq + j->b->n_seq;
	uint32_t item, base = 0;

	while ((item = work_take(&c->work, 1)), 1) {
		uint32_t p, h, row;

		while (seq < last && item - base >= pieces(seq) * s->kv_heads)
			base += pieces(seq++) * s->kv_heads;
		if (seq == last)
			return;
		/* The longest rows first: they end last. */
		h = (item - base) % s->kv_heads;
		p = pieces(seq) - 1 - (item - base) / s->kv_heads;
		row = p * CPU_ATTEND_ROWS;
		c->k->attend(&(struct cpu_attend){
			.kv = &c->o.kv,
			.kv_base = c->kv_base,
			.page = seq->page,
			.page_bytes = c->page_bytes,
			.k_off = kv_head_off(&c->o.kv, j->layer, 0, h),
			.v_off = kv_head_off(&c->o.kv, j->layer, 1, h),
			.group = group,
			.rows = seq->n - row < CPU_ATTEND_ROWS ? seq->n - row : CPU_ATTEND_ROWS,
			.pos0 = seq->pos0 + row,
			.q = j->q + (seq->first + row) * stride + (size_t)h * group * s->head_dim,
			.out = j->out + (seq->first + row) * stride + (size_t)h * group * s->head_dim,
			.q_stride = stride,
			.tmp = c->mb[id].attend,
		});
	}
}

void cpu_attend(struct ops_ctx *base, const struct batch *b, uint32_t layer, const float *q,
		       float *out)
{
	struct cpu_ctx *c = cpu_ctx_of(base);
	struct rows_job j = { .c = c, .b = b, .layer = layer, .q = (float *)q, .out = out };

	work_reset(&c->work);
	team_run(c->team, attend_member, &j);
}
