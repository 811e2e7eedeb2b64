// SPDX-License-Identifier: MIT
#include "voice/tts.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mono.h"
#include "base/utf8.h"
#include "voice/tts_backend.h"

#define TEXT_MAX   4096
#define LOUD       96   /* of 32768: the first sound of a phrase is louder than this */
#define LEAD_MS    8    /* kept of the silence before it, so that no onset is cut */

struct phrase {
	uint64_t id;
	uint64_t epoch;  /* of the last cancel before it was said */
	char *text;
};

struct tts {
	struct tts_options o;
	struct tts_events ev;
	const struct tts_backend *be;
	void *self;
	int rate;
	struct voice_charge charge;
	size_t footprint;

	pthread_t thread;
	bool started;
	pthread_mutex_t lock;    /* guards what follows */
	pthread_cond_t changed;
	struct phrase *queue;    /* a ring of o.queue */
	size_t at, n;
	bool busy, quit;
	_Atomic uint64_t epoch;  /* counts cancels; also read by the running phrase */
};

/* The phrase that is being spoken. */
struct speaking {
	struct tts *t;
	struct phrase *p;
	uint64_t samples;
	bool sounding;           /* the first sound has come */
	bool stopped;
	int16_t lead[512];       /* the last silence, not given yet */
	size_t lead_n;
	size_t heap;             /* the most seen while speaking (warm-up only) */
};

void tts_defaults(struct tts_options *o)
{
	*o = (struct tts_options){ .voice = "slt", .speed = 1.0f, .queue = 16, .cut_silence = 1 };
}

static const struct tts_backend *backend_of(const char *voice)
{
	return tts_espeak.takes(voice) ? &tts_espeak : &tts_flite;
}

size_t tts_predict(const struct tts_options *o)
{
	return backend_of(o->voice)->predict(o);
}

static int give(struct speaking *s, const int16_t *pcm, size_t n)
{
	struct tts *t = s->t;
	bool first = s->samples == 0;

	if (n == 0)
		return 0;
	s->samples += n;
	if (t->ev.audio && t->ev.audio(t->ev.ctx, s->p->id, pcm, n, first))
		s->stopped = true;
	return s->stopped;
}

/* Holds back the silence before the first sound; its end goes out with the sound. */
static size_t skip_silence(struct speaking *s, const int16_t *pcm, size_t n)
{
	size_t keep = (size_t)s->t->rate * LEAD_MS / 1000, i = 0, from;

	if (keep > sizeof(s->lead) / sizeof(s->lead[0]))
		keep = sizeof(s->lead) / sizeof(s->lead[0]);
	while (i < n && abs(pcm[i]) < LOUD)
		i++;
	if (i < n) {
		s->sounding = true;
		if (i >= keep)
			return i - keep;
		from = s->lead_n < keep - i ? 0 : s->lead_n - (keep - i);
		give(s, s->lead + from, s->lead_n - from);
		return 0;
	}
	from = n < keep ? 0 : n - keep;
	if (n < keep && s->lead_n > keep - n) {
		memmove(s->lead, s->lead + s->lead_n - (keep - n), (keep - n) * sizeof(*s->lead));
		s->lead_n = keep - n;
	} else if (n >= keep) {
		s->lead_n = 0;
	}
	memcpy(s->lead + s->lead_n, pcm + from, (n - from) * sizeof(*pcm));
	s->lead_n += n - from;
	return n;
}

static int on_piece(void *ctx, const int16_t *pcm, size_t n)
{
	struct speaking *s = ctx;
	size_t skip = 0;

	if (atomic_load(&s->t->epoch) != s->p->epoch)
		s->stopped = true;
	if (s->stopped)
		return 1;
	if (s->t->o.cut_silence && !s->sounding)
		skip = skip_silence(s, pcm, n);
	if (s->stopped)
		return 1;
	return give(s, pcm + skip, n - skip);
}

