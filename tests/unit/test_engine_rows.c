// SPDX-License-Identifier: MIT
/* Rows besides the one that is wanted: embeddings, and tokens that are foreseen. */
#include "engine_util.h"
#include "engine/priv.h"

#include <poll.h>

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

/* -- what a prompt is worth ------------------------------------------------------------ */

static const struct ops *whole;

static int logits_lost(struct ops_ctx *ctx, uint32_t i, float **ret, struct hearth_err *err)
{
	return i == 3 ? err_set(err, -EIO, "the row was lost") : whole->logits(ctx, i, ret, err);
}

/* A row that cannot be had is an error of the request, not a gap in what it hears. */
static void a_prompt_row_that_is_lost_is_an_error(void **state)
{
	struct engine_opts o = opts();
	struct gen_request r;
	struct session *s;
	struct engine *e = open_with(&o);
	struct heard h;
	struct ops broken;
	int32_t t[10];

	s = session(e);
	whole = e->ops;
	broken = *whole;
	broken.logits = logits_lost;
	broken.pick = NULL;
	e->ops = &broken;
	tokens(t, 10, 1);
	request(&r, &h, t, 10, 3);
	r.on_prompt = on_prompt;
	run(s, &r, &h);
	assert_int_equal(h.res.finish, GEN_ERROR);
	assert_string_equal(h.res.err.text, "the row was lost");
	assert_int_equal(h.n, 0);
	e->ops = whole;
	request(&r, &h, t, 10, 3);
	r.on_prompt = on_prompt;
	run(s, &r, &h);
	assert_int_equal(h.res.finish, GEN_LENGTH);
	assert_int_equal(h.n_prompt, 9);
	engine_close(e);
}

/* -- a device that is lost ----------------------------------------------------------------- */

static int step_lost(struct ops_ctx *ctx, const struct batch *b, struct hearth_err *err)
{
	return err_set(err, -ENODEV, "the device is gone");
}

/* Everybody's generation ends with the sentence, later ones are refused with it, and it can be waited for. */
static void a_lost_device_ends_everything(void **state)
{
	struct engine_opts o = opts();
	struct hearth_err err = { 0 };
	struct gen_request r;
	struct session *s[3];
	struct gen *g[3];
	struct gen_result res;
	struct heard h[3];
	struct engine *e;
	struct pollfd p = { .events = POLLIN };
	struct ops broken;
	int32_t t[10];
	uint32_t pages;

	o.sessions = 3;
	e = open_with(&o);
	p.fd = engine_lost_fd(e);
	for (int i = 0; i < 3; i++)
		s[i] = session(e);
	tokens(t, 10, 1);
	request(&r, &h[0], t, 10, 3);
	run(s[0], &r, &h[0]);
	assert_int_equal(h[0].res.finish, GEN_LENGTH);
	assert_int_equal(engine_lost(e, &err), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	broken = *e->ops;
	broken.forward = step_lost;
	e->ops = &broken;
	for (int i = 0; i < 3; i++) {
		request(&r, &h[i], t, 10, 3);
		/* who comes after the first has failed is refused at once */
		if (gen_start(s[i], &r, &g[i], &err)) {
			assert_true(i > 0);
			assert_int_equal(err.code, -ENODEV);
			g[i] = NULL;
		}
	}
	for (int i = 0; i < 3; i++) {
		if (!g[i])
			continue;
		assert_int_equal(gen_wait(g[i], -1, &res), 0);
		assert_int_equal(res.finish, GEN_ERROR);
		assert_int_equal(res.err.code, -ENODEV);
		assert_string_equal(res.err.text, "the device is gone");
		gen_free(g[i]);
	}
	assert_int_equal(gen_start(s[0], &r, &g[0], &err), -ENODEV);
	assert_string_equal(err.text, "the device is gone");
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(engine_lost(e, &err), -ENODEV);
	assert_int_equal(engine_cache_save(e, "/tmp/hearth-lost.cache", 0, false, &pages, &err), -ENODEV);
	engine_close(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(foreseen),
		cmocka_unit_test(embeddings),
		cmocka_unit_test(a_prompt_row_that_is_lost_is_an_error),
		cmocka_unit_test(a_lost_device_ends_everything),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name(__FILE__, tests, setup, teardown);
}
