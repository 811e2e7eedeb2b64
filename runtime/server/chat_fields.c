// SPDX-License-Identifier: MIT
/* The fields of a request: which are known, and those that say how the answer is sampled. */
#include "server/chat_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool chat_number(struct http_req *r, const json_t *b, const char *key, double min, double max, double *v)
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

bool chat_integer(struct http_req *r, const json_t *b, const char *key, json_int_t min, json_int_t max, json_int_t *v)
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

bool chat_boolean(struct http_req *r, const json_t *b, const char *key, bool *v)
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
		{ "length_penalty", 1 }, { "min_tokens", 0 }, { "n_probs", 0 }, { "top_logprobs", 0 },
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

bool chat_only_text(struct http_req *r, const json_t *b)
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

/* How many tokens may be made, by any of its names; -1, which llama.cpp's clients send, is no limit but the context's. */
static bool most_tokens(struct http_req *r, struct chat_request *q)
{
	static const char *const chat[] = { "max_completion_tokens", "max_tokens", "n_predict" }, *const response[] = { "max_output_tokens" };
	const bool resp = q->form == CHAT_FORM_RESPONSE;
	const char *const *keys = resp ? response : chat, *said = NULL;
	json_int_t max = 0, v = 0;

	for (size_t i = 0; i < (resp ? 1 : 3); i++) {
		const json_t *j = json_object_get(q->body, keys[i]);

		if (!j || json_is_null(j))
			continue;
		if (!chat_integer(r, q->body, keys[i], -1, 1 << 24, &v))
			return false;
		if (said && v != max) {
			http_error(r, 400, "invalid_value", keys[i], "\"%s\" and \"%s\" say the same thing, and not the same number", said, keys[i]);
			return false;
		}
		said = keys[i];
		max = v;
	}
	q->max_given = said && max >= 0;
	q->max_tokens = q->max_given ? (uint32_t)max : 0;
	return true;
}

bool chat_sampling(struct service *s, struct http_req *r, struct chat_request *q)
{
	const json_t *b = q->body, *j;
	double temp = 1, top_p = 1, min_p = 0, rep = 1, freq = 0, pres = 0;
	json_int_t top_k = 0, seed = 0, n = 1, last = 64, top = 0;
	struct hearth_err err = { 0 };
	const char *key;
	json_t *v;
	size_t i;

	sampler_defaults(&q->sample);
	/* OpenAI's defaults, so that clients that leave them out get what they expect. */
	if (!chat_number(r, b, "temperature", 0, 2, &temp) || !chat_number(r, b, "top_p", 0, 1, &top_p) ||
	    !chat_number(r, b, "min_p", 0, 1, &min_p) || !chat_integer(r, b, "top_k", -1, 1 << 20, &top_k) ||
	    !chat_number(r, b, "repeat_penalty", 0.01, 10, &rep) || !chat_integer(r, b, "repeat_last_n", 0, SAMPLER_WINDOW, &last) ||
	    !chat_number(r, b, "frequency_penalty", -2, 2, &freq) || !chat_number(r, b, "presence_penalty", -2, 2, &pres) ||
	    !chat_integer(r, b, "seed", INT64_MIN, INT64_MAX, &seed) || !chat_integer(r, b, "n", 1, CHAT_MAX_N, &n) ||
	    !chat_boolean(r, b, "stream", &q->stream))
		return false;
	q->sample.temp = (float)temp;
	q->sample.top_p = (float)top_p;
	q->sample.min_p = (float)min_p;
	q->sample.top_k = top_k < 0 ? 0 : (uint32_t)top_k;   /* off is 0 by llama.cpp, and was -1 by vLLM */
	q->sample.rep_pen = (float)rep;
	q->sample.freq_pen = (float)freq;
	q->sample.pres_pen = (float)pres;
	q->sample.pen_last = (uint32_t)last;
	/* 0 is a seed like any other; to the sampler it means none. */
	q->sample.seed = !seed && json_is_integer(json_object_get(b, "seed")) ? 0x9e3779b97f4a7c15u : (uint64_t)seed;
	q->n = (uint32_t)n;
	if (!most_tokens(r, q))
		return false;
	/* logprobs: a flag in chat, a count in completions */
	j = json_object_get(b, "logprobs");
	if (q->chat) {
		if (!chat_boolean(r, b, "logprobs", &q->logprobs) || !chat_integer(r, b, "top_logprobs", 0, SAMPLER_TOP_LOGPROBS, &top))
			return false;
		if (top && !q->logprobs) {
			http_error(r, 400, "invalid_value", "top_logprobs", "\"top_logprobs\" needs \"logprobs\": true");
			return false;
		}
	} else {
		if (!chat_integer(r, b, "logprobs", 0, SAMPLER_TOP_LOGPROBS, &top))
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
		if (!chat_boolean(r, j, "include_usage", &q->include_usage))
			return false;
	}
	return true;
}
