/* SPDX-License-Identifier: MIT */
/*
 * Every allocation of the main paths fails once: the n-th of a call, for n from
 * 1 until the call gets through. Whatever failed says ENOMEM and has changed
 * nothing. Needs a kernel with fault injection.
 */
#include "vm.h"

static int admin, t;
static uint32_t pool;

static void set_up(void)
{
	if (!vm_faults_on())
		vm_skip("this kernel injects no faults");
	admin = vm_admin();
	t = vm_tenant("fault");
	pool = vm_pool(admin, "fault", HEARTH_POOL_KV, 8 * MiB);
}

static void tear_down(void)
{
	close(t);
	vm_pool_remove(admin, pool);
	close(admin);
}

static int nth_fd;

static void arm(int n)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", n);
	EXPECT(write(nth_fd, text, strlen(text)) > 0);
}

/* True when the fault was not reached: the call is through. */
static bool disarm(void)
{
	char text[16] = "";

	EXPECT(pread(nth_fd, text, sizeof(text) - 1, 0) > 0);
	EXPECT(write(nth_fd, "0", 1) == 1);
	return atoi(text) != 0;
}

/* Calls @fn (0: done, to be undone by @undo) with each allocation failing. */
static void each(const char *what, int (*fn)(void), void (*undo)(void))
{
	struct hearth_ioc_info before = { .size = sizeof(before) }, after = before;
	uint64_t charged;
	int n, ret, err;
	bool through;

	nth_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	EXPECT(nth_fd >= 0);
	for (n = 1; n < 400; n++) {
		EXPECT(!ioctl(admin, HEARTH_IOC_INFO, &before));
		charged = vm_pool_get(admin, pool).out_charged;
		arm(n);
		errno = 0;
		ret = fn();
		err = errno;
		through = disarm();
		if (ret && err != ENOMEM && err != ENFILE)
			vm_fail(__FILE__, __LINE__, "%s, allocation %d: errno %d (%s)", what, n, err,
				strerror(err));
		if (!ret)
			undo();
		EXPECT(!ioctl(admin, HEARTH_IOC_INFO, &after));
		if (before.out_pools != after.out_pools || before.out_tenants != after.out_tenants ||
		    before.out_regions != after.out_regions ||
		    vm_pool_get(admin, pool).out_charged != charged)
			vm_fail(__FILE__, __LINE__, "%s, allocation %d: something is left", what, n);
		if (through && !ret)
			break;
	}
	EXPECT(n < 400);
	printf("# %s: %d allocations failed\n", what, n - 1);
	close(nth_fd);
}

static struct hearth_ioc_alloc al;
static int fd1, fd2;
static void *map1;
static uint32_t pool2;

static int do_open(void)
{
	fd1 = open("/dev/hearth", O_RDWR | O_CLOEXEC);
	return fd1 < 0;
}

static void close1(void)
{
	close(fd1);
}

static int do_join(void)
{
	struct hearth_ioc_join j = { .size = sizeof(j), .flags = HEARTH_JOIN_CREATE, .name = "j" };

	return ioctl(fd2, HEARTH_IOC_JOIN, &j);
}

static void un_join(void)
{
	close(fd2);
	fd2 = vm_open();
}

static int do_pool(void)
{
	struct hearth_ioc_pool_create a = {
		.size = sizeof(a), .name = "p2", .kind = HEARTH_POOL_KV,
		.backing = HEARTH_BACKING_BUDDY, .bytes = 4 * MiB,
	};

	if (ioctl(admin, HEARTH_IOC_POOL_CREATE, &a))
		return -1;
	pool2 = a.out_pool;
	return 0;
}

static void un_pool(void)
{
	vm_pool_remove(admin, pool2);
}

static int do_grow(void)
{
	struct hearth_ioc_pool_resize a = { .size = sizeof(a), .pool = pool, .bytes = 12 * MiB };

	return ioctl(admin, HEARTH_IOC_POOL_RESIZE, &a);
}

static void un_grow(void)
{
	struct hearth_ioc_pool_resize a = { .size = sizeof(a), .pool = pool, .bytes = 8 * MiB };

	EXPECT(!ioctl(admin, HEARTH_IOC_POOL_RESIZE, &a));
}

static int do_alloc(void)
{
	memset(&al, 0, sizeof(al));
	return vm_alloc(t, pool, 3 * MiB, &al);
}

static void un_alloc(void)
{
	close(al.out_fd);
}

static int do_map(void)
{
	map1 = mmap(NULL, 3 * MiB, PROT_READ | PROT_WRITE, MAP_SHARED, fd1, 0);
	return map1 == MAP_FAILED;
}

static void un_map(void)
{
	munmap(map1, 3 * MiB);
}

static int do_export(void)
{
	fd2 = vm_export(fd1, HEARTH_EXPORT_WRITE, 0, 0);
	return fd2 < 0;
}

static int do_share(void)
{
	fd2 = vm_share(fd1, 0);
	return fd2 < 0;
}

static int do_find(void)
{
	fd2 = vm_find(t, pool, "kept", 0, 0, NULL);
	return fd2 < 0;
}

static void close2(void)
{
	close(fd2);
}

static int do_watch(void)
{
	struct hearth_ioc_watch a = { .size = sizeof(a), .kinds = 2 };

	return ioctl(fd2, HEARTH_IOC_WATCH, &a);
}

static int do_set(void)
{
	return vm_budget(admin, "made", pool, HEARTH_SET_CREATE | HEARTH_SET_MIN, MiB, 0, 0, 0, NULL);
}

