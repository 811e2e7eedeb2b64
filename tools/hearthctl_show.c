// SPDX-License-Identifier: MIT
/* hearthctl's tables: status, pools, tenants, regions; and what changes a pool or a tenant. */
#include "hearthctl.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- pools ---------------------------------------------------------------------- */

static json_t *pool_json(const struct hearth_pool_info *p)
{
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:{s:I, s:I, s:I}, s:s, s:i, s:i}",
			 "name", p->name, "kind", hearth_kind_name(p->kind),
			 "size", (json_int_t)p->size, "charged", (json_int_t)p->charged,
			 "peak", (json_int_t)p->peak, "guaranteed", (json_int_t)p->guaranteed,
			 "claimable", (json_int_t)p->claimable,
			 "largest_free", (json_int_t)p->largest_free,
			 "quarantined", (json_int_t)p->quarantined,
			 "blocks", "large", (json_int_t)p->large, "medium", (json_int_t)p->medium,
			 "small", (json_int_t)p->small,
			 "level", hearth_level_name(p->level), "regions", (int)p->regions,
			 "tenants", (int)p->tenants);
}

static int pools_table(struct ctl *c, json_t *to)
{
	char a[24], b[24], d[24], e[24], f[24];
	struct hearth_pool_info p;
	int ret;

	if (!to)
		printf("%-16s %-8s %9s %9s %9s %10s %9s %-8s %7s\n", "POOL", "KIND", "SIZE",
		       "CHARGED", "PEAK", "GUARANTEED", "LARGEST", "PRESSURE", "REGIONS");
	for (size_t i = 0; i < hearth_pool_count(c->h); i++) {
		ret = hearth_pool_info(hearth_pool_at(c->h, i), &p);
		if (ret)
			return ctl_fail(c, ret);
		if (to) {
			json_array_append_new(to, pool_json(&p));
			continue;
		}
		printf("%-16s %-8s %9s %9s %9s %10s %9s %-8s %7u\n", p.name,
		       hearth_kind_name(p.kind), ctl_bytes(p.size, a), ctl_bytes(p.charged, b),
		       ctl_bytes(p.peak, d), ctl_bytes(p.guaranteed, e),
		       p.kind == HEARTH_KIND_ACCOUNT ? "-" : ctl_bytes(p.largest_free, f),
		       hearth_level_name(p.level), p.regions);
		if (p.large + p.medium + p.small)
			printf("  blocks: %s in 2M, %s in 64K, %s in 4K\n", ctl_bytes(p.large, a),
			       ctl_bytes(p.medium, b), ctl_bytes(p.small, d));
		if (p.quarantined)
			printf("  quarantined: %s that a device still holds\n",
			       ctl_bytes(p.quarantined, a));
	}
	return EX_DONE;
}

static int pool_list(struct ctl *c)
{
	json_t *pools = c->json ? json_array() : NULL;
	int code = ctl_open(c, false);

	if (!code)
		code = pools_table(c, pools);
	if (pools && !code)
		ctl_print_json(json_pack("{s:o}", "pools", pools));
	else
		json_decref(pools);
	return code;
}

static int pool_create(struct ctl *c, int argc, char **argv)
{
	static const struct option options[] = {
		{ "node", required_argument, NULL, 'n' }, { NULL, 0, NULL, 0 },
	};
	struct hearth_pool_spec spec = { 0 };
	int opt, code, ret;

	while ((opt = getopt_long(argc, argv, "n:", options, NULL)) != -1) {
		if (opt != 'n')
			return ctl_bad_option(argv);
		spec.node = optarg;
	}
	if (argc - optind != 3)
		return ctl_usage("pool create needs NAME KIND SIZE");
	spec.name = argv[optind];
	if (hearth_kind_parse(argv[optind + 1], &spec.kind))
		return ctl_usage("%s is no kind: weights, kv, scratch or account", argv[optind + 1]);
	if (ctl_parse_bytes(argv[optind + 2], &spec.size) || spec.size == HEARTH_UNLIMITED)
		return ctl_usage("%s is no size", argv[optind + 2]);
	if (spec.node && spec.kind == HEARTH_KIND_ACCOUNT)
		return ctl_usage("a pool of kind account has no memory, so it has no node");
	code = ctl_open(c, true);
	if (code)
		return code;
	ret = hearth_pool_create(c->h, &spec, &c->err);
	return ret ? ctl_fail(c, ret) : ctl_done(c);
}

