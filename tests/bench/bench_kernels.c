/* SPDX-License-Identifier: MIT */
/*
 * Where a step goes: each kernel of a layer by itself, for several numbers of
 * rows, at the geometry of Qwen3-4B. A figure is the time of one launch among
 * 36 in a graph, each with its own weights, so nothing is found in a cache that
 * a real step would not find there.
 *
 * usage: bench_kernels [nopdl] [together] [once] [few=N] [blocks=N] [part=N] [wide=N] [splits=N] [ROWS...]
 * nopdl: without dependent launches, as on SM 8.7; together: products of up to 64 rows
 * add their parts of k up themselves, instead of the norm and the rotation; once: two launches of each, for a profiler;
 * few: the GEMV up to so many rows; blocks: its blocks an SM; part: tokens of a
 * part of attention's keys; wide: tiles of a warp of gemm_wide.cuh, 1 none up to 64 rows; splits: its parts of k
 */
#include "tests/gpu/gpu.h"

#include <errno.h>

#include "gguf/quant.h"
#include "kernels/step.h"
#include "kernels/tile.h"

enum { COPIES = 36, D = 2560, FF = 9728, HEADS = 32, KVH = 8, HD = 128, WIDE = HEADS * HD, KVW = KVH * HD,
       QKV = WIDE + 2 * KVW, VOCAB = 151936, CAP = 2048 };

/* Matrices of one shape, one for each launch. */
struct mats { char *p; size_t bytes; struct hk_mat m; uint32_t copies; };

static struct mats mats(int type, uint32_t rows, uint32_t cols, uint32_t copies)
{
	uint64_t rb;
	struct mats x = { .copies = copies };
	char *h;
	void *d;

	if (quant_row_bytes((uint32_t)type, cols, &rb))
		gpu_die("type", -1);
	x.bytes = (size_t)rb * rows;
	h = malloc(x.bytes);
	for (size_t i = 0; i < x.bytes; i++)   /* scales stay small and finite */
		h[i] = (char)(rnd() & 0x3f);
	GPU(hk_dev_alloc(x.bytes * copies, &d));
	GPU(hk_copy_in(gpu_stream, d, h, x.bytes));
	for (uint32_t i = 1; i < copies; i++)
		GPU(hk_dev_copy(gpu_stream, (char *)d + i * x.bytes, d, x.bytes));
	GPU(hk_stream_sync(gpu_stream));
	free(h);
	x.p = d;
	x.m = (struct hk_mat){ .type = type, .packed = 1, .rows = rows, .cols = cols, .row_bytes = (size_t)rb };
	return x;
}

static struct hk_mat mat_i(const struct mats *x, uint32_t i)
{
	struct hk_mat m = x->m;

	m.w = x->p + (i % x->copies) * x->bytes;
	return m;
}

