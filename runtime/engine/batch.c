// SPDX-License-Identifier: MIT
/*
 * Which rows a step has.
 *
 * While a voice gen is active only voice gens run. Otherwise every gen that
 * decodes has one row in each step, and the first of those with prompt left
 * (by priority, then by order) gets a chunk of it: a whole one when nobody
 * decodes, else a small one, so that the others' next token is not late.
 *
 * A gen whose next tokens are foreseen (gen_request.force) has rows for them
 * behind its own, each with an output row.
 */
#include "engine/priv.h"

#include <errno.h>
#include <string.h>

#define CHUNK_BESIDE 32u     /* prompt rows in a step in which others decode */

/* Lock held. Makes pages free: cached prefixes first, then what idle sessions hold, then what is pinned. */
static bool make_room(struct engine *e)
{
	struct session *old = NULL;
	uint32_t i;

	if (e->prefix && prefix_shed(e->prefix, 8, false, now_ns()))
		return true;
	for (i = 0; i < e->plan.sessions; i++) {
		struct session *s = &e->session[i];

		if ((s->gen.state == GEN_S_IDLE || s->gen.state == GEN_S_DONE) && s->seq.n_page &&
		    (!old || s->used < old->used))
			old = s;
	}
	if (!old)
		return e->prefix && prefix_shed(e->prefix, 8, true, now_ns());
	kv_seq_rewind(e->kv, &old->seq, 0);
	return true;
}

/* Lock held. Pages for @n more rows of @g; copies a shared page that will be written. */
static int extend(struct engine *e, struct gen *g, uint32_t n, struct hearth_err *err)
{
	uint32_t dst, src;
	int r;

	while ((r = kv_seq_extend(e->kv, &g->s->seq, n, &dst, &src)) == -ENOMEM && make_room(e))
		;
	if (r == -ENOMEM)
		return err_set(err, r, "no page of KV is left for token %u of the session: %u pages, all in use by sessions that generate",
			       g->s->seq.len + 1, kv_total(e->kv));
	if (r)
		return err_set(err, r, "token %u does not fit the context of %u", g->s->seq.len + n, e->plan.ctx);
	if (dst != KV_NONE)
		return e->ops->kv_copy(e->ctx, dst, src, g->s->seq.len % KV_PAGE, err);
	return 0;
}

/* How many rows behind the last of @n would be tokens that are foreseen. */
static uint32_t ahead(const struct engine *e, const struct step *st, const struct gen *g, uint32_t n)
{
	uint32_t k = g->n_ahead;
	const uint32_t rows = e->plan.chunk + e->plan.sessions - st->b.n - n;
	const uint32_t tokens = g->r.max_tokens - g->res.n_out - 1, room = e->plan.ctx - 1 - g->n_want;

	k = k < st->extra ? k : st->extra;
	k = k < rows ? k : rows;
	k = k < tokens ? k : tokens;
	return k < room ? k : room;
}

/*
 * Lock held. Adds @n rows of @g and @more of what is foreseen; out: how many of
 * the last of these @n + @more rows give logits.
 */
static bool add(struct engine *e, struct step *st, struct gen *g, uint32_t n, uint32_t more, uint32_t out,
		struct gen **ret_failed, struct hearth_err *err)
{
	struct session *s = g->s;
	struct batch_seq *q;
	uint32_t i;

	/* Nobody gives way to a guess. */
	if (more && kv_pages_for(s->seq.len + n + more) >= s->seq.n_page + kv_free(e->kv)) {
		out -= out < more ? out : more;
		more = 0;
	}
	if (extend(e, g, n + more, err)) {
		*ret_failed = g;
		return false;
	}
	q = &e->row_seq[st->n_gen];
	*q = (struct batch_seq){ .first = st->b.n, .n = n + more, .pos0 = s->seq.len, .page = s->seq.page };
	memcpy(e->row_token + st->b.n, s->want + s->seq.len, n * sizeof(int32_t));
	memcpy(e->row_token + st->b.n + n, g->ahead, more * sizeof(int32_t));
	g->step_n = n;
	g->step_first = st->b.n;
	g->step_ahead = more;
	g->step_out = st->b.n_out;
	for (i = n + more - out; i < n + more; i++)
		e->row_out[st->b.n_out++] = st->b.n + i;
	if (out)
		st->extra -= out - 1;
	st->b.n += n + more;
	e->row_gen[st->n_gen++] = g;
	return true;
}

