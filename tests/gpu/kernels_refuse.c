// SPDX-License-Identifier: MIT
/* What is not aligned as a kernel reads or writes it is refused, and nothing is written. */
#include "tests/gpu/kernels.h"

/* Buffers that a refused call must leave, and the call that is taken must not. */
struct left { const void *dev[4]; uint8_t *was[4]; size_t bytes[4]; int n; };

static void leave(struct left *l, const void *dev, size_t bytes)
{
	l->dev[l->n] = dev;
	l->bytes[l->n] = bytes;
	l->was[l->n] = malloc(bytes);
	gpu_get(l->was[l->n++], dev, bytes);
}

static int changed(const struct left *l)
{
	int n = 0;

	for (int i = 0; i < l->n; i++) {
		uint8_t *is = malloc(l->bytes[i]);

		gpu_get(is, l->dev[i], l->bytes[i]);
		n += memcmp(is, l->was[i], l->bytes[i]) != 0;
		free(is);
	}
	return n;
}

/* @refused: bit for each call, @calls of them; @rc: of the same call with all of it aligned. */
static void said(const char *what, struct left *l, int before, uint32_t refused, uint32_t calls, int rc)
{
	const int after = changed(l);

	tap(refused == (1u << calls) - 1 && !before && !rc && after == l->n,
	    "%s refuses what is not aligned: %x of %u calls; %d outputs written by them, %d of %d by one that is taken (%d)",
	    what, refused, calls, before, after, l->n, rc);
	for (int i = 0; i < l->n; i++)
		free(l->was[i]);
}

static void *off(const void *p, size_t bytes)
{
	return (char *)p + bytes;
}

#define TRY(call) (refused |= (uint32_t)((call) == -EINVAL) << calls++)
#define TRY_WITH(b, from, change, call) do { (b) = (from); change; TRY(call); } while (0)

static void r_norm(void)
{
	enum { N = 2, COLS = 64 };
	const size_t an = (size_t)tile_units(COLS) * 4096;
	float *h = random_x(N * COLS, 1);
	float *x = gpu_put(h, N * COLS * 4), *w = gpu_put(h, COLS * 4), *sc = gpu_poison(16), *part = gpu_put(h, N * COLS * 4);
	void *act = gpu_poison(an);
	struct hk_parts add = { part, 1, N * COLS };
	struct left l = { 0 };
	uint32_t refused = 0, calls = 0;
	int before;

	leave(&l, x, N * COLS * 4);
	leave(&l, act, an);
	leave(&l, sc, 8);
	TRY(hk_norm(gpu_stream, N, COLS, off(x, 8), NULL, w, 1e-6f, act, 1, sc, &add));
	TRY(hk_norm(gpu_stream, N, COLS, x, NULL, off(w, 8), 1e-6f, act, 1, sc, &add));
	TRY(hk_norm(gpu_stream, N, COLS, x, NULL, w, 1e-6f, off(act, 8), 1, sc, &add));
	add.part = off(part, 8);
	TRY(hk_norm(gpu_stream, N, COLS, x, NULL, w, 1e-6f, act, 1, sc, &add));
	add.part = part;
	before = changed(&l);
	said("norm", &l, before, refused, calls, hk_norm(gpu_stream, N, COLS, x, NULL, w, 1e-6f, act, 1, sc, &add));
	hk_dev_free(x); hk_dev_free(w); hk_dev_free(sc); hk_dev_free(part); hk_dev_free(act);
	free(h);
}

