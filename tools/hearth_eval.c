// SPDX-License-Identifier: MIT
/*
 * hearth eval-home: how many answers of a home model are right.
 *
 * Reads case files (JSON lines, written by tools/home/cases.py): a
 * conversation up to where the model must speak, and what is right there.
 * Greedy; each case stands alone, only the cache of a common beginning is
 * shared.
 */
#include "hearth.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "grammar/schema.h"
#include "token/chat.h"

static const char help[] =
	"usage: hearth eval-home [OPTION...] CASES.jsonl...\n"
	"\n"
	"  -m, --model FILE     the model (default: the home model)\n"
	"  -t, --threads N      threads (default: one per core)\n"
	"      --kv TYPE        int8 or f16\n"
	"      --backend NAME   compute backend\n"
	"      --grammar        hold tool calls to the tools' grammar\n"
	"      --wrong FILE     write what was answered wrongly, JSON lines\n"
	"  -j, --json           the table as JSON\n"
	"\n"
	"tools/home/cases.py writes case files: cases.py write hand hand.jsonl\n";

enum { OPT_GRAMMAR = 3000, OPT_WRONG };

#define ANSWER_TOKENS 160

struct answer {
	json_t *calls;          /* [{"name", "arguments"}] */
	char *text;
	size_t len, cap;
	unsigned int malformed;
	bool oom;
};

struct eval {
	struct engine *engine;
	struct session *session;
	struct chat *chat;
	struct gvocab *vocab;   /* only with --grammar */
	json_t *table;          /* {intent: [right, all]} */
	FILE *wrong;
	struct gmatch *match;   /* of the present case, NULL until its tools are known */
	int32_t marker;         /* the token <tool_call> */
	bool grammar, inside;
	int fail;
	uint64_t prefill_tokens, prefill_ns, out_tokens, out_ns, cases;
};

/* -- what the model says ---------------------------------------------------- */

static void on_content(void *ctx, const char *s, size_t n)
{
	struct answer *a = ctx;

	if (a->len + n + 1 > a->cap) {
		size_t cap = (a->len + n + 1) * 2;
		char *p = realloc(a->text, cap);

		if (!p) {
			a->oom = true;
			return;
		}
		a->text = p;
		a->cap = cap;
	}
	memcpy(a->text + a->len, s, n);
	a->len += n;
	a->text[a->len] = 0;
}

static void on_call(void *ctx, size_t index, const char *name, const char *arguments)
{
	struct answer *a = ctx;
	json_t *args = json_loads(arguments, 0, NULL);

	if (!args || json_array_append_new(a->calls, json_pack("{s:s, s:o}", "name", name, "arguments", args)))
		a->malformed++;
}

static void on_bad_call(void *ctx, const char *raw, size_t n, const char *why)
{
	((struct answer *)ctx)->malformed++;
}

struct listen {
	struct eval *e;
	struct chat_parser *parser;
	struct tok_stream *stream;
};

static int gram_mask(void *arg, uint32_t *mask, uint32_t vocab)
{
	struct listen *l = arg;
	const uint32_t *allowed;
	uint32_t i, mine;

	if (!l->e->inside)
		return 0;
	allowed = gmatch_mask(l->e->match);
	if (!allowed)
		return gmatch_status(l->e->match) ? gmatch_status(l->e->match) : -EINVAL;
	mine = (gvocab_size(l->e->vocab) + 31) / 32;
	for (i = 0; i < (vocab + 31) / 32; i++)
		mask[i] &= i < mine ? allowed[i] : 0;
	return 0;
}

static bool on_token(void *arg, const struct gen_token *t)
{
	struct listen *l = arg;
	struct eval *e = l->e;
	size_t n;
	const char *s = tok_stream_push(l->stream, t->id, &n);
	int rc = chat_parser_push(l->parser, s, n);

	if (!rc && e->match) {
		if (e->inside)
			rc = gmatch_accept(e->match, (uint32_t)t->id);
		else if (t->id == e->marker)
			e->inside = true;
	}
	e->fail = rc;
	return rc != 0;
}

/* -- what is right ---------------------------------------------------------- */

