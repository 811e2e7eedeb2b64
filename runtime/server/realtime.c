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
#include "server/gate.h"
#include "server/realtime_priv.h"
#include "server/service.h"
#include "server/speech.h"
#include "server/websocket.h"
#include "voice/resample.h"

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rt_session *all[MAX_SESSIONS];
static bool stopped;               /* all_lock; who comes now is let go at once */

/* -- what a client asks --------------------------------------------------------------- */

/* The form of today's clients; the older one besides for those that asked for it. */
static json_t *session_json(struct rt_session *c)
{
	json_t *td = c->server_vad ? json_pack("{s:s,s:f,s:f,s:f,s:b,s:b}", "type", "server_vad", "threshold", c->threshold, "prefix_padding_ms", c->padding_ms,
					       "silence_duration_ms", c->silence_ms, "create_response", c->create_response, "interrupt_response", c->interrupt) : json_null();
	json_t *tools = json_array(), *max = c->max_tokens ? json_integer(c->max_tokens) : json_string("inf"), *o, *t;
	size_t i;

	json_array_foreach(c->tools, i, t) {
		json_t *f = json_deep_copy(json_object_get(t, "function"));

		json_object_set_new(f, "type", json_string("function"));
		json_array_append_new(tools, f);
	}
	o = json_pack("{s:s,s:s,s:s,s:s,s:s,s:o,s:O,s:o,s:f}", "id", c->id, "object", "realtime.session", "type", "realtime", "model", c->s->model_id,
		      "instructions", c->instructions ? c->instructions : "", "tools", tools, "tool_choice", c->tool_choice,
		      c->beta ? "max_response_output_tokens" : "max_output_tokens", max, "temperature", c->temperature);
	if (c->beta) {
		json_object_set_new(o, "modalities", c->audio_out ? json_pack("[s,s]", "text", "audio") : json_pack("[s]", "text"));
		json_object_set_new(o, "turn_detection", td);
		json_object_set_new(o, "input_audio_format", json_string("pcm16"));
		json_object_set_new(o, "output_audio_format", json_string("pcm16"));
		json_object_set_new(o, "voice", json_string(c->s->cfg->voice));
	} else {
		json_object_set_new(o, "output_modalities", json_pack("[s]", c->audio_out ? "audio" : "text"));
		json_object_set_new(o, "audio", json_pack("{s:{s:{s:s,s:i},s:o,s:{s:s}},s:{s:{s:s,s:i},s:s,s:f}}",
			"input", "format", "type", "audio/pcm", "rate", RATE, "turn_detection", td, "transcription", "model", "hearth",
			"output", "format", "type", "audio/pcm", "rate", RATE, "voice", c->s->cfg->voice, "speed", 1.0));
	}
	return o;
}

static bool refuse(struct rt_session *c, const json_t *event, const char *code, const char *param, const char *text)
{
	rt_send_error(c, event, code, param, text);
	return false;
}

/* audio/pcm at 24 kHz, in any of its spellings. */
static bool format_ok(struct rt_session *c, const json_t *event, const json_t *f, const char *param)
{
	const char *word = json_string_value(f) ? json_string_value(f) : json_string_value(json_object_get(f, "type"));
	const json_t *rate = json_object_get(f, "rate");

	if ((word && strcmp(word, "pcm16") && strcmp(word, "audio/pcm")) || (json_is_integer(rate) && json_integer_value(rate) != RATE))
		return refuse(c, event, "unsupported_value", param, "audio is audio/pcm at 24000 Hz here, and nothing else");
	return true;
}

/* A number of @td, within limits; what is not there stays as it is. */
static bool td_number(struct rt_session *c, const json_t *event, const json_t *td, const char *key, double min, double max, double *to)
{
	const json_t *v = json_object_get(td, key);

	if (!v || json_is_null(v))
		return true;
	if (!json_is_number(v) || json_number_value(v) < min || json_number_value(v) > max)
		return refuse(c, event, "invalid_value", "session.turn_detection", "a number of \"turn_detection\" is out of its range");
	*to = json_number_value(v);
	return true;
}

