// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events: every one is made with hearth.lock held, numbered, put into the queue
 * of each connection that watches it, and sent by netlink. A queue that is full
 * loses its oldest event, and says how many it lost.
 *
 * Levels are kept where poll can read them without a lock; a reader that is a
 * moment late is woken by the change that it missed.
 */
#include <linux/ktime.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "priv.h"
#include "trace.h"

#define KINDS_ALL (((1ULL << (HEARTH_EV_POOL_GONE + 1)) - 1) & ~1ULL)

static void queue_put(struct hearth_conn *conn, const struct hearth_event_record *ev)
{
	struct hearth_event_record *slot;

	spin_lock(&conn->queue_lock);
	if (conn->tail - conn->head == HEARTH_QUEUE) {
		conn->head++;
		conn->lost++;
	}
	slot = &conn->queue[conn->tail % HEARTH_QUEUE];
	*slot = *ev;
	slot->lost = conn->lost;
	conn->tail++;
	spin_unlock(&conn->queue_lock);
	wake_up_interruptible_poll(&conn->wait, EPOLLIN | EPOLLRDNORM);
}

/* Numbers and delivers @ev; its time is now, unless it was decided by one. */
void hearth_event(struct hearth_event_record *ev)
{
	struct hearth_conn *conn;

	lockdep_assert_held(&hearth.lock);
	ev->size = sizeof(*ev);
	ev->seq = event_seq_next(&hearth.seq);
	ev->time = ev->time ?: ktime_get_ns();
	trace_hearth_event(ev);
	list_for_each_entry(conn, &hearth.conns, list) {
		if (!(conn->kinds & (1ULL << ev->kind)))
			continue;
		if (ev->tenant && !conn->others &&
		    (!conn->tenant || conn->tenant->id != ev->tenant))
			continue;
		queue_put(conn, ev);
	}
	hearth_netlink_event(ev);
}

void hearth_event_tenant(u32 kind, const struct hearth_tenant *t)
{
	struct hearth_event_record ev = { .kind = kind, .tenant = t->id };

	hearth_event(&ev);
}

void hearth_event_pool(u32 kind, const struct hearth_pool *pool)
{
	struct hearth_event_record ev = {
		.kind = kind,
		.pool = pool->id,
		.current_bytes = pool->bp.charged,
		.bytes = pool->bp.size,
	};

	hearth_event(&ev);
}

/* A level changed: everybody may have something else to report to poll. */
void hearth_wake_conns(void)
{
	struct hearth_conn *conn;

	lockdep_assert_held(&hearth.lock);
	list_for_each_entry(conn, &hearth.conns, list)
		wake_up_interruptible_poll(&conn->wait, EPOLLPRI);
}

/*
 * Nothing to do while the level is none and stays so: the common case, which
 * reads no clock.
 */
static bool calm(struct pressure *p, const struct pressure_rules *rules, u64 value)
{
	if (p->level != PRESSURE_NONE || value >= rules->rise[PRESSURE_LOW])
		return false;
	p->value = value;
	return true;
}

static void send_pressure(const struct pressure_event *pe, u32 tenant, u32 pool)
{
	struct hearth_event_record ev = {
		.kind = HEARTH_EV_PRESSURE,
		.time = pe->time_ns,
		.tenant = tenant,
		.pool = pool,
		.level = pe->level,
		.was = pe->was,
		.limit = pe->threshold,
		.current_bytes = pe->value,
	};

	hearth_event(&ev);
}

static void tenant_level(struct hearth_tenant *t)
{
	u32 i, level = 0;

	for (i = 0; i < HEARTH_POOLS; i++) {
		if (t->budgets[i])
			level = max_t(u32, level, t->budgets[i]->pressure.level);
	}
	if (level == t->level)
		return;
	WRITE_ONCE(t->level, level);
	hearth_wake_conns();
}

static void pool_level(void)
{
	u32 i, level = 0;

	for (i = 0; i < HEARTH_POOLS; i++) {
		if (hearth.pools[i])
			level = max_t(u32, level, hearth.pools[i]->pressure.level);
	}
	if (level == hearth.pool_level)
		return;
	WRITE_ONCE(hearth.pool_level, level);
	hearth_wake_conns();
}

/* The tenant's figure in a pool changed. */
void hearth_pressure_tenant(struct hearth_budget *hb)
{
	struct pressure_event pe;
	u64 seq = hearth.seq;

	lockdep_assert_held(&hearth.lock);
	if (calm(&hb->pressure, &hb->rules, hb->b.used))
		return;
	if (pressure_update(&hb->pressure, &hb->rules, hb->b.used, ktime_get_ns(), &seq, &pe)) {
		send_pressure(&pe, hb->tenant->id, hb->pool->id);
		tenant_level(hb->tenant);
	}
}

/* The pool's figure changed. */
void hearth_pressure_pool(struct hearth_pool *pool)
{
	struct pressure_event pe;
	u64 seq = hearth.seq;

	lockdep_assert_held(&hearth.lock);
	if (calm(&pool->pressure, &pool->rules, pool->bp.charged))
		return;
	if (pressure_update(&pool->pressure, &pool->rules, pool->bp.charged, ktime_get_ns(), &seq,
			    &pe)) {
		send_pressure(&pe, 0, pool->id);
		pool_level();
	}
}

