// SPDX-License-Identifier: MIT
/*
 * How well the recogniser hears, and how well it refuses, over speech made by
 * the voices of flite. Sentences are read from the home model's hand-written
 * evaluation set, which the language model's patterns were not made from;
 * other speech from tests/bench/other_speech.txt, and real recordings where
 * the package pocketsphinx-testdata is installed.
 *
 *   bench_stt [-v VOICES] [-n EVERY] [-s SNR_DB] [-g GAIN_DB] [-e PATTERNS] [-l] [SET]
 *     -v awb,slt   voices       -n 5   only every fifth sentence
 *     -s 20        white noise  -e F   more patterns (tools/speech_phrases.py)
 *     -g -20       softer       -l     list every sentence with its evidence
 *     -w GLOB      WAV files that hold no command instead of voices (tests/bench/noises.py makes some)
 *     SET: tools/home/eval/hand.txt
 */
#include <errno.h>
#include <glob.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mono.h"
#include "home/home.h"
#include "voice/audio.h"
#include "voice/resample.h"
#include "voice/stt_decoder.h"
#include "voice/stt_model.h"
#include "voice/tts.h"

#define EDGE 4800 /* samples of room before and after speech */

static struct {
	const char *voices;
	int every;
	double snr_db, gain_db;
	char *extra;
	bool list;
	const char *wavs;
	const char *set;
	char cache[64];
} opt = { .voices = "awb,slt,rms,kal16", .every = 1, .snr_db = 30, .set = "tools/home/eval/hand.txt" };

struct tally {
	int n, exact, heard, accepted, exact_accepted, wrong_accepted;
	int words, errors;
	double audio_s, decode_s;
	double end_ms[20000];
};

static struct tally in_tally, other_tally;

static void die(const char *what)
{
	fprintf(stderr, "bench_stt: %s\n", what);
	exit(1);
}

/* -- sound ------------------------------------------------------------------------------ */

static float *wave;
static size_t wave_n, wave_room;

static int on_audio(void *ctx, uint64_t id, const int16_t *pcm, size_t n, bool first)
{
	if (wave_n + n > wave_room) {
		wave_room = (wave_n + n) * 2;
		wave = realloc(wave, wave_room * sizeof(*wave));
		if (!wave)
			die("no memory");
	}
	for (size_t i = 0; i < n; i++)
		wave[wave_n++] = (float)pcm[i] / 32768;
	return 0;
}

/* The wave at 16 kHz with edges; the caller frees. */
static int16_t *to_16k(int rate, size_t *ret_n)
{
	size_t room = wave_n * 16000 / (size_t)rate + 2 * EDGE + 8192, n = EDGE, at = 0;
	int16_t *pcm = calloc(room, sizeof(*pcm));
	struct resample *r;
	float out[4096];

	if (!pcm || resample_new(rate, 16000, &r, NULL))
		die("no memory");
	for (;;) {
		size_t taken = 0, given = 0;

		resample_push(r, at < wave_n ? wave + at : NULL, wave_n - at, out, 4096, &taken, &given);
		at += taken;
		if (at >= wave_n && given == 0)
			break;
		resample_to_s16(out, given, pcm + n);
		n += given;
	}
	resample_free(r);
	*ret_n = n + EDGE;
	return pcm;
}

/* White noise at opt.snr_db under the sound's own loudness, then the gain. */
static void spoil(int16_t *pcm, size_t n)
{
	double sum = 0, gain = pow(10, opt.gain_db / 20), noise;
	uint32_t x = 1;

	for (size_t i = EDGE; i + EDGE < n; i++)
		sum += (double)pcm[i] * pcm[i];
	noise = sqrt(sum / (double)n) * pow(10, -opt.snr_db / 20) * sqrt(3);
	for (size_t i = 0; i < n; i++) {
		double y;

		x = x * 1664525u + 1013904223u;
		y = (pcm[i] + ((double)(x >> 8) / (1 << 23) - 1) * noise) * gain;
		pcm[i] = (int16_t)(y > 32767 ? 32767 : y < -32768 ? -32768 : y);
	}
}

