// SPDX-License-Identifier: GPL-2.0-only
/*
 * The physical memory of pools, in blocks of 2 MiB.
 *
 * Only pages that get_user_pages accepts for good: with a struct page, in the
 * kernel's linear map, not CMA, not movable. From the page allocator they come
 * as one order-9 chunk, else as 64 KiB chunks, else one by one; each chunk is
 * split, so that every page has a reference count of its own, which is 1 while
 * nothing but the pool has it. A reserved-memory node has such pages from boot.
 */
#include <linux/gfp.h>
#include <linux/highmem.h>
#include <linux/pfn.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "priv.h"

#define MEDIUM_ORDER (16 - PAGE_SHIFT)
#define LARGE_ORDER (BLOCK_SHIFT - PAGE_SHIFT)
#define GFP_POOL GFP_USER	/* unmovable, in the linear map */

static struct page *chunk_alloc(unsigned int order)
{
	struct page *page;

	/*
	 * Large chunks are worth a try, not the OOM killer. Single pages are
	 * the last resort, and fail rather than kill somebody.
	 */
	page = alloc_pages(GFP_POOL | __GFP_NOWARN |
			   (order ? __GFP_NORETRY : __GFP_RETRY_MAYFAIL), order);
	if (page && order)
		split_page(page, order);
	return page;
}

/* Gives every page of a block back to the page allocator. */
void hearth_block_free(u32 backing, struct hearth_block *blk)
{
	u32 i;

	if (!blk)
		return;
	if (backing == HEARTH_BACKING_BUDDY) {
		for (i = 0; i < BLOCK_PAGES; i++) {
			struct page *page = blk->large ? blk->large + i :
					    blk->parts ? blk->parts[i] : NULL;

			if (page)
				__free_page(page);
		}
	}
	free_page((unsigned long)blk->parts);
	kfree(blk);
}

/* Those that hang together; not under hearth.lock, for a gigabyte has many pages. */
void hearth_blocks_free(u32 backing, struct hearth_block *list)
{
	struct hearth_block *next;

	for (; list; list = next) {
		next = list->next;
		hearth_block_free(backing, list);
		cond_resched();
	}
}

/* Fills @blk with chunks of 64 KiB, and from the first that fails with pages. */
static int block_fill_parts(struct hearth_block *blk)
{
	unsigned int order = MEDIUM_ORDER, k;
	struct page *page;
	u32 i = 0;

	/* A page, which is to be had where memory is in pieces. */
	BUILD_BUG_ON(BLOCK_PAGES * sizeof(*blk->parts) > PAGE_SIZE);
	blk->parts = (struct page **)get_zeroed_page(GFP_KERNEL);
	if (!blk->parts)
		return -ENOMEM;
	blk->kind = BLOCK_MEDIUM;
	while (i < BLOCK_PAGES) {
		page = chunk_alloc(order);
		if (!page) {
			if (!order)
				return -ENOMEM;
			order = 0;
			blk->kind = BLOCK_SMALL;
			continue;
		}
		for (k = 0; k < 1U << order; k++)
			blk->parts[i++] = page + k;
	}
	return 0;
}

static struct hearth_block *block_alloc(bool *large)
{
	struct hearth_block *blk;

	blk = kzalloc(sizeof(*blk), GFP_KERNEL);
	if (!blk)
		return NULL;
	blk->owner = OWNER_MANY;
	/* Once large chunks have run out, do not compact again for each. */
	if (*large) {
		blk->large = chunk_alloc(LARGE_ORDER);
		blk->kind = BLOCK_LARGE;
		if (blk->large)
			return blk;
		*large = false;
	}
	if (block_fill_parts(blk)) {
		hearth_block_free(HEARTH_BACKING_BUDDY, blk);
		return NULL;
	}
	return blk;
}

/* Large blocks in the order of their addresses, then the rest. */
static int block_cmp(const void *a, const void *b)
{
	const struct hearth_block *x = *(const struct hearth_block **)a;
	const struct hearth_block *y = *(const struct hearth_block **)b;
	unsigned long px = x->large ? page_to_pfn(x->large) : ULONG_MAX;
	unsigned long py = y->large ? page_to_pfn(y->large) : ULONG_MAX;

	return px < py ? -1 : px > py;
}

/*
 * @n blocks of the page allocator, those that lie side by side in memory side
 * by side in the array. May sleep long; a fatal signal ends it.
 */
