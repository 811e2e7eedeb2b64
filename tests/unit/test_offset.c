// SPDX-License-Identifier: MIT
#include "unit.h"

#include <math.h>

#include "voice/offset.h"
#include "voice/vad.h"
#include "voice_signal.h"

#define N 64000

static int16_t plain[N], shifted[N], out[N], other[N];

static void shift(int by)
{
	for (size_t i = 0; i < N; i++)
		shifted[i] = (int16_t)(plain[i] / 2 + by);
}

static void a_constant_is_silence_from_the_first_sample(void **state)
{
	struct offset o = { 0 };

	for (size_t i = 0; i < N; i++)
		shifted[i] = -6000;
	offset_remove(&o, shifted, N, out);
	for (size_t i = 0; i < N; i++)
		assert_int_equal(out[i], 0);
}

/* Also what begins with a step comes to rest, at zero itself. */
static void digital_silence_after_a_sound_is_silence(void **state)
{
	struct offset o = { 0 };

	for (size_t i = 0; i < N; i++)
		shifted[i] = i < N / 2 ? 6000 : 0;
	offset_remove(&o, shifted, N, out);
	assert_true(out[N / 2] < -5000);
	for (size_t i = N / 2 + 3200; i < N; i++)
		assert_int_equal(out[i], 0);
	assert_true(o.out == 0);
}

static double level(const int16_t *pcm)
{
	double sum = 0;

	for (size_t i = N / 2; i < N; i++)
		sum += (double)pcm[i] * pcm[i];
	return sqrt(sum / (N / 2));
}

static void a_voice_passes_and_rumble_does_not(void **state)
{
	static const struct { double hz, from, to; } tones[] = { { 5, 0.2, 0.3 }, { 100, 0.975, 1.0 }, { 1000, 0.995, 1.005 }, { 7000, 0.995, 1.005 } };

	for (size_t k = 0; k < sizeof(tones) / sizeof(tones[0]); k++) {
		struct offset o = { 0 };
		double part;

		for (size_t i = 0; i < N; i++)
			shifted[i] = (int16_t)lrint(10000 * sin(2 * 3.14159265358979 * tones[k].hz * (double)i / OFFSET_RATE));
		offset_remove(&o, shifted, N, out);
		part = level(out) / level(shifted);
		assert_true(part >= tones[k].from && part <= tones[k].to);
	}
}

static void it_does_not_depend_on_how_the_sound_was_cut(void **state)
{
	struct offset a = { 0 }, b = { 0 };
	size_t at = 0;

	shift(1540);
	offset_remove(&a, shifted, N, out);
	for (size_t k = 1; at < N; k = k * 7 % 997) {
		size_t n = k < N - at ? k : N - at;

		offset_remove(&b, shifted + at, n, other + at);
		offset_remove(&b, NULL, 0, NULL);
		at += n;
	}
	assert_memory_equal(out, other, sizeof(out));
	offset_remove(&(struct offset){ 0 }, shifted, N, shifted);
	assert_memory_equal(out, shifted, sizeof(out));
}

/* A full swing after an offset is more than 16 bits hold: it must not come out on the other side. */
static void a_swing_beyond_16_bits_is_cut(void **state)
{
	struct offset o = { 0 };

	for (size_t i = 0; i < N; i++)
		shifted[i] = i % 2000 < 1000 ? 30000 : -30000;
	offset_remove(&o, shifted, N, out);
	assert_int_equal(out[1000], -32768);
	assert_int_equal(out[2000], 32767);
	for (size_t i = 1000; i < N; i += 1000)
		assert_true(i % 2000 ? out[i] < -30000 : out[i] > 30000);
}

static struct { int starts, ends; int64_t start, end; } seen;

static void note(void *ctx, const struct vad_event *e)
{
	if (e->kind == VAD_START && !seen.starts++)
		seen.start = e->at;
	if (e->kind == VAD_END && ++seen.ends)
		seen.end = e->at;
}

static void listen_to(const int16_t *pcm)
{
	struct vad_options o;
	struct vad *v;

	memset(&seen, 0, sizeof(seen));
	vad_defaults(&o);
	o.kind = VAD_ENERGY;
	assert_int_equal(vad_open(&o, NULL, &v, NULL), 0);
	vad_push(v, pcm, N, note, NULL);
	vad_finish(v, note, NULL);
	vad_close(v);
}

static void a_voice_on_an_offset_is_found_where_it_is(void **state)
{
	static const int offsets[] = { 1540, -1540, 6000, 15000 };
	int64_t start, end;

	shift(0);
	listen_to(shifted);
	assert_int_equal(seen.starts, 1);
	assert_int_equal(seen.ends, 1);
	start = seen.start;
	end = seen.end;
	for (size_t k = 0; k < sizeof(offsets) / sizeof(offsets[0]); k++) {
		struct offset o = { 0 };

		shift(offsets[k]);
		offset_remove(&o, shifted, N, out);
		listen_to(out);
		assert_int_equal(seen.starts, 1);
		assert_int_equal(seen.ends, 1);
		assert_int_equal(seen.start, start);
		assert_int_equal(seen.end, end);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_constant_is_silence_from_the_first_sample),
		cmocka_unit_test(digital_silence_after_a_sound_is_silence),
		cmocka_unit_test(a_voice_passes_and_rumble_does_not),
		cmocka_unit_test(it_does_not_depend_on_how_the_sound_was_cut),
		cmocka_unit_test(a_swing_beyond_16_bits_is_cut),
		cmocka_unit_test(a_voice_on_an_offset_is_found_where_it_is),
	};

	signal_voice(plain, N);
	return UNIT_RUN(tests);
}
