// SPDX-License-Identifier: MIT
#include "grammar/ast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

void gast_init(struct gast *g)
{
	memset(g, 0, sizeof(*g));
}

void gast_done(struct gast *g)
{
	for (uint32_t i = 0; i < g->n_rules; i++)
		free(g->rules[i].name);
	free(g->rules);
	free(g->nodes);
	memset(g, 0, sizeof(*g));
}

int gast_status(const struct gast *g)
{
	return g->oom;
}

static gnode node_add(struct gast *g, struct gast_node n)
{
	if (g->n_nodes == g->cap_nodes) {
		uint32_t cap = g->cap_nodes ? g->cap_nodes * 2 : 256;
		struct gast_node *p;

		if (cap > GAST_MAX_NODES) {
			g->oom = -E2BIG;
			return 0;
		}
		p = realloc(g->nodes, cap * sizeof(*p));
		if (!p) {
			g->oom = -ENOMEM;
			return 0;
		}
		g->nodes = p;
		g->cap_nodes = cap;
	}
	g->nodes[g->n_nodes] = n;
	return g->n_nodes++;
}

gnode gast_empty(struct gast *g)
{
	return node_add(g, (struct gast_node){ .kind = GAST_EMPTY });
}

gnode gast_never(struct gast *g)
{
	return node_add(g, (struct gast_node){ .kind = GAST_NEVER });
}

gnode gast_bytes(struct gast *g, uint8_t lo, uint8_t hi)
{
	return node_add(g, (struct gast_node){ .kind = GAST_BYTES, .lo = lo, .hi = hi });
}

static int is_kind(const struct gast *g, gnode n, enum gast_kind kind)
{
	return n < g->n_nodes && g->nodes[n].kind == kind;
}

gnode gast_seq(struct gast *g, gnode a, gnode b)
{
	if (is_kind(g, a, GAST_EMPTY))
		return b;
	if (is_kind(g, b, GAST_EMPTY))
		return a;
	return node_add(g, (struct gast_node){ .kind = GAST_SEQ, .a = a, .b = b });
}

gnode gast_alt(struct gast *g, gnode a, gnode b)
{
	if (is_kind(g, a, GAST_NEVER))
		return b;
	if (is_kind(g, b, GAST_NEVER))
		return a;
	return node_add(g, (struct gast_node){ .kind = GAST_ALT, .a = a, .b = b });
}

gnode gast_repeat(struct gast *g, gnode a, uint32_t min, uint32_t max)
{
	if (min > GAST_MAX_REPEAT || (max != UINT32_MAX && max > GAST_MAX_REPEAT)) {
		g->oom = -E2BIG;
		return gast_never(g);
	}
	if (max == 0)
		return gast_empty(g);
	return node_add(g, (struct gast_node){ .kind = GAST_REPEAT, .a = a, .lo = min, .hi = max });
}

gnode gast_ref(struct gast *g, uint32_t rule)
{
	return node_add(g, (struct gast_node){ .kind = GAST_REF, .lo = rule });
}

gnode gast_lit(struct gast *g, const char *s, size_t len)
{
	gnode n = gast_empty(g);

	for (size_t i = len; i-- > 0;)
		n = gast_seq(g, gast_bytes(g, (uint8_t)s[i], (uint8_t)s[i]), n);
	return n;
}

