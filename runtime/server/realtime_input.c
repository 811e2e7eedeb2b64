// SPDX-License-Identifier: MIT
/* Audio into a realtime session: 24 kHz in, turns out, by server VAD or by commit. */
#include "server/realtime_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/base64.h"
#include "server/gate.h"
#include "server/service.h"
#include "server/speech.h"
#include "voice/resample.h"
#include "voice/vad.h"

static void add_user_turn(struct rt_session *c, const char *item, const char *text)
{
	struct rt_item *i;
	json_t *j = NULL;

	pthread_mutex_lock(&c->lock);
	i = rt_item_add(c, item, NULL, "user", text);
	if (i) {
		i->spoken = true;
		j = rt_item_json(i);
	}
	pthread_mutex_unlock(&c->lock);
	if (!j) {
		rt_send_error(c, NULL, "conversation_full", NULL, "the conversation is full: what was said is not in it");
		return;
	}
	rt_send_item(c, j, RT_ADDED | RT_DONE);
	json_decref(j);
	rt_send_event(c, "conversation.item.input_audio_transcription.completed", json_pack("{s:s,s:i,s:s}", "item_id", item, "content_index", 0, "transcript", text));
}

/* Each turn that was begun ends with a transcript or with this: clients wait for one of them. */
static void transcription_failed(struct rt_session *c, const char *code, const char *why)
{
	rt_send_event(c, "conversation.item.input_audio_transcription.failed", json_pack("{s:s,s:i,s:{s:s,s:s,s:s}}", "item_id", c->turn_item, "content_index", 0,
		   "error", "type", "transcription_error", "code", code, "message", why));
}

/* What was said is known: its text becomes a turn and, where asked, an answer. @text NULL: it is none, for @why. */
static void finish_turn(struct rt_session *c, const char *text, const char *code, const char *why, bool respond_now)
{
	rt_send_event(c, "input_audio_buffer.committed", json_pack("{s:s,s:o}", "item_id", c->turn_item, "previous_item_id", rt_previous(c, c->turn_item)));
	if (!text) {
		transcription_failed(c, code, why);
		return;
	}
	add_user_turn(c, c->turn_item, text);
	if (respond_now)
		rt_begin_response(c, NULL);
}

