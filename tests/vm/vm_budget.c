/* SPDX-License-Identifier: MIT */
/* Budgets, charges, waiting, privilege: two and more tenants in one pool. */
#include "vm.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/prctl.h>

#define ALL_LIMITS (HEARTH_SET_MIN | HEARTH_SET_LOW | HEARTH_SET_HIGH | HEARTH_SET_MAX)

static int admin, a, b;
static uint32_t pool, id_a, id_b;

static void set_up(void)
{
	admin = vm_admin();
	a = vm_open();
	b = vm_open();
	id_a = vm_join(a, "alice");
	id_b = vm_join(b, "bob");
	pool = vm_pool(admin, "acct", HEARTH_POOL_ACCOUNT, 1000);
}

static void tear_down(void)
{
	close(a);
	close(b);
	vm_pool_remove(admin, pool);
	close(admin);
}

static int set(const char *who, uint64_t min, uint64_t low, uint64_t high, uint64_t max,
	       struct hearth_refusal *ref)
{
	return vm_budget(admin, who, pool, ALL_LIMITS, min, low, high, max, ref);
}

static void max_refuses_and_names_itself(void)
{
	struct hearth_refusal r;

	set_up();
	EXPECT(!set("alice", 0, 0, HEARTH_NOLIMIT, 300, NULL));
	EXPECT(!vm_charge(a, pool, 300, 0, NULL));
	EXPECT_ERR(ENOSPC, vm_charge(a, pool, 1, 0, &r));
	EXPECT_EQ(r.limit, HEARTH_LIMIT_MAX);
	EXPECT_EQ(r.limit_bytes, 300);
	EXPECT_EQ(r.available, 0);
	EXPECT_EQ(r.holder, id_a);
	EXPECT(!strcmp(r.holder_name, "alice"));
	EXPECT_EQ(vm_usage(a, 0, pool).out_current, 300);
	EXPECT_EQ(vm_usage(a, 0, pool).out_n_refused_max, 1);
	tear_down();
}

static void a_full_pool_refuses_and_names_the_holder(void)
{
	struct hearth_refusal r;

	set_up();
	EXPECT(!vm_charge(b, pool, 900, 0, NULL));
	EXPECT_ERR(ENOSPC, vm_charge(a, pool, 101, 0, &r));
	EXPECT_EQ(r.limit, HEARTH_LIMIT_POOL);
	EXPECT_EQ(r.available, 100);
	EXPECT_EQ(r.holder, id_b);
	EXPECT_EQ(r.holder_bytes, 900);
	EXPECT(!strcmp(r.holder_name, "bob"));
	EXPECT(!vm_charge(a, pool, 100, 0, NULL));
	tear_down();
}

static void min_is_nobody_elses(void)
{
	struct hearth_refusal r;

	set_up();
	EXPECT(!set("alice", 400, 0, HEARTH_NOLIMIT, HEARTH_NOLIMIT, NULL));
	EXPECT_ERR(ENOSPC, vm_charge(b, pool, 601, 0, &r));
	EXPECT_EQ(r.limit, HEARTH_LIMIT_MIN);
	EXPECT_EQ(r.holder, id_a);
	EXPECT(!vm_charge(b, pool, 600, 0, NULL));
	EXPECT(!vm_charge(a, pool, 400, 0, NULL));
	EXPECT_EQ(vm_usage(b, 0, pool).out_n_refused_min, 1);
	tear_down();
}

static void the_sum_of_min_is_bounded(void)
{
	struct hearth_refusal r;

	set_up();
	EXPECT(!set("alice", 700, 0, HEARTH_NOLIMIT, HEARTH_NOLIMIT, NULL));
	EXPECT_ERR(ENOSPC, set("bob", 301, 0, HEARTH_NOLIMIT, HEARTH_NOLIMIT, &r));
	EXPECT_EQ(r.limit, HEARTH_LIMIT_SUM);
	EXPECT_EQ(r.holder, id_a);
	EXPECT_EQ(r.holder_bytes, 700);
	EXPECT_EQ(vm_usage(b, 0, pool).out_min, 0);
	EXPECT(!set("bob", 300, 0, HEARTH_NOLIMIT, HEARTH_NOLIMIT, NULL));
	EXPECT_EQ(vm_pool_get(admin, pool).out_min_sum, 1000);
	EXPECT_ERR(EINVAL, set("bob", 10, 0, HEARTH_NOLIMIT, 9, NULL));
	tear_down();
}

