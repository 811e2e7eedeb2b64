/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Programs of budget calls with their results, worked out by hand from the
 * rules in kmod/core/budget.h. Replayed by the unit tests and inside the
 * kernel: include kmod/core/budget.h first. No libc.
 */
#ifndef HEARTH_VECTORS_BUDGET_H
#define HEARTH_VECTORS_BUDGET_H

enum budget_op {
	B_POOL,      /* a: size; begins a new program */
	B_ATTACH,    /* who, a: priority */
	B_DETACH,    /* who -> ret */
	B_LIMITS,    /* who, a: min, b: low, c: high, d: max -> ret, limit, holder; value: excess */
	B_CHARGE,    /* who, a -> ret, limit, holder; value: available as refused, else over high */
	B_UNCHARGE,  /* who, a -> ret */
	B_MOVE,      /* who, to, a -> ret, limit */
	B_OFFER,     /* who, a: purgeable bytes more -> ret */
	B_UNOFFER,   /* who, a: purgeable bytes less -> ret */
	B_PURGED,    /* who, a -> ret */
	B_VICTIM,    /* who -> holder */
	B_WITHPURGE, /* who -> value */
	B_ASK,       /* who, a: want -> holder, value: bytes; b: skip that many */
	B_RESIZE,    /* a -> ret, limit, holder */
	B_WAIT,      /* who, to: slot, a */
	B_WAKE,      /* to: slot -> ret, limit */
	B_WAITEND,   /* to: slot */
	B_CURRENT,   /* who -> value */
	B_PEAK,      /* who -> value */
	B_FREE,      /* -> value: size - charged */
};

#define B_NOBODY 99

struct budget_step {
	enum budget_op op;
	u8 who, to;
	u64 a, b, c, d;
	int ret;
	enum budget_limit limit;
	u8 holder;
	u64 value;
};

#define B_MAX CORE_U64_MAX