/* Equal as JSON, where 20 and 20.0 are one number. */
static bool same(const json_t *a, const json_t *b)
{
	const char *key;
	json_t *v;
	size_t i;

	if (json_is_number(a) && json_is_number(b))
		return json_number_value(a) == json_number_value(b);
	if (json_is_object(a) && json_is_object(b)) {
		if (json_object_size(a) != json_object_size(b))
			return false;
		json_object_foreach((json_t *)a, key, v)
			if (!same(v, json_object_get(b, key)))
				return false;
		return true;
	}
	if (json_is_array(a) && json_is_array(b)) {
		if (json_array_size(a) != json_array_size(b))
			return false;
		json_array_foreach((json_t *)a, i, v)
			if (!same(v, json_array_get(b, i)))
				return false;
		return true;
	}
	return json_equal(a, b);
}

static bool word_char(int c)
{
	return isalnum(c) || c == '_' || c >= 0x80;
}

/* Whether @text has @word as words of its own; "4" is not in "14" nor in "1.4". */
static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);
	const char *p;

	for (p = text; (p = strcasestr(p, word)); p++) {
		int before = p == text ? ' ' : (unsigned char)p[-1], after = (unsigned char)p[n];

		if (!word_char(before) && before != '.' && !word_char(after))
			return true;
	}
	return false;
}

static bool negative(const char *text)
{
	static const char *const words[] = { "no", "not", "none", "nothing", "cannot", "never", "unable", "sorry" };
	const char *p;
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (has_word(text, words[i]))
			return true;
	for (p = text; (p = strcasestr(p, "n't")); p++)
		if (!word_char((unsigned char)p[3]))
			return true;
	return false;
}

static bool right(const json_t *expect, const struct answer *a)
{
	const json_t *v = json_object_get(expect, "calls"), *group, *w;
	const char *text = a->text ? a->text : "";
	size_t i, j;

	if (a->malformed)
		return false;
	if (v) {
		bool ok = same(v, a->calls);

		json_array_foreach(json_object_get(expect, "or"), i, w)
			ok |= same(w, a->calls);
		return ok;
	}
	if (json_array_size(a->calls))
		return false;
	v = json_object_get(expect, "ask");
	if (v) {
		if (!strchr(text, '?'))
			return false;
		json_array_foreach(v, i, w)
			if (!strcasestr(text, json_string_value(w)) &&
			    !(!strcmp(json_string_value(w), "room") && strcasestr(text, "which one")))
				return false;
		return true;
	}
	if (json_object_get(expect, "no"))
		return negative(text);
	v = json_object_get(expect, "say");
	if (v) {
		json_array_foreach(v, i, group) {
			bool any = false;

			json_array_foreach(group, j, w)
				any |= has_word(text, json_string_value(w));
			if (!any)
				return false;
		}
		return true;
	}
	return text[strspn(text, " \n")] != 0;
}

/* Whether the catalogue has a line that begins with @before @name and one of @after. */
static bool listed(const char *catalogue, const char *before, const char *name, const char *after)
{
	size_t nb = strlen(before), nn = strlen(name);
	const char *p = catalogue;

	while ((p = strchr(p, '\n'))) {
		p++;
		if (!strncmp(p, before, nb) && !strncmp(p + nb, name, nn) && p[nb + nn] && strchr(after, p[nb + nn]))
			return true;
	}
	return false;
}

/* Whether a call names a device or a room that is not in the first message. */
static bool invented(const json_t *messages, const json_t *calls)
{
	const char *catalogue = json_string_value(json_object_get(json_array_get(messages, 0), "content"));
	json_t *call;
	size_t i;

	json_array_foreach(calls, i, call) {
		const json_t *args = json_object_get(call, "arguments");
		const char *name = json_string_value(json_object_get(args, "name"));
		const char *area = json_string_value(json_object_get(args, "area"));

		if (strstr(json_string_value(json_object_get(call, "name")), "Timer"))
			continue; /* a timer's name is the speaker's own */
		if ((name && !listed(catalogue, "- ", name, ": ")) || (area && !listed(catalogue, "", area, ":, (") && !listed(catalogue, "", area, " ")))
			return true;
	}
	return false;
}

