// SPDX-License-Identifier: GPL-2.0-only
/*
 * Regions, from the empty struct to the end: out of sight, wait for whatever
 * still holds pages (quarantine), give back, uncharge, free. Memory leaves a
 * region under hearth.lock, and only when no page's count says that somebody
 * else has it: by then its gate is shut, or its last reference gone, and counts
 * can only fall. How it gets its memory: region_alloc.c.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "priv.h"
#include "trace.h"

/* How often quarantined blocks are looked at: at first, at most. */
#define QUARANTINE_MS_MIN 5
#define QUARANTINE_MS_MAX 500

/* -- end ----------------------------------------------------------------------- */

/*
 * Nothing but the pool has any page of it. Of what was never mapped or exported
 * nobody can have. True lasts while the gate is shut, or no reference is left.
 */
bool hearth_region_idle(const struct hearth_region *r)
{
	const struct extent *e;

	if (!r->reached)
		return true;
	for (e = r->first; e; e = e->link) {
		if (!hearth_pool_idle(r->pool, e->start, e->size))
			return false;
		cond_resched();
	}
	return true;
}

/* All of its memory, which nobody can reach any more, or yet. */
void hearth_region_extents_free(struct hearth_region *r)
{
	struct extent *e, *next;

	lockdep_assert_held(&hearth.lock);
	for (e = r->first; e; e = next) {
		next = e->link;
		extent_free(&r->pool->map, e);
	}
	r->first = NULL;
}

static u64 piece_end(u64 at, u64 end)
{
	return min_t(u64, end, ALIGN(at + 1, BLOCK_SIZE_));
}

/*
 * Gives back what of an extent is idle, and keeps what is held, block by block.
 * Without nodes to cut it, all of it is kept. Bytes kept.
 */
static u64 extent_give_back(struct hearth_region *r, struct extent *e, struct extent **kept)
{
	u64 start = e->start, end = e->start + e->size, at, held = 0;
	struct extent_map *map = &r->pool->map;
	u32 pieces = 0;

	for (at = start; at < end; at = piece_end(at, end))
		pieces += !hearth_pool_idle(r->pool, at, piece_end(at, end) - at);
	if (pieces && hearth_spares(r->pool, 2 * pieces)) {
		e->link = *kept;
		*kept = e;
		return end - start;
	}
	extent_free(map, e);
	if (!pieces)
		return 0;
	/* Under the lock: nobody else gets what is free for a moment. */
	for (at = start; at < end; at = piece_end(at, end)) {
		struct extent *part;
		u64 len = piece_end(at, end) - at;

		/*
		 * A piece that has become idle since is free already. One that
		 * is not was counted: nobody can begin to hold these pages.
		 */
		if (hearth_pool_idle(r->pool, at, len))
			continue;
		if (WARN_ON(extent_alloc_at(map, at, len, r, &part)))
			continue;
		part->link = *kept;
		*kept = part;
		held += len;
	}
	return held;
}

static void region_destroy(struct hearth_region *r)
{
	if (!IS_ERR_OR_NULL(r->inode)) {
		iput(r->inode);
		hearth_fs_unpin();
	}
	mutex_destroy(&r->lock);
	kfree(r);
	module_put(THIS_MODULE);
}

/*
 * Gives back what can be given back of a dead region. True when nothing is
 * left and the region does not count any more.
 */
static bool region_give_back(struct hearth_region *r, bool idle)
{
	struct extent *e, *next, *kept = NULL;
	u64 had = 0, held = 0;

	lockdep_assert_held(&hearth.lock);
	for (e = r->first; e; e = next) {
		next = e->link;
		had += e->size;
		if (idle)
			extent_free(&r->pool->map, e);
		else
			held += extent_give_back(r, e, &kept);
	}
	r->first = kept;
	r->pool->quarantined += held - r->held;
	if (held != r->held)
		trace_hearth_quarantine(r, held);
	r->held = held;
	if (had > held)
		hearth_uncharge(hearth_region_budget(r), had - held);
	if (held)
		return false;
	r->pool->regions--;
	r->tenant->regions--;
	hearth_tenant_maybe_free(r->tenant);
	return true;
}

