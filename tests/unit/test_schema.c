// SPDX-License-Identifier: MIT
#include "unit.h"
#include "grammar/schema.h"
#include "schema_util.h"
#include "synth.h"
#include "token/chat.h"

static void scalars(void **state)
{
	check("{\"type\":\"string\"}", LIST("\"\"", "\"a b\"", "\"\\n\\u00e9\"", "\"\xc3\xa9\""),
	      LIST("a", "\"", "\"\\u0000\"", "\"\\ud800\"", "\"\n\"", "\"\\x\""));
	check("{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}", LIST("\"ab\"", "\"a\\n\xf0\x9f\x98\x80\""),
	      LIST("\"a\"", "\"abcd\"", "\"\xf0\x9f\x98\x80\""));
	check("{\"type\":\"boolean\"}", LIST("true", "false"), LIST("null", "True", "1"));
	check("{\"type\":[\"integer\",\"null\"]}", LIST("0", "-12", "null"), LIST("01", "1.5", "-", "+1"));
	check("{\"type\":\"number\"}", LIST("0", "-1.5", "2e10", "1.25E-3"), LIST(".5", "1.", "01", "1e999"));
	check("{\"enum\":[\"on\",\"off\",3,null]}", LIST("\"on\"", "3", "null"), LIST("\"o\"", "on", "4"));
	check("{\"const\":{\"a\":[1]}}", LIST("{\"a\": [1]}"), LIST("{}"));
	check("true", LIST("{\"a\": [1, {}, null]}", "\"x\"", "[]"), LIST("{a:1}", "[1,]"));
}

static void integer_ranges(void **state)
{
	char schema[128], text[32];
	static const int bounds[][2] = { { 0, 100 }, { -7, 13 }, { 9, 10 }, { 99, 1001 }, { -120, -15 }, { 5, 5 }, { 0, 0 }, { -1, 0 } };

	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		struct grammar *g = NULL;
		json_t *s;

		snprintf(schema, sizeof(schema), "{\"type\":\"integer\",\"minimum\":%d,\"maximum\":%d}", bounds[i][0], bounds[i][1]);
		s = json_loads(schema, 0, NULL);
		assert_int_equal(grammar_from_schema(s, &g, NULL), 0);
		for (int v = -1300; v <= 1300; v++) {
			snprintf(text, sizeof(text), "%d", v);
			if (gu_admits(g, text) != (v >= bounds[i][0] && v <= bounds[i][1]))
				fail_msg("%s and %d", schema, v);
		}
		grammar_unref(g);
		json_decref(s);
	}
	check("{\"type\":\"integer\",\"exclusiveMinimum\":3,\"exclusiveMaximum\":6}", LIST("4", "5"), LIST("3", "6"));
	check("{\"type\":\"integer\",\"minimum\":0,\"maximum\":100,\"multipleOf\":5}", LIST("0", "5", "100"), LIST("1", "105", "00"));
	check("{\"type\":\"integer\",\"minimum\":1000000}", LIST("1000000", "999999999999999"), LIST("999999", "-1"));
}

static void number_ranges_hold(void **state)
{
	static const struct { const char *lo, *hi; int lo_open, hi_open; } b[] = {
		{ "0", "1", 0, 0 }, { "0", "1", 1, 1 }, { "16", "28.5", 0, 0 }, { "-3.25", "2.75", 0, 0 },
		{ "0.1", "0.9", 0, 0 }, { "-10", "-2", 1, 1 }, { "-0.5", "0", 0, 1 }, { "1.5", "1.5", 0, 0 }, { "99.9", "100.1", 1, 1 },
	};
	char schema[200], text[256];
	uint64_t seed = 99;

	for (size_t i = 0; i < sizeof(b) / sizeof(b[0]); i++) {
		struct hearth_err err = { 0 };
		struct grammar *g = NULL;
		struct gmatch *m;
		double lo = atof(b[i].lo), hi = atof(b[i].hi);
		json_t *s;

		snprintf(schema, sizeof(schema), "{\"type\":\"number\",\"%s\":%s,\"%s\":%s}",
			 b[i].lo_open ? "exclusiveMinimum" : "minimum", b[i].lo, b[i].hi_open ? "exclusiveMaximum" : "maximum", b[i].hi);
		s = json_loads(schema, 0, NULL);
		if (grammar_from_schema(s, &g, &err))
			fail_msg("%s: %s", schema, err.text);
		assert_int_equal(gmatch_create(g, gu_vocab(), &m), 0);
		for (int k = 0; k < 3000; k++) {
			double v;

			assert_true(gu_walk(m, &seed, 4000, text, sizeof(text)) > 0);
			v = atof(text);
			if (v < lo || v > hi || (b[i].lo_open && v == lo) || (b[i].hi_open && v == hi))
				fail_msg("%s gave %s", schema, text);
		}
		gmatch_free(m);
		grammar_unref(g);
		json_decref(s);
	}
	check("{\"type\":\"number\",\"minimum\":16,\"maximum\":28.5}", LIST("16", "21.5", "28.50", "28"), LIST("15.9", "28.6", "29"));
	check("{\"type\":\"number\",\"minimum\":0,\"maximum\":1,\"multipleOf\":0.1}", LIST("0.3", "1.0"), LIST("0.35", "1.1"));
}

