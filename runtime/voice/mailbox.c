// SPDX-License-Identifier: MIT
#include "voice/mailbox.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/mono.h"

struct mailbox {
	pthread_mutex_t lock;
	pthread_cond_t some, room_left;
	struct mail *ring;
	size_t room, head, n;
	bool closed;
	bool stop;             /* a MAIL_STOP that goes before everything */
	struct mail stop_mail;
};

int mailbox_new(size_t room, struct mailbox **ret)
{
	struct mailbox *b = calloc(1, sizeof(*b));

	if (b)
		b->ring = calloc(room, sizeof(*b->ring));
	if (!b || !b->ring) {
		free(b);
		return -ENOMEM;
	}
	b->room = room;
	pthread_mutex_init(&b->lock, NULL);
	mono_cond(&b->some);
	pthread_cond_init(&b->room_left, NULL);   /* waited for without end */
	*ret = b;
	return 0;
}

void mailbox_free(struct mailbox *b)
{
	if (!b)
		return;
	pthread_cond_destroy(&b->some);
	pthread_cond_destroy(&b->room_left);
	pthread_mutex_destroy(&b->lock);
	free(b->ring);
	free(b);
}

void mailbox_put(struct mailbox *b, const struct mail *mail)
{
	pthread_mutex_lock(&b->lock);
	while (b->n == b->room && !b->closed)
		pthread_cond_wait(&b->room_left, &b->lock);
	if (b->n < b->room) {
		b->ring[(b->head + b->n++) % b->room] = *mail;
		pthread_cond_signal(&b->some);
	}
	pthread_mutex_unlock(&b->lock);
}

void mailbox_push(struct mailbox *b, const struct mail *mail)
{
	pthread_mutex_lock(&b->lock);
	b->stop = true;
	b->stop_mail = *mail;
	pthread_cond_signal(&b->some);
	pthread_mutex_unlock(&b->lock);
}

bool mailbox_get(struct mailbox *b, int64_t until_ns, struct mail *ret_mail)
{
	bool got = true;

	pthread_mutex_lock(&b->lock);
	while (!b->n && !b->stop && got) {
		if (until_ns == INT64_MAX) {
			pthread_cond_wait(&b->some, &b->lock);
		} else {
			struct timespec ts = { .tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000 };

			got = pthread_cond_timedwait(&b->some, &b->lock, &ts) != ETIMEDOUT || b->n || b->stop;
		}
	}
	if (b->stop) {
		*ret_mail = b->stop_mail;
		b->stop = false;
		got = true;
	} else if (b->n) {
		*ret_mail = b->ring[b->head];
		b->head = (b->head + 1) % b->room;
		b->n--;
		pthread_cond_signal(&b->room_left);
	}
	pthread_mutex_unlock(&b->lock);
	return got;
}

void mailbox_clear(struct mailbox *b)
{
	pthread_mutex_lock(&b->lock);
	b->n = 0;
	b->head = 0;
	b->closed = false;
	pthread_cond_broadcast(&b->room_left);
	pthread_mutex_unlock(&b->lock);
}

void mailbox_close(struct mailbox *b)
{
	pthread_mutex_lock(&b->lock);
	b->closed = true;
	pthread_cond_broadcast(&b->room_left);
	pthread_mutex_unlock(&b->lock);
}
