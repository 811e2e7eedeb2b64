// SPDX-License-Identifier: MIT
#include "unit.h"
#include "synth.h"
#include "sample/sampler.h"

#include <math.h>

#define V 50u

static struct sampler *open_one(void)
{
	struct hearth_err err = { 0 };
	struct sampler *s;

	assert_int_equal(sampler_open(V, &s, &err), 0);
	return s;
}

static void start(struct sampler *s, const struct sampler_params *p, const int32_t *prompt, uint32_t n)
{
	struct hearth_err err = { 0 };

	if (sampler_start(s, p, prompt, n, &err))
		fail_msg("%s", err.text);
}

static const float base[8] = { 1.0f, 3.0f, 2.0f, 3.0f, -1.0f, 0.5f, 2.5f, -4.0f };

static void fill(float *l)
{
	for (uint32_t i = 0; i < V; i++)
		l[i] = i < 8 ? base[i] : -20.0f;
}

static int32_t pick(struct sampler *s, const uint32_t *mask)
{
	struct sampler_pick p;
	float l[V];

	fill(l);
	assert_int_equal(sampler_pick(s, l, mask, &p), 0);
	return p.token;
}

/* How often each token comes, of n. */
static void shares(struct sampler *s, double *share, int n)
{
	memset(share, 0, V * sizeof(*share));
	for (int i = 0; i < n; i++)
		share[pick(s, NULL)] += 1.0 / n;
}

static void greedy(void **state)
{
	struct sampler *s = open_one();
	struct sampler_params p;
	uint32_t mask[2] = { ~0u, ~0u };

	sampler_defaults(&p);
	start(s, &p, NULL, 0);
	assert_int_equal(pick(s, NULL), 1);       /* of two equal ones the lower id */
	mask[0] = ~2u;
	assert_int_equal(pick(s, mask), 3);
	sampler_close(s);
}

static void probabilities(void **state)
{
	struct sampler *s = open_one();
	struct sampler_params p;
	double share[V], want[V], sum;
	const int n = 200000;
	/* 5 standard deviations of a share of 1/2 */
	const double tol = 5 * 0.5 / sqrt(n);

	for (int c = 0; c < 6; c++) {
		sampler_defaults(&p);
		p.temp = 1;
		p.seed = 42 + (uint64_t)c;
		sum = 0;
		for (uint32_t i = 0; i < V; i++)
			want[i] = exp(i < 8 ? base[i] : -20);
		switch (c) {
		case 0:
			break;
		case 1:
			p.temp = 0.5f;
			for (uint32_t i = 0; i < V; i++)
				want[i] *= want[i];
			break;
		case 2:                           /* the ties at 3.0, then 2.5 */
			p.top_k = 3;
			for (uint32_t i = 0; i < V; i++)
				want[i] *= i == 1 || i == 3 || i == 6;
			break;
		case 3:                           /* two of three at the border: the lower id */
			p.top_k = 1;
			for (uint32_t i = 0; i < V; i++)
				want[i] *= i == 1;
			break;
		case 4: {
			/* e^3 + e^3 + e^2.5 of the whole are 0.80; + e^2 are 0.92 */
			p.top_p = 0.9f;
			for (uint32_t i = 0; i < V; i++)
				want[i] *= i == 1 || i == 3 || i == 6 || i == 2;
			break;
		}
		default:                          /* e^(x - 3) >= 0.3: x >= 1.796 */
			p.min_p = 0.3f;
			for (uint32_t i = 0; i < V; i++)
				want[i] *= i < 8 && base[i] > 1.796f;
		}
		start(s, &p, NULL, 0);
		shares(s, share, n);
		for (uint32_t i = 0; i < V; i++)
			sum += want[i];
		for (uint32_t i = 0; i < V; i++) {
			if (fabs(share[i] - want[i] / sum) > tol || (want[i] == 0 && share[i] > 0))
				fail_msg("case %d token %u: %.4f, not %.4f", c, i, share[i], want[i] / sum);
		}
	}
	sampler_close(s);
}

static void together(void **state)
{
	struct sampler *s = open_one();
	struct sampler_params p;
	double share[V];

	/* top-k 4 keeps 1 3 6 2; of these top-p 0.6 keeps 1 and 3 (0.76 of the mass). */
	sampler_defaults(&p);
	p.temp = 2;
	p.top_k = 4;
	p.top_p = 0.6f;
	p.seed = 9;
	start(s, &p, NULL, 0);
	shares(s, share, 50000);
	assert_true(fabs(share[1] - 0.5) < 0.02 && fabs(share[3] - 0.5) < 0.02);
	p.top_p = 1;
	p.min_p = 1;                      /* only what is as likely as the best */
	start(s, &p, NULL, 0);
	shares(s, share, 50000);
	assert_true(fabs(share[1] - 0.5) < 0.02 && fabs(share[3] - 0.5) < 0.02);
	p.min_p = 0;
	p.top_k = 0;
	p.top_p = 0;                      /* the best one always stays */
	start(s, &p, NULL, 0);
	shares(s, share, 1000);
	assert_true(share[1] > 0.9999);
	sampler_close(s);
}

