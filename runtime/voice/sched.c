// SPDX-License-Identifier: MIT
#include "voice/sched.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mono.h"
#include "voice/listen.h"
#include "voice/mailbox.h"
#include "voice/mouth.h"

#define BOX_ROOM     1024
#define RING_SAMPLES (4 * 16384)  /* four seconds of answer between engine and card */
#define FINAL_WAIT_NS INT64_C(60000000000) /* a recogniser that takes longer is broken */
#define CALLS_MAX    16           /* tool calls in one answer */

/* One generation of the model. */
struct answer {
	struct gen *gen;
	uint64_t id;
	bool running;
	bool committed;        /* its text counts; else it is only kept */
	bool done;
	struct gen_result result;
	char *held;            /* text of an early answer */
	size_t n_held, room;
	int64_t first_ns;      /* its first token, 0: none yet */
	bool any_content;
};

struct sched {
	struct sched_opts opts;
	struct stt_events stt_events;
	struct tts_events tts_events;
	struct sched_parts parts;
	struct session *session;
	struct mailbox *box;
	struct listen *listen;
	struct mouth *mouth;
	struct chunker *chunker;
	struct chat_parser *parser;
	atomic_bool stopped;
	uint64_t next_utterance, next_gen, next_phrase;

	/* the turn */
	struct turn_result *r;
	struct trace *trace;
	atomic_bool speaking;      /* the mouth is open */
	uint64_t utterance;        /* the one that counts */
	bool decided;              /* the end of the turn */
	bool too_long;             /* the utterance had to be ended by force */
	bool have_final;
	struct stt_result final;
	int64_t stt_from;
	size_t mark;               /* messages before this turn's user */
	bool cold;                 /* messages of this turn are not in the cache yet */
	struct answer answer;
	uint32_t rounds;
	uint64_t said, spoken;     /* phrases given to and done by the engine */
	int64_t tts_from;          /* when the engine began the running phrase; its own thread's */
	char *content;             /* of the running answer */
	size_t n_content, content_room;
	struct chat_call calls[CALLS_MAX];
	char *results[CALLS_MAX];
	size_t n_calls;
	bool call_failed;
	bool bad_call;
	int failed;                /* -errno that ends the turn; r->err says why */
};

void sched_defaults(struct sched_opts *o)
{
	memset(o, 0, sizeof(*o));
	o->paced = true;
	o->adapt = true;
	o->early = true;
	o->early_ms = 64;
	o->patience_ms = 30000;
	o->longest_ms = 20000;
	o->max_tokens = 256;
	o->max_rounds = 4;
	chunker_defaults(&o->chunk);
	sampler_defaults(&o->sample);
}

const char *turn_end_name(enum turn_end end)
{
	static const char *const names[] = { "answered", "heard nothing", "not a command", "cancelled", "failed" };

	return (unsigned int)end < 5 ? names[end] : "?";
}

void turn_result_free(struct turn_result *r)
{
	free(r->reply);
	json_decref(r->calls);
	json_decref(r->phrases);
	trace_free(r->trace);
	memset(r, 0, sizeof(*r));
}

/* -- what the engines' threads say -- */

static void on_partial(void *ctx, const struct stt_partial *p)
{
	struct sched *s = ctx;
	struct mail m = { .kind = MAIL_PARTIAL, .id = p->id, .ns = mono_ns() };

	if (p->asked && s->opts.adapt)
		listen_end_wait(s->listen, stt_end_wait_ms(p->ends));
	if (*p->text)
		mailbox_put(s->box, &m);
}

static void on_final(void *ctx, const struct stt_result *r)
{
	struct sched *s = ctx;
	struct mail m = { .kind = MAIL_FINAL, .id = r->id, .ns = r->final_ns };

	m.stt = *r;
	mailbox_put(s->box, &m);
}

static int on_audio(void *ctx, uint64_t id, const int16_t *pcm, size_t n, bool first)
{
	struct sched *s = ctx;

	if (!atomic_load(&s->speaking))
		return 1;
	if (id == 0 && first)
		trace_mark(s->trace, TRACE_FIRST_AUDIO, mono_ns());
	return mouth_say(s->mouth, pcm, n);
}

