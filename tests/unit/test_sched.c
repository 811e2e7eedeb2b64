// SPDX-License-Identifier: MIT
/*
 * The turn scheduler over engines that are played here: a detector that calls
 * loud blocks speech, a recogniser that says what it is told, a model that
 * writes a script, a voice that counts. The home, the talk, the chunker, the
 * rings and the threads are real.
 */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/mono.h"
#include "voice/sched.h"

/* -- the detector: above 1000 is speech; END after 8 blocks of silence -- */

struct vad { int64_t pos, quiet_from, from; int speaking, quiet; };

static int blips;                    /* what is shorter than 150 ms is a BLIP */
static int deliver_in;               /* blocks until a final that is late comes */
static void deliver(void);

void vad_reset(struct vad *v) { memset(v, 0, sizeof(*v)); }
void vad_set_end_wait(struct vad *v, int ms) { }

void vad_push(struct vad *v, const int16_t *pcm, size_t n, vad_event_fn *fn, void *ctx)
{
	struct vad_event ev = { .at = v->pos };
	int loud = 0;
	size_t i;

	for (i = 0; i < n; i++)
		loud |= pcm[i] > 1000;
	v->pos += (int64_t)n;
	ev.decided = v->pos;
	if (deliver_in && !--deliver_in)
		deliver();
	if (loud && !v->speaking) {
		v->speaking = 1;
		v->from = ev.at;
		v->quiet = 0;
		ev.kind = VAD_START;
		fn(ctx, &ev);
	} else if (loud && v->quiet) {
		v->quiet = 0;
		ev.kind = VAD_RESUME;
		fn(ctx, &ev);
	} else if (!loud && v->speaking) {
		if (!v->quiet++) {
			v->quiet_from = ev.at;
			ev.kind = VAD_PAUSE;
			fn(ctx, &ev);
		} else if (v->quiet == 16) {
			v->speaking = v->quiet = 0;
			ev.kind = blips && v->quiet_from - v->from < 2400 ? VAD_BLIP : VAD_END;
			ev.at = v->quiet_from;
			fn(ctx, &ev);
		}
	}
}

void vad_finish(struct vad *v, vad_event_fn *fn, void *ctx)
{
	struct vad_event ev = { .kind = VAD_END, .at = v->pos, .decided = v->pos };

	if (v->speaking)
		fn(ctx, &ev);
	v->speaking = 0;
}

/* -- the recogniser -- */

struct stt { int unused; };
static struct stt the_stt;
static const struct stt_events *stt_ev;
static uint64_t stt_id;
static int stt_open_now, stt_cancelled;
static int late_final;               /* the next final comes so many blocks after its end */
static struct stt_result late;
static size_t stt_samples[8], stt_begun;
static struct { enum stt_verdict verdict; const char *text; } hears[4];
static size_t n_heard;

int stt_begin(struct stt *s, uint64_t id)
{
	if (stt_open_now)            /* one utterance at a time */
		return -EINVAL;
	stt_id = id;
	stt_open_now = 1;
	stt_cancelled = 0;
	stt_samples[stt_begun++] = 0;
	return 0;
}
int stt_push(struct stt *s, const int16_t *pcm, size_t n)
{
	struct stt_partial p = { .id = stt_id, .text = "turn" };

	if (!stt_samples[stt_begun - 1])
		stt_ev->partial(stt_ev->ctx, &p);
	stt_samples[stt_begun - 1] += n;
	return 0;
}
int stt_look(struct stt *s) { return 0; }
int stt_end_wait_ms(float ends) { return 256; }
int stt_end(struct stt *s)
{
	struct stt_result r = { .id = stt_id, .verdict = hears[n_heard].verdict, .final_ns = mono_ns() };

	if (!stt_open_now)
		return -EINVAL;
	stt_open_now = 0;
	if (stt_cancelled) {
		r.verdict = STT_CANCELLED;
		stt_ev->final(stt_ev->ctx, &r);
		return -ECANCELED;
	}
	strcpy(r.text, hears[n_heard].text ? hears[n_heard].text : "");
	n_heard++;
	if (late_final) {
		late = r;
		deliver_in = late_final;
		late_final = 0;
		return 0;
	}
	stt_ev->final(stt_ev->ctx, &r);
	return 0;
}
void stt_cancel(struct stt *s) { stt_cancelled = 1; }
static void deliver(void) { stt_ev->final(stt_ev->ctx, &late); }

