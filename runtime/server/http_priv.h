/* SPDX-License-Identifier: MIT */
/*
 * Inside of the HTTP server, shared by its three files: http.c (the library's
 * callbacks, life), http_admit.c (who may ask for what), http_answer.c (what
 * handlers see of a request and give back).
 */
#ifndef HEARTH_SERVER_HTTP_PRIV_H
#define HEARTH_SERVER_HTTP_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include <microhttpd.h>

#include "server/http.h"

struct watch;
struct watched;

#define MAX_PARTS 32

struct part {
	char *name, *file, *data;
	size_t len;
};

struct http_server {
	struct http_opts o;
	struct MHD_Daemon *d;
	struct watch *watch;
	uint16_t port;
	int unix_fd;
	char *unix_path;
	pthread_mutex_t lock;            /* of the two below */
	pthread_cond_t ended;            /* one of them is none */
	unsigned int running;            /* upgraded connections, from their 101 on */
	unsigned int answering;          /* requests from their handler to the last byte of the answer */
	atomic_bool stopping;            /* no more of them */
	atomic_size_t max_body;
	_Atomic(void *) ctx;             /* of the handlers; NULL: not yet serving */
};

struct upgraded {
	struct http_server *s;
	struct MHD_UpgradeResponseHandle *h;
	void (*run)(void *arg, int fd, const char *extra, size_t n_extra);
	void (*drop)(void *arg);
	void *arg;
	char *extra;
	size_t n_extra;
	int fd;
};

struct http_req {
	struct http_server *s;
	struct MHD_Connection *c;
	const struct http_route *route;
	struct MHD_PostProcessor *pp;
	struct MHD_Response *headers_of; /* NULL; headers are kept below until the answer */
	char id[40], key[256], *method, *path;
	char *body;
	size_t len, cap;
	struct part parts[MAX_PARTS];
	size_t n_parts;
	struct { char *name, *value; } extra[8];
	size_t n_extra;
	int who, status;
	bool answered, refused, too_long, counted;
	struct upgraded *up;             /* asked for, not begun */
	struct watched *watched;
	uint64_t t0, sent;
	/* streaming */
	long (*next)(void *arg, char *buf, size_t cap);
	void (*end)(void *arg);
	void (*run)(void *arg, int fd, const char *extra, size_t n_extra);
	void *arg;
};

/* http_admit.c: finds the route and the right to use it; false when it answered already. */
bool http_admit(struct http_req *r);

/* One upgraded connection more, one less; the server may be gone when the latter returns. */
void http_upgraded(struct http_server *s);
void http_ended(struct http_server *s);

#endif
