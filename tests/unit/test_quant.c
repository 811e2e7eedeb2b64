// SPDX-License-Identifier: MIT
#include "unit.h"
#include "synth.h"
#include "gguf/quant.h"

#include <math.h>

/*
 * 64 blocks of random bytes of each type (rerolled while they hold anything
 * that is not finite), converted by ggml's own to_float of llama.cpp
 * 80fb11ac73e6 (2026-09-12), as FNV-1a of the f32 bytes.
 */
static const struct {
	uint32_t id;
	uint64_t fnv;
} ggml_says[] = {
	{ QUANT_F16, 0x39c059b765bf5f9full },
	{ QUANT_Q4_0, 0xf9bb091edffc7377ull },
	{ QUANT_Q4_1, 0x109581c764ee1f91ull },
	{ QUANT_Q5_0, 0x19b63057898dcbadull },
	{ QUANT_Q5_1, 0x48df1cbf3cdac715ull },
	{ QUANT_Q8_0, 0xc9e3403703473d29ull },
	{ QUANT_Q2_K, 0x7a518fa40cc4abe1ull },
	{ QUANT_Q3_K, 0x37d8be730bb2aab5ull },
	{ QUANT_Q4_K, 0x32e3ebf95e5c2ecaull },
	{ QUANT_Q5_K, 0xf958d5a7573dbe35ull },
	{ QUANT_Q6_K, 0xd395f480d30d3150ull },
	{ QUANT_IQ4_NL, 0xb5c427134556dbe0ull },
	{ QUANT_IQ4_XS, 0x4f72ffcfbd1b6967ull },
	{ QUANT_BF16, 0x09822971eb1f2cabull },
};

static void roll(const struct quant_type *t, size_t per, uint64_t *state, float *y)
{
	uint8_t b[300];
	bool finite;

	do {
		for (size_t i = 0; i < per / t->block * t->bytes; i++)
			b[i] = (uint8_t)(synth_rand(state) >> 56);
		assert_int_equal(quant_to_f32(t->id, b, y, per), 0);
		finite = true;
		for (size_t i = 0; i < per; i++)
			finite = finite && isfinite(y[i]);
	} while (!finite);
}

static void every_type_reads_as_ggml_does(void **state)
{
	for (size_t k = 0; k < sizeof(ggml_says) / sizeof(ggml_says[0]); k++) {
		const struct quant_type *t = quant_type(ggml_says[k].id);
		size_t per = t->block == 1 ? 32 : t->block;
		uint64_t st = t->id, h = 0xcbf29ce484222325ull;
		float y[256];

		for (int n = 0; n < 64; n++) {
			roll(t, per, &st, y);
			for (size_t i = 0; i < per * 4; i++)
				h = (h ^ ((uint8_t *)y)[i]) * 0x100000001b3ull;
		}
		if (h != ggml_says[k].fnv)
			fail_msg("%s differs from ggml", t->name);
	}
}

/* Largest error against the block's range that each type's plain rounding may make. */
static void what_is_written_reads_back(void **state)
{
	static const struct {
		uint32_t id;
		float rmse; /* relative; ggml's own quantisers reach 0.9 of it or better */
	} want[] = {
		{ QUANT_F16, 5e-4f },    { QUANT_BF16, 3e-3f },  { QUANT_Q4_0, 0.10f },
		{ QUANT_Q4_1, 0.09f },   { QUANT_Q5_0, 0.05f },  { QUANT_Q5_1, 0.045f },
		{ QUANT_Q8_0, 0.006f },  { QUANT_Q2_K, 0.36f },  { QUANT_Q3_K, 0.18f },
		{ QUANT_Q4_K, 0.09f },   { QUANT_Q5_K, 0.045f }, { QUANT_Q6_K, 0.022f },
		{ QUANT_IQ4_NL, 0.09f },
	};
	static float x[4096], y[4096];
	static uint8_t b[4096 * 4];
	uint64_t st = 7;

	for (size_t i = 0; i < 4096; i++)
		x[i] = 0.02f * synth_normal(&st);
	for (size_t k = 0; k < sizeof(want) / sizeof(want[0]); k++) {
		double e = 0, p = 0;

		assert_int_equal(quant_from_f32(want[k].id, x, b, 4096), 0);
		assert_int_equal(quant_to_f32(want[k].id, b, y, 4096), 0);
		for (size_t i = 0; i < 4096; i++) {
			e += (double)(x[i] - y[i]) * (double)(x[i] - y[i]);
			p += (double)x[i] * (double)x[i];
		}
		if (sqrt(e / p) > (double)want[k].rmse)
			fail_msg("%s: relative error %g", quant_name(want[k].id), sqrt(e / p));
	}
}

