// SPDX-License-Identifier: MIT
#include "server/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/grammars.h"
#include "server/tenants.h"

static const char marker[] = "<tool_call>";
#define MARKER_LEN (sizeof(marker) - 1)
#define PROBE 8u                /* choices: how far a grammar is tried out before anything is made */

struct run {
	struct service *s;
	struct slot *slot;
	struct gen *gen;
	int who;
	bool entered;
	uint64_t kv;               /* bytes of cache that it may fill */
	int tenant;                /* who is charged with them */
	bool charged;

	int32_t *tokens;           /* prompt and what came, for the session's next user */
	size_t n_tokens, cap_tokens;

	enum run_mode mode;
	bool no_calls, raw, whole;
	const char *call_words;
	bool call_said;
	uint32_t left;             /* tokens that may still come */
	struct grammar *grammar;
	struct gmatch *match;
	bool in_grammar, thinking;
	struct feed *feed;
	char tail[MARKER_LEN + 1]; /* last bytes of text, to find the marker across tokens */
	size_t n_tail;
	struct chat_parser *parser;
	struct gen_result result;
	uint32_t n_calls;
	bool logprobs;
	struct hearth_err fail;    /* of the grammar */
	atomic_bool stopped;       /* cancelled because the service stops */

	pthread_mutex_t settling;
	bool settled;              /* the session was given back */
};

/* -- what the engine says (its thread) ------------------------------------------- */

static void out_of_memory(struct run *r)
{
	if (!r->fail.code)
		err_set(&r->fail, -ENOMEM, "out of memory for the answer");
}

static void on_text(struct run *r, enum run_event_kind kind, const char *s, size_t n)
{
	if (n && !feed_text(r->feed, kind, s, n))
		out_of_memory(r);
}

static void sink_content(void *ctx, const char *s, size_t n)
{
	on_text(ctx, RUN_CONTENT, s, n);
}

static void sink_reasoning(void *ctx, const char *s, size_t n)
{
	on_text(ctx, RUN_REASONING, s, n);
}

static void say_call_words(struct run *r)
{
	if (!r->call_said)
		on_text(r, RUN_CONTENT, r->call_words, strlen(r->call_words));
	r->call_said = true;
}

static void sink_call(void *ctx, size_t index, const char *name, const char *arguments)
{
	struct run *r = ctx;

	/* No tools were offered: a call of them is words, and whoever asked knows no other answer. */
	if (r->mode == RUN_FREE && r->call_words) {
		say_call_words(r);
		return;
	}
	if (r->mode == RUN_FREE) {
		on_text(r, RUN_CONTENT, marker, MARKER_LEN);
		on_text(r, RUN_CONTENT, "{\"name\": \"", 10);
		on_text(r, RUN_CONTENT, name, strlen(name));
		on_text(r, RUN_CONTENT, "\", \"arguments\": ", 16);
		on_text(r, RUN_CONTENT, arguments, strlen(arguments));
		on_text(r, RUN_CONTENT, "}</tool_call>", 13);
		return;
	}
	if (feed_call(r->feed, name, arguments))
		r->n_calls++;
	else
		out_of_memory(r);
}

/*
 * Only without a grammar can a call be malformed. It is not hidden: the text
 * goes out as content, as the model wrote it.
 */
static void sink_bad_call(void *ctx, const char *raw, size_t n, const char *why)
{
	struct run *r = ctx;

	if (r->mode == RUN_FREE && r->call_words)
		say_call_words(r);
	else
		on_text(r, RUN_CONTENT, raw, n);
}

/* Looks for the marker at the end of what was written; bytes after it go to the grammar. */
static int find_marker(struct run *r, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (r->n_tail == MARKER_LEN) {
			memmove(r->tail, r->tail + 1, MARKER_LEN - 1);
			r->n_tail--;
		}
		r->tail[r->n_tail++] = s[i];
		if (r->n_tail == MARKER_LEN && !memcmp(r->tail, marker, MARKER_LEN)) {
			r->in_grammar = true;
			gmatch_restart(r->match);
			return gmatch_accept_bytes(r->match, s + i + 1, n - i - 1);
		}
	}
	return 0;
}

