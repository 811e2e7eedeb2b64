// SPDX-License-Identifier: MIT
/*
 * The public calls: each refuses what is wrong in any state, then asks the
 * backend. Contracts are in hearth.h.
 */
#include "dev/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void hearth_options_defaults(struct hearth_options *ret_o)
{
	memset(ret_o, 0, sizeof(*ret_o));
	ret_o->backend = HEARTH_BACKEND_AUTO;
	ret_o->device = HEARTH_DEVICE;
}

static int check_pool(const struct hearth_pool_spec *p, struct hearth_err *err)
{
	char name[HEARTH_NAME_LEN];
	int ret;

	ret = text_name(name, sizeof(name), p->name, "pool", err);
	if (ret)
		return ret;
	if ((unsigned)p->kind >= HEARTH_KIND_COUNT)
		return err_set(err, -EINVAL, "pool %s: no kind %d", p->name, p->kind);
	return 0;
}

static int check_pools(const struct hearth_options *o, struct hearth_err *err)
{
	int ret;

	if (o->n_pools > DEV_POOLS_ASK)
		return err_set(err, -EINVAL, "%zu pools are more than %d", o->n_pools,
			       DEV_POOLS_ASK);
	for (size_t i = 0; i < o->n_pools; i++) {
		const struct hearth_pool_spec *p = &o->pools[i];

		ret = check_pool(p, err);
		if (ret)
			return ret;
		for (size_t k = 0; k < i; k++) {
			if (!strcmp(o->pools[k].name, p->name))
				return err_set(err, -EEXIST, "two pools are named %s", p->name);
		}
	}
	return 0;
}

int hearth_open(const struct hearth_options *o, struct hearth **ret_h, struct hearth_err *err)
{
	const char *device = o->device ? o->device : HEARTH_DEVICE;
	int ret;

	ret = check_pools(o, err);
	if (ret)
		return ret;
	switch (o->backend) {
	case HEARTH_BACKEND_EMBEDDED:
		return embedded_open(o, ret_h, err);
	case HEARTH_BACKEND_AUTO:
		if (access(device, F_OK) && (errno == ENOENT || errno == ENOTDIR))
			return embedded_open(o, ret_h, err);
		return device_open(o, ret_h, err);
	case HEARTH_BACKEND_DEVICE:
		return device_open(o, ret_h, err);
	}
	return err_set(err, -EINVAL, "no backend %d", o->backend);
}

void hearth_close(struct hearth *h)
{
	if (h)
		h->ops->close(h);
}

enum hearth_backend hearth_backend_of(const struct hearth *h)
{
	return h->backend;
}

const char *hearth_backend_text(const struct hearth *h)
{
	return h->text;
}

/* -- pools ---------------------------------------------------------------- */

struct hearth_pool *hearth_pool(struct hearth *h, enum hearth_kind kind)
{
	for (size_t i = 0; i < h->n_pools; i++) {
		if (h->pools[i]->kind == kind)
			return h->pools[i];
	}
	return NULL;
}

struct hearth_pool *hearth_pool_named(struct hearth *h, const char *name)
{
	for (size_t i = 0; i < h->n_pools; i++) {
		if (!strcmp(h->pools[i]->name, name))
			return h->pools[i];
	}
	return NULL;
}

size_t hearth_pool_count(const struct hearth *h)
{
	return h->n_pools;
}

struct hearth_pool *hearth_pool_at(struct hearth *h, size_t i)
{
	return i < h->n_pools ? h->pools[i] : NULL;
}

int hearth_pool_info(struct hearth_pool *pool, struct hearth_pool_info *ret_info)
{
	return pool ? pool->h->ops->pool_info(pool, ret_info) : -ENOENT;
}

static int no_pool(struct hearth_err *err)
{
	return err_set(err, -ENOENT, "there is no such pool");
}

int hearth_pool_resize(struct hearth_pool *pool, uint64_t size, struct hearth_err *err)
{
	return pool ? pool->h->ops->pool_resize(pool, size, err) : no_pool(err);
}

int hearth_pool_create(struct hearth *h, const struct hearth_pool_spec *spec,
		       struct hearth_err *err)
{
	int ret = check_pool(spec, err);

	return ret ? ret : h->ops->pool_create(h, spec, err);
}

int hearth_pool_remove(struct hearth_pool *pool, struct hearth_err *err)
{
	return pool ? pool->h->ops->pool_remove(pool, err) : no_pool(err);
}

int hearth_admin(struct hearth *h, struct hearth_err *err)
{
	return h->ops->admin(h, err);
}

/* -- tenants and budgets -------------------------------------------------- */

int hearth_tenant_open(struct hearth *h, const char *name, enum hearth_class cls, int priority,
		       struct hearth_tenant **ret_t, struct hearth_err *err)
{
	char buf[HEARTH_NAME_LEN];
	int ret;

