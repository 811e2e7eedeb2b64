/* SPDX-License-Identifier: MIT */
/*
 * Grammars that were asked for lately, compiled, and the matchers that served
 * them: clients send the same tools with every request, so the second one
 * finds its automaton and its masks made. What idle matchers hold is bounded.
 */
#ifndef HEARTH_SERVER_GRAMMARS_H
#define HEARTH_SERVER_GRAMMARS_H

#include "grammar/grammar.h"

struct grammars;

/* @v must outlive it. */
int grammars_open(const struct gvocab *v, struct grammars **ret);
void grammars_close(struct grammars *c);         /* NULL is fine; no matcher may be out */

/*
 * The grammar that was put under @key, with a reference for the caller; NULL
 * when there is none. @key is all that the grammar was made from.
 */
struct grammar *grammars_get(struct grammars *c, const char *key, size_t n);
/* Keeps @g (its own reference) for the next. Without memory it is not kept. */
void grammars_put(struct grammars *c, const char *key, size_t n, struct grammar *g);

/* A matcher at the beginning of @g: one that was given back, or a new one. */
int grammars_match(struct grammars *c, struct grammar *g, struct gmatch **ret);
void grammars_give(struct grammars *c, struct grammar *g, struct gmatch *m);   /* NULL is fine */

/* Frees all idle matchers; returns about how many bytes that was. */
size_t grammars_shed(struct grammars *c);
/* Bytes of what is kept, about. */
size_t grammars_bytes(struct grammars *c);

#endif
