// SPDX-License-Identifier: MIT
#include "server/speech.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>

#include "base/mono.h"
#include "dev/hearth.h"
#include "home/home.h"
#include "voice/chunker.h"
#include "voice/phrasebook.h"
#include "voice/stt_model.h"
#include "voice/tts.h"
#include "voice/wake.h"
#include "voice/vad.h"

#define GENERAL_LM   "/usr/share/pocketsphinx/model/en-us/en-us.lm.bin"
#define GENERAL_DICT "/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict"

#define WAKES 4

/* flite's, of the package libflite1 */
static const char *const voices[] = { "slt", "rms", "awb", "kal16", "kal" };
/* OpenAI's: clients have one of these built in, and each is the configured voice here. */
static const char *const aliases[] = {
	"alloy", "ash", "ballad", "cedar", "coral", "echo", "fable", "marin", "nova", "onyx", "sage", "shimmer", "verse",
};

#define VOICES (sizeof(voices) / sizeof(voices[0]))

struct turnstile {                 /* one at a time, with a limit on the wait */
	pthread_mutex_t lock;
	pthread_cond_t free;
	bool taken;
};

struct hearing {
	struct speech *s;
	uint64_t id;
	void (*partial)(void *arg, const char *text);
	void *arg;
	struct stt_result result;
	bool done;
};

struct speech {
	struct stt *stt;
	struct tts *tts;
	struct tts_options tts_o;
	const char *voice;         /* the configured one */
	int rates[VOICES];         /* of those that were asked for; -1: not here (lock) */
	int rate;                  /* of the voice; 0: none is switched on */
	struct voice_account tts_acc;
	struct hearth_tenant *t_stt, *t_tts;
	struct turnstile ear, mouth;
	atomic_ullong next;        /* ids, of utterances and of phrases */
	/* the utterance under way, and the phrase */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct hearing *now;
	int (*pcm)(void *arg, const int16_t *pcm, size_t n);
	void *pcm_arg;
	bool said, refused;
	int status;
	struct stt_model model;
	/* wake-word detectors, opened when they are first needed (lock) */
	struct wake *wakes[WAKES];
	bool wake_used[WAKES];
	struct wake_options wake_o;
	char *phrase;
	struct voice_account wake_acc;
	struct hearth_tenant *t_wake;
	char note[SPEECH_NOTE];
	char vad[512];             /* Silero's weights; "": the energy detector */
};

void speech_vad_options(const struct speech *s, struct vad_options *ret)
{
	vad_defaults(ret);
	if (s && s->vad[0])
		ret->weights = s->vad;
	else
		ret->kind = VAD_ENERGY;
}

/* A file that was named must be there; the cache may have one or not. */
static int find_vad(struct speech *s, const struct config *cfg, struct hearth_err *err)
{
	struct vad_options o;
	struct vad *v;
	int rc;

	if (cfg->vad)
		snprintf(s->vad, sizeof(s->vad), "%s", cfg->vad);
	else if (cfg->cache)
		snprintf(s->vad, sizeof(s->vad), "%s/silero-16k-1.weights", cfg->cache);
	if (!s->vad[0])
		return 0;
	speech_vad_options(s, &o);
	rc = vad_open(&o, NULL, &v, err);
	if (!rc) {
		vad_close(v);
	} else if (rc == -ENOENT && !cfg->vad) {
		s->vad[0] = '\0';
		rc = 0;
	}
	return rc;
}

static int turn_take(struct turnstile *t, int wait_ms)
{
	const struct timespec until = mono_after(wait_ms);
	int rc = 0;

	pthread_mutex_lock(&t->lock);
	while (t->taken && !rc)
		rc = pthread_cond_timedwait(&t->free, &t->lock, &until);
	if (!t->taken) {
		t->taken = true;
		rc = 0;
	}
	pthread_mutex_unlock(&t->lock);
	return rc ? -ETIMEDOUT : 0;
}

static void turn_give(struct turnstile *t)
{
	pthread_mutex_lock(&t->lock);
	t->taken = false;
	pthread_cond_signal(&t->free);
	pthread_mutex_unlock(&t->lock);
}

