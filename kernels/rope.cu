/* SPDX-License-Identifier: MIT */
/*
 * After the QKV product: per head norm (Qwen3), NEOX rotation, q to halves,
 * k and v into their page, int8 with a half scale per 32 channels (or halves).
 * Four heads of a row a warp (rope.cuh). Bytes: qkv (and its
 * parts) in once, q and kv out once.
 */
#include "kernels/launch.cuh"
#include "kernels/rope.cuh"

struct rp_args {
	const u32 *row_seq, *row_pos, *page;
	const hk_seq *seq;
	const float *qkv, *q_norm, *k_norm, *cs;
	unsigned short *q;
	hk_kv kv;
	u32 heads, layer, n;
	float eps, q_scale;
	u32 parts[3];
	size_t stride;
};

template <int HD> static __global__ void __launch_bounds__(128) rope(const __grid_constant__ rp_args a)
{
	enum { V = HD / 32 };
	const u32 lane = threadIdx.x % 32, l = lane % 8, hs = a.heads + 2 * a.kv.kv_heads;
	/* four heads of one kind and one row a warp */
	const u32 gq = (a.heads + 3) / 4, gk = (a.kv.kv_heads + 3) / 4, each = gq + 2 * gk;
	const u32 id = blockIdx.x * 4 + threadIdx.x / 32, n = id / each, j = id - n * each;
	const u32 kind = j < gq ? 0 : j < gq + gk ? 1 : 2, of = kind ? a.kv.kv_heads : a.heads;
	const u32 hh = (j - (kind == 0 ? 0 : kind == 1 ? gq : gq + gk)) * 4 + lane / 8;
	const u32 h = hh < of ? hh : of - 1;   /* its place among its kind */
	bool live = hh < of;

	pdl_go();
	if (n >= a.n)   /* the first block has rows, and waits for the kernel before */
		return;
	const float *const x = a.qkv + ((size_t)n * hs + (kind == 0 ? 0 : kind == 1 ? a.heads : a.heads + a.kv.kv_heads) + h) * HD;
	const float *const nw = kind == 0 ? a.q_norm : kind == 1 ? a.k_norm : NULL;
	const u32 parts = a.parts[kind];
	float4 v[V], y[3][V], w[V * 8], cs[V] = {};
	u32 page = 0, pos = 0;
	/* what the step is about, and weights: written before its first kernel */
	const u32 si = a.row_seq[n];

	if (nw)
#pragma unroll
		for (int i = 0; i < V; i++)
			w[i * 8] = ((const float4 *)nw)[i * 8 + l];
	if (kind && si != ~0u) {
		pos = a.row_pos[n];
		page = a.page[a.seq[si].page0 + pos / 32];
	}
	pdl_wait();
	rp_ask<HD>(v, x, l);
#pragma unroll
	for (u32 p = 0; p < 3; p++)
		if (p + 1 < parts)
			rp_ask<HD>(y[p], x + (p + 1) * a.stride, l);
	if (kind < 2)
#pragma unroll
		for (int i = 0; i < V; i++)
			cs[i] = ((const float4 *)a.cs)[(size_t)n * (HD / 4) + i / 2 * 16 + l * 2 + i % 2];
#pragma unroll
	for (u32 p = 0; p < 3; p++)
		if (p + 1 < parts)
			rp_add<HD>(v, y[p]);
	for (u32 p0 = 4; p0 < parts; p0 += 3) {
#pragma unroll
		for (u32 p = 0; p < 3; p++)
			if (p0 + p < parts)
				rp_ask<HD>(y[p], x + (p0 + p) * a.stride, l);
#pragma unroll
		for (u32 p = 0; p < 3; p++)
			if (p0 + p < parts)
				rp_add<HD>(v, y[p]);
	}
	if (kind < 2)
		rp_turn<HD>(v, nw, w, cs, a.eps);
	if (kind == 0) {
		unsigned short *const q = a.q + ((size_t)n * a.heads + h) * HD + l * 4;

		if (si == ~0u)
#pragma unroll
			for (int i = 0; i < V; i++)
				v[i] = make_float4(0, 0, 0, 0);
#pragma unroll
		for (int i = 0; i < V; i++)
			if (live)
				*(uint2 *)(q + i * 32) = make_uint2(f2h2(v[i].x * a.q_scale, v[i].y * a.q_scale),
								    f2h2(v[i].z * a.q_scale, v[i].w * a.q_scale));
	} else {
		live &= si != ~0u;
		rp_store<HD>(a.kv, (u8 *)a.kv.base + (size_t)page * a.kv.page_bytes +
			     (((size_t)a.layer * 2 + kind - 1) * a.kv.kv_heads + h) * a.kv.head_bytes, pos % 32, v, l, live);
	}
}

