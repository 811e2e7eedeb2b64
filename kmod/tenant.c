// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tenants, and their budgets in each pool. A budget exists for every pair of
 * tenant and pool from the moment both exist, so that charging allocates
 * nothing. The calls that look at budgets and set them: tenant_budget.c.
 */
#include <linux/cred.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/uidgid.h>

#include "priv.h"

static struct hearth_tenant *tenant_named(const char *name)
{
	struct hearth_tenant *t;
	unsigned long id;

	xa_for_each(&hearth.tenants, id, t) {
		if (!strncmp(t->name, name, HEARTH_NAME_MAX))
			return t;
	}
	return NULL;
}

/* By id, by name, or the next after an id; NULL when there is none. */
struct hearth_tenant *hearth_tenant_pick(u32 id, u32 flags, const char *name)
{
	unsigned long index = id;

	lockdep_assert_held(&hearth.lock);
	if (flags & HEARTH_GET_BY_NAME)
		return tenant_named(name);
	if (flags & HEARTH_GET_NEXT)
		return id == U32_MAX ? NULL :
		       xa_find_after(&hearth.tenants, &index, U32_MAX, XA_PRESENT);
	return xa_load(&hearth.tenants, id);
}

/*
 * What a tenant is made of, and its place in the table, got without
 * hearth.lock. Empty: it is all got under it, which is for the administrator.
 */
struct tenant_parts {
	u32 id;
	struct hearth_tenant *t;
	struct hearth_budget *hb[HEARTH_POOLS];
	u32 n;				/* of them left */
};

/* What was not used. */
static void parts_free(struct tenant_parts *p)
{
	while (p->n)
		kfree(p->hb[--p->n]);
	kfree(p->t);
	if (p->id)
		xa_release(&hearth.tenants, p->id);
	memset(p, 0, sizeof(*p));
}

static int parts_get(struct tenant_parts *p, u32 id, u32 n_pools)
{
	if (xa_reserve(&hearth.tenants, id, GFP_KERNEL))
		return -ENOMEM;
	p->id = id;
	p->t = kzalloc(sizeof(*p->t), GFP_KERNEL);
	if (!p->t)
		goto err;
	for (; p->n < n_pools; p->n++) {
		p->hb[p->n] = kzalloc(sizeof(*p->hb[0]), GFP_KERNEL);
		if (!p->hb[p->n])
			goto err;
	}
	return 0;
err:
	parts_free(p);
	return -ENOMEM;
}

/* Of @p, where it has one left: it has, but for a pool that was made since it was got. */
static int budget_new(struct hearth_tenant *t, struct hearth_pool *pool, struct tenant_parts *p)
{
	struct budget_limits l = BUDGET_LIMITS_NONE;
	struct hearth_budget *hb;

	hb = p && p->n ? p->hb[--p->n] : kzalloc(sizeof(*hb), GFP_KERNEL);
	if (!hb)
		return -ENOMEM;
	hb->tenant = t;
	hb->pool = pool;
	INIT_LIST_HEAD(&hb->offered);
	budget_attach(&hb->b, &pool->bp, t->priority, hb);
	l.max = pool->default_max;
	budget_set_limits(&hb->b, &l, NULL, NULL);
	pressure_init(&hb->pressure, ktime_get_ns());
	t->budgets[pool->index] = hb;
	hearth_pressure_rules(hb);
	return 0;
}

static void budget_drop(struct hearth_tenant *t, u32 index)
{
	struct hearth_budget *hb = t->budgets[index];

	if (!hb)
		return;
	WARN_ON(budget_detach(&hb->b));
	WARN_ON(!list_empty(&hb->offered) || hb->waiters);
	t->budgets[index] = NULL;
	kfree(hb);
}

/* One that is not in the table, or not any more. */
void hearth_tenant_free(struct hearth_tenant *t)
{
	u32 i;

	lockdep_assert_held(&hearth.lock);
	for (i = 0; i < HEARTH_POOLS; i++)
		budget_drop(t, i);
	kfree(t);
}

/* A tenant with budgets in every pool, not in the table yet; of @p what it needs. */
static int tenant_new(const char *name, u32 class, u32 priority, struct tenant_parts *p,
		      struct hearth_tenant **ret_t)
{
	struct hearth_tenant *t = p->t;
	u32 i;
	int ret;

