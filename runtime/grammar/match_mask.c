// SPDX-License-Identifier: MIT
/* Which tokens may come next: the vocabulary's trie walked along the automaton. */
#include "grammar/match_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MASKS    (16u << 20)         /* bytes of cached masks, then all of them are dropped */
/*
 * For one mask: sets that are made and configurations that are looked at. Of a
 * grammar whose every text leads elsewhere each token would make its own; a
 * client's pattern must not hold up the others for seconds.
 */
#define MASK_SETS    32768u
#define MASK_WORK    (1u << 19)

const uint32_t *gmatch_mask(struct gmatch *m)
{
	const struct gvocab *v = m->v;
	const struct gvocab_node *nodes = v->nodes;
	uint32_t i = 0, n_nodes = v->n_nodes, chars, at, to, before, worst = 0;
	uint32_t *mask;

	if (m->fail)
		return NULL;
	if (m->sets[m->cur].mask)
		return m->sets[m->cur].mask;
	gmatch_trim(m);
	if (m->mask_bytes >= MAX_MASKS) {
		for (uint32_t s = 0; s < m->n_sets; s++) {
			free(m->sets[s].mask);
			m->sets[s].mask = NULL;
		}
		m->mask_bytes = 0;
	}
	mask = calloc(v->words ? v->words : 1, sizeof(*mask));
	if (!mask) {
		m->fail = -ENOMEM;
		return NULL;
	}
	before = m->n_sets;
	m->spent = 0;
	/* Inside a string most tokens are told by their length. */
	for (chars = 0, at = m->cur; chars < GVOCAB_PLAIN; chars++) {
		to = gset_plain(m, at);
		if (to == SET_UNKNOWN || to == SET_DEAD)
			break;
		worst = m->sets[to].need > worst ? m->sets[to].need : worst;
		at = to;
	}
	if (chars == GVOCAB_PLAIN || to == SET_DEAD) {
		memcpy(mask, v->plain + chars * (size_t)v->words, v->words * sizeof(*mask));
		nodes = v->rest;
		n_nodes = v->n_rest;
	}
	m->depth_sets[0] = m->cur;
	while (i < n_nodes) {
		const struct gvocab_node *n = &nodes[i];
		uint32_t from = m->depth_sets[n->depth];
		uint32_t *next = m->sets[from].next;

		to = next ? next[n->byte] : SET_UNKNOWN;
		if (to == SET_UNKNOWN) {
			to = gset_step(m, from, n->byte);
			if (m->n_sets - before > MASK_SETS || m->spent > MASK_WORK)
				m->fail = -E2BIG;
			if (m->fail)
				break;
		}
		if (to == SET_DEAD) {
			i = n->skip;
			continue;
		}
		if (n->count && m->sets[to].need > worst)
			worst = m->sets[to].need;
		for (uint32_t k = n->first; k < n->first + n->count; k++)
			mask[v->ids[k] >> 5] |= 1u << (v->ids[k] & 31);
		m->depth_sets[n->depth + 1] = to;
		i++;
	}
	if (m->fail) {
		free(mask);
		return NULL;
	}
	if (m->sets[m->cur].may_end)
		for (size_t k = 0; k < v->n_eog; k++)
			mask[v->eog[k] >> 5] |= 1u << (v->eog[k] & 31);
	m->sets[m->cur].worst_need = worst;
	m->sets[m->cur].mask = mask;
	m->mask_bytes += v->words * sizeof(*mask);
	return mask;
}

bool gmatch_mask_known(const struct gmatch *m)
{
	return m->fail || m->sets[m->cur].mask;
}

const uint32_t *gmatch_mask_within(struct gmatch *m, uint32_t left)
{
	const struct gvocab *v = m->v;
	const uint32_t *all = gmatch_mask(m);
	uint32_t worst = 0, i = 0, kept = 0;

	/* Every token is at most as far from the end as .worst says, in tokens, or in bytes, which are never fewer: nothing to do. */
	if (!all || (v->n_bytes == 256 && (uint64_t)m->sets[m->cur].worst_need + 2 <= left) || (m->sets[m->cur].worst && m->sets[m->cur].worst + 2 <= left) || gway_tokens(m, m->cur) + 1 > left)
		return all;
	if (!m->within) {
		m->within = malloc((v->words ? v->words : 1) * sizeof(*m->within));
		if (!m->within) {
			m->fail = -ENOMEM;
			return NULL;
		}
	}
	memset(m->within, 0, v->words * sizeof(*m->within));
	m->depth_sets[0] = m->cur;
	while (i < v->n_nodes) {
		const struct gvocab_node *n = &v->nodes[i];
		const uint32_t *next = m->sets[m->depth_sets[n->depth]].next;
		uint32_t to = next ? next[n->byte] : SET_UNKNOWN, need;

		/* Where tokens were told by their length nobody went yet. */
		if (to == SET_UNKNOWN)
			to = gset_step(m, m->depth_sets[n->depth], n->byte);
		if (to == SET_DEAD) {
			i = n->skip;
			continue;
		}
		if (n->count) {
			need = gway_tokens(m, to);
			worst = need > worst ? need : worst;
			/* This one, those, and one that ends the generation. */
			for (uint32_t k = n->first; need + 2 <= left && k < n->first + n->count; k++) {
				m->within[v->ids[k] >> 5] |= 1u << (v->ids[k] & 31);
				kept++;
			}
		}
		m->depth_sets[n->depth + 1] = to;
		i++;
	}
	if (m->fail)
		return NULL;
	m->sets[m->cur].worst = worst ? worst : 1;
	if (m->sets[m->cur].may_end)
		for (size_t k = 0; k < v->n_eog; k++, kept++)
			m->within[v->eog[k] >> 5] |= 1u << (v->eog[k] & 31);
	return kept ? m->within : all;
}

bool gmatch_allows(struct gmatch *m, uint32_t token, uint32_t left)
{
	const struct gvocab *v = m->v;
	uint32_t at = m->cur;

	if (m->fail || token >= v->n_tokens)
		return false;
	for (size_t i = 0; i < v->n_eog; i++)
		if (v->eog[i] == token)
			return m->sets[m->cur].may_end;
	if (v->tok_start[token] == v->tok_start[token + 1])
		return false;
	for (uint32_t i = v->tok_start[token]; i < v->tok_start[token + 1] && at != SET_DEAD; i++)
		at = gset_step(m, at, (uint8_t)v->tok_bytes[i]);
	if (at == SET_DEAD || m->fail)
		return false;
	/* Bytes first: they are known, and tokens are never more. */
	return m->sets[at].need + 2 <= left || gway_tokens(m, at) + 2 <= left;
}
