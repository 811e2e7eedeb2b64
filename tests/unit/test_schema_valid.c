// SPDX-License-Identifier: MIT
/*
 * Schemas made at random: every text that a grammar lets through validates,
 * as the standard's words have it. The validator below is written from those
 * (draft 2020-12) and knows nothing of grammars.
 */
#include "unit.h"

#include <math.h>

#include "schema_util.h"
#include "synth.h"

#define SCHEMAS 20000
#define WALKS   4

/* -- the validator ------------------------------------------------------------ */

/* JSON Schema's equality: numbers by value, whatever they are written like. */
static bool equal(const json_t *a, const json_t *b)
{
	const char *k;
	json_t *v;
	size_t i;

	if (json_is_number(a) && json_is_number(b))
		return json_number_value(a) == json_number_value(b);
	if (json_typeof(a) != json_typeof(b))
		return false;
	if (json_is_array(a)) {
		json_array_foreach((json_t *)a, i, v)
			if (i >= json_array_size(b) || !equal(v, json_array_get(b, i)))
				return false;
		return json_array_size(a) == json_array_size(b);
	}
	if (json_is_object(a)) {
		json_object_foreach((json_t *)a, k, v)
			if (!json_object_get(b, k) || !equal(v, json_object_get(b, k)))
				return false;
		return json_object_size(a) == json_object_size(b);
	}
	return json_equal(a, b);
}

static bool is_type(const json_t *v, const char *t)
{
	if (!strcmp(t, "integer"))
		return json_is_number(v) && json_number_value(v) == floor(json_number_value(v));
	return !strcmp(t, "number") ? json_is_number(v) : !strcmp(t, "string") ? json_is_string(v) : !strcmp(t, "boolean") ? json_is_boolean(v) :
	       !strcmp(t, "null") ? json_is_null(v) : !strcmp(t, "array") ? json_is_array(v) : json_is_object(v);
}

static size_t characters(const json_t *s)
{
	const char *p = json_string_value(s);
	size_t n = 0;

	for (size_t i = 0; i < json_string_length(s); i++)
		n += (p[i] & 0xc0) != 0x80;
	return n;
}

static bool valid(const json_t *s, const json_t *v);

/* How many of the schemas in @list @v validates against. */
static size_t matching(const json_t *list, const json_t *v)
{
	size_t i, n = 0;
	json_t *s;

	json_array_foreach((json_t *)list, i, s)
		n += valid(s, v);
	return n;
}

static bool number_valid(const json_t *s, double v)
{
	const json_t *b;
	double q;

	if ((b = json_object_get(s, "minimum")) && v < json_number_value(b))
		return false;
	if ((b = json_object_get(s, "exclusiveMinimum")) && v <= json_number_value(b))
		return false;
	if ((b = json_object_get(s, "maximum")) && v > json_number_value(b))
		return false;
	if ((b = json_object_get(s, "exclusiveMaximum")) && v >= json_number_value(b))
		return false;
	if (!(b = json_object_get(s, "multipleOf")))
		return true;
	q = v / json_number_value(b);
	return q == floor(q);
}

static bool array_valid(const json_t *s, const json_t *v)
{
	const json_t *prefix = json_object_get(s, "prefixItems"), *items = json_object_get(s, "items"), *b;
	size_t i;
	json_t *e;

	if ((b = json_object_get(s, "minItems")) && (double)json_array_size(v) < json_number_value(b))
		return false;
	if ((b = json_object_get(s, "maxItems")) && (double)json_array_size(v) > json_number_value(b))
		return false;
	json_array_foreach((json_t *)v, i, e) {
		const json_t *of = i < json_array_size(prefix) ? json_array_get(prefix, i) : items;

		if (of && !valid(of, e))
			return false;
	}
	return true;
}

static bool object_valid(const json_t *s, const json_t *v)
{
	const json_t *props = json_object_get(s, "properties"), *more = json_object_get(s, "additionalProperties");
	const char *k;
	json_t *e;
	size_t i;

	json_array_foreach(json_object_get(s, "required"), i, e)
		if (!json_object_get(v, json_string_value(e)))
			return false;
	json_object_foreach((json_t *)v, k, e) {
		const json_t *of = json_object_get(props, k);

		if (!of)
			of = more;
		if (of && !valid(of, e))
			return false;
	}
	return true;
}

