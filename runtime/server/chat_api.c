// SPDX-License-Identifier: MIT
#include "server/chat_api.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/chat_request.h"
#include "server/flow.h"

#define LOOK_MS 50              /* how long a client's leaving may go unnoticed */

/* One request under way; lives until the last byte of its answer is taken. */
struct job {
	struct flow flow;          /* first: a stream's argument is both; .run is the choice's that runs */
	struct service *s;
	struct http_req *r;
	struct chat_request q;
	uint32_t choice;           /* which of n */
	char id[64];
	time_t created;
	/* the answer of one choice, when it is not streamed */
	char *content, *reasoning;
	size_t n_content, n_reasoning;
	json_t *calls, *logprobs, *choices;
	uint64_t n_prompt, n_cached, n_out;
	struct gen_result last;
	bool role_sent;            /* stream */
	char *head;                /* of each chunk of this choice, up to what differs */
};

static uint64_t ms3(uint64_t from, uint64_t to)
{
	return to > from && from ? to - from : 0;
}

json_t *api_timings(const struct gen_result *g)
{
	double pms = (double)ms3(g->t_prefill, g->t_prefilled) / 1e6, dms = (double)ms3(g->t_first, g->t_last) / 1e6;
	uint32_t pn = g->n_prompt - g->n_cached, dn = g->n_out;

	json_t *t = json_pack("{s:i,s:i,s:f,s:f,s:f,s:i,s:f,s:f,s:f,s:f}",
			 "cache_n", (int)g->n_cached,
			 "prompt_n", (int)pn, "prompt_ms", pms, "prompt_per_token_ms", pn ? pms / pn : 0.0,
			 "prompt_per_second", pms > 0 ? pn * 1000.0 / pms : 0.0,
			 "predicted_n", (int)dn, "predicted_ms", dms, "predicted_per_token_ms", dn > 1 ? dms / (dn - 1) : 0.0,
			 "predicted_per_second", dms > 0 && dn > 1 ? (dn - 1) * 1000.0 / dms : 0.0,
			 "ttft_ms", (double)ms3(g->t_submit, g->t_first) / 1e6);

	json_object_set_new(t, "mask_ms", json_real((double)g->mask_ns / 1e6));
	/* llama-server's names for tokens that were computed ahead, and that came true. */
	if (g->n_forced) {
		json_object_set_new(t, "draft_n", json_integer(g->n_forced));
		json_object_set_new(t, "draft_n_accepted", json_integer(g->n_kept));
	}
	return t;
}

static json_t *usage(const struct job *j)
{
	return json_pack("{s:I,s:I,s:I,s:{s:I},s:{s:i}}", "prompt_tokens", (json_int_t)j->n_prompt,
			 "completion_tokens", (json_int_t)j->n_out, "total_tokens", (json_int_t)(j->n_prompt + j->n_out),
			 "prompt_tokens_details", "cached_tokens", (json_int_t)j->n_cached,
			 "completion_tokens_details", "reasoning_tokens", 0);
}

void api_start_failed(struct service *s, struct http_req *r, int rc, const struct hearth_err *err)
{
	s->refused++;
	api_run_failed(r, rc, err);
}

void api_run_failed(struct http_req *r, int rc, const struct hearth_err *err)
{
	switch (rc) {
	case -EAGAIN:
		http_answer_header(r, "Retry-After", "1");
		http_error(r, 429, "queue_full", NULL, "%s", err->text);
		break;
	case -EDQUOT:
		http_answer_header(r, "Retry-After", "1");
		http_error(r, 429, "budget_exceeded", NULL, "%s", err->text);
		break;
	case -ETIMEDOUT:
	case -ESHUTDOWN:
		http_answer_header(r, "Retry-After", "5");
		http_error(r, 503, rc == -ESHUTDOWN ? "stopping" : "busy", NULL, "%s", err->text);
		break;
	case -ECANCELED:
		http_error(r, 499, "client_gone", NULL, "%s", err->text);
		break;
	case -EACCES:
		http_error(r, 401, "invalid_api_key", NULL, "%s", err->text);
		break;
	case -E2BIG:
		http_error(r, 400, "context_length_exceeded", NULL, "%s", err->text);
		break;
	case -EINVAL:
		http_error(r, 400, "invalid_value", NULL, "%s", err->text);
		break;
	default:
		http_error(r, 500, NULL, NULL, "%s", err->text);
	}
}

