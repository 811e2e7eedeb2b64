/* SPDX-License-Identifier: MIT */
/* gemm_wide.cuh for Q6_K weights: its own file so that types compile side by side. */
#define GM_BODY
#include "kernels/gemm.cuh"
#include "kernels/gemm_wide.cuh"

int gw_q6_k(void *st, u32 shape, u32 tm, dim3 grid, bool pdl, const gm_args &k)
{
	switch (shape * 8 + tm) {
	case 3 * 8 + 3: return gw_go<T_Q6_K, T_Q6_K, 3, 3>(st, grid, pdl, k);
	case 3 * 8 + 4: return gw_go<T_Q6_K, T_Q6_K, 3, 4>(st, grid, pdl, k);
	case 5 * 8 + 3: return gw_go<T_Q6_K, T_Q6_K, 5, 3>(st, grid, pdl, k);
	case 5 * 8 + 4: return gw_go<T_Q6_K, T_Q6_K, 5, 4>(st, grid, pdl, k);
	case 8 * 8 + 2: return gw_go<T_Q6_K, T_Q6_K, 8, 2>(st, grid, pdl, k);
	default: return -EINVAL;
	}
}
