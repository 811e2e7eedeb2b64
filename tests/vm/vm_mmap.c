/* SPDX-License-Identifier: MIT */
/*
 * Mappings, and what others do with them: get_user_pages in all its forms is
 * what CUDA's registration of host memory ends in, so each form that needs no
 * GPU is tried: O_DIRECT, io_uring's registered buffers (the rule for long-term
 * pins), process_vm_readv and writev, vmsplice.
 */
#include "vm.h"

#include <linux/fs.h>
#include <linux/io_uring.h>
#include <setjmp.h>
#include <sys/resource.h>
#include <sys/uio.h>

static int admin, t, region;
static uint32_t pool;
static unsigned char *p;
#define LEN (4 * MiB)

static void set_up(void)
{
	admin = vm_admin();
	t = vm_tenant("map");
	pool = vm_pool(admin, "map", HEARTH_POOL_KV, 16 * MiB);
	region = vm_region(t, pool, LEN);
	p = vm_map(region, LEN, PROT_READ | PROT_WRITE);
}

static void tear_down(void)
{
	if (p)
		vm_unmap(p, LEN);
	close(region);
	close(t);
	vm_pool_remove(admin, pool);
	close(admin);
}

static void *try_map(int fd, uint64_t len, int prot, int flags, uint64_t off)
{
	return mmap(NULL, len, prot, flags, fd, off);
}

#define REFUSED(want, ...) do { \
	EXPECT(try_map(__VA_ARGS__) == MAP_FAILED); \
	EXPECT_EQ(errno, want); \
} while (0)

static void what_cannot_be_mapped(void)
{
	int rw = PROT_READ | PROT_WRITE;
	void *q;

	set_up();
	REFUSED(EACCES, region, LEN, rw, MAP_PRIVATE, 0);
	REFUSED(EACCES, region, LEN, PROT_READ, MAP_PRIVATE, 0);
	q = try_map(region, LEN, PROT_READ | PROT_EXEC, MAP_SHARED, 0);
	EXPECT(q == MAP_FAILED && (errno == EACCES || errno == EPERM));
	REFUSED(EINVAL, region, LEN + PAGE, rw, MAP_SHARED, 0);
	REFUSED(EINVAL, region, LEN, rw, MAP_SHARED, PAGE);
	REFUSED(EINVAL, region, PAGE, rw, MAP_SHARED, LEN);
	REFUSED(EINVAL, region, PAGE, rw, MAP_SHARED, 1ULL << 40);
	q = try_map(region, PAGE, rw, MAP_SHARED, LEN - PAGE);
	EXPECT(q != MAP_FAILED);
	EXPECT_ERR(EACCES, mprotect(q, PAGE, PROT_READ | PROT_EXEC));
	/* It cannot grow, and a connection is no region. */
	EXPECT(mremap(q, PAGE, 2 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED);
	munmap(q, PAGE);
	q = try_map(t, PAGE, rw, MAP_SHARED, 0);
	EXPECT(q == MAP_FAILED && errno == ENODEV);
	tear_down();
}

static void fork_shares(void)
{
	pid_t pid;

	set_up();
	p[0] = 1;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (p[0] != 1)
			_exit(1);
		p[0] = 2;
		p[LEN - 1] = 3;
		_exit(0);
	}
	EXPECT_EQ(vm_wait(pid), 0);
	EXPECT_EQ(p[0], 2);
	EXPECT_EQ(p[LEN - 1], 3);
	tear_down();
}

static void dontneed_and_touch(void)
{
	uint64_t i;

	set_up();
	for (i = 0; i < LEN; i += PAGE)
		*(uint64_t *)(p + i) = i ^ 0x1234;
	EXPECT(!madvise(p, LEN, MADV_DONTNEED));
	for (i = 0; i < LEN; i += PAGE)
		EXPECT_EQ(*(uint64_t *)(p + i), i ^ 0x1234);
	/* Through a second mapping of a part, too. */
	EXPECT(!madvise(p + PAGE, PAGE, MADV_DONTNEED));
	*(uint64_t *)(p + PAGE) = 99;
	EXPECT_EQ(*(uint64_t *)(p + PAGE), 99);
	tear_down();
}

