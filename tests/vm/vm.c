/* SPDX-License-Identifier: MIT */
#include "vm.h"

#include <setjmp.h>

static jmp_buf out;
static int in_child;
static const char *reason;
static char text[512];

void vm_fail(const char *file, int line, const char *fmt, ...)
{
	static char why[4096];
	va_list ap;
	char *p;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	/* Every line of it a comment, or it is lost on the way. */
	printf("# %s:%d: ", file, line);
	for (p = why; *p; p++) {
		putchar(*p);
		if (*p == '\n')
			printf("#   ");
	}
	printf("\n");
	fflush(stdout);
	if (in_child)
		_exit(1);
	longjmp(out, 1);
}

void vm_skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	reason = text;
	if (in_child)
		_exit(77);
	longjmp(out, 2);
}

/* What a case left open must not disturb the next. */
static void clean_up(void)
{
	int fd;

	for (fd = 3; fd < 1024; fd++)
		close(fd);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* Pools that a case which failed has left; those made at load stay. */
static void drop_pools(void)
{
	struct hearth_ioc_pool_get p = { .size = sizeof(p), .flags = HEARTH_GET_NEXT };
	struct hearth_ioc_admin a = { .size = sizeof(a) };
	int fd = open("/dev/hearth", O_RDWR | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, HEARTH_IOC_ADMIN, &a))
		return;
	usleep(200000);
	while (!ioctl(fd, HEARTH_IOC_POOL_GET, &p)) {
		struct hearth_ioc_pool_remove r = { .size = sizeof(r), .pool = p.pool };

		if (strcmp(p.name, "kv") && strcmp(p.name, "account") && strcmp(p.name, "weights"))
			ioctl(fd, HEARTH_IOC_POOL_REMOVE, &r);
	}
	close(fd);
}

int vm_run(const char *file, const struct vm_case *cases, size_t n)
{
	volatile size_t i;
	volatile int bad = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < n; i++) {
		reason = NULL;
		switch (setjmp(out)) {
		case 0:
			cases[i].fn();
			printf("ok - %s\n", cases[i].name);
			break;
		case 2:
			printf("ok - %s # SKIP %s\n", cases[i].name, reason);
			break;
		default:
			printf("not ok - %s\n", cases[i].name);
			bad = 1;
		}
		clean_up();
		if (bad)
			drop_pools();
	}
	return bad;
}

int vm_open(void)
{
	int fd = open("/dev/hearth", O_RDWR | O_CLOEXEC);

	EXPECT(fd >= 0);
	return fd;
}

int vm_admin(void)
{
	struct hearth_ioc_admin a = { .size = sizeof(a) };
	int fd = vm_open();

	EXPECT(!ioctl(fd, HEARTH_IOC_ADMIN, &a));
	return fd;
}

int vm_join(int fd, const char *name)
{
	struct hearth_ioc_join a = { .size = sizeof(a), .flags = HEARTH_JOIN_CREATE, .priority = 10 };

	strncpy(a.name, name, sizeof(a.name) - 1);
	EXPECT(!ioctl(fd, HEARTH_IOC_JOIN, &a));
	EXPECT(a.out_tenant);
	return a.out_tenant;
}

int vm_tenant(const char *name)
{
	int fd = vm_open();

	vm_join(fd, name);
	return fd;
}

uint32_t vm_pool(int admin, const char *name, uint32_t kind, uint64_t bytes)
{
	struct hearth_ioc_pool_create a = {
		.size = sizeof(a), .kind = kind, .bytes = bytes,
		.backing = kind == HEARTH_POOL_ACCOUNT ? HEARTH_BACKING_NONE : HEARTH_BACKING_BUDDY,
	};

	strncpy(a.name, name, sizeof(a.name) - 1);
	EXPECT(!ioctl(admin, HEARTH_IOC_POOL_CREATE, &a));
	EXPECT(a.out_pool);
	return a.out_pool;
}

void vm_pool_remove(int admin, uint32_t pool)
{
	struct hearth_ioc_pool_remove a = { .size = sizeof(a), .pool = pool };

	vm_pool_idle(admin, pool);
	EXPECT(!ioctl(admin, HEARTH_IOC_POOL_REMOVE, &a));
}

int vm_alloc(int fd, uint32_t pool, uint64_t bytes, struct hearth_ioc_alloc *a)
{
	struct hearth_ioc_alloc none = { .size = sizeof(none) };

	if (!a->size)
		*a = none;
	a->pool = pool;
	a->bytes = bytes;
	return ioctl(fd, HEARTH_IOC_ALLOC, a);
}

