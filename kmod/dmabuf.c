// SPDX-License-Identifier: GPL-2.0-only
/*
 * A region, or a part of it, as dma-buf. Nothing here compares dmabuf->ops:
 * other drivers replace it by a copy of their own. While a dma-buf lives its
 * region is neither offered nor, if it was exported for writing, sealed.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "priv.h"

struct hearth_export {
	struct hearth_region *region;
	u64 offset;
	u64 bytes;
	bool write;
	struct mutex lock;		/* the list, and sgt of its members */
	struct list_head attachments;
};

struct hearth_attachment {
	struct list_head list;
	struct device *dev;
	struct sg_table *sgt;		/* while mapped */
	enum dma_data_direction dir;
};

/*
 * While exported a region is not purged, so its extents stay; region->lock is
 * taken all the same, for the walk is short.
 */
static struct page *export_page(struct hearth_export *ex, u64 at)
{
	struct page *page;

	mutex_lock(&ex->region->lock);
	page = hearth_region_page(ex->region, ex->offset + at);
	mutex_unlock(&ex->region->lock);
	return page;
}

typedef void (*run_fn)(struct page *page, unsigned int len, void *arg);

/* Calls @fn for each physical run of at most @max bytes; the number of them. */
static u32 walk_runs(struct hearth_export *ex, u64 max, run_fn fn, void *arg)
{
	struct page *page, *next;
	u64 at = 0, len;
	u32 n = 0;

	page = export_page(ex, 0);
	while (at < ex->bytes) {
		len = PAGE_SIZE;
		next = NULL;
		while (at + len < ex->bytes) {
			next = export_page(ex, at + len);
			if (len == max ||
			    page_to_pfn(next) != page_to_pfn(page) + (len >> PAGE_SHIFT))
				break;
			len += PAGE_SIZE;
			next = NULL;
		}
		if (fn)
			fn(page, len, arg);
		n++;
		at += len;
		page = next;
	}
	return n;
}

static void set_sg(struct page *page, unsigned int len, void *arg)
{
	struct scatterlist **sg = arg;

	sg_set_page(*sg, page, len, 0);
	*sg = sg_next(*sg);
}

static int export_attach(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	struct hearth_export *ex = buf->priv;
	struct hearth_attachment *a;

	a = kzalloc(sizeof(*a), GFP_KERNEL);
	if (!a)
		return -ENOMEM;
	a->dev = attach->dev;
	attach->priv = a;
	mutex_lock(&ex->lock);
	list_add(&a->list, &ex->attachments);
	mutex_unlock(&ex->lock);
	return 0;
}

static void export_detach(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	struct hearth_export *ex = buf->priv;
	struct hearth_attachment *a = attach->priv;

	mutex_lock(&ex->lock);
	list_del(&a->list);
	mutex_unlock(&ex->lock);
	kfree(a);
}

static struct sg_table *export_map(struct dma_buf_attachment *attach, enum dma_data_direction dir)
{
	struct hearth_attachment *a = attach->priv;
	struct hearth_export *ex = attach->dmabuf->priv;
	struct scatterlist *sg;
	struct sg_table *sgt;
	u64 max;
	int ret;

	if (!ex->write && dir != DMA_TO_DEVICE)
		return ERR_PTR(-EACCES);
	max = ALIGN_DOWN(max_t(u64, PAGE_SIZE, min_t(u64, dma_get_max_seg_size(attach->dev), SZ_1G)),
			 PAGE_SIZE);
	sgt = kzalloc(sizeof(*sgt), GFP_KERNEL);
	if (!sgt)
		return ERR_PTR(-ENOMEM);
	ret = sg_alloc_table(sgt, walk_runs(ex, max, NULL, NULL), GFP_KERNEL);
	if (ret)
		goto err_free;
	sg = sgt->sgl;
	walk_runs(ex, max, set_sg, &sg);
	ret = dma_map_sgtable(attach->dev, sgt, dir, 0);
	if (ret)
		goto err_table;
	mutex_lock(&ex->lock);
	a->sgt = sgt;
	a->dir = dir;
	mutex_unlock(&ex->lock);
	return sgt;

err_table:
	sg_free_table(sgt);
err_free:
	kfree(sgt);
	return ERR_PTR(ret);
}

static void export_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
			 enum dma_data_direction dir)
{
	struct hearth_attachment *a = attach->priv;
	struct hearth_export *ex = attach->dmabuf->priv;

	mutex_lock(&ex->lock);
	if (a->sgt == sgt)
		a->sgt = NULL;
	mutex_unlock(&ex->lock);
	dma_unmap_sgtable(attach->dev, sgt, dir, 0);
	sg_free_table(sgt);
	kfree(sgt);
}

static int export_begin_cpu(struct dma_buf *buf, enum dma_data_direction dir)
{
	struct hearth_export *ex = buf->priv;
	struct hearth_attachment *a;

	if (!ex->write && dir != DMA_FROM_DEVICE && dir != DMA_TO_DEVICE)
		return -EACCES;
	mutex_lock(&ex->lock);
	list_for_each_entry(a, &ex->attachments, list) {
		if (a->sgt)
			dma_sync_sgtable_for_cpu(a->dev, a->sgt, a->dir);
	}
	mutex_unlock(&ex->lock);
	return 0;
}

static int export_end_cpu(struct dma_buf *buf, enum dma_data_direction dir)
{
	struct hearth_export *ex = buf->priv;
	struct hearth_attachment *a;

	mutex_lock(&ex->lock);
	list_for_each_entry(a, &ex->attachments, list) {
		if (a->sgt)
			dma_sync_sgtable_for_device(a->dev, a->sgt, a->dir);
	}
	mutex_unlock(&ex->lock);
	return 0;
}

