/* SPDX-License-Identifier: MIT */
/*
 * From one row of logits to a token. Order, fixed: logit bias, mask,
 * penalties, then greedy when temperature is 0, else top-k, top-p, min-p on
 * the distribution before temperature, temperature, draw. The same seed and
 * the same logits give the same token on every machine: the draw is integer
 * arithmetic (PCG32), exponentials are computed here, ties go to the lower id.
 *
 * Log-probabilities are of the model's own distribution: before bias, mask,
 * penalties and temperature.
 */
#ifndef HEARTH_SAMPLE_SAMPLER_H
#define HEARTH_SAMPLE_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define SAMPLER_TOP_LOGPROBS 20u
#define SAMPLER_MAX_BIAS     1024u
#define SAMPLER_WINDOW       4096u  /* most tokens penalties can look back */

struct sampler_bias {
	int32_t token;
	float add;                /* -INFINITY forbids */
};

struct sampler_params {
	float temp;               /* 0 greedy; <= 2 */
	uint32_t top_k;           /* 0 off */
	float top_p;              /* 1 off */
	float min_p;              /* 0 off */
	float rep_pen;            /* 1 off: divides positive, multiplies negative logits */
	float freq_pen, pres_pen; /* 0 off: OpenAI's, subtracted */
	uint32_t pen_last;        /* tokens the penalties look back, 0: none; default 64 */
	uint64_t seed;            /* 0: from the clock; the one used is reported */
	const struct sampler_bias *bias;
	uint32_t n_bias;
	uint32_t n_logprobs;      /* alternatives reported per token, <= 20 */
	bool logprobs;            /* report the chosen token's */
};

void sampler_defaults(struct sampler_params *p);   /* greedy, all off */
/* Refuses values out of range, by name. */
int sampler_check(const struct sampler_params *p, uint32_t vocab, struct hearth_err *err);

struct sampler_top { int32_t token; float logprob; };

struct sampler_pick {
	int32_t token;
	float logprob;                             /* NAN unless asked */
	uint32_t n_top;
	struct sampler_top top[SAMPLER_TOP_LOGPROBS];  /* best first */
};

/*
 * Says which tokens may come next: clears bits of mask[(vocab+31)/32] (all 1 at
 * call). 0, or -errno which ends the generation with GEN_ERROR.
 */
typedef int (*sampler_mask_fn)(void *arg, uint32_t *mask, uint32_t vocab);

struct sampler;

size_t sampler_host_bytes(uint32_t vocab);
int sampler_open(uint32_t vocab, struct sampler **ret, struct hearth_err *err);
void sampler_close(struct sampler *s);

/* Starts a request. @prompt (its last tokens) is what penalties already see. */
int sampler_start(struct sampler *s, const struct sampler_params *p,
		  const int32_t *prompt, uint32_t n_prompt, struct hearth_err *err);
uint64_t sampler_seed(const struct sampler *s);

/*
 * Chooses from @logits [vocab], which it may overwrite. @mask: bit per token,
 * or NULL. -ENODATA when the mask (or the bias) leaves no token; -EDOM when the
 * logits hold a NaN or nothing finite.
 */
int sampler_pick(struct sampler *s, float *logits, const uint32_t *mask,
		 struct sampler_pick *ret);

/*
 * The token that sampler_pick() chooses under every mask that allows it: the
 * best, where the best is chosen and nothing changes the logits. -1: not so.
 */
int32_t sampler_best(const struct sampler *s, const float *logits);

/* log(sum(e^logit)): logit minus it is the log-probability. */
double sampler_log_norm(const float *logits, uint32_t vocab);

/*
 * What a device needs to know to choose the token that sampler_pick() would.
 * false: only the host can (biases, log-probabilities). The draw is taken from
 * the generator; sampler_unask() puts it back when the host must choose after
 * all. The token then goes to sampler_accept().
 */
struct sampler_ask {
	const struct sampler_params *params;
	const int32_t *recent;    /* [n_recent], in no order */
	uint32_t n_recent;
	double u;                 /* [0, 1) */
};
bool sampler_ask(struct sampler *s, struct sampler_ask *ret);
void sampler_unask(struct sampler *s);

/* Records a token that was forced or chosen elsewhere (penalties see it). */
void sampler_accept(struct sampler *s, int32_t token);

/* -- stop strings ----------------------------------------------------------- */

#define STOP_MAX       16u
#define STOP_MAX_BYTES 256u

/*
 * Finds stop strings across token borders. Text that might be the beginning of
 * one is held back until it is decided.
 */
struct stop_match {
	uint32_t n;
	const char *str[STOP_MAX];
	size_t len[STOP_MAX];
	char held[STOP_MAX_BYTES];
	size_t n_held;
};

int stop_init(struct stop_match *m, const char *const *str, uint32_t n, struct hearth_err *err);

/*
 * Adds @text; ret_text [*ret_len] is what may be shown now, in @out, which must
 * have room for STOP_MAX_BYTES + len bytes. True when a stop string was met:
 * what comes before it is in ret_text, it and what follows is dropped, and
 * *ret_which is its index.
 */
bool stop_push(struct stop_match *m, const char *text, size_t len,
	       char *out, size_t *ret_len, uint32_t *ret_which);
/* The end of the text: what was held back is shown after all. */
size_t stop_flush(struct stop_match *m, char *out);

#endif
