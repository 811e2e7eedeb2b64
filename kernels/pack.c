/* SPDX-License-Identifier: MIT */
/*
 * The packer and its inverse. Each type is described by where a weight's bits
 * and its scales stand in a file row; one writer per plane does the rest.
 */
#include "kernels/pack.h"

#include <errno.h>
#include <string.h>

#include "gguf/quant.h"
#include "kernels/tile.h"

/* A lane's share of a unit, before it is laid out. */
struct lane {
	uint8_t q[2][64];      /* [r][weight]: bits as stored, low bits first */
	uint16_t h[2][64];     /* F16 only */
	uint8_t sc[2][4], m[2][2];
	uint16_t d[2][2], dm[2][2];
};

static int packed_type(int type)
{
	return type == QUANT_BF16 ? QUANT_F16 : type;
}

bool pack_can(int type, uint32_t cols)
{
	switch (type) {
	case QUANT_Q4_K: case QUANT_Q5_K: case QUANT_Q6_K:
		return cols && cols % 256 == 0;
	case QUANT_Q4_0: case QUANT_Q4_1: case QUANT_Q5_0: case QUANT_Q5_1:
	case QUANT_Q8_0: case QUANT_F16: case QUANT_BF16:
		return cols && cols % 64 == 0;
	default:
		return false;
	}
}

size_t pack_row_bytes(int type, uint32_t cols)
{
	uint64_t n;

	if (quant_row_bytes((uint32_t)type, cols, &n))
		return 0;
	return (size_t)n;
}

size_t pack_tmp_bytes(int type, uint32_t cols)
{
	return TILE_ROWS * pack_row_bytes(type, cols);
}

/* Bits and scales of 64 weights from k0 of a file row. */
static void get_row(int type, const uint8_t *row, uint32_t k0, int r, struct lane *l)
{
	for (uint32_t b = 0; b < 2; b++) {
		uint32_t k = k0 + 32 * b;
		uint8_t *q = &l->q[r][32 * b];

		switch (type) {
		case QUANT_Q4_0: {
			const struct quant_q4_0 *x = (const void *)(row + k / 32 * sizeof(*x));

			for (int i = 0; i < 16; i++) {
				q[i] = (x->qs[i] & 15) ^ 8;
				q[16 + i] = (uint8_t)((x->qs[i] >> 4) ^ 8);
			}
			l->d[r][b] = x->d;
			break;
		}
		case QUANT_Q4_1: {
			const struct quant_q4_1 *x = (const void *)(row + k / 32 * sizeof(*x));

			for (int i = 0; i < 16; i++) {
				q[i] = x->qs[i] & 15;
				q[16 + i] = x->qs[i] >> 4;
			}
			l->d[r][b] = x->d;
			l->dm[r][b] = x->m;
			break;
		}
		case QUANT_Q5_0: case QUANT_Q5_1: {
			size_t sz = type == QUANT_Q5_0 ? 22 : 24;
			const uint8_t *x = row + k / 32 * sz, *p = x + (sz - 20);
			uint32_t hi;

			memcpy(&hi, p, 4);
			for (int i = 0; i < 32; i++) {
				q[i] = i < 16 ? p[4 + i] & 15 : p[4 + i - 16] >> 4;
				q[i] |= (uint8_t)((hi >> i & 1) << 4);
				if (type == QUANT_Q5_0)
					q[i] ^= 16;
			}
			memcpy(&l->d[r][b], x, 2);
			if (type == QUANT_Q5_1)
				memcpy(&l->dm[r][b], x + 2, 2);
			break;
		}
		case QUANT_Q8_0: {
			const struct quant_q8_0 *x = (const void *)(row + k / 32 * sizeof(*x));

			memcpy(q, x->qs, 32);
			l->d[r][b] = x->d;
			break;
		}
		case QUANT_Q4_K: case QUANT_Q5_K: {
			size_t sz = type == QUANT_Q4_K ? 144 : 176;
			const uint8_t *x = row + k / 256 * sz;
			const uint8_t *qh = x + 16, *qs = x + (type == QUANT_Q4_K ? 16 : 48);
			uint32_t j = k % 256 / 32;

			memcpy(&l->d[r][0], x, 2);
			memcpy(&l->dm[r][0], x + 2, 2);
			quant_k4_scale((int)j, x + 4, &l->sc[r][b], &l->m[r][b]);
			for (int i = 0; i < 32; i++) {
				uint8_t v = qs[j / 2 * 32 + (uint32_t)i];

				q[i] = j & 1 ? v >> 4 : v & 15;
				if (type == QUANT_Q5_K)
					q[i] |= (uint8_t)((qh[i] >> j & 1) << 4);
			}
			break;
		}
		case QUANT_Q6_K: {
			const struct quant_q6_k *x = (const void *)(row + k / 256 * sizeof(*x));
			uint32_t j = k % 256 / 32, half = j / 4, c = j % 4;

			for (uint32_t i = 0; i < 32; i++) {
				uint8_t lo = x->ql[half * 64 + (c & 1) * 32 + i];
				uint8_t hi = x->qh[half * 32 + i];

				lo = c >= 2 ? lo >> 4 : lo & 15;
				q[i] = (uint8_t)((lo | (hi >> (2 * c) & 3) << 4) ^ 32);
			}
			l->sc[r][2 * b] = (uint8_t)x->scales[2 * j];
			l->sc[r][2 * b + 1] = (uint8_t)x->scales[2 * j + 1];
			l->d[r][0] = x->d;
			break;
		}
		default: /* F16, BF16 */
			for (uint32_t i = 0; i < 32; i++)
				memcpy(&l->h[r][tile_half(32 * (uint32_t)b + i)], row + (size_t)(k + i) * 2, 2);
			break;
		}
	}
}

