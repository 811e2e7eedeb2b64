/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Figures and times, and the events they must make: by hand from the rules in
 * kmod/core/pressure.h, which is to be included first. No libc.
 */
#ifndef HEARTH_VECTORS_PRESSURE_H
#define HEARTH_VECTORS_PRESSURE_H

struct pressure_step {
	u64 value, now;
	bool event;
	enum pressure_level level, was;
	u64 threshold;
};

static const struct pressure_rules pressure_replay_rules = {
	.rise = { 0, 80, 90, 97 },
	.fall = { 0, 75, 85, 94 },
	.repeat_ns = 1000,
};

#define P_NONE PRESSURE_NONE
#define P_LOW PRESSURE_LOW
#define P_MEDIUM PRESSURE_MEDIUM
#define P_CRITICAL PRESSURE_CRITICAL

static const struct pressure_step pressure_steps[] = {
	{ .value = 0, .now = 0 },
	{ .value = 79, .now = 5000 },
	/* rising: at the threshold, not before */
	{ .value = 80, .now = 5001, .event = true, .level = P_LOW, .was = P_NONE, .threshold = 80 },
	/* trembling about it says nothing more */
	{ .value = 79, .now = 5002, .level = P_LOW },
	{ .value = 80, .now = 5003, .level = P_LOW },
	{ .value = 75, .now = 5004, .level = P_LOW },
	{ .value = 74, .now = 5005, .event = true, .level = P_NONE, .was = P_LOW, .threshold = 75 },
	{ .value = 79, .now = 5006 },
	/* several levels in one step are one event */
	{ .value = 97, .now = 5007, .event = true, .level = P_CRITICAL, .was = P_NONE, .threshold = 97 },
	{ .value = 94, .now = 5008, .level = P_CRITICAL },
	{ .value = 93, .now = 5009, .event = true, .level = P_MEDIUM, .was = P_CRITICAL, .threshold = 94 },
	{ .value = 90, .now = 5010, .level = P_MEDIUM },
	/* repeated while it lasts, at most every 1000 */
	{ .value = 91, .now = 6008, .level = P_MEDIUM },
	{ .value = 92, .now = 6009, .event = true, .level = P_MEDIUM, .was = P_MEDIUM, .threshold = 90 },
	{ .value = 92, .now = 6010, .level = P_MEDIUM },
	{ .value = 92, .now = 7008, .level = P_MEDIUM },
	{ .value = 92, .now = 9000, .event = true, .level = P_MEDIUM, .was = P_MEDIUM, .threshold = 90 },
	{ .value = 92, .now = 9999, .level = P_MEDIUM },
	/* a change restarts the count */
	{ .value = 99, .now = 9999, .event = true, .level = P_CRITICAL, .was = P_MEDIUM, .threshold = 97 },
	{ .value = 99, .now = 10000, .level = P_CRITICAL },
	{ .value = 99, .now = 10999, .event = true, .level = P_CRITICAL, .was = P_CRITICAL, .threshold = 97 },
	/* a clock that runs backwards repeats nothing */
	{ .value = 99, .now = 100, .level = P_CRITICAL },
	{ .value = 0, .now = 11000, .event = true, .level = P_NONE, .was = P_CRITICAL, .threshold = 75 },
	/* none is never repeated */
	{ .value = 0, .now = 99999 },
	{ .value = CORE_U64_MAX, .now = 99999, .event = true, .level = P_CRITICAL, .was = P_NONE, .threshold = 97 },
};

#define PRESSURE_STEPS (sizeof(pressure_steps) / sizeof(pressure_steps[0]))

/* 0, or the number (from 1) of the first step that went otherwise. */
static size_t pressure_replay(void)
{
	struct pressure_event ev;
	u64 seq = 41, expect = 41;
	struct pressure p;
	size_t i;

	pressure_init(&p, 0);
	for (i = 0; i < PRESSURE_STEPS; i++) {
		const struct pressure_step *s = &pressure_steps[i];
		int got = pressure_update(&p, &pressure_replay_rules, s->value, s->now, &seq, &ev);

		expect += s->event;
		if (got != s->event || seq != expect || p.level != s->level || p.value != s->value)
			return i + 1;
		if (got && (ev.seq != seq || ev.time_ns != s->now || ev.level != s->level ||
			    ev.was != s->was || ev.threshold != s->threshold ||
			    ev.value != s->value))
			return i + 1;
	}
	return 0;
}

#endif