static const struct budget_step budget_steps[] = {
	/* an empty pool and one tenant: everything up to the size, nothing above */
	{ .op = B_POOL, .a = 100 },
	{ .op = B_ATTACH, .who = 0, .a = 10 },
	{ .op = B_CHARGE, .who = 0, .a = 101, .ret = -ENOSPC, .limit = BUDGET_BY_POOL, .holder = 0, .value = 100 },
	{ .op = B_CHARGE, .who = 0, .a = B_MAX, .ret = -ENOSPC, .limit = BUDGET_BY_POOL, .holder = 0, .value = 100 },
	{ .op = B_CHARGE, .who = 0, .a = 0 },
	{ .op = B_CHARGE, .who = 0, .a = 100 },
	{ .op = B_CHARGE, .who = 0, .a = 1, .ret = -ENOSPC, .limit = BUDGET_BY_POOL, .holder = 0 },
	{ .op = B_UNCHARGE, .who = 0, .a = 101, .ret = -EINVAL },
	{ .op = B_CURRENT, .who = 0, .value = 100 },
	{ .op = B_DETACH, .who = 0, .ret = -EBUSY },
	{ .op = B_UNCHARGE, .who = 0, .a = 100 },
	{ .op = B_PEAK, .who = 0, .value = 100 },
	{ .op = B_FREE, .value = 100 },
	{ .op = B_DETACH, .who = 0 },

	/* max: hard, and named before a full pool is */
	{ .op = B_POOL, .a = 100 },
	{ .op = B_ATTACH, .who = 0 },
	{ .op = B_LIMITS, .who = 0, .c = B_MAX, .d = 30 },
	{ .op = B_CHARGE, .who = 0, .a = 31, .ret = -ENOSPC, .limit = BUDGET_BY_MAX, .holder = 0, .value = 30 },
	{ .op = B_CHARGE, .who = 0, .a = 200, .ret = -ENOSPC, .limit = BUDGET_BY_MAX, .holder = 0, .value = 30 },
	{ .op = B_CHARGE, .who = 0, .a = 30 },
	{ .op = B_CHARGE, .who = 0, .a = 1, .ret = -ENOSPC, .limit = BUDGET_BY_MAX, .holder = 0 },

	/* lowering max below use is allowed, tells the excess, and holds new charges */
	{ .op = B_LIMITS, .who = 0, .c = B_MAX, .d = 10, .value = 20 },
	{ .op = B_CURRENT, .who = 0, .value = 30 },
	{ .op = B_CHARGE, .who = 0, .a = 1, .ret = -ENOSPC, .limit = BUDGET_BY_MAX, .holder = 0 },
	{ .op = B_UNCHARGE, .who = 0, .a = 20 },
	{ .op = B_CHARGE, .who = 0, .a = 1, .ret = -ENOSPC, .limit = BUDGET_BY_MAX, .holder = 0 },
	{ .op = B_UNCHARGE, .who = 0, .a = 1 },
	{ .op = B_CHARGE, .who = 0, .a = 1 },

	/* high: soft; over it is told by the charge that passes it, once */
	{ .op = B_POOL, .a = 100 },
	{ .op = B_ATTACH, .who = 0 },
	{ .op = B_LIMITS, .who = 0, .c = 20, .d = B_MAX },
	{ .op = B_CHARGE, .who = 0, .a = 20, .value = 0 },
	{ .op = B_CHARGE, .who = 0, .a = 1, .value = 1 },
	{ .op = B_CHARGE, .who = 0, .a = 1, .value = 0 },
	{ .op = B_UNCHARGE, .who = 0, .a = 2 },
	{ .op = B_CHARGE, .who = 0, .a = 50, .value = 1 },
	{ .op = B_LIMITS, .who = 0, .c = 20, .d = 60, .value = 50 },
	{ .op = B_LIMITS, .who = 0, .a = 8, .c = 20, .d = 7, .ret = -EINVAL, .limit = BUDGET_BY_ORDER, .holder = 0 },

	/* min: nobody else can take it, its owner always can */
	{ .op = B_POOL, .a = 100 },
	{ .op = B_ATTACH, .who = 0, .a = 1 },
	{ .op = B_ATTACH, .who = 1, .a = 1 },
	{ .op = B_ATTACH, .who = 2, .a = 1 },
	{ .op = B_LIMITS, .who = 1, .a = 40, .c = B_MAX, .d = B_MAX },
	{ .op = B_LIMITS, .who = 2, .a = 61, .c = B_MAX, .d = B_MAX, .ret = -ENOSPC, .limit = BUDGET_BY_SUM, .holder = 1 },
	{ .op = B_LIMITS, .who = 2, .a = 60, .c = B_MAX, .d = B_MAX },
	{ .op = B_LIMITS, .who = 2, .a = 10, .c = B_MAX, .d = B_MAX },
	{ .op = B_CHARGE, .who = 0, .a = 51, .ret = -ENOSPC, .limit = BUDGET_BY_MIN, .holder = 1, .value = 50 },
	{ .op = B_CHARGE, .who = 0, .a = 50 },
	{ .op = B_CHARGE, .who = 0, .a = 1, .ret = -ENOSPC, .limit = BUDGET_BY_MIN, .holder = 1 },
	{ .op = B_CHARGE, .who = 1, .a = 41, .ret = -ENOSPC, .limit = BUDGET_BY_MIN, .holder = 2, .value = 40 },
	{ .op = B_CHARGE, .who = 1, .a = 40 },
	{ .op = B_CHARGE, .who = 1, .a = 1, .ret = -ENOSPC, .limit = BUDGET_BY_MIN, .holder = 2 },
	{ .op = B_CHARGE, .who = 2, .a = 11, .ret = -ENOSPC, .limit = BUDGET_BY_POOL, .holder = 0, .value = 10 },
	{ .op = B_CHARGE, .who = 2, .a = 10 },
	{ .op = B_FREE, .value = 0 },
	/* what falls under a min again is guaranteed again */
	{ .op = B_UNCHARGE, .who = 1, .a = 5 },
	{ .op = B_CHARGE, .who = 0, .a = 1, .ret = -ENOSPC, .limit = BUDGET_BY_MIN, .holder = 1 },
	{ .op = B_UNCHARGE, .who = 0, .a = 3 },
	{ .op = B_CHARGE, .who = 2, .a = 4, .ret = -ENOSPC, .limit = BUDGET_BY_MIN, .holder = 1, .value = 3 },
	{ .op = B_CHARGE, .who = 2, .a = 3 },

	/* a min set on memory that others have: claims are met as it comes free */
	{ .op = B_POOL, .a = 100 },
	{ .op = B_ATTACH, .who = 0 },
	{ .op = B_ATTACH, .who = 1 },
	{ .op = B_CHARGE, .who = 0, .a = 90 },
	{ .op = B_LIMITS, .who = 1, .a = 50, .c = B_MAX, .d = B_MAX },
	{ .op = B_CHARGE, .who = 0, .a = 1, .ret = -ENOSPC, .limit = BUDGET_BY_MIN, .holder = 1 },
	{ .op = B_CHARGE, .who = 1, .a = 11, .ret = -ENOSPC, .limit = BUDGET_BY_POOL, .holder = 0, .value = 10 },
	{ .op = B_CHARGE, .who = 1, .a = 10 },
	{ .op = B_UNCHARGE, .who = 0, .a = 40 },
	{ .op = B_CHARGE, .who = 0, .a = 1, .ret = -ENOSPC, .limit = BUDGET_BY_MIN, .holder = 1 },
	{ .op = B_CHARGE, .who = 1, .a = 40 },

	/* the holder of a full pool is who has the most above its min */
	{ .op = B_POOL, .a = 100 },
	{ .op = B_ATTACH, .who = 0 },
	{ .op = B_ATTACH, .who = 1 },
	{ .op = B_ATTACH, .who = 2 },
	{ .op = B_LIMITS, .who = 0, .a = 50, .c = B_MAX, .d = B_MAX },
	{ .op = B_CHARGE, .who = 0, .a = 60 },
	{ .op = B_CHARGE, .who = 1, .a = 40 },
	{ .op = B_CHARGE, .who = 2, .a = 1, .ret = -ENOSPC, .limit = BUDGET_BY_POOL, .holder = 1 },

	/* resize: not below the sum of min, not below what is charged */
	{ .op = B_RESIZE, .a = 49, .ret = -ENOSPC, .limit = BUDGET_BY_SUM, .holder = 0 },
	{ .op = B_RESIZE, .a = 99, .ret = -EBUSY, .limit = BUDGET_BY_POOL, .holder = 1 },
	{ .op = B_RESIZE, .a = 101 },
	{ .op = B_CHARGE, .who = 2, .a = 1 },
	{ .op = B_CHARGE, .who = 2, .a = 1, .ret = -ENOSPC, .limit = BUDGET_BY_POOL, .holder = 1 },

	/* moving a charge checks the receiver, with the giver's bytes free */
	{ .op = B_POOL, .a = 100 },
	{ .op = B_ATTACH, .who = 0 },
	{ .op = B_ATTACH, .who = 1 },
	{ .op = B_CHARGE, .who = 0, .a = 100 },
	{ .op = B_LIMITS, .who = 1, .c = B_MAX, .d = 50 },
	{ .op = B_MOVE, .who = 0, .to = 1, .a = 51, .ret = -ENOSPC, .limit = BUDGET_BY_MAX },
	{ .op = B_CURRENT, .who = 0, .value = 100 },
	{ .op = B_MOVE, .who = 0, .to = 1, .a = 50 },
	{ .op = B_CURRENT, .who = 0, .value = 50 },
	{ .op = B_CURRENT, .who = 1, .value = 50 },
	{ .op = B_PEAK, .who = 1, .value = 50 },
	{ .op = B_MOVE, .who = 0, .to = 1, .a = 51, .ret = -EINVAL },
	/* a giver's min is claimed again the moment it lets go */
	{ .op = B_LIMITS, .who = 0, .a = 50, .c = B_MAX, .d = B_MAX },
	{ .op = B_LIMITS, .who = 1, .c = B_MAX, .d = B_MAX },
	{ .op = B_MOVE, .who = 0, .to = 1, .a = 1, .ret = -ENOSPC, .limit = BUDGET_BY_MIN },

	/* purging: over-high first, then the lowest priority, never below min */
	{ .op = B_POOL, .a = 100 },
	{ .op = B_ATTACH, .who = 0, .a = 5 },
	{ .op = B_ATTACH, .who = 1, .a = 9 },
	{ .op = B_ATTACH, .who = 2, .a = 1 },
	{ .op = B_ATTACH, .who = 3, .a = 7 },
	{ .op = B_CHARGE, .who = 1, .a = 30 },
	{ .op = B_CHARGE, .who = 2, .a = 30 },
	{ .op = B_CHARGE, .who = 3, .a = 40 },
	{ .op = B_VICTIM, .who = 0, .holder = B_NOBODY },
	{ .op = B_OFFER, .who = 1, .a = 31, .ret = -EINVAL },
	{ .op = B_OFFER, .who = 1, .a = 10 },
	{ .op = B_OFFER, .who = 2, .a = 20 },
	{ .op = B_OFFER, .who = 3, .a = 5 },
	{ .op = B_VICTIM, .who = 0, .holder = 2 },
	{ .op = B_VICTIM, .who = 2, .holder = 3 },
	{ .op = B_LIMITS, .who = 1, .c = 25, .d = B_MAX, .value = 5 },
	{ .op = B_VICTIM, .who = 0, .holder = 1 },
	{ .op = B_WITHPURGE, .who = 0, .value = 35 },
	{ .op = B_LIMITS, .who = 2, .a = 25, .c = B_MAX, .d = B_MAX },
	{ .op = B_WITHPURGE, .who = 0, .value = 20 },
	{ .op = B_LIMITS, .who = 2, .a = 30, .c = B_MAX, .d = B_MAX },
	{ .op = B_WITHPURGE, .who = 0, .value = 15 },
	{ .op = B_UNCHARGE, .who = 1, .a = 21, .ret = -EINVAL },
	{ .op = B_PURGED, .who = 1, .a = 11, .ret = -EINVAL },
	{ .op = B_PURGED, .who = 1, .a = 10 },
	{ .op = B_CURRENT, .who = 1, .value = 20 },
	{ .op = B_VICTIM, .who = 0, .holder = 3 },
	{ .op = B_UNOFFER, .who = 3, .a = 6, .ret = -EINVAL },
	{ .op = B_UNOFFER, .who = 3, .a = 5 },
	{ .op = B_VICTIM, .who = 0, .holder = B_NOBODY },
	{ .op = B_CHARGE, .who = 0, .a = 10 },
	/* those at or below low give way after those above it */
	{ .op = B_LIMITS, .who = 1, .b = 20, .c = B_MAX, .d = B_MAX },
	{ .op = B_OFFER, .who = 1, .a = 20 },
	{ .op = B_OFFER, .who = 3, .a = 1 },
	{ .op = B_VICTIM, .who = 0, .holder = 3 },
	{ .op = B_UNOFFER, .who = 3, .a = 1 },
	{ .op = B_VICTIM, .who = 0, .holder = 1 },

	/* over a max that was lowered is as over high */
	{ .op = B_POOL, .a = 100 },
	{ .op = B_ATTACH, .who = 0, .a = 5 },
	{ .op = B_ATTACH, .who = 1, .a = 9 },
	{ .op = B_ATTACH, .who = 2, .a = 1 },
	{ .op = B_CHARGE, .who = 1, .a = 40 },
	{ .op = B_CHARGE, .who = 2, .a = 60 },
	{ .op = B_OFFER, .who = 1, .a = 40 },
	{ .op = B_OFFER, .who = 2, .a = 60 },
	{ .op = B_VICTIM, .who = 0, .holder = 2 },
	{ .op = B_LIMITS, .who = 1, .c = B_MAX, .d = 39, .value = 1 },
	{ .op = B_VICTIM, .who = 0, .holder = 1 },
	{ .op = B_ASK, .who = 0, .a = 10, .holder = 1, .value = 10 },

	/* asking: down to low; those at or below it only when nobody is above */
	{ .op = B_POOL, .a = 100 },
	{ .op = B_ATTACH, .who = 0, .a = 5 },
	{ .op = B_ATTACH, .who = 1, .a = 9 },
	{ .op = B_ATTACH, .who = 2, .a = 1 },
	{ .op = B_ASK, .who = 0, .a = 10, .holder = B_NOBODY },
	{ .op = B_CHARGE, .who = 1, .a = 50 },
	{ .op = B_CHARGE, .who = 2, .a = 50 },
	{ .op = B_ASK, .who = 0, .a = 10, .holder = 2, .value = 10 },
	{ .op = B_ASK, .who = 0, .a = 70, .holder = 2, .value = 50 },
	{ .op = B_ASK, .who = 0, .a = 20, .b = 1, .holder = 1, .value = 20 },
	{ .op = B_ASK, .who = 0, .a = 20, .b = 2, .holder = B_NOBODY },
	{ .op = B_LIMITS, .who = 1, .c = 40, .d = B_MAX, .value = 10 },
	{ .op = B_ASK, .who = 0, .a = 10, .holder = 1, .value = 10 },
	{ .op = B_LIMITS, .who = 1, .b = 50, .c = B_MAX, .d = B_MAX },
	{ .op = B_ASK, .who = 0, .a = 10, .holder = 2, .value = 10 },
	{ .op = B_ASK, .who = 0, .a = 10, .b = 1, .holder = B_NOBODY },
	{ .op = B_LIMITS, .who = 2, .a = 45, .b = 50, .c = B_MAX, .d = B_MAX },
	/* now both are at low: down to min, the lowest priority first */
	{ .op = B_ASK, .who = 0, .a = 10, .holder = 2, .value = 5 },
	{ .op = B_ASK, .who = 0, .a = 5, .b = 1, .holder = 1, .value = 5 },
	/* an asker above its own low is somebody above low */
	{ .op = B_UNCHARGE, .who = 1, .a = 10 },
	{ .op = B_CHARGE, .who = 0, .a = 10 },
	{ .op = B_ASK, .who = 0, .a = 10, .holder = B_NOBODY },

	/* waiting: highest priority first, then who came first; a min stands above both */
	{ .op = B_POOL, .a = 100 },
	{ .op = B_ATTACH, .who = 0, .a = 5 },
	{ .op = B_ATTACH, .who = 1, .a = 9 },
	{ .op = B_ATTACH, .who = 2, .a = 5 },
	{ .op = B_ATTACH, .who = 3, .a = 1 },
	{ .op = B_CHARGE, .who = 3, .a = 100 },
	{ .op = B_WAIT, .who = 0, .to = 0, .a = 30 },
	{ .op = B_WAIT, .who = 1, .to = 1, .a = 20 },
	{ .op = B_WAIT, .who = 2, .to = 2, .a = 10 },
	{ .op = B_WAKE, .to = 1, .ret = -ENOSPC, .limit = BUDGET_BY_POOL },
	{ .op = B_DETACH, .who = 1, .ret = -EBUSY },
	{ .op = B_UNCHARGE, .who = 3, .a = 30 },
	{ .op = B_CHARGE, .who = 3, .a = 1, .ret = -ENOSPC, .limit = BUDGET_BY_QUEUE, .holder = 1 },
	{ .op = B_WAKE, .to = 0, .ret = -ENOSPC, .limit = BUDGET_BY_QUEUE },
	{ .op = B_WAKE, .to = 2, .ret = -ENOSPC, .limit = BUDGET_BY_QUEUE },
	{ .op = B_CHARGE, .who = 1, .a = 11, .ret = -ENOSPC, .limit = BUDGET_BY_QUEUE, .holder = 1, .value = 10 },
	{ .op = B_LIMITS, .who = 3, .a = 71, .c = B_MAX, .d = B_MAX },
	{ .op = B_CHARGE, .who = 3, .a = 1 },
	{ .op = B_WAKE, .to = 1 },
	{ .op = B_CURRENT, .who = 1, .value = 20 },
	{ .op = B_WAKE, .to = 0, .ret = -ENOSPC, .limit = BUDGET_BY_POOL },
	{ .op = B_WAITEND, .to = 0 },
	{ .op = B_WAKE, .to = 2, .ret = -ENOSPC, .limit = BUDGET_BY_POOL },
	{ .op = B_UNCHARGE, .who = 1, .a = 1 },
	{ .op = B_WAKE, .to = 2 },
	{ .op = B_CURRENT, .who = 2, .value = 10 },
	{ .op = B_FREE, .value = 0 },
};

