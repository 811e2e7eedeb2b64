/* SPDX-License-Identifier: MIT */
/*
 * Tensor data from a GGUF file into a weights region.
 *
 * The file is read with O_DIRECT straight into the region: no page-cache copy,
 * no staging buffer. When all of it is there the region is sealed read-only
 * and named by the digest of its content. A load whose file was loaded before,
 * and whose region is still there, finds it and reads nothing.
 *
 * Where O_DIRECT or io_uring are not to be had, the load still works, by a
 * slower way, and load_how() says which and why.
 */
#ifndef HEARTH_GGUF_LOAD_H
#define HEARTH_GGUF_LOAD_H

#include <stdatomic.h>

#include "gguf/gguf.h"

struct hearth;
struct hearth_tenant;
struct hearth_pool;

enum load_way {
	LOAD_AUTO,      /* best that works here */
	LOAD_URING,     /* O_DIRECT, io_uring */
	LOAD_DIRECT,    /* O_DIRECT, pread */
	LOAD_BUFFERED,  /* through the page cache, dropped behind */
	LOAD_FOUND,     /* result only: the region was there already */
};

struct load_opts {
	enum load_way way;      /* a way that was asked for and fails is an error */
	uint32_t depth;         /* reads in flight; 0 = default */
	uint32_t block;         /* bytes a read, whole MiB, at most 64; 0 = default */
	bool verify;            /* hash a region that was found before trusting it (-EILSEQ) */
	bool fresh;             /* never reuse a region that is there */
	const atomic_bool *cancel; /* becomes true: stop, -ECANCELED, nothing kept */
	/* Called from the loading thread, at most some 50 times a second, and at the end. */
	void (*progress)(void *ctx, uint64_t done, uint64_t total);
	void *ctx;
	/*
	 * A backend's own order of the weights. Before the region is sealed, .pack is
	 * called once for every tensor and may reorder its @data within its own
	 * nbytes; -errno stops the load. It is called from one thread of the
	 * loader's, one tensor at a time, in the order in which they lie in the file,
	 * while later ones are still being read. @layout ("" or "cpu16", ...) becomes
	 * part of the sealed region's name, so that a later load with the same layout
	 * finds it packed (and does not call .pack), and one with another layout does
	 * not.
	 */
	const char *layout;
	int (*pack)(void *pack_ctx, const struct gguf_tensor *t, void *data,
		    struct hearth_err *err);
	void *pack_ctx;
};

struct load;

/*
 * Bytes of the region that load_weights() will allocate for @g: the plan's
 * number, exact.
 */
uint64_t load_region_bytes(const struct gguf *g);

/*
 * Would load_weights() of this layout find these files' weights in @pool, left
 * there under the name of @tenant, and so charge nothing new?
 */
bool load_there(const struct gguf *g, struct hearth_tenant *tenant, struct hearth_pool *pool,
		const char *layout);

/*
 * Loads every tensor of @g into a region of @pool (kind weights) charged to
 * @tenant, and points each gguf_tensor.data into it. @opts may be NULL.
 * The pointers are valid until load_free(). On failure nothing stays charged.
 */
int load_weights(struct gguf *g, struct hearth_tenant *tenant, struct hearth_pool *pool,
		 const struct load_opts *opts, struct load **ret, struct hearth_err *err);

/*
 * Unmaps the region. It stays in its pool, charged to its tenant's name, for
 * the next load to find; load_drop() gives its memory and charge back too.
 * The tensors' data pointers are NULL afterwards, so the gguf must still be
 * open. NULL is fine.
 */
void load_free(struct load *l);
void load_drop(struct load *l);

enum load_way load_way(const struct load *l);
const char *load_how(const struct load *l);     /* "io_uring, O_DIRECT", or the other way and why */
const char *load_digest(const struct load *l);  /* 32 hex digits: the content */
const void *load_base(const struct load *l);    /* the region, for cudaHostRegister */
uint64_t load_bytes(const struct load *l);

#endif
