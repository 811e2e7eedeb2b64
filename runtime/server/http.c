// SPDX-License-Identifier: MIT
#include "server/http.h"

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
#include <unistd.h>

#include <microhttpd.h>

#include "base/mono.h"
#include "base/thread.h"
#include "server/http_priv.h"
#include "server/listen.h"
#include "server/watch.h"

#define STOP_MS 5000             /* for answers under way, when the server stops */

static atomic_ulong next_id;

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
		r->t0 = (uint64_t)mono_ns();
		r->method = strdup(method);
		r->path = strdup(url);
		snprintf(r->id, sizeof(r->id), "req-%lx-%lx", (unsigned long)getpid(), atomic_fetch_add(&next_id, 1) + 1);
		*con_cls = r;
		if (!r->method || !r->path)
			return MHD_NO;
		if (!http_admit(r))
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
	/* Counted first, looked at then, as in http_upgrade(), which counts its own. */
	r->counted = !(r->route->flags & HTTP_UPGRADE);
	pthread_mutex_lock(&s->lock);
	s->answering += r->counted;
	pthread_mutex_unlock(&s->lock);
	ctx = s->ctx;
	if (atomic_load(&s->stopping))
		http_error(r, 503, "stopping", NULL, "the server is stopping");
	else if (ctx)
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
		http_ended(s);
	}
	if (s->o.log && r->method && r->path) {
		plain(r->method, method, sizeof(method));
		plain(r->path, path, sizeof(path));
		s->o.log(s->o.ctx, r->id, method, path, r->status, (uint64_t)mono_ns() - r->t0, r->sent, r->who);
	}
	if (s->o.release)
		s->o.release(s->o.ctx, r->who);
	if (r->counted) {
		pthread_mutex_lock(&s->lock);
		if (!--s->answering)
			pthread_cond_broadcast(&s->ended);
		pthread_mutex_unlock(&s->lock);
	}
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
	pthread_mutex_init(&s->lock, NULL);
	mono_cond(&s->ended);
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

void http_upgraded(struct http_server *s)
{
	pthread_mutex_lock(&s->lock);
	s->running++;
	pthread_mutex_unlock(&s->lock);
}

void http_ended(struct http_server *s)
{
	pthread_mutex_lock(&s->lock);
	if (!--s->running)
		pthread_cond_broadcast(&s->ended);
	pthread_mutex_unlock(&s->lock);
}

void http_stop(struct http_server *s)
{
	struct timespec until;
	int rc = 0;

	if (!s)
		return;
	/*
	 * Upgraded connections end by themselves once their owner shuts them down. The
	 * library does not wait for them: it would take away what they stand on.
	 */
	atomic_store(&s->stopping, true);
	pthread_mutex_lock(&s->lock);
	while (s->running)
		pthread_cond_wait(&s->ended, &s->lock);
	/* Who reads gets the end of an answer; the library would close the connection in the middle of it. */
	until = mono_after(STOP_MS);
	while (s->answering && !rc)
		rc = pthread_cond_timedwait(&s->ended, &s->lock, &until);
	pthread_mutex_unlock(&s->lock);
	MHD_stop_daemon(s->d);
	watch_free(s->watch);
	if (s->unix_path)
		unlink(s->unix_path);
	pthread_cond_destroy(&s->ended);
	pthread_mutex_destroy(&s->lock);
	free(s->unix_path);
	free(s);
}
