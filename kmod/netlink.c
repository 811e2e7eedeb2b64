// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generic netlink family: figures by request, events to a multicast group
 * in every network namespace that has a listener. The family is described in
 * uapi/hearth_netlink.yaml, and tests/vm/netlink_spec.py compares.
 *
 * What is sent is what the ioctls tell: each object is first put into the
 * ioctl's struct, then field by field into attributes, by a table.
 */
#include <linux/hearth_netlink.h>
#include <linux/slab.h>
#include <net/genetlink.h>
#include <net/net_namespace.h>

#include "compat.h"
#include "priv.h"

/* One attribute of an object: which, and where in the struct it comes from. */
struct field {
	u16 attr;
	u16 offset;
	u16 len;	/* 4, 8; else bytes of a string or binary */
	u8 kind;
};

enum { F_INT, F_NAME, F_BYTES };

#define FIELD(a, s, f, k) \
	{ .attr = a, .offset = offsetof(struct s, f), .len = sizeof_field(struct s, f), .kind = k }
#define INT(a, s, f) FIELD(a, s, f, F_INT)
#define NAME(a, s, f) FIELD(a, s, f, F_NAME)

static const struct field pool_fields[] = {
	INT(HEARTH_A_POOL_ID, hearth_ioc_pool_get, pool),
	NAME(HEARTH_A_POOL_NAME, hearth_ioc_pool_get, name),
	INT(HEARTH_A_POOL_KIND, hearth_ioc_pool_get, out_kind),
	INT(HEARTH_A_POOL_BACKING, hearth_ioc_pool_get, out_backing),
	INT(HEARTH_A_POOL_LEVEL, hearth_ioc_pool_get, out_level),
	INT(HEARTH_A_POOL_BYTES, hearth_ioc_pool_get, out_bytes),
	INT(HEARTH_A_POOL_CHARGED, hearth_ioc_pool_get, out_charged),
	INT(HEARTH_A_POOL_PEAK, hearth_ioc_pool_get, out_peak),
	INT(HEARTH_A_POOL_MIN_SUM, hearth_ioc_pool_get, out_min_sum),
	INT(HEARTH_A_POOL_CLAIMABLE, hearth_ioc_pool_get, out_claimable),
	INT(HEARTH_A_POOL_LARGEST, hearth_ioc_pool_get, out_largest),
	INT(HEARTH_A_POOL_QUARANTINED, hearth_ioc_pool_get, out_quarantined),
	INT(HEARTH_A_POOL_LARGE, hearth_ioc_pool_get, out_large),
	INT(HEARTH_A_POOL_MEDIUM, hearth_ioc_pool_get, out_medium),
	INT(HEARTH_A_POOL_SMALL, hearth_ioc_pool_get, out_small),
	INT(HEARTH_A_POOL_OVERHEAD, hearth_ioc_pool_get, out_overhead),
	INT(HEARTH_A_POOL_REGIONS, hearth_ioc_pool_get, out_regions),
	INT(HEARTH_A_POOL_TENANTS, hearth_ioc_pool_get, out_tenants),
	INT(HEARTH_A_POOL_DEFAULT_MAX, hearth_ioc_pool_get, out_default_max),
};

static const struct field tenant_fields[] = {
	INT(HEARTH_A_TENANT_ID, hearth_ioc_tenant_get, tenant),
	NAME(HEARTH_A_TENANT_NAME, hearth_ioc_tenant_get, name),
	INT(HEARTH_A_TENANT_CLASS, hearth_ioc_tenant_get, out_class),
	INT(HEARTH_A_TENANT_PRIORITY, hearth_ioc_tenant_get, out_priority),
	INT(HEARTH_A_TENANT_UID, hearth_ioc_tenant_get, out_uid),
	INT(HEARTH_A_TENANT_CONNECTIONS, hearth_ioc_tenant_get, out_connections),
	INT(HEARTH_A_TENANT_REGIONS, hearth_ioc_tenant_get, out_regions),
	INT(HEARTH_A_TENANT_PERSISTENT, hearth_ioc_tenant_get, out_persistent),
	INT(HEARTH_A_TENANT_LEVEL, hearth_ioc_tenant_get, out_level),
};

