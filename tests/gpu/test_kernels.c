/* SPDX-License-Identifier: MIT */
/*
 * Every kernel against its C twin: sizes 0, 1, tile-1, tile, tile+1 and ragged
 * ones, fresh random inputs, poisoned outputs, refusals. The same program runs
 * on a GPU and on the emulation.
 */
#include "tests/gpu/gpu.h"

#include <errno.h>

#include "gguf/quant.h"
#include "kernels/pack.h"
#include "kernels/step.h"
#include "kernels/tile.h"
#include "kernels/twin.h"
#include "sample/sampler.h"

static const int TYPES[] = {
	QUANT_Q4_0, QUANT_Q4_1, QUANT_Q5_0, QUANT_Q5_1, QUANT_Q8_0,
	QUANT_Q4_K, QUANT_Q5_K, QUANT_Q6_K, QUANT_F16, QUANT_BF16,
};
#define N_TYPES (sizeof(TYPES) / sizeof(TYPES[0]))

static void put_half(uint8_t *p, float f)
{
	uint16_t h = quant_to_half(f);

	memcpy(p, &h, 2);
}

/* All bits random, but scales of a sensible size. */
static uint8_t *random_mat(int type, uint32_t rows, uint32_t cols, size_t *ret_bytes)
{
	size_t rb = pack_row_bytes(type, cols), bytes = rb * rows, bs = quant_type((uint32_t)type)->bytes;
	uint8_t *p = malloc(bytes + 16);

	for (size_t i = 0; i < bytes; i++)
		p[i] = (uint8_t)rnd();
	for (size_t o = 0; o < bytes; o += bs) {
		float d = (0.2f + 0.8f * fabsf(rnd_f())) * 0.01f;

		switch (type) {
		case QUANT_F16: put_half(p + o, rnd_normal() * 0.05f); break;
		case QUANT_BF16: {
			uint16_t b = quant_to_bf16(rnd_normal() * 0.05f);

			memcpy(p + o, &b, 2);
			break;
		}
		case QUANT_F32: {
			float f = rnd_normal() * 0.05f;

			memcpy(p + o, &f, 4);
			break;
		}
		case QUANT_Q6_K: put_half(p + o + 208, d * 0.01f); break;
		case QUANT_Q4_K: case QUANT_Q5_K:
			put_half(p + o, d * 0.05f);
			put_half(p + o + 2, d * 0.3f);
			break;
		case QUANT_Q4_1: case QUANT_Q5_1:
			put_half(p + o, d);
			put_half(p + o + 2, rnd_f() * 0.1f);
			break;
		case QUANT_Q8_0: put_half(p + o, d * 0.05f); break;
		default: put_half(p + o, d); break;
		}
	}
	*ret_bytes = bytes;
	return p;
}

struct tmat { uint8_t *file; struct hk_mat m; int file_type; void *dev; };

static struct tmat make_mat(int type, uint32_t rows, uint32_t cols, bool pack)
{
	struct tmat t = { 0 };
	size_t bytes;
	uint8_t *p;

	t.file = random_mat(type, rows, cols, &bytes);
	t.file_type = type;
	t.m = (struct hk_mat){ .type = type, .rows = rows, .cols = cols,
			       .row_bytes = pack_row_bytes(type, cols) };
	p = malloc(bytes + 16);
	memcpy(p, t.file, bytes);
	if (pack) {
		void *tmp = malloc(pack_tmp_bytes(type, cols));

		if (pack_tiles(type, rows, cols, p, tmp, &t.m.type, NULL))
			gpu_die("pack_tiles", -1);
		t.m.packed = 1;
		free(tmp);
	}
	t.dev = gpu_put(p, bytes);
	t.m.w = t.dev;
	free(p);
	return t;
}

static void drop_mat(struct tmat *t)
{
	hk_dev_free(t->dev);
	free(t->file);
}

static float *random_x(size_t n, float scale)
{
	float *x = malloc((n + 4) * sizeof(float));

	for (size_t i = 0; i < n; i++)
		x[i] = rnd_normal() * scale * (rnd() % 64 == 0 ? 20 : 1);
	return x;
}

/* Largest |a - b| in units of the allowed error; NaN counts as infinite. */
static double worst(const float *a, const float *b, const float *mag, size_t n, double tol)
{
	double w = 0;

	for (size_t i = 0; i < n; i++) {
		double e = fabs((double)a[i] - b[i]) / (tol * (mag[i] + 1e-6));

		if (!(e <= w))
			w = isnan(e) ? INFINITY : e;
	}
	return w;
}

/* -- packing -------------------------------------------------------------------- */

static void t_pack(void)
{
	static const uint32_t COLS[] = { 64, 128, 192, 256, 320, 512, 896, 1024 };

	for (size_t i = 0; i < N_TYPES; i++) {
		bool ok = true;
		int cases = 0;

		for (size_t c = 0; c < sizeof(COLS) / sizeof(COLS[0]); c++) {
			for (uint32_t rows = 15; rows <= 35; rows += rows == 15 ? 1 : 19) {
				uint32_t cols = COLS[c];
				size_t bytes;
				int pt;

				if (!pack_can(TYPES[i], cols))
					continue;
				uint8_t *f = random_mat(TYPES[i], rows, cols, &bytes);
				uint8_t *p = malloc(bytes), *tmp = malloc(pack_tmp_bytes(TYPES[i], cols));
				float *a = malloc(cols * 4), *b = malloc(cols * 4);

				memcpy(p, f, bytes);
				ok &= pack_tiles(TYPES[i], rows, cols, p, tmp, &pt, NULL) == 0;
				for (uint32_t r = 0; r < rows; r++) {
					quant_to_f32((uint32_t)TYPES[i], f + r * (bytes / rows), a, cols);
					ok &= pack_row_f32(TYPES[i], rows, cols, p, r, b) == 0;
					for (uint32_t k = 0; k < cols; k++)
						ok &= TYPES[i] == QUANT_BF16
							? fabsf(a[k] - b[k]) <= 6e-8f
							: fabsf(a[k] - b[k]) <= 1e-6f * fabsf(a[k]) + 1e-9f;
				}
				cases++;
				free(f); free(p); free(tmp); free(a); free(b);
			}
		}
		tap(ok && cases, "packed %s reads back as the file says, %d shapes",
		    quant_name((uint32_t)TYPES[i]), cases);
	}
	tap(!pack_can(QUANT_Q4_K, 128) && !pack_can(QUANT_Q8_0, 96) && !pack_can(QUANT_F32, 256) &&
	    pack_tiles(QUANT_Q8_0, 16, 96, NULL, NULL, NULL, NULL) == -EINVAL,
	    "what tiles do not fit is refused");
	{
		uint16_t h[64 * 16] = { 0 }, tmp[64 * 16];
		int pt;

		h[5] = quant_to_bf16(1e6f);
		tap(pack_tiles(QUANT_BF16, 16, 64, h, tmp, &pt, NULL) == -ERANGE,
		    "a BF16 weight beyond F16 is refused");
	}
}