static void un_set(void)
{
	struct hearth_ioc_tenant_get g = {
		.size = sizeof(g), .flags = HEARTH_GET_BY_NAME, .name = "made",
	};
	struct hearth_ioc_tenant_remove r = { .size = sizeof(r) };

	EXPECT(!ioctl(admin, HEARTH_IOC_TENANT_GET, &g));
	r.tenant = g.tenant;
	EXPECT(!ioctl(admin, HEARTH_IOC_TENANT_REMOVE, &r));
}

static void every_allocation_fails_once(void)
{
	struct hearth_ioc_drop d = { .size = sizeof(d) };

	set_up();
	each("open", do_open, close1);
	fd2 = vm_open();
	each("join", do_join, un_join);
	each("watch", do_watch, un_join);
	close(fd2);
	each("pool create", do_pool, un_pool);
	each("pool grow", do_grow, un_grow);
	each("alloc", do_alloc, un_alloc);
	each("budget set", do_set, un_set);
	fd1 = vm_region(t, pool, 3 * MiB);
	each("map", do_map, un_map);
	each("export", do_export, close2);
	each("share", do_share, close2);
	EXPECT(!vm_keep(fd1, "kept", 0));
	each("find", do_find, close2);
	d.region = vm_region_get(fd1).region;
	EXPECT(!ioctl(t, HEARTH_IOC_DROP, &d));
	close(fd1);
	tear_down();
}

static int make_it_fail; /* open, because opening it would fail too */

/* The page allocator gives this task nothing of @order and above. */
static void nothing_above(int order)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", order);
	EXPECT(vm_put("/sys/kernel/debug/fail_page_alloc/min-order", text));
	EXPECT(vm_put("/sys/kernel/debug/fail_page_alloc/task-filter", "Y"));
	EXPECT(vm_put("/sys/kernel/debug/fail_page_alloc/times", "-1"));
	EXPECT(vm_put("/sys/kernel/debug/fail_page_alloc/probability", "100"));
	make_it_fail = open("/proc/self/make-it-fail", O_WRONLY | O_CLOEXEC);
	EXPECT(make_it_fail >= 0 && write(make_it_fail, "1", 1) == 1);
}

static void all_again(void)
{
	EXPECT(pwrite(make_it_fail, "0", 1, 0) == 1);
	close(make_it_fail);
	EXPECT(vm_put("/sys/kernel/debug/fail_page_alloc/probability", "0"));
	EXPECT(vm_put("/sys/kernel/debug/fail_page_alloc/min-order", "0"));
	EXPECT(vm_put("/sys/kernel/debug/fail_page_alloc/task-filter", "N"));
}

/* What a region is for, in a pool of whatever blocks. */
static void use_it(void)
{
	struct hearth_ioc_alloc a = { .size = sizeof(a) };
	uint64_t i;
	int buf;
	unsigned char *p;

	EXPECT(!vm_alloc(t, pool2, 4 * MiB, &a));
	EXPECT(a.out_extents >= 1);
	p = vm_map(a.out_fd, 4 * MiB, PROT_READ | PROT_WRITE);
	for (i = 0; i < 4 * MiB; i += 4096) {
		EXPECT_EQ(*(uint64_t *)(p + i), 0);
		*(uint64_t *)(p + i) = i ^ 0x77;
	}
	EXPECT(!madvise(p, 4 * MiB, MADV_DONTNEED));
	buf = vm_export(a.out_fd, 0, 0, 0);
	EXPECT(buf >= 0);
	vm_unmap(p, 4 * MiB);
	p = mmap(NULL, 4 * MiB, PROT_READ, MAP_SHARED, buf, 0);
	EXPECT(p != MAP_FAILED);
	for (i = 0; i < 4 * MiB; i += 4096)
		EXPECT_EQ(*(uint64_t *)(p + i), i ^ 0x77);
	vm_unmap(p, 4 * MiB);
	close(buf);
	EXPECT(!vm_seal(a.out_fd));
	close(a.out_fd);
}

/* 2 MiB blocks are not to be had: 64 KiB ones, then single pages; and it is told. */
static void smaller_blocks_serve(void)
{
	struct hearth_ioc_alloc a = { .size = sizeof(a), .flags = HEARTH_ALLOC_CONTIG };
	struct hearth_ioc_pool_get p;

	set_up();
	nothing_above(5);
	pool2 = vm_pool(admin, "medium", HEARTH_POOL_KV, 4 * MiB);
	all_again();
	p = vm_pool_get(admin, pool2);
	EXPECT_EQ(p.out_large, 0);
	EXPECT_EQ(p.out_medium, 4 * MiB);
	use_it();
	a.align = 64 * KiB;
	EXPECT(!vm_alloc(t, pool2, 64 * KiB, &a));
	EXPECT_EQ(a.out_extents, 1);
	close(a.out_fd);
	vm_pool_remove(admin, pool2);

	nothing_above(1);
	pool2 = vm_pool(admin, "small", HEARTH_POOL_KV, 4 * MiB);
	all_again();
	p = vm_pool_get(admin, pool2);
	EXPECT_EQ(p.out_large + p.out_medium, 0);
	EXPECT_EQ(p.out_small, 4 * MiB);
	use_it();
	a.align = 0;
	EXPECT(!vm_alloc(t, pool2, 4096, &a));
	close(a.out_fd);
	vm_pool_remove(admin, pool2);
	/* Not even pages: nothing is made, and nothing is left. */
	nothing_above(0);
	EXPECT(do_pool() && errno == ENOMEM);
	all_again();
	tear_down();
}

static const struct vm_case cases[] = {
	CASE(every_allocation_fails_once),
	CASE(smaller_blocks_serve),
};
VM_MAIN(cases)
