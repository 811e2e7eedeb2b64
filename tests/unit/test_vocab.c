// SPDX-License-Identifier: MIT
/*
 * The tokenizer against llama.cpp, on real vocabularies: its own published
 * vectors (models/ggml-vocab-*.gguf.inp and .out), and larger texts whose ids
 * were taken from its llama_tokenize() at commit 80fb11ac73e6 (2026-09-12).
 */
#include "unit.h"
#include "synth.h"
#include "token/tokenizer.h"

static char dir[600], why[600];

struct ids_sum {
	size_t n;
	uint64_t fnv;            /* FNV-1a of the ids, 4 bytes each, little-endian */
};

static const struct {
	const char *name;
	struct ids_sum plain, special; /* synth_text(1, 1 MiB), parse_special off and on */
	struct ids_sum docs;           /* docs.txt: the markdown of llama.cpp's docs/ */
} vocab[] = {
	{ "qwen2",
	  { 386654, 0x8c4412322486808eull },
	  { 384448, 0xa694e4fedc282301ull },
	  { 134050, 0x6da137f606ee618aull } },
	{ "qwen35",
	  { 386456, 0x22c1206399ced09eull },
	  { 384250, 0xed1c63c3b38d28a5ull },
	  { 134050, 0x6da137f606ee618aull } },
	{ "llama-bpe",
	  { 389179, 0x3ede7e1ca90f9e4cull },
	  { 389179, 0x3ede7e1ca90f9e4cull },
	  { 130050, 0x46ed10ad2f7639b6ull } },
	{ "gpt-2",
	  { 481117, 0xc4957cc00ed0c457ull },
	  { 481117, 0xc4957cc00ed0c457ull },
	  { 173814, 0xba83eee47265ea1bull } },
	{ "falcon",
	  { 465193, 0x8423220ba9b2742eull },
	  { 465193, 0x8423220ba9b2742eull },
	  { 161299, 0x23a1a8b163114db0ull } },
	{ "starcoder",
	  { 467832, 0xd1763c55ef140525ull },
	  { 467832, 0xd1763c55ef140525ull },
	  { 150249, 0x9f3c58252a624e34ull } },
	{ "refact",
	  { 467888, 0xd1503341b4dc7cbcull },
	  { 467888, 0xd1503341b4dc7cbcull },
	  { 150259, 0xb5509bfd2feebadaull } },
	{ "command-r",
	  { 411834, 0x6b1419e89475c9a5ull },
	  { 411834, 0x6b1419e89475c9a5ull },
	  { 146471, 0xff36c5c0af0e4489ull } },
	{ "mpt",
	  { 443321, 0x1028039b536c0e6full },
	  { 443321, 0x1028039b536c0e6full },
	  { 153220, 0xafff1d7d37a1d4fbull } },
};
#define VOCABS (sizeof(vocab) / sizeof(vocab[0]))

static char *slurp(const char *path, size_t *ret_n)
{
	FILE *f = fopen(path, "rb");
	char *p;

	if (!f || fseek(f, 0, SEEK_END) < 0)
		fail_msg("%s cannot be read", path);
	*ret_n = (size_t)ftell(f);
	rewind(f);
	p = malloc(*ret_n + 1);
	assert_int_equal(fread(p, 1, *ret_n, f), *ret_n);
	p[*ret_n] = 0;
	fclose(f);
	return p;
}

static struct tok *open_vocab(const char *name)
{
	struct hearth_err err = { 0 };
	struct gguf *g = NULL;
	struct tok *t = NULL;
	char path[800];

	snprintf(path, sizeof(path), "%s/ggml-vocab-%s.gguf", dir, name);
	if (gguf_open(path, &g, &err) < 0 || tok_open(g, &t, &err) < 0)
		fail_msg("%s", err.text);
	gguf_close(g);
	return t;
}

static void need_vocabularies(void)
{
	if (!dir[0])
		SKIP("%s", why);
}

