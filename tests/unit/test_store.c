// SPDX-License-Identifier: MIT
/*
 * The prefix cache in a file and in a kept region: what comes back is what was
 * there, to the bit; what is damaged or another's is not used; pins hold.
 */
#include "unit.h"
#include "synth.h"
#include "cache/prefix.h"
#include "cache/store.h"
#include "dev/hearth.h"
#include "engine/engine.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/hearth-store-XXXXXX";
static char model[64], other[64], file[64];

struct heard {
	int32_t id[64];
	float logprob[64];
	uint32_t n;
	struct gen_result res;
};

static bool on_token(void *arg, const struct gen_token *t)
{
	struct heard *h = arg;

	h->id[h->n] = t->id;
	h->logprob[h->n++] = t->pick->logprob;
	return false;
}

static void ask(struct engine *e, const int32_t *t, uint32_t n, uint64_t key, struct heard *h)
{
	struct hearth_err err = { 0 };
	struct gen_request r;
	struct session *s;
	struct gen *g;

	memset(h, 0, sizeof(*h));
	if (session_open(e, &s, &err))
		fail_msg("%s", err.text);
	gen_defaults(&r);
	r.tokens = t;
	r.n_tokens = n;
	r.max_tokens = 24;
	r.ignore_eos = true;
	r.sample.logprobs = true;
	r.cache_key = key;
	r.on_token = on_token;
	r.arg = h;
	if (gen_start(s, &r, &g, &err))
		fail_msg("%s", err.text);
	gen_wait(g, -1, &h->res);
	gen_free(g);
	session_close(s);
	assert_int_equal(h->res.finish, GEN_LENGTH);
}

static struct engine *open_engine(const char *path, enum kv_type kv, struct hearth *h, bool keep)
{
	struct hearth_err err = { 0 };
	struct engine_opts o;
	struct engine *e;

	engine_defaults(&o);
	o.model = path;
	o.threads = 1;
	o.sessions = 2;
	o.kv = kv;
	o.hearth = h;
	o.keep_kv = keep;
	if (engine_open(&o, &e, &err))
		fail_msg("%s", err.text);
	return e;
}

static void tokens(int32_t *t, uint32_t n, uint64_t seed)
{
	for (uint32_t i = 0; i < n; i++)
		t[i] = (int32_t)(synth_rand(&seed) % 256);
}

static void same(const struct heard *a, const struct heard *b)
{
	assert_int_equal(a->n, b->n);
	assert_memory_equal(a->id, b->id, a->n * sizeof(*a->id));
	assert_memory_equal(a->logprob, b->logprob, a->n * sizeof(*a->logprob));
}

static uint8_t *slurp(size_t *n)
{
	FILE *f = fopen(file, "r");
	uint8_t *p = malloc(1 << 22);

	*n = fread(p, 1, 1 << 22, f);
	fclose(f);
	return p;
}

static void spill(const uint8_t *p, size_t n)
{
	FILE *f = fopen(file, "w");

	assert_int_equal(fwrite(p, 1, n, f), n);
	fclose(f);
}

static void comes_back(void **state)
{
	static const enum kv_type kv[] = { KV_I8, KV_F16 };
	struct hearth_err err = { 0 };
	struct heard cold, again, branch, branch_again;
	struct engine_stats st;
	int32_t t[300], b[300];
	uint32_t pages, lost;
	struct engine *e;
	struct stat sb;

	tokens(t, 300, 5);
	memcpy(b, t, sizeof(b));
	tokens(b + 150, 150, 6);
	for (int i = 0; i < 2; i++) {
		e = open_engine(model, kv[i], NULL, false);
		ask(e, t, 300, 0, &cold);
		ask(e, b, 300, 0, &branch);
		assert_int_equal(engine_cache_save(e, file, 0, false, &pages, &err), 0);
		engine_close(e);
		/* 323 and 323 tokens with 150 in common: their full pages, four of them once */
		assert_int_equal(pages, 10 + 10 - 4);
		assert_int_equal(stat(file, &sb), 0);
		assert_int_equal(sb.st_mode & 0777, 0600);

		e = open_engine(model, kv[i], NULL, false);
		assert_int_equal(engine_cache_load(e, file, &pages, &lost, &err), 0);
		assert_int_equal(pages, 16);
		assert_int_equal(lost, 0);
		engine_stats(e, &st);
		assert_int_equal(st.kv_pages_cached, 16);
		ask(e, t, 300, 0, &again);
		assert_int_equal(again.res.n_cached, 299);
		same(&cold, &again);
		ask(e, b, 300, 0, &branch_again);
		assert_int_equal(branch_again.res.n_cached, 299);
		same(&branch, &branch_again);
		/* What is there already is not taken twice. */
		assert_int_equal(engine_cache_load(e, file, &pages, &lost, &err), 0);
		assert_int_equal(pages, 0);
		engine_close(e);
	}
}

