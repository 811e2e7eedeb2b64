// SPDX-License-Identifier: MIT
/* The core against the tables that the kernel replays too, and a few that need a page. */
#include "unit.h"

#include "kmod/core/args.h"
#include "kmod/core/budget.h"
#include "kmod/core/extent.h"
#include "kmod/core/pressure.h"
#include "vectors/args_cases.h"
#include "vectors/budget_cases.h"
#include "vectors/extent_cases.h"
#include "vectors/pressure_cases.h"

static void budget_table_holds(void **state)
{
	static struct budget_replay r;

	assert_int_equal(budget_replay(&r), 0);
}

static void a_wrong_table_is_noticed(void **state)
{
	static struct budget_replay r;
	struct budget_step step = { .op = B_CHARGE, .a = 5, .ret = -ENOSPC };

	assert_true(budget_replay_step(&r, &(struct budget_step){ .op = B_POOL, .a = 9 }));
	assert_true(budget_replay_step(&r, &(struct budget_step){ .op = B_ATTACH }));
	assert_false(budget_replay_step(&r, &step));
}

static void extent_table_holds(void **state)
{
	static struct extent_replay r;

	assert_int_equal(extent_replay(&r), 0);
}

static void pressure_table_holds(void **state)
{
	assert_int_equal(pressure_replay(), 0);
}

static void args_tables_hold(void **state)
{
	assert_int_equal(args_replay(), 0);
	assert_int_equal(args_flags(5, 7), 0);
	assert_int_equal(args_flags(8, 7), -EOPNOTSUPP);
	assert_int_equal(args_flags(1ull << 63, 7), -EOPNOTSUPP);
	assert_int_equal(args_limits(2, 0, 0, 1), -EINVAL);
	assert_int_equal(args_limits(2, 9, 1, 2), 0);
}

static void a_set_of_budgets_is_all_or_nothing(void **state)
{
	struct budget_pool p, q;
	struct budget a, b, c;
	struct budget_refusal ref;
	size_t bad = 9;

	budget_pool_init(&p, 100);
	budget_pool_init(&q, 10);
	budget_attach(&a, &p, 0, NULL);
	budget_attach(&b, &p, 0, NULL);
	budget_attach(&c, &q, 0, NULL);
	struct budget_change one[] = {
		{ &a, { .min = 60, .high = 70, .max = 80 } },
		{ &c, { .min = 10, .high = 10, .max = 10 } },
		{ &b, { .min = 41, .high = 70, .max = 80 } },
	};
	assert_int_equal(budget_set_many(one, 3, &bad, &ref), -ENOSPC);
	assert_int_equal(bad, 2);
	assert_int_equal(ref.limit, BUDGET_BY_SUM);
	assert_int_equal(ref.available, 40);
	/* the min that is in the way is one of the same set */
	assert_ptr_equal(ref.holder, &a);
	assert_int_equal(ref.holder_bytes, 60);
	assert_int_equal(p.min_sum + q.min_sum + a.limits.min + c.limits.min, 0);
	one[2].limits.min = 40;
	assert_int_equal(budget_set_many(one, 3, &bad, &ref), 0);
	assert_int_equal(p.min_sum, 100);
	assert_int_equal(q.min_sum, 10);

	/* together a swap fits that no order of single steps would allow */
	struct budget_change swap[] = {
		{ &b, { .min = 60, .max = 80 } },
		{ &a, { .min = 40, .max = 80 } },
	};
	assert_int_equal(budget_set_limits(&b, &swap[0].limits, NULL, &ref), -ENOSPC);
	assert_int_equal(budget_set_many(swap, 2, &bad, &ref), 0);
	assert_int_equal(b.limits.min, 60);

	struct budget_change twice[] = { { &a, { .max = 1 } }, { &a, { .max = 2 } } };
	assert_int_equal(budget_set_many(twice, 2, &bad, &ref), -EINVAL);
	assert_int_equal(bad, 1);
	assert_int_equal(a.limits.max, 80);
	struct budget_change over[] = { { &a, { .min = CORE_U64_MAX, .max = CORE_U64_MAX } } };
	assert_int_equal(budget_set_many(over, 1, NULL, NULL), -ENOSPC);
	assert_int_equal(budget_check(&p), 0);
	assert_int_equal(budget_check(&q), 0);
}

