// SPDX-License-Identifier: MIT
#include "server/chat_request.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cache/kv.h"
#include "grammar/gbnf.h"
#include "grammar/schema.h"
#include "gguf/digest.h"
#include "home/prompt.h"
#include "server/grammars.h"

#define MAX_MESSAGES 200000

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

/* Keeps @text (malloced) until the request is done; NULL in, NULL out. */
static char *own(struct chat_request *q, char *text)
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

/* -- fields ------------------------------------------------------------------------ */

static bool number(struct http_req *r, const json_t *b, const char *key, double min, double max, double *v)
{
	const json_t *j = json_object_get(b, key);

	if (!j || json_is_null(j))
		return true;
	if (!json_is_number(j) || !isfinite(json_number_value(j)) || json_number_value(j) < min || json_number_value(j) > max) {
		http_error(r, 400, "invalid_value", key, "\"%s\" must be a number from %g to %g", key, min, max);
		return false;
	}
	*v = json_number_value(j);
	return true;
}

static bool integer(struct http_req *r, const json_t *b, const char *key, json_int_t min, json_int_t max, json_int_t *v)
{
	const json_t *j = json_object_get(b, key);

	if (!j || json_is_null(j))
		return true;
	if (!json_is_integer(j) || json_integer_value(j) < min || json_integer_value(j) > max) {
		http_error(r, 400, "invalid_value", key, "\"%s\" must be a whole number from %lld to %lld", key, (long long)min, (long long)max);
		return false;
	}
	*v = json_integer_value(j);
	return true;
}

static bool boolean(struct http_req *r, const json_t *b, const char *key, bool *v)
{
	const json_t *j = json_object_get(b, key);

	if (!j || json_is_null(j))
		return true;
	if (!json_is_boolean(j)) {
		http_error(r, 400, "invalid_value", key, "\"%s\" must be true or false", key);
		return false;
	}
	*v = json_is_true(j);
	return true;
}

/*
 * Samplers that are not here, as llama.cpp's clients switch them off: with that
 * value they ask for nothing. What goes with them is spare then.
 */
static bool switched_off(const char *key, const json_t *v)
{
	static const struct {
		const char *key;
		double off;
	} samplers[] = {
		{ "typical_p", 1 }, { "typ_p", 1 }, { "tfs_z", 1 }, { "mirostat", 0 }, { "mirostat_mode", 0 }, { "dynatemp_range", 0 },
		{ "xtc_probability", 0 }, { "dry_multiplier", 0 }, { "top_n_sigma", -1 }, { "epsilon_cutoff", 0 }, { "eta_cutoff", 0 },
		{ "length_penalty", 1 }, { "min_tokens", 0 }, { "n_probs", 0 },
	};

	for (size_t i = 0; i < sizeof(samplers) / sizeof(samplers[0]); i++)
		if (!strcmp(samplers[i].key, key))
			return json_is_number(v) && json_number_value(v) == samplers[i].off;
	return (!strcmp(key, "ignore_eos") || !strcmp(key, "use_beam_search")) && json_is_false(v);
}

/*
 * As OpenAI does it, a field that nobody knows is an error: it is a mistake in
 * writing, or asks for what would not be done. @known, and what clients send to
 * any server and can do without.
 */
bool chat_request_fields(struct http_req *r, const json_t *b, const char *const *known)
{
	static const char *const spare[] = {
		/* OpenAI's, about storing, billing and speed */
		"user", "safety_identifier", "store", "metadata", "service_tier", "prediction", "prompt_cache_retention", "verbosity",
		/* llama-server's, vLLM's and Ollama's, about how, not what */
		"cache_prompt", "id_slot", "timings_per_token", "return_progress", "return_tokens", "reasoning_format", "add_generation_prompt",
		"keep_alive", "request_id", "session_id", "chat_id", "skip_special_tokens",
		/* of samplers that are refused unless they are switched off */
		"mirostat_tau", "mirostat_eta", "dynatemp_exponent", "xtc_threshold", "dry_base", "dry_allowed_length", "dry_penalty_last_n",
		"dry_sequence_breakers",
	};
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)b, key, v) {
		size_t i = 0, k = 0;

		while (known[i] && strcmp(known[i], key))
			i++;
		while (k < sizeof(spare) / sizeof(spare[0]) && strcmp(spare[k], key))
			k++;
		/* Said to be none, it asks for nothing. */
		if (known[i] || k < sizeof(spare) / sizeof(spare[0]) || json_is_null(v) || switched_off(key, v))
			continue;
		http_error(r, 400, "unknown_parameter", NULL, "the field \"%.80s\" is not known here; it would be ignored", key);
		return false;
	}
	return true;
}

