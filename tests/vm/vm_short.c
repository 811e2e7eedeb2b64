/* SPDX-License-Identifier: MIT */
/*
 * A guest that runs short of memory: reclaim makes the module look at once, it
 * looks more often the higher the level, and before the kernel kills somebody
 * the pools hand back what nobody was promised; when the system has memory
 * again they take it again.
 */
#include "vm.h"

struct table {
	char level[16];
	unsigned long long available, total, samples, by_reclaim, oom_calls, handed_back, taken_again;
};

static struct table look(void)
{
	struct table t = {};
	FILE *f = fopen("/sys/kernel/debug/hearth/system", "r");
	char line[256];

	if (!f)
		vm_skip("this kernel has no debugfs");
	EXPECT(fgets(line, sizeof(line), f) && fgets(line, sizeof(line), f));
	fclose(f);
	EXPECT_EQ(sscanf(line, "%15s %llu %llu %llu %llu %llu %llu %llu", t.level, &t.available, &t.total,
			 &t.samples, &t.by_reclaim, &t.oom_calls, &t.handed_back, &t.taken_again), 8);
	return t;
}

static void write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	EXPECT(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void reclaim_makes_it_look(void)
{
	struct table t0 = look(), t;

	/* What runs all shrinkers. */
	UNTIL((write_to("/proc/sys/vm/drop_caches", "2"), t = look()).by_reclaim >= t0.by_reclaim + 3);
	EXPECT(t.samples - t0.samples >= t.by_reclaim - t0.by_reclaim);
}

/* Samples in 3 seconds, without those that reclaim asked for. */
static unsigned long long samples(void)
{
	struct table a = look(), b;

	sleep(3);
	b = look();
	return (b.samples - b.by_reclaim) - (a.samples - a.by_reclaim);
}

static bool pressing(const struct table *t)
{
	return !strcmp(t->level, "medium") || !strcmp(t->level, "critical");
}

static void it_looks_more_often_under_pressure(void)
{
	unsigned long long calm, pressed = 0;
	struct table t = look();
	uint64_t at, max;
	char *p;
	int i;

	if (strcmp(t.level, "none"))
		vm_skip("this guest is short of memory already");
	calm = samples();
	t = look();
	max = t.total;
	p = mmap(NULL, max, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	EXPECT(p != MAP_FAILED);
	/* The module's figure is as old as its last sample: how far to go is asked of the kernel. */
	for (at = 0; at + MiB <= max; at += MiB) {
		memset(p + at, 1, MiB);
		if (vm_available() > max * 9 / 100)
			continue;
		usleep(20000);
		t = look();
		if (pressing(&t) || vm_available() < max * 6 / 100)
			break;
	}
	UNTIL((t = look(), pressing(&t)));
	/* Four times as many and more, once the guest is let run for 3 seconds on end. */
	for (i = 0; i < 40 && (pressed = samples()) < 2 * calm + 2; i++)
		;
	munmap(p, max);
	if (pressed < 2 * calm + 2)
		vm_fail(__FILE__, __LINE__, "%llu samples while calm, %llu under pressure", calm, pressed);
	UNTIL(!strcmp(look().level, "none"));
}

#define BIG (192 * MiB)
#define MIN (64 * MiB)
#define USED (32 * MiB)
static uint32_t pool;

/*
 * Takes all memory there is. It must not be killed: the kernel would log that,
 * and every call for help is answered while the pool has something to give.
 */
static void eat(void *arg)
{
	uint64_t at, step, left, max = 4096 * MiB;
	int fd = *(int *)arg;
	char *p;

	write_to("/proc/self/oom_score_adj", "1000");
	p = mmap(NULL, max, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	EXPECT(p != MAP_FAILED);
	/* In small steps where it matters: each is a sleep, and a slow kernel sleeps long. */
	for (at = 0; at + 8 * MiB < max; at += step) {
		step = vm_available() > 128 * MiB ? 8 * MiB : 256 * KiB;
		memset(p + at, 1, step);
		/* Looked at here: when this has ended and is seen to, the pool may have grown again. */
		left = vm_pool_get(fd, pool).out_bytes;
		EXPECT(left >= MIN);
		if (left <= BIG - 48 * MiB)
			break;
		if (step < MiB)
			usleep(500);
	}
	EXPECT(at + 8 * MiB < max);
}

static void oom_hands_back_and_it_is_taken_again(void)
{
	struct hearth_ioc_watch w = {
		.size = sizeof(w), .kinds = 1ULL << HEARTH_EV_PRESSURE | 1ULL << HEARTH_EV_POOL_SIZE,
	};
	int admin = vm_admin(), t = vm_tenant("big"), other = vm_tenant("small"), watch = vm_open(), r, r2, i;
	struct table t0 = look(), t1;
	struct hearth_event_record ev;
	bool critical = false, shrank = false;
	unsigned char *p;
	pid_t pid;

	pool = vm_pool(admin, "short", HEARTH_POOL_KV, BIG);
	EXPECT(!vm_budget(admin, "big", pool, HEARTH_SET_MIN, MIN, 0, 0, 0, NULL));
	r = vm_region(t, pool, USED);
	p = vm_map(r, USED, PROT_READ | PROT_WRITE);
	memset(p, 0x5a, USED);
	fcntl(watch, F_SETFL, O_NONBLOCK);
	EXPECT(!ioctl(watch, HEARTH_IOC_WATCH, &w));

	pid = vm_fork(eat, &admin);
	EXPECT_EQ(vm_wait(pid), 0);
	t1 = look();
	EXPECT(t1.oom_calls > t0.oom_calls);
	EXPECT(t1.handed_back - t0.handed_back >= 48 * MiB);
	/* The guarantee is there, whole, and what is in use is untouched. */
	r2 = vm_region(t, pool, MIN - USED);
	for (i = 0; i < (int)USED; i += 4096)
		EXPECT_EQ(p[i], 0x5a);
	close(r2);
	/* It was heard, also that the pool is smaller. */
	while (!critical || !shrank) {
		UNTIL(poll(&(struct pollfd){ watch, POLLIN, 0 }, 1, 0) > 0);
		while (read(watch, &ev, sizeof(ev)) == sizeof(ev)) {
			critical |= ev.kind == HEARTH_EV_PRESSURE && !ev.pool && !ev.tenant &&
				    ev.level == HEARTH_PRESSURE_CRITICAL;
			shrank |= ev.kind == HEARTH_EV_POOL_SIZE && ev.pool == pool && ev.bytes < BIG;
		}
	}
	/* Calm for a while, then as large as the administrator made it. */
	UNTIL(vm_pool_get(admin, pool).out_bytes == BIG);
	/* So are the others that helped, now or before. */
	UNTIL(look().taken_again == look().handed_back);
	r2 = vm_region(other, pool, BIG - MIN);
	close(r2);
	vm_unmap(p, USED);
	close(r);
	close(t);
	close(other);
	close(watch);
	vm_budget(admin, "big", pool, HEARTH_SET_MIN, 0, 0, 0, 0, NULL);
	vm_pool_remove(admin, pool);
	close(admin);
}

static const struct vm_case cases[] = {
	CASE(reclaim_makes_it_look),
	CASE(it_looks_more_often_under_pressure),
	CASE(oom_hands_back_and_it_is_taken_again),
};
VM_MAIN(cases)
