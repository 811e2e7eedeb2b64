// SPDX-License-Identifier: MIT
#include "server/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <microhttpd.h>

#include "base/thread.h"
#include "server/listen.h"
#include "server/watch.h"

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
	atomic_uint running;             /* upgraded connections, from their 101 on */
	atomic_bool stopping;            /* no more of them */
	atomic_size_t max_body;
	_Atomic(void *) ctx;             /* of the handlers; NULL: not yet serving */
};

struct upgraded;

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
	bool answered, refused, too_long;
	struct upgraded *up;             /* asked for, not begun */
	struct watched *watched;
	uint64_t t0, sent;
	/* streaming */
	long (*next)(void *arg, char *buf, size_t cap);
	void (*end)(void *arg);
	void (*run)(void *arg, int fd, const char *extra, size_t n_extra);
	void *arg;
};

static atomic_ulong next_id;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* -- the request ------------------------------------------------------------------ */

const char *http_id(const struct http_req *r)
{
	return r->id;
}

const char *http_path(const struct http_req *r)
{
	return r->path;
}

const char *http_rest(const struct http_req *r)
{
	return r->path + strlen(r->route->path);
}

const char *http_header(struct http_req *r, const char *name)
{
	return MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, name);
}

const char *http_query(struct http_req *r, const char *name)
{
	return MHD_lookup_connection_value(r->c, MHD_GET_ARGUMENT_KIND, name);
}

const char *http_body(const struct http_req *r, size_t *ret_len)
{
	*ret_len = r->len;
	return r->body ? r->body : "";
}

int http_who(const struct http_req *r)
{
	return r->who;
}

static const struct part *part_named(const struct http_req *r, const char *name)
{
	for (size_t i = 0; i < r->n_parts; i++)
		if (!strcmp(r->parts[i].name, name))
			return &r->parts[i];
	return NULL;
}

const char *http_part(const struct http_req *r, const char *name, size_t *ret_len)
{
	const struct part *p = part_named(r, name);

	if (p && ret_len)
		*ret_len = p->len;
	return p ? (p->data ? p->data : "") : NULL;
}

const char *http_part_file(const struct http_req *r, const char *name)
{
	const struct part *p = part_named(r, name);

	return p ? p->file : NULL;
}

bool http_gone(struct http_req *r)
{
	const union MHD_ConnectionInfo *i = MHD_get_connection_info(r->c, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct pollfd p = { .events = POLLRDHUP };

	if (!i)
		return true;
	p.fd = i->connect_fd;
	return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL));
}

json_t *http_json(struct http_req *r)
{
	json_error_t e;
	json_t *j = json_loadb(r->body ? r->body : "", r->len, JSON_REJECT_DUPLICATES, &e);

	if (!j) {
		http_error(r, 400, "invalid_json", NULL, "the body is not JSON: line %d, column %d: %s", e.line, e.column, e.text);
	} else if (!json_is_object(j)) {
		json_decref(j);
		j = NULL;
		http_error(r, 400, "invalid_json", NULL, "the body must be a JSON object");
	}
	return j;
}

/* -- the answer --------------------------------------------------------------------- */

bool http_answered(const struct http_req *r)
{
	return r->answered;
}

void http_answer_header(struct http_req *r, const char *name, const char *value)
{
	if (r->n_extra == sizeof(r->extra) / sizeof(r->extra[0]))
		return;
	r->extra[r->n_extra].name = strdup(name);
	r->extra[r->n_extra].value = strdup(value);
	if (r->extra[r->n_extra].name && r->extra[r->n_extra].value) {
		r->n_extra++;
	} else {
		free(r->extra[r->n_extra].name);
		free(r->extra[r->n_extra].value);
	}
}

static void queue(struct http_req *r, int status, const char *type, struct MHD_Response *resp)
{
	if (r->answered || !resp) {
		if (resp)
			MHD_destroy_response(resp);
		return;
	}
	r->answered = true;
	r->status = status;
	if (type)
		MHD_add_response_header(resp, "Content-Type", type);
	MHD_add_response_header(resp, "X-Request-Id", r->id);
	if (r->s->o.cors) {
		MHD_add_response_header(resp, "Access-Control-Allow-Origin", r->s->o.cors);
		MHD_add_response_header(resp, "Access-Control-Allow-Headers", "Authorization, Content-Type, X-Api-Key");
		MHD_add_response_header(resp, "Access-Control-Allow-Methods", "GET, POST, OPTIONS");
	}
	for (size_t i = 0; i < r->n_extra; i++)
		MHD_add_response_header(resp, r->extra[i].name, r->extra[i].value);
	watch_state(r->watched, status == 101 ? WATCH_NONE : WATCH_ANSWER, r->sent);
	MHD_queue_response(r->c, (unsigned int)status, resp);
	MHD_destroy_response(resp);
}

