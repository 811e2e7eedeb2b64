// SPDX-License-Identifier: MIT
/*
 * One pass over the phrase. Where a word or a number begins, a list of readers
 * is tried, each of which says what it knows and tells how many bytes that
 * was; what none of them takes is copied.
 */
#include "voice/speak.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "voice/number.h"
#include "voice/say.h"

/* Bytes of the valid UTF-8 character at @i, or 0. */
static size_t utf8_len(const struct say *c, size_t i)
{
	const int len = i < c->n ? utf8_char(c->s + i, c->n - i) : 0;

	return len > 0 ? (size_t)len : 0;
}

/* A byte of a letter. Beyond ASCII: any whole character that is no sign (U+0080..00BF, "×", "÷", U+2000..2FFF). */
int say_alpha(const struct say *c, size_t i)
{
	size_t lead = i;
	unsigned char b;

	if (i >= c->n)
		return 0;
	if ((unsigned char)c->s[i] < 0x80)
		return isalpha((unsigned char)c->s[i]) != 0;
	while (lead > 0 && i - lead < 3 && ((unsigned char)c->s[lead] & 0xc0) == 0x80)
		lead--;
	b = (unsigned char)c->s[lead];
	if (lead + utf8_len(c, lead) <= i || b < 0xc3 || b == 0xe2)
		return 0;
	return b != 0xc3 || (c->s[lead + 1] != '\x97' && c->s[lead + 1] != '\xb7');
}

int say_at(const struct say *c, size_t i, const char *lit)
{
	size_t len = strlen(lit);

	return i + len <= c->n && !strncasecmp(c->s + i, lit, len);
}

size_t say_digits_at(const struct say *c, size_t i)
{
	size_t k = i;

	while (say_digit(c, k))
		k++;
	return k - i;
}

uint64_t say_value_at(const struct say *c, size_t i, size_t len)
{
	uint64_t v = 0;

	while (len--)
		v = v * 10 + (uint64_t)(c->s[i++] - '0');
	return v;
}

/* -- words -- */

static const struct { const char *abbr, *said; int any_case; } abbrs[] = {
	{ "dr", "Doctor", 1 }, { "mr", "Mister", 1 }, { "mrs", "Missus", 1 }, { "ms", "Miss", 0 },
	{ "prof", "Professor", 1 }, { "rev", "Reverend", 0 }, { "capt", "Captain", 1 },
	{ "sgt", "Sergeant", 1 }, { "lt", "Lieutenant", 0 }, { "gov", "Governor", 0 },
	{ "sen", "Senator", 0 }, { "gen", "General", 0 }, { "col", "Colonel", 0 },
	{ "jr", "Junior", 1 }, { "sr", "Senior", 0 }, { "mt", "Mount", 0 },
	{ "vs", "versus", 1 }, { "etc", "et cetera", 1 }, { "approx", "approximately", 1 },
	{ "e.g", "for example", 1 }, { "i.e", "that is", 1 }, { "ca", "about", 0 },
	{ "ave", "Avenue", 0 }, { "blvd", "Boulevard", 1 }, { "rd", "Road", 0 },
	{ "inc", "Incorporated", 0 }, { "ltd", "Limited", 0 }, { "corp", "Corporation", 0 },
	{ "dept", "department", 1 }, { "temp", "temperature", 1 }, { "max", "maximum", 1 },
	{ "min", "minimum", 1 }, { "est", "estimated", 1 }, { "ext", "extension", 1 },
	{ "tbsp", "tablespoons", 1 }, { "tsp", "teaspoons", 1 }, { "hrs", "hours", 1 },
	{ "mins", "minutes", 1 }, { "secs", "seconds", 1 },
};