/* -- gemv ------------------------------------------------------------------------- */

static bool gemv_case(int type, int type2, uint32_t rows, uint32_t rows2, uint32_t cols, uint32_t n,
		      enum hk_mode mode, bool norm, double *ret_err)
{
	struct tmat a = make_mat(type, rows, cols, true), b = make_mat(type2, rows2, cols, true);
	float *x = random_x((size_t)(n + 1) * cols, 1), *w = random_x(cols, 0.5f);
	float *bias = random_x(rows, 1);
	size_t ny = (size_t)n * rows, ny2 = (size_t)n * rows2;
	float *y0 = random_x(ny, 1), *y = malloc(ny * 4 + 16), *t = malloc(ny * 4 + 16), *mag = malloc(ny * 4 + 16);
	float *y2 = malloc(ny2 * 4 + 16), *t2 = malloc(ny2 * 4 + 16), *mag2 = malloc(ny2 * 4 + 16);
	uint32_t row[4] = { 1, 0, 2, 1 };
	struct hk_gemv g = { .n = n, .cols = cols, .ldx = cols, .eps = 1e-6f, .mode = mode,
			     .nseg = 2, .norm = norm ? w : NULL, .x = x, .row = n > 2 ? NULL : row };
	struct hk_gemv d;
	float *const mags[3] = { mag, mag2 };
	const void *const file[3] = { a.file, b.file };
	const int ft[3] = { type, type2 };
	double e;
	bool ok;

	if (n < 2)
		row[0] = 0;
	g.seg[0] = (struct hk_seg){ .w = a.m, .bias = bias, .y = t, .ldy = rows };
	g.seg[1] = (struct hk_seg){ .w = b.m, .y = t2, .ldy = rows2 };
	d = g;
	memcpy(t, y0, ny * 4);
	for (size_t i = 0; i < ny2; i++)
		t2[i] = 0;
	twin_gemv(&g, file, ft, mags);

	d.x = gpu_put(x, (size_t)(n + 1) * cols * 4);
	d.norm = norm ? gpu_put(w, cols * 4) : NULL;
	d.row = g.row ? gpu_put(row, 16) : NULL;
	d.seg[0].bias = gpu_put(bias, rows * 4);
	d.seg[0].y = mode == HK_ADD ? gpu_put(y0, ny * 4) : gpu_poison(ny * 4);
	d.seg[1].y = mode == HK_ADD ? gpu_zero(ny2 * 4) : gpu_poison(ny2 * 4);
	GPU(hk_gemv(gpu_stream, &gpu_info, &d));
	gpu_get(y, d.seg[0].y, ny * 4);
	gpu_get(y2, d.seg[1].y, ny2 * 4);
	/* The int8 of an activation may round the other way when the norm's last
	 * bit differs: one step of 1/127 in a few of many products. */
	e = worst(y, t, mag, ny, norm ? 2e-3 : 2e-5);
	if (mode != HK_SWIGLU)
		e = fmax(e, worst(y2, t2, mag2, ny2, norm ? 2e-3 : 2e-5));
	*ret_err = fmax(*ret_err, e);
	ok = e <= 1;
	if (!ok)
		printf("# %s %s %u+%u x %u, n %u, mode %d, norm %d: %g\n", quant_name((uint32_t)type),
		       quant_name((uint32_t)type2), rows, rows2, cols, n, mode, norm, e);
	hk_dev_free((void *)d.x);
	hk_dev_free((void *)d.norm);
	hk_dev_free((void *)d.row);
	hk_dev_free((void *)d.seg[0].bias);
	hk_dev_free(d.seg[0].y);
	hk_dev_free(d.seg[1].y);
	drop_mat(&a);
	drop_mat(&b);
	free(x); free(w); free(bias); free(y0); free(y); free(t); free(mag); free(y2); free(t2); free(mag2);
	return ok;
}

static void t_gemv(bool quick)
{
	for (size_t i = 0; i < N_TYPES; i++) {
		int type = TYPES[i];
		double err = 0;
		bool ok = true, k = pack_can(type, 256) && !pack_can(type, 64);

		if (type == QUANT_F16 || type == QUANT_BF16)
			continue;
		for (uint32_t n = 1; n <= 4; n++) {
			ok &= gemv_case(type, QUANT_Q6_K, 16, 32, 256, n, HK_STORE, false, &err);
			ok &= gemv_case(type, type, 48, 48, k ? 512 : 64, n, HK_SWIGLU, true, &err);
			ok &= gemv_case(type, type, 160, 16, k ? 768 : 448, n, HK_ADD, false, &err);
		}
		ok &= gemv_case(type, QUANT_Q4_K, 208, 64, 1024, 1, HK_STORE, true, &err);
		if (!quick) {
			ok &= gemv_case(type, type, 4096, 1024, 2560, 1, HK_STORE, true, &err);
			ok &= gemv_case(type, type, 9728, 9728, 2560, 2, HK_SWIGLU, true, &err);
			ok &= gemv_case(type, QUANT_Q6_K, 2560, 2576, 9728, 4, HK_ADD, false, &err);
			ok &= gemv_case(type, type, 896, 128, k ? 1024 : 896, 3, HK_STORE, true, &err);
		}
		tap(ok, "gemv %s: largest error %.3f of the bound", quant_name((uint32_t)type), err);
	}
	{
		struct tmat a = make_mat(QUANT_Q4_K, 16, 256, true);
		float *x = gpu_zero(4096), *y = gpu_zero(4096);
		struct hk_gemv g = { .n = 1, .cols = 256, .ldx = 256, .x = x, .nseg = 1 }, b;
		bool ok;

		g.seg[0] = (struct hk_seg){ .w = a.m, .y = y, .ldy = 16 };
		b = g; b.n = 0;
		ok = hk_gemv(gpu_stream, &gpu_info, &b) == 0;
		b = g; b.n = 5;
		ok &= hk_gemv(gpu_stream, &gpu_info, &b) == -EINVAL;
		b = g; b.x = x + 1;
		ok &= hk_gemv(gpu_stream, &gpu_info, &b) == -EINVAL;
		b = g; b.seg[0].w.w = (const char *)a.dev + 4;
		ok &= hk_gemv(gpu_stream, &gpu_info, &b) == -EINVAL;
		b = g; b.seg[0].w.packed = 0;
		ok &= hk_gemv(gpu_stream, &gpu_info, &b) == -EINVAL;
		b = g; b.seg[0].w.type = QUANT_F16;
		ok &= hk_gemv(gpu_stream, &gpu_info, &b) == -EINVAL;
		b = g; b.cols = 512;
		ok &= hk_gemv(gpu_stream, &gpu_info, &b) == -EINVAL;
		b = g; b.mode = HK_SWIGLU;
		ok &= hk_gemv(gpu_stream, &gpu_info, &b) == -EINVAL;
		tap(ok, "gemv refuses what it cannot do, and 0 tokens is nothing");
		hk_dev_free(x);
		hk_dev_free(y);
		drop_mat(&a);
	}
}

