/* SPDX-License-Identifier: MIT */
/*
 * Pools: made, grown, shrunk, removed; from the page allocator and from
 * reserved-memory nodes (arm64, whose device tree has a good one and one of
 * each wrong kind).
 */
#include "vm.h"

static int admin, t;

static void set_up(void)
{
	admin = vm_admin();
	t = vm_tenant("pool");
}

static void tear_down(void)
{
	close(t);
	close(admin);
}

static int create(const char *name, uint32_t kind, uint32_t backing, uint64_t bytes,
		  const char *node, uint32_t *ret_id)
{
	struct hearth_ioc_pool_create a = {
		.size = sizeof(a), .kind = kind, .backing = backing, .bytes = bytes,
	};

	strncpy(a.name, name, sizeof(a.name) - 1);
	strncpy(a.node, node, sizeof(a.node) - 1);
	if (ioctl(admin, HEARTH_IOC_POOL_CREATE, &a))
		return -1;
	if (ret_id)
		*ret_id = a.out_pool;
	return 0;
}

static int resize(uint32_t pool, uint64_t bytes)
{
	struct hearth_ioc_pool_resize a = { .size = sizeof(a), .pool = pool, .bytes = bytes };

	return ioctl(admin, HEARTH_IOC_POOL_RESIZE, &a);
}

static uint64_t mem_free(void)
{
	char line[128];
	unsigned long long kb = 0;
	FILE *f = fopen("/proc/meminfo", "r");

	EXPECT(f);
	while (fgets(line, sizeof(line), f) && sscanf(line, "MemFree: %llu", &kb) != 1)
		;
	fclose(f);
	return kb * 1024;
}

static void what_cannot_be_made(void)
{
	uint32_t id;

	set_up();
	EXPECT_ERR(EINVAL, create("p", HEARTH_POOL_KV, HEARTH_BACKING_BUDDY, 0, "", NULL));
	EXPECT_ERR(EINVAL, create("p", HEARTH_POOL_KV, HEARTH_BACKING_BUDDY, 4096, "", NULL));
	EXPECT_ERR(EINVAL, create("p", HEARTH_POOL_KV, HEARTH_BACKING_BUDDY, 2 * MiB + 1, "", NULL));
	EXPECT_ERR(EINVAL, create("p", HEARTH_POOL_KV, HEARTH_BACKING_NONE, 2 * MiB, "", NULL));
	EXPECT_ERR(EINVAL, create("p", HEARTH_POOL_ACCOUNT, HEARTH_BACKING_BUDDY, 2 * MiB, "", NULL));
	EXPECT_ERR(EINVAL, create("p", HEARTH_POOL_KV, HEARTH_BACKING_BUDDY, 2 * MiB, "node", NULL));
	EXPECT_ERR(EOPNOTSUPP, create("p", 9, HEARTH_BACKING_BUDDY, 2 * MiB, "", NULL));
	EXPECT_ERR(EOPNOTSUPP, create("p", HEARTH_POOL_KV, 9, 2 * MiB, "", NULL));
	EXPECT_ERR(ENOMEM, create("p", HEARTH_POOL_KV, HEARTH_BACKING_BUDDY, 1ULL << 42, "", NULL));
	EXPECT_ERR(EINVAL, create("p", HEARTH_POOL_KV, HEARTH_BACKING_BUDDY, 1ULL << 63, "", NULL));
	EXPECT_ERR(EINVAL, create("p", HEARTH_POOL_ACCOUNT, HEARTH_BACKING_NONE, ~0ULL, "", NULL));
	EXPECT_ERR(ENODEV, create("p", HEARTH_POOL_KV, HEARTH_BACKING_RESERVED, 0, "no-such", NULL));
	EXPECT(!create("p", HEARTH_POOL_KV, HEARTH_BACKING_BUDDY, 2 * MiB, "", &id));
	EXPECT_ERR(EEXIST, create("p", HEARTH_POOL_ACCOUNT, HEARTH_BACKING_NONE, 1, "", NULL));
	vm_pool_remove(admin, id);
	tear_down();
}

static void there_is_an_end_to_pools(void)
{
	uint32_t id[32];
	char name[16];
	int n;

	set_up();
	for (n = 0; n < 32; n++) {
		snprintf(name, sizeof(name), "many%d", n);
		if (create(name, HEARTH_POOL_ACCOUNT, HEARTH_BACKING_NONE, 100, "", &id[n]))
			break;
	}
	EXPECT_EQ(errno, EOVERFLOW);
	EXPECT(n > 4 && n < 32);
	while (n--)
		vm_pool_remove(admin, id[n]);
	tear_down();
}

