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
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#include "grammar/schema.h"
#include "server/base64.h"
#include "server/run.h"
#include "server/service.h"
#include "server/speech.h"
#include "server/websocket.h"
#include "voice/chunker.h"
#include "voice/resample.h"
#include "voice/vad.h"

#define RATE         24000
#define MAX_MESSAGE  (24u << 20)      /* 15 MiB of audio in base64, and its JSON */
#define MAX_BUFFER   (RATE * 2 * 120) /* of input that was never committed */
#define MAX_ITEMS    2048
#define MAX_SESSIONS 32
#define WAIT_MS      30000
#define HISTORY      (STT_RATE * 2)

struct item {
	char id[40];
	char *role;                /* "user", "assistant", "system", "tool" */
	char *text;
	char *call_id, *name, *arguments;  /* of a function call or its output */
	double audio_ms;           /* of an assistant's item: sound that was made for it */
};

struct session {
	struct service *s;
	struct websocket *ws;
	int fd, who;
	pthread_mutex_t lock;      /* items, counters, response */
	char id[40];
	unsigned int next;
	bool beta;                 /* the older event names */
	/* settings */
	json_t *conf;              /* as last said to the client */
	json_t *tools;
	char *instructions;
	double temperature;
	uint32_t max_tokens;
	bool server_vad, create_response, interrupt, audio_out;
	double silence_ms, threshold;
	/* conversation */
	struct item *items;
	size_t n_items, cap_items;
	/* input */
	struct resample *down;     /* 24 to 16 kHz */
	struct vad *vad;
	int16_t ring[HISTORY];
	int64_t pushed, sent;      /* 16 kHz samples */
	int16_t *buffer;           /* manual mode: what was appended since the last commit */
	size_t n_buffer, cap_buffer;
	struct hearing *hearing;
	char turn_item[40];
	/* response */
	pthread_t thread;
	bool joinable;
	atomic_bool running, cancel;
	char response_id[40];
	bool shutting;
};

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct session *all[MAX_SESSIONS];

/* -- out ---------------------------------------------------------------------------- */

static void make_id(struct session *c, const char *prefix, char to[40])
{
	static atomic_uint n;

	snprintf(to, 40, "%s_%08x%06x", prefix, (unsigned int)time(NULL), atomic_fetch_add(&n, 1) & 0xffffff);
}

/* Steals @o. */
static void send_event(struct session *c, const char *type, json_t *o)
{
	char id[40], *t;

	if (!o)
		return;
	make_id(c, "event", id);
	json_object_set_new(o, "type", json_string(type));
	json_object_set_new(o, "event_id", json_string(id));
	t = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	if (t)
		websocket_send(c->ws, t, strlen(t));
	free(t);
}

static void send_error(struct session *c, const json_t *event, const char *code, const char *param, const char *text)
{
	send_event(c, "error", json_pack("{s:{s:s,s:s,s:s,s:s?,s:O?}}", "error", "type", "invalid_request_error", "code", code,
					 "message", text, "param", param, "event_id", json_object_get(event, "event_id")));
}

/* GA names; the older ones for a client that asked with the beta header. */
static const char *name_of(const struct session *c, const char *ga)
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

static json_t *item_json(const struct item *i)
{
	if (i->name)
		return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "id", i->id, "object", "realtime.item", "type", "function_call", "status", "completed",
				 "call_id", i->call_id ? i->call_id : "", "name", i->name, "arguments", i->arguments ? i->arguments : "{}");
	if (!strcmp(i->role, "tool"))
		return json_pack("{s:s,s:s,s:s,s:s,s:s}", "id", i->id, "object", "realtime.item", "type", "function_call_output",
				 "call_id", i->call_id ? i->call_id : "", "output", i->text ? i->text : "");
	return json_pack("{s:s,s:s,s:s,s:s,s:s,s:[{s:s,s:s}]}", "id", i->id, "object", "realtime.item", "type", "message", "status", "completed",
			 "role", i->role, "content", "type", !strcmp(i->role, "assistant") ? "output_text" : "input_text", "text", i->text ? i->text : "");
}