	lockdep_assert_held(&hearth.lock);
	if (hearth.n_tenants >= HEARTH_TENANTS_MAX || (!p->id && hearth.next_tenant == U32_MAX))
		return -EOVERFLOW;
	p->t = NULL;
	if (!t)
		t = kzalloc(sizeof(*t), GFP_KERNEL);
	if (!t)
		return -ENOMEM;
	memcpy(t->name, name, HEARTH_NAME_MAX);
	t->class = class;
	t->priority = priority;
	t->uid = HEARTH_ANY_UID;
	for (i = 0; i < HEARTH_POOLS; i++) {
		ret = hearth.pools[i] ? budget_new(t, hearth.pools[i], p) : 0;
		if (ret) {
			hearth_tenant_free(t);
			return ret;
		}
	}
	*ret_t = t;
	return 0;
}

/*
 * A tenant of which nobody knows yet, all of it got under the lock: for the
 * administrator, who may hold others up.
 */
int hearth_tenant_new(const char *name, u32 class, u32 priority, struct hearth_tenant **ret_t)
{
	struct tenant_parts none = {};

	return tenant_new(name, class, priority, &none, ret_t);
}

/* In the place that was reserved for @id. */
void hearth_tenant_publish(struct hearth_tenant *t, u32 id)
{
	lockdep_assert_held(&hearth.lock);
	t->id = id;
	WARN_ON(xa_err(xa_store(&hearth.tenants, id, t, GFP_NOWAIT)));
	hearth.n_tenants++;
	hearth_event_tenant(HEARTH_EV_TENANT_NEW, t);
}

static void tenant_remove(struct hearth_tenant *t)
{
	xa_erase(&hearth.tenants, t->id);
	hearth.n_tenants--;
	hearth_event_tenant(HEARTH_EV_TENANT_GONE, t);
	hearth_tenant_free(t);
}

static bool tenant_busy(const struct hearth_tenant *t)
{
	return t->connections || t->regions;
}

/* Forgets @t when nobody needs it any more. */
void hearth_tenant_maybe_free(struct hearth_tenant *t)
{
	lockdep_assert_held(&hearth.lock);
	if (!t->persistent && !tenant_busy(t))
		tenant_remove(t);
}

/* Module exit: what is left is persistent and idle. */
void hearth_tenants_exit(void)
{
	struct hearth_tenant *t;
	unsigned long id;

	mutex_lock(&hearth.lock);
	xa_for_each(&hearth.tenants, id, t) {
		WARN_ON(tenant_busy(t));
		tenant_remove(t);
	}
	mutex_unlock(&hearth.lock);
}

/* A pool was made: every tenant gets a budget in it, or none does. */
int hearth_budgets_for_pool(struct hearth_pool *pool)
{
	struct hearth_tenant *t;
	unsigned long id;
	int ret;

	lockdep_assert_held(&hearth.lock);
	xa_for_each(&hearth.tenants, id, t) {
		ret = budget_new(t, pool, NULL);
		if (ret) {
			hearth_budgets_drop_pool(pool);
			return ret;
		}
	}
	return 0;
}

void hearth_budgets_drop_pool(struct hearth_pool *pool)
{
	struct hearth_tenant *t;
	unsigned long id;

	lockdep_assert_held(&hearth.lock);
	xa_for_each(&hearth.tenants, id, t)
		budget_drop(t, pool->index);
}

/* -- ioctls ------------------------------------------------------------------ */

/* Whether a connection may act as @t: its user's, everybody's, or any as administrator. */
bool hearth_may_join(const struct hearth_conn *conn, const struct hearth_tenant *t)
{
	if (t->uid == HEARTH_ANY_UID || conn->admin)
		return true;
	return uid_eq(current_euid(), make_kuid(&init_user_ns, t->uid));
}

