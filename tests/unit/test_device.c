// SPDX-License-Identifier: MIT
/*
 * libhearth by its contract, written once for both backends. Without an
 * argument it runs on embedded pools; with the path of a device node it runs
 * on that (as root: it makes its own pools and removes them).
 */
#include "unit.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/mono.h"
#include "dev/hearth.h"

#define MIB ((uint64_t)1 << 20)
#define KV_SIZE (8 * MIB)
#define WEIGHTS_SIZE (16 * MIB)
#define ACCOUNT_SIZE (64 * MIB)

static const char *device;  /* NULL: embedded */
static uint64_t page;

struct fx {
	struct hearth *h;
	struct hearth_pool *kv, *weights, *account;
	struct hearth_tenant *a, *b;
	struct hearth_err err;
};

static const struct hearth_pool_spec specs[] = {
	{ .kind = HEARTH_KIND_WEIGHTS, .name = "t-weights", .size = WEIGHTS_SIZE },
	{ .kind = HEARTH_KIND_KV, .name = "t-kv", .size = KV_SIZE },
	{ .kind = HEARTH_KIND_ACCOUNT, .name = "t-account", .size = ACCOUNT_SIZE },
};

#define OK(f, call) do { \
	int ok_ret = (call); \
	if (ok_ret) \
		fail_msg("%s: %d: %s", #call, ok_ret, (f)->err.text); \
} while (0)

static int set_up(void **state)
{
	struct fx *f = calloc(1, sizeof(*f));
	struct hearth_options o;

	hearth_options_defaults(&o);
	o.backend = device ? HEARTH_BACKEND_DEVICE : HEARTH_BACKEND_EMBEDDED;
	o.device = device;
	if (device) {
		OK(f, hearth_open(&o, &f->h, &f->err));
		OK(f, hearth_admin(f->h, &f->err));
		for (int i = 0; i < 3; i++)
			OK(f, hearth_pool_create(f->h, &specs[i], &f->err));
	} else {
		o.pools = specs;
		o.n_pools = 3;
		OK(f, hearth_open(&o, &f->h, &f->err));
	}
	f->weights = hearth_pool_named(f->h, "t-weights");
	f->kv = hearth_pool_named(f->h, "t-kv");
	f->account = hearth_pool_named(f->h, "t-account");
	assert_non_null(f->weights);
	assert_non_null(f->kv);
	assert_non_null(f->account);
	OK(f, hearth_tenant_open(f->h, "alpha", HEARTH_CLASS_LLM, 10, &f->a, &f->err));
	OK(f, hearth_tenant_open(f->h, "beta", HEARTH_CLASS_STT, 50, &f->b, &f->err));
	*state = f;
	return 0;
}

static void expect_empty(struct fx *f, struct hearth_pool *pool, uint64_t size)
{
	struct hearth_pool_info info;

	OK(f, hearth_pool_info(pool, &info));
	assert_int_equal(info.size, size);
	assert_int_equal(info.charged, 0);
	assert_int_equal(info.regions, 0);
}

static int tear_down(void **state)
{
	struct fx *f = *state;

	hearth_tenant_close(f->a);
	hearth_tenant_close(f->b);
	if (device) {
		for (int i = 0; i < 3; i++)
			OK(f, hearth_pool_remove(hearth_pool_named(f->h, specs[i].name), &f->err));
	} else {
		expect_empty(f, f->kv, KV_SIZE);
		expect_empty(f, f->account, ACCOUNT_SIZE);
	}
	hearth_close(f->h);
	free(f);
	return 0;
}

static uint64_t current_of(struct fx *f, struct hearth_tenant *t, struct hearth_pool *pool)
{
	struct hearth_usage u;

	OK(f, hearth_usage_get(t, pool, &u));
	return u.current;
}

static void limit(struct fx *f, struct hearth_tenant *t, struct hearth_pool *pool, uint64_t min,
		  uint64_t low, uint64_t high, uint64_t max)
{
	struct hearth_budget b = { min, low, high, max };

	OK(f, hearth_budget_set(t, pool, &b, &f->err));
}

static bool all_bytes(const void *p, int value, uint64_t n)
{
	const unsigned char *c = p;

	return !n || (c[0] == value && !memcmp(c, c + 1, n - 1));
}