static void item_done(struct item *i)
{
	free(i->role);
	free(i->text);
	free(i->call_id);
	free(i->name);
	free(i->arguments);
	memset(i, 0, sizeof(*i));
}

/* Adds (lock held); NULL when the conversation is full or memory ran out. */
static struct item *item_add(struct session *c, const char *id, const char *role, const char *text)
{
	struct item *i;

	if (c->n_items == MAX_ITEMS)
		return NULL;
	if (c->n_items == c->cap_items) {
		size_t cap = c->cap_items * 2 + 16;
		struct item *p = realloc(c->items, cap * sizeof(*p));

		if (!p)
			return NULL;
		c->items = p;
		c->cap_items = cap;
	}
	i = &c->items[c->n_items];
	memset(i, 0, sizeof(*i));
	if (id && *id)
		snprintf(i->id, sizeof(i->id), "%s", id);
	else
		make_id(c, "item", i->id);
	i->role = strdup(role);
	i->text = text ? strdup(text) : NULL;
	if (!i->role || (text && !i->text)) {
		item_done(i);
		return NULL;
	}
	c->n_items++;
	return i;
}

static struct item *item_find(struct session *c, const char *id)
{
	for (size_t i = 0; id && i < c->n_items; i++)
		if (!strcmp(c->items[i].id, id))
			return &c->items[i];
	return NULL;
}

/* -- a response (its own thread) ------------------------------------------------------ */

