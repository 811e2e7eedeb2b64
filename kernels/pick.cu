/* SPDX-License-Identifier: MIT */
/*
 * From a row of logits to a token on the device, in the order and with the
 * ties of sample/sampler.h: mask, penalties, then greedy, or top-k, top-p and
 * min-p on the distribution before temperature, temperature, draw. One block a
 * row; the row is read a few times, mostly from L2.
 *
 * The best HK_PICK_CAND by (logit, then lower id) are found by radix selection
 * over 64-bit keys, sorted in shared memory, and drawn from in the order in
 * which the host's sampler draws: worst kept first, or by id where nothing was
 * sorted. A choice that could fall outside of them is left to the host.
 */
#include "kernels/launch.cuh"

typedef unsigned long long u64;

enum { PICK_T = 1024, NONE = -1, NAN_SEEN = -2, HOST = -3 };

struct pk_args {
	const float *logits;
	const struct hk_pick *p;
	const int32_t *recent;
	const u32 *mask;
	float *work;
	int32_t *ret;
	u32 vocab;
};

/* Larger logit first, then lower id: larger key. */
CUDA_D u64 pk_key(float f, u32 id)
{
	u32 b = __float_as_uint(f);

	b = b & 0x80000000u ? ~b : b | 0x80000000u;
	return (u64)b << 32 | (u32)~id;
}
CUDA_D float pk_logit(u64 k)
{
	u32 b = (u32)(k >> 32);

	return __uint_as_float(b & 0x80000000u ? b & 0x7fffffffu : ~b);
}

/* The sampler's own e^x for x <= 0 (runtime/sample/sampler.c), so that both
 * machines weigh alike. */
CUDA_D double pk_exp(double x)
{
	double n, r, p, s;
	int e;

	if (!(x > -700))
		return 0;
	n = floor(x * 1.4426950408889634 + 0.5);
	r = x - n * 0.693147180369123816490;
	r = r - n * 1.90821492927058770002e-10;
	p = 1.0 / 6227020800.0;
	p = p * r + 1.0 / 479001600.0;
	p = p * r + 1.0 / 39916800.0;
	p = p * r + 1.0 / 3628800.0;
	p = p * r + 1.0 / 362880.0;
	p = p * r + 1.0 / 40320.0;
	p = p * r + 1.0 / 5040.0;
	p = p * r + 1.0 / 720.0;
	p = p * r + 1.0 / 120.0;
	p = p * r + 1.0 / 24.0;
	p = p * r + 1.0 / 6.0;
	p = p * r + 0.5;
	p = p * r + 1.0;
	p = p * r + 1.0;
	e = (int)n;
	s = ldexp(p, e);
	return s;
}

