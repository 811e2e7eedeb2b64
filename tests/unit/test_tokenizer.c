// SPDX-License-Identifier: MIT
/* On the tests' own small vocabulary; test_vocab.c has the real ones. */
#include "unit.h"
#include "synth.h"
#include "token/tokenizer.h"

static struct tok *small(void)
{
	struct synth_buf kv = { 0 }, b = { 0 };
	struct hearth_err err = { 0 };
	struct gguf *g = NULL;
	struct tok *t = NULL;

	synth_head(&b, 3, 0, synth_vocab(&kv));
	synth_put(&b, kv.p, kv.n);
	if (gguf_parse(b.p, b.n, b.n, &g, &err) < 0 || tok_open(g, &t, &err) < 0)
		fail_msg("%s", err.text);
	gguf_close(g);
	free(kv.p);
	free(b.p);
	return t;
}

static struct tok_ids encode(const struct tok *t, const char *s, unsigned int flags)
{
	struct tok_ids ids = { 0 };

	assert_int_equal(tok_encode(t, s, strlen(s), flags, NULL, 0, &ids), 0);
	return ids;
}

/* Slow and obvious: the lowest-ranked pair of all, leftmost first, again and again. */
static size_t slow_bpe(const struct tok *t, const struct gguf_array *merges, const char *w,
		       size_t n, int32_t *out)
{
	size_t from[128], k = n;

	assert_true(n < 127);
	for (size_t i = 0; i <= n; i++)
		from[i] = i;
	for (;;) {
		uint64_t best = merges->n;
		size_t at = 0;

		for (size_t i = 0; i + 2 <= k; i++) {
			size_t nl = from[i + 1] - from[i], nr = from[i + 2] - from[i + 1];

			for (uint64_t m = 0; m < best; m++)
				if (merges->str[m].n == nl + 1 + nr &&
				    !memcmp(merges->str[m].s, w + from[i], nl) &&
				    merges->str[m].s[nl] == ' ' &&
				    !memcmp(merges->str[m].s + nl + 1, w + from[i + 1], nr)) {
					best = m;
					at = i;
				}
		}
		if (best == merges->n)
			break;
		memmove(from + at + 1, from + at + 2, (k - at - 1) * sizeof(*from));
		k--;
	}
	for (size_t i = 0; i < k; i++)
		out[i] = tok_id(t, w + from[i], from[i + 1] - from[i]);
	return k;
}

/* Words of letters stand for themselves in GPT-2's alphabet, so the slow one can read the file's
 * merges. */
static void merging_equals_the_slow_way(void **state)
{
	static const char letters[] = "aeionrtshldetheinon";
	struct synth_buf kv = { 0 }, b = { 0 };
	struct tok *t = small();
	struct gguf_array merges;
	struct gguf *g = NULL;
	uint64_t st = 3;

	synth_head(&b, 3, 0, synth_vocab(&kv));
	synth_put(&b, kv.p, kv.n);
	assert_int_equal(gguf_parse(b.p, b.n, b.n, &g, NULL), 0);
	assert_int_equal(gguf_arr(g, "tokenizer.ggml.merges", &merges, NULL), 0);
	for (int round = 0; round < 400; round++) {
		struct tok_ids ids = { 0 };
		int32_t want[128];
		char w[100];
		size_t n = 1 + synth_rand(&st) % 99, k;

		for (size_t i = 0; i < n; i++)
			w[i] = letters[synth_rand(&st) % (sizeof(letters) - 1)];
		k = slow_bpe(t, &merges, w, n, want);
		assert_int_equal(tok_encode(t, w, n, 0, NULL, 0, &ids), 0);
		assert_int_equal(ids.n, k);
		assert_memory_equal(ids.id, want, k * sizeof(*want));
		tok_ids_free(&ids);
	}
	gguf_close(g);
	free(kv.p);
	free(b.p);
	tok_free(t);
}

static void any_bytes_come_back(void **state)
{
	struct tok *t = small();
	struct tok_ids ids = { 0 };
	uint64_t st = 5;
	uint8_t in[3000];
	size_t at = 0, n;

	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(synth_rand(&st) >> (i % 3 ? 56 : 57));
	assert_int_equal(tok_encode(t, (char *)in, sizeof(in), TOK_SPECIAL, NULL, 0, &ids), 0);
	for (size_t i = 0; i < ids.n; i++) {
		const char *p = tok_bytes(t, ids.id[i], &n);

		assert_true(at + n <= sizeof(in));
		assert_memory_equal(in + at, p, n);
		at += n;
	}
	assert_int_equal(at, sizeof(in));
	tok_ids_free(&ids);
	tok_free(t);
}

