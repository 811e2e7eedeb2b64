// SPDX-License-Identifier: MIT
/*
 * Qwen3, and Qwen2 with Qwen2.5, dense. Per layer:
 *
 *   q, k, v = Wq n + bq, Wk n + bk, Wv n + bv    n = rmsnorm(x) * attn_norm
 *   q, k    = rotate(q), rotate(k)
 *   x      += Wo attention(q, k, v)              the width of q may differ from x's
 *   x      += Wd (silu(Wg m) * Wu m)             m = rmsnorm(x) * ffn_norm
 *
 * and at the end logits = head (rmsnorm(x) * output_norm), for the rows wanted.
 * Qwen2 has the biases; Qwen3 has none of them, and before the rotation each head
 * becomes rmsnorm(head) * q_norm or k_norm.
 */
#include <errno.h>

#include "model/priv.h"

#define COMMON \
	"attn_norm.weight", "attn_q.weight", "attn_k.weight", "attn_v.weight", \
	"attn_output.weight", "ffn_norm.weight", "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"
static const char *const qwen2_tensors[] = { COMMON, "attn_q.bias", "attn_k.bias", "attn_v.bias", NULL };
static const char *const qwen3_tensors[] = { COMMON, "attn_q_norm.weight", "attn_k_norm.weight", NULL };
#undef COMMON

/* What a family does not have stays NULL, and is left out by the operations. */
static int qwen_bind(const struct gguf *g, struct model *m, struct hearth_err *err)
{
	const struct model_shape *s = &m->shape;
	const uint32_t wide = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
	const bool biases = m->family->id == MODEL_QWEN2;
	int r;

	for (uint32_t i = 0; i < s->layers; i++) {
		struct model_layer *l = &m->layer[i];

		if ((r = bind_vec(g, i, "attn_norm.weight", s->d, &l->attn_norm, err)) ||
		    (r = bind_mat(g, i, "attn_q", wide, s->d, &l->q, err)) ||
		    (r = bind_mat(g, i, "attn_k", kv, s->d, &l->k, err)) ||
		    (r = bind_mat(g, i, "attn_v", kv, s->d, &l->v, err)) ||
		    (r = bind_mat(g, i, "attn_output", s->d, wide, &l->o, err)) ||
		    (r = bind_vec(g, i, "ffn_norm.weight", s->d, &l->ffn_norm, err)) ||
		    (r = bind_mat(g, i, "ffn_gate", s->ff, s->d, &l->gate, err)) ||
		    (r = bind_mat(g, i, "ffn_up", s->ff, s->d, &l->up, err)) ||
		    (r = bind_mat(g, i, "ffn_down", s->d, s->ff, &l->down, err)))
			return r;
		if (biases)
			r = bind_vec(g, i, "attn_q.bias", wide, &l->q_bias, err) ?:
			    bind_vec(g, i, "attn_k.bias", kv, &l->k_bias, err) ?:
			    bind_vec(g, i, "attn_v.bias", kv, &l->v_bias, err);
		else
			r = bind_vec(g, i, "attn_q_norm.weight", s->head_dim, &l->q_norm, err) ?:
			    bind_vec(g, i, "attn_k_norm.weight", s->head_dim, &l->k_norm, err);
		if (r)
			return r;
	}
	return 0;
}

static int qwen_forward(struct ops_ctx *c, const struct batch *b, struct hearth_err *err)
{
	const struct ops *o = c->ops;
	const struct model *m = c->model;
	const struct ops_bufs *t = o->bufs(c);
	uint32_t i, n = b->n;

	o->embed(c, b, t->x);
	for (i = 0; i < m->shape.layers; i++) {
		const struct model_layer *l = &m->layer[i];
		const struct mat *const qkv[3] = { &l->q, &l->k, &l->v };
		const float *const bias[3] = { l->q_bias, l->k_bias, l->v_bias };
		float *const out[3] = { t->q, t->k, t->v };

		o->norm_matmul(c, n, t->x, l->attn_norm, 3, qkv, bias, out);
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

const struct model_family model_qwen2 = {
	.id = MODEL_QWEN2,
	.arch = "qwen2",
	.layer_tensors = qwen2_tensors,
	.shape = shape_common,
	.bind = qwen_bind,
	.forward = qwen_forward,
};
const struct model_family model_qwen3 = {
	.id = MODEL_QWEN3,
	.arch = "qwen3",
	.layer_tensors = qwen3_tensors,
	.shape = shape_common,
	.bind = qwen_bind,
	.forward = qwen_forward,
};
