/* SPDX-License-Identifier: MIT */
#ifndef HEARTH_GRAMMAR_NUMBER_H
#define HEARTH_GRAMMAR_NUMBER_H

#include <stdbool.h>

#include "grammar/ast.h"

struct number_bounds {
	bool integer, has_min, has_max, min_open, max_open;
	double min, max;             /* meaningful where has_* is set */
	double multiple;             /* 0: none */
};

/* Any JSON number of at most 15 integer and 15 decimal digits and a two-digit exponent. */
gnode number_any(struct gast *g);

/*
 * Numbers inside the bounds, without an exponent. For a number with bounds,
 * up to 6 decimals. -EOPNOTSUPP or -EINVAL with the reason in @why: bounds
 * that no number satisfies, multiples that cannot be enumerated.
 */
int number_node(struct gast *g, const struct number_bounds *nb, gnode *ret, char *why, size_t why_len);

#endif