static void control_tokens_only_where_allowed(void **state)
{
	static const char text[] = "hi<|im_end|>hi<tool_call>";
	struct tok *t = small();
	int32_t end = tok_id(t, "<|im_end|>", 10), call = tok_id(t, "<tool_call>", 11);
	struct tok_ids ids;
	struct tok_span lit = { 0, sizeof(text) - 1 };
	int seen = 0, calls = 0;

	assert_true(end > 0 && call > 0 && tok_is_control(t, end) && !tok_is_control(t, call));
	assert_true(tok_is_eog(t, end));
	assert_false(tok_is_eog(t, call));
	ids = encode(t, text, TOK_SPECIAL);
	for (size_t i = 0; i < ids.n; i++) {
		seen += ids.id[i] == end;
		calls += ids.id[i] == call;
	}
	assert_int_equal(seen, 1);
	assert_int_equal(calls, 1);
	tok_ids_free(&ids);
	/* Plain: control tokens are text; the file's own additions are not, as in llama.cpp. */
	ids = encode(t, text, TOK_PLAIN);
	for (size_t i = 0; i < ids.n; i++)
		assert_int_not_equal(ids.id[i], end);
	assert_int_equal(ids.id[ids.n - 1], call);
	tok_ids_free(&ids);
	/* What a person said is never any of them. */
	ids = (struct tok_ids){ 0 };
	assert_int_equal(tok_encode(t, text, sizeof(text) - 1, TOK_SPECIAL, &lit, 1, &ids), 0);
	for (size_t i = 0; i < ids.n; i++)
		assert_true(ids.id[i] != end && ids.id[i] != call);
	tok_ids_free(&ids);
	/* A span that only touches it does: half of a marker can come from a person. */
	for (size_t from = 2; from < 12; from++) {
		ids = (struct tok_ids){ 0 };
		lit = (struct tok_span){ from, from + 1 };
		assert_int_equal(tok_encode(t, text, sizeof(text) - 1, TOK_SPECIAL, &lit, 1, &ids),
				 0);
		for (size_t i = 0; i < ids.n; i++)
			assert_int_not_equal(ids.id[i], end);
		tok_ids_free(&ids);
	}
	for (int side = 0; side < 2; side++) {
		ids = (struct tok_ids){ 0 };
		lit = side ? (struct tok_span){ 12, 14 } : (struct tok_span){ 0, 2 };
		assert_int_equal(tok_encode(t, text, sizeof(text) - 1, TOK_SPECIAL, &lit, 1, &ids),
				 0);
		for (size_t i = 0, k = seen = 0; i < ids.n; i++, k++)
			seen += ids.id[i] == end;
		assert_int_equal(seen, 1);
		tok_ids_free(&ids);
	}
	tok_free(t);
}

/* "word borders are not affected": literal spans change nothing in a text without markers. */
static void literal_spans_leave_other_text_alone(void **state)
{
	struct tok *t = small();
	struct synth_buf b = { 0 };
	struct tok_ids whole = { 0 }, cut = { 0 };
	struct tok_span lit[3] = { { 3, 40 }, { 40, 200 }, { 1000, 1500 } };
	static const char text[] =
		"user\n\n\nturn on the light  in the kitchen, it's 3.5 \n\t and\r\n45678 done";

	for (int i = 0; i < 40; i++)
		synth_put(&b, text, sizeof(text) - 1);
	assert_int_equal(tok_encode(t, (char *)b.p, b.n, TOK_SPECIAL, NULL, 0, &whole), 0);
	assert_int_equal(tok_encode(t, (char *)b.p, b.n, TOK_SPECIAL, lit, 3, &cut), 0);
	assert_int_equal(whole.n, cut.n);
	assert_memory_equal(whole.id, cut.id, whole.n * 4);
	tok_ids_free(&whole);
	tok_ids_free(&cut);
	free(b.p);
	tok_free(t);
}

