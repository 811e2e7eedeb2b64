// SPDX-License-Identifier: MIT
/*
 * The memory plan: every byte that the engine will charge, from the file's
 * header and the options alone. engine_open() takes what stands here, so a
 * wrong number shows as a refused charge or as a peak that differs.
 */
#include "engine/priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"

#define CTX_DEFAULT   4096u
#define CHUNK_DEFAULT 256u
#define CHUNK_MAX     4096u
#define CTX_MAX       (1u << 20)

void engine_defaults(struct engine_opts *o)
{
	*o = (struct engine_opts){ .kv = KV_I8, .prefix_cache = true };
}

static uint64_t page_up(uint64_t n)
{
	return (n + 4095) & ~4095ull;
}

static bool is_auto(const char *backend)
{
	return !backend || !strcmp(backend, "auto");
}

int plan_ops(const char *backend, const struct ops **ret, struct hearth_err *ret_no_gpu,
	     struct hearth_err *err)
{
	struct hearth_err why = { 0 };
	const struct ops *ops;
	int r;

	*ret_no_gpu = why;
	if (is_auto(backend)) {
		/* No CUDA, for whatever reason, is not an error unless it was asked for. */
		if (ops_cuda(ret, ret_no_gpu))
			*ret = ops_cpu();
		return 0;
	}
	if (!strcmp(backend, "cuda")) {
		r = ops_cuda(ret, &why);
		return r ? err_set(err, r, "%s: use the CPU backend (backend: cpu)", why.text) : 0;
	}
	ops = ops_by_name(backend);
	if (!ops)
		return err_set(err, -ENODEV, "backend \"%s\" is not there on this machine or in this build",
			       backend);
	*ret = ops;
	return 0;
}

void plan_ops_opts(const struct engine_plan *p, struct ops_opts *ret)
{
	*ret = (struct ops_opts){
		.max_batch = p->chunk + p->sessions,
		.max_seqs = p->sessions,
		.max_out = p->sessions + OUT_EXTRA,
		.max_ctx = p->ctx,
		.threads = p->threads,
		.kv_pages = p->kv_pages,
		.weights = p->bytes[ENGINE_WEIGHTS],
		.kv = {
			.type = p->kv,
			.layers = p->shape.layers,
			.kv_heads = p->shape.kv_heads,
			.head_dim = p->shape.head_dim,
		},
	};
}

/* Heap of everything but the tokenizer and the file's header. */
static uint64_t host_bytes(const struct engine_plan *p)
{
	const uint64_t words = (p->shape.vocab + 31) / 32;
	uint64_t n = sizeof(struct engine);

	n += kv_host_bytes(p->kv_pages) + prefix_host_bytes(p->kv_pages);
	n += sizeof(struct model) + p->shape.layers * sizeof(struct model_layer);
	n += words * 2 * sizeof(uint32_t) + p->shape.d * sizeof(float);
	n += (uint64_t)(p->chunk + p->sessions) *
	     (sizeof(int32_t) + sizeof(uint32_t) + sizeof(struct batch_seq) + sizeof(struct gen *));
	n += p->sessions * (sizeof(struct session) + kv_seq_host_bytes(p->ctx) +
			    p->ctx * sizeof(int32_t) + sampler_host_bytes(p->shape.vocab));
	return n;
}

/* The bytes for ret->ctx tokens; everything else in @ret is settled. */
static int plan_bytes(const struct gguf *g, const struct engine_opts *o, const struct ops *ops,
		      const struct tok *tok, struct engine_plan *ret, struct hearth_err *err)
{
	struct ops_opts oo;
	struct ops_need need;
	uint64_t tokens = o->kv_tokens ? o->kv_tokens : (uint64_t)ret->ctx * ret->sessions, pages;
	int r;

	if (tokens > UINT32_MAX - KV_PAGE)
		return err_set(err, -EINVAL, "%llu tokens of KV: too many", (unsigned long long)tokens);
	/* Each session may fill its last page only in part. */
	pages = tokens / KV_PAGE + (o->kv_tokens ? tokens % KV_PAGE != 0 : 0);
	if (!o->kv_tokens)
		pages = (uint64_t)kv_pages_for(ret->ctx) * ret->sessions;
	ret->kv_tokens = (uint32_t)tokens;
	ret->kv_pages = (uint32_t)pages;
	ret->bytes[ENGINE_WEIGHTS] = page_up(load_region_bytes(g));
	plan_ops_opts(ret, &oo);
	r = ops->plan(&ret->shape, &oo, &need, err);
	if (r)
		return r;
	ret->kv_bytes_per_token = kv_page_bytes(&oo.kv) / KV_PAGE;
	ret->bytes[ENGINE_KV] = page_up(pages * kv_page_bytes(&oo.kv));
	ret->bytes[ENGINE_SCRATCH] = page_up(need.scratch);
	ret->bytes[ENGINE_ACCOUNT] = page_up(host_bytes(ret) + need.host + need.device +
					     gguf_host_bytes(g) + tok_host_bytes(tok));
	ret->total = ret->bytes[ENGINE_WEIGHTS] + ret->bytes[ENGINE_KV] +
		     ret->bytes[ENGINE_SCRATCH] + ret->bytes[ENGINE_ACCOUNT];
	return 0;
}

