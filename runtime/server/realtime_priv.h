/* SPDX-License-Identifier: MIT */
/*
 * Inside of a realtime session, shared by its four files: realtime.c (events
 * and life), realtime_items.c (what is sent, the conversation),
 * realtime_input.c (audio in), realtime_answer.c (a response, on its thread).
 */
#ifndef HEARTH_SERVER_REALTIME_PRIV_H
#define HEARTH_SERVER_REALTIME_PRIV_H

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "voice/stt.h"

struct hearing;
struct resample;
struct service;
struct vad;
struct websocket;

#define RATE         24000
#define MAX_MESSAGE  (24u << 20)      /* 15 MiB of audio in base64, and its JSON */
#define MAX_BUFFER   (RATE * 2 * 120) /* of input that was never committed */
#define MAX_ITEMS    2048
#define MAX_SESSIONS 32
#define WAIT_MS      30000
#define HISTORY      (STT_RATE * 2)

struct rt_item {
	char id[40];
	char *role;                /* "user", "assistant", "system", "tool" */
	char *text;
	char *call_id, *name, *arguments;  /* of a function call or its output */
	double audio_ms;           /* of an assistant's item: sound that was made for it */
};

struct rt_session {
	struct service *s;
	struct websocket *ws;
	int fd, who;
	pthread_mutex_t lock;      /* items, counters, response */
	char id[40];
	unsigned int next;
	bool beta;                 /* the older event names */
	/* settings */
	json_t *conf;              /* as last said to the client */
	json_t *tools;
	char *instructions;
	double temperature;
	uint32_t max_tokens;
	bool server_vad, create_response, interrupt, audio_out;
	double silence_ms, threshold;
	/* conversation */
	struct rt_item *items;
	size_t n_items, cap_items;
	/* input */
	struct resample *down;     /* 24 to 16 kHz */
	struct vad *vad;
	int16_t ring[HISTORY];
	int64_t pushed, sent;      /* 16 kHz samples */
	int16_t *buffer;           /* manual mode: what was appended since the last commit */
	size_t n_buffer, cap_buffer;
	struct hearing *hearing;
	char turn_item[40];
	/* response */
	pthread_t thread;
	bool joinable;
	atomic_bool running, cancel;
	char response_id[40];
	bool shutting;
};

/* realtime_items.c */
void rt_make_id(struct rt_session *c, const char *prefix, char to[40]);
void rt_send_event(struct rt_session *c, const char *type, json_t *o);   /* steals @o; NULL sends nothing */
void rt_send_error(struct rt_session *c, const json_t *event, const char *code, const char *param, const char *text);
const char *rt_name_of(const struct rt_session *c, const char *ga);      /* the name this client knows */
json_t *rt_item_json(const struct rt_item *i);
void rt_item_done(struct rt_item *i);
/* Lock held. NULL when the conversation is full or memory ran out. */
struct rt_item *rt_item_add(struct rt_session *c, const char *id, const char *role, const char *text);
struct rt_item *rt_item_find(struct rt_session *c, const char *id);
void rt_set_text(char **to, const json_t *j);

/* realtime_answer.c */
void rt_begin_response(struct rt_session *c, const json_t *event);
void rt_end_response(struct rt_session *c, bool cancel);                 /* waits for it */

/* realtime_input.c */
void rt_take_audio(struct rt_session *c, const json_t *event);
void rt_commit(struct rt_session *c, const json_t *event);
int rt_open_vad(struct rt_session *c, struct hearth_err *err);

#endif