/* -- hearing ------------------------------------------------------------------------ */

static void on_partial(void *ctx, const struct stt_partial *p)
{
	struct speech *s = ctx;
	struct hearing *h = s->now;

	/* now is set before begin and cleared after the final: it cannot change under this call. */
	if (h && h->id == p->id && h->partial)
		h->partial(h->arg, p->text);
}

static void on_final(void *ctx, const struct stt_result *r)
{
	struct speech *s = ctx;

	pthread_mutex_lock(&s->lock);
	if (s->now && s->now->id == r->id) {
		s->now->result = *r;
		s->now->done = true;
		pthread_cond_broadcast(&s->changed);
	}
	pthread_mutex_unlock(&s->lock);
}

int hearing_begin(struct speech *s, int wait_ms, void (*partial)(void *, const char *), void *arg,
		  struct hearing **ret, struct hearth_err *err)
{
	struct hearing *h = calloc(1, sizeof(*h));
	int rc;

	if (!h)
		return err_set(err, -ENOMEM, "out of memory");
	rc = turn_take(&s->ear, wait_ms);
	if (rc) {
		free(h);
		return err_set(err, rc, "the recogniser was busy for %d s", wait_ms / 1000);
	}
	h->s = s;
	h->partial = partial;
	h->arg = arg;
	pthread_mutex_lock(&s->lock);
	h->id = ++s->next;
	s->now = h;
	pthread_mutex_unlock(&s->lock);
	rc = stt_begin(s->stt, h->id);
	if (rc) {
		s->now = NULL;
		turn_give(&s->ear);
		free(h);
		return err_set(err, rc, "the recogniser does not begin: %s", strerror(-rc));
	}
	*ret = h;
	return 0;
}

int hearing_push(struct hearing *h, const int16_t *pcm, size_t n)
{
	return stt_push(h->s->stt, pcm, n);
}

static void finish(struct hearing *h, struct stt_result *r)
{
	struct speech *s = h->s;

	pthread_mutex_lock(&s->lock);
	while (!h->done)
		pthread_cond_wait(&s->changed, &s->lock);
	s->now = NULL;
	pthread_mutex_unlock(&s->lock);
	if (r)
		*r = h->result;
	turn_give(&s->ear);
	free(h);
}

int hearing_end(struct hearing *h, struct stt_result *ret_r, struct hearth_err *err)
{
	int rc = stt_end(h->s->stt);

	if (rc) {
		hearing_drop(h);
		return err_set(err, rc, "the recogniser does not end: %s", strerror(-rc));
	}
	finish(h, ret_r);
	return ret_r->verdict == STT_FAILED ? err_set(err, ret_r->err.code, "%s", ret_r->err.text) : 0;
}

void hearing_drop(struct hearing *h)
{
	if (!h)
		return;
	/* The end closes the utterance; without it no final comes. */
	stt_cancel(h->s->stt);
	stt_end(h->s->stt);
	finish(h, NULL);
}

/* -- speaking ----------------------------------------------------------------------- */

static int on_audio(void *ctx, uint64_t id, const int16_t *pcm, size_t n, bool first)
{
	struct speech *s = ctx;

	if (s->refused)
		return 1;
	if (s->pcm(s->pcm_arg, pcm, n))
		s->refused = true;
	return s->refused;
}

