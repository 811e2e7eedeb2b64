/* SPDX-License-Identifier: MIT */
/* Monotonic time in nanoseconds: what every deadline and every trace uses. */
#ifndef HEARTH_BASE_MONO_H
#define HEARTH_BASE_MONO_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

static inline int64_t mono_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* The time that is @ms from now, as pthread_cond_timedwait() of a monotonic condition wants it. */
static inline struct timespec mono_after(int ms)
{
	const int64_t ns = mono_ns() + (int64_t)ms * 1000000;

	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };
}

/* A condition that is waited for until a mono_after(), whatever becomes of the time of day. */
static inline void mono_cond(pthread_cond_t *c)
{
	pthread_condattr_t a;

	pthread_condattr_init(&a);
	pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
	pthread_cond_init(c, &a);
	pthread_condattr_destroy(&a);
}

#endif