void http_reply(struct http_req *r, int status, const char *type, const void *body, size_t len)
{
	r->sent = len;
	queue(r, status, type, MHD_create_response_from_buffer(len, (void *)body, MHD_RESPMEM_MUST_COPY));
}

void http_reply_json(struct http_req *r, int status, json_t *j)
{
	char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;

	json_decref(j);
	if (!text) {
		http_reply(r, 500, "application/json", "{\"error\":{\"message\":\"out of memory\",\"type\":\"server_error\",\"param\":null,\"code\":null}}", 83);
		return;
	}
	r->sent = strlen(text);
	queue(r, status, "application/json", MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE));
}

static const char *error_type(int status)
{
	switch (status) {
	case 401: return "authentication_error";
	case 403: return "permission_error";
	case 404: return "not_found_error";
	case 429: return "rate_limit_error";
	case 503: return "overloaded_error";
	default: return status >= 500 ? "server_error" : "invalid_request_error";
	}
}

void http_error(struct http_req *r, int status, const char *code, const char *param, const char *fmt, ...)
{
	char text[HEARTH_ERR_TEXT];
	json_t *j, *msg;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* What a client sent may be quoted in the text, and need not be UTF-8. */
	msg = json_string(text);
	if (!msg) {
		for (char *c = text; *c; c++)
			if ((unsigned char)*c >= 0x80)
				*c = '?';
		msg = json_string(text);
	}
	j = json_pack("{s:{s:o,s:s,s:s?,s:s?}}", "error", "message", msg, "type", error_type(status),
		      "param", param, "code", code);
	http_reply_json(r, status, j);
}

static ssize_t stream_next(void *cls, uint64_t pos, char *buf, size_t max)
{
	struct http_req *r = cls;
	long n;

	watch_state(r->watched, WATCH_SERVER, 0);
	n = r->next(r->arg, buf, max);
	watch_state(r->watched, WATCH_ANSWER, n > 0 ? (size_t)n : 0);

	if (n > 0)
		r->sent += (uint64_t)n;
	return n > 0 ? n : n == 0 ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
}

void http_stream(struct http_req *r, int status, const char *type,
		 long (*next)(void *, char *, size_t), void (*end)(void *), void *arg)
{
	struct MHD_Response *resp;

	r->next = next;
	r->end = end;
	r->arg = arg;
	http_answer_header(r, "Cache-Control", "no-cache");
	resp = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16384, stream_next, r, NULL);
	queue(r, status, type, resp);
}

/* -- upgrade -------------------------------------------------------------------------- */

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

static void *upgraded_thread(void *p)
{
	struct upgraded *u = p;

	u->run(u->arg, u->fd, u->extra, u->n_extra);
	MHD_upgrade_action(u->h, MHD_UPGRADE_ACTION_CLOSE);
	atomic_fetch_sub(&u->s->running, 1);
	free(u->extra);
	free(u);
	return NULL;
}

static void upgraded(void *cls, struct MHD_Connection *c, void *con_cls, const char *extra, size_t n, MHD_socket fd,
		     struct MHD_UpgradeResponseHandle *h)
{
	struct upgraded *u = cls;
	pthread_attr_t a;
	pthread_t t;

	if (con_cls)
		((struct http_req *)con_cls)->up = NULL;
	u->h = h;
	u->fd = fd;
	u->extra = n ? malloc(n) : NULL;
	if (u->extra) {
		memcpy(u->extra, extra, n);
		u->n_extra = n;
	}
	pthread_attr_init(&a);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&t, &a, upgraded_thread, u)) {
		/* No thread to serve it: the connection is closed, the client sees it at once. */
		u->drop(u->arg);
		MHD_upgrade_action(h, MHD_UPGRADE_ACTION_CLOSE);
		atomic_fetch_sub(&u->s->running, 1);
		free(u->extra);
		free(u);
	}
	pthread_attr_destroy(&a);
}

