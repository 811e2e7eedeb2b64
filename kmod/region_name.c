// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kept regions, which outlive their program: a name and a digest in their pool,
 * by which others find them. Being kept holds a reference; who takes the name
 * away, under hearth.lock, has that reference then, and puts it without. What is
 * found stays charged to its owner, or, when the owner is gone, is charged to
 * the finder: looked up, moved and answered in one hold of hearth.lock.
 */
#include <linux/file.h>
#include <linux/jhash.h>

#include "priv.h"

static u32 name_hash(const char *name)
{
	return jhash(name, strnlen(name, HEARTH_REGION_NAME_MAX), 0);
}

static struct hearth_region *region_named(struct hearth_pool *pool, const char *name)
{
	struct hearth_region *r;

	hash_for_each_possible(pool->names, r, by_name, name_hash(name)) {
		if (!strncmp(r->name, name, HEARTH_REGION_NAME_MAX))
			return r;
	}
	return NULL;
}

/* The reference that it was kept by is the caller's then. */
void hearth_region_unname(struct hearth_region *r)
{
	lockdep_assert_held(&hearth.lock);
	hash_del(&r->by_name);
	r->kept = false;
}

int hearth_ioctl_keep(void *who, void *arg)
{
	struct file *file = who;
	struct hearth_region *r = file->private_data;
	struct hearth_ioc_keep *a = arg;
	int ret;

	if (a->reserved)
		return -EINVAL;
	ret = args_name(a->name, HEARTH_REGION_NAME_MAX);
	if (ret)
		return ret;
	if (!hearth_may_write(file))
		return -EACCES;
	mutex_lock(&hearth.lock);
	if (r->purged) {
		ret = -ESTALE;
	} else if (r->kept) {
		ret = -EBUSY;
	} else if (region_named(r->pool, a->name)) {
		ret = -EEXIST;
	} else {
		memcpy(r->name, a->name, sizeof(r->name));
		memcpy(r->digest, a->digest, sizeof(r->digest));
		r->kept = true;
		hash_add(r->pool->names, &r->by_name, name_hash(r->name));
		kref_get(&r->ref);
	}
	mutex_unlock(&hearth.lock);
	return ret;
}

/* The owner is gone: its region is charged to who found it. */
static int region_move(struct hearth_region *r, struct hearth_tenant *to,
		       struct hearth_refusal *out)
{
	struct hearth_tenant *from = r->tenant;
	struct hearth_budget *a = from->budgets[r->pool->index], *b = to->budgets[r->pool->index];
	struct budget_refusal ref = {};
	struct extent *e;
	int ret;

	lockdep_assert_held(&hearth.lock);
	if (r->offered)
		WARN_ON(budget_purgeable(&a->b, -(s64)r->bytes));
	ret = budget_move(&a->b, &b->b, r->bytes, &ref);
	if (r->offered)
		WARN_ON(budget_purgeable(ret ? &a->b : &b->b, r->bytes));
	if (ret == -ENOSPC)
		hearth_refusal_fill(out, &ref);
	if (ret)
		return ret;
	if (r->offered)
		list_move_tail(&r->offer, &b->offered);
	r->tenant = to;
	/* What it writes there is not for those who had it before. */
	for (e = r->first; e; e = e->link)
		hearth_pool_owner(r->pool, e->start, e->size, to->id);
	to->regions++;
	from->regions--;
	hearth_pressure_tenant(a);
	hearth_pressure_tenant(b);
	hearth_tenant_maybe_free(from);
	return 0;
}

/* Whether @conn may have it, and how; the charge moves when it has to. */
static int region_claim(struct hearth_conn *conn, struct hearth_region *r, u32 flags,
			struct hearth_refusal *out)
{
	/* For good where it is; sealed a moment later, mmap refuses all the same. */
	bool own = r->tenant == conn->tenant, sealed = READ_ONCE(r->sealed);

	lockdep_assert_held(&hearth.lock);
	if (!own && !hearth_may_join(conn, r->tenant))
		return -EACCES;
	if (sealed && (flags & HEARTH_FIND_WRITE))
		return -EROFS;
	if (own)
		return 0;
	if (r->tenant->connections)
		return sealed ? 0 : -EBUSY;
	return region_move(r, conn->tenant, out);
}

/* What @a asks for, if it is there. */
static int find_named(const struct hearth_conn *conn, struct hearth_ioc_find *a,
		      struct hearth_region **ret_r)
{
	struct hearth_region *r;
	struct hearth_pool *pool;

	lockdep_assert_held(&hearth.lock);
	pool = hearth_pool_get(a->pool);
	r = pool ? region_named(pool, a->name) : NULL;
	if (!conn->tenant)
		return -ENOTCONN;
	if (!r)
		return -ENOENT;
	if (!(a->flags & HEARTH_FIND_ANY_DIGEST) &&
	    memcmp(r->digest, a->digest, HEARTH_DIGEST_MAX)) {
		a->out_region = r->id;
		return -ENOENT;
	}
	*ret_r = r;
	return 0;
}

int hearth_ioctl_find(void *who, void *arg)
{
	struct hearth_ioc_find *a = arg;
	struct hearth_conn *conn = who;
	struct hearth_region *r, *now;
	struct file *file;
	int ret, fd;

	ret = args_flags(a->flags, HEARTH_FIND_ANY_DIGEST | HEARTH_FIND_WRITE);
	if (ret)
		return ret;
	ret = args_name(a->name, HEARTH_REGION_NAME_MAX);
	if (ret)
		return ret;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;

again:
	mutex_lock(&hearth.lock);
	ret = find_named(conn, a, &r);
	if (!ret)
		kref_get(&r->ref);
	mutex_unlock(&hearth.lock);
	if (ret)
		goto err_fd;
	/* The file before the claim, and without the lock: only the claim changes anything. */
	file = hearth_file_new(r, a->flags & HEARTH_FIND_WRITE);
	hearth_region_put(r);
	if (IS_ERR(file)) {
		ret = PTR_ERR(file);
		goto err_fd;
	}
	mutex_lock(&hearth.lock);
	ret = find_named(conn, a, &now);
	if (!ret && now == r)
		ret = region_claim(conn, r, a->flags, &a->out_refusal);
	if (!ret && now == r) {
		a->out_fd = fd;
		a->out_region = r->id;
		a->out_bytes = r->bytes;
	}
	mutex_unlock(&hearth.lock);
	if (!ret && now == r) {
		fd_install(fd, file);
		return 0;
	}
	fput(file);
	/* Dropped meanwhile, and another of that name was kept. */
	if (!ret)
		goto again;
err_fd:
	put_unused_fd(fd);
	return ret;
}

int hearth_ioctl_drop(void *who, void *arg)
{
	struct hearth_ioc_drop *a = arg;
	struct hearth_conn *conn = who;
	struct hearth_region *r = NULL;
	int ret = 0;

	if (a->reserved)
		return -EINVAL;
	mutex_lock(&hearth.lock);
	if (a->region <= ULONG_MAX)
		r = xa_load(&hearth.regions, a->region);
	if (!r || !r->kept)
		ret = -ENOENT;
	else if (!conn->admin && r->tenant != conn->tenant)
		ret = -EPERM;
	else
		hearth_region_unname(r);
	mutex_unlock(&hearth.lock);
	/* The reference that it was kept by is ours now. */
	if (!ret)
		hearth_region_put(r);
	return ret;
}
