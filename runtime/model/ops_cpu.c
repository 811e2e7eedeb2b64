// SPDX-License-Identifier: MIT
/*
 * The CPU backend: the table of ops.h over the kernels of one instruction set
 * (cpu.h) and a team of threads.
 *
 * A matmul is one team_run(): members first normalise and quantise the rows
 * into tiles, meet, and then take blocks of 16 weight rows until none is left.
 * With a single row (decode) every member quantises it for itself, which costs
 * less than meeting.
 */
#include "model/ops.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include "base/thread.h"
#include "model/cpu_best.h"

#define ALIGN64(n) (((size_t)(n) + 63) & ~(size_t)63)

struct member_buf {
	uint8_t *act;      /* one quantised row */
	float *row;        /* [widest] a normalised row */
	float *wrow;       /* [widest] a weight row as floats */
	uint8_t *raw;      /* [widest * 4] a weight row as in the file */
	float *attend;     /* cpu_attend.tmp */
};

struct cpu_ctx {
	struct ops_ctx base;
	const struct cpu_kern *k;
	struct ops_opts o;
	struct team *team;
	uint8_t *kv_base;
	size_t page_bytes;
	uint32_t widest;         /* most columns of a weight */
	struct ops_bufs bufs;
	uint8_t *act;            /* tiles of quantised rows, [max_batch] */
	float *fact;             /* tiles of float rows, [max_batch] */
	float *cs, *sn;          /* [max_batch, head_dim/2] rotation of each row */
	double *freq;            /* [head_dim/2] */
	float *logits;           /* [max_out, vocab] */
	struct member_buf mb[TEAM_MAX];
	atomic_bool interrupt;
	struct work work, work2;
};

static struct cpu_ctx *ctx(struct ops_ctx *c)
{
	return (struct cpu_ctx *)c;
}

static uint32_t max_u(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

size_t cpu_attend_tmp(const struct kv_cfg *kv, uint32_t group)
{
	const size_t rows = (size_t)CPU_ATTEND_ROWS * group;

	return ALIGN64(sizeof(float) * (2 * KV_PAGE * kv->head_dim + 2 * rows + kv->head_dim));
}

/* -- memory -------------------------------------------------------------------- */

/* Rows as floats are needed for float weights, and for rows outside of panels. */
static bool needs_floats(const struct model_shape *s)
{
	int t;

	if (s->ragged || s->types & (1ull << QUANT_F32 | 1ull << QUANT_F16 | 1ull << QUANT_BF16))
		return true;
	for (t = 0; t < 64; t++)
		if (s->types >> t & 1 && !cpu_pack_type(t))
			return true;
	return false;
}

/* Walks the scratch in one order, to count (base NULL) and to place. */
static size_t lay_out(const struct model_shape *s, const struct ops_opts *o, struct cpu_ctx *c,
		      uint8_t *base)
{
	const size_t n = o->max_batch;
	const uint32_t wide = s->heads * s->head_dim, kvw = s->kv_heads * s->head_dim;
	const uint32_t widest = max_u(max_u(s->d, wide), s->ff);
	size_t at = 0;
	uint32_t i;

#define PLACE(field, bytes) do { \
	if (c) \
		(field) = (void *)(base + at); \
	at += ALIGN64(bytes); \
} while (0)
	PLACE(c->bufs.x, n * s->d * 4);
	PLACE(c->bufs.q, n * wide * 4);
	PLACE(c->bufs.k, n * kvw * 4);
	PLACE(c->bufs.v, n * kvw * 4);
	PLACE(c->bufs.a, n * wide * 4);
	PLACE(c->bufs.h, n * s->ff * 4);
	PLACE(c->act, n * (widest / 32 + 1) * CPU_ACT_BYTES);
	PLACE(c->fact, needs_floats(s) ? n * widest * 4 : 0);
	PLACE(c->cs, n * s->head_dim * 2);
	PLACE(c->sn, n * s->head_dim * 2);
	PLACE(c->freq, s->head_dim / 2 * sizeof(double));
	PLACE(c->logits, (size_t)o->max_out * s->vocab * 4);
	for (i = 0; i < o->threads; i++) {
		PLACE(c->mb[i].act, (widest / 32 + 1) * CPU_ACT_BYTES);
		PLACE(c->mb[i].row, widest * 4);
		PLACE(c->mb[i].wrow, widest * 4);
		PLACE(c->mb[i].raw, widest * 4);
		PLACE(c->mb[i].attend, cpu_attend_tmp(&o->kv, s->heads / s->kv_heads));
	}
#undef PLACE
	if (c)
		c->widest = widest;
	return at;
}

