// SPDX-License-Identifier: MIT
/*
 * One realtime session: a reading thread (this connection's), and for the
 * length of a response a second thread that generates and speaks. Input audio
 * is 24 kHz; server VAD cuts it into turns; a turn is transcribed, put into
 * the conversation, and answered. Speech that begins while an answer is spoken
 * cancels it. What the client says it played (truncate) is all that stays in
 * the conversation.
 */
#include "server/realtime.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#include "grammar/schema.h"
#include "server/realtime_priv.h"
#include "server/service.h"
#include "server/speech.h"
#include "server/websocket.h"
#include "voice/resample.h"
#include "voice/vad.h"

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rt_session *all[MAX_SESSIONS];

/* -- what a client asks --------------------------------------------------------------- */

static json_t *session_json(struct rt_session *c)
{
	return json_pack("{s:s,s:s,s:s,s:s,s:[s],s:s,s:O,s:o,s:f}", "id", c->id, "object", "realtime.session", "type", "realtime", "model", c->s->model_id,
			 "output_modalities", c->audio_out ? "audio" : "text", "instructions", c->instructions ? c->instructions : "", "tools", c->tools,
			 "turn_detection", c->server_vad ? json_pack("{s:s,s:f,s:f,s:b,s:b}", "type", "server_vad", "threshold", c->threshold,
			 "silence_duration_ms", c->silence_ms, "create_response", c->create_response, "interrupt_response", c->interrupt) : json_null(),
			 "temperature", c->temperature);
}

/* Refuses the whole update or takes the whole: nothing is half done. */
static void update(struct rt_session *c, const json_t *event)
{
	const json_t *s = json_object_get(event, "session"), *in = json_object_get(json_object_get(s, "audio"), "input");
	const json_t *td = json_object_get(s, "turn_detection") ? json_object_get(s, "turn_detection") : json_object_get(in, "turn_detection");
	const json_t *tools = json_object_get(s, "tools"), *mods = json_object_get(s, "output_modalities"), *v;
	const char *word;
	struct hearth_err err = { 0 };
	json_t *list = NULL, *t;
	bool audio = c->audio_out;
	size_t i;

	if (!mods)
		mods = json_object_get(s, "modalities");
	if (!json_is_object(s)) {
		rt_send_error(c, event, "invalid_value", "session", "\"session\" must be an object");
		return;
	}
	if (json_is_array(mods)) {
		audio = false;
		json_array_foreach((json_t *)mods, i, t)
			audio |= json_is_string(t) && !strcmp(json_string_value(t), "audio");
		if (audio && !speech_speaks(c->s->speech)) {
			rt_send_error(c, event, "not_enabled", "session.output_modalities", "text to speech is not switched on here; use [\"text\"]");
			return;
		}
	}
	word = json_string_value(json_object_get(td, "type"));
	if (word && strcmp(word, "server_vad") && strcmp(word, "semantic_vad")) {
		rt_send_error(c, event, "invalid_value", "session.turn_detection", "\"turn_detection\" must be server_vad, semantic_vad or null");
		return;
	}
	v = json_object_get(s, "temperature");
	if (v && (!json_is_number(v) || json_number_value(v) < 0 || json_number_value(v) > 2)) {
		rt_send_error(c, event, "invalid_value", "session.temperature", "\"temperature\" must be a number from 0 to 2");
		return;
	}
	if (json_is_array(tools)) {
		struct grammar *g = NULL;

		list = json_array();
		json_array_foreach((json_t *)tools, i, t) {
			json_t *f = json_deep_copy(t);

			json_object_del(f, "type");
			json_array_append_new(list, json_pack("{s:s,s:o}", "type", "function", "function", f));
		}
		if (json_array_size(list) && grammar_from_tools(list, NULL, true, true, &g, &err)) {
			rt_send_error(c, event, "unsupported_schema", "session.tools", err.text);
			json_decref(list);
			return;
		}
		grammar_unref(g);
	}
	pthread_mutex_lock(&c->lock);
	rt_set_text(&c->instructions, json_object_get(s, "instructions"));
	if (v)
		c->temperature = json_number_value(v);
	if (list) {
		json_decref(c->tools);
		c->tools = list;
	}
	c->audio_out = audio;
	v = json_object_get(s, "max_output_tokens") ? json_object_get(s, "max_output_tokens") : json_object_get(s, "max_response_output_tokens");
	if (json_is_integer(v) && json_integer_value(v) > 0 && json_integer_value(v) < 1 << 20)
		c->max_tokens = (uint32_t)json_integer_value(v);
	if (td) {
		c->server_vad = !json_is_null(td);
		v = json_object_get(td, "silence_duration_ms");
		if (json_is_number(v) && json_number_value(v) >= 50 && json_number_value(v) <= 10000)
			c->silence_ms = json_number_value(v);
		v = json_object_get(td, "create_response");
		if (json_is_boolean(v))
			c->create_response = json_is_true(v);
		v = json_object_get(td, "interrupt_response");
		if (json_is_boolean(v))
			c->interrupt = json_is_true(v);
	}
	pthread_mutex_unlock(&c->lock);
	if (td && c->server_vad && rt_open_vad(c, &err))
		rt_send_error(c, event, "server_error", NULL, err.text);
	rt_send_event(c, "session.updated", json_pack("{s:o}", "session", session_json(c)));
}

