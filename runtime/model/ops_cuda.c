// SPDX-License-Identifier: MIT
/*
 * The CUDA table: one forward pass over the kernels of kernels/kernels.h.
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
#include <sys/mman.h>
#include <unistd.h>

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
	return err_set(err, -ENOTSUP, "this build has no CUDA backend (docs/cuda.md says how to get one)");
}

#else

#include "model/ops_cuda_priv.h"

/* Pieces in which regions are registered: one huge registration can fail. */
#define CHUNK ((size_t)256 << 20)

uint32_t ops_cuda_few, ops_cuda_free_sms;

/* Rows up to which the GEMV is the faster route: two on 8 SMs, and on 132 against
 * gemm_few.cuh; there one against gemm_free.cuh. */
enum { FEW_ROWS = 2, MANY_SMS = 64 };

struct cuda_gpu cuda_gpu;

static int cuda_kv_copy(struct ops_ctx *base, uint32_t dst, uint32_t src, uint32_t tokens,
			struct hearth_err *err)
{
	struct cuda_ctx *c = cuda_ctx(base);
	int rc = hk_kv_copy(c->stream, &c->kv, base->model->shape.layers, dst, src, tokens);

	return rc ? cuda_fail(err, rc) : 0;
}

static void cuda_interrupt(struct ops_ctx *base)
{
	atomic_store(&cuda_ctx(base)->interrupt, true);
}

static bool cuda_interrupted(struct ops_ctx *base)
{
	return atomic_exchange(&cuda_ctx(base)->interrupt, false);
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
			return cuda_fail(err, rc);
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

	c->few = c->many = c->k46 = true;
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
			c->k46 &= cuda_is_k46(all[j]);
			c->few &= cuda_is_gemv(all[j]);
			c->many &= all[j]->packed && all[j]->rows % TILE_ROWS == 0;
		}
		if (d->gate.type != d->up.type)
			c->few = c->many = false;
	}
	c->free = (uint32_t)c->dev.sms >= ops_cuda_free_sms;
	c->few_rows = !c->many ? HK_GEMV_MAX : ops_cuda_few ? ops_cuda_few :
		       c->free && c->dev.sms >= MANY_SMS && c->layer[0].gate.type == QUANT_Q4_K &&
		       hk_gemm_fills((uint32_t)c->dev.sms, c->layer[0].gate.rows) ? 1 : FEW_ROWS;
	c->embd = dev_mat(c, sp, &m->embd);
	c->head = dev_mat(c, sp, &m->head);
	c->out_norm = dev_of(c, sp, m->out_norm);
}

