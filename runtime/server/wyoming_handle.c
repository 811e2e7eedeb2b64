// SPDX-License-Identifier: MIT
/*
 * Text in, as Home Assistant's conversation agent over Wyoming sends it: the
 * model answers with a sentence (handled) or with tool calls, which go out as
 * intents for Home Assistant to carry out.
 *
 * A conversation is known by its conversation_id; the last few are kept, with
 * their last few turns.
 */
#include "server/wyoming_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "grammar/schema.h"
#include "home/home.h"
#include "home/prompt.h"
#include "server/prompt_size.h"
#include "server/run.h"
#include "server/service.h"

#define TALKS      32
#define TURNS      6
#define MAX_CALLS  8
#define MAX_ANSWER 256           /* tokens */
#define LOOK_MS    100

struct turn {
	char *user, *reply;        /* reply: "" when calls were made */
	struct chat_call calls[MAX_CALLS];
	char *results[MAX_CALLS];  /* what came back; NULL: it went out as an intent */
	size_t n_calls;
};

struct talk {
	char id[128];
	uint64_t used;
	struct turn turn[TURNS];
	size_t n;
};

struct assistant {
	struct service *s;
	struct home *home;         /* for its names, which do not change; NULL: none */
	char *system, *tools;
	json_t *tools_json;
	struct grammar *grammar;
	pthread_mutex_t lock;
	struct talk talk[TALKS];
	uint64_t clock;
};

static void turn_done(struct turn *t)
{
	free(t->user);
	free(t->reply);
	for (size_t i = 0; i < t->n_calls; i++) {
		free((char *)t->calls[i].name);
		free((char *)t->calls[i].arguments);
		free(t->results[i]);
	}
	memset(t, 0, sizeof(*t));
}

