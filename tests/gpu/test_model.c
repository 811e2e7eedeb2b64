/* SPDX-License-Identifier: MIT */
/*
 * Whole models: the CUDA table against the plain C reference on the same GGUF,
 * over prompts, single tokens, drafts, several sessions at once, page copies,
 * both KV types, both places of the weights. Without arguments the models are
 * tiny and made here; with a GGUF path that file is run (teacher-forced).
 *
 * usage: test_model [engine | failures | FILE.gguf [TOKENS]]
 */
#include "tests/gpu/model.h"
#include "tests/gpu/model_engine.h"

#include <errno.h>
#include <unistd.h>

#include "kernels/tile.h"
#include "tests/unit/synth.h"

static char path[256];   /* of the model of the moment */

struct seq { uint32_t len, page[64]; };

/* Runs one step; the page tables are those of @s. */
static int step(struct runner *r, struct seq *s, uint32_t n_seq, const uint32_t *n,
		const int32_t *tok, uint32_t n_out, const uint32_t *out, struct hearth_err *err)
{
	struct batch_seq bs[8];
	struct batch b = { .token = tok, .n_seq = n_seq, .seq = bs, .n_out = n_out, .out = out };

	for (uint32_t i = 0; i < n_seq; i++) {
		bs[i] = (struct batch_seq){ b.n, n[i], s[i].len, s[i].page };
		b.n += n[i];
	}
	return r->ops->forward(r->c, &b, err);
}

/* Distance of two rows of logits after softmax: mean |log p - log q| under p, and
 * the largest; whether the best agrees or is nearly tied. With tied random weights a
 * token is all but certain of itself, and nothing is left to compare: @soft brings
 * such a row's best down to SOFT above its mean, both alike. */
#define SOFT 6.0
static void compare(const float *p, const float *q, uint32_t n, bool soft, double *kl, double *far, bool *top)
{
	double mp = -INFINITY, mq = -INFINITY, zp = 0, zq = 0, k = 0, f = 0, mean = 0, t = 1;
	uint32_t bp = 0, bq = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (p[i] > mp) { mp = p[i]; bp = i; }
		if (q[i] > mq) { mq = q[i]; bq = i; }
		mean += p[i] / n;
	}
	if (soft)
		t = fmin(1, SOFT / (mp - mean));
	for (uint32_t i = 0; i < n; i++) {
		zp += exp(t * (p[i] - mp));
		zq += exp(t * (q[i] - mq));
	}
	for (uint32_t i = 0; i < n; i++) {
		double lp = t * (p[i] - mp) - log(zp), lq = t * (q[i] - mq) - log(zq);

		k += exp(lp) * (lp - lq);
		f = fmax(f, fabs(lp - lq) * (lp > -12 ? 1 : 0));
		if (isnan(lq) || isnan(lp))
			k = f = INFINITY;
	}
	*kl = k;
	*far = f;
	*top = bp == bq || p[bp] - p[bq] < 0.05;
}

struct acc { double kl, far; uint32_t rows, tops; bool soft; };

static void check_rows(struct runner *a, struct runner *b, uint32_t n_out, struct acc *x)
{
	struct hearth_err err = { 0 };

	for (uint32_t i = 0; i < n_out; i++) {
		float *p, *q;
		double kl, far;
		bool top;

		if (a->ops->logits(a->c, i, &p, &err) || b->ops->logits(b->c, i, &q, &err)) {
			printf("# logits: %s\n", err.text);
			x->kl = INFINITY;
			return;
		}
		compare(p, q, a->m->shape.vocab, x->soft, &kl, &far, &top);
		x->kl += kl;
		x->far = fmax(x->far, far);
		x->tops += top;
		x->rows++;
	}
}

/*
 * The same program of steps on both: prompts of several lengths, decoding alone
 * and together, drafts of several tokens, a rewind, a copied page.
 */
