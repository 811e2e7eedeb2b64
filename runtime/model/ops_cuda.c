// SPDX-License-Identifier: MIT
/*
 * The CUDA table: one forward pass over the kernels of kernels/kernels.h.
 *
 * Three routes, chosen per model and step:
 *   few    1 or 2 rows, all matrices in dp4a types: five kernels a layer (six for
 *          2), the norm folded into the product that follows
 *   many   any number of rows: halves on tensor cores, eight kernels a layer
 *   plain  models with matrices that tiles do not fit: right, and slow
 *
 * Steps of up to 64 rows are graphs captured at open; what a step is about
 * (tokens, positions, pages) lies in device memory, so one graph serves every
 * context length. Longer steps are launched layer by layer, and look every few
 * layers whether they should stop.
 *
 * Memory: weights and KV pages are read where they are on a GPU that shares
 * the CPU's memory (registered regions, no copy), else copied at open. All
 * other buffers are one allocation whose size .plan knows.
 */
#include "model/ops_cuda.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/ops.h"

#ifndef HEARTH_CUDA

void ops_cuda_place(enum ops_cuda_where where)
{
	(void)where;
}

const char *ops_cuda_line(void)
{
	return "";
}

unsigned long long ops_cuda_used(const struct ops_ctx *c)
{
	return 0;
}

int ops_cuda(const struct ops **ret, struct hearth_err *err)
{
	return err_set(err, -ENOTSUP, "this build has no CUDA backend (nvcc was not found): use the CPU backend");
}

#else

#include "gguf/quant.h"
#include "kernels/kernels.h"
#include "kernels/pack.h"
#include "kernels/step.h"
#include "kernels/tile.h"

/* Row counts that have a graph; more rows go by layers. */
static const uint32_t BUCKET[] = { 1, 2, 4, 8, 16, 24, 40, 64 };
enum { BUCKETS = sizeof(BUCKET) / sizeof(BUCKET[0]), LAYERS_BETWEEN_LOOKS = 4,
       MAX_SEQS = 64, PICK_RECENT = 4096, APART_ROWS = 64 };
/* Pieces in which regions are registered: one huge registration can fail. */
#define CHUNK ((size_t)256 << 20)

uint32_t ops_cuda_few;
bool ops_cuda_together;

/* Rows up to which the GEMV is the faster route, on 132 SMs and on 8. */
enum { FEW_ROWS = 2 };

static struct {
	bool probed;
	enum ops_cuda_where want, where;
	struct hk_dev_info dev;
	char name[32], line[256];
} G;

struct clayer {
	struct hk_mat q, k, v, o, gate, up, down;
	const float *attn_norm, *ffn_norm, *q_norm, *k_norm, *q_bias, *k_bias, *v_bias;
};

/* Buffers on the device, carved from one allocation. */
struct bufs {
	float *x, *qkv, *a, *h, *g, *u, *cs, *act_scale, *logits, *work, *gpart, *apart, *inv_freq;
	uint16_t *q;
	void *act_x, *act_a, *act_h, *step, *q8_a, *q8_h;
	uint32_t *gcount, *acount, *pick_mask;
	int32_t *pick_recent, *pick_ret;
	struct hk_pick *pick;
	size_t gpart_n, apart_n;
};

struct cuda_ctx {
	struct ops_ctx base;
	struct ops_opts o;
	struct hk_dev_info dev;
	enum ops_cuda_where where;
	void *stream;
	void *arena, *weights, *kv_mem;
	struct { void *p; } *reg;       /* registered pieces */
	uint32_t n_reg;
	struct clayer *layer;
	struct hk_mat embd, head;
	const float *out_norm;
	struct hk_kv kv;
	struct step_cap cap;
	struct hk_step step;            /* device pointers */
	struct bufs b;
	void *graph[BUCKETS];
	struct hk_parts add;            /* while a step is launched: what x still lacks */
	bool few, many;                 /* routes this model can take */
	uint32_t few_rows;              /* the first one's largest step */
	uint32_t n_out;
	float *logits;                  /* host, [max_out, vocab] in scratch */
	uint8_t *have;                  /* [max_out] row was fetched */
	void *staging;                  /* host step block, in scratch */
	struct hk_pick *picks;          /* host, in scratch */
	int32_t *recent, *ret;
	uint32_t *mask;
	bool scratch_pinned;
	unsigned long long used;
	atomic_bool interrupt;
};

static struct cuda_ctx *ctx(struct ops_ctx *c)
{
	return (struct cuda_ctx *)c;
}