static int start(struct job *j, struct hearth_err *err)
{
	struct run_opts o = chat_request_run(&j->q, j->s, j->r);

	/* Each choice differs, and a given seed still gives the same n answers. */
	if (j->choice && o.sample.seed)
		o.sample.seed += j->choice;
	return run_start(&o, &j->flow.run, err);
}

static void job_free(void *arg)
{
	struct job *j = arg;

	run_free(j->flow.run);
	chat_request_done(&j->q);
	free(j->content);
	free(j->reasoning);
	flow_done(&j->flow);
	free(j->head);
	json_decref(j->calls);
	json_decref(j->logprobs);
	json_decref(j->choices);
	free(j);
}

static const char *finish_name(const struct job *j)
{
	const struct gen_result *g = run_result(j->flow.run);

	if (g->finish == GEN_STOP && run_calls(j->flow.run))
		return "tool_calls";
	/* OpenAI knows no word for running out of memory; what was said is cut short, which is "length". */
	if (g->finish == GEN_MEMORY)
		return "length";
	return gen_finish_name(g->finish);
}

/* -- log-probabilities ------------------------------------------------------------- */

/* A token's bytes as JSON text: what is not UTF-8 on its own becomes U+FFFD. */
static json_t *token_text(const struct job *j, int32_t id)
{
	size_t n = 0;
	const char *s = tok_bytes(j->s->tok, id, &n);
	json_t *t = s ? json_stringn(s, n) : json_string("");

	return t ? t : json_string("\xef\xbf\xbd");
}

static json_t *token_bytes(const struct job *j, int32_t id)
{
	size_t n = 0;
	const char *s = tok_bytes(j->s->tok, id, &n);
	json_t *a = json_array();

	for (size_t i = 0; s && i < n; i++)
		json_array_append_new(a, json_integer((unsigned char)s[i]));
	return a;
}

static double sane(float lp)
{
	return isfinite(lp) ? (double)lp : -9999.0;
}

static json_t *logprob(const struct job *j, int32_t id, float lp)
{
	return json_pack("{s:o,s:f,s:o}", "token", token_text(j, id), "logprob", sane(lp), "bytes", token_bytes(j, id));
}

static json_t *logprob_entry(const struct job *j, const struct run_event *e)
{
	json_t *o = logprob(j, e->token, e->pick.logprob), *top = json_array();

	for (uint32_t i = 0; i < e->pick.n_top && i < j->q.top_logprobs; i++)
		json_array_append_new(top, logprob(j, e->pick.top[i].token, e->pick.top[i].logprob));
	json_object_set_new(o, "top_logprobs", top);
	return o;
}

static json_t *logprobs_chat(json_t *entries)
{
	return json_pack("{s:o}", "content", entries);
}

static json_t *logprobs_plain(const struct job *j, const json_t *entries)
{
	json_t *tokens = json_array(), *lps = json_array(), *tops = json_array(), *offs = json_array(), *e, *t;
	size_t i, k, off = 0;

	json_array_foreach((json_t *)entries, i, e) {
		json_t *top = json_object();

		json_array_append(tokens, json_object_get(e, "token"));
		json_array_append(lps, json_object_get(e, "logprob"));
		json_array_foreach(json_object_get(e, "top_logprobs"), k, t)
			json_object_set(top, json_string_value(json_object_get(t, "token")), json_object_get(t, "logprob"));
		json_array_append_new(tops, top);
		json_array_append_new(offs, json_integer((json_int_t)off));
		off += json_string_length(json_object_get(e, "token"));
	}
	return json_pack("{s:o,s:o,s:o,s:o}", "tokens", tokens, "token_logprobs", lps, "top_logprobs", tops, "text_offset", offs);
}

/* -- whole answers ------------------------------------------------------------------- */

static bool append(char **to, size_t *n, const char *s, size_t len)
{
	char *p = realloc(*to, *n + len + 1);

	if (!p)
		return false;
	memcpy(p + *n, s, len);
	*to = p;
	*n += len;
	p[*n] = 0;
	return true;
}

