// SPDX-License-Identifier: MIT
/* What goes row by row: file order, norm, SwiGLU, embedding, rotation, copies of pages. */
#include "tests/gpu/kernels.h"

/* @of: rows of x that are taken, as the head takes a step's last ones. */
static bool raw_case(int type, uint32_t rows, uint32_t cols, uint32_t n, bool pack, bool norm, bool of,
		     enum hk_mode mode, double *ret_err)
{
	struct tmat a = make_mat(type, rows, cols, pack);
	const uint32_t row0 = pack ? rows / 16 * 16 : 0;
	float *x = random_x((size_t)n * cols, 1), *w = random_x(cols, 1), *b = random_x(rows, 1);
	float *t = random_x((size_t)n * rows, 1), *y = malloc((size_t)n * rows * 4 + 4);
	uint32_t *row = malloc(n * 4u + 4);
	struct hk_raw g = { .n = n, .x = x, .ldx = cols, .row = of ? row : NULL, .norm = norm ? w : NULL,
			    .eps = 1e-6f, .mode = mode, .row0 = row0 }, d;
	double e;

	for (uint32_t i = 0; i < n; i++)
		row[i] = rnd() % n;
	g.seg = (struct hk_seg){ .w = a.m, .bias = b, .y = t, .ldy = rows };
	d = g;
	d.seg.y = gpu_put(t, (size_t)n * rows * 4);
	d.seg.bias = gpu_put(b, rows * 4);
	d.x = gpu_put(x, (size_t)n * cols * 4);
	d.row = of ? gpu_put(row, n * 4) : NULL;
	d.norm = norm ? gpu_put(w, cols * 4) : NULL;
	if (mode == HK_STORE && !pack)
		GPU(hk_fill(gpu_stream, d.seg.y, 0xff, (size_t)n * rows * 4));
	twin_raw(&g, a.file, type);
	GPU(hk_raw(gpu_stream, &d));
	gpu_get(y, d.seg.y, (size_t)n * rows * 4);
	e = rel_err(y, t, (size_t)n * rows);
	if (!(e < 2e-4))
		printf("# raw %s packed %d %ux%u, n %u: %g\n", quant_name((uint32_t)type), pack, rows, cols, n, e);
	*ret_err = e <= *ret_err ? *ret_err : e;   /* a NaN stays to be seen */
	hk_dev_free(d.seg.y);
	hk_dev_free((void *)d.seg.bias);
	hk_dev_free((void *)d.x);
	hk_dev_free((void *)d.row);
	hk_dev_free((void *)d.norm);
	drop_mat(&a);
	free(x); free(w); free(b); free(t); free(y); free(row);
	return e < 2e-4;
}

