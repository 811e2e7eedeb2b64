// SPDX-License-Identifier: MIT
#include "voice/voice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/gguf.h"
#include "voice/account.h"
#include "voice/home_size.h"
#include "voice/stt_model.h"

#define MIB (UINT64_C(1) << 20)

static const struct {
	const char *name;
	enum hearth_class cls;
	int priority;
} tenants[VOICE_TENANTS] = {
	[VOICE_LLM] = { "llm", HEARTH_CLASS_LLM, 20 },
	[VOICE_STT] = { "stt", HEARTH_CLASS_STT, 30 },
	[VOICE_TTS] = { "tts", HEARTH_CLASS_TTS, 30 },
	[VOICE_VAD] = { "vad", HEARTH_CLASS_VAD, 40 },
	[VOICE_AUDIO] = { "audio", HEARTH_CLASS_OTHER, 40 },
};

struct voice {
	struct voice_opts opts;
	struct voice_plan plan;
	struct hearth *hearth;
	struct hearth_tenant *tenant[VOICE_TENANTS];
	struct voice_charge audio_charge;
	struct home *home;
	struct engine *engine;
	struct chat *chat;
	struct talk *talk;
	struct vad *vad;
	struct stt_model stt_model;
	struct stt *stt;
	struct tts *tts;
	struct sched *sched;
	char vad_note[HEARTH_ERR_TEXT];
	char stt_note[HEARTH_ERR_TEXT];
};

const char *voice_tenant_name(enum voice_tenant t)
{
	return (unsigned int)t < VOICE_TENANTS ? tenants[t].name : "?";
}

void voice_defaults(struct voice_opts *o)
{
	memset(o, 0, sizeof(*o));
	o->backend = HEARTH_BACKEND_AUTO;
	o->ctx = 4096;
	o->kv = KV_I8;
	o->listen = o->speak = true;
	sched_defaults(&o->sched);
}

/* -- the plan -- */

static void engine_opts_of(const struct voice_opts *o, struct engine_opts *ret)
{
	engine_defaults(ret);
	ret->model = o->model;
	ret->backend = o->compute;
	ret->threads = o->threads;
	ret->ctx = o->ctx;
	ret->kv = o->kv;
	ret->sessions = 1;
	ret->progress = o->progress;
	ret->progress_arg = o->progress_arg;
}

static void vad_options_of(const struct voice_opts *o, struct vad_options *ret)
{
	vad_defaults(ret);
	ret->weights = o->vad_weights;
	if (!o->vad_weights)
		ret->kind = VAD_ENERGY;
	if (o->end_wait_ms)
		ret->end_wait_ms = o->end_wait_ms;
	ret->max_speech_ms = (int)o->sched.longest_ms;
}

static void stt_options_of(const struct voice_opts *o, const struct stt_model *m, struct stt_options *ret)
{
	stt_defaults(ret);
	if (m) {
		ret->lm = m->lm;
		ret->dict = m->dict;
	}
	ret->max_s = (int)(o->sched.longest_ms / 1000) + 5;
}

static void tts_options_of(const struct voice_opts *o, struct tts_options *ret)
{
	tts_defaults(ret);
	if (o->voice)
		ret->voice = o->voice;
}

/* A budget around what is planned: that much is sure, a tenth more is the end. */
static void budget_for(uint64_t bytes, uint64_t asked, struct hearth_budget *b)
{
	hearth_budget_defaults(b);
	b->max = asked ? asked : bytes + bytes / 10 + 64 * 1024;
	b->high = bytes + bytes / 20 + 32 * 1024;
	if (b->high > b->max)
		b->high = b->max;
	b->min = bytes < b->max ? bytes : b->max;
	b->low = b->min;
}

