// SPDX-License-Identifier: MIT
#include "server/gate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/speech.h"
#include "voice/offset.h"
#include "voice/vad.h"

#define BLOCK   VAD_WINDOW
#define HISTORY (STT_RATE * 2)         /* samples kept, so that an utterance can begin before it was noticed */
#define TAIL    (STT_RATE * 3 / 10)    /* of a pause, given at once; the rest only if speech goes on */

struct gate {
	struct speech *sp;
	struct gate_events ev;
	int wait_ms;
	struct vad *vad;
	struct offset offset;
	int16_t ring[HISTORY];
	int64_t pushed;            /* samples so far */
	int64_t sent;              /* of these, given to the recogniser, while hearing */
	int64_t pause;             /* where the pause began, -1: none */
	struct hearing *hearing;
	int64_t from;
	enum gate_stop how;        /* of the speech under way */
	struct stt_result r;
	int rc;                    /* of the push under way */
	struct hearth_err err;
};

int gate_open(struct speech *sp, const struct vad_options *o, int wait_ms, const struct gate_events *ev, struct gate **ret, struct hearth_err *err)
{
	struct gate *g = calloc(1, sizeof(*g));
	int rc;

	if (!g)
		return err_set(err, -ENOMEM, "out of memory");
	g->sp = sp;
	g->ev = *ev;
	g->wait_ms = wait_ms;
	g->pause = -1;
	rc = vad_open(o, NULL, &g->vad, err);
	if (rc) {
		free(g);
		return rc;
	}
	*ret = g;
	return 0;
}

void gate_close(struct gate *g)
{
	if (!g)
		return;
	hearing_drop(g->hearing);
	vad_close(g->vad);
	free(g);
}

void gate_reset(struct gate *g)
{
	hearing_drop(g->hearing);
	g->hearing = NULL;
	vad_reset(g->vad);
	g->offset = (struct offset){ 0 };
	g->pushed = g->sent = 0;
	g->pause = -1;
}

/* Never more is held back than the ring keeps beside the next block. */
static void send_until(struct gate *g, int64_t end)
{
	if (end < g->pushed - (HISTORY - BLOCK))
		end = g->pushed - (HISTORY - BLOCK);
	if (end > g->pushed)
		end = g->pushed;
	while (g->hearing && g->sent < end) {
		int64_t k = HISTORY - g->sent % HISTORY;

		if (k > end - g->sent)
			k = end - g->sent;
		/* Refused: the end of the utterance says why. */
		hearing_push(g->hearing, &g->ring[g->sent % HISTORY], (size_t)k);
		g->sent += k;
	}
}

static void end_hearing(struct gate *g, int64_t end)
{
	struct hearth_err err = { 0 };
	int rc = hearing_end(g->hearing, &g->r, &err);

	g->hearing = NULL;
	if (rc) {
		memset(&g->r, 0, sizeof(g->r));
		g->r.verdict = STT_FAILED;
		err_set(&g->r.err, rc, "%s", err.text);
	}
	g->ev.heard(g->ev.arg, g->from, end, &g->r);
}

static void stop(struct gate *g, int64_t at, enum gate_stop how)
{
	g->pause = -1;
	if (g->ev.stopped)
		g->ev.stopped(g->ev.arg, at, how);
}

static void on_vad(void *ctx, const struct vad_event *e)
{
	struct gate *g = ctx;
	int64_t at = e->at < 0 ? 0 : e->at;
	int rc;

	switch (e->kind) {
	case VAD_START:
		g->from = g->sent = at < g->pushed - HISTORY ? g->pushed - HISTORY : at;
		g->pause = -1;
		g->how = GATE_HEARD;
		if (g->ev.started)
			g->ev.started(g->ev.arg, at);
		rc = hearing_begin(g->sp, g->wait_ms, g->ev.partial, g->ev.arg, &g->hearing, g->rc ? NULL : &g->err);
		if (rc) {
			g->how = GATE_MISSED;
			g->rc = g->rc ? g->rc : rc;
		}
		break;
	case VAD_PAUSE:
		g->pause = at;
		break;
	case VAD_RESUME:
		g->pause = -1;
		break;
	case VAD_END:
		send_until(g, at + TAIL < e->decided ? at + TAIL : e->decided);
		stop(g, at, g->how);
		if (g->hearing)
			end_hearing(g, at);
		break;
	case VAD_BLIP:
		hearing_drop(g->hearing);
		g->hearing = NULL;
		stop(g, at, g->how == GATE_HEARD ? GATE_BLIP : g->how);
		break;
	}
}

/* What went wrong since it was last asked for. */
static int take_error(struct gate *g, struct hearth_err *err)
{
	int rc = g->rc;

	g->rc = 0;
	return rc ? err_set(err, rc, "%s", g->err.text) : 0;
}

int gate_push(struct gate *g, const int16_t *pcm, size_t n, struct hearth_err *err)
{
	int16_t block[BLOCK];

	while (n > 0) {
		size_t k = n < BLOCK ? n : BLOCK;

		offset_remove(&g->offset, pcm, k, block);
		for (size_t i = 0; i < k; i++)
			g->ring[(g->pushed + (int64_t)i) % HISTORY] = block[i];
		g->pushed += (int64_t)k;
		vad_push(g->vad, block, k, on_vad, g);
		send_until(g, g->pause < 0 ? g->pushed : g->pause + TAIL);
		pcm += k;
		n -= k;
	}
	return take_error(g, err);
}

int gate_finish(struct gate *g, struct hearth_err *err)
{
	vad_finish(g->vad, on_vad, g);
	return take_error(g, err);
}

bool gate_hears(const struct gate *g)
{
	return g && g->hearing;
}

bool gate_take(struct gate *g)
{
	if (!gate_hears(g))
		return false;
	send_until(g, g->pushed);
	g->how = GATE_TAKEN;
	end_hearing(g, g->pushed);
	return true;
}

int64_t gate_position(const struct gate *g)
{
	return g->pushed;
}
