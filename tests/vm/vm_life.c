/* SPDX-License-Identifier: MIT */
/* Ends: owners killed in the middle, the module unloaded busy and idle, sleep. */
#include "vm.h"

#include <pthread.h>

static int load(const char *args)
{
	int fd = open("/hearth.ko", O_RDONLY | O_CLOEXEC), ret;

	EXPECT(fd >= 0);
	ret = syscall(SYS_finit_module, fd, args, 0);
	close(fd);
	return ret;
}

static int unload(void)
{
	return syscall(SYS_delete_module, "hearth", O_NONBLOCK);
}

static void reload(const char *args)
{
	/* A descriptor closed a moment ago may be let go of by a work item. */
	UNTIL(!unload());
	EXPECT(!load(args));
}

#define USUAL "kv=32M account=1G"

struct owner {
	int fd;
	uint32_t pool, acct;
};

static void *churn(void *arg)
{
	struct owner *o = arg;
	unsigned int seed = (uintptr_t)&seed >> 4;

	for (;;) {
		uint64_t bytes = PAGE << (rand_r(&seed) % 10);
		struct hearth_ioc_alloc a = { .size = sizeof(a), .flags = rand_r(&seed) % 4 };
		int buf;
		void *p;

		vm_charge(o->fd, o->acct, 1 + rand_r(&seed) % 100, 0, NULL);
		if (vm_alloc(o->fd, o->pool, bytes, &a))
			continue;
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a.out_fd, 0);
		if (p != MAP_FAILED)
			memset(p, 1, bytes);
		buf = vm_export(a.out_fd, HEARTH_EXPORT_WRITE, 0, 0);
		if (rand_r(&seed) % 2 && p != MAP_FAILED)
			munmap(p, bytes);
		if (rand_r(&seed) % 2)
			close(buf);
		if (rand_r(&seed) % 2)
			close(a.out_fd);
	}
	return NULL;
}

static void owner_to_be_killed(void *arg)
{
	struct owner *o = arg;
	pthread_t th;
	int i;

	o->fd = vm_tenant("victim");
	for (i = 0; i < 3; i++)
		pthread_create(&th, NULL, churn, o);
	/* And one that waits for ever. */
	vm_charge(o->fd, o->acct, 999000, ~0ULL, NULL);
	pause();
}

static void killed_owners_leave_nothing(void)
{
	struct hearth_ioc_tenant_get g = {
		.size = sizeof(g), .flags = HEARTH_GET_BY_NAME, .name = "victim",
	};
	struct owner o = { .fd = -1 };
	int admin = vm_admin(), i;

	o.pool = vm_pool(admin, "life", HEARTH_POOL_SCRATCH, 8 * MiB);
	o.acct = vm_pool(admin, "lifeacct", HEARTH_POOL_ACCOUNT, 1000000);
	for (i = 0; i < 20; i++) {
		pid_t pid = vm_fork(owner_to_be_killed, &o);

		usleep(5000 + i * 4000);
		kill(pid, SIGKILL);
		EXPECT_EQ(vm_wait(pid), 128 + SIGKILL);
		vm_pool_idle(admin, o.pool);
		vm_pool_idle(admin, o.acct);
		g.flags = HEARTH_GET_BY_NAME;
		UNTIL(ioctl(admin, HEARTH_IOC_TENANT_GET, &g) && errno == ENOENT);
	}
	vm_pool_remove(admin, o.pool);
	vm_pool_remove(admin, o.acct);
	close(admin);
}

static void pool_maker_to_be_killed(void *arg)
{
	struct hearth_ioc_pool_resize rs = { .size = sizeof(rs) };
	struct hearth_ioc_pool_remove rm = { .size = sizeof(rm) };
	int fd = vm_admin();

	for (;;) {
		rs.pool = rm.pool = vm_pool(fd, "unfinished", HEARTH_POOL_KV, 32 * MiB);
		for (rs.bytes = 64 * MiB; rs.bytes; rs.bytes -= 16 * MiB)
			ioctl(fd, HEARTH_IOC_POOL_RESIZE, &rs);
		EXPECT(!ioctl(fd, HEARTH_IOC_POOL_REMOVE, &rm));
	}
}

/*
 * What was freed last stays on a list of its CPU, which nobody counts as
 * available, and the lists can hold as much as a pool that was lost: "1000"
 * keeps them short, "0" is the kernel's own choice.
 */
static void lists_of_cpus(int admin, const char *fraction)
{
	cpu_set_t all, one;
	int cpu;

	/* The second name is that before 5.14. */
	EXPECT(vm_put("/proc/sys/vm/percpu_pagelist_high_fraction", fraction) ||
	       vm_put("/proc/sys/vm/percpu_pagelist_fraction", fraction));
	/* A list is cut when something is freed there. */
	EXPECT(!sched_getaffinity(0, sizeof(all), &all));
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		EXPECT(!sched_setaffinity(0, sizeof(one), &one));
		vm_pool_remove(admin, vm_pool(admin, "freed", HEARTH_POOL_KV, 8 * MiB));
	}
	EXPECT(!sched_setaffinity(0, sizeof(all), &all));
}

