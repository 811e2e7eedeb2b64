// SPDX-License-Identifier: MIT
#include "server/chat_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/digest.h"

#define HOME_ANSWER 256u        /* tokens, where the client gives no limit: a sentence about the home is shorter */
#define HOME_CALL_WORDS "Sorry, only questions about the home are answered here; nothing was changed."

void chat_request_done(struct chat_request *q)
{
	for (size_t i = 0; i < q->n_owned; i++)
		free(q->owned[i]);
	free(q->owned);
	free(q->bias);
	tok_ids_free(&q->tokens);
	grammar_unref(q->grammar);
	json_decref(q->body);
	memset(q, 0, sizeof(*q));
}

char *chat_own(struct chat_request *q, char *text)
{
	char **p;

	if (!text)
		return NULL;
	p = realloc(q->owned, (q->n_owned + 1) * sizeof(*p));
	if (!p) {
		free(text);
		return NULL;
	}
	q->owned = p;
	return q->owned[q->n_owned++] = text;
}

/* -- whole requests ------------------------------------------------------------------- */

static bool encode_plain(struct service *s, struct http_req *r, struct chat_request *q)
{
	const json_t *p = json_object_get(q->body, "prompt");
	size_t i;
	json_t *v;

	v = json_array_get(p, 0);
	if (json_is_string(v) || json_is_array(v)) {
		if (json_array_size(p) != 1) {
			http_error(r, 400, "unsupported_value", "prompt", "\"prompt\" holds %zu prompts; one is answered in a request", json_array_size(p));
			return false;
		}
		p = v;
	}
	if (json_is_string(p)) {
		if (tok_encode(s->tok, json_string_value(p), json_string_length(p), TOK_SPECIAL | TOK_BOS_EOS, NULL, 0, &q->tokens)) {
			http_error(r, 500, NULL, NULL, "out of memory");
			return false;
		}
	} else if (json_is_array(p)) {
		json_array_foreach((json_t *)p, i, v) {
			if (!json_is_integer(v) || json_integer_value(v) < 0 || (size_t)json_integer_value(v) >= tok_count(s->tok)) {
				http_error(r, 400, "invalid_value", "prompt", "prompt[%zu] is not a token id of this model (below %zu)", i, tok_count(s->tok));
				return false;
			}
			if (tok_ids_push(&q->tokens, (int32_t)json_integer_value(v))) {
				http_error(r, 500, NULL, NULL, "out of memory");
				return false;
			}
		}
	} else {
		http_error(r, 400, "invalid_value", "prompt", "\"prompt\" must be a text or a list of token ids");
		return false;
	}
	if (!q->tokens.n) {
		http_error(r, 400, "invalid_value", "prompt", "\"prompt\" is empty");
		return false;
	}
	return true;
}

bool chat_request_model(struct service *s, struct http_req *r, const json_t *b)
{
	const char *m = json_string_value(json_object_get(b, "model"));
	static const char *const any[] = { "", "default", "local-model", "gpt-3.5-turbo", "gpt-4", "gpt-4o", "gpt-4o-mini", "jetson-llm" };

	if (json_object_get(b, "model") && !m && !json_is_null(json_object_get(b, "model"))) {
		http_error(r, 400, "invalid_value", "model", "\"model\" must be a text");
		return false;
	}
	if (!m || !strcmp(m, s->model_id))
		return true;
	/* Names that clients send when they were told none: one model is served, so it is meant. */
	for (size_t i = 0; i < sizeof(any) / sizeof(any[0]); i++)
		if (!strcmp(m, any[i]))
			return true;
	http_error(r, 404, "model_not_found", "model", "the model \"%.100s\" is not served here; this is \"%s\"", m, s->model_id);
	return false;
}

static bool priority(struct service *s, struct http_req *r, struct chat_request *q)
{
	const json_t *hints = json_object_get(json_object_get(q->body, "nvext"), "agent_hints");
	const json_t *p = json_object_get(hints, "priority");
	const char *word = json_string_value(p);
	int who = http_who(r), limit = keyring_limits(s->keys, who).prio;

	q->prio = who >= 0 ? (enum gen_prio)limit : GEN_NORMAL;
	if (word)
		q->prio = !strcmp(word, "voice") || !strcmp(word, "high") ? GEN_VOICE : !strcmp(word, "background") || !strcmp(word, "low") ? GEN_BACKGROUND : GEN_NORMAL;
	else if (json_is_integer(p))
		q->prio = json_integer_value(p) >= 10 ? GEN_VOICE : json_integer_value(p) < 0 ? GEN_BACKGROUND : GEN_NORMAL;
	/* A hint may lower what the key grants, never raise it. */
	if ((int)q->prio > limit)
		q->prio = (enum gen_prio)limit;
	return true;
}

