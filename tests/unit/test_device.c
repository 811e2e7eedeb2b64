// SPDX-License-Identifier: MIT
/*
 * libhearth by its contract, written once for both backends. Without an
 * argument it runs on embedded pools; with the path of a device node it runs
 * on that (as root: it makes its own pools and removes them).
 */
#include "device_fx.h"

#include <fcntl.h>

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

int main(int argc, char **argv)
{
#define FX(test) cmocka_unit_test_setup_teardown(test, fx_set_up, fx_tear_down)
#define CASE(test) FX(test),
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_device_that_was_asked_for_and_is_missing_is_an_error),
		cmocka_unit_test(what_is_no_device_is_refused),
		cmocka_unit_test(bad_pools_are_refused),
		FX(tenants_have_one_handle_and_a_sane_name),
		DEVICE_CASES(CASE)
	};

	device = argc > 1 ? argv[1] : NULL;
	page = (uint64_t)sysconf(_SC_PAGESIZE);
	return UNIT_RUN(tests);
}
