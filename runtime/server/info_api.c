// SPDX-License-Identifier: MIT
#include "server/info_api.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dev/hearth.h"
#include "server/chat_request.h"
#include "server/grammars.h"
#include "server/responses_api.h"
#include "server/service.h"
#include "server/tenants.h"

extern const double service_buckets[16];

static json_t *model_json(const struct service *s)
{
	const struct engine_plan *p = engine_the_plan(s->engine);

	return json_pack("{s:s,s:s,s:I,s:s,s:{s:i,s:s,s:I,s:s}}", "id", s->model_id, "object", "model",
			 "created", (json_int_t)s->started, "owned_by", "hearth",
			 "meta", "n_ctx", (int)p->ctx, "architecture", p->arch, "n_params", (json_int_t)p->params, "backend", p->backend);
}

void api_models(struct http_req *r, void *service)
{
	http_reply_json(r, 200, json_pack("{s:s,s:[o]}", "object", "list", "data", model_json(service)));
}

void api_model(struct http_req *r, void *service)
{
	struct service *s = service;

	if (strcmp(http_rest(r), s->model_id))
		http_error(r, 404, "model_not_found", "model", "the model \"%.100s\" is not served here; this is \"%s\"", http_rest(r), s->model_id);
	else
		http_reply_json(r, 200, model_json(s));
}

/* -- health ------------------------------------------------------------------------- */

void api_health(struct http_req *r, void *service)
{
	struct service *s = service;
	struct hearth_state_row *rows = NULL;
	size_t n = 0, i;
	enum hearth_level worst = HEARTH_LEVEL_NONE;
	const char *who = "", *pool = "";
	struct engine_stats st;
	uint32_t waiting = 0;
	char why[160] = "";
	json_t *o;

	if (s->hearth && hearth_state(s->hearth, &rows, &n, NULL) == 0) {
		for (i = 0; i < n; i++) {
			/* sessions that all work are no trouble */
			if (rows[i].level > worst && strcmp(rows[i].pool, TENANTS_POOL)) {
				worst = rows[i].level;
				who = rows[i].tenant;
				pool = rows[i].pool;
			}
		}
	}
	engine_stats(s->engine, &st);
	pthread_mutex_lock(&s->lock);
	for (int p = 0; p <= GEN_VOICE; p++)
		waiting += s->waiting[p];
	pthread_mutex_unlock(&s->lock);
	if (worst > HEARTH_LEVEL_NONE)
		snprintf(why, sizeof(why), "tenant %s is under %s pressure in pool %s", who, hearth_level_name(worst), pool);
	o = json_pack("{s:s,s:s,s:s,s:I,s:{s:i,s:i,s:i,s:i}}", "status", s->stopping ? "stopping" : worst ? "pressure" : "ok",
		      "why", why, "model", s->model_id, "uptime_s", (json_int_t)(time(NULL) - s->started),
		      "sessions", "total", (int)s->n_slots, "active", (int)st.active, "waiting", (int)waiting,
		      "kv_pages_free", (int)st.kv_pages_free);
	free(rows);
	http_reply_json(r, s->stopping ? 503 : 200, o);
}