/* -- the voice: a sample of each phrase's number per letter -- */

struct tts { int unused; };
static struct tts the_tts;
static const struct tts_events *tts_ev;
static char said[1024];
static atomic_int tts_cancelled;
static int mute_at;                  /* the phrase that the voice cannot say, from 1; 0: none */
static _Atomic int64_t said_at;

int tts_say(struct tts *t, uint64_t id, const char *text, int wait_ms)
{
	int16_t pcm[64];
	size_t n = strlen(text) < 64 ? strlen(text) : 64, i;

	if (!atomic_load(&said_at))
		atomic_store(&said_at, mono_ns());
	if (mute_at && id + 1 == (uint64_t)mute_at) {
		tts_ev->done(tts_ev->ctx, id, -EIO, 0);
		return 0;
	}
	strcat(said, text);
	strcat(said, "|");
	for (i = 0; i < n; i++)
		pcm[i] = (int16_t)id;
	i = (size_t)tts_ev->audio(tts_ev->ctx, id, pcm, n, true);
	tts_ev->done(tts_ev->ctx, id, i ? -ECANCELED : 0, n);
	return 0;
}
void tts_cancel(struct tts *t) { atomic_fetch_add(&tts_cancelled, 1); }
int tts_drain(struct tts *t, int wait_ms) { return 0; }

/* -- the model -- */

struct session { int unused; };
static struct session the_session;
static const char *script[8];
static size_t at_script;
static char prompts[8][8192];
static size_t n_prompts;
static char encoded[8192];
static int slow_ms;                  /* between tokens */
static int gen_error;

struct gen { pthread_t thread; struct gen_request r; struct gen_result res; const char *text; atomic_bool cancel; };

int session_open(struct engine *e, struct session **ret, struct hearth_err *err) { *ret = &the_session; return 0; }
void session_close(struct session *s) { }
static struct engine_plan plan = { .ctx = 65536 };
const struct engine_plan *engine_the_plan(const struct engine *e) { return &plan; }
const struct tok *engine_tokenizer(const struct engine *e) { return NULL; }
void gen_defaults(struct gen_request *r) { memset(r, 0, sizeof(*r)); }
const char *gen_finish_name(enum gen_finish f) { return f == GEN_STOP ? "stop" : f == GEN_LENGTH ? "length" : "other"; }

static void *write_script(void *arg)
{
	struct gen *g = arg;
	const char *p = g->text;
	uint32_t i = 0;

	g->res.finish = GEN_STOP;
	g->res.t_prefill = (uint64_t)mono_ns();
	g->res.t_prefilled = (uint64_t)mono_ns();
	g->res.t_first = (uint64_t)mono_ns();
	while (p && *p) {
		struct gen_token t = { .index = i++, .text = p, .len = strlen(p) < 3 ? strlen(p) : 3, .t_ns = (uint64_t)mono_ns() };

		if (slow_ms)
			usleep((useconds_t)slow_ms * 1000);
		if (atomic_load(&g->cancel)) {
			g->res.finish = GEN_CANCELLED;
			break;
		}
		g->r.on_token(g->r.arg, &t);
		p += t.len;
	}
	g->res.n_out = i;
	g->res.t_last = g->res.t_done = (uint64_t)mono_ns();
	if (gen_error) {
		g->res.finish = GEN_ERROR;
		err_set(&g->res.err, -EIO, "played");
	}
	if (g->r.on_done)
		g->r.on_done(g->r.arg, &g->res);
	return NULL;
}

int gen_start(struct session *s, const struct gen_request *r, struct gen **ret_gen, struct hearth_err *err)
{
	struct gen *g = calloc(1, sizeof(*g));

	g->r = *r;
	if (r->max_tokens) {
		strcpy(prompts[n_prompts++], encoded);
		g->text = script[at_script++];
	}
	pthread_create(&g->thread, NULL, write_script, g);
	*ret_gen = g;
	return 0;
}
void gen_cancel(struct gen *g) { atomic_store(&g->cancel, true); }
int gen_wait(struct gen *g, int timeout_ms, struct gen_result *ret)
{
	pthread_join(g->thread, NULL);
	g->thread = 0;
	*ret = g->res;
	return 0;
}
void gen_free(struct gen *g)
{
	if (g && g->thread) {
		gen_cancel(g);
		pthread_join(g->thread, NULL);
	}
	free(g);
}