static void seeds(void **state)
{
	/* Made by this code once, on x86-64 under gcc: every other machine must agree. */
	static const int32_t known[12] = { 5, 6, 0, 3, 3, 2, 2, 6, 1, 0, 2, 4 };
	struct sampler *s = open_one();
	struct sampler_params p;
	int32_t a[12], b[12], other = 0;

	sampler_defaults(&p);
	p.temp = 1.5f;
	p.seed = 12345;
	start(s, &p, NULL, 0);
	for (int i = 0; i < 12; i++)
		a[i] = pick(s, NULL);
	start(s, &p, NULL, 0);
	for (int i = 0; i < 12; i++)
		b[i] = pick(s, NULL);
	assert_memory_equal(a, b, sizeof(a));
	assert_memory_equal(a, known, sizeof(a));
	p.seed = 12346;
	start(s, &p, NULL, 0);
	for (int i = 0; i < 12; i++)
		other += pick(s, NULL) != a[i];
	assert_true(other > 0);
	assert_int_equal(sampler_seed(s), 12346);
	p.seed = 0;
	start(s, &p, NULL, 0);
	assert_true(sampler_seed(s) != 0);
	sampler_close(s);
}

static void penalties(void **state)
{
	struct sampler *s = open_one();
	struct sampler_params p;
	const int32_t seen[6] = { 7, 7, 1, 1, 1, 3 };
	struct sampler_pick got;
	float l[V];

	sampler_defaults(&p);
	p.rep_pen = 2;
	start(s, &p, seen, 6);
	fill(l);
	assert_int_equal(sampler_pick(s, l, NULL, &got), 0);
	assert_int_equal(got.token, 6);
	/* Once each, however often they stand there; negative ones are multiplied. */
	assert_true(l[1] == 1.5f && l[3] == 1.5f && l[7] == -8.0f && l[2] == 2.0f);
	sampler_defaults(&p);
	p.freq_pen = 0.25f;
	p.pres_pen = 0.5f;
	start(s, &p, seen, 6);
	fill(l);
	assert_int_equal(sampler_pick(s, l, NULL, &got), 0);
	assert_true(l[1] == 3 - 3 * 0.25f - 0.5f && l[3] == 3 - 0.25f - 0.5f && l[7] == -4 - 2 * 0.25f - 0.5f);
	/* A window of two sees only the last two. */
	p.pen_last = 2;
	start(s, &p, seen, 6);
	fill(l);
	assert_int_equal(sampler_pick(s, l, NULL, &got), 0);
	assert_true(l[1] == 3 - 0.25f - 0.5f && l[3] == 3 - 0.25f - 0.5f && l[7] == -4);
	p.pen_last = 0;
	start(s, &p, seen, 6);
	fill(l);
	assert_int_equal(sampler_pick(s, l, NULL, &got), 0);
	assert_true(l[1] == 3);
	sampler_close(s);
}

/* The counts of the window after many tokens, against counting them. */
static void penalty_window(void **state)
{
	struct sampler *s = open_one();
	struct sampler_params p;
	int32_t hist[3000];
	struct sampler_pick got;
	uint64_t seed = 4;
	float l[V];

	sampler_defaults(&p);
	p.freq_pen = 0.125f;
	p.pen_last = 37;
	start(s, &p, NULL, 0);
	for (int i = 0; i < 3000; i++) {
		float want[V];

		for (uint32_t k = 0; k < V; k++)
			want[k] = l[k] = 8.0f * (float)(synth_rand(&seed) % 16);
		for (int k = i > 37 ? i - 37 : 0; k < i; k++)
			want[hist[k]] -= 0.125f;
		assert_int_equal(sampler_pick(s, l, NULL, &got), 0);
		assert_memory_equal(l, want, sizeof(l));
		hist[i] = got.token;
	}
	sampler_close(s);
}

