/* SPDX-License-Identifier: MIT */
/*
 * What any tenant may call asks for no memory that may have to be made free
 * first while it holds hearth.lock: all the others' charges would wait for it.
 * The kernel tells: which lock it takes and gives, and what it allocates. Needs
 * a kernel that traces locks.
 */
#include "vm.h"

#define TRACE "/sys/kernel/tracing/"

static int admin, t;
static uint32_t pool;

static bool put(const char *file, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), TRACE "%s", file);
	return vm_put(path, text);
}

/* Opened so, a file of the tracer's is emptied. */
static void empty(const char *file)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), TRACE "%s", file);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	EXPECT(fd >= 0);
	close(fd);
}

static void set_up(void)
{
	char text[32];

	if (!put("events/lock/lock_acquire/filter", "name == \"hearth.lock\"") ||
	    !put("events/lock/lock_release/filter", "name == \"hearth.lock\""))
		vm_skip("this kernel traces no locks");
	admin = vm_admin();
	t = vm_tenant("held");
	pool = vm_pool(admin, "held", HEARTH_POOL_KV, 32 * MiB);
	snprintf(text, sizeof(text), "%d", getpid());
	EXPECT(put("buffer_size_kb", "16384") && put("set_event_pid", text));
	empty("trace");
	EXPECT(put("events/kmem/kmalloc/enable", "1") && put("events/kmem/kmem_cache_alloc/enable", "1") &&
	       put("events/kmem/mm_page_alloc/enable", "1"));
	EXPECT(put("events/lock/lock_acquire/enable", "1") && put("events/lock/lock_release/enable", "1") &&
	       put("tracing_on", "1"));
}

static void tear_down(void)
{
	put("events/kmem/enable", "0");
	put("events/lock/enable", "0");
	empty("set_event_pid");
	empty("trace");
	close(t);
	vm_pool_remove(admin, pool);
	close(admin);
}

/* Flags that let an allocation wait: their names as the kernel writes them. */
static bool may_wait(const char *line)
{
	static const char *const flags[] = {
		"GFP_KERNEL", "GFP_USER", "GFP_HIGHUSER", "GFP_NOFS", "GFP_NOIO", "__GFP_DIRECT_RECLAIM", "__GFP_RECLAIM",
	};
	size_t i;

	for (i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		if (strstr(line, flags[i]))
			return true;
	}
	return false;
}

/* What was traced since @what began. */
static void look(const char *what)
{
	unsigned int locks = 0, allocations = 0;
	bool held = false;
	char line[1024], bad[1024] = "";
	FILE *f;

	EXPECT(put("tracing_on", "0"));
	f = fopen(TRACE "trace", "re");
	EXPECT(f != NULL);
	while (fgets(line, sizeof(line), f)) {
		if (strstr(line, " lock_acquire:")) {
			held = true;
			locks++;
		} else if (strstr(line, " lock_release:")) {
			held = false;
		} else if (strstr(line, "gfp_flags=")) {
			allocations++;
			/* kmemleak keeps a note of each allocation, with flags made of its. */
			if (strstr(line, "__create_object"))
				continue;
			if (held && may_wait(line) && !*bad)
				snprintf(bad, sizeof(bad), "%s", line);
		}
	}
	fclose(f);
	printf("# %s: %u times locked, %u allocations\n", what, locks, allocations);
	if (*bad)
		vm_fail(__FILE__, __LINE__, "%s, under hearth.lock: %s", what, bad);
	EXPECT(locks > 0);
	empty("trace");
	EXPECT(put("tracing_on", "1"));
}

static void nobody_is_held_up_by_an_allocation(void)
{
	struct hearth_ioc_watch w = { .size = sizeof(w), .kinds = 1ULL << HEARTH_EV_HIGH };
	struct hearth_ioc_state s = { .size = sizeof(s) };
	struct hearth_ioc_drop d = { .size = sizeof(d) };
	struct hearth_ioc_alloc a;
	static int region[200];
	char name[32];
	int fd, i;

	set_up();
	for (i = 0; i < 70; i++) {
		snprintf(name, sizeof(name), "held-%d", i);
		close(vm_tenant(name));
	}
	look("tenants that come and go");
	/* More than the map has nodes for, and more than a node of the table holds. */
	for (i = 0; i < 200; i++)
		region[i] = vm_region(t, pool, PAGE);
	look("regions");
	/* Every second one: what comes next is in pieces. */
	for (i = 0; i < 200; i += 2)
		close(region[i]);
	look("regions that go");
	EXPECT(!vm_alloc(t, pool, 32 * MiB - 100 * PAGE, &a));
	EXPECT(a.out_extents > 100);
	region[0] = a.out_fd;
	look("a region in many pieces");
	close(region[0]);
	for (i = 1; i < 200; i += 2)
		close(region[i]);
	for (i = 0; i < 100; i++)
		EXPECT(!vm_charge(t, pool, PAGE, 0, NULL));
	EXPECT(!vm_uncharge(t, pool, 100 * PAGE));
	EXPECT(!ioctl(t, HEARTH_IOC_WATCH, &w) && !ioctl(t, HEARTH_IOC_STATE, &s));
	look("charges");
	region[0] = vm_region(t, pool, 2 * MiB);
	EXPECT(!vm_offer(region[0]) && vm_take_back(region[0]) == 1);
	EXPECT(!vm_seal(region[0]) && !vm_keep(region[0], "held-1", 1));
	fd = vm_find(t, pool, "held-1", 1, 0, NULL);
	EXPECT(fd >= 0);
	close(fd);
	fd = vm_share(region[0], 0);
	EXPECT(fd >= 0);
	close(fd);
	look("sealed, kept and found");
	d.region = vm_region_get(region[0]).region;
	EXPECT(!ioctl(admin, HEARTH_IOC_DROP, &d));
	close(region[0]);
	tear_down();
}

static const struct vm_case cases[] = {
	CASE(nobody_is_held_up_by_an_allocation),
};
VM_MAIN(cases)