static json_t *call_json(const struct job *j, const struct run_event *e, uint32_t index, bool stream)
{
	char id[96];
	json_t *c;

	snprintf(id, sizeof(id), "call_%s_%u_%u", j->id + 9, j->choice, index);
	c = json_pack("{s:s,s:s,s:{s:s,s:s}}", "id", id, "type", "function", "function", "name", e->text, "arguments", e->arguments);
	if (stream)
		json_object_set_new(c, "index", json_integer(index));
	return c;
}

/* Runs one choice to its end. False: the client left or an error was sent. */
static bool collect(struct job *j)
{
	const struct run_event *e;
	bool ok = true, done = false;

	j->calls = json_array();
	j->logprobs = json_array();
	while (!done) {
		e = run_next(j->flow.run, LOOK_MS);
		if (!e) {
			if (http_gone(j->r))
				run_cancel(j->flow.run);
			continue;
		}
		switch (e->kind) {
		case RUN_CONTENT:
			ok &= append(&j->content, &j->n_content, e->text, e->len);
			break;
		case RUN_REASONING:
			ok &= append(&j->reasoning, &j->n_reasoning, e->text, e->len);
			break;
		case RUN_CALL:
			json_array_append_new(j->calls, call_json(j, e, (uint32_t)json_array_size(j->calls), false));
			break;
		case RUN_LOGPROB:
			json_array_append_new(j->logprobs, logprob_entry(j, e));
			break;
		case RUN_DONE:
			done = true;
			break;
		}
	}
	j->last = *run_result(j->flow.run);
	if (!ok || j->last.finish == GEN_ERROR) {
		http_error(j->r, 500, "generation_failed", NULL, "%s", ok ? j->last.err.text : "out of memory for the answer");
		return false;
	}
	if (j->last.finish == GEN_CANCELLED) {
		api_run_failed(j->r, j->last.err.code, &j->last.err);
		return false;
	}
	j->n_prompt = j->last.n_prompt;
	j->n_cached += j->choice ? 0 : j->last.n_cached;
	j->n_out += j->last.n_out;
	return true;
}

static json_t *choice_json(struct job *j)
{
	const char *finish = finish_name(j);
	json_t *c, *m, *lp = json_null();

	if (j->q.logprobs)
		lp = j->q.chat ? logprobs_chat(json_incref(j->logprobs)) : logprobs_plain(j, j->logprobs);
	if (!j->q.chat)
		return json_pack("{s:s%,s:i,s:o,s:s}", "text", j->content ? j->content : "", j->n_content,
				 "index", (int)j->choice, "logprobs", lp, "finish_reason", finish);
	m = json_pack("{s:s}", "role", "assistant");
	if (j->n_content || !json_array_size(j->calls))
		json_object_set_new(m, "content", json_stringn(j->content ? j->content : "", j->n_content));
	else
		json_object_set_new(m, "content", json_null());
	if (j->n_reasoning)
		json_object_set_new(m, "reasoning_content", json_stringn(j->reasoning, j->n_reasoning));
	json_object_set_new(m, "refusal", json_null());
	if (json_array_size(j->calls))
		json_object_set(m, "tool_calls", j->calls);
	c = json_pack("{s:i,s:o,s:o,s:s}", "index", (int)j->choice, "message", m, "logprobs", lp, "finish_reason", finish);
	return c;
}

static void whole(struct job *j)
{
	struct hearth_err err = { 0 };
	json_t *o;
	int rc;

	j->choices = json_array();
	for (j->choice = 0; j->choice < j->q.n; j->choice++) {
		rc = start(j, &err);
		if (rc) {
			api_start_failed(j->s, j->r, rc, &err);
			return;
		}
		if (!collect(j))
			return;
		json_array_append_new(j->choices, choice_json(j));
		run_free(j->flow.run);
		j->flow.run = NULL;
		free(j->content);
		free(j->reasoning);
		json_decref(j->calls);
		json_decref(j->logprobs);
		j->content = j->reasoning = NULL;
		j->calls = j->logprobs = NULL;
		j->n_content = j->n_reasoning = 0;
	}
	o = json_pack("{s:s,s:s,s:I,s:s,s:O,s:o,s:o,s:s}", "id", j->id, "object", j->q.chat ? "chat.completion" : "text_completion",
		      "created", (json_int_t)j->created, "model", j->s->model_id, "choices", j->choices, "usage", usage(j),
		      "timings", api_timings(&j->last), "system_fingerprint", "hearth");
	http_reply_json(j->r, 200, o);
}

