/* SPDX-License-Identifier: MIT */
/*
 * Speech to text. One thread decodes while audio arrives; the caller pushes
 * samples and is held back only when the queue (8 s of audio) is full.
 *
 *   stt_begin(id) ; stt_push ... ; stt_end()  ->  partial* , final
 *
 * Callbacks come on the engine's thread, in order, each with the utterance's
 * id. Every begun utterance gets exactly one final, also when it is cancelled
 * (STT_CANCELLED) or fails (STT_FAILED).
 *
 * The recogniser knows the sentences of this home and no others. What does not
 * sound like one of them is STT_REJECTED ("not a command"), what holds no
 * speech is STT_NOTHING ("heard nothing"): it never invents a sentence.
 */
#ifndef HEARTH_VOICE_STT_H
#define HEARTH_VOICE_STT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "voice/account.h"

#define STT_RATE 16000
#define STT_TEXT 512

enum stt_verdict {
	STT_COMMAND,
	STT_REJECTED,
	STT_NOTHING,
	STT_CANCELLED,
	STT_FAILED,
};

struct stt_result {
	uint64_t id;
	enum stt_verdict verdict;
	char text[STT_TEXT];    /* lower case; of REJECTED, what it would have been */
	float score;            /* below the threshold it is no command, unless the words are very likely */
	int64_t samples;        /* audio heard */
	int64_t speech_end;     /* last sample that belongs to a word, -1: none */
	int64_t end_ns;         /* CLOCK_MONOTONIC when stt_end was called */
	int64_t final_ns;       /* and when this result was ready */
	struct hearth_err err;  /* of FAILED */
};

struct stt_partial {
	uint64_t id;
	const char *text;   /* valid during the call */
	int64_t samples;    /* audio decoded so far */
	float ends;         /* how probable it is that a command of this home ends here */
	bool asked;         /* the answer to stt_look() */
};

struct stt_events {
	void (*partial)(void *ctx, const struct stt_partial *p); /* may be NULL; on change, and when asked */
	void (*final)(void *ctx, const struct stt_result *r);
	void *ctx;
};

struct stt_options {
	const char *acoustic;   /* folder of the acoustic model; NULL: the distribution's */
	const char *lm;         /* the home's language model (stt_model.h) */
	const char *dict;       /* its dictionary */
	float threshold;        /* score below which it is no command */
	int partial_ms;         /* between looks at the partial text; 0: none */
	bool unsure;            /* the detector before it takes any loud sound for speech: the sound must be more like a voice (ear.h) */
	int max_s;              /* longest utterance; a longer one is no command */
};

void stt_defaults(struct stt_options *o);

struct stt;

/* Whether the files that @o names are there; a language model or dictionary that is NULL is not asked for. */
int stt_check(const struct stt_options *o, struct hearth_err *err);
/* -ENOENT with the file named, -EBADMSG, -ENOSPC (budget), -ENOMEM. */
int stt_open(const struct stt_options *o, const struct voice_account *acc,
	     const struct stt_events *ev, struct stt **ret, struct hearth_err *err);
void stt_close(struct stt *s); /* cancels, joins; NULL is legal */

int stt_begin(struct stt *s, uint64_t id);
/* 0, -ECANCELED, -EINVAL without begin. Blocks when the queue is full. */
int stt_push(struct stt *s, const int16_t *pcm, size_t n);
/* A partial comes, changed or not, when all that was pushed so far is decoded. */
int stt_look(struct stt *s);
/* Also after a cancel: it closes the utterance, and the final comes. */
int stt_end(struct stt *s);
void stt_cancel(struct stt *s); /* any thread; the running utterance ends CANCELLED */

/*
 * How long to wait in a pause before the utterance is taken as ended, by how
 * the text so far ends: short after a whole command, long after "turn on the".
 */
int stt_end_wait_ms(float ends);

const char *stt_verdict_name(enum stt_verdict v); /* "command", "not a command", "heard nothing", ... */
size_t stt_footprint(const struct stt *s);
size_t stt_predict(const struct stt_options *o);

#endif