/* Does the model with this context stay within what was asked for it? */
static bool model_fits(const struct voice_opts *o, uint32_t ctx)
{
	const uint64_t *max = o->max[VOICE_LLM];
	struct engine_plan e;
	struct engine_opts eo;

	engine_opts_of(o, &eo);
	eo.ctx = ctx;
	return !engine_plan(&eo, &e, NULL) && (!max[HEARTH_KIND_WEIGHTS] || e.bytes[ENGINE_WEIGHTS] <= max[HEARTH_KIND_WEIGHTS]) &&
	       (!max[HEARTH_KIND_KV] || e.bytes[ENGINE_KV] <= max[HEARTH_KIND_KV]) &&
	       (!max[HEARTH_KIND_SCRATCH] || e.bytes[ENGINE_SCRATCH] <= max[HEARTH_KIND_SCRATCH]) &&
	       (!max[HEARTH_KIND_ACCOUNT] || e.bytes[ENGINE_ACCOUNT] <= max[HEARTH_KIND_ACCOUNT]);
}

static const char *size_text(uint64_t bytes, char text[32])
{
	if (bytes < MIB)
		snprintf(text, 32, "%.1f KiB", (double)bytes / 1024);
	else
		snprintf(text, 32, "%.1f MiB", (double)bytes / MIB);
	return text;
}

/* Where a shorter context would help, says how long it may be. */
static void largest_context(const struct voice_opts *o, struct voice_plan *p)
{
	uint32_t low = 0, high = p->engine.ctx;

	p->engine.ctx_fit = 0;
	if (model_fits(o, high))
		return; /* it is another tenant that does not fit */
	while (low + 1 < high) {
		uint32_t mid = low + (high - low) / 2;

		if (model_fits(o, mid))
			low = mid;
		else
			high = mid;
	}
	p->engine.ctx_fit = low;
	if (low)
		snprintf(p->why_not + strlen(p->why_not), sizeof(p->why_not) - strlen(p->why_not), "; the largest context that fits is %u tokens", low);
	else
		snprintf(p->why_not + strlen(p->why_not), sizeof(p->why_not) - strlen(p->why_not), "; no context fits");
}

/* The recogniser's files for the home: built, or found in their folder. */
static int stt_files(const struct voice_opts *o, const struct home *home, struct stt_model *ret, struct hearth_err *err)
{
	struct phrasebook *book = NULL;
	int ret_code = phrasebook_new(&book);

	if (ret_code)
		return err_set(err, ret_code, "out of memory");
	ret_code = stt_model_names(home, book, err);
	if (!ret_code)
		ret_code = stt_model_build(book, o->stt_extra, NULL, o->stt_dir, ret, err);
	phrasebook_free(book);
	return ret_code;
}

/* What the recogniser will take depends on the home; without one that can be read, on none. */
static uint64_t stt_bytes(const struct voice_opts *o)
{
	struct stt_model m = { .cached = false };
	struct stt_options so;
	struct home *home = NULL;
	bool known = o->home && o->stt_dir && !home_load(o->home, &home, NULL) && !stt_files(o, home, &m, NULL);
	uint64_t bytes;

	stt_options_of(o, known ? &m : NULL, &so);
	bytes = stt_predict(&so);
	if (known)
		stt_model_done(&m);
	home_free(home);
	return bytes;
}

