// SPDX-License-Identifier: MIT
/*
 * What a turn makes of sounds: the detector, the recogniser and the verdict as
 * in listen.c and sched.c, without the model, as fast as it goes. Each sound
 * is the first one that a new program hears.
 *
 *   bench_hear [-d silero|energy] [-w WEIGHTS] [-H HOME] [-e PATTERNS] [-l] [-D DIR] LIST
 *     LIST: a sound in each line, GROUP <tab> WORDS <tab> FILE; words "-" where nobody speaks
 *     -l    a line for each utterance, with its evidence
 *     -D    each utterance goes there as raw samples, named by its line and count
 *   prints for each group how many were commands, right ones, no commands, nothing.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mono.h"
#include "home/home.h"
#include "voice/audio.h"
#include "voice/offset.h"
#include "voice/sched.h"
#include "voice/stt_decoder.h"
#include "voice/stt_model.h"
#include "voice/vad.h"

#define BLOCK 320
#define LEAD  3200           /* of silence before a file */
#define TAIL  48000          /* and after it */
#define ROOM  (16000 * 180)
#define EARLY 1024           /* of a pause, then the transcript is asked for */

struct group {
	char name[64];
	int n, spoken, command, right, rejected, nothing;
};

static struct {
	const char *home, *extra, *weights, *dump;
	bool energy, list;
} opt = { .home = "docs/examples/home.yaml" };

static struct group groups[64];
static int n_groups;
static int16_t pcm[ROOM];
static double sound_s, end_s;

/* One sound on its way. */
static struct {
	struct stt_decoder *d;
	struct vad *vad;
	const char *label;
	int64_t from, fed, pos, pause;
	bool open, asked, ended;
	int utterances;
	struct stt_evidence e;
	enum stt_verdict verdict;
} h;

__attribute__((noreturn)) static void die(const char *what)
{
	fprintf(stderr, "bench_hear: %s\n", what);
	exit(1);
}

static void feed(void)
{
	/* In pieces as large as stt.c's: PocketSphinx has a limit on what it takes at once. */
	for (int64_t n; h.open && !h.asked && h.fed < h.pos; h.fed += n) {
		n = h.pos - h.fed < 512 ? h.pos - h.fed : 512;
		if (stt_decoder_push(h.d, pcm + h.fed, (size_t)n))
			die("the recogniser failed");
	}
}

static void begin(void)
{
	if (stt_decoder_begin(h.d))
		die("the recogniser failed");
	h.open = true;
	h.asked = false;
	h.fed = h.from;
	feed();
}

static void ask(void)
{
	int64_t t = mono_ns();

	if (!h.open || h.asked)
		return;
	h.asked = true;
	if (stt_decoder_end(h.d, &h.e))
		die("the recogniser failed");
	end_s += (double)(mono_ns() - t) / 1e9;
	h.verdict = stt_decoder_verdict(&h.e, 0, opt.energy);
	if (h.verdict == STT_COMMAND && sched_bare_answer(h.e.text))
		h.verdict = STT_NOTHING;
}

static void on_vad(void *ctx, const struct vad_event *ev)
{
	float ends;

	switch (ev->kind) {
	case VAD_START:
		h.from = ev->at;
		h.pause = -1;
		begin();
		break;
	case VAD_PAUSE:
		h.pause = ev->at;
		feed();
		stt_decoder_partial(h.d, &ends);
		vad_set_end_wait(h.vad, stt_end_wait_ms(ends));
		break;
	case VAD_RESUME:
		h.pause = -1;
		if (h.asked)
			begin();
		break;
	case VAD_END:
		ask();
		h.ended = true;
		break;
	case VAD_BLIP:
		if (h.open && !h.asked)
			stt_decoder_drop(h.d);
		h.open = false;
		h.pause = -1;
		break;
	}
}

static void tell(void)
{
	char path[512];
	FILE *f;

	h.utterances++;
	if (opt.list)
		printf("%s#%d\t%s\t%d\t%s\t%d\t%d\t%.3f\t%.2f\t%d\t%.3f\t%d\t%.3f\t%.2f\t%.3f\t%.2f\t%.3f\t%.2f\t%.2f\n", h.label, h.utterances, stt_verdict_name(h.verdict), (int)(h.fed - h.from), h.e.text,
		       h.e.words, h.e.frames, h.e.lm, h.e.fit, h.e.sound.loud, h.e.sound.voiced, h.e.speech, h.e.score, (double)h.from / 16000,
		       h.e.sound.glide, h.e.sound.move, h.e.sound.clear, h.e.sound.needles, h.e.sound.voice);
	if (!opt.dump)
		return;
	snprintf(path, sizeof(path), "%s/%s#%d.raw", opt.dump, h.label, h.utterances);
	f = fopen(path, "w");
	if (!f || fwrite(pcm + h.from, 2, (size_t)(h.fed - h.from), f) != (size_t)(h.fed - h.from) || fclose(f))
		die(path);
}

/* The verdict on the whole sound: the first utterance that is not taken for a noise. */
static enum stt_verdict hear(size_t n, const char *label)
{
	vad_reset(h.vad);
	stt_decoder_forget(h.d);
	h.label = label;
	h.utterances = 0;
	h.open = h.asked = h.ended = false;
	h.pause = -1;
	h.pos = 0;
	while (h.pos + BLOCK <= (int64_t)n) {
		h.pos += BLOCK;
		vad_push(h.vad, pcm + h.pos - BLOCK, BLOCK, on_vad, NULL);
		feed();
		if (h.open && h.pause >= 0 && h.pos - h.pause >= EARLY)
			ask();
		if (h.ended) {
			h.ended = h.open = false;
			h.pause = -1;
			tell();
			if (h.verdict != STT_NOTHING)
				return h.verdict;
		}
	}
	if (h.open && !h.asked)
		stt_decoder_drop(h.d);
	return STT_NOTHING;
}

