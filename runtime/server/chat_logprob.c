// SPDX-License-Identifier: MIT
/* Log-probabilities in the shapes of chat completions and of completions. */
#include "server/chat_job.h"

#include <math.h>

/* A token's bytes as JSON text: what is not UTF-8 on its own becomes U+FFFD. */
static json_t *token_text(const struct chat_job *j, int32_t id)
{
	size_t n = 0;
	const char *s = tok_bytes(j->s->tok, id, &n);
	json_t *t = s ? json_stringn(s, n) : json_string("");

	return t ? t : json_string("\xef\xbf\xbd");
}

static json_t *token_bytes(const struct chat_job *j, int32_t id)
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

static json_t *logprob(const struct chat_job *j, int32_t id, float lp)
{
	return json_pack("{s:o,s:f,s:o}", "token", token_text(j, id), "logprob", sane(lp), "bytes", token_bytes(j, id));
}

json_t *chat_logprob(const struct chat_job *j, const struct run_event *e)
{
	json_t *o = logprob(j, e->token, e->pick.logprob), *top = json_array();

	for (uint32_t i = 0; i < e->pick.n_top && i < j->q.top_logprobs; i++)
		json_array_append_new(top, logprob(j, e->pick.top[i].token, e->pick.top[i].logprob));
	json_object_set_new(o, "top_logprobs", top);
	return o;
}

json_t *chat_logprobs_chat(json_t *entries)
{
	return json_pack("{s:o}", "content", entries);
}

json_t *chat_logprobs_plain(const json_t *entries)
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
