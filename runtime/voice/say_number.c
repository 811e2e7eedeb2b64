// SPDX-License-Identifier: MIT
/* Numbers: figures, fractions, ranges, and what stands behind them. */
#include "voice/say.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* A number from @i: grouping by comma or dot, a decimal point or comma. 0 when there is none. */
size_t say_read_figure(const struct say *c, size_t i, struct figure *f)
{
	size_t a, p;
	char group = 0;

	memset(f, 0, sizeof(*f));
	p = i;
	if (c->s[p] == '-' || c->s[p] == '+')
		f->minus = c->s[p++] == '-';
	a = say_digits_at(c, p);
	if (!a)
		return 0;
	f->at = p;
	f->n_whole = a;
	f->leading_zero = a > 1 && c->s[p] == '0';
	f->too_long = a > 15;
	f->whole = f->too_long ? 0 : say_value_at(c, p, a);
	p += a;
	/* 1,234,567 and 1.234.567,8; a single ".500" is a decimal, a single ",500" a group. */
	while (a <= 3 && !f->leading_zero && f->whole && p < c->n && (c->s[p] == ',' || c->s[p] == '.') &&
	       say_digits_at(c, p + 1) == 3 && f->n_whole < 15 && (!group || group == c->s[p])) {
		size_t after = p + 4;

		if (c->s[p] == '.' && !group && !(after < c->n && (c->s[after] == '.' || c->s[after] == ',') && say_digit(c, after + 1)))
			break;
		group = c->s[p];
		f->whole = f->whole * 1000 + say_value_at(c, p + 1, 3);
		f->n_whole += 3;
		p += 4;
	}
	if (p + 1 < c->n && (c->s[p] == '.' || c->s[p] == ',') && c->s[p] != group && say_digit(c, p + 1)) {
		f->frac = c->s + p + 1;
		f->n_frac = say_digits_at(c, p + 1);
		p += 1 + f->n_frac;
	}
	f->len = p - i;
	return f->len;
}

void say_figure(struct say *c, const struct figure *f)
{
	if (f->minus)
		words_add(&c->out, "minus");
	if (f->too_long || (f->leading_zero && !f->frac))
		words_digits(&c->out, c->s + f->at, f->n_whole);
	else
		words_number(&c->out, f->whole);
	if (f->frac) {
		words_add(&c->out, "point");
		words_digits(&c->out, f->frac, f->n_frac);
	}
}

int say_is_one(const struct figure *f) { return f->whole == 1 && !f->frac && !f->too_long; }

static int year_context(const struct say *c)
{
	static const char *const before[] = { "in", "since", "of", "year", "until", "by", "from", "before", "after", "summer", "winter", "spring", "autumn", NULL };
	int k;

	for (k = 0; before[k]; k++)
		if (!strcmp(c->last, before[k]))
			return 1;
	return say_month_of(c->last, strlen(c->last)) > 0;
}

/* "1/2", "3/4": bytes, or 0. */
static size_t read_fraction(struct say *c, size_t i)
{
	size_t a = say_digits_at(c, i), b;
	uint64_t x, y;

	if (!a || a > 2 || i + a >= c->n || c->s[i + a] != '/')
		return 0;
	b = say_digits_at(c, i + a + 1);
	if (!b || b > 2 || (i + a + 1 + b < c->n && (c->s[i + a + 1 + b] == '/' || say_alpha(c, i + a + 1 + b))))
		return 0;
	x = say_value_at(c, i, a), y = say_value_at(c, i + a + 1, b);
	if (x == 0 || x >= y || y < 2 || y > 10)
		return 0;
	words_number(&c->out, x);
	if (y == 2)
		words_add(&c->out, "half");
	else if (y == 4)
		words_add(&c->out, x == 1 ? "quarter" : "quarters");
	else {
		words_ordinal(&c->out, y);
		if (x > 1)
			words_glue(&c->out, "s");
	}
	return a + 1 + b;
}