static int cpu_plan(const struct model_shape *s, const struct ops_opts *o, struct ops_need *ret,
		    struct hearth_err *err)
{
	if (!o->max_batch || !o->max_seqs || o->threads < 1 || o->threads > TEAM_MAX)
		return err_set(err, -EINVAL, "a CPU step of %u rows, %u sessions on %u threads",
			       o->max_batch, o->max_seqs, o->threads);
	*ret = (struct ops_need){
		.scratch = lay_out(s, o, NULL, NULL),
		.host = sizeof(struct cpu_ctx),
	};
	return 0;
}

static int open_with(const struct cpu_kern *k, const struct ops *ops, const struct model *m,
		     const struct ops_opts *o, void *scratch, void *kv_base,
		     struct ops_ctx **ret, struct hearth_err *err)
{
	const struct model_shape *s = &m->shape;
	struct cpu_ctx *c;
	uint32_t i;
	int r;

	c = aligned_alloc(64, ALIGN64(sizeof(*c)));
	if (!c)
		return err_set(err, -ENOMEM, "no memory for the CPU backend");
	memset(c, 0, sizeof(*c));
	c->base = (struct ops_ctx){ .ops = ops, .model = m };
	c->k = k;
	c->o = *o;
	c->kv_base = kv_base;
	c->page_bytes = kv_page_bytes(&o->kv);
	lay_out(s, o, c, scratch);
	for (i = 0; i < s->head_dim / 2; i++)
		c->freq[i] = pow(s->rope_base, -2.0 * i / s->head_dim);
	r = team_open(o->threads, &c->team, err);
	if (r) {
		free(c);
		return r;
	}
	*ret = &c->base;
	return 0;
}

static void cpu_close(struct ops_ctx *base)
{
	if (!base)
		return;
	team_close(ctx(base)->team);
	free(base);
}

/* -- packing -------------------------------------------------------------------- */

static size_t cpu_pack_tmp(const struct mat *w)
{
	return cpu_pack_type(w->type) ? w->row_bytes * CPU_ROWS : 0;
}

static int cpu_pack_layout(const struct mat *w)
{
	return cpu_pack_type(w->type);
}

static int cpu_pack(struct mat *w, void *tmp, struct hearth_err *err)
{
	uint32_t r;

	w->layout = cpu_pack_layout(w);
	for (r = 0; r < cpu_packed_rows(w); r += CPU_ROWS)
		cpu_pack_panel(w->type, w->cols, w->row_bytes,
			       (uint8_t *)w->data + r * w->row_bytes, tmp);
	return 0;
}

/* -- tiles ------------------------------------------------------------------------ */

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

/* -- matmul ------------------------------------------------------------------------- */

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

static void cpu_norm_matmul(struct ops_ctx *base, uint32_t n, const float *x, const float *norm,
			    uint32_t nw, const struct mat *const w[], const float *const bias[],
			    float *const y[])
{
	struct mm_job j = { .c = ctx(base), .n = n, .cols = w[0]->cols, .x = x, .norm = norm, .nw = nw };
	uint32_t i;

	for (i = 0; i < nw; i++) {
		j.w[i] = w[i];
		j.bias[i] = bias ? bias[i] : NULL;
		j.y[i] = y[i];
	}
	mm_run(&j);
}

static void cpu_matmul_add(struct ops_ctx *base, uint32_t n, const float *h, const struct mat *w, float *x)
{
	struct mm_job j = {
		.c = ctx(base), .mode = MM_ADD, .n = n, .cols = w->cols, .x = h, .nw = 1,
		.w = { w }, .y = { x },
	};

	mm_run(&j);
}

