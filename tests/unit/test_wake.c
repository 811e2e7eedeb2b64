// SPDX-License-Identifier: MIT
/* The wake word in the voices that are here: found when said, not found in what else is said. */
#include "unit.h"

#include <pthread.h>

#include "voice/tts.h"
#include "voice/wake.h"

#define MODEL "/usr/share/pocketsphinx/model/en-us/en-us"

struct heard {
	int16_t pcm[16000 * 30];
	size_t n;
	int rate;
	pthread_mutex_t lock;
	pthread_cond_t said;
	bool done;
};

static int on_audio(void *ctx, uint64_t id, const int16_t *pcm, size_t n, bool first)
{
	struct heard *h = ctx;

	if (h->n + n < sizeof(h->pcm) / 2) {
		memcpy(h->pcm + h->n, pcm, n * 2);
		h->n += n;
	}
	return 0;
}

static void on_done(void *ctx, uint64_t id, int status, uint64_t samples)
{
	struct heard *h = ctx;

	pthread_mutex_lock(&h->lock);
	h->done = true;
	pthread_cond_signal(&h->said);
	pthread_mutex_unlock(&h->lock);
}

/* @text as 16 kHz samples, with half a second of quiet before and a second behind. */
static void say(struct heard *h, const char *voice, const char *text)
{
	struct tts_events ev = { .audio = on_audio, .done = on_done, .ctx = h };
	struct tts_options o;
	struct hearth_err err = { 0 };
	struct tts *t;

	tts_defaults(&o);
	o.voice = voice;
	memset(h->pcm, 0, sizeof(h->pcm));
	h->n = 8000;
	h->done = false;
	if (tts_open(&o, NULL, &ev, &t, &err))
		fail_msg("%s", err.text);
	assert_int_equal(tts_rate(t), 16000);
	assert_int_equal(tts_say(t, 1, text, 1000), 0);
	pthread_mutex_lock(&h->lock);
	while (!h->done)
		pthread_cond_wait(&h->said, &h->lock);
	pthread_mutex_unlock(&h->lock);
	tts_close(t);
	h->n += 16000;
}

static int count(struct wake *w, const struct heard *h, size_t step)
{
	int n = 0;

	for (size_t i = 0; i < h->n; i += step) {
		int rc = wake_push(w, h->pcm + i, h->n - i < step ? h->n - i : step);

		assert_true(rc >= 0);
		n += rc;
	}
	return n;
}

static bool missing(void)
{
	return access(MODEL, R_OK) != 0;
}

static void it_is_found_when_it_is_said(void **state)
{
	static const char *const voices[] = { "slt", "awb", "rms" };
	static struct heard h = { .lock = PTHREAD_MUTEX_INITIALIZER, .said = PTHREAD_COND_INITIALIZER };
	struct hearth_err err = { 0 };
	struct wake_options o;
	struct wake *w;

	if (missing())
		SKIP("there is no acoustic model");
	wake_defaults(&o);
	if (wake_open(&o, NULL, &w, &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < 3; i++) {
		int n;

		say(&h, voices[i], "Okay hearth.");
		n = count(w, &h, 512);
		print_message("# %s: said once, found %d\n", voices[i], n);
		assert_true(n >= 1 && n <= 2);
		wake_reset(w);
		/* Other things that homes hear. */
		say(&h, voices[i], "Turn on the kitchen light. What is the weather like? I was at the market in the morning and bought some apples. "
		    "That is okay, the heart of the matter is hay.");
		n = count(w, &h, 512);
		print_message("# %s: not said, found %d\n", voices[i], n);
		assert_int_equal(n, 0);
		wake_reset(w);
	}
	/* silence, for longer than one of its utterances lasts */
	memset(h.pcm, 0, sizeof(h.pcm));
	h.n = 16000 * 29;
	assert_int_equal(count(w, &h, 512), 0);
	wake_close(w);
}

static void what_cannot_be_listened_for_is_refused(void **state)
{
	static const struct { const char *phrase; double threshold; const char *why; } bad[] = {
		{ "", 1e-20, "empty" }, { "   ", 1e-20, "empty" }, { "one two three four five six seven eight nine", 1e-20, "8 words" },
		{ "hey", 0, "threshold" }, { "hey", 2, "threshold" }, { NULL, 1e-20, "127" },
	};
	struct hearth_err err = { 0 };
	struct wake_options o;
	struct wake *w = NULL;

	if (missing())
		SKIP("there is no acoustic model");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		wake_defaults(&o);
		o.phrase = bad[i].phrase;
		o.threshold = bad[i].threshold;
		assert_true(wake_open(&o, NULL, &w, &err) < 0);
		assert_non_null(strstr(err.text, bad[i].why));
		assert_null(w);
	}
	wake_defaults(&o);
	o.acoustic = "/nonexistent";
	assert_true(wake_open(&o, NULL, &w, &err) < 0);
	assert_non_null(strstr(err.text, "/nonexistent"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_found_when_it_is_said),
		cmocka_unit_test(what_cannot_be_listened_for_is_refused),
	};

	return UNIT_RUN(tests);
}
