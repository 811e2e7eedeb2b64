/* SPDX-License-Identifier: MIT */
/* Regions: allocate, zero, share, seal, offer and purge, keep and find. */
#include "vm.h"

#include <setjmp.h>
#include <sys/resource.h>
#include <sys/uio.h>

static int admin, t;
static uint32_t pool;

static void set_up_of(uint64_t bytes)
{
	admin = vm_admin();
	t = vm_tenant("reg");
	pool = vm_pool(admin, "reg", HEARTH_POOL_KV, bytes);
}

static void set_up(void)
{
	set_up_of(16 * MiB);
}

static void tear_down(void)
{
	close(t);
	vm_pool_remove(admin, pool);
	close(admin);
}

static void sizes_at_the_boundaries(void)
{
	static const struct { uint64_t bytes, rounded; int err; } c[] = {
		{ 0, 0, EINVAL }, { 1, 4096, 0 }, { 4095, 4096, 0 }, { 4096, 4096, 0 },
		{ 4097, 8192, 0 }, { 2 * MiB - 1, 2 * MiB, 0 }, { 2 * MiB, 2 * MiB, 0 },
		{ 2 * MiB + 1, 2 * MiB + 4096, 0 }, { 16 * MiB - 1, 16 * MiB, 0 },
		{ 16 * MiB, 16 * MiB, 0 }, { 16 * MiB + 1, 0, ENOSPC }, { 1ULL << 32, 0, ENOSPC },
		{ 1ULL << 63, 0, ENOSPC }, { ~0ULL - 4096, 0, ENOSPC }, { ~0ULL, 0, ENOSPC },
	};
	size_t i;

	set_up();
	for (i = 0; i < sizeof(c) / sizeof(*c); i++) {
		struct hearth_ioc_alloc a = {};
		int ret = vm_alloc(t, pool, c[i].bytes, &a);

		if (c[i].err) {
			EXPECT_EQ(ret, -1);
			EXPECT_EQ(errno, c[i].err);
			if (errno == ENOSPC)
				EXPECT_EQ(a.out_refusal.limit, HEARTH_LIMIT_POOL);
			EXPECT_EQ(vm_usage(t, 0, pool).out_current, 0);
			continue;
		}
		EXPECT_EQ(ret, 0);
		EXPECT_EQ(a.out_bytes, c[i].rounded);
		EXPECT_EQ(vm_usage(t, 0, pool).out_current, c[i].rounded);
		EXPECT_EQ(fcntl(a.out_fd, F_GETFD), FD_CLOEXEC);
		close(a.out_fd);
		EXPECT_EQ(vm_usage(t, 0, pool).out_current, 0);
	}
	tear_down();
}

static void alignment_and_contiguity(void)
{
	struct hearth_ioc_alloc a = { .size = sizeof(a), .align = 3 };
	uint64_t align;
	int small, fd[8], i;

	set_up();
	EXPECT_ERR(EINVAL, vm_alloc(t, pool, 4096, &a));
	a.align = 4 * MiB;
	EXPECT_ERR(EINVAL, vm_alloc(t, pool, 4096, &a));
	small = vm_region(t, pool, 4096);
	for (align = 4096, i = 0; align <= 2 * MiB && i < 8; align *= 4, i++) {
		a.align = align;
		a.flags = HEARTH_ALLOC_CONTIG;
		EXPECT(!vm_alloc(t, pool, 64 * KiB, &a));
		EXPECT_EQ(a.out_extents, 1);
		fd[i] = a.out_fd;
	}
	while (i--)
		close(fd[i]);
	a.align = 0;
	EXPECT(!vm_alloc(t, pool, 2 * MiB, &a));
	close(a.out_fd);
	close(small);
	tear_down();
}

