// SPDX-License-Identifier: MIT
/* Budgets, charges and waiting for them. */
#include "device_fx.h"

#include <pthread.h>

#include "base/mono.h"

/* -- budgets ----------------------------------------------------------------------- */

void a_refusal_names_the_limit_and_the_holder_and_changes_nothing(void **state)
{
	struct hearth_region *r = NULL, *s = NULL;
	struct hearth_usage u;
	struct fx *f = *state;

	limit(f, f->a, f->kv, 0, 0, HEARTH_UNLIMITED, 3 * MIB);
	assert_int_equal(hearth_region_alloc(f->a, f->kv, 4 * MIB, 0, 0, 0, &r, &f->err), -ENOSPC);
	assert_non_null(strstr(f->err.text, "its max is 3.0 MiB"));
	assert_non_null(strstr(f->err.text, "alpha"));

	OK(f, hearth_region_alloc(f->b, f->kv, 6 * MIB, 0, 0, 0, &s, &f->err));
	assert_int_equal(hearth_region_alloc(f->a, f->kv, 3 * MIB, 0, 0, 0, &r, &f->err), -ENOSPC);
	assert_non_null(strstr(f->err.text, "tenant beta holds most (6.0 MiB)"));
	hearth_region_free(s);

	limit(f, f->b, f->kv, 6 * MIB, 0, HEARTH_UNLIMITED, HEARTH_UNLIMITED);
	assert_int_equal(hearth_region_alloc(f->a, f->kv, 3 * MIB, 0, 0, 0, &r, &f->err), -ENOSPC);
	assert_non_null(strstr(f->err.text, "guaranteed"));
	assert_non_null(strstr(f->err.text, "beta"));

	assert_null(r);
	OK(f, hearth_usage_get(f->a, f->kv, &u));
	assert_int_equal(u.current, 0);
	assert_int_equal(u.peak, 0);
	assert_int_equal(u.n_charge, 0);
	assert_int_equal(u.n_refused_max, 1);
	assert_int_equal(u.n_refused_pool, 1);
	assert_int_equal(u.n_refused_min, 1);
	/* the guarantee holds for its owner, to the byte */
	OK(f, hearth_region_alloc(f->a, f->kv, 2 * MIB, 0, 0, 0, &r, &f->err));
	OK(f, hearth_region_alloc(f->b, f->kv, 6 * MIB, 0, 0, 0, &s, &f->err));
	hearth_region_free(r);
	hearth_region_free(s);
}

void wrong_budgets_are_refused_and_say_whose(void **state)
{
	struct hearth_budget b = { .min = 5 * MIB, .high = HEARTH_UNLIMITED, .max = HEARTH_UNLIMITED };
	struct hearth_usage u;
	struct fx *f = *state;

	OK(f, hearth_budget_set(f->a, f->kv, &b, &f->err));
	assert_int_equal(hearth_budget_set(f->b, f->kv, &b, &f->err), -ENOSPC);
	assert_non_null(strstr(f->err.text, "alpha"));
	assert_non_null(strstr(f->err.text, "3.0 MiB"));
	b.max = MIB;
	assert_int_equal(hearth_budget_set(f->b, f->kv, &b, &f->err), -EINVAL);
	assert_int_equal(hearth_budget_set(f->b, NULL, &b, &f->err), -ENOENT);
	OK(f, hearth_usage_get(f->b, f->kv, &u));
	assert_int_equal(u.budget.min, 0);
	assert_true(u.budget.max == HEARTH_UNLIMITED);
}

void limits_may_go_below_use(void **state)
{
	struct hearth_region *r, *s = NULL;
	struct fx *f = *state;

	OK(f, hearth_region_alloc(f->a, f->kv, 4 * MIB, 0, 0, 0, &r, &f->err));
	limit(f, f->a, f->kv, 0, 0, MIB, 2 * MIB);
	assert_int_equal(current_of(f, f->a, f->kv), 4 * MIB);
	assert_true(touches(hearth_region_ptr(r), true));
	assert_int_equal(hearth_region_alloc(f->a, f->kv, page, 0, 0, 0, &s, &f->err), -ENOSPC);
	hearth_region_free(r);
	OK(f, hearth_region_alloc(f->a, f->kv, page, 0, 0, 0, &s, &f->err));
	hearth_region_free(s);
}

