/* SPDX-License-Identifier: MIT */
/*
 * The gate before the recogniser: what the detector takes for speech goes
 * through, one utterance after the other, each on its own; the room before,
 * between and after does not. The recogniser judges an utterance as a whole,
 * so that seconds of a room before a command would be judged with it.
 *
 * One stream of 16 kHz samples, pushed in pieces of any size; what is heard
 * does not depend on how it was cut. The recogniser is taken when speech
 * begins and let go of when it ends.
 */
#ifndef HEARTH_SERVER_GATE_H
#define HEARTH_SERVER_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "voice/stt.h"

/*
 * The end wait of a stream whose end its client says: it ends when a detector
 * of the client's is done. Home Assistant's most patient one waits for 1.25 s;
 * what it takes for one sentence is one.
 */
#define GATE_PATIENT_MS 1300

struct gate;
struct speech;
struct vad_options;

enum gate_stop {
	GATE_HEARD,    /* heard() follows */
	GATE_BLIP,     /* it was too short to be speech */
	GATE_MISSED,   /* the recogniser was not to be had when it began */
	GATE_TAKEN,    /* gate_take() ended it before */
};

/*
 * All but partial() come on the thread that pushes, and must not close the
 * gate. Positions are samples since gate_open() or gate_reset(). All but
 * heard() may be NULL.
 */
struct gate_events {
	void (*started)(void *arg, int64_t at);
	void (*stopped)(void *arg, int64_t at, enum gate_stop how);
	void (*partial)(void *arg, const char *text);  /* on the recogniser's thread, between started and heard */
	/* Of STT_FAILED the reason is in @r->err. */
	void (*heard)(void *arg, int64_t from, int64_t end, const struct stt_result *r);
	void *arg;
};

/* @wait_ms: for a recogniser that others use. Errors as vad_open(). */
int gate_open(struct speech *sp, const struct vad_options *o, int wait_ms, const struct gate_events *ev, struct gate **ret, struct hearth_err *err);
void gate_close(struct gate *g);   /* drops what is under way; NULL is legal */
void gate_reset(struct gate *g);   /* the same, and the stream begins anew */

/*
 * An error when an utterance began and the recogniser was not to be had
 * (-ETIMEDOUT): that utterance is lost, all of @pcm is taken, and the gate can
 * be pushed on.
 */
int gate_push(struct gate *g, const int16_t *pcm, size_t n, struct hearth_err *err);
/* The stream ends: so does what is said. */
int gate_finish(struct gate *g, struct hearth_err *err);

bool gate_hears(const struct gate *g);   /* an utterance is with the recogniser */
bool gate_take(struct gate *g);          /* ends it now, in the middle of the speech; false: there is none */
int64_t gate_position(const struct gate *g);

#endif
