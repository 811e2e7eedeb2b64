// SPDX-License-Identifier: MIT
/*
 * Writes a GGUF file of a model's real shapes and types (the Q4_K_M mix) with
 * random weights, the same bytes on every machine: what tests/vectors/
 * llama_geometry.h and docs/speed.md speak of. Speed, memory and arithmetic of an
 * engine do not depend on what weights say.
 *
 * Without a vocabulary the file has no tokenizer: enough for the operations
 * (model/ops.h), not for an engine or for llama.cpp. VOCAB.gguf is any file with the
 * Qwen2 tokenizer of 151,936 tokens; its keys are copied. The weights are the
 * same with and without.
 *
 * The generator is PCG64 (O'Neill, 2014; XSL-RR of 128 bits) with the state that
 * NumPy's default_rng(1234) has, numbers drawn from it as NumPy 1.24 does.
 *
 * usage: random_gguf OUT.gguf qwen3-0.6b|qwen3-1.7b|qwen3-4b|qwen2.5-1.5b [VOCAB.gguf]
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/quant.h"
#include "tests/unit/synth.h"

static const struct geometry {
	const char *name, *arch;
	uint32_t layers, d, ff, heads, kv_heads, head_dim;
} geometry[] = {
	{ "qwen3-0.6b", "qwen3", 28, 1024, 3072, 16, 8, 128 },
	{ "qwen3-1.7b", "qwen3", 28, 2048, 6144, 16, 8, 128 },
	{ "qwen3-4b", "qwen3", 36, 2560, 9728, 32, 8, 128 },
	{ "qwen2.5-1.5b", "qwen2", 28, 1536, 8960, 12, 2, 128 },
};
enum { VOCAB = 151936 };

/* -- numbers ------------------------------------------------------------------ */

typedef unsigned __int128 u128;
#define U128(hi, lo) ((u128)(hi) << 64 | (lo))

static u128 pcg_state = U128(0x160ad84006fe21eaull, 0xf69b873d9fe45409ull);
static const u128 pcg_inc = U128(0x50c8fb163c7cea4eull, 0xd0f51ce6006e4325ull);
static uint32_t pcg_half;
static bool pcg_has_half;

static uint64_t next64(void)
{
	const u128 mul = U128(2549297995355413924ull, 4865540595714422341ull);
	uint64_t x;
	unsigned r;

	pcg_state = pcg_state * mul + pcg_inc;
	x = (uint64_t)(pcg_state >> 64) ^ (uint64_t)pcg_state;
	r = (unsigned)(pcg_state >> 122);
	return x >> r | x << (-r & 63);
}

/* Low half first; the high one waits. */
static uint32_t next32(void)
{
	uint64_t x;

	if (pcg_has_half) {
		pcg_has_half = false;
		return pcg_half;
	}
	x = next64();
	pcg_has_half = true;
	pcg_half = (uint32_t)(x >> 32);
	return (uint32_t)x;
}

static double next_double(void)
{
	return (double)(next64() >> 11) * 0x1p-53;
}

static void fill_bytes(uint8_t *p, size_t n)
{
	size_t i = 0;

	while (i < n) {
		uint32_t x = next32();

		for (int k = 0; k < 4 && i < n; k++, x >>= 8)
			p[i++] = (uint8_t)x;
	}
}

/* @n numbers of @lo .. @lo + @range - 1, each @stride bytes after the one before in runs of @run. */
static void fill_range(uint8_t *p, size_t blocks, size_t stride, uint32_t run, uint32_t lo, uint32_t range)
{
	const uint32_t least = (256 - range) % range;
	uint32_t buf = 0, left = 0;

	for (size_t b = 0; b < blocks; b++)
		for (uint32_t i = 0; i < run; i++) {
			uint32_t m;

			do {
				if (!left) {
					buf = next32();
					left = 4;
				}
				m = (buf & 255) * range;
				buf >>= 8;
				left--;
			} while ((m & 255) < least);
			p[b * stride + i] = (uint8_t)(lo + (m >> 8));
		}
}

/* The ziggurat of Marsaglia and Tsang, 256 layers, 52 bits. */
static double zig_w[256], zig_f[256];
static uint64_t zig_k[256];
static const double ZIG_R = 3.6541528853610088;