static void a_stream_gives_whole_characters(void **state)
{
	struct tok *t = small();
	struct tok_stream *s = NULL;
	struct synth_buf b = { 0 }, out = { 0 };
	struct tok_ids ids = { 0 };
	const char *p;
	size_t n, k;

	synth_text(&b, 9, 20000);
	assert_int_equal(tok_encode(t, (char *)b.p, b.n, TOK_PLAIN, NULL, 0, &ids), 0);
	assert_int_equal(tok_stream_open(t, false, &s), 0);
	for (size_t i = 0; i < ids.n; i++) {
		p = tok_stream_push(s, ids.id[i], &n);
		/* Begins with a character and ends with one. */
		if (n) {
			assert_true(((uint8_t)p[0] & 0xc0) != 0x80);
			for (k = n - 1; ((uint8_t)p[k] & 0xc0) == 0x80; k--)
				assert_true(k > 0 && n - k < 4);
			assert_int_equal(n - k, (uint8_t)p[k] < 0x80   ? 1
						: (uint8_t)p[k] < 0xe0 ? 2
						: (uint8_t)p[k] < 0xf0 ? 3
								       : 4);
		}
		synth_put(&out, p, n);
	}
	p = tok_stream_end(s, &n);
	assert_int_equal(n, 0);
	assert_int_equal(out.n, b.n);
	assert_memory_equal(out.p, b.p, b.n);
	tok_stream_free(s);
	tok_ids_free(&ids);
	free(b.p);
	free(out.p);
	tok_free(t);
}

static void expect_stream(const struct tok *t, const char *bytes, size_t n, bool control,
			  const char *want)
{
	struct tok_stream *s = NULL;
	char out[200] = "";
	size_t k, o = 0;
	const char *p;

	assert_int_equal(tok_stream_open(t, control, &s), 0);
	for (size_t i = 0; i < n; i++) {
		p = tok_stream_push(
			s, bytes[i] == 1 ? tok_id(t, "<|im_end|>", 10) : tok_id(t, bytes + i, 1),
			&k);
		memcpy(out + o, p, k);
		o += k;
	}
	p = tok_stream_end(s, &k);
	memcpy(out + o, p, k);
	out[o + k] = 0;
	assert_string_equal(out, want);
	tok_stream_free(s);
}

/* Unicode standard, table 3-8 and its neighbours: one U+FFFD for each maximal subpart. */
static void broken_text_is_replaced(void **state)
{
	struct tok *t = small();

#define R "\xef\xbf\xbd"
	expect_stream(t,
		      "a\xf1\x80\x80\xe1\x80\xc2"
		      "b\x80"
		      "c\x80\xbf"
		      "d",
		      13, false, "a" R R R "b" R "c" R R "d");
	expect_stream(t, "\xe2\x82", 2, false, R);
	expect_stream(t, "\xc0\xaf", 2, false, R R);
	expect_stream(t, "\xed\xa0\x80", 3, false, R R R);
	expect_stream(t, "\xf4\x90\x80\x80", 4, false, R R R R);
	expect_stream(t, "\xe2\x82\xac", 3, false, "\xe2\x82\xac");
	/* Nothing is put together across a control token. */
	expect_stream(t, "\xe2\x82\1\xac", 4, false, R R);
	expect_stream(t, "x\1y", 3, false, "xy");
	expect_stream(t, "x\1y", 3, true, "x<|im_end|>y");
#undef R
	tok_free(t);
}

/* One word of a megabyte: letters, blanks, signs. Ends soon, or run.sh kills it. */
static void words_without_end_do_not_hang(void **state)
{
	struct tok *t = small();
	char *s = malloc(1 << 20);
	static const char fill[] = { 'e', ' ', '!', '\n', '7' };

	for (size_t f = 0; f < sizeof(fill); f++) {
		struct tok_ids ids = { 0 };

		memset(s, fill[f], 1 << 20);
		assert_int_equal(tok_encode(t, s, 1 << 20, TOK_SPECIAL, NULL, 0, &ids), 0);
		assert_true(ids.n > 0);
		tok_ids_free(&ids);
		s[(1 << 20) - 1] = 'x';
		ids = (struct tok_ids){ 0 };
		assert_int_equal(tok_encode(t, s, 1 << 20, TOK_SPECIAL, NULL, 0, &ids), 0);
		tok_ids_free(&ids);
	}
	free(s);
	tok_free(t);
}

