// SPDX-License-Identifier: MIT
#include "grammar/schema.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/number.h"
#include "grammar/regex.h"

#define MAX_DEPTH 128
#define MAX_PATH  384
#define MAX_PROPERTIES 2000u     /* of one object */
#define MAX_ONE_OF 500u
#define MAX_OPTIONAL 300u        /* of one object: each is a way on from where it begins (match.c, MAX_CONFIGS) */

struct ref {
	const json_t *target;
	uint32_t rule;
};

struct builder {
	struct gast g;
	const json_t *doc;           /* where "#/..." points into */
	struct ref *refs;
	size_t n_refs;
	uint32_t value_rule;         /* any JSON value; 0 until first needed */
	uint32_t object_rule;
	uint32_t string_rule;
	char path[MAX_PATH];         /* JSON pointer of the place under work */
	int depth;
	struct hearth_err *err;
	int rc;
};

static gnode value(struct builder *b, const json_t *s);

static gnode refuse(struct builder *b, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static gnode refuse(struct builder *b, int code, const char *fmt, ...)
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

/* Goes one step down for messages; returns what to give to path_leave(). */
static size_t path_enter(struct builder *b, const char *key)
{
	size_t n = strlen(b->path);

	snprintf(b->path + n, sizeof(b->path) - n, "/%s", key);
	return n;
}

static void path_leave(struct builder *b, size_t n)
{
	if (!b->rc)
		b->path[n] = 0;
}

static gnode lit(struct builder *b, const char *s)
{
	return gast_lit(&b->g, s, strlen(s));
}

static gnode seq(struct builder *b, gnode x, gnode y)
{
	return gast_seq(&b->g, x, y);
}

static gnode alt(struct builder *b, gnode x, gnode y)
{
	return gast_alt(&b->g, x, y);
}

static gnode opt(struct builder *b, gnode x)
{
	return gast_repeat(&b->g, x, 0, 1);
}

/* At most one space: room for the model's habit, none for endless white space. */
static gnode with_space(struct builder *b, const char *s)
{
	return seq(b, lit(b, s), opt(b, lit(b, " ")));
}

/* One character inside a string: bare, or with any of JSON's escapes but NUL and surrogates. */
static gnode string_char(struct builder *b)
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

static gnode any_string(struct builder *b)
{
	if (!b->string_rule) {
		b->string_rule = gast_rule_add(&b->g, "string", 6);
		gast_rule_set(&b->g, b->string_rule,
			      seq(b, lit(b, "\""), seq(b, gast_repeat(&b->g, string_char(b), 0, UINT32_MAX), lit(b, "\""))));
	}
	return gast_ref(&b->g, b->string_rule);
}

static gnode quoted(struct builder *b, gnode inside)
{
	return seq(b, lit(b, "\""), seq(b, inside, lit(b, "\"")));
}

static gnode json_list(struct builder *b, const char *open, gnode item, const char *close)
{
	gnode more = gast_repeat(&b->g, seq(b, with_space(b, ","), item), 0, UINT32_MAX);

	return seq(b, lit(b, open), seq(b, opt(b, seq(b, item, more)), lit(b, close)));
}

static gnode any_value(struct builder *b)
{
	struct gast *g = &b->g;

	if (!b->value_rule) {
		gnode v, pair;

		b->value_rule = gast_rule_add(g, "value", 5);
		b->object_rule = gast_rule_add(g, "object", 6);
		pair = seq(b, any_string(b), seq(b, with_space(b, ":"), gast_ref(g, b->value_rule)));
		gast_rule_set(g, b->object_rule, json_list(b, "{", pair, "}"));
		v = alt(b, any_string(b), number_any(g));
		v = alt(b, v, alt(b, lit(b, "true"), alt(b, lit(b, "false"), lit(b, "null"))));
		v = alt(b, v, gast_ref(g, b->object_rule));
		v = alt(b, v, json_list(b, "[", gast_ref(g, b->value_rule), "]"));
		gast_rule_set(g, b->value_rule, v);
	}
	return gast_ref(g, b->value_rule);
}

static gnode any_object(struct builder *b)
{
	any_value(b);
	return gast_ref(&b->g, b->object_rule);
}

/* -- keywords ------------------------------------------------------------------ */

/* Never change what validates, or are read where they belong. */
static bool is_annotation(const char *k)
{
	static const char *const names[] = {
		"$anchor", "$comment", "$defs", "$id", "$schema", "$vocabulary", "contentEncoding",
		"contentMediaType", "default", "definitions", "deprecated", "description", "example",
		"examples", "nullable", "readOnly", "strict", "title", "writeOnly",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(k, names[i]))
			return true;
	return !strncmp(k, "x-", 2);
}

/* Refuses every keyword of @s outside @known (NULL-terminated) and the annotations. */
static int only_known(struct builder *b, const json_t *s, const char *const *known)
{
	const char *k;
	json_t *v;

	json_object_foreach((json_t *)s, k, v) {
		size_t i = 0;

		if (is_annotation(k)) {
			if (!strcmp(k, "nullable") && json_is_true(v)) {
				refuse(b, -EOPNOTSUPP, "keyword \"nullable\" is not JSON Schema; use \"type\": [..., \"null\"]");
				return b->rc;
			}
			continue;
		}
		while (known[i] && strcmp(known[i], k))
			i++;
		if (!known[i]) {
			refuse(b, -EOPNOTSUPP, "keyword \"%.60s\" cannot be enforced here", k);
			return b->rc;
		}
	}
	return 0;
}

/* A non-negative integer keyword; absent leaves *v alone. */
static int get_count(struct builder *b, const json_t *s, const char *key, uint32_t *v)
{
	const json_t *j = json_object_get(s, key);
	double d;

	if (!j)
		return 0;
	d = json_number_value(j);
	if (!json_is_number(j) || d < 0 || d != (double)(long long)d) {
		refuse(b, -EINVAL, "\"%s\" must be a non-negative integer", key);
		return b->rc;
	}
	if (d > GAST_MAX_REPEAT) {
		refuse(b, -EOPNOTSUPP, "\"%s\" over %u cannot be enforced", key, GAST_MAX_REPEAT);
		return b->rc;
	}
	*v = (uint32_t)d;
	return 0;
}

/* The exact text of a constant, as it will stand in the output. */
static gnode constant(struct builder *b, const json_t *v)
{
	bool same = false;
	char *text = NULL;
	json_t *back;
	gnode n;

	/* As few digits as people write, and as many as it takes to be the same number. */
	for (size_t digits = 15; digits <= 17 && !same; digits++) {
		free(text);
		text = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
		back = text ? json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;
		same = json_equal(back, v);
		json_decref(back);
	}
	if (!text)
		return refuse(b, -EINVAL, "a constant cannot be written as JSON");
	n = gast_lit(&b->g, text, strlen(text));
	free(text);
	return n;
}

static bool type_matches(const char *type, const json_t *v)
{
	if (!strcmp(type, "string"))
		return json_is_string(v);
	if (!strcmp(type, "integer"))
		return json_is_integer(v) || (json_is_real(v) && json_real_value(v) == (double)(long long)json_real_value(v));
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
		return type_matches(json_string_value(types), v);
	json_array_foreach((json_t *)types, i, t)
		if (json_is_string(t) && type_matches(json_string_value(t), v))
			return true;
	return false;
}

static gnode enumeration(struct builder *b, const json_t *s)
{
	static const char *const known[] = { "enum", "const", "type", NULL };
	const json_t *types = json_object_get(s, "type"), *e = json_object_get(s, "enum"), *c = json_object_get(s, "const");
	gnode n = gast_never(&b->g);
	size_t i, kept = 0;
	json_t *v;

	if (only_known(b, s, known))
		return n;
	if (e && !json_is_array(e))
		return refuse(b, -EINVAL, "\"enum\" must be an array");
	if (!e)
		return types_match(types, c) ? constant(b, c) :
			refuse(b, -EINVAL, "\"const\" contradicts \"type\": no value satisfies the schema");
	json_array_foreach((json_t *)e, i, v) {
		if (!types_match(types, v) || (c && !json_equal(c, v)))
			continue;
		n = alt(b, n, constant(b, v));
		kept++;
	}
	return kept ? n : refuse(b, -EINVAL, "\"enum\" leaves no value that satisfies the schema");
}

/* -- strings ------------------------------------------------------------------- */

static gnode format_node(struct builder *b, const char *name)
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
		return quoted(b, n);
	}
	return refuse(b, -EOPNOTSUPP, "\"format\": \"%.40s\" cannot be enforced (known: date, time, date-time, duration, uuid, ipv4, email)", name);
}

