/* SPDX-License-Identifier: MIT */
/*
 * What takes one tenant long (a seal that waits for pages, a mapping of much
 * memory) holds up nobody else: not a charge, not a look at that very region.
 * Nothing is timed: calls of others are begun and ended while one slow call
 * goes on.
 */
#include "vm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>

#define BIG (128 * MiB)

static int admin, slow, other, region, reader;
static uint32_t pool;
static uint64_t id;
static unsigned char *p;
static atomic_uint calls;       /* odd while the slow call goes on */
static atomic_bool stop, wrong;  /* the thread cannot end the case itself */
static pthread_t th;

static void set_up(uint64_t bytes)
{
	admin = vm_admin();
	slow = vm_tenant("slow");
	other = vm_tenant("quick");
	pool = vm_pool(admin, "stall", HEARTH_POOL_KV, bytes + 4 * MiB);
	region = vm_region(slow, pool, bytes);
	id = vm_region_get(region).region;
	EXPECT(!vm_keep(region, "slow-one", 1));
	stop = wrong = false;
	calls = 0;
}

static void end_of_the_slow(void)
{
	stop = true;
	pthread_join(th, NULL);
	EXPECT(!wrong);
}

static void tear_down(void)
{
	struct hearth_ioc_drop d = { .size = sizeof(d), .region = id };

	EXPECT(!ioctl(admin, HEARTH_IOC_DROP, &d));
	close(region);
	close(slow);
	close(other);
	vm_pool_remove(admin, pool);
	close(admin);
}

/* Everything that another tenant, or a look at the region, may have to wait in. */
static void others_do_what_they_do(void)
{
	struct hearth_ioc_region_get g = { .size = sizeof(g), .region = id };
	struct hearth_ioc_state s = { .size = sizeof(s) };
	char table[4096];
	int fd;

	EXPECT(!vm_charge(other, pool, MiB, 0, NULL) && !vm_uncharge(other, pool, MiB));
	EXPECT(!ioctl(other, HEARTH_IOC_REGION_GET, &g));
	EXPECT(!ioctl(other, HEARTH_IOC_STATE, &s));
	fd = vm_find(slow, pool, "slow-one", 1, 0, NULL);
	EXPECT(fd >= 0);
	close(fd);
	EXPECT(!vm_offer(region) && vm_take_back(region) == 1);
	fd = open("/sys/kernel/debug/hearth/regions", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && read(fd, table, sizeof(table)) > 0)
		;
	close(fd);
}

/* A pipe holds a page: every seal waits for it as long as seals do, and is refused. */
static void *seal_again_and_again(void *arg)
{
	while (!stop) {
		(void)*(volatile unsigned char *)p;
		calls++;
		wrong |= !vm_seal(region) || errno != EBUSY;
		calls++;
	}
	return NULL;
}

/* A seal is past its beginning: it has cut this mapping off, and waits now. */
static bool sealing(void)
{
	unsigned char in_core = 1;

	return (calls & 1) && !mincore(p, PAGE, &in_core) && !in_core;
}

static int pipefd[2];

static void set_up_sealing(void)
{
	struct iovec iov;

	set_up(4 * MiB);
	reader = vm_share(region, 0);
	p = vm_map(reader, 4 * MiB, PROT_READ);
	EXPECT(!pipe(pipefd));
	iov = (struct iovec){ p + PAGE, PAGE };
	EXPECT_EQ(vmsplice(pipefd[1], &iov, 1, 0), (long)PAGE);
	EXPECT(!pthread_create(&th, NULL, seal_again_and_again, NULL));
}

static void tear_down_sealing(void)
{
	end_of_the_slow();
	close(pipefd[0]);
	close(pipefd[1]);
	vm_unmap(p, 4 * MiB);
	close(reader);
	/* Nothing holds it any more: it was never the seal itself. */
	EXPECT(!vm_seal(region));
}

static bool in_one_seal(void (*fn)(void), int times)
{
	unsigned int call = calls;

	if (!sealing())
		return false;
	while (times--)
		fn();
	return call == calls && sealing();
}