void assistant_close(struct assistant *a)
{
	if (!a)
		return;
	for (int i = 0; i < TALKS; i++)
		for (size_t k = 0; k < a->talk[i].n; k++)
			turn_done(&a->talk[i].turn[k]);
	grammar_unref(a->grammar);
	home_free(a->home);
	json_decref(a->tools_json);
	free(a->tools);
	free(a->system);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

int assistant_open(const struct config *cfg, struct service *s, struct assistant **ret, struct hearth_err *err)
{
	struct assistant *a = calloc(1, sizeof(*a));
	int rc = 0;

	if (!a)
		return err_set(err, -ENOMEM, "out of memory");
	a->s = s;
	pthread_mutex_init(&a->lock, NULL);
	if (!s->chat)
		rc = err_set(err, -ENOTSUP, "text cannot be handled: %s", s->chat_why.text);
	if (!rc && cfg->home) {
		rc = home_load(cfg->home, &a->home, err);
		if (!rc && (home_prompt_system(a->home, &a->system) ||
			    home_prompt_tools(a->home, cfg->wy_full_tools ? HOME_TOOLS_FULL : HOME_TOOLS_COMPACT, &a->tools)))
			rc = err_set(err, -ENOMEM, "out of memory");
		if (!rc) {
			a->tools_json = json_loads(a->tools, 0, NULL);
			rc = grammar_from_tools(a->tools_json, NULL, true, true, &a->grammar, err);
		}
	}
	/* What the configuration says wins over the home's own words. */
	if (!rc && (cfg->wy_prompt || !a->system)) {
		free(a->system);
		a->system = strdup(cfg->wy_prompt ? cfg->wy_prompt : PROMPT_PLAIN);
		if (!a->system)
			rc = err_set(err, -ENOMEM, "out of memory");
	}
	if (rc) {
		assistant_close(a);
		return rc;
	}
	*ret = a;
	return 0;
}

/* -- the conversation ------------------------------------------------------------- */

/* Lock held. */
static struct talk *talk_of(struct assistant *a, const char *id, bool make)
{
	struct talk *oldest = &a->talk[0];

	if (!id || !*id || strlen(id) >= sizeof(oldest->id))
		return NULL;       /* nothing to know it by: a conversation of one turn */
	for (int i = 0; i < TALKS; i++) {
		if (!strcmp(a->talk[i].id, id))
			return &a->talk[i];
		if (a->talk[i].used < oldest->used)
			oldest = &a->talk[i];
	}
	if (!make)
		return NULL;
	for (size_t k = 0; k < oldest->n; k++)
		turn_done(&oldest->turn[k]);
	memset(oldest, 0, sizeof(*oldest));
	strcpy(oldest->id, id);
	return oldest;
}

static void remember(struct assistant *a, const char *id, struct turn *t)
{
	struct talk *k;

	pthread_mutex_lock(&a->lock);
	k = talk_of(a, id, true);
	if (k) {
		if (k->n == TURNS) {
			turn_done(&k->turn[0]);
			memmove(&k->turn[0], &k->turn[1], (TURNS - 1) * sizeof(k->turn[0]));
			k->n--;
		}
		k->turn[k->n++] = *t;
		k->used = ++a->clock;
	} else {
		turn_done(t);
	}
	pthread_mutex_unlock(&a->lock);
}

/* @t's messages from @m[n] on; returns how many there are then. */
static size_t add_turn(struct chat_msg *m, size_t n, const struct turn *t, bool answered)
{
	m[n++] = (struct chat_msg){ .role = CHAT_USER, .content = t->user };
	if (answered || t->n_calls)
		m[n++] = (struct chat_msg){ .role = CHAT_ASSISTANT, .content = answered ? t->reply : "", .calls = t->calls, .n_calls = t->n_calls };
	/* Home Assistant does not say how an intent went; it tells people itself when one fails. */
	for (size_t c = 0; c < t->n_calls; c++)
		m[n++] = (struct chat_msg){ .role = CHAT_TOOL, .content = t->results[c] ? t->results[c] : "{\"success\":true}" };
	return n;
}

/* What was said before under @id, and @now, which waits for its answer. */
static int encode(struct assistant *a, const char *id, const struct turn *now, struct tok_ids *ids, struct hearth_err *err)
{
	struct chat_msg m[1 + (TURNS + 1) * (2 + MAX_CALLS)];
	struct chat_opts o = { .tools = a->tools };
	const struct talk *k;
	size_t n = 0;
	int rc;

	m[n++] = (struct chat_msg){ .role = CHAT_SYSTEM, .content = a->system };
	pthread_mutex_lock(&a->lock);
	k = talk_of(a, id, false);
	for (size_t i = 0; k && i < k->n; i++)
		n = add_turn(m, n, &k->turn[i], true);
	n = add_turn(m, n, now, false);
	rc = chat_encode(a->s->chat, a->s->tok, m, n, &o, ids, err);
	pthread_mutex_unlock(&a->lock);
	return rc;
}

/* -- one answer ------------------------------------------------------------------------ */

struct answer {
	struct client *c;
	json_t *context;           /* given back as it came */
	struct turn turn;
	json_t *own[MAX_CALLS];    /* the calls' arguments in the home's own names; NULL: as they are */
	char sorry[128];
	bool streaming, intents;
};

static json_t *with_context(const struct answer *a, json_t *o)
{
	if (a->context)
		json_object_set(o, "context", a->context);
	return o;
}

static void take_text(struct answer *a, const struct run_event *e)
{
	size_t n = strlen(a->turn.reply);
	char *p = realloc(a->turn.reply, n + e->len + 1);

	if (!p)
		return;
	memcpy(p + n, e->text, e->len);
	p[n + e->len] = 0;
	a->turn.reply = p;
	/* White space before a call is no beginning of an answer. */
	if (a->intents || (!a->streaming && p[strspn(p, " \n\t")] == 0))
		return;
	if (!a->streaming)
		say_event(a->c, "handled-start", with_context(a, json_object()), NULL, 0);
	say_event(a->c, "handled-chunk", json_pack("{s:s}", "text", a->streaming ? p + n : p), NULL, 0);
	a->streaming = true;
}

static void take_call(struct answer *a, const struct run_event *e)
{
	struct chat_call *k = &a->turn.calls[a->turn.n_calls];

	if (a->turn.n_calls == MAX_CALLS)
		return;
	k->name = strdup(e->text);
	k->arguments = strdup(e->arguments);
	if (k->name && k->arguments) {
		a->turn.n_calls++;
	} else {
		free((char *)k->name);
		free((char *)k->arguments);
	}
}

/*
 * Home Assistant knows its devices by their own names. A call with a name that is none
 * of the home's is no intent: what it made of it could be anything. False: @a->sorry says so.
 */
static bool own_names(struct answer *a)
{
	const struct home *home = a->c->w->assistant->home;

	for (size_t i = 0; home && i < a->turn.n_calls; i++) {
		json_t *args = json_loads(a->turn.calls[i].arguments, 0, NULL);
		int rc = args ? home_own_args(home, a->turn.calls[i].name, args, &a->own[i], a->sorry, sizeof(a->sorry)) : -EINVAL;

		json_decref(args);
		if (rc) {
			if (rc != -ENOENT)
				snprintf(a->sorry, sizeof(a->sorry), "Sorry, that did not work.");
			return false;
		}
	}
	return true;
}

/* What is said instead of calls that are not carried out is the turn, too. */
static bool take_back(struct answer *a)
{
	char *said = NULL;

	if (asprintf(&said, "%s%s%s", a->streaming ? a->turn.reply : "", a->streaming ? " " : "", a->sorry) < 0)
		return false;
	if (a->streaming)
		say_event(a->c, "handled-chunk", json_pack("{s:s}", "text", said + strlen(a->turn.reply)), NULL, 0);
	for (size_t i = 0; i < a->turn.n_calls; i++) {
		free((char *)a->turn.calls[i].name);
		free((char *)a->turn.calls[i].arguments);
		free(a->turn.results[i]);
		a->turn.results[i] = NULL;
	}
	a->turn.n_calls = 0;
	free(a->turn.reply);
	a->turn.reply = said;
	return true;
}

/* Entities as the protocol has them: a list of name and value. */
static json_t *intent_json(const struct answer *a, size_t i)
{
	const struct chat_call *k = &a->turn.calls[i];
	json_t *args = a->own[i] ? json_incref(a->own[i]) : json_loads(k->arguments, 0, NULL), *list = json_array(), *v;
	const char *name;

	/* The model's way to ask for states is a tool of language models; the intent for it is another. */
	json_object_foreach(args, name, v)
		json_array_append_new(list, json_pack("{s:s,s:O}", "name", name, "value", v));
	json_decref(args);
	return with_context(a, json_pack("{s:s,s:o}", "name", strcmp(k->name, "GetLiveContext") ? k->name : "HassGetState", "entities", list));
}

/* Calls that were not answered here. */
static size_t intents_of(const struct turn *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_calls; i++)
		n += !t->results[i];
	return n;
}