/* Whether a byte at @p can be written (or read) without a signal. */
static sigjmp_buf fault_jump;

static void on_fault(int sig)
{
	siglongjmp(fault_jump, sig);
}

static bool touches(volatile char *p, volatile bool write_it)
{
	struct sigaction sa = { .sa_handler = on_fault }, segv, bus;
	volatile bool ok = false;

	sigaction(SIGSEGV, &sa, &segv);
	sigaction(SIGBUS, &sa, &bus);
	if (!sigsetjmp(fault_jump, 1)) {
		if (write_it)
			*p = 1;
		else
			(void)*p;
		ok = true;
	}
	sigaction(SIGSEGV, &segv, NULL);
	sigaction(SIGBUS, &bus, NULL);
	return ok;
}

/* -- opening -------------------------------------------------------------------- */

static void a_device_that_was_asked_for_and_is_missing_is_an_error(void **state)
{
	struct hearth_err err = { 0 };
	struct hearth_options o;
	struct hearth *h = NULL;

	hearth_options_defaults(&o);
	o.device = "/dev/hearth-that-is-not-there";
	o.backend = HEARTH_BACKEND_DEVICE;
	assert_int_equal(hearth_open(&o, &h, &err), -ENODEV);
	assert_null(h);
	assert_non_null(strstr(err.text, o.device));
	o.backend = HEARTH_BACKEND_AUTO;
	assert_int_equal(hearth_open(&o, &h, &err), 0);
	assert_int_equal(hearth_backend_of(h), HEARTH_BACKEND_EMBEDDED);
	assert_non_null(strstr(hearth_backend_text(h), "embedded"));
	hearth_close(h);
}

static void what_is_no_device_is_refused(void **state)
{
	struct hearth_err err = { 0 };
	struct hearth_options o;
	struct hearth *h = NULL;

	hearth_options_defaults(&o);
	o.device = "/dev/null";
	assert_true(hearth_open(&o, &h, &err) < 0);
	assert_null(h);
	assert_non_null(strstr(err.text, "/dev/null"));
}

static void bad_pools_are_refused(void **state)
{
	struct hearth_pool_spec p[2] = {
		{ .kind = HEARTH_KIND_KV, .name = "x", .size = MIB },
		{ .kind = HEARTH_KIND_KV, .name = "x", .size = MIB },
	};
	struct hearth_err err = { 0 };
	struct hearth_options o;
	struct hearth *h = NULL;

	hearth_options_defaults(&o);
	o.backend = HEARTH_BACKEND_EMBEDDED;
	o.pools = p;
	o.n_pools = 2;
	assert_int_equal(hearth_open(&o, &h, &err), -EEXIST);
	p[1].name = "bad name";
	assert_int_equal(hearth_open(&o, &h, &err), -EINVAL);
	p[1].name = "a-name-of-more-than-thirty-one-bytes";
	assert_int_equal(hearth_open(&o, &h, &err), -EINVAL);
	p[1].name = "y";
	p[1].kind = (enum hearth_kind)7;
	assert_int_equal(hearth_open(&o, &h, &err), -EINVAL);
	p[1].kind = HEARTH_KIND_KV;
	p[1].size = UINT64_MAX;
	assert_int_equal(hearth_open(&o, &h, &err), -EINVAL);
	assert_null(h);
}

static void tenants_have_one_handle_and_a_sane_name(void **state)
{
	struct hearth_tenant *t = NULL;
	struct fx *f = *state;

	assert_int_equal(hearth_tenant_open(f->h, "alpha", 0, 1, &t, &f->err), -EEXIST);
	assert_int_equal(hearth_tenant_open(f->h, "", 0, 1, &t, &f->err), -EINVAL);
	assert_int_equal(hearth_tenant_open(f->h, "a b", 0, 1, &t, &f->err), -EINVAL);
	assert_int_equal(hearth_tenant_open(f->h, "x", (enum hearth_class)9, 1, &t, &f->err), -EINVAL);
	assert_int_equal(hearth_tenant_open(f->h, "x", 0, -1, &t, &f->err), -EINVAL);
	assert_int_equal(hearth_tenant_open(f->h, "x", 0, 1001, &t, &f->err), -EINVAL);
	assert_null(t);
	assert_string_equal(hearth_tenant_name(f->a), "alpha");
	assert_ptr_equal(hearth_tenant_connection(f->a), f->h);
}

