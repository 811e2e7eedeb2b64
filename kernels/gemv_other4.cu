/* SPDX-License-Identifier: MIT */
/* gemv.cu for every type, up to four rows. */
#define GV_BODY
#include "kernels/gemv.cuh"

int gv_other4(void *st, u32 grid, size_t smem, const gv_args &k)
{
	return gv_launch<4, 1>(st, grid, smem, k);
}
