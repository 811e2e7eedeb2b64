// SPDX-License-Identifier: MIT
/* Pools of /dev/hearth: finding them, making, resizing and removing them, and why that was refused. */
#include "dev/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dev_pool *dev_pool_by_id(struct hearth *h, uint32_t id)
{
	for (size_t i = 0; i < h->n_pools; i++) {
		if (dev_pool_id(h->pools[i]) == id)
			return (struct dev_pool *)h->pools[i];
	}
	return NULL;
}

struct dev_pool *dev_pool_make(struct hearth *h, uint32_t id, uint32_t kind, const char *name)
{
	struct dev_pool *p;

	if (h->n_pools == DEV_POOLS_MAX)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->base.h = h;
	p->base.index = h->n_pools;
	p->base.kind = (enum hearth_kind)kind;
	memcpy(p->base.name, name, sizeof(p->base.name));
	p->base.name[sizeof(p->base.name) - 1] = '\0';
	p->id = id;
	h->pools[h->n_pools++] = &p->base;
	return p;
}

int dev_pools_read(struct dev *d, struct hearth_err *err)
{
	struct hearth_ioc_pool_get get;
	uint32_t id = 0;
	int ret;

	for (;;) {
		memset(&get, 0, sizeof(get));
		get.size = sizeof(get);
		get.flags = HEARTH_GET_NEXT;
		get.pool = id;
		ret = dev_call(d->fd, HEARTH_IOC_POOL_GET, &get);
		if (ret == -ENOENT)
			return 0;
		if (ret)
			return err_set(err, ret, "%s: cannot list the pools: %s", d->path,
				       strerror(-ret));
		id = get.pool;
		/* a kind that this library does not know is not for us to use */
		if (get.out_kind >= HEARTH_KIND_COUNT)
			continue;
		if (!dev_pool_make(&d->base, id, get.out_kind, get.name))
			return err_set(err, -EOVERFLOW, "%s has more than %d pools", d->path,
				       DEV_POOLS_MAX);
	}
}

static void pool_to_front(struct hearth *h, size_t at, size_t to)
{
	struct hearth_pool *p = h->pools[at];

	memmove(&h->pools[to + 1], &h->pools[to], (at - to) * sizeof(p));
	h->pools[to] = p;
	for (size_t i = to; i <= at; i++)
		h->pools[i]->index = i;
}

/* Finds the pools that were asked for and puts them first, in that order. */
int dev_pools_match(struct dev *d, const struct hearth_options *o, struct hearth_err *err)
{
	struct hearth *h = &d->base;

	for (size_t i = 0; i < o->n_pools; i++) {
		size_t at = i;

		while (at < h->n_pools && strcmp(h->pools[at]->name, o->pools[i].name))
			at++;
		if (at == h->n_pools) {
			at = i;
			while (at < h->n_pools && h->pools[at]->kind != o->pools[i].kind)
				at++;
		}
		if (at >= h->n_pools)
			return err_set(err, -ENOENT,
				       "%s has no pool %s, and no other of kind %s; make one with: hearthctl pool create %s %s SIZE",
				       d->path, o->pools[i].name, hearth_kind_name(o->pools[i].kind),
				       o->pools[i].name, hearth_kind_name(o->pools[i].kind));
		if (h->pools[at]->kind != o->pools[i].kind)
			return err_set(err, -EINVAL, "pool %s on %s is of kind %s, not %s",
				       h->pools[at]->name, d->path,
				       hearth_kind_name(h->pools[at]->kind),
				       hearth_kind_name(o->pools[i].kind));
		pool_to_front(h, at, i);
	}
	return 0;
}

static int pool_get(struct hearth_pool *pool, struct hearth_ioc_pool_get *get)
{
	memset(get, 0, sizeof(*get));
	get->size = sizeof(*get);
	get->pool = dev_pool_id(pool);
	return dev_call(dev_of(pool->h)->fd, HEARTH_IOC_POOL_GET, get);
}