/* -- gemm -------------------------------------------------------------------------- */

static bool gemm_case2(int type, int type2, uint32_t rows, uint32_t rows2, uint32_t cols, uint32_t n,
		       enum hk_mode mode, int split, double *ret_err)
{
	struct tmat a = make_mat(type, rows, cols, true), b = make_mat(type2, rows2, cols, true);
	uint32_t nb = hk_gemm_nb(n), groups = (n + nb - 1) / nb * nb / 8, units = tile_units(cols);
	size_t act_n = (size_t)groups * units * 2048, out_n = (size_t)groups * tile_units(rows) * 2048;
	uint16_t *act = malloc(act_n * 2), *out = malloc(out_n * 2 + 16);
	float *sc = malloc(n * 4), *bias = random_x(rows, 1);
	size_t ny = (size_t)n * rows, ny2 = (size_t)n * rows2, part = split == 1 ? (size_t)16 << 20 : 0;
	/* 2: parts of k left apart, both matrices in one buffer, a third of it more than is needed */
	size_t stride = split == 2 ? (ny + ny2 + 3) / 3 * 4 : 0;
	uint32_t parts = 0;
	float *y0 = random_x(ny, 1), *y = malloc(ny * 4), *t = malloc(ny * 4), *mag = malloc(ny * 4);
	float *y2 = malloc(ny2 * 4), *t2 = malloc(ny2 * 4), *mag2 = malloc(ny2 * 4);
	struct hk_gemm g = { .n = n, .cols = cols, .groups = groups, .act = act, .act_scale = sc,
			     .scale = 0.5f, .mode = mode, .nseg = 2, .groups_out = groups,
			     .act_out_scale = 0.25f, .act_out = out }, d;
	float *const mags[3] = { mag, mag2 };
	const void *const file[3] = { a.file, b.file };
	const int ft[3] = { type, type2 };
	double e, tol = 6e-4;
	bool ok;

	/* NaN in the rows of nobody; the padding of a short unit must be numbers */
	memset(act, 0xff, act_n * 2);
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = cols; k < units * 256; k++)
			act[act_pos(i, k, 0, groups)] = quant_to_half(rnd_normal());
		sc[i] = (float)(1 << rnd() % 3);
		for (uint32_t k = 0; k < cols; k++)
			act[act_pos(i, k, 0, groups)] = quant_to_half(rnd_normal());
	}
	g.seg[0] = (struct hk_seg){ .w = a.m, .bias = mode == HK_STORE ? bias : NULL, .y = t, .ldy = rows };
	g.seg[1] = (struct hk_seg){ .w = b.m, .y = t2, .ldy = rows2 };
	d = g;
	memcpy(t, y0, ny * 4);
	memset(t2, 0, ny2 * 4);
	twin_gemm(&g, file, ft, mags, t);

	d.act = gpu_put(act, act_n * 2);
	d.act_scale = gpu_put(sc, n * 4);
	d.act_out = gpu_poison(out_n * 2);
	d.seg[0].bias = g.seg[0].bias ? gpu_put(bias, rows * 4) : NULL;
	d.seg[0].y = mode == HK_ADD ? gpu_put(y0, ny * 4) : gpu_poison(ny * 4);
	d.seg[1].y = mode == HK_ADD ? gpu_zero(ny2 * 4) : gpu_poison(ny2 * 4);
	d.partial = split == 1 ? gpu_poison(part * 4) : NULL;
	d.partial_floats = split == 2 ? 16 * stride : part;
	d.count = split == 1 ? gpu_zero(HK_GEMM_COUNTS * 4) : NULL;
	if (split == 2) {
		hk_dev_free(d.seg[0].y);
		hk_dev_free(d.seg[1].y);
		d.seg[0].y = gpu_poison(16 * stride * 4);
		d.seg[1].y = d.seg[0].y + ny;
		d.apart = stride;
		d.ret_parts = &parts;
	}
	GPU(hk_gemm(gpu_stream, &gpu_info, &d));
	if (mode == HK_SWIGLU) {
		gpu_get(out, d.act_out, out_n * 2);
		for (uint32_t i = 0; i < n; i++)
			for (uint32_t r = 0; r < rows; r++)
				y[(size_t)i * rows + r] =
					quant_from_half(out[act_pos(i, r, 0, groups)]) / 0.25f;
		tol = 1e-3;
	} else if (split == 2) {
		float *all = malloc(16 * stride * 4);

		gpu_get(all, d.seg[0].y, 16 * stride * 4);
		memset(y, 0, ny * 4);
		memset(y2, 0, ny2 * 4);
		for (uint32_t p = 0; p < parts; p++) {
			for (size_t i = 0; i < ny; i++)
				y[i] += all[p * stride + i];
			for (size_t i = 0; i < ny2; i++)
				y2[i] += all[p * stride + ny + i];
		}
		if (!parts || parts > 16)
			tol = 0;
		d.seg[1].y = NULL;
		free(all);
	} else {
		gpu_get(y, d.seg[0].y, ny * 4);
		gpu_get(y2, d.seg[1].y, ny2 * 4);
	}
	e = worst(y, t, mag, ny, tol);
	if (mode != HK_SWIGLU)
		e = fmax(e, worst(y2, t2, mag2, ny2, tol));
	if (split == 1) {   /* the counters must be ready for the next launch */
		uint32_t cnt[HK_GEMM_COUNTS];

		gpu_get(cnt, d.count, sizeof(cnt));
		for (uint32_t i = 0; i < HK_GEMM_COUNTS; i++)
			if (cnt[i])
				e = INFINITY;
	}
	*ret_err = fmax(*ret_err, e);
	ok = e <= 1;
	if (!ok)
		printf("# %s %u+%u x %u, n %u, mode %d, split %d: %g\n", quant_name((uint32_t)type),
		       rows, rows2, cols, n, mode, split, e);
	hk_dev_free((void *)d.act);
	hk_dev_free((void *)d.act_scale);
	hk_dev_free(d.act_out);
	hk_dev_free((void *)d.seg[0].bias);
	hk_dev_free(d.seg[0].y);
	hk_dev_free(d.seg[1].y);
	hk_dev_free(d.partial);
	hk_dev_free(d.count);
	drop_mat(&a);
	drop_mat(&b);
	free(act); free(out); free(sc); free(bias); free(y0); free(y); free(t); free(mag);
	free(y2); free(t2); free(mag2);
	return ok;
}