void t_raw(bool quick)
{
	static const int MORE[] = { QUANT_F32, QUANT_BF16, QUANT_F16, QUANT_Q4_0, QUANT_Q4_1, QUANT_Q5_0,
				    QUANT_Q5_1, QUANT_Q8_0, QUANT_Q4_K, QUANT_Q5_K, QUANT_Q6_K };
	static const uint32_t NS[] = { 0, 1, 2, 33 };
	bool ok = true;
	double err = 0;

	for (size_t i = 0; i < sizeof(MORE) / sizeof(MORE[0]); i++) {
		const bool k = MORE[i] >= QUANT_Q4_K && MORE[i] <= QUANT_Q6_K;

		for (int pack = 0; pack < 2; pack++) {
			uint32_t rows = 16 * (uint32_t)(1 + rnd() % 3) + 1 + rnd() % 15;
			uint32_t cols = k ? 256 : 96;

			if (pack && !pack_can(MORE[i], cols))
				cols = 320;
			if (pack && !pack_can(MORE[i], cols))
				continue;
			ok &= raw_case(MORE[i], rows, cols, 3, pack, i % 2, false, i % 3 ? HK_STORE : HK_ADD, &err);
			if (!quick)
				ok &= raw_case(MORE[i], 131, 2560, 9, pack && pack_can(MORE[i], 2560), true, true, HK_STORE, &err);
		}
		/* a block has eight rows */
		for (uint32_t rows = 7; rows <= 9; rows++)
			ok &= raw_case(MORE[i], rows, k ? 256 : 32, NS[(i + rows) % 4], false, rows % 2, rows % 2, HK_STORE, &err);
	}
	for (size_t j = 0; j < 4; j++) {
		ok &= raw_case(QUANT_F32, 1, 1, NS[j], false, j % 2, false, HK_ADD, &err);
		ok &= raw_case(QUANT_F16, 33, 257, NS[j], false, true, true, HK_STORE, &err);
		ok &= raw_case(QUANT_Q8_0, 16, 64, NS[j], true, false, false, HK_STORE, &err);   /* no rest rows: nothing to do */
	}
	tap(ok, "matrices and rest rows in file order: error %.2g", err);
	ok = true;
	for (uint32_t i = 0; i < N_OTHER + 2; i++) {
		struct tmat a = make_mat(QUANT_Q8_0, 17, 256, false);
		float *x = gpu_zero(256 * 4), y[17], *dy = gpu_poison(sizeof(y)), was[17];
		struct hk_raw g = { .n = 1, .x = x, .ldx = 256, .mode = HK_STORE };

		g.seg = (struct hk_seg){ .w = a.m, .y = dy, .ldy = 17 };
		if (i < N_OTHER) {
			g.seg.w.type = OTHER_TYPES[i];
		} else {   /* neither has tiles, so no rest rows */
			g.seg.w.type = i == N_OTHER ? QUANT_F32 : QUANT_BF16;
			g.seg.w.packed = 1;
			g.row0 = 16;
		}
		gpu_get(was, dy, sizeof(was));
		ok &= hk_raw(gpu_stream, &g) == -EINVAL;
		gpu_get(y, dy, sizeof(y));
		ok &= !memcmp(y, was, sizeof(y));
		hk_dev_free(x);
		hk_dev_free(dy);
		drop_mat(&a);
	}
	tap(ok, "a matrix of a type without a reader is refused, and nothing is written");
}

