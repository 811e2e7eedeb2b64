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

#define TAGGED(types, tag) "{\"type\":" types ",\"properties\":{\"t\":{\"const\":" tag "}},\"required\":[\"t\"]}"

/* What one branch writes must not validate against another. */
static void branches_of_one_of_exclude_each_other(void **state)
{
	static const char *const bad[] = {
		/* a string is in both, whatever an object's t is */
		"{\"oneOf\":[" TAGGED("[\"object\",\"string\"]", "1") "," TAGGED("[\"object\",\"string\"]", "2") "]}",
		/* without "type" the first takes any string */
		"{\"oneOf\":[{\"properties\":{\"t\":{\"const\":1}},\"required\":[\"t\"]}," TAGGED("[\"object\",\"string\"]", "2") "]}",
		"{\"oneOf\":[{\"minimum\":1},{\"type\":\"string\"}]}",
		/* 1 and 1.0 are one number */
		"{\"oneOf\":[{\"enum\":[1]},{\"enum\":[1.0]}]}",
		"{\"oneOf\":[" TAGGED("\"object\"", "1") "," TAGGED("\"object\"", "1.0") "]}",
		"{\"oneOf\":[" TAGGED("\"object\"", "{\"a\":[2]}") "," TAGGED("\"object\"", "{\"a\":[2.0]}") "]}",
		"{\"oneOf\":[{\"const\":{\"a\":1,\"b\":2}},{\"enum\":[0,{\"b\":2,\"a\":1}]}]}",
		"{\"oneOf\":[{\"enum\":[\"a\"]},{\"type\":\"string\"}]}",
		"{\"oneOf\":[{\"const\":2.0},{\"type\":\"integer\"}]}",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refused(JSON(bad[i]), -EOPNOTSUPP, "branches 0 and 1 may both match");
	check("{\"oneOf\":[" TAGGED("\"object\"", "1") "," TAGGED("[\"object\",\"string\"]", "2") "]}",
	      LIST("{\"t\": 1}", "{\"t\": 2}", "\"s\""), LIST("{\"t\": 3}", "{}"));
	check("{\"oneOf\":[{\"const\":2.5},{\"type\":\"integer\"}]}", LIST("2.5", "2"), LIST("3.5"));
	/* what "type" leaves out of an enum is in nobody's way */
	check("{\"oneOf\":[{\"type\":\"string\",\"enum\":[\"a\",1]},{\"enum\":[1,2]}]}", LIST("\"a\"", "1", "2"), LIST("3"));
	/* the second need not require the property to exclude the first */
	check("{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"t\":{\"const\":1}}}," TAGGED("\"object\"", "2") "]}", LIST("{}", "{\"t\": 1}", "{\"t\": 2}"), LIST("{\"t\": 3}"));
	/* as pydantic writes a tagged union */
	check("{\"$defs\":{\"c\":" TAGGED("\"object\"", "\"cat\"") ",\"d\":{\"type\":\"object\",\"properties\":{\"t\":{\"enum\":[\"dog\"]}},\"required\":[\"t\"]}},"
	      "\"discriminator\":{\"propertyName\":\"t\",\"mapping\":{\"cat\":\"#/$defs/c\",\"dog\":\"#/$defs/d\"}},"
	      "\"oneOf\":[{\"$ref\":\"#/$defs/c\"},{\"$ref\":\"#/$defs/d\"}]}", LIST("{\"t\": \"cat\"}", "{\"t\": \"dog\"}"), LIST("{\"t\": \"cow\"}"));
	refused(JSON("{\"$defs\":{\"c\":" TAGGED("\"object\"", "\"cat\"") "},\"oneOf\":[{\"$ref\":\"#/$defs/c\"},{\"$ref\":\"#/$defs/c\"}]}"), -EOPNOTSUPP, "may both match");
	refused(JSON("{\"$defs\":{\"c\":{\"$ref\":\"#/$defs/c\"}},\"oneOf\":[{\"$ref\":\"#/$defs/c\"},{\"type\":\"null\"}]}"), -EOPNOTSUPP, "may both match");
}

static void type_beside_any_of_holds(void **state)
{
	refused(JSON("{\"type\":\"integer\",\"anyOf\":[{\"type\":\"number\"}]}"), -EOPNOTSUPP, "\"type\" beside \"anyOf\"");
	refused(JSON("{\"type\":\"object\",\"anyOf\":[{}]}"), -EOPNOTSUPP, "\"type\" beside \"anyOf\"");
	check("{\"type\":\"number\",\"anyOf\":[{\"type\":\"integer\"},{\"const\":0.5}]}", LIST("1", "0.5"), LIST("1.5"));
	check("{\"type\":\"object\",\"anyOf\":[{\"properties\":{\"a\":{\"type\":\"null\"}},\"required\":[\"a\"]},{\"properties\":{\"b\":{\"type\":\"null\"}}}]}",
	      LIST("{\"a\": null}", "{\"b\": null}", "{}"), LIST("1", "\"x\""));
}

/* Two lists of values were compared each with each: 100,000 values in both took minutes. */
static void long_lists_of_values_are_compared_at_once(void **state)
{
	json_t *list[2] = { json_array(), json_array() };
	char text[32];

	for (int i = 0; i < 200001; i++) {
		snprintf(text, sizeof(text), "%s%d", i == 200000 ? "same" : "v", i);
		json_array_append_new(list[i & 1], json_string(text));
		if (i == 200000)
			json_array_append_new(list[1], json_string(text));
	}
	refused(json_pack("{s:[{s:o},{s:o}]}", "oneOf", "enum", list[0], "enum", list[1]), -EOPNOTSUPP, "branches 0 and 1 may both match");
}

static void a_pointer_into_an_array_is_a_number(void **state)
{
	static const char *const parts[] = { "x", "-1", "00", "1", "+0", "0x0", "99999999999999999999" };
	char text[200];

	check("{\"$defs\":{\"l\":[{\"type\":\"null\"}]},\"$ref\":\"#/$defs/l/0\"}", LIST("null"), LIST("1"));
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		snprintf(text, sizeof(text), "{\"$defs\":{\"l\":[{\"type\":\"null\"}]},\"$ref\":\"#/$defs/l/%s\"}", parts[i]);
		refused(JSON(text), -EINVAL, "leads nowhere");
	}
}