static void cpu_norm_swiglu(struct ops_ctx *base, uint32_t n, const float *x, const float *norm,
			    const struct mat *gate, const struct mat *up, float *h)
{
	struct mm_job j = {
		.c = ctx(base), .mode = MM_SWIGLU, .n = n, .cols = gate->cols, .x = x, .norm = norm,
		.nw = 1, .w = { gate, up }, .y = { h },
	};

	mm_run(&j);
}

/* -- rows ------------------------------------------------------------------------------ */

struct rows_job {
	struct cpu_ctx *c;
	const struct batch *b;
	uint32_t layer;
	float *x, *q, *k;
	const float *v, *q_norm, *k_norm;
	float *out;
};

static const struct batch_seq *seq_of(const struct batch *b, uint32_t row)
{
	const struct batch_seq *s = b->seq;

	while (row >= s->first + s->n)
		s++;
	return s;
}

static void embed_member(void *arg, uint32_t id)
{
	struct rows_job *j = arg;
	struct cpu_ctx *c = j->c;
	const struct mat *w = &c->base.model->embd;
	const uint32_t half = c->base.model->shape.head_dim / 2;
	uint32_t row, i;

	while ((row = work_take(&c->work, 1)) < j->b->n) {
		const uint32_t t = (uint32_t)j->b->token[row];
		const struct batch_seq *s = seq_of(j->b, row);
		const double pos = s->pos0 + row - s->first;
		float *x = j->x + (size_t)row * w->cols;

		if (t < cpu_packed_rows(w))
			cpu_unpack_row(w->type, w->cols,
				       (const uint8_t *)w->data + (size_t)(t / CPU_ROWS * CPU_ROWS) * w->row_bytes,
				       t % CPU_ROWS, c->mb[id].raw, x);
		else
			quant_type((uint32_t)w->type)->to_f32((const uint8_t *)w->data + t * w->row_bytes,
							      x, w->cols);
		for (i = 0; i < half; i++) {
			c->cs[row * half + i] = (float)cos(pos * c->freq[i]);
			c->sn[row * half + i] = (float)sin(pos * c->freq[i]);
		}
	}
}

static void cpu_embed(struct ops_ctx *base, const struct batch *b, float *x)
{
	struct cpu_ctx *c = ctx(base);
	struct rows_job j = { .c = c, .b = b, .x = x };

	work_reset(&c->work);
	if (b->n == 1)
		embed_member(&j, 0);
	else
		team_run(c->team, embed_member, &j);
}

static void rope_member(void *arg, uint32_t id)
{
	struct rows_job *j = arg;
	struct cpu_ctx *c = j->c;
	const struct cpu_kern *k = c->k;
	const struct model_shape *s = &c->base.model->shape;
	const uint32_t hd = s->head_dim, half = hd / 2;
	uint32_t row, h;

	while ((row = work_take(&c->work, 1)) < j->b->n) {
		const struct batch_seq *seq = seq_of(j->b, row);
		const uint32_t pos = seq->pos0 + row - seq->first;
		uint8_t *page = c->kv_base + seq->page[pos / KV_PAGE] * c->page_bytes;
		const float *cs = c->cs + row * half, *sn = c->sn + row * half;

		for (h = 0; h < s->heads; h++) {
			float *q = j->q + ((size_t)row * s->heads + h) * hd;

			if (j->q_norm)
				k->rmsnorm(q, j->q_norm, hd, s->eps, q);
			k->rotate(q, cs, sn, hd);
		}
		for (h = 0; h < s->kv_heads; h++) {
			const size_t at = ((size_t)row * s->kv_heads + h) * hd;
			float *kx = j->k + at;

			if (j->k_norm)
				k->rmsnorm(kx, j->k_norm, hd, s->eps, kx);
			k->rotate(kx, cs, sn, hd);
			k->kv_store(&c->o.kv, page + kv_head_off(&c->o.kv, j->layer, 0, h), pos % KV_PAGE, kx);
			k->kv_store(&c->o.kv, page + kv_head_off(&c->o.kv, j->layer, 1, h), pos % KV_PAGE,
				    j->v + at);
		}
	}
}

