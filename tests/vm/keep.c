/* SPDX-License-Identifier: MIT */
/* hearth-keep POOL NAME: leaves a sealed region of 1 MiB behind, for tests of hearthctl. */
#include "vm.h"

static const char *pool_name, *name;

static void keep(void)
{
	struct hearth_ioc_pool_get p = { .size = sizeof(p), .flags = HEARTH_GET_BY_NAME };
	int t = vm_tenant("t-keeper"), r;

	strncpy(p.name, pool_name, sizeof(p.name) - 1);
	EXPECT(!ioctl(t, HEARTH_IOC_POOL_GET, &p));
	r = vm_region(t, p.pool, 1 * MiB);
	EXPECT(!vm_seal(r) && !vm_keep(r, name, 0xab));
}

int main(int argc, char **argv)
{
	const struct vm_case c = CASE(keep);

	if (argc != 3)
		return 2;
	pool_name = argv[1];
	name = argv[2];
	return vm_run(__FILE__, &c, 1);
}