int voice_plan(const struct voice_opts *o, struct voice_plan *ret_plan, struct hearth_err *err)
{
	static const enum hearth_kind kinds[ENGINE_POOLS] = { HEARTH_KIND_WEIGHTS, HEARTH_KIND_KV, HEARTH_KIND_SCRATCH, HEARTH_KIND_ACCOUNT };
	struct voice_plan p = { .fits = true };
	struct engine_opts eo;
	struct vad_options vo;
	struct tts_options to;
	struct home *home = NULL;
	int ret, t, k, i;

	engine_opts_of(o, &eo);
	ret = engine_plan(&eo, &p.engine, err);
	if (ret == -EINVAL && eo.ctx) {
		struct engine_plan probe;

		/* Is it the model, or only the context that was asked for? */
		eo.ctx = 0;
		if (!engine_plan(&eo, &probe, NULL)) {
			ret = -E2BIG;
			if (err)
				err->code = ret;
		}
	}
	if (ret)
		return ret;
	for (i = 0; i < ENGINE_POOLS; i++)
		p.bytes[VOICE_LLM][kinds[i]] = p.engine.bytes[i];
	if (o->listen) {
		vad_options_of(o, &vo);
		p.bytes[VOICE_VAD][HEARTH_KIND_ACCOUNT] = vad_predict(&vo);
		p.bytes[VOICE_STT][HEARTH_KIND_ACCOUNT] = stt_bytes(o);
	}
	if (o->speak) {
		tts_options_of(o, &to);
		p.bytes[VOICE_TTS][HEARTH_KIND_ACCOUNT] = tts_predict(&to);
	}
	p.bytes[VOICE_AUDIO][HEARTH_KIND_ACCOUNT] = sched_predict(&o->sched) + 3 * audio_footprint();
	for (t = 0; t < VOICE_TENANTS; t++)
		for (k = 0; k < HEARTH_KIND_COUNT; k++) {
			uint64_t bytes = p.bytes[t][k], asked = o->max[t][k];
			char a[32], b[32];

			if (!bytes && !asked)
				continue;
			budget_for(bytes, asked, &p.budget[t][k]);
			p.total += bytes;
			/* Room for every tenant up to its max: no one starves another. */
			p.pool[k] += p.budget[t][k].max > bytes ? p.budget[t][k].max : bytes;
			if (asked && bytes > asked && p.fits) {
				p.fits = false;
				snprintf(p.why_not, sizeof(p.why_not), "%s needs %s of %s, its budget is %s", tenants[t].name, size_text(bytes, a),
					 hearth_kind_name((enum hearth_kind)k), size_text(asked, b));
			}
		}
	if (!p.fits)
		largest_context(o, &p);
	/* A home that cannot be read is said where it is opened; the plan is of the model then. */
	if (o->home && !home_load(o->home, &home, NULL))
		ret = home_size_of_model(o->model, home, &p.home_tokens, err);
	home_free(home);
	if (ret)
		return ret;
	p.engine.fits = p.fits;
	*ret_plan = p;
	return 0;
}

int voice_plan_home(const struct voice_opts *o, const struct voice_plan *p, struct hearth_err *err)
{
	char what[HEARTH_ERR_TEXT];

	snprintf(what, sizeof(what), "the description of the home %.200s", o->home);
	return home_size_check(p->home_tokens, p->engine.ctx, p->engine.shape.ctx_train, what, "fewer devices", "--ctx", err);
}

/* -- opening -- */

static int open_pools(struct voice *v, enum voice_part *part, struct hearth_err *err)
{
	struct hearth_pool_spec specs[HEARTH_KIND_COUNT];
	struct hearth_options ho;
	int t, k, ret;

	hearth_options_defaults(&ho);
	ho.backend = v->opts.backend;
	for (k = 0; k < HEARTH_KIND_COUNT; k++)
		specs[k] = (struct hearth_pool_spec){ .kind = (enum hearth_kind)k, .name = hearth_kind_name((enum hearth_kind)k),
						      .size = v->plan.pool[k] + MIB };
	ho.pools = specs;
	ho.n_pools = HEARTH_KIND_COUNT;
	*part = VOICE_PART_DEVICE;
	ret = hearth_open(&ho, &v->hearth, err);
	for (t = 0; t < VOICE_TENANTS && !ret; t++)
		ret = hearth_tenant_open(v->hearth, tenants[t].name, tenants[t].cls, tenants[t].priority, &v->tenant[t], err);
	/* On the device the administrator sets budgets; ours are for our own pools. */
	if (ret || hearth_backend_of(v->hearth) != HEARTH_BACKEND_EMBEDDED)
		return ret;
	*part = VOICE_PART_FIT;
	for (t = 0; t < VOICE_TENANTS && !ret; t++)
		for (k = 0; k < HEARTH_KIND_COUNT && !ret; k++)
			if (v->plan.bytes[t][k] || v->opts.max[t][k])
				ret = hearth_budget_set(v->tenant[t], hearth_pool(v->hearth, (enum hearth_kind)k), &v->plan.budget[t][k], err);
	return ret;
}