static const struct field budget_fields[] = {
	INT(HEARTH_A_BUDGET_TENANT, hearth_ioc_budget_get, tenant),
	INT(HEARTH_A_BUDGET_POOL, hearth_ioc_budget_get, pool),
	INT(HEARTH_A_BUDGET_LIMIT_MIN, hearth_ioc_budget_get, out_min),
	INT(HEARTH_A_BUDGET_LIMIT_LOW, hearth_ioc_budget_get, out_low),
	INT(HEARTH_A_BUDGET_LIMIT_HIGH, hearth_ioc_budget_get, out_high),
	INT(HEARTH_A_BUDGET_LIMIT_MAX, hearth_ioc_budget_get, out_max),
	INT(HEARTH_A_BUDGET_CURRENT, hearth_ioc_budget_get, out_current),
	INT(HEARTH_A_BUDGET_PEAK, hearth_ioc_budget_get, out_peak),
	INT(HEARTH_A_BUDGET_PURGEABLE, hearth_ioc_budget_get, out_purgeable),
	INT(HEARTH_A_BUDGET_AVAILABLE, hearth_ioc_budget_get, out_available),
	INT(HEARTH_A_BUDGET_AVAILABLE_PURGE, hearth_ioc_budget_get, out_available_purge),
	INT(HEARTH_A_BUDGET_EXCESS, hearth_ioc_budget_get, out_excess),
	INT(HEARTH_A_BUDGET_N_CHARGE, hearth_ioc_budget_get, out_n_charge),
	INT(HEARTH_A_BUDGET_N_REFUSED_MAX, hearth_ioc_budget_get, out_n_refused_max),
	INT(HEARTH_A_BUDGET_N_REFUSED_POOL, hearth_ioc_budget_get, out_n_refused_pool),
	INT(HEARTH_A_BUDGET_N_REFUSED_MIN, hearth_ioc_budget_get, out_n_refused_min),
	INT(HEARTH_A_BUDGET_N_REFUSED_QUEUE, hearth_ioc_budget_get, out_n_refused_queue),
	INT(HEARTH_A_BUDGET_N_HIGH, hearth_ioc_budget_get, out_n_high),
	INT(HEARTH_A_BUDGET_N_RECLAIM, hearth_ioc_budget_get, out_n_reclaim),
	INT(HEARTH_A_BUDGET_N_PURGED, hearth_ioc_budget_get, out_n_purged),
	INT(HEARTH_A_BUDGET_PURGED_BYTES, hearth_ioc_budget_get, out_purged_bytes),
	INT(HEARTH_A_BUDGET_LEVEL, hearth_ioc_budget_get, out_level),
	INT(HEARTH_A_BUDGET_WAITERS, hearth_ioc_budget_get, out_waiters),
};

static const struct field region_fields[] = {
	INT(HEARTH_A_REGION_ID, hearth_ioc_region_get, region),
	INT(HEARTH_A_REGION_BYTES, hearth_ioc_region_get, out_bytes),
	INT(HEARTH_A_REGION_POOL, hearth_ioc_region_get, out_pool),
	INT(HEARTH_A_REGION_TENANT, hearth_ioc_region_get, out_tenant),
	INT(HEARTH_A_REGION_FLAGS, hearth_ioc_region_get, out_flags),
	INT(HEARTH_A_REGION_EXTENTS, hearth_ioc_region_get, out_extents),
	INT(HEARTH_A_REGION_DESCRIPTORS, hearth_ioc_region_get, out_descriptors),
	NAME(HEARTH_A_REGION_LABEL, hearth_ioc_region_get, out_label),
	NAME(HEARTH_A_REGION_NAME, hearth_ioc_region_get, out_name),
	FIELD(HEARTH_A_REGION_DIGEST, hearth_ioc_region_get, out_digest, F_BYTES),
};