static void moves_and_splits(void)
{
	unsigned char *q;

	set_up();
	memset(p, 7, LEN);
	/* To where there is room for sure. */
	q = mmap(NULL, LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(q != MAP_FAILED);
	q = mremap(p, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, q);
	EXPECT(q != MAP_FAILED);
	EXPECT_EQ(q[LEN - 1], 7);
	/* A hole in the middle, and a part read-only. */
	EXPECT(!munmap(q + 1 * MiB, 1 * MiB));
	EXPECT(!mprotect(q + 3 * MiB, 64 * KiB, PROT_READ));
	q[0] = 8;
	q[2 * MiB] = 9;
	EXPECT_EQ(q[3 * MiB], 7);
	EXPECT_ERR(EBUSY, vm_seal(region));
	EXPECT(!munmap(q, LEN));
	EXPECT(!vm_seal(region));
	p = NULL;
	tear_down();
}

static void process_vm(void)
{
	char *buf = malloc(1 * MiB);
	struct iovec l = { buf, 1 * MiB }, r = { p, 1 * MiB };

	set_up();
	r.iov_base = p + 1 * MiB;
	memset(buf, 0x21, 1 * MiB);
	EXPECT_EQ(process_vm_writev(getpid(), &l, 1, &r, 1, 0), 1 * MiB);
	EXPECT_EQ(p[1 * MiB], 0x21);
	EXPECT_EQ(p[2 * MiB - 1], 0x21);
	memset(p + 1 * MiB, 0x22, 1 * MiB);
	EXPECT_EQ(process_vm_readv(getpid(), &l, 1, &r, 1, 0), 1 * MiB);
	EXPECT_EQ(buf[1 * MiB - 1], 0x22);
	/* Read-only: may be read, not written. */
	vm_unmap(p, LEN);
	EXPECT(!vm_seal(region));
	p = vm_map(region, LEN, PROT_READ);
	r.iov_base = p + 1 * MiB;
	EXPECT_EQ(process_vm_readv(getpid(), &l, 1, &r, 1, 0), 1 * MiB);
	EXPECT_EQ(buf[5], 0x22);
	EXPECT_ERR(EFAULT, process_vm_writev(getpid(), &l, 1, &r, 1, 0));
	free(buf);
	tear_down();
}

/* A block device whose blocks are memory: what O_DIRECT wants. */
static int disk(void)
{
	int fd = open("/dev/ram0", O_RDWR | O_DIRECT | O_CLOEXEC);

	if (fd < 0)
		vm_skip("this kernel has no ram disk (brd)");
	return fd;
}

static void o_direct(void)
{
	char *buf = aligned_alloc(4096, 1 * MiB);
	int d = disk();
	size_t i;

	set_up();
	for (i = 0; i < 1 * MiB; i++)
		buf[i] = i * 7 + i / 4096;
	EXPECT_EQ(pwrite(d, buf, 1 * MiB, 0), 1 * MiB);
	/* From the device straight into the mapping. */
	EXPECT_EQ(pread(d, p + 1 * MiB, 1 * MiB, 0), 1 * MiB);
	EXPECT(!memcmp(p + 1 * MiB, buf, 1 * MiB));
	/* And out of it, also through a sealed one. */
	memset(p, 0x31, 1 * MiB);
	vm_unmap(p, LEN);
	UNTIL(!vm_seal(region));
	EXPECT(vm_region_get(region).out_flags & HEARTH_REGION_SEALED);
	p = vm_map(region, LEN, PROT_READ);
	EXPECT_EQ(pwrite(d, p, 1 * MiB, 1 * MiB), 1 * MiB);
	EXPECT_EQ(pread(d, buf, 1 * MiB, 1 * MiB), 1 * MiB);
	EXPECT_EQ(buf[1 * MiB - 1], 0x31);
	EXPECT_ERR(EFAULT, pread(d, p, 4096, 0));
	EXPECT_EQ(p[0], 0x31);
	free(buf);
	close(d);
	tear_down();
}

static int ring_new(struct io_uring_params *params)
{
	memset(params, 0, sizeof(*params));
	return syscall(SYS_io_uring_setup, 4, params);
}

static int ring_buffers(int ring, void *base, size_t len)
{
	struct iovec iov = { base, len };

	return syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &iov, 1);
}

