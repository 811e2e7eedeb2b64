/* SPDX-License-Identifier: MIT */
/*
 * What the GPU tests share: TAP, random numbers, device buffers. No test
 * library: these programs also run on bare machines with a GPU. Where there is
 * none, every test is one skipped line with the reason.
 */
#ifndef HEARTH_TESTS_GPU_H
#define HEARTH_TESTS_GPU_H

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/kernels.h"

/* gpu.c */
extern int tap_n, tap_bad;
extern uint64_t tap_seed, rng_state;
extern void *gpu_stream;
extern struct hk_dev_info gpu_info;

static inline void tap(bool ok, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline void tap(bool ok, const char *fmt, ...)
{
	va_list ap;

	printf("%sok %d - ", ok ? "" : "not ", ++tap_n);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	if (!ok) {
		tap_bad++;
		printf("# seed %llu\n", (unsigned long long)tap_seed);
	}
	fflush(stdout);
}

static inline int tap_end(void)
{
	printf("1..%d\n", tap_n);
	return tap_bad ? 1 : 0;
}

static inline uint32_t rnd(void)
{
	rng_state = rng_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(rng_state >> 33) ^ (uint32_t)(rng_state >> 11);
}
static inline float rnd_f(void) { return (float)(rnd() >> 8) * (2.0f / 16777216) - 1; }
static inline float rnd_normal(void)
{
	float s = 0;

	for (int i = 0; i < 6; i++)
		s += rnd_f();
	return s * 0.7071f;
}
/* Fresh each run; a failing run prints it, and SEED=N brings it back. */
static inline void rnd_start(void)
{
	const char *e = getenv("SEED");

	tap_seed = e ? strtoull(e, NULL, 0) : (uint64_t)time(NULL);
	rng_state = tap_seed * 2 + 1;
	rnd();
	printf("# seed %llu\n", (unsigned long long)tap_seed);
}

/* -- device buffers ------------------------------------------------------------ */
static inline void gpu_die(const char *what, int rc)
{
	printf("Bail out! %s: %d, %s\n", what, rc, hk_dev_error());
	exit(1);
}
#define GPU(call) do { int rc_ = (call); if (rc_) gpu_die(#call, rc_); } while (0)

/* false: no GPU, the reason was printed as a skip */
static inline bool gpu_start(const char *name)
{
	int rc = hk_dev_probe(0, &gpu_info);

	if (rc) {
		printf("# skip reason: %s\nok 1 - %s # SKIP %s\n1..1\n", hk_dev_error(), name, hk_dev_error());
		return false;
	}
	GPU(hk_dev_open(0));
	GPU(hk_stream_open(&gpu_stream));
	printf("# device %s, SM %d.%d, %d SMs, driver %d, runtime %d\n", gpu_info.name, gpu_info.major,
	       gpu_info.minor, gpu_info.sms, gpu_info.driver, gpu_info.runtime);
	return true;
}

static inline void *gpu_put(const void *host, size_t bytes)
{
	void *d;

	GPU(hk_dev_alloc(bytes ? bytes : 16, &d));
	if (bytes) {
		GPU(hk_copy_in(gpu_stream, d, host, bytes));
		GPU(hk_stream_sync(gpu_stream));
	}
	return d;
}
/* NaN as float and as half */
static inline void *gpu_poison(size_t bytes)
{
	void *d;

	GPU(hk_dev_alloc(bytes ? bytes : 16, &d));
	GPU(hk_fill(gpu_stream, d, 0xff, bytes ? bytes : 16));
	return d;
}
static inline void *gpu_zero(size_t bytes)
{
	void *d;

	GPU(hk_dev_alloc(bytes ? bytes : 16, &d));
	GPU(hk_fill(gpu_stream, d, 0, bytes ? bytes : 16));
	return d;
}
static inline void gpu_get(void *host, const void *d, size_t bytes)
{
	if (bytes)
		GPU(hk_copy_out(gpu_stream, host, d, bytes));
	GPU(hk_stream_sync(gpu_stream));
}

/* |a - b| / |b|; NaN when anything is */
static inline double rel_err(const float *a, const float *b, size_t n)
{
	double d = 0, s = 0;

	for (size_t i = 0; i < n; i++) {
		d += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
		s += (double)b[i] * b[i];
	}
	return s > 0 ? sqrt(d / s) : sqrt(d);
}

#endif
