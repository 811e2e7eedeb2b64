/* SPDX-License-Identifier: MIT */
/*
 * JSON that is nearly right: a document that is, changed at a few places. Random
 * bytes seldom are JSON at all, and what reads fields would never be reached.
 */
#ifndef HEARTH_FUZZ_JSON_OPS_H
#define HEARTH_FUZZ_JSON_OPS_H

#include <jansson.h>
#include <stdint.h>

struct bytes {
	const uint8_t *p;
	size_t n;
};

static inline unsigned int take(struct bytes *b)
{
	if (!b->n)
		return 0;
	b->n--;
	return *b->p++;
}

static const char *const json_words[] = {
	"model", "messages", "role", "user", "assistant", "system", "developer", "tool", "content", "type", "text", "input_text", "output_text",
	"tools", "function", "name", "parameters", "properties", "arguments", "tool_calls", "tool_choice", "required", "auto", "none",
	"response_format", "json_schema", "json_object", "schema", "grammar", "stop", "logit_bias", "0", "max_tokens", "max_completion_tokens",
	"temperature", "top_p", "min_p", "top_k", "seed", "n", "logprobs", "top_logprobs", "stream", "stream_options", "include_usage", "prompt",
	"input", "instructions", "nvext", "agent_hints", "priority", "cache_control", "prefix_bytes", "cache_key", "ttl", "5m", "conversation_id",
	"prompt_cache_key", "reasoning_effort", "chat_template_kwargs", "enable_thinking", "think", "parallel_tool_calls", "reasoning", "effort",
	"format", "output", "call_id", "function_call", "function_call_output", "message", "max_output_tokens", "previous_response_id", "background",
	"item", "session", "previous_item_id", "item_id", "id", "root", "audio_end_ms", "response", "audio", "turn_detection", "server_vad",
	"threshold", "silence_duration_ms", "output_modalities", "modalities", "metadata", "conversation", "event_id", "transcript",
	"additionalProperties", "anyOf", "enum", "const", "minimum", "maximum", "pattern", "minLength", "maxLength", "items", "$ref", "#",
	"object", "string", "integer", "number", "array", "root ::= \"a\"*", "<tool_call>", "</tool_call>", "<|im_end|>", "\"", "\\", "", "\xf0\x9f\x98\x80",
};
#define JSON_WORDS (sizeof(json_words) / sizeof(json_words[0]))

static inline json_t *json_made(struct bytes *b, int depth)
{
	static const json_int_t whole[] = { 0, 1, -1, 2, 7, 255, 4096, 65536, INT32_MAX, INT32_MIN, (json_int_t)UINT32_MAX, INT64_MAX, INT64_MIN };
	static const double real[] = { 0.5, -0.0, 1e-320, 1e308, -1e308, 2.0000001, 1e18, 0.1 };
	json_t *v;
	char *s;

	switch (take(b) % (depth ? 10 : 8)) {
	case 0: return json_null();
	case 1: return json_true();
	case 2: return json_false();
	case 3: return json_integer(whole[take(b) % (sizeof(whole) / sizeof(whole[0]))]);
	case 4: return json_real(real[take(b) % (sizeof(real) / sizeof(real[0]))]);
	case 5: case 6: return json_string(json_words[take(b) % JSON_WORDS]);
	case 7:
		s = calloc(1, 70000);
		if (!s)
			return json_null();
		memset(s, 'a' + (int)(take(b) % 26), (take(b) << 8 | take(b)) + 1);
		v = json_string(s);
		free(s);
		return v;
	case 8:
		v = json_array();
		for (unsigned int n = take(b) % 4; n; n--)
			json_array_append_new(v, json_made(b, depth - 1));
		return v;
	default:
		v = json_object();
		for (unsigned int n = take(b) % 4; n; n--)
			json_object_set_new(v, json_words[take(b) % JSON_WORDS], json_made(b, depth - 1));
		return v;
	}
}

/* One change somewhere in @doc, an object or a list. */
static inline void json_change(json_t *doc, struct bytes *b)
{
	json_t *at = doc, *next;
	unsigned int down = take(b) % 7;

	while (down--) {
		if (json_is_array(at) && json_array_size(at)) {
			next = json_array_get(at, take(b) % json_array_size(at));
		} else if (json_object_size(at)) {
			void *it = json_object_iter(at);

			for (size_t k = take(b) % json_object_size(at); k; k--)
				it = json_object_iter_next(at, it);
			next = json_object_iter_value(it);
		} else {
			break;
		}
		if (!json_is_object(next) && !json_is_array(next))
			break;
		at = next;
	}
	if (json_is_array(at)) {
		const size_t n = json_array_size(at), k = n ? take(b) % n : 0;

		switch (take(b) % 4) {
		case 0: json_array_remove(at, k); break;
		case 1: json_array_append_new(at, n ? json_deep_copy(json_array_get(at, k)) : json_null()); break;
		case 2: json_array_append_new(at, json_made(b, 3)); break;
		default: if (n) json_array_set_new(at, k, json_made(b, 3)); break;
		}
	} else {
		const char *key = json_words[take(b) % JSON_WORDS];
		const unsigned int what = take(b) % 4;

		if (what && json_object_size(at)) {
			void *it = json_object_iter(at);

			for (size_t k = take(b) % json_object_size(at); k; k--)
				it = json_object_iter_next(at, it);
			key = json_object_iter_key(it);
		}
		if (what == 1) {
			/* the key goes with what it names */
			char copy[64];

			snprintf(copy, sizeof(copy), "%s", key);
			json_object_del(at, copy);
		} else {
			char copy[64];

			snprintf(copy, sizeof(copy), "%s", key);
			json_object_set_new(at, copy, json_made(b, 3));
		}
	}
}

#endif
