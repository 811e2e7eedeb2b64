// SPDX-License-Identifier: MIT
/* What is like a voice: sounds made here, so that it is known what they are. */
#include "unit.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "voice/ear.h"
#include "voice/stt_decoder.h"

#define N (2 * EAR_RATE)

static int16_t pcm[20 * EAR_RATE];

static struct ear_sound hear(size_t n)
{
	struct ear_sound s;
	struct ear *e;

	assert_int_equal(ear_new(&e), 0);
	assert_int_equal(ear_hear(e, pcm, n, &s), 0);
	ear_free(e);
	return s;
}

/* Pulses of a throat through two resonances; @glide: the pitch falls and rises, @mouth: the resonances move. */
static void throat(size_t n, bool glide, bool mouth)
{
	double p = 0, a1 = 0, b1 = 0, a2 = 0, b2 = 0;

	for (size_t i = 0; i < n; i++) {
		double t = (double)i / EAR_RATE, f0 = glide ? 130 + 25 * sin(2 * M_PI * 0.9 * t) : 130;
		double f1 = mouth ? 500 + 250 * sin(2 * M_PI * 3.1 * t) : 500, f2 = mouth ? 1500 + 600 * sin(2 * M_PI * 2.3 * t) : 1500;
		double x, y1, y2;

		p += f0 / EAR_RATE;
		x = p >= 1 ? 1 : 0;
		p -= p >= 1;
		y1 = x + 2 * 0.97 * cos(2 * M_PI * f1 / EAR_RATE) * a1 - 0.97 * 0.97 * b1;
		b1 = a1, a1 = y1;
		y2 = y1 + 2 * 0.96 * cos(2 * M_PI * f2 / EAR_RATE) * a2 - 0.96 * 0.96 * b2;
		b2 = a2, a2 = y2;
		pcm[i] = (int16_t)(600 * y2);
	}
}

static void a_gliding_pitch_and_a_moving_mouth_are_a_voice(void **state)
{
	struct ear_sound s, other;

	throat(N, true, true);
	s = hear(N);
	assert_true(s.voiced > 0.8);
	assert_true(s.glide > 0.7);
	assert_true(s.voice > 1);
	throat(N, false, true);
	other = hear(N);
	assert_true(other.glide < 0.3);
	assert_true(other.voice < s.voice - 3);
	throat(N, true, false);
	other = hear(N);
	assert_true(other.move < s.move / 2);
	assert_true(other.voice < s.voice - 2);
}

static void a_tune_is_none(void **state)
{
	static const double notes[] = { 262, 330, 392, 294, 349, 440 };
	struct ear_sound s;

	for (size_t i = 0; i < N; i++) {
		double f = notes[i / 5000 % 6], t = (double)(i % 5000) / EAR_RATE;

		pcm[i] = (int16_t)(6000 * exp(-3 * t) * (sin(2 * M_PI * f * t) + sin(4 * M_PI * f * t) / 2 + sin(6 * M_PI * f * t) / 3));
	}
	s = hear(N);
	assert_true(s.voiced > 0.5);
	assert_true(s.glide < 0.2);
	assert_true(s.voice < -2.5);
}

static void a_knock_that_rings_is_none(void **state)
{
	struct ear_sound s;

	memset(pcm, 0, sizeof(pcm));
	for (size_t at = 3000; at < N; at += 9000)
		for (size_t i = 0; i < 6000 && at + i < N; i++)
			pcm[at + i] = (int16_t)(12000 * exp(-(double)i / 900) * sin(2 * M_PI * (180 + (double)at / 100) * (double)i / EAR_RATE));
	s = hear(N);
	assert_true(s.loud > 5);
	assert_true(s.voice < -2.5);
}

static void a_noise_is_none(void **state)
{
	uint32_t x = 1;
	struct ear_sound s;

	for (size_t i = 0; i < N; i++) {
		x = x * 1664525u + 1013904223u;
		pcm[i] = (int16_t)((int)(x >> 18) - 8192);
	}
	s = hear(N);
	assert_true(s.loud > 150);
	assert_true(s.voiced < 0.05);
	assert_true(s.voice < -2.5);
}

