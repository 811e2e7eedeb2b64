// SPDX-License-Identifier: MIT
/* A schema: which keyword decides, and where a grammar begins and ends. */
#include "grammar/schema_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/number.h"

#define MAX_DEPTH 128

static gnode number(struct schema_builder *b, const json_t *s, bool integer)
{
	static const char *const keys[] = { "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf" };
	struct number_bounds nb = { .integer = integer };
	const json_t *j;
	char why[160];
	gnode n;
	int rc;

	for (size_t i = 0; i < 5; i++) {
		j = json_object_get(s, keys[i]);
		if (j && !json_is_number(j))
			return schema_refuse(b, -EINVAL, "\"%s\" must be a number", keys[i]);
	}
	if ((j = json_object_get(s, "minimum")))
		nb.has_min = true, nb.min = json_number_value(j);
	j = json_object_get(s, "exclusiveMinimum");
	if (j && (!nb.has_min || json_number_value(j) >= nb.min))
		nb.has_min = true, nb.min = json_number_value(j), nb.min_open = true;
	if ((j = json_object_get(s, "maximum")))
		nb.has_max = true, nb.max = json_number_value(j);
	j = json_object_get(s, "exclusiveMaximum");
	if (j && (!nb.has_max || json_number_value(j) <= nb.max))
		nb.has_max = true, nb.max = json_number_value(j), nb.max_open = true;
	if ((j = json_object_get(s, "multipleOf")))
		nb.multiple = json_number_value(j);
	rc = number_node(&b->g, &nb, &n, why, sizeof(why));
	return rc ? schema_refuse(b, rc, "%s", why) : n;
}

static gnode typed(struct schema_builder *b, const json_t *s, const char *type)
{
	if (!strcmp(type, "string"))
		return schema_string(b, s);
	if (!strcmp(type, "integer") || !strcmp(type, "number"))
		return number(b, s, type[0] == 'i');
	if (!strcmp(type, "boolean"))
		return alt(b, lit(b, "true"), lit(b, "false"));
	if (!strcmp(type, "null"))
		return lit(b, "null");
	if (!strcmp(type, "array"))
		return schema_array(b, s);
	if (!strcmp(type, "object"))
		return schema_object(b, s);
	return schema_refuse(b, -EINVAL, "\"type\": \"%.40s\" is not a JSON type", type);
}

const char *schema_implied_type(const json_t *s)
{
	static const struct { const char *key, *type; } hints[] = {
		{ "properties", "object" }, { "additionalProperties", "object" }, { "required", "object" },
		{ "items", "array" }, { "prefixItems", "array" }, { "minItems", "array" }, { "maxItems", "array" },
		{ "pattern", "string" }, { "format", "string" }, { "minLength", "string" }, { "maxLength", "string" },
		{ "minimum", "number" }, { "maximum", "number" }, { "exclusiveMinimum", "number" },
		{ "exclusiveMaximum", "number" }, { "multipleOf", "number" },
	};

	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++)
		if (json_object_get(s, hints[i].key))
			return hints[i].type;
	return NULL;
}

static gnode value_inner(struct schema_builder *b, const json_t *s)
{
	static const char *const known[] = {
		"additionalProperties", "exclusiveMaximum", "exclusiveMinimum", "format", "items", "maxItems",
		"maxLength", "maximum", "minItems", "minLength", "minimum", "multipleOf", "pattern",
		"prefixItems", "properties", "required", "type", "uniqueItems", NULL,
	};
	const json_t *t = json_object_get(s, "type"), *all = json_object_get(s, "allOf");
	const char *hint;
	gnode n;
	size_t i;
	json_t *v;

	if (json_is_true(s))
		return schema_any_value(b);
	if (json_is_false(s))
		return schema_refuse(b, -EOPNOTSUPP, "the schema false admits nothing");
	if (!json_is_object(s))
		return schema_refuse(b, -EINVAL, "a schema must be an object or a boolean");
	if (json_object_get(s, "$ref"))
		return schema_reference(b, s);
	if (json_object_get(s, "enum") || json_object_get(s, "const"))
		return schema_enumeration(b, s);
	if (json_object_get(s, "anyOf"))
		return schema_choice(b, s, "anyOf");
	if (json_object_get(s, "oneOf"))
		return schema_choice(b, s, "oneOf");
	if (all) {
		static const char *const only_all[] = { "allOf", NULL };

		if (schema_only_known(b, s, only_all))
			return gast_never(&b->g);
		if (json_array_size(all) != 1)
			return schema_refuse(b, -EOPNOTSUPP, "\"allOf\" with more than one schema cannot be enforced; merge them into one");
		return schema_value(b, json_array_get(all, 0));
	}
	if (schema_only_known(b, s, known))
		return gast_never(&b->g);
	if (json_is_string(t))
		return typed(b, s, json_string_value(t));
	if (json_is_array(t)) {
		if (!json_array_size(t))
			return schema_refuse(b, -EINVAL, "\"type\" must not be an empty array");
		n = gast_never(&b->g);
		json_array_foreach((json_t *)t, i, v) {
			if (!json_is_string(v))
				return schema_refuse(b, -EINVAL, "\"type\" must hold strings");
			n = alt(b, n, typed(b, s, json_string_value(v)));
		}
		return n;
	}
	if (t)
		return schema_refuse(b, -EINVAL, "\"type\" must be a string or an array of strings");
	hint = schema_implied_type(s);
	/* Without "type" other types would pass unchecked; one type is less than that, never more. */
	return hint ? typed(b, s, hint) : schema_any_value(b);
}

gnode schema_value(struct schema_builder *b, const json_t *s)
{
	gnode n;

	/* Once it is too large it stays so: nothing is looked at any more, however much is left. */
	if (b->rc || gast_status(&b->g))
		return gast_never(&b->g);
	if (++b->depth > MAX_DEPTH) {
		b->depth--;
		return schema_refuse(b, -E2BIG, "the schema is nested more than %d deep", MAX_DEPTH);
	}
	n = value_inner(b, s);
	b->depth--;
	return n;
}

void schema_builder_init(struct schema_builder *b, struct hearth_err *err)
{
	memset(b, 0, sizeof(*b));
	b->err = err;
	gast_init(&b->g);
	gast_rule_add(&b->g, "root", 4);     /* rule 0, so that 0 can mean "not made yet" elsewhere */
}

int schema_builder_finish(struct schema_builder *b, gnode root, struct grammar **ret, struct hearth_err *err)
{
	int rc = b->rc;

	if (!rc) {
		gast_rule_set(&b->g, 0, root);
		rc = grammar_compile(&b->g, ret, err);
	}
	gast_done(&b->g);
	free(b->refs);
	return rc;
}

int grammar_from_schema(const json_t *schema, struct grammar **ret, struct hearth_err *err)
{
	struct schema_builder b;

	schema_builder_init(&b, err);
	b.doc = schema;
	return schema_builder_finish(&b, schema_value(&b, schema), ret, err);
}

int grammar_json_object(struct grammar **ret, struct hearth_err *err)
{
	struct schema_builder b;

	schema_builder_init(&b, err);
	return schema_builder_finish(&b, schema_any_object(&b), ret, err);
}
