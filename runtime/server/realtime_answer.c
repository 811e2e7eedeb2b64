// SPDX-License-Identifier: MIT
/*
 * One response of a realtime session: generated, spoken, on a thread of its
 * own. Its item is in the conversation from its first word on, with a mark
 * after each phrase of how much text and sound there is: a client that is
 * interrupted truncates it while it is still made.
 */
#include "server/realtime_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mono.h"
#include "server/chat_request.h"
#include "server/base64.h"
#include "server/run.h"
#include "server/service.h"
#include "server/speech.h"
#include "server/websocket.h"
#include "voice/chunker.h"
#include "voice/resample.h"

struct answer {
	struct rt_session *c;
	char item[40];
	struct chunker *chunker;
	struct resample *up;
	char *text;
	size_t n_text;
	bool text_open;
	double audio_ms;
	unsigned int output;       /* index of the item in the response */
	json_t *done;              /* the items, for response.done */
};

static json_t *place(const struct answer *a)
{
	return json_pack("{s:s,s:s,s:i,s:i}", "response_id", a->c->response_id, "item_id", a->item, "output_index", (int)a->output, "content_index", 0);
}

static void say_audio(struct answer *a, const float *in, size_t n)
{
	float out[4096];
	int16_t pcm[4096];
	size_t taken, given;

	do {
		char *b64;
		json_t *p;

		if (resample_push(a->up, in, n, out, 4096, &taken, &given))
			return;
		if (in) {
			in += taken;
			n -= taken;
		}
		if (!given)
			continue;
		resample_to_s16(out, given, pcm);
		a->audio_ms += (double)given * 1000 / RATE;
		b64 = base64_encode(pcm, given * 2);
		p = place(a);
		json_object_set_new(p, "delta", json_string(b64 ? b64 : ""));
		rt_send_event(a->c, rt_name_of(a->c, "response.output_audio.delta"), p);
		free(b64);
	} while (n || given);
}

static int on_pcm(void *arg, const int16_t *pcm, size_t n)
{
	struct answer *a = arg;
	float f[1024];

	while (n && !atomic_load(&a->c->cancel)) {
		size_t k = n < 1024 ? n : 1024;

		for (size_t i = 0; i < k; i++)
			f[i] = (float)pcm[i] / 32768.0f;
		say_audio(a, f, k);
		pcm += k;
		n -= k;
	}
	return atomic_load(&a->c->cancel);
}

/* The item as it stands: its text, its sound, and a mark behind the phrase (@bytes of the text). */
static void update_item(struct answer *a, size_t bytes)
{
	struct rt_session *c = a->c;
	struct rt_item *i;
	struct rt_mark *m;
	char *text;

	pthread_mutex_lock(&c->lock);
	i = rt_item_find(c, a->item);
	/* Deleted, or cut to what was heard: nothing is added any more. */
	if (i && !i->cut) {
		text = strdup(a->text ? a->text : "");
		if (text) {
			free(i->text);
			i->text = text;
		}
		i->audio_ms = a->audio_ms;
		m = bytes ? realloc(i->marks, (i->n_marks + 1) * sizeof(*m)) : NULL;
		if (m) {
			i->marks = m;
			m[i->n_marks++] = (struct rt_mark){ bytes < a->n_text ? bytes : a->n_text, a->audio_ms };
		}
	}
	pthread_mutex_unlock(&c->lock);
}

static int on_phrase(void *arg, const struct chunk *k)
{
	struct answer *a = arg;
	/* A slow client is waited for here, before the voice is taken. */
	int rc = atomic_load(&a->c->cancel) ? -ECANCELED : websocket_flush(a->c->ws);

	if (rc)
		atomic_store(&a->c->cancel, true);
	else
		rc = speech_say(a->c->s->speech, NULL, k->spoken, 1.0, WAIT_MS, on_pcm, a, NULL);
	update_item(a, k->src_end);
	return rc;
}

static json_t *part(const struct answer *a, const char *text)
{
	bool audio = a->c->ask.audio;

	return json_pack("{s:s,s:s}", "type", audio ? "audio" : "text", audio ? "transcript" : "text", text);
}

static void open_text(struct answer *a)
{
	struct rt_session *c = a->c;
	struct rt_item *i;
	json_t *p, *item;

	if (a->text_open)
		return;
	a->text_open = true;
	pthread_mutex_lock(&c->lock);
	i = rt_item_add(c, a->item, NULL, "assistant", "");
	if (i)
		i->spoken = c->ask.audio;
	pthread_mutex_unlock(&c->lock);
	if (!i)
		rt_send_error(c, NULL, "conversation_full", NULL, "the conversation is full: this answer will not be in it");
	item = json_pack("{s:s,s:s,s:s,s:s,s:s,s:[]}", "id", a->item, "object", "realtime.item", "type", "message", "status", "in_progress", "role", "assistant", "content");
	rt_send_event(c, "response.output_item.added", json_pack("{s:s,s:i,s:O}", "response_id", c->response_id, "output_index", (int)a->output, "item", item));
	rt_send_item(c, item, RT_ADDED);
	json_decref(item);
	p = place(a);
	json_object_set_new(p, "part", part(a, ""));
	rt_send_event(c, "response.content_part.added", p);
}