static void create_item(struct rt_session *c, const json_t *event)
{
	const json_t *it = json_object_get(event, "item"), *content = json_object_get(it, "content"), *p;
	const char *type = json_string_value(json_object_get(it, "type")), *role = json_string_value(json_object_get(it, "role"));
	const char *text = NULL;
	struct rt_item *i = NULL;
	json_t *j = NULL;

	if (type && !strcmp(type, "message") && role && (!strcmp(role, "user") || !strcmp(role, "assistant") || !strcmp(role, "system"))) {
		p = json_array_get(content, 0);
		text = json_string_value(json_object_get(p, "text"));
		if (!text)
			text = json_string_value(json_object_get(p, "transcript"));
	} else if (type && !strcmp(type, "function_call_output")) {
		role = "tool";
		text = json_string_value(json_object_get(it, "output"));
	}
	if (!text) {
		rt_send_error(c, event, "invalid_value", "item", "the item must be a message with text or a function_call_output");
		return;
	}
	pthread_mutex_lock(&c->lock);
	i = rt_item_add(c, json_string_value(json_object_get(it, "id")), role, text);
	if (i && !strcmp(role, "tool"))
		rt_set_text(&i->call_id, json_object_get(it, "call_id"));
	if (i)
		j = rt_item_json(i);
	pthread_mutex_unlock(&c->lock);
	if (!j) {
		rt_send_error(c, event, "conversation_full", "item", "the conversation is full");
		return;
	}
	rt_send_event(c, rt_name_of(c, "conversation.item.added"), json_pack("{s:n,s:O}", "previous_item_id", "item", j));
	if (!c->beta)
		rt_send_event(c, "conversation.item.done", json_pack("{s:n,s:O}", "previous_item_id", "item", j));
	json_decref(j);
}

/* Only what was heard stays: the text is cut to the same share as the sound. */
static void truncate_item(struct rt_session *c, const json_t *event)
{
	const char *id = json_string_value(json_object_get(event, "item_id"));
	const json_t *ms = json_object_get(event, "audio_end_ms");
	struct rt_item *i;
	size_t n;

	pthread_mutex_lock(&c->lock);
	i = rt_item_find(c, id);
	if (!i || !json_is_number(ms) || json_number_value(ms) < 0 || json_number_value(ms) > i->audio_ms + 1) {
		pthread_mutex_unlock(&c->lock);
		rt_send_error(c, event, "invalid_value", i ? "audio_end_ms" : "item_id", i ? "there is no so much audio in that item" : "there is no such item");
		return;
	}
	n = i->audio_ms > 0 && i->text ? (size_t)((double)strlen(i->text) * json_number_value(ms) / i->audio_ms) : 0;
	while (i->text && n && n < strlen(i->text) && ((unsigned char)i->text[n] & 0xc0) == 0x80)
		n--;
	if (i->text)
		i->text[n] = 0;
	i->audio_ms = json_number_value(ms);
	pthread_mutex_unlock(&c->lock);
	rt_send_event(c, "conversation.item.truncated", json_pack("{s:s,s:i,s:O}", "item_id", id, "content_index", 0, "audio_end_ms", ms));
}

static void delete_item(struct rt_session *c, const json_t *event, bool retrieve)
{
	const char *id = json_string_value(json_object_get(event, "item_id"));
	json_t *j = NULL;
	struct rt_item *i;

	pthread_mutex_lock(&c->lock);
	i = rt_item_find(c, id);
	if (i && retrieve) {
		j = rt_item_json(i);
	} else if (i) {
		rt_item_done(i);
		memmove(i, i + 1, (size_t)(c->items + c->n_items - i - 1) * sizeof(*i));
		c->n_items--;
	}
	pthread_mutex_unlock(&c->lock);
	if (!i)
		rt_send_error(c, event, "invalid_value", "item_id", "there is no such item");
	else if (retrieve)
		rt_send_event(c, "conversation.item.retrieved", json_pack("{s:o}", "item", j));
	else
		rt_send_event(c, "conversation.item.deleted", json_pack("{s:s}", "item_id", id));
}

