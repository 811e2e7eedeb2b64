// SPDX-License-Identifier: MIT
#include "voice/answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mono.h"

#define RETRY_TOKENS 96          /* two calls and their slots */

static bool on_token(void *arg, const struct gen_token *t)
{
	struct sched *s = arg;
	struct mail m = { .kind = MAIL_TEXT, .id = s->answer.id, .ns = (int64_t)t->t_ns };
	size_t at = 0;

	/* A token without text of its own still tells the time of the first one. */
	do {
		m.len = t->len - at < sizeof(m.text) ? t->len - at : sizeof(m.text);
		memcpy(m.text, t->text + at, m.len);
		at += m.len;
		mailbox_put(s->box, &m);
	} while (at < t->len);
	return false;
}

static void on_generated(void *arg, const struct gen_result *r)
{
	struct sched *s = arg;
	struct mail m = { .kind = MAIL_GENERATED, .id = s->answer.id, .ns = mono_ns() };

	m.gen = *r;
	mailbox_put(s->box, &m);
}

/* -- life -- */

/* The tokens of the conversation so far; @open: up to the assistant's turn. */
static int encode(struct sched *s, bool open, struct tok_ids *ids, struct hearth_err *err)
{
	struct chat_opts o = { .tools = talk_tools(s->parts.talk), .thinking = false, .no_prompt = !open };
	const struct chat_msg *msgs;
	size_t n;

	msgs = talk_msgs(s->parts.talk, &n);
	return chat_encode(s->parts.chat, engine_tokenizer(s->parts.engine), msgs, n, &o, ids, err);
}

/* Reads the conversation so far into the cache, and waits for it. */
int answer_warm(struct sched *s, struct hearth_err *err)
{
	struct tok_ids ids = { 0 };
	struct gen_request q;
	struct gen_result res;
	struct gen *g = NULL;
	int64_t from = mono_ns();
	int ret = encode(s, false, &ids, err);

	gen_defaults(&q);
	q.tokens = ids.id;
	q.n_tokens = (uint32_t)ids.n;
	q.max_tokens = 0;
	q.prio = GEN_VOICE;
	if (!ret)
		ret = gen_start(s->session, &q, &g, err);
	tok_ids_free(&ids);
	if (ret)
		return ret;
	gen_wait(g, -1, &res);
	gen_free(g);
	if (s->trace)
		trace_span(s->trace, "llm", "prompt ahead", from, mono_ns());
	if (res.finish == GEN_ERROR || res.finish == GEN_MEMORY)
		return err_set(err, res.err.code ? res.err.code : -EIO, "%s", res.err.text[0] ? res.err.text : "the model ran out of memory");
	return 0;
}

void answer_forget_calls(struct sched *s)
{
	while (s->n_calls) {
		s->n_calls--;
		free((char *)s->calls[s->n_calls].name);
		free((char *)s->calls[s->n_calls].arguments);
		free(s->results[s->n_calls]);
	}
}

/* Drops every turn before this one. false: there is none, or it cannot be done. */
static bool forget(struct sched *s)
{
	size_t n;
	const struct chat_msg *msgs = talk_msgs(s->parts.talk, &n);
	char *user = n && msgs[n - 1].role == CHAT_USER ? strdup(msgs[n - 1].content) : NULL;
	bool done = false;
	int turns;

	if (user && talk_turns(s->parts.talk) > 1) {
		turns = talk_forget(s->parts.talk, &s->r->err);
		if (turns > 0 && !talk_now(s->parts.talk, &s->r->err)) {
			s->mark = talk_len(s->parts.talk);
			done = !talk_user(s->parts.talk, user);
			s->r->forgot += turns - 1;
		}
	}
	free(user);
	return done;
}