int hearth_blocks_alloc(u64 n, struct hearth_block **list)
{
	bool large = true;
	u64 i;

	for (i = 0; i < n; i++) {
		list[i] = fatal_signal_pending(current) ? NULL : block_alloc(&large);
		if (!list[i]) {
			while (i--) {
				hearth_block_free(HEARTH_BACKING_BUDDY, list[i]);
				list[i] = NULL;
			}
			return fatal_signal_pending(current) ? -EINTR : -ENOMEM;
		}
		cond_resched();
	}
	sort(list, n, sizeof(*list), block_cmp, NULL);
	return 0;
}

/* The blocks of a reserved range, which is known to be good. */
int hearth_blocks_reserved(phys_addr_t base, u64 n, struct hearth_block **list)
{
	u64 i;

	for (i = 0; i < n; i++) {
		list[i] = kzalloc(sizeof(**list), GFP_KERNEL);
		if (!list[i]) {
			while (i--) {
				kfree(list[i]);
				list[i] = NULL;
			}
			return -ENOMEM;
		}
		list[i]->large = pfn_to_page(PHYS_PFN(base) + i * BLOCK_PAGES);
		list[i]->kind = BLOCK_LARGE;
		list[i]->owner = OWNER_MANY;
	}
	return 0;
}

/* -- by offset in the pool --------------------------------------------------- */

/*
 * The page at an offset that belongs to a region (or is the pool's under
 * hearth.lock), so that its block stays.
 */
struct page *hearth_pool_page(struct hearth_pool *pool, u64 offset)
{
	struct hearth_block *blk = xa_load(&pool->blocks, offset >> BLOCK_SHIFT);
	u32 i = (offset & (BLOCK_SIZE_ - 1)) >> PAGE_SHIFT;

	return blk->large ? blk->large + i : blk->parts[i];
}

/* Up to @n pages from an offset on, as many as its block has; how many. */
u32 hearth_pool_pages(struct hearth_pool *pool, u64 offset, u32 n, struct page **ret_pages)
{
	struct hearth_block *blk = xa_load(&pool->blocks, offset >> BLOCK_SHIFT);
	u32 i = (offset & (BLOCK_SIZE_ - 1)) >> PAGE_SHIFT, k;

	n = min_t(u32, n, BLOCK_PAGES - i);
	for (k = 0; k < n; k++, i++)
		ret_pages[k] = blk->large ? blk->large + i : blk->parts[i];
	return n;
}

/* Nothing but the pool has any of these pages. */
bool hearth_pool_idle(struct hearth_pool *pool, u64 offset, u64 bytes)
{
	u64 end = offset + bytes, stop;

	while (offset < end) {
		struct hearth_block *blk = xa_load(&pool->blocks, offset >> BLOCK_SHIFT);
		u32 i = (offset & (BLOCK_SIZE_ - 1)) >> PAGE_SHIFT;

		stop = min_t(u64, end, ALIGN(offset + 1, BLOCK_SIZE_));
		for (; offset < stop; offset += PAGE_SIZE, i++) {
			if (page_count(blk->large ? blk->large + i : blk->parts[i]) != 1)
				return false;
		}
	}
	return true;
}

