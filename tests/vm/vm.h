/* SPDX-License-Identifier: MIT */
/*
 * What every program of a VM test includes. A program is a table of cases; a
 * case that finds something wrong says where and ends. Output is TAP. The
 * programs run as root in a guest that lives for them alone.
 */
#ifndef HEARTH_VM_H
#define HEARTH_VM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/hearth.h>

#define MiB (1024ULL * 1024)
#define KiB 1024ULL
#define PAGE ((uint64_t)sysconf(_SC_PAGESIZE))

struct vm_case {
	const char *name;
	void (*fn)(void);
};

/* Table entries; runs them and returns the exit code. */
#define CASE(f) { #f, f }
int vm_run(const char *file, const struct vm_case *cases, size_t n);
#define VM_MAIN(cases) \
	int main(void) { return vm_run(__FILE__, cases, sizeof(cases) / sizeof(*(cases))); }

/* Ends the case. */
void vm_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 3, 4)));
void vm_skip(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

#define EXPECT(cond) do { \
	if (!(cond)) \
		vm_fail(__FILE__, __LINE__, "%s (errno %d %s)", #cond, errno, strerror(errno)); \
} while (0)
#define EXPECT_EQ(a, b) do { \
	long long a_ = (long long)(a), b_ = (long long)(b); \
	if (a_ != b_) \
		vm_fail(__FILE__, __LINE__, "%s is %lld, not %s (%lld)", #a, a_, #b, b_); \
} while (0)
/* @call fails with @want. */
#define EXPECT_ERR(want, call) do { \
	errno = 0; \
	long long r_ = (long long)(call); \
	if (r_ >= 0 || errno != (want)) \
		vm_fail(__FILE__, __LINE__, "%s gave %lld errno %d (%s), not %s", #call, r_, errno, \
			strerror(errno), #want); \
} while (0)

/*
 * What comes in its own time is waited for: a guest may stand still for seconds
 * when the machine under it has other work, so nothing is said by a wait that
 * was short. The end of patience is a failure that says what was waited for.
 */
#define VM_PATIENCE (300ULL * 1000000000)
#define UNTIL(cond) do { \
	uint64_t end_ = vm_now() + VM_PATIENCE; \
	while (!(cond)) { \
		if (vm_now() > end_) \
			vm_fail(__FILE__, __LINE__, "in vain waited for: %s", #cond); \
		usleep(5000); \
	} \
} while (0)
/* A deadline of a wait that is to end by something else. */
#define VM_LATER (vm_now() + 2 * VM_PATIENCE)

/* -- the device; a failing call that is not expected ends the case ------------ */

int vm_open(void);                     /* a connection */
int vm_admin(void);                    /* an administrator's */
int vm_join(int fd, const char *name); /* makes it; its id */
int vm_tenant(const char *name);       /* a connection of it */
uint32_t vm_pool(int admin, const char *name, uint32_t kind, uint64_t bytes); /* its id */
void vm_pool_remove(int admin, uint32_t pool);
/* An argument of the plainest kind; 0 or -1. */
int vm_alloc(int fd, uint32_t pool, uint64_t bytes, struct hearth_ioc_alloc *ret_a);
int vm_region(int fd, uint32_t pool, uint64_t bytes); /* its descriptor */
int vm_charge(int fd, uint32_t pool, uint64_t bytes, uint64_t deadline,
	      struct hearth_refusal *ret_ref);
int vm_uncharge(int fd, uint32_t pool, uint64_t bytes);
int vm_budget(int admin, const char *tenant, uint32_t pool, uint32_t mask, uint64_t min,
	      uint64_t low, uint64_t high, uint64_t max, struct hearth_refusal *ret_ref);
struct hearth_ioc_info vm_info(int fd);
struct hearth_ioc_budget_get vm_usage(int fd, uint32_t tenant, uint32_t pool);
struct hearth_ioc_pool_get vm_pool_get(int fd, uint32_t pool);
struct hearth_ioc_region_get vm_region_get(int region_fd);
int vm_seal(int region);
int vm_offer(int region);
int vm_take_back(int region);          /* 1 survived, 0 purged, -1 */
int vm_keep(int region, const char *name, uint8_t digest);
int vm_find(int fd, uint32_t pool, const char *name, uint8_t digest, uint32_t flags,
	    struct hearth_ioc_find *ret_f);
int vm_share(int region, uint32_t flags);
int vm_export(int region, uint32_t flags, uint64_t off, uint64_t bytes);
void *vm_map(int region, uint64_t bytes, int prot);
void vm_unmap(void *p, uint64_t bytes);

uint64_t vm_now(void);
uint64_t vm_available(void);           /* to the system now, as the module counts */
/* Waits until the pool has nothing charged and nothing quarantined. */
void vm_pool_idle(int fd, uint32_t pool);
/* Runs @fn in a child; its exit code (0: no case failed in it). */
pid_t vm_fork(void (*fn)(void *arg), void *arg);
int vm_wait(pid_t pid);
int vm_send_fd(int sock, int fd);
int vm_recv_fd(int sock);
bool vm_logged(const char *text);      /* the kernel's log has it */
bool vm_put(const char *path, const char *text); /* into a file of the kernel's */
/* From now on what is written to fail-nth fails; false: this kernel cannot. */
bool vm_faults_on(void);

#endif
