/* SPDX-License-Identifier: MIT */
/*
 * The GEMM for up to 64 tokens of Q4_K and Q6_K (included by gemm.cuh). Every warp
 * goes its own way: a warp's weights (a pair of tiles, one block column of every
 * unit that is its turn) come through a ring of its own in shared memory, the
 * activations through L1, and nobody waits for anybody until KS warps add up
 * what they have of a pair.
 *
 * Nibbles become halves by one mask each: what lies in the low bits of a half
 * is a subnormal, q * 2^-24 (or 2^-20 for the upper nibble), and one multiply-add
 * with the block's scale times 2^24 makes the weight of it. So that such a scale fits
 * into a half, weights are divided by a power of two, the largest of a warp's
 * rows so far; when it grows, the sums are brought down to it.
 */
#ifndef HEARTH_KERNELS_GEMM_FREE_CUH
#define HEARTH_KERNELS_GEMM_FREE_CUH

template <int T, int NT, int WM_> struct gf_cfg {
	enum {
		WM = WM_, KS = gf_slices(NT, WM), ACT = WM > 1,   /* activations in shared memory */ WARPS = WM * KS, THREADS = 32 * WARPS, PT = 32 * KS,
		STAGE = T == T_Q4_K ? 2560 : 3648,   /* a pair's half unit */
		ABYTES = NT * 2048 * KS,
		ROOM = 32 * 1024 / (WARPS * STAGE),   /* of five blocks an SM */
		STAGES = ACT || ROOM < 3 ? 2 : 3, ROW = 36,   /* floats of a token's 32 rows, padded */
		RED = WARPS * NT * 8 * ROW * 4, WRING = WARPS * STAGE * STAGES, RING = WRING + (ACT ? ABYTES * STAGES : 0), SMEM = RED > RING ? RED : RING,
		BLOCKS = gf_blocks(WM),
		SUMS = NT == 1 ? 2 : 1,                       /* so that products of a sum are no neighbours */
		AHEAD = !ACT && NT == 1,                      /* a half unit's activations asked for before its weights are waited for */
		JM = NT == 1 ? 1 : NT == 3 ? 3 : 2            /* token groups whose products go together */
	};
	static_assert(SMEM <= 163 * 1024, "more shared memory than a block has");
};

/* A lane's half unit of a pair, and its scales: S, and S / 16 for upper nibbles. */
template <int T> struct Pair;

CUDA_D void gf_nibbles(uint4 q[2][2], const u8 *p, u32 lane)
{
#pragma unroll
	for (int m = 0; m < 2; m++)
#pragma unroll
		for (int r = 0; r < 2; r++)
			q[m][r] = *(const uint4 *)(p + (m * 2 + r) * 512 + lane * 16);
}

