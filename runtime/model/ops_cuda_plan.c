// SPDX-License-Identifier: MIT
/* The CUDA table's shapes of launches and sizes of buffers: all of it is known before anything is allocated. */
#ifdef HEARTH_CUDA
#include <stdio.h>

#include "model/ops_cuda_priv.h"

const uint32_t cuda_bucket[CUDA_BUCKETS] = { 1, 2, 4, 8, 16, 24, 40, 64 };

uint32_t cuda_attn_fill(const struct hk_dev_info *d)
{
	return (uint32_t)d->sms * 3;
}

uint32_t cuda_attn_tiles(const struct step_cap *cap, uint32_t n)
{
	return step_tiles(n, min_u(cap->seqs, n), cap->group);
}

uint32_t cuda_attn_splits(const struct hk_dev_info *d, const struct step_cap *cap, uint32_t n)
{
	/* A step of n rows has at least this many tiles. */
	uint32_t tiles = (n * cap->group + 15) / 16;
	uint32_t s = cuda_attn_fill(d) / (cap->kv_heads * tiles);

	return s < 1 ? 1 : s > 64 ? 64 : s;
}

uint32_t cuda_padded(uint32_t n, int *ret_bucket)
{
	for (int i = 0; i < CUDA_BUCKETS; i++) {
		if (n <= cuda_bucket[i]) {
			*ret_bucket = i;
			return cuda_bucket[i];
		}
	}
	*ret_bucket = -1;
	return n;
}

uint32_t cuda_groups_of(uint32_t n)
{
	uint32_t nb = hk_gemm_nb(n);

	return (n + nb - 1) / nb * nb / 8;
}

static size_t act_bytes(uint32_t n, uint32_t cols)
{
	return (size_t)cuda_groups_of(n) * tile_units(cols) * 4096;
}

struct step_cap cuda_cap_of(const struct model_shape *s, const struct ops_opts *o)
{
	int b;
	uint32_t rows = cuda_padded(o->max_batch, &b);

	return (struct step_cap){
		.rows = rows, .seqs = o->max_seqs, .out = o->max_out,
		.pages = kv_pages_for(o->max_ctx), .group = s->heads / s->kv_heads,
		.kv_heads = s->kv_heads,
	};
}

size_t cuda_lay_out(const struct model_shape *s, const struct ops_opts *o, struct bufs *b, char *at)
{
	const struct step_cap cap = cuda_cap_of(s, o);
	const uint32_t n = cap.rows, wide = s->heads * s->head_dim;
	const uint32_t qkv = wide + 2 * s->kv_heads * s->head_dim, out = max_u(o->max_out, 1);
	const uint32_t acts = max_u(n, out);
	size_t used = 0, apart = 0, sms = (size_t)cuda_gpu.dev.sms;
	uint32_t tiles = 0;
	struct bufs none;

	if (!b)
		b = &none;
	for (uint32_t r = 1; r <= n; r++) {
		uint32_t t = cuda_attn_tiles(&cap, r), sp = cuda_attn_splits(&cuda_gpu.dev, &cap, r);
		size_t p = hk_attn_partial(s->kv_heads, t, sp, s->head_dim);

		apart = p > apart ? p : apart;
		tiles = max_u(tiles, t);
	}
	b->apart_n = apart;
	/* parts of one GEMM to add up, or those of short steps left apart */
	b->gpart_n = sms * 128 * 128;
	if (b->gpart_n < (size_t)APART_K46 * max_u(qkv, s->d))
		b->gpart_n = (size_t)APART_K46 * max_u(qkv, s->d);
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
	PLACE(b->pick_mask, ((size_t)out + 1) * ((s->vocab + 31) / 32) * 4);   /* the last: one that stays */
	PLACE(b->pick_ret, (size_t)out * 4);
#undef PLACE
	return used;
}

struct host_lay cuda_host_lay(const struct model_shape *s, const struct ops_opts *o)
{
	const struct step_cap cap = cuda_cap_of(s, o);
	const size_t out = max_u(o->max_out, 1);
	struct host_lay l;
	size_t used = 0;

#define PUT(f, bytes) do { l.f = used; used += ((size_t)(bytes) + 63) & ~(size_t)63; } while (0)
	PUT(logits, out * s->vocab * 4);
	PUT(staging, step_bytes(&cap));
	PUT(picks, out * sizeof(struct hk_pick));
	PUT(recent, out * PICK_RECENT * 4);
	PUT(mask, (out + 1) * ((s->vocab + 31) / 32) * 4);
	PUT(ret, out * 4);
	PUT(have, out);
#undef PUT
	l.end = used;
	return l;
}