/* Those of the standard that say one thing only here. */
static bool only_text(struct http_req *r, const json_t *b)
{
	const json_t *j = json_object_get(b, "modalities"), *v;
	bool text = !j || json_is_null(j) || json_is_array(j);
	size_t i;

	json_array_foreach((json_t *)j, i, v)
		text &= json_is_string(v) && !strcmp(json_string_value(v), "text");
	if (!text) {
		http_error(r, 400, "unsupported_value", "modalities", "\"modalities\" can only be [\"text\"] here; speech is made by /v1/audio/speech and /v1/realtime");
		return false;
	}
	if (json_is_true(json_object_get(b, "echo"))) {
		http_error(r, 400, "unsupported_value", "echo", "\"echo\" is not supported");
		return false;
	}
	j = json_object_get(b, "best_of");
	if (j && !json_is_null(j) && json_integer_value(j) != 1) {
		http_error(r, 400, "unsupported_value", "best_of", "\"best_of\" can only be 1");
		return false;
	}
	j = json_object_get(b, "suffix");
	if (j && !json_is_null(j) && !(json_is_string(j) && !json_string_length(j))) {
		http_error(r, 400, "unsupported_value", "suffix", "\"suffix\" is not supported");
		return false;
	}
	j = json_object_get(b, "reasoning_effort");
	if (j && !json_is_null(j) && !json_is_string(j)) {
		http_error(r, 400, "invalid_value", "reasoning_effort", "\"reasoning_effort\" must be a text");
		return false;
	}
	j = json_object_get(b, "chat_template_kwargs");
	if (j && !json_is_null(j) && !json_is_object(j)) {
		http_error(r, 400, "invalid_value", "chat_template_kwargs", "\"chat_template_kwargs\" must be an object");
		return false;
	}
	return true;
}