static void r_rope_attn(bool f16)
{
	const uint32_t hd = 64, heads = 2, n1 = 2, depth = 3, splits = 2, hs = heads + 2;
	struct tstep s;
	struct hk_kv kv = kv_make(hd, 1, 1, f16);
	struct left l = { 0 }, la = { 0 };
	uint32_t refused = 0, calls = 0;
	int before;

	make_step(&s, 1, &n1, &depth, heads, 1, 0, splits, 100);
	const size_t kvb = s.pages * kv.page_bytes, wide = heads * hd, an = (size_t)tile_units(heads * hd) * 4096;
	float *h = random_x(n1 * hs * hd, 1), *w = gpu_put(h, hd * 4);
	struct hk_rope r = { .n = n1, .heads = heads, .eps = 1e-6f, .kv = kv, .qkv = gpu_put(h, n1 * hs * hd * 4),
			     .cs = gpu_put(h, n1 * hd * 4), .q_norm = w, .k_norm = w, .q = gpu_poison(n1 * wide * 2) }, b;

	r.kv.base = gpu_zero(kvb);
	leave(&l, r.q, n1 * wide * 2);
	leave(&l, r.kv.base, kvb);
	TRY_WITH(b, r, b.qkv = off(r.qkv, 8), hk_rope(gpu_stream, &s.d, &b));
	TRY_WITH(b, r, b.cs = off(r.cs, 8), hk_rope(gpu_stream, &s.d, &b));
	TRY_WITH(b, r, b.q_norm = off(w, 8), hk_rope(gpu_stream, &s.d, &b));
	TRY_WITH(b, r, b.k_norm = off(w, 8), hk_rope(gpu_stream, &s.d, &b));
	TRY_WITH(b, r, b.q = off(r.q, 4), hk_rope(gpu_stream, &s.d, &b));
	TRY_WITH(b, r, b.kv.base = off(r.kv.base, 8), hk_rope(gpu_stream, &s.d, &b));
	TRY_WITH(b, r, b.kv.head_bytes += 8, hk_rope(gpu_stream, &s.d, &b));
	TRY_WITH(b, r, b.kv.page_bytes += 8, hk_rope(gpu_stream, &s.d, &b));
	before = changed(&l);
	said(f16 ? "rope f16" : "rope int8", &l, before, refused, calls, hk_rope(gpu_stream, &s.d, &r));

	struct hk_attn a = { .n = n1, .heads = heads, .tiles = s.tiles, .splits = splits, .q = r.q, .kv = r.kv,
			     .out = gpu_poison(n1 * wide * 4), .partial = gpu_poison(hk_attn_partial(1, s.tiles, splits, hd) * 4),
			     .count = gpu_zero(s.tiles * 4) }, c;
	void *act = gpu_poison(an), *q8 = gpu_poison(n1 * hk_q8_bytes(heads * hd));

	refused = calls = 0;
	leave(&la, a.out, n1 * wide * 4);
	TRY_WITH(c, a, c.q = off(a.q, 8), hk_attn(gpu_stream, &gpu_info, &s.d, &c));
	TRY_WITH(c, a, c.kv.base = off(a.kv.base, 8), hk_attn(gpu_stream, &gpu_info, &s.d, &c));
	TRY_WITH(c, a, c.kv.head_bytes += 8, hk_attn(gpu_stream, &gpu_info, &s.d, &c));
	TRY_WITH(c, a, c.kv.page_bytes += 8, hk_attn(gpu_stream, &gpu_info, &s.d, &c));
	TRY_WITH(c, a, c.out = off(a.out, 8), hk_attn(gpu_stream, &gpu_info, &s.d, &c));
	TRY_WITH(c, a, c.partial = off(a.partial, 8), hk_attn(gpu_stream, &gpu_info, &s.d, &c));
	TRY_WITH(c, a, (c.out = NULL, c.groups = 1, c.act = off(act, 8)), hk_attn(gpu_stream, &gpu_info, &s.d, &c));
	TRY_WITH(c, a, (c.out = NULL, c.q8 = off(q8, 8)), hk_attn(gpu_stream, &gpu_info, &s.d, &c));
	c = a;
	c.rope = &b;
	TRY_WITH(b, r, b.qkv = off(r.qkv, 8), hk_attn(gpu_stream, &gpu_info, &s.d, &c));
	TRY_WITH(b, r, b.cs = off(r.cs, 8), hk_attn(gpu_stream, &gpu_info, &s.d, &c));
	TRY_WITH(b, r, b.q_norm = off(w, 8), hk_attn(gpu_stream, &gpu_info, &s.d, &c));
	TRY_WITH(b, r, b.k_norm = off(w, 8), hk_attn(gpu_stream, &gpu_info, &s.d, &c));
	before = changed(&la);
	said(f16 ? "attention f16" : "attention int8", &la, before, refused, calls, hk_attn(gpu_stream, &gpu_info, &s.d, &a));
	hk_dev_free((void *)r.qkv); hk_dev_free((void *)r.cs); hk_dev_free(w); hk_dev_free(r.q); hk_dev_free(r.kv.base);
	hk_dev_free(a.out); hk_dev_free(a.partial); hk_dev_free(a.count); hk_dev_free(act); hk_dev_free(q8);
	free(h);
	drop_step(&s);
}

