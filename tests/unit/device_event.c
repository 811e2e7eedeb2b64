// SPDX-License-Identifier: MIT
/* Events and the whole state. */
#include "device_fx.h"

#include <poll.h>

#include "base/mono.h"

/* The next event of a type, within two seconds; fails when there is none. */
static struct hearth_event expect_event(struct hearth_events *e, enum hearth_event_type type)
{
	struct pollfd p = { .fd = hearth_events_fd(e), .events = POLLIN };
	struct hearth_event ev = { 0 };
	uint64_t last = 0;

	while (poll(&p, 1, 2000) == 1) {
		assert_int_equal(hearth_events_read(e, &ev), 1);
		assert_true(ev.seq > last);
		last = ev.seq;
		if (ev.type == type)
			return ev;
	}
	fail_msg("no %s event", hearth_event_name(type));
	return ev;
}

void events_say_what_happened_with_figures(void **state)
{
	struct hearth_events *mine, *all;
	struct hearth_region *r, *s;
	struct hearth_event ev;
	struct fx *f = *state;

	OK(f, hearth_events_open(f->h, f->a, &mine, &f->err));
	OK(f, hearth_events_open(f->h, NULL, &all, &f->err));
	limit(f, f->a, f->kv, 0, 0, 2 * MIB, 7 * MIB);
	ev = expect_event(mine, HEARTH_EVENT_BUDGET);
	assert_string_equal(ev.tenant, "alpha");
	assert_string_equal(ev.pool, "t-kv");

	OK(f, hearth_region_alloc(f->a, f->kv, 3 * MIB, 0, 0, 0, &r, &f->err));
	ev = expect_event(mine, HEARTH_EVENT_HIGH);
	assert_int_equal(ev.current, 3 * MIB);
	assert_int_equal(ev.limit, 2 * MIB);

	assert_int_equal(hearth_region_alloc(f->a, f->kv, 5 * MIB, 0, 0, 0, &s, &f->err), -ENOSPC);
	ev = expect_event(mine, HEARTH_EVENT_REFUSED);
	assert_int_equal(ev.bytes, 5 * MIB);
	assert_int_equal(ev.current, 3 * MIB);

	limit(f, f->a, f->kv, 0, 0, MIB, 7 * MIB);
	ev = expect_event(mine, HEARTH_EVENT_RECLAIM);
	assert_int_equal(ev.bytes, 2 * MIB);
	assert_int_equal(ev.deadline_ns, 0);

	/* time enough to ask, also where a millisecond is gone before the call is */
	assert_int_equal(hearth_region_alloc(f->b, f->kv, 6 * MIB, 0, 0, 50, &s, &f->err), -ETIMEDOUT);
	ev = expect_event(mine, HEARTH_EVENT_RECLAIM);
	assert_int_equal(ev.bytes, MIB);
	assert_true(ev.deadline_ns > 0 && ev.deadline_ns <= (uint64_t)mono_ns());

	OK(f, hearth_region_purgeable(r, &f->err));
	OK(f, hearth_region_alloc(f->b, f->kv, 6 * MIB, 0, 0, 0, &s, &f->err));
	ev = expect_event(mine, HEARTH_EVENT_PURGED);
	assert_int_equal(ev.bytes, 3 * MIB);
	assert_int_equal(ev.current, 0);

	/* beta's refusal is beta's; who watches all hears it */
	ev = expect_event(all, HEARTH_EVENT_REFUSED);
	assert_string_equal(ev.tenant, "alpha");
	ev = expect_event(all, HEARTH_EVENT_REFUSED);
	assert_string_equal(ev.tenant, "beta");
	hearth_region_free(r);
	hearth_region_free(s);
	hearth_events_close(mine);
	hearth_events_close(all);
	hearth_events_close(NULL);
}