/* -- streams --------------------------------------------------------------------------- */

static void emit_json(struct job *j, json_t *o)
{
	char *t = o ? json_dumps(o, JSON_COMPACT) : NULL;

	json_decref(o);
	if (!t) {
		j->flow.ended = true;
		return;
	}
	flow_put(&j->flow, "data: ", 6);
	flow_put(&j->flow, t, strlen(t));
	flow_put(&j->flow, "\n\n", 2);
	free(t);
}

/* The last event of a stream that breaks off. */
static void emit_error(struct job *j, const char *text, const char *code)
{
	emit_json(j, json_pack("{s:{s:s,s:s,s:n,s:s?}}", "error", "message", text, "type", "server_error", "param", "code", code));
	j->flow.ended = true;
}

/* Steals @choice; NULL gives an empty list (usage). */
static json_t *chunk(const struct job *j, json_t *choice)
{
	json_t *list = json_array();

	if (choice)
		json_array_append_new(list, choice);
	return json_pack("{s:s,s:s,s:I,s:s,s:s,s:o}", "id", j->id, "object", j->q.chat ? "chat.completion.chunk" : "text_completion",
			 "created", (json_int_t)j->created, "model", j->s->model_id, "system_fingerprint", "hearth", "choices", list);
}

static json_t *delta_choice(const struct job *j, json_t *delta, json_t *lp)
{
	return json_pack("{s:i,s:o,s:o,s:n}", "index", (int)j->choice, "delta", delta, "logprobs", lp ? lp : json_null(), "finish_reason");
}

/* What all chunks of a choice begin with; an object for each would cost more than what it says. */
static void make_head(struct job *j)
{
	json_t *model = json_string(j->s->model_id);
	char *name = model ? json_dumps(model, JSON_ENCODE_ANY) : NULL;

	free(j->head);
	j->head = NULL;
	if (!name || asprintf(&j->head, "data: {\"id\":\"%s\",\"object\":\"%s\",\"created\":%lld,\"model\":%s,\"system_fingerprint\":\"hearth\",\"choices\":[{\"index\":%u,",
			      j->id, j->q.chat ? "chat.completion.chunk" : "text_completion", (long long)j->created, name, j->choice) < 0) {
		j->head = NULL;
		j->flow.ended = true;
	}
	json_decref(model);
	free(name);
}

static void emit_text(struct job *j, const char *key, const struct run_event *e)
{
	json_t *lp = NULL;

	if (!j->q.logprobs) {
		flow_puts(&j->flow, j->head);
		flow_puts(&j->flow, j->q.chat ? "\"delta\":{\"" : "\"");
		flow_puts(&j->flow, j->q.chat ? key : "text");
		flow_puts(&j->flow, "\":");
		flow_string(&j->flow, e->text, e->len);
		flow_puts(&j->flow, j->q.chat ? "},\"logprobs\":null,\"finish_reason\":null}]}\n\n" : ",\"logprobs\":null,\"finish_reason\":null}]}\n\n");
		return;
	}
	if (!j->q.chat) {
		if (j->q.logprobs && json_array_size(j->logprobs)) {
			lp = logprobs_plain(j, j->logprobs);
			json_array_clear(j->logprobs);
		}
		emit_json(j, chunk(j, json_pack("{s:s%,s:i,s:o,s:n}", "text", e->text, e->len, "index", (int)j->choice,
						"logprobs", lp ? lp : json_null(), "finish_reason")));
		return;
	}
	if (j->q.logprobs && json_array_size(j->logprobs)) {
		lp = logprobs_chat(json_copy(j->logprobs));
		json_array_clear(j->logprobs);
	}
	emit_json(j, chunk(j, delta_choice(j, json_pack("{s:s%}", key, e->text, e->len), lp)));
}