static void objects(void **state)
{
	check("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"boolean\"},\"c\":{\"type\":\"null\"}},\"required\":[\"b\"],\"additionalProperties\":false}",
	      LIST("{\"b\": true}", "{\"a\":1,\"b\":false}", "{\"b\": true, \"c\": null}", "{\"a\": 1, \"b\": true, \"c\": null}"),
	      LIST("{}", "{\"a\": 1}", "{\"b\": true,}", "{\"b\": true, \"b\": true}", "{\"b\": true, \"d\": 1}", "{,\"b\":true}"));
	check("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"ab\":{}},\"additionalProperties\":{\"type\":\"string\"}}",
	      LIST("{}", "{\"a\": 1}", "{\"x\": \"y\"}", "{\"a\": 1, \"ac\": \"y\", \"\": \"z\"}", "{\"abc\": \"\"}"),
	      LIST("{\"a\": \"y\"}", "{\"x\": 1}", "{\"a\": 1, \"a\": \"s\"}", "{\"x\": \"y\", \"a\": 1}", "{\"\\u0061\": \"s\"}"));
	/* A tool that takes nothing. */
	check("{\"type\":\"object\",\"properties\":{}}", LIST("{}"), LIST("{\"a\":1}", "{\"a\":1,\"a\":2}"));
	check("{\"type\":\"object\"}", LIST("{}", "{\"k\": {\"l\": []}}"), LIST("[]", "{\"k\"}"));
	check("{\"properties\":{\"caf\xc3\xa9\":{\"type\":\"integer\"}},\"required\":[\"caf\xc3\xa9\"]}",
	      LIST("{\"caf\xc3\xa9\": 1}"), LIST("{}", "{\"cafe\": 1}"));
}

static void arrays(void **state)
{
	check("{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":1,\"maxItems\":3}",
	      LIST("[1]", "[1, 2,3]"), LIST("[]", "[1,2,3,4]", "[1,]", "[true]"));
	check("{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}", LIST("[]", "[1,2,3,4,5,6]"), LIST("[,]"));
	check("{\"type\":\"array\",\"prefixItems\":[{\"const\":1},{\"const\":2}],\"items\":false,\"minItems\":1}",
	      LIST("[1]", "[1, 2]"), LIST("[]", "[1, 2, 3]", "[2]"));
	check("{\"type\":\"array\",\"prefixItems\":[{\"const\":1}],\"items\":{\"type\":\"null\"},\"maxItems\":3}",
	      LIST("[]", "[1]", "[1, null, null]"), LIST("[null]", "[1, null, null, null]"));
	check("{\"type\":\"array\",\"items\":{\"type\":\"null\"},\"maxItems\":0}", LIST("[]"), LIST("[null]"));
}

static void patterns_and_formats(void **state)
{
	check("{\"type\":\"string\",\"pattern\":\"^[a-z]{2}\\\\d+$\"}", LIST("\"ab1\"", "\"zz123\""), LIST("\"a1\"", "\"ab\"", "\"ab1x\""));
	check("{\"type\":\"string\",\"pattern\":\"b+\"}", LIST("\"b\"", "\"xxbby\\n\""), LIST("\"\"", "\"xyz\""));
	check("{\"type\":\"string\",\"pattern\":\"^(a|b\\\\\\\\)\\\"?$\"}", LIST("\"a\"", "\"b\\\\\"", "\"a\\\"\""), LIST("\"b\"", "\"a\"\""));
	check("{\"type\":\"string\",\"pattern\":\"^[^a-y\\\\s]$\"}", LIST("\"z\"", "\"\\\"\"", "\"\xc3\xa9\""), LIST("\"a\"", "\" \"", "\"\xc2\xa0\""));
	check("{\"type\":\"string\",\"format\":\"date\"}", LIST("\"2026-11-29\""), LIST("\"2026-13-01\"", "\"2026-02-30\"", "\"26-01-01\""));
	check("{\"type\":\"string\",\"format\":\"time\"}", LIST("\"23:59:59Z\"", "\"00:00:00+02:00\""), LIST("\"24:00:00Z\"", "\"1:00:00Z\""));
	check("{\"type\":\"string\",\"format\":\"ipv4\"}", LIST("\"10.0.255.1\""), LIST("\"256.1.1.1\"", "\"1.1.1\"", "\"01.1.1.1\""));
}

