// SPDX-License-Identifier: MIT
/* Chat completions and completions as server-sent events. */
#include "server/chat_job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/chat_api.h"

static void emit_json(struct chat_job *j, json_t *o)
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
static void emit_error(struct chat_job *j, const char *text, const char *code)
{
	emit_json(j, json_pack("{s:{s:s,s:s,s:n,s:s?}}", "error", "message", text, "type", "server_error", "param", "code", code));
	j->flow.ended = true;
}

/* Steals @choice; NULL gives an empty list (usage). */
static json_t *chunk(const struct chat_job *j, json_t *choice)
{
	json_t *list = json_array();

	if (choice)
		json_array_append_new(list, choice);
	return json_pack("{s:s,s:s,s:I,s:s,s:s,s:o}", "id", j->id, "object", j->q.chat ? "chat.completion.chunk" : "text_completion",
			 "created", (json_int_t)j->created, "model", j->s->model_id, "system_fingerprint", "hearth", "choices", list);
}

static json_t *delta_choice(const struct chat_job *j, json_t *delta, json_t *lp)
{
	return json_pack("{s:i,s:o,s:o,s:n}", "index", (int)j->choice, "delta", delta, "logprobs", lp ? lp : json_null(), "finish_reason");
}

/* What all chunks of a choice begin with; an object for each would cost more than what it says. */
static void make_head(struct chat_job *j)
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

static void emit_text(struct chat_job *j, const char *key, const struct run_event *e)
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
			lp = chat_logprobs_plain(j->logprobs);
			json_array_clear(j->logprobs);
		}
		emit_json(j, chunk(j, json_pack("{s:s%,s:i,s:o,s:n}", "text", e->text, e->len, "index", (int)j->choice,
						"logprobs", lp ? lp : json_null(), "finish_reason")));
		return;
	}
	if (j->q.logprobs && json_array_size(j->logprobs)) {
		lp = chat_logprobs_chat(json_copy(j->logprobs));
		json_array_clear(j->logprobs);
	}
	emit_json(j, chunk(j, delta_choice(j, json_pack("{s:s%}", key, e->text, e->len), lp)));
}

static void begin_choice(struct chat_job *j)
{
	j->role_sent = true;
	json_decref(j->logprobs);
	j->logprobs = json_array();
	make_head(j);
	if (j->q.chat)
		emit_json(j, chunk(j, delta_choice(j, json_pack("{s:s,s:s}", "role", "assistant", "content", ""), NULL)));
}

/* What a client may try again, when the server is there again; NULL: nothing of the kind. */
static const char *ending(int rc)
{
	return rc == -ESHUTDOWN ? "stopping" : rc == -ENODEV ? "backend_lost" : NULL;
}

static void end_choice(struct chat_job *j)
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
		emit_error(j, g->err.text, ending(g->err.code) ? ending(g->err.code) : gen_finish_name(g->finish));
		return;
	}
	/* In a chunk of its own, empty: strict readers drop what comes beside a finish_reason. */
	if (j->q.chat)
		c = json_pack("{s:i,s:{},s:n,s:s}", "index", (int)j->choice, "delta", "logprobs", "finish_reason", chat_finish_name(j));
	else
		c = json_pack("{s:s,s:i,s:n,s:s}", "text", "", "index", (int)j->choice, "logprobs", "finish_reason", chat_finish_name(j));
	c = chunk(j, c);
	if (j->choice + 1 == j->q.n)
		json_object_set_new(c, "timings", api_timings(g));
	emit_json(j, c);
	run_free(j->flow.run);
	j->flow.run = NULL;
	if (++j->choice < j->q.n) {
		j->role_sent = false;
		rc = chat_job_start(j, &err);
		if (rc) {
			emit_error(j, err.text, ending(rc));
		}
		return;
	}
	if (j->q.include_usage) {
		c = chunk(j, NULL);
		json_object_set_new(c, "usage", chat_usage(j));
		emit_json(j, c);
	}
	flow_put(&j->flow, "data: [DONE]\n\n", 14);
	j->flow.ended = true;
}

static void take_event(struct flow *f, const struct run_event *e)
{
	struct chat_job *j = (struct chat_job *)f;

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
		json_t *c = chat_call_json(j, e, index, true), *list = json_array();

		json_array_append(j->calls, c);
		json_array_append_new(list, c);
		emit_json(j, chunk(j, delta_choice(j, json_pack("{s:o}", "tool_calls", list), NULL)));
		break;
	}
	case RUN_LOGPROB:
		json_array_append_new(j->logprobs, chat_logprob(j, e));
		break;
	case RUN_DONE:
		end_choice(j);
		break;
	}
}

void chat_stream(struct chat_job *j)
{
	struct hearth_err err = { 0 };
	int rc = chat_job_start(j, &err);

	if (rc) {
		api_start_failed(j->s, j->r, rc, &err);
		chat_job_free(j);
		return;
	}
	j->calls = json_array();
	j->flow.take = take_event;
	http_stream(j->r, 200, "text/event-stream", flow_next, chat_job_free, j);
}
