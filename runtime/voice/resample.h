/* SPDX-License-Identifier: MIT */
/* A stream of mono float samples from one rate to another, by soxr. */
#ifndef HEARTH_VOICE_RESAMPLE_H
#define HEARTH_VOICE_RESAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct resample;

/* Equal rates copy. -EINVAL for a rate of zero or less, -ENOMEM. */
int resample_new(int from, int to, struct resample **ret, struct hearth_err *err);

/*
 * Takes @n samples (0 with @in NULL: the end, drain) and gives up to @room.
 * Not all of the input need be taken; call again with the rest. After the
 * end, call until *ret_given is 0.
 */
int resample_push(struct resample *r, const float *in, size_t n, float *out, size_t room,
		  size_t *ret_taken, size_t *ret_given);
void resample_free(struct resample *r);

/* Float to 16 bit with saturation, which is counted: returns how many clipped. */
size_t resample_to_s16(const float *in, size_t n, int16_t *out);

#endif
