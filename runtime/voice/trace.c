// SPDX-License-Identifier: MIT
#include "voice/trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MISSING INT64_MIN
#define SPANS_MAX 4096 /* of one turn; more are counted, not kept */

struct span {
	const char *stage, *what;
	int64_t from, to;
};

struct trace {
	pthread_mutex_t lock;
	int64_t at[TRACE_POINTS];
	unsigned int anomalies;
	struct span *spans;
	size_t n_spans, room;
	unsigned int lost_spans;
};

static const char *const point_names[TRACE_POINTS] = {
	[TRACE_SPEECH_START] = "speech_start",
	[TRACE_SPEECH_END] = "speech_end",
	[TRACE_ENDPOINT] = "endpoint",
	[TRACE_STT_PARTIAL] = "stt_partial",
	[TRACE_STT_FINAL] = "stt_final",
	[TRACE_PREFILL_START] = "prefill_start",
	[TRACE_PREFILL_END] = "prefill_end",
	[TRACE_FIRST_TOKEN] = "first_token",
	[TRACE_TOOL_CALL] = "tool_call",
	[TRACE_TOOL_DONE] = "tool_done",
	[TRACE_REPLY_TOKEN] = "reply_token",
	[TRACE_FIRST_PHRASE] = "first_phrase",
	[TRACE_FIRST_AUDIO] = "first_audio",
	[TRACE_FIRST_PLAYED] = "first_played",
	[TRACE_DONE] = "done",
};

static const struct {
	const char *name;
	enum trace_point from, to;
} gaps[TRACE_GAPS] = {
	[TRACE_GAP_ENDPOINT] = { "endpoint_wait", TRACE_SPEECH_END, TRACE_ENDPOINT },
	[TRACE_GAP_STT] = { "stt_final", TRACE_ENDPOINT, TRACE_STT_FINAL },
	[TRACE_GAP_FIRST_TOKEN] = { "first_token", TRACE_STT_FINAL, TRACE_FIRST_TOKEN },
	[TRACE_GAP_TOOL] = { "tool", TRACE_FIRST_TOKEN, TRACE_TOOL_DONE },
	[TRACE_GAP_REPLY] = { "reply_token", TRACE_TOOL_DONE, TRACE_REPLY_TOKEN },
	[TRACE_GAP_PHRASE] = { "first_phrase", TRACE_REPLY_TOKEN, TRACE_FIRST_PHRASE },
	[TRACE_GAP_TTS] = { "first_audio", TRACE_FIRST_PHRASE, TRACE_FIRST_AUDIO },
	[TRACE_GAP_PLAY] = { "first_played", TRACE_FIRST_AUDIO, TRACE_FIRST_PLAYED },
	[TRACE_GAP_RESPONSE] = { "speech_end_to_first_audio", TRACE_SPEECH_END, TRACE_FIRST_AUDIO },
	[TRACE_GAP_RESPONSE_WORK] = { "endpoint_to_first_audio", TRACE_ENDPOINT, TRACE_FIRST_AUDIO },
	[TRACE_GAP_TOTAL] = { "whole_turn", TRACE_SPEECH_START, TRACE_DONE },
};

const char *trace_point_name(enum trace_point point)
{
	return (unsigned int)point < TRACE_POINTS ? point_names[point] : "?";
}

const char *trace_gap_name(enum trace_gap gap)
{
	return (unsigned int)gap < TRACE_GAPS ? gaps[gap].name : "?";
}

int trace_new(struct trace **ret_trace)
{
	struct trace *t = calloc(1, sizeof(*t));
	int i;

	if (!t)
		return -ENOMEM;
	pthread_mutex_init(&t->lock, NULL);
	for (i = 0; i < TRACE_POINTS; i++)
		t->at[i] = MISSING;
	*ret_trace = t;
	return 0;
}

void trace_free(struct trace *t)
{
	if (!t)
		return;
	pthread_mutex_destroy(&t->lock);
	free(t->spans);
	free(t);
}

