// SPDX-License-Identifier: MIT
/*
 * The caller's thread writes messages into a ring, the engine's thread reads
 * them: begin, samples, end. A cancel raises the epoch; the engine drops
 * messages of older epochs without decoding them, so a full ring empties at
 * once and nobody waits for work that is no longer wanted.
 */
#include "voice/stt.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mono.h"
#include "voice/ring.h"
#include "voice/stt_decoder.h"

#define CHUNK    512            /* samples in a message */
#define QUEUE    256            /* messages: 8 s of audio */

enum message_kind {
	MSG_BEGIN,
	MSG_AUDIO,
	MSG_LOOK,
	MSG_END,
};

struct message {
	enum message_kind kind;
	uint32_t n;
	uint64_t id;
	uint64_t epoch;
	int64_t ns;
	int16_t pcm[CHUNK];
};

struct stt {
	struct stt_options o;
	struct stt_events ev;
	struct voice_charge charge;
	size_t footprint;
	struct stt_decoder *dec;
	struct ring *ring;
	pthread_t thread;
	bool started;
	_Atomic uint64_t epoch;

	/* The caller's side. */
	bool open;                 /* between begin and end */
	uint64_t id, my_epoch;
	struct message out;

	/* The engine's side. */
	bool running;
	bool failed, too_long;
	struct stt_result r;
	int64_t looked;            /* samples at the last look at the partial text */
	char partial[STT_TEXT];
};

void stt_defaults(struct stt_options *o)
{
	*o = (struct stt_options){ .threshold = 0.0f, .partial_ms = 100, .max_s = 60 };
}

const char *stt_verdict_name(enum stt_verdict v)
{
	static const char *const names[] = {
		"command", "not a command", "heard nothing", "cancelled", "failed",
	};

	return v <= STT_FAILED ? names[v] : "?";
}

/* -- the engine's thread ---------------------------------------------------------- */

static void finish(struct stt *s, enum stt_verdict v)
{
	s->r.verdict = v;
	s->r.final_ns = mono_ns();
	s->running = false;
	if (s->ev.final)
		s->ev.final(s->ev.ctx, &s->r);
}

static void abandon(struct stt *s)
{
	stt_decoder_drop(s->dec);
	finish(s, STT_CANCELLED);
}

static void begin(struct stt *s, const struct message *m)
{
	s->r = (struct stt_result){ .id = m->id, .speech_end = -1 };
	s->running = true;
	s->too_long = false;
	s->looked = 0;
	s->partial[0] = '\0';
	s->failed = stt_decoder_begin(s->dec) != 0;
}

static void look(struct stt *s, bool asked)
{
	struct stt_partial p = { .id = s->r.id, .samples = s->r.samples, .asked = asked };

	s->looked = s->r.samples;
	if (s->failed || s->too_long || !s->ev.partial)
		return;
	p.text = stt_decoder_partial(s->dec, &p.ends);
	if (!asked && !strcmp(p.text, s->partial))
		return;
	strcpy(s->partial, p.text);
	s->ev.partial(s->ev.ctx, &p);
}

static void audio(struct stt *s, const struct message *m)
{
	s->r.samples += m->n;
	if (s->r.samples > (int64_t)s->o.max_s * STT_RATE)
		s->too_long = true;
	if (s->failed || s->too_long)
		return;
	if (stt_decoder_push(s->dec, m->pcm, m->n)) {
		s->failed = true;
		return;
	}
	if (s->o.partial_ms > 0 &&
	    s->r.samples - s->looked >= (int64_t)s->o.partial_ms * STT_RATE / 1000)
		look(s, false);
}

static void end(struct stt *s, const struct message *m)
{
	struct stt_evidence e;
	enum stt_verdict verdict;
	int rc = stt_decoder_end(s->dec, &e);

	s->r.end_ns = m->ns;
	if (rc || s->failed) {
		err_set(&s->r.err, -EIO, "speech recognition failed after %.1f s of audio",
			(double)s->r.samples / STT_RATE);
		finish(s, STT_FAILED);
		return;
	}
	if (s->too_long) {
		err_set(&s->r.err, -E2BIG, "no command takes more than %d s", s->o.max_s);
		finish(s, STT_REJECTED);
		return;
	}
	verdict = stt_decoder_verdict(&e, s->o.threshold, s->o.unsure);
	if (verdict != STT_NOTHING) { /* a noise said no words */
		strcpy(s->r.text, e.text);
		s->r.score = (float)e.score;
		if (e.speech_end >= 0)
			s->r.speech_end = (int64_t)e.speech_end * (STT_RATE / 100);
	}
	finish(s, verdict);
}

static void *run(void *arg)
{
	struct stt *s = arg;
	struct message m;

	while (ring_read(s->ring, &m, 1, -1) == 1) {
		bool stale = atomic_load(&s->epoch) != m.epoch;

		if (s->running && stale)
			abandon(s);
		if (m.kind == MSG_BEGIN) {
			begin(s, &m);
			if (stale)
				abandon(s);
		} else if (!stale && s->running && m.kind == MSG_AUDIO) {
			audio(s, &m);
		} else if (!stale && s->running && m.kind == MSG_LOOK) {
			look(s, true);
		} else if (!stale && s->running && m.kind == MSG_END) {
			end(s, &m);
		}
	}
	if (s->running)
		abandon(s);
	return NULL;
}

/* -- open and close ----------------------------------------------------------------- */

/*
 * What the decoder takes of the heap with the distribution's acoustic model,
 * and how that grows with the two files of a home, was measured over four
 * homes; test_speech holds it to that. Without files, a usual home is meant.
 */
