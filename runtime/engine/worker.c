// SPDX-License-Identifier: MIT
/* The worker: begins gens, chooses a step, runs it, books the result, until told to stop. */
#include "engine/priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void gen_finish(struct engine *e, struct gen *g, enum gen_finish f)
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

/* Nothing will run any more: whoever waits for that is woken, once. */
static void lose(struct engine *e, const char *text)
{
	const uint64_t one = 1;

	pthread_mutex_lock(&e->lock);
	if (!e->lost.code) {
		err_set(&e->lost, -ENODEV, "%s", text);
		while (write(e->lost_fd, &one, sizeof(one)) < 0 && errno == EINTR)
			;
	}
	pthread_mutex_unlock(&e->lock);
}

void gen_fail(struct engine *e, struct gen *g, int code, const char *text)
{
	/* Only a backend says so (model/ops.h). */
	if (code == -ENODEV)
		lose(e, text);
	g->res.err.code = code;
	snprintf(g->res.err.text, sizeof(g->res.err.text), "%s", text);
	gen_finish(e, g, code == -ENOMEM ? GEN_MEMORY : GEN_ERROR);
}

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

/* Lock held, and given up around callbacks. True: something changed, look again. */
static bool settle(struct engine *e)
{
	struct hearth_err err = { 0 };
	uint32_t i;
	int r;

	for (i = 0; i < e->plan.sessions; i++) {
		struct gen *g = engine_gen(e, i);

		if (g->state != GEN_S_QUEUED && g->state != GEN_S_ACTIVE)
			continue;
		if (atomic_load(&g->cancel) || e->stop) {
			g->state = GEN_S_ACTIVE;
			pthread_mutex_unlock(&e->lock);
			gen_finish(e, g, GEN_CANCELLED);
			pthread_mutex_lock(&e->lock);
			return true;
		}
		if (e->lost.code) {
			g->state = GEN_S_ACTIVE;
			pthread_mutex_unlock(&e->lock);
			gen_fail(e, g, e->lost.code, e->lost.text);
			pthread_mutex_lock(&e->lock);
			return true;
		}
		if (g->state == GEN_S_QUEUED) {
			r = admit(e, g, &err);
			if (!r)
				continue;
			pthread_mutex_unlock(&e->lock);
			gen_fail(e, g, r, err.text);
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
		if (!batch_choose(e, &st, &failed, &err)) {
			if (failed) {
				/* Whoever was in the step already is simply in the next one. */
				pthread_mutex_unlock(&e->lock);
				batch_unbook(e, &st);
				gen_fail(e, failed, err.code, err.text);
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
			batch_book(e, &st, t0, now_ns());
		} else {
			batch_unbook(e, &st);
			if (r != -ECANCELED)
				for (i = 0; i < st.n_gen; i++)
					gen_fail(e, e->row_gen[i], r == -ENOMEM ? -EIO : r, err.text);
		}
		pthread_mutex_lock(&e->lock);
	}
	pthread_mutex_unlock(&e->lock);
	return NULL;
}
