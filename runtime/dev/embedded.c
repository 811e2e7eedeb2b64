// SPDX-License-Identifier: MIT
/*
 * The embedded backend: pools, tenants, budgets, charges and waiting. What is
 * allowed is decided in kmod/core; here are the lock, the storage and the
 * clock that the core does without.
 */
#include "dev/embedded.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mono.h"

/* -- pools ---------------------------------------------------------------- */

static void pool_free(struct emb_pool *p)
{
	struct extent *node, *next;

	for (node = p->map.first; node; node = next) {
		next = node->next;
		free(node);
	}
	while ((node = extent_spare_get(&p->map)))
		free(node);
	if (p->fd >= 0)
		close(p->fd);
	free(p);
}

static int pool_make(struct emb *e, const struct hearth_pool_spec *spec, struct hearth_err *err)
{
	uint64_t size = spec->size;
	struct extent *node = NULL;
	struct emb_pool *p;
	char buf[DEV_BYTES_LEN];
	int ret;

	if (size > INT64_MAX - e->page)
		return err_set(err, -EINVAL, "pool %s: no pool can have %llu bytes", spec->name,
			       (unsigned long long)size);
	size = (size + e->page - 1) & ~(e->page - 1);
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_set(err, -ENOMEM, "no memory for pool %s", spec->name);
	p->fd = -1;
	p->base.h = &e->base;
	p->base.index = e->base.n_pools;
	p->base.kind = spec->kind;
	snprintf(p->base.name, sizeof(p->base.name), "%s", spec->name);
	budget_pool_init(&p->budget, size);
	pressure_init(&p->gauge, (uint64_t)mono_ns());
	pressure_rules_default(&p->rules, size);
	if (spec->kind != HEARTH_KIND_ACCOUNT) {
		node = malloc(sizeof(*node));
		if (!node) {
			pool_free(p);
			return err_set(err, -ENOMEM, "no memory for pool %s", spec->name);
		}
		extent_map_init(&p->map, size, e->page, node);
		p->fd = memfd_create(spec->name, MFD_CLOEXEC);
		if (p->fd < 0 || ftruncate(p->fd, (off_t)size)) {
			ret = -errno;
			pool_free(p);
			return err_set(err, ret, "pool %s of %s cannot be made: %s", spec->name,
				       text_bytes(size, buf), strerror(-ret));
		}
	}
	e->base.pools[e->base.n_pools++] = &p->base;
	return 0;
}

static int emb_pool_info(struct hearth_pool *pool, struct hearth_pool_info *ret_info)
{
	struct emb_pool *p = emb_pool_of(pool);
	struct emb *e = emb_of(pool->h);
	struct emb_rec *rec;

	memset(ret_info, 0, sizeof(*ret_info));
	memcpy(ret_info->name, pool->name, sizeof(ret_info->name));
	ret_info->kind = pool->kind;
	pthread_mutex_lock(&e->lock);
	ret_info->size = p->budget.size;
	ret_info->charged = p->budget.charged;
	ret_info->peak = p->budget.peak;
	ret_info->guaranteed = p->budget.min_sum;
	ret_info->claimable = p->budget.claimable;
	ret_info->largest_free = extent_largest(&p->map);
	ret_info->level = (enum hearth_level)p->gauge.level;
	ret_info->regions = p->n_objs;
	for (rec = e->first; rec; rec = rec->next)
		ret_info->tenants++;
	pthread_mutex_unlock(&e->lock);
	return 0;
}

/* The rules of a tenant's gauge follow its max and the pool's size. */
static void set_rules(struct emb_account *acct, const struct emb_pool *pool)
{
	pressure_rules_default(&acct->rules, core_min(acct->b.limits.max, pool->budget.size));
}

