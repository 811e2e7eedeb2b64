/* SPDX-License-Identifier: MIT */
/*
 * The digest that names a model's weights: XXH3-128 over the XXH3-128 of each
 * MiB, so that it can be computed in any order, by several threads, at the
 * speed of memory. It tells models apart and finds damage; it is no proof
 * against somebody who forges files.
 */
#ifndef HEARTH_GGUF_DIGEST_H
#define HEARTH_GGUF_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define DIGEST_LEAF  (1u << 20)
#define DIGEST_BYTES 16

struct digest {
	uint8_t b[DIGEST_BYTES];
};

struct digest digest_of(const void *p, size_t n);

/* Of [p, p+n): leaf i into leaf[i]; digest_leaves(n) of them. */
static inline size_t digest_leaves(uint64_t n)
{
	return (size_t)((n + DIGEST_LEAF - 1) / DIGEST_LEAF);
}

uint64_t digest_u64(const void *p, size_t n);     /* short form, for tables and names */
void digest_hex(const struct digest *d, char *ret /* [33] */);

#endif
