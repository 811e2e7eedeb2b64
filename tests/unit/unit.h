/* SPDX-License-Identifier: MIT */
/* What every unit test includes: cmocka in the order it wants, TAP output. */
#ifndef HEARTH_UNIT_H
#define HEARTH_UNIT_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/*
 * Runs the table and prints TAP, which tests/run.sh counts. A test that cannot
 * run here calls SKIP("why"): the reason is printed and it never counts as a
 * pass.
 */
#define UNIT_RUN(tests) \
	(cmocka_set_message_output(CM_OUTPUT_TAP), \
	 cmocka_run_group_tests_name(__FILE__, tests, NULL, NULL))

#define SKIP(...) do { \
	printf("# skip reason: "); printf(__VA_ARGS__); printf("\n"); skip(); \
} while (0)

/* "@dir/@name"; good until the fourth call after it. */
static inline const char *path_in(const char *dir, const char *name)
{
	static char s[4][300];
	static int k;

	k = (k + 1) % 4;
	snprintf(s[k], sizeof(s[k]), "%s/%s", dir, name);
	return s[k];
}

#endif
