/* SPDX-License-Identifier: MIT */
/* An engine on a small synthetic model, and what a generation gave. */
#ifndef HEARTH_TESTS_ENGINE_UTIL_H
#define HEARTH_TESTS_ENGINE_UTIL_H

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

static inline struct engine_opts opts(void)
{
	struct engine_opts o;

	engine_defaults(&o);
	o.model = path;
	o.threads = 2;
	return o;
}

static inline struct engine *open_with(const struct engine_opts *o)
{
	struct hearth_err err = { 0 };
	struct engine *e = NULL;

	if (engine_open(o, &e, &err))
		fail_msg("%s", err.text);
	return e;
}

static inline struct session *session(struct engine *e)
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

static inline bool on_token(void *arg, const struct gen_token *t)
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
static inline bool on_top(void *arg, const struct gen_token *t)
{
	struct heard *h = arg;

	for (uint32_t i = 0; i < 2; i++) {
		h->id[i] = t->pick->top[i].token;
		h->logprob[i] = t->pick->top[i].logprob;
	}
	return false;
}

static inline void on_prompt(void *arg, uint32_t i, int32_t token, float logprob)
{
	struct heard *h = arg;

	assert_int_equal(i, h->n_prompt + 1);
	h->prompt[h->n_prompt++] = logprob;
}

static inline void request(struct gen_request *r, struct heard *h, const int32_t *tok, uint32_t n, uint32_t max)
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

static inline void run(struct session *s, const struct gen_request *r, struct heard *h)
{
	struct hearth_err err = { 0 };
	struct gen *g;

	if (gen_start(s, r, &g, &err))
		fail_msg("%s", err.text);
	assert_int_equal(gen_wait(g, -1, &h->res), 0);
	gen_free(g);
}

static inline void tokens(int32_t *t, uint32_t n, uint64_t seed)
{
	for (uint32_t i = 0; i < n; i++)
		t[i] = (int32_t)(synth_rand(&seed) % 256);
}

/* A mask: of what[0] and what[1] alone; of nothing where what[2]; or the error what[0]. */
static inline int allow(void *arg, uint32_t *mask, uint32_t vocab)
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

static inline int setup(void **state)
{
	struct synth_opts o;

	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/m.gguf", dir);
	synth_defaults(&o);
	return synth_model(path, &o);
}

static inline int teardown(void **state)
{
	unlink(path);
	return rmdir(dir);
}

#endif
