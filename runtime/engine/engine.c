// SPDX-License-Identifier: MIT
#include "engine/priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mono.h"
#include "base/thread.h"
#include "gguf/quant.h"

/* -- packing while loading -------------------------------------------------------- */

struct packer {
	const struct ops *ops;
	struct team *team;
	struct work work;
	const struct mat *w;         /* the tensor in hand */
	uint32_t step;               /* rows of one piece, a multiple of 64 */
	size_t tmp_bytes;
	uint8_t *tmp;                /* [team][tmp_bytes] */
	int failed;
};

static void pack_member(void *arg, uint32_t id)
{
	struct packer *p = arg;
	uint32_t r;

	while ((r = work_take(&p->work, p->step)) < p->w->rows) {
		struct mat part = *p->w;

		part.rows = p->w->rows - r < p->step ? p->w->rows - r : p->step;
		part.bytes = part.rows * part.row_bytes;
		part.data = (uint8_t *)p->w->data + r * part.row_bytes;
		if (p->ops->pack(&part, p->tmp + id * p->tmp_bytes, NULL))
			p->failed = -EIO;
	}
}

/*
 * A backend that packs whole tensors only (anything but blocks of rows) sets
 * pack_tmp for the whole; the CPU's panels of 16 rows can be made side by side.
 */
static int pack_tensor(void *arg, const struct gguf_tensor *t, void *data, struct hearth_err *err)
{
	struct packer *p = arg;
	struct mat w;
	uint64_t row;

	if (t->n_dims != 2 || quant_row_bytes(t->type, t->ne[0], &row))
		return 0;
	w = (struct mat){
		.name = t->name, .type = (int)t->type, .rows = (uint32_t)t->ne[1],
		.cols = (uint32_t)t->ne[0], .row_bytes = row, .bytes = t->nbytes, .data = data,
	};
	if (!p->ops->pack_layout(&w))
		return 0;
	if (p->ops->pack_tmp(&w) > p->tmp_bytes) {
		uint8_t *more = realloc(p->tmp, p->ops->pack_tmp(&w) * team_size(p->team));

		if (!more)
			return err_set(err, -ENOMEM, "no memory to reorder tensor %s", t->name);
		p->tmp = more;
		p->tmp_bytes = p->ops->pack_tmp(&w);
	}
	p->w = &w;
	p->step = 64;
	work_reset(&p->work);
	team_begin(p->team);
	team_run(p->team, pack_member, p);
	team_end(p->team);
	return p->failed ? err_set(err, p->failed, "tensor %s could not be reordered", t->name) : 0;
}

static int set_layout(struct mat *w, void *arg)
{
	const struct ops *ops = arg;

	w->layout = ops->pack_layout ? ops->pack_layout(w) : 0;
	return 0;
}

static int load_model(struct engine *e, struct hearth_err *err)
{
	struct packer p = { .ops = e->ops };
	struct load_opts lo = {
		.progress = e->o.progress,
		.ctx = e->o.progress_arg,
		.layout = e->ops->layout_name ? e->ops->layout_name : "",
	};
	struct model *dry;
	int r;

	/* Everything that can be wrong with names and shapes, before reading gigabytes. */
	r = model_bind(e->gguf, &dry, err);
	if (r)
		return r;
	model_free(dry);
	if (e->ops->pack) {
		r = team_open(e->plan.threads, &p.team, err);
		if (r)
			return r;
		lo.pack = pack_tensor;
		lo.pack_ctx = &p;
	}
	r = load_weights(e->gguf, e->tenant, e->pool[ENGINE_WEIGHTS], &lo, &e->load, err);
	team_close(p.team);
	free(p.tmp);
	if (r)
		return r;
	r = model_bind(e->gguf, &e->model, err);
	if (r)
		return r;
	return model_each_mat(e->model, set_layout, (void *)e->ops);
}

/* -- opening ------------------------------------------------------------------------ */

static const enum hearth_kind kinds[ENGINE_POOLS] = {
	[ENGINE_WEIGHTS] = HEARTH_KIND_WEIGHTS,
	[ENGINE_KV] = HEARTH_KIND_KV,
	[ENGINE_SCRATCH] = HEARTH_KIND_SCRATCH,
	[ENGINE_ACCOUNT] = HEARTH_KIND_ACCOUNT,
};

