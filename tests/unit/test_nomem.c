// SPDX-License-Identifier: MIT
/*
 * libhearth when the system has nothing left: the n-th of all allocations,
 * mappings and descriptors fails, for every n that a scenario reaches. Each
 * call then either works or says -ENOMEM (or -EMFILE), nothing has changed, and
 * everything can still be closed. Leaks are for the sanitizer to find.
 * The linker puts the calls below in place of the real ones.
 */
#include "unit.h"

#include <stdarg.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "dev/hearth.h"

#define MIB ((uint64_t)1 << 20)

static int countdown = -1;  /* calls until one fails; -1: none does */
static bool hit;

static bool fails(void)
{
	if (countdown < 0 || countdown-- > 0)
		return false;
	countdown = -1;
	hit = true;
	return true;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
int __real_memfd_create(const char *name, unsigned flags);
int __real_ftruncate(int fd, off_t len);
int __real_mprotect(void *p, size_t len, int prot);
int __real_eventfd(unsigned count, int flags);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_ftruncate(int fd, off_t len);
int __wrap_mprotect(void *p, size_t len, int prot);
int __wrap_eventfd(unsigned count, int flags);

void *__wrap_malloc(size_t n)
{
	return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return fails() ? NULL : __real_realloc(p, n);
}

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	if (fails()) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return __real_mmap(addr, len, prot, flags, fd, off);
}

int __wrap_memfd_create(const char *name, unsigned flags)
{
	if (fails()) {
		errno = EMFILE;
		return -1;
	}
	return __real_memfd_create(name, flags);
}

int __wrap_ftruncate(int fd, off_t len)
{
	if (fails()) {
		errno = ENOMEM;
		return -1;
	}
	return __real_ftruncate(fd, len);
}

int __wrap_mprotect(void *p, size_t len, int prot)
{
	if (fails()) {
		errno = ENOMEM;
		return -1;
	}
	return __real_mprotect(p, len, prot);
}

int __wrap_eventfd(unsigned count, int flags)
{
	if (fails()) {
		errno = EMFILE;
		return -1;
	}
	return __real_eventfd(count, flags);
}

/* A call that may lack something: its result, or the end of the scenario. */
#define MAY(call) do { \
	int may_ret = (call); \
	if (may_ret) { \
		assert_true(hit); \
		assert_true(may_ret == -ENOMEM || may_ret == -EMFILE); \
		assert_true(err.text[0]); \
		goto out; \
	} \
} while (0)

static uint64_t charged(struct hearth *h)
{
	struct hearth_pool_info info;

	assert_int_equal(hearth_pool_info(hearth_pool(h, HEARTH_KIND_KV), &info), 0);
	return info.charged;
}

