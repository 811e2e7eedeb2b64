// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pools that are made when the module is loaded, from its parameters. They
 * are made like any other, by the call that the administrator has, and before
 * the device is there. Parameters are read once: they cannot be written after.
 */
#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

#include "priv.h"

static char *weights, *kv, *scratch, *account;
module_param(weights, charp, 0444);
MODULE_PARM_DESC(weights, "pool made at load: SIZE[KMG], or node:NAME[,SIZE] for a reserved-memory node");
module_param(kv, charp, 0444);
MODULE_PARM_DESC(kv, "the same, kind kv");
module_param(scratch, charp, 0444);
MODULE_PARM_DESC(scratch, "the same, kind scratch");
module_param(account, charp, 0444);
MODULE_PARM_DESC(account, "pool for charges alone, made at load: SIZE[KMG]");

/* SIZE, or node:NAME[,SIZE]. A node that cannot serve falls back to SIZE. */
static int pool_from_param(const char *kind_name, u32 kind, const char *text)
{
	char name[HEARTH_NAME_MAX] = "", node[HEARTH_REGION_NAME_MAX] = "";
	const char *p = text, *comma;
	u64 bytes = 0;
	char *end;
	u32 id;
	int ret;

	strscpy(name, kind_name, sizeof(name));
	if (!strncmp(p, "node:", 5) && kind != HEARTH_POOL_ACCOUNT) {
		p += 5;
		comma = strchrnul(p, ',');
		if (comma - p >= sizeof(node) || comma == p)
			goto bad;
		memcpy(node, p, comma - p);
		p = *comma ? comma + 1 : NULL;
	}
	if (p) {
		bytes = memparse(p, &end);
		if (*end || end == p || !bytes)
			goto bad;
		if (kind != HEARTH_POOL_ACCOUNT && bytes & (BLOCK_SIZE_ - 1)) {
			bytes = ALIGN_DOWN(bytes, BLOCK_SIZE_);
			pr_warn("hearth: %s=%s is no multiple of 2 MiB: %llu KiB\n", kind_name,
				text, bytes >> 10);
			if (!bytes)
				goto bad;
		}
	}
	ret = -ENODEV;
	if (*node)
		ret = hearth_pool_create(name, kind, HEARTH_BACKING_RESERVED, bytes, node, &id);
	if (ret && *node && bytes) {
		pr_warn("hearth: pool %s falls back to the page allocator\n", name);
		memset(node, 0, sizeof(node));
	}
	if (ret && bytes)
		ret = hearth_pool_create(name, kind, kind == HEARTH_POOL_ACCOUNT ?
					 HEARTH_BACKING_NONE : HEARTH_BACKING_BUDDY,
					 bytes, node, &id);
	if (ret)
		pr_err("hearth: pool %s could not be made from \"%s\": error %d\n", name, text, ret);
	return ret;
bad:
	pr_err("hearth: %s=%s is not SIZE[KMG]%s\n", kind_name, text,
	       kind == HEARTH_POOL_ACCOUNT ? "" : " or node:NAME[,SIZE]");
	return -EINVAL;
}

/*
 * A parameter that cannot be understood fails the load; a pool that cannot be
 * had does not, so that the others and the device are there.
 */
int hearth_pools_init(void)
{
	static const char * const names[] = { "weights", "kv", "scratch", "account" };
	const char *const texts[] = { weights, kv, scratch, account };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (texts[i] && *texts[i] && pool_from_param(names[i], i, texts[i]) == -EINVAL) {
			hearth_pools_exit();
			return -EINVAL;
		}
	}
	return 0;
}