/* Starts the model on the conversation as it is. An early answer is only kept until it is committed. */
static int start(struct sched *s, bool committed)
{
	struct answer *a = &s->answer;
	struct tok_ids ids = { 0 };
	struct gen_request q;
	int ret, tries;

	for (tries = 0;; tries++) {
		gen_defaults(&q);
		ids.n = 0;
		ret = encode(s, true, &ids, &s->r->err);
		if (ret)
			break;
		if (!tries && s->rounds == 0 && ids.n + s->opts.max_tokens > engine_the_plan(s->parts.engine)->ctx && forget(s)) {
			/* No room for a whole answer: the oldest turns go, and that is said. */
			ids.n = 0;
			continue;
		}
		q.tokens = ids.id;
		q.n_tokens = (uint32_t)ids.n;
		q.max_tokens = s->opts.max_tokens;
		/* What it says of a failure is not spoken: only another call counts. */
		if (s->call_failed && q.max_tokens > RETRY_TOKENS)
			q.max_tokens = RETRY_TOKENS;
		q.sample = s->opts.sample;
		q.prio = GEN_VOICE;
		q.on_token = on_token;
		q.on_done = on_generated;
		q.arg = s;
		a->id = ++s->next_gen;
		a->committed = committed;
		a->done = false;
		a->n_held = 0;
		a->first_ns = 0;
		a->any_content = false;
		s->n_content = 0;
		chat_parser_reset(s->parser);
		ret = gen_start(s->session, &q, &a->gen, &s->r->err);
		break;
	}
	tok_ids_free(&ids);
	if (ret)
		return sched_fail(s, ret);
	a->running = true;
	return 0;
}

/* Throws an early answer away, and the user's message with it. */
void answer_drop(struct sched *s)
{
	struct answer *a = &s->answer;

	if (a->gen) {
		int64_t from = mono_ns();

		gen_free(a->gen);
		a->gen = NULL;
		trace_span(s->trace, "llm", "thrown away", from, mono_ns());
		s->r->discarded++;
	} else if (a->running) {
		s->r->discarded++;
	}
	a->running = false;
	a->id = 0; /* late mail is nobody's */
	a->n_held = 0;
	if (talk_len(s->parts.talk) > s->mark && talk_cut(s->parts.talk, s->mark)) {
		err_set(&s->r->err, -ENOMEM, "out of memory");
		sched_fail(s, -ENOMEM);
	}
}

static int grow(char **buf, size_t *room, size_t want)
{
	if (want > *room) {
		size_t size = want * 2 + 256;
		char *b = realloc(*buf, size);

		if (!b)
			return -ENOMEM;
		*buf = b;
		*room = size;
	}
	return 0;
}

/* -- what the model says, committed -- */

int answer_phrase(void *arg, const struct chunk *chunk)
{
	static const char *const why[] = { "sentence", "clause", "cap", "time", "end" };
	struct sched *s = arg;
	int ret;

	if (s->said == 0)
		trace_mark(s->trace, TRACE_FIRST_PHRASE, mono_ns());
	json_array_append_new(s->r->phrases, json_pack("{s:s, s:s, s:s}", "text", chunk->text, "spoken", chunk->spoken, "why", why[chunk->why]));
	if (!s->parts.tts)
		return 0;
	ret = tts_say(s->parts.tts, s->said, chunk->spoken, -1);
	if (ret) {
		err_set(&s->r->err, ret, "the speech engine did not take \"%.60s\": %s", chunk->spoken, strerror(-ret));
		return sched_fail(s, ret);
	}
	s->said++;
	return 0;
}

void answer_speak(struct sched *s, const char *text, size_t n)
{
	size_t have = s->r->reply ? strlen(s->r->reply) : 0;
	char *reply = realloc(s->r->reply, have + n + 1);

	if (!reply) {
		err_set(&s->r->err, -ENOMEM, "out of memory");
		sched_fail(s, -ENOMEM);
		return;
	}
	memcpy(reply + have, text, n);
	reply[have + n] = 0;
	s->r->reply = reply;
	chunker_push(s->chunker, text, n, mono_ns());
}

