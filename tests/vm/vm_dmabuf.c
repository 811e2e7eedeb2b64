/* SPDX-License-Identifier: MIT */
/* Regions as dma-bufs, imported by a driver that plays the device. */
#include "vm.h"

#include <linux/dma-buf.h>
#include "probe/probe.h"

static int admin, t, region, probe;
static uint32_t pool;
#define LEN (4 * MiB)

static void set_up(void)
{
	unsigned char *p;

	admin = vm_admin();
	t = vm_tenant("buf");
	pool = vm_pool(admin, "buf", HEARTH_POOL_KV, 16 * MiB);
	region = vm_region(t, pool, LEN);
	p = vm_map(region, LEN, PROT_READ | PROT_WRITE);
	memset(p, 1, LEN);
	vm_unmap(p, LEN);
	probe = open("/dev/probe", O_RDWR | O_CLOEXEC);
	EXPECT(probe >= 0);
}

static void tear_down(void)
{
	close(probe);
	close(region);
	close(t);
	vm_pool_remove(admin, pool);
	close(admin);
}

static int import(int fd, uint32_t flags, uint32_t dir, struct probe_arg *a)
{
	memset(a, 0, sizeof(*a));
	a->fd = fd;
	a->flags = flags;
	a->dir = dir;
	a->value = 5;
	return ioctl(probe, PROBE_IMPORT, a);
}

static void a_device_reads_and_writes(void)
{
	struct probe_arg a;
	unsigned char *p;
	int buf;

	set_up();
	buf = vm_export(region, HEARTH_EXPORT_WRITE, 0, 0);
	EXPECT(buf >= 0);
	EXPECT(!import(buf, PROBE_WRITE, 0, &a));
	EXPECT_EQ(a.out_bytes, LEN);
	EXPECT_EQ(a.out_sum, LEN / PAGE);
	/* Merged: a block of 2 MiB is a segment, or less where blocks are in a row. */
	EXPECT(a.out_segments >= 1 && a.out_segments <= LEN / PAGE);
	p = vm_map(region, LEN, PROT_READ);
	EXPECT_EQ(p[0], 5);
	EXPECT_EQ(p[LEN - PAGE], 5);
	EXPECT_EQ(p[1], 1);
	vm_unmap(p, LEN);
	EXPECT(vm_region_get(region).out_flags & HEARTH_REGION_EXPORTED);
	close(buf);
	EXPECT(!(vm_region_get(region).out_flags & HEARTH_REGION_EXPORTED));
	tear_down();
}

static void a_part_can_be_exported(void)
{
	struct probe_arg a;
	unsigned char *p;
	int buf;

	set_up();
	buf = vm_export(region, HEARTH_EXPORT_WRITE, 2 * PAGE, 3 * PAGE);
	EXPECT(buf >= 0);
	EXPECT_EQ(lseek(buf, 0, SEEK_END), 3 * PAGE);
	EXPECT(!import(buf, PROBE_WRITE, 0, &a));
	EXPECT_EQ(a.out_bytes, 3 * PAGE);
	p = vm_map(region, LEN, PROT_READ);
	EXPECT_EQ(p[1 * PAGE], 1);
	EXPECT_EQ(p[2 * PAGE], 5);
	EXPECT_EQ(p[4 * PAGE], 5);
	EXPECT_EQ(p[5 * PAGE], 1);
	vm_unmap(p, LEN);
	/* Its own mapping: the part, and nothing beyond. */
	p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, buf, 0);
	EXPECT(p != MAP_FAILED);
	EXPECT_EQ(p[0], 5);
	p[PAGE] = 9;
	EXPECT(!madvise(p, 3 * PAGE, MADV_DONTNEED));
	EXPECT_EQ(p[PAGE], 9);
	munmap(p, 3 * PAGE);
	EXPECT(mmap(NULL, 4 * PAGE, PROT_READ, MAP_SHARED, buf, 0) == MAP_FAILED);
	EXPECT(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, buf, 3 * PAGE) == MAP_FAILED);
	EXPECT(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, buf, 0) == MAP_FAILED);
	close(buf);
	EXPECT_ERR(EINVAL, vm_export(region, 0, 1, 0));
	EXPECT_ERR(EINVAL, vm_export(region, 0, 0, 100));
	EXPECT_ERR(EINVAL, vm_export(region, 0, LEN, 0));
	EXPECT_ERR(EINVAL, vm_export(region, 0, LEN - PAGE, 2 * PAGE));
	EXPECT_ERR(EINVAL, vm_export(region, 0, PAGE, ~0ULL - PAGE + 1));
	tear_down();
}

