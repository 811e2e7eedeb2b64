/* SPDX-License-Identifier: MIT */
/* What can be looked at: the trace points and the tables of debugfs. */
#include "vm.h"

#define TRACE "/sys/kernel/tracing/"
#define TABLES "/sys/kernel/debug/hearth/"

static char text[1 << 20];

static const char *slurp(const char *path)
{
	FILE *f = fopen(path, "r");
	size_t n;

	EXPECT(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = 0;
	fclose(f);
	return text;
}

static void put(const char *path, const char *what)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	EXPECT(fd >= 0 && write(fd, what, strlen(what)) == (ssize_t)strlen(what));
	close(fd);
}

static void has(const char *where, const char *what)
{
	if (!strstr(where, what))
		vm_fail(__FILE__, __LINE__, "no \"%s\", but %zu bytes that end in:\n%s", what, strlen(where),
			where + (strlen(where) > 400 ? strlen(where) - 400 : 0));
}

/* The line of @where that has @what, cut off at its end. */
static char *line_of(char *where, const char *what)
{
	char *p = strstr(where, what);

	if (!p)
		vm_fail(__FILE__, __LINE__, "no line with \"%s\" in:\n%.2000s", what, where);
	while (p > where && p[-1] != '\n')
		p--;
	p[strcspn(p, "\n")] = 0;
	return p;
}

static int admin, t, other, id;
static uint32_t pool;

static void set_up(void)
{
	admin = vm_admin();
	t = vm_open();
	id = vm_join(t, "looked-at");
	other = vm_tenant("onlooker");
	pool = vm_pool(admin, "look", HEARTH_POOL_KV, 8 * MiB);
}

static void tear_down(void)
{
	close(t);
	close(other);
	vm_pool_remove(admin, pool);
	close(admin);
}

static void charge_and_wait(void *arg)
{
	close(*(int *)arg); /* its copy of the region would keep the memory */
	EXPECT(!vm_charge(other, pool, 6, VM_LATER, NULL));
}

static void trace_points_fire(void)
{
	struct hearth_ioc_watch w = { .size = sizeof(w), .kinds = 1ULL << HEARTH_EV_PRESSURE };
	static const char *const points[] = {
		"hearth_charge:", "hearth_uncharge:", "hearth_refuse:", "hearth_reclaim:",
		"hearth_region_new:", "hearth_region_free:", "hearth_purge:", "hearth_quarantine:",
		"hearth_event:",
	};
	char back[4096], want[32], gone[400] = "";
	int r, r2, pipefd[2], i;
	struct { void *base; size_t len; } iov;
	pid_t waiter;
	void *p;

	if (access(TRACE "events/hearth/enable", F_OK))
		vm_skip("this kernel has no tracing");
	set_up();
	put(TRACE "trace", "\n");
	put(TRACE "events/hearth/enable", "1");
	EXPECT(!ioctl(t, HEARTH_IOC_WATCH, &w));
	EXPECT(!vm_charge(t, pool, 5, 0, NULL) && !vm_uncharge(t, pool, 5));
	r = vm_region(t, pool, 8 * MiB);
	EXPECT_ERR(ENOSPC, vm_charge(other, pool, 6, 0, NULL));
	/* The holder is asked only if time is left to give back: it is asked, or this never ends. */
	waiter = vm_fork(charge_and_wait, &r);
	UNTIL(vm_usage(admin, id, pool).out_n_reclaim);
	p = vm_map(r, 8 * MiB, PROT_READ | PROT_WRITE);
	memset(p, 1, 4096);
	EXPECT(!pipe(pipefd));
	iov.base = p;
	iov.len = PAGE;
	EXPECT_EQ(syscall(SYS_vmsplice, pipefd[1], &iov, 1, 0), (long)PAGE);
	vm_unmap(p, 8 * MiB);
	close(r);
	/* What the pipe holds is seen to be held before it is let go of. */
	UNTIL(vm_pool_get(t, pool).out_quarantined == 2 * MiB);
	EXPECT_EQ(read(pipefd[0], back, sizeof(back)), (ssize_t)sizeof(back));
	EXPECT_EQ(vm_wait(waiter), 0);
	EXPECT(!vm_uncharge(other, pool, 6));
	vm_pool_idle(admin, pool);
	r = vm_region(t, pool, 8 * MiB);
	EXPECT(!vm_offer(r));
	r2 = vm_region(other, pool, 2 * MiB);
	close(r);
	close(r2);
	put(TRACE "events/hearth/enable", "0");
	slurp(TRACE "trace");
	for (i = 0; i < (int)(sizeof(points) / sizeof(*points)); i++) {
		if (!strstr(text, points[i]))
			snprintf(gone + strlen(gone), sizeof(gone) - strlen(gone), " %s", points[i]);
	}
	if (*gone)
		vm_fail(__FILE__, __LINE__, "not in the trace:%s", gone);
	snprintf(want, sizeof(want), "tenant=%d", id);
	has(text, want);
	tear_down();
}

