// SPDX-License-Identifier: MIT
/* The two engines as they are used: text to sound, and that sound to text. */
#include "unit.h"

#include <math.h>
#include <pthread.h>

#include "dev/hearth.h"
#include "home/home.h"
#include "voice/resample.h"
#include "voice/stt.h"
#include "voice/stt_decoder.h"
#include "voice/stt_model.h"
#include "voice/tts.h"
#include "voice_signal.h"

/* -- what the synthesiser gave ---------------------------------------------------------- */

#define MAX_DONE 64

static struct sink {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int16_t pcm[16000 * 60];
	size_t n;
	uint64_t done_id[MAX_DONE];
	int done_status[MAX_DONE];
	int n_done;
	int pieces, firsts;
	size_t at_first;     /* samples of the first piece */
	bool hold;           /* the callback blocks while this is set */
	int stop_after;      /* pieces, then the callback returns non-zero */
} sink = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static int on_audio(void *ctx, uint64_t id, const int16_t *pcm, size_t n, bool first)
{
	int stop;

	pthread_mutex_lock(&sink.lock);
	if (sink.n + n <= sizeof(sink.pcm) / sizeof(sink.pcm[0])) {
		memcpy(sink.pcm + sink.n, pcm, n * sizeof(*pcm));
		sink.n += n;
	}
	sink.pieces++;
	sink.firsts += first;
	if (first)
		sink.at_first = n;
	pthread_cond_broadcast(&sink.changed);
	while (sink.hold)
		pthread_cond_wait(&sink.changed, &sink.lock);
	stop = sink.stop_after && sink.pieces >= sink.stop_after;
	pthread_mutex_unlock(&sink.lock);
	return stop;
}

static void on_done(void *ctx, uint64_t id, int status, uint64_t samples)
{
	pthread_mutex_lock(&sink.lock);
	if (sink.n_done < MAX_DONE) {
		sink.done_id[sink.n_done] = id;
		sink.done_status[sink.n_done] = status;
	}
	sink.n_done++;
	pthread_cond_broadcast(&sink.changed);
	pthread_mutex_unlock(&sink.lock);
}

static void sink_clear(void)
{
	pthread_mutex_lock(&sink.lock);
	sink.n = sink.at_first = 0;
	sink.n_done = sink.pieces = sink.firsts = sink.stop_after = 0;
	sink.hold = false;
	pthread_mutex_unlock(&sink.lock);
}

static void wait_for_piece(void)
{
	pthread_mutex_lock(&sink.lock);
	while (sink.pieces == 0)
		pthread_cond_wait(&sink.changed, &sink.lock);
	pthread_mutex_unlock(&sink.lock);
}

static void release(void)
{
	pthread_mutex_lock(&sink.lock);
	sink.hold = false;
	pthread_cond_broadcast(&sink.changed);
	pthread_mutex_unlock(&sink.lock);
}

static struct tts *voice(const char *name, int queue)
{
	const struct tts_events ev = { on_audio, on_done, NULL };
	struct hearth_err err = { 0 };
	struct tts_options o;
	struct tts *t = NULL;

	tts_defaults(&o);
	o.voice = name;
	o.queue = queue;
	sink_clear();
	if (tts_open(&o, NULL, &ev, &t, &err))
		fail_msg("%s", err.text);
	return t;
}

static void a_phrase_comes_in_pieces_and_ends_once(void **state)
{
	struct tts *t = voice("slt", 16);
	double sum = 0;

	assert_int_equal(tts_rate(t), 16000);
	assert_int_equal(tts_say(t, 7, "The kitchen light is on.", -1), 0);
	assert_int_equal(tts_drain(t, -1), 0);
	assert_int_equal(sink.n_done, 1);
	assert_int_equal(sink.done_id[0], 7);
	assert_int_equal(sink.done_status[0], 0);
	assert_int_equal(sink.firsts, 1);
	assert_true(sink.pieces > 10);
	assert_true(sink.at_first < 3200);            /* no whole phrase at once */
	assert_in_range(sink.n, 12000, 48000);        /* 0.75 to 3 s */
	for (size_t i = 0; i < sink.n; i++)
		sum += (double)sink.pcm[i] * sink.pcm[i];
	assert_true(sqrt(sum / (double)sink.n) > 500);
	/* The silence in front is cut: something is heard within 30 ms. */
	for (size_t i = 0; i < 480; i++)
		if (abs(sink.pcm[i]) >= 96)
			goto heard;
	fail_msg("the phrase begins with silence");
heard:
	tts_close(t);
}