static void region_release(struct kref *ref)
{
	struct hearth_region *r = container_of(ref, struct hearth_region, ref);
	bool idle, gone = true;

	if (!r->tenant) {
		/* Never charged. */
		region_destroy(r);
		return;
	}
	/*
	 * No file, mapping or dma-buf is left: counts can only fall. A purge may
	 * still find it on the list of offers, and take its memory first, but not
	 * while it is looked at.
	 */
	down_write(&r->gate);
	idle = hearth_region_idle(r);
	up_write(&r->gate);
	mutex_lock(&hearth.lock);
	if (r->id) {
		xa_erase(&hearth.regions, r->id);
		hearth.n_regions--;
	}
	if (r->offered) {
		list_del_init(&r->offer);
		budget_purgeable(&hearth_region_budget(r)->b, -(s64)r->bytes);
		r->offered = false;
	}
	trace_hearth_region_free(r);
	gone = region_give_back(r, idle);
	if (!gone) {
		list_add_tail(&r->dead, &hearth.quarantine);
		mod_delayed_work(hearth.wq, &hearth.quarantine_work,
				 msecs_to_jiffies(QUARANTINE_MS_MIN));
	}
	mutex_unlock(&hearth.lock);
	if (gone)
		region_destroy(r);
}

/* Never under hearth.lock. */
void hearth_region_put(struct hearth_region *r)
{
	kref_put(&r->ref, region_release);
}

/*
 * Looks at quarantined blocks again, less often while nothing changes. Pins are
 * let go of some time after the I/O or the device driver has ended, and nothing
 * tells when. Also drops the references of kept regions that were purged.
 */
void hearth_quarantine_work(struct work_struct *w)
{
	static unsigned int ms = QUARANTINE_MS_MIN;
	struct hearth_region *r, *next;
	LIST_HEAD(gone);
	LIST_HEAD(drop);
	bool progress = false;

	mutex_lock(&hearth.lock);
	list_for_each_entry_safe(r, next, &hearth.quarantine, dead) {
		u64 held = r->held;

		if (r->purged) {
			list_move(&r->dead, &drop);
			continue;
		}
		if (region_give_back(r, false)) {
			list_move(&r->dead, &gone);
			progress = true;
		} else {
			progress |= r->held != held;
		}
	}
	ms = progress ? QUARANTINE_MS_MIN : min_t(unsigned int, ms * 2, QUARANTINE_MS_MAX);
	if (!list_empty(&hearth.quarantine))
		mod_delayed_work(hearth.wq, &hearth.quarantine_work, msecs_to_jiffies(ms));
	else
		ms = QUARANTINE_MS_MIN;
	mutex_unlock(&hearth.lock);

	list_for_each_entry_safe(r, next, &gone, dead)
		region_destroy(r);
	list_for_each_entry_safe(r, next, &drop, dead) {
		list_del_init(&r->dead);
		hearth_region_put(r);
	}
}

/* -- birth --------------------------------------------------------------------- */

/* With one reference, no memory yet, and seen by nobody. Not under hearth.lock. */
struct hearth_region *hearth_region_new(u64 bytes, const char *label)
{
	struct hearth_region *r;
	int ret;

	r = kzalloc(sizeof(*r), GFP_KERNEL_ACCOUNT);
	if (!r)
		return ERR_PTR(-ENOMEM);
	/* Regions in quarantine have no file that would hold the module. */
	__module_get(THIS_MODULE);
	kref_init(&r->ref);
	init_rwsem(&r->gate);
	mutex_init(&r->lock);
	INIT_LIST_HEAD(&r->offer);
	INIT_LIST_HEAD(&r->dead);
	r->bytes = bytes;
	memcpy(r->label, label, HEARTH_NAME_MAX);
	ret = hearth_fs_pin();
	if (ret)
		goto err;
	r->inode = hearth_inode_new(bytes);
	if (IS_ERR(r->inode)) {
		ret = PTR_ERR(r->inode);
		hearth_fs_unpin();
		goto err;
	}
	return r;
err:
	region_destroy(r);
	return ERR_PTR(ret);
}

