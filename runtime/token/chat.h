/* SPDX-License-Identifier: MIT */
/*
 * Conversations as a model family writes them, and its answers taken apart.
 *
 * The family is recognised by the chat template inside the GGUF file, never by
 * a file name. A template that is not known is refused with a sentence: a
 * guessed format would work badly and silently.
 *
 * Known: the Qwen family (ChatML, Hermes-style tools; Qwen2.5, Qwen3 with
 * thinking).
 */
#ifndef HEARTH_TOKEN_CHAT_H
#define HEARTH_TOKEN_CHAT_H

#include "token/tokenizer.h"

enum chat_role { CHAT_SYSTEM, CHAT_USER, CHAT_ASSISTANT, CHAT_TOOL };

struct chat_call {
	const char *name;
	const char *arguments;      /* JSON object, as text */
};

struct chat_msg {
	enum chat_role role;
	const char *content;        /* UTF-8; NULL is "" */
	const char *reasoning;      /* assistant only, may be NULL */
	const struct chat_call *calls; /* assistant only */
	size_t n_calls;
};

struct chat_opts {
	const char *tools;          /* JSON array of OpenAI function tools, or NULL */
	bool thinking;              /* let the model think, where the family can */
	bool no_prompt;             /* leave out the opening of the assistant's turn */
};

struct chat;

int chat_open(const struct gguf *g, struct chat **ret, struct hearth_err *err);
/* The same from a template's text, which is not kept. */
int chat_open_template(const char *tmpl, size_t n, struct chat **ret, struct hearth_err *err);
/* By the name of a family, where somebody who knows the model says so. */
int chat_open_named(const char *family, struct chat **ret, struct hearth_err *err);
void chat_free(struct chat *c);
const char *chat_family(const struct chat *c);    /* "qwen2.5", "qwen3", ... */
bool chat_can_think(const struct chat *c);
bool chat_has_tools(const struct chat *c);
/* Whether the prompt of chat_render() ends inside an open think block. */
bool chat_prompt_thinks(const struct chat *c, const struct chat_opts *opts);

struct chat_text {
	char *text;                 /* NUL-terminated */
	size_t n;
	struct tok_span *literal;   /* what people and tools said: no control tokens in there */
	size_t n_literal;
};

/* -EINVAL with a sentence for a conversation or tools that cannot be rendered. */
int chat_render(const struct chat *c, const struct chat_msg *msgs, size_t n_msgs,
		const struct chat_opts *opts, struct chat_text *ret, struct hearth_err *err);
void chat_text_free(struct chat_text *t);

/* Render and encode in one: appends to @ids. */
int chat_encode(const struct chat *c, const struct tok *t, const struct chat_msg *msgs,
		size_t n_msgs, const struct chat_opts *opts, struct tok_ids *ids,
		struct hearth_err *err);

/*
 * The assistant's answer, taken apart while it is written. It is given the text
 * of a tok_stream opened with show_control, so that markers which a vocabulary
 * holds as control tokens are seen; the token that ended the generation may be
 * among it. What comes out does
 * not depend on how the text was cut. A callback that is NULL is skipped.
 * Text of a tool call is never given as content: a call that is malformed
 * comes as bad_call.
 */
struct chat_sink {
	void (*content)(void *ctx, const char *s, size_t n);
	void (*reasoning)(void *ctx, const char *s, size_t n);
	/* A complete call; @arguments is a JSON object. */
	void (*call)(void *ctx, size_t index, const char *name, const char *arguments);
	void (*bad_call)(void *ctx, const char *raw, size_t n, const char *why);
	void *ctx;
};

struct chat_parser;
/* @thinking: what chat_prompt_thinks() says. */
int chat_parser_open(const struct chat *c, bool thinking, const struct chat_sink *sink,
		     struct chat_parser **ret);
void chat_parser_free(struct chat_parser *p);
void chat_parser_reset(struct chat_parser *p);
int chat_parser_push(struct chat_parser *p, const char *s, size_t n); /* 0 or -ENOMEM */
/* The end of the text: gives out what was kept back. */
int chat_parser_end(struct chat_parser *p);

#endif
