/* SPDX-License-Identifier: MIT */
#include "vm.h"

static void alloc_map_free(void)
{
	int admin = vm_admin(), t = vm_tenant("smoke");
	uint32_t pool = vm_pool(admin, "p", HEARTH_POOL_KV, 16 * MiB);
	int r = vm_region(t, pool, 3 * MiB);
	unsigned char *p = vm_map(r, 3 * MiB, PROT_READ | PROT_WRITE);
	size_t i;

	for (i = 0; i < 3 * MiB; i += 4096)
		EXPECT_EQ(p[i], 0);
	memset(p, 0x5a, 3 * MiB);
	EXPECT_EQ(vm_usage(t, 0, pool).out_current, 3 * MiB);
	vm_unmap(p, 3 * MiB);
	close(r);
	vm_pool_idle(admin, pool);
	vm_pool_remove(admin, pool);
}

static const struct vm_case cases[] = { CASE(alloc_map_free) };
VM_MAIN(cases)
