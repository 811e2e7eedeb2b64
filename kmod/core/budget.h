/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Budgets: who may take how much of a pool.
 *
 * A `struct budget` is one tenant in one pool. A charge of n bytes is admitted
 * when
 *	current + n <= max, and
 *	n <= free - (what others may still claim under their min)
 *	          - (what waiters ahead of it want),
 * except that what a tenant takes within its own min always goes, as long as
 * it is free: nobody, waiting or not, stands ahead of a guarantee.
 *
 *	min   guaranteed; sum of min over the pool's budgets <= pool size
 *	low   not asked to give back while at or below it, and somebody else
 *	      is above theirs
 *	high  going over it succeeds, and puts the tenant first in line
 *	max   going over it is refused
 *
 * A refusal changes nothing but its counter and names the limit and the
 * holder. Limits may be set below current.
 *
 * Locking: the caller serialises all calls on one pool and its budgets (one
 * lock per pool). Nothing here sleeps, allocates or reads a clock. Charges
 * cost O(1) while nobody waits; a refusal walks the pool's budgets once.
 */
#ifndef HEARTH_CORE_BUDGET_H
#define HEARTH_CORE_BUDGET_H

#include "port.h"

struct budget_limits {
	u64 min;
	u64 low;
	u64 high;
	u64 max;
};

#define BUDGET_LIMITS_NONE { .min = 0, .low = 0, .high = CORE_U64_MAX, .max = CORE_U64_MAX }

struct budget_counters {
	u64 charges;       /* admitted */
	u64 refused_max;
	u64 refused_pool;
	u64 refused_min;
	u64 refused_queue; /* others wait ahead of it */
	u64 high;          /* times it went from at or below high to above */
	u64 reclaim;       /* times it was asked to give back */
	u64 purged;        /* regions taken from it */
	u64 purged_bytes;
};

struct budget;
struct budget_waiter;

struct budget_pool {
	u64 size;          /* bytes */
	u64 charged;       /* sum of current */
	u64 min_sum;       /* sum of min */
	u64 claimable;     /* sum of max(min - current, 0) */
	u64 peak;          /* of charged */
	u64 peak_was;      /* before the last charge */
	u32 count;         /* budgets attached */
	u32 attached;      /* ever; gives each budget its order */
	u64 pending;       /* scratch of budget_set_many */
	struct budget *first, *last;          /* in order of attaching */
	struct budget_waiter *queue;          /* highest priority first, then oldest */
};

struct budget {
	struct budget_pool *pool;  /* NULL when not attached */
	struct budget *prev, *next;
	void *owner;               /* the caller's tenant, for naming the holder */
	struct budget_limits limits;
	u64 used;                  /* current; that word is a macro in the kernel */
	u64 peak;
	u64 peak_was;              /* before the last charge */
	u64 purgeable;             /* part of current; see budget_purgeable() */
	s32 priority;              /* higher is served first, asked last; the caller's to
				    * set while it has no waiter queued */
	u32 order;                 /* of attaching */
	bool marked;               /* scratch of budget_set_many */
	bool went_over;            /* the last charge took it over high */
	struct budget_counters n;
};

/* Who said no. */
enum budget_limit {
	BUDGET_FITS,
	BUDGET_BY_MAX,     /* its own max */
	BUDGET_BY_POOL,    /* not that much is free */
	BUDGET_BY_MIN,     /* free, but guaranteed to others */
	BUDGET_BY_QUEUE,   /* free, but others wait ahead of it */
	BUDGET_BY_ORDER,   /* set_limits: min > max */
	BUDGET_BY_SUM,     /* set_limits, resize: sum of min > size */
};

struct budget_refusal {
	enum budget_limit limit;
	u64 wanted;        /* bytes asked for */
	u64 limit_bytes;   /* value of the limit that refused: max, size, sum of min */
	u64 available;     /* what would have been admitted */
	/*
	 * BY_POOL: who holds the most above its min, other than the asker (the
	 * asker itself when nobody else holds any). BY_MIN: whose unclaimed min
	 * is largest. BY_QUEUE: who waits first. BY_SUM: whose min is largest.
	 * BY_MAX, BY_ORDER: the asker.
	 */
	const struct budget *holder;
	u64 holder_bytes;  /* the holder's current (BY_MIN: unclaimed min, BY_SUM: min,
			    * BY_QUEUE: bytes it waits for) */
};

void budget_pool_init(struct budget_pool *pool, u64 size);

/*
 * Changes the size. -ENOSPC below the sum of min (BY_SUM), -EBUSY below what
 * is charged (BY_POOL); @ref may be NULL.
 */
int budget_pool_resize(struct budget_pool *pool, u64 size, struct budget_refusal *ref);

/*
 * Puts @b (zeroed or fresh memory) into @pool with no min and no limits.
 * @owner is only handed back in refusals. Undone by budget_detach.
 */
void budget_attach(struct budget *b, struct budget_pool *pool, s32 priority, void *owner);