static void cuda_close(struct ops_ctx *base)
{
	struct cuda_ctx *c = (struct cuda_ctx *)base;

	if (!c)
		return;
	if (c->stream)
		(void)hk_stream_sync(c->stream);
	for (int i = 0; i < CUDA_BUCKETS; i++)
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
	const struct host_lay hl = cuda_host_lay(s, o);
	size_t arena, free0 = 0, free1 = 0, total;
	float freq[HK_HEAD_MAX / 2];
	char *host = scratch, slow[OPS_SLOW_MAX];
	int rc;

	/* Who did not ask before is refused here: no kernel would say it by name. */
	if ((rc = cuda_takes(m, slow, sizeof(slow), err))) {
		free(c);
		return rc;
	}
	if (!c || !(c->layer = calloc(s->layers, sizeof(*c->layer)))) {
		free(c);
		return err_set(err, -ENOMEM, "no memory for the CUDA backend");
	}
	c->base.model = m;
	c->o = *o;
	c->dev = cuda_gpu.dev;
	c->where = cuda_gpu.where;
	c->cap = cuda_cap_of(s, o);
	atomic_init(&c->interrupt, false);
	if ((rc = hk_dev_open(0)) || (rc = hk_dev_mem(&free0, &total)) ||
	    (rc = hk_stream_open(&c->stream)))
		goto hk_failed;

	arena = cuda_lay_out(s, o, NULL, NULL);
	{
		size_t want = arena + (c->where == OPS_CUDA_COPY ? sp.hi - sp.lo + cuda_kv_bytes(o) : 0);

		if (want > free0) {
			rc = err_set(err, -ENOMEM, "the GPU has %zu MiB free of %zu and %zu MiB are needed: use a smaller context, or the CPU backend",
				     free0 >> 20, total >> 20, want >> 20);
			goto failed;
		}
	}
	if ((rc = hk_dev_alloc(arena, &c->arena)) ||
	    (rc = hk_fill(c->stream, c->arena, 0, arena)))
		goto hk_failed;
	cuda_lay_out(s, o, &c->b, c->arena);

	if (c->where == OPS_CUDA_COPY) {
		if ((rc = hk_dev_alloc(sp.hi - sp.lo, &c->weights)) ||
		    (rc = hk_copy_in(c->stream, c->weights, (void *)sp.lo, sp.hi - sp.lo)) ||
		    (rc = hk_dev_alloc(cuda_kv_bytes(o), &c->kv_mem)) ||
		    (rc = hk_fill(c->stream, c->kv_mem, 0, cuda_kv_bytes(o))) ||
		    (rc = hk_stream_sync(c->stream)))
			goto hk_failed;
		c->kv.base = c->kv_mem;
	} else {
		if ((rc = register_span(c, (void *)sp.lo, sp.hi - sp.lo, true, err)) ||
		    (rc = register_span(c, kv_base, cuda_kv_bytes(o), false, err)))
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
	    (rc = hk_stream_sync(c->stream)) || (rc = cuda_warm(c)) ||
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
	rc = cuda_fail(err, rc);
failed:
	cuda_close(&c->base);
	return rc;
}

unsigned long long ops_cuda_used(const struct ops_ctx *c)
{
	return ((const struct cuda_ctx *)c)->used;
}

static struct ops table = {
	.line = ops_cuda_line,
	.takes = cuda_takes,
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
	cuda_gpu.want = where;
	cuda_gpu.probed = false;
}

const char *ops_cuda_line(void)
{
	return cuda_gpu.line;
}

/*
 * Registers a page as weights will be, of a file in memory and mapped for reading: an
 * attribute that says it can be done does not say so of such memory, and open
 * would be too late. 0; -ENODEV; else *why says what came in the way.
 */
static int try_in_place(char why[400])
{
	const size_t n = 4096;
	int fd, rc = 0;
	void *p, *dev;

	if (!cuda_gpu.dev.host_register) {
		snprintf(why, 400, "this GPU registers no host memory");
		return -ENOTSUP;
	}
	rc = hk_dev_open(0);
	if (rc) {
		snprintf(why, 400, "%s", hk_dev_error());
		return rc;
	}
	fd = memfd_create("hearth-probe", MFD_CLOEXEC);
	p = fd >= 0 && !ftruncate(fd, (off_t)n) ? mmap(NULL, n, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0) : MAP_FAILED;
	if (p == MAP_FAILED) {
		rc = -errno;
		snprintf(why, 400, "no page to try it with: %s", strerror(errno));
	} else if ((rc = hk_host_register(p, n, cuda_gpu.dev.host_register_ro, &dev))) {
		snprintf(why, 400, "%s", hk_dev_error());
	} else {
		if (dev != p) {
			rc = -ENOTSUP;
			snprintf(why, 400, "this GPU sees registered memory at another address");
		}
		hk_host_unregister(p);
	}
	if (p != MAP_FAILED)
		munmap(p, n);
	if (fd >= 0)
		close(fd);
	return rc;
}

int ops_cuda(const struct ops **ret, struct hearth_err *err)
{
	if (!cuda_gpu.probed) {
		char why[400] = "";
		bool in_place;
		int rc = hk_dev_probe(0, &cuda_gpu.dev);

		if (rc)
			return err_set(err, rc, "%s", hk_dev_error());
		in_place = cuda_gpu.want == OPS_CUDA_IN_PLACE || (cuda_gpu.want == OPS_CUDA_AUTO && cuda_gpu.dev.integrated);
		if (in_place && (rc = try_in_place(why))) {
			if (rc == -ENODEV)
				return err_set(err, rc, "%s", why);
			if (cuda_gpu.want == OPS_CUDA_IN_PLACE)
				return err_set(err, -ENOTSUP, "%s cannot read weights in place: %s", cuda_gpu.dev.name, why);
			in_place = false;
		}
		cuda_gpu.where = in_place ? OPS_CUDA_IN_PLACE : OPS_CUDA_COPY;
		snprintf(cuda_gpu.name, sizeof(cuda_gpu.name), "cuda/sm_%d%d %s", cuda_gpu.dev.major, cuda_gpu.dev.minor,
			 in_place ? "in place" : "copied");
		snprintf(cuda_gpu.line, sizeof(cuda_gpu.line), "CUDA on %s, SM %d.%d, %d SMs; weights and KV %s%s%s%s", cuda_gpu.dev.name,
			 cuda_gpu.dev.major, cuda_gpu.dev.minor, cuda_gpu.dev.sms,
			 in_place ? "read in place from their regions (shared memory)"
				  : "copied to device memory", *why ? " (not read in place: " : "", why, *why ? ")" : "");
		table.name = cuda_gpu.name;
		cuda_gpu.probed = true;
	}
	*ret = &table;
	return 0;
}

#endif /* HEARTH_CUDA */