/* Free memory in pieces: a region is made of several; a contiguous one is refused. */
static void scattered_memory_serves(void)
{
	struct hearth_ioc_alloc a = {};
	int fd[64], i, n = 0;
	unsigned char *p;

	set_up_of(4 * MiB);
	for (i = 0; i < 64; i++) {
		if (vm_alloc(t, pool, 64 * KiB, &a))
			break;
		fd[n++] = a.out_fd;
	}
	EXPECT_EQ(n, 64);
	for (i = 0; i < 64; i += 2)
		close(fd[i]);
	a.flags = HEARTH_ALLOC_CONTIG;
	EXPECT_ERR(ENOSPC, vm_alloc(t, pool, 128 * KiB, &a));
	EXPECT_EQ(a.out_refusal.limit, HEARTH_LIMIT_PIECES);
	EXPECT_EQ(a.out_refusal.available, 64 * KiB);
	a.flags = 0;
	EXPECT(!vm_alloc(t, pool, 2 * MiB, &a));
	EXPECT_EQ(a.out_extents, 32);
	p = vm_map(a.out_fd, 2 * MiB, PROT_READ | PROT_WRITE);
	for (i = 0; i < 2 * (int)MiB; i += 4096) {
		EXPECT_EQ(p[i], 0);
		*(uint32_t *)(p + i) = i;
	}
	for (i = 0; i < 2 * (int)MiB; i += 4096)
		EXPECT_EQ(*(uint32_t *)(p + i), i);
	vm_unmap(p, 2 * MiB);
	close(a.out_fd);
	/* Aligned pieces where a whole is not to be had. */
	a.align = 64 * KiB;
	EXPECT(!vm_alloc(t, pool, 1 * MiB, &a));
	close(a.out_fd);
	for (i = 1; i < 64; i += 2)
		close(fd[i]);
	tear_down();
}

static void fill(int region, uint64_t bytes, int c)
{
	void *p = vm_map(region, bytes, PROT_READ | PROT_WRITE);

	memset(p, c, bytes);
	vm_unmap(p, bytes);
}

/* Counts bytes that are not zero. */
static uint64_t dirty(int region, uint64_t bytes)
{
	unsigned char *p = vm_map(region, bytes, PROT_READ);
	uint64_t n = 0, i;

	for (i = 0; i < bytes; i++)
		n += p[i] != 0;
	vm_unmap(p, bytes);
	return n;
}

static void memory_is_zeroed_for_the_next(void)
{
	struct hearth_ioc_alloc a = { .size = sizeof(a) };
	int other, r, i;

	set_up_of(4 * MiB);
	other = vm_tenant("other");
	for (i = 0; i < 3; i++) {
		r = vm_region(t, pool, 4 * MiB);
		EXPECT_EQ(dirty(r, 4 * MiB), 0);
		fill(r, 4 * MiB, 0xff);
		close(r);
	}
	r = vm_region(other, pool, 4 * MiB);
	EXPECT_EQ(dirty(r, 4 * MiB), 0);
	fill(r, 4 * MiB, 0xee);
	close(r);
	/* Stale memory only ever from the same tenant, and only when asked for. */
	a.flags = HEARTH_ALLOC_STALE;
	EXPECT(!vm_alloc(t, pool, 4 * MiB, &a));
	EXPECT_EQ(dirty(a.out_fd, 4 * MiB), 0);
	fill(a.out_fd, 4 * MiB, 0xdd);
	close(a.out_fd);
	EXPECT(!vm_alloc(t, pool, 4 * MiB, &a));
	EXPECT_EQ(dirty(a.out_fd, 4 * MiB), 4 * MiB);
	close(a.out_fd);
	/* A block that another had a page of is nobody's any more. */
	r = vm_region(other, pool, 4096);
	fill(r, 4096, 0xcc);
	close(r);
	EXPECT(!vm_alloc(t, pool, 4 * MiB, &a));
	EXPECT_EQ(dirty(a.out_fd, 4 * MiB), 0);
	close(a.out_fd);
	close(other);
	tear_down();
}

/* A region that another found, and filled, is nothing that its first tenant left. */
static void what_another_found_is_zeroed_too(void)
{
	struct hearth_ioc_alloc a = { .size = sizeof(a), .flags = HEARTH_ALLOC_STALE };
	struct hearth_ioc_tenant_remove rm = { .size = sizeof(rm) };
	struct hearth_ioc_drop d = { .size = sizeof(d) };
	int first, r;

	set_up_of(4 * MiB);
	EXPECT(!vm_budget(admin, "first", pool, HEARTH_SET_CREATE | HEARTH_SET_LOW, 0, 0, 0, 0, NULL));
	first = vm_tenant("first");
	r = vm_region(first, pool, 4 * MiB);
	fill(r, 4 * MiB, 0xaa);
	EXPECT(!vm_keep(r, "handed-on", 1));
	d.region = vm_region_get(r).region;
	close(r);
	close(first);
	r = vm_find(t, pool, "handed-on", 1, HEARTH_FIND_WRITE, NULL);
	EXPECT(r >= 0);
	EXPECT_EQ(vm_usage(t, 0, pool).out_current, 4 * MiB);
	fill(r, 4 * MiB, 0xbb);
	EXPECT(!ioctl(t, HEARTH_IOC_DROP, &d));
	close(r);
	first = vm_open();
	rm.tenant = vm_join(first, "first");
	EXPECT(!vm_alloc(first, pool, 4 * MiB, &a));
	EXPECT_EQ(dirty(a.out_fd, 4 * MiB), 0);
	close(a.out_fd);
	close(first);
	EXPECT(!ioctl(admin, HEARTH_IOC_TENANT_REMOVE, &rm));
	tear_down();
}