static __global__ void __launch_bounds__(PICK_T) pick(const __grid_constant__ pk_args a)
{
	HK_SMEM(smem);
	u64 *cand = (u64 *)smem;                    /* [1024] */
	double *wt = (double *)(smem + 8192);       /* [1024] */
	double *dred = (double *)(smem + 16384);    /* [32] */
	u64 *kred = (u64 *)(smem + 16384 + 256);    /* [32] */
	u32 *hist = (u32 *)(smem + 16384 + 512);    /* [256] */
	u32 *cnt = hist + 256;                      /* [8] */
	const u32 tid = threadIdx.x, lane = tid % 32, warp = tid / 32;

	pdl_go();
	pdl_wait();
	const struct hk_pick p = a.p[blockIdx.x];
	const float *in = a.logits + (size_t)p.row * a.vocab;
	const u32 *mask = a.mask + p.mask0;
	const int32_t *recent = a.recent + p.recent0;
	const bool pen = p.n_recent && (p.rep_pen != 1 || p.freq_pen != 0 || p.pres_pen != 0);
	const bool change = p.has_mask || pen;
	const float *l = in;
	float *work = a.work + (size_t)blockIdx.x * a.vocab;
	u64 best = 0;
	u32 bad = 0;

	if (tid < 8)
		cnt[tid] = 0;
	__syncthreads();

	/* Best of the model's own, and NaN. Nothing changes most rows, and then it is
	 * one compare a logit, four in a load: a thread's own come in order of id. */
	/* The best of all is the best of what is allowed wherever it is allowed itself. */
	const bool hope = p.has_mask && !pen && p.temp == 0 && a.vocab % 4 == 0 && (size_t)in % 16 == 0;
	const bool plain = hope || (!change && a.vocab % 4 == 0 && (size_t)in % 16 == 0);

	if (plain) {
		float top = -INFINITY;
		u32 id = 0;

		for (u32 i0 = tid * 4; i0 < a.vocab; i0 += PICK_T * 16) {
			float4 v[4];

#pragma unroll
			for (u32 j = 0; j < 4; j++)
				v[j] = i0 + j * PICK_T * 4 < a.vocab
					? *(const float4 *)(in + i0 + j * PICK_T * 4)
					: make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
#pragma unroll
			for (u32 j = 0; j < 4; j++) {
				const float f[4] = { v[j].x, v[j].y, v[j].z, v[j].w };

#pragma unroll
				for (u32 e = 0; e < 4; e++) {
					bad |= f[e] != f[e];
					id = f[e] > top ? i0 + j * PICK_T * 4 + e : id;
					top = f[e] > top ? f[e] : top;
				}
			}
		}
		best = pk_key(top, id);
	}
	for (u32 i0 = tid; !plain && i0 < a.vocab; i0 += PICK_T * 8) {
		float v[8];

#pragma unroll
		for (u32 j = 0; j < 8; j++)
			v[j] = i0 + j * PICK_T < a.vocab ? in[i0 + j * PICK_T] : -INFINITY;
#pragma unroll
		for (u32 j = 0; j < 8; j++) {
			const u32 i = i0 + j * PICK_T;
			const u64 k = pk_key(v[j], i);

			if (i >= a.vocab)
				break;
			bad |= v[j] != v[j];
			best = k > best ? k : best;
			if (change)
				work[i] = p.has_mask && !(mask[i / 32] >> (i % 32) & 1) ? -INFINITY : v[j];
		}
	}
#define PK_BEST() do { \
		for (int m_ = 16; m_; m_ >>= 1) { \
			u64 o_ = (u64)shfl_xor_u((u32)(best >> 32), m_) << 32 | shfl_xor_u((u32)best, m_); \
			best = o_ > best ? o_ : best; \
			bad |= shfl_xor_u(bad, m_); \
		} \
		if (lane == 0) { \
			kred[warp] = best; \
			if (bad) \
				atomicAdd(&cnt[0], 1u); \
		} \
		__syncthreads(); \
		for (u32 i_ = 0; i_ < PICK_T / 32; i_++) \
			best = kred[i_] > best ? kred[i_] : best; \
		bad = cnt[0]; \
		__syncthreads(); \
	} while (0)
	PK_BEST();
	if (bad || !isfinite(pk_logit(best))) {
		if (tid == 0)
			a.ret[blockIdx.x] = NAN_SEEN;
		return;
	}
	if (hope) {
		const u32 id = ~(u32)best;

		if (mask[id / 32] >> (id % 32) & 1) {
			if (tid == 0)
				a.ret[blockIdx.x] = (int32_t)id;
			return;
		}
		for (u32 i = tid; i < a.vocab; i += PICK_T)
			work[i] = mask[i / 32] >> (i % 32) & 1 ? in[i] : -INFINITY;
	}
	if (change) {
		l = work;
		/* Each distinct token once: by the thread of its first place. */
		for (u32 j = tid; pen && j < p.n_recent; j += PICK_T) {
			const int32_t id = recent[j];
			u32 n = 0, first = 1;

			for (u32 i = 0; i < p.n_recent; i++) {
				if (recent[i] != id)
					continue;
				n++;
				first &= i >= j;
			}
			if (first && id >= 0 && (u32)id < a.vocab) {
				float f = work[id];

				f = f > 0 ? f / p.rep_pen : f * p.rep_pen;
				work[id] = f - ((float)n * p.freq_pen + p.pres_pen);
			}
		}
		__syncthreads();
		best = 0;
		for (u32 i = tid; i < a.vocab; i += PICK_T) {
			u64 k = pk_key(l[i], i);

			bad |= l[i] != l[i];
			best = k > best ? k : best;
		}
		PK_BEST();
		if (bad || pk_logit(best) == -INFINITY) {
			if (tid == 0)
				a.ret[blockIdx.x] = bad ? NAN_SEEN : NONE;
			return;
		}
	}
	if (p.temp == 0) {
		if (tid == 0)
			a.ret[blockIdx.x] = (int32_t)~(u32)best;
		return;
	}

	const float max = pk_logit(best);
	const float floor_ = p.min_p > 0 ? max + logf(p.min_p) : -INFINITY;
	const bool by_id = !p.top_k && !(p.top_p < 1);
	u32 possible = 0, want;
	double norm = 0;

	/* How many there are, and their mass where top-p looks at all of them. */
	for (u32 i = tid; i < a.vocab; i += PICK_T) {
		float f = l[i];

		if (f > -INFINITY && (!by_id || f >= floor_))
			possible++;
		if (!p.top_k && p.top_p < 1)
			norm += pk_exp((double)f - max);
	}
	for (int m = 16; m; m >>= 1) {
		u64 b = 0, o;

		possible += shfl_xor_u(possible, m);
		memcpy(&b, &norm, 8);
		o = (u64)shfl_xor_u((u32)(b >> 32), m) << 32 | shfl_xor_u((u32)b, m);
		double d;

		memcpy(&d, &o, 8);
		norm += d;
	}
	if (lane == 0) {
		atomicAdd(&cnt[1], possible);
		dred[warp] = norm;
	}
	__syncthreads();
	possible = cnt[1];
	norm = 0;
	for (u32 i = 0; i < PICK_T / 32; i++)
		norm += dred[i];
	want = p.top_k && p.top_k < possible ? p.top_k : possible;
	/* where neither top-k nor top-p cuts anything off the host sorts nothing, and draws by id */
	const bool in_order = !(p.top_p < 1) && want == possible;
	if (want > HK_PICK_CAND) {
		if (by_id || p.top_k) {
			if (tid == 0)
				a.ret[blockIdx.x] = HOST;
			return;
		}
		want = HK_PICK_CAND;
	}

	/* The key of the want-th best, byte by byte from the top. */
	u64 prefix = 0;
	u32 left = want;
	int shift = 56;

	for (; shift >= 0; shift -= 8) {
		u32 in_bin;

		for (u32 i = tid; i < 256; i += PICK_T)
			hist[i] = 0;
		__syncthreads();
		for (u32 i = tid; i < a.vocab; i += PICK_T) {
			u64 k = pk_key(l[i], i);

			if (shift == 56 || k >> (shift + 8) == prefix >> (shift + 8))
				atomicAdd(&hist[k >> shift & 255], 1u);
		}
		__syncthreads();
		if (tid == 0) {
			u32 b = 255;

			while (hist[b] < left)
				left -= hist[b--];
			cnt[2] = b;
			cnt[3] = left;
			cnt[4] = hist[b];
		}
		__syncthreads();
		prefix |= (u64)cnt[2] << shift;
		left = cnt[3];
		in_bin = cnt[4];
		__syncthreads();
		if (left == in_bin)   /* the whole bin is wanted: no need to look closer */
			break;
	}
	for (u32 i = tid; i < HK_PICK_CAND; i += PICK_T)
		cand[i] = 0;
	__syncthreads();
	for (u32 i = tid; i < a.vocab; i += PICK_T) {
		u64 k = pk_key(l[i], i);

		if (k >= prefix && l[i] > -INFINITY) {
			u32 at = atomicAdd(&cnt[5], 1u);

			if (at < HK_PICK_CAND)
				cand[at] = k;
		}
	}
	__syncthreads();

	/* Best first; or by id, where the host would not sort. */
	if (in_order) {
		u64 k = cand[tid];

		cand[tid] = k ? k << 32 | k >> 32 : 0;   /* ~id in front */
	}
	__syncthreads();
	for (u32 size = 2; size <= PICK_T; size *= 2) {
		for (u32 step = size / 2; step; step /= 2) {
			u32 o = tid ^ step;

			if (o > tid) {
				bool down = (tid & size) == 0;
				u64 x = cand[tid], y = cand[o];

				if ((x < y) == down) {
					cand[tid] = y;
					cand[o] = x;
				}
			}
			__syncthreads();
		}
	}
	if (in_order) {
		u64 k = cand[tid];

		cand[tid] = k ? k << 32 | k >> 32 : 0;
	}
	__syncthreads();
	wt[tid] = tid < want ? pk_exp((double)pk_logit(cand[tid]) - max) : 0;
	__syncthreads();
	if (tid == 0) {
		u32 kept = want;

		if (p.top_p < 1) {
			double sum = 0;
			u32 n = 0;

			if (p.top_k) {
				norm = 0;
				for (u32 i = kept; i-- > 0;)   /* as the host: worst first */
					norm += wt[i];
			}
			while (n < kept) {
				sum += wt[n++];
				if (sum >= (double)p.top_p * norm)
					break;
			}
			if (!p.top_k && n == kept && kept < possible)
				n = 0;   /* the mass is not reached within the candidates */
			kept = n;
		}
		cnt[6] = kept;
	}
	__syncthreads();
	u32 kept = cnt[6];

	if (tid < kept) {
		float f = pk_logit(cand[tid]);

		wt[tid] = f >= floor_ ? pk_exp(((double)f - max) / p.temp) : -1;   /* -1: cut by min-p */
	}
	__syncthreads();
	if (tid == 0) {
		double sum = 0, u;
		int32_t last = HOST;

		for (u32 i = 0; i < kept; i++) {
			double w = wt[in_order ? i : kept - 1 - i];

			sum += w > 0 ? w : 0;
		}
		u = p.u * sum;
		for (u32 i = 0; i < kept; i++) {
			u32 at = in_order ? i : kept - 1 - i;

			if (wt[at] < 0)
				continue;
			last = (int32_t)~(u32)cand[at];
			u -= wt[at];
			if (u < 0)
				break;
		}
		a.ret[blockIdx.x] = last;
	}
}

extern "C" int hk_pick(void *st, uint32_t n, uint32_t vocab, const float *logits,
		       const struct hk_pick *p, const int32_t *recent, const uint32_t *mask,
		       float *work, int32_t *ret)
{
	struct pk_args k = { logits, p, recent, mask, work, ret, vocab };

	if (!n)
		return 0;
	if (!vocab || (uintptr_t)p % 8)
		return -EINVAL;
	return HK_LAUNCH(pick, dim3(n), dim3(PICK_T), 16384 + 512 + 1024 + 32, st, hk_pdl, k);
}
