/* SPDX-License-Identifier: MIT */
/*
 * An ioctl fuzzer that knows the structs: vm_fuzz [SECONDS [SEED]]. Random
 * programs over several descriptors: mostly right calls with one thing wrong,
 * sizes and values at the edges, ids and descriptors of each other, maps,
 * closes and kills in between, and on a kernel that injects faults an allocation
 * that fails now and then. Children run them, so that a lost child tests the
 * clean-up. Nothing may be left at the end; the kernel's log is looked at
 * by whoever runs this.
 */
#include "vm.h"

#include <sys/prctl.h>

#define FDS 16
#define MAPS 8

static uint64_t rng;

static uint32_t rnd(uint32_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return n ? (uint32_t)(rng >> 11) % n : 0;
}

static bool one_in(uint32_t n)
{
	return !rnd(n);
}

/* Values that are often wrong. */
static uint64_t edge(void)
{
	static const uint64_t v[] = {
		0, 1, 2, 3, 4095, 4096, 4097, 65536, 2 * MiB - 1, 2 * MiB, 2 * MiB + 1, 8 * MiB,
		1ULL << 31, 1ULL << 32, 1ULL << 62, 1ULL << 63, ~0ULL, ~0ULL - 4095,
	};

	return one_in(4) ? rng : v[rnd(sizeof(v) / sizeof(*v))];
}

static uint64_t some_bytes(void)
{
	return one_in(5) ? edge() : (uint64_t)(1 + rnd(64)) << (9 + rnd(6));
}

static uint32_t pools[3];
static int fds[FDS];
static struct { void *p; size_t len; } maps[MAPS];

static uint32_t some_pool(void)
{
	return one_in(8) ? edge() : pools[rnd(3)];
}

static uint64_t deadline(void)
{
	return one_in(3) ? vm_now() + rnd(3000000) : one_in(20) ? edge() & 0xffffffff : 0;
}

static void some_name(char *to, size_t cap)
{
	memset(to, 0, cap);
	if (one_in(10)) {
		memset(to, one_in(2) ? 'a' : edge(), one_in(2) ? cap : cap / 2);
		return;
	}
	to[0] = 'f';
	to[1] = '0' + rnd(4);
}

static void keep_fd(int fd)
{
	int i = rnd(FDS);

	if (fd < 0)
		return;
	if (fds[i] > 0)
		close(fds[i]);
	fds[i] = fd;
}

struct op {
	unsigned int cmd;
	uint32_t size;
};

#define OP(n, s) { HEARTH_IOC_##n, sizeof(struct s) }
static const struct op ops[] = {
	OP(INFO, hearth_ioc_info), OP(ADMIN, hearth_ioc_admin), OP(JOIN, hearth_ioc_join),
	OP(POOL_CREATE, hearth_ioc_pool_create), OP(POOL_RESIZE, hearth_ioc_pool_resize),
	OP(POOL_REMOVE, hearth_ioc_pool_remove), OP(POOL_GET, hearth_ioc_pool_get),
	OP(TENANT_GET, hearth_ioc_tenant_get), OP(TENANT_REMOVE, hearth_ioc_tenant_remove),
	OP(BUDGET_GET, hearth_ioc_budget_get), OP(BUDGET_SET, hearth_ioc_budget_set),
	OP(CHARGE, hearth_ioc_charge), OP(UNCHARGE, hearth_ioc_uncharge),
	OP(ALLOC, hearth_ioc_alloc), OP(ALLOC, hearth_ioc_alloc), OP(ALLOC, hearth_ioc_alloc),
	OP(FIND, hearth_ioc_find), OP(REGION_GET, hearth_ioc_region_get), OP(DROP, hearth_ioc_drop),
	OP(WATCH, hearth_ioc_watch), OP(STATE, hearth_ioc_state), OP(SEAL, hearth_ioc_seal),
	OP(OFFER, hearth_ioc_offer), OP(OFFER, hearth_ioc_offer), OP(TAKE_BACK, hearth_ioc_take_back),
	OP(KEEP, hearth_ioc_keep), OP(SHARE, hearth_ioc_share), OP(EXPORT, hearth_ioc_export),
};
#define N_OPS (sizeof(ops) / sizeof(*ops))

