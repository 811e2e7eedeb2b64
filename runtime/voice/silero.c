// SPDX-License-Identifier: MIT
#include "voice/silero.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/cpu_best.h"
#include "voice/silero_file.h"

#define CONTEXT 64
#define INPUT   (CONTEXT + SILERO_WINDOW)
#define PADDED  (INPUT + 64)
#define BINS    129
#define FRAMES  4
#define HIDDEN  128

struct silero {
	float *weights;             /* the whole file, tensors in the order of silero_tensors */
	const float *w[SILERO_TENSORS];
	float (*dot)(const float *a, const float *b, uint32_t n); /* the engine's, for this CPU */
	float context[CONTEXT];
	float h[HIDDEN], c[HIDDEN];
};

size_t silero_bytes(void)
{
	size_t n = 0;

	for (int i = 0; i < SILERO_TENSORS; i++)
		n += silero_tensors[i].n;
	return sizeof(struct silero) + n * sizeof(float);
}

int silero_open(const char *path, struct silero **ret, struct hearth_err *err)
{
	struct silero *s = calloc(1, sizeof(*s));
	const float *p;
	int rc;

	if (!s)
		return err_set(err, -ENOMEM, "no memory for the voice detector");
	rc = silero_file_read(path, &s->weights, err);
	if (rc) {
		free(s);
		return rc;
	}
	s->dot = cpu_kern_best()->dot;
	p = s->weights;
	for (int i = 0; i < SILERO_TENSORS; i++) {
		s->w[i] = p;
		p += silero_tensors[i].n;
	}
	*ret = s;
	return 0;
}

void silero_close(struct silero *s)
{
	if (!s)
		return;
	free(s->weights);
	free(s);
}

void silero_reset(struct silero *s)
{
	memset(s->context, 0, sizeof(s->context));
	memset(s->h, 0, sizeof(s->h));
	memset(s->c, 0, sizeof(s->c));
}

/*
 * ReLU(conv) of width 3, padding 1. in [channels, frames], out [outs, frames
 * / stride, rounded up]; w [outs, channels, 3].
 */
static void conv3(struct silero *s, const float *in, int channels, int frames, const float *w, const float *bias,
		  int outs, int stride, float *out)
{
	float column[BINS * 3];
	int n = (frames + stride - 1) / stride;

	for (int t = 0; t < n; t++) {
		for (int i = 0; i < channels; i++)
			for (int k = 0; k < 3; k++) {
				int at = t * stride + k - 1;

				column[i * 3 + k] = at >= 0 && at < frames ? in[i * frames + at] : 0;
			}
		for (int o = 0; o < outs; o++) {
			float x = s->dot(w + o * channels * 3, column, (uint32_t)channels * 3) + bias[o];

			out[o * n + t] = x > 0 ? x : 0;
		}
	}
}

static float sigmoid(float x)
{
	return 1.0f / (1.0f + expf(-x));
}

/* The gates are in PyTorch's order: input, forget, cell, output. */
static void lstm(struct silero *s, const float *x)
{
	float gate[4][HIDDEN];
	const float *wi = s->w[SILERO_RNN_WI], *wh = s->w[SILERO_RNN_WH];
	const float *bi = s->w[SILERO_RNN_BI], *bh = s->w[SILERO_RNN_BH];

	for (int g = 0; g < 4; g++)
		for (int i = 0; i < HIDDEN; i++) {
			int row = g * HIDDEN + i;

			gate[g][i] = s->dot(wi + row * HIDDEN, x, HIDDEN) + bi[row] +
				     s->dot(wh + row * HIDDEN, s->h, HIDDEN) + bh[row];
		}
	for (int i = 0; i < HIDDEN; i++) {
		s->c[i] = sigmoid(gate[1][i]) * s->c[i] + sigmoid(gate[0][i]) * tanhf(gate[2][i]);
		s->h[i] = sigmoid(gate[3][i]) * tanhf(s->c[i]);
	}
}

float silero_step(struct silero *s, const float *pcm)
{
	float x[PADDED], mag[BINS * FRAMES], a[128 * FRAMES], b[128 * FRAMES], relu[HIDDEN];

	memcpy(x, s->context, sizeof(s->context));
	memcpy(x + CONTEXT, pcm, SILERO_WINDOW * sizeof(float));
	for (int i = 0; i < PADDED - INPUT; i++)
		x[INPUT + i] = x[INPUT - 2 - i];
	memcpy(s->context, pcm + SILERO_WINDOW - CONTEXT, sizeof(s->context));

	for (int t = 0; t < FRAMES; t++)
		for (int f = 0; f < BINS; f++) {
			const float *basis = s->w[SILERO_STFT];
			float re = s->dot(basis + f * 256, x + t * 128, 256);
			float im = s->dot(basis + (BINS + f) * 256, x + t * 128, 256);

			mag[f * FRAMES + t] = sqrtf(re * re + im * im);
		}
	conv3(s, mag, BINS, 4, s->w[SILERO_CONV0_W], s->w[SILERO_CONV0_B], 128, 1, a);
	conv3(s, a, 128, 4, s->w[SILERO_CONV1_W], s->w[SILERO_CONV1_B], 64, 2, b);
	conv3(s, b, 64, 2, s->w[SILERO_CONV2_W], s->w[SILERO_CONV2_B], 64, 2, a);
	conv3(s, a, 64, 1, s->w[SILERO_CONV3_W], s->w[SILERO_CONV3_B], 128, 1, b);
	lstm(s, b);
	for (int i = 0; i < HIDDEN; i++)
		relu[i] = s->h[i] > 0 ? s->h[i] : 0;
	return sigmoid(s->dot(s->w[SILERO_OUT_W], relu, HIDDEN) + s->w[SILERO_OUT_B][0]);
}
