// SPDX-License-Identifier: MIT
#include "unit.h"
#include "server/alive.h"

static void work_must_move(void **state)
{
	struct alive a = { 0 };

	/* nothing to do, for ever */
	assert_true(alive_look(&a, 0, 0, 1000));
	assert_true(alive_look(&a, 0, 0, 1000 + 10 * ALIVE_PATIENCE_MS));
	/* work that moves, however slowly within the patience */
	for (int i = 1; i < 50; i++)
		assert_true(alive_look(&a, 1, (uint64_t)i, 2000000 + (int64_t)i * (ALIVE_PATIENCE_MS - 1)));
	/* and work that does not */
	assert_true(alive_look(&a, 1, 99, 20000000));
	assert_true(alive_look(&a, 2, 99, 20000000 + ALIVE_PATIENCE_MS - 1));
	assert_false(alive_look(&a, 2, 99, 20000000 + ALIVE_PATIENCE_MS));
	assert_false(alive_look(&a, 1, 99, 20000000 + 2 * ALIVE_PATIENCE_MS));
	/* until it moves again, or is given up */
	assert_true(alive_look(&a, 1, 100, 20000000 + 3 * ALIVE_PATIENCE_MS));
	assert_false(alive_look(&a, 1, 100, 20000000 + 4 * ALIVE_PATIENCE_MS));
	assert_true(alive_look(&a, 0, 100, 20000000 + 4 * ALIVE_PATIENCE_MS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_must_move),
	};

	return UNIT_RUN(tests);
}
