/* SPDX-License-Identifier: MIT */
/* One WebSocket of the server's side, over wslay: whole messages in and out. */
#ifndef HEARTH_SERVER_WEBSOCKET_H
#define HEARTH_SERVER_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct websocket;

/* Sec-WebSocket-Accept of a client's key, 28 characters and the NUL. */
int websocket_accept(const char *key, char ret[32]);

/*
 * @fd is ours until close; @extra are bytes that came already. Messages over
 * @max_message end the connection (1009). -ENOMEM.
 */
int websocket_open(int fd, const char *extra, size_t n_extra, size_t max_message, struct websocket **ret);
void websocket_close(struct websocket *w);        /* sends a close when it can; not the fd */

/*
 * The next text or binary message (malloced, NUL-terminated), waiting up to
 * @wait_ms: 1, 0 when none came, -EPIPE when the connection is over. Answers
 * pings by itself.
 */
int websocket_read(struct websocket *w, int wait_ms, char **ret, size_t *ret_n);

/* Bytes of messages that came and were not read yet. */
size_t websocket_pending(const struct websocket *w);

/*
 * Queues one text message and sends what goes at once; any thread, never
 * waits. -EPIPE: the connection is over, or 32 MiB were not taken.
 */
int websocket_send(struct websocket *w, const char *text, size_t n);
/* Waits until everything queued has gone. -ETIMEDOUT: nothing was taken for 20 s. */
int websocket_flush(struct websocket *w);

#endif