static void references_and_choices(void **state)
{
	check("{\"$defs\":{\"n\":{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"integer\"},\"next\":{\"anyOf\":[{\"$ref\":\"#/$defs/n\"},{\"type\":\"null\"}]}},\"required\":[\"v\",\"next\"]}},\"$ref\":\"#/$defs/n\"}",
	      LIST("{\"v\": 1, \"next\": null}", "{\"v\": 1, \"next\": {\"v\": 2, \"next\": null}}"), LIST("{\"v\": 1}", "{\"v\": 1, \"next\": 3}"));
	check("{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}", LIST("\"a\"", "1"), LIST("null"));
	check("{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"t\":{\"const\":\"a\"},\"x\":{\"type\":\"integer\"}},\"required\":[\"t\",\"x\"]},{\"type\":\"object\",\"properties\":{\"t\":{\"const\":\"b\"}},\"required\":[\"t\"]}]}",
	      LIST("{\"t\": \"a\", \"x\": 1}", "{\"t\": \"b\"}"), LIST("{\"t\": \"a\"}", "{\"t\": \"c\"}"));
	check("{\"allOf\":[{\"type\":\"null\"}]}", LIST("null"), LIST("1"));
}

static void what_cannot_be_enforced_is_refused_by_name(void **state)
{
	static const struct { const char *schema; int rc; const char *why; } bad[] = {
		{ "{\"type\":\"string\",\"not\":{}}", -EOPNOTSUPP, "\"not\"" },
		{ "{\"if\":{},\"then\":{}}", -EOPNOTSUPP, "\"if\"" },
		{ "{\"type\":\"object\",\"patternProperties\":{}}", -EOPNOTSUPP, "\"patternProperties\"" },
		{ "{\"type\":\"object\",\"propertyNames\":{}}", -EOPNOTSUPP, "\"propertyNames\"" },
		{ "{\"type\":\"object\",\"minProperties\":1}", -EOPNOTSUPP, "\"minProperties\"" },
		{ "{\"type\":\"object\",\"dependentRequired\":{}}", -EOPNOTSUPP, "\"dependentRequired\"" },
		{ "{\"type\":\"object\",\"unevaluatedProperties\":false}", -EOPNOTSUPP, "\"unevaluatedProperties\"" },
		{ "{\"type\":\"array\",\"uniqueItems\":true}", -EOPNOTSUPP, "\"uniqueItems\"" },
		{ "{\"type\":\"array\",\"contains\":{}}", -EOPNOTSUPP, "\"contains\"" },
		{ "{\"type\":\"array\",\"items\":[{}]}", -EOPNOTSUPP, "prefixItems" },
		{ "{\"type\":\"string\",\"format\":\"hostname\"}", -EOPNOTSUPP, "hostname" },
		{ "{\"type\":\"string\",\"pattern\":\"(?=a)\"}", -EOPNOTSUPP, "look-around" },
		{ "{\"type\":\"string\",\"pattern\":\"(a)\\\\1\"}", -EOPNOTSUPP, "escape" },
		{ "{\"type\":\"string\",\"pattern\":\"a^b\"}", -EOPNOTSUPP, "ends of the whole pattern" },
		{ "{\"type\":\"string\",\"pattern\":\"^a|b$\"}", -EOPNOTSUPP, "group the alternatives" },
		{ "{\"type\":\"string\",\"pattern\":\"a\",\"maxLength\":3}", -EOPNOTSUPP, "together" },
		{ "{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"string\"}]}", -EOPNOTSUPP, "oneOf" },
		{ "{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"number\"}]}", -EOPNOTSUPP, "oneOf" },
		{ "{\"allOf\":[{},{}]}", -EOPNOTSUPP, "allOf" },
		{ "{\"type\":\"integer\",\"multipleOf\":7}", -EOPNOTSUPP, "multipleOf" },
		{ "{\"type\":\"object\",\"required\":[\"x\"]}", -EOPNOTSUPP, "\"x\"" },
		{ "{\"properties\":{\"a\":{\"properties\":{\"b\":{\"not\":{}}}}}}", -EOPNOTSUPP, "#/properties/a/properties/b" },
		{ "{\"type\":\"text\"}", -EINVAL, "not a JSON type" },
		{ "{\"type\":5}", -EINVAL, "\"type\"" },
		{ "{\"$ref\":\"#/x\"}", -EINVAL, "leads nowhere" },
		{ "{\"$ref\":\"http://x/y\"}", -EINVAL, "leads nowhere" },
		{ "{\"$ref\":\"#\"}", -EINVAL, "" },
		{ "{\"type\":\"integer\",\"minimum\":5,\"maximum\":4}", -EINVAL, "no number" },
		{ "{\"type\":\"string\",\"minLength\":5,\"maxLength\":4}", -EINVAL, "minLength" },
		{ "{\"enum\":[]}", -EINVAL, "enum" },
		{ "{\"anyOf\":[]}", -EINVAL, "anyOf" },
		{ "{\"type\":\"string\",\"maxLength\":-1}", -EINVAL, "maxLength" },
		{ "{\"type\":\"string\",\"maxLength\":1000000}", -EOPNOTSUPP, "maxLength" },
		{ "{\"type\":\"string\",\"nullable\":true}", -EOPNOTSUPP, "nullable" },
		{ "[]", -EINVAL, "object or a boolean" },
		{ "false", -EOPNOTSUPP, "admits nothing" },
		{ "{\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"a\"]}", -EINVAL, "never end" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		json_t *s = json_loads(bad[i].schema, JSON_DECODE_ANY, NULL);
		struct grammar *g = (void *)0x1;
		struct hearth_err err = { 0 };
		int rc = grammar_from_schema(s, &g, &err);

		if (rc != bad[i].rc || g != (void *)0x1 || !strstr(err.text, bad[i].why))
			fail_msg("%s: %d, \"%s\"", bad[i].schema, rc, err.text);
		json_decref(s);
	}
}

static void random_walks_always_parse(void **state)
{
	static const char *const schemas[] = {
		"true",
		"{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":20},\"n\":{\"type\":\"number\"},\"l\":{\"type\":\"array\",\"items\":{\"enum\":[\"a\",1,null]}}},\"required\":[\"n\"],\"additionalProperties\":true}",
		"{\"type\":\"string\",\"pattern\":\"[\\\\s\\\\S]\"}",
		"{\"type\":\"string\"}",
	};
	uint64_t seed = 5;
	char text[1 << 16];

	for (size_t i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++) {
		json_t *s = json_loads(schemas[i], JSON_DECODE_ANY, NULL), *v;
		struct grammar *g;
		struct gmatch *m;
		json_error_t je;
		int done = 0;

		assert_int_equal(grammar_from_schema(s, &g, NULL), 0);
		assert_int_equal(gmatch_create(g, gu_vocab(), &m), 0);
		for (int k = 0; k < 400; k++) {
			if (gu_walk(m, &seed, 4000, text, sizeof(text)) < 0)
				continue;
			done++;
			v = json_loads(text, JSON_DECODE_ANY, &je);
			if (!v)
				fail_msg("%s gave %s: %s", schemas[i], text, je.text);
			json_decref(v);
		}
		assert_true(done > 300);
		gmatch_free(m);
		grammar_unref(g);
		json_decref(s);
	}
}

