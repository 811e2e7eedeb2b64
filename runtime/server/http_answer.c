// SPDX-License-Identifier: MIT
/* What a handler sees of a request, and what it gives back. */
#include "server/http.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <microhttpd.h>

#include "server/http_priv.h"
#include "server/watch.h"

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

static void *upgraded_thread(void *p)
{
	struct upgraded *u = p;

	u->run(u->arg, u->fd, u->extra, u->n_extra);
	MHD_upgrade_action(u->h, MHD_UPGRADE_ACTION_CLOSE);
	http_ended(u->s);
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
		http_ended(u->s);
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
	http_upgraded(r->s);
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
	http_ended(r->s);
	drop(arg);
}