/* One operation at the file's beginning; its result. */
static int ring_io(int ring, struct io_uring_params *pr, int op, int fd, void *mem, unsigned int len)
{
	size_t sq_len = pr->sq_off.array + pr->sq_entries * 4;
	size_t cq_len = pr->cq_off.cqes + pr->cq_entries * sizeof(struct io_uring_cqe);
	char *sq = mmap(NULL, sq_len, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	char *cq = mmap(NULL, cq_len, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_CQ_RING);
	struct io_uring_sqe *sqe = mmap(NULL, pr->sq_entries * sizeof(*sqe), PROT_READ | PROT_WRITE,
					MAP_SHARED, ring, IORING_OFF_SQES);
	struct io_uring_cqe *cqe;
	unsigned int head, tail;
	int ret;

	EXPECT(sq != MAP_FAILED && cq != MAP_FAILED && sqe != MAP_FAILED);
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = op;
	sqe->fd = fd;
	sqe->addr = (uintptr_t)mem;
	sqe->len = len;
	tail = *(unsigned int *)(sq + pr->sq_off.tail);
	((unsigned int *)(sq + pr->sq_off.array))[tail & (pr->sq_entries - 1)] = 0;
	__atomic_store_n((unsigned int *)(sq + pr->sq_off.tail), tail + 1, __ATOMIC_RELEASE);
	EXPECT_EQ(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0), 1);
	head = *(unsigned int *)(cq + pr->cq_off.head);
	cqe = (struct io_uring_cqe *)(cq + pr->cq_off.cqes) + (head & (pr->cq_entries - 1));
	ret = cqe->res;
	__atomic_store_n((unsigned int *)(cq + pr->cq_off.head), head + 1, __ATOMIC_RELEASE);
	munmap(sq, sq_len);
	munmap(cq, cq_len);
	munmap(sqe, pr->sq_entries * sizeof(*sqe));
	return ret;
}

static void io_uring_fixed_buffers(void)
{
	struct io_uring_params pr;
	char *buf = aligned_alloc(4096, 64 * KiB);
	int ring, d = disk();

	set_up();
	ring = ring_new(&pr);
	if (ring < 0)
		vm_skip("no io_uring: %s", strerror(errno));
	if (ring_buffers(ring, p, LEN)) {
		/* 5.10 registers no file-backed memory at all, shmem neither. */
		if (errno == EOPNOTSUPP) {
			close(ring);
			tear_down();
			vm_skip("this kernel registers no file-backed memory");
		}
		vm_fail(__FILE__, __LINE__, "register: %s", strerror(errno));
	}
	memset(buf, 0x61, 64 * KiB);
	EXPECT_EQ(pwrite(d, buf, 64 * KiB, 0), 64 * KiB);
	EXPECT_EQ(ring_io(ring, &pr, IORING_OP_READ_FIXED, d, p + 1 * MiB, 64 * KiB), 64 * KiB);
	EXPECT_EQ(p[1 * MiB + 64 * KiB - 1], 0x61);
	/* While it is registered it cannot be sealed, and closing quarantines it. */
	vm_unmap(p, LEN);
	p = NULL;
	EXPECT_ERR(EBUSY, vm_seal(region));
	close(region);
	EXPECT_EQ(vm_pool_get(admin, pool).out_quarantined, LEN);
	EXPECT_EQ(vm_pool_get(admin, pool).out_charged, LEN);
	EXPECT_EQ(vm_usage(t, 0, pool).out_current, LEN);
	{
		struct hearth_ioc_pool_remove rm = { .size = sizeof(rm), .pool = pool };
		struct hearth_ioc_alloc a = {};

		EXPECT_ERR(EBUSY, ioctl(admin, HEARTH_IOC_POOL_REMOVE, &rm));
		/* What is held is given to nobody. */
		EXPECT_ERR(ENOSPC, vm_alloc(t, pool, 16 * MiB, &a));
		EXPECT(!vm_alloc(t, pool, 12 * MiB, &a));
		close(a.out_fd);
		/* And comes back to one who waits for it. */
		close(ring);
		a.deadline = VM_LATER;
		EXPECT(!vm_alloc(t, pool, 16 * MiB, &a));
		close(a.out_fd);
	}
	free(buf);
	close(d);
	region = -1;
	tear_down();
}