static bool drive(struct runner *a, struct runner *b, struct acc *x)
{
	const uint32_t vocab = a->m->shape.vocab;
	struct hearth_err err = { 0 };
	struct seq s[3] = { 0 };
	int32_t tok[256];
	uint32_t out[256], pages = a->o.kv_pages, n[3];
	int rc = 0;

	for (uint32_t i = 0; i < 3; i++)   /* interleaved pages */
		for (uint32_t p = 0; p < pages / 3; p++)
			s[i].page[p] = p * 3 + i;
	for (uint32_t i = 0; i < 256; i++)
		out[i] = i;
#define STEP(ns, nout, outs) do { \
	uint32_t t_ = 0; \
	for (uint32_t i_ = 0; i_ < (ns); i_++) t_ += n[i_]; \
	for (uint32_t i_ = 0; i_ < t_; i_++) tok[i_] = (int32_t)(rnd() % vocab); \
	if ((rc = step(a, s, ns, n, tok, nout, outs, &err)) || (rc = step(b, s, ns, n, tok, nout, outs, &err))) { \
		printf("# step: %d %s\n", rc, err.text); \
		return false; \
	} \
	check_rows(a, b, nout, x); \
	for (uint32_t i_ = 0; i_ < (ns); i_++) s[i_].len += n[i_]; \
} while (0)
	n[0] = 18; STEP(1, 1, &(uint32_t){ 17 });          /* a prompt, its last row */
	n[0] = 1; STEP(1, 1, out);                         /* decode */
	n[0] = 1; STEP(1, 1, out);
	n[0] = 5; n[1] = 33; STEP(2, 2, ((uint32_t[]){ 4, 37 }));  /* two prompts in a step */
	n[0] = 1; n[1] = 1; STEP(2, 2, out);
	n[0] = 1; n[1] = 1; n[2] = 40; STEP(3, 3, ((uint32_t[]){ 0, 1, 41 }));   /* decode beside a prompt */
	n[0] = n[1] = n[2] = 1; STEP(3, 3, out);
	n[0] = 4; STEP(1, 4, out);                         /* drafts to verify */
	n[0] = 7; STEP(1, 7, out);
	s[0].len -= 9;                                     /* and rejected */
	n[0] = 2; STEP(1, 2, out);
	n[0] = 80; STEP(1, 1, &(uint32_t){ 79 });          /* longer than any graph */
	n[0] = 1; STEP(1, 1, out);
	n[0] = 70; STEP(1, 0, out);                        /* a chunk without outputs */
	n[0] = 1; STEP(1, 1, out);
	{	/* the last page moves elsewhere */
		uint32_t last = s[0].len / 32, to = s[0].page[last + 4], from = s[0].page[last];

		if ((rc = a->ops->kv_copy(a->c, to, from, s[0].len % 32, &err)) ||
		    (rc = b->ops->kv_copy(b->c, to, from, s[0].len % 32, &err)))
			return false;
		s[0].page[last] = to;
		s[0].page[last + 4] = from;
	}
	n[0] = 1; STEP(1, 1, out);
#undef STEP
	return true;
}

static void t_tiny(const struct synth_opts *o, enum kv_type kv, enum ops_cuda_where where, double bound)
{
	const struct ops *ops;
	struct hearth_err err = { 0 };
	struct loaded la, lb;
	struct runner a, b;
	struct acc x = { .soft = true };
	bool ok;

	ops_cuda_place(where);
	if (ops_cuda(&ops, &err))
		die_err("ops_cuda", -1, &err);
	if (synth_model(path, o))
		die_err("synth_model", -1, &err);
	la = load_model(path, NULL);
	lb = load_model(path, ops);
	if (run_open(&a, &ops_ref, la.m, load_bytes(la.l), 128, 3, 512, kv, 8, &err) ||
	    run_open(&b, ops, lb.m, load_bytes(lb.l), 128, 3, 512, kv, 8, &err))
		die_err("open", -1, &err);
	ok = drive(&a, &b, &x);
	x.kl /= x.rows ? x.rows : 1;
	tap(ok && x.kl < bound && x.tops == x.rows,
	    "%s %s/%s, %u layers of %u, head %u%s, %s KV, %s: %u rows, KL %.2g, worst %.3g, %u same best",
	    o->arch, quant_name(o->type), quant_name(o->embd_type), o->layers, o->d_model, o->head_dim,
	    o->tied ? ", tied" : "", kv == KV_F16 ? "f16" : "int8",
	    where == OPS_CUDA_IN_PLACE ? "in place" : "copied", x.rows, x.kl, x.far, x.tops);
	run_close(&a);
	run_close(&b);
	unload(&la);
	unload(&lb);
}

