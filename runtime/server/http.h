/* SPDX-License-Identifier: MIT */
/*
 * HTTP for hearthd, over libmicrohttpd: a table of routes, one thread a
 * connection, whole bodies up to a limit, answers whole or streamed.
 *
 * A handler runs on its connection's thread and may wait there. It answers
 * exactly once, by one of the http_reply calls or http_stream(); a handler that
 * returns without an answer becomes a 500.
 */
#ifndef HEARTH_SERVER_HTTP_H
#define HEARTH_SERVER_HTTP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct http_server;
struct http_req;

enum {
	HTTP_OPEN = 1,            /* needs no key */
	HTTP_PREFIX = 2,          /* path is a prefix */
	HTTP_MULTIPART = 4,       /* takes multipart/form-data, parsed into parts */
	HTTP_UPGRADE = 8,         /* handler may take the connection over */
};

struct http_route {
	const char *method;       /* "GET", "POST" */
	const char *path;
	unsigned int flags;
	void (*handle)(struct http_req *r, void *ctx);
};

struct http_opts {
	const char *host;         /* address to listen on; NULL with unix_path */
	uint16_t port;            /* 0: any; http_port() tells */
	const char *unix_path;    /* listen here instead */
	const char *tls_cert, *tls_key;   /* PEM text; both or none */
	size_t max_body;          /* bytes; larger is 413 */
	unsigned int max_connections;
	unsigned int idle_seconds;        /* a connection that neither sends nor takes anything */
	const char *cors;         /* Access-Control-Allow-Origin, or NULL: none */
	const struct http_route *routes;
	size_t n_routes;
	/*
	 * Who is asking: 0 and *ret_who (an index of the caller's), or -EACCES.
	 * @bearer is the key of the Authorization header or x-api-key, or NULL.
	 */
	int (*auth)(void *ctx, const char *bearer, int *ret_who);
	void (*release)(void *ctx, int who);   /* of a request that ended; NULL is fine */
	/* One line for each finished request; method and path are printable ASCII, percent-encoded and cut at 500 bytes. */
	void (*log)(void *ctx, const char *id, const char *method, const char *path, int status, uint64_t ns, uint64_t bytes, int who);
	/* Answers everything until http_serve(). */
	void (*loading)(struct http_req *r);
	void *ctx;                /* of auth, release and log */
};

/* -EADDRINUSE, -EACCES, -EINVAL (bad address or certificate), -ENOMEM. */
int http_start(const struct http_opts *o, struct http_server **ret, struct hearth_err *err);
/* Larger bodies are 413 from the next request on. */
void http_set_max_body(struct http_server *s, size_t max_body);
/* From here on the routes answer, with @ctx. */
void http_serve(struct http_server *s, void *ctx);
uint16_t http_port(const struct http_server *s);
/* No new connections from here on; those there are may finish. */
void http_quiesce(struct http_server *s);
/*
 * Waits for handlers, for upgraded connections, which their owner ends before, and for five seconds for answers that are
 * not taken yet. NULL is fine.
 */
void http_stop(struct http_server *s);

/* -- the request ---------------------------------------------------------------- */

const char *http_id(const struct http_req *r);            /* "req-..." unique in this process */
const char *http_path(const struct http_req *r);
const char *http_rest(const struct http_req *r);          /* after the prefix of an HTTP_PREFIX route */
const char *http_header(struct http_req *r, const char *name);
const char *http_query(struct http_req *r, const char *name);
const char *http_body(const struct http_req *r, size_t *ret_len);
int http_who(const struct http_req *r);
/* A field of a multipart body: its bytes (NUL-terminated), or NULL. */
const char *http_part(const struct http_req *r, const char *name, size_t *ret_len);
const char *http_part_file(const struct http_req *r, const char *name);  /* its file name, or NULL */
/* The client is no longer there. Cheap; call it while waiting. */
bool http_gone(struct http_req *r);

/*
 * The body as a JSON object; NULL when it was not one, and then the 400 has
 * been sent, saying where the text stops being JSON. json_decref() it.
 */
json_t *http_json(struct http_req *r);

/* -- the answer ------------------------------------------------------------------- */

void http_reply(struct http_req *r, int status, const char *type, const void *body, size_t len);
void http_reply_json(struct http_req *r, int status, json_t *j);   /* takes the reference */
/* OpenAI's error object: @code and @param may be NULL. */
void http_error(struct http_req *r, int status, const char *code, const char *param, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
/* Adds a header to the answer, before it is given. */
void http_answer_header(struct http_req *r, const char *name, const char *value);
bool http_answered(const struct http_req *r);

/*
 * Streams: @next fills @buf with up to @cap bytes and returns how many, 0 at
 * the end, negative to break the connection off; it may wait, but not for more
 * than a few seconds without looking at http_gone(). @end is called once,
 * whether or not the client took everything.
 */
void http_stream(struct http_req *r, int status, const char *type,
		 long (*next)(void *arg, char *buf, size_t cap), void (*end)(void *arg), void *arg);

/*
 * Takes the connection over after a 101 with @accept as Sec-WebSocket-Accept:
 * @run gets the socket (and bytes already read) on a thread of its own, and
 * when it returns the connection is closed. @drop is called instead of @run
 * when it never came to that.
 */
void http_upgrade(struct http_req *r, const char *accept,
		  void (*run)(void *arg, int fd, const char *extra, size_t n_extra), void (*drop)(void *arg), void *arg);

#endif
