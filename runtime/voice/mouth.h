/* SPDX-License-Identifier: MIT */
/*
 * The play thread: takes samples from the ring and gives them to a WAV file, a
 * sound card, or both. The ring between it and the speech engine is bounded: a
 * slow card holds the engine back, nothing is overwritten.
 */
#ifndef HEARTH_VOICE_MOUTH_H
#define HEARTH_VOICE_MOUTH_H

#include "voice/audio.h"
#include "voice/ring.h"
#include "voice/trace.h"

struct mouth;

int mouth_new(size_t ring_samples, struct mouth **ret_mouth);
void mouth_free(struct mouth *m);

/* Starts a turn's playing. The outputs are the caller's, and may be NULL. */
int mouth_start(struct mouth *m, struct audio_out *file, struct audio_out *card, struct trace *trace);

/* From the speech engine's thread; waits for room. -ECANCELED when stopped or when an output failed. */
int mouth_say(struct mouth *m, const int16_t *pcm, size_t n);

/* No more will come: waits until the last sample is out. 0, or the first failure. *ret_samples: given out. */
int mouth_finish(struct mouth *m, uint64_t *ret_samples, struct hearth_err *err);

/* Any thread: silence now. mouth_finish() must still be called. */
void mouth_stop(struct mouth *m);

#endif
