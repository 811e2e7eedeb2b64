// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "token/chat_priv.h"

#define MAX_CALL (1u << 20) /* bytes between <tool_call> and </tool_call> */

enum state { CONTENT, REASONING, CALL };

enum mark { THINK, END_THINK, TOOL_CALL, END_CALL, DROPPED, MARKS };

/* What is not text wherever it stands. DROPPED ones say nothing. */
static const struct marker {
	const char *s;
	enum mark mark;
} markers[] = {
	{ "<think>", THINK },
	{ "</think>", END_THINK },
	{ "<tool_call>", TOOL_CALL },
	{ "</tool_call>", END_CALL },
	{ "<|im_start|>", DROPPED },
	{ "<|im_end|>", DROPPED },
	{ "<|endoftext|>", DROPPED },
};
#define MARKERS (sizeof(markers) / sizeof(markers[0]))

struct chat_parser {
	struct chat_sink sink;
	bool starts_thinking;
	enum state state;
	struct text in;          /* what was pushed and is not decided yet */
	struct text call;        /* inside a call so far */
	bool quoted, escaped;    /* its end is inside a JSON string, after a backslash */
	size_t first_close;      /* where </tool_call> stood in one, SIZE_MAX: nowhere yet */
	struct text gap;         /* white space that is only text if text follows */
	bool fresh;              /* nothing of this stretch of text was given out */
	size_t n_calls;
};

static void begin_call(struct chat_parser *p)
{
	p->call.n = 0;
	p->quoted = p->escaped = false;
	p->first_close = SIZE_MAX;
}

int chat_parser_open(const struct chat *c, bool thinking, const struct chat_sink *sink,
		     struct chat_parser **ret)
{
	struct chat_parser *p = calloc(1, sizeof(*p));

	(void)c; /* all known families write their answers alike */
	if (!p)
		return -ENOMEM;
	p->sink = *sink;
	p->starts_thinking = thinking;
	chat_parser_reset(p);
	*ret = p;
	return 0;
}

void chat_parser_free(struct chat_parser *p)
{
	if (!p)
		return;
	free(p->in.p);
	free(p->call.p);
	free(p->gap.p);
	free(p);
}

void chat_parser_reset(struct chat_parser *p)
{
	p->state = p->starts_thinking ? REASONING : CONTENT;
	p->in.n = p->gap.n = 0;
	begin_call(p);
	p->in.err = p->call.err = p->gap.err = 0;
	p->fresh = p->starts_thinking;
	p->n_calls = 0;
}

/* -- giving out ------------------------------------------------------------- */

static void give(struct chat_parser *p, const char *s, size_t n)
{
	void (*to)(void *, const char *, size_t) =
		p->state == REASONING ? p->sink.reasoning : p->sink.content;

	if (n && to)
		to(p->sink.ctx, s, n);
}

