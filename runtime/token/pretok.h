/* SPDX-License-Identifier: MIT */
/*
 * Inside of token/: cutting text into the words that BPE merges within. A
 * vocabulary is only right with the cut that it was trained with, so an
 * unknown name is refused.
 */
#ifndef HEARTH_TOKEN_PRETOK_H
#define HEARTH_TOKEN_PRETOK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct pretok;

/* @name: tokenizer.ggml.pre. */
int pretok_open(const char *name, struct pretok **ret, struct hearth_err *err);
void pretok_free(struct pretok *p);

bool pretok_whole_words(const struct pretok *p); /* a word that is a token is not merged */
bool pretok_wants_bos(const struct pretok *p);   /* where the file does not say */

/* Room to match in; start with { 0 }, one for each thread. */
struct pretok_work {
	void *data, *context, *stack;
};
void pretok_work_done(struct pretok_work *w);

/*
 * Calls @word for each word, in order; together they are the text. Stops with
 * what @word returns when that is negative; -ENOMEM.
 */
int pretok_split(const struct pretok *p, struct pretok_work *work, const char *text, size_t n,
		 int (*word)(void *ctx, const char *w, size_t n), void *ctx);

#endif
