// SPDX-License-Identifier: MIT
/* "messages" and "tools" as the tokens of the model's prompt. */
#include "server/chat_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "home/prompt.h"

#define MAX_MESSAGES 200000

/* Content as a text: a string, null, or parts of type text joined. */
static const char *content_text(struct http_req *r, struct chat_request *q, const json_t *c, size_t msg)
{
	const char *list = chat_name(q, "messages");
	size_t n = 0, i;
	char *text;
	json_t *p;

	if (!c || json_is_null(c))
		return "";
	if (json_is_string(c))
		return json_string_value(c);
	if (!json_is_array(c)) {
		http_error(r, 400, "invalid_value", list, "%s[%zu].content must be a text, null or a list of parts", list, msg);
		return NULL;
	}
	json_array_foreach((json_t *)c, i, p) {
		const char *type = json_string_value(json_object_get(p, "type"));

		if (!type || (strcmp(type, "text") && strcmp(type, "input_text") && strcmp(type, "output_text")) ||
		    !json_is_string(json_object_get(p, "text"))) {
			http_error(r, 400, "unsupported_value", list, "%s[%zu].content[%zu]: this model takes only parts of type text, not \"%.40s\"", list, msg, i, type ? type : "?");
			return NULL;
		}
		n += json_string_length(json_object_get(p, "text"));
	}
	text = malloc(n + 1);
	if (text)
		*text = 0;
	n = 0;
	if (text)
		json_array_foreach((json_t *)c, i, p) {
			size_t k = json_string_length(json_object_get(p, "text"));

			memcpy(text + n, json_string_value(json_object_get(p, "text")), k);
			n += k;
			text[n] = 0;
		}
	text = chat_own(q, text);
	if (!text)
		http_error(r, 500, NULL, NULL, "out of memory");
	return text;
}

static bool tool_calls(struct http_req *r, struct chat_request *q, const json_t *list, struct chat_msg *m, size_t msg)
{
	struct chat_call *calls;
	size_t i;
	json_t *c;

	if (!json_is_array(list)) {
		http_error(r, 400, "invalid_value", "messages", "messages[%zu].tool_calls must be a list", msg);
		return false;
	}
	calls = (struct chat_call *)(void *)chat_own(q, calloc(json_array_size(list) + 1, sizeof(*calls)));
	if (!calls) {
		http_error(r, 500, NULL, NULL, "out of memory");
		return false;
	}
	json_array_foreach((json_t *)list, i, c) {
		const json_t *f = json_object_get(c, "function"), *args = json_object_get(f, "arguments");

		calls[i].name = json_string_value(json_object_get(f, "name"));
		/* A text by the standard; some clients send the object itself. */
		if (json_is_object(args))
			calls[i].arguments = chat_own(q, json_dumps(args, JSON_COMPACT));
		else
			calls[i].arguments = json_is_string(args) && json_string_length(args) ? json_string_value(args) : "{}";
		if (!calls[i].name || !calls[i].arguments) {
			http_error(r, 400, "invalid_value", "messages", "messages[%zu].tool_calls[%zu] has no function name", msg, i);
			return false;
		}
	}
	m->calls = calls;
	m->n_calls = json_array_size(list);
	return true;
}

static bool said(const json_t *v)
{
	return v && !json_is_null(v);
}

/* Calls of an assistant's message; "function_call" is what they were before there could be several. */
static bool calls_of(struct http_req *r, struct chat_request *q, const json_t *j, struct chat_msg *m, size_t msg)
{
	json_t *list = json_object_get(j, "tool_calls"), *one = json_object_get(j, "function_call");
	bool ok;

	if (said(list))
		return tool_calls(r, q, list, m, msg);
	if (!said(one))
		return true;
	/* Where its texts lie is the body, which stays. */
	list = json_pack("[{s:O}]", "function", one);
	ok = list && tool_calls(r, q, list, m, msg);
	json_decref(list);
	if (!list)
		http_error(r, 500, NULL, NULL, "out of memory");
	return ok;
}