int vm_region(int fd, uint32_t pool, uint64_t bytes)
{
	struct hearth_ioc_alloc a = {};

	EXPECT(!vm_alloc(fd, pool, bytes, &a));
	EXPECT(a.out_region && a.out_fd >= 0 && a.out_bytes >= bytes);
	return a.out_fd;
}

int vm_charge(int fd, uint32_t pool, uint64_t bytes, uint64_t deadline,
	      struct hearth_refusal *ret_ref)
{
	struct hearth_ioc_charge a = {
		.size = sizeof(a), .pool = pool, .bytes = bytes, .deadline = deadline,
	};
	int ret = ioctl(fd, HEARTH_IOC_CHARGE, &a);

	if (ret_ref)
		*ret_ref = a.out_refusal;
	return ret;
}

int vm_uncharge(int fd, uint32_t pool, uint64_t bytes)
{
	struct hearth_ioc_uncharge a = { .size = sizeof(a), .pool = pool, .bytes = bytes };

	return ioctl(fd, HEARTH_IOC_UNCHARGE, &a);
}

int vm_budget(int admin, const char *tenant, uint32_t pool, uint32_t mask, uint64_t min,
	      uint64_t low, uint64_t high, uint64_t max, struct hearth_refusal *ret_ref)
{
	struct hearth_budget_entry e = {
		.size = sizeof(e), .mask = mask, .pool = pool,
		.min = min, .low = low, .high = high, .max = max,
	};
	struct hearth_ioc_budget_set a = {
		.size = sizeof(a), .entries = (uintptr_t)&e, .count = 1, .stride = sizeof(e),
	};
	int ret;

	strncpy(e.tenant, tenant, sizeof(e.tenant) - 1);
	ret = ioctl(admin, HEARTH_IOC_BUDGET_SET, &a);
	if (ret_ref)
		*ret_ref = a.out_refusal;
	return ret;
}

struct hearth_ioc_info vm_info(int fd)
{
	struct hearth_ioc_info a = { .size = sizeof(a) };

	EXPECT(!ioctl(fd, HEARTH_IOC_INFO, &a));
	return a;
}

struct hearth_ioc_budget_get vm_usage(int fd, uint32_t tenant, uint32_t pool)
{
	struct hearth_ioc_budget_get a = { .size = sizeof(a), .tenant = tenant, .pool = pool };

	EXPECT(!ioctl(fd, HEARTH_IOC_BUDGET_GET, &a));
	return a;
}

struct hearth_ioc_pool_get vm_pool_get(int fd, uint32_t pool)
{
	struct hearth_ioc_pool_get a = { .size = sizeof(a), .pool = pool };

	EXPECT(!ioctl(fd, HEARTH_IOC_POOL_GET, &a));
	return a;
}

struct hearth_ioc_region_get vm_region_get(int region)
{
	struct hearth_ioc_region_get a = { .size = sizeof(a) };

	EXPECT(!ioctl(region, HEARTH_IOC_REGION_GET, &a));
	return a;
}

int vm_seal(int region)
{
	struct hearth_ioc_seal a = { .size = sizeof(a) };

	return ioctl(region, HEARTH_IOC_SEAL, &a);
}

int vm_offer(int region)
{
	struct hearth_ioc_offer a = { .size = sizeof(a) };

	return ioctl(region, HEARTH_IOC_OFFER, &a);
}

int vm_take_back(int region)
{
	struct hearth_ioc_take_back a = { .size = sizeof(a) };

	return ioctl(region, HEARTH_IOC_TAKE_BACK, &a) ? -1 : (int)a.out_survived;
}

int vm_keep(int region, const char *name, uint8_t digest)
{
	struct hearth_ioc_keep a = { .size = sizeof(a) };

	strncpy(a.name, name, sizeof(a.name) - 1);
	memset(a.digest, digest, sizeof(a.digest));
	return ioctl(region, HEARTH_IOC_KEEP, &a);
}

int vm_find(int fd, uint32_t pool, const char *name, uint8_t digest, uint32_t flags,
	    struct hearth_ioc_find *ret_f)
{
	struct hearth_ioc_find a = { .size = sizeof(a), .flags = flags, .pool = pool };
	int ret;