/* A URL, an e-mail address or a file name: its dots and slashes are said. */
static size_t read_address(struct say *c, size_t i)
{
	size_t e = i, k, dots = 0, part = 0, ats = 0, last = 0;
	int scheme = say_at(c, i, "http://") || say_at(c, i, "https://"), www = say_at(c, i, "www."), plain = 1;

	while (e < c->n && c->s[e] != ' ' && (unsigned char)c->s[e] < 0x80 && !strchr("\"<>()", c->s[e]))
		e++;
	while (e > i && strchr(".,;:!?'", c->s[e - 1]))
		e--;
	for (k = i; k < e; k++) {
		if (c->s[k] == '.') {
			plain &= part >= 2;
			dots++;
			part = 0;
		} else {
			if (!isalnum((unsigned char)c->s[k]) && c->s[k] != '-' && c->s[k] != '_' && c->s[k] != '@')
				plain = 0;
			ats += c->s[k] == '@';
			part++;
		}
		last = part;
	}
	/* Without a scheme: words of two letters or more between the dots, the last one lower case. */
	if (!scheme && !www) {
		if (!dots || !plain || last < 2 || last > 6 || ats > 1)
			return 0;
		for (k = e - last; k < e; k++)
			if (!islower((unsigned char)c->s[k]))
				return 0;
	}
	k = i + (scheme ? (say_at(c, i, "https") ? 8 : 7) : 0);
	if (scheme && say_at(c, k, "www."))
		k += 4;
	if (e > k && c->s[e - 1] == '/')
		e--;
	while (k < e) {
		static const struct { char c; const char *said; } marks[] = {
			{ '.', "dot" }, { '/', "slash" }, { '@', "at" }, { '-', "dash" }, { '_', "underscore" },
			{ ':', "colon" }, { '?', "question mark" }, { '=', "equals" }, { '&', "and" },
			{ '#', "hash" }, { '%', "percent" }, { '+', "plus" }, { '~', "tilde" },
		};
		size_t w = k, m;

		if (isdigit((unsigned char)c->s[k])) {
			w += say_digits_at(c, k);
			if (w > e)
				w = e;
			if (w - k <= 4 && c->s[k] != '0')
				words_number(&c->out, say_value_at(c, k, w - k));
			else
				words_digits(&c->out, c->s + k, w - k);
		} else if (isalpha((unsigned char)c->s[k])) {
			while (w < e && isalpha((unsigned char)c->s[w]))
				w++;
			words_take(&c->out, c->s + k, w - k);
		} else {
			for (m = 0; m < sizeof(marks) / sizeof(marks[0]); m++)
				if (marks[m].c == c->s[k])
					words_add(&c->out, marks[m].said);
			w++;
		}
		k = w;
	}
	return (scheme && e < c->n && c->s[e] == '/' ? e + 1 : e) - i;
}

static size_t read_word(struct say *c, size_t i)
{
	size_t e = i, len, k, half;
	int m;

	if (!say_alpha(c, i))
		return 0;
	if ((len = read_address(c, i)))
		return len;
	if (say_half_day(c, i, &half) && half >= 3) {
		say_half(c, say_half_day(c, i, &half));
		return half;
	}
	while (say_alpha(c, e) || (e > i && e + 1 < c->n && c->s[e] == '.' && say_alpha(c, e + 1)) || (e < c->n && c->s[e] == '\'' && say_alpha(c, e + 1)))
		e++;
	len = e - i;
	if (e < c->n && c->s[e] == '.') {
		if (len == 2 && say_at(c, i, "no") && ((e + 1 < c->n && c->s[e + 1] == ' ' && say_digit(c, e + 2)) || say_digit(c, e + 1))) {
			words_add(&c->out, "number");
			return len + 1;
		}
		if (len == 2 && say_at(c, i, "St")) {
			/* "St. Mary", but "Main St." */
			int name = e + 2 < c->n && c->s[e + 1] == ' ' && isupper((unsigned char)c->s[e + 2]);

			words_add(&c->out, name ? "Saint" : "Street");
			return len + (e + 1 < c->n);
		}
		for (k = 0; k < sizeof(abbrs) / sizeof(abbrs[0]); k++)
			if (strlen(abbrs[k].abbr) == len && !strncasecmp(c->s + i, abbrs[k].abbr, len) &&
			    (abbrs[k].any_case || isupper((unsigned char)c->s[i]))) {
				words_add(&c->out, abbrs[k].said);
				return len + (e + 1 < c->n || !strchr(abbrs[k].abbr, '.') ? 0 : 1) + (e + 1 < c->n);
			}
		if ((m = say_month_of(c->s + i, len)) && len <= 4 && e + 1 < c->n) {
			words_add(&c->out, say_months[m - 1]);
			return len + 1;
		}
		for (k = 0; k < 7; k++)
			if (len >= 3 && len <= 5 && isupper((unsigned char)c->s[i]) && !strncasecmp(c->s + i, say_days[k], len) &&
			    e + 1 < c->n && strcasecmp(say_days[k], "Sunday")) {
				words_add(&c->out, say_days[k]);
				return len + 1;
			}
		/* U.S., J. K.: the letters, said one by one; the dots are not pauses. */
		if (len == 1 || (len >= 3 && c->s[i + 1] == '.')) {
			int letters = 1;

			for (k = i; k < e; k++)
				letters &= (k - i) % 2 ? c->s[k] == '.' : isupper((unsigned char)c->s[k]) != 0;
			if (letters && (len > 1 || (e + 1 < c->n && isupper((unsigned char)c->s[i]) && c->s[i] != 'I'))) {
				for (k = i; k < e; k += 2)
					words_take(&c->out, c->s + k, 1);
				return len + (e + 1 < c->n);
			}
		}
	} else if (len == 3 && isupper((unsigned char)c->s[i]) && (m = say_month_of(c->s + i, len)) &&
		   e + 1 < c->n && c->s[e] == ' ' && say_digit(c, e + 1)) {
		words_add(&c->out, say_months[m - 1]);
		return len;
	}
	/* "vs", "etc" stand without their dot too. */
	if ((len == 2 && say_at(c, i, "vs")) || (len == 3 && say_at(c, i, "etc"))) {
		words_add(&c->out, len == 2 ? "versus" : "et cetera");
		return len;
	}
	/* A word that goes on in capitals and digits ("HassTurnOn") is left to the engine. */
	words_take(&c->out, c->s + i, len);
	return len;
}