static void on_spoken(void *ctx, uint64_t id, int status, uint64_t samples)
{
	struct sched *s = ctx;
	struct mail m = { .kind = MAIL_SPOKEN, .id = id, .status = status, .ns = mono_ns() };

	mailbox_put(s->box, &m);
}

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

static struct listen_opts listen_opts_of(const struct sched_opts *o)
{
	return (struct listen_opts){ .paced = o->paced, .early = o->early, .early_ms = o->early_ms,
				     .patience_ms = o->patience_ms, .longest_ms = o->longest_ms };
}

static int on_phrase(void *arg, const struct chunk *chunk);

int sched_new(const struct sched_opts *opts, struct sched **ret_sched, struct hearth_err *err)
{
	struct sched *s = calloc(1, sizeof(*s));
	struct listen_opts lo = listen_opts_of(opts);

	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	s->opts = *opts;
	s->stt_events = (struct stt_events){ .partial = on_partial, .final = on_final, .ctx = s };
	s->tts_events = (struct tts_events){ .audio = on_audio, .done = on_spoken, .ctx = s };
	if (mailbox_new(BOX_ROOM, &s->box) || listen_new(&lo, &s->listen) || mouth_new(RING_SAMPLES, &s->mouth) ||
	    chunker_new(&opts->chunk, on_phrase, s, &s->chunker)) {
		sched_free(s);
		return err_set(err, -ENOMEM, "out of memory");
	}
	*ret_sched = s;
	return 0;
}

void sched_free(struct sched *s)
{
	if (!s)
		return;
	if (s->answer.gen)
		gen_free(s->answer.gen);
	session_close(s->session);
	free(s->answer.held);
	free(s->content);
	chat_parser_free(s->parser);
	chunker_free(s->chunker);
	mouth_free(s->mouth);
	listen_free(s->listen);
	mailbox_free(s->box);
	free(s);
}

size_t sched_predict(const struct sched_opts *o)
{
	struct listen_opts lo = listen_opts_of(o);

	return sizeof(struct sched) + BOX_ROOM * sizeof(struct mail) + ring_footprint(sizeof(int16_t), RING_SAMPLES) + listen_bytes(&lo);
}

const struct stt_events *sched_stt_events(struct sched *s) { return &s->stt_events; }
const struct tts_events *sched_tts_events(struct sched *s) { return &s->tts_events; }

/* -- the model -- */

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
static int warm(struct sched *s, struct hearth_err *err)
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

static void content_sink(void *ctx, const char *text, size_t n);
static void call_sink(void *ctx, size_t index, const char *name, const char *arguments);
static void bad_call_sink(void *ctx, const char *raw, size_t n, const char *why);

int sched_attach(struct sched *s, const struct sched_parts *parts, struct hearth_err *err)
{
	struct chat_sink sink = { .content = content_sink, .call = call_sink, .bad_call = bad_call_sink, .ctx = s };
	int ret;

	s->parts = *parts;
	ret = chat_parser_open(parts->chat, chat_prompt_thinks(parts->chat, NULL), &sink, &s->parser);
	if (ret)
		return err_set(err, ret, "out of memory");
	ret = session_open(parts->engine, &s->session, err);
	if (!ret)
		ret = talk_now(parts->talk, err);
	return ret ? ret : warm(s, err);
}

void sched_set_home(struct sched *s, struct home *home)
{
	s->parts.home = home;
}

int sched_restart(struct sched *s, struct talk *talk, struct hearth_err *err)
{
	int ret;

	s->parts.talk = talk;
	ret = talk_now(talk, err);
	return ret ? ret : warm(s, err);
}

static int fail(struct sched *s, int code)
{
	if (!s->failed) {
		s->failed = code;
		s->r->err.code = code;
	}
	return code;
}

static void forget_calls(struct sched *s)
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
static int start_answer(struct sched *s, bool committed)
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
		return fail(s, ret);
	a->running = true;
	return 0;
}