int dev_pool_info(struct hearth_pool *pool, struct hearth_pool_info *ret_info)
{
	struct hearth_ioc_pool_get get;
	int ret = pool_get(pool, &get);

	if (ret)
		return ret;
	memset(ret_info, 0, sizeof(*ret_info));
	memcpy(ret_info->name, pool->name, sizeof(ret_info->name));
	ret_info->kind = pool->kind;
	ret_info->size = get.out_bytes;
	ret_info->charged = get.out_charged;
	ret_info->peak = get.out_peak;
	ret_info->guaranteed = get.out_min_sum;
	ret_info->claimable = get.out_claimable;
	ret_info->largest_free = get.out_largest;
	ret_info->quarantined = get.out_quarantined;
	ret_info->large = get.out_large;
	ret_info->medium = get.out_medium;
	ret_info->small = get.out_small;
	ret_info->level = (enum hearth_level)get.out_level;
	ret_info->regions = get.out_regions;
	ret_info->tenants = get.out_tenants;
	return 0;
}

/* -- making, resizing, removing ------------------------------------------------------ */

/* Memory comes in blocks; an account's bytes are only a number. */
static uint64_t round_up(const struct dev *d, enum hearth_kind kind, uint64_t size)
{
	uint64_t unit = kind == HEARTH_KIND_ACCOUNT ? d->page : d->block;

	return (size + unit - 1) & ~(unit - 1);
}

/* ", and tenant llm holds most (2.0 MiB)", of what is charged or of the guarantees; or "". */
static const char *whose(const struct hearth_pool *pool, bool guarantees, char *buf, size_t cap)
{
	struct hearth_state_row *rows = NULL;
	uint64_t most = 0, has;
	char a[DEV_BYTES_LEN];
	size_t n = 0;

	buf[0] = '\0';
	if (hearth_state(pool->h, &rows, &n, NULL))
		return buf;
	for (size_t i = 0; i < n; i++) {
		has = guarantees ? rows[i].usage.budget.min : rows[i].usage.current;
		if (strcmp(rows[i].pool, pool->name) || has <= most)
			continue;
		most = has;
		snprintf(buf, cap, ", and tenant %s %s (%s)", rows[i].tenant,
			 guarantees ? "has the largest min" : "holds most", text_bytes(most, a));
	}
	free(rows);
	return buf;
}

/* ": 700.0 MiB are available, 300.0 MiB too few", where the machine tells; or "". */
static const char *short_by(struct hearth *h, uint64_t wanted, char *buf, size_t cap)
{
	char a[DEV_BYTES_LEN], b[DEV_BYTES_LEN];
	struct hearth_system sys;

	buf[0] = '\0';
	if (!hearth_system(h, &sys) && sys.available < wanted)
		snprintf(buf, cap, ": %s are available, %s too few", text_bytes(sys.available, a),
			 text_bytes(wanted - sys.available, b));
	return buf;
}

int dev_pool_create(struct hearth *h, const struct hearth_pool_spec *spec, struct hearth_err *err)
{
	struct hearth_ioc_pool_create c = { .size = sizeof(c) };
	struct dev *d = dev_of(h);
	char what[80], a[DEV_BYTES_LEN], more[120];
	int ret;

	snprintf(c.name, sizeof(c.name), "%s", spec->name);
	c.kind = (uint32_t)spec->kind;
	c.backing = spec->kind == HEARTH_KIND_ACCOUNT ? HEARTH_BACKING_NONE :
		    spec->node ? HEARTH_BACKING_RESERVED : HEARTH_BACKING_BUDDY;
	if (spec->node && strlen(spec->node) >= sizeof(c.node))
		return err_set(err, -EINVAL, "pool %s: the name of its node is longer than %zu bytes",
			       spec->name, sizeof(c.node) - 1);
	if (spec->node)
		snprintf(c.node, sizeof(c.node), "%s", spec->node);
	if (spec->size > INT64_MAX)
		return err_set(err, -EINVAL, "pool %s: no pool can have %llu bytes", spec->name,
			       (unsigned long long)spec->size);
	c.bytes = round_up(d, spec->kind, spec->size);
	ret = dev_call(d->fd, HEARTH_IOC_POOL_CREATE, &c);
	if (ret == -EEXIST)
		return err_set(err, ret, "there is a pool %s already, or its node serves another pool",
			       spec->name);
	if (ret == -ENODEV)
		return err_set(err, ret,
			       "pool %s: the node %s is missing or cannot serve; the kernel log says why",
			       spec->name, spec->node ? spec->node : "");
	if (ret == -ENOMEM)
		return err_set(err, ret, "pool %s: the system cannot give %s%s", spec->name,
			       text_bytes(c.bytes, a), short_by(h, c.bytes, more, sizeof(more)));
	snprintf(what, sizeof(what), "pool %s cannot be made", spec->name);
	if (ret)
		return dev_refuse(err, ret, "", NULL, NULL, what);
	if (!dev_pool_make(h, c.out_pool, c.kind, c.name))
		return err_set(err, -ENOMEM, "pool %s was made, but this process has no memory for it",
			       spec->name);
	return 0;
}