static void nibbles(uint8_t *p, size_t cs, size_t idx, const struct lane *l)
{
	for (int r = 0; r < 2; r++)
		for (int b = 0; b < 2; b++)
			for (int i = 0; i < 16; i++)
				p[(size_t)(r * 2 + b) * cs + idx * 16 + (size_t)i] =
					(uint8_t)((l->q[r][32 * b + i] & 15) |
						  (l->q[r][32 * b + 16 + i] & 15) << 4);
}

static void fifth(uint8_t *p, size_t idx, const struct lane *l)
{
	uint32_t v[4] = { 0 };

	for (int r = 0; r < 2; r++)
		for (int k = 0; k < 64; k++)
			v[r * 2 + k / 32] |= (uint32_t)(l->q[r][k] >> 4 & 1)
				<< (8 * (k % 4) + k % 32 / 4);
	memcpy(p + idx * 16, v, 16);
}

static void put_lane(int type, uint8_t *unit, uint32_t g, uint32_t t, uint32_t nt,
		     const struct lane *l)
{
	size_t idx = (size_t)g * nt + t, cs = 128u * nt;
	uint8_t *p = unit + 4 * cs;   /* behind four chunks of nibbles */

	switch (type) {
	case QUANT_Q4_0: case QUANT_Q5_0:
		nibbles(unit, cs, idx, l);
		if (type == QUANT_Q5_0) {
			fifth(p, idx, l);
			p += cs;
		}
		memcpy(p + idx * 8, l->d, 8);
		break;
	case QUANT_Q4_1: case QUANT_Q5_1:
		nibbles(unit, cs, idx, l);
		if (type == QUANT_Q5_1) {
			fifth(p, idx, l);
			p += cs;
		}
		for (int i = 0; i < 4; i++) {
			memcpy(p + idx * 16 + i * 4, &l->d[i / 2][i % 2], 2);
			memcpy(p + idx * 16 + i * 4 + 2, &l->dm[i / 2][i % 2], 2);
		}
		break;
	case QUANT_Q8_0:
		for (size_t c = 0; c < 8; c++)
			memcpy(unit + c * cs + idx * 16, &l->q[c / 4][16 * (c % 4)], 16);
		memcpy(unit + 8 * cs + idx * 8, l->d, 8);
		break;
	case QUANT_Q4_K: case QUANT_Q5_K: {
		uint64_t bits = 0;

		nibbles(unit, cs, idx, l);
		if (type == QUANT_Q5_K) {
			fifth(p, idx, l);
			p += cs;
		}
		for (int r = 0; r < 2; r++) {
			memcpy(p + g * 8 + (size_t)r * 4, &l->d[r][0], 2);
			memcpy(p + g * 8 + (size_t)r * 4 + 2, &l->dm[r][0], 2);
			for (int b = 0; b < 2; b++) {
				bits |= (uint64_t)l->sc[r][b] << (24 * r + 6 * b);
				bits |= (uint64_t)l->m[r][b] << (24 * r + 12 + 6 * b);
			}
		}
		memcpy(p + 64 + idx * 4, &bits, 4);
		memcpy(p + 192 + idx * 2, (uint8_t *)&bits + 4, 2);
		break;
	}
	case QUANT_Q6_K:
		nibbles(unit, cs, idx, l);
		for (int r = 0; r < 2; r++) {
			uint32_t v[4] = { 0 };

			for (int k = 0; k < 64; k++)
				v[k / 16] |= (uint32_t)(l->q[r][k] >> 4 & 3)
					<< (8 * (k % 4) + 2 * (k % 16 / 4));
			memcpy(p + (size_t)r * cs + idx * 16, v, 16);
			memcpy(p + 2 * cs + idx * 8 + (size_t)r * 4, l->sc[r], 4);
			memcpy(p + 2 * cs + 256 + g * 4 + (size_t)r * 2, &l->d[r][0], 2);
		}
		break;
	default:
		for (size_t c = 0; c < 16; c++)
			memcpy(unit + c * cs + idx * 16, &l->h[c / 8][8 * (c % 8)], 16);
		break;
	}
}