/* Throws an early answer away, and the user's message with it. */
static void drop_answer(struct sched *s)
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
		fail(s, -ENOMEM);
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

static int on_phrase(void *arg, const struct chunk *chunk)
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
		return fail(s, ret);
	}
	s->said++;
	return 0;
}

static void speak(struct sched *s, const char *text, size_t n)
{
	size_t have = s->r->reply ? strlen(s->r->reply) : 0;
	char *reply = realloc(s->r->reply, have + n + 1);

	if (!reply) {
		err_set(&s->r->err, -ENOMEM, "out of memory");
		fail(s, -ENOMEM);
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

	if (grow(&s->content, &s->content_room, s->n_content + n + 1)) {
		err_set(&s->r->err, -ENOMEM, "out of memory");
		fail(s, -ENOMEM);
		return;
	}
	memcpy(s->content + s->n_content, text, n);
	s->n_content += n;
	s->content[s->n_content] = 0;
	for (i = 0; i < n && !a->any_content; i++)
		a->any_content = text[i] != ' ' && text[i] != '\n';
	if (a->any_content && trace_at(s->trace, TRACE_REPLY_TOKEN, &(int64_t){ 0 }))
		trace_mark(s->trace, TRACE_REPLY_TOKEN, mono_ns());
	speak(s, text, n);
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
		fail(s, -E2BIG);
		json_decref(args);
		return;
	}
	if (!args || home_call(s->parts.home, name, args, &result, &changes, &err)) {
		/* The model reads what was wrong, and can do better. */
		result = json_pack("{s:b, s:s}", "success", 0, "error", "the arguments are no JSON object");
		changes = json_array();
	}
	if (!json_is_true(json_object_get(result, "success")))
		s->call_failed = true;
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
		fail(s, -ENOMEM);
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

	if (!s->r->reply || strspn(s->r->reply, " \n\t") == strlen(s->r->reply)) {
		free(s->r->reply);
		s->r->reply = NULL;
		if (s->bad_call)
			own = "Sorry, that went wrong.";
		else if (!json_array_size(s->r->calls))
			own = "Sorry, I have no answer to that.";
		else
			own = s->call_failed ? "Sorry, that did not work." : "Done.";
		s->r->fallback = true;
		speak(s, own, strlen(own));
	}
	if (!s->failed)
		chunker_finish(s->chunker);
}

/* A committed answer has ended and all its text is digested. *ret_more: another one was started. */
static void finish_answer(struct sched *s, bool *ret_more)
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
		fail(s, s->r->err.code);
		return;
	}
	if (talk_assistant(s->parts.talk, s->n_content ? s->content : "", s->calls, s->n_calls))
		goto memory;
	for (i = 0; i < s->n_calls; i++)
		if (talk_tool(s->parts.talk, s->results[i]))
			goto memory;
	i = s->n_calls;
	forget_calls(s);
	if (i && g->finish == GEN_STOP && ++s->rounds <= s->opts.max_rounds) {
		*ret_more = !start_answer(s, true);
		return;
	}
	end_reply(s);
	return;
memory:
	err_set(&s->r->err, -ENOMEM, "out of memory");
	fail(s, -ENOMEM);
}

/* The early answer counts from now on. */
static void commit(struct sched *s)
{
	struct answer *a = &s->answer;

	a->committed = true;
	s->r->early_used = a->n_held > 0 || a->first_ns;
	if (a->n_held)
		digest(s, a->held, a->n_held);
	a->n_held = 0;
}

/* -- the turn -- */

static void on_text(struct sched *s, const struct mail *m)
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
		fail(s, -ENOMEM);
		return;
	}
	memcpy(a->held + a->n_held, m->text, m->len);
	a->n_held += m->len;
}

/* The transcript is there, early or not. */
static void take_command(struct sched *s)
{
	if (s->answer.running || s->answer.done)
		return;
	if (talk_user(s->parts.talk, s->final.text)) {
		err_set(&s->r->err, -ENOMEM, "out of memory");
		fail(s, -ENOMEM);
		return;
	}
	start_answer(s, s->decided);
}