int hearth_ioctl_join(void *who, void *arg)
{
	struct hearth_conn *conn = who;
	struct hearth_ioc_join *a = arg;
	struct tenant_parts parts = {};
	struct hearth_tenant *t;
	u32 id, n_pools;
	int ret;

	ret = args_flags(a->flags, HEARTH_JOIN_CREATE | HEARTH_JOIN_EXCL);
	if (ret)
		return ret;
	if (a->reserved || a->priority > HEARTH_PRIORITY_MAX)
		return -EINVAL;
	if (a->tenant_class > HEARTH_TENANT_EMBED)
		return -EOPNOTSUPP;
	ret = args_name(a->name, HEARTH_NAME_MAX);
	if (ret)
		return ret;

again:
	mutex_lock(&hearth.lock);
	ret = -EBUSY;
	if (conn->tenant)
		goto out;
	t = tenant_named(a->name);
	if (t) {
		ret = -EACCES;
		if (!hearth_may_join(conn, t))
			goto out;
		ret = -EEXIST;
		if ((a->flags & HEARTH_JOIN_EXCL) && t->connections)
			goto out;
		ret = -EUSERS;
		if (t->connections >= HEARTH_CONNECTIONS_MAX)
			goto out;
	} else {
		ret = -ENOENT;
		if (!(a->flags & HEARTH_JOIN_CREATE))
			goto out;
		ret = -EPERM;
		if (a->priority > HEARTH_PRIORITY_USER_MAX && !conn->admin)
			goto out;
		ret = -EOVERFLOW;
		if (hearth.n_tenants >= HEARTH_TENANTS_MAX ||
		    (!parts.id && hearth.next_tenant == U32_MAX))
			goto out;
		if (!parts.id) {
			/* Got without the lock; then all is looked at anew. */
			id = ++hearth.next_tenant;
			n_pools = hearth.n_pools;
			mutex_unlock(&hearth.lock);
			ret = parts_get(&parts, id, n_pools);
			if (ret)
				return ret;
			goto again;
		}
		ret = tenant_new(a->name, a->tenant_class, a->priority, &parts, &t);
		if (ret)
			goto out;
		hearth_tenant_publish(t, parts.id);
		parts.id = 0;
	}
	t->connections++;
	/* Pairs with hearth_conn_level. */
	smp_store_release(&conn->tenant, t);
	a->out_tenant = t->id;
	a->out_class = t->class;
	a->out_priority = t->priority;
	ret = 0;
out:
	mutex_unlock(&hearth.lock);
	parts_free(&parts);
	return ret;
}

void hearth_tenant_figures(struct hearth_tenant *t, struct hearth_ioc_tenant_get *a)
{
	lockdep_assert_held(&hearth.lock);
	a->tenant = t->id;
	a->out_class = t->class;
	memcpy(a->name, t->name, HEARTH_NAME_MAX);
	a->out_priority = t->priority;
	a->out_uid = t->uid;
	a->out_connections = t->connections;
	a->out_regions = t->regions;
	a->out_persistent = t->persistent;
	a->out_level = t->level;
}

/* Checks flags and name of the two calls that look something up. */
int hearth_pick_args(u32 flags, const char *name)
{
	int ret;

	ret = args_flags(flags, HEARTH_GET_NEXT | HEARTH_GET_BY_NAME);
	if (ret)
		return ret;
	if ((flags & HEARTH_GET_NEXT) && (flags & HEARTH_GET_BY_NAME))
		return -EINVAL;
	return flags & HEARTH_GET_BY_NAME ? args_name(name, HEARTH_NAME_MAX) : 0;
}

int hearth_ioctl_tenant_get(void *who, void *arg)
{
	struct hearth_ioc_tenant_get *a = arg;
	struct hearth_tenant *t;
	int ret;

	ret = hearth_pick_args(a->flags, a->name);
	if (ret)
		return ret;
	mutex_lock(&hearth.lock);
	t = hearth_tenant_pick(a->tenant, a->flags, a->name);
	if (t)
		hearth_tenant_figures(t, a);
	mutex_unlock(&hearth.lock);
	return t ? 0 : -ENOENT;
}

int hearth_ioctl_tenant_remove(void *who, void *arg)
{
	struct hearth_ioc_tenant_remove *a = arg;
	struct hearth_conn *conn = who;
	struct hearth_tenant *t;
	int ret = 0;

	if (!conn->admin)
		return -EPERM;
	mutex_lock(&hearth.lock);
	t = xa_load(&hearth.tenants, a->tenant);
	if (!t)
		ret = -ENOENT;
	else if (tenant_busy(t))
		ret = -EBUSY;
	else
		tenant_remove(t);
	mutex_unlock(&hearth.lock);
	return ret;
}