/* An engine without a tenant makes embedded pools that fit it exactly. */
static int open_pools(struct engine *e, struct hearth_err *err)
{
	struct hearth_pool_spec spec[ENGINE_POOLS];
	struct hearth_options o;
	struct hearth *h;
	int i, r;

	if (!e->tenant) {
		h = e->o.hearth;
		if (!h) {
			for (i = 0; i < ENGINE_POOLS; i++)
				spec[i] = (struct hearth_pool_spec){
					.kind = kinds[i],
					.name = hearth_kind_name(kinds[i]),
					.size = e->plan.bytes[i],
				};
			hearth_options_defaults(&o);
			o.backend = HEARTH_BACKEND_EMBEDDED;
			o.pools = spec;
			o.n_pools = ENGINE_POOLS;
			r = hearth_open(&o, &e->own_hearth, err);
			if (r)
				return r;
			h = e->own_hearth;
		}
		r = hearth_tenant_open(h, "llm", HEARTH_CLASS_LLM, 10, &e->own_tenant, err);
		if (r)
			return r;
		e->tenant = e->own_tenant;
	}
	for (i = 0; i < ENGINE_POOLS; i++) {
		e->pool[i] = hearth_pool(hearth_tenant_connection(e->tenant), kinds[i]);
		if (!e->pool[i])
			return err_set(err, -ENOENT, "there is no pool of kind %s", hearth_kind_name(kinds[i]));
	}
	return 0;
}

static int refuse(const struct engine_plan *p, struct hearth_err *err)
{
	static const char *const what[ENGINE_POOLS] = { "weights", "KV", "scratch", "own memory" };
	const enum engine_pool s = p->short_of;
	char fit[96];

	if (p->ctx_fit)
		snprintf(fit, sizeof(fit), "; a context of %u tokens would fit", p->ctx_fit);
	else
		snprintf(fit, sizeof(fit), "; no context at all would fit");
	return err_set(err, -ENOMEM, "a context of %u tokens needs %.1f MB of %s, of which %.1f MB can be had%s",
		       p->ctx, (double)p->bytes[s] / 1e6, what[s], (double)p->room[s] / 1e6, fit);
}

static int find_valid(struct engine *e, struct hearth_err *err)
{
	const uint32_t words = (e->plan.shape.vocab + 31) / 32;
	const size_t n = tok_count(e->tok);
	uint32_t i, missing = 0;
	size_t longest = 0, len;

	e->mask = calloc(words, sizeof(uint32_t));
	e->valid = calloc(words, sizeof(uint32_t));
	if (!e->mask || !e->valid)
		return err_set(err, -ENOMEM, "no memory for token masks");
	for (i = 0; i < e->plan.shape.vocab; i++) {
		if (i < n && !tok_is_unused(e->tok, (int32_t)i)) {
			e->valid[i / 32] |= 1u << (i % 32);
			tok_bytes(e->tok, (int32_t)i, &len);
			longest = len > longest ? len : longest;
		} else {
			missing++;
		}
	}
	/* A byte that is no UTF-8 becomes three; what was held back comes with it. */
	e->text_max = 3 * (longest + 8);
	if (!missing) {
		free(e->valid);
		e->valid = NULL;
	}
	return 0;
}

static int open_parts(struct engine *e, struct hearth_err *err)
{
	const uint32_t rows = e->plan.chunk + e->plan.sessions;
	struct ops_opts oo;
	int r;

	if ((r = hearth_charge(e->tenant, e->pool[ENGINE_ACCOUNT], e->plan.bytes[ENGINE_ACCOUNT], 0, err)))
		return r;
	e->charged = e->plan.bytes[ENGINE_ACCOUNT];
	if ((r = load_model(e, err)) ||
	    (r = cache_region(e, err)) ||
	    (r = hearth_region_alloc(e->tenant, e->pool[ENGINE_SCRATCH], e->plan.bytes[ENGINE_SCRATCH], 0, 0,
				     0, &e->scratch_region, err)))
		return r;
	plan_ops_opts(&e->plan, &oo);
	if ((r = e->ops->open(e->model, &oo, hearth_region_ptr(e->scratch_region),
			      hearth_region_ptr(e->kv_region), &e->ctx, err)) ||
	    (r = kv_open(&oo.kv, e->plan.kv_pages, &e->kv, err)))
		return r;
	if (e->o.prefix_cache && (r = prefix_open(e->kv, &e->prefix, err)))
		return r;
	e->row_token = calloc(rows, sizeof(*e->row_token));
	e->row_out = calloc(rows, sizeof(*e->row_out));
	e->row_seq = calloc(rows, sizeof(*e->row_seq));
	e->row_gen = calloc(rows, sizeof(struct gen *));
	e->pick = calloc(rows, sizeof(*e->pick));
	e->picked = calloc(rows, sizeof(*e->picked));
	e->hidden = calloc(e->plan.shape.d, sizeof(*e->hidden));
	if (!e->pick || !e->picked || !e->row_token || !e->row_out || !e->row_seq || !e->row_gen || !e->hidden)
		return err_set(err, -ENOMEM, "no memory for steps of %u rows", rows);
	if ((r = find_valid(e, err)) || (r = sessions_open(e, err)))
		return r;
	r = pthread_create(&e->worker, NULL, engine_worker, e);
	if (r)
		return err_set(err, -r, "the engine's thread could not be started");
	e->started = true;
	return 0;
}

