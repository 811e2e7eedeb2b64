// SPDX-License-Identifier: MIT
/*
 * Millions of random calls of the core against slow obvious models: one that
 * sums up everything anew at each question, one that keeps a byte per unit of
 * memory. Figures are small, so that borders are hit all the time. That the
 * comparison can fail is shown with faults put into the calls on purpose.
 *
 * STEPS=N in the environment runs longer; SEED=N begins elsewhere.
 */
#include "unit.h"

#include "kmod/core/budget.h"
#include "kmod/core/extent.h"
#include "kmod/core/pressure.h"

static u64 rng_state;

static u64 rnd(u64 below)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return below ? (rng_state >> 11) % below : 0;
}

static u64 env(const char *name, u64 value)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : value;
}

/* -- budgets ---------------------------------------------------------------- */

enum { TENANTS = 6, WAITERS = 4, POOL = 60 };

struct m_tenant {
	bool on;
	long long min, low, high, max, current, peak, purgeable, prio;
	long long order;
};

struct m_waiter {
	bool on;
	int who;
	long long n, came;
};

struct model {
	long long size, clock;
	struct m_tenant t[TENANTS];
	struct m_waiter w[WAITERS];
};

static long long min_ll(long long a, long long b) { return a < b ? a : b; }
static long long max_ll(long long a, long long b) { return a > b ? a : b; }

static long long m_claim(const struct m_tenant *t)
{
	return t->on ? max_ll(t->min - t->current, 0) : 0;
}

static long long m_free(const struct model *m)
{
	long long free = m->size;

	for (int i = 0; i < TENANTS; i++)
		free -= m->t[i].on ? m->t[i].current : 0;
	return free;
}

static long long m_others(const struct model *m, int who)
{
	long long sum = 0;

	for (int i = 0; i < TENANTS; i++)
		sum += i == who ? 0 : m_claim(&m->t[i]);
	return sum;
}

/* Whether waiter @v stands ahead of tenant @who (as waiter @w, or -1: a newcomer). */
static bool m_ahead(const struct model *m, int v, int who, int w)
{
	const struct m_waiter *a = &m->w[v];

	if (!a->on || v == w)
		return false;
	if (w < 0)
		return m->t[a->who].prio >= m->t[who].prio;
	if (m->t[a->who].prio != m->t[who].prio)
		return m->t[a->who].prio > m->t[who].prio;
	return a->came < m->w[w].came;
}

static long long m_wanted(const struct model *m, int who, int w)
{
	long long sum = 0;

	for (int v = 0; v < WAITERS; v++) {
		if (m_ahead(m, v, who, w))
			sum += max_ll(m->w[v].n - m_claim(&m->t[m->w[v].who]), 0);
	}
	return sum;
}

/* What fits, by the words of the rule. */
static long long m_fits(const struct model *m, int who, int w, long long extra_free)
{
	const struct m_tenant *t = &m->t[who];
	long long free = m_free(m) + extra_free;
	long long own = min_ll(m_claim(t), free);
	long long open = max_ll(free - m_others(m, who), 0);

	open = max_ll(open - m_wanted(m, who, w), 0);
	return min_ll(max_ll(t->max - t->current, 0), max_ll(own, open));
}

static enum budget_limit m_limit(const struct model *m, int who, int w, long long n)
{
	const struct m_tenant *t = &m->t[who];

	if (n > max_ll(t->max - t->current, 0))
		return BUDGET_BY_MAX;
	if (n > m_free(m))
		return BUDGET_BY_POOL;
	if (n > max_ll(m_free(m) - m_others(m, who), 0))
		return BUDGET_BY_MIN;
	return BUDGET_BY_QUEUE;
}

static int m_rank(const struct m_tenant *t)
{
	if (t->current <= t->min)
		return 3;
	if (t->current > min_ll(t->high, t->max))
		return 0;
	return t->current > max_ll(t->min, t->low) ? 1 : 2;
}