static void count(struct eval *e, const char *key, bool ok)
{
	json_t *row = json_object_get(e->table, key);

	if (!row) {
		row = json_pack("[i, i]", 0, 0);
		json_object_set_new(e->table, key, row);
	}
	json_array_set_new(row, 0, json_integer(json_integer_value(json_array_get(row, 0)) + ok));
	json_array_set_new(row, 1, json_integer(json_integer_value(json_array_get(row, 1)) + 1));
}

/* -- one case --------------------------------------------------------------- */

struct convo {
	struct chat_msg *msgs;
	struct chat_call *calls;
	char **texts;
	size_t n, n_texts;
};

static void convo_free(struct convo *c)
{
	while (c->n_texts)
		free(c->texts[--c->n_texts]);
	free(c->texts);
	free(c->calls);
	free(c->msgs);
}

static int convo_read(const json_t *messages, struct convo *c)
{
	size_t i, j, total = 0, at = 0;
	json_t *m, *call;

	json_array_foreach(messages, i, m)
		total += json_array_size(json_object_get(m, "tool_calls"));
	c->msgs = calloc(json_array_size(messages) + 1, sizeof(*c->msgs));
	c->calls = calloc(total + 1, sizeof(*c->calls));
	c->texts = calloc(total + 1, sizeof(*c->texts));
	if (!c->msgs || !c->calls || !c->texts)
		return -ENOMEM;
	json_array_foreach(messages, i, m) {
		const char *role = json_string_value(json_object_get(m, "role"));
		struct chat_msg *out = &c->msgs[c->n++];

		if (!role || !json_is_string(json_object_get(m, "content")))
			return -EINVAL;
		out->role = !strcmp(role, "system") ? CHAT_SYSTEM : !strcmp(role, "user") ? CHAT_USER :
			    !strcmp(role, "tool") ? CHAT_TOOL : CHAT_ASSISTANT;
		out->content = json_string_value(json_object_get(m, "content"));
		out->calls = &c->calls[at];
		json_array_foreach(json_object_get(m, "tool_calls"), j, call) {
			const json_t *f = json_object_get(call, "function");
			/* the separators of the trainer, and of the template's tojson */
			char *args = json_dumps(json_object_get(f, "arguments"), 0);

			if (!args || !json_is_string(json_object_get(f, "name"))) {
				free(args);
				return -EINVAL;
			}
			c->texts[c->n_texts++] = args;
			c->calls[at].name = json_string_value(json_object_get(f, "name"));
			c->calls[at++].arguments = args;
			out->n_calls++;
		}
	}
	return 0;
}

static int generate(struct eval *e, const struct tok_ids *ids, struct answer *a, struct hearth_err *err)
{
	struct chat_sink sink = { .content = on_content, .call = on_call, .bad_call = on_bad_call, .ctx = a };
	const struct tok *tok = engine_tokenizer(e->engine);
	struct listen l = { .e = e };
	struct gen_result res = { 0 };
	struct gen_request q;
	struct gen *g = NULL;
	int rc;

	rc = chat_parser_open(e->chat, chat_prompt_thinks(e->chat, NULL), &sink, &l.parser);
	if (!rc)
		rc = tok_stream_open(tok, true, &l.stream);
	if (rc) {
		chat_parser_free(l.parser);
		return err_set(err, rc, "out of memory");
	}
	gen_defaults(&q);
	q.tokens = ids->id;
	q.n_tokens = (uint32_t)ids->n;
	q.max_tokens = ANSWER_TOKENS;
	q.on_token = on_token;
	q.arg = &l;
	if (e->match) {
		q.mask = gram_mask;
		q.mask_arg = &l;
	}
	e->inside = false;
	rc = gen_start(e->session, &q, &g, err);
	if (!rc) {
		gen_wait(g, -1, &res);
		gen_free(g);
		if (e->fail)
			rc = err_set(err, e->fail, "the answer cannot be taken apart");
		else if (res.finish == GEN_ERROR || res.finish == GEN_MEMORY)
			rc = err_set(err, res.err.code ? res.err.code : -ENOMEM, "%s", res.err.text[0] ? res.err.text : gen_finish_name(res.finish));
		else
			chat_parser_end(l.parser);
		e->prefill_tokens += res.n_prompt - res.n_cached;
		e->prefill_ns += res.t_prefilled > res.t_prefill ? res.t_prefilled - res.t_prefill : 0;
		if (res.n_out > 1) {
			e->out_tokens += res.n_out - 1;
			e->out_ns += res.t_last - res.t_first;
		}
	}
	tok_stream_free(l.stream);
	chat_parser_free(l.parser);
	return rc;
}

