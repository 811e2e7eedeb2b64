// SPDX-License-Identifier: MIT
/* The engine over the CUDA table: tokens chosen there, tokens foreseen, several sessions. */
#include "tests/gpu/model_engine.h"

#include <errno.h>
#include <math.h>

#include "engine/engine.h"
#include "tests/gpu/model.h"
#include "tests/unit/synth.h"

struct said { int32_t id[64]; uint32_t n; struct sampler_pick first; };

/* How far behind @first's best @id is, in log-probability; far when it is not among its alternatives. */
static double behind(const struct sampler_pick *first, int32_t id)
{
	for (uint32_t i = 0; i < first->n_top; i++)
		if (first->top[i].token == id)
			return (double)first->top[0].logprob - (double)first->top[i].logprob;
	return INFINITY;
}

static bool on_token(void *arg, const struct gen_token *t)
{
	struct said *s = arg;

	if (!s->n && t->pick)
		s->first = *t->pick;
	s->id[s->n++] = t->id;
	return false;
}

/* @host: a report of log-probabilities makes the host's sampler choose. */
static void say(struct session *s, const int32_t *prompt, uint32_t n, const struct sampler_params *p,
		bool host, struct said *ret)
{
	struct gen_request r;
	struct gen_result res;
	struct hearth_err err = { 0 };
	struct gen *g;

	gen_defaults(&r);
	memset(ret, 0, sizeof(*ret));
	session_rewind(s, 0);
	r.tokens = prompt;
	r.n_tokens = n;
	r.max_tokens = 10;
	r.ignore_eos = true;
	r.sample = *p;
	r.sample.logprobs = host;
	r.sample.n_logprobs = host ? SAMPLER_TOP_LOGPROBS : 0;
	r.on_token = on_token;
	r.arg = ret;
	if (gen_start(s, &r, &g, &err) || gen_wait(g, -1, &res) || res.finish != GEN_LENGTH)
		die_err("gen", -1, res.finish == GEN_ERROR ? &res.err : &err);
	gen_free(g);
}