static void phrases_come_in_the_order_they_were_said(void **state)
{
	struct tts *t = voice("kal16", 16);
	static const char *const texts[] = { "one", "two", "", "three four five", "...", "six" };

	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(tts_say(t, i, texts[i], -1), 0);
	tts_drain(t, -1);
	assert_int_equal(sink.n_done, 6);
	for (uint64_t i = 0; i < 6; i++) {
		assert_int_equal(sink.done_id[i], i);
		assert_int_equal(sink.done_status[i], 0);
	}
	assert_int_equal(sink.firsts, 4); /* two had nothing to say */
	tts_close(t);
}

static void a_full_queue_holds_back(void **state)
{
	struct tts *t = voice("kal16", 2);

	sink.hold = true;
	assert_int_equal(tts_say(t, 1, "hello", 0), 0);
	wait_for_piece(); /* it is being spoken: the queue is empty again */
	assert_int_equal(tts_say(t, 2, "hello", 0), 0);
	assert_int_equal(tts_say(t, 3, "hello", 0), 0);
	assert_int_equal(tts_say(t, 4, "hello", 0), -EAGAIN);
	assert_int_equal(tts_say(t, 4, "hello", 5), -EAGAIN);
	assert_int_equal(tts_drain(t, 5), -EAGAIN);
	release();
	assert_int_equal(tts_say(t, 4, "hello", -1), 0);
	tts_drain(t, -1);
	assert_int_equal(sink.n_done, 4);
	tts_close(t);
}

static void cancel_ends_all_of_it_and_the_next_phrase_speaks(void **state)
{
	struct tts *t = voice("kal16", 16);
	int pieces;

	sink.hold = true;
	for (uint64_t i = 1; i <= 5; i++)
		assert_int_equal(tts_say(t, i, "this is a somewhat longer phrase to be cut off", -1), 0);
	wait_for_piece();
	pieces = sink.pieces;
	tts_cancel(t);
	assert_int_equal(tts_say(t, 6, "and on", -1), 0);
	release();
	tts_drain(t, -1);
	assert_int_equal(sink.n_done, 6);
	for (int i = 0; i < 5; i++)
		assert_int_equal(sink.done_status[i], -ECANCELED);
	assert_int_equal(sink.done_status[5], 0);
	assert_true(sink.pieces > pieces);
	assert_int_equal(sink.firsts, 2);
	tts_close(t);
}

static void the_callback_can_stop_one_phrase(void **state)
{
	struct tts *t = voice("slt", 16);

	sink.stop_after = 3;
	assert_int_equal(tts_say(t, 1, "this phrase will be stopped by its listener", -1), 0);
	tts_drain(t, -1);
	assert_int_equal(sink.pieces, 3);
	assert_int_equal(sink.done_status[0], -ECANCELED);
	tts_close(t);
}

static void close_while_speaking_ends_every_phrase(void **state)
{
	struct tts *t = voice("slt", 16);

	for (uint64_t i = 0; i < 8; i++)
		tts_say(t, i, "one of several phrases that nobody will hear to the end", -1);
	tts_close(t);
	assert_int_equal(sink.n_done, 8);
	tts_close(NULL);
}

static void bad_text_is_refused_and_odd_text_is_spoken(void **state)
{
	struct tts *t = voice("kal16", 16);
	char *big = malloc(5000);

	memset(big, 'a', 4999);
	big[4999] = '\0';
	assert_int_equal(tts_say(t, 1, "bad \xff utf", -1), -EINVAL);
	assert_int_equal(tts_say(t, 1, "cut \xc3", -1), -EINVAL);
	assert_int_equal(tts_say(t, 1, "\xed\xa0\x80", -1), -EINVAL);
	assert_int_equal(tts_say(t, 1, big, -1), -EINVAL);
	assert_int_equal(tts_say(t, 2, "Caf\xc3\xa9 \xe2\x80\x93 21 \xc2\xb0 \xe2\x80\x9cquoted\xe2\x80\x9d", -1), 0);
	assert_int_equal(tts_say(t, 3, "\xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80", -1), 0);
	tts_drain(t, -1);
	assert_int_equal(sink.n_done, 2);
	assert_int_equal(sink.done_status[1], 0);
	free(big);
	tts_close(t);
}

