/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Arguments and their errno, for kmod/core/args.h (include it first). No libc. */
#ifndef HEARTH_VECTORS_ARGS_H
#define HEARTH_VECTORS_ARGS_H

struct args_size_case {
	u64 size, unit, pool;
	int ret;
	u64 value;
};

static const struct args_size_case args_size_cases[] = {
	{ .size = 0, .unit = 4096, .pool = 8192, .ret = -EINVAL },
	{ .size = 1, .unit = 4096, .pool = 8192, .value = 4096 },
	{ .size = 4095, .unit = 4096, .pool = 8192, .value = 4096 },
	{ .size = 4096, .unit = 4096, .pool = 8192, .value = 4096 },
	{ .size = 4097, .unit = 4096, .pool = 8192, .value = 8192 },
	{ .size = 8192, .unit = 4096, .pool = 8192, .value = 8192 },
	{ .size = 8193, .unit = 4096, .pool = 8192, .ret = -ENOSPC },
	{ .size = 1ull << 63, .unit = 4096, .pool = 8192, .ret = -ENOSPC },
	{ .size = CORE_U64_MAX, .unit = 4096, .pool = 8192, .ret = -ENOSPC },
	{ .size = 1, .unit = 4096, .pool = 0, .ret = -ENOSPC },
};

struct args_align_case {
	u64 align, unit, most;
	int ret;
	u64 value;
};

static const struct args_align_case args_align_cases[] = {
	{ .align = 0, .unit = 4096, .most = 1 << 21, .value = 4096 },
	{ .align = 1, .unit = 4096, .most = 1 << 21, .value = 4096 },
	{ .align = 4096, .unit = 4096, .most = 1 << 21, .value = 4096 },
	{ .align = 8192, .unit = 4096, .most = 1 << 21, .value = 8192 },
	{ .align = 1 << 21, .unit = 4096, .most = 1 << 21, .value = 1 << 21 },
	{ .align = 1 << 22, .unit = 4096, .most = 1 << 21, .ret = -EINVAL },
	{ .align = 4097, .unit = 4096, .most = 1 << 21, .ret = -EINVAL },
	{ .align = 12288, .unit = 4096, .most = 1 << 21, .ret = -EINVAL },
	{ .align = CORE_U64_MAX, .unit = 4096, .most = 1 << 21, .ret = -EINVAL },
};

struct args_range_case {
	u64 off, len, size;
	int ret;
};

static const struct args_range_case args_range_cases[] = {
	{ .off = 0, .len = 0, .size = 10, .ret = -EINVAL },
	{ .off = 0, .len = 1, .size = 0, .ret = -EINVAL },
	{ .off = 0, .len = 10, .size = 10 },
	{ .off = 0, .len = 11, .size = 10, .ret = -EINVAL },
	{ .off = 9, .len = 1, .size = 10 },
	{ .off = 9, .len = 2, .size = 10, .ret = -EINVAL },
	{ .off = 10, .len = 1, .size = 10, .ret = -EINVAL },
	{ .off = 5, .len = CORE_U64_MAX, .size = 10, .ret = -EINVAL },
	{ .off = CORE_U64_MAX, .len = 1, .size = CORE_U64_MAX, .ret = -EINVAL },
	{ .off = CORE_U64_MAX - 1, .len = 1, .size = CORE_U64_MAX },
};

struct args_name_case {
	char name[12];
	int ret;
};

/* in a field of 8 bytes */
static const struct args_name_case args_name_cases[] = {
	{ .name = "", .ret = -EINVAL },
	{ .name = "a" },
	{ .name = "abcdefg" },
	{ .name = "abcdefgh", .ret = -EINVAL },
	{ .name = "aZ09._-" },
	{ .name = "a:/@b" },
	{ .name = ".a", .ret = -EINVAL },
	{ .name = "/a", .ret = -EINVAL },
	{ .name = "a b", .ret = -EINVAL },
	{ .name = "a\n", .ret = -EINVAL },
	{ .name = "a\x7f", .ret = -EINVAL },
	{ .name = "\xc3\xa9", .ret = -EINVAL },
	{ .name = "a\0b", .ret = -EINVAL },
	{ .name = { 'a', 0, 0, 0, 0, 0, 0, 'x' }, .ret = -EINVAL },
};

#define ARGS_COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* 0, or 1000 times the table's number plus the case's number (from 1). */
static size_t args_replay(void)
{
	u64 value;
	size_t i;

	for (i = 0; i < ARGS_COUNT(args_size_cases); i++) {
		const struct args_size_case *c = &args_size_cases[i];

		value = 77;
		if (args_size(c->size, c->unit, c->pool, &value) != c->ret ||
		    value != (c->ret ? 77 : c->value))
			return 1001 + i;
	}
	for (i = 0; i < ARGS_COUNT(args_align_cases); i++) {
		const struct args_align_case *c = &args_align_cases[i];

		value = 77;
		if (args_align(c->align, c->unit, c->most, &value) != c->ret ||
		    value != (c->ret ? 77 : c->value))
			return 2001 + i;
	}
	for (i = 0; i < ARGS_COUNT(args_range_cases); i++) {
		const struct args_range_case *c = &args_range_cases[i];

		if (args_range(c->off, c->len, c->size) != c->ret)
			return 3001 + i;
	}
	for (i = 0; i < ARGS_COUNT(args_name_cases); i++) {
		if (args_name(args_name_cases[i].name, 8) != args_name_cases[i].ret)
			return 4001 + i;
	}
	return 0;
}

#endif