extern "C" int hk_rope(void *st, const struct hk_step *s, const struct hk_rope *a)
{
	struct rp_args k = { s->row_seq, s->row_pos, s->page, s->seq, a->qkv, a->q_norm, a->k_norm,
			     a->cs, (unsigned short *)a->q, a->kv, a->heads, a->layer, a->n, a->eps, 0,
			     { a->parts[0], a->parts[1], a->parts[2] }, a->stride };
	/* four warps a block, each four heads of one kind */
	const u32 warps = (a->heads + 3) / 4 + 2 * ((a->kv.kv_heads + 3) / 4);
	dim3 grid((a->n * warps + 3) / 4);

	if (!a->n)
		return 0;
	if ((uintptr_t)a->qkv % 16 || (uintptr_t)a->cs % 16 || (uintptr_t)a->q_norm % 16 || (uintptr_t)a->k_norm % 16 ||
	    (uintptr_t)a->q % 8 || a->stride % 4 || (uintptr_t)a->kv.base % 16 || a->kv.head_bytes % 16 || a->kv.page_bytes % 16)
		return -EINVAL;
	k.q_scale = 1.44269504088896f / sqrtf((float)a->kv.head_dim);
	switch (a->kv.head_dim) {
	case 64: return HK_LAUNCH(rope<64>, grid, dim3(128), 0, st, hk_pdl, k);
	case 128: return HK_LAUNCH(rope<128>, grid, dim3(128), 0, st, hk_pdl, k);
	case 256: return HK_LAUNCH(rope<256>, grid, dim3(128), 0, st, hk_pdl, k);
	default: return -EINVAL;
	}
}

/* -- copy of a page's first tokens, all layers and heads ------------------------------- */

struct kc_args {
	hk_kv kv;
	u32 dst, src, tokens;
};

static __global__ void __launch_bounds__(128) kv_copy(const __grid_constant__ kc_args a)
{
	const u8 *s = (const u8 *)a.kv.base + (size_t)a.src * a.kv.page_bytes + (size_t)blockIdx.x * a.kv.head_bytes;
	u8 *d = (u8 *)a.kv.base + (size_t)a.dst * a.kv.page_bytes + (size_t)blockIdx.x * a.kv.head_bytes;
	u32 row = a.kv.head_dim * (a.kv.f16 ? 2 : 1), sc = a.kv.head_dim / 32 * 2;

	for (u32 i = threadIdx.x; i < a.tokens * row / 4; i += 128)
		((u32 *)d)[i] = ((const u32 *)s)[i];
	if (!a.kv.f16)
		for (u32 i = threadIdx.x; i < a.tokens * sc / 2; i += 128)
			((unsigned short *)(d + 32 * row))[i] = ((const unsigned short *)(s + 32 * row))[i];
}

extern "C" int hk_kv_copy(void *st, const struct hk_kv *kv, uint32_t layers, uint32_t dst,
			  uint32_t src, uint32_t tokens)
{
	struct kc_args k = { *kv, dst, src, tokens };

	if (tokens > 32 || (uintptr_t)kv->base % 4 || kv->head_bytes % 4 || kv->page_bytes % 4)
		return -EINVAL;
	if (!tokens || dst == src)
		return 0;
	return HK_LAUNCH(kv_copy, dim3(layers * 2 * kv->kv_heads), dim3(128), 0, st, hk_pdl, k);
}
