// SPDX-License-Identifier: MIT
#include "voice/phrasebook.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "voice/phrases.h"

#define MAX_SENTENCE 1024
#define MAX_DEPTH    12

static const char *const slot_names[] = {
	"light", "switch", "fan", "cover", "climate", "lock", "media", "vacuum", "mower",
	"scene", "list", "item", "sensor", "thing", "area", "floor", "unit", "switchable",
};
#define N_SLOTS (sizeof(slot_names) / sizeof(slot_names[0]))

struct slot {
	char **values;
	size_t n, room;
};

struct phrasebook {
	struct slot slots[N_SLOTS];
	unsigned *weights; /* running sums over the patterns */
	size_t n_patterns;
	char *loaded;      /* more patterns, each NUL-terminated */
	char **lines;
	size_t n_lines;
};

/* One sentence in the making. */
struct draft {
	const struct phrasebook *b;
	uint64_t rng;
	char text[MAX_SENTENCE];
	size_t n;
	bool failed; /* a slot is empty, or it grew too long */
};

int phrasebook_new(struct phrasebook **ret)
{
	struct phrasebook *b = calloc(1, sizeof(*b));
	unsigned sum = 0;

	if (!b)
		return -ENOMEM;
	while (phrase_patterns[b->n_patterns])
		b->n_patterns++;
	b->weights = calloc(b->n_patterns, sizeof(*b->weights));
	if (!b->weights) {
		free(b);
		return -ENOMEM;
	}
	for (size_t i = 0; i < b->n_patterns; i++) {
		sum += (unsigned)strtoul(phrase_patterns[i], NULL, 10);
		b->weights[i] = sum;
	}
	*ret = b;
	return 0;
}

void phrasebook_free(struct phrasebook *b)
{
	if (!b)
		return;
	for (size_t s = 0; s < N_SLOTS; s++) {
		for (size_t i = 0; i < b->slots[s].n; i++)
			free(b->slots[s].values[i]);
		free(b->slots[s].values);
	}
	free(b->weights);
	free(b->loaded);
	free(b->lines);
	free(b);
}

/* -- numbers and text ------------------------------------------------------------ */

static const char *const ones[] = {
	"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
	"eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen",
	"eighteen", "nineteen",
};
static const char *const tens[] = {
	"", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
};

static int number_words(unsigned long v, char *out, size_t room)
{
	if (v < 20)
		return snprintf(out, room, "%s", ones[v]);
	if (v < 100)
		return snprintf(out, room, "%s%s%s", tens[v / 10], v % 10 ? " " : "", v % 10 ? ones[v % 10] : "");
	if (v < 1000) {
		int n = snprintf(out, room, "%s hundred", ones[v / 100]);

		if (v % 100)
			n += snprintf(out + n, room - (size_t)n, " "), n += number_words(v % 100, out + n, room - (size_t)n);
		return n;
	}
	return -1;
}

static bool word_char(unsigned char c)
{
	return isalpha(c) || c == '\'';
}

/* Appends a word with a space before it; false when there is no room. */
static bool put_word(char **p, const char *end, const char *begin, const char *w, size_t n)
{
	if (*p + n + 2 > end)
		return false;
	if (*p != begin)
		*(*p)++ = ' ';
	for (size_t i = 0; i < n; i++)
		*(*p)++ = (char)tolower((unsigned char)w[i]);
	**p = '\0';
	return true;
}

static bool put_digits(char **p, const char *end, const char *begin, const char *s, size_t n)
{
	char words[64];

	/* Three digits and fewer are a number, "0815" and the like are read digit by digit. */
	if (n <= 3 && (s[0] != '0' || n == 1)) {
		number_words(strtoul(s, NULL, 10), words, sizeof(words));
		return put_word(p, end, begin, words, strlen(words));
	}
	for (size_t i = 0; i < n; i++) {
		const char *w = ones[s[i] - '0'];

		if (!put_word(p, end, begin, w, strlen(w)))
			return false;
	}
	return true;
}

