// SPDX-License-Identifier: GPL-2.0-only
/*
 * Charging: the rules are kmod/core/budget.c; here is what is done about a
 * refusal. In order: purgeable regions of others are taken; then, if the caller
 * has time, those who can give back are asked to, and the caller waits in the
 * pool's queue; then it is refused.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/sched/signal.h>

#include "priv.h"
#include "trace.h"

/* How often a waiter repeats its request to give back. */
#define ASK_AGAIN_NS NSEC_PER_SEC
/* How often a refused tenant is announced, at most, in each pool. */
#define REFUSED_EVERY_NS (100 * NSEC_PER_MSEC)

void hearth_refusal_fill(struct hearth_refusal *out, const struct budget_refusal *r)
{
	const struct hearth_budget *hb = to_hb(r->holder);

	BUILD_BUG_ON((int)HEARTH_LIMIT_MAX != (int)BUDGET_BY_MAX);
	BUILD_BUG_ON((int)HEARTH_LIMIT_POOL != (int)BUDGET_BY_POOL);
	BUILD_BUG_ON((int)HEARTH_LIMIT_MIN != (int)BUDGET_BY_MIN);
	BUILD_BUG_ON((int)HEARTH_LIMIT_QUEUE != (int)BUDGET_BY_QUEUE);
	BUILD_BUG_ON((int)HEARTH_LIMIT_ORDER != (int)BUDGET_BY_ORDER);
	BUILD_BUG_ON((int)HEARTH_LIMIT_SUM != (int)BUDGET_BY_SUM);

	memset(out, 0, sizeof(*out));
	out->limit = r->limit;
	out->wanted = r->wanted;
	out->limit_bytes = r->limit_bytes;
	out->available = r->available;
	if (hb) {
		out->holder = hb->tenant->id;
		out->holder_bytes = r->holder_bytes;
		memcpy(out->holder_name, hb->tenant->name, HEARTH_NAME_MAX);
	}
}

/* Admitted, but what is free is in pieces that do not serve. */
void hearth_refusal_pieces(struct hearth_refusal *out, struct hearth_pool *pool, u64 wanted)
{
	memset(out, 0, sizeof(*out));
	out->limit = HEARTH_LIMIT_PIECES;
	out->wanted = wanted;
	out->limit_bytes = extent_largest(&pool->map);
	out->available = extent_largest(&pool->map);
}

/* Those who wait in the pool may try again. */
void hearth_wake(struct hearth_pool *pool)
{
	lockdep_assert_held(&hearth.lock);
	if (pool->waiters)
		wake_up_all(&pool->wait);
}

/* A charge stands: says so. */
void hearth_charged(struct hearth_budget *hb, u64 n, bool over_high)
{
	trace_hearth_charge(hb, n);
	if (over_high) {
		struct hearth_event_record ev = {
			.kind = HEARTH_EV_HIGH,
			.tenant = hb->tenant->id,
			.pool = hb->pool->id,
			.current_bytes = hb->b.used,
			.limit = hb->b.limits.high,
			.bytes = n,
		};

		hearth_event(&ev);
	}
	hearth_pressure_tenant(hb);
	hearth_pressure_pool(hb->pool);
}

static void refused(struct hearth_budget *hb, u64 n, const struct budget_refusal *r)
{
	struct hearth_event_record ev = {
		.kind = HEARTH_EV_REFUSED,
		.tenant = hb->tenant->id,
		.pool = hb->pool->id,
		.current_bytes = hb->b.used,
		.limit = r->limit,
		.bytes = n,
		.time = ktime_get_ns(),
	};

	trace_hearth_refuse(hb, n, r->limit);
	/* The counters count all; listeners are spared a caller that insists. */
	if (hb->refused_ns && ev.time - hb->refused_ns < REFUSED_EVERY_NS)
		return;
	hb->refused_ns = ev.time;
	hearth_event(&ev);
}

static void ask(struct hearth_budget *hb, u64 bytes, u64 deadline)
{
	struct hearth_event_record ev = {
		.kind = HEARTH_EV_RECLAIM,
		.tenant = hb->tenant->id,
		.pool = hb->pool->id,
		.current_bytes = hb->b.used,
		.limit = hb->b.limits.high,
		.bytes = bytes,
		.deadline = deadline,
	};

	hb->b.n.reclaim++;
	trace_hearth_reclaim(hb, bytes);
	hearth_event(&ev);
}

/* What could be charged now; @w: NULL, or the queued waiter of it. */
static u64 available(const struct hearth_budget *hb, const struct budget_waiter *w)
{
	return w ? budget_wait_available(w) : budget_available(&hb->b);
}

