// SPDX-License-Identifier: MIT
/*
 * What libhearth costs, and that it stays flat: charges with 1 and 256
 * tenants, regions with 10 and 10,000 of them alive, the core's extents alone.
 * Ratios of one run; the first column of each line is the yardstick.
 *   bench_dev [DEVICE]    on a device node instead of embedded pools (as root)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mono.h"
#include "dev/hearth.h"
#include "kmod/core/extent.h"

#define KIB ((uint64_t)1 << 10)
#define GIB ((uint64_t)1 << 30)
#define ROUNDS 7

static struct hearth_err err;

static void die(const char *what)
{
	fprintf(stderr, "bench_dev: %s: %s\n", what, err.text);
	exit(1);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Nanoseconds of one call of @f: the median of ROUNDS times @n calls. */
static double time_of(void (*f)(void *), void *arg, int n)
{
	double t[ROUNDS];

	for (int r = 0; r < ROUNDS; r++) {
		int64_t start = mono_ns();

		for (int i = 0; i < n; i++)
			f(arg);
		t[r] = (double)(mono_ns() - start) / n;
	}
	qsort(t, ROUNDS, sizeof(t[0]), by_value);
	return t[ROUNDS / 2];
}

struct world {
	struct hearth *h;
	struct hearth_pool *kv, *account;
	struct hearth_tenant *t;
};

static void bare_call(void *arg)
{
	syscall(SYS_getppid);
}

static void charge(void *arg)
{
	struct world *w = arg;

	if (hearth_charge(w->t, w->account, 4096, 0, &err) || hearth_uncharge(w->t, w->account, 4096))
		die("charge");
}

static void region(void *arg)
{
	struct hearth_region *r;
	struct world *w = arg;

	if (hearth_region_alloc(w->t, w->kv, 64 * KIB, 0, 0, 0, &r, &err))
		die("alloc");
	hearth_region_free(r);
}

static void refused(void *arg)
{
	struct world *w = arg;

	if (!hearth_charge(w->t, w->account, 8 * GIB, 0, NULL))
		die("a charge that should not fit");
}

static struct extent_map map;

static void extents(void *arg)
{
	struct extent *e;

	if (extent_alloc(&map, 48, 16, NULL, &e))
		die("extent");
	extent_free(&map, e);
}

/* A map with @n used extents and a hole of its own size behind each. */
static void fill_map(struct extent *nodes, int n)
{
	struct extent *e;

	extent_map_init(&map, (uint64_t)n * 4096, 16, &nodes[0]);
	for (int i = 1; i < 2 * n + 4; i++)
		extent_spare_put(&map, &nodes[i]);
	for (int i = 0; i < n; i++) {
		uint64_t used = 16 + (uint64_t)(i * 7919 % 120) * 16;

		extent_alloc_at(&map, (uint64_t)i * 4096, used, NULL, &e);
	}
}

static void open_world(struct world *w, const char *device)
{
	struct hearth_pool_spec specs[] = {
		{ .kind = HEARTH_KIND_KV, .name = "b-kv", .size = device ? GIB / 4 : 4 * GIB },
		{ .kind = HEARTH_KIND_ACCOUNT, .name = "b-account", .size = 4 * GIB },
	};
	struct hearth_options o;

	hearth_options_defaults(&o);
	o.backend = device ? HEARTH_BACKEND_DEVICE : HEARTH_BACKEND_EMBEDDED;
	o.device = device;
	o.pools = specs;
	o.n_pools = device ? 0 : 2;
	if (hearth_open(&o, &w->h, &err))
		die("open");
	for (int i = 0; device && i < 2; i++) {
		if (hearth_admin(w->h, &err) || hearth_pool_create(w->h, &specs[i], &err))
			die("pools");
	}
	w->kv = hearth_pool_named(w->h, "b-kv");
	w->account = hearth_pool_named(w->h, "b-account");
	if (hearth_tenant_open(w->h, "b", HEARTH_CLASS_OTHER, 10, &w->t, &err))
		die("tenant");
}

int main(int argc, char **argv)
{
	static struct hearth_region *live[10000];
	static struct extent nodes[20004];
	const char *device = argc > 1 ? argv[1] : NULL;
	double bare, few, many;
	struct world w = { 0 };

	open_world(&w, device);
	printf("%s\n", hearth_backend_text(w.h));
	bare = time_of(bare_call, NULL, 100000);
	few = time_of(charge, &w, 20000);
	printf("charge and uncharge: %.0f ns, %.2f of two bare system calls\n", few, few / bare / 2);
	for (int i = 1; i < 256; i++) {
		struct hearth_tenant *t;
		char name[16];

		snprintf(name, sizeof(name), "b%d", i);
		if (hearth_tenant_open(w.h, name, HEARTH_CLASS_OTHER, 10, &t, &err))
			die("tenant");
	}
	many = time_of(charge, &w, 20000);
	printf("with 256 tenants: %.2f of with 1\n", many / few);
	printf("a refusal with 256 tenants: %.2f of a charge and uncharge\n",
	       time_of(refused, &w, 20000) / many);

	for (int i = 0; i < 10; i++) {
		if (hearth_region_alloc(w.t, w.kv, 8 * KIB, 0, 0, 0, &live[i], &err))
			die("alloc");
	}
	few = time_of(region, &w, 2000);
	for (int i = 10; i < 10000; i++) {
		if (hearth_region_alloc(w.t, w.kv, 8 * KIB, 0, 0, 0, &live[i], &err))
			die("alloc");
	}
	many = time_of(region, &w, 2000);
	printf("allocate and free 64 KiB: %.1f us with 10 regions; with 10,000: %.2f of that\n",
	       few / 1000, many / few);

	fill_map(nodes, 10);
	few = time_of(extents, NULL, 100000);
	fill_map(nodes, 10000);
	many = time_of(extents, NULL, 100000);
	printf("extents alone: %.0f ns with 10; with 10,000: %.2f of that\n", few, many / few);
	for (int i = 0; device && i < 10000; i++)
		hearth_region_free(live[i]);
	hearth_close(w.h);
	return 0;
}