/*
 * What the configuration lets a conversation begin with that has no system message; how
 * many messages of @m. -1: no memory. The home model never saw a home without its tools,
 * and answers nonsense about one: where the client brings none, *ret_tools is the home's.
 */
static int begin_with(struct service *s, struct chat_request *q, struct chat_msg *m, char **ret_tools)
{
	char *system = NULL, *now = NULL, *tools = NULL;
	struct home_told *told = NULL;
	struct tm tm;
	int rc;

	if (s->cfg->chat_system) {
		m[0] = (struct chat_msg){ .role = CHAT_SYSTEM, .content = s->cfg->chat_system };
		return 1;
	}
	if (!s->cfg->chat_home)
		return 0;
	pthread_mutex_lock(&s->home_lock);
	home_now(s->home, &tm);
	rc = home_prompt_system(s->home, &system);
	if (!rc)
		rc = home_told_new(&told);
	if (!rc)
		rc = home_prompt_now(told, s->home, &tm, NULL, &now);
	if (!rc && !q->has_tools)
		rc = home_prompt_tools(s->home, HOME_TOOLS_COMPACT, &tools);
	pthread_mutex_unlock(&s->home_lock);
	home_told_free(told);
	system = chat_own(q, system);
	now = chat_own(q, now);
	tools = chat_own(q, tools);
	if (rc || !system || !now || (!tools && !q->has_tools))
		return -1;
	q->home = tools != NULL;
	*ret_tools = tools;
	m[0] = (struct chat_msg){ .role = CHAT_SYSTEM, .content = system };
	m[1] = (struct chat_msg){ .role = CHAT_SYSTEM, .content = now };
	return 2;
}

/* A question about the home has its names as the model is told them. */
static bool home_names(struct service *s, struct chat_request *q, struct chat_msg *m, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char *said = NULL;

		if (m[i].role != CHAT_USER)
			continue;
		m[i].content = home_said(s->home, m[i].content, &said) ? NULL : chat_own(q, said);
		if (!m[i].content)
			return false;
	}
	return true;
}

/* *ret_tools: the home's, where they belong to what it begins with; else as it was. */
static bool messages(struct service *s, struct http_req *r, struct chat_request *q, struct chat_msg **ret, size_t *ret_n, char **ret_tools)
{
	const json_t *list = json_object_get(q->body, "messages"), *told = q->form == CHAT_FORM_RESPONSE ? json_object_get(q->body, "instructions") : NULL;
	const char *name = chat_name(q, "messages");
	bool has_system = false;
	struct chat_msg *m;
	size_t i;
	json_t *j;
	int more;

	if (!json_is_array(list) || !json_array_size(list)) {
		http_error(r, 400, "invalid_value", name, "\"%s\" must be a non-empty list", name);
		return false;
	}
	if (json_array_size(list) > MAX_MESSAGES) {
		http_error(r, 400, "invalid_value", name, "%zu messages; at most %d are taken", json_array_size(list), MAX_MESSAGES);
		return false;
	}
	m = (struct chat_msg *)(void *)chat_own(q, calloc(json_array_size(list) + 2, sizeof(*m)));
	if (!m) {
		http_error(r, 500, NULL, NULL, "out of memory");
		return false;
	}
	json_array_foreach((json_t *)list, i, j) {
		const char *role = json_string_value(json_object_get(j, "role"));

		if (role && (!strcmp(role, "system") || !strcmp(role, "developer")))
			m[i].role = CHAT_SYSTEM;
		else if (role && !strcmp(role, "user"))
			m[i].role = CHAT_USER;
		else if (role && !strcmp(role, "assistant"))
			m[i].role = CHAT_ASSISTANT;
		else if (role && (!strcmp(role, "tool") || !strcmp(role, "function")))
			m[i].role = CHAT_TOOL;
		else {
			http_error(r, 400, "invalid_value", name, "%s[%zu].role must be system, developer, user, assistant or tool", name, i);
			return false;
		}
		has_system |= m[i].role == CHAT_SYSTEM;
		m[i].content = content_text(r, q, json_object_get(j, "content"), i);
		if (!m[i].content)
			return false;
		m[i].reasoning = json_string_value(json_object_get(j, "reasoning_content"));
		if (m[i].role == CHAT_ASSISTANT && !calls_of(r, q, j, &m[i], i))
			return false;
	}
	*ret = m;
	*ret_n = json_array_size(list);
	/* A response's instructions stand before its input. */
	if (!has_system || told) {
		struct chat_msg first[2] = { { .role = CHAT_SYSTEM, .content = json_string_value(told) } };

		more = told ? 1 : begin_with(s, q, first, ret_tools);
		if (more < 0 || (q->home && !home_names(s, q, m, *ret_n))) {
			http_error(r, 500, NULL, NULL, "out of memory");
			return false;
		}
		memmove(m + more, m, *ret_n * sizeof(*m));
		memcpy(m, first, (size_t)more * sizeof(*m));
		*ret_n += (size_t)more;
	}
	return true;
}

