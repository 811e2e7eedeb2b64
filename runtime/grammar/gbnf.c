// SPDX-License-Identifier: MIT
#include "grammar/gbnf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

#define MAX_NESTING 256
#define MAX_RANGES  1024

struct gbnf {
	const char *text, *p, *end;
	struct gast ast;
	struct hearth_err *err;
	int rc;
	uint32_t *slot;              /* rules by name: a hash, rule + 1 */
};

#define SLOTS (GAST_MAX_RULES * 2)

static int refuse(struct gbnf *b, const char *at, const char *what)
{
	int line = 1, col = 1;

	if (b->rc)
		return b->rc;
	for (const char *c = b->text; c < at; c++) {
		if (*c == '\n') {
			line++;
			col = 1;
		} else {
			col++;
		}
	}
	b->rc = err_set(b->err, -EINVAL, "grammar line %d, column %d: %s", line, col, what);
	return b->rc;
}

static void skip_space(struct gbnf *b, bool newlines)
{
	while (b->p < b->end) {
		if (*b->p == '#') {
			while (b->p < b->end && *b->p != '\n')
				b->p++;
		} else if (*b->p == ' ' || *b->p == '\t' || *b->p == '\r' || (newlines && *b->p == '\n')) {
			b->p++;
		} else {
			return;
		}
	}
}

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static size_t name_len(const struct gbnf *b)
{
	const char *q = b->p;

	while (q < b->end && is_name(*q))
		q++;
	return (size_t)(q - b->p);
}

static uint32_t rule_named(struct gbnf *b, const char *name, size_t len)
{
	uint32_t h = 2166136261u, r;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)name[i]) * 16777619u;
	for (h %= SLOTS; b->slot[h]; h = (h + 1) % SLOTS) {
		const char *known = b->ast.rules[b->slot[h] - 1].name;

		if (!strncmp(known, name, len) && !known[len])
			return b->slot[h] - 1;
	}
	r = gast_rule_add(&b->ast, name, len);
	if (!gast_status(&b->ast))
		b->slot[h] = r + 1;
	return r;
}

static int hex_digits(struct gbnf *b, int n, uint32_t *ret)
{
	uint32_t v = 0;

	for (int i = 0; i < n; i++) {
		char c = b->p < b->end ? *b->p : 0;
		int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 :
			c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;

		if (d < 0)
			return refuse(b, b->p, "a hexadecimal digit is missing in the escape");
		v = v << 4 | (uint32_t)d;
		b->p++;
	}
	*ret = v;
	return 0;
}

/* One character of a literal or a class: a code point, escapes resolved. */
static int character(struct gbnf *b, uint32_t *ret)
{
	const char *at = b->p;
	uint8_t c = (uint8_t)*b->p++;
	int more;

	if (c == '\\') {
		if (b->p == b->end)
			return refuse(b, at, "the escape is not finished");
		c = (uint8_t)*b->p++;
		switch (c) {
		case 'n': *ret = '\n'; return 0;
		case 'r': *ret = '\r'; return 0;
		case 't': *ret = '\t'; return 0;
		case 'x': return hex_digits(b, 2, ret);
		case 'u': return hex_digits(b, 4, ret);
		case 'U': return hex_digits(b, 8, ret);
		case '\\': case '"': case '[': case ']': case '-': case '^': case '/': case '.':
			*ret = c;
			return 0;
		default:
			return refuse(b, at, "this escape is not known; use \\n \\r \\t \\\\ \\\" \\[ \\] \\xHH \\uHHHH \\UHHHHHHHH");
		}
	}
	if (c < 0x80) {
		*ret = c;
		return 0;
	}
	more = utf8_get(at, (size_t)(b->end - at), ret);
	if (more <= 0)
		return refuse(b, at, "this is not valid UTF-8");
	b->p = at + more;
	return 0;
}

static gnode literal(struct gbnf *b)
{
	const char *at = b->p++;
	gnode n = gast_empty(&b->ast);
	uint32_t cp;

	while (b->p < b->end && *b->p != '"') {
		if (*b->p == '\n') {
			refuse(b, at, "the literal has no closing quote on its line");
			return n;
		}
		if (character(b, &cp))
			return n;
		if (cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000)) {
			refuse(b, at, "the literal has an escape that is no Unicode character");
			return n;
		}
		n = gast_seq(&b->ast, n, gast_class(&b->ast, &(struct gast_range){ cp, cp }, 1));
	}
	if (b->p == b->end)
		refuse(b, at, "the literal has no closing quote");
	else
		b->p++;
	return n;
}

static gnode class(struct gbnf *b)
{
	static const char full[] = "the class holds too many ranges";
	const char *at = b->p++;
	struct gast_range r[MAX_RANGES + 1];
	size_t n = 0;
	bool negate = false;
	uint32_t lo, hi;

	if (b->p < b->end && *b->p == '^') {
		negate = true;
		b->p++;
	}
	while (b->p < b->end && *b->p != ']') {
		if (character(b, &lo))
			return 0;
		hi = lo;
		if (b->end - b->p > 1 && b->p[0] == '-' && b->p[1] != ']') {
			b->p++;
			if (character(b, &hi))
				return 0;
		}
		if (hi < lo || hi > 0x10ffff) {
			refuse(b, at, "the class has a range that runs backwards or past U+10FFFF");
			return 0;
		}
		if (n == MAX_RANGES) {
			refuse(b, at, full);
			return 0;
		}
		r[n++] = (struct gast_range){ lo, hi };
	}
	if (b->p == b->end) {
		refuse(b, at, "the class has no closing bracket");
		return 0;
	}
	b->p++;
	if (!n && !negate) {
		refuse(b, at, "the class is empty: no character can satisfy it");
		return 0;
	}
	n = gast_ranges_normalise(r, n, negate);
	return gast_class(&b->ast, r, n);
}

