// SPDX-License-Identifier: MIT
/*
 * The worker: chooses a step, runs it, books the result, until told to stop.
 *
 * While a voice gen is active only voice gens run. Otherwise every gen that
 * decodes has one row in each step, and the first of those with prompt left
 * (by priority, then by order) gets a chunk of it: a whole one when nobody
 * decodes, else a small one, so that the others' next token is not late.
 *
 * A gen whose next tokens are foreseen (gen_request.force) has rows for them
 * behind its own, each with an output row. Afterwards they are taken one by
 * one, as if each were a step of its own, up to the first that was wrong.
 */
#include "engine/priv.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define CHUNK_BESIDE 32u     /* prompt rows in a step in which others decode */

static struct gen *gen_of(struct engine *e, uint32_t i)
{
	return &e->session[i].gen;
}

static uint32_t left(const struct gen *g)
{
	return g->n_want - g->s->seq.len;
}

/* -- the end of a gen ------------------------------------------------------------------ */

static void finish(struct engine *e, struct gen *g, enum gen_finish f)
{
	g->res.finish = f;
	g->res.seed = sampler_seed(g->s->sampler);
	g->res.t_done = now_ns();
	if (g->r.on_done)
		g->r.on_done(g->r.arg, &g->res);
	pthread_mutex_lock(&e->lock);
	if (e->prefix && f != GEN_ERROR)
		prefix_keep(e->prefix, &g->s->seq);
	e->stats.finished[f]++;
	g->s->used = ++e->clock;
	g->step_n = 0;
	g->state = GEN_S_DONE;
	pthread_cond_broadcast(&e->done);
	pthread_mutex_unlock(&e->lock);
}

static void fail(struct engine *e, struct gen *g, int code, const char *text)
{
	g->res.err.code = code;
	snprintf(g->res.err.text, sizeof(g->res.err.text), "%s", text);
	finish(e, g, code == -ENOMEM ? GEN_MEMORY : GEN_ERROR);
}

/* -- the start of a gen ------------------------------------------------------------------- */

/* Lets the session begin where its own cache, or a shared prefix, agrees with @want. */
static void sync_session(struct engine *e, struct gen *g)
{
	struct session *s = g->s;
	/* The last token is always computed: its row gives the logits. */
	const uint32_t most = g->n_want - 1;
	uint32_t n = 0, shared;

	const bool all = g->r.on_prompt || g->r.hidden_all;

	if (!all)
		while (n < most && n < s->seq.len && s->seq.token[n] == s->want[n])
			n++;
	kv_seq_rewind(e->kv, &s->seq, n);
	if (e->prefix && !all && prefix_peek(e->prefix, s->want, most) > n) {
		kv_seq_rewind(e->kv, &s->seq, 0);
		shared = prefix_find(e->prefix, s->want, most, s->seq.page);
		s->seq.n_page = kv_pages_for(shared);
		s->seq.len = shared;
		memcpy(s->seq.token, s->want, shared * sizeof(*s->want));
		n = shared;
	}
	g->res.n_cached = n;
	e->stats.cached_tokens += n;
}

/* Lock held. Returns a sampler error for the caller to report. */
static int admit(struct engine *e, struct gen *g, struct hearth_err *err)
{
	g->state = GEN_S_ACTIVE;
	sync_session(e, g);
	tok_stream_reset(g->s->stream);
	return sampler_start(g->s->sampler, &g->r.sample, g->s->want, g->n_want, err);
}

/* -- room ----------------------------------------------------------------------------------- */

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

/* -- a step ------------------------------------------------------------------------------------ */

