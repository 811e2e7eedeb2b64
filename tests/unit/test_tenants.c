// SPDX-License-Identifier: MIT
#include "unit.h"
#include "dev/hearth.h"
#include "server/tenants.h"

static struct hearth *open_pools(void)
{
	struct hearth_pool_spec spec = { .kind = HEARTH_KIND_ACCOUNT, .name = TENANTS_POOL, .size = 100 << 20 };
	struct hearth_options o;
	struct hearth *h;

	hearth_options_defaults(&o);
	o.backend = HEARTH_BACKEND_EMBEDDED;
	o.pools = &spec;
	o.n_pools = 1;
	assert_int_equal(hearth_open(&o, &h, NULL), 0);
	return h;
}

static void a_max_and_a_min_hold(void **state)
{
	struct config cfg = { .tenants = { { .name = (char *)"kids", .kv_max = 10 << 20 }, { .name = (char *)"guests", .kv_min = 40 << 20 } }, .n_tenants = 2 };
	struct hearth *h = open_pools();
	struct hearth_tenant *llm;
	struct hearth_err err = { 0 };
	struct tenants *t = NULL;

	assert_int_equal(hearth_tenant_open(h, "llm", HEARTH_CLASS_LLM, 10, &llm, NULL), 0);
	assert_int_equal(tenants_open(&cfg, h, llm, hearth_pool(h, HEARTH_KIND_ACCOUNT), &t, &err), 0);
	assert_true(tenants_max(t, 0) == 10 << 20);
	assert_true(tenants_max(t, 1) == UINT64_MAX);
	assert_true(tenants_max(t, -1) == UINT64_MAX);
	/* Its max: by the sum of what runs, and a refusal changes nothing. */
	assert_int_equal(tenants_charge(t, 0, 6 << 20, &err), 0);
	assert_int_equal(tenants_charge(t, 0, (4 << 20) + 1, &err), -EDQUOT);
	assert_non_null(strstr(err.text, "kids"));
	assert_non_null(strstr(err.text, "the cache that this request may fill"));
	assert_int_equal(tenants_charge(t, 0, 4 << 20, &err), 0);
	tenants_uncharge(t, 0, 6 << 20);
	/* Of 100: 4 are the kids', 40 are promised to the guests. */
	assert_int_equal(tenants_charge(t, -1, (56 << 20) + 1, &err), -EDQUOT);
	assert_non_null(strstr(err.text, "guests"));
	assert_int_equal(tenants_charge(t, -1, 56 << 20, &err), 0);
	assert_int_equal(tenants_charge(t, 1, 40 << 20, &err), 0);
	assert_int_equal(tenants_charge(t, 1, 1, &err), -EDQUOT);
	tenants_uncharge(t, 1, 40 << 20);
	tenants_uncharge(t, -1, 56 << 20);
	tenants_uncharge(t, 0, 4 << 20);
	tenants_close(t);
	hearth_tenant_close(llm);
	hearth_close(h);
}

static void what_cannot_be_is_refused(void **state)
{
	struct config cfg = { .tenants = { { .name = (char *)"llm" } }, .n_tenants = 1 };
	struct hearth *h = open_pools();
	struct hearth_tenant *llm;
	struct hearth_err err = { 0 };
	struct tenants *t = (void *)0x1;

	assert_int_equal(hearth_tenant_open(h, "llm", HEARTH_CLASS_LLM, 10, &llm, NULL), 0);
	assert_int_equal(tenants_open(&cfg, h, llm, hearth_pool(h, HEARTH_KIND_ACCOUNT), &t, &err), -EEXIST);
	cfg.tenants[0] = (struct config_tenant){ .name = (char *)"big", .kv_min = 101 << 20 };
	assert_int_equal(tenants_open(&cfg, h, llm, hearth_pool(h, HEARTH_KIND_ACCOUNT), &t, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "the tenant \"big\""));
	assert_ptr_equal(t, (void *)0x1);
	/* None are named: everything fits. */
	cfg.n_tenants = 0;
	assert_int_equal(tenants_open(&cfg, h, llm, NULL, &t, &err), 0);
	assert_null(t);
	assert_int_equal(tenants_charge(t, -1, UINT64_MAX, &err), 0);
	tenants_uncharge(t, -1, UINT64_MAX);
	assert_true(tenants_max(t, -1) == UINT64_MAX);
	tenants_close(t);
	hearth_tenant_close(llm);
	hearth_close(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_max_and_a_min_hold),
		cmocka_unit_test(what_cannot_be_is_refused),
	};

	return UNIT_RUN(tests);
}