/* A trace is const to those who read it; its lock is not part of what they see. */
static pthread_mutex_t *lock_of(const struct trace *t)
{
	return &((struct trace *)t)->lock;
}

void trace_mark(struct trace *t, enum trace_point point, int64_t ns)
{
	pthread_mutex_lock(&t->lock);
	if (t->at[point] == MISSING)
		t->at[point] = ns;
	else
		t->anomalies++;
	pthread_mutex_unlock(&t->lock);
}

void trace_unmark(struct trace *t, enum trace_point point)
{
	pthread_mutex_lock(&t->lock);
	t->at[point] = MISSING;
	pthread_mutex_unlock(&t->lock);
}

void trace_span(struct trace *t, const char *stage, const char *what, int64_t from, int64_t to)
{
	pthread_mutex_lock(&t->lock);
	if (t->n_spans == t->room && t->room < SPANS_MAX) {
		size_t room = t->room ? t->room * 2 : 64;
		struct span *spans = realloc(t->spans, room * sizeof(*spans));

		if (spans) {
			t->spans = spans;
			t->room = room;
		}
	}
	if (t->n_spans < t->room)
		t->spans[t->n_spans++] = (struct span){ stage, what, from, to };
	else
		t->lost_spans++;
	pthread_mutex_unlock(&t->lock);
}

int trace_at(const struct trace *t, enum trace_point point, int64_t *ret_ns)
{
	int64_t at;

	pthread_mutex_lock(lock_of(t));
	at = t->at[point];
	pthread_mutex_unlock(lock_of(t));
	if (at == MISSING)
		return -ENODATA;
	*ret_ns = at;
	return 0;
}

static int between(const struct trace *t, enum trace_point from, enum trace_point to, double *ret_ms)
{
	int64_t a = 0, b = 0;

	if (trace_at(t, from, &a) || trace_at(t, to, &b))
		return -ENODATA;
	*ret_ms = (double)(b - a) / 1e6;
	return 0;
}

int trace_gap_ms(const struct trace *t, enum trace_gap gap, double *ret_ms)
{
	return between(t, gaps[gap].from, gaps[gap].to, ret_ms);
}

/* -- the table -- */

static const struct {
	const char *label;
	enum trace_point from, to;
} rows[] = {
	{ "listening", TRACE_SPEECH_START, TRACE_SPEECH_END },
	{ "wait for the end", TRACE_SPEECH_END, TRACE_ENDPOINT },
	{ "transcript", TRACE_ENDPOINT, TRACE_STT_FINAL },
	{ "prompt read", TRACE_PREFILL_START, TRACE_PREFILL_END },
	{ "first token", TRACE_PREFILL_END, TRACE_FIRST_TOKEN },
	{ "tool call decided", TRACE_FIRST_TOKEN, TRACE_TOOL_CALL },
	{ "home acts", TRACE_TOOL_CALL, TRACE_TOOL_DONE },
	{ "first reply token", TRACE_TOOL_DONE, TRACE_REPLY_TOKEN },
	{ "first phrase", TRACE_REPLY_TOKEN, TRACE_FIRST_PHRASE },
	{ "first audio", TRACE_FIRST_PHRASE, TRACE_FIRST_AUDIO },
	{ "first sample out", TRACE_FIRST_AUDIO, TRACE_FIRST_PLAYED },
	{ "speaking", TRACE_FIRST_PLAYED, TRACE_DONE },
};

/* Where the waterfall's time starts: speech end, else the first checkpoint there is. */
static int64_t origin(const struct trace *t)
{
	int64_t first = INT64_MAX, at;
	int i;

	if (!trace_at(t, TRACE_SPEECH_END, &at))
		return at;
	for (i = 0; i < TRACE_POINTS; i++)
		if (!trace_at(t, (enum trace_point)i, &at) && at < first)
			first = at;
	return first == INT64_MAX ? 0 : first;
}

