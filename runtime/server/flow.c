// SPDX-License-Identifier: MIT
#include "server/flow.h"

#include <stdlib.h>
#include <string.h>

#include "base/mono.h"

#define PING_MS 10000
#define LOOK_MS 50              /* how long a client's leaving may go unnoticed */

void flow_put(struct flow *f, const char *s, size_t n)
{
	text_put(&f->out, s, n);
	f->ended |= f->out.err != 0;
}

void flow_puts(struct flow *f, const char *s)
{
	flow_put(f, s, strlen(s));
}

void flow_string(struct flow *f, const char *s, size_t n)
{
	text_string(&f->out, s, n);
	f->ended |= f->out.err != 0;
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

	while (f->at == f->out.n) {
		f->at = f->out.n = 0;
		if (f->ended)
			return f->out.err ? -1 : 0;
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
	n = f->out.n - f->at < cap ? f->out.n - f->at : cap;
	memcpy(buf, f->out.p + f->at, n);
	f->at += n;
	return (long)n;
}

void flow_done(struct flow *f)
{
	free(f->out.p);
}
