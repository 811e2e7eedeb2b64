// SPDX-License-Identifier: MIT
/* What outlives a generation, and an engine: giving KV back, the file, the kept region. */
#include "engine/priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cache/store.h"
#include "gguf/digest.h"

_Static_assert(CACHE_ID_MAX == STORE_ID_MAX, "the file holds the whole text");

static enum ops_kv where(const struct engine *e)
{
	return e->ops->kv_where ? e->ops->kv_where(e->ctx) : OPS_KV_HOST;
}

/* -- giving back -------------------------------------------------------------------- */

/* Lock held. Memory of free pages to the system; what cannot be given stays, and harms nobody. */
static void punch(struct engine *e)
{
	const size_t page = kv_page_bytes(kv_config(e->kv)), os = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *base = hearth_region_ptr(e->kv_region);
	uint32_t i;

	if (where(e) != OPS_KV_HOST)
		return;
	while ((i = kv_page_stale(e->kv)) != KV_NONE) {
		/* Whole pages of the system that lie inside. */
		uintptr_t from = ((uintptr_t)base + i * page + os - 1) / os * os, to = ((uintptr_t)base + (i + 1) * page) / os * os;

		if (to > from)
			madvise((void *)from, to - from, MADV_REMOVE);
	}
}

uint64_t engine_shed(struct engine *e, uint64_t bytes, bool pinned)
{
	const uint64_t page = kv_page_bytes(kv_config(e->kv));
	uint64_t want = bytes / page + (bytes % page != 0);
	uint32_t got = 0;

	pthread_mutex_lock(&e->lock);
	if (e->prefix)
		got = prefix_shed(e->prefix, want > UINT32_MAX ? UINT32_MAX : (uint32_t)want, pinned, now_ns());
	punch(e);
	pthread_mutex_unlock(&e->lock);
	return got * page;
}

/* -- the file ------------------------------------------------------------------------ */

void cache_id(const struct engine *e, char *ret)
{
	const struct model_shape *s = &e->plan.shape;
	struct gguf_str t = { 0 };
	uint64_t template = 0;

	if (!gguf_str(e->gguf, "tokenizer.chat_template", &t, NULL))
		template = digest_u64(t.s, t.n);
	snprintf(ret, CACHE_ID_MAX, "model %.60s (%s, weights %s, rope %g, eps %g), template %016llx, backend %s, %s KV in pages of %u tokens, %u layers, %u heads of %u",
		 e->plan.model, e->plan.arch, load_digest(e->load), (double)s->rope_base, (double)s->eps, (unsigned long long)template,
		 e->ops->name, e->plan.kv == KV_I8 ? "int8" : "f16", KV_PAGE, s->layers, s->kv_heads, s->head_dim);
}

static void lock(void *arg)
{
	pthread_mutex_lock(&((struct engine *)arg)->lock);
}

static void unlock(void *arg)
{
	pthread_mutex_unlock(&((struct engine *)arg)->lock);
}

static int open_store(struct engine *e, char *id, struct store *ret, struct hearth_err *err)
{
	if (!e->prefix)
		return err_set(err, -EOPNOTSUPP, "the prefix cache is switched off");
	if (where(e) == OPS_KV_DEVICE)
		return err_set(err, -EOPNOTSUPP, "the prefix cache lies in the GPU's own memory and is not kept");
	cache_id(e, id);
	*ret = (struct store){
		.kv = e->kv, .prefix = e->prefix, .base = hearth_region_ptr(e->kv_region), .id = id,
		.lock = lock, .unlock = unlock, .arg = e,
	};
	return 0;
}

int engine_cache_save(struct engine *e, const char *path, uint64_t max_bytes, bool in_place, uint32_t *ret_pages,
		      struct hearth_err *err)
{
	char id[CACHE_ID_MAX];
	struct store s;
	int r = open_store(e, id, &s, err);

	if (!r)   /* what failed may have written anywhere: the file of before stays */
		r = engine_lost(e, err);
	if (r)
		return r;
	if (in_place && !e->o.keep_kv)
		return err_set(err, -EINVAL, "the KV region is not kept: the file must hold its pages");
	s.in_place = in_place;
	return store_save(&s, path, max_bytes, ret_pages, err);
}

int engine_cache_load(struct engine *e, const char *path, uint32_t *ret_pages, uint32_t *ret_lost, struct hearth_err *err)
{
	char id[CACHE_ID_MAX];
	struct store s;
	int r = open_store(e, id, &s, err);

	if (r)
		return r;
	s.in_place = e->kv_kept;
	return store_load(&s, path, ret_pages, ret_lost, err);
}

/* -- the kept region ------------------------------------------------------------------ */

uint64_t cache_left(struct hearth_tenant *t, struct hearth_pool *pool)
{
	struct hearth_region_row *row = NULL;
	struct hearth_pool_info info;
	uint64_t bytes = 0;
	size_t n = 0, i;

	if (hearth_pool_info(pool, &info) || hearth_regions(hearth_tenant_connection(t), &row, &n))
		return 0;
	for (i = 0; i < n; i++)
		if (!row[i].handles && !strcmp(row[i].name, KV_REGION_NAME) && !strcmp(row[i].pool, info.name) &&
		    !strcmp(row[i].tenant, hearth_tenant_name(t)))
			bytes += row[i].size;
	free(row);
	return bytes;
}

int cache_region(struct engine *e, struct hearth_err *err)
{
	const uint64_t bytes = e->plan.bytes[ENGINE_KV];
	uint8_t label[HEARTH_DIGEST_LEN] = { 0 };
	char id[CACHE_ID_MAX];
	struct digest d;
	int r;

	if (e->o.keep_kv) {
		cache_id(e, id);
		d = digest_of(id, strlen(id));
		memcpy(label, d.b, sizeof(d.b));
		r = hearth_region_find(e->tenant, e->pool[ENGINE_KV], KV_REGION_NAME, label, &e->kv_region, NULL);
		if (!r && hearth_region_size(e->kv_region) == bytes) {
			e->kv_kept = true;
			return 0;
		}
		/* Of another model, or another size: its place is needed. */
		if (r)
			r = hearth_region_find(e->tenant, e->pool[ENGINE_KV], KV_REGION_NAME, NULL, &e->kv_region, NULL);
		if (!r)
			hearth_region_free(e->kv_region);
		e->kv_region = NULL;
	}
	r = hearth_region_alloc(e->tenant, e->pool[ENGINE_KV], bytes, 0, 0, 0, &e->kv_region, err);
	/* Somebody else has the name: then it is not kept, and all else is as it should be. */
	if (!r && e->o.keep_kv && hearth_region_name(e->kv_region, KV_REGION_NAME, label, NULL))
		e->o.keep_kv = false;
	return r;
}