static gnode string(struct builder *b, const json_t *s)
{
	const json_t *pattern = json_object_get(s, "pattern"), *format = json_object_get(s, "format");
	uint32_t min = 0, max = UINT32_MAX;
	bool bounded = json_object_get(s, "minLength") || json_object_get(s, "maxLength");
	gnode n;
	int rc;

	if (get_count(b, s, "minLength", &min) || get_count(b, s, "maxLength", &max))
		return gast_never(&b->g);
	if ((pattern && !json_is_string(pattern)) || (format && !json_is_string(format)))
		return refuse(b, -EINVAL, "\"pattern\" and \"format\" must be strings");
	if (!!pattern + !!format + bounded > 1)
		return refuse(b, -EOPNOTSUPP, "\"pattern\", \"format\" and a length together cannot be enforced; put the length into the pattern");
	if (min > max)
		return refuse(b, -EINVAL, "\"minLength\" is over \"maxLength\": no text satisfies the schema");
	if (format)
		return format_node(b, json_string_value(format));
	if (pattern) {
		rc = regex_to_json_string(&b->g, json_string_value(pattern), json_string_length(pattern), &n, b->err);
		if (rc) {
			b->rc = err_prefix(b->err, rc, "schema at \"#%s\"", b->path);
			return gast_never(&b->g);
		}
		return quoted(b, n);
	}
	if (!bounded)
		return any_string(b);
	return quoted(b, gast_repeat(&b->g, string_char(b), min, max));
}