static bool sampling(struct service *s, struct http_req *r, struct chat_request *q)
{
	const json_t *b = q->body, *j;
	double temp = 1, top_p = 1, min_p = 0, rep = 1, freq = 0, pres = 0;
	json_int_t top_k = 0, seed = 0, max = 0, n = 1, last = 64, top = 0;
	struct hearth_err err = { 0 };
	const char *key;
	json_t *v;
	size_t i;

	sampler_defaults(&q->sample);
	/* OpenAI's defaults, so that clients that leave them out get what they expect. */
	if (!number(r, b, "temperature", 0, 2, &temp) || !number(r, b, "top_p", 0, 1, &top_p) ||
	    !number(r, b, "min_p", 0, 1, &min_p) || !integer(r, b, "top_k", 0, 1 << 20, &top_k) ||
	    !number(r, b, "repeat_penalty", 0.01, 10, &rep) || !integer(r, b, "repeat_last_n", 0, SAMPLER_WINDOW, &last) ||
	    !number(r, b, "frequency_penalty", -2, 2, &freq) || !number(r, b, "presence_penalty", -2, 2, &pres) ||
	    !integer(r, b, "seed", INT64_MIN, INT64_MAX, &seed) || !integer(r, b, "n", 1, CHAT_MAX_N, &n) ||
	    !boolean(r, b, "stream", &q->stream))
		return false;
	q->sample.temp = (float)temp;
	q->sample.top_p = (float)top_p;
	q->sample.min_p = (float)min_p;
	q->sample.top_k = (uint32_t)top_k;
	q->sample.rep_pen = (float)rep;
	q->sample.freq_pen = (float)freq;
	q->sample.pres_pen = (float)pres;
	q->sample.pen_last = (uint32_t)last;
	q->sample.seed = (uint64_t)seed;
	q->n = (uint32_t)n;
	for (i = 0; i < 2; i++) {
		key = i ? "max_tokens" : "max_completion_tokens";
		if (json_is_number(json_object_get(b, key)) && !q->max_given) {
			if (!integer(r, b, key, 0, 1 << 24, &max))
				return false;
			q->max_tokens = (uint32_t)max;
			q->max_given = true;
		} else if (!q->max_given && !integer(r, b, key, 0, 1 << 24, &max)) {
			return false;
		}
	}
	/* logprobs: a flag in chat, a count in completions */
	j = json_object_get(b, "logprobs");
	if (q->chat) {
		if (!boolean(r, b, "logprobs", &q->logprobs) || !integer(r, b, "top_logprobs", 0, SAMPLER_TOP_LOGPROBS, &top))
			return false;
		if (top && !q->logprobs) {
			http_error(r, 400, "invalid_value", "top_logprobs", "\"top_logprobs\" needs \"logprobs\": true");
			return false;
		}
	} else {
		if (!integer(r, b, "logprobs", 0, SAMPLER_TOP_LOGPROBS, &top))
			return false;
		q->logprobs = json_is_integer(j);
	}
	q->top_logprobs = (uint32_t)top;
	q->sample.logprobs = q->logprobs;
	q->sample.n_logprobs = (uint32_t)top;
	/* stop: a text or a list */
	j = json_object_get(b, "stop");
	if (json_is_string(j)) {
		q->stop[q->n_stop++] = json_string_value(j);
	} else if (json_is_array(j)) {
		if (json_array_size(j) > CHAT_MAX_STOP) {
			http_error(r, 400, "invalid_value", "stop", "\"stop\" takes at most %d texts", CHAT_MAX_STOP);
			return false;
		}
		json_array_foreach((json_t *)j, i, v) {
			if (!json_is_string(v) || !json_string_length(v) || json_string_length(v) > STOP_MAX_BYTES) {
				http_error(r, 400, "invalid_value", "stop", "each \"stop\" must be a text of 1 to %u bytes", STOP_MAX_BYTES);
				return false;
			}
			q->stop[q->n_stop++] = json_string_value(v);
		}
	} else if (j && !json_is_null(j)) {
		http_error(r, 400, "invalid_value", "stop", "\"stop\" must be a text or a list of texts");
		return false;
	}
	if (q->n_stop == 1 && (!*q->stop[0] || strlen(q->stop[0]) > STOP_MAX_BYTES)) {
		http_error(r, 400, "invalid_value", "stop", "\"stop\" must be 1 to %u bytes long", STOP_MAX_BYTES);
		return false;
	}
	/* logit_bias: {"token id": -100..100} */
	j = json_object_get(b, "logit_bias");
	if (j && !json_is_null(j)) {
		if (!json_is_object(j) || json_object_size(j) > SAMPLER_MAX_BIAS) {
			http_error(r, 400, "invalid_value", "logit_bias", "\"logit_bias\" must be an object of at most %u token ids", SAMPLER_MAX_BIAS);
			return false;
		}
		q->bias = calloc(json_object_size(j) + 1, sizeof(*q->bias));
		if (!q->bias) {
			http_error(r, 500, NULL, NULL, "out of memory");
			return false;
		}
		json_object_foreach((json_t *)j, key, v) {
			char *end;
			long id = strtol(key, &end, 10);

			if (*end || end == key || id < 0 || (size_t)id >= tok_count(s->tok) || !json_is_number(v) ||
			    fabs(json_number_value(v)) > 100) {
				http_error(r, 400, "invalid_value", "logit_bias", "\"logit_bias\": \"%.40s\" is not a token id with a bias from -100 to 100", key);
				return false;
			}
			q->bias[q->sample.n_bias].token = (int32_t)id;
			/* -100 means never, as OpenAI documents it. */
			q->bias[q->sample.n_bias++].add = json_number_value(v) <= -100 ? -INFINITY : (float)json_number_value(v);
		}
		q->sample.bias = q->bias;
	}
	if (sampler_check(&q->sample, (uint32_t)tok_count(s->tok), &err)) {
		http_error(r, 400, "invalid_value", NULL, "%s", err.text);
		return false;
	}
	j = json_object_get(b, "stream_options");
	if (j && !json_is_null(j)) {
		if (!json_is_object(j) || !q->stream) {
			http_error(r, 400, "invalid_value", "stream_options", "\"stream_options\" is an object and needs \"stream\": true");
			return false;
		}
		if (!boolean(r, j, "include_usage", &q->include_usage))
			return false;
	}
	return true;
}