static union {
	uint32_t size;
	unsigned char bytes[4096];
	struct hearth_ioc_join join;
	struct hearth_ioc_pool_create pool_create;
	struct hearth_ioc_pool_resize pool_resize;
	struct hearth_ioc_pool_remove pool_remove;
	struct hearth_ioc_pool_get pool_get;
	struct hearth_ioc_tenant_get tenant_get;
	struct hearth_ioc_tenant_remove tenant_remove;
	struct hearth_ioc_budget_get budget_get;
	struct hearth_ioc_budget_set budget_set;
	struct hearth_ioc_charge charge;
	struct hearth_ioc_uncharge uncharge;
	struct hearth_ioc_alloc alloc;
	struct hearth_ioc_find find;
	struct hearth_ioc_region_get region_get;
	struct hearth_ioc_drop drop;
	struct hearth_ioc_watch watch;
	struct hearth_ioc_keep keep;
	struct hearth_ioc_share share;
	struct hearth_ioc_export export;
} u;
static struct hearth_budget_entry entries[4];

static void fill(const struct op *op)
{
	size_t i;

	memset(&u, 0, sizeof(u));
	switch (op->cmd) {
	case HEARTH_IOC_JOIN:
		u.join.flags = rnd(4);
		some_name(u.join.name, sizeof(u.join.name));
		u.join.tenant_class = rnd(8);
		u.join.priority = rnd(1100);
		break;
	case HEARTH_IOC_POOL_CREATE:
		some_name(u.pool_create.name, sizeof(u.pool_create.name));
		u.pool_create.kind = rnd(5);
		u.pool_create.backing = rnd(4);
		u.pool_create.bytes = one_in(3) ? edge() & ~(1ULL << 31) : 2 * MiB;
		if (u.pool_create.backing == HEARTH_BACKING_RESERVED)
			strcpy(u.pool_create.node, "hearth-ragged");
		break;
	case HEARTH_IOC_POOL_RESIZE:
		u.pool_resize.pool = some_pool();
		u.pool_resize.bytes = one_in(4) ? edge() & ~(1ULL << 31) : (1 + rnd(6)) * 2 * MiB;
		break;
	case HEARTH_IOC_POOL_REMOVE:
		/* Not one of ours: the others would run dry. */
		u.pool_remove.pool = pools[2] + 1 + rnd(20);
		break;
	case HEARTH_IOC_POOL_GET:
		u.pool_get.flags = rnd(4);
		u.pool_get.pool = some_pool();
		some_name(u.pool_get.name, sizeof(u.pool_get.name));
		break;
	case HEARTH_IOC_TENANT_GET:
		u.tenant_get.flags = rnd(4);
		u.tenant_get.tenant = rnd(50);
		some_name(u.tenant_get.name, sizeof(u.tenant_get.name));
		break;
	case HEARTH_IOC_TENANT_REMOVE:
		u.tenant_remove.tenant = rnd(200);
		break;
	case HEARTH_IOC_BUDGET_GET:
		u.budget_get.flags = rnd(2);
		u.budget_get.tenant = one_in(2) ? 0 : rnd(50);
		u.budget_get.pool = some_pool();
		break;
	case HEARTH_IOC_BUDGET_SET:
		u.budget_set.entries = one_in(20) ? edge() : (uintptr_t)entries;
		u.budget_set.count = one_in(10) ? edge() : 1 + rnd(4);
		u.budget_set.stride = one_in(20) ? edge() : sizeof(*entries);
		for (i = 0; i < 4; i++) {
			entries[i] = (struct hearth_budget_entry){
				.size = one_in(20) ? edge() : sizeof(*entries),
				.mask = one_in(10) ? edge() : rnd(256), .pool = some_pool(),
				.tenant_class = rnd(8), .priority = rnd(1100),
				.uid = one_in(4) ? 1000 : HEARTH_ANY_UID, .min = some_bytes(),
				.low = some_bytes(), .high = some_bytes(),
				.max = one_in(2) ? HEARTH_NOLIMIT : some_bytes(),
			};
			some_name(entries[i].tenant, sizeof(entries[i].tenant));
			/* Tenants that stay would be left at the end. */
			if (!one_in(16))
				entries[i].mask &= ~HEARTH_SET_CREATE;
		}
		break;
	case HEARTH_IOC_CHARGE:
		u.charge.pool = some_pool();
		u.charge.bytes = some_bytes();
		u.charge.deadline = deadline();
		break;
	case HEARTH_IOC_UNCHARGE:
		u.uncharge.pool = some_pool();
		u.uncharge.bytes = some_bytes();
		break;
	case HEARTH_IOC_ALLOC:
		u.alloc.flags = rnd(4);
		u.alloc.pool = some_pool();
		u.alloc.bytes = some_bytes();
		u.alloc.align = one_in(2) ? 0 : one_in(4) ? edge() : 4096ULL << rnd(10);
		u.alloc.deadline = deadline();
		if (one_in(3))
			some_name(u.alloc.label, sizeof(u.alloc.label));
		break;
	case HEARTH_IOC_FIND:
		u.find.flags = rnd(4);
		u.find.pool = some_pool();
		some_name(u.find.name, sizeof(u.find.name));
		break;
	case HEARTH_IOC_REGION_GET:
		u.region_get.flags = rnd(2);
		u.region_get.region = one_in(2) ? 0 : one_in(4) ? edge() : rnd(1000);
		break;
	case HEARTH_IOC_DROP:
		u.drop.region = one_in(4) ? edge() : rnd(5000);
		break;
	case HEARTH_IOC_WATCH:
		u.watch.flags = rnd(2);
		u.watch.kinds = one_in(4) ? edge() : rnd(1 << 12) & ~1U;
		break;
	case HEARTH_IOC_KEEP:
		some_name(u.keep.name, sizeof(u.keep.name));
		break;
	case HEARTH_IOC_SHARE:
		u.share.flags = rnd(2);
		break;
	case HEARTH_IOC_EXPORT:
		u.export.flags = rnd(2);
		u.export.offset = one_in(2) ? 0 : one_in(3) ? edge() : rnd(64) * 4096ULL;
		u.export.bytes = one_in(2) ? 0 : one_in(3) ? edge() : rnd(64) * 4096ULL;
		break;
	}
	u.size = op->size;
	/* One thing wrong, now and then. */
	if (one_in(25))
		u.size = edge();
	if (one_in(25))
		u.bytes[rnd(op->size)] ^= 1 << rnd(8);
	if (one_in(40))
		u.bytes[op->size + rnd(64)] = rnd(256);
}

