// SPDX-License-Identifier: MIT
/*
 * The engine on a small synthetic model: the plan, sessions, every way a
 * generation can end, and several at once.
 */
#include "unit.h"
#include "synth.h"
#include "dev/hearth.h"
#include "engine/engine.h"
#include "gguf/gguf.h"
#include "gguf/quant.h"
#include "token/tokenizer.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static char dir[] = "/tmp/hearth-engine-XXXXXX";
static char path[64];

static struct engine_opts opts(void)
{
	struct engine_opts o;

	engine_defaults(&o);
	o.model = path;
	o.threads = 2;
	return o;
}

static struct engine *open_with(const struct engine_opts *o)
{
	struct hearth_err err = { 0 };
	struct engine *e = NULL;

	if (engine_open(o, &e, &err))
		fail_msg("%s", err.text);
	return e;
}

static struct session *session(struct engine *e)
{
	struct hearth_err err = { 0 };
	struct session *s = NULL;

	if (session_open(e, &s, &err))
		fail_msg("%s", err.text);
	return s;
}

/* What a generation gave. */
struct heard {
	int32_t id[512];
	float logprob[512];
	uint32_t n;
	char text[8192];
	size_t len;
	float prompt[512];
	uint32_t n_prompt;
	uint32_t stop_after;         /* on_token says stop after that many; 0: never */
	atomic_uint seen;            /* tokens so far, for other threads */
	struct gen_result res;
	uint32_t slow_us;            /* time each callback takes */
	atomic_bool *gate;           /* the first callback waits for it */
};

static bool on_token(void *arg, const struct gen_token *t)
{
	struct heard *h = arg;

	assert_int_equal(t->index, h->n);
	h->id[h->n] = t->id;
	h->logprob[h->n++] = t->pick->logprob;
	memcpy(h->text + h->len, t->text, t->len);
	h->len += t->len;
	h->text[h->len] = 0;
	atomic_fetch_add(&h->seen, 1);
	while (h->gate && !atomic_load(h->gate))
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	if (h->slow_us)
		nanosleep(&(struct timespec){ .tv_nsec = h->slow_us * 1000l }, NULL);
	return h->stop_after && h->n >= h->stop_after;
}

/* The best two instead of the tokens. */
static bool on_top(void *arg, const struct gen_token *t)
{
	struct heard *h = arg;

	for (uint32_t i = 0; i < 2; i++) {
		h->id[i] = t->pick->top[i].token;
		h->logprob[i] = t->pick->top[i].logprob;
	}
	return false;
}

static void on_prompt(void *arg, uint32_t i, int32_t token, float logprob)
{
	struct heard *h = arg;

	assert_int_equal(i, h->n_prompt + 1);
	h->prompt[h->n_prompt++] = logprob;
}

static void request(struct gen_request *r, struct heard *h, const int32_t *tok, uint32_t n, uint32_t max)
{
	gen_defaults(r);
	memset(h, 0, sizeof(*h));
	r->tokens = tok;
	r->n_tokens = n;
	r->max_tokens = max;
	r->ignore_eos = true;
	r->sample.logprobs = true;
	r->on_token = on_token;
	r->arg = h;
}

static void run(struct session *s, const struct gen_request *r, struct heard *h)
{
	struct hearth_err err = { 0 };
	struct gen *g;

	if (gen_start(s, r, &g, &err))
		fail_msg("%s", err.text);
	assert_int_equal(gen_wait(g, -1, &h->res), 0);
	gen_free(g);
}

static void tokens(int32_t *t, uint32_t n, uint64_t seed)
{
	for (uint32_t i = 0; i < n; i++)
		t[i] = (int32_t)(synth_rand(&seed) % 256);
}

/* -- the plan ------------------------------------------------------------------ */

struct box {
	struct hearth *h;
	struct hearth_tenant *t;
};

