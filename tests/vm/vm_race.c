/* SPDX-License-Identifier: MIT */
/*
 * Everything at once, for a bounded time: vm_race [SECONDS]. Threads of three
 * tenants and an administrator call what they like in an order that nobody
 * chose. At the end nothing is charged, and the pool can be had whole.
 */
#include "vm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>

#define SLOTS 24
#define TENANTS 3
#define POOL_BYTES (16 * MiB)

static int admin, conn[TENANTS], admin2;
static uint32_t pool;
static atomic_int slot[SLOTS];   /* a region's descriptor, 0: none */
static atomic_bool stop;
static atomic_ulong calls;

static const char *const names[TENANTS] = { "ra", "rb", "rc" };

static int take(unsigned int *seed, int *ret_slot)
{
	*ret_slot = rand_r(seed) % SLOTS;
	return atomic_exchange(&slot[*ret_slot], 0);
}

/* Puts a descriptor back; closes the one that took its place meanwhile. */
static void put(int s, int fd)
{
	int other = atomic_exchange(&slot[s], fd);

	if (other > 0)
		close(other);
}

static void use(int fd, unsigned int *seed)
{
	uint64_t bytes = vm_region_get(fd).out_bytes, i;
	struct iovec iov;
	unsigned char *p;
	int x;

	switch (rand_r(seed) % 9) {
	case 0:
	case 1:
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (p == MAP_FAILED)
			break;
		/* Not touched while others may offer it: that may be SIGBUS. */
		if (rand_r(seed) % 2)
			madvise(p, bytes, MADV_DONTNEED);
		/*
		 * In two parts, each once: another thread's mapping may lie in a
		 * hole the moment it is made, so no part may be unmapped twice.
		 */
		i = rand_r(seed) % 2 ? bytes / PAGE / 2 * PAGE : 0;
		munmap(p + i, bytes - i);
		if (i)
			munmap(p, i);
		break;
	case 2:
		vm_offer(fd);
		break;
	case 3:
		vm_take_back(fd);
		break;
	case 4:
		if (rand_r(seed) % 4 == 0)
			vm_seal(fd);
		break;
	case 5:
		x = vm_export(fd, rand_r(seed) % 2, 0, 0);
		if (x >= 0) {
			p = mmap(NULL, bytes, PROT_READ, MAP_SHARED, x, 0);
			close(x);
			if (p != MAP_FAILED) {
				for (i = 0; i < bytes; i += 16 * PAGE)
					(void)*(volatile unsigned char *)(p + i);
				munmap(p, bytes);
			}
		}
		break;
	case 6:
		x = vm_share(fd, rand_r(seed) % 2);
		if (x >= 0)
			put(rand_r(seed) % SLOTS, x);
		break;
	case 7:
		vm_keep(fd, rand_r(seed) % 2 ? "n1" : "n2", 0);
		break;
	case 8:
		/* Held through a pipe for a moment, so that ends are quarantined. */
		p = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
		if (p != MAP_FAILED) {
			char b[4096];
			int pp[2];

			iov = (struct iovec){ p, PAGE };
			if (!pipe2(pp, O_CLOEXEC | O_NONBLOCK)) {
				if (vmsplice(pp[1], &iov, 1, SPLICE_F_NONBLOCK) > 0)
					while (read(pp[0], b, sizeof(b)) > 0)
						;
				close(pp[0]);
				close(pp[1]);
			}
			munmap(p, bytes);
		}
		break;
	}
}

static void *tenant_thread(void *arg)
{
	int me = (intptr_t)arg % TENANTS;
	unsigned int seed = (intptr_t)arg * 7919 + 1;
	uint64_t mine = 0, n;
	int fd, s;

	while (!atomic_load(&stop)) {
		struct hearth_ioc_alloc a = { .size = sizeof(a) };
		struct hearth_ioc_find f;

		atomic_fetch_add(&calls, 1);
		switch (rand_r(&seed) % 8) {
		case 0:
		case 1:
			a.flags = rand_r(&seed) % 4;
			a.align = rand_r(&seed) % 4 ? 0 : PAGE << (rand_r(&seed) % 10);
			if (rand_r(&seed) % 4 == 0)
				a.deadline = vm_now() + rand_r(&seed) % 20000000;
			if (!vm_alloc(conn[me], pool, 1 + rand_r(&seed) % (3 * MiB), &a))
				put(rand_r(&seed) % SLOTS, a.out_fd);
			break;
		case 2:
			fd = take(&seed, &s);
			if (fd > 0)
				close(fd);
			break;
		case 3:
			n = 1 + rand_r(&seed) % (2 * MiB);
			if (!vm_charge(conn[me], pool, n,
				       rand_r(&seed) % 4 ? 0 : vm_now() + 5000000, NULL)) {
				mine += n;
				n = 1 + (uint64_t)rand_r(&seed) % mine;
				/* Another thread of this tenant may have given it back. */
				if (!vm_uncharge(conn[me], pool, n))
					mine -= n;
			}
			break;
		case 4:
			fd = vm_find(conn[me], pool, rand_r(&seed) % 2 ? "n1" : "n2", 0,
				     rand_r(&seed) % 4, &f);
			if (fd >= 0)
				close(fd);
			break;
		default:
			fd = take(&seed, &s);
			if (fd > 0) {
				use(fd, &seed);
				put(s, fd);
			}
		}
	}
	if (mine)
		vm_uncharge(conn[me], pool, mine);
	return NULL;
}

