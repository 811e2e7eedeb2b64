/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Everything about differences between kernels, 5.10 to the newest. The HAVE_
 * macros come from conftest.sh, which compiles; no version number is looked at.
 */
#ifndef HEARTH_COMPAT_H
#define HEARTH_COMPAT_H

#include <linux/dma-buf.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/shrinker.h>

#include "conftest.h"

/* vm_flags became const in 6.3. Goes with 6.1. */
#if !HAVE_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/* dma-buf's vmap: void * (5.10), dma_buf_map (5.11), iosys_map (5.18). */
#if HAVE_VMAP_IOSYS
#include <linux/iosys-map.h>
#define compat_vmap_map iosys_map
#define compat_vmap_set(map, addr) iosys_map_set_vaddr(map, addr)
#elif HAVE_VMAP_DMA_BUF_MAP
#include <linux/dma-buf-map.h>
#define compat_vmap_map dma_buf_map
#define compat_vmap_set(map, addr) dma_buf_map_set_vaddr(map, addr)
#endif
#define COMPAT_VMAP_MAP (HAVE_VMAP_IOSYS || HAVE_VMAP_DMA_BUF_MAP)

/*
 * The namespace of dma-buf's symbols: a string since 6.13, a bare word since
 * 5.16, harmless before.
 */
#if HAVE_IMPORT_NS_BARE
#define COMPAT_IMPORT_DMA_BUF MODULE_IMPORT_NS(DMA_BUF)
#else
#define COMPAT_IMPORT_DMA_BUF MODULE_IMPORT_NS("DMA_BUF")
#endif

/* Shrinkers are allocated since 6.7; registering takes a name since 6.0. */
struct compat_shrinker {
#if HAVE_SHRINKER_ALLOC
	struct shrinker *s;
#else
	struct shrinker s;
	bool registered;
#endif
};

typedef unsigned long (*compat_shrink_fn)(struct shrinker *s, struct shrink_control *sc);

static inline int compat_shrinker_register(struct compat_shrinker *c, compat_shrink_fn count,
					   compat_shrink_fn scan)
{
#if HAVE_SHRINKER_ALLOC
	c->s = shrinker_alloc(0, "hearth");
	if (!c->s)
		return -ENOMEM;
	c->s->count_objects = count;
	c->s->scan_objects = scan;
	shrinker_register(c->s);
	return 0;
#else
	int ret;

	c->s.count_objects = count;
	c->s.scan_objects = scan;
	c->s.seeks = DEFAULT_SEEKS;
#if HAVE_REGISTER_SHRINKER_NAME
	ret = register_shrinker(&c->s, "hearth");
#else
	ret = register_shrinker(&c->s);
#endif
	c->registered = !ret;
	return ret;
#endif
}

static inline void compat_shrinker_unregister(struct compat_shrinker *c)
{
#if HAVE_SHRINKER_ALLOC
	shrinker_free(c->s);
	c->s = NULL;
#else
	if (c->registered)
		unregister_shrinker(&c->s);
	c->registered = false;
#endif
}

#endif
