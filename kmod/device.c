// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/hearth: an open file is a connection. One place copies structs from and
 * to users and checks their sizes; the functions in the tables get a kernel
 * copy in which what the user did not give is zero.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/miscdevice.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "priv.h"

#define FAIL_ANY 1	/* no errno */

/* The largest struct of any ioctl. */
union ioctl_arg {
	struct hearth_ioc_info info;
	struct hearth_ioc_join join;
	struct hearth_ioc_pool_create pool_create;
	struct hearth_ioc_pool_get pool_get;
	struct hearth_ioc_budget_get budget_get;
	struct hearth_ioc_budget_set budget_set;
	struct hearth_ioc_alloc alloc;
	struct hearth_ioc_find find;
	struct hearth_ioc_region_get region_get;
	u64 align;
};

/*
 * Copies in, calls, copies out. What a call gives back is known to be writable
 * before it is carried out (the same bytes are written back first), so that a
 * bad pointer changes nothing. Only a caller who unmaps its own struct in the
 * middle gets EFAULT for what was done.
 */
long hearth_dispatch(const struct hearth_ioctl *table, size_t n, void *who, unsigned int cmd,
		     unsigned long arg)
{
	void __user *ptr = (void __user *)arg;
	const struct hearth_ioctl *op;
	union ioctl_arg buf;
	u32 size, known;
	size_t i;
	int ret;

	for (i = 0, op = table; i < n; i++, op++) {
		if (op->cmd == cmd)
			break;
	}
	if (i == n)
		return -ENOTTY;
	if (WARN_ON_ONCE(op->size > sizeof(buf)))
		return -ENOTTY;

	if (get_user(size, (u32 __user *)ptr))
		return -EFAULT;
	if (size < op->min)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	known = min_t(u32, size, op->size);
	if (size > op->size) {
		ret = check_zeroed_user(ptr + op->size, size - op->size);
		if (ret < 0)
			return ret;
		if (!ret)
			return -E2BIG;
	}
	if (op->out) {
		if (copy_from_user(&buf, ptr, known) || copy_to_user(ptr, &buf, known))
			return -EFAULT;
	} else {
		if (copy_from_user(&buf, ptr, min_t(u32, known, op->in)))
			return -EFAULT;
	}
	known = min_t(u32, known, op->in);
	memset((u8 *)&buf + known, 0, op->size - known);
	*(u32 *)&buf = size;

	ret = op->fn(who, &buf);
	known = min_t(u32, size, op->size);
	if (!ret && op->out) {
		if (copy_to_user(ptr, &buf, known))
			return -EFAULT;
	} else if (ret && op->fail && known > op->fail &&
		   (ret == -ENOSPC || ret == -ETIMEDOUT || ret == op->fail_err ||
		    op->fail_err == FAIL_ANY)) {
		if (copy_to_user(ptr + op->fail, (u8 *)&buf + op->fail, known - op->fail))
			return -EFAULT;
	}
	return ret;
}

static int ioctl_info(void *who, void *arg)
{
	struct hearth_conn *conn = who;
	struct hearth_ioc_info *a = arg;

	mutex_lock(&hearth.lock);
	a->out_version = HEARTH_VERSION;
	a->out_caps = HEARTH_CAP_BUDDY | HEARTH_CAP_CHARGE | HEARTH_CAP_WAIT | HEARTH_CAP_SEAL |
		      HEARTH_CAP_PURGE | HEARTH_CAP_KEEP | HEARTH_CAP_SHARE | HEARTH_CAP_DMABUF |
		      HEARTH_CAP_EVENTS | HEARTH_CAP_NETLINK | HEARTH_CAP_SYSTEM;
	if (IS_ENABLED(CONFIG_OF_RESERVED_MEM))
		a->out_caps |= HEARTH_CAP_RESERVED;
	a->out_page_size = PAGE_SIZE;
	a->out_block_size = BLOCK_SIZE_;
	a->out_tenant = conn->tenant ? conn->tenant->id : 0;
	a->out_admin = conn->admin;
	a->out_pools = hearth.n_pools;
	a->out_tenants = hearth.n_tenants;
	a->out_regions = hearth.n_regions;
	a->out_reserved = 0;
	mutex_unlock(&hearth.lock);
	return 0;
}

static int ioctl_admin(void *who, void *arg)
{
	struct hearth_conn *conn = who;
	struct hearth_ioc_admin *a = arg;

	if (a->reserved)
		return -EINVAL;
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	WRITE_ONCE(conn->admin, true);
	return 0;
}

#define OP(name, type, last_in, has_out, fun) \
	{ .cmd = HEARTH_IOC_##name, .size = sizeof(struct type), .min = sizeof(struct type), \
	  .in = offsetofend(struct type, last_in), .out = has_out, .fn = fun }
