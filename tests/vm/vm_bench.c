/* SPDX-License-Identifier: MIT */
/*
 * How fast, against what the kernel has of its own, in the same guest and the
 * same run: only the ratios mean anything. Each figure is the median of rounds
 * that take turns with what it is compared with. `make bench-vm` runs it with a
 * clock that counts the guest's instructions.
 */
#include "vm.h"

#include <pthread.h>
#include <sys/eventfd.h>

#define ROUNDS 9

static int admin, t;

static int cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, int n)
{
	qsort(v, n, sizeof(*v), cmp);
	return v[n / 2];
}

static void say(const char *what, double ours, double theirs, double want)
{
	printf("# %-44s %10.2f us %10.2f us  ratio %6.2f  (at most %.2f: %s)\n", what, ours / 1e3,
	       theirs / 1e3, ours / theirs, want, ours / theirs <= want ? "met" : "MISSED");
}

/* Runs both in turn; ns per call of each. */
static void compare(const char *what, double want, void (*a)(void *), void *aa, void (*b)(void *),
		    void *ba, int n)
{
	double va[ROUNDS], vb[ROUNDS];
	uint64_t t0;
	int r, i;

	a(aa);
	b(ba);
	for (r = 0; r < ROUNDS; r++) {
		t0 = vm_now();
		for (i = 0; i < n; i++)
			a(aa);
		va[r] = (double)(vm_now() - t0) / n;
		t0 = vm_now();
		for (i = 0; i < n; i++)
			b(ba);
		vb[r] = (double)(vm_now() - t0) / n;
	}
	say(what, median(va, ROUNDS), median(vb, ROUNDS), want);
}

static uint32_t pool, apool;

static void alloc_free(void *arg)
{
	struct hearth_ioc_alloc a = { .size = sizeof(a), .flags = HEARTH_ALLOC_STALE };

	EXPECT(!vm_alloc(t, pool, *(uint64_t *)arg, &a));
	close(a.out_fd);
}