static void cpu_rope_append(struct ops_ctx *base, const struct batch *b, uint32_t layer, float *q,
			    float *k, const float *v, const float *q_norm, const float *k_norm)
{
	struct cpu_ctx *c = ctx(base);
	struct rows_job j = {
		.c = c, .b = b, .layer = layer, .q = q, .k = k, .v = v, .q_norm = q_norm, .k_norm = k_norm,
	};

	work_reset(&c->work);
	if (b->n == 1)
		rope_member(&j, 0);
	else
		team_run(c->team, rope_member, &j);
}

/* Pieces of a sequence: CPU_ATTEND_ROWS rows of one KV head. */
static uint32_t pieces(const struct batch_seq *s)
{
	return (s->n + CPU_ATTEND_ROWS - 1) / CPU_ATTEND_ROWS;
}

static void attend_member(void *arg, uint32_t id)
{
	struct rows_job *j = arg;
	struct cpu_ctx *c = j->c;
	const struct model_shape *s = &c->base.model->shape;
	const uint32_t group = s->heads / s->kv_heads;
	const size_t stride = (size_t)s->heads * s->head_dim;
	const struct batch_seq *seq = j->b->seq, *last = seq + j->b->n_seq;
	uint32_t item, base = 0;

	while ((item = work_take(&c->work, 1)), 1) {
		uint32_t p, h, row;

		while (seq < last && item - base >= pieces(seq) * s->kv_heads)
			base += pieces(seq++) * s->kv_heads;
		if (seq == last)
			return;
		/* The longest rows first: they end last. */
		h = (item - base) % s->kv_heads;
		p = pieces(seq) - 1 - (item - base) / s->kv_heads;
		row = p * CPU_ATTEND_ROWS;
		c->k->attend(&(struct cpu_attend){
			.kv = &c->o.kv,
			.kv_base = c->kv_base,
			.page = seq->page,
			.page_bytes = c->page_bytes,
			.k_off = kv_head_off(&c->o.kv, j->layer, 0, h),
			.v_off = kv_head_off(&c->o.kv, j->layer, 1, h),
			.group = group,
			.rows = seq->n - row < CPU_ATTEND_ROWS ? seq->n - row : CPU_ATTEND_ROWS,
			.pos0 = seq->pos0 + row,
			.q = j->q + (seq->first + row) * stride + (size_t)h * group * s->head_dim,
			.out = j->out + (seq->first + row) * stride + (size_t)h * group * s->head_dim,
			.q_stride = stride,
			.tmp = c->mb[id].attend,
		});
	}
}

static void cpu_attend(struct ops_ctx *base, const struct batch *b, uint32_t layer, const float *q,
		       float *out)
{
	struct cpu_ctx *c = ctx(base);
	struct rows_job j = { .c = c, .b = b, .layer = layer, .q = (float *)q, .out = out };

	work_reset(&c->work);
	team_run(c->team, attend_member, &j);
}

static void cpu_narrow(struct ops_ctx *base, const struct batch *b, float *x, float *a)
{
	const struct model_shape *s = &base->model->shape;
	const size_t wide = (size_t)s->heads * s->head_dim;
	uint32_t i;

	/* out[] ascends, so row out[i] >= i and nothing is overwritten before it moves. */
	for (i = 0; i < b->n_out; i++) {
		if (b->out[i] == i)
			continue;
		memcpy(x + (size_t)i * s->d, x + (size_t)b->out[i] * s->d, s->d * sizeof(float));
		memcpy(a + i * wide, a + b->out[i] * wide, wide * sizeof(float));
	}
}

static void cpu_head(struct ops_ctx *base, const struct batch *b, const float *x)
{
	const struct model *m = base->model;
	const struct mat *const w[1] = { &m->head };
	float *const y[1] = { ctx(base)->logits };

	cpu_norm_matmul(base, b->n_out, x, m->out_norm, 1, w, NULL, y);
}

static struct ops_bufs *cpu_bufs(struct ops_ctx *base)
{
	return &ctx(base)->bufs;
}

static int cpu_forward(struct ops_ctx *base, const struct batch *b, struct hearth_err *err)
{
	struct cpu_ctx *c = ctx(base);
	int r;

	team_begin(c->team);
	r = base->model->family->forward(base, b, err);
	team_end(c->team);
	return r;
}

static int cpu_logits(struct ops_ctx *base, uint32_t i, float **ret, struct hearth_err *err)
{
	*ret = ctx(base)->logits + (size_t)i * base->model->shape.vocab;
	return 0;
}