#define BUDGET_STEPS (sizeof(budget_steps) / sizeof(budget_steps[0]))

struct budget_replay {
	struct budget_pool pool;
	struct budget b[4];
	struct budget_waiter w[4];
};

static u8 budget_replay_index(const struct budget_replay *r, const struct budget *b)
{
	return b ? (u8)(b - r->b) : B_NOBODY;
}

/* One step; false where a result is not as the table says. */
static bool budget_replay_step(struct budget_replay *r, const struct budget_step *s)
{
	struct budget_limits l = { .min = s->a, .low = s->b, .high = s->c, .max = s->d };
	struct budget_refusal ref = { .limit = BUDGET_FITS };
	struct budget *b = &r->b[s->who], *victim = NULL;
	u64 value = 0, i;
	bool over = false, holder_matters = false;
	int ret = 0;

	switch (s->op) {
	case B_POOL:
		memset(r, 0, sizeof(*r));
		budget_pool_init(&r->pool, s->a);
		return true;
	case B_ATTACH:
		budget_attach(b, &r->pool, (s32)s->a, NULL);
		return true;
	case B_DETACH:
		ret = budget_detach(b);
		break;
	case B_LIMITS:
		ret = budget_set_limits(b, &l, &value, &ref);
		holder_matters = ret;
		break;
	case B_CHARGE:
		ret = budget_charge(b, s->a, &over, &ref);
		value = ret ? ref.available : over;
		holder_matters = ret;
		break;
	case B_UNCHARGE:
		ret = budget_uncharge(b, s->a);
		break;
	case B_MOVE:
		ret = budget_move(b, &r->b[s->to], s->a, &ref);
		break;
	case B_OFFER:
		ret = budget_purgeable(b, (s64)s->a);
		break;
	case B_UNOFFER:
		ret = budget_purgeable(b, -(s64)s->a);
		break;
	case B_PURGED:
		ret = budget_purged(b, s->a);
		break;
	case B_VICTIM:
		return budget_replay_index(r, budget_purge_victim(b)) == s->holder;
	case B_WITHPURGE:
		value = budget_available_with_purge(b, NULL);
		break;
	case B_ASK:
		for (i = 0; i <= s->b; i++) {
			value = 0;
			victim = budget_reclaim_next(b, victim, s->a, &value);
			if (!victim)
				break;
		}
		return budget_replay_index(r, victim) == s->holder && (!victim || value == s->value);
	case B_RESIZE:
		ret = budget_pool_resize(&r->pool, s->a, &ref);
		holder_matters = ret;
		break;
	case B_WAIT:
		budget_wait_begin(&r->w[s->to], b, s->a);
		return true;
	case B_WAKE:
		ret = budget_wait_charge(&r->w[s->to], &over, &ref);
		break;
	case B_WAITEND:
		budget_wait_end(&r->w[s->to]);
		return true;
	case B_CURRENT:
		value = b->used;
		break;
	case B_PEAK:
		value = b->peak;
		break;
	case B_FREE:
		value = r->pool.size - r->pool.charged;
		break;
	}
	return ret == s->ret && value == s->value && ref.limit == s->limit &&
	       (!holder_matters || budget_replay_index(r, ref.holder) == s->holder);
}

/* 0, or the number (from 1) of the first step that went otherwise. */
static size_t budget_replay(struct budget_replay *r)
{
	size_t i;

	for (i = 0; i < BUDGET_STEPS; i++) {
		if (!budget_replay_step(r, &budget_steps[i]) || budget_check(&r->pool))
			return i + 1;
	}
	return 0;
}

#endif
