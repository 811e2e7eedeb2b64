// SPDX-License-Identifier: MIT
#include "server/wyoming.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "server/listen.h"
#include "server/speech.h"
#include "server/wyoming_frame.h"
#include "voice/chunker.h"
#include "voice/resample.h"

#define MAX_CLIENTS  64
#define WAIT_MS      30000           /* for an engine that another client uses */
#define SEND_MS      30000           /* a client that takes nothing for so long is dropped */
#define MAX_SECONDS  (60 * 60)       /* of audio in one utterance */
#define MAX_TEXT     (64u << 10)     /* of one streamed synthesis */

struct client {
	struct wyoming *w;
	int fd;
	bool live;
	pthread_t thread;
	struct wyoming_reader *in;
	pthread_mutex_t out;         /* partials come from the recogniser's thread */
	bool gone;
	/* hearing */
	struct hearing *hearing;
	int rate, width, channels;
	struct resample *resample;
	double heard;                /* samples of the source */
	bool stream_text;
	char partial[STT_TEXT];
	/* speaking in a stream */
	bool streaming, audio_open;
	struct chunker *chunker;
	size_t text_bytes;
};

struct wyoming {
	const struct config *cfg;
	struct speech *sp;
	int fd, wake[2];
	uint16_t port;
	pthread_t thread;
	pthread_mutex_t lock;
	struct client clients[MAX_CLIENTS];
	atomic_bool stopping;
};

/* -- out ------------------------------------------------------------------------ */