int trace_write_table(const struct trace *t, FILE *out, int width)
{
	int bar = width - 46 > 10 ? width - 46 : 10, k;
	int64_t zero = origin(t), at, until = zero + 1000000;
	double response, total;
	size_t r;

	/* The bars show the answer being made: up to the first sample; speaking runs off to the right. */
	if (!trace_at(t, TRACE_FIRST_PLAYED, &at) || !trace_at(t, TRACE_FIRST_AUDIO, &at) || !trace_at(t, TRACE_ENDPOINT, &at))
		until = at > until ? at : until;
	fprintf(out, "  %-18s %10s %10s   ms after the end of speech\n", "stage", "from", "took");
	for (r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		int64_t from, to;
		int a, b;

		/* Without a tool call the reply follows the first token. */
		if ((trace_at(t, rows[r].from, &from) && (rows[r].from != TRACE_TOOL_DONE || trace_at(t, TRACE_FIRST_TOKEN, &from))) ||
		    trace_at(t, rows[r].to, &to)) {
			fprintf(out, "  %-18s %10s %10s\n", rows[r].label, "-", "-");
			continue;
		}
		if (to < from) { /* it was ready before it was needed */
			fprintf(out, "  %-18s %10.1f %10s   ", rows[r].label, (double)(to - zero) / 1e6, "early");
			from = to;
		} else {
			fprintf(out, "  %-18s %10.1f %10.1f   ", rows[r].label, (double)(from - zero) / 1e6, (double)(to - from) / 1e6);
		}
		a = (int)((double)(from - zero) * bar / (double)(until - zero));
		b = (int)((double)(to - zero) * bar / (double)(until - zero) + 0.999);
		if (to <= zero) {
			fputs("<", out);
		} else {
			if (a < 0)
				a = 0;
			if (a >= bar)
				a = bar - 1;
			if (b <= a)
				b = a + 1;
			for (k = 0; k < a; k++)
				fputc(' ', out);
			for (; k < b && k < bar; k++)
				fputc('#', out);
			if (b > bar)
				fputc('>', out);
		}
		fputc('\n', out);
	}
	if (!trace_gap_ms(t, TRACE_GAP_RESPONSE, &response)) {
		fprintf(out, "  speech end to first audio: %.1f ms", response);
		if (!trace_gap_ms(t, TRACE_GAP_RESPONSE_WORK, &total))
			fprintf(out, ", without the wait for the end %.1f ms", total);
		fputc('\n', out);
	}
	return ferror(out) ? -EIO : 0;
}

/* -- JSON -- */

json_t *trace_json(const struct trace *t)
{
	json_t *points = json_object(), *gap = json_object(), *spans = json_array();
	int64_t first = INT64_MAX, at;
	size_t s;
	int i;

	for (i = 0; i < TRACE_POINTS; i++)
		if (!trace_at(t, (enum trace_point)i, &at) && at < first)
			first = at;
	for (i = 0; i < TRACE_POINTS; i++)
		json_object_set_new(points, point_names[i],
				    trace_at(t, (enum trace_point)i, &at) ? json_null() : json_real((double)(at - first) / 1e6));
	for (i = 0; i < TRACE_GAPS; i++) {
		double ms;

		json_object_set_new(gap, gaps[i].name, trace_gap_ms(t, (enum trace_gap)i, &ms) ? json_null() : json_real(ms));
	}
	pthread_mutex_lock(lock_of(t));
	for (s = 0; s < t->n_spans; s++)
		json_array_append_new(spans, json_pack("{s:s, s:s, s:f, s:f}", "stage", t->spans[s].stage, "what", t->spans[s].what,
			"from", first == INT64_MAX ? 0.0 : (double)(t->spans[s].from - first) / 1e6,
			"ms", (double)(t->spans[s].to - t->spans[s].from) / 1e6));
	pthread_mutex_unlock(lock_of(t));
	return json_pack("{s:o, s:o, s:o, s:i, s:i}", "points", points, "gaps_ms", gap, "spans", spans,
			 "anomalies", (int)t->anomalies, "lost_spans", (int)t->lost_spans);
}