static void on_said(void *ctx, uint64_t id, int status, uint64_t samples)
{
	struct speech *s = ctx;

	pthread_mutex_lock(&s->lock);
	s->said = true;
	s->status = status;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static int open_voice(struct speech *s, struct hearth_err *err)
{
	struct tts_events ev = { .audio = on_audio, .done = on_said, .ctx = s };

	return tts_open(&s->tts_o, s->tts_acc.pool ? &s->tts_acc : NULL, &ev, &s->tts, err);
}

/* A voice is open at one speed. Whoever holds the mouth may open it anew. */
static int set_voice(struct speech *s, const char *voice, float speed, struct hearth_err *err)
{
	const struct tts_options old = s->tts_o;
	int rc;

	if (speed == old.speed && !strcmp(voice, old.voice) && s->tts)
		return 0;
	tts_close(s->tts);
	s->tts = NULL;
	s->tts_o.speed = speed;
	s->tts_o.voice = voice;
	rc = open_voice(s, err);
	if (rc) {
		s->tts_o = old;
		if (open_voice(s, NULL))
			s->tts = NULL;
	}
	return rc;
}

/* The rate of flite's voice @i, opened once to see whether it is here; -1: it is not. */
static int rate_of(struct speech *s, size_t i)
{
	struct tts_events ev = { .audio = on_audio, .done = on_said, .ctx = s };
	struct tts_options o;
	struct tts *t;
	int rate;

	pthread_mutex_lock(&s->lock);
	rate = s->rates[i];
	pthread_mutex_unlock(&s->lock);
	if (rate)
		return rate;
	tts_defaults(&o);
	o.voice = voices[i];
	rate = -1;
	if (!tts_open(&o, NULL, &ev, &t, NULL)) {
		rate = tts_rate(t);
		tts_close(t);
	}
	pthread_mutex_lock(&s->lock);
	s->rates[i] = rate;
	pthread_mutex_unlock(&s->lock);
	return rate;
}

int speech_voice(struct speech *s, const char *name, const char **ret, struct hearth_err *err)
{
	bool own = !name || !*name || !strcmp(name, s->voice);
	int rate;

	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]) && !own; i++)
		own = !strcmp(name, aliases[i]);
	if (own) {
		*ret = s->voice;
		return 0;
	}
	for (size_t i = 0; i < VOICES; i++) {
		if (strcmp(name, voices[i]))
			continue;
		rate = rate_of(s, i);
		if (rate > 0 && rate != s->rate)
			return err_set(err, -ENOENT, "the voice \"%s\" speaks at %d Hz, and what is served here is %d Hz (speech.voice is %.60s)", name, rate,
				       s->rate, s->voice);
		if (rate > 0) {
			*ret = voices[i];
			return 0;
		}
	}
	return err_set(err, -ENOENT, "there is no voice \"%.60s\" here; there is %.60s, which OpenAI's names mean too, and flite's that are installed", name,
		       s->voice);
}

int speech_say(struct speech *s, const char *voice, const char *text, double speed, int wait_ms,
	       int (*pcm)(void *, const int16_t *, size_t), void *arg, struct hearth_err *err)
{
	int rc = turn_take(&s->mouth, wait_ms);

	if (rc)
		return err_set(err, rc, "the voice was busy for %d s", wait_ms / 1000);
	rc = set_voice(s, voice ? voice : s->voice, (float)speed, err);
	if (rc) {
		turn_give(&s->mouth);
		return rc;
	}
	s->pcm = pcm;
	s->pcm_arg = arg;
	s->said = s->refused = false;
	rc = tts_say(s->tts, ++s->next, text, wait_ms);
	if (rc) {
		turn_give(&s->mouth);
		return err_set(err, rc, rc == -EINVAL ? "the text is not UTF-8, or longer than 4096 bytes" : "the voice does not take the text");
	}
	pthread_mutex_lock(&s->lock);
	while (!s->said)
		pthread_cond_wait(&s->changed, &s->lock);
	rc = s->refused ? -ECANCELED : s->status;
	pthread_mutex_unlock(&s->lock);
	turn_give(&s->mouth);
	return rc ? err_set(err, rc, "the voice stopped") : 0;
}

/* -- life --------------------------------------------------------------------------- */

bool speech_hears(const struct speech *s)
{
	return s && s->stt;
}

const char *speech_wakes(const struct speech *s)
{
	return s ? s->phrase : NULL;
}

int speech_wake_take(struct speech *s, struct wake **ret, struct hearth_err *err)
{
	int rc = -EBUSY;

	if (!speech_wakes(s))
		return err_set(err, -ENOTSUP, "no wake word is listened for here");
	pthread_mutex_lock(&s->lock);
	for (int i = 0; i < WAKES && rc == -EBUSY; i++) {
		if (s->wake_used[i])
			continue;
		rc = s->wakes[i] ? 0 : wake_open(&s->wake_o, s->wake_acc.pool ? &s->wake_acc : NULL, &s->wakes[i], err);
		if (!rc) {
			s->wake_used[i] = true;
			wake_reset(s->wakes[i]);
			*ret = s->wakes[i];
		}
	}
	pthread_mutex_unlock(&s->lock);
	return rc == -EBUSY ? err_set(err, rc, "%d clients listen for the wake word already, which is the limit", WAKES) : rc;
}

