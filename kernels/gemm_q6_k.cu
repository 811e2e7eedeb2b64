/* SPDX-License-Identifier: MIT */
/* gemm.cu for Q6_K weights: its own file so that types compile side by side. */
#define GM_BODY
#include "kernels/gemm.cuh"

int gm_q6_k(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k)
{
	return gm_launch<T_Q6_K>(st, shape, grid, pdl, k);
}