int engine_open(const struct engine_opts *o, struct engine **ret, struct hearth_err *err)
{
	struct hearth_err no_gpu;
	struct engine *e;
	int r;

	if (!o->model)
		return err_set(err, -EINVAL, "no model file was named");
	e = calloc(1, sizeof(*e));
	if (!e)
		return err_set(err, -ENOMEM, "no memory for an engine");
	e->o = *o;
	e->tenant = o->tenant;
	e->lost_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->work, NULL);
	mono_cond(&e->done);
	r = e->lost_fd < 0 ? err_set(err, -errno, "no descriptor is left for an engine: %s", strerror(errno))
			   : gguf_open(o->model, &e->gguf, err); /* its sentence names the file */
	if (r) {
		engine_close(e);
		return r;
	}
	if ((r = plan_ops(o->backend, &e->ops, &no_gpu, err)) || (r = tok_open(e->gguf, &e->tok, err)) ||
	    (r = plan_choose(e->gguf, o, &e->ops, &no_gpu, e->tok, &e->plan, err)) || (r = open_pools(e, err)) ||
	    (r = plan_fit(e->gguf, o, e->ops, e->tok, e->tenant, &e->plan, err)))
		goto fail;
	if (!e->plan.fits) {
		r = refuse(&e->plan, err);
		goto fail;
	}
	r = open_parts(e, err);
	if (r)
		goto fail;
	*ret = e;
	return 0;
fail:
	err_prefix(err, r, "%s", o->model);
	engine_close(e);
	return r;
}

void engine_close(struct engine *e)
{
	if (!e)
		return;
	if (e->started) {
		pthread_mutex_lock(&e->lock);
		e->stop = true;
		pthread_cond_broadcast(&e->work);
		pthread_mutex_unlock(&e->lock);
		if (e->ops->interrupt)
			e->ops->interrupt(e->ctx);
		pthread_join(e->worker, NULL);
	}
	sessions_close(e);
	prefix_close(e->prefix);
	kv_close(e->kv);
	if (e->ctx)
		e->ops->close(e->ctx);
	model_free(e->model);
	if (e->own_hearth)
		load_drop(e->load);
	else
		load_free(e->load);
	tok_free(e->tok);
	gguf_close(e->gguf);
	if (e->o.keep_kv && e->kv_region)
		hearth_region_close(e->kv_region);
	else
		hearth_region_free(e->kv_region);
	hearth_region_free(e->scratch_region);
	if (e->charged)
		hearth_uncharge(e->tenant, e->pool[ENGINE_ACCOUNT], e->charged);
	hearth_tenant_close(e->own_tenant);
	hearth_close(e->own_hearth);
	free(e->mask);
	free(e->valid);
	free(e->row_token);
	free(e->row_out);
	free(e->row_seq);
	free(e->row_gen);
	free(e->pick);
	free(e->picked);
	free(e->hidden);
	if (e->lost_fd >= 0)
		close(e->lost_fd);
	pthread_cond_destroy(&e->done);
	pthread_cond_destroy(&e->work);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

/* -- looking in ------------------------------------------------------------------------ */

const struct engine_plan *engine_the_plan(const struct engine *e)
{
	return &e->plan;
}

const struct tok *engine_tokenizer(const struct engine *e)
{
	return e->tok;
}

const struct gguf *engine_gguf(const struct engine *e)
{
	return e->gguf;
}

struct hearth_tenant *engine_tenant(const struct engine *e)
{
	return e->tenant;
}

bool engine_can_embed(const struct engine *e)
{
	return e->ops->hidden;
}

int engine_lost(struct engine *e, struct hearth_err *err)
{
	int r;

	pthread_mutex_lock(&e->lock);
	r = e->lost.code;
	if (r)
		err_set(err, r, "%s", e->lost.text);
	pthread_mutex_unlock(&e->lock);
	return r;
}

int engine_lost_fd(const struct engine *e)
{
	return e->lost_fd;
}

void engine_stats(struct engine *e, struct engine_stats *ret)
{
	uint32_t i;

	pthread_mutex_lock(&e->lock);
	*ret = e->stats;
	ret->active = ret->queued = ret->sessions = 0;
	for (i = 0; i < e->plan.sessions; i++) {
		ret->sessions += e->session[i].open;
		ret->active += e->session[i].gen.state == GEN_S_ACTIVE;
		ret->queued += e->session[i].gen.state == GEN_S_QUEUED;
	}
	ret->kv_pages = kv_total(e->kv);
	ret->kv_pages_free = kv_free(e->kv);
	ret->kv_pages_cached = e->prefix ? prefix_idle(e->prefix) : 0;
	pthread_mutex_unlock(&e->lock);
}

