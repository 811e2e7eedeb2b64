/* SPDX-License-Identifier: MIT */
/*
 * The turn scheduler: sound in, a changed home and sound out.
 *
 *   source thread   audio -> VAD -> STT queue            (file or microphone)
 *   STT thread      decodes while audio arrives          (stt.h)
 *   turn thread     the caller of sched_turn(): decides, and does nothing long
 *   engine worker   prompt and tokens                    (engine.h)
 *   TTS thread      phrase 1 while the model writes 2    (tts.h)
 *   play thread     ring -> WAV file and sound card
 *
 * Between them are bounded queues; a full one holds its writer back.
 *
 * What may happen early: the transcript is asked for in the first pause, and
 * on a transcript the model reads and writes before the end of the turn is
 * decided. What never does: until it is decided nothing is spoken, no tool is
 * called, and nothing enters the conversation. Speech that goes on throws the
 * early work away.
 *
 * One turn at a time. sched_stop() may come from any thread, or from a signal
 * handler's thread, at any moment.
 */
#ifndef HEARTH_VOICE_SCHED_H
#define HEARTH_VOICE_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/err.h"
#include "engine/engine.h"
#include "home/home.h"
#include "token/chat.h"
#include "voice/audio.h"
#include "voice/chunker.h"
#include "voice/stt.h"
#include "voice/talk.h"
#include "voice/trace.h"
#include "voice/tts.h"
#include "voice/vad.h"

struct sched_opts {
	bool paced;              /* a file is heard at the speed of speech; false: as fast as it can be read */
	bool adapt;              /* the wait for the end depends on how the text ends */
	bool early;              /* work ahead in the pause, as above */
	uint32_t early_ms;       /* pause after which the transcript is asked for */
	uint32_t patience_ms;    /* silence at the start after which nothing was heard */
	uint32_t longest_ms;     /* longest utterance */
	uint32_t max_tokens;     /* of one answer of the model */
	uint32_t max_rounds;     /* answers with tool calls in one turn */
	struct chunker_opts chunk;
	struct sampler_params sample;
};

void sched_defaults(struct sched_opts *opts); /* paced, early after 64 ms; 30 s, 20 s; 256 tokens, 4 rounds; greedy */

struct sched;

int sched_new(const struct sched_opts *opts, struct sched **ret_sched, struct hearth_err *err);
void sched_free(struct sched *sched);

/* What the speech engines are opened with, before sched_attach(). */
const struct stt_events *sched_stt_events(struct sched *sched);
const struct tts_events *sched_tts_events(struct sched *sched);

struct sched_parts {
	struct home *home;
	struct engine *engine;
	struct chat *chat;
	struct talk *talk;
	struct vad *vad;
	struct stt *stt;
	struct tts *tts;
};

/* Opens a session and warms the prompt of the home, so that the first turn finds it read. */
int sched_attach(struct sched *sched, const struct sched_parts *parts, struct hearth_err *err);

/* Forgets the conversation: a new one over the same home. */
int sched_restart(struct sched *sched, struct talk *talk, struct hearth_err *err);

/* Another home, before sched_restart() with a talk about it. */
void sched_set_home(struct sched *sched, struct home *home);

/* Where the answer goes; each may be NULL. At the rate of the speech engine. */
struct sched_outs {
	struct audio_out *file;
	struct audio_out *card;
};

enum turn_end {
	TURN_ANSWERED,
	TURN_NOTHING,      /* no speech */
	TURN_REJECTED,     /* speech, but no command of this home */
	TURN_CANCELLED,    /* sched_stop() */
	TURN_FAILED,       /* result.err says why */
};

const char *turn_end_name(enum turn_end end); /* "answered", "heard nothing", ... */

struct turn_result {
	enum turn_end end;
	struct hearth_err err;      /* of FAILED; of NOTHING and REJECTED a sentence too */
	char transcript[STT_TEXT];
	float score;
	char *reply;                /* as written, "" when there is none */
	json_t *calls;              /* [{"name", "arguments", "result", "changes"}] in order */
	json_t *phrases;            /* [{"text", "spoken", "why"}] */
	bool fallback;              /* the model said nothing; the reply is the scheduler's own */
	enum gen_finish finish;     /* of the last answer of the model */
	uint32_t n_prompt, n_cached, n_out; /* summed over the answers of the turn */
	uint32_t discarded;         /* early answers that were thrown away */
	bool early_used;            /* the answer began before the end was decided */
	int forgot;                 /* earlier turns dropped because the context was full */
	double heard_s, unheard_s;  /* audio taken; and left in the file after the turn, -1: not known */
	uint64_t samples_out;
	struct trace *trace;
};

void turn_result_free(struct turn_result *result);

/*
 * One turn from @in, to its last sample out. Returns 0 whenever there is a
 * result, also when it is TURN_FAILED; *ret_result must be freed.
 */
int sched_turn(struct sched *sched, struct audio_in *in, const struct sched_outs *outs,
	       struct turn_result *ret_result, struct hearth_err *err);

/* The same from text, without listening: the model, the home and the voice. */
int sched_turn_text(struct sched *sched, const char *text, const struct sched_outs *outs,
		    struct turn_result *ret_result, struct hearth_err *err);

/* Ends the running turn as TURN_CANCELLED, and every later one at once. */
void sched_stop(struct sched *sched);

/* Whether a text only answers or goes on ("all", "yes"): a command after a turn, a noise out of the blue. */
bool sched_bare_answer(const char *text);

/* Bytes of its own: rings, history, queues. */
size_t sched_predict(const struct sched_opts *opts);

#endif