static bool gemm_case(int type, uint32_t rows, uint32_t rows2, uint32_t cols, uint32_t n,
		      enum hk_mode mode, int split, double *ret_err)
{
	return gemm_case2(type, type, rows, rows2, cols, n, mode, split, ret_err);
}

static void t_gemm(bool quick)
{
	static const uint32_t NS[] = { 1, 7, 8, 9, 16, 17, 24, 25, 33, 40, 41, 63, 65, 129 };

	for (size_t i = 0; i < N_TYPES; i++) {
		int type = TYPES[i];
		double err = 0;
		bool ok = true, k = pack_can(type, 256) && !pack_can(type, 64);

		for (size_t j = 0; j < sizeof(NS) / sizeof(NS[0]); j++) {
			if (quick && (j + i) % 4)
				continue;
			ok &= gemm_case(type, 144, 16, k ? 512 : 448, NS[j], HK_STORE, false, &err);
			ok &= gemm_case(type, 80, 80, k ? 256 : 320, NS[j], HK_SWIGLU, false, &err);
			ok &= gemm_case(type, 32, 128, 1024, NS[j], HK_ADD, true, &err);
			ok &= gemm_case(type, 176, 32, 1024, NS[j], HK_STORE, 2, &err);
		}
		if (quick)
			ok &= gemm_case(type, 16, 16, k ? 256 : 64, 5, HK_STORE, true, &err);
		/* blocks of five pairs, on the emulation's two SMs and on a whole card */
		ok &= gemm_case(type, 160, 160, 256, 33, HK_SWIGLU, false, &err);
		if (!quick && type == QUANT_Q4_K)
			ok &= gemm_case(type, 9728, 9728, 2560, 33, HK_SWIGLU, true, &err);
		if (!quick) {
			ok &= gemm_case(type, 4096, 1024, 2560, 33, HK_STORE, true, &err);
			ok &= gemm_case(type, 2560, 2560, 9728, 18, HK_ADD, true, &err);
			ok &= gemm_case(type, 3072, 3072, 1024, 200, HK_SWIGLU, true, &err);
		}
		tap(ok, "gemm %s: largest error %.3f of the bound", quant_name((uint32_t)type), err);
	}
	{
		double err = 0;
		bool ok = true;

		for (size_t j = 0; j < sizeof(NS) / sizeof(NS[0]) && NS[j] <= 64; j++) {
			if (quick && j % 3)
				continue;
			ok &= gemm_case2(QUANT_Q4_K, QUANT_Q6_K, 144, 48, 512, NS[j], HK_STORE, 1, &err);
			ok &= gemm_case2(QUANT_Q6_K, QUANT_Q4_K, 48, 272, 768, NS[j], HK_STORE, 2, &err);
		}
		tap(ok, "gemm Q4_K and Q6_K in one launch: largest error %.3f of the bound", err);
	}
	{
		struct tmat a = make_mat(QUANT_Q4_K, 16, 256, true);
		char *x = gpu_zero(65536);
		struct hk_gemm g = { .n = 9, .cols = 256, .groups = 2, .act = x, .scale = 1, .nseg = 1 }, b;
		uint32_t parts = 0;
		bool ok;

		g.seg[0] = (struct hk_seg){ .w = a.m, .y = (float *)x, .ldy = 16 };
		b = g; b.n = 0;
		ok = hk_gemm(gpu_stream, &gpu_info, &b) == 0;
		b = g; b.groups = 1;
		ok &= hk_gemm(gpu_stream, &gpu_info, &b) == -EINVAL;
		b = g; b.act = x + 8;
		ok &= hk_gemm(gpu_stream, &gpu_info, &b) == -EINVAL;
		b = g; b.seg[0].w.packed = 0;
		ok &= hk_gemm(gpu_stream, &gpu_info, &b) == -EINVAL;
		b = g; b.seg[0].w.type = QUANT_F32;
		ok &= hk_gemm(gpu_stream, &gpu_info, &b) == -EINVAL;
		b = g; b.apart = 16 * 9; b.partial_floats = 16 * 9;
		ok &= hk_gemm(gpu_stream, &gpu_info, &b) == -EINVAL;   /* nowhere to say how many */
		b.ret_parts = &parts; b.partial_floats--;
		ok &= hk_gemm(gpu_stream, &gpu_info, &b) == -EINVAL;
		b = g; b.nseg = 2; b.seg[1] = b.seg[0]; b.seg[1].w.type = QUANT_Q6_K; b.mode = HK_SWIGLU; b.act_out = x;
		ok &= hk_gemm(gpu_stream, &gpu_info, &b) == -EINVAL;
		b.mode = HK_STORE; b.n = 65; b.groups = 16;
		ok &= hk_gemm(gpu_stream, &gpu_info, &b) == -EINVAL;
		b = g; b.nseg = 2; b.seg[1] = b.seg[0]; b.seg[1].w.type = QUANT_Q8_0;
		ok &= hk_gemm(gpu_stream, &gpu_info, &b) == -EINVAL;
		tap(ok, "gemm refuses what it cannot do, and 0 tokens is nothing");
		hk_dev_free(x);
		drop_mat(&a);
	}
}

/* -- file order, norm, embedding ------------------------------------------------------ */

