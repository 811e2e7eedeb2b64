// SPDX-License-Identifier: (GPL-2.0-only OR MIT)
/*
 * Budgets: the arithmetic of who may take how much. The rules are told in
 * budget.h; here every sum of the pool is kept as its parts change, so that a
 * charge looks at nothing but the pool and one budget.
 *
 * Invariants (budget_check recomputes them):
 *	charged   = sum of current  <= size
 *	min_sum   = sum of min      <= size
 *	claimable = sum of max(min - current, 0)
 *	purgeable <= current
 * charged + claimable may pass size for a while: a min was set on memory that
 * others already had. Then claims within a min are met as memory comes free.
 */
#include "budget.h"

static u64 unclaimed(const struct budget *b)
{
	return core_sub_floor(b->limits.min, b->used);
}

/* Guaranteed to others and not yet taken by them. */
static u64 others_claim(const struct budget *b)
{
	return b->pool->claimable - unclaimed(b);
}

static u64 pool_free(const struct budget_pool *pool)
{
	return pool->size - pool->charged;
}

/* The only place where used changes. */
static void set_used(struct budget *b, u64 used)
{
	struct budget_pool *pool = b->pool;

	pool->claimable -= unclaimed(b);
	pool->charged -= b->used;
	b->used = used;
	pool->charged += used;
	pool->claimable += unclaimed(b);
}

static void note_peaks(struct budget *b)
{
	b->peak_was = b->peak;
	b->pool->peak_was = b->pool->peak;
	if (b->used > b->peak)
		b->peak = b->used;
	if (b->pool->charged > b->pool->peak)
		b->pool->peak = b->pool->charged;
}

static void set_limits(struct budget *b, const struct budget_limits *l)
{
	struct budget_pool *pool = b->pool;

	pool->claimable -= unclaimed(b);
	pool->min_sum -= b->limits.min;
	b->limits = *l;
	pool->min_sum += l->min;
	pool->claimable += unclaimed(b);
}

static void refuse(struct budget_refusal *ref, enum budget_limit limit, u64 wanted, u64 bytes,
		   u64 available, const struct budget *holder, u64 holder_bytes)
{
	if (!ref)
		return;
	ref->limit = limit;
	ref->wanted = wanted;
	ref->limit_bytes = bytes;
	ref->available = available;
	ref->holder = holder;
	ref->holder_bytes = holder_bytes;
}

/*
 * What those ahead want beyond their own min (that part is in claimable
 * already). @end: where to stop, NULL for a newcomer, who is behind all of no
 * lower priority. With several waiters of one tenant the min is taken off each
 * of them, so the sum may be short by that tenant's unclaimed min at most; a
 * newcomer then gets those bytes sooner, and no guarantee is touched.
 */
static u64 wanted_ahead(const struct budget *b, const struct budget_waiter *end)
{
	const struct budget_waiter *w;
	u64 sum = 0;

	for (w = b->pool->queue; w && w != end; w = w->next) {
		if (!end && w->b->priority < b->priority)
			break;
		sum = core_add_cap(sum, core_sub_floor(w->n, unclaimed(w->b)));
	}
	return sum;
}

/* What @b can have of @free bytes, its max aside. */
static u64 share_of(const struct budget *b, u64 free, const struct budget_waiter *end)
{
	u64 own = core_min(unclaimed(b), free);
	u64 open = core_sub_floor(free, others_claim(b));

	if (b->pool->queue)
		open = core_sub_floor(open, wanted_ahead(b, end));
	return core_max(own, open);
}

static u64 headroom(const struct budget *b)
{
	return core_sub_floor(b->limits.max, b->used);
}

u64 budget_available(const struct budget *b)
{
	return core_min(headroom(b), share_of(b, pool_free(b->pool), NULL));
}

void budget_pool_init(struct budget_pool *pool, u64 size)
{
	memset(pool, 0, sizeof(*pool));
	pool->size = size;
}

