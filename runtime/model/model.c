// SPDX-License-Identifier: MIT
#include "model/model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/quant.h"
#include "model/priv.h"

static const struct model_family *const families[] = {
	&model_qwen2,
	&model_qwen3,
};

#define N_FAMILIES (sizeof(families) / sizeof(families[0]))

/* Larger than any model of these families, small enough that products of two
 * never overflow 64 bits and a hostile file cannot ask for absurd sums. */
#define MAX_LAYERS 512u
#define MAX_WIDTH  (1u << 20)
#define MAX_HEADS  1024u
#define MAX_VOCAB  (1u << 24)

static int need_u32(const struct gguf *g, const char *key, uint32_t min, uint32_t max,
		    uint32_t *ret, struct hearth_err *err)
{
	uint32_t v;
	int r = gguf_u32(g, key, &v, err);

	if (r == -ENOENT)
		return err_set(err, -EINVAL, "metadata key %s%s is missing", gguf_arch(g), key);
	if (r)
		return r;
	if (v < min || v > max)
		return err_set(err, -EINVAL, "metadata %s%s is %u; %u to %u are possible",
			       gguf_arch(g), key, v, min, max);
	*ret = v;
	return 0;
}

/* One number for all layers, or an array in which all are equal. */
static int need_same(const struct gguf *g, const char *key, uint32_t layers, uint32_t max,
		     uint32_t *ret, struct hearth_err *err)
{
	uint32_t v[MAX_LAYERS], i;
	int r = gguf_u32_each(g, key, layers, v, err);

	if (r == -ENOENT)
		return err_set(err, -EINVAL, "metadata key %s%s is missing", gguf_arch(g), key);
	if (r)
		return r;
	for (i = 1; i < layers; i++)
		if (v[i] != v[0])
			return err_set(err, -ENOTSUP,
				       "metadata %s%s differs from layer to layer (%u, then %u at layer %u), which %s models here do not",
				       gguf_arch(g), key, v[0], v[i], i, gguf_arch(g));
	if (v[0] < 1 || v[0] > max)
		return err_set(err, -EINVAL, "metadata %s%s is %u; 1 to %u are possible",
			       gguf_arch(g), key, v[0], max);
	*ret = v[0];
	return 0;
}

static int optional_f32(const struct gguf *g, const char *key, float *io, struct hearth_err *err)
{
	int r = gguf_f32(g, key, io, err);

	return r == -ENOENT ? 0 : r;
}

