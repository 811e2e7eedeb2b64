/* SPDX-License-Identifier: MIT */
/* gemv.cu for every type, two rows. */
#define GV_BODY
#include "kernels/gemv.cuh"

int gv_other2(void *st, u32 grid, size_t smem, const gv_args &k)
{
	return gv_launch<2, 1>(st, grid, smem, k);
}
