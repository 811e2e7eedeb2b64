// SPDX-License-Identifier: MIT
#include "server/websocket.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <wslay/wslay.h>

#include "server/base64.h"

#define SEND_MS 20000
#define LOOK_MS 200
#define LINGER_MS 500
#define PING_MS 30000
#define DEAD_MS 120000
#define MAX_QUEUED (32u << 20)  /* bytes that a client has not taken yet */
#define MAX_FRAMES 65536        /* the same, in messages: a pong may be two bytes */
#define MAX_AHEAD  (1u << 20)   /* bytes that are read before somebody wants them */

struct message {
	char *data;
	size_t n;
	struct message *next;
};

struct websocket {
	int fd;
	wslay_event_context_ptr ctx;
	pthread_mutex_t lock;          /* ctx, for sending; reading is one thread */
	char *extra;
	size_t n_extra, at_extra;
	struct message *head, **tail;
	size_t pending;                /* bytes in that list */
	atomic_bool over;
	int64_t heard_ms;              /* when anything last came */
	int64_t pinged_ms;
};

int websocket_accept(const char *key, char ret[32])
{
	static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	uint8_t sha[20];
	char text[128], *b64;

	if (!key || strlen(key) + sizeof(guid) > sizeof(text))
		return -EINVAL;
	strcpy(text, key);
	strcat(text, guid);
	if (gnutls_hash_fast(GNUTLS_DIG_SHA1, text, strlen(text), sha))
		return -EIO;
	b64 = base64_encode(sha, 20);
	if (!b64)
		return -ENOMEM;
	strcpy(ret, b64);
	free(b64);
	return 0;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Lock held. A client that does not read what it asked for, pongs included. */
static bool clogged(struct websocket *w)
{
	return wslay_event_get_queued_msg_length(w->ctx) > MAX_QUEUED || wslay_event_get_queued_msg_count(w->ctx) > MAX_FRAMES;
}

static ssize_t do_recv(wslay_event_context_ptr ctx, uint8_t *buf, size_t len, int flags, void *arg)
{
	struct websocket *w = arg;
	ssize_t n;

	if (w->at_extra < w->n_extra) {
		n = (ssize_t)(w->n_extra - w->at_extra < len ? w->n_extra - w->at_extra : len);
		memcpy(buf, w->extra + w->at_extra, (size_t)n);
		w->at_extra += (size_t)n;
		return n;
	}
	/* Who sends faster than we work is held back by the socket, not by our memory. */
	if (w->pending >= MAX_AHEAD) {
		wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	do
		n = recv(w->fd, buf, len, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		w->heard_ms = now_ms();
		return n;
	}
	wslay_event_set_error(ctx, n < 0 && errno == EAGAIN ? WSLAY_ERR_WOULDBLOCK : WSLAY_ERR_CALLBACK_FAILURE);
	if (n == 0)
		w->over = true;
	return -1;
}

static ssize_t do_send(wslay_event_context_ptr ctx, const uint8_t *data, size_t len, int flags, void *arg)
{
	struct websocket *w = arg;
	ssize_t n;

	for (;;) {
		n = send(w->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0)
			return n;
		if (errno == EINTR)
			continue;
		wslay_event_set_error(ctx, errno == EAGAIN ? WSLAY_ERR_WOULDBLOCK : WSLAY_ERR_CALLBACK_FAILURE);
		return -1;
	}
}

static void on_message(wslay_event_context_ptr ctx, const struct wslay_event_on_msg_recv_arg *a, void *arg)
{
	struct websocket *w = arg;
	struct message *m;

	if (wslay_is_ctrl_frame(a->opcode)) {
		if (a->opcode == WSLAY_CONNECTION_CLOSE)
			w->over = true;
		return;
	}
	m = calloc(1, sizeof(*m));
	if (m)
		m->data = malloc(a->msg_length + 1);
	if (!m || !m->data) {
		free(m);
		w->over = true;    /* a message that is lost must not pass for one that never came */
		return;
	}
	if (a->msg_length) /* an empty message has no bytes to point at */
		memcpy(m->data, a->msg, a->msg_length);
	m->data[a->msg_length] = 0;
	m->n = a->msg_length;
	w->pending += m->n;
	*w->tail = m;
	w->tail = &m->next;
}

int websocket_open(int fd, const char *extra, size_t n_extra, size_t max_message, struct websocket **ret)
{
	static const struct wslay_event_callbacks cb = { .recv_callback = do_recv, .send_callback = do_send, .on_msg_recv_callback = on_message };
	struct websocket *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->fd = fd;
	w->tail = &w->head;
	w->heard_ms = w->pinged_ms = now_ms();
	pthread_mutex_init(&w->lock, NULL);
	if (n_extra) {
		w->extra = malloc(n_extra);
		if (w->extra)
			memcpy(w->extra, extra, n_extra);
		w->n_extra = w->extra ? n_extra : 0;
	}
	if ((n_extra && !w->extra) || wslay_event_context_server_init(&w->ctx, &cb, w)) {
		free(w->extra);
		free(w);
		return -ENOMEM;
	}
	wslay_event_config_set_max_recv_msg_length(w->ctx, max_message);
	*ret = w;
	return 0;
}

/*
 * A socket that is closed with bytes unread is reset, and the close frame with
 * it: what still comes is read for a moment.
 */
static void linger(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char waste[4096];
	int64_t end = now_ms() + LINGER_MS;

	shutdown(fd, SHUT_WR);
	while (now_ms() < end && poll(&p, 1, LINGER_MS) > 0 && recv(fd, waste, sizeof(waste), MSG_DONTWAIT) > 0)
		;
}

void websocket_close(struct websocket *w)
{
	struct message *m;

	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	/* A client that takes nothing is not waited for. */
	if (wslay_event_get_write_enabled(w->ctx)) {
		wslay_event_queue_close(w->ctx, WSLAY_CODE_NORMAL_CLOSURE, NULL, 0);
		wslay_event_send(w->ctx);
	}
	wslay_event_context_free(w->ctx);
	pthread_mutex_unlock(&w->lock);
	linger(w->fd);
	while ((m = w->head)) {
		w->head = m->next;
		free(m->data);
		free(m);
	}
	pthread_mutex_destroy(&w->lock);
	free(w->extra);
	free(w);
}

/* A client that is silent is asked whether it is there, and given up when it does not say. */
static void look_alive(struct websocket *w)
{
	struct wslay_event_msg ping = { .opcode = WSLAY_PING };
	int64_t now = now_ms();

	if (now - w->heard_ms > DEAD_MS) {
		w->over = true;
	} else if (now - w->heard_ms > PING_MS && now - w->pinged_ms > PING_MS) {
		w->pinged_ms = now;
		pthread_mutex_lock(&w->lock);
		if (wslay_event_queue_msg(w->ctx, &ping) || wslay_event_send(w->ctx))
			w->over = true;
		pthread_mutex_unlock(&w->lock);
	}
}

int websocket_read(struct websocket *w, int wait_ms, char **ret, size_t *ret_n)
{
	struct pollfd p = { .fd = w->fd, .events = POLLIN };
	struct message *m;
	int rc;

	look_alive(w);
	for (int tries = 0; tries < 2; tries++) {
		m = w->head;
		if (m) {
			w->head = m->next;
			if (!w->head)
				w->tail = &w->head;
			*ret = m->data;
			*ret_n = m->n;
			w->pending -= m->n;
			free(m);
			return 1;
		}
		if (w->over)
			return -EPIPE;
		pthread_mutex_lock(&w->lock);
		p.events = (short)(POLLIN | (wslay_event_want_write(w->ctx) ? POLLOUT : 0));
		pthread_mutex_unlock(&w->lock);
		if (tries || (w->at_extra == w->n_extra && poll(&p, 1, wait_ms) <= 0))
			return 0;
		pthread_mutex_lock(&w->lock);
			/* After a frame that breaks the protocol there is a close to send. */
		rc = wslay_event_recv(w->ctx);
		if (wslay_event_send(w->ctx) || rc || !wslay_event_get_read_enabled(w->ctx) || clogged(w))
			w->over = true;
		pthread_mutex_unlock(&w->lock);
	}
	return 0;
}

size_t websocket_pending(const struct websocket *w)
{
	return w->pending;
}

int websocket_flush(struct websocket *w)
{
	struct pollfd p = { .fd = w->fd, .events = POLLOUT };
	int rc = 0, waited = 0;

	for (;;) {
		bool more;

		pthread_mutex_lock(&w->lock);
		if (!wslay_event_get_write_enabled(w->ctx) || wslay_event_send(w->ctx))
			rc = -EPIPE;
		more = wslay_event_want_write(w->ctx);
		pthread_mutex_unlock(&w->lock);
		/* Waiting is done without the lock: others go on queueing meanwhile. */
		if (rc || !more)
			return rc;
		if (w->over)
			return -EPIPE;
		if (poll(&p, 1, LOOK_MS) > 0)
			waited = 0;
		else if ((waited += LOOK_MS) >= SEND_MS)
			rc = -ETIMEDOUT;
		if (rc) {
			/* Nobody waits for it again. */
			w->over = true;
			shutdown(w->fd, SHUT_RDWR);
			return rc;
		}
	}
}

int websocket_send(struct websocket *w, const char *text, size_t n)
{
	struct wslay_event_msg m = { .opcode = WSLAY_TEXT_FRAME, .msg = (const uint8_t *)text, .msg_length = n };
	int rc = 0;

	pthread_mutex_lock(&w->lock);
	if (w->over || !wslay_event_get_write_enabled(w->ctx) || clogged(w) || wslay_event_queue_msg(w->ctx, &m) || wslay_event_send(w->ctx)) {
		/* What follows one that was lost would make no sense. */
		w->over = true;
		rc = -EPIPE;
	}
	pthread_mutex_unlock(&w->lock);
	return rc;
}