static int cpu_kv_copy(struct ops_ctx *base, uint32_t dst, uint32_t src, uint32_t tokens,
		       struct hearth_err *err)
{
	struct cpu_ctx *c = ctx(base);

	/* A whole page is one run of bytes; its tokens are in many pieces. */
	memcpy(c->kv_base + dst * c->page_bytes, c->kv_base + src * c->page_bytes, c->page_bytes);
	return 0;
}

static void cpu_interrupt(struct ops_ctx *base)
{
	atomic_store(&ctx(base)->interrupt, true);
}

static bool cpu_interrupted(struct ops_ctx *base)
{
	return atomic_load_explicit(&ctx(base)->interrupt, memory_order_relaxed) &&
	       atomic_exchange(&ctx(base)->interrupt, false);
}

/* -- tables ------------------------------------------------------------------------- */

#define TABLE(var, kern, nm) \
static int open_##var(const struct model *m, const struct ops_opts *o, void *scratch, \
		      void *kv_base, struct ops_ctx **ret, struct hearth_err *err); \
static const struct ops var = { \
	.name = nm, \
	.plan = cpu_plan, \
	.open = open_##var, \
	.close = cpu_close, \
	.layout_name = "cpu16", \
	.pack_tmp = cpu_pack_tmp, \
	.pack = cpu_pack, \
	.pack_layout = cpu_pack_layout, \
	.forward = cpu_forward, \
	.embed = cpu_embed, \
	.norm_matmul = cpu_norm_matmul, \
	.rope_append = cpu_rope_append, \
	.attend = cpu_attend, \
	.matmul_add = cpu_matmul_add, \
	.norm_swiglu = cpu_norm_swiglu, \
	.narrow = cpu_narrow, \
	.head = cpu_head, \
	.bufs = cpu_bufs, \
	.logits = cpu_logits, \
	.hidden = true, \
	.kv_copy = cpu_kv_copy, \
	.interrupt = cpu_interrupt, \
	.interrupted = cpu_interrupted, \
}; \
static int open_##var(const struct model *m, const struct ops_opts *o, void *scratch, \
		      void *kv_base, struct ops_ctx **ret, struct hearth_err *err) \
{ \
	return open_with(&kern, &var, m, o, scratch, kv_base, ret, err); \
}

TABLE(plain, cpu_plain, "cpu/plain")
#if defined(__x86_64__)
TABLE(avx2, cpu_avx2, "cpu/avx2")
TABLE(avx512, cpu_avx512, "cpu/avx512-vnni")

static bool have_avx2(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool have_avx512(void)
{
	return have_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
	       __builtin_cpu_supports("avx512vnni");
}
#elif defined(__aarch64__)
TABLE(neon, cpu_neon, "cpu/neon-dotprod")

#ifndef HWCAP_ASIMDDP
#define HWCAP_ASIMDDP (1 << 20)
#endif

static bool have_neon(void)
{
	return getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
}
#endif

const struct ops *ops_by_name(const char *name)
{
	if (!strcmp(name, "ref"))
		return &ops_ref;
	if (!strcmp(name, "cpu"))
		return ops_cpu();
	if (!strcmp(name, "plain"))
		return &plain;
#if defined(__x86_64__)
	if (!strcmp(name, "avx2"))
		return have_avx2() ? &avx2 : NULL;
	if (!strcmp(name, "avx512"))
		return have_avx512() ? &avx512 : NULL;
#elif defined(__aarch64__)
	if (!strcmp(name, "neon"))
		return have_neon() ? &neon : NULL;
#endif
	return NULL;
}

const struct cpu_kern *cpu_kern_best(void)
{
#if defined(__x86_64__)
	if (have_avx512())
		return &cpu_avx512;
	if (have_avx2())
		return &cpu_avx2;
#elif defined(__aarch64__)
	if (have_neon())
		return &cpu_neon;
#endif
	return &cpu_plain;
}

const struct ops *ops_cpu(void)
{
#if defined(__x86_64__)
	if (have_avx512())
		return &avx512;
	if (have_avx2())
		return &avx2;
#elif defined(__aarch64__)
	if (have_neon())
		return &neon;
#endif
	return &plain;
}
