// SPDX-License-Identifier: MIT
/* const and enum: values as they will stand in the text. */
#include "grammar/schema_priv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The exact text of a constant, as it will stand in the output; NULL without memory. */
static char *text_of(const json_t *v)
{
	bool same = false;
	char *text = NULL;
	json_t *back;

	/* As few digits as people write, and as many as it takes to be the same number. */
	for (size_t digits = 15; digits <= 17 && !same; digits++) {
		free(text);
		text = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
		back = text ? json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;
		same = json_equal(back, v);
		json_decref(back);
	}
	return text;
}

gnode schema_constant(struct schema_builder *b, const json_t *v)
{
	char *text = text_of(v);
	gnode n;

	if (!text)
		return schema_refuse(b, -ENOMEM, "out of memory");
	n = gast_lit(&b->g, text, strlen(text));
	free(text);
	return n;
}

bool schema_type_matches(const char *type, const json_t *v)
{
	if (!strcmp(type, "string"))
		return json_is_string(v);
	if (!strcmp(type, "integer"))
		return json_is_integer(v) || (json_is_real(v) && json_real_value(v) == floor(json_real_value(v)));
	if (!strcmp(type, "number"))
		return json_is_number(v);
	if (!strcmp(type, "boolean"))
		return json_is_boolean(v);
	if (!strcmp(type, "null"))
		return json_is_null(v);
	if (!strcmp(type, "object"))
		return json_is_object(v);
	return !strcmp(type, "array") && json_is_array(v);
}

static bool types_match(const json_t *types, const json_t *v)
{
	size_t i;
	json_t *t;

	if (!types)
		return true;
	if (json_is_string(types))
		return schema_type_matches(json_string_value(types), v);
	json_array_foreach((json_t *)types, i, t)
		if (json_is_string(t) && schema_type_matches(json_string_value(t), v))
			return true;
	return false;
}

gnode schema_enumeration(struct schema_builder *b, const json_t *s)
{
	static const char *const known[] = { "enum", "const", "type", NULL };
	const json_t *types = json_object_get(s, "type"), *e = json_object_get(s, "enum"), *c = json_object_get(s, "const");
	gnode n = gast_never(&b->g);
	size_t i, kept = 0;
	char **words;
	json_t *v;

	if (schema_only_known(b, s, known))
		return n;
	if (e && !json_is_array(e))
		return schema_refuse(b, -EINVAL, "\"enum\" must be an array");
	if (!e)
		return types_match(types, c) ? schema_constant(b, c) :
			schema_refuse(b, -EINVAL, "\"const\" contradicts \"type\": no value satisfies the schema");
	words = calloc(json_array_size(e) + 1, sizeof(*words));
	if (!words)
		return schema_refuse(b, -ENOMEM, "out of memory");
	json_array_foreach((json_t *)e, i, v) {
		if (!types_match(types, v) || (c && !json_equal(c, v)))
			continue;
		words[kept] = text_of(v);
		if (!words[kept]) {
			schema_refuse(b, -ENOMEM, "out of memory");
			break;
		}
		kept++;
	}
	if (!kept)
		schema_refuse(b, -EINVAL, "\"enum\" leaves no value that satisfies the schema");
	else if (!b->rc)
		n = gast_words(&b->g, (const char **)words, kept);
	while (kept)
		free(words[--kept]);
	free(words);
	return n;
}
