// SPDX-License-Identifier: MIT
/*
 * Products of the CPU backend. One is one team_run(): members first normalise
 * and quantise the rows into tiles, meet, and then take blocks of 16 weight
 * rows until none is left. With a single row (decode) every member quantises it
 * for itself, which costs less than meeting.
 */
#include "model/ops_cpu_priv.h"

#include <string.h>

/* Row @r of @n lies in a tile of *ret_m rows that starts at the returned row. */
static uint32_t tile_of(uint32_t r, uint32_t n, uint32_t full, uint32_t *ret_m)
{
	uint32_t at = r / full * full, m = full;

	if (at + full <= n) {
		*ret_m = full;
		return at;
	}
	for (m = full / 2; m; m /= 2) {
		if (!((n - n / full * full) & m))
			continue;
		if (r < at + m)
			break;
		at += m;
	}
	*ret_m = m;
	return at;
}

static void fill_float_tile(const float *row, uint32_t cols, float *tile, uint32_t M, uint32_t m)
{
	uint32_t k;

	for (k = 0; k < cols; k++)
		tile[k * M + m] = row[k];
}

enum mm_mode { MM_STORE, MM_ADD, MM_SWIGLU };

struct mm_job {
	struct cpu_ctx *c;
	enum mm_mode mode;
	uint32_t n, cols;
	const float *x;                 /* [n, cols] */
	const float *norm;              /* NULL: x as it is */
	uint32_t nw;
	const struct mat *w[3];
	const float *bias[3];
	float *y[3];
	uint32_t first[4];              /* block numbers: w[i] has first[i] .. first[i+1]-1 */
	uint32_t piece;
	bool quant, fl;                 /* which tiles are wanted */
};

static bool wants_float(const struct mat *w)
{
	return w->type == QUANT_F32 || w->type == QUANT_F16 || w->type == QUANT_BF16;
}

/* 16 rows of @w, block @b, times one tile: out[M][16]. */
static void mat_block(const struct mm_job *j, struct member_buf *mb, const struct mat *w, uint32_t b,
		      const uint8_t *tile, const float *ftile, uint32_t M, float *out)
{
	const struct cpu_kern *k = j->c->k;
	const uint32_t r0 = b * CPU_ROWS;
	const uint8_t *p = (const uint8_t *)w->data + r0 * w->row_bytes;
	const struct quant_type *q;
	uint32_t i, m, t;

	if (r0 < cpu_packed_rows(w)) {
		k->gemm[w->type](p, w->cols, wants_float(w) ? (const void *)ftile : tile, M, out);
		return;
	}
	q = quant_type((uint32_t)w->type);
	for (i = 0; i < CPU_ROWS && r0 + i < w->rows; i++, p += w->row_bytes) {
		float acc[CPU_TILE_MAX] = { 0 };

		q->to_f32(p, mb->wrow, w->cols);
		for (t = 0; t < w->cols; t++)
			for (m = 0; m < M; m++)
				acc[m] += mb->wrow[t] * ftile[t * M + m];
		for (m = 0; m < M; m++)
			out[m * CPU_ROWS + i] = acc[m];
	}
}

static void put_block(const struct mm_job *j, uint32_t wi, uint32_t b, uint32_t row, uint32_t M,
		      const float *out)
{
	const struct mat *w = j->w[wi];
	const uint32_t r0 = b * CPU_ROWS;
	const uint32_t rows = w->rows - r0 < CPU_ROWS ? w->rows - r0 : CPU_ROWS;
	const float *bias = j->bias[wi];
	float *y = j->y[wi] + (size_t)row * w->rows + r0;
	uint32_t m, i;

	for (m = 0; m < M; m++, y += w->rows, out += CPU_ROWS) {
		if (j->mode == MM_ADD)
			for (i = 0; i < rows; i++)
				y[i] += out[i];
		else if (bias)
			for (i = 0; i < rows; i++)
				y[i] = out[i] + bias[r0 + i];
		else
			memcpy(y, out, rows * sizeof(float));
	}
}

static void prepare_row(const struct mm_job *j, struct member_buf *mb, uint32_t r, uint8_t *act,
			float *fact)
{
	const struct cpu_kern *k = j->c->k;
	const float *x = j->x + (size_t)r * j->cols;
	uint32_t M, row0;

	if (j->norm) {
		k->rmsnorm(x, j->norm, j->cols, j->c->base.model->shape.eps, mb->row);
		x = mb->row;
	}
	row0 = tile_of(r, j->n, k->tile, &M);
	if (j->quant)
		k->quantise(x, j->cols, act + (size_t)row0 * (j->cols / 32) * CPU_ACT_BYTES, M, r - row0);
	if (j->fl)
		fill_float_tile(x, j->cols, fact + (size_t)row0 * j->cols, M, r - row0);
}

