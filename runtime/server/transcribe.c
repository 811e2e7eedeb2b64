// SPDX-License-Identifier: MIT
#include "server/transcribe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/gate.h"
#include "voice/audio.h"
#include "voice/vad.h"

#define BLOCK VAD_WINDOW

struct work {
	int rc;
	struct hearth_err *err;
	struct transcript *out;
	void (*on_segment)(void *arg, const struct transcript_segment *s);
	void *arg;
};

static void add_segment(struct work *w, int64_t from, int64_t end, const char *text)
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
	p[t->n].from = (double)from / STT_RATE;
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

static void on_heard(void *arg, int64_t from, int64_t end, const struct stt_result *r)
{
	struct work *w = arg;

	if (w->rc || r->verdict == STT_NOTHING)
		return;
	if (r->verdict == STT_FAILED)
		w->rc = err_set(w->err, r->err.code, "%s", r->err.text);
	else
		add_segment(w, from, end, r->verdict == STT_COMMAND ? r->text : "");
}

void transcript_done(struct transcript *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->segments[i].text);
	free(t->segments);
	free(t->text);
	memset(t, 0, sizeof(*t));
}

int transcribe(struct speech *sp, const char *name, const void *data, size_t size, int wait_ms,
	       void (*on_segment)(void *, const struct transcript_segment *), bool (*gone)(void *), void *arg,
	       struct transcript *ret, struct hearth_err *err)
{
	struct transcript t = { .text = calloc(1, 1) };
	struct work w = { .err = err, .out = &t, .on_segment = on_segment, .arg = arg };
	const struct gate_events ev = { .heard = on_heard, .arg = &w };
	struct audio_in *in = NULL;
	struct gate *gate = NULL;
	struct vad_options vo;
	int16_t pcm[BLOCK];
	ssize_t n;
	int rc = -ENOMEM;

	if (!t.text) {
		err_set(err, rc, "out of memory");
		goto out;
	}
	rc = audio_in_named(name, data, size, STT_RATE, &in, err);
	if (rc)
		goto out;
	speech_vad_options(sp, &vo);
	vo.end_wait_ms = 500; /* a recording's pauses are long */
	rc = gate_open(sp, &vo, wait_ms, &ev, &gate, err);
	while (!rc && (n = audio_in_read(in, pcm, BLOCK, err)) != 0) {
		rc = n < 0 ? (int)n : gate_push(gate, pcm, (size_t)n, err);
		if (!rc)
			rc = w.rc;
		if (!rc && gone && gone(arg))
			rc = err_set(err, -ECANCELED, "the client went away");
	}
	if (!rc)
		rc = gate_finish(gate, err);
	if (!rc)
		rc = w.rc;
	if (gate)
		t.duration = (double)gate_position(gate) / STT_RATE;
out:
	gate_close(gate);
	audio_in_close(in);
	if (rc) {
		transcript_done(&t);
		return rc;
	}
	*ret = t;
	return 0;
}