static bool blank(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/*
 * White space at the border of a think block or a call belongs to the format,
 * not to the text; so the last of it waits until it is known what comes next.
 */
static void say(struct chat_parser *p, const char *s, size_t n)
{
	size_t end = n;

	if (p->fresh)
		for (; n && blank(*s); s++, n--, end--)
			;
	while (end && blank(s[end - 1]))
		end--;
	if (end) {
		give(p, p->gap.p, p->gap.n);
		p->gap.n = 0;
		give(p, s, end);
		p->fresh = false;
	}
	text_put(&p->gap, s + end, n - end);
}

/* -- calls ------------------------------------------------------------------ */

static void bad_call(struct chat_parser *p, const char *raw, size_t n, const char *why)
{
	if (p->sink.bad_call)
		p->sink.bad_call(p->sink.ctx, raw, n, why);
}

/*
 * The object of arguments: as it stands, or as text in a string. NULL: neither.
 * A key that is said twice has its last value, as JSON.parse() and json.loads()
 * have it: a schema with free keys admits that, every value of it validates,
 * and what is given out says each key once.
 */
static json_t *take_arguments(const json_t *call)
{
	json_t *a = json_object_get(call, "arguments");

	if (!a)
		return json_object();
	if (json_is_string(a))
		a = json_loadb(json_string_value(a), json_string_length(a), 0, NULL);
	else
		json_incref(a);
	if (json_is_object(a))
		return a;
	json_decref(a);
	return NULL;
}

static const char *unknown_key(const json_t *call)
{
	static const char *const fine[] = { "name", "arguments", "id", "type" };
	void *it = json_object_iter((json_t *)(uintptr_t)call);
	size_t i;

	for (; it; it = json_object_iter_next((json_t *)(uintptr_t)call, it)) {
		for (i = 0; i < 4; i++)
			if (strcmp(json_object_iter_key(it), fine[i]) == 0)
				break;
		if (i == 4)
			return json_object_iter_key(it);
	}
	return NULL;
}

/* 1: given out as a call. 0: it is no call, and *ret_why says why. -ENOMEM. */
static int try_call(struct chat_parser *p, const char *raw, size_t n, const char **ret_why)
{
	struct text out = { 0 };
	const char *name;
	json_t *call, *args = NULL;
	int r = 0;

	call = json_loadb(raw, n, 0, NULL);
	name = json_string_value(json_object_get(call, "name"));
	if (json_is_object(call))
		args = take_arguments(call);
	if (!json_is_object(call)) {
		*ret_why = "it is no JSON object";
	} else if (!name || !*name) {
		*ret_why = "it has no name";
	} else if (!args) {
		*ret_why = "its arguments are no JSON object";
	} else if (unknown_key(call)) {
		*ret_why = "it has keys besides its name and arguments";
	} else {
		json_text(&out, args);
		r = out.err ? -ENOMEM : 1;
		if (r == 1 && p->sink.call)
			p->sink.call(p->sink.ctx, p->n_calls, name, out.p);
		p->n_calls += r == 1;
		free(out.p);
	}
	json_decref(args);
	json_decref(call);
	return r;
}

/* Adds to a call, and keeps track of whether its JSON is inside a string. */
static void add_call(struct chat_parser *p, const char *s, size_t n)
{
	text_put(&p->call, s, n);
	for (size_t i = 0; i < n; i++) {
		if (p->escaped)
			p->escaped = false;
		else if (p->quoted && s[i] == '\\')
			p->escaped = true;
		else if (s[i] == '"')
			p->quoted = !p->quoted;
	}
}

/* -- reading ---------------------------------------------------------------- */

/* The marker at s[0..n), -1 for none, -2 when it could become one. */
static int marker_at(const char *s, size_t n)
{
	bool maybe = false;

	for (size_t i = 0; i < MARKERS; i++) {
		size_t k = strlen(markers[i].s);

		if (n >= k && memcmp(s, markers[i].s, k) == 0)
			return (int)i;
		maybe = maybe || (n < k && memcmp(s, markers[i].s, n) == 0);
	}
	return maybe ? -2 : -1;
}

static void enter(struct chat_parser *p, enum state state)
{
	p->gap.n = 0;
	p->fresh = true;
	p->state = state;
}

/* A marker in text. */
static void text_mark(struct chat_parser *p, enum mark m)
{
	switch (m) {
	case THINK:
		if (p->state != REASONING)
			enter(p, REASONING);
		break;
	case END_THINK:
		/* One that closes nothing comes from a block that the prompt opened. */
		if (p->state == REASONING)
			enter(p, CONTENT);
		break;
	case TOOL_CALL:
		/* Also out of an open think block: a call is a call. */
		enter(p, CALL);
		begin_call(p);
		break;
	default:
		break;
	}
}

static int end_call(struct chat_parser *p)
{
	const char *why = NULL, *raw = p->call.p ? p->call.p : "";
	int r = try_call(p, raw, p->call.n, &why);

	if (r == 0)
		bad_call(p, raw, p->call.n, why);
	enter(p, CONTENT);
	return r < 0 ? r : 0;
}

/* Steps over what stands at the front of in[at..); 0 when more must come first. */
static ssize_t step_text(struct chat_parser *p, const char *s, size_t n)
{
	const char *lt = memchr(s, '<', n);
	int m;

	if (lt != s) {
		n = lt ? (size_t)(lt - s) : n;
		say(p, s, n);
		return (ssize_t)n;
	}
	m = marker_at(s, n);
	if (m == -2)
		return 0;
	if (m == -1) {
		say(p, s, 1);
		return 1;
	}
	text_mark(p, markers[m].mark);
	return (ssize_t)strlen(markers[m].s);
}

static ssize_t step_call(struct chat_parser *p, const char *s, size_t n)
{
	const char *lt = memchr(s, '<', n);
	int m, r;

	if (lt != s) {
		n = lt ? (size_t)(lt - s) : n;
		add_call(p, s, n);
		return (ssize_t)n;
	}
	m = marker_at(s, n);
	if (m == -2)
		return 0;
	if (m >= 0 && p->quoted) {
		/*
		 * An argument may well say "</tool_call>". Should the string
		 * never end, it was the end after all.
		 */
		if (markers[m].mark == END_CALL && p->first_close == SIZE_MAX)
			p->first_close = p->call.n;
		m = -1;
	}
	if (m < 0 || markers[m].mark == THINK || markers[m].mark == END_THINK) {
		add_call(p, s, 1);
		return 1;
	}
	if (markers[m].mark == DROPPED)
		/* The end of the turn: chat_parser_end() decides. */
		return (ssize_t)strlen(markers[m].s);
	r = end_call(p);
	if (r == 0 && markers[m].mark == TOOL_CALL)
		text_mark(p, TOOL_CALL);
	return r < 0 ? r : (ssize_t)strlen(markers[m].s);
}

static int run(struct chat_parser *p)
{
	size_t at = 0;
	ssize_t k = 1;

	while (at < p->in.n && k > 0) {
		if (p->state == CALL)
			k = step_call(p, p->in.p + at, p->in.n - at);
		else
			k = step_text(p, p->in.p + at, p->in.n - at);
		if (k > 0)
			at += (size_t)k;
		if (p->state == CALL && p->call.n > MAX_CALL) {
			bad_call(p, p->call.p, p->call.n, "it is longer than a MiB");
			enter(p, CONTENT);
		}
	}
	if (k < 0)
		return (int)k;
	memmove(p->in.p, p->in.p + at, p->in.n - at);
	p->in.n -= at;
	return p->call.err || p->gap.err ? -ENOMEM : 0;
}

int chat_parser_push(struct chat_parser *p, const char *s, size_t n)
{
	if (n == 0)
		return 0;
	text_put(&p->in, s, n);
	return p->in.err ? -ENOMEM : run(p);
}

/* A call at the end of the text that was not closed, or whose string was not. */
static int last_call(struct chat_parser *p)
{
	const char *why = NULL, *raw = p->call.p ? p->call.p : "";
	size_t close = p->first_close, skip = strlen("</tool_call>");
	struct text rest = { 0 };
	int r = try_call(p, raw, p->call.n, &why);

	if (r != 0 || close == SIZE_MAX) {
		/* Models often end their turn without closing the last call: then it was whole. */
		if (r == 0)
			bad_call(p, raw, p->call.n, "it was cut off");
		enter(p, CONTENT);
		return r < 0 ? r : 0;
	}
	text_put(&rest, raw + close + skip, p->call.n - close - skip);
	bad_call(p, raw, close, "it is no JSON object");
	enter(p, CONTENT);
	/* Shorter by a marker each time, so this ends. */
	r = rest.err ? -ENOMEM : chat_parser_push(p, rest.p, rest.n);
	free(rest.p);
	return r;
}

int chat_parser_end(struct chat_parser *p)
{
	int r = 0;

	do {
		/* What looked like the beginning of a marker is none any more. */
		if (p->state == CALL)
			add_call(p, p->in.p ? p->in.p : "", p->in.n);
		else if (p->in.n)
			say(p, p->in.p, p->in.n);
		p->in.n = 0;
		if (p->state == CALL)
			r = last_call(p);
	} while (r == 0 && (p->in.n || p->state == CALL));
	if (r == 0 && (p->call.err || p->gap.err))
		r = -ENOMEM;
	if (r == 0 && p->state == CONTENT && !p->fresh)
		give(p, p->gap.p, p->gap.n);
	chat_parser_reset(p);
	return r;
}
