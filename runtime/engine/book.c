// SPDX-License-Identifier: MIT
/*
 * What a step gave: tokens, or what else was asked of its rows. Tokens that were
 * foreseen are taken one by one, as if each were a step of its own, up to the
 * first that was wrong.
 */
#include "engine/priv.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static bool ends(const struct engine *e, const struct gen *g, int32_t token)
{
	uint32_t i;

	if (!g->r.ignore_eos && tok_is_eog(e->tok, token))
		return true;
	for (i = 0; i < g->r.n_stop_tokens; i++)
		if (g->r.stop_tokens[i] == token)
			return true;
	return false;
}

/* False: the backend cannot choose for @g, or not this; then the host must. */
static bool ask_there(struct engine *e, struct gen *g, uint32_t row, const uint32_t *mask, struct ops_pick *ret)
{
	struct sampler_ask ask;

	if (!e->ops->pick || !sampler_ask(g->s->sampler, &ask))
		return false;
	*ret = (struct ops_pick){
		.row = row, .temp = ask.params->temp, .top_k = ask.params->top_k, .top_p = ask.params->top_p,
		.min_p = ask.params->min_p, .u = ask.u, .rep_pen = ask.params->rep_pen,
		.freq_pen = ask.params->freq_pen, .pres_pen = ask.params->pres_pen,
		.recent = ask.recent, .n_recent = ask.n_recent, .mask = mask, .mask_stays = mask && mask == e->valid,
	};
	return true;
}

/* The row that @g's next token comes from. */
static uint32_t first_row(const struct gen *g)
{
	return g->step_out + (g->r.on_prompt ? g->step_n - 1 : 0);
}

static bool takes_token(const struct gen *g)
{
	return g->s->seq.len >= g->n_want && g->r.max_tokens && !atomic_load(&g->cancel);
}

/*
 * The first tokens of all gens of the step in one call, for each call waits for the
 * device. Those with a mask of their own are asked for one by one: it is made when
 * the token before is known to the caller. What fails here is asked for again by
 * take_token(), which says so.
 */
static void pick_together(struct engine *e, const struct step *st)
{
	struct hearth_err err = { 0 };
	uint32_t n = 0, at = 0, i;
	int r;

	for (i = 0; i < st->n_gen && !st->b.hidden; i++) {
		struct gen *g = e->row_gen[i];

		g->given = takes_token(g) && !g->r.mask && ask_there(e, g, first_row(g), e->valid, &e->pick[n]);
		n += g->given;
	}
	if (!n)
		return;
	r = e->ops->pick(e->ctx, e->pick, n, e->picked, &err);
	for (i = 0; i < st->n_gen; i++) {
		struct gen *g = e->row_gen[i];

		if (!g->given)
			continue;
		g->given_token = e->picked[at++];
		if (r) {
			sampler_unask(g->s->sampler);
			g->given = false;
		}
	}
}

/* What was drawn for @g is not wanted. Before its end: then its session may begin another. */
static void give_back(struct gen *g)
{
	if (g->given)
		sampler_unask(g->s->sampler);
	g->given = false;
}

/*
 * The token where the logits are, when the backend can. 1: *ret is it; 0: the
 * host must choose; -errno.
 */
static int pick_there(struct engine *e, struct gen *g, uint32_t row, const uint32_t *mask,
		      struct sampler_pick *ret, struct hearth_err *err)
{
	int32_t token = g->given_token;
	struct ops_pick p;
	int r;

	if (!g->given) {
		if (!ask_there(e, g, row, mask, &p))
			return 0;
		r = e->ops->pick(e->ctx, &p, 1, &token, err);
		if (r)
			return r;
	}
	g->given = false;
	if (token < 0) {   /* what is wrong, if anything is, the sampler says */
		sampler_unask(g->s->sampler);
		return 0;
	}
	sampler_accept(g->s->sampler, token);
	*ret = (struct sampler_pick){ .token = token, .logprob = NAN };
	return 1;
}

