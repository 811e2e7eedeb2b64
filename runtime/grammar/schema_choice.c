// SPDX-License-Identifier: MIT
/* What leads to other schemas: $ref, anyOf, oneOf. The branches of oneOf must be seen to exclude each other. */
#include "grammar/schema_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ONE_OF 500u

/* -- $ref ---------------------------------------------------------------------- */

/* A JSON pointer's index: digits without a leading zero; else one that no array has. */
static size_t array_index(const char *part)
{
	const size_t n = strlen(part);

	return n && n < 10 && strspn(part, "0123456789") == n && (n == 1 || part[0] != '0') ? strtoul(part, NULL, 10) : SIZE_MAX;
}

const json_t *schema_resolve(struct schema_builder *b, const char *ref)
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
		at = json_is_array(at) ? json_array_get(at, array_index(part)) : json_object_get(at, part);
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
	target = ref ? schema_resolve(b, ref) : NULL;
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

gnode schema_choice(struct schema_builder *b, const json_t *s, const char *key)
{
	const char *const known[] = { key, "type", NULL };
	const json_t *list = json_object_get(s, key);
	const int own = schema_type_bits(s);
	const bool one = !strcmp(key, "oneOf");
	gnode n = gast_never(&b->g);
	size_t count = json_array_size(list), at, made = 0;
	struct schema_branch *x;

	if (schema_only_known(b, s, known))
		return n;
	if (!count)
		return schema_refuse(b, -EINVAL, "\"%s\" must be a non-empty array", key);
	/* Each is compared with each. */
	if (one && count > MAX_ONE_OF)
		return schema_refuse(b, -EOPNOTSUPP, "\"oneOf\" of more than %u branches cannot be enforced; use \"anyOf\" or \"enum\"", MAX_ONE_OF);
	x = calloc(count, sizeof(*x));
	if (!x)
		return schema_refuse(b, -ENOMEM, "out of memory");
	for (; made < count && !b->rc; made++)
		if (schema_branch_open(b, json_array_get(list, made), &x[made]))
			schema_refuse(b, -ENOMEM, "out of memory");
	if (one && !b->rc)
		schema_exclusive(b, x, count);
	for (size_t i = 0; i < count && !b->rc; i++) {
		if (x[i].makes & ~own) {
			schema_refuse(b, -EOPNOTSUPP, "\"type\" beside \"%s\" is enforced only where each branch repeats it", key);
			break;
		}
		at = schema_enter_item(b, key, i);
		n = alt(b, n, schema_value(b, json_array_get(list, i)));
		schema_leave(b, at);
	}
	while (made--)
		schema_branch_close(&x[made]);
	free(x);
	return n;
}