static void account_pools_have_no_memory(void)
{
	struct hearth_ioc_alloc a = {};
	uint32_t acct;

	set_up();
	acct = vm_pool(admin, "acct", HEARTH_POOL_ACCOUNT, 64 * MiB);
	EXPECT_ERR(EINVAL, vm_alloc(t, acct, 4096, &a));
	EXPECT_ERR(ENOENT, vm_alloc(t, 31337, 4096, &a));
	EXPECT_ERR(ENOTCONN, vm_alloc(admin, pool, 4096, &a));
	vm_pool_remove(admin, acct);
	tear_down();
}

static void sharing_is_passing_a_descriptor(void)
{
	int sv[2], r, ro, other;
	pid_t pid;

	set_up();
	EXPECT(!socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	r = vm_region(t, pool, 1 * MiB);
	fill(r, 1 * MiB, 0x11);
	ro = vm_share(r, 0);
	EXPECT(ro >= 0);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		unsigned char *p;
		int fd, bad = 0;

		close(r);
		close(ro);
		close(t);
		fd = vm_recv_fd(sv[1]);
		p = mmap(NULL, 1 * MiB, PROT_READ, MAP_SHARED, fd, 0);
		bad |= p == MAP_FAILED || p[12345] != 0x11;
		/* Read-only it stays: by mmap, by mprotect, by asking. */
		bad |= mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED ||
		       errno != EACCES;
		bad |= !mprotect(p, 4096, PROT_READ | PROT_WRITE) || errno != EACCES;
		bad |= vm_share(fd, HEARTH_SHARE_WRITE) >= 0 || errno != EACCES;
		bad |= vm_export(fd, HEARTH_EXPORT_WRITE, 0, 0) >= 0 || errno != EACCES;
		bad |= !vm_seal(fd) || errno != EACCES;
		bad |= !vm_offer(fd) || errno != EACCES;
		bad |= vm_take_back(fd) >= 0 || errno != EACCES;
		bad |= !vm_keep(fd, "x", 0) || errno != EACCES;
		bad |= !(vm_region_get(fd).out_flags & HEARTH_REGION_READONLY);
		_exit(bad);
	}
	EXPECT(!vm_send_fd(sv[0], ro));
	EXPECT_EQ(vm_wait(pid), 0);
	/* A writable one; charged once, to its owner, until the last is closed. */
	other = vm_share(r, HEARTH_SHARE_WRITE);
	EXPECT(other >= 0);
	EXPECT_EQ(vm_region_get(r).out_descriptors, 3);
	close(r);
	close(ro);
	EXPECT_EQ(vm_usage(t, 0, pool).out_current, 1 * MiB);
	fill(other, 1 * MiB, 0x22);
	close(other);
	EXPECT_EQ(vm_usage(t, 0, pool).out_current, 0);
	tear_down();
}

static void a_region_outlives_its_connection(void)
{
	struct hearth_ioc_tenant_get g = {
		.size = sizeof(g), .flags = HEARTH_GET_BY_NAME, .name = "short",
	};
	unsigned char *p;
	int c, r;

	set_up();
	c = vm_tenant("short");
	r = vm_region(c, pool, 1 * MiB);
	close(c);
	EXPECT(!ioctl(admin, HEARTH_IOC_TENANT_GET, &g));
	EXPECT_EQ(g.out_connections, 0);
	EXPECT_EQ(g.out_regions, 1);
	p = vm_map(r, 1 * MiB, PROT_READ | PROT_WRITE);
	close(r);
	p[77] = 1;
	EXPECT_EQ(vm_pool_get(admin, pool).out_charged, 1 * MiB);
	vm_unmap(p, 1 * MiB);
	EXPECT_EQ(vm_pool_get(admin, pool).out_charged, 0);
	EXPECT_ERR(ENOENT, ioctl(admin, HEARTH_IOC_TENANT_GET, &g));
	tear_down();
}

