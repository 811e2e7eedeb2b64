// SPDX-License-Identifier: MIT
/*
 * Each CPU kernel of each instruction set of this machine against the formula
 * in double, on the very numbers the kernel sees.
 */
#include "unit.h"
#include "synth.h"
#include "model/cpu.h"
#include "model/ops.h"

#include <math.h>

static const struct cpu_kern *kern[4];
static int n_kern;

static void find_kernels(void)
{
	kern[n_kern++] = &cpu_plain;
#if defined(__x86_64__)
	if (ops_by_name("avx2"))
		kern[n_kern++] = &cpu_avx2;
	if (ops_by_name("avx512"))
		kern[n_kern++] = &cpu_avx512;
#elif defined(__aarch64__)
	if (ops_by_name("neon"))
		kern[n_kern++] = &cpu_neon;
#endif
}

static const int types[] = {
	QUANT_F32, QUANT_F16, QUANT_BF16, QUANT_Q4_0, QUANT_Q4_1, QUANT_Q5_0, QUANT_Q5_1,
	QUANT_Q8_0, QUANT_Q4_K, QUANT_Q5_K, QUANT_Q6_K,
};

#define N_TYPES (sizeof(types) / sizeof(types[0]))

static void *get(size_t n)
{
	void *p = aligned_alloc(64, (n + 63) / 64 * 64);

	assert_non_null(p);
	memset(p, 0xa5, (n + 63) / 64 * 64);
	return p;
}

static void normals(float *x, size_t n, uint64_t *seed)
{
	for (size_t i = 0; i < n; i++)
		x[i] = synth_normal(seed);
}

/* 16 rows of random weights as in a file; also as floats in w[16][cols]. */
static uint8_t *random_rows(int type, uint32_t cols, bool wild, uint64_t *seed, size_t *ret_row, float *w)
{
	uint64_t row;
	uint8_t *p;

	assert_int_equal(quant_row_bytes((uint32_t)type, cols, &row), 0);
	p = get(row * 16);
	normals(w, 16 * (size_t)cols, seed);
	assert_int_equal(quant_from_f32((uint32_t)type, w, p, 16 * (size_t)cols), 0);
	if (wild) {
		/* Any bits that a file can hold in the quants and packed scales; halfs stay tame. */
		const struct quant_type *q = quant_type((uint32_t)type);

		for (size_t b = 0; b < 16 * (size_t)cols / q->block; b++) {
			uint8_t *at = p + b * q->bytes;
			const size_t from = type == QUANT_Q6_K ? 0 : type == QUANT_Q4_1 || type == QUANT_Q5_1 ||
					    type == QUANT_Q4_K || type == QUANT_Q5_K ? 4 : 2;
			const size_t to = type == QUANT_Q6_K ? 208 : q->bytes;

			for (size_t i = from; i < to; i++)
				at[i] = (uint8_t)synth_rand(seed);
		}
	}
	assert_int_equal(quant_to_f32((uint32_t)type, p, w, 16 * (size_t)cols), 0);
	*ret_row = row;
	return p;
}

static bool is_float(int type)
{
	return type == QUANT_F32 || type == QUANT_F16 || type == QUANT_BF16;
}