void sampler_defaults(struct sampler_params *p) { memset(p, 0, sizeof(*p)); }
void tok_ids_free(struct tok_ids *ids) { }
int chat_encode(const struct chat *c, const struct tok *t, const struct chat_msg *msgs, size_t n_msgs,
		const struct chat_opts *opts, struct tok_ids *ids, struct hearth_err *err)
{
	size_t i, n = 0;

	encoded[0] = 0;
	for (i = 1; i < n_msgs; i++) /* the home's message is left out: it is long and always there */
		n += (size_t)snprintf(encoded + n, sizeof(encoded) - n, "%c:%s%s%s\n", "suat"[msgs[i].role], msgs[i].content,
				      msgs[i].n_calls ? "+" : "", msgs[i].n_calls ? msgs[i].calls[0].name : "");
	ids->n = n; /* a token a byte */
	return 0;
}

/* "@Name {json}\n" is a call, "#...\n" a malformed one, the rest is said. */
struct chat_parser { struct chat_sink sink; char line[512]; size_t n; int in; };
int chat_parser_open(const struct chat *c, bool thinking, const struct chat_sink *sink, struct chat_parser **ret)
{
	*ret = calloc(1, sizeof(**ret));
	(*ret)->sink = *sink;
	return 0;
}
bool chat_prompt_thinks(const struct chat *c, const struct chat_opts *opts) { return false; }
void chat_parser_free(struct chat_parser *p) { free(p); }
void chat_parser_reset(struct chat_parser *p) { p->n = 0; p->in = 0; }
int chat_parser_push(struct chat_parser *p, const char *s, size_t n)
{
	for (; n; s++, n--) {
		if (!p->in && *s != '@' && *s != '#') {
			p->sink.content(p->sink.ctx, s, 1);
			continue;
		}
		p->in = 1;
		p->line[p->n++] = *s;
		if (*s == '\n') {
			char *space = strchr(p->line, ' ');

			p->line[p->n - 1] = 0;
			if (p->line[0] == '#') {
				p->sink.bad_call(p->sink.ctx, p->line, p->n - 1, "played");
			} else {
				*space = 0;
				p->sink.call(p->sink.ctx, 0, p->line + 1, space + 1);
			}
			p->in = 0;
			p->n = 0;
		}
	}
	return 0;
}
int chat_parser_end(struct chat_parser *p) { return 0; }

/* -- the stage -- */

static const char yaml[] =
	"areas: [{name: Hall}]\n"
	"entities:\n"
	"  - {name: Lamp, domain: light, area: Hall, state: off}\n"
	"  - {name: Door, domain: lock, area: Hall, state: locked}\n"
	"clock: 2026-11-29T18:05\n";

static struct home *home;
static struct talk *talk;
static struct sched *sched;
static struct vad vad;
static struct sched_opts opts;

static int setup_with(bool early)
{
	struct sched_parts parts;
	struct hearth_err err;

	sched_defaults(&opts);
	opts.paced = false;
	opts.early = early;
	memset(stt_samples, 0, sizeof(stt_samples));
	stt_begun = n_heard = at_script = n_prompts = 0;
	blips = late_final = deliver_in = 0;
	memset(hears, 0, sizeof(hears));
	memset(script, 0, sizeof(script));
	said[0] = 0;
	slow_ms = gen_error = mute_at = 0;
	atomic_store(&said_at, 0);
	atomic_store(&tts_cancelled, 0);
	if (home_parse("h", yaml, sizeof(yaml) - 1, &home, &err) || talk_new(home, "Hall", &talk, &err) || sched_new(&opts, &sched, &err))
		return -1;
	stt_ev = sched_stt_events(sched);
	tts_ev = sched_tts_events(sched);
	parts = (struct sched_parts){ .home = home, .talk = talk, .vad = &vad, .stt = &the_stt, .tts = &the_tts };
	return sched_attach(sched, &parts, &err);
}