static void short_long_and_silent_sounds_are_judged_too(void **state)
{
	struct ear_sound s, t;

	memset(pcm, 0, sizeof(pcm));
	s = hear(0);
	assert_true(s.voice < -2.5 && s.loud == 0);
	s = hear(639);
	assert_true(s.voice < -2.5);
	s = hear(640);
	assert_true(s.voice < -2.5 && !isnan(s.voice));
	s = hear(N);
	assert_true(s.voice < -2.5 && !isnan(s.voice) && s.voiced == 0);
	/* Only the first EAR_MOST frames are listened to. */
	throat(sizeof(pcm) / sizeof(*pcm), true, true);
	s = hear((size_t)EAR_MOST * EAR_FRAME);
	memset(pcm + (size_t)EAR_MOST * EAR_FRAME + 1000, 0, 16000);
	t = hear(sizeof(pcm) / sizeof(*pcm));
	assert_true(t.loud <= EAR_MOST && t.loud >= s.loud);
	assert_true(fabs(s.voice - t.voice) < 0.1);
}

static void one_sound_leaves_nothing_for_the_next(void **state)
{
	struct ear_sound s, t;
	struct ear *e;

	throat(N, true, true);
	assert_int_equal(ear_new(&e), 0);
	assert_int_equal(ear_hear(e, pcm, N, &s), 0);
	assert_int_equal(ear_hear(e, pcm, 4000, &t), 0);
	assert_int_equal(ear_hear(e, pcm, N, &t), 0);
	ear_free(e);
	assert_memory_equal(&s, &t, sizeof(s));
}

static void a_verdict_weighs_the_words_and_the_sound(void **state)
{
	static const struct {
		int words;
		double score, voice, clear;
		enum stt_verdict silero, energy; /* the detector before it */
	} t[] = {
		{ 5, 1.0, 6.0, 0.90, STT_COMMAND, STT_COMMAND },
		{ 2, 1.0, 6.0, 0.90, STT_COMMAND, STT_COMMAND },
		{ 2, 0.3, 6.0, 0.90, STT_COMMAND, STT_COMMAND },
		{ 2, 0.1, 6.0, 0.90, STT_COMMAND, STT_REJECTED },
		{ 2, 1.0, 1.5, 0.90, STT_COMMAND, STT_REJECTED },
		{ 2, 1.0, 6.0, 0.74, STT_COMMAND, STT_REJECTED },
		{ 3, 0.6, 0.0, 0.74, STT_COMMAND, STT_COMMAND },
		{ 3, 0.5, 0.0, 0.74, STT_COMMAND, STT_REJECTED },
		{ 5, 1.0, -1.0, 0.90, STT_COMMAND, STT_NOTHING },
		{ 5, 1.0, 6.0, 0.70, STT_COMMAND, STT_NOTHING },
		{ 5, -0.1, 6.0, 0.90, STT_REJECTED, STT_REJECTED },
		{ 5, -0.1, 4.0, 0.90, STT_REJECTED, STT_NOTHING },
		{ 5, -0.1, 6.0, 0.74, STT_REJECTED, STT_NOTHING },
		{ 5, -0.1, 0.1, 0.90, STT_REJECTED, STT_NOTHING },
		{ 5, -0.1, -0.1, 0.90, STT_NOTHING, STT_NOTHING },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct stt_evidence e = { .words = t[i].words, .lm = -1.5, .score = t[i].score, .sound = { .voice = t[i].voice, .clear = t[i].clear }, .speech = true };

		assert_int_equal(stt_decoder_verdict(&e, 0, false), t[i].silero);
		assert_int_equal(stt_decoder_verdict(&e, 0, true), t[i].energy);
		/* Both move with the threshold. */
		e.score += 0.7;
		assert_int_equal(stt_decoder_verdict(&e, 0.7f, false), t[i].silero);
		assert_int_equal(stt_decoder_verdict(&e, 0.7f, true), t[i].energy);
		e.speech = false;
		assert_int_equal(stt_decoder_verdict(&e, 0, false), STT_NOTHING);
		assert_int_equal(stt_decoder_verdict(&e, 0, true), STT_NOTHING);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gliding_pitch_and_a_moving_mouth_are_a_voice),
		cmocka_unit_test(a_tune_is_none),
		cmocka_unit_test(a_knock_that_rings_is_none),
		cmocka_unit_test(a_noise_is_none),
		cmocka_unit_test(short_long_and_silent_sounds_are_judged_too),
		cmocka_unit_test(one_sound_leaves_nothing_for_the_next),
		cmocka_unit_test(a_verdict_weighs_the_words_and_the_sound),
	};

	return UNIT_RUN(tests);
}