static const struct field event_fields[] = {
	INT(HEARTH_A_EVENT_KIND, hearth_event_record, kind),
	INT(HEARTH_A_EVENT_SEQ, hearth_event_record, seq),
	INT(HEARTH_A_EVENT_TIME, hearth_event_record, time),
	INT(HEARTH_A_EVENT_LEVEL, hearth_event_record, level),
	INT(HEARTH_A_EVENT_WAS, hearth_event_record, was),
	INT(HEARTH_A_EVENT_LIMIT, hearth_event_record, limit),
	INT(HEARTH_A_EVENT_CURRENT, hearth_event_record, current_bytes),
	INT(HEARTH_A_EVENT_BYTES, hearth_event_record, bytes),
	INT(HEARTH_A_EVENT_DEADLINE, hearth_event_record, deadline),
	INT(HEARTH_A_EVENT_REGION, hearth_event_record, region),
};

static const struct nla_policy pool_policy[HEARTH_A_POOL_NAME + 1] = {
	[HEARTH_A_POOL_ID] = { .type = NLA_U32 },
	[HEARTH_A_POOL_NAME] = { .type = NLA_NUL_STRING, .len = HEARTH_NAME_MAX - 1 },
};

static const struct nla_policy tenant_policy[HEARTH_A_TENANT_NAME + 1] = {
	[HEARTH_A_TENANT_ID] = { .type = NLA_U32 },
	[HEARTH_A_TENANT_NAME] = { .type = NLA_NUL_STRING, .len = HEARTH_NAME_MAX - 1 },
};

static const struct nla_policy budget_policy[HEARTH_A_BUDGET_POOL + 1] = {
	[HEARTH_A_BUDGET_TENANT] = { .type = NLA_U32 },
	[HEARTH_A_BUDGET_POOL] = { .type = NLA_U32 },
};

static const struct nla_policy region_policy[HEARTH_A_REGION_ID + 1] = {
	[HEARTH_A_REGION_ID] = { .type = NLA_U64 },
};

static struct genl_family family;

/* HEARTH_A_x_PAD is 1 in every set. */
#define PAD HEARTH_A_POOL_PAD

static int put_fields(struct sk_buff *skb, const struct field *f, size_t n, const void *obj)
{
	for (; n--; f++) {
		const void *p = obj + f->offset;
		int ret;

		if (f->kind == F_NAME)
			ret = *(const char *)p ? nla_put_string(skb, f->attr, p) : 0;
		else if (f->kind == F_BYTES)
			ret = nla_put(skb, f->attr, f->len, p);
		else if (f->len == sizeof(u64))
			ret = nla_put_u64_64bit(skb, f->attr, *(const u64 *)p, PAD);
		else
			ret = nla_put_u32(skb, f->attr, *(const u32 *)p);
		if (ret)
			return ret;
	}
	return 0;
}

