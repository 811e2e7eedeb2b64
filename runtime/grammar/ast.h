/* SPDX-License-Identifier: MIT */
/*
 * The shape that both grammar front ends (GBNF text, JSON Schema) build and
 * the automaton compiles: rules of trees over bytes. Nodes live in one arena
 * and are named by index, so that nothing is freed piecemeal.
 */
#ifndef HEARTH_GRAMMAR_AST_H
#define HEARTH_GRAMMAR_AST_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Hard limits: a grammar over them is refused (-E2BIG), never cut. */
#define GAST_MAX_NODES  (1u << 20)
#define GAST_MAX_RULES  8192u
#define GAST_MAX_REPEAT 100000u

enum gast_kind {
	GAST_EMPTY,   /* matches the empty string */
	GAST_NEVER,   /* matches nothing */
	GAST_BYTES,   /* one byte in [lo, hi] */
	GAST_SEQ,     /* a then b */
	GAST_ALT,     /* a or b */
	GAST_REPEAT,  /* a, lo..hi times; hi UINT32_MAX: no upper bound */
	GAST_REF,     /* rule number lo */
};

typedef uint32_t gnode;          /* index of a node in struct gast */

struct gast_node {
	uint8_t kind;
	gnode a, b;
	uint32_t lo, hi;
};

struct gast_rule {
	char *name;              /* owned; NULL for a rule without a name */
	gnode body;
	uint8_t defined;
};

/* A range of Unicode code points, inclusive. */
struct gast_range {
	uint32_t lo, hi;
};

struct gast {
	struct gast_node *nodes;
	struct gast_rule *rules;
	uint32_t n_nodes, cap_nodes, n_rules, cap_rules;
	uint32_t root;           /* rule to start from */
	int oom;                 /* sticky -ENOMEM or -E2BIG; see gast_status() */
};

void gast_init(struct gast *g);
void gast_done(struct gast *g);

/*
 * The constructors never fail on their own: when memory or a limit runs out
 * they return a GAST_NEVER node and set a sticky state, which the front end
 * reads once at its end. Returns 0, -ENOMEM or -E2BIG.
 */
int gast_status(const struct gast *g);

gnode gast_empty(struct gast *g);
gnode gast_never(struct gast *g);
gnode gast_bytes(struct gast *g, uint8_t lo, uint8_t hi);
gnode gast_seq(struct gast *g, gnode a, gnode b);
gnode gast_alt(struct gast *g, gnode a, gnode b);
gnode gast_repeat(struct gast *g, gnode a, uint32_t min, uint32_t max);
gnode gast_ref(struct gast *g, uint32_t rule);
gnode gast_lit(struct gast *g, const char *s, size_t len);
/*
 * Any of @words (none empty), which it sorts. They are told apart byte by byte:
 * where many begin alike a match is in one place, not in as many.
 */
gnode gast_words(struct gast *g, const char **words, size_t n);
/* Any code point of the sorted, disjoint @ranges, as UTF-8 (no surrogates). */
gnode gast_class(struct gast *g, const struct gast_range *ranges, size_t n);

/*
 * Adds a rule named @name (copied; may be NULL) without a body. Returns its
 * number, or 0 with the sticky state set when it cannot be had.
 */
uint32_t gast_rule_add(struct gast *g, const char *name, size_t len);
void gast_rule_set(struct gast *g, uint32_t rule, gnode body);

/*
 * Sorts and merges ranges in place; returns how many remain. With @negate the
 * complement over 0..0x10FFFF is written instead: @ranges must have room for
 * n + 1 entries.
 */
size_t gast_ranges_normalise(struct gast_range *ranges, size_t n, int negate);

#endif
