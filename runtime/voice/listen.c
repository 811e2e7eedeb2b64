// SPDX-License-Identifier: MIT
#include "voice/listen.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mono.h"
#include "voice/offset.h"

#define BLOCK 320               /* 20 ms: what a sound card gives at a time */
#define NS_PER_SAMPLE (1000000000.0 / AUDIO_RATE)
#define LEAD_MS 200             /* silence before a file: a room was quiet before */
#define NOISY 4                 /* times the patience: so long noises may go on without a word */
#define TAIL_MS 2000            /* silence after the end of a file, until the pause is long enough */

struct listen {
	struct listen_opts opts;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int go;                     /* decisions to go on not yet taken; protected by lock */
	bool done;                  /* protected by lock */
	atomic_bool stop;

	struct audio_in *in;
	struct offset offset;
	struct vad *vad;
	struct stt *stt;
	struct mailbox *box;
	struct trace *trace;
	uint64_t *next_id;

	atomic_int end_wait_ms;     /* the turn thread's wish, 0: none yet */

	int16_t *hist;              /* the last n_hist samples, a ring */
	int64_t n_hist;
	int64_t *arrived;           /* when each block of the ring was there */
	int64_t pos;                /* samples taken */
	int64_t heard;              /* of these from the source */

	/* the utterance */
	bool open;                  /* the recogniser has one */
	bool asked;                 /* and was asked for its end */
	int64_t from;               /* its first sample */
	int64_t fed;                /* samples given so far, position */
	int64_t pause;              /* where the pause began, -1: none */
	bool look;                  /* ask how the text ends, once this block is fed */
	bool ended;
};

int listen_new(const struct listen_opts *opts, struct listen **ret_listen)
{
	struct listen *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->opts = *opts;
	/* An utterance, its run-up and its pause. */
	l->n_hist = (int64_t)(opts->longest_ms + 5000) * AUDIO_RATE / 1000;
	l->n_hist -= l->n_hist % BLOCK;
	l->hist = calloc((size_t)l->n_hist, sizeof(*l->hist));
	l->arrived = calloc((size_t)(l->n_hist / BLOCK), sizeof(*l->arrived));
	if (!l->hist || !l->arrived) {
		free(l->hist);
		free(l->arrived);
		free(l);
		return -ENOMEM;
	}
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->changed, NULL);
	*ret_listen = l;
	return 0;
}

size_t listen_bytes(const struct listen_opts *opts)
{
	size_t n = (size_t)(opts->longest_ms + 5000) * AUDIO_RATE / 1000;

	return sizeof(struct listen) + n * sizeof(int16_t) + n / BLOCK * sizeof(int64_t);
}

void listen_free(struct listen *l)
{
	if (!l)
		return;
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->changed);
	free(l->hist);
	free(l->arrived);
	free(l);
}

/* When the sample at @pos was there. */
static int64_t arrival(const struct listen *l, int64_t pos)
{
	if (pos < 0)
		pos = 0;
	if (pos >= l->pos)
		pos = l->pos - 1;
	return l->arrived[pos / BLOCK % (l->n_hist / BLOCK)];
}

static void tell(struct listen *l, enum mail_kind kind, uint64_t id, int64_t ns)
{
	struct mail m = { .kind = kind, .id = id, .ns = ns };

	mailbox_put(l->box, &m);
}

/* Gives the recogniser the samples from l->fed to l->pos. */
static void feed(struct listen *l)
{
	while (l->open && !l->asked && l->fed < l->pos) {
		int64_t at = l->fed % l->n_hist, n = l->pos - l->fed;

		if (n > l->n_hist - at)
			n = l->n_hist - at;
		if (stt_push(l->stt, l->hist + at, (size_t)n))
			return; /* cancelled: its final says so */
		l->fed += n;
	}
}