template <> struct Pair<T_Q4_K> {
	uint4 q[2][2];
	u32 s[2][2], s4[2][2];   /* scale and -min; scale / 16 and -min */
	/* w0, w1: a lane's nibbles of this block column in both tiles; ws: where scales begin, half the lanes each */
	enum { SCALES = 2048 };
	static __device__ __forceinline__ void fetch(u8 *to, const u8 *w0, const u8 *w1, const u8 *ws, u32, u32)
	{
		cp_async16(to, w0);
		cp_async16(to + 512, w0 + 1024);
		cp_async16(to + 1024, w1);
		cp_async16(to + 1536, w1 + 1024);
		cp_async16(to + 2048, ws);
	}
	/* E: exponent field of the largest scale so far; returns it */
	__device__ __forceinline__ u32 load(const u8 *p, u32 lane, u32 b, u32 e)
	{
		u32 dd[2][2], v[2][2], top;

#pragma unroll
		for (int m = 0; m < 2; m++) {
			const u8 *sp = p + 2048 + m * 256;
			const uint2 d = *(const uint2 *)(sp + lane / 4 * 8);
			const u32 x = *(const u32 *)(sp + 64 + lane * 4), y = *(const unsigned short *)(sp + 192 + lane * 2);

			dd[m][0] = d.x;
			dd[m][1] = d.y;
			v[m][0] = x >> (6 * b);
			v[m][1] = (x >> 24 | y << 8) >> (6 * b);
		}
		top = h2_max(h2_max(dd[0][0] & 0x7fff7fffu, dd[0][1] & 0x7fff7fffu),
			     h2_max(dd[1][0] & 0x7fff7fffu, dd[1][1] & 0x7fff7fffu));
		top = (top >> 16 > (top & 0xffff) ? top >> 16 : top & 0xffff) >> 10;
		if (top > e)
			e = top;
		/* 2^(19-e), 2^(-5-e) as halves */
		const u32 hi = e <= 9 ? (10 - e) << 10 : e <= 19 ? 1u << (19 - e) : 0x7c00u, pw = (34 - e) << 10 | hi << 16;

#pragma unroll
		for (int m_ = 0; m_ < 2; m_++)
#pragma unroll
			for (int r = 0; r < 2; r++) {
				/* 64 + sc / 16, 64 + m / 16; to 32 sc, -32 m */
				u32 x = (v[m_][r] & 0x3f) | 0x54005400u;

				x |= v[m_][r] << 4 & 0x3f0000u;
				x = h2_fma(x, 0xe0006000u, 0x7800f800u);
				s[m_][r] = h2_mul(h2_mul(x, dd[m_][r]), pw);
				s4[m_][r] = h2_mul(s[m_][r], 0x3c002c00u);   /* 1/16, 1 */
			}
		return e;
	}
	__device__ __forceinline__ void a(int c, int m_, u32 a0[4], u32 a1[4]) const
	{
#pragma unroll
		for (int r = 0; r < 2; r++) {
			const u32 v = pick4(q[m_][r], c), w = v >> 8;

			a0[r] = h2_line(v & 0x000f000fu, s[m_][r]);
			a1[r] = h2_line(v & 0x00f000f0u, s4[m_][r]);
			a0[2 + r] = h2_line(w & 0x000f000fu, s[m_][r]);
			a1[2 + r] = h2_line(w & 0x00f000f0u, s4[m_][r]);
		}
	}
	/* what the sums are to be multiplied with at the end */
	static __device__ __forceinline__ float unit(u32 e) { return __uint_as_float((127 + e) << 23); }
};

template <> struct Pair<T_Q6_K> {
	uint4 q[2][2];
	uint2 h[2][2];
	u32 s[2][2], s4[2][2];   /* scale and its -2^-19, of each half of the block */
	enum { SCALES = 3072 };
	static __device__ __forceinline__ void fetch(u8 *to, const u8 *w0, const u8 *w1, const u8 *ws, u32 lane, u32 b)
	{
#pragma unroll
		for (int m = 0; m < 2; m++) {
			const u8 *const w = m ? w1 : w0;
			const int h = 2048 - (int)b * 504;   /* from this column's nibbles to its upper bits */

			cp_async16(to + m * 1024, w);
			cp_async16(to + m * 1024 + 512, w + 1024);
			cp_async8(to + 2048 + m * 512 - lane * 8, w + h);
			cp_async8(to + 2048 + m * 512 + 256 - lane * 8, w + h + 512);
		}
		cp_async16(to + 3072, ws);
		/* the factors of 16 rows lie behind the other scales: of each tile two lanes */
		if (lane % 16 < 2)
			cp_async16(to + 3584 - lane * 16 + (lane / 16 * 2 + lane % 2) * 16, ws + 256);
	}
	__device__ __forceinline__ u32 load(const u8 *p, u32 lane, u32 b, u32 e)
	{
		u32 d[2], top;
		uint2 sc[2];

#pragma unroll
		for (int m_ = 0; m_ < 2; m_++) {
#pragma unroll
			for (int r = 0; r < 2; r++) {
				h[m_][r] = *(const uint2 *)(p + 2048 + (m_ * 2 + r) * 256 + lane * 8);
			}
			sc[m_] = *(const uint2 *)(p + 3072 + m_ * 256 + lane * 8);
			d[m_] = *(const u32 *)(p + 3584 + m_ * 32 + lane / 4 * 4);
		}
		top = h2_max(d[0] & 0x7fff7fffu, d[1] & 0x7fff7fffu);
		top = (top >> 16 > (top & 0xffff) ? top >> 16 : top & 0xffff) >> 10;
		if (top > e)
			e = top;
		/* 2^(18-e) as halves, twice */
		const u32 pw = ((33 - e) << 10) * 0x10001u, sel = b ? 0x4342 : 0x4140;

#pragma unroll
		for (int m_ = 0; m_ < 2; m_++)
#pragma unroll
			for (int r = 0; r < 2; r++) {
				/* 1152 + sc of both halves of the block; to 32 sc */
				u32 x = prmt((r ? sc[m_].y : sc[m_].x) ^ 0x80808080u, 0x64646464u, sel);

				x = h2_mul(h2_add(x, 0xe480e480u), 0x50005000u);
				x = h2_mul(h2_mul(x, prmt(d[m_], d[m_], r ? 0x3232 : 0x1010)), pw);
				s[m_][r] = h2_mul(prmt(x, x, 0x1010), 0x80203c00u);    /* 1, -2^-19 */
				s4[m_][r] = h2_mul(prmt(x, x, 0x3232), 0x80202c00u);   /* 1/16, -2^-19 */
			}
		return e;
	}
	__device__ __forceinline__ void a(int c, int m_, u32 a0[4], u32 a1[4]) const
	{
#pragma unroll
		for (int r = 0; r < 2; r++) {
			const u32 v = pick4(q[m_][r], c), w = v >> 8, x = h[m_][r].x, y = h[m_][r].y;
			/* two bits of weights 4c+i (16+4c+i) at 8i+2c: to bits 4 (8) of each half */
			const u32 x0 = c < 2 ? x << (4 - 2 * c) : x >> (2 * c - 4), x1 = x >> (4 + 2 * c);
			const u32 y0 = y << (8 - 2 * c), y1 = y >> (2 * c);

			a0[r] = h2_line((v & 0x000f000fu) | ((x0 & 0x00300030u) ^ 0x00200020u), s[m_][r]);
			a0[2 + r] = h2_line((w & 0x000f000fu) | ((x1 & 0x00300030u) ^ 0x00200020u), s[m_][r]);
			a1[r] = h2_line((v & 0x00f000f0u) | ((y0 & 0x03000300u) ^ 0x02000200u), s4[m_][r]);
			a1[2 + r] = h2_line((w & 0x00f000f0u) | ((y1 & 0x03000300u) ^ 0x02000200u), s4[m_][r]);
		}
	}
	static __device__ __forceinline__ float unit(u32 e) { return __uint_as_float((128 + e) << 23); }
};