/* As many sessions in one step as an engine has. */
static void t_many(void)
{
	enum { N = OPS_MAX_SEQS };
	static uint32_t out[N], page[N];
	static int32_t tok[N];
	static struct batch_seq seq[N];
	struct batch b = { .n = N, .token = tok, .n_seq = N, .seq = seq, .n_out = N, .out = out };
	const struct ops *ops;
	struct hearth_err err = { 0 };
	struct acc x = { .soft = true };
	struct synth_opts o;
	struct loaded la, lb;
	struct runner r, d, more;
	bool ok = true;

	ops_cuda_place(OPS_CUDA_COPY);
	if (ops_cuda(&ops, &err))
		die_err("ops_cuda", -1, &err);
	synth_defaults(&o);
	o.head_dim = 64;
	o.layers = 1;
	if (synth_model(path, &o))
		die_err("synth_model", -1, &err);
	la = load_model(path, NULL);
	lb = load_model(path, ops);
	if (run_open(&r, &ops_ref, la.m, load_bytes(la.l), N, N, 32, KV_I8, N, &err) ||
	    run_open(&d, ops, lb.m, load_bytes(lb.l), N, N, 32, KV_I8, N, &err))
		die_err("open", -1, &err);
	for (uint32_t pos = 0; pos < 3 && ok; pos++) {
		for (uint32_t i = 0; i < N; i++) {
			page[i] = N - 1 - i;
			seq[i] = (struct batch_seq){ i, 1, pos, &page[i] };
			out[i] = i;
			tok[i] = (int32_t)(rnd() % la.m->shape.vocab);
		}
		ok = !r.ops->forward(r.c, &b, &err) && !d.ops->forward(d.c, &b, &err);
		if (ok)
			check_rows(&r, &d, N, &x);
	}
	x.kl /= x.rows ? x.rows : 1;
	tap(ok && x.kl < 2e-3 && x.tops == x.rows, "%d sessions in a step: %u rows, KL %.2g, worst %.3g, %u same best%s%s", (int)N, x.rows, x.kl, x.far,
	    x.tops, ok ? "" : ": ", ok ? "" : err.text);
	run_close(&r);
	run_close(&d);
	tap(run_open(&more, ops, lb.m, load_bytes(lb.l), N + 1, N + 1, 32, KV_I8, 1, &err) == -EINVAL && strstr(err.text, "257 sessions"),
	    "one more is refused: %s", err.text);
	unload(&la);
	unload(&lb);
}

/* A type without a kernel by its tensor's name, and what makes a model slow in a line. */
static void t_types(void)
{
	static const struct {
		uint32_t type, embd, up, d_ff;
		bool tied, taken;
		const char *word[2];
	} T[] = {
		{ QUANT_Q3_K, QUANT_Q6_K, 0, 512, true, false, { "blk.0.attn_q.weight\" is Q3_K", "backend: cpu" } },
		{ QUANT_Q4_K, QUANT_Q4_K, QUANT_Q3_K, 512, true, false, { "blk.0.ffn_up.weight\" is Q3_K", "Q4_K" } },
		{ QUANT_Q8_0, QUANT_Q2_K, 0, 512, true, false, { "token_embd.weight\" is Q2_K", "Q8_0" } },
		{ QUANT_Q8_0, QUANT_Q3_K, 0, 512, false, false, { "token_embd.weight\" is Q3_K", "" } },
		{ QUANT_Q4_K, QUANT_Q6_K, 0, 512, false, true, { NULL, NULL } },
		{ QUANT_BF16, QUANT_BF16, QUANT_F16, 512, true, true, { NULL, NULL } },   /* one type in tiles */
		{ QUANT_Q4_K, QUANT_Q6_K, QUANT_Q5_K, 512, true, true, { "ffn_gate.weight\" is Q4_K", "ffn_up.weight\" Q5_K" } },
		{ QUANT_F32, QUANT_Q6_K, 0, 512, true, true, { "blk.0.attn_q.weight\" is F32", "" } },
		{ QUANT_Q8_0, QUANT_Q8_0, 0, 288, true, true, { "blk.0.ffn_down.weight", "288" } },
		{ QUANT_Q8_0, QUANT_F32, 0, 512, true, true, { "head \"token_embd.weight\" is F32", "" } },
	};
	const struct ops *ops;
	struct synth_opts o;

	ops_cuda_place(OPS_CUDA_COPY);
	if (ops_cuda(&ops, NULL))
		return;
	for (size_t i = 0; i < sizeof(T) / sizeof(T[0]); i++) {
		struct hearth_err err = { 0 };
		char slow[OPS_SLOW_MAX] = "nothing was said";
		struct loaded l;
		struct runner r;
		const char *said;
		bool ok;
		int rc;

		synth_defaults(&o);
		o.head_dim = 64;
		o.d_model = 256;
		o.d_ff = T[i].d_ff;
		o.type = T[i].type;
		o.embd_type = T[i].embd;
		o.up_type = T[i].up;
		o.tied = T[i].tied;
		if (synth_model(path, &o))
			die_err("synth_model", -1, &err);
		l = load_model(path, ops);
		rc = ops->takes(l.m, slow, sizeof(slow), &err);
		said = rc ? err.text : slow;
		if (T[i].taken)
			ok = !rc && (T[i].word[0] ? strstr(slow, T[i].word[0]) && strstr(slow, T[i].word[1]) : !*slow);
		else
			ok = rc == -ENOTSUP && strstr(err.text, T[i].word[0]) && strstr(err.text, T[i].word[1]) && !strcmp(slow, "nothing was said");
		tap(ok, "%s, %s: %s", quant_name(T[i].type), T[i].taken ? *slow ? "slow" : "taken" : "refused", said);
		if (!T[i].taken) {
			struct hearth_err again = { 0 };

			rc = run_open(&r, ops, l.m, load_bytes(l.l), 8, 1, 64, KV_I8, 1, &again);
			tap(rc == -ENOTSUP && !strcmp(again.text, err.text), "and where nobody asked before it is opened");
			run_close(&r);
		}
		unload(&l);
	}
}