void t_engine(const char *path)
{
	struct engine_opts eo;
	struct hearth_err err = { 0 };
	struct synth_opts o;
	struct engine *e = NULL, *c = NULL;
	struct session *s = NULL, *sc = NULL;
	struct sampler_params p;
	struct said a, b;
	int32_t prompt[40];
	struct engine_plan plan;
	bool same = true;

	ops_cuda_place(OPS_CUDA_AUTO);
	synth_defaults(&o);
	o.head_dim = 64;
	o.tied = false;
	if (synth_model(path, &o))
		die_err("synth_model", -1, &err);
	engine_defaults(&eo);
	eo.model = path;
	eo.ctx = 128;
	eo.prefix_cache = false;   /* each time the same steps, so the same logits */
	eo.backend = "cuda";
	if (engine_open(&eo, &e, &err) || session_open(e, &s, &err))
		die_err("engine on cuda", -1, &err);
	eo.backend = "cpu";
	if (engine_open(&eo, &c, &err) || session_open(c, &sc, &err))
		die_err("engine on cpu", -1, &err);
	for (uint32_t i = 0; i < 40; i++)
		prompt[i] = (int32_t)(rnd() % 256);
	sampler_defaults(&p);
	say(s, prompt, 20, &p, false, &a);
	say(sc, prompt, 20, &p, true, &b);
	/* Random weights: the two best can be nearer to each other than the two backends
	 * are (0.04 at worst, test_model.c). */
	tap(a.n == 10 && b.n == 10 && behind(&b.first, a.id[0]) <= 0.1, "the engine on \"%s\" begins as on \"%s\": %.4f behind",
	    engine_the_plan(e)->backend, engine_the_plan(c)->backend, behind(&b.first, a.id[0]));
	for (uint32_t k = 0; k < 3; k++) {
		p = (struct sampler_params){ .temp = 0.9f, .top_k = k == 1 ? 0 : 30, .top_p = k ? 0.8f : 1,
					     .rep_pen = k == 2 ? 1.2f : 1, .pen_last = 32, .seed = 77 + k };
		say(s, prompt, 30 + k, &p, false, &a);
		say(s, prompt, 30 + k, &p, true, &b);
		same &= a.n == b.n && !memcmp(a.id, b.id, sizeof(a.id));
	}
	tap(same, "the device chooses the tokens that the host's sampler chooses, seed by seed");
	session_close(s);
	session_close(sc);
	engine_close(e);
	engine_close(c);
	/* heads of 32: no kernel */
	synth_defaults(&o);
	synth_model(path, &o);
	eo.backend = NULL;
	e = NULL;
	if (engine_open(&eo, &e, &err))
		die_err("engine on anything", -1, &err);
	tap(strncmp(engine_the_plan(e)->backend, "cuda", 4) != 0 && strstr(engine_the_plan(e)->why, "heads of 32"),
	    "a model that CUDA cannot run goes to \"%s\" where nobody asked for a backend: %s", engine_the_plan(e)->backend,
	    engine_the_plan(e)->why);
	engine_close(e);
	eo.backend = "cuda";
	e = NULL;
	tap(engine_open(&eo, &e, &err) == -ENOTSUP && strstr(err.text, "CPU backend"), "and is refused where CUDA was asked for: %s", err.text);
	/* a type: no kernel either; before anything is read */
	o.head_dim = 64;
	o.d_model = 256;
	o.type = QUANT_Q3_K;
	synth_model(path, &o);
	tap(engine_plan(&eo, &plan, &err) == -ENOTSUP && strstr(err.text, "blk.0.attn_q.weight\" is Q3_K"), "so is a type: %s", err.text);
	tap(engine_open(&eo, &e, &err) == -ENOTSUP && strstr(err.text, "Q3_K") && !e, "and by who opens");
	eo.backend = "auto";
	if (engine_open(&eo, &e, &err))
		die_err("engine on anything", -1, &err);
	tap(strncmp(engine_the_plan(e)->backend, "cuda", 4) != 0 && strstr(engine_the_plan(e)->why, "blk.0.attn_q.weight\" is Q3_K"),
	    "computing on %s: %s", engine_the_plan(e)->backend, engine_the_plan(e)->why);
	engine_close(e);
	/* the line of one that it takes; how many sessions does not matter */
	o.type = QUANT_Q8_0;
	o.up_type = QUANT_Q4_0;
	synth_model(path, &o);
	eo.sessions = OPS_MAX_SEQS;
	tap(!engine_plan(&eo, &plan, &err) && !strncmp(plan.backend, "cuda", 4) && strstr(plan.why, ops_cuda_line()) == plan.why &&
	    strstr(plan.why, "slowly, for tensor \"blk.0.ffn_gate.weight\" is Q8_0"),
	    "computing on %s: %s", plan.backend, plan.why);
	o.up_type = 0;
	synth_model(path, &o);
	tap(!engine_plan(&eo, &plan, &err) && !strcmp(plan.why, ops_cuda_line()), "computing on %s: %s", plan.backend, plan.why);
}

/* -- tokens that are foreseen ------------------------------------------------------------- */

enum { WORDS = 24, AT_ONCE = 3 };

/* What was said, and what .force says of it: the same, but for every @lie-th word (0: none). */
struct tale {
	struct said was, now;
	float gap[64];      /* how far the word was ahead of the next best */
	uint32_t lie, who;
	bool first;
};

/* As a grammar does: one word is allowed, at every sixth place four. */
static int few_words(void *arg, uint32_t *mask, uint32_t vocab)
{
	const struct tale *x = arg;
	const uint32_t i = x->first ? x->was.n : x->now.n;

	memset(mask, 0, (vocab + 31) / 32 * 4);
	for (uint32_t k = 0; k < (i % 6 == 5 ? 4 : 1); k++) {
		const uint32_t t = (i * 37 + x->who * 11 + k * 53) % 256;

		mask[t / 32] |= 1u << t % 32;
	}
	return 0;
}

static bool on_first(void *arg, const struct gen_token *t)
{
	struct tale *x = arg;

	x->gap[x->was.n] = t->pick->n_top > 1 ? t->pick->top[0].logprob - t->pick->top[1].logprob : INFINITY;
	x->was.id[x->was.n++] = t->id;
	return false;
}

static bool on_again(void *arg, const struct gen_token *t)
{
	struct tale *x = arg;

	x->now.id[x->now.n++] = t->id;
	return false;
}

static uint32_t foresee(void *arg, int32_t *ret, uint32_t cap)
{
	const struct tale *x = arg;
	uint32_t n = 0;

	for (uint32_t i = x->now.n; i < WORDS && n < cap; i++)
		ret[n++] = x->was.id[i] ^ (x->lie && i % x->lie == x->lie - 1);
	return n;
}