static void sealing_is_for_good(void)
{
	unsigned char *p, *q;
	int r, ro;

	set_up();
	r = vm_region(t, pool, 1 * MiB);
	p = vm_map(r, 1 * MiB, PROT_READ | PROT_WRITE);
	memset(p, 0x33, 1 * MiB);
	EXPECT_ERR(EBUSY, vm_seal(r));
	/* Made read-only by mprotect it could be made writable again. */
	EXPECT(!mprotect(p, 1 * MiB, PROT_READ));
	EXPECT_ERR(EBUSY, vm_seal(r));
	/* Half of it unmapped: the other half is left. */
	EXPECT(!munmap(p, 512 * KiB));
	EXPECT_ERR(EBUSY, vm_seal(r));
	EXPECT(!munmap(p + 512 * KiB, 512 * KiB));
	/* A reader's mapping through a read-only descriptor does not matter. */
	ro = vm_share(r, 0);
	q = vm_map(ro, 1 * MiB, PROT_READ);
	EXPECT_EQ(q[5], 0x33);
	EXPECT(!vm_seal(r));
	EXPECT(!vm_seal(r));
	EXPECT_EQ(q[5], 0x33);
	EXPECT(vm_region_get(r).out_flags & HEARTH_REGION_SEALED);
	EXPECT(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, r, 0) == MAP_FAILED);
	EXPECT_EQ(errno, EROFS);
	p = vm_map(r, 1 * MiB, PROT_READ);
	EXPECT_ERR(EACCES, mprotect(p, 4096, PROT_READ | PROT_WRITE));
	EXPECT_EQ(p[1 * MiB - 1], 0x33);
	EXPECT_ERR(EROFS, vm_share(r, HEARTH_SHARE_WRITE));
	EXPECT_ERR(EROFS, vm_export(r, HEARTH_EXPORT_WRITE, 0, 0));
	close(vm_share(r, 0));
	vm_unmap(p, 1 * MiB);
	vm_unmap(q, 1 * MiB);
	close(r);
	close(ro);
	tear_down();
}

static void child_of_a_writer(void *arg)
{
	pause();
}

static void forks_count_as_writers(void)
{
	unsigned char *p;
	pid_t pid;
	int r;

	set_up();
	r = vm_region(t, pool, 64 * KiB);
	p = vm_map(r, 64 * KiB, PROT_READ | PROT_WRITE);
	pid = vm_fork(child_of_a_writer, NULL);
	vm_unmap(p, 64 * KiB);
	EXPECT_ERR(EBUSY, vm_seal(r));
	kill(pid, SIGKILL);
	vm_wait(pid);
	UNTIL(!vm_seal(r));
	close(r);
	tear_down();
}

static sigjmp_buf *jump;
static void on_bus(int sig)
{
	siglongjmp(*jump, sig);
}

/* The signal that reading *p raises, 0: none. */
static int touch(volatile unsigned char *p)
{
	struct sigaction sa = { .sa_handler = on_bus, .sa_flags = SA_NODEFER }, was;
	sigjmp_buf here;
	int sig;

	jump = &here;
	sigaction(SIGBUS, &sa, &was);
	sigaction(SIGSEGV, &sa, NULL);
	sig = sigsetjmp(here, 1);
	if (!sig)
		(void)*p;
	sigaction(SIGBUS, &was, NULL);
	sigaction(SIGSEGV, &was, NULL);
	return sig;
}

