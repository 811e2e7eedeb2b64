// SPDX-License-Identifier: MIT
/* Sampling on the device against the host's sampler with the same draw. */
#include "tests/gpu/kernels.h"
#include "sample/sampler.h"

void t_pick(bool quick)
{
	const uint32_t vocab = 3000, rows = 3, rounds = quick ? 12 : 60;
	uint32_t agree = 0, host = 0, total = 0, wrong = 0;
	float *l = malloc(rows * vocab * 4), *dl, *work = gpu_poison(rows * vocab * 4), *one = malloc(vocab * 4);
	uint32_t words = (vocab + 31) / 32, *mask = malloc(rows * words * 4);
	int32_t *dret = gpu_poison(64), ret[3];
	struct sampler *s;

	if (sampler_open(vocab, &s, NULL))
		gpu_die("sampler_open", -1);
	for (uint32_t k = 0; k < rounds; k++) {
		struct hk_pick p[3];
		int32_t recent[3 * 64], want[3];
		void *dp, *dr, *dm;

		for (uint32_t i = 0; i < rows * vocab; i++)
			l[i] = rnd_normal() * 3 + (rnd() % 500 == 0 ? 6 : 0);
		for (uint32_t i = 0; i < 40; i++)   /* ties */
			l[rnd() % (rows * vocab)] = 9.5f;
		for (uint32_t i = 0; i < rows * words; i++)
			mask[i] = rnd() | rnd();
		for (uint32_t r = 0; r < rows; r++) {
			struct sampler_params sp;
			struct sampler_ask ask;
			struct sampler_pick out;
			int32_t prompt[64];
			bool masked = rnd() % 2;

			sampler_defaults(&sp);
			sp.seed = rnd() + 1;
			if (rnd() % 4)
				sp.temp = 0.2f + fabsf(rnd_f());
			if (rnd() % 2)
				sp.top_k = 1 + rnd() % 60;
			if (rnd() % 2)
				sp.top_p = 0.3f + 0.6f * fabsf(rnd_f());
			if (rnd() % 2)
				sp.min_p = 0.02f + 0.1f * fabsf(rnd_f());
			if (rnd() % 2) {
				sp.rep_pen = 1.3f;
				sp.freq_pen = 0.3f;
				sp.pres_pen = 0.2f;
			}
			for (uint32_t i = 0; i < 64; i++)
				prompt[i] = (int32_t)(rnd() % 8 ? rnd() % vocab : 7);
			if (sampler_start(s, &sp, prompt, 64, NULL) || !sampler_ask(s, &ask))
				gpu_die("sampler", -1);
			p[r] = (struct hk_pick){ .row = r, .top_k = sp.top_k, .n_recent = ask.n_recent, .recent0 = r * 64,
				.mask0 = r * words, .has_mask = masked, .temp = sp.temp, .top_p = sp.top_p,
				.min_p = sp.min_p, .rep_pen = sp.rep_pen, .freq_pen = sp.freq_pen,
				.pres_pen = sp.pres_pen, .u = ask.u };
			memcpy(recent + r * 64, ask.recent, ask.n_recent * 4);
			sampler_unask(s);
			memcpy(one, l + r * vocab, vocab * 4);
			want[r] = sampler_pick(s, one, masked ? mask + r * words : NULL, &out) ? -1 : out.token;
		}
		dl = gpu_put(l, rows * vocab * 4);
		dp = gpu_put(p, sizeof(p));
		dr = gpu_put(recent, sizeof(recent));
		dm = gpu_put(mask, rows * words * 4);
		GPU(hk_pick(gpu_stream, rows, vocab, dl, dp, dr, dm, work, dret));
		gpu_get(ret, dret, sizeof(ret));
		for (uint32_t r = 0; r < rows; r++) {
			total++;
			agree += ret[r] == want[r];
			host += ret[r] == -3;
			if (ret[r] != want[r] && ret[r] != -3) {
				wrong++;
				printf("# pick %d, host %d: temp %g top_k %u top_p %g min_p %g mask %u\n", ret[r], want[r],
				       p[r].temp, p[r].top_k, p[r].top_p, p[r].min_p, p[r].has_mask);
			}
		}
		hk_dev_free(dl); hk_dev_free(dp); hk_dev_free(dr); hk_dev_free(dm);
	}
	tap(!wrong && agree > total / 2, "tokens: %u of %u as the host's sampler, %u left to it", agree, total, host);
	{
		struct hk_pick p[3] = { { .row = 0, .top_p = 1, .rep_pen = 1 }, { .row = 1, .top_p = 1, .rep_pen = 1, .has_mask = 1 },
					{ .row = 2, .top_p = 1, .rep_pen = 1, .temp = 1 } };
		void *dp, *dm;

		l[5] = NAN;
		memset(mask, 0, rows * words * 4);
		dl = gpu_put(l, rows * vocab * 4);
		dp = gpu_put(p, sizeof(p));
		dm = gpu_put(mask, rows * words * 4);
		GPU(hk_pick(gpu_stream, 3, vocab, dl, dp, NULL, dm, work, dret));
		gpu_get(ret, dret, sizeof(ret));
		tap(ret[0] == -2 && ret[1] == -1 && ret[2] == -3, "NaN, an empty mask, and a draw from all tokens are said as such");
		hk_dev_free(dl); hk_dev_free(dp); hk_dev_free(dm);
	}
	sampler_close(s);
	hk_dev_free(work);
	hk_dev_free(dret);
	free(l); free(one); free(mask);
}
