// SPDX-License-Identifier: MIT
/* Attention against its twin, and with rotation folded in against both apart. */
#include "tests/gpu/kernels.h"

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

/* No rows, and rows of nobody alone: nothing is written. */
static bool attn_none(uint32_t hd, bool f16, bool rope)
{
	const uint32_t heads = 4, kvh = 2, splits = 2, hs = heads + 2 * kvh;
	const uint32_t n[2] = { 0, 0 }, depth[2] = { 40, 0 };
	struct tstep s;
	struct hk_kv kv = kv_make(hd, kvh, 2, f16);
	struct hk_rope r = { .heads = heads, .layer = 1, .eps = 1e-6f, .kv = kv };
	struct hk_attn a = { .heads = heads, .layer = 1, .splits = splits, .kv = kv };
	size_t kvb, no;
	bool ok = true;

	make_step(&s, 2, n, depth, heads / kvh, kvh, 3, splits, 100);
	kvb = s.pages * kv.page_bytes;
	no = (size_t)s.n_pad * heads * hd;
	float *qkv = random_x((size_t)s.n_pad * hs * hd, 1), *out = malloc(no * 4);
	uint8_t *pool = malloc(kvb);
	uint32_t count[64];

	a.tiles = s.tiles;
	a.q = gpu_zero(no * 2);
	a.kv.base = r.kv.base = gpu_poison(kvb);
	a.out = gpu_poison(no * 4);
	a.partial = gpu_poison(hk_attn_partial(kvh, s.tiles, splits, hd) * 4);
	a.count = gpu_zero(kvh * s.tiles * 4);
	r.n = s.n_pad;
	r.qkv = gpu_put(qkv, (size_t)s.n_pad * hs * hd * 4);
	r.cs = gpu_put(qkv, (size_t)s.n_pad * hd * 4);
	a.rope = rope ? &r : NULL;
	GPU(hk_attn(gpu_stream, &gpu_info, &s.d, &a));
	a.n = s.n_pad;
	GPU(hk_attn(gpu_stream, &gpu_info, &s.d, &a));
	gpu_get(out, a.out, no * 4);
	gpu_get(pool, a.kv.base, kvb);
	gpu_get(count, a.count, kvh * s.tiles * 4);
	for (size_t i = 0; i < no; i++)
		ok &= isnan(out[i]);
	for (size_t i = 0; i < kvb; i++)
		ok &= pool[i] == 0xff;
	for (uint32_t i = 0; i < kvh * s.tiles; i++)
		ok &= !count[i];
	hk_dev_free((void *)a.q); hk_dev_free(a.kv.base); hk_dev_free(a.out); hk_dev_free(a.partial);
	hk_dev_free(a.count); hk_dev_free((void *)r.qkv); hk_dev_free((void *)r.cs);
	free(qkv); free(out); free(pool);
	drop_step(&s);
	return ok;
}

void t_attn(bool quick)
{
	bool none = true;

	for (int f16 = 0; f16 < 2; f16++)
		for (uint32_t hd = 64; hd <= 256; hd *= 2)
			none &= attn_none(hd, f16, false) && attn_none(hd, f16, true);
	tap(none, "attention of no rows, and of rows of nobody, writes nothing");
	for (int f16 = 0; f16 < 2; f16++) {
		for (uint32_t hd = 64; hd <= 256; hd *= 2) {
			attn_case(hd, f16, 2, 2, 1, (uint32_t[]){ 1 }, (uint32_t[]){ 0 }, 1, false);
			attn_case(hd, f16, 2, 2, 1, (uint32_t[]){ 21 }, (uint32_t[]){ 9 }, 1, false);
			attn_case(hd, f16, 4, 1, 4, (uint32_t[]){ 1, 1, 1, 1 },
				  (uint32_t[]){ 15, 16, 31, 200 }, 3, false);
			attn_case(hd, f16, 6, 1, 2, (uint32_t[]){ 17, 3 }, (uint32_t[]){ 0, 45 }, 1, true);
			/* a tile less one, a tile, and one more: of one head, and of four that share keys */
			for (uint32_t n = 15; n <= 17; n++)
				attn_case(hd, f16, 1, 1, 1, &n, (uint32_t[]){ n - 15 }, 1, false);
			attn_case(hd, f16, 4, 1, 1, (uint32_t[]){ 4 }, (uint32_t[]){ 30 }, 1, true);
			attn_case(hd, f16, 4, 2, 3, (uint32_t[]){ 3, 0, 2 }, (uint32_t[]){ 16, 40, 0 }, 2, false);
			if (!quick) {
				attn_case(hd, f16, 32, 8, 1, (uint32_t[]){ 1 }, (uint32_t[]){ 4096 }, 16, false);
				attn_case(hd, f16, 8, 2, 2, (uint32_t[]){ 130, 33 }, (uint32_t[]){ 100, 700 }, 4, true);
			}
		}
	}
}

/*
 * Norm, rotation and append folded into attention: the same bytes in the pages as one
 * after the other. The step's own keys are then chunks of their own, so weights may
 * round to other halves.
 */