static void every_refusal_is_counted_in_its_place(void **state)
{
	struct budget_limits l = BUDGET_LIMITS_NONE;
	struct budget_waiter w = { 0 };
	struct budget_pool p;
	struct budget a, b;

	budget_pool_init(&p, 100);
	budget_attach(&a, &p, 0, NULL);
	budget_attach(&b, &p, 0, NULL);
	l.min = 30;
	assert_int_equal(budget_set_limits(&b, &l, NULL, NULL), 0);
	l.min = 0;
	l.max = 90;
	assert_int_equal(budget_set_limits(&a, &l, NULL, NULL), 0);
	assert_int_equal(budget_charge(&a, 91, NULL, NULL), -ENOSPC);
	assert_int_equal(budget_charge(&a, 71, NULL, NULL), -ENOSPC);
	assert_int_equal(budget_charge(&a, 60, NULL, NULL), 0);
	budget_wait_begin(&w, &b, 35);
	assert_int_equal(budget_charge(&a, 10, NULL, NULL), -ENOSPC);
	budget_wait_end(&w);
	budget_wait_end(&w);
	assert_int_equal(budget_charge(&b, 41, NULL, NULL), -ENOSPC);
	assert_int_equal(a.n.refused_max, 1);
	assert_int_equal(a.n.refused_min, 1);
	assert_int_equal(a.n.refused_queue, 1);
	assert_int_equal(a.n.refused_pool, 0);
	assert_int_equal(b.n.refused_pool, 1);
	assert_int_equal(a.n.charges, 1);
}

/* Taken back, a charge has left nothing: not a peak, not a count. */
static void a_charge_can_be_undone(void **state)
{
	struct budget_limits l = BUDGET_LIMITS_NONE;
	struct budget_pool p, p_was;
	struct budget a, was;
	bool over = false;

	budget_pool_init(&p, 100);
	budget_attach(&a, &p, 0, NULL);
	l.min = 20;
	l.high = 50;
	assert_int_equal(budget_set_limits(&a, &l, NULL, NULL), 0);
	assert_int_equal(budget_charge(&a, 40, NULL, NULL), 0);
	assert_int_equal(budget_uncharge(&a, 30), 0);
	was = a;
	p_was = p;
	assert_int_equal(budget_charge(&a, 60, &over, NULL), 0);
	assert_true(over);
	assert_int_equal(a.peak, 70);
	assert_int_equal(p.peak, 70);
	budget_charge_undo(&a, 60);
	/* What remembers the last charge aside. */
	a.peak_was = was.peak_was;
	a.went_over = was.went_over;
	p.peak_was = p_was.peak_was;
	assert_memory_equal(&a, &was, sizeof(a));
	assert_memory_equal(&p, &p_was, sizeof(p));
	budget_charge_undo(&a, 0);
	assert_memory_equal(&a, &was, sizeof(a));
}

static void pressure_rules_are_checked_and_scaled(void **state)
{
	struct pressure_rules r;

	pressure_rules_default(&r, 1000);
	assert_int_equal(pressure_rules_check(&r), 0);
	assert_int_equal(r.rise[PRESSURE_LOW], 800);
	assert_int_equal(r.fall[PRESSURE_CRITICAL], 940);
	pressure_rules_default(&r, CORE_U64_MAX);
	assert_int_equal(pressure_rules_check(&r), 0);
	assert_true(r.rise[PRESSURE_CRITICAL] > CORE_U64_MAX / 100 * 96);
	pressure_rules_default(&r, 0);
	assert_int_equal(pressure_rules_check(&r), 0);
	assert_int_equal(r.rise[PRESSURE_LOW], 1);
	r.fall[PRESSURE_LOW] = r.rise[PRESSURE_LOW] + 1;
	assert_int_equal(pressure_rules_check(&r), -EINVAL);
	pressure_rules_default(&r, 1000);
	r.rise[PRESSURE_MEDIUM] = 700;
	assert_int_equal(pressure_rules_check(&r), -EINVAL);
}