static void one_gemm(const struct cpu_kern *k, int type, uint32_t cols, uint32_t M, bool wild, uint64_t *seed)
{
	float *w = get(16 * cols * 4), *x = get(M * cols * 4), *seen = get(M * cols * 4);
	uint8_t *tile = get(M * cols * 4 + M * (cols / 32 + 1) * CPU_ACT_BYTES);
	float out[16 * 16];
	size_t row;
	uint8_t *p = random_rows(type, cols, wild, seed, &row, w), *tmp = get(row * 16);

	normals(x, M * cols, seed);
	memset(x, 0, 32 * sizeof(float));          /* a block of nothing has no scale */
	cpu_pack_panel(type, cols, row, p, tmp);
	for (uint32_t m = 0; m < M; m++) {
		if (is_float(type)) {
			for (uint32_t i = 0; i < cols; i++)
				((float *)tile)[i * M + m] = x[m * cols + i];
			memcpy(seen + m * cols, x + m * cols, cols * 4);
			continue;
		}
		k->quantise(x + m * cols, cols, tile, M, m);
		for (uint32_t i = 0; i < cols; i++) {
			const uint8_t *rec = tile + i / 32 * CPU_ACT_BYTES * M;
			float d;

			memcpy(&d, rec + 32 * M + 4 * m, 4);
			seen[m * cols + i] = d * (int8_t)rec[(i % 32 / 4 * M + m) * 4 + i % 4];
			/* Half a step of rounding, and no more. */
			assert_true(fabsf(seen[m * cols + i] - x[m * cols + i]) <= d * 0.5001f);
		}
	}
	k->gemm[type](p, cols, tile, M, out);
	for (uint32_t m = 0; m < M; m++) {
		for (uint32_t r = 0; r < 16; r++) {
			double sum = 0, size = 0;

			for (uint32_t i = 0; i < cols; i++) {
				sum += (double)w[r * cols + i] * seen[m * cols + i];
				size += fabs((double)w[r * cols + i] * seen[m * cols + i]);
			}
			if (!(fabs(out[m * 16 + r] - sum) <= 2e-6 * size + 1e-6))
				fail_msg("%s %s cols %u M %u row %u of tile %u: %.8g is not %.8g (size %g)", k->name,
					 quant_name((uint32_t)type), cols, M, r, m, out[m * 16 + r], sum, size);
		}
	}
	free(w);
	free(x);
	free(seen);
	free(tile);
	free(p);
	free(tmp);
}

static void gemm_is_the_sum(void **state)
{
	static const uint32_t small[] = { 32, 64, 96, 224, 1024 }, super[] = { 256, 512, 768, 2048 };
	uint64_t seed = 7;

	for (int k = 0; k < n_kern; k++)
		for (size_t t = 0; t < N_TYPES; t++)
			for (uint32_t M = 1; M <= kern[k]->tile; M *= 2)
				for (size_t c = 0; c < 4; c++)
					for (int wild = 0; wild < 1 + !is_float(types[t]); wild++)
						one_gemm(kern[k], types[t],
							 quant_type((uint32_t)types[t])->block == 256 ? super[c] : small[c],
							 M, wild, &seed);
}

static void pack_and_back(void **state)
{
	uint64_t seed = 3;

	for (size_t t = 0; t < N_TYPES; t++) {
		const uint32_t cols = 768;
		float *w = get(16 * cols * 4), *one = get(cols * 4);
		size_t row;
		uint8_t *p = random_rows(types[t], cols, !is_float(types[t]), &seed, &row, w);
		uint8_t *tmp = get(row * 16);

		cpu_pack_panel(types[t], cols, row, p, tmp);
		for (uint32_t r = 0; r < 16; r++) {
			cpu_unpack_row(types[t], cols, p, r, tmp, one);
			assert_memory_equal(one, w + r * cols, cols * 4);
		}
		free(w);
		free(one);
		free(p);
		free(tmp);
	}
}