/*
 * Registering is pinning for writing, whatever is done then: of a sealed mapping
 * it is refused, and holds nothing. An ordinary write takes from it.
 */
static void io_uring_and_a_sealed_mapping(void)
{
	struct io_uring_params pr;
	char *buf = aligned_alloc(4096, 64 * KiB);
	int ring, d = disk(), ret;

	set_up();
	memset(p, 0x62, LEN);
	vm_unmap(p, LEN);
	EXPECT(!vm_seal(region));
	p = vm_map(region, LEN, PROT_READ);
	ring = ring_new(&pr);
	if (ring < 0)
		vm_skip("no io_uring: %s", strerror(errno));
	EXPECT(ring_buffers(ring, p, LEN) && (errno == EFAULT || errno == EOPNOTSUPP));
	EXPECT_EQ(ring_io(ring, &pr, IORING_OP_WRITE, d, p + 1 * MiB, 64 * KiB), 64 * KiB);
	EXPECT_EQ(pread(d, buf, 64 * KiB, 0), 64 * KiB);
	EXPECT_EQ(buf[64 * KiB - 1], 0x62);
	/* The block layer of 5.10 says EIO to those who do not wait for it. */
	ret = ring_io(ring, &pr, IORING_OP_READ, d, p, 4096);
	EXPECT(ret == -EFAULT || ret == -EIO);
	EXPECT_EQ(p[0], 0x62);
	close(ring);
	free(buf);
	close(d);
	tear_down();
}

static void only_held_blocks_are_quarantined(void)
{
	int pipefd[2];
	struct iovec iov;
	char back[4096];

	set_up();
	memset(p, 0x41, LEN);
	EXPECT(!pipe(pipefd));
	iov = (struct iovec){ p + 2 * MiB + 3 * PAGE, PAGE };
	EXPECT_EQ(syscall(SYS_vmsplice, pipefd[1], &iov, 1, 0), PAGE);
	vm_unmap(p, LEN);
	p = NULL;
	close(region);
	/* One page of the second block: the first block is free at once. */
	EXPECT_EQ(vm_pool_get(admin, pool).out_quarantined, 2 * MiB);
	EXPECT_EQ(vm_usage(t, 0, pool).out_current, 2 * MiB);
	EXPECT_EQ(read(pipefd[0], back, PAGE), PAGE);
	EXPECT_EQ(back[9], 0x41);
	vm_pool_idle(admin, pool);
	region = -1;
	tear_down();
}

static void vmsplice_from_a_sealed_mapping(void)
{
	int pipefd[2];
	struct iovec iov;
	char back[4096];

	set_up();
	memset(p, 0x42, LEN);
	vm_unmap(p, LEN);
	EXPECT(!vm_seal(region));
	p = vm_map(region, LEN, PROT_READ);
	EXPECT(!pipe(pipefd));
	iov = (struct iovec){ p + 7 * PAGE, PAGE };
	EXPECT_EQ(syscall(SYS_vmsplice, pipefd[1], &iov, 1, 0), PAGE);
	EXPECT_EQ(read(pipefd[0], back, PAGE), PAGE);
	EXPECT_EQ(back[4095], 0x42);
	tear_down();
}

/* The mapping counts as file memory of the process that has it. */
static void mapped_memory_is_rss_file(void)
{
	volatile unsigned char *q;
	char line[256];
	long kb = -1;
	FILE *f;
	int i;

	set_up();
	/* The kernel adds a task's count up only every 64 faults. */
	q = mmap(NULL, 256 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < 256; i++)
		q[i * PAGE] = 1;
	munmap((void *)q, 256 * PAGE);
	f = fopen("/proc/self/status", "r");
	EXPECT(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "RssFile: %ld", &kb);
	fclose(f);
	if (kb < (long)(LEN / KiB))
		vm_fail(__FILE__, __LINE__, "RssFile is %ld kB", kb);
	tear_down();
}