static struct voice_account account(struct voice *v, enum voice_tenant t)
{
	return (struct voice_account){ .tenant = v->tenant[t], .pool = hearth_pool(v->hearth, HEARTH_KIND_ACCOUNT) };
}

static int open_vad(struct voice *v, struct hearth_err *err)
{
	struct voice_account acc = account(v, VOICE_VAD);
	struct vad_options o;
	int ret;

	vad_options_of(&v->opts, &o);
	if (!v->opts.vad_weights)
		snprintf(v->vad_note, sizeof(v->vad_note), "no weights of the Silero detector are set up: the energy detector is used");
	ret = vad_open(&o, &acc, &v->vad, err);
	if (ret == -ENOENT && o.kind == VAD_SILERO) {
		snprintf(v->vad_note, sizeof(v->vad_note), "no weights of the Silero detector at %s: the energy detector is used", o.weights);
		o.kind = VAD_ENERGY;
		ret = vad_open(&o, &acc, &v->vad, err);
	}
	return ret;
}

static int open_stt(struct voice *v, struct hearth_err *err)
{
	struct voice_account acc = account(v, VOICE_STT);
	struct stt_options o;
	int ret = stt_files(&v->opts, v->home, &v->stt_model, err);

	if (ret)
		return ret;
	if (v->stt_model.unsayable)
		snprintf(v->stt_note, sizeof(v->stt_note), "no pronunciation is known for these words, they will not be heard: %s", v->stt_model.unsayable);
	stt_options_of(&v->opts, &v->stt_model, &o);
	o.unsure = vad_kind(v->vad) == VAD_ENERGY;
	return stt_open(&o, &acc, sched_stt_events(v->sched), &v->stt, err);
}

static int open_tts(struct voice *v, struct hearth_err *err)
{
	struct voice_account acc = account(v, VOICE_TTS);
	struct tts_options o;

	tts_options_of(&v->opts, &o);
	return tts_open(&o, &acc, sched_tts_events(v->sched), &v->tts, err);
}

static int open_model(struct voice *v, struct hearth_err *err)
{
	struct engine_opts o;
	int ret;

	engine_opts_of(&v->opts, &o);
	o.hearth = v->hearth;
	o.tenant = v->tenant[VOICE_LLM];
	ret = engine_open(&o, &v->engine, err);
	return ret ? ret : chat_open(engine_gguf(v->engine), &v->chat, err);
}

int voice_open(const struct voice_opts *opts, struct voice **ret_voice, enum voice_part *ret_part, struct hearth_err *err)
{
	struct voice *v = calloc(1, sizeof(*v));
	enum voice_part part = VOICE_PART_NONE;
	struct sched_parts parts;
	struct voice_account acc;
	int ret;

	if (!v)
		return err_set(err, -ENOMEM, "out of memory");
	v->opts = *opts;
	part = VOICE_PART_HOME;
	ret = home_load(opts->home, &v->home, err);
	if (ret)
		goto fail;
	part = VOICE_PART_HERE;
	ret = talk_new(v->home, opts->here, &v->talk, err);
	if (ret)
		goto fail;
	part = VOICE_PART_MODEL;
	ret = voice_plan(opts, &v->plan, err);
	if (ret)
		goto fail;
	if (!v->plan.fits) {
		part = VOICE_PART_FIT;
		ret = err_set(err, -ENOSPC, "the plan does not fit: %s", v->plan.why_not);
		goto fail;
	}
	ret = voice_plan_home(opts, &v->plan, err);
	if (ret)
		goto fail;
	ret = open_pools(v, &part, err);
	if (ret)
		goto fail;
	part = VOICE_PART_SPEECH;
	ret = sched_new(&opts->sched, &v->sched, err);
	acc = account(v, VOICE_AUDIO);
	if (!ret)
		ret = voice_charge_begin(&v->audio_charge, &acc, v->plan.bytes[VOICE_AUDIO][HEARTH_KIND_ACCOUNT], err);
	if (!ret && opts->listen)
		ret = open_vad(v, err);
	if (!ret && opts->listen)
		ret = open_stt(v, err);
	if (!ret && opts->speak)
		ret = open_tts(v, err);
	if (ret)
		goto fail;
	part = VOICE_PART_MODEL;
	ret = open_model(v, err);
	if (ret)
		goto fail;
	parts = (struct sched_parts){ .home = v->home, .engine = v->engine, .chat = v->chat, .talk = v->talk,
				      .vad = v->vad, .stt = v->stt, .tts = v->tts };
	ret = sched_attach(v->sched, &parts, err);
	if (ret)
		goto fail;
	*ret_voice = v;
	return 0;
fail:
	/* A budget that refuses is about fitting, whoever met it. */
	*ret_part = ret == -ENOSPC || ret == -ENOMEM || ret == -E2BIG ? VOICE_PART_FIT : part;
	voice_close(v);
	return ret;
}

