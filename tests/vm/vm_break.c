/* SPDX-License-Identifier: MIT */
/*
 * Programs that mean ill: what is sealed is written to in every way that there
 * is, memory is used after it was freed, descriptors hold each other in a
 * circle, root of a container plays the administrator.
 */
#include "vm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>

#define LEN (256 * KiB)

static int admin;
static uint32_t pool;
static atomic_bool stop, sealed;
static atomic_int wrong;        /* line at which a thread saw what must not be */
static atomic_ulong tries;
static int target;              /* the region */

#define WRONG_IF(cond) do { \
	if (cond) \
		wrong = __LINE__; \
} while (0)

/* -- what is sealed stays as it is ---------------------------------------------- */

static void scribble(unsigned char *p)
{
	p[0]++;
	p[LEN - 1]++;
}

/* In a child that is given the writable mapping and ends when it likes. */
static void fork_and_scribble(unsigned char *p)
{
	pid_t pid = fork();

	if (!pid) {
		scribble(p);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static void write_memory_file(unsigned char *p)
{
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	if (fd >= 0) {
		(void)!pwrite(fd, "x", 1, (uintptr_t)p);
		close(fd);
	}
}

/* One way of getting at it; true when memory was mapped for writing. */
static bool attack(unsigned int *seed)
{
	unsigned char *p = MAP_FAILED, *q;
	char c = 'y';
	struct iovec l = { &c, 1 }, r;
	bool wrote = false;
	int fd;

	switch (rand_r(seed) % 7) {
	case 0:
		p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, target, 0);
		if (p == MAP_FAILED)
			return false;
		scribble(p);
		wrote = true;
		break;
	case 1: /* readable, then made writable */
		p = mmap(NULL, LEN, PROT_READ, MAP_SHARED, target, 0);
		if (p == MAP_FAILED)
			return false;
		wrote = !mprotect(p, LEN, PROT_READ | PROT_WRITE);
		if (wrote)
			scribble(p);
		break;
	case 2: /* moved about */
		p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, target, 0);
		if (p == MAP_FAILED)
			return false;
		q = mmap(NULL, LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (q != MAP_FAILED && mremap(p, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, q) == q)
			p = q;
		scribble(p);
		wrote = true;
		break;
	case 3:
		p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, target, 0);
		if (p == MAP_FAILED)
			return false;
		fork_and_scribble(p);
		wrote = true;
		break;
	case 4: /* the dma-buf closed before its mapping is used */
		fd = vm_export(target, HEARTH_EXPORT_WRITE, 0, 0);
		if (fd < 0)
			return false;
		p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
		if (p == MAP_FAILED)
			return false;
		scribble(p);
		wrote = true;
		break;
	case 5: /* past the page tables, as a debugger does, through a mapping for reading */
		fd = vm_share(target, 0);
		if (fd < 0)
			return false;
		p = mmap(NULL, LEN, PROT_READ, MAP_SHARED, fd, 0);
		close(fd);
		if (p == MAP_FAILED)
			return false;
		write_memory_file(p);
		r = (struct iovec){ p, 1 };
		WRONG_IF(process_vm_writev(getpid(), &l, 1, &r, 1, 0) != -1);
		break;
	case 6: /* another order of pages, on the same file */
		p = mmap(NULL, LEN, PROT_READ, MAP_SHARED, target, 0);
		if (p == MAP_FAILED)
			return false;
		syscall(SYS_remap_file_pages, p, PAGE, 0, 3, 0);
		wrote = !mprotect(p, PAGE, PROT_READ | PROT_WRITE);
		if (wrote)
			p[0]++;
		break;
	}
	munmap(p, LEN);
	return wrote;
}