/* The number is told first, so that what the recogniser says finds it known. */
static void begin(struct listen *l, enum mail_kind kind, int64_t ns)
{
	tell(l, kind, ++*l->next_id, ns);
	stt_begin(l->stt, *l->next_id);
	l->open = true;
	l->asked = false;
	l->fed = l->from;
	feed(l);
}

static void ask(struct listen *l)
{
	if (l->open && !l->asked) {
		l->asked = true;
		stt_end(l->stt);
	}
}

/* Without its end the recogniser would take no next utterance. */
static void leave(struct listen *l)
{
	if (l->open && !l->asked) {
		stt_cancel(l->stt);
		stt_end(l->stt);
	}
	l->open = false;
}

static void on_vad(void *ctx, const struct vad_event *ev)
{
	struct listen *l = ctx;

	if (l->ended)
		return;
	switch (ev->kind) {
	case VAD_START:
		l->from = ev->at;
		if (l->from < l->pos - l->n_hist + BLOCK)
			l->from = l->pos - l->n_hist + BLOCK;
		if (l->from < 0)
			l->from = 0;
		l->pause = -1;
		begin(l, MAIL_SPEECH, arrival(l, ev->at));
		break;
	case VAD_PAUSE:
		l->pause = ev->at;
		/* How the sentence ends so far says how long to wait for more. */
		l->look = true;
		tell(l, MAIL_PAUSE, *l->next_id, arrival(l, ev->at));
		break;
	case VAD_RESUME:
		l->pause = -1;
		if (l->asked)
			begin(l, MAIL_RESUME, mono_ns());
		else
			tell(l, MAIL_RESUME, *l->next_id, mono_ns());
		break;
	case VAD_END:
		ask(l);
		l->ended = true;
		mailbox_put(l->box, &(struct mail){ .kind = MAIL_END, .id = *l->next_id, .ns = arrival(l, ev->at),
						    .decided = mono_ns(),
						    .status = l->pos - l->from >= (int64_t)l->opts.longest_ms * AUDIO_RATE / 1000 ? -E2BIG : 0 });
		break;
	case VAD_BLIP:
		leave(l);
		l->pause = -1;
		tell(l, MAIL_BLIP, *l->next_id, mono_ns());
		break;
	}
}

