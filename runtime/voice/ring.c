// SPDX-License-Identifier: MIT
/*
 * head counts items written, tail items read; both only grow, and 64 bits of
 * them never wrap in practice. Each is stored by one side only.
 *
 * Sleeping: the sleeper stores its flag, then looks at the counter again; the
 * other side stores its counter, then looks at the flag. Both pairs are
 * sequentially consistent, so at least one of them sees the other and no
 * wake-up is lost. The waker takes the lock before it signals, so it cannot
 * signal between the sleeper's look and its wait.
 */
#include "voice/ring.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mono.h"

struct ring {
	size_t size;      /* of an item */
	size_t mask;      /* items - 1 */
	_Alignas(64) _Atomic uint64_t head;
	_Alignas(64) _Atomic uint64_t tail;
	_Alignas(64) atomic_bool ended;
	atomic_bool cancelled;
	atomic_bool writer_waits;
	atomic_bool reader_waits;
	pthread_mutex_t lock; /* only to sleep and to wake */
	pthread_cond_t wake;
	unsigned char *items;
};

static size_t round_up_pow2(size_t n)
{
	size_t p = 1;

	while (p < n)
		p <<= 1;
	return p;
}

size_t ring_footprint(size_t size, size_t count)
{
	return sizeof(struct ring) + size * round_up_pow2(count);
}

int ring_new(size_t size, size_t count, struct ring **ret)
{
	struct ring *r;

	if (size == 0 || count == 0 || count > SIZE_MAX / 4 || size > SIZE_MAX / 4 / count)
		return -EINVAL;
	r = aligned_alloc(64, (sizeof(*r) + 63) & ~(size_t)63);
	if (!r)
		return -ENOMEM;
	memset(r, 0, sizeof(*r));
	r->size = size;
	r->mask = round_up_pow2(count) - 1;
	r->items = calloc(r->mask + 1, size);
	if (!r->items) {
		free(r);
		return -ENOMEM;
	}
	pthread_mutex_init(&r->lock, NULL);
	mono_cond(&r->wake);
	*ret = r;
	return 0;
}

void ring_free(struct ring *r)
{
	if (!r)
		return;
	pthread_cond_destroy(&r->wake);
	pthread_mutex_destroy(&r->lock);
	free(r->items);
	free(r);
}

static void wake_if(struct ring *r, atomic_bool *flag)
{
	if (!atomic_load(flag))
		return;
	pthread_mutex_lock(&r->lock);
	pthread_cond_broadcast(&r->wake);
	pthread_mutex_unlock(&r->lock);
}

static bool has_room(const struct ring *r)
{
	return atomic_load(&r->head) - atomic_load(&r->tail) <= r->mask;
}

static bool has_items(const struct ring *r)
{
	return atomic_load(&r->head) != atomic_load(&r->tail);
}

/* Sleeps until @ready or the end of the story; false when the time ran out. */
static bool sleep_until(struct ring *r, bool (*ready)(const struct ring *), atomic_bool *flag,
			int wait_ms, const struct timespec *deadline)
{
	bool in_time = true;

	if (wait_ms == 0)
		return false;
	pthread_mutex_lock(&r->lock);
	atomic_store(flag, true);
	while (in_time && !ready(r) && !atomic_load(&r->cancelled) && !atomic_load(&r->ended)) {
		if (wait_ms < 0)
			pthread_cond_wait(&r->wake, &r->lock);
		else if (pthread_cond_timedwait(&r->wake, &r->lock, deadline) == ETIMEDOUT)
			in_time = false;
	}
	atomic_store(flag, false);
	pthread_mutex_unlock(&r->lock);
	return in_time || ready(r);
}

ssize_t ring_write(struct ring *r, const void *items, size_t n, int wait_ms)
{
	const unsigned char *src = items;
	struct timespec deadline = { 0 };
	size_t done = 0;

	if (n > SSIZE_MAX)
		return -EINVAL;
	if (wait_ms > 0)
		deadline = mono_after(wait_ms);
	while (done < n) {
		uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
		size_t room, at, part;

		if (atomic_load(&r->cancelled))
			return done ? (ssize_t)done : -ECANCELED;
		if (atomic_load(&r->ended))
			return done ? (ssize_t)done : -EPIPE;
		room = r->mask + 1 - (size_t)(head - atomic_load(&r->tail));
		if (room == 0) {
			if (!sleep_until(r, has_room, &r->writer_waits, wait_ms, &deadline))
				break;
			continue;
		}
		at = (size_t)head & r->mask;
		part = n - done < room ? n - done : room;
		if (part > r->mask + 1 - at)
			part = r->mask + 1 - at;
		memcpy(r->items + at * r->size, src + done * r->size, part * r->size);
		done += part;
		atomic_store(&r->head, head + part);
		wake_if(r, &r->reader_waits);
	}
	return (ssize_t)done;
}

ssize_t ring_read(struct ring *r, void *items, size_t n, int wait_ms)
{
	unsigned char *dst = items;
	struct timespec deadline = { 0 };
	size_t done = 0;

	if (n == 0 || n > SSIZE_MAX)
		return -EINVAL;
	if (wait_ms > 0)
		deadline = mono_after(wait_ms);
	for (;;) {
		uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
		bool ended = atomic_load(&r->ended); /* before head: what was written before the end is seen */
		size_t used, at, part;

		if (atomic_load(&r->cancelled))
			return -ECANCELED;
		used = (size_t)(atomic_load(&r->head) - tail);
		if (used == 0) {
			if (ended)
				return 0;
			if (!sleep_until(r, has_items, &r->reader_waits, wait_ms, &deadline))
				return -EAGAIN;
			continue;
		}
		while (used > 0 && done < n) {
			at = (size_t)tail & r->mask;
			part = n - done < used ? n - done : used;
			if (part > r->mask + 1 - at)
				part = r->mask + 1 - at;
			memcpy(dst + done * r->size, r->items + at * r->size, part * r->size);
			done += part;
			used -= part;
			tail += part;
		}
		atomic_store(&r->tail, tail);
		wake_if(r, &r->writer_waits);
		return (ssize_t)done;
	}
}

static void raise_flag(struct ring *r, atomic_bool *flag)
{
	atomic_store(flag, true);
	pthread_mutex_lock(&r->lock);
	pthread_cond_broadcast(&r->wake);
	pthread_mutex_unlock(&r->lock);
}

void ring_end(struct ring *r)
{
	raise_flag(r, &r->ended);
}

void ring_cancel(struct ring *r)
{
	raise_flag(r, &r->cancelled);
}

void ring_reset(struct ring *r)
{
	atomic_store(&r->head, 0);
	atomic_store(&r->tail, 0);
	atomic_store(&r->ended, false);
	atomic_store(&r->cancelled, false);
}

size_t ring_used(const struct ring *r)
{
	/* tail first: it can only grow, so used is never negative. */
	uint64_t tail = atomic_load(&r->tail);

	return (size_t)(atomic_load(&r->head) - tail);
}

size_t ring_room(const struct ring *r)
{
	size_t used = ring_used(r);

	return used > r->mask + 1 ? 0 : r->mask + 1 - used;
}

uint64_t ring_written(const struct ring *r)
{
	return atomic_load(&r->head);
}

uint64_t ring_consumed(const struct ring *r)
{
	return atomic_load(&r->tail);
}