/* -- messages ------------------------------------------------------------------------ */

/* Content as a text: a string, null, or parts of type text joined. */
static const char *content_text(struct http_req *r, struct chat_request *q, const json_t *c, size_t msg)
{
	size_t n = 0, i;
	char *text;
	json_t *p;

	if (!c || json_is_null(c))
		return "";
	if (json_is_string(c))
		return json_string_value(c);
	if (!json_is_array(c)) {
		http_error(r, 400, "invalid_value", "messages", "messages[%zu].content must be a text, null or a list of parts", msg);
		return NULL;
	}
	json_array_foreach((json_t *)c, i, p) {
		const char *type = json_string_value(json_object_get(p, "type"));

		if (!type || (strcmp(type, "text") && strcmp(type, "input_text") && strcmp(type, "output_text")) ||
		    !json_is_string(json_object_get(p, "text"))) {
			http_error(r, 400, "unsupported_value", "messages", "messages[%zu].content[%zu]: this model takes only parts of type text, not \"%.40s\"", msg, i, type ? type : "?");
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
	text = own(q, text);
	if (!text)
		http_error(r, 500, NULL, NULL, "out of memory");
	return text;
}

static bool tool_calls(struct http_req *r, struct chat_request *q, const json_t *list, struct chat_msg *m, size_t msg)
{
	struct chat_call *calls;
	size_t i;
	json_t *c;

	if (!list || json_is_null(list))
		return true;
	if (!json_is_array(list)) {
		http_error(r, 400, "invalid_value", "messages", "messages[%zu].tool_calls must be a list", msg);
		return false;
	}
	calls = (struct chat_call *)(void *)own(q, calloc(json_array_size(list) + 1, sizeof(*calls)));
	if (!calls) {
		http_error(r, 500, NULL, NULL, "out of memory");
		return false;
	}
	json_array_foreach((json_t *)list, i, c) {
		const json_t *f = json_object_get(c, "function"), *args = json_object_get(f, "arguments");

		calls[i].name = json_string_value(json_object_get(f, "name"));
		/* A text by the standard; some clients send the object itself. */
		if (json_is_object(args))
			calls[i].arguments = own(q, json_dumps(args, JSON_COMPACT));
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

/* What the configuration lets a conversation begin with that has no system message; how many messages of @m. -1: no memory. */
static int begin_with(struct service *s, struct chat_request *q, struct chat_msg *m)
{
	char *system = NULL, *now = NULL;
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
	pthread_mutex_unlock(&s->home_lock);
	home_told_free(told);
	system = own(q, system);
	now = own(q, now);
	if (rc || !system || !now)
		return -1;
	m[0] = (struct chat_msg){ .role = CHAT_SYSTEM, .content = system };
	m[1] = (struct chat_msg){ .role = CHAT_SYSTEM, .content = now };
	return 2;
}

static bool messages(struct service *s, struct http_req *r, struct chat_request *q, struct chat_msg **ret, size_t *ret_n)
{
	const json_t *list = json_object_get(q->body, "messages");
	bool has_system = false;
	struct chat_msg *m;
	size_t i;
	json_t *j;
	int more;

	if (!json_is_array(list) || !json_array_size(list)) {
		http_error(r, 400, "invalid_value", "messages", "\"messages\" must be a non-empty list");
		return false;
	}
	if (json_array_size(list) > MAX_MESSAGES) {
		http_error(r, 400, "invalid_value", "messages", "%zu messages; at most %d are taken", json_array_size(list), MAX_MESSAGES);
		return false;
	}
	m = (struct chat_msg *)(void *)own(q, calloc(json_array_size(list) + 2, sizeof(*m)));
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
			http_error(r, 400, "invalid_value", "messages", "messages[%zu].role must be system, developer, user, assistant or tool", i);
			return false;
		}
		has_system |= m[i].role == CHAT_SYSTEM;
		m[i].content = content_text(r, q, json_object_get(j, "content"), i);
		if (!m[i].content)
			return false;
		m[i].reasoning = json_string_value(json_object_get(j, "reasoning_content"));
		if (m[i].role == CHAT_ASSISTANT && !tool_calls(r, q, json_object_get(j, "tool_calls"), &m[i], i))
			return false;
	}
	*ret = m;
	*ret_n = json_array_size(list);
	if (!has_system) {
		struct chat_msg first[2] = { 0 };

		more = begin_with(s, q, first);
		if (more < 0) {
			http_error(r, 500, NULL, NULL, "out of memory");
			return false;
		}
		memmove(m + more, m, *ret_n * sizeof(*m));
		memcpy(m, first, (size_t)more * sizeof(*m));
		*ret_n += (size_t)more;
	}
	return true;
}

/* -- grammars ------------------------------------------------------------------------ */

static bool refused(struct http_req *r, int rc, const char *param, const struct hearth_err *err)
{
	if (!rc)
		return false;
	http_error(r, rc == -ENOMEM ? 500 : 400, rc == -EOPNOTSUPP ? "unsupported_schema" : "invalid_value", param, "%s", err->text);
	return true;
}

/* What a grammar is made from. */
struct source {
	char kind;                 /* of the text below: 'g'bnf, 's'chema, 'o'bject, 't'ools */
	const char *text;          /* GBNF */
	const json_t *json;        /* schema, tools */
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
	default:
		return grammar_json_object(ret, err);
	}
}

/* The grammar of @m: one that was made lately, or a new one. */
static int grammar_of(struct service *s, const struct source *m, struct grammar **ret, struct hearth_err *err)
{
	/* Properties in another order are another grammar, so nothing is sorted. */
	char *text = m->json ? json_dumps(m->json, JSON_COMPACT | JSON_ENCODE_ANY) : NULL, *key = NULL;
	struct grammar *g;
	int rc, n;

	if (m->json && !text)
		return make_grammar(m, ret, err);
	n = asprintf(&key, "%c%d%d%s\n%s", m->kind, m->parallel, m->after_marker, m->only ? m->only : "", text ? text : m->text ? m->text : "");
	free(text);
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

static bool response_format(struct service *s, struct http_req *r, struct chat_request *q)
{
	const json_t *f = json_object_get(q->body, "response_format"), *schema, *js;
	const json_t *gbnf = json_object_get(q->body, "grammar");
	const char *type = json_string_value(json_object_get(f, "type"));
	struct hearth_err err = { 0 };
	int rc = 0;

	if (json_is_string(gbnf) && json_string_length(gbnf)) {
		rc = grammar_of(s, &(struct source){ .kind = 'g', .text = json_string_value(gbnf) }, &q->grammar, &err);
		q->mode = RUN_WHOLE;
		return !refused(r, rc, "grammar", &err);
	}
	if (!f || json_is_null(f))
		return true;
	if (!type) {
		http_error(r, 400, "invalid_value", "response_format", "\"response_format\" needs a \"type\": text, json_object or json_schema");
		return false;
	}
	if (!strcmp(type, "text"))
		return true;
	q->mode = RUN_WHOLE;
	if (!strcmp(type, "json_object")) {
		/* llama-server's form: a schema beside json_object */
		schema = json_object_get(f, "schema");
		rc = grammar_of(s, &(struct source){ .kind = schema ? 's' : 'o', .json = schema }, &q->grammar, &err);
		return !refused(r, rc, "response_format", &err);
	}
	if (strcmp(type, "json_schema")) {
		http_error(r, 400, "invalid_value", "response_format", "\"response_format\" of type \"%.40s\" is not known: text, json_object or json_schema", type);
		return false;
	}
	js = json_object_get(f, "json_schema");
	schema = json_object_get(js, "schema");
	if (!schema)
		schema = json_object_get(f, "schema");
	if (!schema) {
		http_error(r, 400, "invalid_value", "response_format", "\"response_format\" of type json_schema needs \"json_schema\": {\"schema\": ...}");
		return false;
	}
	return !refused(r, grammar_of(s, &(struct source){ .kind = 's', .json = schema }, &q->grammar, &err), "response_format", &err);
}

static bool tool_choice(struct service *s, struct http_req *r, struct chat_request *q)
{
	const json_t *tools = json_object_get(q->body, "tools"), *choice = json_object_get(q->body, "tool_choice");
	const char *name = NULL, *word = json_string_value(choice);
	struct hearth_err err = { 0 };
	bool parallel = true, forced = false;

	if (!boolean(r, q->body, "parallel_tool_calls", &parallel))
		return false;
	if (json_is_object(choice)) {
		name = json_string_value(json_object_get(json_object_get(choice, "function"), "name"));
		if (!name)
			name = json_string_value(json_object_get(choice, "name"));
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
		http_error(r, 400, "invalid_value", "tool_choice", "\"tool_choice\" must be none, auto, required or a function");
		return false;
	}
	if (!q->has_tools) {
		if (forced) {
			http_error(r, 400, "invalid_value", "tool_choice", "\"tool_choice\" asks for a call, but \"tools\" is empty");
			return false;
		}
		return true;
	}
	if (q->no_calls)
		return true;
	if (q->mode == RUN_WHOLE) {
		if (!forced) {
			/* The format holds for the answer; a call would leave it. */
			q->no_calls = true;
			return true;
		}
		http_error(r, 400, "unsupported_value", "response_format", "a forced tool call and \"response_format\" cannot both hold");
		return false;
	}
	q->mode = forced ? RUN_WHOLE : RUN_LAZY;
	return !refused(r, chat_tools_grammar(s, tools, name, parallel, !forced, &q->grammar, &err), "tools", &err);
}

/* -- whole requests ------------------------------------------------------------------- */

static bool encode_chat(struct service *s, struct http_req *r, struct chat_request *q, char **ret_prompt)
{
	const json_t *tools = json_object_get(q->body, "tools"), *kw = json_object_get(q->body, "chat_template_kwargs");
	const char *effort = json_string_value(json_object_get(q->body, "reasoning_effort"));
	struct chat_opts co = { 0 };
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
	if (!boolean(r, q->body, "think", &q->thinking))
		return false;
	if (json_is_object(kw) && !boolean(r, kw, "enable_thinking", &q->thinking))
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
			co.tools = own(q, json_dumps(tools, JSON_COMPACT));
			if (!co.tools) {
				http_error(r, 500, NULL, NULL, "out of memory");
				return false;
			}
		}
	}
	if (!messages(s, r, q, &m, &n))
		return false;
	if (ret_prompt) {
		rc = chat_render(s->chat, m, n, &co, &text, &err);
		if (!rc)
			*ret_prompt = text.text ? strdup(text.text) : NULL;
		chat_text_free(&text);
	}
	rc = chat_encode(s->chat, s->tok, m, n, &co, &q->tokens, &err);
	if (rc) {
		http_error(r, rc == -ENOMEM ? 500 : 400, "invalid_value", "messages", "%s", err.text);
		return false;
	}
	return true;
}

