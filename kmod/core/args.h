/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Argument checks that are pure: what is wrong with a call whatever the state
 * of the machine. One errno, one meaning, as in uapi/linux/hearth.h. Locks are
 * not needed.
 */
#ifndef HEARTH_CORE_ARGS_H
#define HEARTH_CORE_ARGS_H

#include "port.h"

/* Any bit outside @known: -EOPNOTSUPP. */
static inline int args_flags(u64 flags, u64 known)
{
	return flags & ~known ? -EOPNOTSUPP : 0;
}

/*
 * A size to allocate from a pool of @pool_size bytes in units of @unit (a
 * power of two): 0 is -EINVAL; more than the pool, however rounded, is
 * -ENOSPC. *ret_size is rounded up to the unit.
 */
int args_size(u64 size, u64 unit, u64 pool_size, u64 *ret_size);

/*
 * An alignment: 0 means the unit; else a power of two (-EINVAL), at most @most
 * (-EINVAL). *ret_align is at least the unit.
 */
int args_align(u64 align, u64 unit, u64 most, u64 *ret_align);

/* [off, off + len) inside [0, size): -EINVAL for len 0, overflow or outside. */
int args_range(u64 off, u64 len, u64 size);

/*
 * A name of 1..@cap-1 bytes in a field of @cap bytes: NUL-terminated, all zero
 * after the NUL, made of letters, digits, '.', '_', '-', ':', '/' and '@', and
 * not beginning with '.' or '/'. -EINVAL.
 */
int args_name(const char *name, size_t cap);

/* All @n bytes zero, else -EINVAL (reserved fields) . */
int args_zero(const void *p, size_t n);

/* The order of limits: -EINVAL when min > max. */
int args_limits(u64 min, u64 low, u64 high, u64 max);

#endif
