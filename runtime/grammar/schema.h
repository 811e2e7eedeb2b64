/* SPDX-License-Identifier: MIT */
/*
 * JSON Schema (draft 2020-12, the part that can be enforced) to a grammar.
 *
 * Every text the grammar admits is valid JSON and validates against the
 * schema. The grammar may admit less than the schema (properties come in the
 * schema's order, numbers have bounded length, at most one space after : and
 * ,), never more. A keyword that cannot be enforced is refused by name and
 * place; annotations (title, description, default, examples, ...) are ignored.
 */
#ifndef HEARTH_GRAMMAR_SCHEMA_H
#define HEARTH_GRAMMAR_SCHEMA_H

#include <jansson.h>

#include "grammar/grammar.h"

/*
 * A text of @schema (true, false or an object). -EOPNOTSUPP: a keyword or a
 * value that cannot be enforced, named with its JSON pointer; -EINVAL: not a
 * schema; -E2BIG, -ENOMEM.
 */
int grammar_from_schema(const json_t *schema, struct grammar **ret, struct hearth_err *err);

/* Any JSON object (response_format json_object). */
int grammar_json_object(struct grammar **ret, struct hearth_err *err);

/*
 * Tool calls in the Hermes form, from OpenAI's `tools` array:
 *   <tool_call>\n{"name": "NAME", "arguments": {...}}\n</tool_call>
 * one, or with @parallel several with a newline between. @only, when not NULL,
 * is the one tool that may be called. @after_marker: the text begins behind
 * "<tool_call>", for a grammar entered when the model emits that marker.
 * -ENOENT: @only names none of the tools.
 */
int grammar_from_tools(const json_t *tools, const char *only, bool parallel, bool after_marker,
		       struct grammar **ret, struct hearth_err *err);

/*
 * Either a text of @schema (NULL: any JSON object), or calls as of
 * grammar_from_tools() from the marker on. The first byte tells which: no JSON
 * begins with '<'.
 */
int grammar_from_tools_or_schema(const json_t *tools, bool parallel, const json_t *schema, struct grammar **ret, struct hearth_err *err);

#endif