/* In the middle of getting blocks: there is a whole pool or none, and no memory is lost. */
static void killed_administrators_leave_nothing(void)
{
	struct hearth_ioc_pool_get p = { .size = sizeof(p), .flags = HEARTH_GET_BY_NAME, .name = "unfinished" };
	struct hearth_ioc_pool_remove rm = { .size = sizeof(rm) };
	int admin = vm_admin(), i;
	uint64_t before;
	pid_t pid;

	lists_of_cpus(admin, "1000");
	before = vm_available();
	for (i = 0; i < 12; i++) {
		pid = vm_fork(pool_maker_to_be_killed, NULL);
		usleep(2000 + i * 7000);
		kill(pid, SIGKILL);
		EXPECT_EQ(vm_wait(pid), 128 + SIGKILL);
		p.flags = HEARTH_GET_BY_NAME;
		if (ioctl(admin, HEARTH_IOC_POOL_GET, &p)) {
			EXPECT_EQ(errno, ENOENT);
			continue;
		}
		EXPECT_EQ(p.out_large + p.out_medium + p.out_small, p.out_bytes);
		EXPECT_EQ(p.out_largest, p.out_bytes);
		rm.pool = p.pool;
		EXPECT(!ioctl(admin, HEARTH_IOC_POOL_REMOVE, &rm));
	}
	/* Less than one of twelve can have lost. */
	UNTIL(vm_available() + 24 * MiB > before);
	lists_of_cpus(admin, "0");
	close(admin);
}

static void loader_to_be_killed(void *arg)
{
	struct owner *o = arg;
	int r, part, buf;
	unsigned char *p;

	o->fd = vm_tenant("loader");
	r = vm_region(o->fd, o->pool, 2 * MiB);
	p = vm_map(r, 2 * MiB, PROT_READ | PROT_WRITE);
	memset(p, 0x77, 2 * MiB);
	vm_unmap(p, 2 * MiB);
	EXPECT(!vm_seal(r) && !vm_keep(r, "weights/a:1", 3));
	part = vm_region(o->fd, o->pool, 1 * MiB);
	p = vm_map(part, 1 * MiB, PROT_READ | PROT_WRITE);
	memset(p, 0x11, 1 * MiB);
	EXPECT(!vm_keep(part, "half-read", 3));
	buf = vm_export(vm_region(o->fd, o->pool, 1 * MiB), HEARTH_EXPORT_WRITE, 0, 0);
	EXPECT(buf >= 0 && mmap(NULL, 1 * MiB, PROT_READ | PROT_WRITE, MAP_SHARED, buf, 0) != MAP_FAILED);
	EXPECT_EQ(write(o->acct, "x", 1), 1);
	for (;;)
		memset(p, 0x22, 1 * MiB);
}

/* Killed with maps and dma-bufs alive: what has a name is there, the rest is not. */
static void kept_regions_survive_a_kill(void)
{
	struct hearth_ioc_drop d = { .size = sizeof(d) };
	struct owner o = { .fd = -1 };
	int admin = vm_admin(), t, r, pipefd[2], i;
	struct hearth_ioc_find f;
	unsigned char *p;
	char c;
	pid_t pid;

	o.pool = vm_pool(admin, "life", HEARTH_POOL_WEIGHTS, 8 * MiB);
	EXPECT(!pipe(pipefd));
	o.acct = pipefd[1];
	pid = vm_fork(loader_to_be_killed, &o);
	EXPECT_EQ(read(pipefd[0], &c, 1), 1);
	kill(pid, SIGKILL);
	EXPECT_EQ(vm_wait(pid), 128 + SIGKILL);
	UNTIL(vm_pool_get(admin, o.pool).out_charged == 3 * MiB);
	t = vm_tenant("loader");
	r = vm_find(t, o.pool, "weights/a:1", 3, 0, &f);
	EXPECT(r >= 0);
	p = vm_map(r, 2 * MiB, PROT_READ);
	for (i = 0; i < 2 * (int)MiB; i++)
		EXPECT_EQ(p[i], 0x77);
	vm_unmap(p, 2 * MiB);
	close(r);
	d.region = f.out_region;
	EXPECT(!ioctl(t, HEARTH_IOC_DROP, &d));
	/* One that was never sealed can be gone on with. */
	r = vm_find(t, o.pool, "half-read", 3, HEARTH_FIND_WRITE, &f);
	EXPECT(r >= 0);
	d.region = f.out_region;
	EXPECT(!ioctl(admin, HEARTH_IOC_DROP, &d));
	EXPECT_ERR(ENOENT, ioctl(admin, HEARTH_IOC_DROP, &d));
	close(r);
	close(t);
	vm_pool_remove(admin, o.pool);
	close(admin);
}