/* One token for @g from its output row @row of the step's. False: the gen is finished. */
static bool take_token(struct engine *e, struct gen *g, uint32_t row, struct hearth_err *err)
{
	const uint32_t vocab = e->plan.shape.vocab, words = (vocab + 31) / 32;
	struct session *s = g->s;
	struct sampler_pick pick;
	struct gen_token t;
	enum gen_finish f = GEN_RUNNING;
	const uint32_t *mask = e->valid;
	const char *text = "";
	bool known = false;
	uint64_t t_mask;
	int32_t best;
	float *logits;
	uint32_t which;
	size_t len = 0;
	int r;

	if (g->r.mask && g->r.allows && !e->ops->pick && g->r.allows(g->r.mask_arg, -1)) {
		t_mask = now_ns();
		r = e->ops->logits(e->ctx, row, &logits, err);
		best = r ? -1 : sampler_best(s->sampler, logits);
		known = best >= 0 && (!e->valid || (e->valid[best / 32] >> (best % 32) & 1)) && g->r.allows(g->r.mask_arg, best);
		if (g->res.n_out)
			g->res.mask_ns += now_ns() - t_mask;
	}
	if (known) {
		mask = NULL;   /* it is the best of all, so it is the best of what is allowed */
	} else if (g->r.mask) {
		t_mask = now_ns();
		if (e->valid)
			memcpy(e->mask, e->valid, words * sizeof(uint32_t));
		else
			memset(e->mask, 0xff, words * sizeof(uint32_t));
		mask = e->mask;
		r = g->r.mask(g->r.mask_arg, e->mask, vocab);
		if (r) {
			gen_fail(e, g, r == -ENOMEM || r == -ENODEV ? -EIO : r, "the token mask of the request failed");
			return false;
		}
		/* The first token's mask belongs to the prompt's time, as the token does. */
		if (g->res.n_out)
			g->res.mask_ns += now_ns() - t_mask;
	}
	r = pick_there(e, g, row, mask, &pick, err);
	if (!r) {
		r = e->ops->logits(e->ctx, row, &logits, err);
		if (!r && (r = sampler_pick(s->sampler, logits, mask, &pick)))
			err_set(err, r, "%s", r == -ENODATA ? "the grammar or the biases allow no token"
							    : "the model's output is not a number");
	}
	if (r < 0) {
		gen_fail(e, g, r, err->text);
		return false;
	}
	t = (struct gen_token){ .id = pick.token, .index = g->res.n_out++, .pick = &pick, .t_ns = now_ns() };
	if (!g->res.t_first)
		g->res.t_first = t.t_ns;
	g->res.t_last = t.t_ns;
	e->stats.out_tokens++;
	if (ends(e, g, pick.token)) {
		f = GEN_STOP;
		g->res.stop_token = pick.token;
	} else {
		text = tok_stream_push(s->stream, pick.token, &len);
		s->want[g->n_want++] = pick.token;
		if (g->res.n_out >= g->r.max_tokens || g->n_want > e->plan.ctx - 1)
			f = GEN_LENGTH;
	}
	if (g->r.no_stop && g->r.no_stop(g->r.arg)) {
		t.len = stop_flush(&g->stop, s->text);
		memcpy(s->text + t.len, text, len);
		t.len += len;
		if (f != GEN_RUNNING) {
			text = tok_stream_end(s->stream, &len);
			memcpy(s->text + t.len, text, len);
			t.len += len;
		}
	} else if (stop_push(&g->stop, text, len, s->text, &t.len, &which)) {
		f = GEN_STOP;
		g->res.stop_string = (int32_t)which;
	} else if (f != GEN_RUNNING) {
		/* What was held back for a whole character or a stop string. */
		text = tok_stream_end(s->stream, &len);
		t.len += stop_flush(&g->stop, s->text + t.len);
		memcpy(s->text + t.len, text, len);
		t.len += len;
	}
	t.text = s->text;
	if (g->r.on_token && g->r.on_token(g->r.arg, &t) && f == GEN_RUNNING)
		f = GEN_CANCELLED;
	if (f == GEN_RUNNING)
		return true;
	gen_finish(e, g, f);
	return false;
}

/* A guess that is mostly wrong costs more than it saves. */
static bool worth_it(const struct gen_result *r)
{
	return r->n_forced < 6 || r->n_kept * 2 >= r->n_forced;
}

/* The tokens that the step gave @g: one, and those that were foreseen and came true. */
static void take_tokens(struct engine *e, struct gen *g, struct hearth_err *err)
{
	struct kv_seq *q = &g->s->seq;
	const uint32_t more = g->step_ahead, row = first_row(g);
	bool runs = true;
	uint32_t i;

	g->res.n_forced += more;
	for (i = 0; i <= more && runs && (!i || !atomic_load(&g->cancel)); i++) {
		if (i) {
			/* Its row is computed already: it is part of the timeline from here. */
			if (g->s->want[g->n_want - 1] != g->ahead[i - 1])
				break;
			pthread_mutex_lock(&e->lock);
			q->token[q->len++] = g->ahead[i - 1];
			e->stats.kept_tokens++;
			pthread_mutex_unlock(&e->lock);
			g->res.n_kept++;
		}
		runs = take_token(e, g, row + i, err);
	}
	if (more) {
		pthread_mutex_lock(&e->lock);
		kv_seq_rewind(e->kv, q, q->len);   /* the pages of those that did not come true */
		e->stats.forced_tokens += more;
		pthread_mutex_unlock(&e->lock);
	}
	if (!runs)
		return;
	/* Bolder while it goes well, for a row too many is work for nothing. */
	if (more && i > more)
		g->most_ahead = 2 * g->most_ahead < OUT_EXTRA ? 2 * g->most_ahead : OUT_EXTRA;
	else if (more && i < 2)
		g->most_ahead = g->most_ahead / 2 ? g->most_ahead / 2 : 1;
	g->n_ahead = g->r.force && !g->r.on_prompt && worth_it(&g->res) ? g->r.force(g->r.arg, g->ahead, g->most_ahead) : 0;
}

