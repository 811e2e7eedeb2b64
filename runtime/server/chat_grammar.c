// SPDX-License-Identifier: MIT
/* "response_format", "grammar" and "tool_choice" as the grammar that the answer follows. */
#include "server/chat_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/gbnf.h"
#include "grammar/schema.h"
#include "server/grammars.h"

static bool refused(struct http_req *r, int rc, const char *param, const struct hearth_err *err)
{
	if (!rc)
		return false;
	http_error(r, rc == -ENOMEM ? 500 : 400, rc == -EOPNOTSUPP ? "unsupported_schema" : "invalid_value", param, "%s", err->text);
	return true;
}

/* What a grammar is made from. */
struct source {
	char kind;                 /* of the text below: 'g'bnf, 's'chema, 'o'bject, 't'ools, 'e'ither tools or a format */
	const char *text;          /* GBNF */
	const json_t *json;        /* schema, tools */
	const json_t *format;      /* 'e': the schema; NULL: any object */
	const char *only;
	bool parallel, after_marker;
};

static int make_grammar(const struct source *m, struct grammar **ret, struct hearth_err *err)
{
	switch (m->kind) {
	case 'g':
		return grammar_from_gbnf(m->text, strlen(m->text), ret, err);
	case 's':
		return grammar_from_schema(m->json, ret, err);
	case 't':
		return grammar_from_tools(m->json, m->only, m->parallel, m->after_marker, ret, err);
	case 'e':
		return grammar_from_tools_or_schema(m->json, m->parallel, m->format, ret, err);
	default:
		return grammar_json_object(ret, err);
	}
}

