// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pools: found, made, removed, looked at. One is made without hearth.lock, which
 * may take long, and is its maker's alone until it is published; it is removed
 * under the lock, when nothing is charged in it and nobody waits, and freed
 * after. What it is made of is in pool_map.c and memory.c, its size in
 * pool_size.c.
 */
#include <linux/mm.h>
#include <linux/of.h>
#include <linux/of_reserved_mem.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "priv.h"

struct hearth_pool *hearth_pool_get(u32 id)
{
	u32 i;

	lockdep_assert_held(&hearth.lock);
	for (i = 0; i < HEARTH_POOLS; i++) {
		if (hearth.pools[i] && hearth.pools[i]->id == id)
			return hearth.pools[i];
	}
	return NULL;
}

/* By id, by name, or the next after an id; NULL when there is none. */
struct hearth_pool *hearth_pool_pick(u32 id, u32 flags, const char *name)
{
	struct hearth_pool *best = NULL, *p;
	u32 i;

	lockdep_assert_held(&hearth.lock);
	for (i = 0; i < HEARTH_POOLS; i++) {
		p = hearth.pools[i];
		if (!p)
			continue;
		if (flags & HEARTH_GET_BY_NAME) {
			if (!strncmp(p->name, name, HEARTH_NAME_MAX))
				return p;
		} else if (flags & HEARTH_GET_NEXT) {
			if (p->id > id && (!best || p->id < best->id))
				best = p;
		} else if (p->id == id) {
			return p;
		}
	}
	return best;
}

/* Frees a pool that nobody can see any more, also one half made. */
static void pool_free(struct hearth_pool *pool)
{
	struct hearth_block *blk;
	struct extent *e, *next;
	unsigned long i;

	if (!pool)
		return;
	xa_for_each(&pool->blocks, i, blk)
		hearth_block_free(pool->backing, blk);
	xa_destroy(&pool->blocks);
	for (e = pool->map.first; e; e = next) {
		next = e->next;
		kfree(e);
	}
	hearth_spares_trim(pool, 0);
	kfree(pool);
}

/* -- the reserved-memory node -------------------------------------------------- */

#if IS_ENABLED(CONFIG_OF_RESERVED_MEM)
/*
 * The node's range, cut to whole blocks. A node with no-map has no linear map,
 * one with reusable is CMA: neither can serve, and it is said why.
 */
static int node_range(const char *name, phys_addr_t *ret_base, u64 *ret_bytes)
{
	struct device_node *parent, *np;
	struct reserved_mem *rmem;
	phys_addr_t base, end;
	const char *why = NULL;

	parent = of_find_node_by_path("/reserved-memory");
	np = of_get_child_by_name(parent, name);
	of_node_put(parent);
	if (!np) {
		pr_err("hearth: no node %s under /reserved-memory\n", name);
		return -ENODEV;
	}
	rmem = of_reserved_mem_lookup(np);
	if (of_property_read_bool(np, "no-map"))
		why = "it is no-map, and the kernel cannot reach it";
	else if (of_property_read_bool(np, "reusable"))
		why = "it is reusable (CMA), and its pages may be moved";
	else if (!rmem)
		why = "the kernel did not reserve it";
	of_node_put(np);
	if (why) {
		pr_err("hearth: node %s cannot be a pool: %s\n", name, why);
		return -ENODEV;
	}
	base = ALIGN(rmem->base, BLOCK_SIZE_);
	end = ALIGN_DOWN(rmem->base + rmem->size, BLOCK_SIZE_);
	if (base >= end) {
		pr_err("hearth: node %s has no whole block of 2 MiB\n", name);
		return -ENODEV;
	}
	if (end - base != rmem->size)
		pr_info("hearth: node %s: %llu of %llu KiB used, whole blocks of 2 MiB\n", name,
			(u64)(end - base) >> 10, (u64)rmem->size >> 10);
	*ret_base = base;
	*ret_bytes = end - base;
	return 0;
}
#else
static int node_range(const char *name, phys_addr_t *ret_base, u64 *ret_bytes)
{
	pr_err("hearth: this kernel has no device tree: no node %s\n", name);
	return -ENODEV;
}
#endif

