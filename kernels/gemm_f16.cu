/* SPDX-License-Identifier: MIT */
/* gemm.cu for F16 weights: its own file so that types compile side by side. */
#define GM_BODY
#include "kernels/gemm.cuh"

int gm_f16(void *st, u32 shape, dim3 grid, bool pdl, const gm_args &k)
{
	return gm_launch<T_F16>(st, shape, grid, pdl, k);
}