static void take_text(struct answer *a, const char *s, size_t n)
{
	struct rt_session *c = a->c;
	char *p = realloc(a->text, a->n_text + n + 1);
	json_t *o;

	if (!p)
		return;
	memcpy(p + a->n_text, s, n);
	a->text = p;
	a->n_text += n;
	p[a->n_text] = 0;
	open_text(a);
	o = place(a);
	json_object_set_new(o, "delta", json_stringn(s, n));
	rt_send_event(c, rt_name_of(c, c->ask.audio ? "response.output_audio_transcript.delta" : "response.output_text.delta"), o);
	if (c->ask.audio && chunker_push(a->chunker, s, n, mono_ns()))
		chunker_reset(a->chunker);
}

static void close_text(struct answer *a, bool whole)
{
	struct rt_session *c = a->c;
	struct rt_item *i;
	json_t *o, *item = NULL;

	if (!a->text_open)
		return;
	if (c->ask.audio) {
		if (whole && !atomic_load(&c->cancel))
			chunker_finish(a->chunker);
		else
			chunker_reset(a->chunker);
		say_audio(a, NULL, 0);
		rt_send_event(c, rt_name_of(c, "response.output_audio.done"), place(a));
	}
	update_item(a, 0);
	o = place(a);
	json_object_set_new(o, c->ask.audio ? "transcript" : "text", json_stringn(a->text ? a->text : "", a->n_text));
	rt_send_event(c, rt_name_of(c, c->ask.audio ? "response.output_audio_transcript.done" : "response.output_text.done"), o);
	o = place(a);
	json_object_set_new(o, "part", part(a, a->text ? a->text : ""));
	rt_send_event(c, "response.content_part.done", o);
	pthread_mutex_lock(&c->lock);
	i = rt_item_find(c, a->item);
	if (i)
		item = rt_item_json(i);
	pthread_mutex_unlock(&c->lock);
	if (item && !whole)
		json_object_set_new(item, "status", json_string("incomplete"));
	if (item) {
		rt_send_event(c, "response.output_item.done", json_pack("{s:s,s:i,s:O}", "response_id", c->response_id, "output_index", (int)a->output, "item", item));
		rt_send_item(c, item, RT_DONE);
		json_array_append_new(a->done, item);
	}
	a->text_open = false;
	a->output++;
	/* What follows a call is an item of its own. */
	rt_make_id(c, "item", a->item);
	a->n_text = 0;
	a->audio_ms = 0;
	if (a->text)
		a->text[0] = 0;
}

static void take_call(struct answer *a, const struct run_event *e)
{
	struct rt_session *c = a->c;
	char id[40], call[40];
	struct rt_item *i;
	json_t *item = NULL;

	close_text(a, true);
	rt_make_id(c, "item", id);
	rt_make_id(c, "call", call);
	pthread_mutex_lock(&c->lock);
	i = rt_item_add(c, id, NULL, "assistant", NULL);
	if (i) {
		i->call_id = strdup(call);
		i->name = strdup(e->text);
		i->arguments = strdup(e->arguments);
		item = rt_item_json(i);
	}
	pthread_mutex_unlock(&c->lock);
	if (!item) {
		rt_send_error(c, NULL, "conversation_full", NULL, "the conversation is full: a call is not in it");
		return;
	}
	rt_send_event(c, "response.output_item.added", json_pack("{s:s,s:i,s:O}", "response_id", c->response_id, "output_index", (int)a->output, "item", item));
	rt_send_item(c, item, RT_ADDED);
	rt_send_event(c, "response.function_call_arguments.delta", json_pack("{s:s,s:s,s:i,s:s,s:s}", "response_id", c->response_id, "item_id", id,
		   "output_index", (int)a->output, "call_id", call, "delta", e->arguments));
	rt_send_event(c, "response.function_call_arguments.done", json_pack("{s:s,s:s,s:i,s:s,s:s,s:s}", "response_id", c->response_id, "item_id", id,
		   "output_index", (int)a->output, "call_id", call, "name", e->text, "arguments", e->arguments));
	rt_send_event(c, "response.output_item.done", json_pack("{s:s,s:i,s:O}", "response_id", c->response_id, "output_index", (int)a->output, "item", item));
	rt_send_item(c, item, RT_DONE);
	json_array_append_new(a->done, item);
	a->output++;
}

