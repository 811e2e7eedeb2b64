/* SPDX-License-Identifier: MIT */
/*
 * A voice by formula, for tests that must not depend on a synthesiser: pulses
 * of a falling pitch through three resonators (the formants of a vowel), in
 * syllables of 250 ms with 100 ms between, over a soft hiss. The same samples
 * on every machine up to the last bit.
 */
#ifndef HEARTH_VOICE_SIGNAL_H
#define HEARTH_VOICE_SIGNAL_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

static inline uint32_t signal_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* @n samples at 16 kHz: silence to 0.5 s, syllables to 2.5 s, silence. */
static inline void signal_voice(int16_t *pcm, size_t n)
{
	static const double formants[4][3] = {
		{ 730, 1090, 2440 }, { 270, 2290, 3010 }, { 300, 870, 2240 }, { 530, 1840, 2480 },
	};
	double y1[3] = { 0 }, y2[3] = { 0 }, phase = 0;
	uint32_t rnd = 1;

	for (size_t i = 0; i < n; i++) {
		double t = (double)i / 16000, x, out = 0;
		double in = t - 0.5;
		int syllable = in >= 0 ? (int)(in / 0.35) : -1;
		double s = in - 0.35 * syllable;
		int voiced = in >= 0 && in < 2.0 && s < 0.25;
		double f0 = 140 - 12 * in;

		x = ((double)signal_random(&rnd) / (1 << 24) - 0.5) * 0.02;
		if (voiced) {
			phase += f0 / 16000;
			if (phase >= 1) {
				phase -= 1;
				x += sin(3.14159265358979 * s / 0.25) * 6;
			}
		}
		for (int k = 0; k < 3; k++) {
			double f = formants[syllable < 0 ? 0 : syllable % 4][k];
			double r = exp(-3.14159265358979 * (60 + 30 * k) / 16000);
			double y = x * (1 - r) + 2 * r * cos(2 * 3.14159265358979 * f / 16000) * y1[k] - r * r * y2[k];

			y2[k] = y1[k];
			y1[k] = y;
			out += y / (1 + k);
		}
		out *= 8000;
		pcm[i] = (int16_t)(out > 32000 ? 32000 : out < -32000 ? -32000 : lrint(out));
	}
}

#endif