static int emb_pool_resize(struct hearth_pool *pool, uint64_t size, struct hearth_err *err)
{
	struct emb_pool *p = emb_pool_of(pool);
	struct emb *e = emb_of(pool->h);
	char a[DEV_BYTES_LEN], b[DEV_BYTES_LEN];
	struct budget_refusal ref;
	struct extent *node = NULL;
	uint64_t was, min_sum, charged;
	struct emb_rec *rec;
	int ret;

	if (size > INT64_MAX - e->page)
		return err_set(err, -EINVAL, "pool %s: no pool can have %llu bytes", pool->name,
			       (unsigned long long)size);
	size = (size + e->page - 1) & ~(e->page - 1);
	if (p->fd >= 0) {
		node = malloc(sizeof(*node));
		if (!node)
			return err_set(err, -ENOMEM, "no memory for pool %s", pool->name);
	}
	pthread_mutex_lock(&e->lock);
	was = p->budget.size;
	min_sum = p->budget.min_sum;
	charged = p->budget.charged;
	ret = budget_pool_resize(&p->budget, size, &ref);
	if (!ret && p->fd >= 0) {
		extent_spare_put(&p->map, node);
		node = NULL;
		ret = extent_resize(&p->map, size);
		if (!ret && ftruncate(p->fd, (off_t)size)) {
			ret = -errno;
			extent_resize(&p->map, was);
		}
		if (ret)
			budget_pool_resize(&p->budget, was, NULL);
	}
	if (!ret) {
		pressure_rules_default(&p->rules, size);
		emb_emit(e, NULL, p, (struct hearth_event){
			.type = HEARTH_EVENT_POOL_SIZE,
			.current = p->budget.charged,
			.limit = size,
		});
		for (rec = e->first; rec; rec = rec->next) {
			set_rules(emb_account(rec, p), p);
			emb_note(e, rec, p);
		}
		pthread_cond_broadcast(&e->wake);
	}
	pthread_mutex_unlock(&e->lock);
	free(node);
	if (ret == -ENOSPC)
		return err_set(err, ret, "pool %s cannot shrink to %s: %s of it is guaranteed",
			       pool->name, text_bytes(size, a), text_bytes(min_sum, b));
	if (ret == -EBUSY)
		return err_set(err, ret,
			       "pool %s cannot shrink to %s: %s is charged, and a region may lie past the new end",
			       pool->name, text_bytes(size, a), text_bytes(charged, b));
	return ret ? err_set(err, ret, "pool %s cannot be resized: %s", pool->name,
			     strerror(-ret)) : 0;
}

/* -- tenants -------------------------------------------------------------- */

static struct emb_rec *rec_find(struct emb *e, const char *name)
{
	struct emb_rec *rec;

	for (rec = e->first; rec; rec = rec->next) {
		if (!strcmp(rec->name, name))
			return rec;
	}
	return NULL;
}

static void rec_set_priority(struct emb *e, struct emb_rec *rec, int priority)
{
	rec->priority = priority;
	for (size_t i = 0; i < e->base.n_pools; i++)
		rec->acct[i].b.priority = priority;
}

static struct emb_rec *rec_make(struct emb *e, const char *name, enum hearth_class cls,
				int priority)
{
	struct emb_rec *rec;
	struct emb_pool *p;

	rec = calloc(1, sizeof(*rec) + e->base.n_pools * sizeof(rec->acct[0]));
	if (!rec)
		return NULL;
	snprintf(rec->name, sizeof(rec->name), "%s", name);
	rec->cls = cls;
	rec->priority = priority;
	rec->fresh = true;
	for (size_t i = 0; i < e->base.n_pools; i++) {
		p = emb_pool_of(e->base.pools[i]);
		budget_attach(&rec->acct[i].b, &p->budget, priority, rec);
		pressure_init(&rec->acct[i].gauge, (uint64_t)mono_ns());
		set_rules(&rec->acct[i], p);
	}
	rec->prev = e->last;
	if (e->last)
		e->last->next = rec;
	else
		e->first = rec;
	e->last = rec;
	return rec;
}

static void rec_unlink(struct emb *e, struct emb_rec *rec)
{
	for (size_t i = 0; i < e->base.n_pools; i++)
		budget_detach(&rec->acct[i].b);
	if (rec->prev)
		rec->prev->next = rec->next;
	else
		e->first = rec->next;
	if (rec->next)
		rec->next->prev = rec->prev;
	else
		e->last = rec->prev;
	free(rec);
}

/* Says once that it is there: when it is sure to stay. */
static void announce(struct emb *e, struct emb_rec *rec)
{
	if (!rec->fresh)
		return;
	rec->fresh = false;
	emb_emit(e, rec, NULL, (struct hearth_event){ .type = HEARTH_EVENT_TENANT_NEW });
}

static bool rec_idle(struct emb *e, const struct emb_rec *rec)
{
	for (size_t i = 0; i < e->base.n_pools; i++) {
		if (rec->acct[i].b.used)
			return false;
	}
	return true;
}