static void *admin_thread(void *arg)
{
	struct hearth_ioc_pool_resize rs = { .size = sizeof(rs), .pool = pool };
	struct hearth_ioc_region_get g;
	struct hearth_event_record ev[8];
	unsigned int seed = (intptr_t)arg;
	char table[4096];
	int fd;

	while (!atomic_load(&stop)) {
		uint64_t min = (uint64_t)(rand_r(&seed) % 8) * MiB;

		atomic_fetch_add(&calls, 1);
		switch (rand_r(&seed) % 6) {
		case 0:
			vm_budget(admin, names[rand_r(&seed) % TENANTS], pool,
				  HEARTH_SET_MIN | HEARTH_SET_LOW | HEARTH_SET_HIGH | HEARTH_SET_MAX,
				  min, min + MiB, min + 2 * MiB,
				  rand_r(&seed) % 2 ? HEARTH_NOLIMIT : min + 3 * MiB, NULL);
			break;
		case 1:
			rs.bytes = POOL_BYTES - (uint64_t)(rand_r(&seed) % 4) * 2 * MiB;
			ioctl(admin, HEARTH_IOC_POOL_RESIZE, &rs);
			break;
		case 2:
			memset(&g, 0, sizeof(g));
			g.size = sizeof(g);
			g.flags = HEARTH_GET_NEXT;
			while (!ioctl(admin, HEARTH_IOC_REGION_GET, &g)) {
				struct hearth_ioc_drop d = { .size = sizeof(d), .region = g.region };

				if (g.out_flags & HEARTH_REGION_KEPT && rand_r(&seed) % 2)
					ioctl(admin, HEARTH_IOC_DROP, &d);
				g.flags = HEARTH_GET_NEXT;
			}
			break;
		case 3:
			fd = open("/sys/kernel/debug/hearth/regions", O_RDONLY | O_CLOEXEC);
			while (fd >= 0 && read(fd, table, sizeof(table)) > 0)
				;
			close(fd);
			break;
		case 4:
			while (read(admin2, ev, sizeof(ev)) > 0)
				;
			break;
		case 5:
			close(vm_tenant("passer-by"));
			break;
		}
		usleep(1000);
	}
	return NULL;
}

static int seconds = 6;

static void everything_at_once(void)
{
	struct hearth_ioc_watch w = { .size = sizeof(w), .flags = HEARTH_WATCH_OTHERS, .kinds = 0xffe };
	struct hearth_ioc_pool_resize rs = { .size = sizeof(rs), .bytes = POOL_BYTES };
	struct hearth_ioc_region_get g = { .size = sizeof(g), .flags = HEARTH_GET_NEXT };
	pthread_t th[8];
	int i, r;

	admin = vm_admin();
	admin2 = open("/dev/hearth", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	EXPECT(!ioctl(admin2, HEARTH_IOC_WATCH, &w));
	pool = vm_pool(admin, "race", HEARTH_POOL_KV, POOL_BYTES);
	for (i = 0; i < TENANTS; i++)
		conn[i] = vm_tenant(names[i]);
	for (i = 0; i < 6; i++)
		EXPECT(!pthread_create(&th[i], NULL, tenant_thread, (void *)(intptr_t)(i + 1)));
	for (; i < 8; i++)
		EXPECT(!pthread_create(&th[i], NULL, admin_thread, (void *)(intptr_t)(i + 1)));
	sleep(seconds);
	atomic_store(&stop, true);
	for (i = 0; i < 8; i++)
		pthread_join(th[i], NULL);
	printf("# %lu calls\n", atomic_load(&calls));
	for (i = 0; i < SLOTS; i++) {
		if (slot[i] > 0)
			close(slot[i]);
	}
	while (!ioctl(admin, HEARTH_IOC_REGION_GET, &g)) {
		struct hearth_ioc_drop d = { .size = sizeof(d), .region = g.region };

		if (g.out_flags & HEARTH_REGION_KEPT)
			EXPECT(!ioctl(admin, HEARTH_IOC_DROP, &d));
	}
	for (i = 0; i < TENANTS; i++)
		close(conn[i]);
	vm_pool_idle(admin, pool);
	/* Every block is free: all of it can be had. */
	rs.pool = pool;
	EXPECT(!ioctl(admin, HEARTH_IOC_POOL_RESIZE, &rs));
	EXPECT_EQ(vm_pool_get(admin, pool).out_largest, POOL_BYTES);
	EXPECT_EQ(vm_pool_get(admin, pool).out_min_sum, 0);
	conn[0] = vm_tenant("whole");
	r = vm_region(conn[0], pool, POOL_BYTES);
	close(r);
	close(conn[0]);
	vm_pool_remove(admin, pool);
	close(admin2);
	close(admin);
}

static const struct vm_case cases[] = { CASE(everything_at_once) };

int main(int argc, char **argv)
{
	if (argc > 1)
		seconds = atoi(argv[1]);
	return vm_run(__FILE__, cases, 1);
}
