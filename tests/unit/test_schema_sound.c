// SPDX-License-Identifier: MIT
/* Whatever a client's schema is: what is admitted validates, and no server hangs or dies of it. */
#include "unit.h"

#include "schema_util.h"

/* The next multiple after 1e17 is 1e17 again where it is counted in floats: that had no end. */
static void multiples_end_and_keep_to_the_bounds(void **state)
{
	refused(JSON("{\"type\":\"number\",\"minimum\":1e300,\"maximum\":1e300,\"multipleOf\":1}"), -EOPNOTSUPP, "15 digits");
	refused(JSON("{\"type\":\"number\",\"minimum\":1e17,\"maximum\":1e17,\"multipleOf\":3}"), -EOPNOTSUPP, "15 digits");
	refused(JSON("{\"type\":\"number\",\"minimum\":1e14,\"maximum\":1e14,\"multipleOf\":0.00001}"), -EOPNOTSUPP, "15 digits");
	refused(JSON("{\"type\":\"number\",\"minimum\":0,\"maximum\":1,\"multipleOf\":1e300}"), -EOPNOTSUPP, "multipleOf");
	refused(JSON("{\"type\":\"number\",\"minimum\":0.31,\"maximum\":0.39,\"multipleOf\":0.1}"), -EINVAL, "no multiple of 0.1");
	/* 0.3 is below the bound by less than was looked at */
	check("{\"type\":\"number\",\"minimum\":0.30000000001,\"maximum\":0.9,\"multipleOf\":0.1}", LIST("0.4", "0.9"), LIST("0.3", "1.0"));
	check("{\"type\":\"number\",\"minimum\":-0.5,\"exclusiveMaximum\":0.5,\"multipleOf\":0.25}", LIST("-0.50", "-0.25", "0.00", "0.25"), LIST("0.50", "-0.75", "0.1"));
	check("{\"type\":\"integer\",\"minimum\":999999999999990,\"maximum\":999999999999999,\"multipleOf\":7}", LIST("999999999999994"), LIST("999999999999990", "999999999999999", "1000000000000001"));
}

static json_t *object_with(json_t *names, bool more)
{
	json_t *props = json_object(), *v, *s;
	size_t i;

	json_array_foreach(names, i, v)
		json_object_set_new(props, json_string_value(v), json_pack("{s:s}", "type", "null"));
	s = json_pack("{s:s,s:o,s:b}", "type", "object", "properties", props, "additionalProperties", more);
	json_decref(names);
	return s;
}

/* A long name was walked by a function that called itself for each byte: past some thousand the stack was full. */
static void names_may_be_long(void **state)
{
	static char name[200001];
	json_t *names = json_array(), *s;
	struct grammar *g = NULL;
	char text[2000];

	memset(name, 'a', sizeof(name) - 1);
	json_array_append_new(names, json_string(name));
	refused(object_with(names, true), -E2BIG, "too large");
	/* one begins with the other, each a byte longer */
	names = json_array();
	for (size_t n = 1; n <= 300; n++)
		json_array_append_new(names, json_stringn(name, n));
	s = object_with(names, true);
	assert_int_equal(grammar_from_schema(s, &g, NULL), 0);
	snprintf(text, sizeof(text), "{\"%.300s\": null, \"%.301s\": 1}", name, name);
	assert_int_equal(gu_admits(g, text), 1);
	snprintf(text, sizeof(text), "{\"%.300s\": 1}", name);
	assert_int_equal(gu_admits(g, text), 0);
	grammar_unref(g);
	json_decref(s);
	check("{\"properties\":{\"ab\":{\"type\":\"null\"},\"abc\":{\"type\":\"null\"},\"b\":{\"type\":\"null\"}},\"additionalProperties\":{\"type\":\"integer\"}}",
	      LIST("{\"a\": 1}", "{\"ab\": null}", "{\"abcd\": 1}", "{\"abd\": 2}", "{\"bb\": 1}", "{\"\": 1}", "{\"c\": 1}", "{\"\xc3\xa9\": 1}", "{\"b\": null, \"ac\": 1}"),
	      LIST("{\"ab\": 1}", "{\"abc\": 1}", "{\"b\": 1}", "{\"a\": null}"));
	check("{\"additionalProperties\":{\"type\":\"integer\"}}", LIST("{}", "{\"\": 1}", "{\"x\": 1}"), LIST("{\"x\": null}"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(multiples_end_and_keep_to_the_bounds),
		cmocka_unit_test(names_may_be_long),
	};
	return UNIT_RUN(tests);
}