/* What keeps a pool from going, or from becoming as small as @size. */
static int in_use(struct hearth_pool *pool, uint64_t size, const char *what, struct hearth_err *err)
{
	char a[DEV_BYTES_LEN], b[DEV_BYTES_LEN], who[120];
	struct hearth_pool_info info;

	if (hearth_pool_info(pool, &info))
		return err_set(err, -EBUSY, "%s: it is in use", what);
	if (info.charged > size)
		return err_set(err, -EBUSY, "%s: it is in use, %s are charged in it%s%s%s", what,
			       text_bytes(info.charged, a),
			       size ? ", too much by " : "",
			       size ? text_bytes(info.charged - size, b) : "",
			       whose(pool, false, who, sizeof(who)));
	if (info.quarantined)
		return err_set(err, -EBUSY, "%s: it is in use, a driver or I/O still holds %s of it",
			       what, text_bytes(info.quarantined, a));
	return err_set(err, -EBUSY, "%s: it is in use, a region lies there (hearthctl regions %s)",
		       what, pool->name);
}

int dev_pool_remove(struct hearth_pool *pool, struct hearth_err *err)
{
	struct hearth_ioc_pool_remove r = { .size = sizeof(r), .pool = dev_pool_id(pool) };
	struct hearth *h = pool->h;
	char what[80];
	int ret;

	ret = dev_call(dev_of(h)->fd, HEARTH_IOC_POOL_REMOVE, &r);
	snprintf(what, sizeof(what), "pool %s cannot be removed", pool->name);
	if (ret == -EBUSY)
		return in_use(pool, 0, what, err);
	if (ret)
		return dev_refuse(err, ret, "", NULL, NULL, what);
	h->n_pools--;
	for (size_t i = pool->index; i < h->n_pools; i++) {
		h->pools[i] = h->pools[i + 1];
		h->pools[i]->index = i;
	}
	free(pool);
	return 0;
}

int dev_pool_resize(struct hearth_pool *pool, uint64_t size, struct hearth_err *err)
{
	struct hearth_ioc_pool_resize r = { .size = sizeof(r), .pool = dev_pool_id(pool) };
	char what[120], a[DEV_BYTES_LEN], b[DEV_BYTES_LEN], c[DEV_BYTES_LEN], more[120];
	struct dev *d = dev_of(pool->h);
	struct hearth_pool_info info;
	int ret;

	if (size > INT64_MAX)
		return err_set(err, -EINVAL, "pool %s: no pool can have %llu bytes", pool->name,
			       (unsigned long long)size);
	r.bytes = round_up(d, pool->kind, size);
	ret = dev_call(d->fd, HEARTH_IOC_POOL_RESIZE, &r);
	snprintf(what, sizeof(what), "pool %s cannot shrink to %s", pool->name, text_bytes(r.bytes, a));
	if (ret == -ENOSPC)
		return err_set(err, ret, "%s: %s of it are guaranteed, too much by %s%s", what,
			       text_bytes(r.out_refusal.limit_bytes, b),
			       text_bytes(r.out_refusal.limit_bytes - r.bytes, c),
			       whose(pool, true, more, sizeof(more)));
	if (ret == -EBUSY)
		return in_use(pool, r.bytes, what, err);
	if (ret == -ENOMEM)
		return err_set(err, ret, "pool %s cannot grow to %s: the system cannot give that much%s",
			       pool->name, text_bytes(r.bytes, a),
			       hearth_pool_info(pool, &info) ? "" :
			       short_by(pool->h, r.bytes - info.size, more, sizeof(more)));
	snprintf(what, sizeof(what), "pool %s cannot be resized", pool->name);
	return ret ? dev_refuse(err, ret, "", NULL, NULL, what) : 0;
}