static void zig_make(void)
{
	const double m = 4503599627370496.0;
	/* what each layer's area is: the lowest one's rectangle and its tail */
	const double v = ZIG_R * exp(-0.5 * ZIG_R * ZIG_R) + sqrt(1.5707963267948966) * erfc(ZIG_R * 0.70710678118654752);
	double d = ZIG_R, t = d, q = v / exp(-0.5 * d * d);

	zig_k[0] = (uint64_t)(d / q * m);
	zig_k[1] = 0;
	zig_w[0] = q / m;
	zig_w[255] = d / m;
	zig_f[0] = 1;
	zig_f[255] = exp(-0.5 * d * d);
	for (int i = 254; i >= 1; i--) {
		d = sqrt(-2 * log(v / d + exp(-0.5 * d * d)));
		zig_k[i + 1] = (uint64_t)(d / t * m);
		t = d;
		zig_f[i] = exp(-0.5 * d * d);
		zig_w[i] = d / m;
	}
}

static double normal(void)
{
	for (;;) {
		uint64_t r = next64(), rabs = r >> 9 & 0xfffffffffffffull;
		int idx = (int)(r & 255);
		bool neg = r >> 8 & 1;
		double x = (double)rabs * zig_w[idx];

		if (neg)
			x = -x;
		if (rabs < zig_k[idx])
			return x;
		if (!idx) {
			for (;;) {
				double xx = -log1p(-next_double()) / ZIG_R, yy = -log1p(-next_double());

				if (yy + yy > xx * xx)
					return rabs >> 8 & 1 ? -(ZIG_R + xx) : ZIG_R + xx;
			}
		}
		if ((zig_f[idx - 1] - zig_f[idx]) * next_double() + zig_f[idx] < exp(-0.5 * x * x))
			return x;
	}
}

/* -- the tokenizer's keys of another file ----------------------------------------- */

static size_t scalar_size(uint32_t type)
{
	static const uint8_t size[] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };

	return type < sizeof(size) ? size[type] : 0;
}

struct reader { const uint8_t *p; size_t n, at; bool bad; };

static uint64_t rd(struct reader *r, size_t n)
{
	uint64_t v = 0;

	if (r->n - r->at < n) {
		r->bad = true;
		r->at = r->n;
		return 0;
	}
	memcpy(&v, r->p + r->at, n);
	r->at += n;
	return v;
}

static void skip(struct reader *r, uint64_t n)
{
	if (r->n - r->at < n)
		r->bad = true;
	r->at = r->bad ? r->n : r->at + n;
}

static void skip_value(struct reader *r, uint32_t type)
{
	if (type == 8) {
		skip(r, rd(r, 8));
	} else if (type == 9) {
		uint32_t of = (uint32_t)rd(r, 4);
		uint64_t n = rd(r, 8);

		for (uint64_t i = 0; i < n && !r->bad; i++)
			skip_value(r, of);
	} else {
		skip(r, scalar_size(type));
	}
}

/* Returns how many keys were added, or -1. */
static int copy_vocab(const char *path, struct synth_buf *to)
{
	FILE *f = fopen(path, "rb");
	struct reader r = { 0 };
	uint8_t *data;
	uint64_t keys;
	long n;
	int found = 0;

	if (!f || fseek(f, 0, SEEK_END) || (n = ftell(f)) < 24 || fseek(f, 0, SEEK_SET))
		return -1;
	data = malloc((size_t)n);
	if (!data || fread(data, (size_t)n, 1, f) != 1)
		return -1;
	fclose(f);
	r.p = data;
	r.n = (size_t)n;
	skip(&r, 16);
	keys = rd(&r, 8);
	for (uint64_t i = 0; i < keys && !r.bad; i++) {
		size_t start = r.at;
		uint64_t len = rd(&r, 8);
		const char *key = (const char *)r.p + r.at;
		bool mine = len > 10 && r.n - r.at > 10 && !memcmp(key, "tokenizer.", 10);

		skip(&r, len);
		skip_value(&r, (uint32_t)rd(&r, 4));
		if (mine && !r.bad) {
			synth_put(to, r.p + start, r.at - start);
			found++;
		}
	}
	free(data);
	return r.bad ? -1 : found;
}

