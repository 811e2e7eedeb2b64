// SPDX-License-Identifier: MIT
#include "voice/sched.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mono.h"
#include "voice/answer.h"

#define BOX_ROOM     1024
#define RING_SAMPLES (4 * 16384)  /* four seconds of answer between engine and card */
#define GOING_ON_NS   INT64_C(60000000000) /* after an answer, what follows may lean on it */
#define FINAL_WAIT_NS INT64_C(60000000000) /* a recogniser that takes longer is broken */

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

static struct listen_opts listen_opts_of(const struct sched_opts *o)
{
	return (struct listen_opts){ .paced = o->paced, .early = o->early, .early_ms = o->early_ms,
				     .patience_ms = o->patience_ms, .longest_ms = o->longest_ms };
}

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
	    chunker_new(&opts->chunk, answer_phrase, s, &s->chunker)) {
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

int sched_attach(struct sched *s, const struct sched_parts *parts, struct hearth_err *err)
{
	struct chat_sink sink = answer_sink(s);
	int ret;

	s->parts = *parts;
	ret = chat_parser_open(parts->chat, chat_prompt_thinks(parts->chat, NULL), &sink, &s->parser);
	if (ret)
		return err_set(err, ret, "out of memory");
	ret = session_open(parts->engine, &s->session, err);
	if (!ret)
		ret = talk_now(parts->talk, err);
	return ret ? ret : answer_warm(s, err);
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
	return ret ? ret : answer_warm(s, err);
}

int sched_fail(struct sched *s, int code)
{
	if (!s->failed) {
		s->failed = code;
		s->r->err.code = code;
	}
	return code;
}

/*
 * "All" and "both" answer a question or go on from a turn; out of the blue they
 * are a knock or a scrap of talk, and carrying out "all" would switch off a home.
 */
bool sched_bare_answer(const char *text)
{
	static const char *const answers[] = {
		"a", "all", "and", "both", "down", "it", "neither", "no", "none", "now", "off", "oh", "on", "one", "so", "that", "the", "then",
		"this", "up", "yeah", "yes",
	};
	char copy[STT_TEXT], *save = NULL;

	if (strlen(text) >= sizeof(copy))
		return false;
	strcpy(copy, text);
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		size_t i = 0;

		while (i < sizeof(answers) / sizeof(answers[0]) && strcmp(w, answers[i]))
			i++;
		if (i == sizeof(answers) / sizeof(answers[0]))
			return false;
	}
	return true;
}

static bool out_of_the_blue(const struct sched *s)
{
	return (!s->answered_ns || mono_ns() - s->answered_ns >= GOING_ON_NS) && sched_bare_answer(s->final.text);
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
			answer_commit(s);
		else
			answer_command(s);
		return true;
	}
	if (s->final.verdict == STT_REJECTED) {
		static const char sorry[] = "Sorry, I did not understand that.";

		s->r->end = TURN_REJECTED;
		if (s->answer.running || s->answer.done)
			answer_drop(s);
		s->answer.done = false;
		if (s->too_long)
			err_set(&s->r->err, -ENOMSG, "speech went on for more than %u s, which is no command", s->opts.longest_ms / 1000);
		else
			err_set(&s->r->err, -ENOMSG, "what was said is not a command of this home");
		s->r->fallback = true;
		answer_speak(s, sorry, sizeof(sorry) - 1);
		chunker_finish(s->chunker);
		return true;
	}
	if (s->final.verdict == STT_FAILED) {
		s->r->err = s->final.err;
		sched_fail(s, s->final.err.code ? s->final.err.code : -EIO);
	}
	return false;
}

static void forget_speech(struct sched *s)
{
	if (s->answer.running || s->answer.done)
		answer_drop(s);
	s->answer.done = false;
	s->utterance = 0;          /* a transcript of it that comes late is nobody's */
	s->have_final = false;
	s->decided = false;
	trace_unmark(s->trace, TRACE_SPEECH_START);
	trace_unmark(s->trace, TRACE_SPEECH_END);
	trace_unmark(s->trace, TRACE_ENDPOINT);
	trace_unmark(s->trace, TRACE_STT_PARTIAL);
	trace_unmark(s->trace, TRACE_STT_FINAL);
}