static void lowering_below_use_is_allowed(void)
{
	struct hearth_ioc_watch w = { .size = sizeof(w), .kinds = 1ULL << HEARTH_EV_RECLAIM };
	struct hearth_event_record ev;

	set_up();
	EXPECT(!vm_charge(a, pool, 500, 0, NULL));
	EXPECT(!ioctl(a, HEARTH_IOC_WATCH, &w));
	EXPECT(!set("alice", 0, 0, 250, 300, NULL));
	EXPECT_EQ(vm_usage(a, 0, pool).out_current, 500);
	EXPECT_EQ(vm_usage(a, 0, pool).out_excess, 250);
	EXPECT_EQ(read(a, &ev, sizeof(ev)), sizeof(ev));
	EXPECT_EQ(ev.kind, HEARTH_EV_RECLAIM);
	EXPECT_EQ(ev.bytes, 250);
	EXPECT_ERR(ENOSPC, vm_charge(a, pool, 1, 0, NULL));
	EXPECT(!vm_uncharge(a, pool, 300));
	EXPECT(!vm_charge(a, pool, 1, 0, NULL));
	tear_down();
}

static void sets_are_all_or_nothing(void)
{
	struct hearth_budget_entry e[3] = {
		{ .size = sizeof(*e), .mask = HEARTH_SET_MIN, .tenant = "alice", .pool = pool, .min = 100 },
		{ .size = sizeof(*e), .mask = HEARTH_SET_CREATE | HEARTH_SET_MIN, .tenant = "carol",
		  .min = 200 },
		{ .size = sizeof(*e), .mask = HEARTH_SET_MIN, .tenant = "bob", .min = 800 },
	};
	struct hearth_ioc_budget_set s = {
		.size = sizeof(s), .entries = (uintptr_t)e, .count = 3, .stride = sizeof(*e),
	};
	struct hearth_ioc_tenant_get t = {
		.size = sizeof(t), .flags = HEARTH_GET_BY_NAME, .name = "carol",
	};
	int i;

	set_up();
	for (i = 0; i < 3; i++)
		e[i].pool = pool;
	EXPECT_ERR(ENOSPC, ioctl(admin, HEARTH_IOC_BUDGET_SET, &s));
	EXPECT_EQ(s.out_refusal.limit, HEARTH_LIMIT_SUM);
	EXPECT_EQ(s.out_bad, 2);
	EXPECT_EQ(vm_usage(a, 0, pool).out_min, 0);
	EXPECT_ERR(ENOENT, ioctl(admin, HEARTH_IOC_TENANT_GET, &t));
	e[2].min = 700;
	EXPECT(!ioctl(admin, HEARTH_IOC_BUDGET_SET, &s));
	EXPECT_EQ(vm_usage(a, 0, pool).out_min, 100);
	EXPECT(!ioctl(admin, HEARTH_IOC_TENANT_GET, &t));
	EXPECT_EQ(t.out_persistent, 1);
	EXPECT_EQ(vm_usage(admin, t.tenant, pool).out_min, 200);
	/* Wrong entries: which one is told, and nothing is done. */
	e[1].pool = 12345;
	EXPECT_ERR(ENOENT, ioctl(admin, HEARTH_IOC_BUDGET_SET, &s));
	EXPECT_EQ(s.out_bad, 1);
	e[1].pool = pool;
	e[1].mask = 0;
	EXPECT_ERR(EINVAL, ioctl(admin, HEARTH_IOC_BUDGET_SET, &s));
	EXPECT_EQ(s.out_bad, 1);
	e[1].mask = 1U << 20;
	EXPECT_ERR(EOPNOTSUPP, ioctl(admin, HEARTH_IOC_BUDGET_SET, &s));
	e[1] = e[0];
	EXPECT_ERR(EINVAL, ioctl(admin, HEARTH_IOC_BUDGET_SET, &s));
	strcpy(e[1].tenant, "nobody");
	EXPECT_ERR(ENOENT, ioctl(admin, HEARTH_IOC_BUDGET_SET, &s));
	s.count = 0;
	EXPECT_ERR(EINVAL, ioctl(admin, HEARTH_IOC_BUDGET_SET, &s));
	s.count = HEARTH_BUDGETS_MAX + 1;
	EXPECT_ERR(EINVAL, ioctl(admin, HEARTH_IOC_BUDGET_SET, &s));
	s.count = 3;
	s.stride = sizeof(*e) - 1;
	EXPECT_ERR(EINVAL, ioctl(admin, HEARTH_IOC_BUDGET_SET, &s));
	s.stride = sizeof(*e);
	s.entries = 4096;
	EXPECT_ERR(EFAULT, ioctl(admin, HEARTH_IOC_BUDGET_SET, &s));
	EXPECT(!set("alice", 0, 0, HEARTH_NOLIMIT, HEARTH_NOLIMIT, NULL));
	{
		struct hearth_ioc_tenant_remove r = { .size = sizeof(r), .tenant = t.tenant };

		EXPECT(!ioctl(admin, HEARTH_IOC_TENANT_REMOVE, &r));
		EXPECT_ERR(ENOENT, ioctl(admin, HEARTH_IOC_TENANT_REMOVE, &r));
		r.tenant = id_a;
		EXPECT_ERR(EBUSY, ioctl(admin, HEARTH_IOC_TENANT_REMOVE, &r));
	}
	tear_down();
}