/* Decided and transcribed. true: the turn goes on with the model. */
static bool act(struct sched *s)
{
	trace_mark(s->trace, TRACE_STT_FINAL, s->final.final_ns);
	if (s->stt_from)
		trace_span(s->trace, "stt", "decode", s->stt_from, s->final.final_ns);
	memcpy(s->r->transcript, s->final.text, sizeof(s->r->transcript));
	s->r->score = s->final.score;
	if (s->too_long && s->final.verdict == STT_COMMAND)
		s->final.verdict = STT_REJECTED;
	if (s->final.verdict == STT_COMMAND) {
		if (s->answer.running || s->answer.done)
			commit(s);
		else
			take_command(s);
		return true;
	}
	if (s->final.verdict == STT_REJECTED) {
		static const char sorry[] = "Sorry, I did not understand that.";

		s->r->end = TURN_REJECTED;
		if (s->answer.running || s->answer.done)
			drop_answer(s);
		s->answer.done = false;
		if (s->too_long)
			err_set(&s->r->err, -ENOMSG, "speech went on for more than %u s, which is no command", s->opts.longest_ms / 1000);
		else
			err_set(&s->r->err, -ENOMSG, "what was said is not a command of this home");
		s->r->fallback = true;
		speak(s, sorry, sizeof(sorry) - 1);
		chunker_finish(s->chunker);
		return true;
	}
	if (s->final.verdict == STT_FAILED) {
		s->r->err = s->final.err;
		fail(s, s->final.err.code ? s->final.err.code : -EIO);
	}
	return false;
}

static void forget_speech(struct sched *s)
{
	if (s->answer.running || s->answer.done)
		drop_answer(s);
	s->answer.done = false;
	s->have_final = false;
	s->decided = false;
	trace_unmark(s->trace, TRACE_SPEECH_START);
	trace_unmark(s->trace, TRACE_SPEECH_END);
	trace_unmark(s->trace, TRACE_ENDPOINT);
	trace_unmark(s->trace, TRACE_STT_PARTIAL);
	trace_unmark(s->trace, TRACE_STT_FINAL);
}

/*
 * The loop of a turn. @listening: from sound; else the command is there
 * already. Ends when all is said, or nothing was, or something failed.
 */