int phrasebook_words(const char *text, char **ret)
{
	size_t room = strlen(text) * 8 + 64;
	char *out = malloc(room), *p = out;
	const char *s = text;

	if (!out)
		return -ENOMEM;
	*p = '\0';
	while (*s) {
		size_t n = 0;

		if (isdigit((unsigned char)*s)) {
			while (isdigit((unsigned char)s[n]))
				n++;
			if (!put_digits(&p, out + room, out, s, n))
				break;
			s += n;
			if (*s == '.' && isdigit((unsigned char)s[1])) {
				put_word(&p, out + room, out, "point", 5);
				s++;
			}
			continue;
		}
		if (*s == '%') {
			put_word(&p, out + room, out, "percent", 7);
			s++;
			continue;
		}
		while (word_char((unsigned char)s[n]))
			n++;
		if (n == 0) {
			s++;
			continue;
		}
		/* A quote at the edge of a word is a mark, not a letter. */
		while (n > 1 && s[n - 1] == '\'')
			n--;
		if (!(n == 1 && *s == '\''))
			put_word(&p, out + room, out, s, n);
		s += n;
	}
	*ret = out;
	return 0;
}

static int slot_index(const char *name, size_t n)
{
	for (size_t i = 0; i < N_SLOTS; i++)
		if (strlen(slot_names[i]) == n && !memcmp(slot_names[i], name, n))
			return (int)i;
	return -1;
}

int phrasebook_add(struct phrasebook *b, const char *slot, const char *value)
{
	int i = slot_index(slot, strlen(slot));
	struct slot *s;
	char *words;
	int rc;

	if (i < 0)
		return -EINVAL;
	rc = phrasebook_words(value, &words);
	if (rc)
		return rc;
	if (!*words) {
		free(words);
		return 0;
	}
	s = &b->slots[i];
	if (s->n == s->room) {
		size_t room = s->room ? s->room * 2 : 16;
		char **v = realloc(s->values, room * sizeof(*v));

		if (!v) {
			free(words);
			return -ENOMEM;
		}
		s->values = v;
		s->room = room;
	}
	s->values[s->n++] = words;
	return 0;
}

/* Letters, apostrophes, spaces, and slots that exist. */
static bool good_line(const char *s)
{
	while (*s) {
		if (*s == '{') {
			size_t n = strcspn(++s, "}");

			if (!s[n] || slot_index(s, n) < 0)
				return false;
			s += n + 1;
		} else if (*s == ' ' || word_char((unsigned char)*s)) {
			s++;
		} else {
			return false;
		}
	}
	return true;
}

int phrasebook_load(struct phrasebook *b, const char *text, struct hearth_err *err)
{
	char *copy = strdup(text), **lines = NULL;
	size_t n = 0, count = 1;

	for (const char *p = text; *p; p++)
		count += *p == '\n';
	lines = calloc(count, sizeof(*lines));
	if (!copy || !lines) {
		free(copy);
		free(lines);
		return err_set(err, -ENOMEM, "no memory for the phrases");
	}
	for (char *p = copy, *end; *p; p = end) {
		size_t len = strcspn(p, "\n");

		end = p + len + (p[len] != '\0');
		p[len] = '\0';
		if (!good_line(p)) {
			int rc = err_set(err, -EINVAL, "phrases, line %zu: only words and known {slots}: \"%.60s\"", n + 1, p);

			free(copy);
			free(lines);
			return rc;
		}
		if (*p)
			lines[n++] = p;
	}
	free(b->loaded);
	free(b->lines);
	b->loaded = copy;
	b->lines = lines;
	b->n_lines = n;
	return 0;
}

size_t phrasebook_loaded(const struct phrasebook *b)
{
	return b->n_lines;
}

/* -- expansion ------------------------------------------------------------------- */

static uint64_t rng_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u; /* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static size_t rng_below(struct draft *d, size_t n)
{
	return (size_t)(rng_next(&d->rng) >> 11) % n;
}

static void put(struct draft *d, const char *s, size_t n)
{
	if (d->n + n + 1 > sizeof(d->text)) {
		d->failed = true;
		return;
	}
	memcpy(d->text + d->n, s, n);
	d->n += n;
	d->text[d->n] = '\0';
}

/* The length of the group that opens at @s, its closing mark included. */
static size_t group_length(const char *s, size_t n)
{
	int depth = 0;

	for (size_t i = 0; i < n; i++) {
		if (strchr("([{", s[i]))
			depth++;
		else if (strchr(")]}", s[i]) && --depth == 0)
			return i + 1;
	}
	return n; /* a pattern with an open group is caught by its test */
}

static void expand(struct draft *d, const char *s, size_t n, int depth);

static void expand_choice(struct draft *d, const char *s, size_t n, int depth)
{
	const char *begin[64];
	size_t length[64], options = 0, from = 0, i = 0, pick;

	while (i <= n && options < 64) {
		if (i == n || s[i] == '|') {
			begin[options] = s + from;
			length[options++] = i - from;
			from = ++i;
		} else if (strchr("([{", s[i])) {
			i += group_length(s + i, n - i);
		} else {
			i++;
		}
	}
	pick = rng_below(d, options);
	expand(d, begin[pick], length[pick], depth + 1);
}