/* On the recogniser's thread, while the gate hears: turn_item stands still. */
static void on_partial(void *arg, const char *text)
{
	struct rt_session *c = arg;
	size_t same = strlen(c->partial);

	/* A delta cannot be taken back; "completed" carries the whole text, of more than one utterance too. */
	if (c->said || strncmp(text, c->partial, same) || !text[same])
		return;
	rt_send_event(c, "conversation.item.input_audio_transcription.delta", json_pack("{s:s,s:i,s:s}", "item_id", c->turn_item, "content_index", 0, "delta", text + same));
	snprintf(c->partial, sizeof(c->partial), "%s", text);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void rt_look_after_hearing(struct rt_session *c)
{
	if (!gate_hears(c->gate) || now_ms() - c->audio_at < STALL_MS)
		return;
	/* The recogniser is one for all: who sends nothing lets go of it. */
	gate_reset(c->gate);
	rt_send_error(c, NULL, "audio_timeout", NULL, "no audio came for 10 s in the middle of a turn; the turn is dropped");
	transcription_failed(c, "audio_timeout", "no audio came for 10 s");
}

static void on_started(void *arg, int64_t at)
{
	struct rt_session *c = arg;

	if (!c->server_vad)
		return;
	rt_make_id(c, "item", c->turn_item);
	rt_send_event(c, "input_audio_buffer.speech_started", json_pack("{s:I,s:s}", "audio_start_ms", (json_int_t)(at * 1000 / STT_RATE), "item_id", c->turn_item));
	if (c->interrupt && atomic_load(&c->running)) {
		atomic_store(&c->interrupted, true);
		atomic_store(&c->cancel, true);
	}
	c->partial[0] = 0;
}

static void on_stopped(void *arg, int64_t at, enum gate_stop how)
{
	struct rt_session *c = arg;

	if (!c->server_vad)
		return;
	rt_send_event(c, "input_audio_buffer.speech_stopped", json_pack("{s:I,s:s}", "audio_end_ms", (json_int_t)(at * 1000 / STT_RATE), "item_id", c->turn_item));
	if (how == GATE_MISSED)
		transcription_failed(c, "busy", "the recogniser was busy with others while this was said");
	else if (how == GATE_BLIP)
		transcription_failed(c, "too_short", "that was too short to be speech");
}

/* What a committed buffer holds is one turn, be it one utterance or more. */
static void gather(struct rt_session *c, const struct stt_result *r)
{
	size_t len = c->said ? strlen(c->said) : 0;
	char *all;

	if (r->verdict == STT_FAILED && !c->trouble.code)
		c->trouble = r->err;
	if (c->verdict == STT_NOTHING)
		c->verdict = r->verdict;
	if (r->verdict != STT_COMMAND)
		return;
	all = realloc(c->said, len + strlen(r->text) + 2);
	if (!all) {
		err_set(&c->trouble, -ENOMEM, "out of memory");
		return;
	}
	sprintf(all + len, "%s%s", len ? " " : "", r->text);
	c->said = all;
}

static void on_heard(void *arg, int64_t from, int64_t end, const struct stt_result *r)
{
	struct rt_session *c = arg;

	(void)from;
	(void)end;
	if (!c->server_vad)
		gather(c, r);
	else if (r->verdict == STT_FAILED)
		finish_turn(c, NULL, "failed", r->err.text, false);
	else
		finish_turn(c, r->verdict == STT_COMMAND ? r->text : NULL, "not_understood", stt_verdict_name(r->verdict), c->create_response && !c->committed);
}

static int keep(struct rt_session *c, const int16_t *pcm, size_t n)
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

void rt_take_audio(struct rt_session *c, const json_t *event)
{
	const json_t *j = json_object_get(event, "audio");
	float in[1024], out[1024];
	int16_t pcm[1024];
	uint8_t *raw;
	size_t n, at = 0, taken = 0, given = 0;
	struct hearth_err err = { 0 };
	int rc = 0;

	raw = json_is_string(j) ? base64_decode(json_string_value(j), json_string_length(j), &n, &rc) : NULL;
	if (!raw || n % 2) {
		free(raw);
		rt_send_error(c, event, "invalid_audio", "audio", "\"audio\" must be base64 of 16-bit samples");
		return;
	}
	if (!speech_hears(c->s->speech)) {
		free(raw);
		rt_send_error(c, event, "not_enabled", NULL, "speech to text is not switched on here");
		return;
	}
	/* The detector's file may have gone, or memory was short when the session began: tried again, and said again. */
	if ((!c->gate && rt_open_gate(c, &err)) || (!c->down && resample_new(RATE, STT_RATE, &c->down, &err))) {
		free(raw);
		rt_send_error(c, event, "server_error", NULL, err.text);
		return;
	}
	n /= 2;
	c->audio_at = now_ms();
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
		/* An utterance that is missed is answered at its end; the stream goes on. */
		if (gate_push(c->gate, pcm, given, &err))
			rt_send_error(c, NULL, "busy", NULL, err.text);
	}
	free(raw);
	/* Again: what waited for the recogniser meanwhile is no silence of the client's. */
	c->audio_at = now_ms();
	if (rc)
		rt_send_error(c, event, "buffer_full", "audio", rc == -EFBIG ? "more than two minutes were appended without a commit" : "the audio cannot be taken");
}

void rt_commit(struct rt_session *c, const json_t *event)
{
	struct hearth_err err = { 0 };
	int rc;

	if (c->server_vad && gate_hears(c->gate)) {
		c->committed = true;
		gate_take(c->gate);
		c->committed = false;
		return;
	}
	if (c->n_buffer < STT_RATE / 10) {
		rt_send_error(c, event, "input_audio_buffer_commit_empty", NULL, "there is less than 100 ms of audio to commit");
		return;
	}
	rt_make_id(c, "item", c->turn_item);
	c->partial[0] = 0;
	c->verdict = STT_NOTHING;
	c->trouble = (struct hearth_err){ 0 };
	gate_reset(c->gate);
	rc = gate_push(c->gate, c->buffer, c->n_buffer, &err);
	if (!rc)
		rc = gate_finish(c->gate, &err);
	if (rc) {
		/* The buffer is kept: it can be committed again. */
		gate_reset(c->gate);
		rt_send_error(c, event, "busy", NULL, err.text);
	} else {
		c->n_buffer = 0;
		if (c->trouble.code)
			finish_turn(c, NULL, "failed", c->trouble.text, false);
		else
			finish_turn(c, c->said, "not_understood", stt_verdict_name(c->verdict), false);
	}
	free(c->said);
	c->said = NULL;
}

int rt_open_gate(struct rt_session *c, struct hearth_err *err)
{
	const struct gate_events ev = { .started = on_started, .stopped = on_stopped, .partial = on_partial, .heard = on_heard, .arg = c };
	struct vad_options o;

	gate_close(c->gate);
	c->gate = NULL;
	speech_vad_options(c->s->speech, &o);
	o.end_wait_ms = GATE_PATIENT_MS;
	if (c->server_vad) {
		o.end_wait_ms = (int)c->silence_ms;
		o.pad_ms = (int)c->padding_ms;
		o.on = (float)c->threshold;
		o.off = (float)c->threshold * 0.7f;
	}
	return gate_open(c->s->speech, &o, WAIT_MS, &ev, &c->gate, err);
}