/* One line of the drawing for each stage, in the order of the turn. */
static const char *const lanes[] = { "turn", "audio", "vad", "stt", "llm", "home", "tts", "play" };

static int lane_of(const char *stage)
{
	unsigned int i;

	for (i = 0; i < sizeof(lanes) / sizeof(lanes[0]); i++)
		if (!strcmp(lanes[i], stage))
			return (int)i + 1;
	return (int)(sizeof(lanes) / sizeof(lanes[0])) + 1;
}

json_t *trace_chrome(struct trace *const *traces, size_t count)
{
	json_t *events = json_array();
	int64_t first = INT64_MAX, at;
	size_t k, s;
	int i;

	json_array_append_new(events, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "name", "process_name", "ph", "M", "pid", 1, "tid", 0, "args", "name", "hearth turn"));
	for (i = 0; i <= (int)(sizeof(lanes) / sizeof(lanes[0])); i++) {
		const char *name = i < (int)(sizeof(lanes) / sizeof(lanes[0])) ? lanes[i] : "other";

		json_array_append_new(events, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "name", "thread_name", "ph", "M", "pid", 1, "tid", i + 1, "args", "name", name));
		json_array_append_new(events, json_pack("{s:s, s:s, s:i, s:i, s:{s:i}}", "name", "thread_sort_index", "ph", "M", "pid", 1, "tid", i + 1, "args", "sort_index", i));
	}
	for (k = 0; k < count; k++) {
		for (i = 0; i < TRACE_POINTS; i++)
			if (!trace_at(traces[k], (enum trace_point)i, &at) && at < first)
				first = at;
		for (s = 0; s < traces[k]->n_spans; s++)
			if (traces[k]->spans[s].from < first)
				first = traces[k]->spans[s].from;
	}
	for (k = 0; k < count; k++) {
		const struct trace *t = traces[k];
		int64_t a, b;

		if (!trace_at(t, TRACE_SPEECH_START, &a) && !trace_at(t, TRACE_DONE, &b))
			json_array_append_new(events, json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:{s:i}}", "name", "turn", "cat", "turn", "ph", "X",
				"pid", 1, "tid", 1, "ts", (double)(a - first) / 1e3, "dur", (double)(b - a) / 1e3, "args", "turn", (int)k));
		for (i = 0; i < TRACE_POINTS; i++)
			if (!trace_at(t, (enum trace_point)i, &a))
				json_array_append_new(events, json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:f, s:{s:i}}", "name", point_names[i], "cat", "checkpoint",
					"ph", "i", "s", "p", "pid", 1, "tid", 1, "ts", (double)(a - first) / 1e3, "args", "turn", (int)k));
		pthread_mutex_lock(lock_of(t));
		for (s = 0; s < t->n_spans; s++)
			json_array_append_new(events, json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:{s:i}}", "name", t->spans[s].what, "cat", t->spans[s].stage,
				"ph", "X", "pid", 1, "tid", lane_of(t->spans[s].stage), "ts", (double)(t->spans[s].from - first) / 1e3,
				"dur", (double)(t->spans[s].to - t->spans[s].from) / 1e3, "args", "turn", (int)k));
		pthread_mutex_unlock(lock_of(t));
	}
	return json_pack("{s:o, s:s}", "traceEvents", events, "displayTimeUnit", "ms");
}

/* -- percentiles -- */

struct trace_stats {
	struct series {
		double *v;
		size_t n, room;
	} gap[TRACE_GAPS];
	size_t turns;
};

int trace_stats_new(struct trace_stats **ret_stats)
{
	struct trace_stats *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	*ret_stats = s;
	return 0;
}