/* -- the file ------------------------------------------------------------------------ */

static void kv_u32(struct synth_buf *b, const char *arch, const char *key, uint32_t v)
{
	char full[96];

	snprintf(full, sizeof(full), "%s.%s", arch, key);
	synth_kv_u32(b, full, v);
}

static void kv_f32(struct synth_buf *b, const char *arch, const char *key, float v)
{
	char full[96];

	snprintf(full, sizeof(full), "%s.%s", arch, key);
	synth_kv_f32(b, full, v);
}

struct tensor { char name[48]; uint64_t ne[2]; uint32_t type, dims; };

static size_t block_of(uint32_t type, size_t *ret_bytes)
{
	*ret_bytes = type == QUANT_F32 ? 4 : type == QUANT_Q4_K ? 144 : 210;
	return type == QUANT_F32 ? 1 : 256;
}

static void put_half(uint8_t *p, double v)
{
	uint16_t h = quant_to_half((float)v);

	memcpy(p, &h, 2);
}

/* NumPy's float16: what a double rounds to. */
static float half(double v)
{
	return quant_from_half(quant_to_half((float)v));
}

static int write_tensor(FILE *f, const struct tensor *t)
{
	size_t by, per = block_of(t->type, &by), n = t->ne[0] * (t->dims == 2 ? t->ne[1] : 1), blocks = n / per;
	uint8_t *raw = malloc(blocks * by + 32);
	const double s = half(0.6 / sqrt((double)t->ne[0]));
	size_t size = blocks * by, pad = (32 - size % 32) % 32;
	int rc;

	if (!raw)
		return -ENOMEM;
	if (t->type == QUANT_F32) {
		for (size_t i = 0; i < n; i++) {
			float v = strstr(t->name, "norm") ? 1 : (float)(0.01 * normal());

			memcpy(raw + i * 4, &v, 4);
		}
	} else {
		fill_bytes(raw, size);
		if (t->type == QUANT_Q6_K)
			fill_range(raw + 192, blocks, by, 16, 20, 40);
		for (size_t b = 0; b < blocks; b++) {
			if (t->type == QUANT_Q4_K) {
				put_half(raw + b * by, s / 8 / 32);
				put_half(raw + b * by + 2, s / 8 / 32 * 7.5);
			} else {
				put_half(raw + b * by + 208, s / 16 / 40);
			}
		}
	}
	memset(raw + size, 0, pad);
	rc = fwrite(raw, size + pad, 1, f) == 1 ? 0 : -EIO;
	free(raw);
	return rc;
}