/* a before b: rank, priority, more to give, older */
static bool m_before(const struct model *m, int a, long long ga, int b, long long gb)
{
	const struct m_tenant *x = &m->t[a], *y = &m->t[b];

	if (m_rank(x) != m_rank(y))
		return m_rank(x) < m_rank(y);
	if (x->prio != y->prio)
		return x->prio < y->prio;
	if (ga != gb)
		return ga > gb;
	return x->order < y->order;
}

static int m_victim(const struct model *m, int asker)
{
	int best = -1;

	for (int i = 0; i < TENANTS; i++) {
		const struct m_tenant *t = &m->t[i];

		if (!t->on || i == asker || !t->purgeable || m_rank(t) == 3)
			continue;
		if (best < 0 || m_before(m, i, t->purgeable, best, m->t[best].purgeable))
			best = i;
	}
	return best;
}

/* Fills the whole order of who is asked, and for how much at most. */
static int m_asked(const struct model *m, int asker, int *order, long long *gives)
{
	bool above = false;
	int n = 0;

	for (int i = 0; i < TENANTS; i++)
		above |= m->t[i].on && m->t[i].current > max_ll(m->t[i].min, m->t[i].low);
	for (int i = 0; i < TENANTS; i++) {
		const struct m_tenant *t = &m->t[i];
		long long g, floor = max_ll(t->min, t->low);
		int at;

		if (!t->on || i == asker)
			continue;
		g = t->current > floor ? t->current - floor : 0;
		/* at or below low, and nobody is above: down to min; unless over high */
		if (!g && !above && m_rank(t) == 2)
			g = t->current - t->min;
		if (g <= 0)
			continue;
		for (at = n; at > 0 && m_before(m, i, g, order[at - 1], gives[at - 1]); at--) {
			order[at] = order[at - 1];
			gives[at] = gives[at - 1];
		}
		order[at] = i;
		gives[at] = g;
		n++;
	}
	return n;
}

/* The calls that are compared; a fault is put in by replacing one. */
struct calls {
	int (*charge)(struct budget *b, u64 n, bool *over, struct budget_refusal *ref);
	int (*uncharge)(struct budget *b, u64 n);
	struct budget *(*victim)(const struct budget *asker);
};

static const struct calls right = {
	.charge = budget_charge,
	.uncharge = budget_uncharge,
	.victim = budget_purge_victim,
};

/* Faults. Each breaks one rule, and only sometimes. */
static int charge_over_max_by_one(struct budget *b, u64 n, bool *over, struct budget_refusal *ref)
{
	int ret = budget_charge(b, n, over, ref);

	if (ret && ref->limit == BUDGET_BY_MAX && b->used + n == b->limits.max + 1) {
		struct budget_limits was = b->limits, more = was;

		more.max++;
		budget_set_limits(b, &more, NULL, NULL);
		ret = budget_charge(b, n, over, ref);
		budget_set_limits(b, &was, NULL, NULL);
	}
	return ret;
}

static int charge_ignores_guarantees(struct budget *b, u64 n, bool *over,
				     struct budget_refusal *ref)
{
	u64 was = b->pool->claimable;
	int ret;

	ret = budget_charge(b, n, over, ref);
	if (ret && ref->limit == BUDGET_BY_MIN) {
		b->pool->claimable = core_sub_floor(b->limits.min, b->used);
		ret = budget_charge(b, n, over, ref);
		b->pool->claimable += was - core_sub_floor(b->limits.min, b->used);
	}
	return ret;
}

static int uncharge_forgets_the_pool(struct budget *b, u64 n)
{
	int ret = budget_uncharge(b, n);

	if (!ret && n == 7)
		b->pool->charged++;
	return ret;
}

static struct budget *victim_of_any_rank(const struct budget *asker)
{
	struct budget *b, *best = NULL;

	for (b = asker->pool->first; b; b = b->next) {
		if (b != asker && b->purgeable && (!best || b->priority < best->priority))
			best = b;
	}
	return best;
}

