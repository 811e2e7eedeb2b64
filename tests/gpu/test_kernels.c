// SPDX-License-Identifier: MIT
/*
 * Every kernel against its C twin: sizes 0, 1, tile-1, tile, tile+1 and ragged
 * ones, fresh random inputs, poisoned outputs, refusals. The same program runs
 * on a GPU and on the emulation.
 *
 * usage: test_kernels [quick] [NAME...]   (all names)
 */
#include "tests/gpu/kernels.h"

static const struct { const char *name; void (*run)(bool quick); } TEST[] = {
	{ "pack", t_pack }, { "gemv", t_gemv }, { "gemm", t_gemm }, { "raw", t_raw }, { "norm", t_norm },
	{ "swiglu", t_swiglu }, { "embed", t_embed }, { "rope", t_rope }, { "attn", t_attn },
	{ "attn_rope", t_attn_rope }, { "kv_copy", t_kv_copy }, { "pick", t_pick },
	{ "refuse", t_refuse },
};
enum { N_TESTS = sizeof(TEST) / sizeof(TEST[0]) };

int main(int argc, char **argv)
{
	bool quick = argc > 1 && !strcmp(argv[1], "quick"), wanted[N_TESTS] = { false };
	const int first = quick ? 2 : 1;

	for (int a = first; a < argc; a++) {
		int i = 0;

		while (i < N_TESTS && strcmp(argv[a], TEST[i].name))
			i++;
		if (i == N_TESTS) {
			fprintf(stderr, "test_kernels: no test \"%s\"\n", argv[a]);
			return 2;
		}
		wanted[i] = true;
	}
	if (!gpu_start("kernels"))
		return 0;
	rnd_start();
	for (int i = 0; i < N_TESTS; i++)
		if (argc == first || wanted[i])
			TEST[i].run(quick);
	return tap_end();
}