static bool valid(const json_t *s, const json_t *v)
{
	const json_t *t, *b;
	size_t i;
	json_t *e;
	bool any;

	if (!json_is_object(s))
		return json_is_true(s);
	if ((t = json_object_get(s, "type"))) {
		any = json_is_string(t) && is_type(v, json_string_value(t));
		json_array_foreach((json_t *)t, i, e)
			any |= is_type(v, json_string_value(e));
		if (!any)
			return false;
	}
	if ((b = json_object_get(s, "const")) && !equal(b, v))
		return false;
	if ((b = json_object_get(s, "enum"))) {
		any = false;
		json_array_foreach((json_t *)b, i, e)
			any |= equal(e, v);
		if (!any)
			return false;
	}
	if ((b = json_object_get(s, "allOf")) && matching(b, v) != json_array_size(b))
		return false;
	if ((b = json_object_get(s, "anyOf")) && !matching(b, v))
		return false;
	if ((b = json_object_get(s, "oneOf")) && matching(b, v) != 1)
		return false;
	if (json_is_string(v))
		return !((b = json_object_get(s, "minLength")) && (double)characters(v) < json_number_value(b)) &&
		       !((b = json_object_get(s, "maxLength")) && (double)characters(v) > json_number_value(b));
	return json_is_number(v) ? number_valid(s, json_number_value(v)) : json_is_array(v) ? array_valid(s, v) : !json_is_object(v) || object_valid(s, v);
}

/* -- the schemas --------------------------------------------------------------- */

static uint64_t state_of;

static uint32_t below(uint32_t n)
{
	return (uint32_t)(synth_rand(&state_of) >> 33) % n;
}

static json_t *number(void)
{
	static const double some[] = { 0, 1, 2, -1, 3, 0.5, -0.25, 10, 1.5, 100, 7, 12.75, -3.5 };
	const double d = some[below(sizeof(some) / sizeof(some[0]))];

	return d == floor(d) && below(2) ? json_integer((json_int_t)d) : json_real(d);
}

static json_t *text(void)
{
	static const char *const some[] = { "a", "b", "ab", "\xc3\xa9", "q\"x\\", "" };

	return json_string(some[below(6)]);
}

static json_t *constant(int depth)
{
	const uint32_t k = below(depth ? 10 : 7);
	json_t *v;

	if (k < 3)
		return number();
	if (k < 6)
		return text();
	if (k < 7)
		return below(3) ? json_boolean(below(2)) : json_null();
	v = k < 9 ? json_array() : json_object();
	for (uint32_t i = below(3); i; i--) {
		if (k < 9)
			json_array_append_new(v, constant(depth - 1));
		else
			json_object_set_new(v, below(2) ? "a" : "b", constant(depth - 1));
	}
	return v;
}

static json_t *type(void)
{
	static const char *const some[] = {
		"\"integer\"", "\"number\"", "\"string\"", "\"object\"", "\"array\"", "\"boolean\"", "\"null\"",
		"[\"object\",\"string\"]", "[\"integer\",\"null\"]", "[\"number\",\"string\"]",
	};

	return JSON(some[below(sizeof(some) / sizeof(some[0]))]);
}