static void scenario(void)
{
	struct hearth_pool_spec specs[] = {
		{ .kind = HEARTH_KIND_KV, .name = "kv", .size = MIB },
		{ .kind = HEARTH_KIND_ACCOUNT, .name = "account", .size = MIB },
	};
	struct hearth_budget_line lines[] = {
		{ "c", HEARTH_CLASS_TTS, 3, "kv", { 4096, 0, MIB, MIB } },
		{ "d", HEARTH_CLASS_TTS, 3, "kv", { 4096, 0, MIB, MIB } },
	};
	struct hearth_tenant *a = NULL, *b = NULL;
	struct hearth_region *r = NULL, *s = NULL, *small[4] = { 0 };
	struct hearth_err err = { 0 };
	struct hearth_options o;
	struct hearth *h = NULL;
	uint64_t before;
	int ret;

	hearth_options_defaults(&o);
	o.backend = HEARTH_BACKEND_EMBEDDED;
	o.pools = specs;
	o.n_pools = 2;
	ret = hearth_open(&o, &h, &err);
	if (ret) {
		assert_null(h);
		assert_true(hit && (ret == -ENOMEM || ret == -EMFILE) && err.text[0]);
		return;
	}
	MAY(hearth_tenant_open(h, "a", HEARTH_CLASS_LLM, 1, &a, &err));
	MAY(hearth_tenant_open(h, "b", HEARTH_CLASS_STT, 2, &b, &err));
	for (int i = 0; i < 4; i++) {
		before = charged(h);
		ret = hearth_region_alloc(a, hearth_pool(h, HEARTH_KIND_KV), MIB / 4, 0, 0, 0, &small[i],
					  &err);
		if (ret) {
			assert_null(small[i]);
			assert_int_equal(charged(h), before);
		}
		MAY(ret);
	}
	hearth_region_free(small[0]);
	hearth_region_free(small[2]);
	small[0] = small[2] = NULL;
	before = charged(h);
	ret = hearth_region_alloc(b, hearth_pool(h, HEARTH_KIND_KV), MIB / 2, 0, 0, 0, &r, &err);
	if (ret)
		assert_int_equal(charged(h), before);
	MAY(ret);
	memset(hearth_region_ptr(r), 7, MIB / 2);
	ret = hearth_region_seal(r, &err);
	if (ret) {
		/* nothing has changed: it can still be written */
		assert_false(hearth_region_sealed(r));
		memset(hearth_region_ptr(r), 7, MIB / 2);
	}
	MAY(ret);
	MAY(hearth_region_name(r, "r", NULL, &err));
	ret = hearth_region_find(a, hearth_pool(h, HEARTH_KIND_KV), "r", NULL, &s, &err);
	if (ret)
		assert_null(s);
	MAY(ret);
	hearth_region_close(s);
	hearth_region_free(small[1]);
	hearth_region_free(small[3]);
	small[1] = small[3] = NULL;
	ret = hearth_budget_apply(h, lines, 2, NULL, &err);
	if (ret) {
		struct hearth_pool_info info;

		assert_int_equal(hearth_pool_info(hearth_pool(h, HEARTH_KIND_KV), &info), 0);
		assert_int_equal(info.guaranteed, 0);
		assert_int_equal(info.tenants, 2);
	}
	MAY(ret);
	MAY(hearth_pool_resize(hearth_pool(h, HEARTH_KIND_KV), 2 * MIB, &err));
	MAY(hearth_charge(a, hearth_pool(h, HEARTH_KIND_ACCOUNT), 4096, 0, &err));
out:
	hearth_close(h);
}

static void every_call_that_fails_leaves_all_as_it_was(void **state)
{
	int n;

	for (n = 0;; n++) {
		hit = false;
		countdown = n;
		scenario();
		countdown = -1;
		if (!hit)
			break;
	}
	printf("# %d calls, each failed once\n", n);
	assert_true(n > 30);
}

static void tables_and_streams_say_so(void **state)
{
	struct hearth_pool_spec spec = { .kind = HEARTH_KIND_KV, .name = "kv", .size = MIB };
	struct hearth_region_row *regions = NULL;
	struct hearth_state_row *rows = NULL;
	struct hearth_events *e = NULL;
	struct hearth_err err = { 0 };
	struct hearth_tenant *t;
	struct hearth_options o;
	struct hearth *h;
	size_t n;

	hearth_options_defaults(&o);
	o.backend = HEARTH_BACKEND_EMBEDDED;
	o.pools = &spec;
	o.n_pools = 1;
	assert_int_equal(hearth_open(&o, &h, &err), 0);
	assert_int_equal(hearth_tenant_open(h, "t", 0, 1, &t, &err), 0);
	countdown = 0;
	assert_int_equal(hearth_state(h, &rows, &n, NULL), -ENOMEM);
	countdown = 0;
	assert_int_equal(hearth_regions(h, &regions, &n), -ENOMEM);
	countdown = 0;
	assert_int_equal(hearth_events_open(h, t, &e, &err), -ENOMEM);
	countdown = 1;
	assert_int_equal(hearth_events_open(h, t, &e, &err), -EMFILE);
	assert_true(!rows && !regions && !e);
	hearth_close(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_that_fails_leaves_all_as_it_was),
		cmocka_unit_test(tables_and_streams_say_so),
	};
	return UNIT_RUN(tests);
}