struct world {
	struct model m;
	struct budget_pool pool;
	struct budget b[TENANTS];
	struct budget_waiter w[WAITERS];
	const struct calls *calls;
};

#define SAME(cond) do { if (!(cond)) return __LINE__; } while (0)

static int compare(struct world *x)
{
	long long charged = 0, min_sum = 0, claim = 0;

	for (int i = 0; i < TENANTS; i++) {
		const struct m_tenant *t = &x->m.t[i];
		const struct budget *b = &x->b[i];

		if (!t->on) {
			SAME(!b->pool);
			continue;
		}
		SAME((long long)b->used == t->current);
		SAME((long long)b->peak == t->peak);
		SAME((long long)b->purgeable == t->purgeable);
		SAME((long long)b->limits.min == t->min && (long long)b->limits.max == t->max);
		SAME((long long)budget_available(b) == m_fits(&x->m, i, -1, 0));
		SAME((long long)budget_excess(b) ==
		     max_ll(t->current - min_ll(t->high, t->max), 0));
		charged += t->current;
		min_sum += t->min;
		claim += m_claim(t);
	}
	SAME((long long)x->pool.charged == charged);
	SAME((long long)x->pool.min_sum == min_sum);
	SAME((long long)x->pool.claimable == claim);
	SAME((long long)x->pool.size == x->m.size);
	return budget_check(&x->pool);
}

static int step_charge(struct world *x, int who)
{
	struct m_tenant *t = &x->m.t[who];
	struct budget_refusal ref = { 0 };
	long long n = (long long)rnd(rnd(8) ? 12 : 70);
	bool over = false, fits;
	int ret;

	fits = n <= m_fits(&x->m, who, -1, 0);
	ret = x->calls->charge(&x->b[who], (u64)n, &over, &ref);
	SAME(ret == (fits ? 0 : -ENOSPC));
	if (fits) {
		SAME(over == (n && t->current <= t->high && t->current + n > t->high));
		t->current += n;
		t->peak = max_ll(t->peak, t->current);
	} else {
		SAME(ref.limit == m_limit(&x->m, who, -1, n));
		SAME((long long)ref.available == m_fits(&x->m, who, -1, 0));
		SAME(ref.wanted == (u64)n && ref.holder);
		if (ref.limit == BUDGET_BY_MAX)
			SAME(ref.holder == &x->b[who]);
		if (ref.limit == BUDGET_BY_MIN)
			SAME(ref.holder != &x->b[who] && ref.holder_bytes > 0);
	}
	return 0;
}

static int step_limits(struct world *x, int who)
{
	struct m_tenant *t = &x->m.t[who];
	struct budget_limits l = {
		.min = rnd(3) ? 0 : rnd(40), .low = rnd(30), .high = rnd(60), .max = rnd(70),
	};
	long long sum = (long long)l.min;
	int ret;

	for (int i = 0; i < TENANTS; i++)
		sum += i != who && x->m.t[i].on ? x->m.t[i].min : 0;
	ret = budget_set_limits(&x->b[who], &l, NULL, NULL);
	if (l.min > l.max) {
		SAME(ret == -EINVAL);
	} else if (sum > x->m.size) {
		SAME(ret == -ENOSPC);
	} else {
		SAME(ret == 0);
		t->min = (long long)l.min;
		t->low = (long long)l.low;
		t->high = (long long)l.high;
		t->max = (long long)l.max;
	}
	return 0;
}

static int step_purge(struct world *x, int who)
{
	int v = m_victim(&x->m, who);
	struct budget *got = x->calls->victim(&x->b[who]);
	long long gain = 0, n;

	for (int i = 0; i < TENANTS; i++) {
		const struct m_tenant *t = &x->m.t[i];

		if (t->on && i != who)
			gain += min_ll(t->purgeable, max_ll(t->current - t->min, 0));
	}
	SAME((long long)budget_available_with_purge(&x->b[who], NULL) ==
	     m_fits(&x->m, who, -1, gain));
	SAME(got == (v < 0 ? NULL : &x->b[v]));
	if (v >= 0) {
		n = 1 + (long long)rnd((u64)x->m.t[v].purgeable);
		SAME(budget_purged(got, (u64)n) == 0);
		x->m.t[v].current -= n;
		x->m.t[v].purgeable -= n;
	}
	return 0;
}

