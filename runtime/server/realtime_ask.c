// SPDX-License-Identifier: MIT
/* What a client of a realtime session may say of its answers: of all of them, and of one. */
#include "server/realtime_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/schema.h"
#include "server/service.h"
#include "server/speech.h"

json_t *rt_tools(const json_t *tools, struct hearth_err *err)
{
	json_t *list = json_array(), *t;
	struct grammar *g = NULL;
	size_t i;
	int rc = 0;

	json_array_foreach((json_t *)tools, i, t) {
		json_t *f = json_deep_copy(t);
		const char *type = json_string_value(json_object_get(t, "type"));

		if (!json_is_object(f) || !type || strcmp(type, "function"))
			rc = err_set(err, -EINVAL, "tools[%zu] is not of type function", i);
		json_object_del(f, "type");
		json_array_append_new(list, json_pack("{s:s,s:o}", "type", "function", "function", f));
	}
	if (!rc && json_array_size(list))
		rc = grammar_from_tools(list, NULL, true, true, &g, err);
	grammar_unref(g);
	if (rc) {
		json_decref(list);
		return NULL;
	}
	return list;
}

bool rt_temperature(struct rt_session *c, const json_t *event, const json_t *v, const char *param, double *to)
{
	if (!v || json_is_null(v))
		return true;
	if (!json_is_number(v) || !(json_number_value(v) >= 0 && json_number_value(v) <= 2)) {
		rt_send_error(c, event, "invalid_value", param, "\"temperature\" must be a number from 0 to 2");
		return false;
	}
	*to = json_number_value(v);
	return true;
}

bool rt_max_tokens(struct rt_session *c, const json_t *event, const json_t *v, const char *param, uint32_t *to)
{
	const char *word = json_string_value(v);

	if (!v || json_is_null(v))
		return true;
	if (!(word && !strcmp(word, "inf")) && !(json_is_integer(v) && json_integer_value(v) > 0 && json_integer_value(v) < 1 << 20)) {
		rt_send_error(c, event, "invalid_value", param, "\"max_output_tokens\" must be a positive number or \"inf\"");
		return false;
	}
	*to = word ? 0 : (uint32_t)json_integer_value(v);
	return true;
}

bool rt_tool_choice(struct rt_session *c, const json_t *event, const json_t *v, const char *param, enum rt_choice *ret, const char **ret_name)
{
	const char *word = json_string_value(v), *type = json_string_value(json_object_get(v, "type"));

	*ret = RT_AUTO;
	*ret_name = NULL;
	if (!v || json_is_null(v) || (word && !strcmp(word, "auto")))
		return true;
	if (type && !strcmp(type, "function")) {
		*ret_name = json_string_value(json_object_get(v, "name"));
		if (!*ret_name)
			*ret_name = json_string_value(json_object_get(json_object_get(v, "function"), "name"));
	}
	if (!*ret_name && !(word && (!strcmp(word, "none") || !strcmp(word, "required")))) {
		rt_send_error(c, event, "invalid_value", param, "\"tool_choice\" must be none, auto, required or a function: {\"type\": \"function\", \"name\": ...}");
		return false;
	}
	*ret = *ret_name || !strcmp(word, "required") ? RT_REQUIRED : RT_NONE;
	return true;
}

void rt_ask_done(struct rt_ask *k)
{
	free(k->instructions);
	free(k->tool);
	json_decref(k->tools);
	json_decref(k->metadata);
	memset(k, 0, sizeof(*k));
}

bool rt_read_ask(struct rt_session *c, const json_t *event, struct rt_ask *k)
{
	const json_t *r = json_object_get(event, "response"), *v, *mods;
	const char *word;
	struct hearth_err err = { 0 };
	bool found = false;
	size_t i;
	json_t *t;

	memset(k, 0, sizeof(*k));
	k->temperature = c->temperature;
	k->max_tokens = c->max_tokens;
	k->audio = c->audio_out;
	v = json_object_get(r, "instructions");
	k->instructions = json_is_string(v) ? strdup(json_string_value(v)) : c->instructions ? strdup(c->instructions) : NULL;
	k->tools = json_is_array(json_object_get(r, "tools")) ? rt_tools(json_object_get(r, "tools"), &err) : json_incref(c->tools);
	if (!k->tools) {
		rt_send_error(c, event, "unsupported_schema", "response.tools", err.text);
		return false;
	}
	if (json_object_get(r, "input") || (json_is_string(json_object_get(r, "conversation")) && strcmp(json_string_value(json_object_get(r, "conversation")), "auto"))) {
		rt_send_error(c, event, "unsupported_value", "response.conversation", "a response outside of the conversation is not supported");
		return false;
	}
	mods = json_object_get(r, "output_modalities");
	if (!mods)
		mods = json_object_get(r, "modalities");
	if (json_is_array(mods)) {
		k->audio = false;
		json_array_foreach((json_t *)mods, i, t)
			k->audio |= json_is_string(t) && !strcmp(json_string_value(t), "audio");
		if (k->audio && !speech_speaks(c->s->speech)) {
			rt_send_error(c, event, "not_enabled", "response.output_modalities", "text to speech is not switched on here; use [\"text\"]");
			return false;
		}
	}
	if (!rt_temperature(c, event, json_object_get(r, "temperature"), "response.temperature", &k->temperature))
		return false;
	v = json_object_get(r, "max_output_tokens") ? json_object_get(r, "max_output_tokens") : json_object_get(r, "max_response_output_tokens");
	if (!rt_max_tokens(c, event, v, "response.max_output_tokens", &k->max_tokens))
		return false;
	v = json_object_get(r, "tool_choice") ? json_object_get(r, "tool_choice") : c->tool_choice;
	if (!rt_tool_choice(c, event, v, "response.tool_choice", &k->choice, &word))
		return false;
	if (k->choice == RT_REQUIRED && !json_array_size(k->tools)) {
		rt_send_error(c, event, "invalid_value", "response.tool_choice", "\"tool_choice\" asks for a call, but there are no tools");
		return false;
	}
	json_array_foreach(k->tools, i, t)
		found |= word && !strcmp(word, json_string_value(json_object_get(json_object_get(t, "function"), "name")));
	if (word && !found) {
		snprintf(err.text, sizeof(err.text), "\"tool_choice\" names \"%.60s\", which is not among the tools", word);
		rt_send_error(c, event, "invalid_value", "response.tool_choice", err.text);
		return false;
	}
	k->tool = word ? strdup(word) : NULL;
	v = json_object_get(r, "metadata");
	k->metadata = json_is_object(v) ? json_deep_copy(v) : NULL;
	return true;
}