static void unloading_in_use_is_refused(void)
{
	struct hearth_ioc_drop d = { .size = sizeof(d) };
	int admin = vm_admin(), t = vm_tenant("unl"), r, buf;
	uint32_t pool = vm_pool(admin, "unl", HEARTH_POOL_KV, 4 * MiB);
	void *p;

	EXPECT_ERR(EAGAIN, unload());
	r = vm_region(t, pool, 64 * KiB);
	d.region = vm_region_get(r).region;
	EXPECT(!vm_keep(r, "held", 0));
	buf = vm_export(r, HEARTH_EXPORT_WRITE, 0, 0);
	p = vm_map(r, 64 * KiB, PROT_READ | PROT_WRITE);
	close(t);
	close(admin);
	close(r);
	EXPECT_ERR(EAGAIN, unload());   /* a mapping, a dma-buf, a kept region */
	vm_unmap(p, 64 * KiB);
	EXPECT_ERR(EAGAIN, unload());   /* a dma-buf, a kept region */
	close(buf);
	EXPECT_ERR(EAGAIN, unload());   /* a kept region */
	admin = vm_admin();
	EXPECT(!ioctl(admin, HEARTH_IOC_DROP, &d));
	vm_pool_idle(admin, pool);
	close(admin);
	UNTIL(!unload());
	EXPECT(access("/dev/hearth", F_OK) && errno == ENOENT);
	EXPECT(!load(USUAL));
}

static void quarantine_holds_the_module(void)
{
	int admin = vm_admin(), t = vm_tenant("unl"), r, pipefd[2];
	uint32_t pool = vm_pool(admin, "unl", HEARTH_POOL_KV, 4 * MiB);
	struct { void *base; size_t len; } iov;
	unsigned char *p;
	char back[4096];

	r = vm_region(t, pool, 64 * KiB);
	p = vm_map(r, 64 * KiB, PROT_READ | PROT_WRITE);
	memset(p, 0x12, 64 * KiB);
	EXPECT(!pipe(pipefd));
	iov.base = p;
	iov.len = PAGE;
	EXPECT_EQ(syscall(SYS_vmsplice, pipefd[1], &iov, 1, 0), (long)PAGE);
	vm_unmap(p, 64 * KiB);
	close(r);
	close(t);
	close(admin);
	EXPECT_ERR(EAGAIN, unload());
	EXPECT_EQ(read(pipefd[0], back, PAGE), (long)PAGE);
	EXPECT_EQ(back[0], 0x12);
	UNTIL(!unload());
	EXPECT(!load(USUAL));
}

static void it_comes_and_goes(void)
{
	int i;

	for (i = 0; i < 8; i++)
		reload(i % 2 ? "" : "weights=8M kv=4M scratch=2M account=100");
	reload(USUAL);
}

static struct hearth_ioc_pool_get by_name(const char *name)
{
	struct hearth_ioc_pool_get p = { .size = sizeof(p), .flags = HEARTH_GET_BY_NAME };
	int fd = vm_open();

	strcpy(p.name, name);
	if (ioctl(fd, HEARTH_IOC_POOL_GET, &p))
		p.pool = 0;
	close(fd);
	return p;
}

static void parameters_make_pools(void)
{
	static const char *const wrong[] = {
		"kv=x", "kv=0", "kv=4Mx", "kv=1M", "weights=node:", "weights=node:a,x",
		"account=node:a", "system_rise=100,50,900", "system_rise=800,900,950 system_fall=900,900,900",
	};
	struct hearth_ioc_pool_get p;
	size_t i;

	reload("weights=8M kv=5M scratch=2048K account=12345");
	p = by_name("weights");
	EXPECT(p.pool && p.out_kind == HEARTH_POOL_WEIGHTS && p.out_bytes == 8 * MiB);
	p = by_name("kv");
	EXPECT(p.pool && p.out_bytes == 4 * MiB); /* rounded down, and said so */
	EXPECT(vm_logged("kv=5M is no multiple of 2 MiB: 4096 KiB"));
	p = by_name("scratch");
	EXPECT(p.pool && p.out_bytes == 2 * MiB);
	p = by_name("account");
	EXPECT(p.pool && p.out_bytes == 12345 && p.out_backing == HEARTH_BACKING_NONE);
	/* A node that is not there falls back, with a size; without one the rest is made. */
	reload("weights=node:no-such-node,4M kv=node:no-such-node account=1M");
	p = by_name("weights");
	EXPECT(p.pool && p.out_backing == HEARTH_BACKING_BUDDY && p.out_bytes == 4 * MiB);
	EXPECT(!by_name("kv").pool && by_name("account").pool);
	EXPECT(vm_logged("no node no-such-node"));
	EXPECT(vm_logged("pool weights falls back to the page allocator"));
	EXPECT(vm_logged("pool kv could not be made from \"node:no-such-node\""));
	UNTIL(!unload());
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		errno = 0;
		if (!load(wrong[i]))
			vm_fail(__FILE__, __LINE__, "loaded with %s", wrong[i]);
		EXPECT_EQ(errno, EINVAL);
	}
	if (!access("/proc/device-tree/reserved-memory/hearth-weights", F_OK)) {
		EXPECT(!load("weights=node:hearth-weights kv=node:hearth-nomap,4M"));
		p = by_name("weights");
		EXPECT(p.pool && p.out_backing == HEARTH_BACKING_RESERVED && p.out_bytes == 64 * MiB);
		p = by_name("kv");
		EXPECT(p.pool && p.out_backing == HEARTH_BACKING_BUDDY);
		UNTIL(!unload());
	}
	EXPECT(!load(USUAL));
}