static void box_open(struct box *b, uint64_t kv)
{
	const struct hearth_pool_spec spec[] = {
		{ .kind = HEARTH_KIND_WEIGHTS, .name = "weights", .size = 64u << 20 },
		{ .kind = HEARTH_KIND_KV, .name = "kv", .size = kv },
		{ .kind = HEARTH_KIND_SCRATCH, .name = "scratch", .size = 64u << 20 },
		{ .kind = HEARTH_KIND_ACCOUNT, .name = "account", .size = 64u << 20 },
	};
	struct hearth_options o;
	struct hearth_err err = { 0 };

	hearth_options_defaults(&o);
	o.backend = HEARTH_BACKEND_EMBEDDED;
	o.pools = spec;
	o.n_pools = 4;
	if (hearth_open(&o, &b->h, &err) || hearth_tenant_open(b->h, "llm", HEARTH_CLASS_LLM, 5, &b->t, &err))
		fail_msg("%s", err.text);
}

static struct hearth_usage usage(struct box *b, enum hearth_kind k)
{
	struct hearth_usage u;

	assert_int_equal(hearth_usage_get(b->t, hearth_pool(b->h, k), &u), 0);
	return u;
}

static void plan_is_what_is_taken(void **state)
{
	static const enum hearth_kind kinds[] = {
		HEARTH_KIND_WEIGHTS, HEARTH_KIND_KV, HEARTH_KIND_SCRATCH, HEARTH_KIND_ACCOUNT,
	};
	struct engine_opts o = opts();
	struct engine_plan p;
	struct hearth_err err = { 0 };
	struct gen_request r;
	struct heard h;
	struct session *s;
	struct engine *e;
	struct box b;
	int32_t t[300];

	box_open(&b, 64u << 20);
	o.tenant = b.t;
	o.ctx = 400;
	o.sessions = 2;
	assert_int_equal(engine_plan(&o, &p, &err), 0);
	assert_true(p.fits);
	assert_int_equal(p.ctx, 400);
	assert_int_equal(p.ctx_fit, 400);
	assert_string_equal(p.arch, "qwen3");
	assert_string_equal(p.model, "synthetic");
	assert_int_equal(usage(&b, HEARTH_KIND_WEIGHTS).peak, 0);     /* a plan takes nothing */
	e = open_with(&o);
	s = session(e);
	tokens(t, 300, 1);
	request(&r, &h, t, 300, 50);
	run(s, &r, &h);
	assert_int_equal(h.res.finish, GEN_LENGTH);
	for (int k = 0; k < 4; k++) {
		const struct hearth_usage u = usage(&b, kinds[k]);

		if (u.peak != p.bytes[k])
			fail_msg("pool %s: peak %llu, planned %llu", hearth_kind_name(kinds[k]),
				 (unsigned long long)u.peak, (unsigned long long)p.bytes[k]);
		assert_int_equal(u.current, u.peak);
	}
	engine_close(e);
	/* The weights stay, sealed and packed, for the next engine; all else is given back. */
	assert_int_equal(usage(&b, HEARTH_KIND_WEIGHTS).current, p.bytes[ENGINE_WEIGHTS]);
	assert_int_equal(usage(&b, HEARTH_KIND_KV).current, 0);
	assert_int_equal(usage(&b, HEARTH_KIND_SCRATCH).current, 0);
	assert_int_equal(usage(&b, HEARTH_KIND_ACCOUNT).current, 0);
	e = open_with(&o);
	assert_int_equal(usage(&b, HEARTH_KIND_WEIGHTS).peak, p.bytes[ENGINE_WEIGHTS]);
	s = session(e);
	{
		struct heard h2;

		request(&r, &h2, t, 300, 50);
		run(s, &r, &h2);
		assert_memory_equal(h.id, h2.id, sizeof(h.id));
	}
	engine_close(e);
	hearth_close(b.h);
}