struct answer {
	struct session *c;
	char item[40];
	struct chunker *chunker;
	struct resample *up;
	char *text;
	size_t n_text;
	bool text_open;
	double audio_ms;
	unsigned int output;       /* index of the item in the response */
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
		send_event(a->c, name_of(a->c, "response.output_audio.delta"), p);
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

static int on_phrase(void *arg, const struct chunk *k)
{
	struct answer *a = arg;

	return speech_say(a->c->s->speech, k->spoken, 1.0, WAIT_MS, on_pcm, a, NULL);
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void open_text(struct answer *a)
{
	struct session *c = a->c;

	if (a->text_open)
		return;
	a->text_open = true;
	send_event(c, "response.output_item.added", json_pack("{s:s,s:i,s:{s:s,s:s,s:s,s:s,s:s,s:[]}}", "response_id", c->response_id, "output_index", (int)a->output,
		   "item", "id", a->item, "object", "realtime.item", "type", "message", "status", "in_progress", "role", "assistant", "content"));
	send_event(c, name_of(c, "conversation.item.added"), json_pack("{s:{s:s,s:s,s:s,s:s,s:[]}}", "item", "id", a->item, "type", "message", "status", "in_progress",
		   "role", "assistant", "content"));
	{
		json_t *p = place(a);

		json_object_set_new(p, "part", json_pack("{s:s,s:s}", "type", c->audio_out ? "audio" : "text", c->audio_out ? "transcript" : "text", ""));
		send_event(c, "response.content_part.added", p);
	}
}

static void take_text(struct answer *a, const char *s, size_t n)
{
	struct session *c = a->c;
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
	send_event(c, name_of(c, c->audio_out ? "response.output_audio_transcript.delta" : "response.output_text.delta"), o);
	if (c->audio_out && chunker_push(a->chunker, s, n, now_ns()))
		chunker_reset(a->chunker);
}

static void close_text(struct answer *a, bool whole)
{
	struct session *c = a->c;
	struct item *i;
	json_t *o;

	if (!a->text_open)
		return;
	if (c->audio_out) {
		if (whole && !atomic_load(&c->cancel))
			chunker_finish(a->chunker);
		else
			chunker_reset(a->chunker);
		say_audio(a, NULL, 0);
		send_event(c, name_of(c, "response.output_audio.done"), place(a));
	}
	o = place(a);
	json_object_set_new(o, c->audio_out ? "transcript" : "text", json_stringn(a->text ? a->text : "", a->n_text));
	send_event(c, name_of(c, c->audio_out ? "response.output_audio_transcript.done" : "response.output_text.done"), o);
	pthread_mutex_lock(&c->lock);
	i = item_add(c, a->item, "assistant", a->text ? a->text : "");
	if (i) {
		i->audio_ms = a->audio_ms;
		o = json_pack("{s:s,s:i,s:o}", "response_id", c->response_id, "output_index", (int)a->output, "item", item_json(i));
	} else {
		o = NULL;
	}
	pthread_mutex_unlock(&c->lock);
	send_event(c, "response.content_part.done", place(a));
	send_event(c, "response.output_item.done", o);
	a->text_open = false;
	a->output++;
}

static void take_call(struct answer *a, const struct run_event *e)
{
	struct session *c = a->c;
	char id[40], call[40];
	struct item *i;
	json_t *item = NULL;

	close_text(a, true);
	make_id(c, "item", id);
	make_id(c, "call", call);
	pthread_mutex_lock(&c->lock);
	i = item_add(c, id, "assistant", NULL);
	if (i) {
		i->call_id = strdup(call);
		i->name = strdup(e->text);
		i->arguments = strdup(e->arguments);
		item = item_json(i);
	}
	pthread_mutex_unlock(&c->lock);
	send_event(c, "response.output_item.added", json_pack("{s:s,s:i,s:O?}", "response_id", c->response_id, "output_index", (int)a->output, "item", item));
	send_event(c, name_of(c, "conversation.item.added"), json_pack("{s:O?}", "item", item));
	send_event(c, "response.function_call_arguments.delta", json_pack("{s:s,s:s,s:i,s:s,s:s}", "response_id", c->response_id, "item_id", id,
		   "output_index", (int)a->output, "call_id", call, "delta", e->arguments));
	send_event(c, "response.function_call_arguments.done", json_pack("{s:s,s:s,s:i,s:s,s:s,s:s}", "response_id", c->response_id, "item_id", id,
		   "output_index", (int)a->output, "call_id", call, "name", e->text, "arguments", e->arguments));
	send_event(c, "response.output_item.done", json_pack("{s:s,s:i,s:o?}", "response_id", c->response_id, "output_index", (int)a->output, "item", item));
	a->output++;
}

/* The conversation as the model's prompt; lock held. */
static int encode(struct session *c, struct tok_ids *ids, struct hearth_err *err)
{
	struct chat_msg *m = calloc(c->n_items + 1, sizeof(*m));
	struct chat_call *calls = calloc(c->n_items + 1, sizeof(*calls));
	char *tools = json_array_size(c->tools) ? json_dumps(c->tools, JSON_COMPACT) : NULL;
	struct chat_opts o = { .tools = tools };
	size_t n = 0;
	int rc;

	if (!m || !calls) {
		free(m);
		free(calls);
		free(tools);
		return err_set(err, -ENOMEM, "out of memory");
	}
	if (c->instructions)
		m[n++] = (struct chat_msg){ .role = CHAT_SYSTEM, .content = c->instructions };
	for (size_t i = 0; i < c->n_items; i++) {
		const struct item *it = &c->items[i];

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
	return atomic_load(&((struct session *)arg)->cancel);
}

static int generate(struct answer *a, struct hearth_err *err, struct gen_result *ret)
{
	struct session *c = a->c;
	struct tok_ids ids = { 0 };
	struct grammar *g = NULL;
	struct run_opts o;
	struct run *run = NULL;
	uint32_t ctx = engine_the_plan(c->s->engine)->ctx;
	bool done = false;
	int rc;

	pthread_mutex_lock(&c->lock);
	rc = encode(c, &ids, err);
	if (!rc && json_array_size(c->tools))
		rc = grammar_from_tools(c->tools, NULL, true, true, &g, err);
	pthread_mutex_unlock(&c->lock);
	if (!rc && ids.n >= ctx)
		rc = err_set(err, -E2BIG, "the conversation is %zu tokens; the context is %u", ids.n, ctx);
	if (!rc) {
		o = (struct run_opts){ .service = c->s, .tokens = ids.id, .n_tokens = ids.n, .max_tokens = ctx - (uint32_t)ids.n, .prio = GEN_VOICE,
				       .who = c->who, .mode = g ? RUN_LAZY : RUN_FREE, .grammar = g, .wait_ms = WAIT_MS, .gone = cancelled, .gone_arg = c };
		if (c->max_tokens && o.max_tokens > c->max_tokens)
			o.max_tokens = c->max_tokens;
		sampler_defaults(&o.sample);
		o.sample.temp = (float)c->temperature;
		rc = run_start(&o, &run, err);
	}
	while (!rc && !done) {
		struct run_event *e = run_next(run, 50);

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
		run_event_free(e);
	}
	if (!rc)
		*ret = *run_result(run);
	run_free(run);
	grammar_unref(g);
	tok_ids_free(&ids);
	return rc;
}

static void *respond(void *arg)
{
	struct session *c = arg;
	struct answer a = { .c = c };
	struct gen_result g = { 0 };
	struct hearth_err err = { 0 };
	const char *status = "completed", *reason = NULL;
	int rc = 0;

	make_id(c, "item", a.item);
	send_event(c, "response.created", json_pack("{s:{s:s,s:s,s:s,s:[]}}", "response", "id", c->response_id, "object", "realtime.response", "status", "in_progress", "output"));
	if (c->audio_out)
		rc = chunker_new(NULL, on_phrase, &a, &a.chunker) || resample_new(speech_rate(c->s->speech), RATE, &a.up, &err) ? -ENOMEM : 0;
	if (!rc)
		rc = generate(&a, &err, &g);
	close_text(&a, !rc && g.finish == GEN_STOP);
	if (atomic_load(&c->cancel)) {
		status = "cancelled";
		reason = "client_cancelled";
	} else if (rc || g.finish == GEN_ERROR) {
		status = "failed";
		reason = rc ? err.text : g.err.text;
	} else if (g.finish != GEN_STOP) {
		status = "incomplete";
		reason = "max_output_tokens";
	}
	chunker_free(a.chunker);
	resample_free(a.up);
	free(a.text);
	/* Before the client hears of the end: it may ask for the next answer at once. */
	atomic_store(&c->running, false);
	send_event(c, "response.done", json_pack("{s:{s:s,s:s,s:s,s:o,s:[],s:{s:i,s:i,s:i,s:{s:i}}}}", "response", "id", c->response_id, "object", "realtime.response",
		   "status", status, "status_details", reason ? json_pack("{s:s,s:s}", "type", status, "reason", reason) : json_null(), "output",
		   "usage", "total_tokens", (int)(g.n_prompt + g.n_out), "input_tokens", (int)g.n_prompt, "output_tokens", (int)g.n_out,
		   "input_token_details", "cached_tokens", (int)g.n_cached));
	return NULL;
}

static void end_response(struct session *c, bool cancel)
{
	if (cancel)
		atomic_store(&c->cancel, true);
	if (c->joinable)
		pthread_join(c->thread, NULL);
	c->joinable = false;
}

static void begin_response(struct session *c, const json_t *event)
{
	if (atomic_load(&c->running)) {
		send_error(c, event, "conversation_already_has_active_response", NULL, "an answer is being given already; cancel it first");
		return;
	}
	end_response(c, false);
	if (!c->s->chat) {
		send_error(c, event, "unsupported_model", NULL, c->s->chat_why.text);
		return;
	}
	make_id(c, "resp", c->response_id);
	atomic_store(&c->cancel, false);
	atomic_store(&c->running, true);
	if (pthread_create(&c->thread, NULL, respond, c)) {
		atomic_store(&c->running, false);
		send_error(c, event, "server_error", NULL, "no thread for the answer");
		return;
	}
	c->joinable = true;
}

/* -- input audio ------------------------------------------------------------------------ */

static void add_user_turn(struct session *c, const char *item, const char *text)
{
	struct item *i;
	json_t *j = NULL;

	pthread_mutex_lock(&c->lock);
	i = item_add(c, item, "user", text);
	if (i)
		j = item_json(i);
	pthread_mutex_unlock(&c->lock);
	send_event(c, name_of(c, "conversation.item.added"), json_pack("{s:o?}", "item", j));
	send_event(c, "conversation.item.input_audio_transcription.completed", json_pack("{s:s,s:i,s:s}", "item_id", item, "content_index", 0, "transcript", text));
}

/* The utterance under way is over: its text becomes a turn and, where asked, an answer. */
static void finish_turn(struct session *c, bool respond_now)
{
	struct stt_result r;
	struct hearth_err err = { 0 };
	int rc = hearing_end(c->hearing, &r, &err);

	c->hearing = NULL;
	send_event(c, "input_audio_buffer.committed", json_pack("{s:s,s:n}", "item_id", c->turn_item, "previous_item_id"));
	if (rc || r.verdict != STT_COMMAND) {
		send_event(c, "conversation.item.input_audio_transcription.failed", json_pack("{s:s,s:i,s:{s:s,s:s,s:s}}", "item_id", c->turn_item, "content_index", 0,
			   "error", "type", "transcription_error", "code", rc ? "failed" : "not_understood", "message", rc ? err.text : stt_verdict_name(r.verdict)));
		return;
	}
	add_user_turn(c, c->turn_item, r.text);
	if (respond_now)
		begin_response(c, NULL);
}

static void send_until(struct session *c, int64_t end)
{
	while (c->hearing && c->sent < end) {
		int64_t k = HISTORY - c->sent % HISTORY;

		if (k > end - c->sent)
			k = end - c->sent;
		hearing_push(c->hearing, &c->ring[c->sent % HISTORY], (size_t)k);
		c->sent += k;
	}
}

static void on_vad(void *ctx, const struct vad_event *e)
{
	struct session *c = ctx;
	struct hearth_err err = { 0 };
	int64_t at = e->at < 0 ? 0 : e->at;

	switch (e->kind) {
	case VAD_START:
		make_id(c, "item", c->turn_item);
		send_event(c, "input_audio_buffer.speech_started", json_pack("{s:I,s:s}", "audio_start_ms", (json_int_t)(at * 1000 / STT_RATE), "item_id", c->turn_item));
		if (c->interrupt && atomic_load(&c->running))
			atomic_store(&c->cancel, true);
		c->sent = at < c->pushed - HISTORY ? c->pushed - HISTORY : at;
		if (hearing_begin(c->s->speech, WAIT_MS, NULL, NULL, &c->hearing, &err))
			send_error(c, NULL, "busy", NULL, err.text);
		break;
	case VAD_END:
		send_event(c, "input_audio_buffer.speech_stopped", json_pack("{s:I,s:s}", "audio_end_ms", (json_int_t)(at * 1000 / STT_RATE), "item_id", c->turn_item));
		if (c->hearing)
			finish_turn(c, c->create_response);
		break;
	case VAD_BLIP:
		hearing_drop(c->hearing);
		c->hearing = NULL;
		send_event(c, "input_audio_buffer.speech_stopped", json_pack("{s:I,s:s}", "audio_end_ms", (json_int_t)(at * 1000 / STT_RATE), "item_id", c->turn_item));
		break;
	default:
		break;
	}
}

static int keep(struct session *c, const int16_t *pcm, size_t n)
{
	if ((c->n_buffer + n) * 2 > MAX_BUFFER)
		return -EFBIG;
	if (c->n_buffer + n > c->cap_buffer) {
		size_t cap = (c->n_buffer + n) * 2;
		int16_t *p = realloc(c->buffer, cap * 2);

		if (!p)
			return -ENOMEM;
		c->buffer = p;
		c->cap_buffer = cap;
	}
	memcpy(c->buffer + c->n_buffer, pcm, n * 2);
	c->n_buffer += n;
	return 0;
}

static void take_audio(struct session *c, const json_t *event)
{
	const json_t *j = json_object_get(event, "audio");
	float in[1024], out[1024];
	int16_t pcm[1024];
	uint8_t *raw;
	size_t n, at = 0, taken, given;
	int rc = 0;

	raw = json_is_string(j) ? base64_decode(json_string_value(j), json_string_length(j), &n, &rc) : NULL;
	if (!raw || n % 2) {
		free(raw);
		send_error(c, event, "invalid_audio", "audio", "\"audio\" must be base64 of 16-bit samples");
		return;
	}
	if (!speech_hears(c->s->speech)) {
		free(raw);
		send_error(c, event, "not_enabled", NULL, "speech to text is not switched on here");
		return;
	}
	n /= 2;
	while (at < n && !rc) {
		size_t k = n - at < 1024 ? n - at : 1024;

		for (size_t i = 0; i < k; i++)
			in[i] = (float)(int16_t)(raw[(at + i) * 2] | raw[(at + i) * 2 + 1] << 8) / 32768.0f;
		rc = resample_push(c->down, in, k, out, 1024, &taken, &given);
		at += taken;
		resample_to_s16(out, given, pcm);
		if (!c->server_vad) {
			rc = rc ? rc : keep(c, pcm, given);
			continue;
		}
		for (size_t i = 0; i < given; i++)
			c->ring[(c->pushed + (int64_t)i) % HISTORY] = pcm[i];
		c->pushed += (int64_t)given;
		vad_push(c->vad, pcm, given, on_vad, c);
		send_until(c, c->pushed);
	}
	free(raw);
	if (rc)
		send_error(c, event, "buffer_full", "audio", rc == -EFBIG ? "more than two minutes were appended without a commit" : "the audio cannot be taken");
}

static void commit(struct session *c, const json_t *event)
{
	struct hearth_err err = { 0 };

	if (c->server_vad && c->hearing) {
		finish_turn(c, false);
		return;
	}
	if (c->n_buffer < STT_RATE / 10) {
		send_error(c, event, "input_audio_buffer_commit_empty", NULL, "there is less than 100 ms of audio to commit");
		return;
	}
	make_id(c, "item", c->turn_item);
	if (hearing_begin(c->s->speech, WAIT_MS, NULL, NULL, &c->hearing, &err)) {
		send_error(c, event, "busy", NULL, err.text);
		return;
	}
	hearing_push(c->hearing, c->buffer, c->n_buffer);
	c->n_buffer = 0;
	finish_turn(c, false);
}

/* -- what a client asks --------------------------------------------------------------- */

static void set_text(char **to, const json_t *j)
{
	if (!json_is_string(j))
		return;
	free(*to);
	*to = strdup(json_string_value(j));
}

static json_t *session_json(struct session *c)
{
	return json_pack("{s:s,s:s,s:s,s:s,s:[s],s:s,s:O,s:o,s:f}", "id", c->id, "object", "realtime.session", "type", "realtime", "model", c->s->model_id,
			 "output_modalities", c->audio_out ? "audio" : "text", "instructions", c->instructions ? c->instructions : "", "tools", c->tools,
			 "turn_detection", c->server_vad ? json_pack("{s:s,s:f,s:f,s:b,s:b}", "type", "server_vad", "threshold", c->threshold,
			 "silence_duration_ms", c->silence_ms, "create_response", c->create_response, "interrupt_response", c->interrupt) : json_null(),
			 "temperature", c->temperature);
}

static int open_vad(struct session *c, struct hearth_err *err)
{
	struct vad_options o;

	vad_close(c->vad);
	c->vad = NULL;
	vad_defaults(&o);
	o.kind = VAD_ENERGY;
	o.end_wait_ms = (int)c->silence_ms;
	c->pushed = c->sent = 0;
	return vad_open(&o, NULL, &c->vad, err);
}

/* Refuses the whole update or takes the whole: nothing is half done. */
static void update(struct session *c, const json_t *event)
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
		send_error(c, event, "invalid_value", "session", "\"session\" must be an object");
		return;
	}
	if (json_is_array(mods)) {
		audio = false;
		json_array_foreach((json_t *)mods, i, t)
			audio |= json_is_string(t) && !strcmp(json_string_value(t), "audio");
		if (audio && !speech_speaks(c->s->speech)) {
			send_error(c, event, "not_enabled", "session.output_modalities", "text to speech is not switched on here; use [\"text\"]");
			return;
		}
	}
	word = json_string_value(json_object_get(td, "type"));
	if (word && strcmp(word, "server_vad") && strcmp(word, "semantic_vad")) {
		send_error(c, event, "invalid_value", "session.turn_detection", "\"turn_detection\" must be server_vad, semantic_vad or null");
		return;
	}
	v = json_object_get(s, "temperature");
	if (v && (!json_is_number(v) || json_number_value(v) < 0 || json_number_value(v) > 2)) {
		send_error(c, event, "invalid_value", "session.temperature", "\"temperature\" must be a number from 0 to 2");
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
			send_error(c, event, "unsupported_schema", "session.tools", err.text);
			json_decref(list);
			return;
		}
		grammar_unref(g);
	}
	pthread_mutex_lock(&c->lock);
	set_text(&c->instructions, json_object_get(s, "instructions"));
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
	if (td && c->server_vad && open_vad(c, &err))
		send_error(c, event, "server_error", NULL, err.text);
	send_event(c, "session.updated", json_pack("{s:o}", "session", session_json(c)));
}

