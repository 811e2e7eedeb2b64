// SPDX-License-Identifier: MIT
/*
 * /v1/responses, the part that voice clients use: text in, text and function
 * calls out, whole or streamed. The request is put into the form of a chat
 * completion and runs as one; nothing is stored, so `store` and
 * `previous_response_id` are refused where they would matter.
 */
#include "server/responses_api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/chat_api.h"
#include "server/chat_request.h"
#include "server/flow.h"

#define LOOK_MS 50

/* -- the request, as chat ------------------------------------------------------------- */

/* input[@i] as a message; NULL: refused. */
static json_t *as_message(struct http_req *r, const json_t *item, size_t i)
{
	const char *type = json_string_value(json_object_get(item, "type")), *id = json_string_value(json_object_get(item, "call_id"));
	const json_t *content = json_object_get(item, "content"), *name = json_object_get(item, "name"), *args = json_object_get(item, "arguments");
	const json_t *output = json_object_get(item, "output"), *lacks = NULL;
	const char *what;
	json_t *m = NULL;

	if (!json_is_object(item)) {
		http_error(r, 400, "invalid_value", "input", "input[%zu] must be an object", i);
		return NULL;
	}
	if (!type || !strcmp(type, "message")) {
		what = "content";
		lacks = content;
		m = json_pack("{s:O*,s:O*}", "role", json_object_get(item, "role"), "content", content);
	} else if (!strcmp(type, "function_call")) {
		what = json_is_string(name) ? "arguments" : "name";
		lacks = json_is_string(name) ? args : NULL;
		m = json_pack("{s:s,s:n,s:[{s:s,s:s,s:{s:O*,s:O*}}]}", "role", "assistant", "content", "tool_calls",
			      "id", id ? id : "", "type", "function", "function", "name", name, "arguments", args);
	} else if (!strcmp(type, "function_call_output")) {
		what = "output";
		lacks = output;
		m = json_pack("{s:s,s:O*}", "role", "tool", "content", output);
	} else {
		http_error(r, 400, "unsupported_value", "input", "input[%zu] of type \"%.40s\" is not taken: message, function_call or function_call_output", i, type);
		return NULL;
	}
	if (m && lacks)
		return m;
	json_decref(m);
	if (lacks)
		http_error(r, 500, NULL, NULL, "out of memory");
	else
		http_error(r, 400, "invalid_value", "input", "input[%zu] has no \"%s\"", i, what);
	return NULL;
}

/* "text": {"format": ...} as chat completions write it, into @c; false: refused. */
static bool as_format(struct http_req *r, const json_t *b, json_t *c)
{
	const json_t *fmt = json_object_get(json_object_get(b, "text"), "format"), *schema = json_object_get(fmt, "schema");
	const char *type = json_string_value(json_object_get(fmt, "type"));

	if (!fmt || json_is_null(fmt))
		return true;
	if (!type || (strcmp(type, "text") && strcmp(type, "json_object") && strcmp(type, "json_schema"))) {
		http_error(r, 400, "invalid_value", "text", "\"text\": {\"format\": ...} needs a \"type\": text, json_object or json_schema");
		return false;
	}
	if (strcmp(type, "json_schema")) {
		json_object_set_new(c, "response_format", json_pack("{s:s}", "type", type));
		return true;
	}
	if (!schema) {
		http_error(r, 400, "invalid_value", "text", "\"text\": {\"format\": ...} of type json_schema needs \"schema\"");
		return false;
	}
	json_object_set_new(c, "response_format", json_pack("{s:s,s:{s:O}}", "type", type, "json_schema", "schema", schema));
	return true;
}

static void copy(json_t *to, const char *as, const json_t *from, const char *key)
{
	json_t *v = json_object_get(from, key);

	if (v && !json_is_null(v))
		json_object_set(to, as, v);
}

/* A field that is not what it can be would be left out in silence. */
static bool shaped(struct http_req *r, const json_t *b)
{
	static const struct {
		const char *key, *what;
		json_type type;
	} shape[] = {
		{ "instructions", "a text", JSON_STRING }, { "tools", "a list", JSON_ARRAY }, { "include", "a list", JSON_ARRAY },
		{ "text", "an object", JSON_OBJECT }, { "reasoning", "an object", JSON_OBJECT }, { "truncation", "a text", JSON_STRING },
		{ "previous_response_id", "a text", JSON_STRING },
	};
	const json_t *v;
	json_t *more;
	size_t i;

	for (i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
		v = json_object_get(b, shape[i].key);
		if (!v || json_is_null(v) || json_typeof(v) == shape[i].type)
			continue;
		http_error(r, 400, "invalid_value", shape[i].key, "\"%s\" must be %s", shape[i].key, shape[i].what);
		return false;
	}
	/* Most of what could be included is of tools that are not here; this would be of the answer. */
	json_array_foreach(json_object_get(b, "include"), i, more)
		if (json_is_string(more) && strstr(json_string_value(more), "logprobs")) {
			http_error(r, 400, "unsupported_value", "include", "\"include\": \"%.60s\" is not served here; /v1/chat/completions gives log-probabilities", json_string_value(more));
			return false;
		}
	return true;
}

