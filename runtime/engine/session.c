// SPDX-License-Identifier: MIT
#include "engine/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* -- slots, all made when the engine opens -------------------------------------- */

static int slot_open(struct engine *e, struct session *s, struct hearth_err *err)
{
	int r;

	s->e = e;
	s->gen.s = s;
	r = kv_seq_open(e->plan.ctx, &s->seq, err);
	if (r)
		return r;
	r = sampler_open(e->plan.shape.vocab, &s->sampler, err);
	if (r)
		return r;
	r = tok_stream_open(e->tok, false, &s->stream);
	if (r)
		return err_set(err, r, "no memory for a session");
	s->want = calloc(e->plan.ctx, sizeof(*s->want));
	s->text = malloc(e->text_max + 2 * STOP_MAX_BYTES);
	if (!s->want || !s->text)
		return err_set(err, -ENOMEM, "no memory for a session of %u tokens", e->plan.ctx);
	return 0;
}

int sessions_open(struct engine *e, struct hearth_err *err)
{
	uint32_t i;
	int r;

	e->session = calloc(e->plan.sessions, sizeof(*e->session));
	if (!e->session)
		return err_set(err, -ENOMEM, "no memory for %u sessions", e->plan.sessions);
	for (i = 0; i < e->plan.sessions; i++) {
		r = slot_open(e, &e->session[i], err);
		if (r)
			return r;
	}
	return 0;
}

void sessions_close(struct engine *e)
{
	uint32_t i;

	for (i = 0; e->session && i < e->plan.sessions; i++) {
		struct session *s = &e->session[i];

		if (e->kv)
			kv_seq_close(e->kv, &s->seq);
		sampler_close(s->sampler);
		tok_stream_free(s->stream);
		free(s->want);
		free(s->text);
	}
	free(e->session);
}

int session_open(struct engine *e, struct session **ret, struct hearth_err *err)
{
	uint32_t i;
	int r = -EBUSY;

	pthread_mutex_lock(&e->lock);
	for (i = 0; i < e->plan.sessions; i++) {
		struct session *s = &e->session[i];

		if (s->open)
			continue;
		s->open = true;
		s->used = ++e->clock;
		*ret = s;
		r = 0;
		break;
	}
	pthread_mutex_unlock(&e->lock);
	if (r)
		return err_set(err, r, "all %u sessions of the engine are open", e->plan.sessions);
	return 0;
}

void session_close(struct session *s)
{
	struct engine *e;
	bool busy;

	if (!s)
		return;
	e = s->e;
	/* Whoever closes a session has no use for its gen, freed or not. */
	pthread_mutex_lock(&e->lock);
	busy = s->gen.state != GEN_S_IDLE;
	pthread_mutex_unlock(&e->lock);
	if (busy)
		gen_free(&s->gen);
	pthread_mutex_lock(&e->lock);
	kv_seq_rewind(e->kv, &s->seq, 0);
	s->open = false;
	pthread_mutex_unlock(&e->lock);
}

uint32_t session_len(struct session *s)
{
	uint32_t n;

	pthread_mutex_lock(&s->e->lock);
	n = s->seq.len;
	pthread_mutex_unlock(&s->e->lock);
	return n;
}

int session_rewind(struct session *s, uint32_t len)
{
	int r = 0;

	pthread_mutex_lock(&s->e->lock);
	if (s->gen.state == GEN_S_QUEUED || s->gen.state == GEN_S_ACTIVE)
		r = -EBUSY;
	else
		kv_seq_rewind(s->e->kv, &s->seq, len);
	pthread_mutex_unlock(&s->e->lock);
	return r;
}

/* -- requests ------------------------------------------------------------------------ */

const char *gen_finish_name(enum gen_finish f)
{
	static const char *const name[] = {
		[GEN_RUNNING] = "running", [GEN_STOP] = "stop", [GEN_LENGTH] = "length",
		[GEN_CANCELLED] = "cancelled", [GEN_MEMORY] = "memory", [GEN_ERROR] = "error",
	};

	return (unsigned)f < sizeof(name) / sizeof(name[0]) ? name[f] : "?";
}

void gen_defaults(struct gen_request *r)
{
	*r = (struct gen_request){ .max_tokens = 256, .prio = GEN_NORMAL };
	sampler_defaults(&r->sample);
}

