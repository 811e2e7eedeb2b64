// SPDX-License-Identifier: MIT
#include "server/embed_api.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/gguf.h"
#include "server/base64.h"
#include "server/chat_api.h"
#include "server/chat_request.h"
#include "server/keyring.h"
#include "server/service.h"
#include "server/tenants.h"

#define MAX_INPUTS 2048u

enum pooling { POOL_NONE, POOL_MEAN, POOL_LAST };

struct embedding {
	double *sum;               /* [d] */
	uint32_t rows;
};

/*
 * How this model's texts become one vector: what the configuration says, else
 * what its file says (llama.cpp's numbers). A model that only writes has
 * neither, and its rows mean nothing to anybody: it is refused.
 */
static enum pooling pooling(const struct service *s)
{
	uint32_t type = 0;

	if (!strcmp(s->cfg->embeddings, "mean"))
		return POOL_MEAN;
	if (!strcmp(s->cfg->embeddings, "last"))
		return POOL_LAST;
	if (!strcmp(s->cfg->embeddings, "off") || gguf_u32(engine_gguf(s->engine), ".pooling_type", &type, NULL))
		return POOL_NONE;
	return type == 1 ? POOL_MEAN : type == 3 ? POOL_LAST : POOL_NONE;
}

static void on_hidden(void *arg, uint32_t i, const float *row, uint32_t d)
{
	struct embedding *e = arg;

	for (uint32_t k = 0; k < d; k++)
		e->sum[k] += (double)row[k];
	e->rows++;
}

static bool gone(void *r)
{
	return http_gone(r);
}

/* The unit vector of @t into @to; false: the refusal has been sent. */
static bool embed_one(struct service *s, struct http_req *r, const struct tok_ids *t, enum pooling how, float *to)
{
	const uint32_t d = engine_the_plan(s->engine)->shape.d;
	struct embedding e = { .sum = calloc(d, sizeof(double)) };
	struct hearth_err err = { 0 };
	struct gen_result res = { 0 };
	struct gen_request q;
	struct slot *slot = NULL;
	struct gen *g = NULL;
	double norm = 0;
	const uint64_t kv = service_kv_bytes(s, t->n);
	const int tenant = keyring_limits(s->keys, http_who(r)).tenant;
	int rc = -ENOMEM, entered = -1, charged = -1;

	gen_defaults(&q);
	q.tokens = t->id;
	q.n_tokens = (uint32_t)t->n;
	q.max_tokens = 0;
	q.prio = http_who(r) >= 0 && keyring_limits(s->keys, http_who(r)).prio < GEN_NORMAL ? GEN_BACKGROUND : GEN_NORMAL;
	q.on_hidden = on_hidden;
	q.hidden_all = how == POOL_MEAN;
	q.arg = &e;
	if (!e.sum)
		err_set(&err, rc, "out of memory");
	else
		rc = entered = keyring_enter(s->keys, http_who(r), kv, &err);
	if (!rc)
		rc = service_take(s, t->id, t->n, q.prio, 0, (int)s->request_seconds * 1000, gone, r, &slot, &err);
	if (!rc)
		rc = charged = tenants_charge(s->tenants, tenant, kv, &err);
	if (!rc)
		rc = gen_start(slot_session(slot), &q, &g, &err);
	if (!rc) {
		while (gen_wait(g, 50, &res) == -ETIMEDOUT)
			if (http_gone(r))
				gen_cancel(g);
		gen_free(g);
		if (res.finish == GEN_CANCELLED)
			rc = err_set(&err, -ECANCELED, "the client went away");
		else if (res.finish != GEN_LENGTH)
			rc = err_set(&err, -EIO, "%s", res.err.text);
	}
	if (!charged)
		tenants_uncharge(s->tenants, tenant, kv);
	if (slot)
		service_give(s, slot, g ? t->id : NULL, rc ? 0 : t->n);
	if (!entered)
		keyring_leave(s->keys, http_who(r), kv, rc ? 0 : t->n, 0);
	for (uint32_t k = 0; !rc && k < d; k++)
		norm += e.sum[k] * e.sum[k];
	for (uint32_t k = 0; !rc && k < d; k++)
		to[k] = (float)(norm > 0 ? e.sum[k] / sqrt(norm) : 0);
	free(e.sum);
	if (rc)
		api_start_failed(s, r, rc, &err);
	return !rc;
}

