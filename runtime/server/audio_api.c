// SPDX-License-Identifier: MIT
/* Speech to text over HTTP: OpenAI's form, and whisper-server's. */
#include "server/audio_api.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mono.h"
#include "base/utf8.h"
#include "server/chat_api.h"
#include "server/service.h"
#include "server/speech.h"
#include "server/transcribe.h"

#define WAIT_MS   30000
#define LOOK_MS   100              /* how long a client's leaving may go unnoticed */

/* -- transcription ------------------------------------------------------------------ */

static bool gone(void *r)
{
	return http_gone(r);
}

static bool hears(struct service *s, struct http_req *r)
{
	if (speech_hears(s->speech))
		return true;
	http_error(r, 501, "not_enabled", NULL, "speech to text is not switched on: speech: {stt: true} in the configuration");
	return false;
}

static void transcribe_failed(struct http_req *r, int rc, const struct hearth_err *err)
{
	int status = rc == -ETIMEDOUT ? 503 : rc == -ECANCELED ? 499 : rc == -EBADMSG || rc == -ENODATA || rc == -ENOTSUP ? 400 : 500;

	http_error(r, status, status == 400 ? "invalid_audio" : NULL, status == 400 ? "file" : NULL, "%s", err->text);
}

static void stamp(char *to, size_t n, double t, char dot)
{
	unsigned long ms = (unsigned long)(t * 1000 + 0.5);

	snprintf(to, n, "%02lu:%02lu:%02lu%c%03lu", ms / 3600000, ms / 60000 % 60, ms / 1000 % 60, dot, ms % 1000);
}

static void reply_subtitles(struct http_req *r, const struct transcript *t, bool vtt)
{
	char *out = NULL, from[32], to[32];
	size_t n = 0;
	FILE *f = open_memstream(&out, &n);

	if (!f) {
		http_error(r, 500, NULL, NULL, "out of memory");
		return;
	}
	if (vtt)
		fprintf(f, "WEBVTT\n\n");
	for (size_t i = 0; i < t->n; i++) {
		stamp(from, sizeof(from), t->segments[i].from, vtt ? '.' : ',');
		stamp(to, sizeof(to), t->segments[i].to, vtt ? '.' : ',');
		if (!vtt)
			fprintf(f, "%zu\n", i + 1);
		fprintf(f, "%s --> %s\n%s\n\n", from, to, t->segments[i].text);
	}
	fclose(f);
	http_reply(r, 200, vtt ? "text/vtt; charset=utf-8" : "application/x-subrip; charset=utf-8", out, n);
	free(out);
}

static void reply_verbose(struct http_req *r, const struct transcript *t)
{
	json_t *list = json_array();

	for (size_t i = 0; i < t->n; i++)
		json_array_append_new(list, json_pack("{s:i,s:f,s:f,s:s}", "id", (int)i, "start", t->segments[i].from,
						      "end", t->segments[i].to, "text", t->segments[i].text));
	http_reply_json(r, 200, json_pack("{s:s,s:s,s:f,s:s,s:o}", "task", "transcribe", "language", "english",
					  "duration", t->duration, "text", t->text, "segments", list));
}

/* -- streamed: each segment as it is heard, then the whole ---------------------------- */

struct hear_job {
	struct service *s;
	struct http_req *r;
	const char *file;
	size_t n_file;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char *out;
	size_t n, at;
	bool first, done, stop;
	int rc;
	struct hearth_err err;
};

/* Lock held. */
static void add_event(struct hear_job *j, json_t *o)
{
	char *t = o ? json_dumps(o, JSON_COMPACT) : NULL, *p = t ? realloc(j->out, j->n + strlen(t) + 9) : NULL;

	json_decref(o);
	if (p) {
		j->out = p;
		j->n += (size_t)sprintf(p + j->n, "data: %s\n\n", t);
	} else {
		j->rc = err_set(&j->err, -ENOMEM, "out of memory");
	}
	free(t);
	pthread_cond_broadcast(&j->changed);
}