/* Refuses the whole update or takes the whole: nothing is half done. */
static void update(struct rt_session *c, const json_t *event)
{
	const json_t *s = json_object_get(event, "session"), *audio = json_object_get(s, "audio");
	const json_t *in = json_object_get(audio, "input"), *out = json_object_get(audio, "output");
	const json_t *td = json_object_get(s, "turn_detection") ? json_object_get(s, "turn_detection") : json_object_get(in, "turn_detection");
	const json_t *tools = json_object_get(s, "tools"), *mods = json_object_get(s, "output_modalities"), *choice = json_object_get(s, "tool_choice"), *v, *max;
	double silence = c->silence_ms, threshold = c->threshold, padding = c->padding_ms, temperature = c->temperature;
	uint32_t max_tokens = c->max_tokens;
	const char *word, *voice;
	struct hearth_err err = { 0 };
	json_t *list = NULL, *t;
	enum rt_choice which;
	bool speak = c->audio_out;
	size_t i;

	if (!mods)
		mods = json_object_get(s, "modalities");
	if (!json_is_object(s)) {
		refuse(c, event, "invalid_value", "session", "\"session\" must be an object");
		return;
	}
	if (!format_ok(c, event, json_object_get(s, "input_audio_format"), "session.input_audio_format") ||
	    !format_ok(c, event, json_object_get(s, "output_audio_format"), "session.output_audio_format") ||
	    !format_ok(c, event, json_object_get(in, "format"), "session.audio.input.format") ||
	    !format_ok(c, event, json_object_get(out, "format"), "session.audio.output.format"))
		return;
	if (json_is_array(mods)) {
		speak = false;
		json_array_foreach((json_t *)mods, i, t)
			speak |= json_is_string(t) && !strcmp(json_string_value(t), "audio");
		if (speak && !speech_speaks(c->s->speech)) {
			refuse(c, event, "not_enabled", "session.output_modalities", "text to speech is not switched on here; use [\"text\"]");
			return;
		}
	}
	word = json_string_value(json_object_get(td, "type"));
	if (td && !json_is_null(td) && (!word || (strcmp(word, "server_vad") && strcmp(word, "semantic_vad")))) {
		refuse(c, event, "invalid_value", "session.turn_detection", "\"turn_detection\" must be server_vad, semantic_vad or null");
		return;
	}
	if (!td_number(c, event, td, "silence_duration_ms", 50, 10000, &silence) || !td_number(c, event, td, "threshold", 0.05, 0.95, &threshold) ||
	    !td_number(c, event, td, "prefix_padding_ms", 0, 1500, &padding))
		return;
	max = json_object_get(s, "max_output_tokens") ? json_object_get(s, "max_output_tokens") : json_object_get(s, "max_response_output_tokens");
	if (!rt_temperature(c, event, json_object_get(s, "temperature"), "session.temperature", &temperature) ||
	    !rt_max_tokens(c, event, max, "session.max_output_tokens", &max_tokens))
		return;
	if (!rt_tool_choice(c, event, choice, "session.tool_choice", &which, &word))
		return;
	voice = json_string_value(json_object_get(s, "voice")) ? json_string_value(json_object_get(s, "voice")) : json_string_value(json_object_get(out, "voice"));
	if (tools && !json_is_array(tools)) {
		refuse(c, event, "invalid_value", "session.tools", "\"tools\" must be a list");
		return;
	}
	if (tools && !(list = rt_tools(tools, &err))) {
		refuse(c, event, "unsupported_schema", "session.tools", err.text);
		return;
	}
	rt_set_text(&c->instructions, json_object_get(s, "instructions"));
	c->temperature = temperature;
	c->max_tokens = max_tokens;
	if (list) {
		json_decref(c->tools);
		c->tools = list;
	}
	if (choice && !json_is_null(choice)) {
		json_decref(c->tool_choice);
		c->tool_choice = json_deep_copy(choice);
	}
	c->audio_out = speak;
	if (td) {
		c->server_vad = !json_is_null(td);
		c->silence_ms = silence;
		c->threshold = threshold;
		c->padding_ms = padding;
		v = json_object_get(td, "create_response");
		if (json_is_boolean(v))
			c->create_response = json_is_true(v);
		v = json_object_get(td, "interrupt_response");
		if (json_is_boolean(v))
			c->interrupt = json_is_true(v);
		/* What was being said belongs to the old settings. */
		c->n_buffer = 0;
		if (rt_open_gate(c, &err))
			rt_send_error(c, event, "server_error", NULL, err.text);
	}
	/* Clients name voices of OpenAI's; there is one voice here, and session.updated says which. */
	(void)voice;
	rt_send_event(c, "session.updated", json_pack("{s:o}", "session", session_json(c)));
}

