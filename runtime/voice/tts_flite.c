// SPDX-License-Identifier: MIT
/*
 * flite. Its voices are static objects with their settings inside, and it is
 * not written for threads: one lock for all of it, held for the length of a
 * phrase. Voices are loaded by name, so that only the one in use is in memory.
 */
#include "voice/tts_backend.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <flite/flite.h>

#include "voice/account.h"

#define PIECE 160 /* samples, at least, in a piece: 10 ms */

struct flite {
	void *lib;
	cst_voice *voice;
	int rate;
	char lib_name[48];
};

static pthread_mutex_t flite_lock = PTHREAD_MUTEX_INITIALIZER;

/* Heap while the warm-up sentence is spoken, as measured with flite 2.2 on x86-64. */
static const struct flite_voice {
	const char *name;
	size_t heap;
} voices[] = {
	{ "slt", 1472000 }, { "rms", 1638000 }, { "awb", 1415000 }, { "kal16", 385000 }, { "kal", 286000 },
};

static int flite_takes(const char *voice)
{
	return strncmp(voice, "espeak-ng", 9) != 0;
}

static int no_voice(struct hearth_err *err, const char *voice)
{
	return err_set(err, -ENOENT, "no flite voice \"%s\" here; there may be slt, rms, awb, kal16, kal (package libflite1)",
		       voice);
}

static void flite_drop(void *self)
{
	struct flite *f = self;

	/*
	 * The library stays loaded: flite keeps pointers into a voice that
	 * was registered, and opening it again is then free.
	 */
	free(f);
}

static int flite_load(const struct tts_options *o, void **ret, struct hearth_err *err)
{
	cst_voice *(*reg)(const char *);
	struct flite *f;
	char symbol[64];
	size_t n = strlen(o->voice);

	if (n == 0 || n > 16 || strspn(o->voice, "abcdefghijklmnopqrstuvwxyz0123456789") != n)
		return no_voice(err, o->voice);
	f = calloc(1, sizeof(*f));
	if (!f)
		return err_set(err, -ENOMEM, "no memory for the voice %s", o->voice);
	snprintf(f->lib_name, sizeof(f->lib_name), "libflite_cmu_us_%s.so", o->voice);
	snprintf(symbol, sizeof(symbol), "%s.1", f->lib_name);
	f->lib = dlopen(symbol, RTLD_NOW | RTLD_LOCAL);
	if (!f->lib) {
		free(f);
		return no_voice(err, o->voice);
	}
	snprintf(symbol, sizeof(symbol), "register_cmu_us_%s", o->voice);
	/* POSIX lets a data pointer from dlsym become a function pointer. */
	*(void **)&reg = dlsym(f->lib, symbol);
	pthread_mutex_lock(&flite_lock);
	flite_init();
	f->voice = reg ? reg(NULL) : NULL;
	if (f->voice) {
		feat_set_float(f->voice->features, "duration_stretch", 1.0f / o->speed);
		f->rate = 16000;
	}
	pthread_mutex_unlock(&flite_lock);
	if (!f->voice) {
		free(f);
		return no_voice(err, o->voice);
	}
	*ret = f;
	return 0;
}

/* -- text: flite reads ASCII -------------------------------------------------- */

/* Letters of U+00C0..U+017F without their accents; '\0' where two are needed or none fits. */
static const char bare_latin[] =
	"AAAAAA\0CEEEEIIII" "DNOOOOOxOUUUUY\0\0" "aaaaaa\0ceeeeiiii" "dnooooo\0ouuuuy\0y"
	"AaAaAaCcCcCcCcDd" "DdEeEeEeEeEeGgGg" "GgGgHhHhIiIiIiIi" "Ii\0\0JjKkkLlLlLlL"
	"lLlNnNnNnnNnOoOo" "Oo\0\0RrRrRrSsSsSs" "SsTtTtTtUuUuUuUu" "UuUuWwYyYZzZzZzs";

static const struct {
	unsigned cp;
	const char *ascii;
} marks[] = {
	{ 0xa0, " " }, { 0xb0, " degrees" }, { 0xc6, "AE" }, { 0xde, "Th" }, { 0xdf, "ss" },
	{ 0xe6, "ae" }, { 0xfe, "th" }, { 0x132, "IJ" }, { 0x133, "ij" }, { 0x152, "OE" },
	{ 0x153, "oe" }, { 0x2010, "-" }, { 0x2011, "-" }, { 0x2013, ", " }, { 0x2014, ", " },
	{ 0x2018, "'" }, { 0x2019, "'" }, { 0x201c, "\"" }, { 0x201d, "\"" }, { 0x2026, "..." },
	{ 0x202f, " " }, { 0x20ac, " euros " },
};

