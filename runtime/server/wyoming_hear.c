// SPDX-License-Identifier: MIT
/* Audio in: any PCM, to the gate before the recogniser as it comes. */
#include "server/wyoming_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/gate.h"
#include "server/service.h"
#include "server/speech.h"
#include "voice/resample.h"
#include "voice/vad.h"
#include "voice/wake.h"

void hearing_over(struct client *c)
{
	gate_close(c->gate);
	c->gate = NULL;
	free(c->said);
	c->said = NULL;
	resample_free(c->resample);
	c->resample = NULL;
	speech_wake_give(c->w->service->speech, c->wake);
	c->wake = NULL;
}

/* The phrase as clients name it: "okay_hearth". */
static void name_of_wake(struct client *c, char to[128])
{
	snprintf(to, 128, "%s", speech_wakes(c->w->service->speech));
	for (char *p = to; *p; p++)
		if (*p == ' ')
			*p = '_';
}

/* On the recogniser's thread, while the client's waits or pushes: it must not wait for a client. */
static void on_partial(void *arg, const char *text)
{
	struct client *c = arg;
	size_t same = strlen(c->partial);

	/* What was sent cannot be taken back: only a longer version of the same text goes out, and of the first utterance. */
	if (!c->stream_text || c->said || strncmp(text, c->partial, same) || !text[same])
		return;
	if (!c->text_open)
		say_soon(c, "transcript-start", json_pack("{s:s}", "language", "en"), NULL, 0);
	c->text_open = true;
	say_soon(c, "transcript-chunk", json_pack("{s:s}", "text", text + same), NULL, 0);
	snprintf(c->partial, sizeof(c->partial), "%s", text);
}

static void say_voice(struct client *c, const char *event, int64_t at)
{
	say_event(c, event, json_pack("{s:I}", "timestamp", (json_int_t)(at * 1000 / STT_RATE)), NULL, 0);
}

static void on_started(void *arg, int64_t at)
{
	say_voice(arg, "voice-started", at);
}

static void on_stopped(void *arg, int64_t at, enum gate_stop how)
{
	(void)how;
	say_voice(arg, "voice-stopped", at);
}