static int setup(void **state) { return setup_with(true); }
static int setup_late(void **state) { return setup_with(false); }

static int teardown(void **state)
{
	sched_free(sched);
	talk_free(talk);
	home_free(home);
	return 0;
}

/* A WAV in memory: "s" 100 ms of speech, "." 100 ms of silence. */
static unsigned char wav[44 + 2 * 1600 * 64];

static struct audio_in *sound(const char *score)
{
	size_t blocks = strlen(score), n = blocks * 1600, i;
	struct audio_in *in = NULL;
	struct hearth_err err;
	int16_t *pcm = (int16_t *)(wav + 44);
	uint32_t bytes = (uint32_t)n * 2, riff = bytes + 36, rate = 16000, per_s = 32000, sixteen = 16;
	uint16_t one = 1, two = 2, bits = 16;

	memcpy(wav, "RIFF", 4); memcpy(wav + 4, &riff, 4); memcpy(wav + 8, "WAVEfmt ", 8); memcpy(wav + 16, &sixteen, 4);
	memcpy(wav + 20, &one, 2); memcpy(wav + 22, &one, 2); memcpy(wav + 24, &rate, 4); memcpy(wav + 28, &per_s, 4);
	memcpy(wav + 32, &two, 2); memcpy(wav + 34, &bits, 2); memcpy(wav + 36, "data", 4); memcpy(wav + 40, &bytes, 4);
	for (i = 0; i < n; i++)
		pcm[i] = score[i / 1600] == 's' ? i % 16 < 8 ? 8000 : -8000 : 0; /* a constant would be no sound */
	if (audio_in_mem(wav, 44 + bytes, AUDIO_RATE, &in, &err))
		fail_msg("%s", err.text);
	return in;
}

static void listen_to(const char *score, struct turn_result *r)
{
	struct audio_in *in = sound(score);
	struct hearth_err err;

	assert_int_equal(sched_turn(sched, in, NULL, r, &err), 0);
	audio_in_close(in);
}

static bool has(const struct turn_result *r, enum trace_point p)
{
	int64_t ns;

	return !trace_at(r->trace, p, &ns);
}

static void a_command_changes_the_home_and_is_answered(void **state)
{
	struct turn_result r;
	int i;

	hears[0].verdict = STT_COMMAND, hears[0].text = "turn on the lamp";
	script[0] = "@HassTurnOn {\"name\":\"Lamp\"}\n";
	script[1] = "The lamp is on. Anything else?";
	listen_to(".sssss.....", &r);
	assert_int_equal(r.end, TURN_ANSWERED);
	assert_string_equal(r.transcript, "turn on the lamp");
	assert_string_equal(r.reply, "The lamp is on. Anything else?");
	assert_string_equal(said, "The lamp is on.|Anything else?|");
	assert_int_equal(json_array_size(r.calls), 1);
	assert_string_equal(json_string_value(json_object_get(home_entity(home, 0)->state, "state")), "on");
	assert_int_equal(r.finish, GEN_STOP);
	assert_false(r.fallback);
	assert_int_equal(r.samples_out, 15 + 14);
	/* The second prompt holds the call and its answer. */
	assert_string_equal(prompts[1], "s:Now: Sunday 29 November 2026, 18:05\nHere: Hall\nHall: Lamp = off; Door = locked\n"
					"u:turn on the lamp\na:+HassTurnOn\n"
					"t:{\"success\":true,\"changed\":[{\"name\":\"Lamp\",\"state\":\"on\"}]}\n");
	for (i = 0; i < TRACE_POINTS; i++)
		if (!has(&r, (enum trace_point)i))
			fail_msg("%s is missing", trace_point_name((enum trace_point)i));
	turn_result_free(&r);
}

static void the_next_turn_goes_on_with_the_conversation(void **state)
{
	struct turn_result r;

	hears[0].verdict = STT_COMMAND, hears[0].text = "turn on the lamp";
	hears[1].verdict = STT_COMMAND, hears[1].text = "and off";
	script[0] = "@HassTurnOn {\"name\":\"Lamp\"}\n";
	script[1] = "On.";
	script[2] = "@HassTurnOff {\"name\":\"Lamp\"}\n";
	script[3] = "Off.";
	listen_to("ssss.....", &r);
	turn_result_free(&r);
	listen_to("ssss.....", &r);
	assert_string_equal(r.reply, "Off.");
	assert_non_null(strstr(prompts[2], "a:On.\ns:Now: Sunday 29 November 2026, 18:05\nHall: Lamp = on\nu:and off\n"));
	turn_result_free(&r);
}