/* What the table says of the model's tensors, and of itself. */
static int plan_why(const struct gguf *g, const struct ops *ops, struct engine_plan *ret,
		    struct hearth_err *err)
{
	const char *line = ops->line ? ops->line() : "as asked";
	char slow[OPS_SLOW_MAX] = "";
	struct model *dry;
	int r;

	if (ops->takes) {
		r = model_bind(g, &dry, err);
		if (r)
			return r;
		r = ops->takes(dry, slow, sizeof(slow), err);
		model_free(dry);
		if (r)
			return r;
	}
	snprintf(ret->why, sizeof(ret->why), "%s%s%s", line, *slow ? "; slowly, for " : "", slow);
	return 0;
}

int plan_make(const struct gguf *g, const struct engine_opts *o, const struct ops *ops,
	      const struct tok *tok, struct engine_plan *ret, struct hearth_err *err)
{
	struct engine_plan p = { .kv = o->kv };
	struct gguf_str name;
	uint32_t i;
	int r;

	r = model_shape_read(g, NULL, &p.shape, err);
	if (r)
		return r;
	/* A token without a row would be refused in the middle of a conversation. */
	if (tok_count(tok) > p.shape.vocab)
		return err_set(err, -EINVAL, "the tokenizer has %zu tokens, but token_embd.weight has rows for %u only",
			       tok_count(tok), p.shape.vocab);
	snprintf(p.arch, sizeof(p.arch), "%s", gguf_arch(g));
	snprintf(p.backend, sizeof(p.backend), "%s", ops->name);
	if (!gguf_str(g, "general.name", &name, NULL))
		snprintf(p.model, sizeof(p.model), "%.*s", (int)(name.n < 60 ? name.n : 60), name.s);
	for (i = 0; i < gguf_n_tensors(g); i++)
		p.params += gguf_tensor_at(g, i)->n_elems;
	p.ctx = o->ctx;
	if (!p.ctx)
		p.ctx = p.shape.ctx_train < CTX_DEFAULT ? p.shape.ctx_train : CTX_DEFAULT;
	if (p.ctx > p.shape.ctx_train)
		return err_set(err, -EINVAL, "a context of %u tokens was asked for; the model was trained for %u",
			       p.ctx, p.shape.ctx_train);
	if (p.ctx > CTX_MAX)
		return err_set(err, -EINVAL, "a context of %u tokens was asked for; at most %u are possible",
			       p.ctx, CTX_MAX);
	p.sessions = o->sessions ? o->sessions : 1;
	if (p.sessions > SESSIONS_MAX)
		return err_set(err, -EINVAL, "%u sessions were asked for; at most %u are possible",
			       p.sessions, SESSIONS_MAX);
	p.threads = o->threads ? o->threads : thread_cores();
	if (p.threads > TEAM_MAX)
		return err_set(err, -EINVAL, "%u threads were asked for; at most %u are possible",
			       p.threads, TEAM_MAX);
	p.chunk = o->chunk ? o->chunk : CHUNK_DEFAULT;
	if (p.chunk > p.ctx)
		p.chunk = p.ctx;
	if (p.chunk > CHUNK_MAX)
		return err_set(err, -EINVAL, "steps of %u prompt tokens were asked for; at most %u are possible",
			       p.chunk, CHUNK_MAX);
	if (o->kv != KV_I8 && o->kv != KV_F16)
		return err_set(err, -EINVAL, "unknown type %d of KV", (int)o->kv);
	if (o->kv_tokens && o->kv_tokens < p.ctx)
		return err_set(err, -EINVAL, "%u tokens of KV cannot hold one session of %u tokens",
			       o->kv_tokens, p.ctx);
	for (i = 0; i < ENGINE_POOLS; i++)
		p.room[i] = UINT64_MAX;
	p.fits = true;
	p.ctx_fit = p.ctx;
	if ((r = plan_bytes(g, o, ops, tok, &p, err)) || (r = plan_why(g, ops, &p, err)))
		return r;
	*ret = p;
	return 0;
}

static bool fits(const struct engine_plan *p, enum engine_pool *ret_short)
{
	int i;

	for (i = 0; i < ENGINE_POOLS; i++) {
		if (p->bytes[i] > p->room[i]) {
			*ret_short = i;
			return false;
		}
	}
	return true;
}