static void what_is_offered_can_be_taken(void)
{
	struct hearth_ioc_watch w = { .size = sizeof(w), .kinds = 1ULL << HEARTH_EV_PURGED };
	struct hearth_event_record ev;
	unsigned char *p;
	int other, cache, r;
	uint64_t id;

	set_up();
	other = vm_tenant("speech");
	EXPECT(!ioctl(t, HEARTH_IOC_WATCH, &w));
	cache = vm_region(t, pool, 12 * MiB);
	id = vm_region_get(cache).region;
	p = vm_map(cache, 12 * MiB, PROT_READ | PROT_WRITE);
	memset(p, 0x44, 12 * MiB);
	/* Not offered: refused. */
	EXPECT_ERR(ENOSPC, vm_alloc(other, pool, 8 * MiB, &(struct hearth_ioc_alloc){}));
	EXPECT(!vm_offer(cache));
	EXPECT(!vm_offer(cache));
	EXPECT_EQ(vm_usage(t, 0, pool).out_purgeable, 12 * MiB);
	EXPECT_EQ(vm_usage(other, 0, pool).out_available, 4 * MiB);
	EXPECT_EQ(vm_usage(other, 0, pool).out_available_purge, 16 * MiB);
	/* Taken back in time: as it was. */
	EXPECT_EQ(vm_take_back(cache), 1);
	EXPECT_EQ(vm_take_back(cache), 1);
	EXPECT_EQ(p[12 * MiB - 1], 0x44);
	EXPECT(!vm_offer(cache));
	/* Needed: gone, mapping and all, and zeroed for the next. */
	r = vm_region(other, pool, 8 * MiB);
	EXPECT_EQ(dirty(r, 8 * MiB), 0);
	EXPECT_EQ(touch(p), SIGBUS);
	EXPECT_EQ(read(t, &ev, sizeof(ev)), sizeof(ev));
	EXPECT_EQ(ev.kind, HEARTH_EV_PURGED);
	EXPECT_EQ(ev.bytes, 12 * MiB);
	EXPECT_EQ(ev.region, id);
	EXPECT_EQ(vm_take_back(cache), 0);
	EXPECT_EQ(vm_usage(t, 0, pool).out_current, 0);
	EXPECT_EQ(vm_usage(t, 0, pool).out_n_purged, 1);
	EXPECT_EQ(vm_usage(t, 0, pool).out_purged_bytes, 12 * MiB);
	EXPECT(vm_region_get(cache).out_flags & HEARTH_REGION_PURGED);
	/* All that is left to do is to close it. */
	EXPECT_ERR(ESTALE, vm_offer(cache));
	EXPECT_ERR(ESTALE, vm_seal(cache));
	EXPECT_ERR(ESTALE, vm_keep(cache, "x", 1));
	EXPECT_ERR(ESTALE, vm_export(cache, 0, 0, 0));
	EXPECT(mmap(NULL, 4096, PROT_READ, MAP_SHARED, cache, 0) == MAP_FAILED && errno == ESTALE);
	vm_unmap(p, 12 * MiB);
	close(cache);
	close(r);
	close(other);
	tear_down();
}

static void purging_spares_what_is_held(void)
{
	int other, cache, cache2, r, pipefd[2];
	struct iovec iov;
	unsigned char *p;
	char back[4096];

	set_up();
	other = vm_tenant("speech");
	cache = vm_region(t, pool, 8 * MiB);
	cache2 = vm_region(t, pool, 8 * MiB);
	p = vm_map(cache, 8 * MiB, PROT_READ | PROT_WRITE);
	memset(p, 0x55, 8 * MiB);
	EXPECT(!pipe(pipefd));
	iov = (struct iovec){ p, 4096 };
	EXPECT_EQ(syscall(SYS_vmsplice, pipefd[1], &iov, 1, 0), 4096);
	EXPECT(!vm_offer(cache));
	EXPECT(!vm_offer(cache2));
	/* The pipe holds a page of the first one: the second is taken. */
	r = vm_region(other, pool, 4 * MiB);
	EXPECT_EQ(vm_take_back(cache), 1);
	EXPECT_EQ(vm_take_back(cache2), 0);
	EXPECT_EQ(p[0], 0x55);
	EXPECT_EQ(read(pipefd[0], back, sizeof(back)), 4096);
	EXPECT_EQ(back[100], 0x55);
	vm_unmap(p, 8 * MiB);
	close(r);
	close(cache);
	close(cache2);
	close(other);
	tear_down();
}

static int tenant_of(const char *name, uint32_t priority)
{
	struct hearth_ioc_join j = { .size = sizeof(j), .flags = HEARTH_JOIN_CREATE, .priority = priority };
	int fd = vm_open();

	strcpy(j.name, name);
	EXPECT(!ioctl(fd, HEARTH_IOC_JOIN, &j));
	return fd;
}

