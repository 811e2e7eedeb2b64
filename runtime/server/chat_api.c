// SPDX-License-Identifier: MIT
#include "server/chat_api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/chat_job.h"

#define LOOK_MS 50              /* how long a client's leaving may go unnoticed */

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

json_t *chat_usage(const struct chat_job *j)
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
	case -ENODEV:   /* the server stops, and whoever watches it starts it anew */
		http_answer_header(r, "Retry-After", "5");
		http_error(r, 503, "backend_lost", NULL, "%s", err->text);
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

int chat_job_start(struct chat_job *j, struct hearth_err *err)
{
	struct run_opts o = chat_request_run(&j->q, j->s, j->r);

	/* Each choice differs, and a given seed still gives the same n answers. */
	if (j->choice && o.sample.seed)
		o.sample.seed += j->choice;
	return run_start(&o, &j->flow.run, err);
}

void chat_job_free(void *arg)
{
	struct chat_job *j = arg;

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

const char *chat_finish_name(const struct chat_job *j)
{
	const struct gen_result *g = run_result(j->flow.run);

	if (g->finish == GEN_STOP && run_calls(j->flow.run))
		return "tool_calls";
	/* OpenAI knows no word for running out of memory; what was said is cut short, which is "length". */
	if (g->finish == GEN_MEMORY)
		return "length";
	return gen_finish_name(g->finish);
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

json_t *chat_call_json(const struct chat_job *j, const struct run_event *e, uint32_t index, bool stream)
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
static bool collect(struct chat_job *j)
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
			json_array_append_new(j->calls, chat_call_json(j, e, (uint32_t)json_array_size(j->calls), false));
			break;
		case RUN_LOGPROB:
			json_array_append_new(j->logprobs, chat_logprob(j, e));
			break;
		case RUN_DONE:
			done = true;
			break;
		}
	}
	j->last = *run_result(j->flow.run);
	if (ok && j->last.finish == GEN_ERROR && j->last.err.code == -ENODEV) {
		api_run_failed(j->r, j->last.err.code, &j->last.err);
		return false;
	}
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

static json_t *choice_json(struct chat_job *j)
{
	const char *finish = chat_finish_name(j);
	json_t *c, *m, *lp = json_null();

	if (j->q.logprobs)
		lp = j->q.chat ? chat_logprobs_chat(json_incref(j->logprobs)) : chat_logprobs_plain(j->logprobs);
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

static void whole(struct chat_job *j)
{
	struct hearth_err err = { 0 };
	json_t *o;
	int rc;

	j->choices = json_array();
	for (j->choice = 0; j->choice < j->q.n; j->choice++) {
		rc = chat_job_start(j, &err);
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
		      "created", (json_int_t)j->created, "model", j->s->model_id, "choices", j->choices, "usage", chat_usage(j),
		      "timings", api_timings(&j->last), "system_fingerprint", "hearth");
	http_reply_json(j->r, 200, o);
}

/* -- requests ------------------------------------------------------------------------ */

static void handle(struct service *s, struct http_req *r, bool chat)
{
	struct chat_job *j = calloc(1, sizeof(*j));

	s->requests++;
	if (!j) {
		http_error(r, 500, NULL, NULL, "out of memory");
		return;
	}
	j->s = s;
	j->r = j->flow.r = r;
	j->created = time(NULL);
	snprintf(j->id, sizeof(j->id), "%s%s", chat ? "chatcmpl-" : "cmpl-hrt-", http_id(r) + 4);
	if (!chat_request_parse(s, r, chat, &j->q)) {
		s->refused++;
		chat_job_free(j);
		return;
	}
	if (j->q.stream) {
		chat_stream(j);
		return;
	}
	whole(j);
	chat_job_free(j);
}

void api_chat(struct http_req *r, void *service)
{
	handle(service, r, true);
}

void api_completions(struct http_req *r, void *service)
{
	handle(service, r, false);
}
