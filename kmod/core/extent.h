/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Extents: which part of a carve-out is taken.
 *
 * A map covers [0, size) with extents, each free or used, in address order and
 * without gaps; two free ones are never neighbours. All sizes and starts are
 * multiples of the map's unit (a power of two). Free extents are also in a
 * balanced tree by (size, start), so that the best fit costs O(log n); giving
 * back joins neighbours in O(1) plus the tree.
 *
 * Nodes are the caller's memory: the map keeps spare ones, which the caller
 * puts in before (and outside its lock, where it must not allocate) and can
 * take out again.
 *
 * Locking: the caller serialises all calls on one map.
 */
#ifndef HEARTH_CORE_EXTENT_H
#define HEARTH_CORE_EXTENT_H

#include "port.h"

enum extent_state { EXTENT_SPARE, EXTENT_FREE, EXTENT_USED };

struct extent {
	u64 start;
	u64 size;
	struct extent *prev, *next;           /* by address; spare: next spare */
	struct extent *left, *right, *parent; /* free ones, by size then start */
	void *owner;                          /* used ones: the caller's */
	struct extent *link;                  /* used ones: the caller's, e.g. next of a region */
	u8 height;
	u8 state;
};

struct extent_map {
	u64 size;
	u64 unit;
	u64 free;                  /* bytes */
	u32 n_free, n_used, n_spare;
	struct extent *first, *last;
	struct extent *root;
	struct extent *spare;
};

/* Spare nodes that extent_alloc must find: a cut at each end. */
#define EXTENT_SPARE_ALLOC 2

/*
 * A map of [0, size), all free. @unit is a power of two and divides size.
 * @node holds the first extent. size may be 0 (then @node becomes a spare).
 */
int extent_map_init(struct extent_map *m, u64 size, u64 unit, struct extent *node);

/* Puts a node into the spares; takes one out (NULL when there is none). */
void extent_spare_put(struct extent_map *m, struct extent *node);
struct extent *extent_spare_get(struct extent_map *m);

/*
 * Takes the smallest free extent that holds @size bytes at a start that is a
 * multiple of @align (a power of two, at least the unit), and among equals the
 * lowest. -EINVAL; -ENOSPC when no free extent fits; -ENOMEM with fewer than
 * EXTENT_SPARE_ALLOC spares. On failure nothing has changed.
 *
 * Where the alignment is larger than the unit, at most EXTENT_LOOK candidates
 * that are long enough and badly placed are looked at before it goes on to
 * those that fit however they are placed; so the fit may then not be the best,
 * but where one exists, one is found.
 */
#define EXTENT_LOOK 64
int extent_alloc(struct extent_map *m, u64 size, u64 align, void *owner,
		 struct extent **ret_ext);

/*
 * Takes the largest free extent, cut to at most @size bytes from its start:
 * for regions of several extents. -ENOSPC when nothing is free, -ENOMEM
 * without spares, -EINVAL.
 */
int extent_alloc_part(struct extent_map *m, u64 size, void *owner, struct extent **ret_ext);

/* Takes exactly [start, start + size), -EBUSY when any of it is used. */
int extent_alloc_at(struct extent_map *m, u64 start, u64 size, void *owner,
		    struct extent **ret_ext);

/* Gives back and joins; up to two nodes become spares. @ext is gone after it. */
void extent_free(struct extent_map *m, struct extent *ext);

/* The size of the largest free extent, 0 when none. */
u64 extent_largest(const struct extent_map *m);

/* The free bytes at the end of the map, which extent_resize could cut off. */
u64 extent_tail(const struct extent_map *m);

/*
 * Moves the end. Growing needs a spare when the last extent is used (-ENOMEM).
 * Shrinking is -EBUSY when memory past the new end is used. -EINVAL for a size
 * that is no multiple of the unit.
 */
int extent_resize(struct extent_map *m, u64 size);

/* The extent that holds an address, O(n): for tables and tests. */
struct extent *extent_find(const struct extent_map *m, u64 at);

/* Checks every rule above; 0, or a line number of the check that failed. */
int extent_check(const struct extent_map *m);

#endif
