/* SPDX-License-Identifier: MIT */
/*
 * The Silero voice detector, 16 kHz, in plain C. One window of 512 samples in,
 * one probability of speech out; an LSTM carries the past.
 *
 *   576 samples (64 of the last window, 512 new), 64 mirrored at the end
 *   STFT as a convolution, magnitude            [129, 4]
 *   conv 3, ReLU                                [128, 4]
 *   conv 3 stride 2, ReLU                       [ 64, 2]
 *   conv 3 stride 2, ReLU                       [ 64, 1]
 *   conv 3, ReLU                                [128, 1]
 *   LSTM 128, ReLU, conv 1, sigmoid             1
 *
 * The weights come from the ONNX file that set-up fetches, turned once into
 * our own file by silero_convert.
 */
#ifndef HEARTH_VOICE_SILERO_H
#define HEARTH_VOICE_SILERO_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define SILERO_WINDOW 512

struct silero;

/* -ENOENT, -EBADMSG (not our file, or damaged). */
int silero_open(const char *path, struct silero **ret, struct hearth_err *err);
void silero_close(struct silero *s);
void silero_reset(struct silero *s);

/* @pcm: 512 samples in -1..1. */
float silero_step(struct silero *s, const float *pcm);

size_t silero_bytes(void); /* that one open detector takes */

/*
 * Reads silero_vad_16k_op15.onnx from memory and writes our file: the tensors
 * found by name, their shapes checked. -EBADMSG with what is missing.
 */
int silero_convert(const void *onnx, size_t size, const char *path, struct hearth_err *err);

#endif
