// SPDX-License-Identifier: MIT
/*
 * espeak-ng, where the user has installed it: loaded at run time and only on
 * request, because its licence is GPL-3 and hearth neither needs nor ships it.
 * The few declarations are written from its documented interface.
 */
#include "voice/tts_backend.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "voice/account.h"

enum {
	OUTPUT_SYNCHRONOUS = 2,
	INIT_DONT_EXIT = 0x8000,
	POS_CHARACTER = 1,
	CHARS_UTF8 = 1,
	PARAM_RATE = 1,
	WORDS_PER_MINUTE = 165,
};

typedef int synth_callback(short *wav, int n, void *events);

static struct {
	void *lib;
	int rate;
	int (*initialize)(int output, int buffer_ms, const char *path, int options);
	void (*set_callback)(synth_callback *fn);
	int (*synth)(const void *text, size_t size, unsigned position, int position_type,
		     unsigned end, unsigned flags, unsigned *id, void *user);
	int (*set_voice)(const char *name);
	int (*set_parameter)(int parameter, int value, int relative);
} es;

static pthread_mutex_t es_lock = PTHREAD_MUTEX_INITIALIZER; /* guards es and current */

static struct {
	tts_piece_fn *fn;
	void *ctx;
} current;

struct espeak {
	char voice[64];
	float speed;
};

static int espeak_takes(const char *voice)
{
	return !strncmp(voice, "espeak-ng", 9) && (voice[9] == '\0' || voice[9] == ':');
}

static int on_samples(short *wav, int n, void *events)
{
	if (!wav || n <= 0)
		return 0;
	return current.fn(current.ctx, wav, (size_t)n) ? 1 : 0;
}

static bool load(const char *name, void *fn)
{
	*(void **)fn = dlsym(es.lib, name);
	return *(void **)fn != NULL;
}

static int start(struct hearth_err *err)
{
	if (es.lib)
		return 0;
	es.lib = dlopen("libespeak-ng.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!es.lib)
		return err_set(err, -ENOENT, "espeak-ng is not installed (package libespeak-ng1)");
	if (load("espeak_Initialize", &es.initialize) && load("espeak_SetSynthCallback", &es.set_callback) &&
	    load("espeak_Synth", &es.synth) && load("espeak_SetVoiceByName", &es.set_voice) &&
	    load("espeak_SetParameter", &es.set_parameter))
		es.rate = es.initialize(OUTPUT_SYNCHRONOUS, 40, NULL, INIT_DONT_EXIT);
	if (es.rate <= 0) {
		dlclose(es.lib);
		memset(&es, 0, sizeof(es));
		return err_set(err, -ENOENT, "espeak-ng is here but does not start (package espeak-ng-data)");
	}
	es.set_callback(on_samples);
	return 0;
}

static int espeak_open(const struct tts_options *o, void **ret, struct hearth_err *err)
{
	const char *voice = o->voice[9] == ':' ? o->voice + 10 : "en-us";
	struct espeak *e;
	int rc;

	if (strlen(voice) >= sizeof(e->voice) || !*voice)
		return err_set(err, -ENOENT, "espeak-ng has no voice \"%s\"", voice);
	e = calloc(1, sizeof(*e));
	if (!e)
		return err_set(err, -ENOMEM, "no memory for the voice %s", voice);
	strcpy(e->voice, voice);
	e->speed = o->speed;
	pthread_mutex_lock(&es_lock);
	rc = start(err);
	if (!rc && es.set_voice(voice))
		rc = err_set(err, -ENOENT, "espeak-ng has no voice \"%s\" (espeak-ng --voices lists them)", voice);
	pthread_mutex_unlock(&es_lock);
	if (rc)
		free(e);
	else
		*ret = e;
	return rc;
}

static int espeak_speak(void *self, const char *text, tts_piece_fn *fn, void *ctx)
{
	struct espeak *e = self;
	int rc;

	pthread_mutex_lock(&es_lock);
	current.fn = fn;
	current.ctx = ctx;
	rc = es.set_voice(e->voice);
	if (!rc)
		rc = es.set_parameter(PARAM_RATE, (int)(WORDS_PER_MINUTE * e->speed), 0);
	if (!rc)
		rc = es.synth(text, strlen(text) + 1, 0, POS_CHARACTER, 0, CHARS_UTF8, NULL, NULL);
	pthread_mutex_unlock(&es_lock);
	return rc ? -EIO : 0;
}

static int espeak_rate(void *self)
{
	return es.rate;
}

static size_t espeak_mapped(void *self)
{
	return voice_library_bytes("libespeak-ng");
}

static size_t espeak_predict(const struct tts_options *o)
{
	return 3 << 20;
}

static void espeak_close(void *self)
{
	free(self);
}

const struct tts_backend tts_espeak = {
	.name = "espeak-ng",
	.takes = espeak_takes,
	.open = espeak_open,
	.speak = espeak_speak,
	.rate = espeak_rate,
	.mapped = espeak_mapped,
	.predict = espeak_predict,
	.close = espeak_close,
};
