// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mapping a region: the one class of mapping that get_user_pages accepts, which
 * is what CUDA's registration of host memory, O_DIRECT and io_uring end in.
 * Shared, ordinary page-table entries of pages with a count (VM_MIXEDMAP, never
 * a special entry), cached, not executable, put in at once. The fault handler
 * puts back what MADV_DONTNEED took out.
 *
 * Everything here runs under mmap_lock and takes region->gate and region->lock
 * alone.
 */
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "priv.h"

#define BATCH 512

/* The page at an offset that is inside; the caller sees to it that extents stay. */
struct page *hearth_region_page(struct hearth_region *r, u64 offset)
{
	struct extent *e = r->first;

	while (offset >= e->size) {
		offset -= e->size;
		e = e->link;
	}
	return hearth_pool_page(r->pool, e->start + offset);
}

static vm_fault_t region_fault(struct vm_fault *vmf)
{
	struct hearth_region *r = vmf->vma->vm_private_data;
	u64 offset = (u64)vmf->pgoff << PAGE_SHIFT;
	struct page *page = NULL;

	down_read(&r->gate);
	if (!r->purged && offset < r->bytes) {
		page = hearth_region_page(r, offset);
		/* From here on a purge sees the count and leaves the region. */
		get_page(page);
	}
	up_read(&r->gate);
	if (!page)
		return VM_FAULT_SIGBUS;
	vmf->page = page;
	return 0;
}

/* Fork, a split, or a move made one more mapping of the same kind. */
static void region_vm_open(struct vm_area_struct *vma)
{
	struct hearth_region *r = vma->vm_private_data;

	if (!(vma->vm_flags & VM_MAYWRITE))
		return;
	mutex_lock(&r->lock);
	r->writers++;
	mutex_unlock(&r->lock);
}

static void region_vm_close(struct vm_area_struct *vma)
{
	struct hearth_region *r = vma->vm_private_data;

	if (!(vma->vm_flags & VM_MAYWRITE))
		return;
	mutex_lock(&r->lock);
	r->writers--;
	mutex_unlock(&r->lock);
}

static const struct vm_operations_struct region_vm_ops = {
	.open = region_vm_open,
	.close = region_vm_close,
	.fault = region_fault,
};

/* Puts all entries in. On failure the caller of ->mmap takes them out. */
static int populate(struct hearth_region *r, struct vm_area_struct *vma, struct page **batch)
{
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT, at;
	unsigned long addr = vma->vm_start, left, n;
	struct extent *e = r->first;
	int ret;

	for (at = offset; at >= e->size; e = e->link)
		at -= e->size;
	while (addr < vma->vm_end) {
		if (at == e->size) {
			e = e->link;
			at = 0;
		}
		n = min_t(u64, (vma->vm_end - addr) >> PAGE_SHIFT, (e->size - at) >> PAGE_SHIFT);
		n = hearth_pool_pages(r->pool, e->start + at, min_t(u64, n, BATCH), batch);
		at += n * PAGE_SIZE;
		left = n;
		ret = vm_insert_pages(vma, addr, batch, &left);
		/* These pages can be mapped: what failed is a page table. */
		if (ret)
			return ret == -EFAULT ? -ENOMEM : ret;
		addr += n * PAGE_SIZE;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

int hearth_region_mmap(struct hearth_region *r, struct vm_area_struct *vma)
{
	u64 pages = r->bytes >> PAGE_SHIFT;
	struct page **batch;
	int ret;

	/* A read-only descriptor's shared mapping is VM_MAYSHARE alone. */
	if (!(vma->vm_flags & VM_MAYSHARE) || (vma->vm_flags & VM_EXEC))
		return -EACCES;
	if (vma->vm_pgoff >= pages || vma_pages(vma) > pages - vma->vm_pgoff)
		return -EINVAL;
	batch = kmalloc_array(BATCH, sizeof(*batch), GFP_KERNEL);
	if (!batch)
		return -ENOMEM;

	ret = -EINTR;
	if (down_read_killable(&r->gate))
		goto out_batch;
	ret = -ESTALE;
	if (r->purged)
		goto out;
	if (r->sealed) {
		ret = -EROFS;
		if (vma->vm_flags & VM_WRITE)
			goto out;
		vm_flags_clear(vma, VM_MAYWRITE);
	}
	mutex_lock(&r->lock);
	r->reached = true;
	mutex_unlock(&r->lock);
	vm_flags_clear(vma, VM_MAYEXEC);
	vm_flags_set(vma, VM_MIXEDMAP | VM_DONTEXPAND | VM_DONTDUMP);
	ret = populate(r, vma, batch);
	if (ret)
		goto out;
	vma->vm_ops = &region_vm_ops;
	vma->vm_private_data = r;
	/* Counted before the gate is open to a seal. */
	region_vm_open(vma);
out:
	up_read(&r->gate);
out_batch:
	kfree(batch);
	return ret;
}
