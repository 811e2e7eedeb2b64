// SPDX-License-Identifier: MIT
#include "grammar/regex.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#define MAX_NESTING 128
#define MAX_RANGES  512

struct regex {
	struct gast *g;
	const char *text, *p, *end;
	struct hearth_err *err;
	int rc;
};

static gnode refuse(struct regex *x, const char *what)
{
	if (!x->rc)
		x->rc = err_set(x->err, -EOPNOTSUPP, "pattern \"%.80s\" at character %d: %s", x->text,
				(int)(x->p - x->text) + 1, what);
	return gast_never(x->g);
}

static gnode escape_lit(struct gast *g, uint32_t cp)
{
	static const char two[] = "\"\\\b\f\n\r\t", name[] = "\"\\bfnrt";
	const char *at = cp ? memchr(two, (int)cp, 7) : NULL;
	char buf[8];

	if (at) {
		buf[0] = '\\';
		buf[1] = name[at - two];
		return gast_lit(g, buf, 2);
	}
	snprintf(buf, sizeof(buf), "\\u%04x", (unsigned)cp & 0xffff);
	return gast_lit(g, buf, 6);
}

gnode json_string_class(struct gast *g, const struct gast_range *r, size_t n)
{
	gnode out = gast_never(g);
	struct gast_range plain[MAX_RANGES * 2 + 8];
	size_t m = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t lo = r[i].lo, hi = r[i].hi;

		/*
		 * Control characters, quote and backslash are never bare inside a
		 * string; NUL is left out, since many JSON readers refuse it.
		 */
		for (uint32_t c = lo ? lo : 1; c <= hi && c < 0x20; c++)
			out = gast_alt(g, out, escape_lit(g, c));
		if (lo <= '"' && hi >= '"')
			out = gast_alt(g, out, escape_lit(g, '"'));
		if (lo <= '\\' && hi >= '\\')
			out = gast_alt(g, out, escape_lit(g, '\\'));
		if (lo < 0x20)
			lo = 0x20;
		for (uint32_t a = lo; a <= hi && a <= 0x10ffff;) {
			uint32_t b = hi;

			if (a == '"' || a == '\\') {
				a++;
				continue;
			}
			if (a < '"' && b >= '"')
				b = '"' - 1;
			else if (a < '\\' && b >= '\\')
				b = '\\' - 1;
			if (m < sizeof(plain) / sizeof(plain[0]))
				plain[m++] = (struct gast_range){ a, b };
			a = b + 1;
		}
	}
	return gast_alt(g, gast_class(g, plain, m), out);
}