/* Who is over high first, whatever its priority; then the lowest; of one tenant the longest offered. */
static void purging_goes_in_order(void)
{
	int who[3], r[4], i, mine[4];

	set_up();
	who[0] = tenant_of("over", 90);
	who[1] = tenant_of("low", 1);
	who[2] = tenant_of("mid", 50);
	EXPECT(!vm_budget(admin, "over", pool, HEARTH_SET_HIGH, 0, 0, MiB, 0, NULL));
	r[2] = vm_region(who[2], pool, 2 * MiB);
	EXPECT(!vm_offer(r[2]));
	r[3] = vm_region(who[2], pool, 2 * MiB);
	EXPECT(!vm_offer(r[3]));
	for (i = 1; i >= 0; i--) {
		r[i] = vm_region(who[i], pool, 2 * MiB);
		EXPECT(!vm_offer(r[i]));
	}
	close(vm_region(t, pool, 8 * MiB));
	EXPECT(!vm_charge(t, pool, 8 * MiB, 0, NULL));
	for (i = 0; i < 4; i++) {
		int k;

		mine[i] = vm_region(t, pool, 2 * MiB);
		for (k = 0; k < 4; k++)
			EXPECT_EQ(!!(vm_region_get(r[k]).out_flags & HEARTH_REGION_PURGED), k <= i);
	}
	EXPECT_ERR(ENOSPC, vm_alloc(t, pool, 4096, &(struct hearth_ioc_alloc){}));
	EXPECT(!vm_uncharge(t, pool, 8 * MiB));
	for (i = 0; i < 4; i++) {
		close(mine[i]);
		close(r[i]);
	}
	for (i = 0; i < 3; i++)
		close(who[i]);
	tear_down();
}

static void a_guarantee_is_not_purged(void)
{
	struct hearth_refusal ref;
	struct hearth_ioc_alloc a = {};
	int other, cache;

	set_up();
	other = vm_tenant("speech");
	EXPECT(!vm_budget(admin, "reg", pool, HEARTH_SET_MIN, 12 * MiB, 0, 0, 0, NULL));
	cache = vm_region(t, pool, 12 * MiB);
	EXPECT(!vm_offer(cache));
	EXPECT_ERR(ENOSPC, vm_alloc(other, pool, 8 * MiB, &a));
	EXPECT_EQ(vm_take_back(cache), 1);
	/* Lowered: what is over is taken from the offers. */
	EXPECT(!vm_offer(cache));
	EXPECT(!vm_budget(admin, "reg", pool, HEARTH_SET_MIN | HEARTH_SET_MAX, 0, 0, 0, 8 * MiB,
			  &ref));
	EXPECT_EQ(vm_take_back(cache), 0);
	close(cache);
	close(other);
	tear_down();
}

static void kept_regions_are_found_again(void)
{
	struct hearth_ioc_drop d = { .size = sizeof(d) };
	struct hearth_ioc_find f;
	struct hearth_ioc_region_get g;
	unsigned char *p;
	int c, r, again, other;

	set_up();
	c = vm_tenant("loader");
	r = vm_region(c, pool, 2 * MiB);
	fill(r, 2 * MiB, 0x66);
	EXPECT(!vm_seal(r));
	EXPECT(!vm_keep(r, "model/q4:1", 7));
	EXPECT_ERR(EBUSY, vm_keep(r, "model/q4:2", 7));
	{
		int r2 = vm_region(c, pool, 4096);

		EXPECT_ERR(EEXIST, vm_keep(r2, "model/q4:1", 8));
		close(r2);
	}
	close(r);
	close(c);
	EXPECT_EQ(vm_pool_get(admin, pool).out_charged, 2 * MiB);
	/* The same tenant, started again. */
	c = vm_tenant("loader");
	EXPECT_ERR(ENOENT, vm_find(c, pool, "model/q4:2", 7, 0, NULL));
	EXPECT_ERR(ENOENT, vm_find(c, pool, "model/q4:1", 8, 0, &f));
	EXPECT(f.out_region);
	EXPECT_ERR(EROFS, vm_find(c, pool, "model/q4:1", 7, HEARTH_FIND_WRITE, NULL));
	EXPECT_ERR(ENOTCONN, vm_find(admin, pool, "model/q4:1", 7, 0, NULL));
	again = vm_find(c, pool, "model/q4:1", 7, 0, &f);
	EXPECT(again >= 0);
	EXPECT_EQ(f.out_bytes, 2 * MiB);
	p = vm_map(again, 2 * MiB, PROT_READ);
	EXPECT_EQ(p[2 * MiB - 1], 0x66);
	g = vm_region_get(again);
	EXPECT(!strcmp(g.out_name, "model/q4:1") && g.out_digest[31] == 7);
	EXPECT(g.out_flags & HEARTH_REGION_KEPT && g.out_flags & HEARTH_REGION_SEALED);
	/* While the owner is there another gets it, and is not charged. */
	other = vm_find(t, pool, "model/q4:1", 0, HEARTH_FIND_ANY_DIGEST, NULL);
	EXPECT(other >= 0);
	EXPECT_EQ(vm_usage(t, 0, pool).out_current, 0);
	close(other);
	close(again);
	close(c);
	vm_unmap(p, 2 * MiB);
	/* The owner is gone: the charge moves, if it fits. */
	EXPECT(!vm_budget(admin, "reg", pool, HEARTH_SET_MAX, 0, 0, 0, 1 * MiB, NULL));
	EXPECT_ERR(ENOSPC, vm_find(t, pool, "model/q4:1", 7, 0, &f));
	EXPECT_EQ(f.out_refusal.limit, HEARTH_LIMIT_MAX);
	EXPECT(!vm_budget(admin, "reg", pool, HEARTH_SET_MAX, 0, 0, 0, 3 * MiB, NULL));
	other = vm_find(t, pool, "model/q4:1", 7, 0, &f);
	EXPECT(other >= 0);
	EXPECT_EQ(vm_usage(t, 0, pool).out_current, 2 * MiB);
	/* Dropped: the name is free, the memory goes with the last descriptor. */
	d.region = 999999;
	EXPECT_ERR(ENOENT, ioctl(admin, HEARTH_IOC_DROP, &d));
	d.region = f.out_region;
	c = vm_tenant("stranger");
	EXPECT_ERR(EPERM, ioctl(c, HEARTH_IOC_DROP, &d));
	EXPECT(!ioctl(admin, HEARTH_IOC_DROP, &d));
	EXPECT_ERR(ENOENT, ioctl(admin, HEARTH_IOC_DROP, &d));
	EXPECT_ERR(ENOENT, vm_find(t, pool, "model/q4:1", 7, 0, NULL));
	EXPECT_EQ(vm_usage(t, 0, pool).out_current, 2 * MiB);
	close(other);
	EXPECT_EQ(vm_usage(t, 0, pool).out_current, 0);
	close(c);
	tear_down();
}