static void call(void)
{
	const struct op *op = &ops[rnd(N_OPS)];
	int fd = fds[rnd(FDS)];
	void *arg = &u;

	fill(op);
	if (one_in(60))
		arg = (void *)(uintptr_t)edge();
	if (ioctl(fd, op->cmd, arg) || arg != &u)
		return;
	switch (op->cmd) {
	case HEARTH_IOC_ALLOC:
		keep_fd(u.alloc.out_fd);
		break;
	case HEARTH_IOC_FIND:
		keep_fd(u.find.out_fd);
		break;
	case HEARTH_IOC_SHARE:
		keep_fd(u.share.out_fd);
		break;
	case HEARTH_IOC_EXPORT:
		keep_fd(u.export.out_fd);
		break;
	}
}

static void step(void)
{
	struct hearth_event_record ev[4];
	struct pollfd pfd;
	unsigned int i;
	void *p;

	switch (rnd(12)) {
	case 0:
		if (one_in(3))
			keep_fd(open("/dev/hearth", O_RDWR | O_CLOEXEC | O_NONBLOCK));
		break;
	case 1:
		i = rnd(FDS);
		if (fds[i] > 0)
			close(fds[i]);
		fds[i] = -1;
		break;
	case 2:
		i = rnd(MAPS);
		if (maps[i].p) {
			/* A part of it, or all. */
			if (one_in(2))
				munmap((char *)maps[i].p + maps[i].len / 8192 * 4096, 4096);
			munmap(maps[i].p, maps[i].len);
		}
		maps[i].p = NULL;
		maps[i].len = (1 + rnd(64)) * 4096;
		p = mmap(NULL, maps[i].len, PROT_READ | (one_in(2) ? PROT_WRITE : 0),
			 one_in(10) ? MAP_PRIVATE : MAP_SHARED, fds[rnd(FDS)], rnd(4) * 4096);
		if (p != MAP_FAILED)
			maps[i].p = p;
		break;
	case 3:
		i = rnd(MAPS);
		if (maps[i].p && one_in(2))
			madvise(maps[i].p, maps[i].len, MADV_DONTNEED);
		else if (maps[i].p)
			mprotect(maps[i].p, maps[i].len, rnd(8));
		break;
	case 4:
		pfd.fd = fds[rnd(FDS)];
		pfd.events = POLLIN | POLLPRI;
		poll(&pfd, 1, 0);
		/* Only from those that do not block. */
		if (fcntl(pfd.fd, F_GETFL) & O_NONBLOCK && read(pfd.fd, ev, sizeof(ev)) < 0)
			break;
		break;
	default:
		call();
	}
}

static bool faults;

