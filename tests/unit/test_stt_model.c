// SPDX-License-Identifier: MIT
#include "unit.h"

#include <ctype.h>

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "home/home.h"
#include "voice/lexicon.h"
#include "voice/phrasebook.h"
#include "voice/phrases.h"
#include "voice/stt_model.h"
#include "voice/trigram.h"

#define CMUDICT "/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict"

/* -- trigrams ------------------------------------------------------------------------- */

static char *write_lm(struct trigram *t)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	assert_int_equal(trigram_write(t, f), 0);
	fclose(f);
	return text;
}

/* log10 of what stands in front of the n-gram, or its back-off behind it. */
static double entry(const char *lm, const char *gram, int backoff)
{
	char key[128], *hit;
	double p, b = NAN;

	snprintf(key, sizeof(key), "\t%s%s", gram, backoff ? "\t" : "");
	for (const char *at = lm; (hit = strstr(at, key)); at = hit + 1) {
		char next = hit[strlen(key)];

		if (!backoff && next != '\n' && next != '\t')
			continue;
		if (backoff)
			return atof(hit + strlen(key));
		while (hit > lm && hit[-1] != '\n')
			hit--;
		p = atof(hit);
		return p;
	}
	fail_msg("no \"%s\" in the model", gram);
	return b;
}

/*
 * "a b", "a c", "a b": by hand. Unigrams: a 3, b 2, c 1, </s> 3, N = 9, four
 * types: p(b) = (2 + 4/4) / 13. After a: 3 tokens, 2 types: p(b|a) = (2 + 2 p(b)) / 5.
 */
static void a_small_model_is_what_the_formula_says(void **state)
{
	struct trigram *t;
	double pb = 3.0 / 13, pba = (2 + 2 * pb) / 5;
	char *lm;

	assert_int_equal(trigram_new(&t), 0);
	assert_int_equal(trigram_add(t, "a b"), 0);
	assert_int_equal(trigram_add(t, " a  c "), 0);
	assert_int_equal(trigram_add(t, ""), 0);
	assert_int_equal(trigram_add(t, "a b"), 0);
	assert_int_equal(trigram_n_words(t), 3);
	assert_string_equal(trigram_word(t, 2), "c");
	lm = write_lm(t);
	assert_non_null(strstr(lm, "ngram 1=5\nngram 2=5\nngram 3=4\n"));
	assert_true(fabs(entry(lm, "b", 0) - log10(pb)) < 1e-4);
	assert_true(fabs(entry(lm, "a b", 0) - log10(pba)) < 1e-4);
	assert_true(fabs(entry(lm, "a", 1) - log10(2.0 / 5)) < 1e-4);
	/* After "<s> a" the same three: (2 + 2 p(b|a)) / 5. */
	assert_true(fabs(entry(lm, "<s> a b", 0) - log10((2 + 2 * pba) / 5)) < 1e-4);
	assert_true(fabs(entry(lm, "<s> a", 1) - log10(2.0 / 5)) < 1e-4);
	free(lm);
	trigram_free(t);
}

static void probabilities_of_a_context_sum_to_one(void **state)
{
	static const char *const words[] = { "turn", "on", "the", "light", "fan", "in", "kitchen", "</s>" };
	struct trigram *t;
	double sum = 0, bow;
	char *lm, gram[64];

	assert_int_equal(trigram_new(&t), 0);
	trigram_add(t, "turn on the light");
	trigram_add(t, "turn on the fan");
	trigram_add(t, "turn on the light in the kitchen");
	trigram_add(t, "the fan");
	lm = write_lm(t);
	/* Context "the": seen words from the bigrams, the others by back-off. */
	bow = pow(10, entry(lm, "the", 1));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		snprintf(gram, sizeof(gram), "\tthe %s", words[i]);
		if (strstr(lm, gram))
			sum += pow(10, entry(lm, gram + 1, 0));
		else
			sum += bow * pow(10, entry(lm, words[i], 0));
	}
	assert_true(fabs(sum - 1) < 1e-3);
	free(lm);
	trigram_free(t);
}

static void a_model_of_nothing_is_refused(void **state)
{
	struct trigram *t;

	assert_int_equal(trigram_new(&t), 0);
	assert_int_equal(trigram_write(t, stdout), -EINVAL);
	trigram_free(t);
	trigram_free(NULL);
}

/* -- phrases ---------------------------------------------------------------------------- */