/* One input as tokens; false: refused. */
static bool encode(struct service *s, struct http_req *r, const json_t *in, size_t at, struct tok_ids *ret)
{
	const uint32_t most = service_most_tokens(s, http_who(r));
	size_t i;
	json_t *v;

	if (json_is_string(in)) {
		if (tok_encode(s->tok, json_string_value(in), json_string_length(in), TOK_BOS_EOS, NULL, 0, ret)) {
			http_error(r, 500, NULL, NULL, "out of memory");
			return false;
		}
	} else if (json_is_array(in)) {
		json_array_foreach((json_t *)in, i, v) {
			if (!json_is_integer(v) || json_integer_value(v) < 0 || (size_t)json_integer_value(v) >= tok_count(s->tok)) {
				http_error(r, 400, "invalid_value", "input", "input[%zu][%zu] is not a token id of this model (below %zu)", at, i, tok_count(s->tok));
				return false;
			}
			if (tok_ids_push(ret, (int32_t)json_integer_value(v))) {
				http_error(r, 500, NULL, NULL, "out of memory");
				return false;
			}
		}
	} else {
		http_error(r, 400, "invalid_value", "input", "input[%zu] must be a text or a list of token ids", at);
		return false;
	}
	if (!ret->n || ret->n > most) {
		http_error(r, 400, ret->n ? "context_length_exceeded" : "invalid_value", "input",
			   ret->n ? "input[%zu] is %zu tokens; the context, or the budget of cache, holds %u" : "input[%zu] is empty (%zu tokens of %u)", at, ret->n, most);
		return false;
	}
	return true;
}

static json_t *vector(const float *v, uint32_t d, bool base64)
{
	json_t *a;
	char *text;

	if (base64) {
		text = base64_encode(v, d * sizeof(*v));
		a = text ? json_string(text) : NULL;
		free(text);
		return a;
	}
	a = json_array();
	for (uint32_t k = 0; k < d; k++)
		json_array_append_new(a, json_real((double)v[k]));
	return a;
}

/* Lists: a text, texts, one list of tokens, lists of tokens. *ret_n of them. */
static bool inputs(struct http_req *r, const json_t *in, size_t *ret_n)
{
	if (json_is_string(in) || (json_is_array(in) && json_is_integer(json_array_get(in, 0)))) {
		*ret_n = 1;
		return true;
	}
	if (!json_is_array(in) || !json_array_size(in) || json_array_size(in) > MAX_INPUTS) {
		http_error(r, 400, "invalid_value", "input", "\"input\" must be a text, a list of token ids, or a list of 1 to %u of these", MAX_INPUTS);
		return false;
	}
	*ret_n = json_array_size(in);
	return true;
}

static bool check(struct service *s, struct http_req *r, const json_t *b, bool *ret_base64)
{
	const json_t *f = json_object_get(b, "encoding_format"), *d = json_object_get(b, "dimensions");
	const uint32_t width = engine_the_plan(s->engine)->shape.d;
	const char *word = json_string_value(f);

	if (f && !json_is_null(f) && (!word || (strcmp(word, "float") && strcmp(word, "base64")))) {
		http_error(r, 400, "invalid_value", "encoding_format", "\"encoding_format\" must be float or base64");
		return false;
	}
	*ret_base64 = word && !strcmp(word, "base64");
	if (d && !json_is_null(d) && (!json_is_integer(d) || json_integer_value(d) != width)) {
		http_error(r, 400, "unsupported_value", "dimensions", "this model's embeddings have %u dimensions and are not cut", width);
		return false;
	}
	return true;
}

void api_embeddings(struct http_req *r, void *service)
{
	struct service *s = service;
	const uint32_t d = engine_the_plan(s->engine)->shape.d;
	enum pooling how = pooling(s);
	json_t *b = http_json(r), *in = json_object_get(b, "input"), *list = NULL;
	float *v = malloc(d * sizeof(*v));
	bool base64 = false, ok;
	uint64_t tokens = 0;
	size_t n = 0;

	s->requests++;
	ok = b && chat_request_model(s, r, b);
	if (ok && (how == POOL_NONE || !engine_can_embed(s->engine))) {
		http_error(r, 400, "unsupported_model", "model", how == POOL_NONE ?
			   "the model \"%s\" writes text; its file names no pooling, so it was not made for embeddings (model.embeddings: mean or last overrides this)" :
			   "the backend that runs the model \"%s\" gives no embeddings", s->model_id);
		ok = false;
	}
	if (ok && !v) {
		http_error(r, 500, NULL, NULL, "out of memory");
		ok = false;
	}
	ok = ok && check(s, r, b, &base64) && inputs(r, in, &n);
	list = json_array();
	for (size_t i = 0; ok && i < n; i++) {
		const json_t *one = n == 1 && (json_is_string(in) || json_is_integer(json_array_get(in, 0))) ? in : json_array_get(in, i);
		struct tok_ids ids = { 0 };

		ok = encode(s, r, one, i, &ids) && embed_one(s, r, &ids, how, v);
		tokens += ids.n;
		tok_ids_free(&ids);
		if (ok)
			json_array_append_new(list, json_pack("{s:s,s:i,s:o}", "object", "embedding", "index", (int)i, "embedding", vector(v, d, base64)));
	}
	if (ok)
		http_reply_json(r, 200, json_pack("{s:s,s:O,s:s,s:{s:I,s:I}}", "object", "list", "data", list, "model", s->model_id,
						  "usage", "prompt_tokens", (json_int_t)tokens, "total_tokens", (json_int_t)tokens));
	else
		s->refused++;
	json_decref(list);
	json_decref(b);
	free(v);
}