/* -- sizes ------------------------------------------------------------------------ */

static void sizes_at_every_border(void **state)
{
	static const uint64_t never[] = { KV_SIZE + 1, KV_SIZE + MIB, 1ull << 63, UINT64_MAX - 1,
					  UINT64_MAX };
	struct hearth_region *r = NULL;
	struct fx *f = *state;
	const uint64_t fits[] = { 1, page - 1, page, page + 1, 2 * MIB, KV_SIZE - page, KV_SIZE };

	assert_int_equal(hearth_region_alloc(f->a, f->kv, 0, 0, 0, 0, &r, &f->err), -EINVAL);
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
		assert_int_equal(hearth_region_alloc(f->a, f->kv, never[i], 0, 0, 0, &r, &f->err),
				 -ENOSPC);
		assert_null(r);
		assert_int_equal(current_of(f, f->a, f->kv), 0);
	}
	for (size_t i = 0; i < sizeof(fits) / sizeof(fits[0]); i++) {
		uint64_t rounded = (fits[i] + page - 1) & ~(page - 1);

		OK(f, hearth_region_alloc(f->a, f->kv, fits[i], 0, 0, 0, &r, &f->err));
		assert_int_equal(hearth_region_size(r), rounded);
		assert_int_equal(current_of(f, f->a, f->kv), rounded);
		assert_true(all_bytes(hearth_region_ptr(r), 0, rounded));
		memset(hearth_region_ptr(r), 0x5a, rounded);
		hearth_region_free(r);
		r = NULL;
		assert_int_equal(current_of(f, f->a, f->kv), 0);
	}
}

static void bad_arguments_of_a_region(void **state)
{
	struct hearth_region *r = NULL;
	struct fx *f = *state;

	assert_int_equal(hearth_region_alloc(f->a, f->account, page, 0, 0, 0, &r, &f->err), -EINVAL);
	assert_int_equal(hearth_region_alloc(f->a, NULL, page, 0, 0, 0, &r, &f->err), -ENOENT);
	assert_int_equal(hearth_region_alloc(f->a, f->kv, page, 3, 0, 0, &r, &f->err), -EINVAL);
	assert_int_equal(hearth_region_alloc(f->a, f->kv, page, 1ull << 31, 0, 0, &r, &f->err), -EINVAL);
	assert_int_equal(hearth_region_alloc(f->a, f->kv, page, 0, 2, 0, &r, &f->err), -EOPNOTSUPP);
	assert_null(r);
	hearth_region_free(NULL);
	hearth_region_close(NULL);
}

static void addresses_are_aligned(void **state)
{
	struct hearth_region *r[12];
	struct fx *f = *state;

	for (int i = 0; i < 12; i++) {
		uint64_t align = (uint64_t)1 << (10 + i);

		OK(f, hearth_region_alloc(f->a, f->kv, page, align, 0, 0, &r[i], &f->err));
		assert_int_equal((uintptr_t)hearth_region_ptr(r[i]) % align, 0);
	}
	for (int i = 0; i < 12; i++)
		hearth_region_free(r[i]);
}

static void memory_is_zero_for_the_next_owner(void **state)
{
	struct fx *f = *state;
	struct hearth_region *r;

	OK(f, hearth_region_alloc(f->a, f->kv, KV_SIZE, 0, 0, 0, &r, &f->err));
	memset(hearth_region_ptr(r), 0xee, KV_SIZE);
	hearth_region_free(r);
	OK(f, hearth_region_alloc(f->b, f->kv, KV_SIZE, 0, 0, 0, &r, &f->err));
	assert_true(all_bytes(hearth_region_ptr(r), 0, KV_SIZE));
	hearth_region_free(r);
}

/* -- budgets ----------------------------------------------------------------------- */

static void a_refusal_names_the_limit_and_the_holder_and_changes_nothing(void **state)
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

static void wrong_budgets_are_refused_and_say_whose(void **state)
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

static void limits_may_go_below_use(void **state)
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

static void charges_without_memory(void **state)
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

static void peak_is_kept_until_it_is_reset(void **state)
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

static void a_set_of_budgets_is_applied_whole_or_not(void **state)
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