static void text_becomes_words(void **state)
{
	static const char *const cases[][2] = {
		{ "Kitchen Light", "kitchen light" },
		{ "TV", "tv" },
		{ "Lamp 2", "lamp two" },
		{ "set it to 21.5", "set it to twenty one point five" },
		{ "50%", "fifty percent" },
		{ "room 815", "room eight hundred fifteen" },
		{ "0815", "zero eight one five" },
		{ "kids' room, Tom's", "kids room tom's" },
		{ "living-room/lamp", "living room lamp" },
		{ "  ", "" },
		{ "\xc3\xa9t\xc3\xa9", "t" },
		{ "100", "one hundred" },
		{ "0", "zero" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *out;

		assert_int_equal(phrasebook_words(cases[i][0], &out), 0);
		assert_string_equal(out, cases[i][1]);
		free(out);
	}
}

/* Every group closes, every slot exists, every pattern has a weight. */
static void the_patterns_are_well_formed(void **state)
{
	static const char *const slots[] = {
		"light", "switch", "fan", "cover", "climate", "lock", "media", "vacuum", "mower",
		"scene", "list", "item", "sensor", "thing", "area", "floor", "unit", "switchable",
	};

	for (size_t i = 0; ; i++) {
		const char *p = phrase_patterns[i];
		char stack[32];
		int depth = 0;

		if (!p) {
			/* And then the macros' own patterns. */
			break;
		}
		if (atoi(p) < 1)
			fail_msg("no weight: %s", p);
		for (p = strchr(p, ' ') + 1; *p; p++) {
			if (strchr("([{", *p))
				stack[depth++] = *p == '(' ? ')' : *p == '[' ? ']' : '}';
			else if (strchr(")]}", *p) && (depth == 0 || stack[--depth] != *p))
				fail_msg("marks do not match: %s", phrase_patterns[i]);
			if (*p == '{' && !isdigit((unsigned char)p[1])) {
				size_t n = strcspn(p + 1, "}");
				int known = 0;

				for (size_t k = 0; k < sizeof(slots) / sizeof(slots[0]); k++)
					known |= strlen(slots[k]) == n && !memcmp(slots[k], p + 1, n);
				for (const struct phrase_macro *m = phrase_macros; m->name; m++)
					known |= strlen(m->name) == n && !memcmp(m->name, p + 1, n);
				if (!known)
					fail_msg("no slot %.*s: %s", (int)n, p + 1, phrase_patterns[i]);
			}
		}
		if (depth)
			fail_msg("a group is open: %s", phrase_patterns[i]);
	}
}

static int check_sentence(void *ctx, const char *s)
{
	int *n = ctx;

	(*n)++;
	if (strspn(s, "abcdefghijklmnopqrstuvwxyz' ") != strlen(s) || strstr(s, "  ") || s[0] == ' ' || !*s ||
	    s[strlen(s) - 1] == ' ')
		fail_msg("\"%s\" is no clean sentence", s);
	return 0;
}

static int join(void *ctx, const char *s)
{
	fprintf(ctx, "%s\n", s);
	return 0;
}

static char *sentences(const struct phrasebook *b, uint64_t seed)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	assert_int_equal(phrasebook_expand(b, 500, seed, join, f), 0);
	fclose(f);
	return text;
}

static void expansion_is_clean_and_repeatable(void **state)
{
	struct phrasebook *b;
	char *one, *two, *three;
	int n = 0;

	assert_int_equal(phrasebook_new(&b), 0);
	assert_int_equal(phrasebook_add(b, "nonsense", "x"), -EINVAL);
	assert_int_equal(phrasebook_add(b, "light", "Reading Lamp"), 0);
	assert_int_equal(phrasebook_add(b, "area", "Kids' Room"), 0);
	assert_int_equal(phrasebook_add(b, "light", "\xe6\x97\xa5\xe6\x9c\xac"), 0); /* nothing of it is left */
	assert_int_equal(phrasebook_expand(b, 3000, 1, check_sentence, &n), 0);
	assert_int_equal(n, 3000);
	one = sentences(b, 1);
	two = sentences(b, 1);
	three = sentences(b, 2);
	assert_string_equal(one, two);
	assert_string_not_equal(one, three);
	assert_non_null(strstr(one, "reading lamp"));
	assert_null(strstr(one, "{"));
	free(one);
	free(two);
	free(three);
	phrasebook_free(b);
	phrasebook_free(NULL);
}

static int find_marker(void *ctx, const char *s)
{
	int *n = ctx;

	if (!strcmp(s, "frobnicate the reading lamp"))
		n[0]++;
	if (strstr(s, "kids"))
		n[1]++;
	return 0;
}

