/* SPDX-License-Identifier: MIT */
/* gemm_wide.cuh for Q4_K and Q6_K weights in one launch: its own file so that types compile side by side. */
#define GM_BODY
#include "kernels/gemm.cuh"
#include "kernels/gemm_wide.cuh"

int gw_mixed(void *st, u32 shape, u32 tm, dim3 grid, bool pdl, const gm_args &k)
{
	switch (shape * 8 + tm) {
	case 3 * 8 + 3: return gw_go<T_Q4_K, T_Q6_K, 3, 3>(st, grid, pdl, k);
	case 5 * 8 + 3: return gw_go<T_Q4_K, T_Q6_K, 5, 3>(st, grid, pdl, k);
	case 8 * 8 + 2: return gw_go<T_Q4_K, T_Q6_K, 8, 2>(st, grid, pdl, k);
	default: return -EINVAL;
	}
}
