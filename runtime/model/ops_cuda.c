// SPDX-License-Identifier: MIT
#include "model/ops.h"

#include <errno.h>

int ops_cuda(const struct ops **ret, struct hearth_err *err)
{
	return err_set(err, -ENODEV, "this build has no CUDA backend; the CPU backend is there");
}