static void create_item(struct rt_session *c, const json_t *event)
{
	const json_t *it = json_object_get(event, "item"), *content = json_object_get(it, "content"), *p;
	const char *type = json_string_value(json_object_get(it, "type")), *role = json_string_value(json_object_get(it, "role"));
	const char *id = json_string_value(json_object_get(it, "id")), *after = json_string_value(json_object_get(event, "previous_item_id")), *text = NULL;
	const char *name = json_string_value(json_object_get(it, "name")), *args = json_string_value(json_object_get(it, "arguments"));
	const size_t more = json_string_length(json_object_get(it, "call_id")) + json_string_length(json_object_get(it, "name")) +
			    json_string_length(json_object_get(it, "arguments"));
	struct rt_item *i = NULL;
	json_t *j = NULL;
	bool taken = false, lost = false, spoken = false, front = after && !strcmp(after, "root");

	if (type && !strcmp(type, "message") && role && (!strcmp(role, "user") || !strcmp(role, "assistant") || !strcmp(role, "system"))) {
		p = json_array_get(content, 0);
		text = json_string_value(json_object_get(p, "text"));
		if (!text) {
			text = json_string_value(json_object_get(p, "transcript"));
			spoken = text != NULL;
		}
		if (json_array_size(content) > 1)
			text = NULL;
	} else if (type && !strcmp(type, "function_call_output")) {
		role = "tool";
		text = json_string_value(json_object_get(it, "output"));
	} else if (type && !strcmp(type, "function_call") && name && args) {
		role = "assistant";
		text = "";
	}
	if (!text) {
		rt_send_error(c, event, "invalid_value", "item", "the item must be a message with one part that has a text, a function_call or a function_call_output");
		return;
	}
	if (id && (!*id || strlen(id) > 32)) {
		rt_send_error(c, event, "invalid_value", "item.id", "an item's id is 1 to 32 bytes");
		return;
	}
	pthread_mutex_lock(&c->lock);
	taken = id && rt_item_find(c, id);
	lost = after && !front && !rt_item_find(c, after);
	if (!taken && !lost && rt_room(c, strlen(text) + more)) {
		/* "root" is the place before the first, whatever items are called: put last, then moved. */
		i = rt_item_add(c, id, front ? NULL : after, role, text);
		if (i && front) {
			struct rt_item first = *i;

			memmove(&c->items[1], &c->items[0], (c->n_items - 1) * sizeof(first));
			c->items[0] = first;
			i = &c->items[0];
		}
	}
	if (i) {
		i->spoken = spoken;
		rt_set_text(&i->call_id, json_object_get(it, "call_id"));
		if (!strcmp(type, "function_call")) {
			i->name = strdup(name);
			i->arguments = strdup(args);
		}
		j = rt_item_json(i);
	}
	pthread_mutex_unlock(&c->lock);
	if (!j) {
		rt_send_error(c, event, taken || lost ? "invalid_value" : "conversation_full", taken ? "item.id" : lost ? "previous_item_id" : "item",
			      taken ? "there is an item with that id already" : lost ? "there is no such item" : "the conversation is full");
		return;
	}
	rt_send_item(c, j, RT_ADDED | RT_DONE);
	json_decref(j);
}

