/* SPDX-License-Identifier: MIT */
/*
 * Inside of a head: the place in the file that is read, and its parts.
 *
 * Memory follows the bytes that were really read, never a count that the file
 * claims: tables grow by doubling as entries arrive. The bounds on counts only
 * make a sentence out of what would otherwise take long.
 */
#ifndef HEARTH_GGUF_HEAD_PRIV_H
#define HEARTH_GGUF_HEAD_PRIV_H

#include "gguf/head.h"

struct cursor {
	struct window *w;
	uint64_t pos;
	struct hearth_err *err;
	struct quoted in;        /* what is being read: key "x", tensor "y" */
	const char *kind;
};

/* head.c */

/* Gives the next @n bytes and steps over them; @what names them in a sentence. */
int head_take(struct cursor *c, uint64_t n, const char *what, const uint8_t **ret);
int head_take_u32(struct cursor *c, const char *what, uint32_t *ret);
int head_take_u64(struct cursor *c, const char *what, uint64_t *ret);
int head_take_str(struct cursor *c, const char *what, struct gguf_str *ret);
/* The sentence of a file that ends before @n bytes of @what. */
int head_short(struct cursor *c, uint64_t n, const char *what);

/* head_keys.c: the @n keys that the file claims. */
int head_take_keys(struct cursor *c, uint64_t n, struct head *h);
/* head_tensors.c: the @n tensors that the file claims. */
int head_take_tensors(struct cursor *c, uint64_t n, struct head *h);

#endif
