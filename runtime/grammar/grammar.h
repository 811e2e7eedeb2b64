/* SPDX-License-Identifier: MIT */
/*
 * Grammars that a model's output cannot leave.
 *
 *   grammar  what is allowed: rules over bytes, from GBNF text or JSON Schema;
 *            immutable once made, shared by reference
 *   gvocab   the model's tokens as a trie of bytes; made once per tokenizer
 *   gmatch   one position in one grammar: the tokens allowed next as a bit
 *            mask, and a step forward for the one that was taken
 *
 * A gmatch turns its grammar into a deterministic automaton as it goes and
 * keeps what it made (states, masks), so a second generation with the same
 * gmatch pays only for what it meets first: keep it and gmatch_restart() it.
 * A gmatch belongs to one thread at a time; grammar and gvocab to any number.
 *
 * It fails closed: what cannot be enforced is refused when the grammar is
 * made, and when a limit is hit during a match no token is allowed.
 */
#ifndef HEARTH_GRAMMAR_GRAMMAR_H
#define HEARTH_GRAMMAR_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "grammar/ast.h"

struct grammar;
struct gvocab;
struct gmatch;

/*
 * Compiles @ast (left unchanged; still the caller's). -EINVAL: a rule that is
 * used and not defined, left recursion, or a rule that can never end; -E2BIG:
 * more than a million states; -ENOMEM. The sentence names the rule.
 */
int grammar_compile(const struct gast *ast, struct grammar **ret, struct hearth_err *err);
struct grammar *grammar_ref(struct grammar *g);
void grammar_unref(struct grammar *g);          /* NULL is fine */

/*
 * @bytes(@arg, id, &len) gives the bytes of token @id, or NULL (or len 0) for
 * one that may never appear inside a grammar (control tokens). @eog lists the
 * tokens that end a generation: allowed exactly where the grammar may end.
 * Copies what it needs. -EINVAL for a token over 4096 bytes, -ENOMEM.
 */
int gvocab_create(uint32_t n_tokens, const char *(*bytes)(void *arg, uint32_t id, size_t *len),
		  void *arg, const uint32_t *eog, size_t n_eog,
		  struct gvocab **ret, struct hearth_err *err);
void gvocab_free(struct gvocab *v);
uint32_t gvocab_size(const struct gvocab *v);

/* Takes a reference on @g; @v must outlive the match. */
int gmatch_create(struct grammar *g, const struct gvocab *v, struct gmatch **ret);
void gmatch_free(struct gmatch *m);
void gmatch_restart(struct gmatch *m);

/*
 * The allowed tokens, bit id%32 of word id/32, (n_tokens + 31) / 32 words,
 * valid until the next call on @m. NULL only when a limit was hit or memory
 * ran out (gmatch_status() says which): then nothing is allowed.
 */
const uint32_t *gmatch_mask(struct gmatch *m);

/*
 * The same, without the tokens after which @left - 1 more, one of them to end
 * it, might not be enough to complete the text: so it is complete when the last
 * one is taken. Where it is too late for that already, as gmatch_mask().
 */
const uint32_t *gmatch_mask_within(struct gmatch *m, uint32_t left);
/*
 * Works out the masks where the first @choices are to be made on the shortest
 * way, and goes back to the beginning: what cannot be followed there is known
 * before anything is made of it. -E2BIG, -ENOMEM.
 */
int gmatch_probe(struct gmatch *m, uint32_t choices);
bool gmatch_mask_known(const struct gmatch *m); /* gmatch_mask() has it made already */
/* Whether that mask has @token; a no may be wrong, a yes is not. */
bool gmatch_allows(struct gmatch *m, uint32_t token, uint32_t left);
/* Tokens that complete the text for certain, the one that ends it not counted; UINT32_MAX: not known. */
uint32_t gmatch_tokens_to_end(struct gmatch *m);

/* Steps over one token. -EINVAL when the grammar forbids it: nothing changed. */
int gmatch_accept(struct gmatch *m, uint32_t token);
/* Steps over bytes, which need not end where a token does. Same rule. */
int gmatch_accept_bytes(struct gmatch *m, const char *s, size_t len);

bool gmatch_may_end(struct gmatch *m);          /* the text so far is complete */
bool gmatch_must_end(struct gmatch *m);         /* ... and nothing can follow */
int gmatch_status(const struct gmatch *m);      /* 0, -ENOMEM, -E2BIG */
size_t gmatch_bytes(const struct gmatch *m);    /* about what it holds in memory */

/*
 * The bytes that must come next whatever the model says, for jump-forward:
 * writes at most @cap and returns how many (0: the model has a choice, or the
 * end is possible). Does not step.
 */
size_t gmatch_forced(struct gmatch *m, char *out, size_t cap);
/* The same, but where a space may follow ':' or ',' it is taken to be there: a guess. */
size_t gmatch_likely(struct gmatch *m, char *out, size_t cap);

#endif