static void unsealed_kept_regions_are_their_tenants(void)
{
	struct hearth_ioc_drop d = { .size = sizeof(d) };
	struct hearth_ioc_find f;
	int c, r;

	set_up();
	c = vm_tenant("cache");
	r = vm_region(c, pool, 1 * MiB);
	fill(r, 1 * MiB, 0x77);
	EXPECT(!vm_keep(r, "prefix", 1));
	EXPECT_ERR(EBUSY, vm_find(t, pool, "prefix", 1, 0, NULL));
	close(r);
	r = vm_find(c, pool, "prefix", 1, HEARTH_FIND_WRITE, &f);
	EXPECT(r >= 0);
	fill(r, 1 * MiB, 0x78);
	close(r);
	d.region = f.out_region;
	EXPECT(!ioctl(c, HEARTH_IOC_DROP, &d));
	close(c);
	tear_down();
}

static void a_kept_offer_can_be_purged(void)
{
	int c, r, big;

	set_up();
	c = vm_tenant("cache");
	r = vm_region(c, pool, 10 * MiB);
	EXPECT(!vm_keep(r, "prefix", 1) && !vm_offer(r));
	close(r);
	close(c);
	big = vm_region(t, pool, 12 * MiB);
	EXPECT_ERR(ENOENT, vm_find(t, pool, "prefix", 1, 0, NULL));
	close(big);
	tear_down();
}

static void regions_can_be_listed(void)
{
	struct hearth_ioc_region_get g = { .size = sizeof(g), .flags = HEARTH_GET_NEXT };
	struct hearth_ioc_alloc a = { .size = sizeof(a), .label = "kv-cache" };
	uint64_t last = 0;
	int seen = 0;

	set_up();
	EXPECT(!vm_alloc(t, pool, 4096, &a));
	while (!ioctl(t, HEARTH_IOC_REGION_GET, &g)) {
		EXPECT(g.region > last);
		last = g.region;
		seen += g.region == a.out_region && !strcmp(g.out_label, "kv-cache") &&
			g.out_pool == pool;
	}
	EXPECT_EQ(errno, ENOENT);
	EXPECT_EQ(seen, 1);
	g.flags = 0;
	g.region = ~0ULL;
	EXPECT_ERR(ENOENT, ioctl(t, HEARTH_IOC_REGION_GET, &g));
	close(a.out_fd);
	/* Not a name. */
	strcpy(a.label, "a b");
	EXPECT_ERR(EINVAL, vm_alloc(t, pool, 4096, &a));
	tear_down();
}