	strncpy(a.name, name, sizeof(a.name) - 1);
	memset(a.digest, digest, sizeof(a.digest));
	ret = ioctl(fd, HEARTH_IOC_FIND, &a);
	if (ret_f)
		*ret_f = a;
	return ret ? -1 : a.out_fd;
}

int vm_share(int region, uint32_t flags)
{
	struct hearth_ioc_share a = { .size = sizeof(a), .flags = flags };

	return ioctl(region, HEARTH_IOC_SHARE, &a) ? -1 : a.out_fd;
}

int vm_export(int region, uint32_t flags, uint64_t off, uint64_t bytes)
{
	struct hearth_ioc_export a = {
		.size = sizeof(a), .flags = flags, .offset = off, .bytes = bytes,
	};

	return ioctl(region, HEARTH_IOC_EXPORT, &a) ? -1 : a.out_fd;
}

void *vm_map(int region, uint64_t bytes, int prot)
{
	void *p = mmap(NULL, bytes, prot, MAP_SHARED, region, 0);

	EXPECT(p != MAP_FAILED);
	return p;
}

void vm_unmap(void *p, uint64_t bytes)
{
	EXPECT(!munmap(p, bytes));
}

uint64_t vm_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

uint64_t vm_available(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	unsigned long long v, available = 0, cma = 0;
	bool told = false;
	char line[128];

	EXPECT(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "MemAvailable: %llu", &available) == 1)
			told = true; /* it may be 0 */
		else if (sscanf(line, "CmaFree: %llu", &v) == 1)
			cma = v;
	}
	fclose(f);
	EXPECT(told);
	return available > cma ? (available - cma) * 1024 : 0;
}

void vm_pool_idle(int fd, uint32_t pool)
{
	uint64_t end = vm_now() + VM_PATIENCE;
	struct hearth_ioc_pool_get p;

	do {
		p = vm_pool_get(fd, pool);
		if (!p.out_charged && !p.out_quarantined && !p.out_regions)
			return;
		usleep(5000);
	} while (vm_now() < end);
	vm_fail(__FILE__, __LINE__, "pool %s: %llu charged, %llu quarantined, %u regions at the end",
		p.name, (unsigned long long)p.out_charged, (unsigned long long)p.out_quarantined,
		p.out_regions);
}

pid_t vm_fork(void (*fn)(void *arg), void *arg)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	EXPECT(pid >= 0);
	if (!pid) {
		in_child = 1;
		fn(arg);
		fflush(stdout);
		_exit(0);
	}
	return pid;
}

int vm_wait(pid_t pid)
{
	int status;

	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	return WEXITSTATUS(status);
}

int vm_send_fd(int sock, int fd)
{
	char c = 'x', ctl[CMSG_SPACE(sizeof(int))] = {};
	struct iovec iov = { &c, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl,
			    .msg_controllen = sizeof(ctl) };
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &fd, sizeof(fd));
	return sendmsg(sock, &m, 0) == 1 ? 0 : -1;
}

int vm_recv_fd(int sock)
{
	char c, ctl[CMSG_SPACE(sizeof(int))] = {};
	struct iovec iov = { &c, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl,
			    .msg_controllen = sizeof(ctl) };
	struct cmsghdr *h;
	int fd = -1;

	if (recvmsg(sock, &m, MSG_CMSG_CLOEXEC) != 1)
		return -1;
	h = CMSG_FIRSTHDR(&m);
	if (h && h->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(h), sizeof(fd));
	return fd;
}

bool vm_logged(const char *text)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char line[2048];
	bool found = false;
	ssize_t n;

	EXPECT(fd >= 0);
	/* EPIPE: a line was lost meanwhile, there are more. */
	while (!found && ((n = read(fd, line, sizeof(line) - 1)) > 0 || errno == EPIPE)) {
		line[n > 0 ? n : 0] = 0;
		found = strstr(line, text);
	}
	close(fd);
	return found;
}

bool vm_put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	close(fd);
	return ok;
}

bool vm_faults_on(void)
{
	if (!vm_put("/proc/self/fail-nth", "0"))
		return false;
	vm_put("/sys/kernel/debug/failslab/ignore-gfp-wait", "N");
	vm_put("/sys/kernel/debug/failslab/verbose", "0");
	vm_put("/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait", "N");
	vm_put("/sys/kernel/debug/fail_page_alloc/ignore-gfp-highmem", "N");
	vm_put("/sys/kernel/debug/fail_page_alloc/min-order", "0");
	vm_put("/sys/kernel/debug/fail_page_alloc/verbose", "0");
	return true;
}
