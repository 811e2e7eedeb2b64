// SPDX-License-Identifier: MIT
#include "voice/mouth.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/mono.h"

#define PIECE 512

struct mouth {
	struct ring *ring;
	pthread_t thread;
	pthread_mutex_t lock;      /* of card, for mouth_stop() from any thread */
	struct audio_out *file, *card;
	struct trace *trace;
	atomic_bool stopped;
	uint64_t samples;          /* the play thread's, read after it is joined */
	int64_t first_ns, last_ns; /* the same */
	int status;                /* the same */
	struct hearth_err err;     /* the same */
};

int mouth_new(size_t ring_samples, struct mouth **ret_mouth)
{
	struct mouth *m = calloc(1, sizeof(*m));
	int ret;

	if (!m)
		return -ENOMEM;
	ret = ring_new(sizeof(int16_t), ring_samples, &m->ring);
	if (ret) {
		free(m);
		return ret;
	}
	pthread_mutex_init(&m->lock, NULL);
	*ret_mouth = m;
	return 0;
}

void mouth_free(struct mouth *m)
{
	if (!m)
		return;
	pthread_mutex_destroy(&m->lock);
	ring_free(m->ring);
	free(m);
}

static void *play(void *arg)
{
	struct mouth *m = arg;
	int16_t pcm[PIECE];
	ssize_t n;

	while ((n = ring_read(m->ring, pcm, PIECE, -1)) > 0) {
		int ret = 0;

		if (!m->first_ns) {
			m->first_ns = mono_ns();
			trace_mark(m->trace, TRACE_FIRST_PLAYED, m->first_ns);
		}
		if (m->file)
			ret = audio_out_write(m->file, pcm, (size_t)n, &m->err);
		if (!ret && m->card)
			ret = audio_out_write(m->card, pcm, (size_t)n, &m->err);
		if (ret) {
			if (!atomic_load(&m->stopped))
				m->status = ret;
			ring_cancel(m->ring);
			break;
		}
		m->samples += (uint64_t)n;
		m->last_ns = mono_ns();
	}
	return NULL;
}

int mouth_start(struct mouth *m, struct audio_out *file, struct audio_out *card, struct trace *trace)
{
	m->file = file;
	m->trace = trace;
	m->samples = 0;
	m->first_ns = m->last_ns = 0;
	m->status = 0;
	pthread_mutex_lock(&m->lock);
	m->card = card;
	atomic_store(&m->stopped, false);
	ring_reset(m->ring);
	pthread_mutex_unlock(&m->lock);
	return -pthread_create(&m->thread, NULL, play, m);
}

int mouth_say(struct mouth *m, const int16_t *pcm, size_t n)
{
	ssize_t given = ring_write(m->ring, pcm, n, -1);

	return given == (ssize_t)n ? 0 : -ECANCELED;
}

int mouth_finish(struct mouth *m, uint64_t *ret_samples, struct hearth_err *err)
{
	ring_end(m->ring);
	pthread_join(m->thread, NULL);
	/* The caller may close its card now; a late mouth_stop() must not find it. */
	pthread_mutex_lock(&m->lock);
	m->card = NULL;
	pthread_mutex_unlock(&m->lock);
	*ret_samples = m->samples;
	if (m->last_ns) {
		trace_span(m->trace, "play", "reply", m->first_ns, m->last_ns);
		if (!m->status && !atomic_load(&m->stopped))
			trace_mark(m->trace, TRACE_DONE, m->last_ns);
	}
	if (m->status && err)
		*err = m->err;
	return m->status;
}

void mouth_stop(struct mouth *m)
{
	pthread_mutex_lock(&m->lock);
	atomic_store(&m->stopped, true);
	ring_cancel(m->ring);
	if (m->card)
		audio_out_stop(m->card);
	pthread_mutex_unlock(&m->lock);
}