static void unknown_voices_are_refused(void **state)
{
	const struct tts_events ev = { on_audio, on_done, NULL };
	struct hearth_err err = { 0 };
	struct tts_options o;
	struct tts *t = NULL;

	tts_defaults(&o);
	o.voice = "nobody";
	assert_int_equal(tts_open(&o, NULL, &ev, &t, &err), -ENOENT);
	assert_non_null(strstr(err.text, "slt, rms, awb"));
	o.voice = "../../etc/passwd";
	assert_int_equal(tts_open(&o, NULL, &ev, &t, &err), -ENOENT);
	o.voice = "espeak-ng:no-such-voice";
	assert_int_equal(tts_open(&o, NULL, &ev, &t, &err), -ENOENT);
	tts_defaults(&o);
	o.speed = 9;
	assert_int_equal(tts_open(&o, NULL, &ev, &t, &err), -EINVAL);
	assert_null(t);
}

static void espeak_speaks_where_it_is_installed(void **state)
{
	const struct tts_events ev = { on_audio, on_done, NULL };
	struct hearth_err err = { 0 };
	struct tts_options o;
	struct tts *t = NULL;
	int rc;

	tts_defaults(&o);
	o.voice = "espeak-ng";
	sink_clear();
	rc = tts_open(&o, NULL, &ev, &t, &err);
	if (rc == -ENOENT)
		SKIP("%s", err.text);
	assert_int_equal(rc, 0);
	assert_int_equal(tts_say(t, 1, "The light is on.", -1), 0);
	tts_drain(t, -1);
	assert_int_equal(sink.done_status[0], 0);
	assert_in_range(sink.n, tts_rate(t) / 2, tts_rate(t) * 3);
	tts_close(t);
}

static void a_faster_voice_takes_less_time(void **state)
{
	const struct tts_events ev = { on_audio, on_done, NULL };
	size_t n[2];

	for (int i = 0; i < 2; i++) {
		struct tts_options o;
		struct tts *t = NULL;

		tts_defaults(&o);
		o.speed = i ? 1.5f : 1.0f;
		sink_clear();
		assert_int_equal(tts_open(&o, NULL, &ev, &t, NULL), 0);
		tts_say(t, 1, "The light in the kitchen is on.", -1);
		tts_drain(t, -1);
		n[i] = sink.n;
		tts_close(t);
	}
	assert_in_range(n[1] * 100 / n[0], 55, 80);
}

/* -- what the recogniser said ------------------------------------------------------------- */

static struct heard {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct stt_result last;
	int finals, partials, asked;
	char partial[STT_TEXT];
	float ends;
} heard = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void on_partial(void *ctx, const struct stt_partial *p)
{
	pthread_mutex_lock(&heard.lock);
	heard.partials++;
	heard.asked += p->asked;
	snprintf(heard.partial, sizeof(heard.partial), "%s", p->text);
	heard.ends = p->ends;
	pthread_cond_broadcast(&heard.changed);
	pthread_mutex_unlock(&heard.lock);
}

static void on_final(void *ctx, const struct stt_result *r)
{
	pthread_mutex_lock(&heard.lock);
	heard.last = *r;
	heard.finals++;
	pthread_cond_broadcast(&heard.changed);
	pthread_mutex_unlock(&heard.lock);
}

static void wait_final(int n)
{
	pthread_mutex_lock(&heard.lock);
	while (heard.finals < n)
		pthread_cond_wait(&heard.changed, &heard.lock);
	pthread_mutex_unlock(&heard.lock);
}

