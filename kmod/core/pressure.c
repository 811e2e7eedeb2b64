// SPDX-License-Identifier: (GPL-2.0-only OR MIT)
/* Pressure: levels with hysteresis. The rules are told in pressure.h. */
#include "pressure.h"

int pressure_rules_check(const struct pressure_rules *rules)
{
	int i;

	for (i = PRESSURE_LOW; i < PRESSURE_LEVELS; i++) {
		if (rules->fall[i] > rules->rise[i])
			return -EINVAL;
		if (i > PRESSURE_LOW && (rules->rise[i] < rules->rise[i - 1] ||
					 rules->fall[i] < rules->fall[i - 1]))
			return -EINVAL;
	}
	return 0;
}

static u64 permille(u64 full, u32 part)
{
	u64 whole = core_div(full, 1000);
	u32 rest = (u32)(full - whole * 1000);

	return whole * part + rest * part / 1000;
}

void pressure_rules_permille(struct pressure_rules *ret_rules, u64 full, const u32 rise[3],
			     const u32 fall[3], u64 repeat_ns)
{
	int i;

	ret_rules->rise[PRESSURE_NONE] = 0;
	ret_rules->fall[PRESSURE_NONE] = 0;
	for (i = 0; i < 3; i++) {
		ret_rules->rise[i + 1] = permille(full, rise[i]);
		ret_rules->fall[i + 1] = core_min(permille(full, fall[i]), ret_rules->rise[i + 1]);
	}
	ret_rules->repeat_ns = repeat_ns;
}

void pressure_rules_default(struct pressure_rules *ret_rules, u64 full)
{
	static const u32 rise[3] = { 800, 900, 970 };
	static const u32 fall[3] = { 750, 850, 940 };
	int i;

	pressure_rules_permille(ret_rules, full, rise, fall, 1000000000ull);
	/* a level at 0 bytes would always be on */
	for (i = PRESSURE_LOW; i < PRESSURE_LEVELS; i++) {
		if (!ret_rules->rise[i])
			ret_rules->rise[i] = 1;
	}
}

void pressure_init(struct pressure *p, u64 now_ns)
{
	memset(p, 0, sizeof(*p));
	p->changed_ns = now_ns;
	p->announced_ns = now_ns;
}

/* The level that @value leads to from @from, and the last threshold passed. */
static enum pressure_level next_level(const struct pressure_rules *rules,
				      enum pressure_level from, u64 value, u64 *ret_threshold)
{
	enum pressure_level level = from;

	while (level < PRESSURE_CRITICAL && rules->rise[level + 1] != CORE_U64_MAX &&
	       value >= rules->rise[level + 1])
		*ret_threshold = rules->rise[++level];
	if (level != from)
		return level;
	while (level > PRESSURE_NONE && value < rules->fall[level])
		*ret_threshold = rules->fall[level--];
	return level;
}

int pressure_update(struct pressure *p, const struct pressure_rules *rules, u64 value,
		    u64 now_ns, u64 *seq, struct pressure_event *ret_ev)
{
	enum pressure_level was = p->level;
	u64 threshold = was > PRESSURE_NONE ? rules->rise[was] : 0;

	p->value = value;
	p->level = next_level(rules, was, value, &threshold);
	if (p->level == was && pressure_next_ns(p, rules) > now_ns)
		return 0;
	if (p->level != was)
		p->changed_ns = now_ns;
	p->announced_ns = now_ns;
	ret_ev->seq = event_seq_next(seq);
	ret_ev->time_ns = now_ns;
	ret_ev->level = p->level;
	ret_ev->was = was;
	ret_ev->value = value;
	ret_ev->threshold = threshold;
	return 1;
}

u64 pressure_next_ns(const struct pressure *p, const struct pressure_rules *rules)
{
	if (p->level == PRESSURE_NONE || !rules->repeat_ns)
		return CORE_U64_MAX;
	return core_add_cap(p->announced_ns, rules->repeat_ns);
}