static void tools_become_calls(void **state)
{
	const char *tools = "[{\"type\":\"function\",\"function\":{\"name\":\"HassTurnOn\",\"parameters\":{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}},\"required\":[\"name\"]}}},"
			    "{\"type\":\"function\",\"function\":{\"name\":\"GetDateTime\",\"parameters\":{\"type\":\"object\",\"properties\":{}}}},"
			    "{\"type\":\"function\",\"function\":{\"name\":\"Ping\"}}]";
	json_t *t = json_loads(tools, 0, NULL);
	struct hearth_err err = { 0 };
	struct grammar *g;

	assert_int_equal(grammar_from_tools(t, NULL, true, false, &g, &err), 0);
	assert_int_equal(gu_admits(g, "<tool_call>\n{\"name\": \"HassTurnOn\", \"arguments\": {\"name\": \"lamp\"}}\n</tool_call>"), 1);
	assert_int_equal(gu_admits(g, "<tool_call>\n{\"name\": \"Ping\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n{\"name\": \"Ping\", \"arguments\": {}}\n</tool_call>"), 1);
	assert_int_equal(gu_admits(g, "<tool_call>\n{\"name\": \"HassTurnOn\", \"arguments\": {}}\n</tool_call>"), 0);
	assert_int_equal(gu_admits(g, "<tool_call>\n{\"name\": \"HassTurnOff\", \"arguments\": {}}\n</tool_call>"), 0);
	grammar_unref(g);
	assert_int_equal(grammar_from_tools(t, "Ping", false, true, &g, &err), 0);
	assert_int_equal(gu_admits(g, "\n{\"name\": \"Ping\", \"arguments\": {}}\n</tool_call>"), 1);
	assert_int_equal(gu_admits(g, "\n{\"name\": \"GetDateTime\", \"arguments\": {}}\n</tool_call>"), 0);
	grammar_unref(g);
	assert_int_equal(grammar_from_tools(t, "Nope", false, true, &g, &err), -ENOENT);
	assert_non_null(strstr(err.text, "Nope"));
	json_decref(t);
}

