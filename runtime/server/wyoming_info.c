// SPDX-License-Identifier: MIT
/*
 * The answer to describe. Every list is there and none is null, and each
 * program and model has its attribution: readers of the older kind raise on
 * what is missing.
 */
#include "server/wyoming_priv.h"

#include <stdio.h>
#include <string.h>

#include "base/version.h"

#include "server/service.h"
#include "server/speech.h"

/* Of a program or a model: whose it is, and their own home. */
static const struct who { const char *name, *url; } hearth = { "hearth", "https://hearth.example" }, sphinx = { "CMU Sphinx", "https://cmusphinx.github.io" },
	flite = { "CMU Flite", "http://cmuflite.org" }, espeak = { "eSpeak NG", "https://github.com/espeak-ng/espeak-ng" };

static json_t *program(const char *what, const char *list, json_t *items)
{
	return json_pack("{s:s,s:s,s:b,s:s,s:{s:s,s:s},s:[o]}", "name", hearth.name, "description", what, "installed", 1,
			 "version", HEARTH_VERSION, "attribution", "name", hearth.name, "url", hearth.url, list, items);
}

static json_t *item(const char *name, const struct who *who)
{
	return json_pack("{s:s,s:s,s:b,s:s,s:{s:s,s:s},s:[s]}", "name", name, "description", name, "installed", 1, "version", "1",
			 "attribution", "name", who->name, "url", who->url, "languages", "en");
}

static void flag(json_t *program, const char *name, bool value)
{
	json_object_set_new(program, name, json_boolean(value));
}

void describe(struct client *c)
{
	static const char *const lists[] = { "asr", "tts", "handle", "intent", "wake", "mic", "snd" };
	const struct service *s = c->w->service;
	json_t *o = json_object(), *p;

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		json_object_set_new(o, lists[i], json_array());
	if (c->services & WYOMING_ASR && speech_hears(s->speech)) {
		p = program("speech to text", "models", item(c->w->cfg->home ? "home" : "en-us", &sphinx));
		flag(p, "supports_transcript_streaming", true);
		/* It listens until audio-stop: somebody else decides where the command ends. */
		flag(p, "requires_external_vad", true);
		json_array_append_new(json_object_get(o, "asr"), p);
	}
	if (c->services & WYOMING_TTS && speech_speaks(s->speech)) {
		p = program("text to speech", "voices", item(c->w->cfg->voice, strncmp(c->w->cfg->voice, "espeak-ng", 9) ? &flite : &espeak));
		flag(p, "supports_synthesize_streaming", true);
		json_array_append_new(json_object_get(o, "tts"), p);
	}
	if (c->services & WYOMING_HANDLE && c->w->assistant) {
		p = program("answers, and intents for the home's own assistant to carry out", "models", item(s->model_id, &hearth));
		flag(p, "supports_handled_streaming", true);
		flag(p, "supports_home_control", c->w->cfg->home != NULL);
		json_array_append_new(json_object_get(o, "handle"), p);
	}
	if (c->services & WYOMING_INTENT && c->w->assistant && c->w->cfg->home) {
		p = program("intents of a sentence", "models", item(s->model_id, &hearth));
		json_array_append_new(json_object_get(o, "intent"), p);
	}
	if (c->services & WYOMING_WAKE && speech_wakes(s->speech)) {
		const char *phrase = speech_wakes(s->speech);
		char name[128];
		json_t *m;

		snprintf(name, sizeof(name), "%s", phrase);
		for (char *k = name; *k; k++)
			if (*k == ' ')
				*k = '_';
		m = item(name, &sphinx);
		json_object_set_new(m, "phrase", json_string(phrase));
		json_array_append_new(json_object_get(o, "wake"), program("wake word", "models", m));
	}
	say_event(c, "info", o, NULL, 0);
}