static void default_max_is_for_newcomers(void)
{
	struct hearth_budget_entry e = {
		.size = sizeof(e), .mask = HEARTH_BUDGET_DEFAULT | HEARTH_SET_MAX, .max = 123,
	};
	struct hearth_ioc_budget_set s = {
		.size = sizeof(s), .entries = (uintptr_t)&e, .count = 1, .stride = sizeof(e),
	};
	int c;

	set_up();
	e.pool = pool;
	EXPECT(!ioctl(admin, HEARTH_IOC_BUDGET_SET, &s));
	c = vm_tenant("newcomer");
	EXPECT_EQ(vm_usage(c, 0, pool).out_max, 123);
	EXPECT_EQ(vm_usage(a, 0, pool).out_max, HEARTH_NOLIMIT);
	EXPECT_ERR(ENOSPC, vm_charge(c, pool, 124, 0, NULL));
	close(c);
	tear_down();
}

/* Without the capability: may charge, may not change a limit. */
static void plain(void *arg)
{
	struct hearth_ioc_admin ad = { .size = sizeof(ad) };
	struct hearth_ioc_pool_create pc = {
		.size = sizeof(pc), .name = "mine", .kind = HEARTH_POOL_ACCOUNT, .bytes = 4096,
	};
	struct hearth_ioc_pool_resize pr = { .size = sizeof(pr), .pool = pool, .bytes = 4096 };
	struct hearth_ioc_pool_remove pm = { .size = sizeof(pm), .pool = pool };
	struct hearth_ioc_tenant_remove tr = { .size = sizeof(tr), .tenant = id_b };
	struct hearth_ioc_join j = {
		.size = sizeof(j), .flags = HEARTH_JOIN_CREATE, .name = "vip",
		.priority = HEARTH_PRIORITY_USER_MAX + 1,
	};
	struct hearth_ioc_budget_get g = { .size = sizeof(g), .pool = pool,
					   .flags = HEARTH_BUDGET_RESET_PEAK };
	int fd, handed = *(int *)arg;

	EXPECT(!setresgid(1000, 1000, 1000) && !setresuid(1000, 1000, 1000));
	EXPECT_ERR(EACCES, open("/dev/hearth", O_RDWR));
	/* A plain connection that somebody opened for it. */
	fd = handed;
	EXPECT_ERR(EPERM, ioctl(fd, HEARTH_IOC_ADMIN, &ad));
	EXPECT_ERR(EPERM, ioctl(fd, HEARTH_IOC_POOL_CREATE, &pc));
	EXPECT_ERR(EPERM, ioctl(fd, HEARTH_IOC_POOL_RESIZE, &pr));
	EXPECT_ERR(EPERM, ioctl(fd, HEARTH_IOC_POOL_REMOVE, &pm));
	EXPECT_ERR(EPERM, ioctl(fd, HEARTH_IOC_TENANT_REMOVE, &tr));
	EXPECT_ERR(EPERM, vm_budget(fd, "alice", pool, HEARTH_SET_MAX, 0, 0, 0, 1000, NULL));
	EXPECT_ERR(EPERM, ioctl(fd, HEARTH_IOC_JOIN, &j));
	g.tenant = id_b;
	EXPECT_ERR(ENOTCONN, vm_charge(fd, pool, 1, 0, NULL));
	vm_join(fd, "plain");
	EXPECT_ERR(EPERM, ioctl(fd, HEARTH_IOC_BUDGET_GET, &g));
	EXPECT(!vm_charge(fd, pool, 1, 0, NULL));
	/* An administrator's descriptor serves in any hands. */
	EXPECT(!vm_budget(admin, "plain", pool, HEARTH_SET_MAX, 0, 0, 0, 1, NULL));
	EXPECT_ERR(ENOSPC, vm_charge(fd, pool, 1, 0, NULL));
}

static void limits_are_the_administrators(void)
{
	int fd;

	set_up();
	fd = vm_open();
	EXPECT_EQ(vm_wait(vm_fork(plain, &fd)), 0);
	close(fd);
	tear_down();
}

static void join_foreign(void *arg)
{
	struct hearth_ioc_join j = { .size = sizeof(j), .name = "owned" };
	int fd = *(int *)arg;

	EXPECT(!setresgid(1000, 1000, 1000) && !setresuid(1001, 1001, 1001));
	EXPECT_ERR(EACCES, ioctl(fd, HEARTH_IOC_JOIN, &j));
}

