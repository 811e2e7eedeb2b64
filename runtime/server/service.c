// SPDX-License-Identifier: MIT
#include "server/service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dev/hearth.h"
#include "base/mono.h"
#include "cache/kv.h"
#include "home/home.h"
#include "server/grammars.h"
#include "server/keeper.h"
#include "server/prompt_size.h"
#include "server/speech.h"
#include "server/tenants.h"

struct slot {
	struct session *s;
	int32_t *held;             /* what its cache begins with, as far as we know */
	size_t n_held;
	bool busy;
	/* busy, but over: how to have it given back */
	void (*settle)(void *run);
	void *run;
	void *settling;            /* the run that another thread is giving back just now */
	uint64_t used;
	uint64_t conversation;
};

/* Seconds: the buckets of the time to first token. */
const double service_buckets[16] = {
	0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 2, 5, 10,
};

static const char *token_bytes(void *arg, uint32_t id, size_t *len)
{
	const struct tok *t = arg;

	if (tok_is_control(t, (int32_t)id) || tok_is_unused(t, (int32_t)id))
		return NULL;
	return tok_bytes(t, (int32_t)id, len);
}

static int make_vocab(struct service *s, struct hearth_err *err)
{
	uint32_t eog[64];
	size_t n = 0, count = tok_count(s->tok);

	for (size_t i = 0; i < count && n < 64; i++)
		if (tok_is_eog(s->tok, (int32_t)i))
			eog[n++] = (uint32_t)i;
	return gvocab_create((uint32_t)count, token_bytes, (void *)s->tok, eog, n, &s->vocab, err);
}

static const enum hearth_kind kinds[ENGINE_POOLS] = {
	[ENGINE_WEIGHTS] = HEARTH_KIND_WEIGHTS, [ENGINE_KV] = HEARTH_KIND_KV,
	[ENGINE_SCRATCH] = HEARTH_KIND_SCRATCH, [ENGINE_ACCOUNT] = HEARTH_KIND_ACCOUNT,
};

/* What the configuration limits; 0 where it says nothing. */
static uint64_t limit_of(const struct config *cfg, enum engine_pool p)
{
	return p == ENGINE_WEIGHTS ? cfg->weights_max : p == ENGINE_KV ? cfg->kv_max : 0;
}

int service_plan(const struct config *cfg, struct engine_opts *ret_o, struct engine_plan *ret, struct hearth_err *err)
{
	int rc;

	engine_defaults(ret_o);
	ret_o->model = cfg->model;
	ret_o->backend = strcmp(cfg->backend, "auto") ? cfg->backend : NULL;
	ret_o->threads = cfg->threads;
	ret_o->ctx = cfg->ctx;
	ret_o->sessions = cfg->sessions;
	if (cfg->chunk)
		ret_o->chunk = cfg->chunk;
	ret_o->kv = strcmp(cfg->kv, "f16") ? KV_I8 : KV_F16;
	rc = engine_plan(ret_o, ret, err);
	for (int i = 0; i < ENGINE_POOLS && !rc; i++) {
		uint64_t max = limit_of(cfg, (enum engine_pool)i);

		if (max && ret->bytes[i] > max)
			rc = err_set(err, -ENOMEM, "the model needs %.1f MiB of %s, the configuration allows %.1f MiB", (double)ret->bytes[i] / (1 << 20),
				     hearth_kind_name(kinds[i]), (double)max / (1 << 20));
	}
	return rc;
}

/*
 * Pools for the plan and the speech engines, and the model's tenant with its
 * budget. Embedded pools are twice the plan: what is not used is not there, and
 * a pool that fits exactly would always be under pressure. With the module the pools are the administrator's, and so are the
 * budgets.
 */
