// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tables to look at: /sys/kernel/debug/hearth/{pools,tenants,budgets,regions,system}.
 * For people; programs use the ioctls or netlink.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "priv.h"

static struct dentry *dir;

static const char * const kinds[] = { "weights", "kv", "scratch", "account" };
static const char * const backings[] = { "none", "buddy", "reserved" };
static const char * const classes[] = { "other", "stt", "tts", "llm", "vad", "vision", "embed" };
static const char * const levels[] = { "none", "low", "medium", "critical" };

static int pools_show(struct seq_file *m, void *unused)
{
	u32 i;

	seq_puts(m, "id name kind backing bytes charged peak min_sum claimable quarantined large medium small regions level\n");
	mutex_lock(&hearth.lock);
	for (i = 0; i < HEARTH_POOLS; i++) {
		const struct hearth_pool *p = hearth.pools[i];

		if (p)
			seq_printf(m, "%u %s %s %s %llu %llu %llu %llu %llu %llu %llu %llu %llu %u %s\n",
				   p->id, p->name, kinds[p->kind], backings[p->backing],
				   p->bp.size, p->bp.charged, p->bp.peak, p->bp.min_sum,
				   p->bp.claimable, p->quarantined, p->by_kind[BLOCK_LARGE],
				   p->by_kind[BLOCK_MEDIUM], p->by_kind[BLOCK_SMALL], p->regions,
				   levels[p->pressure.level]);
	}
	mutex_unlock(&hearth.lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(pools);

static int tenants_show(struct seq_file *m, void *unused)
{
	struct hearth_tenant *t;
	unsigned long id;

	seq_puts(m, "id name class priority connections regions persistent level\n");
	mutex_lock(&hearth.lock);
	xa_for_each(&hearth.tenants, id, t)
		seq_printf(m, "%u %s %s %u %u %u %d %s\n", t->id, t->name, classes[t->class],
			   t->priority, t->connections, t->regions, t->persistent,
			   levels[t->level]);
	mutex_unlock(&hearth.lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(tenants);

static int budgets_show(struct seq_file *m, void *unused)
{
	struct hearth_tenant *t;
	unsigned long id;
	u32 i;

	seq_puts(m, "tenant pool min low high max current peak purgeable refused level\n");
	mutex_lock(&hearth.lock);
	xa_for_each(&hearth.tenants, id, t) {
		for (i = 0; i < HEARTH_POOLS; i++) {
			const struct hearth_budget *hb = t->budgets[i];
			const struct budget *b;

			if (!hb)
				continue;
			b = &hb->b;
			seq_printf(m, "%s %s %llu %llu %llu %llu %llu %llu %llu %llu %s\n", t->name,
				   hb->pool->name, b->limits.min, b->limits.low, b->limits.high,
				   b->limits.max, b->used, b->peak, b->purgeable,
				   b->n.refused_max + b->n.refused_pool + b->n.refused_min +
				   b->n.refused_queue, levels[hb->pressure.level]);
		}
	}
	mutex_unlock(&hearth.lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(budgets);

static int regions_show(struct seq_file *m, void *unused)
{
	struct hearth_region *r;
	unsigned long id;

	seq_puts(m, "id tenant pool bytes extents files flags label name\n");
	mutex_lock(&hearth.lock);
	xa_for_each(&hearth.regions, id, r) {
		struct hearth_ioc_region_get a = {};

		hearth_region_figures(r, &a);
		seq_printf(m, "%llu %s %s %llu %u %u %#x %s %s\n", r->id, r->tenant->name,
			   r->pool->name, r->bytes, a.out_extents, a.out_descriptors, a.out_flags,
			   r->label[0] ? r->label : "-", r->kept ? r->name : "-");
	}
	list_for_each_entry(r, &hearth.quarantine, dead)
		seq_printf(m, "%llu %s %s %llu quarantined %llu\n", r->id, r->tenant->name,
			   r->pool->name, r->bytes, r->held);
	mutex_unlock(&hearth.lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(regions);

static int system_show(struct seq_file *m, void *unused)
{
	const struct hearth_system *sys = &hearth.system;

	seq_puts(m, "level available total samples by_reclaim oom_calls handed_back taken_again\n");
	mutex_lock(&hearth.lock);
	seq_printf(m, "%s %llu %llu %llu %llu %llu %llu %llu\n", levels[sys->pressure.level],
		   sys->available, sys->total, sys->samples, sys->by_reclaim, sys->oom_calls,
		   sys->handed_back, sys->taken_again);
	mutex_unlock(&hearth.lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(system);

void hearth_debugfs_init(void)
{
	dir = debugfs_create_dir("hearth", NULL);
	debugfs_create_file("pools", 0400, dir, NULL, &pools_fops);
	debugfs_create_file("tenants", 0400, dir, NULL, &tenants_fops);
	debugfs_create_file("budgets", 0400, dir, NULL, &budgets_fops);
	debugfs_create_file("regions", 0400, dir, NULL, &regions_fops);
	debugfs_create_file("system", 0400, dir, NULL, &system_fops);
}

void hearth_debugfs_exit(void)
{
	debugfs_remove_recursive(dir);
}