void speech_wake_give(struct speech *s, struct wake *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&s->lock);
	for (int i = 0; i < WAKES; i++)
		if (s->wakes[i] == w)
			s->wake_used[i] = false;
	pthread_mutex_unlock(&s->lock);
}

bool speech_speaks(const struct speech *s)
{
	return s && s->rate;
}

const char *speech_note(const struct speech *s)
{
	return s ? s->note : "";
}

int speech_rate(const struct speech *s)
{
	return s->rate;
}

static int home_model(struct speech *s, const struct config *cfg, struct hearth_err *err)
{
	struct phrasebook *b = NULL;
	struct home *home = NULL;
	char dir[512];
	int rc;

	snprintf(dir, sizeof(dir), "%s/stt", cfg->cache ? cfg->cache : "/tmp/hearth-cache");
	rc = home_load(cfg->home, &home, err);
	if (!rc)
		rc = phrasebook_new(&b);
	if (!rc)
		rc = stt_model_names(home, b, err);
	if (!rc)
		rc = stt_model_build(b, NULL, NULL, dir, &s->model, err);
	phrasebook_free(b);
	home_free(home);
	return rc;
}

uint64_t speech_bytes(const struct config *cfg)
{
	uint64_t n = 0;

	if (cfg->stt) {
		struct stt_options o;

		/* The files of a home are made when it is first opened: until then a home of some size. */
		stt_defaults(&o);
		o.lm = cfg->lm ? cfg->lm : cfg->home ? NULL : GENERAL_LM;
		o.dict = cfg->dict ? cfg->dict : GENERAL_DICT;
		n += stt_predict(&o);
		/* The distribution's general model unpacks to several times its files. */
		if (!cfg->lm && !cfg->home)
			n += 128u << 20;
	}
	if (cfg->tts) {
		struct tts_options o;

		tts_defaults(&o);
		o.voice = cfg->voice;
		n += tts_predict(&o);
	}
	if (cfg->wake)
		n += WAKES * wake_predict();
	return n;
}

uint64_t speech_predict(const struct config *cfg)
{
	return speech_bytes(cfg) * 2 + (cfg->stt && cfg->home ? 64u << 20 : 0);
}

/* The recogniser's files; NULL where the home's own are made for it. */
static void stt_options_of(const struct config *cfg, struct stt_options *o)
{
	const bool own = cfg->home && !cfg->lm;

	stt_defaults(o);
	o->lm = own ? NULL : cfg->lm ? cfg->lm : GENERAL_LM;
	o->dict = own ? NULL : cfg->dict ? cfg->dict : GENERAL_DICT;
}

static void note_guesses(const struct wake *w, const char *phrase, char note[SPEECH_NOTE])
{
	if (*wake_guessed(w))
		snprintf(note, SPEECH_NOTE, "no dictionary has \"%.127s\" of the wake phrase \"%.80s\": how it sounds is guessed", wake_guessed(w), phrase);
}

int speech_check(const struct config *cfg, char note[SPEECH_NOTE], struct hearth_err *err)
{
	struct speech *s = calloc(1, sizeof(*s));
	struct stt_options o;
	struct wake *w;
	int rc = 0;

	*note = 0;
	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	if (cfg->stt) {
		stt_options_of(cfg, &o);
		rc = stt_check(&o, err);
		if (!rc)
			rc = find_vad(s, cfg, err);
	}
	if (!rc && cfg->wake) {
		wake_defaults(&s->wake_o);
		s->wake_o.phrase = cfg->wake;
		s->wake_o.threshold = cfg->wake_threshold;
		rc = wake_open(&s->wake_o, NULL, &w, err);
		if (!rc) {
			note_guesses(w, cfg->wake, note);
			wake_close(w);
		}
	}
	if (!rc && cfg->tts) {
		tts_defaults(&s->tts_o);
		s->tts_o.voice = cfg->voice;
		rc = open_voice(s, err);
		tts_close(s->tts);
	}
	free(s);
	return rc;
}

