// SPDX-License-Identifier: MIT
#include "unit.h"
#include "base/yaml.h"

static struct yaml *load(const char *text)
{
	struct hearth_err err = { 0 };
	struct yaml *y = NULL;

	if (yaml_load_text("t.yaml", text, strlen(text), &y, &err))
		fail_msg("%s", err.text);
	return y;
}

static void values_have_types_and_ranges(void **state)
{
	struct yaml *y = load("a: 12\nb: [x, 'null']\nc: {d: on}\ne: 300M\nf: 2GiB\ng: -1.5\nh: ~\ni: \"\"\nj: 7\n");
	yaml_node r = yaml_root(y);
	struct hearth_err err = { 0 };
	const char *s = "old";
	int64_t i = -1;
	uint64_t b = 0;
	double d = 0;
	bool on = false;

	assert_int_equal(yaml_get_int(y, r, "a", 0, 12, &i, &err), 0);
	assert_int_equal(i, 12);
	assert_int_equal(yaml_get_int(y, r, "a", 0, 11, &i, &err), -EINVAL);
	assert_string_equal(err.text, "t.yaml line 1, column 4: \"a\" must be a whole number from 0 to 11");
	assert_int_equal(yaml_get_int(y, r, "g", -5, 5, &i, &err), -EINVAL);
	assert_int_equal(i, 12);
	assert_int_equal(yaml_get_num(y, r, "g", -2, 0, &d, &err), 0);
	assert_true(d == -1.5);
	assert_int_equal(yaml_get_bool(y, yaml_get(y, r, "c"), "d", &on, &err), 0);
	assert_true(on);
	assert_int_equal(yaml_get_bool(y, r, "a", &on, &err), -EINVAL);
	assert_int_equal(yaml_get_bytes(y, r, "e", &b, &err), 0);
	assert_int_equal(b, 300ull << 20);
	assert_int_equal(yaml_get_bytes(y, r, "f", &b, &err), 0);
	assert_int_equal(b, 2ull << 30);
	assert_int_equal(yaml_get_bytes(y, r, "j", &b, &err), 0);
	assert_int_equal(b, 7);
	assert_int_equal(yaml_get_bytes(y, r, "g", &b, &err), -EINVAL);
	assert_int_equal(yaml_get_str(y, r, "h", &s, &err), 0);
	assert_string_equal(s, "old");
	assert_int_equal(yaml_get_str(y, r, "i", &s, &err), 0);
	assert_string_equal(s, "");
	assert_int_equal(yaml_get_str(y, r, "b", &s, &err), -EINVAL);
	assert_int_equal(yaml_len(y, yaml_get(y, r, "b")), 2);
	assert_false(yaml_is_null(y, yaml_item(y, yaml_get(y, r, "b"), 1)));
	assert_int_equal(yaml_item(y, yaml_get(y, r, "b"), 2), 0);
	assert_int_equal(yaml_no_other_keys(y, yaml_get(y, r, "c"), (const char *const[]){ "e", NULL }, &err), -EINVAL);
	assert_non_null(strstr(err.text, "line 3, column 5: the key \"d\" is not known here (known: e)"));
	yaml_close(y);
}

static void sizes_that_overflow_are_refused(void **state)
{
	struct yaml *y = load("a: 99999999T\nb: 1X\nc: 1Mi\nd: 99999999999999999999\n");
	uint64_t b = 5;

	for (const char *k = "abcd"; *k; k++)
		assert_int_equal(yaml_get_bytes(y, yaml_root(y), (char[]){ *k, 0 }, &b, NULL), -EINVAL);
	assert_int_equal(b, 5);
	yaml_close(y);
}

static void what_would_be_guessed_is_refused(void **state)
{
	static const struct { const char *text, *why; } bad[] = {
		{ "a: 1\na: 2\n", "line 2, column 1: the key \"a\" is given twice" },
		{ "a: [1\n", "line 2" },
		{ "a: 1\n---\nb: 2\n", "more than one" },
		{ "a: &x [1]\nb: *x\n", "alias" },
		{ "? [1]\n: 2\n", "key must be plain text" },
		{ "a: \"x\\0y\"\n", "NUL" },
		{ "a: \t- b\n\tc", "line" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct yaml *y = (void *)0x1;
		struct hearth_err err = { 0 };

		assert_int_equal(yaml_load_text("t.yaml", bad[i].text, strlen(bad[i].text), &y, &err), -EINVAL);
		assert_ptr_equal(y, (void *)0x1);
		if (!strstr(err.text, bad[i].why))
			fail_msg("%s does not say %s", err.text, bad[i].why);
	}
}

static void empty_missing_and_json_files(void **state)
{
	struct hearth_err err = { 0 };
	struct yaml *y = load("# nothing\n");

	assert_int_equal(yaml_root(y), 0);
	assert_int_equal(yaml_get(y, yaml_root(y), "a"), 0);
	yaml_close(y);
	y = load("{\"a\": {\"b\": [1, true]}}");
	assert_int_equal(yaml_len(y, yaml_get(y, yaml_get(y, yaml_root(y), "a"), "b")), 2);
	yaml_close(y);
	assert_int_equal(yaml_load_file("/nonexistent/x.yaml", &y, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/x.yaml: cannot be opened"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_have_types_and_ranges),
		cmocka_unit_test(sizes_that_overflow_are_refused),
		cmocka_unit_test(what_would_be_guessed_is_refused),
		cmocka_unit_test(empty_missing_and_json_files),
	};
	return UNIT_RUN(tests);
}