void emb_rec_put(struct emb *e, struct emb_rec *rec)
{
	if (rec->handle || rec->kept || !rec_idle(e, rec))
		return;
	emb_emit(e, rec, NULL, (struct hearth_event){ .type = HEARTH_EVENT_TENANT_GONE });
	for (struct emb_stream *s = e->streams; s; s = s->next) {
		if (s->rec == rec)
			s->rec = NULL;
	}
	rec_unlink(e, rec);
	pthread_cond_broadcast(&e->wake);
}

static int emb_tenant_open(struct hearth *h, const char *name, enum hearth_class cls,
			   int priority, struct hearth_tenant **ret_t, struct hearth_err *err)
{
	struct emb *e = emb_of(h);
	struct emb_tenant *t;
	struct emb_rec *rec;

	t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(err, -ENOMEM, "no memory for tenant %s", name);
	t->base.h = h;
	memcpy(t->base.name, name, sizeof(t->base.name));
	pthread_mutex_lock(&e->lock);
	rec = rec_find(e, name);
	if (rec && rec->handle) {
		pthread_mutex_unlock(&e->lock);
		free(t);
		return err_set(err, -EEXIST, "tenant %s is open already", name);
	}
	if (!rec) {
		rec = rec_make(e, name, cls, priority);
	} else if (!rec->kept) {
		rec->cls = cls;
		rec_set_priority(e, rec, priority);
	}
	if (rec) {
		rec->handle = t;
		t->rec = rec;
		announce(e, rec);
	}
	pthread_mutex_unlock(&e->lock);
	if (!rec) {
		free(t);
		return err_set(err, -ENOMEM, "no memory for tenant %s", name);
	}
	*ret_t = &t->base;
	return 0;
}

static void emb_tenant_close(struct hearth_tenant *tenant)
{
	struct emb_tenant *t = (struct emb_tenant *)tenant;
	struct emb *e = emb_of(tenant->h);
	struct emb_rec *rec = t->rec;

	while (t->regions)
		emb_region_close(&t->regions->base, false);
	pthread_mutex_lock(&e->lock);
	for (size_t i = 0; i < e->base.n_pools; i++) {
		struct emb_account *acct = &rec->acct[i];

		if (acct->plain) {
			emb_uncharge(e, rec, emb_pool_of(e->base.pools[i]), acct->plain);
			acct->plain = 0;
		}
	}
	rec->handle = NULL;
	emb_rec_put(e, rec);
	pthread_mutex_unlock(&e->lock);
	free(t);
}

static int emb_tenant_fd(const struct hearth_tenant *t)
{
	return -EOPNOTSUPP;
}

static int emb_tenant_remove(struct hearth *h, const char *name, struct hearth_err *err)
{
	struct emb *e = emb_of(h);
	struct emb_rec *rec;
	int ret = 0;

	pthread_mutex_lock(&e->lock);
	rec = rec_find(e, name);
	if (!rec) {
		ret = err_set(err, -ENOENT, "there is no tenant %s", name);
	} else if (rec->handle) {
		ret = err_set(err, -EBUSY, "tenant %s is open", name);
	} else if (!rec_idle(e, rec)) {
		ret = err_set(err, -EBUSY, "tenant %s holds memory; drop its regions first", name);
	} else {
		rec->kept = false;
		emb_rec_put(e, rec);
	}
	pthread_mutex_unlock(&e->lock);
	return ret;
}

/* -- charges -------------------------------------------------------------- */

int emb_refuse(struct hearth_err *err, int code, const struct emb_rec *rec,
	       const struct emb_pool *pool, const struct budget_refusal *ref)
{
	static const enum text_limit limits[] = {
		[BUDGET_BY_MAX] = TEXT_BY_MAX,     [BUDGET_BY_POOL] = TEXT_BY_POOL,
		[BUDGET_BY_MIN] = TEXT_BY_MIN,     [BUDGET_BY_QUEUE] = TEXT_BY_QUEUE,
		[BUDGET_BY_ORDER] = TEXT_BY_ORDER, [BUDGET_BY_SUM] = TEXT_BY_SUM,
	};
	const struct emb_rec *holder = ref->holder ? ref->holder->owner : NULL;

	return text_refuse(err, code, &(struct text_refusal){
		.limit = limits[ref->limit],
		.tenant = rec->name,
		.pool = pool->base.name,
		.holder = holder ? holder->name : "",
		.wanted = ref->wanted,
		.limit_bytes = ref->limit_bytes,
		.available = ref->available,
		.holder_bytes = ref->holder_bytes,
	});
}

