// SPDX-License-Identifier: MIT
/*
 * The device is open in non-blocking mode and each call into ALSA holds the
 * lock, so that alsa_stop from another thread can drop what is queued between
 * two calls; the waiting is done outside the lock.
 */
#include "voice/alsa.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <alsa/asoundlib.h>

#define LATENCY_US 120000 /* of the device's buffer */
#define WAIT_MS    20     /* between looks at the stop flag */
#define DEAD_MS    5000   /* a device that takes or gives nothing for so long is gone */

struct alsa {
	char *name;
	bool capture;
	snd_pcm_t *pcm;
	pthread_mutex_t lock;   /* guards pcm */
	atomic_bool stopped;
	_Atomic uint64_t faults;
};

/* ALSA would print to stderr from inside the library; its codes say enough. */
static void quiet(const char *file, int line, const char *function, int err, const char *fmt, ...)
{
}

static int fail(struct alsa *a, struct hearth_err *err, int code, const char *what)
{
	return err_set(err, code, "%s \"%s\": %s: %s", a->capture ? "microphone" : "sound card",
		       a->name, what, snd_strerror(code));
}

int alsa_open(const char *device, bool capture, int rate, struct alsa **ret, struct hearth_err *err)
{
	struct alsa *a = calloc(1, sizeof(*a));
	int rc;

	if (!a)
		return err_set(err, -ENOMEM, "no memory to open the sound device %s", device);
	snd_lib_error_set_handler(quiet);
	pthread_mutex_init(&a->lock, NULL);
	a->capture = capture;
	a->name = strdup(device);
	if (!a->name) {
		rc = err_set(err, -ENOMEM, "no memory to open the sound device %s", device);
		goto fail;
	}
	rc = snd_pcm_open(&a->pcm, device, capture ? SND_PCM_STREAM_CAPTURE : SND_PCM_STREAM_PLAYBACK,
			  SND_PCM_NONBLOCK);
	if (rc) {
		a->pcm = NULL;
		if (rc == -ENOENT)
			rc = -ENODEV;
		err_set(err, rc, "%s \"%s\": cannot be opened: %s (%s lists what there is, --sound takes one)",
			capture ? "microphone" : "sound card", device, snd_strerror(rc), capture ? "arecord -L" : "aplay -L");
		goto fail;
	}
	rc = snd_pcm_set_params(a->pcm, SND_PCM_FORMAT_S16, SND_PCM_ACCESS_RW_INTERLEAVED, 1,
				(unsigned)rate, 1, LATENCY_US);
	if (rc) {
		rc = fail(a, err, rc, "does not take 16-bit mono");
		goto fail;
	}
	if (capture) {
		rc = snd_pcm_start(a->pcm);
		if (rc) {
			rc = fail(a, err, rc, "does not start");
			goto fail;
		}
	}
	*ret = a;
	return 0;
fail:
	alsa_close(a);
	return rc;
}

/* After an overrun, an underrun or a suspend: running again, or the error. */
static int repair(struct alsa *a, int rc)
{
	atomic_fetch_add(&a->faults, 1);
	rc = snd_pcm_recover(a->pcm, rc, 1);
	if (!rc && a->capture)
		rc = snd_pcm_start(a->pcm);
	return rc;
}

/* One transfer; waits outside the lock. 0: stopped. */
static ssize_t transfer(struct alsa *a, void *buf, size_t n, struct hearth_err *err)
{
	for (int waited = 0; !atomic_load(&a->stopped); ) {
		snd_pcm_sframes_t did;

		pthread_mutex_lock(&a->lock);
		did = a->capture ? snd_pcm_readi(a->pcm, buf, n) : snd_pcm_writei(a->pcm, buf, n);
		if (did < 0 && did != -EAGAIN && !atomic_load(&a->stopped)) {
			int rc = repair(a, (int)did);

			pthread_mutex_unlock(&a->lock);
			if (rc)
				return fail(a, err, rc, "stopped working");
			continue;
		}
		pthread_mutex_unlock(&a->lock);
		if (did > 0)
			return did;
		/* poll() only: safe beside a drop from another thread. */
		snd_pcm_wait(a->pcm, WAIT_MS);
		waited += WAIT_MS;
		if (waited >= DEAD_MS)
			return fail(a, err, -ETIMEDOUT, "gives no sign of life");
	}
	return 0;
}

ssize_t alsa_read(struct alsa *a, int16_t *pcm, size_t n, struct hearth_err *err)
{
	return transfer(a, pcm, n, err);
}

int alsa_write(struct alsa *a, const int16_t *pcm, size_t n, struct hearth_err *err)
{
	while (n > 0) {
		ssize_t did = transfer(a, (void *)(uintptr_t)pcm, n, err);

		if (did < 0)
			return (int)did;
		if (did == 0)
			return err_set(err, -ECANCELED, "playback was stopped");
		pcm += did;
		n -= (size_t)did;
	}
	return 0;
}

uint64_t alsa_pending(struct alsa *a)
{
	snd_pcm_sframes_t delay = 0;

	pthread_mutex_lock(&a->lock);
	if (snd_pcm_state(a->pcm) != SND_PCM_STATE_RUNNING &&
	    snd_pcm_state(a->pcm) != SND_PCM_STATE_DRAINING &&
	    snd_pcm_state(a->pcm) != SND_PCM_STATE_PREPARED)
		delay = 0;
	else if (snd_pcm_delay(a->pcm, &delay) || delay < 0)
		delay = 0;
	pthread_mutex_unlock(&a->lock);
	return (uint64_t)delay;
}

int alsa_drain(struct alsa *a, struct hearth_err *err)
{
	int rc;

	/* A short sound may not have reached the start threshold. */
	pthread_mutex_lock(&a->lock);
	if (snd_pcm_state(a->pcm) == SND_PCM_STATE_PREPARED && snd_pcm_start(a->pcm))
		snd_pcm_prepare(a->pcm);
	rc = snd_pcm_drain(a->pcm); /* non-blocking: begins, -EAGAIN until done */
	pthread_mutex_unlock(&a->lock);
	for (int waited = 0; rc == -EAGAIN && !atomic_load(&a->stopped); waited += WAIT_MS) {
		struct timespec ts = { 0, WAIT_MS * 1000000L };

		if (waited >= DEAD_MS)
			return fail(a, err, -ETIMEDOUT, "gives no sign of life");
		nanosleep(&ts, NULL);
		pthread_mutex_lock(&a->lock);
		if (snd_pcm_state(a->pcm) != SND_PCM_STATE_DRAINING)
			rc = 0;
		pthread_mutex_unlock(&a->lock);
	}
	if (atomic_load(&a->stopped))
		return err_set(err, -ECANCELED, "playback was stopped");
	return rc ? fail(a, err, rc, "would not play to the end") : 0;
}

void alsa_stop(struct alsa *a)
{
	atomic_store(&a->stopped, true);
	pthread_mutex_lock(&a->lock);
	snd_pcm_drop(a->pcm);
	pthread_mutex_unlock(&a->lock);
}

uint64_t alsa_faults(struct alsa *a)
{
	return atomic_load(&a->faults);
}

void alsa_close(struct alsa *a)
{
	if (!a)
		return;
	if (a->pcm)
		snd_pcm_close(a->pcm);
	pthread_mutex_destroy(&a->lock);
	free(a->name);
	free(a);
}