/* -- one utterance ----------------------------------------------------------------------- */

static int word_errors(const char *want, const char *got, int *ret_words)
{
	char a[1024], b[1024], *wa[256], *wb[256], *save;
	int na = 0, nb = 0, d[257], best;

	snprintf(a, sizeof(a), "%s", want);
	snprintf(b, sizeof(b), "%s", got);
	for (char *w = strtok_r(a, " ", &save); w && na < 256; w = strtok_r(NULL, " ", &save))
		wa[na++] = w;
	for (char *w = strtok_r(b, " ", &save); w && nb < 256; w = strtok_r(NULL, " ", &save))
		wb[nb++] = w;
	for (int j = 0; j <= nb; j++)
		d[j] = j;
	for (int i = 0; i < na; i++) {
		int diagonal = d[0];

		d[0] = i + 1;
		for (int j = 0; j < nb; j++) {
			best = diagonal + (strcmp(wa[i], wb[j]) != 0);
			diagonal = d[j + 1];
			if (d[j + 1] + 1 < best)
				best = d[j + 1] + 1;
			if (d[j] + 1 < best)
				best = d[j] + 1;
			d[j + 1] = best;
		}
	}
	*ret_words = na;
	return d[nb];
}

/* @want NULL: no command. */
static void decode(struct stt_decoder *d, const char *label, const char *want, int16_t *pcm, size_t n,
		   float threshold)
{
	struct tally *t = want ? &in_tally : &other_tally;
	struct stt_evidence e;
	int64_t t0, t1, t2;
	bool accepted;
	int words = 0, errors = 0;

	if (!opt.wavs)
		spoil(pcm, n);
	t0 = mono_ns();
	if (stt_decoder_begin(d))
		die("the recogniser failed");
	for (size_t i = 0; i < n; i += 512)
		stt_decoder_push(d, pcm + i, n - i < 512 ? n - i : 512);
	t1 = mono_ns();
	if (stt_decoder_end(d, &e))
		die("the recogniser failed");
	t2 = mono_ns();
	accepted = stt_decoder_verdict(&e, threshold, false) == STT_COMMAND;
	if (want)
		errors = word_errors(want, e.text, &words);
	if (t->n < 20000)
		t->end_ms[t->n] = (double)(t2 - t1) / 1e6;
	t->n++;
	t->words += words;
	t->errors += errors;
	t->exact += want && errors == 0;
	t->heard += e.speech;
	t->accepted += accepted;
	t->exact_accepted += accepted && want && errors == 0;
	t->wrong_accepted += accepted && want && errors != 0;
	t->audio_s += (double)n / 16000;
	t->decode_s += (double)(t2 - t0) / 1e9;
	if (opt.list)
		printf("%s\t%s\t%s\t%d\t%d\t%.3f\t%.2f\t%d\t%.3f\t%d\t%.3f\n", label, want ? want : "-", e.text, e.words,
		       e.frames, e.lm, e.fit, e.sound.loud, e.sound.voiced, e.speech, e.score);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void report(const char *label)
{
	struct tally *t = &in_tally, *o = &other_tally;

	qsort(t->end_ms, (size_t)t->n, sizeof(double), by_value);
	printf("%-8s %5d %7.1f %7.1f %9.1f %9.1f | %5d %9.1f | %6.3f %7.1f %7.1f\n", label, t->n,
	       t->words ? 100.0 * t->errors / t->words : 0, 100.0 * t->exact / t->n,
	       t->exact ? 100.0 * t->exact_accepted / t->exact : 0, 100.0 * t->wrong_accepted / t->n,
	       o->n, o->n ? 100.0 * o->accepted / o->n : 0,
	       (t->decode_s + o->decode_s) / (t->audio_s + o->audio_s), t->end_ms[t->n / 2], t->end_ms[t->n - 1]);
	fflush(stdout);
}

/* -- the sets ------------------------------------------------------------------------------ */

struct case_list {
	struct {
		char home[32];
		char *text;
	} c[5000];
	int n;
};

static void read_cases(const char *path, struct case_list *l)
{
	FILE *f = fopen(path, "r");
	char line[1024], home[32] = "";
	int seen = 0;

	if (!f)
		die(path);
	while (fgets(line, sizeof(line), f)) {
		char *words;

		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "home %31s", home) == 1 || strncmp(line, "u: ", 3) || seen++ % opt.every)
			continue;
		if (phrasebook_words(line + 3, &words) || l->n == 5000)
			die("too many sentences");
		snprintf(l->c[l->n].home, sizeof(l->c[0].home), "%s", home);
		l->c[l->n++].text = words;
	}
	fclose(f);
}