static void create_item(struct session *c, const json_t *event)
{
	const json_t *it = json_object_get(event, "item"), *content = json_object_get(it, "content"), *p;
	const char *type = json_string_value(json_object_get(it, "type")), *role = json_string_value(json_object_get(it, "role"));
	const char *text = NULL;
	struct item *i = NULL;
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
		send_error(c, event, "invalid_value", "item", "the item must be a message with text or a function_call_output");
		return;
	}
	pthread_mutex_lock(&c->lock);
	i = item_add(c, json_string_value(json_object_get(it, "id")), role, text);
	if (i && !strcmp(role, "tool"))
		set_text(&i->call_id, json_object_get(it, "call_id"));
	if (i)
		j = item_json(i);
	pthread_mutex_unlock(&c->lock);
	if (!j) {
		send_error(c, event, "conversation_full", "item", "the conversation is full");
		return;
	}
	send_event(c, name_of(c, "conversation.item.added"), json_pack("{s:n,s:O}", "previous_item_id", "item", j));
	if (!c->beta)
		send_event(c, "conversation.item.done", json_pack("{s:n,s:O}", "previous_item_id", "item", j));
	json_decref(j);
}

/* Only what was heard stays: the text is cut to the same share as the sound. */
static void truncate_item(struct session *c, const json_t *event)
{
	const char *id = json_string_value(json_object_get(event, "item_id"));
	const json_t *ms = json_object_get(event, "audio_end_ms");
	struct item *i;
	size_t n;

	pthread_mutex_lock(&c->lock);
	i = item_find(c, id);
	if (!i || !json_is_number(ms) || json_number_value(ms) < 0 || json_number_value(ms) > i->audio_ms + 1) {
		pthread_mutex_unlock(&c->lock);
		send_error(c, event, "invalid_value", i ? "audio_end_ms" : "item_id", i ? "there is no so much audio in that item" : "there is no such item");
		return;
	}
	n = i->audio_ms > 0 && i->text ? (size_t)((double)strlen(i->text) * json_number_value(ms) / i->audio_ms) : 0;
	while (i->text && n && n < strlen(i->text) && ((unsigned char)i->text[n] & 0xc0) == 0x80)
		n--;
	if (i->text)
		i->text[n] = 0;
	i->audio_ms = json_number_value(ms);
	pthread_mutex_unlock(&c->lock);
	send_event(c, "conversation.item.truncated", json_pack("{s:s,s:i,s:O}", "item_id", id, "content_index", 0, "audio_end_ms", ms));
}

