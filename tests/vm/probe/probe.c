// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the tests need a driver for: imports a dma-buf as a device would, looks
 * at its scatterlist, writes through it, maps it into the kernel, replaces its
 * ops as nvgpu does, and holds on to pages without telling anybody.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/highmem.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../kmod/compat.h"
#include "probe.h"

static struct platform_device *pdev;
static DEFINE_MUTEX(lock);
static struct dma_buf_ops ops_copy;
static struct page *held[64];
static unsigned int n_held;

static int sum_sg(struct sg_table *sgt, struct probe_arg *a)
{
	struct scatterlist *sg;
	unsigned int i, k;

	for_each_sgtable_sg(sgt, sg, i) {
		a->out_segments++;
		a->out_bytes += sg->length;
		for (k = 0; k < sg->length; k += PAGE_SIZE) {
			u8 *p = kmap(nth_page_(sg_page(sg), k >> PAGE_SHIFT));

			a->out_sum += p[0];
			if (a->flags & PROBE_WRITE)
				p[0] = a->value;
			kunmap(nth_page_(sg_page(sg), k >> PAGE_SHIFT));
		}
	}
	return 0;
}

static int do_vmap(struct dma_buf *buf, struct probe_arg *a)
{
	u8 *p;
	size_t i;
#if COMPAT_VMAP_MAP
	struct compat_vmap_map map = {};
	int ret = probe_vmap(buf, &map);

	if (ret)
		return ret;
	p = map.vaddr;
#else
	p = dma_buf_vmap(buf);
	if (!p)
		return -ENOMEM;
#endif
	for (i = 0; i < buf->size; i += PAGE_SIZE) {
		a->out_sum += p[i];
		a->out_bytes += PAGE_SIZE;
	}
#if COMPAT_VMAP_MAP
	probe_vunmap(buf, &map);
#else
	dma_buf_vunmap(buf, p);
#endif
	return 0;
}

static int do_import(struct probe_arg *a)
{
	struct dma_buf_attachment *att;
	struct dma_buf *buf = dma_buf_get(a->fd);
	struct sg_table *sgt;
	int ret;

	if (IS_ERR(buf))
		return PTR_ERR(buf);
	if (a->flags & PROBE_OPS) {
		/* A copy of the ops, as a driver that wants to hear of the release. */
		ops_copy = *buf->ops;
		buf->ops = &ops_copy;
	}
	if (a->flags & PROBE_VMAP) {
		ret = do_vmap(buf, a);
		goto out;
	}
	att = dma_buf_attach(buf, &pdev->dev);
	if (IS_ERR(att)) {
		ret = PTR_ERR(att);
		goto out;
	}
	sgt = probe_map(att, a->dir);
	if (IS_ERR(sgt)) {
		ret = PTR_ERR(sgt);
		goto detach;
	}
	ret = dma_buf_begin_cpu_access(buf, a->dir);
	if (!ret) {
		ret = sum_sg(sgt, a);
		dma_buf_end_cpu_access(buf, a->dir);
	}
	probe_unmap(att, sgt, a->dir);
detach:
	dma_buf_detach(buf, att);
out:
	dma_buf_put(buf);
	return ret;
}

/* Plain references, as nvmap takes them: nobody is told. */
static int do_hold(struct probe_arg *a)
{
	struct page *page;
	int n;

	if (n_held == ARRAY_SIZE(held))
		return -ENOSPC;
	n = get_user_pages_fast(a->addr, 1, a->flags & PROBE_WRITE ? FOLL_WRITE : 0, &page);
	if (n != 1)
		return n < 0 ? n : -EFAULT;
	held[n_held++] = page;
	return 0;
}

static void do_release(void)
{
	while (n_held)
		put_page(held[--n_held]);
}

static long probe_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct probe_arg a;
	int ret;

	if (copy_from_user(&a, (void __user *)arg, sizeof(a)))
		return -EFAULT;
	a.out_bytes = a.out_sum = a.out_segments = 0;
	mutex_lock(&lock);
	switch (cmd) {
	case PROBE_IMPORT:
		ret = do_import(&a);
		break;
	case PROBE_HOLD:
		ret = do_hold(&a);
		break;
	case PROBE_RELEASE:
		do_release();
		ret = 0;
		break;
	default:
		ret = -ENOTTY;
	}
	mutex_unlock(&lock);
	if (copy_to_user((void __user *)arg, &a, sizeof(a)))
		return -EFAULT;
	return ret;
}

static const struct file_operations fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = probe_ioctl,
};

static struct miscdevice dev = { .minor = MISC_DYNAMIC_MINOR, .name = "probe", .fops = &fops };

static int __init probe_init(void)
{
	int ret;

	pdev = platform_device_register_simple("hearth-probe", -1, NULL, 0);
	if (IS_ERR(pdev))
		return PTR_ERR(pdev);
	ret = dma_coerce_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (!ret)
		ret = misc_register(&dev);
	if (ret)
		platform_device_unregister(pdev);
	return ret;
}

static void __exit probe_exit(void)
{
	do_release();
	misc_deregister(&dev);
	platform_device_unregister(pdev);
}

module_init(probe_init);
module_exit(probe_exit);
MODULE_DESCRIPTION("importer for the tests of hearth");
MODULE_LICENSE("GPL");
COMPAT_IMPORT_DMA_BUF;
