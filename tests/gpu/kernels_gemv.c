// SPDX-License-Identifier: MIT
/* Packing, and the GEMV against its twin. */
#include "tests/gpu/kernels.h"

void t_pack(bool quick)
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

void t_gemv(bool quick)
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
		for (uint32_t i = 0; i < N_OTHER; i++) {
			b = g; b.seg[0].w.type = OTHER_TYPES[i];
			ok &= hk_gemv(gpu_stream, &gpu_info, &b) == -EINVAL;
		}
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