/* A whole message, or nothing of it. */
static int put_object(struct sk_buff *skb, u32 portid, u32 seq, int flags, u8 cmd,
		      const struct field *f, size_t n, const void *obj)
{
	void *hdr = genlmsg_put(skb, portid, seq, &family, flags, cmd);

	if (!hdr)
		return -EMSGSIZE;
	if (put_fields(skb, f, n, obj)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

/* Answers a request with one object. */
static int reply(struct genl_info *info, u8 cmd, const struct field *f, size_t n, const void *obj)
{
	struct sk_buff *skb = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);
	int ret;

	if (!skb)
		return -ENOMEM;
	ret = put_object(skb, info->snd_portid, info->snd_seq, 0, cmd, f, n, obj);
	if (ret) {
		nlmsg_free(skb);
		return ret;
	}
	return genlmsg_reply(skb, info);
}

#define REPLY(info, cmd, table, obj) reply(info, cmd, table, ARRAY_SIZE(table), obj)
#define PUT_DUMP(skb, cb, cmd, table, obj) \
	put_object(skb, NETLINK_CB((cb)->skb).portid, (cb)->nlh->nlmsg_seq, NLM_F_MULTI, cmd, \
		   table, ARRAY_SIZE(table), obj)

/* -- one at a time ---------------------------------------------------------------- */

static int put_state(struct sk_buff *skb)
{
	int ret;

	mutex_lock(&hearth.lock);
	ret = nla_put_u32(skb, HEARTH_A_STATE_LEVEL, max(hearth.system_level, hearth.pool_level)) ?:
	      nla_put_u32(skb, HEARTH_A_STATE_SYSTEM, hearth.system_level) ?:
	      nla_put_u32(skb, HEARTH_A_STATE_POOL, hearth.pool_level) ?:
	      nla_put_u64_64bit(skb, HEARTH_A_STATE_AVAILABLE, hearth.system.available,
				HEARTH_A_STATE_PAD) ?:
	      nla_put_u64_64bit(skb, HEARTH_A_STATE_TOTAL, hearth.system.total,
				HEARTH_A_STATE_PAD) ?:
	      nla_put_u64_64bit(skb, HEARTH_A_STATE_SEQ, hearth.seq, HEARTH_A_STATE_PAD) ?:
	      nla_put_u32(skb, HEARTH_A_STATE_VERSION, HEARTH_VERSION) ?:
	      nla_put_u32(skb, HEARTH_A_STATE_POOLS, hearth.n_pools) ?:
	      nla_put_u32(skb, HEARTH_A_STATE_TENANTS, hearth.n_tenants) ?:
	      nla_put_u32(skb, HEARTH_A_STATE_REGIONS, hearth.n_regions);
	mutex_unlock(&hearth.lock);
	return ret;
}

static int state_get(struct sk_buff *in, struct genl_info *info)
{
	struct sk_buff *skb = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);
	void *hdr;

	if (!skb)
		return -ENOMEM;
	hdr = genlmsg_put_reply(skb, info, &family, 0, HEARTH_NL_CMD_STATE_GET);
	if (!hdr || put_state(skb)) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return genlmsg_reply(skb, info);
}

/* A name attribute as the fixed field of a struct. */
static void copy_name(char *to, const struct nlattr *a)
{
	memset(to, 0, HEARTH_NAME_MAX);
	strscpy(to, nla_data(a), HEARTH_NAME_MAX);	/* the policy saw its end */
}

static int pool_get(struct sk_buff *in, struct genl_info *info)
{
	struct hearth_ioc_pool_get a = {};
	struct hearth_pool *pool;

	if (info->attrs[HEARTH_A_POOL_NAME]) {
		a.flags = HEARTH_GET_BY_NAME;
		copy_name(a.name, info->attrs[HEARTH_A_POOL_NAME]);
	} else if (info->attrs[HEARTH_A_POOL_ID]) {
		a.pool = nla_get_u32(info->attrs[HEARTH_A_POOL_ID]);
	} else {
		return -EINVAL;
	}
	mutex_lock(&hearth.lock);
	pool = hearth_pool_pick(a.pool, a.flags, a.name);
	if (pool)
		hearth_pool_figures(pool, &a);
	mutex_unlock(&hearth.lock);
	return pool ? REPLY(info, HEARTH_NL_CMD_POOL_GET, pool_fields, &a) : -ENOENT;
}

static int tenant_get(struct sk_buff *in, struct genl_info *info)
{
	struct hearth_ioc_tenant_get a = {};
	struct hearth_tenant *t;

	if (info->attrs[HEARTH_A_TENANT_NAME]) {
		a.flags = HEARTH_GET_BY_NAME;
		copy_name(a.name, info->attrs[HEARTH_A_TENANT_NAME]);
	} else if (info->attrs[HEARTH_A_TENANT_ID]) {
		a.tenant = nla_get_u32(info->attrs[HEARTH_A_TENANT_ID]);
	} else {
		return -EINVAL;
	}
	mutex_lock(&hearth.lock);
	t = hearth_tenant_pick(a.tenant, a.flags, a.name);
	if (t)
		hearth_tenant_figures(t, &a);
	mutex_unlock(&hearth.lock);
	return t ? REPLY(info, HEARTH_NL_CMD_TENANT_GET, tenant_fields, &a) : -ENOENT;
}

