/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Pressure: a figure that grows with need (bytes used) turned into a level.
 *
 * Each level above none has a threshold for rising and a lower one for
 * falling: the level becomes L when the figure is >= rise[L], and leaves L
 * when it is < fall[L]. Between the two nothing changes, so that a figure that
 * trembles at a threshold makes one event, not hundreds. While a level above
 * none lasts it is announced again, at most every repeat_ns.
 *
 * Time is an argument (ns, any monotonic clock). Locking: the caller
 * serialises calls on one gauge and on one sequence.
 */
#ifndef HEARTH_CORE_PRESSURE_H
#define HEARTH_CORE_PRESSURE_H

#include "port.h"

enum pressure_level {
	PRESSURE_NONE,
	PRESSURE_LOW,
	PRESSURE_MEDIUM,
	PRESSURE_CRITICAL,
	PRESSURE_LEVELS
};

struct pressure_rules {
	u64 rise[PRESSURE_LEVELS];  /* [0] unused; CORE_U64_MAX: never */
	u64 fall[PRESSURE_LEVELS];  /* fall[L] <= rise[L] */
	u64 repeat_ns;              /* 0: never announced again */
};

struct pressure {
	enum pressure_level level;
	u64 value;                  /* as of the last update */
	u64 changed_ns;             /* when the level last changed */
	u64 announced_ns;
};

struct pressure_event {
	u64 seq;
	u64 time_ns;
	enum pressure_level level;
	enum pressure_level was;    /* equal to level for a repetition */
	u64 value;                  /* the figure that caused it */
	u64 threshold;              /* the threshold it passed */
};

/* One number for every event of the machine, from 1; gaps mean loss. */
static inline u64 event_seq_next(u64 *seq)
{
	return ++*seq;
}

/*
 * -EINVAL unless rise and fall grow (or stay) from level to level and
 * fall[L] <= rise[L].
 */
int pressure_rules_check(const struct pressure_rules *rules);

/*
 * Thresholds as parts of @full, in 1/1000: rise at 800, 900, 970 and fall at
 * 750, 850, 940, say. Rounds towards zero; fall[L] never above rise[L].
 */
void pressure_rules_permille(struct pressure_rules *ret_rules, u64 full, const u32 rise[3],
			     const u32 fall[3], u64 repeat_ns);

/*
 * The rules that pools and tenants start with: 80, 90, 97 % of @full when
 * rising, 75, 85, 94 % when falling, repeated every second. @full is a pool's
 * size, or the smaller of a tenant's max and its pool's size.
 */
void pressure_rules_default(struct pressure_rules *ret_rules, u64 full);

void pressure_init(struct pressure *p, u64 now_ns);

/*
 * Takes a new figure. 1 and an event when the level changed or is due to be
 * repeated (then *seq is stepped), else 0. A step over several levels is one
 * event. A clock that runs backwards never causes an event.
 */
int pressure_update(struct pressure *p, const struct pressure_rules *rules, u64 value,
		    u64 now_ns, u64 *seq, struct pressure_event *ret_ev);

/* When a repetition is due (CORE_U64_MAX: never), for the caller's timer. */
u64 pressure_next_ns(const struct pressure *p, const struct pressure_rules *rules);

#endif