static void rows(void **state)
{
	static const uint32_t len[] = { 32, 33, 64, 100, 128, 1000, 1024 };
	uint64_t seed = 5;

	for (int k = 0; k < n_kern; k++) {
		for (size_t c = 0; c < sizeof(len) / sizeof(len[0]); c++) {
			const uint32_t n = len[c];
			float *x = get(n * 4), *w = get(n * 4), *y = get(n * 4);
			double sum = 0, dot = 0;

			normals(x, n, &seed);
			normals(w, n, &seed);
			for (uint32_t i = 0; i < n; i++) {
				sum += (double)x[i] * x[i];
				dot += (double)x[i] * w[i];
			}
			kern[k]->rmsnorm(x, w, n, 1e-6f, y);
			for (uint32_t i = 0; i < n; i++)
				assert_true(fabs(y[i] - x[i] / sqrt(sum / n + 1e-6) * w[i]) < 1e-5);
			assert_true(fabs(kern[k]->dot(x, w, n) - dot) < 1e-3);
			for (uint32_t i = 0; i < n; i++)
				x[i] *= i % 7 == 0 ? 100 : 3;    /* far into both tails */
			memcpy(y, x, n * 4);
			kern[k]->swiglu(y, w, n);
			for (uint32_t i = 0; i < n; i++) {
				const double want = x[i] / (1 + exp(-(double)x[i])) * w[i];

				assert_true(fabs(y[i] - want) <= 2e-6 * fabs(want) + 1e-30);
			}
			if (n % 2 == 0) {
				float *cs = get(n * 2), *sn = get(n * 2);

				for (uint32_t i = 0; i < n / 2; i++) {
					cs[i] = (float)cos(i);
					sn[i] = (float)sin(i);
				}
				memcpy(y, x, n * 4);
				kern[k]->rotate(y, cs, sn, n);
				for (uint32_t i = 0; i < n / 2; i++) {
					const double a = x[i], b = x[i + n / 2];

					assert_true(fabs(y[i] - (a * cs[i] - b * sn[i])) < 1e-4);
					assert_true(fabs(y[i + n / 2] - (a * sn[i] + b * cs[i])) < 1e-4);
				}
				free(cs);
				free(sn);
			}
			free(x);
			free(w);
			free(y);
		}
	}
}

/* -- attention ------------------------------------------------------------------ */

static float stored(const struct kv_cfg *kv, const uint8_t *head, uint32_t slot, uint32_t i)
{
	if (kv->type == KV_F16)
		return quant_from_half(((const uint16_t *)head)[slot * kv->head_dim + i]);
	return (float)((const int8_t *)head)[slot * kv->head_dim + i] *
	       quant_from_half(((const uint16_t *)(head + kv_scale_off(kv)))
			       [slot * (kv->head_dim / KV_GROUP) + i / KV_GROUP]);
}