/* Masks that stay and others, of one token each, in one call and in several. */
static void t_masks(struct runner *r)
{
	static uint32_t a[8192], b[8192], c[8192];
	const uint32_t vocab = r->m->shape.vocab, ia = vocab - 1, ib = 3, ic = 40;
	struct hearth_err err = { 0 };
	struct ops_pick p[2] = { { .top_p = 1, .rep_pen = 1 }, { .top_p = 1, .rep_pen = 1 } };
	int32_t t[2], u[2], v[2];
	int rc;

	a[ia / 32] = 1u << ia % 32;
	b[ib / 32] = 1u << ib % 32;
	c[ic / 32] = 1u << ic % 32;
	p[0].mask = a;
	p[0].mask_stays = true;
	p[1].mask = b;
	rc = r->ops->pick(r->c, p, 2, t, &err);
	p[1].mask_stays = true;   /* two that stay: the device keeps one of them */
	rc |= r->ops->pick(r->c, p, 2, u, &err);
	memset(a, 0, sizeof(a));  /* not looked at again */
	p[0].mask_stays = p[1].mask_stays = true;
	p[1].mask = a;
	rc |= r->ops->pick(r->c, p, 2, v, &err);
	tap(!rc && t[0] == (int32_t)ia && t[1] == (int32_t)ib && u[0] == (int32_t)ia && u[1] == (int32_t)ib && v[0] == (int32_t)ia && v[1] == (int32_t)ia,
	    "masks that stay and masks that do not: each token is the one that was allowed");
	p[0].mask = c;
	rc = r->ops->pick(r->c, p, 1, t, &err);
	p[0].mask = b;
	p[0].mask_stays = false;
	rc |= r->ops->pick(r->c, p, 1, u, &err);
	tap(!rc && t[0] == (int32_t)ic && u[0] == (int32_t)ib, "another that stays takes the place of the first");
}

