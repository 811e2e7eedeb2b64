// SPDX-License-Identifier: MIT
#include "voice/ear.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <sphinxbase/cmd_ln.h>
#include <sphinxbase/err.h>
#include <sphinxbase/fe.h>

#define LOUD_DB  18.0f  /* under the loudest frames, at most */
#define WINDOW   640    /* samples that pitch is looked for in: 40 ms */
#define HALF     320    /* of them at 8 kHz */
#define BANDS    24     /* of the mel scale, 100 to 7000 Hz */
#define SHAPE    8      /* cosines that are the coarse shape of a spectrum */
#define MOUTH    6      /* the first of them: what a mouth changes */
#define STEP     5      /* frames over which it moves */
#define SHORTEST 20     /* lags at 8 kHz: 400 Hz */
#define LONGEST  100    /* 80 Hz */
#define STILL    0.05   /* semitones from frame to frame, below which a pitch stands */
#define JUMP     1.0    /* and from which on it jumps */

/* Fitted by logistic regression: docs/speech.md says on what. */
#define VOICE_BASE    -29.03
#define VOICE_GLIDE   11.88
#define VOICE_MOVE    3.467
#define VOICE_CLEAR   18.25
#define VOICE_NEEDLES -1.0207

struct frame {
	float db;
	float repeat;       /* of a voiced one: how well; 0: not voiced */
	float lag;          /* at 8 kHz, between the samples too */
	float shape[MOUTH];
	float needles;
	bool loud;
};

struct ear {
	fe_t *fe;
	float cosine[SHAPE][BANDS];
	size_t n;
	struct frame f[EAR_MOST];
};

int ear_new(struct ear **ret_ear)
{
	struct ear *e = calloc(1, sizeof(*e));
	cmd_ln_t *config;

	if (!e)
		return -ENOMEM;
	for (int k = 0; k < SHAPE; k++)
		for (int j = 0; j < BANDS; j++)
			e->cosine[k][j] = sqrtf(2.0f / BANDS) * cosf((float)M_PI * (float)(k + 1) * ((float)j + 0.5f) / BANDS);
	err_set_logfp(NULL); /* it prints unless told not to */
	config = cmd_ln_init(NULL, fe_get_args(), TRUE, "-samprate", "16000", "-nfft", "512", "-nfilt", "24", "-lowerf", "100", "-upperf", "7000",
			     "-logspec", "yes", "-remove_noise", "no", "-remove_silence", "no", NULL);
	if (config) {
		e->fe = fe_init_auto_r(config);
		cmd_ln_free_r(config);
	}
	if (!e->fe || fe_get_output_size(e->fe) != BANDS) {
		ear_free(e);
		return -ENOMEM;
	}
	*ret_ear = e;
	return 0;
}

void ear_free(struct ear *e)
{
	if (!e)
		return;
	if (e->fe)
		fe_free(e->fe);
	free(e);
}

/*
 * Whether the sound repeats itself at the pitch of a voice, 80 to 400 Hz, and
 * better than at any shorter lag: a whistle or a beep repeats itself there too.
 */
static void find_pitch(const int16_t *x, struct frame *f)
{
	float y[HALF], power[HALF + 1], r[LONGEST + 1] = { 0 }, tone = 0;
	bool dipped = false;
	int best = 0;

	power[0] = 0;
	for (int i = 0; i < HALF; i++) {
		y[i] = (float)x[2 * i] + (float)x[2 * i + 1];
		power[i + 1] = power[i] + y[i] * y[i];
	}
	for (int lag = 2; lag <= LONGEST; lag++) {
		float ab = 0;

		for (int i = 0; i < HALF - LONGEST; i++) /* a count that the compiler knows */
			ab += y[i] * y[i + lag];
		for (int i = HALF - LONGEST; i + lag < HALF; i++)
			ab += y[i] * y[i + lag];
		r[lag] = ab / sqrtf((power[HALF - lag] + 1) * (power[HALF] - power[lag] + 1));
		if (r[lag] < 0.4f)
			dipped = true;
		if (!dipped)
			continue;
		if (lag < SHORTEST)
			tone = r[lag] > tone ? r[lag] : tone;
		else if (!best || r[lag] > r[best])
			best = lag;
	}
	if (!best || r[best] <= 0.6f || r[best] <= tone + 0.02f)
		return;
	f->repeat = r[best];
	f->lag = (float)best;
	if (best < LONGEST) {
		float bend = r[best - 1] - 2 * r[best] + r[best + 1];

		if (bend < 0)
			f->lag += 0.5f * (r[best - 1] - r[best + 1]) / bend;
	}
}

