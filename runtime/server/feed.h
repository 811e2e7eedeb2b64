/* SPDX-License-Identifier: MIT */
/*
 * What a run says, on its way from the engine's thread, which writes, to the
 * request's, which reads: one of each, and no lock between them. Saying
 * something costs the engine a copy and two atomic words; it wakes the reader
 * only where that one waits for the next word, not while it rests or wants the
 * end alone. Memory comes in blocks of many tokens, and what a slow reader
 * leaves stays until it is read.
 */
#ifndef HEARTH_SERVER_FEED_H
#define HEARTH_SERVER_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sample/sampler.h"

enum run_event_kind { RUN_CONTENT, RUN_REASONING, RUN_CALL, RUN_LOGPROB, RUN_DONE };

struct run_event {
	enum run_event_kind kind;
	const char *text;          /* content, reasoning; of a call its name; ends with a NUL */
	size_t len;
	const char *arguments;     /* of a call */
	int32_t token;             /* of a logprob */
	struct sampler_pick pick;
};

struct feed;

struct feed *feed_new(void);       /* NULL: no memory */
void feed_free(struct feed *f);    /* when nobody writes any more; NULL is fine */

/* The writer's. False: no memory, and nothing was said. */
bool feed_text(struct feed *f, enum run_event_kind kind, const char *s, size_t n);
bool feed_call(struct feed *f, const char *name, const char *arguments);
bool feed_logprob(struct feed *f, int32_t token, const struct sampler_pick *pick);
void feed_done(struct feed *f);    /* the last; cannot fail */

/*
 * The reader's. The next event, good until the next call, waiting up to
 * @wait_ms; NULL when there was none in that time. Text behind text of the same
 * kind is one event. After RUN_DONE none follow. @whole: only once all is said.
 */
const struct run_event *feed_next(struct feed *f, int wait_ms, bool whole);
/* Lets @ms pass, or until all is said: what comes meanwhile wakes nobody. */
void feed_rest(struct feed *f, int ms);

#endif
