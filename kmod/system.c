// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pressure of the whole system: what is available (less free CMA, which the
 * kernel counts as available and nobody here can use), sampled; more often the
 * higher the level. That reclaim runs is heard from a shrinker, which has
 * nothing to give but makes the next sample come at once. Before the kernel
 * kills somebody for want of memory, free blocks that no guarantee needs are
 * handed back to it.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/oom.h>
#include <linux/shrinker.h>
#include <linux/vmstat.h>

#include "compat.h"
#include "priv.h"

/* Used parts of memory in 1/1000 at which a level begins, and ends. */
static unsigned int system_rise[3] = { 850, 920, 960 };
static unsigned int system_fall[3] = { 820, 900, 940 };
module_param_array(system_rise, uint, NULL, 0444);
MODULE_PARM_DESC(system_rise, "memory in use, in 1/1000, at which system pressure becomes low, medium, critical");
module_param_array(system_fall, uint, NULL, 0444);
MODULE_PARM_DESC(system_fall, "and below which it ceases to be");

#define REPEAT_NS (5ULL * NSEC_PER_SEC)
/* So long no more than low, before what was handed back is taken again, and */
#define CALM_NS (10ULL * NSEC_PER_SEC)
/* so much of it with each sample. */
#define REGROW_BYTES (64ULL << 20)

static const unsigned int sample_ms[PRESSURE_LEVELS] = { 1000, 500, 250, 100 };

static struct compat_shrinker shrinker;
static struct delayed_work sample_work;
static u64 calm_since;
/* Of the last sample that reclaim asked for; racy, and only a rate limit. */
static unsigned long kicked;
static bool asked;

/*
 * What was handed back is taken again when memory has not been short for a
 * while; never so much that this alone would make the level medium.
 */
static void take_again(const struct hearth_system *sys, u32 level, u64 used)
{
	u64 now = ktime_get_ns(), top = sys->rules.fall[PRESSURE_MEDIUM];

	if (level > PRESSURE_LOW || !calm_since)
		calm_since = now;
	else if (now - calm_since >= CALM_NS && used < top &&
		 !hearth_pool_regrow(min(REGROW_BYTES, top - used)))
		calm_since = now;
}

static void sample(struct work_struct *work)
{
	struct hearth_system *sys = &hearth.system;
	struct pressure_event pe;
	long available;
	u64 used, seq = 0;
	u32 level;

	available = si_mem_available();
#ifdef CONFIG_CMA
	available -= global_zone_page_state(NR_FREE_CMA_PAGES);
#endif
	mutex_lock(&hearth.lock);
	sys->samples++;
	sys->by_reclaim += READ_ONCE(asked);
	WRITE_ONCE(asked, false);
	hearth_pools_announce();
	sys->total = (u64)totalram_pages() << PAGE_SHIFT;
	sys->available = (u64)max(available, 0L) << PAGE_SHIFT;
	used = sys->total - min(sys->total, sys->available);
	if (pressure_update(&sys->pressure, &sys->rules, used, ktime_get_ns(), &seq, &pe)) {
		struct hearth_event_record ev = {
			.kind = HEARTH_EV_PRESSURE,
			.time = pe.time_ns,
			.level = pe.level,
			.was = pe.was,
			.limit = pe.threshold,
			.current_bytes = sys->available,
		};

		hearth_event(&ev);
		if (pe.level != pe.was) {
			WRITE_ONCE(hearth.system_level, pe.level);
			hearth_wake_conns();
		}
	}
	level = sys->pressure.level;
	hearth_pressure_repeat();
	mutex_unlock(&hearth.lock);

	take_again(sys, level, used);
	queue_delayed_work(hearth.wq, &sample_work, msecs_to_jiffies(sample_ms[level]));
}

static void sample_soon(void)
{
	if (time_before(jiffies, READ_ONCE(kicked) + HZ / 10))
		return;
	WRITE_ONCE(kicked, jiffies);
	WRITE_ONCE(asked, true);
	mod_delayed_work(hearth.wq, &sample_work, 0);
}

static unsigned long shrink_count(struct shrinker *s, struct shrink_control *sc)
{
	sample_soon();
	return SHRINK_EMPTY;
}

static unsigned long shrink_scan(struct shrinker *s, struct shrink_control *sc)
{
	return SHRINK_STOP;
}

/*
 * Called by the allocation that found nothing, which may be one of ours with
 * hearth.lock held: then there is nothing to be had here.
 */
static int out_of_memory_call(struct notifier_block *nb, unsigned long unused, void *freed)
{
	struct hearth_block *dropped = NULL;
	unsigned long *pages = freed;
	u64 n = 0;
	u32 i;

	if (!mutex_trylock(&hearth.lock))
		return NOTIFY_OK;
	for (i = 0; i < HEARTH_POOLS; i++) {
		if (hearth.pools[i])
			n += hearth_pool_hand_back(hearth.pools[i], &dropped);
	}
	hearth.system.oom_calls++;
	hearth.system.handed_back += n << PAGE_SHIFT;
	*pages += n;
	mutex_unlock(&hearth.lock);
	hearth_blocks_free(HEARTH_BACKING_BUDDY, dropped);
	sample_soon();
	return NOTIFY_OK;
}

static struct notifier_block oom_block = { .notifier_call = out_of_memory_call };

/* Grow from level to level, fall at or below rise, in 1/1000. */
static bool rules_ok(void)
{
	int i;

	for (i = 0; i < 3; i++) {
		if (system_rise[i] > 1000 || system_fall[i] > system_rise[i])
			return false;
		if (i && (system_rise[i] < system_rise[i - 1] || system_fall[i] < system_fall[i - 1]))
			return false;
	}
	return true;
}

int hearth_system_init(void)
{
	struct hearth_system *sys = &hearth.system;
	int ret;

	if (!rules_ok()) {
		pr_err("hearth: system_rise and system_fall must grow up to 1000, and fall be at or below rise\n");
		return -EINVAL;
	}
	pressure_rules_permille(&sys->rules, (u64)totalram_pages() << PAGE_SHIFT, system_rise,
				system_fall, REPEAT_NS);
	pressure_init(&sys->pressure, ktime_get_ns());
	kicked = jiffies;
	INIT_DELAYED_WORK(&sample_work, sample);
	ret = compat_shrinker_register(&shrinker, shrink_count, shrink_scan);
	if (ret)
		return ret;
	ret = register_oom_notifier(&oom_block);
	if (ret) {
		compat_shrinker_unregister(&shrinker);
		return ret;
	}
	queue_delayed_work(hearth.wq, &sample_work, 0);
	return 0;
}

void hearth_system_exit(void)
{
	unregister_oom_notifier(&oom_block);
	compat_shrinker_unregister(&shrinker);
	/* It queues itself; nobody else does any more. */
	cancel_delayed_work_sync(&sample_work);
}
