/* SPDX-License-Identifier: MIT */
#ifndef HEARTH_GRAMMAR_VOCAB_H
#define HEARTH_GRAMMAR_VOCAB_H

#include "grammar/grammar.h"

/* Pre-order: a node's first child is the next node, its next sibling is at skip. */
struct gvocab_node {
	uint32_t skip;           /* index of the first node not below this one */
	uint32_t first, count;   /* ids[first .. first + count): tokens that end here */
	uint16_t depth;
	uint8_t byte;
};

struct gvocab {
	uint32_t n_tokens, words, n_nodes;
	struct gvocab_node *nodes;
	uint32_t *ids;           /* sorted by the tokens' bytes */
	uint32_t *eog;
	size_t n_eog;
	uint32_t *tok_start;     /* [n_tokens + 1]: bytes of token i in tok_bytes */
	char *tok_bytes;
};

#endif
