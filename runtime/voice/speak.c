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

#include "voice/number.h"

struct say {
	const char *s;
	size_t n;
	size_t i;
	struct words out;
	char last[24];      /* the last word read, lower case: context for years and dates */
};

/* Bytes of the valid UTF-8 character at @i, or 0. */
static size_t utf8_len(const struct say *c, size_t i)
{
	unsigned char b = (unsigned char)c->s[i];
	size_t len = b < 0x80 ? 1 : b >= 0xc2 && b < 0xe0 ? 2 : b >= 0xe0 && b < 0xf0 ? 3 : b >= 0xf0 && b < 0xf5 ? 4 : 0, k;

	if (!len || i + len > c->n)
		return 0;
	for (k = 1; k < len; k++)
		if (((unsigned char)c->s[i + k] & 0xc0) != 0x80)
			return 0;
	if (len == 3 && ((b == 0xe0 && (unsigned char)c->s[i + 1] < 0xa0) || (b == 0xed && (unsigned char)c->s[i + 1] > 0x9f)))
		return 0;
	if (len == 4 && ((b == 0xf0 && (unsigned char)c->s[i + 1] < 0x90) || (b == 0xf4 && (unsigned char)c->s[i + 1] > 0x8f)))
		return 0;
	return len;
}

/* A byte of a letter. Beyond ASCII: any whole character that is no sign (U+0080..00BF, "×", "÷", U+2000..2FFF). */
static int alpha(const struct say *c, size_t i)
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

static int digit(const struct say *c, size_t i) { return i < c->n && isdigit((unsigned char)c->s[i]); }
static int at(const struct say *c, size_t i, const char *lit)
{
	size_t len = strlen(lit);

	return i + len <= c->n && !strncasecmp(c->s + i, lit, len);
}

static size_t digits_at(const struct say *c, size_t i)
{
	size_t k = i;

	while (digit(c, k))
		k++;
	return k - i;
}

static uint64_t value_at(const struct say *c, size_t i, size_t len)
{
	uint64_t v = 0;

	while (len--)
		v = v * 10 + (uint64_t)(c->s[i++] - '0');
	return v;
}

/* -- calendar -- */

static const char *const months[] = {
	"January", "February", "March", "April", "May", "June", "July", "August", "September",
	"October", "November", "December",
};
static const char *const days[] = { "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday" };

/* The month whose name, or short form with or without a dot, is the @len bytes of @w: 1..12, or 0. */
static int month_of(const char *w, size_t len)
{
	int m;

	for (m = 0; m < 12; m++) {
		/* "may" and "march" are verbs too. */
		if (strlen(months[m]) == len && !strncasecmp(w, months[m], len) && ((m != 2 && m != 4) || isupper((unsigned char)*w)))
			return m + 1;
		if ((len == 3 || (len == 4 && m == 8)) && isupper((unsigned char)*w) &&
		    !strncasecmp(w, len == 4 ? "Sept" : months[m], len))
			return m + 1;
	}
	return 0;
}

static void say_date(struct say *c, int day, int month, int year)
{
	words_add(&c->out, months[month - 1]);
	words_ordinal(&c->out, (uint64_t)day);
	if (year >= 0) {
		words_mark(&c->out, ',');
		words_year(&c->out, (unsigned int)year);
	}
}