static void tenants_can_be_one_users(void)
{
	struct hearth_budget_entry e = {
		.size = sizeof(e), .mask = HEARTH_SET_CREATE | HEARTH_SET_UID | HEARTH_SET_CLASS |
					   HEARTH_SET_PRIORITY,
		.tenant = "owned", .uid = 1000, .tenant_class = HEARTH_TENANT_TTS, .priority = 900,
	};
	struct hearth_ioc_budget_set s = {
		.size = sizeof(s), .entries = (uintptr_t)&e, .count = 1, .stride = sizeof(e),
	};
	struct hearth_ioc_join j = { .size = sizeof(j), .name = "owned" };
	struct hearth_ioc_tenant_remove r = { .size = sizeof(r) };
	int fd;

	set_up();
	EXPECT(!ioctl(admin, HEARTH_IOC_BUDGET_SET, &s));
	fd = vm_open();
	EXPECT_EQ(vm_wait(vm_fork(join_foreign, &fd)), 0);
	close(fd);
	/* The administrator may. */
	EXPECT(!ioctl(admin, HEARTH_IOC_JOIN, &j));
	EXPECT_EQ(j.out_class, HEARTH_TENANT_TTS);
	EXPECT_EQ(j.out_priority, 900);
	EXPECT_ERR(EBUSY, ioctl(admin, HEARTH_IOC_JOIN, &j));
	r.tenant = j.out_tenant;
	close(admin);
	admin = vm_admin();
	EXPECT(!ioctl(admin, HEARTH_IOC_TENANT_REMOVE, &r));
	tear_down();
}

static void joining_has_its_rules(void)
{
	struct hearth_ioc_join j = { .size = sizeof(j), .name = "dora" };
	int x = vm_open(), y = vm_open();

	set_up();
	EXPECT_ERR(ENOENT, ioctl(x, HEARTH_IOC_JOIN, &j));
	j.flags = HEARTH_JOIN_CREATE | HEARTH_JOIN_EXCL;
	j.tenant_class = 77;
	EXPECT_ERR(EOPNOTSUPP, ioctl(x, HEARTH_IOC_JOIN, &j));
	j.tenant_class = 0;
	j.priority = HEARTH_PRIORITY_MAX + 1;
	EXPECT_ERR(EINVAL, ioctl(x, HEARTH_IOC_JOIN, &j));
	j.priority = 5;
	EXPECT(!ioctl(x, HEARTH_IOC_JOIN, &j));
	EXPECT_ERR(EEXIST, ioctl(y, HEARTH_IOC_JOIN, &j));
	j.flags = 0;
	EXPECT(!ioctl(y, HEARTH_IOC_JOIN, &j));
	EXPECT_ERR(EBUSY, ioctl(y, HEARTH_IOC_JOIN, &j));
	/* Charges are each connection's own. */
	EXPECT(!vm_charge(x, pool, 10, 0, NULL));
	EXPECT_ERR(EINVAL, vm_uncharge(y, pool, 1));
	EXPECT_ERR(EINVAL, vm_uncharge(x, pool, 11));
	EXPECT_ERR(EINVAL, vm_uncharge(x, pool, 0));
	EXPECT_ERR(EINVAL, vm_charge(x, pool, 0, 0, NULL));
	EXPECT_ERR(ENOENT, vm_charge(x, 4711, 1, 0, NULL));
	close(x);
	EXPECT_EQ(vm_usage(y, 0, pool).out_current, 0);
	close(y);
	tear_down();
}

static void boundary_sizes(void)
{
	static const uint64_t sizes[] = { 1001, 1ULL << 32, 1ULL << 62, 1ULL << 63, ~0ULL, ~0ULL - 1 };
	struct hearth_refusal r;
	size_t i;

	set_up();
	EXPECT(!vm_charge(a, pool, 1000, 0, NULL));
	EXPECT(!vm_uncharge(a, pool, 1000));
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		EXPECT_ERR(ENOSPC, vm_charge(a, pool, sizes[i], 0, &r));
		EXPECT_EQ(r.wanted, sizes[i]);
		EXPECT_EQ(r.available, 1000);
		/* What can never fit does not wait. */
		EXPECT_ERR(ENOSPC, vm_charge(a, pool, sizes[i], ~0ULL, &r));
		EXPECT_ERR(EINVAL, vm_uncharge(a, pool, sizes[i]));
	}
	EXPECT_EQ(vm_usage(a, 0, pool).out_current, 0);
	tear_down();
}

struct waiter {
	pthread_t th;
	int fd;
	uint64_t bytes, deadline;
	int ret, err;
	struct hearth_refusal ref;
};

static void *wait_thread(void *arg)
{
	struct waiter *w = arg;

	w->ret = vm_charge(w->fd, pool, w->bytes, w->deadline, &w->ref);
	w->err = errno;
	return NULL;
}

static void wait_start(struct waiter *w, int fd, uint64_t bytes)
{
	w->fd = fd;
	w->bytes = bytes;
	w->deadline = VM_LATER;
	EXPECT(!pthread_create(&w->th, NULL, wait_thread, w));
}