static void run(struct sched *s, bool listening)
{
	bool thinking = !listening, ended = false;
	int64_t decided_ns = 0;

	while (!s->failed && !ended) {
		int64_t until = thinking ? chunker_deadline(s->chunker) : s->decided ? decided_ns + FINAL_WAIT_NS : INT64_MAX;
		struct mail m;

		if (atomic_load(&s->stopped)) {
			s->r->end = TURN_CANCELLED;
			return;
		}
		if (!mailbox_get(s->box, until, &m)) {
			if (thinking) {
				chunker_tick(s->chunker, mono_ns());
			} else {
				err_set(&s->r->err, -ETIMEDOUT, "the recogniser gave no transcript within a minute");
				fail(s, -ETIMEDOUT);
			}
			continue;
		}
		switch (m.kind) {
		case MAIL_SPEECH:
			if (s->decided)
				break;
			s->utterance = m.id;
			s->stt_from = mono_ns();
			s->have_final = false;
			trace_mark(s->trace, TRACE_SPEECH_START, m.ns);
			/* While the user speaks there is time to read what is new. */
			if (s->cold && warm(s, &s->r->err))
				fail(s, s->r->err.code);
			s->cold = false;
			break;
		case MAIL_PAUSE:
			break;
		case MAIL_RESUME:
			s->utterance = m.id;
			if (s->have_final || s->answer.running || s->answer.done) {
				if (s->answer.running || s->answer.done)
					drop_answer(s);
				s->answer.done = false;
				s->have_final = false;
			}
			break;
		case MAIL_BLIP:
			forget_speech(s);
			break;
		case MAIL_PARTIAL:
			if (m.id == s->utterance && trace_at(s->trace, TRACE_STT_PARTIAL, &(int64_t){ 0 }))
				trace_mark(s->trace, TRACE_STT_PARTIAL, m.ns);
			break;
		case MAIL_FINAL:
			if (m.id != s->utterance || s->have_final || thinking)
				break;
			s->final = m.stt;
			s->have_final = true;
			if (s->decided)
				goto decide;
			if (s->final.verdict == STT_COMMAND && s->opts.early)
				take_command(s);
			break;
		case MAIL_END:
			s->utterance = m.id;
			s->decided = true;
			s->too_long = m.status != 0;
			decided_ns = mono_ns();
			trace_mark(s->trace, TRACE_SPEECH_END, m.ns);
			trace_mark(s->trace, TRACE_ENDPOINT, m.decided);
			trace_span(s->trace, "audio", "speech", ({ int64_t at = m.ns; trace_at(s->trace, TRACE_SPEECH_START, &at); at; }), m.ns);
			if (!s->have_final)
				break;
decide:
			thinking = act(s);
			if (thinking) {
				bool more = false;

				listen_done(s->listen);
				if (s->r->end == TURN_REJECTED)
					ended = true;
				else if (s->answer.done && s->answer.committed) {
					s->answer.done = false;
					finish_answer(s, &more);
					ended = !more;
				}
			} else if (!s->failed) {
				/* A noise that the detector took for speech: listen on. */
				forget_speech(s);
				listen_on(s->listen);
			}
			break;
		case MAIL_HEARD_ALL:
			if (!thinking && !s->decided) {
				s->r->end = TURN_NOTHING;
				err_set(&s->r->err, -ENODATA, "heard nothing");
				ended = true;
			}
			break;
		case MAIL_SOURCE_FAILED:
			if (!thinking) {
				s->r->err = m.err;
				fail(s, m.status);
			}
			break;
		case MAIL_TEXT:
			on_text(s, &m);
			break;
		case MAIL_GENERATED:
			if (m.id != s->answer.id)
				break;
			s->answer.result = m.gen;
			gen_free(s->answer.gen);
			s->answer.gen = NULL;
			s->answer.running = false;
			if (s->answer.committed) {
				bool more;

				finish_answer(s, &more);
				ended = !more;
			} else {
				s->answer.done = true;
			}
			break;
		case MAIL_SPOKEN:
			s->spoken++;
			break;
		case MAIL_STOP:
			s->r->end = TURN_CANCELLED;
			return;
		}
	}
	/* All text is with the speech engine: wait until it is said. */
	while (!s->failed && s->spoken < s->said) {
		struct mail m;

		mailbox_get(s->box, INT64_MAX, &m);
		if (m.kind == MAIL_STOP || atomic_load(&s->stopped)) {
			s->r->end = TURN_CANCELLED;
			return;
		}
		if (m.kind == MAIL_SPOKEN) {
			s->spoken++;
			if (m.status && m.status != -ECANCELED) {
				err_set(&s->r->err, m.status, "the speech engine failed: %s", strerror(-m.status));
				fail(s, m.status);
			} else if (m.status) {
				break; /* the mouth failed; it says why */
			}
		}
	}
}

static int turn(struct sched *s, struct audio_in *in, const char *text, const struct sched_outs *outs,
		struct turn_result *ret_result, struct hearth_err *err)
{
	struct turn_result r = { .end = TURN_ANSWERED, .finish = GEN_RUNNING, .unheard_s = -1 };
	struct hearth_err play_err = { 0 };
	const struct audio_info *info;
	int ret = trace_new(&r.trace), play;

