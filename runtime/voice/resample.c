// SPDX-License-Identifier: MIT
#include "voice/resample.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <soxr.h>

struct resample {
	soxr_t soxr; /* NULL: equal rates */
};

int resample_new(int from, int to, struct resample **ret, struct hearth_err *err)
{
	struct resample *r;
	soxr_error_t e = NULL;

	if (from <= 0 || to <= 0)
		return err_set(err, -EINVAL, "a sample rate of %d Hz cannot be resampled to %d Hz", from, to);
	r = calloc(1, sizeof(*r));
	if (!r)
		return err_set(err, -ENOMEM, "no memory for a resampler");
	if (from != to) {
		soxr_io_spec_t io = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
		/* 16-bit quality: what speech engines take in is 16 bit. */
		soxr_quality_spec_t q = soxr_quality_spec(SOXR_16_BITQ, 0);
		soxr_runtime_spec_t rt = soxr_runtime_spec(1);

		r->soxr = soxr_create(from, to, 1, &e, &io, &q, &rt);
		if (!r->soxr) {
			free(r);
			return err_set(err, -ENOMEM, "the resampler from %d to %d Hz would not start: %s",
				       from, to, e ? e : "no reason given");
		}
	}
	*ret = r;
	return 0;
}

int resample_push(struct resample *r, const float *in, size_t n, float *out, size_t room,
		  size_t *ret_taken, size_t *ret_given)
{
	size_t taken = 0, given = 0;

	if (!r->soxr) {
		given = taken = n < room ? n : room;
		if (in)
			memcpy(out, in, given * sizeof(*out));
		else
			given = taken = 0;
	} else if (soxr_process(r->soxr, in, n, &taken, out, room, &given)) {
		return -EIO;
	}
	*ret_taken = taken;
	*ret_given = given;
	return 0;
}

void resample_free(struct resample *r)
{
	if (!r)
		return;
	soxr_delete(r->soxr);
	free(r);
}

size_t resample_to_s16(const float *in, size_t n, int16_t *out)
{
	size_t clipped = 0;

	for (size_t i = 0; i < n; i++) {
		float x = in[i] * 32768.0f;

		if (!(x <= 32767.0f)) { /* NaN lands here too: silence, not a click */
			clipped++;
			out[i] = isnan(x) ? 0 : 32767;
		} else if (x < -32768.0f) {
			clipped++;
			out[i] = -32768;
		} else {
			out[i] = (int16_t)lrintf(x);
		}
	}
	return clipped;
}