void http_upgrade(struct http_req *r, const char *accept,
		  void (*run)(void *, int, const char *, size_t), void (*drop)(void *), void *arg)
{
	struct upgraded *u = calloc(1, sizeof(*u));
	struct MHD_Response *resp;

	/* Counted first, looked at then: http_stop() does it the other way round, so one of the two sees the other. */
	atomic_fetch_add(&r->s->running, 1);
	if (atomic_load(&r->s->stopping)) {
		http_error(r, 503, "stopping", NULL, "the server is stopping");
		goto not;
	}
	if (!u) {
		http_error(r, 500, NULL, NULL, "out of memory");
		goto not;
	}
	u->s = r->s;
	u->run = run;
	u->drop = drop;
	u->arg = arg;
	resp = MHD_create_response_for_upgrade(upgraded, u);
	if (!resp) {
		http_error(r, 500, NULL, NULL, "out of memory");
		goto not;
	}
	r->up = u;
	MHD_add_response_header(resp, "Upgrade", "websocket");
	MHD_add_response_header(resp, "Sec-WebSocket-Accept", accept);
	queue(r, 101, NULL, resp);
	return;
not:
	free(u);
	atomic_fetch_sub(&r->s->running, 1);
	drop(arg);
}

/* -- MHD's side ------------------------------------------------------------------------ */

static enum MHD_Result take_part(void *cls, enum MHD_ValueKind kind, const char *key, const char *file,
				 const char *type, const char *enc, const char *data, uint64_t off, size_t size)
{
	struct http_req *r = cls;
	struct part *p = NULL;
	char *q;

	if (!key)
		return MHD_YES;
	if (off && r->n_parts && !strcmp(r->parts[r->n_parts - 1].name, key))
		p = &r->parts[r->n_parts - 1];
	if (!p) {
		if (r->n_parts == MAX_PARTS)
			return MHD_NO;
		p = &r->parts[r->n_parts];
		*p = (struct part){ .name = strdup(key), .file = file ? strdup(file) : NULL };
		if (!p->name)
			return MHD_NO;
		r->n_parts++;
	}
	q = realloc(p->data, p->len + size + 1);
	if (!q)
		return MHD_NO;
	p->data = q;
	if (size)
		memcpy(q + p->len, data, size);
	p->len += size;
	q[p->len] = 0;
	return MHD_YES;
}

static const char *bearer(struct http_req *r)
{
	const char *a = http_header(r, "Authorization");

	if (a && !strncasecmp(a, "Bearer ", 7))
		return a + 7 + strspn(a + 7, " ");
	a = http_header(r, "x-api-key");
	if (!a)
		a = http_header(r, "api-key");
	/* A browser's WebSocket can set no header but this one. */
	if (!a && (a = http_header(r, "Sec-WebSocket-Protocol")) && (a = strstr(a, "openai-insecure-api-key."))) {
		snprintf(r->key, sizeof(r->key), "%.*s", (int)strcspn(a + 24, ", "), a + 24);
		a = r->key;
	}
	return a;
}

/*
 * Any page that a browser shows could ask a server on the same machine, and
 * without keys it would be let in. Only a browser sends Origin, and cannot be
 * made to lie about it.
 */
static bool foreign(struct http_req *r)
{
	const char *origin = http_header(r, "Origin"), *host = http_header(r, "Host"), *cors = r->s->o.cors, *at;

	if (!origin || (cors && (!strcmp(cors, "*") || !strcasecmp(cors, origin))))
		return false;
	at = strstr(origin, "://");
	return !at || !host || strcasecmp(at + 3, host);
}

/*
 * A name that somebody's DNS points at this machine makes a foreign page one of
 * our origin. Addresses and localhost cannot be had that way, and who has a key
 * is no such page.
 */
static bool rebound(struct http_req *r)
{
	const char *host = http_header(r, "Host"), *end;
	struct in6_addr a;
	char name[256];
	size_t n;

	if (!host || r->s->o.unix_path)
		return false;
	end = *host == '[' ? strchr(host, ']') : host + strcspn(host, ":");
	n = end ? (size_t)(end - host) : 0;
	if (!end || n >= sizeof(name) || (*host == '[' ? end[1] && end[1] != ':' : false))
		return true;
	memcpy(name, host, n);
	name[n] = 0;
	if (*host == '[')
		return inet_pton(AF_INET6, name + 1, &a) != 1;
	if (inet_pton(AF_INET, name, &a) == 1 || !strcasecmp(name, "localhost"))
		return false;
	return n < 10 || strcasecmp(name + n - 10, ".localhost");
}

