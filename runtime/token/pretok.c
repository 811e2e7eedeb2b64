// SPDX-License-Identifier: MIT
#include "token/pretok.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <errno.h>
#include <pcre2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

#define MAX_STEPS 3

/*
 * \s by Unicode's White_Space, as the tokenizers that trained these
 * vocabularies have it. PCRE2's own \s differs (U+180E).
 */
#define SP                                                                                         \
	"\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{"     \
	"202f}\\x{205f}\\x{3000}"
#define SPACES_AT_END "[" SP "]+(?![^" SP "])"

#define GPT2                                                                                       \
	"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" SP "\\p{L}\\p{N}]+|" SPACES_AT_END      \
	"|[" SP "]+"

/* llama3, qwen2 and qwen3.5 differ in how digits and marks are taken. */
#define CL100K(letters, digits) \
	"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])" \
	"|[^\\r\\n\\p{L}\\p{N}]?[" letters "]+" \
	"|" digits \
	"| ?[^" SP letters "\\p{N}]+[\\r\\n]*" \
	"|[" SP "]*[\\r\\n]+" \
	"|" SPACES_AT_END \
	"|[" SP "]+"

enum { WHOLE_WORDS = 1, WANTS_BOS = 2 };

static const struct way {
	const char *names;        /* each between spaces */
	unsigned int flags;
	const char *step[MAX_STEPS]; /* each cuts what the one before has left in one piece */
} ways[] = {
	{
		.names = " qwen2 deepseek-r1-qwen kormo f2llmv2 stablelm2 hunyuan ",
		.step = { CL100K("\\p{L}", "\\p{N}") },
	},
	{
		.names = " qwen35 ",
		.step = { CL100K("\\p{L}\\p{M}", "\\p{N}") },
	},
	{
		.names = " llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 "
			 "jina-v5-nano ",
		.flags = WHOLE_WORDS | WANTS_BOS,
		.step = { CL100K("\\p{L}", "\\p{N}{1,3}") },
	},
	{
		.names = " dbrx smaug-bpe glm4 chatglm-bpe ",
		.step = { CL100K("\\p{L}", "\\p{N}{1,3}") },
	},
	{
		.names = " gpt-2 phi-2 gigachat a.x-4.0 mellum modern-bert jina-es jina-de "
			 "jina-v2-es jina-v2-de mpt olmo jais "
			 "trillion granite-docling ",
		.step = { GPT2 },
	},
	{
		.names = " falcon ",
		.step = { "[\\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]" },
	},
	{
		.names = " starcoder refact command-r smollm codeshell exaone minerva-7b mellum2 ",
		.step = { "\\p{N}", GPT2 },
	},
};

struct pretok {
	const struct way *way;
	int n_steps;
	pcre2_code *re[MAX_STEPS];
};

static const struct way *find_way(const char *name)
{
	size_t n = strlen(name);

	if (n == 0 || strchr(name, ' '))
		return NULL;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		for (const char *at = ways[i].names; (at = strstr(at, name)); at += n)
			if (at[-1] == ' ' && at[n] == ' ')
				return &ways[i];
	return NULL;
}

int pretok_open(const char *name, struct pretok **ret, struct hearth_err *err)
{
	const struct way *way = find_way(name);
	struct pretok *p;
	PCRE2_SIZE at;
	int code;

	if (!way)
		return err_set(err, -EOPNOTSUPP,
			       "the tokenizer cuts text into words by \"%.40s\", which is not "
			       "known here",
			       name);
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_set(err, -ENOMEM, "no memory for a tokenizer");
	p->way = way;
	for (; p->n_steps < MAX_STEPS && way->step[p->n_steps]; p->n_steps++) {
		pcre2_code **re = &p->re[p->n_steps];

		*re = pcre2_compile((PCRE2_SPTR)way->step[p->n_steps], PCRE2_ZERO_TERMINATED,
				    PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);
		if (!*re) {
			pretok_free(p);
			return err_set(err, -EOPNOTSUPP,
				       "PCRE2 was built without Unicode (error %d)", code);
		}
		pcre2_jit_compile(*re, PCRE2_JIT_COMPLETE); /* without it: slower, the same words */
	}
	*ret = p;
	return 0;
}

