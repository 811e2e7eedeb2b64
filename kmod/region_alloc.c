// SPDX-License-Identifier: GPL-2.0-only
/*
 * The birth of a region: validate, charge, carve, zero, publish; whatever
 * fails, the ordinary end of a region undoes. It is charged and carved under
 * hearth.lock in one go, and zeroed without it: until it is published in the
 * table, at the end, nobody else can find or map it. Nodes for the map are got
 * before the lock, or after; with too few of them all begins once more.
 */
#include <linux/file.h>

#include "priv.h"
#include "trace.h"

/* Nodes for an allocation that found too few. */
#define NODES_FIRST 32

static int carve_one(struct hearth_pool *pool, u64 bytes, u64 align, bool contig,
		     struct hearth_region *r, struct extent **ret_e)
{
	u64 start;
	int ret;

	if (pool->map.n_spare < EXTENT_SPARE_ALLOC)
		return -EAGAIN;
	/*
	 * In a pool of 2 MiB chunks an aligned offset is an aligned address, and
	 * what does not cross a block is in a row. A page has no order to lose.
	 */
	if (hearth_pool_uniform(pool) &&
	    (!contig || pool->backing == HEARTH_BACKING_RESERVED || bytes == PAGE_SIZE))
		return extent_alloc(&pool->map, bytes, align, r, ret_e);
	if (!contig && align == PAGE_SIZE)
		return extent_alloc(&pool->map, bytes, align, r, ret_e);
	if (contig && hearth_pool_uniform(pool) && bytes <= BLOCK_SIZE_) {
		ret = extent_alloc(&pool->map, bytes, max_t(u64, align, roundup_pow_of_two(bytes)),
				   r, ret_e);
		if (ret != -ENOSPC)
			return ret;
	}
	ret = hearth_pool_find_run(pool, bytes, align, &start);
	return ret ?: extent_alloc_at(&pool->map, start, bytes, r, ret_e);
}

/*
 * Memory for a region that is charged already. One extent where there is one;
 * else, unless it must be contiguous, the largest pieces that there are.
 * EAGAIN: the map has too few nodes for it.
 */
static int carve(struct hearth_region *r, u64 align)
{
	struct hearth_pool *pool = r->pool;
	struct extent **tail = &r->first;
	u64 left = r->bytes, piece;
	struct extent *e;
	int ret;

	lockdep_assert_held(&hearth.lock);
	ret = carve_one(pool, left, align, r->contig, r, &e);
	if (!ret) {
		*tail = e;
		r->extents = r->contig ? 1 : hearth_pool_runs(pool, e->start, e->size);
		return 0;
	}
	if (ret != -ENOSPC || r->contig)
		return ret;
	piece = left;
	while (left) {
		piece = min(piece, left);
		ret = pool->map.n_spare < EXTENT_SPARE_ALLOC ? -EAGAIN : 0;
		if (!ret && align == PAGE_SIZE)
			ret = extent_alloc_part(&pool->map, left, r, &e);
		else if (!ret)
			ret = carve_one(pool, piece, align, false, r, &e);
		if (ret == -ENOSPC && align != PAGE_SIZE && piece > align) {
			piece = ALIGN(piece / 2, align);
			continue;
		}
		if (ret) {
			hearth_region_extents_free(r);
			r->extents = 0;
			return ret;
		}
		e->link = NULL;
		*tail = e;
		tail = &e->link;
		left -= e->size;
		r->extents += hearth_pool_runs(pool, e->start, e->size);
	}
	return 0;
}

static bool region_stale_ok(struct hearth_region *r)
{
	struct extent *e;

	for (e = r->first; e; e = e->link) {
		if (!hearth_pool_stale_ok(r->pool, e->start, e->size, r->tenant->id))
			return false;
	}
	return true;
}

/* How an allocation goes on, between the times that it holds the lock. */
struct alloc_state {
	struct extent *nodes;		/* for the map */
	u32 want;			/* how many to get of them */
	unsigned long id;		/* of the region */
	bool zero;
};

/*
 * Charges and carves; @r is the tenant's after it. EAGAIN, and nothing has
 * changed but the map's nodes: with more of them once more.
 */
static int region_charge(struct hearth_conn *conn, struct hearth_region *r,
			 struct hearth_ioc_alloc *a, u64 align, struct alloc_state *s)
{
	struct hearth_tenant *t = conn->tenant;
	struct hearth_pool *pool;
	struct hearth_budget *hb;
	bool over = false;
	int ret;