static void find_anothers(void *arg)
{
	EXPECT(!setresgid(1001, 1001, 1001) && !setresuid(1001, 1001, 1001));
	EXPECT_ERR(EACCES, vm_find(*(int *)arg, pool, "theirs", 1, 0, NULL));
}

/* A tenant of one user: its regions are not found by another's program. */
static void kept_regions_of_another_user(void)
{
	struct hearth_budget_entry e = {
		.size = sizeof(e), .mask = HEARTH_SET_CREATE | HEARTH_SET_UID, .tenant = "users", .uid = 1000,
	};
	struct hearth_ioc_budget_set s = {
		.size = sizeof(s), .entries = (uintptr_t)&e, .count = 1, .stride = sizeof(e),
	};
	struct hearth_ioc_join j = { .size = sizeof(j), .name = "users" };
	struct hearth_ioc_tenant_remove rm = { .size = sizeof(rm) };
	struct hearth_ioc_drop d = { .size = sizeof(d) };
	int owner, r;

	set_up();
	EXPECT(!ioctl(admin, HEARTH_IOC_BUDGET_SET, &s));
	owner = vm_admin();
	EXPECT(!ioctl(owner, HEARTH_IOC_JOIN, &j));
	r = vm_region(owner, pool, 4096);
	d.region = vm_region_get(r).region;
	EXPECT(!vm_seal(r) && !vm_keep(r, "theirs", 1));
	EXPECT_EQ(vm_wait(vm_fork(find_anothers, &t)), 0);
	close(r);
	close(owner);
	/* Nor when its owner is gone: then the charge would move. */
	EXPECT_EQ(vm_wait(vm_fork(find_anothers, &t)), 0);
	EXPECT(!ioctl(admin, HEARTH_IOC_DROP, &d));
	rm.tenant = j.out_tenant;
	EXPECT(!ioctl(admin, HEARTH_IOC_TENANT_REMOVE, &rm));
	tear_down();
}

static void descriptors_run_out(void)
{
	struct rlimit64 was, now;
	struct hearth_ioc_alloc a = {};
	int r;

	set_up();
	r = vm_region(t, pool, 4096);
	EXPECT(!prlimit64(0, RLIMIT_NOFILE, NULL, &was));
	now = was;
	now.rlim_cur = r + 1;
	EXPECT(!prlimit64(0, RLIMIT_NOFILE, &now, NULL));
	EXPECT_ERR(EMFILE, vm_alloc(t, pool, 4096, &a));
	EXPECT_ERR(EMFILE, vm_share(r, 0));
	EXPECT_ERR(EMFILE, vm_export(r, 0, 0, 0));
	EXPECT(!vm_keep(r, "x", 0));
	EXPECT_ERR(EMFILE, vm_find(t, pool, "x", 0, 0, NULL));
	EXPECT(!prlimit64(0, RLIMIT_NOFILE, &was, NULL));
	EXPECT_EQ(vm_usage(t, 0, pool).out_current, 4096);
	{
		struct hearth_ioc_drop d = { .size = sizeof(d), .region = vm_region_get(r).region };

		EXPECT(!ioctl(t, HEARTH_IOC_DROP, &d));
	}
	close(r);
	tear_down();
}

static const struct vm_case cases[] = {
	CASE(sizes_at_the_boundaries),
	CASE(alignment_and_contiguity),
	CASE(scattered_memory_serves),
	CASE(memory_is_zeroed_for_the_next),
	CASE(what_another_found_is_zeroed_too),
	CASE(account_pools_have_no_memory),
	CASE(sharing_is_passing_a_descriptor),
	CASE(a_region_outlives_its_connection),
	CASE(sealing_is_for_good),
	CASE(forks_count_as_writers),
	CASE(what_is_offered_can_be_taken),
	CASE(purging_spares_what_is_held),
	CASE(purging_goes_in_order),
	CASE(a_guarantee_is_not_purged),
	CASE(kept_regions_are_found_again),
	CASE(unsealed_kept_regions_are_their_tenants),
	CASE(a_kept_offer_can_be_purged),
	CASE(regions_can_be_listed),
	CASE(kept_regions_of_another_user),
	CASE(descriptors_run_out),
};
VM_MAIN(cases)
