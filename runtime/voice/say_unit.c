// SPDX-License-Identifier: MIT
/* Units and money. */
#include "voice/say.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

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
size_t say_read_unit(struct say *c, size_t i, int one)
{
	size_t sp = i < c->n && c->s[i] == ' ' ? 1 : 0, k;

	for (k = 0; k < sizeof(units) / sizeof(units[0]); k++) {
		size_t len = strlen(units[k].sign), e = i + sp + len;

		if (e > c->n || memcmp(c->s + i + sp, units[k].sign, len))
			continue;
		if (isalpha((unsigned char)units[k].sign[len - 1]) && (say_alpha(c, e) || say_digit(c, e)))
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

const struct currency say_currencies[5] = {
	{ "$", "dollar", "dollars", "cent", "cents" },
	{ "\xe2\x82\xac", "euro", "euros", "cent", "cents" },
	{ "\xc2\xa3", "pound", "pounds", "penny", "pence" },
	{ "\xc2\xa5", "yen", "yen", NULL, NULL },
	{ "\xe2\x82\xb9", "rupee", "rupees", "paisa", "paise" },
};

int say_money_at(const struct say *c, size_t i)
{
	int k;

	for (k = 0; k < 5; k++)
		if (say_at(c, i, say_currencies[k].sign))
			return k;
	return -1;
}

size_t say_read_scale(struct say *c, size_t i)
{
	static const char *const scales[] = { " million", " billion", " trillion", " thousand" };
	int k;

	for (k = 0; k < 4; k++)
		if (say_at(c, i, scales[k]) && !say_alpha(c, i + strlen(scales[k]))) {
			words_add(&c->out, scales[k] + 1);
			return strlen(scales[k]);
		}
	return 0;
}

void say_money(struct say *c, const struct figure *f, int k)
{
	uint64_t cents = 0;

	if (f->frac && f->n_frac <= 2 && say_currencies[k].cent) {
		cents = (uint64_t)(f->frac[0] - '0') * 10 + (f->n_frac == 2 ? (uint64_t)(f->frac[1] - '0') : 0);
		if (f->minus)
			words_add(&c->out, "minus");
		if (f->whole || !cents) {
			words_number(&c->out, f->whole);
			words_add(&c->out, f->whole == 1 ? say_currencies[k].one : say_currencies[k].many);
			if (cents)
				words_add(&c->out, "and");
		}
		if (cents) {
			words_number(&c->out, cents);
			words_add(&c->out, cents == 1 ? say_currencies[k].cent : say_currencies[k].cents);
		}
		return;
	}
	say_figure(c, f);
	words_add(&c->out, say_is_one(f) ? say_currencies[k].one : say_currencies[k].many);
}

/* "$3.50", "€ 20 million" */
size_t say_read_money(struct say *c, size_t i)
{
	int k = say_money_at(c, i);
	struct figure f;
	size_t p, scale;

	if (k < 0)
		return 0;
	p = i + strlen(say_currencies[k].sign);
	if (p < c->n && c->s[p] == ' ')
		p++;
	if (!say_digit(c, p) || !say_read_figure(c, p, &f))
		return 0;
	p += f.len;
	if (say_at(c, p, " million") || say_at(c, p, " billion") || say_at(c, p, " trillion") || say_at(c, p, " thousand")) {
		say_figure(c, &f);
		scale = say_read_scale(c, p);
		words_add(&c->out, say_currencies[k].many);
		return p + scale - i;
	}
	say_money(c, &f, k);
	return p - i;
}
