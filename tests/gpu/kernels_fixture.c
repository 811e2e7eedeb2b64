// SPDX-License-Identifier: MIT
/* Random matrices and steps (tests/gpu/kernels.h). */
#include "tests/gpu/kernels.h"

const int TYPES[N_TYPES] = {
	QUANT_Q4_0, QUANT_Q4_1, QUANT_Q5_0, QUANT_Q5_1, QUANT_Q8_0,
	QUANT_Q4_K, QUANT_Q5_K, QUANT_Q6_K, QUANT_F16, QUANT_BF16,
};

const int OTHER_TYPES[N_OTHER] = {
	QUANT_Q2_K, QUANT_Q3_K, QUANT_IQ4_NL, QUANT_IQ4_XS, QUANT_MXFP4, 9, 15, -1, 99,
};

static void put_half(uint8_t *p, float f)
{
	uint16_t h = quant_to_half(f);

	memcpy(p, &h, 2);
}

uint8_t *random_mat(int type, uint32_t rows, uint32_t cols, size_t *ret_bytes)
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

struct tmat pack_mat(int type, uint32_t rows, uint32_t cols, uint8_t *file, size_t bytes)
{
	struct tmat t = { .file = file, .file_type = type };
	uint8_t *p = malloc(bytes + 16);
	void *tmp = malloc(pack_tmp_bytes(type, cols));

	t.m = (struct hk_mat){ .type = type, .rows = rows, .cols = cols,
			       .row_bytes = pack_row_bytes(type, cols) };
	memcpy(p, file, bytes);
	if (pack_tiles(type, rows, cols, p, tmp, &t.m.type, NULL))
		gpu_die("pack_tiles", -1);
	t.m.packed = 1;
	free(tmp);
	t.dev = gpu_put(p, bytes);
	t.m.w = t.dev;
	free(p);
	return t;
}

struct tmat make_mat(int type, uint32_t rows, uint32_t cols, bool pack)
{
	struct tmat t = { .file_type = type };
	size_t bytes;

	t.file = random_mat(type, rows, cols, &bytes);
	if (pack)
		return pack_mat(type, rows, cols, t.file, bytes);
	t.m = (struct hk_mat){ .type = type, .rows = rows, .cols = cols,
			       .row_bytes = pack_row_bytes(type, cols) };
	t.dev = gpu_put(t.file, bytes);
	t.m.w = t.dev;
	return t;
}

void drop_mat(struct tmat *t)
{
	hk_dev_free(t->dev);
	free(t->file);
}

float *random_x(size_t n, float scale)
{
	float *x = malloc((n + 4) * sizeof(float));

	for (size_t i = 0; i < n; i++)
		x[i] = rnd_normal() * scale * (rnd() % 64 == 0 ? 20 : 1);
	return x;
}

double worst(const float *a, const float *b, const float *mag, size_t n, double tol)
{
	double w = 0;

	for (size_t i = 0; i < n; i++) {
		double e = fabs((double)a[i] - b[i]) / (tol * (mag[i] + 1e-6));

		if (!(e <= w))
			w = isnan(e) ? INFINITY : e;
	}
	return w;
}

void make_step(struct tstep *s, uint32_t n_seq, const uint32_t *n, const uint32_t *depth,
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

void drop_step(struct tstep *s)
{
	for (int i = 0; i < 8; i++)
		free(s->table[i]);
	free(s->host);
	hk_dev_free(s->dev);
}

struct hk_kv kv_make(uint32_t hd, uint32_t kvh, uint32_t layers, bool f16)
{
	struct hk_kv kv = { .kv_heads = kvh, .head_dim = hd, .f16 = f16 };

	kv.head_bytes = f16 ? 32 * hd * 2 : 32 * (hd + hd / 32 * 2);
	kv.page_bytes = (size_t)layers * 2 * kvh * kv.head_bytes;
	return kv;
}