static int step_ask(struct world *x, int who)
{
	int order[TENANTS], n = 0, i = 0;
	struct budget *b = NULL;
	long long gives[TENANTS];
	u64 want = 1 + rnd(40), bytes;

	n = m_asked(&x->m, who, order, gives);
	while ((b = budget_reclaim_next(&x->b[who], b, want, &bytes))) {
		SAME(i < n && b == &x->b[order[i]]);
		SAME((long long)bytes == min_ll((long long)want, gives[i]));
		i++;
	}
	SAME(i == n);
	return 0;
}

static int step_wait(struct world *x, int who)
{
	int v = (int)rnd(WAITERS);
	struct m_waiter *w = &x->m.w[v];
	struct budget_refusal ref = { 0 };
	bool over, fits;
	int ret;

	if (!w->on) {
		*w = (struct m_waiter){ true, who, 1 + (long long)rnd(20), x->m.clock++ };
		budget_wait_begin(&x->w[v], &x->b[who], (u64)w->n);
	} else if (rnd(3)) {
		fits = w->n <= m_fits(&x->m, w->who, v, 0);
		SAME((long long)budget_wait_available(&x->w[v]) == m_fits(&x->m, w->who, v, 0));
		ret = budget_wait_charge(&x->w[v], &over, &ref);
		SAME(ret == (fits ? 0 : -ENOSPC));
		if (!fits)
			SAME(ref.limit == m_limit(&x->m, w->who, v, w->n));
		if (fits) {
			x->m.t[w->who].current += w->n;
			x->m.t[w->who].peak = max_ll(x->m.t[w->who].peak,
						     x->m.t[w->who].current);
			w->on = false;
		}
	} else {
		budget_wait_end(&x->w[v]);
		w->on = false;
	}
	return 0;
}

static int step_attach(struct world *x, int who)
{
	struct m_tenant *t = &x->m.t[who];
	bool busy = t->current > 0;
	int ret;

	if (!t->on) {
		*t = (struct m_tenant){ .on = true, .high = -1, .max = -1,
					.prio = (long long)rnd(4), .order = x->m.clock++ };
		t->high = t->max = 1ll << 40;
		budget_attach(&x->b[who], &x->pool, (s32)t->prio, NULL);
		x->b[who].limits.high = x->b[who].limits.max = 1ull << 40;
		return 0;
	}
	for (int v = 0; v < WAITERS; v++)
		busy |= x->m.w[v].on && x->m.w[v].who == who;
	ret = budget_detach(&x->b[who]);
	SAME(ret == (busy ? -EBUSY : 0));
	if (!ret)
		t->on = false;
	return 0;
}

static int step_rest(struct world *x, int who)
{
	struct m_tenant *t = &x->m.t[who], *to;
	long long n = (long long)rnd(15), size, sum = 0;
	int other = (int)rnd(TENANTS), ret;

	switch (rnd(4)) {
	case 0:
		ret = budget_purgeable(&x->b[who], n);
		SAME(ret == (n > t->current - t->purgeable ? -EINVAL : 0));
		t->purgeable += ret ? 0 : n;
		return 0;
	case 1:
		ret = budget_purgeable(&x->b[who], -n);
		SAME(ret == (n > t->purgeable ? -EINVAL : 0));
		t->purgeable -= ret ? 0 : n;
		return 0;
	case 2:
		to = &x->m.t[other];
		if (!to->on)
			return 0;
		if (n > t->current - t->purgeable) {
			SAME(budget_move(&x->b[who], &x->b[other], (u64)n, NULL) == -EINVAL);
			return 0;
		}
		if (to == t) {
			SAME(budget_move(&x->b[who], &x->b[other], (u64)n, NULL) == 0);
			return 0;
		}
		t->current -= n;
		ret = n <= m_fits(&x->m, other, -1, 0) ? 0 : -ENOSPC;
		SAME(budget_move(&x->b[who], &x->b[other], (u64)n, NULL) == ret);
		if (ret) {
			t->current += n;
		} else {
			to->current += n;
			to->peak = max_ll(to->peak, to->current);
		}
		return 0;
	default:
		size = (long long)rnd(POOL + 20);
		for (int i = 0; i < TENANTS; i++)
			sum += x->m.t[i].on ? x->m.t[i].min : 0;
		ret = budget_pool_resize(&x->pool, (u64)size, NULL);
		if (size < sum)
			SAME(ret == -ENOSPC);
		else if (size < x->m.size - m_free(&x->m))
			SAME(ret == -EBUSY);
		else
			SAME(ret == 0);
		if (!ret)
			x->m.size = size;
		return 0;
	}
}

