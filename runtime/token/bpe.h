/* SPDX-License-Identifier: MIT */
/*
 * Inside of token/: byte strings with numbers (the vocabulary's tokens, then
 * what merges pass through on their way to one) and the merges between them.
 */
#ifndef HEARTH_TOKEN_BPE_H
#define HEARTH_TOKEN_BPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "token/tokenizer.h"

#define BPE_NONE UINT32_MAX
#define BPE_MAX  4096            /* bytes of a token, and of a merge in the file */

struct bpe_pair {               /* l followed by r becomes to */
	uint32_t l, r, rank, to;
};

struct bpe {
	char *text;              /* all strings, one after the other */
	size_t text_n, text_cap;
	uint32_t *at;            /* [n_syms + 1] offsets into text */
	uint32_t n_syms, cap_syms;
	uint32_t n_tokens;       /* symbols below this are tokens */
	uint8_t *hidden;         /* [n_tokens] 1: never the result of merging */
	uint32_t *slot;          /* open hash by text: symbol + 1 */
	uint32_t slots;
	struct bpe_pair *pair;   /* open hash by (l, r); free: rank BPE_NONE */
	uint32_t pairs, n_pairs;
	uint32_t byte[256]; /* symbol of each single byte; no token where the vocabulary has none */
};

/* Adds the next string; tokens first, all of them, then merges. */
int bpe_add(struct bpe *b, const char *s, size_t n, uint32_t *ret);
/* Makes the tables for the tokens added so far; @hidden is taken over, also on failure. */
int bpe_tokens_done(struct bpe *b, uint8_t *hidden, struct hearth_err *err);
/* The merge of @rank; a pair that is there already keeps its lower rank. */
int bpe_merge(struct bpe *b, const char *l, size_t nl, const char *r, size_t nr, uint32_t rank);
void bpe_done(struct bpe *b);

static inline const char *bpe_text(const struct bpe *b, uint32_t sym, size_t *ret_n)
{
	*ret_n = b->at[sym + 1] - b->at[sym];
	return b->text + b->at[sym];
}

/* The symbol of a string, BPE_NONE when there is none. */
uint32_t bpe_find(const struct bpe *b, const char *s, size_t n, bool also_hidden);

/* Room to work in; start with { 0 }, one for each thread. */
struct bpe_work {
	struct bpe_node *node;
	struct bpe_cand *heap;
	size_t cap;
};

/* Appends the tokens of one word. -ENOMEM; -EILSEQ: a byte that the vocabulary cannot write. */
int bpe_word(const struct bpe *b, struct bpe_work *w, const char *s, size_t n, struct tok_ids *ids);
void bpe_work_done(struct bpe_work *w);

#endif
