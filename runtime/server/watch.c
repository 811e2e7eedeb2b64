// SPDX-License-Identifier: MIT
#include "server/watch.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/mono.h"

#define BYTES_A_SECOND 4096

struct watched {
	struct watch *w;
	int fd;
	enum watch_state state;
	int64_t late;              /* ms; when its time is over */
	struct watched *next, **at;
};

struct watch {
	unsigned int seconds;
	pthread_t thread;
	pthread_mutex_t lock;      /* everything below, and all of the watched */
	pthread_cond_t stop;
	bool stopping;
	struct watched *first;
};

static int64_t now_ms(void)
{
	return mono_ns() / 1000000;
}

static void *look(void *arg)
{
	struct watch *w = arg;
	struct timespec t;

	pthread_mutex_lock(&w->lock);
	while (!w->stopping) {
		int64_t now = now_ms();

		/* The socket is open: watch_remove() comes before its close, and waits for this lock. */
		for (struct watched *c = w->first; c; c = c->next)
			if (c->state != WATCH_SERVER && c->state != WATCH_NONE && now > c->late)
				shutdown(c->fd, SHUT_RDWR);
		t = mono_after(1000);
		pthread_cond_timedwait(&w->stop, &w->lock, &t);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

int watch_new(unsigned int seconds, struct watch **ret)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->seconds = seconds;
	pthread_mutex_init(&w->lock, NULL);
	mono_cond(&w->stop);
	if (pthread_create(&w->thread, NULL, look, w)) {
		pthread_cond_destroy(&w->stop);
		pthread_mutex_destroy(&w->lock);
		free(w);
		return -EAGAIN;
	}
	*ret = w;
	return 0;
}

void watch_free(struct watch *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	pthread_cond_signal(&w->stop);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	while (w->first) {
		struct watched *c = w->first;

		w->first = c->next;
		free(c);
	}
	pthread_cond_destroy(&w->stop);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

struct watched *watch_add(struct watch *w, int fd)
{
	struct watched *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->w = w;
	c->fd = fd;
	pthread_mutex_lock(&w->lock);
	c->late = now_ms() + (int64_t)w->seconds * 1000;
	c->next = w->first;
	c->at = &w->first;
	if (c->next)
		c->next->at = &c->next;
	w->first = c;
	pthread_mutex_unlock(&w->lock);
	return c;
}

void watch_remove(struct watch *w, struct watched *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&w->lock);
	*c->at = c->next;
	if (c->next)
		c->next->at = c->at;
	pthread_mutex_unlock(&w->lock);
	free(c);
}

void watch_state(struct watched *c, enum watch_state state, size_t bytes)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->w->lock);
	/* A body has one time for all of it, which grows with what came. */
	if (state == WATCH_BODY && c->state == WATCH_BODY)
		c->late += (int64_t)bytes * 1000 / BYTES_A_SECOND;
	else
		c->late = now_ms() + (int64_t)c->w->seconds * 1000 + (int64_t)bytes * 1000 / BYTES_A_SECOND;
	c->state = state;
	pthread_mutex_unlock(&c->w->lock);
}