static void t_raw(void)
{
	static const int MORE[] = { QUANT_F32, QUANT_BF16, QUANT_F16, QUANT_Q4_0, QUANT_Q4_1, QUANT_Q5_0,
				    QUANT_Q5_1, QUANT_Q8_0, QUANT_Q4_K, QUANT_Q5_K, QUANT_Q6_K };
	bool ok = true;
	double err = 0;

	for (size_t i = 0; i < sizeof(MORE) / sizeof(MORE[0]); i++) {
		for (int pack = 0; pack < 2; pack++) {
			uint32_t rows = 16 * (uint32_t)(1 + rnd() % 3) + 1 + rnd() % 15;
			uint32_t cols = MORE[i] >= QUANT_Q4_K && MORE[i] <= QUANT_Q6_K ? 256 : 96;

			if (pack && !pack_can(MORE[i], cols))
				cols = 320;
			if (pack && !pack_can(MORE[i], cols))
				continue;
			struct tmat a = make_mat(MORE[i], rows, cols, pack);
			uint32_t n = 3, row0 = pack ? rows / 16 * 16 : 0;
			float *x = random_x(n * cols, 1), *w = random_x(cols, 1), *b = random_x(rows, 1);
			float *t = random_x(n * rows, 1), *y = malloc(n * rows * 4);
			struct hk_raw g = { .n = n, .x = x, .ldx = cols, .norm = i % 2 ? w : NULL,
					    .eps = 1e-6f, .mode = i % 3 ? HK_STORE : HK_ADD, .row0 = row0 }, d;
			double e;

			g.seg = (struct hk_seg){ .w = a.m, .bias = b, .y = t, .ldy = rows };
			d = g;
			d.seg.y = gpu_put(t, n * rows * 4);
			d.seg.bias = gpu_put(b, rows * 4);
			d.x = gpu_put(x, n * cols * 4);
			d.norm = g.norm ? gpu_put(w, cols * 4) : NULL;
			twin_raw(&g, a.file, MORE[i]);
			GPU(hk_raw(gpu_stream, &d));
			gpu_get(y, d.seg.y, n * rows * 4);
			e = rel_err(y, t, n * rows);
			if (!(e < 2e-4)) {
				printf("# raw %s packed %d %ux%u: %g\n", quant_name((uint32_t)MORE[i]), pack, rows, cols, e);
				ok = false;
			}
			err = fmax(err, e);
			hk_dev_free(d.seg.y);
			hk_dev_free((void *)d.seg.bias);
			hk_dev_free((void *)d.x);
			hk_dev_free((void *)d.norm);
			drop_mat(&a);
			free(x); free(w); free(b); free(t); free(y);
		}
	}
	tap(ok, "matrices and rest rows in file order: error %.2g", err);
}

static void t_norm(void)
{
	static const uint32_t NS[] = { 1, 7, 8, 9, 33 }, COLS[] = { 64, 896, 2560 };
	double err = 0;
	bool ok = true;

	for (size_t i = 0; i < 5; i++) {
		for (size_t c = 0; c < 3; c++) {
			uint32_t n = NS[i], cols = COLS[c], groups = (n + 7) / 8;
			size_t an = (size_t)groups * tile_units(cols) * 2048;
			/* the last is larger than F16 holds */
			float *x = random_x(n * cols, 1), *w = random_x(cols, c == 2 ? 3e5f : 1), sc[64];
			float *t = malloc(n * cols * 4), *y = malloc(n * cols * 4);
			uint16_t *a = malloc(an * 2);
			float *dx = gpu_put(x, n * cols * 4), *dw = gpu_put(w, cols * 4), *dsc = gpu_poison(256);
			void *da = gpu_poison(an * 2);

			/* what was left apart, a little further apart than it must be */
			uint32_t parts = (uint32_t)(i * 3 + c) % 12;
			size_t stride = n * cols + 64;
			float *p = random_x(parts * stride, 1), *dp = gpu_put(p, parts * stride * 4);
			struct hk_parts add = { dp, parts, stride };

			GPU(hk_norm(gpu_stream, n, cols, dx, NULL, dw, 1e-6f, da, groups, dsc, parts ? &add : NULL));
			for (uint32_t k = 0; k < parts; k++)
				for (size_t e = 0; e < (size_t)n * cols; e++)
					x[e] += p[k * stride + e];
			twin_norm(n, cols, x, NULL, w, 1e-6f, t);
			gpu_get(y, dx, n * cols * 4);
			ok &= rel_err(y, x, n * cols) < 1e-6;
			hk_dev_free(dp);
			free(p);
			gpu_get(a, da, an * 2);
			gpu_get(sc, dsc, n * 4);
			for (uint32_t r = 0; r < n; r++)
				for (uint32_t k = 0; k < cols; k++)
					y[r * cols + k] = quant_from_half(a[act_pos(r, k, 0, groups)]) * sc[r];
			err = fmax(err, rel_err(y, t, n * cols));
			ok &= rel_err(y, t, n * cols) < 5e-4;
			hk_dev_free(dx); hk_dev_free(dw); hk_dev_free(dsc); hk_dev_free(da);
			free(x); free(w); free(t); free(y); free(a);
		}
	}
	ok &= hk_norm(gpu_stream, 0, 64, NULL, NULL, NULL, 0, NULL, 0, NULL, NULL) == 0;
	ok &= hk_norm(gpu_stream, 1, 72, NULL, NULL, NULL, 0, NULL, 1, NULL, NULL) == -EINVAL;
	ok &= hk_norm(gpu_stream, 9, 64, NULL, NULL, NULL, 0, NULL, 1, NULL, NULL) == -EINVAL;
	{
		const uint32_t row = 0;
		struct hk_parts add = { NULL, 1, 66 };

		ok &= hk_norm(gpu_stream, 1, 64, NULL, NULL, NULL, 0, NULL, 1, NULL, &add) == -EINVAL;
		add.stride = 64;
		ok &= hk_norm(gpu_stream, 1, 64, NULL, &row, NULL, 0, NULL, 1, NULL, &add) == -EINVAL;
	}
	tap(ok, "parts added, norm to halves: error %.2g, also beyond F16's range", err);
}

static void t_swiglu(void)
{
	uint32_t n = 3, ff = 77;
	float *g = random_x(n * ff, 3), *u = random_x(n * ff, 3), h[3 * 77], t[3 * 77];
	float *dg = gpu_put(g, n * ff * 4), *du = gpu_put(u, n * ff * 4), *dh = gpu_poison(n * ff * 4);

	for (uint32_t i = 0; i < n * ff; i++)
		t[i] = (float)((double)g[i] / (1 + exp(-(double)g[i])) * u[i]);
	GPU(hk_swiglu(gpu_stream, n, ff, dg, du, dh));
	gpu_get(h, dh, n * ff * 4);
	tap(rel_err(h, t, n * ff) < 1e-6, "swiglu: error %.2g", rel_err(h, t, n * ff));
	hk_dev_free(dg); hk_dev_free(du); hk_dev_free(dh);
	free(g); free(u);
}

/* -- a step: sequences over pages ------------------------------------------------------ */

struct tstep {
	struct step_cap cap;
	void *host, *dev;
	struct hk_step h, d;
	uint32_t n, n_pad, tiles, pages;
	struct step_seq seq[8];
	uint32_t *table[8];
	int32_t token[1024];
};