static void tables_show_what_there_is(void)
{
	char want[256];
	int r, fd;

	if (access(TABLES "pools", F_OK))
		vm_skip("this kernel has no debugfs");
	set_up();
	EXPECT(!vm_budget(admin, "looked-at", pool, HEARTH_SET_MIN | HEARTH_SET_MAX, 1 * MiB, 0, 0, 6 * MiB, NULL));
	r = vm_region(t, pool, 2 * MiB);
	EXPECT(!vm_keep(r, "shown", 1));
	slurp(TABLES "pools");
	snprintf(want, sizeof(want), "%u look kv buddy %llu %llu ", pool, 8 * MiB, 2 * MiB);
	has(text, want);
	slurp(TABLES "tenants");
	has(line_of(text, " looked-at "), " other 10 1 1 0 none");
	slurp(TABLES "budgets");
	snprintf(want, sizeof(want), "looked-at look %llu 0 %llu %llu %llu ", 1 * MiB, ~0ULL, 6 * MiB, 2 * MiB);
	has(text, want);
	slurp(TABLES "regions");
	snprintf(want, sizeof(want), "%llu looked-at look %llu ",
		 (unsigned long long)vm_region_get(r).region, 2 * MiB);
	has(line_of(text, want), "shown");
	slurp(TABLES "system");
	has(text, "handed_back");
	/* For root alone: they tell of every tenant. */
	EXPECT(!setresuid(-1, 1000, -1));
	fd = open(TABLES "regions", O_RDONLY);
	EXPECT(!setresuid(-1, 0, -1));
	EXPECT(fd < 0);
	{
		struct hearth_ioc_drop d = { .size = sizeof(d), .region = vm_region_get(r).region };

		EXPECT(!ioctl(t, HEARTH_IOC_DROP, &d));
	}
	close(r);
	tear_down();
}

/* No table, trace or call tells where memory is. */
static void no_physical_address_is_told(void)
{
	static const char *const places[] = {
		TABLES "pools", TABLES "regions", TABLES "budgets", "/proc/self/maps",
	};
	unsigned long long entry = 0;
	char want[32];
	unsigned char *p;
	size_t i;
	int r, fd;

	set_up();
	r = vm_region(t, pool, 64 * KiB);
	p = vm_map(r, 64 * KiB, PROT_READ | PROT_WRITE);
	p[0] = 1;
	/* What root may know, and nobody else: the kernel's own file. */
	fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		vm_skip("this kernel has no pagemap");
	EXPECT_EQ(pread(fd, &entry, 8, (uintptr_t)p / PAGE * 8), 8);
	close(fd);
	EXPECT(entry & (1ULL << 63));
	entry &= (1ULL << 55) - 1;
	EXPECT(entry);
	for (i = 0; i < sizeof(places) / sizeof(*places); i++) {
		if (access(places[i], F_OK))
			continue;
		slurp(places[i]);
		snprintf(want, sizeof(want), "%llx", entry * PAGE);
		EXPECT(!strstr(text, want));
		snprintf(want, sizeof(want), " %llu ", entry * PAGE);
		EXPECT(!strstr(text, want));
	}
	vm_unmap(p, 64 * KiB);
	close(r);
	tear_down();
}

static const struct vm_case cases[] = {
	CASE(trace_points_fire),
	CASE(tables_show_what_there_is),
	CASE(no_physical_address_is_told),
};
VM_MAIN(cases)