static int report_prompt(struct engine *e, struct gen *g, struct hearth_err *err)
{
	const uint32_t at = g->s->seq.len - g->step_n;   /* position of the first row */
	uint32_t i;
	float *l;
	int r;

	for (i = 0; i < g->step_n && at + i + 1 < g->res.n_prompt; i++) {
		const int32_t next = g->s->want[at + i + 1];

		r = e->ops->logits(e->ctx, g->step_out + i, &l, err);
		if (r)
			return r;
		g->r.on_prompt(g->r.arg, at + i + 1, next,
			       (float)(l[next] - sampler_log_norm(l, e->plan.shape.vocab)));
	}
	return 0;
}

/* The rows of the step that are wanted, through the last norm. */
static void report_hidden(struct engine *e, const struct step *st, struct gen *g)
{
	const uint32_t d = e->plan.shape.d, at = g->s->seq.len - st->b.n_out;
	const float *norm = e->model->out_norm;
	uint32_t i, k;

	for (i = 0; i < st->b.n_out; i++) {
		const float *x = e->ops->bufs(e->ctx)->x + (size_t)i * d;
		double sum = 0;
		float scale;

		for (k = 0; k < d; k++)
			sum += (double)x[k] * (double)x[k];
		scale = (float)(1 / sqrt(sum / d + (double)e->plan.shape.eps));
		for (k = 0; k < d; k++)
			e->hidden[k] = x[k] * scale * norm[k];
		g->r.on_hidden(g->r.arg, at + i, e->hidden, d);
	}
}

static uint32_t pin_len(const struct gen *g)
{
	return g->r.pin_tokens && g->r.pin_tokens < g->res.n_prompt ? g->r.pin_tokens : g->res.n_prompt;
}

void batch_book(struct engine *e, struct step *st, uint64_t t0, uint64_t t1)
{
	struct hearth_err err = { 0 };
	uint32_t i;

	pthread_mutex_lock(&e->lock);
	e->stats.steps++;
	e->stats.step_ns += t1 - t0;
	for (i = 0; i < st->n_gen; i++) {
		struct gen *g = e->row_gen[i];
		struct kv_seq *q = &g->s->seq;

		memcpy(q->token + q->len, g->s->want + q->len, g->step_n * sizeof(int32_t));
		q->len += g->step_n;
		if (q->len <= g->res.n_prompt)
			e->stats.prompt_tokens += g->step_n;
		if (!g->res.t_prefill)
			g->res.t_prefill = t0;
		if (q->len >= g->res.n_prompt && !g->res.t_prefilled) {
			g->res.t_prefilled = t1;
			/* Another session that begins the same way need not wait for our end. */
			if (e->prefix)
				prefix_keep(e->prefix, q);
			if (e->prefix && g->r.cache_key)
				prefix_pin(e->prefix, q->token, pin_len(g), g->r.cache_key,
					   g->r.pin_seconds ? t1 + g->r.pin_seconds * 1000000000ull : 0);
		}
	}
	pthread_mutex_unlock(&e->lock);
	pick_together(e, st);
	for (i = 0; i < st->n_gen; i++) {
		struct gen *g = e->row_gen[i];
		int r = g->r.on_prompt && g->s->seq.len <= g->res.n_prompt ? report_prompt(e, g, &err) : 0;

		if (r) {
			give_back(g);
			gen_fail(e, g, r == -ENOMEM ? -EIO : r, err.text);
			continue;
		}
		if (g->r.on_hidden)
			report_hidden(e, st, g);
		if (g->s->seq.len < g->n_want)
			continue;
		if (!g->r.max_tokens)
			gen_finish(e, g, GEN_LENGTH);
		else if (atomic_load(&g->cancel))
			give_back(g);
		else
			take_tokens(e, g, &err);
	}
}

/* The step did not happen: its pages go back, its tokens are still to do. */
void batch_unbook(struct engine *e, struct step *st)
{
	uint32_t i;

	pthread_mutex_lock(&e->lock);
	for (i = 0; i < st->n_gen; i++)
		kv_seq_rewind(e->kv, &e->row_gen[i]->s->seq, e->row_gen[i]->s->seq.len);
	pthread_mutex_unlock(&e->lock);
}
