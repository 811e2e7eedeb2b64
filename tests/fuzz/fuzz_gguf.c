// SPDX-License-Identifier: MIT
/*
 * Any bytes as a GGUF header. One that is accepted must keep what gguf.h
 * promises, and must be safe to look at in every way, also as a tokenizer and
 * a chat template.
 */
#include "seeds.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/gguf.h"
#include "gguf/quant.h"
#include "token/chat.h"
#include "token/tokenizer.h"
#include "tests/unit/synth.h"

#define MUST(x) do { if (!(x)) abort(); } while (0)

static void look_at_keys(const struct gguf *g)
{
	for (uint64_t i = 0; i < gguf_n_keys(g); i++) {
		enum gguf_value_type type;
		struct gguf_str key, s;
		struct gguf_array a;
		char name[300];
		uint64_t u;
		int64_t v;
		double f;
		bool b;

		MUST(gguf_key_at(g, i, &key, &type));
		if (key.n >= sizeof(name))
			continue;
		memcpy(name, key.s, key.n);
		name[key.n] = 0;
		gguf_u64(g, name, &u, NULL);
		gguf_i64(g, name, &v, NULL);
		gguf_f64(g, name, &f, NULL);
		gguf_bool(g, name, &b, NULL);
		gguf_u32_each(g, name, 2, (uint32_t[2]){ 0, 0 }, NULL);
		if (gguf_str(g, name, &s, NULL) == 0 && s.n)
			MUST(s.s[0] == s.s[0] && s.s[s.n - 1] == s.s[s.n - 1]);
		if (gguf_arr(g, name, &a, NULL) < 0 || !a.n)
			continue;
		if (a.type == GGUF_STR)
			MUST(!a.str[a.n - 1].n || a.str[a.n - 1].s[0] == a.str[a.n - 1].s[0]);
		else if (gguf_arr_f64(&a, a.n - 1, &f))
			MUST(f == f || f != f);
	}
}

static void look_at_tensors(const struct gguf *g, uint64_t size)
{
	for (uint32_t i = 0; i < gguf_n_tensors(g); i++) {
		const struct gguf_tensor *t = gguf_tensor_at(g, i);
		uint64_t row;

		MUST(gguf_tensor(g, t->name) == t);
		MUST(t->n_dims >= 1 && t->n_dims <= GGUF_MAX_DIMS && t->n_elems > 0);
		MUST(t->offset >= gguf_part_data(g, 0) && t->offset + t->nbytes <= size);
		MUST(quant_row_bytes(t->type, t->ne[0], &row) == 0);
		MUST(row * (t->n_elems / t->ne[0]) == t->nbytes);
	}
}

static void look_at_words(const struct gguf *g)
{
	static const char text[] = "turn on the light<|im_end|> \xf0\x9f\x8f\xa0 3.5";
	struct tok_stream *s = NULL;
	struct tok_ids ids = { 0 };
	struct chat *c = NULL;
	struct tok *t = NULL;
	size_t n;

	if (chat_open(g, &c, NULL) == 0)
		chat_free(c);
	if (tok_open(g, &t, NULL) < 0)
		return;
	if (tok_encode(t, text, sizeof(text) - 1, TOK_SPECIAL | TOK_BOS_EOS, NULL, 0, &ids) == 0 &&
	    tok_stream_open(t, true, &s) == 0) {
		for (size_t i = 0; i < ids.n; i++) {
			MUST(ids.id[i] >= 0 && (size_t)ids.id[i] < tok_count(t));
			tok_stream_push(s, ids.id[i], &n);
		}
		tok_stream_end(s, &n);
	}
	tok_stream_free(s);
	tok_ids_free(&ids);
	tok_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hearth_err err = { 0 };
	struct gguf *g = NULL;
	int r = gguf_parse(data, size, size, &g, &err);

	if (r < 0) {
		MUST(!g && err.code == r && err.text[0]);
		return 0;
	}
	look_at_keys(g);
	look_at_tensors(g, size);
	look_at_words(g);
	gguf_close(g);
	return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct synth_buf b = { 0 }, kv = { 0 };
	static const char *const toks[] = { "a", "b", "ab", "<|im_end|>" };

	synth_head(&b, 3, 2, 2);
	synth_kv_str(&b, "general.architecture", "qwen3");
	synth_kv_u32(&b, "general.alignment", 32);
	synth_tensor(&b, "a", 2, (uint64_t[]){ 32, 3 }, QUANT_Q8_0, 0);
	synth_tensor(&b, "b", 1, (uint64_t[]){ 5 }, QUANT_F32, 128);
	synth_align(&b, 32);
	synth_put(&b, NULL, 128 + 20);
	fuzz_seed(*argc, *argv, "tensors", b.p, b.n);

	b.n = 0;
	synth_head(&b, 2, 0, 8);
	synth_kv_str(&b, "tokenizer.ggml.model", "gpt2");
	synth_kv_str(&b, "tokenizer.ggml.pre", "qwen2");
	synth_str(&b, "tokenizer.ggml.tokens");
	synth_u32(&b, GGUF_ARR);
	synth_u32(&b, GGUF_STR);
	synth_u64(&b, 4);
	for (int i = 0; i < 4; i++)
		synth_str(&b, toks[i]);
	synth_str(&b, "tokenizer.ggml.token_type");
	synth_u32(&b, GGUF_ARR);
	synth_u32(&b, GGUF_I32);
	synth_u64(&b, 4);
	for (uint32_t i = 0; i < 4; i++)
		synth_u32(&b, i == 3 ? 3 : 1);
	synth_str(&b, "tokenizer.ggml.merges");
	synth_u32(&b, GGUF_ARR);
	synth_u32(&b, GGUF_STR);
	synth_u64(&b, 1);
	synth_str(&b, "a b");
	synth_kv_bool(&b, "tokenizer.ggml.add_bos_token", true);
	synth_kv_u32(&b, "tokenizer.ggml.bos_token_id", 3);
	synth_kv_str(&b, "tokenizer.chat_template",
		     "{%- for m in messages %}{{- '<|im_start|>' + m['role'] }}{%- endfor %}");
	fuzz_seed(*argc, *argv, "words", b.p, b.n);

	b.n = 0;
	synth_head(&b, 3, 0, synth_vocab(&kv));
	synth_put(&b, kv.p, kv.n);
	fuzz_seed(*argc, *argv, "vocabulary", b.p, b.n);
	free(b.p);
	free(kv.p);
	return 0;
}