static void until_waiting(uint32_t tenant, uint32_t n)
{
	UNTIL(vm_usage(admin, tenant, pool).out_waiters == n);
}

static void waiting_ends_when_it_fits(void)
{
	struct hearth_ioc_watch watch = { .size = sizeof(watch), .kinds = 1ULL << HEARTH_EV_RECLAIM };
	struct hearth_event_record ev;
	struct waiter w = {};

	set_up();
	EXPECT(!ioctl(b, HEARTH_IOC_WATCH, &watch));
	EXPECT(!vm_charge(b, pool, 900, 0, NULL));
	wait_start(&w, a, 300);
	until_waiting(id_a, 1);
	/* The holder is asked for what is missing. */
	EXPECT_EQ(read(b, &ev, sizeof(ev)), sizeof(ev));
	EXPECT_EQ(ev.kind, HEARTH_EV_RECLAIM);
	EXPECT_EQ(ev.bytes, 200);
	EXPECT_EQ(ev.deadline, w.deadline);
	EXPECT(!vm_uncharge(b, pool, 199));
	usleep(20000);
	EXPECT_EQ(vm_usage(admin, id_a, pool).out_waiters, 1);
	EXPECT(!vm_uncharge(b, pool, 1));
	pthread_join(w.th, NULL);
	EXPECT_EQ(w.ret, 0);
	EXPECT_EQ(vm_usage(a, 0, pool).out_current, 300);
	/* More than once where the wait took more than a second. */
	EXPECT(vm_usage(b, 0, pool).out_n_reclaim >= 1);
	tear_down();
}

static void waiting_ends_at_its_deadline(void)
{
	struct hearth_refusal r;
	uint64_t t0;

	set_up();
	EXPECT(!vm_charge(b, pool, 900, 0, NULL));
	t0 = vm_now();
	EXPECT_ERR(ETIMEDOUT, vm_charge(a, pool, 300, t0 + 50000000, &r));
	EXPECT(vm_now() >= t0 + 50000000);
	EXPECT_EQ(r.limit, HEARTH_LIMIT_POOL);
	EXPECT_EQ(r.holder, id_b);
	/* A deadline that is past: asked, not waited for. */
	EXPECT_ERR(ETIMEDOUT, vm_charge(a, pool, 300, 1, &r));
	EXPECT_EQ(vm_usage(a, 0, pool).out_current, 0);
	EXPECT_EQ(vm_usage(a, 0, pool).out_waiters, 0);
	/* Its own max is waited for too, until another thread of it gives back. */
	EXPECT(!set("alice", 0, 0, HEARTH_NOLIMIT, 50, NULL));
	EXPECT(!vm_charge(a, pool, 50, 0, NULL));
	EXPECT_ERR(ETIMEDOUT, vm_charge(a, pool, 10, vm_now() + 20000000, &r));
	EXPECT_EQ(r.limit, HEARTH_LIMIT_MAX);
	tear_down();
}

/* So many that each would make every other's charge slower; then no more of this tenant. */
static void there_is_an_end_to_waiters(void)
{
	struct waiter *w = calloc(HEARTH_WAITERS_MAX, sizeof(*w)), other = {};
	struct hearth_refusal r;
	uint32_t i;

	set_up();
	EXPECT(!vm_charge(b, pool, 1000, 0, NULL));
	for (i = 0; i < HEARTH_WAITERS_MAX; i++)
		wait_start(&w[i], a, 1);
	until_waiting(id_a, HEARTH_WAITERS_MAX);
	EXPECT_ERR(EUSERS, vm_charge(a, pool, 1, VM_LATER, &r));
	EXPECT_EQ(vm_usage(a, 0, pool).out_waiters, HEARTH_WAITERS_MAX);
	/* Who does not wait is told what it always was, and another tenant may wait. */
	EXPECT_ERR(ENOSPC, vm_charge(a, pool, 1, 0, &r));
	wait_start(&other, b, 1);
	until_waiting(id_b, 1);
	EXPECT(!vm_uncharge(b, pool, HEARTH_WAITERS_MAX + 1));
	for (i = 0; i < HEARTH_WAITERS_MAX; i++) {
		pthread_join(w[i].th, NULL);
		EXPECT_EQ(w[i].ret, 0);
	}
	pthread_join(other.th, NULL);
	EXPECT_EQ(other.ret, 0);
	EXPECT_EQ(vm_usage(a, 0, pool).out_current, HEARTH_WAITERS_MAX);
	EXPECT_EQ(vm_usage(a, 0, pool).out_waiters, 0);
	/* And there is room for one that waits again. */
	wait_start(&other, a, 1);
	until_waiting(id_a, 1);
	EXPECT(!vm_uncharge(b, pool, 1));
	pthread_join(other.th, NULL);
	EXPECT_EQ(other.ret, 0);
	free(w);
	tear_down();
}