/* A stream may hold more than one utterance: its transcript is all that are commands. */
static void on_heard(void *arg, int64_t from, int64_t end, const struct stt_result *r)
{
	struct client *c = arg;
	size_t len = c->said ? strlen(c->said) : 0;
	char *all;

	(void)from;
	(void)end;
	if (r->verdict == STT_FAILED && !c->trouble.code)
		c->trouble = r->err;
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

static int get_int(const json_t *d, const char *key, int fallback)
{
	const json_t *j = json_object_get(d, key);

	return json_is_integer(j) && json_integer_value(j) > 0 && json_integer_value(j) < 1000000 ? (int)json_integer_value(j) : fallback;
}

/* An utterance that is not heard. Its audio-stop is still answered, for clients that wait for a transcript. */
static void refuse(struct client *c, const char *code, const char *text)
{
	hearing_over(c);
	c->failed = true;
	say_error(c, code, text);
}

void detect(struct client *c, const json_t *d)
{
	const json_t *names = json_object_get(d, "names"), *n;
	char name[128];
	bool mine;
	size_t i;

	hearing_over(c);
	c->detecting = false;
	if (!speech_wakes(c->w->service->speech) || !(c->services & WYOMING_WAKE)) {
		say_error(c, "no-wake", "no wake word is listened for here");
		return;
	}
	name_of_wake(c, name);
	mine = !json_array_size(names);
	json_array_foreach((json_t *)names, i, n)
		mine |= json_is_string(n) && (!strcmp(json_string_value(n), name) || !strcmp(json_string_value(n), speech_wakes(c->w->service->speech)));
	if (mine)
		c->detecting = true;
	else
		say_error(c, "unknown-wake-word", "that wake word is not known; describe lists what there is");
}

void audio_start(struct client *c, const json_t *d)
{
	struct speech *sp = c->w->service->speech;
	const struct gate_events ev = { .started = on_started, .stopped = on_stopped, .partial = on_partial, .heard = on_heard, .arg = c };
	struct hearth_err err = { 0 };
	struct vad_options o;

	hearing_over(c);
	c->failed = false;
	c->offset = (struct offset){ 0 };
	c->rate = get_int(d, "rate", 16000);
	c->width = get_int(d, "width", 2);
	c->channels = get_int(d, "channels", 1);
	c->heard = 0;
	c->partial[0] = 0;
	c->text_open = false;
	if (c->detecting) {
		c->woke = false;
		if (resample_new(c->rate, STT_RATE, &c->resample, &err) || speech_wake_take(sp, &c->wake, &err))
			refuse(c, "wake-busy", err.text);
		return;
	}
	if (!speech_hears(sp) || !(c->services & WYOMING_ASR)) {
		refuse(c, "no-asr", "speech to text is not served here");
		return;
	}
	if (c->width > 4 || c->channels > 16 || c->rate < 4000 || c->rate > 384000) {
		refuse(c, "unsupported-audio", "audio must be 4 to 384 kHz, 1 to 4 bytes a sample, at most 16 channels");
		return;
	}
	c->trouble = (struct hearth_err){ 0 };
	speech_vad_options(sp, &o);
	o.end_wait_ms = GATE_PATIENT_MS;
	if (resample_new(c->rate, STT_RATE, &c->resample, &err) || gate_open(sp, &o, WAIT_MS, &ev, &c->gate, &err))
		refuse(c, "asr-failed", err.text);
}

/* Little-endian PCM of any width to one float, channels averaged. */
static float sample_at(const uint8_t *p, int width)
{
	switch (width) {
	case 1: return (float)(p[0] - 128) / 128.0f;
	case 2: return (float)(int16_t)(p[0] | p[1] << 8) / 32768.0f;
	case 3: return (float)((int32_t)((uint32_t)p[0] << 8 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 24) >> 8) / 8388608.0f;
	default: return (float)(int32_t)((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24) / 2147483648.0f;
	}
}

static void woke(struct client *c)
{
	char name[128];

	name_of_wake(c, name);
	c->woke = true;
	say_event(c, "detection", json_pack("{s:s,s:I}", "name", name, "timestamp", (json_int_t)(c->heard * 1000 / c->rate)), NULL, 0);
}

static int push_float(struct client *c, const float *in, size_t n, struct hearth_err *err)
{
	float out[2048];
	int16_t pcm[2048];
	size_t taken, given;
	int rc;

	do {
		rc = resample_push(c->resample, in, n, out, 2048, &taken, &given);
		if (rc)
			return err_set(err, rc, "the resampler stopped");
		resample_to_s16(out, given, pcm);
		if (c->wake) {
			offset_remove(&c->offset, pcm, given, pcm);
			rc = given ? wake_push(c->wake, pcm, given) : 0;
			if (rc < 0)
				return err_set(err, rc, "the recogniser stopped");
			if (rc)
				woke(c);
		} else {
			rc = gate_push(c->gate, pcm, given, err);
			if (rc)
				return rc;
		}
		if (in) {
			in += taken;
			n -= taken;
		}
	} while (n || given);
	return 0;
}

void audio_chunk(struct client *c, const struct wyoming_event *e)
{
	struct hearth_err err = { 0 };
	size_t frame, n;
	float mono[1024];
	int rc;

	if (!c->gate && !c->wake)
		return;
	frame = (size_t)c->width * (size_t)c->channels;
	n = e->n_payload / frame;      /* an odd tail byte belongs to no sample */
	c->heard += (double)n;
	if (c->heard > (double)MAX_SECONDS * c->rate) {
		refuse(c, "too-long", "the utterance is over an hour long");
		return;
	}
	for (size_t i = 0; i < n;) {
		size_t k = n - i < 1024 ? n - i : 1024;

		for (size_t j = 0; j < k; j++) {
			const uint8_t *p = e->payload + (i + j) * frame;
			float sum = 0;

			for (int ch = 0; ch < c->channels; ch++)
				sum += sample_at(p + ch * c->width, c->width);
			mono[j] = sum / (float)c->channels;
		}
		rc = push_float(c, mono, k, &err);
		if (rc) {
			refuse(c, rc == -ETIMEDOUT ? "asr-busy" : "asr-failed", err.text);
			return;
		}
		i += k;
	}
}

static void say_transcript(struct client *c, const char *text)
{
	size_t same = strlen(c->partial);

	if (c->stream_text && !c->text_open)
		say_event(c, "transcript-start", json_pack("{s:s}", "language", "en"), NULL, 0);
	if (c->stream_text && !strncmp(text, c->partial, same) && text[same])
		say_event(c, "transcript-chunk", json_pack("{s:s}", "text", text + same), NULL, 0);
	/* The whole text, which also corrects what a partial got wrong. */
	say_event(c, "transcript", json_pack("{s:s,s:s}", "text", text, "language", "en"), NULL, 0);
	if (c->stream_text)
		say_event(c, "transcript-stop", json_object(), NULL, 0);
}

void audio_stop(struct client *c)
{
	struct hearth_err err = { 0 };
	int rc;

	if (c->detecting) {
		bool begun = c->wake || c->failed;

		if (c->wake)
			push_float(c, NULL, 0, NULL);
		hearing_over(c);
		c->failed = false;
		if (begun && !c->woke)
			say_event(c, "not-detected", json_object(), NULL, 0);
		return;
	}
	if (!c->gate) {
		if (c->failed)
			say_transcript(c, "");
		c->failed = false;
		return;
	}
	rc = push_float(c, NULL, 0, &err);
	if (!rc)
		rc = gate_finish(c->gate, &err);
	if (!rc && c->trouble.code)
		rc = err_set(&err, c->trouble.code, "%s", c->trouble.text);
	if (rc)
		say_error(c, rc == -ETIMEDOUT ? "asr-busy" : "asr-failed", err.text);
	/* Nothing heard, or no command: an empty transcript, which clients know. */
	say_transcript(c, !rc && c->said ? c->said : "");
	hearing_over(c);
}