static void mm_member(void *arg, uint32_t id)
{
	struct mm_job *j = arg;
	struct cpu_ctx *c = j->c;
	struct member_buf *mb = &c->mb[id];
	const uint32_t blocks = j->first[j->nw];
	const uint8_t *act = c->act;
	const float *fact = c->fact;
	float out[CPU_TILE_MAX * CPU_ROWS] __attribute__((aligned(64))) = { 0 };
	float up[CPU_TILE_MAX * CPU_ROWS] __attribute__((aligned(64))) = { 0 };
	uint32_t b, end, row, M, wi = 0;

	if (j->n == 1 && !j->fl) {
		prepare_row(j, mb, 0, mb->act, NULL);
		act = mb->act;
	} else {
		while ((row = work_take(&c->work2, 1)) < j->n)
			prepare_row(j, mb, row, c->act, c->fact);
		team_meet(c->team);
	}
	while ((b = work_take(&c->work, j->piece)) < blocks) {
		end = b + j->piece < blocks ? b + j->piece : blocks;
		for (; b < end; b++) {
			while (b < j->first[wi] || b >= j->first[wi + 1])
				wi = b < j->first[wi] ? 0 : wi + 1;
			for (row = 0; row < j->n; row += M) {
				const uint8_t *tile;
				const float *ft;

				tile_of(row, j->n, c->k->tile, &M);
				tile = act + (size_t)row * (j->cols / 32) * CPU_ACT_BYTES;
				ft = fact + (size_t)row * j->cols;
				mat_block(j, mb, j->w[wi], b - j->first[wi], tile, ft, M, out);
				if (j->mode == MM_SWIGLU) {
					mat_block(j, mb, j->w[1], b, tile, ft, M, up);
					c->k->swiglu(out, up, M * CPU_ROWS);
				}
				put_block(j, wi, b - j->first[wi], row, M, out);
			}
		}
	}
}

static void mm_run(struct mm_job *j)
{
	struct cpu_ctx *c = j->c;
	uint32_t i, blocks = 0, each;

	if (!j->n)
		return;
	for (i = 0; i < j->nw; i++) {
		j->first[i] = blocks;
		blocks += (j->w[i]->rows + CPU_ROWS - 1) / CPU_ROWS;
	}
	j->first[j->nw] = blocks;
	for (i = 0; i < (j->mode == MM_SWIGLU ? 2 : j->nw); i++) {
		const struct mat *w = j->w[i];

		j->quant |= w->layout && !wants_float(w);
		j->fl |= wants_float(w) || w->rows > cpu_packed_rows(w);
	}
	/* Some 8 pieces for each member: even work though one is held up. */
	each = blocks / (c->o.threads * 8);
	j->piece = each ? each : 1;
	work_reset(&c->work);
	work_reset(&c->work2);
	team_run(c->team, mm_member, j);
}

void cpu_norm_matmul(struct ops_ctx *base, uint32_t n, const float *x, const float *norm,
			    uint32_t nw, const struct mat *const w[], const float *const bias[],
			    float *const y[])
{
	struct mm_job j = { .c = cpu_ctx_of(base), .n = n, .cols = w[0]->cols, .x = x, .norm = norm, .nw = nw };
	uint32_t i;

	for (i = 0; i < nw; i++) {
		j.w[i] = w[i];
		j.bias[i] = bias ? bias[i] : NULL;
		j.y[i] = y[i];
	}
	mm_run(&j);
}

void cpu_matmul_add(struct ops_ctx *base, uint32_t n, const float *h, const struct mat *w, float *x)
{
	struct mm_job j = {
		.c = cpu_ctx_of(base), .mode = MM_ADD, .n = n, .cols = w->cols, .x = h, .nw = 1,
		.w = { w }, .y = { x },
	};

	mm_run(&j);
}

void cpu_norm_swiglu(struct ops_ctx *base, uint32_t n, const float *x, const float *norm,
			    const struct mat *gate, const struct mat *up, float *h)
{
	struct mm_job j = {
		.c = cpu_ctx_of(base), .mode = MM_SWIGLU, .n = n, .cols = gate->cols, .x = x, .norm = norm,
		.nw = 1, .w = { gate, up }, .y = { h },
	};

	mm_run(&j);
}
