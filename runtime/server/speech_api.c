// SPDX-License-Identifier: MIT
/* Text to speech over HTTP: OpenAI's form, and Piper's raw samples. */
#include "server/audio_api.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sndfile.h>

#include "base/mono.h"
#include "server/base64.h"
#include "server/chat_api.h"
#include "server/service.h"
#include "server/speech.h"
#include "voice/chunker.h"
#include "voice/resample.h"

#define WAIT_MS     30000
#define LOOK_MS     100            /* how long a client's leaving may go unnoticed */
#define MAX_INPUT   4096
#define OPENAI_RATE 24000          /* of its "pcm" */
#define PIPER_RATE  22050          /* of its medium voices' raw output */

enum { F_WAV, F_PCM, F_FLAC, F_OPUS, F_MP3 };

struct voice_job {
	struct service *s;
	struct http_req *r;
	json_t *body;
	const char *text, *voice;  /* NULL: the configured one */
	double speed;
	int format;
	bool sse, entered;
	int rate;                  /* of what goes out */
	struct resample *resample; /* from the voice's, for raw samples; NULL: the same */
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

/* @pcm NULL: the end. Lock held. */
static bool put_resampled(struct voice_job *j, const int16_t *pcm, size_t n)
{
	float in[1024], out[4096];
	int16_t s16[4096];
	size_t taken, given;

	do {
		size_t k = n < 1024 ? n : 1024;

		for (size_t i = 0; i < k; i++)
			in[i] = (float)pcm[i] / 32768.0f;
		if (resample_push(j->resample, pcm ? in : NULL, k, out, 4096, &taken, &given))
			return false;
		if (pcm) {
			pcm += taken;
			n -= taken;
		}
		resample_to_s16(out, given, s16);
		if (given && !put_audio(j, s16, given * 2))
			return false;
	} while (n || given);
	return true;
}

static int on_pcm(void *arg, const int16_t *pcm, size_t n)
{
	struct voice_job *j = arg;
	bool ok = true;

	pthread_mutex_lock(&j->lock);
	if (j->resample) {
		ok = put_resampled(j, pcm, n);
	} else if (j->format == F_WAV || j->format == F_PCM) {
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
	return stop ? -ECANCELED : speech_say(j->s->speech, j->voice, c->spoken, j->speed, WAIT_MS, on_pcm, j, &j->err);
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

static void *voice_thread(void *arg)
{
	static const char done[] = "data: {\"type\":\"speech.audio.done\"}\n\n";
	struct voice_job *j = arg;
	int rc = chunker_push(j->chunker, j->text, strlen(j->text), mono_ns());

	if (!rc)
		rc = chunker_finish(j->chunker);
	if (!rc && j->format > F_PCM)
		rc = encode(j);
	pthread_mutex_lock(&j->lock);
	if (!rc && j->resample && !put_resampled(j, NULL, 0))
		rc = err_set(&j->err, -ENOMEM, "out of memory");
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
		t = mono_after(LOOK_MS);
		pthread_cond_timedwait(&j->changed, &j->lock, &t);
		if (!j->n && http_gone(j->r)) {
			pthread_mutex_unlock(&j->lock);
			return -1;
		}
	}
	k = (long)(j->n < cap ? j->n : cap);
	if (k) {
		memcpy(buf, j->out, (size_t)k);
		memmove(j->out, j->out + k, j->n - (size_t)k);
	}
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
	if (j->entered)
		keyring_leave(j->s->keys, http_who(j->r), 0, 0, 0);
	chunker_free(j->chunker);
	resample_free(j->resample);
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

static bool speaks(struct service *s, struct http_req *r)
{
	if (speech_speaks(s->speech))
		return true;
	http_error(r, 501, "not_enabled", NULL, "text to speech is not switched on: speech: {tts: true} in the configuration");
	return false;
}

static struct voice_job *job_new(struct service *s, struct http_req *r)
{
	struct voice_job *j = calloc(1, sizeof(*j));
	struct hearth_err err = { 0 };
	int rc;

	if (!j) {
		http_error(r, 500, NULL, NULL, "out of memory");
		return NULL;
	}
	j->s = s;
	j->r = r;
	j->speed = 1;
	j->rate = speech_rate(s->speech);
	pthread_mutex_init(&j->lock, NULL);
	mono_cond(&j->changed);
	rc = keyring_enter(s->keys, http_who(r), 0, &err);
	if (rc) {
		api_start_failed(s, r, rc, &err);
		voice_end(j);
		return NULL;
	}
	j->entered = true;
	return j;
}

/* What the job says goes out as it is made; takes the job over. */
static void begin(struct voice_job *j, const char *type)
{
	struct hearth_err err = { 0 };
	char rate[16];

	if (j->format == F_PCM && j->rate != speech_rate(j->s->speech) && resample_new(speech_rate(j->s->speech), j->rate, &j->resample, &err)) {
		http_error(j->r, 500, NULL, NULL, "%s", err.text);
	} else if (chunker_new(NULL, on_phrase, j, &j->chunker)) {
		http_error(j->r, 500, NULL, NULL, "out of memory");
	} else {
		if (j->format == F_WAV)
			wav_header(j);
		if (pthread_create(&j->thread, NULL, voice_thread, j) == 0) {
			j->started = true;
			snprintf(rate, sizeof(rate), "%d", j->rate);
			http_answer_header(j->r, "X-Sample-Rate", rate);
			http_stream(j->r, 200, j->sse ? "text/event-stream" : type, voice_next, voice_end, j);
			return;
		}
		http_error(j->r, 500, NULL, NULL, "no thread for the voice");
	}
	voice_end(j);
}

/* Fills @j by its body; NULL: refused, else the type of what goes out. */
static const char *read_request(struct voice_job *j)
{
	static const struct { const char *name, *type; int format; } formats[] = {
		{ "wav", "audio/wav", F_WAV }, { "pcm", "audio/pcm", F_PCM }, { "flac", "audio/flac", F_FLAC },
		{ "opus", "audio/ogg", F_OPUS }, { "mp3", "audio/mpeg", F_MP3 },
	};
	const json_t *b = j->body, *speed = json_object_get(b, "speed"), *rate = json_object_get(b, "sample_rate"), *v = json_object_get(b, "response_format");
	const json_t *voice = json_object_get(b, "voice");
	const char *format = json_string_value(v), *sf = json_string_value(json_object_get(b, "stream_format")), *type = NULL;
	struct http_req *r = j->r;
	struct hearth_err err = { 0 };
	int own = speech_rate(j->s->speech);

	j->text = json_string_value(json_object_get(b, "input"));
	if (!format && v && !json_is_null(v)) {
		http_error(r, 400, "invalid_value", "response_format", "\"response_format\" must be a text");
		return NULL;
	}
	if (!j->text || !*j->text || strlen(j->text) > MAX_INPUT) {
		http_error(r, 400, "invalid_value", "input", "\"input\" must be a text of 1 to %d bytes", MAX_INPUT);
		return NULL;
	}
	/* A name, or an object with it, as for voices that somebody made. */
	if (json_is_object(voice))
		voice = json_object_get(voice, "id");
	if (voice && !json_is_null(voice) && !json_is_string(voice)) {
		http_error(r, 400, "invalid_value", "voice", "\"voice\" must be a text");
		return NULL;
	}
	if (speech_voice(j->s->speech, json_string_value(voice), &j->voice, &err)) {
		http_error(r, 400, "unknown_voice", "voice", "%s", err.text);
		return NULL;
	}
	if (speed && (!json_is_number(speed) || json_number_value(speed) < 0.5 || json_number_value(speed) > 3)) {
		/* What the voices can do; OpenAI's go from 0.25 to 4. */
		http_error(r, 400, "invalid_value", "speed", "\"speed\" must be a number from 0.5 to 3");
		return NULL;
	}
	if (speed)
		j->speed = json_number_value(speed);
	/* OpenAI's default is mp3; where the library here cannot write it, wav is, and the header says so. */
	if (!format)
		format = can_write(F_MP3, own) ? "mp3" : "wav";
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (strcmp(formats[i].name, format))
			continue;
		type = formats[i].type;
		j->format = formats[i].format;
	}
	if (!type || !can_write(j->format, own)) {
		http_error(r, 400, "unsupported_value", "response_format", "\"%.40s\" cannot be written here; use wav, pcm, flac%s", format,
			   can_write(F_OPUS, own) ? " or opus" : "");
		return NULL;
	}
	if (sf && strcmp(sf, "sse") && strcmp(sf, "audio")) {
		http_error(r, 400, "invalid_value", "stream_format", "\"stream_format\" must be audio or sse");
		return NULL;
	}
	j->sse = sf && !strcmp(sf, "sse");
	/* Samples without a head are of the rate that OpenAI's clients play them at, unless another is asked for. */
	if (j->format == F_PCM)
		j->rate = OPENAI_RATE;
	if (rate && (j->format != F_PCM || !json_is_integer(rate) || json_integer_value(rate) < 4000 || json_integer_value(rate) > 192000)) {
		http_error(r, 400, "invalid_value", "sample_rate", "\"sample_rate\" is for \"response_format\": \"pcm\", from 4000 to 192000");
		return NULL;
	}
	if (rate)
		j->rate = (int)json_integer_value(rate);
	return type;
}

void api_speech(struct http_req *r, void *service)
{
	struct service *s = service;
	struct voice_job *j;
	const char *type;
	json_t *b;

	s->requests++;
	if (!speaks(s, r))
		return;
	b = http_json(r);
	if (!b)
		return;
	j = job_new(s, r);
	if (!j) {
		json_decref(b);
		return;
	}
	j->body = b;
	type = read_request(j);
	if (type)
		begin(j, type);
	else
		voice_end(j);
}

/* Text in, samples out, as "piper --output-raw" does: 16 bit, mono, 22.05 kHz. */
void api_piper(struct http_req *r, void *service)
{
	struct service *s = service;
	struct voice_job *j;
	size_t n;
	const char *text = http_body(r, &n);

	s->requests++;
	if (!speaks(s, r))
		return;
	if (!n || n > MAX_INPUT || strlen(text) != n) {
		http_error(r, 400, "invalid_value", NULL, "the body must be a text of 1 to %d bytes", MAX_INPUT);
		return;
	}
	j = job_new(s, r);
	if (!j)
		return;
	j->text = text;            /* the request's, which outlives the answer */
	j->format = F_PCM;
	j->rate = PIPER_RATE;
	begin(j, "audio/x-raw; format=S16LE; channels=1; rate=22050");
}

void api_voices(struct http_req *r, void *service)
{
	struct service *s = service;

	http_reply_json(r, 200, json_pack("{s:[{s:s,s:s}]}", "voices", "id", s->cfg->voice, "name", s->cfg->voice));
}
