// SPDX-License-Identifier: MIT
/*
 * Files of real geometry with random weights (tests/gen/random_gguf.c) and the home
 * models against what llama.cpp says of them (tests/vectors/llama_geometry.h), on the CPU backend and
 * on CUDA where that is.
 *
 * Bounds: log-probabilities no farther, root mean square, than llama.cpp's CUDA
 * backend is from its CPU backend, with KV in f16 for f16 and in q8_0 for int8;
 * the same best token wherever the second is farther behind than NEAR times that.
 *
 * usage: test_geometry cpu|cuda FILE.gguf NAME [TEXT]
 * TEXT: lines "token gap", what llama.cpp wrote just now after the first 32 tokens
 * (tests/gpu/text.py); only that is looked at.
 */
#include "tests/gpu/model.h"
#include "tests/vectors/llama_geometry.h"

enum { PLACES = LLAMA_GEOMETRY_N - 1, CHUNK = 64 };
static int32_t token[LLAMA_GEOMETRY_N];   /* of this vocabulary */
#define NEAR 5   /* the widest gap that was seen to change sides is 3.4 of it */

struct result {
	double sum, top_sum, widest;   /* squares; the widest gap with another best */
	uint32_t n, tops, differ, wrong;
};

static void choose(struct result *r, const float *logits, uint32_t vocab, int32_t want, float gap, double tie)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < vocab; i++)
		if (logits[i] > logits[best])
			best = i;
	if ((int32_t)best == want)
		return;
	r->differ++;
	r->widest = fmax(r->widest, gap);
	r->wrong += gap > tie;
}

/* @n tokens at @pos, logits of each; every row to @row. */
static void rows(struct runner *r, const int32_t *tok, uint32_t n, uint32_t pos, const float **row)
{
	struct hearth_err err = { 0 };
	uint32_t page[32], out[CHUNK];
	struct batch_seq seq = { 0, n, pos, page };
	struct batch b = { .n = n, .token = tok, .n_seq = 1, .seq = &seq, .n_out = n, .out = out };

	for (uint32_t i = 0; i < 32; i++)
		page[i] = i;
	for (uint32_t i = 0; i < n; i++)
		out[i] = i;
	if (r->ops->forward(r->c, &b, &err))
		die_err("step", -1, &err);
	for (uint32_t i = 0; i < n; i++) {
		float *l;

		if (r->ops->logits(r->c, i, &l, &err))
			die_err("logits", -1, &err);
		row[i] = l;
	}
}

/* The 256 places, @step tokens at a time. */
static void places(struct runner *r, const struct llama_geometry *g, uint32_t step, double tie, struct result *ret)
{
	const uint32_t vocab = r->m->shape.vocab;
	const float *row[CHUNK];

	memset(ret, 0, sizeof(*ret));
	for (uint32_t t = 0; t < PLACES; t += step) {
		rows(r, token + t, step, t, row);
		for (uint32_t i = t; i < t + step; i++) {
			const float *l = row[i - t];
			double z = log_z(l, vocab), d = l[token[i + 1]] - z - g->lp[i];

			ret->sum += d * d;
			ret->n++;
			choose(ret, l, vocab, g->best[i], g->gap[i], tie);
			for (uint32_t k = 0; i % 16 == 15 && k < 8; k++) {
				d = l[g->top[i / 16][k].id] - z - g->top[i / 16][k].lp;
				ret->top_sum += d * d;
				ret->tops++;
			}
		}
	}
}

/* llama.cpp's own text: is each next token also ours? One row a step, as a session decodes. */
static void follow(struct runner *r, const int32_t *text, const float *gap, uint32_t n, double tie, struct result *ret)
{
	const float *row[CHUNK];

	memset(ret, 0, sizeof(*ret));
	rows(r, token, LLAMA_GEOMETRY_PROMPT, 0, row);
	row[0] = row[LLAMA_GEOMETRY_PROMPT - 1];
	for (uint32_t i = 0; i < n; i++) {
		choose(ret, row[0], r->m->shape.vocab, text[i], gap[i], tie);
		if (i + 1 < n)
			rows(r, text + i, 1, LLAMA_GEOMETRY_PROMPT + i, row);
	}
}

