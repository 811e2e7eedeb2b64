// SPDX-License-Identifier: MIT
#include "token/chat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "token/chat_priv.h"
#include "token/template_id.h"

static const struct chat_family qwen2 = {
	.name = "qwen2", .default_system = "You are a helpful assistant", /* without a full stop */
};
static const struct chat_family qwen25 = {
	.name = "qwen2.5", .tools = true,
	.default_system = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
};
static const struct chat_family qwen3 = {
	.name = "qwen3",
	.tools = true,
	.system_then_gap = true,
	.think = THINK_CHOICE,
	.history_think = true,
	.last_always = true,
};
static const struct chat_family qwen3_instruct = {
	.name = "qwen3-instruct", .tools = true, .system_then_gap = true, .history_think = true,
};
static const struct chat_family qwen3_thinking = {
	.name = "qwen3-thinking",
	.tools = true,
	.system_then_gap = true,
	.think = THINK_ALWAYS,
	.history_think = true,
	.last_always = true,
};
static const struct chat_family chatml = {
	.name = "chatml",
};

/*
 * Templates by what they do (template_id.h). A new one is entered here after
 * its rendering was compared with Jinja's: tests/gen/chat_vectors.py.
 */
static const struct {
	uint64_t id;
	const struct chat_family *family;
} known[] = {
	{ 0x7a93dba251f95f6aull, &qwen2 },          /* of the first Qwen2 files */
	{ 0x310511c24d748e3dull, &qwen25 },         /* Qwen/Qwen2.5-7B-Instruct */
	{ 0x0df06e776aed50daull, &qwen3 },          /* Qwen/Qwen3-0.6B */
	{ 0xd2bfc2e6fc2e279eull, &qwen3 },          /* the same as rewritten by unsloth */
	{ 0x895a14b8f2438a51ull, &qwen3_instruct }, /* unsloth, Qwen3 2507 Instruct */
	{ 0xd80675e9cd9b2351ull, &qwen3_thinking }, /* unsloth, Qwen3 2507 Thinking */
	{ 0x12803cbeffab91e1ull, &qwen3 },  /* the same in hearth's words: tools/home/chat.jinja */
	{ 0xcbaeceef5046c24bull, &chatml }, /* ChatML without more, as unsloth writes it */
};

static const struct chat_family *const families[] = { &qwen2,          &qwen25,         &qwen3,
						      &qwen3_instruct, &qwen3_thinking, &chatml };

static int open_family(const struct chat_family *f, struct chat **ret, struct hearth_err *err)
{
	struct chat *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(err, -ENOMEM, "no memory for a chat template");
	c->f = f;
	*ret = c;
	return 0;
}

int chat_open_template(const char *tmpl, size_t n, struct chat **ret, struct hearth_err *err)
{
	uint64_t id = template_id(tmpl, n);

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (id && known[i].id == id)
			return open_family(known[i].family, ret, err);
	return err_set(err, -EOPNOTSUPP,
		       "the model's chat template is not one that is known here (it is %016" PRIx64
		       "); known are those of Qwen2, Qwen2.5 and Qwen3 and plain ChatML, and one "
		       "of these can be asked for by name",
		       id);
}

int chat_open_named(const char *family, struct chat **ret, struct hearth_err *err)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (strcmp(families[i]->name, family) == 0)
			return open_family(families[i], ret, err);
	return err_set(err, -EINVAL,
		       "there is no chat template \"%.40s\"; there are qwen2, qwen2.5, qwen3, "
		       "qwen3-instruct, qwen3-thinking and chatml",
		       family);
}

int chat_open(const struct gguf *g, struct chat **ret, struct hearth_err *err)
{
	struct gguf_str s;
	int r;

	r = gguf_str(g, "tokenizer.chat_template", &s, err);
	if (r == -ENOENT)
		return err_set(err, r,
			       "the model has no chat template: it is not one to talk to, or its "
			       "file was made without");
	return r < 0 ? r : chat_open_template(s.s, s.n, ret, err);
}

void chat_free(struct chat *c)
{
	free(c);
}

const char *chat_family(const struct chat *c)
{
	return c->f->name;
}

bool chat_can_think(const struct chat *c)
{
	return c->f->think != THINK_NONE;
}

bool chat_has_tools(const struct chat *c)
{
	return c->f->tools;
}

