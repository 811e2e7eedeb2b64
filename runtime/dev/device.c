// SPDX-License-Identifier: MIT
/* The /dev/hearth backend. */
#include "dev/priv.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int device_open(const struct hearth_options *o, struct hearth **ret_h, struct hearth_err *err)
{
	const char *device = o->device ? o->device : HEARTH_DEVICE;

	if (access(device, F_OK))
		return err_set(err, -ENODEV, "%s is not there: %s; load the module (modprobe hearth) or use the embedded pools",
			       device, strerror(errno));
	return err_set(err, -EOPNOTSUPP, "%s: this build of libhearth has no device backend", device);
}