static void t_refusals(void)
{
	const struct ops *ops;
	struct hearth_err err = { 0 };
	struct synth_opts o;
	struct loaded l;
	struct runner r;
	struct seq s = { 0 };
	int32_t tok[300] = { 0 };
	uint32_t n = 1, out = 0;
	int rc;

	ops_cuda_place(OPS_CUDA_COPY);
	if (ops_cuda(&ops, &err))
		die_err("ops_cuda", -1, &err);
	synth_defaults(&o);
	synth_model(path, &o);   /* heads of 32 */
	l = load_model(path, ops);
	rc = run_open(&r, ops, l.m, load_bytes(l.l), 64, 2, 128, KV_I8, 2, &err);
	tap(rc == -ENOTSUP && strstr(err.text, "CPU backend"), "a head size without a kernel is refused: %s", err.text);
	unload(&l);
	o.head_dim = 64;
	synth_model(path, &o);
	l = load_model(path, ops);
	rc = run_open(&r, ops, l.m, load_bytes(l.l), 64, 2, 128, KV_I8, 2, &err);
	tap(!rc, "the same model with heads of 64 opens");
	n = 65;
	rc = step(&r, &s, 1, &n, tok, 1, &out, &err);
	tap(rc == -EINVAL && strstr(err.text, "65"), "a step larger than planned is refused: %s", err.text);
	n = 1;
	r.ops->interrupt(r.c);
	rc = step(&r, &s, 1, &n, tok, 1, &out, &err);
	tap(rc == -ECANCELED, "an interrupted step says so");
	tap(step(&r, &s, 1, &n, tok, 1, &out, &err) == 0, "and the next one runs");
	{
		float *p;

		tap(r.ops->logits(r.c, 1, &p, &err) == -EINVAL, "logits of a row that was not asked for are refused");
	}
	t_masks(&r);
	run_close(&r);
	{
		struct runner big;

		rc = run_open(&big, ops, l.m, load_bytes(l.l), 64, 2, 128, KV_I8, 2, &err);
		if (!rc) {
			size_t plan = big.need.device;
			unsigned long long used = ops_cuda_used(big.c);

			printf("# planned %zu KiB of device memory, the driver took %llu KiB\n", plan >> 10, used >> 10);
			run_close(&big);
		}
	}
	unload(&l);
}

/* -- a restart -------------------------------------------------------------------------- */

enum { SAID = 12 };

/* A prompt, and the best token after it and after each: what was chosen, and the last logits. */
static void greedy(struct loaded *x, int32_t tok[SAID], float *last)
{
	struct hearth_err err = { 0 };
	struct runner r;
	struct seq s = { .page = { 1, 0, 3, 2 } };
	int32_t prompt[20];
	const uint32_t vocab = x->m->shape.vocab;
	uint32_t n = 20, out = 19;

	for (uint32_t i = 0; i < 20; i++)
		prompt[i] = (int32_t)((i * 37 + 11) % vocab);
	if (run_open(&r, x->ops, x->m, load_bytes(x->l), 64, 1, 128, KV_I8, 1, &err))
		die_err("open", -1, &err);
	for (uint32_t k = 0; k < SAID; k++) {
		float *l;

		if (step(&r, &s, 1, &n, k ? &tok[k - 1] : prompt, 1, &out, &err) || r.ops->logits(r.c, 0, &l, &err))
			die_err("step", -1, &err);
		tok[k] = 0;
		for (uint32_t i = 1; i < vocab; i++)
			tok[k] = l[i] > l[tok[k]] ? (int32_t)i : tok[k];
		memcpy(last, l, vocab * 4);
		s.len += n;
		n = 1;
		out = 0;
	}
	run_close(&r);
}

/* What was packed is found again under the name of its order, and nothing else is taken for it. */
static void t_restart(void)
{
	const struct ops *ops;
	struct hearth_err err = { 0 };
	struct synth_opts o;
	struct loaded x;
	struct ops other;
	int32_t was[SAID], is[SAID];
	uint32_t tensors, vocab;
	float *l1, *l2;
	bool there;

	ops_cuda_place(OPS_CUDA_AUTO);
	if (ops_cuda(&ops, &err))
		die_err("ops_cuda", -1, &err);
	synth_defaults(&o);
	o.head_dim = 64;
	o.tied = false;
	if (synth_model(path, &o))
		die_err("synth_model", -1, &err);
	other = *ops;
	other.layout_name = "another";
	pool_open(&x, path, 3);
	load_into(&x, path, NULL);   /* as in the file */
	let_go(&x);
	load_into(&x, path, &other);
	tensors = gguf_n_tensors(x.g);
	tap(load_way(x.l) != LOAD_FOUND && x.packed == tensors, "a region in the file's order is not taken for a packed one: %u of %u tensors packed",
	    x.packed, tensors);
	there = load_there(x.g, x.t, hearth_pool(x.h, HEARTH_KIND_WEIGHTS), TILE_NAME);
	let_go(&x);
	load_into(&x, path, ops);
	tap(!strcmp(ops->layout_name, TILE_NAME) && !there && load_way(x.l) != LOAD_FOUND && x.packed == tensors,
	    "nor one under another order's name for \"%s\": %u of %u tensors packed", ops->layout_name, x.packed, tensors);
	vocab = x.m->shape.vocab;
	l1 = malloc(vocab * 4);
	l2 = malloc(vocab * 4);
	greedy(&x, was, l1);
	there = load_there(x.g, x.t, hearth_pool(x.h, HEARTH_KIND_WEIGHTS), TILE_NAME);
	let_go(&x);
	load_into(&x, path, ops);
	greedy(&x, is, l2);
	tap(there && load_way(x.l) == LOAD_FOUND && !x.packed && !memcmp(was, is, sizeof(was)) && !memcmp(l1, l2, vocab * 4),
	    "a restart finds the packed region (%s), packs nothing and says the same: %d ... %d", load_how(x.l), is[0], is[SAID - 1]);
	unload(&x);
	free(l1);
	free(l2);
}

