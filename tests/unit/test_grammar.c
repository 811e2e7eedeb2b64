// SPDX-License-Identifier: MIT
#include "unit.h"
#include "grammar/gbnf.h"
#include "grammar_util.h"

#include <pthread.h>

static struct grammar *make(const char *text)
{
	struct hearth_err err = { 0 };
	struct grammar *g = NULL;

	if (grammar_from_gbnf(text, strlen(text), &g, &err))
		fail_msg("%s", err.text);
	return g;
}

static void check(const char *text, const char *const *yes, const char *const *no)
{
	struct grammar *g = make(text);

	for (; *yes; yes++)
		if (gu_admits(g, *yes) != 1)
			fail_msg("should admit \"%s\"", *yes);
	for (; *no; no++)
		if (gu_admits(g, *no) != 0)
			fail_msg("should not admit \"%s\"", *no);
	grammar_unref(g);
}
#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void notation_means_what_it_says(void **state)
{
	check("root ::= \"a\" | \"bc\"", LIST("a", "bc"), LIST("", "b", "ab", "abc"));
	check("root ::= x y?\nx ::= [a-c]+ # note\ny ::= \"!\"", LIST("a", "abc!", "cc"), LIST("", "!", "d", "a!!"));
	check("root ::= (\"ab\" | \"c\"){2,3}", LIST("abab", "cc", "abcab"), LIST("c", "cccc", "aba"));
	check("root ::= [^x\"]{2}", LIST("ab", "\xc3\xa9z", "\xf0\x9f\x98\x80\n"), LIST("x", "xa", "a", "a\"", "\xc3\xa9"));
	check("root ::= \"\\x41\\u00e9\\\"\\n\"", LIST("A\xc3\xa9\"\n"), LIST("A"));
	check("root ::= [\\]\\-a]*", LIST("", "]-a"), LIST("b"));
	check("root ::= . \"a\"{0} [0-9]{2,}", LIST("x12", "\xe2\x82\xac" "123"), LIST("x1", "12", "xa12"));
	check("root ::= \"(\" root? \")\"", LIST("()", "((()))"), LIST("(", "(()", ")("));
	check("root ::= \"a\" root \"b\" | \"\"", LIST("", "ab", "aaabbb"), LIST("aab", "ba"));
	check("root ::= list\nlist ::= item (\",\" item)*\nitem ::= [0-9] | \"[\" list \"]\"",
	      LIST("1", "1,2", "[1,[2,3]],4"), LIST("", "1,", "[1", "[]"));
}