	ret = text_name(buf, sizeof(buf), name, "tenant", err);
	if (ret)
		return ret;
	if ((unsigned)cls >= HEARTH_CLASS_COUNT)
		return err_set(err, -EINVAL, "tenant %s: no class %d", name, cls);
	if (priority < 0 || priority > 1000)
		return err_set(err, -EINVAL, "tenant %s: priority %d is not in 0..1000", name,
			       priority);
	return h->ops->tenant_open(h, buf, cls, priority, ret_t, err);
}

void hearth_tenant_close(struct hearth_tenant *t)
{
	if (t)
		t->h->ops->tenant_close(t);
}

const char *hearth_tenant_name(const struct hearth_tenant *t)
{
	return t->name;
}

int hearth_tenant_fd(const struct hearth_tenant *t)
{
	return t->h->ops->tenant_fd(t);
}

struct hearth *hearth_tenant_connection(const struct hearth_tenant *t)
{
	return t->h;
}

void hearth_budget_defaults(struct hearth_budget *ret_b)
{
	*ret_b = (struct hearth_budget){ .high = HEARTH_UNLIMITED, .max = HEARTH_UNLIMITED };
}

int hearth_budget_set(struct hearth_tenant *t, struct hearth_pool *pool,
		      const struct hearth_budget *b, struct hearth_err *err)
{
	return pool ? t->h->ops->budget_set(t, pool, b, err) : no_pool(err);
}

int hearth_budget_apply(struct hearth *h, const struct hearth_budget_line *lines, size_t n,
			size_t *ret_bad, struct hearth_err *err)
{
	char buf[HEARTH_NAME_LEN];
	int ret = 0;
	size_t i;

	for (i = 0; i < n && !ret; i++) {
		const struct hearth_budget_line *l = &lines[i];

		ret = text_name(buf, sizeof(buf), l->tenant, "tenant", err);
		if (!ret && ((unsigned)l->cls >= HEARTH_CLASS_COUNT))
			ret = err_set(err, -EINVAL, "tenant %s: no class %d", l->tenant, l->cls);
		if (!ret && (l->priority < 0 || l->priority > 1000))
			ret = err_set(err, -EINVAL, "tenant %s: priority %d is not in 0..1000",
				      l->tenant, l->priority);
		if (!ret && (!l->pool || !hearth_pool_named(h, l->pool)))
			ret = err_set(err, -ENOENT, "tenant %s: there is no pool %s", l->tenant,
				      l->pool ? l->pool : "without a name");
	}
	if (ret) {
		if (ret_bad)
			*ret_bad = i - 1;
		return ret;
	}
	return n ? h->ops->budget_apply(h, lines, n, ret_bad, err) : 0;
}

int hearth_tenant_remove(struct hearth *h, const char *name, struct hearth_err *err)
{
	return h->ops->tenant_remove(h, name, err);
}

int hearth_usage_get(struct hearth_tenant *t, struct hearth_pool *pool,
		     struct hearth_usage *ret_u)
{
	return pool ? t->h->ops->usage_get(t, pool, ret_u) : -ENOENT;
}

int hearth_peak_reset(struct hearth_tenant *t, struct hearth_pool *pool)
{
	return pool ? t->h->ops->peak_reset(t, pool) : -ENOENT;
}

int hearth_available(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t *ret_now,
		     uint64_t *ret_with_purge)
{
	uint64_t now, purge;
	int ret;

	if (!pool)
		return -ENOENT;
	ret = t->h->ops->available(t, pool, &now, &purge);
	if (ret)
		return ret;
	if (ret_now)
		*ret_now = now;
	if (ret_with_purge)
		*ret_with_purge = purge;
	return 0;
}

int hearth_charge(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t bytes,
		  unsigned wait_ms, struct hearth_err *err)
{
	if (!pool)
		return no_pool(err);
	if (!bytes)
		return err_set(err, -EINVAL, "tenant %s: a charge of 0 bytes", t->name);
	return t->h->ops->charge(t, pool, bytes, wait_ms, err);
}

int hearth_uncharge(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t bytes)
{
	if (!pool)
		return -ENOENT;
	return bytes ? t->h->ops->uncharge(t, pool, bytes) : -EINVAL;
}

/* -- regions -------------------------------------------------------------- */

