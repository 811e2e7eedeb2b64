/* SPDX-License-Identifier: MIT */
/* A GGUF loaded twice: as in the file, and packed for the GPU. */
#ifndef HEARTH_TESTS_GPU_MODEL_H
#define HEARTH_TESTS_GPU_MODEL_H

#include "dev/hearth.h"
#include "gguf/gguf.h"
#include "gguf/load.h"
#include "gguf/quant.h"
#include "model/model.h"
#include "model/ops.h"
#include "model/ops_cuda.h"
#include "tests/gpu/gpu.h"

struct loaded {
	struct hearth *h;
	struct hearth_tenant *t;
	struct gguf *g;
	struct load *l;
	struct model *m;
	const struct ops *ops;
	uint32_t packed;   /* tensors that were given to .pack when it was loaded */
};

static inline void die_err(const char *what, int rc, const struct hearth_err *e)
{
	printf("Bail out! %s: %d, %s\n", what, rc, e->text);
	exit(1);
}

static inline int pack_hook(void *arg, const struct gguf_tensor *t, void *data, struct hearth_err *err)
{
	struct loaded *x = arg;
	const struct ops *ops = x->ops;
	struct mat w = { .name = t->name, .type = (int)t->type, .cols = (uint32_t)t->ne[0],
			 .rows = (uint32_t)t->ne[1], .data = data };
	uint64_t rb;
	void *tmp;
	int rc;

	x->packed++;
	if (t->n_dims != 2)
		return 0;
	rc = quant_row_bytes(t->type, t->ne[0], &rb);
	if (rc)
		return rc;
	w.row_bytes = (size_t)rb;
	w.bytes = (size_t)(rb * t->ne[1]);
	tmp = malloc(ops->pack_tmp(&w) + 16);
	rc = ops->pack(&w, tmp, err);
	free(tmp);
	return rc;
}

static inline int set_layout(struct mat *w, void *arg)
{
	w->layout = ((const struct ops *)arg)->pack_layout(w);
	return 0;
}

/* A pool in which @times regions of the model have room. */
static inline void pool_open(struct loaded *x, const char *path, uint32_t times)
{
	struct hearth_pool_spec pool = { .kind = HEARTH_KIND_WEIGHTS, .name = "weights" };
	struct hearth_options ho;
	struct hearth_err err = { 0 };
	int rc;

	memset(x, 0, sizeof(*x));
	if ((rc = gguf_open(path, &x->g, &err)))
		die_err(path, rc, &err);
	pool.size = load_region_bytes(x->g) * times + (1 << 21);
	gguf_close(x->g);
	hearth_options_defaults(&ho);
	ho.backend = HEARTH_BACKEND_EMBEDDED;
	ho.pools = &pool;
	ho.n_pools = 1;
	if ((rc = hearth_open(&ho, &x->h, &err)) ||
	    (rc = hearth_tenant_open(x->h, "llm", HEARTH_CLASS_LLM, 20, &x->t, &err)))
		die_err("pool", rc, &err);
}

/* Into that pool. @ops with .pack: packed; NULL: as in the file. */
static inline void load_into(struct loaded *x, const char *path, const struct ops *ops)
{
	struct load_opts lo = { 0 };
	struct hearth_err err = { 0 };
	int rc;

	x->ops = ops;
	x->packed = 0;
	if (ops && ops->pack) {
		lo.layout = ops->layout_name;
		lo.pack = pack_hook;
		lo.pack_ctx = x;
	}
	if ((rc = gguf_open(path, &x->g, &err)) ||
	    (rc = load_weights(x->g, x->t, hearth_pool(x->h, HEARTH_KIND_WEIGHTS), &lo, &x->l, &err)) ||
	    (rc = model_bind(x->g, &x->m, &err)))
		die_err("load", rc, &err);
	if (ops && ops->pack)
		model_each_mat(x->m, set_layout, (void *)ops);
}

static inline struct loaded load_model(const char *path, const struct ops *ops)
{
	struct loaded x;

	pool_open(&x, path, 1);
	load_into(&x, path, ops);
	return x;
}

/* The region stays in its pool, for the next load to find. */
static inline void let_go(struct loaded *x)
{
	model_free(x->m);
	load_free(x->l);
	gguf_close(x->g);
}

static inline void unload(struct loaded *x)
{
	let_go(x);
	hearth_tenant_close(x->t);
	hearth_close(x->h);
}

/* -- one backend over one model ----------------------------------------------------- */

struct runner {
	const struct ops *ops;
	const struct model *m;
	struct ops_opts o;
	struct ops_need need;
	struct ops_ctx *c;
	void *scratch, *kv;
	size_t kv_bytes, scratch_bytes;
};

static inline int run_open(struct runner *r, const struct ops *ops, const struct model *m,
			   uint64_t weights, uint32_t max_batch, uint32_t seqs, uint32_t ctx,
			   enum kv_type kv, uint32_t max_out, struct hearth_err *err)
{
	int rc;

	memset(r, 0, sizeof(*r));
	r->ops = ops;
	r->m = m;
	r->o = (struct ops_opts){
		.max_batch = max_batch, .max_seqs = seqs, .max_out = max_out, .max_ctx = ctx, .threads = 2,
		.kv = { kv, m->shape.layers, m->shape.kv_heads, m->shape.head_dim },
		.kv_pages = seqs * kv_pages_for(ctx), .weights = weights,
	};
	if ((rc = ops->plan(&m->shape, &r->o, &r->need, err)))
		return rc;
	r->kv_bytes = r->o.kv_pages * kv_page_bytes(&r->o.kv);
	r->scratch_bytes = (r->need.scratch + 4095) / 4096 * 4096;
	r->scratch = aligned_alloc(4096, r->scratch_bytes + 4096);
	memset(r->scratch, 0, r->scratch_bytes);
	r->kv = aligned_alloc(4096, (r->kv_bytes + 4095) / 4096 * 4096 + 4096);
	return ops->open(m, &r->o, r->scratch, r->kv, &r->c, err);
}

static inline void run_close(struct runner *r)
{
	if (r->ops)
		r->ops->close(r->c);
	free(r->scratch);
	free(r->kv);
}

/* log of the sum of e^@l */
static inline double log_z(const float *l, uint32_t n)
{
	double m = -INFINITY, z = 0;

	for (uint32_t i = 0; i < n; i++)
		m = fmax(m, l[i]);
	for (uint32_t i = 0; i < n; i++)
		z += exp(l[i] - m);
	return m + log(z);
}

#endif