static const char home_yaml[] =
	"areas:\n  - name: Kitchen\n  - name: Living Room\n    aliases: [lounge]\n  - name: Bedroom\n"
	"entities:\n"
	"  - {name: Ceiling Light, domain: light, area: Kitchen, state: \"off\"}\n"
	"  - {name: Reading Lamp, domain: light, area: Living Room, state: \"off\"}\n"
	"  - {name: Bedroom Fan, domain: fan, area: Bedroom, state: \"off\"}\n"
	"  - {name: Front Door, domain: lock, state: locked}\n"
	"  - {name: Thermostat, domain: climate, area: Living Room, state: heat, temperature: 20}\n"
	"  - {name: Shopping List, domain: todo, items: [milk]}\n";

static struct stt_model model;
static char model_dir[] = "/tmp/test_speech.XXXXXX";

static int setup(void **state)
{
	struct phrasebook *b;
	struct home *home;
	int rc;

	if (!mkdtemp(model_dir) || phrasebook_new(&b))
		return -1;
	rc = home_parse("test", home_yaml, strlen(home_yaml), &home, NULL);
	if (!rc)
		rc = stt_model_names(home, b, NULL);
	if (!rc)
		rc = stt_model_build(b, NULL, NULL, model_dir, &model, NULL);
	phrasebook_free(b);
	home_free(home);
	return rc;
}

static int teardown(void **state)
{
	char cmd[64];

	stt_model_done(&model);
	snprintf(cmd, sizeof(cmd), "rm -r %s", model_dir);
	return system(cmd);
}

static const struct stt_events stt_ev = { on_partial, on_final, NULL };

static struct stt *recogniser(void)
{
	struct hearth_err err = { 0 };
	struct stt_options o;
	struct stt *s = NULL;

	stt_defaults(&o);
	o.lm = model.lm;
	o.dict = model.dict;
	heard.finals = heard.partials = heard.asked = 0;
	if (stt_open(&o, NULL, &stt_ev, &s, &err))
		fail_msg("%s", err.text);
	return s;
}

/* @text as @name would say it, 16 kHz, a fifth of a second of soft hiss around it. */
static size_t spoken(const char *name, const char *text, int16_t *out)
{
	struct tts *t = voice(name, 16);
	uint32_t r = 5;
	size_t n = 3200;

	tts_say(t, 1, text, -1);
	tts_drain(t, -1);
	assert_int_equal(tts_rate(t), 16000);
	tts_close(t);
	memset(out, 0, (sink.n + 6400) * sizeof(*out));
	memcpy(out + n, sink.pcm, sink.n * sizeof(*out));
	n += sink.n + 3200;
	for (size_t i = 0; i < n; i++)
		out[i] = (int16_t)(out[i] + (int)(signal_random(&r) % 9) - 4);
	return n;
}

static int16_t speech[16000 * 60];

static void hear(struct stt *s, uint64_t id, const int16_t *pcm, size_t n)
{
	int before = heard.finals;

	assert_int_equal(stt_begin(s, id), 0);
	for (size_t i = 0; i < n; i += 300)
		assert_int_equal(stt_push(s, pcm + i, n - i < 300 ? n - i : 300), 0);
	assert_int_equal(stt_end(s), 0);
	wait_final(before + 1);
}

static void commands_of_the_home_are_heard(void **state)
{
	static const char *const cases[][2] = {
		{ "awb", "turn on the light in the kitchen" },
		{ "slt", "set the thermostat to twenty one degrees" },
		{ "awb", "turn off the bedroom fan" },
		{ "slt", "set a timer for ten minutes" },
		{ "rms", "lock the front door" },
	};
	struct stt *s = recogniser();

	for (uint64_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n = spoken(cases[i][0], cases[i][1], speech);

		hear(s, i, speech, n);
		if (strcmp(heard.last.text, cases[i][1]) || heard.last.verdict != STT_COMMAND)
			fail_msg("%s said \"%s\", heard \"%s\" (%s, %.2f)", cases[i][0], cases[i][1], heard.last.text,
				 stt_verdict_name(heard.last.verdict), heard.last.score);
		assert_int_equal(heard.last.id, i);
		assert_int_equal(heard.last.samples, n);
		assert_in_range(heard.last.speech_end, n - 3200 - 6400, n);
		assert_true(heard.last.final_ns >= heard.last.end_ns);
		assert_true(heard.partials > 0);
	}
	stt_close(s);
}

