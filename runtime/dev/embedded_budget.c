// SPDX-License-Identifier: MIT
/* Budgets of embedded pools: setting them, and what is used of them. */
#include "dev/embedded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct budget_limits limits_of(const struct hearth_budget *b)
{
	return (struct budget_limits){ .min = b->min, .low = b->low, .high = b->high,
				       .max = b->max };
}

/* What follows a change of limits: events, gauges, a request to give back. */
static void limits_changed(struct emb *e, struct emb_rec *rec, struct emb_pool *pool)
{
	struct emb_account *acct = emb_account(rec, pool);
	uint64_t excess = budget_excess(&acct->b);

	emb_set_rules(acct, pool);
	emb_emit(e, rec, pool, (struct hearth_event){
		.type = HEARTH_EVENT_BUDGET,
		.current = acct->b.used,
		.limit = acct->b.limits.max,
	});
	if (excess) {
		acct->b.n.reclaim++;
		emb_emit(e, rec, pool, (struct hearth_event){
			.type = HEARTH_EVENT_RECLAIM,
			.bytes = excess,
			.current = acct->b.used,
			.limit = core_min(acct->b.limits.high, acct->b.limits.max),
		});
	}
	emb_note(e, rec, pool);
	pthread_cond_broadcast(&e->wake);
}

int emb_budget_set(struct hearth_tenant *t, struct hearth_pool *pool,
			  const struct hearth_budget *b, struct hearth_err *err)
{
	struct emb_pool *p = emb_pool_of(pool);
	struct budget_limits l = limits_of(b);
	struct emb_rec *rec = emb_rec_of(t);
	struct emb *e = emb_of(t->h);
	struct budget_refusal ref;
	int ret;

	pthread_mutex_lock(&e->lock);
	ret = budget_set_limits(&emb_account(rec, p)->b, &l, NULL, &ref);
	if (ret)
		emb_refuse(err, ret, rec, p, &ref);
	else
		limits_changed(e, rec, p);
	pthread_mutex_unlock(&e->lock);
	return ret;
}

/* Makes the tenants that are not there; *ret_made of them, at the list's end. */
static int apply_tenants(struct emb *e, const struct hearth_budget_line *lines, size_t n,
			 struct budget_change *changes, size_t *ret_made, size_t *ret_bad,
			 struct hearth_err *err)
{
	struct emb_rec *rec;

	for (size_t i = 0; i < n; i++) {
		*ret_bad = i;
		rec = emb_rec_find(e, lines[i].tenant);
		if (!rec) {
			rec = emb_rec_make(e, lines[i].tenant, lines[i].cls, lines[i].priority);
			if (!rec)
				return err_set(err, -ENOMEM, "no memory for tenant %s",
					       lines[i].tenant);
			++*ret_made;
		}
		for (size_t k = 0; k < i; k++) {
			if (!strcmp(lines[k].tenant, lines[i].tenant) &&
			    (lines[k].cls != lines[i].cls ||
			     lines[k].priority != lines[i].priority))
				return err_set(err, -EINVAL,
					       "tenant %s has two classes or two priorities",
					       lines[i].tenant);
			if (!strcmp(lines[k].tenant, lines[i].tenant) &&
			    !strcmp(lines[k].pool, lines[i].pool))
				return err_set(err, -EINVAL, "tenant %s has two budgets in pool %s",
					       lines[i].tenant, lines[i].pool);
		}
		changes[i].b = &emb_account(rec, emb_pool_of(hearth_pool_named(&e->base,
						lines[i].pool)))->b;
		changes[i].limits = limits_of(&lines[i].budget);
	}
	return 0;
}