/* Its pages serve, and nobody has one; not for a node that is in a pool. */
static int node_check(const struct hearth_pool *pool)
{
	unsigned long pfn = PHYS_PFN(pool->base), end = pfn + PHYS_PFN(pool->node_bytes);

	for (; pfn < end; pfn++) {
		if (!pfn_valid(pfn) || !PageReserved(pfn_to_page(pfn)) ||
		    page_count(pfn_to_page(pfn)) != 1) {
			pr_err("hearth: node %s cannot be a pool: page %#lx is not reserved memory in the linear map\n",
			       pool->node, pfn - PHYS_PFN(pool->base));
			return -ENODEV;
		}
	}
	return 0;
}

/* -- making and removing -------------------------------------------------------- */

static int blocks_get(struct hearth_pool *pool, u64 first, u64 n, struct hearth_block **list)
{
	if (pool->backing == HEARTH_BACKING_RESERVED)
		return hearth_blocks_reserved(pool->base + (first << BLOCK_SHIFT), n, list);
	return hearth_blocks_alloc(n, list);
}

/* Memory and map of a new pool of @bytes. */
static int pool_fill(struct hearth_pool *pool, u64 bytes)
{
	u64 n = bytes >> BLOCK_SHIFT, i, put = 0;
	struct hearth_block **list;
	struct extent *e;
	int ret;

	e = kzalloc(sizeof(*e), GFP_KERNEL);
	if (!e)
		return -ENOMEM;
	ret = extent_map_init(&pool->map, bytes, PAGE_SIZE, e);
	if (WARN_ON(ret)) {
		kfree(e);
		return ret;
	}
	pool->overhead += sizeof(*pool) + sizeof(*e);
	list = kvcalloc(n, sizeof(*list), GFP_KERNEL);
	if (!list)
		return -ENOMEM;
	ret = blocks_get(pool, 0, n, list);
	for (i = 0; !ret && i < n; i++) {
		ret = hearth_pool_block_put(pool, i, list[i]);
		put = i + !ret;
	}
	for (i = put; i < n; i++)
		hearth_block_free(pool->backing, list[i]);
	kvfree(list);
	return ret;
}

/* What may be made at all, and how large. */
static int pool_check(struct hearth_pool *pool, u64 *bytes)
{
	int ret;

	ret = args_name(pool->name, HEARTH_NAME_MAX);
	if (ret)
		return ret;
	if (pool->kind > HEARTH_POOL_ACCOUNT || pool->backing > HEARTH_BACKING_RESERVED)
		return -EOPNOTSUPP;
	if ((pool->kind == HEARTH_POOL_ACCOUNT) != (pool->backing == HEARTH_BACKING_NONE))
		return -EINVAL;
	if (pool->backing == HEARTH_BACKING_RESERVED) {
		ret = args_name(pool->node, HEARTH_REGION_NAME_MAX);
		if (ret)
			return ret;
		ret = node_range(pool->node, &pool->base, &pool->node_bytes);
		if (ret)
			return ret;
		*bytes = *bytes ?: pool->node_bytes;
		if (*bytes > pool->node_bytes)
			return -EINVAL;
	} else {
		ret = args_zero(pool->node, HEARTH_REGION_NAME_MAX);
		if (ret)
			return ret;
	}
	if (!*bytes || *bytes > S64_MAX)
		return -EINVAL;
	if (pool->kind != HEARTH_POOL_ACCOUNT) {
		if (*bytes & (BLOCK_SIZE_ - 1))
			return -EINVAL;
		if (*bytes >> PAGE_SHIFT > ULONG_MAX >> 1)
			return -ENOMEM;
	}
	/* Not even worth trying, and it would drive everybody else out first. */
	if (pool->backing == HEARTH_BACKING_BUDDY &&
	    *bytes >> PAGE_SHIFT > max_t(long, si_mem_available(), 0))
		return -ENOMEM;
	return 0;
}

