// SPDX-License-Identifier: MIT
#include "server/feed.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mono.h"

#define BLOCK 4096u             /* bytes of records; a longer record has a block of its own */

struct rec {
	uint32_t kind, len, more;   /* bytes of text, of arguments; each has a NUL behind it */
	int32_t token;
	/* text and arguments, or a sampler_pick as far as it is filled */
};

/*
 * The writer fills a block up to .end, which it moves when a record is whole,
 * and goes on in .next, which it sets when it will not move .end again. The
 * reader follows, and frees what it has behind it.
 */
struct block {
	_Atomic(struct block *) next;
	atomic_size_t end;
	size_t cap;
	struct block *before;       /* the reader's: behind it, but an event may lead there */
	_Alignas(8) char byte[];
};

/* What the reader waits for; a futex. */
enum { NOTHING, ANYTHING, THE_END };

struct feed {
	atomic_uint waits;
	atomic_bool done;
	struct block *to;           /* the writer's */
	/* the reader's */
	struct block *from, *spent;
	size_t at;
	bool over;                  /* RUN_DONE was given out */
	struct run_event e;
	char *joined;               /* [cap] text of several records */
	size_t cap;
};

static struct block *block_new(size_t cap)
{
	struct block *b = malloc(sizeof(*b) + cap);

	if (!b)
		return NULL;
	atomic_init(&b->next, NULL);
	atomic_init(&b->end, 0);
	b->cap = cap;
	b->before = NULL;
	return b;
}

struct feed *feed_new(void)
{
	struct feed *f = calloc(1, sizeof(*f));

	if (f)
		f->to = f->from = block_new(BLOCK);
	if (f && !f->to) {
		free(f);
		return NULL;
	}
	return f;
}

static void forget(struct feed *f)
{
	while (f->spent) {
		struct block *b = f->spent;

		f->spent = b->before;
		free(b);
	}
}

void feed_free(struct feed *f)
{
	struct block *b, *next;

	if (!f)
		return;
	forget(f);
	for (b = f->from; b; b = next) {
		next = atomic_load(&b->next);
		free(b);
	}
	free(f->joined);
	free(f);
}

/* -- writing ----------------------------------------------------------------------- */

