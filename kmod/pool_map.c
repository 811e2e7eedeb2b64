// SPDX-License-Identifier: GPL-2.0-only
/*
 * A pool's map: its blocks, the holes between them, and spare nodes.
 *
 * A pool's address space is cut into blocks. A block that the pool gave back
 * (it was shrunk, or the system ran out of memory) leaves a hole: its range is
 * taken in the extent map by ABSENT, and growing fills holes first. So memory
 * can be given back wherever a whole block is free.
 *
 * All of it is under hearth.lock once the pool can be seen; before that, and
 * after, it is its maker's alone.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "priv.h"

static char absent_mark;
#define ABSENT ((void *)&absent_mark)

/* @n nodes for a map, hung together; not under hearth.lock. All or nothing. */
int hearth_nodes_get(u32 n, struct extent **ret_list)
{
	struct extent *e, *list = NULL;

	while (n--) {
		e = kzalloc(sizeof(*e), GFP_KERNEL);
		if (!e) {
			hearth_nodes_free(list);
			return -ENOMEM;
		}
		e->next = list;
		list = e;
	}
	*ret_list = list;
	return 0;
}

void hearth_nodes_free(struct extent *list)
{
	struct extent *next;

	for (; list; list = next) {
		next = list->next;
		kfree(list);
	}
}

void hearth_nodes_put(struct hearth_pool *pool, struct extent **list)
{
	struct extent *e;

	lockdep_assert_held(&hearth.lock);
	while ((e = *list)) {
		*list = e->next;
		pool->overhead += sizeof(*e);
		extent_spare_put(&pool->map, e);
	}
}

/* How many nodes should be got: none while half of those to be kept are there. */
u32 hearth_nodes_short(const struct hearth_pool *pool)
{
	const u32 want = HEARTH_SPARES_KEPT + EXTENT_SPARE_ALLOC;

	lockdep_assert_held(&hearth.lock);
	return pool->map.n_spare < want - HEARTH_SPARES_KEPT / 2 ? want - pool->map.n_spare : 0;
}

/* At least @n spare nodes in the map; for the administrator, who may hold others up. */
int hearth_spares(struct hearth_pool *pool, u32 n)
{
	struct extent *e;

	lockdep_assert_held(&hearth.lock);
	while (pool->map.n_spare < n + HEARTH_SPARES_KEPT) {
		e = kzalloc(sizeof(*e), GFP_KERNEL);
		if (!e)
			return pool->map.n_spare >= n ? 0 : -ENOMEM;
		pool->overhead += sizeof(*e);
		extent_spare_put(&pool->map, e);
	}
	return 0;
}

/* Frees those above @keep; hearth.lock, or the pool is the caller's alone. */
void hearth_spares_trim(struct hearth_pool *pool, u32 keep)
{
	struct extent *e;

	while (pool->map.n_spare > keep) {
		e = extent_spare_get(&pool->map);
		pool->overhead -= sizeof(*e);
		kfree(e);
	}
}

/* -- blocks and holes ---------------------------------------------------------- */

static u64 block_overhead(const struct hearth_block *blk)
{
	/* The table's slot, the struct, and the list of pages. */
	return sizeof(void *) + sizeof(*blk) + (blk->parts ? PAGE_SIZE : 0);
}

/* Puts a block at an index that has none; hearth.lock, or the pool is the caller's alone. */
int hearth_pool_block_put(struct hearth_pool *pool, u64 index, struct hearth_block *blk)
{
	int ret;

	ret = xa_err(xa_store(&pool->blocks, index, blk, GFP_KERNEL));
	if (ret)
		return ret;
	pool->by_kind[blk->kind] += BLOCK_SIZE_;
	pool->overhead += block_overhead(blk);
	return 0;
}

