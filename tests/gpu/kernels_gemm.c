// SPDX-License-Identifier: MIT
/* The GEMM against its twin. */
#include "tests/gpu/kernels.h"

static bool gemm_case3(struct tmat a, struct tmat b, uint32_t cols, uint32_t n, enum hk_mode mode, int split,
		       double *ret_err)
{
	const int type = a.file_type, type2 = b.file_type;
	const uint32_t rows = a.m.rows, rows2 = b.m.rows;
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
			     .scale = 0.5f, .mode = mode, .free = n <= 64 || split, .nseg = 2, .groups_out = groups,
			     .act_out_scale = 0.25f, .act_out = out }, d;
	struct hk_dev_info info = gpu_info;
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
	/* as on two SMs, so that a small matrix fills them: gemm_free.cuh, see hk_gemm_fills() */
	if (mode == HK_SWIGLU && rows >= 96 && rows < 3072)
		info.sms = 2;
	GPU(hk_gemm(gpu_stream, &info, &d));
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

static bool gemm_case2(int type, int type2, uint32_t rows, uint32_t rows2, uint32_t cols, uint32_t n,
		       enum hk_mode mode, int split, double *ret_err)
{
	return gemm_case3(make_mat(type, rows, cols, true), make_mat(type2, rows2, cols, true), cols, n, mode, split, ret_err);
}

/* One matrix whose scales grow along k in its first eight rows of sixteen and shrink in
 * the others, from subnormal halves to far beyond 1, and whose tiles are twice apart:
 * weights become halves only after they were divided by what the largest so far needs. */
static bool gemm_steep(int type, uint32_t n, double *ret_err)
{
	const uint32_t rows = 176, cols = 2048, bs = quant_type((uint32_t)type)->bytes, at = type == QUANT_Q6_K ? 208 : 0;
	size_t bytes;
	uint8_t *p = random_mat(type, rows, cols, &bytes);

	for (uint32_t r = 0; r < rows; r++)
		for (uint32_t u = 0; u < cols / 256; u++) {
			uint8_t *const b = p + ((size_t)r * (cols / 256) + u) * bs;

			for (uint32_t i = 0; i < (type == QUANT_Q6_K ? 1u : 2u); i++) {
				uint16_t h;

				memcpy(&h, b + at + 2 * i, 2);
				h = quant_to_half(ldexpf(quant_from_half(h), 2 * (int)(r % 16 < 8 ? u : 7 - u) - 8 - (int)(r / 16 % 3)));
				memcpy(b + at + 2 * i, &h, 2);
			}
		}
	return gemm_case3(pack_mat(type, rows, cols, p, bytes), make_mat(type, 16, cols, true), cols, n, HK_STORE, 2, ret_err);
}

static bool gemm_case(int type, uint32_t rows, uint32_t rows2, uint32_t cols, uint32_t n,
		      enum hk_mode mode, int split, double *ret_err)
{
	return gemm_case2(type, type, rows, rows2, cols, n, mode, split, ret_err);
}

