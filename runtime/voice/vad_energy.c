// SPDX-License-Identifier: MIT
#include "voice/vad_energy.h"

#include <math.h>
#include <string.h>

#define QUIET_DB  -72.0f  /* the floor never sinks below: a digital silence is no reference */
#define LOUD_DB   -28.0f  /* nor rises above: speech is not noise */
#define START_DB  -45.0f  /* the first floor, at most: the first window may be speech */
#define ABOVE_DB  10.0f   /* over the floor: as likely speech as not */
#define SLOPE_DB  2.0f
#define RISE_DB   0.12f   /* a window: 3.75 dB a second */
#define LEARN     8       /* windows in which the floor may also jump up */
#define NO_PITCH  0.35f   /* a voice's windows are above this now and then */

void vad_energy_init(struct vad_energy *e)
{
	memset(e, 0, sizeof(*e));
	e->floor_db = -55.0f;
}

/* The strongest echo of the window in itself at 80..400 Hz, 0..1. */
static float pitch_of(const float *x, size_t n)
{
	float best = 0;

	/* Every second sample and lag: 8 kHz is enough for a pitch. */
	for (size_t lag = 40; lag <= 200 && lag + 64 < n; lag += 2) {
		float ab = 0, aa = 1e-9f, bb = 1e-9f;

		for (size_t i = 0; i + lag < n; i += 2) {
			ab += x[i] * x[i + lag];
			aa += x[i] * x[i];
			bb += x[i + lag] * x[i + lag];
		}
		ab /= sqrtf(aa * bb);
		if (ab > best)
			best = ab;
	}
	return best;
}

float vad_energy_step(struct vad_energy *e, const float *pcm, size_t n)
{
	float sum = 0, db, best = 0, p;

	/* Pre-emphasis: rumble and hum weigh less, what carries words more. */
	for (size_t i = 0; i < n; i++) {
		float y = pcm[i] - 0.9f * e->last;

		e->last = pcm[i];
		sum += y * y;
	}
	db = 10 * log10f(sum / (float)n + 1e-12f);
	if (db < QUIET_DB)
		db = QUIET_DB;

	if (e->seen == 0)
		e->floor_db = db < START_DB ? db : START_DB;
	else if (db < e->floor_db)
		e->floor_db += (db - e->floor_db) * 0.3f;
	else if (e->seen < LEARN && db < e->floor_db + 6)
		e->floor_db += (db - e->floor_db) * 0.3f;
	else
		e->floor_db += RISE_DB;
	if (e->floor_db > LOUD_DB)
		e->floor_db = LOUD_DB;
	if (e->seen < 32)
		e->seen++;

	e->pitch[e->at] = pitch_of(pcm, n);
	e->at = (e->at + 1) % VAD_ENERGY_PAST;
	for (int i = 0; i < VAD_ENERGY_PAST; i++)
		if (e->pitch[i] > best)
			best = e->pitch[i];
	p = 1.0f / (1.0f + expf(-(db - e->floor_db - ABOVE_DB) / SLOPE_DB));
	if (best < NO_PITCH)
		p *= 0.3f;
	/* The gap inside a word ("sp", "tt") is no pause. */
	e->p = p > e->p * 0.7f ? p : e->p * 0.7f;
	return e->p;
}
