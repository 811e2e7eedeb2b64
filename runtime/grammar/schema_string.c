// SPDX-License-Identifier: MIT
/* Strings: any, by length, by pattern, by format. */
#include "grammar/schema_priv.h"

#include <errno.h>
#include <string.h>

#include "grammar/regex.h"

/* One character inside a string: bare, or with any of JSON's escapes but NUL and surrogates. */
static gnode string_char(struct schema_builder *b)
{
	static const struct gast_range bare[] = { { 0x20, 0x21 }, { 0x23, 0x5b }, { 0x5d, 0x10ffff } };
	static const struct gast_range hex[] = { { '0', '9' }, { 'A', 'F' }, { 'a', 'f' } };
	static const struct gast_range not0[] = { { '1', '9' }, { 'A', 'F' }, { 'a', 'f' } };
	static const struct gast_range not0d[] = { { '1', '9' }, { 'A', 'C' }, { 'E', 'F' }, { 'a', 'c' }, { 'e', 'f' } };
	static const struct gast_range d[] = { { 'D', 'D' }, { 'd', 'd' } };
	static const struct gast_range low[] = { { '0', '7' } };
	struct gast *g = &b->g;
	gnode h = gast_class(g, hex, 3), n0 = gast_class(g, not0, 3);
	gnode esc, u;

	u = seq(b, gast_class(g, not0d, 5), seq(b, h, seq(b, h, h)));
	u = alt(b, u, seq(b, gast_class(g, d, 2), seq(b, gast_class(g, low, 1), seq(b, h, h))));
	u = alt(b, u, seq(b, lit(b, "0"), seq(b, n0, seq(b, h, h))));
	u = alt(b, u, seq(b, lit(b, "00"), seq(b, n0, h)));
	u = alt(b, u, seq(b, lit(b, "000"), n0));
	esc = gast_class(g, (struct gast_range[]){ { '"', '"' }, { '/', '/' }, { '\\', '\\' }, { 'b', 'b' },
						   { 'f', 'f' }, { 'n', 'n' }, { 'r', 'r' }, { 't', 't' } }, 8);
	esc = alt(b, esc, seq(b, lit(b, "u"), u));
	return alt(b, gast_class(g, bare, 3), seq(b, lit(b, "\\"), esc));
}

gnode schema_any_string(struct schema_builder *b)
{
	if (!b->string_rule) {
		b->string_rule = gast_rule_add(&b->g, "string", 6);
		gast_rule_set(&b->g, b->string_rule,
			      seq(b, lit(b, "\""), seq(b, gast_repeat(&b->g, string_char(b), 0, UINT32_MAX), lit(b, "\""))));
	}
	return gast_ref(&b->g, b->string_rule);
}

gnode schema_quoted(struct schema_builder *b, gnode inside)
{
	return seq(b, lit(b, "\""), seq(b, inside, lit(b, "\"")));
}

static gnode format_node(struct schema_builder *b, const char *name)
{
	static const struct { const char *name, *pattern; } formats[] = {
		/* Days to 28 in February and to 30 in short months: less than the standard admits, never more. */
		{ "date", "^[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))$" },
		{ "time", "^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$" },
		{ "date-time", "^[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$" },
		{ "duration", "^P([0-9]{1,4}W|([0-9]{1,4}D)(T[0-9]{1,4}H([0-9]{1,4}M([0-9]{1,4}S)?)?)?|T([0-9]{1,4}H([0-9]{1,4}M([0-9]{1,4}S)?)?|[0-9]{1,4}M([0-9]{1,4}S)?|[0-9]{1,4}S))$" },
		{ "uuid", "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$" },
		{ "ipv4", "^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\\.){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])$" },
		{ "email", "^[a-zA-Z0-9_+-]{1,32}(\\.[a-zA-Z0-9_+-]{1,32}){0,3}@[a-z0-9]{1,32}(-[a-z0-9]{1,16}){0,2}(\\.[a-z]{2,16}){1,3}$" },
	};
	gnode n;

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (strcmp(formats[i].name, name))
			continue;
		if (regex_to_json_string(&b->g, formats[i].pattern, strlen(formats[i].pattern), &n, b->err)) {
			b->rc = -EINVAL;
			return gast_never(&b->g);
		}
		return schema_quoted(b, n);
	}
	return schema_refuse(b, -EOPNOTSUPP, "\"format\": \"%.40s\" cannot be enforced (known: date, time, date-time, duration, uuid, ipv4, email)", name);
}

gnode schema_string(struct schema_builder *b, const json_t *s)
{
	const json_t *pattern = json_object_get(s, "pattern"), *format = json_object_get(s, "format");
	uint32_t min = 0, max = UINT32_MAX;
	bool bounded = json_object_get(s, "minLength") || json_object_get(s, "maxLength");
	gnode n;
	int rc;

	if (schema_count(b, s, "minLength", &min) || schema_count(b, s, "maxLength", &max))
		return gast_never(&b->g);
	if ((pattern && !json_is_string(pattern)) || (format && !json_is_string(format)))
		return schema_refuse(b, -EINVAL, "\"pattern\" and \"format\" must be strings");
	if (!!pattern + !!format + bounded > 1)
		return schema_refuse(b, -EOPNOTSUPP, "\"pattern\", \"format\" and a length together cannot be enforced; put the length into the pattern");
	if (min > max)
		return schema_refuse(b, -EINVAL, "\"minLength\" is over \"maxLength\": no text satisfies the schema");
	if (format)
		return format_node(b, json_string_value(format));
	if (pattern) {
		rc = regex_to_json_string(&b->g, json_string_value(pattern), json_string_length(pattern), &n, b->err);
		if (rc) {
			b->rc = err_prefix(b->err, rc, "schema at \"#%s\"", b->path);
			return gast_never(&b->g);
		}
		return schema_quoted(b, n);
	}
	if (!bounded)
		return schema_any_string(b);
	return schema_quoted(b, gast_repeat(&b->g, string_char(b), min, max));
}