static void refuse(const struct synth_buf *kv, uint64_t n_kv, const char *words)
{
	struct synth_buf b = { 0 };
	struct hearth_err err = { 0 };
	struct gguf *g = NULL;
	struct tok *t = NULL;

	synth_head(&b, 3, 0, n_kv);
	synth_put(&b, kv->p, kv->n);
	if (gguf_parse(b.p, b.n, b.n, &g, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(tok_open(g, &t, &err) < 0);
	assert_null(t);
	if (!strstr(err.text, words))
		fail_msg("said \"%s\", expected \"%s\"", err.text, words);
	gguf_close(g);
	free(b.p);
}

static void put_strings(struct synth_buf *b, const char *key, const char *const *s, uint64_t n)
{
	synth_str(b, key);
	synth_u32(b, GGUF_ARR);
	synth_u32(b, GGUF_STR);
	synth_u64(b, n);
	for (uint64_t i = 0; i < n; i++)
		synth_str(b, s[i]);
}

static void unknown_vocabularies_are_refused(void **state)
{
	static const char *const toks[] = { "a", "b" }, *const bad_merge[] = { "ab" };
	struct synth_buf kv = { 0 };

	refuse(&kv, 0, "no tokenizer");
	synth_kv_str(&kv, "tokenizer.ggml.model", "llama");
	refuse(&kv, 1, "a tokenizer of kind \"llama\"");
	kv.n = 0;
	synth_kv_str(&kv, "tokenizer.ggml.model", "gpt2");
	refuse(&kv, 1, "does not say how its tokenizer cuts words");
	synth_kv_str(&kv, "tokenizer.ggml.pre", "gpt-5");
	refuse(&kv, 2, "\"gpt-5\", which is not known");
	kv.n = 0;
	synth_kv_str(&kv, "tokenizer.ggml.model", "gpt2");
	synth_kv_str(&kv, "tokenizer.ggml.pre", "qwen2 qwen35"); /* no trick with the table */
	refuse(&kv, 2, "not known");
	kv.n = 0;
	synth_kv_str(&kv, "tokenizer.ggml.model", "gpt2");
	synth_kv_str(&kv, "tokenizer.ggml.pre", "qwen2");
	refuse(&kv, 2, "tokenizer.ggml.tokens\" is missing");
	put_strings(&kv, "tokenizer.ggml.tokens", toks, 2);
	refuse(&kv, 3, "tokenizer.ggml.merges\" is missing");
	put_strings(&kv, "tokenizer.ggml.merges", bad_merge, 1);
	refuse(&kv, 4, "merge 0 of the vocabulary");
	kv.n = 0;
	synth_kv_str(&kv, "tokenizer.ggml.model", "gpt2");
	synth_kv_str(&kv, "tokenizer.ggml.pre", "qwen2");
	put_strings(&kv, "tokenizer.ggml.tokens", toks, 2);
	put_strings(&kv, "tokenizer.ggml.merges", NULL, 0);
	synth_kv_u32(&kv, "tokenizer.ggml.eos_token_id", 2);
	refuse(&kv, 5, "eos_token_id is 2, but there are only 2 tokens");
	free(kv.p);
}

/* A vocabulary that has no token for a byte says so when it meets one. */
static void a_byte_without_token_is_an_error(void **state)
{
	static const char *const toks[] = { "a", "b", "ab" }, *const merges[] = { "a b" };
	struct synth_buf kv = { 0 }, b = { 0 };
	struct tok_ids ids = { 0 };
	struct gguf *g = NULL;
	struct tok *t = NULL;

	synth_kv_str(&kv, "tokenizer.ggml.model", "gpt2");
	synth_kv_str(&kv, "tokenizer.ggml.pre", "qwen2");
	put_strings(&kv, "tokenizer.ggml.tokens", toks, 3);
	put_strings(&kv, "tokenizer.ggml.merges", merges, 1);
	synth_head(&b, 3, 0, 4);
	synth_put(&b, kv.p, kv.n);
	assert_int_equal(gguf_parse(b.p, b.n, b.n, &g, NULL), 0);
	assert_int_equal(tok_open(g, &t, NULL), 0);
	gguf_close(g);
	assert_int_equal(tok_encode(t, "aab", 3, 0, NULL, 0, &ids), 0);
	assert_int_equal(ids.n, 2);
	assert_int_equal(tok_encode(t, "abc", 3, 0, NULL, 0, &ids), -EILSEQ);
	assert_int_equal(ids.n, 2);
	assert_int_equal(ids.id[1], 2);
	tok_ids_free(&ids);
	tok_free(t);
	free(kv.p);
	free(b.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(merging_equals_the_slow_way),
		cmocka_unit_test(any_bytes_come_back),
		cmocka_unit_test(control_tokens_only_where_allowed),
		cmocka_unit_test(literal_spans_leave_other_text_alone),
		cmocka_unit_test(a_stream_gives_whole_characters),
		cmocka_unit_test(broken_text_is_replaced),
		cmocka_unit_test(words_without_end_do_not_hang),
		cmocka_unit_test(unknown_vocabularies_are_refused),
		cmocka_unit_test(a_byte_without_token_is_an_error),
	};
	return UNIT_RUN(tests);
}