void voice_close(struct voice *v)
{
	if (!v)
		return;
	stt_close(v->stt);
	tts_close(v->tts);
	sched_free(v->sched);
	vad_close(v->vad);
	chat_free(v->chat);
	engine_close(v->engine);
	talk_free(v->talk);
	home_free(v->home);
	stt_model_done(&v->stt_model);
	voice_charge_end(&v->audio_charge);
	hearth_close(v->hearth);
	free(v);
}

struct sched *voice_sched(struct voice *v) { return v->sched; }
struct home *voice_home(struct voice *v) { return v->home; }
struct hearth *voice_hearth(struct voice *v) { return v->hearth; }
struct engine *voice_engine(struct voice *v) { return v->engine; }
const struct voice_plan *voice_the_plan(const struct voice *v) { return &v->plan; }
const char *voice_vad_note(const struct voice *v) { return *v->vad_note ? v->vad_note : NULL; }
const char *voice_stt_note(const struct voice *v) { return *v->stt_note ? v->stt_note : NULL; }
int voice_rate(const struct voice *v) { return v->tts ? tts_rate(v->tts) : AUDIO_RATE; }

int voice_restart(struct voice *v, struct hearth_err *err)
{
	struct talk *anew;
	int ret = talk_new(v->home, v->opts.here, &anew, err);

	if (ret)
		return ret;
	talk_free(v->talk);
	v->talk = anew;
	return sched_restart(v->sched, anew, err);
}

int voice_reset(struct voice *v, struct hearth_err *err)
{
	struct home *anew;
	int ret = home_load(v->opts.home, &anew, err);

	if (ret)
		return ret;
	home_free(v->home);
	v->home = anew;
	sched_set_home(v->sched, anew);
	return voice_restart(v, err);
}

json_t *voice_tenants(struct voice *v)
{
	struct hearth_state_row *rows = NULL;
	json_t *all = json_array();
	size_t n = 0, i;
	int t;

	if (hearth_state(v->hearth, &rows, &n, NULL))
		return all;
	for (i = 0; i < n; i++) {
		const struct hearth_usage *u = &rows[i].usage;
		json_t *row;

		if (!u->peak && !u->budget.min)
			continue;
		row = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "tenant", rows[i].tenant, "pool", rows[i].pool,
				"min", (json_int_t)u->budget.min, "low", (json_int_t)u->budget.low,
				"high", u->budget.high > INT64_MAX ? (json_int_t)-1 : (json_int_t)u->budget.high,
				"max", u->budget.max > INT64_MAX ? (json_int_t)-1 : (json_int_t)u->budget.max,
				"current", (json_int_t)u->current, "peak", (json_int_t)u->peak);
		for (t = 0; t < VOICE_TENANTS; t++)
			if (!strcmp(tenants[t].name, rows[i].tenant))
				json_object_set_new(row, "predicted", json_integer((json_int_t)v->plan.bytes[t][rows[i].kind]));
		json_array_append_new(all, row);
	}
	free(rows);
	return all;
}
