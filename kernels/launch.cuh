/* SPDX-License-Identifier: MIT */
/* How launchers launch: attributes, dynamic shared memory, error to -EIO. */
#ifndef HEARTH_KERNELS_LAUNCH_CUH
#define HEARTH_KERNELS_LAUNCH_CUH

#include <errno.h>

#include "kernels/kernels.h"
#include "kernels/ptx.cuh"

/* Set by hk_dev_open(): programmatic dependent launch is to be had and wanted. */
extern bool hk_pdl;

#ifdef HEARTH_EMU
#define HK_LAUNCH(kern, grid, block, smem, st, pdl, ...) \
	emu_launch((grid), (block), (size_t)(smem), [&]() { kern(__VA_ARGS__); })
#else
int hk_dev_fail(cudaError_t e, const char *what);   /* device.cu: notes and clears */

template <typename... P, typename... A>
static int hk_launch(const char *name, void (*kern)(P...), dim3 grid, dim3 block, size_t smem,
		     void *st, bool pdl, A &&...args)
{
	cudaLaunchConfig_t c = {};
	cudaLaunchAttribute at[1];
	cudaError_t e;

	if (smem > HK_SMEM_MAX)   /* what hk_dev_served() asked for; the emulation aborts */
		return -EINVAL;
	if (smem > 48 * 1024) {
		e = cudaFuncSetAttribute((const void *)kern,
					 cudaFuncAttributeMaxDynamicSharedMemorySize, (int)smem);
		if (e != cudaSuccess)
			return hk_dev_fail(e, name);
	}
	c.gridDim = grid;
	c.blockDim = block;
	c.dynamicSmemBytes = smem;
	c.stream = (cudaStream_t)st;
	if (pdl) {
		at[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
		at[0].val.programmaticStreamSerializationAllowed = 1;
		c.attrs = at;
		c.numAttrs = 1;
	}
	e = cudaLaunchKernelEx(&c, kern, static_cast<P>(args)...);
	return e == cudaSuccess ? 0 : hk_dev_fail(e, name);
}
#define HK_LAUNCH(kern, grid, block, smem, st, pdl, ...) \
	hk_launch(#kern, kern, (grid), (block), (size_t)(smem), (st), (pdl), __VA_ARGS__)
#endif

#endif
