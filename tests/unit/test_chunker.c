// SPDX-License-Identifier: MIT
/*
 * Phrases. Each text is written with "|" where a phrase must end (and nothing
 * else there), then pushed whole, byte by byte, and in random pieces: the
 * phrases must be the same each time.
 */
#include "unit.h"

#include "voice/chunker.h"

struct got {
	char text[8192];     /* phrases joined by "|" */
	char spoken[16384];
	unsigned int n;
	size_t last_end;
};

static int take(void *arg, const struct chunk *c)
{
	struct got *g = arg;

	assert_int_equal(c->index, g->n);
	assert_true(c->src_end >= g->last_end);
	g->last_end = c->src_end;
	if (g->n++) {
		strcat(g->text, "|");
		strcat(g->spoken, "|");
	}
	assert_true(strlen(g->text) + strlen(c->text) < sizeof(g->text) - 2);
	strcat(g->text, c->text);
	strcat(g->spoken, c->spoken);
	return 0;
}

static uint32_t seed = 1;
static uint32_t rnd(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)(seed >> 8) * n >> 24);
}

static void cut_into(const struct chunker_opts *o, const char *text, size_t len, unsigned int max_piece, struct got *g)
{
	struct chunker *c;
	size_t i, n;

	memset(g, 0, sizeof(*g));
	assert_int_equal(chunker_new(o, take, g, &c), 0);
	for (i = 0; i < len; i += n) {
		n = max_piece ? 1 + rnd(max_piece) : len;
		if (n > len - i)
			n = len - i;
		assert_int_equal(chunker_push(c, text + i, n, 0), 0);
	}
	assert_int_equal(chunker_finish(c), 0);
	chunker_free(c);
}

static void same_however_cut(const struct chunker_opts *o, const char *text, size_t len, struct got *ret)
{
	struct got g;
	int k;

	cut_into(o, text, len, 0, ret);
	for (k = 0; k < 12; k++) {
		cut_into(o, text, len, k < 2 ? 1 : 2 + rnd(12), &g);
		if (strcmp(g.text, ret->text) || strcmp(g.spoken, ret->spoken))
			fail_msg("\"%.*s\"\n  whole \"%s\"\n  cut   \"%s\"", (int)len, text, ret->text, g.text);
	}
}

/* @text with "|" at each wanted boundary. */
static void phrases(const char *text)
{
	char src[4096], want[4096];
	size_t n = 0, w = 0;
	const char *p;
	struct got g;

	for (p = text; *p; p++) {
		if (*p == '|') {
			while (w && want[w - 1] == ' ')
				w--;
			want[w++] = '|';
			while (p[1] == ' ' || p[1] == '\n')
				src[n++] = *++p;
			continue;
		}
		src[n++] = *p;
		want[w++] = *p;
	}
	want[w] = 0;
	same_however_cut(NULL, src, n, &g);
	if (strcmp(g.text, want))
		fail_msg("\n  want \"%s\"\n  got  \"%s\"", want, g.text);
}

/* What is heard of @text, phrases joined by "|". */
static void heard(const char *text, const char *want)
{
	struct got g;

	same_however_cut(NULL, text, strlen(text), &g);
	if (strcmp(g.text, want))
		fail_msg("\"%s\"\n  want \"%s\"\n  got  \"%s\"", text, want, g.text);
}

static void sentences_end_phrases(void **state)
{
	phrases("I turned on the lamp.| Anything else?");
	phrases("Stop!| Really?!| Yes.");
	phrases("He said \"go.\"| Then he went.");
	phrases("(All of it.)| Done.");
	phrases("No.| I can't do that.");
	phrases("It is 21.| The light is on.");
	phrases("First line|\nsecond line|\n\nthird");
}

static void numbers_hold_together(void **state)
{
	phrases("It is 3.5 degrees warmer than 22,1 °C today.");
	phrases("It costs $3.50 or 1,000.25 in all.");
	phrases("Wake up at 8:30, then 9:15.");
	phrases("Version 1.2.3 of 10.0.0.1 runs.");
	phrases("Between 5–10 minutes or 5 – 10 hours.");
	phrases("98.6 is normal.| Yours is 99.");
}

static void abbreviations_hold_together(void **state)
{
	phrases("Dr. Smith and Mrs. Jones met Prof. Lee.");
	phrases("It starts at 8 a.m. and ends at 5 p.m. sharp.");
	phrases("It starts at 8 a.m.| Then we eat.");
	phrases("It starts at 8 a.m. Monday.");
	phrases("Bring fruit, e.g. apples, i.e. good ones.");
	phrases("Milk, eggs, etc. are there.");
	phrases("Cats vs. dogs.| Who wins?");
	phrases("See No. 5 there.");
	phrases("The St. James Inn on Mt. Hood.");
	phrases("Wait 5 min. more.");
	phrases("It is 21 °C. | Nice.");
}

