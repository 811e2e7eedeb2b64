/* SPDX-License-Identifier: MIT */
/* The microphone and the sound card, 16-bit mono. Used through audio.h. */
#ifndef HEARTH_VOICE_ALSA_H
#define HEARTH_VOICE_ALSA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct alsa;

int alsa_open(const char *device, bool capture, int rate, struct alsa **ret, struct hearth_err *err);
/* Up to @n samples; 0 after alsa_stop. */
ssize_t alsa_read(struct alsa *a, int16_t *pcm, size_t n, struct hearth_err *err);
int alsa_write(struct alsa *a, const int16_t *pcm, size_t n, struct hearth_err *err);
int alsa_drain(struct alsa *a, struct hearth_err *err); /* until all is heard */
void alsa_stop(struct alsa *a); /* any thread */
uint64_t alsa_faults(struct alsa *a);  /* overruns or underruns */
uint64_t alsa_pending(struct alsa *a); /* samples written and not yet heard */
void alsa_close(struct alsa *a);

#endif