/* The conversation as the model's prompt; lock held. */
static int encode(struct rt_session *c, struct tok_ids *ids, struct hearth_err *err)
{
	struct chat_msg *m = calloc(c->n_items + 1, sizeof(*m));
	struct chat_call *calls = calloc(c->n_items + 1, sizeof(*calls));
	char *tools = json_array_size(c->ask.tools) ? json_dumps(c->ask.tools, JSON_COMPACT) : NULL;
	struct chat_opts o = { .tools = tools };
	size_t n = 0;
	int rc;

	if (!m || !calls) {
		free(m);
		free(calls);
		free(tools);
		return err_set(err, -ENOMEM, "out of memory");
	}
	if (c->ask.instructions)
		m[n++] = (struct chat_msg){ .role = CHAT_SYSTEM, .content = c->ask.instructions };
	for (size_t i = 0; i < c->n_items; i++) {
		const struct rt_item *it = &c->items[i];

		if (it->name) {
			calls[i] = (struct chat_call){ it->name, it->arguments };
			m[n++] = (struct chat_msg){ .role = CHAT_ASSISTANT, .content = "", .calls = &calls[i], .n_calls = 1 };
		} else {
			m[n++] = (struct chat_msg){ .role = !strcmp(it->role, "system") ? CHAT_SYSTEM : !strcmp(it->role, "assistant") ? CHAT_ASSISTANT :
						    !strcmp(it->role, "tool") ? CHAT_TOOL : CHAT_USER, .content = it->text ? it->text : "" };
		}
	}
	rc = chat_encode(c->s->chat, c->s->tok, m, n, &o, ids, err);
	free(m);
	free(calls);
	free(tools);
	return rc;
}

static bool cancelled(void *arg)
{
	return atomic_load(&((struct rt_session *)arg)->cancel);
}

static int grammar_of(struct rt_session *c, struct grammar **ret, enum run_mode *ret_mode, struct hearth_err *err)
{
	const struct rt_ask *k = &c->ask;
	bool forced = k->choice == RT_REQUIRED;

	*ret_mode = RUN_FREE;
	if (!json_array_size(k->tools) || k->choice == RT_NONE)
		return 0;
	*ret_mode = forced ? RUN_WHOLE : RUN_LAZY;
	return chat_tools_grammar(c->s, k->tools, k->tool, !k->tool, !forced, ret, err);
}

static int generate(struct answer *a, struct hearth_err *err, struct gen_result *ret)
{
	struct rt_session *c = a->c;
	struct tok_ids ids = { 0 };
	struct grammar *g = NULL;
	struct run_opts o;
	struct run *run = NULL;
	uint32_t most = service_most_tokens(c->s, c->who), cap = keyring_limits(c->s->keys, c->who).max_tokens;
	enum run_mode mode = RUN_FREE;
	bool done = false;
	int rc;

	pthread_mutex_lock(&c->lock);
	rc = encode(c, &ids, err);
	pthread_mutex_unlock(&c->lock);
	if (!rc)
		rc = grammar_of(c, &g, &mode, err);
	if (!rc && ids.n >= most)
		rc = err_set(err, -E2BIG, "the conversation is %zu tokens; the context, or the budget of cache, holds %u", ids.n, most);
	if (!rc) {
		o = (struct run_opts){ .service = c->s, .tokens = ids.id, .n_tokens = ids.n, .max_tokens = most - (uint32_t)ids.n,
				       .prio = (enum gen_prio)keyring_limits(c->s->keys, c->who).prio, .who = c->who, .mode = mode, .grammar = g,
				       .no_calls = c->ask.choice == RT_NONE, .wait_ms = WAIT_MS, .gone = cancelled, .gone_arg = c };
		if (c->ask.max_tokens && o.max_tokens > c->ask.max_tokens)
			o.max_tokens = c->ask.max_tokens;
		if (cap && o.max_tokens > cap)
			o.max_tokens = cap;
		sampler_defaults(&o.sample);
		o.sample.temp = (float)c->ask.temperature;
		rc = run_start(&o, &run, err);
	}
	while (!rc && !done) {
		const struct run_event *e = run_next(run, 50);

		if (atomic_load(&c->cancel))
			run_cancel(run);
		if (!e)
			continue;
		if (e->kind == RUN_CONTENT && !atomic_load(&c->cancel))
			take_text(a, e->text, e->len);
		else if (e->kind == RUN_CALL && !atomic_load(&c->cancel))
			take_call(a, e);
		else if (e->kind == RUN_DONE)
			done = true;
	}
	if (!rc)
		*ret = *run_result(run);
	run_free(run);
	grammar_unref(g);
	tok_ids_free(&ids);
	return rc;
}