static void initials_hold_together(void **state)
{
	phrases("J. K. Rowling wrote it.| I read it.");
	phrases("The U.S. team won.| The game was in the U.S.| They left.");
	phrases("We need plan B.| Then go.");
}

static void lists_hold_together(void **state)
{
	phrases("I turned on the lamp, the fan and the heater.");
	phrases("There are milk, eggs, bread, and butter on it.");
	phrases("1. Milk|\n2. Eggs|\n3. Bread");
	phrases("On Sunday, November 29, 2026, it rains.");
}

static void ellipses_and_addresses_hold_together(void **state)
{
	phrases("Well... maybe later.| Wait...| No.");
	phrases("Well… maybe later.| Wait…| No.");
	phrases("See https://example.com/a.b?c=1,2;d, then go.");
	phrases("Write to me@example.com or www.example.org.| Thanks.");
}

static void clauses_end_long_phrases(void **state)
{
	phrases("I turned on the lamp,| and it is now very bright in the room.");
	phrases("The door is locked;| good night.");
	phrases("Hello, Anna.");           /* too short to stand alone */
	phrases("I have done it, my friend.");
	phrases("All of the lights in the house are off now,| so you can sleep without any worry about the bill,| which is high.");
	phrases("The kitchen is warm —| the hall is cold.");
}

static void caps_bound_a_phrase(void **state)
{
	struct chunker_opts o;
	struct got g;
	char text[3000] = "";
	size_t i, words, most = 0;

	chunker_defaults(&o);
	for (i = 0; i < 200; i++)
		strcat(text, i % 7 ? "going " : "and ");
	same_however_cut(&o, text, strlen(text), &g);
	assert_true(g.n > 6);
	for (i = 0, words = 1; g.text[i]; i++) {
		words += g.text[i] == ' ';
		if (g.text[i] == '|')
			words = 1;
		if (words > most)
			most = words;
	}
	assert_true(most <= o.cap_words);
	/* The first is bounded sooner. */
	for (i = 0, words = 1; g.text[i] != '|'; i++)
		words += g.text[i] == ' ';
	assert_true(words <= o.first_cap_words);
}

static void a_cap_never_parts_a_number_and_its_unit(void **state)
{
	struct chunker_opts o;
	struct got g;

	chunker_defaults(&o);
	o.first_cap_words = 4;
	same_however_cut(&o, "well now it is 21 degrees here outside ok", 41, &g);
	assert_string_equal(g.text, "well now it is|21 degrees here outside ok");
	same_however_cut(&o, "please do ask Dr. Smith for some help", 37, &g);
	assert_string_equal(g.text, "please do ask|Dr. Smith for some help");
}

static void endless_text_stays_bounded(void **state)
{
	struct chunker *c;
	struct got g = { .n = 0 };
	int i;

	assert_int_equal(chunker_new(NULL, take, &g, &c), 0);
	for (i = 0; i < 5000; i++)
		assert_int_equal(chunker_push(c, "a", 1, 0), 0);
	assert_true(g.n >= 2);
	assert_int_equal(chunker_finish(c), 0);
	chunker_free(c);
	/* Scripts without spaces. */
	for (memset(&g, 0, sizeof(g)), assert_int_equal(chunker_new(NULL, take, &g, &c), 0), i = 0; i < 1000; i++)
		assert_int_equal(chunker_push(c, "好", 3, 0), 0);
	assert_true(g.n >= 4);
	chunker_free(c);
}

static void other_scripts_end_too(void **state)
{
	phrases("今天天气很好。|我们去公园吧！|好。");
	phrases("यह ठीक है।| अब चलो।");
	phrases("هل أنت هنا؟| نعم۔");
	phrases("Es sind 22,1 °C in der Küche.| Schön!");
}

static void think_is_never_spoken(void **state)
{
	heard("<think>\nLet me see. The lamp.\n</think>\n\nDone.", "Done.");
	heard("<think>never closed. At all.", "");
	heard("Sure. <think>hm. hm.</think> Done.", "Sure.|Done.");
	heard("Sure.<think>hm", "Sure.");
	heard("<THINK>loud</THINK>Quiet.", "Quiet.");
	heard("<think></think>\n\nOK.", "OK.");
	heard("<thinking>a</thinking>b", "b");
	heard("Done.</think>", "Done.");
	heard("<thin", "");
	heard("<unused94>thought\nhm<unused95>Yes.", "Yes.");
	heard("<|channel|>analysis<|message|>hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.", "Yes.");
}

