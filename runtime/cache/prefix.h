/* SPDX-License-Identifier: MIT */
/*
 * Prefixes that several conversations share. A page of KV depends on nothing
 * but the tokens from the beginning up to its end, so full pages are kept by
 * the hash of those tokens (checked token by token, a hash alone is never
 * believed) and given to any session whose prompt begins the same way. The
 * last page of a match may be used in part: whoever then writes to it takes a
 * copy first (kv.h).
 *
 * The cache holds one reference on each of its pages. Pages that nobody else
 * holds are what it can give back, least recently used first, a child before
 * its parent.
 *
 * Guarded by its owner.
 */
#ifndef HEARTH_CACHE_PREFIX_H
#define HEARTH_CACHE_PREFIX_H

#include <stddef.h>
#include <stdint.h>

#include "cache/kv.h"

struct prefix;

size_t prefix_host_bytes(uint32_t pages);
int prefix_open(struct kv *kv, struct prefix **ret, struct hearth_err *err);
void prefix_close(struct prefix *p);   /* gives its pages back; NULL is fine */

/*
 * The longest prefix of token[0..n) that is kept, in tokens; the pages that
 * hold it are in ret_page[0..kv_pages_for(result)) with a reference each for
 * the caller. At most @n tokens.
 */
uint32_t prefix_find(struct prefix *p, const int32_t *token, uint32_t n, uint32_t *ret_page);

/* How many tokens prefix_find() would give. */
uint32_t prefix_peek(struct prefix *p, const int32_t *token, uint32_t n);

/* Keeps the full pages of @s that are not kept yet. */
void prefix_keep(struct prefix *p, const struct kv_seq *s);

/* Gives back up to @pages pages that nobody else holds; returns how many. */
uint32_t prefix_shed(struct prefix *p, uint32_t pages);

/* Pages that only the cache holds. */
uint32_t prefix_idle(const struct prefix *p);

#endif