/* One step, in which the n-th allocation of the kernel may fail. */
static void step_with_fault(int nth)
{
	char text[8];

	if (nth < 0 || !one_in(8)) {
		step();
		return;
	}
	snprintf(text, sizeof(text), "%u", 1 + rnd(12));
	if (write(nth, text, strlen(text)) < 0)
		_exit(3);
	step();
	if (write(nth, "0", 1) != 1)
		_exit(3);
}

static void quiet(int sig)
{
	_exit(0);
}

/* Touching what was purged ends a child; that is as good an end as any. */
static void child(uint64_t seed, unsigned int steps)
{
	unsigned int i;
	int nth = -1;

	rng = seed;
	if (faults) {
		nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
		if (nth < 0)
			_exit(3);
	}
	signal(SIGBUS, quiet);
	signal(SIGSEGV, quiet);
	/*
	 * A deadline with one bit wrong may be years away, and what is waited for
	 * may be kept for good: such a wait ends with the program. One that a
	 * signal does not end hangs the guest, which is a failure.
	 */
	alarm(4);
	for (i = 0; i < FDS; i++)
		fds[i] = -1;
	for (i = 0; i < 4; i++)
		fds[i] = open("/dev/hearth", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	for (i = 0; i < 3; i++) {
		struct hearth_ioc_join j = { .size = sizeof(j), .flags = HEARTH_JOIN_CREATE };
		struct hearth_ioc_admin a = { .size = sizeof(a) };

		some_name(j.name, sizeof(j.name));
		ioctl(fds[i], HEARTH_IOC_JOIN, &j);
		if (i == 2)
			ioctl(fds[i], HEARTH_IOC_ADMIN, &a);
	}
	while (steps--)
		step_with_fault(nth);
	_exit(0);
}

static int seconds = 5;
static uint64_t seed = 1;

static void random_programs(void)
{
	struct hearth_ioc_region_get g = { .size = sizeof(g), .flags = HEARTH_GET_NEXT };
	struct hearth_ioc_tenant_get t = { .size = sizeof(t), .flags = HEARTH_GET_NEXT };
	struct hearth_ioc_pool_get p = { .size = sizeof(p), .flags = HEARTH_GET_NEXT };
	uint64_t end = vm_now() + seconds * 1000000000ULL;
	unsigned long n = 0;
	int admin = vm_admin(), i, status;

	faults = vm_faults_on();
	pools[0] = vm_pool(admin, "fuzz0", HEARTH_POOL_KV, 8 * MiB);
	pools[1] = vm_pool(admin, "fuzz1", HEARTH_POOL_SCRATCH, 2 * MiB);
	pools[2] = vm_pool(admin, "fuzz2", HEARTH_POOL_ACCOUNT, 8 * MiB);
	while (vm_now() < end) {
		pid_t pid[3];

		for (i = 0; i < 3; i++, n++) {
			pid[i] = fork();
			EXPECT(pid[i] >= 0);
			if (!pid[i])
				child((seed + n) * 0x9e3779b97f4a7c15ULL | 1, 400);
		}
		if (n % 4 == 0) {
			usleep(2000);
			kill(pid[1], SIGKILL);
		}
		for (i = 0; i < 3; i++) {
			EXPECT_EQ(waitpid(pid[i], &status, 0), pid[i]);
			EXPECT(!WIFEXITED(status) || !WEXITSTATUS(status));
		}
	}
	printf("# seed %llu: %lu programs of 400 steps%s\n", (unsigned long long)seed, n,
	       faults ? ", with faults" : "");
	while (!ioctl(admin, HEARTH_IOC_REGION_GET, &g)) {
		struct hearth_ioc_drop d = { .size = sizeof(d), .region = g.region };

		ioctl(admin, HEARTH_IOC_DROP, &d);
	}
	for (i = 0; i < 3; i++)
		vm_pool_idle(admin, pools[i]);
	while (!ioctl(admin, HEARTH_IOC_TENANT_GET, &t)) {
		struct hearth_ioc_tenant_remove r = { .size = sizeof(r), .tenant = t.tenant };

		EXPECT(!ioctl(admin, HEARTH_IOC_TENANT_REMOVE, &r));
	}
	while (!ioctl(admin, HEARTH_IOC_POOL_GET, &p)) {
		struct hearth_ioc_pool_remove r = { .size = sizeof(r), .pool = p.pool };

		EXPECT(!ioctl(admin, HEARTH_IOC_POOL_REMOVE, &r));
	}
	close(admin);
}

static const struct vm_case cases[] = { CASE(random_programs) };

int main(int argc, char **argv)
{
	if (argc > 1)
		seconds = atoi(argv[1]);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 0);
	return vm_run(__FILE__, cases, 1);
}