void emb_note(struct emb *e, struct emb_rec *rec, struct emb_pool *pool)
{
	struct emb_account *acct = emb_account(rec, pool);

	emb_gauge(e, &acct->gauge, &acct->rules, acct->b.used, rec, pool);
	emb_gauge(e, &pool->gauge, &pool->rules, pool->budget.charged, NULL, pool);
}

static uint64_t available(const struct budget *b, const struct budget_waiter *w)
{
	return w ? budget_wait_available(w) : budget_available(b);
}

/* Takes purgeable regions of others where that makes @n fit; else nothing. */
static void purge_for(struct emb *e, struct budget *b, uint64_t n, const struct budget_waiter *w)
{
	struct budget *victim;
	struct emb_rec *rec;

	if (n <= available(b, w) || n > budget_available_with_purge(b, w))
		return;
	while (n > available(b, w)) {
		victim = budget_purge_victim(b);
		if (!victim)
			return;
		rec = victim->owner;
		for (size_t i = 0; i < e->base.n_pools; i++) {
			if (&rec->acct[i].b == victim) {
				/* may be the last that a tenant nobody has open held */
				emb_purge_oldest(e, &rec->acct[i]);
				break;
			}
		}
	}
	/* whole regions were taken: what is left over may serve who waits */
	pthread_cond_broadcast(&e->wake);
}

/* Asks those who can give back for what is missing. */
static void ask_for(struct emb *e, struct emb_pool *pool, const struct budget_waiter *w,
		    uint64_t deadline)
{
	uint64_t want = core_sub_floor(w->n, budget_wait_available(w)), bytes;
	struct budget *b = w->b, *from = NULL;

	while (want && (from = budget_reclaim_next(b, from, want, &bytes))) {
		from->n.reclaim++;
		emb_emit(e, from->owner, pool, (struct hearth_event){
			.type = HEARTH_EVENT_RECLAIM,
			.bytes = bytes,
			.current = from->used,
			.limit = from->limits.low,
			.deadline_ns = deadline,
		});
		want -= bytes;
	}
}

/* Waits until the waiter is served or the time is up. 0 or -ETIMEDOUT. */
static int wait_for(struct emb *e, struct emb_pool *pool, struct budget *b, uint64_t n,
		    unsigned wait_ms, bool *ret_over, struct budget_refusal *ref)
{
	uint64_t deadline = (uint64_t)mono_ns() + wait_ms * 1000000ull;
	struct timespec ts = {
		.tv_sec = (time_t)(deadline / 1000000000u),
		.tv_nsec = (long)(deadline % 1000000000u),
	};
	struct budget_waiter w = { 0 };
	int late = 0, ret;

	budget_wait_begin(&w, b, n);
	ask_for(e, pool, &w, deadline);
	for (;;) {
		purge_for(e, b, n, &w);
		ret = budget_wait_charge(&w, ret_over, ref);
		if (!ret || late || ref->limit == BUDGET_BY_MAX)
			break;
		late = pthread_cond_timedwait(&e->wake, &e->lock, &ts);
	}
	budget_wait_end(&w);
	/* those behind it may fit now */
	pthread_cond_broadcast(&e->wake);
	return ret ? (ref->limit == BUDGET_BY_MAX ? -ENOSPC : -ETIMEDOUT) : 0;
}

int emb_charge(struct emb *e, struct emb_rec *rec, struct emb_pool *pool, uint64_t n,
	       unsigned wait_ms, struct hearth_err *err)
{
	struct budget *b = &emb_account(rec, pool)->b;
	struct budget_refusal ref = { 0 };
	bool over = false;
	int ret = -ENOSPC;

	purge_for(e, b, n, NULL);
	if (wait_ms && n > budget_available(b) && n <= core_sub_floor(b->limits.max, b->used)) {
		ret = wait_for(e, pool, b, n, wait_ms, &over, &ref);
		/* counts the refusal, and gives the last word to what is free now */
		if (ret && !budget_charge(b, n, &over, &ref))
			ret = 0;
	} else {
		ret = budget_charge(b, n, &over, &ref);
	}
	if (ret) {
		emb_emit(e, rec, pool, (struct hearth_event){
			.type = HEARTH_EVENT_REFUSED,
			.bytes = n,
			.current = b->used,
			.limit = ref.limit,
		});
		return emb_refuse(err, ret, rec, pool, &ref);
	}
	if (over)
		emb_emit(e, rec, pool, (struct hearth_event){
			.type = HEARTH_EVENT_HIGH,
			.bytes = n,
			.current = b->used,
			.limit = b->limits.high,
		});
	emb_note(e, rec, pool);
	return 0;
}

