// SPDX-License-Identifier: MIT
/* One generation after the other: caches, rewinds, every way to end, cancelling. */
#include "engine_util.h"

static void same_with_cache(void **state)
{
	struct engine_opts o = opts();
	struct engine *e = open_with(&o);
	struct session *s = session(e);
	struct gen_request r;
	struct heard cold, warm, again;
	int32_t t[200];

	tokens(t, 200, 2);
	request(&r, &cold, t, 120, 40);
	run(s, &r, &cold);
	assert_int_equal(cold.res.n_cached, 0);
	assert_int_equal(session_len(s), 159);          /* the last token was never computed */
	/* The same again: all but the last token is there. */
	request(&r, &warm, t, 120, 40);
	run(s, &r, &warm);
	assert_int_equal(warm.res.n_cached, 119);
	assert_memory_equal(cold.id, warm.id, sizeof(cold.id));
	/* The next turn: what was generated is there, too. */
	memcpy(t + 120, cold.id, 40 * sizeof(*t));
	request(&r, &warm, t, 170, 10);
	run(s, &r, &warm);
	assert_int_equal(warm.res.n_cached, 159);
	session_close(s);
	/* Nothing cached at all gives the same. */
	o.prefix_cache = false;
	engine_close(e);
	e = open_with(&o);
	s = session(e);
	request(&r, &again, t, 170, 10);
	run(s, &r, &again);
	assert_int_equal(again.res.n_cached, 0);
	assert_memory_equal(again.id, warm.id, 10 * sizeof(*t));
	for (int i = 0; i < 10; i++)
		assert_true(fabsf(again.logprob[i] - warm.logprob[i]) < 0.05f);
	engine_close(e);
}

static void rewinds(void **state)
{
	struct engine_opts o = opts();
	struct engine *e = open_with(&o);
	struct session *s = session(e);
	struct gen_request r;
	struct heard a, b;
	int32_t t[100], u[100];

	tokens(t, 100, 3);
	memcpy(u, t, sizeof(u));
	u[50] ^= 1;
	request(&r, &a, t, 100, 20);
	run(s, &r, &a);
	request(&r, &b, u, 100, 20);
	run(s, &r, &b);
	assert_int_equal(b.res.n_cached, 50);
	request(&r, &b, t, 100, 20);
	run(s, &r, &b);
	assert_true(b.res.n_cached >= 50);
	assert_memory_equal(a.id, b.id, sizeof(a.id));
	assert_int_equal(session_rewind(s, 10), 0);
	assert_int_equal(session_len(s), 10);
	engine_close(e);
}

static void prefix_across_sessions(void **state)
{
	struct engine_opts o = opts();
	struct gen_request r;
	struct heard a, b;
	struct engine_stats st;
	struct session *s1, *s2;
	struct engine *e;
	int32_t t[150];

	o.sessions = 3;
	e = open_with(&o);
	s1 = session(e);
	s2 = session(e);
	tokens(t, 150, 4);
	request(&r, &a, t, 150, 20);
	run(s1, &r, &a);
	t[149] ^= 1;
	/* Another session with the same system prompt: whole pages, then a part of one. */
	request(&r, &b, t, 150, 20);
	run(s2, &r, &b);
	assert_int_equal(b.res.n_cached, 149);
	t[149] ^= 1;
	request(&r, &b, t, 150, 20);
	run(s2, &r, &b);
	assert_memory_equal(a.id, b.id, sizeof(a.id));
	/* It outlives both, until it is asked to go. */
	session_close(s1);
	session_close(s2);
	engine_stats(e, &st);
	assert_int_equal(st.sessions, 0);
	assert_true(st.kv_pages_cached >= 5);
	assert_int_equal(st.kv_pages_free + st.kv_pages_cached, st.kv_pages);
	s1 = session(e);
	request(&r, &b, t, 150, 20);
	run(s1, &r, &b);
	assert_int_equal(b.res.n_cached, 149);
	assert_memory_equal(a.id, b.id, sizeof(a.id));
	session_close(s1);
	assert_true(engine_shed(e, UINT64_MAX, true) > 0);
	engine_stats(e, &st);
	assert_int_equal(st.kv_pages_free, st.kv_pages);
	engine_close(e);
}

static void prefill_only(void **state)
{
	struct engine_opts o = opts();
	struct engine *e = open_with(&o);
	struct session *s = session(e);
	struct gen_request r;
	struct heard h;
	int32_t t[90];

	tokens(t, 90, 5);
	request(&r, &h, t, 90, 0);
	run(s, &r, &h);
	assert_int_equal(h.res.finish, GEN_LENGTH);
	assert_int_equal(h.res.n_out, 0);
	assert_int_equal(h.n, 0);
	assert_int_equal(session_len(s), 90);
	assert_true(h.res.t_prefilled >= h.res.t_prefill && h.res.t_prefill >= h.res.t_submit);
	assert_int_equal(h.res.t_first, 0);
	engine_close(e);
}

