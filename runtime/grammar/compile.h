/* SPDX-License-Identifier: MIT */
/* Inside of a compiled grammar: what compile*.c make and match*.c walk. */
#ifndef HEARTH_GRAMMAR_COMPILE_H
#define HEARTH_GRAMMAR_COMPILE_H

#include <stdatomic.h>

#include "grammar/grammar.h"

enum gedge_kind { GEDGE_EPS, GEDGE_BYTES, GEDGE_CALL };

struct gedge {
	uint32_t to;             /* where it leads; for a call, where it returns */
	uint32_t next;           /* next edge of the same state, or GEDGE_NONE */
	uint32_t rule;           /* of a call */
	uint8_t kind, lo, hi;
};
#define GEDGE_NONE UINT32_MAX
#define NEED_NONE  (1u << 30)    /* two of them can be added */

struct gstate {
	uint32_t edges;          /* first edge, or GEDGE_NONE */
	uint32_t need;           /* bytes, at least, to the end of the rule; NEED_NONE: it has none */
	uint32_t best;           /* edge on the way there; GEDGE_NONE: this is the end */
	uint8_t is_end;          /* end of a rule: return to the caller */
	uint8_t only_end;        /* ... and has no edge: a call that returns here is a tail call */
};

struct grammar {
	atomic_uint refs;
	struct gstate *states;
	struct gedge *edges;
	uint32_t *rule_start;    /* per rule */
	uint32_t n_states, cap_states, n_edges, cap_edges, n_rules;
	uint32_t root;           /* state to start from */
};

/* compile_check.c: what grammar_compile() promises to refuse with -EINVAL. */
int gcompile_check(const struct gast *a, struct hearth_err *err);
/* compile_way.c: fills .need and .best of every state. -ENOMEM. */
int gcompile_ways(struct grammar *g);

#endif