static bool on_token(void *arg, const struct gen_token *t)
{
	struct run *r = arg;
	size_t n = 0;
	const char *bytes = tok_bytes(r->s->tok, t->id, &n);
	int rc = 0;

	if (r->n_tokens < r->cap_tokens)
		r->tokens[r->n_tokens++] = t->id;
	if (r->left)
		r->left--;
	if (r->logprobs && t->pick && !feed_logprob(r->feed, t->id, t->pick))
		out_of_memory(r);
	if (r->thinking && n == 8 && bytes && !memcmp(bytes, "</think>", 8)) {
		r->thinking = false;
		r->in_grammar = r->mode == RUN_WHOLE;
	} else if (r->match && !r->thinking) {
		if (r->in_grammar)
			rc = gmatch_accept(r->match, (uint32_t)t->id);
		else if (r->mode == RUN_LAZY && bytes)
			rc = find_marker(r, bytes, n);
		if (rc) {
			err_set(&r->fail, rc, "the model left its grammar at token %d", t->id);
			return true;
		}
	}
	if (r->parser) {
		if (chat_parser_push(r->parser, t->text, t->len))
			out_of_memory(r);
	} else {
		on_text(r, RUN_CONTENT, t->text, t->len);
	}
	return r->fail.code != 0;
}

static bool on_allows(void *arg, int32_t token)
{
	struct run *r = arg;

	/* Outside a grammar, or where the mask is made already, the mask is next to nothing. */
	if (!r->match || !r->in_grammar || token < 0)
		return r->match && r->in_grammar && !gmatch_mask_known(r->match);
	if (r->no_calls && token == r->s->tool_call_id)
		return false;
	return gmatch_allows(r->match, (uint32_t)token, r->left);
}

static int on_mask(void *arg, uint32_t *mask, uint32_t vocab)
{
	struct run *r = arg;
	uint32_t words = (vocab + 31) / 32, mine = (gvocab_size(r->s->vocab) + 31) / 32;
	const uint32_t *allowed;

	if (r->no_calls && r->s->tool_call_id >= 0)
		mask[r->s->tool_call_id / 32] &= ~(1u << (r->s->tool_call_id % 32));
	if (!r->match || !r->in_grammar)
		return 0;
	allowed = gmatch_mask_within(r->match, r->left);
	if (!allowed) {
		err_set(&r->fail, gmatch_status(r->match), "the grammar's limits were reached; the answer ends here");
		return gmatch_status(r->match) ? gmatch_status(r->match) : -EINVAL;
	}
	for (uint32_t i = 0; i < words; i++)
		mask[i] &= i < mine ? allowed[i] : 0;
	return 0;
}

/*
 * What the grammar leaves no choice about, cut into tokens as the tokenizer
 * would. The engine checks each; a wrong one costs time and nothing else.
 */
static uint32_t on_force(void *arg, int32_t *ret_token, uint32_t cap)
{
	struct run *r = arg;
	struct tok_ids ids = { 0 };
	char text[128];
	uint32_t n = 0;
	size_t len;

	if (!r->in_grammar || r->thinking)
		return 0;
	len = gmatch_likely(r->match, text, sizeof(text));
	if (!len || tok_encode(r->s->tok, text, len, TOK_SPECIAL, NULL, 0, &ids))
		return 0;
	while (n < cap && n < ids.n) {
		ret_token[n] = ids.id[n];
		n++;
	}
	tok_ids_free(&ids);
	return n;
}

static bool on_no_stop(void *arg)
{
	const struct run *r = arg;

	return r->in_grammar && !r->thinking;
}

