/* SPDX-License-Identifier: MIT */
/*
 * Sound in and sound out, with one shape inside hearth: 16-bit mono. Any rate,
 * width and channel count is turned into it on the way in (channels are
 * averaged, soxr resamples); a WAV file, the microphone, a WAV being written
 * and the sound card all look the same to the caller.
 *
 * A file is streamed: an hour of audio takes no more memory than a second.
 */
#ifndef HEARTH_VOICE_AUDIO_H
#define HEARTH_VOICE_AUDIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define AUDIO_RATE 16000 /* what VAD and STT hear */

/* What the source is before conversion. */
struct audio_info {
	int rate;         /* Hz */
	int channels;
	int64_t frames;   /* -1: not known (a pipe, a microphone) */
	char format[32];  /* "16-bit PCM", "32-bit float", ... */
};

struct audio_in;

/*
 * Opens a WAV (RIFF, RIFX, RF64; 8 to 32-bit PCM, float, double, A-law,
 * mu-law; 1 Hz..768 kHz; 1..64 channels) and converts to @rate. Errors, each
 * with a sentence that names the file:
 *   -ENOENT, -EACCES, -EISDIR  as the system said
 *   -EBADMSG     not a WAV, or broken
 *   -ENODATA     zero samples
 *   -ENOTSUP     a WAV of a codec or a size that is not read
 * A file that ends before its header says is refused at once (-EBADMSG) when
 * it can be measured; one read from a pipe, at the place where it ends.
 * "-" is standard input.
 */
int audio_in_wav(const char *path, int rate, struct audio_in **ret, struct hearth_err *err);

/* The same over bytes in memory, which must outlive the reader. */
int audio_in_mem(const void *data, size_t size, int rate, struct audio_in **ret,
		   struct hearth_err *err);
/* The same, called @name in sentences. */
int audio_in_named(const char *name, const void *data, size_t size, int rate, struct audio_in **ret, struct hearth_err *err);

/*
 * Opens an ALSA capture device ("default") at @rate.
 * -ENODEV: there is no such device; -EBUSY: somebody has it.
 */
int audio_in_mic(const char *device, int rate, struct audio_in **ret, struct hearth_err *err);

/*
 * Up to @n samples. 0: end of the source. Blocks on a microphone. An overrun
 * of the microphone is repaired, and counted in audio_in_overruns().
 */
ssize_t audio_in_read(struct audio_in *in, int16_t *pcm, size_t n, struct hearth_err *err);

const struct audio_info *audio_in_info(const struct audio_in *in);
/* What a person should know of this source, as part of a sentence; NULL: nothing. */
const char *audio_in_remark(const struct audio_in *in);
uint64_t audio_in_overruns(const struct audio_in *in); /* times the machine was too slow */
void audio_in_stop(struct audio_in *in); /* any thread: the next read returns 0 */
void audio_in_close(struct audio_in *in); /* NULL is legal */

struct audio_out;

/*
 * Writes a 16-bit mono WAV. Nothing appears under @path until audio_out_commit:
 * before it, closing (or dying) leaves the old file, or none, as it was.
 * A path that is a pipe or a device is written at commit. "-" is standard
 * output. Fails at once where the folder is missing or not writable.
 */
int audio_out_wav(const char *path, int rate, struct audio_out **ret, struct hearth_err *err);

/* Opens an ALSA playback device. Errors as audio_in_mic. */
int audio_out_card(const char *device, int rate, struct audio_out **ret, struct hearth_err *err);

/*
 * Writes all of it; blocks on a sound card when its buffer is full. An
 * underrun (nothing to play) is repaired, and counted in audio_out_gaps().
 * -ENOSPC, -EFBIG and the like with the file's name; -ECANCELED after stop.
 */
int audio_out_write(struct audio_out *out, const int16_t *pcm, size_t n, struct hearth_err *err);

/* Puts the file in place (fsync, rename), or waits until all has been heard. */
int audio_out_commit(struct audio_out *out, struct hearth_err *err);

uint64_t audio_out_samples(const struct audio_out *out); /* taken so far */
uint64_t audio_out_played(const struct audio_out *out);  /* heard so far; of a file, taken */
uint64_t audio_out_gaps(const struct audio_out *out);    /* underruns */
void audio_out_stop(struct audio_out *out);  /* any thread: silence now, drop what is queued */
void audio_out_close(struct audio_out *out); /* without a commit nothing is left */

/* Bytes that one open input or output holds, for the plan. */
size_t audio_footprint(void);

#endif