static void bounded(void **state)
{
	struct hearth_err err = { 0 };
	struct heard h;
	struct engine *e = open_engine(model, KV_I8, NULL, false);
	int32_t t[300];
	uint32_t all, few, lost;
	struct stat sb;

	tokens(t, 300, 5);
	ask(e, t, 300, 0, &h);
	assert_int_equal(engine_cache_save(e, file, 0, false, &all, &err), 0);
	assert_int_equal(stat(file, &sb), 0);
	assert_int_equal(engine_cache_save(e, file, (uint64_t)sb.st_size / 2, false, &few, &err), 0);
	assert_true(few && few < all);
	assert_int_equal(stat(file, &sb), 0);
	engine_close(e);
	/* The first pages: what stands alone without them is worth nothing. */
	e = open_engine(model, KV_I8, NULL, false);
	assert_int_equal(engine_cache_load(e, file, &all, &lost, &err), 0);
	assert_int_equal(all, few);
	ask(e, t, 300, 0, &h);
	assert_int_equal(h.res.n_cached, few * KV_PAGE);
	assert_int_equal(engine_cache_save(e, file, 10, false, &few, &err), 0);
	assert_int_equal(few, 0);
	engine_close(e);
}

static void refused(void **state)
{
	struct hearth_err err = { 0 };
	struct heard h;
	struct engine *e = open_engine(model, KV_I8, NULL, false);
	int32_t t[200];
	uint32_t pages = 77, lost = 77;
	size_t n;
	uint8_t *p;

	tokens(t, 200, 5);
	assert_int_equal(engine_cache_load(e, file, &pages, &lost, &err), -ENOENT);
	ask(e, t, 200, 0, &h);
	assert_int_equal(engine_cache_save(e, "/proc/nowhere/x", 0, false, &pages, &err), -ENOENT);
	assert_int_equal(engine_cache_save(e, file, 0, true, &pages, &err), -EINVAL);
	assert_int_equal(engine_cache_save(e, file, 0, false, &pages, &err), 0);
	engine_close(e);
	pages = 77;
	/* another model of the same shape, another type of KV */
	e = open_engine(other, KV_I8, NULL, false);
	assert_int_equal(engine_cache_load(e, file, &pages, &lost, &err), -ESTALE);
	assert_non_null(strstr(err.text, "weights"));
	engine_close(e);
	e = open_engine(model, KV_F16, NULL, false);
	assert_int_equal(engine_cache_load(e, file, &pages, &lost, &err), -ESTALE);
	assert_non_null(strstr(err.text, "int8"));
	engine_close(e);
	/* a version of another time, with a head that is whole otherwise, is damaged first of all */
	p = slurp(&n);
	p[8] ^= 2;
	spill(p, n);
	e = open_engine(model, KV_I8, NULL, false);
	assert_int_equal(engine_cache_load(e, file, &pages, &lost, &err), -EILSEQ);
	assert_int_equal(pages, 77);
	engine_close(e);
	free(p);
	unlink(file);
}

/* Cut anywhere, any byte wrong: the answer is the same, only less may be found. */
static void damaged(void **state)
{
	struct hearth_err err = { 0 };
	struct heard cold, h;
	struct engine *e = open_engine(model, KV_I8, NULL, false);
	int32_t t[200];
	uint32_t pages, lost;
	uint64_t seed = 9;
	size_t n;
	uint8_t *p;

	tokens(t, 200, 5);
	ask(e, t, 200, 0, &cold);
	assert_int_equal(engine_cache_save(e, file, 0, false, &pages, &err), 0);
	engine_close(e);
	p = slurp(&n);
	for (int i = 0; i < 60; i++) {
		const size_t at = i < 10 ? (size_t)i * 53 : synth_rand(&seed) % n;
		const bool cut = i % 2;

		if (!cut)
			p[at] ^= 1 << i % 8;
		spill(p, cut ? at : n);
		e = open_engine(model, KV_I8, NULL, false);
		pages = 0;
		if (engine_cache_load(e, file, &pages, &lost, &err))
			assert_int_equal(err.code, -EILSEQ);
		else
			assert_true(pages < 6);   /* 200 tokens are six full pages, and one is wrong */
		ask(e, t, 200, 0, &h);
		assert_int_equal(h.res.n_cached, pages * KV_PAGE);
		same(&cold, &h);
		engine_close(e);
		if (!cut)
			p[at] ^= 1 << i % 8;
	}
	free(p);
}

