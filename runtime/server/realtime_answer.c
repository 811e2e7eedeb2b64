// SPDX-License-Identifier: MIT
/* One response of a realtime session: generated, spoken, on a thread of its own. */
#include "server/realtime_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "grammar/schema.h"
#include "server/base64.h"
#include "server/run.h"
#include "server/service.h"
#include "server/speech.h"
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
	struct rt_session *c = a->c;

	if (a->text_open)
		return;
	a->text_open = true;
	rt_send_event(c, "response.output_item.added", json_pack("{s:s,s:i,s:{s:s,s:s,s:s,s:s,s:s,s:[]}}", "response_id", c->response_id, "output_index", (int)a->output,
		   "item", "id", a->item, "object", "realtime.item", "type", "message", "status", "in_progress", "role", "assistant", "content"));
	rt_send_event(c, rt_name_of(c, "conversation.item.added"), json_pack("{s:{s:s,s:s,s:s,s:s,s:[]}}", "item", "id", a->item, "type", "message", "status", "in_progress",
		   "role", "assistant", "content"));
	{
		json_t *p = place(a);

		json_object_set_new(p, "part", json_pack("{s:s,s:s}", "type", c->audio_out ? "audio" : "text", c->audio_out ? "transcript" : "text", ""));
		rt_send_event(c, "response.content_part.added", p);
	}
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
	rt_send_event(c, rt_name_of(c, c->audio_out ? "response.output_audio_transcript.delta" : "response.output_text.delta"), o);
	if (c->audio_out && chunker_push(a->chunker, s, n, now_ns()))
		chunker_reset(a->chunker);
}

static void close_text(struct answer *a, bool whole)
{
	struct rt_session *c = a->c;
	struct rt_item *i;
	json_t *o;

	if (!a->text_open)
		return;
	if (c->audio_out) {
		if (whole && !atomic_load(&c->cancel))
			chunker_finish(a->chunker);
		else
			chunker_reset(a->chunker);
		say_audio(a, NULL, 0);
		rt_send_event(c, rt_name_of(c, "response.output_audio.done"), place(a));
	}
	o = place(a);
	json_object_set_new(o, c->audio_out ? "transcript" : "text", json_stringn(a->text ? a->text : "", a->n_text));
	rt_send_event(c, rt_name_of(c, c->audio_out ? "response.output_audio_transcript.done" : "response.output_text.done"), o);
	pthread_mutex_lock(&c->lock);
	i = rt_item_add(c, a->item, "assistant", a->text ? a->text : "");
	if (i) {
		i->audio_ms = a->audio_ms;
		o = json_pack("{s:s,s:i,s:o}", "response_id", c->response_id, "output_index", (int)a->output, "item", rt_item_json(i));
	} else {
		o = NULL;
	}
	pthread_mutex_unlock(&c->lock);
	rt_send_event(c, "response.content_part.done", place(a));
	rt_send_event(c, "response.output_item.done", o);
	a->text_open = false;
	a->output++;
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
	i = rt_item_add(c, id, "assistant", NULL);
	if (i) {
		i->call_id = strdup(call);
		i->name = strdup(e->text);
		i->arguments = strdup(e->arguments);
		item = rt_item_json(i);
	}
	pthread_mutex_unlock(&c->lock);
	rt_send_event(c, "response.output_item.added", json_pack("{s:s,s:i,s:O?}", "response_id", c->response_id, "output_index", (int)a->output, "item", item));
	rt_send_event(c, rt_name_of(c, "conversation.item.added"), json_pack("{s:O?}", "item", item));
	rt_send_event(c, "response.function_call_arguments.delta", json_pack("{s:s,s:s,s:i,s:s,s:s}", "response_id", c->response_id, "item_id", id,
		   "output_index", (int)a->output, "call_id", call, "delta", e->arguments));
	rt_send_event(c, "response.function_call_arguments.done", json_pack("{s:s,s:s,s:i,s:s,s:s,s:s}", "response_id", c->response_id, "item_id", id,
		   "output_index", (int)a->output, "call_id", call, "name", e->text, "arguments", e->arguments));
	rt_send_event(c, "response.output_item.done", json_pack("{s:s,s:i,s:o?}", "response_id", c->response_id, "output_index", (int)a->output, "item", item));
	a->output++;
}

/* The conversation as the model's prompt; lock held. */
static int encode(struct rt_session *c, struct tok_ids *ids, struct hearth_err *err)
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

static int generate(struct answer *a, struct hearth_err *err, struct gen_result *ret)
{
	struct rt_session *c = a->c;
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
	struct rt_session *c = arg;
	struct answer a = { .c = c };
	struct gen_result g = { 0 };
	struct hearth_err err = { 0 };
	const char *status = "completed", *reason = NULL;
	int rc = 0;

	rt_make_id(c, "item", a.item);
	rt_send_event(c, "response.created", json_pack("{s:{s:s,s:s,s:s,s:[]}}", "response", "id", c->response_id, "object", "realtime.response", "status", "in_progress", "output"));
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
	rt_send_event(c, "response.done", json_pack("{s:{s:s,s:s,s:s,s:o,s:[],s:{s:i,s:i,s:i,s:{s:i}}}}", "response", "id", c->response_id, "object", "realtime.response",
		   "status", status, "status_details", reason ? json_pack("{s:s,s:s}", "type", status, "reason", reason) : json_null(), "output",
		   "usage", "total_tokens", (int)(g.n_prompt + g.n_out), "input_tokens", (int)g.n_prompt, "output_tokens", (int)g.n_out,
		   "input_token_details", "cached_tokens", (int)g.n_cached));
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
	if (atomic_load(&c->running)) {
		rt_send_error(c, event, "conversation_already_has_active_response", NULL, "an answer is being given already; cancel it first");
		return;
	}
	rt_end_response(c, false);
	if (!c->s->chat) {
		rt_send_error(c, event, "unsupported_model", NULL, c->s->chat_why.text);
		return;
	}
	rt_make_id(c, "resp", c->response_id);
	atomic_store(&c->cancel, false);
	atomic_store(&c->running, true);
	if (pthread_create(&c->thread, NULL, respond, c)) {
		atomic_store(&c->running, false);
		rt_send_error(c, event, "server_error", NULL, "no thread for the answer");
		return;
	}
	c->joinable = true;
}