static struct hearth_pool *need_pool(struct ctl *c, const char *name)
{
	struct hearth_pool *pool = hearth_pool_named(c->h, name);

	if (!pool)
		ctl_error(EX_NOT_THERE, "there is no pool %s", name);
	return pool;
}

int cmd_pool(struct ctl *c, int argc, char **argv)
{
	struct hearth_pool *pool;
	uint64_t size = 0;
	int code, ret;

	if (argc == 1 || (argc == 2 && !strcmp(argv[1], "list")))
		return pool_list(c);
	if (!strcmp(argv[1], "create"))
		return pool_create(c, argc - 1, argv + 1);
	if (!strcmp(argv[1], "resize") && argc == 4) {
		if (ctl_parse_bytes(argv[3], &size) || size == HEARTH_UNLIMITED)
			return ctl_usage("%s is no size", argv[3]);
	} else if (strcmp(argv[1], "remove") || argc != 3) {
		return ctl_usage("pool takes list, create NAME KIND SIZE, resize NAME SIZE or remove NAME");
	}
	code = ctl_open(c, true);
	if (code)
		return code;
	pool = need_pool(c, argv[2]);
	if (!pool)
		return EX_NOT_THERE;
	ret = argc == 4 ? hearth_pool_resize(pool, size, &c->err) : hearth_pool_remove(pool, &c->err);
	return ret ? ctl_fail(c, ret) : ctl_done(c);
}

/* -- tenants -------------------------------------------------------------------- */

static json_t *row_json(const struct hearth_state_row *r)
{
	const struct hearth_usage *u = &r->usage;

	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:s, s:{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}}",
			 "pool", r->pool, "kind", hearth_kind_name(r->kind),
			 "min", ctl_json_bytes(u->budget.min), "low", ctl_json_bytes(u->budget.low),
			 "high", ctl_json_bytes(u->budget.high), "max", ctl_json_bytes(u->budget.max),
			 "current", (json_int_t)u->current, "peak", (json_int_t)u->peak,
			 "purgeable", (json_int_t)u->purgeable,
			 "level", hearth_level_name(r->level), "counters",
			 "charge", (json_int_t)u->n_charge, "refused_max", (json_int_t)u->n_refused_max,
			 "refused_pool", (json_int_t)u->n_refused_pool,
			 "refused_min", (json_int_t)u->n_refused_min,
			 "refused_queue", (json_int_t)u->n_refused_queue,
			 "high", (json_int_t)u->n_high, "reclaim", (json_int_t)u->n_reclaim,
			 "purged", (json_int_t)u->n_purged, "purged_bytes", (json_int_t)u->purged_bytes);
}

/* Whether the row says anything: charged once, or a limit set. */
static bool worth_a_line(const struct hearth_usage *u)
{
	return u->current || u->peak || u->budget.min || u->budget.low ||
	       u->budget.high != HEARTH_UNLIMITED || u->budget.max != HEARTH_UNLIMITED;
}

static void tenants_json(const struct hearth_state_row *rows, size_t n, json_t *to)
{
	json_t *budgets = NULL;
	const char *last = "";

	for (size_t i = 0; i < n; i++) {
		const struct hearth_state_row *r = &rows[i];

		if (strcmp(last, r->tenant)) {
			budgets = json_array();
			json_array_append_new(to, json_pack("{s:s, s:s, s:i, s:b, s:b, s:o}",
				"name", r->tenant, "class", hearth_class_name(r->cls),
				"priority", r->priority, "open", r->open, "kept", r->kept,
				"budgets", budgets));
			last = r->tenant;
		}
		json_array_append_new(budgets, row_json(r));
	}
}

