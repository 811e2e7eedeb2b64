/* SPDX-License-Identifier: MIT */
/*
 * The body of /v1/chat/completions and /v1/completions as a request the
 * runner takes: every field checked, every refusal with the field's name.
 */
#ifndef HEARTH_SERVER_CHAT_REQUEST_H
#define HEARTH_SERVER_CHAT_REQUEST_H

#include <jansson.h>

#include "server/http.h"
#include "server/run.h"

#define CHAT_MAX_STOP 16
#define CHAT_MAX_N    8

/* Whose fields a request brings, and so what its refusals call them. */
enum chat_form { CHAT_FORM_COMPLETION, CHAT_FORM_CHAT, CHAT_FORM_RESPONSE };

struct chat_request {
	json_t *body;              /* owned; texts below point into it */
	struct tok_ids tokens;
	uint32_t max_tokens;
	bool max_given;
	struct sampler_params sample;
	struct sampler_bias *bias;
	const char *stop[CHAT_MAX_STOP];
	uint32_t n_stop, n;
	bool stream, include_usage, thinking, logprobs, has_tools;
	bool home;                 /* it begins with the configured home, and brings no tools: questions about it are answered */
	uint32_t top_logprobs;
	enum gen_prio prio;
	uint64_t conversation, cache_key;   /* 0: none */
	uint32_t pin_tokens, pin_seconds;
	enum run_mode mode;
	struct grammar *grammar;
	bool no_calls;
	enum chat_form form;
	bool chat;                 /* else: completions */
	char **owned;              /* texts made while parsing */
	size_t n_owned;
};

/*
 * Parses @r's body. False: the refusal has been sent. Free with
 * chat_request_done() either way.
 */
bool chat_request_parse(struct service *s, struct http_req *r, bool chat, struct chat_request *q);
/* The same from a body made elsewhere (stolen; may be NULL: out of memory), whose fields were called as @form has them. */
bool chat_request_from(struct service *s, struct http_req *r, json_t *body, enum chat_form form, struct chat_request *q);
/* Messages and tools only, without sampling: for token counts and templates. @body as of chat_request_from(). */
bool chat_request_messages(struct service *s, struct http_req *r, json_t *body, enum chat_form form, struct chat_request *q, char **ret_prompt);
void chat_request_done(struct chat_request *q);
/* False, and the refusal sent: @b has a field that is neither in @known (ends with NULL) nor one to be ignored. */
bool chat_request_fields(struct http_req *r, const json_t *b, const char *const *known);
/* grammar_from_tools(), or what it gave lately: with it come automata and masks that are made already. */
int chat_tools_grammar(struct service *s, const json_t *tools, const char *only, bool parallel, bool after_marker, struct grammar **ret,
		       struct hearth_err *err);
/* Whether the body's "model" means the one that is served; false: the 404 has been sent. */
bool chat_request_model(struct service *s, struct http_req *r, const json_t *body);

/* What the runner is asked for @q; its texts stay @q's. */
struct run_opts chat_request_run(const struct chat_request *q, struct service *s, struct http_req *r);

#endif
