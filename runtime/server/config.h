/* SPDX-License-Identifier: MIT */
/* hearthd's configuration: one YAML file, every key checked, with line and column. */
#ifndef HEARTH_SERVER_CONFIG_H
#define HEARTH_SERVER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define CONFIG_MAX_KEYS 64
#define CONFIG_MAX_WYOMING 8
#define CONFIG_MAX_TENANTS 16

struct config_key {
	char *name;                /* who; also the tenant's name in the log */
	char *secret;              /* the key itself */
	int prio;                  /* enum gen_prio */
	uint32_t max_tokens;       /* of one answer; 0: no limit but the context */
	uint32_t concurrent;       /* requests at once; 0: no limit */
	uint32_t per_minute;       /* requests in a minute; 0: no limit */
	uint64_t kv_max;           /* bytes of cache for all of its requests; 0: no limit */
	int tenant;                /* index of .tenants whose budget it lives under; -1: none of its own */
};

/* A tenant of hearth under whose budget the requests of some keys run. */
struct config_tenant {
	char *name;
	uint64_t kv_min, kv_max;   /* in the pool of sessions; 0: not said */
};

struct config_listen {
	char *host;
	uint16_t port;
	char *unix_path;
	char *tls_cert, *tls_key;  /* files */
	char *cors;
	bool on;
};

enum wyoming_service { WYOMING_ASR = 1, WYOMING_TTS = 2, WYOMING_HANDLE = 4, WYOMING_INTENT = 8, WYOMING_WAKE = 16, WYOMING_ALL = 31 };

struct config_wyoming {
	struct config_listen at;
	unsigned int services;     /* enum wyoming_service bits */
};

struct config {
	/* model: */
	char *model, *model_id, *backend, *kv;
	char *embeddings;          /* auto (as the model's file says), mean, last, off */
	uint32_t ctx, sessions, threads, chunk;
	bool thinking;             /* default for requests that do not say */
	bool jump_forward;         /* compute what a grammar forces in one step */
	/* chat: what a conversation begins with that brings no system message of its own */
	char *chat_system;         /* NULL: nothing */
	bool chat_home;            /* the home of speech.home, and what is true there now */
	/* cache: of prompts' beginnings */
	bool cache_on;
	char *cache_file;          /* NULL: it ends with the process */
	uint64_t cache_max;        /* bytes of the file */
	uint32_t cache_seconds;    /* between writes, when something changed */
	/* memory: (0: no limit) */
	uint64_t weights_max, kv_max;
	struct config_tenant tenants[CONFIG_MAX_TENANTS];
	uint32_t n_tenants;
	char *device;              /* NULL: /dev/hearth if it is there */
	bool device_required;
	/* http: */
	struct config_listen http;
	uint64_t max_body;
	uint32_t max_connections, idle_seconds, request_seconds, queue;
	/* speech: */
	bool stt, tts;
	char *voice, *lm, *dict;
	char *wake;                /* phrase to wake up to; NULL: none */
	double wake_threshold;
	char *vad;                 /* weights of the Silero detector; NULL: those in the cache, if any */
	char *home;                /* home file: its names are what the recogniser expects */
	char *cache;               /* folder for what is built once */
	/* wyoming: */
	struct config_listen wyoming;
	struct config_wyoming wy[CONFIG_MAX_WYOMING]; /* the addresses: one for all, or one for each service */
	uint32_t n_wy;
	bool zeroconf;
	char *wy_prompt;           /* what the model is told; NULL: the home, or one sentence */
	bool wy_full_tools;        /* tools with descriptions and types, for a general model */
	/* keys: */
	struct config_key keys[CONFIG_MAX_KEYS];
	uint32_t n_keys;
	/* log: */
	bool log_json;
	char *path;                /* where it was read from, NULL: built in */
};

/*
 * A server that others reach, without a key, is a mistake more often than a
 * wish: -EINVAL says so. config_load() asks it; whoever changes a host or the
 * keys afterwards asks again.
 */
int config_check_open(const struct config *c, struct hearth_err *err);
bool config_is_loopback(const char *host);
/* Asked when all of it is known, the command line too: two servers at one address, a service without what it serves. */
int config_check_serve(const struct config *c, struct hearth_err *err);
/* What holds where the file says nothing. Free with config_done(). */
int config_defaults(struct config *c, struct hearth_err *err);
/*
 * Reads @path over the defaults. -ENOENT, -EACCES, -EINVAL with file, line and
 * column. *ret untouched on failure.
 */
int config_load(const char *path, struct config *ret, struct hearth_err *err);
void config_done(struct config *c);

#endif
