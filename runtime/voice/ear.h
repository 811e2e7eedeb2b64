/* SPDX-License-Identifier: MIT */
/*
 * Whether a sound is like a voice, apart from any words. A voice's pitch
 * glides, where a tune's and a bell's stands or jumps; while it sounds the
 * mouth moves, so that the coarse shape of the spectrum is another a
 * twentieth of a second later; and the spectrum has hills, not needles.
 * docs/speech.md has the figures.
 */
#ifndef HEARTH_VOICE_EAR_H
#define HEARTH_VOICE_EAR_H

#include <stddef.h>
#include <stdint.h>

#define EAR_RATE  16000
#define EAR_FRAME 160               /* samples: hundredths of a second */
#define EAR_MOST  1200              /* frames that are listened to; what follows is not */

struct ear;

struct ear_sound {
	int loud;        /* frames that are loud */
	double voiced;   /* part of them that have the pitch of a voice */
	double glide;    /* of neighbours among these, the part whose pitch moved by 0.05 to 1 semitone */
	double move;     /* change of the spectrum's coarse shape over 50 ms of voice, dB */
	double clear;    /* how well the voiced frames repeat themselves, 0.6 to 1 */
	double needles;  /* what is left of the loud spectra without their coarse shape, dB */
	double voice;    /* of all that: above 0 it is rather a voice than not */
};

int ear_new(struct ear **ret_ear);
void ear_free(struct ear *e);

/* Takes a millisecond or two for a second of sound. -EIO when the front end fails. */
int ear_hear(struct ear *e, const int16_t *pcm, size_t n, struct ear_sound *ret);

#endif
