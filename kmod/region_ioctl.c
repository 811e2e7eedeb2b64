// SPDX-License-Identifier: GPL-2.0-only
/*
 * The calls on a region's own descriptor: offer and take back, seal, look,
 * share, export. The file that is called holds a reference, so the region
 * stays; its pool and tenant are read under hearth.lock, how it may be reached
 * under region->lock. Sealing waits with the gate shut and no other lock: only
 * who reaches this region waits for it.
 */
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/sched/signal.h>

#include "priv.h"

/* How long sealing waits for I/O that has just ended to let go of pages. */
#define SEAL_POLLS 50
#define SEAL_POLL_MS 2

static int ioctl_offer(void *who, void *arg)
{
	struct file *file = who;
	struct hearth_region *r = file->private_data;
	struct hearth_ioc_offer *a = arg;
	int ret = 0;

	if (a->reserved)
		return -EINVAL;
	if (!hearth_may_write(file))
		return -EACCES;
	mutex_lock(&hearth.lock);
	mutex_lock(&r->lock);
	if (r->purged) {
		ret = -ESTALE;
	} else if (r->exports) {
		ret = -EBUSY;
	} else if (!r->offered) {
		struct hearth_budget *hb = hearth_region_budget(r);

		WARN_ON(budget_purgeable(&hb->b, r->bytes));
		r->offered = true;
		list_add_tail(&r->offer, &hb->offered);
		hearth_wake(r->pool);
	}
	mutex_unlock(&r->lock);
	mutex_unlock(&hearth.lock);
	return ret;
}

static int ioctl_take_back(void *who, void *arg)
{
	struct file *file = who;
	struct hearth_region *r = file->private_data;
	struct hearth_ioc_take_back *a = arg;

	if (a->reserved || a->reserved2)
		return -EINVAL;
	if (!hearth_may_write(file))
		return -EACCES;
	mutex_lock(&hearth.lock);
	mutex_lock(&r->lock);
	if (r->offered) {
		WARN_ON(budget_purgeable(&hearth_region_budget(r)->b, -(s64)r->bytes));
		list_del_init(&r->offer);
		r->offered = false;
	}
	a->out_survived = !r->purged;
	mutex_unlock(&r->lock);
	mutex_unlock(&hearth.lock);
	return 0;
}

/*
 * No writable mapping or dma-buf is left, and with the gate shut none can be
 * made; then what could still write is what holds pages from outside, and shows
 * in their counts. Read-only mappings count too, so they are cut off first (they
 * come back by fault, which waits at the gate). Mappings of a read-only dma-buf
 * are its own file's and stay, and count: they are in the way.
 */
static int ioctl_seal(void *who, void *arg)
{
	struct file *file = who;
	struct hearth_region *r = file->private_data;
	struct hearth_ioc_seal *a = arg;
	int i, ret = 0;

	if (a->reserved)
		return -EINVAL;
	if (!hearth_may_write(file))
		return -EACCES;
	if (down_write_killable(&r->gate))
		return -EINTR;
	mutex_lock(&r->lock);
	if (r->purged)
		ret = -ESTALE;
	else if (!r->sealed && (r->writers || r->exports_write))
		ret = -EBUSY;
	mutex_unlock(&r->lock);
	if (ret || r->sealed)
		goto out;
	unmap_mapping_range(r->inode->i_mapping, 0, 0, 1);
	for (i = 0; !hearth_region_idle(r); i++) {
		ret = -EBUSY;
		if (i == SEAL_POLLS || fatal_signal_pending(current))
			goto out;
		msleep(SEAL_POLL_MS);
	}
	ret = 0;
	/*
	 * As above: a writer comes of a writer (fork, a split), or through the gate.
	 */
	mutex_lock(&r->lock);
	WRITE_ONCE(r->sealed, true);
	mutex_unlock(&r->lock);
out:
	up_write(&r->gate);
	return ret;
}

static int ioctl_get(void *who, void *arg)
{
	struct file *file = who;
	struct hearth_region *r = file->private_data;
	struct hearth_ioc_region_get *a = arg;
	int ret;

	ret = args_flags(a->flags, 0);
	if (ret)
		return ret;
	if (a->region)
		return -EINVAL;
	mutex_lock(&hearth.lock);
	hearth_region_figures(r, a);
	mutex_unlock(&hearth.lock);
	if (!hearth_may_write(file))
		a->out_flags |= HEARTH_REGION_READONLY;
	return 0;
}

static int ioctl_share(void *who, void *arg)
{
	struct file *file = who, *other;
	struct hearth_region *r = file->private_data;
	struct hearth_ioc_share *a = arg;
	bool write;
	int ret, fd;

	ret = args_flags(a->flags, HEARTH_SHARE_WRITE);
	if (ret)
		return ret;
	if (a->reserved)
		return -EINVAL;
	write = a->flags & HEARTH_SHARE_WRITE;
	if (write && !hearth_may_write(file))
		return -EACCES;
	mutex_lock(&r->lock);
	if (r->purged)
		ret = -ESTALE;
	else if (write && r->sealed)
		ret = -EROFS;
	mutex_unlock(&r->lock);
	if (ret)
		return ret;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	other = hearth_file_new(r, write);
	if (IS_ERR(other)) {
		put_unused_fd(fd);
		return PTR_ERR(other);
	}
	fd_install(fd, other);
	a->out_fd = fd;
	return 0;
}

static int ioctl_export(void *who, void *arg)
{
	struct file *file = who;
	struct hearth_ioc_export *a = arg;
	int ret;

	ret = args_flags(a->flags, HEARTH_EXPORT_WRITE);
	if (ret)
		return ret;
	if (a->reserved)
		return -EINVAL;
	if ((a->flags & HEARTH_EXPORT_WRITE) && !hearth_may_write(file))
		return -EACCES;
	return hearth_ioctl_export(file->private_data, a->flags & HEARTH_EXPORT_WRITE, a);
}

#define OP(name, type, last_in, has_out, fun) \
	{ .cmd = HEARTH_IOC_##name, .size = sizeof(struct type), .min = sizeof(struct type), \
	  .in = offsetofend(struct type, last_in), .out = has_out, .fn = fun }

static const struct hearth_ioctl region_ioctls[] = {
	OP(OFFER, hearth_ioc_offer, reserved, false, ioctl_offer),
	OP(TAKE_BACK, hearth_ioc_take_back, reserved2, true, ioctl_take_back),
	OP(REGION_GET, hearth_ioc_region_get, region, true, ioctl_get),
	OP(SEAL, hearth_ioc_seal, reserved, false, ioctl_seal),
	OP(KEEP, hearth_ioc_keep, digest, false, hearth_ioctl_keep),
	OP(SHARE, hearth_ioc_share, reserved, true, ioctl_share),
	OP(EXPORT, hearth_ioc_export, reserved, true, ioctl_export),
};

long hearth_region_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	return hearth_dispatch(region_ioctls, ARRAY_SIZE(region_ioctls), file, cmd, arg);
}