static json_t *schema(int depth)
{
	static const char *const bounds[] = { "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum" };
	static const char *const names[] = { "a", "b", "ab", "abc", "t" };
	static const double steps[] = { 1, 2, 3, 0.5, 0.125, 0.25, 7, 1.5 };
	const uint32_t k = below(depth ? 18 : 10);
	json_t *s = json_object(), *list;

	switch (k) {
	case 0:
	case 1:
		json_object_set_new(s, "const", constant(2));
		break;
	case 2:
	case 3:
		list = json_array();
		for (uint32_t i = 1 + below(4); i; i--)
			json_array_append_new(list, constant(2));
		json_object_set_new(s, "enum", list);
		if (!below(3))
			json_object_set_new(s, "type", type());
		break;
	case 4:
	case 5:
		if (below(4))
			json_object_set_new(s, "type", json_string(below(2) ? "integer" : "number"));
		for (int i = 0; i < 4; i++)
			if (!below(3))
				json_object_set_new(s, bounds[i], number());
		if (!below(3))
			json_object_set_new(s, "multipleOf", json_real(steps[below(8)]));
		break;
	case 6:
	case 7:
		if (below(4))
			json_object_set_new(s, "type", json_string("string"));
		if (below(2))
			json_object_set_new(s, "minLength", json_integer(below(4)));
		if (below(2))
			json_object_set_new(s, "maxLength", json_integer(below(6)));
		break;
	case 8:
		json_object_set_new(s, "type", type());
		break;
	case 9:
		break;
	case 10:
	case 11:
		if (below(4))
			json_object_set_new(s, "type", json_string("array"));
		if (below(3))
			json_object_set_new(s, "items", schema(depth - 1));
		if (!below(3)) {
			list = json_array();
			for (uint32_t i = 1 + below(3); i; i--)
				json_array_append_new(list, schema(depth - 1));
			json_object_set_new(s, "prefixItems", list);
		}
		if (below(2))
			json_object_set_new(s, "minItems", json_integer(below(4)));
		if (below(2))
			json_object_set_new(s, "maxItems", json_integer(below(5)));
		break;
	case 12:
	case 13:
	case 14:
		if (below(6))
			json_object_set_new(s, "type", below(3) ? json_string("object") : JSON("[\"object\",\"string\"]"));
		json_object_set_new(s, "properties", json_object());
		json_object_set_new(s, "required", json_array());
		for (int i = 0; i < 5; i++) {
			if (below(2))
				continue;
			json_object_set_new(json_object_get(s, "properties"), names[i], i == 4 && below(3) ? json_pack("{s:o}", "const", constant(1)) : schema(depth - 1));
			if (below(2))
				json_array_append_new(json_object_get(s, "required"), json_string(names[i]));
		}
		if (below(2))
			json_object_set_new(s, "additionalProperties", below(2) ? json_boolean(below(2)) : schema(depth - 1));
		break;
	case 17:
		json_object_set_new(s, "allOf", json_pack("[o]", schema(depth - 1)));
		break;
	default:
		list = json_array();
		for (uint32_t i = 1 + below(3); i; i--)
			json_array_append_new(list, schema(depth - 1));
		json_object_set_new(s, below(3) ? "oneOf" : "anyOf", list);
		if (!below(4))
			json_object_set_new(s, "type", type());
	}
	return s;
}

static void what_is_written_validates(void **state)
{
	uint32_t refused_n = 0, written = 0;
	static char out[65536];
	uint64_t seed = 4;

	state_of = 20261130;
	for (int i = 0; i < SCHEMAS; i++) {
		struct hearth_err err = { 0 };
		struct grammar *g = NULL;
		json_t *s = schema(3), *v;
		struct gmatch *m;
		char *words;

		if (grammar_from_schema(s, &g, &err)) {
			assert_true(err.code == -EOPNOTSUPP || err.code == -EINVAL);
			refused_n++;
			json_decref(s);
			continue;
		}
		assert_int_equal(gmatch_create(g, gu_vocab(), &m), 0);
		for (int w = 0; w < WALKS; w++) {
			if (gu_walk(m, &seed, 200, out, sizeof(out)) < 0)
				continue;
			v = json_loads(out, JSON_DECODE_ANY, NULL);
			if (!v || !valid(s, v)) {
				words = json_dumps(s, JSON_ENCODE_ANY);
				fail_msg("%s let %s through", words, out);
			}
			json_decref(v);
			written++;
		}
		gmatch_free(m);
		grammar_unref(g);
		json_decref(s);
	}
	printf("# %u schemas refused, %u texts written of the others\n", refused_n, written);
	assert_true(refused_n < SCHEMAS / 2 && written > SCHEMAS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_validates),
	};
	return UNIT_RUN(tests);
}
