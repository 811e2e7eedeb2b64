// SPDX-License-Identifier: MIT
/*
 * Qwen3, dense. Per layer:
 *
 *   q, k, v = Wq n, Wk n, Wv n        n = rmsnorm(x) * attn_norm; no biases
 *   q, k    = rotate(rmsnorm per head * q_norm / k_norm)
 *   x      += Wo attention(q, k, v)   the width of q may differ from x's
 *   x      += Wd (silu(Wg m) * Wu m)  m = rmsnorm(x) * ffn_norm
 *
 * and at the end logits = head (rmsnorm(x) * output_norm), for the rows wanted.
 */
#include <errno.h>

#include "model/priv.h"

static const char *const layer_tensors[] = {
	"attn_norm.weight", "attn_q.weight", "attn_k.weight", "attn_v.weight",
	"attn_q_norm.weight", "attn_k_norm.weight",
	"attn_output.weight", "ffn_norm.weight", "ffn_gate.weight", "ffn_up.weight",
	"ffn_down.weight", NULL
};

static int qwen3_bind(const struct gguf *g, struct model *m, struct hearth_err *err)
{
	const struct model_shape *s = &m->shape;
	const uint32_t wide = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
	uint32_t i;
	int r;

	for (i = 0; i < s->layers; i++) {
		struct model_layer *l = &m->layer[i];

		if ((r = bind_vec(g, i, "attn_norm.weight", s->d, &l->attn_norm, err)) ||
		    (r = bind_mat(g, i, "attn_q", wide, s->d, &l->q, err)) ||
		    (r = bind_mat(g, i, "attn_k", kv, s->d, &l->k, err)) ||
		    (r = bind_mat(g, i, "attn_v", kv, s->d, &l->v, err)) ||
		    (r = bind_vec(g, i, "attn_q_norm.weight", s->head_dim, &l->q_norm, err)) ||
		    (r = bind_vec(g, i, "attn_k_norm.weight", s->head_dim, &l->k_norm, err)) ||
		    (r = bind_mat(g, i, "attn_output", s->d, wide, &l->o, err)) ||
		    (r = bind_vec(g, i, "ffn_norm.weight", s->d, &l->ffn_norm, err)) ||
		    (r = bind_mat(g, i, "ffn_gate", s->ff, s->d, &l->gate, err)) ||
		    (r = bind_mat(g, i, "ffn_up", s->ff, s->d, &l->up, err)) ||
		    (r = bind_mat(g, i, "ffn_down", s->d, s->ff, &l->down, err)))
			return r;
	}
	return 0;
}

static int qwen3_forward(struct ops_ctx *c, const struct batch *b, struct hearth_err *err)
{
	const struct ops *o = c->ops;
	const struct model *m = c->model;
	const struct ops_bufs *t = o->bufs(c);
	const float *const no_bias[3] = { NULL, NULL, NULL };
	uint32_t i, n = b->n;

	o->embed(c, b, t->x);
	for (i = 0; i < m->shape.layers; i++) {
		const struct model_layer *l = &m->layer[i];
		const struct mat *const qkv[3] = { &l->q, &l->k, &l->v };
		float *const out[3] = { t->q, t->k, t->v };

		o->norm_matmul(c, n, t->x, l->attn_norm, 3, qkv, no_bias, out);
		o->rope_append(c, b, i, t->q, t->k, t->v, l->q_norm, l->k_norm);
		/* Only rows that become logits go on from the last layer. */
		if (i + 1 == m->shape.layers && !b->n_out)
			return 0;
		o->attend(c, b, i, t->q, t->a);
		if (i + 1 == m->shape.layers) {
			o->narrow(c, b, t->x, t->a);
			n = b->n_out;
		}
		o->matmul_add(c, n, t->a, &l->o, t->x);
		o->norm_swiglu(c, n, t->x, l->ffn_norm, &l->gate, &l->up, t->h);
		o->matmul_add(c, n, t->h, &l->down, t->x);
		if (o->interrupted && o->interrupted(c))
			return err_set(err, -ECANCELED, "the step was cancelled at layer %u", i);
	}
	if (!b->hidden)
		o->head(c, b, t->x);
	return 0;
}

const struct model_family model_qwen3 = {
	.id = MODEL_QWEN3,
	.arch = "qwen3",
	.layer_tensors = layer_tensors,
	.shape = shape_common,
	.bind = qwen3_bind,
	.forward = qwen3_forward,
};