struct sleeper {
	int fd, ret;
	uint32_t pool;
};

/* Its wait is cut short by the freezer, and goes on by itself afterwards. */
static void *wait_over_a_sleep(void *arg)
{
	struct sleeper *s = arg;

	s->ret = vm_charge(s->fd, s->pool, 2 * MiB, VM_LATER, NULL);
	return NULL;
}

static void sleep_keeps_everything(void)
{
	int admin, t, r, fd, i, buf, slept;
	struct sleeper s = { .ret = -1 };
	unsigned char *p, *q;
	uint32_t pool;
	pthread_t th;

	fd = open("/sys/power/pm_test", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "devices", 7) != 7)
		vm_skip("this kernel has no pm_test");
	close(fd);
	admin = vm_admin();
	t = vm_tenant("sleep");
	pool = vm_pool(admin, "sleep", HEARTH_POOL_KV, 8 * MiB);
	r = vm_region(t, pool, 4 * MiB);
	p = vm_map(r, 4 * MiB, PROT_READ | PROT_WRITE);
	for (i = 0; i < 4 * (int)MiB; i += 4)
		*(int *)(p + i) = i * 2654435761U;
	EXPECT(!vm_charge(t, pool, 4096, 0, NULL));
	buf = vm_export(r, HEARTH_EXPORT_WRITE, 0, 0);
	EXPECT(buf >= 0);
	q = mmap(NULL, 4 * MiB, PROT_READ, MAP_SHARED, buf, 0);
	EXPECT(q != MAP_FAILED);
	/* Two of eight MiB are free, less a page. */
	EXPECT(!vm_charge(t, pool, 2 * MiB, 0, NULL));
	s.fd = vm_tenant("sleeper");
	s.pool = pool;
	EXPECT(!pthread_create(&th, NULL, wait_over_a_sleep, &s));
	UNTIL(vm_usage(admin, vm_info(s.fd).out_tenant, pool).out_waiters == 1);
	fd = open("/sys/power/state", O_WRONLY | O_CLOEXEC);
	errno = ENOENT;
	slept = fd >= 0 && (write(fd, "freeze", 6) == 6 || write(fd, "mem", 3) == 3) ? 0 : errno;
	if (!slept)
		UNTIL(vm_usage(admin, vm_info(s.fd).out_tenant, pool).out_waiters == 1);
	EXPECT(!vm_uncharge(t, pool, 2 * MiB));
	pthread_join(th, NULL);
	EXPECT_EQ(s.ret, 0);
	EXPECT(!memcmp(p, q, 4 * MiB));
	vm_unmap(q, 4 * MiB);
	close(buf);
	close(s.fd);
	close(fd);
	for (i = 0; i < 4 * (int)MiB; i += 4)
		EXPECT_EQ(*(unsigned int *)(p + i), i * 2654435761U);
	EXPECT_EQ(vm_usage(t, 0, pool).out_current, 4 * MiB + 4096);
	vm_unmap(p, 4 * MiB);
	close(r);
	close(t);
	vm_pool_remove(admin, pool);
	close(admin);
	if (slept)
		vm_skip("this guest does not sleep: %s", strerror(slept));
}

static const struct vm_case cases[] = {
	CASE(killed_owners_leave_nothing),
	CASE(killed_administrators_leave_nothing),
	CASE(kept_regions_survive_a_kill),
	CASE(unloading_in_use_is_refused),
	CASE(quarantine_holds_the_module),
	CASE(it_comes_and_goes),
	CASE(parameters_make_pools),
	CASE(sleep_keeps_everything),
};
VM_MAIN(cases)