void charges_without_memory(void **state)
{
	uint64_t now, purge;
	struct fx *f = *state;

	OK(f, hearth_charge(f->a, f->account, 40 * MIB, 0, &f->err));
	assert_int_equal(hearth_charge(f->b, f->account, 30 * MIB, 0, &f->err), -ENOSPC);
	assert_non_null(strstr(f->err.text, "alpha"));
	OK(f, hearth_available(f->b, f->account, &now, &purge));
	assert_int_equal(now, 24 * MIB);
	assert_int_equal(purge, 24 * MIB);
	assert_int_equal(hearth_uncharge(f->a, f->account, 40 * MIB + 1), -EINVAL);
	assert_int_equal(hearth_uncharge(f->b, f->account, 1), -EINVAL);
	assert_int_equal(hearth_charge(f->a, f->account, 0, 0, &f->err), -EINVAL);
	assert_int_equal(hearth_uncharge(f->a, f->account, 0), -EINVAL);
	assert_int_equal(hearth_charge(f->a, NULL, 1, 0, &f->err), -ENOENT);
	OK(f, hearth_uncharge(f->a, f->account, 39 * MIB));
	assert_int_equal(current_of(f, f->a, f->account), MIB);
	/* the rest goes back when the tenant is closed */
	hearth_tenant_close(f->a);
	OK(f, hearth_tenant_open(f->h, "alpha", HEARTH_CLASS_LLM, 10, &f->a, &f->err));
	assert_int_equal(current_of(f, f->a, f->account), 0);
}

void peak_is_kept_until_it_is_reset(void **state)
{
	struct hearth_usage u;
	struct fx *f = *state;

	OK(f, hearth_charge(f->a, f->account, 5 * MIB, 0, &f->err));
	OK(f, hearth_uncharge(f->a, f->account, 4 * MIB));
	OK(f, hearth_usage_get(f->a, f->account, &u));
	assert_int_equal(u.peak, 5 * MIB);
	OK(f, hearth_peak_reset(f->a, f->account));
	OK(f, hearth_usage_get(f->a, f->account, &u));
	assert_int_equal(u.peak, MIB);
	OK(f, hearth_uncharge(f->a, f->account, MIB));
}

void a_set_of_budgets_is_applied_whole_or_not(void **state)
{
	struct hearth_budget_line lines[] = {
		{ "alpha", HEARTH_CLASS_LLM, 10, "t-kv", { MIB, 0, 2 * MIB, 3 * MIB } },
		{ "alpha", HEARTH_CLASS_LLM, 10, "t-account", { 0, 0, 2 * MIB, 3 * MIB } },
		{ "gamma", HEARTH_CLASS_TTS, 70, "t-kv", { 8 * MIB, 0, 8 * MIB, 8 * MIB } },
	};
	struct hearth_state_row *rows;
	struct hearth_usage u;
	struct fx *f = *state;
	size_t bad = 99, n, kept = 0;

	assert_int_equal(hearth_budget_apply(f->h, lines, 3, &bad, &f->err), -ENOSPC);
	assert_int_equal(bad, 2);
	assert_non_null(strstr(f->err.text, "gamma"));
	OK(f, hearth_usage_get(f->a, f->kv, &u));
	assert_int_equal(u.budget.min, 0);
	assert_int_equal(hearth_tenant_remove(f->h, "gamma", &f->err), -ENOENT);

	lines[2].budget.min = 7 * MIB;
	lines[2].pool = "t-nothing";
	assert_int_equal(hearth_budget_apply(f->h, lines, 3, &bad, &f->err), -ENOENT);
	lines[2].pool = "t-kv";
	lines[1].pool = "t-kv";
	assert_int_equal(hearth_budget_apply(f->h, lines, 3, &bad, &f->err), -EINVAL);
	assert_int_equal(bad, 1);
	lines[1].pool = "t-account";
	OK(f, hearth_budget_apply(f->h, lines, 3, &bad, &f->err));
	OK(f, hearth_usage_get(f->a, f->account, &u));
	assert_int_equal(u.budget.max, 3 * MIB);

	OK(f, hearth_state(f->h, &rows, &n, NULL));
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(rows[i].tenant, "gamma") && !strcmp(rows[i].pool, "t-kv")) {
			assert_true(rows[i].kept);
			assert_false(rows[i].open);
			assert_int_equal(rows[i].priority, 70);
			assert_int_equal(rows[i].usage.budget.min, 7 * MIB);
			kept++;
		}
	}
	assert_int_equal(kept, 1);
	free(rows);
	/* what is kept stays through a close, with its budget */
	hearth_tenant_close(f->a);
	OK(f, hearth_tenant_open(f->h, "alpha", HEARTH_CLASS_OTHER, 1, &f->a, &f->err));
	OK(f, hearth_usage_get(f->a, f->account, &u));
	assert_int_equal(u.budget.max, 3 * MIB);
	assert_int_equal(hearth_tenant_remove(f->h, "alpha", &f->err), -EBUSY);
	hearth_tenant_close(f->a);
	OK(f, hearth_tenant_remove(f->h, "alpha", &f->err));
	OK(f, hearth_tenant_remove(f->h, "gamma", &f->err));
	OK(f, hearth_tenant_open(f->h, "alpha", HEARTH_CLASS_LLM, 10, &f->a, &f->err));
	OK(f, hearth_usage_get(f->a, f->account, &u));
	assert_true(u.budget.max == HEARTH_UNLIMITED);
}

