/* SPDX-License-Identifier: MIT */
/*
 * Text to speech. One thread speaks phrases in the order they were said, and
 * gives audio while it synthesises: the first samples of a phrase are there
 * long before its last.
 *
 * The audio callback runs on the engine's thread and may block (that is how a
 * full ring holds the engine back); returning non-zero stops that phrase.
 * Every phrase accepted gets exactly one `done`.
 */
#ifndef HEARTH_VOICE_TTS_H
#define HEARTH_VOICE_TTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "voice/account.h"

struct tts_events {
	/* @pcm at tts_rate(); @first marks the first piece of a phrase. */
	int (*audio)(void *ctx, uint64_t id, const int16_t *pcm, size_t n, bool first);
	/* @status 0, -ECANCELED, or -errno; @samples given in all. */
	void (*done)(void *ctx, uint64_t id, int status, uint64_t samples);
	void *ctx;
};

struct tts_options {
	const char *voice;  /* flite: "slt", "rms", "awb", "kal16", "kal"; "espeak-ng" or "espeak-ng:VOICE" */
	float speed;        /* 1.0 natural, 0.5..3 */
	int queue;          /* phrases waiting, at most */
	int cut_silence;    /* cut the silence the voice puts before its first sound */
};

void tts_defaults(struct tts_options *o); /* slt, 1.0, 16, yes */

struct tts;

/* -ENOENT: no such voice here (the sentence lists those there are), -ENOSPC. */
int tts_open(const struct tts_options *o, const struct voice_account *acc,
	     const struct tts_events *ev, struct tts **ret, struct hearth_err *err);
void tts_close(struct tts *t); /* cancels, joins; NULL is legal */
int tts_rate(const struct tts *t);

/*
 * Queues one phrase of UTF-8; its text is copied. Waits up to @wait_ms while
 * the queue is full (-1: for ever): -EAGAIN. -EINVAL for bad UTF-8 or a text
 * over 4096 bytes. A phrase with nothing to say is done at once with 0 samples.
 */
int tts_say(struct tts *t, uint64_t id, const char *text, int wait_ms);

/* Any thread. Every phrase queued or running ends -ECANCELED; at most one more piece is given. */
void tts_cancel(struct tts *t);

/* Sleeps until nothing is queued or running; -EAGAIN when @wait_ms ran out. */
int tts_drain(struct tts *t, int wait_ms);

size_t tts_footprint(const struct tts *t);
size_t tts_predict(const struct tts_options *o);

#endif