static bool node_taken(const struct hearth_pool *pool)
{
	u32 i;

	for (i = 0; i < HEARTH_POOLS; i++) {
		const struct hearth_pool *p = hearth.pools[i];

		if (p && pool->backing == HEARTH_BACKING_RESERVED &&
		    p->backing == HEARTH_BACKING_RESERVED && p->base == pool->base)
			return true;
	}
	return false;
}

static int pool_publish(struct hearth_pool *pool, u64 bytes)
{
	u32 i;
	int ret;

	lockdep_assert_held(&hearth.lock);
	if (hearth_pool_pick(0, HEARTH_GET_BY_NAME, pool->name) || node_taken(pool))
		return -EEXIST;
	for (i = 0; i < HEARTH_POOLS && hearth.pools[i]; i++)
		;
	if (i == HEARTH_POOLS || hearth.next_pool == U32_MAX)
		return -EOVERFLOW;
	pool->index = i;
	budget_pool_init(&pool->bp, bytes);
	pressure_init(&pool->pressure, ktime_get_ns());
	pressure_rules_default(&pool->rules, bytes);
	if (pool->kind != HEARTH_POOL_ACCOUNT) {
		ret = hearth_spares(pool, EXTENT_SPARE_ALLOC);
		if (ret)
			return ret;
	}
	ret = hearth_budgets_for_pool(pool);
	if (ret)
		return ret;
	pool->id = ++hearth.next_pool;
	hearth.pools[i] = pool;
	hearth.n_pools++;
	hearth_event_pool(HEARTH_EV_POOL_NEW, pool);
	return 0;
}

/* Not under hearth.lock: memory is got, and looked at, for long. */
int hearth_pool_create(const char *name, u32 kind, u32 backing, u64 bytes, const char *node,
		       u32 *ret_id)
{
	struct hearth_pool *pool;
	bool taken;
	int ret;

	BUILD_BUG_ON(sizeof(*pool) > SZ_2K);
	pool = kzalloc(sizeof(*pool), GFP_KERNEL);
	if (!pool)
		return -ENOMEM;
	memcpy(pool->name, name, HEARTH_NAME_MAX);
	memcpy(pool->node, node, HEARTH_REGION_NAME_MAX);
	pool->kind = kind;
	pool->backing = backing;
	pool->default_max = HEARTH_NOLIMIT;
	init_waitqueue_head(&pool->wait);
	hash_init(pool->names);
	xa_init(&pool->blocks);

	mutex_lock(&hearth.lock);
	taken = !args_name(name, HEARTH_NAME_MAX) &&
		hearth_pool_pick(0, HEARTH_GET_BY_NAME, name);
	mutex_unlock(&hearth.lock);
	ret = taken ? -EEXIST : pool_check(pool, &bytes);
	if (!ret && backing == HEARTH_BACKING_RESERVED) {
		/* Before its pages are looked at: those of a pool may be in use. */
		mutex_lock(&hearth.lock);
		ret = node_taken(pool) ? -EEXIST : 0;
		mutex_unlock(&hearth.lock);
		ret = ret ?: node_check(pool);
	}
	pool->target = bytes;
	if (!ret && kind != HEARTH_POOL_ACCOUNT)
		ret = pool_fill(pool, bytes);
	if (!ret) {
		mutex_lock(&hearth.lock);
		ret = pool_publish(pool, bytes);
		mutex_unlock(&hearth.lock);
	}
	if (ret) {
		pool_free(pool);
		return ret;
	}
	if (kind == HEARTH_POOL_ACCOUNT)
		pr_info("hearth: pool %s: charges up to %llu KiB\n", pool->name, bytes >> 10);
	else
		pr_info("hearth: pool %s: %llu KiB, of it in 2 MiB blocks %llu, in 64 KiB %llu, in pages %llu\n",
			pool->name, bytes >> 10, pool->by_kind[BLOCK_LARGE] >> 10,
			pool->by_kind[BLOCK_MEDIUM] >> 10, pool->by_kind[BLOCK_SMALL] >> 10);
	*ret_id = pool->id;
	return 0;
}

