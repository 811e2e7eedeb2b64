// SPDX-License-Identifier: MIT
/*
 * Panels: 16 rows' blocks laid side by side, and the way back. The layouts are
 * in cpu.h; here each type is a list of pieces, and a piece says which bytes of
 * a block go where, so packing and unpacking cannot drift apart.
 */
#include "model/cpu.h"

#include <string.h>

/*
 * @n runs of @unit bytes each from byte @from of a row's block go to byte
 * @to of the panel block, run i of row r at to + (i * 16 + r) * unit.
 */
struct piece {
	uint16_t from, n, unit, to;
};

struct packing {
	uint16_t block, bytes;     /* weights, bytes of one row's block */
	uint8_t flip;              /* quant bytes are xored with it */
	uint8_t n_piece;
	bool high5;                /* Q5_0, Q5_1: piece 0 is the high bits, re-ordered */
	struct piece piece[4];
};

static const struct packing packings[QUANT_IDS] = {
	[QUANT_Q4_K] = { 256, 144, 0, 3, false, {
		{ 0, 2, 2, 0 }, { 4, 12, 1, 64 }, { 16, 32, 4, 256 } } },
	[QUANT_Q5_K] = { 256, 176, 0, 4, false, {
		{ 0, 2, 2, 0 }, { 4, 12, 1, 64 }, { 16, 8, 4, 256 }, { 48, 32, 4, 768 } } },
	[QUANT_Q6_K] = { 256, 210, 0, 4, false, {
		{ 208, 1, 2, 0 }, { 192, 16, 1, 32 }, { 128, 16, 4, 288 }, { 0, 32, 4, 1312 } } },
	[QUANT_Q8_0] = { 32, 34, 0x80, 2, false, { { 0, 1, 2, 0 }, { 2, 8, 4, 32 } } },
	[QUANT_Q4_0] = { 32, 18, 0, 2, false, { { 0, 1, 2, 0 }, { 2, 4, 4, 32 } } },
	[QUANT_Q4_1] = { 32, 20, 0, 2, false, { { 0, 2, 2, 0 }, { 4, 4, 4, 64 } } },
	[QUANT_Q5_0] = { 32, 22, 0, 3, true, {
		{ 2, 1, 4, 32 }, { 0, 1, 2, 0 }, { 6, 4, 4, 96 } } },
	[QUANT_Q5_1] = { 32, 24, 0, 3, true, {
		{ 4, 1, 4, 64 }, { 0, 2, 2, 0 }, { 8, 4, 4, 128 } } },
	[QUANT_F32] = { 1, 4, 0, 1, false, { { 0, 1, 4, 0 } } },
	[QUANT_F16] = { 1, 2, 0, 1, false, { { 0, 1, 2, 0 } } },
	[QUANT_BF16] = { 1, 2, 0, 1, false, { { 0, 1, 2, 0 } } },
};

bool cpu_pack_type(int type)
{
	return type >= 0 && type < QUANT_IDS && packings[type].n_piece;
}

/* File order (bit l: weight l) to kernel order (byte t bit i: weight 4i+t, bit 4+i: 16+4i+t). */
static void high_to_kernel(const uint8_t *file, uint8_t *kern)
{
	uint32_t h, l;

	memcpy(&h, file, 4);
	memset(kern, 0, 4);
	for (l = 0; l < 32; l++)
		if (h >> l & 1)
			kern[l & 3] |= (uint8_t)(1u << (l / 16 * 4 + l % 16 / 4));
}

static void high_to_file(const uint8_t *kern, uint8_t *file)
{
	uint32_t h = 0, l;

	for (l = 0; l < 32; l++)
		h |= (uint32_t)(kern[l & 3] >> (l / 16 * 4 + l % 16 / 4) & 1) << l;
	memcpy(file, &h, 4);
}

/*
 * @n runs of one row's block to their places in the panel's block, or back. The
 * unit is a constant in each instance, so a run is one load and one store.
 */
static inline __attribute__((always_inline)) void
move_runs(uint8_t *panel, uint8_t *row, uint32_t n, const uint32_t unit, uint8_t flip, bool pack)
{
	const uint32_t f = flip * 0x01010101u;
	uint32_t i, v = 0;

	for (i = 0; i < n; i++) {
		memcpy(&v, pack ? row + i * unit : panel + i * CPU_ROWS * unit, unit);
		v ^= f;
		memcpy(pack ? panel + i * CPU_ROWS * unit : row + i * unit, &v, unit);
	}
}

static void move(const struct packing *k, uint8_t *panel, uint8_t *row, uint32_t r, bool pack)
{
	uint32_t p;

	for (p = 0; p < k->n_piece; p++) {
		const struct piece *c = &k->piece[p];
		/* The quants are always the last piece. */
		const uint8_t flip = p + 1 == k->n_piece ? k->flip : 0;
		uint8_t *a = panel + c->to + r * c->unit, *b = row + c->from;

		if (p == 0 && k->high5) {
			if (pack)
				high_to_kernel(b, a);
			else
				high_to_file(a, b);
		} else if (c->unit == 4) {
			move_runs(a, b, c->n, 4, flip, pack);
		} else if (c->unit == 2) {
			move_runs(a, b, c->n, 2, flip, pack);
		} else {
			move_runs(a, b, c->n, 1, flip, pack);
		}
	}
}

void cpu_pack_panel(int type, uint32_t cols, size_t row_bytes, uint8_t *rows16, uint8_t *tmp)
{
	const struct packing *k = &packings[type];
	const uint32_t blocks = cols / k->block;
	uint32_t r, b;

	memcpy(tmp, rows16, row_bytes * CPU_ROWS);
	/* Block by block: the 16 rows' pieces of one meet in the same cache lines. */
	for (b = 0; b < blocks; b++)
		for (r = 0; r < CPU_ROWS; r++)
			move(k, rows16 + (size_t)b * k->bytes * CPU_ROWS,
			     tmp + r * row_bytes + (size_t)b * k->bytes, r, true);
}

void cpu_unpack_row(int type, uint32_t cols, const uint8_t *panel,
		    uint32_t lane, uint8_t *tmp, float *out)
{
	const struct packing *k = &packings[type];
	const uint32_t blocks = cols / k->block;
	uint32_t b;

	for (b = 0; b < blocks; b++)
		move(k, (uint8_t *)panel + (size_t)b * k->bytes * CPU_ROWS,
		     tmp + (size_t)b * k->bytes, lane, false);
	quant_type((uint32_t)type)->to_f32(tmp, out, cols);
}