static void a_pool_is_resized_as_far_as_it_is_free(void **state)
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

/* -- sealed, named, purgeable -------------------------------------------------------- */

static void a_sealed_region_is_read_only_for_good(void **state)
{
	struct hearth_region *r;
	struct fx *f = *state;
	char *p;

	OK(f, hearth_region_alloc(f->a, f->weights, MIB, 0, 0, 0, &r, &f->err));
	p = hearth_region_ptr(r);
	memset(p, 'w', MIB);
	assert_false(hearth_region_sealed(r));
	OK(f, hearth_region_seal(r, &f->err));
	assert_true(hearth_region_sealed(r));
	assert_ptr_equal(p, hearth_region_ptr(r));
	assert_true(all_bytes(p, 'w', MIB));
	assert_false(touches(p, true));
	assert_false(touches(p + MIB - 1, true));
	OK(f, hearth_region_seal(r, &f->err));
	hearth_region_free(r);
}

static void a_named_region_outlives_its_tenant(void **state)
{
	uint8_t digest[HEARTH_DIGEST_LEN] = { 1, 2, 3 }, other[HEARTH_DIGEST_LEN] = { 9 };
	struct hearth_region *r, *s = NULL;
	struct hearth_region_row *rows;
	struct fx *f = *state;
	size_t n;

	OK(f, hearth_region_alloc(f->a, f->weights, MIB, 0, 0, 0, &r, &f->err));
	memset(hearth_region_ptr(r), 'm', MIB);
	assert_int_equal(hearth_region_name(r, "", digest, &f->err), -EINVAL);
	assert_int_equal(hearth_region_name(r, "/x", digest, &f->err), -EINVAL);
	OK(f, hearth_region_name(r, "model", digest, &f->err));
	assert_int_equal(hearth_region_name(r, "again", digest, &f->err), -EBUSY);
	/* not sealed, its owner is there: nobody else may have it */
	assert_int_equal(hearth_region_find(f->b, f->weights, "model", NULL, &s, &f->err), -EBUSY);
	OK(f, hearth_region_seal(r, &f->err));
	assert_int_equal(hearth_region_find(f->b, f->weights, "modal", digest, &s, &f->err), -ENOENT);
	assert_int_equal(hearth_region_find(f->b, f->weights, "model", other, &s, &f->err), -ENOENT);
	assert_non_null(strstr(f->err.text, "digest"));
	assert_int_equal(hearth_region_find(f->b, f->kv, "model", NULL, &s, &f->err), -ENOENT);
	assert_null(s);
	/* shared: charged once, to its owner */
	OK(f, hearth_region_find(f->b, f->weights, "model", digest, &s, &f->err));
	assert_true(all_bytes(hearth_region_ptr(s), 'm', MIB));
	assert_true(hearth_region_sealed(s));
	assert_false(touches(hearth_region_ptr(s), true));
	assert_int_equal(current_of(f, f->a, f->weights), MIB);
	assert_int_equal(current_of(f, f->b, f->weights), 0);
	assert_int_equal(hearth_region_drop(f->weights, "model", &f->err), -EBUSY);
	hearth_region_close(s);

	hearth_tenant_close(f->a);
	OK(f, hearth_regions(f->h, &rows, &n));
	assert_int_equal(n, 1);
	assert_string_equal(rows[0].name, "model");
	assert_string_equal(rows[0].tenant, "alpha");
	assert_int_equal(rows[0].handles, 0);
	assert_int_equal(rows[0].size, MIB);
	assert_true(rows[0].sealed);
	assert_memory_equal(rows[0].digest, digest, sizeof(digest));
	free(rows);

	/* its owner is gone: the charge must fit the finder, and moves */
	limit(f, f->b, f->weights, 0, 0, HEARTH_UNLIMITED, MIB - page);
	s = NULL;
	assert_int_equal(hearth_region_find(f->b, f->weights, "model", NULL, &s, &f->err), -ENOSPC);
	assert_null(s);
	limit(f, f->b, f->weights, 0, 0, HEARTH_UNLIMITED, MIB);
	OK(f, hearth_region_find(f->b, f->weights, "model", digest, &s, &f->err));
	assert_true(all_bytes(hearth_region_ptr(s), 'm', MIB));
	assert_int_equal(current_of(f, f->b, f->weights), MIB);
	hearth_region_close(s);
	assert_int_equal(current_of(f, f->b, f->weights), MIB);
	OK(f, hearth_region_drop(f->weights, "model", &f->err));
	assert_int_equal(hearth_region_drop(f->weights, "model", &f->err), -ENOENT);
	assert_int_equal(current_of(f, f->b, f->weights), 0);
	OK(f, hearth_tenant_open(f->h, "alpha", HEARTH_CLASS_LLM, 10, &f->a, &f->err));
}

