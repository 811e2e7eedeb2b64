// SPDX-License-Identifier: MIT
/* Tool calls, from OpenAI's `tools`. */
#include "grammar/schema_priv.h"

#include <errno.h>
#include <string.h>

/* What stands behind the first marker. */
static gnode tool_calls(struct schema_builder *b, const json_t *tools, const char *only, bool parallel)
{
	gnode calls, call, close;
	bool found = false;
	size_t i, at;
	json_t *t;

	if (!json_is_array(tools) || !json_array_size(tools))
		return schema_refuse(b, -EINVAL, "\"tools\" must be a non-empty array");
	calls = gast_never(&b->g);
	json_array_foreach((json_t *)tools, i, t) {
		const json_t *f = json_object_get(t, "function"), *name, *params;

		if (!f)
			f = t;
		name = json_object_get(f, "name");
		params = json_object_get(f, "parameters");
		at = schema_enter_item(b, "tools", i);
		if (!json_is_string(name)) {
			schema_refuse(b, -EINVAL, "a tool has no name");
			break;
		}
		if (!only || !strcmp(only, json_string_value(name))) {
			size_t at2 = schema_enter(b, "parameters");
			gnode args;

			found = true;
			b->doc = params;
			if (params && !json_is_object(params) && !json_is_null(params))
				schema_refuse(b, -EINVAL, "\"parameters\" must be a schema of an object, not true, false or anything else");
			args = params && json_object_size(params) ? schema_value(b, params) : lit(b, "{}");
			schema_leave(b, at2);
			call = seq(b, schema_constant(b, name), seq(b, schema_spaced(b, ","),
				   seq(b, lit(b, "\"arguments\""), seq(b, schema_spaced(b, ":"), args))));
			calls = alt(b, calls, call);
		}
		schema_leave(b, at);
	}
	if (!b->rc && only && !found)
		schema_refuse(b, -ENOENT, "no tool is named \"%.80s\"", only);
	close = lit(b, "}\n</tool_call>");
	call = seq(b, lit(b, "\n{\"name\""), seq(b, schema_spaced(b, ":"), seq(b, calls, close)));
	if (parallel) {
		uint32_t rule = gast_rule_add(&b->g, "call", 4);

		gast_rule_set(&b->g, rule, call);
		call = seq(b, gast_ref(&b->g, rule),
			   gast_repeat(&b->g, seq(b, lit(b, "\n<tool_call>"), gast_ref(&b->g, rule)), 0, UINT32_MAX));
	}
	return call;
}

int grammar_from_tools(const json_t *tools, const char *only, bool parallel, bool after_marker,
		       struct grammar **ret, struct hearth_err *err)
{
	struct schema_builder b;
	gnode calls;

	schema_builder_init(&b, err);
	calls = tool_calls(&b, tools, only, parallel);
	if (!after_marker)
		calls = seq(&b, lit(&b, "<tool_call>"), calls);
	return schema_builder_finish(&b, calls, ret, err);
}

int grammar_from_tools_or_schema(const json_t *tools, bool parallel, const json_t *schema, struct grammar **ret, struct hearth_err *err)
{
	struct schema_builder b;
	gnode calls, text;

	schema_builder_init(&b, err);
	b.doc = schema;
	text = schema ? schema_value(&b, schema) : schema_any_object(&b);
	calls = tool_calls(&b, tools, NULL, parallel);
	return schema_builder_finish(&b, alt(&b, text, seq(&b, lit(&b, "<tool_call>"), calls)), ret, err);
}