static const struct { const char *sign, *said, *after; } vulgar[] = {
	{ "\xc2\xbd", "one half", "and a half" },
	{ "\xc2\xbc", "one quarter", "and a quarter" },
	{ "\xc2\xbe", "three quarters", "and three quarters" },
	{ "\xe2\x85\x93", "one third", "and a third" },
	{ "\xe2\x85\x94", "two thirds", "and two thirds" },
};

size_t say_read_vulgar(struct say *c, size_t i, int after_number)
{
	int k;

	for (k = 0; k < 5; k++)
		if (say_at(c, i, vulgar[k].sign)) {
			words_add(&c->out, after_number ? vulgar[k].after : vulgar[k].said);
			return strlen(vulgar[k].sign);
		}
	return 0;
}

static size_t range_sign(const struct say *c, size_t i)
{
	if (say_at(c, i, "\xe2\x80\x93"))
		return say_digit(c, i + 3) ? 3 : 0;
	if (say_at(c, i, " \xe2\x80\x93 "))
		return say_digit(c, i + 5) ? 5 : 0;
	return i + 1 < c->n && c->s[i] == '-' && say_digit(c, i + 1) ? 1 : 0;
}

size_t say_read_number(struct say *c, size_t i)
{
	size_t p, len, m;
	struct figure f;
	int k, dots;

	if ((c->s[i] == '-' || c->s[i] == '+') && !say_digit(c, i + 1))
		return 0;
	if (!say_digit(c, i) && c->s[i] != '-' && c->s[i] != '+')
		return 0;
	if (c->s[i] == '+' && say_digit(c, i + 1)) {
		words_add(&c->out, "plus");
		return 1;
	}
	if ((len = say_read_date(c, i)) || (len = say_read_time(c, i)) || (len = read_fraction(c, i)))
		return len;
	/* 10.0.0.1, 1.2.3: every dot is said. */
	for (p = i, dots = 0; say_digit(c, p);) {
		p += say_digits_at(c, p);
		if (p + 1 < c->n && c->s[p] == '.' && say_digit(c, p + 1))
			dots++, p++;
	}
	if (dots >= 2 && say_digit(c, i)) {
		struct figure g;

		if (!(say_read_figure(c, i, &g) && i + g.len >= p && g.n_whole > 3)) {
			for (p = i; say_digit(c, p);) {
				len = say_digits_at(c, p);
				if (len > 9)
					words_digits(&c->out, c->s + p, len);
				else
					words_number(&c->out, say_value_at(c, p, len));
				p += len;
				if (p + 1 < c->n && c->s[p] == '.' && say_digit(c, p + 1)) {
					words_add(&c->out, "point");
					p++;
				}
			}
			return p - i;
		}
	}
	if (!say_read_figure(c, i, &f))
		return 0;
	p = i + f.len;
	/* 3rd */
	if (!f.frac && !f.minus && (say_at(c, p, "st") || say_at(c, p, "nd") || say_at(c, p, "rd") || say_at(c, p, "th")) &&
	    !say_alpha(c, p + 2) && f.whole > 0 && f.whole < 1000000) {
		words_ordinal(&c->out, f.whole);
		return p + 2 - i;
	}
	/* 3 May, May 3 */
	if (!f.frac && !f.minus && f.n_whole <= 2 && f.whole >= 1 && f.whole <= 31) {
		if (say_month_of(c->last, strlen(c->last)) && !range_sign(c, p) && !say_at(c, p, "%")) {
			words_ordinal(&c->out, f.whole);
			return f.len;
		}
		if (p < c->n && c->s[p] == ' ') {
			size_t e = p + 1;

			while (say_alpha(c, e))
				e++;
			m = (size_t)say_month_of(c->s + p + 1, e - p - 1);
			/* "May" is a verb as well: "3 may", lower case, is not a date. */
			if (m && isupper((unsigned char)c->s[p + 1])) {
				if (strcmp(c->last, "the"))
					words_add(&c->out, "the");
				words_ordinal(&c->out, f.whole);
				words_add(&c->out, "of");
				words_add(&c->out, say_months[m - 1]);
				strcpy(c->last, say_months[m - 1]);
				if (e < c->n && c->s[e] == '.' && e - p - 1 <= 4)
					e++;
				return e - i;
			}
		}
	}
	/* 1999 where a year stands */
	if (!f.frac && !f.minus && f.n_whole == 4 && f.len == 4 && f.whole >= 1100 && f.whole < 2100 && year_context(c) &&
	    !(p < c->n && (c->s[p] == ' ' ? 0 : say_alpha(c, p)))) {
		struct words mark = c->out;
		size_t u = say_read_unit(c, p, 0);

		words_undo(&c->out, &mark);
		if (!u) {
			words_year(&c->out, (unsigned int)f.whole);
			return f.len;
		}
	}
	say_figure(c, &f);
	if (!f.frac && (len = say_read_vulgar(c, p, 1))) {
		p += len;
		p += say_read_unit(c, p, 0);
		return p - i;
	}
	if ((len = say_half_day(c, p, &m) ? m : 0) || (p < c->n && c->s[p] == ' ' && (len = say_half_day(c, p + 1, &m) ? m + 1 : 0))) {
		if (f.whole >= 1 && f.whole <= 12 && !f.frac && (p + len <= c->n) && (c->s[p] != ' ' || c->s[p + 2] == '.' || tolower((unsigned char)c->s[p + 2]) == 'm')) {
			say_half(c, say_half_day(c, p + (c->s[p] == ' '), &m));
			return p + len - i;
		}
	}
	if ((len = range_sign(c, p))) {
		struct figure g;
		size_t q = p + len;

		/* "5-10", not "5-10-3" and not a phone number */
		if (say_read_figure(c, q, &g) && !(q + g.len < c->n && c->s[q + g.len] == '-') && !f.leading_zero && !g.leading_zero && g.whole > f.whole) {
			words_add(&c->out, "to");
			say_figure(c, &g);
			q += g.len;
			q += say_read_unit(c, q, 0);
			return q - i;
		}
	}
	if ((k = say_money_at(c, p)) >= 0 || (p < c->n && c->s[p] == ' ' && (k = say_money_at(c, p + 1)) >= 0)) {
		words_add(&c->out, say_is_one(&f) ? say_currencies[k].one : say_currencies[k].many);
		return p + (c->s[p] == ' ') + strlen(say_currencies[k].sign) - i;
	}
	/* 2*3, 2 x 3, 1920x1080 */
	for (m = p; m < c->n && c->s[m] == ' '; m++)
		;
	if (m < c->n && m - p <= 1) {
		size_t q = m + (say_at(c, m, "\xc3\x97") ? 2 : 1);
		const char *op = NULL;

		if (say_at(c, m, "\xc3\x97") || c->s[m] == '*' || (c->s[m] == 'x' && (say_digit(c, q) || (q < c->n && c->s[q] == ' ' && say_digit(c, q + 1)))))
			op = "times";
		else if (c->s[m] == '^')
			op = "to the power of";
		else if (c->s[m] == '+')
			op = "plus";
		else if (c->s[m] == '/' && m > p)
			op = "divided by";
		else if (c->s[m] == '-' && m > p && q < c->n && c->s[q] == ' ')
			op = "minus";
		if (op && (say_digit(c, q) || (q < c->n && c->s[q] == ' ' && say_digit(c, q + 1)))) {
			words_add(&c->out, op);
			return q - i;
		}
	}
	/* 24/7, 16:9 */
	if (p + 1 < c->n && (c->s[p] == '/' || c->s[p] == ':') && say_digit(c, p + 1) && !f.frac) {
		if (c->s[p] == ':')
			words_add(&c->out, "to");
		return p + 1 - i;
	}
	p += say_read_scale(c, p);
	p += say_read_unit(c, p, say_is_one(&f));
	/* "4K", "5G": the letters are said apart. */
	return p - i;
}