static int send_all(struct client *c, const char *s, size_t n)
{
	struct pollfd p = { .fd = c->fd, .events = POLLOUT };

	while (n) {
		ssize_t k = send(c->fd, s, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (k > 0) {
			s += k;
			n -= (size_t)k;
		} else if (k < 0 && (errno == EAGAIN || errno == EINTR)) {
			if (errno == EAGAIN && poll(&p, 1, SEND_MS) <= 0)
				return -ETIMEDOUT;
		} else {
			return -EPIPE;
		}
	}
	return 0;
}

/* Steals @data. */
static int say_event(struct client *c, const char *type, json_t *data, const void *payload, size_t n_payload)
{
	char *buf;
	size_t n;
	int rc = wyoming_encode(type, data, payload, n_payload, &buf, &n);

	json_decref(data);
	if (rc)
		return rc;
	pthread_mutex_lock(&c->out);
	rc = c->gone ? -EPIPE : send_all(c, buf, n);
	if (rc)
		c->gone = true;
	pthread_mutex_unlock(&c->out);
	free(buf);
	return rc;
}

static void say_error(struct client *c, const char *code, const char *text)
{
	say_event(c, "error", json_pack("{s:s,s:s}", "text", text, "code", code), NULL, 0);
}

/* -- describe -------------------------------------------------------------------- */

static json_t *program(const char *name, const char *what, const char *list, json_t *items, const char *flag)
{
	json_t *p = json_pack("{s:s,s:s,s:b,s:s,s:{s:s,s:s},s:[o]}", "name", name, "description", what, "installed", 1,
			      "version", "0.1", "attribution", "name", "hearth", "url", "https://hearth.example", list, items);

	json_object_set_new(p, flag, json_true());
	return p;
}

static json_t *item(const char *name, const char *who)
{
	return json_pack("{s:s,s:s,s:b,s:s,s:{s:s,s:s},s:[s]}", "name", name, "description", name, "installed", 1, "version", "1",
			 "attribution", "name", who, "url", "https://hearth.example", "languages", "en");
}

static void describe(struct client *c)
{
	static const char *const lists[] = { "handle", "intent", "wake", "mic", "snd" };
	struct speech *sp = c->w->sp;
	json_t *o = json_object(), *asr = json_array(), *tts = json_array();

	if (speech_hears(sp))
		json_array_append_new(asr, program("hearth", "hearth speech to text", "models", item("home", "CMU Sphinx"),
						   "supports_transcript_streaming"));
	if (speech_speaks(sp))
		json_array_append_new(tts, program("hearth", "hearth text to speech", "voices", item(c->w->cfg->voice, "CMU Flite"),
						   "supports_synthesize_streaming"));
	json_object_set_new(o, "asr", asr);
	json_object_set_new(o, "tts", tts);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		json_object_set_new(o, lists[i], json_array());
	say_event(c, "info", o, NULL, 0);
}

/* -- hearing ---------------------------------------------------------------------- */

static void hearing_over(struct client *c)
{
	hearing_drop(c->hearing);
	c->hearing = NULL;
	resample_free(c->resample);
	c->resample = NULL;
}

static void on_partial(void *arg, const char *text)
{
	struct client *c = arg;
	size_t same = strlen(c->partial);

	/* What was sent cannot be taken back: only a longer version of the same text goes out. */
	if (!c->stream_text || strncmp(text, c->partial, same) || !text[same])
		return;
	if (!same)
		say_event(c, "transcript-start", json_object(), NULL, 0);
	say_event(c, "transcript-chunk", json_pack("{s:s}", "text", text + same), NULL, 0);
	snprintf(c->partial, sizeof(c->partial), "%s", text);
}

static int get_int(const json_t *d, const char *key, int fallback)
{
	const json_t *j = json_object_get(d, key);

	return json_is_integer(j) && json_integer_value(j) > 0 && json_integer_value(j) < 1000000 ? (int)json_integer_value(j) : fallback;
}

static void audio_start(struct client *c, const json_t *d)
{
	struct hearth_err err = { 0 };

	hearing_over(c);
	c->rate = get_int(d, "rate", 16000);
	c->width = get_int(d, "width", 2);
	c->channels = get_int(d, "channels", 1);
	c->heard = 0;
	c->partial[0] = 0;
	if (c->width > 4 || c->channels > 16) {
		say_error(c, "unsupported-audio", "audio must be 1 to 4 bytes a sample and at most 16 channels");
		return;
	}
	if (!speech_hears(c->w->sp)) {
		say_error(c, "no-asr", "speech to text is not switched on here");
		return;
	}
	if (resample_new(c->rate, STT_RATE, &c->resample, &err) ||
	    hearing_begin(c->w->sp, WAIT_MS, on_partial, c, &c->hearing, &err)) {
		resample_free(c->resample);
		c->resample = NULL;
		say_error(c, "asr-busy", err.text);
	}
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

static int push_float(struct client *c, const float *in, size_t n)
{
	float out[2048];
	int16_t pcm[2048];
	size_t taken, given;
	int rc;

	do {
		rc = resample_push(c->resample, in, n, out, 2048, &taken, &given);
		if (rc)
			return rc;
		resample_to_s16(out, given, pcm);
		if (given && (rc = hearing_push(c->hearing, pcm, given)))
			return rc;
		if (in) {
			in += taken;
			n -= taken;
		}
	} while (n || given);
	return 0;
}

static void audio_chunk(struct client *c, const struct wyoming_event *e)
{
	size_t frame, n;
	float mono[1024];

	if (!c->hearing)
		return;
	frame = (size_t)c->width * (size_t)c->channels;
	n = e->n_payload / frame;      /* an odd tail byte belongs to no sample */
	c->heard += (double)n;
	if (c->heard > (double)MAX_SECONDS * c->rate) {
		hearing_over(c);
		say_error(c, "too-long", "the utterance is over an hour long");
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
		if (push_float(c, mono, k)) {
			hearing_over(c);
			say_error(c, "asr-failed", "the recogniser stopped");
			return;
		}
		i += k;
	}
}

static void audio_stop(struct client *c)
{
	struct stt_result r;
	struct hearth_err err = { 0 };
	const char *text;
	int rc;

	if (!c->hearing)
		return;
	push_float(c, NULL, 0);
	rc = hearing_end(c->hearing, &r, &err);
	c->hearing = NULL;
	resample_free(c->resample);
	c->resample = NULL;
	if (rc) {
		say_error(c, "asr-failed", err.text);
		return;
	}
	/* Nothing heard, or no command: an empty transcript, which clients know. */
	text = r.verdict == STT_COMMAND ? r.text : "";
	if (c->stream_text && c->partial[0] && !strncmp(text, c->partial, strlen(c->partial)) && text[strlen(c->partial)])
		say_event(c, "transcript-chunk", json_pack("{s:s}", "text", text + strlen(c->partial)), NULL, 0);
	say_event(c, "transcript", json_pack("{s:s,s:s}", "text", text, "language", "en"), NULL, 0);
	if (c->stream_text)
		say_event(c, "transcript-stop", json_object(), NULL, 0);
}

/* -- speaking ---------------------------------------------------------------------- */

static int on_pcm(void *arg, const int16_t *pcm, size_t n)
{
	struct client *c = arg;
	int rate = speech_rate(c->w->sp);

	if (atomic_load(&c->w->stopping))
		return 1;
	if (!c->audio_open) {
		c->audio_open = true;
		if (say_event(c, "audio-start", json_pack("{s:i,s:i,s:i}", "rate", rate, "width", 2, "channels", 1), NULL, 0))
			return 1;
	}
	while (n) {
		size_t k = n < 1024 ? n : 1024;

		if (say_event(c, "audio-chunk", json_pack("{s:i,s:i,s:i}", "rate", rate, "width", 2, "channels", 1), pcm, k * 2))
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
	int rc = speech_say(c->w->sp, k->spoken, 1.0, WAIT_MS, on_pcm, c, &err);

	if (rc && rc != -ECANCELED)
		say_error(c, "tts-failed", err.text);
	return rc;
}

static void close_audio(struct client *c)
{
	int rate = speech_rate(c->w->sp);

	/* Home Assistant takes the format from the first audio-start: give one even for silence. */
	if (!c->audio_open)
		say_event(c, "audio-start", json_pack("{s:i,s:i,s:i}", "rate", rate, "width", 2, "channels", 1), NULL, 0);
	say_event(c, "audio-stop", json_object(), NULL, 0);
	c->audio_open = false;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool can_speak(struct client *c)
{
	if (!speech_speaks(c->w->sp))
		say_error(c, "no-tts", "text to speech is not switched on here");
	else if (!c->chunker && chunker_new(NULL, on_phrase, c, &c->chunker))
		say_error(c, "out-of-memory", "out of memory");
	else
		return true;
	return false;
}

static void push_text(struct client *c, const char *text)
{
	size_t n = strlen(text);

	if (c->text_bytes + n > MAX_TEXT) {
		if (c->text_bytes <= MAX_TEXT)
			say_error(c, "too-long", "the text is over 64 KiB; the rest is not spoken");
		c->text_bytes = MAX_TEXT + 1;
		return;
	}
	c->text_bytes += n;
	if (chunker_push(c->chunker, text, n, now_ns()))
		chunker_reset(c->chunker);
}

static void synthesize(struct client *c, const char *text)
{
	/* Inside a stream this is a copy for old servers: spoken, it would come twice. */
	if (c->streaming || !can_speak(c))
		return;
	c->text_bytes = 0;
	push_text(c, text ? text : "");
	chunker_finish(c->chunker);
	close_audio(c);
}

/* -- one connection ------------------------------------------------------------------ */

static void take_event(struct client *c, const struct wyoming_event *e)
{
	const char *text = json_string_value(json_object_get(e->data, "text"));

	if (!strcmp(e->type, "describe")) {
		describe(c);
	} else if (!strcmp(e->type, "ping")) {
		say_event(c, "pong", text ? json_pack("{s:s}", "text", text) : json_object(), NULL, 0);
	} else if (!strcmp(e->type, "transcribe")) {
		c->stream_text = true;
	} else if (!strcmp(e->type, "audio-start")) {
		audio_start(c, e->data);
	} else if (!strcmp(e->type, "audio-chunk")) {
		audio_chunk(c, e);
	} else if (!strcmp(e->type, "audio-stop")) {
		audio_stop(c);
	} else if (!strcmp(e->type, "synthesize")) {
		synthesize(c, text);
	} else if (!strcmp(e->type, "synthesize-start")) {
		c->streaming = can_speak(c);
		c->text_bytes = 0;
	} else if (!strcmp(e->type, "synthesize-chunk")) {
		if (c->streaming && text)
			push_text(c, text);
	} else if (!strcmp(e->type, "synthesize-stop")) {
		if (c->streaming) {
			chunker_finish(c->chunker);
			close_audio(c);
		}
		c->streaming = false;
		say_event(c, "synthesize-stopped", json_object(), NULL, 0);
	}
	/* Anything else is of a newer protocol, or for somebody else: ignored, as the protocol asks. */
}

static void *client_thread(void *arg)
{
	struct client *c = arg;
	struct wyoming_event e;
	char buf[16384];
	const char *why = "";
	ssize_t n = 0;
	int rc = 0;

	while (!c->gone && !rc && (n = recv(c->fd, buf, sizeof(buf), 0)) > 0) {
		rc = wyoming_feed(c->in, buf, (size_t)n, &why);
		while (!c->gone && wyoming_next(c->in, &e)) {
			take_event(c, &e);
			wyoming_event_done(&e);
		}
	}
	if (rc == -EBADMSG)
		say_error(c, "bad-event", why);
	hearing_over(c);
	chunker_free(c->chunker);
	c->chunker = NULL;
	wyoming_reader_free(c->in);
	shutdown(c->fd, SHUT_RDWR);
	pthread_mutex_lock(&c->w->lock);
	close(c->fd);
	c->fd = -1;
	c->live = false;
	pthread_mutex_unlock(&c->w->lock);
	return NULL;
}

static void admit(struct wyoming *w, int fd)
{
	struct client *c = NULL;

	pthread_mutex_lock(&w->lock);
	for (int i = 0; i < MAX_CLIENTS && !c; i++)
		if (!w->clients[i].live)
			c = &w->clients[i];
	if (c) {
		if (c->thread)
			pthread_join(c->thread, NULL);
		pthread_mutex_destroy(&c->out);
		memset(c, 0, sizeof(*c));
		pthread_mutex_init(&c->out, NULL);
		c->w = w;
		c->fd = fd;
		if (wyoming_reader_new(&c->in) == 0) {
			c->live = true;
			if (pthread_create(&c->thread, NULL, client_thread, c)) {
				wyoming_reader_free(c->in);
				c->live = false;
				c->thread = 0;
			}
		}
	}
	/* Full: the connection is closed at once, which a client sees and retries. */
	if (!c || !c->live)
		close(fd);
	pthread_mutex_unlock(&w->lock);
}

static void *accept_thread(void *arg)
{
	struct wyoming *w = arg;
	struct pollfd p[2] = { { .fd = w->fd, .events = POLLIN }, { .fd = w->wake[0], .events = POLLIN } };

	while (poll(p, 2, -1) >= 0 || errno == EINTR) {
		if (atomic_load(&w->stopping))
			break;
		if (p[0].revents & POLLIN) {
			int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC);

			if (fd >= 0)
				admit(w, fd);
		}
	}
	return NULL;
}

int wyoming_start(const struct config *cfg, struct speech *sp, struct wyoming **ret, struct hearth_err *err)
{
	struct wyoming *w = calloc(1, sizeof(*w));
	int fd;

	if (!w)
		return err_set(err, -ENOMEM, "out of memory");
	fd = cfg->wyoming.unix_path ? listen_unix(cfg->wyoming.unix_path, err) :
	     listen_tcp(cfg->wyoming.host, cfg->wyoming.port, &w->port, err);
	if (fd < 0) {
		free(w);
		return fd;
	}
	w->cfg = cfg;
	w->sp = sp;
	w->fd = fd;
	pthread_mutex_init(&w->lock, NULL);
	if (pipe2(w->wake, O_CLOEXEC) || pthread_create(&w->thread, NULL, accept_thread, w)) {
		close(fd);
		free(w);
		return err_set(err, -EAGAIN, "no thread for the Wyoming server");
	}
	*ret = w;
	return 0;
}

uint16_t wyoming_port(const struct wyoming *w)
{
	return w->port;
}

void wyoming_stop(struct wyoming *w)
{
	if (!w)
		return;
	atomic_store(&w->stopping, true);
	if (write(w->wake[1], "x", 1) < 0)
		shutdown(w->fd, SHUT_RDWR);
	pthread_join(w->thread, NULL);
	pthread_mutex_lock(&w->lock);
	for (int i = 0; i < MAX_CLIENTS; i++)
		if (w->clients[i].live)
			shutdown(w->clients[i].fd, SHUT_RDWR);
	pthread_mutex_unlock(&w->lock);
	for (int i = 0; i < MAX_CLIENTS; i++) {
		if (w->clients[i].thread)
			pthread_join(w->clients[i].thread, NULL);
		pthread_mutex_destroy(&w->clients[i].out);
	}
	close(w->fd);
	close(w->wake[0]);
	close(w->wake[1]);
	if (w->cfg->wyoming.unix_path)
		unlink(w->cfg->wyoming.unix_path);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