static void an_answer_is_of_the_format_or_calls(void **state)
{
#define PING "<tool_call>\n{\"name\": \"Ping\", \"arguments\": {\"n\": 1}}\n</tool_call>"
	/* Each has a $ref of its own, which points into its own schema. */
	json_t *t = json_loads("[{\"type\":\"function\",\"function\":{\"name\":\"Ping\",\"parameters\":{\"type\":\"object\",\"properties\":{\"n\":{\"$ref\":\"#/$defs/n\"}},"
			       "\"required\":[\"n\"],\"$defs\":{\"n\":{\"enum\":[1,2]}}}}}]", 0, NULL);
	json_t *s = json_loads("{\"type\":\"object\",\"properties\":{\"n\":{\"$ref\":\"#/$defs/n\"}},\"required\":[\"n\"],\"additionalProperties\":false,"
			       "\"$defs\":{\"n\":{\"enum\":[\"a\",\"<tool_call>\"]}}}", 0, NULL);
	json_t *bad = json_loads("{\"type\":\"object\",\"patternProperties\":{}}", 0, NULL);
	struct hearth_err err = { 0 };
	struct grammar *g;

	assert_int_equal(grammar_from_tools_or_schema(t, true, s, &g, &err), 0);
	assert_int_equal(gu_admits(g, "{\"n\": \"a\"}"), 1);
	assert_int_equal(gu_admits(g, "{\"n\": \"<tool_call>\"}"), 1);
	assert_int_equal(gu_admits(g, PING), 1);
	assert_int_equal(gu_admits(g, PING "\n" PING), 1);
	assert_int_equal(gu_admits(g, "{\"n\": 1}"), 0);
	assert_int_equal(gu_admits(g, "{\"n\": \"a\"}" PING), 0);
	assert_int_equal(gu_admits(g, PING "{\"n\": \"a\"}"), 0);
	assert_int_equal(gu_admits(g, "words"), 0);
	assert_int_equal(gu_admits(g, ""), 0);
	grammar_unref(g);
	assert_int_equal(grammar_from_tools_or_schema(t, false, NULL, &g, &err), 0);
	assert_int_equal(gu_admits(g, "{\"x\": [1]}"), 1);
	assert_int_equal(gu_admits(g, PING), 1);
	assert_int_equal(gu_admits(g, PING "\n" PING), 0);
	assert_int_equal(gu_admits(g, "[1]"), 0);
	grammar_unref(g);
	assert_int_equal(grammar_from_tools_or_schema(t, true, bad, &g, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "patternProperties"));
	json_decref(t);
	json_decref(s);
	json_decref(bad);
#undef PING
}

static void count_call(void *ctx, size_t index, const char *name, const char *arguments)
{
	json_t *a = json_loads(arguments, JSON_REJECT_DUPLICATES, NULL);

	assert_true(json_is_object(a) && !strcmp(name, "f"));
	json_decref(a);
	++*(int *)ctx;
}

static void no_call(void *ctx, const char *raw, size_t n, const char *why)
{
	fail_msg("%s: %.*s", why, (int)n, raw);
}