static void memory_comes_and_goes_back(void)
{
	struct hearth_ioc_pool_get p;
	uint64_t before, during;
	uint32_t id;

	set_up();
	before = mem_free();
	EXPECT(!create("p", HEARTH_POOL_KV, HEARTH_BACKING_BUDDY, 64 * MiB, "", &id));
	during = mem_free();
	p = vm_pool_get(t, id);
	EXPECT_EQ(p.out_bytes, 64 * MiB);
	EXPECT_EQ(p.out_large + p.out_medium + p.out_small, 64 * MiB);
	EXPECT_EQ(p.out_largest, 64 * MiB);
	/* Tables: at most 2 in 1000, if the blocks are large ones. */
	if (p.out_large == 64 * MiB)
		EXPECT(p.out_overhead * 500 <= 64 * MiB);
	vm_pool_remove(admin, id);
	EXPECT(during + 60 * MiB < before);
	/* The kernel keeps freed pages on lists of each CPU for a while. */
	UNTIL(mem_free() >= during + 32 * MiB);
	tear_down();
}

static void pools_grow_and_shrink(void)
{
	int r[16], i;
	uint32_t id;

	set_up();
	EXPECT(!create("p", HEARTH_POOL_KV, HEARTH_BACKING_BUDDY, 32 * MiB, "", &id));
	for (i = 0; i < 16; i++)
		r[i] = vm_region(t, id, 2 * MiB);
	EXPECT_ERR(EBUSY, resize(id, 30 * MiB));
	EXPECT_ERR(EINVAL, resize(id, 31 * MiB));
	EXPECT_ERR(EINVAL, resize(id, 0));
	/* Every other block free: shrinking finds them wherever they are. */
	for (i = 0; i < 16; i += 2)
		close(r[i]);
	EXPECT_ERR(EBUSY, resize(id, 14 * MiB));
	EXPECT(!resize(id, 20 * MiB));
	EXPECT_EQ(vm_pool_get(t, id).out_bytes, 20 * MiB);
	EXPECT_EQ(vm_usage(t, 0, id).out_available, 4 * MiB);
	for (i = 0; i < 2; i++)
		r[2 * i] = vm_region(t, id, 2 * MiB);
	EXPECT_ERR(ENOSPC, vm_alloc(t, id, 4096, &(struct hearth_ioc_alloc){}));
	/* Growing fills the holes and goes on behind. */
	EXPECT(!resize(id, 40 * MiB));
	for (i = 2; i < 8; i++)
		r[2 * i] = vm_region(t, id, 2 * MiB);
	close(vm_region(t, id, 8 * MiB));
	EXPECT_ERR(ENOMEM, resize(id, 1ULL << 42));
	for (i = 0; i < 16; i++)
		close(r[i]);
	EXPECT(!resize(id, 2 * MiB));
	close(vm_region(t, id, 2 * MiB));
	EXPECT(!resize(id, 16 * MiB));
	close(vm_region(t, id, 16 * MiB));
	vm_pool_remove(admin, id);
	tear_down();
}

static void half_a_block_free_is_not_given_back(void)
{
	uint32_t id;
	int a, b, c;

	set_up();
	EXPECT(!create("p", HEARTH_POOL_KV, HEARTH_BACKING_BUDDY, 4 * MiB, "", &id));
	a = vm_region(t, id, 1 * MiB);
	b = vm_region(t, id, 2 * MiB);
	c = vm_region(t, id, 1 * MiB);
	close(b);
	/* Two MiB free, but no whole block of it. */
	EXPECT_ERR(EBUSY, resize(id, 2 * MiB));
	EXPECT_EQ(vm_pool_get(t, id).out_bytes, 4 * MiB);
	close(a);
	EXPECT(!resize(id, 2 * MiB));
	close(c);
	vm_pool_remove(admin, id);
	tear_down();
}

static void busy_pools_stay(void)
{
	struct hearth_ioc_pool_remove a = { .size = sizeof(a) };
	uint32_t id;
	int r;

	set_up();
	EXPECT(!create("p", HEARTH_POOL_KV, HEARTH_BACKING_BUDDY, 4 * MiB, "", &id));
	a.pool = id;
	r = vm_region(t, id, 4096);
	EXPECT_ERR(EBUSY, ioctl(admin, HEARTH_IOC_POOL_REMOVE, &a));
	close(r);
	EXPECT(!vm_charge(t, id, 1, 0, NULL));
	EXPECT_ERR(EBUSY, ioctl(admin, HEARTH_IOC_POOL_REMOVE, &a));
	EXPECT(!vm_uncharge(t, id, 1));
	EXPECT(!ioctl(admin, HEARTH_IOC_POOL_REMOVE, &a));
	EXPECT_ERR(ENOENT, ioctl(admin, HEARTH_IOC_POOL_REMOVE, &a));
	EXPECT_ERR(ENOENT, vm_alloc(t, id, 4096, &(struct hearth_ioc_alloc){}));
	tear_down();
}

static bool have_nodes(void)
{
	return access("/proc/device-tree/reserved-memory/hearth-weights", F_OK) == 0;
}

