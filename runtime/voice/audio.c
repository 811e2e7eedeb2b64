// SPDX-License-Identifier: MIT
#include "voice/audio.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "voice/alsa.h"
#include "voice/resample.h"
#include "voice/wav.h"

#define BLOCK 1024 /* samples converted at a time */

/* Below this nothing that tells one word from another is left. */
#define SPEECH_MIN_RATE 4000

struct audio_in {
	struct audio_info info;
	struct wav_reader *wav;  /* one of the two */
	struct alsa *mic;
	struct resample *rs;
	float raw[BLOCK];        /* read and not yet taken by the resampler */
	size_t raw_at, raw_n;
	float out[BLOCK];
	bool drained;            /* the source has ended */
	atomic_bool stopped;
	char remark[160];
};

struct audio_out {
	struct wav_writer *wav;  /* one of the two */
	struct alsa *card;
	_Atomic uint64_t samples;
	atomic_bool stopped;
};

static int open_reader(const char *path, const void *data, size_t size, int rate,
		       struct audio_in **ret, struct hearth_err *err)
{
	struct audio_in *in = calloc(1, sizeof(*in));
	int rc;

	if (!in)
		return err_set(err, -ENOMEM, "no memory to open %s", path);
	rc = wav_open(path, data, size, &in->wav, err);
	if (rc) {
		free(in);
		return rc;
	}
	in->info = *wav_info(in->wav);
	rc = resample_new(in->info.rate, rate, &in->rs, err);
	if (rc) {
		audio_in_close(in);
		return rc;
	}
	if (in->info.rate < SPEECH_MIN_RATE)
		snprintf(in->remark, sizeof(in->remark),
			 "at %d Hz it carries nothing above %d Hz: too little to tell words apart",
			 in->info.rate, in->info.rate / 2);
	*ret = in;
	return 0;
}

int audio_in_wav(const char *path, int rate, struct audio_in **ret, struct hearth_err *err)
{
	return open_reader(path, NULL, 0, rate, ret, err);
}

int audio_in_mem(const void *data, size_t size, int rate, struct audio_in **ret,
		   struct hearth_err *err)
{
	return open_reader("memory", data, size, rate, ret, err);
}

int audio_in_named(const char *name, const void *data, size_t size, int rate, struct audio_in **ret, struct hearth_err *err)
{
	return open_reader(name, data, size, rate, ret, err);
}

int audio_in_mic(const char *device, int rate, struct audio_in **ret, struct hearth_err *err)
{
	struct audio_in *in = calloc(1, sizeof(*in));
	int rc;

	if (!in)
		return err_set(err, -ENOMEM, "no memory to open the microphone %s", device);
	rc = alsa_open(device, true, rate, &in->mic, err);
	if (rc) {
		free(in);
		return rc;
	}
	in->info = (struct audio_info){ .rate = rate, .channels = 1, .frames = -1 };
	snprintf(in->info.format, sizeof(in->info.format), "16-bit PCM");
	*ret = in;
	return 0;
}

static ssize_t read_file(struct audio_in *in, int16_t *pcm, size_t n, struct hearth_err *err)
{
	if (n > BLOCK)
		n = BLOCK;
	for (;;) {
		size_t taken = 0, given = 0;
		int rc;

		if (in->raw_at == in->raw_n && !in->drained) {
			ssize_t got = wav_read(in->wav, in->raw, BLOCK, err);

			if (got < 0)
				return got;
			in->raw_at = 0;
			in->raw_n = (size_t)got;
			in->drained = got == 0;
		}
		rc = resample_push(in->rs, in->drained ? NULL : in->raw + in->raw_at,
				   in->raw_n - in->raw_at, in->out, n, &taken, &given);
		if (rc)
			return err_set(err, rc, "the resampler failed");
		if (!in->drained)
			in->raw_at += taken;
		if (given > 0) {
			resample_to_s16(in->out, given, pcm);
			return (ssize_t)given;
		}
		if (in->drained)
			return 0;
	}
}

ssize_t audio_in_read(struct audio_in *in, int16_t *pcm, size_t n, struct hearth_err *err)
{
	if (n == 0)
		return err_set(err, -EINVAL, "a read of no samples");
	if (atomic_load(&in->stopped))
		return 0;
	return in->mic ? alsa_read(in->mic, pcm, n, err) : read_file(in, pcm, n, err);
}

const struct audio_info *audio_in_info(const struct audio_in *in)
{
	return &in->info;
}

const char *audio_in_remark(const struct audio_in *in)
{
	return in->remark[0] ? in->remark : NULL;
}

uint64_t audio_in_overruns(const struct audio_in *in)
{
	return in->mic ? alsa_faults(in->mic) : 0;
}

void audio_in_stop(struct audio_in *in)
{
	atomic_store(&in->stopped, true);
	if (in->mic)
		alsa_stop(in->mic);
}

void audio_in_close(struct audio_in *in)
{
	if (!in)
		return;
	wav_close(in->wav);
	alsa_close(in->mic);
	resample_free(in->rs);
	free(in);
}

int audio_out_wav(const char *path, int rate, struct audio_out **ret, struct hearth_err *err)
{
	struct audio_out *out = calloc(1, sizeof(*out));
	int rc;

	if (!out)
		return err_set(err, -ENOMEM, "no memory to write %s", path);
	rc = wav_create(path, rate, &out->wav, err);
	if (rc)
		free(out);
	else
		*ret = out;
	return rc;
}

int audio_out_card(const char *device, int rate, struct audio_out **ret, struct hearth_err *err)
{
	struct audio_out *out = calloc(1, sizeof(*out));
	int rc;

	if (!out)
		return err_set(err, -ENOMEM, "no memory to open the sound card %s", device);
	rc = alsa_open(device, false, rate, &out->card, err);
	if (rc)
		free(out);
	else
		*ret = out;
	return rc;
}

int audio_out_write(struct audio_out *out, const int16_t *pcm, size_t n, struct hearth_err *err)
{
	int rc;

	if (atomic_load(&out->stopped))
		return err_set(err, -ECANCELED, "playback was stopped");
	rc = out->card ? alsa_write(out->card, pcm, n, err) : wav_write(out->wav, pcm, n, err);
	if (!rc)
		atomic_fetch_add(&out->samples, n);
	return rc;
}

int audio_out_commit(struct audio_out *out, struct hearth_err *err)
{
	return out->card ? alsa_drain(out->card, err) : wav_commit(out->wav, err);
}

uint64_t audio_out_samples(const struct audio_out *out)
{
	return atomic_load(&out->samples);
}

uint64_t audio_out_played(const struct audio_out *out)
{
	uint64_t taken = atomic_load(&out->samples);
	uint64_t pending = out->card ? alsa_pending(out->card) : 0;

	return pending < taken ? taken - pending : 0;
}

uint64_t audio_out_gaps(const struct audio_out *out)
{
	return out->card ? alsa_faults(out->card) : 0;
}

void audio_out_stop(struct audio_out *out)
{
	atomic_store(&out->stopped, true);
	if (out->card)
		alsa_stop(out->card);
}

void audio_out_close(struct audio_out *out)
{
	if (!out)
		return;
	wav_discard(out->wav);
	alsa_close(out->card);
	free(out);
}

size_t audio_footprint(void)
{
	/* libsndfile's handle (about 40 KiB with its buffers), soxr's filter, our blocks. */
	return sizeof(struct audio_in) + 192 * 1024;
}