/* -- numbers ------------------------------------------------------------------- */

static gnode numeric(struct builder *b, const json_t *s, bool integer)
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
			return refuse(b, -EINVAL, "\"%s\" must be a number", keys[i]);
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
	return rc ? refuse(b, rc, "%s", why) : n;
}

/* -- arrays -------------------------------------------------------------------- */

/* What stands in several places is a rule, which is wired once: else arrays in arrays double with each. */
static gnode once(struct builder *b, gnode n)
{
	uint32_t rule = gast_rule_add(&b->g, NULL, 0);

	gast_rule_set(&b->g, rule, n);
	return gast_ref(&b->g, rule);
}

static gnode array(struct builder *b, const json_t *s)
{
	const json_t *items = json_object_get(s, "items"), *prefix = json_object_get(s, "prefixItems");
	const json_t *unique = json_object_get(s, "uniqueItems");
	uint32_t min = 0, max = UINT32_MAX, fixed = 0;
	gnode item = 0, body, comma;
	bool open = true;
	size_t at;

	if (get_count(b, s, "minItems", &min) || get_count(b, s, "maxItems", &max))
		return gast_never(&b->g);
	if (min > max)
		return refuse(b, -EINVAL, "\"minItems\" is over \"maxItems\": no array satisfies the schema");
	if (json_is_true(unique) && max > 1)
		return refuse(b, -EOPNOTSUPP, "keyword \"uniqueItems\" cannot be enforced");
	if (json_is_array(items))
		return refuse(b, -EOPNOTSUPP, "\"items\" as an array is an older draft; use \"prefixItems\"");
	if (prefix && !json_is_array(prefix))
		return refuse(b, -EINVAL, "\"prefixItems\" must be an array");
	if (json_is_false(items))
		open = false;
	if (open) {
		at = path_enter(b, "items");
		item = once(b, items ? value(b, items) : any_value(b));
		path_leave(b, at);
	}
	fixed = (uint32_t)json_array_size(prefix);
	if (!open && max > fixed)
		max = fixed;
	if (min > max)
		return refuse(b, -EINVAL, "\"minItems\" asks for more items than the schema has");
	comma = with_space(b, ",");
	/* From the last item to the first: each optional one carries all that follow. */
	if (max > fixed) {
		uint32_t lo = min > fixed ? min - fixed : 0, hi = max == UINT32_MAX ? UINT32_MAX : max - fixed;

		if (fixed) {
			body = gast_repeat(&b->g, seq(b, comma, item), lo, hi);
		} else {
			gnode rest = gast_repeat(&b->g, seq(b, comma, item), lo ? lo - 1 : 0, hi == UINT32_MAX ? hi : hi - 1);

			body = seq(b, item, rest);
			if (!lo)
				body = opt(b, body);
		}
	} else {
		body = gast_empty(&b->g);
		fixed = max < fixed ? max : fixed;
	}
	for (uint32_t i = fixed; i-- > 0;) {
		char key[32];
		gnode one;

		snprintf(key, sizeof(key), "prefixItems/%u", i);
		at = path_enter(b, key);
		one = value(b, json_array_get(prefix, i));
		path_leave(b, at);
		body = seq(b, i ? seq(b, comma, one) : one, body);
		if (i >= min)
			body = opt(b, body);
	}
	return seq(b, lit(b, "["), seq(b, body, lit(b, "]")));
}

