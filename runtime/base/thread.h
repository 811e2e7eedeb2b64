/* SPDX-License-Identifier: MIT */
/*
 * A team of threads that runs one function at a time on all of its members.
 *
 * Who waits spins, since the next piece of work is microseconds away: within a
 * step of the model, which is between team_begin() and team_end(), and most
 * often from one to the next, where others have the core first. After some 50
 * us it sleeps and costs nothing, so a machine with more runnable threads than
 * cores still makes progress.
 */
#ifndef HEARTH_BASE_THREAD_H
#define HEARTH_BASE_THREAD_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define TEAM_MAX 64u

struct team;

/* Cores this process may run on. */
uint32_t thread_cores(void);

/*
 * The calling thread waits most of the time and then hands something on: it
 * asks to run soon when it wakes, also while a team has every core. A wish: a
 * kernel that does not know it goes on as before.
 */
void thread_brief(void);

/* @n members, the caller among them: n-1 threads are started. 1 is fine. */
int team_open(uint32_t n, struct team **ret, struct hearth_err *err);
void team_close(struct team *t);   /* NULL is fine */
uint32_t team_size(const struct team *t);

void team_begin(struct team *t);
void team_end(struct team *t);

/*
 * Calls fn(arg, member) on every member, member 0 being the caller, and
 * returns when all have returned. Between team_begin() and team_end() only.
 */
void team_run(struct team *t, void (*fn)(void *arg, uint32_t member), void *arg);

/*
 * All members inside one team_run() meet here: what one wrote before, all see
 * behind it. Every member must call it the same number of times.
 */
void team_meet(struct team *t);

/* Hands out 0 .. n-1 in pieces; each index once. Reset before team_run(). */
struct work {
	_Alignas(64) atomic_uint next;
};

static inline void work_reset(struct work *w)
{
	atomic_store_explicit(&w->next, 0, memory_order_relaxed);
}

static inline uint32_t work_take(struct work *w, uint32_t piece)
{
	return atomic_fetch_add_explicit(&w->next, piece, memory_order_relaxed);
}

#endif
