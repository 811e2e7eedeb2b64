/* SPDX-License-Identifier: MIT */
/* More tenants than there can be. A program of its own: a slow kernel is spared it. */
#include "vm.h"

/* As many as can be numbered, and not one more. */
static void there_is_an_end_to_tenants(void)
{
	struct hearth_budget_entry *e = calloc(HEARTH_BUDGETS_MAX, sizeof(*e));
	struct hearth_ioc_budget_set s = {
		.size = sizeof(s), .entries = (uintptr_t)e, .count = HEARTH_BUDGETS_MAX, .stride = sizeof(*e),
	};
	struct hearth_ioc_join j = { .size = sizeof(j), .flags = HEARTH_JOIN_CREATE, .name = "one-more" };
	struct hearth_ioc_tenant_get g = { .size = sizeof(g), .flags = HEARTH_GET_NEXT };
	struct hearth_ioc_info i = { .size = sizeof(i) };
	uint32_t k, made = 0, before;
	int fd = vm_open(), admin = vm_admin();

	EXPECT(!ioctl(admin, HEARTH_IOC_INFO, &i));
	before = i.out_tenants;
	do {
		for (k = 0; k < s.count; k++) {
			memset(&e[k], 0, sizeof(e[k]));
			e[k].size = sizeof(e[k]);
			e[k].mask = HEARTH_SET_CREATE;
			snprintf(e[k].tenant, sizeof(e[k].tenant), "crowd-%u", made + k);
		}
		if (!ioctl(admin, HEARTH_IOC_BUDGET_SET, &s)) {
			made += s.count;
			continue;
		}
		/* All or nothing; the first that is too many is named. */
		EXPECT_EQ(errno, EOVERFLOW);
		EXPECT(!ioctl(admin, HEARTH_IOC_INFO, &i));
		EXPECT_EQ(i.out_tenants, before + made);
		if (!s.out_bad)
			break;
		s.count = s.out_bad;
	} while (made < 100000);
	EXPECT(made >= 1000 && made < 100000);
	EXPECT_ERR(EOVERFLOW, ioctl(fd, HEARTH_IOC_JOIN, &j));
	while (!ioctl(admin, HEARTH_IOC_TENANT_GET, &g)) {
		struct hearth_ioc_tenant_remove r = { .size = sizeof(r), .tenant = g.tenant };

		if (!strncmp(g.name, "crowd-", 6))
			EXPECT(!ioctl(admin, HEARTH_IOC_TENANT_REMOVE, &r));
	}
	EXPECT(!ioctl(fd, HEARTH_IOC_JOIN, &j));
	close(fd);
	close(admin);
	free(e);
}

static const struct vm_case cases[] = {
	CASE(there_is_an_end_to_tenants),
};
VM_MAIN(cases)