static void names_are_unique_in_a_pool(void **state)
{
	struct hearth_region *r, *s;
	struct fx *f = *state;

	OK(f, hearth_region_alloc(f->a, f->weights, page, 0, 0, 0, &r, &f->err));
	OK(f, hearth_region_alloc(f->b, f->weights, page, 0, 0, 0, &s, &f->err));
	OK(f, hearth_region_name(r, "n", NULL, &f->err));
	assert_int_equal(hearth_region_name(s, "n", NULL, &f->err), -EEXIST);
	/* freeing takes the name with it */
	hearth_region_free(r);
	OK(f, hearth_region_name(s, "n", NULL, &f->err));
	hearth_region_free(s);
}

static void an_unsealed_named_region_is_found_writable_after_its_owner(void **state)
{
	struct hearth_region *r, *s;
	struct fx *f = *state;

	OK(f, hearth_region_alloc(f->a, f->kv, page, 0, 0, 0, &r, &f->err));
	strcpy(hearth_region_ptr(r), "warm");
	OK(f, hearth_region_name(r, "prefix", NULL, &f->err));
	hearth_tenant_close(f->a);
	OK(f, hearth_tenant_open(f->h, "alpha", HEARTH_CLASS_LLM, 10, &f->a, &f->err));
	assert_int_equal(current_of(f, f->a, f->kv), page);
	OK(f, hearth_region_find(f->a, f->kv, "prefix", NULL, &s, &f->err));
	assert_string_equal(hearth_region_ptr(s), "warm");
	assert_true(touches(hearth_region_ptr(s), true));
	hearth_region_free(s);
	assert_int_equal(current_of(f, f->a, f->kv), 0);
}

static void a_purgeable_region_gives_way_and_says_so(void **state)
{
	struct hearth_region *r, *s, *t = NULL;
	struct hearth_usage u;
	uint64_t now, purge;
	struct fx *f = *state;
	bool survived;

	OK(f, hearth_region_alloc(f->a, f->kv, 6 * MIB, 0, 0, 0, &r, &f->err));
	memset(hearth_region_ptr(r), 'p', 6 * MIB);
	OK(f, hearth_region_purgeable(r, &f->err));
	OK(f, hearth_region_purgeable(r, &f->err));
	OK(f, hearth_available(f->b, f->kv, &now, &purge));
	assert_int_equal(now, 2 * MIB);
	assert_int_equal(purge, KV_SIZE);
	/* what fits without it leaves it alone, and so does what would not fit with it */
	OK(f, hearth_region_alloc(f->b, f->kv, MIB, 0, 0, 0, &s, &f->err));
	assert_int_equal(hearth_region_alloc(f->b, f->kv, KV_SIZE, 0, 0, 0, &t, &f->err), -ENOSPC);
	OK(f, hearth_region_take_back(r, &survived));
	assert_true(survived);
	assert_true(all_bytes(hearth_region_ptr(r), 'p', 6 * MIB));
	/* taken back: it is safe again */
	assert_int_equal(hearth_region_alloc(f->b, f->kv, 4 * MIB, 0, 0, 0, &t, &f->err), -ENOSPC);

	OK(f, hearth_region_purgeable(r, &f->err));
	OK(f, hearth_region_alloc(f->b, f->kv, 4 * MIB, 0, 0, 0, &t, &f->err));
	assert_true(all_bytes(hearth_region_ptr(t), 0, 4 * MIB));
	assert_false(touches(hearth_region_ptr(r), false));
	OK(f, hearth_usage_get(f->a, f->kv, &u));
	assert_int_equal(u.current, 0);
	assert_int_equal(u.purgeable, 0);
	assert_int_equal(u.n_purged, 1);
	assert_int_equal(u.purged_bytes, 6 * MIB);
	OK(f, hearth_region_take_back(r, &survived));
	assert_false(survived);
	assert_int_equal(hearth_region_seal(r, &f->err), -ESTALE);
	assert_int_equal(hearth_region_purgeable(r, &f->err), -ESTALE);
	assert_int_equal(hearth_region_name(r, "gone", NULL, &f->err), -ESTALE);
	hearth_region_free(r);
	hearth_region_free(s);
	hearth_region_free(t);
}

