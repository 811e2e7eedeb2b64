// SPDX-License-Identifier: GPL-2.0-only
/*
 * The calls about tenants' budgets: look at one, set many, all or nothing. What
 * comes from the user is copied and checked before hearth.lock is taken. With
 * it, all that can fail (tenants that the set makes, their places in the table,
 * the limits) is done before the first change that anybody can see.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "priv.h"

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
		struct hearth_tenant *t;

		*ret_bad = i;
		if (e->pool) {
			pool = hearth_pool_get(e->pool);
			if (!pool)
				return -ENOENT;
		}
		if (e->mask & HEARTH_BUDGET_DEFAULT)
			continue;
		t = hearth_tenant_pick(0, HEARTH_GET_BY_NAME, e->tenant) ?:
		    made_named(s->made, s->n_made, e->tenant);
		if (!t) {
			if (!(e->mask & HEARTH_SET_CREATE))
				return -ENOENT;
			if (s->n_made + hearth.n_tenants >= HEARTH_TENANTS_MAX)
				return -EOVERFLOW;
			ret = hearth_tenant_new(e->tenant, HEARTH_TENANT_OTHER, 0, &t);
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
		hearth_tenant_publish(s->made[i], ++hearth.next_tenant);
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
			hearth_tenant_free(s.made[i]);
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
