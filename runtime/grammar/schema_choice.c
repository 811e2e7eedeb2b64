// SPDX-License-Identifier: MIT
/* What leads to other schemas: $ref, anyOf, oneOf. The branches of oneOf must be seen to exclude each other. */
#include "grammar/schema_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ONE_OF 500u

/* -- $ref ---------------------------------------------------------------------- */

static const json_t *resolve(struct schema_builder *b, const char *ref)
{
	const json_t *at = b->doc;
	char part[256];

	if (ref[0] != '#')
		return NULL;
	for (const char *p = ref + 1; at && *p;) {
		size_t n = 0;

		if (*p++ != '/')
			return NULL;
		while (*p && *p != '/') {
			char c = *p++;

			if (c == '~' && (*p == '0' || *p == '1'))
				c = *p++ == '0' ? '~' : '/';
			if (n + 1 >= sizeof(part))
				return NULL;
			part[n++] = c;
		}
		part[n] = 0;
		at = json_is_array(at) ? json_array_get(at, strtoul(part, NULL, 10)) : json_object_get(at, part);
	}
	return at;
}

gnode schema_reference(struct schema_builder *b, const json_t *s)
{
	static const char *const known[] = { "$ref", NULL };
	const char *ref = json_string_value(json_object_get(s, "$ref"));
	const json_t *target;
	struct schema_ref *p;
	uint32_t rule;
	size_t at;
	gnode body;

	if (schema_only_known(b, s, known))
		return gast_never(&b->g);
	target = ref ? resolve(b, ref) : NULL;
	if (!target)
		return schema_refuse(b, -EINVAL, "\"$ref\": \"%.100s\" leads nowhere inside this schema", ref ? ref : "(not a string)");
	for (size_t i = 0; i < b->n_refs; i++)
		if (b->refs[i].target == target)
			return gast_ref(&b->g, b->refs[i].rule);
	p = realloc(b->refs, (b->n_refs + 1) * sizeof(*p));
	if (!p)
		return schema_refuse(b, -ENOMEM, "out of memory");
	b->refs = p;
	rule = gast_rule_add(&b->g, ref, strlen(ref));
	b->refs[b->n_refs++] = (struct schema_ref){ target, rule };
	at = schema_enter(b, "$ref");
	body = schema_value(b, target);
	schema_leave(b, at);
	gast_rule_set(&b->g, rule, body);
	return gast_ref(&b->g, rule);
}

/* -- anyOf, oneOf -------------------------------------------------------------- */

/*
 * The JSON types a schema admits, as bits; 0x7f when it does not say. Used to
 * show that the branches of a oneOf exclude each other.
 */
static int type_bits(struct schema_builder *b, const json_t *s, int depth)
{
	static const char *const names[] = { "string", "number", "boolean", "null", "object", "array" };
	const json_t *t = json_object_get(s, "type"), *v;
	int bits = 0;
	size_t i;
	json_t *e;

	if (depth > 16)
		return 0x7f;
	if (json_is_string(json_object_get(s, "$ref"))) {
		v = resolve(b, json_string_value(json_object_get(s, "$ref")));
		return v ? type_bits(b, v, depth + 1) : 0x7f;
	}
	if ((v = json_object_get(s, "const"))) {
		for (i = 0; i < 6; i++)
			bits |= schema_type_matches(names[i], v) << i;
		return bits;
	}
	if (!t && json_is_array(json_object_get(s, "enum"))) {
		json_array_foreach(json_object_get(s, "enum"), i, e)
			for (size_t k = 0; k < 6; k++)
				bits |= schema_type_matches(names[k], e) << k;
		return bits;
	}
	if (!t)
		return 0x7f;
	for (size_t k = 0; k < (json_is_array(t) ? json_array_size(t) : 1); k++) {
		const char *name = json_string_value(json_is_array(t) ? json_array_get(t, k) : t);

		for (i = 0; name && i < 6; i++)
			if (!strcmp(name, names[i]) || (i == 1 && !strcmp(name, "integer")))
				bits |= 1 << i;
	}
	return bits;
}

/* Whether two object schemas require the same property with different constants. */
static bool differ_by_constant(const json_t *x, const json_t *y)
{
	const json_t *rx = json_object_get(x, "required");
	size_t i;
	json_t *name;

	json_array_foreach((json_t *)rx, i, name) {
		const char *k = json_string_value(name);
		const json_t *cx = k ? json_object_get(json_object_get(json_object_get(x, "properties"), k), "const") : NULL;
		const json_t *cy = k ? json_object_get(json_object_get(json_object_get(y, "properties"), k), "const") : NULL;

		if (cx && cy && !json_equal(cx, cy))
			return true;
	}
	return false;
}

static bool share_a_value(const json_t *x, const json_t *y)
{
	const json_t *ex = json_object_get(x, "enum"), *ey = json_object_get(y, "enum");
	const json_t *cx = json_object_get(x, "const"), *cy = json_object_get(y, "const");
	size_t i, k;
	json_t *a, *c;

	if (!(ex || cx) || !(ey || cy))
		return true;
	for (i = 0; i < (cx ? 1 : json_array_size(ex)); i++) {
		a = cx ? (json_t *)cx : json_array_get(ex, i);
		for (k = 0; k < (cy ? 1 : json_array_size(ey)); k++) {
			c = cy ? (json_t *)cy : json_array_get(ey, k);
			if (json_equal(a, c))
				return true;
		}
	}
	return false;
}

gnode schema_choice(struct schema_builder *b, const json_t *s, const char *key)
{
	const char *const known[] = { key, "type", NULL };
	const json_t *list = json_object_get(s, key);
	gnode n = gast_never(&b->g);
	size_t count = json_array_size(list), at;

	if (schema_only_known(b, s, known))
		return n;
	if (!count)
		return schema_refuse(b, -EINVAL, "\"%s\" must be a non-empty array", key);
	/* Each is compared with each. */
	if (!strcmp(key, "oneOf") && count > MAX_ONE_OF)
		return schema_refuse(b, -EOPNOTSUPP, "\"oneOf\" of more than %u branches cannot be enforced; use \"anyOf\" or \"enum\"", MAX_ONE_OF);
	for (size_t i = 0; !strcmp(key, "oneOf") && i < count; i++) {
		for (size_t k = i + 1; k < count; k++) {
			const json_t *x = json_array_get(list, i), *y = json_array_get(list, k);

			if ((type_bits(b, x, 0) & type_bits(b, y, 0)) && !differ_by_constant(x, y) && share_a_value(x, y))
				return schema_refuse(b, -EOPNOTSUPP, "\"oneOf\" branches %zu and %zu may both match; make them differ in type or in a required constant, or use \"anyOf\"", i, k);
		}
	}
	for (size_t i = 0; i < count; i++) {
		const json_t *branch = json_array_get(list, i), *types = json_object_get(s, "type");
		char place[48];

		if (types && type_bits(b, s, 0) != (type_bits(b, branch, 0) | type_bits(b, s, 0)))
			return schema_refuse(b, -EOPNOTSUPP, "\"type\" beside \"%s\" is enforced only where each branch repeats it", key);
		snprintf(place, sizeof(place), "%s/%zu", key, i);
		at = schema_enter(b, place);
		n = alt(b, n, schema_value(b, branch));
		schema_leave(b, at);
	}
	return n;
}
