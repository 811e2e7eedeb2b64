// SPDX-License-Identifier: MIT
/* What a run says reaches its reader whole and in order, and who rests is woken for the end alone. */
#include "unit.h"

#include <pthread.h>
#include <time.h>

#include "server/feed.h"

static void say(struct feed *f, const char *s)
{
	assert_true(feed_text(f, RUN_CONTENT, s, strlen(s)));
}

static void expect(struct feed *f, enum run_event_kind kind, const char *text)
{
	const struct run_event *e = feed_next(f, 0, false);

	assert_non_null(e);
	assert_int_equal(e->kind, kind);
	if (text) {
		assert_int_equal(e->len, strlen(text));
		assert_string_equal(e->text, text);
	}
}

static void text_of_one_kind_is_one_event(void **state)
{
	struct feed *f = feed_new();
	struct sampler_pick pick = { .token = 7, .logprob = -1.5f, .n_top = 2, .top = { { 7, -1.5f }, { 9, -2.5f } } };
	const struct run_event *e;

	assert_null(feed_next(f, 0, false));
	say(f, "one ");
	say(f, "two");
	assert_true(feed_text(f, RUN_REASONING, "why", 3));
	assert_true(feed_call(f, "HassTurnOn", "{\"name\":\"lamp\"}"));
	say(f, "a");
	assert_true(feed_logprob(f, 7, &pick));
	say(f, "b");
	say(f, "c");
	expect(f, RUN_CONTENT, "one two");
	expect(f, RUN_REASONING, "why");
	e = feed_next(f, 0, false);
	assert_int_equal(e->kind, RUN_CALL);
	assert_string_equal(e->text, "HassTurnOn");
	assert_string_equal(e->arguments, "{\"name\":\"lamp\"}");
	expect(f, RUN_CONTENT, "a");
	e = feed_next(f, 0, false);
	assert_int_equal(e->kind, RUN_LOGPROB);
	assert_int_equal(e->token, 7);
	assert_int_equal(e->pick.n_top, 2);
	assert_int_equal(e->pick.top[1].token, 9);
	assert_true(e->pick.logprob == -1.5f);
	expect(f, RUN_CONTENT, "bc");
	assert_null(feed_next(f, 0, false));
	feed_done(f);
	expect(f, RUN_DONE, NULL);
	assert_null(feed_next(f, 0, false));
	feed_free(f);
}

/* Blocks end anywhere, and one record may be longer than any of them. */
static void nothing_is_lost_between_blocks(void **state)
{
	char *all = malloc(1 << 20), *big = malloc(30000), word[40];
	struct feed *f = feed_new();
	const struct run_event *e;
	size_t n = 0;

	memset(big, 'x', 30000);
	for (int i = 0; i < 3000; i++) {
		const int k = snprintf(word, sizeof(word), "%.*d ", i % 23 + 1, i);

		assert_true(feed_text(f, RUN_CONTENT, word, (size_t)k));
		memcpy(all + n, word, (size_t)k);
		n += (size_t)k;
		if (i == 1500) {
			assert_true(feed_text(f, RUN_CONTENT, big, 30000));
			memcpy(all + n, big, 30000);
			n += 30000;
		}
	}
	feed_done(f);
	e = feed_next(f, 0, false);
	assert_int_equal(e->len, n);
	assert_memory_equal(e->text, all, n);
	expect(f, RUN_DONE, NULL);
	feed_free(f);

	/* once more, with a reader that looks in between */
	f = feed_new();
	for (size_t at = 0, got = 0, k; got < n;) {
		for (int i = 0; i < 100 && at < n; i++, at += k) {
			k = at % 41 + 1 < n - at ? at % 41 + 1 : n - at;
			assert_true(feed_text(f, RUN_CONTENT, all + at, k));
		}
		while ((e = feed_next(f, 0, false))) {
			assert_memory_equal(e->text, all + got, e->len);
			assert_int_equal(e->text[e->len], 0);
			got += e->len;
		}
	}
	feed_free(f);
	free(big);
	free(all);
}

static void the_whole_comes_when_all_is_said(void **state)
{
	struct feed *f = feed_new();

	say(f, "half");
	assert_null(feed_next(f, 0, true));
	assert_null(feed_next(f, 1, true));
	say(f, " and half");
	feed_done(f);
	assert_string_equal(feed_next(f, 0, true)->text, "half and half");
	assert_int_equal(feed_next(f, 0, true)->kind, RUN_DONE);
	feed_free(f);
}

#define WORDS 200000

static void *writer(void *arg)
{
	struct feed *f = arg;
	char word[16];

	for (int i = 0; i < WORDS; i++) {
		const int n = snprintf(word, sizeof(word), "%d,", i);

		if (!feed_text(f, i % 1000 == 999 ? RUN_REASONING : RUN_CONTENT, word, (size_t)n))
			abort();
		/* Now and then the reader has all of it and waits. */
		if (i % 5000 == 0)
			nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	}
	feed_done(f);
	return NULL;
}

static void a_thread_reads_what_another_says(void **state)
{
	struct feed *f = feed_new();
	pthread_t t;
	int next = 0, tick = 0;
	bool done = false;

	assert_int_equal(pthread_create(&t, NULL, writer, f), 0);
	while (!done) {
		const struct run_event *e = feed_next(f, 1000, false);
		char *p;

		if (!e)
			continue;
		done = e->kind == RUN_DONE;
		if (done)
			break;
		for (p = (char *)e->text; *p; p++) {
			assert_int_equal(e->kind, next % 1000 == 999 ? RUN_REASONING : RUN_CONTENT);
			assert_int_equal(strtol(p, &p, 10), next);
			next++;
		}
		if (++tick % 8 == 0)
			feed_rest(f, 1);
	}
	assert_int_equal(next, WORDS);
	pthread_join(t, NULL);
	feed_free(f);
}

static void *ender(void *arg)
{
	struct feed *f = arg;

	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	say(f, "word");
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	feed_done(f);
	return NULL;
}

/* A rest of an hour ends with the run; the word in between does not end it. */
static void a_rest_ends_with_the_run(void **state)
{
	struct feed *f = feed_new();
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, ender, f), 0);
	feed_rest(f, 3600000);
	expect(f, RUN_CONTENT, "word");
	expect(f, RUN_DONE, NULL);
	pthread_join(t, NULL);
	feed_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_of_one_kind_is_one_event),
		cmocka_unit_test(nothing_is_lost_between_blocks),
		cmocka_unit_test(the_whole_comes_when_all_is_said),
		cmocka_unit_test(a_thread_reads_what_another_says),
		cmocka_unit_test(a_rest_ends_with_the_run),
	};

	return UNIT_RUN(tests);
}