static void one_attend(const struct cpu_kern *k, enum kv_type type, uint32_t hd, uint32_t group,
		       uint32_t rows_, uint32_t pos0, uint64_t *seed)
{
	const struct kv_cfg kv = { type, 2, 3, hd };
	const uint32_t layer = 1, head = 2, n = pos0 + rows_, pages = kv_pages_for(n);
	const size_t page_bytes = kv_page_bytes(&kv), width = (size_t)group * hd + 32;
	uint8_t *mem = get((pages + 2) * page_bytes);
	float *q = get(rows_ * width * 4), *out = get(rows_ * width * 4), *x = get(hd * 4);
	float *tmp = get(cpu_attend_tmp(&kv, group));
	uint32_t *page = get(pages * 4);
	double *score = get(n * 8);

	/* Pages in an order of their own; what is in none of them is poison. */
	for (uint32_t i = 0; i < pages; i++)
		page[i] = pages + 1 - i;
	memset(mem, 0x7f, (pages + 2) * page_bytes);      /* NaN as half */
	for (uint32_t t = 0; t < n; t++) {
		for (int v = 0; v < 2; v++) {
			uint8_t *h = mem + page[t / KV_PAGE] * page_bytes + kv_head_off(&kv, layer, v, head);

			normals(x, hd, seed);
			if (t == 3)
				memset(x, 0, hd * 4);
			k->kv_store(&kv, h, t % KV_PAGE, x);
			for (uint32_t i = 0; i < hd; i++) {
				float top = 0;

				for (uint32_t j = i / 32 * 32; j < i / 32 * 32 + 32; j++)
					top = fmaxf(top, fabsf(x[j]));
				assert_true(fabsf(stored(&kv, h, t % KV_PAGE, i) - x[i]) <=
					    (type == KV_I8 ? top * (0.5f / 127 + 0.0011f) : fabsf(x[i]) * 0.0006f));
			}
		}
	}
	normals(q, rows_ * width, seed);
	k->attend(&(struct cpu_attend){
		.kv = &kv, .kv_base = mem, .page = page, .page_bytes = page_bytes,
		.k_off = kv_head_off(&kv, layer, 0, head), .v_off = kv_head_off(&kv, layer, 1, head),
		.group = group, .rows = rows_, .pos0 = pos0, .q = q, .out = out, .q_stride = width, .tmp = tmp,
	});
	for (uint32_t r = 0; r < rows_; r++) {
		for (uint32_t g = 0; g < group; g++) {
			const float *qr = q + r * width + g * hd, *o = out + r * width + g * hd;
			double sum = 0, max = -1e30;

			for (uint32_t t = 0; t <= pos0 + r; t++) {
				const uint8_t *h = mem + page[t / KV_PAGE] * page_bytes +
						   kv_head_off(&kv, layer, 0, head);

				score[t] = 0;
				for (uint32_t i = 0; i < hd; i++)
					score[t] += (double)qr[i] * stored(&kv, h, t % KV_PAGE, i);
				score[t] /= sqrt(hd);
				max = fmax(max, score[t]);
			}
			for (uint32_t t = 0; t <= pos0 + r; t++)
				sum += score[t] = exp(score[t] - max);
			for (uint32_t i = 0; i < hd; i++) {
				double want = 0;

				for (uint32_t t = 0; t <= pos0 + r; t++)
					want += score[t] / sum *
						stored(&kv, mem + page[t / KV_PAGE] * page_bytes +
						       kv_head_off(&kv, layer, 1, head), t % KV_PAGE, i);
				if (!(fabs(o[i] - want) < 2e-5))
					fail_msg("%s kv %d hd %u group %u rows %u pos %u: row %u head %u channel %u: %g is not %g",
						 k->name, type, hd, group, rows_, pos0, r, g, i, o[i], want);
			}
		}
	}
	free(mem);
	free(q);
	free(out);
	free(x);
	free(tmp);
	free(page);
	free(score);
}

static void attend(void **state)
{
	static const uint32_t hds[] = { 32, 64, 96, 128, 256 }, groups[] = { 1, 2, 3, 8 };
	static const uint32_t shape[][2] = {   /* rows, pos0 */
		{ 1, 0 }, { 1, 1 }, { 1, 31 }, { 1, 32 }, { 1, 100 }, { 2, 31 }, { 3, 0 }, { 4, 0 }, { 5, 30 },
		{ 31, 0 }, { 32, 0 }, { 33, 0 }, { 64, 0 }, { 64, 33 }, { 17, 95 },
	};
	uint64_t seed = 11;

	for (int k = 0; k < n_kern; k++)
		for (size_t h = 0; h < 5; h++)
			for (size_t s = 0; s < sizeof(shape) / sizeof(shape[0]); s++)
				for (int t = 0; t < 2; t++)
					one_attend(kern[k], t ? KV_F16 : KV_I8, hds[h], groups[(s + h) % 4],
						   shape[s][0], shape[s][1], &seed);
}

static void every_fast_type_is_here(void **state)
{
	for (int k = 0; k < n_kern; k++)
		for (int t = 0; t < QUANT_IDS; t++)
			assert_int_equal(kern[k]->gemm[t] != NULL, cpu_pack_type(t));
	assert_false(cpu_pack_type(-1));
	assert_false(cpu_pack_type(QUANT_IDS));
	printf("# instruction sets tested:");
	for (int k = 0; k < n_kern; k++)
		printf(" %s", kern[k]->name);
	printf("\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_fast_type_is_here),
		cmocka_unit_test(pack_and_back),
		cmocka_unit_test(gemm_is_the_sum),
		cmocka_unit_test(rows),
		cmocka_unit_test(attend),
	};

	find_kernels();
	return UNIT_RUN(tests);
}