/* 0, or the line of the first disagreement; *ret_step: where. */
static int run_budgets(const struct calls *calls, u64 steps, u64 *ret_step)
{
	static struct world x;
	int bad = 0;
	u64 i;

	memset(&x, 0, sizeof(x));
	x.calls = calls;
	x.m.size = POOL;
	budget_pool_init(&x.pool, POOL);
	for (i = 0; i < steps && !bad; i++) {
		int who = (int)rnd(TENANTS);
		u64 what = rnd(100);

		if (!x.m.t[who].on || what >= 98) {
			bad = step_attach(&x, who);
		} else if (what < 35) {
			bad = step_charge(&x, who);
		} else if (what < 60) {
			long long n = (long long)rnd(14);
			long long can = x.m.t[who].current - x.m.t[who].purgeable;
			int ret = x.calls->uncharge(&x.b[who], (u64)n);

			if (ret != (n > can ? -EINVAL : 0))
				bad = __LINE__;
			x.m.t[who].current -= ret ? 0 : n;
		} else if (what < 66) {
			bad = step_limits(&x, who);
		} else if (what < 74) {
			bad = step_purge(&x, who);
		} else if (what < 78) {
			bad = step_ask(&x, who);
		} else if (what < 86) {
			bad = step_wait(&x, who);
		} else {
			bad = step_rest(&x, who);
		}
		if (!bad)
			bad = compare(&x);
	}
	*ret_step = i;
	return bad;
}

static void budgets_agree_with_the_model(void **state)
{
	u64 steps = env("STEPS", 2000000), at = 0;
	int line;

	rng_state = env("SEED", 0x9e3779b97f4a7c15);
	line = run_budgets(&right, steps, &at);
	if (line)
		fail_msg("disagree at step %llu, line %d", (unsigned long long)at, line);
	assert_int_equal(at, steps);
}

static void faults_in_budgets_are_caught(void **state)
{
	struct calls faulty[4] = { right, right, right, right };
	u64 at;

	faulty[0].charge = charge_over_max_by_one;
	faulty[1].charge = charge_ignores_guarantees;
	faulty[2].uncharge = uncharge_forgets_the_pool;
	faulty[3].victim = victim_of_any_rank;
	for (int i = 0; i < 4; i++) {
		rng_state = 12345;
		if (!run_budgets(&faulty[i], 200000, &at))
			fail_msg("fault %d was not noticed", i);
	}
}

/* -- extents ----------------------------------------------------------------- */

enum { UNITS = 128, SLOTS = 40 };

struct grid {
	int owner[UNITS];   /* slot, or -1: free */
	int size;
	struct extent *ext[SLOTS];
	struct extent_map m;
};

/* Best fit by looking at every hole: the shortest that holds it, then the lowest. */
static int g_best(const struct grid *g, int size, int align)
{
	int best = -1, best_len = UNITS + 1;

	for (int at = 0; at < g->size;) {
		int len = 0, start;

		while (at + len < g->size && g->owner[at + len] < 0)
			len++;
		if (!len) {
			at++;
			continue;
		}
		start = (at + align - 1) / align * align;
		if (start + size <= at + len && len < best_len) {
			best = start;
			best_len = len;
		}
		at += len;
	}
	return best;
}

