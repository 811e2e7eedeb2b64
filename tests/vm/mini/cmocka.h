/* SPDX-License-Identifier: MIT */
/*
 * As much of cmocka's interface as the unit tests that also run in a guest
 * need: a guest's programs are static, and there is no static cmocka, least of
 * all for the other architecture. Prints TAP like the real one.
 */
#ifndef MINI_CMOCKA_H
#define MINI_CMOCKA_H

#include <stdbool.h>

typedef int (*mini_fixture)(void **state);

struct CMUnitTest {
	const char *name;
	void (*test)(void **state);
	mini_fixture setup, teardown;
};

/* One of each in a program of several files. */
__attribute__((weak)) sigjmp_buf mini_jump;
__attribute__((weak)) char mini_why[1024];

enum { MINI_FAILED = 1, MINI_SKIPPED };

#define mini_fail(...) do { \
	int mini_n = snprintf(mini_why, sizeof(mini_why), "%s:%d: ", __FILE__, __LINE__); \
	snprintf(mini_why + mini_n, sizeof(mini_why) - (size_t)mini_n, __VA_ARGS__); \
	siglongjmp(mini_jump, MINI_FAILED); \
} while (0)

#define fail_msg(...) mini_fail(__VA_ARGS__)
#define skip() siglongjmp(mini_jump, MINI_SKIPPED)
#define assert_true(c) do { if (!(c)) mini_fail("%s", #c); } while (0)
#define assert_false(c) do { if (c) mini_fail("not %s", #c); } while (0)
#define assert_null(p) do { if (p) mini_fail("%s is not NULL", #p); } while (0)
#define assert_non_null(p) do { if (!(p)) mini_fail("%s is NULL", #p); } while (0)
#define assert_int_equal(a, b) do { \
	unsigned long long mini_a = (unsigned long long)(a), mini_b = (unsigned long long)(b); \
	if (mini_a != mini_b) \
		mini_fail("%s is %#llx, not %s = %#llx", #a, mini_a, #b, mini_b); \
} while (0)
#define assert_int_not_equal(a, b) do { \
	if ((unsigned long long)(a) == (unsigned long long)(b)) \
		mini_fail("%s is %s", #a, #b); \
} while (0)
#define assert_in_range(v, lo, hi) do { \
	unsigned long long mini_v = (unsigned long long)(v); \
	if (mini_v < (unsigned long long)(lo) || mini_v > (unsigned long long)(hi)) \
		mini_fail("%s is %llu", #v, mini_v); \
} while (0)
#define assert_ptr_equal(a, b) do { if ((a) != (b)) mini_fail("%s is not %s", #a, #b); } while (0)
#define assert_string_equal(a, b) do { \
	if (strcmp(a, b)) \
		mini_fail("%s is \"%s\", not \"%s\"", #a, (const char *)(a), (const char *)(b)); \
} while (0)
#define assert_memory_equal(a, b, n) do { \
	if (memcmp(a, b, n)) \
		mini_fail("%s is not the same as %s", #a, #b); \
} while (0)

#define cmocka_unit_test(f) { .name = #f, .test = f }
#define cmocka_unit_test_setup_teardown(f, s, t) \
	{ .name = #f, .test = f, .setup = s, .teardown = t }
#define CM_OUTPUT_TAP 0
#define cmocka_set_message_output(x) ((void)(x))
#define cmocka_run_group_tests_name(name, tests, s, t) \
	mini_run(tests, sizeof(tests) / sizeof((tests)[0]))

static inline int mini_run(const struct CMUnitTest *tests, size_t n)
{
	volatile size_t i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..%zu\n", n);
	for (i = 0; i < n; i++) {
		static void *state;
		int how;

		state = NULL;
		how = sigsetjmp(mini_jump, 1);
		if (!how) {
			if (tests[i].setup)
				tests[i].setup(&state);
			tests[i].test(&state);
		}
		if (how == MINI_FAILED) {
			/* what it had open is still open: the next test would suffer from it */
			printf("# %s\nnot ok - %s\n", mini_why, tests[i].name);
			return 1;
		}
		if (tests[i].teardown)
			tests[i].teardown(&state);
		printf("ok - %s%s\n", tests[i].name, how == MINI_SKIPPED ? " # SKIP" : "");
	}
	return 0;
}

#endif