/* -- caching ---------------------------------------------------------------------------- */

#define MAX_NAME 512u              /* bytes of a cache key or a conversation's name */

/* A text as a number that is not 0, of one tenant: one cannot touch what another pinned. */
static uint64_t named(struct service *s, struct http_req *r, const char *text)
{
	char who[64], both[64 + 1 + MAX_NAME + 1];
	uint64_t n;

	keyring_name(s->keys, http_who(r), who);
	n = digest_u64(both, (size_t)snprintf(both, sizeof(both), "%s\n%s", who, text));
	return n ? n : 1;
}

static bool name_of(struct service *s, struct http_req *r, const json_t *in, const char *key, uint64_t *ret)
{
	const json_t *j = json_object_get(in, key);

	if (!j || json_is_null(j))
		return true;
	if (!json_is_string(j) || json_string_length(j) > MAX_NAME) {
		http_error(r, 400, "invalid_value", key, "\"%s\" must be a text of at most %u bytes", key, MAX_NAME);
		return false;
	}
	if (json_string_length(j))
		*ret = named(s, r, json_string_value(j));
	return true;
}

/* "90", 90, "90s", "5m", "1h". */
static bool seconds(struct http_req *r, const json_t *in, const char *key, uint32_t *ret)
{
	const json_t *j = json_object_get(in, key);
	char *end = NULL;
	double v;

	if (!j || json_is_null(j))
		return true;
	v = json_is_number(j) ? json_number_value(j) : json_is_string(j) ? strtod(json_string_value(j), &end) : -1;
	if (end && *end)
		v *= !strcmp(end, "s") ? 1 : !strcmp(end, "m") ? 60 : !strcmp(end, "h") ? 3600 : -1;
	if (!(v >= 1 && v <= 30 * 86400)) {
		http_error(r, 400, "invalid_value", "nvext", "\"%s\" must be a time from 1 s to 30 days: 300, \"5m\", \"1h\"", key);
		return false;
	}
	*ret = (uint32_t)v;
	return true;
}

/*
 * prompt_cache_key, conversation_id, and genie-claw's nvext.cache_control with
 * the boundary of what stays the same. A hint that is not understood is an
 * error, for it would be ignored otherwise.
 */
static bool caching(struct service *s, struct http_req *r, struct chat_request *q)
{
	const json_t *ext = json_object_get(q->body, "nvext"), *cc = json_object_get(ext, "cache_control"), *hints = json_object_get(ext, "agent_hints");
	json_int_t bytes = 0;
	size_t at = 0, n;

	if ((ext && !json_is_object(ext) && !json_is_null(ext)) || (cc && !json_is_object(cc) && !json_is_null(cc)) || (hints && !json_is_object(hints) && !json_is_null(hints))) {
		http_error(r, 400, "invalid_value", "nvext", "\"nvext\", its \"agent_hints\" and its \"cache_control\" must be objects");
		return false;
	}
	if (!name_of(s, r, hints, "session_id", &q->conversation) || !name_of(s, r, q->body, "conversation_id", &q->conversation) ||
	    !name_of(s, r, cc, "cache_key", &q->cache_key) || !name_of(s, r, q->body, "prompt_cache_key", &q->cache_key) ||
	    !seconds(r, cc, "ttl", &q->pin_seconds) || !chat_integer(r, cc, "prefix_bytes", 0, INT32_MAX, &bytes))
		return false;
	/* A boundary without a name still says that this beginning is worth keeping. */
	if (bytes && !q->cache_key)
		q->cache_key = named(s, r, "prefix_bytes");
	/* In bytes of the prompt as the model reads it, whole tokens. */
	for (; bytes && q->pin_tokens < q->tokens.n; q->pin_tokens++) {
		tok_bytes(s->tok, q->tokens.id[q->pin_tokens], &n);
		at += n;
		if (at > (size_t)bytes)
			break;
	}
	return true;
}

static bool gone(void *r)
{
	return http_gone(r);
}

struct run_opts chat_request_run(const struct chat_request *q, struct service *s, struct http_req *r)
{
	return (struct run_opts){
		.service = s, .tokens = q->tokens.id, .n_tokens = q->tokens.n, .max_tokens = q->max_tokens,
		.sample = q->sample, .stop = q->stop, .n_stop = q->n_stop, .prio = q->prio, .who = http_who(r),
		.conversation = q->conversation, .cache_key = q->cache_key, .pin_tokens = q->pin_tokens, .pin_seconds = q->pin_seconds,
		.mode = q->mode, .grammar = q->grammar, .no_calls = q->no_calls, .call_words = q->home ? HOME_CALL_WORDS : NULL, .raw = !q->chat, .whole = !q->stream,
		.thinking = q->thinking, .wait_ms = (int)s->request_seconds * 1000, .gone = gone, .gone_arg = r,
	};
}