bool chat_prompt_thinks(const struct chat *c, const struct chat_opts *o)
{
	return c->f->think == THINK_ALWAYS && !(o && o->no_prompt);
}

/* -- writing ---------------------------------------------------------------- */

void out_puts(struct chat_out *o, const char *s)
{
	text_puts(&o->t, s);
}

static void mark(struct chat_out *o, size_t from)
{
	struct tok_span *last = o->n_literal ? &o->literal[o->n_literal - 1] : NULL;

	if (o->t.err || o->t.n == from)
		return;
	if (last && last->to == from) {
		last->to = o->t.n;
		return;
	}
	if (o->n_literal == o->cap_literal) {
		size_t cap = o->cap_literal ? o->cap_literal * 2 : 16;
		struct tok_span *more = realloc(o->literal, cap * sizeof(*more));

		if (!more) {
			o->t.err = -ENOMEM;
			return;
		}
		o->literal = more;
		o->cap_literal = cap;
	}
	o->literal[o->n_literal++] = (struct tok_span){ from, o->t.n };
}

void out_said(struct chat_out *o, const char *s, size_t n)
{
	size_t from = o->t.n;

	text_put(&o->t, s, n);
	mark(o, from);
}

void out_json(struct chat_out *o, const json_t *v)
{
	size_t from = o->t.n;

	json_text(&o->t, v);
	mark(o, from);
}

static int parse_tools(const char *text, json_t **ret, struct hearth_err *err)
{
	json_error_t je;
	json_t *tools, *tool, *f;
	size_t i;

	*ret = NULL;
	if (!text)
		return 0;
	tools = json_loads(text, JSON_REJECT_DUPLICATES, &je);
	if (!json_is_array(tools)) {
		json_decref(tools);
		return err_set(err, -EINVAL, "the tools are no JSON array%s%s", tools ? "" : ": ",
			       tools ? "" : je.text);
	}
	json_array_foreach(tools, i, tool) {
		f = json_object_get(tool, "function");
		if (!json_is_string(json_object_get(f, "name"))) {
			json_decref(tools);
			return err_set(err, -EINVAL,
				       "tool %zu is no {\"type\": \"function\", \"function\": "
				       "{\"name\": ...}}",
				       i + 1);
		}
	}
	if (json_array_size(tools) == 0) {
		json_decref(tools);
		return 0;
	}
	*ret = tools;
	return 0;
}

int chat_render(const struct chat *c, const struct chat_msg *msgs, size_t n_msgs,
		const struct chat_opts *opts, struct chat_text *ret, struct hearth_err *err)
{
	static const struct chat_opts defaults;
	const struct chat_opts *o = opts ? opts : &defaults;
	struct chat_out out = { 0 };
	json_t *tools;
	int r;

	if (n_msgs == 0)
		return err_set(err, -EINVAL, "a conversation without messages");
	r = parse_tools(o->tools, &tools, err);
	if (r < 0)
		return r;
	r = chat_qwen_render(c->f, msgs, n_msgs, tools, o, &out, err);
	json_decref(tools);
	if (r == 0 && out.t.err)
		r = err_set(err, out.t.err, "no memory for a prompt");
	if (r < 0) {
		free(out.t.p);
		free(out.literal);
		return r;
	}
	*ret = (struct chat_text){
		.text = out.t.p, .n = out.t.n, .literal = out.literal, .n_literal = out.n_literal
	};
	return 0;
}

void chat_text_free(struct chat_text *t)
{
	free(t->text);
	free(t->literal);
	*t = (struct chat_text){ 0 };
}

int chat_encode(const struct chat *c, const struct tok *t, const struct chat_msg *msgs,
		size_t n_msgs, const struct chat_opts *opts, struct tok_ids *ids,
		struct hearth_err *err)
{
	struct chat_text text;
	int r;

	r = chat_render(c, msgs, n_msgs, opts, &text, err);
	if (r < 0)
		return r;
	r = tok_encode(t, text.text, text.n, TOK_SPECIAL, text.literal, text.n_literal, ids);
	chat_text_free(&text);
	if (r == -EILSEQ)
		return err_set(err, r,
			       "the conversation has a byte that the model's vocabulary cannot "
			       "write");
	return r < 0 ? err_set(err, r, "no memory for a prompt") : 0;
}