static void other_speech_is_not_a_command(void **state)
{
	static const char *const texts[] = {
		"the stock market fell sharply on monday after the announcement",
		"my grandmother used to live in a small village near the mountains",
		"mathematics is the language in which the book of nature is written",
	};
	struct stt *s = recogniser();

	for (uint64_t i = 0; i < 3; i++) {
		size_t n = spoken(i == 1 ? "slt" : "awb", texts[i], speech);

		hear(s, i, speech, n);
		if (heard.last.verdict != STT_REJECTED)
			fail_msg("\"%s\" was heard as \"%s\" (%s, %.2f)", texts[i], heard.last.text,
				 stt_verdict_name(heard.last.verdict), heard.last.score);
	}
	assert_string_equal(stt_verdict_name(STT_REJECTED), "not a command");
	stt_close(s);
}

/* What is weighed of an espeak-ng voice that says "turn on the kitchen light", and of what is near it. */
static void likely_words_of_an_unusual_voice_are_a_command(void **state)
{
	const struct stt_evidence said = { .words = 5, .frames = 119, .lm = -0.73, .fit = -63.2, .speech = true, .score = -1.2,
					   .sound = { .loud = 150, .voiced = 0.6, .clear = 0.82, .voice = 3.3, .move = 15 } };
	struct stt_evidence e = said;

	for (int unsure = 0; unsure < 2; unsure++) {
		assert_int_equal(stt_decoder_verdict(&said, 0, unsure), STT_COMMAND);
		e.lm = -1.1; /* words that other speech was forced into */
		assert_int_not_equal(stt_decoder_verdict(&e, 0, unsure), STT_COMMAND);
		e = said;
		e.fit = -68;
		assert_int_not_equal(stt_decoder_verdict(&e, 0, unsure), STT_COMMAND);
		e = said;
		e.words = 3; /* few words are likely by chance */
		assert_int_not_equal(stt_decoder_verdict(&e, 0, unsure), STT_COMMAND);
		e = said;
		e.sound.voice = 1.9; /* a sound that is not surely a voice */
		assert_int_not_equal(stt_decoder_verdict(&e, 0, unsure), STT_COMMAND);
		e = said;
		e.sound.clear = 0.75;
		assert_int_not_equal(stt_decoder_verdict(&e, 0, unsure), STT_COMMAND);
		e = said;
		e.speech = false;
		assert_int_equal(stt_decoder_verdict(&e, 0, unsure), STT_NOTHING);
		e = said;
	}
}

/* Silence, hiss, a chord: straight to the recogniser, with no detector before it. */
static void silence_noise_and_music_are_no_command(void **state)
{
	struct stt *s = recogniser();
	uint32_t r = 3;

	for (int kind = 0; kind < 4; kind++) {
		for (int i = 0; i < 48000; i++) {
			double x = 0;

			if (kind == 1 || kind == 2)
				x = ((double)signal_random(&r) / (1 << 24) - 0.5) * (kind == 1 ? 200 : 16000);
			if (kind == 3)
				for (int k = 0; k < 3; k++) {
					static const double hz[4][3] = {
						{ 262, 330, 392 }, { 294, 349, 440 }, { 247, 294, 392 }, { 262, 330, 523 },
					};

					x += 3000 * exp(-(i % 12000) / 8000.0) * sin(2 * M_PI * hz[i / 12000][k] * i / 16000.0);
				}
			speech[i] = (int16_t)x;
		}
		hear(s, (uint64_t)kind, speech, 48000);
		if (heard.last.verdict != STT_NOTHING && heard.last.verdict != STT_REJECTED)
			fail_msg("sound %d was heard as \"%s\" (%.2f)", kind, heard.last.text, heard.last.score);
		if (kind < 2)
			assert_int_equal(heard.last.verdict, STT_NOTHING);
	}
	hear(s, 9, speech, 0);
	assert_int_equal(heard.last.verdict, STT_NOTHING);
	assert_int_equal(heard.last.samples, 0);
	assert_int_equal(heard.last.speech_end, -1);
	stt_close(s);
}