static void say_intents(struct answer *a)
{
	struct client *c = a->c;
	bool many = intents_of(&a->turn) > 1;

	if (many)
		say_event(c, "intents-start", with_context(a, json_object()), NULL, 0);
	for (size_t i = 0; i < a->turn.n_calls; i++)
		if (!a->turn.results[i])
			say_event(c, "intent", intent_json(a, i), NULL, 0);
	if (many)
		say_event(c, "intents-stop", with_context(a, json_object()), NULL, 0);
}

/*
 * The time is known here, so a call for it is answered and the model goes on.
 * True when all calls from @from on were such.
 */
static bool tell_time(struct answer *a, size_t from)
{
	struct turn *t = &a->turn;
	struct tm tm;
	time_t now = time(NULL);
	char text[128];

	if (t->n_calls == from || t->n_calls == MAX_CALLS)
		return false;
	for (size_t i = from; i < t->n_calls; i++)
		if (strcmp(t->calls[i].name, "GetDateTime"))
			return false;
	localtime_r(&now, &tm);
	strftime(text, sizeof(text), "{\"success\":true,\"date\":\"%Y-%m-%d\",\"weekday\":\"%A\",\"time\":\"%H:%M\"}", &tm);
	for (size_t i = from; i < t->n_calls; i++) {
		t->results[i] = strdup(text);
		if (!t->results[i])
			return false;
	}
	return true;
}

static bool gone(void *arg)
{
	struct client *c = arg;

	return c->gone;   /* a stop is the service's to say */
}

static int generate(struct answer *a, const struct tok_ids *ids, enum gen_finish *ret_finish, struct hearth_err *err)
{
	struct assistant *as = a->c->w->assistant;
	uint32_t most = service_most_tokens(as->s, -1);
	struct run *run = NULL;
	struct run_opts o;
	bool done = false;
	int rc;

	if (ids->n >= most)
		return err_set(err, -E2BIG, "the conversation is %zu tokens; the context, or the budget of cache, holds %u", ids->n, most);
	o = (struct run_opts){ .service = as->s, .tokens = ids->id, .n_tokens = ids->n, .max_tokens = most - (uint32_t)ids->n, .prio = GEN_VOICE,
			       .who = -1, .mode = as->grammar ? RUN_LAZY : RUN_FREE, .no_calls = !as->grammar, .grammar = as->grammar, .wait_ms = WAIT_MS,
			       .gone = gone, .gone_arg = a->c };
	if (o.max_tokens > MAX_ANSWER)
		o.max_tokens = MAX_ANSWER;
	sampler_defaults(&o.sample);
	rc = run_start(&o, &run, err);
	while (!rc && !done) {
		const struct run_event *e = run_next(run, LOOK_MS);

		if (gone(a->c))
			run_cancel(run);
		if (!e)
			continue;
		if (e->kind == RUN_CONTENT)
			take_text(a, e);
		else if (e->kind == RUN_CALL)
			take_call(a, e);
		else if (e->kind == RUN_DONE)
			done = true;
	}
	if (!rc) {
		*ret_finish = run_result(run)->finish;
		if (*ret_finish == GEN_ERROR)
			rc = err_set(err, -EIO, "%s", run_result(run)->err.text);
		else if (run_result(run)->err.code == -ESHUTDOWN)
			rc = err_set(err, -ESHUTDOWN, "%s", run_result(run)->err.text);
	}
	run_free(run);
	return rc;
}