void api_memory(struct http_req *r, void *service)
{
	struct service *s = service;
	struct hearth_state_row *rows = NULL;
	json_t *tenants = json_array(), *pools = json_array();
	size_t n = 0;
	uint64_t seq = 0;

	if (s->hearth && hearth_state(s->hearth, &rows, &n, &seq) == 0) {
		for (size_t i = 0; i < n; i++) {
			const struct hearth_usage *u = &rows[i].usage;

#define LIMIT(v) ((v) == HEARTH_UNLIMITED ? json_null() : json_integer((json_int_t)(v)))
			json_array_append_new(tenants, json_pack("{s:s,s:s,s:s,s:s,s:o,s:o,s:o,s:o,s:I,s:I}",
				"tenant", rows[i].tenant, "class", hearth_class_name(rows[i].cls), "pool", rows[i].pool,
				"level", hearth_level_name(rows[i].level),
				"min", LIMIT(u->budget.min), "low", LIMIT(u->budget.low), "high", LIMIT(u->budget.high), "max", LIMIT(u->budget.max),
				"current", (json_int_t)u->current, "peak", (json_int_t)u->peak));
		}
		for (size_t i = 0; i < hearth_pool_count(s->hearth); i++) {
			struct hearth_pool_info pi;

			if (hearth_pool_info(hearth_pool_at(s->hearth, i), &pi) == 0)
				json_array_append_new(pools, json_pack("{s:s,s:s,s:I,s:I,s:I,s:s}", "pool", pi.name, "kind", hearth_kind_name(pi.kind),
					"size", (json_int_t)pi.size, "charged", (json_int_t)pi.charged, "guaranteed", (json_int_t)pi.guaranteed,
					"level", hearth_level_name(pi.level)));
		}
	}
	free(rows);
	http_reply_json(r, 200, json_pack("{s:s,s:I,s:o,s:o}", "backend", s->hearth ? hearth_backend_text(s->hearth) : "none",
					  "seq", (json_int_t)seq, "pools", pools, "tenants", tenants));
}

/* -- metrics -------------------------------------------------------------------------- */

struct text {
	char *s;
	size_t n, cap;
};

static void add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	for (;;) {
		va_start(ap, fmt);
		n = vsnprintf(t->s ? t->s + t->n : NULL, t->cap - t->n, fmt, ap);
		va_end(ap);
		if (n < 0 || t->n + (size_t)n < t->cap) {
			t->n += n > 0 ? (size_t)n : 0;
			return;
		}
		char *p = realloc(t->s, (t->cap + (size_t)n) * 2 + 4096);

		if (!p)
			return;
		t->cap = (t->cap + (size_t)n) * 2 + 4096;
		t->s = p;
	}
}

/* Bytes as they are, NUL among them. */
static void put(struct text *t, const char *s, size_t n)
{
	if (t->n + n >= t->cap) {
		char *p = realloc(t->s, (t->cap + n) * 2 + 4096);

		if (!p)
			return;
		t->cap = (t->cap + n) * 2 + 4096;
		t->s = p;
	}
	memcpy(t->s + t->n, s, n);
	t->n += n;
}

static void counter(struct text *t, const char *name, const char *help, unsigned long long v)
{
	add(t, "# HELP hearth_%s %s\n# TYPE hearth_%s counter\nhearth_%s %llu\n", name, help, name, name, v);
}

static void gauge(struct text *t, const char *name, const char *help, double v)
{
	add(t, "# HELP hearth_%s %s\n# TYPE hearth_%s gauge\nhearth_%s %.17g\n", name, help, name, name, v);
}

static void tenant_gauge(struct text *t, const char *name, const char *help, const struct hearth_state_row *rows, size_t n,
			 uint64_t (*get)(const struct hearth_state_row *), const char *type)
{
	add(t, "# HELP hearth_tenant_%s %s\n# TYPE hearth_tenant_%s %s\n", name, help, name, type);
	for (size_t i = 0; i < n; i++) {
		uint64_t v = get(&rows[i]);

		if (v != HEARTH_UNLIMITED)
			add(t, "hearth_tenant_%s{tenant=\"%s\",pool=\"%s\"} %llu\n", name, rows[i].tenant, rows[i].pool, (unsigned long long)v);
	}
}

static uint64_t get_min(const struct hearth_state_row *r) { return r->usage.budget.min; }
static uint64_t get_low(const struct hearth_state_row *r) { return r->usage.budget.low; }
static uint64_t get_high(const struct hearth_state_row *r) { return r->usage.budget.high; }
static uint64_t get_max(const struct hearth_state_row *r) { return r->usage.budget.max; }
static uint64_t get_current(const struct hearth_state_row *r) { return r->usage.current; }
static uint64_t get_peak(const struct hearth_state_row *r) { return r->usage.peak; }
static uint64_t get_level(const struct hearth_state_row *r) { return (uint64_t)r->level; }

