// SPDX-License-Identifier: MIT
#include "server/tenants.h"

#include <errno.h>
#include <stdlib.h>

#include "dev/hearth.h"

#define PRIORITY 10              /* as the model's own tenant */

struct tenants {
	struct hearth_pool *pool;
	struct hearth_tenant *llm;   /* the service's */
	struct hearth_tenant *t[CONFIG_MAX_TENANTS];
};

static int join(struct tenants *t, uint32_t i, const struct config_tenant *c, struct hearth *h, struct hearth_err *err)
{
	struct hearth_budget b;
	int rc = hearth_tenant_open(h, c->name, HEARTH_CLASS_LLM, PRIORITY, &t->t[i], err);

	if (rc || (!c->kv_min && !c->kv_max))
		return rc;
	if (hearth_backend_of(h) != HEARTH_BACKEND_EMBEDDED)
		return err_set(err, -EPERM, "the tenant \"%s\" has kv_min or kv_max in the configuration, but its budget is the administrator's: set it with hearthctl, in the pool " TENANTS_POOL, c->name);
	hearth_budget_defaults(&b);
	b.min = b.low = c->kv_min;
	if (c->kv_max)
		b.high = b.max = c->kv_max;
	rc = hearth_budget_set(t->t[i], t->pool, &b, err);
	return rc ? err_prefix(err, rc, "the tenant \"%s\"", c->name) : 0;
}

int tenants_open(const struct config *cfg, struct hearth *h, struct hearth_tenant *llm, struct hearth_pool *pool,
		 struct tenants **ret, struct hearth_err *err)
{
	struct tenants *t;
	int rc = 0;

	if (!cfg->n_tenants) {
		*ret = NULL;
		return 0;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(err, -ENOMEM, "out of memory");
	t->pool = pool;
	t->llm = llm;
	for (uint32_t i = 0; !rc && i < cfg->n_tenants; i++)
		rc = join(t, i, &cfg->tenants[i], h, err);
	if (rc) {
		tenants_close(t);
		return rc;
	}
	*ret = t;
	return 0;
}

void tenants_close(struct tenants *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < CONFIG_MAX_TENANTS; i++)
		hearth_tenant_close(t->t[i]);
	free(t);
}

static struct hearth_tenant *charged(const struct tenants *t, int who)
{
	return who < 0 ? t->llm : t->t[who];
}

uint64_t tenants_max(struct tenants *t, int who)
{
	struct hearth_usage u;

	if (!t || hearth_usage_get(charged(t, who), t->pool, &u))
		return UINT64_MAX;
	return u.budget.max;
}

int tenants_charge(struct tenants *t, int who, uint64_t bytes, struct hearth_err *err)
{
	int rc = t ? hearth_charge(charged(t, who), t->pool, bytes, 0, err) : 0;

	if (rc != -ENOSPC)
		return rc;
	err_prefix(err, rc, "the cache that this request may fill");
	if (err)
		err->code = -EDQUOT;
	return -EDQUOT;
}

void tenants_uncharge(struct tenants *t, int who, uint64_t bytes)
{
	if (t)
		hearth_uncharge(charged(t, who), t->pool, bytes);
}
