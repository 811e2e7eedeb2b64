// SPDX-License-Identifier: MIT
/* Sampling on the device against the host's sampler with the same draw. */
#include "tests/gpu/kernels.h"
#include "sample/sampler.h"

enum { ROWS = 3 };

struct told { uint32_t agree, host, total, wrong; };

/* @window: tokens the penalties look back; more than the usual 64, and each row has penalties. */
static void pick_case(uint32_t vocab, uint32_t window, uint32_t rounds, struct told *x)
{
	const uint32_t words = (vocab + 31) / 32, size = ROWS * vocab;
	float *l = malloc(size * 4), *dl, *work = gpu_poison(size * 4), *one = malloc(vocab * 4);
	uint32_t *mask = malloc(ROWS * words * 4);
	int32_t *dret = gpu_poison(64), ret[ROWS], *recent = malloc(ROWS * window * 4), *prompt = malloc(window * 4);
	struct sampler *s;

	if (sampler_open(vocab, &s, NULL))
		gpu_die("sampler_open", -1);
	for (uint32_t k = 0; k < rounds; k++) {
		struct hk_pick p[ROWS];
		int32_t want[ROWS];
		void *dp, *dr, *dm;

		for (uint32_t i = 0; i < size; i++)
			l[i] = rnd_normal() * 3 + (rnd() % 500 == 0 ? 6 : 0);
		for (uint32_t i = 0; i < 40; i++)   /* ties */
			l[rnd() % size] = 9.5f;
		for (uint32_t i = 0; i < ROWS * words; i++)
			mask[i] = rnd() | rnd();
		if (rnd() % 2) {   /* as a grammar leaves them: no more than top-k would */
			memset(mask, 0, ROWS * words * 4);
			for (uint32_t i = 0; i < ROWS * words && i < 90; i++)
				mask[rnd() % (ROWS * words)] |= 1u << rnd() % 32;
		}
		for (uint32_t r = 0; r < ROWS; r++) {
			struct sampler_params sp;
			struct sampler_ask ask;
			struct sampler_pick out;
			bool masked = rnd() % 2;

			sampler_defaults(&sp);
			sp.seed = rnd() + 1;
			sp.pen_last = window;
			if (rnd() % 4)
				sp.temp = 0.2f + fabsf(rnd_f());
			if (rnd() % 2)
				sp.top_k = 1 + rnd() % 60;
			if (rnd() % 2)
				sp.top_p = 0.3f + 0.6f * fabsf(rnd_f());
			if (rnd() % 2)
				sp.min_p = 0.02f + 0.1f * fabsf(rnd_f());
			if (rnd() % 2 || window > 64) {
				sp.rep_pen = 1.3f;
				sp.freq_pen = 0.3f;
				sp.pres_pen = 0.2f;
			}
			for (uint32_t i = 0; i < window; i++)
				prompt[i] = (int32_t)(rnd() % 8 ? rnd() % vocab : 7 % vocab);
			if (sampler_start(s, &sp, prompt, window, NULL) || !sampler_ask(s, &ask) || ask.n_recent != window)
				gpu_die("sampler", -1);
			p[r] = (struct hk_pick){ .row = r, .top_k = sp.top_k, .n_recent = ask.n_recent, .recent0 = r * window,
				.mask0 = r * words, .has_mask = masked, .temp = sp.temp, .top_p = sp.top_p,
				.min_p = sp.min_p, .rep_pen = sp.rep_pen, .freq_pen = sp.freq_pen,
				.pres_pen = sp.pres_pen, .u = ask.u };
			memcpy(recent + r * window, ask.recent, ask.n_recent * 4);
			sampler_unask(s);
			memcpy(one, l + r * vocab, vocab * 4);
			want[r] = sampler_pick(s, one, masked ? mask + r * words : NULL, &out) ? -1 : out.token;
		}
		dl = gpu_put(l, size * 4);
		dp = gpu_put(p, sizeof(p));
		dr = gpu_put(recent, ROWS * window * 4);
		dm = gpu_put(mask, ROWS * words * 4);
		GPU(hk_fill(gpu_stream, dret, 0x7f, 64));
		GPU(hk_pick(gpu_stream, 0, vocab, dl, dp, dr, dm, work, dret));   /* nothing */
		gpu_get(ret, dret, sizeof(ret));
		x->wrong += ret[0] != 0x7f7f7f7f;
		GPU(hk_pick(gpu_stream, ROWS, vocab, dl, dp, dr, dm, work, dret));
		gpu_get(ret, dret, sizeof(ret));
		for (uint32_t r = 0; r < ROWS; r++) {
			/* left to the host only where more than the candidates can matter */
			const bool may = vocab > HK_PICK_CAND && p[r].temp > 0 && !p[r].top_k;

			x->total++;
			x->agree += ret[r] == want[r];
			x->host += ret[r] == -3;
			if (ret[r] != want[r] && !(ret[r] == -3 && may)) {
				x->wrong++;
				printf("# pick of %u: %d, host %d: temp %g top_k %u top_p %g min_p %g mask %u\n", vocab, ret[r], want[r],
				       p[r].temp, p[r].top_k, p[r].top_p, p[r].min_p, p[r].has_mask);
			}
		}
		hk_dev_free(dl); hk_dev_free(dp); hk_dev_free(dr); hk_dev_free(dm);
	}
	sampler_close(s);
	hk_dev_free(work);
	hk_dev_free(dret);
	free(l); free(one); free(mask); free(recent); free(prompt);
}