static void r_kv_copy(void)
{
	struct hk_kv kv = kv_make(64, 1, 1, false), b;
	uint8_t *h = malloc(2 * kv.page_bytes);
	struct left l = { 0 };
	uint32_t refused = 0, calls = 0;
	int before;

	for (size_t i = 0; i < 2 * kv.page_bytes; i++)
		h[i] = (uint8_t)rnd();
	kv.base = gpu_put(h, 2 * kv.page_bytes);
	leave(&l, kv.base, 2 * kv.page_bytes);
	TRY_WITH(b, kv, b.base = off(kv.base, 2), hk_kv_copy(gpu_stream, &b, 1, 1, 0, 5));
	TRY_WITH(b, kv, b.head_bytes += 2, hk_kv_copy(gpu_stream, &b, 1, 1, 0, 5));
	TRY_WITH(b, kv, b.page_bytes += 2, hk_kv_copy(gpu_stream, &b, 1, 1, 0, 5));
	before = changed(&l);
	said("a page's copy", &l, before, refused, calls, hk_kv_copy(gpu_stream, &kv, 1, 1, 0, 5));
	hk_dev_free(kv.base);
	free(h);
}

static void r_embed(void)
{
	const uint32_t n1 = 2, depth = 3, hd = 64;
	struct tmat m = make_mat(QUANT_Q8_0, 16, 64, true);
	struct hk_mat b;
	struct tstep s;
	struct left l = { 0 };
	uint32_t refused = 0, calls = 0;
	int before;

	make_step(&s, 1, &n1, &depth, 1, 1, 0, 1, 16);
	float *h = random_x(hd, 1), *freq = gpu_put(h, hd * 2), *x = gpu_poison(n1 * 64 * 4), *cs = gpu_poison(n1 * hd * 4);

	leave(&l, x, n1 * 64 * 4);
	leave(&l, cs, n1 * hd * 4);
	TRY_WITH(b, m.m, b.w = off(m.m.w, 8), hk_embed(gpu_stream, n1, &s.d, &b, freq, hd, x, cs));
	TRY(hk_embed(gpu_stream, n1, &s.d, &m.m, freq, hd, x, off(cs, 4)));
	before = changed(&l);
	said("embedding", &l, before, refused, calls, hk_embed(gpu_stream, n1, &s.d, &m.m, freq, hd, x, cs));
	hk_dev_free(freq); hk_dev_free(x); hk_dev_free(cs);
	free(h);
	drop_mat(&m);
	drop_step(&s);
}

