// SPDX-License-Identifier: MIT
#include "server/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "dev/hearth.h"
#include "server/grammars.h"
#include "server/tenants.h"

struct keeper {
	struct service *s;
	struct hearth_events *events;
	int wake;                    /* eventfd: written when it is time to go */
	pthread_t thread;
	uint64_t saved_at;           /* prompt tokens computed when the file was written */
	bool never;                  /* this engine's cache is none that can be kept */
};

/* Index only, where the module keeps the pages. */
static bool in_place(const struct service *s)
{
	return hearth_backend_of(s->hearth) == HEARTH_BACKEND_DEVICE;
}

static void save(struct keeper *k, bool last)
{
	struct service *s = k->s;
	struct hearth_err err = { 0 };
	struct engine_stats st;
	uint32_t pages;

	if (!s->cfg->cache_file || k->never)
		return;
	engine_stats(s->engine, &st);
	if (st.prompt_tokens == k->saved_at || (!last && (st.active || st.queued)))
		return;
	if (engine_cache_save(s->engine, s->cfg->cache_file, s->cfg->cache_max, in_place(s), &pages, &err)) {
		s->cache_failed++;
		return;
	}
	s->cache_saved++;
	k->saved_at = st.prompt_tokens;
}

/* What an event asks for, in bytes of KV. */
static uint64_t wanted(const struct service *s, const struct hearth_event *e, bool *ret_all)
{
	const struct engine_plan *p = engine_the_plan(s->engine);
	struct engine_stats st;
	uint64_t cached;

	*ret_all = false;
	if (e->type == HEARTH_EVENT_RECLAIM)
		return e->bytes;
	if (e->type == HEARTH_EVENT_HIGH)
		return e->current > e->limit ? e->current - e->limit : 0;
	if (e->type != HEARTH_EVENT_PRESSURE)
		return 0;
	engine_stats(s->engine, &st);
	cached = st.kv_pages_cached * (p->kv_bytes_per_token * KV_PAGE);
	*ret_all = e->level == HEARTH_LEVEL_CRITICAL;
	return e->level == HEARTH_LEVEL_NONE ? 0 : e->level == HEARTH_LEVEL_LOW ? cached / 4 :
	       e->level == HEARTH_LEVEL_MEDIUM ? cached / 2 : cached;
}

static void heed(struct keeper *k)
{
	struct service *s = k->s;
	struct hearth_event e;
	uint64_t bytes;
	bool all, trim = false;

	while (hearth_events_read(k->events, &e) == 1) {
		/* That one is full whenever every session works; nothing that is kept could empty it. */
		if (!strcmp(e.pool, TENANTS_POOL))
			continue;
		bytes = wanted(s, &e, &all);
		if (!bytes && !all)
			continue;
		s->sheds++;
		s->shed_bytes += engine_shed(s->engine, bytes, all);
		if (all || e.level >= HEARTH_LEVEL_MEDIUM || e.type == HEARTH_EVENT_RECLAIM)
			s->shed_bytes += grammars_shed(s->grammars);
		trim |= all;
	}
	/* Then also what the C library keeps between requests. */
	if (trim)
		malloc_trim(0);
}

static void *keeper_main(void *arg)
{
	struct keeper *k = arg;
	struct pollfd p[2] = { { .fd = k->wake, .events = POLLIN }, { .fd = hearth_events_fd(k->events), .events = POLLIN } };
	const int step = k->s->cfg->cache_file ? (int)k->s->cfg->cache_seconds * 1000 : -1;
	struct timespec t;
	int64_t due, now;

	clock_gettime(CLOCK_MONOTONIC, &t);
	due = t.tv_sec * 1000 + t.tv_nsec / 1000000 + step;
	for (;;) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		now = t.tv_sec * 1000 + t.tv_nsec / 1000000;
		if (step > 0 && now >= due) {
			save(k, false);
			due = now + step;
		}
		if (poll(p, 2, step > 0 ? (int)(due - now > 0 ? due - now : 0) : -1) < 0 && errno != EINTR)
			return NULL;
		if (p[0].revents)
			return NULL;
		if (p[1].revents)
			heed(k);
	}
}

/* The file is written beside itself and renamed: whether its folder takes it is known now, not only at the end. */
static void look_at_folder(struct service *s)
{
	char *path = strdup(s->cfg->cache_file);
	const char *folder = path ? dirname(path) : "";
	const size_t n = strlen(s->cache_note);

	if (path && faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS))
		snprintf(s->cache_note + n, sizeof(s->cache_note) - n, "%s not kept over a restart: %.200s: %s (make the folder, or name a file elsewhere in cache.file)",
			 n ? ";" : "prefix cache:", folder, strerror(errno));
	free(path);
}

static void load(struct service *s, struct keeper *k)
{
	struct hearth_err err = { 0 };
	struct engine_stats st;
	uint32_t pages, lost;
	int r;

	if (!s->cfg->cache_file)
		return;
	r = engine_cache_load(s->engine, s->cfg->cache_file, &pages, &lost, &err);
	if (!r)
		snprintf(s->cache_note, sizeof(s->cache_note), "prefix cache: %u tokens from %.200s, %u left out", pages * KV_PAGE, s->cfg->cache_file, lost * KV_PAGE);
	else if (r != -ENOENT)
		snprintf(s->cache_note, sizeof(s->cache_note), "prefix cache: begins empty: %.400s", err.text);
	s->cache_loaded = r ? 0 : pages;
	k->never = r == -EOPNOTSUPP;
	if (!k->never)
		look_at_folder(s);
	engine_stats(s->engine, &st);
	k->saved_at = st.prompt_tokens;
}

int keeper_open(struct service *s, struct keeper **ret, struct hearth_err *err)
{
	struct keeper *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return err_set(err, -ENOMEM, "out of memory");
	k->s = s;
	load(s, k);
	k->wake = eventfd(0, EFD_CLOEXEC);
	r = k->wake < 0 ? err_set(err, -errno, "no descriptor is left") : hearth_events_open(s->hearth, s->llm, &k->events, err);
	if (!r && pthread_create(&k->thread, NULL, keeper_main, k))
		r = err_set(err, -EAGAIN, "the thread that looks after memory could not be started");
	if (r) {
		hearth_events_close(k->events);
		if (k->wake >= 0)
			close(k->wake);
		free(k);
		return r;
	}
	*ret = k;
	return 0;
}

void keeper_close(struct keeper *k)
{
	const uint64_t one = 1;

	if (!k)
		return;
	while (write(k->wake, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	pthread_join(k->thread, NULL);
	save(k, true);
	hearth_events_close(k->events);
	close(k->wake);
	free(k);
}