static int cmp(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

extern bool hk_pdl;   /* kernels/launch.cuh */
static bool together;                             /* products add their parts up themselves */
static uint32_t qkv_parts = 1, o_parts = 1;       /* of the last product of each */
static bool once;
static uint32_t few_max = 1;
static double rate;   /* bytes a us that reading does */

/* us a launch; @launch runs launch number i */
static void bench(const char *name, uint32_t n, uint32_t copies, size_t bytes, int (*launch)(uint32_t i))
{
	float t[9];
	void *g;
	int rc = 0;

	for (uint32_t i = 0; i < (once ? 2 : copies) && !rc; i++)
		rc = launch(i);
	if (rc || (rc = hk_stream_sync(gpu_stream))) {
		printf("%-10s n %4u: %s\n", name, n, rc == -EINVAL ? "refused" : hk_dev_error());
		return;
	}
	if (once)
		return;
	GPU(hk_capture_begin(gpu_stream));
	for (uint32_t i = 0; i < copies; i++)
		GPU(launch(i));
	GPU(hk_capture_end(gpu_stream, &g));
	for (int k = 0; k < 9; k++) {
		GPU(hk_event_time(gpu_stream, 0, NULL));
		GPU(hk_graph_launch(gpu_stream, g));
		GPU(hk_event_time(gpu_stream, 1, NULL));
		GPU(hk_event_time(gpu_stream, 2, &t[k]));
	}
	hk_graph_free(g);
	qsort(t, 9, sizeof(*t), cmp);
	printf("%-10s n %4u: %7.2f us", name, n, (double)t[4] * 1e3 / copies);
	if (bytes)
		printf(", bytes alone %5.2f", (double)bytes / rate);
	printf("\n");
	fflush(stdout);
}

static struct mats Mq, Mk, Mv6, Mo, Mg, Mu, Md, Md6, Mh;
static float *x, *qkv, *w, *part, *apart, *cs, *asc, *logits, *work;
static char *act_x, *act_a, *act_h, *q8a, *q8h;
static uint16_t *q;
static uint32_t *count, *acount;
static uint32_t N, depth;
static bool fold;      /* rotation and append in the attention's launch */
static struct hk_kv kv;
static struct hk_step step;
static uint32_t a_tiles, a_splits;
static struct step_cap cap = { .rows = CAP, .seqs = 8, .out = 8, .pages = 640, .group = HEADS / KVH, .kv_heads = KVH };
static int32_t *ret;
static void *picks;

static uint32_t groups(void)
{
	uint32_t nb = hk_gemm_nb(N);

	return (N + nb - 1) / nb * nb / 8;
}

static int few(uint32_t i, uint32_t nseg, const struct hk_seg *seg, uint32_t cols, bool norm, const void *q8, enum hk_mode mode)
{
	struct hk_gemv v = { .n = N, .cols = cols, .x = q8 ? NULL : x, .ldx = cols, .norm = norm ? w : NULL, .eps = 1e-6f,
			     .q8 = q8, .q8_out = mode == HK_SWIGLU ? q8h : NULL, .mode = mode, .nseg = nseg };

	for (uint32_t j = 0; j < nseg; j++)
		v.seg[j] = seg[j];
	(void)i;
	return hk_gemv(gpu_stream, &gpu_info, &v);
}

static int many(uint32_t nseg, const struct hk_seg *seg, uint32_t cols, const void *act, enum hk_mode mode)
{
	struct hk_gemm m = { .n = N, .cols = cols, .act = act, .groups = groups(), .act_scale = asc, .scale = 1, .mode = mode, .free = true,
			     .nseg = nseg, .partial = part, .partial_floats = (size_t)gpu_info.sms * 128 * 128, .count = count,
			     .act_out = act_h, .groups_out = groups(), .act_out_scale = 1 };
	uint32_t parts = 1;
	int rc;

	for (uint32_t j = 0; j < nseg; j++)
		m.seg[j] = seg[j];
	/* as a step does it: parts of k stay apart */
	if (N <= 64 && mode != HK_SWIGLU && !together) {
		m.mode = HK_STORE;
		m.apart = (size_t)N * seg[0].ldy;
		m.ret_parts = &parts;
		for (uint32_t j = 0; j < nseg; j++)
			m.seg[j].y = part + (seg[j].y - (nseg == 1 ? seg[0].y : qkv));
	}
	rc = hk_gemm(gpu_stream, &gpu_info, &m);
	if (m.apart)
		*(nseg == 3 ? &qkv_parts : &o_parts) = parts;
	return rc;
}

static int product(uint32_t i, uint32_t nseg, const struct hk_seg *seg, uint32_t cols, bool norm, enum hk_mode mode)
{
	const bool h = cols == FF, a = cols == WIDE;

	if (N <= few_max)
		return few(i, nseg, seg, cols, norm, h ? q8h : a ? q8a : NULL, mode);
	return many(nseg, seg, cols, h ? act_h : a ? act_a : act_x, mode);
}

static int l_qkv(uint32_t i)
{
	const struct hk_seg s[3] = { { mat_i(&Mq, i), NULL, qkv, QKV }, { mat_i(&Mk, i), NULL, qkv + WIDE, QKV },
				     { mat_i(&Mk, i + 1), NULL, qkv + WIDE + KVW, QKV } };

	return product(i, 3, s, D, true, HK_STORE);
}
static int l_qkv6(uint32_t i)
{
	const struct hk_seg s[3] = { { mat_i(&Mq, i), NULL, qkv, QKV }, { mat_i(&Mk, i), NULL, qkv + WIDE, QKV },
				     { mat_i(&Mv6, i), NULL, qkv + WIDE + KVW, QKV } };

	return product(i, 3, s, D, true, HK_STORE);
}
static int l_v6(uint32_t i)
{
	const struct hk_seg s = { mat_i(&Mv6, i), NULL, qkv, QKV };

	return product(i, 1, &s, D, true, HK_STORE);
}
static int l_o(uint32_t i)
{
	const struct hk_seg s = { mat_i(&Mo, i), NULL, x, D };

	return product(i, 1, &s, WIDE, false, HK_ADD);
}
static int l_glu(uint32_t i)
{
	const struct hk_seg s[2] = { { mat_i(&Mg, i), NULL, NULL, FF }, { mat_i(&Mu, i), NULL, NULL, FF } };

	return product(i, 2, s, D, true, HK_SWIGLU);
}
static int l_down(uint32_t i)
{
	const struct hk_seg s = { mat_i(&Md, i), NULL, x, D };

	return product(i, 1, &s, FF, false, HK_ADD);
}
static int l_down6(uint32_t i)
{
	const struct hk_seg s = { mat_i(&Md6, i), NULL, x, D };

	return product(i, 1, &s, FF, false, HK_ADD);
}
static int l_head(uint32_t i)
{
	const struct hk_seg s = { mat_i(&Mh, i), NULL, logits, VOCAB };
	const uint32_t n = N;
	int rc;

	N = n > 4 ? 4 : n;
	rc = few(i, 1, &s, D, true, NULL, HK_STORE);
	N = n;
	return rc;
}
static int l_norm(uint32_t i)
{
	(void)i;
	const struct hk_parts add = { part, o_parts, (size_t)N * D };

	return hk_norm(gpu_stream, N, D, x, NULL, w, 1e-6f, act_x, groups(), asc, N <= 64 && !together ? &add : NULL);
}
static struct hk_rope rope_of(void)
{
	const bool left = N > few_max && N <= 64 && !together;
	const uint32_t p = left ? qkv_parts : 1;

	return (struct hk_rope){ .parts = { p, p, p }, .stride = left ? (size_t)N * QKV : 0,
				 .n = N, .heads = HEADS, .qkv = left ? part : qkv, .q_norm = w, .k_norm = w, .eps = 1e-6f, .cs = cs, .q = q, .kv = kv };
}
static int l_rope(uint32_t i)
{
	const struct hk_rope r = rope_of();

	(void)i;
	return hk_rope(gpu_stream, &step, &r);
}
static int l_attn(uint32_t i)
{
	const struct hk_rope r = rope_of();
	struct hk_attn t = { .n = N, .heads = HEADS, .layer = 0, .tiles = a_tiles, .splits = a_splits, .q = q, .kv = kv,
			     .partial = apart, .count = acount };

	(void)i;
	if (fold)
		t.rope = &r;
	if (N <= few_max)
		t.q8 = q8a;
	else {
		t.act = act_a;
		t.groups = groups();
	}
	return hk_attn(gpu_stream, &gpu_info, &step, &t);
}
static int l_pick(uint32_t i)
{
	(void)i;
	return hk_pick(gpu_stream, 1, VOCAB, logits, picks, (int32_t *)ret, (uint32_t *)ret, work, ret);
}

/* One sequence of N rows at @depth, pages in order. */
static void set_step(void *dev, void *host)
{
	struct step_seq s = { .n = N, .pos0 = depth };
	uint32_t *page = calloc(cap.pages, 4), out = 0, tiles = (N * cap.group + 15) / 16;
	int32_t *tok = calloc(N, 4);
	size_t bytes;

	for (uint32_t i = 0; i < cap.pages; i++)
		page[i] = i;
	s.page = page;
	a_tiles = step_tiles(N, 1, cap.group);
	a_splits = (uint32_t)gpu_info.sms * 3 / (KVH * tiles);
	a_splits = a_splits < 1 ? 1 : a_splits > 64 ? 64 : a_splits;
	bytes = step_fill(&cap, host, N, N, tok, 1, &s, 1, &out, a_tiles, a_splits, (uint32_t)gpu_info.sms * 3);
	GPU(hk_copy_in(gpu_stream, dev, host, bytes));
	GPU(hk_stream_sync(gpu_stream));
	free(page);
	free(tok);
}

int main(int argc, char **argv)
{
	static const uint32_t ALL[] = { 1, 2, 4, 8, 16, 33, 64, 128, 512 };
	uint32_t rows[16], n_rows = 0;
	struct hk_pick pk = { .top_p = 1, .rep_pen = 1 };
	size_t big = (size_t)1 << 30;
	void *dev_step, *host_step, *buf;
	bool nopdl = false;
	float ms;

	for (int i = 1; i < argc && n_rows < 16; i++) {
		if (!strcmp(argv[i], "once"))
			once = true;
		else if (!strcmp(argv[i], "together"))
			together = true;
		else if (!strcmp(argv[i], "nopdl"))
			nopdl = true;
		else if (!strncmp(argv[i], "few=", 4))
			few_max = (uint32_t)atoi(argv[i] + 4);
		else if (!strncmp(argv[i], "part=", 5))
			step_part = (uint32_t)atoi(argv[i] + 5);
		else if (!strncmp(argv[i], "wide=", 5))
			hk_wide_tiles = (uint32_t)atoi(argv[i] + 5);
		else if (!strncmp(argv[i], "splits=", 7))
			hk_wide_splits = (uint32_t)atoi(argv[i] + 7);
		else if (!strncmp(argv[i], "blocks=", 7))
			hk_gemv_blocks = (uint32_t)atoi(argv[i] + 7);
		else
			rows[n_rows++] = (uint32_t)atoi(argv[i]);
	}
	if (!n_rows)
		for (; n_rows < sizeof(ALL) / sizeof(ALL[0]); n_rows++)
			rows[n_rows] = ALL[n_rows];
	rnd_start();
	if (!gpu_start("bench_kernels"))
		return 0;
	if (nopdl)
		hk_pdl = false;
	GPU(hk_dev_alloc(big, &buf));
	GPU(hk_fill(gpu_stream, buf, 0x11, big));
	GPU(hk_event_time(gpu_stream, 0, NULL));
	for (int i = 0; i < 4; i++)
		GPU(hk_read_speed(gpu_stream, &gpu_info, buf, big));
	GPU(hk_event_time(gpu_stream, 1, NULL));
	GPU(hk_event_time(gpu_stream, 2, &ms));
	rate = 4.0 * (double)big / ((double)ms * 1e3);
	printf("read %.0f GB/s\n", rate * 1e-3);
	hk_dev_free(buf);

	Mq = mats(QUANT_Q4_K, WIDE, D, COPIES);
	Mk = mats(QUANT_Q4_K, KVW, D, COPIES + 1);
	Mv6 = mats(QUANT_Q6_K, KVW, D, COPIES);
	Mo = mats(QUANT_Q4_K, D, WIDE, COPIES);
	Mg = mats(QUANT_Q4_K, FF, D, COPIES);
	Mu = mats(QUANT_Q4_K, FF, D, COPIES);
	Md = mats(QUANT_Q4_K, D, FF, COPIES);
	Md6 = mats(QUANT_Q6_K, D, FF, COPIES);
	Mh = mats(QUANT_Q6_K, VOCAB, D, 2);
	kv.kv_heads = KVH;
	kv.head_dim = HD;
	kv.head_bytes = 32 * HD + 32 * (HD / 32) * 2;
	kv.page_bytes = kv.head_bytes * 2 * KVH;
	kv.base = gpu_zero(kv.page_bytes * 640);
	x = gpu_zero((size_t)CAP * FF * 4);
	qkv = gpu_zero((size_t)CAP * QKV * 4);
	w = gpu_zero(FF * 4);
	cs = gpu_zero((size_t)CAP * HD * 4);
	asc = gpu_zero(CAP * 4);
	act_x = gpu_zero((size_t)CAP * FF * 2);
	act_a = gpu_zero((size_t)CAP * FF * 2);
	act_h = gpu_zero((size_t)CAP * FF * 2);
	q8a = gpu_zero(HK_GEMV_MAX * hk_q8_bytes(FF));
	q8h = gpu_zero(HK_GEMV_MAX * hk_q8_bytes(FF));
	q = gpu_zero((size_t)CAP * WIDE * 2);
	part = gpu_zero((size_t)gpu_info.sms * 128 * 128 * 4);
	apart = gpu_zero((size_t)64 << 20);
	count = gpu_zero(HK_GEMM_COUNTS * 4);
	acount = gpu_zero(65536);
	logits = gpu_zero((size_t)4 * VOCAB * 4);
	work = gpu_zero((size_t)4 * VOCAB * 4);
	ret = gpu_zero(65536);
	picks = gpu_put(&pk, sizeof(pk));
	host_step = malloc(step_bytes(&cap));
	dev_step = gpu_zero(step_bytes(&cap));
	step_bind(&cap, dev_step, &step);
	for (uint32_t i = 0; i < n_rows; i++) {
		N = rows[i];
		if (!N || N > CAP)
			continue;
		depth = 0;
		set_step(dev_step, host_step);
		bench("qkv", N, COPIES, Mq.bytes + 2 * Mk.bytes, l_qkv);
		bench("qkv Q6_K", N, COPIES, Mq.bytes + Mk.bytes + Mv6.bytes, l_qkv6);
		bench("v Q6_K", N, COPIES, Mv6.bytes, l_v6);
		bench("rope", N, COPIES, 0, l_rope);
		fold = false;
		bench("attention", N, COPIES, 0, l_attn);
		fold = N <= HK_ROPE_MAX;
		if (fold)
			bench("  folded", N, COPIES, 0, l_attn);
		for (depth = 4096; N <= 64 && depth <= 16384; depth *= 4) {
			char name[32];

			set_step(dev_step, host_step);
			snprintf(name, sizeof(name), "at %u", depth);
			bench(name, N, COPIES, (size_t)depth * KVH * 2 * (HD + HD / 16), l_attn);
		}
		bench("o", N, COPIES, Mo.bytes, l_o);
		if (N > few_max)
			bench("norm", N, COPIES, 0, l_norm);
		bench("gate, up", N, COPIES, Mg.bytes + Mu.bytes, l_glu);
		bench("down", N, COPIES, Md.bytes, l_down);
		bench("down Q6_K", N, COPIES, Md6.bytes, l_down6);
		if (N > few_max && N <= 64 && !together)
			printf("parts: qkv %u, down %u\n", qkv_parts, o_parts);
		if (N <= HK_GEMV_MAX)
			bench("head", N, 2, Mh.bytes, l_head);
		if (N == 1)
			bench("pick", N, 8, 0, l_pick);
	}
	return 0;
}
