// SPDX-License-Identifier: MIT
/*
 * Everything that decides is done in double or integer arithmetic of a fixed
 * order, with an exponential made of +, * and exponent bits, and this file is
 * compiled without fused products: that is what makes a seed repeatable from
 * one machine to the next.
 */
#include "sample/sampler.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COUNT_SLOTS (2 * SAMPLER_WINDOW)   /* open addressing, at most half full */

struct cand {
	float logit;
	int32_t id;
};

struct sampler {
	uint32_t vocab;
	struct sampler_params p;
	struct sampler_bias bias[SAMPLER_MAX_BIAS];
	uint64_t seed, state, inc;           /* PCG32 */
	int32_t window[SAMPLER_WINDOW];      /* ring of what the penalties see */
	uint32_t n_window, at;
	struct count {
		int32_t id;
		uint32_t n;                  /* 0: free, or all left the window */
	} count[COUNT_SLOTS];
	uint64_t state_before;               /* of the last sampler_ask() */
	struct cand *cand;                   /* [vocab] */
	float *own;                          /* [vocab] the logits before they are changed */
};

/* -- arithmetic -------------------------------------------------------------- */

/* e^x for x <= 0, relative error about 1e-15; 0 below -700. */
static double exp_neg(double x)
{
	double n, r, p;
	uint64_t bits;

	if (!(x > -700))
		return 0;
	n = floor(x * 1.4426950408889634 + 0.5);
	r = x - n * 0.693147180369123816490;
	r = r - n * 1.90821492927058770002e-10;
	p = 1.0 / 6227020800.0;
	p = p * r + 1.0 / 479001600.0;
	p = p * r + 1.0 / 39916800.0;
	p = p * r + 1.0 / 3628800.0;
	p = p * r + 1.0 / 362880.0;
	p = p * r + 1.0 / 40320.0;
	p = p * r + 1.0 / 5040.0;
	p = p * r + 1.0 / 720.0;
	p = p * r + 1.0 / 120.0;
	p = p * r + 1.0 / 24.0;
	p = p * r + 1.0 / 6.0;
	p = p * r + 0.5;
	p = p * r + 1.0;
	p = p * r + 1.0;
	bits = (uint64_t)((int64_t)n + 1023) << 52;
	memcpy(&r, &bits, sizeof(r));
	return p * r;
}

static uint32_t pcg32(struct sampler *s)
{
	const uint64_t old = s->state;
	uint32_t x, rot;

	s->state = old * 6364136223846793005ull + s->inc;
	x = (uint32_t)(((old >> 18) ^ old) >> 27);
	rot = (uint32_t)(old >> 59);
	return x >> rot | x << (-rot & 31);
}

/* [0, 1) with 53 bits */
static double uniform(struct sampler *s)
{
	const uint64_t hi = pcg32(s), lo = pcg32(s);

	return (double)((hi << 32 | lo) >> 11) * (1.0 / 9007199254740992.0);
}

/* -- parameters ----------------------------------------------------------------- */

void sampler_defaults(struct sampler_params *p)
{
	*p = (struct sampler_params){ .top_p = 1, .rep_pen = 1, .pen_last = 64 };
}

static int between(struct hearth_err *err, const char *what, double v, double lo, double hi)
{
	if (v >= lo && v <= hi)
		return 0;
	return err_set(err, -EINVAL, "%s is %g; %g to %g is possible", what, v, lo, hi);
}

int sampler_check(const struct sampler_params *p, uint32_t vocab, struct hearth_err *err)
{
	uint32_t i;
	int r;

	if ((r = between(err, "temperature", p->temp, 0, 2)) ||
	    (r = between(err, "top_p", p->top_p, 0, 1)) ||
	    (r = between(err, "min_p", p->min_p, 0, 1)) ||
	    (r = between(err, "repetition penalty", p->rep_pen, 0.1, 10)) ||
	    (r = between(err, "frequency penalty", p->freq_pen, -2, 2)) ||
	    (r = between(err, "presence penalty", p->pres_pen, -2, 2)) ||
	    (r = between(err, "penalty window", p->pen_last, 0, SAMPLER_WINDOW)) ||
	    (r = between(err, "number of logit biases", p->n_bias, 0, SAMPLER_MAX_BIAS)) ||
	    (r = between(err, "number of top log-probabilities", p->n_logprobs, 0, SAMPLER_TOP_LOGPROBS)))
		return r;
	for (i = 0; i < p->n_bias; i++) {
		if (p->bias[i].token < 0 || (uint32_t)p->bias[i].token >= vocab)
			return err_set(err, -EINVAL, "logit bias for token %d; the vocabulary has %u",
				       p->bias[i].token, vocab);
		if (isnan(p->bias[i].add) || p->bias[i].add == INFINITY)
			return err_set(err, -EINVAL, "logit bias for token %d is not a number to add",
				       p->bias[i].token);
	}
	return 0;
}