/* Gives the session back; once, by whoever comes first: the request's thread, or another that needs the session. */
static void settle(void *arg)
{
	struct run *r = arg;

	pthread_mutex_lock(&r->settling);
	if (!r->settled && r->gen) {
		gen_free(r->gen);          /* cancels, waits for on_done */
		service_count(r->s, &r->result);
		r->s->tool_calls += r->n_calls;
	}
	if (!r->settled && r->charged)
		tenants_uncharge(r->s->tenants, r->tenant, r->kv);
	if (!r->settled && r->slot)
		service_give(r->s, r->slot, r->gen ? r->tokens : NULL, r->n_tokens);
	if (!r->settled && r->entered)
		keyring_leave(r->s->keys, r->who, r->kv, r->result.n_prompt, r->result.n_out);
	r->settled = true;
	pthread_mutex_unlock(&r->settling);
}

static void on_done(void *arg, const struct gen_result *g)
{
	struct run *r = arg;

	if (r->parser)
		chat_parser_end(r->parser);
	r->result = *g;
	if (r->fail.code) {
		r->result.finish = GEN_ERROR;
		r->result.err = r->fail;
	} else if (g->finish == GEN_CANCELLED) {
		if (atomic_load(&r->stopped))
			err_set(&r->result.err, -ESHUTDOWN, "the server is stopping");
		else
			err_set(&r->result.err, -ECANCELED, "the answer was cancelled");
	}
	feed_done(r->feed);
	/* The session is of no more use to this request, however long its client takes to read. */
	service_done(r->s, r->slot, settle, r);
}

/* -- the request's thread ------------------------------------------------------------ */

