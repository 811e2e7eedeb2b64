// SPDX-License-Identifier: MIT
/* Embedded pools: their memory and their size. */
#include "dev/embedded.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mono.h"

void emb_pool_free(struct emb_pool *p)
{
	struct extent *node, *next;

	for (node = p->map.first; node; node = next) {
		next = node->next;
		free(node);
	}
	while ((node = extent_spare_get(&p->map)))
		free(node);
	if (p->fd >= 0)
		close(p->fd);
	free(p);
}

int emb_pool_make(struct emb *e, const struct hearth_pool_spec *spec, struct hearth_err *err)
{
	uint64_t size = spec->size;
	struct extent *node = NULL;
	struct emb_pool *p;
	char buf[DEV_BYTES_LEN];
	int ret;

	if (size > INT64_MAX - e->page)
		return err_set(err, -EINVAL, "pool %s: no pool can have %llu bytes", spec->name,
			       (unsigned long long)size);
	size = (size + e->page - 1) & ~(e->page - 1);
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_set(err, -ENOMEM, "no memory for pool %s", spec->name);
	p->fd = -1;
	p->base.h = &e->base;
	p->base.index = e->base.n_pools;
	p->base.kind = spec->kind;
	snprintf(p->base.name, sizeof(p->base.name), "%s", spec->name);
	budget_pool_init(&p->budget, size);
	pressure_init(&p->gauge, (uint64_t)mono_ns());
	pressure_rules_default(&p->rules, size);
	if (spec->kind != HEARTH_KIND_ACCOUNT) {
		node = malloc(sizeof(*node));
		if (!node) {
			emb_pool_free(p);
			return err_set(err, -ENOMEM, "no memory for pool %s", spec->name);
		}
		extent_map_init(&p->map, size, e->page, node);
		p->fd = memfd_create(spec->name, MFD_CLOEXEC);
		if (p->fd < 0 || ftruncate(p->fd, (off_t)size)) {
			ret = -errno;
			emb_pool_free(p);
			return err_set(err, ret, "pool %s of %s cannot be made: %s", spec->name,
				       text_bytes(size, buf), strerror(-ret));
		}
	}
	e->base.pools[e->base.n_pools++] = &p->base;
	return 0;
}

int emb_pool_info(struct hearth_pool *pool, struct hearth_pool_info *ret_info)
{
	struct emb_pool *p = emb_pool_of(pool);
	struct emb *e = emb_of(pool->h);
	struct emb_rec *rec;

	memset(ret_info, 0, sizeof(*ret_info));
	memcpy(ret_info->name, pool->name, sizeof(ret_info->name));
	ret_info->kind = pool->kind;
	pthread_mutex_lock(&e->lock);
	ret_info->size = p->budget.size;
	ret_info->charged = p->budget.charged;
	ret_info->peak = p->budget.peak;
	ret_info->guaranteed = p->budget.min_sum;
	ret_info->claimable = p->budget.claimable;
	ret_info->largest_free = extent_largest(&p->map);
	ret_info->level = (enum hearth_level)p->gauge.level;
	ret_info->regions = p->n_objs;
	for (rec = e->first; rec; rec = rec->next)
		ret_info->tenants++;
	pthread_mutex_unlock(&e->lock);
	return 0;
}

/* The rules of a tenant's gauge follow its max and the pool's size. */
void emb_set_rules(struct emb_account *acct, const struct emb_pool *pool)
{
	pressure_rules_default(&acct->rules, core_min(acct->b.limits.max, pool->budget.size));
}

int emb_pool_resize(struct hearth_pool *pool, uint64_t size, struct hearth_err *err)
{
	struct emb_pool *p = emb_pool_of(pool);
	struct emb *e = emb_of(pool->h);
	char a[DEV_BYTES_LEN], b[DEV_BYTES_LEN];
	struct budget_refusal ref;
	struct extent *node = NULL;
	uint64_t was, min_sum, charged;
	struct emb_rec *rec;
	int ret;

	if (size > INT64_MAX - e->page)
		return err_set(err, -EINVAL, "pool %s: no pool can have %llu bytes", pool->name,
			       (unsigned long long)size);
	size = (size + e->page - 1) & ~(e->page - 1);
	if (p->fd >= 0) {
		node = malloc(sizeof(*node));
		if (!node)
			return err_set(err, -ENOMEM, "no memory for pool %s", pool->name);
	}
	pthread_mutex_lock(&e->lock);
	was = p->budget.size;
	min_sum = p->budget.min_sum;
	charged = p->budget.charged;
	ret = budget_pool_resize(&p->budget, size, &ref);
	if (!ret && p->fd >= 0) {
		extent_spare_put(&p->map, node);
		node = NULL;
		ret = extent_resize(&p->map, size);
		if (!ret && ftruncate(p->fd, (off_t)size)) {
			ret = -errno;
			extent_resize(&p->map, was);
		}
		if (ret)
			budget_pool_resize(&p->budget, was, NULL);
	}
	if (!ret) {
		pressure_rules_default(&p->rules, size);
		emb_emit(e, NULL, p, (struct hearth_event){
			.type = HEARTH_EVENT_POOL_SIZE,
			.current = p->budget.charged,
			.limit = size,
		});
		for (rec = e->first; rec; rec = rec->next) {
			emb_set_rules(emb_account(rec, p), p);
			emb_note(e, rec, p);
		}
		pthread_cond_broadcast(&e->wake);
	}
	pthread_mutex_unlock(&e->lock);
	free(node);
	if (ret == -ENOSPC)
		return err_set(err, ret, "pool %s cannot shrink to %s: %s of it is guaranteed",
			       pool->name, text_bytes(size, a), text_bytes(min_sum, b));
	if (ret == -EBUSY)
		return err_set(err, ret,
			       "pool %s cannot shrink to %s: %s is charged, and a region may lie past the new end",
			       pool->name, text_bytes(size, a), text_bytes(charged, b));
	return ret ? err_set(err, ret, "pool %s cannot be resized: %s", pool->name,
			     strerror(-ret)) : 0;
}
