// SPDX-License-Identifier: MIT
/* The /dev/hearth backend: asking the module, and the connection to it. */
#include "dev/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/mono.h"

int dev_call(int fd, unsigned long request, void *arg)
{
	int ret;

	/* deadlines are absolute, so that asking again waits no longer */
	do {
		ret = ioctl(fd, request, arg);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : 0;
}

int dev_another(const struct dev *d)
{
	int fd = open(d->path, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

uint64_t dev_deadline(unsigned wait_ms)
{
	return wait_ms ? (uint64_t)mono_ns() + wait_ms * 1000000ull : HEARTH_NOWAIT;
}

int dev_refuse(struct hearth_err *err, int code, const char *tenant,
	       const struct hearth_pool *pool, const struct hearth_refusal *ref,
	       const char *what)
{
	static const enum text_limit limits[] = {
		[HEARTH_LIMIT_MAX] = TEXT_BY_MAX,     [HEARTH_LIMIT_POOL] = TEXT_BY_POOL,
		[HEARTH_LIMIT_MIN] = TEXT_BY_MIN,     [HEARTH_LIMIT_QUEUE] = TEXT_BY_QUEUE,
		[HEARTH_LIMIT_ORDER] = TEXT_BY_ORDER, [HEARTH_LIMIT_SUM] = TEXT_BY_SUM,
		[HEARTH_LIMIT_PIECES] = TEXT_BY_PIECES,
	};
	char holder[HEARTH_NAME_MAX + 1] = "";

	if (code == -EPERM)
		return err_set(err, code, "%s: only the administrator may (run it as root)", what);
	if (code == -EUSERS)
		return err_set(err, code, "%s: %d of its charges wait in pool %s already, which is the limit",
			       what, HEARTH_WAITERS_MAX, pool ? pool->name : "?");
	if (!ref || (code != -ENOSPC && code != -ETIMEDOUT) || ref->limit == HEARTH_LIMIT_NONE ||
	    ref->limit > HEARTH_LIMIT_PIECES)
		return err_set(err, code, "%s: %s", what, strerror(-code));
	memcpy(holder, ref->holder_name, HEARTH_NAME_MAX);
	return text_refuse(err, code, &(struct text_refusal){
		.limit = limits[ref->limit],
		.tenant = tenant,
		.pool = pool->name,
		.holder = holder,
		.wanted = ref->wanted,
		.limit_bytes = ref->limit_bytes,
		.available = ref->available,
		.holder_bytes = ref->holder_bytes,
	});
}

static int dev_admin(struct hearth *h, struct hearth_err *err)
{
	struct hearth_ioc_admin admin = { .size = sizeof(admin) };
	struct dev *d = dev_of(h);
	int ret;

	ret = dev_call(d->fd, HEARTH_IOC_ADMIN, &admin);
	if (ret)
		return err_set(err, ret, "%s: %s", d->path,
			       ret == -EPERM ? "that needs the administrator (root, or CAP_SYS_ADMIN)" :
			       strerror(-ret));
	d->admin = true;
	return 0;
}

static void dev_close(struct hearth *h)
{
	struct dev *d = dev_of(h);

	while (d->streams)
		dev_events_close(&d->streams->base);
	while (d->tenants)
		dev_tenant_close(&d->tenants->base);
	for (size_t i = 0; i < h->n_pools; i++)
		free(h->pools[i]);
	if (d->fd >= 0)
		close(d->fd);
	pthread_mutex_destroy(&d->lock);
	free(d->path);
	free(d);
}

static const struct hearth_ops device_ops = {
	.close = dev_close,
	.admin = dev_admin,
	.pool_info = dev_pool_info,
	.pool_create = dev_pool_create,
	.pool_remove = dev_pool_remove,
	.pool_resize = dev_pool_resize,
	.tenant_open = dev_tenant_open,
	.tenant_close = dev_tenant_close,
	.tenant_fd = dev_tenant_fd,
	.tenant_remove = dev_tenant_remove,
	.budget_set = dev_budget_set,
	.budget_apply = dev_budget_apply,
	.usage_get = dev_usage_get,
	.peak_reset = dev_peak_reset,
	.available = dev_available,
	.charge = dev_charge,
	.uncharge = dev_uncharge,
	.region_alloc = dev_region_alloc,
	.region_close = dev_region_close,
	.region_seal = dev_region_seal,
	.region_name = dev_region_name,
	.region_find = dev_region_find,
	.region_purgeable = dev_region_purgeable,
	.region_take_back = dev_region_take_back,
	.region_share = dev_region_share,
	.region_import = dev_region_import,
	.region_export = dev_region_export,
	.region_drop = dev_region_drop,
	.events_open = dev_events_open,
	.events_close = dev_events_close,
	.events_read = dev_events_read,
	.state = dev_state,
	.system = dev_system,
	.regions = dev_regions,
};

/* Why the device cannot be opened, and what to do. */
static int cannot_open(const char *path, int ret, struct hearth_err *err)
{
	switch (ret) {
	case -ENOENT:
	case -ENOTDIR:
	case -ENXIO:
	case -ENODEV:
		if (!access("/sys/class/misc/hearth", F_OK))
			return err_set(err, -ENODEV,
				       "%s is not there, though the module is loaded: a container must be given the device (--device=/dev/hearth)",
				       path);
		return err_set(err, -ENODEV,
			       "%s is not there: load the module (modprobe hearth; the package hearth-dkms has it)",
			       path);
	case -EACCES:
	case -EPERM:
		return err_set(err, -EACCES,
			       "%s may not be opened by this user: join the group hearth, or become root",
			       path);
	default:
		return err_set(err, ret, "%s cannot be opened: %s", path, strerror(-ret));
	}
}

int device_open(const struct hearth_options *o, struct hearth **ret_h, struct hearth_err *err)
{
	const char *path = o->device ? o->device : HEARTH_DEVICE;
	struct hearth_ioc_info info = { .size = sizeof(info) };
	struct dev *d;
	int ret;

	d = calloc(1, sizeof(*d));
	if (d)
		d->path = strdup(path);
	if (!d || !d->path) {
		free(d);
		return err_set(err, -ENOMEM, "no memory for a connection to %s", path);
	}
	pthread_mutex_init(&d->lock, NULL);
	d->base.ops = &device_ops;
	d->base.backend = HEARTH_BACKEND_DEVICE;
	d->page = (uint64_t)sysconf(_SC_PAGESIZE);
	d->fd = dev_another(d);
	if (d->fd < 0) {
		ret = cannot_open(path, d->fd, err);
		goto out;
	}
	ret = dev_call(d->fd, HEARTH_IOC_INFO, &info);
	if (ret) {
		ret = err_set(err, ret, "%s is not a hearth device, or of another version: %s", path,
			      strerror(-ret));
		goto out;
	}
	d->block = info.out_block_size > d->page ? info.out_block_size : d->page;
	snprintf(d->base.text, sizeof(d->base.text), "%s (module %u.%u.%u)", path,
		 info.out_version >> 16, info.out_version >> 8 & 0xff, info.out_version & 0xff);
	ret = dev_pools_read(d, err);
	if (!ret)
		ret = dev_pools_match(d, o, err);
	if (!ret) {
		*ret_h = &d->base;
		return 0;
	}
out:
	dev_close(&d->base);
	return ret;
}
