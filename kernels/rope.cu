/* SPDX-License-Identifier: MIT */
/*
 * After the QKV product: per head norm (Qwen3), NEOX rotation, q to halves,
 * k and v into their page, int8 with a half scale per 32 channels (or halves).
 * One warp a head of a row (rope.cuh). Bytes: qkv (and its
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
	const u32 lane = threadIdx.x % 32, hs = a.heads + 2 * a.kv.kv_heads;
	const u32 id = blockIdx.x * 4 + threadIdx.x / 32;
	const u32 n = id / hs, h = id % hs;
	float v[V];

	pdl_go();
	pdl_wait();
	if (n >= a.n)
		return;
	const float *x = a.qkv + ((size_t)n * hs + h) * HD;
	const u32 si = a.row_seq[n];

	const u32 parts = a.parts[h < a.heads ? 0 : h < a.heads + a.kv.kv_heads ? 1 : 2];

#pragma unroll
	for (int i = 0; i < V; i++)
		v[i] = x[i * 32 + lane];
	for (u32 p0 = 1; p0 < parts; p0 += 4) {
		float y[4][V];

#pragma unroll
		for (u32 p = 0; p < 4; p++)
#pragma unroll
			for (int i = 0; i < V; i++)
				y[p][i] = x[(p0 + p < parts ? p0 + p : 0) * a.stride + i * 32 + lane];
#pragma unroll
		for (u32 p = 0; p < 4; p++)
#pragma unroll
			for (int i = 0; i < V; i++)
				v[i] += p0 + p < parts ? y[p][i] : 0;
	}
	if (h < a.heads + a.kv.kv_heads) {
		rp_turn<HD>(v, h < a.heads ? a.q_norm : a.k_norm,
			    (const float2 *)a.cs + (size_t)n * (HD / 2), lane, a.eps);
	}
	if (h < a.heads) {
		unsigned short *q = a.q + ((size_t)n * a.heads + h) * HD;

#pragma unroll
		for (int i = 0; i < V; i++)
			q[i * 32 + lane] = si == ~0u ? 0 : f2h(v[i] * a.q_scale);
		return;
	}
	if (si == ~0u)
		return;
	{
		const u32 kh = (h - a.heads) % a.kv.kv_heads, is_v = (h - a.heads) / a.kv.kv_heads;
		const u32 pos = a.row_pos[n], page = a.page[a.seq[si].page0 + pos / 32];
		u8 *base = (u8 *)a.kv.base + (size_t)page * a.kv.page_bytes +
			   (((size_t)a.layer * 2 + is_v) * a.kv.kv_heads + kh) * a.kv.head_bytes;

		rp_store<HD>(a.kv, base, pos % 32, v, lane);
	}
}

extern "C" int hk_rope(void *st, const struct hk_step *s, const struct hk_rope *a)
{
	struct rp_args k = { s->row_seq, s->row_pos, s->page, s->seq, a->qkv, a->q_norm, a->k_norm,
			     a->cs, (unsigned short *)a->q, a->kv, a->heads, a->layer, a->n, a->eps, 0,
			     { a->parts[0], a->parts[1], a->parts[2] }, a->stride };
	u32 hs = a->heads + 2 * a->kv.kv_heads;
	dim3 grid((a->n * hs + 3) / 4);

	if (!a->n)
		return 0;
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

	if (tokens > 32)
		return -EINVAL;
	if (!tokens || dst == src)
		return 0;
	return HK_LAUNCH(kv_copy, dim3(layers * 2 * kv->kv_heads), dim3(128), 0, st, hk_pdl, k);
}