static void a_look_gives_the_text_so_far(void **state)
{
	struct stt *s = recogniser();
	size_t n = spoken("awb", "turn on the light in the kitchen", speech);

	assert_int_equal(stt_look(s), -EINVAL);
	assert_int_equal(stt_begin(s, 1), 0);
	assert_int_equal(stt_push(s, speech, n), 0);
	assert_int_equal(stt_look(s), 0);
	pthread_mutex_lock(&heard.lock);
	while (heard.asked == 0)
		pthread_cond_wait(&heard.changed, &heard.lock);
	assert_string_equal(heard.partial, "turn on the light in the kitchen");
	assert_true(heard.ends > 0.01f);
	pthread_mutex_unlock(&heard.lock);
	assert_true(stt_end_wait_ms(heard.ends) < stt_end_wait_ms(0));
	assert_int_equal(stt_end(s), 0);
	wait_final(1);
	stt_close(s);
}

static void a_cancelled_utterance_ends_once_and_the_next_is_heard(void **state)
{
	struct stt *s = recogniser();
	size_t n = spoken("awb", "turn on the light in the kitchen", speech);

	assert_int_equal(stt_begin(s, 1), 0);
	assert_int_equal(stt_begin(s, 2), -EINVAL);
	assert_int_equal(stt_push(s, speech, n / 2), 0);
	stt_cancel(s);
	assert_int_equal(stt_push(s, speech, n), -ECANCELED);
	assert_int_equal(stt_end(s), -ECANCELED);
	wait_final(1);
	assert_int_equal(heard.last.id, 1);
	assert_int_equal(heard.last.verdict, STT_CANCELLED);
	assert_int_equal(stt_end(s), -EINVAL);
	assert_int_equal(stt_push(s, speech, 1), -EINVAL);
	hear(s, 3, speech, n);
	assert_int_equal(heard.last.id, 3);
	assert_string_equal(heard.last.text, "turn on the light in the kitchen");
	assert_int_equal(heard.finals, 2);
	/* Closed in the middle of one. */
	assert_int_equal(stt_begin(s, 4), 0);
	assert_int_equal(stt_push(s, speech, n / 2), 0);
	stt_close(s);
	assert_int_equal(heard.finals, 3);
	assert_int_equal(heard.last.verdict, STT_CANCELLED);
	stt_close(NULL);
}

static void an_endless_utterance_is_no_command(void **state)
{
	struct hearth_err err = { 0 };
	struct stt_options o;
	struct stt *s = NULL;

	stt_defaults(&o);
	o.lm = model.lm;
	o.dict = model.dict;
	o.max_s = 2;
	heard.finals = 0;
	assert_int_equal(stt_open(&o, NULL, &stt_ev, &s, &err), 0);
	memset(speech, 0, sizeof(speech));
	hear(s, 1, speech, 16000 * 50);
	assert_int_equal(heard.last.verdict, STT_REJECTED);
	assert_non_null(strstr(heard.last.err.text, "no command takes more than 2 s"));
	stt_close(s);
}