/* -- purge --------------------------------------------------------------------- */

/*
 * Takes the memory of an offered region. False, and nothing has changed, when
 * something outside holds pages of it, or it is being mapped, exported, sealed
 * or given back at this moment.
 */
bool hearth_region_purge(struct hearth_region *r)
{
	struct hearth_budget *hb = hearth_region_budget(r);
	struct hearth_event_record ev = {
		.kind = HEARTH_EV_PURGED,
		.tenant = r->tenant->id,
		.pool = r->pool->id,
		.bytes = r->bytes,
		.region = r->id,
	};

	lockdep_assert_held(&hearth.lock);
	/* Not waited for: with hearth.lock everybody waits. */
	if (!down_write_trylock(&r->gate))
		return false;
	mutex_lock(&r->lock);
	/* Faults wait, then end in SIGBUS; one on its way has a page's count. */
	unmap_mapping_range(r->inode->i_mapping, 0, 0, 1);
	if (r->exports || !hearth_region_idle(r)) {
		mutex_unlock(&r->lock);
		up_write(&r->gate);
		return false;
	}
	r->purged = true;
	hearth_region_extents_free(r);
	r->offered = false;
	r->extents = 0;
	mutex_unlock(&r->lock);
	up_write(&r->gate);

	list_del_init(&r->offer);
	WARN_ON(budget_purged(&hb->b, r->bytes));
	trace_hearth_purge(r);
	ev.current_bytes = hb->b.used;
	hearth_event(&ev);
	hearth_pressure_tenant(hb);
	hearth_pressure_pool(r->pool);
	hearth_wake(r->pool);
	if (r->kept) {
		/* Nobody can find it any more; its reference goes without our lock. */
		hearth_region_unname(r);
		list_add_tail(&r->dead, &hearth.quarantine);
		mod_delayed_work(hearth.wq, &hearth.quarantine_work, 0);
	}
	return true;
}

/* -- looking ------------------------------------------------------------------- */

void hearth_region_figures(struct hearth_region *r, struct hearth_ioc_region_get *a)
{
	lockdep_assert_held(&hearth.lock);
	a->region = r->id;
	a->out_bytes = r->bytes;
	a->out_pool = r->pool->id;
	a->out_tenant = r->tenant->id;
	a->out_flags = (READ_ONCE(r->sealed) ? HEARTH_REGION_SEALED : 0) |
		       (r->offered ? HEARTH_REGION_OFFERED : 0) |
		       (r->purged ? HEARTH_REGION_PURGED : 0) |
		       (r->kept ? HEARTH_REGION_KEPT : 0) |
		       (r->contig ? HEARTH_REGION_CONTIG : 0) |
		       (READ_ONCE(r->exports) ? HEARTH_REGION_EXPORTED : 0);
	a->out_extents = r->extents;
	a->out_descriptors = atomic_read(&r->files);
	a->out_reserved = 0;
	memcpy(a->out_label, r->label, sizeof(a->out_label));
	if (r->kept) {
		memcpy(a->out_name, r->name, sizeof(a->out_name));
		memcpy(a->out_digest, r->digest, sizeof(a->out_digest));
	}
}

int hearth_ioctl_region_get(void *who, void *arg)
{
	struct hearth_ioc_region_get *a = arg;
	struct hearth_region *r = NULL;
	unsigned long id = a->region;
	int ret;

	ret = args_flags(a->flags, HEARTH_GET_NEXT);
	if (ret)
		return ret;
	mutex_lock(&hearth.lock);
	if (a->region < ULONG_MAX)
		r = a->flags & HEARTH_GET_NEXT ?
		    xa_find_after(&hearth.regions, &id, ULONG_MAX, XA_PRESENT) :
		    xa_load(&hearth.regions, id);
	if (r)
		hearth_region_figures(r, a);
	mutex_unlock(&hearth.lock);
	return r ? 0 : -ENOENT;
}