/* Through a node that is not on devtmpfs: the region has a file of its own. */
static void another_node_of_the_device(void)
{
	struct hearth_ioc_join j = { .size = sizeof(j), .flags = HEARTH_JOIN_CREATE, .name = "node" };
	struct hearth_ioc_alloc a = {};
	struct io_uring_params pr;
	struct stat st;
	int fd, ring;
	void *q;

	set_up();
	EXPECT(!stat("/dev/hearth", &st));
	EXPECT(!mknod("/tmp/hearth", S_IFCHR | 0600, st.st_rdev));
	fd = open("/tmp/hearth", O_RDWR | O_CLOEXEC);
	EXPECT(fd >= 0);
	EXPECT(!ioctl(fd, HEARTH_IOC_JOIN, &j));
	EXPECT(!vm_alloc(fd, pool, 64 * KiB, &a));
	q = vm_map(a.out_fd, 64 * KiB, PROT_READ | PROT_WRITE);
	ring = ring_new(&pr);
	if (ring >= 0)
		EXPECT(!ring_buffers(ring, q, 64 * KiB) || errno == EOPNOTSUPP);
	close(ring);
	vm_unmap(q, 64 * KiB);
	close(a.out_fd);
	close(fd);
	unlink("/tmp/hearth");
	tear_down();
}

/* What a region's file cannot do. */
static void a_region_is_only_for_mapping(void)
{
	char path[64], c;
	struct stat st;
	int pp[2];

	set_up();
	EXPECT(read(region, &c, 1) < 0);
	EXPECT(write(region, "x", 1) < 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", region);
	EXPECT(open(path, O_RDWR) < 0);
	EXPECT(open(path, O_RDONLY) < 0);
	/* Nor made longer, shorter or holed behind the module's back. */
	EXPECT(!pipe(pp) && write(pp[1], "x", 1) == 1);
	EXPECT(ftruncate(region, PAGE) < 0);
	EXPECT(ftruncate(region, 2 * LEN) < 0);
	EXPECT(fallocate(region, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE) < 0);
	EXPECT(madvise(p, PAGE, MADV_REMOVE) < 0);
	EXPECT(splice(pp[0], NULL, region, NULL, 1, 0) < 0);
	EXPECT(splice(region, NULL, pp[1], NULL, 1, 0) < 0);
	EXPECT(copy_file_range(region, NULL, region, &(loff_t){ PAGE }, PAGE, 0) < 0);
	EXPECT(!fstat(region, &st) && st.st_size == LEN);
	/* What its mode and flags are set to changes nothing of that. */
	fchmod(region, 0777);
	fcntl(region, F_SETFL, O_APPEND | O_DIRECT | O_NONBLOCK);
	EXPECT(open(path, O_RDWR) < 0 && write(region, "x", 1) < 0);
	p[LEN - 1] = 3;
	EXPECT(!madvise(p, LEN, MADV_DONTNEED));
	EXPECT_EQ(p[LEN - 1], 3);
	/* Locked, kept out of dumps or moved out of the way: the pages stay where they are. */
	EXPECT(!mlock(p, LEN) && !munlock(p, LEN));
	madvise(p, LEN, MADV_DODUMP);
	madvise(p, LEN, 20 /* COLD */);
	madvise(p, LEN, 21 /* PAGEOUT */);
	madvise(p, LEN, 12 /* MERGEABLE */);
	madvise(p, LEN, 14 /* HUGEPAGE */);
	EXPECT_EQ(p[LEN - 1], 3);
	close(pp[0]);
	close(pp[1]);
	tear_down();
}

static const struct vm_case cases[] = {
	CASE(what_cannot_be_mapped),
	CASE(fork_shares),
	CASE(dontneed_and_touch),
	CASE(moves_and_splits),
	CASE(process_vm),
	CASE(o_direct),
	CASE(io_uring_fixed_buffers),
	CASE(io_uring_and_a_sealed_mapping),
	CASE(only_held_blocks_are_quarantined),
	CASE(vmsplice_from_a_sealed_mapping),
	CASE(mapped_memory_is_rss_file),
	CASE(another_node_of_the_device),
	CASE(a_region_is_only_for_mapping),
};
VM_MAIN(cases)