static void missing_files_are_named(void **state)
{
	struct hearth_err err = { 0 };
	struct stt_options o;
	struct stt *s = NULL;
	char bad[64];
	FILE *f;

	stt_defaults(&o);
	assert_int_equal(stt_open(&o, NULL, &stt_ev, &s, &err), -EINVAL);
	o.lm = model.lm;
	o.dict = "/nonexistent.dict";
	assert_int_equal(stt_open(&o, NULL, &stt_ev, &s, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent.dict"));
	snprintf(bad, sizeof(bad), "%s/bad.lm", model_dir);
	f = fopen(bad, "w");
	fputs("this is no language model\n", f);
	fclose(f);
	o.lm = bad;
	o.dict = model.dict;
	assert_int_equal(stt_open(&o, NULL, &stt_ev, &s, &err), -EBADMSG);
	assert_null(s);
}

/* -- who pays ---------------------------------------------------------------------------------- */

static void engines_charge_what_they_take_and_give_it_back(void **state)
{
	struct hearth_pool_spec pool = { .kind = HEARTH_KIND_ACCOUNT, .name = "account", .size = 64 << 20 };
	const struct tts_events tts_ev = { on_audio, on_done, NULL };
	struct hearth_budget budget;
	struct hearth_err err = { 0 };
	struct hearth_options ho;
	struct hearth_usage use;
	struct hearth *h;
	struct voice_account acc;
	struct stt_options so;
	struct tts_options to;
	struct stt *s = NULL;
	struct tts *t = NULL;
	bool measured;

	hearth_options_defaults(&ho);
	ho.backend = HEARTH_BACKEND_EMBEDDED;
	ho.pools = &pool;
	ho.n_pools = 1;
	assert_int_equal(hearth_open(&ho, &h, &err), 0);
	acc.pool = hearth_pool(h, HEARTH_KIND_ACCOUNT);
	assert_int_equal(hearth_tenant_open(h, "speech", HEARTH_CLASS_STT, 10, &acc.tenant, &err), 0);

	stt_defaults(&so);
	so.lm = model.lm;
	so.dict = model.dict;
	assert_int_equal(stt_open(&so, &acc, &stt_ev, &s, &err), 0);
	hearth_usage_get(acc.tenant, acc.pool, &use);
	assert_int_equal(use.current, stt_footprint(s));
	measured = stt_footprint(s) > 1 << 20;
	if (measured) { /* a sanitizer's heap is not measured */
		assert_in_range(stt_footprint(s), 8 << 20, 20 << 20);
		assert_in_range(stt_predict(&so) * 1000 / stt_footprint(s), 985, 1015);
	}
	stt_close(s);
	hearth_usage_get(acc.tenant, acc.pool, &use);
	assert_int_equal(use.current, 0);

	tts_defaults(&to);
	assert_int_equal(tts_open(&to, &acc, &tts_ev, &t, &err), 0);
	hearth_usage_get(acc.tenant, acc.pool, &use);
	assert_int_equal(use.current, tts_footprint(t));
	assert_in_range(tts_footprint(t), 2 << 20, 16 << 20);
	if (measured)
		assert_in_range(tts_predict(&to) * 1000 / tts_footprint(t), 985, 1015);
	tts_close(t);

	/* A budget that is too small refuses before anything is loaded. */
	hearth_budget_defaults(&budget);
	budget.max = budget.high = 1 << 20;
	assert_int_equal(hearth_budget_set(acc.tenant, acc.pool, &budget, &err), 0);
	s = NULL;
	t = NULL;
	assert_int_equal(stt_open(&so, &acc, &stt_ev, &s, &err), -ENOSPC);
	assert_true(err.text[0] != '\0');
	assert_int_equal(tts_open(&to, &acc, &tts_ev, &t, &err), -ENOSPC);
	assert_null(s);
	assert_null(t);
	hearth_usage_get(acc.tenant, acc.pool, &use);
	assert_int_equal(use.current, 0);
	hearth_tenant_close(acc.tenant);
	hearth_close(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_phrase_comes_in_pieces_and_ends_once),
		cmocka_unit_test(phrases_come_in_the_order_they_were_said),
		cmocka_unit_test(a_full_queue_holds_back),
		cmocka_unit_test(cancel_ends_all_of_it_and_the_next_phrase_speaks),
		cmocka_unit_test(the_callback_can_stop_one_phrase),
		cmocka_unit_test(close_while_speaking_ends_every_phrase),
		cmocka_unit_test(bad_text_is_refused_and_odd_text_is_spoken),
		cmocka_unit_test(unknown_voices_are_refused),
		cmocka_unit_test(espeak_speaks_where_it_is_installed),
		cmocka_unit_test(a_faster_voice_takes_less_time),
		cmocka_unit_test(commands_of_the_home_are_heard),
		cmocka_unit_test(other_speech_is_not_a_command),
		cmocka_unit_test(likely_words_of_an_unusual_voice_are_a_command),
		cmocka_unit_test(silence_noise_and_music_are_no_command),
		cmocka_unit_test(a_look_gives_the_text_so_far),
		cmocka_unit_test(a_cancelled_utterance_ends_once_and_the_next_is_heard),
		cmocka_unit_test(an_endless_utterance_is_no_command),
		cmocka_unit_test(missing_files_are_named),
		cmocka_unit_test(engines_charge_what_they_take_and_give_it_back),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("speech", tests, setup, teardown);
}