static void there_is_an_end_to_connections(void)
{
	struct hearth_ioc_join j = { .size = sizeof(j), .name = "alice" };
	struct hearth_ioc_tenant_get g = { .size = sizeof(g), .flags = HEARTH_GET_BY_NAME, .name = "alice" };
	struct rlimit l = { 2 * HEARTH_CONNECTIONS_MAX, 2 * HEARTH_CONNECTIONS_MAX };
	static int fd[HEARTH_CONNECTIONS_MAX];
	uint32_t n = 1;                /* a is one */
	int late;

	set_up();
	EXPECT(!setrlimit(RLIMIT_NOFILE, &l));
	while (n < HEARTH_CONNECTIONS_MAX) {
		fd[n] = vm_open();
		EXPECT(!ioctl(fd[n], HEARTH_IOC_JOIN, &j));
		n++;
	}
	late = vm_open();
	EXPECT_ERR(EUSERS, ioctl(late, HEARTH_IOC_JOIN, &j));
	EXPECT(!ioctl(admin, HEARTH_IOC_TENANT_GET, &g));
	EXPECT_EQ(g.out_connections, HEARTH_CONNECTIONS_MAX);
	/* It has joined nothing: it may join another, or this one when there is room. */
	EXPECT_ERR(ENOTCONN, vm_charge(late, pool, 1, 0, NULL));
	close(vm_tenant("robert"));
	close(fd[--n]);
	EXPECT(!ioctl(late, HEARTH_IOC_JOIN, &j));
	close(late);
	while (--n)
		close(fd[n]);
	tear_down();
}

static void higher_priority_is_served_first(void)
{
	struct hearth_budget_entry e = {
		.size = sizeof(e), .mask = HEARTH_SET_PRIORITY, .tenant = "bob", .priority = 100,
	};
	struct hearth_ioc_budget_set s = {
		.size = sizeof(s), .entries = (uintptr_t)&e, .count = 1, .stride = sizeof(e),
	};
	struct waiter lo = {}, hi = {};
	struct hearth_refusal r;
	int holder;

	set_up();
	holder = vm_tenant("holder");
	EXPECT(!ioctl(admin, HEARTH_IOC_BUDGET_SET, &s));
	EXPECT(!vm_charge(holder, pool, 1000, 0, NULL));
	wait_start(&lo, a, 100);
	until_waiting(id_a, 1);
	wait_start(&hi, b, 400);
	until_waiting(id_b, 1);
	/* Priority cannot be changed under a waiter. */
	e.priority = 1;
	EXPECT_ERR(EBUSY, ioctl(admin, HEARTH_IOC_BUDGET_SET, &s));
	/* Enough for the one of low priority, who must not get it. */
	EXPECT(!vm_uncharge(holder, pool, 200));
	usleep(30000);
	EXPECT_EQ(vm_usage(admin, id_a, pool).out_waiters, 1);
	/* And a newcomer of low priority is told why. */
	EXPECT_ERR(ENOSPC, vm_charge(holder, pool, 100, 0, &r));
	EXPECT_EQ(r.limit, HEARTH_LIMIT_QUEUE);
	EXPECT_EQ(r.holder, id_b);
	EXPECT(!vm_uncharge(holder, pool, 200));
	pthread_join(hi.th, NULL);
	EXPECT_EQ(hi.ret, 0);
	EXPECT_EQ(vm_usage(admin, id_a, pool).out_waiters, 1);
	EXPECT(!vm_uncharge(holder, pool, 100));
	pthread_join(lo.th, NULL);
	EXPECT_EQ(lo.ret, 0);
	close(holder);
	tear_down();
}

static void on_alarm(int sig)
{
}

static void wait_and_be_killed(void *arg)
{
	vm_charge(*(int *)arg, pool, 500, ~0ULL, NULL);
}

/* Without SA_RESTART the call ends, and nothing is charged. */
static void wait_and_be_woken(void *arg)
{
	struct sigaction sa = { .sa_handler = on_alarm };

	sigaction(SIGALRM, &sa, NULL);
	EXPECT_ERR(EINTR, vm_charge(*(int *)arg, pool, 500, ~0ULL, NULL));
}

static void waiting_ends_with_a_signal(void)
{
	pid_t pid;

	set_up();
	EXPECT(!vm_charge(b, pool, 900, 0, NULL));
	/* It waits, so it is in the call: a signal before that would be lost. */
	pid = vm_fork(wait_and_be_woken, &a);
	until_waiting(id_a, 1);
	kill(pid, SIGALRM);
	EXPECT_EQ(vm_wait(pid), 0);
	EXPECT_EQ(vm_usage(a, 0, pool).out_waiters, 0);
	EXPECT_EQ(vm_usage(a, 0, pool).out_current, 0);
	/* Killed in the middle of the wait. */
	pid = vm_fork(wait_and_be_killed, &a);
	until_waiting(id_a, 1);
	kill(pid, SIGKILL);
	EXPECT_EQ(vm_wait(pid), 128 + SIGKILL);
	EXPECT_EQ(vm_usage(a, 0, pool).out_waiters, 0);
	EXPECT(!vm_charge(a, pool, 100, 0, NULL));
	tear_down();
}