static void read_only_stays_read_only(void)
{
	struct probe_arg a;
	unsigned char *p;
	int buf;

	set_up();
	EXPECT(!vm_seal(region));
	EXPECT_ERR(EROFS, vm_export(region, HEARTH_EXPORT_WRITE, 0, 0));
	buf = vm_export(region, 0, 0, 0);
	EXPECT(buf >= 0);
	EXPECT_EQ(fcntl(buf, F_GETFL) & O_ACCMODE, O_RDONLY);
	EXPECT(!import(buf, 0, 1, &a));
	EXPECT_EQ(a.out_sum, LEN / PAGE);
	EXPECT_ERR(EACCES, import(buf, 0, 0, &a));
	EXPECT_ERR(EACCES, import(buf, 0, 2, &a));
	p = mmap(NULL, LEN, PROT_READ, MAP_SHARED, buf, 0);
	EXPECT(p != MAP_FAILED && p[100] == 1);
	EXPECT_ERR(EACCES, mprotect(p, PAGE, PROT_READ | PROT_WRITE));
	munmap(p, LEN);
	EXPECT(mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, buf, 0) == MAP_FAILED);
	close(buf);
	tear_down();
}

static void the_kernel_maps_it(void)
{
	struct probe_arg a;
	int buf;

	set_up();
	buf = vm_export(region, HEARTH_EXPORT_WRITE, 0, 0);
	EXPECT(!import(buf, PROBE_VMAP, 0, &a));
	EXPECT_EQ(a.out_sum, LEN / PAGE);
	close(buf);
	EXPECT(!vm_seal(region));
	buf = vm_export(region, 0, PAGE, PAGE);
	EXPECT(!import(buf, PROBE_VMAP, 0, &a));
	EXPECT_EQ(a.out_sum, 1);
	close(buf);
	tear_down();
}

static void other_drivers_replace_the_ops(void)
{
	struct probe_arg a;
	int buf;

	set_up();
	buf = vm_export(region, HEARTH_EXPORT_WRITE, 0, 0);
	EXPECT(!import(buf, PROBE_OPS, 0, &a));
	EXPECT(!import(buf, 0, 0, &a));
	EXPECT(!import(buf, PROBE_VMAP, 0, &a));
	EXPECT_EQ(a.out_sum, LEN / PAGE);
	close(buf);
	tear_down();
}

static void an_export_holds_off_seal_and_offer(void)
{
	int buf;

	set_up();
	buf = vm_export(region, HEARTH_EXPORT_WRITE, 0, 0);
	EXPECT_ERR(EBUSY, vm_seal(region));
	EXPECT_ERR(EBUSY, vm_offer(region));
	close(buf);
	EXPECT(!vm_offer(region));
	EXPECT_ERR(EBUSY, vm_export(region, 0, 0, 0));
	EXPECT_EQ(vm_take_back(region), 1);
	EXPECT(!vm_seal(region));
	tear_down();
}

/*
 * A read-only one does not hold a seal off, but its mapping does: the seal looks
 * at the counts of pages, and nothing tells these from others'. And what is
 * refused changes nothing.
 */