/* The first detector at once: a phrase that cannot be listened for is known at the start. */
static int open_wake(struct speech *s, const struct config *cfg, struct hearth *h, struct hearth_pool *pool, struct hearth_err *err)
{
	struct wake *w;
	int rc = 0;

	wake_defaults(&s->wake_o);
	s->phrase = strdup(cfg->wake);
	if (!s->phrase)
		return err_set(err, -ENOMEM, "out of memory");
	s->wake_o.phrase = s->phrase;
	s->wake_o.threshold = cfg->wake_threshold;
	if (pool)
		rc = hearth_tenant_open(h, "wake", HEARTH_CLASS_VAD, 30, &s->t_wake, err);
	s->wake_acc = (struct voice_account){ .tenant = s->t_wake, .pool = pool };
	if (!rc)
		rc = speech_wake_take(s, &w, err);
	if (!rc) {
		note_guesses(w, s->phrase, s->note);
		speech_wake_give(s, w);
	}
	return rc;
}

int speech_open(const struct config *cfg, struct hearth *h, struct speech **ret, struct hearth_err *err)
{
	struct speech *s = calloc(1, sizeof(*s));
	struct hearth_pool *pool = h ? hearth_pool(h, HEARTH_KIND_ACCOUNT) : NULL;
	struct voice_account acc = { .pool = pool };
	int rc = 0;

	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->ear.lock, NULL);
	pthread_mutex_init(&s->mouth.lock, NULL);
	mono_cond(&s->changed);
	mono_cond(&s->ear.free);
	mono_cond(&s->mouth.free);
	if (cfg->stt) {
		struct stt_events ev = { .partial = on_partial, .final = on_final, .ctx = s };
		struct stt_options o;

		stt_options_of(cfg, &o);
		if (cfg->home && !cfg->lm) {
			rc = home_model(s, cfg, err);
			o.lm = s->model.lm;
			o.dict = s->model.dict;
		}
		if (!rc && pool)
			rc = hearth_tenant_open(h, "stt", HEARTH_CLASS_STT, 30, &s->t_stt, err);
		acc.tenant = s->t_stt;
		if (!rc)
			rc = find_vad(s, cfg, err);
		/* A home's commands may come from the energy detector, which lets any loud sound by. */
		o.unsure = cfg->home && !cfg->lm && !s->vad[0];
		if (!rc)
			rc = stt_open(&o, pool ? &acc : NULL, &ev, &s->stt, err);
	}
	if (!rc && cfg->tts) {
		tts_defaults(&s->tts_o);
		s->tts_o.voice = s->voice = cfg->voice;
		if (pool)
			rc = hearth_tenant_open(h, "tts", HEARTH_CLASS_TTS, 30, &s->t_tts, err);
		s->tts_acc = (struct voice_account){ .tenant = s->t_tts, .pool = pool };
		if (!rc)
			rc = open_voice(s, err);
		if (!rc)
			s->rate = tts_rate(s->tts);
	}
	if (!rc && cfg->wake)
		rc = open_wake(s, cfg, h, pool, err);
	if (rc) {
		speech_close(s);
		return rc;
	}
	*ret = s;
	return 0;
}

void speech_close(struct speech *s)
{
	if (!s)
		return;
	stt_close(s->stt);
	tts_close(s->tts);
	for (int i = 0; i < WAKES; i++)
		wake_close(s->wakes[i]);
	free(s->phrase);
	hearth_tenant_close(s->t_wake);
	hearth_tenant_close(s->t_stt);
	hearth_tenant_close(s->t_tts);
	stt_model_done(&s->model);
	pthread_cond_destroy(&s->changed);
	pthread_cond_destroy(&s->ear.free);
	pthread_cond_destroy(&s->mouth.free);
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->ear.lock);
	pthread_mutex_destroy(&s->mouth.lock);
	free(s);
}