static void find_shape(const struct ear *e, const mfcc_t *mel, struct frame *f)
{
	const float db = 4.3429448f; /* the front end's logarithms are natural */
	float c[SHAPE], mean = 0, left = 0;

	for (int j = 0; j < BANDS; j++)
		mean += mel[j] / BANDS;
	for (int k = 0; k < SHAPE; k++) {
		c[k] = 0;
		for (int j = 0; j < BANDS; j++)
			c[k] += mel[j] * e->cosine[k][j];
	}
	for (int k = 0; k < MOUTH; k++)
		f->shape[k] = db * c[k];
	for (int j = 0; j < BANDS; j++) {
		float d = mel[j] - mean;

		for (int k = 0; k < SHAPE; k++)
			d -= c[k] * e->cosine[k][j];
		left += d * d;
	}
	f->needles = db * sqrtf(left / BANDS);
}

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return x < y ? -1 : x > y;
}

/* Frames, their loudness and which of them are loud: a click is not the measure. */
static void find_loud(struct ear *e, const int16_t *pcm, size_t n)
{
	float sorted[EAR_MOST], top;

	e->n = n / EAR_FRAME < EAR_MOST ? n / EAR_FRAME : EAR_MOST;
	for (size_t i = 0; i < e->n; i++) {
		const int16_t *x = pcm + i * EAR_FRAME;
		double sum = 1;

		for (size_t k = 1; k < EAR_FRAME; k++)
			sum += (x[k] - 0.95 * x[k - 1]) * (x[k] - 0.95 * x[k - 1]);
		e->f[i] = (struct frame){ .db = (float)(10 * log10(sum)) };
		sorted[i] = e->f[i].db;
	}
	qsort(sorted, e->n, sizeof(*sorted), by_value);
	top = sorted[e->n - 1 - e->n / 50];
	for (size_t i = 0; i < e->n; i++)
		e->f[i].loud = e->f[i].db >= top - LOUD_DB;
}

static int find_shapes(struct ear *e, const int16_t *pcm, size_t n)
{
	mfcc_t mel[BANDS], *buf = mel;
	size_t left = n;

	fe_start_stream(e->fe);
	if (fe_start_utt(e->fe) < 0)
		return -EIO;
	for (size_t i = 0; i < e->n; i++) {
		int32 one = 1, at;

		if (fe_process_frames(e->fe, &pcm, &left, &buf, &one, &at) < 0)
			return -EIO;
		if (one < 1) { /* the last ones have no whole window */
			e->n = i;
			break;
		}
		if (e->f[i].loud)
			find_shape(e, mel, &e->f[i]);
	}
	fe_end_utt(e->fe, mel, &(int32){ 0 });
	return 0;
}

static void sum_up(const struct ear *e, struct ear_sound *s)
{
	int voiced = 0, pairs = 0, glides = 0, steps = 0;

	*s = (struct ear_sound){ 0 };
	for (size_t i = 0; i < e->n; i++) {
		const struct frame *f = &e->f[i];

		if (!f->loud)
			continue;
		s->loud++;
		s->needles += f->needles;
		if (!f->repeat)
			continue;
		voiced++;
		s->clear += f->repeat;
		if (i + 1 < e->n && f[1].repeat) {
			double d = 12 * fabs(log2(f[1].lag / f->lag));

			pairs++;
			glides += d > STILL && d < JUMP;
		}
		if (i + STEP < e->n && f[STEP].repeat) {
			double sum = 0;

			for (int k = 0; k < MOUTH; k++)
				sum += (f[STEP].shape[k] - f->shape[k]) * (f[STEP].shape[k] - f->shape[k]);
			steps++;
			s->move += sqrt(sum);
		}
	}
	s->needles /= s->loud ? s->loud : 1;
	s->voiced = s->loud ? (double)voiced / s->loud : 0;
	s->clear /= voiced ? voiced : 1;
	s->glide = pairs ? (double)glides / pairs : 0;
	s->move /= steps ? steps : 1;
	s->voice = VOICE_BASE + VOICE_GLIDE * s->glide + VOICE_MOVE * log(s->move + 5) + VOICE_CLEAR * s->clear + VOICE_NEEDLES * s->needles;
}

int ear_hear(struct ear *e, const int16_t *pcm, size_t n, struct ear_sound *ret)
{
	int rc;

	if (n < WINDOW) {
		*ret = (struct ear_sound){ .voice = VOICE_BASE };
		return 0;
	}
	find_loud(e, pcm, n);
	rc = find_shapes(e, pcm, n);
	if (rc)
		return rc;
	for (size_t i = 0; i < e->n && i * EAR_FRAME + WINDOW <= n; i++)
		if (e->f[i].loud)
			find_pitch(pcm + i * EAR_FRAME, &e->f[i]);
	sum_up(e, ret);
	return 0;
}