/* -- objects ------------------------------------------------------------------- */

/*
 * A key that is none of the named ones, written without escapes (an escape
 * could spell a named key another way): walks the names as a trie of bytes.
 */
static gnode other_key(struct builder *b, const char **names, size_t n, size_t at)
{
	static const struct gast_range bare[] = { { 0x20, 0x21 }, { 0x23, 0x5b }, { 0x5d, 0x10ffff } };
	struct gast_range left[300];
	gnode rest = gast_repeat(&b->g, gast_class(&b->g, bare, 3), 0, UINT32_MAX), out;
	bool ends = false, taken[128] = { false };
	size_t m = 0;

	for (size_t i = 0; i < n; i++) {
		uint8_t c = (uint8_t)names[i][at];

		if (!c)
			ends = true;
		else if (c < 0x80)
			taken[c] = true;
	}
	for (uint32_t c = 0x20; c < 0x80; c++)
		if (!taken[c] && c != '"' && c != '\\')
			left[m++] = (struct gast_range){ c, c };
	/* Only ASCII names are told apart byte by byte; caller refuses others. */
	left[m++] = (struct gast_range){ 0x80, 0x10ffff };
	m = gast_ranges_normalise(left, m, 0);
	out = seq(b, gast_class(&b->g, left, m), rest);
	if (!ends)
		out = alt(b, out, gast_empty(&b->g));
	for (uint32_t c = 0x20; c < 0x80; c++) {
		const char **sub;
		size_t k = 0;

		if (!taken[c])
			continue;
		sub = malloc(n * sizeof(*sub));
		if (!sub)
			return refuse(b, -ENOMEM, "out of memory");
		for (size_t i = 0; i < n; i++)
			if ((uint8_t)names[i][at] == c)
				sub[k++] = names[i];
		out = alt(b, out, seq(b, gast_lit(&b->g, &(char){ (char)c }, 1), other_key(b, sub, k, at + 1)));
		free(sub);
	}
	return out;
}

static bool is_plain_ascii(const char *s)
{
	for (; *s; s++)
		if ((uint8_t)*s >= 0x80 || (uint8_t)*s < 0x20 || *s == '"' || *s == '\\')
			return false;
	return true;
}

