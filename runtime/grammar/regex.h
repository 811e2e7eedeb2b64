/* SPDX-License-Identifier: MIT */
#ifndef HEARTH_GRAMMAR_REGEX_H
#define HEARTH_GRAMMAR_REGEX_H

#include "grammar/ast.h"

/*
 * A JSON Schema `pattern` as a tree over the bytes of a JSON string's inside:
 * what the pattern matches, escaped as JSON escapes it. Unanchored ends allow
 * any characters around, as the standard says. Understood: literals, ., [..],
 * \d \D \w \W \s \S \t \n \r \f \v \xHH \uHHHH and escaped punctuation, groups
 * (also (?:..)), |, * + ? {m} {m,} {m,n} (greedy and lazy are one here), ^ and
 * $ at the ends of the whole pattern. -EOPNOTSUPP with the reason for
 * look-around, back references, \b, \p and ^ or $ elsewhere.
 */
int regex_to_json_string(struct gast *g, const char *pattern, size_t len, gnode *ret, struct hearth_err *err);

/* The code points of @ranges (sorted, disjoint) as they stand inside a JSON string. */
gnode json_string_class(struct gast *g, const struct gast_range *ranges, size_t n);

#endif
