/* SPDX-License-Identifier: MIT */
/*
 * The step's first kernel: embedding rows to float, and the rotation's cosines
 * and sines, once for all layers. And the slow, general matrix kernels.
 */
#include "kernels/launch.cuh"
#include "kernels/peek.cuh"

struct em_args {
	const int32_t *token;
	const u32 *row_seq, *row_pos;
	hk_mat embd;
	const float *inv_freq;
	float *x, *cs;
	u32 half;
};

static __global__ void __launch_bounds__(256) embed(const __grid_constant__ em_args a)
{
	const u32 n = blockIdx.x, k = blockIdx.y * 256 + threadIdx.x;

	pdl_go();
	pdl_wait();
	const bool live = a.row_seq[n] != ~0u;

	if (k < a.embd.cols)
		a.x[(size_t)n * a.embd.cols + k] = live ? peek_mat(a.embd, (u32)a.token[n], k) : 0;
	if (blockIdx.y == 0 && threadIdx.x < a.half) {
		float s, c, th = live ? (float)a.row_pos[n] * a.inv_freq[threadIdx.x] : 0;

		sincosf(th, &s, &c);
		((float2 *)a.cs)[(size_t)n * a.half + threadIdx.x] = make_float2(c, s);
	}
}

extern "C" int hk_embed(void *st, uint32_t n, const struct hk_step *s, const struct hk_mat *embd,
			const float *inv_freq, uint32_t head_dim, float *x, float *cs)
{
	struct em_args k = { s->token, s->row_seq, s->row_pos, *embd, inv_freq, x, cs, head_dim / 2 };

	if (!n)
		return 0;
	if (head_dim > HK_HEAD_MAX || head_dim % 2 || !peek_can(embd) || (uintptr_t)cs % 8 || (embd->packed && (uintptr_t)embd->w % 16))
		return -EINVAL;
	return HK_LAUNCH(embed, dim3(n, (embd->cols + 255) / 256), dim3(256), 0, st, hk_pdl, k);
}

/* -- matrices in file order: a warp a row, tokens in turn -------------------------- */

struct rw_args {
	hk_mat w;
	const float *x, *norm, *bias;
	const u32 *row;
	float *y, eps;
	u32 n, ldx, ldy, row0;
	int add;
};

static __global__ void __launch_bounds__(256) raw(const __grid_constant__ rw_args a)
{
	__shared__ float red[32];
	const u32 n = blockIdx.y, r = a.row0 + blockIdx.x * 8 + threadIdx.x / 32;

	pdl_go();
	pdl_wait();
	const float *x = a.x + (size_t)(a.row ? a.row[n] : n) * a.ldx;
	float rms = 1, s = 0;

	if (a.norm) {
		float ss = 0;

		for (u32 k = threadIdx.x; k < a.w.cols; k += 256)
			ss += x[k] * x[k];
		ss = block_sum(ss, red);
		rms = rsqrtf(ss / (float)a.w.cols + a.eps);
	}
	if (r >= a.w.rows)
		return;
	for (u32 k = threadIdx.x % 32; k < a.w.cols; k += 32) {
		float w = peek_file(a.w.type, (const u8 *)a.w.w + (size_t)r * a.w.row_bytes, k);

		s += w * (a.norm ? x[k] * rms * a.norm[k] : x[k]);
	}
	s = warp_sum(s);
	if (threadIdx.x % 32 == 0) {
		float *y = a.y + (size_t)n * a.ldy + r;

		if (a.add)
			*y += s;
		else
			*y = a.bias ? s + a.bias[r] : s;
	}
}

extern "C" int hk_raw(void *st, const struct hk_raw *a)
{
	struct rw_args k = { a->seg.w, a->x, a->norm, a->seg.bias, a->row, a->seg.y, a->eps,
			     a->n, a->ldx, a->seg.ldy, a->row0, a->mode == HK_ADD };

	if (!a->n || a->row0 >= a->seg.w.rows)
		return 0;
	if (a->mode == HK_SWIGLU || !a->seg.w.row_bytes || !peek_can(&a->seg.w))
		return -EINVAL;
	/* In a packed matrix only the rest rows are in file order. */
	if (a->seg.w.packed && a->row0 < a->seg.w.rows / 16 * 16)
		return -EINVAL;
	return HK_LAUNCH(raw, dim3((a->seg.w.rows - a->row0 + 7) / 8, a->n), dim3(256), 0, st, hk_pdl, k);
}

static __global__ void __launch_bounds__(256) swiglu(const float *g, const float *u, float *h, u32 total)
{
	u32 i = blockIdx.x * 256 + threadIdx.x;

	pdl_go();
	pdl_wait();
	if (i < total)
		h[i] = g[i] / (1 + fast_exp(-g[i])) * u[i];
}

extern "C" int hk_swiglu(void *st, uint32_t n, uint32_t ff, const float *g, const float *u, float *h)
{
	u32 total = n * ff;

	if (!total)
		return 0;
	return HK_LAUNCH(swiglu, dim3((total + 255) / 256), dim3(256), 0, st, hk_pdl, g, u, h, total);
}