static void a_read_only_export_and_a_seal(void)
{
	struct probe_arg a;
	unsigned char *p, *q;
	char path[64];
	int buf;

	set_up();
	buf = vm_export(region, 0, 0, 0);
	EXPECT(buf >= 0);
	p = mmap(NULL, LEN, PROT_READ, MAP_SHARED, buf, 0);
	EXPECT(p != MAP_FAILED);
	EXPECT_ERR(EBUSY, vm_seal(region));
	EXPECT(!(vm_region_get(region).out_flags & HEARTH_REGION_SEALED));
	EXPECT_EQ(p[LEN - 1], 1);
	/* Still writable by those who may. */
	q = vm_map(region, LEN, PROT_READ | PROT_WRITE);
	q[LEN - 1] = 2;
	EXPECT_EQ(p[LEN - 1], 2);
	vm_unmap(q, LEN);
	/* One page of it mapped is as bad as all. */
	EXPECT(!munmap(p + PAGE, LEN - PAGE));
	EXPECT_ERR(EBUSY, vm_seal(region));
	EXPECT(!munmap(p, PAGE));
	UNTIL(!vm_seal(region));
	EXPECT(!import(buf, 0, 1, &a));
	p = mmap(NULL, LEN, PROT_READ, MAP_SHARED, buf, 0);
	EXPECT(p != MAP_FAILED && p[LEN - 1] == 2);
	EXPECT_ERR(EACCES, mprotect(p, PAGE, PROT_READ | PROT_WRITE));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", buf);
	EXPECT(open(path, O_RDWR) < 0);
	munmap(p, LEN);
	close(buf);
	tear_down();
}

static void a_dma_buf_outlives_everything(void)
{
	struct probe_arg a;
	unsigned char *p;
	int buf;

	set_up();
	buf = vm_export(region, HEARTH_EXPORT_WRITE, 0, 0);
	close(region);
	close(t);
	EXPECT_EQ(vm_pool_get(admin, pool).out_charged, LEN);
	EXPECT(!import(buf, 0, 0, &a));
	EXPECT_EQ(a.out_sum, LEN / PAGE);
	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, buf, 0);
	EXPECT(p != MAP_FAILED);
	close(buf);
	EXPECT_EQ(p[LEN - 1], 1);
	EXPECT_EQ(vm_pool_get(admin, pool).out_charged, LEN);
	munmap(p, LEN);
	region = t = -1;
	tear_down();
}

static void sync_is_understood(void)
{
	struct dma_buf_sync s = { .flags = DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW };
	int buf;

	set_up();
	buf = vm_export(region, HEARTH_EXPORT_WRITE, 0, 0);
	EXPECT(!ioctl(buf, DMA_BUF_IOCTL_SYNC, &s));
	s.flags = DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW;
	EXPECT(!ioctl(buf, DMA_BUF_IOCTL_SYNC, &s));
	close(buf);
	tear_down();
}

/* References that a driver took through the mapping and did not give back. */
static void a_driver_that_holds_pages(void)
{
	struct probe_arg a = {};
	struct hearth_ioc_alloc al = {};
	unsigned char *p;

	set_up();
	p = vm_map(region, LEN, PROT_READ | PROT_WRITE);
	a.addr = (uintptr_t)(p + 2 * MiB + 7 * PAGE);
	a.flags = PROBE_WRITE;
	EXPECT(!ioctl(probe, PROBE_HOLD, &a));
	vm_unmap(p, LEN);
	EXPECT_ERR(EBUSY, vm_seal(region));
	close(region);
	close(t);
	EXPECT_EQ(vm_pool_get(admin, pool).out_quarantined, 2 * MiB);
	EXPECT_EQ(vm_pool_get(admin, pool).out_charged, 2 * MiB);
	/* The tenant is gone but for that; its guarantee does not come back either. */
	t = vm_tenant("next");
	EXPECT_ERR(ENOSPC, vm_alloc(t, pool, 16 * MiB, &al));
	al.size = 0;
	EXPECT(!vm_alloc(t, pool, 14 * MiB, &al));
	close(al.out_fd);
	EXPECT(!ioctl(probe, PROBE_RELEASE, &a));
	vm_pool_idle(admin, pool);
	region = -1;
	tear_down();
}

static const struct vm_case cases[] = {
	CASE(a_device_reads_and_writes),
	CASE(a_part_can_be_exported),
	CASE(read_only_stays_read_only),
	CASE(the_kernel_maps_it),
	CASE(other_drivers_replace_the_ops),
	CASE(an_export_holds_off_seal_and_offer),
	CASE(a_read_only_export_and_a_seal),
	CASE(a_dma_buf_outlives_everything),
	CASE(sync_is_understood),
	CASE(a_driver_that_holds_pages),
};
VM_MAIN(cases)