void emb_uncharge(struct emb *e, struct emb_rec *rec, struct emb_pool *pool, uint64_t n)
{
	budget_uncharge(&emb_account(rec, pool)->b, n);
	emb_note(e, rec, pool);
	pthread_cond_broadcast(&e->wake);
}

void emb_charge_undo(struct emb *e, struct emb_rec *rec, struct emb_pool *pool, uint64_t n)
{
	budget_charge_undo(&emb_account(rec, pool)->b, n);
	emb_note(e, rec, pool);
	pthread_cond_broadcast(&e->wake);
}

static struct emb_rec *rec_of(const struct hearth_tenant *t)
{
	return ((const struct emb_tenant *)t)->rec;
}

static int emb_plain_charge(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t bytes,
			    unsigned wait_ms, struct hearth_err *err)
{
	struct emb *e = emb_of(t->h);
	int ret;

	pthread_mutex_lock(&e->lock);
	ret = emb_charge(e, rec_of(t), emb_pool_of(pool), bytes, wait_ms, err);
	if (!ret)
		emb_account(rec_of(t), emb_pool_of(pool))->plain += bytes;
	pthread_mutex_unlock(&e->lock);
	return ret;
}

static int emb_plain_uncharge(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t bytes)
{
	struct emb_pool *p = emb_pool_of(pool);
	struct emb *e = emb_of(t->h);
	struct emb_account *acct;
	int ret = -EINVAL;

	pthread_mutex_lock(&e->lock);
	acct = emb_account(rec_of(t), p);
	if (bytes <= acct->plain) {
		acct->plain -= bytes;
		emb_uncharge(e, rec_of(t), p, bytes);
		ret = 0;
	}
	pthread_mutex_unlock(&e->lock);
	return ret;
}

static int emb_available(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t *ret_now,
			 uint64_t *ret_with_purge)
{
	struct emb *e = emb_of(t->h);
	struct budget *b;

	pthread_mutex_lock(&e->lock);
	b = &emb_account(rec_of(t), emb_pool_of(pool))->b;
	*ret_now = budget_available(b);
	*ret_with_purge = budget_available_with_purge(b, NULL);
	pthread_mutex_unlock(&e->lock);
	return 0;
}

/* -- budgets -------------------------------------------------------------- */

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

	set_rules(acct, pool);
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