/* -EBUSY while it has charges; its limits end with it. NULL pool is legal. */
int budget_detach(struct budget *b);

/* What @b could be charged now, as a newcomer: behind those who wait. */
u64 budget_available(const struct budget *b);

/*
 * Charges @n bytes. 0, or -ENOSPC and why in @ref (may be NULL). n = 0 is
 * admitted and counts nothing. *ret_over_high (may be NULL) is true when this
 * very charge took it over high. Undone by budget_uncharge.
 */
int budget_charge(struct budget *b, u64 n, bool *ret_over_high, struct budget_refusal *ref);

/*
 * Gives back. -EINVAL, and nothing changed, when n is more than the part of
 * current that is not purgeable (that goes by budget_purgeable(-n) first).
 */
int budget_uncharge(struct budget *b, u64 n);

/*
 * As if the last charge had never been, its counters and peaks too. Only when
 * nothing else was done in the pool since; @n as charged.
 */
void budget_charge_undo(struct budget *b, u64 n);

/*
 * Moves a charge between two budgets of one pool: checked like a charge of
 * @to, with the bytes counted as given back by @from first. Purgeable bytes do
 * not move: take them back first. -ENOSPC and @ref, or -EINVAL (more than
 * @from has, different pools); on failure nothing has moved.
 */
int budget_move(struct budget *from, struct budget *to, u64 n, struct budget_refusal *ref);

/*
 * Replaces the limits. -EINVAL (BY_ORDER) when min > max; -ENOSPC (BY_SUM).
 * *ret_excess (may be NULL): bytes that @b should now give back, to be at or
 * below high and max.
 */
int budget_set_limits(struct budget *b, const struct budget_limits *l, u64 *ret_excess,
		      struct budget_refusal *ref);

/*
 * The same for many budgets, of any pools, all or nothing. No budget may be in
 * it twice (-EINVAL). *ret_bad (may be NULL): index of the first one refused.
 * Caller holds the locks of all pools concerned. Cost O(n) plus, on refusal,
 * one walk.
 */
struct budget_change {
	struct budget *b;
	struct budget_limits limits;
};
int budget_set_many(struct budget_change *changes, size_t n, size_t *ret_bad,
		    struct budget_refusal *ref);

/* Bytes to give back to be at or below high and max. */
u64 budget_excess(const struct budget *b);

/* -- who gives back -------------------------------------------------------- */

/*
 * Declares @n more (or fewer) bytes of current as purgeable. -EINVAL, and
 * nothing changed, when that leaves 0..current.
 */
int budget_purgeable(struct budget *b, s64 n);

/* A region of n purgeable bytes was taken from it: uncharges and counts. */
int budget_purged(struct budget *b, u64 n);

/*
 * What @asker could be charged if every purgeable region of the others were
 * taken, as far as their min allows (memory under a min is no gain: the owner
 * may claim it again). Purging is worth beginning only when this covers n.
 * @w: NULL, or the waiter of @asker for whom it is asked (see below).
 */
u64 budget_available_with_purge(const struct budget *asker, const struct budget_waiter *w);

/*
 * The next tenant to take a purgeable region from, for @asker: over-high
 * first, then those above low, then those above min only; within each, the
 * lowest priority first, then the largest purgeable. Never @asker, never one
 * at or below its min. NULL when there is none.
 */
struct budget *budget_purge_victim(const struct budget *asker);

/*
 * The next tenant to ask to give back (@after NULL: the first), in the same
 * order; those at or below low are passed over while any other is above its
 * low, and nobody is asked to go below its min. *ret_bytes: how much of @want
 * it can be asked for. A caller walks it until @want is covered.
 */
struct budget *budget_reclaim_next(const struct budget *asker, const struct budget *after,
				   u64 want, u64 *ret_bytes);

/* -- waiting --------------------------------------------------------------- */

/*
 * A charge that waits. Storage is the caller's. Queue order: priority, then
 * arrival. While it is queued, whoever is behind it (and every newcomer of no
 * higher priority) is refused the bytes that it wants.
 */
struct budget_waiter {
	struct budget *b;
	u64 n;
	struct budget_waiter *next;
	bool queued;
};

void budget_wait_begin(struct budget_waiter *w, struct budget *b, u64 n);
void budget_wait_end(struct budget_waiter *w);  /* legal when not queued */

/* What a queued waiter could be charged now: behind those ahead of it. */
u64 budget_wait_available(const struct budget_waiter *w);

/*
 * The charge of a waiter: as budget_charge, counting only those ahead of it.
 * Does not count a refusal. On success it is no longer queued.
 */
int budget_wait_charge(struct budget_waiter *w, bool *ret_over_high, struct budget_refusal *ref);

/* What the waiter could be charged now, counting only those ahead of it. */
u64 budget_wait_available(const struct budget_waiter *w);

/* -- for tests -------------------------------------------------------------- */

/* Recomputes every sum; 0 when all agree, else a line number of the check. */
int budget_check(const struct budget_pool *pool);

#endif