static int narrow(uint16_t *h, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float f = quant_from_bf16(h[i]);

		if (!(f <= 65504.0f && f >= -65504.0f))
			return -ERANGE;
		h[i] = quant_to_half(f);
	}
	return 0;
}

int pack_tiles(int type, uint32_t rows, uint32_t cols, void *data, void *tmp,
	       int *ret_type, struct hearth_err *err)
{
	size_t rb = pack_row_bytes(type, cols), per256;

	if (!pack_can(type, cols))
		return err_set(err, -EINVAL, "type %s with rows of %u cannot be packed into tiles",
			       quant_name((uint32_t)type), cols);
	per256 = pack_row_bytes(type, 256);
	if (type == QUANT_BF16 && narrow(data, (size_t)rows * cols))
		return err_set(err, -ERANGE, "a BF16 weight is beyond the range of F16");
	for (uint32_t tile = 0; tile < rows / TILE_ROWS; tile++) {
		uint8_t *dst = (uint8_t *)data + (size_t)tile * TILE_ROWS * rb;

		memcpy(tmp, dst, TILE_ROWS * rb);
		for (uint32_t u = 0; u < tile_units(cols); u++) {
			uint32_t nt = tile_nt(cols, u);

			for (uint32_t g = 0; g < 8; g++) {
				for (uint32_t t = 0; t < nt; t++) {
					struct lane l = { 0 };

					for (uint32_t r = 0; r < 2; r++)
						get_row(type, (uint8_t *)tmp + (g + 8 * r) * rb,
							u * 256 + t * 64, (int)r, &l);
					put_lane(type, dst + (size_t)u * TILE_ROWS * per256,
						 g, t, nt, &l);
				}
			}
		}
	}
	*ret_type = packed_type(type);
	return 0;
}

static float half(uint16_t h)
{
	return quant_from_half(h);
}