static void repetition_time_is_told(void **state)
{
	struct pressure_rules r;
	struct pressure_event ev;
	struct pressure p;
	u64 seq = 0;

	pressure_rules_default(&r, 1000);
	pressure_init(&p, 5);
	assert_true(pressure_next_ns(&p, &r) == CORE_U64_MAX);
	assert_int_equal(pressure_update(&p, &r, 850, 70, &seq, &ev), 1);
	assert_int_equal(pressure_next_ns(&p, &r), 70 + 1000000000ull);
	r.repeat_ns = 0;
	assert_true(pressure_next_ns(&p, &r) == CORE_U64_MAX);
}

static void alloc_needs_its_spares_before(void **state)
{
	struct extent nodes[3], *e = NULL;
	struct extent_map m;

	assert_int_equal(extent_map_init(&m, 100, 1, &nodes[0]), 0);
	assert_int_equal(extent_alloc(&m, 10, 1, NULL, &e), -ENOMEM);
	extent_spare_put(&m, &nodes[1]);
	assert_int_equal(extent_alloc(&m, 10, 1, NULL, &e), -ENOMEM);
	assert_null(e);
	assert_int_equal(m.free, 100);
	extent_spare_put(&m, &nodes[2]);
	assert_int_equal(extent_alloc(&m, 10, 1, NULL, &e), 0);
	assert_int_equal(extent_check(&m), 0);
	assert_non_null(extent_spare_get(&m));
	assert_null(extent_spare_get(&m));
}

/* Many holes of the right size and the wrong place: the placed one is still found. */
static void a_fit_behind_many_misfits_is_found(void **state)
{
	enum { N = 400 };
	static struct extent nodes[3 * N];
	struct extent *e, *used[N], *gap[N];
	struct extent_map m;

	assert_int_equal(extent_map_init(&m, 16 * N, 1, &nodes[0]), 0);
	for (int i = 1; i < 3 * N; i++)
		extent_spare_put(&m, &nodes[i]);
	/* [1, 9) of each 16 free, but of the last one [0, 8) */
	for (int i = 0; i < N; i++) {
		int first = i == N - 1 ? 0 : 1;

		assert_int_equal(extent_alloc_at(&m, 16ull * i + first, 8, NULL, &gap[i]), 0);
	}
	for (int i = 0; i < N; i++) {
		while (!extent_alloc(&m, 8, 1, NULL, &used[i]) ||
		       !extent_alloc(&m, 1, 1, NULL, &used[i]))
			;
	}
	for (int i = 0; i < N; i++)
		extent_free(&m, gap[i]);
	assert_int_equal(m.n_free, N);
	assert_int_equal(extent_alloc(&m, 8, 8, NULL, &e), 0);
	assert_int_equal(e->start, 16 * (N - 1));
	assert_int_equal(extent_alloc(&m, 8, 8, NULL, &e), -ENOSPC);
	assert_int_equal(extent_check(&m), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(budget_table_holds),
		cmocka_unit_test(a_wrong_table_is_noticed),
		cmocka_unit_test(extent_table_holds),
		cmocka_unit_test(pressure_table_holds),
		cmocka_unit_test(args_tables_hold),
		cmocka_unit_test(a_set_of_budgets_is_all_or_nothing),
		cmocka_unit_test(every_refusal_is_counted_in_its_place),
		cmocka_unit_test(a_charge_can_be_undone),
		cmocka_unit_test(pressure_rules_are_checked_and_scaled),
		cmocka_unit_test(repetition_time_is_told),
		cmocka_unit_test(alloc_needs_its_spares_before),
		cmocka_unit_test(a_fit_behind_many_misfits_is_found),
	};
	return UNIT_RUN(tests);
}