static void a_seal_that_waits_holds_up_nobody(void)
{
	set_up_sealing();
	UNTIL(in_one_seal(others_do_what_they_do, 10));
	tear_down_sealing();
	tear_down();
}

static int want_errno;

/* More than is free, so that what is offered would have to be taken. */
static void charge_what_is_offered(void)
{
	want_errno = vm_charge(other, pool, 6 * MiB, 0, NULL) ? errno : 0;
}

/* Nor does a charge that could have the region's memory wait: it looks elsewhere. */
static void what_is_being_sealed_is_not_taken(void)
{
	set_up_sealing();
	EXPECT(!vm_offer(region));
	UNTIL(in_one_seal(charge_what_is_offered, 1));
	EXPECT_EQ(want_errno, ENOSPC);
	EXPECT_EQ(vm_take_back(region), 1);
	EXPECT_EQ(vm_usage(other, 0, pool).out_current, 0);
	tear_down_sealing();
	/* After it, it is. */
	EXPECT(!vm_offer(region));
	EXPECT(!vm_charge(other, pool, 6 * MiB, 0, NULL) && !vm_uncharge(other, pool, 6 * MiB));
	EXPECT_EQ(vm_take_back(region), 0);
	close(region);
	close(slow);
	close(other);
	vm_pool_remove(admin, pool);
	close(admin);
}

static void seal_to_be_killed(void *arg)
{
	vm_seal(region);
	_exit(3);
}

/* Killed while it waits: it is not sealed, and nothing of it is left shut. */
static void a_seal_that_is_killed(void)
{
	unsigned char in_core, *w;
	struct iovec iov;
	pid_t pid;

	set_up(4 * MiB);
	reader = vm_share(region, 0);
	p = vm_map(reader, 4 * MiB, PROT_READ);
	EXPECT(!pipe(pipefd));
	iov = (struct iovec){ p + PAGE, PAGE };
	EXPECT_EQ(vmsplice(pipefd[1], &iov, 1, 0), (long)PAGE);
	/* Until one was killed in time: it has begun, and did not get to its end. */
	do {
		(void)*(volatile unsigned char *)p;
		pid = vm_fork(seal_to_be_killed, NULL);
		UNTIL(!mincore(p, PAGE, &in_core) && !in_core);
		kill(pid, SIGKILL);
	} while (vm_wait(pid) != 128 + SIGKILL);
	EXPECT(!(vm_region_get(region).out_flags & HEARTH_REGION_SEALED));
	w = vm_map(region, 4 * MiB, PROT_READ | PROT_WRITE);
	w[0] = 7;
	EXPECT_EQ(p[0], 7);
	vm_unmap(w, 4 * MiB);
	close(pipefd[0]);
	close(pipefd[1]);
	EXPECT(!vm_seal(region));
	EXPECT_EQ(p[0], 7);
	vm_unmap(p, 4 * MiB);
	close(reader);
	tear_down();
}

static void *map_again_and_again(void *arg)
{
	void *m;

	while (!stop) {
		calls++;
		m = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_SHARED, region, 0);
		calls++;
		wrong |= m == MAP_FAILED || munmap(m, BIG);
	}
	return NULL;
}

static bool in_one_mmap(int times)
{
	unsigned int call = calls;

	if (!(call & 1))
		return false;
	while (times--)
		others_do_what_they_do();
	return call == calls;
}

static void a_large_mapping_holds_up_nobody(void)
{
	set_up(BIG);
	EXPECT(!pthread_create(&th, NULL, map_again_and_again, NULL));
	UNTIL(in_one_mmap(5));
	end_of_the_slow();
	tear_down();
}

static const struct vm_case cases[] = {
	CASE(a_seal_that_waits_holds_up_nobody),
	CASE(what_is_being_sealed_is_not_taken),
	CASE(a_seal_that_is_killed),
	CASE(a_large_mapping_holds_up_nobody),
};
VM_MAIN(cases)