/* Who holds the most above its guarantee, @not aside; @not when nobody does. */
static const struct budget *biggest_holder(const struct budget_pool *pool,
					   const struct budget *not)
{
	const struct budget *b, *best = NULL;
	u64 most = 0;

	for (b = pool->first; b; b = b->next) {
		u64 over = core_sub_floor(b->used, b->limits.min);

		if (b != not && over > most) {
			most = over;
			best = b;
		}
	}
	if (best)
		return best;
	for (b = pool->first; b; b = b->next) {
		if (b != not && b->used > most) {
			most = b->used;
			best = b;
		}
	}
	return best ? best : not;
}

static const struct budget *biggest_claim(const struct budget_pool *pool,
					  const struct budget *not)
{
	const struct budget *b, *best = NULL;
	u64 most = 0;

	for (b = pool->first; b; b = b->next) {
		if (b != not && unclaimed(b) > most) {
			most = unclaimed(b);
			best = b;
		}
	}
	return best;
}

static const struct budget *biggest_min(const struct budget_pool *pool,
					const struct budget *not)
{
	const struct budget *b, *best = NULL;

	for (b = pool->first; b; b = b->next) {
		if (b != not && b->limits.min && (!best || b->limits.min > best->limits.min))
			best = b;
	}
	return best ? best : not;
}

int budget_pool_resize(struct budget_pool *pool, u64 size, struct budget_refusal *ref)
{
	const struct budget *holder;

	if (size < pool->min_sum) {
		holder = biggest_min(pool, NULL);
		refuse(ref, BUDGET_BY_SUM, size, pool->min_sum, 0, holder,
		       holder ? holder->limits.min : 0);
		return -ENOSPC;
	}
	if (size < pool->charged) {
		holder = biggest_holder(pool, NULL);
		refuse(ref, BUDGET_BY_POOL, size, pool->charged, 0, holder,
		       holder ? holder->used : 0);
		return -EBUSY;
	}
	pool->size = size;
	return 0;
}

void budget_attach(struct budget *b, struct budget_pool *pool, s32 priority, void *owner)
{
	static const struct budget_limits none = BUDGET_LIMITS_NONE;

	memset(b, 0, sizeof(*b));
	b->pool = pool;
	b->owner = owner;
	b->limits = none;
	b->priority = priority;
	b->order = pool->attached++;
	b->prev = pool->last;
	if (pool->last)
		pool->last->next = b;
	else
		pool->first = b;
	pool->last = b;
	pool->count++;
}

int budget_detach(struct budget *b)
{
	static const struct budget_limits none = BUDGET_LIMITS_NONE;
	struct budget_pool *pool = b->pool;
	struct budget_waiter *w;

	if (!pool)
		return 0;
	if (b->used)
		return -EBUSY;
	for (w = pool->queue; w; w = w->next) {
		if (w->b == b)
			return -EBUSY;
	}
	set_limits(b, &none);
	if (b->prev)
		b->prev->next = b->next;
	else
		pool->first = b->next;
	if (b->next)
		b->next->prev = b->prev;
	else
		pool->last = b->prev;
	pool->count--;
	b->prev = NULL;
	b->next = NULL;
	b->pool = NULL;
	return 0;
}

/* Names the first limit that n bytes break; called only when they do not fit. */
static enum budget_limit explain(const struct budget *b, u64 n, const struct budget_waiter *end,
				 struct budget_refusal *ref)
{
	struct budget_pool *pool = b->pool;
	u64 free = pool_free(pool);
	u64 can = core_min(headroom(b), share_of(b, free, end));
	const struct budget *holder;

	if (n > headroom(b)) {
		refuse(ref, BUDGET_BY_MAX, n, b->limits.max, can, b, b->used);
		return BUDGET_BY_MAX;
	}
	if (n > free) {
		holder = biggest_holder(pool, b);
		refuse(ref, BUDGET_BY_POOL, n, pool->size, can, holder, holder->used);
		return BUDGET_BY_POOL;
	}
	if (n > core_sub_floor(free, others_claim(b))) {
		holder = biggest_claim(pool, b);
		refuse(ref, BUDGET_BY_MIN, n, others_claim(b), can, holder,
		       holder ? unclaimed(holder) : 0);
		return BUDGET_BY_MIN;
	}
	refuse(ref, BUDGET_BY_QUEUE, n, wanted_ahead(b, end), can, pool->queue->b,
	       pool->queue->n);
	return BUDGET_BY_QUEUE;
}

