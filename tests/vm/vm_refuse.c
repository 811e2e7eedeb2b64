/* SPDX-License-Identifier: MIT */
/*
 * Every refusal that uapi/linux/hearth.h names, one fault a call. Before and
 * after each the whole state is read: nothing may have changed but counters of
 * refusals. What needs another process, a waiter or fault injection is in the
 * other programs.
 */
#include "vm.h"

#include <sys/resource.h>
#include <sys/uio.h>

#define KV (8 * MiB)
#define ACCT 1000

static int admin, plain, a, b;                 /* connections */
static int reg, ro, sealed, offered, purged, kept, taken;
static uint32_t kv, account, id_a, id_b;

/* -- the state --------------------------------------------------------------- */

struct snap {
	struct hearth_ioc_info info;
	struct hearth_ioc_pool_get pool[16];
	struct hearth_ioc_tenant_get tenant[16];
	struct hearth_ioc_budget_get budget[64];
	struct hearth_ioc_region_get region[32];
	size_t pools, tenants, budgets, regions;
};

static struct snap before, after;

static void snap(struct snap *s)
{
	struct hearth_ioc_pool_get p = { .size = sizeof(p), .flags = HEARTH_GET_NEXT };
	struct hearth_ioc_tenant_get t = { .size = sizeof(t), .flags = HEARTH_GET_NEXT };
	struct hearth_ioc_region_get r = { .size = sizeof(r), .flags = HEARTH_GET_NEXT };
	size_t i, k;

	memset(s, 0, sizeof(*s));
	s->info.size = sizeof(s->info);
	EXPECT(!ioctl(admin, HEARTH_IOC_INFO, &s->info));
	while (!ioctl(admin, HEARTH_IOC_POOL_GET, &p)) {
		/* Spare nodes of the tables may come and stay. */
		p.out_overhead = 0;
		EXPECT(s->pools < 16);
		s->pool[s->pools++] = p;
	}
	while (!ioctl(admin, HEARTH_IOC_TENANT_GET, &t)) {
		EXPECT(s->tenants < 16);
		s->tenant[s->tenants++] = t;
	}
	while (!ioctl(admin, HEARTH_IOC_REGION_GET, &r)) {
		EXPECT(s->regions < 32);
		s->region[s->regions++] = r;
	}
	for (i = 0; i < s->tenants; i++) {
		for (k = 0; k < s->pools; k++) {
			struct hearth_ioc_budget_get *g = &s->budget[s->budgets++];

			EXPECT(s->budgets <= 64);
			*g = vm_usage(admin, s->tenant[i].tenant, s->pool[k].pool);
			g->out_n_refused_max = g->out_n_refused_pool = 0;
			g->out_n_refused_min = g->out_n_refused_queue = g->out_n_reclaim = 0;
		}
	}
}

/* The call in the middle of it failed as it must; nothing else happened. */
static void refused(int line, const char *what, long long ret, int err, int want)
{
	if (ret >= 0 || err != want)
		vm_fail(__FILE__, line, "%s gave %lld errno %d (%s), not %d (%s)", what, ret, err,
			strerror(err), want, strerror(want));
	snap(&after);
	if (memcmp(&before, &after, sizeof(before)))
		vm_fail(__FILE__, line, "%s was refused and changed something", what);
}

#define NO(want, call) do { \
	errno = 0; \
	long long r_ = (long long)(call); \
	int e_ = errno; \
	refused(__LINE__, #call, r_, e_, want); \
} while (0)

