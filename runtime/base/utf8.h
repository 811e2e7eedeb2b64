/* SPDX-License-Identifier: MIT */
/* One character of UTF-8, by the table of the Unicode standard (3.9, D92). */
#ifndef HEARTH_BASE_UTF8_H
#define HEARTH_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/*
 * Bytes of the character that p[0..n) begins with (1..4); 0 when it is right
 * so far and goes on after n; -1 when no character begins like this. n > 0.
 */
static inline int utf8_char(const void *text, size_t n)
{
	const uint8_t *p = text;
	uint8_t lo = 0x80, hi = 0xbf;
	int len;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return -1;
	len = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		lo = 0xa0;
	else if (p[0] == 0xed)
		hi = 0x9f; /* no surrogates */
	else if (p[0] == 0xf0)
		lo = 0x90;
	else if (p[0] == 0xf4)
		hi = 0x8f;
	for (int i = 1; i < len; i++) {
		if ((size_t)i >= n)
			return 0;
		if (p[i] < lo || p[i] > hi)
			return -1;
		lo = 0x80;
		hi = 0xbf;
	}
	return len;
}

/* The same, and which character it is in *@ret where it is a whole one. */
static inline int utf8_get(const void *text, size_t n, uint32_t *ret)
{
	static const uint8_t head[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	const int len = utf8_char(text, n);
	const uint8_t *p = text;

	if (len > 0)
		*ret = p[0] & head[len];
	for (int i = 1; i < len; i++)
		*ret = *ret << 6 | (p[i] & 0x3f);
	return len;
}

/* The bytes of @cp (at most 0x10ffff); returns how many. */
static inline int utf8_put(uint32_t cp, uint8_t out[4])
{
	if (cp < 0x80) {
		out[0] = (uint8_t)cp;
		return 1;
	}
	if (cp < 0x800) {
		out[0] = (uint8_t)(0xc0 | cp >> 6);
		out[1] = (uint8_t)(0x80 | (cp & 63));
		return 2;
	}
	if (cp < 0x10000) {
		out[0] = (uint8_t)(0xe0 | cp >> 12);
		out[1] = (uint8_t)(0x80 | (cp >> 6 & 63));
		out[2] = (uint8_t)(0x80 | (cp & 63));
		return 3;
	}
	out[0] = (uint8_t)(0xf0 | cp >> 18);
	out[1] = (uint8_t)(0x80 | (cp >> 12 & 63));
	out[2] = (uint8_t)(0x80 | (cp >> 6 & 63));
	out[3] = (uint8_t)(0x80 | (cp & 63));
	return 4;
}

/* Length of the longest prefix of whole characters. */
static inline size_t utf8_valid(const char *s, size_t n)
{
	size_t i = 0;
	int k;

	while (i < n) {
		k = utf8_char(s + i, n - i);
		if (k <= 0)
			break;
		i += (size_t)k;
	}
	return i;
}

#endif
