// SPDX-License-Identifier: MIT
/* Who may ask for what: routes, keys, and pages of other origins. */
#include "server/http.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <microhttpd.h>

#include "server/http_priv.h"

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

bool http_admit(struct http_req *r)
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