/* -- a real file ------------------------------------------------------------------------ */

static void t_file(const char *file, uint32_t tokens, enum kv_type kv)
{
	const struct ops *ops, *cpu = ops_cpu();
	struct hearth_err err = { 0 };
	struct loaded la, lb;
	struct runner a, b;
	struct acc x = { 0 };
	struct seq s = { 0 };
	double nll_a = 0, nll_b = 0, nll_d = 0, kd = 0;
	uint32_t n, out[16];
	int32_t *tok = malloc(tokens * 4);
	float *first = NULL;

	ops_cuda_place(OPS_CUDA_AUTO);
	if (ops_cuda(&ops, &err))
		die_err("ops_cuda", -1, &err);
	la = load_model(file, cpu->pack ? cpu : NULL);
	lb = load_model(file, ops);
	if (run_open(&a, cpu, la.m, load_bytes(la.l), 64, 1, 1024, kv, 16, &err) ||
	    run_open(&b, ops, lb.m, load_bytes(lb.l), 64, 1, 1024, kv, 16, &err))
		die_err("open", -1, &err);
	for (uint32_t i = 0; i < 64; i++)
		s.page[i] = i;
	for (uint32_t i = 0; i < 16; i++)
		out[i] = i;
	for (uint32_t i = 0; i < tokens; i++)
		tok[i] = (int32_t)(rnd() % la.m->shape.vocab);
	first = malloc((size_t)tokens * 4);
	for (uint32_t t = 0; t + 16 <= tokens; t += 16) {   /* teacher-forced, 16 rows a step */
		n = 16;
		if (step(&a, &s, 1, &n, tok + t, 16, out, &err) || step(&b, &s, 1, &n, tok + t, 16, out, &err))
			die_err("step", -1, &err);
		check_rows(&a, &b, 16, &x);
		for (uint32_t i = 0; i < 16 && t + i + 1 < tokens; i++) {
			float *p, *q;

			a.ops->logits(a.c, i, &p, &err);
			b.ops->logits(b.c, i, &q, &err);
			nll_a -= p[tok[t + i + 1]] - log_z(p, a.m->shape.vocab);
			nll_b -= first[t + i] = (float)(q[tok[t + i + 1]] - log_z(q, a.m->shape.vocab));
		}
		s.len += 16;
	}
	/* the same tokens one by one: the dp4a route */
	s.len = 0;
	for (uint32_t t = 0; t + 1 < tokens; t++) {
		float *q;
		double lp;

		n = 1;
		if (step(&b, &s, 1, &n, tok + t, 1, out, &err))
			die_err("step", -1, &err);
		b.ops->logits(b.c, 0, &q, &err);
		lp = q[tok[t + 1]] - log_z(q, a.m->shape.vocab);
		nll_d -= lp;
		kd = fmax(kd, fabs(lp - first[t]));
		s.len++;
	}
	tap(x.rows >= tokens / 2 && x.kl / x.rows < 2e-2 && fabs(nll_a - nll_b) < 0.02 * fabs(nll_a),
	    "%s, %s KV: %u rows against %s: KL %.3g, worst %.3g, best agrees %u; nll %.4f %.4f, one by one %.4f (worst token %.3g)",
	    file, kv == KV_F16 ? "f16" : "int8", x.rows, cpu->name, x.kl / x.rows, x.far, x.tops,
	    nll_a / (tokens - 1), nll_b / (tokens - 1), nll_d / (tokens - 1), kd);
	run_close(&a);
	run_close(&b);
	unload(&la);
	unload(&lb);
	free(tok);
	free(first);
}

