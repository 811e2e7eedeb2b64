// SPDX-License-Identifier: MIT
/*
 * Any text as an answer: what comes out must not depend on how it was cut, and
 * no marker, no call and no thought may come out as content.
 */
#include "seeds.h"

#include <stdlib.h>
#include <string.h>

#include "token/chat.h"
#include "token/json_text.h"

#define MUST(x) do { if (!(x)) abort(); } while (0)

struct heard {
	struct text content, reasoning, calls;
};

static void on_content(void *ctx, const char *s, size_t n)
{
	text_put(&((struct heard *)ctx)->content, s, n);
}

static void on_reasoning(void *ctx, const char *s, size_t n)
{
	text_put(&((struct heard *)ctx)->reasoning, s, n);
}

static void on_call(void *ctx, size_t index, const char *name, const char *arguments)
{
	struct heard *h = ctx;
	json_t *a = json_loads(arguments, 0, NULL);

	MUST(json_is_object(a) && *name);
	json_decref(a);
	text_puts(&h->calls, name);
	text_puts(&h->calls, arguments);
}

static void on_bad(void *ctx, const char *raw, size_t n, const char *why)
{
	struct heard *h = ctx;

	MUST(why && *why);
	text_puts(&h->calls, "!");
	text_put(&h->calls, raw, n);
}

static int same(const struct text *a, const struct text *b)
{
	return a->n == b->n && (!a->n || memcmp(a->p, b->p, a->n) == 0);
}

static void done(struct heard *h)
{
	free(h->content.p);
	free(h->reasoning.p);
	free(h->calls.p);
}

/* @step 0: all at once. */
static struct heard hear(struct chat *c, int thinking, const char *s, size_t n, size_t step)
{
	struct heard h = { 0 };
	struct chat_sink sink = { on_content, on_reasoning, on_call, on_bad, &h };
	struct chat_parser *p = NULL;

	MUST(chat_parser_open(c, thinking, &sink, &p) == 0);
	for (size_t i = 0; i < n; i += step ? step : n)
		MUST(chat_parser_push(p, s + i, step && n - i > step ? step : n - i) == 0);
	MUST(chat_parser_end(p) == 0);
	chat_parser_free(p);
	return h;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct chat *c;
	struct heard a, b;

	if (size < 1)
		return 0;
	if (!c)
		MUST(chat_open_named("qwen3", &c, NULL) == 0);
	a = hear(c, data[0] & 1, (const char *)data + 1, size - 1, 0);
	b = hear(c, data[0] & 1, (const char *)data + 1, size - 1, 1 + (data[0] >> 1) % 13);
	MUST(same(&a.content, &b.content) && same(&a.reasoning, &b.reasoning) &&
	     same(&a.calls, &b.calls));
	/* Where nothing was taken out of the text, nothing can grow together to a marker either. */
	if (a.content.n && !memmem(data, size, "<|", 2) && !memmem(data, size, "</", 2) &&
	    !memmem(data, size, "<think>", 7))
		MUST(!memmem(a.content.p, a.content.n, "<tool_call>", 11));
	done(&a);
	done(&b);
	return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const seed[] = {
		"\1<think>\nHm.\n</think>\n\nThe light is on.",
		"\2<tool_call>\n{\"name\": \"HassTurnOn\", \"arguments\": {\"name\": "
		"\"lamp\"}}\n</tool_call><|im_end|>",
		"\3Hm.</think>Sure.\n<tool_call>{\"name\": \"f\", \"arguments\": "
		"\"{}\"}\n<tool_call>{\"name\": \"g</tool_call>\"}",
		"\4a < b <|im_start|> </tool_call> <think> x",
	};

	for (size_t i = 0; i < sizeof(seed) / sizeof(seed[0]); i++) {
		char name[8];

		snprintf(name, sizeof(name), "%zu", i);
		fuzz_seed(*argc, *argv, name, seed[i], strlen(seed[i]));
	}
	return 0;
}