int shape_common(const struct gguf *g, struct model_shape *ret, struct hearth_err *err)
{
	struct model_shape s = { .rope_base = 10000.0f };
	const struct gguf_tensor *embd;
	uint32_t vl, rd, i;
	struct gguf_str str;
	float scale;
	int r;

	if ((r = need_u32(g, ".block_count", 1, MAX_LAYERS, &s.layers, err)) ||
	    (r = need_u32(g, ".embedding_length", 32, MAX_WIDTH, &s.d, err)) ||
	    (r = need_u32(g, ".context_length", 1, UINT32_MAX / 2, &s.ctx_train, err)) ||
	    (r = need_same(g, ".feed_forward_length", s.layers, MAX_WIDTH, &s.ff, err)) ||
	    (r = need_same(g, ".attention.head_count", s.layers, MAX_HEADS, &s.heads, err)))
		return r;
	s.kv_heads = s.heads;
	if (gguf_has(g, ".attention.head_count_kv") &&
	    (r = need_same(g, ".attention.head_count_kv", s.layers, MAX_HEADS, &s.kv_heads, err)))
		return r;
	if (s.heads % s.kv_heads)
		return err_set(err, -EINVAL, "%u attention heads cannot share %u key/value heads evenly",
			       s.heads, s.kv_heads);
	s.head_dim = s.d / s.heads;
	if (gguf_has(g, ".attention.key_length") &&
	    (r = need_u32(g, ".attention.key_length", 32, 1024, &s.head_dim, err)))
		return r;
	vl = s.head_dim;
	if (gguf_has(g, ".attention.value_length") &&
	    (r = need_u32(g, ".attention.value_length", 32, 1024, &vl, err)))
		return r;
	if (vl != s.head_dim)
		return err_set(err, -ENOTSUP, "keys of %u and values of %u channels: only equal widths are supported",
			       s.head_dim, vl);
	if (s.head_dim % 32 || s.head_dim > 256)
		return err_set(err, -ENOTSUP, "attention heads of %u channels: only multiples of 32 up to 256 are supported",
			       s.head_dim);
	rd = s.head_dim;
	if (gguf_has(g, ".rope.dimension_count") &&
	    (r = need_u32(g, ".rope.dimension_count", 1, 1024, &rd, err)))
		return r;
	if (rd != s.head_dim)
		return err_set(err, -ENOTSUP, "rotation of %u of %u channels: only the whole head is supported",
			       rd, s.head_dim);
	r = gguf_f32(g, ".attention.layer_norm_rms_epsilon", &s.eps, err);
	if (r == -ENOENT)
		return err_set(err, -EINVAL, "metadata key %s.attention.layer_norm_rms_epsilon is missing",
			       gguf_arch(g));
	if (r || (r = optional_f32(g, ".rope.freq_base", &s.rope_base, err)))
		return r;
	if (!(s.eps > 0 && s.eps < 1))
		return err_set(err, -EINVAL, "metadata %s.attention.layer_norm_rms_epsilon is %g; a number over 0 and under 1 is possible", gguf_arch(g), s.eps);
	if (!(s.rope_base > 1 && s.rope_base < 1e12f))
		return err_set(err, -EINVAL, "metadata %s.rope.freq_base is %g; a number over 1 and under 1e12 is possible", gguf_arch(g), s.rope_base);
	/* A file that wants its positions stretched would be wrong in silence. */
	if (!gguf_str(g, ".rope.scaling.type", &str, NULL) &&
	    !(str.n == 4 && !memcmp(str.s, "none", 4)))
		return err_set(err, -ENOTSUP, "the file asks for rotary scaling \"%.*s\", which is not supported",
			       (int)(str.n > 32 ? 32 : str.n), str.s);
	scale = 1;
	if ((r = optional_f32(g, ".rope.scaling.factor", &scale, err)) ||
	    (r = optional_f32(g, ".rope.scale_linear", &scale, err)))
		return r;
	if (scale != 1 && scale != 0)
		return err_set(err, -ENOTSUP, "the file asks for rotary scaling by %g, which is not supported", scale);
	if (gguf_has(g, ".attention.sliding_window")) {
		uint32_t win = 0;

		r = gguf_u32(g, ".attention.sliding_window", &win, err);
		if (r)
			return r;
		if (win && win < s.ctx_train)
			return err_set(err, -ENOTSUP, "the file asks for a sliding window of %u tokens, which is not supported",
				       win);
	}
	embd = gguf_tensor(g, "token_embd.weight");
	if (!embd)
		return err_set(err, -EINVAL, "tensor token_embd.weight is missing");
	if (embd->n_dims != 2 || embd->ne[0] != s.d || embd->ne[1] < 1 || embd->ne[1] > MAX_VOCAB)
		return err_set(err, -EINVAL, "tensor token_embd.weight is [%llu, %llu]; [%u, vocabulary] is needed",
			       (unsigned long long)embd->ne[0], (unsigned long long)embd->ne[1], s.d);
	s.vocab = (uint32_t)embd->ne[1];
	s.tied = !gguf_tensor(g, "output.weight");
	for (i = 0; i < gguf_n_tensors(g); i++) {
		const struct gguf_tensor *t = gguf_tensor_at(g, i);

		if (t->n_dims != 2)
			continue;
		s.types |= t->type < 64 ? 1ull << t->type : 0;
		s.ragged |= t->ne[1] % 16 != 0;
	}
	*ret = s;
	return 0;
}

static int mat_from(const struct gguf *g, const char *name, uint32_t rows, uint32_t cols,
		    struct mat *ret, struct hearth_err *err)
{
	const uint64_t ne[2] = { cols, rows };
	const struct quant_type *q;
	struct gguf_tensor *t;
	uint64_t row;
	int r = gguf_need(g, name, 2, ne, &t, err);

	if (r)
		return r;
	q = quant_type(t->type);
	if (!q || !q->to_f32)
		return err_set(err, -ENOTSUP, "tensor %s is of type %s, which cannot be computed with",
			       name, quant_name(t->type));
	if (quant_row_bytes(t->type, cols, &row))
		return err_set(err, -EINVAL, "tensor %s: rows of %u do not divide into blocks of %s",
			       name, cols, quant_name(t->type));
	*ret = (struct mat){
		.name = t->name,
		.type = (int)t->type,
		.rows = rows,
		.cols = cols,
		.row_bytes = (size_t)row,
		.bytes = (size_t)t->nbytes,
		.data = (void *)t->data,
	};
	return 0;
}

int bind_mat(const struct gguf *g, uint32_t layer, const char *name, uint32_t rows,
	     uint32_t cols, struct mat *ret, struct hearth_err *err)
{
	char full[GGUF_MAX_NAME];

	snprintf(full, sizeof(full), "blk.%u.%s.weight", layer, name);
	return mat_from(g, full, rows, cols, ret, err);
}

