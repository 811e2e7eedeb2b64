// SPDX-License-Identifier: MIT
/*
 * The service between hearthd's fronts and the engine, on a small model:
 * pressure empties the caches, a full queue refuses, voice goes before who
 * came earlier, a client that leaves ends the work and spoils nothing.
 */
#include "unit.h"
#include "synth.h"
#include "dev/hearth.h"
#include "server/config.h"
#include "server/keyring.h"
#include "server/run.h"
#include "server/service.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static char dir[] = "/tmp/hearth-service-XXXXXX";
static char model[64], file[64];

#define CTX   100000u
#define HOLDS 90000u            /* tokens: seconds, for whoever has to be found waiting */

static void nap(long ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

struct box {
	struct config cfg;
	struct keyring *keys;
	struct service *s;
};

static void box_open(struct box *b, uint32_t sessions, uint32_t queue, const char *cache)
{
	struct hearth_err err = { 0 };

	assert_int_equal(config_defaults(&b->cfg, &err), 0);
	b->cfg.model = strdup(model);
	b->cfg.cache_file = cache ? strdup(cache) : NULL;
	b->cfg.sessions = sessions;
	b->cfg.queue = queue;
	b->cfg.threads = 2;
	b->cfg.ctx = CTX;
	assert_int_equal(keyring_new(&b->keys), 0);
	if (service_open(&b->cfg, b->keys, &b->s, &err))
		fail_msg("%s", err.text);
}

static void box_close(struct box *b)
{
	service_close(b->s);
	keyring_free(b->keys);
	config_done(&b->cfg);
}

static void tokens(int32_t *t, uint32_t n, uint64_t seed)
{
	for (uint32_t i = 0; i < n; i++)
		t[i] = (int32_t)(synth_rand(&seed) % 256);
}

/* Never ends by itself: nothing of it is text that stops. */
static struct run_opts opts(struct box *b, const int32_t *t, size_t n, uint32_t max)
{
	static struct sampler_bias no_end[64];
	static uint32_t n_end;
	struct run_opts o = { .service = b->s, .tokens = t, .n_tokens = n, .max_tokens = max, .prio = GEN_NORMAL, .who = -1,
			      .raw = true, .wait_ms = 60000 };

	if (!n_end)
		for (size_t i = 0; i < tok_count(b->s->tok); i++)
			if (tok_is_eog(b->s->tok, (int32_t)i))
				no_end[n_end++] = (struct sampler_bias){ (int32_t)i, -__builtin_inff() };
	sampler_defaults(&o.sample);
	o.sample.bias = no_end;
	o.sample.n_bias = n_end;
	return o;
}

static struct run *start(const struct run_opts *o)
{
	struct hearth_err err = { 0 };
	struct run *r;

	if (run_start(o, &r, &err))
		fail_msg("%s", err.text);
	return r;
}

/* Until the end; what was said, and the result. */
static struct gen_result finish(struct run *r, char *text, size_t cap)
{
	struct gen_result res;
	const struct run_event *e;
	bool done = false;
	size_t n = 0;

	while (!done) {
		e = run_next(r, 1000);
		if (!e)
			continue;
		done = e->kind == RUN_DONE;
		if (e->kind == RUN_CONTENT && text && n + e->len < cap) {
			memcpy(text + n, e->text, e->len);
			n += e->len;
		}
	}
	if (text)
		text[n] = 0;
	res = *run_result(r);
	run_free(r);
	return res;
}

static void pressure(void **state)
{
	struct hearth_err err = { 0 };
	struct hearth_budget budget;
	struct engine_stats st;
	struct hearth_pool *pool;
	struct box b;
	struct run_opts o;
	int32_t t[300];

	box_open(&b, 2, 8, NULL);
	tokens(t, 300, 1);
	o = opts(&b, t, 300, 4);
	finish(start(&o), NULL, 0);
	tokens(t, 300, 2);
	finish(start(&o), NULL, 0);
	/* The sessions go on to other things: their pages are the cache's alone. */
	for (int i = 0; i < 2; i++) {
		tokens(t, 40, 3 + (uint64_t)i);
		o.n_tokens = 40;
		finish(start(&o), NULL, 0);
	}
	engine_stats(b.s->engine, &st);
	assert_true(st.kv_pages_cached >= 16);
	/* The administrator takes half of what it has: it is asked to give back. */
	pool = hearth_pool(b.s->hearth, HEARTH_KIND_KV);
	hearth_budget_defaults(&budget);
	budget.max = budget.high = engine_the_plan(b.s->engine)->bytes[ENGINE_KV] / 2;
	assert_int_equal(hearth_budget_set(b.s->llm, pool, &budget, &err), 0);
	for (int i = 0; i < 500 && st.kv_pages_cached; i++) {
		nap(20);
		engine_stats(b.s->engine, &st);
	}
	assert_int_equal(st.kv_pages_cached, 0);
	assert_true(b.s->sheds > 0 && b.s->shed_bytes > 0);
	/* It goes on serving. */
	tokens(t, 300, 1);
	o.n_tokens = 300;
	assert_int_equal(finish(start(&o), NULL, 0).finish, GEN_LENGTH);
	box_close(&b);
}

struct asker {
	struct run_opts o;
	pthread_t thread;
	int rc;
	atomic_bool gone;
	_Atomic uint64_t began;
};

static atomic_uint order;

static bool is_gone(void *arg)
{
	return atomic_load(&((struct asker *)arg)->gone);
}

static void *asks(void *arg)
{
	struct asker *a = arg;
	struct hearth_err err = { 0 };
	struct run *r;

	a->rc = run_start(&a->o, &r, &err);
	if (a->rc)
		return NULL;
	a->began = ++order;
	finish(r, NULL, 0);
	return NULL;
}

static void wait_for(struct box *b, uint32_t n)
{
	uint32_t w = 0;

	for (int i = 0; i < 3000 && w != n; i++) {
		w = 0;
		pthread_mutex_lock(&b->s->lock);
		for (int p = 0; p <= GEN_VOICE; p++)
			w += b->s->waiting[p];
		pthread_mutex_unlock(&b->s->lock);
		if (w != n)
			nap(5);
	}
	assert_int_equal(w, n);
}

static void queue(void **state)
{
	static const enum gen_prio prio[] = { GEN_BACKGROUND, GEN_NORMAL, GEN_VOICE };
	struct hearth_err err = { 0 };
	static struct asker a[4];
	struct run *busy, *none;
	struct run_opts o;
	struct box b;
	int32_t t[50];

	box_open(&b, 1, 3, NULL);
	tokens(t, 50, 1);
	o = opts(&b, t, 50, HOLDS);
	busy = start(&o);
	/* They come in the order of least haste, and go in that of most. */
	for (int i = 0; i < 3; i++) {
		a[i] = (struct asker){ .o = o };
		a[i].o.prio = prio[i];
		a[i].o.max_tokens = 2;
		assert_int_equal(pthread_create(&a[i].thread, NULL, asks, &a[i]), 0);
		wait_for(&b, (uint32_t)i + 1);
	}
	assert_int_equal(run_start(&o, &none, &err), -EAGAIN);
	assert_non_null(strstr(err.text, "3 requests are waiting"));
	run_cancel(busy);
	assert_int_equal(finish(busy, NULL, 0).finish, GEN_CANCELLED);
	for (int i = 0; i < 3; i++) {
		pthread_join(a[i].thread, NULL);
		assert_int_equal(a[i].rc, 0);
	}
	assert_true(a[2].began < a[1].began && a[1].began < a[0].began);
	/* Nobody waits longer than was asked for, nor once its client left, nor through a stop. */
	busy = start(&o);
	o.wait_ms = 0;
	assert_int_equal(run_start(&o, &none, &err), -ETIMEDOUT);
	o.wait_ms = 60000;
	a[3] = (struct asker){ .o = o };
	a[3].o.gone = is_gone;
	a[3].o.gone_arg = &a[3];
	assert_int_equal(pthread_create(&a[3].thread, NULL, asks, &a[3]), 0);
	wait_for(&b, 1);
	a[3].gone = true;
	pthread_join(a[3].thread, NULL);
	assert_int_equal(a[3].rc, -ECANCELED);
	a[3].gone = false;
	assert_int_equal(pthread_create(&a[3].thread, NULL, asks, &a[3]), 0);
	wait_for(&b, 1);
	service_stop(b.s);
	pthread_join(a[3].thread, NULL);
	assert_int_equal(a[3].rc, -ESHUTDOWN);
	run_free(busy);
	box_close(&b);
}

/* Who has just been served, and asks again at once, comes after those who wait. */
static void turns(void **state)
{
	struct asker a = { 0 };
	struct run_opts o, last;
	struct run *r;
	struct box b;
	int32_t t[50];

	box_open(&b, 1, 8, NULL);
	tokens(t, 50, 1);
	o = opts(&b, t, 50, 2);
	for (int i = 0; i < 20; i++) {
		last = o;
		last.max_tokens = HOLDS;
		r = start(&last);
		a = (struct asker){ .o = o };
		assert_int_equal(pthread_create(&a.thread, NULL, asks, &a), 0);
		wait_for(&b, 1);
		run_cancel(r);
		finish(r, NULL, 0);
		r = start(&last);
		/* Holds the only session for good: who has not had it by now was passed. */
		for (int k = 0; k < 400 && !a.began; k++)
			nap(5);
		if (!a.began)
			fail_msg("round %d: a request that waited was passed", i);
		run_cancel(r);
		finish(r, NULL, 0);
		pthread_join(a.thread, NULL);
		assert_int_equal(a.rc, 0);
	}
	box_close(&b);
}

/* A cancel ends at the next token, and what was computed stays right. */
static void leaving(void **state)
{
	static char want[4096], got[4096];
	struct gen_result res;
	const struct run_event *e;
	struct run_opts o;
	struct engine_stats before, after;
	struct box b;
	struct run *r;
	int32_t t[120];

	box_open(&b, 1, 3, NULL);
	tokens(t, 120, 7);
	o = opts(&b, t, 120, 60);
	finish(start(&o), want, sizeof(want));
	engine_shed(b.s->engine, UINT64_MAX, true);
	for (int at = 1; at < 40; at += 3) {
		size_t seen = 0;
		bool ended = false;

		o.max_tokens = 3000;
		r = start(&o);
		while (seen < (size_t)at && !ended) {
			e = run_next(r, 1000);
			seen += e ? e->len : 0;
			ended = e && e->kind == RUN_DONE;
		}
		if (ended) {
			/* We were not let in before it was over: nothing to leave. */
			run_free(r);
			continue;
		}
		run_cancel(r);
		engine_stats(b.s->engine, &before);
		res = finish(r, NULL, 0);
		engine_stats(b.s->engine, &after);
		/* Over before the wish came, or by it. */
		assert_true(res.finish == GEN_CANCELLED || res.finish == GEN_LENGTH);
		/* The step that was under way, and no other. */
		assert_true(after.steps - before.steps <= 1);
		assert_int_equal(after.active, 0);
		o.max_tokens = 60;
		r = start(&o);
		res = finish(r, got, sizeof(got));
		assert_int_equal(res.n_cached, 119);
		assert_string_equal(want, got);
	}
	box_close(&b);
}

/* Nobody waits for the end of the program to learn that its cache goes nowhere. */
static void no_folder(void **state)
{
	char path[300];
	struct box b;

	snprintf(path, sizeof(path), "%s/none/cache", dir);
	box_open(&b, 2, 3, path);
	assert_non_null(strstr(b.s->cache_note, "prefix cache: not kept over a restart: "));
	assert_non_null(strstr(b.s->cache_note, "/none: No such file or directory"));
	box_close(&b);
	assert_int_equal(access(path, F_OK), -1);
}

static void restart(void **state)
{
	static char want[4096], got[4096];
	struct run_opts o;
	struct box b;
	int32_t t[300];
	FILE *f;

	tokens(t, 300, 7);
	box_open(&b, 2, 3, file);
	assert_string_equal(b.s->cache_note, "");
	o = opts(&b, t, 300, 40);
	assert_int_equal(finish(start(&o), want, sizeof(want)).n_cached, 0);
	box_close(&b);
	box_open(&b, 2, 3, file);
	assert_non_null(strstr(b.s->cache_note, "tokens from"));
	o = opts(&b, t, 300, 40);
	assert_int_equal(finish(start(&o), got, sizeof(got)).n_cached, 299);
	assert_string_equal(want, got);
	box_close(&b);
	f = fopen(file, "w");
	fputs("not a cache", f);
	fclose(f);
	box_open(&b, 2, 3, file);
	assert_non_null(strstr(b.s->cache_note, "begins empty"));
	o = opts(&b, t, 300, 40);
	assert_int_equal(finish(start(&o), got, sizeof(got)).n_cached, 0);
	assert_string_equal(want, got);
	box_close(&b);
}

/* With an argument it only makes the model there, for scripts that need random weights. */
int main(int argc, char **argv)
{
	struct synth_opts o;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pressure),
		cmocka_unit_test(queue),
		cmocka_unit_test(turns),
		cmocka_unit_test(leaving),
		cmocka_unit_test(restart),
		cmocka_unit_test(no_folder),
	};
	int r;

	synth_defaults(&o);
	if (argc == 2)
		return synth_model(argv[1], &o) ? 1 : 0;
	o.ctx = CTX;
	if (!mkdtemp(dir))
		return 1;
	snprintf(model, sizeof(model), "%s/a.gguf", dir);
	snprintf(file, sizeof(file), "%s/cache", dir);
	if (synth_model(model, &o))
		return 1;
	r = UNIT_RUN(tests);
	unlink(model);
	unlink(file);
	rmdir(dir);
	return r;
}
