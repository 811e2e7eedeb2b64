/* SPDX-License-Identifier: MIT */
/*
 * What a synthesiser must be able to do; tts.c puts the thread, the queue and
 * the charge around it. One thread at a time calls a backend.
 */
#ifndef HEARTH_VOICE_TTS_BACKEND_H
#define HEARTH_VOICE_TTS_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "voice/tts.h"

/* Gets each piece of audio as it is made; non-zero stops the synthesis. */
typedef int tts_piece_fn(void *ctx, const int16_t *pcm, size_t n);

struct tts_backend {
	const char *name;
	/* Whether a voice of this name is this backend's business. */
	int (*takes)(const char *voice);
	int (*open)(const struct tts_options *o, void **ret, struct hearth_err *err);
	/* 0 also when the piece function stopped it. @text is UTF-8, not empty. */
	int (*speak)(void *self, const char *text, tts_piece_fn *fn, void *ctx);
	int (*rate)(void *self);
	size_t (*mapped)(void *self);  /* bytes of libraries and data files, beside the heap */
	size_t (*predict)(const struct tts_options *o); /* heap and mapped */
	void (*close)(void *self);
};

extern const struct tts_backend tts_flite;
extern const struct tts_backend tts_espeak;

#endif