static void count_refusal(struct budget *b, enum budget_limit limit)
{
	switch (limit) {
	case BUDGET_BY_MAX:
		b->n.refused_max++;
		break;
	case BUDGET_BY_POOL:
		b->n.refused_pool++;
		break;
	case BUDGET_BY_MIN:
		b->n.refused_min++;
		break;
	case BUDGET_BY_QUEUE:
		b->n.refused_queue++;
		break;
	default:
		break;
	}
}

static int charge(struct budget *b, u64 n, const struct budget_waiter *end, bool count,
		  bool *ret_over_high, struct budget_refusal *ref)
{
	enum budget_limit limit;
	bool over;

	if (n > core_min(headroom(b), share_of(b, pool_free(b->pool), end))) {
		limit = explain(b, n, end, ref);
		if (count)
			count_refusal(b, limit);
		return -ENOSPC;
	}
	if (n) {
		over = b->used <= b->limits.high && b->used + n > b->limits.high;
		set_used(b, b->used + n);
		note_peaks(b);
		b->n.charges++;
		b->went_over = over;
		if (over)
			b->n.high++;
	} else {
		over = false;
	}
	if (ret_over_high)
		*ret_over_high = over;
	return 0;
}

int budget_charge(struct budget *b, u64 n, bool *ret_over_high, struct budget_refusal *ref)
{
	return charge(b, n, NULL, true, ret_over_high, ref);
}

int budget_uncharge(struct budget *b, u64 n)
{
	if (n > b->used - b->purgeable)
		return -EINVAL;
	set_used(b, b->used - n);
	return 0;
}

void budget_charge_undo(struct budget *b, u64 n)
{
	if (!n)
		return;
	set_used(b, b->used - n);
	b->peak = b->peak_was;
	b->pool->peak = b->pool->peak_was;
	b->n.charges--;
	b->n.high -= b->went_over;
}

int budget_move(struct budget *from, struct budget *to, u64 n, struct budget_refusal *ref)
{
	int ret;

	if (from->pool != to->pool || n > from->used - from->purgeable)
		return -EINVAL;
	if (from == to)
		return 0;
	set_used(from, from->used - n);
	ret = budget_charge(to, n, NULL, ref);
	if (ret)
		set_used(from, from->used + n);
	return ret;
}

u64 budget_excess(const struct budget *b)
{
	return core_sub_floor(b->used, core_min(b->limits.high, b->limits.max));
}

int budget_set_limits(struct budget *b, const struct budget_limits *l, u64 *ret_excess,
		      struct budget_refusal *ref)
{
	struct budget_change change = { .b = b, .limits = *l };
	int ret;

	ret = budget_set_many(&change, 1, NULL, ref);
	if (!ret && ret_excess)
		*ret_excess = budget_excess(b);
	return ret;
}

static int bad_change(size_t i, size_t *ret_bad, int ret)
{
	if (ret_bad)
		*ret_bad = i;
	return ret;
}

static int check_each(struct budget_change *changes, size_t n, size_t *ret_bad,
		      struct budget_refusal *ref)
{
	struct budget_limits *l;
	struct budget *b;
	size_t i;

	for (i = 0; i < n; i++)
		changes[i].b->marked = false;
	for (i = 0; i < n; i++) {
		b = changes[i].b;
		l = &changes[i].limits;
		if (b->marked) {
			refuse(ref, BUDGET_FITS, 0, 0, 0, b, 0);
			return bad_change(i, ret_bad, -EINVAL);
		}
		if (l->min > l->max) {
			refuse(ref, BUDGET_BY_ORDER, l->min, l->max, 0, b, b->used);
			return bad_change(i, ret_bad, -EINVAL);
		}
		b->marked = true;
		b->pool->pending = b->pool->min_sum;
	}
	return 0;
}

/*
 * Names whose min, as it would be then, leaves no room for change @bad: one
 * that the set does not touch, or one that the set itself gives.
 */