/* The grammar of @m: one that was made lately, or a new one. */
static int grammar_of(struct service *s, const struct source *m, struct grammar **ret, struct hearth_err *err)
{
	/* Properties in another order are another grammar, so nothing is sorted. */
	char *text = m->json ? json_dumps(m->json, JSON_COMPACT | JSON_ENCODE_ANY) : NULL, *key = NULL;
	char *format = m->format ? json_dumps(m->format, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
	struct grammar *g;
	int rc, n;

	if ((m->json && !text) || (m->format && !format)) {
		free(text);
		free(format);
		return make_grammar(m, ret, err);
	}
	n = asprintf(&key, "%c%d%d%s\n%s\n%s", m->kind, m->parallel, m->after_marker, m->only ? m->only : "",
		     text ? text : m->text ? m->text : "", format ? format : "");
	free(text);
	free(format);
	if (n < 0)
		return err_set(err, -ENOMEM, "out of memory");
	g = grammars_get(s->grammars, key, (size_t)n);
	rc = g ? 0 : make_grammar(m, &g, err);
	if (!rc) {
		grammars_put(s->grammars, key, (size_t)n, g);
		*ret = g;
	}
	free(key);
	return rc;
}

int chat_tools_grammar(struct service *s, const json_t *tools, const char *only, bool parallel, bool after_marker, struct grammar **ret,
		       struct hearth_err *err)
{
	return grammar_of(s, &(struct source){ .kind = 't', .json = tools, .only = only, .parallel = parallel, .after_marker = after_marker }, ret, err);
}

/* What "grammar" or "response_format" asks for; kind 0: nothing. False: refused. */
static bool format_of(struct http_req *r, const struct chat_request *q, struct source *m)
{
	const json_t *f = json_object_get(q->body, "response_format"), *js;
	const json_t *gbnf = json_object_get(q->body, "grammar");
	const char *type = json_string_value(json_object_get(f, "type"));

	memset(m, 0, sizeof(*m));
	if (json_is_string(gbnf) && json_string_length(gbnf)) {
		m->kind = 'g';
		m->text = json_string_value(gbnf);
		return true;
	}
	if (!f || json_is_null(f))
		return true;
	if (!type) {
		http_error(r, 400, "invalid_value", "response_format", "\"response_format\" needs a \"type\": text, json_object or json_schema");
		return false;
	}
	if (!strcmp(type, "text"))
		return true;
	m->kind = 's';
	/* A schema beside "type" is llama-server's form. */
	m->json = json_object_get(f, "schema");
	if (!strcmp(type, "json_object")) {
		if (!m->json)
			m->kind = 'o';
		return true;
	}
	if (strcmp(type, "json_schema")) {
		http_error(r, 400, "invalid_value", "response_format", "\"response_format\" of type \"%.40s\" is not known: text, json_object or json_schema", type);
		return false;
	}
	js = json_object_get(json_object_get(f, "json_schema"), "schema");
	if (js)
		m->json = js;
	if (!m->json) {
		http_error(r, 400, "invalid_value", "response_format", "\"response_format\" of type json_schema needs \"json_schema\": {\"schema\": ...}");
		return false;
	}
	return true;
}

/* The grammar of the format alone. */
static bool only_format(struct service *s, struct http_req *r, const struct chat_request *q, const struct source *m, struct grammar **ret)
{
	struct hearth_err err = { 0 };

	return !refused(r, grammar_of(s, m, ret, &err), m->kind == 'g' ? "grammar" : chat_name(q, "response_format"), &err);
}

bool chat_format(struct service *s, struct http_req *r, struct chat_request *q)
{
	const char *word = json_string_value(json_object_get(q->body, "tool_choice"));
	struct source m;

	if (!format_of(r, q, &m))
		return false;
	if (!m.kind)
		return true;
	q->mode = RUN_WHOLE;
	/* Beside tools it is chat_choice() that makes it. */
	return (q->has_tools && !(word && !strcmp(word, "none"))) || only_format(s, r, q, &m, &q->grammar);
}

static const char *function_name(const json_t *tool)
{
	const char *name = json_string_value(json_object_get(json_object_get(tool, "function"), "name"));

	return name ? name : json_string_value(json_object_get(tool, "name"));
}

/*
 * "allowed_tools": those of @tools that it names, as a new list, and whether one
 * must be called. The prompt keeps all of them, which is what it is for: another
 * choice does not cost the cached prompt. Chat completions wrap it in an object
 * of the same name, responses do not.
 */
static json_t *allowed(struct http_req *r, const json_t *tools, const json_t *choice, bool *forced)
{
	const json_t *in = json_object_get(choice, "allowed_tools"), *list, *v, *t;
	const char *mode, *name, *have;
	json_t *some;
	size_t i, k;

	if (!in)
		in = choice;
	list = json_object_get(in, "tools");
	mode = json_string_value(json_object_get(in, "mode"));
	if (!mode || (strcmp(mode, "auto") && strcmp(mode, "required")) || !json_array_size(list)) {
		http_error(r, 400, "invalid_value", "tool_choice", "\"tool_choice\" of type allowed_tools needs \"mode\": auto or required, and \"tools\": a list of functions");
		return NULL;
	}
	some = json_array();
	json_array_foreach((json_t *)list, i, v) {
		bool found = false;

		name = function_name(v);
		json_array_foreach((json_t *)tools, k, t) {
			have = function_name(t);
			if (!name || !have || strcmp(name, have))
				continue;
			found = true;
			if (json_array_append(some, (json_t *)t)) {
				json_decref(some);
				http_error(r, 500, "server_error", NULL, "out of memory for the tools");
				return NULL;
			}
			break;
		}
		if (!found) {
			http_error(r, 400, "invalid_value", "tool_choice", "\"tool_choice\" allows tools[%zu] \"%.60s\", which is not among \"tools\"", i, name ? name : "?");
			json_decref(some);
			return NULL;
		}
	}
	*forced = !strcmp(mode, "required");
	return some;
}

/*
 * Calls and a format both hold, as they do at OpenAI: the format is that of the
 * words, and a call is none. What is neither is not written.
 */
static bool choose_or_format(struct service *s, struct http_req *r, struct chat_request *q, const json_t *tools, bool parallel, const struct source *format)
{
	struct source m = { .kind = 'e', .json = tools, .format = format->json, .parallel = parallel };
	struct hearth_err err = { 0 };
	struct grammar *g = NULL;
	int rc;

	rc = grammar_of(s, &m, &q->grammar, &err);
	if (!rc)
		return true;
	/* Which of the two it was. */
	if (!only_format(s, r, q, format, &g))
		return false;
	grammar_unref(g);
	return !refused(r, rc, "tools", &err);
}

static bool choose(struct service *s, struct http_req *r, struct chat_request *q, const json_t *tools, const char *name, bool parallel, bool forced)
{
	struct hearth_err err = { 0 };
	struct grammar *g = NULL;
	struct source format;

	if (!format_of(r, q, &format))
		return false;
	if (format.kind == 'g') {
		http_error(r, 400, "unsupported_value", "grammar", "\"grammar\" and \"tools\" cannot both hold; \"tool_choice\": \"none\" leaves the grammar");
		return false;
	}
	if (format.kind && !forced)
		return choose_or_format(s, r, q, tools, parallel, &format);
	/* The answer is a call, and has no words for the format; one that could not hold is refused all the same. */
	if (format.kind) {
		if (!only_format(s, r, q, &format, &g))
			return false;
		grammar_unref(g);
	}
	q->mode = forced ? RUN_WHOLE : RUN_LAZY;
	return !refused(r, chat_tools_grammar(s, tools, name, parallel, !forced, &q->grammar, &err), "tools", &err);
}

bool chat_choice(struct service *s, struct http_req *r, struct chat_request *q)
{
	const json_t *tools = json_object_get(q->body, "tools"), *choice = json_object_get(q->body, "tool_choice");
	const char *name = NULL, *word = json_string_value(choice), *type = json_string_value(json_object_get(choice, "type"));
	bool parallel = true, forced = false;

	if (!chat_boolean(r, q->body, "parallel_tool_calls", &parallel))
		return false;
	if (type && !strcmp(type, "allowed_tools")) {
		json_t *some = allowed(r, tools, choice, &forced);
		bool ok = some && choose(s, r, q, some, NULL, parallel, forced);

		json_decref(some);
		return ok;
	}
	if (json_is_object(choice)) {
		name = function_name(choice);
		if (!name) {
			http_error(r, 400, "invalid_value", "tool_choice", "\"tool_choice\" names no function");
			return false;
		}
		forced = true;
		parallel = false;
	} else if (word && !strcmp(word, "required")) {
		forced = true;
	} else if (word && !strcmp(word, "none")) {
		q->no_calls = true;
	} else if (choice && !json_is_null(choice) && (!word || strcmp(word, "auto"))) {
		http_error(r, 400, "invalid_value", "tool_choice", "\"tool_choice\" must be none, auto, required, a function or allowed_tools");
		return false;
	}
	if (!q->has_tools) {
		if (forced) {
			http_error(r, 400, "invalid_value", "tool_choice", "\"tool_choice\" asks for a call, but \"tools\" is empty");
			return false;
		}
		/* Its calls never go out; without them it would say that it did what was asked. */
		q->no_calls = q->no_calls && !q->home;
		return true;
	}
	return q->no_calls || choose(s, r, q, tools, name, parallel, forced);
}
