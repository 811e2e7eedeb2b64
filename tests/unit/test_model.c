// SPDX-License-Identifier: MIT
/*
 * Whole models, small ones of both families: every backend of this machine
 * against the plain C oracle, over steps of many shapes; and every refusal of a
 * file that is not quite such a model.
 */
#include "unit.h"
#include "synth.h"
#include "gguf/gguf.h"
#include "gguf/quant.h"
#include "model/ops.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

static char dir[] = "/tmp/hearth-model-XXXXXX";

#define in_dir(name) path_in(dir, name)

struct loaded {
	struct gguf *g;
	uint8_t *data;
	struct model *m;
};

static void load(struct loaded *l, const char *path)
{
	struct hearth_err err = { 0 };
	struct stat st;
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	l->data = aligned_alloc(64, ((size_t)st.st_size + 127) / 64 * 64);
	assert_int_equal(read(fd, l->data, (size_t)st.st_size), st.st_size);
	close(fd);
	if (gguf_open(path, &l->g, &err))
		fail_msg("%s", err.text);
	for (uint32_t i = 0; i < gguf_n_tensors(l->g); i++) {
		struct gguf_tensor *t = gguf_tensor_at(l->g, i);

		t->data = l->data + t->offset;
	}
	if (model_bind(l->g, &l->m, &err))
		fail_msg("%s", err.text);
}

static void unload(struct loaded *l)
{
	model_free(l->m);
	gguf_close(l->g);
	free(l->data);
}

static int pack_one(struct mat *w, void *arg)
{
	const struct ops *o = arg;
	void *tmp = malloc(o->pack_tmp(w) + 1);
	int r = o->pack(w, tmp, NULL);

	free(tmp);
	return r;
}

struct run {
	struct ops_ctx *c;
	void *scratch, *kv;
	const struct ops *o;
	uint32_t page[2][16];
};

#define CTX 256u

static void run_open(struct run *r, const struct ops *o, struct model *m, enum kv_type kv, uint32_t threads)
{
	const struct model_shape *s = &m->shape;
	const struct ops_opts oo = {
		.max_batch = 128, .max_seqs = 2, .max_out = 128, .max_ctx = CTX, .threads = threads,
		.kv = { kv, s->layers, s->kv_heads, s->head_dim },
	};
	struct ops_need need;
	struct hearth_err err = { 0 };

	if (o->pack)
		model_each_mat(m, pack_one, (void *)o);
	assert_int_equal(o->plan(s, &oo, &need, &err), 0);
	r->scratch = aligned_alloc(64, (need.scratch + 63) / 64 * 64);
	memset(r->scratch, 0, need.scratch);
	r->kv = calloc(17, kv_page_bytes(&oo.kv));
	r->o = o;
	if (o->open(m, &oo, r->scratch, r->kv, &r->c, &err))
		fail_msg("%s", err.text);
	for (uint32_t i = 0; i < 8; i++) {
		r->page[0][i] = 2 * i;
		r->page[1][i] = 15 - 2 * i;
	}
}

static void run_close(struct run *r)
{
	r->o->close(r->c);
	free(r->scratch);
	free(r->kv);
}

/* A step of up to two sessions; the logits of all rows. */
static void step(struct run *r, const int32_t *tok, const uint32_t n[2], uint32_t pos[2], float *logits)
{
	struct batch_seq seq[2];
	uint32_t out[128], total = 0, k = 0;
	const uint32_t vocab = r->c->model->shape.vocab;
	struct hearth_err err = { 0 };

	for (uint32_t i = 0; i < 2; i++) {
		if (!n[i])
			continue;
		seq[k++] = (struct batch_seq){ .first = total, .n = n[i], .pos0 = pos[i], .page = r->page[i] };
		total += n[i];
		pos[i] += n[i];
	}
	for (uint32_t i = 0; i < total; i++)
		out[i] = i;
	if (r->o->forward(r->c, &(struct batch){ .n = total, .token = tok, .n_seq = k, .seq = seq, .n_out = total, .out = out }, &err))
		fail_msg("%s", err.text);
	for (uint32_t i = 0; i < total; i++) {
		float *l;

		assert_int_equal(r->o->logits(r->c, i, &l, &err), 0);
		memcpy(logits + (size_t)i * vocab, l, vocab * sizeof(float));
	}
}

/* Root mean square of the difference, as a share of the logits' spread. */
static double apart(const float *a, const float *b, size_t n)
{
	double d = 0, s = 0;

	for (size_t i = 0; i < n; i++) {
		d += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
		s += (double)b[i] * b[i];
	}
	return sqrt(d / s);
}

