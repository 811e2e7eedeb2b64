/* SPDX-License-Identifier: MIT */
/* gemm_free.cuh for Q4_K weights: its own file so that types compile side by side. */
#define GM_BODY
#include "kernels/gemm.cuh"
#include "kernels/gemm_free.cuh"

int gf_q4_k(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k)
{
	switch (shape * 8 + k.wm) {
	case 1 * 8 + 1: return gf_go<T_Q4_K, T_Q4_K, 1, 1>(st, grid, pdl, k);
	case 2 * 8 + 1: return gf_go<T_Q4_K, T_Q4_K, 2, 1>(st, grid, pdl, k);
	case 2 * 8 + 4: return gf_go<T_Q4_K, T_Q4_K, 2, 4>(st, grid, pdl, k);
	default: return -EINVAL;
	}
}
