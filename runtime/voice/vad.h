/* SPDX-License-Identifier: MIT */
/*
 * Is somebody speaking? Push 16 kHz samples of any count; get events with
 * sample positions. Positions count from the first sample pushed after
 * vad_reset, and do not depend on how the audio was cut into pushes.
 *
 * A detector gives a probability per 32 ms window: Silero where its weights
 * were set up, an adaptive energy detector where not. One endpoint rule turns
 * the probabilities into events, whichever detector runs:
 *
 *   START   speech began at `at`, which lies before `decided`
 *   PAUSE   the first silent window after speech; speech ended at `at` if
 *           nothing follows. Work on the transcript can begin here.
 *   RESUME  the pause was only a pause
 *   END     the pause lasted the endpoint wait: speech ended at `at`
 *   BLIP    instead of END: what began was shorter than min_speech_ms, or
 *           Silero was never sure that it was a voice
 */
#ifndef HEARTH_VOICE_VAD_H
#define HEARTH_VOICE_VAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "voice/account.h"

#define VAD_RATE   16000
#define VAD_WINDOW 512 /* samples */

enum vad_kind {
	VAD_SILERO,
	VAD_ENERGY,
};

enum vad_event_kind {
	VAD_START,
	VAD_PAUSE,
	VAD_RESUME,
	VAD_END,
	VAD_BLIP,
};

struct vad_event {
	enum vad_event_kind kind;
	int64_t at;       /* sample where it happened */
	int64_t decided;  /* sample at which it was known */
	float probability;
};

struct vad_options {
	enum vad_kind kind;
	const char *weights;  /* Silero: the converted file (silero.h) */
	float on, off;        /* probability thresholds, off < on */
	int start_ms;         /* speech must last this long before START */
	int min_speech_ms;    /* shorter is a blip */
	int end_wait_ms;      /* silence before END */
	int pad_ms;           /* START.at lies this much before the first loud window */
	int max_speech_ms;    /* longer speech is ended by force: END at that place */
};

void vad_defaults(struct vad_options *o); /* Silero, 0.5/0.35, 64, 192, 256, 160, 30000 */

struct vad;

/*
 * -ENOENT: no weights at that path (set-up did not fetch them): the caller
 * says so and opens VAD_ENERGY. -EBADMSG: not our weights file or a damaged
 * one. -ENOSPC and a sentence when the tenant's budget refuses.
 */
int vad_open(const struct vad_options *o, const struct voice_account *acc,
	     struct vad **ret, struct hearth_err *err);
void vad_close(struct vad *v);
void vad_reset(struct vad *v); /* position 0, fresh state; the noise floor stays */

/* May be called between pushes, also from @fn: the caller knows more about the sentence. */
void vad_set_end_wait(struct vad *v, int ms);

typedef void vad_event_fn(void *ctx, const struct vad_event *ev);
void vad_push(struct vad *v, const int16_t *pcm, size_t n, vad_event_fn *fn, void *ctx);

/* The audio ends here: closes open speech with END or BLIP at once. */
void vad_finish(struct vad *v, vad_event_fn *fn, void *ctx);

float vad_probability(const struct vad *v); /* of the last whole window */
int64_t vad_position(const struct vad *v);
enum vad_kind vad_kind(const struct vad *v);
const char *vad_kind_name(enum vad_kind k); /* "Silero", "energy" */
size_t vad_footprint(const struct vad *v);  /* bytes, measured */
size_t vad_predict(const struct vad_options *o); /* bytes, before it is opened */

#endif