static int open_memory(struct service *s, const struct engine_plan *plan, struct hearth_err *err)
{
	const struct config *cfg = s->cfg;
	struct hearth_pool_spec spec[ENGINE_POOLS + 1];
	struct hearth_options o;
	int rc;

	for (int i = 0; i < ENGINE_POOLS; i++)
		spec[i] = (struct hearth_pool_spec){ .kind = kinds[i], .name = hearth_kind_name(kinds[i]), .size = plan->bytes[i] * 2 + (1 << 20) };
	spec[ENGINE_ACCOUNT].size += speech_predict(cfg);
	hearth_options_defaults(&o);
	if (cfg->device)
		o.device = cfg->device;
	if (cfg->device || cfg->device_required)
		o.backend = HEARTH_BACKEND_DEVICE;
	o.pools = spec;
	o.n_pools = ENGINE_POOLS;
	if (cfg->n_tenants)
		spec[o.n_pools++] = (struct hearth_pool_spec){ .kind = HEARTH_KIND_ACCOUNT, .name = TENANTS_POOL, .size = plan->bytes[ENGINE_KV] };
	rc = hearth_open(&o, &s->hearth, err);
	if (!rc)
		rc = hearth_tenant_open(s->hearth, "llm", HEARTH_CLASS_LLM, 10, &s->llm, err);
	if (!rc && cfg->n_tenants)
		rc = tenants_open(cfg, s->hearth, s->llm, hearth_pool_named(s->hearth, TENANTS_POOL), &s->tenants, err);
	if (rc || hearth_backend_of(s->hearth) != HEARTH_BACKEND_EMBEDDED)
		return rc;
	for (int i = 0; i < ENGINE_POOLS && !rc; i++) {
		uint64_t max = limit_of(cfg, (enum engine_pool)i);
		struct hearth_budget b;

		hearth_budget_defaults(&b);
		/*
		 * What the plan takes is guaranteed: speech cannot squeeze the model. It
		 * takes no more than the plan, so only a configured limit bounds it.
		 */
		b.min = b.low = plan->bytes[i];
		if (max)
			b.high = b.max = max;
		rc = hearth_budget_set(s->llm, hearth_pool(s->hearth, kinds[i]), &b, err);
	}
	return rc;
}

int service_open(const struct config *cfg, struct keyring *keys, struct service **ret, struct hearth_err *err)
{
	struct service *s = calloc(1, sizeof(*s));
	struct engine_plan plan;
	struct engine_opts o;
	const char *base;
	int rc;

	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	s->cfg = cfg;
	s->keys = keys;
	s->started = time(NULL);
	s->queue = cfg->queue;
	s->request_seconds = cfg->request_seconds;
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->home_lock, NULL);
	mono_cond(&s->freed);

	rc = service_plan(cfg, &o, &plan, err);
	if (!rc)
		rc = open_memory(s, &plan, err);
	if (rc)
		goto fail;
	o.hearth = s->hearth;
	o.tenant = s->llm;
	o.prefix_cache = cfg->cache_on;
	o.keep_kv = cfg->cache_on && cfg->cache_file && hearth_backend_of(s->hearth) == HEARTH_BACKEND_DEVICE;
	rc = engine_open(&o, &s->engine, err);
	if (rc)
		goto fail;
	s->tok = engine_tokenizer(s->engine);
	if (chat_open(engine_gguf(s->engine), &s->chat, &s->chat_why))
		s->chat = NULL;
	s->tool_call_id = tok_id(s->tok, "<tool_call>", 11);
	rc = make_vocab(s, err);
	if (!rc && grammars_open(s->vocab, &s->grammars))
		rc = err_set(err, -ENOMEM, "out of memory");
	if (rc)
		goto fail;
	base = strrchr(cfg->model, '/');
	base = base ? base + 1 : cfg->model;
	strncpy(s->model_id, cfg->model_id ? cfg->model_id : base, sizeof(s->model_id) - 1);
	if (!cfg->model_id && strlen(s->model_id) > 5 && !strcmp(s->model_id + strlen(s->model_id) - 5, ".gguf"))
		s->model_id[strlen(s->model_id) - 5] = 0;
	s->slots = calloc(cfg->sessions, sizeof(*s->slots));
	if (!s->slots) {
		rc = err_set(err, -ENOMEM, "out of memory");
		goto fail;
	}
	for (; s->n_slots < cfg->sessions; s->n_slots++) {
		rc = session_open(s->engine, &s->slots[s->n_slots].s, err);
		if (rc)
			goto fail;
	}
	if (cfg->stt || cfg->tts || cfg->wake) {
		rc = speech_open(cfg, s->hearth, &s->speech, err);
		if (rc)
			goto fail;
	}
	rc = keeper_open(s, &s->keeper, err);
	if (rc)
		goto fail;
	if (cfg->home) {
		rc = home_load(cfg->home, &s->home, err);
		if (rc)
			goto fail;
	}
	rc = prompt_size_check(cfg, engine_the_plan(s->engine), s->chat, s->tok, s->home, s->prompt_note, sizeof(s->prompt_note), err);
	if (rc)
		goto fail;
	*ret = s;
	return 0;
