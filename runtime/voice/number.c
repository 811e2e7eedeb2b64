// SPDX-License-Identifier: MIT
#include "voice/number.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const small[] = {
	"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
	"twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
};
static const char *const tens[] = {
	"", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
};
static const char *const small_ordinal[] = {
	"zeroth", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth",
	"tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth",
	"seventeenth", "eighteenth", "nineteenth",
};
static const char *const tens_ordinal[] = {
	"", "", "twentieth", "thirtieth", "fortieth", "fiftieth", "sixtieth", "seventieth",
	"eightieth", "ninetieth",
};
static const struct { uint64_t value; const char *name; } scales[] = {
	{ 1000000000000000000ull, "quintillion" }, { 1000000000000000ull, "quadrillion" },
	{ 1000000000000ull, "trillion" }, { 1000000000ull, "billion" }, { 1000000ull, "million" },
	{ 1000ull, "thousand" },
};

static int room(struct words *w, size_t more)
{
	size_t want = w->n + more + 1;

	if (w->failed)
		return 0;
	if (want > w->room) {
		size_t size = want + want / 2 + 64;
		char *buf = realloc(w->buf, size);

		if (!buf) {
			w->failed = 1;
			return 0;
		}
		w->buf = buf;
		w->room = size;
	}
	return 1;
}

void words_copy(struct words *w, const char *s, size_t len)
{
	if (!room(w, len + 1))
		return;
	if (w->space && w->n)
		w->buf[w->n++] = ' ';
	w->space = 0;
	memcpy(w->buf + w->n, s, len);
	w->n += len;
	w->buf[w->n] = 0;
}

void words_take(struct words *w, const char *word, size_t len)
{
	/* A word never touches the word before it; it does touch a bracket or a quote. */
	if (w->n && (isalnum((unsigned char)w->buf[w->n - 1]) || (unsigned char)w->buf[w->n - 1] >= 0x80))
		w->space = 1;
	words_copy(w, word, len);
}

void words_add(struct words *w, const char *word)
{
	words_take(w, word, strlen(word));
}

void words_glue(struct words *w, const char *tail)
{
	w->space = 0;
	words_copy(w, tail, strlen(tail));
}

void words_mark(struct words *w, char mark)
{
	w->space = 0;
	words_copy(w, &mark, 1);
	w->space = 1;
}

void words_space(struct words *w)
{
	w->space = 1;
}

void words_undo(struct words *w, const struct words *earlier)
{
	/* The buffer may have moved; its length and what was due have not. */
	w->n = earlier->n;
	w->space = earlier->space;
	if (w->buf)
		w->buf[w->n] = 0;
}

void words_number(struct words *w, uint64_t n)
{
	unsigned int s;

	if (n == 0) {
		words_add(w, small[0]);
		return;
	}
	for (s = 0; s < sizeof(scales) / sizeof(scales[0]); s++)
		if (n >= scales[s].value) {
			words_number(w, n / scales[s].value);
			words_add(w, scales[s].name);
			n %= scales[s].value;
		}
	if (n >= 100) {
		words_add(w, small[n / 100]);
		words_add(w, "hundred");
		n %= 100;
	}
	if (n >= 20) {
		words_add(w, tens[n / 10]);
		n %= 10;
	}
	if (n)
		words_add(w, small[n]);
}

void words_ordinal(struct words *w, uint64_t n)
{
	uint64_t low = n % 100;

	if (n >= 100 && low) {
		words_number(w, n - low);
		n = low;
	}
	if (n >= 100) { /* "two hundredth", "one thousandth" */
		words_number(w, n);
		words_glue(w, "th");
	} else if (n < 20) {
		words_add(w, small_ordinal[n]);
	} else if (n % 10 == 0) {
		words_add(w, tens_ordinal[n / 10]);
	} else {
		words_add(w, tens[n / 10]);
		words_add(w, small_ordinal[n % 10]);
	}
}

void words_digits(struct words *w, const char *digits, size_t n)
{
	while (n--)
		words_add(w, small[*digits++ - '0']);
}

void words_year(struct words *w, unsigned int year)
{
	unsigned int high = year / 100, low = year % 100;

	/* 1900 "nineteen hundred", 1905 "nineteen oh five", 2000..2009 as a number */
	if (year < 1100 || year >= 2100 || (high % 10 == 0 && low < 10)) {
		words_number(w, year);
		return;
	}
	words_number(w, high);
	if (low == 0)
		words_add(w, "hundred");
	else if (low < 10)
		words_add(w, "oh");
	if (low)
		words_number(w, low);
}

int words_finish(struct words *w, char **ret_text)
{
	char *text = w->buf;

	if (w->failed || !room(w, 0)) {
		free(w->buf);
		memset(w, 0, sizeof(*w));
		return -ENOMEM;
	}
	text = w->buf;
	text[w->n] = 0;
	memset(w, 0, sizeof(*w));
	*ret_text = text;
	return 0;
}