static void a_prompt_may_open_the_think_block(void **state)
{
	struct chunker_opts o;
	struct got g;

	chunker_defaults(&o);
	o.in_think = 1;
	same_however_cut(&o, "Hm, let me see. </think>Done.", 29, &g);
	assert_string_equal(g.text, "Done.");
	same_however_cut(&o, "Hm, let me see.", 15, &g);
	assert_string_equal(g.text, "");
}

static void tool_calls_are_never_spoken(void **state)
{
	heard("<tool_call>\n{\"name\": \"HassTurnOn\", \"arguments\": {\"name\": \"lamp\"}}\n</tool_call>", "");
	heard("<tool_call>\n{\"name\": \"HassTurnOn\", \"arg", "");
	heard("OK. <tool_call>{\"name\":\"x\"}</tool_call> Done.", "OK.|Done.");
	heard("{\"name\": \"HassTurnOn\", \"arguments\": {\"name\": \"a } b\"}}", "");
	heard("{\"tool\": \"x\", \"s\": \"quote \\\" and } brace\"} Done.", "Done.");
	heard("[{\"name\": \"x\", \"arguments\": {}}] Done.", "Done.");
	heard("[TOOL_CALLS] [{\"name\": \"x\"}]", "");
	heard("{ \"open\": [1, 2", "");
	heard("```json\n{\"name\": \"x\"}\n```\nDone.", "Done.");
	heard("<functioncall> {\"name\": 1} </functioncall>Yes.", "Yes.");
	heard("<function=HassTurnOn>{\"name\": 1}</function>Yes.", "Yes.");
	heard("<|im_start|>Yes.<|im_end|>", "Yes.");
}

static void markdown_is_not_spoken(void **state)
{
	heard("**Bold** and *em*, __both__ and _it_ and `code`.", "Bold and em, both and it and code.");
	heard("# Title\n## Sub\ntext", "Title|Sub|text");
	heard("- one\n* two\n+ three\n• four", "one|two|three|four");
	heard("> quoted\ntext", "quoted|text");
	heard("[the page](https://x.y/z) and ![a cat](c.png).", "the page and a cat.");
	heard("It works [1].", "It works .");
	heard("~~gone~~ kept", "gone kept");
	heard("---\n***\ntext", "text");
	heard("living_room is a name", "living room is a name");
	heard("2*3*4 is 24 and 2 * 3 is 6.", "2*3*4 is 24 and 2 * 3 is 6.");
	heard("```c\nint main;\n```\nThat was code.", "That was code.");
	heard("```\nnever closed", "");
	heard("<b>Hi</b> there<br>you", "Hi there|you");
	heard("a &amp; b &lt; c", "a & b < c");
	heard("5 < 6 and 7 > 3.", "5 < 6 and 7 > 3.");
	heard("\\*not a mark\\*", "*not a mark*");
	heard("| a | b |\n|---|---|\n| c | d |", "a , b ,|c , d ,");
}

static void emoji_are_not_spoken(void **state)
{
	heard("Done! 🎉 Bye 👋🏽.", "Done!|Bye .");
	heard("👨‍👩‍👧 family ❤️ here", "family here");
	heard("It is 21 °C ☀️ now.", "It is 21 °C now.");
	heard("🎉", "");
	heard("5 € and ½ cup → fine", "5 € and ½ cup fine");
}

static void broken_utf8_is_dropped(void **state)
{
	heard("a\xff\xfe b \xc3", "a b");
	heard("ok \xed\xa0\x80\xf8 yes", "ok yes");
}

static void time_bounds_the_wait(void **state)
{
	const int64_t ms = 1000000;
	struct chunker *c;
	struct got g = { .n = 0 };

	assert_int_equal(chunker_new(NULL, take, &g, &c), 0);
	assert_true(chunker_deadline(c) == INT64_MAX);
	assert_int_equal(chunker_push(c, "<think>hm", 9, 0), 0);
	assert_true(chunker_deadline(c) == INT64_MAX); /* nothing to say yet */
	assert_int_equal(chunker_push(c, "</think>I will see to", 21, 10 * ms), 0);
	assert_true(chunker_deadline(c) == 360 * ms);
	assert_int_equal(chunker_tick(c, 359 * ms), 0);
	assert_int_equal(g.n, 0);
	assert_int_equal(chunker_tick(c, 360 * ms), 0);
	assert_string_equal(g.text, "I will see"); /* "to" may go on as "tomorrow" */
	/* What is left waits anew, and longer: it is not the first. */
	assert_true(chunker_deadline(c) == (360 + 700) * ms);
	assert_int_equal(chunker_tick(c, 1060 * ms), 0);
	assert_int_equal(g.n, 1);
	assert_int_equal(chunker_push(c, "day.", 4, 1061 * ms), 0);
	assert_int_equal(chunker_tick(c, 1061 * ms + 1400 * ms), 0);
	assert_string_equal(g.text, "I will see|today.");
	chunker_free(c);
}

