/* SPDX-License-Identifier: MIT */
/* What the tests of schemas ask: which texts one admits, and how one is refused. */
#ifndef HEARTH_SCHEMA_UTIL_H
#define HEARTH_SCHEMA_UTIL_H

#include "grammar/schema.h"
#include "grammar_util.h"

static inline void check(const char *schema, const char *const *yes, const char *const *no)
{
	struct hearth_err err = { 0 };
	json_t *s = json_loads(schema, JSON_DECODE_ANY, NULL);
	struct grammar *g = NULL;

	assert_non_null(s);
	if (grammar_from_schema(s, &g, &err))
		fail_msg("%s: %s", schema, err.text);
	for (; *yes; yes++)
		if (gu_admits(g, *yes) != 1)
			fail_msg("%s should admit %s", schema, *yes);
	for (; *no; no++)
		if (gu_admits(g, *no) != 0)
			fail_msg("%s should not admit %s", schema, *no);
	grammar_unref(g);
	json_decref(s);
}
#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* The schema is refused so, with these words; consumes @s. */
static inline void refused(json_t *s, int rc, const char *why)
{
	struct grammar *g = (void *)0x1;
	struct hearth_err err = { 0 };
	int r;

	assert_non_null(s);
	r = grammar_from_schema(s, &g, &err);
	if (r != rc || g != (void *)0x1 || !strstr(err.text, why))
		fail_msg("%d, \"%s\" instead of %d, \"...%s...\"", r, err.text, rc, why);
	json_decref(s);
}
#define JSON(text) json_loads(text, JSON_DECODE_ANY, NULL)

#endif