/* The region stays, the file has the index: a page that was written since is not believed. */
static void kept_region(void **state)
{
	struct hearth_pool_spec spec[4];
	struct hearth_options o;
	struct hearth_err err = { 0 };
	struct heard cold, h;
	struct hearth *hearth;
	struct engine *e;
	int32_t t[200], u[200];
	uint32_t pages, lost;
	struct stat sb;

	for (int i = 0; i < 4; i++)
		spec[i] = (struct hearth_pool_spec){ .kind = (enum hearth_kind)i, .name = hearth_kind_name((enum hearth_kind)i), .size = 12 << 20 };
	hearth_options_defaults(&o);
	o.backend = HEARTH_BACKEND_EMBEDDED;
	o.pools = spec;
	o.n_pools = 4;
	assert_int_equal(hearth_open(&o, &hearth, &err), 0);
	tokens(t, 200, 5);
	tokens(u, 200, 6);
	e = open_engine(model, KV_I8, hearth, true);
	ask(e, t, 200, 0, &cold);
	assert_int_equal(engine_cache_save(e, file, 0, true, &pages, &err), 0);
	assert_int_equal(pages, 6);
	engine_close(e);
	assert_int_equal(stat(file, &sb), 0);
	assert_true(sb.st_size < 2048);        /* no pages in it */

	e = open_engine(model, KV_I8, hearth, true);
	assert_int_equal(engine_cache_load(e, file, &pages, &lost, &err), 0);
	assert_int_equal(pages, 6);
	ask(e, t, 200, 0, &h);
	assert_int_equal(h.res.n_cached, 192);
	same(&cold, &h);
	/* Everything is forgotten and written over, but the index is the old one. */
	engine_shed(e, UINT64_MAX, true);
	for (int i = 0; i < 8; i++) {
		tokens(u, 200, 40 + (uint64_t)i);
		ask(e, u, 200, 0, &h);
	}
	engine_close(e);
	e = open_engine(model, KV_I8, hearth, true);
	assert_int_equal(engine_cache_load(e, file, &pages, &lost, &err), 0);
	assert_int_equal(pages + lost, 6);
	ask(e, t, 200, 0, &h);
	assert_int_equal(h.res.n_cached, pages * KV_PAGE);
	same(&cold, &h);
	engine_close(e);
	/* For another model the region gives way; what the index names is not there. */
	e = open_engine(other, KV_I8, hearth, true);
	assert_int_equal(engine_cache_load(e, file, &pages, &lost, &err), -ESTALE);
	engine_close(e);
	e = open_engine(model, KV_I8, hearth, true);
	assert_int_equal(engine_cache_load(e, file, &pages, &lost, &err), 0);
	assert_int_equal(pages, 0);
	engine_close(e);
	hearth_close(hearth);
}

/* What a key pinned outlives what came after it; under need it goes too. */
static void pinned(void **state)
{
	struct hearth_err err = { 0 };
	struct engine_opts o;
	struct engine *e;
	struct heard h;
	int32_t t[200], u[400];

	engine_defaults(&o);
	o.model = model;
	o.threads = 1;
	o.sessions = 2;
	o.ctx = 512;
	assert_int_equal(engine_open(&o, &e, &err), 0);
	tokens(t, 200, 5);
	for (int with = 0; with < 2; with++) {
		engine_shed(e, UINT64_MAX, true);
		ask(e, t, 200, with ? 0x1234 : 0, &h);
		for (int i = 0; i < 6; i++) {
			tokens(u, 400, 100 + (uint64_t)i);
			ask(e, u, 400, 0, &h);
		}
		ask(e, t, 200, with ? 0x1234 : 0, &h);
		assert_int_equal(h.res.n_cached, with ? 192 : 0);
	}
	assert_true(engine_shed(e, UINT64_MAX, false) > 0);
	ask(e, t, 200, 0x1234, &h);
	assert_int_equal(h.res.n_cached, 192);
	engine_shed(e, UINT64_MAX, true);
	ask(e, t, 200, 0, &h);
	assert_int_equal(h.res.n_cached, 0);
	/* Pins of many keys fill at most half: everybody else still gets in. */
	for (int i = 0; i < 40; i++) {
		tokens(u, 400, 200 + (uint64_t)i);
		ask(e, u, 400, 1 + (uint64_t)i, &h);
	}
	tokens(u, 400, 999);
	ask(e, u, 400, 0, &h);
	ask(e, u, 400, 0, &h);
	assert_true(h.res.n_cached >= 384);
	engine_close(e);
}