/* A text at random that ends within @left tokens, with short keys and many of them. */
static int short_keys(struct gmatch *m, uint64_t *seed, uint32_t left, char *out)
{
	size_t n = 0;

	gmatch_restart(m);
	for (;; left--) {
		const uint32_t *mask = gmatch_mask_within(m, left);
		uint32_t pick[301], few[301], k = 0, f = 0, id;
		const char *b;
		size_t len;

		for (uint32_t i = 0; i < 301; i++) {
			if (!(mask[i / 32] >> (i % 32) & 1))
				continue;
			pick[k++] = i;
			if (i == '"' || i == ',' || i == ':' || i == '{' || i == '1')
				few[f++] = i;
		}
		assert_true(k > 0);
		id = f && synth_rand(seed) % 8 ? few[synth_rand(seed) % f] : pick[synth_rand(seed) % k];
		if (id == GU_EOG)
			return (int)n;
		assert_int_equal(gmatch_accept(m, id), 0);
		b = gu_bytes(NULL, id, &len);
		memcpy(out + n, b, len);
		n += len;
	}
}

/* Whatever the grammar lets out between its markers, the reader of calls takes for a call; free keys come twice too. */
static void what_is_said_as_a_call_is_read_as_one(void **state)
{
	static const char *const params[] = {
		"{\"type\":\"object\"}",
		"{\"type\":\"object\",\"additionalProperties\":{\"type\":\"boolean\"}}",
		"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"null\"}},\"required\":[\"a\"],\"additionalProperties\":true}",
		"{\"type\":\"object\",\"properties\":{\"v\":{}}}",
	};
	uint64_t seed = 6;
	char text[4096];

	for (size_t i = 0; i < sizeof(params) / sizeof(params[0]); i++) {
		json_t *p = json_loads(params[i], 0, NULL), *t = json_pack("[{s:{s:s,s:o}}]", "function", "name", "f", "parameters", p);
		int calls = 0, twice = 0;
		struct chat_sink sink = { .call = count_call, .bad_call = no_call, .ctx = &calls };
		struct chat_parser *cp;
		struct grammar *g;
		struct gmatch *m;

		assert_int_equal(grammar_from_tools(t, NULL, false, false, &g, NULL), 0);
		assert_int_equal(gmatch_create(g, gu_vocab(), &m), 0);
		assert_int_equal(chat_parser_open(NULL, false, &sink, &cp), 0);
		for (int k = 0; k < 1000; k++) {
			const int n = short_keys(m, &seed, 150, text);

			assert_int_equal(chat_parser_push(cp, text, (size_t)n), 0);
			assert_int_equal(chat_parser_end(cp), 0);
			assert_int_equal(calls, k + 1);
			p = json_loadb(text + 12, (size_t)n - 12 - strlen("\n</tool_call>"), JSON_REJECT_DUPLICATES, NULL);
			twice += !p;
			json_decref(p);
		}
		if (twice < 10)
			fail_msg("%s: %d with a key twice", params[i], twice);
		chat_parser_free(cp);
		gmatch_free(m);
		grammar_unref(g);
		json_decref(t);
	}
}

