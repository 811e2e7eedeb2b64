// SPDX-License-Identifier: MIT
/* Several sessions at once: batches, priorities, too little memory, clients that come and go. */
#include "engine_util.h"

#define MANY 6

static void batched_like_alone(void **state)
{
	struct engine_opts o = opts();
	struct hearth_err err = { 0 };
	static struct heard alone[MANY], both[MANY];
	struct session *s[MANY];
	struct gen *g[MANY];
	struct gen_request r;
	struct engine_stats st;
	struct engine *e;
	int32_t t[MANY][200];
	atomic_bool gate = false;

	o.sessions = MANY;
	o.prefix_cache = false;
	e = open_with(&o);
	for (int i = 0; i < MANY; i++) {
		s[i] = session(e);
		tokens(t[i], 200, 20 + (uint64_t)i);
		request(&r, &alone[i], t[i], 30 + 30 * (uint32_t)i, 40);
		run(s[i], &r, &alone[i]);
		session_rewind(s[i], 0);
	}
	engine_stats(e, &st);
	for (int i = 0; i < MANY; i++) {
		request(&r, &both[i], t[i], 30 + 30 * (uint32_t)i, 40);
		r.prio = i % 2 ? GEN_BACKGROUND : GEN_NORMAL;
		both[i].gate = &gate;       /* nobody runs ahead of the others */
		assert_int_equal(gen_start(s[i], &r, &g[i], &err), 0);
	}
	atomic_store(&gate, true);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(gen_wait(g[i], -1, &both[i].res), 0);
		gen_free(g[i]);
		assert_int_equal(both[i].res.finish, GEN_LENGTH);
	}
	/* Fewer steps than one after the other: they shared them. */
	{
		const uint64_t steps = st.steps;

		engine_stats(e, &st);
		assert_true(st.steps - steps < steps * 2 / 3);
	}
	/* To the bit: no row depends on those beside it. */
	for (int i = 0; i < MANY; i++) {
		assert_memory_equal(alone[i].id, both[i].id, 40 * sizeof(*alone[i].id));
		assert_memory_equal(alone[i].logprob, both[i].logprob, 40 * sizeof(*alone[i].logprob));
	}
	engine_close(e);
}

/* However a prompt is cut, and whatever of it was there, the answer is the same to the bit. */
static void same_however_cut(void **state)
{
	static const uint32_t chunk[] = { 256, 9, 17, 31 };
	static struct heard want, h;
	struct engine_opts o = opts();
	struct gen_request r;
	int32_t t[300];

	tokens(t, 300, 77);
	for (int c = 0; c < 4; c++) {
		struct engine *e;
		struct session *s;

		o.chunk = chunk[c];
		e = open_with(&o);
		s = session(e);
		request(&r, c ? &h : &want, t, 300, 40);
		run(s, &r, c ? &h : &want);
		for (uint32_t n = 0; c && n < 300; n += 41) {
			assert_memory_equal(h.id, want.id, 40 * sizeof(*h.id));
			assert_memory_equal(h.logprob, want.logprob, 40 * sizeof(*h.logprob));
			session_rewind(s, n);
			request(&r, &h, t, 300, 40);
			run(s, &r, &h);
		}
		engine_close(e);
	}
}

static void voice_first(void **state)
{
	struct engine_opts o = opts();
	struct hearth_err err = { 0 };
	static struct heard back, voice;
	struct session *s[2];
	struct gen_request r;
	struct engine *e;
	struct gen *g[2];
	int32_t t[2][400];
	uint32_t at;

	o.sessions = 2;
	e = open_with(&o);
	s[0] = session(e);
	s[1] = session(e);
	tokens(t[0], 400, 30);
	tokens(t[1], 400, 31);
	request(&r, &back, t[0], 20, 400);
	r.prio = GEN_BACKGROUND;
	back.slow_us = 200;
	assert_int_equal(gen_start(s[0], &r, &g[0], &err), 0);
	while (atomic_load(&back.seen) < 5)
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	request(&r, &voice, t[1], 200, 50);
	r.prio = GEN_VOICE;
	assert_int_equal(gen_start(s[1], &r, &g[1], &err), 0);
	while (!atomic_load(&voice.seen))
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	at = atomic_load(&back.seen);
	assert_int_equal(gen_wait(g[1], -1, &voice.res), 0);
	/* While voice generated, the other stood still (it may have been in one step). */
	assert_true(atomic_load(&back.seen) <= at + 1);
	assert_int_equal(voice.res.finish, GEN_LENGTH);
	assert_int_equal(gen_wait(g[0], -1, &back.res), 0);
	assert_int_equal(back.res.finish, GEN_LENGTH);
	gen_free(g[0]);
	gen_free(g[1]);
	engine_close(e);
}

