// SPDX-License-Identifier: MIT
/*
 * The branches of anyOf and oneOf, as far as they can be told from each other.
 * A branch is judged by what validates against it and by what its grammar
 * writes, which may be less: without "type" it writes one type only, but a
 * value of any other validates too.
 */
#include "grammar/schema_priv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Whole numbers and others are two types. */
enum { T_STRING = 1, T_INTEGER = 2, T_FRACTION = 4, T_BOOLEAN = 8, T_NULL = 16, T_OBJECT = 32, T_ARRAY = 64, T_ALL = 127 };

#define MAX_LOOKS (1u << 22)     /* constants that are compared for one oneOf */

static int name_bits(const char *name)
{
	static const struct { const char *name; int bits; } names[] = {
		{ "string", T_STRING }, { "integer", T_INTEGER }, { "number", T_INTEGER | T_FRACTION }, { "boolean", T_BOOLEAN },
		{ "null", T_NULL }, { "object", T_OBJECT }, { "array", T_ARRAY },
	};

	for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i].name))
			return names[i].bits;
	return 0;
}

static int value_bit(const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_STRING:
		return T_STRING;
	case JSON_NULL:
		return T_NULL;
	case JSON_OBJECT:
		return T_OBJECT;
	case JSON_ARRAY:
		return T_ARRAY;
	case JSON_TRUE:
	case JSON_FALSE:
		return T_BOOLEAN;
	default:
		return schema_type_matches("integer", v) ? T_INTEGER : T_FRACTION;
	}
}

int schema_type_bits(const json_t *s)
{
	const json_t *t = json_object_get(s, "type");
	int bits = 0;
	size_t i;
	json_t *v;

	if (!json_is_array(t))
		return t ? name_bits(json_string_value(t)) : T_ALL;
	json_array_foreach((json_t *)t, i, v)
		bits |= name_bits(json_string_value(v));
	return bits;
}

/* The integer that a number with a point is, or NULL: 1.0 is 1. */
static json_t *as_integer(const json_t *v)
{
	const double d = json_is_real(v) && schema_type_matches("integer", v) ? json_real_value(v) : 1e300;

	return fabs(d) < 9e18 ? json_integer((json_int_t)d) : NULL;
}

/* Numbers that are whole become integers in @v, an array or an object. */
static int whole_numbers(json_t *v)
{
	const char *key;
	json_t *e, *n;
	void *next;
	size_t i;
	int r = 0;

	json_array_foreach(v, i, e) {
		n = as_integer(e);
		r |= n ? json_array_set_new(v, i, n) : whole_numbers(e);
	}
	json_object_foreach_safe(v, next, key, e) {
		n = as_integer(e);
		r |= n ? json_object_set_new(v, key, n) : whole_numbers(e);
	}
	return r;
}