/* Weight k of row half r of lane (g, t), straight from the planes. */
static float peek(int type, const uint8_t *unit, uint32_t g, uint32_t t, uint32_t nt,
		  uint32_t r, uint32_t k)
{
	size_t idx = (size_t)g * nt + t, cs = 128u * nt;
	uint32_t b = k / 32, i = k % 32;
	const uint8_t *p = unit + 4 * cs;
	uint16_t d, m = 0;
	int q = 0, sc, mn;
	uint32_t w;
	uint64_t bits;

	if (type != QUANT_Q8_0 && type != QUANT_F16) {
		uint8_t v = unit[(r * 2 + b) * cs + idx * 16 + i % 16];

		q = i < 16 ? v & 15 : v >> 4;
	}
	if (type == QUANT_Q5_0 || type == QUANT_Q5_1 || type == QUANT_Q5_K) {
		memcpy(&w, p + idx * 16 + (r * 2 + b) * 4, 4);
		q |= (int)(w >> (8 * (i % 4) + i / 4) & 1) << 4;
		p += cs;
	}
	switch (type) {
	case QUANT_Q4_0: case QUANT_Q5_0:
		memcpy(&d, p + idx * 8 + (r * 2 + b) * 2, 2);
		return half(d) * (float)(type == QUANT_Q4_0 ? (q ^ 8) - 8 : (q ^ 16) - 16);
	case QUANT_Q4_1: case QUANT_Q5_1:
		memcpy(&d, p + idx * 16 + (r * 2 + b) * 4, 2);
		memcpy(&m, p + idx * 16 + (r * 2 + b) * 4 + 2, 2);
		return half(d) * (float)q + half(m);
	case QUANT_Q8_0:
		memcpy(&d, unit + 8 * cs + idx * 8 + (r * 2 + b) * 2, 2);
		return half(d) * (float)(int8_t)unit[(r * 4 + k / 16) * cs + idx * 16 + k % 16];
	case QUANT_Q4_K: case QUANT_Q5_K:
		memcpy(&d, p + g * 8 + r * 4, 2);
		memcpy(&m, p + g * 8 + r * 4 + 2, 2);
		bits = 0;
		memcpy(&bits, p + 64 + idx * 4, 4);
		memcpy((uint8_t *)&bits + 4, p + 192 + idx * 2, 2);
		sc = (int)(bits >> (24 * r + 6 * b) & 63);
		mn = (int)(bits >> (24 * r + 12 + 6 * b) & 63);
		return half(d) * (float)sc * (float)q - half(m) * (float)mn;
	case QUANT_Q6_K:
		memcpy(&w, p + r * cs + idx * 16 + k / 16 * 4, 4);
		q |= (int)(w >> (8 * (k % 4) + 2 * (k % 16 / 4)) & 3) << 4;
		sc = (int8_t)p[2 * cs + idx * 8 + r * 4 + k / 16];
		memcpy(&d, p + 2 * cs + 256 + g * 4 + r * 2, 2);
		return half(d) * (float)sc * (float)((q ^ 32) - 32);
	default:
		k = tile_half(k);
		memcpy(&d, unit + (r * 8 + k / 8) * cs + idx * 16 + k % 8 * 2, 2);
		return half(d);
	}
}

int pack_row_f32(int type, uint32_t rows, uint32_t cols, const void *data, uint32_t row,
		 float *dst)
{
	int pt = packed_type(type);
	size_t rb = pack_row_bytes(type, cols), per256 = pack_row_bytes(type, 256);
	const uint8_t *tile = (const uint8_t *)data + (size_t)(row / 16) * TILE_ROWS * rb;

	if (row >= rows || !pack_can(type, cols))
		return -EINVAL;
	if (row >= rows / TILE_ROWS * TILE_ROWS)
		return quant_to_f32((uint32_t)pt, (const uint8_t *)data + row * rb, dst, cols);
	for (uint32_t k = 0; k < cols; k++) {
		uint32_t u = k / 256, nt = tile_nt(cols, u);

		dst[k] = peek(pt, tile + (size_t)u * TILE_ROWS * per256, row % 8, k % 256 / 64, nt,
			      row % 16 / 8, k % 64);
	}
	return 0;
}
