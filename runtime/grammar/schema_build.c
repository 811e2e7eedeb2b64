// SPDX-License-Identifier: MIT
/* What every keyword needs: refusing with the place, going down and up, and the keywords that may stand there. */
#include "grammar/schema_priv.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "grammar/number.h"

gnode schema_refuse(struct schema_builder *b, int code, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	if (!b->rc) {
		va_start(ap, fmt);
		vsnprintf(text, sizeof(text), fmt, ap);
		va_end(ap);
		b->rc = err_set(b->err, code, "schema at \"#%s\": %s", b->path, text);
	}
	return gast_never(&b->g);
}

size_t schema_enter(struct schema_builder *b, const char *key)
{
	const size_t was = strlen(b->path), room = sizeof(b->path) - sizeof("/...");
	size_t n = was;

	if (n < room)
		b->path[n++] = '/';
	for (; *key && n + 1 < room; key++) {
		if (*key == '~' || *key == '/')
			b->path[n++] = '~';
		b->path[n++] = *key == '~' ? '0' : *key == '/' ? '1' : *key;
	}
	strcpy(b->path + n, *key && n > was ? "..." : "");
	return was;
}

size_t schema_enter_item(struct schema_builder *b, const char *key, size_t i)
{
	const size_t was = schema_enter(b, key);
	char text[24];

	snprintf(text, sizeof(text), "%zu", i);
	schema_enter(b, text);
	return was;
}

void schema_leave(struct schema_builder *b, size_t n)
{
	if (!b->rc)
		b->path[n] = 0;
}

/* At most one space: room for the model's habit, none for endless white space. */
gnode schema_spaced(struct schema_builder *b, const char *s)
{
	return seq(b, lit(b, s), opt(b, lit(b, " ")));
}

/* Never change what validates, or are read where they belong. */
static bool is_annotation(const char *k)
{
	static const char *const names[] = {
		"$anchor", "$comment", "$defs", "$id", "$schema", "$vocabulary", "contentEncoding",
		"contentMediaType", "default", "definitions", "deprecated", "description", "discriminator", "example",
		"examples", "nullable", "readOnly", "strict", "title", "writeOnly",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(k, names[i]))
			return true;
	return !strncmp(k, "x-", 2);
}

/* Refuses every keyword of @s outside @known (NULL-terminated) and the annotations. */
int schema_only_known(struct schema_builder *b, const json_t *s, const char *const *known)
{
	const char *k;
	json_t *v;

	json_object_foreach((json_t *)s, k, v) {
		size_t i = 0;

		if (is_annotation(k)) {
			if (!strcmp(k, "nullable") && json_is_true(v)) {
				schema_refuse(b, -EOPNOTSUPP, "keyword \"nullable\" is not JSON Schema; use \"type\": [..., \"null\"]");
				return b->rc;
			}
			continue;
		}
		while (known[i] && strcmp(known[i], k))
			i++;
		if (!known[i]) {
			schema_refuse(b, -EOPNOTSUPP, "keyword \"%.60s\" cannot be enforced here", k);
			return b->rc;
		}
	}
	return 0;
}

/* A non-negative integer keyword; absent leaves *v alone. */
int schema_count(struct schema_builder *b, const json_t *s, const char *key, uint32_t *v)
{
	const json_t *j = json_object_get(s, key);
	double d;

	if (!j)
		return 0;
	d = json_number_value(j);
	if (!json_is_number(j) || d < 0 || d != floor(d)) {
		schema_refuse(b, -EINVAL, "\"%s\" must be a non-negative integer", key);
		return b->rc;
	}
	if (d > GAST_MAX_REPEAT) {
		schema_refuse(b, -EOPNOTSUPP, "\"%s\" over %u cannot be enforced", key, GAST_MAX_REPEAT);
		return b->rc;
	}
	*v = (uint32_t)d;
	return 0;
}

/* -- any value, for where a schema asks no more -------------------------------- */

static gnode json_list(struct schema_builder *b, const char *open, gnode item, const char *close)
{
	gnode more = gast_repeat(&b->g, seq(b, schema_spaced(b, ","), item), 0, UINT32_MAX);

	return seq(b, lit(b, open), seq(b, opt(b, seq(b, item, more)), lit(b, close)));
}

gnode schema_any_value(struct schema_builder *b)
{
	struct gast *g = &b->g;

	if (!b->value_rule) {
		gnode v, pair;

		b->value_rule = gast_rule_add(g, "value", 5);
		b->object_rule = gast_rule_add(g, "object", 6);
		pair = seq(b, schema_any_string(b), seq(b, schema_spaced(b, ":"), gast_ref(g, b->value_rule)));
		gast_rule_set(g, b->object_rule, json_list(b, "{", pair, "}"));
		v = alt(b, schema_any_string(b), number_any(g));
		v = alt(b, v, alt(b, lit(b, "true"), alt(b, lit(b, "false"), lit(b, "null"))));
		v = alt(b, v, gast_ref(g, b->object_rule));
		v = alt(b, v, json_list(b, "[", gast_ref(g, b->value_rule), "]"));
		gast_rule_set(g, b->value_rule, v);
	}
	return gast_ref(g, b->value_rule);
}

gnode schema_any_object(struct schema_builder *b)
{
	schema_any_value(b);
	return gast_ref(&b->g, b->object_rule);
}