static uint64_t get_refused(const struct hearth_state_row *r)
{
	return r->usage.n_refused_max + r->usage.n_refused_pool + r->usage.n_refused_min + r->usage.n_refused_queue;
}

static void keys_text(struct text *t, struct service *s)
{
	struct keyring_stat k[CONFIG_MAX_KEYS];
	uint32_t n = keyring_stats(s->keys, k, CONFIG_MAX_KEYS);

	if (!n)
		return;
	add(t, "# HELP hearth_key_requests_total Requests under a key.\n# TYPE hearth_key_requests_total counter\n");
	for (uint32_t i = 0; i < n; i++)
		add(t, "hearth_key_requests_total{key=\"%s\"} %llu\n", k[i].name, (unsigned long long)k[i].requests);
	add(t, "# HELP hearth_key_refused_total Of these, refused by the key's limits.\n# TYPE hearth_key_refused_total counter\n");
	for (uint32_t i = 0; i < n; i++)
		add(t, "hearth_key_refused_total{key=\"%s\"} %llu\n", k[i].name, (unsigned long long)k[i].refused);
	add(t, "# HELP hearth_key_tokens_total Tokens read and written under a key.\n# TYPE hearth_key_tokens_total counter\n");
	for (uint32_t i = 0; i < n; i++)
		add(t, "hearth_key_tokens_total{key=\"%s\",kind=\"in\"} %llu\nhearth_key_tokens_total{key=\"%s\",kind=\"out\"} %llu\n",
		    k[i].name, (unsigned long long)k[i].tokens_in, k[i].name, (unsigned long long)k[i].tokens_out);
	add(t, "# HELP hearth_key_kv_bytes Cache that running requests may fill.\n# TYPE hearth_key_kv_bytes gauge\n");
	for (uint32_t i = 0; i < n; i++)
		add(t, "hearth_key_kv_bytes{key=\"%s\"} %llu\n", k[i].name, (unsigned long long)k[i].kv);
	add(t, "# HELP hearth_key_running Requests running under a key.\n# TYPE hearth_key_running gauge\n");
	for (uint32_t i = 0; i < n; i++)
		add(t, "hearth_key_running{key=\"%s\"} %u\n", k[i].name, k[i].running);
}

