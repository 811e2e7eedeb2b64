/* SPDX-License-Identifier: MIT */
/*
 * The GEMM for 17 tokens and more of Q4_K and Q6_K (included by gemm_wide_*.cu). Eight
 * warps, one block an SM: two groups of TM tiles, and four slices of k, each with every
 * fourth half unit, so that a warp has one block column b for good.
 * A warp's weights come through a place of its own in shared memory, and are in
 * registers by the time that the next ones are asked for; the activations of a slice
 * are shared by its two warps, which wait for each other and for nobody else. In the
 * end the slices are added up in shared memory, always in the same order.
 *
 * Bytes: weights once for 64 tokens, and where there are more, blocks of the same rows
 * run side by side, so that memory is read once; activations once a block. What limits
 * it on an H200 is the tensor pipe (docs/speed.md).
 */
#ifndef HEARTH_KERNELS_GEMM_WIDE_CUH
#define HEARTH_KERNELS_GEMM_WIDE_CUH

#include "kernels/gemm_rows.cuh"

template <int T, int NT, int TM> struct gw_cfg {
	enum {
		G = 2, KS = 4, WARPS = G * KS, THREADS = 32 * WARPS,
		WBYTES = TM * Rows<T, TM>::STAGE, ABYTES = NT * 2048,
		ACT = WARPS * WBYTES, RING = ACT + 2 * KS * ABYTES,
		ROW = G * TM * 16 + 4,                   /* floats of a token, padded */
		RED = KS * NT * 8 * ROW * 4,
		SCALE = RING > RED ? RING : RED, SMEM = SCALE + NT * 8 * 4
	};
	static_assert(SMEM <= (int)HK_SMEM_MAX, "more shared memory than a block has");
};