/* The longest hole; among equals the highest. */
static int g_longest(const struct grid *g, int *ret_len)
{
	int best = -1;

	*ret_len = 0;
	for (int at = 0; at < g->size;) {
		int len = 0;

		while (at + len < g->size && g->owner[at + len] < 0)
			len++;
		if (len && len >= *ret_len) {
			best = at;
			*ret_len = len;
		}
		at += len ? len : 1;
	}
	return best;
}

typedef int (*alloc_fn)(struct extent_map *m, u64 size, u64 align, void *owner,
			struct extent **ret_ext);

/* Faults: not the best fit; and one that forgets to align now and then. */
static int alloc_first_fit(struct extent_map *m, u64 size, u64 align, void *owner,
			   struct extent **ret_ext)
{
	struct extent *e;

	for (e = m->first; e && size && m->n_spare >= EXTENT_SPARE_ALLOC; e = e->next) {
		u64 start = (e->start + align - 1) & ~(align - 1);

		if (e->state == EXTENT_FREE && start + size <= e->start + e->size)
			return extent_alloc_at(m, start, size, owner, ret_ext);
	}
	return extent_alloc(m, size, align, owner, ret_ext);
}

static int alloc_unaligned(struct extent_map *m, u64 size, u64 align, void *owner,
			   struct extent **ret_ext)
{
	return extent_alloc(m, size, align > 8 ? 8 : align, owner, ret_ext);
}

static int mark(struct grid *g, int slot)
{
	const struct extent *e = g->ext[slot];

	for (u64 i = e->start; i < e->start + e->size; i++) {
		SAME(i < (u64)g->size && g->owner[i] < 0);
		g->owner[i] = slot;
	}
	return 0;
}

static int g_step(struct grid *g, alloc_fn alloc)
{
	int slot = (int)rnd(SLOTS), size = 1 + (int)rnd(rnd(4) ? 6 : 40), len, want;
	int align = 1 << rnd(6);
	struct extent *e = NULL;

	if (g->ext[slot]) {
		for (int i = 0; i < UNITS; i++) {
			if (g->owner[i] == slot)
				g->owner[i] = -1;
		}
		extent_free(&g->m, g->ext[slot]);
		g->ext[slot] = NULL;
		return 0;
	}
	switch (rnd(12)) {
	case 0:
		want = g_longest(g, &len);
		SAME(extent_largest(&g->m) == (u64)len);
		SAME(extent_alloc_part(&g->m, (u64)size, g, &e) == (want < 0 ? -ENOSPC : 0));
		if (want < 0)
			return 0;
		SAME(e->start == (u64)want && e->size == (u64)(size < len ? size : len));
		break;
	case 1:
		want = (int)rnd(UNITS);
		len = 0;
		while (want + len < g->size && len < size && g->owner[want + len] < 0)
			len++;
		SAME(extent_alloc_at(&g->m, (u64)want, (u64)size, g, &e) ==
		     (want + size > g->size ? -EINVAL : len < size ? -EBUSY : 0));
		if (want + size > g->size || len < size)
			return 0;
		break;
	case 2:
		want = (int)rnd(UNITS + 1);
		len = 0;
		for (int i = want; i < g->size; i++)
			len += g->owner[i] >= 0;
		SAME(extent_resize(&g->m, (u64)want) == (len ? -EBUSY : 0));
		if (!len)
			g->size = want;
		return 0;
	default:
		want = g_best(g, size, align);
		SAME(alloc(&g->m, (u64)size, (u64)align, g, &e) == (want < 0 ? -ENOSPC : 0));
		if (want < 0)
			return 0;
		SAME(e->start == (u64)want && e->size == (u64)size);
	}
	g->ext[slot] = e;
	return mark(g, slot);
}

