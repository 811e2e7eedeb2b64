// SPDX-License-Identifier: GPL-2.0-only
#include "priv.h"

int hearth_netlink_init(void)
{
	return 0;
}

void hearth_netlink_exit(void)
{
}

void hearth_netlink_event(const struct hearth_event_record *ev)
{
}
