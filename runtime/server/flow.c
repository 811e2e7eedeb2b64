// SPDX-License-Identifier: MIT
#include "server/flow.h"

#include <stdlib.h>
#include <string.h>

#include "base/mono.h"

#define PING_MS 10000
#define LOOK_MS 50              /* how long a client's leaving may go unnoticed */

void flow_put(struct flow *f, const char *s, size_t n)
{
	if (f->n + n > f->cap) {
		const size_t cap = (f->n + n) * 2 + 1024;
		char *p = realloc(f->out, cap);

		if (!p) {
			f->ended = true;
			return;
		}
		f->out = p;
		f->cap = cap;
	}
	memcpy(f->out + f->n, s, n);
	f->n += n;
}

void flow_puts(struct flow *f, const char *s)
{
	flow_put(f, s, strlen(s));
}

void flow_string(struct flow *f, const char *s, size_t n)
{
	static const char hex[] = "0123456789abcdef";
	size_t from = 0;

	flow_put(f, "\"", 1);
	for (size_t i = 0; i < n; i++) {
		const unsigned char c = (unsigned char)s[i];
		char u[7] = { '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15], 0 };

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		flow_put(f, s + from, i - from);
		from = i + 1;
		switch (c) {
		case '"': flow_put(f, "\\\"", 2); break;
		case '\\': flow_put(f, "\\\\", 2); break;
		case '\n': flow_put(f, "\\n", 2); break;
		case '\r': flow_put(f, "\\r", 2); break;
		case '\t': flow_put(f, "\\t", 2); break;
		default: flow_put(f, u, 6); break;
		}
	}
	flow_put(f, s + from, n - from);
	flow_put(f, "\"", 1);
}

static void pace(struct flow *f)
{
	const uint64_t gone = f->sent_ns ? (uint64_t)mono_ns() - f->sent_ns : FLOW_MS * 1000000u;

	if (f->run && gone < FLOW_MS * 1000000u)
		run_rest(f->run, FLOW_MS - (int)(gone / 1000000u));
}

long flow_next(void *flow, char *buf, size_t cap)
{
	struct flow *f = flow;
	const struct run_event *e;
	size_t n;

	while (f->at == f->n) {
		f->at = f->n = 0;
		if (f->ended)
			return 0;
		pace(f);
		e = run_next(f->run, LOOK_MS);
		if (!e) {
			if (http_gone(f->r))
				return -1;
			f->idle_ms += LOOK_MS;
			if (f->idle_ms >= PING_MS) {
				flow_put(f, ": ping\n\n", 8);
				f->idle_ms = 0;
			}
			continue;
		}
		f->idle_ms = 0;
		f->take(f, e);
		/* What is ready goes in one piece. */
		while (!f->ended && f->run && (e = run_next(f->run, 0)))
			f->take(f, e);
		f->sent_ns = (uint64_t)mono_ns();
	}
	n = f->n - f->at < cap ? f->n - f->at : cap;
	memcpy(buf, f->out + f->at, n);
	f->at += n;
	return (long)n;
}

void flow_done(struct flow *f)
{
	free(f->out);
}
