// SPDX-License-Identifier: MIT
#include "voice/offset.h"

#include <math.h>

#define KEEP  0.992176f   /* exp(-2 pi 20 Hz / OFFSET_RATE) */
#define QUIET 1e-3f       /* of a step of 16 bits: below it, digital silence would go on in denormals */

void offset_remove(struct offset *o, const int16_t *from, size_t n, int16_t *to)
{
	/* The first sample is the best guess of the offset: from zero it would be a click. */
	if (!o->begun && n) {
		o->begun = true;
		o->in = from[0];
	}
	for (size_t i = 0; i < n; i++) {
		float x = from[i], y = KEEP * (o->out + x - o->in);

		o->in = x;
		o->out = fabsf(y) < QUIET ? 0 : y;
		/* A full scale of swing around an offset is more than 16 bits hold. */
		to[i] = (int16_t)lrintf(y > 32767 ? 32767 : y < -32768 ? -32768 : y);
	}
}