static void r_mats(void)
{
	struct tmat m = make_mat(QUANT_Q4_K, 16, 256, true);
	float *h = random_x(256, 1), *x = gpu_put(h, 1024), *y = gpu_poison(64), *y2 = gpu_poison(64 * 8), *some = gpu_zero(65536);
	void *q8 = gpu_zero(hk_q8_bytes(256)), *out = gpu_zero(hk_q8_bytes(256)), *act = gpu_zero(tile_units(256) * 4096);
	struct hk_gemv v = { .n = 1, .cols = 256, .ldx = 256, .x = x, .norm = x, .eps = 1e-6f, .nseg = 1,
			     .seg = { { .w = m.m, .y = y, .ldy = 16 } } }, b;
	struct hk_gemm g = { .n = 8, .cols = 256, .act = act, .groups = 1, .scale = 1, .nseg = 1, .partial = some, .partial_floats = 16384,
			     .count = gpu_zero(HK_GEMM_COUNTS * 4), .seg = { { .w = m.m, .y = y2, .ldy = 16 } } }, c;
	struct left l = { 0 }, lg = { 0 };
	uint32_t refused = 0, calls = 0;
	int before;

	leave(&l, y, 64);
	TRY_WITH(b, v, b.x = off(x, 8), hk_gemv(gpu_stream, &gpu_info, &b));
	TRY_WITH(b, v, b.ldx = 258, hk_gemv(gpu_stream, &gpu_info, &b));
	TRY_WITH(b, v, b.norm = off(x, 8), hk_gemv(gpu_stream, &gpu_info, &b));
	TRY_WITH(b, v, (b.x = b.norm = NULL, b.q8 = off(q8, 8)), hk_gemv(gpu_stream, &gpu_info, &b));
	TRY_WITH(b, v, b.seg[0].w.w = off(m.m.w, 8), hk_gemv(gpu_stream, &gpu_info, &b));
	TRY_WITH(b, v, (b.nseg = 2, b.seg[1] = b.seg[0], b.mode = HK_SWIGLU, b.q8_out = off(out, 8)), hk_gemv(gpu_stream, &gpu_info, &b));
	before = changed(&l);
	said("gemv", &l, before, refused, calls, hk_gemv(gpu_stream, &gpu_info, &v));

	refused = calls = 0;
	leave(&lg, y2, 64 * 8);
	TRY_WITH(c, g, c.act = off(act, 8), hk_gemm(gpu_stream, &gpu_info, &c));
	TRY_WITH(c, g, c.partial = off(some, 8), hk_gemm(gpu_stream, &gpu_info, &c));
	TRY_WITH(c, g, c.seg[0].w.w = off(m.m.w, 8), hk_gemm(gpu_stream, &gpu_info, &c));
	before = changed(&lg);
	said("gemm", &lg, before, refused, calls, hk_gemm(gpu_stream, &gpu_info, &g));
	hk_dev_free(x); hk_dev_free(y); hk_dev_free(y2); hk_dev_free(some); hk_dev_free(q8); hk_dev_free(out);
	hk_dev_free(act); hk_dev_free(g.count);
	free(h);
	drop_mat(&m);
}

static void r_pick(void)
{
	struct hk_pick p[2] = { { .top_p = 1, .rep_pen = 1 } };
	float *h = random_x(64, 1), *d = gpu_put(h, 256), *work = gpu_poison(256);
	void *dp = gpu_put(p, sizeof(p));
	int32_t *ret = gpu_poison(16);
	struct left l = { 0 };
	uint32_t refused = 0, calls = 0;
	int before;

	leave(&l, ret, 4);
	TRY(hk_pick(gpu_stream, 1, 64, d, off(dp, 4), NULL, NULL, work, ret));
	before = changed(&l);
	said("pick", &l, before, refused, calls, hk_pick(gpu_stream, 1, 64, d, dp, NULL, NULL, work, ret));
	hk_dev_free(d); hk_dev_free(work); hk_dev_free(dp); hk_dev_free(ret);
	free(h);
}

void t_refuse(bool quick)
{
	r_norm();
	r_rope_attn(false);
	r_rope_attn(true);
	r_kv_copy();
	r_embed();
	r_mats();
	r_pick();
}