static void print_row(const struct hearth_state_row *r, bool first)
{
	const struct hearth_usage *u = &r->usage;
	unsigned long long refused = u->n_refused_max + u->n_refused_pool + u->n_refused_min +
				     u->n_refused_queue;
	char a[24], b[24], d[24], e[24], f[24], g[24];

	if (first)
		printf("%-16s %-6s %4d %-5s", r->tenant, hearth_class_name(r->cls), r->priority,
		       r->open ? "yes" : r->kept ? "kept" : "no");
	else
		printf("%-34s", "");
	if (worth_a_line(u))
		printf(" %-12s %8s %8s %8s %8s %9s %9s %7llu %6llu", r->pool,
		       ctl_bytes(u->budget.min, a), ctl_bytes(u->budget.low, b),
		       ctl_bytes(u->budget.high, d), ctl_bytes(u->budget.max, e),
		       ctl_bytes(u->current, f), ctl_bytes(u->peak, g), refused,
		       (unsigned long long)u->n_purged);
	putchar('\n');
}

static int tenants_table(struct ctl *c, const char *only, json_t *to)
{
	struct hearth_state_row *rows = NULL;
	size_t n, kept = 0;
	int ret;

	ret = hearth_state(c->h, &rows, &n, NULL);
	if (ret)
		return ctl_fail(c, ret);
	for (size_t i = 0; i < n; i++) {
		if (!only || !strcmp(rows[i].tenant, only))
			rows[kept++] = rows[i];
	}
	if (only && !kept) {
		free(rows);
		return ctl_error(EX_NOT_THERE, "there is no tenant %s", only);
	}
	if (to)
		tenants_json(rows, kept, to);
	else
		printf("%-16s %-6s %4s %-5s %-12s %8s %8s %8s %8s %9s %9s %7s %6s\n", "TENANT",
		       "CLASS", "PRIO", "OPEN", "POOL", "MIN", "LOW", "HIGH", "MAX", "CURRENT",
		       "PEAK", "REFUSED", "PURGED");
	for (size_t i = 0; i < kept && !to; i++) {
		bool first = !i || strcmp(rows[i].tenant, rows[i - 1].tenant);
		bool last = i + 1 == kept || strcmp(rows[i].tenant, rows[i + 1].tenant);
		size_t k = i;

		if (!first)
			continue;
		/* one line per pool with something in it; one at least per tenant */
		for (bool shown = false; k < kept && !strcmp(rows[k].tenant, rows[i].tenant); k++) {
			last = k + 1 == kept || strcmp(rows[k + 1].tenant, rows[i].tenant);
			if (worth_a_line(&rows[k].usage) || (last && !shown)) {
				print_row(&rows[k], !shown);
				shown = true;
			}
		}
	}
	free(rows);
	return EX_DONE;
}

int cmd_tenant(struct ctl *c, int argc, char **argv)
{
	const char *only = NULL;
	json_t *to;
	int code, ret;

	if (argc == 3 && !strcmp(argv[1], "remove")) {
		code = ctl_open(c, true);
		if (code)
			return code;
		ret = hearth_tenant_remove(c->h, argv[2], &c->err);
		return ret ? ctl_fail(c, ret) : ctl_done(c);
	}
	if (argc == 3 && !strcmp(argv[1], "show"))
		only = argv[2];
	else if (argc != 1 && !(argc == 2 && !strcmp(argv[1], "list")))
		return ctl_usage("tenant takes list, show NAME or remove NAME");
	code = ctl_open(c, false);
	if (code)
		return code;
	to = c->json ? json_array() : NULL;
	code = tenants_table(c, only, to);
	if (to && !code)
		ctl_print_json(json_pack("{s:o}", "tenants", to));
	else
		json_decref(to);
	return code;
}