/* The same prompt each time: how near two words are tied does not change. */
static struct gen *tell(struct session *s, const int32_t *prompt, uint32_t n, struct tale *x, bool first)
{
	struct gen_request r;
	struct hearth_err err = { 0 };
	struct gen *g;

	gen_defaults(&r);
	session_rewind(s, 0);
	r.tokens = prompt;
	r.n_tokens = n;
	r.max_tokens = WORDS;
	r.ignore_eos = true;
	r.sample.logprobs = first;
	r.sample.n_logprobs = first ? 2 : 0;
	r.on_token = first ? on_first : on_again;
	r.force = first ? NULL : foresee;
	r.mask = few_words;
	r.mask_arg = x;
	x->first = first;
	r.arg = x;
	if (gen_start(s, &r, &g, &err))
		die_err("gen_start", -1, &err);
	return g;
}

static struct gen_result told(struct gen *g)
{
	struct gen_result res;

	if (gen_wait(g, -1, &res) || res.finish != GEN_LENGTH)
		die_err("gen", -1, &res.err);
	gen_free(g);
	return res;
}

/* The same words up to where two were nearly tied: more rows take another route. */
static bool same_words(const struct tale *x, uint32_t *ret_n)
{
	uint32_t i = 0;

	while (i < WORDS && x->now.id[i] == x->was.id[i])
		i++;
	*ret_n += i;
	return i == WORDS || x->gap[i] < 0.05f;
}

void t_foreseen(const char *path)
{
	struct engine_opts eo;
	struct hearth_err err = { 0 };
	struct synth_opts o;
	struct engine *e = NULL;
	struct session *s[AT_ONCE];
	struct gen *g[AT_ONCE];
	static struct tale x[AT_ONCE];
	int32_t prompt[AT_ONCE][24];
	uint32_t kept = 0, forced = 0, n = 0;
	struct gen_result res;
	bool same = true;

	ops_cuda_place(OPS_CUDA_AUTO);
	synth_defaults(&o);
	o.head_dim = 64;
	o.tied = false;
	if (synth_model(path, &o))
		die_err("synth_model", -1, &err);
	engine_defaults(&eo);
	eo.model = path;
	eo.ctx = 128;
	eo.sessions = AT_ONCE;
	eo.prefix_cache = false;
	eo.backend = "cuda";
	if (engine_open(&eo, &e, &err))
		die_err("engine on cuda", -1, &err);
	for (uint32_t i = 0; i < AT_ONCE; i++) {
		memset(&x[i], 0, sizeof(x[i]));
		x[i].who = i;
		for (uint32_t k = 0; k < 24; k++)
			prompt[i][k] = (int32_t)((i * 97 + k * 31) % 256);
		if (session_open(e, &s[i], &err))
			die_err("session", -1, &err);
		told(tell(s[i], prompt[i], 20 + i, &x[i], true));
	}
	res = told(tell(s[0], prompt[0], 20, &x[0], false));
	same = same_words(&x[0], &n);
	tap(same && res.n_kept > WORDS / 2 && res.n_kept <= res.n_forced && res.n_out == WORDS,
	    "words foreseen rightly are the words: %u of %u the same, %u of %u foreseen were kept", n, WORDS, res.n_kept, res.n_forced);
	x[0].lie = 3;
	x[0].now.n = n = 0;
	res = told(tell(s[0], prompt[0], 20, &x[0], false));
	same = same_words(&x[0], &n);
	tap(same && res.n_kept < res.n_forced && res.n_out == WORDS,
	    "wrong ones among them change nothing: %u of %u the same, %u of %u were kept", n, WORDS, res.n_kept, res.n_forced);
	/* all at once: a step's outputs are the sessions' and those of the foreseen */
	n = 0;
	for (uint32_t i = 0; i < AT_ONCE; i++) {
		x[i].lie = i % 2 ? 7 : 0;
		x[i].now.n = 0;
		g[i] = tell(s[i], prompt[i], 20 + i, &x[i], false);
	}
	same = true;
	for (uint32_t i = 0; i < AT_ONCE; i++) {
		res = told(g[i]);
		kept += res.n_kept;
		forced += res.n_forced;
		same &= same_words(&x[i], &n);
	}
	tap(same && kept && kept < forced, "%d sessions that foresee at once: %u of %u words the same, %u of %u were kept",
	    AT_ONCE, n, AT_ONCE * WORDS, kept, forced);
	for (uint32_t i = 0; i < AT_ONCE; i++)
		session_close(s[i]);
	engine_close(e);
}
