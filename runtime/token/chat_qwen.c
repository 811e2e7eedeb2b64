// SPDX-License-Identifier: MIT
#include <errno.h>
#include <string.h>

#include "token/chat_priv.h"

static const char tools_before[] =
	"# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
	"You are provided with function signatures within <tools></tools> XML tags:\n<tools>";
static const char tools_after[] =
	"\n</tools>\n\nFor each function call, return a json object with function name and "
	"arguments within "
	"<tool_call></tool_call> XML tags:\n<tool_call>\n"
	"{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call><|im_end|>\n";

struct part {                    /* of a text */
	const char *s;
	size_t n;
};

static struct part whole(const char *s)
{
	return (struct part){ s ? s : "", s ? strlen(s) : 0 };
}

static struct part strip(struct part p, bool left, bool right)
{
	while (left && p.n && *p.s == '\n')
		p.s++, p.n--;
	while (right && p.n && p.s[p.n - 1] == '\n')
		p.n--;
	return p;
}

/* The last place of @what in @p, or NULL. */
static const char *last_of(struct part p, const char *what)
{
	size_t n = strlen(what);

	for (size_t i = p.n; i >= n; i--)
		if (memcmp(p.s + i - n, what, n) == 0)
			return p.s + i - n;
	return NULL;
}

static const char *first_of(struct part p, const char *what)
{
	return memmem(p.s, p.n, what, strlen(what));
}

/* Reasoning that stands inside the content, when it is not given apart. */
static void split_content(const struct chat_msg *m, struct part *ret_content,
			  struct part *ret_reasoning)
{
	struct part c = whole(m->content), r = { "", 0 };
	const char *open, *close;

	if (m->reasoning) {
		r = whole(m->reasoning);
	} else if ((close = first_of(c, "</think>"))) {
		r = strip((struct part){ c.s, (size_t)(close - c.s) }, false, true);
		open = last_of(r, "<think>");
		if (open)
			r = (struct part){ open + 7, r.n - (size_t)(open + 7 - r.s) };
		r = strip(r, true, false);
		close = last_of(c, "</think>");
		c = strip((struct part){ close + 8, c.n - (size_t)(close + 8 - c.s) }, true, false);
	}
	*ret_content = c;
	*ret_reasoning = r;
}