static void zeros_and_one_value_survive(void **state)
{
	static const float fill[] = { 0, 1, -1 };
	float x[256], y[256];
	uint8_t b[1024];

	for (uint32_t id = 0; id < QUANT_IDS; id++) {
		const struct quant_type *t = quant_type(id);

		if (!t || !t->from_f32)
			continue;
		for (size_t f = 0; f < 3; f++) {
			for (int i = 0; i < 256; i++)
				x[i] = fill[f];
			t->from_f32(x, b, 256);
			t->to_f32(b, y, 256);
			for (int i = 0; i < 256; i++)
				if (fabsf(y[i] - x[i]) > 0.01f)
					fail_msg("%s: %g became %g", t->name, (double)x[i],
						 (double)y[i]);
		}
	}
}

static void halfs_round_to_nearest_even(void **state)
{
	/* IEEE 754 binary16: 65504 is the largest, 2^-24 the smallest. */
	assert_int_equal(quant_to_half(65504.0f), 0x7bff);
	assert_int_equal(quant_to_half(65519.99f), 0x7bff);
	assert_int_equal(quant_to_half(65520.0f), 0x7c00);
	assert_int_equal(quant_to_half(-INFINITY), 0xfc00);
	assert_int_equal(quant_to_half(0x1p-24f), 1);
	assert_int_equal(quant_to_half(0x1p-25f), 0);
	assert_int_equal(quant_to_half(0x1.000002p-25f), 1);
	assert_int_equal(quant_to_half(0x1.8p-24f), 2);
	assert_int_equal(quant_to_half(1 + 0x1p-11f), 0x3c00);
	assert_int_equal(quant_to_half(1 + 0x3p-11f), 0x3c02);
	assert_int_equal(quant_to_half(-0.0f), 0x8000);
	assert_true((quant_to_half(NAN) & 0x7fff) > 0x7c00);
	for (uint32_t h = 0; h < 65536; h++) {
		float f = quant_from_half((uint16_t)h);

		if (!isnan(f))
			assert_int_equal(quant_to_half(f), h);
	}
	assert_int_equal(quant_to_bf16(1 + 0x1p-8f), 0x3f80);
	assert_int_equal(quant_to_bf16(1 + 0x3p-8f), 0x3f82);
	assert_true(isnan(quant_from_bf16(quant_to_bf16(NAN))));
}

static void sizes_are_checked(void **state)
{
	uint64_t n = 77;
	float y[32];
	uint8_t b[64] = { 0 };

	assert_int_equal(quant_row_bytes(QUANT_Q4_K, 512, &n), 0);
	assert_int_equal(n, 288);
	assert_int_equal(quant_row_bytes(QUANT_Q4_K, 255, &n), -EINVAL);
	assert_int_equal(quant_row_bytes(4, 32, &n), -EINVAL);   /* Q4_2, long gone */
	assert_int_equal(quant_row_bytes(12345, 32, &n), -EINVAL);
	assert_int_equal(quant_row_bytes(QUANT_F64, UINT64_MAX / 4, &n), -EOVERFLOW);
	assert_int_equal(n, 288);
	assert_int_equal(quant_to_f32(QUANT_IQ1_S, b, y, 256), -EOPNOTSUPP);
	assert_int_equal(quant_to_f32(QUANT_Q8_0, b, y, 31), -EINVAL);
	assert_string_equal(quant_name(QUANT_Q4_K), "Q4_K");
	assert_string_equal(quant_name(31), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_reads_as_ggml_does),
		cmocka_unit_test(what_is_written_reads_back),
		cmocka_unit_test(zeros_and_one_value_survive),
		cmocka_unit_test(halfs_round_to_nearest_even),
		cmocka_unit_test(sizes_are_checked),
	};
	return UNIT_RUN(tests);
}