	r.calls = json_array();
	r.phrases = json_array();
	if (ret || !r.calls || !r.phrases) {
		turn_result_free(&r);
		return err_set(err, -ENOMEM, "out of memory");
	}
	s->r = &r;
	s->trace = r.trace;
	s->utterance = 0;
	s->decided = s->have_final = s->too_long = false;
	s->stt_from = 0;
	s->rounds = 0;
	s->said = s->spoken = 0;
	s->n_content = 0;
	s->call_failed = s->bad_call = false;
	s->failed = 0;
	memset(&s->final, 0, sizeof(s->final));
	s->answer.running = s->answer.done = s->answer.committed = false;
	s->answer.id = 0;
	mailbox_clear(s->box);
	chunker_reset(s->chunker);
	/* The minute may have changed, and what other turns did: said before the user is. */
	s->mark = talk_len(s->parts.talk);
	ret = talk_now(s->parts.talk, err);
	s->cold = talk_len(s->parts.talk) > s->mark;
	s->mark = talk_len(s->parts.talk);
	if (!ret)
		ret = mouth_start(s->mouth, outs ? outs->file : NULL, outs ? outs->card : NULL, r.trace);
	if (ret) {
		turn_result_free(&r);
		return ret;
	}
	atomic_store(&s->speaking, true);
	if (text) {
		s->decided = true;
		snprintf(s->final.text, sizeof(s->final.text), "%s", text);
		memcpy(r.transcript, s->final.text, sizeof(r.transcript));
		take_command(s);
		run(s, false);
	} else {
		ret = listen_start(s->listen, in, s->parts.vad, s->parts.stt, s->box, &s->next_utterance, r.trace);
		if (ret) {
			err_set(&r.err, ret, "no thread could be started: %s", strerror(-ret));
			fail(s, ret);
		} else {
			run(s, true);
			/* Whatever ended the turn, nobody is held back while it winds down. */
			mailbox_close(s->box);
			audio_in_stop(in);
			stt_cancel(s->parts.stt);
			listen_done(s->listen);
			r.heard_s = listen_join(s->listen);
			info = audio_in_info(in);
			if (info && info->frames >= 0 && info->rate > 0) {
				r.unheard_s = (double)info->frames / info->rate - r.heard_s;
				if (r.unheard_s < 0)
					r.unheard_s = 0;
			}
		}
	}
	mailbox_close(s->box);
	if (s->answer.gen) {
		gen_free(s->answer.gen);
		s->answer.gen = NULL;
	}
	s->answer.id = 0;
	if (s->failed || r.end == TURN_CANCELLED) {
		atomic_store(&s->speaking, false);
		mouth_stop(s->mouth);
		if (s->parts.tts)
			tts_cancel(s->parts.tts);
	}
	if (s->parts.tts)
		tts_drain(s->parts.tts, -1);
	atomic_store(&s->speaking, false);
	play = mouth_finish(s->mouth, &r.samples_out, &play_err);
	if (play && !s->failed) {
		r.err = play_err;
		fail(s, play);
	}
	chunker_reset(s->chunker);
	forget_calls(s);
	if (s->failed)
		r.end = TURN_FAILED;
	/* A turn that was not answered leaves the conversation as it was. */
	if (r.end != TURN_ANSWERED && talk_len(s->parts.talk) > s->mark && talk_cut(s->parts.talk, s->mark) && r.end != TURN_FAILED) {
		err_set(&r.err, -ENOMEM, "out of memory");
		r.end = TURN_FAILED;
	}
	if (!r.reply)
		r.reply = strdup("");
	s->r = NULL;
	s->trace = NULL;
	*ret_result = r;
	return 0;
}

int sched_turn(struct sched *s, struct audio_in *in, const struct sched_outs *outs,
	       struct turn_result *ret_result, struct hearth_err *err)
{
	return turn(s, in, NULL, outs, ret_result, err);
}

int sched_turn_text(struct sched *s, const char *text, const struct sched_outs *outs,
		    struct turn_result *ret_result, struct hearth_err *err)
{
	if (strlen(text) >= STT_TEXT)
		return err_set(err, -E2BIG, "a command is at most %d bytes long", STT_TEXT - 1);
	return turn(s, NULL, text, outs, ret_result, err);
}

void sched_stop(struct sched *s)
{
	struct mail m = { .kind = MAIL_STOP };

	atomic_store(&s->stopped, true);
	mailbox_push(s->box, &m);
	mouth_stop(s->mouth);
	if (s->parts.tts)
		tts_cancel(s->parts.tts);
}
