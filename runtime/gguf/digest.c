// SPDX-License-Identifier: MIT
#include "gguf/digest.h"

#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

struct digest digest_of(const void *p, size_t n)
{
	XXH128_canonical_t c;
	struct digest d;

	XXH128_canonicalFromHash(&c, XXH3_128bits(p, n));
	for (int i = 0; i < DIGEST_BYTES; i++)
		d.b[i] = c.digest[i];
	return d;
}

uint64_t digest_u64(const void *p, size_t n)
{
	return XXH3_64bits(p, n);
}

void digest_hex(const struct digest *d, char *ret)
{
	for (int i = 0; i < DIGEST_BYTES; i++)
		snprintf(ret + 2 * i, 3, "%02x", d->b[i]);
}