struct step {
	struct batch b;
	uint32_t n_gen;          /* gens in it: e->row_gen[] */
	uint32_t extra;          /* output rows that may still be had besides one for each gen */
};

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
static bool choose(struct engine *e, struct step *st, struct gen **ret_failed, struct hearth_err *err)
{
	struct gen *prefill = NULL, *hidden = NULL;
	bool voice = false, decodes = false, others = false;
	uint32_t i, n, out, more;

	*st = (struct step){ .b = { .token = e->row_token, .seq = e->row_seq, .out = e->row_out } };
	/* Half of a step's rows stay for a prompt, however small steps are. */
	st->extra = e->plan.chunk / 2 < OUT_EXTRA ? e->plan.chunk / 2 : OUT_EXTRA;
	for (i = 0; i < e->plan.sessions; i++) {
		gen_of(e, i)->step_n = 0;
		voice |= gen_of(e, i)->state == GEN_S_ACTIVE && gen_of(e, i)->r.prio == GEN_VOICE;
	}
	for (i = 0; i < e->plan.sessions; i++) {
		struct gen *g = gen_of(e, i);

		if (g->state != GEN_S_ACTIVE || (voice && g->r.prio != GEN_VOICE))
			continue;
		if (!g->r.on_hidden)
			others = true;
		else if (!hidden || earlier(g, hidden))
			hidden = g;
	}
	if (hidden && (!others || e->hidden_turn)) {
		e->hidden_turn = false;
		n = left(hidden);
		if (n > (others ? CHUNK_BESIDE : e->plan.chunk))
			n = others ? CHUNK_BESIDE : e->plan.chunk;
		if (n > e->plan.chunk)
			n = e->plan.chunk;
		st->b.hidden = true;
		st->extra = n;
		out = hidden->r.hidden_all ? n : n == left(hidden);
		if (!add(e, st, hidden, n, 0, out, ret_failed, err))
			return false;
		st->b.n_seq = st->n_gen;
		return true;
	}
	e->hidden_turn = hidden != NULL;
	for (i = 0; i < e->plan.sessions; i++) {
		struct gen *g = gen_of(e, i);

		if (g->state != GEN_S_ACTIVE || (voice && g->r.prio != GEN_VOICE) || g->r.on_hidden)
			continue;
		if (left(g) > 1 || (g->r.on_prompt && g->s->seq.len < g->res.n_prompt)) {
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
		n = left(prefill);
		if (decodes && n > CHUNK_BESIDE)
			n = CHUNK_BESIDE;
		if (n > e->plan.chunk + e->plan.sessions - st->b.n)
			n = e->plan.chunk + e->plan.sessions - st->b.n;
		if (n > e->plan.chunk)
			n = e->plan.chunk;
		/* Rows that are asked for each go through the head: as many as it has room for. */
		if (prefill->r.on_prompt && n > 1 + st->extra)
			n = 1 + st->extra;
		out = prefill->r.on_prompt ? n : n == left(prefill) && prefill->r.max_tokens;
		more = out && !prefill->r.on_prompt ? ahead(e, st, prefill, n) : 0;
		if (!add(e, st, prefill, n, more, out + more, ret_failed, err))
			return false;
	}
	st->b.n_seq = st->n_gen;
	return st->n_gen > 0;
}

/* -- what a step gave -------------------------------------------------------------------------- */

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

/*
 * The token where the logits are, when the backend can. 1: *ret is it; 0: the
 * host must choose; -errno.
 */
static int pick_there(struct engine *e, struct gen *g, uint32_t row, const uint32_t *mask,
		      struct sampler_pick *ret, struct hearth_err *err)
{
	struct sampler_ask ask;
	struct ops_pick p;
	int32_t token;
	int r;

	if (!e->ops->pick || !sampler_ask(g->s->sampler, &ask))
		return 0;
	p = (struct ops_pick){
		.row = row, .temp = ask.params->temp, .top_k = ask.params->top_k, .top_p = ask.params->top_p,
		.min_p = ask.params->min_p, .u = ask.u, .rep_pen = ask.params->rep_pen,
		.freq_pen = ask.params->freq_pen, .pres_pen = ask.params->pres_pen,
		.recent = ask.recent, .n_recent = ask.n_recent, .mask = mask,
	};
	r = e->ops->pick(e->ctx, &p, 1, &token, err);
	if (r)
		return r;
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
			fail(e, g, r == -ENOMEM ? -EIO : r, "the token mask of the request failed");
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
		fail(e, g, r, err->text);
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
	finish(e, g, f);
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
	const uint32_t more = g->step_ahead, row = g->step_out + (g->r.on_prompt ? g->step_n - 1 : 0);
	bool runs = true;
	uint32_t i;

	g->res.n_forced += more;
	for (i = 0; i <= more && runs && !atomic_load(&g->cancel); i++) {
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

static void report_prompt(struct engine *e, struct gen *g, struct hearth_err *err)
{
	const uint32_t at = g->s->seq.len - g->step_n;   /* position of the first row */
	uint32_t i;
	float *l;

	for (i = 0; i < g->step_n && at + i + 1 < g->res.n_prompt; i++) {
		const int32_t next = g->s->want[at + i + 1];

		if (e->ops->logits(e->ctx, g->step_out + i, &l, err))
			return;
		g->r.on_prompt(g->r.arg, at + i + 1, next,
			       (float)(l[next] - sampler_log_norm(l, e->plan.shape.vocab)));
	}
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

static void book(struct engine *e, struct step *st, uint64_t t0, uint64_t t1)
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
	for (i = 0; i < st->n_gen; i++) {
		struct gen *g = e->row_gen[i];

		if (g->r.on_prompt && g->s->seq.len <= g->res.n_prompt)
			report_prompt(e, g, &err);
		if (g->r.on_hidden)
			report_hidden(e, st, g);
		if (g->s->seq.len < g->n_want)
			continue;
		if (!g->r.max_tokens)
			finish(e, g, GEN_LENGTH);
		else if (!atomic_load(&g->cancel))
			take_tokens(e, g, &err);
	}
}

/* The step did not happen: its pages go back, its tokens are still to do. */
static void unbook(struct engine *e, struct step *st)
{
	uint32_t i;

	pthread_mutex_lock(&e->lock);
	for (i = 0; i < st->n_gen; i++)
		kv_seq_rewind(e->kv, &e->row_gen[i]->s->seq, e->row_gen[i]->s->seq.len);
	pthread_mutex_unlock(&e->lock);
}

/* -- the thread --------------------------------------------------------------------------------- */

/* Lock held, and given up around callbacks. True: something changed, look again. */
static bool settle(struct engine *e)
{
	struct hearth_err err = { 0 };
	uint32_t i;
	int r;

	for (i = 0; i < e->plan.sessions; i++) {
		struct gen *g = gen_of(e, i);

		if (g->state != GEN_S_QUEUED && g->state != GEN_S_ACTIVE)
			continue;
		if (atomic_load(&g->cancel) || e->stop) {
			g->state = GEN_S_ACTIVE;
			pthread_mutex_unlock(&e->lock);
			finish(e, g, GEN_CANCELLED);
			pthread_mutex_lock(&e->lock);
			return true;
		}
		if (g->state == GEN_S_QUEUED) {
			r = admit(e, g, &err);
			if (!r)
				continue;
			pthread_mutex_unlock(&e->lock);
			fail(e, g, r, err.text);
			pthread_mutex_lock(&e->lock);
			return true;
		}
	}
	return false;
}

void *engine_worker(void *arg)
{
	struct engine *e = arg;
	struct hearth_err err = { 0 };
	struct gen *failed;
	struct step st;
	uint64_t t0;
	uint32_t i;
	int r;

	pthread_mutex_lock(&e->lock);
	for (;;) {
		if (settle(e))
			continue;
		if (e->stop)
			break;
		failed = NULL;
		if (!choose(e, &st, &failed, &err)) {
			if (failed) {
				/* Whoever was in the step already is simply in the next one. */
				pthread_mutex_unlock(&e->lock);
				unbook(e, &st);
				fail(e, failed, err.code, err.text);
				pthread_mutex_lock(&e->lock);
				continue;
			}
			pthread_cond_wait(&e->work, &e->lock);
			continue;
		}
		pthread_mutex_unlock(&e->lock);
		t0 = now_ns();
		r = e->ops->forward(e->ctx, &st.b, &err);
		if (!r) {
			book(e, &st, t0, now_ns());
		} else {
			unbook(e, &st);
			if (r != -ECANCELED)
				for (i = 0; i < st.n_gen; i++)
					fail(e, e->row_gen[i], r == -ENOMEM ? -EIO : r, err.text);
		}
		pthread_mutex_lock(&e->lock);
	}
	pthread_mutex_unlock(&e->lock);
	return NULL;
}