/* A home has thousands of entities: a list of values is told apart byte by byte, not value by value. */
static void long_lists_of_values_are_followed(void **state)
{
	static const char *const yes[] = { "\"light.room_0\"", "\"light.room_11\"", "\"light.room_19999\"", "17", "1", "[1, \"a\"]", "null" };
	static const char *const no[] = { "\"light.room_20000\"", "\"light.room_\"", "\"light.room_011\"", "11", "7", "[1]", "nul" };
	json_t *list = json_pack("[i,i,[i,s],n,i]", 17, 1, 1, "a", 1), *s;
	struct grammar *g = NULL;
	char text[64];

	for (int i = 0; i < 20000; i++) {
		snprintf(text, sizeof(text), "light.room_%d", i);
		json_array_append_new(list, json_string(text));
	}
	s = json_pack("{s:o}", "enum", list);
	assert_int_equal(grammar_from_schema(s, &g, NULL), 0);
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		if (gu_admits(g, yes[i]) != 1)
			fail_msg("%s is not admitted", yes[i]);
		if (gu_admits(g, no[i]) != 0)
			fail_msg("%s is admitted", no[i]);
	}
	grammar_unref(g);
	json_decref(s);
	check("{\"type\":\"integer\",\"minimum\":0,\"maximum\":10000,\"multipleOf\":5}", LIST("0", "5", "9995", "10000"), LIST("1", "10005", "05"));
	check("{\"enum\":[1,12,123,1]}", LIST("1", "12", "123"), LIST("2", "1234", ""));
	check("{\"enum\":[\"b\",\"a\",\"ab\",\"\"]}", LIST("\"\"", "\"a\"", "\"ab\"", "\"b\""), LIST("\"ba\"", "\"abb\""));
}

/* The place in a message is a JSON pointer, and where it is too long it says so. */
static void a_place_is_a_json_pointer(void **state)
{
	char name[1001], why[1100];
	json_t *s;

	refused(JSON("{\"properties\":{\"a/b~c\":{\"not\":{}}}}"), -EOPNOTSUPP, "\"#/properties/a~1b~0c\": keyword \"not\"");
	refused(JSON("{\"prefixItems\":[{},{\"anyOf\":[{},{\"not\":{}}]}]}"), -EOPNOTSUPP, "\"#/prefixItems/1/anyOf/1\": keyword \"not\"");
	memset(name, 'n', 1000);
	name[1000] = 0;
	for (int n = 300; n <= 1000; n += n < 400 ? 1 : 100) {
		name[n] = 0;
		s = json_pack("{s:{s:{s:{s:{s:{}}}}}}", "properties", name, "properties", "last", "not");
		snprintf(why, sizeof(why), n > 369 ? "nn...\": keyword \"not\"" : n < 340 ? "/properties/%s/properties/last\": keyword" : "\": keyword \"not\"", name);
		refused(s, -EOPNOTSUPP, why);
		name[n] = 'n';
	}
	name[1000] = 0;
	/* after a long one the next is whole again */
	s = json_pack("{s:{s:{},s:{s:{}}}}", "properties", name, "b", "not");
	refused(s, -EOPNOTSUPP, "\"#/properties/b\": keyword");
}

/* What is too large is so after 8192 rules: the others were still looked for among those, each among all. */
static void too_large_is_the_end(void **state)
{
	json_t *defs = json_object(), *list = json_array();
	char text[32];

	for (int i = 0; i < 150000; i++) {
		snprintf(text, sizeof(text), "#/$defs/%d", i);
		json_object_set_new(defs, text + 8, json_pack("{s:s}", "type", "null"));
		json_array_append_new(list, json_pack("{s:s}", "$ref", text));
	}
	refused(json_pack("{s:o,s:o}", "$defs", defs, "anyOf", list), -E2BIG, "too large");
}

/* A number can be whole and too large for any integer of the machine. */
static void large_numbers_are_whole(void **state)
{
	refused(JSON("{\"type\":\"string\",\"maxLength\":1e300}"), -EOPNOTSUPP, "\"maxLength\" over");
	refused(JSON("{\"type\":\"string\",\"maxLength\":1.5}"), -EINVAL, "non-negative integer");
	check("{\"type\":\"integer\",\"enum\":[1e300,2.5,3.0]}", LIST("1e300", "3.0"), LIST("2.5"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(multiples_end_and_keep_to_the_bounds),
		cmocka_unit_test(names_may_be_long),
		cmocka_unit_test(branches_of_one_of_exclude_each_other),
		cmocka_unit_test(type_beside_any_of_holds),
		cmocka_unit_test(long_lists_of_values_are_compared_at_once),
		cmocka_unit_test(a_pointer_into_an_array_is_a_number),
		cmocka_unit_test(large_numbers_are_whole),
		cmocka_unit_test(too_large_is_the_end),
		cmocka_unit_test(a_place_is_a_json_pointer),
		cmocka_unit_test(long_lists_of_values_are_followed),
	};
	return UNIT_RUN(tests);
}