static int by_bytes(const void *x, const void *y)
{
	return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* What follows byte @at of @words, which are sorted and alike up to there. It calls itself only where they part. */
static gnode words_from(struct gast *g, const char *const *words, size_t n, size_t at)
{
	size_t end = at, i = 0, k;
	gnode out;

	/* What the first and the last begin with, all do. */
	while (words[0][end] && words[0][end] == words[n - 1][end])
		end++;
	while (i < n && !words[i][end])
		i++;
	out = i ? gast_empty(g) : gast_never(g);
	for (; i < n; i = k) {
		for (k = i; k < n && words[k][end] == words[i][end]; k++)
			;
		out = gast_alt(g, out, gast_seq(g, gast_lit(g, &words[i][end], 1), words_from(g, words + i, k - i, end + 1)));
	}
	return gast_seq(g, gast_lit(g, words[0] + at, end - at), out);
}

gnode gast_words(struct gast *g, const char **words, size_t n)
{
	qsort(words, n, sizeof(*words), by_bytes);
	return n ? words_from(g, words, n, 0) : gast_never(g);
}

/*
 * Code points lo..hi, whose encodings all have @len bytes, from byte @at on:
 * split where a leading byte changes, so that what is left below it is either
 * one sequence or a whole block of continuation bytes.
 */
static gnode utf8_span(struct gast *g, uint32_t lo, uint32_t hi, int len, int at)
{
	int below = len - 1 - at;               /* bytes after this one */
	uint32_t block = 1u << (6 * below);
	uint32_t base_lo = lo / block, base_hi = hi / block;
	uint8_t a[4], b[4];
	gnode tail;

	utf8_put(lo, a);
	utf8_put(hi, b);
	if (below == 0)
		return gast_bytes(g, a[at], b[at]);
	if (base_lo == base_hi)
		return gast_seq(g, gast_bytes(g, a[at], a[at]), utf8_span(g, lo, hi, len, at + 1));
	if (lo % block != 0)
		return gast_alt(g, utf8_span(g, lo, (base_lo + 1) * block - 1, len, at),
				utf8_span(g, (base_lo + 1) * block, hi, len, at));
	if (hi % block != block - 1)
		return gast_alt(g, utf8_span(g, lo, base_hi * block - 1, len, at),
				utf8_span(g, base_hi * block, hi, len, at));
	tail = gast_empty(g);
	for (int i = 0; i < below; i++)
		tail = gast_seq(g, gast_bytes(g, 0x80, 0xbf), tail);
	return gast_seq(g, gast_bytes(g, a[at], b[at]), tail);
}

static gnode utf8_range(struct gast *g, uint32_t lo, uint32_t hi)
{
	static const struct gast_range spans[] = {
		{ 0, 0x7f }, { 0x80, 0x7ff }, { 0x800, 0xd7ff }, { 0xe000, 0xffff }, { 0x10000, 0x10ffff },
	};
	static const int lens[] = { 1, 2, 3, 3, 4 };
	gnode n = gast_never(g);

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		uint32_t a = lo > spans[i].lo ? lo : spans[i].lo;
		uint32_t b = hi < spans[i].hi ? hi : spans[i].hi;

		if (a <= b)
			n = gast_alt(g, n, utf8_span(g, a, b, lens[i], 0));
	}
	return n;
}

gnode gast_class(struct gast *g, const struct gast_range *ranges, size_t n)
{
	gnode out = gast_never(g);

	for (size_t i = 0; i < n; i++)
		out = gast_alt(g, out, utf8_range(g, ranges[i].lo, ranges[i].hi));
	return out;
}

uint32_t gast_rule_add(struct gast *g, const char *name, size_t len)
{
	char *copy = NULL;

	if (g->n_rules == g->cap_rules) {
		uint32_t cap = g->cap_rules ? g->cap_rules * 2 : 32;
		struct gast_rule *p;

		if (cap > GAST_MAX_RULES) {
			g->oom = -E2BIG;
			return 0;
		}
		p = realloc(g->rules, cap * sizeof(*p));
		if (!p) {
			g->oom = -ENOMEM;
			return 0;
		}
		g->rules = p;
		g->cap_rules = cap;
	}
	if (name) {
		copy = strndup(name, len);
		if (!copy) {
			g->oom = -ENOMEM;
			return 0;
		}
	}
	g->rules[g->n_rules] = (struct gast_rule){ .name = copy };
	return g->n_rules++;
}

void gast_rule_set(struct gast *g, uint32_t rule, gnode body)
{
	if (rule >= g->n_rules)
		return;
	g->rules[rule].body = body;
	g->rules[rule].defined = 1;
}

static int range_cmp(const void *a, const void *b)
{
	const struct gast_range *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

size_t gast_ranges_normalise(struct gast_range *r, size_t n, int negate)
{
	size_t m = 0;
	uint32_t next = 0;

	qsort(r, n, sizeof(*r), range_cmp);
	for (size_t i = 0; i < n; i++) {
		if (m && r[i].lo <= r[m - 1].hi + 1) {
			if (r[i].hi > r[m - 1].hi)
				r[m - 1].hi = r[i].hi;
		} else {
			r[m++] = r[i];
		}
	}
	if (!negate)
		return m;
	/* In place: gap i never starts behind range i, so nothing unread is overwritten. */
	n = m;
	m = 0;
	for (size_t i = 0; i < n; i++) {
		struct gast_range cur = r[i];

		if (cur.lo > next)
			r[m++] = (struct gast_range){ next, cur.lo - 1 };
		next = cur.hi + 1;
	}
	if (next <= 0x10ffff)
		r[m++] = (struct gast_range){ next, 0x10ffff };
	return m;
}