static void *attacker(void *arg)
{
	unsigned int seed = (intptr_t)arg;

	while (!stop) {
		bool before = sealed;
		bool wrote = attack(&seed);

		/* Sealed before it began: nothing for writing may have come of it. */
		WRONG_IF(before && wrote);
		tries++;
		/* Moments in which nobody has it, or no seal would ever come. */
		usleep(rand_r(&seed) % 2000);
	}
	return NULL;
}

static uint64_t sum_of(int region)
{
	uint64_t *p = vm_map(region, LEN, PROT_READ), sum = 0, i;

	for (i = 0; i < LEN / 8; i++)
		sum = sum * 31 + p[i];
	vm_unmap(p, LEN);
	return sum;
}

static void what_is_sealed_stays_as_it_is(void)
{
	pthread_t th[2];
	unsigned long n;
	uint64_t sum;
	int t, i, k;

	admin = vm_admin();
	t = vm_tenant("sealer");
	pool = vm_pool(admin, "seal", HEARTH_POOL_KV, 2 * MiB);
	for (k = 0; k < 6; k++) {
		target = vm_region(t, pool, LEN);
		stop = sealed = false;
		for (i = 0; i < 2; i++)
			EXPECT(!pthread_create(&th[i], NULL, attacker, (void *)(intptr_t)(k * 7 + i + 1)));
		/* A refusal leaves it as open to writers as it was. */
		UNTIL(!vm_seal(target));
		sum = sum_of(target);
		sealed = true;
		n = tries;
		UNTIL(tries >= n + 12);
		EXPECT_EQ(sum_of(target), sum);
		stop = true;
		for (i = 0; i < 2; i++)
			pthread_join(th[i], NULL);
		EXPECT_EQ(sum_of(target), sum);
		EXPECT_EQ(wrong, 0);
		close(target);
		vm_pool_idle(admin, pool);
	}
	close(t);
	vm_pool_remove(admin, pool);
	close(admin);
}

/* -- memory that has gone to another ---------------------------------------------- */

static int evil;

/*
 * Gets memory, reaches it in several ways, lets go of them in any order, and
 * writes through what is left all the while.
 */
static void *use_after_free(void *arg)
{
	unsigned int seed = (intptr_t)arg;

	while (!stop) {
		struct hearth_ioc_alloc a = { .size = sizeof(a) };
		unsigned char *p[3] = { MAP_FAILED, MAP_FAILED, MAP_FAILED }, byte = 0xe0 | rand_r(&seed) % 16;
		int fd[4] = { -1, -1, -1, -1 }, pp[2] = { -1, -1 }, i, k;
		struct iovec iov;

		if (vm_alloc(evil, pool, LEN, &a))
			continue;
		fd[0] = a.out_fd;
		fd[1] = vm_export(fd[0], HEARTH_EXPORT_WRITE, 0, 0);
		fd[2] = vm_export(fd[0], HEARTH_EXPORT_WRITE, 0, LEN / 2);
		fd[3] = vm_share(fd[0], HEARTH_SHARE_WRITE);
		p[0] = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd[0], 0);
		if (fd[1] >= 0)
			p[1] = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd[1], 0);
		if (fd[3] >= 0)
			p[2] = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd[3], 0);
		/* A page of it is held from outside for a while. */
		if (p[0] != MAP_FAILED && !pipe2(pp, O_CLOEXEC | O_NONBLOCK)) {
			iov = (struct iovec){ p[0] + PAGE * (rand_r(&seed) % 64), PAGE };
			(void)!vmsplice(pp[1], &iov, 1, SPLICE_F_NONBLOCK);
		}
		for (i = 0; i < 12; i++) {
			k = rand_r(&seed) % 8;
			if (k < 4) {
				close(fd[k]);
				fd[k] = -1;
			} else if (k < 7 && p[k - 4] != MAP_FAILED) {
				if (rand_r(&seed) % 2) {
					munmap(p[k - 4], LEN);
					p[k - 4] = MAP_FAILED;
				}
			}
			for (k = 0; k < 3; k++) {
				if (p[k] != MAP_FAILED)
					memset(p[k], byte, LEN);
			}
			tries++;
		}
		for (k = 0; k < 4; k++)
			close(fd[k]);
		for (k = 0; k < 3; k++) {
			if (p[k] == MAP_FAILED)
				continue;
			memset(p[k], byte, LEN);
			munmap(p[k], LEN);
		}
		close(pp[0]);
		close(pp[1]);
	}
	return NULL;
}

