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
 * its parent. Pages that were pinned go after all others.
 *
 * Guarded by its owner.
 */
#ifndef HEARTH_CACHE_PREFIX_H
#define HEARTH_CACHE_PREFIX_H

#include <stdbool.h>
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

/*
 * Pins the pages of token[0..n) that are kept, in the name of @key (not 0),
 * until @until (any clock, the same as in prefix_shed(); 0: for good), instead
 * of those that @key pinned before. At most half of all pages are pinned and
 * PREFIX_PINS names: the one used longest ago is forgotten.
 */
#define PREFIX_PINS 16u
void prefix_pin(struct prefix *p, const int32_t *token, uint32_t n, uint64_t key, uint64_t until);

/*
 * Gives back up to @pages pages that nobody else holds, pinned ones only with
 * @pinned; returns how many. @now: pins that ended before do not count.
 */
uint32_t prefix_shed(struct prefix *p, uint32_t pages, bool pinned, uint64_t now);

/* -- for the file (store.h) ---------------------------------------------------- */

struct prefix_page {
	uint64_t key, parent, used;
	uint32_t depth, page;
	int32_t token[KV_PAGE];
};

/* Every page, most recently used first, none before its parent; returns how many. */
uint32_t prefix_list(const struct prefix *p, struct prefix_page *ret, uint32_t cap);
/* Whether @e, of prefix_list(), is still kept, in the same page. */
bool prefix_holds(struct prefix *p, const struct prefix_page *e);
/* Whether prefix_put() would take it: its keys are right, its parent is there, it is not. */
bool prefix_wants(struct prefix *p, const struct prefix_page *e);
/* Takes @e with @page, and the caller's reference on it. -EINVAL when not wanted. */
int prefix_put(struct prefix *p, const struct prefix_page *e, uint32_t page);

/* Pages that only the cache holds. */
uint32_t prefix_idle(const struct prefix *p);

#endif