void trace_stats_free(struct trace_stats *s)
{
	int g;

	if (!s)
		return;
	for (g = 0; g < TRACE_GAPS; g++)
		free(s->gap[g].v);
	free(s);
}

int trace_stats_add(struct trace_stats *s, const struct trace *t)
{
	int g;

	/* Room for all first, so that a failure adds nothing. */
	for (g = 0; g < TRACE_GAPS; g++)
		if (s->gap[g].n == s->gap[g].room) {
			size_t room = s->gap[g].room ? s->gap[g].room * 2 : 64;
			double *v = realloc(s->gap[g].v, room * sizeof(*v));

			if (!v)
				return -ENOMEM;
			s->gap[g].v = v;
			s->gap[g].room = room;
		}
	for (g = 0; g < TRACE_GAPS; g++) {
		double ms;

		if (!trace_gap_ms(t, (enum trace_gap)g, &ms)) {
			size_t i = s->gap[g].n++;

			/* Kept in order. */
			for (; i > 0 && s->gap[g].v[i - 1] > ms; i--)
				s->gap[g].v[i] = s->gap[g].v[i - 1];
			s->gap[g].v[i] = ms;
		}
	}
	s->turns++;
	return 0;
}

int trace_stats_percentile(const struct trace_stats *s, enum trace_gap gap, double p, double *ret_ms)
{
	size_t n = s->gap[gap].n, rank;

	if (!(p > 0 && p <= 100))
		return -EINVAL;
	if (!n)
		return -ENODATA;
	/* Nearest rank: the smallest value that at least p % of the values do not exceed. */
	rank = (size_t)(p / 100 * (double)n);
	if ((double)rank < p / 100 * (double)n)
		rank++;
	*ret_ms = s->gap[gap].v[rank ? rank - 1 : 0];
	return 0;
}

int trace_stats_write_table(const struct trace_stats *s, FILE *out)
{
	int g;

	fprintf(out, "  %-27s %6s %9s %9s %9s %9s %9s  ms\n", "gap", "turns", "min", "p50", "p90", "p99", "max");
	for (g = 0; g < TRACE_GAPS; g++) {
		const struct series *v = &s->gap[g];
		double p50, p90, p99;

		if (trace_stats_percentile(s, (enum trace_gap)g, 50, &p50) || trace_stats_percentile(s, (enum trace_gap)g, 90, &p90) ||
		    trace_stats_percentile(s, (enum trace_gap)g, 99, &p99)) {
			fprintf(out, "  %-27s %6d %9s %9s %9s %9s %9s\n", gaps[g].name, 0, "-", "-", "-", "-", "-");
			continue;
		}
		fprintf(out, "  %-27s %6zu %9.1f %9.1f %9.1f %9.1f %9.1f\n", gaps[g].name, v->n, v->v[0], p50, p90, p99, v->v[v->n - 1]);
	}
	return ferror(out) ? -EIO : 0;
}

json_t *trace_stats_json(const struct trace_stats *s)
{
	json_t *all = json_object();
	int g;

	for (g = 0; g < TRACE_GAPS; g++) {
		const struct series *v = &s->gap[g];
		double p50, p90, p99;

		if (trace_stats_percentile(s, (enum trace_gap)g, 50, &p50) || trace_stats_percentile(s, (enum trace_gap)g, 90, &p90) ||
		    trace_stats_percentile(s, (enum trace_gap)g, 99, &p99)) {
			json_object_set_new(all, gaps[g].name, json_null());
			continue;
		}
		json_object_set_new(all, gaps[g].name, json_pack("{s:I, s:f, s:f, s:f, s:f, s:f}", "count", (json_int_t)v->n,
			"min", v->v[0], "p50", p50, "p90", p90, "p99", p99, "max", v->v[v->n - 1]));
	}
	return json_pack("{s:I, s:o}", "turns", (json_int_t)s->turns, "gaps_ms", all);
}