static void prompt_logprobs(void **state)
{
	struct engine_opts o = opts();
	struct engine *e = open_with(&o);
	struct session *s = session(e);
	struct gen_request r;
	struct heard g, p;
	int32_t t[100];

	tokens(t, 60, 6);
	request(&r, &g, t, 60, 30);
	run(s, &r, &g);
	memcpy(t + 60, g.id, 30 * sizeof(*t));
	request(&r, &p, t, 90, 1);
	r.on_prompt = on_prompt;
	run(s, &r, &p);
	assert_int_equal(p.res.n_cached, 0);
	assert_int_equal(p.n_prompt, 89);
	/* What was generated has, as a prompt, the probability it was drawn with. */
	for (int i = 0; i < 30; i++)
		assert_true(fabsf(p.prompt[59 + i] - g.logprob[i]) < 0.05f);
	engine_close(e);
}

static void ends(void **state)
{
	struct engine_opts o = opts();
	struct engine *e;
	struct session *s;
	struct gen_request r;
	struct heard h, full;
	int32_t t[600];
	const char *stop[1];
	char needle[16];
	size_t k;

	o.ctx = 256;
	e = open_with(&o);
	s = session(e);
	tokens(t, 600, 7);
	request(&r, &full, t, 50, 60);
	run(s, &r, &full);
	assert_int_equal(full.res.finish, GEN_LENGTH);
	assert_int_equal(full.res.n_out, 60);
	assert_int_equal(full.res.stop_token, -1);
	/* A stop token: counted, its text not shown. */
	request(&r, &h, t, 50, 60);
	r.stop_tokens = &full.id[20];
	r.n_stop_tokens = 1;
	run(s, &r, &h);
	assert_int_equal(h.res.finish, GEN_STOP);
	assert_int_equal(h.res.stop_token, full.id[20]);
	assert_true(h.res.n_out <= 21);
	/* A stop string out of the middle of the text. */
	for (k = full.len / 2; k + 4 < full.len && ((full.text[k] & 0xc0) == 0x80); k++)
		;
	snprintf(needle, sizeof(needle), "%.6s", full.text + k);
	stop[0] = needle;
	request(&r, &h, t, 50, 60);
	r.stop = stop;
	r.n_stop = 1;
	run(s, &r, &h);
	assert_int_equal(h.res.finish, GEN_STOP);
	assert_int_equal(h.res.stop_string, 0);
	assert_null(strstr(h.text, needle));
	assert_memory_equal(h.text, full.text, h.len);
	assert_ptr_equal(strstr(full.text, needle), full.text + h.len);
	/* The context is full. */
	request(&r, &h, t, 250, 60);
	run(s, &r, &h);
	assert_int_equal(h.res.finish, GEN_LENGTH);
	assert_int_equal(h.res.n_out, 6);
	/* The callback has heard enough. */
	request(&r, &h, t, 50, 60);
	h.stop_after = 3;
	run(s, &r, &h);
	assert_int_equal(h.res.finish, GEN_CANCELLED);
	assert_int_equal(h.res.n_out, 3);
	engine_close(e);
}

static void masks(void **state)
{
	struct engine_opts o = opts();
	struct engine *e = open_with(&o);
	struct session *s = session(e);
	struct gen_request r;
	struct heard h;
	int32_t t[20], two[3] = { 65, 66, 0 }, none[3] = { 65, 66, 1 }, broken[3] = { -EPROTO, 0, 0 };

	tokens(t, 20, 8);
	request(&r, &h, t, 20, 30);
	r.sample.temp = 2;
	r.sample.seed = 3;
	r.mask = allow;
	r.mask_arg = two;
	run(s, &r, &h);
	assert_int_equal(h.n, 30);
	for (int i = 0; i < 30; i++)
		assert_true(h.id[i] == 65 || h.id[i] == 66);
	request(&r, &h, t, 20, 30);
	r.mask = allow;
	r.mask_arg = none;
	run(s, &r, &h);
	assert_int_equal(h.res.finish, GEN_ERROR);
	assert_int_equal(h.res.err.code, -ENODATA);
	request(&r, &h, t, 20, 30);
	r.mask = allow;
	r.mask_arg = broken;
	run(s, &r, &h);
	assert_int_equal(h.res.finish, GEN_ERROR);
	assert_int_equal(h.res.err.code, -EPROTO);
	/* The session is as good as before. */
	request(&r, &h, t, 20, 5);
	run(s, &r, &h);
	assert_int_equal(h.res.finish, GEN_LENGTH);
	engine_close(e);
}