static int budget_get(struct sk_buff *in, struct genl_info *info)
{
	struct hearth_ioc_budget_get a = {};
	struct hearth_tenant *t;
	struct hearth_pool *pool;

	if (!info->attrs[HEARTH_A_BUDGET_TENANT] || !info->attrs[HEARTH_A_BUDGET_POOL])
		return -EINVAL;
	mutex_lock(&hearth.lock);
	t = hearth_tenant_pick(nla_get_u32(info->attrs[HEARTH_A_BUDGET_TENANT]), 0, NULL);
	pool = hearth_pool_get(nla_get_u32(info->attrs[HEARTH_A_BUDGET_POOL]));
	if (t && pool)
		hearth_budget_figures(t->budgets[pool->index], &a);
	mutex_unlock(&hearth.lock);
	return t && pool ? REPLY(info, HEARTH_NL_CMD_BUDGET_GET, budget_fields, &a) : -ENOENT;
}

static struct hearth_region *region_after(u64 id, bool next)
{
	unsigned long index = id;

	if (id >= ULONG_MAX)
		return NULL;
	return next ? xa_find_after(&hearth.regions, &index, ULONG_MAX, XA_PRESENT) :
		      xa_load(&hearth.regions, index);
}

static int region_get(struct sk_buff *in, struct genl_info *info)
{
	struct hearth_ioc_region_get a = {};
	struct hearth_region *r;

	if (!info->attrs[HEARTH_A_REGION_ID])
		return -EINVAL;
	mutex_lock(&hearth.lock);
	r = region_after(nla_get_u64(info->attrs[HEARTH_A_REGION_ID]), false);
	if (r)
		hearth_region_figures(r, &a);
	mutex_unlock(&hearth.lock);
	return r ? REPLY(info, HEARTH_NL_CMD_REGION_GET, region_fields, &a) : -ENOENT;
}

/* -- all of them -------------------------------------------------------------------- */

/*
 * Dumps go on after the last id that fitted (cb->args[0]); ids are never used
 * again, so what is made or goes meanwhile disturbs nothing.
 */
static int pool_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct hearth_pool *pool;

	mutex_lock(&hearth.lock);
	while ((pool = hearth_pool_pick(cb->args[0], HEARTH_GET_NEXT, NULL))) {
		struct hearth_ioc_pool_get a = {};

		hearth_pool_figures(pool, &a);
		if (PUT_DUMP(skb, cb, HEARTH_NL_CMD_POOL_GET, pool_fields, &a))
			break;
		cb->args[0] = pool->id;
	}
	mutex_unlock(&hearth.lock);
	return skb->len;
}

static int tenant_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct hearth_tenant *t;

	mutex_lock(&hearth.lock);
	while ((t = hearth_tenant_pick(cb->args[0], HEARTH_GET_NEXT, NULL))) {
		struct hearth_ioc_tenant_get a = {};

		hearth_tenant_figures(t, &a);
		if (PUT_DUMP(skb, cb, HEARTH_NL_CMD_TENANT_GET, tenant_fields, &a))
			break;
		cb->args[0] = t->id;
	}
	mutex_unlock(&hearth.lock);
	return skb->len;
}

/* args[0]: the last tenant that is done; args[1]: pools done of the next one. */
static int budget_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct hearth_tenant *t;

	mutex_lock(&hearth.lock);
	while ((t = hearth_tenant_pick(cb->args[0], HEARTH_GET_NEXT, NULL))) {
		for (; cb->args[1] < HEARTH_POOLS; cb->args[1]++) {
			struct hearth_ioc_budget_get a = {};

			if (!t->budgets[cb->args[1]])
				continue;
			hearth_budget_figures(t->budgets[cb->args[1]], &a);
			if (PUT_DUMP(skb, cb, HEARTH_NL_CMD_BUDGET_GET, budget_fields, &a))
				goto out;
		}
		cb->args[0] = t->id;
		cb->args[1] = 0;
	}