int main(int argc, char **argv)
{
	struct hearth_err err = { 0 };
	const struct ops *ops;
	struct synth_opts o;
	bool slow;   /* the emulation: a few models stand for all */
	int rc = ops_cuda(&ops, &err);

	if (rc) {
		printf("# skip reason: %s\nok 1 - models # SKIP %s\n1..1\n", err.text, err.text);
		return 0;
	}
	printf("# %s\n", ops_cuda_line());
	slow = strstr(ops_cuda_line(), "emulated") != NULL;
	rnd_start();
	snprintf(path, sizeof(path), "/tmp/hearth-test-model-%d.gguf", (int)getpid());
	if (argc > 1 && !strcmp(argv[1], "engine")) {
		t_engine(path);
		t_foreseen(path);
		unlink(path);
		return tap_end();
	}
	if (argc > 1 && !strcmp(argv[1], "failures")) {
		t_failures(path);
		unlink(path);
		return tap_end();
	}
	if (argc > 1) {
		t_file(argv[1], argc > 2 ? (uint32_t)atoi(argv[2]) : 256, KV_I8);
		t_file(argv[1], argc > 2 ? (uint32_t)atoi(argv[2]) : 256, KV_F16);
		return tap_end();
	}
	synth_defaults(&o);
	o.head_dim = 64;
	o.type = o.embd_type = QUANT_Q8_0;
	if (!slow) {
		t_tiny(&o, KV_I8, OPS_CUDA_COPY, 2e-3);
		t_tiny(&o, KV_F16, OPS_CUDA_COPY, 2e-3);
	}
	o.arch = "qwen2";
	o.tied = false;
	t_tiny(&o, KV_I8, OPS_CUDA_IN_PLACE, 2e-3);
	o.arch = "qwen3";
	o.d_model = 256;
	o.d_ff = 512;
	o.heads = 4;
	o.kv_heads = 1;
	o.head_dim = 128;
	o.type = QUANT_Q4_K;
	o.embd_type = QUANT_Q6_K;
	t_tiny(&o, KV_I8, OPS_CUDA_IN_PLACE, 2e-3);
	o.heads = 2;
	o.head_dim = 256;
	t_tiny(&o, KV_I8, OPS_CUDA_COPY, 2e-3);
	if (!slow)
		t_tiny(&o, KV_F16, OPS_CUDA_IN_PLACE, 2e-3);
	o.heads = 4;
	o.head_dim = 128;
	t_restart();
	o.up_type = QUANT_Q5_K;    /* two types of one product: the plain route, here too */
	if (slow) {
		o.layers = 1;
		t_tiny(&o, KV_I8, OPS_CUDA_COPY, 2e-3);
		t_refusals();
		t_types();
		t_many();
		t_engine(path);
		t_foreseen(path);
		t_failures(path);
		unlink(path);
		return tap_end();
	}
	t_tiny(&o, KV_I8, OPS_CUDA_COPY, 2e-3);
	o.up_type = 0;
	o.type = QUANT_Q5_0;
	o.embd_type = QUANT_Q8_0;
	t_tiny(&o, KV_I8, OPS_CUDA_COPY, 2e-3);
	o.type = QUANT_F16;
	o.embd_type = QUANT_F16;
	t_tiny(&o, KV_F16, OPS_CUDA_COPY, 2e-3);
	o.type = QUANT_BF16;
	o.embd_type = QUANT_F32;   /* no tiles for it: the plain head */
	t_tiny(&o, KV_I8, OPS_CUDA_COPY, 2e-3);
	o.type = QUANT_F32;        /* the plain route through and through */
	o.d_ff = 288;
	t_tiny(&o, KV_I8, OPS_CUDA_COPY, 2e-3);
	t_refusals();
	t_types();
	t_many();
	t_engine(path);
	t_foreseen(path);
	t_failures(path);
	unlink(path);
	return tap_end();
}
