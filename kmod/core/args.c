// SPDX-License-Identifier: (GPL-2.0-only OR MIT)
/* Pure argument checks; the contracts are in args.h. */
#include "args.h"

int args_size(u64 size, u64 unit, u64 pool_size, u64 *ret_size)
{
	if (!size)
		return -EINVAL;
	/* pool_size is a multiple of unit, so rounding a smaller size up cannot wrap */
	if (size > pool_size)
		return -ENOSPC;
	*ret_size = (size + (unit - 1)) & ~(unit - 1);
	return 0;
}

int args_align(u64 align, u64 unit, u64 most, u64 *ret_align)
{
	if (!align) {
		*ret_align = unit;
		return 0;
	}
	if (!core_is_pow2(align) || align > most)
		return -EINVAL;
	*ret_align = core_max(align, unit);
	return 0;
}

int args_range(u64 off, u64 len, u64 size)
{
	return len && off < size && len <= size - off ? 0 : -EINVAL;
}

static bool name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-' || c == ':' || c == '/' || c == '@';
}

int args_name(const char *name, size_t cap)
{
	size_t i = 0;

	if (name[0] == '.' || name[0] == '/')
		return -EINVAL;
	while (i < cap && name[i]) {
		if (!name_byte(name[i]))
			return -EINVAL;
		i++;
	}
	if (!i || i == cap)
		return -EINVAL;
	return args_zero(name + i, cap - i);
}

int args_zero(const void *p, size_t n)
{
	const u8 *byte = p;
	size_t i;

	for (i = 0; i < n; i++) {
		if (byte[i])
			return -EINVAL;
	}
	return 0;
}

int args_limits(u64 min, u64 low, u64 high, u64 max)
{
	(void)low;
	(void)high;
	return min > max ? -EINVAL : 0;
}