static void time_never_splits_a_number(void **state)
{
	struct chunker *c;
	struct got g = { .n = 0 };

	assert_int_equal(chunker_new(NULL, take, &g, &c), 0);
	assert_int_equal(chunker_push(c, "It is now 3.", 12, 0), 0);
	assert_int_equal(chunker_tick(c, INT64_C(400000000)), 0);
	assert_string_equal(g.text, "It is now");
	assert_int_equal(chunker_push(c, "5 degrees.", 10, INT64_C(400000001)), 0);
	assert_int_equal(chunker_finish(c), 0);
	assert_string_equal(g.text, "It is now|3.5 degrees.");
	chunker_free(c);
}

static int refuse(void *arg, const struct chunk *c)
{
	(*(int *)arg)++;
	return -ECANCELED;
}

static void a_refusal_stops_the_push(void **state)
{
	struct chunker *c;
	int n = 0;

	assert_int_equal(chunker_new(NULL, refuse, &n, &c), 0);
	assert_int_equal(chunker_push(c, "One. Two. Three. ", 17, 0), -ECANCELED);
	assert_int_equal(n, 1);
	chunker_reset(c);
	assert_int_equal(chunker_finish(c), 0);
	assert_int_equal(n, 1);
	chunker_free(c);
}

static void zero_words_are_refused(void **state)
{
	struct chunker_opts o;
	struct chunker *c = NULL;

	chunker_defaults(&o);
	o.cap_words = 0;
	assert_int_equal(chunker_new(&o, take, NULL, &c), -EINVAL);
	assert_null(c);
}

/* Random texts out of everything that has a rule. */
static void random_texts_do_not_depend_on_cuts(void **state)
{
	static const char *const parts[] = {
		"word ", "The ", "and ", "milk, ", "3.5 ", "22,1 °C ", "8:30 ", "a.m. ", "Dr. ", "J. ", "U.S. ", "... ", "… ",
		"$3.50 ", "! ", "? ", ". ", "; ", ": ", "— ", "- ", "\n", "\n\n", "1. ", "**", "*", "_", "`", "```", "~~", "#", "> ",
		"<think>", "</think>", "<tool_call>", "</tool_call>", "<", ">", "{\"", "\"}", "{", "}", "[", "](", ")", "]", "\\", "\"",
		"https://a.b/c ", "x@y.org ", "🎉", "👩‍🚀", "é", "好", "。", "&amp;", "&", "|", "No. ", "etc. ", "Monday ", "May 3, ", "\xff", "\xc3",
		"5", "-", "'", "’s ", "…", "2*3 ", "</", "<|im_end|>", "  ", "\t",
	};
	int round;

	seed = 7;
	for (round = 0; round < 3000; round++) {
		char text[1200] = "";
		struct got g;
		int n = 1 + (int)rnd(60);

		while (n--)
			strcat(text, parts[rnd(sizeof(parts) / sizeof(parts[0]))]);
		same_however_cut(NULL, text, strlen(text), &g);
		assert_null(strstr(g.text, "tool_call"));
		assert_null(strstr(g.text, "think"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sentences_end_phrases),
		cmocka_unit_test(numbers_hold_together),
		cmocka_unit_test(abbreviations_hold_together),
		cmocka_unit_test(initials_hold_together),
		cmocka_unit_test(lists_hold_together),
		cmocka_unit_test(ellipses_and_addresses_hold_together),
		cmocka_unit_test(clauses_end_long_phrases),
		cmocka_unit_test(caps_bound_a_phrase),
		cmocka_unit_test(a_cap_never_parts_a_number_and_its_unit),
		cmocka_unit_test(endless_text_stays_bounded),
		cmocka_unit_test(other_scripts_end_too),
		cmocka_unit_test(think_is_never_spoken),
		cmocka_unit_test(a_prompt_may_open_the_think_block),
		cmocka_unit_test(tool_calls_are_never_spoken),
		cmocka_unit_test(markdown_is_not_spoken),
		cmocka_unit_test(emoji_are_not_spoken),
		cmocka_unit_test(broken_utf8_is_dropped),
		cmocka_unit_test(time_bounds_the_wait),
		cmocka_unit_test(time_never_splits_a_number),
		cmocka_unit_test(a_refusal_stops_the_push),
		cmocka_unit_test(zero_words_are_refused),
		cmocka_unit_test(random_texts_do_not_depend_on_cuts),
	};

	return UNIT_RUN(tests);
}
