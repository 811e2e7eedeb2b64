// SPDX-License-Identifier: MIT
/*
 * Prints what llama.cpp says of a file that random_gguf wrote, or of a home model, as
 * an entry of tests/vectors/llama_geometry.h: log-probabilities of the tokens there
 * (modulo the vocabulary), the best token of each place and how far it is ahead, the
 * eight best of every 16th, and the text that it goes on with after the first 32, the
 * best token each time. Its CPU backend, KV in f16, weights as they are repacked by
 * default; with cuda and q8_0, what .cuda_f16 and .cuda_q8 are made of.
 *
 * c++ -std=c++17 -I. -ILLAMA/include -ILLAMA/ggml/include tests/gen/llama_vectors.cpp -LLLAMA/build/bin -lllama -lggml -lggml-base
 * usage: llama_vectors MODEL.gguf NAME [THREADS [cpu|cuda [f16|q8_0]]]
 */
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "llama.h"

#define LLAMA_GEOMETRY_TOKENS
#include "tests/vectors/llama_geometry.h"

static std::vector<double> log_softmax(const float *l, int n)
{
	double m = *std::max_element(l, l + n), z = 0;
	std::vector<double> p(n);

	for (int i = 0; i < n; i++)
		z += std::exp(l[i] - m);
	for (int i = 0; i < n; i++)
		p[i] = l[i] - m - std::log(z);
	return p;
}

static void best_two(const std::vector<double> &p, int *ret_best, double *ret_gap)
{
	int a = p[0] >= p[1] ? 0 : 1, b = 1 - a;

	for (int i = 2; i < (int)p.size(); i++) {
		if (p[i] > p[a]) {
			b = a;
			a = i;
		} else if (p[i] > p[b]) {
			b = i;
		}
	}
	*ret_best = a;
	*ret_gap = p[a] - p[b];
}

template <typename V> static void print(const char *what, const V &v, const char *format)
{
	printf("	  .%s = {", what);
	for (size_t i = 0; i < v.size(); i++) {
		printf(i % 16 ? " " : "\n		");
		printf(format, v[i]);
		printf(",");
	}
	printf("\n	  },\n");
}

int main(int argc, char **argv)
{
	const int N = LLAMA_GEOMETRY_N;
	std::vector<double> lp, gap, text_gap;
	std::vector<int> best, text;

	llama_log_set([](ggml_log_level l, const char *t, void *) { if (l >= GGML_LOG_LEVEL_ERROR) fputs(t, stderr); }, nullptr);
	auto mp = llama_model_default_params();
	ggml_backend_dev_t none[1] = { nullptr };
	if (argc > 4 && !strcmp(argv[4], "cuda")) {
		mp.n_gpu_layers = 999;
	} else {
		mp.n_gpu_layers = 0;
		mp.devices = none;
	}
	auto *m = argc > 2 ? llama_model_load_from_file(argv[1], mp) : nullptr;
	if (!m)
		return fprintf(stderr, "usage: llama_vectors MODEL.gguf NAME [THREADS [cpu|cuda [f16|q8_0]]]\n"), 1;
	auto cp = llama_context_default_params();
	cp.n_ctx = cp.n_batch = cp.n_ubatch = 512;
	cp.n_threads = cp.n_threads_batch = argc > 3 ? atoi(argv[3]) : 2;
	cp.type_k = cp.type_v = argc > 5 && !strcmp(argv[5], "q8_0") ? GGML_TYPE_Q8_0 : GGML_TYPE_F16;
	cp.flash_attn_type = argc > 4 ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_AUTO;
	auto *c = llama_init_from_model(m, cp);
	if (!c)
		return 1;
	const int v = llama_vocab_n_tokens(llama_model_get_vocab(m));
	auto b = llama_batch_init(N, 0, 1);
	auto put = [&](int i, int tok, int pos, bool logits) {
		b.token[i] = tok;
		b.pos[i] = pos;
		b.n_seq_id[i] = 1;
		b.seq_id[i][0] = 0;
		b.logits[i] = logits;
	};

	b.n_tokens = N;
	for (int i = 0; i < N; i++)
		put(i, llama_geometry_token[i] % v, i, true);
	if (llama_decode(c, b))
		return 1;
	std::vector<std::vector<std::pair<int, double>>> top;
	for (int i = 0; i + 1 < N; i++) {
		auto p = log_softmax(llama_get_logits_ith(c, i), v);
		int at;
		double ahead;

		best_two(p, &at, &ahead);
		lp.push_back(p[llama_geometry_token[i + 1] % v]);
		best.push_back(at);
		gap.push_back(ahead);
		if (i % 16 == 15) {
			std::vector<int> id(v);

			std::iota(id.begin(), id.end(), 0);
			std::partial_sort(id.begin(), id.begin() + 8, id.end(), [&](int x, int y) { return p[x] > p[y]; });
			top.emplace_back();
			for (int k = 0; k < 8; k++)
				top.back().emplace_back(id[k], p[id[k]]);
		}
	}
	llama_memory_clear(llama_get_memory(c), true);
	b.n_tokens = LLAMA_GEOMETRY_PROMPT;
	for (int i = 0; i < LLAMA_GEOMETRY_PROMPT; i++)
		put(i, llama_geometry_token[i] % v, i, i + 1 == LLAMA_GEOMETRY_PROMPT);
	for (int i = 0; i < LLAMA_GEOMETRY_TEXT; i++) {
		int at;
		double ahead;

		if (llama_decode(c, b))
			return 1;
		best_two(log_softmax(llama_get_logits_ith(c, -1), v), &at, &ahead);
		text.push_back(at);
		text_gap.push_back(ahead);
		b.n_tokens = 1;
		put(0, at, LLAMA_GEOMETRY_PROMPT + i, true);
	}
	printf("	{ .name = \"%s\",\n", argv[2]);
	print("lp", lp, "%.4ff");
	print("best", best, "%d");
	print("gap", gap, "%.4ff");
	printf("	  .top = {\n");
	for (auto &t : top) {
		printf("		{");
		for (auto &x : t)
			printf(" { %d, %.4ff },", x.first, x.second);
		printf(" },\n");
	}
	printf("	  },\n");
	print("text", text, "%d");
	print("text_gap", text_gap, "%.4ff");
	printf("	},\n");
	return 0;
}