out:
	mutex_unlock(&hearth.lock);
	return skb->len;
}

static int region_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct hearth_region *r;

	mutex_lock(&hearth.lock);
	while ((r = region_after(cb->args[0], true))) {
		struct hearth_ioc_region_get a = {};

		hearth_region_figures(r, &a);
		if (PUT_DUMP(skb, cb, HEARTH_NL_CMD_REGION_GET, region_fields, &a))
			break;
		cb->args[0] = r->id;
	}
	mutex_unlock(&hearth.lock);
	return skb->len;
}

#define GENL_OP(name, fn) \
	{ .cmd = HEARTH_NL_CMD_##name##_GET, .doit = fn##_get, .dumpit = fn##_dump, \
	  .policy = fn##_policy, .maxattr = ARRAY_SIZE(fn##_policy) - 1 }

static const struct genl_ops ops[] = {
	{ .cmd = HEARTH_NL_CMD_STATE_GET, .doit = state_get },
	GENL_OP(POOL, pool),
	GENL_OP(TENANT, tenant),
	GENL_OP(BUDGET, budget),
	GENL_OP(REGION, region),
};

static const struct genl_multicast_group groups[] = {
	{ .name = HEARTH_MCGRP_EVENTS },
};

static struct genl_family family = {
	.name = HEARTH_FAMILY_NAME,
	.version = HEARTH_FAMILY_VERSION,
	.netnsok = true,
	.parallel_ops = true,
	.module = THIS_MODULE,
	.ops = ops,
	.n_ops = ARRAY_SIZE(ops),
#if HAVE_GENL_RESV_START_OP
	.resv_start_op = HEARTH_NL_CMD_EVENT + 1,
#endif
	.mcgrps = groups,
	.n_mcgrps = ARRAY_SIZE(groups),
};

/* -- events ---------------------------------------------------------------------------- */

static int put_event(struct sk_buff *skb, const struct hearth_event_record *ev)
{
	struct hearth_tenant *t = ev->tenant ? hearth_tenant_pick(ev->tenant, 0, NULL) : NULL;
	struct hearth_pool *pool = ev->pool ? hearth_pool_get(ev->pool) : NULL;
	int ret = put_fields(skb, event_fields, ARRAY_SIZE(event_fields), ev);

	if (!ret && ev->tenant)
		ret = nla_put_u32(skb, HEARTH_A_EVENT_TENANT, ev->tenant);
	if (!ret && ev->pool)
		ret = nla_put_u32(skb, HEARTH_A_EVENT_POOL, ev->pool);
	if (!ret && t)
		ret = nla_put_string(skb, HEARTH_A_EVENT_TENANT_NAME, t->name);
	if (!ret && pool)
		ret = nla_put_string(skb, HEARTH_A_EVENT_POOL_NAME, pool->name);
	return ret;
}

/*
 * To each namespace with a listener. What cannot be sent for want of memory is
 * lost, and shows as a gap in the sequence.
 */
void hearth_netlink_event(const struct hearth_event_record *ev)
{
	struct sk_buff *skb;
	struct net *net;
	void *hdr;

	lockdep_assert_held(&hearth.lock);
	rcu_read_lock();
	for_each_net_rcu(net) {
		if (!genl_has_listeners(&family, net, 0))
			continue;
		skb = genlmsg_new(NLMSG_GOODSIZE, GFP_ATOMIC);
		if (!skb)
			break;
		hdr = genlmsg_put(skb, 0, 0, &family, 0, HEARTH_NL_CMD_EVENT);
		if (!hdr || put_event(skb, ev)) {
			nlmsg_free(skb);
			break;
		}
		genlmsg_end(skb, hdr);
		genlmsg_multicast_netns(&family, net, skb, 0, 0, GFP_ATOMIC);
	}
	rcu_read_unlock();
}

int hearth_netlink_init(void)
{
	return genl_register_family(&family);
}

void hearth_netlink_exit(void)
{
	genl_unregister_family(&family);
}
