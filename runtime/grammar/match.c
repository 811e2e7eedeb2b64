// SPDX-License-Identifier: MIT
/*
 * One position in a grammar.
 *
 * A configuration is a state of the network and a stack of return states; a
 * set of configurations, closed under empty steps, calls and returns, is one
 * state of a deterministic automaton that is made as it is met. Stacks and
 * sets are hash-consed, so that equal ones have equal numbers and a transition
 * or a mask is worked out once.
 */
#include "grammar/match_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SETS     16384               /* then everything made so far is dropped */
#define MAX_FRAMES   (1u << 20)

static void forget(struct gmatch *m)
{
	for (uint32_t i = 0; i < m->n_sets; i++) {
		free(m->sets[i].next);
		free(m->sets[i].mask);
	}
	memset(m->frame_hash, 0, m->frame_buckets * sizeof(*m->frame_hash));
	memset(m->set_hash, 0, m->set_buckets * sizeof(*m->set_hash));
	m->frames[0] = (struct frame){ 0 };
	m->sets[0] = (struct set){ 0 };
	m->n_frames = 1;
	m->n_sets = 1;
	m->n_configs = 0;
	m->mask_bytes = m->next_bytes = 0;
}

void gmatch_free(struct gmatch *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < m->n_sets; i++) {
		free(m->sets[i].next);
		free(m->sets[i].mask);
	}
	grammar_unref(m->g);
	free(m->frames);
	free(m->frame_hash);
	free(m->configs);
	free(m->sets);
	free(m->set_hash);
	free(m->work);
	free(m->seen);
	free(m->slots);
	free(m->depth_sets);
	free(m->within);
	free(m);
}

void gmatch_restart(struct gmatch *m)
{
	m->fail = 0;
	m->last = 0;
	gset_begin(m);
	gset_add(m, m->g->root, 0);
	m->cur = gset_close(m);
}

int gmatch_create(struct grammar *g, const struct gvocab *v, struct gmatch **ret)
{
	struct gmatch *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->g = grammar_ref(g);
	m->v = v;
	m->frame_buckets = 8192;
	m->set_buckets = 8192;
	m->frame_hash = calloc(m->frame_buckets, sizeof(*m->frame_hash));
	m->set_hash = calloc(m->set_buckets, sizeof(*m->set_hash));
	m->frames = gmatch_grow(m, NULL, &m->cap_frames, sizeof(*m->frames));
	m->sets = gmatch_grow(m, NULL, &m->cap_sets, sizeof(*m->sets));
	m->work = malloc(MAX_CONFIGS * 2 * sizeof(*m->work));
	m->seen = calloc(SEEN_SLOTS, sizeof(*m->seen));
	m->slots = malloc(MAX_CONFIGS * 2 * sizeof(*m->slots));
	m->depth_sets = malloc(4097 * sizeof(*m->depth_sets));
	if (!m->frame_hash || !m->set_hash || !m->frames || !m->sets || !m->work || !m->seen || !m->slots || !m->depth_sets) {
		gmatch_free(m);
		return -ENOMEM;
	}
	forget(m);
	gmatch_restart(m);
	if (m->fail) {
		int rc = m->fail;

		gmatch_free(m);
		return rc;
	}
	*ret = m;
	return 0;
}

/*
 * Between two tokens nothing but cur is in use, so this is where what was made
 * may be dropped: the current set is carried over by its configurations.
 */
void gmatch_trim(struct gmatch *m)
{
	struct set *s = &m->sets[m->cur];
	struct config *keep;
	uint32_t *rets, *lens, count = s->count, at = 0, total = 0;

	if (m->n_sets < MAX_SETS && m->n_frames < MAX_FRAMES)
		return;
	for (uint32_t i = 0; i < count; i++)
		total += m->frames[m->configs[s->first + i].stack].depth;
	keep = malloc((count ? count : 1) * sizeof(*keep));
	rets = malloc((total ? total : 1) * sizeof(*rets));
	lens = malloc((count ? count : 1) * sizeof(*lens));
	if (!keep || !rets || !lens) {
		m->fail = -ENOMEM;
		goto out;
	}
	for (uint32_t i = 0; i < count; i++) {
		keep[i] = m->configs[s->first + i];
		lens[i] = m->frames[keep[i].stack].depth;
		for (uint32_t f = keep[i].stack; f; f = m->frames[f].below)
			rets[at++] = m->frames[f].ret;
	}
	bool may_end = s->may_end;

	forget(m);
	gset_begin(m);
	at = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t stack = 0;

		for (uint32_t k = lens[i]; k-- > 0;)
			stack = gframe_push(m, rets[at + k], stack);
		at += lens[i];
		gset_add(m, keep[i].state, stack);
	}
	m->cur = gset_close(m);
	/* Kept configurations only read; that the text may end was known beside them. */
	if (may_end && m->cur == SET_DEAD) {
		m->sets[m->n_sets] = (struct set){ .may_end = true, .need = 0 };
		m->cur = m->n_sets++;
	} else if (may_end) {
		m->sets[m->cur].may_end = true;
		m->sets[m->cur].need = 0;
	}
out:
	free(keep);
	free(rets);
	free(lens);
}

int gmatch_status(const struct gmatch *m)
{
	return m->fail;
}

size_t gmatch_bytes(const struct gmatch *m)
{
	return sizeof(*m) + m->mask_bytes + m->next_bytes + m->cap_frames * sizeof(*m->frames) +
	       m->cap_configs * sizeof(*m->configs) + m->cap_sets * sizeof(*m->sets) +
	       (m->frame_buckets + m->set_buckets) * sizeof(uint32_t) +
	       MAX_CONFIGS * 2 * (sizeof(*m->work) + sizeof(*m->slots)) + SEEN_SLOTS * sizeof(*m->seen);
}

int gmatch_accept_bytes(struct gmatch *m, const char *s, size_t len)
{
	uint32_t at = m->cur;

	if (m->fail)
		return m->fail;
	for (size_t i = 0; i < len; i++) {
		at = gset_step(m, at, (uint8_t)s[i]);
		if (at == SET_DEAD)
			return m->fail ? m->fail : -EINVAL;
	}
	m->cur = at;
	if (len)
		m->last = (uint8_t)s[len - 1];
	return 0;
}

int gmatch_accept(struct gmatch *m, uint32_t token)
{
	const struct gvocab *v = m->v;

	if (token >= v->n_tokens)
		return -EINVAL;
	for (size_t i = 0; i < v->n_eog; i++)
		if (v->eog[i] == token)
			return m->sets[m->cur].may_end ? 0 : -EINVAL;
	if (v->tok_start[token] == v->tok_start[token + 1])
		return -EINVAL;
	return gmatch_accept_bytes(m, v->tok_bytes + v->tok_start[token],
				   v->tok_start[token + 1] - v->tok_start[token]);
}

bool gmatch_may_end(struct gmatch *m)
{
	return !m->fail && m->sets[m->cur].may_end;
}

bool gmatch_must_end(struct gmatch *m)
{
	return gmatch_may_end(m) && m->sets[m->cur].count == 0;
}
