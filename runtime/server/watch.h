/* SPDX-License-Identifier: MIT */
/*
 * Time limits of HTTP connections that an idle time-out does not see: a client
 * that sends its head or body, or takes its answer, a byte at a time is never
 * idle and would hold its connection for ever.
 *
 * One thread looks once a second and shuts the sockets of those that are late;
 * the connection's own thread then ends as for any client that left.
 */
#ifndef HEARTH_SERVER_WATCH_H
#define HEARTH_SERVER_WATCH_H

#include <stddef.h>
#include <stdint.h>

enum watch_state {
	WATCH_HEAD,        /* from the connection's or the last answer's end to a whole head: @seconds in all */
	WATCH_BODY,        /* @seconds, and a second more for each 4 KiB that came */
	WATCH_SERVER,      /* our turn: no limit here */
	WATCH_ANSWER,      /* the client takes a piece of answer: @seconds, and a second for each 4 KiB of it */
	WATCH_NONE,        /* taken over; no limit here */
};

struct watch;
struct watched;

int watch_new(unsigned int seconds, struct watch **ret);
void watch_free(struct watch *w);          /* NULL is fine */

/* NULL when memory ran out: the connection is then without these limits. */
struct watched *watch_add(struct watch *w, int fd);
/* Before the socket is closed. */
void watch_remove(struct watch *w, struct watched *c);
void watch_state(struct watched *c, enum watch_state state, size_t bytes);

#endif