int emb_budget_apply(struct hearth *h, const struct hearth_budget_line *lines, size_t n,
			    size_t *ret_bad, struct hearth_err *err)
{
	struct budget_change *changes;
	struct budget_refusal ref = { 0 };
	struct emb *e = emb_of(h);
	size_t made = 0, bad = 0;
	struct emb_rec *rec;
	int ret;

	changes = calloc(n, sizeof(*changes));
	if (!changes)
		return err_set(err, -ENOMEM, "no memory for %zu budgets", n);
	pthread_mutex_lock(&e->lock);
	ret = apply_tenants(e, lines, n, changes, &made, &bad, err);
	if (!ret) {
		ret = budget_set_many(changes, n, &bad, &ref);
		if (ret)
			emb_refuse(err, ret, changes[bad].b->owner,
				   emb_pool_of(hearth_pool_named(h, lines[bad].pool)), &ref);
	}
	if (ret) {
		while (made--)
			emb_rec_unlink(e, e->last);
		if (ret_bad)
			*ret_bad = bad;
	}
	for (size_t i = 0; i < n && !ret; i++) {
		rec = changes[i].b->owner;
		emb_rec_announce(e, rec);
		rec->kept = true;
		rec->cls = lines[i].cls;
		emb_rec_set_priority(e, rec, lines[i].priority);
		limits_changed(e, rec, emb_pool_of(hearth_pool_named(h, lines[i].pool)));
	}
	pthread_mutex_unlock(&e->lock);
	free(changes);
	return ret;
}

static void fill_usage(const struct emb_account *acct, struct hearth_usage *u)
{
	const struct budget *b = &acct->b;

	*u = (struct hearth_usage){
		.budget = { .min = b->limits.min, .low = b->limits.low,
			    .high = b->limits.high, .max = b->limits.max },
		.current = b->used,
		.peak = b->peak,
		.purgeable = b->purgeable,
		.n_charge = b->n.charges,
		.n_refused_max = b->n.refused_max,
		.n_refused_pool = b->n.refused_pool,
		.n_refused_min = b->n.refused_min,
		.n_refused_queue = b->n.refused_queue,
		.n_high = b->n.high,
		.n_reclaim = b->n.reclaim,
		.n_purged = b->n.purged,
		.purged_bytes = b->n.purged_bytes,
	};
}

int emb_usage_get(struct hearth_tenant *t, struct hearth_pool *pool,
			 struct hearth_usage *ret_u)
{
	struct emb *e = emb_of(t->h);

	pthread_mutex_lock(&e->lock);
	fill_usage(emb_account(emb_rec_of(t), emb_pool_of(pool)), ret_u);
	pthread_mutex_unlock(&e->lock);
	return 0;
}

int emb_peak_reset(struct hearth_tenant *t, struct hearth_pool *pool)
{
	struct emb *e = emb_of(t->h);
	struct budget *b;

	pthread_mutex_lock(&e->lock);
	b = &emb_account(emb_rec_of(t), emb_pool_of(pool))->b;
	b->peak = b->used;
	pthread_mutex_unlock(&e->lock);
	return 0;
}

int emb_state(struct hearth *h, struct hearth_state_row **ret_rows, size_t *ret_n,
		     uint64_t *ret_seq)
{
	struct hearth_state_row *rows, *row;
	struct emb *e = emb_of(h);
	struct emb_rec *rec;
	size_t n = 0;

	pthread_mutex_lock(&e->lock);
	for (rec = e->first; rec; rec = rec->next)
		n += h->n_pools;
	rows = calloc(n ? n : 1, sizeof(*rows));
	row = rows;
	for (rec = e->first; rec && rows; rec = rec->next) {
		for (size_t i = 0; i < h->n_pools; i++, row++) {
			memcpy(row->tenant, rec->name, sizeof(row->tenant));
			row->cls = rec->cls;
			row->priority = rec->priority;
			row->open = rec->handle;
			row->kept = rec->kept;
			memcpy(row->pool, h->pools[i]->name, sizeof(row->pool));
			row->kind = h->pools[i]->kind;
			row->level = (enum hearth_level)rec->acct[i].gauge.level;
			fill_usage(&rec->acct[i], &row->usage);
		}
	}
	if (rows && ret_seq)
		*ret_seq = e->seq;
	pthread_mutex_unlock(&e->lock);
	if (!rows)
		return -ENOMEM;
	*ret_rows = rows;
	*ret_n = n;
	return 0;
}