static void refuse_sum(const struct budget_change *changes, size_t n, size_t bad,
		       struct budget_refusal *ref)
{
	const struct budget *holder = changes[bad].b;
	struct budget_pool *pool = holder->pool;
	struct budget *b;
	u64 most = 0;
	size_t i;

	/* marks of budgets outside this set may be old ones */
	for (b = pool->first; b; b = b->next)
		b->marked = false;
	for (i = 0; i < n; i++)
		changes[i].b->marked = true;
	for (b = pool->first; b; b = b->next) {
		if (!b->marked && b->limits.min > most) {
			most = b->limits.min;
			holder = b;
		}
	}
	for (i = 0; i < n; i++) {
		if (i != bad && changes[i].b->pool == pool && changes[i].limits.min > most) {
			most = changes[i].limits.min;
			holder = changes[i].b;
		}
	}
	refuse(ref, BUDGET_BY_SUM, changes[bad].limits.min, pool->size,
	       core_sub_floor(pool->size, pool->pending), holder, most);
}

int budget_set_many(struct budget_change *changes, size_t n, size_t *ret_bad,
		    struct budget_refusal *ref)
{
	struct budget_pool *pool;
	size_t i;
	int ret;

	ret = check_each(changes, n, ret_bad, ref);
	if (ret)
		return ret;
	for (i = 0; i < n; i++)
		changes[i].b->pool->pending -= changes[i].b->limits.min;
	for (i = 0; i < n; i++) {
		u64 min = changes[i].limits.min;

		pool = changes[i].b->pool;
		/* pending <= size holds, so the subtraction cannot wrap */
		if (min > core_sub_floor(pool->size, pool->pending)) {
			refuse_sum(changes, n, i, ref);
			return bad_change(i, ret_bad, -ENOSPC);
		}
		pool->pending += min;
	}
	for (i = 0; i < n; i++)
		set_limits(changes[i].b, &changes[i].limits);
	return 0;
}

/* -- who gives back --------------------------------------------------------- */

int budget_purgeable(struct budget *b, s64 n)
{
	u64 amount = n < 0 ? 0 - (u64)n : (u64)n;

	if (n < 0) {
		if (amount > b->purgeable)
			return -EINVAL;
		b->purgeable -= amount;
	} else {
		if (amount > b->used - b->purgeable)
			return -EINVAL;
		b->purgeable += amount;
	}
	return 0;
}

int budget_purged(struct budget *b, u64 n)
{
	if (n > b->purgeable)
		return -EINVAL;
	b->purgeable -= n;
	set_used(b, b->used - n);
	b->n.purged++;
	b->n.purged_bytes += n;
	return 0;
}

u64 budget_available_with_purge(const struct budget *asker, const struct budget_waiter *w)
{
	const struct budget *b;
	u64 gain = 0;

	for (b = asker->pool->first; b; b = b->next) {
		if (b != asker)
			gain += core_min(b->purgeable, core_sub_floor(b->used, b->limits.min));
	}
	return core_min(headroom(asker), share_of(asker, pool_free(asker->pool) + gain, w));
}

static u64 protected_bytes(const struct budget *b)
{
	return core_max(b->limits.min, b->limits.low);
}

/* 0 over high (or over a max that was lowered), 1 above low, 2 above min, 3 never. */
static int rank_of(const struct budget *b)
{
	if (b->used <= b->limits.min)
		return 3;
	if (b->used > core_min(b->limits.high, b->limits.max))
		return 0;
	return b->used > protected_bytes(b) ? 1 : 2;
}

/* Whether @a gives back before @b, with what each can give. */
static bool gives_before(const struct budget *a, u64 a_gives, const struct budget *b, u64 b_gives)
{
	int ra = rank_of(a), rb = rank_of(b);

	if (ra != rb)
		return ra < rb;
	if (a->priority != b->priority)
		return a->priority < b->priority;
	if (a_gives != b_gives)
		return a_gives > b_gives;
	return a->order < b->order;
}

struct budget *budget_purge_victim(const struct budget *asker)
{
	struct budget *b, *best = NULL;