static void begin_choice(struct job *j)
{
	j->role_sent = true;
	json_decref(j->logprobs);
	j->logprobs = json_array();
	make_head(j);
	if (j->q.chat)
		emit_json(j, chunk(j, delta_choice(j, json_pack("{s:s,s:s}", "role", "assistant", "content", ""), NULL)));
}

static void end_choice(struct job *j)
{
	const struct gen_result *g = run_result(j->flow.run);
	struct hearth_err err = { 0 };
	json_t *c;
	int rc;

	j->last = *g;
	j->n_prompt = g->n_prompt;
	j->n_cached += j->choice ? 0 : g->n_cached;
	j->n_out += g->n_out;
	if (g->finish == GEN_ERROR || g->finish == GEN_CANCELLED) {
		emit_error(j, g->err.text, g->err.code == -ESHUTDOWN ? "stopping" : gen_finish_name(g->finish));
		return;
	}
	/* In a chunk of its own, empty: strict readers drop what comes beside a finish_reason. */
	if (j->q.chat)
		c = json_pack("{s:i,s:{},s:n,s:s}", "index", (int)j->choice, "delta", "logprobs", "finish_reason", finish_name(j));
	else
		c = json_pack("{s:s,s:i,s:n,s:s}", "text", "", "index", (int)j->choice, "logprobs", "finish_reason", finish_name(j));
	c = chunk(j, c);
	if (j->choice + 1 == j->q.n)
		json_object_set_new(c, "timings", api_timings(g));
	emit_json(j, c);
	run_free(j->flow.run);
	j->flow.run = NULL;
	if (++j->choice < j->q.n) {
		j->role_sent = false;
		rc = start(j, &err);
		if (rc) {
			emit_error(j, err.text, rc == -ESHUTDOWN ? "stopping" : NULL);
		}
		return;
	}
	if (j->q.include_usage) {
		c = chunk(j, NULL);
		json_object_set_new(c, "usage", usage(j));
		emit_json(j, c);
	}
	flow_put(&j->flow, "data: [DONE]\n\n", 14);
	j->flow.ended = true;
}

static void take_event(struct flow *f, const struct run_event *e)
{
	struct job *j = (struct job *)f;

	if (!j->role_sent)
		begin_choice(j);
	if (!j->head)
		return;
	switch (e->kind) {
	case RUN_CONTENT:
		emit_text(j, "content", e);
		break;
	case RUN_REASONING:
		emit_text(j, "reasoning_content", e);
		break;
	case RUN_CALL: {
		uint32_t index = (uint32_t)json_array_size(j->calls);
		json_t *c = call_json(j, e, index, true), *list = json_array();

		json_array_append(j->calls, c);
		json_array_append_new(list, c);
		emit_json(j, chunk(j, delta_choice(j, json_pack("{s:o}", "tool_calls", list), NULL)));
		break;
	}
	case RUN_LOGPROB:
		json_array_append_new(j->logprobs, logprob_entry(j, e));
		break;
	case RUN_DONE:
		end_choice(j);
		break;
	}
}

static void streamed(struct job *j)
{
	struct hearth_err err = { 0 };
	int rc = start(j, &err);

	if (rc) {
		api_start_failed(j->s, j->r, rc, &err);
		job_free(j);
		return;
	}
	j->calls = json_array();
	http_stream(j->r, 200, "text/event-stream", flow_next, job_free, j);
}

static void handle(struct service *s, struct http_req *r, bool chat)
{
	struct job *j = calloc(1, sizeof(*j));

	s->requests++;
	if (!j) {
		http_error(r, 500, NULL, NULL, "out of memory");
		return;
	}
	j->s = s;
	j->r = j->flow.r = r;
	j->flow.take = take_event;
	j->created = time(NULL);
	snprintf(j->id, sizeof(j->id), "%s%s", chat ? "chatcmpl-" : "cmpl-hrt-", http_id(r) + 4);
	if (!chat_request_parse(s, r, chat, &j->q)) {
		s->refused++;
		job_free(j);
		return;
	}
	if (j->q.stream) {
		streamed(j);
		return;
	}
	whole(j);
	job_free(j);
}

void api_chat(struct http_req *r, void *service)
{
	handle(service, r, true);
}

void api_completions(struct http_req *r, void *service)
{
	handle(service, r, false);
}