/* A read-only dma-buf's file is O_RDONLY: its mappings cannot become writable. */
static int export_mmap(struct dma_buf *buf, struct vm_area_struct *vma)
{
	struct hearth_export *ex = buf->priv;

	if (!ex->write && (vma->vm_flags & VM_WRITE))
		return -EACCES;
	if (vma_pages(vma) > (ex->bytes >> PAGE_SHIFT) - min_t(u64, vma->vm_pgoff,
							       ex->bytes >> PAGE_SHIFT))
		return -EINVAL;
	if (!ex->write)
		vm_flags_clear(vma, VM_MAYWRITE);
	vma->vm_pgoff += ex->offset >> PAGE_SHIFT;
	return hearth_region_mmap(ex->region, vma);
}

static void *export_vmap_pages(struct hearth_export *ex)
{
	unsigned long n = ex->bytes >> PAGE_SHIFT, i;
	struct page **pages;
	void *addr;

	pages = kvmalloc_array(n, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return NULL;
	for (i = 0; i < n; i++)
		pages[i] = export_page(ex, (u64)i << PAGE_SHIFT);
	addr = vmap(pages, n, VM_MAP, ex->write ? PAGE_KERNEL : PAGE_KERNEL_RO);
	kvfree(pages);
	return addr;
}

#if COMPAT_VMAP_MAP
static int export_vmap(struct dma_buf *buf, struct compat_vmap_map *map)
{
	void *addr = export_vmap_pages(buf->priv);

	if (!addr)
		return -ENOMEM;
	compat_vmap_set(map, addr);
	return 0;
}

static void export_vunmap(struct dma_buf *buf, struct compat_vmap_map *map)
{
	vunmap(map->vaddr);
}
#else
static void *export_vmap(struct dma_buf *buf)
{
	return export_vmap_pages(buf->priv);
}

static void export_vunmap(struct dma_buf *buf, void *addr)
{
	vunmap(addr);
}
#endif

static void export_release(struct dma_buf *buf)
{
	struct hearth_export *ex = buf->priv;
	struct hearth_region *r = ex->region;

	mutex_lock(&r->lock);
	WRITE_ONCE(r->exports, r->exports - 1);
	r->exports_write -= ex->write;
	mutex_unlock(&r->lock);
	hearth_region_put(r);
	mutex_destroy(&ex->lock);
	kfree(ex);
}

static const struct dma_buf_ops export_ops = {
	.attach = export_attach,
	.detach = export_detach,
	.map_dma_buf = export_map,
	.unmap_dma_buf = export_unmap,
	.begin_cpu_access = export_begin_cpu,
	.end_cpu_access = export_end_cpu,
	.mmap = export_mmap,
	.vmap = export_vmap,
	.vunmap = export_vunmap,
	.release = export_release,
};

/*
 * Counts the export, so that it is neither offered nor, if it may write, sealed
 * from here on; nor at this moment, which is what the gate is passed for.
 */
static int export_begin(struct hearth_region *r, struct hearth_export *ex)
{
	int ret = 0;

	if (down_read_killable(&r->gate))
		return -EINTR;
	mutex_lock(&r->lock);
	if (r->purged)
		ret = -ESTALE;
	else if (r->offered)
		ret = -EBUSY;
	else if (r->sealed && ex->write)
		ret = -EROFS;
	if (!ret) {
		r->reached = true;
		WRITE_ONCE(r->exports, r->exports + 1);
		r->exports_write += ex->write;
		kref_get(&r->ref);
		ex->region = r;
	}
	mutex_unlock(&r->lock);
	up_read(&r->gate);
	return ret;
}

int hearth_ioctl_export(struct hearth_region *r, bool writable, struct hearth_ioc_export *a)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct hearth_export *ex;
	struct dma_buf *buf;
	u64 bytes = a->bytes;
	int ret;

	if ((a->offset | a->bytes) & (PAGE_SIZE - 1))
		return -EINVAL;
	if (a->offset >= r->bytes)
		return -EINVAL;
	bytes = bytes ?: r->bytes - a->offset;
	ret = args_range(a->offset, bytes, r->bytes);
	if (ret)
		return ret;
	ex = kzalloc(sizeof(*ex), GFP_KERNEL_ACCOUNT);
	if (!ex)
		return -ENOMEM;
	ex->offset = a->offset;
	ex->bytes = bytes;
	ex->write = writable;
	mutex_init(&ex->lock);
	INIT_LIST_HEAD(&ex->attachments);
	ret = export_begin(r, ex);
	if (ret) {
		kfree(ex);
		return ret;
	}
	info.exp_name = "hearth";
	info.ops = &export_ops;
	info.size = bytes;
	info.flags = (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC;
	info.priv = ex;
	buf = dma_buf_export(&info);
	if (IS_ERR(buf)) {
		mutex_lock(&r->lock);
		WRITE_ONCE(r->exports, r->exports - 1);
		r->exports_write -= writable;
		mutex_unlock(&r->lock);
		/* The caller's file has the region too: never the last one. */
		hearth_region_put(r);
		kfree(ex);
		return PTR_ERR(buf);
	}
	ret = dma_buf_fd(buf, O_CLOEXEC);
	if (ret < 0) {
		dma_buf_put(buf);
		return ret;
	}
	a->out_fd = ret;
	return 0;
}