	for (b = asker->pool->first; b; b = b->next) {
		if (b == asker || !b->purgeable || rank_of(b) == 3)
			continue;
		if (!best || gives_before(b, b->purgeable, best, best->purgeable))
			best = b;
	}
	return best;
}

/* How much @b may be asked for; @low_holds: somebody else is above its low. */
static u64 can_ask(const struct budget *b, bool low_holds)
{
	switch (rank_of(b)) {
	case 0:
	case 1:
		/* nothing where low is above high and current between them */
		return core_sub_floor(b->used, protected_bytes(b));
	case 2:
		return low_holds ? 0 : b->used - b->limits.min;
	default:
		return 0;
	}
}

struct budget *budget_reclaim_next(const struct budget *asker, const struct budget *after,
				   u64 want, u64 *ret_bytes)
{
	struct budget *b, *best = NULL;
	u32 above_low = 0;
	u64 most = 0, gives;

	for (b = asker->pool->first; b; b = b->next)
		above_low += b->used > protected_bytes(b);
	/*
	 * Somebody above its low is never @b itself here: at rank 2 @b is at or
	 * below its own.
	 */
	for (b = asker->pool->first; b; b = b->next) {
		gives = can_ask(b, above_low > 0);
		if (b == asker || b == after || !gives)
			continue;
		if (after && !gives_before(after, can_ask(after, above_low > 0), b, gives))
			continue;
		if (!best || gives_before(b, gives, best, most)) {
			best = b;
			most = gives;
		}
	}
	if (best)
		*ret_bytes = core_min(want, most);
	return best;
}

/* -- waiting ---------------------------------------------------------------- */

void budget_wait_begin(struct budget_waiter *w, struct budget *b, u64 n)
{
	struct budget_waiter **at = &b->pool->queue;

	w->b = b;
	w->n = n;
	while (*at && (*at)->b->priority >= b->priority)
		at = &(*at)->next;
	w->next = *at;
	*at = w;
	w->queued = true;
}

void budget_wait_end(struct budget_waiter *w)
{
	struct budget_waiter **at;

	if (!w->queued)
		return;
	for (at = &w->b->pool->queue; *at; at = &(*at)->next) {
		if (*at == w) {
			*at = w->next;
			break;
		}
	}
	w->next = NULL;
	w->queued = false;
}

u64 budget_wait_available(const struct budget_waiter *w)
{
	return core_min(headroom(w->b), share_of(w->b, pool_free(w->b->pool), w));
}

int budget_wait_charge(struct budget_waiter *w, bool *ret_over_high, struct budget_refusal *ref)
{
	int ret;

	ret = charge(w->b, w->n, w, false, ret_over_high, ref);
	if (!ret)
		budget_wait_end(w);
	return ret;
}

/* -- for tests -------------------------------------------------------------- */

#define CHECK(cond) do { if (!(cond)) return __LINE__; } while (0)

int budget_check(const struct budget_pool *pool)
{
	u64 charged = 0, min_sum = 0, claimable = 0;
	const struct budget_waiter *w;
	const struct budget *b, *prev = NULL;
	u32 count = 0;

	for (b = pool->first; b; b = b->next) {
		CHECK(b->pool == pool);
		CHECK(b->prev == prev);
		CHECK(b->purgeable <= b->used);
		CHECK(b->peak >= b->used);
		CHECK(b->limits.min <= b->limits.max);
		charged += b->used;
		min_sum += b->limits.min;
		claimable += unclaimed(b);
		count++;
		prev = b;
	}
	CHECK(pool->last == prev);
	CHECK(pool->count == count);
	CHECK(pool->charged == charged);
	CHECK(pool->min_sum == min_sum);
	CHECK(pool->claimable == claimable);
	CHECK(charged <= pool->size);
	CHECK(min_sum <= pool->size);
	CHECK(pool->peak >= charged);
	for (w = pool->queue; w; w = w->next) {
		CHECK(w->queued);
		CHECK(w->b->pool == pool);
		CHECK(!w->next || w->next->b->priority <= w->b->priority);
	}
	return 0;
}
