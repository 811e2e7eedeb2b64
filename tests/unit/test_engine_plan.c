// SPDX-License-Identifier: MIT
/* The engine's plan: what is taken is what was said, and what does not fit is refused. */
#include "engine_util.h"
#include "model/ops.h"

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

/* The plan says what computes, and why not the GPU where nobody asked for a backend. */
static void why_not_the_gpu(void **state)
{
	struct hearth_err err = { 0 }, no = { 0 };
	struct engine_opts o = opts();
	struct engine_plan p;
	const struct ops *cuda;
	struct engine *e;
	const bool gpu = !ops_cuda(&cuda, &no);

	for (int i = 0; i < 2; i++) {
		o.backend = i ? "auto" : NULL;
		assert_int_equal(engine_plan(&o, &p, &err), 0);
		assert_non_null(strstr(p.backend, "cpu/"));   /* heads of 32: the GPU has no kernel */
		if (gpu)
			assert_non_null(strstr(p.why, "heads of 32"));
		else
			assert_string_equal(p.why, no.text);
		assert_true(strlen(p.why) > 10);
		e = open_with(&o);
		assert_string_equal(engine_the_plan(e)->why, p.why);
		engine_close(e);
	}
	o.backend = "ref";
	assert_int_equal(engine_plan(&o, &p, &err), 0);
	assert_string_equal(p.why, "as asked");
	if (!gpu) {
		o.backend = "cuda";
		assert_true(engine_plan(&o, &p, &err) < 0);
		assert_ptr_equal(strstr(err.text, no.text), err.text);
		assert_non_null(strstr(err.text, "(backend: cpu)"));
		assert_string_equal(p.why, "as asked");       /* untouched */
	}
}

/* The model's file with one row of token_embd.weight less than the tokenizer has tokens. */
static void every_token_has_a_row(void **state)
{
	static const char name[] = "token_embd.weight";
	struct engine_opts o = opts();
	struct hearth_err err = { 0 };
	struct engine_plan p;
	struct engine *e = NULL;
	char other[sizeof(path) + 8];
	uint64_t rows;
	char *text, *at;
	size_t n;
	FILE *f;

	f = fopen(path, "rb");
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	n = (size_t)ftell(f);
	rewind(f);
	text = malloc(n);
	assert_int_equal(fread(text, 1, n, f), n);
	fclose(f);
	at = memmem(text, n, name, sizeof(name) - 1);
	assert_non_null(at);
	at += sizeof(name) - 1 + 4 + 8;   /* behind the number of dimensions and the first */
	memcpy(&rows, at, 8);
	assert_int_equal(rows, synth_vocab_size());
	rows--;
	memcpy(at, &rows, 8);
	snprintf(other, sizeof(other), "%s.short", path);
	f = fopen(other, "wb");
	assert_int_equal(fwrite(text, 1, n, f), n);
	fclose(f);
	free(text);
	o.model = other;
	assert_int_equal(engine_plan(&o, &p, &err), -EINVAL);
	assert_non_null(strstr(err.text, "token_embd.weight has rows for"));
	assert_int_equal(engine_open(&o, &e, &err), -EINVAL);
	assert_null(e);
	unlink(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plan_is_what_is_taken),
		cmocka_unit_test(largest_context),
		cmocka_unit_test(bad_options),
		cmocka_unit_test(why_not_the_gpu),
		cmocka_unit_test(every_token_has_a_row),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name(__FILE__, tests, setup, teardown);
}