void pretok_free(struct pretok *p)
{
	if (!p)
		return;
	for (int i = 0; i < MAX_STEPS; i++)
		pcre2_code_free(p->re[i]);
	free(p);
}

bool pretok_whole_words(const struct pretok *p)
{
	return p->way->flags & WHOLE_WORDS;
}

bool pretok_wants_bos(const struct pretok *p)
{
	return p->way->flags & WANTS_BOS;
}

struct split {
	const struct pretok *p;
	pcre2_match_data *data;
	pcre2_match_context *context;
	int (*word)(void *ctx, const char *w, size_t n);
	void *ctx;
};

static int find(struct split *sp, int step, const char *s, size_t n, size_t from, size_t *ret_from,
		size_t *ret_to)
{
	const pcre2_code *re = sp->p->re[step];
	size_t *ov;
	int r;

	r = pcre2_match(re, (PCRE2_SPTR)s, n, from, PCRE2_NO_UTF_CHECK, sp->data, sp->context);
	if (r == PCRE2_ERROR_JIT_STACKLIMIT)
		r = pcre2_match(re, (PCRE2_SPTR)s, n, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
				sp->data, sp->context);
	if (r == PCRE2_ERROR_NOMATCH) {
		*ret_from = *ret_to = n;
		return 0;
	}
	if (r < 0)
		return -ENOMEM; /* the patterns are our own: only the matcher's heap can run out */
	ov = pcre2_get_ovector_pointer(sp->data);
	*ret_from = ov[0];
	*ret_to = ov[1];
	return 0;
}

/* @s is valid UTF-8. A match is a word, and so is what lies between two matches. */
static int split_step(struct split *sp, int step, const char *s, size_t n)
{
	size_t at = 0, from = 0, to = 0;
	int r = 0;

	if (n == 0)
		return 0;
	if (step == sp->p->n_steps)
		return sp->word(sp->ctx, s, n);
	/* No pattern matches nothing, so every round gets on. */
	for (; at < n && r == 0; at = to) {
		r = find(sp, step, s, n, at, &from, &to);
		if (r == 0)
			r = split_step(sp, step + 1, s + at, from - at);
		if (r == 0)
			r = split_step(sp, step + 1, s + from, to - from);
	}
	return r;
}

static int split_all(struct split *sp, const char *text, size_t n)
{
	size_t at = 0, good;
	int r = 0;

	/* Bytes that are no UTF-8 are words of their own. */
	while (at < n && r == 0) {
		good = utf8_valid(text + at, n - at);
		r = split_step(sp, 0, text + at, good);
		at += good;
		if (r == 0 && at < n)
			r = sp->word(sp->ctx, text + at++, 1);
	}
	return r;
}

static int work_open(struct pretok_work *w, size_t n)
{
	if (!w->data) {
		w->data = pcre2_match_data_create(2, NULL);
		w->context = pcre2_match_context_create(NULL);
		if (!w->data || !w->context) {
			pretok_work_done(w);
			return -ENOMEM;
		}
		pcre2_set_match_limit(w->context, UINT32_MAX);
		pcre2_set_depth_limit(w->context, UINT32_MAX);
		pcre2_set_heap_limit(w->context, 1 << 20); /* KiB */
	}
	/* A word of megabytes (a run of spaces) needs more than the 32 KiB of the machine's stack. */
	if (!w->stack && n > 4096) {
		w->stack = pcre2_jit_stack_create(32 << 10, 16 << 20, NULL);
		if (w->stack)
			pcre2_jit_stack_assign(w->context, NULL, w->stack);
	}
	return 0;
}

void pretok_work_done(struct pretok_work *w)
{
	pcre2_jit_stack_free(w->stack);
	pcre2_match_context_free(w->context);
	pcre2_match_data_free(w->data);
	*w = (struct pretok_work){ 0 };
}

int pretok_split(const struct pretok *p, struct pretok_work *work, const char *text, size_t n,
		 int (*word)(void *ctx, const char *w, size_t n), void *ctx)
{
	struct split sp = { .p = p, .word = word, .ctx = ctx };
	int r;

	if (n == 0)
		return 0;
	r = work_open(work, n);
	if (r < 0)
		return r;
	sp.data = work->data;
	sp.context = work->context;
	return split_all(&sp, text, n);
}