static bool earlier(const struct gen *a, const struct gen *b)
{
	return a->r.prio != b->r.prio ? a->r.prio > b->r.prio : a->order < b->order;
}

/* Lock held. False: nothing to run, or *ret_failed ran out of memory. */
bool batch_choose(struct engine *e, struct step *st, struct gen **ret_failed, struct hearth_err *err)
{
	struct gen *prefill = NULL, *hidden = NULL;
	bool voice = false, decodes = false, others = false;
	uint32_t i, n, out, more;

	*st = (struct step){ .b = { .token = e->row_token, .seq = e->row_seq, .out = e->row_out } };
	/* Half of a step's rows stay for a prompt, however small steps are. */
	st->extra = e->plan.chunk / 2 < OUT_EXTRA ? e->plan.chunk / 2 : OUT_EXTRA;
	for (i = 0; i < e->plan.sessions; i++) {
		engine_gen(e, i)->step_n = 0;
		voice |= engine_gen(e, i)->state == GEN_S_ACTIVE && engine_gen(e, i)->r.prio == GEN_VOICE;
	}
	for (i = 0; i < e->plan.sessions; i++) {
		struct gen *g = engine_gen(e, i);

		if (g->state != GEN_S_ACTIVE || (voice && g->r.prio != GEN_VOICE))
			continue;
		if (!g->r.on_hidden)
			others = true;
		else if (!hidden || earlier(g, hidden))
			hidden = g;
	}
	if (hidden && (!others || e->hidden_turn)) {
		e->hidden_turn = false;
		n = gen_left(hidden);
		if (n > (others ? CHUNK_BESIDE : e->plan.chunk))
			n = others ? CHUNK_BESIDE : e->plan.chunk;
		if (n > e->plan.chunk)
			n = e->plan.chunk;
		st->b.hidden = true;
		st->extra = n;
		out = hidden->r.hidden_all ? n : n == gen_left(hidden);
		if (!add(e, st, hidden, n, 0, out, ret_failed, err))
			return false;
		st->b.n_seq = st->n_gen;
		return true;
	}
	e->hidden_turn = hidden != NULL;
	for (i = 0; i < e->plan.sessions; i++) {
		struct gen *g = engine_gen(e, i);

		if (g->state != GEN_S_ACTIVE || (voice && g->r.prio != GEN_VOICE) || g->r.on_hidden)
			continue;
		if (gen_left(g) > 1 || (g->r.on_prompt && g->s->seq.len < g->res.n_prompt)) {
			if (!prefill || earlier(g, prefill))
				prefill = g;
			continue;
		}
		more = ahead(e, st, g, 1);
		if (!add(e, st, g, 1, more, 1 + more, ret_failed, err))
			return false;
		decodes = true;
	}
	if (prefill) {
		n = gen_left(prefill);
		if (decodes && n > CHUNK_BESIDE)
			n = CHUNK_BESIDE;
		if (n > e->plan.chunk + e->plan.sessions - st->b.n)
			n = e->plan.chunk + e->plan.sessions - st->b.n;
		if (n > e->plan.chunk)
			n = e->plan.chunk;
		/* Rows that are asked for each go through the head: as many as it has room for. */
		if (prefill->r.on_prompt && n > 1 + st->extra)
			n = 1 + st->extra;
		out = prefill->r.on_prompt ? n : n == gen_left(prefill) && prefill->r.max_tokens;
		more = out && !prefill->r.on_prompt ? ahead(e, st, prefill, n) : 0;
		if (!add(e, st, prefill, n, more, out + more, ret_failed, err))
			return false;
	}
	st->b.n_seq = st->n_gen;
	return st->n_gen > 0;
}
