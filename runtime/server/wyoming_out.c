// SPDX-License-Identifier: MIT
/*
 * What a Wyoming client is sent. The engines' threads never wait for a client:
 * what its socket does not take is kept, and the client's own thread sends it
 * before the next phrase or event.
 */
#include "server/wyoming_priv.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Lock held. Sends what goes now; returns how many bytes, or -EPIPE. */
static ssize_t send_now(struct client *c, const char *s, size_t n)
{
	size_t at = 0;

	while (at < n) {
		ssize_t k = send(c->fd, s + at, n - at, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (k > 0)
			at += (size_t)k;
		else if (k < 0 && errno == EINTR)
			continue;
		else if (k < 0 && errno == EAGAIN)
			break;
		else
			return -EPIPE;
	}
	return (ssize_t)at;
}

static int keep(struct client *c, const char *s, size_t n)
{
	if (c->n_backlog + n > MAX_BACKLOG)
		return -EPIPE;
	if (c->n_backlog + n > c->cap_backlog) {
		size_t cap = (c->n_backlog + n) * 2;
		char *p = realloc(c->backlog, cap);

		if (!p)
			return -ENOMEM;
		c->backlog = p;
		c->cap_backlog = cap;
	}
	memcpy(c->backlog + c->n_backlog, s, n);
	c->n_backlog += n;
	return 0;
}

/* Lock held. */
static int flush(struct client *c, bool wait)
{
	struct pollfd p = { .fd = c->fd, .events = POLLOUT };
	size_t at = 0;

	while (at < c->n_backlog) {
		ssize_t k = send_now(c, c->backlog + at, c->n_backlog - at);

		if (k < 0)
			return -EPIPE;
		at += (size_t)k;
		if (at < c->n_backlog && (!wait || poll(&p, 1, SEND_MS) <= 0)) {
			if (wait)
				return -ETIMEDOUT;
			break;
		}
	}
	if (at)
		memmove(c->backlog, c->backlog + at, c->n_backlog - at);
	c->n_backlog -= at;
	if (!c->n_backlog && c->cap_backlog > 1u << 16) {
		free(c->backlog);
		c->backlog = NULL;
		c->cap_backlog = 0;
	}
	return 0;
}

static int say(struct client *c, const char *type, json_t *data, const void *payload, size_t n_payload, bool wait)
{
	char *buf;
	size_t n;
	int rc = data ? wyoming_encode(type, data, payload, n_payload, &buf, &n) : -ENOMEM;

	json_decref(data);
	if (rc)
		return rc;
	pthread_mutex_lock(&c->out);
	rc = c->gone ? -EPIPE : keep(c, buf, n);
	if (!rc)
		rc = flush(c, wait);
	if (rc)
		c->gone = true;
	pthread_mutex_unlock(&c->out);
	free(buf);
	return rc;
}

int say_event(struct client *c, const char *type, json_t *data, const void *payload, size_t n_payload)
{
	return say(c, type, data, payload, n_payload, true);
}

int say_soon(struct client *c, const char *type, json_t *data, const void *payload, size_t n_payload)
{
	return say(c, type, data, payload, n_payload, false);
}

int say_rest(struct client *c)
{
	int rc;

	pthread_mutex_lock(&c->out);
	rc = c->gone ? -EPIPE : flush(c, true);
	if (rc)
		c->gone = true;
	pthread_mutex_unlock(&c->out);
	return rc;
}

void say_error(struct client *c, const char *code, const char *text)
{
	say_event(c, "error", json_pack("{s:s,s:s}", "text", text, "code", code), NULL, 0);
}

void say_stopping(struct client *c)
{
	if (!c->told)
		say_error(c, "stopping", "the server is stopping");
	c->told = true;
}
