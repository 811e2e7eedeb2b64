// SPDX-License-Identifier: MIT
#include "gguf/touch.h"

#include <sys/mman.h>

#define TOUCH_STEP (1u << 20)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static void touch_say(struct toucher *t, uint64_t upto)
{
	pthread_mutex_lock(&t->lock);
	t->upto = upto;
	pthread_cond_signal(&t->moved);
	pthread_mutex_unlock(&t->lock);
}

static void *touch(void *arg)
{
	struct toucher *t = arg;

	for (uint64_t at = 0;
	     at < t->bytes && !atomic_load_explicit(&t->stop, memory_order_relaxed);
	     at += TOUCH_STEP) {
		uint64_t n = t->bytes - at < TOUCH_STEP ? t->bytes - at : TOUCH_STEP;

		if (madvise(t->base + at, n, MADV_POPULATE_WRITE) < 0)
			break;
		touch_say(t, at + n);
	}
	touch_say(t, UINT64_MAX);
	return NULL;
}

void touch_start(struct toucher *t, void *base, uint64_t bytes)
{
	*t = (struct toucher){ .base = base, .bytes = bytes };
	atomic_init(&t->stop, false);
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->moved, NULL);
	t->runs = pthread_create(&t->thread, NULL, touch, t) == 0;
	if (!t->runs)
		t->upto = UINT64_MAX;
}

void touch_stop(struct toucher *t)
{
	atomic_store(&t->stop, true);
	if (t->runs)
		pthread_join(t->thread, NULL);
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->moved);
}

bool touched(struct toucher *t, const uint8_t *end, bool wait)
{
	uint64_t need = (uint64_t)(end - t->base);
	bool there;

	pthread_mutex_lock(&t->lock);
	while (wait && t->upto < need)
		pthread_cond_wait(&t->moved, &t->lock);
	there = t->upto >= need;
	pthread_mutex_unlock(&t->lock);
	return there;
}
