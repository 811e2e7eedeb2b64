// SPDX-License-Identifier: MIT
/* Charges and budgets of /dev/hearth. */
#include "dev/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int dev_charge(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t bytes,
		      unsigned wait_ms, struct hearth_err *err)
{
	struct hearth_ioc_charge c = {
		.size = sizeof(c),
		.pool = dev_pool_id(pool),
		.bytes = bytes,
		.deadline = dev_deadline(wait_ms),
	};
	char what[80];
	int ret;

	ret = dev_call(dev_tenant_fd(t), HEARTH_IOC_CHARGE, &c);
	snprintf(what, sizeof(what), "tenant %s cannot be charged", t->name);
	return ret ? dev_refuse(err, ret, t->name, pool, &c.out_refusal, what) : 0;
}

int dev_uncharge(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t bytes)
{
	struct hearth_ioc_uncharge c = {
		.size = sizeof(c), .pool = dev_pool_id(pool), .bytes = bytes,
	};

	return dev_call(dev_tenant_fd(t), HEARTH_IOC_UNCHARGE, &c);
}

int dev_budget_get(int fd, uint32_t tenant, uint32_t pool, uint32_t flags,
		      struct hearth_ioc_budget_get *get)
{
	memset(get, 0, sizeof(*get));
	get->size = sizeof(*get);
	get->flags = flags;
	get->tenant = tenant;
	get->pool = pool;
	return dev_call(fd, HEARTH_IOC_BUDGET_GET, get);
}

void dev_fill_usage(const struct hearth_ioc_budget_get *get, struct hearth_usage *u)
{
	*u = (struct hearth_usage){
		.budget = { .min = get->out_min, .low = get->out_low,
			    .high = get->out_high, .max = get->out_max },
		.current = get->out_current,
		.peak = get->out_peak,
		.purgeable = get->out_purgeable,
		.n_charge = get->out_n_charge,
		.n_refused_max = get->out_n_refused_max,
		.n_refused_pool = get->out_n_refused_pool,
		.n_refused_min = get->out_n_refused_min,
		.n_refused_queue = get->out_n_refused_queue,
		.n_high = get->out_n_high,
		.n_reclaim = get->out_n_reclaim,
		.n_purged = get->out_n_purged,
		.purged_bytes = get->out_purged_bytes,
	};
}

int dev_usage_get(struct hearth_tenant *t, struct hearth_pool *pool,
			 struct hearth_usage *ret_u)
{
	struct hearth_ioc_budget_get get;
	int ret = dev_budget_get(dev_tenant_fd(t), 0, dev_pool_id(pool), 0, &get);

	if (!ret)
		dev_fill_usage(&get, ret_u);
	return ret;
}

int dev_peak_reset(struct hearth_tenant *t, struct hearth_pool *pool)
{
	struct hearth_ioc_budget_get get;

	return dev_budget_get(dev_tenant_fd(t), 0, dev_pool_id(pool), HEARTH_BUDGET_RESET_PEAK, &get);
}

int dev_available(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t *ret_now,
			 uint64_t *ret_with_purge)
{
	struct hearth_ioc_budget_get get;
	int ret = dev_budget_get(dev_tenant_fd(t), 0, dev_pool_id(pool), 0, &get);

	if (ret)
		return ret;
	*ret_now = get.out_available;
	*ret_with_purge = get.out_available_purge;
	return 0;
}

static void fill_entry(struct hearth_budget_entry *e, const char *tenant, uint32_t pool,
		       const struct hearth_budget *b)
{
	memset(e, 0, sizeof(*e));
	e->size = sizeof(*e);
	e->mask = HEARTH_SET_MIN | HEARTH_SET_LOW | HEARTH_SET_HIGH | HEARTH_SET_MAX;
	snprintf(e->tenant, sizeof(e->tenant), "%s", tenant);
	e->pool = pool;
	e->min = b->min;
	e->low = b->low;
	e->high = b->high;
	e->max = b->max;
}

static int budgets_set(struct dev *d, struct hearth_budget_entry *entries, size_t n,
		       struct hearth_ioc_budget_set *set)
{
	memset(set, 0, sizeof(*set));
	set->size = sizeof(*set);
	set->entries = (uint64_t)(uintptr_t)entries;
	set->count = (uint32_t)n;
	set->stride = sizeof(*entries);
	return dev_call(d->fd, HEARTH_IOC_BUDGET_SET, set);
}

/* EINVAL of a set has causes that the kernel has no room to tell apart. */
static int budget_refused(struct hearth_err *err, int ret, const char *tenant,
			  const struct hearth_pool *pool, const struct hearth_budget *b,
			  const struct hearth_refusal *ref)
{
	char what[120];

	if (ret == -EINVAL && b->min > b->max)
		return text_refuse(err, ret, &(struct text_refusal){
			.limit = TEXT_BY_ORDER, .tenant = tenant, .pool = pool->name,
			.wanted = b->min, .limit_bytes = b->max });
	if (ret == -ENOENT)
		return err_set(err, ret, "there is no tenant %s, or no pool %s", tenant, pool->name);
	snprintf(what, sizeof(what), "the budget of tenant %s in pool %s", tenant, pool->name);
	return dev_refuse(err, ret, tenant, pool, ref, what);
}

int dev_budget_set(struct hearth_tenant *t, struct hearth_pool *pool,
			  const struct hearth_budget *b, struct hearth_err *err)
{
	struct hearth_ioc_budget_set set;
	struct hearth_budget_entry e;
	int ret;

	fill_entry(&e, t->name, dev_pool_id(pool), b);
	ret = budgets_set(dev_of(t->h), &e, 1, &set);
	return ret ? budget_refused(err, ret, t->name, pool, b, &set.out_refusal) : 0;
}

int dev_budget_apply(struct hearth *h, const struct hearth_budget_line *lines, size_t n,
			    size_t *ret_bad, struct hearth_err *err)
{
	struct hearth_ioc_budget_set set;
	struct hearth_budget_entry *e;
	size_t bad;
	int ret;

	if (n > HEARTH_BUDGETS_MAX)
		return err_set(err, -EINVAL, "%zu budgets at once are more than %d", n,
			       HEARTH_BUDGETS_MAX);
	e = calloc(n, sizeof(*e));
	if (!e)
		return err_set(err, -ENOMEM, "no memory for %zu budgets", n);
	for (size_t i = 0; i < n; i++) {
		fill_entry(&e[i], lines[i].tenant, dev_pool_id(hearth_pool_named(h, lines[i].pool)),
			   &lines[i].budget);
		e[i].mask |= HEARTH_SET_CREATE | HEARTH_SET_CLASS | HEARTH_SET_PRIORITY;
		e[i].tenant_class = (uint32_t)lines[i].cls;
		e[i].priority = (uint32_t)lines[i].priority;
	}
	ret = budgets_set(dev_of(h), e, n, &set);
	free(e);
	if (!ret)
		return 0;
	bad = set.out_bad < n ? set.out_bad : 0;
	if (ret_bad)
		*ret_bad = bad;
	if (ret == -EINVAL) {
		for (size_t k = 0; k < bad; k++) {
			if (!strcmp(lines[k].tenant, lines[bad].tenant) &&
			    !strcmp(lines[k].pool, lines[bad].pool))
				return err_set(err, ret, "tenant %s has two budgets in pool %s",
					       lines[bad].tenant, lines[bad].pool);
		}
	}
	return budget_refused(err, ret, lines[bad].tenant, hearth_pool_named(h, lines[bad].pool),
			      &lines[bad].budget, &set.out_refusal);
}