static void loaded_patterns_are_drawn_too(void **state)
{
	struct hearth_err err = { 0 };
	struct phrasebook *b;
	uint64_t before;
	int n[2] = { 0 };

	assert_int_equal(phrasebook_new(&b), 0);
	phrasebook_add(b, "light", "Reading Lamp");
	before = phrasebook_digest(b);
	assert_int_equal(phrasebook_load(b, "frobnicate the {light}\n\nbring {area} up\n", &err), 0);
	assert_int_equal(phrasebook_loaded(b), 2);
	assert_true(phrasebook_digest(b) != before);
	assert_int_equal(phrasebook_expand(b, 2000, 5, find_marker, n), 0);
	assert_true(n[0] > 300);
	assert_int_equal(n[1], 0); /* no area: that pattern cannot be filled */
	/* A bad line is named, and what was there stays. */
	assert_int_equal(phrasebook_load(b, "turn on\nuse {nonsense}\n", &err), -EINVAL);
	assert_non_null(strstr(err.text, "line 2"));
	assert_int_equal(phrasebook_load(b, "open {light\n", &err), -EINVAL);
	assert_int_equal(phrasebook_load(b, "<script>\n", &err), -EINVAL);
	assert_int_equal(phrasebook_loaded(b), 2);
	phrasebook_free(b);
}

/* -- pronunciations ------------------------------------------------------------------------ */

static char guesses[256];

static void note(void *ctx, const char *word, const char *phones)
{
	snprintf(guesses + strlen(guesses), sizeof(guesses) - strlen(guesses), "%s=%s;", word, phones ? phones : "-");
}

static void words_get_their_phones(void **state)
{
	static const char *const words[] = { "kitchen", "tv", "zorblat", "read" };
	char *text = NULL;
	size_t n;
	FILE *f;

	if (access(CMUDICT, R_OK))
		SKIP("no %s", CMUDICT);
	f = open_memstream(&text, &n);
	guesses[0] = '\0';
	assert_int_equal(lexicon_write(CMUDICT, words, 4, f, note, NULL, NULL), 0);
	fclose(f);
	/* As the CMU dictionary prints them. */
	assert_non_null(strstr(text, "kitchen K IH CH AH N\n"));
	assert_non_null(strstr(text, "tv T IY V IY\n"));
	assert_non_null(strstr(text, "read R EH D\n"));
	assert_non_null(strstr(text, "read(2) R IY D\n"));
	/* By rule: the consonants at least can only be these. */
	assert_non_null(strstr(guesses, "zorblat=Z "));
	assert_non_null(strstr(text, "zorblat Z "));
	assert_null(strstr(guesses, "kitchen"));
	free(text);
}

static void a_missing_dictionary_is_said(void **state)
{
	struct hearth_err err = { 0 };

	assert_int_equal(lexicon_write("/nonexistent", NULL, 0, stdout, NULL, NULL, &err), -ENOENT);
	assert_non_null(strstr(err.text, "pocketsphinx-en-us"));
}

/* -- the files ------------------------------------------------------------------------------- */

static const char yaml[] =
	"areas:\n  - name: Kitchen\n    aliases: [galley]\n"
	"entities:\n"
	"  - {name: Ceiling Light, aliases: [big light], domain: light, area: Kitchen, state: \"off\"}\n"
	"  - {name: Zorblat, domain: switch, area: Kitchen, state: \"off\"}\n"
	"  - {name: Shopping List, domain: todo, items: [papaya]}\n";

