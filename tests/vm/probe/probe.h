/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROBE_H
#define PROBE_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define PROBE_WRITE (1U << 0)
#define PROBE_VMAP (1U << 1)
#define PROBE_OPS (1U << 2)

struct probe_arg {
	__s32 fd;
	__u32 flags;
	__u32 dir;		/* 0 both, 1 to the device, 2 from it */
	__u32 value;
	__u64 addr;
	__u64 out_bytes;
	__u64 out_sum;
	__u32 out_segments;
	__u32 pad;
};

#define PROBE_IMPORT _IO('p', 0xe0)
#define PROBE_HOLD _IO('p', 0xe1)
#define PROBE_RELEASE _IO('p', 0xe2)

#ifdef __KERNEL__
/* Importing takes the reservation lock by itself in these, where they exist. */
#if HAVE_DMA_BUF_UNLOCKED
#define probe_map dma_buf_map_attachment_unlocked
#define probe_unmap dma_buf_unmap_attachment_unlocked
#else
#define probe_map dma_buf_map_attachment
#define probe_unmap dma_buf_unmap_attachment
#endif
#if HAVE_DMA_BUF_VMAP_UNLOCKED
#define probe_vmap dma_buf_vmap_unlocked
#define probe_vunmap dma_buf_vunmap_unlocked
#else
#define probe_vmap dma_buf_vmap
#define probe_vunmap dma_buf_vunmap
#endif
/* Page arithmetic that holds across memory sections. */
#define nth_page_(page, n) pfn_to_page(page_to_pfn(page) + (n))
#endif

#endif