static struct stt_decoder *open_home(const char *name)
{
	struct hearth_err err = { 0 };
	struct stt_options o;
	struct phrasebook *b;
	struct stt_model m;
	struct stt_decoder *d = NULL;
	struct home *home;
	char path[512], *slash;

	snprintf(path, sizeof(path), "%s", opt.set);
	slash = strrchr(path, '/');
	snprintf(slash ? slash + 1 : path, 64, "homes/%s.yaml", name);
	stt_defaults(&o);
	if (home_load(path, &home, &err) || phrasebook_new(&b) || stt_model_names(home, b, &err) ||
	    (opt.extra && phrasebook_load(b, opt.extra, &err)) ||
	    stt_model_build(b, NULL, NULL, opt.cache, &m, &err))
		die(err.text);
	o.lm = m.lm;
	o.dict = m.dict;
	if (stt_decoder_new(&o, &d, &err))
		die(err.text);
	stt_model_done(&m);
	phrasebook_free(b);
	home_free(home);
	return d;
}

static void say(struct tts *t, const char *text, int16_t **ret_pcm, size_t *ret_n)
{
	wave_n = 0;
	if (tts_say(t, 1, text, -1) || tts_drain(t, -1))
		die("the voice failed");
	*ret_pcm = to_16k(tts_rate(t), ret_n);
}

static void run_voice(const char *name, const struct case_list *cases, float threshold)
{
	const struct tts_events ev = { on_audio, NULL, NULL };
	struct stt_decoder *d = NULL;
	struct hearth_err err = { 0 };
	struct tts_options o;
	struct tts *t;
	const char *home = "";
	char line[1024];
	int16_t *pcm;
	size_t n;
	FILE *f;
	int seen = 0;

	tts_defaults(&o);
	o.voice = name;
	if (tts_open(&o, NULL, &ev, &t, &err))
		die(err.text);
	memset(&in_tally, 0, sizeof(in_tally));
	memset(&other_tally, 0, sizeof(other_tally));
	for (int i = 0; i < cases->n; i++) {
		if (strcmp(home, cases->c[i].home)) {
			stt_decoder_free(d);
			home = cases->c[i].home;
			d = open_home(home);
		}
		say(t, cases->c[i].text, &pcm, &n);
		decode(d, name, cases->c[i].text, pcm, n, threshold);
		free(pcm);
	}
	f = fopen("tests/bench/other_speech.txt", "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (line[0] == '#' || seen++ % opt.every)
			continue;
		line[strcspn(line, "\n")] = '\0';
		say(t, line, &pcm, &n);
		decode(d, name, NULL, pcm, n, threshold);
		free(pcm);
	}
	if (f)
		fclose(f);
	stt_decoder_free(d);
	tts_close(t);
	report(name);
}

