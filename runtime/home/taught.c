// SPDX-License-Identifier: MIT
/*
 * A name in the characters that the model was taught: letters, digits, spaces, hyphens,
 * apostrophes and nine letters of other alphabets (tools/home/homes.py). Of anything
 * else it makes another name, which may be that of another device.
 */
#include "home/priv.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static const char *const taught[] = { "ä", "ö", "ü", "é", "è", "å", "ø", "ç", "ñ" };

/* U+00C0 and on, in the letters of ASCII. */
static const char *const latin1[64] = {
	"A", "A", "A", "A", "A", "A", "Ae", "C", "E", "E", "E", "E", "I", "I", "I", "I",
	"D", "N", "O", "O", "O", "O", "O", " ", "O", "U", "U", "U", "U", "Y", "Th", "ss",
	"a", "a", "a", "a", "a", "a", "ae", "c", "e", "e", "e", "e", "i", "i", "i", "i",
	"d", "n", "o", "o", "o", "o", "o", " ", "o", "u", "u", "u", "u", "y", "th", "y",
};

/* U+0100 to U+017F; what takes two letters is in others[]. */
static const char latin_a[] =
	"AaAaAaCcCcCcCcDd" "DdEeEeEeEeEeGgGg" "GgGgHhHhIiIiIiIi" "IiIiJjKkkLlLlLlL"
	"lLlNnNnNnnNnOoOo" "OoOoRrRrRrSsSsSs" "SsTtTtTtUuUuUuUu" "UuUuWwYyYZzZzZzs";

static const char *const cyrillic[32] = {
	"a", "b", "v", "g", "d", "e", "zh", "z", "i", "y", "k", "l", "m", "n", "o", "p",
	"r", "s", "t", "u", "f", "kh", "ts", "ch", "sh", "shch", "", "y", "", "e", "yu", "ya",
};

static const char *const greek[25] = {
	"a", "v", "g", "d", "e", "z", "i", "th", "i", "k", "l", "m", "n", "x", "o", "p", "r", "s", "s", "t", "y", "f", "ch", "ps", "o",
};

static const struct { uint32_t cp; const char *as; } others[] = {
	{ '+', " Plus " }, { '@', " At " },
	{ 0x132, "Ij" }, { 0x133, "ij" }, { 0x152, "Oe" }, { 0x153, "oe" }, { 0x218, "S" }, { 0x219, "s" }, { 0x21a, "T" }, { 0x21b, "t" }, { 0x1e9e, "SS" },
	{ 0x2bc, "'" }, { 0x2018, "'" }, { 0x2019, "'" }, { '`', "'" }, { 0xb4, "'" },
	{ 0x386, "A" }, { 0x388, "E" }, { 0x389, "I" }, { 0x38a, "I" }, { 0x38c, "O" }, { 0x38e, "Y" }, { 0x38f, "O" },
	{ 0x3ac, "a" }, { 0x3ad, "e" }, { 0x3ae, "i" }, { 0x3af, "i" }, { 0x3cc, "o" }, { 0x3cd, "y" }, { 0x3ce, "o" },
	{ 0x401, "Yo" }, { 0x404, "Ye" }, { 0x406, "I" }, { 0x407, "Yi" }, { 0x451, "yo" }, { 0x454, "ye" }, { 0x456, "i" }, { 0x457, "yi" },
	{ 0x490, "G" }, { 0x491, "g" },
};

/* Marks that stand between words or beside them, and pictures: without them a name is still whole. */
static bool is_mark(uint32_t cp)
{
	return cp < 0xc0 || cp == 0xd7 || cp == 0xf7 || (cp >= 0x2000 && cp < 0x2c00) || (cp >= 0x3000 && cp < 0x3040) ||
	       (cp >= 0xfe00 && cp < 0xfe10) || (cp >= 0x1f000 && cp < 0x1fb00);
}

/* How @cp is told: "" leaves it out, NULL: it cannot be told. */
static const char *as_taught(uint32_t cp, char buf[8])
{
	size_t i;

	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (others[i].cp == cp)
			return others[i].as;
	if (cp >= 0xc0 && cp < 0x100) {
		for (i = 0; i < sizeof(taught) / sizeof(taught[0]); i++) {
			uint32_t t = 0;

			utf8_get(taught[i], strlen(taught[i]), &t);
			if (t == cp)
				return taught[i];
		}
		return latin1[cp - 0xc0];
	}
	if (cp >= 0x100 && cp < 0x180) {
		buf[0] = latin_a[cp - 0x100];
		buf[1] = 0;
		return buf;
	}
	if (cp >= 0x300 && cp < 0x370)
		return ""; /* an accent by itself */
	if ((cp >= 0x410 && cp < 0x450) || (cp >= 0x391 && cp < 0x3ca)) {
		const bool small = cp >= 0x430 || (cp < 0x400 && cp >= 0x3b1);

		if (cp < 0x400 && cp - (small ? 0x3b1 : 0x391) >= 25)
			return NULL;
		snprintf(buf, 8, "%s", cp >= 0x410 ? cyrillic[(cp - 0x410) % 32] : greek[cp - (small ? 0x3b1 : 0x391)]);
		if (!small)
			buf[0] = (char)toupper((unsigned char)buf[0]);
		return buf;
	}
	return is_mark(cp) ? " " : NULL;
}

char *home_taught_form(const char *name, bool *ret_lost)
{
	size_t n = strlen(name), at, len = 0, i;
	char *raw = calloc(n + 1, 7), *out, buf[8];  /* " Plus " is the longest, and a space more */
	const char *as;
	bool same;

	*ret_lost = false;
	if (!raw)
		return NULL;
	for (at = 0; at < n;) {
		uint32_t cp = 0;
		int k = utf8_get(name + at, n - at, &cp);

		if (k <= 0) {
			cp = ' ';
			k = 1;
		}
		if (cp < 0x80 && (isalnum((int)cp) || strchr(" '-", (int)cp))) {
			raw[len++] = (char)cp;
		} else {
			as = as_taught(cp, buf);
			*ret_lost |= !as;
			as = as ? as : " ";
			memcpy(raw + len, as, strlen(as));
			len += strlen(as);
		}
		at += (size_t)k;
	}
	raw[len] = 0;
	/* A hyphen joins; the only apostrophe that it knows is that of "Mum's". */
	for (i = 0; i < len; i++)
		if (raw[i] == '-' && !(i && home_in_word(raw[i - 1]) && home_in_word(raw[i + 1])))
			raw[i] = ' ';
	for (i = 0, at = 0; i < len; i++)
		if (raw[i] == '\'' ? i && home_in_word(raw[i - 1]) && raw[i + 1] == 's' && !home_in_word(raw[i + 2]) : raw[i] != ' ' || (at && raw[at - 1] != ' '))
			raw[at++] = raw[i];
	while (at && raw[at - 1] == ' ')
		at--;
	raw[at] = 0;
	/* It takes a number in front for a value: "50 Lamp" is told as "Lamp 50". */
	i = strspn(raw, "0123456789");
	if (i && raw[i] == ' ') {
		char number[8];

		if (i < sizeof(number)) {
			memcpy(number, raw, i);
			memmove(raw, raw + i + 1, at - i - 1);
			raw[at - i - 1] = ' ';
			memcpy(raw + at - i, number, i);
		}
	}
	same = !strcmp(raw, name);
	for (i = 0; !same && raw[i]; i++)
		if (!i || raw[i - 1] == ' ')
			raw[i] = (char)toupper((unsigned char)raw[i]);
	out = strdup(raw);
	free(raw);
	return out;
}