/* Out of sight of everybody; only budgets without charges are left of it. */
static void pool_unpublish(struct hearth_pool *pool)
{
	hearth_event_pool(HEARTH_EV_POOL_GONE, pool);
	hearth_budgets_drop_pool(pool);
	hearth.pools[pool->index] = NULL;
	hearth.n_pools--;
}

void hearth_pools_exit(void)
{
	u32 i;

	mutex_lock(&hearth.lock);
	for (i = 0; i < HEARTH_POOLS; i++) {
		struct hearth_pool *pool = hearth.pools[i];

		if (!pool)
			continue;
		WARN_ON(pool->bp.charged || pool->regions || pool->waiters);
		pool_unpublish(pool);
		pool_free(pool);
	}
	mutex_unlock(&hearth.lock);
}

/* -- ioctls -------------------------------------------------------------------- */

int hearth_ioctl_pool_create(void *who, void *arg)
{
	struct hearth_ioc_pool_create *a = arg;
	struct hearth_conn *conn = who;
	int ret;

	if (!conn->admin)
		return -EPERM;
	ret = args_flags(a->flags, 0);
	if (ret)
		return ret;
	if (a->reserved)
		return -EINVAL;
	return hearth_pool_create(a->name, a->kind, a->backing, a->bytes, a->node, &a->out_pool);
}

int hearth_ioctl_pool_remove(void *who, void *arg)
{
	struct hearth_ioc_pool_remove *a = arg;
	struct hearth_conn *conn = who;
	struct hearth_pool *pool;
	int ret = 0;

	if (!conn->admin)
		return -EPERM;
	mutex_lock(&hearth.lock);
	pool = hearth_pool_get(a->pool);
	if (!pool)
		ret = -ENOENT;
	else if (pool->bp.charged || pool->regions || pool->waiters)
		ret = -EBUSY;
	else
		pool_unpublish(pool);
	mutex_unlock(&hearth.lock);
	if (!ret)
		pool_free(pool);
	return ret;
}

void hearth_pool_figures(struct hearth_pool *pool, struct hearth_ioc_pool_get *a)
{
	lockdep_assert_held(&hearth.lock);
	a->pool = pool->id;
	a->out_kind = pool->kind;
	memcpy(a->name, pool->name, HEARTH_NAME_MAX);
	a->out_backing = pool->backing;
	a->out_level = pool->pressure.level;
	a->out_bytes = pool->bp.size;
	a->out_charged = pool->bp.charged;
	a->out_peak = pool->bp.peak;
	a->out_min_sum = pool->bp.min_sum;
	a->out_claimable = pool->bp.claimable;
	a->out_largest = pool->kind == HEARTH_POOL_ACCOUNT ? 0 : extent_largest(&pool->map);
	a->out_quarantined = pool->quarantined;
	a->out_large = pool->by_kind[BLOCK_LARGE];
	a->out_medium = pool->by_kind[BLOCK_MEDIUM];
	a->out_small = pool->by_kind[BLOCK_SMALL];
	a->out_overhead = pool->overhead;
	a->out_regions = pool->regions;
	a->out_tenants = pool->bp.count;
	a->out_default_max = pool->default_max;
}

int hearth_ioctl_pool_get(void *who, void *arg)
{
	struct hearth_ioc_pool_get *a = arg;
	struct hearth_pool *pool;
	int ret;

	ret = hearth_pick_args(a->flags, a->name);
	if (ret)
		return ret;
	mutex_lock(&hearth.lock);
	pool = hearth_pool_pick(a->pool, a->flags, a->name);
	if (pool)
		hearth_pool_figures(pool, a);
	mutex_unlock(&hearth.lock);
	return pool ? 0 : -ENOENT;
}