size_t sampler_host_bytes(uint32_t vocab)
{
	return sizeof(struct sampler) + (size_t)vocab * (sizeof(struct cand) + sizeof(float));
}

int sampler_open(uint32_t vocab, struct sampler **ret, struct hearth_err *err)
{
	struct sampler *s = calloc(1, sampler_host_bytes(vocab));

	if (!s)
		return err_set(err, -ENOMEM, "no memory for a sampler over %u tokens", vocab);
	s->vocab = vocab;
	s->cand = (struct cand *)(s + 1);
	s->own = (float *)(s->cand + vocab);
	*ret = s;
	return 0;
}

void sampler_close(struct sampler *s)
{
	free(s);
}

uint64_t sampler_seed(const struct sampler *s)
{
	return s->seed;
}

/* -- penalties -------------------------------------------------------------------- */

static struct count *count_of(struct sampler *s, int32_t id)
{
	uint32_t i = (uint32_t)id * 2654435761u % COUNT_SLOTS;

	while (s->count[i].n && s->count[i].id != id)
		i = (i + 1) % COUNT_SLOTS;
	return &s->count[i];
}

/* Takes one out; the probe chain behind it is put in again so that no gap hides it. */
static void count_less(struct sampler *s, int32_t id)
{
	struct count *c = count_of(s, id);
	uint32_t i;

	if (!c->n || --c->n)
		return;
	i = (uint32_t)(c - s->count);
	for (i = (i + 1) % COUNT_SLOTS; s->count[i].n; i = (i + 1) % COUNT_SLOTS) {
		const struct count moved = s->count[i];

		s->count[i].n = 0;
		*count_of(s, moved.id) = moved;
	}
}

void sampler_accept(struct sampler *s, int32_t token)
{
	struct count *c;

	if (!s->p.pen_last)
		return;
	if (s->n_window == s->p.pen_last)
		count_less(s, s->window[s->at]);
	else
		s->n_window++;
	s->window[s->at] = token;
	s->at = (s->at + 1) % s->p.pen_last;
	c = count_of(s, token);
	c->id = token;
	c->n++;
}

int sampler_start(struct sampler *s, const struct sampler_params *p, const int32_t *prompt,
		  uint32_t n_prompt, struct hearth_err *err)
{
	struct timespec now;
	uint32_t i;
	int r = sampler_check(p, s->vocab, err);

	if (r)
		return r;
	s->p = *p;
	if (p->n_bias)
		memcpy(s->bias, p->bias, p->n_bias * sizeof(*p->bias));
	s->p.bias = s->bias;
	s->seed = p->seed;
	if (!s->seed) {
		clock_gettime(CLOCK_REALTIME, &now);
		s->seed = (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
	}
	s->state = 0;
	s->inc = s->seed << 1 | 1;
	pcg32(s);
	s->state += s->seed;
	pcg32(s);
	memset(s->count, 0, sizeof(s->count));
	s->n_window = s->at = 0;
	i = n_prompt > s->p.pen_last ? n_prompt - s->p.pen_last : 0;
	for (; i < n_prompt; i++)
		sampler_accept(s, prompt[i]);
	return 0;
}

static void penalise(struct sampler *s, float *logits)
{
	const struct sampler_params *p = &s->p;
	uint32_t i;

	if (p->rep_pen == 1 && !p->freq_pen && !p->pres_pen)
		return;
	for (i = 0; i < COUNT_SLOTS; i++) {
		const struct count *c = &s->count[i];
		float *l;

		if (!c->n)
			continue;
		l = &logits[c->id];
		*l = *l > 0 ? *l / p->rep_pen : *l * p->rep_pen;
		*l -= (float)c->n * p->freq_pen + p->pres_pen;
	}
}

/* -- log-probabilities --------------------------------------------------------------- */

static bool better(struct sampler_top a, struct sampler_top b)
{
	return a.logprob > b.logprob || (a.logprob == b.logprob && a.token < b.token);
}

static void top_logprobs(const float *logits, uint32_t vocab, uint32_t n, struct sampler_pick *ret)
{
	uint32_t i, k;

	ret->n_top = 0;
	for (i = 0; i < vocab; i++) {
		const struct sampler_top t = { (int32_t)i, logits[i] };

		if (ret->n_top == n && !better(t, ret->top[n - 1]))
			continue;
		k = ret->n_top < n ? ret->n_top++ : n - 1;
		for (; k > 0 && better(t, ret->top[k - 1]); k--)
			ret->top[k] = ret->top[k - 1];
		ret->top[k] = t;
	}
}

/* max + log(sum(e^(l - max))): what a logit loses to become a log-probability */
static double log_norm(const float *logits, uint32_t vocab, float max)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < vocab; i++)
		sum += exp_neg((double)logits[i] - max);
	return max + log(sum);
}