static int number(struct gbnf *b, uint32_t *ret)
{
	const char *at = b->p;
	uint32_t v = 0;

	while (b->p < b->end && *b->p >= '0' && *b->p <= '9') {
		v = v * 10 + (uint32_t)(*b->p++ - '0');
		if (v > GAST_MAX_REPEAT)
			return refuse(b, at, "the repetition bound is over 100000");
	}
	if (b->p == at)
		return refuse(b, at, "a number is missing in the repetition");
	*ret = v;
	return 0;
}

static gnode repeats(struct gbnf *b, gnode n)
{
	const char *at;
	uint32_t lo, hi;

	while (b->p < b->end && !b->rc) {
		at = b->p;
		switch (*b->p) {
		case '*': lo = 0; hi = UINT32_MAX; b->p++; break;
		case '+': lo = 1; hi = UINT32_MAX; b->p++; break;
		case '?': lo = 0; hi = 1; b->p++; break;
		case '{':
			b->p++;
			if (number(b, &lo))
				return n;
			hi = lo;
			if (b->p < b->end && *b->p == ',') {
				b->p++;
				hi = UINT32_MAX;
				if (b->p < b->end && *b->p != '}' && number(b, &hi))
					return n;
			}
			if (b->p == b->end || *b->p != '}') {
				refuse(b, at, "the repetition has no closing brace");
				return n;
			}
			b->p++;
			if (hi < lo) {
				refuse(b, at, "the repetition's upper bound is below its lower bound");
				return n;
			}
			break;
		default:
			return n;
		}
		n = gast_repeat(&b->ast, n, lo, hi);
	}
	return n;
}

static gnode alternatives(struct gbnf *b, int depth)
{
	gnode alt = gast_never(&b->ast), seq = gast_empty(&b->ast), n;
	bool inside = depth > 0;

	if (depth > MAX_NESTING) {
		refuse(b, b->p, "groups are nested more than 256 deep");
		return alt;
	}
	while (!b->rc) {
		skip_space(b, inside);
		if (b->p == b->end || *b->p == '\n' || *b->p == ')')
			break;
		if (*b->p == '|') {
			b->p++;
			skip_space(b, true);
			alt = gast_alt(&b->ast, alt, seq);
			seq = gast_empty(&b->ast);
			continue;
		}
		if (*b->p == '"') {
			n = literal(b);
		} else if (*b->p == '[') {
			n = class(b);
		} else if (*b->p == '.') {
			b->p++;
			n = gast_class(&b->ast, &(struct gast_range){ 0, 0x10ffff }, 1);
		} else if (*b->p == '(') {
			const char *at = b->p++;

			n = alternatives(b, depth + 1);
			if (!b->rc && (b->p == b->end || *b->p != ')'))
				refuse(b, at, "the group has no closing parenthesis");
			else
				b->p++;
		} else if (is_name(*b->p)) {
			size_t len = name_len(b);

			n = gast_ref(&b->ast, rule_named(b, b->p, len));
			b->p += len;
		} else {
			refuse(b, b->p, "this character begins nothing that a rule can hold");
			break;
		}
		if (b->rc)
			break;
		n = repeats(b, n);
		seq = gast_seq(&b->ast, seq, n);
	}
	return gast_alt(&b->ast, alt, seq);
}

int grammar_from_gbnf(const char *text, size_t len, struct grammar **ret, struct hearth_err *err)
{
	struct gbnf b = { .text = text, .p = text, .end = text + len, .err = err };
	uint32_t rule, root;
	size_t n;
	int rc;

	b.slot = calloc(SLOTS, sizeof(*b.slot));
	if (!b.slot)
		return err_set(err, -ENOMEM, "out of memory for the grammar");
	gast_init(&b.ast);
	root = rule_named(&b, "root", 4);
	b.ast.root = root;
	for (skip_space(&b, true); b.p < b.end && !b.rc; skip_space(&b, true)) {
		const char *at = b.p;

		n = name_len(&b);
		if (!n) {
			refuse(&b, at, "a rule's name is expected here");
			break;
		}
		rule = rule_named(&b, at, n);
		b.p += n;
		skip_space(&b, true);
		if (b.end - b.p < 3 || memcmp(b.p, "::=", 3)) {
			refuse(&b, b.p, "\"::=\" is expected after the rule's name");
			break;
		}
		b.p += 3;
		skip_space(&b, true);
		if (gast_status(&b.ast))
			break;
		if (b.ast.rules[rule].defined) {
			refuse(&b, at, "this rule is defined twice");
			break;
		}
		gast_rule_set(&b.ast, rule, alternatives(&b, 0));
		if (!b.rc && b.p < b.end && *b.p == ')')
			refuse(&b, b.p, "this parenthesis was never opened");
	}
	rc = b.rc;
	if (!rc && !gast_status(&b.ast) && !b.ast.rules[root].defined)
		rc = err_set(err, -EINVAL, "the grammar has no rule named root");
	if (!rc)
		rc = grammar_compile(&b.ast, ret, err);
	gast_done(&b.ast);
	free(b.slot);
	return rc;
}