static const struct gast_range digits[] = { { '0', '9' } };
static const struct gast_range words[] = { { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' } };
static const struct gast_range spaces[] = {
	{ 9, 13 }, { 32, 32 }, { 0xa0, 0xa0 }, { 0x1680, 0x1680 }, { 0x2000, 0x200a },
	{ 0x2028, 0x2029 }, { 0x202f, 0x202f }, { 0x205f, 0x205f }, { 0x3000, 0x3000 }, { 0xfeff, 0xfeff },
};

/* A class escape \d \w \s (upper case: negated) into @r; returns ranges, 0 when @c is none. */
static size_t class_escape(char c, struct gast_range *r)
{
	const struct gast_range *src;
	size_t n;

	switch (c | 0x20) {
	case 'd': src = digits; n = 1; break;
	case 'w': src = words; n = 4; break;
	case 's': src = spaces; n = 10; break;
	default: return 0;
	}
	memcpy(r, src, n * sizeof(*r));
	return c & 0x20 ? n : gast_ranges_normalise(r, n, 1);
}

static int hex(struct regex *x, int n, uint32_t *ret)
{
	*ret = 0;
	for (int i = 0; i < n; i++) {
		char c = x->p < x->end ? *x->p : 0;
		int d = c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;

		if (d < 0) {
			refuse(x, "a hexadecimal digit is missing in the escape");
			return -1;
		}
		*ret = *ret << 4 | (uint32_t)d;
		x->p++;
	}
	return 0;
}

/* A single character after a backslash (already read). */
static int char_escape(struct regex *x, uint32_t *ret)
{
	char c = *x->p++;

	switch (c) {
	case 't': *ret = '\t'; return 0;
	case 'n': *ret = '\n'; return 0;
	case 'r': *ret = '\r'; return 0;
	case 'f': *ret = '\f'; return 0;
	case 'v': *ret = '\v'; return 0;
	case 'x': return hex(x, 2, ret);
	case 'u': return hex(x, 4, ret);
	default:
		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) {
			x->p--;
			refuse(x, "this escape cannot be enforced");
			return -1;
		}
		*ret = (uint8_t)c;
		return 0;
	}
}

/* The next character; a byte that begins none stands for itself. */
static void next_char(struct regex *x, uint32_t *ret)
{
	const int len = utf8_get(x->p, (size_t)(x->end - x->p), ret);

	if (len <= 0)
		*ret = (uint8_t)*x->p;
	x->p += len > 0 ? len : 1;
}

static gnode bracket(struct regex *x)
{
	struct gast_range r[MAX_RANGES + 16];
	bool negate = false;
	uint32_t lo, hi;
	size_t n = 0, k;

	x->p++;
	if (x->p < x->end && *x->p == '^') {
		negate = true;
		x->p++;
	}
	while (x->p < x->end && *x->p != ']') {
		if (n >= MAX_RANGES)
			return refuse(x, "the class holds too many ranges");
		if (*x->p == '\\') {
			x->p++;
			if (x->p == x->end)
				break;
			k = class_escape(*x->p, &r[n]);
			if (k) {
				n += k;
				x->p++;
				continue;
			}
			if (*x->p == 'b') {
				lo = '\b';
				x->p++;
			} else if (char_escape(x, &lo)) {
				return gast_never(x->g);
			}
		} else {
			next_char(x, &lo);
		}
		hi = lo;
		if (x->end - x->p > 1 && *x->p == '-' && x->p[1] != ']') {
			x->p++;
			if (*x->p == '\\') {
				x->p++;
				if (x->p == x->end || char_escape(x, &hi))
					return refuse(x, "the class has a range whose end is no character");
			} else {
				next_char(x, &hi);
			}
			if (hi < lo)
				return refuse(x, "the class has a range that runs backwards");
		}
		r[n++] = (struct gast_range){ lo, hi };
	}
	if (x->p >= x->end)
		return refuse(x, "the class has no closing bracket");
	x->p++;
	n = gast_ranges_normalise(r, n, negate);
	if (!n)
		return refuse(x, "the class is empty");
	return json_string_class(x->g, r, n);
}

static int count(struct regex *x, uint32_t *ret)
{
	const char *at = x->p;
	uint32_t v = 0;

	while (x->p < x->end && *x->p >= '0' && *x->p <= '9') {
		v = v * 10 + (uint32_t)(*x->p++ - '0');
		if (v > GAST_MAX_REPEAT)
			return -1;
	}
	*ret = v;
	return x->p == at ? -1 : 0;
}

static gnode alternatives(struct regex *x, int depth);

static gnode atom(struct regex *x, int depth)
{
	struct gast_range r[16];
	uint32_t cp;
	gnode n;
	size_t k;

	switch (*x->p) {
	case '(':
		x->p++;
		if (x->end - x->p > 1 && x->p[0] == '?') {
			if (x->p[1] != ':')
				return refuse(x, "look-around and named groups cannot be enforced");
			x->p += 2;
		}
		n = alternatives(x, depth + 1);
		if (!x->rc && (x->p == x->end || *x->p != ')'))
			return refuse(x, "the group has no closing parenthesis");
		x->p++;
		return n;
	case '[':
		return bracket(x);
	case '.':
		x->p++;
		r[0] = (struct gast_range){ 0, 9 };
		r[1] = (struct gast_range){ 11, 12 };
		r[2] = (struct gast_range){ 14, 0x2027 };
		r[3] = (struct gast_range){ 0x202a, 0x10ffff };
		return json_string_class(x->g, r, 4);
	case '\\':
		x->p++;
		if (x->p == x->end)
			return refuse(x, "the escape is not finished");
		k = class_escape(*x->p, r);
		if (k) {
			x->p++;
			return json_string_class(x->g, r, k);
		}
		if (char_escape(x, &cp))
			return gast_never(x->g);
		break;
	case '^':
	case '$':
		return refuse(x, "^ and $ are enforced only at the ends of the whole pattern");
	case '*': case '+': case '?': case '{':
		return refuse(x, "there is nothing to repeat here");
	default:
		next_char(x, &cp);
	}
	r[0] = (struct gast_range){ cp, cp };
	return json_string_class(x->g, r, 1);
}

static gnode repeated(struct regex *x, gnode n)
{
	uint32_t lo, hi;

	while (x->p < x->end && !x->rc) {
		switch (*x->p) {
		case '*': lo = 0; hi = UINT32_MAX; x->p++; break;
		case '+': lo = 1; hi = UINT32_MAX; x->p++; break;
		case '?': lo = 0; hi = 1; x->p++; break;
		case '{':
			x->p++;
			if (count(x, &lo))
				return refuse(x, "the repetition is not {m}, {m,} or {m,n} with numbers up to 100000");
			hi = lo;
			if (x->p < x->end && *x->p == ',') {
				x->p++;
				hi = UINT32_MAX;
				if (x->p < x->end && *x->p != '}' && count(x, &hi))
					return refuse(x, "the repetition is not {m}, {m,} or {m,n} with numbers up to 100000");
			}
			if (x->p == x->end || *x->p != '}' || hi < lo)
				return refuse(x, "the repetition is not {m}, {m,} or {m,n}");
			x->p++;
			break;
		default:
			return n;
		}
		if (x->p < x->end && *x->p == '?')
			x->p++;
		n = gast_repeat(x->g, n, lo, hi);
	}
	return n;
}

static gnode alternatives(struct regex *x, int depth)
{
	gnode alt = gast_never(x->g), seq = gast_empty(x->g);

	if (depth > MAX_NESTING)
		return refuse(x, "groups are nested more than 128 deep");
	while (x->p < x->end && !x->rc && *x->p != ')') {
		if (*x->p == '|') {
			x->p++;
			alt = gast_alt(x->g, alt, seq);
			seq = gast_empty(x->g);
			continue;
		}
		/* The last $ belongs to the whole pattern: regex_to_json_string() took it away. */
		seq = gast_seq(x->g, seq, repeated(x, atom(x, depth)));
	}
	return gast_alt(x->g, alt, seq);
}

/* Whether a top-level | makes ^ or $ belong to one branch only. */
static bool top_level_bar(const char *p, const char *end)
{
	int depth = 0;
	bool in_class = false;

	for (; p < end; p++) {
		if (*p == '\\')
			p++;
		else if (in_class)
			in_class = *p != ']';
		else if (*p == '[')
			in_class = true;
		else if (*p == '(')
			depth++;
		else if (*p == ')')
			depth--;
		else if (*p == '|' && depth == 0)
			return true;
	}
	return false;
}

int regex_to_json_string(struct gast *g, const char *pattern, size_t len, gnode *ret, struct hearth_err *err)
{
	struct regex x = { .g = g, .text = pattern, .p = pattern, .end = pattern + len, .err = err };
	static const struct gast_range all[] = { { 0, 0x10ffff } };
	bool from_start = false, to_end = false;
	size_t slashes = 0;
	gnode n, any;

	if (len && *x.p == '^') {
		from_start = true;
		x.p++;
	}
	if (x.p < x.end && x.end[-1] == '$') {
		for (const char *q = x.end - 1; q > x.p && q[-1] == '\\'; q--)
			slashes++;
		if (slashes % 2 == 0) {
			to_end = true;
			x.end--;
		}
	}
	if ((from_start || to_end) && top_level_bar(x.p, x.end)) {
		refuse(&x, "^ or $ beside a top-level | binds to one branch; group the alternatives");
		return x.rc;
	}
	n = alternatives(&x, 0);
	if (!x.rc && x.p < x.end)
		refuse(&x, "this parenthesis was never opened");
	if (x.rc)
		return x.rc;
	any = gast_repeat(g, json_string_class(g, all, 1), 0, UINT32_MAX);
	if (!from_start)
		n = gast_seq(g, any, n);
	if (!to_end)
		n = gast_seq(g, n, any);
	*ret = n;
	return 0;
}
