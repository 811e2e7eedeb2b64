// SPDX-License-Identifier: MIT
/*
 * How long a model takes from the disk into its sealed region, next to
 * `dd iflag=direct` of the same file, in turns in one run; and how much of the
 * file the page cache holds afterwards.
 *
 * usage: bench_load MODEL.gguf [ROUNDS]
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "dev/hearth.h"
#include "gguf/load.h"

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static void fail(const char *what)
{
	fprintf(stderr, "bench_load: %s\n", what);
	exit(1);
}

static void forget(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	fsync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
}

/* Share of the file that is in the page cache. */
static double cached(const char *path, uint64_t size)
{
	size_t pages = (size_t)((size + 4095) / 4096), in = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t *vec = calloc(pages, 1);
	void *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

	if (fd < 0 || !vec || map == MAP_FAILED || mincore(map, size, vec) < 0)
		fail("mincore failed");
	for (size_t i = 0; i < pages; i++)
		in += vec[i] & 1;
	munmap(map, size);
	free(vec);
	close(fd);
	return (double)in / (double)pages;
}

static double run_dd(const char *path)
{
	char cmd[1200];
	double t = now();

	snprintf(cmd, sizeof(cmd), "dd if='%s' of=/dev/null iflag=direct bs=4M 2>/dev/null", path);
	if (system(cmd) != 0)
		fail("dd iflag=direct failed");
	return now() - t;
}

struct result {
	double open, load, again, cached;
	char how[160];
	uint64_t bytes;
};

static struct result run_load(const char *path)
{
	struct hearth_pool_spec spec = { .kind = HEARTH_KIND_WEIGHTS, .name = "weights" };
	struct hearth_err err = { 0 };
	struct hearth_tenant *t;
	struct hearth_options o;
	struct result r = { 0 };
	struct load *l, *l2;
	struct gguf *g, *g2;
	struct hearth *h;
	double at;

	at = now();
	if (gguf_open(path, &g, &err) < 0)
		fail(err.text);
	r.open = now() - at;
	spec.size = load_region_bytes(g);
	hearth_options_defaults(&o);
	o.backend = HEARTH_BACKEND_EMBEDDED;
	o.pools = &spec;
	o.n_pools = 1;
	if (hearth_open(&o, &h, &err) < 0 ||
	    hearth_tenant_open(h, "llm", HEARTH_CLASS_LLM, 20, &t, &err) < 0)
		fail(err.text);
	at = now();
	if (load_weights(g, t, hearth_pool(h, HEARTH_KIND_WEIGHTS), NULL, &l, &err) < 0)
		fail(err.text);
	r.load = now() - at;
	snprintf(r.how, sizeof(r.how), "%s", load_how(l));
	r.bytes = load_bytes(l);
	r.cached = cached(path, gguf_part_size(g, 0));
	at = now();
	if (gguf_open(path, &g2, &err) < 0 ||
	    load_weights(g2, t, hearth_pool(h, HEARTH_KIND_WEIGHTS), NULL, &l2, &err) < 0)
		fail(err.text);
	r.again = now() - at;
	load_free(l2);
	load_drop(l);
	gguf_close(g2);
	gguf_close(g);
	hearth_close(h);
	return r;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 5;
	double dd[64], load[64];
	struct result r = { 0 };

	if (argc < 2 || rounds < 1 || rounds > 64) {
		fprintf(stderr, "usage: bench_load MODEL.gguf [ROUNDS (1 to 64)]\n");
		return 2;
	}
	for (int i = 0; i < rounds; i++) {
		forget(argv[1]);
		dd[i] = run_dd(argv[1]);
		forget(argv[1]);
		r = run_load(argv[1]);
		load[i] = r.open + r.load;
		printf("round %d: dd %.3f s, load %.3f s (header %.3f), found again %.4f s, page "
		       "cache %.2f %%\n",
		       i + 1, dd[i], load[i], r.open, r.again, 100 * r.cached);
	}
	qsort(dd, (size_t)rounds, sizeof(*dd), by_value);
	qsort(load, (size_t)rounds, sizeof(*load), by_value);
	printf("%s: %.1f MiB, %s\n", argv[1], (double)r.bytes / 1048576, r.how);
	printf("median: dd %.3f s (%.2f GB/s), load %.3f s (%.2f GB/s), ratio %.3f\n",
	       dd[rounds / 2], (double)r.bytes / 1e9 / dd[rounds / 2], load[rounds / 2],
	       (double)r.bytes / 1e9 / load[rounds / 2], load[rounds / 2] / dd[rounds / 2]);
	return 0;
}
