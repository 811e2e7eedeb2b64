/* SPDX-License-Identifier: MIT */
/* gemv.cu for the two types that a Q4_K_M file is made of. */
#define GV_BODY
#include "kernels/gemv.cuh"

int gv_main(void *st, u32 n, u32 grid, size_t smem, const gv_args &k)
{
	return gv_launch<0>(st, n, grid, smem, k);
}