static int one_case(struct eval *e, const json_t *c, struct hearth_err *err)
{
	const char *intent = json_string_value(json_object_get(c, "intent")), *kind;
	json_t *tools = json_object_get(c, "tools"), *v;
	const json_t *expect = json_object_get(c, "expect"), *messages = json_object_get(c, "messages");
	struct chat_opts opts = { 0 };
	struct tok_ids ids = { 0 };
	struct answer a = { 0 };
	struct convo convo = { 0 };
	struct grammar *gr = NULL;
	char *text = NULL;
	bool ok;
	int rc;

	if (!intent || !json_is_array(tools) || !json_is_object(expect) || !json_array_size(messages))
		return err_set(err, -EINVAL, "no case: it needs intent, tools, expect and messages");
	a.calls = json_array();
	text = json_dumps(tools, 0);
	rc = a.calls && text ? convo_read(messages, &convo) : -ENOMEM;
	if (rc) {
		err_set(err, rc, "the messages cannot be read");
		goto out;
	}
	opts.tools = text;
	rc = chat_encode(e->chat, engine_tokenizer(e->engine), convo.msgs, convo.n, &opts, &ids, err);
	if (rc)
		goto out;
	if (e->grammar) {
		rc = grammar_from_tools(tools, NULL, true, true, &gr, err);
		if (!rc && gmatch_create(gr, e->vocab, &e->match))
			rc = err_set(err, -ENOMEM, "out of memory");
		if (rc)
			goto out;
	}
	rc = generate(e, &ids, &a, err);
	if (!rc && a.oom)
		rc = err_set(err, -ENOMEM, "out of memory");
	if (rc)
		goto out;
	ok = right(expect, &a);
	e->cases++;
	count(e, intent, ok);
	count(e, "all", ok);
	json_object_foreach((json_t *)expect, kind, v) {
		char key[32];

		if (!strcmp(kind, "or"))
			continue;
		snprintf(key, sizeof(key), "=%s", kind);
		count(e, key, ok);
	}
	count(e, "invented", invented(messages, a.calls));
	count(e, "malformed", a.malformed > 0);
	if (!ok && e->wrong) {
		json_t *w = json_pack("{s:O?, s:s, s:O, s:O, s:O, s:s}", "case", json_object_get(c, "case"), "intent", intent,
				      "said", json_object_get(json_array_get(messages, json_array_size(messages) - 1), "content"),
				      "expect", expect, "calls", a.calls, "text", a.text ? a.text : "");

		if (w && (json_dumpf(w, e->wrong, JSON_COMPACT) || fputc('\n', e->wrong) == EOF))
			rc = err_set(err, -EIO, "--wrong: cannot be written");
		json_decref(w);
	}
out:
	gmatch_free(e->match);
	e->match = NULL;
	grammar_unref(gr);
	tok_ids_free(&ids);
	convo_free(&convo);
	json_decref(a.calls);
	free(a.text);
	free(text);
	return rc;
}

/* -- the program ------------------------------------------------------------ */

static const char *token_bytes(void *arg, uint32_t id, size_t *len)
{
	const struct tok *t = arg;

	if (tok_is_control(t, (int32_t)id) || tok_is_unused(t, (int32_t)id))
		return NULL;
	return tok_bytes(t, (int32_t)id, len);
}

static int open_eval(struct eval *e, struct common *c, struct hearth_err *err)
{
	struct engine_opts o;
	const struct tok *tok;
	uint32_t eog[16];
	size_t n = 0, i;
	int rc;

	engine_defaults(&o);
	o.model = c->voice.model;
	o.threads = (uint32_t)c->voice.threads;
	o.kv = c->voice.kv;
	o.backend = c->voice.compute;
	o.ctx = c->voice.ctx ? (uint32_t)c->voice.ctx : 4096;
	rc = engine_open(&o, &e->engine, err);
	if (!rc)
		rc = session_open(e->engine, &e->session, err);
	if (!rc)
		rc = chat_open(engine_gguf(e->engine), &e->chat, err);
	if (rc)
		return rc;
	tok = engine_tokenizer(e->engine);
	e->marker = tok_id(tok, "<tool_call>", 11);
	if (!e->grammar)
		return 0;
	for (i = 0; i < tok_count(tok) && n < 16; i++)
		if (tok_is_eog(tok, (int32_t)i))
			eog[n++] = (uint32_t)i;
	return gvocab_create((uint32_t)tok_count(tok), token_bytes, (void *)tok, eog, n, &e->vocab, err);
}