static bool encode_plain(struct service *s, struct http_req *r, struct chat_request *q)
{
	const json_t *p = json_object_get(q->body, "prompt");
	size_t i;
	json_t *v;

	if (json_is_array(p) && json_array_size(p) == 1 && json_is_string(json_array_get(p, 0)))
		p = json_array_get(p, 0);
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
	    !seconds(r, cc, "ttl", &q->pin_seconds) || !integer(r, cc, "prefix_bytes", 0, INT32_MAX, &bytes))
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
		.mode = q->mode, .grammar = q->grammar, .no_calls = q->no_calls, .raw = !q->chat, .whole = !q->stream,
		.thinking = q->thinking, .wait_ms = (int)s->request_seconds * 1000, .gone = gone, .gone_arg = r,
	};
}

static bool room(struct service *s, struct http_req *r, struct chat_request *q)
{
	uint32_t ctx = engine_the_plan(s->engine)->ctx, cap, most;
	struct keyring_limits l = keyring_limits(s->keys, http_who(r));

	if (q->tokens.n >= ctx) {
		http_error(r, 400, "context_length_exceeded", q->chat ? "messages" : "prompt",
			   "the prompt is %zu tokens; this server's context is %u tokens, and at least one must be left for the answer", q->tokens.n, ctx);
		return false;
	}
	cap = l.max_tokens;
	most = service_most_tokens(s, http_who(r));
	if (q->tokens.n >= most) {
		http_error(r, 400, "context_length_exceeded", q->chat ? "messages" : "prompt",
			   "the prompt is %zu tokens; the budget of cache of the key or its tenant holds %u, and at least one must be left for the answer", q->tokens.n, most);
		return false;
	}
	if (!q->max_given || q->max_tokens > most - q->tokens.n)
		q->max_tokens = most - (uint32_t)q->tokens.n;
	if (cap && q->max_tokens > cap)
		q->max_tokens = cap;
	return true;
}

