// SPDX-License-Identifier: MIT
#include "gguf/pull.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#ifdef HEARTH_URING
#include <liburing.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct state {
	struct pull *p;
	bool any;                /* something arrived: no other way can start over silently */
};

static bool cancelled(const struct pull *p)
{
	return p->cancel && atomic_load_explicit(p->cancel, memory_order_relaxed);
}

static int read_failed(const struct piece *q, int e, struct hearth_err *err)
{
	return err_set(err, -e, "reading at offset %" PRIu64 " failed: %s", q->off + q->got,
		       strerror(e));
}

static int too_short(const struct piece *q, struct hearth_err *err)
{
	return err_set(err, -ENODATA,
		       "the file became shorter while it was read: it ends at offset %" PRIu64,
		       q->off + q->got);
}

/*
 * Takes note of @res bytes (or -errno). Returns 1 when the piece is whole, 0
 * when the rest must be asked for again, or a failure.
 */
static int piece_got(struct state *s, struct piece *q, int res, struct hearth_err *err)
{
	if (res == -EINTR)
		return 0;
	if (res < 0)
		return read_failed(q, -res, err);
	if (res == 0)
		return too_short(q, err);
	q->got += (uint32_t)res;
	if (q->got >= q->need) {
		s->any = true;
		return 1;
	}
	/* The next O_DIRECT read must begin on a block; what is cut off comes again. */
	q->got &= ~(uint32_t)(PULL_ALIGN - 1);
	return 0;
}

static int set_direct(const struct pull *p, bool on)
{
	int last = -1;

	for (size_t i = 0; i < p->n; i++) {
		int fl;

		if (p->piece[i].fd == last)
			continue;
		last = p->piece[i].fd;
		fl = fcntl(last, F_GETFL);
		if (fl < 0 || fcntl(last, F_SETFL, on ? fl | O_DIRECT : fl & ~O_DIRECT) < 0)
			return -errno;
	}
	return 0;
}

/* -- one read at a time ----------------------------------------------------- */

static int run_pread(struct state *s, bool direct, struct hearth_err *err)
{
	struct pull *p = s->p;
	int r;

	for (size_t i = 0; i < p->n; i++) {
		struct piece *q = &p->piece[i];

		p->may_ask(p->ctx, i, true);
		do {
			ssize_t n;

			if (cancelled(p))
				return -ECANCELED;
			n = pread(q->fd, q->dst + q->got, q->ask - q->got,
				  (off_t)(q->off + q->got));
			if (n < 0 && errno == EINVAL && direct && !s->any)
				return err_set(err, -EOPNOTSUPP,
					       "this file system refuses O_DIRECT");
			r = piece_got(s, q, n < 0 ? -errno : (int)n, err);
		} while (r == 0);
		if (r < 0)
			return r;
		/* Clean pages that nobody else has mapped go at once. */
		if (!direct)
			posix_fadvise(q->fd, (off_t)q->off, q->ask, POSIX_FADV_DONTNEED);
		p->arrived(p->ctx, i);
	}
	return 0;
}

/* -- many reads at a time --------------------------------------------------- */

#ifdef HEARTH_URING

static void queue_read(struct io_uring *ring, struct piece *q)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	/* Never NULL: at most depth reads are in flight, and the ring has that many entries. */
	io_uring_prep_read(sqe, q->fd, q->dst + q->got, q->ask - q->got, q->off + q->got);
	io_uring_sqe_set_data(sqe, q);
}

/* Bytes or -errno, as a completion has them. */
static int read_now(struct piece *q)
{
	ssize_t n = pread(q->fd, q->dst + q->got, q->ask - q->got, (off_t)(q->off + q->got));

	return n < 0 ? -errno : (int)n;
}

