/* SPDX-License-Identifier: MIT */
/*
 * Inside of a realtime session, shared by its five files: realtime.c (events
 * and life), realtime_items.c (what is sent, the conversation),
 * realtime_input.c (audio in), realtime_ask.c (what may be asked of a
 * response), realtime_answer.c (a response, on its thread).
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

struct gate;
struct resample;
struct service;
struct websocket;

#define RATE         24000
#define MAX_MESSAGE  (24u << 20)      /* 15 MiB of audio in base64, and its JSON */
#define MAX_BUFFER   (STT_RATE * 2 * 120) /* of input that was never committed */
#define MAX_ITEMS    2048
#define MAX_TEXTS    (8u << 20)       /* bytes in all items: more than any context */
#define MAX_SESSIONS 32
#define WAIT_MS      30000
#define STALL_MS     10000            /* audio may pause so long inside a turn */

struct rt_item {
	char id[40];
	char *role;                /* "user", "assistant", "system", "tool" */
	char *text;
	char *call_id, *name, *arguments;  /* of a function call or its output */
	bool spoken;               /* its text was heard or is said, not typed */
	/* of an assistant's item that is spoken: where in the text the sound stands */
	double audio_ms;           /* sound that was made for it */
	struct rt_mark { size_t bytes; double ms; } *marks;  /* after each phrase */
	size_t n_marks;
	bool cut;                  /* truncated: what comes later was never heard */
};

/* What a response is to be, copied when it begins: settings may change meanwhile. */
struct rt_ask {
	char *instructions;        /* NULL: none */
	json_t *tools;             /* array */
	char *tool;                /* the one to call, NULL: any */
	enum rt_choice { RT_AUTO, RT_NONE, RT_REQUIRED } choice;
	double temperature;
	uint32_t max_tokens;       /* 0: what fits */
	bool audio;
	json_t *metadata;
};

struct rt_session {
	struct service *s;
	struct websocket *ws;
	int fd, who;
	pthread_mutex_t lock;      /* items, counters, response */
	char id[40];
	unsigned int next;
	bool beta;                 /* the older event names */
	/* settings: the reading thread's; a response has its copy */
	json_t *conf;              /* as last said to the client */
	json_t *tools, *tool_choice;
	char *instructions;
	double temperature;
	uint32_t max_tokens;
	bool server_vad, create_response, interrupt, audio_out;
	double silence_ms, threshold, padding_ms;
	/* conversation */
	struct rt_item *items;
	size_t n_items, cap_items;
	/* input */
	struct resample *down;     /* 24 to 16 kHz */
	struct gate *gate;         /* what is said goes through it, as it comes or at a commit; NULL: it did not open */
	int16_t *buffer;           /* manual mode: what was appended since the last commit */
	size_t n_buffer, cap_buffer;
	bool committed;            /* what is heard now was committed: no answer of its own */
	char *said;                /* manual mode: what was heard in the buffer so far */
	enum stt_verdict verdict;  /* of the buffer, where nothing was said */
	struct hearth_err trouble;
	int64_t audio_at;          /* ms: when audio last came */
	char partial[STT_TEXT];    /* the recogniser's thread */
	char turn_item[40];
	/* response */
	pthread_t thread;
	bool joinable;
	atomic_bool running, cancel;
	char response_id[40];
	struct rt_ask ask;
	atomic_bool interrupted;   /* cancelled by speech, not by the client */
	atomic_bool shutting;
};

/* realtime.c */
struct rt_session *rt_session_new(struct service *s, int who, bool beta); /* NULL: no memory */
void rt_session_free(struct rt_session *c);
void rt_take_event(struct rt_session *c, const char *text, size_t n);

/* realtime_items.c */
void rt_make_id(struct rt_session *c, const char *prefix, char to[40]);
void rt_send_event(struct rt_session *c, const char *type, json_t *o);   /* steals @o; NULL sends nothing */
void rt_send_error(struct rt_session *c, const json_t *event, const char *code, const char *param, const char *text);
const char *rt_name_of(const struct rt_session *c, const char *ga);      /* the name this client knows */
json_t *rt_item_json(const struct rt_item *i);
void rt_item_done(struct rt_item *i);
/*
 * Lock held. Behind the item @after, or last when it is NULL. NULL when the
 * conversation is full or memory ran out.
 */
struct rt_item *rt_item_add(struct rt_session *c, const char *id, const char *after, const char *role, const char *text);
bool rt_room(const struct rt_session *c, size_t more);                   /* lock held: for so many bytes of text */
struct rt_item *rt_item_find(struct rt_session *c, const char *id);
/* The id of the item before @id, or of the last when there is no @id (yet); null before the first. */
json_t *rt_previous(struct rt_session *c, const char *id);
/* Tells of an item that came into the conversation (@done: and is whole), or is whole now (@done alone). */
enum { RT_ADDED = 1, RT_DONE = 2 };
void rt_send_item(struct rt_session *c, json_t *item, int what);
void rt_set_text(char **to, const json_t *j);

/* realtime_ask.c */
/* What a client may say of an answer; absent or null leaves *to. False: refused, the error is sent. */
bool rt_temperature(struct rt_session *c, const json_t *event, const json_t *v, const char *param, double *to);
bool rt_max_tokens(struct rt_session *c, const json_t *event, const json_t *v, const char *param, uint32_t *to);
/* *ret_name is a string of @v, or NULL where no function is named. */
bool rt_tool_choice(struct rt_session *c, const json_t *event, const json_t *v, const char *param, enum rt_choice *ret, const char **ret_name);
/* OpenAI's tools as the grammar wants them; NULL and a sentence when one cannot be enforced. */
json_t *rt_tools(const json_t *tools, struct hearth_err *err);
/* The session's settings, with what the event says over them. False: refused, the error is sent. */
bool rt_read_ask(struct rt_session *c, const json_t *event, struct rt_ask *k);
void rt_ask_done(struct rt_ask *k);

/* realtime_answer.c */
void rt_begin_response(struct rt_session *c, const json_t *event);
void rt_end_response(struct rt_session *c, bool cancel);                 /* waits for it */

/* realtime_input.c */
void rt_take_audio(struct rt_session *c, const json_t *event);
void rt_commit(struct rt_session *c, const json_t *event);
/* Lets go of a recogniser that gets no audio any more. */
void rt_look_after_hearing(struct rt_session *c);
int rt_open_gate(struct rt_session *c, struct hearth_err *err);

#endif