static void silence_is_nothing(void **state)
{
	struct turn_result r;

	listen_to(".......", &r);
	assert_int_equal(r.end, TURN_NOTHING);
	assert_string_equal(r.err.text, "heard nothing");
	assert_string_equal(said, "");
	assert_int_equal(n_prompts, 0);
	assert_false(has(&r, TRACE_SPEECH_START));
	turn_result_free(&r);
}

static void a_noise_is_nothing_and_listening_goes_on(void **state)
{
	struct turn_result r;

	hears[0].verdict = STT_NOTHING, hears[0].text = "";
	hears[1].verdict = STT_COMMAND, hears[1].text = "hello";
	script[0] = "Hi.";
	listen_to("sss......sss......", &r);
	assert_int_equal(r.end, TURN_ANSWERED);
	assert_string_equal(r.transcript, "hello");
	turn_result_free(&r);
	n_heard = 0;
	listen_to("sss......", &r);
	assert_int_equal(r.end, TURN_NOTHING);
	turn_result_free(&r);
}

static void what_is_no_command_is_not_guessed_at(void **state)
{
	struct turn_result r;

	hears[0].verdict = STT_REJECTED, hears[0].text = "turn on the lamp";
	listen_to("sssss.....", &r);
	assert_int_equal(r.end, TURN_REJECTED);
	assert_int_equal(n_prompts, 0);
	assert_string_equal(said, "Sorry, I did not understand that.|");
	assert_string_equal(json_string_value(json_object_get(home_entity(home, 0)->state, "state")), "off");
	turn_result_free(&r);
}

static void speech_that_goes_on_throws_early_work_away(void **state)
{
	struct turn_result r;

	/* The first transcript, of the pause, is not the last. */
	hears[0].verdict = STT_COMMAND, hears[0].text = "turn on the lamp";
	hears[1].verdict = STT_COMMAND, hears[1].text = "turn on the lamp and lock the door";
	script[0] = "@HassTurnOn {\"name\":\"Lamp\"}\n";
	script[1] = "@HassTurnOn {\"name\":\"Door\"}\n";
	script[2] = "Both.";
	listen_to("ssss.ssss.....", &r);
	assert_int_equal(r.end, TURN_ANSWERED);
	assert_string_equal(r.transcript, "turn on the lamp and lock the door");
	/* No tool was called for the first, and it is in no prompt that counts. */
	assert_int_equal(json_array_size(r.calls), 1);
	assert_string_equal(json_string_value(json_object_get(home_entity(home, 0)->state, "state")), "off");
	assert_null(strstr(prompts[1], "u:turn on the lamp\n"));
	/* The recogniser heard the whole utterance anew. */
	assert_int_equal(stt_begun, 2);
	assert_true(stt_samples[1] > stt_samples[0]);
	assert_true(r.discarded <= 1);
	turn_result_free(&r);
}

static void nothing_is_heard_before_the_end_is_decided(void **state)
{
	struct turn_result r;
	int64_t end, token;

	hears[0].verdict = STT_COMMAND, hears[0].text = "hello";
	script[0] = "Hi there.";
	listen_to("sss.....", &r);
	assert_false(trace_at(r.trace, TRACE_ENDPOINT, &end));
	assert_true(atomic_load(&said_at) >= end);
	assert_false(trace_at(r.trace, TRACE_FIRST_PHRASE, &token));
	assert_true(token >= end);
	turn_result_free(&r);
}

static void without_early_work_it_is_the_same_answer(void **state)
{
	struct turn_result r;

	hears[0].verdict = STT_COMMAND, hears[0].text = "turn on the lamp";
	script[0] = "@HassTurnOn {\"name\":\"Lamp\"}\n";
	script[1] = "On.";
	listen_to("ssss.....", &r);
	assert_string_equal(r.reply, "On.");
	assert_false(r.early_used);
	assert_int_equal(stt_begun, 1);
	turn_result_free(&r);
}