static uint32_t read_text(const char *path, int32_t *text, float *gap, uint32_t most)
{
	FILE *f = fopen(path, "r");
	uint32_t n = 0;

	while (f && n < most && fscanf(f, "%d %f", &text[n], &gap[n]) == 2)
		n++;
	if (f)
		fclose(f);
	return n;
}

int main(int argc, char **argv)
{
	const struct llama_geometry *g = NULL;
	struct hearth_err err = { 0 };
	const struct ops *ops = ops_cpu();
	struct loaded l;
	bool home;

	for (size_t i = 0; argc >= 4 && i < sizeof(llama_geometry) / sizeof(llama_geometry[0]); i++)
		if (!strcmp(argv[3], llama_geometry[i].name))
			g = &llama_geometry[i];
	if (!g) {
		fprintf(stderr, "usage: test_geometry cpu|cuda FILE.gguf NAME [TEXT]\n");
		return 2;
	}
	if (!strcmp(argv[1], "cuda") && ops_cuda(&ops, &err)) {
		printf("# skip reason: %s\nok 1 - %s # SKIP %s\n1..1\n", err.text, g->name, err.text);
		return 0;
	}
	l = load_model(argv[2], ops->pack ? ops : NULL);
	home = !strncmp(g->name, "home", 4);
	if (!home && l.m->shape.vocab <= (uint32_t)llama_geometry_token[0])
		die_err("not a file of random_gguf", -1, &err);
	for (int i = 0; i < LLAMA_GEOMETRY_N; i++)
		token[i] = llama_geometry_token[i] % (int32_t)l.m->shape.vocab;
	for (int kv = 0; kv < 2; kv++) {
		const double spread = kv ? g->cuda_q8 : g->cuda_f16, tie = NEAR * spread;
		const double top = g->top_f16 == 0 ? spread : kv ? g->top_q8 : g->top_f16;
		const char *const name = kv ? "int8" : "f16";
		struct runner r;
		struct result x, y;

		if (run_open(&r, ops, l.m, load_bytes(l.l), CHUNK, 1, 512, kv ? KV_I8 : KV_F16, CHUNK, &err))
			die_err("open", -1, &err);
		if (argc > 4) {
			int32_t text[256];
			float gap[256];
			uint32_t n = read_text(argv[4], text, gap, 256);

			follow(&r, text, gap, n, tie, &y);
			tap(n && !y.wrong, "%s, %s, %s KV: llama.cpp's text of %u tokens but where two were nearly tied (%u, ahead by %.3f at most)",
			    g->name, ops->name, name, n, y.differ, y.widest);
			run_close(&r);
			continue;
		}
		places(&r, g, CHUNK, tie, &x);
		tap(sqrt(x.sum / x.n) < spread && sqrt(x.top_sum / x.tops) < top && !x.wrong,
		    "%s, %s, %s KV: from llama.cpp %.4f, its eight best %.4f (its CUDA from its CPU %.4f, %.4f); another best token at %u of %u, there ahead by %.3f at most",
		    g->name, ops->name, name, sqrt(x.sum / x.n), sqrt(x.top_sum / x.tops), spread, top, x.differ, x.n, x.widest);
		if (!strcmp(argv[1], "cuda") && kv) {
			places(&r, g, 1, tie, &y);
			tap(sqrt(y.sum / y.n) < spread && sqrt(y.top_sum / y.tops) < top && !y.wrong,
			    "%s, %s, %s KV, one by one: %.4f, %.4f; another best token at %u of %u, there ahead by %.3f at most",
			    g->name, ops->name, name, sqrt(y.sum / y.n), sqrt(y.top_sum / y.tops), y.differ, y.n, y.widest);
		}
		follow(&r, g->text, g->text_gap, LLAMA_GEOMETRY_TEXT, tie, &y);
		tap(!y.wrong, "%s, %s, %s KV: llama.cpp's text of %d tokens but where two were nearly tied (%u, ahead by %.3f at most)",
		    g->name, ops->name, name, LLAMA_GEOMETRY_TEXT, y.differ, y.widest);
		run_close(&r);
	}
	unload(&l);
	return tap_end();
}