void api_metrics(struct http_req *r, void *service)
{
	struct service *s = service;
	struct hearth_state_row *rows = NULL;
	struct engine_stats st;
	struct text t = { 0 };
	uint32_t waiting = 0;
	size_t n = 0;

	engine_stats(s->engine, &st);
	pthread_mutex_lock(&s->lock);
	for (int p = 0; p <= GEN_VOICE; p++)
		waiting += s->waiting[p];
	pthread_mutex_unlock(&s->lock);
	counter(&t, "requests_total", "Generation requests received.", s->requests);
	counter(&t, "requests_refused_total", "Of these, refused before a token was made.", s->refused);
	counter(&t, "requests_cancelled_total", "Generations ended by the client or by a stop.", s->cancelled);
	counter(&t, "prompt_tokens_total", "Prompt tokens, those found in the cache included.", s->prompt_tokens);
	counter(&t, "prompt_tokens_cached_total", "Prompt tokens found in the cache.", s->cached_tokens);
	counter(&t, "output_tokens_total", "Tokens generated.", s->output_tokens);
	counter(&t, "tool_calls_total", "Tool calls given out.", s->tool_calls);
	counter(&t, "engine_steps_total", "Batched steps of the engine.", st.steps);
	counter(&t, "engine_step_nanoseconds_total", "Time spent in them.", st.step_ns);
	counter(&t, "decode_nanoseconds_total", "Time between first and last token, over all requests.", s->decode_ns);
	gauge(&t, "sessions", "Sessions there are.", s->n_slots);
	gauge(&t, "sessions_active", "Generations running.", st.active);
	gauge(&t, "requests_waiting", "Requests waiting for a session.", waiting);
	gauge(&t, "kv_pages", "Pages of the KV cache.", st.kv_pages);
	gauge(&t, "kv_pages_free", "Of these, free.", st.kv_pages_free);
	gauge(&t, "kv_pages_cached", "Of these, held by the prefix cache alone.", st.kv_pages_cached);
	counter(&t, "forced_tokens_total", "Tokens computed ahead because a grammar forces them.", st.forced_tokens);
	counter(&t, "forced_tokens_kept_total", "Of these, those that were chosen.", st.kept_tokens);
	gauge(&t, "grammar_cache_bytes", "Automata and masks of grammars that were used lately, at most 16 MiB.", grammars_bytes(s->grammars));
	counter(&t, "cache_sheds_total", "Times that pressure took from the caches.", s->sheds);
	counter(&t, "cache_shed_bytes_total", "What it took.", s->shed_bytes);
	counter(&t, "cache_pages_loaded_total", "Pages of the prefix cache that a file or a kept region had.", s->cache_loaded);
	counter(&t, "cache_saves_total", "Times the prefix cache was written to its file.", s->cache_saved);
	counter(&t, "cache_saves_failed_total", "Times it could not be written.", s->cache_failed);
	add(&t, "# HELP hearth_ttft_seconds From a request's start to its first token.\n# TYPE hearth_ttft_seconds histogram\n");
	for (int i = 0; i < 16; i++)
		add(&t, "hearth_ttft_seconds_bucket{le=\"%g\"} %llu\n", service_buckets[i], (unsigned long long)s->ttft_bucket[i]);
	add(&t, "hearth_ttft_seconds_bucket{le=\"+Inf\"} %llu\nhearth_ttft_seconds_sum %.9f\nhearth_ttft_seconds_count %llu\n",
	    (unsigned long long)s->ttft_count, (double)s->ttft_ns / 1e9, (unsigned long long)s->ttft_count);
	if (s->hearth && hearth_state(s->hearth, &rows, &n, NULL) == 0) {
		tenant_gauge(&t, "min_bytes", "Guaranteed.", rows, n, get_min, "gauge");
		tenant_gauge(&t, "low_bytes", "Protected.", rows, n, get_low, "gauge");
		tenant_gauge(&t, "high_bytes", "Soft limit; absent: none.", rows, n, get_high, "gauge");
		tenant_gauge(&t, "max_bytes", "Hard limit; absent: none.", rows, n, get_max, "gauge");
		tenant_gauge(&t, "current_bytes", "Charged now.", rows, n, get_current, "gauge");
		tenant_gauge(&t, "peak_bytes", "Most ever charged.", rows, n, get_peak, "gauge");
		tenant_gauge(&t, "pressure", "0 none, 1 low, 2 medium, 3 critical.", rows, n, get_level, "gauge");
		tenant_gauge(&t, "refused_total", "Charges refused.", rows, n, get_refused, "counter");
	}
	keys_text(&t, s);
	free(rows);
	http_reply(r, 200, "text/plain; version=0.0.4; charset=utf-8", t.s ? t.s : "", t.n);
	free(t.s);
}

/* -- tokens ----------------------------------------------------------------------------- */