/* The mask has its short ways; each token, byte by byte, must come to the same. */
static void the_mask_is_what_may_come(void **state)
{
	static const char *const schemas[] = {
		"true", "{\"type\":\"string\"}", "{\"type\":\"string\",\"maxLength\":3}", "{\"type\":\"string\",\"minLength\":2,\"maxLength\":40}",
		"{\"type\":\"string\",\"pattern\":\"^[^\u00e9]*$\"}", "{\"type\":\"string\",\"pattern\":\"^[a-z]{2,5}$\"}",
		"{\"type\":\"string\",\"pattern\":\"na\"}", "{\"type\":\"string\",\"pattern\":\"^[^x]+[^a-c]?$\"}", "{\"type\":\"string\",\"pattern\":\"^[\\\\s\\\\S]{0,4}\\u007f?$\"}",
		"{\"enum\":[\"name\",\"null\",\"true \u00e9\u00e9\"]}", "{\"type\":\"string\",\"pattern\":\"^[ -\uffff]*$\"}",
		"{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":6},\"n\":{\"type\":\"number\"}},\"required\":[\"name\"],\"additionalProperties\":true}",
	};
	static const uint32_t lefts[] = { UINT32_MAX, 3, 9, 20, 60 };
	uint64_t seed = 8;

	for (size_t i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++) {
		json_t *s = json_loads(schemas[i], JSON_DECODE_ANY, NULL);
		struct hearth_err err = { 0 };
		struct grammar *g;
		struct gmatch *m;

		assert_non_null(s);
		if (grammar_from_schema(s, &g, &err))
			fail_msg("%s: %s", schemas[i], err.text);
		for (int walk = 0; walk < 24; walk++) {
			const uint32_t left = lefts[walk % 5];

			assert_int_equal(gmatch_create(g, gu_vocab(), &m), 0);
			for (int step = 0; step < 40; step++) {
				/* From a place that is too near to the end everything is let through. */
				const bool late = gmatch_tokens_to_end(m) + 1 > left;
				const uint32_t *mask = gmatch_mask_within(m, left);
				uint32_t pick[301], n = 0;

				assert_non_null(mask);
				for (uint32_t id = 0; id < 301; id++) {
					const bool bit = mask[id / 32] >> (id % 32) & 1;

					if (bit != gmatch_allows(m, id, late ? UINT32_MAX : left))
						fail_msg("%s: token %u, step %d, %u left: the mask says %d", schemas[i], id, step, left, bit);
					if (bit)
						pick[n++] = id;
				}
				assert_true(n > 0);
				n = pick[synth_rand(&seed) % n];
				if (n == GU_EOG)
					break;
				assert_int_equal(gmatch_accept(m, n), 0);
			}
			gmatch_free(m);
		}
		grammar_unref(g);
		json_decref(s);
	}
}

/* A constant comes out as the number that it is, however many digits that takes. */
static void constants_keep_their_value(void **state)
{
	const double v[] = { 0.1, 0.1 + 0.2, 1.0 / 3, 1e300, -5e-324, 123456789.123456789, 1.0 };
	char text[4096];
	uint64_t seed = 7;

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		json_t *s = json_pack("{s:[f,f]}", "enum", v[i], v[i]), *back;
		struct grammar *g;
		struct gmatch *m;

		assert_int_equal(grammar_from_schema(s, &g, NULL), 0);
		assert_int_equal(gmatch_create(g, gu_vocab(), &m), 0);
		assert_true(gu_walk(m, &seed, 100, text, sizeof(text)) > 0);
		back = json_loads(text, JSON_DECODE_ANY, NULL);
		assert_true(json_is_real(back) && json_real_value(back) == v[i]);
		json_decref(back);
		gmatch_free(m);
		grammar_unref(g);
		json_decref(s);
	}
}

/*
 * Whatever is chosen at random, a text is complete within the tokens it was
 * given, from the fewest that can hold it on; and those fewest are no more than
 * bytes, since each byte is a token here.
 */
static void within_bounds_it_ends(void **state)
{
	static const char *const schemas[] = {
		"true", "{\"type\":\"string\"}", "{\"type\":\"string\",\"minLength\":9}", "{\"type\":\"string\",\"pattern\":\"ab+c\"}",
		"{\"type\":\"array\",\"items\":{},\"minItems\":3}", "{\"enum\":[\"a long constant\",\"b\"]}",
		"{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"n\":{\"type\":\"number\"}},\"required\":[\"name\"],\"additionalProperties\":true}",
		"{\"$defs\":{\"n\":{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"kids\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/n\"}}},\"required\":[\"name\",\"kids\"]}},\"$ref\":\"#/$defs/n\"}",
	};
	uint64_t seed = 4;

	for (size_t i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++) {
		json_t *s = json_loads(schemas[i], JSON_DECODE_ANY, NULL), *v;
		struct grammar *g = NULL;
		struct gmatch *m;
		uint32_t fewest;

		assert_int_equal(grammar_from_schema(s, &g, NULL), 0);
		assert_int_equal(gmatch_create(g, gu_vocab(), &m), 0);
		fewest = gmatch_tokens_to_end(m);
		assert_true(fewest > 0 && fewest < 100);
		for (uint32_t more = 0; more < 40; more++) {
			uint32_t left = fewest + 1 + (more < 12 ? more : more * 9), id, n;
			char text[4096];
			size_t len = 0;

			gmatch_restart(m);
			for (;;) {
				const uint32_t *mask;

				assert_true(left > 0);
				mask = gmatch_mask_within(m, left);
				assert_non_null(mask);
				for (n = 0, id = 0; id < 301; id++) {
					n += mask[id / 32] >> (id % 32) & 1;
					/* a yes to one token is a bit of the mask */
					if (gmatch_allows(m, id, left))
						assert_true(mask[id / 32] >> (id % 32) & 1);
				}
				assert_true(n > 0);
				n = (uint32_t)(synth_rand(&seed) % n);
				for (id = 0; !(mask[id / 32] >> (id % 32) & 1) || n--; id++)
					;
				left--;
				if (id == GU_EOG)
					break;
				assert_int_equal(gmatch_accept(m, id), 0);
				{
					size_t k;
					const char *b = gu_bytes(NULL, id, &k);

					assert_true(len + k < sizeof(text));
					memcpy(text + len, b, k);
					len += k;
				}
			}
			v = json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
			if (!v)
				fail_msg("%s: %.*s", schemas[i], (int)len, text);
			json_decref(v);
		}
		/* Too late is too late: then all is allowed that the grammar allows. */
		gmatch_restart(m);
		assert_memory_equal(gmatch_mask_within(m, 1), gmatch_mask(m), 38);
		gmatch_free(m);
		grammar_unref(g);
		json_decref(s);
	}
}