/* Asks others to give back what is missing for @n bytes of @hb. */
static void ask_others(struct hearth_budget *hb, u64 n, const struct budget_waiter *w,
		       u64 deadline)
{
	u64 want = n - min(n, available(hb, w)), bytes;
	struct budget *b = NULL;

	while (want) {
		b = budget_reclaim_next(&hb->b, b, want, &bytes);
		if (!b)
			break;
		ask(to_hb(b), bytes, deadline);
		want -= min(want, bytes);
	}
}

/*
 * Takes purgeable regions of others until @n fits. A region that something
 * outside holds cannot be taken: it is left out of the sums while the others
 * are looked at, and put back after. Begins only when there is enough.
 */
static void purge_for(struct hearth_budget *hb, u64 n, const struct budget_waiter *w)
{
	struct hearth_region *r, *next;
	struct hearth_budget *victim;
	LIST_HEAD(stuck);

	while (available(hb, w) < n && budget_available_with_purge(&hb->b, w) >= n) {
		victim = to_hb(budget_purge_victim(&hb->b));
		if (!victim)
			break;
		r = list_first_entry_or_null(&victim->offered, struct hearth_region, offer);
		if (WARN_ON(!r))
			break;
		if (hearth_region_purge(r))
			continue;
		budget_purgeable(&victim->b, -(s64)r->bytes);
		list_move_tail(&r->offer, &stuck);
	}
	list_for_each_entry_safe(r, next, &stuck, offer) {
		victim = r->tenant->budgets[r->pool->index];
		budget_purgeable(&victim->b, r->bytes);
		list_move_tail(&r->offer, &victim->offered);
	}
}

/* One of ours is over what it may have: its own offers go first. */
void hearth_reclaim_excess(struct hearth_budget *hb)
{
	struct hearth_region *r, *next;
	u64 excess;

	lockdep_assert_held(&hearth.lock);
	list_for_each_entry_safe(r, next, &hb->offered, offer) {
		if (!budget_excess(&hb->b))
			return;
		hearth_region_purge(r);
	}
	excess = budget_excess(&hb->b);
	if (excess)
		ask(hb, excess, 0);
}

void hearth_uncharge(struct hearth_budget *hb, u64 n)
{
	lockdep_assert_held(&hearth.lock);
	WARN_ON(budget_uncharge(&hb->b, n));
	trace_hearth_uncharge(hb, n);
	hearth_pressure_tenant(hb);
	hearth_pressure_pool(hb->pool);
	hearth_wake(hb->pool);
}

/* Not even an empty pool and an empty budget would do. */
static bool hopeless(const struct hearth_budget *hb, u64 n)
{
	return n > hb->b.limits.max || n > hb->pool->bp.size;
}

/*
 * Sleeps until woken, the deadline, or a signal, without the lock. The tenant
 * stays because its connection makes this call, the pool because of waiters.
 */
static int wait_for_more(struct hearth_pool *pool, u64 deadline)
{
	ktime_t until = ns_to_ktime(min_t(u64, deadline, KTIME_MAX));
	DEFINE_WAIT(wait);
	int ret = 0;

	prepare_to_wait(&pool->wait, &wait, TASK_INTERRUPTIBLE);
	mutex_unlock(&hearth.lock);
	if (signal_pending(current))
		ret = -ERESTARTSYS;
	else if (!schedule_hrtimeout(&until, HRTIMER_MODE_ABS))
		ret = -ETIMEDOUT;
	else if (signal_pending(current))
		ret = -ERESTARTSYS;
	finish_wait(&pool->wait, &wait);
	mutex_lock(&hearth.lock);
	return ret;
}

/*
 * The slow half of a charge: @hb waits. It stands in the queue (and so holds
 * back those behind it) unless it is its own max that refuses, which nobody
 * else can do anything about, nor is asked to. Limits may change while it waits.
 */
static int charge_wait(struct hearth_budget *hb, u64 n, u64 deadline, bool *ret_over,
		       struct budget_refusal *r)
{
	struct budget_waiter w = {};
	u64 now, asked = 0;
	int ret, slept = 0;

