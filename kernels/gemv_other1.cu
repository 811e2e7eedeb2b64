/* SPDX-License-Identifier: MIT */
/* gemv.cu for every type, one row. */
#define GV_BODY
#include "kernels/gemv.cuh"

int gv_other1(void *st, u32 grid, size_t smem, const gv_args &k)
{
	return gv_launch<1, 1>(st, grid, smem, k);
}