/* Out of the pool, and before @list, which is freed when hearth.lock is not held any more. */
static void block_take(struct hearth_pool *pool, u64 index, struct hearth_block **list)
{
	struct hearth_block *blk = xa_erase(&pool->blocks, index);

	if (!blk)
		return;
	pool->by_kind[blk->kind] -= BLOCK_SIZE_;
	pool->overhead -= block_overhead(blk);
	blk->next = *list;
	*list = blk;
}

/* Whole free blocks inside a free extent. */
static u64 whole_blocks(const struct extent *e)
{
	u64 first = ALIGN(e->start, BLOCK_SIZE_);
	u64 end = ALIGN_DOWN(e->start + e->size, BLOCK_SIZE_);

	return e->state == EXTENT_FREE && end > first ? (end - first) >> BLOCK_SHIFT : 0;
}

/* How many blocks could be dropped. */
u64 hearth_pool_free_blocks(const struct hearth_pool *pool)
{
	const struct extent *e;
	u64 n = 0;

	lockdep_assert_held(&hearth.lock);
	for (e = pool->map.first; e; e = e->next)
		n += whole_blocks(e);
	return n;
}

/* Holes at the end of the map are cut off. */
static void trim_tail(struct hearth_pool *pool)
{
	struct extent *e;

	while ((e = pool->map.last) && e->state == EXTENT_USED && e->owner == ABSENT) {
		u64 start = e->start;

		extent_free(&pool->map, e);
		if (WARN_ON(extent_resize(&pool->map, start)))
			break;
	}
}

/* Makes holes of up to @n free blocks, from the end, and adds them to @list; allocates nothing. */
u64 hearth_pool_blocks_drop(struct hearth_pool *pool, u64 n, struct hearth_block **list)
{
	struct extent *e, *hole;
	u64 done = 0, at;

	lockdep_assert_held(&hearth.lock);
	while (done < n) {
		for (e = pool->map.last; e && !whole_blocks(e); e = e->prev)
			;
		if (!e || pool->map.n_spare < EXTENT_SPARE_ALLOC)
			break;
		at = ALIGN_DOWN(e->start + e->size, BLOCK_SIZE_) - BLOCK_SIZE_;
		if (WARN_ON(extent_alloc_at(&pool->map, at, BLOCK_SIZE_, ABSENT, &hole)))
			break;
		block_take(pool, at >> BLOCK_SHIFT, list);
		done++;
	}
	trim_tail(pool);
	return done;
}

/* Where the next block of a growth goes; NULL: at the end. */
static struct extent *first_hole(struct hearth_pool *pool)
{
	struct extent *e;

	for (e = pool->map.first; e; e = e->next) {
		if (e->state == EXTENT_USED && e->owner == ABSENT)
			return e;
	}
	return NULL;
}

/* Puts one block in: into a hole, or at the end. */
int hearth_pool_block_add(struct hearth_pool *pool, struct hearth_block *blk)
{
	struct extent *hole = first_hole(pool);
	u64 at = hole ? hole->start : pool->map.size;
	int ret;

	lockdep_assert_held(&hearth.lock);
	ret = hearth_pool_block_put(pool, at >> BLOCK_SHIFT, blk);
	if (ret)
		return ret;
	if (hole) {
		extent_free(&pool->map, hole);
		return 0;
	}
	ret = hearth_spares(pool, EXTENT_SPARE_ALLOC) ?:
	      extent_resize(&pool->map, at + BLOCK_SIZE_);
	if (ret) {
		xa_erase(&pool->blocks, at >> BLOCK_SHIFT);
		pool->by_kind[blk->kind] -= BLOCK_SIZE_;
		pool->overhead -= block_overhead(blk);
	}
	return ret;
}

/*
 * RESERVED: the struct is new, its pages are those that lie where it will be
 * added. hearth.lock until it is.
 */
void hearth_pool_block_place(struct hearth_pool *pool, struct hearth_block *blk)
{
	struct extent *hole = first_hole(pool);
	u64 at = hole ? hole->start : pool->map.size;

	blk->large = pfn_to_page(PHYS_PFN(pool->base + at));
}