/* Finds the route and the right to use it; false when it answered already. */
static bool admit(struct http_req *r)
{
	const struct http_opts *o = &r->s->o;
	bool path_known = false;
	const char *len;
	char allow[64] = "";
	size_t max = r->s->max_body;

	for (size_t i = 0; i < o->n_routes; i++) {
		const struct http_route *t = &o->routes[i];

		if (t->flags & HTTP_PREFIX ? strncmp(r->path, t->path, strlen(t->path)) : strcmp(r->path, t->path))
			continue;
		if (!strcmp(t->method, r->method) || (!strcmp(r->method, "HEAD") && !strcmp(t->method, "GET") && !(t->flags & HTTP_UPGRADE))) {
			r->route = t;
			break;
		}
		path_known = true;
		if (strlen(allow) + strlen(t->method) + 3 < sizeof(allow)) {
			strcat(allow, *allow ? ", " : "");
			strcat(allow, t->method);
		}
	}
	if (!r->route && path_known && !strcmp(r->method, "OPTIONS")) {
		http_answer_header(r, "Allow", allow);
		http_reply(r, 204, NULL, "", 0);
		return false;
	}
	if (!r->route) {
		if (path_known) {
			http_answer_header(r, "Allow", allow);
			http_error(r, 405, "method_not_allowed", NULL, "%s takes %s, not %s", r->path, allow, r->method);
		} else {
			http_error(r, 404, "not_found", NULL, "there is no %.200s here", r->path);
		}
		return false;
	}
	if (foreign(r)) {
		http_error(r, 403, "foreign_origin", NULL, "a page of another origin asks; http: {cors: ORIGIN} in the configuration lets it");
		return false;
	}
	if (o->auth && o->auth(o->ctx, bearer(r), &r->who) && !(r->route->flags & HTTP_OPEN)) {
		http_answer_header(r, "WWW-Authenticate", "Bearer");
		http_error(r, 401, "invalid_api_key", NULL, bearer(r) ? "this API key is not known" :
			   "an API key is needed: Authorization: Bearer KEY");
		return false;
	}
	if (r->who < 0 && !(r->route->flags & HTTP_OPEN) && rebound(r)) {
		http_error(r, 403, "foreign_host", NULL, "without a key this server is asked by address or as localhost, not as \"%.100s\"", http_header(r, "Host"));
		return false;
	}
	len = http_header(r, "Content-Length");
	if (len && strtoull(len, NULL, 10) > max) {
		http_error(r, 413, "too_large", NULL, "the body is %s bytes; at most %zu are taken", len, max);
		return false;
	}
	return true;
}

static struct watched *watched_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *i = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return i ? i->socket_context : NULL;
}

static void on_connection(void *cls, struct MHD_Connection *c, void **ctx, enum MHD_ConnectionNotificationCode code)
{
	struct http_server *s = cls;
	const union MHD_ConnectionInfo *i = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		*ctx = i ? watch_add(s->watch, i->connect_fd) : NULL;
	} else {
		watch_remove(s->watch, *ctx);
		*ctx = NULL;
	}
}

/*
 * A body whose length was not said grew over the limit. The library takes no
 * answer in the middle of a body, so it is written past it; TLS clients see the
 * connection end.
 */
