// SPDX-License-Identifier: MIT
/*
 * hearthctl watch --netlink: events as the kernel multicasts them. It needs no
 * right to open the device. Everybody hears every event there, so a gap in the
 * numbers is a loss, and is said to be one.
 */
#include "hearthctl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/hearth.h>
#include <linux/hearth_netlink.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>

#define QUEUE 64

struct ctl_netlink {
	struct nl_sock *sock;
	uint64_t seq;             /* of the last event heard */
	struct hearth_event ring[QUEUE];
	unsigned head, count;
};

static const enum hearth_event_type types[] = {
	[HEARTH_EV_PRESSURE] = HEARTH_EVENT_PRESSURE,
	[HEARTH_EV_HIGH] = HEARTH_EVENT_HIGH,
	[HEARTH_EV_REFUSED] = HEARTH_EVENT_REFUSED,
	[HEARTH_EV_RECLAIM] = HEARTH_EVENT_RECLAIM,
	[HEARTH_EV_PURGED] = HEARTH_EVENT_PURGED,
	[HEARTH_EV_BUDGET] = HEARTH_EVENT_BUDGET,
	[HEARTH_EV_TENANT_NEW] = HEARTH_EVENT_TENANT_NEW,
	[HEARTH_EV_TENANT_GONE] = HEARTH_EVENT_TENANT_GONE,
	[HEARTH_EV_POOL_NEW] = HEARTH_EVENT_POOL_NEW,
	[HEARTH_EV_POOL_SIZE] = HEARTH_EVENT_POOL_SIZE,
	[HEARTH_EV_POOL_GONE] = HEARTH_EVENT_POOL_GONE,
};

static void put(struct ctl_netlink *n, const struct hearth_event *ev)
{
	n->ring[(n->head + n->count++) % QUEUE] = *ev;
}

/* Numbers are 4 or 8 bytes long, whichever the kernel chose. */
static uint64_t number(struct nlattr *a)
{
	if (!a)
		return 0;
	return nla_len(a) >= 8 ? nla_get_u64(a) : nla_get_u32(a);
}

static void text(char *to, struct nlattr *a)
{
	if (a)
		nla_strlcpy(to, a, HEARTH_NAME_LEN);
}

static int heard(struct nl_msg *msg, void *arg)
{
	struct nlattr *a[HEARTH_A_EVENT_MAX + 1];
	struct ctl_netlink *n = arg;
	struct hearth_event ev = { 0 };
	uint64_t kind;

	if (genlmsg_hdr(nlmsg_hdr(msg))->cmd != HEARTH_NL_CMD_EVENT ||
	    genlmsg_parse(nlmsg_hdr(msg), 0, a, HEARTH_A_EVENT_MAX, NULL) < 0)
		return NL_OK;
	kind = number(a[HEARTH_A_EVENT_KIND]);
	if (!kind || kind >= sizeof(types) / sizeof(types[0]))
		return NL_OK;
	ev.seq = number(a[HEARTH_A_EVENT_SEQ]);
	ev.time_ns = number(a[HEARTH_A_EVENT_TIME]);
	if (n->seq && ev.seq > n->seq + 1)
		put(n, &(struct hearth_event){ .type = HEARTH_EVENT_LOST, .seq = ev.seq - 1,
					       .time_ns = ev.time_ns,
					       .bytes = ev.seq - n->seq - 1 });
	n->seq = ev.seq;
	ev.type = types[kind];
	ev.level = (enum hearth_level)number(a[HEARTH_A_EVENT_LEVEL]);
	ev.limit = number(a[HEARTH_A_EVENT_LIMIT]);
	ev.current = number(a[HEARTH_A_EVENT_CURRENT]);
	ev.bytes = number(a[HEARTH_A_EVENT_BYTES]);
	ev.deadline_ns = number(a[HEARTH_A_EVENT_DEADLINE]);
	text(ev.tenant, a[HEARTH_A_EVENT_TENANT_NAME]);
	text(ev.pool, a[HEARTH_A_EVENT_POOL_NAME]);
	put(n, &ev);
	/* a message may hold a loss and an event: stop while there is room for both */
	return n->count + 2 > QUEUE ? NL_STOP : NL_OK;
}

int ctl_netlink_open(struct ctl *c, struct ctl_netlink **ret_n)
{
	struct ctl_netlink *n = calloc(1, sizeof(*n));
	int group = -NLE_NOMEM;

	if (n)
		n->sock = nl_socket_alloc();
	if (n && n->sock) {
		nl_socket_disable_seq_check(n->sock);
		group = genl_connect(n->sock);
		if (!group)
			group = genl_ctrl_resolve_grp(n->sock, HEARTH_FAMILY_NAME, HEARTH_MCGRP_EVENTS);
		if (group >= 0)
			group = nl_socket_add_membership(n->sock, group);
	}
	if (group < 0 || nl_socket_set_nonblocking(n->sock)) {
		ctl_netlink_close(n);
		c->err.code = group == -NLE_OBJ_NOTFOUND ? -ENODEV : -EIO;
		snprintf(c->err.text, sizeof(c->err.text),
			 group == -NLE_OBJ_NOTFOUND ?
			 "the kernel has no netlink family hearth: load the module (modprobe hearth)" :
			 "netlink: %s", nl_geterror(group));
		return c->err.code;
	}
	nl_socket_modify_cb(n->sock, NL_CB_VALID, NL_CB_CUSTOM, heard, n);
	*ret_n = n;
	return 0;
}

int ctl_netlink_fd(const struct ctl_netlink *n)
{
	return nl_socket_get_fd(n->sock);
}

int ctl_netlink_read(struct ctl_netlink *n, struct hearth_event *ret_ev)
{
	int ret;

	if (!n->count) {
		ret = nl_recvmsgs_default(n->sock);
		/* NOMEM is a queue that ran over: the next number shows how much is lost */
		if (ret < 0 && ret != -NLE_AGAIN && ret != -NLE_NOMEM && ret != -NLE_INTR)
			return -EIO;
		if (!n->count)
			return 0;
	}
	*ret_ev = n->ring[n->head];
	n->head = (n->head + 1) % QUEUE;
	n->count--;
	return 1;
}

void ctl_netlink_close(struct ctl_netlink *n)
{
	if (n && n->sock)
		nl_socket_free(n->sock);
	free(n);
}
