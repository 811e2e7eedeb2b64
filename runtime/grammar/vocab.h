/* SPDX-License-Identifier: MIT */
#ifndef HEARTH_GRAMMAR_VOCAB_H
#define HEARTH_GRAMMAR_VOCAB_H

#include "grammar/grammar.h"

/*
 * Plain: whole characters that JSON's strings hold as they are, none of them a
 * control sign, a quote or a backslash; at most GVOCAB_PLAIN of them. Most tokens
 * are. Where every such character leads to the same place they are allowed or
 * forbidden by their number of characters alone, without a walk.
 */
#define GVOCAB_PLAIN 16u

/* Pre-order: a node's first child is the next node, its next sibling is at skip. */
struct gvocab_node {
	uint32_t skip;           /* index of the first node not below this one */
	uint32_t first, count;   /* ids[first .. first + count): tokens that end here */
	uint16_t depth;
	uint8_t byte;
};

struct gvocab {
	uint32_t n_tokens, words, n_nodes, n_rest;
	uint32_t n_bytes;        /* single bytes that are tokens: of 256, any text can be written */
	struct gvocab_node *nodes;
	struct gvocab_node *rest; /* of the tokens that are not plain: the same ids */
	uint32_t *ids;           /* sorted by the tokens' bytes */
	uint32_t *plain;         /* [GVOCAB_PLAIN + 1][words]: plain ones of at most so many characters */
	uint32_t *eog;
	size_t n_eog;
	uint32_t *tok_start;     /* [n_tokens + 1]: bytes of token i in tok_bytes */
	char *tok_bytes;
};

#endif