/* Decided and transcribed. true: the model, or a sentence of ours, answers; *@ret_ended: all of it is there. */
static bool settle(struct sched *s, bool *ret_ended)
{
	bool more = false;

	if (!act(s)) {
		if (!s->failed) {
			/* A noise that the detector took for speech: listen on. */
			forget_speech(s);
			listen_on(s->listen);
		}
		return false;
	}
	listen_done(s->listen);
	if (s->r->end == TURN_REJECTED) {
		*ret_ended = true;
	} else if (s->answer.done && s->answer.committed) {
		s->answer.done = false;
		answer_finish(s, &more);
		*ret_ended = !more;
	}
	return true;
}

/* false: the mouth failed, and says why itself. */
static bool spoken(struct sched *s, const struct mail *m)
{
	s->spoken++;
	if (m->status && m->status != -ECANCELED) {
		err_set(&s->r->err, m->status, "the speech engine failed: %s", strerror(-m->status));
		sched_fail(s, m->status);
	}
	return m->status != -ECANCELED;
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
				sched_fail(s, -ETIMEDOUT);
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
			if (s->cold && answer_warm(s, &s->r->err))
				sched_fail(s, s->r->err.code);
			s->cold = false;
			break;
		case MAIL_PAUSE:
			break;
		case MAIL_RESUME:
			s->utterance = m.id;
			if (s->have_final || s->answer.running || s->answer.done) {
				if (s->answer.running || s->answer.done)
					answer_drop(s);
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
			if (s->final.verdict == STT_COMMAND && out_of_the_blue(s))
				s->final.verdict = STT_NOTHING;
			if (s->decided)
				thinking = settle(s, &ended);
			else if (s->final.verdict == STT_COMMAND && s->opts.early)
				answer_command(s);
			break;
		case MAIL_END:
			s->utterance = m.id;
			s->decided = true;
			s->too_long = m.status != 0;
			decided_ns = mono_ns();
			trace_mark(s->trace, TRACE_SPEECH_END, m.ns);
			trace_mark(s->trace, TRACE_ENDPOINT, m.decided);
			trace_span(s->trace, "audio", "speech", ({ int64_t at = m.ns; trace_at(s->trace, TRACE_SPEECH_START, &at); at; }), m.ns);
			if (s->have_final)
				thinking = settle(s, &ended);
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
				sched_fail(s, m.status);
			}
			break;
		case MAIL_TEXT:
			answer_text(s, &m);
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

				answer_finish(s, &more);
				ended = !more;
			} else {
				s->answer.done = true;
			}
			break;
		case MAIL_SPOKEN:
			spoken(s, &m);
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
		if (m.kind == MAIL_SPOKEN && !spoken(s, &m))
			break;
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
		answer_command(s);
		run(s, false);
	} else {
		ret = listen_start(s->listen, in, s->parts.vad, s->parts.stt, s->box, &s->next_utterance, r.trace);
		if (ret) {
			err_set(&r.err, ret, "no thread could be started: %s", strerror(-ret));
			sched_fail(s, ret);
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
		sched_fail(s, play);
	}
	chunker_reset(s->chunker);
	answer_forget_calls(s);
	if (s->failed)
		r.end = TURN_FAILED;
	/* A turn that was not answered leaves the conversation as it was. */
	if (r.end != TURN_ANSWERED && talk_len(s->parts.talk) > s->mark && talk_cut(s->parts.talk, s->mark) && r.end != TURN_FAILED) {
		err_set(&r.err, -ENOMEM, "out of memory");
		r.end = TURN_FAILED;
	}
	if (r.end == TURN_ANSWERED)
		s->answered_ns = mono_ns();
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