static void a_home_becomes_a_model_once(void **state)
{
	char dir[] = "/tmp/test_stt_model.XXXXXX", deep[64], cmd[5000];
	struct hearth_err err = { 0 };
	struct stt_model first = { 0 }, second = { 0 }, other = { 0 };
	struct phrasebook *b;
	struct home *home;
	struct stat st;

	if (access(CMUDICT, R_OK))
		SKIP("no %s", CMUDICT);
	assert_non_null(mkdtemp(dir));
	snprintf(deep, sizeof(deep), "%s/a/b", dir);
	if (home_parse("test", yaml, strlen(yaml), &home, &err))
		fail_msg("%s", err.text);
	assert_int_equal(phrasebook_new(&b), 0);
	assert_int_equal(stt_model_names(home, b, &err), 0);
	if (stt_model_build(b, NULL, NULL, deep, &first, &err))
		fail_msg("%s", err.text);
	assert_false(first.cached);
	assert_non_null(strstr(first.guessed, "zorblat"));
	assert_null(first.unsayable);
	assert_int_equal(stat(first.lm, &st), 0);
	assert_true(st.st_size > 10000);
	snprintf(cmd, sizeof(cmd), "grep -q '^papaya ' %s", first.dict);
	assert_int_equal(system(cmd), 0);
	snprintf(cmd, sizeof(cmd), "grep -q 'big light' %s", first.lm);
	assert_int_equal(system(cmd), 0);

	assert_int_equal(stt_model_build(b, NULL, NULL, deep, &second, &err), 0);
	assert_true(second.cached);
	assert_string_equal(first.lm, second.lm);
	assert_string_equal(first.guessed, second.guessed);
	/* A file cut short, as by a crash, is made again: an empty dictionary would hear nothing for ever. */
	for (int i = 0; i < 6; i++) {
		const char *cut = i % 3 == 0 ? "lm" : i % 3 == 1 ? "dict" : "notes";
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%.*s%s", (int)strlen(first.lm) - 2, first.lm, cut);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(truncate(path, i < 3 ? st.st_size - 1 : 0), 0);
		stt_model_done(&second);
		assert_int_equal(stt_model_build(b, NULL, NULL, deep, &second, &err), 0);
		assert_false(second.cached);
		assert_int_equal(stat(path, &st), 0);
		assert_true(st.st_size > 5);
		stt_model_done(&second);
		assert_int_equal(stt_model_build(b, NULL, NULL, deep, &second, &err), 0);
		assert_true(second.cached);
		assert_string_equal(first.guessed, second.guessed);
	}
	/* The patterns of set-up, where they are, are another model too. */
	snprintf(cmd, sizeof(cmd), "echo 'quux the {light}' > %s/" STT_MODEL_PHRASES, deep);
	assert_int_equal(system(cmd), 0);
	stt_model_done(&second);
	assert_int_equal(stt_model_build(b, NULL, NULL, deep, &second, &err), 0);
	assert_false(second.cached);
	assert_int_equal(second.phrases, 1);
	snprintf(cmd, sizeof(cmd), "grep -q 'quux the' %s", second.lm);
	assert_int_equal(system(cmd), 0);
	snprintf(cmd, sizeof(cmd), "echo 'quux <the' > %s/" STT_MODEL_PHRASES, deep);
	assert_int_equal(system(cmd), 0);
	assert_int_equal(stt_model_build(b, NULL, NULL, deep, &other, &err), -EINVAL);
	assert_non_null(strstr(err.text, "phrases, line 1"));
	snprintf(cmd, sizeof(cmd), "rm %s/" STT_MODEL_PHRASES, deep);
	assert_int_equal(system(cmd), 0);
	/* Another name is another model. */
	phrasebook_add(b, "light", "Floor Lamp");
	assert_int_equal(stt_model_build(b, NULL, NULL, deep, &other, &err), 0);
	assert_false(other.cached);
	assert_string_not_equal(first.lm, other.lm);

	stt_model_done(&first);
	stt_model_done(&second);
	stt_model_done(&other);
	phrasebook_free(b);
	home_free(home);
	snprintf(cmd, sizeof(cmd), "rm -r %s", dir);
	assert_int_equal(system(cmd), 0);
}

static void a_folder_that_cannot_be_is_said(void **state)
{
	struct hearth_err err = { 0 };
	struct phrasebook *b;
	struct stt_model m;

	assert_int_equal(phrasebook_new(&b), 0);
	assert_true(stt_model_build(b, NULL, NULL, "/proc/nothing/here", &m, &err) < 0);
	assert_non_null(strstr(err.text, "/proc/nothing: cannot be made"));
	phrasebook_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_small_model_is_what_the_formula_says),
		cmocka_unit_test(probabilities_of_a_context_sum_to_one),
		cmocka_unit_test(a_model_of_nothing_is_refused),
		cmocka_unit_test(text_becomes_words),
		cmocka_unit_test(the_patterns_are_well_formed),
		cmocka_unit_test(expansion_is_clean_and_repeatable),
		cmocka_unit_test(loaded_patterns_are_drawn_too),
		cmocka_unit_test(words_get_their_phones),
		cmocka_unit_test(a_missing_dictionary_is_said),
		cmocka_unit_test(a_home_becomes_a_model_once),
		cmocka_unit_test(a_folder_that_cannot_be_is_said),
	};

	return UNIT_RUN(tests);
}
