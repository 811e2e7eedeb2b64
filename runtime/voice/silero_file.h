/* SPDX-License-Identifier: MIT */
/* The detector's weights file: a head, then every tensor as little-endian f32. */
#ifndef HEARTH_VOICE_SILERO_FILE_H
#define HEARTH_VOICE_SILERO_FILE_H

#include <stddef.h>

#include "base/err.h"

enum {
	SILERO_STFT,
	SILERO_CONV0_W, SILERO_CONV0_B,
	SILERO_CONV1_W, SILERO_CONV1_B,
	SILERO_CONV2_W, SILERO_CONV2_B,
	SILERO_CONV3_W, SILERO_CONV3_B,
	SILERO_RNN_WI, SILERO_RNN_WH, SILERO_RNN_BI, SILERO_RNN_BH,
	SILERO_OUT_W, SILERO_OUT_B,
	SILERO_TENSORS,
};

extern const struct silero_tensor {
	const char *name;   /* in the ONNX file */
	int dims[3];        /* 0: no such dimension */
	size_t n;           /* floats */
} silero_tensors[SILERO_TENSORS];

/* All tensors one after the other; the caller frees. */
int silero_file_read(const char *path, float **ret, struct hearth_err *err);

#endif