static void run_recordings(const char *home, float threshold)
{
	struct stt_decoder *d = open_home(home);
	glob_t g = { 0 };

	memset(&in_tally, 0, sizeof(in_tally));
	memset(&other_tally, 0, sizeof(other_tally));
	if (opt.wavs) {
		glob(opt.wavs, 0, NULL, &g);
	} else {
		glob("/usr/share/pocketsphinx/test/data/librivox/*.wav", 0, NULL, &g);
		glob("/usr/share/pocketsphinx/test/data/cards/*.wav", GLOB_APPEND, NULL, &g);
	}
	for (size_t i = 0; i < g.gl_pathc; i++) {
		static int16_t pcm[16000 * 60];
		struct hearth_err err = { 0 };
		struct audio_in *in;
		size_t n = 0;
		ssize_t got;

		if (audio_in_wav(g.gl_pathv[i], 16000, &in, &err))
			die(err.text);
		while (n + 1024 < sizeof(pcm) / 2 && (got = audio_in_read(in, pcm + n, 1024, &err)) > 0)
			n += (size_t)got;
		audio_in_close(in);
		if (opt.wavs)
			stt_decoder_forget(d); /* each as the first one heard */
		decode(d, opt.wavs ? strrchr(g.gl_pathv[i], '/') : "recorded", NULL, pcm, n, threshold);
	}
	if (g.gl_pathc)
		printf("recordings of %s: %d, taken for speech: %d, taken for a command: %d\n", opt.wavs ? opt.wavs : "other speech",
		       other_tally.n, other_tally.heard, other_tally.accepted);
	else
		printf("recordings of other speech: left out (package pocketsphinx-testdata)\n");
	globfree(&g);
	stt_decoder_free(d);
}

int main(int argc, char **argv)
{
	static struct case_list cases;
	struct stt_options o;
	char *voices, *save;
	int c;

	while ((c = getopt(argc, argv, "v:n:s:g:e:lw:")) != -1) {
		if (c == 'v') {
			opt.voices = optarg;
		} else if (c == 'n') {
			opt.every = atoi(optarg) > 0 ? atoi(optarg) : 1;
		} else if (c == 's') {
			opt.snr_db = atof(optarg);
		} else if (c == 'g') {
			opt.gain_db = atof(optarg);
		} else if (c == 'l') {
			opt.list = true;
		} else if (c == 'w') {
			opt.wavs = optarg;
		} else if (c == 'e') {
			FILE *f = fopen(optarg, "r");
			size_t n;

			opt.extra = calloc(1, 16 << 20);
			if (!f || !opt.extra)
				die(optarg);
			n = fread(opt.extra, 1, (16 << 20) - 1, f);
			opt.extra[n] = '\0';
			fclose(f);
		} else {
			return 2;
		}
	}
	if (optind < argc)
		opt.set = argv[optind];
	snprintf(opt.cache, sizeof(opt.cache), "/tmp/bench_stt.XXXXXX");
	if (!mkdtemp(opt.cache))
		die("no folder for the language models");
	stt_defaults(&o);
	read_cases(opt.set, &cases);
	if (!opt.list) {
		printf("%d sentences, noise at %.0f dB, gain %.0f dB, threshold %.2f\n", cases.n, opt.snr_db, opt.gain_db, o.threshold);
		printf("%-8s %5s %7s %7s %9s %9s | %5s %9s | %6s %7s %7s\n", "voice", "n", "WER %", "exact %",
		       "kept %", "wrong %", "other", "taken %", "RTF", "end ms", "max ms");
	}
	if (!opt.extra && !opt.list)
		printf("built-in patterns only; -e ~/.cache/hearth/stt/phrases-1.txt adds the home model's\n");
	voices = strdup(opt.voices);
	for (char *v = strtok_r(voices, ",", &save); v && !opt.wavs; v = strtok_r(NULL, ",", &save))
		run_voice(v, &cases, o.threshold);
	free(voices);
	if (cases.n && (opt.wavs || !opt.list))
		run_recordings(cases.c[0].home, o.threshold);
	{
		char cmd[128];

		snprintf(cmd, sizeof(cmd), "rm -r %s", opt.cache);
		return system(cmd) != 0;
	}
}