/* 2026-11-29, 11/29/2026, 29/11/2026, 29.11.2026. Returns bytes, 0 when it is none. */
static size_t read_date(struct say *c, size_t i)
{
	size_t a = digits_at(c, i), b, d, p = i + a;
	char sep;
	uint64_t x, y, z;

	if (!a || a > 4 || p >= c->n)
		return 0;
	sep = c->s[p];
	if (sep != '-' && sep != '/' && sep != '.')
		return 0;
	b = digits_at(c, p + 1);
	if (!b || b > 2 || p + 1 + b >= c->n || c->s[p + 1 + b] != sep)
		return 0;
	d = digits_at(c, p + 2 + b);
	x = value_at(c, i, a), y = value_at(c, p + 1, b), z = d <= 4 ? value_at(c, p + 2 + b, d) : 0;
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
static char half_day(const struct say *c, size_t i, size_t *ret_len)
{
	static const char *const forms[] = { "a.m.", "a.m", "am", "p.m.", "p.m", "pm" };
	int f;

	for (f = 0; f < 6; f++) {
		size_t len = strlen(forms[f]);

		if (at(c, i, forms[f]) && !alpha(c, i + len) && !digit(c, i + len)) {
			*ret_len = len;
			return f < 3 ? 'A' : 'P';
		}
	}
	return 0;
}

static void say_half(struct say *c, char half)
{
	words_add(&c->out, half == 'A' ? "A M" : "P M");
}

/* 8:30, 20:15, 8:30:15 a.m. */
static size_t read_time(struct say *c, size_t i)
{
	size_t a = digits_at(c, i), len = 0, sp, p = i + a;
	uint64_t h, m, s = 0;
	char half;

	if (!a || a > 2 || p >= c->n || c->s[p] != ':' || digits_at(c, p + 1) != 2)
		return 0;
	h = value_at(c, i, a), m = value_at(c, p + 1, 2);
	if (h > 24 || m > 59)
		return 0;
	p += 3;
	if (p < c->n && c->s[p] == ':' && digits_at(c, p + 1) == 2) {
		s = value_at(c, p + 1, 2);
		p += 3;
	}
	sp = p < c->n && c->s[p] == ' ' ? 1 : 0;
	half = half_day(c, p + sp, &len);
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

/* -- numbers -- */

struct figure {
	int minus;
	uint64_t whole;
	size_t n_whole;       /* digits of it */
	int leading_zero;
	int too_long;
	const char *frac;     /* digits behind the point, or NULL */
	size_t n_frac;
	size_t len;           /* bytes */
	size_t at;            /* of its first digit */
};

/* A number from @i: grouping by comma or dot, a decimal point or comma. 0 when there is none. */
static size_t read_figure(const struct say *c, size_t i, struct figure *f)
{
	size_t a, p;
	char group = 0;

	memset(f, 0, sizeof(*f));
	p = i;
	if (c->s[p] == '-' || c->s[p] == '+')
		f->minus = c->s[p++] == '-';
	a = digits_at(c, p);
	if (!a)
		return 0;
	f->at = p;
	f->n_whole = a;
	f->leading_zero = a > 1 && c->s[p] == '0';
	f->too_long = a > 15;
	f->whole = f->too_long ? 0 : value_at(c, p, a);
	p += a;
	/* 1,234,567 and 1.234.567,8; a single ".500" is a decimal, a single ",500" a group. */
	while (a <= 3 && !f->leading_zero && f->whole && p < c->n && (c->s[p] == ',' || c->s[p] == '.') &&
	       digits_at(c, p + 1) == 3 && f->n_whole < 15 && (!group || group == c->s[p])) {
		size_t after = p + 4;

		if (c->s[p] == '.' && !group && !(after < c->n && (c->s[after] == '.' || c->s[after] == ',') && digit(c, after + 1)))
			break;
		group = c->s[p];
		f->whole = f->whole * 1000 + value_at(c, p + 1, 3);
		f->n_whole += 3;
		p += 4;
	}
	if (p + 1 < c->n && (c->s[p] == '.' || c->s[p] == ',') && c->s[p] != group && digit(c, p + 1)) {
		f->frac = c->s + p + 1;
		f->n_frac = digits_at(c, p + 1);
		p += 1 + f->n_frac;
	}
	f->len = p - i;
	return f->len;
}

static void say_figure(struct say *c, const struct figure *f)
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

static int is_one(const struct figure *f) { return f->whole == 1 && !f->frac && !f->too_long; }

static const struct unit {
	const char *sign, *one, *many;
} units[] = { /* longest first where one begins another */
	{ "\xc2\xb0" "C", "degree Celsius", "degrees Celsius" },
	{ "\xc2\xb0 C", "degree Celsius", "degrees Celsius" },
	{ "\xe2\x84\x83", "degree Celsius", "degrees Celsius" },
	{ "\xc2\xb0" "F", "degree Fahrenheit", "degrees Fahrenheit" },
	{ "\xc2\xb0 F", "degree Fahrenheit", "degrees Fahrenheit" },
	{ "\xe2\x84\x89", "degree Fahrenheit", "degrees Fahrenheit" },
	{ "\xc2\xb0", "degree", "degrees" },
	{ "%", "percent", "percent" },
	{ "km/h", "kilometer per hour", "kilometers per hour" },
	{ "kmh", "kilometer per hour", "kilometers per hour" },
	{ "m/s", "meter per second", "meters per second" },
	{ "mph", "mile per hour", "miles per hour" },
	{ "kWh", "kilowatt hour", "kilowatt hours" },
	{ "Wh", "watt hour", "watt hours" },
	{ "kW", "kilowatt", "kilowatts" },
	{ "MW", "megawatt", "megawatts" },
	{ "W", "watt", "watts" },
	{ "kV", "kilovolt", "kilovolts" },
	{ "mA", "milliampere", "milliamperes" },
	{ "V", "volt", "volts" },
	{ "A", "ampere", "amperes" },
	{ "km\xc2\xb2", "square kilometer", "square kilometers" },
	{ "m\xc2\xb2", "square meter", "square meters" },
	{ "m\xc2\xb3", "cubic meter", "cubic meters" },
	{ "km", "kilometer", "kilometers" },
	{ "cm", "centimeter", "centimeters" },
	{ "mm", "millimeter", "millimeters" },
	{ "m", "meter", "meters" },
	{ "mi", "mile", "miles" },
	{ "ft", "foot", "feet" },
	{ "in", "inch", "inches" },
	{ "kg", "kilogram", "kilograms" },
	{ "mg", "milligram", "milligrams" },
	{ "g", "gram", "grams" },
	{ "lbs", "pound", "pounds" },
	{ "lb", "pound", "pounds" },
	{ "oz", "ounce", "ounces" },
	{ "ml", "milliliter", "milliliters" },
	{ "mL", "milliliter", "milliliters" },
	{ "cl", "centiliter", "centiliters" },
	{ "l", "liter", "liters" },
	{ "L", "liter", "liters" },
	{ "GHz", "gigahertz", "gigahertz" },
	{ "MHz", "megahertz", "megahertz" },
	{ "kHz", "kilohertz", "kilohertz" },
	{ "Hz", "hertz", "hertz" },
	{ "GB", "gigabyte", "gigabytes" },
	{ "MB", "megabyte", "megabytes" },
	{ "KB", "kilobyte", "kilobytes" },
	{ "kB", "kilobyte", "kilobytes" },
	{ "TB", "terabyte", "terabytes" },
	{ "dB", "decibel", "decibels" },
	{ "hPa", "hectopascal", "hectopascals" },
	{ "ppm", "part per million", "parts per million" },
	{ "lx", "lux", "lux" },
	{ "lm", "lumen", "lumens" },
	{ "K", "kelvin", "kelvin" },
	{ "hrs", "hour", "hours" },
	{ "hr", "hour", "hours" },
	{ "h", "hour", "hours" },
	{ "mins", "minute", "minutes" },
	{ "min", "minute", "minutes" },
	{ "secs", "second", "seconds" },
	{ "sec", "second", "seconds" },
	{ "ms", "millisecond", "milliseconds" },
	{ "s", "second", "seconds" },
	{ "tbsp", "tablespoon", "tablespoons" },
	{ "tsp", "teaspoon", "teaspoons" },
};

/* Units that are words of English too: only glued to the number, or before a dot. */
static int shy_unit(const char *sign)
{
	return !strcmp(sign, "in") || !strcmp(sign, "A") || !strcmp(sign, "s") || !strcmp(sign, "K");
}

/* The unit behind a number at @i (a space may lie between). Bytes, 0 when none. */
static size_t read_unit(struct say *c, size_t i, int one)
{
	size_t sp = i < c->n && c->s[i] == ' ' ? 1 : 0, k;

	for (k = 0; k < sizeof(units) / sizeof(units[0]); k++) {
		size_t len = strlen(units[k].sign), e = i + sp + len;

		if (e > c->n || memcmp(c->s + i + sp, units[k].sign, len))
			continue;
		if (isalpha((unsigned char)units[k].sign[len - 1]) && (alpha(c, e) || digit(c, e)))
			continue;
		if (e < c->n && c->s[e] == '\'') /* "5 m's" */
			continue;
		if (sp && shy_unit(units[k].sign) && strcmp(units[k].sign, "K"))
			continue;
		words_add(&c->out, one ? units[k].one : units[k].many);
		/* "5 min." in the middle of a phrase: the dot belongs to the unit. */
		if (e + 1 < c->n && c->s[e] == '.' && c->s[e + 1] == ' ' && islower((unsigned char)c->s[e + 2 < c->n ? e + 2 : e + 1]))
			e++;
		return e - i;
	}
	return 0;
}

static const struct { const char *sign, *one, *many, *cent, *cents; } money[] = {
	{ "$", "dollar", "dollars", "cent", "cents" },
	{ "\xe2\x82\xac", "euro", "euros", "cent", "cents" },
	{ "\xc2\xa3", "pound", "pounds", "penny", "pence" },
	{ "\xc2\xa5", "yen", "yen", NULL, NULL },
	{ "\xe2\x82\xb9", "rupee", "rupees", "paisa", "paise" },
};

static int money_at(const struct say *c, size_t i)
{
	int k;

	for (k = 0; k < 5; k++)
		if (at(c, i, money[k].sign))
			return k;
	return -1;
}

static size_t read_scale(struct say *c, size_t i)
{
	static const char *const scales[] = { " million", " billion", " trillion", " thousand" };
	int k;

	for (k = 0; k < 4; k++)
		if (at(c, i, scales[k]) && !alpha(c, i + strlen(scales[k]))) {
			words_add(&c->out, scales[k] + 1);
			return strlen(scales[k]);
		}
	return 0;
}

static void say_money(struct say *c, const struct figure *f, int k)
{
	uint64_t cents = 0;

	if (f->frac && f->n_frac <= 2 && money[k].cent) {
		cents = (uint64_t)(f->frac[0] - '0') * 10 + (f->n_frac == 2 ? (uint64_t)(f->frac[1] - '0') : 0);
		if (f->minus)
			words_add(&c->out, "minus");
		if (f->whole || !cents) {
			words_number(&c->out, f->whole);
			words_add(&c->out, f->whole == 1 ? money[k].one : money[k].many);
			if (cents)
				words_add(&c->out, "and");
		}
		if (cents) {
			words_number(&c->out, cents);
			words_add(&c->out, cents == 1 ? money[k].cent : money[k].cents);
		}
		return;
	}
	say_figure(c, f);
	words_add(&c->out, is_one(f) ? money[k].one : money[k].many);
}

/* "$3.50", "€ 20 million" */
static size_t read_money(struct say *c, size_t i)
{
	int k = money_at(c, i);
	struct figure f;
	size_t p, scale;

	if (k < 0)
		return 0;
	p = i + strlen(money[k].sign);
	if (p < c->n && c->s[p] == ' ')
		p++;
	if (!digit(c, p) || !read_figure(c, p, &f))
		return 0;
	p += f.len;
	if (at(c, p, " million") || at(c, p, " billion") || at(c, p, " trillion") || at(c, p, " thousand")) {
		say_figure(c, &f);
		scale = read_scale(c, p);
		words_add(&c->out, money[k].many);
		return p + scale - i;
	}
	say_money(c, &f, k);
	return p - i;
}

static int year_context(const struct say *c)
{
	static const char *const before[] = { "in", "since", "of", "year", "until", "by", "from", "before", "after", "summer", "winter", "spring", "autumn", NULL };
	int k;

	for (k = 0; before[k]; k++)
		if (!strcmp(c->last, before[k]))
			return 1;
	return month_of(c->last, strlen(c->last)) > 0;
}

/* "1/2", "3/4": bytes, or 0. */
static size_t read_fraction(struct say *c, size_t i)
{
	size_t a = digits_at(c, i), b;
	uint64_t x, y;

	if (!a || a > 2 || i + a >= c->n || c->s[i + a] != '/')
		return 0;
	b = digits_at(c, i + a + 1);
	if (!b || b > 2 || (i + a + 1 + b < c->n && (c->s[i + a + 1 + b] == '/' || alpha(c, i + a + 1 + b))))
		return 0;
	x = value_at(c, i, a), y = value_at(c, i + a + 1, b);
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

static size_t read_vulgar(struct say *c, size_t i, int after_number)
{
	int k;

	for (k = 0; k < 5; k++)
		if (at(c, i, vulgar[k].sign)) {
			words_add(&c->out, after_number ? vulgar[k].after : vulgar[k].said);
			return strlen(vulgar[k].sign);
		}
	return 0;
}

static size_t range_sign(const struct say *c, size_t i)
{
	if (at(c, i, "\xe2\x80\x93"))
		return digit(c, i + 3) ? 3 : 0;
	if (at(c, i, " \xe2\x80\x93 "))
		return digit(c, i + 5) ? 5 : 0;
	return i + 1 < c->n && c->s[i] == '-' && digit(c, i + 1) ? 1 : 0;
}

static size_t read_number(struct say *c, size_t i)
{
	size_t p, len, m;
	struct figure f;
	int k, dots;

	if ((c->s[i] == '-' || c->s[i] == '+') && !digit(c, i + 1))
		return 0;
	if (!digit(c, i) && c->s[i] != '-' && c->s[i] != '+')
		return 0;
	if (c->s[i] == '+' && digit(c, i + 1)) {
		words_add(&c->out, "plus");
		return 1;
	}
	if ((len = read_date(c, i)) || (len = read_time(c, i)) || (len = read_fraction(c, i)))
		return len;
	/* 10.0.0.1, 1.2.3: every dot is said. */
	for (p = i, dots = 0; digit(c, p);) {
		p += digits_at(c, p);
		if (p + 1 < c->n && c->s[p] == '.' && digit(c, p + 1))
			dots++, p++;
	}
	if (dots >= 2 && digit(c, i)) {
		struct figure g;

		if (!(read_figure(c, i, &g) && i + g.len >= p && g.n_whole > 3)) {
			for (p = i; digit(c, p);) {
				len = digits_at(c, p);
				if (len > 9)
					words_digits(&c->out, c->s + p, len);
				else
					words_number(&c->out, value_at(c, p, len));
				p += len;
				if (p + 1 < c->n && c->s[p] == '.' && digit(c, p + 1)) {
					words_add(&c->out, "point");
					p++;
				}
			}
			return p - i;
		}
	}
	if (!read_figure(c, i, &f))
		return 0;
	p = i + f.len;
	/* 3rd */
	if (!f.frac && !f.minus && (at(c, p, "st") || at(c, p, "nd") || at(c, p, "rd") || at(c, p, "th")) &&
	    !alpha(c, p + 2) && f.whole > 0 && f.whole < 1000000) {
		words_ordinal(&c->out, f.whole);
		return p + 2 - i;
	}
	/* 3 May, May 3 */
	if (!f.frac && !f.minus && f.n_whole <= 2 && f.whole >= 1 && f.whole <= 31) {
		if (month_of(c->last, strlen(c->last)) && !range_sign(c, p) && !at(c, p, "%")) {
			words_ordinal(&c->out, f.whole);
			return f.len;
		}
		if (p < c->n && c->s[p] == ' ') {
			size_t e = p + 1;

			while (alpha(c, e))
				e++;
			m = (size_t)month_of(c->s + p + 1, e - p - 1);
			/* "May" is a verb as well: "3 may", lower case, is not a date. */
			if (m && isupper((unsigned char)c->s[p + 1])) {
				if (strcmp(c->last, "the"))
					words_add(&c->out, "the");
				words_ordinal(&c->out, f.whole);
				words_add(&c->out, "of");
				words_add(&c->out, months[m - 1]);
				strcpy(c->last, months[m - 1]);
				if (e < c->n && c->s[e] == '.' && e - p - 1 <= 4)
					e++;
				return e - i;
			}
		}
	}
	/* 1999 where a year stands */
	if (!f.frac && !f.minus && f.n_whole == 4 && f.len == 4 && f.whole >= 1100 && f.whole < 2100 && year_context(c) &&
	    !(p < c->n && (c->s[p] == ' ' ? 0 : alpha(c, p)))) {
		struct words mark = c->out;
		size_t u = read_unit(c, p, 0);

		words_undo(&c->out, &mark);
		if (!u) {
			words_year(&c->out, (unsigned int)f.whole);
			return f.len;
		}
	}
	say_figure(c, &f);
	if (!f.frac && (len = read_vulgar(c, p, 1))) {
		p += len;
		p += read_unit(c, p, 0);
		return p - i;
	}
	if ((len = half_day(c, p, &m) ? m : 0) || (p < c->n && c->s[p] == ' ' && (len = half_day(c, p + 1, &m) ? m + 1 : 0))) {
		if (f.whole >= 1 && f.whole <= 12 && !f.frac && (p + len <= c->n) && (c->s[p] != ' ' || c->s[p + 2] == '.' || tolower((unsigned char)c->s[p + 2]) == 'm')) {
			say_half(c, half_day(c, p + (c->s[p] == ' '), &m));
			return p + len - i;
		}
	}
	if ((len = range_sign(c, p))) {
		struct figure g;
		size_t q = p + len;

		/* "5-10", not "5-10-3" and not a phone number */
		if (read_figure(c, q, &g) && !(q + g.len < c->n && c->s[q + g.len] == '-') && !f.leading_zero && !g.leading_zero && g.whole > f.whole) {
			words_add(&c->out, "to");
			say_figure(c, &g);
			q += g.len;
			q += read_unit(c, q, 0);
			return q - i;
		}
	}
	if ((k = money_at(c, p)) >= 0 || (p < c->n && c->s[p] == ' ' && (k = money_at(c, p + 1)) >= 0)) {
		words_add(&c->out, is_one(&f) ? money[k].one : money[k].many);
		return p + (c->s[p] == ' ') + strlen(money[k].sign) - i;
	}
	/* 2*3, 2 x 3, 1920x1080 */
	for (m = p; m < c->n && c->s[m] == ' '; m++)
		;
	if (m < c->n && m - p <= 1) {
		size_t q = m + (at(c, m, "\xc3\x97") ? 2 : 1);
		const char *op = NULL;

		if (at(c, m, "\xc3\x97") || c->s[m] == '*' || (c->s[m] == 'x' && (digit(c, q) || (q < c->n && c->s[q] == ' ' && digit(c, q + 1)))))
			op = "times";
		else if (c->s[m] == '^')
			op = "to the power of";
		else if (c->s[m] == '+')
			op = "plus";
		else if (c->s[m] == '/' && m > p)
			op = "divided by";
		else if (c->s[m] == '-' && m > p && q < c->n && c->s[q] == ' ')
			op = "minus";
		if (op && (digit(c, q) || (q < c->n && c->s[q] == ' ' && digit(c, q + 1)))) {
			words_add(&c->out, op);
			return q - i;
		}
	}
	/* 24/7, 16:9 */
	if (p + 1 < c->n && (c->s[p] == '/' || c->s[p] == ':') && digit(c, p + 1) && !f.frac) {
		if (c->s[p] == ':')
			words_add(&c->out, "to");
		return p + 1 - i;
	}
	p += read_scale(c, p);
	p += read_unit(c, p, is_one(&f));
	/* "4K", "5G": the letters are said apart. */
	return p - i;
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
	int scheme = at(c, i, "http://") || at(c, i, "https://"), www = at(c, i, "www."), plain = 1;

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
	k = i + (scheme ? (at(c, i, "https") ? 8 : 7) : 0);
	if (scheme && at(c, k, "www."))
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
			w += digits_at(c, k);
			if (w > e)
				w = e;
			if (w - k <= 4 && c->s[k] != '0')
				words_number(&c->out, value_at(c, k, w - k));
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

	if (!alpha(c, i))
		return 0;
	if ((len = read_address(c, i)))
		return len;
	if (half_day(c, i, &half) && half >= 3) {
		say_half(c, half_day(c, i, &half));
		return half;
	}
	while (alpha(c, e) || (e > i && e + 1 < c->n && c->s[e] == '.' && alpha(c, e + 1)) || (e < c->n && c->s[e] == '\'' && alpha(c, e + 1)))
		e++;
	len = e - i;
	if (e < c->n && c->s[e] == '.') {
		if (len == 2 && at(c, i, "no") && ((e + 1 < c->n && c->s[e + 1] == ' ' && digit(c, e + 2)) || digit(c, e + 1))) {
			words_add(&c->out, "number");
			return len + 1;
		}
		if (len == 2 && at(c, i, "St")) {
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
		if ((m = month_of(c->s + i, len)) && len <= 4 && e + 1 < c->n) {
			words_add(&c->out, months[m - 1]);
			return len + 1;
		}
		for (k = 0; k < 7; k++)
			if (len >= 3 && len <= 5 && isupper((unsigned char)c->s[i]) && !strncasecmp(c->s + i, days[k], len) &&
			    e + 1 < c->n && strcasecmp(days[k], "Sunday")) {
				words_add(&c->out, days[k]);
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
	} else if (len == 3 && isupper((unsigned char)c->s[i]) && (m = month_of(c->s + i, len)) &&
		   e + 1 < c->n && c->s[e] == ' ' && digit(c, e + 1)) {
		words_add(&c->out, months[m - 1]);
		return len;
	}
	/* "vs", "etc" stand without their dot too. */
	if ((len == 2 && at(c, i, "vs")) || (len == 3 && at(c, i, "etc"))) {
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
		if (at(c, i, signs[k].sign)) {
			words_add(&c->out, signs[k].said);
			return strlen(signs[k].sign);
		}
	if ((c->s[i] == '#' || c->s[i] == '~') && digit(c, i + 1)) {
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

	while (w > i && !alpha(c, w - 1))
		w--;
	for (b = w; b > 0 && alpha(c, b - 1); b--)
		;
	if (w == b)
		return;
	m = month_of(c->s + b, w - b);
	if (m) {
		strcpy(c->last, months[m - 1]);
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
		if (digit(&c, c.i) || (fresh && (c.s[c.i] == '-' || c.s[c.i] == '+')))
			used = read_number(&c, c.i);
		if (!used)
			used = read_money(&c, c.i);
		if (!used)
			used = read_vulgar(&c, c.i, 0);
		if (!used && alpha(&c, c.i))
			used = read_word(&c, c.i);
		if (!used)
			used = read_sign(&c, c.i);
		if (used) {
			remember(&c, c.i, used);
			c.i += used;
			fresh = 0;
			continue;
		}
		if (c.s[c.i] == '-' && c.i > 0 && alpha(&c, c.i - 1) && alpha(&c, c.i + 1))
			words_space(&c.out); /* "eighty-five", "well-known" */
		else
			words_copy(&c.out, c.s + c.i, ch);
		fresh = !alpha(&c, c.i);
		c.i += ch;
	}
	return words_finish(&c.out, ret_spoken);
}