static void largest_context(void **state)
{
	struct engine_opts o = opts();
	struct hearth_budget bu;
	struct engine_plan p;
	struct hearth_err err = { 0 };
	struct engine *e = NULL;
	struct box b;
	uint32_t fit;

	box_open(&b, 64u << 20);
	o.tenant = b.t;
	o.ctx = 512;
	assert_int_equal(engine_plan(&o, &p, &err), 0);
	hearth_budget_defaults(&bu);
	bu.max = p.bytes[ENGINE_KV] / 3;
	assert_int_equal(hearth_budget_set(b.t, hearth_pool(b.h, HEARTH_KIND_KV), &bu, &err), 0);
	assert_int_equal(engine_plan(&o, &p, &err), 0);
	assert_false(p.fits);
	assert_int_equal(p.short_of, ENGINE_KV);
	fit = p.ctx_fit;
	assert_true(fit > 0 && fit < 512);
	/* Refused, with the number; nothing stays taken. */
	assert_int_equal(engine_open(&o, &e, &err), -ENOMEM);
	assert_null(e);
	{
		char want[64];

		snprintf(want, sizeof(want), "a context of %u tokens would fit", fit);
		if (!strstr(err.text, want))
			fail_msg("\"%s\" does not say \"%s\"", err.text, want);
	}
	assert_int_equal(usage(&b, HEARTH_KIND_WEIGHTS).peak, 0);
	/* One more does not fit; that many do. */
	o.ctx = fit + 1;
	assert_int_equal(engine_plan(&o, &p, &err), 0);
	assert_false(p.fits);
	o.ctx = fit;
	e = open_with(&o);
	engine_close(e);
	/* Not even one token. */
	bu.max = 100;
	assert_int_equal(hearth_budget_set(b.t, hearth_pool(b.h, HEARTH_KIND_KV), &bu, &err), 0);
	assert_int_equal(engine_open(&o, &e, &err), -ENOMEM);
	assert_non_null(strstr(err.text, "no context at all"));
	hearth_close(b.h);
}

static void bad_options(void **state)
{
	struct hearth_err err = { 0 };
	struct engine *e = NULL;
	struct engine_plan p;
	struct engine_opts o;

#define BAD(set, code, word) do { \
	o = opts(); \
	set; \
	err.text[0] = 0; \
	assert_int_equal(engine_plan(&o, &p, &err), code); \
	assert_int_equal(engine_open(&o, &e, &err), code); \
	if (!strstr(err.text, word)) \
		fail_msg("\"%s\" does not say \"%s\"", err.text, word); \
} while (0)
	BAD(o.model = NULL, -EINVAL, "no model");
	BAD(o.model = "/nowhere.gguf", -ENOENT, "/nowhere.gguf");
	BAD(o.ctx = 513, -EINVAL, "trained for 512");
	BAD(o.sessions = 257, -EINVAL, "sessions");
	BAD(o.threads = 65, -EINVAL, "threads");
	BAD(o.kv = 7, -EINVAL, "KV");
	BAD(o.kv_tokens = 10, -EINVAL, "cannot hold");
	BAD(o.backend = "abacus", -ENODEV, "abacus");
	engine_close(NULL);
	session_close(NULL);
	gen_free(NULL);
}

/* -- generations ------------------------------------------------------------------- */

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