#define OP_FAIL(name, type, last_in, has_out, fun, first, err) \
	{ .cmd = HEARTH_IOC_##name, .size = sizeof(struct type), .min = sizeof(struct type), \
	  .in = offsetofend(struct type, last_in), .out = has_out, .fn = fun, \
	  .fail = offsetof(struct type, first), .fail_err = err }
#define OP_REF(name, type, last_in, has_out, fun) \
	OP_FAIL(name, type, last_in, has_out, fun, out_refusal, -ENOSPC)

/* The most frequent first. */
static const struct hearth_ioctl conn_ioctls[] = {
	OP_REF(CHARGE, hearth_ioc_charge, deadline, false, hearth_ioctl_charge),
	OP(UNCHARGE, hearth_ioc_uncharge, bytes, false, hearth_ioctl_uncharge),
	OP_REF(ALLOC, hearth_ioc_alloc, label, true, hearth_ioctl_alloc),
	OP_FAIL(FIND, hearth_ioc_find, digest, true, hearth_ioctl_find, out_region, -ENOENT),
	OP(STATE, hearth_ioc_state, reserved, true, hearth_ioctl_state),
	OP(BUDGET_GET, hearth_ioc_budget_get, pool, true, hearth_ioctl_budget_get),
	OP(POOL_GET, hearth_ioc_pool_get, name, true, hearth_ioctl_pool_get),
	OP(TENANT_GET, hearth_ioc_tenant_get, name, true, hearth_ioctl_tenant_get),
	OP(REGION_GET, hearth_ioc_region_get, region, true, hearth_ioctl_region_get),
	OP(INFO, hearth_ioc_info, size, true, ioctl_info),
	OP(ADMIN, hearth_ioc_admin, reserved, false, ioctl_admin),
	OP(JOIN, hearth_ioc_join, reserved, true, hearth_ioctl_join),
	OP(WATCH, hearth_ioc_watch, kinds, true, hearth_ioctl_watch),
	OP(DROP, hearth_ioc_drop, region, false, hearth_ioctl_drop),
	OP_FAIL(BUDGET_SET, hearth_ioc_budget_set, reserved, true, hearth_ioctl_budget_set,
		out_bad, FAIL_ANY),
	OP(POOL_CREATE, hearth_ioc_pool_create, reserved, true, hearth_ioctl_pool_create),
	OP_REF(POOL_RESIZE, hearth_ioc_pool_resize, bytes, false, hearth_ioctl_pool_resize),
	OP(POOL_REMOVE, hearth_ioc_pool_remove, pool, false, hearth_ioctl_pool_remove),
	OP(TENANT_REMOVE, hearth_ioc_tenant_remove, tenant, false, hearth_ioctl_tenant_remove),
};

static long conn_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	return hearth_dispatch(conn_ioctls, ARRAY_SIZE(conn_ioctls), file->private_data, cmd, arg);
}

static int conn_open(struct inode *inode, struct file *file)
{
	struct hearth_conn *conn;
	int ret;

	conn = kzalloc(sizeof(*conn), GFP_KERNEL_ACCOUNT);
	if (!conn)
		return -ENOMEM;
	ret = hearth_fs_pin();
	if (ret) {
		kfree(conn);
		return ret;
	}
	init_waitqueue_head(&conn->wait);
	mutex_init(&conn->read_lock);
	spin_lock_init(&conn->queue_lock);
	file->private_data = conn;
	mutex_lock(&hearth.lock);
	list_add_tail(&conn->list, &hearth.conns);
	mutex_unlock(&hearth.lock);
	return stream_open(inode, file);
}

static int conn_release(struct inode *inode, struct file *file)
{
	struct hearth_conn *conn = file->private_data;
	u32 i;

	mutex_lock(&hearth.lock);
	list_del(&conn->list);
	if (conn->tenant) {
		for (i = 0; i < HEARTH_POOLS; i++) {
			if (conn->charged[i])
				hearth_uncharge(conn->tenant->budgets[i], conn->charged[i]);
		}
		conn->tenant->connections--;
		hearth_tenant_maybe_free(conn->tenant);
	}
	mutex_unlock(&hearth.lock);
	hearth_fs_unpin();
	kvfree(conn->queue);
	kfree(conn);
	return 0;
}

static const struct file_operations conn_fops = {
	.owner = THIS_MODULE,
	.open = conn_open,
	.release = conn_release,
	.unlocked_ioctl = conn_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.read = hearth_conn_read,
	.poll = hearth_conn_poll,
};

static struct miscdevice hearth_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "hearth",
	.fops = &conn_fops,
	.mode = 0660,	/* the udev rule gives it to the group hearth */
};

int hearth_device_init(void)
{
	return misc_register(&hearth_misc);
}

void hearth_device_exit(void)
{
	misc_deregister(&hearth_misc);
}
