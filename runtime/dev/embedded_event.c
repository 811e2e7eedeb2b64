// SPDX-License-Identifier: MIT
/*
 * Events of the embedded backend: a ring and an eventfd per stream, and one
 * thread per connection, begun with its first stream, that repeats pressure
 * while it lasts and looks at the machine's memory once a second.
 */
#include "dev/embedded.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mono.h"

#define SECOND_NS 1000000000ull

static void ring_up(int fd)
{
	uint64_t one = 1;

	/* cannot fail: the counter is 0 or 1 */
	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void ring_down(int fd)
{
	uint64_t n;

	while (read(fd, &n, sizeof(n)) < 0 && errno == EINTR)
		;
}

static void put(struct emb_stream *s, const struct hearth_event *ev)
{
	/* once one is lost, so are all until that was read: the gap is in its place */
	if (s->count == EMB_QUEUE || s->lost) {
		s->lost++;
		return;
	}
	s->ring[(s->head + s->count) % EMB_QUEUE] = *ev;
	if (!s->count++)
		ring_up(s->base.fd);
}

void emb_emit(struct emb *e, const struct emb_rec *rec, const struct emb_pool *pool,
	      struct hearth_event ev)
{
	ev.seq = event_seq_next(&e->seq);
	ev.time_ns = (uint64_t)mono_ns();
	if (rec)
		memcpy(ev.tenant, rec->name, sizeof(ev.tenant));
	if (pool)
		memcpy(ev.pool, pool->base.name, sizeof(ev.pool));
	for (struct emb_stream *s = e->streams; s; s = s->next) {
		if (!rec || s->all || s->rec == rec)
			put(s, &ev);
	}
}

void emb_gauge(struct emb *e, struct pressure *p, const struct pressure_rules *rules,
	       uint64_t value, const struct emb_rec *rec, const struct emb_pool *pool)
{
	struct pressure_event pev;
	uint64_t seq = e->seq;

	/* emb_emit steps the sequence itself */
	if (!pressure_update(p, rules, value, (uint64_t)mono_ns(), &seq, &pev))
		return;
	emb_emit(e, rec, pool, (struct hearth_event){
		.type = HEARTH_EVENT_PRESSURE,
		.level = (enum hearth_level)pev.level,
		.current = pev.value,
		.limit = pev.threshold,
	});
}

/* -- the ticker --------------------------------------------------------------- */

/* Bytes of the machine in use and in all; false where that is not told. */
static bool read_meminfo(uint64_t *ret_used, uint64_t *ret_total)
{
	unsigned long long total = 0, avail = 0, cma_free = 0, v;
	char line[128];
	FILE *f;

	f = fopen("/proc/meminfo", "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "MemTotal: %llu kB", &v) == 1)
			total = v;
		else if (sscanf(line, "MemAvailable: %llu kB", &v) == 1)
			avail = v;
		else if (sscanf(line, "CmaFree: %llu kB", &v) == 1)
			cma_free = v;
	}
	fclose(f);
	/* free CMA serves movable pages only: nothing that a pool could get */
	avail = avail > cma_free ? avail - cma_free : 0;
	if (!total || avail > total)
		return false;
	*ret_used = (total - avail) * 1024;
	*ret_total = total * 1024;
	return true;
}

static void tick(struct emb *e, bool known, uint64_t used, uint64_t total)
{
	struct emb_rec *rec;

	if (known) {
		pressure_rules_default(&e->system_rules, total);
		emb_gauge(e, &e->system, &e->system_rules, used, NULL, NULL);
	}
	for (size_t i = 0; i < e->base.n_pools; i++) {
		struct emb_pool *p = emb_pool_of(e->base.pools[i]);

		emb_gauge(e, &p->gauge, &p->rules, p->budget.charged, NULL, p);
		for (rec = e->first; rec; rec = rec->next)
			emb_gauge(e, &rec->acct[i].gauge, &rec->acct[i].rules,
				  rec->acct[i].b.used, rec, p);
	}
}

int emb_system(struct hearth *h, struct hearth_system *ret_sys)
{
	struct emb *e = emb_of(h);
	struct pressure_event ev;
	uint64_t used, total, seq = 0;
	struct pressure now;

	if (!read_meminfo(&used, &total))
		return -ENODATA;
	pthread_mutex_lock(&e->lock);
	/* while nobody listens nobody keeps the level: then what a first look says */
	if (e->ticking) {
		now = e->system;
	} else {
		pressure_init(&now, 0);
		pressure_rules_default(&e->system_rules, total);
		pressure_update(&now, &e->system_rules, used, 0, &seq, &ev);
	}
	*ret_sys = (struct hearth_system){
		.level = (enum hearth_level)now.level,
		.total = total,
		.available = total - used,
		.seq = e->seq,
	};
	pthread_mutex_unlock(&e->lock);
	return 0;
}

static void *ticker(void *arg)
{
	uint64_t used = 0, total = 0, at;
	struct emb *e = arg;
	struct timespec ts;
	bool known;

	pthread_mutex_lock(&e->lock);
	while (!e->stopping) {
		pthread_mutex_unlock(&e->lock);
		known = read_meminfo(&used, &total);
		pthread_mutex_lock(&e->lock);
		tick(e, known, used, total);
		at = (uint64_t)mono_ns() + SECOND_NS;
		ts.tv_sec = (time_t)(at / SECOND_NS);
		ts.tv_nsec = (long)(at % SECOND_NS);
		while (!e->stopping && !pthread_cond_timedwait(&e->tick, &e->lock, &ts))
			;
	}
	pthread_mutex_unlock(&e->lock);
	return NULL;
}

void emb_ticker_stop(struct emb *e)
{
	pthread_mutex_lock(&e->lock);
	if (!e->ticking) {
		pthread_mutex_unlock(&e->lock);
		return;
	}
	e->stopping = true;
	e->ticking = false;
	pthread_cond_broadcast(&e->tick);
	pthread_mutex_unlock(&e->lock);
	pthread_join(e->ticker, NULL);
	e->stopping = false;
}

/* -- streams ------------------------------------------------------------------ */

int emb_events_open(struct hearth *h, struct hearth_tenant *t, struct hearth_events **ret_e,
		    struct hearth_err *err)
{
	struct emb *e = emb_of(h);
	struct emb_stream *s;
	int ret = 0;

	s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(err, -ENOMEM, "no memory for an event stream");
	s->base.h = h;
	s->base.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->base.fd < 0) {
		ret = -errno;
		free(s);
		return err_set(err, ret, "no event stream: %s", strerror(-ret));
	}
	s->all = !t;
	s->rec = t ? ((struct emb_tenant *)t)->rec : NULL;
	pthread_mutex_lock(&e->lock);
	s->next = e->streams;
	e->streams = s;
	if (!e->ticking) {
		pressure_init(&e->system, (uint64_t)mono_ns());
		ret = -pthread_create(&e->ticker, NULL, ticker, e);
		e->ticking = !ret;
	}
	pthread_mutex_unlock(&e->lock);
	if (ret) {
		emb_events_close(&s->base);
		return err_set(err, ret, "no thread for events: %s", strerror(-ret));
	}
	*ret_e = &s->base;
	return 0;
}