size_t stt_predict(const struct stt_options *o)
{
	struct stat lm, dict;

	if (!o->lm || !o->dict || stat(o->lm, &lm) || stat(o->dict, &dict))
		return 12842000;
	return 10734000 + (size_t)lm.st_size * 353 / 1000 + (size_t)dict.st_size * 247 / 10;
}

size_t stt_footprint(const struct stt *s)
{
	return s->footprint;
}

/* Two seconds of a soft hiss: the tables of an utterance grow to their usual size. */
static int warm_up(struct stt *s, struct hearth_err *err)
{
	struct stt_evidence e;
	int16_t pcm[CHUNK];
	uint32_t x = 1;
	int rc = stt_decoder_begin(s->dec);

	for (int i = 0; !rc && i < 2 * STT_RATE / CHUNK; i++) {
		for (int k = 0; k < CHUNK; k++) {
			x = x * 1664525u + 1013904223u;
			pcm[k] = (int16_t)((int)(x >> 24) - 128);
		}
		rc = stt_decoder_push(s->dec, pcm, CHUNK);
	}
	if (!rc)
		rc = stt_decoder_end(s->dec, &e);
	if (rc)
		return err_set(err, rc, "speech recognition does not run");
	/* The hiss must not be what the first words are measured against. */
	stt_decoder_forget(s->dec);
	s->footprint = voice_charge_heap(&s->charge);
	return voice_charge_settle(&s->charge, s->footprint, err);
}

int stt_open(const struct stt_options *o, const struct voice_account *acc,
	     const struct stt_events *ev, struct stt **ret, struct hearth_err *err)
{
	struct stt *s;
	int rc;

	if (!o->lm || !o->dict || o->max_s < 1)
		return err_set(err, -EINVAL, "speech recognition needs a language model, a dictionary and a longest utterance");
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(err, -ENOMEM, "no memory for speech recognition");
	s->o = *o;
	s->ev = *ev;
	rc = voice_charge_begin(&s->charge, acc, stt_predict(o), err);
	if (rc)
		goto fail;
	rc = ring_new(sizeof(struct message), QUEUE, &s->ring);
	if (rc) {
		err_set(err, rc, "no memory for speech recognition");
		goto fail;
	}
	rc = stt_decoder_new(o, &s->dec, err);
	if (rc)
		goto fail;
	rc = warm_up(s, err);
	if (rc)
		goto fail;
	/* Paths are not needed any more, and are the caller's. */
	s->o.acoustic = s->o.lm = s->o.dict = NULL;
	rc = -pthread_create(&s->thread, NULL, run, s);
	if (rc) {
		err_set(err, rc, "no thread for speech recognition: %s", strerror(-rc));
		goto fail;
	}
	s->started = true;
	*ret = s;
	return 0;
fail:
	stt_close(s);
	return rc;
}

void stt_close(struct stt *s)
{
	if (!s)
		return;
	if (s->started) {
		stt_cancel(s);
		ring_end(s->ring);
		pthread_join(s->thread, NULL);
	}
	stt_decoder_free(s->dec);
	ring_free(s->ring);
	voice_charge_end(&s->charge);
	free(s);
}

/* -- the caller's side ---------------------------------------------------------------- */

static int send(struct stt *s, enum message_kind kind)
{
	s->out.kind = kind;
	s->out.id = s->id;
	s->out.epoch = s->my_epoch;
	s->out.ns = mono_ns();
	return ring_write(s->ring, &s->out, 1, -1) == 1 ? 0 : -ECANCELED;
}

int stt_begin(struct stt *s, uint64_t id)
{
	if (s->open)
		return -EINVAL;
	s->id = id;
	s->my_epoch = atomic_load(&s->epoch);
	s->out.n = 0;
	s->open = true;
	return send(s, MSG_BEGIN);
}

/* Cancelled: the rest of the utterance is refused, and its end is taken as said. */
static bool cancelled(struct stt *s)
{
	return atomic_load(&s->epoch) != s->my_epoch;
}

int stt_push(struct stt *s, const int16_t *pcm, size_t n)
{
	if (!s->open)
		return -EINVAL;
	while (n > 0) {
		size_t part = n < CHUNK - s->out.n ? n : CHUNK - s->out.n;
		int rc;

		if (cancelled(s))
			return -ECANCELED;
		memcpy(s->out.pcm + s->out.n, pcm, part * sizeof(*pcm));
		s->out.n += (uint32_t)part;
		pcm += part;
		n -= part;
		if (s->out.n < CHUNK)
			break;
		rc = send(s, MSG_AUDIO);
		s->out.n = 0;
		if (rc)
			return rc;
	}
	return 0;
}

/* What is gathered of a message, then one of @kind. */
static int flush(struct stt *s, enum message_kind kind)
{
	int rc = s->out.n > 0 ? send(s, MSG_AUDIO) : 0;

	s->out.n = 0;
	return rc ? rc : send(s, kind);
}

int stt_look(struct stt *s)
{
	if (!s->open)
		return -EINVAL;
	return cancelled(s) ? -ECANCELED : flush(s, MSG_LOOK);
}

int stt_end(struct stt *s)
{
	int rc;

	if (!s->open)
		return -EINVAL;
	s->open = false;
	/* Also when cancelled: the engine then sees the stale message and reports. */
	rc = flush(s, MSG_END);
	return rc ? rc : cancelled(s) ? -ECANCELED : 0;
}

void stt_cancel(struct stt *s)
{
	atomic_fetch_add(&s->epoch, 1);
}

int stt_end_wait_ms(float ends)
{
	/* Most commands can go on ("... in the kitchen"), so a whole one has a small number. */
	return ends >= 0.02f ? 192 : ends >= 0.002f ? 288 : 608;
}
