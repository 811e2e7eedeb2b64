/* SPDX-License-Identifier: MIT */
/* A whole recording to text: cut at its pauses, each piece heard on its own. */
#ifndef HEARTH_SERVER_TRANSCRIBE_H
#define HEARTH_SERVER_TRANSCRIBE_H

#include "server/speech.h"

struct transcript_segment {
	double from, to;           /* seconds */
	char *text;                /* may be "": speech that is no command */
};

struct transcript {
	struct transcript_segment *segments;
	size_t n;
	double duration;
	char *text;                /* all of it, joined by spaces; never NULL */
};

/*
 * @data is a sound file (audio.h says which), called @name in sentences. @on_segment (may be NULL) is
 * called as each is known; @gone (may be NULL) ends it early with -ECANCELED.
 * -EBADMSG, -ENODATA, -ENOTSUP: the file, with the reason; -ETIMEDOUT.
 */
int transcribe(struct speech *sp, const char *name, const void *data, size_t size, int wait_ms,
	       void (*on_segment)(void *arg, const struct transcript_segment *s), bool (*gone)(void *arg), void *arg,
	       struct transcript *ret, struct hearth_err *err);
void transcript_done(struct transcript *t);

#endif