static void delete_item(struct session *c, const json_t *event, bool retrieve)
{
	const char *id = json_string_value(json_object_get(event, "item_id"));
	json_t *j = NULL;
	struct item *i;

	pthread_mutex_lock(&c->lock);
	i = item_find(c, id);
	if (i && retrieve) {
		j = item_json(i);
	} else if (i) {
		item_done(i);
		memmove(i, i + 1, (size_t)(c->items + c->n_items - i - 1) * sizeof(*i));
		c->n_items--;
	}
	pthread_mutex_unlock(&c->lock);
	if (!i)
		send_error(c, event, "invalid_value", "item_id", "there is no such item");
	else if (retrieve)
		send_event(c, "conversation.item.retrieved", json_pack("{s:o}", "item", j));
	else
		send_event(c, "conversation.item.deleted", json_pack("{s:s}", "item_id", id));
}

static void take_event(struct session *c, const char *text, size_t n)
{
	json_error_t je;
	json_t *e = json_loadb(text, n, 0, &je);
	const char *type = json_string_value(json_object_get(e, "type"));

	if (!json_is_object(e) || !type) {
		send_error(c, NULL, "invalid_json", NULL, "the message is not a JSON object with a type");
	} else if (!strcmp(type, "session.update") || !strcmp(type, "transcription_session.update")) {
		update(c, e);
	} else if (!strcmp(type, "input_audio_buffer.append")) {
		take_audio(c, e);
	} else if (!strcmp(type, "input_audio_buffer.commit")) {
		commit(c, e);
	} else if (!strcmp(type, "input_audio_buffer.clear")) {
		c->n_buffer = 0;
		hearing_drop(c->hearing);
		c->hearing = NULL;
		if (c->vad)
			vad_reset(c->vad);
		c->pushed = c->sent = 0;
		send_event(c, "input_audio_buffer.cleared", json_object());
	} else if (!strcmp(type, "conversation.item.create")) {
		create_item(c, e);
	} else if (!strcmp(type, "conversation.item.retrieve") || !strcmp(type, "conversation.item.delete")) {
		delete_item(c, e, type[18] == 'r');
	} else if (!strcmp(type, "conversation.item.truncate")) {
		truncate_item(c, e);
	} else if (!strcmp(type, "response.create")) {
		begin_response(c, e);
	} else if (!strcmp(type, "response.cancel")) {
		if (atomic_load(&c->running))
			atomic_store(&c->cancel, true);
		else
			send_error(c, e, "response_cancel_not_active", NULL, "no answer is being given");
	} else if (strcmp(type, "output_audio_buffer.clear")) {
		send_error(c, e, "unknown_event", "type", "this event is not known");
	}
	json_decref(e);
}

