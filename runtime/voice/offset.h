/* SPDX-License-Identifier: MIT */
/*
 * Takes the constant offset out of a stream of 16-bit sound. Cheap microphones
 * have one, and detector and recogniser hear nothing of a voice that stands on
 * it. A high-pass of one pole at 20 Hz: 100 Hz loses 0.2 dB.
 */
#ifndef HEARTH_VOICE_OFFSET_H
#define HEARTH_VOICE_OFFSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OFFSET_RATE 16000

/* Of one stream; all zero before its first sample. */
struct offset {
	bool begun;
	float in, out;   /* the sample before */
};

/* In place may be: @to == @from. */
void offset_remove(struct offset *o, const int16_t *from, size_t n, int16_t *to);

#endif