/* -- status ---------------------------------------------------------------------- */

int cmd_status(struct ctl *c, int argc, char **argv)
{
	json_t *pools, *tenants;
	struct hearth_system sys;
	char a[24], b[24];
	int code, ret;

	if (argc != 1)
		return ctl_usage("status takes no arguments");
	code = ctl_open(c, false);
	if (code)
		return code;
	ret = hearth_system(c->h, &sys);
	if (ret)
		return ctl_fail(c, ret);
	if (!c->json) {
		printf("%s\nsystem memory: %s of %s available, pressure %s\n\n",
		       hearth_backend_text(c->h), ctl_bytes(sys.available, a),
		       ctl_bytes(sys.total, b), hearth_level_name(sys.level));
		code = pools_table(c, NULL);
		putchar('\n');
		return code ? code : tenants_table(c, NULL, NULL);
	}
	pools = json_array();
	tenants = json_array();
	code = pools_table(c, pools);
	if (!code)
		code = tenants_table(c, NULL, tenants);
	if (code) {
		json_decref(pools);
		json_decref(tenants);
		return code;
	}
	ctl_print_json(json_pack("{s:s, s:{s:s, s:I, s:I, s:I}, s:o, s:o}",
				 "backend", hearth_backend_text(c->h), "system",
				 "level", hearth_level_name(sys.level),
				 "total", (json_int_t)sys.total, "available", (json_int_t)sys.available,
				 "seq", (json_int_t)sys.seq, "pools", pools, "tenants", tenants));
	return EX_DONE;
}

/* -- regions ---------------------------------------------------------------------- */

static void hex(const uint8_t *digest, char *text)
{
	for (int i = 0; i < HEARTH_DIGEST_LEN; i++)
		sprintf(text + 2 * i, "%02x", digest[i]);
}

int cmd_regions(struct ctl *c, int argc, char **argv)
{
	char digest[2 * HEARTH_DIGEST_LEN + 1], a[24];
	struct hearth_region_row *rows = NULL;
	json_t *to = NULL;
	int code, ret;
	size_t n;

	if (argc > 2)
		return ctl_usage("regions takes at most one POOL");
	code = ctl_open(c, false);
	if (code)
		return code;
	if (argc == 2 && !need_pool(c, argv[1]))
		return EX_NOT_THERE;
	ret = hearth_regions(c->h, &rows, &n);
	if (ret)
		return ctl_fail(c, ret);
	if (c->json)
		to = json_array();
	else
		printf("%-24s %-12s %-16s %9s %7s %7s %-8s %s\n", "REGION", "POOL", "TENANT", "SIZE",
		       "EXTENTS", "HANDLES", "STATE", "DIGEST");
	for (size_t i = 0; i < n; i++) {
		const struct hearth_region_row *r = &rows[i];

		if (argc == 2 && strcmp(r->pool, argv[1]))
			continue;
		hex(r->digest, digest);
		if (to) {
			json_array_append_new(to, json_pack("{s:s, s:s, s:s, s:I, s:i, s:i, s:b, s:b, s:s}",
				"name", r->name, "pool", r->pool, "tenant", r->tenant,
				"size", (json_int_t)r->size, "extents", (int)r->extents,
				"handles", (int)r->handles, "sealed", r->sealed,
				"purgeable", r->purgeable, "digest", digest));
			continue;
		}
		digest[r->name[0] ? 16 : 0] = '\0';
		printf("%-24s %-12s %-16s %9s %7u %7u %-8s %s\n", r->name[0] ? r->name : "-", r->pool,
		       r->tenant, ctl_bytes(r->size, a), r->extents, r->handles,
		       r->sealed ? "sealed" : r->purgeable ? "purgeable" : "-", digest);
	}
	free(rows);
	if (to)
		ctl_print_json(json_pack("{s:o}", "regions", to));
	return EX_DONE;
}
