// SPDX-License-Identifier: MIT
/*
 * The CPU backend: the table of ops.h over the kernels of one instruction set
 * (cpu.h) and a team of threads.
 */
#include "model/ops_cpu_priv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include "model/cpu_best.h"

#define ALIGN64(n) (((size_t)(n) + 63) & ~(size_t)63)

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
	team_close(cpu_ctx_of(base)->team);
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
	float *const y[1] = { cpu_ctx_of(base)->logits };

	cpu_norm_matmul(base, b->n_out, x, m->out_norm, 1, w, NULL, y);
}

static struct ops_bufs *cpu_bufs(struct ops_ctx *base)
{
	return &cpu_ctx_of(base)->bufs;
}

static int cpu_forward(struct ops_ctx *base, const struct batch *b, struct hearth_err *err)
{
	struct cpu_ctx *c = cpu_ctx_of(base);
	int r;

	team_begin(c->team);
	r = base->model->family->forward(base, b, err);
	team_end(c->team);
	return r;
}

static int cpu_logits(struct ops_ctx *base, uint32_t i, float **ret, struct hearth_err *err)
{
	*ret = cpu_ctx_of(base)->logits + (size_t)i * base->model->shape.vocab;
	return 0;
}

static int cpu_kv_copy(struct ops_ctx *base, uint32_t dst, uint32_t src, uint32_t tokens,
		       struct hearth_err *err)
{
	struct cpu_ctx *c = cpu_ctx_of(base);

	/* A whole page is one run of bytes; its tokens are in many pieces. */
	memcpy(c->kv_base + dst * c->page_bytes, c->kv_base + src * c->page_bytes, c->page_bytes);
	return 0;
}

static void cpu_interrupt(struct ops_ctx *base)
{
	atomic_store(&cpu_ctx_of(base)->interrupt, true);
}

static bool cpu_interrupted(struct ops_ctx *base)
{
	return atomic_load_explicit(&cpu_ctx_of(base)->interrupt, memory_order_relaxed) &&
	       atomic_exchange(&cpu_ctx_of(base)->interrupt, false);
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
