// SPDX-License-Identifier: MIT
/*
 * The automaton under a match: stacks of return states, and sets of
 * configurations closed under empty steps, calls and returns. Both are
 * hash-consed; where a byte leads from a set is worked out once.
 */
#include "grammar/match_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STACK    256                 /* nested calls: deeper text is not allowed */

static uint32_t mix(uint32_t a, uint32_t b)
{
	uint64_t x = ((uint64_t)a << 32 | b) * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(x >> 32) ^ (uint32_t)x;
}

void *gmatch_grow(struct gmatch *m, void *p, uint32_t *cap, size_t size)
{
	uint32_t want = *cap ? *cap * 2 : 1024;
	void *q = realloc(p, want * size);

	if (!q)
		m->fail = -ENOMEM;
	else
		*cap = want;
	return q;
}

uint32_t gframe_push(struct gmatch *m, uint32_t ret, uint32_t below)
{
	uint32_t h = mix(ret, below) & (m->frame_buckets - 1);

	for (uint32_t i = m->frame_hash[h]; i; i = m->frames[i].chain)
		if (m->frames[i].ret == ret && m->frames[i].below == below)
			return i;
	if (m->n_frames == m->cap_frames) {
		struct frame *p = gmatch_grow(m, m->frames, &m->cap_frames, sizeof(*p));

		if (!p)
			return 0;
		m->frames = p;
	}
	m->frames[m->n_frames] = (struct frame){ ret, below, m->frames[below].depth + 1, m->frame_hash[h],
						 gmatch_needs(m, ret, below) };
	m->frame_hash[h] = m->n_frames;
	return m->n_frames++;
}

/* Adds a configuration to the closure under way, once. */
void gset_add(struct gmatch *m, uint32_t state, uint32_t stack)
{
	uint32_t h = mix(state, stack) & (SEEN_SLOTS - 1);

	while (m->seen[h]) {
		struct config *c = &m->work[m->seen[h] - 1];

		if (c->state == state && c->stack == stack)
			return;
		h = (h + 1) & (SEEN_SLOTS - 1);
	}
	if (m->n_work == MAX_CONFIGS * 2) {
		m->fail = -E2BIG;
		return;
	}
	m->work[m->n_work] = (struct config){ state, stack };
	m->slots[m->n_work++] = h;
	m->seen[h] = m->n_work;
}

/* Begins a closure with nothing in it. */
void gset_begin(struct gmatch *m)
{
	for (uint32_t i = 0; i < m->n_work; i++)
		m->seen[m->slots[i]] = 0;
	m->n_work = 0;
}

static int config_cmp(const void *a, const void *b)
{
	const struct config *x = a, *y = b;

	if (x->state != y->state)
		return x->state < y->state ? -1 : 1;
	return x->stack < y->stack ? -1 : x->stack > y->stack;
}

/* Closes work[] and returns the number of the set it makes. */
uint32_t gset_close(struct gmatch *m)
{
	const struct grammar *g = m->g;
	bool may_end = false;
	uint32_t kept = 0, h = 0, total, need = NEED_NONE;

	for (uint32_t i = 0; i < m->n_work && !m->fail; i++) {
		struct config c = m->work[i];

		if (g->states[c.state].is_end) {
			if (!c.stack)
				may_end = true;
			else
				gset_add(m, m->frames[c.stack].ret, m->frames[c.stack].below);
		}
		for (uint32_t e = g->states[c.state].edges; e != GEDGE_NONE; e = g->edges[e].next) {
			const struct gedge *x = &g->edges[e];

			if (x->kind == GEDGE_EPS) {
				gset_add(m, x->to, c.stack);
			} else if (x->kind == GEDGE_CALL) {
				uint32_t stack = c.stack;

				/* Deeper text than MAX_STACK calls is not allowed, so it is never begun. */
				if (!g->states[x->to].only_end) {
					if (m->frames[stack].depth >= MAX_STACK)
						continue;
					stack = gframe_push(m, x->to, stack);
				}
				if (m->fail)
					break;
				gset_add(m, g->rule_start[x->rule], stack);
			}
		}
	}
	if (m->fail)
		return SET_DEAD;
	total = m->n_work;
	m->spent += total;
	for (uint32_t i = 0; i < total; i++) {
		const uint32_t n = gmatch_needs(m, m->work[i].state, m->work[i].stack);
		bool reads = false;

		/* From where no end can be reached nothing is begun. */
		if (n >= NEED_NONE)
			continue;
		for (uint32_t e = g->states[m->work[i].state].edges; e != GEDGE_NONE; e = g->edges[e].next)
			reads |= g->edges[e].kind == GEDGE_BYTES;
		if (!reads)
			continue;
		need = n < need ? n : need;
		m->work[kept++] = m->work[i];
	}
	if (may_end)
		need = 0;
	if (!kept && !may_end)
		return SET_DEAD;
	if (kept > MAX_CONFIGS) {
		m->fail = -E2BIG;
		return SET_DEAD;
	}
	qsort(m->work, kept, sizeof(*m->work), config_cmp);
	h = may_end;
	for (uint32_t i = 0; i < kept; i++)
		h = mix(h ^ m->work[i].state, m->work[i].stack);
	h &= m->set_buckets - 1;
	for (uint32_t s = m->set_hash[h]; s; s = m->sets[s].chain)
		if (m->sets[s].count == kept && m->sets[s].may_end == may_end &&
		    (!kept || !memcmp(&m->configs[m->sets[s].first], m->work, kept * sizeof(*m->work))))
			return s;
	while (m->n_configs + kept > m->cap_configs) {
		struct config *p = gmatch_grow(m, m->configs, &m->cap_configs, sizeof(*p));

		if (!p)
			return SET_DEAD;
		m->configs = p;
	}
	if (m->n_sets == m->cap_sets) {
		struct set *p = gmatch_grow(m, m->sets, &m->cap_sets, sizeof(*p));

		if (!p)
			return SET_DEAD;
		m->sets = p;
	}
	if (kept)
		memcpy(&m->configs[m->n_configs], m->work, kept * sizeof(*m->work));
	m->sets[m->n_sets] = (struct set){ .first = m->n_configs, .count = kept, .may_end = may_end,
					   .need = need, .chain = m->set_hash[h] };
	m->n_configs += kept;
	m->set_hash[h] = m->n_sets;
	return m->n_sets++;
}