static void map_unmap(void *arg)
{
	void *p = mmap(NULL, *(uint64_t *)arg, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(p != MAP_FAILED);
	munmap(p, *(uint64_t *)arg);
}

static struct hearth_ioc_charge ch;
static struct hearth_ioc_uncharge un;

static void charge(void *arg)
{
	ioctl(t, HEARTH_IOC_CHARGE, &ch);
}

static void charge_pair(void *arg)
{
	ioctl(t, HEARTH_IOC_CHARGE, &ch);
	ioctl(t, HEARTH_IOC_UNCHARGE, &un);
}

/* An ioctl of the same device that is turned away at once. */
static void bare(void *arg)
{
	ioctl(t, _IO(HEARTH_IOC_MAGIC, 0xff), &ch);
}

static void bare_pair(void *arg)
{
	bare(arg);
	bare(arg);
}

static void charges(void)
{
	admin = vm_admin();
	t = vm_tenant("bench");
	apool = vm_pool(admin, "acct", HEARTH_POOL_ACCOUNT, 1ULL << 60);
	ch = (struct hearth_ioc_charge){ .size = sizeof(ch), .pool = apool, .bytes = 4096 };
	un = (struct hearth_ioc_uncharge){ .size = sizeof(un), .pool = apool, .bytes = 4096 };
	compare("charge / bare ioctl", 2, charge, NULL, bare, NULL, 2000);
	compare("charge+uncharge / two bare ioctls", 2, charge_pair, NULL, bare_pair, NULL, 2000);
	close(t);
	vm_pool_remove(admin, apool);
	close(admin);
}

static void allocations(void)
{
	static uint64_t small = 2 * MiB, large = 64 * MiB;

	admin = vm_admin();
	t = vm_tenant("bench");
	pool = vm_pool(admin, "bench", HEARTH_POOL_KV, 256 * MiB);
	compare("allocate+free 2 MiB / mmap+munmap", 3, alloc_free, &small, map_unmap, &small, 200);
	compare("allocate+free 64 MiB / mmap+munmap", 3, alloc_free, &large, map_unmap, &large, 50);
	{
		struct hearth_ioc_pool_get p = vm_pool_get(admin, pool);

		printf("# tables of a pool of 256 MiB: %.4f %% of it (at most 0.2)\n",
		       100.0 * p.out_overhead / p.out_bytes);
	}
	close(t);
	vm_pool_remove(admin, pool);
	close(admin);
}

static int region, memfd;
#define GIB (1024 * MiB)

static void map_region(void *arg)
{
	void *p = mmap(NULL, GIB, PROT_READ | PROT_WRITE, MAP_SHARED, region, 0);

	EXPECT(p != MAP_FAILED);
	*(uint64_t *)arg = vm_now();
	munmap(p, GIB);
}

#define MAPS 3

static double memfd_populate(int fd)
{
	uint64_t t0 = vm_now(), t1;
	void *p = mmap(NULL, GIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);

	t1 = vm_now();
	EXPECT(p != MAP_FAILED);
	munmap(p, GIB);
	return t1 - t0;
}

static void maps(void)
{
	double ours[MAPS], fresh[MAPS], filled[MAPS];
	uint64_t t0, t1;
	int i;

	admin = vm_admin();
	t = vm_tenant("bench");
	pool = vm_pool(admin, "bench", HEARTH_POOL_KV, GIB);
	region = vm_region(t, pool, GIB);
	for (i = 0; i < MAPS; i++) {
		t0 = vm_now();
		map_region(&t1);
		ours[i] = t1 - t0;
		memfd = syscall(SYS_memfd_create, "x", 0);
		EXPECT(memfd >= 0 && !ftruncate(memfd, GIB));
		fresh[i] = memfd_populate(memfd);
		filled[i] = memfd_populate(memfd);
		close(memfd);
	}
	say("map 1 GiB / MAP_POPULATE of a memfd", median(ours, MAPS), median(fresh, MAPS), 0.5);
	/* Without the zeroing, which ours had when it was allocated. */
	say("map 1 GiB / MAP_POPULATE of a filled memfd", median(ours, MAPS), median(filled, MAPS), 0.5);
	close(region);
	close(t);
	vm_pool_remove(admin, pool);
	close(admin);
}

/* A thread that notes when it was woken. */
struct listener {
	pthread_t th;
	int fd;
	size_t len;
	volatile uint64_t woke;
	volatile int n;
};

static void *listen_thread(void *arg)
{
	struct listener *l = arg;
	char buf[sizeof(struct hearth_event_record)];

	while (read(l->fd, buf, l->len) > 0) {
		l->woke = vm_now();
		__atomic_add_fetch(&l->n, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static double woken(struct listener *l, uint64_t t0, int n)
{
	while (__atomic_load_n(&l->n, __ATOMIC_ACQUIRE) < n)
		usleep(100);
	return l->woke - t0;
}

#define WAKES 101

static void wakeups(void)
{
	struct hearth_ioc_watch w = { .size = sizeof(w), .kinds = 1ULL << HEARTH_EV_HIGH };
	struct listener ev = { .len = sizeof(struct hearth_event_record) }, efd = { .len = 8 };
	double ours[WAKES], theirs[WAKES];
	uint64_t t0, one = 1;
	int i;

	admin = vm_admin();
	t = vm_tenant("bench");
	apool = vm_pool(admin, "acct", HEARTH_POOL_ACCOUNT, 1ULL << 40);
	EXPECT(!vm_budget(admin, "bench", apool, HEARTH_SET_HIGH, 0, 0, 100, 0, NULL));
	ev.fd = vm_open();
	w.flags = HEARTH_WATCH_OTHERS;
	EXPECT(!ioctl(ev.fd, HEARTH_IOC_WATCH, &w));
	efd.fd = eventfd(0, EFD_CLOEXEC);
	pthread_create(&ev.th, NULL, listen_thread, &ev);
	pthread_create(&efd.th, NULL, listen_thread, &efd);
	for (i = 0; i < WAKES; i++) {
		usleep(2000);
		t0 = vm_now();
		EXPECT(!vm_charge(t, apool, 101, 0, NULL));
		ours[i] = woken(&ev, t0, i + 1);
		EXPECT(!vm_uncharge(t, apool, 101));
		usleep(2000);
		t0 = vm_now();
		EXPECT_EQ(write(efd.fd, &one, 8), 8);
		theirs[i] = woken(&efd, t0, i + 1);
	}
	say("threshold crossed to event read / eventfd", median(ours, WAKES), median(theirs, WAKES), 3);
	pthread_cancel(ev.th);
	pthread_cancel(efd.th);
	pthread_join(ev.th, NULL);
	pthread_join(efd.th, NULL);
	close(ev.fd);
	close(efd.fd);
	close(t);
	vm_pool_remove(admin, apool);
	close(admin);
}

static double per_charge(void)
{
	double v[ROUNDS];
	uint64_t t0;
	int r, i;

	for (r = 0; r < ROUNDS; r++) {
		t0 = vm_now();
		for (i = 0; i < 2000; i++)
			charge_pair(NULL);
		v[r] = (double)(vm_now() - t0) / 2000;
	}
	return median(v, ROUNDS);
}

static double per_alloc(void)
{
	static uint64_t page = 4096;
	double v[ROUNDS];
	uint64_t t0;
	int r, i;

	for (r = 0; r < ROUNDS; r++) {
		t0 = vm_now();
		for (i = 0; i < 200; i++)
			alloc_free(&page);
		v[r] = (double)(vm_now() - t0) / 200;
	}
	return median(v, ROUNDS);
}

static void flat_costs(void)
{
	double one, many;
	int i, *fd = calloc(10000, sizeof(*fd));

	admin = vm_admin();
	t = vm_tenant("bench");
	apool = vm_pool(admin, "acct", HEARTH_POOL_ACCOUNT, 1ULL << 60);
	pool = vm_pool(admin, "bench", HEARTH_POOL_KV, 256 * MiB);
	ch.pool = un.pool = apool;
	one = per_charge();
	for (i = 0; i < 255; i++) {
		char name[16];

		snprintf(name, sizeof(name), "t%d", i);
		fd[i] = vm_tenant(name);
		EXPECT(!vm_charge(fd[i], apool, 4096, 0, NULL));
	}
	many = per_charge();
	say("charge with 256 tenants / with 1", many, one, 2);
	for (i = 0; i < 255; i++)
		close(fd[i]);
	for (i = 0; i < 10; i++)
		fd[i] = vm_region(t, pool, 4096);
	one = per_alloc();
	for (; i < 10000; i++)
		fd[i] = vm_region(t, pool, 4096);
	many = per_alloc();
	say("allocate+free with 10000 regions / with 10", many, one, 2);
	for (i = 0; i < 10000; i++)
		close(fd[i]);
	free(fd);
	close(t);
	vm_pool_remove(admin, apool);
	vm_pool_remove(admin, pool);
	close(admin);
}

static const struct vm_case cases[] = {
	CASE(charges),
	CASE(allocations),
	CASE(maps),
	CASE(wakeups),
	CASE(flat_costs),
};
VM_MAIN(cases)