static const uint32_t steps[][2] = {
	{ 1, 0 }, { 7, 0 }, { 1, 1 }, { 16, 0 }, { 1, 17 }, { 33, 1 }, { 1, 1 }, { 70, 5 }, { 1, 64 },
};

static void compare(const struct synth_opts *so, const char *backend, enum kv_type kv, uint32_t threads,
		    double bound)
{
	const struct ops *o = ops_by_name(backend);
	struct loaded a, b;
	struct run ra, rb;
	uint32_t pa[2] = { 0 }, pb[2] = { 0 };
	uint64_t seed = 17;
	int32_t tok[128];
	float *la, *lb;
	double worst = 0;

	assert_int_equal(synth_model(in_dir("m.gguf"), so), 0);
	load(&a, in_dir("m.gguf"));
	load(&b, in_dir("m.gguf"));
	run_open(&ra, &ops_ref, a.m, kv, 1);
	run_open(&rb, o, b.m, kv, threads);
	la = malloc(128ul * a.m->shape.vocab * 4);
	lb = malloc(128ul * a.m->shape.vocab * 4);
	for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
		const uint32_t n = steps[s][0] + steps[s][1];

		for (uint32_t i = 0; i < n; i++)
			tok[i] = (int32_t)(synth_rand(&seed) % a.m->shape.vocab);
		step(&ra, tok, steps[s], pa, la);
		step(&rb, tok, steps[s], pb, lb);
		worst = fmax(worst, apart(lb, la, (size_t)n * a.m->shape.vocab));
	}
	if (!(worst < bound))
		fail_msg("%s on %s %s, KV %d: %.5f from the oracle, bound %.5f", so->arch, o->name,
			 quant_name(so->type), kv, worst, bound);
	run_close(&ra);
	run_close(&rb);
	unload(&a);
	unload(&b);
	free(la);
	free(lb);
}

static struct synth_opts shape(const char *arch, uint32_t type, uint32_t embd, bool tied)
{
	struct synth_opts o;

	synth_defaults(&o);
	o.arch = arch;
	o.d_model = 256;
	o.d_ff = 512;
	o.heads = 6;
	o.kv_heads = 2;
	o.head_dim = 64;
	o.type = type;
	o.embd_type = embd;
	o.tied = tied;
	/* Rows of the output projection are 384 long: no whole K-block. */
	if (type >= QUANT_Q2_K && type <= QUANT_Q6_K)
		o.heads = 8;
	return o;
}

/*
 * Activations are rounded to int8 by 32, which costs about half a percent of
 * the logits' spread; a wrong kernel costs tens. Float weights are exact but for
 * the sums' order, which can move an int8 KV value by one step.
 */
static void every_type(void **state)
{
	static const uint32_t types[] = {
		QUANT_F32, QUANT_F16, QUANT_BF16, QUANT_Q4_0, QUANT_Q4_1, QUANT_Q5_0, QUANT_Q5_1,
		QUANT_Q8_0, QUANT_Q4_K, QUANT_Q5_K, QUANT_Q6_K,
	};
	static const char *const backends[] = { "plain", "avx2", "avx512", "neon" };

	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		const bool exact = types[t] <= QUANT_F16 || types[t] == QUANT_BF16;
		struct synth_opts o = shape(t % 2 ? "qwen2" : "qwen3", types[t],
					    exact ? types[t] : t % 3 ? QUANT_Q6_K : QUANT_Q8_0, t % 3);

		for (size_t b = 0; b < 4; b++)
			if (ops_by_name(backends[b]))
				compare(&o, backends[b], t % 2 ? KV_F16 : KV_I8, 1 + (uint32_t)b,
					exact ? (t % 2 ? 5e-4 : 3e-3) : 0.03);
	}
}

/* Types without panels, and a vocabulary that is no multiple of 16, go row by row. */
static void slow_types(void **state)
{
	struct synth_opts o = shape("qwen3", QUANT_IQ4_NL, QUANT_F32, false);

	compare(&o, "cpu", KV_F16, 2, 5e-4);
	assert_int_not_equal(synth_vocab_size() % 16, 0);
}

static void threads(void **state)
{
	struct synth_opts o = shape("qwen3", QUANT_Q4_K, QUANT_Q6_K, true);

	for (uint32_t n = 1; n <= 5; n++)
		compare(&o, "cpu", KV_I8, n, 0.03);
}

