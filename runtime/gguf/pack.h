/* SPDX-License-Identifier: MIT */
/*
 * Inside of gguf/: a backend's own order of the weights, made while the rest
 * of the file is still being read. One thread takes the tensors in the order
 * in which they lie in the region, each as soon as all of it has arrived.
 */
#ifndef HEARTH_GGUF_PACK_H
#define HEARTH_GGUF_PACK_H

#include <pthread.h>

#include "gguf/load.h"

struct pack_run {
	const struct load_opts *o;
	struct gguf_tensor **order; /* by address */
	uint64_t *hash;          /* of each, packed */
	uint32_t n;
	const uint8_t *base;
	pthread_t thread;
	bool runs;
	pthread_mutex_t lock;
	pthread_cond_t moved;
	uint64_t upto;           /* under lock: bytes of the region that are there */
	bool stop;               /* under lock */
	int r;                   /* the thread's, until it was joined */
	struct hearth_err err;
};

/* The tensors of @g point into the region at @base already. -ENOMEM. */
int pack_start(struct pack_run *p, struct gguf *g, const uint8_t *base, const struct load_opts *o,
	       struct hearth_err *err);

/* Everything before @upto is there, hashed, and may be changed. */
void pack_arrived(struct pack_run *p, uint64_t upto);

/*
 * With @all, waits until the last tensor is packed and gives the hash of what
 * pack_hash() sees; without it, stops after the tensor it is at.
 */
int pack_end(struct pack_run *p, bool all, uint64_t *ret_hash, struct hearth_err *err);

/* Never 0, which stands for weights as they are in the file. */
int pack_hash(struct gguf *g, uint64_t *ret);

#endif
