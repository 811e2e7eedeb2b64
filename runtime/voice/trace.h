/* SPDX-License-Identifier: MIT */
/*
 * Where the time of a voice turn went. A trace holds the first moment of each
 * checkpoint and named spans of work, all on the monotonic clock. What did not
 * happen stays missing: nothing is estimated, and a difference with a missing
 * end is missing too. A second mark of a checkpoint keeps the first and counts
 * an anomaly.
 *
 * Marks and spans may come from several threads at once.
 */
#ifndef HEARTH_VOICE_TRACE_H
#define HEARTH_VOICE_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

enum trace_point {
	TRACE_SPEECH_START,   /* the first speech sample arrived */
	TRACE_SPEECH_END,     /* the last speech sample arrived */
	TRACE_ENDPOINT,       /* the end of the turn was decided */
	TRACE_STT_PARTIAL,    /* first words heard */
	TRACE_STT_FINAL,      /* the transcript is final */
	TRACE_PREFILL_START,  /* the transcript goes into the model */
	TRACE_PREFILL_END,
	TRACE_FIRST_TOKEN,    /* first token that counts (committed) */
	TRACE_TOOL_CALL,      /* first tool call is whole */
	TRACE_TOOL_DONE,      /* the home has answered it */
	TRACE_REPLY_TOKEN,    /* first token of the reply */
	TRACE_FIRST_PHRASE,   /* first phrase goes to the speech engine */
	TRACE_FIRST_AUDIO,    /* first samples come back */
	TRACE_FIRST_PLAYED,   /* first sample leaves (sound card or file) */
	TRACE_DONE,           /* last sample left */
	TRACE_POINTS,
};

/* Named differences, in ms, of two checkpoints. */
enum trace_gap {
	TRACE_GAP_ENDPOINT,      /* speech end -> endpoint: the wait */
	TRACE_GAP_STT,           /* endpoint -> transcript final */
	TRACE_GAP_FIRST_TOKEN,   /* transcript final -> first token */
	TRACE_GAP_TOOL,          /* first token -> home has answered */
	TRACE_GAP_REPLY,         /* home has answered -> first reply token */
	TRACE_GAP_PHRASE,        /* first reply token -> first phrase */
	TRACE_GAP_TTS,           /* first phrase -> first audio */
	TRACE_GAP_PLAY,          /* first audio -> first played */
	TRACE_GAP_RESPONSE,      /* speech end -> first audio: what a person feels */
	TRACE_GAP_RESPONSE_WORK, /* endpoint -> first audio: the same without the wait */
	TRACE_GAP_TOTAL,         /* speech start -> done */
	TRACE_GAPS,
};

struct trace; /* one turn */

const char *trace_point_name(enum trace_point point);
const char *trace_gap_name(enum trace_gap gap);

int trace_new(struct trace **ret_trace);
void trace_free(struct trace *trace);

/* Marks @point at @ns (mono_ns()). */
void trace_mark(struct trace *trace, enum trace_point point, int64_t ns);

/*
 * Takes a mark back, so that it can be made again: for work that turned out to
 * be premature (speech that went on after a decided endpoint).
 */
void trace_unmark(struct trace *trace, enum trace_point point);

/* Work of a named stage ("vad", "stt", "prefill", "decode", "tts", "play") from @from to @to; names are literals. */
void trace_span(struct trace *trace, const char *stage, const char *what, int64_t from, int64_t to);

/* 0 and the time, or -ENODATA where the checkpoint is missing. */
int trace_at(const struct trace *trace, enum trace_point point, int64_t *ret_ns);

/* 0 and milliseconds, or -ENODATA where an end is missing. */
int trace_gap_ms(const struct trace *trace, enum trace_gap gap, double *ret_ms);

/* The waterfall table, @width columns wide. */
int trace_write_table(const struct trace *trace, FILE *out, int width);

/* {"points":{name: ms|null}, "gaps_ms":{name: ms|null}, "spans":[...], "anomalies":n}; ms from the first point. */
json_t *trace_json(const struct trace *trace);

/* The turns as one Chrome trace-event document, which Perfetto draws. */
json_t *trace_chrome(struct trace *const *traces, size_t count);

/* -- percentiles over many turns -- */

struct trace_stats;

int trace_stats_new(struct trace_stats **ret_stats);
void trace_stats_free(struct trace_stats *stats);
int trace_stats_add(struct trace_stats *stats, const struct trace *trace);

/* Nearest-rank percentile (0 < @p <= 100) of a gap; -ENODATA when no turn had it. */
int trace_stats_percentile(const struct trace_stats *stats, enum trace_gap gap, double p, double *ret_ms);

/* count, min, p50, p90, p99, max of each gap. */
int trace_stats_write_table(const struct trace_stats *stats, FILE *out);
json_t *trace_stats_json(const struct trace_stats *stats);

#endif
