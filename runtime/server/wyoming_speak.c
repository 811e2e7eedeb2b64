// SPDX-License-Identifier: MIT
/*
 * Text to speech, whole or streamed. A phrase is spoken as soon as it is one;
 * what a slow client has not taken is kept while the voice goes on to the next
 * client, and no new phrase is begun for it before it is taken.
 */
#include "server/wyoming_priv.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/mono.h"
#include "server/service.h"
#include "server/speech.h"
#include "voice/chunker.h"

static json_t *format(struct client *c)
{
	return json_pack("{s:i,s:i,s:i}", "rate", speech_rate(c->w->service->speech), "width", 2, "channels", 1);
}

/* On the voice's thread. */
static int on_pcm(void *arg, const int16_t *pcm, size_t n)
{
	struct client *c = arg;

	if (atomic_load(&c->w->stopping) || c->gone)
		return 1;
	if (!c->audio_open) {
		c->audio_open = true;
		if (say_soon(c, "audio-start", format(c), NULL, 0))
			return 1;
	}
	while (n) {
		size_t k = n < 1024 ? n : 1024;

		if (say_soon(c, "audio-chunk", format(c), pcm, k * 2))
			return 1;
		pcm += k;
		n -= k;
	}
	return 0;
}

static int on_phrase(void *arg, const struct chunk *k)
{
	struct client *c = arg;
	struct hearth_err err = { 0 };
	int rc = say_rest(c);

	if (!rc)
		rc = speech_say(c->w->service->speech, NULL, k->spoken, 1.0, WAIT_MS, on_pcm, c, &err);
	if (rc && !c->gone && atomic_load(&c->w->stopping))
		say_stopping(c);
	else if (rc && rc != -ECANCELED && !c->gone)
		say_error(c, "tts-failed", err.text);
	return rc;
}

static void close_audio(struct client *c)
{
	/* Home Assistant takes the format from the first audio-start: give one even for silence. */
	if (!c->audio_open)
		say_event(c, "audio-start", format(c), NULL, 0);
	say_event(c, "audio-stop", json_object(), NULL, 0);
	c->audio_open = false;
}

/* Whether a request of this kind can be spoken at all; the error is sent. */
static bool can_speak(struct client *c, const json_t *d)
{
	const json_t *voice = json_object_get(d, "voice");
	const char *name = json_string_value(json_object_get(voice, "name")), *as = json_string_value(json_object_get(d, "text_format"));

	c->wrong_voice = false;
	if (!speech_speaks(c->w->service->speech) || !(c->services & WYOMING_TTS)) {
		say_error(c, "no-tts", "text to speech is not served here");
		return false;
	}
	if (as && strcmp(as, "text")) {
		say_error(c, "unsupported-text-format", "only plain text is spoken");
		c->wrong_voice = true;
	} else if (name && *name && strcmp(name, c->w->cfg->voice)) {
		say_error(c, "unknown-voice", "there is no such voice; describe lists what there is");
		c->wrong_voice = true;
	}
	if (!c->chunker && chunker_new(NULL, on_phrase, c, &c->chunker)) {
		say_error(c, "out-of-memory", "out of memory");
		return false;
	}
	c->text_bytes = 0;
	return true;
}

static void push_text(struct client *c, const char *text)
{
	size_t n = strlen(text);

	if (c->wrong_voice)
		return;
	if (c->text_bytes + n > MAX_TEXT) {
		if (c->text_bytes <= MAX_TEXT)
			say_error(c, "too-long", "the text is over 64 KiB; the rest is not spoken");
		c->text_bytes = MAX_TEXT + 1;
		return;
	}
	c->text_bytes += n;
	if (chunker_push(c->chunker, text, n, mono_ns()))
		chunker_reset(c->chunker);
}

void synthesize(struct client *c, const json_t *d)
{
	const char *text = json_string_value(json_object_get(d, "text"));

	/* Inside a stream this is a copy for old servers: spoken, it would come twice. */
	if (c->streaming || !can_speak(c, d))
		return;
	push_text(c, text ? text : "");
	chunker_finish(c->chunker);
	close_audio(c);
}

void synthesize_start(struct client *c, const json_t *d)
{
	/* A stream that was left open belongs to a client that forgot it. */
	if (c->chunker)
		chunker_reset(c->chunker);
	c->streaming = can_speak(c, d);
}

void synthesize_chunk(struct client *c, const char *text)
{
	if (c->streaming && text)
		push_text(c, text);
}

void synthesize_stop(struct client *c)
{
	if (c->streaming) {
		chunker_finish(c->chunker);
		close_audio(c);
	}
	c->streaming = false;
	/* Always: Home Assistant ends on nothing else. */
	say_event(c, "synthesize-stopped", json_object(), NULL, 0);
}

int speak_due(struct client *c)
{
	int64_t at = c->streaming ? chunker_deadline(c->chunker) : INT64_MAX, left;

	if (at == INT64_MAX)
		return -1;
	left = (at - mono_ns()) / 1000000 + 1;
	return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

void speak_tick(struct client *c)
{
	if (c->streaming && chunker_tick(c->chunker, mono_ns()))
		chunker_reset(c->chunker);
}
