// SPDX-License-Identifier: MIT
/* Dates and times of day as they are spoken. */
#include "voice/say.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

const char *const say_months[] = {
	"January", "February", "March", "April", "May", "June", "July", "August", "September",
	"October", "November", "December",
};
const char *const say_days[] = { "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday" };

/* The month whose name, or short form with or without a dot, is the @len bytes of @w: 1..12, or 0. */
int say_month_of(const char *w, size_t len)
{
	int m;

	for (m = 0; m < 12; m++) {
		/* "may" and "march" are verbs too. */
		if (strlen(say_months[m]) == len && !strncasecmp(w, say_months[m], len) && ((m != 2 && m != 4) || isupper((unsigned char)*w)))
			return m + 1;
		if ((len == 3 || (len == 4 && m == 8)) && isupper((unsigned char)*w) &&
		    !strncasecmp(w, len == 4 ? "Sept" : say_months[m], len))
			return m + 1;
	}
	return 0;
}

static void say_date(struct say *c, int day, int month, int year)
{
	words_add(&c->out, say_months[month - 1]);
	words_ordinal(&c->out, (uint64_t)day);
	if (year >= 0) {
		words_mark(&c->out, ',');
		words_year(&c->out, (unsigned int)year);
	}
}

/* 2026-11-29, 11/29/2026, 29/11/2026, 29.11.2026. Returns bytes, 0 when it is none. */
size_t say_read_date(struct say *c, size_t i)
{
	size_t a = say_digits_at(c, i), b, d, p = i + a;
	char sep;
	uint64_t x, y, z;

	if (!a || a > 4 || p >= c->n)
		return 0;
	sep = c->s[p];
	if (sep != '-' && sep != '/' && sep != '.')
		return 0;
	b = say_digits_at(c, p + 1);
	if (!b || b > 2 || p + 1 + b >= c->n || c->s[p + 1 + b] != sep)
		return 0;
	d = say_digits_at(c, p + 2 + b);
	x = say_value_at(c, i, a), y = say_value_at(c, p + 1, b), z = d <= 4 ? say_value_at(c, p + 2 + b, d) : 0;
	if (a == 4 && sep == '-' && d >= 1 && d <= 2 && y >= 1 && y <= 12 && z >= 1 && z <= 31)
		say_date(c, (int)z, (int)y, (int)x);
	else if (sep == '/' && a <= 2 && d == 4 && x >= 1 && x <= 12 && y >= 1 && y <= 31)
		say_date(c, (int)y, (int)x, (int)z);
	else if ((sep == '/' || sep == '.') && a <= 2 && d == 4 && y >= 1 && y <= 12 && x >= 1 && x <= 31)
		say_date(c, (int)x, (int)y, (int)z);
	else
		return 0;
	return a + b + d + 2;
}

/* "a.m.", "pm", "P.M." at @i: 'A' or 'P' and its bytes, or 0. */
char say_half_day(const struct say *c, size_t i, size_t *ret_len)
{
	static const char *const forms[] = { "a.m.", "a.m", "am", "p.m.", "p.m", "pm" };
	int f;

	for (f = 0; f < 6; f++) {
		size_t len = strlen(forms[f]);

		if (say_at(c, i, forms[f]) && !say_alpha(c, i + len) && !say_digit(c, i + len)) {
			*ret_len = len;
			return f < 3 ? 'A' : 'P';
		}
	}
	return 0;
}

void say_half(struct say *c, char half)
{
	words_add(&c->out, half == 'A' ? "A M" : "P M");
}

/* 8:30, 20:15, 8:30:15 a.m. */
size_t say_read_time(struct say *c, size_t i)
{
	size_t a = say_digits_at(c, i), len = 0, sp, p = i + a;
	uint64_t h, m, s = 0;
	char half;

	if (!a || a > 2 || p >= c->n || c->s[p] != ':' || say_digits_at(c, p + 1) != 2)
		return 0;
	h = say_value_at(c, i, a), m = say_value_at(c, p + 1, 2);
	if (h > 24 || m > 59)
		return 0;
	p += 3;
	if (p < c->n && c->s[p] == ':' && say_digits_at(c, p + 1) == 2) {
		s = say_value_at(c, p + 1, 2);
		p += 3;
	}
	sp = p < c->n && c->s[p] == ' ' ? 1 : 0;
	half = say_half_day(c, p + sp, &len);
	if (h == 0 && m == 0 && !half) {
		words_add(&c->out, "midnight");
		return p - i;
	}
	if (!half && (h > 12 || h == 0))
		half = h >= 12 && h < 24 ? 'P' : 'A';
	words_number(&c->out, h % 12 ? h % 12 : 12);
	if (m == 0 && !half)
		words_add(&c->out, "o'clock");
	else if (m > 0 && m < 10)
		words_add(&c->out, "oh");
	if (m)
		words_number(&c->out, m);
	if (s) {
		words_add(&c->out, "and");
		words_number(&c->out, s);
		words_add(&c->out, s == 1 ? "second" : "seconds");
	}
	if (half)
		say_half(c, half);
	return p + (len ? sp + len : 0) - i;
}