static void purging_begins_with_the_lowest_priority_and_spares_a_min(void **state)
{
	struct hearth_region *low, *high, *r = NULL;
	struct hearth_tenant *c;
	struct fx *f = *state;
	bool survived;

	OK(f, hearth_tenant_open(f->h, "asker", HEARTH_CLASS_TTS, 90, &c, &f->err));
	OK(f, hearth_region_alloc(f->a, f->kv, 4 * MIB, 0, 0, 0, &low, &f->err));
	OK(f, hearth_region_alloc(f->b, f->kv, 4 * MIB, 0, 0, 0, &high, &f->err));
	OK(f, hearth_region_purgeable(high, &f->err));
	OK(f, hearth_region_purgeable(low, &f->err));
	limit(f, f->a, f->kv, 4 * MIB, 0, HEARTH_UNLIMITED, HEARTH_UNLIMITED);
	limit(f, f->b, f->kv, 4 * MIB, 0, HEARTH_UNLIMITED, HEARTH_UNLIMITED);
	assert_int_equal(hearth_region_alloc(c, f->kv, page, 0, 0, 0, &r, &f->err), -ENOSPC);
	limit(f, f->a, f->kv, 0, 0, HEARTH_UNLIMITED, HEARTH_UNLIMITED);
	limit(f, f->b, f->kv, 0, 0, HEARTH_UNLIMITED, HEARTH_UNLIMITED);
	OK(f, hearth_region_alloc(c, f->kv, page, 0, 0, 0, &r, &f->err));
	OK(f, hearth_region_take_back(low, &survived));
	assert_false(survived);
	OK(f, hearth_region_take_back(high, &survived));
	assert_true(survived);
	hearth_region_free(low);
	hearth_region_free(high);
	hearth_tenant_close(c);
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

static void waiting_ends_when_the_time_is_up(void **state)
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

static void the_highest_priority_is_served_first(void **state)
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

/* -- events and state -------------------------------------------------------------------- */

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

static void events_say_what_happened_with_figures(void **state)
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

static void pressure_rises_and_falls_once(void **state)
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

static void the_descriptor_is_readable_while_an_event_waits(void **state)
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

static void the_whole_state_can_be_read(void **state)
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

/* -- memory that others can use ------------------------------------------------------------ */

static void a_file_is_read_straight_into_a_region(void **state)
{
	char path[] = "region-read-XXXXXX";
	struct hearth_region *r;
	struct fx *f = *state;
	char *buf = NULL;
	ssize_t got;
	int fd;

	fd = mkstemp(path);
	if (fd < 0)
		SKIP("no file can be made here: %s", strerror(errno));
	assert_int_equal(posix_memalign((void **)&buf, 4096, MIB), 0);
	memset(buf, 'd', MIB);
	assert_int_equal(write(fd, buf, MIB), MIB);
	assert_int_equal(fsync(fd), 0);
	close(fd);
	free(buf);
	fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (fd < 0) {
		unlink(path);
		SKIP("this file system has no O_DIRECT");
	}
	OK(f, hearth_region_alloc(f->a, f->weights, MIB, 4096, 0, 0, &r, &f->err));
	got = read(fd, hearth_region_ptr(r), MIB);
	close(fd);
	unlink(path);
	assert_int_equal(got, MIB);
	assert_true(all_bytes(hearth_region_ptr(r), 'd', MIB));
	hearth_region_free(r);
}

static void export_is_a_descriptor_or_says_that_it_cannot_be(void **state)
{
	struct hearth_region *r;
	struct fx *f = *state;
	int fd = -1, ret;

	OK(f, hearth_region_alloc(f->a, f->weights, MIB, 0, 0, 0, &r, &f->err));
	ret = hearth_region_export(r, &fd, &f->err);
	if (hearth_backend_of(f->h) == HEARTH_BACKEND_EMBEDDED) {
		assert_int_equal(ret, -EOPNOTSUPP);
		assert_int_equal(fd, -1);
	} else {
		OK(f, ret);
		assert_true(fd >= 0);
		close(fd);
	}
	hearth_region_free(r);
}

static void a_region_is_shared_by_descriptor(void **state)
{
	struct hearth_region *r, *s = NULL;
	struct fx *f = *state;
	int fd = -1, ro = -1;

	OK(f, hearth_region_alloc(f->a, f->kv, MIB, 0, 0, 0, &r, &f->err));
	if (hearth_backend_of(f->h) == HEARTH_BACKEND_EMBEDDED) {
		assert_int_equal(hearth_region_share(r, true, &fd, &f->err), -EOPNOTSUPP);
		assert_int_equal(hearth_region_import(f->b, 0, &s, &f->err), -EOPNOTSUPP);
		hearth_region_free(r);
		return;
	}
	memset(hearth_region_ptr(r), 's', MIB);
	OK(f, hearth_region_share(r, true, &fd, &f->err));
	OK(f, hearth_region_share(r, false, &ro, &f->err));
	OK(f, hearth_region_import(f->b, fd, &s, &f->err));
	assert_true(all_bytes(hearth_region_ptr(s), 's', MIB));
	*(char *)hearth_region_ptr(s) = 't';
	assert_int_equal(*(char *)hearth_region_ptr(r), 't');
	/* charged once, to its owner */
	assert_int_equal(current_of(f, f->a, f->kv), MIB);
	assert_int_equal(current_of(f, f->b, f->kv), 0);
	hearth_region_close(s);
	OK(f, hearth_region_import(f->b, ro, &s, &f->err));
	assert_false(touches(hearth_region_ptr(s), true));
	assert_int_equal(hearth_region_share(s, true, &fd, &f->err), -EACCES);
	hearth_region_close(s);
	OK(f, hearth_region_seal(r, &f->err));
	assert_int_equal(hearth_region_share(r, true, &fd, &f->err), -EROFS);
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	s = NULL;
	assert_int_equal(hearth_region_import(f->b, fd, &s, &f->err), -EINVAL);
	assert_null(s);
	close(fd);
	hearth_region_free(r);
}

int main(int argc, char **argv)
{
#define FX(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_device_that_was_asked_for_and_is_missing_is_an_error),
		cmocka_unit_test(what_is_no_device_is_refused),
		cmocka_unit_test(bad_pools_are_refused),
		FX(tenants_have_one_handle_and_a_sane_name),
		FX(sizes_at_every_border),
		FX(bad_arguments_of_a_region),
		FX(addresses_are_aligned),
		FX(memory_is_zero_for_the_next_owner),
		FX(a_refusal_names_the_limit_and_the_holder_and_changes_nothing),
		FX(wrong_budgets_are_refused_and_say_whose),
		FX(limits_may_go_below_use),
		FX(charges_without_memory),
		FX(peak_is_kept_until_it_is_reset),
		FX(a_set_of_budgets_is_applied_whole_or_not),
		FX(a_pool_is_resized_as_far_as_it_is_free),
		FX(a_sealed_region_is_read_only_for_good),
		FX(a_named_region_outlives_its_tenant),
		FX(names_are_unique_in_a_pool),
		FX(an_unsealed_named_region_is_found_writable_after_its_owner),
		FX(a_purgeable_region_gives_way_and_says_so),
		FX(purging_begins_with_the_lowest_priority_and_spares_a_min),
		FX(waiting_ends_when_the_time_is_up),
		FX(the_highest_priority_is_served_first),
		FX(events_say_what_happened_with_figures),
		FX(pressure_rises_and_falls_once),
		FX(the_descriptor_is_readable_while_an_event_waits),
		FX(the_whole_state_can_be_read),
		FX(a_file_is_read_straight_into_a_region),
		FX(a_region_is_shared_by_descriptor),
		FX(export_is_a_descriptor_or_says_that_it_cannot_be),
	};

	device = argc > 1 ? argv[1] : NULL;
	page = (uint64_t)sysconf(_SC_PAGESIZE);
	return UNIT_RUN(tests);
}
