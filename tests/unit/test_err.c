// SPDX-License-Identifier: MIT
#include "unit.h"
#include "base/err.h"

static void overlong_text_ends_on_a_whole_character(void **state)
{
	struct hearth_err err = { 0 };
	char big[2000];
	size_t n;

	for (size_t i = 0; i + 2 < sizeof(big); i += 2)
		memcpy(big + i, "\xc3\xa9", 3);
	assert_int_equal(err_set(&err, -EINVAL, "x%s", big), -EINVAL);
	n = strlen(err.text);
	assert_true(n < HEARTH_ERR_TEXT);
	assert_string_equal(err.text + n - 3, "...");
	assert_int_equal((unsigned char)err.text[n - 4], 0xa9);
}

static void prefix_names_the_place(void **state)
{
	struct hearth_err err = { 0 };

	err_set(&err, -ENOENT, "no tensor %s", "a");
	assert_int_equal(err_prefix(&err, -EIO, "%s", "m.gguf"), -ENOENT);
	assert_string_equal(err.text, "m.gguf: no tensor a");
	assert_int_equal(err_set(NULL, -EIO, "x"), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overlong_text_ends_on_a_whole_character),
		cmocka_unit_test(prefix_names_the_place),
	};
	return UNIT_RUN(tests);
}
