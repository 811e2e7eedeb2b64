// SPDX-License-Identifier: MIT
/*
 * Events of /dev/hearth: a descriptor of its own per stream. The kernel speaks
 * of ids; names are remembered here, because an event may come after its
 * tenant has gone.
 */
#include "dev/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mono.h"

static void remember(struct dev_stream *s, uint32_t id, bool pool, const char *name)
{
	struct dev_name *more;

	more = realloc(s->names, (s->n_names + 1) * sizeof(*more));
	if (!more)
		return;  /* it will be asked for again, or shown as a number */
	s->names = more;
	more += s->n_names++;
	more->id = id;
	more->pool = pool;
	snprintf(more->name, sizeof(more->name), "%.*s", HEARTH_NAME_LEN - 1, name);
}

static bool recall(const struct dev_stream *s, uint32_t id, bool pool, char *name)
{
	for (size_t i = 0; i < s->n_names; i++) {
		if (s->names[i].id == id && s->names[i].pool == pool) {
			memcpy(name, s->names[i].name, HEARTH_NAME_LEN);
			return true;
		}
	}
	return false;
}

static void forget(struct dev_stream *s, uint32_t id, bool pool)
{
	for (size_t i = 0; i < s->n_names; i++) {
		if (s->names[i].id == id && s->names[i].pool == pool) {
			s->names[i] = s->names[--s->n_names];
			return;
		}
	}
}

static void name_of(struct dev_stream *s, uint32_t id, bool pool, char *name)
{
	struct hearth_ioc_tenant_get t = { .size = sizeof(t), .tenant = id };
	struct hearth_ioc_pool_get p = { .size = sizeof(p), .pool = id };
	int fd = dev_of(s->base.h)->fd, ret;

	if (!id || recall(s, id, pool, name))
		return;
	ret = pool ? dev_call(fd, HEARTH_IOC_POOL_GET, &p) : dev_call(fd, HEARTH_IOC_TENANT_GET, &t);
	if (ret) {
		snprintf(name, HEARTH_NAME_LEN, "#%u", id);
		return;
	}
	remember(s, id, pool, pool ? p.name : t.name);
	memcpy(name, pool ? p.name : t.name, HEARTH_NAME_LEN);
}

int dev_events_open(struct hearth *h, struct hearth_tenant *t, struct hearth_events **ret_e,
		    struct hearth_err *err)
{
	struct hearth_ioc_watch w = { .size = sizeof(w) };
	struct hearth_ioc_join j = { .size = sizeof(j) };
	struct hearth_ioc_tenant_get get;
	struct dev *d = dev_of(h);
	struct dev_stream *s;
	int ret;