static size_t read_sign(struct say *c, size_t i)
{
	static const struct { const char *sign, *said; } signs[] = {
		{ "\xc2\xb0" "C", "degrees Celsius" }, { "\xc2\xb0" "F", "degrees Fahrenheit" },
		{ "\xc2\xb0", "degrees" }, { "%", "percent" }, { "&", "and" }, { "@", "at" },
		{ "=", "equals" }, { "\xc3\x97", "times" }, { "\xc3\xb7", "divided by" },
		{ "\xc2\xb1", "plus or minus" }, { "\xe2\x89\x88", "about" }, { "\xe2\x89\xa4", "at most" },
		{ "\xe2\x89\xa5", "at least" }, { "\xe2\x82\xac", "euros" }, { "$", "dollars" },
		{ "\xc2\xa3", "pounds" }, { "\xc2\xb2", "squared" }, { "\xc2\xb3", "cubed" },
		{ "\xc2\xb5", "micro" }, { "<", "less than" }, { ">", "greater than" },
	};
	size_t k;

	for (k = 0; k < sizeof(signs) / sizeof(signs[0]); k++)
		if (say_at(c, i, signs[k].sign)) {
			words_add(&c->out, signs[k].said);
			return strlen(signs[k].sign);
		}
	if ((c->s[i] == '#' || c->s[i] == '~') && say_digit(c, i + 1)) {
		words_add(&c->out, c->s[i] == '#' ? "number" : "about");
		return 1;
	}
	if (strchr("#~*^_\\|/+{}[]`", c->s[i]))
		return 1; /* not a sound */
	return 0;
}

/* Keeps the last word of what was read, lower case; a month in full, whatever its form was. */
static void remember(struct say *c, size_t i, size_t len)
{
	size_t w = i + len, b, k;
	int m;

	while (w > i && !say_alpha(c, w - 1))
		w--;
	for (b = w; b > 0 && say_alpha(c, b - 1); b--)
		;
	if (w == b)
		return;
	m = say_month_of(c->s + b, w - b);
	if (m) {
		strcpy(c->last, say_months[m - 1]);
		return;
	}
	for (k = 0; k < w - b && k < sizeof(c->last) - 1; k++)
		c->last[k] = (char)tolower((unsigned char)c->s[b + k]);
	c->last[k] = 0;
}

int speak_text(const char *text, size_t len, char **ret_spoken)
{
	struct say c = { .s = text, .n = len };
	int fresh = 1; /* a word or number may begin here */

	while (c.i < c.n) {
		size_t used = 0, ch = utf8_len(&c, c.i);

		if (!ch) { /* no character */
			c.i++;
			continue;
		}
		if (c.s[c.i] == ' ' || c.s[c.i] == '\n' || c.s[c.i] == '\t') {
			words_space(&c.out);
			c.i++;
			fresh = 1;
			continue;
		}
		if (say_digit(&c, c.i) || (fresh && (c.s[c.i] == '-' || c.s[c.i] == '+')))
			used = say_read_number(&c, c.i);
		if (!used)
			used = say_read_money(&c, c.i);
		if (!used)
			used = say_read_vulgar(&c, c.i, 0);
		if (!used && say_alpha(&c, c.i))
			used = read_word(&c, c.i);
		if (!used)
			used = read_sign(&c, c.i);
		if (used) {
			remember(&c, c.i, used);
			c.i += used;
			fresh = 0;
			continue;
		}
		if (c.s[c.i] == '-' && c.i > 0 && say_alpha(&c, c.i - 1) && say_alpha(&c, c.i + 1))
			words_space(&c.out); /* "eighty-five", "well-known" */
		else
			words_copy(&c.out, c.s + c.i, ch);
		fresh = !say_alpha(&c, c.i);
		c.i += ch;
	}
	return words_finish(&c.out, ret_spoken);
}