static void bias_and_mask(void **state)
{
	struct sampler *s = open_one();
	const struct sampler_bias b[] = { { 1, -INFINITY }, { 3, -10 }, { 4, 100 } };
	struct sampler_params p;
	struct sampler_pick got;
	uint32_t none[2] = { 0, 0 }, one[2] = { 0, 1u << 10 };
	float l[V];

	sampler_defaults(&p);
	p.bias = b;
	p.n_bias = 2;
	start(s, &p, NULL, 0);
	assert_int_equal(pick(s, NULL), 6);
	p.n_bias = 3;
	start(s, &p, NULL, 0);
	assert_int_equal(pick(s, NULL), 4);
	assert_int_equal(pick(s, one), 42);
	fill(l);
	assert_int_equal(sampler_pick(s, l, none, &got), -ENODATA);
	for (int t = 0; t < 2; t++) {
		p.temp = (float)t;
		start(s, &p, NULL, 0);
		assert_int_equal(pick(s, one), 42);
	}
	fill(l);
	l[20] = NAN;
	assert_int_equal(sampler_pick(s, l, NULL, &got), -EDOM);
	for (uint32_t i = 0; i < V; i++)
		l[i] = -INFINITY;
	assert_int_equal(sampler_pick(s, l, NULL, &got), -EDOM);
	fill(l);
	l[2] = INFINITY;
	assert_int_equal(sampler_pick(s, l, NULL, &got), -EDOM);
	sampler_close(s);
}

static void logprobs(void **state)
{
	struct sampler *s = open_one();
	const struct sampler_bias b[] = { { 6, 50 } };
	struct sampler_params p;
	struct sampler_pick got;
	double norm = 0;
	float l[V];

	for (uint32_t i = 0; i < V; i++)
		norm += exp(i < 8 ? base[i] : -20);
	norm = log(norm);
	for (int t = 0; t < 2; t++) {
		sampler_defaults(&p);
		p.temp = 0.7f * (float)t;
		p.logprobs = true;
		p.n_logprobs = 5;
		p.bias = b;
		p.n_bias = 1;
		start(s, &p, NULL, 0);
		fill(l);
		assert_int_equal(sampler_pick(s, l, NULL, &got), 0);
		/* Chosen because of the bias; reported as the model had it. */
		assert_int_equal(got.token, 6);
		assert_true(fabs(got.logprob - (2.5 - norm)) < 1e-5);
		assert_int_equal(got.n_top, 5);
		assert_int_equal(got.top[0].token, 1);
		assert_int_equal(got.top[1].token, 3);
		assert_int_equal(got.top[2].token, 6);
		assert_int_equal(got.top[3].token, 2);
		assert_int_equal(got.top[4].token, 0);
		assert_true(fabs(got.top[4].logprob - (1.0 - norm)) < 1e-5);
	}
	fill(l);
	assert_true(fabs(sampler_log_norm(l, V) - norm) < 1e-9);
	sampler_close(s);
}

static void refusals(void **state)
{
	struct sampler_bias b = { 0, 0 };
	struct sampler *s = open_one();
	struct sampler_params p;
	struct hearth_err err;

#define BAD(field, value, word) do { \
	sampler_defaults(&p); \
	p.field = value; \
	p.bias = &b; \
	err.text[0] = 0; \
	assert_int_equal(sampler_start(s, &p, NULL, 0, &err), -EINVAL); \
	assert_non_null(strstr(err.text, word)); \
} while (0)
	BAD(temp, -0.1f, "temperature");
	BAD(temp, 2.1f, "temperature");
	BAD(temp, NAN, "temperature");
	BAD(top_p, 1.01f, "top_p");
	BAD(min_p, -1, "min_p");
	BAD(rep_pen, 0, "repetition");
	BAD(freq_pen, 3, "frequency");
	BAD(pres_pen, -3, "presence");
	BAD(pen_last, SAMPLER_WINDOW + 1, "window");
	BAD(n_logprobs, 21, "top log");
	BAD(n_bias, SAMPLER_MAX_BIAS + 1, "biases");
	b.token = (int32_t)V;
	BAD(n_bias, 1, "vocabulary");
	b.token = -1;
	BAD(n_bias, 1, "vocabulary");
	b = (struct sampler_bias){ 0, NAN };
	BAD(n_bias, 1, "not a number");
	b.add = INFINITY;
	BAD(n_bias, 1, "not a number");
	sampler_close(s);
	sampler_close(NULL);
}

/* -- stop strings -------------------------------------------------------------- */