	s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(err, -ENOMEM, "no memory for an event stream");
	pthread_mutex_init(&s->lock, NULL);
	s->base.h = h;
	s->base.fd = open(d->path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	ret = s->base.fd < 0 ? -errno : 0;
	if (!ret && t) {
		memcpy(j.name, t->name, sizeof(j.name));
		ret = dev_call(s->base.fd, HEARTH_IOC_JOIN, &j);
	}
	for (unsigned k = HEARTH_EV_PRESSURE; k <= HEARTH_EV_POOL_GONE; k++)
		w.kinds |= 1ull << k;
	w.flags = t ? 0 : HEARTH_WATCH_OTHERS;
	if (!ret)
		ret = dev_call(s->base.fd, HEARTH_IOC_WATCH, &w);
	if (ret) {
		if (s->base.fd >= 0)
			close(s->base.fd);
		pthread_mutex_destroy(&s->lock);
		free(s);
		return err_set(err, ret, "no event stream: %s", strerror(-ret));
	}
	/* the names of those who may go before they are spoken of */
	memset(&get, 0, sizeof(get));
	for (uint32_t id = 0;; id = get.tenant) {
		memset(&get, 0, sizeof(get));
		get.size = sizeof(get);
		get.flags = HEARTH_GET_NEXT;
		get.tenant = id;
		if (dev_call(d->fd, HEARTH_IOC_TENANT_GET, &get))
			break;
		remember(s, get.tenant, false, get.name);
	}
	pthread_mutex_lock(&d->lock);
	s->next = d->streams;
	d->streams = s;
	pthread_mutex_unlock(&d->lock);
	*ret_e = &s->base;
	return 0;
}

void dev_events_close(struct hearth_events *e)
{
	struct dev_stream *s = (struct dev_stream *)e, **at;
	struct dev *d = dev_of(e->h);

	pthread_mutex_lock(&d->lock);
	for (at = &d->streams; *at != s; at = &(*at)->next)
		;
	*at = s->next;
	pthread_mutex_unlock(&d->lock);
	close(e->fd);
	pthread_mutex_destroy(&s->lock);
	free(s->names);
	free(s);
}

static const enum hearth_event_type types[] = {
	[HEARTH_EV_PRESSURE] = HEARTH_EVENT_PRESSURE,
	[HEARTH_EV_HIGH] = HEARTH_EVENT_HIGH,
	[HEARTH_EV_REFUSED] = HEARTH_EVENT_REFUSED,
	[HEARTH_EV_RECLAIM] = HEARTH_EVENT_RECLAIM,
	[HEARTH_EV_PURGED] = HEARTH_EVENT_PURGED,
	[HEARTH_EV_BUDGET] = HEARTH_EVENT_BUDGET,
	[HEARTH_EV_TENANT_NEW] = HEARTH_EVENT_TENANT_NEW,
	[HEARTH_EV_TENANT_GONE] = HEARTH_EVENT_TENANT_GONE,
	[HEARTH_EV_POOL_NEW] = HEARTH_EVENT_POOL_NEW,
	[HEARTH_EV_POOL_SIZE] = HEARTH_EVENT_POOL_SIZE,
	[HEARTH_EV_POOL_GONE] = HEARTH_EVENT_POOL_GONE,
};

/* What was lost is told before what is queued, so that poll stays true. */
static int read_lost(struct dev_stream *s, struct hearth_event *ret_ev)
{
	struct hearth_ioc_state st = { .size = sizeof(st) };

	if (dev_call(s->base.fd, HEARTH_IOC_STATE, &st) || st.out_lost <= s->lost)
		return 0;
	memset(ret_ev, 0, sizeof(*ret_ev));
	ret_ev->type = HEARTH_EVENT_LOST;
	ret_ev->bytes = st.out_lost - s->lost;
	ret_ev->seq = st.out_seq;
	ret_ev->time_ns = (uint64_t)mono_ns();
	s->lost = st.out_lost;
	return 1;
}

static void translate(struct dev_stream *s, const struct hearth_event_record *rec,
		      struct hearth_event *ev)
{
	struct hearth_ioc_state st = { .size = sizeof(st) };

	memset(ev, 0, sizeof(*ev));
	ev->seq = rec->seq;
	ev->time_ns = rec->time;
	ev->type = types[rec->kind];
	ev->level = (enum hearth_level)rec->level;
	ev->bytes = rec->bytes;
	ev->current = rec->current_bytes;
	ev->limit = rec->limit;
	ev->deadline_ns = rec->deadline;
	name_of(s, rec->tenant, false, ev->tenant);
	name_of(s, rec->pool, true, ev->pool);
	if (rec->kind == HEARTH_EV_TENANT_GONE)
		forget(s, rec->tenant, false);
	if (rec->kind == HEARTH_EV_POOL_GONE)
		forget(s, rec->pool, true);
	/* of the system the kernel tells what is left; here it is what is in use */
	if (rec->kind == HEARTH_EV_PRESSURE && !rec->pool && !rec->tenant &&
	    !dev_call(s->base.fd, HEARTH_IOC_STATE, &st) && st.out_total >= rec->current_bytes)
		ev->current = st.out_total - rec->current_bytes;
}

int dev_events_read(struct hearth_events *e, struct hearth_event *ret_ev)
{
	struct dev_stream *s = (struct dev_stream *)e;
	struct hearth_event_record rec;
	ssize_t n;
	int ret = 0;

	pthread_mutex_lock(&s->lock);
	do {
		ret = read_lost(s, ret_ev);
		if (ret)
			break;
		do {
			n = read(e->fd, &rec, sizeof(rec));
		} while (n < 0 && errno == EINTR);
		if (n < 0) {
			ret = errno == EAGAIN ? 0 : -errno;
			break;
		}
		if (n < (ssize_t)sizeof(rec)) {
			ret = n ? -EPROTO : 0;
			break;
		}
		/* a kind that this library does not know is passed over */
		if (rec.kind && rec.kind < sizeof(types) / sizeof(types[0])) {
			translate(s, &rec, ret_ev);
			ret = 1;
		}
	} while (!ret);
	pthread_mutex_unlock(&s->lock);
	return ret;
}