static void a_pool_with_a_waiter_stays(void)
{
	struct hearth_ioc_pool_remove rm = { .size = sizeof(rm) };
	struct hearth_ioc_pool_resize rs = { .size = sizeof(rs), .bytes = 2000 };
	struct waiter w = {};

	set_up();
	rm.pool = rs.pool = pool;
	EXPECT(!vm_charge(b, pool, 900, 0, NULL));
	wait_start(&w, a, 600);
	until_waiting(id_a, 1);
	EXPECT_ERR(EBUSY, ioctl(admin, HEARTH_IOC_POOL_REMOVE, &rm));
	EXPECT(!ioctl(admin, HEARTH_IOC_POOL_RESIZE, &rs));
	pthread_join(w.th, NULL);
	EXPECT_EQ(w.ret, 0);
	/* Below what is charged, and below the sum of min. */
	rs.bytes = 1499;
	EXPECT_ERR(EBUSY, ioctl(admin, HEARTH_IOC_POOL_RESIZE, &rs));
	EXPECT(!vm_uncharge(a, pool, 600));
	EXPECT(!set("alice", 1200, 0, HEARTH_NOLIMIT, HEARTH_NOLIMIT, NULL) || errno == ENOSPC);
	rs.bytes = 1100;
	EXPECT_ERR(ENOSPC, ioctl(admin, HEARTH_IOC_POOL_RESIZE, &rs));
	EXPECT_EQ(rs.out_refusal.limit, HEARTH_LIMIT_SUM);
	rs.bytes = 0;
	EXPECT_ERR(EINVAL, ioctl(admin, HEARTH_IOC_POOL_RESIZE, &rs));
	rs.pool = 9999;
	EXPECT_ERR(ENOENT, ioctl(admin, HEARTH_IOC_POOL_RESIZE, &rs));
	tear_down();
}

/* It waits, and then not even an empty pool, or budget, would do: told at once, with the limit of now. */
static void waiting_ends_without_hope(void)
{
	struct hearth_ioc_pool_resize rs = { .size = sizeof(rs), .bytes = 550 };
	struct waiter w = {};

	set_up();
	rs.pool = pool;
	EXPECT(!vm_charge(b, pool, 500, 0, NULL));
	wait_start(&w, a, 600);
	until_waiting(id_a, 1);
	EXPECT(!ioctl(admin, HEARTH_IOC_POOL_RESIZE, &rs));
	pthread_join(w.th, NULL);
	EXPECT_EQ(w.ret, -1);
	EXPECT_EQ(w.err, ENOSPC);
	EXPECT_EQ(w.ref.limit, HEARTH_LIMIT_POOL);
	EXPECT_EQ(w.ref.limit_bytes, 550);
	EXPECT_EQ(w.ref.available, 50);
	EXPECT_EQ(w.ref.holder, id_b);
	rs.bytes = 1000;
	EXPECT(!ioctl(admin, HEARTH_IOC_POOL_RESIZE, &rs));
	wait_start(&w, a, 600);
	until_waiting(id_a, 1);
	EXPECT(!set("alice", 0, 0, HEARTH_NOLIMIT, 599, NULL));
	pthread_join(w.th, NULL);
	EXPECT_EQ(w.err, ENOSPC);
	EXPECT_EQ(w.ref.limit, HEARTH_LIMIT_MAX);
	EXPECT_EQ(w.ref.limit_bytes, 599);
	EXPECT_EQ(vm_usage(a, 0, pool).out_current, 0);
	EXPECT_EQ(vm_usage(a, 0, pool).out_waiters, 0);
	/* Nothing is left in the queue that would hold others back. */
	EXPECT(!vm_charge(a, pool, 500, 0, NULL));
	tear_down();
}