/* What a row of logits cannot give is said as such. */
static void pick_none(uint32_t vocab)
{
	const uint32_t words = (vocab + 31) / 32;
	struct hk_pick p[3] = { { .row = 0, .top_p = 1, .rep_pen = 1 }, { .row = 1, .top_p = 1, .rep_pen = 1, .has_mask = 1 },
				{ .row = 2, .top_p = 1, .rep_pen = 1, .temp = 1 } };
	float *l = random_x(ROWS * vocab, 3), *dl, *work = gpu_poison(ROWS * vocab * 4);
	int32_t *dret = gpu_poison(64), ret[3];
	void *dp, *dm = gpu_zero(words * 4);

	l[vocab - 1] = NAN;
	dl = gpu_put(l, ROWS * vocab * 4);
	dp = gpu_put(p, sizeof(p));
	GPU(hk_pick(gpu_stream, 3, vocab, dl, dp, NULL, dm, work, dret));
	gpu_get(ret, dret, sizeof(ret));
	tap(ret[0] == -2 && ret[1] == -1 && (vocab > HK_PICK_CAND ? ret[2] == -3 : ret[2] >= 0) &&
	    hk_pick(gpu_stream, 1, 0, dl, dp, NULL, dm, work, dret) == -EINVAL,
	    "of %u: NaN, an empty mask, and a draw from all tokens are said as such", vocab);
	hk_dev_free(dl); hk_dev_free(dp); hk_dev_free(dm); hk_dev_free(work); hk_dev_free(dret);
	free(l);
}

void t_pick(bool quick)
{
	/* a block has 1024 threads, and as many candidates; the last is Qwen's */
	static const uint32_t VOCAB[] = { 1, 33, 1023, 1024, 1025, 151936 };
	struct told x = { 0 };

	pick_case(3000, 64, quick ? 12 : 60, &x);
	tap(!x.wrong && x.agree > x.total / 2, "tokens: %u of %u as the host's sampler, %u left to it", x.agree, x.total, x.host);
	for (size_t i = 0; i < (quick ? 5u : 6u); i++) {
		x = (struct told){ 0 };
		pick_case(VOCAB[i], 64, quick ? 4 : 20, &x);
		tap(!x.wrong && x.total, "tokens of %u: %u of %u as the host's sampler, %u left to it", VOCAB[i], x.agree, x.total, x.host);
	}
	x = (struct told){ 0 };
	pick_case(3000, SAMPLER_WINDOW, quick ? 2 : 10, &x);
	tap(!x.wrong && x.total, "tokens after %u that count: %u of %u as the host's sampler, %u left to it",
	    SAMPLER_WINDOW, x.agree, x.total, x.host);
	pick_none(1024);
	pick_none(1025);
	pick_none(3000);
}