static void sleep_until(int64_t ns)
{
	struct timespec ts = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/* One block of @n samples is there. */
static void take(struct listen *l, const int16_t *pcm, size_t n)
{
	int64_t at = l->pos % l->n_hist, first = (int64_t)n > l->n_hist - at ? l->n_hist - at : (int64_t)n;
	int64_t b, now = mono_ns();

	memcpy(l->hist + at, pcm, (size_t)first * sizeof(*pcm));
	memcpy(l->hist, pcm + first, (n - (size_t)first) * sizeof(*pcm));
	for (b = l->pos / BLOCK; b * BLOCK < l->pos + (int64_t)n; b++)
		l->arrived[b % (l->n_hist / BLOCK)] = now;
	l->pos += (int64_t)n;
	if (atomic_load(&l->end_wait_ms))
		vad_set_end_wait(l->vad, atomic_exchange(&l->end_wait_ms, 0));
	vad_push(l->vad, pcm, n, on_vad, l);
	feed(l);
	if (l->look && l->open && !l->asked)
		stt_look(l->stt);
	l->look = false;
	if (l->opts.early && l->open && l->pause >= 0 && l->pos - l->pause >= (int64_t)l->opts.early_ms * AUDIO_RATE / 1000)
		ask(l);
}

/* Waits for listen_on() or listen_done(). */
static bool decided_to_go_on(struct listen *l)
{
	bool on;

	pthread_mutex_lock(&l->lock);
	while (!l->go && !l->done)
		pthread_cond_wait(&l->changed, &l->lock);
	on = !l->done;
	if (on)
		l->go--;
	pthread_mutex_unlock(&l->lock);
	return on;
}

static void *run(void *arg)
{
	struct listen *l = arg;
	int16_t pcm[BLOCK];
	struct hearth_err err = { 0 };
	const int64_t patience = (int64_t)l->opts.patience_ms * AUDIO_RATE / 1000;
	int64_t start = mono_ns(), paced_from = 0, quiet_from = 0, tail = 0, lead = 0;
	ssize_t n = 1;

	/* A file may begin in the middle of a sound; the recogniser wants to hear it begin. */
	if (audio_in_info(l->in)->frames >= 0)
		lead = LEAD_MS * AUDIO_RATE / 1000;

	while (!atomic_load(&l->stop)) {
		size_t have = 0;

		if (lead > 0) {
			memset(pcm, 0, sizeof(pcm));
			have = BLOCK;
			lead -= BLOCK;
			l->heard -= BLOCK;
		}
		while (n > 0 && have < BLOCK) {
			n = audio_in_read(l->in, pcm + have, BLOCK - have, &err);
			if (n > 0) {
				offset_remove(&l->offset, pcm + have, (size_t)n, pcm + have);
				have += (size_t)n;
			}
		}
		if (n < 0) {
			struct mail m = { .kind = MAIL_SOURCE_FAILED, .status = (int)n, .ns = mono_ns(), .err = err };

			mailbox_put(l->box, &m);
			break;
		}
		l->heard += (int64_t)have;
		if (!have) {
			/* The file is over: a room would be silent now. */
			if (!l->opts.paced || !l->open || tail > TAIL_MS * AUDIO_RATE / 1000) {
				vad_finish(l->vad, on_vad, l);
				if (!l->ended) {
					tell(l, MAIL_HEARD_ALL, *l->next_id, mono_ns());
					break;
				}
			} else {
				memset(pcm, 0, sizeof(pcm));
				have = BLOCK;
				tail += BLOCK;
			}
		}
		if (have) {
			if (have < BLOCK && n == 0) { /* keeps blocks whole */
				memset(pcm + have, 0, (BLOCK - have) * sizeof(*pcm));
				have = BLOCK;
			}
			if (l->opts.paced)
				sleep_until(start + (int64_t)((double)(l->pos - paced_from + (int64_t)have) * NS_PER_SAMPLE));
			take(l, pcm, have);
		}
		/* Nobody speaks, be it silent or not: an hour of music is no hour of listening. */
		if (!l->open && !l->ended && (l->pos - quiet_from > patience || l->pos > NOISY * patience)) {
			tell(l, MAIL_HEARD_ALL, *l->next_id, mono_ns());
			break;
		}
		if (l->ended) {
			if (!decided_to_go_on(l))
				break;
			l->ended = l->open = false;
			l->pause = -1;
			quiet_from = paced_from = l->pos;
			start = mono_ns();
			tail = 0;
		}
	}
	leave(l);
	return NULL;
}

int listen_start(struct listen *l, struct audio_in *in, struct vad *vad, struct stt *stt, struct mailbox *box,
		 uint64_t *next_id, struct trace *trace)
{
	l->in = in;
	l->offset = (struct offset){ 0 };
	l->vad = vad;
	l->stt = stt;
	l->box = box;
	l->next_id = next_id;
	l->trace = trace;
	l->pos = l->heard = 0;
	l->open = l->asked = l->ended = false;
	l->pause = -1;
	l->go = 0;
	l->done = false;
	atomic_store(&l->stop, false);
	vad_reset(vad);
	return -pthread_create(&l->thread, NULL, run, l);
}

void listen_end_wait(struct listen *l, int ms)
{
	atomic_store(&l->end_wait_ms, ms);
}

void listen_on(struct listen *l)
{
	pthread_mutex_lock(&l->lock);
	l->go++;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

void listen_done(struct listen *l)
{
	atomic_store(&l->stop, true);
	pthread_mutex_lock(&l->lock);
	l->done = true;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

double listen_join(struct listen *l)
{
	pthread_join(l->thread, NULL);
	return (double)l->heard / AUDIO_RATE;
}