/* Texts between separator lines; one line of ids for each. */
static void check_vectors(const char *name)
{
	static const char sep[] = "\n__ggml_vocab_test__\n";
	struct tok *t = open_vocab(name);
	char path[800], *in, *out, *text, *line;
	size_t n, m;
	int cases = 0;

	snprintf(path, sizeof(path), "%s/ggml-vocab-%s.gguf.inp", dir, name);
	in = slurp(path, &n);
	snprintf(path, sizeof(path), "%s/ggml-vocab-%s.gguf.out", dir, name);
	out = slurp(path, &m);
	for (text = in, line = out; ; cases++) {
		char *end = strstr(text, sep), *p = line, *q;
		size_t len = end ? (size_t)(end - text) : strlen(text), i = 0;
		struct tok_ids ids = { 0 };
		long want;

		if (!end && !len)
			break;
		assert_int_equal(tok_encode(t, text, len, TOK_PLAIN, NULL, 0, &ids), 0);
		line = strchr(p, '\n');
		if (line)
			*line++ = 0;
		for (; (want = strtol(p, &q, 10)), q != p; p = q, i++)
			if (i >= ids.n || ids.id[i] != want)
				fail_msg("%s: text %d, token %zu is %d, not %ld", name, cases, i,
					 i < ids.n ? ids.id[i] : -1, want);
		if (i != ids.n)
			fail_msg("%s: text %d has %zu tokens, not %zu", name, cases, ids.n, i);
		tok_ids_free(&ids);
		if (!end || !line)
			break;
		text = end + sizeof(sep) - 1;
	}
	assert_true(cases >= 40);
	free(in);
	free(out);
	tok_free(t);
}

static void check_sum(const struct tok *t, const char *name, const char *text, size_t n,
		      unsigned int flags, const struct ids_sum *want)
{
	uint64_t h = 0xcbf29ce484222325ull;
	struct tok_ids ids = { 0 };
	size_t len, at = 0;

	assert_int_equal(tok_encode(t, text, n, flags, NULL, 0, &ids), 0);
	for (size_t i = 0; i < ids.n; i++) {
		const char *p = tok_bytes(t, ids.id[i], &len);

		for (int k = 0; k < 4; k++)
			h = (h ^ ((uint32_t)ids.id[i] >> (8 * k) & 255)) * 0x100000001b3ull;
		/* And back: the tokens' bytes are the text. */
		if (at + len > n || memcmp(text + at, p, len))
			fail_msg("%s: token %zu is not what stands at byte %zu", name, i, at);
		at += len;
	}
	assert_int_equal(at, n);
	if (ids.n != want->n || h != want->fnv)
		fail_msg("%s: %zu tokens with sum %016llx, llama.cpp has %zu with %016llx", name,
			 ids.n, (unsigned long long)h, want->n, (unsigned long long)want->fnv);
	tok_ids_free(&ids);
}

static void equal_to_llama_cpp_on_its_vectors(void **state)
{
	need_vocabularies();
	for (size_t i = 0; i < VOCABS; i++)
		check_vectors(vocab[i].name);
}

static void equal_to_llama_cpp_on_a_megabyte(void **state)
{
	struct synth_buf b = { 0 };

	need_vocabularies();
	synth_text(&b, 1, 1 << 20);
	for (size_t i = 0; i < VOCABS; i++) {
		struct tok *t = open_vocab(vocab[i].name);

		check_sum(t, vocab[i].name, (char *)b.p, b.n, TOK_PLAIN, &vocab[i].plain);
		check_sum(t, vocab[i].name, (char *)b.p, b.n, TOK_SPECIAL, &vocab[i].special);
		tok_free(t);
	}
	free(b.p);
}

static void equal_to_llama_cpp_on_documents(void **state)
{
	char path[800], *text;
	size_t n;

	need_vocabularies();
	snprintf(path, sizeof(path), "%s/docs.txt", dir);
	text = slurp(path, &n);
	for (size_t i = 0; i < VOCABS; i++) {
		struct tok *t = open_vocab(vocab[i].name);

		check_sum(t, vocab[i].name, text, n, TOK_PLAIN, &vocab[i].docs);
		tok_free(t);
	}
	free(text);
}

/* The fetcher prints the folder, or the reason on stderr. */
static int fetch(void **state)
{
	FILE *f = popen("tests/fetch/llama-vocab.sh 2>&1", "r");
	char line[600] = "";

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		line[strcspn(line, "\n")] = 0;
	if (pclose(f) == 0)
		snprintf(dir, sizeof(dir), "%s", line);
	else
		snprintf(why, sizeof(why), "%s", line);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_to_llama_cpp_on_its_vectors),
		cmocka_unit_test(equal_to_llama_cpp_on_a_megabyte),
		cmocka_unit_test(equal_to_llama_cpp_on_documents),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("vocab", tests, fetch, NULL);
}