static const enum hearth_kind kinds[ENGINE_POOLS] = {
	[ENGINE_WEIGHTS] = HEARTH_KIND_WEIGHTS,
	[ENGINE_KV] = HEARTH_KIND_KV,
	[ENGINE_SCRATCH] = HEARTH_KIND_SCRATCH,
	[ENGINE_ACCOUNT] = HEARTH_KIND_ACCOUNT,
};

int plan_fit(const struct gguf *g, const struct engine_opts *o, const struct ops *ops,
	     const struct tok *tok, struct hearth_tenant *tenant, struct engine_plan *p,
	     struct hearth_err *err)
{
	struct engine_opts smaller = *o;
	struct engine_plan q;
	enum engine_pool short_of;
	uint32_t lo = 0, hi, mid;
	int i;

	if (!tenant)
		return 0;
	for (i = 0; i < ENGINE_POOLS; i++) {
		struct hearth_pool *pool = hearth_pool(hearth_tenant_connection(tenant), kinds[i]);
		uint64_t with_purge;
		int r;

		if (!pool)
			return err_set(err, -ENOENT, "there is no pool of kind %s", hearth_kind_name(kinds[i]));
		r = hearth_available(tenant, pool, NULL, &with_purge);
		if (r)
			return err_set(err, r, "what tenant %s may still take of pool %s is not known",
				       hearth_tenant_name(tenant), hearth_kind_name(kinds[i]));
		p->room[i] = with_purge;
	}
	/* Weights that an earlier engine left in place are not charged again. */
	if (load_there(g, tenant, hearth_pool(hearth_tenant_connection(tenant), HEARTH_KIND_WEIGHTS),
			  ops->layout_name) && p->room[ENGINE_WEIGHTS] < p->bytes[ENGINE_WEIGHTS])
		p->room[ENGINE_WEIGHTS] = p->bytes[ENGINE_WEIGHTS];
	if (o->keep_kv)
		p->room[ENGINE_KV] += cache_left(tenant, hearth_pool(hearth_tenant_connection(tenant), HEARTH_KIND_KV));
	p->fits = fits(p, &p->short_of);
	if (p->fits)
		return 0;
	/* A smaller context needs no more of anything, so halving finds the largest. */
	hi = p->ctx;
	q = *p;
	smaller.kv_tokens = 0;
	while (lo + 1 < hi) {
		mid = lo + (hi - lo) / 2;
		q.ctx = mid;
		if (plan_bytes(g, &smaller, ops, tok, &q, NULL) || !fits(&q, &short_of))
			hi = mid;
		else
			lo = mid;
	}
	p->ctx_fit = lo;
	return 0;
}

int plan_choose(const struct gguf *g, const struct engine_opts *o, const struct ops **ops,
		const struct hearth_err *no_gpu, const struct tok *tok, struct engine_plan *ret,
		struct hearth_err *err)
{
	struct hearth_err why = *no_gpu;
	int r;

	if (!is_auto(o->backend) || *ops == ops_cpu()) {
		r = plan_make(g, o, *ops, tok, ret, err);
	} else {
		r = plan_make(g, o, *ops, tok, ret, &why);
		if (!r)
			return 0;
		if (r != -ENOTSUP)
			return err_set(err, r, "%s", why.text);
		*ops = ops_cpu();
		r = plan_make(g, o, *ops, tok, ret, err);
	}
	if (!r && *why.text)
		snprintf(ret->why, sizeof(ret->why), "%s", why.text);
	return r;
}

int engine_plan(const struct engine_opts *o, struct engine_plan *ret, struct hearth_err *err)
{
	struct engine_plan p;
	struct hearth_err no_gpu;
	const struct ops *ops;
	struct gguf *g = NULL;
	struct tok *tok = NULL;
	struct model *dry = NULL; /* a plan for a file that cannot be opened is no plan */
	int r;

	if (!o->model)
		return err_set(err, -EINVAL, "no model file was named");
	r = plan_ops(o->backend, &ops, &no_gpu, err);
	if (r)
		return r;
	r = gguf_open(o->model, &g, err); /* its sentence names the file */
	if (r)
		return r;
	/* The architecture first: what is wrong with an unknown one is just that. */
	(void)((r = model_shape_read(g, NULL, &p.shape, err)) || (r = model_bind(g, &dry, err)) ||
	       (r = tok_open(g, &tok, err)) || (r = plan_choose(g, o, &ops, &no_gpu, tok, &p, err)) ||
	       (r = plan_fit(g, o, ops, tok, o->tenant, &p, err)));
	model_free(dry);
	tok_free(tok);
	gguf_close(g);
	if (r) {
		err_prefix(err, r, "%s", o->model);
		return r;
	}
	*ret = p;
	return 0;
}
