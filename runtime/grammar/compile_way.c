// SPDX-License-Identifier: MIT
/* How far each state is from the end of its rule, and the way there. */
#include "grammar/compile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct near {
	uint32_t need, state;
};

struct ways {
	struct grammar *g;
	uint32_t *src, *next, *into; /* edge: whose it is, the next that leads to the same state; state: the first */
	uint32_t *same, *calls;      /* edge: the next call of the same rule; rule: the first */
	uint32_t *rule_at;           /* state: the rule that begins there, or GEDGE_NONE */
	bool *done;
	struct near *heap;
	size_t n, cap;
};

static int near_put(struct ways *w, uint32_t need, uint32_t state)
{
	size_t i = w->n++;

	if (i == w->cap) {
		size_t cap = w->cap * 2 + 1024;
		struct near *p = realloc(w->heap, cap * sizeof(*p));

		if (!p)
			return -ENOMEM;
		w->heap = p;
		w->cap = cap;
	}
	for (; i && w->heap[(i - 1) / 2].need > need; i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = (struct near){ need, state };
	return 0;
}

static struct near near_take(struct ways *w)
{
	const struct near first = w->heap[0], last = w->heap[--w->n];
	size_t i = 0, k;

	while ((k = 2 * i + 1) < w->n) {
		k += k + 1 < w->n && w->heap[k + 1].need < w->heap[k].need;
		if (w->heap[k].need >= last.need)
			break;
		w->heap[i] = w->heap[k];
		i = k;
	}
	w->heap[i] = last;
	return first;
}

/* Edge @e ends @n bytes from the end of its rule. */
static int nearer(struct ways *w, uint32_t e, uint32_t n)
{
	struct gstate *s = &w->g->states[w->src[e]];

	if (n >= s->need)
		return 0;
	s->need = n;
	s->best = e;
	return near_put(w, n, w->src[e]);
}

/* How far @state is, is known now: so is how far those are that lead to it, and the callers of a rule that begins there. */
static int arrived(struct ways *w, uint32_t state)
{
	const struct grammar *g = w->g;
	const uint32_t n = g->states[state].need, rule = w->rule_at[state];
	int rc = 0;

	w->done[state] = true;
	for (uint32_t e = w->into[state]; e != GEDGE_NONE && !rc; e = w->next[e]) {
		const struct gedge *x = &g->edges[e];
		const uint32_t start = x->kind == GEDGE_CALL ? g->rule_start[x->rule] : state;

		if (w->done[start])
			rc = nearer(w, e, n + (x->kind == GEDGE_BYTES ? 1 : x->kind == GEDGE_CALL ? g->states[start].need : 0));
	}
	for (uint32_t e = rule == GEDGE_NONE ? GEDGE_NONE : w->calls[rule]; e != GEDGE_NONE && !rc; e = w->same[e])
		if (w->done[g->edges[e].to])
			rc = nearer(w, e, n + g->states[g->edges[e].to].need);
	return rc;
}

/*
 * How far each state is from the end of its rule, and the way. The nearest
 * first (a call is never nearer than what it calls), so each is settled once,
 * and following ways never goes round in a circle.
 */
int gcompile_ways(struct grammar *g)
{
	const size_t ns = g->n_states + 1, ne = g->n_edges + 1, nr = g->n_rules + 1;
	struct ways w = { .g = g };
	int rc = 0;

	w.src = malloc(ne * 3 * sizeof(uint32_t));
	w.into = malloc(ns * 2 * sizeof(uint32_t));
	w.calls = malloc(nr * sizeof(uint32_t));
	w.done = calloc(ns, sizeof(bool));
	if (!w.src || !w.into || !w.calls || !w.done) {
		rc = -ENOMEM;
		goto out;
	}
	w.next = w.src + ne;
	w.same = w.next + ne;
	w.rule_at = w.into + ns;
	memset(w.into, 0xff, ns * 2 * sizeof(uint32_t));
	memset(w.calls, 0xff, nr * sizeof(uint32_t));
	for (uint32_t i = 0; i < g->n_rules; i++)
		w.rule_at[g->rule_start[i]] = i;
	for (uint32_t i = 0; i < g->n_states && !rc; i++) {
		for (uint32_t e = g->states[i].edges; e != GEDGE_NONE; e = g->edges[e].next) {
			const struct gedge *x = &g->edges[e];

			w.src[e] = i;
			w.next[e] = w.into[x->to];
			w.into[x->to] = e;
			if (x->kind == GEDGE_CALL) {
				w.same[e] = w.calls[x->rule];
				w.calls[x->rule] = e;
			}
		}
		g->states[i].need = g->states[i].is_end ? 0 : NEED_NONE;
		g->states[i].best = GEDGE_NONE;
		if (g->states[i].is_end)
			rc = near_put(&w, 0, i);
	}
	while (w.n && !rc) {
		const struct near x = near_take(&w);

		if (!w.done[x.state])
			rc = arrived(&w, x.state);
	}
out:
	free(w.src);
	free(w.into);
	free(w.calls);
	free(w.done);
	free(w.heap);
	return rc;
}