size_t cuda_kv_bytes(const struct ops_opts *o)
{
	return (size_t)o->kv_pages * kv_page_bytes(&o->kv);
}

/* cudaMalloc hands out whole pieces of this. */
static size_t grain(size_t n)
{
	return (n + ((size_t)2 << 20) - 1) & ~(((size_t)2 << 20) - 1);
}

static int type_takes(struct mat *w, void *arg)
{
	switch (w->type) {
	case QUANT_F32: case QUANT_F16: case QUANT_BF16:
	case QUANT_Q4_0: case QUANT_Q4_1: case QUANT_Q5_0: case QUANT_Q5_1: case QUANT_Q8_0:
	case QUANT_Q4_K: case QUANT_Q5_K: case QUANT_Q6_K:
		return 0;
	default:
		return err_set(arg, -ENOTSUP, "tensor \"%s\" is %s, which the CUDA backend has no kernel for: the CPU backend (backend: cpu) computes it, the GPU a file of Q4_K, Q5_K, Q6_K, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, F16, BF16 or F32",
			       w->name, quant_name((uint32_t)w->type));
	}
}

#define F32_WHY  "which no tensor core takes"
#define COLS_WHY "with columns that are no multiple of 64 (K types: of 256)"

/* Why tiles do not fit @w, or NULL. */
static const char *no_tiles(const struct mat *w)
{
	if (w->type == QUANT_F32)
		return F32_WHY;
	if (w->rows % TILE_ROWS)
		return "with rows that are no multiple of 16";
	return pack_can(w->type, w->cols) ? NULL : COLS_WHY;
}

/* What the kernels see (dev_mat). */
static int type_seen(const struct mat *w)
{
	return w->type == QUANT_BF16 ? QUANT_F16 : w->type;
}

/* As bind_layers() does: one layer off the tiles takes all of them off. */
static void slow_of(const struct model *m, char *ret, size_t n)
{
	*ret = 0;
	for (uint32_t i = 0; i < m->shape.layers; i++) {
		const struct model_layer *l = &m->layer[i];
		const struct mat *all[7] = { &l->q, &l->k, &l->v, &l->o, &l->gate, &l->up, &l->down };

		for (int j = 0; j < 7; j++) {
			const char *why = no_tiles(all[j]);

			if (why) {
				snprintf(ret, n, "tensor \"%s\" is %s [%u, %u], %s", all[j]->name, quant_name((uint32_t)all[j]->type),
					 all[j]->cols, all[j]->rows, why);
				return;
			}
		}
		if (type_seen(&l->gate) != type_seen(&l->up)) {
			snprintf(ret, n, "tensor \"%s\" is %s and \"%s\" %s, and only two of one type are multiplied together", l->gate.name,
				 quant_name((uint32_t)l->gate.type), l->up.name, quant_name((uint32_t)l->up.type));
			return;
		}
	}
	if (!pack_can(m->head.type, m->head.cols))   /* its rest rows are few */
		snprintf(ret, n, "the head \"%s\" is %s [%u, %u], %s", m->head.name, quant_name((uint32_t)m->head.type), m->head.cols,
			 m->head.rows, m->head.type == QUANT_F32 ? F32_WHY : COLS_WHY);
}

int cuda_takes(const struct model *m, char *ret_slow, size_t n, struct hearth_err *err)
{
	/* It only reads, but for a tied head, which becomes what it is. */
	int rc = model_each_mat((struct model *)m, type_takes, err);

	if (!rc)
		slow_of(m, ret_slow, n);
	return rc;
}

int cuda_plan(const struct model_shape *s, const struct ops_opts *o, struct ops_need *ret,
		     struct hearth_err *err)
{
	struct ops_need need = { 0 };

	if (s->head_dim != 64 && s->head_dim != 128 && s->head_dim != 256)
		return err_set(err, -ENOTSUP, "attention heads of %u channels have no CUDA kernel (64, 128 and 256 do): the CPU backend (backend: cpu) computes them",
			       s->head_dim);
	if (o->max_seqs > OPS_MAX_SEQS)
		return err_set(err, -EINVAL, "%u sessions in one step; at most %u are possible", o->max_seqs, OPS_MAX_SEQS);
	need.scratch = cuda_host_lay(s, o).end;
	need.host = sizeof(struct cuda_ctx) + s->layers * sizeof(struct clayer);
	need.device = grain(cuda_lay_out(s, o, NULL, NULL));
	if (cuda_gpu.where == OPS_CUDA_COPY)
		need.device += grain(o->weights) + grain(cuda_kv_bytes(o));
	*ret = need;
	return 0;
}

#endif /* HEARTH_CUDA */