double sampler_log_norm(const float *logits, uint32_t vocab)
{
	float max = -INFINITY;
	uint32_t i;

	for (i = 0; i < vocab; i++)
		max = logits[i] > max ? logits[i] : max;
	return log_norm(logits, vocab, max);
}

/* -- the choice ------------------------------------------------------------------------ */

static bool before(struct cand a, struct cand b)
{
	return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

static void sift(struct cand *h, uint32_t n, uint32_t i)
{
	const struct cand c = h[i];

	for (;;) {
		uint32_t k = 2 * i + 1;

		if (k >= n)
			break;
		if (k + 1 < n && before(h[k + 1], h[k]))
			k++;
		if (!before(h[k], c))
			break;
		h[i] = h[k];
		i = k;
	}
	h[i] = c;
}

/*
 * Moves the best ones to the end of c[0..n), best last, until @enough says so
 * or all are there; returns how many. A heap, so only what is needed is sorted.
 */
static uint32_t best_last(struct cand *c, uint32_t n, uint32_t top_k, double top_p, float max, double norm)
{
	uint32_t i, taken = 0;
	double sum = 0;

	for (i = n / 2; i-- > 0;)
		sift(c, n, i);
	while (taken < n && (!top_k || taken < top_k)) {
		const struct cand best = c[0];

		c[0] = c[n - 1 - taken];
		c[n - 1 - taken] = best;
		taken++;
		sift(c, n - taken, 0);
		sum += exp_neg((double)best.logit - max);
		if (sum >= top_p * norm)
			break;
	}
	return taken;
}

/* Draws from c[0..n), weights e^((l - max) / temp), in the order they stand. */
static int32_t draw(struct sampler *s, const struct cand *c, uint32_t n, float max, float temp)
{
	double sum = 0, u;
	uint32_t i;

	for (i = 0; i < n; i++)
		sum += exp_neg(((double)c[i].logit - max) / temp);
	u = uniform(s) * sum;
	for (i = 0; i + 1 < n; i++) {
		u -= exp_neg(((double)c[i].logit - max) / temp);
		if (u < 0)
			break;
	}
	return c[i].id;
}

static int32_t choose(struct sampler *s, const float *logits, float max)
{
	const struct sampler_params *p = &s->p;
	struct cand *c = s->cand;
	uint32_t i, n = 0, kept;
	float floor_ = -INFINITY;
	double norm;

	/* Fewer candidates where min-p or top-k says the rest cannot be chosen. */
	if (p->min_p > 0)
		floor_ = max + logf(p->min_p);
	for (i = 0; i < s->vocab; i++)
		if (logits[i] > -INFINITY && (logits[i] >= floor_ || p->top_k || p->top_p < 1))
			c[n++] = (struct cand){ logits[i], (int32_t)i };
	/* min-p is measured from the best token, which top-k and top-p always keep. */
	kept = n;
	if (p->top_k && p->top_k < n) {
		/* top-k, then top-p within it */
		kept = best_last(c, n, p->top_k, HUGE_VAL, max, 1);
		c += n - kept;
	}
	if (p->top_p < 1) {
		norm = 0;
		for (i = 0; i < kept; i++)
			norm += exp_neg((double)c[i].logit - max);
		n = best_last(c, kept, 0, p->top_p, max, norm);
		c += kept - n;
		kept = n;
	}
	if (p->min_p > 0) {
		for (i = n = 0; i < kept; i++)
			if (c[i].logit >= floor_)
				c[n++] = c[i];
		kept = n;
	}
	return draw(s, c, kept, max, p->temp);
}

/* The first of the highest; false when there is a NaN. */
static bool find_max(const float *l, uint32_t n, uint32_t *ret_at)
{
	uint32_t i, at = 0;
	int nan = 0;
	float max = -INFINITY;

	for (i = 0; i < n; i++) {
		nan |= l[i] != l[i];
		max = l[i] > max ? l[i] : max;
	}
	if (nan)
		return false;
	for (at = 0; at < n - 1 && l[at] != max; at++)
		;
	*ret_at = at;
	return true;
}

bool sampler_ask(struct sampler *s, struct sampler_ask *ret)
{
	const struct sampler_params *p = &s->p;

	if (p->n_bias || p->logprobs || p->n_logprobs)
		return false;
	s->state_before = s->state;
	*ret = (struct sampler_ask){
		.params = p, .recent = s->window, .n_recent = s->n_window,
		.u = p->temp == 0 ? 0 : uniform(s),
	};
	return true;
}

void sampler_unask(struct sampler *s)
{
	s->state = s->state_before;
}

int32_t sampler_best(const struct sampler *s, const float *logits)
{
	const struct sampler_params *p = &s->p;
	uint32_t at;

	if (p->temp != 0 || p->n_bias || p->rep_pen != 1 || p->freq_pen || p->pres_pen ||
	    !find_max(logits, s->vocab, &at) || !isfinite(logits[at]))
		return -1;
	return (int32_t)at;
}

/* Where a bit of @mask is 0, -INFINITY. */
static void forbid(float *logits, const uint32_t *mask, uint32_t vocab)
{
	for (uint32_t w = 0; w * 32 < vocab; w++) {
		const uint32_t n = vocab - w * 32 < 32 ? vocab - w * 32 : 32, m = mask[w];

		for (uint32_t i = 0; m != UINT32_MAX && i < n; i++)
			if (!(m >> i & 1))
				logits[w * 32 + i] = -INFINITY;
	}
}

int sampler_pick(struct sampler *s, float *logits, const uint32_t *mask, struct sampler_pick *ret)
{
	const struct sampler_params *p = &s->p;
	const bool report = p->logprobs || p->n_logprobs;
	const bool change = p->n_bias || mask || p->rep_pen != 1 || p->freq_pen || p->pres_pen;
	struct sampler_pick out = { .logprob = NAN };
	const float *own = logits;      /* the model's, for what is reported */
	double norm = 0;
	uint32_t i, at;

	if (!find_max(logits, s->vocab, &at) || !isfinite(logits[at]))
		return -EDOM;
	if (report) {
		norm = log_norm(logits, s->vocab, logits[at]);
		if (p->n_logprobs)
			top_logprobs(logits, s->vocab, p->n_logprobs, &out);
		for (i = 0; i < out.n_top; i++)
			out.top[i].logprob = (float)(out.top[i].logprob - norm);
	}
	if (change) {
		if (report) {
			memcpy(s->own, logits, s->vocab * sizeof(float));
			own = s->own;
		}
		for (i = 0; i < p->n_bias; i++)
			logits[s->bias[i].token] += s->bias[i].add;
		if (mask)
			forbid(logits, mask, s->vocab);
		penalise(s, logits);
		if (!find_max(logits, s->vocab, &at))
			return -EDOM;
		if (logits[at] == -INFINITY)
			return -ENODATA;
	}
	out.token = p->temp == 0 ? (int32_t)at : choose(s, logits, logits[at]);
	if (report)
		out.logprob = (float)(own[out.token] - norm);
	sampler_accept(s, out.token);
	*ret = out;
	return 0;
}
