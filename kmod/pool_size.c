// SPDX-License-Identifier: GPL-2.0-only
/*
 * The size of a pool: the administrator's resize, and what is handed back when
 * the system runs out of memory, and taken again when it has some. Blocks are
 * got from the page allocator, and given to it, without hearth.lock; a size is
 * decided and carried out with it, in one go, after everything has been looked
 * at anew. Handing back runs deep inside the page allocator, and so allocates
 * nothing and tells nobody until later.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "priv.h"

static void pool_resized(struct hearth_pool *pool)
{
	struct hearth_tenant *t;
	unsigned long id;

	pressure_rules_default(&pool->rules, pool->bp.size);
	xa_for_each(&hearth.tenants, id, t)
		hearth_pressure_rules(t->budgets[pool->index]);
	hearth_pressure_pool(pool);
	hearth_event_pool(HEARTH_EV_POOL_SIZE, pool);
	hearth_wake(pool);
}

static int pool_shrink(struct hearth_pool *pool, u64 bytes, struct hearth_block **dropped,
		       struct hearth_refusal *out)
{
	struct budget_refusal ref = {};
	u64 n = (pool->bp.size - bytes) >> BLOCK_SHIFT;
	int ret;

	lockdep_assert_held(&hearth.lock);
	if (pool->kind != HEARTH_POOL_ACCOUNT) {
		if (bytes >= pool->bp.charged && bytes >= pool->bp.min_sum &&
		    hearth_pool_free_blocks(pool) < n)
			return -EBUSY;
		ret = hearth_spares(pool, 2 * n + EXTENT_SPARE_ALLOC);
		if (ret)
			return ret;
	}
	ret = budget_pool_resize(&pool->bp, bytes, &ref);
	if (ret == -ENOSPC)
		hearth_refusal_fill(out, &ref);
	if (ret)
		return ret;
	if (pool->kind != HEARTH_POOL_ACCOUNT) {
		WARN_ON(hearth_pool_blocks_drop(pool, n, dropped) != n);
		hearth_spares_trim(pool, 2 * HEARTH_SPARES_KEPT);
	}
	return 0;
}

/*
 * Grows by @n blocks that the caller got. All or nothing: what could not be
 * placed is dropped again.
 */
static int pool_grow(struct hearth_pool *pool, struct hearth_block **list, u64 n,
		     struct hearth_block **dropped)
{
	u64 i;
	int ret = 0;

	lockdep_assert_held(&hearth.lock);
	for (i = 0; !ret && i < n; i++) {
		if (pool->backing == HEARTH_BACKING_RESERVED)
			hearth_pool_block_place(pool, list[i]);
		ret = hearth_pool_block_add(pool, list[i]);
		if (!ret)
			list[i] = NULL;
		else
			hearth_pool_blocks_drop(pool, i, dropped);
	}
	if (!ret)
		WARN_ON(budget_pool_resize(&pool->bp, pool->bp.size + (n << BLOCK_SHIFT), NULL));
	return ret;
}

static void list_free(u32 backing, struct hearth_block **list, u64 n)
{
	u64 i;

	for (i = 0; list && i < n; i++)
		hearth_block_free(backing, list[i]);
	kvfree(list);
}

/* What a resize has wrong whatever the state. */
static int resize_check(const struct hearth_pool *pool, u64 bytes)
{
	if (!bytes || bytes > S64_MAX)
		return -EINVAL;
	if (pool->kind == HEARTH_POOL_ACCOUNT)
		return 0;
	if (bytes & (BLOCK_SIZE_ - 1))
		return -EINVAL;
	if (pool->backing == HEARTH_BACKING_RESERVED && bytes > pool->node_bytes)
		return -EINVAL;
	return 0;
}

