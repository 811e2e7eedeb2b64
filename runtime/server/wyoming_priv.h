/* SPDX-License-Identifier: MIT */
/*
 * Inside of the Wyoming server: wyoming.c (addresses, connections, events),
 * wyoming_out.c (what is sent), wyoming_info.c (describe), wyoming_hear.c
 * (audio in), wyoming_speak.c (audio out), wyoming_handle.c (text in, an
 * answer or intents out).
 */
#ifndef HEARTH_SERVER_WYOMING_PRIV_H
#define HEARTH_SERVER_WYOMING_PRIV_H

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/config.h"
#include "server/wyoming_frame.h"
#include "voice/offset.h"
#include "voice/stt.h"

#define WYOMING_CLIENTS 128
#define WAIT_MS      30000           /* for an engine that another client uses */
#define SEND_MS      30000           /* a client that takes nothing for so long is dropped */
#define STOP_MS      3000            /* for answers under way, and their readers, when the server stops */
#define STALL_MS     15000           /* half an event, or a hearing without audio */
#define IDLE_MS      (30 * 60 * 1000) /* a connection on which nothing happens */
#define MAX_SECONDS  (60 * 60)       /* of audio in one utterance */
#define MAX_TEXT     (64u << 10)     /* of one streamed synthesis */
#define MAX_BACKLOG  (32u << 20)     /* of what a client has not taken yet */

struct chunker;
struct gate;
struct resample;
struct service;
struct wake;
struct wyoming;

struct client {
	struct wyoming *w;
	int fd;
	unsigned int services;       /* enum wyoming_service bits of its address */
	bool live;                   /* the server's lock */
	pthread_t thread;
	struct wyoming_reader *in;
	/* out: partials come from the recogniser's thread, sound from the voice's */
	pthread_mutex_t out;
	atomic_bool gone;
	bool told;                   /* that the server stops */
	char *backlog;               /* what did not go at once */
	size_t n_backlog, cap_backlog;
	/* hearing */
	struct gate *gate;
	struct offset offset;        /* of what the wake word is listened for in */
	char *said;                  /* what was heard in the stream so far; NULL: nothing */
	struct hearth_err trouble;   /* the first that the recogniser had in it; code 0: none */
	bool failed;                 /* an utterance that was refused: its end is still answered */
	int rate, width, channels;
	struct resample *resample;
	double heard;                /* samples of the source */
	bool stream_text, text_open;
	char partial[STT_TEXT];
	/* listening for the wake word, instead of hearing */
	bool detecting, woke;
	struct wake *wake;
	/* speaking in a stream */
	bool streaming, audio_open, wrong_voice;
	struct chunker *chunker;
	size_t text_bytes;
};

struct assistant;

struct wyoming {
	const struct config *cfg;
	struct service *service;
	struct assistant *assistant; /* NULL: nothing to handle text with */
	int fd[CONFIG_MAX_WYOMING], wake[2];   /* wake[0] is readable from wyoming_stop() on */
	uint16_t port[CONFIG_MAX_WYOMING];
	unsigned int n;              /* addresses */
	struct zeroconf *zeroconf;
	void (*said)(void *arg, const char *line); /* to the log, from any thread */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t ended;        /* a client is not live any more */
	struct client clients[WYOMING_CLIENTS];
	atomic_bool stopping;
};

/* wyoming_out.c */
/* Steals @data. Blocks until it is sent, and what was left before it. */
int say_event(struct client *c, const char *type, json_t *data, const void *payload, size_t n_payload);
/* The same, never waiting for the client: what does not go at once is kept. */
int say_soon(struct client *c, const char *type, json_t *data, const void *payload, size_t n_payload);
int say_rest(struct client *c);      /* sends what was kept */
void say_error(struct client *c, const char *code, const char *text);
void say_stopping(struct client *c); /* once */

/* wyoming_info.c */
void describe(struct client *c);

/* wyoming_hear.c */
void detect(struct client *c, const json_t *d);
void audio_start(struct client *c, const json_t *d);
void audio_chunk(struct client *c, const struct wyoming_event *e);
void audio_stop(struct client *c);
void hearing_over(struct client *c); /* drops what is under way */

/* wyoming_speak.c */
void synthesize(struct client *c, const json_t *d);
void synthesize_start(struct client *c, const json_t *d);
void synthesize_chunk(struct client *c, const char *text);
void synthesize_stop(struct client *c);
/* Milliseconds until a phrase is due although no text came; -1: none is. */
int speak_due(struct client *c);
void speak_tick(struct client *c);

/* wyoming_handle.c */
int assistant_open(const struct config *cfg, struct service *s, struct assistant **ret, struct hearth_err *err);
void assistant_close(struct assistant *a);
/* An answer to @d's text; @intents: only intents will do. */
void handle_text(struct client *c, const json_t *d, bool intents);

#endif