/* Where in the item's text the sound was at @ms: between two phrases by share, and not inside a word. */
static size_t heard_of(const struct rt_item *i, double ms)
{
	size_t from = 0, to = strlen(i->text), n;
	double a = 0, b = i->audio_ms;

	for (size_t k = 0; k < i->n_marks; k++) {
		if (i->marks[k].ms > ms) {
			to = i->marks[k].bytes;
			b = i->marks[k].ms;
			break;
		}
		from = i->marks[k].bytes;
		a = i->marks[k].ms;
	}
	if (to > strlen(i->text))
		to = strlen(i->text);
	n = from < to && b > a ? from + (size_t)((double)(to - from) * (ms - a) / (b - a)) : to;
	if (n >= to)
		return to;
	/* A word that was begun was not heard. */
	while (n > from && i->text[n] != ' ')
		n--;
	while (n > from && i->text[n - 1] == ' ')
		n--;
	return n;
}

/* Only what was heard stays. */
static void truncate_item(struct rt_session *c, const json_t *event)
{
	const char *id = json_string_value(json_object_get(event, "item_id"));
	const json_t *ms = json_object_get(event, "audio_end_ms");
	struct rt_item *i;
	bool own, fits;

	pthread_mutex_lock(&c->lock);
	i = rt_item_find(c, id);
	own = i && !strcmp(i->role, "assistant") && i->spoken && i->text;
	fits = own && json_is_number(ms) && json_number_value(ms) >= 0 && json_number_value(ms) <= i->audio_ms + 1;
	if (fits) {
		i->text[heard_of(i, json_number_value(ms))] = 0;
		i->audio_ms = json_number_value(ms);
		i->cut = true;
	}
	pthread_mutex_unlock(&c->lock);
	if (!fits) {
		rt_send_error(c, event, "invalid_value", own ? "audio_end_ms" : "item_id", own ? "there is no so much audio in that item" :
			      i ? "only a spoken answer can be truncated" : "there is no such item");
		return;
	}
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

void rt_take_event(struct rt_session *c, const char *text, size_t n)
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
		if (c->gate)
			gate_reset(c->gate);
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
		const char *which = json_string_value(json_object_get(e, "response_id"));

		if (atomic_load(&c->running) && (!which || !strcmp(which, c->response_id)))
			atomic_store(&c->cancel, true);
		else
			rt_send_error(c, e, "response_cancel_not_active", NULL, "no answer is being given");
	} else if (strcmp(type, "output_audio_buffer.clear")) {
		rt_send_error(c, e, "unknown_event", "type", "this event is not known");
	}
	json_decref(e);
}

/* -- life ---------------------------------------------------------------------------- */

void rt_session_free(struct rt_session *c)
{
	for (size_t i = 0; i < c->n_items; i++)
		rt_item_done(&c->items[i]);
	free(c->items);
	free(c->instructions);
	free(c->buffer);
	json_decref(c->tools);
	json_decref(c->tool_choice);
	rt_ask_done(&c->ask);
	resample_free(c->down);
	gate_close(c->gate);
	free(c->said);
	pthread_mutex_destroy(&c->lock);
	keyring_drop(c->s->keys, c->who);
	free(c);
}

/* A client that left before its upgrade. */
static void drop(void *arg)
{
	rt_session_free(arg);
}