	lockdep_assert_held(&hearth.lock);
	if (!t)
		return -ENOTCONN;
	pool = hearth_pool_get(a->pool);
	if (!pool)
		return -ENOENT;
	if (pool->kind == HEARTH_POOL_ACCOUNT)
		return -EINVAL;
	hb = t->budgets[pool->index];
	hearth_nodes_put(pool, &s->nodes);
	ret = hearth_charge(hb, r->bytes, a->deadline, &over, &a->out_refusal);
	if (ret)
		return ret;
	r->pool = pool;
	ret = carve(r, align);
	if (ret) {
		hearth_charge_undo(hb, r->bytes);
		if (ret == -ENOSPC)
			hearth_refusal_pieces(&a->out_refusal, pool, r->bytes);
		return ret;
	}
	hearth_charged(hb, r->bytes, over);
	r->tenant = t;
	t->regions++;
	pool->regions++;
	s->zero = !((a->flags & HEARTH_ALLOC_STALE) && region_stale_ok(r));
	s->want = hearth_nodes_short(pool);
	s->id = ++hearth.next_region;
	return 0;
}

/* From here on others can see it, and nothing may fail: its place in the table is reserved. */
static void region_publish(struct hearth_region *r, unsigned long id)
{
	struct extent *e;

	lockdep_assert_held(&hearth.lock);
	WARN_ON(xa_err(xa_store(&hearth.regions, id, r, GFP_NOWAIT)));
	r->id = id;
	hearth.n_regions++;
	/* Only now, when what others left there is gone for sure. */
	for (e = r->first; e; e = e->link)
		hearth_pool_owner(r->pool, e->start, e->size, r->tenant->id);
	trace_hearth_region_new(r);
}

static int region_zero(struct hearth_region *r)
{
	struct extent *e;
	int ret = 0;

	for (e = r->first; !ret && e; e = e->link)
		ret = hearth_pool_zero(r->pool, e->start, e->size);
	return ret;
}

int hearth_ioctl_alloc(void *who, void *arg)
{
	struct hearth_ioc_alloc *a = arg;
	struct hearth_conn *conn = who;
	struct alloc_state s = {};
	struct hearth_region *r;
	struct file *file;
	u64 align, bytes;
	int ret, fd;

	ret = args_flags(a->flags, HEARTH_ALLOC_CONTIG | HEARTH_ALLOC_STALE);
	if (ret)
		return ret;
	if (a->reserved || !a->bytes)
		return -EINVAL;
	ret = args_align(a->align, PAGE_SIZE, BLOCK_SIZE_, &align);
	if (!ret && a->label[0])
		ret = args_name(a->label, HEARTH_NAME_MAX);
	else if (!ret)
		ret = args_zero(a->label, HEARTH_NAME_MAX);
	if (ret)
		return ret;
	/* What cannot be rounded up cannot be had either: the charge says so. */
	bytes = a->bytes > U64_MAX - PAGE_SIZE ? ~(u64)(PAGE_SIZE - 1) :
		(a->bytes + PAGE_SIZE - 1) & ~(u64)(PAGE_SIZE - 1);

	r = hearth_region_new(bytes, a->label);
	if (IS_ERR(r))
		return PTR_ERR(r);
	r->contig = a->flags & HEARTH_ALLOC_CONTIG;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0) {
		ret = fd;
		goto err_region;
	}
	file = hearth_file_new(r, true);
	if (IS_ERR(file)) {
		ret = PTR_ERR(file);
		goto err_fd;
	}

	do {
		mutex_lock(&hearth.lock);
		ret = region_charge(conn, r, a, align, &s);
		mutex_unlock(&hearth.lock);
		if (ret != -EAGAIN)
			break;
		s.want = s.want ? 2 * s.want : NODES_FIRST;
		hearth_nodes_free(s.nodes);
		ret = hearth_nodes_get(s.want, &s.nodes);
	} while (!ret);
	if (!ret && s.zero)
		ret = region_zero(r);
	if (!ret)
		ret = xa_reserve(&hearth.regions, s.id, GFP_KERNEL);
	if (ret)
		goto err_file;
	/* For the next one; that they cannot be had is the next one's trouble. */
	hearth_nodes_free(s.nodes);
	s.nodes = NULL;
	hearth_nodes_get(s.want, &s.nodes);

	mutex_lock(&hearth.lock);
	hearth_nodes_put(r->pool, &s.nodes);
	region_publish(r, s.id);
	a->out_region = r->id;
	a->out_bytes = r->bytes;
	a->out_extents = r->extents;
	a->out_fd = fd;
	mutex_unlock(&hearth.lock);
	fd_install(fd, file);
	hearth_region_put(r);
	return 0;

err_file:
	hearth_nodes_free(s.nodes);
	fput(file);
err_fd:
	put_unused_fd(fd);
err_region:
	hearth_region_put(r);
	return ret;
}