int main(int argc, char **argv)
{
	const struct geometry *g = NULL;
	struct synth_buf keys = { 0 }, head = { 0 };
	struct tensor *t;
	uint32_t n = 0;
	uint64_t off = 0;
	int more = 0, rc = 0;
	char name[64];
	FILE *f;

	for (size_t i = 0; argc > 2 && i < sizeof(geometry) / sizeof(geometry[0]); i++)
		if (!strcmp(argv[2], geometry[i].name))
			g = &geometry[i];
	if (!g) {
		fprintf(stderr, "usage: random_gguf OUT.gguf qwen3-0.6b|qwen3-1.7b|qwen3-4b|qwen2.5-1.5b [VOCAB.gguf]\n");
		return 2;
	}
	if (argc > 3 && (more = copy_vocab(argv[3], &keys)) <= 0) {
		fprintf(stderr, "%s: no vocabulary can be read\n", argv[3]);
		return 1;
	}
	zig_make();
	t = calloc(2 + g->layers * 12, sizeof(*t));
	if (!t)
		return 1;
#define ADD(ty, nd, a, b, ...) do { \
	snprintf(t[n].name, sizeof(t[n].name), __VA_ARGS__); \
	t[n].ne[0] = (a); t[n].ne[1] = (b); t[n].type = (ty); t[n].dims = (nd); n++; \
} while (0)
	const uint32_t wide = g->heads * g->head_dim, kvw = g->kv_heads * g->head_dim;

	ADD(QUANT_Q6_K, 2, g->d, VOCAB, "token_embd.weight");
	ADD(QUANT_F32, 1, g->d, 0, "output_norm.weight");
	for (uint32_t i = 0; i < g->layers; i++) {
		/* the layers of a Q4_K_M file whose v and down are Q6_K */
		const bool q6 = i < g->layers / 8 || i >= 7 * g->layers / 8 || (i - g->layers / 8) % 3 == 2;
		const uint32_t big = q6 ? QUANT_Q6_K : QUANT_Q4_K;

		ADD(QUANT_F32, 1, g->d, 0, "blk.%u.attn_norm.weight", i);
		ADD(QUANT_Q4_K, 2, g->d, wide, "blk.%u.attn_q.weight", i);
		ADD(QUANT_Q4_K, 2, g->d, kvw, "blk.%u.attn_k.weight", i);
		ADD(big, 2, g->d, kvw, "blk.%u.attn_v.weight", i);
		ADD(QUANT_Q4_K, 2, wide, g->d, "blk.%u.attn_output.weight", i);
		ADD(QUANT_F32, 1, g->d, 0, "blk.%u.ffn_norm.weight", i);
		ADD(QUANT_Q4_K, 2, g->d, g->ff, "blk.%u.ffn_gate.weight", i);
		ADD(QUANT_Q4_K, 2, g->d, g->ff, "blk.%u.ffn_up.weight", i);
		ADD(big, 2, g->ff, g->d, "blk.%u.ffn_down.weight", i);
		if (!strcmp(g->arch, "qwen3")) {
			ADD(QUANT_F32, 1, g->head_dim, 0, "blk.%u.attn_q_norm.weight", i);
			ADD(QUANT_F32, 1, g->head_dim, 0, "blk.%u.attn_k_norm.weight", i);
		} else {
			ADD(QUANT_F32, 1, wide, 0, "blk.%u.attn_q.bias", i);
			ADD(QUANT_F32, 1, kvw, 0, "blk.%u.attn_k.bias", i);
			ADD(QUANT_F32, 1, kvw, 0, "blk.%u.attn_v.bias", i);
		}
	}
	synth_head(&head, 3, n, (uint64_t)(14 + more));
	synth_kv_str(&head, "general.architecture", g->arch);
	snprintf(name, sizeof(name), "random-%s", g->name);
	synth_kv_str(&head, "general.name", name);
	synth_kv_u32(&head, "general.file_type", 15);
	kv_u32(&head, g->arch, "block_count", g->layers);
	kv_u32(&head, g->arch, "context_length", 40960);
	kv_u32(&head, g->arch, "embedding_length", g->d);
	kv_u32(&head, g->arch, "feed_forward_length", g->ff);
	kv_u32(&head, g->arch, "attention.head_count", g->heads);
	kv_u32(&head, g->arch, "attention.head_count_kv", g->kv_heads);
	kv_u32(&head, g->arch, "attention.key_length", g->head_dim);
	kv_u32(&head, g->arch, "attention.value_length", g->head_dim);
	kv_f32(&head, g->arch, "attention.layer_norm_rms_epsilon", 1e-6f);
	kv_f32(&head, g->arch, "rope.freq_base", 1e6f);
	synth_kv_u32(&head, "general.quantization_version", 2);
	synth_put(&head, keys.p, keys.n);
	for (uint32_t i = 0; i < n; i++) {
		size_t by, per = block_of(t[i].type, &by);
		uint64_t size = t[i].ne[0] * (t[i].dims == 2 ? t[i].ne[1] : 1) / per * by;

		synth_tensor(&head, t[i].name, t[i].dims, t[i].ne, t[i].type, off);
		off += (size + 31) / 32 * 32;
	}
	synth_align(&head, 32);
	f = fopen(argv[1], "wb");
	if (!f || fwrite(head.p, head.n, 1, f) != 1)
		rc = -EIO;
	for (uint32_t i = 0; i < n && !rc; i++)
		rc = write_tensor(f, &t[i]);
	if (f && fclose(f) && !rc)
		rc = -errno;
	if (rc)
		fprintf(stderr, "%s: %s\n", argv[1], strerror(rc == -EIO && errno ? errno : -rc));
	free(head.p);
	free(keys.p);
	free(t);
	return rc ? 1 : 0;
}