static gnode object(struct builder *b, const json_t *s)
{
	const json_t *props = json_object_get(s, "properties"), *req = json_object_get(s, "required");
	const json_t *more = json_object_get(s, "additionalProperties");
	size_t n = json_object_size(props), i = 0, at, at2, k;
	const char **names = NULL;
	gnode *pairs = NULL, comma = with_space(b, ","), body, body_first, extra = 0, colon = with_space(b, ":");
	bool *needed = NULL, open = !json_is_false(more);
	const char *name;
	json_t *v;

	if (props && !json_is_object(props))
		return refuse(b, -EINVAL, "\"properties\" must be an object");
	if (req && !json_is_array(req))
		return refuse(b, -EINVAL, "\"required\" must be an array");
	if (!props && !req && (!more || json_is_true(more)))
		return any_object(b);
	/* Each name of "required" is looked for among them. */
	if (n > MAX_PROPERTIES || json_array_size(req) > MAX_PROPERTIES)
		return refuse(b, -EOPNOTSUPP, "more than %u properties cannot be enforced", MAX_PROPERTIES);
	names = calloc(n + 1, sizeof(*names));
	pairs = calloc(n + 1, sizeof(*pairs));
	needed = calloc(n + 1, sizeof(*needed));
	if (!names || !pairs || !needed) {
		refuse(b, -ENOMEM, "out of memory");
		goto out;
	}
	at = path_enter(b, "properties");
	json_object_foreach((json_t *)props, name, v) {
		json_t *key = json_string(name);

		at2 = path_enter(b, name);
		names[i] = name;
		pairs[i] = seq(b, constant(b, key), seq(b, colon, value(b, v)));
		json_decref(key);
		path_leave(b, at2);
		i++;
	}
	path_leave(b, at);
	json_array_foreach((json_t *)req, k, v) {
		for (i = 0; i < n && (!json_is_string(v) || strcmp(names[i], json_string_value(v))); i++)
			;
		if (i == n) {
			refuse(b, -EOPNOTSUPP, "\"required\" names \"%.60s\", which \"properties\" does not describe",
			       json_is_string(v) ? json_string_value(v) : "(not a string)");
			goto out;
		}
		needed[i] = true;
	}
	for (i = k = 0; i < n; i++)
		k += !needed[i];
	if (k > MAX_OPTIONAL) {
		refuse(b, -EOPNOTSUPP, "%zu optional properties; more than %u cannot be enforced: name some in \"required\"", k, MAX_OPTIONAL);
		goto out;
	}
	/*
	 * Where the schema says nothing, OpenAI's clients expect only what is
	 * described; a tool with an empty list of properties takes no arguments.
	 */
	if (!more && props)
		open = false;
	if (open) {
		for (i = 0; i < n; i++) {
			if (!is_plain_ascii(names[i])) {
				refuse(b, -EOPNOTSUPP, "\"additionalProperties\" beside the property \"%.60s\" cannot be enforced (its name is not plain ASCII)", names[i]);
				goto out;
			}
		}
		at = path_enter(b, "additionalProperties");
		extra = more && !json_is_true(more) ? value(b, more) : any_value(b);
		path_leave(b, at);
		extra = seq(b, quoted(b, other_key(b, names, n, 0)), seq(b, colon, extra));
	}
	/*
	 * Two chains from the last property to the first: `body` when something
	 * stands before it (so it begins with a comma), `body_first` when nothing
	 * does. Rules keep both linear in the number of properties.
	 */
	body = open ? gast_repeat(&b->g, seq(b, comma, extra), 0, UINT32_MAX) : gast_empty(&b->g);
	body_first = open ? opt(b, seq(b, extra, body)) : gast_empty(&b->g);
	for (i = n; i-- > 0;) {
		uint32_t rest = gast_rule_add(&b->g, NULL, 0), rest_first = gast_rule_add(&b->g, NULL, 0);
		gnode with, with_first;

		gast_rule_set(&b->g, rest, body);
		gast_rule_set(&b->g, rest_first, body_first);
		with = seq(b, comma, seq(b, pairs[i], gast_ref(&b->g, rest)));
		with_first = seq(b, pairs[i], gast_ref(&b->g, rest));
		body = needed[i] ? with : alt(b, with, gast_ref(&b->g, rest));
		body_first = needed[i] ? with_first : alt(b, with_first, gast_ref(&b->g, rest_first));
	}
	free(names);
	free(pairs);
	free(needed);
	return seq(b, lit(b, "{"), seq(b, body_first, lit(b, "}")));
out:
	free(names);
	free(pairs);
	free(needed);
	return gast_never(&b->g);
}

/* -- combining ----------------------------------------------------------------- */

static const json_t *resolve(struct builder *b, const char *ref)
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

static gnode reference(struct builder *b, const json_t *s)
{
	static const char *const known[] = { "$ref", NULL };
	const char *ref = json_string_value(json_object_get(s, "$ref"));
	const json_t *target;
	struct ref *p;
	uint32_t rule;
	size_t at;
	gnode body;

	if (only_known(b, s, known))
		return gast_never(&b->g);
	target = ref ? resolve(b, ref) : NULL;
	if (!target)
		return refuse(b, -EINVAL, "\"$ref\": \"%.100s\" leads nowhere inside this schema", ref ? ref : "(not a string)");
	for (size_t i = 0; i < b->n_refs; i++)
		if (b->refs[i].target == target)
			return gast_ref(&b->g, b->refs[i].rule);
	p = realloc(b->refs, (b->n_refs + 1) * sizeof(*p));
	if (!p)
		return refuse(b, -ENOMEM, "out of memory");
	b->refs = p;
	rule = gast_rule_add(&b->g, ref, strlen(ref));
	b->refs[b->n_refs++] = (struct ref){ target, rule };
	at = path_enter(b, "$ref");
	body = value(b, target);
	path_leave(b, at);
	gast_rule_set(&b->g, rule, body);
	return gast_ref(&b->g, rule);
}

