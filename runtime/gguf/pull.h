/* SPDX-License-Identifier: MIT */
/*
 * Inside of gguf/: reading known spans of files into memory, as fast as the
 * disk gives them, without leaving them in the page cache.
 */
#ifndef HEARTH_GGUF_PULL_H
#define HEARTH_GGUF_PULL_H

#include "gguf/load.h"

#define PULL_ALIGN 4096ull /* of offsets, lengths and addresses of O_DIRECT reads */

/* One read. off and dst are multiples of PULL_ALIGN. */
struct piece {
	int fd;
	uint64_t off;
	uint8_t *dst;
	uint32_t ask;            /* bytes to ask for, a multiple of PULL_ALIGN */
	uint32_t need;           /* bytes that must come; less than ask at a file's end */
	uint32_t got;
	size_t tag;              /* the caller's */
};

struct pull {
	struct piece *piece;
	size_t n;
	uint32_t depth;
	const atomic_bool *cancel;
	/* Whether piece i may be asked for now; with @wait it comes back when it may. */
	bool (*may_ask)(void *ctx, size_t i, bool wait);
	/* Piece i is there. In the reading thread, in any order. */
	void (*arrived)(void *ctx, size_t i);
	void *ctx;
};

/*
 * Reads all pieces by @way (not LOAD_AUTO). Nothing is in flight when it
 * returns. -EOPNOTSUPP: this way does not work here and nothing was read; err
 * says why. -ECANCELED. Other failures name the offset.
 */
int pull_run(struct pull *p, enum load_way way, struct hearth_err *err);

#endif