static int emb_budget_set(struct hearth_tenant *t, struct hearth_pool *pool,
			  const struct hearth_budget *b, struct hearth_err *err)
{
	struct emb_pool *p = emb_pool_of(pool);
	struct budget_limits l = limits_of(b);
	struct emb_rec *rec = rec_of(t);
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
		rec = rec_find(e, lines[i].tenant);
		if (!rec) {
			rec = rec_make(e, lines[i].tenant, lines[i].cls, lines[i].priority);
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

static int emb_budget_apply(struct hearth *h, const struct hearth_budget_line *lines, size_t n,
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
			rec_unlink(e, e->last);
		if (ret_bad)
			*ret_bad = bad;
	}
	for (size_t i = 0; i < n && !ret; i++) {
		rec = changes[i].b->owner;
		announce(e, rec);
		rec->kept = true;
		rec->cls = lines[i].cls;
		rec_set_priority(e, rec, lines[i].priority);
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

static int emb_usage_get(struct hearth_tenant *t, struct hearth_pool *pool,
			 struct hearth_usage *ret_u)
{
	struct emb *e = emb_of(t->h);

	pthread_mutex_lock(&e->lock);
	fill_usage(emb_account(rec_of(t), emb_pool_of(pool)), ret_u);
	pthread_mutex_unlock(&e->lock);
	return 0;
}

static int emb_peak_reset(struct hearth_tenant *t, struct hearth_pool *pool)
{
	struct emb *e = emb_of(t->h);
	struct budget *b;

	pthread_mutex_lock(&e->lock);
	b = &emb_account(rec_of(t), emb_pool_of(pool))->b;
	b->peak = b->used;
	pthread_mutex_unlock(&e->lock);
	return 0;
}

static int emb_state(struct hearth *h, struct hearth_state_row **ret_rows, size_t *ret_n,
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

static int emb_admin(struct hearth *h, struct hearth_err *err)
{
	return 0;
}

static int emb_pool_create(struct hearth *h, const struct hearth_pool_spec *spec,
			   struct hearth_err *err)
{
	return err_set(err, -EOPNOTSUPP,
		       "pool %s cannot be made: embedded pools are made when they are opened",
		       spec->name);
}

static int emb_pool_remove(struct hearth_pool *pool, struct hearth_err *err)
{
	return err_set(err, -EOPNOTSUPP,
		       "pool %s cannot be removed: embedded pools go when they are closed",
		       pool->name);
}

/* -- connection ----------------------------------------------------------- */

static void emb_close(struct hearth *h)
{
	struct emb *e = emb_of(h);
	struct emb_rec *rec, *next;

	emb_ticker_stop(e);
	while (e->streams)
		emb_events_close(&e->streams->base);
	for (rec = e->first; rec; rec = next) {
		next = rec->next;
		if (rec->handle)
			emb_tenant_close(&rec->handle->base);
	}
	pthread_mutex_lock(&e->lock);
	for (size_t i = 0; i < h->n_pools; i++) {
		while (emb_pool_of(h->pools[i])->first)
			emb_obj_destroy(e, emb_pool_of(h->pools[i])->first, NULL);
	}
	for (rec = e->first; rec; rec = next) {
		next = rec->next;
		rec_unlink(e, rec);
	}
	pthread_mutex_unlock(&e->lock);
	for (size_t i = 0; i < h->n_pools; i++)
		pool_free(emb_pool_of(h->pools[i]));
	pthread_cond_destroy(&e->tick);
	pthread_cond_destroy(&e->wake);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

static const struct hearth_ops embedded_ops = {
	.close = emb_close,
	.admin = emb_admin,
	.pool_create = emb_pool_create,
	.pool_remove = emb_pool_remove,
	.pool_info = emb_pool_info,
	.pool_resize = emb_pool_resize,
	.tenant_open = emb_tenant_open,
	.tenant_close = emb_tenant_close,
	.tenant_fd = emb_tenant_fd,
	.tenant_remove = emb_tenant_remove,
	.budget_set = emb_budget_set,
	.budget_apply = emb_budget_apply,
	.usage_get = emb_usage_get,
	.peak_reset = emb_peak_reset,
	.available = emb_available,
	.charge = emb_plain_charge,
	.uncharge = emb_plain_uncharge,
	.region_alloc = emb_region_alloc,
	.region_close = emb_region_close,
	.region_seal = emb_region_seal,
	.region_name = emb_region_name,
	.region_find = emb_region_find,
	.region_purgeable = emb_region_purgeable,
	.region_take_back = emb_region_take_back,
	.region_share = emb_region_share,
	.region_import = emb_region_import,
	.region_export = emb_region_export,
	.region_drop = emb_region_drop,
	.events_open = emb_events_open,
	.events_close = emb_events_close,
	.events_read = emb_events_read,
	.state = emb_state,
	.system = emb_system,
	.regions = emb_regions,
};

int embedded_open(const struct hearth_options *o, struct hearth **ret_h, struct hearth_err *err)
{
	pthread_condattr_t attr;
	struct emb *e;
	int ret;

	e = calloc(1, sizeof(*e));
	if (!e)
		return err_set(err, -ENOMEM, "no memory for the embedded pools");
	e->base.ops = &embedded_ops;
	e->base.backend = HEARTH_BACKEND_EMBEDDED;
	e->page = (uint64_t)sysconf(_SC_PAGESIZE);
	snprintf(e->base.text, sizeof(e->base.text), "embedded pools (%s)",
		 o->backend == HEARTH_BACKEND_AUTO ? "no /dev/hearth" : "as asked");
	pthread_mutex_init(&e->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&e->wake, &attr);
	pthread_cond_init(&e->tick, &attr);
	pthread_condattr_destroy(&attr);
	for (size_t i = 0; i < o->n_pools; i++) {
		ret = pool_make(e, &o->pools[i], err);
		if (ret) {
			emb_close(&e->base);
			return ret;
		}
	}
	*ret_h = &e->base;
	return 0;
}