static void content_sink(void *ctx, const char *text, size_t n)
{
	struct sched *s = ctx;
	struct answer *a = &s->answer;
	size_t i;

	/* After a call that failed its words are not to be trusted: end_reply() has its own. */
	if (s->call_failed)
		return;
	if (grow(&s->content, &s->content_room, s->n_content + n + 1)) {
		err_set(&s->r->err, -ENOMEM, "out of memory");
		sched_fail(s, -ENOMEM);
		return;
	}
	memcpy(s->content + s->n_content, text, n);
	s->n_content += n;
	s->content[s->n_content] = 0;
	for (i = 0; i < n && !a->any_content; i++)
		a->any_content = text[i] != ' ' && text[i] != '\n';
	if (a->any_content && trace_at(s->trace, TRACE_REPLY_TOKEN, &(int64_t){ 0 }))
		trace_mark(s->trace, TRACE_REPLY_TOKEN, mono_ns());
	answer_speak(s, text, n);
}

/* A tool call is whole, in a committed answer: the home carries it out. */
static void call_sink(void *ctx, size_t index, const char *name, const char *arguments)
{
	struct sched *s = ctx;
	json_t *args = json_loads(arguments, 0, NULL), *result = NULL, *changes = NULL;
	struct hearth_err err;
	int64_t from = mono_ns();
	char *text;

	if (trace_at(s->trace, TRACE_TOOL_CALL, &(int64_t){ 0 }))
		trace_mark(s->trace, TRACE_TOOL_CALL, from);
	if (s->n_calls == CALLS_MAX) {
		err_set(&s->r->err, -E2BIG, "the model asked for more than %d tool calls at once", CALLS_MAX);
		sched_fail(s, -E2BIG);
		json_decref(args);
		return;
	}
	if (!args || home_call(s->parts.home, name, args, &result, &changes, &err)) {
		/* The model reads what was wrong, and can do better. */
		result = json_pack("{s:b, s:s}", "success", 0, "error", "the arguments are no JSON object");
		changes = json_array();
	}
	/* What counts is how the calls of the last answer went; the first that failed is told of. */
	if (!s->n_calls)
		s->call_failed = false;
	if (!json_is_true(json_object_get(result, "success")) && !s->call_failed) {
		s->call_failed = true;
		home_sorry(result, s->sorry, sizeof(s->sorry));
	}
	text = json_dumps(result, JSON_COMPACT);
	s->calls[s->n_calls].name = strdup(name);
	s->calls[s->n_calls].arguments = strdup(arguments);
	s->results[s->n_calls] = text;
	s->n_calls++;
	json_array_append_new(s->r->calls, json_pack("{s:s, s:o, s:o, s:o}", "name", name, "arguments", args ? args : json_null(),
						     "result", result, "changes", changes));
	if (trace_at(s->trace, TRACE_TOOL_DONE, &(int64_t){ 0 }))
		trace_mark(s->trace, TRACE_TOOL_DONE, mono_ns());
	trace_span(s->trace, "home", "call", from, mono_ns());
}

static void bad_call_sink(void *ctx, const char *raw, size_t n, const char *why)
{
	struct sched *s = ctx;

	s->bad_call = true;
	json_array_append_new(s->r->calls, json_pack("{s:n, s:s%, s:s}", "name", "raw", raw, n, "error", why));
}

static void digest(struct sched *s, const char *text, size_t n)
{
	if (chat_parser_push(s->parser, text, n)) {
		err_set(&s->r->err, -ENOMEM, "out of memory");
		sched_fail(s, -ENOMEM);
	}
}

static void note_times(struct sched *s, const struct gen_result *g)
{
	if (trace_at(s->trace, TRACE_PREFILL_START, &(int64_t){ 0 })) {
		if (g->t_prefill)
			trace_mark(s->trace, TRACE_PREFILL_START, (int64_t)g->t_prefill);
		if (g->t_prefilled)
			trace_mark(s->trace, TRACE_PREFILL_END, (int64_t)g->t_prefilled);
		if (g->t_first)
			trace_mark(s->trace, TRACE_FIRST_TOKEN, (int64_t)g->t_first);
	}
	if (g->t_prefill && g->t_prefilled)
		trace_span(s->trace, "llm", "prompt", (int64_t)g->t_prefill, (int64_t)g->t_prefilled);
	if (g->t_first && g->t_last)
		trace_span(s->trace, "llm", s->n_calls ? "tool call" : "reply", (int64_t)g->t_first, (int64_t)g->t_last);
}

