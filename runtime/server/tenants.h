/* SPDX-License-Identifier: MIT */
/*
 * Who is charged for the cache that requests fill.
 *
 * The pages lie in one region, which is the model's tenant's. Beside it there
 * is a pool without memory, "sessions", as large as that region: a request that
 * runs is charged there with what it may fill, to the tenant of its key, or to
 * the model's where the key names none. So a tenant's min in that pool is kept
 * for it, and its max is all that it gets, on /dev/hearth as in embedded pools.
 *
 * NULL stands for a server whose keys name no tenants: everything fits.
 */
#ifndef HEARTH_SERVER_TENANTS_H
#define HEARTH_SERVER_TENANTS_H

#include <stdint.h>

#include "server/config.h"

#define TENANTS_POOL "sessions"

struct hearth;
struct hearth_pool;
struct hearth_tenant;
struct tenants;

/*
 * Joins the tenants that @cfg names, with their budgets where the pools are
 * embedded; with the module these are the administrator's (-EPERM when @cfg
 * has some). @llm: who is charged for the others. 0 and *ret NULL: none are named.
 */
int tenants_open(const struct config *cfg, struct hearth *h, struct hearth_tenant *llm, struct hearth_pool *pool,
		 struct tenants **ret, struct hearth_err *err);
void tenants_close(struct tenants *t);

/* The most that @who (an index of cfg.tenants; -1: the others) may be charged now; UINT64_MAX: no limit. */
uint64_t tenants_max(struct tenants *t, int who);
/* -EDQUOT, with the figures: it does not fit now. */
int tenants_charge(struct tenants *t, int who, uint64_t bytes, struct hearth_err *err);
void tenants_uncharge(struct tenants *t, int who, uint64_t bytes);

#endif
