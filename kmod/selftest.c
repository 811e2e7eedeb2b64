// SPDX-License-Identifier: GPL-2.0-only
/*
 * Replays, inside the kernel, the vectors that the unit tests of kmod/core run
 * in userspace. Built in with HEARTH_SELFTEST=y; the module then refuses to
 * load when one fails.
 */
#include <linux/slab.h>

#include "priv.h"

#ifdef HEARTH_SELFTEST

#include "../tests/vectors/args_cases.h"
#include "../tests/vectors/budget_cases.h"
#include "../tests/vectors/extent_cases.h"
#include "../tests/vectors/pressure_cases.h"

/* A replay says which step went otherwise, 0: none. */
static int check(const char *what, size_t wrong)
{
	if (!wrong) {
		pr_info("hearth: selftest of %s passed\n", what);
		return 0;
	}
	pr_err("hearth: selftest of %s: step %zu is wrong\n", what, wrong);
	return -EINVAL;
}

int hearth_selftest(void)
{
	struct budget_replay *budget = kzalloc(sizeof(*budget), GFP_KERNEL);
	struct extent_replay *extent = kzalloc(sizeof(*extent), GFP_KERNEL);
	int ret = -ENOMEM;

	if (budget && extent)
		ret = check("args", args_replay()) ?:
		      check("budget", budget_replay(budget)) ?:
		      check("extent", extent_replay(extent)) ?:
		      check("pressure", pressure_replay());
	kfree(budget);
	kfree(extent);
	return ret;
}

#else

int hearth_selftest(void)
{
	return 0;
}

#endif