void api_tokenize(struct http_req *r, void *service)
{
	struct service *s = service;
	json_t *b = http_json(r), *list, *c = json_object_get(b, "content"), *with = json_object_get(b, "with_pieces");
	bool special = json_is_true(json_object_get(b, "add_special"));
	bool parse = !json_is_false(json_object_get(b, "parse_special"));
	struct tok_ids ids = { 0 };

	if (!b)
		return;
	if (!json_is_string(c)) {
		http_error(r, 400, "invalid_value", "content", "\"content\" must be a text");
		json_decref(b);
		return;
	}
	if (tok_encode(s->tok, json_string_value(c), json_string_length(c), (parse ? TOK_SPECIAL : 0) | (special ? TOK_BOS_EOS : 0), NULL, 0, &ids)) {
		http_error(r, 500, NULL, NULL, "out of memory");
		json_decref(b);
		return;
	}
	list = json_array();
	for (size_t i = 0; i < ids.n; i++) {
		json_t *piece;
		size_t n = 0;
		const char *p;

		if (!json_is_true(with)) {
			json_array_append_new(list, json_integer(ids.id[i]));
			continue;
		}
		p = tok_bytes(s->tok, ids.id[i], &n);
		piece = json_stringn(p ? p : "", n);
		if (!piece) {
			/* Not UTF-8 on its own: a list of bytes, as llama-server does. */
			piece = json_array();
			for (size_t k = 0; k < n; k++)
				json_array_append_new(piece, json_integer((unsigned char)p[k]));
		}
		json_array_append_new(list, json_pack("{s:i,s:o}", "id", ids.id[i], "piece", piece));
	}
	tok_ids_free(&ids);
	json_decref(b);
	http_reply_json(r, 200, json_pack("{s:o}", "tokens", list));
}

void api_detokenize(struct http_req *r, void *service)
{
	struct service *s = service;
	json_t *b = http_json(r), *list = json_object_get(b, "tokens"), *v;
	struct tok_stream *st = NULL;
	struct text t = { 0 };
	const char *p;
	size_t i, n;

	if (!b)
		return;
	if (!json_is_array(list)) {
		http_error(r, 400, "invalid_value", "tokens", "\"tokens\" must be a list of token ids");
		goto out;
	}
	if (tok_stream_open(s->tok, true, &st)) {
		http_error(r, 500, NULL, NULL, "out of memory");
		goto out;
	}
	json_array_foreach(list, i, v) {
		if (!json_is_integer(v) || json_integer_value(v) < 0 || (size_t)json_integer_value(v) >= tok_count(s->tok)) {
			http_error(r, 400, "invalid_value", "tokens", "tokens[%zu] is not a token id of this model (below %zu)", i, tok_count(s->tok));
			goto out;
		}
		p = tok_stream_push(st, (int32_t)json_integer_value(v), &n);
		put(&t, p, n);
	}
	p = tok_stream_end(st, &n);
	put(&t, p, n);
	http_reply_json(r, 200, json_pack("{s:s%}", "content", t.s ? t.s : "", t.n));
out:
	free(t.s);
	tok_stream_free(st);
	json_decref(b);
}

void api_apply_template(struct http_req *r, void *service)
{
	struct chat_request q;
	char *prompt = NULL;

	if (chat_request_messages(service, r, http_json(r), CHAT_FORM_CHAT, &q, &prompt))
		http_reply_json(r, 200, json_pack("{s:s}", "prompt", prompt ? prompt : ""));
	free(prompt);
	chat_request_done(&q);
}

static void count(struct http_req *r, void *service, json_t *body, enum chat_form form)
{
	struct chat_request q;

	if (chat_request_messages(service, r, body, form, &q, NULL))
		http_reply_json(r, 200, json_pack("{s:s,s:I}", "object", "response.input_tokens", "input_tokens", (json_int_t)q.tokens.n));
	chat_request_done(&q);
}

void api_count_tokens(struct http_req *r, void *service)
{
	count(r, service, http_json(r), CHAT_FORM_CHAT);
}

void api_count_response(struct http_req *r, void *service)
{
	json_t *b = http_json(r);

	count(r, service, b ? responses_as_chat(r, b) : NULL, CHAT_FORM_RESPONSE);
	json_decref(b);
}