int hearth_ioctl_pool_resize(void *who, void *arg)
{
	struct hearth_ioc_pool_resize *a = arg;
	struct hearth_block **list = NULL, *dropped = NULL;
	struct hearth_conn *conn = who;
	struct hearth_pool *pool;
	u64 n = 0, was;
	u32 backing = HEARTH_BACKING_NONE;
	int ret;

	if (!conn->admin)
		return -EPERM;
	mutex_lock(&hearth.lock);
again:
	pool = hearth_pool_get(a->pool);
	ret = pool ? resize_check(pool, a->bytes) : -ENOENT;
	if (ret)
		goto out;
	was = pool->bp.size;
	backing = pool->backing;
	if (a->bytes <= was) {
		ret = pool_shrink(pool, a->bytes, &dropped, &a->out_refusal);
	} else if (pool->kind == HEARTH_POOL_ACCOUNT) {
		ret = budget_pool_resize(&pool->bp, a->bytes, NULL);
	} else if (list && n == (a->bytes - was) >> BLOCK_SHIFT) {
		ret = pool_grow(pool, list, n, &dropped);
	} else {
		/* The blocks are got without the lock; then all is looked at anew. */
		phys_addr_t base = pool->base;

		mutex_unlock(&hearth.lock);
		list_free(backing, list, n);
		n = (a->bytes - was) >> BLOCK_SHIFT;
		ret = -ENOMEM;
		list = NULL;
		if (backing == HEARTH_BACKING_RESERVED ||
		    n << (BLOCK_SHIFT - PAGE_SHIFT) <= max_t(long, si_mem_available(), 0))
			list = kvcalloc(n, sizeof(*list), GFP_KERNEL);
		if (list)
			ret = backing == HEARTH_BACKING_RESERVED ?
			      hearth_blocks_reserved(base, n, list) : hearth_blocks_alloc(n, list);
		mutex_lock(&hearth.lock);
		if (!ret)
			goto again;
	}
	if (!ret) {
		pool->target = a->bytes;
		pool_resized(pool);
	}
out:
	mutex_unlock(&hearth.lock);
	list_free(backing, list, n);
	hearth_blocks_free(backing, dropped);
	return ret;
}

/*
 * The system is out of memory: gives back free blocks of the page allocator's
 * that no guarantee needs, which the caller frees. Pages given back. Called from
 * deep inside the page allocator: takes no lock by force and allocates nothing.
 */
u64 hearth_pool_hand_back(struct hearth_pool *pool, struct hearth_block **dropped)
{
	u64 spare, n, done;

	lockdep_assert_held(&hearth.lock);
	if (pool->backing != HEARTH_BACKING_BUDDY)
		return 0;
	spare = pool->bp.size - pool->bp.charged;
	spare -= min(spare, pool->bp.claimable);
	/* Never below what somebody may have been promised in sum. */
	spare = min(spare, pool->bp.size - pool->bp.min_sum);
	n = min_t(u64, spare >> BLOCK_SHIFT, pool->map.n_spare / 2);
	if (n && pool->bp.size == n << BLOCK_SHIFT)
		n--;
	if (!n)
		return 0;
	done = hearth_pool_blocks_drop(pool, min(n, hearth_pool_free_blocks(pool)), dropped);
	if (done) {
		WARN_ON(budget_pool_resize(&pool->bp, pool->bp.size - (done << BLOCK_SHIFT), NULL));
		pool->unannounced = true;
		pr_warn("hearth: pool %s gave %llu KiB back, the system is out of memory\n",
			pool->name, done << (BLOCK_SHIFT - 10));
	}
	return done << (BLOCK_SHIFT - PAGE_SHIFT);
}

/* Tells what had to be done in silence when there was no memory for telling. */
void hearth_pools_announce(void)
{
	u32 i;

	lockdep_assert_held(&hearth.lock);
	for (i = 0; i < HEARTH_POOLS; i++) {
		struct hearth_pool *pool = hearth.pools[i];

		if (pool && pool->unannounced) {
			pool->unannounced = false;
			pool_resized(pool);
		}
	}
}

static bool wants_memory(const struct hearth_pool *pool)
{
	return pool && pool->backing == HEARTH_BACKING_BUDDY && pool->bp.size < pool->target;
}

/*
 * The system has memory again: what was handed back is taken again, @bytes of
 * it. False when the page allocator gives none.
 */
bool hearth_pool_regrow(u64 bytes)
{
	struct hearth_block *blk[1], *dropped = NULL;
	struct hearth_pool *pool;
	u64 left = bytes >> BLOCK_SHIFT;
	bool wants, grew, ok = true;
	u32 i;

	for (i = 0; i < HEARTH_POOLS; i++) {
		for (grew = false; left; left--) {
			mutex_lock(&hearth.lock);
			wants = wants_memory(hearth.pools[i]);
			mutex_unlock(&hearth.lock);
			if (!wants)
				break;
			/* Without the lock: then all is looked at anew. */
			ok = !hearth_blocks_alloc(1, blk);
			if (!ok)
				break;
			mutex_lock(&hearth.lock);
			pool = hearth.pools[i];
			if (wants_memory(pool) && !pool_grow(pool, blk, 1, &dropped)) {
				hearth.system.taken_again += BLOCK_SIZE_;
				grew = true;
			}
			mutex_unlock(&hearth.lock);
			hearth_block_free(HEARTH_BACKING_BUDDY, blk[0]);
		}
		mutex_lock(&hearth.lock);
		if (grew && hearth.pools[i])
			pool_resized(hearth.pools[i]);
		mutex_unlock(&hearth.lock);
	}
	return ok;
}