static void attn_rope_case(uint32_t hd, bool f16, uint32_t heads, uint32_t kvh, const uint32_t *n, const uint32_t *depth, uint32_t splits,
			   const uint32_t *parts)
{
	uint32_t hs = heads + 2 * kvh;
	struct tstep s;
	struct hk_kv kv = kv_make(hd, kvh, 2, f16);
	size_t kvb, no, stride;
	float *qkv, *cs, *w, *a, *b;
	uint8_t *pool, *pa, *pb;

	make_step(&s, 3, n, depth, heads / kvh, kvh, 3, splits, 100);
	kvb = s.pages * kv.page_bytes;
	no = (size_t)s.n * heads * hd;
	stride = (size_t)s.n_pad * hs * hd + 8;
	pool = malloc(kvb);
	pa = malloc(kvb);
	pb = malloc(kvb);
	memset(pool, 0xff, kvb);   /* never written: NaN */
	for (uint32_t i = 0; i < 3; i++)
		for (uint32_t p = 0; p < depth[i]; p++)
			for (uint32_t h = 0; h < 2 * kvh; h++) {
				uint8_t *c = pool + s.table[i][p / 32] * kv.page_bytes + (2 * kvh + h) * kv.head_bytes;

				for (uint32_t k = 0; k < hd; k++) {
					if (f16)
						((uint16_t *)c)[p % 32 * hd + k] = quant_to_half(rnd_normal());
					else
						c[p % 32 * hd + k] = (uint8_t)(int8_t)((int)(rnd() % 255) - 127);
				}
				for (uint32_t k = 0; k < hd / 32 && !f16; k++)
					((uint16_t *)(c + 32 * hd))[p % 32 * (hd / 32) + k] = quant_to_half(0.005f + 0.01f * fabsf(rnd_f()));
			}
	qkv = random_x(3 * stride, 1);
	cs = random_x((size_t)s.n_pad * hd, 0.5f);
	w = random_x(hd, 1);
	a = malloc(no * 4);
	b = malloc(no * 4);
	struct hk_rope r = { .n = s.n_pad, .heads = heads, .layer = 1, .eps = 1e-6f, .kv = kv, .parts = { parts[0], parts[1], parts[2] },
			     .stride = stride, .qkv = gpu_put(qkv, 3 * stride * 4),
			     .cs = gpu_put(cs, (size_t)s.n_pad * hd * 4), .q_norm = gpu_put(w, hd * 4),
			     .k_norm = NULL, .q = gpu_poison((size_t)s.n_pad * heads * hd * 2) };
	struct hk_attn t = { .n = s.n_pad, .heads = heads, .layer = 1, .tiles = s.tiles, .splits = splits, .q = r.q, .kv = kv,
			     .partial = gpu_poison(hk_attn_partial(kvh, s.tiles, splits, hd) * 4 + 4),
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
	t.n = HK_ROPE_MAX + 1;
	bool refused = hk_attn(gpu_stream, &gpu_info, &s.d, &t) == -EINVAL;

	t.n = s.n_pad;
	r.stride++;   /* parts of 16 bytes' alignment only */
	refused &= hk_attn(gpu_stream, &gpu_info, &s.d, &t) == -EINVAL && hk_rope(gpu_stream, &s.d, &r) == -EINVAL;
	r.stride--;
	GPU(hk_attn(gpu_stream, &gpu_info, &s.d, &t));
	gpu_get(b, t.out, no * 4);
	gpu_get(pb, t.kv.base, kvb);
	tap(refused && rel_err(b, a, no) < 2e-4 && !memcmp(pa, pb, kvb),
	    "attention with rope folded in, head %u %s, %u/%u heads, %u rows: error %.2g", hd, f16 ? "f16" : "int8", heads, kvh, s.n,
	    rel_err(b, a, no));
	hk_dev_free((void *)r.qkv); hk_dev_free((void *)r.cs); hk_dev_free((void *)r.q_norm);
	hk_dev_free(r.q); hk_dev_free(t.partial); hk_dev_free(t.count); hk_dev_free(t.out);
	hk_dev_free(t.kv.base);
	free(pool); free(pa); free(pb); free(qkv); free(cs); free(w); free(a); free(b);
	drop_step(&s);
}

void t_attn_rope(bool quick)
{
	static const uint32_t ONE[3] = { 1, 0, 1 }, MORE[3] = { 3, 1, 2 };

	for (int f16 = 0; f16 < 2; f16++) {
		for (uint32_t hd = 64; hd <= 256; hd *= 2) {
			attn_rope_case(hd, f16, 4, 1, (uint32_t[]){ 1, 1, 2 }, (uint32_t[]){ 31, 0, 702 }, 3, ONE);
			attn_rope_case(hd, f16, 6, 2, (uint32_t[]){ 1, 37, 2 }, (uint32_t[]){ 31, 0, 70 }, 1, MORE);
			attn_rope_case(hd, f16, 7, 1, (uint32_t[]){ 3, 18, 33 }, (uint32_t[]){ 300, 117, 149 }, 4, ONE);
			attn_rope_case(hd, f16, 2, 2, (uint32_t[]){ 19, 1, 5 }, (uint32_t[]){ 0, 16, 40 }, 2, MORE);
			attn_rope_case(hd, f16, 1, 1, (uint32_t[]){ 15, 16, 17 }, (uint32_t[]){ 1, 16, 0 }, 1, ONE);
			attn_rope_case(hd, f16, 4, 1, (uint32_t[]){ 4, 0, 1 }, (uint32_t[]){ 30, 40, 31 }, 1, ONE);
		}
	}
}