static void a_silent_model_still_gets_an_answer(void **state)
{
	struct hearth_err err;
	struct turn_result r;

	script[0] = "@HassTurnOn {\"name\":\"Lamp\"}\n";
	script[1] = "";
	assert_int_equal(sched_turn_text(sched, "lamp on", NULL, &r, &err), 0);
	assert_string_equal(r.reply, "Done.");
	assert_true(r.fallback);
	turn_result_free(&r);
	script[2] = "@HassTurnOn {\"name\":\"Moon\"}\n";
	script[3] = "";
	assert_int_equal(sched_turn_text(sched, "moon on", NULL, &r, &err), 0);
	assert_string_equal(r.reply, "Sorry, there is no such device here.");
	assert_true(r.fallback);
	turn_result_free(&r);
	script[4] = "#broken\n";
	assert_int_equal(sched_turn_text(sched, "x", NULL, &r, &err), 0);
	assert_string_equal(r.reply, "Sorry, that went wrong.");
	assert_false(has(&r, TRACE_SPEECH_END));
	turn_result_free(&r);
}

static void what_the_model_says_of_a_failed_call_is_not_spoken(void **state)
{
	struct hearth_err err;
	struct turn_result r;

	script[0] = "@HassTurnOn {\"name\":\"Moon\"}\n";
	script[1] = "Sorry, no device called \"Moon\"Moon\"Moon.";
	assert_int_equal(sched_turn_text(sched, "moon on", NULL, &r, &err), 0);
	assert_string_equal(r.reply, "Sorry, there is no such device here.");
	assert_string_equal(said, "Sorry, there is no such device here.|");
	assert_true(r.fallback);
	turn_result_free(&r);
	/* It may do better; then its words count again. */
	script[2] = "@HassTurnOn {\"name\":\"Moon\"}\n";
	script[3] = "@HassTurnOn {\"name\":\"Lamp\"}\n";
	script[4] = "The lamp is on.";
	assert_int_equal(sched_turn_text(sched, "lamp on", NULL, &r, &err), 0);
	assert_string_equal(r.reply, "The lamp is on.");
	assert_false(r.fallback);
	turn_result_free(&r);
}

static void tool_rounds_are_bounded(void **state)
{
	struct hearth_err err;
	struct turn_result r;
	int i;

	for (i = 0; i < 8; i++)
		script[i] = "@GetDateTime {}\n";
	assert_int_equal(sched_turn_text(sched, "loop", NULL, &r, &err), 0);
	assert_int_equal(n_prompts, 5);
	assert_int_equal(r.end, TURN_ANSWERED);
	turn_result_free(&r);
}

static void a_full_context_forgets_the_oldest_turns_and_says_so(void **state)
{
	struct hearth_err err;
	struct turn_result r;
	int i, forgot = 0;

	plan.ctx = 256 + 200; /* room for an answer, and for some 200 bytes of talk */
	for (i = 0; i < 6; i++) {
		char text[64];

		snprintf(text, sizeof(text), "command number %d of this long conversation", i);
		script[at_script] = "Yes, and so on.";
		assert_int_equal(sched_turn_text(sched, text, NULL, &r, &err), 0);
		assert_int_equal(r.end, TURN_ANSWERED);
		if (r.forgot) {
			/* The home is told anew, and only what was said last is there. */
			assert_non_null(strstr(prompts[n_prompts - 1], "Lamp = off"));
			assert_null(strstr(prompts[n_prompts - 1], "number 0"));
			assert_non_null(strstr(prompts[n_prompts - 1], text));
		}
		forgot += r.forgot;
		turn_result_free(&r);
	}
	plan.ctx = 65536;
	assert_true(forgot > 0);
}

static void an_engine_error_fails_the_turn_and_leaves_the_conversation(void **state)
{
	struct hearth_err err;
	struct turn_result r;
	size_t n, m;

	gen_error = 1;
	talk_msgs(talk, &n);
	script[0] = "Hm";
	assert_int_equal(sched_turn_text(sched, "x", NULL, &r, &err), 0);
	assert_int_equal(r.end, TURN_FAILED);
	assert_string_equal(r.err.text, "the model stopped: played");
	talk_msgs(talk, &m);
	assert_int_equal(n, m);
	turn_result_free(&r);
}