/* Less KV than the sessions' contexts together: idle ones give way, then somebody ends. */
static void memory(void **state)
{
	struct engine_opts o = opts();
	struct hearth_err err = { 0 };
	static struct heard h[3];
	struct session *s[3];
	struct gen_request r;
	struct gen *g[3];
	struct engine *e;
	int32_t t[3][400];
	atomic_bool gate = false;
	int ended = 0;

	o.sessions = 3;
	o.ctx = 320;
	o.kv_tokens = 480;
	e = open_with(&o);
	for (int i = 0; i < 3; i++) {
		s[i] = session(e);
		tokens(t[i], 400, 40 + (uint64_t)i);
		request(&r, &h[i], t[i], 200, 20);
		run(s[i], &r, &h[i]);           /* each pushes out the one before */
		assert_int_equal(h[i].res.finish, GEN_LENGTH);
	}
	for (int i = 0; i < 3; i++) {
		request(&r, &h[i], t[i], 100, 200);
		h[i].gate = &gate;
		assert_int_equal(gen_start(s[i], &r, &g[i], &err), 0);
	}
	atomic_store(&gate, true);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(gen_wait(g[i], -1, &h[i].res), 0);
		gen_free(g[i]);
		assert_true(h[i].res.finish == GEN_LENGTH || h[i].res.finish == GEN_MEMORY);
		if (h[i].res.finish == GEN_MEMORY) {
			ended++;
			assert_int_equal(h[i].res.err.code, -ENOMEM);
			assert_non_null(strstr(h[i].res.err.text, "page of KV"));
		}
	}
	assert_true(ended >= 1 && ended <= 2);
	/* And there is room again. */
	request(&r, &h[0], t[0], 300, 10);
	run(s[0], &r, &h[0]);
	assert_int_equal(h[0].res.finish, GEN_LENGTH);
	engine_close(e);
}

struct stress {
	struct engine *e;
	uint64_t seed;
	atomic_int *bad;
};

/* One client: sessions come and go, requests of all kinds, some cancelled. */
static void *client(void *arg)
{
	struct stress *st = arg;
	uint64_t seed = st->seed;
	struct hearth_err err;
	struct heard *h = malloc(sizeof(*h));
	int32_t t[300];

	for (int i = 0; i < 25; i++) {
		struct session *s;
		struct gen_request r;
		struct gen *g;

		if (session_open(st->e, &s, &err))
			continue;
		for (int k = 0; k < 2; k++) {
			tokens(t, 300, synth_rand(&seed) % 3);
			request(&r, h, t, 1 + (uint32_t)(synth_rand(&seed) % 200), (uint32_t)(synth_rand(&seed) % 20));
			r.prio = synth_rand(&seed) % 3;
			r.sample.temp = (float)(synth_rand(&seed) % 2);
			if (gen_start(s, &r, &g, &err)) {
				atomic_fetch_add(st->bad, 1);
				continue;
			}
			if (synth_rand(&seed) % 3 == 0) {
				nanosleep(&(struct timespec){ .tv_nsec = (long)(synth_rand(&seed) % 2000000) }, NULL);
				gen_cancel(g);
			}
			gen_wait(g, -1, &h->res);
			if (h->res.finish == GEN_ERROR || h->res.finish == GEN_RUNNING)
				atomic_fetch_add(st->bad, 1);
			gen_free(g);
		}
		session_close(s);
	}
	free(h);
	return NULL;
}

static void many_clients(void **state)
{
	struct engine_opts o = opts();
	struct stress st[8];
	struct engine_stats es;
	pthread_t th[8];
	atomic_int bad = 0;
	struct engine *e;
	uint64_t total = 0;

	o.sessions = 5;
	o.kv_tokens = 1200;
	e = open_with(&o);
	for (int i = 0; i < 8; i++) {
		st[i] = (struct stress){ e, (uint64_t)i + 1, &bad };
		assert_int_equal(pthread_create(&th[i], NULL, client, &st[i]), 0);
	}
	for (int i = 0; i < 8; i++)
		pthread_join(th[i], NULL);
	assert_int_equal(atomic_load(&bad), 0);
	engine_shed(e, UINT64_MAX, true);
	engine_stats(e, &es);
	assert_int_equal(es.sessions + es.active + es.queued, 0);
	assert_int_equal(es.kv_pages_free, es.kv_pages);       /* no page lost */
	for (int i = 0; i <= GEN_ERROR; i++)
		total += es.finished[i];
	assert_true(total > 50);
	engine_close(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batched_like_alone),
		cmocka_unit_test(same_however_cut),
		cmocka_unit_test(voice_first),
		cmocka_unit_test(memory),
		cmocka_unit_test(many_clients),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name(__FILE__, tests, setup, teardown);
}
