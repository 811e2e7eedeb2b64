// SPDX-License-Identifier: MIT
#include "unit.h"

#include <pthread.h>

#include "voice/trace.h"

#define MS INT64_C(1000000)

static struct trace *t;

static int setup(void **state) { return trace_new(&t); }
static int teardown(void **state) { trace_free(t); t = NULL; return 0; }

static void missing_stays_missing(void **state)
{
	double ms = 7;
	int64_t ns = 7;
	json_t *j;

	assert_int_equal(trace_at(t, TRACE_DONE, &ns), -ENODATA);
	trace_mark(t, TRACE_SPEECH_END, 5 * MS);
	assert_int_equal(trace_gap_ms(t, TRACE_GAP_RESPONSE, &ms), -ENODATA);
	assert_true(ms == 7 && ns == 7);
	j = trace_json(t);
	assert_true(json_is_null(json_object_get(json_object_get(j, "points"), "first_audio")));
	assert_true(json_is_null(json_object_get(json_object_get(j, "gaps_ms"), "speech_end_to_first_audio")));
	assert_true(json_is_real(json_object_get(json_object_get(j, "points"), "speech_end")));
	json_decref(j);
}

static void a_gap_is_a_difference(void **state)
{
	double ms;

	trace_mark(t, TRACE_SPEECH_END, 5 * MS);
	trace_mark(t, TRACE_FIRST_AUDIO, 205 * MS + MS / 2);
	assert_int_equal(trace_gap_ms(t, TRACE_GAP_RESPONSE, &ms), 0);
	assert_true(ms == 200.5);
}

static void the_first_mark_stays_and_a_second_is_an_anomaly(void **state)
{
	int64_t ns;
	json_t *j;

	trace_mark(t, TRACE_ENDPOINT, 1 * MS);
	trace_mark(t, TRACE_ENDPOINT, 2 * MS);
	assert_int_equal(trace_at(t, TRACE_ENDPOINT, &ns), 0);
	assert_int_equal(ns, 1 * MS);
	j = trace_json(t);
	assert_int_equal(json_integer_value(json_object_get(j, "anomalies")), 1);
	json_decref(j);
	trace_unmark(t, TRACE_ENDPOINT);
	assert_int_equal(trace_at(t, TRACE_ENDPOINT, &ns), -ENODATA);
	trace_mark(t, TRACE_ENDPOINT, 3 * MS);
	assert_int_equal(trace_at(t, TRACE_ENDPOINT, &ns), 0);
	assert_int_equal(ns, 3 * MS);
}

static void the_table_has_a_dash_for_what_is_missing(void **state)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	trace_mark(t, TRACE_SPEECH_START, 0);
	trace_mark(t, TRACE_SPEECH_END, 1000 * MS);
	trace_mark(t, TRACE_ENDPOINT, 1256 * MS);
	trace_mark(t, TRACE_FIRST_AUDIO, 1400 * MS);
	assert_int_equal(trace_write_table(t, f, 80), 0);
	fclose(f);
	assert_non_null(strstr(text, "  wait for the end          0.0      256.0   ###"));
	assert_non_null(strstr(text, "  home acts                   -          -\n"));
	assert_non_null(strstr(text, "speech end to first audio: 400.0 ms, without the wait for the end 144.0 ms"));
	free(text);
}

static void chrome_events_carry_times_in_microseconds(void **state)
{
	json_t *doc, *e;
	size_t i, spans = 0, marks = 0;

	trace_mark(t, TRACE_SPEECH_START, 10 * MS);
	trace_span(t, "llm", "decode", 12 * MS, 15 * MS);
	doc = trace_chrome(&t, 1);
	json_array_foreach(json_object_get(doc, "traceEvents"), i, e) {
		const char *ph = json_string_value(json_object_get(e, "ph"));

		assert_non_null(ph);
		if (!strcmp(ph, "X")) {
			spans++;
			assert_string_equal(json_string_value(json_object_get(e, "name")), "decode");
			assert_true(json_number_value(json_object_get(e, "ts")) == 2000);
			assert_true(json_number_value(json_object_get(e, "dur")) == 3000);
		}
		if (!strcmp(ph, "i")) {
			marks++;
			assert_true(json_number_value(json_object_get(e, "ts")) == 0);
		}
	}
	assert_int_equal(spans, 1);
	assert_int_equal(marks, 1);
	json_decref(doc);
}

static void percentiles_are_nearest_rank(void **state)
{
	struct trace_stats *s;
	double ms;
	int i;

	assert_int_equal(trace_stats_new(&s), 0);
	assert_int_equal(trace_stats_percentile(s, TRACE_GAP_RESPONSE, 50, &ms), -ENODATA);
	/* 15, 20, 35, 40, 50: the ranks are from the definition's usual example. */
	for (i = 0; i < 5; i++) {
		static const int v[] = { 40, 15, 50, 20, 35 };
		struct trace *one;

		assert_int_equal(trace_new(&one), 0);
		trace_mark(one, TRACE_SPEECH_END, 0);
		trace_mark(one, TRACE_FIRST_AUDIO, v[i] * MS);
		assert_int_equal(trace_stats_add(s, one), 0);
		trace_free(one);
	}
	assert_int_equal(trace_stats_percentile(s, TRACE_GAP_RESPONSE, 5, &ms), 0);
	assert_true(ms == 15);
	trace_stats_percentile(s, TRACE_GAP_RESPONSE, 30, &ms);
	assert_true(ms == 20);
	trace_stats_percentile(s, TRACE_GAP_RESPONSE, 40, &ms);
	assert_true(ms == 20);
	trace_stats_percentile(s, TRACE_GAP_RESPONSE, 50, &ms);
	assert_true(ms == 35);
	trace_stats_percentile(s, TRACE_GAP_RESPONSE, 100, &ms);
	assert_true(ms == 50);
	assert_int_equal(trace_stats_percentile(s, TRACE_GAP_RESPONSE, 0, &ms), -EINVAL);
	assert_int_equal(trace_stats_percentile(s, TRACE_GAP_TOOL, 50, &ms), -ENODATA);
	trace_stats_free(s);
}

static void *mark_many(void *arg)
{
	int i;

	for (i = 0; i < 2000; i++)
		trace_span(t, "llm", "x", i, i + 1);
	trace_mark(t, TRACE_DONE, 1);
	return NULL;
}

static void threads_may_mark_at_once(void **state)
{
	pthread_t a, b, c;
	json_t *j;

	pthread_create(&a, NULL, mark_many, NULL);
	pthread_create(&b, NULL, mark_many, NULL);
	pthread_create(&c, NULL, mark_many, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	pthread_join(c, NULL);
	j = trace_json(t);
	/* 4096 are kept, the rest is counted. */
	assert_int_equal(json_array_size(json_object_get(j, "spans")) + (size_t)json_integer_value(json_object_get(j, "lost_spans")), 6000);
	assert_int_equal(json_integer_value(json_object_get(j, "anomalies")), 2);
	json_decref(j);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(missing_stays_missing),
		T(a_gap_is_a_difference),
		T(the_first_mark_stays_and_a_second_is_an_anomaly),
		T(the_table_has_a_dash_for_what_is_missing),
		T(chrome_events_carry_times_in_microseconds),
		T(threads_may_mark_at_once),
		cmocka_unit_test(percentiles_are_nearest_rank),
	};

	return UNIT_RUN(tests);
}