/*
 * The JSON types a schema admits, as bits; 0x7f when it does not say. Used to
 * show that the branches of a oneOf exclude each other.
 */
static int type_bits(struct builder *b, const json_t *s, int depth)
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
			bits |= type_matches(names[i], v) << i;
		return bits;
	}
	if (!t && json_is_array(json_object_get(s, "enum"))) {
		json_array_foreach(json_object_get(s, "enum"), i, e)
			for (size_t k = 0; k < 6; k++)
				bits |= type_matches(names[k], e) << k;
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

static gnode choice(struct builder *b, const json_t *s, const char *key)
{
	const char *const known[] = { key, "type", NULL };
	const json_t *list = json_object_get(s, key);
	gnode n = gast_never(&b->g);
	size_t count = json_array_size(list), at;

	if (only_known(b, s, known))
		return n;
	if (!count)
		return refuse(b, -EINVAL, "\"%s\" must be a non-empty array", key);
	/* Each is compared with each. */
	if (!strcmp(key, "oneOf") && count > MAX_ONE_OF)
		return refuse(b, -EOPNOTSUPP, "\"oneOf\" of more than %u branches cannot be enforced; use \"anyOf\" or \"enum\"", MAX_ONE_OF);
	for (size_t i = 0; !strcmp(key, "oneOf") && i < count; i++) {
		for (size_t k = i + 1; k < count; k++) {
			const json_t *x = json_array_get(list, i), *y = json_array_get(list, k);

			if ((type_bits(b, x, 0) & type_bits(b, y, 0)) && !differ_by_constant(x, y) && share_a_value(x, y))
				return refuse(b, -EOPNOTSUPP, "\"oneOf\" branches %zu and %zu may both match; make them differ in type or in a required constant, or use \"anyOf\"", i, k);
		}
	}
	for (size_t i = 0; i < count; i++) {
		const json_t *branch = json_array_get(list, i), *types = json_object_get(s, "type");
		char place[48];

		if (types && type_bits(b, s, 0) != (type_bits(b, branch, 0) | type_bits(b, s, 0)))
			return refuse(b, -EOPNOTSUPP, "\"type\" beside \"%s\" is enforced only where each branch repeats it", key);
		snprintf(place, sizeof(place), "%s/%zu", key, i);
		at = path_enter(b, place);
		n = alt(b, n, value(b, branch));
		path_leave(b, at);
	}
	return n;
}

static gnode typed(struct builder *b, const json_t *s, const char *type)
{
	if (!strcmp(type, "string"))
		return string(b, s);
	if (!strcmp(type, "integer") || !strcmp(type, "number"))
		return numeric(b, s, type[0] == 'i');
	if (!strcmp(type, "boolean"))
		return alt(b, lit(b, "true"), lit(b, "false"));
	if (!strcmp(type, "null"))
		return lit(b, "null");
	if (!strcmp(type, "array"))
		return array(b, s);
	if (!strcmp(type, "object"))
		return object(b, s);
	return refuse(b, -EINVAL, "\"type\": \"%.40s\" is not a JSON type", type);
}

/* What type the keywords speak of, where "type" is not given. */
static const char *implied_type(const json_t *s)
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

static gnode value_inner(struct builder *b, const json_t *s)
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
		return any_value(b);
	if (json_is_false(s))
		return refuse(b, -EOPNOTSUPP, "the schema false admits nothing");
	if (!json_is_object(s))
		return refuse(b, -EINVAL, "a schema must be an object or a boolean");
	if (json_object_get(s, "$ref"))
		return reference(b, s);
	if (json_object_get(s, "enum") || json_object_get(s, "const"))
		return enumeration(b, s);
	if (json_object_get(s, "anyOf"))
		return choice(b, s, "anyOf");
	if (json_object_get(s, "oneOf"))
		return choice(b, s, "oneOf");
	if (all) {
		static const char *const only_all[] = { "allOf", NULL };

		if (only_known(b, s, only_all))
			return gast_never(&b->g);
		if (json_array_size(all) != 1)
			return refuse(b, -EOPNOTSUPP, "\"allOf\" with more than one schema cannot be enforced; merge them into one");
		return value(b, json_array_get(all, 0));
	}
	if (only_known(b, s, known))
		return gast_never(&b->g);
	if (json_is_string(t))
		return typed(b, s, json_string_value(t));
	if (json_is_array(t)) {
		if (!json_array_size(t))
			return refuse(b, -EINVAL, "\"type\" must not be an empty array");
		n = gast_never(&b->g);
		json_array_foreach((json_t *)t, i, v) {
			if (!json_is_string(v))
				return refuse(b, -EINVAL, "\"type\" must hold strings");
			n = alt(b, n, typed(b, s, json_string_value(v)));
		}
		return n;
	}
	if (t)
		return refuse(b, -EINVAL, "\"type\" must be a string or an array of strings");
	hint = implied_type(s);
	/* Without "type" other types would pass unchecked; one type is less than that, never more. */
	return hint ? typed(b, s, hint) : any_value(b);
}