/* What a row gives depends neither on the rows beside it nor on the number of threads. */
static void rows_do_not_matter(void **state)
{
	struct synth_opts o = shape("qwen3", QUANT_Q4_K, QUANT_Q6_K, true);
	static const uint32_t once[2] = { 40, 0 }, one[2] = { 1, 0 };
	struct loaded a, b;
	struct run ra, rb;
	uint32_t pa[2] = { 0 }, pb[2] = { 0 }, vocab;
	int32_t tok[40];
	uint64_t seed = 5;
	float *la, *lb;

	assert_int_equal(synth_model(in_dir("m.gguf"), &o), 0);
	load(&a, in_dir("m.gguf"));
	load(&b, in_dir("m.gguf"));
	vocab = a.m->shape.vocab;
	run_open(&ra, ops_cpu(), a.m, KV_I8, 3);
	run_open(&rb, ops_cpu(), b.m, KV_I8, 1);
	la = malloc(40ul * vocab * 4);
	lb = malloc(vocab * 4);
	for (uint32_t i = 0; i < 40; i++)
		tok[i] = (int32_t)(synth_rand(&seed) % vocab);
	step(&ra, tok, once, pa, la);
	for (uint32_t i = 0; i < 40; i++) {
		step(&rb, tok + i, one, pb, lb);
		/* Attention sums in another order for one row than for many. */
		assert_true(apart(lb, la + (size_t)i * vocab, vocab) < 0.01);
	}
	run_close(&ra);
	run_close(&rb);
	unload(&a);
	unload(&b);
	free(la);
	free(lb);
}

static void interrupt(void **state)
{
	struct synth_opts o = shape("qwen2", QUANT_Q8_0, QUANT_Q8_0, true);
	struct batch_seq seq = { .n = 4 };
	const int32_t tok[4] = { 1, 2, 3, 4 };
	const uint32_t out = 3;
	struct batch b = { .n = 4, .token = tok, .n_seq = 1, .seq = &seq, .n_out = 1, .out = &out };
	struct hearth_err err = { 0 };
	struct loaded l;
	struct run r;

	assert_int_equal(synth_model(in_dir("m.gguf"), &o), 0);
	load(&l, in_dir("m.gguf"));
	run_open(&r, ops_cpu(), l.m, KV_I8, 2);
	seq.page = r.page[0];
	r.o->interrupt(r.c);
	assert_int_equal(r.o->forward(r.c, &b, &err), -ECANCELED);
	assert_int_equal(r.o->forward(r.c, &b, &err), 0);
	run_close(&r);
	unload(&l);
}

/* -- refusals ------------------------------------------------------------------ */

struct key {
	const char *name;
	int kind;              /* 0 u32, 1 f32, 2 string */
	double v;
	const char *s;
};

struct tensor {
	const char *name;
	uint64_t ne0, ne1;
	uint32_t type;
};

static const struct key good_keys[] = {
	{ "general.architecture", 2, 0, "qwen3" },
	{ "qwen3.block_count", 0, 1, NULL },
	{ "qwen3.context_length", 0, 64, NULL },
	{ "qwen3.embedding_length", 0, 64, NULL },
	{ "qwen3.feed_forward_length", 0, 96, NULL },
	{ "qwen3.attention.head_count", 0, 2, NULL },
	{ "qwen3.attention.head_count_kv", 0, 1, NULL },
	{ "qwen3.attention.key_length", 0, 32, NULL },
	{ "qwen3.attention.value_length", 0, 32, NULL },
	{ "qwen3.attention.layer_norm_rms_epsilon", 1, 1e-6, NULL },
	{ "qwen3.rope.freq_base", 1, 1e6, NULL },
};

static const struct tensor good_tensors[] = {
	{ "token_embd.weight", 64, 10, QUANT_F32 },
	{ "output_norm.weight", 64, 0, QUANT_F32 },
	{ "blk.0.attn_norm.weight", 64, 0, QUANT_F32 },
	{ "blk.0.attn_q.weight", 64, 64, QUANT_F32 },
	{ "blk.0.attn_k.weight", 64, 32, QUANT_F32 },
	{ "blk.0.attn_v.weight", 64, 32, QUANT_F32 },
	{ "blk.0.attn_q_norm.weight", 32, 0, QUANT_F32 },
	{ "blk.0.attn_k_norm.weight", 32, 0, QUANT_F32 },
	{ "blk.0.attn_output.weight", 64, 64, QUANT_F32 },
	{ "blk.0.ffn_norm.weight", 64, 0, QUANT_F32 },
	{ "blk.0.ffn_gate.weight", 64, 96, QUANT_F32 },
	{ "blk.0.ffn_up.weight", 64, 96, QUANT_F32 },
	{ "blk.0.ffn_down.weight", 96, 64, QUANT_F32 },
};

