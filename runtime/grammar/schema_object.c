// SPDX-License-Identifier: MIT
/* Objects: properties in the order of the schema, and others beside them. */
#include "grammar/schema_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PROPERTIES 2000u     /* of one object */
#define MAX_OPTIONAL 300u        /* of one object: each is a way on from where it begins (match_set.c, MAX_CONFIGS) */

/* Bytes of a bare key but the quote, the backslash and those of @taken (ASCII, a bit each). */
static gnode key_byte_but(struct schema_builder *b, const uint64_t taken[2])
{
	struct gast_range left[0x80 - 0x20 + 1];
	size_t m = 0;

	for (uint32_t c = 0x20; c < 0x80; c++)
		if (!(taken[c / 64] >> c % 64 & 1) && c != '"' && c != '\\')
			left[m++] = (struct gast_range){ c, c };
	/* Only ASCII names are told apart byte by byte; the caller refuses others. */
	left[m++] = (struct gast_range){ 0x80, 0x10ffff };
	m = gast_ranges_normalise(left, m, 0);
	return gast_class(&b->g, left, m);
}

/* A key that leaves the names at a byte which none of them has there; or ends there, where none does. */
static gnode key_leaves(struct schema_builder *b, const uint64_t taken[2], bool may_end, gnode rest)
{
	gnode out = seq(b, key_byte_but(b, taken), rest);

	return may_end ? alt(b, out, gast_empty(&b->g)) : out;
}

/*
 * A key that is none of the named ones, written without escapes (an escape
 * could spell a named key another way): walks @names, which are sorted and
 * alike up to byte @at, as a trie of bytes. It calls itself only where names
 * part, however long they are.
 */
static gnode other_key(struct schema_builder *b, const char *const *names, size_t n, size_t at, gnode rest)
{
	size_t end = at, i, k;
	uint64_t taken[2] = { 0 };
	gnode out;

	/* What the first and the last begin with, all do. */
	while (names[0][end] && names[0][end] == names[n - 1][end])
		end++;
	for (i = 0; i < n; i++)
		taken[(uint8_t)names[i][end] / 64] |= 1ull << (uint8_t)names[i][end] % 64;
	out = key_leaves(b, taken, names[0][end], rest);
	for (i = !names[0][end]; i < n; i = k) {
		for (k = i; k < n && names[k][end] == names[i][end]; k++)
			;
		out = alt(b, out, seq(b, gast_lit(&b->g, &names[i][end], 1), other_key(b, names + i, k - i, end + 1, rest)));
	}
	while (end-- > at) {
		const uint8_t c = (uint8_t)names[0][end];
		const uint64_t one[2] = { c < 64 ? 1ull << c : 0, c < 64 ? 0 : 1ull << (c - 64) };

		out = alt(b, key_leaves(b, one, true, rest), seq(b, gast_lit(&b->g, &names[0][end], 1), out));
	}
	return out;
}

static int by_name(const void *x, const void *y)
{
	return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* Any bare key but @names, which it sorts. */
static gnode any_key_but(struct schema_builder *b, const char **names, size_t n)
{
	static const struct gast_range bare[] = { { 0x20, 0x21 }, { 0x23, 0x5b }, { 0x5d, 0x10ffff } };
	gnode rest = gast_repeat(&b->g, gast_class(&b->g, bare, 3), 0, UINT32_MAX);

	qsort(names, n, sizeof(*names), by_name);
	return n ? other_key(b, names, n, 0, rest) : rest;
}

static bool is_plain_ascii(const char *s)
{
	for (; *s; s++)
		if ((uint8_t)*s >= 0x80 || (uint8_t)*s < 0x20 || *s == '"' || *s == '\\')
			return false;
	return true;
}

gnode schema_object(struct schema_builder *b, const json_t *s)
{
	const json_t *props = json_object_get(s, "properties"), *req = json_object_get(s, "required");
	const json_t *more = json_object_get(s, "additionalProperties");
	size_t n = json_object_size(props), i = 0, at, at2, k;
	const char **names = NULL;
	gnode *pairs = NULL, comma = schema_spaced(b, ","), body, body_first, extra = 0, colon = schema_spaced(b, ":");
	bool *needed = NULL, open = !json_is_false(more);
	const char *name;
	json_t *v;

	if (props && !json_is_object(props))
		return schema_refuse(b, -EINVAL, "\"properties\" must be an object");
	if (req && !json_is_array(req))
		return schema_refuse(b, -EINVAL, "\"required\" must be an array");
	if (!props && !req && (!more || json_is_true(more)))
		return schema_any_object(b);
	/* Each name of "required" is looked for among them. */
	if (n > MAX_PROPERTIES || json_array_size(req) > MAX_PROPERTIES)
		return schema_refuse(b, -EOPNOTSUPP, "more than %u properties cannot be enforced", MAX_PROPERTIES);
	names = calloc(n + 1, sizeof(*names));
	pairs = calloc(n + 1, sizeof(*pairs));
	needed = calloc(n + 1, sizeof(*needed));
	if (!names || !pairs || !needed) {
		schema_refuse(b, -ENOMEM, "out of memory");
		goto out;
	}
	at = schema_enter(b, "properties");
	json_object_foreach((json_t *)props, name, v) {
		json_t *key = json_string(name);

		at2 = schema_enter(b, name);
		names[i] = name;
		pairs[i] = seq(b, schema_constant(b, key), seq(b, colon, schema_value(b, v)));
		json_decref(key);
		schema_leave(b, at2);
		i++;
	}
	schema_leave(b, at);
	json_array_foreach((json_t *)req, k, v) {
		for (i = 0; i < n && (!json_is_string(v) || strcmp(names[i], json_string_value(v))); i++)
			;
		if (i == n) {
			schema_refuse(b, -EOPNOTSUPP, "\"required\" names \"%.60s\", which \"properties\" does not describe",
			       json_is_string(v) ? json_string_value(v) : "(not a string)");
			goto out;
		}
		needed[i] = true;
	}
	for (i = k = 0; i < n; i++)
		k += !needed[i];
	if (k > MAX_OPTIONAL) {
		schema_refuse(b, -EOPNOTSUPP, "%zu optional properties; more than %u cannot be enforced: name some in \"required\"", k, MAX_OPTIONAL);
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
				schema_refuse(b, -EOPNOTSUPP, "\"additionalProperties\" beside the property \"%.60s\" cannot be enforced (its name is not plain ASCII)", names[i]);
				goto out;
			}
		}
		at = schema_enter(b, "additionalProperties");
		extra = more && !json_is_true(more) ? schema_value(b, more) : schema_any_value(b);
		schema_leave(b, at);
		extra = seq(b, schema_quoted(b, any_key_but(b, names, n)), seq(b, colon, extra));
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