static int run_extents(alloc_fn alloc, u64 steps, u64 *ret_step)
{
	static struct extent nodes[2 * UNITS];
	static struct grid g;
	int bad = 0, free;
	u64 i;

	memset(&g, 0, sizeof(g));
	memset(g.owner, -1, sizeof(g.owner));
	g.size = UNITS;
	extent_map_init(&g.m, UNITS, 1, &nodes[0]);
	for (i = 1; i < 2 * UNITS; i++)
		extent_spare_put(&g.m, &nodes[i]);
	for (i = 0; i < steps && !bad; i++) {
		bad = g_step(&g, alloc);
		free = 0;
		for (int k = 0; k < g.size; k++)
			free += g.owner[k] < 0;
		if (!bad && (u64)free != g.m.free)
			bad = __LINE__;
		if (!bad)
			bad = extent_check(&g.m);
	}
	*ret_step = i;
	return bad;
}

static void extents_agree_with_the_model(void **state)
{
	u64 steps = env("STEPS", 2000000), at = 0;
	int line;

	rng_state = env("SEED", 0xdeadbeefcafef00d);
	line = run_extents(extent_alloc, steps, &at);
	if (line)
		fail_msg("disagree at step %llu, line %d", (unsigned long long)at, line);
	assert_int_equal(at, steps);
}

static void faults_in_extents_are_caught(void **state)
{
	u64 at;

	rng_state = 777;
	assert_int_not_equal(run_extents(alloc_first_fit, 100000, &at), 0);
	rng_state = 777;
	assert_int_not_equal(run_extents(alloc_unaligned, 100000, &at), 0);
}

/* -- pressure ---------------------------------------------------------------- */

/* The level by its definition: keep it, unless a rise or a fall says otherwise. */
static int p_level(const struct pressure_rules *r, int was, u64 value)
{
	for (int l = 3; l > was; l--) {
		if (value >= r->rise[l])
			return l;
	}
	for (int l = 0; l < was; l++) {
		/* the lowest level whose upper neighbours all have been left */
		bool left = true;

		for (int k = l + 1; k <= was; k++)
			left &= value < r->fall[k];
		if (left)
			return l;
	}
	return was;
}

static void pressure_agrees_with_the_model(void **state)
{
	u64 steps = env("STEPS", 1000000), seq = 0, expect = 0, now = 0, said = 0;
	struct pressure_rules r = { .repeat_ns = 50 };
	struct pressure_event ev;
	struct pressure p;
	int level = 0;

	rng_state = env("SEED", 4242);
	pressure_init(&p, 0);
	for (u64 i = 0; i < steps; i++) {
		u64 value = rnd(130);
		int next;
		bool event;

		if (!rnd(1000)) {
			/* other rules, and a gauge that begins again */
			u64 at = rnd(40);

			for (int l = 1; l < 4; l++) {
				at += rnd(30);
				r.rise[l] = at;
				r.fall[l] = core_max(r.fall[l - 1], at - rnd(at + 1));
			}
			assert_int_equal(pressure_rules_check(&r), 0);
			pressure_init(&p, now);
			level = 0;
		}
		now += rnd(20);
		next = p_level(&r, level, value);
		event = next != level || (next && now - said >= 50);
		assert_int_equal(pressure_update(&p, &r, value, now, &seq, &ev), event);
		if (event) {
			expect++;
			said = now;
			assert_int_equal(ev.level, next);
			assert_int_equal(ev.was, level);
			assert_int_equal(ev.seq, expect);
		}
		assert_int_equal(p.level, next);
		assert_int_equal(seq, expect);
		level = next;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(budgets_agree_with_the_model),
		cmocka_unit_test(faults_in_budgets_are_caught),
		cmocka_unit_test(extents_agree_with_the_model),
		cmocka_unit_test(faults_in_extents_are_caught),
		cmocka_unit_test(pressure_agrees_with_the_model),
	};
	return UNIT_RUN(tests);
}