/* What is compared with each other is bounded: a client's schema must not keep a core busy. */
static void many_branches_and_properties_are_refused(void **state)
{
	for (int way = 0; way < 2; way++) {
		const int most = way ? 500 : 2000;
		json_t *list = json_array(), *props = json_object(), *names = json_array(), *s;
		struct hearth_err err = { 0 };
		struct grammar *g;
		char name[16];

		for (int i = 0; i <= most; i++) {
			snprintf(name, sizeof(name), "p%d", i);
			json_array_append_new(list, json_pack("{s:s}", "const", name));
			json_object_set_new(props, name, json_pack("{s:s}", "type", "null"));
			json_array_append_new(names, json_string(name));
		}
		s = way ? json_pack("{s:O}", "oneOf", list) : json_pack("{s:s,s:O,s:O}", "type", "object", "properties", props, "required", names);
		assert_int_equal(grammar_from_schema(s, &g, &err), -EOPNOTSUPP);
		assert_non_null(strstr(err.text, way ? "more than 500 branches" : "more than 2000 properties"));
		json_array_remove(list, (size_t)most);
		json_object_del(props, name);
		json_array_remove(names, (size_t)most);
		if (grammar_from_schema(s, &g, &err))
			fail_msg("%s", err.text);
		grammar_unref(g);
		json_decref(s);
		json_decref(list);
		json_decref(props);
		json_decref(names);
	}
}

/* Arrays in arrays cost what they hold, not twice as much with each. */
static void nested_arrays_do_not_double(void **state)
{
	json_t *s = json_pack("{s:s}", "type", "null"), *outer;
	struct hearth_err err = { 0 };
	char text[2 * 60 + 5];
	struct grammar *g;

	for (int i = 0; i < 60; i++) {
		outer = json_pack("{s:s,s:o,s:i}", "type", "array", "items", s, "minItems", 1);
		s = outer;
		text[i] = '[';
		text[60 + 4 + i] = ']';
	}
	memcpy(text + 60, "null", 4);
	text[124] = 0;
	if (grammar_from_schema(s, &g, &err))
		fail_msg("%s", err.text);
	assert_int_equal(gu_admits(g, text), 1);
	text[63] = ']';
	assert_int_equal(gu_admits(g, text), 0);
	grammar_unref(g);
	json_decref(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nested_arrays_do_not_double),
		cmocka_unit_test(many_branches_and_properties_are_refused),
		cmocka_unit_test(scalars),
		cmocka_unit_test(integer_ranges),
		cmocka_unit_test(number_ranges_hold),
		cmocka_unit_test(objects),
		cmocka_unit_test(arrays),
		cmocka_unit_test(patterns_and_formats),
		cmocka_unit_test(references_and_choices),
		cmocka_unit_test(what_cannot_be_enforced_is_refused_by_name),
		cmocka_unit_test(random_walks_always_parse),
		cmocka_unit_test(what_is_said_as_a_call_is_read_as_one),
		cmocka_unit_test(the_mask_is_what_may_come),
		cmocka_unit_test(constants_keep_their_value),
		cmocka_unit_test(tools_become_calls),
		cmocka_unit_test(an_answer_is_of_the_format_or_calls),
		cmocka_unit_test(within_bounds_it_ends),
	};
	return UNIT_RUN(tests);
}