static void refusals_name_the_place(void **state)
{
	static const struct { const char *text, *why; } bad[] = {
		{ "", "no rule named root" },
		{ "x ::= \"a\"", "no rule named root" },
		{ "root = \"a\"", "line 1, column 6" },
		{ "root ::= foo", "\"foo\" is used but not defined" },
		{ "root ::= root \"a\" | \"b\"", "left-recursive" },
		{ "root ::= x\nx ::= \"\" y\ny ::= x \"a\" | \"b\"", "left-recursive" },
		{ "root ::= \"a\" root", "can never end" },
		{ "root ::= \"abc", "line 1, column 10: the literal has no closing quote" },
		{ "root ::= [a-", "closing bracket" },
		{ "root ::= []", "class is empty" },
		{ "root ::= [z-a]", "runs backwards" },
		{ "root ::= (\"a\"", "closing parenthesis" },
		{ "root ::= \"a\")", "never opened" },
		{ "root ::= \"\\q\"", "escape is not known" },
		{ "root ::= \"\\x4\"", "hexadecimal" },
		{ "root ::= \"a\"{3,2}", "upper bound" },
		{ "root ::= \"a\"{100001}", "over 100000" },
		{ "root ::= \"a\"{", "number is missing" },
		{ "root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: this rule is defined twice" },
		{ "root ::= \"\xff\"", "UTF-8" },
		{ "root ::= \"\xed\xa0\x80\"", "UTF-8" },  /* half of a pair */
		{ "root ::= [\xe0\x80\x80]", "UTF-8" },     /* a NUL spelled long */
		{ "root ::= \"\xf4\x90\x80\x80\"", "UTF-8" }, /* past the last character */
		{ "root ::= \"\xc3", "UTF-8" },
		{ "root ::= *", "begins nothing" },
		{ "root ::= \"\\ud800\"", "no Unicode character" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct grammar *g = (void *)0x1;
		struct hearth_err err = { 0 };

		if (grammar_from_gbnf(bad[i].text, strlen(bad[i].text), &g, &err) != -EINVAL)
			fail_msg("accepted: %s", bad[i].text);
		assert_ptr_equal(g, (void *)0x1);
		if (!strstr(err.text, bad[i].why))
			fail_msg("\"%s\" does not say \"%s\"", err.text, bad[i].why);
	}
}

static void too_many_states_is_e2big(void **state)
{
	struct hearth_err err = { 0 };
	struct grammar *g;
	const char *t = "root ::= (\"ab\"{90000}){90000}{90000} | ((([a-z]{100000}){100000}){100000}){100000}"
			"| [a-b]{99999} [a-b]{99999} [a-b]{99999} [a-b]{99999} [a-b]{99999} [a-b]{99999} [a-b]{99999} [a-b]{99999} [a-b]{99999}";

	assert_int_equal(grammar_from_gbnf(t, strlen(t), &g, &err), -E2BIG);
}

static void mask_is_exactly_what_accept_admits(void **state)
{
	static const char *const texts[] = {
		"root ::= \"{\\\"\" [a-z]+ \"\\\": \" (\"true\" | \"null\" | [0-9]+ \".\"?) \"}\"",
		"root ::= (\"name\" | \"na\" [x-z])* \"\\n\"",
		"root ::= [^a]{0,3} (\"12\" | \"1\" [3-4])",
	};

	for (size_t i = 0; i < 3; i++) {
		struct grammar *g = make(texts[i]);
		struct gmatch *m, *probe;
		uint64_t seed = 7 + i;
		char text[4096] = "";
		size_t n = 0;

		assert_int_equal(gmatch_create(g, gu_vocab(), &m), 0);
		assert_int_equal(gmatch_create(g, gu_vocab(), &probe), 0);
		for (int step = 0; step < 60; step++) {
			const uint32_t *mask = gmatch_mask(m);
			uint32_t pick[301], k = 0;

			assert_non_null(mask);
			for (uint32_t id = 0; id < 301; id++) {
				bool allowed = mask[id / 32] >> (id % 32) & 1;

				gmatch_restart(probe);
				assert_int_equal(gmatch_accept_bytes(probe, text, n), 0);
				assert_int_equal(gmatch_accept(probe, id) == 0, allowed);
				if (allowed)
					pick[k++] = id;
			}
			assert_true(k > 0);
			seed = seed * 6364136223846793005ull + 1;
			uint32_t id = pick[(seed >> 33) % k];
			size_t len;
			const char *s;

			assert_int_equal(gmatch_accept(m, id), 0);
			if (id == GU_EOG)
				break;
			s = gu_bytes(NULL, id, &len);
			memcpy(text + n, s, len);
			n += len;
		}
		gmatch_free(m);
		gmatch_free(probe);
		grammar_unref(g);
	}
}

static void refused_token_changes_nothing(void **state)
{
	struct grammar *g = make("root ::= \"ab\"");
	struct gmatch *m;

	assert_int_equal(gmatch_create(g, gu_vocab(), &m), 0);
	assert_int_equal(gmatch_accept(m, 'x'), -EINVAL);
	assert_int_equal(gmatch_accept(m, GU_EOG), -EINVAL);
	assert_int_equal(gmatch_accept(m, 299), -EINVAL);
	assert_int_equal(gmatch_accept(m, 100000), -EINVAL);
	assert_int_equal(gmatch_accept(m, 'a'), 0);
	assert_false(gmatch_may_end(m));
	assert_int_equal(gmatch_accept(m, 'b'), 0);
	assert_true(gmatch_must_end(m));
	assert_int_equal(gmatch_accept(m, GU_EOG), 0);
	gmatch_free(m);
	grammar_unref(g);
}

static void forced_text_is_given_at_once(void **state)
{
	struct grammar *g = make("root ::= \"{\\\"name\\\": \\\"\" (\"on\" | \"off\") \"\\\"}\"");
	struct gmatch *m;
	char out[64];
	size_t n;

	assert_int_equal(gmatch_create(g, gu_vocab(), &m), 0);
	n = gmatch_forced(m, out, sizeof(out));
	assert_int_equal(n, 11);
	assert_memory_equal(out, "{\"name\": \"o", 11);
	assert_int_equal(gmatch_accept_bytes(m, out, n), 0);
	assert_int_equal(gmatch_forced(m, out, sizeof(out)), 0);
	assert_int_equal(gmatch_accept(m, 'n'), 0);
	assert_int_equal(gmatch_forced(m, out, sizeof(out)), 2);
	assert_int_equal(gmatch_forced(m, out, 1), 1);
	gmatch_free(m);
	grammar_unref(g);
}

static void what_was_made_may_be_dropped_on_the_way(void **state)
{
	/* Each character is a new state: far more than are kept at once. */
	struct grammar *g = make("root ::= \"[\" x{60000} \"]\"\nx ::= [a-z] | \"(\" x \")\"");
	struct gmatch *m;

	assert_int_equal(gmatch_create(g, gu_vocab(), &m), 0);
	assert_int_equal(gmatch_accept(m, '['), 0);
	for (int i = 0; i < 60000; i++) {
		if (i % 97 == 0) {
			assert_non_null(gmatch_mask(m));
			assert_int_equal(gmatch_accept_bytes(m, "((q", 3), 0);
			assert_non_null(gmatch_mask(m));
			assert_int_equal(gmatch_accept_bytes(m, "))", 2), 0);
		} else {
			assert_int_equal(gmatch_accept(m, 'a' + i % 26), 0);
		}
	}
	assert_int_equal(gmatch_accept(m, 'a'), -EINVAL);
	assert_int_equal(gmatch_accept(m, ']'), 0);
	assert_true(gmatch_must_end(m));
	gmatch_free(m);
	grammar_unref(g);
}

static void nesting_is_bounded_not_endless(void **state)
{
	struct grammar *g = make("root ::= \"(\" root? \")\"");
	struct gmatch *m;
	int depth = 0;

	assert_int_equal(gmatch_create(g, gu_vocab(), &m), 0);
	while (depth < 5000 && gmatch_accept(m, '(') == 0)
		depth++;
	assert_in_range(depth, 250, 300);
	assert_int_equal(gmatch_status(m), 0);
	for (int i = 0; i < depth; i++)
		assert_int_equal(gmatch_accept(m, ')'), 0);
	assert_true(gmatch_must_end(m));
	gmatch_free(m);
	grammar_unref(g);
}

/* Made by a client: @n times @part between @before and @after. */
static char *many(const char *before, const char *part, size_t n, const char *after)
{
	size_t k = strlen(part);
	char *s = malloc(strlen(before) + n * k + strlen(after) + 1), *p = s + sprintf(s, "%s", before);

	for (size_t i = 0; i < n; i++, p += k)
		memcpy(p, part, k);
	strcpy(p, after);
	return s;
}

static void *compile_deep(void *arg)
{
	static const struct { const char *before, *part, *after; const char *admits; } deep[] = {
		{ "root ::= \"", "a", "\"", NULL },
		{ "root ::= ", "\"a\"? ", "", "aaa" },
		{ "root ::= \"x\"", " | \"ab\"", "", "ab" },
		{ "root ::= ", "[ab] ", "", NULL },
		{ "root ::= r r\nr ::= \"x\"", " | r0", "\nr0 ::= \"y\"", "xy" },
	};
	size_t i;

	for (i = 0; i < sizeof(deep) / sizeof(deep[0]); i++) {
		char *text = many(deep[i].before, deep[i].part, 50000, deep[i].after);
		struct hearth_err err = { 0 };
		struct grammar *g;

		if (grammar_from_gbnf(text, strlen(text), &g, &err))
			return strdup(err.text);
		grammar_unref(g);
		free(text);
		/* And that a short one of the form means what it says. */
		text = many(deep[i].before, deep[i].part, 3, deep[i].after);
		if (grammar_from_gbnf(text, strlen(text), &g, &err))
			return strdup(err.text);
		if (deep[i].admits && gu_admits(g, deep[i].admits) != 1)
			return strdup(deep[i].admits);
		grammar_unref(g);
		free(text);
	}
	return NULL;
}

/* A thread of a server has a small stack, and what a client sends may be long. */
static void long_rules_need_no_stack(void **state)
{
	pthread_attr_t a;
	pthread_t t;
	void *why = NULL;

	pthread_attr_init(&a);
	assert_int_equal(pthread_attr_setstacksize(&a, 1 << 20), 0);
	assert_int_equal(pthread_create(&t, &a, compile_deep, NULL), 0);
	pthread_join(t, &why);
	if (why)
		fail_msg("%s", (char *)why);
	pthread_attr_destroy(&a);
}

/* Rules that stand in the worst order for whoever walks them over and over: seconds then, nothing now. */
static void the_order_of_rules_costs_nothing(void **state)
{
	char *s = malloc(8000 * 40), *p = s + sprintf(s, "root ::= r7999\n");
	struct grammar *g;

	for (int i = 7999; i > 0; i--)
		p += sprintf(p, "r%d ::= r%d \"a\"\n", i, i - 1);
	sprintf(p, "r0 ::= \"x\"\n");
	g = make(s);
	grammar_unref(g);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_rules_need_no_stack),
		cmocka_unit_test(the_order_of_rules_costs_nothing),
		cmocka_unit_test(notation_means_what_it_says),
		cmocka_unit_test(refusals_name_the_place),
		cmocka_unit_test(too_many_states_is_e2big),
		cmocka_unit_test(mask_is_exactly_what_accept_admits),
		cmocka_unit_test(refused_token_changes_nothing),
		cmocka_unit_test(forced_text_is_given_at_once),
		cmocka_unit_test(what_was_made_may_be_dropped_on_the_way),
		cmocka_unit_test(nesting_is_bounded_not_endless),
	};
	return UNIT_RUN(tests);
}
