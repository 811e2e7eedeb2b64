/* SPDX-License-Identifier: MIT */
/*
 * The whole assistant in one process, under budgets: the pools and tenants,
 * the home, the model, and the speech engines, opened in the order of the
 * memory plan, which is made before anything loads.
 *
 *   tenant  class  pools            what
 *   llm     llm    weights kv scratch account   the language model
 *   stt     stt    account          PocketSphinx
 *   tts     tts    account          flite (or espeak-ng)
 *   vad     vad    account          Silero, or the energy detector
 *   audio   other  account          rings, history, open sound devices
 */
#ifndef HEARTH_VOICE_VOICE_H
#define HEARTH_VOICE_VOICE_H

#include <jansson.h>

#include "base/err.h"
#include "dev/hearth.h"
#include "engine/engine.h"
#include "voice/sched.h"

enum voice_tenant { VOICE_LLM, VOICE_STT, VOICE_TTS, VOICE_VAD, VOICE_AUDIO, VOICE_TENANTS };

const char *voice_tenant_name(enum voice_tenant t);

struct voice_opts {
	const char *model;         /* GGUF */
	const char *home;          /* YAML */
	const char *here;          /* area of the microphone, or NULL */
	const char *vad_weights;   /* Silero's; NULL or missing: the energy detector, and voice_vad_note() */
	const char *stt_dir;       /* folder for the recogniser's model of the home; made when missing */
	const char *stt_extra;     /* further sentences for it, one a line; may be NULL */
	const char *voice;         /* of the answer; NULL: the default */
	enum hearth_backend backend;
	const char *compute;       /* backend of the engine, NULL: auto */
	uint32_t ctx, threads;     /* 0: 4096, or what the model was trained for; one per core */
	enum kv_type kv;
	int end_wait_ms;           /* silence that ends a turn; 0: the detector's default */
	bool listen, speak;        /* false: without VAD and STT; without TTS */
	struct sched_opts sched;
	uint64_t max[VOICE_TENANTS][HEARTH_KIND_COUNT]; /* budgets asked for; 0: by the plan */
	void (*progress)(void *arg, uint64_t done, uint64_t total);
	void *progress_arg;
};

void voice_defaults(struct voice_opts *opts);

struct voice_plan {
	struct engine_plan engine;
	uint64_t bytes[VOICE_TENANTS][HEARTH_KIND_COUNT];
	struct hearth_budget budget[VOICE_TENANTS][HEARTH_KIND_COUNT];
	uint64_t pool[HEARTH_KIND_COUNT];
	uint64_t total;
	uint32_t home_tokens;      /* of the home before the first question; 0: not known */
	bool fits;
	char why_not[HEARTH_ERR_TEXT]; /* a sentence, when it does not */
};

/* Reads the head of the model only. 0 also when it does not fit. */
int voice_plan(const struct voice_opts *opts, struct voice_plan *ret_plan, struct hearth_err *err);

/* Whether the home leaves room for a question and its answer: -E2BIG with the numbers where it does not. */
int voice_plan_home(const struct voice_opts *opts, const struct voice_plan *plan, struct hearth_err *err);

/* What failed, for the program's exit code. */
enum voice_part { VOICE_PART_NONE, VOICE_PART_HERE, VOICE_PART_HOME, VOICE_PART_MODEL, VOICE_PART_FIT, VOICE_PART_DEVICE, VOICE_PART_SPEECH };

struct voice;

int voice_open(const struct voice_opts *opts, struct voice **ret_voice, enum voice_part *ret_part, struct hearth_err *err);
void voice_close(struct voice *v); /* NULL is legal */

struct sched *voice_sched(struct voice *v);
struct home *voice_home(struct voice *v);
struct hearth *voice_hearth(struct voice *v);
struct engine *voice_engine(struct voice *v);
const struct voice_plan *voice_the_plan(const struct voice *v);
const char *voice_vad_note(const struct voice *v); /* why it is not Silero; NULL when it is */
const char *voice_stt_note(const struct voice *v); /* words that cannot be heard; NULL when none */
int voice_rate(const struct voice *v);             /* of the answer's samples */

/* A new conversation, over the home as it is. */
int voice_restart(struct voice *v, struct hearth_err *err);

/* A new conversation over the home as its file says. */
int voice_reset(struct voice *v, struct hearth_err *err);

/* [{"tenant", "pool", "min", "low", "high", "max", "current", "peak", "predicted"}] of what is charged. */
json_t *voice_tenants(struct voice *v);

#endif