static void reserved_nodes_serve(void)
{
	struct hearth_ioc_pool_get p;
	struct hearth_ioc_alloc a = { .size = sizeof(a), .flags = HEARTH_ALLOC_CONTIG };
	unsigned char *m;
	uint32_t id, id2;
	int pipefd[2];
	struct iovec { void *base; size_t len; } iov;

	if (!have_nodes())
		vm_skip("no reserved-memory nodes on this machine");
	set_up();
	EXPECT(!create("res", HEARTH_POOL_WEIGHTS, HEARTH_BACKING_RESERVED, 0, "hearth-weights", &id));
	p = vm_pool_get(t, id);
	EXPECT_EQ(p.out_bytes, 64 * MiB);
	EXPECT_EQ(p.out_large, 64 * MiB);
	EXPECT_EQ(p.out_backing, HEARTH_BACKING_RESERVED);
	EXPECT_ERR(EEXIST, create("res2", HEARTH_POOL_WEIGHTS, HEARTH_BACKING_RESERVED, 0,
				  "hearth-weights", NULL));
	/* In one piece, mapped, pinned, sealed. */
	EXPECT(!vm_alloc(t, id, 48 * MiB, &a));
	EXPECT_EQ(a.out_extents, 1);
	m = vm_map(a.out_fd, 48 * MiB, PROT_READ | PROT_WRITE);
	memset(m, 0x37, 48 * MiB);
	/* The same answer while its pages are in use. */
	EXPECT_ERR(EEXIST, create("res2", HEARTH_POOL_WEIGHTS, HEARTH_BACKING_RESERVED, 0,
				  "hearth-weights", NULL));
	EXPECT(!pipe(pipefd));
	iov.base = m + 5 * MiB;
	iov.len = PAGE;
	EXPECT_EQ(syscall(SYS_vmsplice, pipefd[1], &iov, 1, 0), (long)PAGE);
	vm_unmap(m, 48 * MiB);
	EXPECT_ERR(EBUSY, vm_seal(a.out_fd));
	close(pipefd[0]);
	close(pipefd[1]);
	EXPECT(!vm_seal(a.out_fd));
	close(a.out_fd);
	/* Shrunk and grown within its node. */
	EXPECT(!resize(id, 32 * MiB));
	EXPECT_ERR(EINVAL, resize(id, 66 * MiB));
	EXPECT(!resize(id, 64 * MiB));
	a.flags = 0;
	EXPECT(!vm_alloc(t, id, 64 * MiB, &a));
	m = vm_map(a.out_fd, 64 * MiB, PROT_READ);
	EXPECT_EQ(m[63 * MiB], 0);
	EXPECT_EQ(m[5 * MiB], 0);
	vm_unmap(m, 64 * MiB);
	close(a.out_fd);
	vm_pool_remove(admin, id);
	/* Again, after it was removed; a part of it; ragged ends are cut off. */
	EXPECT(!create("res", HEARTH_POOL_KV, HEARTH_BACKING_RESERVED, 4 * MiB, "hearth-weights", &id));
	EXPECT(!create("rag", HEARTH_POOL_KV, HEARTH_BACKING_RESERVED, 0, "hearth-ragged", &id2));
	EXPECT_EQ(vm_pool_get(t, id2).out_bytes, 4 * MiB);
	vm_pool_remove(admin, id);
	vm_pool_remove(admin, id2);
	/* Placed by the kernel: size and alignment alone. */
	EXPECT(!create("sized", HEARTH_POOL_KV, HEARTH_BACKING_RESERVED, 0, "hearth-size", &id));
	EXPECT_EQ(vm_pool_get(t, id).out_bytes, 8 * MiB);
	vm_pool_remove(admin, id);
	EXPECT_ERR(EINVAL, create("big", HEARTH_POOL_KV, HEARTH_BACKING_RESERVED, 66 * MiB,
				  "hearth-weights", NULL));
	tear_down();
}

static void wrong_nodes_are_refused(void)
{
	if (!have_nodes())
		vm_skip("no reserved-memory nodes on this machine");
	set_up();
	EXPECT_ERR(ENODEV, create("n", HEARTH_POOL_KV, HEARTH_BACKING_RESERVED, 0, "hearth-nomap", NULL));
	EXPECT_ERR(ENODEV, create("n", HEARTH_POOL_KV, HEARTH_BACKING_RESERVED, 0, "hearth-cma", NULL));
	EXPECT_ERR(ENODEV, create("n", HEARTH_POOL_KV, HEARTH_BACKING_RESERVED, 0, "hearth-tiny", NULL));
	/* And the log says why. */
	EXPECT(vm_logged("node hearth-nomap cannot be a pool: it is no-map"));
	EXPECT(vm_logged("node hearth-cma cannot be a pool: it is reusable (CMA)"));
	EXPECT(vm_logged("node hearth-tiny has no whole block of 2 MiB"));
	tear_down();
}

static const struct vm_case cases[] = {
	CASE(what_cannot_be_made),
	CASE(there_is_an_end_to_pools),
	CASE(memory_comes_and_goes_back),
	CASE(pools_grow_and_shrink),
	CASE(half_a_block_free_is_not_given_back),
	CASE(busy_pools_stay),
	CASE(reserved_nodes_serve),
	CASE(wrong_nodes_are_refused),
};
VM_MAIN(cases)
