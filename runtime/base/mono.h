/* SPDX-License-Identifier: MIT */
/* Monotonic time in nanoseconds: what every deadline and every trace uses. */
#ifndef HEARTH_BASE_MONO_H
#define HEARTH_BASE_MONO_H

#include <stdint.h>
#include <time.h>

static inline int64_t mono_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

#endif