static void refusals(void **state)
{
	struct engine_opts o = opts();
	struct hearth_err err = { 0 };
	struct session *s, *more;
	struct gen_request r;
	struct heard h;
	struct engine *e;
	struct gen *g, *g2;
	int32_t t[600];
	const char *stop = "";
	atomic_bool gate = false;

	o.ctx = 128;
	e = open_with(&o);
	s = session(e);
	assert_int_equal(session_open(e, &more, &err), -EBUSY);
	tokens(t, 600, 9);
#define REFUSED(set, code, word) do { \
	request(&r, &h, t, 10, 5); \
	set; \
	err.text[0] = 0; \
	assert_int_equal(gen_start(s, &r, &g, &err), code); \
	if (!strstr(err.text, word)) \
		fail_msg("\"%s\" does not say \"%s\"", err.text, word); \
} while (0)
	REFUSED(r.n_tokens = 0, -EINVAL, "at least one token");
	REFUSED(r.tokens = NULL, -EINVAL, "at least one token");
	REFUSED(r.n_tokens = 129, -E2BIG, "129 tokens; the context is 128");
	REFUSED(r.n_tokens = 128, -E2BIG, "no room for an answer");
	REFUSED(t[3] = -1, -EINVAL, "token -1 at place 3");
	REFUSED(t[3] = 1000000, -EINVAL, "token 1000000 at place 3");
	t[3] = 1;
	REFUSED(r.prio = 9, -EINVAL, "priority");
	REFUSED(r.n_stop_tokens = 33, -EINVAL, "stop tokens");
	REFUSED((r.stop = &stop, r.n_stop = 1), -EINVAL, "stop string");
	REFUSED(r.sample.temp = 5, -EINVAL, "temperature");
	/* One at a time. */
	request(&r, &h, t, 10, 100);
	h.gate = &gate;
	assert_int_equal(gen_start(s, &r, &g, &err), 0);
	assert_int_equal(gen_start(s, &r, &g2, &err), -EBUSY);
	assert_int_equal(session_rewind(s, 0), -EBUSY);
	assert_int_equal(gen_wait(g, 1, NULL), -ETIMEDOUT);
	atomic_store(&gate, true);
	gen_free(g);
	engine_close(e);
}

/* -- cancelling ------------------------------------------------------------------------ */

static void cancel_anywhere(void **state)
{
	struct engine_opts o = opts();
	struct hearth_err err = { 0 };
	struct session *s;
	struct gen_request r;
	struct heard want, h;
	struct engine *e;
	struct gen *g;
	uint64_t seed = 10;
	int32_t t[400];
	uint32_t before = 0, during = 0;

	o.chunk = 64;
	e = open_with(&o);
	s = session(e);
	tokens(t, 400, 10);
	request(&r, &want, t, 400, 30);
	run(s, &r, &want);
	session_rewind(s, 0);
	engine_shed(e, UINT64_MAX, true);
	for (int i = 0; i < 60; i++) {
		const uint32_t us = (uint32_t)(synth_rand(&seed) % 30000);

		request(&r, &h, t, 400, 30);
		assert_int_equal(gen_start(s, &r, &g, &err), 0);
		nanosleep(&(struct timespec){ .tv_nsec = us * 1000l }, NULL);
		gen_cancel(g);
		assert_int_equal(gen_wait(g, -1, &h.res), 0);
		gen_free(g);
		assert_true(h.res.finish == GEN_CANCELLED || h.res.finish == GEN_LENGTH);
		before += h.res.finish == GEN_CANCELLED && !h.res.n_out;
		during += h.res.finish == GEN_CANCELLED && h.res.n_out;
		assert_memory_equal(h.id, want.id, h.n * sizeof(int32_t));
		/* What is in the cache is right: it gives the same as a cold start. */
		request(&r, &h, t, 400, 30);
		run(s, &r, &h);
		assert_int_equal(h.res.finish, GEN_LENGTH);
		assert_memory_equal(h.id, want.id, 30 * sizeof(int32_t));
		if (i % 2) {
			session_rewind(s, 0);
			engine_shed(e, UINT64_MAX, true);
		}
	}
	printf("# cancelled before the first token %u times, after it %u times\n", before, during);
	assert_true(before + during > 0);
	engine_close(e);
}

static void close_while_running(void **state)
{
	struct engine_opts o = opts();
	struct hearth_err err = { 0 };
	struct gen_request r;
	struct engine_stats st;
	static struct heard h;
	struct session *s;
	struct engine *e;
	struct gen *g;
	int32_t t[300];

	tokens(t, 300, 11);
	e = open_with(&o);
	s = session(e);
	request(&r, &h, t, 300, 200);
	assert_int_equal(gen_start(s, &r, &g, &err), 0);
	session_close(s);               /* cancels, waits, frees */
	engine_stats(e, &st);
	assert_int_equal(st.sessions + st.active + st.queued, 0);
	s = session(e);
	request(&r, &h, t, 300, 200);
	assert_int_equal(gen_start(s, &r, &g, &err), 0);
	engine_close(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_with_cache),
		cmocka_unit_test(rewinds),
		cmocka_unit_test(prefix_across_sessions),
		cmocka_unit_test(prefill_only),
		cmocka_unit_test(prompt_logprobs),
		cmocka_unit_test(ends),
		cmocka_unit_test(masks),
		cmocka_unit_test(refusals),
		cmocka_unit_test(cancel_anywhere),
		cmocka_unit_test(close_while_running),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name(__FILE__, tests, setup, teardown);
}
