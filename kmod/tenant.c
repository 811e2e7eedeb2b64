// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tenants, and their budgets in each pool. A budget exists for every pair of
 * tenant and pool from the moment both exist, so that charging allocates
 * nothing.
 */
#include <linux/cred.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uidgid.h>

#include "priv.h"
#include "trace.h"

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

static void tenant_free(struct hearth_tenant *t)
{
	u32 i;

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
			tenant_free(t);
			return ret;
		}
	}
	*ret_t = t;
	return 0;
}

/* In the place that was reserved for @id. */
static void tenant_publish(struct hearth_tenant *t, u32 id)
{
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
	tenant_free(t);
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
		tenant_publish(t, parts.id);
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

void hearth_budget_figures(struct hearth_budget *hb, struct hearth_ioc_budget_get *a)
{
	const struct budget *b = &hb->b;

	lockdep_assert_held(&hearth.lock);
	a->tenant = hb->tenant->id;
	a->pool = hb->pool->id;
	a->out_min = b->limits.min;
	a->out_low = b->limits.low;
	a->out_high = b->limits.high;
	a->out_max = b->limits.max;
	a->out_current = b->used;
	a->out_peak = b->peak;
	a->out_purgeable = b->purgeable;
	a->out_available = budget_available(b);
	a->out_available_purge = budget_available_with_purge(b, NULL);
	a->out_excess = budget_excess(b);
	a->out_n_charge = b->n.charges;
	a->out_n_refused_max = b->n.refused_max;
	a->out_n_refused_pool = b->n.refused_pool;
	a->out_n_refused_min = b->n.refused_min;
	a->out_n_refused_queue = b->n.refused_queue;
	a->out_n_high = b->n.high;
	a->out_n_reclaim = b->n.reclaim;
	a->out_n_purged = b->n.purged;
	a->out_purged_bytes = b->n.purged_bytes;
	a->out_level = hb->pressure.level;
	a->out_waiters = hb->waiters;
}

int hearth_ioctl_budget_get(void *who, void *arg)
{
	struct hearth_ioc_budget_get *a = arg;
	struct hearth_conn *conn = who;
	struct hearth_budget *hb;
	struct hearth_tenant *t;
	struct hearth_pool *pool;
	int ret;

	ret = args_flags(a->flags, HEARTH_BUDGET_RESET_PEAK);
	if (ret)
		return ret;
	mutex_lock(&hearth.lock);
	if (!a->tenant && !conn->tenant) {
		ret = -ENOTCONN;
		goto out;
	}
	t = a->tenant ? xa_load(&hearth.tenants, a->tenant) : conn->tenant;
	pool = hearth_pool_get(a->pool);
	if (!t || !pool) {
		ret = -ENOENT;
		goto out;
	}
	if ((a->flags & HEARTH_BUDGET_RESET_PEAK) && t != conn->tenant && !conn->admin) {
		ret = -EPERM;
		goto out;
	}
	hb = t->budgets[pool->index];
	hearth_budget_figures(hb, a);
	if (a->flags & HEARTH_BUDGET_RESET_PEAK)
		hb->b.peak = hb->b.used;
out:
	mutex_unlock(&hearth.lock);
	return ret;
}

/* -- a whole set of budgets, all or nothing ---------------------------------- */

#define SET_LIMITS (HEARTH_SET_MIN | HEARTH_SET_LOW | HEARTH_SET_HIGH | HEARTH_SET_MAX)
#define SET_TENANT (HEARTH_SET_CLASS | HEARTH_SET_PRIORITY | HEARTH_SET_UID)
#define SET_ALL (SET_LIMITS | SET_TENANT | HEARTH_SET_CREATE | HEARTH_BUDGET_DEFAULT)

/* What an entry has wrong whatever the state. */
static int entry_check(const struct hearth_budget_entry *e)
{
	int ret;

	ret = args_flags(e->mask, SET_ALL);
	if (ret)
		return ret;
	if (!e->mask)
		return -EINVAL;
	if (e->mask & HEARTH_BUDGET_DEFAULT) {
		if (e->mask != (HEARTH_BUDGET_DEFAULT | HEARTH_SET_MAX) || !e->pool)
			return -EINVAL;
		return args_zero(e->tenant, HEARTH_NAME_MAX);
	}
	if ((e->mask & SET_LIMITS) && !e->pool)
		return -EINVAL;
	if ((e->mask & HEARTH_SET_CLASS) && e->tenant_class > HEARTH_TENANT_EMBED)
		return -EOPNOTSUPP;
	if ((e->mask & HEARTH_SET_PRIORITY) && e->priority > HEARTH_PRIORITY_MAX)
		return -EINVAL;
	return args_name(e->tenant, HEARTH_NAME_MAX);
}

/* Whether an entry before number @i is of the same tenant and pool. */
static bool entry_twice(const struct hearth_budget_entry *e, u32 i)
{
	u32 k;

	for (k = 0; k < i; k++) {
		if (e[k].pool == e[i].pool && !memcmp(e[k].tenant, e[i].tenant, HEARTH_NAME_MAX))
			return true;
	}
	return false;
}

/* Copies and checks the array. *ret_bad is written on failure. */
static int entries_read(const struct hearth_ioc_budget_set *a, struct hearth_budget_entry **ret_e,
			u32 *ret_bad)
{
	struct hearth_budget_entry *e;
	u32 i, known;
	int ret;

	if (!a->count || a->count > HEARTH_BUDGETS_MAX || a->stride < sizeof(*e) ||
	    a->stride > PAGE_SIZE)
		return -EINVAL;
	e = kvcalloc(a->count, sizeof(*e), GFP_KERNEL_ACCOUNT);
	if (!e)
		return -ENOMEM;
	for (i = 0; i < a->count; i++) {
		void __user *p = u64_to_user_ptr(a->entries) + (size_t)i * a->stride;

		*ret_bad = i;
		known = min_t(u32, a->stride, sizeof(*e));
		ret = -EFAULT;
		if (copy_from_user(&e[i], p, known))
			goto err;
		ret = -EINVAL;
		if (e[i].size < sizeof(*e) || e[i].size > a->stride)
			goto err;
		if (e[i].size > sizeof(*e)) {
			ret = check_zeroed_user(p + sizeof(*e), e[i].size - sizeof(*e));
			if (ret < 0)
				goto err;
			if (!ret) {
				ret = -E2BIG;
				goto err;
			}
		}
		ret = entry_check(&e[i]);
		if (!ret && entry_twice(e, i))
			ret = -EINVAL;
		if (ret)
			goto err;
	}
	*ret_e = e;
	return 0;
err:
	kvfree(e);
	return ret;
}

/* A tenant that this call makes is in @made until all is known to be right. */
static struct hearth_tenant *made_named(struct hearth_tenant **made, u32 n, const char *name)
{
	u32 i;

	for (i = 0; i < n; i++) {
		if (!strncmp(made[i]->name, name, HEARTH_NAME_MAX))
			return made[i];
	}
	return NULL;
}

static void limits_merge(struct budget_limits *l, const struct hearth_budget_entry *e)
{
	if (e->mask & HEARTH_SET_MIN)
		l->min = e->min;
	if (e->mask & HEARTH_SET_LOW)
		l->low = e->low;
	if (e->mask & HEARTH_SET_HIGH)
		l->high = e->high;
	if (e->mask & HEARTH_SET_MAX)
		l->max = e->max;
}

/* Everything of an entry but its limits; nothing here can fail. */
static void entry_commit(struct hearth_tenant *t, const struct hearth_budget_entry *e)
{
	u32 i;

	if (e->mask & HEARTH_SET_CREATE)
		t->persistent = true;
	if (e->mask & HEARTH_SET_CLASS)
		t->class = e->tenant_class;
	if (e->mask & HEARTH_SET_UID)
		t->uid = e->uid;
	if (e->mask & HEARTH_SET_PRIORITY) {
		t->priority = e->priority;
		for (i = 0; i < HEARTH_POOLS; i++) {
			if (t->budgets[i])
				t->budgets[i]->b.priority = e->priority;
		}
	}
}

static bool tenant_waits(const struct hearth_tenant *t)
{
	u32 i;

	for (i = 0; i < HEARTH_POOLS; i++) {
		if (t->budgets[i] && t->budgets[i]->waiters)
			return true;
	}
	return false;
}

struct set_state {
	struct hearth_budget_entry *e;
	struct hearth_tenant **who;	/* of each entry */
	struct hearth_tenant **made;
	struct budget_change *changes;
	u32 *entry_of;			/* of each change */
	u32 n_made, n_changes;
};

/* Finds or makes the tenants, collects the changes of limits. */
static int set_collect(struct set_state *s, u32 count, u32 *ret_bad)
{
	u32 i;
	int ret;

	for (i = 0; i < count; i++) {
		struct hearth_budget_entry *e = &s->e[i];
		struct hearth_pool *pool = NULL;
		struct tenant_parts none = {};
		struct hearth_tenant *t;

		*ret_bad = i;
		if (e->pool) {
			pool = hearth_pool_get(e->pool);
			if (!pool)
				return -ENOENT;
		}
		if (e->mask & HEARTH_BUDGET_DEFAULT)
			continue;
		t = tenant_named(e->tenant) ?: made_named(s->made, s->n_made, e->tenant);
		if (!t) {
			if (!(e->mask & HEARTH_SET_CREATE))
				return -ENOENT;
			if (s->n_made + hearth.n_tenants >= HEARTH_TENANTS_MAX)
				return -EOVERFLOW;
			ret = tenant_new(e->tenant, HEARTH_TENANT_OTHER, 0, &none, &t);
			if (ret)
				return ret;
			s->made[s->n_made++] = t;
		}
		/* The order of a queue is by priority: not while it waits. */
		if ((e->mask & HEARTH_SET_PRIORITY) && e->priority != t->priority &&
		    tenant_waits(t))
			return -EBUSY;
		s->who[i] = t;
		if (e->mask & SET_LIMITS) {
			struct budget_change *c = &s->changes[s->n_changes];

			s->entry_of[s->n_changes++] = i;
			c->b = &t->budgets[pool->index]->b;
			c->limits = c->b->limits;
			limits_merge(&c->limits, e);
		}
	}
	return 0;
}

/* Room in the table for what was made, so that publishing cannot fail. */
static int set_reserve(struct set_state *s)
{
	u32 i;
	int ret = 0;

	for (i = 0; !ret && i < s->n_made; i++)
		ret = xa_reserve(&hearth.tenants, hearth.next_tenant + 1 + i, GFP_KERNEL);
	if (ret) {
		while (i--)
			xa_release(&hearth.tenants, hearth.next_tenant + 1 + i);
	}
	return ret;
}

static void set_commit(struct set_state *s, u32 count)
{
	u32 i;

	for (i = 0; i < s->n_made; i++)
		tenant_publish(s->made[i], ++hearth.next_tenant);
	for (i = 0; i < count; i++) {
		struct hearth_budget_entry *e = &s->e[i];

		if (s->who[i])
			entry_commit(s->who[i], e);
		else
			hearth_pool_get(e->pool)->default_max = e->max;
	}
	for (i = 0; i < s->n_changes; i++) {
		struct hearth_budget *hb = to_hb(s->changes[i].b);
		struct hearth_event_record ev = {
			.kind = HEARTH_EV_BUDGET,
			.tenant = hb->tenant->id,
			.pool = hb->pool->id,
			.current_bytes = hb->b.used,
			.limit = hb->b.limits.max,
		};

		hearth_event(&ev);
		hearth_pressure_rules(hb);
		hearth_reclaim_excess(hb);
		hearth_wake(hb->pool);
	}
}

int hearth_ioctl_budget_set(void *who, void *arg)
{
	struct hearth_ioc_budget_set *a = arg;
	struct budget_refusal ref = {};
	struct hearth_conn *conn = who;
	struct set_state s = {};
	size_t bad = 0;
	u32 i, at = 0;
	int ret;

	if (!conn->admin)
		return -EPERM;
	ret = args_flags(a->flags, 0);
	if (ret)
		return ret;
	if (a->reserved)
		return -EINVAL;
	ret = entries_read(a, &s.e, &at);
	if (ret)
		goto out_bad;
	ret = -ENOMEM;
	s.who = kvcalloc(a->count, sizeof(*s.who), GFP_KERNEL_ACCOUNT);
	s.made = kvcalloc(a->count, sizeof(*s.made), GFP_KERNEL_ACCOUNT);
	s.changes = kvcalloc(a->count, sizeof(*s.changes), GFP_KERNEL_ACCOUNT);
	s.entry_of = kvcalloc(a->count, sizeof(*s.entry_of), GFP_KERNEL_ACCOUNT);
	if (!s.who || !s.made || !s.changes || !s.entry_of)
		goto out;

	mutex_lock(&hearth.lock);
	ret = set_collect(&s, a->count, &at);
	if (!ret)
		ret = set_reserve(&s);
	if (!ret && s.n_changes) {
		ret = budget_set_many(s.changes, s.n_changes, &bad, &ref);
		if (ret) {
			at = s.entry_of[bad];
			for (i = 0; i < s.n_made; i++)
				xa_release(&hearth.tenants, hearth.next_tenant + 1 + i);
		}
		if (ret == -ENOSPC)
			hearth_refusal_fill(&a->out_refusal, &ref);
	}
	if (ret) {
		for (i = 0; i < s.n_made; i++)
			tenant_free(s.made[i]);
	} else {
		set_commit(&s, a->count);
	}
	mutex_unlock(&hearth.lock);
out:
	kvfree(s.entry_of);
	kvfree(s.changes);
	kvfree(s.made);
	kvfree(s.who);
	kvfree(s.e);
out_bad:
	a->out_bad = ret ? at : 0;
	return ret;
}