int run_start(const struct run_opts *o, struct run **ret, struct hearth_err *err)
{
	struct run *r = calloc(1, sizeof(*r));
	struct gen_request q;
	struct chat_sink sink;
	const uint32_t *mask;
	uint32_t need, i;
	int rc;

	if (!r)
		return err_set(err, -ENOMEM, "out of memory");
	r->s = o->service;
	r->who = o->who;
	r->mode = o->mode;
	r->no_calls = o->no_calls;
	r->call_words = o->call_words;
	r->raw = o->raw;
	r->left = o->max_tokens;
	r->whole = o->whole;
	r->thinking = o->thinking;
	r->in_grammar = o->mode == RUN_WHOLE && !o->thinking;
	r->logprobs = o->sample.logprobs;
	pthread_mutex_init(&r->settling, NULL);
	r->cap_tokens = o->n_tokens + o->max_tokens + 1;
	r->tokens = malloc(r->cap_tokens * sizeof(*r->tokens));
	r->feed = feed_new();
	rc = -ENOMEM;
	if (!r->tokens || !r->feed)
		goto fail;
	memcpy(r->tokens, o->tokens, o->n_tokens * sizeof(*r->tokens));
	r->n_tokens = o->n_tokens;
	if (o->grammar) {
		rc = grammars_match(r->s->grammars, o->grammar, &r->match);
		if (!rc)
			r->grammar = grammar_ref(o->grammar);
		/* The first mask is worked out here, not by the engine's thread; and what it cannot be had for is refused. */
		if (!rc)
			rc = gmatch_probe(r->match, PROBE);
		mask = !rc && r->in_grammar ? gmatch_mask(r->match) : NULL;
		if (!rc && r->in_grammar && !mask)
			rc = gmatch_status(r->match);
		for (i = 0; mask && i < (gvocab_size(r->s->vocab) + 31) / 32 && !mask[i]; i++)
			;
		if (mask && i == (gvocab_size(r->s->vocab) + 31) / 32) {
			rc = err_set(err, -EINVAL, "the schema or grammar admits no text that could be completed");
			goto fail_said;
		}
		if (rc == -E2BIG) {
			rc = err_set(err, -EINVAL, "the schema or grammar can go on in more ways than are followed at once; a pattern or an anyOf in it is too ambiguous");
			goto fail_said;
		}
		if (rc)
			goto fail;
		need = gmatch_tokens_to_end(r->match);
		if (r->in_grammar && need != UINT32_MAX && need >= o->max_tokens) {
			rc = err_set(err, -EINVAL, "the shortest answer that the schema or grammar admits takes %u tokens and one to end it; %u may be made",
				     need, o->max_tokens);
			goto fail_said;
		}
	}
	if (!o->raw && r->s->chat) {
		sink = (struct chat_sink){ .content = sink_content, .reasoning = sink_reasoning, .call = sink_call,
					   .bad_call = sink_bad_call, .ctx = r };
		rc = chat_parser_open(r->s->chat, chat_prompt_thinks(r->s->chat, NULL), &sink, &r->parser);
		if (rc)
			goto fail;
	}
	r->kv = service_kv_bytes(r->s, o->n_tokens + o->max_tokens);
	rc = keyring_enter(r->s->keys, o->who, r->kv, err);
	if (rc)
		goto fail_said;
	r->entered = true;
	rc = service_take(r->s, o->tokens, o->n_tokens, o->prio, o->conversation, o->wait_ms, o->gone, o->gone_arg, &r->slot, err);
	if (rc) {
		r->slot = NULL;
		goto fail_said;
	}
	/* By what runs, not by what waits: so it is asked when the session is there. */
	r->tenant = keyring_limits(r->s->keys, o->who).tenant;
	do {
		rc = tenants_charge(r->s->tenants, r->tenant, r->kv, err);
	} while (rc == -EDQUOT && service_settle(r->s));   /* what is over and unread holds nobody up */
	if (rc)
		goto fail_said;
	r->charged = true;
	/* Off is off: what the session still holds of its last request too. */
	if (!r->s->cfg->cache_on)
		session_rewind(slot_session(r->slot), 0);
	gen_defaults(&q);
	q.tokens = o->tokens;
	q.n_tokens = (uint32_t)o->n_tokens;
	q.max_tokens = o->max_tokens;
	q.sample = o->sample;
	q.stop = o->stop;
	q.n_stop = o->n_stop;
	if (r->match)
		q.no_stop = on_no_stop;
	q.prio = o->prio;
	q.cache_key = o->cache_key;
	q.pin_tokens = o->pin_tokens;
	q.pin_seconds = o->pin_seconds;
	if (r->match || r->no_calls) {
		q.mask = on_mask;
		q.allows = on_allows;
		q.mask_arg = r;
	}
	if (r->match && r->s->cfg->jump_forward)
		q.force = on_force;
	q.on_token = on_token;
	q.on_done = on_done;
	q.arg = r;
	rc = gen_start(slot_session(r->slot), &q, &r->gen, err);
	if (rc)
		goto fail_said;
	*ret = r;
	return 0;
fail:
	err_set(err, rc, "out of memory");
fail_said:
	run_free(r);
	return rc;
}

void run_rest(struct run *r, int ms)
{
	feed_rest(r->feed, ms);
}

const struct run_event *run_next(struct run *r, int wait_ms)
{
	/* Who waits for an answer that a stop cuts short is told; a closed connection alone would say nothing. */
	if (atomic_load(&r->s->stopping) && !atomic_exchange(&r->stopped, true))
		run_cancel(r);
	return feed_next(r->feed, wait_ms, r->whole);
}

void run_cancel(struct run *r)
{
	pthread_mutex_lock(&r->settling);
	if (!r->settled)           /* else the session works for another */
		gen_cancel(r->gen);
	pthread_mutex_unlock(&r->settling);
}

const struct gen_result *run_result(const struct run *r)
{
	return &r->result;
}

uint32_t run_calls(const struct run *r)
{
	return r->n_calls;
}

void run_free(struct run *r)
{
	if (!r)
		return;
	settle(r);
	if (r->slot)
		service_settled(r->s, r->slot, r);
	feed_free(r->feed);
	chat_parser_free(r->parser);
	if (r->grammar)
		grammars_give(r->s->grammars, r->grammar, r->match);
	grammar_unref(r->grammar);
	pthread_mutex_destroy(&r->settling);
	free(r->tokens);
	free(r);
}