/* Waits for what the kernel has; what was never handed over will not come. */
static void drain(struct io_uring *ring, uint32_t flying)
{
	struct io_uring_cqe *cqe;
	int r;

	flying -= io_uring_sq_ready(ring);
	while (flying) {
		r = io_uring_wait_cqe(ring, &cqe);
		if (r == -EINTR)
			continue;
		if (r < 0)
			return; /* a broken ring: the kernel's own references keep the pages */
		io_uring_cqe_seen(ring, cqe);
		flying--;
	}
}

/* Takes one completion. Returns 1 when its piece is whole, 0 to ask again, or a failure. */
static int take_one(struct state *s, struct io_uring *ring, struct piece **ret,
		    struct hearth_err *err)
{
	struct io_uring_cqe *cqe;
	int r, res;

	do
		r = io_uring_submit_and_wait(ring, 1);
	while (r == -EINTR || r == -EAGAIN || r == -EBUSY);
	if (r >= 0)
		r = io_uring_wait_cqe(ring, &cqe);
	if (r < 0) {
		*ret = NULL;
		return err_set(err, r, "io_uring stopped: %s", strerror(-r));
	}
	*ret = io_uring_cqe_get_data(cqe);
	res = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	/*
	 * "Would block", and so it would for ever: Linux 5.10 says it of every
	 * O_DIRECT read of a disk that has no queue (a RAM disk, device mapper).
	 */
	if (res == -EAGAIN)
		res = read_now(*ret);
	if ((res == -EINVAL || res == -EOPNOTSUPP) && !s->any)
		return err_set(err, -EOPNOTSUPP,
			       "this file system refuses O_DIRECT through io_uring");
	return piece_got(s, *ret, res, err);
}

static int run_ring(struct state *s, struct io_uring *ring, uint32_t depth, struct hearth_err *err)
{
	struct pull *p = s->p;
	uint32_t flying = 0;
	size_t next = 0;
	int r = 0;

	while (flying || next < p->n) {
		struct piece *q = NULL;

		while (flying < depth && next < p->n && p->may_ask(p->ctx, next, !flying)) {
			queue_read(ring, &p->piece[next++]);
			flying++;
		}
		r = cancelled(p) ? -ECANCELED : take_one(s, ring, &q, err);
		if (r < 0) {
			flying -= r != -ECANCELED && q;
			break;
		}
		if (r == 0) {
			queue_read(ring, q);
			continue;
		}
		flying--;
		/* First the next read, so that the disk works while the caller hashes. */
		if (next < p->n && p->may_ask(p->ctx, next, false)) {
			queue_read(ring, &p->piece[next++]);
			flying++;
			io_uring_submit(ring);
		}
		p->arrived(p->ctx, (size_t)(q - p->piece));
	}
	drain(ring, flying);
	return r < 0 ? r : 0;
}

static int run_uring(struct state *s, struct hearth_err *err)
{
	struct io_uring ring;
	uint32_t depth = s->p->depth;
	int r;

	r = io_uring_queue_init(depth, &ring, 0);
	if (r < 0)
		return err_set(err, -EOPNOTSUPP, "io_uring is not to be had here: %s",
			       strerror(-r));
	r = run_ring(s, &ring, depth, err);
	io_uring_queue_exit(&ring);
	return r;
}

#else

static int run_uring(struct state *s, struct hearth_err *err)
{
	return err_set(err, -EOPNOTSUPP, "hearth was built without io_uring");
}

#endif

int pull_run(struct pull *p, enum load_way way, struct hearth_err *err)
{
	struct state s = { .p = p };
	int r;

	for (size_t i = 0; i < p->n; i++)
		p->piece[i].got = 0;
	r = set_direct(p, way != LOAD_BUFFERED);
	if (r < 0 && way != LOAD_BUFFERED)
		return err_set(err, -EOPNOTSUPP, "this file system has no O_DIRECT");
	if (way == LOAD_URING)
		return run_uring(&s, err);
	return run_pread(&s, way == LOAD_DIRECT, err);
}
