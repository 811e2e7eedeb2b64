/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * What the core needs of its world, kernel or user: integer types, errno,
 * memory functions, overflow checks. This is the only __KERNEL__ switch of
 * kmod/core; everything else there compiles unchanged in both.
 *
 * The core has no locks, no allocation, no logging, no clock: the caller holds
 * the lock, supplies storage and passes `now`. 64-bit division goes through
 * core_div(), because 32-bit kernels have no `/` for u64.
 */
#ifndef HEARTH_CORE_PORT_H
#define HEARTH_CORE_PORT_H

#ifdef __KERNEL__

#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/overflow.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <linux/types.h>

#define CORE_U64_MAX U64_MAX

static inline u64 core_div(u64 a, u32 b)
{
	return div_u64(a, b);
}

#define core_add_overflow(a, b, ret) check_add_overflow(a, b, ret)

#else

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int32_t s32;
typedef int64_t s64;

#define CORE_U64_MAX UINT64_MAX

static inline u64 core_div(u64 a, u32 b)
{
	return a / b;
}

#define core_add_overflow(a, b, ret) __builtin_add_overflow(a, b, ret)

#endif

static inline u64 core_min(u64 a, u64 b)
{
	return a < b ? a : b;
}

static inline u64 core_max(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* a - b, or 0 where b is larger. */
static inline u64 core_sub_floor(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

/* a + b, or the largest value where that overflows. */
static inline u64 core_add_cap(u64 a, u64 b)
{
	u64 sum;

	return core_add_overflow(a, b, &sum) ? CORE_U64_MAX : sum;
}

static inline bool core_is_pow2(u64 v)
{
	return v && !(v & (v - 1));
}

#endif