void t_gemm(bool quick)
{
	static const uint32_t NS[] = { 1, 7, 8, 9, 16, 17, 24, 25, 33, 40, 41, 63, 65, 129, 64, 127, 128 };

	for (size_t i = 0; i < N_TYPES; i++) {
		int type = TYPES[i];
		double err = 0;
		bool ok = true, k = pack_can(type, 256) && !pack_can(type, 64);

		for (size_t j = 0; j < sizeof(NS) / sizeof(NS[0]); j++) {
			/* each number of token groups for the type of most weights, quick or not */
			if (quick && (type == QUANT_Q4_K ? j % 2 : (j + i) % 4))
				continue;
			ok &= gemm_case(type, 144, 16, k ? 512 : 448, NS[j], HK_STORE, false, &err);
			ok &= gemm_case(type, 176, 176, k ? 256 : 320, NS[j], HK_SWIGLU, false, &err);
			ok &= gemm_case(type, 32, 32, 512, NS[j], HK_SWIGLU, true, &err);
			ok &= gemm_case(type, 32, 128, 1024, NS[j], HK_ADD, true, &err);
			ok &= gemm_case(type, 176, 32, 1024, NS[j], HK_STORE, 2, &err);
		}
		/* parts of k are to be had and would be taken: the sum must be whole before it is bent */
		ok &= gemm_case(type, 176, 176, 1024, 8, HK_SWIGLU, 1, &err);
		ok &= gemm_case(type, 160, 160, 1024, 33, HK_SWIGLU, 1, &err);
		ok &= gemm_case(type, 160, 160, 1024, 64, HK_SWIGLU, 1, &err);
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
			ok &= gemm_case(type, 3072, 3072, 1024, 33, HK_SWIGLU, true, &err);   /* too few blocks for a card: parts of k */
		}
		tap(ok, "gemm %s: largest error %.3f of the bound", quant_name((uint32_t)type), err);
	}
	{
		double err = 0;
		bool ok = true;

		for (size_t j = 0; j < sizeof(NS) / sizeof(NS[0]); j++) {
			if (quick && j % 3)
				continue;
			ok &= gemm_case2(QUANT_Q4_K, QUANT_Q6_K, 144, 48, 512, NS[j], HK_STORE, 1, &err);
			ok &= NS[j] > 64 ? gemm_case2(QUANT_Q6_K, QUANT_Q4_K, 48, 272, 768, NS[j], HK_ADD, 1, &err)
					 : gemm_case2(QUANT_Q6_K, QUANT_Q4_K, 48, 272, 768, NS[j], HK_STORE, 2, &err);
		}
		tap(ok, "gemm Q4_K and Q6_K in one launch: largest error %.3f of the bound", err);
	}
	{
		double err = 0;
		bool ok = true;

		for (uint32_t n = 8; n <= 64; n += 8)
			ok &= gemm_steep(QUANT_Q4_K, n, &err) && gemm_steep(QUANT_Q6_K, n, &err);
		tap(ok, "gemm of scales from 1e-7 to 30 in one row, of 1 to 4 in a warp's tiles: largest error %.3f of the bound", err);
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
		for (uint32_t i = 0; i < N_OTHER; i++) {
			b = g; b.seg[0].w.type = OTHER_TYPES[i]; b.apart = b.partial_floats = 16 * 9; b.ret_parts = &parts;
			ok &= hk_gemm(gpu_stream, &gpu_info, &b) == -EINVAL && !parts;
		}
		b = g; b.apart = 16 * 9; b.partial_floats = 16 * 9;
		ok &= hk_gemm(gpu_stream, &gpu_info, &b) == -EINVAL;   /* nowhere to say how many */
		b.ret_parts = &parts; b.partial_floats--;
		ok &= hk_gemm(gpu_stream, &gpu_info, &b) == -EINVAL;
		b = g; b.nseg = 2; b.seg[1] = b.seg[0]; b.seg[1].w.type = QUANT_Q6_K; b.mode = HK_SWIGLU; b.act_out = x;
		ok &= hk_gemm(gpu_stream, &gpu_info, &b) == -EINVAL;
		b.mode = HK_STORE; b.n = 65; b.groups = 16;
		ok &= hk_gemm(gpu_stream, &gpu_info, &b) == -EINVAL;
		b.free = true; b.seg[1].y = (float *)(x + 4);
		ok &= hk_gemm(gpu_stream, &gpu_info, &b) == -EINVAL;   /* mixed, and four floats cannot be stored at once */
		b = g; b.nseg = 2; b.seg[1] = b.seg[0]; b.seg[1].w.type = QUANT_Q8_0;
		ok &= hk_gemm(gpu_stream, &gpu_info, &b) == -EINVAL;
		tap(ok, "gemm refuses what it cannot do, and 0 tokens is nothing");
		hk_dev_free(x);
		drop_mat(&a);
	}
}
