// SPDX-License-Identifier: MIT
#include "server/audio_api.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sndfile.h>

#include "server/base64.h"
#include "server/service.h"
#include "server/speech.h"
#include "server/transcribe.h"
#include "voice/chunker.h"

#define WAIT_MS   30000
#define MAX_INPUT 4096

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

/* SSE: the segments as deltas, then the whole. */
struct sse {
	char *out;
	size_t n, at;
};

static long sse_next(void *arg, char *buf, size_t cap)
{
	struct sse *s = arg;
	size_t k = s->n - s->at < cap ? s->n - s->at : cap;

	memcpy(buf, s->out + s->at, k);
	s->at += k;
	return (long)k;
}

static void sse_end(void *arg)
{
	struct sse *s = arg;

	free(s->out);
	free(s);
}

static void sse_line(FILE *f, json_t *o)
{
	char *t = json_dumps(o, JSON_COMPACT);

	fprintf(f, "data: %s\n\n", t ? t : "{}");
	free(t);
	json_decref(o);
}

static void reply_stream(struct http_req *r, const struct transcript *t)
{
	struct sse *s = calloc(1, sizeof(*s));
	FILE *f = s ? open_memstream(&s->out, &s->n) : NULL;
	bool first = true;

	if (!f) {
		free(s);
		http_error(r, 500, NULL, NULL, "out of memory");
		return;
	}
	for (size_t i = 0; i < t->n; i++) {
		if (!*t->segments[i].text)
			continue;
		sse_line(f, json_pack("{s:s,s:o}", "type", "transcript.text.delta", "delta",
				      json_sprintf("%s%s", first ? "" : " ", t->segments[i].text)));
		first = false;
	}
	sse_line(f, json_pack("{s:s,s:s}", "type", "transcript.text.done", "text", t->text));
	fclose(f);
	http_stream(r, 200, "text/event-stream", sse_next, sse_end, s);
}

static void transcription(struct http_req *r, struct service *s, bool openai)
{
	const char *file, *format = http_part(r, "response_format", NULL), *stream = http_part(r, "stream", NULL);
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
	rc = transcribe(s->speech, file, n, WAIT_MS, NULL, gone, r, &t, &err);
	if (rc) {
		transcribe_failed(r, rc, &err);
		return;
	}
	if (stream && !strcmp(stream, "true"))
		reply_stream(r, &t);
	else if (!strcmp(format, "text"))
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
	transcription(r, service, true);
}

void api_inference(struct http_req *r, void *service)
{
	transcription(r, service, false);
}

/* -- speech --------------------------------------------------------------------------- */

enum { F_WAV, F_PCM, F_FLAC, F_OPUS, F_MP3 };

struct voice_job {
	struct service *s;
	struct http_req *r;
	json_t *body;
	const char *text;
	double speed;
	int format;
	bool sse;
	pthread_t thread;
	bool started;
	struct chunker *chunker;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char *out;                 /* bytes ready for the client */
	size_t n, cap;
	bool done, stop;
	int rc;
	struct hearth_err err;
	int16_t *pcm;              /* whole, for formats that are encoded at once */
	size_t n_pcm, cap_pcm;
};

static bool put(struct voice_job *j, const void *p, size_t n)
{
	if (j->n + n > j->cap) {
		size_t cap = (j->n + n) * 2 + 4096;
		char *q = realloc(j->out, cap);

		if (!q)
			return false;
		j->out = q;
		j->cap = cap;
	}
	memcpy(j->out + j->n, p, n);
	j->n += n;
	return true;
}

static bool put_audio(struct voice_job *j, const void *p, size_t n)
{
	char *b64, *line;
	bool ok;
	json_t *o;

	if (!j->sse)
		return put(j, p, n);
	b64 = base64_encode(p, n);
	o = b64 ? json_pack("{s:s,s:s}", "type", "speech.audio.delta", "audio", b64) : NULL;
	line = o ? json_dumps(o, JSON_COMPACT) : NULL;
	ok = line && put(j, "data: ", 6) && put(j, line, strlen(line)) && put(j, "\n\n", 2);
	json_decref(o);
	free(line);
	free(b64);
	return ok;
}

static int on_pcm(void *arg, const int16_t *pcm, size_t n)
{
	struct voice_job *j = arg;
	bool ok = true;

	pthread_mutex_lock(&j->lock);
	if (j->format == F_WAV || j->format == F_PCM) {
		ok = put_audio(j, pcm, n * 2);
	} else {
		if (j->n_pcm + n > j->cap_pcm) {
			size_t cap = (j->n_pcm + n) * 2;
			int16_t *q = realloc(j->pcm, cap * 2);

			ok = q != NULL;
			if (q) {
				j->pcm = q;
				j->cap_pcm = cap;
			}
		}
		if (ok) {
			memcpy(j->pcm + j->n_pcm, pcm, n * 2);
			j->n_pcm += n;
		}
	}
	ok = ok && !j->stop;
	pthread_cond_broadcast(&j->changed);
	pthread_mutex_unlock(&j->lock);
	return ok ? 0 : 1;
}