/* n[i] tokens at depth[i] each; every page of its own, in random order. */
static void make_step(struct tstep *s, uint32_t n_seq, const uint32_t *n, const uint32_t *depth,
		      uint32_t group, uint32_t kvh, uint32_t pad, uint32_t splits, uint32_t vocab)
{
	uint32_t first = 0, max_pages = 1, used = 0, total = 0;
	uint32_t *perm;

	memset(s, 0, sizeof(*s));
	for (uint32_t i = 0; i < n_seq; i++) {
		uint32_t np = (n[i] + depth[i] + 31) / 32;

		max_pages = np > max_pages ? np : max_pages;
		total += np;
		s->n += n[i];
	}
	s->pages = total + 3;
	perm = malloc(s->pages * 4);
	for (uint32_t i = 0; i < s->pages; i++)
		perm[i] = i;
	for (uint32_t i = s->pages - 1; i; i--) {
		uint32_t j = rnd() % (i + 1), t = perm[i];

		perm[i] = perm[j];
		perm[j] = t;
	}
	for (uint32_t i = 0; i < n_seq; i++) {
		s->table[i] = malloc(max_pages * 4);
		for (uint32_t p = 0; p < (n[i] + depth[i] + 31) / 32; p++)
			s->table[i][p] = perm[used++];
		s->seq[i] = (struct step_seq){ first, n[i], depth[i], s->table[i] };
		first += n[i];
	}
	free(perm);
	for (uint32_t i = 0; i < s->n; i++)
		s->token[i] = (int32_t)(rnd() % vocab);
	s->n_pad = s->n + pad;
	s->cap = (struct step_cap){ .rows = s->n_pad, .seqs = n_seq, .out = 4, .pages = max_pages,
				    .group = group, .kv_heads = kvh };
	s->tiles = step_tiles(s->n_pad, n_seq, group);
	s->host = calloc(1, step_bytes(&s->cap));
	step_bind(&s->cap, s->host, &s->h);
	size_t bytes = step_fill(&s->cap, s->host, s->n, s->n_pad, s->token, n_seq, s->seq, 0, NULL,
				 s->tiles, splits, splits == 1 ? 1 : 100000);
	s->dev = gpu_put(s->host, step_bytes(&s->cap));
	(void)bytes;
	step_bind(&s->cap, s->dev, &s->d);
}

static void drop_step(struct tstep *s)
{
	for (int i = 0; i < 8; i++)
		free(s->table[i]);
	free(s->host);
	hk_dev_free(s->dev);
}

static void t_embed(void)
{
	static const int T[] = { QUANT_Q6_K, QUANT_Q4_K, QUANT_Q5_K, QUANT_Q8_0, QUANT_F16, QUANT_Q4_0,
				 QUANT_Q4_1, QUANT_Q5_0, QUANT_Q5_1, QUANT_F32 };
	bool ok = true;
	double err = 0;

	for (size_t i = 0; i < sizeof(T) / sizeof(T[0]); i++) {
		uint32_t n[2] = { 3, 2 }, depth[2] = { 0, 4000 }, hd = 64 << rnd() % 3, cols = 256, vocab = 37;
		struct tmat m = make_mat(T[i], vocab, cols, pack_can(T[i], cols));
		struct tstep s;
		float freq[128];
		float *x, *cs, *tx, *tcs, *dx, *dcs, *df;

		make_step(&s, 2, n, depth, 2, 1, 2, 1, vocab);
		for (uint32_t j = 0; j < hd / 2; j++)
			freq[j] = (float)pow(1e6, -2.0 * j / hd);
		df = gpu_put(freq, sizeof(freq));
		dx = gpu_poison(s.n_pad * cols * 4);
		dcs = gpu_poison(s.n_pad * hd * 4);
		x = malloc(s.n_pad * cols * 4);
		tx = malloc(s.n_pad * cols * 4);
		cs = malloc(s.n_pad * hd * 4);
		tcs = malloc(s.n_pad * hd * 4);
		GPU(hk_embed(gpu_stream, s.n_pad, &s.d, &m.m, df, hd, dx, dcs));
		gpu_get(x, dx, s.n_pad * cols * 4);
		gpu_get(cs, dcs, s.n_pad * hd * 4);
		twin_embed(s.n, &s.h, &m.m, m.file, T[i], freq, hd, tx, tcs);
		err = fmax(err, rel_err(x, tx, s.n * cols));
		err = fmax(err, rel_err(cs, tcs, s.n * hd));
		for (uint32_t j = s.n * cols; j < s.n_pad * cols; j++)
			ok &= x[j] == 0;   /* rows of nobody */
		hk_dev_free(df); hk_dev_free(dx); hk_dev_free(dcs);
		free(x); free(tx); free(cs); free(tcs);
		drop_mat(&m);
		drop_step(&s);
	}
	tap(ok && err < 1e-5, "embedding and rotation table: error %.2g", err);
}

static struct hk_kv kv_make(uint32_t hd, uint32_t kvh, uint32_t layers, bool f16)
{
	struct hk_kv kv = { .kv_heads = kvh, .head_dim = hd, .f16 = f16 };

	kv.head_bytes = f16 ? 32 * hd * 2 : 32 * (hd + hd / 32 * 2);
	kv.page_bytes = (size_t)layers * 2 * kvh * kv.head_bytes;
	return kv;
}