int hearth_region_alloc(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t size,
			uint64_t align, unsigned flags, unsigned wait_ms,
			struct hearth_region **ret_r, struct hearth_err *err)
{
	if (!pool)
		return no_pool(err);
	if (pool->kind == HEARTH_KIND_ACCOUNT)
		return err_set(err, -EINVAL, "pool %s has no memory, it only counts charges",
			       pool->name);
	if (!size)
		return err_set(err, -EINVAL, "tenant %s: a region of 0 bytes", t->name);
	if (align && ((align & (align - 1)) || align > (uint64_t)1 << 30))
		return err_set(err, -EINVAL,
			       "tenant %s: an alignment of %llu is no power of two up to 1 GiB",
			       t->name, (unsigned long long)align);
	if (flags & ~(unsigned)HEARTH_REGION_CONTIGUOUS)
		return err_set(err, -EOPNOTSUPP, "tenant %s: unknown region flags %#x", t->name,
			       flags & ~(unsigned)HEARTH_REGION_CONTIGUOUS);
	return t->h->ops->region_alloc(t, pool, size, align, flags, wait_ms, ret_r, err);
}

void hearth_region_free(struct hearth_region *r)
{
	if (r)
		r->t->h->ops->region_close(r, true);
}

void hearth_region_close(struct hearth_region *r)
{
	if (r)
		r->t->h->ops->region_close(r, false);
}

void *hearth_region_ptr(const struct hearth_region *r)
{
	return r->ptr;
}

uint64_t hearth_region_size(const struct hearth_region *r)
{
	return r->size;
}

int hearth_region_seal(struct hearth_region *r, struct hearth_err *err)
{
	return r->t->h->ops->region_seal(r, err);
}

bool hearth_region_sealed(const struct hearth_region *r)
{
	return __atomic_load_n(&r->sealed, __ATOMIC_ACQUIRE);
}

int hearth_region_name(struct hearth_region *r, const char *name,
		       const uint8_t digest[HEARTH_DIGEST_LEN], struct hearth_err *err)
{
	static const uint8_t zero[HEARTH_DIGEST_LEN];
	char buf[HEARTH_REGION_NAME_LEN];
	int ret;

	ret = text_name(buf, sizeof(buf), name, "region", err);
	if (ret)
		return ret;
	return r->t->h->ops->region_name(r, buf, digest ? digest : zero, err);
}

int hearth_region_find(struct hearth_tenant *t, struct hearth_pool *pool, const char *name,
		       const uint8_t *digest, struct hearth_region **ret_r,
		       struct hearth_err *err)
{
	char buf[HEARTH_REGION_NAME_LEN];
	int ret;

	if (!pool)
		return no_pool(err);
	ret = text_name(buf, sizeof(buf), name, "region", err);
	if (ret)
		return ret;
	return t->h->ops->region_find(t, pool, buf, digest, ret_r, err);
}

int hearth_region_purgeable(struct hearth_region *r, struct hearth_err *err)
{
	return r->t->h->ops->region_purgeable(r, err);
}

int hearth_region_take_back(struct hearth_region *r, bool *ret_survived)
{
	return r->t->h->ops->region_take_back(r, ret_survived);
}

int hearth_region_share(struct hearth_region *r, bool writable, int *ret_fd,
			struct hearth_err *err)
{
	return r->t->h->ops->region_share(r, writable, ret_fd, err);
}

int hearth_region_import(struct hearth_tenant *t, int fd, struct hearth_region **ret_r,
			 struct hearth_err *err)
{
	return t->h->ops->region_import(t, fd, ret_r, err);
}

int hearth_region_export(struct hearth_region *r, int *ret_fd, struct hearth_err *err)
{
	return r->t->h->ops->region_export(r, ret_fd, err);
}

int hearth_region_drop(struct hearth_pool *pool, const char *name, struct hearth_err *err)
{
	return pool ? pool->h->ops->region_drop(pool, name, err) : no_pool(err);
}

/* -- events and state ----------------------------------------------------- */

int hearth_events_open(struct hearth *h, struct hearth_tenant *t,
		       struct hearth_events **ret_e, struct hearth_err *err)
{
	return h->ops->events_open(h, t, ret_e, err);
}

void hearth_events_close(struct hearth_events *e)
{
	if (e)
		e->h->ops->events_close(e);
}

int hearth_events_fd(const struct hearth_events *e)
{
	return e->fd;
}

int hearth_events_read(struct hearth_events *e, struct hearth_event *ret_ev)
{
	return e->h->ops->events_read(e, ret_ev);
}

int hearth_state(struct hearth *h, struct hearth_state_row **ret_rows, size_t *ret_n,
		 uint64_t *ret_seq)
{
	return h->ops->state(h, ret_rows, ret_n, ret_seq);
}

int hearth_system(struct hearth *h, struct hearth_system *ret_sys)
{
	return h->ops->system(h, ret_sys);
}

int hearth_regions(struct hearth *h, struct hearth_region_row **ret_rows, size_t *ret_n)
{
	return h->ops->regions(h, ret_rows, ret_n);
}