static int on_phrase(void *arg, const struct chunk *c)
{
	struct voice_job *j = arg;
	bool stop;

	/* A slow reader is waited for here, where nobody else waits for it: the voice is not taken yet. */
	pthread_mutex_lock(&j->lock);
	while (j->format <= F_PCM && j->n > 256 * 1024 && !j->stop)
		pthread_cond_wait(&j->changed, &j->lock);
	stop = j->stop;
	pthread_mutex_unlock(&j->lock);
	return stop ? -ECANCELED : speech_say(j->s->speech, c->spoken, j->speed, WAIT_MS, on_pcm, j, &j->err);
}

/* libsndfile writing into the job's buffer. */
struct vio {
	char *data;
	sf_count_t n, at;
	size_t cap;
};

static sf_count_t vio_len(void *u) { return ((struct vio *)u)->n; }
static sf_count_t vio_tell(void *u) { return ((struct vio *)u)->at; }

static sf_count_t vio_seek(sf_count_t off, int whence, void *u)
{
	struct vio *v = u;

	v->at = whence == SEEK_SET ? off : whence == SEEK_CUR ? v->at + off : v->n + off;
	return v->at;
}

static sf_count_t vio_read(void *p, sf_count_t n, void *u)
{
	struct vio *v = u;

	if (n > v->n - v->at)
		n = v->n - v->at;
	memcpy(p, v->data + v->at, (size_t)n);
	v->at += n;
	return n;
}

static sf_count_t vio_write(const void *p, sf_count_t n, void *u)
{
	struct vio *v = u;

	if ((size_t)(v->at + n) > v->cap) {
		size_t cap = (size_t)(v->at + n) * 2 + 65536;
		char *q = realloc(v->data, cap);

		if (!q)
			return 0;
		v->data = q;
		v->cap = cap;
	}
	memcpy(v->data + v->at, p, (size_t)n);
	v->at += n;
	if (v->at > v->n)
		v->n = v->at;
	return n;
}

static int sf_format(int format)
{
	switch (format) {
	case F_FLAC: return SF_FORMAT_FLAC | SF_FORMAT_PCM_16;
	case F_OPUS: return SF_FORMAT_OGG | SF_FORMAT_OPUS;
#ifdef SF_FORMAT_MPEG
	case F_MP3: return SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III;
#endif
	default: return 0;
	}
}

static bool can_write(int format, int rate)
{
	SF_INFO i = { .samplerate = rate, .channels = 1, .format = sf_format(format) };

	return format <= F_PCM || (i.format && sf_format_check(&i));
}