/* What a save holds back from those who need pages meanwhile: looked at whenever it lets the lock go. */
struct during {
	struct prefix *prefix;
	uint32_t unlocks, shed_at, least;
};

static void no_lock(void *arg)
{
}

static void looks(void *arg)
{
	struct during *d = arg;
	uint32_t idle = prefix_idle(d->prefix);

	if (!d->unlocks++)
		d->least = idle;
	d->least = idle < d->least ? idle : d->least;
	if (d->unlocks == d->shed_at)
		assert_true(prefix_shed(d->prefix, 100, true, 0) >= 15);
}

/* Writing takes a while, and somebody may need every page there is meanwhile. */
static void a_save_holds_nobody_up(void **state)
{
	const struct kv_cfg cfg = { .type = KV_I8, .layers = 1, .kv_heads = 1, .head_dim = 32 };
	const size_t page = kv_page_bytes(&cfg);
	struct hearth_err err = { 0 };
	uint32_t dst, src, pages, lost;
	uint8_t *base = malloc(16 * page), *copy = malloc(16 * page);
	struct during d;
	struct kv_seq seq;
	struct store s;
	struct kv *kv;

	for (int way = 0; way < 2; way++) {
		d = (struct during){ .shed_at = way ? 9 : 0 };
		for (size_t i = 0; i < 16 * page; i++)
			base[i] = (uint8_t)(i * 2654435761u >> 13);
		memcpy(copy, base, 16 * page);
		assert_int_equal(kv_open(&cfg, 16, &kv, &err), 0);
		assert_int_equal(prefix_open(kv, &d.prefix, &err), 0);
		assert_int_equal(kv_seq_open(16 * KV_PAGE, &seq, &err), 0);
		assert_int_equal(kv_seq_extend(kv, &seq, 16 * KV_PAGE, &dst, &src), 0);
		for (uint32_t i = 0; i < 16 * KV_PAGE; i++)
			seq.token[i] = (int32_t)(i * 7 % 251);
		seq.len = 16 * KV_PAGE;
		prefix_keep(d.prefix, &seq);
		kv_seq_rewind(kv, &seq, 0);
		s = (struct store){ .kv = kv, .prefix = d.prefix, .base = base, .id = "x", .lock = no_lock, .unlock = looks, .arg = &d };
		assert_int_equal(store_save(&s, file, 0, &pages, &err), 0);
		if (way) {
			/* All was taken in the middle: what was read before is there, and right. */
			assert_in_range(pages, 1, 15);
			assert_int_equal(kv_free(kv), 16);
		} else {
			assert_int_equal(pages, 16);
			/* One page is read at a time. */
			assert_true(d.least >= 15);
		}
		prefix_close(d.prefix);
		assert_int_equal(kv_free(kv), 16);
		memset(base, 0, 16 * page);
		d = (struct during){ .shed_at = 0 };
		assert_int_equal(prefix_open(kv, &d.prefix, &err), 0);
		s.prefix = d.prefix;
		assert_int_equal(store_load(&s, file, &src, &lost, &err), 0);
		assert_int_equal(src, pages);
		assert_int_equal(lost, 16 - pages);
		assert_int_equal(prefix_find(d.prefix, seq.token, 16 * KV_PAGE, seq.page), pages * KV_PAGE);
		for (uint32_t i = 0; i < pages; i++) {
			/* Page i of the timeline lay in page i of the region. */
			assert_memory_equal(base + seq.page[i] * page, copy + i * page, page);
			kv_page_put(kv, seq.page[i]);
		}
		prefix_close(d.prefix);
		kv_seq_close(kv, &seq);
		kv_close(kv);
	}
	free(base);
	free(copy);
	unlink(file);
}

int main(void)
{
	struct synth_opts o;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_save_holds_nobody_up),
		cmocka_unit_test(refused),
		cmocka_unit_test(comes_back),
		cmocka_unit_test(bounded),
		cmocka_unit_test(damaged),
		cmocka_unit_test(kept_region),
		cmocka_unit_test(pinned),
	};
	int r;

	if (!mkdtemp(dir))
		return 1;
	snprintf(model, sizeof(model), "%s/a.gguf", dir);
	snprintf(other, sizeof(other), "%s/b.gguf", dir);
	snprintf(file, sizeof(file), "%s/cache", dir);
	synth_defaults(&o);
	if (synth_model(model, &o))
		return 1;
	o.seed++;
	if (synth_model(other, &o))
		return 1;
	r = UNIT_RUN(tests);
	unlink(model);
	unlink(other);
	unlink(file);
	rmdir(dir);
	return r;
}