static void expand_range(struct draft *d, const char *s)
{
	char *end, words[64];
	unsigned long lo = strtoul(s, &end, 10), hi = strtoul(end + 1, NULL, 10), v;

	v = lo + rng_below(d, hi - lo + 1);
	/* People like round numbers. */
	if (hi > 20 && rng_below(d, 3) == 0 && v / 5 * 5 >= lo)
		v = v / 5 * 5;
	number_words(v, words, sizeof(words));
	put(d, words, strlen(words));
}

static void expand_slot(struct draft *d, const char *s, size_t n, int depth)
{
	int i;

	if (isdigit((unsigned char)*s)) {
		expand_range(d, s);
		return;
	}
	for (const struct phrase_macro *m = phrase_macros; m->name; m++)
		if (strlen(m->name) == n && !memcmp(m->name, s, n)) {
			expand(d, m->pattern, strlen(m->pattern), depth + 1);
			return;
		}
	i = slot_index(s, n);
	if (i < 0 || d->b->slots[i].n == 0) {
		d->failed = true;
	} else {
		const char *v = d->b->slots[i].values[rng_below(d, d->b->slots[i].n)];

		put(d, v, strlen(v));
	}
}

static void expand(struct draft *d, const char *s, size_t n, int depth)
{
	if (depth > MAX_DEPTH)
		d->failed = true;
	for (size_t i = 0; i < n && !d->failed; ) {
		size_t len;

		if (s[i] == '(' || s[i] == '[' || s[i] == '{') {
			len = group_length(s + i, n - i);
			if (s[i] == '{')
				expand_slot(d, s + i + 1, len - 2, depth);
			else if (s[i] == '(' || rng_below(d, 5) < 2)
				expand_choice(d, s + i + 1, len - 2, depth);
			i += len;
		} else {
			put(d, s + i, 1);
			i++;
		}
	}
}

/* One space between words, none at the ends. */
static void squeeze(char *s)
{
	char *to = s;

	for (char *p = s; *p; p++)
		if (*p != ' ' || (to != s && to[-1] != ' '))
			*to++ = *p;
	while (to != s && to[-1] == ' ')
		to--;
	*to = '\0';
}

static const char *pick_pattern(const struct phrasebook *b, struct draft *d)
{
	size_t pick, lo = 0, hi = b->n_patterns - 1;

	if (b->n_lines > 0 && rng_below(d, 2))
		return b->lines[rng_below(d, b->n_lines)];
	pick = rng_below(d, b->weights[hi]);
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (b->weights[mid] <= pick)
			lo = mid + 1;
		else
			hi = mid;
	}
	return strchr(phrase_patterns[lo], ' ') + 1;
}

int phrasebook_expand(const struct phrasebook *b, size_t n, uint64_t seed,
		      int (*fn)(void *ctx, const char *sentence), void *ctx)
{
	struct draft d = { .b = b, .rng = seed };

	/* A home without lamps skips many patterns: bounded, not for ever. */
	for (size_t made = 0, tried = 0; made < n && tried < n * 20; tried++) {
		const char *p = pick_pattern(b, &d);
		int rc;

		d.n = 0;
		d.failed = false;
		d.text[0] = '\0';
		expand(&d, p, strlen(p), 0);
		if (d.failed)
			continue;
		squeeze(d.text);
		if (!d.text[0])
			continue;
		rc = fn(ctx, d.text);
		if (rc)
			return rc;
		made++;
	}
	return 0;
}

static uint64_t fold(uint64_t h, const char *s)
{
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	return (h ^ 0xff) * 0x100000001b3u; /* so that "ab", "c" is not "a", "bc" */
}

uint64_t phrasebook_digest(const struct phrasebook *b)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; phrase_patterns[i]; i++)
		h = fold(h, phrase_patterns[i]);
	for (const struct phrase_macro *m = phrase_macros; m->name; m++)
		h = fold(fold(h, m->name), m->pattern);
	for (size_t i = 0; i < b->n_lines; i++)
		h = fold(h, b->lines[i]);
	for (size_t s = 0; s < N_SLOTS; s++) {
		h = fold(h, slot_names[s]);
		for (size_t i = 0; i < b->slots[s].n; i++)
			h = fold(h, b->slots[s].values[i]);
	}
	return h;
}
