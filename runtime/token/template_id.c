// SPDX-License-Identifier: MIT
#include "token/template_id.h"

#include <stdbool.h>
#include <string.h>

struct hash {
	uint64_t h;
};

static void add(struct hash *h, char kind, const char *s, size_t n)
{
	h->h = (h->h ^ (uint8_t)kind) * 0x100000001b3ull;
	for (size_t i = 0; i < n; i++)
		h->h = (h->h ^ (uint8_t)s[i]) * 0x100000001b3ull;
	h->h = (h->h ^ 0xff) * 0x100000001b3ull;
}

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/* A string in quotes, hashed as what it stands for. Returns its bytes, 0 when it has no end. */
static size_t add_string(struct hash *h, char kind, const char *s, size_t n)
{
	char c;
	size_t i;

	h->h = (h->h ^ (uint8_t)kind) * 0x100000001b3ull;
	for (i = 1; i < n && s[i] != s[0]; i++) {
		c = s[i];
		if (c == '\\' && i + 1 < n) {
			c = s[++i];
			c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
		}
		h->h = (h->h ^ (uint8_t)c) * 0x100000001b3ull;
	}
	h->h = (h->h ^ 0xff) * 0x100000001b3ull;
	return i < n ? i + 1 : 0;
}

/* ['name'] as .name: what it takes at @s, 0 when it is something else. */
static size_t add_member(struct hash *h, const char *s, size_t n)
{
	size_t i = 2;

	if (n < 5 || s[0] != '[' || (s[1] != '\'' && s[1] != '"'))
		return 0;
	while (i < n && word(s[i]))
		i++;
	if (i == 2 || i + 1 >= n || s[i] != s[1] || s[i + 1] != ']')
		return 0;
	add(h, 'o', ".", 1);
	add(h, 'w', s + 2, i - 2);
	return i + 2;
}

/* What is between {{ and }}, or {% and %}. False: a string without an end. */
static bool add_inside(struct hash *h, const char *s, size_t n)
{
	size_t i = 0, k;

	while (i < n) {
		if (blank(s[i])) {
			i++;
			continue;
		}
		if (s[i] == '\'' || s[i] == '"') {
			k = add_string(h, 's', s + i, n - i);
			if (!k)
				return false;
		} else if (word(s[i])) {
			for (k = 1; i + k < n && word(s[i + k]); k++)
				;
			add(h, 'w', s + i, k);
		} else {
			k = i ? add_member(h, s + i, n - i) : 0;
			if (!k) {
				k = 1;
				add(h, 'o', s + i, 1);
			}
		}
		i += k;
	}
	return true;
}

/* Length of a tag from its "{" to after its "}"; 0: no end. */
static size_t tag_length(const char *s, size_t n)
{
	char close = s[1] == '{' ? '}' : s[1];
	char quote = 0;

	for (size_t i = 2; i + 1 < n; i++) {
		if (quote) {
			if (s[i] == '\\')
				i++;
			else if (s[i] == quote)
				quote = 0;
		} else if (s[1] != '#' && (s[i] == '\'' || s[i] == '"')) {
			quote = s[i];
		} else if (s[i] == close && s[i + 1] == '}') {
			return i + 2;
		}
	}
	return 0;
}

/*
 * Text between tags, stripped as transformers strips it: trim_blocks takes the
 * newline after a block, lstrip_blocks the blanks before one.
 */
static void add_text(struct hash *h, const char *s, size_t n, bool strip_left, bool after_block,
		     bool strip_right, bool before_block)
{
	size_t k;

	if (strip_left)
		for (; n && blank(*s); s++, n--)
			;
	else if (after_block && n && *s == '\n')
		s++, n--;
	if (strip_right)
		for (; n && blank(s[n - 1]); n--)
			;
	else if (before_block) {
		for (k = n; k && (s[k - 1] == ' ' || s[k - 1] == '\t'); k--)
			;
		if (k == 0 || s[k - 1] == '\n')
			n = k;
	}
	if (n)
		add(h, 't', s, n);
}

uint64_t template_id(const char *s, size_t n)
{
	struct hash h = { 0xcbf29ce484222325ull };
	bool strip_left = false, after_block = false;
	size_t text = 0, i = 0, len;

	/* Jinja drops one newline at the end. */
	if (n && s[n - 1] == '\n')
		n--;
	while (i < n) {
		const char *tag = s + i;
		bool left, right;

		if (s[i] != '{' || i + 1 >= n || !strchr("{%#", s[i + 1])) {
			i++;
			continue;
		}
		len = tag_length(tag, n - i);
		if (len < 4)
			return 0;
		left = tag[2] == '-' && len > 4;
		right = tag[len - 3] == '-' && len > 4;
		add_text(&h, s + text, i - text, strip_left, after_block, left, tag[1] != '{');
		if (tag[1] != '#') {
			add(&h, 'g', tag + 1, 1);
			if (!add_inside(&h, tag + 2 + left,
					len - 4 - left - (right && len - 4 > left)))
				return 0;
		}
		strip_left = right;
		after_block = tag[1] != '{';
		i += len;
		text = i;
	}
	add_text(&h, s + text, n - text, strip_left, after_block, false, false);
	return h.h;
}