#define N_KEYS (sizeof(good_keys) / sizeof(good_keys[0]))
#define N_TENSORS (sizeof(good_tensors) / sizeof(good_tensors[0]))

/* The good file with one key and one tensor replaced, left out (name NULL) or added. */
static int bind_with(const struct key *k, int key_at, const struct tensor *t, int tensor_at, struct hearth_err *err)
{
	struct key keys[N_KEYS + 1];
	struct tensor tens[N_TENSORS + 1];
	uint32_t nk = 0, nt = 0;
	struct synth_buf b = { 0 };
	uint64_t off = 0;
	struct model *m;
	struct gguf *g;
	int r;

	for (int i = 0; i < (int)N_KEYS; i++) {
		if (i != key_at)
			keys[nk++] = good_keys[i];
		else if (k->name)
			keys[nk++] = *k;
	}
	if (k && key_at == -1)
		keys[nk++] = *k;
	for (int i = 0; i < (int)N_TENSORS; i++) {
		if (i != tensor_at)
			tens[nt++] = good_tensors[i];
		else if (t->name)
			tens[nt++] = *t;
	}
	if (t && tensor_at == -1)
		tens[nt++] = *t;
	synth_head(&b, 3, nt, nk);
	for (uint32_t i = 0; i < nk; i++) {
		if (keys[i].kind == 0)
			synth_kv_u32(&b, keys[i].name, (uint32_t)keys[i].v);
		else if (keys[i].kind == 1)
			synth_kv_f32(&b, keys[i].name, (float)keys[i].v);
		else
			synth_kv_str(&b, keys[i].name, keys[i].s);
	}
	for (uint32_t i = 0; i < nt; i++) {
		const uint64_t ne[2] = { tens[i].ne0, tens[i].ne1 };
		uint64_t row;

		synth_tensor(&b, tens[i].name, tens[i].ne1 ? 2 : 1, ne, tens[i].type, off);
		if (quant_row_bytes(tens[i].type, ne[0], &row))
			row = ne[0];
		off += (row * (ne[1] ? ne[1] : 1) + 31) / 32 * 32;
	}
	synth_align(&b, 32);
	err->text[0] = 0;
	r = gguf_parse(b.p, b.n, b.n + off, &g, err);
	if (!r) {
		r = model_bind(g, &m, err);
		if (!r)
			model_free(m);
		gguf_close(g);
	}
	free(b.p);
	return r;
}