/* @v as text, the same for values that are equal; NULL without memory. */
static char *same_text(const json_t *v)
{
	json_t *copy = json_deep_copy(v), *wrap = copy ? json_pack("[o]", copy) : NULL;
	char *text = wrap && !whole_numbers(wrap) ? json_dumps(wrap, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

	json_decref(wrap);
	return text;
}

/* The value that @s admits alone, or NULL. */
static const json_t *only_value(const json_t *s)
{
	const json_t *c = json_object_get(s, "const"), *e = json_object_get(s, "enum");

	return c ? c : json_array_size(e) == 1 ? json_array_get(e, 0) : NULL;
}

/* Properties of @x with one value: name to that value as text. */
static int note_constants(struct schema_branch *x)
{
	const json_t *v;
	const char *name;
	json_t *p;
	char *text;
	int r = 0;

	x->constants = json_object();
	json_object_foreach(json_object_get(x->s, "properties"), name, p) {
		v = only_value(p);
		if (!v || r)
			continue;
		text = same_text(v);
		r = text ? json_object_set_new(x->constants, name, json_string(text)) : -1;
		free(text);
	}
	return x->constants && !r ? 0 : -ENOMEM;
}

int schema_branch_open(struct schema_builder *b, const json_t *s, struct schema_branch *x)
{
	const char *ref, *hint;
	const json_t *list, *only;
	size_t i;
	json_t *v;

	*x = (struct schema_branch){ .s = s, .admits = T_ALL, .makes = T_ALL };
	for (int depth = 0; (ref = json_string_value(json_object_get(x->s, "$ref"))); depth++) {
		s = schema_resolve(b, ref);
		if (!s || depth == 16)
			return 0;    /* refused where it is looked into */
		x->s = s;
	}
	x->admits = x->makes = schema_type_bits(x->s);
	list = json_object_get(x->s, "enum");
	only = json_object_get(x->s, "const");
	if (list || only) {
		int bits = only ? value_bit(only) : 0;

		if (!only)
			json_array_foreach((json_t *)list, i, v)
				bits |= value_bit(v);
		x->listed = true;
		x->admits &= bits;
		x->makes = x->admits;
	} else if (x->makes == T_ALL && !json_object_get(x->s, "anyOf") && !json_object_get(x->s, "oneOf") && !json_object_get(x->s, "allOf")) {
		hint = schema_implied_type(x->s);
		if (hint)
			x->makes = name_bits(hint);
	}
	return note_constants(x);
}

void schema_branch_close(struct schema_branch *x)
{
	json_decref(x->constants);
}

/* Whether @x requires a property with a value that @y does not let it have. */
static bool differ(const struct schema_branch *x, const struct schema_branch *y, uint32_t *looks)
{
	const json_t *req = json_object_get(x->s, "required");
	json_t *name;
	size_t i;

	if (!json_object_size(x->constants) || !json_object_size(y->constants))
		return false;
	json_array_foreach((json_t *)req, i, name) {
		const json_t *cx, *cy;

		if (!json_is_string(name))
			continue;
		++*looks;
		cx = json_object_get(x->constants, json_string_value(name));
		cy = cx ? json_object_get(y->constants, json_string_value(name)) : NULL;
		if (cy && !json_equal(cx, cy))
			return true;
	}
	return false;
}

static int may_both_match(struct schema_builder *b, size_t i, size_t k)
{
	schema_refuse(b, -EOPNOTSUPP, "\"oneOf\" branches %zu and %zu may both match; make them differ in type or in a required constant, or use \"anyOf\"",
		      i < k ? i : k, i < k ? k : i);
	return b->rc;
}

/* Notes in @seen whose each listed value of branch @i is; refuses one that is another's. */
static int note_values(struct schema_builder *b, const struct schema_branch *x, size_t i, json_t *seen)
{
	const json_t *only = json_object_get(x->s, "const"), *list = json_object_get(x->s, "enum"), *v, *of;

	for (size_t k = 0; k < (only ? 1 : json_array_size(list)); k++) {
		char *text;
		int r;

		v = only ? only : json_array_get(list, k);
		if (!(value_bit(v) & x->admits))
			continue;
		text = same_text(v);
		of = text ? json_object_get(seen, text) : NULL;
		r = of ? 0 : text ? json_object_set_new(seen, text, json_integer((json_int_t)i)) : -1;
		free(text);
		if (r) {
			schema_refuse(b, -ENOMEM, "out of memory");
			return b->rc;
		}
		if (of && json_integer_value(of) != (json_int_t)i)
			return may_both_match(b, (size_t)json_integer_value(of), i);
	}
	return 0;
}

int schema_exclusive(struct schema_builder *b, const struct schema_branch *x, size_t n)
{
	json_t *seen = json_object();
	uint32_t looks = 0;

	for (size_t i = 0; i < n && !b->rc; i++)
		if (x[i].listed)
			note_values(b, &x[i], i, seen);
	json_decref(seen);
	for (size_t i = 0; i < n && !b->rc; i++) {
		for (size_t k = i + 1; k < n && !b->rc; k++) {
			const int both = (x[i].makes & x[k].admits) | (x[k].makes & x[i].admits);

			if (!both || (x[i].listed && x[k].listed))
				continue;
			if (both != T_OBJECT || !(differ(&x[i], &x[k], &looks) || differ(&x[k], &x[i], &looks)))
				may_both_match(b, i, k);
			else if (looks > MAX_LOOKS)
				schema_refuse(b, -EOPNOTSUPP, "\"oneOf\" has too many branches with too many constants to compare them all; use \"anyOf\"");
		}
	}
	return b->rc;
}
