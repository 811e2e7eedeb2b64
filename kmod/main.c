// SPDX-License-Identifier: GPL-2.0-only
/*
 * hearth: pinned carve-outs of memory, held under budgets. uapi/linux/hearth.h
 * is the manual. This file is the table of contents: what starts, in order, and
 * the same reversed.
 */
#include <linux/init.h>
#include <linux/module.h>

#include "compat.h"
#include "priv.h"

struct hearth_globals hearth = {
	.lock = __MUTEX_INITIALIZER(hearth.lock),
	.conns = LIST_HEAD_INIT(hearth.conns),
	.quarantine = LIST_HEAD_INIT(hearth.quarantine),
};

static int __init hearth_init(void)
{
	int ret;

	xa_init_flags(&hearth.tenants, XA_FLAGS_ALLOC1);
	xa_init_flags(&hearth.regions, XA_FLAGS_ALLOC1);
	INIT_DELAYED_WORK(&hearth.quarantine_work, hearth_quarantine_work);

	ret = hearth_selftest();
	if (ret)
		return ret;
	/* Pressure must be told of when there is no memory for another worker. */
	hearth.wq = alloc_workqueue("hearth", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!hearth.wq)
		return -ENOMEM;
	ret = hearth_netlink_init();
	if (ret)
		goto err_wq;
	ret = hearth_pools_init();
	if (ret)
		goto err_netlink;
	ret = hearth_system_init();
	if (ret)
		goto err_pools;
	ret = hearth_device_init();
	if (ret)
		goto err_system;
	hearth_debugfs_init();
	return 0;

err_system:
	hearth_system_exit();
err_pools:
	hearth_pools_exit();
err_netlink:
	hearth_netlink_exit();
err_wq:
	destroy_workqueue(hearth.wq);
	return ret;
}

/*
 * Nothing is in use here: every open file, dma-buf and region, quarantined and
 * kept ones too, holds a reference on the module.
 */
static void __exit hearth_exit(void)
{
	hearth_debugfs_exit();
	hearth_device_exit();
	hearth_system_exit();
	cancel_delayed_work_sync(&hearth.quarantine_work);
	hearth_tenants_exit();
	hearth_pools_exit();
	hearth_netlink_exit();
	destroy_workqueue(hearth.wq);
	xa_destroy(&hearth.tenants);
	xa_destroy(&hearth.regions);
}

module_init(hearth_init);
module_exit(hearth_exit);

MODULE_DESCRIPTION("pinned memory pools shared out under budgets");
MODULE_AUTHOR("hearth developers");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
COMPAT_IMPORT_DMA_BUF;
