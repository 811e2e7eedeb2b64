// SPDX-License-Identifier: MIT
#include "server/transcribe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "voice/audio.h"
#include "voice/vad.h"

#define BLOCK   VAD_WINDOW
#define HISTORY (STT_RATE * 2)     /* samples kept, so that a piece can begin before it was noticed */

struct work {
	struct speech *sp;
	int16_t ring[HISTORY];
	int64_t pushed;            /* samples read so far */
	int64_t sent;              /* of these, given to the recogniser, while hearing */
	struct hearing *hearing;
	int64_t began;
	int wait_ms, rc;
	struct hearth_err *err;
	struct transcript *out;
	void (*on_segment)(void *arg, const struct transcript_segment *s);
	void *arg;
};

static void send_until(struct work *w, int64_t end)
{
	while (w->hearing && w->sent < end && !w->rc) {
		int64_t k = HISTORY - w->sent % HISTORY;

		if (k > end - w->sent)
			k = end - w->sent;
		w->rc = hearing_push(w->hearing, &w->ring[w->sent % HISTORY], (size_t)k);
		w->sent += k;
	}
}

static void add_segment(struct work *w, int64_t end, const char *text)
{
	struct transcript *t = w->out;
	struct transcript_segment *p = realloc(t->segments, (t->n + 1) * sizeof(*p));
	size_t len = strlen(t->text), more = strlen(text);
	char *all = realloc(t->text, len + more + 2);

	if (p)
		t->segments = p;
	if (all)
		t->text = all;
	if (!p || !all || !(p[t->n].text = strdup(text))) {
		w->rc = err_set(w->err, -ENOMEM, "out of memory");
		return;
	}
	p[t->n].from = (double)w->began / STT_RATE;
	p[t->n].to = (double)end / STT_RATE;
	if (more) {
		if (len)
			all[len++] = ' ';
		memcpy(all + len, text, more + 1);
	}
	if (w->on_segment)
		w->on_segment(w->arg, &p[t->n]);
	t->n++;
}

static void end_piece(struct work *w, int64_t end)
{
	struct stt_result r;

	if (!w->hearing)
		return;
	if (w->rc) {
		hearing_drop(w->hearing);
		w->hearing = NULL;
		return;
	}
	w->rc = hearing_end(w->hearing, &r, w->err);
	w->hearing = NULL;
	if (!w->rc && r.verdict != STT_NOTHING)
		add_segment(w, end, r.verdict == STT_COMMAND ? r.text : "");
}

static void on_vad(void *ctx, const struct vad_event *e)
{
	struct work *w = ctx;

	if (w->rc)
		return;
	switch (e->kind) {
	case VAD_START:
		w->began = e->at < 0 ? 0 : e->at;
		if (w->began < w->pushed - HISTORY)
			w->began = w->pushed - HISTORY;
		w->sent = w->began;
		w->rc = hearing_begin(w->sp, w->wait_ms, NULL, NULL, &w->hearing, w->err);
		break;
	case VAD_END:
		end_piece(w, e->at);
		break;
	case VAD_BLIP:
		hearing_drop(w->hearing);
		w->hearing = NULL;
		break;
	default:
		break;
	}
}

void transcript_done(struct transcript *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->segments[i].text);
	free(t->segments);
	free(t->text);
	memset(t, 0, sizeof(*t));
}

int transcribe(struct speech *sp, const void *data, size_t size, int wait_ms,
	       void (*on_segment)(void *, const struct transcript_segment *), bool (*gone)(void *), void *arg,
	       struct transcript *ret, struct hearth_err *err)
{
	struct work *w = calloc(1, sizeof(*w));
	struct transcript t = { .text = calloc(1, 1) };
	struct audio_in *in = NULL;
	struct vad *vad = NULL;
	struct vad_options vo;
	int16_t pcm[BLOCK];
	ssize_t n = 0;
	int rc = -ENOMEM;

	if (!w || !t.text) {
		err_set(err, rc, "out of memory");
		goto out;
	}
	*w = (struct work){ .sp = sp, .wait_ms = wait_ms, .err = err, .out = &t, .on_segment = on_segment, .arg = arg };
	rc = audio_in_mem(data, size, STT_RATE, &in, err);
	if (rc)
		goto out;
	speech_vad_options(sp, &vo);
	vo.end_wait_ms = 500; /* a recording's pauses are long */
	rc = vad_open(&vo, NULL, &vad, err);
	if (rc)
		goto out;
	while (!w->rc && (n = audio_in_read(in, pcm, BLOCK, err)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			w->ring[(w->pushed + i) % HISTORY] = pcm[i];
		w->pushed += n;
		vad_push(vad, pcm, (size_t)n, on_vad, w);
		send_until(w, w->pushed);
		if (gone && gone(arg))
			w->rc = err_set(err, -ECANCELED, "the client went away");
	}
	if (n < 0 && !w->rc)
		w->rc = (int)n;
	if (!w->rc)
		vad_finish(vad, on_vad, w);
	rc = w->rc;
	t.duration = (double)w->pushed / STT_RATE;
out:
	if (w && w->hearing)
		hearing_drop(w->hearing);
	vad_close(vad);
	audio_in_close(in);
	free(w);
	if (rc) {
		transcript_done(&t);
		return rc;
	}
	*ret = t;
	return 0;
}