/* The limits of a tenant or the size of its pool changed. */
void hearth_pressure_rules(struct hearth_budget *hb)
{
	pressure_rules_default(&hb->rules, min(hb->b.limits.max, hb->pool->bp.size));
	hearth_pressure_tenant(hb);
}

/* Called now and then: announces again what lasts. */
void hearth_pressure_repeat(void)
{
	struct hearth_tenant *t;
	unsigned long id;
	u32 i;

	lockdep_assert_held(&hearth.lock);
	for (i = 0; i < HEARTH_POOLS; i++) {
		if (hearth.pools[i])
			hearth_pressure_pool(hearth.pools[i]);
	}
	xa_for_each(&hearth.tenants, id, t) {
		for (i = 0; t->level && i < HEARTH_POOLS; i++) {
			if (t->budgets[i])
				hearth_pressure_tenant(t->budgets[i]);
		}
	}
}

/* -- a connection's side ---------------------------------------------------- */

u32 hearth_conn_level(const struct hearth_conn *conn)
{
	/* Set once, and the tenant lives as long as the connection. */
	const struct hearth_tenant *t = smp_load_acquire(&conn->tenant);
	u32 level = max(READ_ONCE(hearth.system_level), READ_ONCE(hearth.pool_level));

	return t ? max(level, READ_ONCE(t->level)) : level;
}

__poll_t hearth_conn_poll(struct file *file, poll_table *wait)
{
	struct hearth_conn *conn = file->private_data;
	__poll_t mask = 0;

	poll_wait(file, &conn->wait, wait);
	if (READ_ONCE(conn->head) != READ_ONCE(conn->tail))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (hearth_conn_level(conn) != HEARTH_PRESSURE_NONE)
		mask |= EPOLLPRI;
	return mask;
}

/* Takes the oldest; false when there is none. */
static bool queue_peek(struct hearth_conn *conn, struct hearth_event_record *ret_ev, u64 *ret_at)
{
	bool there;

	spin_lock(&conn->queue_lock);
	there = conn->head != conn->tail;
	if (there) {
		*ret_at = conn->head;
		*ret_ev = conn->queue[conn->head % HEARTH_QUEUE];
	}
	spin_unlock(&conn->queue_lock);
	return there;
}

/* Forgets what was peeked, if the queue has not lost it meanwhile. */
static void queue_pop(struct hearth_conn *conn, u64 at)
{
	spin_lock(&conn->queue_lock);
	if (conn->head == at && conn->head != conn->tail)
		conn->head++;
	spin_unlock(&conn->queue_lock);
}

ssize_t hearth_conn_read(struct file *file, char __user *buf, size_t len, loff_t *pos)
{
	struct hearth_conn *conn = file->private_data;
	struct hearth_event_record ev;
	size_t done = 0;
	u64 at;
	int ret;

	if (len < sizeof(ev))
		return -EINVAL;
	for (;;) {
		if (mutex_lock_interruptible(&conn->read_lock))
			return -ERESTARTSYS;
		while (len - done >= sizeof(ev) && queue_peek(conn, &ev, &at)) {
			if (copy_to_user(buf + done, &ev, sizeof(ev))) {
				mutex_unlock(&conn->read_lock);
				return done ?: -EFAULT;
			}
			queue_pop(conn, at);
			done += sizeof(ev);
		}
		mutex_unlock(&conn->read_lock);
		if (done)
			return done;
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		ret = wait_event_interruptible(conn->wait,
					       READ_ONCE(conn->head) != READ_ONCE(conn->tail));
		if (ret)
			return ret;
	}
}

int hearth_ioctl_watch(void *who, void *arg)
{
	struct hearth_event_record *queue = NULL;
	struct hearth_conn *conn = who;
	struct hearth_ioc_watch *a = arg;
	int ret;

	ret = args_flags(a->flags, HEARTH_WATCH_OTHERS) ?: args_flags(a->kinds, KINDS_ALL);
	if (ret)
		return ret;
	if (a->kinds) {
		queue = kvcalloc(HEARTH_QUEUE, sizeof(*queue), GFP_KERNEL_ACCOUNT);
		if (!queue)
			return -ENOMEM;
	}
	mutex_lock(&hearth.lock);
	conn->kinds = a->kinds;
	conn->others = a->flags & HEARTH_WATCH_OTHERS;
	a->out_seq = hearth.seq;
	spin_lock(&conn->queue_lock);
	if (!a->kinds) {
		conn->head = conn->tail;
	} else if (!conn->queue) {
		/* Stays until the connection goes: readers look at it unlocked. */
		conn->queue = queue;
		queue = NULL;
	}
	spin_unlock(&conn->queue_lock);
	mutex_unlock(&hearth.lock);
	kvfree(queue);
	return 0;
}

int hearth_ioctl_state(void *who, void *arg)
{
	struct hearth_conn *conn = who;
	struct hearth_ioc_state *a = arg;

	if (a->reserved)
		return -EINVAL;
	mutex_lock(&hearth.lock);
	a->out_level = hearth_conn_level(conn);
	a->out_system = hearth.system_level;
	a->out_pool = hearth.pool_level;
	a->out_tenant = conn->tenant ? conn->tenant->level : 0;
	a->out_available = hearth.system.available;
	a->out_total = hearth.system.total;
	a->out_seq = hearth.seq;
	spin_lock(&conn->queue_lock);
	a->out_lost = conn->lost;
	spin_unlock(&conn->queue_lock);
	mutex_unlock(&hearth.lock);
	return 0;
}