template <int T, int NT, int WM_>
CUDA_D void gf_run(const gm_args &a, const gm_seg &sg, unsigned char *smem)
{
	typedef gf_cfg<T, NT, WM_> C;
	enum { UB = 16 * Bytes<T>::V };
	const u32 units = a.cols / 256;
	const size_t tile_bytes = (size_t)units * UB;
	const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
	const u32 ks = warp / C::WM, wm = warp % C::WM;
	const bool glu = a.mode == HK_SWIGLU;
	const u32 h0 = blockIdx.z * units / a.splits * 2, h1 = (blockIdx.z + 1) * units / a.splits * 2;
	const u32 bx = blockIdx.x - sg.block0;
	const u32 tile0 = glu ? bx * C::WM + wm : (bx * C::WM + wm) * 2;
	const bool on0 = tile0 < sg.tiles, on1 = glu ? on0 : tile0 + 1 < sg.tiles;
	const ptrdiff_t hop = glu ? a.w2 - sg.w : on1 ? (ptrdiff_t)tile_bytes : 0;
	const u8 *const base = sg.w + (size_t)(on0 ? tile0 : 0) * tile_bytes + lane * 16;
	const u8 *const act = a.act + lane * 16;
	u8 *const ring = smem + warp * (C::STAGE * C::STAGES);
	u32 e = 4, rd = 0;
	/* Half unit h of all of k: where it lies, to slot @slot of this warp's ring. */
	auto fetch_w = [&](u32 h, u32 slot) {
		if (h < h1) {
			const u8 *const w0 = base + (size_t)(h / 2) * UB + h % 2 * 512, *const w1 = w0 + hop;

			Pair<T>::fetch(ring + lane * 16 + slot * C::STAGE, w0, w1,
				       (lane < 16 ? w0 : w1) + ((int)Pair<T>::SCALES - (int)(h % 2 * 512 + lane / 16 * 256)), lane, h % 2);
		}
	};
	/* Its activations, by the warps of all pairs together. */
	auto fetch_a = [&](u32 h, u32 slot) {
		if (C::ACT && h < h1) {
			u8 *const to = smem + C::WRING + slot * C::ABYTES + ks * (NT * 2048) + wm * 512 + lane * 16;
			const u8 *const p = act + (size_t)(h / 2) * a.groups * 4096 + h % 2 * 2048;

#pragma unroll
			for (u32 i = 0; i < NT * 4; i += C::WM)
				if (i + C::WM <= NT * 4 || i + wm < NT * 4)
					cp_async16(to + i * 512, p + (i + wm) / 4 * 4096 + (i + wm) % 4 * 512);
		}
		cp_commit();
	};

#pragma unroll
	for (int i = 0; i < C::STAGES - C::ACT; i++)
		fetch_w(h0 + ks + i * C::KS, i);
	pdl_go();
	pdl_wait();
#pragma unroll
	for (int i = 0; i < C::STAGES - C::ACT; i++)
		fetch_a(h0 + ks + i * C::KS, i);

	float acc[C::SUMS][2][NT][4];

#pragma unroll
	for (int h = 0; h < C::SUMS; h++)
#pragma unroll
		for (int m = 0; m < 2; m++)
#pragma unroll
			for (int j = 0; j < NT; j++)
#pragma unroll
				for (int k = 0; k < 4; k++)
					acc[h][m][j][k] = 0;

#pragma unroll 1
	for (u32 hs = h0; hs < h1; hs += C::KS) {
		const u32 was = e, now = rd, h = hs + ks;
		const u8 *const st = ring + now * C::STAGE;
		const u8 *const from = act + (size_t)(h / 2) * a.groups * 4096 + h % 2 * 2048;
		const u8 *const stage = smem + C::WRING + now * C::ABYTES + ks * (NT * 2048) + lane * 16;
		auto ld_b = [&](int j, int c) {
			return C::ACT ? *(const uint4 *)(stage + j * 2048 + c * 512) : ld_act16(from + j * 4096 + c * 512);
		};
		uint4 ahead[C::AHEAD ? 4 : 1][C::AHEAD ? NT : 1];
		Pair<T> p;

		if (C::AHEAD && h < h1)
#pragma unroll
			for (int c = 0; c < 4; c++)
#pragma unroll
				for (int j = 0; j < NT; j++)
					ahead[C::AHEAD ? c : 0][C::AHEAD ? j : 0] = ld_b(j, c);
		cp_wait<C::STAGES - 1 - C::ACT>();
		rd = rd == C::STAGES - 1 ? 0 : rd + 1;
		if (C::ACT) {
			__syncthreads();
			fetch_w(h + C::KS, rd);   /* two stages: the other one */
			fetch_a(h + C::KS, rd);
		} else {
			warp_sync();
		}
		if (h >= h1)
			continue;
		e = p.load(st, lane, h % 2, e);
		gf_nibbles(p.q, st, lane);
		if (!C::ACT) {
			warp_sync();
			fetch_w(h + C::STAGES * C::KS, now);
			fetch_a(h + C::STAGES * C::KS, now);
		}
		if (e != was) {
			const float f = __uint_as_float((127 + was - e) << 23);

#pragma unroll
			for (int h = 0; h < C::SUMS; h++)
#pragma unroll
				for (int m = 0; m < 2; m++)
#pragma unroll
					for (int j = 0; j < NT; j++)
#pragma unroll
						for (int k = 0; k < 4; k++)
							acc[h][m][j][k] *= f;
		}
		warp_sync();
#pragma unroll
		for (int c = 0; c < 4; c++) {
			u32 a0[2][4], a1[2][4];
			uint4 v[C::JM];

#pragma unroll
			for (int j = 0; j < C::JM; j++)
				v[j] = C::AHEAD ? ahead[C::AHEAD ? c : 0][C::AHEAD ? j : 0] : ld_b(j, c);
			p.a(c, 0, a0[0], a1[0]);
			p.a(c, 1, a0[1], a1[1]);
#pragma unroll
			for (int j0 = 0; j0 < NT; j0 += C::JM) {
				if (j0)
#pragma unroll
					for (int j = 0; j < C::JM; j++)
						if (j0 + j < NT)
							v[j] = C::AHEAD ? ahead[C::AHEAD ? c : 0][C::AHEAD ? j0 + j : 0] : ld_b(j0 + j, c);
#pragma unroll
				for (int j = 0; j < C::JM; j++)
#pragma unroll
					for (int m = 0; m < 2; m++)
						if (j0 + j < NT)
							mma16816(acc[0][m][j0 + j], a0[m], v[j].x, v[j].y);
#pragma unroll
				for (int j = 0; j < C::JM; j++)
#pragma unroll
					for (int m = 0; m < 2; m++)
						if (j0 + j < NT)
							mma16816(acc[C::SUMS - 1][m][j0 + j], a1[m], v[j].z, v[j].w);
			}
		}
	}
	cp_wait<0>();

	/* What the warps of a pair have: [ks][token][32 rows], added in this order. */
	const float un = Pair<T>::unit(e) * a.scale;
	float *const red = (float *)smem + wm * (C::KS * NT * 8 * C::ROW);

	__syncthreads();
#pragma unroll
	for (int m = 0; m < 2; m++)
#pragma unroll
		for (int j = 0; j < NT; j++)
#pragma unroll
			for (int k = 0; k < 4; k++) {
				float s = acc[0][m][j][k];

				if (C::SUMS == 2)
					s += acc[C::SUMS - 1][m][j][k];
				red[((ks * NT + j) * 8 + t * 2 + k % 2) * C::ROW + m * 16 + g + k / 2 * 8] = s * un;
			}
	__syncthreads();

	const u32 pt = ks * 32 + lane, quads = glu ? 4 : 8;

#pragma unroll 1
	for (u32 i = pt; i < NT * 8 * quads; i += C::PT) {
		const u32 n = i / quads, q = i % quads;
		const float f = a.act_scale && n < a.n ? a.act_scale[n] : 1;
		float4 o[2];

		if (n >= a.n)
			break;
#pragma unroll
		for (int m = 0; m < 2; m++) {
			o[m] = make_float4(0, 0, 0, 0);
			if (m && !glu)
				continue;
#pragma unroll
			for (int k = 0; k < C::KS; k++) {
				const float4 y = *(const float4 *)(red + (k * NT * 8 + n) * C::ROW + m * 16 + q * 4);

				o[m].x += y.x;
				o[m].y += y.y;
				o[m].z += y.z;
				o[m].w += y.w;
			}
			o[m].x *= f;
			o[m].y *= f;
			o[m].z *= f;
			o[m].w *= f;
		}
		if (glu) {
			auto h = [&](float x, float y) { return fast_div(x, 1 + fast_exp(-x)) * y * a.act_out_scale; };

			if (on0)
				*(uint2 *)(a.act_out + act_pos(n, tile0 * 16 + q * 4, 0, a.groups_out)) =
					make_uint2(f2h2(h(o[0].x, o[1].x), h(o[0].z, o[1].z)),
						   f2h2(h(o[0].y, o[1].y), h(o[0].w, o[1].w)));
		} else if (q < 4 ? on0 : on1) {
			const u32 row = tile0 * 16 + q * 4;
			float *y = sg.y + blockIdx.z * a.apart + (size_t)n * sg.ldy + row;

			if (sg.bias && blockIdx.z == 0) {
				o[0].x += sg.bias[row];
				o[0].y += sg.bias[row + 1];
				o[0].z += sg.bias[row + 2];
				o[0].w += sg.bias[row + 3];
			}
			*(float4 *)y = o[0];
		}
	}
}

template <int T, int T2, int NT, int WM>
static __global__ void __launch_bounds__(gf_cfg<T, NT, WM>::THREADS, gf_cfg<T, NT, WM>::BLOCKS)
gemm_free(const __grid_constant__ gm_args a)
{
	HK_SMEM(smem);
	u32 si = 0;

	while (si + 1 < a.nseg && blockIdx.x >= a.seg[si + 1].block0)
		si++;
	if (T2 != T && a.seg[si].type == T2)
		gf_run<T2, NT, WM>(a, a.seg[si], smem);
	else
		gf_run<T, NT, WM>(a, a.seg[si], smem);
}

template <int T, int T2, int NT, int WM>
static int gf_go(void *st, dim3 grid, bool pdl, const gm_args &k)
{
	const int one = gf_cfg<T, NT, WM>::SMEM, two = gf_cfg<T2, NT, WM>::SMEM;

	return HK_LAUNCH((gemm_free<T, T2, NT, WM>), grid, dim3(gf_cfg<T, NT, WM>::THREADS), one > two ? one : two, st, pdl, k);
}

#endif