static int run_file(struct eval *e, const char *path, struct hearth_err *err)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t cap = 0;
	long num = 0;
	int rc = 0;

	if (!f)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	while (!rc && !was_stopped() && getline(&line, &cap, f) > 0) {
		json_error_t je;
		json_t *c = json_loads(line, 0, &je);

		num++;
		rc = c ? one_case(e, c, err) : err_set(err, -EINVAL, "%s", je.text);
		if (rc)
			err_prefix(err, rc, "%s:%ld", path, num);
		json_decref(c);
	}
	if (!rc && ferror(f))
		rc = err_set(err, -errno, "%s: %s", path, strerror(errno));
	else if (!rc && !num && !was_stopped())
		rc = err_set(err, -ENODATA, "%s: the file is empty", path);
	free(line);
	fclose(f);
	return rc;
}

static void print_table(const struct eval *e)
{
	const char *key;
	json_t *row;

	printf("%-28s %6s %6s %7s\n", "", "right", "of", "");
	json_object_foreach(e->table, key, row) {
		long long n = json_integer_value(json_array_get(row, 0)), all = json_integer_value(json_array_get(row, 1));

		printf("%-28s %6lld %6lld %6.1f%%\n", key, n, all, 100.0 * (double)n / (double)all);
	}
	if (e->prefill_ns && e->out_ns)
		printf("prompt %.0f tokens/s (%llu new tokens), answers %.0f tokens/s (%llu)\n",
		       (double)e->prefill_tokens * 1e9 / (double)e->prefill_ns, (unsigned long long)e->prefill_tokens,
		       (double)e->out_tokens * 1e9 / (double)e->out_ns, (unsigned long long)e->out_tokens);
}

int main_eval(int argc, char **argv)
{
	static const struct option options[] = {
		COMMON_OPTIONS, { "grammar", no_argument, NULL, OPT_GRAMMAR }, { "wrong", required_argument, NULL, OPT_WRONG }, { NULL, 0, NULL, 0 }
	};
	struct hearth_err err = { 0 };
	struct eval e = { 0 };
	const char *wrong = NULL;
	struct common c;
	int opt, code = 0, rc = 0;

	common_defaults(&c);
	while ((opt = getopt_long(argc, argv, COMMON_SHORT, options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			return EXIT_OK;
		}
		if (opt == '?')
			return EXIT_USAGE;
		if (opt == OPT_GRAMMAR)
			e.grammar = true;
		else if (opt == OPT_WRONG)
			wrong = optarg;
		else if ((code = common_option(&c, opt, optarg)))
			return code;
	}
	if (optind >= argc)
		return complain(EXIT_USAGE, "no cases: give one or more files that tools/home/cases.py wrote");
	stop_on_signals();
	e.table = json_object();
	if (wrong && !(e.wrong = fopen(wrong, "w")))
		code = complain(EXIT_OUTPUT, "%s: %s", wrong, strerror(errno));
	else if (open_eval(&e, &c, &err))
		code = complain(EXIT_MODEL, "%s", err.text);
	for (; !code && optind < argc; optind++) {
		rc = run_file(&e, argv[optind], &err);
		if (rc)
			code = complain(EXIT_OTHER, "%s", err.text);
	}
	if (!code && was_stopped())
		code = EXIT_STOPPED;
	if (!code && c.json)
		code = put_json(e.table, NULL);
	else if (!code)
		print_table(&e);
	if (e.wrong && fclose(e.wrong) && !code)
		code = complain(EXIT_OUTPUT, "%s: %s", wrong, strerror(errno));
	gvocab_free(e.vocab);
	chat_free(e.chat);
	session_close(e.session);
	engine_close(e.engine);
	json_decref(e.table);
	return code;
}
