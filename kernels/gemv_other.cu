/* SPDX-License-Identifier: MIT */
/* gemv.cu for every type. */
#define GV_BODY
#include "kernels/gemv.cuh"

int gv_other(void *st, u32 n, u32 grid, size_t smem, const gv_args &k)
{
	return gv_launch<1>(st, n, grid, smem, k);
}
