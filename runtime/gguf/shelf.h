/* SPDX-License-Identifier: MIT */
/*
 * Inside of gguf/: weights that are in a pool already, under which name, and
 * how a file is known to be theirs without reading it.
 *
 * A region is named weights-DIGEST, or weights-DIGEST.LAYOUT where a backend
 * has put them into an order of its own.
 */
#ifndef HEARTH_GGUF_SHELF_H
#define HEARTH_GGUF_SHELF_H

#include "dev/hearth.h"
#include "gguf/digest.h"
#include "gguf/gguf.h"

#define SHELF_PREFIX "weights-"
#define SHELF_LAYOUT_MAX (HEARTH_REGION_NAME_LEN - sizeof(SHELF_PREFIX) - 2 * DIGEST_BYTES - 1)

/* What is written beside a region: 32 bytes that its finder compares. */
struct label {
	struct digest content;
	uint64_t file;           /* which files it was read from, see shelf_files_id() */
	uint64_t packed;         /* hash of the region as it was sealed, 0 without .pack */
};
_Static_assert(sizeof(struct label) == HEARTH_DIGEST_LEN, "a label is a region's digest");

struct wanted {
	const char *layout;              /* "" for none */
	uint64_t bytes;                  /* of the region */
	const uint64_t *file;            /* of these files, or NULL */
	const struct digest *content;    /* with this content, or NULL */
};

/* The digest of each part's header, for free(); NULL without memory. */
struct digest *shelf_heads(const struct gguf *g);

/*
 * Which files these are, by place, size, times and header. A file that has the
 * same of all of them has the same content: any write to it would have moved
 * its change time. -ESTALE when one was changed since it was opened. (File
 * times move by a tick of the kernel's clock: a write within the same 1 to 10
 * ms as the opening is not seen. Such a writer has the file open while a model
 * is started from it, which no times could make safe.)
 */
int shelf_files_id(const struct gguf *g, const struct digest *heads, uint64_t *ret,
		   struct hearth_err *err);

void shelf_name(char *buf /* [HEARTH_REGION_NAME_LEN] */, const char *hex, const char *layout);

/* 1 and a mapped region when there is one, 0 when not, or a failure. */
int shelf_find(struct hearth_tenant *t, struct hearth_pool *pool, const struct wanted *want,
	       struct hearth_region **ret, struct label *ret_label, struct hearth_err *err);

#endif
