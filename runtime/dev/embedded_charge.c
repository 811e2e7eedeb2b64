// SPDX-License-Identifier: MIT
/* Charges of embedded pools: purging, asking and waiting until one fits. */
#include "dev/embedded.h"

#include <errno.h>

#include "base/mono.h"

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

int emb_plain_charge(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t bytes,
			    unsigned wait_ms, struct hearth_err *err)
{
	struct emb *e = emb_of(t->h);
	int ret;

	pthread_mutex_lock(&e->lock);
	ret = emb_charge(e, emb_rec_of(t), emb_pool_of(pool), bytes, wait_ms, err);
	if (!ret)
		emb_account(emb_rec_of(t), emb_pool_of(pool))->plain += bytes;
	pthread_mutex_unlock(&e->lock);
	return ret;
}

int emb_plain_uncharge(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t bytes)
{
	struct emb_pool *p = emb_pool_of(pool);
	struct emb *e = emb_of(t->h);
	struct emb_account *acct;
	int ret = -EINVAL;

	pthread_mutex_lock(&e->lock);
	acct = emb_account(emb_rec_of(t), p);
	if (bytes <= acct->plain) {
		acct->plain -= bytes;
		emb_uncharge(e, emb_rec_of(t), p, bytes);
		ret = 0;
	}
	pthread_mutex_unlock(&e->lock);
	return ret;
}

int emb_available(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t *ret_now,
			 uint64_t *ret_with_purge)
{
	struct emb *e = emb_of(t->h);
	struct budget *b;

	pthread_mutex_lock(&e->lock);
	b = &emb_account(emb_rec_of(t), emb_pool_of(pool))->b;
	*ret_now = budget_available(b);
	*ret_with_purge = budget_available_with_purge(b, NULL);
	pthread_mutex_unlock(&e->lock);
	return 0;
}
