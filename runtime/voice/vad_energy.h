/* SPDX-License-Identifier: MIT */
/*
 * The voice detector for machines without the Silero weights: how far a window
 * of 32 ms stands above a noise floor that follows the room, and whether it
 * has the pitch of a voice. It knows loud from soft and hum from hiss, not
 * speech from music.
 */
#ifndef HEARTH_VOICE_VAD_ENERGY_H
#define HEARTH_VOICE_VAD_ENERGY_H

#include <stddef.h>

#define VAD_ENERGY_MAX  512 /* samples in a window, at most */
#define VAD_ENERGY_PAST 10 /* windows looked back on for pitch: 0.3 s */

struct vad_energy {
	float floor_db;      /* of the room; kept over a reset */
	int seen;            /* windows since the start, stops counting at 32 */
	float last;          /* sample before the window, for the pre-emphasis */
	float pitch[VAD_ENERGY_PAST];
	int at;
	float p;             /* of the last window */
};

void vad_energy_init(struct vad_energy *e);
float vad_energy_step(struct vad_energy *e, const float *pcm, size_t n);

#endif