void t_norm(bool quick)
{
	static const uint32_t NS[] = { 1, 7, 8, 9, 33, 257 }, COLS[] = { 64, 896, 2560, 4096, 5184, 8256 };
	double err = 0;
	bool ok = true;

	for (size_t i = 0; i < 6; i++) {
		for (size_t c = 0; c < (i == 1 ? 6u : i < 5 ? 3u : 2u); c++) {
			uint32_t n = NS[i], cols = COLS[c], groups = (n + 7) / 8;
			size_t an = (size_t)groups * tile_units(cols) * 2048;
			/* the last is larger than F16 holds */
			float *x = random_x(n * cols, 1), *w = random_x(cols, c == 2 ? 3e5f : 1), sc[257];
			float *t = malloc(n * cols * 4), *y = malloc(n * cols * 4);
			uint16_t *a = malloc(an * 2);
			float *dx = gpu_put(x, n * cols * 4), *dw = gpu_put(w, cols * 4), *dsc = gpu_poison(sizeof(sc));
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

static bool swiglu_case(uint32_t n, uint32_t ff, double *ret_err)
{
	const size_t total = (size_t)n * ff;
	float *g = random_x(total, 3), *u = random_x(total, 3), *h = malloc(total * 4 + 4), *t = malloc(total * 4 + 4);
	float *dg = gpu_put(g, total * 4), *du = gpu_put(u, total * 4), *dh = gpu_poison(total * 4 + 4);
	/* of a few alone each one's own error counts, which grows with what it is a power of */
	const bool few = total < 16;
	const double bound = few ? 2e-6 : 1e-6;
	uint32_t after;
	double e;

	for (size_t i = 0; few && i < total; i++)
		g[i] = 4 * rnd_f();
	GPU(hk_copy_in(gpu_stream, dg, g, total * 4));
	twin_swiglu(n, ff, g, u, t);
	GPU(hk_swiglu(gpu_stream, n, ff, dg, du, dh));
	gpu_get(h, dh, total * 4);
	gpu_get(&after, dh + total, 4);
	e = rel_err(h, t, total);
	*ret_err = e <= *ret_err ? *ret_err : e;
	if (!(e < bound && after == UINT32_MAX))
		printf("# swiglu %u x %u: %g, after it %08x\n", n, ff, e, after);
	hk_dev_free(dg); hk_dev_free(du); hk_dev_free(dh);
	free(g); free(u); free(h); free(t);
	return e < bound && after == UINT32_MAX;
}

void t_swiglu(bool quick)
{
	static const uint32_t FF[] = { 1, 77, 255, 256, 257, 896 };
	double err = 0;
	bool ok = swiglu_case(0, 77, &err) && swiglu_case(3, 0, &err);

	for (size_t i = 0; i < sizeof(FF) / sizeof(FF[0]); i++)
		for (uint32_t n = 1; n <= 4; n++)
			ok &= swiglu_case(n, FF[i], &err);
	if (!quick)
		ok &= swiglu_case(4, 9728, &err);
	tap(ok, "swiglu: error %.2g", err);
}

static bool embed_case(int type, uint32_t cols, uint32_t n0, uint32_t n1, double *ret_err)
{
	uint32_t n[2] = { n0, n1 }, depth[2] = { 0, 4000 }, hd = 64 << rnd() % 3, vocab = 37;
	struct tmat m = make_mat(type, vocab, cols, pack_can(type, cols));
	struct tstep s;
	float freq[128];
	float *x, *cs, *tx, *tcs, *dx, *dcs, *df;
	bool ok = true;
	double e;

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
	GPU(hk_embed(gpu_stream, 0, &s.d, &m.m, df, hd, dx, dcs));
	gpu_get(x, dx, s.n_pad * cols * 4);
	gpu_get(cs, dcs, s.n_pad * hd * 4);
	for (uint32_t j = 0; j < s.n_pad * cols; j++)
		ok &= isnan(x[j]);   /* 0 tokens are nothing */
	for (uint32_t j = 0; j < s.n_pad * hd; j++)
		ok &= isnan(cs[j]);
	GPU(hk_embed(gpu_stream, s.n_pad, &s.d, &m.m, df, hd, dx, dcs));
	gpu_get(x, dx, s.n_pad * cols * 4);
	gpu_get(cs, dcs, s.n_pad * hd * 4);
	twin_embed(s.n, &s.h, &m.m, m.file, type, freq, hd, tx, tcs);
	e = rel_err(x, tx, s.n * cols) + rel_err(cs, tcs, s.n * hd);
	for (uint32_t j = s.n * cols; j < s.n_pad * cols; j++)
		ok &= x[j] == 0;   /* rows of nobody */
	ok &= e < 1e-5;
	*ret_err = e <= *ret_err ? *ret_err : e;
	if (!ok)
		printf("# embed %s of %u, %u+%u tokens: %g\n", quant_name((uint32_t)type), cols, n0, n1, e);
	hk_dev_free(df); hk_dev_free(dx); hk_dev_free(dcs);
	free(x); free(tx); free(cs); free(tcs);
	drop_mat(&m);
	drop_step(&s);
	return ok;
}

void t_embed(bool quick)
{
	static const int T[] = { QUANT_Q6_K, QUANT_Q4_K, QUANT_Q5_K, QUANT_Q8_0, QUANT_F16, QUANT_Q4_0,
				 QUANT_Q4_1, QUANT_Q5_0, QUANT_Q5_1, QUANT_F32 };
	/* a block, less than a tile's 64, a tile, ragged, and what models have */
	static const uint32_t COLS[] = { 32, 64, 96, 320, 1024, 2560 };
	bool ok = true;
	double err = 0;

	for (size_t i = 0; i < sizeof(T) / sizeof(T[0]); i++) {
		const bool k = i < 3;

		ok &= embed_case(T[i], 256, 3, 2, &err);
		for (size_t c = k ? 4 : 0; c < sizeof(COLS) / sizeof(COLS[0]); c++)
			ok &= embed_case(T[i], COLS[c], 1, (uint32_t)c % 2, &err);
	}
	for (uint32_t cols = 255; cols <= 257; cols++)   /* a block has 256 of them */
		ok &= embed_case(QUANT_F32, cols, 5, 0, &err) && embed_case(QUANT_F16, cols, 0, 5, &err);
	ok &= embed_case(QUANT_F32, 1, 1, 0, &err) && embed_case(QUANT_F16, 1, 2, 15, &err);
	ok &= embed_case(QUANT_Q8_0, 64, 0, 0, &err);   /* rows of nobody alone */
	tap(ok, "embedding and rotation table: error %.2g", err);
	ok = true;
	for (uint32_t i = 0; i < N_OTHER + 2; i++) {
		struct tmat m = make_mat(QUANT_Q8_0, 17, 256, i >= N_OTHER);
		struct tstep s;
		float *freq = gpu_zero(128), x[256], was[256], *dx, *dcs;

		make_step(&s, 1, (uint32_t[]){ 1 }, (uint32_t[]){ 0 }, 1, 1, 0, 1, 17);
		dx = gpu_poison(s.n_pad * sizeof(x));
		dcs = gpu_poison(s.n_pad * 256);
		m.m.type = i < N_OTHER ? OTHER_TYPES[i] : i == N_OTHER ? QUANT_F32 : QUANT_BF16;
		gpu_get(was, dx, sizeof(was));
		ok &= hk_embed(gpu_stream, s.n_pad, &s.d, &m.m, freq, 64, dx, dcs) == -EINVAL;
		gpu_get(x, dx, sizeof(x));
		ok &= !memcmp(x, was, sizeof(x));
		hk_dev_free(freq);
		hk_dev_free(dx);
		hk_dev_free(dcs);
		drop_mat(&m);
		drop_step(&s);
	}
	tap(ok, "an embedding of a type without a reader is refused, and nothing is written");
}

struct rope_shape { uint32_t heads, kvh, n_seq, n[3], depth[3]; };

static bool rope_case(uint32_t hd, bool f16, const struct rope_shape *sh)
{
	const uint32_t heads = sh->heads, kvh = sh->kvh, layers = 2, hs = heads + 2 * kvh;
	struct tstep s;
	struct hk_kv kv = kv_make(hd, kvh, layers, f16);
	struct hk_rope a = { .heads = heads, .layer = 1, .eps = 1e-6f, .kv = kv }, d;
	size_t kvb, nq, live;
	float *qkv, *cs, *qn, *kn, *tq, *q;
	uint8_t *pool, *got;
	uint16_t *q16;
	uint32_t off = 0, far = 0;
	bool ok = true;
	double e;

	make_step(&s, sh->n_seq, sh->n, sh->depth, heads / kvh, kvh, 3, 1, 100);
	kvb = s.pages * kv.page_bytes;
	nq = (size_t)s.n_pad * heads * hd;
	live = (size_t)s.n * heads * hd;
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
	d.n = 0;   /* nothing */
	GPU(hk_rope(gpu_stream, &s.d, &d));
	gpu_get(q16, d.q, nq * 2);
	gpu_get(got, d.kv.base, kvb);
	for (size_t i = 0; i < nq; i++)
		ok &= q16[i] == 0xffff;
	ok &= !memcmp(got, pool, kvb);
	d.n = s.n_pad;
	GPU(hk_rope(gpu_stream, &s.d, &d));
	twin_rope(&s.h, &a, tq);
	gpu_get(q16, d.q, nq * 2);
	gpu_get(got, d.kv.base, kvb);
	for (size_t i = 0; i < nq; i++)
		q[i] = quant_from_half(q16[i]);
	for (size_t i = live; i < nq; i++)
		ok &= q[i] == 0;   /* rows of nobody */
	/* a byte may round the other way; nothing else may differ */
	for (size_t i = 0; i < kvb; i++) {
		off += got[i] != pool[i];
		far += abs((int8_t)(got[i] - pool[i])) > 1;
	}
	e = rel_err(q, tq, live);
	ok &= e < 5e-4 && far <= kvb / 5000 && off < kvb / 200;
	tap(ok, "rope head %u %s, %u/%u heads, %u rows: q error %.2g, %u of %zu bytes one off, %u more", hd,
	    f16 ? "f16" : "int8", heads, kvh, s.n, e, off, kvb, far);
	hk_dev_free((void *)d.qkv); hk_dev_free((void *)d.cs); hk_dev_free((void *)d.q_norm);
	hk_dev_free((void *)d.k_norm); hk_dev_free(d.q); hk_dev_free(d.kv.base);
	free(qkv); free(cs); free(qn); free(kn); free(tq); free(q); free(q16); free(pool); free(got);
	drop_step(&s);
	return ok;
}

void t_rope(bool quick)
{
	/* a warp has four heads of a kind and a row: fewer, as many, and more */
	static const struct rope_shape SHAPE[] = {
		{ 4, 2, 3, { 5, 1, 2 }, { 30, 64, 0 } },
		{ 3, 3, 1, { 1 }, { 31 } },
		{ 5, 5, 3, { 17, 0, 1 }, { 20, 3, 32 } },
		{ 14, 2, 1, { 33 }, { 0 } },
		{ 4, 1, 2, { 0, 0 }, { 5, 0 } },
		{ 32, 8, 2, { 130, 1 }, { 100, 4096 } },
	};

	for (int f16 = 0; f16 < 2; f16++)
		for (uint32_t hd = 64; hd <= 256; hd *= 2)
			for (size_t i = 0; i < (quick ? 5u : 6u); i++)
				rope_case(hd, f16, &SHAPE[i]);
}

static bool kv_copy_case(uint32_t hd, bool f16, uint32_t tokens)
{
	struct hk_kv kv = kv_make(hd, 2, 3, f16), dev = kv;
	const size_t bytes = 3 * kv.page_bytes;
	uint8_t *p = malloc(bytes), *q = malloc(bytes);
	bool ok;

	for (size_t i = 0; i < bytes; i++)
		p[i] = (uint8_t)rnd();
	kv.base = p;
	dev.base = gpu_put(p, bytes);
	ok = hk_kv_copy(gpu_stream, &dev, 3, 2, 0, 33) == -EINVAL;
	GPU(hk_kv_copy(gpu_stream, &dev, 3, 1, 1, tokens));   /* to itself */
	gpu_get(q, dev.base, bytes);
	ok &= !memcmp(p, q, bytes);
	GPU(hk_kv_copy(gpu_stream, &dev, 3, 2, 0, tokens));
	gpu_get(q, dev.base, bytes);
	twin_kv_copy(&kv, 3, 2, 0, tokens);
	ok &= !memcmp(p, q, bytes);
	if (!ok)
		printf("# kv_copy head %u %s, %u tokens\n", hd, f16 ? "f16" : "int8", tokens);
	hk_dev_free(dev.base);
	free(p); free(q);
	return ok;
}

void t_kv_copy(bool quick)
{
	bool ok = true;

	for (int f16 = 0; f16 < 2; f16++)
		for (uint32_t hd = 64; hd <= 256; hd *= 2) {
			ok &= kv_copy_case(hd, f16, 0) && kv_copy_case(hd, f16, 1);
			ok &= kv_copy_case(hd, f16, 2 + rnd() % 29);
			ok &= kv_copy_case(hd, f16, 31) && kv_copy_case(hd, f16, 32);
		}
	tap(ok, "a page's first tokens are copied, and nothing else");
}
