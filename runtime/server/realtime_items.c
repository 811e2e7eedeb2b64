// SPDX-License-Identifier: MIT
/* What a realtime session sends, and the conversation it keeps. */
#include "server/realtime_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/websocket.h"

/* -- out ---------------------------------------------------------------------------- */

void rt_make_id(struct rt_session *c, const char *prefix, char to[40])
{
	static atomic_uint n;

	snprintf(to, 40, "%s_%08x%06x", prefix, (unsigned int)time(NULL), atomic_fetch_add(&n, 1) & 0xffffff);
}

/* Steals @o. */
void rt_send_event(struct rt_session *c, const char *type, json_t *o)
{
	char id[40], *t;

	if (!o)
		return;
	rt_make_id(c, "event", id);
	json_object_set_new(o, "type", json_string(type));
	json_object_set_new(o, "event_id", json_string(id));
	t = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	if (t)
		websocket_send(c->ws, t, strlen(t));
	free(t);
}

void rt_send_error(struct rt_session *c, const json_t *event, const char *code, const char *param, const char *text)
{
	rt_send_event(c, "error", json_pack("{s:{s:s,s:s,s:s,s:s?,s:O?}}", "error", "type", "invalid_request_error", "code", code,
					 "message", text, "param", param, "event_id", json_object_get(event, "event_id")));
}

/* GA names; the older ones for a client that asked with the beta header. */
const char *rt_name_of(const struct rt_session *c, const char *ga)
{
	static const char *const names[][2] = {
		{ "response.output_text.delta", "response.text.delta" }, { "response.output_text.done", "response.text.done" },
		{ "response.output_audio.delta", "response.audio.delta" }, { "response.output_audio.done", "response.audio.done" },
		{ "response.output_audio_transcript.delta", "response.audio_transcript.delta" },
		{ "response.output_audio_transcript.done", "response.audio_transcript.done" },
		{ "conversation.item.added", "conversation.item.created" },
	};

	for (size_t i = 0; c->beta && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i][0], ga))
			return names[i][1];
	return ga;
}

/* -- the conversation --------------------------------------------------------------- */

json_t *rt_item_json(const struct rt_item *i)
{
	bool own = !strcmp(i->role, "assistant");
	const char *type = own ? i->spoken ? "output_audio" : "output_text" : i->spoken ? "input_audio" : "input_text";

	if (i->name)
		return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "id", i->id, "object", "realtime.item", "type", "function_call", "status", "completed",
				 "call_id", i->call_id ? i->call_id : "", "name", i->name, "arguments", i->arguments ? i->arguments : "{}");
	if (!strcmp(i->role, "tool"))
		return json_pack("{s:s,s:s,s:s,s:s,s:s}", "id", i->id, "object", "realtime.item", "type", "function_call_output",
				 "call_id", i->call_id ? i->call_id : "", "output", i->text ? i->text : "");
	return json_pack("{s:s,s:s,s:s,s:s,s:s,s:[{s:s,s:s}]}", "id", i->id, "object", "realtime.item", "type", "message", "status", i->cut ? "incomplete" : "completed",
			 "role", i->role, "content", "type", type, i->spoken ? "transcript" : "text", i->text ? i->text : "");
}

void rt_item_done(struct rt_item *i)
{
	free(i->role);
	free(i->text);
	free(i->call_id);
	free(i->name);
	free(i->arguments);
	free(i->marks);
	memset(i, 0, sizeof(*i));
}

static size_t weight(const struct rt_item *i)
{
	return (i->text ? strlen(i->text) : 0) + (i->call_id ? strlen(i->call_id) : 0) + (i->name ? strlen(i->name) : 0) +
	       (i->arguments ? strlen(i->arguments) : 0);
}

bool rt_room(const struct rt_session *c, size_t more)
{
	for (size_t i = 0; i < c->n_items; i++)
		more += weight(&c->items[i]);
	return more <= MAX_TEXTS;
}

/* Adds (lock held); NULL when the conversation is full or memory ran out. */
struct rt_item *rt_item_add(struct rt_session *c, const char *id, const char *after, const char *role, const char *text)
{
	struct rt_item *i, made = { 0 };
	size_t at = c->n_items;

	if (c->n_items == MAX_ITEMS)
		return NULL;
	if (c->n_items == c->cap_items) {
		size_t cap = c->cap_items * 2 + 16;
		struct rt_item *p = realloc(c->items, cap * sizeof(*p));

		if (!p)
			return NULL;
		c->items = p;
		c->cap_items = cap;
	}
	if (id && *id)
		snprintf(made.id, sizeof(made.id), "%s", id);
	else
		rt_make_id(c, "item", made.id);
	made.role = strdup(role);
	made.text = text ? strdup(text) : NULL;
	if (!made.role || (text && !made.text)) {
		rt_item_done(&made);
		return NULL;
	}
	i = rt_item_find(c, after);
	if (i)
		at = (size_t)(i - c->items) + 1;
	memmove(&c->items[at + 1], &c->items[at], (c->n_items - at) * sizeof(*i));
	c->items[at] = made;
	c->n_items++;
	return &c->items[at];
}

struct rt_item *rt_item_find(struct rt_session *c, const char *id)
{
	for (size_t i = 0; id && i < c->n_items; i++)
		if (!strcmp(c->items[i].id, id))
			return &c->items[i];
	return NULL;
}

json_t *rt_previous(struct rt_session *c, const char *id)
{
	const struct rt_item *i;
	json_t *j = NULL;
	size_t n;

	pthread_mutex_lock(&c->lock);
	i = rt_item_find(c, id);
	n = i ? (size_t)(i - c->items) : c->n_items;
	if (n)
		j = json_string(c->items[n - 1].id);
	pthread_mutex_unlock(&c->lock);
	return j ? j : json_null();
}

void rt_send_item(struct rt_session *c, json_t *item, int what)
{
	const char *id = json_string_value(json_object_get(item, "id"));

	if (what & RT_ADDED)
		rt_send_event(c, rt_name_of(c, "conversation.item.added"), json_pack("{s:o,s:O}", "previous_item_id", rt_previous(c, id), "item", item));
	/* Clients of the older form know no such event. */
	if (what & RT_DONE && !c->beta)
		rt_send_event(c, "conversation.item.done", json_pack("{s:o,s:O}", "previous_item_id", rt_previous(c, id), "item", item));
}

void rt_set_text(char **to, const json_t *j)
{
	if (!json_is_string(j))
		return;
	free(*to);
	*to = strdup(json_string_value(j));
}