static void t_rope(void)
{
	for (int f16 = 0; f16 < 2; f16++) {
		for (uint32_t hd = 64; hd <= 256; hd *= 2) {
			uint32_t n[3] = { 5, 1, 2 }, depth[3] = { 30, 64, 0 }, heads = 4, kvh = 2, layers = 2;
			uint32_t hs = heads + 2 * kvh;
			struct tstep s;
			struct hk_kv kv = kv_make(hd, kvh, layers, f16);
			struct hk_rope a = { .heads = heads, .layer = 1, .eps = 1e-6f, .kv = kv }, d;
			size_t kvb, nq;
			float *qkv, *cs, *qn, *kn, *tq, *q;
			uint8_t *pool, *got;
			uint16_t *q16;
			uint32_t off = 0, far = 0;

			make_step(&s, 3, n, depth, heads / kvh, kvh, 3, 1, 100);
			kvb = s.pages * kv.page_bytes;
			nq = (size_t)s.n_pad * heads * hd;
			qkv = random_x((size_t)s.n_pad * hs * hd, 2);
			cs = malloc((size_t)s.n_pad * hd * 4);
			for (uint32_t i = 0; i < s.n_pad * hd / 2; i++) {
				float th = rnd_f() * 9;

				cs[2 * i] = cosf(th);
				cs[2 * i + 1] = sinf(th);
			}
			qn = random_x(hd, 1);
			kn = random_x(hd, 1);
			tq = malloc(nq * 4);
			q = malloc(nq * 4);
			q16 = malloc(nq * 2);
			pool = malloc(kvb);
			got = malloc(kvb);
			for (size_t i = 0; i < kvb; i++)
				pool[i] = (uint8_t)rnd();
			a.n = s.n;
			a.qkv = qkv;
			a.cs = cs;
			a.q_norm = hd == 64 ? NULL : qn;
			a.k_norm = hd == 64 ? NULL : kn;
			d = a;
			d.n = s.n_pad;
			{   /* in parts that are to be added up, q in three, v in two, where heads are of 128 */
				static const uint32_t parts[3] = { 3, 0, 2 };
				size_t one = (size_t)s.n_pad * hs * hd, stride = one + 8;
				float *all = random_x(3 * stride, 1);

				memcpy(all, qkv, one * 4);
				d.qkv = gpu_put(all, 3 * stride * 4);
				for (size_t i = 0; hd == 128 && i < one; i++) {
					uint32_t h = i / hd % hs, k = h < heads ? 0 : h < heads + kvh ? 1 : 2;

					for (uint32_t p = 1; p < parts[k]; p++)
						qkv[i] += all[p * stride + i];
				}
				if (hd == 128) {
					memcpy(d.parts, parts, sizeof(parts));
					d.stride = stride;
				}
				free(all);
			}
			d.cs = gpu_put(cs, (size_t)s.n_pad * hd * 4);
			d.q_norm = a.q_norm ? gpu_put(qn, hd * 4) : NULL;
			d.k_norm = a.k_norm ? gpu_put(kn, hd * 4) : NULL;
			d.q = gpu_poison(nq * 2);
			d.kv.base = gpu_put(pool, kvb);
			a.kv.base = pool;
			GPU(hk_rope(gpu_stream, &s.d, &d));
			twin_rope(&s.h, &a, tq);
			gpu_get(q16, d.q, nq * 2);
			gpu_get(got, d.kv.base, kvb);
			for (size_t i = 0; i < nq; i++)
				q[i] = quant_from_half(q16[i]);
			/* a byte may round the other way; nothing else may differ */
			for (size_t i = 0; i < kvb; i++) {
				off += got[i] != pool[i];
				far += abs((int8_t)(got[i] - pool[i])) > 1;
			}
			tap(rel_err(q, tq, (size_t)s.n * heads * hd) < 5e-4 && far <= kvb / 5000 && off < kvb / 200,
			    "rope head %u %s: q error %.2g, %u of %zu bytes one off, %u more", hd,
			    f16 ? "f16" : "int8", rel_err(q, tq, (size_t)s.n * heads * hd), off, kvb, far);
			hk_dev_free((void *)d.qkv); hk_dev_free((void *)d.cs); hk_dev_free((void *)d.q_norm);
			hk_dev_free((void *)d.k_norm); hk_dev_free(d.q); hk_dev_free(d.kv.base);
			free(qkv); free(cs); free(qn); free(kn); free(tq); free(q); free(q16); free(pool); free(got);
			drop_step(&s);
		}
	}
}

static void attn_case(uint32_t hd, bool f16, uint32_t heads, uint32_t kvh, uint32_t n_seq,
		      const uint32_t *n, const uint32_t *depth, uint32_t splits, bool halves)
{
	uint32_t layers = 2;
	struct tstep s;
	struct hk_kv kv = kv_make(hd, kvh, layers, f16);
	struct hk_attn a = { .heads = heads, .layer = 1, .splits = splits, .kv = kv }, d;
	size_t kvb, no;
	uint16_t *q, *act = NULL;
	float *out, *t;
	uint8_t *pool;
	double e;

	make_step(&s, n_seq, n, depth, heads / kvh, kvh, 3, splits, 100);
	kvb = s.pages * kv.page_bytes;
	no = (size_t)s.n * heads * hd;
	q = malloc((size_t)s.n_pad * heads * hd * 2);
	for (size_t i = 0; i < (size_t)s.n_pad * heads * hd; i++)
		q[i] = quant_to_half(rnd_normal() * 0.4f);
	pool = malloc(kvb);
	memset(pool, 0xff, kvb);   /* never written: NaN scales */
	for (uint32_t i = 0; i < n_seq; i++) {
		for (uint32_t p = 0; p < n[i] + depth[i]; p++) {
			for (uint32_t h = 0; h < 2 * kvh; h++) {
				uint8_t *b = pool + s.table[i][p / 32] * kv.page_bytes + (2 * kvh + h) * kv.head_bytes;

				for (uint32_t c = 0; c < hd; c++) {
					if (f16)
						((uint16_t *)b)[p % 32 * hd + c] = quant_to_half(rnd_normal());
					else
						b[p % 32 * hd + c] = (uint8_t)(int8_t)((int)(rnd() % 255) - 127);
				}
				for (uint32_t c = 0; c < hd / 32 && !f16; c++)
					((uint16_t *)(b + 32 * hd))[p % 32 * (hd / 32) + c] =
						quant_to_half(0.005f + 0.01f * fabsf(rnd_f()));
			}
		}
	}
	a.n = s.n;
	a.tiles = s.tiles;
	a.q = q;
	d = a;
	a.kv.base = pool;
	d.kv.base = gpu_put(pool, kvb);
	d.q = gpu_put(q, (size_t)s.n_pad * heads * hd * 2);
	d.groups = (s.n_pad + 7) / 8;
	size_t an = (size_t)d.groups * tile_units(heads * hd) * 2048;
	d.out = halves ? NULL : gpu_poison(no * 4);
	d.act = halves ? gpu_poison(an * 2) : NULL;
	d.partial = splits > 1 ? gpu_poison(hk_attn_partial(kvh, s.tiles, splits, hd) * 4) : NULL;
	d.count = splits > 1 ? gpu_zero(kvh * s.tiles * 4) : NULL;
	out = malloc(no * 4);
	t = malloc(no * 4);
	GPU(hk_attn(gpu_stream, &gpu_info, &s.d, &d));
	twin_attn(&s.h, &a, t);
	if (halves) {
		act = malloc(an * 2);
		gpu_get(act, d.act, an * 2);
		for (uint32_t r = 0; r < s.n; r++)
			for (uint32_t k = 0; k < heads * hd; k++)
				out[(size_t)r * heads * hd + k] = quant_from_half(act[act_pos(r, k, 0, d.groups)]);
	} else {
		gpu_get(out, d.out, no * 4);
	}
	e = rel_err(out, t, no);
	if (splits > 1) {
		uint32_t *c = malloc(kvh * s.tiles * 4);

		gpu_get(c, d.count, kvh * s.tiles * 4);
		for (uint32_t i = 0; i < kvh * s.tiles; i++)
			if (c[i])
				e = INFINITY;
		free(c);
	}
	tap(e < 2e-3, "attention head %u %s, %u/%u heads, %u rows, %u sequences, %u splits: error %.2g", hd,
	    f16 ? "f16" : "int8", heads, kvh, s.n, n_seq, splits, e);
	hk_dev_free(d.kv.base); hk_dev_free((void *)d.q); hk_dev_free(d.out); hk_dev_free(d.act);
	hk_dev_free(d.partial); hk_dev_free(d.count);
	free(q); free(act); free(out); free(t); free(pool);
	drop_step(&s);
}

