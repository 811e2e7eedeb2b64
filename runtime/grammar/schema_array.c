// SPDX-License-Identifier: MIT
/* Arrays: items, prefixItems, how many. */
#include "grammar/schema_priv.h"

#include <errno.h>

/* What stands in several places is a rule, which is wired once: else arrays in arrays double with each. */
static gnode once(struct schema_builder *b, gnode n)
{
	uint32_t rule = gast_rule_add(&b->g, NULL, 0);

	gast_rule_set(&b->g, rule, n);
	return gast_ref(&b->g, rule);
}

gnode schema_array(struct schema_builder *b, const json_t *s)
{
	const json_t *items = json_object_get(s, "items"), *prefix = json_object_get(s, "prefixItems");
	const json_t *unique = json_object_get(s, "uniqueItems");
	uint32_t min = 0, max = UINT32_MAX, fixed = 0;
	gnode item = 0, body, comma;
	bool open = true;
	size_t at;

	if (schema_count(b, s, "minItems", &min) || schema_count(b, s, "maxItems", &max))
		return gast_never(&b->g);
	if (min > max)
		return schema_refuse(b, -EINVAL, "\"minItems\" is over \"maxItems\": no array satisfies the schema");
	if (json_is_true(unique) && max > 1)
		return schema_refuse(b, -EOPNOTSUPP, "keyword \"uniqueItems\" cannot be enforced");
	if (json_is_array(items))
		return schema_refuse(b, -EOPNOTSUPP, "\"items\" as an array is an older draft; use \"prefixItems\"");
	if (prefix && !json_is_array(prefix))
		return schema_refuse(b, -EINVAL, "\"prefixItems\" must be an array");
	if (json_is_false(items))
		open = false;
	if (open) {
		at = schema_enter(b, "items");
		item = once(b, items ? schema_value(b, items) : schema_any_value(b));
		schema_leave(b, at);
	}
	fixed = (uint32_t)json_array_size(prefix);
	if (!open && max > fixed)
		max = fixed;
	if (min > max)
		return schema_refuse(b, -EINVAL, "\"minItems\" asks for more items than the schema has");
	comma = schema_spaced(b, ",");
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
		gnode one;

		at = schema_enter_item(b, "prefixItems", i);
		one = schema_value(b, json_array_get(prefix, i));
		schema_leave(b, at);
		body = seq(b, i ? seq(b, comma, one) : one, body);
		if (i >= min)
			body = opt(b, body);
	}
	return seq(b, lit(b, "["), seq(b, body, lit(b, "]")));
}