bool chat_request_parse(struct service *s, struct http_req *r, bool chat, struct chat_request *q)
{
	json_t *body = http_json(r);

	memset(q, 0, sizeof(*q));
	return body && chat_request_from(s, r, body, chat, q);
}

bool chat_request_from(struct service *s, struct http_req *r, json_t *body, bool chat, struct chat_request *q)
{
	static const char *const known[] = {
		"model", "messages", "prompt", "tools", "tool_choice", "parallel_tool_calls", "response_format", "grammar", "stop", "seed", "n",
		"logprobs", "top_logprobs", "presence_penalty", "frequency_penalty", "repeat_penalty", "repeat_last_n", "logit_bias", "max_tokens",
		"max_completion_tokens", "stream", "stream_options", "temperature", "top_p", "top_k", "min_p", "think", "reasoning_effort",
		"chat_template_kwargs", "prompt_cache_key", "conversation_id", "nvext", "modalities", "echo", "best_of", "suffix", NULL,
	};

	memset(q, 0, sizeof(*q));
	q->chat = chat;
	q->body = body;
	if (!q->body) {
		http_error(r, 500, NULL, NULL, "out of memory");
		return false;
	}
	if (!chat_request_fields(r, q->body, known) || !only_text(r, q->body) || !chat_request_model(s, r, q->body) || !sampling(s, r, q) || !priority(s, r, q))
		return false;
	if (!(chat ? encode_chat(s, r, q, NULL) : encode_plain(s, r, q)))
		return false;
	if (!response_format(s, r, q) || (chat && !tool_choice(s, r, q)))
		return false;
	/* What a form needs is written however unwanted: then it always ends as what it is. */
	for (uint32_t i = 0; q->grammar && i < q->sample.n_bias; i++)
		if (q->bias[i].add < -1e6f)
			q->bias[i].add = -1e6f;
	return caching(s, r, q) && room(s, r, q);
}

bool chat_request_messages(struct service *s, struct http_req *r, struct chat_request *q, char **ret_prompt)
{
	memset(q, 0, sizeof(*q));
	q->chat = true;
	q->body = http_json(r);
	return q->body && chat_request_model(s, r, q->body) && encode_chat(s, r, q, ret_prompt);
}