static uint32_t max_u(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static uint32_t min_u(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* -- shapes of launches ------------------------------------------------------------ */

/* Blocks of attention that fill the device. */
static uint32_t attn_fill(const struct hk_dev_info *d)
{
	return (uint32_t)d->sms * 3;
}

static uint32_t attn_tiles(const struct step_cap *cap, uint32_t n)
{
	return step_tiles(n, min_u(cap->seqs, n), cap->group);
}

static uint32_t attn_splits(const struct hk_dev_info *d, const struct step_cap *cap, uint32_t n)
{
	/* A step of n rows has at least this many tiles. */
	uint32_t tiles = (n * cap->group + 15) / 16;
	uint32_t s = attn_fill(d) / (cap->kv_heads * tiles);

	return s < 1 ? 1 : s > 64 ? 64 : s;
}

/* Rows that a step of n rows is run as. */
static uint32_t padded(uint32_t n, int *ret_bucket)
{
	for (int i = 0; i < BUCKETS; i++) {
		if (n <= BUCKET[i]) {
			*ret_bucket = i;
			return BUCKET[i];
		}
	}
	*ret_bucket = -1;
	return n;
}

/* 8-token groups of an activation buffer for n rows. */
static uint32_t groups_of(uint32_t n)
{
	uint32_t nb = hk_gemm_nb(n);

	return (n + nb - 1) / nb * nb / 8;
}

static size_t act_bytes(uint32_t n, uint32_t cols)
{
	return (size_t)groups_of(n) * tile_units(cols) * 4096;
}

static struct step_cap cap_of(const struct model_shape *s, const struct ops_opts *o)
{
	int b;
	uint32_t rows = padded(o->max_batch, &b);

	return (struct step_cap){
		.rows = rows, .seqs = o->max_seqs, .out = o->max_out,
		.pages = kv_pages_for(o->max_ctx), .group = s->heads / s->kv_heads,
		.kv_heads = s->kv_heads,
	};
}

static size_t lay_out(const struct model_shape *s, const struct ops_opts *o, struct bufs *b, char *at)
{
	const struct step_cap cap = cap_of(s, o);
	const uint32_t n = cap.rows, wide = s->heads * s->head_dim;
	const uint32_t qkv = wide + 2 * s->kv_heads * s->head_dim, out = max_u(o->max_out, 1);
	const uint32_t acts = max_u(n, out);
	size_t used = 0, apart = 0, sms = (size_t)G.dev.sms;
	uint32_t tiles = 0;
	struct bufs none;

	if (!b)
		b = &none;
	for (uint32_t r = 1; r <= n; r++) {
		uint32_t t = attn_tiles(&cap, r), sp = attn_splits(&G.dev, &cap, r);
		size_t p = hk_attn_partial(s->kv_heads, t, sp, s->head_dim);

		apart = p > apart ? p : apart;
		tiles = max_u(tiles, t);
	}
	b->apart_n = apart;
	/* parts of one GEMM to add up, or those of up to 64 rows left apart */
	b->gpart_n = sms * 128 * 128;
	if (b->gpart_n < (size_t)APART_ROWS * max_u(qkv, s->d))
		b->gpart_n = (size_t)APART_ROWS * max_u(qkv, s->d);
#define PLACE(field, bytes) do { \
	(field) = (void *)(at ? at + used : NULL); \
	used += ((size_t)(bytes) + 255) & ~(size_t)255; \
} while (0)
	PLACE(b->x, (size_t)n * s->d * 4);
	PLACE(b->qkv, (size_t)n * qkv * 4);
	PLACE(b->q, (size_t)n * wide * 2);
	PLACE(b->a, (size_t)n * wide * 4);
	PLACE(b->h, (size_t)4 * s->ff * 4);
	PLACE(b->g, (size_t)4 * s->ff * 4);
	PLACE(b->u, (size_t)4 * s->ff * 4);
	PLACE(b->cs, (size_t)n * s->head_dim * 4);
	PLACE(b->act_scale, (size_t)acts * 4);
	PLACE(b->act_x, act_bytes(acts, s->d));
	PLACE(b->act_a, act_bytes(n, wide));
	PLACE(b->act_h, act_bytes(n, max_u(s->ff, max_u(s->d, wide))));
	PLACE(b->q8_a, HK_GEMV_MAX * hk_q8_bytes(wide));
	PLACE(b->q8_h, HK_GEMV_MAX * hk_q8_bytes(s->ff));
	PLACE(b->logits, (size_t)out * s->vocab * 4);
	PLACE(b->work, (size_t)out * s->vocab * 4);
	PLACE(b->gpart, b->gpart_n * 4);
	PLACE(b->apart, b->apart_n * 4);
	PLACE(b->inv_freq, s->head_dim * 2);
	PLACE(b->gcount, HK_GEMM_COUNTS * 4);
	PLACE(b->acount, (size_t)s->kv_heads * tiles * 4);
	PLACE(b->step, step_bytes(&cap));
	PLACE(b->pick, out * sizeof(struct hk_pick));
	PLACE(b->pick_recent, (size_t)out * PICK_RECENT * 4);
	PLACE(b->pick_mask, (size_t)out * ((s->vocab + 31) / 32) * 4);
	PLACE(b->pick_ret, (size_t)out * 4);
#undef PLACE
	return used;
}

struct host_lay { size_t logits, staging, picks, recent, mask, ret, have, end; };

static struct host_lay host_lay(const struct model_shape *s, const struct ops_opts *o)
{
	const struct step_cap cap = cap_of(s, o);
	const size_t out = max_u(o->max_out, 1);
	struct host_lay l;
	size_t used = 0;

#define PUT(f, bytes) do { l.f = used; used += ((size_t)(bytes) + 63) & ~(size_t)63; } while (0)
	PUT(logits, out * s->vocab * 4);
	PUT(staging, step_bytes(&cap));
	PUT(picks, out * sizeof(struct hk_pick));
	PUT(recent, out * PICK_RECENT * 4);
	PUT(mask, out * ((s->vocab + 31) / 32) * 4);
	PUT(ret, out * 4);
	PUT(have, out);
#undef PUT
	l.end = used;
	return l;
}

static size_t kv_bytes(const struct ops_opts *o)
{
	return (size_t)o->kv_pages * kv_page_bytes(&o->kv);
}

/* cudaMalloc hands out whole pieces of this. */
static size_t grain(size_t n)
{
	return (n + ((size_t)2 << 20) - 1) & ~(((size_t)2 << 20) - 1);
}

static int cuda_plan(const struct model_shape *s, const struct ops_opts *o, struct ops_need *ret,
		     struct hearth_err *err)
{
	struct ops_need need = { 0 };

	if (s->head_dim != 64 && s->head_dim != 128 && s->head_dim != 256)
		return err_set(err, -ENOTSUP, "attention heads of %u channels have no CUDA kernel (64, 128 and 256 do): use the CPU backend",
			       s->head_dim);
	if (o->max_seqs > MAX_SEQS)
		return err_set(err, -ENOTSUP, "%u sessions in one step: the CUDA backend takes %d", o->max_seqs, MAX_SEQS);
	need.scratch = host_lay(s, o).end;
	need.host = sizeof(struct cuda_ctx) + s->layers * sizeof(struct clayer);
	need.device = grain(lay_out(s, o, NULL, NULL));
	if (G.where == OPS_CUDA_COPY)
		need.device += grain(o->weights) + grain(kv_bytes(o));
	*ret = need;
	return 0;
}

/* -- the forward pass --------------------------------------------------------------- */

static int fail(struct hearth_err *err, int rc)
{
	return rc == -EINVAL ? err_set(err, rc, "a CUDA kernel refused its shape: use the CPU backend, and report this model")
			     : err_set(err, rc, "%s", hk_dev_error());
}

static bool is_gemv(const struct hk_mat *w)
{
	return w->packed && w->type != QUANT_F16 && w->rows % TILE_ROWS == 0;
}

/* norm (may be NULL) and up to three products of any shape into floats. */
static int plain_mats(struct cuda_ctx *c, uint32_t n, const float *x, uint32_t ldx,
		      const float *norm, uint32_t nseg, const struct hk_seg *seg, enum hk_mode mode)
{
	int rc;

	for (uint32_t i = 0; i < nseg; i++) {
		const struct hk_mat *w = &seg[i].w;
		uint32_t row0 = 0;

		if (w->packed && w->type != QUANT_F16) {
			row0 = w->rows / TILE_ROWS * TILE_ROWS;
			for (uint32_t r = 0; r < n; r += HK_GEMV_MAX) {
				struct hk_gemv a = {
					.n = min_u(n - r, HK_GEMV_MAX), .cols = w->cols,
					.x = x + (size_t)r * ldx, .ldx = ldx, .norm = norm,
					.eps = c->base.model->shape.eps, .mode = mode, .nseg = 1,
				};

				a.seg[0] = seg[i];
				a.seg[0].y += (size_t)r * seg[i].ldy;
				if ((rc = hk_gemv(c->stream, &c->dev, &a)))
					return rc;
			}
		} else if (w->packed) {
			/* halves: through the GEMM, a block of rows at a time */
			uint32_t step = 4;

			row0 = w->rows / TILE_ROWS * TILE_ROWS;
			for (uint32_t r = 0; r < n; r += step) {
				struct hk_gemm a = {
					.n = min_u(n - r, step), .cols = w->cols, .act = c->b.act_h,
					.groups = groups_of(step), .act_scale = c->b.act_scale,
					.scale = 1, .mode = mode, .nseg = 1,
				};

				a.seg[0] = seg[i];
				a.seg[0].y += (size_t)r * seg[i].ldy;
				if ((rc = hk_norm(c->stream, a.n, w->cols, (float *)x + (size_t)r * ldx, NULL, norm,
						  c->base.model->shape.eps, c->b.act_h, a.groups,
						  c->b.act_scale, NULL)) ||
				    (rc = hk_gemm(c->stream, &c->dev, &a)))
					return rc;
			}
		}
		struct hk_raw raw = {
			.n = n, .x = x, .ldx = ldx, .norm = norm, .eps = c->base.model->shape.eps,
			.mode = mode, .seg = seg[i], .row0 = row0,
		};

		if ((rc = hk_raw(c->stream, &raw)))
			return rc;
	}
	return 0;
}

/* The two types of a Q4_K_M file, which a short product can mix. */
static bool is_k46(const struct hk_mat *w)
{
	return w->packed && (w->type == QUANT_Q4_K || w->type == QUANT_Q6_K);
}

/* Products of one input in as many launches as there are types in a row, or fewer; where
 * parts stay apart, how many of each segment. */
static int gemm_run(struct cuda_ctx *c, struct hk_gemm *a, uint32_t nseg, const struct hk_seg *seg,
		    uint32_t *ret_parts)
{
	for (uint32_t i = 0; i < nseg;) {
		uint32_t parts = 1;
		int rc;

		a->nseg = 0;
		do
			a->seg[a->nseg++] = seg[i++];
		while (i < nseg && (seg[i].w.type == a->seg[0].w.type ||
				    (a->n <= APART_ROWS && is_k46(&seg[i].w) && is_k46(&a->seg[0].w))));
		a->ret_parts = &parts;
		if ((rc = hk_gemm(c->stream, &c->dev, a)))
			return rc;
		for (uint32_t j = 0; j < a->nseg; j++)
			ret_parts[i - a->nseg + j] = parts;
	}
	return 0;
}

static int run_layer(struct cuda_ctx *c, uint32_t i, uint32_t n, uint32_t tiles, uint32_t splits)
{
	const struct model_shape *s = &c->base.model->shape;
	const struct clayer *l = &c->layer[i];
	const struct bufs *b = &c->b;
	const uint32_t wide = s->heads * s->head_dim, kvw = s->kv_heads * s->head_dim;
	const uint32_t ldq = wide + 2 * kvw;
	const bool few = c->few && n <= c->few_rows, many = !few && c->many;
	/* Short steps leave parts of a sum to the kernel that reads it next: that is
	 * one wait less than adding them up at once. */
	const bool apart = many && n <= APART_ROWS && !ops_cuda_together;
	float *const to = apart ? b->gpart : b->qkv;
	const struct hk_seg qkv[3] = {
		{ l->q, l->q_bias, to, ldq },
		{ l->k, l->k_bias, to + wide, ldq },
		{ l->v, l->v_bias, to + wide + kvw, ldq },
	};
	const struct hk_seg glu[2] = {
		{ l->gate, NULL, b->h, s->ff }, { l->up, NULL, b->h, s->ff },
	};
	struct hk_seg o = { l->o, NULL, b->x, s->d }, down = { l->down, NULL, b->x, s->d };
	struct hk_parts *add = &c->add;      /* what x still lacks */
	struct hk_rope rope = {
		.n = n, .heads = s->heads, .layer = i, .qkv = to, .q_norm = l->q_norm,
		.k_norm = l->k_norm, .eps = s->eps, .cs = b->cs, .q = b->q, .kv = c->kv,
	};
	struct hk_attn at = {
		.n = n, .heads = s->heads, .layer = i, .tiles = tiles, .splits = splits, .q = b->q,
		.kv = c->kv, .out = b->a, .partial = b->apart, .count = b->acount,
	};
	struct hk_gemv v = {
		.n = n, .cols = s->d, .x = b->x, .ldx = s->d, .norm = l->attn_norm, .eps = s->eps,
		.mode = HK_STORE, .nseg = 3, .seg = { qkv[0], qkv[1], qkv[2] },
	};
	struct hk_gemm m = {
		.n = n, .cols = s->d, .act = b->act_x, .groups = groups_of(n),
		.act_scale = b->act_scale, .scale = 1, .mode = HK_STORE,
		.partial = b->gpart, .partial_floats = b->gpart_n, .count = b->gcount,
	};
	uint32_t parts[3] = { 1, 1, 1 };
	int rc;

	if (!i)
		add->parts = 0;
	/* q, k, v */
	if (few)
		rc = hk_gemv(c->stream, &c->dev, &v);
	else if (many) {
		rc = hk_norm(c->stream, n, s->d, b->x, NULL, l->attn_norm, s->eps, b->act_x, m.groups,
			     b->act_scale, add);
		m.apart = apart ? (size_t)n * ldq : 0;
		if (!rc)
			rc = gemm_run(c, &m, 3, qkv, parts);
		memcpy(rope.parts, parts, sizeof(parts));
		rope.stride = m.apart;
	} else
		rc = plain_mats(c, n, b->x, s->d, l->attn_norm, 3, qkv, HK_STORE);
	if (rc)
		return rc;

	/* attention */
	if (few) {
		at.out = NULL;
		at.q8 = b->q8_a;
	} else if (many) {
		at.out = NULL;
		at.act = b->act_a;
		at.groups = m.groups;
	}
	if (few && n == 1 && c->cap.group <= 16)
		at.rope = &rope;
	if ((!at.rope && (rc = hk_rope(c->stream, &c->step, &rope))) ||
	    (rc = hk_attn(c->stream, &c->dev, &c->step, &at)))
		return rc;

	/* back into the stream */
	v.norm = NULL;
	v.mode = m.mode = HK_ADD;
	v.nseg = 1;
	if (few) {
		v.cols = wide;
		v.x = NULL;
		v.q8 = b->q8_a;
		v.seg[0] = o;
		rc = hk_gemv(c->stream, &c->dev, &v);
	} else if (many) {
		m.cols = wide;
		m.act = b->act_a;
		m.act_scale = NULL;
		m.apart = apart ? (size_t)n * s->d : 0;
		if (apart)
			o.y = b->gpart;
		rc = gemm_run(c, &m, 1, &o, parts);
		*add = (struct hk_parts){ b->gpart, apart ? parts[0] : 0, m.apart };
	} else {
		rc = plain_mats(c, n, b->a, wide, NULL, 1, &o, HK_ADD);
	}
	if (rc)
		return rc;

	/* MLP */
	if (few) {
		v.cols = v.ldx = s->d;
		v.x = b->x;
		v.norm = l->ffn_norm;
		v.q8 = NULL;
		v.q8_out = b->q8_h;
		v.mode = HK_SWIGLU;
		v.nseg = 2;
		v.seg[0] = glu[0];
		v.seg[1] = glu[1];
		if ((rc = hk_gemv(c->stream, &c->dev, &v)))
			return rc;
		v.cols = s->ff;
		v.x = NULL;
		v.q8 = b->q8_h;
		v.q8_out = NULL;
		v.norm = NULL;
		v.mode = HK_ADD;
		v.nseg = 1;
		v.seg[0] = down;
		return hk_gemv(c->stream, &c->dev, &v);
	}
	if (many) {
		if ((rc = hk_norm(c->stream, n, s->d, b->x, NULL, l->ffn_norm, s->eps, b->act_x, m.groups,
				  b->act_scale, add)))
			return rc;
		add->parts = 0;
		m.apart = 0;
		m.cols = s->d;
		m.act = b->act_x;
		m.act_scale = b->act_scale;
		m.mode = HK_SWIGLU;
		m.nseg = 2;
		m.seg[0] = glu[0];
		m.seg[1] = glu[1];
		m.act_out = b->act_h;
		m.groups_out = m.groups;
		m.act_out_scale = 0.0625f;   /* room for 1e6 before F16 ends */
		if ((rc = hk_gemm(c->stream, &c->dev, &m)))
			return rc;
		m.cols = s->ff;
		m.act = b->act_h;
		m.act_scale = NULL;
		m.scale = 16;
		m.mode = HK_ADD;
		if (apart && i + 1 < s->layers) {   /* nobody adds them up after the last layer */
			m.apart = (size_t)n * s->d;
			down.y = b->gpart;
		}
		if ((rc = gemm_run(c, &m, 1, &down, parts)))
			return rc;
		*add = (struct hk_parts){ b->gpart, m.apart ? parts[0] : 0, m.apart };
		return 0;
	}
	for (uint32_t r = 0; r < n; r += 4) {
		const uint32_t k = min_u(n - r, 4);
		struct hk_seg g[2] = { { l->gate, NULL, b->g, s->ff }, { l->up, NULL, b->u, s->ff } };
		struct hk_seg d = down;

		d.y += (size_t)r * s->d;
		if ((rc = plain_mats(c, k, b->x + (size_t)r * s->d, s->d, l->ffn_norm, 2, g, HK_STORE)) ||
		    (rc = hk_swiglu(c->stream, k, s->ff, b->g, b->u, b->h)) ||
		    (rc = plain_mats(c, k, b->h, s->ff, NULL, 1, &d, HK_ADD)))
			return rc;
	}
	return 0;
}

static int run_embed(struct cuda_ctx *c, uint32_t n)
{
	const struct model_shape *s = &c->base.model->shape;

	return hk_embed(c->stream, n, &c->step, &c->embd, c->b.inv_freq, s->head_dim, c->b.x, c->b.cs);
}

/* The whole step but the head, of n (padded) rows. */
static int run_layers(struct cuda_ctx *c, uint32_t n, bool look)
{
	const uint32_t tiles = attn_tiles(&c->cap, n), splits = attn_splits(&c->dev, &c->cap, n);
	int rc = run_embed(c, n);

	for (uint32_t i = 0; !rc && i < c->base.model->shape.layers; i++) {
		rc = run_layer(c, i, n, tiles, splits);
		if (look && !rc && i % LAYERS_BETWEEN_LOOKS == LAYERS_BETWEEN_LOOKS - 1) {
			rc = hk_stream_sync(c->stream);
			if (!rc && atomic_exchange(&c->interrupt, false))
				return -ECANCELED;
		}
	}
	return rc;
}

static int run_head(struct cuda_ctx *c, uint32_t n)
{
	const struct model_shape *s = &c->base.model->shape;
	const struct hk_seg seg = { c->head, NULL, c->b.logits, s->vocab };
	const uint32_t whole = c->head.packed ? s->vocab / TILE_ROWS * TILE_ROWS : 0;
	const bool f16 = c->head.type == QUANT_F16;
	struct hk_raw raw = {
		.n = n, .x = c->b.x, .ldx = s->d, .row = c->step.out, .norm = c->out_norm,
		.eps = s->eps, .mode = HK_STORE, .seg = seg, .row0 = whole,
	};
	int rc = 0;

	if (whole && n <= HK_GEMV_MAX && !f16) {
		struct hk_gemv v = {
			.n = n, .cols = s->d, .x = c->b.x, .ldx = s->d, .row = c->step.out,
			.norm = c->out_norm, .eps = s->eps, .mode = HK_STORE, .nseg = 1, .seg = { seg },
		};

		rc = hk_gemv(c->stream, &c->dev, &v);
	} else if (whole) {
		struct hk_gemm m = {
			.n = n, .cols = s->d, .act = c->b.act_x, .groups = groups_of(n),
			.act_scale = c->b.act_scale, .scale = 1, .mode = HK_STORE, .nseg = 1,
			.seg = { seg }, .partial = c->b.gpart, .partial_floats = c->b.gpart_n,
			.count = c->b.gcount,
		};

		rc = hk_norm(c->stream, n, s->d, c->b.x, c->step.out, c->out_norm, s->eps, c->b.act_x,
			     m.groups, c->b.act_scale, NULL);
		if (!rc)
			rc = hk_gemm(c->stream, &c->dev, &m);
	}
	return rc ? rc : hk_raw(c->stream, &raw);
}

static int cuda_forward(struct ops_ctx *base, const struct batch *b, struct hearth_err *err)
{
	struct cuda_ctx *c = ctx(base);
	struct step_seq seq[MAX_SEQS];
	int bucket, rc;
	uint32_t n = padded(b->n, &bucket);
	size_t bytes;

	if (b->n > c->o.max_batch || b->n_seq > c->o.max_seqs || b->n_seq > MAX_SEQS || b->n_out > c->o.max_out)
		return err_set(err, -EINVAL, "a step of %u rows, %u sessions, %u outputs is larger than was planned (%u, %u, %u)",
			       b->n, b->n_seq, b->n_out, c->o.max_batch, c->o.max_seqs, c->o.max_out);
	if (atomic_exchange(&c->interrupt, false))
		return err_set(err, -ECANCELED, "the step was cancelled before it began");
	/* The staging block is read by the copy of the step before. */
	if ((rc = hk_stream_sync(c->stream)))
		return fail(err, rc);
	for (uint32_t i = 0; i < b->n_seq; i++)
		seq[i] = (struct step_seq){ b->seq[i].first, b->seq[i].n, b->seq[i].pos0, b->seq[i].page };
	bytes = step_fill(&c->cap, c->staging, b->n, n, b->token, b->n_seq, seq, b->n_out, b->out,
			  attn_tiles(&c->cap, n), attn_splits(&c->dev, &c->cap, n), attn_fill(&c->dev));
	if ((rc = hk_copy_in(c->stream, c->b.step, c->staging, bytes)))
		return fail(err, rc);
	if (bucket >= 0 && c->graph[bucket])
		rc = hk_graph_launch(c->stream, c->graph[bucket]);
	else
		rc = run_layers(c, n, bucket < 0);
	if (rc == -ECANCELED)
		return err_set(err, rc, "the step was cancelled");
	if (rc)
		return fail(err, rc);
	c->n_out = b->n_out;
	if (b->n_out) {
		memset(c->have, 0, b->n_out);
		rc = run_head(c, b->n_out);
	} else {
		rc = hk_stream_sync(c->stream);
	}
	return rc ? fail(err, rc) : 0;
}

static int cuda_logits(struct ops_ctx *base, uint32_t i, float **ret, struct hearth_err *err)
{
	struct cuda_ctx *c = ctx(base);
	const size_t vocab = base->model->shape.vocab;
	int rc;

	if (i >= c->n_out)
		return err_set(err, -EINVAL, "row %u of logits was asked for and the step had %u", i, c->n_out);
	if (!c->have[i]) {
		if ((rc = hk_copy_out(c->stream, c->logits + i * vocab, c->b.logits + i * vocab, vocab * 4)) ||
		    (rc = hk_stream_sync(c->stream)))
			return fail(err, rc);
		c->have[i] = 1;
	}
	*ret = c->logits + i * vocab;
	return 0;
}

static int cuda_pick(struct ops_ctx *base, const struct ops_pick *p, uint32_t n, int32_t *ret_token,
		     struct hearth_err *err)
{
	struct cuda_ctx *c = ctx(base);
	const uint32_t vocab = base->model->shape.vocab, words = (vocab + 31) / 32;
	uint32_t n_recent = 0, n_mask = 0;
	int rc;

	if (n > max_u(c->o.max_out, 1))
		return err_set(err, -EINVAL, "%u tokens to pick of %u rows at most", n, c->o.max_out);
	for (uint32_t i = 0; i < n; i++) {
		struct hk_pick *k = &c->picks[i];

		if (p[i].row >= c->n_out || p[i].n_recent > PICK_RECENT)
			return err_set(err, -EINVAL, "a token of row %u of %u, with %u recent tokens, cannot be picked",
				       p[i].row, c->n_out, p[i].n_recent);
		*k = (struct hk_pick){
			.row = p[i].row, .top_k = p[i].top_k, .n_recent = p[i].n_recent, .recent0 = n_recent,
			.mask0 = n_mask, .has_mask = p[i].mask != NULL, .temp = p[i].temp, .top_p = p[i].top_p,
			.min_p = p[i].min_p, .u = p[i].u, .rep_pen = p[i].rep_pen, .freq_pen = p[i].freq_pen,
			.pres_pen = p[i].pres_pen,
		};
		if (p[i].n_recent)
			memcpy(c->recent + n_recent, p[i].recent, p[i].n_recent * sizeof(*c->recent));
		n_recent += p[i].n_recent;
		if (p[i].mask) {
			memcpy(c->mask + n_mask, p[i].mask, words * sizeof(*c->mask));
			n_mask += words;
		}
	}
	if ((rc = hk_copy_in(c->stream, c->b.pick, c->picks, n * sizeof(*c->picks))) ||
	    (n_recent && (rc = hk_copy_in(c->stream, c->b.pick_recent, c->recent, n_recent * 4u))) ||
	    (n_mask && (rc = hk_copy_in(c->stream, c->b.pick_mask, c->mask, n_mask * 4u))) ||
	    (rc = hk_pick(c->stream, n, vocab, c->b.logits, c->b.pick, c->b.pick_recent, c->b.pick_mask,
			  c->b.work, c->b.pick_ret)) ||
	    (rc = hk_copy_out(c->stream, c->ret, c->b.pick_ret, n * 4u)) ||
	    (rc = hk_stream_sync(c->stream)))
		return fail(err, rc);
	memcpy(ret_token, c->ret, n * sizeof(*ret_token));
	return 0;
}

static int cuda_kv_copy(struct ops_ctx *base, uint32_t dst, uint32_t src, uint32_t tokens,
			struct hearth_err *err)
{
	struct cuda_ctx *c = ctx(base);
	int rc = hk_kv_copy(c->stream, &c->kv, base->model->shape.layers, dst, src, tokens);

	return rc ? fail(err, rc) : 0;
}

static void cuda_interrupt(struct ops_ctx *base)
{
	atomic_store(&ctx(base)->interrupt, true);
}

static bool cuda_interrupted(struct ops_ctx *base)
{
	return atomic_exchange(&ctx(base)->interrupt, false);
}

/* -- packing ------------------------------------------------------------------------- */

static size_t cuda_pack_tmp(const struct mat *w)
{
	return pack_can(w->type, w->cols) ? pack_tmp_bytes(w->type, w->cols) : 0;
}

static int cuda_pack_layout(const struct mat *w)
{
	return pack_can(w->type, w->cols) ? TILE_LAYOUT : 0;
}

static int cuda_pack(struct mat *w, void *tmp, struct hearth_err *err)
{
	int type, rc;

	if (!pack_can(w->type, w->cols))
		return 0;
	rc = pack_tiles(w->type, w->rows, w->cols, w->data, tmp, &type, err);
	if (rc)
		return err_prefix(err, rc, "%s", w->name);
	w->layout = TILE_LAYOUT;
	return 0;
}

/* -- open ------------------------------------------------------------------------------ */

struct span { uintptr_t lo, hi; };

static void grow(struct span *s, const void *p, size_t n)
{
	uintptr_t a = (uintptr_t)p;

	if (!p)
		return;
	if (!s->hi || a < s->lo)
		s->lo = a;
	if (a + n > s->hi)
		s->hi = a + n;
}

static int grow_mat(struct mat *w, void *arg)
{
	grow(arg, w->data, w->bytes);
	return 0;
}

static struct span weights_span(struct model *m)
{
	const struct model_shape *s = &m->shape;
	struct span sp = { 0, 0 };

	model_each_mat(m, grow_mat, &sp);
	grow(&sp, m->out_norm, s->d * 4);
	for (uint32_t i = 0; i < s->layers; i++) {
		const struct model_layer *l = &m->layer[i];

		grow(&sp, l->attn_norm, s->d * 4);
		grow(&sp, l->ffn_norm, s->d * 4);
		grow(&sp, l->q_norm, s->head_dim * 4);
		grow(&sp, l->k_norm, s->head_dim * 4);
		grow(&sp, l->q_bias, l->q.rows * 4);
		grow(&sp, l->k_bias, l->k.rows * 4);
		grow(&sp, l->v_bias, l->v.rows * 4);
	}
	return sp;
}

/* Makes host memory readable by the GPU, in pieces. */
static int register_span(struct cuda_ctx *c, void *p, size_t n, bool read_only, struct hearth_err *err)
{
	uintptr_t lo = (uintptr_t)p & ~(uintptr_t)4095, hi = ((uintptr_t)p + n + 4095) & ~(uintptr_t)4095;
	size_t pieces = (hi - lo + CHUNK - 1) / CHUNK;
	void *more = realloc(c->reg, (c->n_reg + pieces) * sizeof(*c->reg));

	if (!more)
		return err_set(err, -ENOMEM, "no memory for a list of %zu registrations", pieces);
	c->reg = more;
	for (uintptr_t a = lo; a < hi; a += CHUNK) {
		size_t len = hi - a < CHUNK ? hi - a : CHUNK;
		void *dev;
		int rc = hk_host_register((void *)a, len, read_only && c->dev.host_register_ro, &dev);

		if (rc)
			return fail(err, rc);
		c->reg[c->n_reg++].p = (void *)a;
		if (dev != (void *)a)
			return err_set(err, -ENOTSUP, "this GPU sees registered memory at another address: zero-copy is not possible");
	}
	return 0;
}

/* A host pointer into the weights as the GPU sees it. */
static const void *dev_of(const struct cuda_ctx *c, const struct span *sp, const void *p)
{
	if (!p || c->where == OPS_CUDA_IN_PLACE)
		return p;
	return (const char *)c->weights + ((uintptr_t)p - sp->lo);
}

static struct hk_mat dev_mat(const struct cuda_ctx *c, const struct span *sp, const struct mat *w)
{
	return (struct hk_mat){
		.w = dev_of(c, sp, w->data),
		.type = w->layout == TILE_LAYOUT && w->type == QUANT_BF16 ? QUANT_F16 : w->type,
		.packed = w->layout == TILE_LAYOUT, .rows = w->rows, .cols = w->cols,
		.row_bytes = w->row_bytes,
	};
}

static void bind_layers(struct cuda_ctx *c, const struct span *sp)
{
	const struct model *m = c->base.model;

	c->few = c->many = true;
	for (uint32_t i = 0; i < m->shape.layers; i++) {
		const struct model_layer *l = &m->layer[i];
		struct clayer *d = &c->layer[i];
		const struct hk_mat *all[7] = { &d->q, &d->k, &d->v, &d->o, &d->gate, &d->up, &d->down };

		d->q = dev_mat(c, sp, &l->q);
		d->k = dev_mat(c, sp, &l->k);
		d->v = dev_mat(c, sp, &l->v);
		d->o = dev_mat(c, sp, &l->o);
		d->gate = dev_mat(c, sp, &l->gate);
		d->up = dev_mat(c, sp, &l->up);
		d->down = dev_mat(c, sp, &l->down);
		d->attn_norm = dev_of(c, sp, l->attn_norm);
		d->ffn_norm = dev_of(c, sp, l->ffn_norm);
		d->q_norm = dev_of(c, sp, l->q_norm);
		d->k_norm = dev_of(c, sp, l->k_norm);
		d->q_bias = dev_of(c, sp, l->q_bias);
		d->k_bias = dev_of(c, sp, l->k_bias);
		d->v_bias = dev_of(c, sp, l->v_bias);
		for (int j = 0; j < 7; j++) {
			c->few &= is_gemv(all[j]);
			c->many &= all[j]->packed && all[j]->rows % TILE_ROWS == 0;
		}
		if (d->gate.type != d->up.type)
			c->few = c->many = false;
	}
	c->few_rows = !c->many ? HK_GEMV_MAX : ops_cuda_few ? ops_cuda_few : FEW_ROWS;
	c->embd = dev_mat(c, sp, &m->embd);
	c->head = dev_mat(c, sp, &m->head);
	c->out_norm = dev_of(c, sp, m->out_norm);
}

/* Each bucket once with no live row, so that code is loaded, then as a graph. */
static int capture(struct cuda_ctx *c)
{
	int rc;

	for (int i = 0; i < BUCKETS; i++) {
		const uint32_t n = BUCKET[i];

		if (n > c->cap.rows || !(c->few || c->many))
			continue;
		size_t bytes = step_fill(&c->cap, c->staging, 0, n, NULL, 0, NULL, 0, NULL,
					 attn_tiles(&c->cap, n), 1, 1);

		if ((rc = hk_copy_in(c->stream, c->b.step, c->staging, bytes)) ||
		    (rc = run_layers(c, n, false)) || (rc = hk_stream_sync(c->stream)))
			return rc;
		rc = hk_capture_begin(c->stream);
		if (rc == -ENOTSUP)
			return 0;   /* a device without graphs launches each step anew */
		if (rc)
			return rc;
		rc = run_layers(c, n, false);
		if (rc) {
			void *g;

			if (!hk_capture_end(c->stream, &g))
				hk_graph_free(g);
			return rc;
		}
		if ((rc = hk_capture_end(c->stream, &c->graph[i])))
			return rc;
	}
	return 0;
}

static void cuda_close(struct ops_ctx *base)
{
	struct cuda_ctx *c = (struct cuda_ctx *)base;

	if (!c)
		return;
	if (c->stream)
		(void)hk_stream_sync(c->stream);
	for (int i = 0; i < BUCKETS; i++)
		if (c->graph[i])
			hk_graph_free(c->graph[i]);
	for (uint32_t i = 0; i < c->n_reg; i++)
		hk_host_unregister(c->reg[i].p);
	if (c->stream)
		hk_stream_close(c->stream);
	hk_dev_free(c->arena);
	hk_dev_free(c->weights);
	hk_dev_free(c->kv_mem);
	free(c->reg);
	free(c->layer);
	free(c);
}

static enum ops_kv cuda_kv_where(struct ops_ctx *base)
{
	return ((struct cuda_ctx *)base)->where == OPS_CUDA_COPY ? OPS_KV_DEVICE : OPS_KV_PINNED;
}

static int cuda_open(const struct model *m, const struct ops_opts *o, void *scratch, void *kv_base,
		     struct ops_ctx **ret, struct hearth_err *err)
{
	const struct model_shape *s = &m->shape;
	struct cuda_ctx *c = calloc(1, sizeof(*c));
	struct span sp = weights_span((struct model *)m);
	const struct host_lay hl = host_lay(s, o);
	size_t arena, free0 = 0, free1 = 0, total;
	float freq[HK_HEAD_MAX / 2];
	char *host = scratch;
	int rc;

	if (!c || !(c->layer = calloc(s->layers, sizeof(*c->layer)))) {
		free(c);
		return err_set(err, -ENOMEM, "no memory for the CUDA backend");
	}
	c->base.model = m;
	c->o = *o;
	c->dev = G.dev;
	c->where = G.where;
	c->cap = cap_of(s, o);
	atomic_init(&c->interrupt, false);
	if ((rc = hk_dev_open(0)) || (rc = hk_dev_mem(&free0, &total)) ||
	    (rc = hk_stream_open(&c->stream)))
		goto hk_failed;

	arena = lay_out(s, o, NULL, NULL);
	{
		size_t want = arena + (c->where == OPS_CUDA_COPY ? sp.hi - sp.lo + kv_bytes(o) : 0);

		if (want > free0) {
			rc = err_set(err, -ENOMEM, "the GPU has %zu MiB free of %zu and %zu MiB are needed: use a smaller context, or the CPU backend",
				     free0 >> 20, total >> 20, want >> 20);
			goto failed;
		}
	}
	if ((rc = hk_dev_alloc(arena, &c->arena)) ||
	    (rc = hk_fill(c->stream, c->arena, 0, arena)))
		goto hk_failed;
	lay_out(s, o, &c->b, c->arena);

	if (c->where == OPS_CUDA_COPY) {
		if ((rc = hk_dev_alloc(sp.hi - sp.lo, &c->weights)) ||
		    (rc = hk_copy_in(c->stream, c->weights, (void *)sp.lo, sp.hi - sp.lo)) ||
		    (rc = hk_dev_alloc(kv_bytes(o), &c->kv_mem)) ||
		    (rc = hk_fill(c->stream, c->kv_mem, 0, kv_bytes(o))) ||
		    (rc = hk_stream_sync(c->stream)))
			goto hk_failed;
		c->kv.base = c->kv_mem;
	} else {
		if ((rc = register_span(c, (void *)sp.lo, sp.hi - sp.lo, true, err)) ||
		    (rc = register_span(c, kv_base, kv_bytes(o), false, err)))
			goto failed;
		c->kv.base = kv_base;
	}
	c->kv.page_bytes = kv_page_bytes(&o->kv);
	c->kv.head_bytes = kv_head_bytes(&o->kv);
	c->kv.kv_heads = s->kv_heads;
	c->kv.head_dim = s->head_dim;
	c->kv.f16 = o->kv.type == KV_F16;

	/* Results land in scratch; pinned where that works, else copies are slower. */
	{
		void *dev;

		if (!hk_host_register((void *)((uintptr_t)host & ~(uintptr_t)4095),
				      (hl.end + ((uintptr_t)host & 4095) + 4095) & ~(size_t)4095, false, &dev)) {
			void *more = realloc(c->reg, (c->n_reg + 1) * sizeof(*c->reg));

			if (more) {
				c->reg = more;
				c->reg[c->n_reg++].p = (void *)((uintptr_t)host & ~(uintptr_t)4095);
			}
			c->scratch_pinned = more != NULL;
		}
	}
	c->logits = (float *)(host + hl.logits);
	c->staging = host + hl.staging;
	c->picks = (struct hk_pick *)(host + hl.picks);
	c->recent = (int32_t *)(host + hl.recent);
	c->mask = (uint32_t *)(host + hl.mask);
	c->ret = (int32_t *)(host + hl.ret);
	c->have = (uint8_t *)(host + hl.have);

	bind_layers(c, &sp);
	step_bind(&c->cap, c->b.step, &c->step);
	for (uint32_t i = 0; i < s->head_dim / 2; i++)
		freq[i] = (float)pow(s->rope_base, -2.0 * i / s->head_dim);
	if ((rc = hk_copy_in(c->stream, c->b.inv_freq, freq, s->head_dim * 2)) ||
	    (rc = hk_stream_sync(c->stream)) || (rc = capture(c)) ||
	    (rc = hk_stream_sync(c->stream)) || (rc = hk_dev_mem(&free1, &total)))
		goto hk_failed;
	c->used = free0 > free1 ? free0 - free1 : 0;
	{
		const struct ops *t;

		(void)ops_cuda(&t, NULL);
		c->base.ops = t;
	}
	*ret = &c->base;
	return 0;

hk_failed:
	rc = fail(err, rc);
failed:
	cuda_close(&c->base);
	return rc;
}

unsigned long long ops_cuda_used(const struct ops_ctx *c)
{
	return ((const struct cuda_ctx *)c)->used;
}

static struct ops table = {
	.plan = cuda_plan,
	.open = cuda_open,
	.close = cuda_close,
	.layout_name = TILE_NAME,
	.pack_tmp = cuda_pack_tmp,
	.pack = cuda_pack,
	.pack_layout = cuda_pack_layout,
	.forward = cuda_forward,
	.logits = cuda_logits,
	.pick = cuda_pick,
	.kv_copy = cuda_kv_copy,
	.kv_where = cuda_kv_where,
	.interrupt = cuda_interrupt,
	.interrupted = cuda_interrupted,
};

void ops_cuda_place(enum ops_cuda_where where)
{
	G.want = where;
	G.probed = false;
}

const char *ops_cuda_line(void)
{
	return G.line;
}

int ops_cuda(const struct ops **ret, struct hearth_err *err)
{
	if (!G.probed) {
		bool in_place;
		int rc = hk_dev_probe(0, &G.dev);

		if (rc)
			return err_set(err, rc, "no CUDA backend: %s", hk_dev_error());
		in_place = G.want == OPS_CUDA_IN_PLACE || (G.want == OPS_CUDA_AUTO && G.dev.integrated);
		if (in_place && !G.dev.host_register) {
			if (G.want == OPS_CUDA_IN_PLACE)
				return err_set(err, -ENOTSUP, "%s cannot read registered host memory in place", G.dev.name);
			in_place = false;
		}
		G.where = in_place ? OPS_CUDA_IN_PLACE : OPS_CUDA_COPY;
		snprintf(G.name, sizeof(G.name), "cuda/sm_%d%d %s", G.dev.major, G.dev.minor,
			 in_place ? "in place" : "copied");
		snprintf(G.line, sizeof(G.line), "CUDA on %s, SM %d.%d, %d SMs; weights and KV %s", G.dev.name,
			 G.dev.major, G.dev.minor, G.dev.sms,
			 in_place ? "read in place from their regions (shared memory)"
				  : "copied to device memory");
		table.name = G.name;
		G.probed = true;
	}
	*ret = &table;
	return 0;
}

#endif /* HEARTH_CUDA */