template <int T, int NT, int TM>
CUDA_D void gw_run(const gm_args &a, const gm_seg &sg, unsigned char *smem)
{
	typedef gw_cfg<T, NT, TM> C;
	typedef Rows<T, TM> R;
	enum { UB = 16 * Bytes<T>::V };
	const u32 units = a.cols / 256, tile_bytes = units * UB;
	const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
	const u32 ks = warp / C::G, tg = warp % C::G, b = ks % 2;
	const bool glu = a.mode == HK_SWIGLU;
	const u32 u0 = blockIdx.z * units / a.splits, u1 = (blockIdx.z + 1) * units / a.splits;
	const u32 bx = blockIdx.y - sg.block0, n0 = blockIdx.x * (NT * 8), left = a.n - n0;
	/* this warp's first tile, and how many more it may read: what is not there is read twice */
	const u32 tile0 = glu ? bx * TM : bx * (C::G * TM) + tg * TM;
	const u32 more = sg.tiles > tile0 ? sg.tiles - tile0 - 1 : 0;
	u8 *const ring = smem + warp * C::WBYTES, *const aring = smem + C::ACT + ks * C::ABYTES;
	float *const scales = (float *)(smem + C::SCALE);
	u32 u = u0 + ks / 2, e = 4;
	const u8 *wp = (glu && tg ? a.w2 : sg.w) + (size_t)(tile0 < sg.tiles ? tile0 : sg.tiles - 1) * tile_bytes + (size_t)u * UB;
	const u8 *ap = a.act + ((size_t)u * a.groups + blockIdx.x * NT) * 4096 + b * 2048 + tg * 512 + lane * 16;
	auto fetch_w = [&]() {
#pragma unroll
		for (u32 m = 0; m < TM; m++)
			R::fetch(ring + m * R::STAGE, wp + (m < more ? m : more) * tile_bytes, lane, b);
		/* of two tiles at a time, half the lanes each */
#pragma unroll
		for (u32 m0 = 0; m0 < TM; m0 += 2) {
			const u32 m = m0 + lane / 16;

			if (m0 + 1 < TM || lane < 16)
				R::fetch_scales(ring + m * R::STAGE, wp + (m < more ? m : more) * tile_bytes, lane % 16);
		}
		wp += C::KS / 2 * UB;
	};
	auto fetch_a = [&](u32 slot) {
		u8 *const to = aring + slot * (C::KS * C::ABYTES) + tg * 512 + lane * 16;

#pragma unroll
		for (u32 i = 0; i < NT * 4; i += C::G)
			cp_async16(to + i * 512, ap + i / 4 * 4096 + i % 4 * 512);
		ap += (size_t)C::KS / 2 * a.groups * 4096;
	};

	if (u < u1)
		fetch_w();
	pdl_go();
	pdl_wait();
	if (u < u1)
		fetch_a(0);
	cp_commit();
	/* stored when the ring is free; not waited for before */
	const float my_scale = a.act_scale && threadIdx.x < NT * 8 && threadIdx.x < left ? a.act_scale[n0 + threadIdx.x] : 1;

	float acc[TM][NT][4];
	R p;
	u32 slot = 0;

#pragma unroll
	for (int m = 0; m < TM; m++)
#pragma unroll
		for (int j = 0; j < NT; j++)
#pragma unroll
			for (int k = 0; k < 4; k++)
				acc[m][j][k] = 0;
	/* A slice with a turn less meets once more: compute-sanitizer's racecheck loses track where warps have
	   met unequally often when the whole block meets. Here, and not behind the loop, it costs nothing. */
	if (ks >= C::KS / 2 && (u1 - u0) % 2)
		bar_sync(1 + ks, 32 * C::G);
#pragma unroll 1
	while (u < u1) {
		const u32 was = e;
		const u8 *const stage = aring + slot * (C::KS * C::ABYTES) + lane * 16;

		cp_wait<0>();
		bar_sync(1 + ks, 32 * C::G);   /* both have their halves of the activations, and have left the other slot */
		e = p.load(ring, lane, b, e);
		warp_sync();
		u += C::KS / 2;
		slot ^= 1;
		if (u < u1) {
			fetch_w();
			fetch_a(slot);
		}
		cp_commit();
		if (e != was)
			rw_shrink<TM * NT * 4>(acc[0][0], was, e);
#pragma unroll
		for (int c = 0; c < 4; c++) {
			uint4 v[NT];
			u32 a0[4], a1[2][4];

#pragma unroll
			for (int j = 0; j < NT; j++)
				v[j] = *(const uint4 *)(stage + j * 2048 + c * 512);
			/* the second half of a tile's products behind the first of the next, so that sums are no neighbours */
#pragma unroll
			for (int m = 0; m <= TM; m++) {
				if (m < TM) {
					p.a(c, m < TM ? m : 0, a0, a1[m % 2]);
#pragma unroll
					for (int j = 0; j < NT; j++)
						mma16816(acc[m < TM ? m : 0][j], a0, v[j].x, v[j].y);
				}
				if (m)
#pragma unroll
					for (int j = 0; j < NT; j++)
						mma16816(acc[m ? m - 1 : 0][j], a1[(m + 1) % 2], v[j].z, v[j].w);
			}
		}
	}

	/* What the slices have: [ks][token][row], added in this order. */
	const float un = R::unit(e) * a.scale;
	float *const red = (float *)smem;

	__syncthreads();
	if (threadIdx.x < NT * 8)
		scales[threadIdx.x] = my_scale;
#pragma unroll
	for (int m = 0; m < TM; m++)
#pragma unroll
		for (int j = 0; j < NT; j++)
#pragma unroll
			for (int k = 0; k < 4; k++)
				red[((ks * NT + j) * 8 + t * 2 + k % 2) * C::ROW + (tg * TM + m) * 16 + g + k / 2 * 8] = acc[m][j][k] * un;
	__syncthreads();

	auto sum = [&](u32 n, u32 row) {
		const float f = scales[n];
		float4 o = make_float4(0, 0, 0, 0);

#pragma unroll
		for (int k = 0; k < C::KS; k++) {
			const float4 y = *(const float4 *)(red + (k * NT * 8 + n) * C::ROW + row);

			o.x += y.x;
			o.y += y.y;
			o.z += y.z;
			o.w += y.w;
		}
		return make_float4(o.x * f, o.y * f, o.z * f, o.w * f);
	};

	if (glu) {
		enum { Q = TM * 4 };   /* four rows of a token each */
		auto h = [&](float x, float y) { return fast_div(x, 1 + fast_exp(-x)) * y * a.act_out_scale; };

#pragma unroll
		for (u32 i0 = 0; i0 < NT * 8 * Q; i0 += C::THREADS) {
			const u32 n = (i0 + threadIdx.x) / Q, q = (i0 + threadIdx.x) % Q;

			if (n < NT * 8 && n < left && bx * TM + q / 4 < sg.tiles) {
				const float4 x = sum(n, q * 4), y = sum(n, TM * 16 + q * 4);

				*(uint2 *)(a.act_out + act_pos(n0 + n, bx * (TM * 16) + q * 4, 0, a.groups_out)) =
					make_uint2(f2h2(h(x.x, y.x), h(x.z, y.z)), f2h2(h(x.y, y.y), h(x.w, y.w)));
			}
		}
	} else {
		enum { Q = C::G * TM * 4 };

#pragma unroll
		for (u32 i0 = 0; i0 < NT * 8 * Q; i0 += C::THREADS) {
			const u32 n = (i0 + threadIdx.x) / Q, q = (i0 + threadIdx.x) % Q, row = bx * (C::G * TM * 16) + q * 4;

			if (n < NT * 8 && n < left && bx * (C::G * TM) + q / 4 < sg.tiles) {
				float4 *const y = (float4 *)(sg.y + blockIdx.z * a.apart + (size_t)(n0 + n) * sg.ldy + row);
				const float4 was = a.mode == HK_ADD ? *y : make_float4(0, 0, 0, 0);
				float4 o = sum(n, q * 4);

				o.x += was.x;
				o.y += was.y;
				o.z += was.z;
				o.w += was.w;
				if (sg.bias && blockIdx.z == 0) {
					o.x += sg.bias[row];
					o.y += sg.bias[row + 1];
					o.z += sg.bias[row + 2];
					o.w += sg.bias[row + 3];
				}
				*y = o;
			}
		}
	}
}

template <int T, int T2, int NT, int TM>
static __global__ void __launch_bounds__(gw_cfg<T, NT, TM>::THREADS, 1) gemm_wide(const __grid_constant__ gm_args a)
{
	HK_SMEM(smem);
	u32 si = 0;

	while (si + 1 < a.nseg && blockIdx.y >= a.seg[si + 1].block0)
		si++;
	if (T2 != T && a.seg[si].type == T2)
		gw_run<T2, NT, TM>(a, a.seg[si], smem);
	else
		gw_run<T, NT, TM>(a, a.seg[si], smem);
}

template <int T, int T2, int NT, int TM>
static int gw_go(void *st, dim3 grid, bool pdl, const gm_args &k)
{
	const int one = gw_cfg<T, NT, TM>::SMEM, two = gw_cfg<T2, NT, TM>::SMEM;

	return HK_LAUNCH((gemm_wide<T, T2, NT, TM>), grid, dim3(gw_cfg<T, NT, TM>::THREADS), one > two ? one : two, st, pdl, k);
}

#endif