static gnode value(struct builder *b, const json_t *s)
{
	gnode n;

	if (b->rc)
		return gast_never(&b->g);
	if (++b->depth > MAX_DEPTH) {
		b->depth--;
		return refuse(b, -E2BIG, "the schema is nested more than %d deep", MAX_DEPTH);
	}
	n = value_inner(b, s);
	b->depth--;
	return n;
}

/* -- entry points -------------------------------------------------------------- */

static void builder_init(struct builder *b, struct hearth_err *err)
{
	memset(b, 0, sizeof(*b));
	b->err = err;
	gast_init(&b->g);
	gast_rule_add(&b->g, "root", 4);     /* rule 0, so that 0 can mean "not made yet" elsewhere */
}

static int builder_finish(struct builder *b, gnode root, struct grammar **ret, struct hearth_err *err)
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
	struct builder b;

	builder_init(&b, err);
	b.doc = schema;
	return builder_finish(&b, value(&b, schema), ret, err);
}

int grammar_json_object(struct grammar **ret, struct hearth_err *err)
{
	struct builder b;

	builder_init(&b, err);
	return builder_finish(&b, any_object(&b), ret, err);
}

int grammar_from_tools(const json_t *tools, const char *only, bool parallel, bool after_marker,
		       struct grammar **ret, struct hearth_err *err)
{
	struct builder b;
	gnode calls, call, close;
	bool found = false;
	size_t i, at;
	json_t *t;

	builder_init(&b, err);
	if (!json_is_array(tools) || !json_array_size(tools))
		refuse(&b, -EINVAL, "\"tools\" must be a non-empty array");
	calls = gast_never(&b.g);
	json_array_foreach((json_t *)tools, i, t) {
		const json_t *f = json_object_get(t, "function"), *name, *params;
		char place[48];

		if (!f)
			f = t;
		name = json_object_get(f, "name");
		params = json_object_get(f, "parameters");
		snprintf(place, sizeof(place), "tools/%zu", i);
		at = path_enter(&b, place);
		if (!json_is_string(name)) {
			refuse(&b, -EINVAL, "a tool has no name");
			break;
		}
		if (!only || !strcmp(only, json_string_value(name))) {
			size_t at2 = path_enter(&b, "parameters");
			gnode args;

			found = true;
			b.doc = params;
			if (params && !json_is_object(params) && !json_is_null(params))
				refuse(&b, -EINVAL, "\"parameters\" must be a schema of an object, not true, false or anything else");
			args = params && json_object_size(params) ? value(&b, params) : lit(&b, "{}");
			path_leave(&b, at2);
			call = seq(&b, constant(&b, name), seq(&b, with_space(&b, ","),
				   seq(&b, lit(&b, "\"arguments\""), seq(&b, with_space(&b, ":"), args))));
			calls = alt(&b, calls, call);
		}
		path_leave(&b, at);
	}
	if (!b.rc && only && !found)
		refuse(&b, -ENOENT, "no tool is named \"%.80s\"", only);
	close = lit(&b, "}\n</tool_call>");
	call = seq(&b, lit(&b, "\n{\"name\""), seq(&b, with_space(&b, ":"), seq(&b, calls, close)));
	if (parallel) {
		uint32_t rule = gast_rule_add(&b.g, "call", 4);

		gast_rule_set(&b.g, rule, call);
		call = seq(&b, gast_ref(&b.g, rule),
			   gast_repeat(&b.g, seq(&b, lit(&b, "\n<tool_call>"), gast_ref(&b.g, rule)), 0, UINT32_MAX));
	}
	if (!after_marker)
		call = seq(&b, lit(&b, "<tool_call>"), call);
	return builder_finish(&b, call, ret, err);
}