static bool room(struct service *s, struct http_req *r, struct chat_request *q)
{
	uint32_t ctx = engine_the_plan(s->engine)->ctx, cap, most;
	struct keyring_limits l = keyring_limits(s->keys, http_who(r));

	if (q->tokens.n >= ctx) {
		http_error(r, 400, "context_length_exceeded", chat_name(q, "messages"),
			   "the prompt is %zu tokens; this server's context is %u tokens, and at least one must be left for the answer", q->tokens.n, ctx);
		return false;
	}
	cap = l.max_tokens;
	most = service_most_tokens(s, http_who(r));
	if (q->tokens.n >= most) {
		http_error(r, 400, "context_length_exceeded", chat_name(q, "messages"),
			   "the prompt is %zu tokens; the budget of cache of the key or its tenant holds %u, and at least one must be left for the answer", q->tokens.n, most);
		return false;
	}
	if (!q->max_given || q->max_tokens > most - q->tokens.n)
		q->max_tokens = most - (uint32_t)q->tokens.n;
	if (cap && q->max_tokens > cap)
		q->max_tokens = cap;
	if (q->home && !q->max_given && q->max_tokens > HOME_ANSWER)
		q->max_tokens = HOME_ANSWER;
	return true;
}

bool chat_request_parse(struct service *s, struct http_req *r, bool chat, struct chat_request *q)
{
	json_t *body = http_json(r);

	memset(q, 0, sizeof(*q));
	return body && chat_request_from(s, r, body, chat ? CHAT_FORM_CHAT : CHAT_FORM_COMPLETION, q);
}

const char *chat_name(const struct chat_request *q, const char *field)
{
	static const struct {
		const char *chat, *completion, *response;
	} names[] = {
		{ "messages", "prompt", "input" }, { "response_format", "response_format", "text" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i].chat, field))
			return q->form == CHAT_FORM_RESPONSE ? names[i].response : q->form == CHAT_FORM_CHAT ? names[i].chat : names[i].completion;
	return field;
}

bool chat_request_from(struct service *s, struct http_req *r, json_t *body, enum chat_form form, struct chat_request *q)
{
	static const char *const known[] = {
		"model", "messages", "prompt", "tools", "tool_choice", "parallel_tool_calls", "response_format", "grammar", "stop", "seed", "n",
		"logprobs", "top_logprobs", "presence_penalty", "frequency_penalty", "repeat_penalty", "repeat_last_n", "logit_bias", "max_tokens",
		"max_completion_tokens", "n_predict", "stream", "stream_options", "temperature", "top_p", "top_k", "min_p", "think", "reasoning_effort",
		"chat_template_kwargs", "prompt_cache_key", "conversation_id", "nvext", "modalities", "echo", "best_of", "suffix", NULL,
	};

	memset(q, 0, sizeof(*q));
	q->form = form;
	q->chat = form != CHAT_FORM_COMPLETION;
	q->body = body;
	if (!q->body) {
		http_error(r, 500, NULL, NULL, "out of memory");
		return false;
	}
	/* A response's were looked at where they had their own names. */
	if ((form != CHAT_FORM_RESPONSE && !chat_request_fields(r, q->body, known)) || !chat_only_text(r, q->body) || !chat_request_model(s, r, q->body) || !chat_sampling(s, r, q) || !priority(s, r, q))
		return false;
	if (!(q->chat ? chat_encode_messages(s, r, q, NULL) : encode_plain(s, r, q)))
		return false;
	if (!chat_format(s, r, q) || (q->chat && !chat_choice(s, r, q)))
		return false;
	/* What a form needs is written however unwanted: then it always ends as what it is. */
	for (uint32_t i = 0; q->grammar && i < q->sample.n_bias; i++)
		if (q->bias[i].add < -1e6f)
			q->bias[i].add = -1e6f;
	return caching(s, r, q) && room(s, r, q);
}

bool chat_request_messages(struct service *s, struct http_req *r, json_t *body, enum chat_form form, struct chat_request *q, char **ret_prompt)
{
	memset(q, 0, sizeof(*q));
	q->form = form;
	q->chat = true;
	q->body = body;
	return q->body && chat_request_model(s, r, q->body) && chat_encode_messages(s, r, q, ret_prompt);
}