static void serve(void *arg, int fd, const char *extra, size_t n_extra)
{
	struct rt_session *c = arg;
	struct hearth_err err = { 0 };
	int slot = -1, rc;
	char *text;
	size_t n;

	pthread_mutex_lock(&all_lock);
	for (int i = 0; i < MAX_SESSIONS && slot < 0 && !stopped; i++)
		if (!all[i])
			slot = i;
	c->fd = fd;
	if (slot >= 0)
		all[slot] = c;
	pthread_mutex_unlock(&all_lock);
	if (slot >= 0 && websocket_open(fd, extra, n_extra, MAX_MESSAGE, &c->ws) == 0) {
		if (resample_new(RATE, STT_RATE, &c->down, &err) || rt_open_gate(c, &err))
			rt_send_error(c, NULL, "server_error", NULL, err.text);
		rt_send_event(c, "session.created", json_pack("{s:o}", "session", session_json(c)));
		while (!c->shutting && (rc = websocket_read(c->ws, 500, &text, &n)) >= 0) {
			if (rc) {
				rt_take_event(c, text, n);
				free(text);
			}
			rt_look_after_hearing(c);
		}
		rt_end_response(c, true);
		gate_close(c->gate);
		c->gate = NULL;
		websocket_close(c->ws);
	}
	pthread_mutex_lock(&all_lock);
	if (slot >= 0)
		all[slot] = NULL;
	pthread_mutex_unlock(&all_lock);
	rt_session_free(c);
}

void realtime_stop(void)
{
	pthread_mutex_lock(&all_lock);
	stopped = true;
	for (int i = 0; i < MAX_SESSIONS; i++) {
		if (all[i]) {
			all[i]->shutting = true;
			shutdown(all[i]->fd, SHUT_RD);
		}
	}
	pthread_mutex_unlock(&all_lock);
}

static int sessions(void)
{
	int n = 0;

	pthread_mutex_lock(&all_lock);
	for (int i = 0; i < MAX_SESSIONS; i++)
		n += all[i] != NULL;
	pthread_mutex_unlock(&all_lock);
	return n;
}

struct rt_session *rt_session_new(struct service *s, int who, bool beta)
{
	struct rt_session *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->s = s;
	c->who = who;
	keyring_hold(s->keys, who);
	c->beta = beta;
	c->tools = json_array();
	c->tool_choice = json_string("auto");
	c->padding_ms = 300;
	c->temperature = 0.7;
	c->server_vad = c->create_response = c->interrupt = true;
	c->audio_out = speech_speaks(s->speech);
	c->silence_ms = 500;
	c->threshold = 0.5;
	pthread_mutex_init(&c->lock, NULL);
	rt_make_id(c, "sess", c->id);
	return c;
}

void api_realtime(struct http_req *r, void *service)
{
	const char *up = http_header(r, "Upgrade"), *key = http_header(r, "Sec-WebSocket-Key"), *ver = http_header(r, "Sec-WebSocket-Version");
	const char *proto = http_header(r, "Sec-WebSocket-Protocol"), *beta = http_header(r, "OpenAI-Beta");
	const char *model = http_query(r, "model"), *intent = http_query(r, "intent");
	struct rt_session *c;
	char accept[32];

	if (!up || strcasecmp(up, "websocket") || !key || !ver || strcmp(ver, "13") || websocket_accept(key, accept)) {
		http_answer_header(r, "Upgrade", "websocket");
		http_error(r, 426, "upgrade_required", NULL, "this address speaks WebSocket, version 13");
		return;
	}
	if (model && strcmp(model, ((struct service *)service)->model_id)) {
		http_error(r, 404, "model_not_found", "model", "the model \"%.100s\" is not served here; this is \"%s\"", model, ((struct service *)service)->model_id);
		return;
	}
	if (sessions() >= MAX_SESSIONS) {
		http_answer_header(r, "Retry-After", "5");
		http_error(r, 503, "busy", NULL, "%d realtime sessions are open, which is the limit", MAX_SESSIONS);
		return;
	}
	c = rt_session_new(service, http_who(r), (beta && strstr(beta, "realtime=v1")) || (proto && strstr(proto, "openai-beta.realtime-v1")));
	if (!c) {
		http_error(r, 500, NULL, NULL, "out of memory");
		return;
	}
	/* Who wants transcripts is not answered. */
	if (intent && !strcmp(intent, "transcription"))
		c->create_response = c->interrupt = false;
	/* Browsers cannot set headers: they bring the key as a protocol, and want one of them back. */
	if (proto && strstr(proto, "realtime"))
		http_answer_header(r, "Sec-WebSocket-Protocol", "realtime");
	http_upgrade(r, accept, serve, drop, c);
}