static void *stop_soon(void *arg)
{
	usleep(*(useconds_t *)arg);
	sched_stop(sched);
	return NULL;
}

static void stopping_at_any_moment_ends_the_turn(void **state)
{
	useconds_t us;

	for (us = 0; us < 60000; us += 3000) {
		struct turn_result r;
		pthread_t t;

		if (us)
			setup_with(true);
		slow_ms = 1;
		hears[0].verdict = STT_COMMAND, hears[0].text = "turn on the lamp";
		script[0] = "@HassTurnOn {\"name\":\"Lamp\"}\n";
		script[1] = "The lamp is on, and it will stay on until you turn it off again. Then it is off.";
		pthread_create(&t, NULL, stop_soon, &us);
		listen_to(".sssss.....", &r);
		pthread_join(t, NULL);
		assert_true(r.end == TURN_CANCELLED || r.end == TURN_ANSWERED);
		turn_result_free(&r);
		/* And every later one at once. */
		listen_to("sss...", &r);
		assert_int_equal(r.end, TURN_CANCELLED);
		turn_result_free(&r);
		if (us + 3000 < 60000)
			teardown(NULL);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void a_blip_whose_text_comes_late_is_nobodys(void **state)
{
	struct turn_result r;

	blips = 1;
	late_final = 20;             /* a slow machine: the blip was over 4 blocks ago */
	hears[0].verdict = STT_COMMAND, hears[0].text = "turn off the lamp";
	hears[1].verdict = STT_COMMAND, hears[1].text = "turn on the lamp";
	script[0] = script[1] = "Yes.";
	listen_to("..s......ssss.....", &r);
	assert_int_equal(r.end, TURN_ANSWERED);
	assert_string_equal(r.transcript, "turn on the lamp");
	assert_int_equal(n_prompts, 1);
	assert_non_null(strstr(prompts[0], "u:turn on the lamp\n"));
	assert_null(strstr(prompts[0], "turn off"));
	turn_result_free(&r);
}

static void a_phrase_that_is_not_said_is_not_answered(void **state)
{
	struct turn_result r;

	for (mute_at = 1; mute_at <= 3; mute_at++) {
		n_heard = at_script = n_prompts = 0;
		hears[0].verdict = STT_COMMAND, hears[0].text = "hello";
		script[0] = "It is warm. It is dry. It is late.";
		listen_to("ssss.....", &r);
		assert_int_equal(r.end, TURN_FAILED);
		assert_int_equal(r.err.code, -EIO);
		turn_result_free(&r);
	}
}

static void a_blip_leaves_the_recogniser_free(void **state)
{
	struct turn_result r;

	blips = 1;
	hears[0].verdict = STT_COMMAND, hears[0].text = "turn on the lamp";
	script[0] = "Yes.";
	listen_to("..s......ssss.....", &r);
	assert_int_equal(r.end, TURN_ANSWERED);
	assert_string_equal(r.transcript, "turn on the lamp");
	turn_result_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_blip_whose_text_comes_late_is_nobodys),
		cmocka_unit_test_setup_teardown(a_blip_leaves_the_recogniser_free, setup_late, teardown),
		T(a_command_changes_the_home_and_is_answered),
		T(the_next_turn_goes_on_with_the_conversation),
		T(silence_is_nothing),
		T(a_noise_is_nothing_and_listening_goes_on),
		T(what_is_no_command_is_not_guessed_at),
		T(speech_that_goes_on_throws_early_work_away),
		T(nothing_is_heard_before_the_end_is_decided),
		cmocka_unit_test_setup_teardown(without_early_work_it_is_the_same_answer, setup_late, teardown),
		T(a_phrase_that_is_not_said_is_not_answered),
		T(a_silent_model_still_gets_an_answer),
		T(what_the_model_says_of_a_failed_call_is_not_spoken),
		T(tool_rounds_are_bounded),
		T(a_full_context_forgets_the_oldest_turns_and_says_so),
		T(an_engine_error_fails_the_turn_and_leaves_the_conversation),
		T(stopping_at_any_moment_ends_the_turn),
	};

	return UNIT_RUN(tests);
}