static size_t load(const char *path)
{
	struct hearth_err err = { 0 };
	struct offset offset = { 0 };
	struct audio_in *in;
	size_t n = LEAD;
	ssize_t got;

	if (audio_in_wav(path, 16000, &in, &err))
		die(err.text);
	memset(pcm, 0, LEAD * sizeof(*pcm));
	while (n + 1024 + TAIL < ROOM && (got = audio_in_read(in, pcm + n, 1024, &err)) > 0) {
		offset_remove(&offset, pcm + n, (size_t)got, pcm + n);
		n += (size_t)got;
	}
	audio_in_close(in);
	memset(pcm + n, 0, TAIL * sizeof(*pcm));
	sound_s += (double)n / 16000;
	return n + TAIL;
}

static struct group *group(const char *name)
{
	for (int i = 0; i < n_groups; i++)
		if (!strcmp(groups[i].name, name))
			return &groups[i];
	if (n_groups == 63)
		die("more than 63 groups");
	snprintf(groups[n_groups].name, sizeof(groups[0].name), "%s", name);
	return &groups[n_groups++];
}

static void hear_line(char *line, int number)
{
	char *save = NULL, *name = strtok_r(line, "\t", &save), *want = strtok_r(NULL, "\t", &save), *path = strtok_r(NULL, "\t\n", &save);
	struct hearth_err err = { 0 };
	struct vad_options o;
	enum stt_verdict v;
	struct group *g;
	char label[96];

	if (!path)
		die("a line of the list has no three parts");
	g = group(name);
	vad_defaults(&o);
	o.kind = opt.energy ? VAD_ENERGY : VAD_SILERO;
	o.weights = opt.weights;
	o.max_speech_ms = 20000;
	if (vad_open(&o, NULL, &h.vad, &err))
		die(err.text);
	snprintf(label, sizeof(label), "%d-%s", number, name);
	v = hear(load(path), label);
	vad_close(h.vad);
	g->n++;
	g->spoken += strcmp(want, "-") != 0;
	g->command += v == STT_COMMAND;
	g->right += v == STT_COMMAND && !strcmp(want, h.e.text);
	g->rejected += v == STT_REJECTED;
	g->nothing += v == STT_NOTHING;
	if (opt.list)
		printf("%s\t%s\t%s\t%s\t%s\n", label, stt_verdict_name(v), want, v == STT_NOTHING ? "" : h.e.text, path);
}

static void report(const struct group *g)
{
	printf("%-24s %6d %9d %7d %8d %8d\n", g->name, g->n, g->command, g->right, g->rejected, g->nothing);
}

static void open_home(const char *cache)
{
	struct hearth_err err = { 0 };
	struct stt_options o;
	struct phrasebook *b;
	struct stt_model m;
	struct home *home;

	stt_defaults(&o);
	if (home_load(opt.home, &home, &err) || phrasebook_new(&b) || stt_model_names(home, b, &err) ||
	    (opt.extra && phrasebook_load(b, opt.extra, &err)) || stt_model_build(b, NULL, NULL, cache, &m, &err))
		die(err.text);
	o.lm = m.lm;
	o.dict = m.dict;
	if (stt_decoder_new(&o, &h.d, &err))
		die(err.text);
	stt_model_done(&m);
	phrasebook_free(b);
	home_free(home);
}

static char *read_file(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 16 << 20);
	size_t n;

	if (!f || !text)
		die(path);
	n = fread(text, 1, (16 << 20) - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

int main(int argc, char **argv)
{
	struct group sounds = { .name = "all without words" }, words = { .name = "all with words" };
	char cache[] = "/tmp/bench_hear.XXXXXX", line[2048], cmd[128];
	int c, number = 0;
	FILE *f;

	while ((c = getopt(argc, argv, "d:w:H:e:lD:")) != -1) {
		if (c == 'd' && (!strcmp(optarg, "energy") || !strcmp(optarg, "silero")))
			opt.energy = *optarg == 'e';
		else if (c == 'w')
			opt.weights = optarg;
		else if (c == 'H')
			opt.home = optarg;
		else if (c == 'e')
			opt.extra = read_file(optarg);
		else if (c == 'l')
			opt.list = true;
		else if (c == 'D')
			opt.dump = optarg;
		else
			return 2;
	}
	if (optind + 1 != argc)
		return 2;
	f = fopen(argv[optind], "r");
	if (!f)
		die(argv[optind]);
	if (!mkdtemp(cache))
		die("no folder for the language models");
	open_home(cache);
	while (fgets(line, sizeof(line), f))
		hear_line(line, ++number);
	fclose(f);
	printf("%-24s %6s %9s %7s %8s %8s\n", opt.energy ? "energy" : "silero", "n", "command", "right", "rejected", "nothing");
	for (int i = 0; i < n_groups; i++) {
		struct group *g = groups + i, *all = g->spoken ? &words : &sounds;

		report(g);
		all->n += g->n;
		all->command += g->command;
		all->right += g->right;
		all->rejected += g->rejected;
		all->nothing += g->nothing;
	}
	report(&sounds);
	report(&words);
	printf("%.0f s of sound; the end of an utterance took %.3f ms per second of it\n", sound_s, sound_s > 0 ? 1000 * end_s / sound_s : 0);
	stt_decoder_free(h.d);
	free((char *)opt.extra);
	snprintf(cmd, sizeof(cmd), "rm -r %s", cache);
	return system(cmd) != 0;
}