static size_t rounded(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

/* Room for a record of @n bytes behind its head. */
static struct rec *record(struct feed *f, size_t n)
{
	struct block *b = f->to;
	size_t end = atomic_load_explicit(&b->end, memory_order_relaxed);

	n = rounded(sizeof(struct rec) + n);
	if (b->cap - end < n) {
		b = block_new(n > BLOCK ? n : BLOCK);
		if (!b)
			return NULL;
		atomic_store(&f->to->next, b);
		f->to = b;
		end = 0;
	}
	return (struct rec *)(void *)(b->byte + end);
}

static void wake(struct feed *f)
{
	syscall(SYS_futex, (unsigned *)&f->waits, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/*
 * The reader says that it waits, then looks at .end once more; here .end is
 * moved, then looked whether it waits: one of the two sees the other.
 */
static void said(struct feed *f, size_t n)
{
	unsigned anything = ANYTHING;

	atomic_store(&f->to->end, atomic_load_explicit(&f->to->end, memory_order_relaxed) + rounded(sizeof(struct rec) + n));
	if (atomic_load(&f->waits) == ANYTHING && atomic_compare_exchange_strong(&f->waits, &anything, NOTHING))
		wake(f);
}

static char *put(char *to, const char *s, size_t n)
{
	memcpy(to, s, n);
	to[n] = 0;
	return to + n + 1;
}

bool feed_text(struct feed *f, enum run_event_kind kind, const char *s, size_t n)
{
	struct rec *r = record(f, n + 1);

	if (!r)
		return false;
	*r = (struct rec){ .kind = kind, .len = (uint32_t)n };
	put((char *)(r + 1), s, n);
	said(f, n + 1);
	return true;
}

bool feed_call(struct feed *f, const char *name, const char *arguments)
{
	const size_t n = strlen(name), m = strlen(arguments);
	struct rec *r = record(f, n + m + 2);

	if (!r)
		return false;
	*r = (struct rec){ .kind = RUN_CALL, .len = (uint32_t)n, .more = (uint32_t)m };
	put(put((char *)(r + 1), name, n), arguments, m);
	said(f, n + m + 2);
	return true;
}

bool feed_logprob(struct feed *f, int32_t token, const struct sampler_pick *pick)
{
	const size_t n = offsetof(struct sampler_pick, top) + pick->n_top * sizeof(pick->top[0]);
	struct rec *r = record(f, n);

	if (!r)
		return false;
	*r = (struct rec){ .kind = RUN_LOGPROB, .len = (uint32_t)n, .token = token };
	memcpy(r + 1, pick, n);
	said(f, n);
	return true;
}

void feed_done(struct feed *f)
{
	atomic_store(&f->done, true);
	if (atomic_exchange(&f->waits, NOTHING) != NOTHING)
		wake(f);
}

/* -- reading ------------------------------------------------------------------------- */

/* The next record, or NULL. */
static const struct rec *peek(struct feed *f)
{
	for (;;) {
		struct block *b = f->from, *next;

		if (f->at < atomic_load(&b->end))
			return (const struct rec *)(void *)(b->byte + f->at);
		next = atomic_load(&b->next);
		if (!next)
			return NULL;
		if (f->at < atomic_load(&b->end))   /* it came between the two looks */
			continue;
		b->before = f->spent;
		f->spent = b;
		f->from = next;
		f->at = 0;
	}
}

static void step(struct feed *f, const struct rec *r)
{
	const size_t n = r->kind == RUN_LOGPROB ? r->len : r->kind == RUN_CALL ? (size_t)r->len + r->more + 2 : (size_t)r->len + 1;

	f->at += rounded(sizeof(*r) + n);
}

static bool there(struct feed *f, unsigned what)
{
	return atomic_load(&f->done) || (what == ANYTHING && peek(f));
}

static bool wait_for(struct feed *f, unsigned what, int ms)
{
	struct timespec until;
	bool late = false;

	if (there(f, what))
		return true;
	if (ms <= 0)
		return false;
	until = mono_after(ms);
	while (!late) {
		atomic_store(&f->waits, what);
		if (there(f, what))
			break;
		late = syscall(SYS_futex, (unsigned *)&f->waits, FUTEX_WAIT_BITSET_PRIVATE, what, &until, NULL,
			       FUTEX_BITSET_MATCH_ANY) && errno == ETIMEDOUT;
	}
	atomic_store(&f->waits, NOTHING);
	return there(f, what);
}

void feed_rest(struct feed *f, int ms)
{
	wait_for(f, THE_END, ms);
}

/* Puts @r's text behind the event's. */
static bool join(struct feed *f, const struct rec *r)
{
	const size_t n = f->e.len + r->len + 1;

	if (n > f->cap) {
		char *p = realloc(f->joined, 2 * n);

		if (!p)
			return false;
		if (f->e.text == f->joined)
			f->e.text = p;
		f->joined = p;
		f->cap = 2 * n;
	}
	if (f->e.text != f->joined)
		memcpy(f->joined, f->e.text, f->e.len);
	put(f->joined + f->e.len, (const char *)(r + 1), r->len);
	f->e.text = f->joined;
	f->e.len += r->len;
	return true;
}

const struct run_event *feed_next(struct feed *f, int wait_ms, bool whole)
{
	const struct rec *r;

	forget(f);
	if (f->over || !wait_for(f, whole ? THE_END : ANYTHING, wait_ms))
		return NULL;
	r = peek(f);
	if (!r) {
		f->over = true;
		f->e = (struct run_event){ .kind = RUN_DONE };
		return &f->e;
	}
	f->e.kind = (enum run_event_kind)r->kind;
	f->e.text = f->e.arguments = NULL;
	f->e.len = 0;
	step(f, r);
	if (r->kind == RUN_LOGPROB) {
		f->e.token = r->token;
		memcpy(&f->e.pick, r + 1, r->len);
		return &f->e;
	}
	f->e.text = (const char *)(r + 1);
	f->e.len = r->len;
	if (r->kind == RUN_CALL) {
		f->e.arguments = f->e.text + r->len + 1;
		return &f->e;
	}
	/* Without memory the rest is an event of its own. */
	while ((r = peek(f)) && r->kind == (uint32_t)f->e.kind && join(f, r))
		step(f, r);
	return &f->e;
}