static void take_event(struct rt_session *c, const char *text, size_t n)
{
	json_error_t je;
	json_t *e = json_loadb(text, n, 0, &je);
	const char *type = json_string_value(json_object_get(e, "type"));

	if (!json_is_object(e) || !type) {
		rt_send_error(c, NULL, "invalid_json", NULL, "the message is not a JSON object with a type");
	} else if (!strcmp(type, "session.update") || !strcmp(type, "transcription_session.update")) {
		update(c, e);
	} else if (!strcmp(type, "input_audio_buffer.append")) {
		rt_take_audio(c, e);
	} else if (!strcmp(type, "input_audio_buffer.commit")) {
		rt_commit(c, e);
	} else if (!strcmp(type, "input_audio_buffer.clear")) {
		c->n_buffer = 0;
		hearing_drop(c->hearing);
		c->hearing = NULL;
		if (c->vad)
			vad_reset(c->vad);
		c->pushed = c->sent = 0;
		rt_send_event(c, "input_audio_buffer.cleared", json_object());
	} else if (!strcmp(type, "conversation.item.create")) {
		create_item(c, e);
	} else if (!strcmp(type, "conversation.item.retrieve") || !strcmp(type, "conversation.item.delete")) {
		delete_item(c, e, type[18] == 'r');
	} else if (!strcmp(type, "conversation.item.truncate")) {
		truncate_item(c, e);
	} else if (!strcmp(type, "response.create")) {
		rt_begin_response(c, e);
	} else if (!strcmp(type, "response.cancel")) {
		if (atomic_load(&c->running))
			atomic_store(&c->cancel, true);
		else
			rt_send_error(c, e, "response_cancel_not_active", NULL, "no answer is being given");
	} else if (strcmp(type, "output_audio_buffer.clear")) {
		rt_send_error(c, e, "unknown_event", "type", "this event is not known");
	}
	json_decref(e);
}

/* -- life ---------------------------------------------------------------------------- */

static void session_free(struct rt_session *c)
{
	for (size_t i = 0; i < c->n_items; i++)
		rt_item_done(&c->items[i]);
	free(c->items);
	free(c->instructions);
	free(c->buffer);
	json_decref(c->tools);
	resample_free(c->down);
	vad_close(c->vad);
	pthread_mutex_destroy(&c->lock);
	keyring_drop(c->s->keys, c->who);
	free(c);
}

static void serve(void *arg, int fd, const char *extra, size_t n_extra)
{
	struct rt_session *c = arg;
	struct hearth_err err = { 0 };
	int slot = -1, rc;
	char *text;
	size_t n;

	pthread_mutex_lock(&all_lock);
	for (int i = 0; i < MAX_SESSIONS && slot < 0; i++)
		if (!all[i])
			slot = i;
	if (slot >= 0)
		all[slot] = c;
	pthread_mutex_unlock(&all_lock);
	c->fd = fd;
	if (slot >= 0 && websocket_open(fd, extra, n_extra, MAX_MESSAGE, &c->ws) == 0) {
		if (resample_new(RATE, STT_RATE, &c->down, &err) || rt_open_vad(c, &err))
			rt_send_error(c, NULL, "server_error", NULL, err.text);
		rt_send_event(c, "session.created", json_pack("{s:o}", "session", session_json(c)));
		while (!c->shutting && (rc = websocket_read(c->ws, 500, &text, &n)) >= 0) {
			if (!rc)
				continue;
			take_event(c, text, n);
			free(text);
		}
		rt_end_response(c, true);
		hearing_drop(c->hearing);
		websocket_close(c->ws);
	}
	pthread_mutex_lock(&all_lock);
	if (slot >= 0)
		all[slot] = NULL;
	pthread_mutex_unlock(&all_lock);
	session_free(c);
}

void realtime_stop(void)
{
	pthread_mutex_lock(&all_lock);
	for (int i = 0; i < MAX_SESSIONS; i++) {
		if (all[i]) {
			all[i]->shutting = true;
			shutdown(all[i]->fd, SHUT_RD);
		}
	}
	pthread_mutex_unlock(&all_lock);
}

void api_realtime(struct http_req *r, void *service)
{
	const char *up = http_header(r, "Upgrade"), *key = http_header(r, "Sec-WebSocket-Key"), *ver = http_header(r, "Sec-WebSocket-Version");
	const char *proto = http_header(r, "Sec-WebSocket-Protocol"), *beta = http_header(r, "OpenAI-Beta");
	struct rt_session *c;
	char accept[32];

	if (!up || strcasecmp(up, "websocket") || !key || !ver || strcmp(ver, "13") || websocket_accept(key, accept)) {
		http_answer_header(r, "Upgrade", "websocket");
		http_error(r, 426, "upgrade_required", NULL, "this address speaks WebSocket, version 13");
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		http_error(r, 500, NULL, NULL, "out of memory");
		return;
	}
	c->s = service;
	c->who = http_who(r);
	keyring_hold(c->s->keys, c->who);
	c->beta = (beta && strstr(beta, "realtime=v1")) || (proto && strstr(proto, "openai-beta.realtime-v1"));
	c->tools = json_array();
	c->temperature = 0.7;
	c->server_vad = c->create_response = c->interrupt = true;
	c->audio_out = speech_speaks(c->s->speech);
	c->silence_ms = 500;
	c->threshold = 0.5;
	pthread_mutex_init(&c->lock, NULL);
	rt_make_id(c, "sess", c->id);
	/* Browsers cannot set headers: they bring the key as a protocol, and want one of them back. */
	if (proto && strstr(proto, "realtime"))
		http_answer_header(r, "Sec-WebSocket-Protocol", "realtime");
	http_upgrade(r, accept, serve, c);
}