/* What is spoken where there is no answer: nothing that only who set it up can do anything with. */
static const char *spoken(int rc, bool began_here)
{
	switch (rc) {
	case -E2BIG:
		return began_here ? "That is too long for me." : "This conversation has become too long for me. Please begin a new one.";
	case -EAGAIN: case -ETIMEDOUT: case -EDQUOT: case -EBUSY:
		return "I am busy just now. Please try again in a moment.";
	case -ESHUTDOWN:
		return "I am just being switched off.";
	}
	return "Something went wrong here. Please try again.";
}

/* The conversation has no turn yet. */
static bool begins(struct assistant *a, const char *id)
{
	const struct talk *k;
	bool first;

	pthread_mutex_lock(&a->lock);
	k = talk_of(a, id, false);
	first = !k || !k->n;
	pthread_mutex_unlock(&a->lock);
	return first;
}

void handle_text(struct client *c, const json_t *d, bool intents)
{
	const char *text = json_string_value(json_object_get(d, "text"));
	json_t *context = json_object_get(d, "context");
	const char *id = json_string_value(json_object_get(context, "conversation_id"));
	struct answer a = { .c = c, .context = json_is_object(context) ? context : NULL, .intents = intents };
	struct hearth_err err = { 0 };
	struct tok_ids ids = { 0 };
	enum gen_finish finish = GEN_STOP;
	int rc;

	if (!c->w->assistant || !(c->services & (intents ? WYOMING_INTENT : WYOMING_HANDLE)) || (intents && !c->w->assistant->grammar)) {
		say_error(c, intents ? "no-intent" : "no-handle", intents ? "intents are not served here" : "text is not handled here");
		return;
	}
	if (!text || !text[strspn(text, " \t\r\n")]) {
		say_event(c, intents ? "not-recognized" : "not-handled", with_context(&a, json_pack("{s:s}", "text", "")), NULL, 0);
		return;
	}
	if (c->w->assistant->home)
		home_said(c->w->assistant->home, text, &a.turn.user);
	else
		a.turn.user = strdup(text);
	a.turn.reply = calloc(1, 1);
	rc = a.turn.user && a.turn.reply ? 0 : err_set(&err, -ENOMEM, "out of memory");
	for (bool again = true; again && !rc;) {
		size_t before = a.turn.n_calls;

		rc = encode(c->w->assistant, id, &a.turn, &ids, &err);
		if (!rc)
			rc = generate(&a, &ids, &finish, &err);
		tok_ids_free(&ids);
		again = !rc && !a.streaming && tell_time(&a, before);
	}
	if (!rc && intents_of(&a.turn) && !own_names(&a) && !take_back(&a))
		rc = err_set(&err, -ENOMEM, "out of memory");
	if (rc) {
		char line[HEARTH_ERR_TEXT + 64];

		if (rc == -ESHUTDOWN) {
			say_stopping(c);
		} else {
			say_error(c, "handle-failed", err.text);
			snprintf(line, sizeof(line), "a text was not answered: %s", err.text);
			c->w->said(c->w, line);
		}
		/* Who waits for an end and knows no error event gets one. */
		say_event(c, intents ? "not-recognized" : "not-handled", with_context(&a, json_pack("{s:s}", "text", intents ? text : spoken(rc, begins(c->w->assistant, id)))), NULL, 0);
	} else if (intents_of(&a.turn) && !a.streaming) {
		say_intents(&a);
	} else if (intents) {
		say_event(c, "not-recognized", with_context(&a, json_pack("{s:s}", "text", text)), NULL, 0);
	} else {
		if (!a.streaming)
			say_event(c, "handled-start", with_context(&a, json_object()), NULL, 0);
		say_event(c, "handled", with_context(&a, json_pack("{s:s}", "text", a.turn.reply)), NULL, 0);
		/* Calls after words: the words were an answer already, so the intents come inside it for who reads on. */
		if (intents_of(&a.turn))
			say_intents(&a);
		say_event(c, "handled-stop", with_context(&a, json_object()), NULL, 0);
	}
	if (!rc && !c->gone && finish != GEN_CANCELLED)
		remember(c->w->assistant, id, &a.turn);
	else
		turn_done(&a.turn);
	for (size_t i = 0; i < MAX_CALLS; i++)
		json_decref(a.own[i]);
}
