// SPDX-License-Identifier: MIT
/* The whole state of /dev/hearth, and of the machine that it sees. */
#include "dev/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int next_tenant(int fd, uint32_t after, struct hearth_ioc_tenant_get *get)
{
	memset(get, 0, sizeof(*get));
	get->size = sizeof(*get);
	get->flags = HEARTH_GET_NEXT;
	get->tenant = after;
	return dev_call(fd, HEARTH_IOC_TENANT_GET, get);
}

int dev_state(struct hearth *h, struct hearth_state_row **ret_rows, size_t *ret_n,
		     uint64_t *ret_seq)
{
	struct hearth_ioc_state st = { .size = sizeof(st) };
	struct hearth_state_row *rows = NULL, *row, *more;
	struct hearth_ioc_tenant_get get;
	struct hearth_ioc_budget_get b;
	struct dev *d = dev_of(h);
	size_t n = 0;
	int ret;

	/* before the figures: events after it may be in them, none before it is missing */
	ret = dev_call(d->fd, HEARTH_IOC_STATE, &st);
	if (ret)
		return ret;
	for (uint32_t id = 0; !(ret = next_tenant(d->fd, id, &get)); id = get.tenant) {
		for (size_t i = 0; i < h->n_pools; i++) {
			ret = dev_budget_get(d->fd, get.tenant, dev_pool_id(h->pools[i]), 0, &b);
			if (ret == -ENOENT)  /* the tenant or the pool went meanwhile */
				continue;
			more = ret ? NULL : realloc(rows, (n + 1) * sizeof(*rows));
			if (!more) {
				free(rows);
				return ret ? ret : -ENOMEM;
			}
			rows = more;
			row = &rows[n++];
			memset(row, 0, sizeof(*row));
			memcpy(row->tenant, get.name, sizeof(row->tenant));
			row->cls = (enum hearth_class)get.out_class;
			row->priority = (int)get.out_priority;
			row->open = get.out_connections > 0;
			row->kept = get.out_persistent;
			memcpy(row->pool, h->pools[i]->name, sizeof(row->pool));
			row->kind = h->pools[i]->kind;
			row->level = (enum hearth_level)b.out_level;
			dev_fill_usage(&b, &row->usage);
		}
	}
	if (ret != -ENOENT) {
		free(rows);
		return ret;
	}
	*ret_rows = rows ? rows : calloc(1, sizeof(*rows));
	*ret_n = n;
	if (ret_seq)
		*ret_seq = st.out_seq;
	return *ret_rows ? 0 : -ENOMEM;
}

int dev_system(struct hearth *h, struct hearth_system *ret_sys)
{
	struct hearth_ioc_state st = { .size = sizeof(st) };
	int ret = dev_call(dev_of(h)->fd, HEARTH_IOC_STATE, &st);

	if (ret)
		return ret;
	*ret_sys = (struct hearth_system){
		.level = (enum hearth_level)st.out_system,
		.total = st.out_total,
		.available = st.out_available,
		.seq = st.out_seq,
	};
	return 0;
}