static int encode(struct voice_job *j)
{
	SF_VIRTUAL_IO io = { vio_len, vio_seek, vio_read, vio_write, vio_tell };
	SF_INFO i = { .samplerate = speech_rate(j->s->speech), .channels = 1, .format = sf_format(j->format) };
	struct vio v = { 0 };
	SNDFILE *f = sf_open_virtual(&io, SFM_WRITE, &i, &v);
	bool ok = f && sf_write_short(f, j->pcm, (sf_count_t)j->n_pcm) == (sf_count_t)j->n_pcm;

	if (f)
		sf_close(f);
	pthread_mutex_lock(&j->lock);
	ok = ok && put_audio(j, v.data, (size_t)v.n);
	pthread_mutex_unlock(&j->lock);
	free(v.data);
	return ok ? 0 : err_set(&j->err, -EIO, "the sound cannot be encoded");
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *voice_thread(void *arg)
{
	static const char done[] = "data: {\"type\":\"speech.audio.done\"}\n\n";
	struct voice_job *j = arg;
	int rc = chunker_push(j->chunker, j->text, strlen(j->text), now_ns());

	if (!rc)
		rc = chunker_finish(j->chunker);
	if (!rc && j->format > F_PCM)
		rc = encode(j);
	pthread_mutex_lock(&j->lock);
	if (j->sse && !rc)
		put(j, done, sizeof(done) - 1);
	j->rc = rc;
	j->done = true;
	pthread_cond_broadcast(&j->changed);
	pthread_mutex_unlock(&j->lock);
	return NULL;
}

static long voice_next(void *arg, char *buf, size_t cap)
{
	struct voice_job *j = arg;
	struct timespec t;
	long k;

	pthread_mutex_lock(&j->lock);
	while (!j->n && !j->done) {
		clock_gettime(CLOCK_REALTIME, &t);
		t.tv_nsec += 100000000;
		if (t.tv_nsec >= 1000000000) {
			t.tv_nsec -= 1000000000;
			t.tv_sec++;
		}
		pthread_cond_timedwait(&j->changed, &j->lock, &t);
		if (!j->n && http_gone(j->r)) {
			pthread_mutex_unlock(&j->lock);
			return -1;
		}
	}
	k = (long)(j->n < cap ? j->n : cap);
	memcpy(buf, j->out, (size_t)k);
	memmove(j->out, j->out + k, j->n - (size_t)k);
	j->n -= (size_t)k;
	if (!k && j->rc)
		k = -1;            /* broken off: a short file must not look whole */
	pthread_cond_broadcast(&j->changed);
	pthread_mutex_unlock(&j->lock);
	return k;
}

static void voice_end(void *arg)
{
	struct voice_job *j = arg;

	if (j->started) {
		pthread_mutex_lock(&j->lock);
		j->stop = true;
		pthread_cond_broadcast(&j->changed);
		pthread_mutex_unlock(&j->lock);
		pthread_join(j->thread, NULL);
	}
	chunker_free(j->chunker);
	json_decref(j->body);
	pthread_cond_destroy(&j->changed);
	pthread_mutex_destroy(&j->lock);
	free(j->out);
	free(j->pcm);
	free(j);
}

/* A WAV header for a length that is not known yet: sizes as streams give them. */
static void wav_header(struct voice_job *j)
{
	uint32_t rate = (uint32_t)speech_rate(j->s->speech), v;
	uint8_t h[44] = "RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\1\0\1\0";

	for (int i = 0; i < 4; i++)
		h[24 + i] = (uint8_t)(rate >> (8 * i));
	v = rate * 2;
	for (int i = 0; i < 4; i++)
		h[28 + i] = (uint8_t)(v >> (8 * i));
	h[32] = 2;
	h[34] = 16;
	memcpy(h + 36, "data\xff\xff\xff\xff", 8);
	put_audio(j, h, 44);
}

void api_speech(struct http_req *r, void *service)
{
	static const struct { const char *name, *type; int format; } formats[] = {
		{ "wav", "audio/wav", F_WAV }, { "pcm", "audio/pcm", F_PCM }, { "flac", "audio/flac", F_FLAC },
		{ "opus", "audio/ogg", F_OPUS }, { "mp3", "audio/mpeg", F_MP3 },
	};
	struct service *s = service;
	struct voice_job *j;
	const char *format, *sf, *type = NULL;
	json_t *b, *speed, *v;

	s->requests++;
	if (!speech_speaks(s->speech)) {
		http_error(r, 501, "not_enabled", NULL, "text to speech is not switched on: speech: {tts: true} in the configuration");
		return;
	}
	b = http_json(r);
	if (!b)
		return;
	j = calloc(1, sizeof(*j));
	if (!j) {
		json_decref(b);
		http_error(r, 500, NULL, NULL, "out of memory");
		return;
	}
	j->s = s;
	j->r = r;
	j->body = b;
	j->speed = 1;
	pthread_mutex_init(&j->lock, NULL);
	pthread_cond_init(&j->changed, NULL);
	j->text = json_string_value(json_object_get(b, "input"));
	format = json_string_value(json_object_get(b, "response_format"));
	sf = json_string_value(json_object_get(b, "stream_format"));
	speed = json_object_get(b, "speed");
	v = json_object_get(b, "response_format");
	if (!format && v && !json_is_null(v)) {
		http_error(r, 400, "invalid_value", "response_format", "\"response_format\" must be a text");
		goto out;
	}
	if (!j->text || !*j->text || strlen(j->text) > MAX_INPUT) {
		http_error(r, 400, "invalid_value", "input", "\"input\" must be a text of 1 to %d bytes", MAX_INPUT);
		goto out;
	}
	if (speed && (!json_is_number(speed) || json_number_value(speed) < 0.25 || json_number_value(speed) > 4)) {
		http_error(r, 400, "invalid_value", "speed", "\"speed\" must be a number from 0.25 to 4");
		goto out;
	}
	if (speed)
		j->speed = json_number_value(speed);
	/* OpenAI's default is mp3; where the library here cannot write it, wav is, and the header says so. */
	if (!format)
		format = can_write(F_MP3, speech_rate(s->speech)) ? "mp3" : "wav";
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (strcmp(formats[i].name, format))
			continue;
		type = formats[i].type;
		j->format = formats[i].format;
	}
	if (!type || !can_write(j->format, speech_rate(s->speech))) {
		http_error(r, 400, "unsupported_value", "response_format", "\"%.40s\" cannot be written here; use wav, pcm, flac%s", format,
			   can_write(F_OPUS, speech_rate(s->speech)) ? " or opus" : "");
		goto out;
	}
	j->sse = sf && !strcmp(sf, "sse");
	if (chunker_new(NULL, on_phrase, j, &j->chunker)) {
		http_error(r, 500, NULL, NULL, "out of memory");
		goto out;
	}
	if (j->format == F_WAV)
		wav_header(j);
	if (pthread_create(&j->thread, NULL, voice_thread, j)) {
		http_error(r, 500, NULL, NULL, "no thread for the voice");
		goto out;
	}
	j->started = true;
	http_stream(r, 200, j->sse ? "text/event-stream" : type, voice_next, voice_end, j);
	return;
out:
	voice_end(j);
}

void api_voices(struct http_req *r, void *service)
{
	struct service *s = service;

	http_reply_json(r, 200, json_pack("{s:[{s:s,s:s}]}", "voices", "id", s->cfg->voice, "name", s->cfg->voice));
}