uint32_t gset_step(struct gmatch *m, uint32_t s, uint8_t byte)
{
	const struct grammar *g = m->g;
	uint32_t to, lo = 0, hi = 255;

	if (s == SET_DEAD || m->fail)
		return SET_DEAD;
	if (!m->sets[s].next && m->sets[s].some) {
		if (byte >= m->sets[s].some_lo && byte <= m->sets[s].some_hi)
			return m->sets[s].some_to;
		m->sets[s].next = malloc(256 * sizeof(uint32_t));
		if (!m->sets[s].next) {
			m->fail = -ENOMEM;
			return SET_DEAD;
		}
		memset(m->sets[s].next, 0xff, 256 * sizeof(uint32_t));
		for (uint32_t b = m->sets[s].some_lo; b <= m->sets[s].some_hi; b++)
			m->sets[s].next[b] = m->sets[s].some_to;
		m->next_bytes += 256 * sizeof(uint32_t);
	}
	if (m->sets[s].next && m->sets[s].next[byte] != SET_UNKNOWN)
		return m->sets[s].next[byte];
	gset_begin(m);
	for (uint32_t i = 0; i < m->sets[s].count; i++) {
		struct config c = m->configs[m->sets[s].first + i];

		for (uint32_t e = g->states[c.state].edges; e != GEDGE_NONE; e = g->edges[e].next) {
			const struct gedge *x = &g->edges[e];

			if (x->kind != GEDGE_BYTES)
				continue;
			/* lo..hi: the bytes around this one that go the same ways. */
			if (byte < x->lo) {
				hi = x->lo - 1u < hi ? x->lo - 1u : hi;
			} else if (byte > x->hi) {
				lo = x->hi + 1u > lo ? x->hi + 1u : lo;
			} else {
				lo = x->lo > lo ? x->lo : lo;
				hi = x->hi < hi ? x->hi : hi;
				gset_add(m, x->to, c.stack);
			}
		}
	}
	to = m->n_work ? gset_close(m) : SET_DEAD;
	if (m->fail)
		return SET_DEAD;
	if (!m->sets[s].next) {
		m->sets[s].some_to = to;
		m->sets[s].some_lo = (uint8_t)lo;
		m->sets[s].some_hi = (uint8_t)hi;
		m->sets[s].some = true;
		return to;
	}
	for (uint32_t b = lo; b <= hi; b++)
		m->sets[s].next[b] = to;
	return to;
}

/* Where all of the bytes @lo..@hi lead, SET_UNKNOWN when that is not one place. */
static uint32_t same_step(struct gmatch *m, uint32_t s, uint32_t lo, uint32_t hi)
{
	uint32_t to;

	if (s == SET_UNKNOWN)
		return SET_UNKNOWN;
	to = gset_step(m, s, (uint8_t)lo);
	while (++lo <= hi)
		if (gset_step(m, s, (uint8_t)lo) != to)
			return SET_UNKNOWN;
	return to;
}

/*
 * Where every plain character (vocab.h) leads from @s, SET_UNKNOWN when that is
 * not one place: each of UTF-8's forms is looked at, but not each character.
 */
uint32_t gset_plain(struct gmatch *m, uint32_t s)
{
	static const struct { uint8_t lo, hi, lo2, hi2, more; } forms[] = {
		{ 0xc2, 0xdf, 0x80, 0xbf, 0 }, { 0xe0, 0xe0, 0xa0, 0xbf, 1 }, { 0xe1, 0xec, 0x80, 0xbf, 1 }, { 0xed, 0xed, 0x80, 0x9f, 1 },
		{ 0xee, 0xef, 0x80, 0xbf, 1 }, { 0xf0, 0xf0, 0x90, 0xbf, 2 }, { 0xf1, 0xf3, 0x80, 0xbf, 2 }, { 0xf4, 0xf4, 0x80, 0x8f, 2 },
	};
	uint32_t to, at;

	if (s == SET_DEAD)
		return SET_DEAD;
	if (m->sets[s].plain_known)
		return m->sets[s].plain;
	to = same_step(m, s, ' ', '!');
	if (same_step(m, s, '#', '[') != to || same_step(m, s, ']', 0x7f) != to)
		to = SET_UNKNOWN;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]) && to != SET_UNKNOWN; i++) {
		at = same_step(m, same_step(m, s, forms[i].lo, forms[i].hi), forms[i].lo2, forms[i].hi2);
		for (uint32_t k = 0; k < forms[i].more; k++)
			at = same_step(m, at, 0x80, 0xbf);
		if (at != to)
			to = SET_UNKNOWN;
	}
	if (m->fail)
		return SET_UNKNOWN;
	m->sets[s].plain = to;
	m->sets[s].plain_known = true;
	return to;
}
