/* SPDX-License-Identifier: MIT */
/*
 * Speed of the CUDA table on one GGUF: decode at depths, prefill of several
 * lengths, sessions together, a warm turn, and the machine's own read and copy
 * speed in the same run. One line a figure.
 *
 * usage: bench_gpu FILE.gguf [quick] [kv-f16] [--in-place] [few=N] [blocks=N] [free=N] [wide=N] [together]
 * few: the GEMV up to so many rows; blocks: its blocks an SM;
 * free: SMs from which on gemm_free.cuh and gemm_wide.cuh are used; wide: as in bench_kernels; together: short products add their parts of k up themselves
 * `make bench-gpu` runs llama-bench on the same file beside it.
 */
#include "tests/gpu/model.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static struct runner R;
static uint32_t ctx_max;
static uint32_t *pages[16];

/* One step of n[i] rows at depth[i] of each session; waits for its end. */
static double one(uint32_t n_seq, const uint32_t *n, const uint32_t *depth, bool out)
{
	static int32_t tok[4096];
	struct batch_seq bs[16];
	struct batch b = { .token = tok, .n_seq = n_seq, .seq = bs };
	uint32_t o[16];
	struct hearth_err err = { 0 };
	double t;
	int rc;

	for (uint32_t i = 0; i < n_seq; i++) {
		bs[i] = (struct batch_seq){ b.n, n[i], depth[i], pages[i] };
		b.n += n[i];
		o[i] = b.n - 1;
	}
	for (uint32_t i = 0; i < b.n; i++)
		tok[i] = (int32_t)(rnd() % R.m->shape.vocab);
	b.out = o;
	b.n_out = out ? n_seq : 0;
	t = now();
	rc = R.ops->forward(R.c, &b, &err);
	if (!rc && out && R.ops->pick) {
		struct ops_pick p[16] = { 0 };
		int32_t ret[16];

		for (uint32_t i = 0; i < n_seq; i++) {
			p[i].row = i;
			p[i].top_p = 1;
			p[i].rep_pen = 1;
		}
		rc = R.ops->pick(R.c, p, n_seq, ret, &err);
	} else if (!rc && out) {
		float *l;

		for (uint32_t i = 0; i < n_seq && !rc; i++)
			rc = R.ops->logits(R.c, i, &l, &err);
	}
	if (rc)
		die_err("step", rc, &err);
	return now() - t;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Median seconds of a step after warming up. */
static double median(uint32_t n_seq, const uint32_t *n, const uint32_t *depth, bool out, int reps)
{
	double t[256];

	for (int i = 0; i < 3; i++)
		one(n_seq, n, depth, out);
	for (int i = 0; i < reps; i++)
		t[i] = one(n_seq, n, depth, out);
	qsort(t, (size_t)reps, sizeof(*t), by_size);
	return t[reps / 2];
}

/* A prompt of any length in chunks. */
static double prompt(uint32_t n, uint32_t depth, uint32_t chunk)
{
	double t = 0;

	for (uint32_t at = 0; at < n; at += chunk) {
		uint32_t k = n - at < chunk ? n - at : chunk, d = depth + at;

		t += one(1, &k, &d, at + k == n);
	}
	return t;
}

static void memory_speed(void)
{
	size_t n = (size_t)4 << 30;
	void *a, *b;
	float ms;

	if (gpu_info.mem_total < (size_t)32 << 30)
		n = (size_t)256 << 20;
	if (hk_dev_alloc(n, &a) || hk_dev_alloc(n, &b))
		return;
	GPU(hk_fill(gpu_stream, a, 1, n));
	GPU(hk_dev_copy(gpu_stream, b, a, n));
	GPU(hk_event_time(gpu_stream, 0, NULL));
	for (int i = 0; i < 5; i++)
		GPU(hk_dev_copy(gpu_stream, b, a, n));
	GPU(hk_event_time(gpu_stream, 1, NULL));
	GPU(hk_event_time(gpu_stream, 2, &ms));
	printf("copy, bytes read and written: %.0f GB/s\n", 10.0 * (double)n / ms / 1e6);
	GPU(hk_read_speed(gpu_stream, &gpu_info, a, n));
	GPU(hk_event_time(gpu_stream, 0, NULL));
	for (int i = 0; i < 5; i++)
		GPU(hk_read_speed(gpu_stream, &gpu_info, a, n));
	GPU(hk_event_time(gpu_stream, 1, NULL));
	GPU(hk_event_time(gpu_stream, 2, &ms));
	printf("read: %.0f GB/s\n", 5.0 * (double)n / ms / 1e6);
	hk_dev_free(a);
	hk_dev_free(b);
}

/*
 * How long work of speech on the same GPU takes, on a stream of the highest priority,
 * beside nothing and beside a long prefill: 16 MiB are read by all SMs, once a millisecond.
 */
static atomic_bool enough;
static uint32_t beside_depth;

static void *prefills(void *arg)
{
	while (!atomic_load(&enough))
		prompt(2048, beside_depth, 512);
	return arg;
}

static void urgent_times(void *st, void *p, double *ret_median, double *ret_p99)
{
	enum { N = 400 };
	static double t[N];
	const struct timespec ms = { 0, 1000000 };

	for (int i = -20; i < N; i++) {
		const double t0 = now();

		GPU(hk_read_speed(st, &gpu_info, p, (size_t)16 << 20));
		GPU(hk_stream_sync(st));
		if (i >= 0)
			t[i] = now() - t0;
		nanosleep(&ms, NULL);
	}
	qsort(t, N, sizeof(*t), by_size);
	*ret_median = t[N / 2];
	*ret_p99 = t[N * 99 / 100];
}

static void urgent(uint32_t depth)
{
	double alone, alone99, beside, beside99;
	pthread_t thread;
	void *st, *p;

	if (hk_stream_open_urgent(&st) || hk_dev_alloc((size_t)16 << 20, &p))
		gpu_die("a stream and 16 MiB", -1);
	GPU(hk_fill(st, p, 1, (size_t)16 << 20));
	urgent_times(st, p, &alone, &alone99);
	atomic_store(&enough, false);
	beside_depth = depth;
	if (pthread_create(&thread, NULL, prefills, NULL))
		gpu_die("a thread", -1);
	urgent_times(st, p, &beside, &beside99);
	atomic_store(&enough, true);
	pthread_join(thread, NULL);
	printf("urgent work alone: %.3f ms, 99 of 100 %.3f ms; beside prefill of 2048 at depth %u: %.3f, %.3f ms\n",
	       alone * 1e3, alone99 * 1e3, depth, beside * 1e3, beside99 * 1e3);
	hk_dev_free(p);
	hk_stream_close(st);
}

int main(int argc, char **argv)
{
	static const uint32_t PP[] = { 18, 33, 64, 128, 235, 512, 2048 };
	static const uint32_t DEPTH[] = { 0, 4096, 16384 };
	struct hearth_err err = { 0 };
	const struct ops *ops;
	enum kv_type kv = KV_I8;
	bool quick = false;
	struct loaded l;
	double t1[3] = { 0 }, t, bytes;
	uint32_t seqs = 4;
	size_t used, total, used2;
	int rc;

	for (int i = 2; i < argc; i++) {
		quick |= !strcmp(argv[i], "quick");
		if (!strcmp(argv[i], "kv-f16"))
			kv = KV_F16;
		if (!strncmp(argv[i], "few=", 4))
			ops_cuda_few = (uint32_t)atoi(argv[i] + 4);
		if (!strncmp(argv[i], "blocks=", 7))
			hk_gemv_blocks = (uint32_t)atoi(argv[i] + 7);
		if (!strncmp(argv[i], "wide=", 5))
			hk_wide_tiles = (uint32_t)atoi(argv[i] + 5);
		if (!strncmp(argv[i], "free=", 5))
			ops_cuda_free_sms = (uint32_t)atoi(argv[i] + 5);
		ops_cuda_together |= !strcmp(argv[i], "together");
		if (!strcmp(argv[i], "--in-place"))
			ops_cuda_place(OPS_CUDA_IN_PLACE);
	}
	if (argc < 2 || (rc = ops_cuda(&ops, &err))) {
		fprintf(stderr, "bench_gpu: %s\n",
			argc < 2 ? "usage: bench_gpu FILE.gguf [quick] [kv-f16] [--in-place]" : err.text);
		return 1;
	}
	rnd_start();
	if (!gpu_start("bench"))
		return 1;
	printf("%s\n", ops_cuda_line());
	memory_speed();
	t = now();
	l = load_model(argv[1], ops);
	printf("loaded and packed in %.1f s\n", now() - t);
	ctx_max = quick ? 4352 : 16896;
	if (hk_dev_mem(&used, &total))
		return 1;
	if ((rc = run_open(&R, ops, l.m, load_bytes(l.l), 512, seqs, ctx_max, kv, seqs, &err)))
		die_err("open", rc, &err);
	hk_dev_mem(&used2, &total);
	printf("planned %.1f MiB of device memory, %.1f MiB taken (%+.2f %%)\n",
	       (double)R.need.device / 1048576, (double)(used - used2) / 1048576,
	       100 * ((double)(used - used2) / (double)R.need.device - 1));
	for (uint32_t i = 0; i < seqs; i++) {
		pages[i] = malloc(kv_pages_for(ctx_max) * 4);
		for (uint32_t p = 0; p < kv_pages_for(ctx_max); p++)
			pages[i][p] = p * seqs + i;
	}
	bytes = (double)load_bytes(l.l);

	for (uint32_t i = 0; i < 3; i++) {
		uint32_t n = 1, d = DEPTH[i];

		if (d + 1 > ctx_max)
			continue;
		t1[i] = median(1, &n, &d, true, quick ? 20 : 60);
		printf("decode, depth %5u: %7.1f tok/s  %6.3f ms  weights %4.0f GB/s\n", d, 1 / t1[i],
		       t1[i] * 1e3, bytes / t1[i] / 1e9);
	}
	for (uint32_t s = 2; s <= 4; s++) {
		uint32_t n[4] = { 1, 1, 1, 1 }, d[4] = { 0, 0, 0, 0 };

		t = median(s, n, d, true, quick ? 20 : 60);
		printf("decode, %u sessions: %7.1f tok/s in all, %.2f of one\n", s, s / t, s * t1[0] / t);
	}
	for (uint32_t k = 2; k <= 16; k *= 2) {
		uint32_t d = 512;

		t = median(1, &k, &d, true, quick ? 10 : 30);
		printf("verify %2u tokens: %6.3f ms, %.2f decode steps\n", k, t * 1e3, t / t1[0]);
	}
	for (uint32_t i = 0; i < sizeof(PP) / sizeof(PP[0]); i++) {
		double best[3];

		prompt(PP[i], 0, 512);
		for (int r = 0; r < 3; r++)
			best[r] = prompt(PP[i], 0, 512);
		qsort(best, 3, sizeof(*best), by_size);
		printf("prefill %4u: %8.1f tok/s  %7.3f ms  %.2f decode steps\n", PP[i], PP[i] / best[1],
		       best[1] * 1e3, best[1] / t1[0]);
	}
	if (!quick) {
		uint32_t n = 20, d = 1900;
		double a = median(1, &n, &d, true, 15), z;

		d = 0;
		z = median(1, &n, &d, true, 15);
		printf("warm turn (1900 cached, 20 new): %.3f ms; prefill of 20: %.3f ms; %.2f decode steps more\n",
		       a * 1e3, z * 1e3, (a - z) / t1[0]);
		for (uint32_t i = 0; i < 2; i++) {
			uint32_t dd = i ? 16384 : 4096;

			n = 512;
			if (dd + n <= ctx_max)
				printf("prefill 512 at depth %u: %.1f tok/s\n", dd, 512 / median(1, &n, &dd, true, 5));
		}
	}
	/* Nothing is loaded at its first use, and no graph goes to the device when it is first launched. */
	if (hk_dev_mem(&used2, &total))
		return 1;
	printf("at the end %.1f MiB of device memory taken (%+.2f %%)\n", (double)(used - used2) / 1048576,
	       100 * ((double)(used - used2) / (double)R.need.device - 1));
	urgent(0);
	if (!quick)
		urgent(14336);
	run_close(&R);
	unload(&l);
	return 0;
}
