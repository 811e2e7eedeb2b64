/* SPDX-License-Identifier: MIT */
/* Pressure and other events, heard by read and poll on a connection. */
#include "vm.h"

static int admin, t, w;
static uint32_t pool, id;

#define KIND(k) (1ULL << HEARTH_EV_##k)

static uint64_t watch(int fd, uint32_t flags, uint64_t kinds)
{
	struct hearth_ioc_watch a = { .size = sizeof(a), .flags = flags, .kinds = kinds };

	EXPECT(!ioctl(fd, HEARTH_IOC_WATCH, &a));
	return a.out_seq;
}

static void set_up(void)
{
	admin = vm_admin();
	t = vm_open();
	id = vm_join(t, "ev");
	pool = vm_pool(admin, "ev", HEARTH_POOL_ACCOUNT, 1000);
	w = open("/dev/hearth", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	EXPECT(w >= 0);
}

static void tear_down(void)
{
	close(w);
	close(t);
	vm_pool_remove(admin, pool);
	close(admin);
}

/* The next event of this pool or tenant; false when none waits. */
static bool next(int fd, struct hearth_event_record *ev)
{
	while (read(fd, ev, sizeof(*ev)) == sizeof(*ev)) {
		EXPECT_EQ(ev->size, sizeof(*ev));
		if (ev->pool == pool || ev->tenant == id)
			return true;
	}
	EXPECT_EQ(errno, EAGAIN);
	return false;
}

/* The next one that is a change: what lasts is said again every second. */
static bool next_change(int fd, struct hearth_event_record *ev)
{
	while (next(fd, ev)) {
		if (ev->was != ev->level)
			return true;
	}
	return false;
}

static struct hearth_ioc_state state(int fd)
{
	struct hearth_ioc_state s = { .size = sizeof(s) };

	EXPECT(!ioctl(fd, HEARTH_IOC_STATE, &s));
	return s;
}

static void levels_rise_and_fall(void)
{
	struct pollfd pfd;
	struct hearth_event_record ev;
	uint64_t seq;

	set_up();
	seq = watch(w, 0, KIND(PRESSURE));
	pfd = (struct pollfd){ w, POLLIN | POLLPRI, 0 };
	EXPECT(!vm_charge(t, pool, 799, 0, NULL));
	EXPECT(!next(w, &ev));
	EXPECT(!vm_charge(t, pool, 1, 0, NULL));
	EXPECT_EQ(poll(&pfd, 1, 0), 1);
	EXPECT(pfd.revents & POLLIN);
	EXPECT(next_change(w, &ev));
	EXPECT_EQ(ev.kind, HEARTH_EV_PRESSURE);
	EXPECT_EQ(ev.pool, pool);
	EXPECT_EQ(ev.tenant, 0);
	EXPECT_EQ(ev.level, HEARTH_PRESSURE_LOW);
	EXPECT_EQ(ev.was, HEARTH_PRESSURE_NONE);
	EXPECT_EQ(ev.limit, 800);
	EXPECT_EQ(ev.current_bytes, 800);
	EXPECT(ev.seq > seq);
	EXPECT(ev.time && ev.time <= vm_now());
	/* Level-triggered, whatever was read. */
	EXPECT_EQ(poll(&pfd, 1, 0), 1);
	EXPECT(pfd.revents & POLLPRI);
	EXPECT_EQ(state(w).out_pool, HEARTH_PRESSURE_LOW);
	/* Over two levels at once: one event. */
	EXPECT(!vm_charge(t, pool, 200, 0, NULL));
	EXPECT(next_change(w, &ev));
	EXPECT_EQ(ev.level, HEARTH_PRESSURE_CRITICAL);
	/* Trembling at a threshold makes nothing. */
	EXPECT(!vm_uncharge(t, pool, 40));
	EXPECT(!vm_charge(t, pool, 40, 0, NULL));
	EXPECT(!next_change(w, &ev));
	EXPECT(!vm_uncharge(t, pool, 1000));
	EXPECT(next_change(w, &ev));
	EXPECT_EQ(ev.level, HEARTH_PRESSURE_NONE);
	EXPECT_EQ(ev.was, HEARTH_PRESSURE_CRITICAL);
	EXPECT(!next_change(w, &ev));
	EXPECT_EQ(vm_pool_get(w, pool).out_level, HEARTH_PRESSURE_NONE);
	tear_down();
}

static void a_level_that_lasts_is_repeated(void)
{
	struct hearth_event_record ev;
	uint64_t first;

	set_up();
	EXPECT(!vm_charge(t, pool, 900, 0, NULL));
	watch(w, 0, KIND(PRESSURE));
	fcntl(w, F_SETFL, 0);
	do
		EXPECT_EQ(read(w, &ev, sizeof(ev)), sizeof(ev));
	while (ev.pool != pool);
	EXPECT_EQ(ev.level, HEARTH_PRESSURE_MEDIUM);
	EXPECT_EQ(ev.was, HEARTH_PRESSURE_MEDIUM);
	first = ev.time;
	do
		EXPECT_EQ(read(w, &ev, sizeof(ev)), sizeof(ev));
	while (ev.pool != pool || ev.tenant);
	/* Not more often than once a second: the time is the one that this was decided by. */
	EXPECT(ev.time - first >= 1000000000);
	tear_down();
}

static void tenants_hear_of_themselves(void)
{
	struct hearth_event_record ev;
	uint64_t told;
	int other, i;

	set_up();
	other = vm_tenant("other");
	fcntl(other, F_SETFL, O_NONBLOCK);
	fcntl(t, F_SETFL, O_NONBLOCK);
	watch(t, 0, KIND(HIGH) | KIND(REFUSED) | KIND(BUDGET));
	watch(other, 0, KIND(HIGH) | KIND(REFUSED) | KIND(BUDGET));
	watch(w, HEARTH_WATCH_OTHERS, KIND(HIGH) | KIND(REFUSED) | KIND(BUDGET));
	EXPECT(!vm_budget(admin, "ev", pool, HEARTH_SET_HIGH | HEARTH_SET_MAX, 0, 0, 100, 200, NULL));
	EXPECT(!vm_charge(t, pool, 101, 0, NULL));
	EXPECT_ERR(ENOSPC, vm_charge(t, pool, 100, 0, NULL));
	EXPECT_ERR(ENOSPC, vm_charge(t, pool, 100, 0, NULL));
	EXPECT(next(t, &ev) && ev.kind == HEARTH_EV_BUDGET && ev.limit == 200);
	EXPECT(next(t, &ev) && ev.kind == HEARTH_EV_HIGH && ev.limit == 100);
	EXPECT(next(t, &ev) && ev.kind == HEARTH_EV_REFUSED && ev.limit == HEARTH_LIMIT_MAX);
	EXPECT_EQ(ev.bytes, 100);
	/* Those that come too soon after one that was told are only counted. */
	for (i = 0; i < 200; i++)
		EXPECT_ERR(ENOSPC, vm_charge(t, pool, 100, 0, NULL));
	for (told = ev.time; next(t, &ev); told = ev.time)
		EXPECT(ev.kind == HEARTH_EV_REFUSED && ev.time - told >= 100000000);
	EXPECT_EQ(vm_usage(t, 0, pool).out_n_refused_max, 202);
	EXPECT(!next(other, &ev));
	EXPECT(next(w, &ev) && next(w, &ev) && next(w, &ev));
	EXPECT_EQ(state(t).out_tenant, HEARTH_PRESSURE_NONE);
	EXPECT(!vm_charge(t, pool, 99, 0, NULL));
	EXPECT_EQ(state(t).out_tenant, HEARTH_PRESSURE_CRITICAL);
	EXPECT_EQ(state(t).out_level, HEARTH_PRESSURE_CRITICAL);
	EXPECT_EQ(state(other).out_tenant, HEARTH_PRESSURE_NONE);
	close(other);
	tear_down();
}

static void lost_events_are_told(void)
{
	struct hearth_event_record ev;
	int i, got = 0;
	uint64_t last = 0;

	set_up();
	watch(w, HEARTH_WATCH_OTHERS, KIND(TENANT_NEW) | KIND(TENANT_GONE));
	for (i = 0; i < 200; i++)
		close(vm_tenant("flicker"));
	while (read(w, &ev, sizeof(ev)) == sizeof(ev)) {
		EXPECT(ev.seq > last);
		last = ev.seq;
		got++;
	}
	EXPECT_EQ(got, 256);
	EXPECT_EQ(ev.lost, 400 - 256);
	EXPECT_EQ(state(w).out_lost, 400 - 256);
	/* Repaired by reading the state. */
	EXPECT(state(w).out_seq >= last);
	tear_down();
}

static void reading_has_its_rules(void)
{
	struct hearth_event_record ev[3];
	struct hearth_ioc_watch a = { .size = sizeof(a), .kinds = 1 };

	set_up();
	EXPECT_ERR(EINVAL, read(w, ev, sizeof(*ev) - 1));
	EXPECT_ERR(EINVAL, read(w, ev, 0));
	EXPECT_ERR(EAGAIN, read(w, ev, sizeof(*ev)));
	EXPECT_ERR(EOPNOTSUPP, ioctl(w, HEARTH_IOC_WATCH, &a));
	a.kinds = 1ULL << 63;
	EXPECT_ERR(EOPNOTSUPP, ioctl(w, HEARTH_IOC_WATCH, &a));
	watch(w, HEARTH_WATCH_OTHERS, KIND(TENANT_NEW) | KIND(TENANT_GONE));
	close(vm_tenant("x"));
	close(vm_tenant("y"));
	/* A bad buffer loses nothing. */
	EXPECT_ERR(EFAULT, syscall(SYS_read, w, (void *)8, sizeof(*ev)));
	/* Whole records only. */
	EXPECT_EQ(read(w, ev, sizeof(ev) - 1), 2 * sizeof(*ev));
	EXPECT_EQ(ev[0].kind, HEARTH_EV_TENANT_NEW);
	EXPECT_EQ(ev[1].kind, HEARTH_EV_TENANT_GONE);
	EXPECT_EQ(read(w, ev, sizeof(ev)), 2 * sizeof(*ev));
	close(vm_tenant("z"));
	watch(w, 0, 0);
	EXPECT_ERR(EAGAIN, read(w, ev, sizeof(*ev)));
	EXPECT_ERR(EINVAL, syscall(SYS_read, w, NULL, 0));
	tear_down();
}

static void pools_are_announced(void)
{
	struct hearth_ioc_pool_resize rs = { .size = sizeof(rs), .bytes = 5000 };
	struct hearth_event_record ev;
	uint32_t p;

	set_up();
	watch(w, 0, KIND(POOL_NEW) | KIND(POOL_SIZE) | KIND(POOL_GONE));
	p = vm_pool(admin, "short", HEARTH_POOL_ACCOUNT, 4096);
	rs.pool = p;
	EXPECT(!ioctl(admin, HEARTH_IOC_POOL_RESIZE, &rs));
	vm_pool_remove(admin, p);
	EXPECT_EQ(read(w, &ev, sizeof(ev)), sizeof(ev));
	EXPECT(ev.kind == HEARTH_EV_POOL_NEW && ev.pool == p && ev.bytes == 4096);
	EXPECT_EQ(read(w, &ev, sizeof(ev)), sizeof(ev));
	EXPECT(ev.kind == HEARTH_EV_POOL_SIZE && ev.bytes == 5000);
	EXPECT_EQ(read(w, &ev, sizeof(ev)), sizeof(ev));
	EXPECT(ev.kind == HEARTH_EV_POOL_GONE && ev.pool == p);
	tear_down();
}

/* The system's own level: used memory is made scarce by a child. */
static void the_system_is_heard(void)
{
	struct hearth_ioc_state s, now;
	uint64_t take;
	void *p;

	set_up();
	s = state(w);
	EXPECT(s.out_total > 0 && s.out_available > 0 && s.out_available <= s.out_total);
	if (s.out_system != HEARTH_PRESSURE_NONE)
		vm_skip("this guest is short of memory already");
	/* So much that 9 % of the whole is left, of what is there now, not at the last sample. */
	take = vm_available() - s.out_total * 9 / 100;
	p = mmap(NULL, take, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(p != MAP_FAILED);
	memset(p, 1, take);
	UNTIL((now = state(w)).out_system >= HEARTH_PRESSURE_LOW);
	munmap(p, take);
	EXPECT(now.out_available < s.out_available);
	UNTIL(state(w).out_system == HEARTH_PRESSURE_NONE);
	tear_down();
}

static const struct vm_case cases[] = {
	CASE(levels_rise_and_fall),
	CASE(a_level_that_lasts_is_repeated),
	CASE(tenants_hear_of_themselves),
	CASE(lost_events_are_told),
	CASE(reading_has_its_rules),
	CASE(pools_are_announced),
	CASE(the_system_is_heard),
};
VM_MAIN(cases)