static bool begins(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

static bool ends(const char *s, const char *with)
{
	size_t n = strlen(s), k = strlen(with);

	return n >= k && strcmp(s + n - k, with) == 0;
}

/* What came before it has been answered: its reasoning is left out. */
static size_t last_question(const struct chat_msg *msgs, size_t n)
{
	for (size_t i = n; i--; ) {
		const char *c = msgs[i].content ? msgs[i].content : "";

		if (msgs[i].role == CHAT_USER &&
		    !(begins(c, "<tool_response>") && ends(c, "</tool_response>")))
			return i;
	}
	return n - 1;
}

static void put_system(const struct chat_family *f, const struct chat_msg *first,
		       const json_t *tools, struct chat_out *out)
{
	const char *own =
		first->role == CHAT_SYSTEM ? (first->content ? first->content : "") : NULL;
	json_t *tool;
	size_t i;

	if (!tools && !own && !f->default_system)
		return;
	out_puts(out, "<|im_start|>system\n");
	if (own)
		out_said(out, own, strlen(own));
	else if (f->default_system)
		out_puts(out, f->default_system);
	if (!tools) {
		out_puts(out, "<|im_end|>\n");
		return;
	}
	if (own || !f->system_then_gap)
		out_puts(out, "\n\n");
	out_puts(out, tools_before);
	json_array_foreach(tools, i, tool) {
		out_puts(out, "\n");
		out_json(out, tool);
	}
	out_puts(out, tools_after);
}

static int put_calls(const struct chat_msg *m, bool after_text, struct chat_out *out,
		     struct hearth_err *err)
{
	for (size_t i = 0; i < m->n_calls; i++) {
		const struct chat_call *c = &m->calls[i];
		json_error_t je;
		json_t *args;

		if (!c->name || !*c->name)
			return err_set(err, -EINVAL, "a tool call without a name");
		/* Of a key said twice the last counts, as where calls are read. */
		args = json_loads(c->arguments ? c->arguments : "{}", 0, &je);
		if (!json_is_object(args)) {
			json_decref(args);
			return err_set(err, -EINVAL,
				       "the arguments of the call to \"%.60s\" are no JSON "
				       "object%s%s",
				       c->name, args ? "" : ": ", args ? "" : je.text);
		}
		if (i || after_text)
			out_puts(out, "\n");
		out_puts(out, "<tool_call>\n{\"name\": \"");
		out_said(out, c->name, strlen(c->name));
		out_puts(out, "\", \"arguments\": ");
		out_json(out, args);
		out_puts(out, "}\n</tool_call>");
		json_decref(args);
	}
	return 0;
}

static int put_assistant(const struct chat_family *f, const struct chat_msg *m, bool open_turn,
			 bool last, struct chat_out *out, struct hearth_err *err)
{
	struct part c = whole(m->content), r = { "", 0 };
	bool block = false;
	int e;

	if (f->history_think) {
		split_content(m, &c, &r);
		block = open_turn && (r.n || (last && f->last_always));
	}
	out_puts(out, "<|im_start|>assistant\n");
	if (block) {
		struct part inner = strip(r, true, true), rest = strip(c, true, false);

		out_puts(out, "<think>\n");
		out_said(out, inner.s, inner.n);
		out_puts(out, "\n</think>\n\n");
		out_said(out, rest.s, rest.n);
	} else {
		out_said(out, c.s, c.n);
	}
	e = put_calls(m, c.n > 0, out, err);
	if (e == 0)
		out_puts(out, "<|im_end|>\n");
	return e;
}

static void put_turn(const char *role, const struct chat_msg *m, struct chat_out *out)
{
	struct part c = whole(m->content);

	out_puts(out, "<|im_start|>");
	out_puts(out, role);
	out_puts(out, "\n");
	out_said(out, c.s, c.n);
	out_puts(out, "<|im_end|>\n");
}

static void put_result(const struct chat_msg *m, bool first, bool last, struct chat_out *out)
{
	struct part c = whole(m->content);

	if (first)
		out_puts(out, "<|im_start|>user");
	out_puts(out, "\n<tool_response>\n");
	out_said(out, c.s, c.n);
	out_puts(out, "\n</tool_response>");
	if (last)
		out_puts(out, "<|im_end|>\n");
}

static int check(const struct chat_family *f, const struct chat_msg *m, struct hearth_err *err)
{
	if (m->n_calls && m->role != CHAT_ASSISTANT)
		return err_set(err, -EINVAL, "only the assistant calls tools");
	if (m->reasoning && m->role != CHAT_ASSISTANT)
		return err_set(err, -EINVAL, "only the assistant reasons");
	if (!f->tools && (m->n_calls || m->role == CHAT_TOOL))
		return err_set(err, -EINVAL, "the model's chat template (%s) has no tools",
			       f->name);
	return 0;
}

int chat_qwen_render(const struct chat_family *f, const struct chat_msg *msgs, size_t n,
		     const json_t *tools, const struct chat_opts *o, struct chat_out *out,
		     struct hearth_err *err)
{
	size_t question;
	int r = 0;

	if (tools && !f->tools)
		return err_set(err, -EINVAL, "the model's chat template (%s) has no tools",
			       f->name);
	put_system(f, &msgs[0], tools, out);
	question = last_question(msgs, n);
	for (size_t i = 0; i < n && r == 0; i++) {
		r = check(f, &msgs[i], err);
		if (r < 0)
			break;
		switch (msgs[i].role) {
		case CHAT_SYSTEM:
			if (i)
				put_turn("system", &msgs[i], out);
			break;
		case CHAT_USER:
			put_turn("user", &msgs[i], out);
			break;
		case CHAT_ASSISTANT:
			r = put_assistant(f, &msgs[i], i > question, i + 1 == n, out, err);
			break;
		case CHAT_TOOL:
			put_result(&msgs[i], i == 0 || msgs[i - 1].role != CHAT_TOOL,
				   i + 1 == n || msgs[i + 1].role != CHAT_TOOL, out);
			break;
		default:
			r = err_set(err, -EINVAL, "message %zu has a role that is not known (%d)",
				    i + 1, (int)msgs[i].role);
		}
	}
	if (r < 0 || o->no_prompt)
		return r;
	out_puts(out, "<|im_start|>assistant\n");
	if (f->think == THINK_ALWAYS)
		out_puts(out, "<think>\n");
	else if (f->think == THINK_CHOICE && !o->thinking)
		out_puts(out, "<think>\n\n</think>\n\n");
	return 0;
}