/* -- life ---------------------------------------------------------------------------- */

static void session_free(struct session *c)
{
	for (size_t i = 0; i < c->n_items; i++)
		item_done(&c->items[i]);
	free(c->items);
	free(c->instructions);
	free(c->buffer);
	json_decref(c->tools);
	resample_free(c->down);
	vad_close(c->vad);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static void serve(void *arg, int fd, const char *extra, size_t n_extra)
{
	struct session *c = arg;
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
		if (resample_new(RATE, STT_RATE, &c->down, &err) || open_vad(c, &err))
			send_error(c, NULL, "server_error", NULL, err.text);
		send_event(c, "session.created", json_pack("{s:o}", "session", session_json(c)));
		while (!c->shutting && (rc = websocket_read(c->ws, 500, &text, &n)) >= 0) {
			if (!rc)
				continue;
			take_event(c, text, n);
			free(text);
		}
		end_response(c, true);
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
	struct session *c;
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
	c->beta = (beta && strstr(beta, "realtime=v1")) || (proto && strstr(proto, "openai-beta.realtime-v1"));
	c->tools = json_array();
	c->temperature = 0.7;
	c->server_vad = c->create_response = c->interrupt = true;
	c->audio_out = speech_speaks(c->s->speech);
	c->silence_ms = 500;
	c->threshold = 0.5;
	pthread_mutex_init(&c->lock, NULL);
	make_id(c, "sess", c->id);
	/* Browsers cannot set headers: they bring the key as a protocol, and want one of them back. */
	if (proto && strstr(proto, "realtime"))
		http_answer_header(r, "Sec-WebSocket-Protocol", "realtime");
	http_upgrade(r, accept, serve, c);
}