/* Its own max is in the way: others are not asked for what they could not give, nor held back. */
static void waiting_for_its_own_max_is_nobody_elses_matter(void)
{
	struct hearth_refusal r;
	struct waiter w = {};
	int c;

	set_up();
	c = vm_tenant("carol");
	EXPECT(!set("alice", 0, 0, HEARTH_NOLIMIT, 100, NULL));
	EXPECT(!vm_charge(a, pool, 100, 0, NULL));
	EXPECT(!vm_charge(b, pool, 800, 0, NULL));
	wait_start(&w, a, 50);
	until_waiting(id_a, 1);
	EXPECT_EQ(vm_usage(admin, id_b, pool).out_n_reclaim, 0);
	EXPECT(!vm_charge(c, pool, 100, 0, NULL) && !vm_uncharge(c, pool, 100));
	EXPECT(!vm_uncharge(a, pool, 50));
	pthread_join(w.th, NULL);
	EXPECT_EQ(w.ret, 0);
	EXPECT_EQ(vm_usage(admin, id_b, pool).out_n_reclaim, 0);
	/* The max falls while it waits in the queue: it leaves that, and goes on waiting. */
	EXPECT(!set("alice", 0, 0, HEARTH_NOLIMIT, 500, NULL));
	wait_start(&w, a, 300);
	until_waiting(id_a, 1);
	EXPECT_ERR(ENOSPC, vm_charge(c, pool, 50, 0, &r));
	EXPECT_EQ(r.limit, HEARTH_LIMIT_QUEUE);
	EXPECT(!set("alice", 0, 0, HEARTH_NOLIMIT, 350, NULL));
	UNTIL(!vm_charge(c, pool, 50, 0, NULL));
	EXPECT_EQ(vm_usage(admin, id_a, pool).out_waiters, 1);
	EXPECT(!set("alice", 0, 0, HEARTH_NOLIMIT, 400, NULL));
	EXPECT(!vm_uncharge(b, pool, 800));
	pthread_join(w.th, NULL);
	EXPECT_EQ(w.ret, 0);
	EXPECT_EQ(vm_usage(a, 0, pool).out_current, 400);
	close(c);
	tear_down();
}

static void peak_can_be_reset(void)
{
	struct hearth_ioc_budget_get g = { .size = sizeof(g), .flags = HEARTH_BUDGET_RESET_PEAK };

	set_up();
	g.pool = pool;
	EXPECT(!vm_charge(a, pool, 500, 0, NULL));
	EXPECT(!vm_uncharge(a, pool, 400));
	EXPECT(!ioctl(a, HEARTH_IOC_BUDGET_GET, &g));
	EXPECT_EQ(g.out_peak, 500);
	EXPECT_EQ(vm_usage(a, 0, pool).out_peak, 100);
	EXPECT_EQ(vm_pool_get(a, pool).out_peak, 500);
	tear_down();
}

static void tenants_and_pools_can_be_listed(void)
{
	struct hearth_ioc_tenant_get t = { .size = sizeof(t), .flags = HEARTH_GET_NEXT };
	struct hearth_ioc_pool_get p = { .size = sizeof(p), .flags = HEARTH_GET_NEXT };
	uint32_t last = 0, seen = 0;

	set_up();
	while (!ioctl(a, HEARTH_IOC_TENANT_GET, &t)) {
		EXPECT(t.tenant > last);
		last = t.tenant;
		seen += t.tenant == id_a || t.tenant == id_b;
	}
	EXPECT_EQ(errno, ENOENT);
	EXPECT_EQ(seen, 2);
	last = seen = 0;
	while (!ioctl(a, HEARTH_IOC_POOL_GET, &p)) {
		EXPECT(p.pool > last);
		last = p.pool;
		seen += p.pool == pool && !strcmp(p.name, "acct");
	}
	EXPECT_EQ(seen, 1);
	memset(&p, 0, sizeof(p));
	p.size = sizeof(p);
	p.flags = HEARTH_GET_BY_NAME;
	strcpy(p.name, "acct");
	EXPECT(!ioctl(a, HEARTH_IOC_POOL_GET, &p));
	EXPECT_EQ(p.pool, pool);
	p.flags = 3;
	EXPECT_ERR(EINVAL, ioctl(a, HEARTH_IOC_POOL_GET, &p));
	p.flags = 0;
	p.pool = 7777;
	EXPECT_ERR(ENOENT, ioctl(a, HEARTH_IOC_POOL_GET, &p));
	tear_down();
}

static const struct vm_case cases[] = {
	CASE(max_refuses_and_names_itself),
	CASE(a_full_pool_refuses_and_names_the_holder),
	CASE(min_is_nobody_elses),
	CASE(the_sum_of_min_is_bounded),
	CASE(lowering_below_use_is_allowed),
	CASE(sets_are_all_or_nothing),
	CASE(default_max_is_for_newcomers),
	CASE(limits_are_the_administrators),
	CASE(tenants_can_be_one_users),
	CASE(joining_has_its_rules),
	CASE(boundary_sizes),
	CASE(waiting_ends_when_it_fits),
	CASE(waiting_ends_at_its_deadline),
	CASE(there_is_an_end_to_waiters),
	CASE(there_is_an_end_to_connections),
	CASE(higher_priority_is_served_first),
	CASE(waiting_ends_with_a_signal),
	CASE(a_pool_with_a_waiter_stays),
	CASE(waiting_ends_without_hope),
	CASE(waiting_for_its_own_max_is_nobody_elses_matter),
	CASE(peak_can_be_reset),
	CASE(tenants_and_pools_can_be_listed),
};
VM_MAIN(cases)