json_t *responses_as_chat(struct http_req *r, const json_t *b)
{
	static const char *const same[] = { "model", "instructions", "max_output_tokens", "temperature", "top_p", "stream", "parallel_tool_calls", "seed", "prompt_cache_key", "conversation_id", "user", "nvext" };
	static const char *const known[] = {
		"model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "temperature", "top_p", "stream", "stream_options", "seed",
		"prompt_cache_key", "conversation_id", "nvext", "max_output_tokens", "reasoning", "text", "previous_response_id", "background", "include",
		"truncation", NULL,
	};
	const json_t *input = json_object_get(b, "input"), *tools = json_object_get(b, "tools"), *effort = json_object_get(json_object_get(b, "reasoning"), "effort");
	const char *word;
	json_t *c, *msgs, *list, *v, *m;
	size_t i;

	if (!chat_request_fields(r, b, known) || !shaped(r, b))
		return NULL;
	/* What is cut must be said. */
	if (json_is_string(json_object_get(b, "truncation")) && strcmp(json_string_value(json_object_get(b, "truncation")), "disabled")) {
		http_error(r, 400, "unsupported_value", "truncation", "\"truncation\" can only be disabled: a conversation is never cut here");
		return NULL;
	}
	if (json_is_string(json_object_get(b, "previous_response_id"))) {
		http_error(r, 400, "unsupported_value", "previous_response_id", "answers are not stored here; send the conversation in \"input\"");
		return NULL;
	}
	if (json_is_true(json_object_get(b, "background"))) {
		http_error(r, 400, "unsupported_value", "background", "background answers are not served here");
		return NULL;
	}
	c = json_object();
	msgs = json_array();
	if (json_is_string(input)) {
		json_array_append_new(msgs, json_pack("{s:s,s:O}", "role", "user", "content", input));
	} else if (json_is_array(input)) {
		json_array_foreach((json_t *)input, i, v) {
			m = as_message(r, v, i);
			if (!m)
				goto fail;
			json_array_append_new(msgs, m);
		}
	} else {
		http_error(r, 400, "invalid_value", "input", "\"input\" must be a text or a list of items");
		goto fail;
	}
	json_object_set_new(c, "messages", msgs);
	msgs = NULL;
	for (i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		copy(c, same[i], b, same[i]);
	if (effort && !json_is_null(effort) && !json_is_string(effort)) {
		http_error(r, 400, "invalid_value", "reasoning", "\"reasoning\": {\"effort\": ...} must be a text");
		goto fail;
	}
	copy(c, "reasoning_effort", json_object_get(b, "reasoning"), "effort");
	if (json_is_array(tools)) {
		list = json_array();
		json_object_set_new(c, "tools", list);
		json_array_foreach((json_t *)tools, i, v) {
			word = json_string_value(json_object_get(v, "type"));
			if (!word || strcmp(word, "function")) {
				http_error(r, 400, "unsupported_value", "tools", "tools[%zu] of type \"%.40s\" is not served here: only function", i, word ? word : "?");
				goto fail;
			}
			if (!json_is_string(json_object_get(v, "name"))) {
				http_error(r, 400, "invalid_value", "tools", "tools[%zu] must be {\"type\": \"function\", \"name\": ...}", i);
				goto fail;
			}
			m = json_object();
			copy(m, "name", v, "name");
			copy(m, "description", v, "description");
			copy(m, "parameters", v, "parameters");
			json_array_append_new(list, json_pack("{s:s,s:o}", "type", "function", "function", m));
		}
	}
	copy(c, "tool_choice", b, "tool_choice");
	if (!as_format(r, b, c))
		goto fail;
	return c;
fail:
	json_decref(msgs);
	json_decref(c);
	return NULL;
}

/* -- the answer -------------------------------------------------------------------------- */

struct response {
	struct flow flow;          /* first: a stream's argument is both */
	struct service *s;
	struct http_req *r;
	struct chat_request q;
	char id[64];
	time_t created;
	json_t *output;            /* finished items */
	char *text;
	size_t n_text;
	bool open;                 /* a message item has begun */
	uint32_t seq;
};

static bool grow(char **to, size_t *n, const char *s, size_t len)
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

static json_t *message_item(const struct response *j, const char *status)
{
	return json_pack("{s:s,s:s+,s:s,s:s,s:[{s:s,s:s%,s:[]}]}", "type", "message", "id", "msg_", j->id + 5, "status", status,
			 "role", "assistant", "content", "type", "output_text", "text", j->text ? j->text : "", j->n_text, "annotations");
}

/* What a client may show: "failed" alone says nothing. */
static json_t *failure(const struct gen_result *g)
{
	return json_pack("{s:s,s:s}", "code", "server_error", "message", g->err.text);
}

static json_t *response_json(const struct response *j, const char *status, const char *why)
{
	const struct gen_result *g = j->flow.run ? run_result(j->flow.run) : NULL;
	json_t *o = json_pack("{s:s,s:s,s:I,s:s,s:s,s:O,s:b,s:n}", "id", j->id, "object", "response", "created_at", (json_int_t)j->created,
			      "status", status, "model", j->s->model_id, "output", j->output, "store", 0, "error");

	if (g && !strcmp(status, "failed"))
		json_object_set_new(o, "error", failure(g));
	json_object_set_new(o, "incomplete_details", why ? json_pack("{s:s}", "reason", why) : json_null());
	if (g && g->finish)
		json_object_set_new(o, "usage", json_pack("{s:i,s:{s:i},s:i,s:{s:i},s:i}", "input_tokens", (int)g->n_prompt,
							  "input_tokens_details", "cached_tokens", (int)g->n_cached, "output_tokens", (int)g->n_out,
							  "output_tokens_details", "reasoning_tokens", 0, "total_tokens", (int)(g->n_prompt + g->n_out)));
	return o;
}

static json_t *call_item(const struct response *j, const struct run_event *e)
{
	char id[96];

	snprintf(id, sizeof(id), "call_%s_%zu", j->id + 5, json_array_size(j->output));
	return json_pack("{s:s,s:s+,s:s,s:s,s:s,s:s}", "type", "function_call", "id", "fc_", id + 5, "call_id", id, "name", e->text,
			 "arguments", e->arguments, "status", "completed");
}

/* One event of the stream; steals @o. */
static void send_event(struct response *j, const char *type, json_t *o)
{
	char *t;

	json_object_set_new(o, "type", json_string(type));
	json_object_set_new(o, "sequence_number", json_integer(j->seq++));
	t = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	if (!t) {
		j->flow.ended = true;
		return;
	}
	flow_put(&j->flow, "event: ", 7);
	flow_put(&j->flow, type, strlen(type));
	flow_put(&j->flow, "\ndata: ", 7);
	flow_put(&j->flow, t, strlen(t));
	flow_put(&j->flow, "\n\n", 2);
	free(t);
}

static json_t *place(const struct response *j)
{
	return json_pack("{s:s+,s:i,s:i}", "item_id", "msg_", j->id + 5, "output_index", (int)json_array_size(j->output), "content_index", 0);
}

static void open_message(struct response *j, bool stream)
{
	json_t *p;

	if (j->open)
		return;
	j->open = true;
	j->n_text = 0;             /* text after a call is a message of its own */
	if (!stream)
		return;
	send_event(j, "response.output_item.added", json_pack("{s:i,s:{s:s,s:s+,s:s,s:s,s:[]}}", "output_index", (int)json_array_size(j->output),
		   "item", "type", "message", "id", "msg_", j->id + 5, "status", "in_progress", "role", "assistant", "content"));
	p = place(j);
	json_object_set_new(p, "part", json_pack("{s:s,s:s,s:[]}", "type", "output_text", "text", "", "annotations"));
	send_event(j, "response.content_part.added", p);
}

static void close_message(struct response *j, bool stream)
{
	json_t *p;

	if (!j->open)
		return;
	if (stream) {
		p = place(j);
		json_object_set_new(p, "text", json_stringn(j->text ? j->text : "", j->n_text));
		send_event(j, "response.output_text.done", p);
		p = place(j);
		json_object_set_new(p, "part", json_pack("{s:s,s:s%,s:[]}", "type", "output_text", "text", j->text ? j->text : "", j->n_text, "annotations"));
		send_event(j, "response.content_part.done", p);
		send_event(j, "response.output_item.done", json_pack("{s:i,s:o}", "output_index", (int)json_array_size(j->output), "item", message_item(j, "completed")));
	}
	json_array_append_new(j->output, message_item(j, "completed"));
	j->open = false;
}

/* Takes one event of the run; true at the end. */
static bool take(struct response *j, const struct run_event *e, bool stream)
{
	const struct gen_result *g;
	json_t *item, *p;
	bool end = false;

	switch (e->kind) {
	case RUN_CONTENT:
		open_message(j, stream);
		if (!grow(&j->text, &j->n_text, e->text, e->len))
			j->flow.ended = true;
		if (stream) {
			p = place(j);
			json_object_set_new(p, "delta", json_stringn(e->text, e->len));
			send_event(j, "response.output_text.delta", p);
		}
		break;
	case RUN_CALL:
		close_message(j, stream);
		item = call_item(j, e);
		if (stream) {
			json_t *begun = json_copy(item);

			json_object_set_new(begun, "arguments", json_string(""));
			json_object_set_new(begun, "status", json_string("in_progress"));
			send_event(j, "response.output_item.added", json_pack("{s:i,s:o}", "output_index", (int)json_array_size(j->output), "item", begun));
			send_event(j, "response.function_call_arguments.delta", json_pack("{s:O,s:i,s:s}", "item_id", json_object_get(item, "id"),
				   "output_index", (int)json_array_size(j->output), "delta", e->arguments));
			send_event(j, "response.function_call_arguments.done", json_pack("{s:O,s:i,s:s}", "item_id", json_object_get(item, "id"),
				   "output_index", (int)json_array_size(j->output), "arguments", e->arguments));
			send_event(j, "response.output_item.done", json_pack("{s:i,s:O}", "output_index", (int)json_array_size(j->output), "item", item));
		}
		json_array_append_new(j->output, item);
		break;
	case RUN_DONE:
		end = true;
		g = run_result(j->flow.run);
		close_message(j, stream);
		if (!stream)
			break;
		if (g->finish == GEN_STOP)
			send_event(j, "response.completed", json_pack("{s:o}", "response", response_json(j, "completed", NULL)));
		else if (g->finish == GEN_LENGTH || g->finish == GEN_MEMORY)
			send_event(j, "response.incomplete", json_pack("{s:o}", "response", response_json(j, "incomplete", "max_output_tokens")));
		else
			send_event(j, "response.failed", json_pack("{s:o}", "response", response_json(j, "failed", NULL)));
		j->flow.ended = true;
		break;
	default:
		break;
	}
	return end;
}

static void response_free(void *arg)
{
	struct response *j = arg;

	run_free(j->flow.run);
	chat_request_done(&j->q);
	json_decref(j->output);
	free(j->text);
	flow_done(&j->flow);
	free(j);
}

static void take_event(struct flow *f, const struct run_event *e)
{
	take((struct response *)f, e, true);
}

static void whole(struct response *j)
{
	const struct gen_result *g;
	bool end = false;

	while (!end) {
		const struct run_event *e = run_next(j->flow.run, LOOK_MS);

		if (e)
			end = take(j, e, false);
		else if (http_gone(j->r))
			run_cancel(j->flow.run);
	}
	g = run_result(j->flow.run);
	if (!j->flow.ended && g->finish == GEN_ERROR && g->err.code == -ENODEV)
		api_run_failed(j->r, g->err.code, &g->err);
	else if (g->finish == GEN_ERROR || j->flow.ended)
		http_error(j->r, 500, "generation_failed", NULL, "%s", j->flow.ended ? "out of memory for the answer" : g->err.text);
	else if (g->finish == GEN_CANCELLED)
		api_run_failed(j->r, g->err.code, &g->err);
	else
		http_reply_json(j->r, 200, response_json(j, g->finish == GEN_STOP ? "completed" : "incomplete",
							 g->finish == GEN_STOP ? NULL : "max_output_tokens"));
}

void api_responses(struct http_req *r, void *service)
{
	struct service *s = service;
	struct response *j = calloc(1, sizeof(*j));
	struct hearth_err err = { 0 };
	struct run_opts o;
	json_t *b, *c;
	int rc;

	s->requests++;
	if (!j) {
		http_error(r, 500, NULL, NULL, "out of memory");
		return;
	}
	j->s = s;
	j->r = j->flow.r = r;
	j->flow.take = take_event;
	j->created = time(NULL);
	j->output = json_array();
	snprintf(j->id, sizeof(j->id), "resp_%s", http_id(r) + 4);
	b = http_json(r);
	c = b ? responses_as_chat(r, b) : NULL;
	json_decref(b);
	if (!c || !chat_request_from(s, r, c, CHAT_FORM_RESPONSE, &j->q)) {
		s->refused++;
		response_free(j);
		return;
	}
	o = chat_request_run(&j->q, s, r);
	rc = run_start(&o, &j->flow.run, &err);
	if (rc) {
		api_start_failed(s, r, rc, &err);
		response_free(j);
		return;
	}
	if (!j->q.stream) {
		whole(j);
		response_free(j);
		return;
	}
	send_event(j, "response.created", json_pack("{s:o}", "response", response_json(j, "in_progress", NULL)));
	send_event(j, "response.in_progress", json_pack("{s:o}", "response", response_json(j, "in_progress", NULL)));
	http_stream(r, 200, "text/event-stream", flow_next, response_free, j);
}