	hb->waiters++;
	hb->pool->waiters++;
	for (;;) {
		bool by_max = n > hb->b.limits.max - min(hb->b.used, hb->b.limits.max);
		bool never = hopeless(hb, n), stood = w.queued;

		if (!w.queued)
			budget_wait_begin(&w, &hb->b, n);
		ret = budget_wait_charge(&w, ret_over, r);
		if (ret == -ENOSPC && !by_max && !never) {
			purge_for(hb, n, &w);
			ret = budget_wait_charge(&w, ret_over, r);
		}
		if (ret != -ENOSPC || never)
			break;
		if (by_max) {
			budget_wait_end(&w);
			if (stood)
				hearth_wake(hb->pool);
		}
		if (slept) {
			ret = slept;
			break;
		}
		now = ktime_get_ns();
		if (now >= deadline) {
			ret = -ETIMEDOUT;
			break;
		}
		if (!by_max && (!asked || now - asked >= ASK_AGAIN_NS)) {
			ask_others(hb, n, &w, deadline);
			asked = now;
		}
		slept = wait_for_more(hb->pool, min(deadline, now + ASK_AGAIN_NS));
		if (slept == -ETIMEDOUT && ktime_get_ns() < deadline)
			slept = 0;
	}
	budget_wait_end(&w);
	hb->waiters--;
	hb->pool->waiters--;
	/* Those behind have one less before them. */
	hearth_wake(hb->pool);
	return ret;
}

/* Nobody has heard of the charge yet, and nobody will. */
void hearth_charge_undo(struct hearth_budget *hb, u64 n)
{
	lockdep_assert_held(&hearth.lock);
	budget_charge_undo(&hb->b, n);
	hearth_wake(hb->pool);
}

/*
 * Charges @n bytes; then, before the lock is given up, hearth_charged or
 * hearth_charge_undo. With a deadline it may give up the lock and wait; EUSERS
 * when too many of the tenant do so already. ENOSPC
 * and ETIMEDOUT fill *@ref; ERESTARTSYS when a signal came.
 */
int hearth_charge(struct hearth_budget *hb, u64 n, u64 deadline, bool *ret_over,
		  struct hearth_refusal *ref)
{
	struct budget_refusal r = {};
	int ret;

	lockdep_assert_held(&hearth.lock);
	ret = budget_charge(&hb->b, n, ret_over, &r);
	if (ret == -ENOSPC && r.limit != BUDGET_BY_MAX &&
	    budget_available_with_purge(&hb->b, NULL) >= n) {
		purge_for(hb, n, NULL);
		ret = budget_charge(&hb->b, n, ret_over, &r);
	}
	if (ret == -ENOSPC && deadline != HEARTH_NOWAIT && !hopeless(hb, n)) {
		/* All who wait are looked at whenever something is given back. */
		if (hb->waiters >= HEARTH_WAITERS_MAX)
			return -EUSERS;
		ret = charge_wait(hb, n, deadline, ret_over, &r);
	}
	if (ret == -ENOSPC || ret == -ETIMEDOUT) {
		hearth_refusal_fill(ref, &r);
		refused(hb, n, &r);
	}
	return ret;
}

/* The budget of the connection in a pool. */
static int conn_budget(struct hearth_conn *conn, u32 pool_id, struct hearth_budget **ret_hb)
{
	struct hearth_pool *pool;

	lockdep_assert_held(&hearth.lock);
	if (!conn->tenant)
		return -ENOTCONN;
	pool = hearth_pool_get(pool_id);
	if (!pool)
		return -ENOENT;
	*ret_hb = conn->tenant->budgets[pool->index];
	return 0;
}

int hearth_ioctl_charge(void *who, void *arg)
{
	struct hearth_ioc_charge *a = arg;
	struct hearth_conn *conn = who;
	struct hearth_budget *hb;
	bool over = false;
	int ret;

	if (!a->bytes)
		return -EINVAL;
	mutex_lock(&hearth.lock);
	ret = conn_budget(conn, a->pool, &hb);
	if (!ret)
		ret = hearth_charge(hb, a->bytes, a->deadline, &over, &a->out_refusal);
	if (!ret) {
		hearth_charged(hb, a->bytes, over);
		conn->charged[hb->pool->index] += a->bytes;
	}
	mutex_unlock(&hearth.lock);
	return ret;
}

int hearth_ioctl_uncharge(void *who, void *arg)
{
	struct hearth_ioc_uncharge *a = arg;
	struct hearth_conn *conn = who;
	struct hearth_budget *hb;
	int ret;

	mutex_lock(&hearth.lock);
	ret = conn_budget(conn, a->pool, &hb);
	if (!ret && (!a->bytes || a->bytes > conn->charged[hb->pool->index]))
		ret = -EINVAL;
	if (!ret) {
		conn->charged[hb->pool->index] -= a->bytes;
		hearth_uncharge(hb, a->bytes);
	}
	mutex_unlock(&hearth.lock);
	return ret;
}