/* @bytes of it are all @c. */
static bool all_are(const unsigned char *p, uint64_t bytes, unsigned char c)
{
	return *p == c && !memcmp(p, p + 1, bytes - 1);
}

static void what_was_freed_is_out_of_reach(void)
{
	unsigned char *p;
	pthread_t th[2];
	int victim, i, r;

	admin = vm_admin();
	evil = vm_tenant("evil");
	victim = vm_tenant("victim");
	/* Small, so that memory comes back soon. */
	pool = vm_pool(admin, "reuse", HEARTH_POOL_KV, 2 * MiB);
	EXPECT(!vm_budget(admin, "victim", pool, HEARTH_SET_MIN, 4 * LEN, 0, 0, 0, NULL));
	stop = false;
	tries = 0;
	for (i = 0; i < 2; i++)
		EXPECT(!pthread_create(&th[i], NULL, use_after_free, (void *)(intptr_t)(i + 11)));
	for (i = 0; i < 60 || tries < 500; i++) {
		struct hearth_ioc_alloc a = { .size = sizeof(a) };
		unsigned long n = tries;

		/* Quarantine may hold what its guarantee is of for a while. */
		a.deadline = VM_LATER;
		EXPECT(!vm_alloc(victim, pool, (1 + i % 4) * LEN, &a));
		r = a.out_fd;
		p = vm_map(r, (1 + i % 4) * LEN, PROT_READ | PROT_WRITE);
		EXPECT(all_are(p, (1 + i % 4) * LEN, 0));
		memset(p, 0x11, (1 + i % 4) * LEN);
		if (i % 8 == 0)
			UNTIL(tries > n + 4);
		EXPECT(all_are(p, (1 + i % 4) * LEN, 0x11));
		vm_unmap(p, (1 + i % 4) * LEN);
		close(r);
	}
	stop = true;
	for (i = 0; i < 2; i++)
		pthread_join(th[i], NULL);
	close(evil);
	close(victim);
	vm_pool_remove(admin, pool);
	close(admin);
}

/* -- circles -------------------------------------------------------------------- */