/* The text shown for a text cut into pieces; which: index, or -1. */
static void run_stop(const char *const *str, uint32_t n, const char *text, uint64_t cuts, char *out, int *which)
{
	struct hearth_err err = { 0 };
	struct stop_match m;
	char buf[1024];
	size_t at = 0, total = strlen(text), len;
	uint32_t w;

	assert_int_equal(stop_init(&m, str, n, &err), 0);
	*out = 0;
	*which = -1;
	while (at < total) {
		size_t k = cuts ? 1 + synth_rand(&cuts) % 4 : total;

		if (k > total - at)
			k = total - at;
		if (stop_push(&m, text + at, k, buf, &len, &w)) {
			strncat(out, buf, len);
			*which = (int)w;
			return;
		}
		strncat(out, buf, len);
		at += k;
	}
	len = stop_flush(&m, buf);
	strncat(out, buf, len);
}

static void stop_strings(void **state)
{
	static const char *const s1[] = { "\nUser:", "END" }, *const s2[] = { "abcd", "bc" };
	static const struct {
		const char *const *s;
		uint32_t n;
		const char *text, *want;
		int which;
	} c[] = {
		{ s1, 2, "hello\nUser: x", "hello", 0 },
		{ s1, 2, "hello\nUse", "hello\nUse", -1 },
		{ s1, 2, "the ENDING", "the ", 1 },
		{ s1, 2, "EEND", "E", 1 },
		{ s1, 2, "\n\nUser:", "\n", 0 },
		{ s2, 2, "abcd", "a", 1 },           /* "bc" is complete first */
		{ s2, 1, "xababcd", "xab", 0 },
		{ NULL, 0, "anything", "anything", -1 },
	};
	char out[1024];
	int which;

	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		for (uint64_t cut = 0; cut < 50; cut++) {
			run_stop(c[i].s, c[i].n, c[i].text, cut, out, &which);
			assert_string_equal(out, c[i].want);
			assert_int_equal(which, c[i].which);
		}
	}
}

static void stop_random(void **state)
{
	uint64_t seed = 8;
	char out[1024], one[1024];

	for (int round = 0; round < 20000; round++) {
		char text[64], str[3][8];
		const char *ptr[3] = { str[0], str[1], str[2] };
		uint32_t n = 1 + (uint32_t)(synth_rand(&seed) % 3);
		size_t len = synth_rand(&seed) % 60, first = len + 1, from = 0;
		int w, w2;

		for (uint32_t i = 0; i < n; i++) {
			size_t k = 1 + synth_rand(&seed) % 5;

			for (size_t j = 0; j < k; j++)
				str[i][j] = (char)('a' + synth_rand(&seed) % 2);
			str[i][k] = 0;
		}
		for (size_t j = 0; j < len; j++)
			text[j] = (char)('a' + synth_rand(&seed) % 2);
		text[len] = 0;
		/* By looking at the whole text: the first end of any, the longest there. */
		for (uint32_t i = 0; i < n; i++) {
			const char *at = strstr(text, str[i]);
			size_t end;

			if (!at)
				continue;
			end = (size_t)(at - text) + strlen(str[i]);
			if (end < first || (end == first && (size_t)(at - text) < from)) {
				first = end;
				from = (size_t)(at - text);
			}
		}
		run_stop(ptr, n, text, 0, one, &w);
		run_stop(ptr, n, text, synth_rand(&seed) | 1, out, &w2);
		assert_string_equal(out, one);
		assert_int_equal(w, w2);
		if (first <= len)
			text[from] = 0;
		assert_string_equal(out, text);
		assert_int_equal(w >= 0, first <= len);
	}
}

static void stop_refusals(void **state)
{
	const char *many[STOP_MAX + 1], *empty = "";
	char longer[STOP_MAX_BYTES + 2];
	const char *lp = longer;
	struct hearth_err err = { 0 };
	struct stop_match m;

	for (uint32_t i = 0; i <= STOP_MAX; i++)
		many[i] = "x";
	memset(longer, 'x', sizeof(longer));
	longer[STOP_MAX_BYTES + 1] = 0;
	assert_int_equal(stop_init(&m, many, STOP_MAX + 1, &err), -EINVAL);
	assert_int_equal(stop_init(&m, &empty, 1, &err), -EINVAL);
	assert_int_equal(stop_init(&m, &lp, 1, &err), -EINVAL);
	longer[STOP_MAX_BYTES] = 0;
	assert_int_equal(stop_init(&m, &lp, 1, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(greedy),
		cmocka_unit_test(probabilities),
		cmocka_unit_test(together),
		cmocka_unit_test(seeds),
		cmocka_unit_test(penalties),
		cmocka_unit_test(penalty_window),
		cmocka_unit_test(bias_and_mask),
		cmocka_unit_test(logprobs),
		cmocka_unit_test(refusals),
		cmocka_unit_test(stop_strings),
		cmocka_unit_test(stop_random),
		cmocka_unit_test(stop_refusals),
	};

	return UNIT_RUN(tests);
}
