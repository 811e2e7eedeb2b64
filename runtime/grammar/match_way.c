// SPDX-License-Identifier: MIT
/* The way on from here: to the end of the text, and as far as there is no choice. */
#include "grammar/match_priv.h"

#include <stdlib.h>

#define PROBE_BYTES 2048u           /* without a choice that are looked at for the next one */
#define WAY_MAX 65536u               /* bytes of a way to the end that is looked at */

/* The longest token that text[0..n) begins with, in bytes; 0: none. */
size_t gway_longest(const struct gvocab *v, const uint8_t *text, size_t n)
{
	uint32_t i = 0, end = v->n_nodes;
	size_t at = 0, found = 0;

	while (i < end && at < n) {
		const struct gvocab_node *x = &v->nodes[i];

		if (x->byte != text[at]) {
			i = x->skip;
			continue;
		}
		at++;
		if (x->count)
			found = at;
		end = x->skip;
		i++;
	}
	return found;
}

/* The shortest text from @at to the end, its length in *ret_n; NULL where there is none to be found. */
uint8_t *gway_shortest(struct gmatch *m, uint32_t at, size_t *ret_n)
{
	const struct grammar *g = m->g;
	const struct set *s = &m->sets[at];
	uint32_t state = 0, stack = 0, fuel = 4 * WAY_MAX, n = 0;
	uint8_t *text;

	if (s->need > WAY_MAX)
		return NULL;
	text = malloc(s->need + 1);
	if (!text)
		return NULL;
	for (uint32_t i = 0; i < s->count; i++) {
		const struct config *c = &m->configs[s->first + i];

		if (gmatch_needs(m, c->state, c->stack) == s->need) {
			state = c->state;
			stack = c->stack;
			break;
		}
	}
	while (--fuel && n <= s->need) {
		const struct gedge *x;

		if (g->states[state].best == GEDGE_NONE) {
			if (!stack)
				break;
			state = m->frames[stack].ret;
			stack = m->frames[stack].below;
			continue;
		}
		x = &g->edges[g->states[state].best];
		state = x->to;
		if (x->kind == GEDGE_BYTES) {
			if (n < s->need)
				text[n] = x->lo;
			n++;
		} else if (x->kind == GEDGE_CALL) {
			stack = gframe_push(m, x->to, stack);
			state = g->rule_start[x->rule];
			if (m->fail)
				break;
		}
	}
	*ret_n = n;
	if (fuel && n == m->sets[at].need && !m->fail)
		return text;
	free(text);
	return NULL;
}

/*
 * Tokens that lead from @at to the end for certain: those that its shortest way
 * is cut into, longest first. NEED_NONE where there is none to be found.
 */
static uint32_t way(struct gmatch *m, uint32_t at)
{
	uint32_t tokens = 0;
	uint8_t *text;
	size_t from, k, n;

	if (m->sets[at].may_end)
		return 0;
	text = gway_shortest(m, at, &n);
	if (!text)
		return NEED_NONE;
	for (from = 0; tokens != NEED_NONE && from < n; from += k) {
		k = gway_longest(m->v, text + from, n - from);
		tokens = k ? tokens + 1 : NEED_NONE;
	}
	free(text);
	return tokens;
}

/* Tokens from set @at to the end, for certain. Never more than it has to be, in bytes. */
uint32_t gway_tokens(struct gmatch *m, uint32_t at)
{
	if (m->sets[at].may_end)
		return 0;
	if (!m->sets[at].tokens)
		m->sets[at].tokens = way(m, at);
	return m->sets[at].tokens;
}

uint32_t gmatch_tokens_to_end(struct gmatch *m)
{
	const uint32_t n = m->fail ? NEED_NONE : gway_tokens(m, m->cur);

	return n < NEED_NONE ? n : UINT32_MAX;
}

/* The one byte that can follow, or -1; *ret_space: a space is among several. */
static int only_byte(const struct gmatch *m, uint32_t at, bool *ret_space)
{
	const struct grammar *g = m->g;
	const struct set *s = &m->sets[at];
	bool one = true;
	int byte = -1;

	*ret_space = false;
	for (uint32_t i = 0; i < s->count; i++) {
		uint32_t e = g->states[m->configs[s->first + i].state].edges;

		for (; e != GEDGE_NONE; e = g->edges[e].next) {
			const struct gedge *x = &g->edges[e];

			if (x->kind != GEDGE_BYTES)
				continue;
			if (x->lo != x->hi || (byte >= 0 && byte != x->lo))
				one = false;
			byte = x->lo;
			*ret_space |= x->lo <= ' ' && x->hi >= ' ';
		}
	}
	return one ? byte : -1;
}

static size_t follow(struct gmatch *m, bool guess, char *out, size_t cap)
{
	uint8_t last = m->last;
	uint32_t at = m->cur;
	bool space;
	size_t n;
	int byte;

	for (n = 0; n < cap && !m->fail && !m->sets[at].may_end; n++) {
		byte = only_byte(m, at, &space);
		if (byte < 0 && guess && space && (last == ':' || last == ','))
			byte = ' ';
		if (byte < 0)
			break;
		at = gset_step(m, at, (uint8_t)byte);
		if (at == SET_DEAD)
			break;
		out[n] = (char)(last = (uint8_t)byte);
	}
	return n;
}

size_t gmatch_forced(struct gmatch *m, char *out, size_t cap)
{
	return follow(m, false, out, cap);
}

size_t gmatch_likely(struct gmatch *m, char *out, size_t cap)
{
	return follow(m, true, out, cap);
}

int gmatch_probe(struct gmatch *m, uint32_t choices)
{
	size_t n, k, left = PROBE_BYTES;
	char forced[256];
	uint8_t *text;

	gmatch_restart(m);
	for (; choices && left; choices--) {
		/* Where there is no choice there is nothing to find out. */
		while (left && (n = gmatch_likely(m, forced, left < sizeof(forced) ? left : sizeof(forced)))) {
			gmatch_accept_bytes(m, forced, n);
			left -= n;
		}
		if (!left || !gmatch_mask(m) || m->sets[m->cur].may_end)
			break;
		text = gway_shortest(m, m->cur, &n);
		k = text ? gway_longest(m->v, text, n) : 0;
		if (k && gmatch_accept_bytes(m, (char *)text, k))
			k = 0;
		free(text);
		if (!k)
			break;
	}
	if (m->fail)
		return m->fail;
	gmatch_restart(m);
	return 0;
}
