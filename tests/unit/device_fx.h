/* SPDX-License-Identifier: MIT */
/* What the files of test_device.c share: the fixture, and the names of the cases. */
#ifndef HEARTH_DEVICE_FX_H
#define HEARTH_DEVICE_FX_H

#include "unit.h"

#include "dev/hearth.h"

#define MIB ((uint64_t)1 << 20)
#define KV_SIZE (8 * MIB)
#define WEIGHTS_SIZE (16 * MIB)
#define ACCOUNT_SIZE (64 * MIB)

extern const char *device;  /* NULL: embedded */
extern uint64_t page;

struct fx {
	struct hearth *h;
	struct hearth_pool *kv, *weights, *account;
	struct hearth_tenant *a, *b;
	struct hearth_err err;
};

#define OK(f, call) do { \
	int ok_ret = (call); \
	if (ok_ret) \
		fail_msg("%s: %d: %s", #call, ok_ret, (f)->err.text); \
} while (0)

int fx_set_up(void **state);
int fx_tear_down(void **state);
uint64_t current_of(struct fx *f, struct hearth_tenant *t, struct hearth_pool *pool);
void limit(struct fx *f, struct hearth_tenant *t, struct hearth_pool *pool, uint64_t min,
	   uint64_t low, uint64_t high, uint64_t max);
bool all_bytes(const void *p, int value, uint64_t n);
/* Whether a byte at @p can be written (or read) without a signal. */
bool touches(volatile char *p, volatile bool write_it);

/* In the order in which they run. */
#define DEVICE_CASES(CASE) \
	CASE(sizes_at_every_border) \
	CASE(bad_arguments_of_a_region) \
	CASE(addresses_are_aligned) \
	CASE(memory_is_zero_for_the_next_owner) \
	CASE(a_refusal_names_the_limit_and_the_holder_and_changes_nothing) \
	CASE(wrong_budgets_are_refused_and_say_whose) \
	CASE(limits_may_go_below_use) \
	CASE(charges_without_memory) \
	CASE(peak_is_kept_until_it_is_reset) \
	CASE(a_set_of_budgets_is_applied_whole_or_not) \
	CASE(a_pool_is_resized_as_far_as_it_is_free) \
	CASE(a_sealed_region_is_read_only_for_good) \
	CASE(a_named_region_outlives_its_tenant) \
	CASE(names_are_unique_in_a_pool) \
	CASE(an_unsealed_named_region_is_found_writable_after_its_owner) \
	CASE(a_purgeable_region_gives_way_and_says_so) \
	CASE(purging_begins_with_the_lowest_priority_and_spares_a_min) \
	CASE(waiting_ends_when_the_time_is_up) \
	CASE(the_highest_priority_is_served_first) \
	CASE(events_say_what_happened_with_figures) \
	CASE(pressure_rises_and_falls_once) \
	CASE(the_descriptor_is_readable_while_an_event_waits) \
	CASE(the_whole_state_can_be_read) \
	CASE(a_file_is_read_straight_into_a_region) \
	CASE(a_region_is_shared_by_descriptor) \
	CASE(export_is_a_descriptor_or_says_that_it_cannot_be)

#define CASE(name) void name(void **state);
DEVICE_CASES(CASE)
#undef CASE

#endif