/* Zeroes; a fatal signal ends it with EINTR. */
int hearth_pool_zero(struct hearth_pool *pool, u64 offset, u64 bytes)
{
	u64 end = offset + bytes, stop;

	while (offset < end) {
		struct hearth_block *blk = xa_load(&pool->blocks, offset >> BLOCK_SHIFT);
		u32 i = (offset & (BLOCK_SIZE_ - 1)) >> PAGE_SHIFT;

		stop = min_t(u64, end, ALIGN(offset + 1, BLOCK_SIZE_));
		for (; offset < stop; offset += PAGE_SIZE, i++)
			clear_highpage(blk->large ? blk->large + i : blk->parts[i]);
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/* Whether all of it last belonged to @owner alone. */
bool hearth_pool_stale_ok(struct hearth_pool *pool, u64 offset, u64 bytes, u32 owner)
{
	XA_STATE(xas, &pool->blocks, offset >> BLOCK_SHIFT);
	struct hearth_block *blk;
	bool ok = true;

	lockdep_assert_held(&hearth.lock);
	rcu_read_lock();
	xas_for_each(&xas, blk, (offset + bytes - 1) >> BLOCK_SHIFT) {
		ok = blk->owner == owner;
		if (!ok)
			break;
	}
	rcu_read_unlock();
	return ok;
}

/*
 * @owner gets these bytes. A block that it gets all of is its own from now on;
 * of a block that was another's it may have a part, and then the block is of
 * many until somebody gets all of it.
 */
void hearth_pool_owner(struct hearth_pool *pool, u64 offset, u64 bytes, u32 owner)
{
	XA_STATE(xas, &pool->blocks, offset >> BLOCK_SHIFT);
	u64 end = offset + bytes, start;
	struct hearth_block *blk;

	lockdep_assert_held(&hearth.lock);
	rcu_read_lock();
	xas_for_each(&xas, blk, (end - 1) >> BLOCK_SHIFT) {
		start = (u64)xas.xa_index << BLOCK_SHIFT;
		if (offset <= start && end >= start + BLOCK_SIZE_)
			blk->owner = owner;
		else if (blk->owner != owner)
			blk->owner = OWNER_MANY;
	}
	rcu_read_unlock();
}

/* -- physical order ----------------------------------------------------------- */

/* Every block is one chunk: then offsets have the alignment of addresses. */
bool hearth_pool_uniform(struct hearth_pool *pool)
{
	return !pool->by_kind[BLOCK_MEDIUM] && !pool->by_kind[BLOCK_SMALL];
}

/* The bytes from @offset on, up to @end, that are physically in a row. */
static u64 run_at(struct hearth_pool *pool, u64 offset, u64 end)
{
	unsigned long pfn = page_to_pfn(hearth_pool_page(pool, offset));
	u64 at = offset;

	while (at < end && page_to_pfn(hearth_pool_page(pool, at)) == pfn) {
		struct hearth_block *blk = xa_load(&pool->blocks, at >> BLOCK_SHIFT);
		u64 step = PAGE_SIZE;

		if (blk->large)
			step = BLOCK_SIZE_ - (at & (BLOCK_SIZE_ - 1));
		pfn += step >> PAGE_SHIFT;
		at += step;
	}
	return min(at, end) - offset;
}

/* In how many physical pieces a range is, all of whose blocks are there. */
u32 hearth_pool_runs(struct hearth_pool *pool, u64 offset, u64 bytes)
{
	XA_STATE(xas, &pool->blocks, offset >> BLOCK_SHIFT);
	unsigned long pfn, next = ULONG_MAX;
	u64 end = offset + bytes, stop;
	struct hearth_block *blk;
	u32 i, n = 0;

	rcu_read_lock();
	xas_for_each(&xas, blk, (end - 1) >> BLOCK_SHIFT) {
		i = (offset & (BLOCK_SIZE_ - 1)) >> PAGE_SHIFT;
		stop = min_t(u64, end, ALIGN(offset + 1, BLOCK_SIZE_));
		if (blk->large) {
			pfn = page_to_pfn(blk->large) + i;
			n += pfn != next;
			next = pfn + ((stop - offset) >> PAGE_SHIFT);
			offset = stop;
		}
		for (; offset < stop; offset += PAGE_SIZE, i++) {
			pfn = page_to_pfn(blk->parts[i]);
			n += pfn != next;
			next = pfn + 1;
		}
	}
	rcu_read_unlock();
	return n;
}

/*
 * The first free range of @bytes in a row whose address is a multiple of
 * @align. Looks at every free extent: only for what asks for physical order
 * in a pool or of a size where it does not come by itself.
 */
int hearth_pool_find_run(struct hearth_pool *pool, u64 bytes, u64 align, u64 *ret_start)
{
	struct extent *e;
	u64 at, end, run, pa, skip;

	lockdep_assert_held(&hearth.lock);
	for (e = pool->map.first; e; e = e->next) {
		if (e->state != EXTENT_FREE || e->size < bytes)
			continue;
		at = e->start;
		end = e->start + e->size;
		while (end - at >= bytes) {
			run = run_at(pool, at, end);
			pa = PFN_PHYS(page_to_pfn(hearth_pool_page(pool, at)));
			skip = ALIGN(pa, align) - pa;
			if (skip + bytes <= run) {
				*ret_start = at + skip;
				return 0;
			}
			at += run;
		}
	}
	return -ENOSPC;
}