void a_pool_is_resized_as_far_as_it_is_free(void **state)
{
	struct hearth_pool_info info;
	struct hearth_region *r;
	struct fx *f = *state;

	OK(f, hearth_region_alloc(f->a, f->kv, 3 * MIB, 0, 0, 0, &r, &f->err));
	limit(f, f->b, f->kv, 5 * MIB, 0, HEARTH_UNLIMITED, HEARTH_UNLIMITED);
	assert_int_equal(hearth_pool_resize(f->kv, 4 * MIB, &f->err), -ENOSPC);
	limit(f, f->b, f->kv, 0, 0, HEARTH_UNLIMITED, HEARTH_UNLIMITED);
	assert_int_equal(hearth_pool_resize(f->kv, 2 * MIB, &f->err), -EBUSY);
	hearth_region_free(r);
	OK(f, hearth_pool_resize(f->kv, 2 * MIB, &f->err));
	assert_int_equal(hearth_region_alloc(f->a, f->kv, 3 * MIB, 0, 0, 0, &r, &f->err), -ENOSPC);
	OK(f, hearth_pool_resize(f->kv, KV_SIZE, &f->err));
	OK(f, hearth_region_alloc(f->a, f->kv, KV_SIZE, 0, 0, 0, &r, &f->err));
	assert_true(all_bytes(hearth_region_ptr(r), 0, KV_SIZE));
	memset(hearth_region_ptr(r), 7, KV_SIZE);
	hearth_region_free(r);
	OK(f, hearth_pool_info(f->kv, &info));
	assert_int_equal(info.largest_free, KV_SIZE);
}

/* -- waiting -------------------------------------------------------------------------- */

struct waiter {
	struct fx *f;
	struct hearth_tenant *t;
	uint64_t bytes;
	unsigned ms;
	int ret;
	int order;
	pthread_t thread;
	struct hearth_err err;
};

static int served;

static void *wait_charge(void *arg)
{
	struct waiter *w = arg;

	w->ret = hearth_charge(w->t, w->f->account, w->bytes, w->ms, &w->err);
	w->order = __atomic_add_fetch(&served, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

void waiting_ends_when_the_time_is_up(void **state)
{
	struct hearth_usage u;
	struct fx *f = *state;
	int64_t start;

	OK(f, hearth_charge(f->a, f->account, ACCOUNT_SIZE, 0, &f->err));
	start = mono_ns();
	assert_int_equal(hearth_charge(f->b, f->account, MIB, 30, &f->err), -ETIMEDOUT);
	assert_true(mono_ns() - start >= 30 * 1000000);
	assert_non_null(strstr(f->err.text, "alpha"));
	/* its own max is nothing that others could give back: no wait */
	limit(f, f->b, f->account, 0, 0, HEARTH_UNLIMITED, MIB);
	assert_int_equal(hearth_charge(f->b, f->account, 2 * MIB, 60000, &f->err), -ENOSPC);
	OK(f, hearth_usage_get(f->a, f->account, &u));
	assert_int_equal(u.n_reclaim, 1);
	OK(f, hearth_uncharge(f->a, f->account, ACCOUNT_SIZE));
}

static void queued(struct fx *f, struct waiter *w)
{
	struct hearth_usage u;
	uint64_t before, after = 0;

	/* it waits once it has asked for what it wants to be given back */
	OK(f, hearth_usage_get(f->a, f->account, &u));
	before = u.n_reclaim;
	pthread_create(&w->thread, NULL, wait_charge, w);
	for (int i = 0; i < 5000 && after <= before; i++) {
		usleep(1000);
		OK(f, hearth_usage_get(f->a, f->account, &u));
		after = u.n_reclaim;
	}
	assert_int_equal(after, before + 1);
}

void the_highest_priority_is_served_first(void **state)
{
	struct waiter low = { .bytes = 10 * MIB, .ms = 60000 }, high = low;
	struct fx *f = *state;

	OK(f, hearth_tenant_open(f->h, "later", HEARTH_CLASS_TTS, 90, &high.t, &f->err));
	low.t = f->b;
	low.f = high.f = f;
	OK(f, hearth_charge(f->a, f->account, ACCOUNT_SIZE, 0, &f->err));
	served = 0;
	queued(f, &low);
	queued(f, &high);
	OK(f, hearth_uncharge(f->a, f->account, 10 * MIB));
	pthread_join(high.thread, NULL);
	OK(&high, high.ret);
	assert_int_equal(current_of(f, low.t, f->account), 0);
	/* nobody of lower priority slips past who waits */
	OK(f, hearth_uncharge(f->a, f->account, 9 * MIB));
	assert_int_equal(hearth_charge(f->a, f->account, MIB, 0, &f->err), -ENOSPC);
	assert_non_null(strstr(f->err.text, "beta"));
	OK(f, hearth_uncharge(f->a, f->account, MIB));
	pthread_join(low.thread, NULL);
	OK(&low, low.ret);
	assert_int_equal(high.order, 1);
	assert_int_equal(low.order, 2);
	hearth_tenant_close(high.t);
}
