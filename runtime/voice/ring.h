/* SPDX-License-Identifier: MIT */
/*
 * A ring of fixed-size items between one writer thread and one reader thread:
 * 16-bit samples, or the messages of an engine. It never overwrites and never
 * drops: a full ring holds its writer back. The data path takes no lock; a
 * side that must wait sleeps on a condition.
 *
 *   writer: ring_write() ... ring_end()        reader: ring_read() until 0
 *   anyone: ring_cancel()  wakes both sides, which then get -ECANCELED
 */
#ifndef HEARTH_VOICE_RING_H
#define HEARTH_VOICE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ring;

/*
 * @count items of @size bytes; @count is rounded up to a power of two.
 * -ENOMEM, -EINVAL (zero, or too large to address).
 */
int ring_new(size_t size, size_t count, struct ring **ret);
void ring_free(struct ring *r); /* NULL is legal; both threads must be gone */

/* Bytes that ring_new(size, count) takes. */
size_t ring_footprint(size_t size, size_t count);

/*
 * Writes all @n items, sleeping while the ring is full, for at most @wait_ms
 * in all (-1: for ever, 0: not at all). Returns how many went in, which is
 * less than @n only when the time ran out or the ring was cancelled part way;
 * -ECANCELED when it was cancelled before the first, -EPIPE after ring_end.
 */
ssize_t ring_write(struct ring *r, const void *items, size_t n, int wait_ms);

/*
 * Reads up to @n items, sleeping until at least one is there. Returns how
 * many; 0 means the writer has ended and all was read; -EAGAIN when @wait_ms
 * ran out, -ECANCELED.
 */
ssize_t ring_read(struct ring *r, void *items, size_t n, int wait_ms);

/* The writer has no more; what is queued can still be read. */
void ring_end(struct ring *r);

/* Any thread. What is queued is lost to the reader. Stays so until reset. */
void ring_cancel(struct ring *r);

/* Empty and usable again. Only while neither side is inside a call. */
void ring_reset(struct ring *r);

/* Any thread; a snapshot. */
size_t ring_used(const struct ring *r);
size_t ring_room(const struct ring *r);
uint64_t ring_written(const struct ring *r); /* items since new or reset */
uint64_t ring_consumed(const struct ring *r);

#endif