static int vec_from(const struct gguf *g, const char *name, uint32_t n, const float **ret,
		    struct hearth_err *err)
{
	const uint64_t ne[1] = { n };
	struct gguf_tensor *t;
	int r = gguf_need(g, name, 1, ne, &t, err);

	if (r)
		return r;
	if (t->type != QUANT_F32)
		return err_set(err, -ENOTSUP, "tensor %s is of type %s; F32 is needed", name, quant_name(t->type));
	*ret = t->data;
	return 0;
}

int bind_vec(const struct gguf *g, uint32_t layer, const char *name, uint32_t n,
	     const float **ret, struct hearth_err *err)
{
	char full[GGUF_MAX_NAME];

	snprintf(full, sizeof(full), "blk.%u.%s", layer, name);
	return vec_from(g, full, n, ret, err);
}

int bind_common(const struct gguf *g, struct model *m, struct hearth_err *err)
{
	const struct model_shape *s = &m->shape;
	int r;

	if ((r = mat_from(g, "token_embd.weight", s->vocab, s->d, &m->embd, err)) ||
	    (r = vec_from(g, "output_norm.weight", s->d, &m->out_norm, err)))
		return r;
	if (s->tied) {
		m->head = m->embd;
		return 0;
	}
	return mat_from(g, "output.weight", s->vocab, s->d, &m->head, err);
}

/* A tensor that no op reads means a model that this code does not know. */
static int refuse_unused(const struct gguf *g, const struct model *m, struct hearth_err *err)
{
	const char *const *known;
	uint32_t i, layer;
	int off;

	for (i = 0; i < gguf_n_tensors(g); i++) {
		const char *name = gguf_tensor_at(g, i)->name;

		if (!strcmp(name, "token_embd.weight") || !strcmp(name, "output_norm.weight") ||
		    !strcmp(name, "output.weight"))
			continue;
		off = 0;
		known = m->family->layer_tensors;
		if (sscanf(name, "blk.%u.%n", &layer, &off) == 1 && off && layer < m->shape.layers)
			while (*known && strcmp(name + off, *known))
				known++;
		if (!off || !*known || layer >= m->shape.layers)
			return err_set(err, -ENOTSUP, "tensor %s is not part of a %s model of %u layers as known here",
				       name, m->family->arch, m->shape.layers);
	}
	return 0;
}

int model_shape_read(const struct gguf *g, const struct model_family **ret_family,
		     struct model_shape *ret, struct hearth_err *err)
{
	size_t i;
	int r;

	for (i = 0; i < N_FAMILIES; i++) {
		if (strcmp(gguf_arch(g), families[i]->arch))
			continue;
		r = families[i]->shape(g, ret, err);
		if (!r && ret_family)
			*ret_family = families[i];
		return r;
	}
	return err_set(err, -ENOTSUP, "architecture \"%.64s\" is not supported; qwen3 and qwen2 are",
		       gguf_arch(g));
}

int model_bind(const struct gguf *g, struct model **ret, struct hearth_err *err)
{
	struct model *m;
	int r;

	m = calloc(1, sizeof(*m));
	if (!m)
		return err_set(err, -ENOMEM, "no memory for the model's tensor table");
	r = model_shape_read(g, &m->family, &m->shape, err);
	if (r)
		goto fail;
	m->host_bytes = sizeof(*m) + (size_t)m->shape.layers * sizeof(*m->layer);
	m->layer = calloc(m->shape.layers, sizeof(*m->layer));
	if (!m->layer) {
		r = err_set(err, -ENOMEM, "no memory for the model's tensor table");
		goto fail;
	}
	if ((r = bind_common(g, m, err)) || (r = m->family->bind(g, m, err)) ||
	    (r = refuse_unused(g, m, err)))
		goto fail;
	*ret = m;
	return 0;
fail:
	model_free(m);
	return r;
}

void model_free(struct model *m)
{
	if (!m)
		return;
	free(m->layer);
	free(m);
}

int model_each_mat(struct model *m, int (*fn)(struct mat *w, void *arg), void *arg)
{
	uint32_t i;
	int r = fn(&m->embd, arg);

	for (i = 0; !r && i < m->shape.layers; i++) {
		struct model_layer *l = &m->layer[i];

		if ((r = fn(&l->q, arg)) || (r = fn(&l->k, arg)) || (r = fn(&l->v, arg)) ||
		    (r = fn(&l->o, arg)) || (r = fn(&l->gate, arg)) || (r = fn(&l->up, arg)))
			break;
		r = fn(&l->down, arg);
	}
	if (m->shape.tied)
		m->head = m->embd;
	else if (!r)
		r = fn(&m->head, arg);
	return r;
}