static int check(struct session *s, const struct gen_request *r, struct hearth_err *err)
{
	const struct engine_plan *p = &s->e->plan;
	struct stop_match m;
	uint32_t i;
	int rc;

	if (!r->tokens || !r->n_tokens)
		return err_set(err, -EINVAL, "a request needs at least one token");
	if (r->n_tokens > p->ctx)
		return err_set(err, -E2BIG, "the prompt has %u tokens; the context is %u", r->n_tokens, p->ctx);
	if (r->n_tokens == p->ctx && r->max_tokens)
		return err_set(err, -E2BIG, "the prompt has %u tokens, which fills the context of %u: no room for an answer",
			       r->n_tokens, p->ctx);
	for (i = 0; i < r->n_tokens; i++)
		if (r->tokens[i] < 0 || (uint32_t)r->tokens[i] >= p->shape.vocab)
			return err_set(err, -EINVAL, "token %d at place %u; the vocabulary has %u",
				       r->tokens[i], i, p->shape.vocab);
	if ((unsigned)r->prio > GEN_VOICE)
		return err_set(err, -EINVAL, "unknown priority %d", (int)r->prio);
	if (r->on_hidden && r->max_tokens)
		return err_set(err, -EINVAL, "a request for embeddings makes no tokens");
	if (r->on_hidden && !engine_can_embed(s->e))
		return err_set(err, -EOPNOTSUPP, "the backend %s gives no embeddings", s->e->ops->name);
	if (r->n_stop_tokens > STOP_TOKENS_MAX)
		return err_set(err, -EINVAL, "%u stop tokens; at most %u are possible", r->n_stop_tokens,
			       STOP_TOKENS_MAX);
	rc = stop_init(&m, r->stop, r->n_stop, err);
	return rc ? rc : sampler_check(&r->sample, p->shape.vocab, err);
}

/* The request outlives the call: whatever it points to moves into the gen. */
static void keep(struct gen *g, const struct gen_request *r)
{
	uint32_t i;

	g->r = *r;
	memcpy(g->s->want, r->tokens, r->n_tokens * sizeof(*r->tokens));
	g->n_want = r->n_tokens;
	g->r.tokens = g->s->want;
	for (i = 0; i < r->n_stop; i++) {
		memcpy(g->stop_text[i], r->stop[i], strlen(r->stop[i]) + 1);
		g->stop_str[i] = g->stop_text[i];
	}
	g->r.stop = g->stop_str;
	if (r->n_stop_tokens)
		memcpy(g->stop_token, r->stop_tokens, r->n_stop_tokens * sizeof(int32_t));
	g->r.stop_tokens = g->stop_token;
	if (r->sample.n_bias)
		memcpy(g->bias, r->sample.bias, r->sample.n_bias * sizeof(*g->bias));
	g->r.sample.bias = g->bias;
	stop_init(&g->stop, g->stop_str, r->n_stop, NULL);
	g->res = (struct gen_result){
		.n_prompt = r->n_tokens, .stop_token = -1, .stop_string = -1, .t_submit = now_ns(),
	};
	atomic_store(&g->cancel, false);
	g->n_ahead = 0;
	g->most_ahead = 6;
}

int gen_start(struct session *s, const struct gen_request *r, struct gen **ret_gen,
	      struct hearth_err *err)
{
	struct engine *e = s->e;
	struct gen *g = &s->gen;
	int rc = check(s, r, err);

	if (rc)
		return rc;
	pthread_mutex_lock(&e->lock);
	if (e->lost.code) {
		pthread_mutex_unlock(&e->lock);
		return err_set(err, e->lost.code, "%s", e->lost.text);
	}
	if (g->state != GEN_S_IDLE) {
		pthread_mutex_unlock(&e->lock);
		return err_set(err, -EBUSY, "the session has a generation that is not freed yet");
	}
	keep(g, r);
	if (g->r.force && g->r.max_tokens > 1 && !g->r.on_prompt)
		g->n_ahead = g->r.force(g->r.arg, g->ahead, g->most_ahead);
	g->order = ++e->orders;
	g->state = GEN_S_QUEUED;
	s->used = ++e->clock;
	*ret_gen = g;
	pthread_cond_signal(&e->work);
	pthread_mutex_unlock(&e->lock);
	return 0;
}

void gen_cancel(struct gen *g)
{
	struct engine *e = g->s->e;

	atomic_store(&g->cancel, true);
	/*
	 * The worker looks at .cancel before each step. A step that computes this
	 * gen's prompt is broken off between layers: nothing of it is kept.
	 */
	pthread_mutex_lock(&e->lock);
	if (g->state == GEN_S_ACTIVE && g->step_n > 1 && e->ops->interrupt)
		e->ops->interrupt(e->ctx);
	pthread_cond_signal(&e->work);
	pthread_mutex_unlock(&e->lock);
}

int gen_wait(struct gen *g, int timeout_ms, struct gen_result *ret)
{
	struct engine *e = g->s->e;
	struct timespec until;
	int r = 0;

	if (timeout_ms >= 0)
		until = mono_after(timeout_ms);
	pthread_mutex_lock(&e->lock);
	while (g->state != GEN_S_DONE && !r)
		r = timeout_ms < 0 ? pthread_cond_wait(&e->done, &e->lock)
				   : pthread_cond_timedwait(&e->done, &e->lock, &until);
	if (g->state == GEN_S_DONE) {
		if (ret)
			*ret = g->res;
		r = 0;
	}
	pthread_mutex_unlock(&e->lock);
	return -r;
}

void gen_free(struct gen *g)
{
	struct engine *e;

	if (!g)
		return;
	e = g->s->e;
	gen_cancel(g);
	gen_wait(g, -1, NULL);
	pthread_mutex_lock(&e->lock);
	g->state = GEN_S_IDLE;
	pthread_mutex_unlock(&e->lock);
}
