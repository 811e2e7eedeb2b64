// SPDX-License-Identifier: MIT
/* The fixture: three pools, and the tenants alpha and beta. */
#include "device_fx.h"

#include <signal.h>

const char *device;
uint64_t page;

static const struct hearth_pool_spec specs[] = {
	{ .kind = HEARTH_KIND_WEIGHTS, .name = "t-weights", .size = WEIGHTS_SIZE },
	{ .kind = HEARTH_KIND_KV, .name = "t-kv", .size = KV_SIZE },
	{ .kind = HEARTH_KIND_ACCOUNT, .name = "t-account", .size = ACCOUNT_SIZE },
};

int fx_set_up(void **state)
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

int fx_tear_down(void **state)
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

uint64_t current_of(struct fx *f, struct hearth_tenant *t, struct hearth_pool *pool)
{
	struct hearth_usage u;

	OK(f, hearth_usage_get(t, pool, &u));
	return u.current;
}

void limit(struct fx *f, struct hearth_tenant *t, struct hearth_pool *pool, uint64_t min,
		  uint64_t low, uint64_t high, uint64_t max)
{
	struct hearth_budget b = { min, low, high, max };

	OK(f, hearth_budget_set(t, pool, &b, &f->err));
}

bool all_bytes(const void *p, int value, uint64_t n)
{
	const unsigned char *c = p;

	return !n || (c[0] == value && !memcmp(c, c + 1, n - 1));
}

static sigjmp_buf fault_jump;

static void on_fault(int sig)
{
	siglongjmp(fault_jump, sig);
}

bool touches(volatile char *p, volatile bool write_it)
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