void pressure_rises_and_falls_once(void **state)
{
	struct hearth_pool_info info;
	struct hearth_events *e;
	struct hearth_region *r;
	struct hearth_event ev;
	struct fx *f = *state;

	OK(f, hearth_events_open(f->h, f->a, &e, &f->err));
	OK(f, hearth_region_alloc(f->a, f->kv, 7 * MIB + 900 * 1024, 0, 0, 0, &r, &f->err));
	do {
		ev = expect_event(e, HEARTH_EVENT_PRESSURE);
	} while (strcmp(ev.pool, "t-kv") || ev.tenant[0]);
	assert_int_equal(ev.level, HEARTH_LEVEL_CRITICAL);
	assert_int_equal(ev.current, 7 * MIB + 900 * 1024);
	OK(f, hearth_pool_info(f->kv, &info));
	assert_int_equal(info.level, HEARTH_LEVEL_CRITICAL);
	hearth_region_free(r);
	do {
		ev = expect_event(e, HEARTH_EVENT_PRESSURE);
	} while (strcmp(ev.pool, "t-kv") || ev.tenant[0] || ev.level == HEARTH_LEVEL_CRITICAL);
	assert_int_equal(ev.level, HEARTH_LEVEL_NONE);
	hearth_events_close(e);
}

void the_descriptor_is_readable_while_an_event_waits(void **state)
{
	struct hearth_events *e;
	struct hearth_event ev;
	struct fx *f = *state;
	struct pollfd p;

	OK(f, hearth_events_open(f->h, f->a, &e, &f->err));
	p = (struct pollfd){ .fd = hearth_events_fd(e), .events = POLLIN };
	while (hearth_events_read(e, &ev) == 1)
		;
	limit(f, f->a, f->account, 0, 0, HEARTH_UNLIMITED, MIB);
	limit(f, f->a, f->account, 0, 0, HEARTH_UNLIMITED, 2 * MIB);
	assert_int_equal(poll(&p, 1, 2000), 1);
	ev = expect_event(e, HEARTH_EVENT_BUDGET);
	assert_int_equal(poll(&p, 1, 0), 1);
	ev = expect_event(e, HEARTH_EVENT_BUDGET);
	assert_int_equal(ev.limit, 2 * MIB);
	while (hearth_events_read(e, &ev) == 1)
		;
	assert_int_equal(poll(&p, 1, 0), 0);
	hearth_events_close(e);
}

void the_whole_state_can_be_read(void **state)
{
	struct hearth_region_row *regions;
	struct hearth_state_row *rows;
	struct hearth_region *r;
	struct fx *f = *state;
	size_t n, mine = 0;
	uint64_t seq;

	OK(f, hearth_region_alloc(f->b, f->kv, 2 * MIB, 0, 0, 0, &r, &f->err));
	OK(f, hearth_region_purgeable(r, &f->err));
	OK(f, hearth_charge(f->b, f->account, 5, 0, &f->err));
	OK(f, hearth_state(f->h, &rows, &n, &seq));
	assert_true(seq > 0);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(rows[i].tenant, "beta"))
			continue;
		assert_int_equal(rows[i].cls, HEARTH_CLASS_STT);
		assert_int_equal(rows[i].priority, 50);
		assert_true(rows[i].open);
		assert_false(rows[i].kept);
		if (!strcmp(rows[i].pool, "t-kv")) {
			assert_int_equal(rows[i].usage.current, 2 * MIB);
			assert_int_equal(rows[i].usage.purgeable, 2 * MIB);
			mine++;
		}
		if (!strcmp(rows[i].pool, "t-account")) {
			assert_int_equal(rows[i].kind, HEARTH_KIND_ACCOUNT);
			assert_int_equal(rows[i].usage.current, 5);
			mine++;
		}
	}
	assert_int_equal(mine, 2);
	free(rows);
	OK(f, hearth_regions(f->h, &regions, &n));
	assert_int_equal(n, 1);
	assert_string_equal(regions[0].tenant, "beta");
	assert_true(regions[0].purgeable);
	assert_int_equal(regions[0].handles, 1);
	free(regions);
	hearth_region_free(r);
	OK(f, hearth_uncharge(f->b, f->account, 5));
}