void emb_events_close(struct hearth_events *ev)
{
	struct emb_stream *s = (struct emb_stream *)ev;
	struct emb *e = emb_of(ev->h);
	struct emb_stream **at;

	pthread_mutex_lock(&e->lock);
	for (at = &e->streams; *at != s; at = &(*at)->next)
		;
	*at = s->next;
	pthread_mutex_unlock(&e->lock);
	close(ev->fd);
	free(s);
}

int emb_events_read(struct hearth_events *ev, struct hearth_event *ret_ev)
{
	struct emb_stream *s = (struct emb_stream *)ev;
	struct emb *e = emb_of(ev->h);
	int ret = 0;

	pthread_mutex_lock(&e->lock);
	if (s->count) {
		*ret_ev = s->ring[s->head];
		s->head = (s->head + 1) % EMB_QUEUE;
		s->count--;
		ret = 1;
	} else if (s->lost) {
		memset(ret_ev, 0, sizeof(*ret_ev));
		ret_ev->type = HEARTH_EVENT_LOST;
		ret_ev->bytes = s->lost;
		ret_ev->seq = e->seq;
		ret_ev->time_ns = (uint64_t)mono_ns();
		s->lost = 0;
		ret = 1;
	}
	if (ret && !s->count && !s->lost)
		ring_down(ev->fd);
	pthread_mutex_unlock(&e->lock);
	return ret;
}
