// SPDX-License-Identifier: MIT
#include "voice/vad_energy.h"

#include <math.h>
#include <string.h>

#define QUIET_DB  -72.0f  /* the floor never sinks below: a digital silence is no reference */
#define LOUD_DB   -28.0f  /* nor rises above: speech is not noise */
#define START_DB  -50.0f  /* the first floor, at most: the first window may be speech */
#define ABOVE_DB  7.0f    /* over the floor: as likely speech as not */
#define SLOPE_DB  2.0f
#define RISE_DB   0.06f   /* a window: 1.9 dB a second */
#define LEARN     8       /* windows in which the floor may also jump up */
#define HOLD      0.75f   /* of a probability, from window to window */
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

	for (size_t lag = 40; lag <= 200 && lag + 64 < n; lag++) {
		float ab = 0, aa = 1e-9f, bb = 1e-9f;

		for (size_t i = 0; i + lag < n; i++) {
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
	float y[VAD_ENERGY_MAX], sum = 0, db, best = 0, p;

	/*
	 * Pre-emphasis: rumble and hum weigh less, what carries words more, and
	 * the slow swing of a noise is not taken for a pitch.
	 */
	for (size_t i = 0; i < n; i++) {
		y[i] = pcm[i] - 0.95f * e->last;
		e->last = pcm[i];
		sum += y[i] * y[i];
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

	e->pitch[e->at] = pitch_of(y, n);
	e->at = (e->at + 1) % VAD_ENERGY_PAST;
	for (int i = 0; i < VAD_ENERGY_PAST; i++)
		if (e->pitch[i] > best)
			best = e->pitch[i];
	p = 1.0f / (1.0f + expf(-(db - e->floor_db - ABOVE_DB) / SLOPE_DB));
	if (best < NO_PITCH)
		p *= 0.3f;
	/* The gap inside a word ("sp", "tt") is no pause. */
	e->p = p > e->p * HOLD ? p : e->p * HOLD;
	return e->p;
}
