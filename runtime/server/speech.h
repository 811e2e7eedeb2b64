/* SPDX-License-Identifier: MIT */
/*
 * The speech engines as services: one recogniser and one voice, each used by
 * one client at a time, the others waiting their turn. Both are tenants of the
 * same memory as the model.
 */
#ifndef HEARTH_SERVER_SPEECH_H
#define HEARTH_SERVER_SPEECH_H

#include <stdbool.h>
#include <stdint.h>

#include "server/config.h"
#include "voice/stt.h"

struct hearth;
struct speech;
struct hearing;
struct wake;

/* Bytes that the engines @cfg asks for take when they are open. */
uint64_t speech_bytes(const struct config *cfg);
/* The same with room to grow, a large home's too: what the account pool has for them. */
uint64_t speech_predict(const struct config *cfg);
/* What is wrong with nothing but worth knowing: longest that it is. */
#define SPEECH_NOTE 320
/*
 * Whether the files, the voice and the phrase that @cfg names are there, in the words of speech_open(); nothing stays
 * open. @note gets what it would note.
 */
int speech_check(const struct config *cfg, char note[SPEECH_NOTE], struct hearth_err *err);
/* Of what is open; "": nothing. */
const char *speech_note(const struct speech *s);
/* Opens what @cfg asks for. The sentence names the engine that does not open. */
int speech_open(const struct config *cfg, struct hearth *h, struct speech **ret, struct hearth_err *err);
void speech_close(struct speech *s);      /* NULL is fine */
/* Of a detector for one client: Silero where its weights are, else the energy detector. @ret points into @s. */
struct vad_options;
void speech_vad_options(const struct speech *s, struct vad_options *ret);
bool speech_hears(const struct speech *s);
/* The phrase to wake up to, or NULL: none. */
const char *speech_wakes(const struct speech *s);
/* A detector of it, for one listener: -EBUSY when all are in use, -ENOTSUP when there is none. */
int speech_wake_take(struct speech *s, struct wake **ret, struct hearth_err *err);
void speech_wake_give(struct speech *s, struct wake *w);   /* NULL is fine */
bool speech_speaks(const struct speech *s);
int speech_rate(const struct speech *s);  /* of what it says, Hz */

/*
 * One utterance. begin waits up to @wait_ms for the recogniser: -ETIMEDOUT.
 * @partial (may be NULL) is called on the recogniser's thread.
 */
int hearing_begin(struct speech *s, int wait_ms, void (*partial)(void *arg, const char *text), void *arg,
		  struct hearing **ret, struct hearth_err *err);
/* 16-bit mono at 16 kHz. */
int hearing_push(struct hearing *h, const int16_t *pcm, size_t n);
/* Ends it and frees @h; ret_r is valid when 0 is returned. */
int hearing_end(struct hearing *h, struct stt_result *ret_r, struct hearth_err *err);
void hearing_drop(struct hearing *h);     /* cancels and frees */

/*
 * The voice that a client calls @name (NULL: it says none): the configured one
 * by its own name or by one of OpenAI's, or another of flite's that is here and
 * has the same rate. *ret is for speech_say() and outlives @s. -ENOENT.
 */
int speech_voice(struct speech *s, const char *name, const char **ret, struct hearth_err *err);

/*
 * Says @text in @voice (NULL: the configured one); @pcm gets 16-bit mono at speech_rate() as it is made and stops
 * it by returning non-zero. Waits up to @wait_ms for the voice. -ETIMEDOUT,
 * -ECANCELED (stopped), -EINVAL (not UTF-8).
 */
int speech_say(struct speech *s, const char *voice, const char *text, double speed, int wait_ms,
	       int (*pcm)(void *arg, const int16_t *pcm, size_t n), void *arg, struct hearth_err *err);

#endif