/* The model is done with the turn: what is left is spoken. */
static void end_reply(struct sched *s)
{
	const char *own = NULL;

	if (s->call_failed || !s->r->reply || strspn(s->r->reply, " \n\t") == strlen(s->r->reply)) {
		const bool said = s->r->reply && s->r->reply[strspn(s->r->reply, " \n\t")];

		if (said) {
			answer_speak(s, " ", 1);
		} else {
			free(s->r->reply);
			s->r->reply = NULL;
		}
		if (s->call_failed)
			own = s->sorry;
		else if (s->bad_call)
			own = "Sorry, that went wrong.";
		else if (!json_array_size(s->r->calls))
			own = "Sorry, I have no answer to that.";
		else
			own = "Done.";
		s->r->fallback = true;
		answer_speak(s, own, strlen(own));
	}
	if (!s->failed)
		chunker_finish(s->chunker);
}

/* A committed answer has ended and all its text is digested. *ret_more: another one was started. */
void answer_finish(struct sched *s, bool *ret_more)
{
	const struct gen_result *g = &s->answer.result;
	size_t i;

	*ret_more = false;
	if (chat_parser_end(s->parser) || s->failed)
		return;
	note_times(s, g);
	s->r->finish = g->finish;
	s->r->n_prompt += g->n_prompt;
	s->r->n_cached += g->n_cached;
	s->r->n_out += g->n_out;
	s->answer.running = false;
	if (g->finish == GEN_ERROR || g->finish == GEN_MEMORY) {
		err_set(&s->r->err, g->err.code ? g->err.code : -ENOMEM, "the model stopped: %s", g->err.text[0] ? g->err.text : gen_finish_name(g->finish));
		sched_fail(s, s->r->err.code);
		return;
	}
	if (talk_assistant(s->parts.talk, s->call_failed && !s->n_calls ? s->sorry : s->n_content ? s->content : "", s->calls, s->n_calls))
		goto memory;
	for (i = 0; i < s->n_calls; i++)
		if (talk_tool(s->parts.talk, s->results[i]))
			goto memory;
	i = s->n_calls;
	answer_forget_calls(s);
	if (i && g->finish == GEN_STOP && ++s->rounds <= s->opts.max_rounds) {
		*ret_more = !start(s, true);
		return;
	}
	end_reply(s);
	return;
memory:
	err_set(&s->r->err, -ENOMEM, "out of memory");
	sched_fail(s, -ENOMEM);
}

/* The early answer counts from now on. */
void answer_commit(struct sched *s)
{
	struct answer *a = &s->answer;

	a->committed = true;
	s->r->early_used = a->n_held > 0 || a->first_ns;
	if (a->n_held)
		digest(s, a->held, a->n_held);
	a->n_held = 0;
}

/* -- the turn -- */

void answer_text(struct sched *s, const struct mail *m)
{
	struct answer *a = &s->answer;

	if (m->id != a->id)
		return;
	if (!a->first_ns)
		a->first_ns = m->ns;
	if (a->committed) {
		digest(s, m->text, m->len);
		return;
	}
	if (grow(&a->held, &a->room, a->n_held + m->len)) {
		err_set(&s->r->err, -ENOMEM, "out of memory");
		sched_fail(s, -ENOMEM);
		return;
	}
	memcpy(a->held + a->n_held, m->text, m->len);
	a->n_held += m->len;
}

/* The transcript is there, early or not. */
void answer_command(struct sched *s)
{
	if (s->answer.running || s->answer.done)
		return;
	if (talk_user(s->parts.talk, s->final.text)) {
		err_set(&s->r->err, -ENOMEM, "out of memory");
		sched_fail(s, -ENOMEM);
		return;
	}
	start(s, s->decided);
}

struct chat_sink answer_sink(struct sched *s)
{
	return (struct chat_sink){ .content = content_sink, .call = call_sink, .bad_call = bad_call_sink, .ctx = s };
}