static unsigned next_char(const unsigned char **p)
{
	const unsigned char *s = *p;
	unsigned cp = *s;
	int more = cp >= 0xf0 ? 3 : cp >= 0xe0 ? 2 : cp >= 0xc0 ? 1 : 0;

	/* tts_say has checked that it is UTF-8. */
	if (more)
		cp &= 0x3fu >> more;
	for (s++; more > 0 && *s; more--, s++)
		cp = cp << 6 | (*s & 0x3f);
	*p = s;
	return cp;
}

/* What flite can read of @text; other scripts become a pause. NULL: no memory. */
static char *to_ascii(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	char *out = malloc(strlen(text) * 8 + 1), *q = out;

	if (!out)
		return NULL;
	while (*p) {
		unsigned cp = next_char(&p);
		const char *s = NULL;

		if (cp < 0x80) {
			*q++ = iscntrl((int)cp) ? ' ' : (char)cp;
			continue;
		}
		for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
			if (marks[i].cp == cp)
				s = marks[i].ascii;
		if (s)
			q = stpcpy(q, s);
		else if (cp >= 0xc0 && cp < 0xc0 + sizeof(bare_latin) - 1 && bare_latin[cp - 0xc0])
			*q++ = bare_latin[cp - 0xc0];
		else
			*q++ = ' ';
	}
	*q = '\0';
	return out;
}

static bool has_words(const char *s)
{
	for (; *s; s++)
		if (isalnum((unsigned char)*s))
			return true;
	return false;
}

/* -- synthesis ---------------------------------------------------------------- */

struct stream {
	tts_piece_fn *fn;
	void *ctx;
	struct flite *f;
};

static int on_piece(const cst_wave *w, int start, int size, int last,
		    cst_audio_streaming_info *asi)
{
	struct stream *s = asi->userdata;

	s->f->rate = w->sample_rate; /* only the wave itself says it for sure */
	if (size > 0 && s->fn(s->ctx, w->samples + start, (size_t)size))
		return CST_AUDIO_STREAM_STOP;
	return CST_AUDIO_STREAM_CONT;
}

static int flite_speak(void *self, const char *text, tts_piece_fn *fn, void *ctx)
{
	struct flite *f = self;
	struct stream s = { fn, ctx, f };
	cst_audio_streaming_info *asi;
	char *ascii = to_ascii(text);
	cst_utterance *u;

	if (!ascii)
		return -ENOMEM;
	if (!has_words(ascii)) {
		free(ascii);
		return 0;
	}
	pthread_mutex_lock(&flite_lock);
	asi = new_audio_streaming_info();
	asi->min_buffsize = PIECE;
	asi->asc = on_piece;
	asi->userdata = &s;
	/* The voice owns asi from here; setting another, or removing it, frees it. */
	feat_set(f->voice->features, "streaming_info", audio_streaming_info_val(asi));
	u = flite_synth_text(ascii, f->voice);
	if (u)
		delete_utterance(u);
	feat_remove(f->voice->features, "streaming_info");
	pthread_mutex_unlock(&flite_lock);
	free(ascii);
	return u ? 0 : -EIO;
}

static int flite_rate(void *self)
{
	return ((struct flite *)self)->rate;
}

static size_t mapped_with(const char *lib_name)
{
	return voice_library_bytes(lib_name) + voice_library_bytes("libflite.so") +
	       voice_library_bytes("libflite_usenglish") + voice_library_bytes("libflite_cmulex");
}

static size_t flite_mapped(void *self)
{
	return mapped_with(((struct flite *)self)->lib_name);
}

static size_t flite_predict(const struct tts_options *o)
{
	char lib_name[48], soname[64];
	const struct flite_voice *v = voices;

	for (size_t i = 0; i < sizeof(voices) / sizeof(voices[0]); i++)
		if (!strcmp(voices[i].name, o->voice))
			v = &voices[i];
	/* Mapping a library takes no memory before its pages are touched; its size is then known. */
	snprintf(lib_name, sizeof(lib_name), "libflite_cmu_us_%s.so", v->name);
	snprintf(soname, sizeof(soname), "%s.1", lib_name);
	dlopen(soname, RTLD_NOW | RTLD_LOCAL);
	return v->heap + mapped_with(lib_name);
}

const struct tts_backend tts_flite = {
	.name = "flite",
	.takes = flite_takes,
	.open = flite_load,
	.speak = flite_speak,
	.rate = flite_rate,
	.mapped = flite_mapped,
	.predict = flite_predict,
	.close = flite_drop,
};