static void t_attn(bool quick)
{
	for (int f16 = 0; f16 < 2; f16++) {
		for (uint32_t hd = 64; hd <= 256; hd *= 2) {
			attn_case(hd, f16, 2, 2, 1, (uint32_t[]){ 1 }, (uint32_t[]){ 0 }, 1, false);
			attn_case(hd, f16, 4, 1, 4, (uint32_t[]){ 1, 1, 1, 1 },
				  (uint32_t[]){ 15, 16, 31, 200 }, 3, false);
			attn_case(hd, f16, 6, 1, 2, (uint32_t[]){ 17, 3 }, (uint32_t[]){ 0, 45 }, 1, true);
			if (!quick) {
				attn_case(hd, f16, 32, 8, 1, (uint32_t[]){ 1 }, (uint32_t[]){ 4096 }, 16, false);
				attn_case(hd, f16, 8, 2, 2, (uint32_t[]){ 130, 33 }, (uint32_t[]){ 100, 700 }, 4, true);
			}
		}
	}
}

/* Norm, rotation and append folded into attention: as one after the other. */
static void t_attn_rope(void)
{
	for (int f16 = 0; f16 < 2; f16++) {
		for (uint32_t hd = 64; hd <= 256; hd *= 2) {
			uint32_t n[3] = { 1, 1, 2 }, depth[3] = { 31, 0, 702 }, heads = 4, kvh = 1, hs = heads + 2 * kvh;
			struct tstep s;
			struct hk_kv kv = kv_make(hd, kvh, 1, f16);
			size_t kvb, no;
			float *qkv, *cs, *w, *a, *b;
			uint8_t *pool, *pa, *pb;

			make_step(&s, 3, n, depth, heads / kvh, kvh, 0, 3, 100);
			kvb = s.pages * kv.page_bytes;
			no = (size_t)s.n * heads * hd;
			pool = malloc(kvb);
			pa = malloc(kvb);
			pb = malloc(kvb);
			for (size_t i = 0; i < kvb; i += 2)
				memcpy(pool + i, &(uint16_t){ quant_to_half(rnd_normal()) }, 2);
			qkv = random_x((size_t)s.n * hs * hd, 1);
			cs = random_x((size_t)s.n * hd, 0.5f);
			w = random_x(hd, 1);
			a = malloc(no * 4);
			b = malloc(no * 4);
			struct hk_rope r = { .n = s.n, .heads = heads, .eps = 1e-6f, .kv = kv,
					     .qkv = gpu_put(qkv, (size_t)s.n * hs * hd * 4),
					     .cs = gpu_put(cs, (size_t)s.n * hd * 4), .q_norm = gpu_put(w, hd * 4),
					     .k_norm = NULL, .q = gpu_poison(no * 2) };
			struct hk_attn t = { .n = s.n, .heads = heads, .tiles = s.tiles, .splits = 3, .q = r.q, .kv = kv,
					     .partial = gpu_poison(hk_attn_partial(kvh, s.tiles, 3, hd) * 4),
					     .count = gpu_zero(kvh * s.tiles * 4), .out = gpu_poison(no * 4) };

			r.kv.base = t.kv.base = gpu_put(pool, kvb);
			GPU(hk_rope(gpu_stream, &s.d, &r));
			GPU(hk_attn(gpu_stream, &gpu_info, &s.d, &t));
			gpu_get(a, t.out, no * 4);
			gpu_get(pa, t.kv.base, kvb);
			GPU(hk_copy_in(gpu_stream, t.kv.base, pool, kvb));
			GPU(hk_fill(gpu_stream, t.out, 0xff, no * 4));
			t.rope = &r;
			t.q = NULL;
			r.parts[1] = 2;   /* it adds nothing up */
			bool refused = hk_attn(gpu_stream, &gpu_info, &s.d, &t) == -EINVAL;

			r.parts[1] = 0;
			GPU(hk_attn(gpu_stream, &gpu_info, &s.d, &t));
			gpu_get(b, t.out, no * 4);
			gpu_get(pb, t.kv.base, kvb);
			tap(refused && rel_err(b, a, no) < 1e-6 && !memcmp(pa, pb, kvb),
			    "attention with rope folded in, head %u %s: error %.2g", hd, f16 ? "f16" : "int8", rel_err(b, a, no));
			hk_dev_free((void *)r.qkv); hk_dev_free((void *)r.cs); hk_dev_free((void *)r.q_norm);
			hk_dev_free(r.q); hk_dev_free(t.partial); hk_dev_free(t.count); hk_dev_free(t.out);
			hk_dev_free(t.kv.base);
			free(pool); free(pa); free(pb); free(qkv); free(cs); free(w); free(a); free(b);
			drop_step(&s);
		}
	}
}

static void t_kv_copy(void)
{
	bool ok = true;

	for (int f16 = 0; f16 < 2; f16++) {
		struct hk_kv kv = kv_make(64, 2, 3, f16);
		uint8_t *p = malloc(3 * kv.page_bytes), *q = malloc(3 * kv.page_bytes);
		uint32_t tok = 1 + rnd() % 31;
		size_t row = f16 ? 128 : 64;

		for (size_t i = 0; i < 3 * kv.page_bytes; i++)
			p[i] = (uint8_t)rnd();
		kv.base = gpu_put(p, 3 * kv.page_bytes);
		GPU(hk_kv_copy(gpu_stream, &kv, 3, 2, 0, tok));
		gpu_get(q, kv.base, 3 * kv.page_bytes);
		for (uint32_t h = 0; h < 3 * 2 * 2; h++) {
			uint8_t *dst = p + 2 * kv.page_bytes + h * kv.head_bytes, *src = p + h * kv.head_bytes;

			memcpy(dst, src, tok * row);
			if (!f16)
				memcpy(dst + 32 * row, src + 32 * row, tok * 4);
		}
		ok &= memcmp(p, q, 3 * kv.page_bytes) == 0;
		ok &= hk_kv_copy(gpu_stream, &kv, 3, 2, 0, 33) == -EINVAL;
		hk_dev_free(kv.base);
		free(p);
		free(q);
	}
	tap(ok, "a page's first tokens are copied, and nothing else");
}

/* -- sampling: against the host's sampler with the same draw ------------------------------ */

static void t_pick(bool quick)
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

int main(int argc, char **argv)
{
	bool quick = argc > 1 && !strcmp(argv[1], "quick");

	if (!gpu_start("kernels"))
		return 0;
	rnd_start();
	t_pack();
	t_gemv(quick);
	t_gemm(quick);
	t_raw();
	t_norm();
	t_swiglu();
	t_embed();
	t_rope();
	t_attn(quick);
	t_attn_rope();
	t_kv_copy();
	t_pick(quick);
	return tap_end();
}