fail:
	service_close(s);
	return rc;
}

void service_stop(struct service *s)
{
	pthread_mutex_lock(&s->lock);
	s->stopping = true;
	pthread_cond_broadcast(&s->freed);
	pthread_mutex_unlock(&s->lock);
}

void service_close(struct service *s)
{
	if (!s)
		return;
	keeper_close(s->keeper);
	speech_close(s->speech);
	for (uint32_t i = 0; i < s->n_slots; i++) {
		session_close(s->slots[i].s);
		free(s->slots[i].held);
	}
	free(s->slots);
	grammars_close(s->grammars);
	gvocab_free(s->vocab);
	chat_free(s->chat);
	engine_close(s->engine);
	tenants_close(s->tenants);
	hearth_tenant_close(s->llm);
	hearth_close(s->hearth);
	pthread_cond_destroy(&s->freed);
	home_free(s->home);
	pthread_mutex_destroy(&s->home_lock);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

struct session *slot_session(struct slot *slot)
{
	return slot->s;
}

static struct slot *best_free(struct service *s, const int32_t *tokens, size_t n, uint64_t conversation)
{
	struct slot *best = NULL;
	size_t best_n = 0;

	for (uint32_t i = 0; i < s->n_slots; i++) {
		struct slot *p = &s->slots[i];
		size_t k = 0;

		if (p->busy)
			continue;
		while (k < n && k < p->n_held && p->held[k] == tokens[k])
			k++;
		/* Without anything in common the one unused longest gives way. */
		if (!best || k > best_n || (k == best_n && conversation && p->conversation == conversation) ||
		    (k == best_n && p->used < best->used && !(conversation && best->conversation == conversation))) {
			best = p;
			best_n = k;
		}
	}
	return best;
}

/* Lock held, and let go meanwhile: has one session given back that is over already. */
static bool settle_one(struct service *s)
{
	void (*settle)(void *run);
	void *run;

	for (uint32_t i = 0; i < s->n_slots; i++) {
		struct slot *p = &s->slots[i];

		if (!p->busy || !p->settle || p->settling)
			continue;
		settle = p->settle;
		run = p->run;
		p->settling = run;
		pthread_mutex_unlock(&s->lock);
		settle(run);
		pthread_mutex_lock(&s->lock);
		p->settling = NULL;
		pthread_cond_broadcast(&s->freed);
		return true;
	}
	return false;
}

bool service_settle(struct service *s)
{
	bool one;

	pthread_mutex_lock(&s->lock);
	one = settle_one(s);
	pthread_mutex_unlock(&s->lock);
	return one;
}

void service_done(struct service *s, struct slot *slot, void (*settle)(void *), void *run)
{
	pthread_mutex_lock(&s->lock);
	slot->settle = settle;
	slot->run = run;
	pthread_cond_broadcast(&s->freed);
	pthread_mutex_unlock(&s->lock);
}

void service_settled(struct service *s, struct slot *slot, void *run)
{
	pthread_mutex_lock(&s->lock);
	while (slot->settling == run)
		pthread_cond_wait(&s->freed, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

struct waiter {
	struct waiter *next;
};

/* Somebody else is to be served first. */
static bool outranked(const struct service *s, enum gen_prio prio, const struct waiter *w)
{
	for (int p = GEN_VOICE; p > (int)prio; p--)
		if (s->waiting[p])
			return true;
	return s->line[prio] != w;
}

static void line_up(struct service *s, enum gen_prio prio, struct waiter *w)
{
	struct waiter **at = &s->line[prio];

	while (*at)
		at = &(*at)->next;
	*at = w;
	s->waiting[prio]++;
}

static void step_out(struct service *s, enum gen_prio prio, struct waiter *w)
{
	struct waiter **at = &s->line[prio];

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	s->waiting[prio]--;
}

int service_take(struct service *s, const int32_t *tokens, size_t n, enum gen_prio prio, uint64_t conversation, int wait_ms,
		 bool (*gone)(void *), void *arg, struct slot **ret, struct hearth_err *err)
{
	static _Atomic uint64_t clock;
	const int64_t until = mono_ns() + (int64_t)wait_ms * 1000000;
	struct timespec step;
	struct waiter w = { NULL };
	struct slot *p = NULL;
	uint32_t queued = 0;
	int rc = 0;

	pthread_mutex_lock(&s->lock);
	for (int i = 0; i <= GEN_VOICE; i++)
		queued += s->waiting[i];
	if (queued >= s->queue)
		rc = err_set(err, -EAGAIN, "%u requests are waiting already, which is the limit", queued);
	if (rc) {
		pthread_mutex_unlock(&s->lock);
		return rc;
	}
	line_up(s, prio, &w);
	for (;;) {
		if (s->stopping) {
			rc = err_set(err, -ESHUTDOWN, "the server is stopping");
			break;
		}
		p = outranked(s, prio, &w) ? NULL : best_free(s, tokens, n, conversation);
		if (p)
			break;
		if (!outranked(s, prio, &w) && settle_one(s))
			continue;
		if (mono_ns() >= until) {
			rc = err_set(err, -ETIMEDOUT, "all %u sessions were busy for %d s", s->n_slots, wait_ms / 1000);
			break;
		}
		step = mono_after(200);
		pthread_cond_timedwait(&s->freed, &s->lock, &step);
		/* A client that left must not hold its place in the queue. */
		if (gone && gone(arg)) {
			rc = err_set(err, -ECANCELED, "the client went away");
			break;
		}
	}
	step_out(s, prio, &w);
	if (!rc) {
		p->busy = true;
		p->used = ++clock;
		p->conversation = conversation;
		*ret = p;
	}
	/* Whoever was behind may go now. */
	pthread_cond_broadcast(&s->freed);
	pthread_mutex_unlock(&s->lock);
	return rc;
}

void service_give(struct service *s, struct slot *slot, const int32_t *tokens, size_t n)
{
	int32_t *copy = tokens ? malloc((n ? n : 1) * sizeof(*copy)) : NULL;

	if (copy && n)
		memcpy(copy, tokens, n * sizeof(*copy));
	pthread_mutex_lock(&s->lock);
	if (tokens) {
		free(slot->held);
		slot->held = copy;
		slot->n_held = copy ? n : 0;
	}
	slot->busy = false;
	slot->settle = NULL;
	pthread_cond_broadcast(&s->freed);
	pthread_mutex_unlock(&s->lock);
}

uint64_t service_kv_bytes(const struct service *s, uint64_t tokens)
{
	return (tokens + KV_PAGE - 1) / KV_PAGE * KV_PAGE * engine_the_plan(s->engine)->kv_bytes_per_token;
}

uint32_t service_most_tokens(struct service *s, int who)
{
	const struct keyring_limits l = keyring_limits(s->keys, who);
	const uint32_t ctx = engine_the_plan(s->engine)->ctx;
	uint64_t budget = tenants_max(s->tenants, l.tenant), tokens;

	if (l.kv_max && l.kv_max < budget)
		budget = l.kv_max;
	tokens = budget / service_kv_bytes(s, 1) * KV_PAGE;
	return tokens < ctx ? (uint32_t)tokens : ctx;
}

void service_count(struct service *s, const struct gen_result *r)
{
	double ttft;

	s->prompt_tokens += r->n_prompt;
	s->cached_tokens += r->n_cached;
	s->output_tokens += r->n_out;
	if (r->finish == GEN_CANCELLED)
		s->cancelled++;
	if (r->t_first && r->t_submit) {
		s->ttft_ns += r->t_first - r->t_submit;
		s->ttft_count++;
		ttft = (double)(r->t_first - r->t_submit) / 1e9;
		for (int i = 0; i < 16; i++)
			if (ttft <= service_buckets[i])
				s->ttft_bucket[i]++;
	}
	if (r->t_last > r->t_first)
		s->decode_ns += r->t_last - r->t_first;
}
