// SPDX-License-Identifier: MIT
/*
 * The embedded backend: opening and closing. What is allowed is decided in
 * kmod/core; here are the lock, the storage and the clock that the core does
 * without.
 */
#include "dev/embedded.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mono.h"

static int emb_admin(struct hearth *h, struct hearth_err *err)
{
	return 0;
}

static int emb_pool_create(struct hearth *h, const struct hearth_pool_spec *spec,
			   struct hearth_err *err)
{
	return err_set(err, -EOPNOTSUPP,
		       "pool %s cannot be made: embedded pools are made when they are opened",
		       spec->name);
}

static int emb_pool_remove(struct hearth_pool *pool, struct hearth_err *err)
{
	return err_set(err, -EOPNOTSUPP,
		       "pool %s cannot be removed: embedded pools go when they are closed",
		       pool->name);
}

static void emb_close(struct hearth *h)
{
	struct emb *e = emb_of(h);
	struct emb_rec *rec, *next;

	emb_ticker_stop(e);
	while (e->streams)
		emb_events_close(&e->streams->base);
	for (rec = e->first; rec; rec = next) {
		next = rec->next;
		if (rec->handle)
			emb_tenant_close(&rec->handle->base);
	}
	pthread_mutex_lock(&e->lock);
	for (size_t i = 0; i < h->n_pools; i++) {
		while (emb_pool_of(h->pools[i])->first)
			emb_obj_destroy(e, emb_pool_of(h->pools[i])->first, NULL);
	}
	for (rec = e->first; rec; rec = next) {
		next = rec->next;
		emb_rec_unlink(e, rec);
	}
	pthread_mutex_unlock(&e->lock);
	for (size_t i = 0; i < h->n_pools; i++)
		emb_pool_free(emb_pool_of(h->pools[i]));
	pthread_cond_destroy(&e->tick);
	pthread_cond_destroy(&e->wake);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

static const struct hearth_ops embedded_ops = {
	.close = emb_close,
	.admin = emb_admin,
	.pool_create = emb_pool_create,
	.pool_remove = emb_pool_remove,
	.pool_info = emb_pool_info,
	.pool_resize = emb_pool_resize,
	.tenant_open = emb_tenant_open,
	.tenant_close = emb_tenant_close,
	.tenant_fd = emb_tenant_fd,
	.tenant_remove = emb_tenant_remove,
	.budget_set = emb_budget_set,
	.budget_apply = emb_budget_apply,
	.usage_get = emb_usage_get,
	.peak_reset = emb_peak_reset,
	.available = emb_available,
	.charge = emb_plain_charge,
	.uncharge = emb_plain_uncharge,
	.region_alloc = emb_region_alloc,
	.region_close = emb_region_close,
	.region_seal = emb_region_seal,
	.region_name = emb_region_name,
	.region_find = emb_region_find,
	.region_purgeable = emb_region_purgeable,
	.region_take_back = emb_region_take_back,
	.region_share = emb_region_share,
	.region_import = emb_region_import,
	.region_export = emb_region_export,
	.region_drop = emb_region_drop,
	.events_open = emb_events_open,
	.events_close = emb_events_close,
	.events_read = emb_events_read,
	.state = emb_state,
	.system = emb_system,
	.regions = emb_regions,
};

int embedded_open(const struct hearth_options *o, struct hearth **ret_h, struct hearth_err *err)
{
	struct emb *e;
	int ret;

	e = calloc(1, sizeof(*e));
	if (!e)
		return err_set(err, -ENOMEM, "no memory for the embedded pools");
	e->base.ops = &embedded_ops;
	e->base.backend = HEARTH_BACKEND_EMBEDDED;
	e->page = (uint64_t)sysconf(_SC_PAGESIZE);
	snprintf(e->base.text, sizeof(e->base.text), "embedded pools (%s)",
		 o->backend == HEARTH_BACKEND_AUTO ? "no /dev/hearth" : "as asked");
	pthread_mutex_init(&e->lock, NULL);
	mono_cond(&e->wake);
	mono_cond(&e->tick);
	for (size_t i = 0; i < o->n_pools; i++) {
		ret = emb_pool_make(e, &o->pools[i], err);
		if (ret) {
			emb_close(&e->base);
			return ret;
		}
	}
	*ret_h = &e->base;
	return 0;
}
