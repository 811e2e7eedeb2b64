// SPDX-License-Identifier: MIT
#include "base/thread.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SPINS 4000   /* about 50 us of pauses before a thread sleeps */

/*
 * A piece of work is published by storing fn and arg and then adding 1 to
 * `round`; a member that sees a new round runs fn and adds 1 to `done`. The
 * caller does not leave team_run() before all are done, so a member is never
 * more than one round behind.
 *
 * Who waits spins a little and then sleeps: on a machine that has other work,
 * a thread that spins or yields keeps the one it waits for off its core, and a
 * step takes seconds. `sleepers` lets the waker skip the system call.
 */
struct team {
	uint32_t n;
	void (*fn)(void *arg, uint32_t member);
	void *arg;
	_Alignas(64) atomic_uint round;   /* futex: members sleep on it */
	atomic_bool awake;                /* a step runs */
	atomic_bool stop;
	_Alignas(64) atomic_uint done;
	_Alignas(64) atomic_uint met;     /* arrivals at team_meet() */
	_Alignas(64) atomic_uint meeting; /* meetings held */
	_Alignas(64) atomic_uint sleepers; /* threads that sleep, or are about to, on any of the words */
	uint32_t started;
	struct member {
		struct team *team;
		uint32_t id;
		pthread_t thread;
	} member[TEAM_MAX];
};

static inline void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static void futex_wait(atomic_uint *word, unsigned seen)
{
	syscall(SYS_futex, (unsigned *)word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake(atomic_uint *word)
{
	syscall(SYS_futex, (unsigned *)word, FUTEX_WAKE_PRIVATE, TEAM_MAX, NULL, NULL, 0);
}

/* Sleeps while *word is @seen, unless it changed meanwhile. */
static void doze(struct team *t, atomic_uint *word, unsigned seen)
{
	atomic_fetch_add(&t->sleepers, 1);
	if (atomic_load(word) == seen)
		futex_wait(word, seen);
	atomic_fetch_sub(&t->sleepers, 1);
}

/* After *word was changed. The fence orders that change before the look at sleepers. */
static void rouse(struct team *t, atomic_uint *word)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&t->sleepers, memory_order_relaxed))
		futex_wake(word);
}

/*
 * Until *word differs from @seen; returns the new value. @between: the wait may
 * be one between two steps. Then whoever waits for the core has it first: a
 * team on all cores leaves no other gap, and the client that is to read the
 * last token would get it late.
 */
static unsigned wait_change(struct team *t, atomic_uint *word, unsigned seen, bool between)
{
	unsigned spins = 0, v;

	for (;;) {
		v = atomic_load_explicit(word, memory_order_acquire);
		if (v != seen)
			return v;
		if (between && !atomic_load_explicit(&t->awake, memory_order_acquire)) {
			sched_yield();
			between = false;
			continue;
		}
		relax();
		if (++spins >= SPINS) {
			doze(t, word, seen);
			spins = 0;
		}
	}
}

static void *member_main(void *p)
{
	struct member *m = p;
	struct team *t = m->team;
	unsigned seen = 0;

	for (;;) {
		unsigned now = wait_change(t, &t->round, seen, true);

		seen = now;
		if (atomic_load_explicit(&t->stop, memory_order_acquire))
			return NULL;
		t->fn(t->arg, m->id);
		atomic_fetch_add_explicit(&t->done, 1, memory_order_release);
		rouse(t, &t->done);
	}
}

uint32_t thread_cores(void)
{
	cpu_set_t set;
	int n;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	n = CPU_COUNT(&set);
	return n < 1 ? 1 : n > (int)TEAM_MAX ? TEAM_MAX : (uint32_t)n;
}

void thread_brief(void)
{
	/* As the kernel lays it out; not all C libraries know it, some under this name. */
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} a = { .size = sizeof(a) };

	if (syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0))
		return;
	if (a.policy == SCHED_FIFO || a.policy == SCHED_RR) {
		/* Somebody started the program so: there a woken thread waits for all of its rank. */
		if (a.priority < 99)
			a.priority++;
	} else if (a.policy == SCHED_OTHER) {
		a.runtime = 100000;   /* ns: a short slice, which since Linux 6.12 is due at once */
	} else {
		return;
	}
	a.size = sizeof(a);
	syscall(SYS_sched_setattr, 0, &a, 0);
}

int team_open(uint32_t n, struct team **ret, struct hearth_err *err)
{
	struct team *t;
	sigset_t all, old;
	uint32_t i;
	int r = 0;

	if (n < 1 || n > TEAM_MAX)
		return err_set(err, -EINVAL, "%u threads asked for; 1 to %u are possible", n, TEAM_MAX);
	t = aligned_alloc(64, (sizeof(*t) + 63) / 64 * 64);
	if (!t)
		return err_set(err, -ENOMEM, "no memory for a team of %u threads", n);
	*t = (struct team){ .n = n };
	/* Signals are the program's business, not a worker's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	for (i = 1; i < n; i++) {
		t->member[i] = (struct member){ .team = t, .id = i };
		r = pthread_create(&t->member[i].thread, NULL, member_main, &t->member[i]);
		if (r)
			break;
		t->started++;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r) {
		team_close(t);
		return err_set(err, -r, "thread %u of %u could not be started", i, n);
	}
	*ret = t;
	return 0;
}

void team_close(struct team *t)
{
	uint32_t i;

	if (!t)
		return;
	atomic_store_explicit(&t->stop, true, memory_order_release);
	atomic_fetch_add_explicit(&t->round, 1, memory_order_release);
	futex_wake(&t->round);
	for (i = 1; i <= t->started; i++)
		pthread_join(t->member[i].thread, NULL);
	free(t);
}

uint32_t team_size(const struct team *t)
{
	return t->n;
}

static void publish(struct team *t)
{
	atomic_store_explicit(&t->done, 0, memory_order_relaxed);
	atomic_fetch_add_explicit(&t->round, 1, memory_order_release);
	rouse(t, &t->round);
}

static void wait_done(struct team *t)
{
	unsigned spins = 0, done;

	while ((done = atomic_load_explicit(&t->done, memory_order_acquire)) != t->n - 1) {
		relax();
		if (++spins >= SPINS) {
			doze(t, &t->done, done);
			spins = 0;
		}
	}
}

void team_begin(struct team *t)
{
	atomic_store_explicit(&t->awake, true, memory_order_release);
}

void team_end(struct team *t)
{
	atomic_store_explicit(&t->awake, false, memory_order_release);
}

void team_run(struct team *t, void (*fn)(void *arg, uint32_t member), void *arg)
{
	if (t->n > 1) {
		t->fn = fn;
		t->arg = arg;
		publish(t);
	}
	fn(arg, 0);
	if (t->n > 1)
		wait_done(t);
}

void team_meet(struct team *t)
{
	unsigned held;

	if (t->n == 1)
		return;
	held = atomic_load_explicit(&t->meeting, memory_order_acquire);
	if (atomic_fetch_add_explicit(&t->met, 1, memory_order_acq_rel) + 1 == t->n) {
		atomic_store_explicit(&t->met, 0, memory_order_relaxed);
		atomic_store_explicit(&t->meeting, held + 1, memory_order_release);
		rouse(t, &t->meeting);
	} else {
		wait_change(t, &t->meeting, held, false);
	}
}