static void refusals(void **state)
{
	static const struct {
		struct key k;
		int key_at;              /* -1 adds, -2 leaves the keys alone */
		struct tensor t;
		int tensor_at;
		const char *says;
	} bad[] = {
		{ { "general.architecture", 2, 0, "gemma4" }, 0, { 0 }, -2, "\"gemma4\" is not supported" },
		{ { "qwen3.block_count", 0, 0, NULL }, 1, { 0 }, -2, "block_count" },
		{ { "qwen3.block_count", 0, 100000, NULL }, 1, { 0 }, -2, "block_count" },
		{ { "qwen3.block_count", 0, 2, NULL }, 1, { 0 }, -2, "blk.1.attn_norm.weight" },
		{ { "qwen3.embedding_length", 0, 65, NULL }, 3, { 0 }, -2, "token_embd.weight" },
		{ { "qwen3.feed_forward_length", 0, 4000000000.0, NULL }, 4, { 0 }, -2, "feed_forward_length" },
		{ { "qwen3.attention.head_count", 0, 3, NULL }, 5, { 0 }, -2, "attn_q.weight" },
		{ { "qwen3.attention.head_count_kv", 0, 4, NULL }, 6, { 0 }, -2, "evenly" },
		{ { "qwen3.attention.key_length", 0, 48, NULL }, 7, { 0 }, -2, "widths" },
		{ { "qwen3.attention.key_length", 0, 1, NULL }, 7, { 0 }, -2, "key_length" },
		{ { "qwen3.attention.layer_norm_rms_epsilon", 1, 0, NULL }, 9, { 0 }, -2, "epsilon is 0; a number over 0 and under 1" },
		{ { "qwen3.attention.layer_norm_rms_epsilon", 1, NAN, NULL }, 9, { 0 }, -2, "epsilon" },
		{ { "qwen3.rope.freq_base", 1, -5, NULL }, 10, { 0 }, -2, "freq_base is -5; a number over 1" },
		{ { "qwen3.rope.dimension_count", 0, 16, NULL }, -1, { 0 }, -2, "whole head" },
		{ { "qwen3.rope.scaling.type", 2, 0, "yarn" }, -1, { 0 }, -2, "yarn" },
		{ { "qwen3.rope.scaling.factor", 1, 4, NULL }, -1, { 0 }, -2, "rotary scaling" },
		{ { "qwen3.attention.sliding_window", 0, 32, NULL }, -1, { 0 }, -2, "sliding window" },
		{ { 0 }, -2, { "token_embd.weight", 64, 0, QUANT_F32 }, 0, "token_embd.weight" },
		{ { 0 }, -2, { "blk.0.attn_norm.weight", 64, 0, QUANT_F16 }, 2, "F32 is needed" },
		{ { 0 }, -2, { "blk.0.attn_k.weight", 64, 64, QUANT_F32 }, 4, "blk.0.attn_k.weight" },
		{ { 0 }, -2, { "blk.0.attn_k.weight", 64, 32, QUANT_I32 }, 4, "I32" },
		{ { 0 }, -2, { "blk.0.attn_q_norm.weight", 64, 0, QUANT_F32 }, 6, "attn_q_norm" },
		{ { 0 }, -2, { "blk.0.ffn_down.weight", 64, 96, QUANT_F32 }, 12, "ffn_down" },
		{ { 0 }, -2, { "blk.0.attn_q.bias", 64, 0, QUANT_F32 }, -1, "blk.0.attn_q.bias is not part" },
		{ { 0 }, -2, { "blk.1.attn_norm.weight", 64, 0, QUANT_F32 }, -1, "blk.1.attn_norm.weight is not part" },
		{ { 0 }, -2, { "rope_freqs.weight", 16, 0, QUANT_F32 }, -1, "rope_freqs.weight is not part" },
	};
	struct hearth_err err = { 0 };

	assert_int_equal(bind_with(NULL, -2, NULL, -2, &err), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const int r = bind_with(bad[i].key_at == -2 ? NULL : &bad[i].k, bad[i].key_at,
					bad[i].tensor_at == -2 ? NULL : &bad[i].t, bad[i].tensor_at, &err);

		if (r >= 0 || !strstr(err.text, bad[i].says))
			fail_msg("case %zu (%s): %d, \"%s\"", i, bad[i].says, r, err.text);
	}
	/* Each key that is needed, and each tensor, missing alone. */
	for (int i = 1; i < (int)N_KEYS; i++) {
		const struct key none = { 0 };
		const int r = bind_with(&none, i, NULL, -2, &err);

		/* head_count_kv, key and value length and freq_base have defaults. */
		if (i == 10 || i == 7 || i == 8)
			assert_int_equal(r, 0);
		else
			assert_true(r < 0);
	}
	for (int i = 0; i < (int)N_TENSORS; i++) {
		const struct tensor none = { 0 };

		assert_true(bind_with(NULL, -2, &none, i, &err) < 0);
		assert_non_null(strstr(err.text, good_tensors[i].name));
	}
}

static void backends(void **state)
{
	const struct ops *o;
	struct hearth_err err = { 0 };
	struct ops_need need;
	const struct model_shape s = { .layers = 1, .d = 64, .ff = 64, .heads = 1, .kv_heads = 1, .head_dim = 32 };

	assert_null(ops_by_name("none"));
	assert_ptr_equal(ops_by_name("ref"), &ops_ref);
	assert_ptr_equal(ops_by_name("cpu"), ops_cpu());
	assert_int_equal(ops_cpu()->plan(&s, &(struct ops_opts){ .max_batch = 1, .max_seqs = 1, .threads = 0 },
					 &need, &err), -EINVAL);
	if (ops_cuda(&o, &err))
		assert_true(strlen(err.text) > 10);
}

static int setup(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	unlink(in_dir("m.gguf"));
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(backends),
		cmocka_unit_test(refusals),
		cmocka_unit_test(every_type),
		cmocka_unit_test(slow_types),
		cmocka_unit_test(threads),
		cmocka_unit_test(rows_do_not_matter),
		cmocka_unit_test(interrupt),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name(__FILE__, tests, setup, teardown);
}
