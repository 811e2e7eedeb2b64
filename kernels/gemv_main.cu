/* SPDX-License-Identifier: MIT */
/* gemv.cu for the two types that a Q4_K_M file is made of. */
#define GV_BODY
#include "kernels/gemv.cuh"

int gv_main(void *st, u32 n, u32 grid, size_t smem, const gv_args &k)
{
	return n == 1 ? gv_launch<1, 0>(st, grid, smem, k)
	     : n == 2 ? gv_launch<2, 0>(st, grid, smem, k)
		      : gv_launch<4, 0>(st, grid, smem, k);
}