static json_t *response_json(struct rt_session *c, const char *status, json_t *output)
{
	json_t *o = json_pack("{s:s,s:s,s:s,s:[s],s:o}", "id", c->response_id, "object", "realtime.response", "status", status,
			      "output_modalities", c->ask.audio ? "audio" : "text", "output", output);

	json_object_set(o, "metadata", c->ask.metadata ? c->ask.metadata : json_null());
	return o;
}

static json_t *status_details(const char *status, const char *reason, const char *message)
{
	if (!reason)
		return json_null();
	if (!strcmp(status, "failed"))
		return json_pack("{s:s,s:{s:s,s:s,s:s?}}", "type", status, "error", "type", "server_error", "code", reason, "message", message);
	return json_pack("{s:s,s:s}", "type", status, "reason", reason);
}

static void *respond(void *arg)
{
	struct rt_session *c = arg;
	struct answer a = { .c = c, .done = json_array() };
	struct gen_result g = { 0 };
	struct hearth_err err = { 0 };
	const char *status = "completed", *reason = NULL;
	json_t *o;
	int rc = 0;

	rt_make_id(c, "item", a.item);
	rt_send_event(c, "response.created", json_pack("{s:o}", "response", response_json(c, "in_progress", json_array())));
	if (c->ask.audio && (chunker_new(NULL, on_phrase, &a, &a.chunker) || resample_new(speech_rate(c->s->speech), RATE, &a.up, &err)))
		rc = err_set(&err, -ENOMEM, "out of memory");
	if (!rc)
		rc = generate(&a, &err, &g);
	close_text(&a, !rc && (g.finish == GEN_STOP || g.finish == GEN_LENGTH));
	if (atomic_load(&c->cancel)) {
		status = "cancelled";
		reason = atomic_load(&c->interrupted) ? "turn_detected" : "client_cancelled";
	} else if (rc == -ESHUTDOWN || g.err.code == -ESHUTDOWN) {
		status = "failed";
		reason = "stopping";
	} else if (rc || g.finish == GEN_ERROR) {
		status = "failed";
		reason = rc == -EAGAIN || rc == -EDQUOT || rc == -ETIMEDOUT ? "rate_limit_exceeded" : "generation_failed";
	} else if (g.finish != GEN_STOP) {
		status = "incomplete";
		reason = "max_output_tokens";
	}
	chunker_free(a.chunker);
	resample_free(a.up);
	free(a.text);
	o = response_json(c, status, a.done);
	json_object_set_new(o, "status_details", status_details(status, reason, rc ? err.text : g.err.text));
	json_object_set_new(o, "usage", json_pack("{s:i,s:i,s:i,s:{s:i,s:i,s:i},s:{s:i,s:i}}", "total_tokens", (int)(g.n_prompt + g.n_out),
						  "input_tokens", (int)g.n_prompt, "output_tokens", (int)g.n_out,
						  "input_token_details", "cached_tokens", (int)g.n_cached, "text_tokens", (int)g.n_prompt, "audio_tokens", 0,
						  "output_token_details", "text_tokens", (int)g.n_out, "audio_tokens", 0));
	/* Before the client hears of the end: it may ask for the next answer at once. */
	atomic_store(&c->running, false);
	rt_send_event(c, "response.done", json_pack("{s:o}", "response", o));
	return NULL;
}

void rt_end_response(struct rt_session *c, bool cancel)
{
	if (cancel)
		atomic_store(&c->cancel, true);
	if (c->joinable)
		pthread_join(c->thread, NULL);
	c->joinable = false;
}

void rt_begin_response(struct rt_session *c, const json_t *event)
{
	struct rt_ask ask;

	/* One that is being cancelled is waited for; one that goes on is in the way. */
	if (atomic_load(&c->running) && !atomic_load(&c->cancel)) {
		rt_send_error(c, event, "conversation_already_has_active_response", NULL, "an answer is being given already; cancel it first");
		return;
	}
	rt_end_response(c, false);
	if (!c->s->chat) {
		rt_send_error(c, event, "unsupported_model", NULL, c->s->chat_why.text);
		return;
	}
	if (!rt_read_ask(c, event, &ask)) {
		rt_ask_done(&ask);
		return;
	}
	rt_ask_done(&c->ask);
	c->ask = ask;
	rt_make_id(c, "resp", c->response_id);
	atomic_store(&c->cancel, false);
	atomic_store(&c->interrupted, false);
	atomic_store(&c->running, true);
	if (pthread_create(&c->thread, NULL, respond, c)) {
		atomic_store(&c->running, false);
		rt_send_error(c, event, "server_error", NULL, "no thread for the answer");
		return;
	}
	c->joinable = true;
}