/* Any socket that ends makes the kernel look for circles. */
static bool idle_after_a_look(void)
{
	struct hearth_ioc_pool_get p;
	int sv[2];

	EXPECT(!socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	close(sv[0]);
	close(sv[1]);
	p = vm_pool_get(admin, pool);
	return !p.out_charged && !p.out_regions;
}

/* Regions and connections in flight in sockets that are in flight in each other. */
static void descriptors_in_a_circle(void)
{
	struct hearth_ioc_tenant_get g = {
		.size = sizeof(g), .flags = HEARTH_GET_BY_NAME, .name = "circle",
	};
	int i, sv[2], t, r, buf;

	admin = vm_admin();
	pool = vm_pool(admin, "circle", HEARTH_POOL_KV, 4 * MiB);
	for (i = 0; i < 8; i++) {
		t = vm_tenant("circle");
		EXPECT(!vm_charge(t, pool, 4096, 0, NULL));
		r = vm_region(t, pool, 64 * KiB);
		buf = vm_export(r, HEARTH_EXPORT_WRITE, 0, 0);
		EXPECT(buf >= 0 && !socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
		EXPECT(!vm_send_fd(sv[0], r) && !vm_send_fd(sv[0], t) && !vm_send_fd(sv[1], buf));
		EXPECT(!vm_send_fd(sv[0], sv[0]) && !vm_send_fd(sv[0], sv[1]) && !vm_send_fd(sv[1], sv[0]));
		close(r);
		close(t);
		close(buf);
		EXPECT(vm_pool_get(admin, pool).out_charged);
		close(sv[0]);
		close(sv[1]);
	}
	UNTIL(idle_after_a_look());
	UNTIL(ioctl(admin, HEARTH_IOC_TENANT_GET, &g) && errno == ENOENT);
	vm_pool_remove(admin, pool);
	close(admin);
}

/* -- a container's root ------------------------------------------------------------ */

static void root_of_a_container(void *arg)
{
	struct hearth_ioc_admin ad = { .size = sizeof(ad) };
	struct hearth_ioc_join j = { .size = sizeof(j), .name = "theirs" };
	int fd = *(int *)arg, maps;

	EXPECT(!setresgid(1000, 1000, 1000) && !setresuid(1000, 1000, 1000));
	if (unshare(CLONE_NEWUSER)) {
		if (errno == EINVAL || errno == EPERM)
			vm_skip("no user namespaces");
		EXPECT(!"unshare");
	}
	maps = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	if (maps >= 0 && write(maps, "0 1000 1", 8) == 8)
		EXPECT_EQ(geteuid(), 0);
	/* All capabilities, but of this namespace. */
	EXPECT_ERR(EPERM, ioctl(fd, HEARTH_IOC_ADMIN, &ad));
	EXPECT_ERR(EPERM, vm_budget(fd, "theirs", pool, HEARTH_SET_MAX, 0, 0, 0, 1, NULL));
	/* User 1001's tenant is not joined by 1000, who calls himself 0; a tenant of 1000 is. */
	EXPECT_ERR(EACCES, ioctl(fd, HEARTH_IOC_JOIN, &j));
	memset(j.name, 0, sizeof(j.name));
	strcpy(j.name, "ours");
	EXPECT(!ioctl(fd, HEARTH_IOC_JOIN, &j));
}

static void root_of_a_container_is_nobody(void)
{
	struct hearth_budget_entry e[2] = {
		{ .size = sizeof(*e), .mask = HEARTH_SET_CREATE | HEARTH_SET_UID, .tenant = "theirs", .uid = 1001 },
		{ .size = sizeof(*e), .mask = HEARTH_SET_CREATE | HEARTH_SET_UID, .tenant = "ours", .uid = 1000 },
	};
	struct hearth_ioc_budget_set s = {
		.size = sizeof(s), .entries = (uintptr_t)e, .count = 2, .stride = sizeof(*e),
	};
	int fd, i, ret;

	admin = vm_admin();
	pool = vm_pool(admin, "userns", HEARTH_POOL_ACCOUNT, 1000);
	EXPECT(!ioctl(admin, HEARTH_IOC_BUDGET_SET, &s));
	fd = vm_open();
	ret = vm_wait(vm_fork(root_of_a_container, &fd));
	EXPECT(!ret || ret == 77);
	close(fd);
	for (i = 0; i < 2; i++) {
		struct hearth_ioc_tenant_get g = { .size = sizeof(g), .flags = HEARTH_GET_BY_NAME };
		struct hearth_ioc_tenant_remove r = { .size = sizeof(r) };

		strcpy(g.name, e[i].tenant);
		EXPECT(!ioctl(admin, HEARTH_IOC_TENANT_GET, &g));
		r.tenant = g.tenant;
		EXPECT(!ioctl(admin, HEARTH_IOC_TENANT_REMOVE, &r));
	}
	vm_pool_remove(admin, pool);
	close(admin);
	if (ret == 77)
		vm_skip("this kernel has no user namespaces");
}

static const struct vm_case cases[] = {
	CASE(what_is_sealed_stays_as_it_is),
	CASE(what_was_freed_is_out_of_reach),
	CASE(descriptors_in_a_circle),
	CASE(root_of_a_container_is_nobody),
};
VM_MAIN(cases)