bool chat_encode_messages(struct service *s, struct http_req *r, struct chat_request *q, char **ret_prompt)
{
	const json_t *tools = json_object_get(q->body, "tools"), *kw = json_object_get(q->body, "chat_template_kwargs");
	const char *effort = json_string_value(json_object_get(q->body, "reasoning_effort"));
	struct chat_opts co = { 0 };
	char *home_tools = NULL;
	struct chat_msg *m;
	struct hearth_err err = { 0 };
	struct chat_text text = { 0 };
	size_t n, i;
	json_t *t;
	int rc;

	if (!s->chat) {
		http_error(r, 400, "unsupported_model", "model", "this model has no chat template that is known: %s", s->chat_why.text);
		return false;
	}
	q->thinking = s->cfg->thinking;
	if (!chat_boolean(r, q->body, "think", &q->thinking))
		return false;
	if (json_is_object(kw) && !chat_boolean(r, kw, "enable_thinking", &q->thinking))
		return false;
	if (effort)
		q->thinking = strcmp(effort, "none") && strcmp(effort, "minimal");
	q->thinking = q->thinking && chat_can_think(s->chat);
	co.thinking = q->thinking;
	q->thinking = q->thinking || chat_prompt_thinks(s->chat, &co); /* some cannot be told not to */
	if (tools && !json_is_null(tools)) {
		if (!json_is_array(tools)) {
			http_error(r, 400, "invalid_value", "tools", "\"tools\" must be a list");
			return false;
		}
		json_array_foreach((json_t *)tools, i, t) {
			const char *type = json_string_value(json_object_get(t, "type"));

			if ((type && strcmp(type, "function")) || !json_is_string(json_object_get(json_object_get(t, "function"), "name"))) {
				http_error(r, 400, "invalid_value", "tools", "tools[%zu] must be {\"type\": \"function\", \"function\": {\"name\": ...}}", i);
				return false;
			}
		}
		q->has_tools = json_array_size(tools) > 0;
		if (q->has_tools) {
			co.tools = chat_own(q, json_dumps(tools, JSON_COMPACT));
			if (!co.tools) {
				http_error(r, 500, NULL, NULL, "out of memory");
				return false;
			}
		}
	}
	if (!messages(s, r, q, &m, &n, &home_tools))
		return false;
	if (q->home) {
		const json_t *temp = json_object_get(q->body, "temperature");

		co.tools = home_tools;
		if (!said(temp))
			q->sample.temp = 0;
	}
	if (ret_prompt) {
		rc = chat_render(s->chat, m, n, &co, &text, &err);
		if (!rc)
			*ret_prompt = text.text ? strdup(text.text) : NULL;
		chat_text_free(&text);
	}
	rc = chat_encode(s->chat, s->tok, m, n, &co, &q->tokens, &err);
	if (rc) {
		http_error(r, rc == -ENOMEM ? 500 : 400, "invalid_value", chat_name(q, "messages"), "%s", err.text);
		return false;
	}
	return true;
}
