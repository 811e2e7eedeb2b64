/* SPDX-License-Identifier: MIT */
/* Inside of token/: what a family of chat templates is made of. */
#ifndef HEARTH_TOKEN_CHAT_PRIV_H
#define HEARTH_TOKEN_CHAT_PRIV_H

#include "token/chat.h"
#include "token/json_text.h"

/* The text being written, and which of it people and tools said. */
struct chat_out {
	struct text t;
	struct tok_span *literal;
	size_t n_literal, cap_literal;
};

void out_puts(struct chat_out *o, const char *s);            /* the template's own words */
void out_said(struct chat_out *o, const char *s, size_t n);  /* somebody's words */
void out_json(struct chat_out *o, const json_t *v);          /* somebody's data */

enum chat_think {
	THINK_NONE,      /* the family does not */
	THINK_CHOICE,    /* an empty think block in the prompt turns it off */
	THINK_ALWAYS,    /* the prompt opens a think block */
};

/*
 * ChatML, as the Qwen models write it. What differs from one to the next:
 */
struct chat_family {
	const char *name;
	const char *default_system;  /* written when there is no system message */
	bool tools;                  /* Hermes form */
	bool system_then_gap;        /* blank lines before "# Tools" belong to the system message */
	enum chat_think think;
	bool history_think;          /* turns after the last question keep their reasoning ... */
	bool last_always; /* ... and the last message has the block even when it is empty */
};

struct chat {
	const struct chat_family *f;
};

/* @tools: a JSON array, or NULL. */
int chat_qwen_render(const struct chat_family *f, const struct chat_msg *msgs, size_t n,
		     const json_t *tools, const struct chat_opts *o, struct chat_out *out,
		     struct hearth_err *err);

#endif