/* An ioctl on a struct with these fields, the rest zero. */
#define IOC(fd, cmd, type, ...) \
	ioctl(fd, HEARTH_IOC_##cmd, &(struct hearth_ioc_##type){ \
		.size = sizeof(struct hearth_ioc_##type), __VA_ARGS__ })

static int join(int fd, const char *name, uint32_t flags, uint32_t class, uint32_t priority)
{
	struct hearth_ioc_join j = {
		.size = sizeof(j), .flags = flags, .tenant_class = class, .priority = priority,
	};

	strncpy(j.name, name, sizeof(j.name) - 1);
	return ioctl(fd, HEARTH_IOC_JOIN, &j);
}

/* One line of a set; *ret_ref may be NULL. */
static int set(int fd, struct hearth_budget_entry e, struct hearth_refusal *ret_ref)
{
	struct hearth_ioc_budget_set s = {
		.size = sizeof(s), .entries = (uintptr_t)&e, .count = 1, .stride = sizeof(e),
	};
	int ret;

	e.size = e.size ?: sizeof(e);
	ret = ioctl(fd, HEARTH_IOC_BUDGET_SET, &s);
	if (ret_ref)
		*ret_ref = s.out_refusal;
	return ret;
}
#define SET(fd, ...) set(fd, (struct hearth_budget_entry){ __VA_ARGS__ }, NULL)

static int map(int fd, int prot, int flags, uint64_t bytes, uint64_t off)
{
	void *p = mmap(NULL, bytes, prot, flags, fd, off);

	if (p == MAP_FAILED)
		return -1;
	munmap(p, bytes);
	return 0;
}

static void set_up(void)
{
	unsigned char *m;

	admin = vm_admin();
	plain = vm_open();
	a = vm_open();
	b = vm_open();
	id_a = vm_join(a, "alice");
	id_b = vm_join(b, "bob");
	kv = vm_pool(admin, "rkv", HEARTH_POOL_KV, KV);
	account = vm_pool(admin, "racct", HEARTH_POOL_ACCOUNT, ACCT);
	/* One that is purged: offered, and its memory wanted by another. */
	purged = vm_region(a, kv, KV);
	EXPECT(!vm_offer(purged));
	taken = vm_region(b, kv, 64 * KiB);
	reg = vm_region(a, kv, 64 * KiB);
	ro = vm_share(reg, 0);
	sealed = vm_region(a, kv, 64 * KiB);
	EXPECT(!vm_seal(sealed) && !vm_keep(sealed, "sealed", 1));
	offered = vm_region(a, kv, 64 * KiB);
	EXPECT(!vm_offer(offered));
	kept = vm_region(b, kv, 64 * KiB);
	EXPECT(!vm_keep(kept, "kept", 2));
	m = vm_map(reg, 64 * KiB, PROT_READ | PROT_WRITE);
	memset(m, 1, 64 * KiB);
	vm_unmap(m, 64 * KiB);
	EXPECT(ro >= 0 && vm_take_back(purged) == 0);
	snap(&before);
}

static void tear_down(void)
{
	struct hearth_ioc_region_get g = vm_region_get(kept), s = vm_region_get(sealed);

	EXPECT(!IOC(admin, DROP, drop, .region = g.region) && !IOC(admin, DROP, drop, .region = s.region));
	close(reg); close(ro); close(sealed); close(offered); close(purged); close(kept); close(taken);
	close(a); close(b); close(plain);
	vm_pool_remove(admin, kv);
	vm_pool_remove(admin, account);
	close(admin);
}

/* -- connections --------------------------------------------------------------- */

static void joining(void)
{
	set_up();
	NO(EOPNOTSUPP, join(plain, "x", 4, 0, 0));
	NO(EINVAL, join(plain, "", HEARTH_JOIN_CREATE, 0, 0));
	NO(EINVAL, join(plain, "two words", HEARTH_JOIN_CREATE, 0, 0));
	NO(EOPNOTSUPP, join(plain, "x", HEARTH_JOIN_CREATE, HEARTH_TENANT_EMBED + 1, 0));
	NO(EINVAL, join(plain, "x", HEARTH_JOIN_CREATE, 0, HEARTH_PRIORITY_MAX + 1));
	NO(EPERM, join(plain, "x", HEARTH_JOIN_CREATE, 0, HEARTH_PRIORITY_USER_MAX + 1));
	NO(ENOENT, join(plain, "x", 0, 0, 0));
	NO(EEXIST, join(plain, "alice", HEARTH_JOIN_EXCL, 0, 0));
	NO(EBUSY, join(a, "alice", 0, 0, 0));
	NO(EBUSY, join(a, "x", HEARTH_JOIN_CREATE, 0, 0));
	tear_down();
}

static void watching(void)
{
	struct hearth_event_record ev;

	set_up();
	fcntl(plain, F_SETFL, O_NONBLOCK);
	NO(EOPNOTSUPP, IOC(plain, WATCH, watch, .flags = 2));
	NO(EOPNOTSUPP, IOC(plain, WATCH, watch, .kinds = 1));
	NO(EOPNOTSUPP, IOC(plain, WATCH, watch, .kinds = 2ULL << HEARTH_EV_POOL_GONE));
	NO(EAGAIN, read(plain, &ev, sizeof(ev)));
	NO(EINVAL, read(plain, &ev, sizeof(ev) - 1));
	NO(EINVAL, IOC(plain, STATE, state, .reserved = 1));
	NO(EINVAL, write(plain, "x", 1));
	NO(ESPIPE, lseek(plain, 0, SEEK_SET));
	tear_down();
}

/* -- pools ----------------------------------------------------------------------- */

static void making_pools(void)
{
	set_up();
#define POOL(fd, n, k, bk, by) IOC(fd, POOL_CREATE, pool_create, .name = n, .kind = k, .backing = bk, .bytes = by)
	NO(EPERM, POOL(plain, "x", HEARTH_POOL_ACCOUNT, HEARTH_BACKING_NONE, 1));
	NO(EPERM, POOL(a, "x", HEARTH_POOL_ACCOUNT, HEARTH_BACKING_NONE, 1));
	NO(EINVAL, POOL(admin, "", HEARTH_POOL_ACCOUNT, HEARTH_BACKING_NONE, 1));
	NO(EEXIST, POOL(admin, "rkv", HEARTH_POOL_KV, HEARTH_BACKING_BUDDY, 2 * MiB));
	NO(EOPNOTSUPP, POOL(admin, "x", HEARTH_POOL_ACCOUNT + 1, HEARTH_BACKING_NONE, 1));
	NO(EOPNOTSUPP, POOL(admin, "x", HEARTH_POOL_KV, HEARTH_BACKING_RESERVED + 1, 2 * MiB));
	NO(EINVAL, POOL(admin, "x", HEARTH_POOL_ACCOUNT, HEARTH_BACKING_BUDDY, 2 * MiB));
	NO(EINVAL, POOL(admin, "x", HEARTH_POOL_KV, HEARTH_BACKING_NONE, 2 * MiB));
	NO(EINVAL, POOL(admin, "x", HEARTH_POOL_ACCOUNT, HEARTH_BACKING_NONE, 0));
	NO(EINVAL, POOL(admin, "x", HEARTH_POOL_KV, HEARTH_BACKING_BUDDY, 0));
	NO(EINVAL, POOL(admin, "x", HEARTH_POOL_KV, HEARTH_BACKING_BUDDY, 1));
	NO(EINVAL, POOL(admin, "x", HEARTH_POOL_KV, HEARTH_BACKING_BUDDY, 2 * MiB - 1));
	NO(EINVAL, POOL(admin, "x", HEARTH_POOL_KV, HEARTH_BACKING_BUDDY, 1ULL << 63));
	NO(EINVAL, POOL(admin, "x", HEARTH_POOL_ACCOUNT, HEARTH_BACKING_NONE, 1ULL << 63));
	NO(ENOMEM, POOL(admin, "x", HEARTH_POOL_KV, HEARTH_BACKING_BUDDY, 1ULL << 44));
	NO(ENODEV, IOC(admin, POOL_CREATE, pool_create, .name = "x", .kind = HEARTH_POOL_KV,
		       .backing = HEARTH_BACKING_RESERVED, .node = "no-such-node"));
	NO(EINVAL, IOC(admin, POOL_CREATE, pool_create, .name = "x", .kind = HEARTH_POOL_KV,
		       .backing = HEARTH_BACKING_RESERVED));
	NO(EINVAL, IOC(admin, POOL_CREATE, pool_create, .name = "x", .kind = HEARTH_POOL_KV,
		       .backing = HEARTH_BACKING_BUDDY, .bytes = 2 * MiB, .node = "n"));
	NO(EINVAL, IOC(admin, POOL_CREATE, pool_create, .name = "x", .kind = HEARTH_POOL_KV,
		       .backing = HEARTH_BACKING_BUDDY, .bytes = 2 * MiB, .reserved = 1));
	NO(EOPNOTSUPP, IOC(admin, POOL_CREATE, pool_create, .name = "x", .flags = 1));
	tear_down();
}

static void resizing_and_removing_pools(void)
{
	struct hearth_ioc_pool_resize rs = { .size = sizeof(rs) };

	set_up();
#define RESIZE(fd, p, by) IOC(fd, POOL_RESIZE, pool_resize, .pool = p, .bytes = by)
	NO(EPERM, RESIZE(plain, kv, 4 * MiB));
	NO(ENOENT, RESIZE(admin, 4711, 4 * MiB));
	NO(ENOENT, RESIZE(admin, 0, 4 * MiB));
	NO(EINVAL, RESIZE(admin, kv, 0));
	NO(EINVAL, RESIZE(admin, kv, 1));
	NO(EINVAL, RESIZE(admin, kv, 2 * MiB + 4096));
	NO(EINVAL, RESIZE(admin, kv, 1ULL << 63));
	NO(EINVAL, RESIZE(admin, account, 0));
	NO(EINVAL, RESIZE(admin, account, ~0ULL));
	NO(ENOMEM, RESIZE(admin, kv, 1ULL << 44));
	NO(EPERM, IOC(plain, POOL_REMOVE, pool_remove, .pool = kv));
	NO(ENOENT, IOC(admin, POOL_REMOVE, pool_remove, .pool = 4711));
	NO(EBUSY, IOC(admin, POOL_REMOVE, pool_remove, .pool = kv));
	EXPECT(!vm_charge(b, account, 600, 0, NULL));
	EXPECT(!SET(admin, .mask = HEARTH_SET_MIN, .tenant = "alice", .pool = account, .min = 300));
	snap(&before);
	NO(EBUSY, RESIZE(admin, account, 599));
	NO(EBUSY, IOC(admin, POOL_REMOVE, pool_remove, .pool = account));
	EXPECT(!vm_uncharge(b, account, 600));
	snap(&before);
	rs.pool = account;
	rs.bytes = 299;
	NO(ENOSPC, ioctl(admin, HEARTH_IOC_POOL_RESIZE, &rs));
	EXPECT(rs.out_refusal.limit == HEARTH_LIMIT_SUM && rs.out_refusal.holder == id_a);
	tear_down();
}

static void looking_things_up(void)
{
	set_up();
	NO(ENOENT, IOC(plain, POOL_GET, pool_get, .pool = 4711));
	NO(ENOENT, IOC(plain, POOL_GET, pool_get, .flags = HEARTH_GET_NEXT, .pool = ~0U));
	NO(ENOENT, IOC(plain, POOL_GET, pool_get, .flags = HEARTH_GET_BY_NAME, .name = "nope"));
	NO(EINVAL, IOC(plain, POOL_GET, pool_get, .flags = HEARTH_GET_BY_NAME, .name = "no pe"));
	NO(EINVAL, IOC(plain, POOL_GET, pool_get, .flags = 3, .name = "rkv"));
	NO(EOPNOTSUPP, IOC(plain, POOL_GET, pool_get, .flags = 4));
	NO(ENOENT, IOC(plain, TENANT_GET, tenant_get, .tenant = 0));
	NO(ENOENT, IOC(plain, TENANT_GET, tenant_get, .flags = HEARTH_GET_NEXT, .tenant = ~0U));
	NO(ENOENT, IOC(plain, TENANT_GET, tenant_get, .flags = HEARTH_GET_BY_NAME, .name = "nope"));
	NO(EINVAL, IOC(plain, TENANT_GET, tenant_get, .flags = HEARTH_GET_BY_NAME));
	NO(EINVAL, IOC(plain, TENANT_GET, tenant_get, .flags = 3, .name = "alice"));
	NO(EPERM, IOC(plain, TENANT_REMOVE, tenant_remove, .tenant = id_a));
	NO(ENOENT, IOC(admin, TENANT_REMOVE, tenant_remove, .tenant = 99999));
	NO(EBUSY, IOC(admin, TENANT_REMOVE, tenant_remove, .tenant = id_a));
	NO(ENOTCONN, IOC(plain, BUDGET_GET, budget_get, .pool = kv));
	NO(ENOENT, IOC(plain, BUDGET_GET, budget_get, .tenant = 99999, .pool = kv));
	NO(ENOENT, IOC(a, BUDGET_GET, budget_get, .pool = 4711));
	NO(EPERM, IOC(a, BUDGET_GET, budget_get, .flags = HEARTH_BUDGET_RESET_PEAK, .tenant = id_b, .pool = kv));
	NO(EOPNOTSUPP, IOC(a, BUDGET_GET, budget_get, .flags = 2, .pool = kv));
	NO(ENOENT, IOC(plain, REGION_GET, region_get, .region = 1ULL << 40));
	NO(ENOENT, IOC(plain, REGION_GET, region_get, .flags = HEARTH_GET_NEXT, .region = ~0ULL));
	NO(EOPNOTSUPP, IOC(plain, REGION_GET, region_get, .flags = HEARTH_GET_BY_NAME));
	NO(EINVAL, IOC(reg, REGION_GET, region_get, .region = 1));
	tear_down();
}

static void setting_budgets(void)
{
	struct hearth_budget_entry two[2];
	struct hearth_ioc_budget_set s = { .size = sizeof(s), .count = 2, .stride = sizeof(*two) };
	struct hearth_refusal ref;

	set_up();
	NO(EPERM, SET(plain, .mask = HEARTH_SET_MAX, .tenant = "alice", .pool = kv));
	NO(EPERM, SET(a, .mask = HEARTH_SET_MAX, .tenant = "alice", .pool = kv, .max = HEARTH_NOLIMIT));
	NO(EINVAL, SET(admin, .tenant = "alice", .pool = kv));
	NO(EOPNOTSUPP, SET(admin, .mask = 1U << 9, .tenant = "alice", .pool = kv));
	NO(EINVAL, SET(admin, .mask = HEARTH_SET_MAX, .pool = kv));
	NO(EINVAL, SET(admin, .mask = HEARTH_SET_MAX, .tenant = "alice"));
	NO(ENOENT, SET(admin, .mask = HEARTH_SET_MAX, .tenant = "alice", .pool = 4711));
	NO(ENOENT, SET(admin, .mask = HEARTH_SET_MAX, .tenant = "nobody", .pool = kv));
	NO(EOPNOTSUPP, SET(admin, .mask = HEARTH_SET_CLASS, .tenant = "alice", .tenant_class = 7));
	NO(EINVAL, SET(admin, .mask = HEARTH_SET_PRIORITY, .tenant = "alice", .priority = HEARTH_PRIORITY_MAX + 1));
	NO(EINVAL, SET(admin, .mask = HEARTH_SET_MIN | HEARTH_SET_MAX, .tenant = "alice", .pool = kv, .min = 2, .max = 1));
	NO(EINVAL, SET(admin, .mask = HEARTH_BUDGET_DEFAULT | HEARTH_SET_MAX, .tenant = "alice", .pool = kv));
	NO(EINVAL, SET(admin, .mask = HEARTH_BUDGET_DEFAULT, .pool = kv));
	NO(EINVAL, SET(admin, .mask = HEARTH_BUDGET_DEFAULT | HEARTH_SET_MAX));
	NO(EINVAL, SET(admin, .mask = HEARTH_BUDGET_DEFAULT | HEARTH_SET_MAX | HEARTH_SET_MIN, .pool = kv));
	NO(EINVAL, SET(admin, .size = 8, .mask = HEARTH_SET_MAX, .tenant = "alice", .pool = kv));
	NO(EINVAL, SET(admin, .size = sizeof(*two) + 8, .mask = HEARTH_SET_MAX, .tenant = "alice", .pool = kv));
	NO(ENOSPC, set(admin, (struct hearth_budget_entry){ .mask = HEARTH_SET_MIN, .tenant = "alice",
							    .pool = kv, .min = KV + 1 }, &ref));
	EXPECT(ref.limit == HEARTH_LIMIT_SUM);
	/* Of two the second is wrong: the first is not done either. */
	two[0] = (struct hearth_budget_entry){ .size = sizeof(*two), .mask = HEARTH_SET_CREATE | HEARTH_SET_MIN,
					       .tenant = "carol", .pool = kv, .min = 1 };
	s.entries = (uintptr_t)two;
#define SECOND(want, ...) do { \
	two[1] = (struct hearth_budget_entry){ .size = sizeof(*two), __VA_ARGS__ }; \
	s.out_bad = 77; \
	NO(want, ioctl(admin, HEARTH_IOC_BUDGET_SET, &s)); \
	EXPECT_EQ(s.out_bad, 1); \
} while (0)
	SECOND(EINVAL, .mask = HEARTH_SET_MAX, .tenant = "carol", .pool = kv);
	SECOND(EINVAL, .mask = HEARTH_SET_CLASS, .tenant = "carol", .pool = kv);
	SECOND(ENOENT, .mask = HEARTH_SET_MAX, .tenant = "nobody", .pool = kv);
	SECOND(ENOSPC, .mask = HEARTH_SET_MIN, .tenant = "bob", .pool = kv, .min = KV);
	SECOND(EINVAL, .mask = HEARTH_SET_MIN | HEARTH_SET_MAX, .tenant = "bob", .pool = kv, .min = 5, .max = 4);
	two[0] = (struct hearth_budget_entry){ .size = sizeof(*two), .mask = HEARTH_SET_CLASS, .tenant = "bob" };
	SECOND(EINVAL, .mask = HEARTH_SET_PRIORITY, .tenant = "bob", .priority = 5);
	NO(EOPNOTSUPP, IOC(admin, BUDGET_SET, budget_set, .flags = 1));
	NO(EINVAL, IOC(admin, BUDGET_SET, budget_set, .entries = (uintptr_t)two, .stride = sizeof(*two)));
	NO(EINVAL, IOC(admin, BUDGET_SET, budget_set, .entries = (uintptr_t)two, .stride = sizeof(*two),
		       .count = HEARTH_BUDGETS_MAX + 1));
	NO(EINVAL, IOC(admin, BUDGET_SET, budget_set, .entries = (uintptr_t)two, .count = 1,
		       .stride = sizeof(*two) - 1));
	NO(EFAULT, IOC(admin, BUDGET_SET, budget_set, .entries = 8, .count = 1, .stride = sizeof(*two)));
	{
		/* An entry of a later version: longer, and it uses that. */
		char lots[256] = {};
		struct hearth_budget_entry *e = (void *)lots;

		*e = (struct hearth_budget_entry){ .size = 200, .mask = HEARTH_SET_LOW, .tenant = "bob", .pool = kv };
		lots[199] = 1;
		NO(E2BIG, IOC(admin, BUDGET_SET, budget_set, .entries = (uintptr_t)lots, .count = 1, .stride = 256));
	}
	tear_down();
}

/* -- charges and regions --------------------------------------------------------- */

static void charging(void)
{
	struct hearth_refusal r;

	set_up();
	NO(ENOTCONN, vm_charge(plain, account, 1, 0, NULL));
	NO(ENOENT, vm_charge(a, 4711, 1, 0, NULL));
	NO(EINVAL, vm_charge(a, account, 0, 0, NULL));
	NO(ENOSPC, vm_charge(a, account, ACCT + 1, 0, &r));
	EXPECT(r.limit == HEARTH_LIMIT_POOL && r.available == ACCT);
	NO(ENOTCONN, vm_uncharge(plain, account, 1));
	NO(ENOENT, vm_uncharge(a, 4711, 1));
	NO(EINVAL, vm_uncharge(a, account, 0));
	NO(EINVAL, vm_uncharge(a, account, 1));
	EXPECT(!vm_budget(admin, "alice", account, HEARTH_SET_MAX, 0, 0, 0, 100, NULL));
	EXPECT(!vm_budget(admin, "bob", account, HEARTH_SET_MIN, 500, 0, 0, 0, NULL));
	snap(&before);
	NO(ENOSPC, vm_charge(a, account, 101, 0, &r));
	EXPECT(r.limit == HEARTH_LIMIT_MAX && r.limit_bytes == 100 && r.available == 100);
	EXPECT(!vm_budget(admin, "alice", account, HEARTH_SET_MAX, 0, 0, 0, HEARTH_NOLIMIT, NULL));
	snap(&before);
	NO(ENOSPC, vm_charge(a, account, 501, 0, &r));
	EXPECT(r.limit == HEARTH_LIMIT_MIN && r.holder == id_b && r.available == 500);
	EXPECT(!strcmp(r.holder_name, "bob"));
	NO(ETIMEDOUT, vm_charge(a, account, 501, vm_now() + 5000000, &r));
	tear_down();
}

static void allocating(void)
{
	struct hearth_ioc_alloc al = {};

	set_up();
#define ALLOC(fd, ...) IOC(fd, ALLOC, alloc, __VA_ARGS__)
	NO(EOPNOTSUPP, ALLOC(a, .pool = kv, .bytes = 1, .flags = 4));
	NO(EINVAL, ALLOC(a, .pool = kv, .bytes = 1, .reserved = 1));
	NO(EINVAL, ALLOC(a, .pool = kv));
	NO(EINVAL, ALLOC(a, .pool = kv, .bytes = 1, .align = 3));
	NO(EINVAL, ALLOC(a, .pool = kv, .bytes = 1, .align = 4 * MiB));
	NO(EINVAL, ALLOC(a, .pool = kv, .bytes = 1, .align = 1ULL << 63));
	NO(EINVAL, ALLOC(a, .pool = kv, .bytes = 1, .label = "a label"));
	NO(ENOTCONN, ALLOC(plain, .pool = kv, .bytes = 1));
	NO(ENOENT, ALLOC(a, .pool = 4711, .bytes = 1));
	NO(EINVAL, ALLOC(a, .pool = account, .bytes = 1));
	NO(ENOSPC, ALLOC(a, .pool = kv, .bytes = KV + 1));
	NO(ENOSPC, ALLOC(a, .pool = kv, .bytes = 1ULL << 63));
	EXPECT_EQ(vm_take_back(offered), 1);
	snap(&before);
	NO(ENOSPC, vm_alloc(a, kv, KV, &al));
	EXPECT_EQ(al.out_refusal.limit, HEARTH_LIMIT_POOL);
	EXPECT_EQ(al.out_refusal.available, KV - 5 * 64 * KiB);
	al.deadline = vm_now() + 5000000;
	NO(ETIMEDOUT, vm_alloc(a, kv, KV, &al));
	al.deadline = 0;
	al.flags = HEARTH_ALLOC_CONTIG;
	al.align = 2 * MiB;
	/* Free, but every block has something in it or is none in a row. */
	NO(ENOSPC, vm_alloc(a, kv, KV - 5 * 64 * KiB, &al));
	EXPECT_EQ(al.out_refusal.limit, HEARTH_LIMIT_PIECES);
	tear_down();
}

static void finding_and_dropping(void)
{
	struct hearth_ioc_find f;
	int c, r;

	set_up();
	NO(EOPNOTSUPP, vm_find(a, kv, "sealed", 1, 4, NULL));
	NO(EINVAL, vm_find(a, kv, "", 1, 0, NULL));
	NO(ENOTCONN, vm_find(plain, kv, "sealed", 1, 0, NULL));
	NO(ENOENT, vm_find(a, 4711, "sealed", 1, 0, NULL));
	NO(ENOENT, vm_find(a, kv, "nothing", 1, 0, &f));
	EXPECT_EQ(f.out_region, 0);
	NO(ENOENT, vm_find(a, kv, "sealed", 9, 0, &f));
	EXPECT(f.out_region);
	NO(EROFS, vm_find(a, kv, "sealed", 1, HEARTH_FIND_WRITE, NULL));
	NO(EROFS, vm_find(b, kv, "sealed", 1, HEARTH_FIND_WRITE, NULL));
	NO(EBUSY, vm_find(a, kv, "kept", 2, 0, NULL));
	NO(ENOENT, IOC(admin, DROP, drop, .region = 1ULL << 50));
	NO(ENOENT, IOC(admin, DROP, drop, .region = vm_region_get(reg).region));
	NO(EPERM, IOC(plain, DROP, drop, .region = vm_region_get(kept).region));
	NO(EPERM, IOC(a, DROP, drop, .region = vm_region_get(kept).region));
	NO(EINVAL, IOC(b, DROP, drop, .reserved = 1, .region = vm_region_get(kept).region));
	/* Its owner is gone, and the charge does not fit the finder. */
	c = vm_tenant("carol");
	r = vm_region(c, kv, 64 * KiB);
	EXPECT(!vm_keep(r, "orphan", 3));
	close(r);
	close(c);
	EXPECT(!vm_budget(admin, "bob", kv, HEARTH_SET_MAX, 0, 0, 0, 64 * KiB, NULL));
	snap(&before);
	NO(ENOSPC, vm_find(b, kv, "orphan", 3, 0, &f));
	EXPECT(f.out_refusal.limit == HEARTH_LIMIT_MAX && f.out_refusal.holder == id_b);
	EXPECT(!vm_budget(admin, "bob", kv, HEARTH_SET_MAX, 0, 0, 0, HEARTH_NOLIMIT, NULL));
	r = vm_find(b, kv, "orphan", 3, 0, &f);
	EXPECT(r >= 0 && !IOC(b, DROP, drop, .region = f.out_region));
	close(r);
	tear_down();
}

static void regions(void)
{
	int rw = PROT_READ | PROT_WRITE, buf, pp[2];
	void *m;

	set_up();
	/* A descriptor that may only read. */
	NO(EACCES, vm_seal(ro));
	NO(EACCES, vm_offer(ro));
	NO(EACCES, vm_take_back(ro));
	NO(EACCES, vm_keep(ro, "x", 0));
	NO(EACCES, vm_share(ro, HEARTH_SHARE_WRITE));
	NO(EACCES, vm_export(ro, HEARTH_EXPORT_WRITE, 0, 0));
	NO(EACCES, map(ro, rw, MAP_SHARED, 4096, 0));
	NO(EACCES, map(ro, PROT_READ, MAP_PRIVATE, 4096, 0));
	/* A sealed one. */
	NO(EROFS, vm_share(sealed, HEARTH_SHARE_WRITE));
	NO(EROFS, vm_export(sealed, HEARTH_EXPORT_WRITE, 0, 0));
	NO(EROFS, map(sealed, rw, MAP_SHARED, 4096, 0));
	NO(EBUSY, vm_keep(sealed, "again", 0));
	/* An offered one, and one that was taken. */
	NO(EBUSY, vm_export(offered, 0, 0, 0));
	NO(ESTALE, vm_seal(purged));
	NO(ESTALE, vm_offer(purged));
	NO(ESTALE, vm_keep(purged, "x", 0));
	NO(ESTALE, vm_share(purged, 0));
	NO(ESTALE, vm_export(purged, 0, 0, 0));
	NO(ESTALE, map(purged, PROT_READ, MAP_SHARED, 4096, 0));
	/* Names. */
	NO(EINVAL, vm_keep(reg, "", 0));
	NO(EINVAL, vm_keep(reg, ".x", 0));
	NO(EEXIST, vm_keep(reg, "kept", 0));
	/* Ranges. */
	NO(EOPNOTSUPP, vm_share(reg, 2));
	NO(EOPNOTSUPP, vm_export(reg, 2, 0, 0));
	NO(EINVAL, vm_export(reg, 0, 1, 0));
	NO(EINVAL, vm_export(reg, 0, 0, 1));
	NO(EINVAL, vm_export(reg, 0, 64 * KiB, 0));
	NO(EINVAL, vm_export(reg, 0, 0, 64 * KiB + 4096));
	NO(EINVAL, vm_export(reg, 0, 4096, 1ULL << 63));
	NO(EINVAL, vm_export(reg, 0, 1ULL << 63, 4096));
	NO(EINVAL, map(reg, rw, MAP_SHARED, 64 * KiB + 4096, 0));
	NO(EINVAL, map(reg, rw, MAP_SHARED, 4096, 64 * KiB));
	NO(EACCES, map(reg, rw, MAP_PRIVATE, 4096, 0));
	/* Newer kernels say EPERM themselves: the region's file system is noexec. */
	EXPECT(map(reg, PROT_READ | PROT_EXEC, MAP_SHARED, 4096, 0) && (errno == EACCES || errno == EPERM));
	NO(ENODEV, map(a, rw, MAP_SHARED, 4096, 0));
	NO(ENOTTY, IOC(reg, CHARGE, charge, .bytes = 1));
	NO(ENOTTY, IOC(a, SEAL, seal, .reserved = 0));
	/* Still reachable for writing. */
	m = vm_map(reg, 4096, rw);
	snap(&before);
	NO(EBUSY, vm_seal(reg));
	vm_unmap(m, 4096);
	buf = vm_export(reg, HEARTH_EXPORT_WRITE, 0, 0);
	snap(&before);
	NO(EBUSY, vm_seal(reg));
	NO(EBUSY, vm_offer(reg));
	close(buf);
	/* Held from outside; through a read-only dma-buf that is mapped. */
	m = vm_map(ro, 4096, PROT_READ);
	EXPECT(!pipe(pp));
	EXPECT_EQ(vmsplice(pp[1], &(struct iovec){ m, 4096 }, 1, 0), 4096);
	vm_unmap(m, 4096);
	snap(&before);
	NO(EBUSY, vm_seal(reg));
	close(pp[0]);
	close(pp[1]);
	buf = vm_export(reg, 0, 0, 0);
	m = mmap(NULL, 4096, PROT_READ, MAP_SHARED, buf, 0);
	EXPECT(m != MAP_FAILED);
	snap(&before);
	NO(EBUSY, vm_seal(reg));
	NO(EBUSY, vm_offer(reg));
	vm_unmap(m, 4096);
	close(buf);
	tear_down();
}

static void no_descriptor_left(void)
{
	struct rlimit was, few;
	int i, fd[64], n = 0;

	set_up();
	EXPECT(!getrlimit(RLIMIT_NOFILE, &was));
	few = was;
	few.rlim_cur = 48;
	EXPECT(!setrlimit(RLIMIT_NOFILE, &few));
	while (n < 64 && (fd[n] = dup(0)) >= 0)
		n++;
	EXPECT_EQ(errno, EMFILE);
	NO(EMFILE, open("/dev/hearth", O_RDWR));
	NO(EMFILE, IOC(a, ALLOC, alloc, .pool = kv, .bytes = 1));
	NO(EMFILE, vm_find(a, kv, "sealed", 1, 0, NULL));
	NO(EMFILE, vm_share(reg, 0));
	NO(EMFILE, vm_export(reg, 0, 0, 0));
	for (i = 0; i < n; i++)
		close(fd[i]);
	EXPECT(!setrlimit(RLIMIT_NOFILE, &was));
	tear_down();
}

static const struct vm_case cases[] = {
	CASE(joining),
	CASE(watching),
	CASE(making_pools),
	CASE(resizing_and_removing_pools),
	CASE(looking_things_up),
	CASE(setting_budgets),
	CASE(charging),
	CASE(allocating),
	CASE(finding_and_dropping),
	CASE(regions),
	CASE(no_descriptor_left),
};
VM_MAIN(cases)