/* What the client calls it: the last part of a path, without what would break a line of a log. */
static const char *file_name(struct http_req *r)
{
	const char *name = http_part_file(r, "file"), *slash = name ? strrchr(name, '/') : NULL;

	if (slash)
		name = slash + 1;
	for (const char *c = name; c && *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			return "the file";
	return name && *name && strlen(name) < 128 && utf8_valid(name, strlen(name)) == strlen(name) ? name : "the file";
}

static void on_segment(void *arg, const struct transcript_segment *seg)
{
	struct hear_job *j = arg;

	if (!*seg->text)
		return;
	pthread_mutex_lock(&j->lock);
	add_event(j, json_pack("{s:s,s:o}", "type", "transcript.text.delta", "delta", json_sprintf("%s%s", j->first ? "" : " ", seg->text)));
	j->first = false;
	pthread_mutex_unlock(&j->lock);
}

static bool stopped(void *arg)
{
	struct hear_job *j = arg;
	bool stop;

	pthread_mutex_lock(&j->lock);
	stop = j->stop;
	pthread_mutex_unlock(&j->lock);
	return stop;
}

static void *hear_thread(void *arg)
{
	struct hear_job *j = arg;
	struct hearth_err err = { 0 };
	struct transcript t;
	int rc = transcribe(j->s->speech, file_name(j->r), j->file, j->n_file, WAIT_MS, on_segment, stopped, j, &t, &err);

	pthread_mutex_lock(&j->lock);
	if (!rc) {
		add_event(j, json_pack("{s:s,s:s}", "type", "transcript.text.done", "text", t.text));
		transcript_done(&t);
	} else {
		j->rc = rc;
		j->err = err;
	}
	j->done = true;
	pthread_cond_broadcast(&j->changed);
	pthread_mutex_unlock(&j->lock);
	return NULL;
}

/* Lock held: waits until there is something to send, or nothing will come; false: the client left. */
static bool await(struct hear_job *j)
{
	while (j->at == j->n && !j->done) {
		const struct timespec t = mono_after(LOOK_MS);

		pthread_cond_timedwait(&j->changed, &j->lock, &t);
		if (j->at == j->n && http_gone(j->r))
			return false;
	}
	return true;
}

static long hear_next(void *arg, char *buf, size_t cap)
{
	struct hear_job *j = arg;
	size_t k;
	long rc;

	pthread_mutex_lock(&j->lock);
	rc = await(j) ? 0 : -1;
	k = j->n - j->at < cap ? j->n - j->at : cap;
	memcpy(buf, j->out ? j->out + j->at : "", k);
	j->at += k;
	if (!rc)
		rc = k ? (long)k : j->rc ? -1 : 0;
	pthread_mutex_unlock(&j->lock);
	return rc;
}

static void hear_end(void *arg)
{
	struct hear_job *j = arg;

	pthread_mutex_lock(&j->lock);
	j->stop = true;
	pthread_mutex_unlock(&j->lock);
	pthread_join(j->thread, NULL);
	keyring_leave(j->s->keys, http_who(j->r), 0, 0, 0);
	pthread_cond_destroy(&j->changed);
	pthread_mutex_destroy(&j->lock);
	free(j->out);
	free(j);
}

/* Entered under its key already. */
static void stream(struct http_req *r, struct service *s, const char *file, size_t n)
{
	struct hear_job *j = calloc(1, sizeof(*j));
	bool there, refused;

	if (j) {
		*j = (struct hear_job){ .s = s, .r = r, .file = file, .n_file = n, .first = true };
		pthread_mutex_init(&j->lock, NULL);
		mono_cond(&j->changed);
	}
	if (!j || pthread_create(&j->thread, NULL, hear_thread, j)) {
		free(j);
		keyring_leave(s->keys, http_who(r), 0, 0, 0);
		http_error(r, 500, NULL, NULL, "no thread or no memory for the transcript");
		return;
	}
	/* What cannot be transcribed at all is refused with a status, not in the stream. */
	pthread_mutex_lock(&j->lock);
	there = await(j);
	refused = there && !j->n;
	pthread_mutex_unlock(&j->lock);
	if (there && !refused) {
		http_stream(r, 200, "text/event-stream", hear_next, hear_end, j);
		return;
	}
	if (refused)
		transcribe_failed(r, j->rc, &j->err);
	else
		http_error(r, 499, "client_gone", NULL, "the client went away");
	hear_end(j);
}

static void transcription(struct http_req *r, struct service *s)
{
	const char *file, *format = http_part(r, "response_format", NULL), *streamed = http_part(r, "stream", NULL);
	struct hearth_err err = { 0 };
	struct transcript t;
	size_t n = 0;
	int rc;

	s->requests++;
	if (!hears(s, r))
		return;
	file = http_part(r, "file", &n);
	if (!file) {
		http_error(r, 400, "missing_file", "file", "a multipart/form-data body with the sound in the field \"file\" is needed");
		return;
	}
	if (!format || !*format)
		format = "json";
	if (strcmp(format, "json") && strcmp(format, "text") && strcmp(format, "srt") && strcmp(format, "vtt") && strcmp(format, "verbose_json")) {
		http_error(r, 400, "invalid_value", "response_format", "\"response_format\" must be json, text, srt, verbose_json or vtt");
		return;
	}
	rc = keyring_enter(s->keys, http_who(r), 0, &err);
	if (rc) {
		api_start_failed(s, r, rc, &err);
		return;
	}
	if (streamed && !strcmp(streamed, "true")) {
		stream(r, s, file, n);
		return;
	}
	rc = transcribe(s->speech, file_name(r), file, n, WAIT_MS, NULL, gone, r, &t, &err);
	keyring_leave(s->keys, http_who(r), 0, 0, 0);
	if (rc) {
		transcribe_failed(r, rc, &err);
		return;
	}
	if (!strcmp(format, "text"))
		http_reply(r, 200, "text/plain; charset=utf-8", t.text, strlen(t.text));
	else if (!strcmp(format, "srt") || !strcmp(format, "vtt"))
		reply_subtitles(r, &t, !strcmp(format, "vtt"));
	else if (!strcmp(format, "verbose_json"))
		reply_verbose(r, &t);
	else
		http_reply_json(r, 200, json_pack("{s:s}", "text", t.text));
	transcript_done(&t);
}

void api_transcriptions(struct http_req *r, void *service)
{
	transcription(r, service);
}

void api_inference(struct http_req *r, void *service)
{
	transcription(r, service);
}
