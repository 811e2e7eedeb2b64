/* SPDX-License-Identifier: MIT */
/* Which GPUs are served: said when a device is looked for, so that who asked for none in particular gets the CPU. */
#include <errno.h>
#include <stdio.h>

#include "kernels/kernels.h"

int hk_dev_served(const struct hk_dev_info *d, char *why, size_t size)
{
	if (d->major < HK_SM_MIN) {
		snprintf(why, size, "%s has compute capability %d.%d and the kernels need 8.0",
			 d->name, d->major, d->minor);
		return -ENOTSUP;
	}
	if (d->smem < HK_SMEM_MAX) {
		snprintf(why, size, "%s (SM %d.%d) has %zu KiB of shared memory for a block and the kernels need %u, which SM 8.0, 8.7, 9.0, 10.x and 11.0 have",
			 d->name, d->major, d->minor, d->smem >> 10, HK_SMEM_MAX >> 10);
		return -ENOTSUP;
	}
	if (!d->code) {
		snprintf(why, size, "%s is SM %d.%d, for which this build has no code: build it with make CUDA_ARCHS=%d%d",
			 d->name, d->major, d->minor, d->major, d->minor);
		return -ENOTSUP;
	}
	return 0;
}
