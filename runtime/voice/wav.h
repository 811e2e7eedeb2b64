/* SPDX-License-Identifier: MIT */
/*
 * WAV files. The header is read here, so that a cut-off or hostile file is
 * known before a sample is; libsndfile turns the samples into float and
 * writes ours. Used through audio.h.
 */
#ifndef HEARTH_VOICE_WAV_H
#define HEARTH_VOICE_WAV_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "voice/audio.h"

struct wav_reader;

/* @path as in audio_in_wav; with @data not NULL, @path only names it. */
int wav_open(const char *path, const void *data, size_t size, struct wav_reader **ret,
	     struct hearth_err *err);
const struct audio_info *wav_info(const struct wav_reader *r);
/* Up to @n frames, channels averaged; 0 at the end; -EBADMSG where a pipe was cut off. */
ssize_t wav_read(struct wav_reader *r, float *mono, size_t n, struct hearth_err *err);
void wav_close(struct wav_reader *r);

struct wav_writer;

int wav_create(const char *path, int rate, struct wav_writer **ret, struct hearth_err *err);
int wav_write(struct wav_writer *w, const int16_t *pcm, size_t n, struct hearth_err *err);
int wav_commit(struct wav_writer *w, struct hearth_err *err);
void wav_discard(struct wav_writer *w); /* frees; without a commit nothing is left */

#endif
