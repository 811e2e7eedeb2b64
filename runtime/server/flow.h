/* SPDX-License-Identifier: MIT */
/*
 * A run's answer as a stream of server-sent events: who answers turns the run's
 * events into bytes, this keeps them for the connection, says ": ping" in long
 * silences, notices that the client left, and paces: the first piece goes at
 * once, and behind one that went no other goes for FLOW_MS, except the end. A
 * model that writes faster than that is not slowed by a write for each token,
 * and no eye sees more than a frame of a screen.
 */
#ifndef HEARTH_SERVER_FLOW_H
#define HEARTH_SERVER_FLOW_H

#include "server/http.h"
#include "server/run.h"
#include "token/json_text.h"

#define FLOW_MS 16

struct flow {
	struct http_req *r;
	struct run *run;           /* the one that runs now; NULL between two */
	/* Turns @e into flow_put() calls; sets .ended at the last. */
	void (*take)(struct flow *f, const struct run_event *e);
	bool ended;                /* nothing follows what is there */
	/* this file's */
	struct text out;
	size_t at;
	int idle_ms;
	uint64_t sent_ns;
};

/* Without memory the stream is broken off (.ended), not shortened in silence. */
void flow_put(struct flow *f, const char *s, size_t n);
void flow_puts(struct flow *f, const char *s);
/* text_string() */
void flow_string(struct flow *f, const char *s, size_t n);
/* For http_stream(), with the flow as its argument. */
long flow_next(void *flow, char *buf, size_t cap);
void flow_done(struct flow *f);   /* frees the bytes */

#endif