static int allow(void *arg, uint32_t *mask, uint32_t vocab)
{
	const int32_t *what = arg;

	if (what[0] < 0)
		return what[0];
	for (uint32_t i = 0; i < (vocab + 31) / 32; i++)
		mask[i] &= 0;
	for (int i = 0; i < 2; i++)
		mask[what[i] / 32] |= 1u << (what[i] % 32);
	if (what[2])
		mask[0] = mask[what[0] / 32] = mask[what[1] / 32] = 0;
	return 0;
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

/* -- several at once -------------------------------------------------------------------- */

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

/* -- embeddings ------------------------------------------------------------------------ */

struct rows {
	uint32_t n, first, d;
	float row[400][128];
};

static void on_hidden(void *arg, uint32_t i, const float *row, uint32_t d)
{
	struct rows *h = arg;

	if (!h->n)
		h->first = i;
	assert_int_equal(i, h->first + h->n);
	assert_int_equal(d, 128);
	h->d = d;
	memcpy(h->row[h->n++], row, d * sizeof(*row));
}

/* One row of a matrix in the file, as floats. */
static void file_row(const char *name, uint32_t r, float *to)
{
	struct hearth_err err = { 0 };
	const struct gguf_tensor *t;
	const struct quant_type *q;
	struct gguf *g;
	uint64_t bytes;
	uint8_t buf[4096];
	FILE *f = fopen(path, "r");

	assert_int_equal(gguf_open(path, &g, &err), 0);
	t = gguf_tensor(g, name);
	q = quant_type(t->type);
	assert_int_equal(quant_row_bytes(t->type, t->ne[0], &bytes), 0);
	assert_int_equal(fseek(f, (long)(t->offset + r * bytes), SEEK_SET), 0);
	assert_int_equal(fread(buf, 1, bytes, f), bytes);
	q->to_f32(buf, to, t->ne[0]);
	fclose(f);
	gguf_close(g);
}

/*
 * The rows are the last norm's output: what the head makes of them is the
 * model's own distribution. And they do not depend on who is beside.
 */
static void embeddings(void **state)
{
	static struct rows one, all, beside;
	static struct heard h, other;
	struct engine_opts o = opts();
	struct hearth_err err = { 0 };
	struct gen_request r, q;
	struct gen_result res;
	struct session *s, *s2;
	struct gen *g, *g2;
	struct engine *e;
	int32_t t[300];
	float head[128];
	double logit[2];

	o.sessions = 2;
	e = open_with(&o);
	s = session(e);
	s2 = session(e);
	assert_true(engine_can_embed(e));
	tokens(t, 300, 12);
	gen_defaults(&r);
	r.tokens = t;
	r.n_tokens = 300;
	r.max_tokens = 0;
	r.on_hidden = on_hidden;
	r.arg = &one;
	assert_int_equal(gen_start(s, &r, &g, &err), 0);
	gen_wait(g, -1, &res);
	gen_free(g);
	assert_int_equal(res.finish, GEN_LENGTH);
	assert_int_equal(one.n, 1);
	assert_int_equal(one.first, 299);
	r.hidden_all = true;
	r.arg = &all;
	assert_int_equal(gen_start(s, &r, &g, &err), 0);
	gen_wait(g, -1, &res);
	gen_free(g);
	assert_int_equal(all.n, 300);
	assert_int_equal(all.first, 0);
	assert_memory_equal(all.row[299], one.row[0], sizeof(one.row[0]));
	/* beside one that decodes, and it beside them */
	request(&q, &h, t, 40, 60);
	run(s2, &q, &h);
	session_rewind(s2, 0);
	request(&q, &other, t, 40, 60);
	assert_int_equal(gen_start(s2, &q, &g2, &err), 0);
	r.arg = &beside;
	assert_int_equal(gen_start(s, &r, &g, &err), 0);
	gen_wait(g, -1, &res);
	gen_free(g);
	gen_wait(g2, -1, &other.res);
	gen_free(g2);
	assert_int_equal(beside.n, 300);
	assert_memory_equal(beside.row, all.row, 300 * sizeof(all.row[0]));
	assert_memory_equal(other.id, h.id, 60 * sizeof(*h.id));
	/* the head over the last row, against the log-probabilities of the two best tokens */
	session_rewind(s, 0);
	request(&q, &h, t, 300, 1);
	q.sample.n_logprobs = 2;
	q.on_token = on_top;
	run(s, &q, &h);
	for (int i = 0; i < 2; i++) {
		file_row("token_embd.weight", (uint32_t)h.id[i], head);
		logit[i] = 0;
		for (int k = 0; k < 128; k++)
			logit[i] += (double)head[k] * (double)one.row[0][k];
	}
	/* The head rounds what it reads to int8. */
	assert_true(fabs((logit[0] - logit[1]) / (double)(h.logprob[0] - h.logprob[1]) - 1) < 0.01);
	/* refusals */
	r.max_tokens = 1;
	assert_int_equal(gen_start(s, &r, &g, &err), -EINVAL);
	engine_close(e);
}

/* -- tokens that are foreseen --------------------------------------------------------- */

struct oracle {
	struct heard h;              /* first: the callbacks get this */
	const int32_t *id;           /* what comes, as far as it is known */
	uint32_t n;
	uint32_t wrong_every;        /* every that many are wrong; 0: none */
	uint32_t asked;
};

static uint32_t foresee(void *arg, int32_t *ret, uint32_t cap)
{
	struct oracle *o = arg;
	uint32_t n = 0;

	o->asked++;
	for (; n < cap && o->h.n + n < o->n; n++)
		ret[n] = o->wrong_every && (o->h.n + n) % o->wrong_every == 0 ? 7 : o->id[o->h.n + n];
	return n;
}

/* Whatever is foreseen, right or wrong, the answer is the same; right, it takes fewer steps. */
static void foreseen(void **state)
{
	static const uint32_t wrong[] = { 0, 5, 1 };
	struct engine_opts o = opts();
	struct engine_stats before, after;
	struct hearth_err err = { 0 };
	static struct heard plain;
	static struct oracle f;
	struct gen_request r;
	struct session *s, *other;
	struct engine *e;
	struct gen *g;
	int32_t t[50], ab[3] = { 65, 66, 0 };

	o.sessions = 2;
	e = open_with(&o);
	s = session(e);
	other = session(e);
	tokens(t, 50, 31);
	for (int kind = 0; kind < 3; kind++) {     /* greedy; a hot sampler; beside another that decodes */
		request(&r, &plain, t, 50, 120);
		r.sample.temp = kind ? 2 : 0;
		r.sample.seed = 9;
		r.sample.freq_pen = 0.5f;
		if (kind == 1) {
			r.mask = allow;
			r.mask_arg = ab;
		}
		run(s, &r, &plain);
		for (int w = 0; w < 3; w++) {
			struct heard *beside = calloc(1, sizeof(*beside));
			const struct gen_request was = r;

			session_rewind(s, 0);
			if (kind == 2) {
				request(&r, beside, t, 20, 200);
				assert_int_equal(gen_start(other, &r, &g, &err), 0);
			}
			r = was;
			memset(&f, 0, sizeof(f));
			f.id = plain.id;
			f.n = 120;
			f.wrong_every = wrong[w];
			r.force = foresee;
			r.arg = &f;
			engine_stats(e, &before);
			run(s, &r, &f.h);
			engine_stats(e, &after);
			if (kind == 2)
				gen_free(g);
			free(beside);
			assert_int_equal(f.h.n, 120);
			assert_memory_equal(f.h.id, plain.id, 120 * sizeof(*f.h.id));
			assert_memory_equal(f.h.logprob, plain.logprob, 120 * sizeof(*f.h.logprob));
			assert_string_equal(f.h.text, plain.text);
			assert_true(f.h.res.n_kept <= f.h.res.n_forced);
			assert_int_equal(after.kept_tokens - before.kept_tokens, f.h.res.n_kept);
			assert_int_equal(session_len(s), 50 + 119);
			if (kind < 2 && w == 0) {
				assert_true(after.steps - before.steps < 15);
				assert_int_equal(f.h.res.n_kept, f.h.res.n_forced);
			}
			if (w == 2 && kind == 0)   /* always wrong: it is soon no longer asked */
				assert_true(f.h.res.n_forced < 60 && f.asked < 30);
			r = was;
		}
	}
	engine_close(e);
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

static int setup(void **state)
{
	struct synth_opts o;

	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/m.gguf", dir);
	synth_defaults(&o);
	return synth_model(path, &o);
}

static int teardown(void **state)
{
	unlink(path);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plan_is_what_is_taken),
		cmocka_unit_test(largest_context),
		cmocka_unit_test(bad_options),
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
		cmocka_unit_test(batched_like_alone),
		cmocka_unit_test(same_however_cut),
		cmocka_unit_test(foreseen),
		cmocka_unit_test(embeddings),
		cmocka_unit_test(voice_first),
		cmocka_unit_test(memory),
		cmocka_unit_test(many_clients),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name(__FILE__, tests, setup, teardown);
}