static void body_too_large(struct http_req *r)
{
	const union MHD_ConnectionInfo *i = MHD_get_connection_info(r->c, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct pollfd p = { .events = POLLIN };
	char text[512], body[256], waste[4096];
	int n = snprintf(body, sizeof(body), "{\"error\":{\"message\":\"the body is over %zu bytes\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":\"too_large\"}}",
			 (size_t)r->s->max_body);

	r->answered = true;
	r->status = 413;
	if (!i || r->s->o.tls_cert)
		return;
	n = snprintf(text, sizeof(text), "HTTP/1.1 413 Content Too Large\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
		     "X-Request-Id: %s\r\nConnection: close\r\n\r\n%s", n, r->id, body);
	p.fd = i->connect_fd;
	if (send(p.fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) != n || shutdown(p.fd, SHUT_WR))
		return;
	/* Closed with bytes unread it would be reset, and the answer lost: what is on its way is read for a moment. */
	for (int k = 0; k < 256 && poll(&p, 1, 200) > 0 && recv(p.fd, waste, sizeof(waste), MSG_DONTWAIT) > 0; k++)
		;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url, const char *method,
				  const char *version, const char *upload, size_t *upload_len, void **con_cls)
{
	struct http_server *s = cls;
	struct http_req *r = *con_cls;
	void *ctx;

	if (!r) {
		static _Thread_local bool brief;
		const char *type;

		if (!brief) {
			brief = true;
			thread_brief();
		}

		r = calloc(1, sizeof(*r));
		if (!r)
			return MHD_NO;
		r->s = s;
		r->c = c;
		r->who = -1;
		r->watched = watched_of(c);
		watch_state(r->watched, WATCH_BODY, 0);
		r->t0 = now_ns();
		r->method = strdup(method);
		r->path = strdup(url);
		snprintf(r->id, sizeof(r->id), "req-%lx-%lx", (unsigned long)getpid(), atomic_fetch_add(&next_id, 1) + 1);
		*con_cls = r;
		if (!r->method || !r->path)
			return MHD_NO;
		if (!admit(r))
			return MHD_YES;
		type = http_header(r, "Content-Type");
		if (r->route->flags & HTTP_MULTIPART && type && !strncasecmp(type, "multipart/form-data", 19)) {
			r->pp = MHD_create_post_processor(c, 65536, take_part, r);
			if (!r->pp)
				http_error(r, 400, "invalid_multipart", NULL, "the multipart body has no boundary");
		}
		return MHD_YES;
	}
	if (*upload_len) {
		size_t n = *upload_len;
		char *q;

		*upload_len = 0;
		if (r->answered)
			return MHD_YES;
		watch_state(r->watched, WATCH_BODY, n);
		/* No answer can be given before the body ends: the rest is not kept, and of too much of it no end is waited for. */
		if (r->too_long || r->len + n > s->max_body) {
			r->too_long = true;
			r->len += n;
			if (r->len / 4 <= s->max_body)
				return MHD_YES;
			body_too_large(r);
			return MHD_NO;
		}
		if (r->pp) {
			r->len += n;
			if (MHD_post_process(r->pp, upload, n) == MHD_NO)
				r->refused = true;
			return MHD_YES;
		}
		if (r->len + n + 1 > r->cap) {
			size_t cap = (r->len + n) * 2 + 1024;

			q = realloc(r->body, cap);
			if (!q)
				return MHD_NO;
			r->body = q;
			r->cap = cap;
		}
		memcpy(r->body + r->len, upload, n);
		r->len += n;
		r->body[r->len] = 0;
		return MHD_YES;
	}
	if (r->answered)
		return MHD_YES;
	if (r->too_long) {
		http_error(r, 413, "too_large", NULL, "the body is over %zu bytes", (size_t)s->max_body);
		return MHD_YES;
	}
	if (r->pp && (MHD_destroy_post_processor(r->pp) == MHD_NO || r->refused)) {
		r->pp = NULL;
		http_error(r, 400, "invalid_multipart", NULL, "the multipart body is broken or has over %d parts", MAX_PARTS);
		return MHD_YES;
	}
	r->pp = NULL;
	watch_state(r->watched, WATCH_SERVER, 0);
	ctx = s->ctx;
	if (ctx)
		r->route->handle(r, ctx);
	else if (s->o.loading)
		s->o.loading(r);
	if (!r->answered)
		http_error(r, 500, NULL, NULL, "the request was not answered");
	return MHD_YES;
}

/* A path as it came: decoded, it could look like lines of the log. */
static void plain(const char *s, char *to, size_t cap)
{
	size_t n = 0;

	for (; *s && n + 4 < cap; s++)
		if ((unsigned char)*s > 0x20 && (unsigned char)*s < 0x7f && *s != '%')
			to[n++] = *s;
		else
			n += (size_t)snprintf(to + n, 4, "%%%02x", (unsigned char)*s);
	to[n] = 0;
}

static void on_completed(void *cls, struct MHD_Connection *c, void **con_cls, enum MHD_RequestTerminationCode why)
{
	struct http_server *s = cls;
	struct http_req *r = *con_cls;
	char method[64], path[512];

	if (!r)
		return;
	watch_state(r->watched, r->status == 101 ? WATCH_NONE : WATCH_HEAD, 0);
	if (r->end)
		r->end(r->arg);
	if (r->up) {
		r->up->drop(r->up->arg);
		free(r->up);
		atomic_fetch_sub(&s->running, 1);
	}
	if (s->o.log && r->method && r->path) {
		plain(r->method, method, sizeof(method));
		plain(r->path, path, sizeof(path));
		s->o.log(s->o.ctx, r->id, method, path, r->status, now_ns() - r->t0, r->sent, r->who);
	}
	if (s->o.release)
		s->o.release(s->o.ctx, r->who);
	if (r->pp)
		MHD_destroy_post_processor(r->pp);
	for (size_t i = 0; i < r->n_parts; i++) {
		free(r->parts[i].name);
		free(r->parts[i].file);
		free(r->parts[i].data);
	}
	for (size_t i = 0; i < r->n_extra; i++) {
		free(r->extra[i].name);
		free(r->extra[i].value);
	}
	free(r->method);
	free(r->path);
	free(r->body);
	free(r);
	*con_cls = NULL;
}

/* MHD's own complaints about broken clients are not the server's log. */
static void no_log(void *cls, const char *fmt, va_list ap)
{
}

int http_start(const struct http_opts *o, struct http_server **ret, struct hearth_err *err)
{
	unsigned int flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
			     MHD_USE_ERROR_LOG | MHD_ALLOW_UPGRADE | MHD_USE_ITC;
	struct http_server *s = calloc(1, sizeof(*s));
	struct MHD_OptionItem tls[3] = { { MHD_OPTION_END, 0, NULL } };
	int fd;

	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	s->o = *o;
	s->max_body = o->max_body;
	fd = o->unix_path ? listen_unix(o->unix_path, err) : listen_tcp(o->host, o->port, &s->port, err);
	if (fd < 0) {
		free(s);
		return fd;
	}
	if (o->unix_path)
		s->unix_path = strdup(o->unix_path);
	if (o->tls_cert) {
		flags |= MHD_USE_TLS;
		tls[0] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)o->tls_cert };
		tls[1] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)o->tls_key };
		tls[2] = (struct MHD_OptionItem){ MHD_OPTION_END, 0, NULL };
	}
	if (watch_new(o->idle_seconds, &s->watch)) {
		close(fd);
		free(s->unix_path);
		free(s);
		return err_set(err, -EAGAIN, "no thread for the server");
	}
	s->d = MHD_start_daemon(flags, 0, NULL, NULL, on_request, s,
				MHD_OPTION_EXTERNAL_LOGGER, no_log, NULL,
				MHD_OPTION_LISTEN_SOCKET, fd,
				MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
				MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
				MHD_OPTION_CONNECTION_LIMIT, o->max_connections,
				MHD_OPTION_CONNECTION_TIMEOUT, o->idle_seconds,
				MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)65536,
				MHD_OPTION_ARRAY, tls,
				MHD_OPTION_END);
	if (!s->d) {
		watch_free(s->watch);
		close(fd);
		free(s->unix_path);
		free(s);
		return err_set(err, -EINVAL, o->tls_cert ? "the server does not start: the TLS certificate or key is not usable" :
			       "the server does not start");
	}
	*ret = s;
	return 0;
}

void http_set_max_body(struct http_server *s, size_t max_body)
{
	s->max_body = max_body;
}

void http_serve(struct http_server *s, void *ctx)
{
	s->ctx = ctx;
}

uint16_t http_port(const struct http_server *s)
{
	return s->port;
}

void http_quiesce(struct http_server *s)
{
	int fd = MHD_quiesce_daemon(s->d);

	if (fd >= 0)
		close(fd);
}

void http_stop(struct http_server *s)
{
	if (!s)
		return;
	/*
	 * Upgraded connections end by themselves once their owner shuts them down. The
	 * library does not wait for them: it would take away what they stand on.
	 */
	atomic_store(&s->stopping, true);
	while (atomic_load(&s->running))
		usleep(1000);
	MHD_stop_daemon(s->d);
	watch_free(s->watch);
	if (s->unix_path)
		unlink(s->unix_path);
	free(s->unix_path);
	free(s);
}
