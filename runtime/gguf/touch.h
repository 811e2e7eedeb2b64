/* SPDX-License-Identifier: MIT */
/*
 * Inside of gguf/: pages ahead of the reads.
 *
 * A read into memory that has no pages yet makes them first, in the thread
 * that asks for it, and that takes as long as the disk does. So a second
 * thread makes them, ahead of the reads, and a read is asked for when its
 * pages are there: two threads that fault in one file get into each other's
 * way (docs/speed.md). It changes no content: MADV_POPULATE_WRITE only faults.
 * Where the kernel has none (before 5.14) the reads do it.
 */
#ifndef HEARTH_GGUF_TOUCH_H
#define HEARTH_GGUF_TOUCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct toucher {
	pthread_t thread;
	bool runs;
	uint8_t *base;
	uint64_t bytes;
	atomic_bool stop;
	pthread_mutex_t lock;
	pthread_cond_t moved;
	uint64_t upto; /* under lock: bytes whose pages are there; UINT64_MAX: do not wait */
};

/* Begins with [base, base + bytes). Works also where no thread can be had. */
void touch_start(struct toucher *t, void *base, uint64_t bytes);
void touch_stop(struct toucher *t);

/* Whether the pages before @end are there; waits for them when @wait. */
bool touched(struct toucher *t, const uint8_t *end, bool wait);

#endif
