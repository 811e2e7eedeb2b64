// SPDX-License-Identifier: MIT
#include "voice/vad.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "voice/silero.h"
#include "voice/vad_energy.h"

/*
 * Silero says 1.00 of a voice again and again, also with noise as loud as it;
 * knocks, motors, barks and tunes get over 0.5 now and then, but hardly ever
 * over 0.9 (docs/speech.md has the figures). The energy detector's probability
 * tells loud from soft, so that this would say nothing of it.
 */
#define SURE     0.9f
#define SURE_MIN 3     /* windows, or it was no speech */

_Static_assert(VAD_WINDOW == SILERO_WINDOW, "one window for both detectors");

enum state {
	IDLE,
	RISING,    /* loud, not long enough to be a START */
	SPEECH,
	PAUSED,
};

struct vad {
	struct vad_options o;
	struct voice_charge charge;
	struct silero *silero;     /* NULL: the energy detector */
	struct vad_energy energy;
	float window[VAD_WINDOW];
	size_t filled;
	int64_t position;          /* samples of whole windows */
	float p;
	enum state state;
	int64_t began;             /* first loud sample */
	int64_t ended;             /* first silent sample after it */
	int sure;                  /* windows since it began in which the detector was sure */
};

void vad_defaults(struct vad_options *o)
{
	*o = (struct vad_options){
		.kind = VAD_SILERO,
		.on = 0.5f, .off = 0.35f,
		.start_ms = 64, .min_speech_ms = 192, .end_wait_ms = 256, .pad_ms = 160,
		.max_speech_ms = 30000,
	};
}

size_t vad_predict(const struct vad_options *o)
{
	return sizeof(struct vad) + (o->kind == VAD_SILERO ? silero_bytes() : 0);
}

int vad_open(const struct vad_options *o, const struct voice_account *acc,
	     struct vad **ret, struct hearth_err *err)
{
	struct vad *v;
	int rc;

	if (!(o->off > 0 && o->off <= o->on && o->on < 1) || o->start_ms < 0 || o->end_wait_ms < 0 ||
	    o->min_speech_ms < 0 || o->pad_ms < 0 || o->max_speech_ms < 1000)
		return err_set(err, -EINVAL, "the voice detector's thresholds must be 0 < off <= on < 1, its times not negative");
	if (o->kind == VAD_SILERO && !o->weights)
		return err_set(err, -ENOENT, "no weights file was given for the Silero voice detector");
	v = calloc(1, sizeof(*v));
	if (!v)
		return err_set(err, -ENOMEM, "no memory for the voice detector");
	v->o = *o;
	v->o.weights = NULL;
	rc = voice_charge_begin(&v->charge, acc, vad_predict(o), err);
	if (!rc && o->kind == VAD_SILERO)
		rc = silero_open(o->weights, &v->silero, err);
	if (rc) {
		vad_close(v);
		return rc;
	}
	vad_energy_init(&v->energy);
	*ret = v;
	return 0;
}

void vad_close(struct vad *v)
{
	if (!v)
		return;
	silero_close(v->silero);
	voice_charge_end(&v->charge);
	free(v);
}

void vad_reset(struct vad *v)
{
	if (v->silero)
		silero_reset(v->silero);
	v->filled = 0;
	v->position = 0;
	v->p = 0;
	v->state = IDLE;
}

void vad_set_end_wait(struct vad *v, int ms)
{
	v->o.end_wait_ms = ms;
}

static int64_t samples(int ms)
{
	return (int64_t)ms * VAD_RATE / 1000;
}

static void tell(struct vad *v, vad_event_fn *fn, void *ctx, enum vad_event_kind kind, int64_t at)
{
	struct vad_event ev = { .kind = kind, .at = at, .decided = v->position, .probability = v->p };

	if (fn)
		fn(ctx, &ev);
}

static void close_speech(struct vad *v, vad_event_fn *fn, void *ctx)
{
	bool blip = v->ended - v->began < samples(v->o.min_speech_ms) || (v->silero && v->sure < SURE_MIN);

	v->state = IDLE;
	tell(v, fn, ctx, blip ? VAD_BLIP : VAD_END, v->ended);
}

/* One window of probability v->p that ends at v->position. */
static void decide(struct vad *v, vad_event_fn *fn, void *ctx)
{
	int64_t from = v->position - VAD_WINDOW;

	if (v->state == IDLE && v->p >= v->o.on) {
		v->began = from;
		v->sure = 0;
		v->state = RISING;
	} else if (v->state == RISING && v->p < v->o.off) {
		v->state = IDLE;
	} else if (v->state == SPEECH && v->p < v->o.off) {
		v->ended = from;
		v->state = PAUSED;
		tell(v, fn, ctx, VAD_PAUSE, v->ended);
	} else if (v->state == PAUSED && v->p >= v->o.on) {
		v->state = SPEECH;
		tell(v, fn, ctx, VAD_RESUME, from);
	}
	v->sure += v->p >= SURE;
	if (v->state == RISING && v->position - v->began >= samples(v->o.start_ms)) {
		int64_t at = v->began - samples(v->o.pad_ms);

		v->state = SPEECH;
		tell(v, fn, ctx, VAD_START, at > 0 ? at : 0);
	}
	if (v->state == PAUSED && v->position - v->ended >= samples(v->o.end_wait_ms))
		close_speech(v, fn, ctx);
	if (v->state == SPEECH && v->position - v->began >= samples(v->o.max_speech_ms)) {
		v->ended = v->position;
		close_speech(v, fn, ctx);
	}
}

void vad_push(struct vad *v, const int16_t *pcm, size_t n, vad_event_fn *fn, void *ctx)
{
	for (size_t i = 0; i < n; i++) {
		v->window[v->filled++] = (float)pcm[i] / 32768.0f;
		if (v->filled < VAD_WINDOW)
			continue;
		v->filled = 0;
		v->p = v->silero ? silero_step(v->silero, v->window)
				 : vad_energy_step(&v->energy, v->window, VAD_WINDOW);
		v->position += VAD_WINDOW;
		decide(v, fn, ctx);
	}
}

void vad_finish(struct vad *v, vad_event_fn *fn, void *ctx)
{
	v->position += (int64_t)v->filled;
	v->filled = 0;
	if (v->state == SPEECH)
		v->ended = v->position;
	if (v->state == SPEECH || v->state == PAUSED)
		close_speech(v, fn, ctx);
	v->state = IDLE;
}

float vad_probability(const struct vad *v)
{
	return v->p;
}

int64_t vad_position(const struct vad *v)
{
	return v->position + (int64_t)v->filled;
}

enum vad_kind vad_kind(const struct vad *v)
{
	return v->silero ? VAD_SILERO : VAD_ENERGY;
}

const char *vad_kind_name(enum vad_kind k)
{
	return k == VAD_SILERO ? "Silero" : "energy";
}

size_t vad_footprint(const struct vad *v)
{
	/* Its own code: what it holds is what it asked for. */
	return sizeof(*v) + (v->silero ? silero_bytes() : 0);
}