static void *run(void *arg)
{
	struct tts *t = arg;

	pthread_mutex_lock(&t->lock);
	for (;;) {
		struct phrase p;
		struct speaking s = { .t = t, .p = &p };
		int status = -ECANCELED;

		while (t->n == 0 && !t->quit)
			pthread_cond_wait(&t->changed, &t->lock);
		if (t->n == 0)
			break;
		p = t->queue[t->at];
		t->at = (t->at + 1) % (size_t)t->o.queue;
		t->n--;
		t->busy = true;
		pthread_cond_broadcast(&t->changed);
		pthread_mutex_unlock(&t->lock);

		if (atomic_load(&t->epoch) == p.epoch) {
			status = t->be->speak(t->self, p.text, on_piece, &s);
			if (!status && s.stopped)
				status = -ECANCELED;
		}
		if (t->ev.done)
			t->ev.done(t->ev.ctx, p.id, status, s.samples);
		free(p.text);

		pthread_mutex_lock(&t->lock);
		t->busy = false;
		pthread_cond_broadcast(&t->changed);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

static int on_warm_piece(void *ctx, const int16_t *pcm, size_t n)
{
	struct speaking *s = ctx;
	size_t heap = voice_charge_heap(&s->t->charge);

	if (heap > s->heap)
		s->heap = heap;
	return 0;
}

/*
 * Says a sentence to nobody: touches the voice's pages, so that the first
 * answer is not slower than the second, and shows what speaking takes.
 */
static int warm_up(struct tts *t, struct hearth_err *err)
{
	struct speaking s = { .t = t };
	int rc = t->be->speak(t->self, "The light in the living room is on, and the heating is set to twenty one degrees.",
			      on_warm_piece, &s);

	if (rc)
		return err_set(err, rc, "the voice %s does not speak", t->o.voice);
	t->footprint = t->be->mapped(t->self) +
		       (s.heap > voice_charge_heap(&t->charge) ? s.heap : voice_charge_heap(&t->charge));
	return voice_charge_settle(&t->charge, t->footprint, err);
}

int tts_open(const struct tts_options *o, const struct voice_account *acc,
	     const struct tts_events *ev, struct tts **ret, struct hearth_err *err)
{
	struct tts *t;
	int rc;

	if (!o->voice || o->queue < 1 || o->queue > 4096 || !(o->speed >= 0.5f && o->speed <= 3.0f))
		return err_set(err, -EINVAL, "a voice needs a name, a speed of 0.5 to 3 and a queue of 1 to 4096");
	t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(err, -ENOMEM, "no memory for text-to-speech");
	t->o = *o;
	t->o.voice = strdup(o->voice);
	t->ev = *ev;
	t->be = backend_of(o->voice);
	t->queue = calloc((size_t)o->queue, sizeof(*t->queue));
	pthread_mutex_init(&t->lock, NULL);
	mono_cond(&t->changed);
	if (!t->queue || !t->o.voice) {
		rc = err_set(err, -ENOMEM, "no memory for text-to-speech");
		goto fail;
	}
	rc = voice_charge_begin(&t->charge, acc, t->be->predict(o), err);
	if (rc)
		goto fail;
	rc = t->be->open(o, &t->self, err);
	if (rc)
		goto fail;
	rc = warm_up(t, err);
	if (rc)
		goto fail;
	t->rate = t->be->rate(t->self);
	rc = -pthread_create(&t->thread, NULL, run, t);
	if (rc) {
		err_set(err, rc, "no thread for text-to-speech: %s", strerror(-rc));
		goto fail;
	}
	t->started = true;
	*ret = t;
	return 0;
fail:
	tts_close(t);
	return rc;
}

void tts_close(struct tts *t)
{
	if (!t)
		return;
	if (t->started) {
		tts_cancel(t);
		pthread_mutex_lock(&t->lock);
		t->quit = true;
		pthread_cond_broadcast(&t->changed);
		pthread_mutex_unlock(&t->lock);
		pthread_join(t->thread, NULL);
	}
	if (t->self)
		t->be->close(t->self);
	voice_charge_end(&t->charge);
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	free(t->queue);
	free((char *)t->o.voice);
	free(t);
}

int tts_rate(const struct tts *t)
{
	return t->rate;
}

size_t tts_footprint(const struct tts *t)
{
	return t->footprint;
}

/* With the lock held: sleeps once; false when @wait_ms has run out. */
static bool wait_change(struct tts *t, int wait_ms, const struct timespec *deadline)
{
	if (wait_ms == 0)
		return false;
	if (wait_ms < 0)
		return !pthread_cond_wait(&t->changed, &t->lock);
	return pthread_cond_timedwait(&t->changed, &t->lock, deadline) != ETIMEDOUT;
}

int tts_say(struct tts *t, uint64_t id, const char *text, int wait_ms)
{
	struct timespec deadline = { 0 };
	size_t n = strnlen(text, TEXT_MAX + 1);
	char *copy;
	int rc = 0;

	if (n > TEXT_MAX || utf8_valid(text, n) != n)
		return -EINVAL;
	copy = strndup(text, n);
	if (!copy)
		return -ENOMEM;
	if (wait_ms > 0)
		deadline = mono_after(wait_ms);
	pthread_mutex_lock(&t->lock);
	while (t->n == (size_t)t->o.queue && !rc)
		if (!wait_change(t, wait_ms, &deadline) && t->n == (size_t)t->o.queue)
			rc = -EAGAIN;
	if (!rc) {
		t->queue[(t->at + t->n) % (size_t)t->o.queue] =
			(struct phrase){ .id = id, .epoch = atomic_load(&t->epoch), .text = copy };
		t->n++;
		pthread_cond_broadcast(&t->changed);
	}
	pthread_mutex_unlock(&t->lock);
	if (rc)
		free(copy);
	return rc;
}

void tts_cancel(struct tts *t)
{
	/* Under the lock, so that a phrase said after this call is not hit by it. */
	pthread_mutex_lock(&t->lock);
	atomic_fetch_add(&t->epoch, 1);
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

int tts_drain(struct tts *t, int wait_ms)
{
	struct timespec deadline = { 0 };
	int rc = 0;

	if (wait_ms > 0)
		deadline = mono_after(wait_ms);
	pthread_mutex_lock(&t->lock);
	while ((t->n > 0 || t->busy) && !rc)
		if (!wait_change(t, wait_ms, &deadline) && (t->n > 0 || t->busy))
			rc = -EAGAIN;
	pthread_mutex_unlock(&t->lock);
	return rc;
}
