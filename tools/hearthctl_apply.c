// SPDX-License-Identifier: MIT
/*
 * hearthctl apply: a whole configuration at once, all or nothing.
 *
 *	pools:
 *	  kv: {kind: kv, size: 1G}
 *	tenants:
 *	  llm:
 *	    class: llm
 *	    priority: 20
 *	    budget:
 *	      kv: {min: 256M, high: 700M, max: 1G}
 *
 * First everything is read and tried on embedded pools of the same sizes,
 * under the same rules as in the kernel: a file that cannot be right is
 * refused before anything is touched. Then pools are made and grown, the
 * budgets are set by one call, which the kernel takes whole or not at all, and
 * pools are shrunk; where a step fails, those before it are undone.
 */
#include "hearthctl.h"

#include <errno.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/yaml.h"

#define FILES_MAX 64
#define POOLS_MAX 16

struct pool_line {
	struct hearth_pool_spec spec;
	const struct yaml *y;
	yaml_node at;
	bool made;
	uint64_t was;             /* size before, where it was resized */
};

struct plan {
	struct yaml *files[FILES_MAX];
	int n_files;
	struct pool_line pools[POOLS_MAX];
	size_t n_pools;
	struct hearth_budget_line *lines;
	yaml_node *at;            /* where each line stands, */
	const struct yaml **in;   /* and in which file */
	size_t n_lines;
};

/* -- reading ----------------------------------------------------------------------- */

static int read_bytes(const struct yaml *y, yaml_node map, const char *key, uint64_t *ret,
		      struct hearth_err *err)
{
	yaml_node n = yaml_get(y, map, key);
	const char *text = n ? yaml_text(y, n) : NULL;

	if (!n)
		return 0;
	if (!text || ctl_parse_bytes(text, ret))
		return yaml_refuse(y, n, -EINVAL, err,
				   "%s is to be bytes, with K, M, G or T, or max", key);
	return 0;
}

static int read_pools(struct plan *p, const struct yaml *y, yaml_node pools, struct hearth_err *err)
{
	static const char *const keys[] = { "kind", "size", "node", NULL };
	int ret;

	if (!yaml_is_map(y, pools))
		return yaml_refuse(y, pools, -EINVAL, err, "pools is to be a map of names");
	for (size_t i = 0; i < yaml_len(y, pools); i++) {
		yaml_node key = yaml_key(y, pools, i), v = yaml_value(y, pools, i);
		struct pool_line *l = &p->pools[p->n_pools];
		const char *kind = NULL;

		if (p->n_pools == POOLS_MAX)
			return yaml_refuse(y, key, -EINVAL, err, "more than %d pools", POOLS_MAX);
		memset(l, 0, sizeof(*l));
		l->spec.name = yaml_text(y, key);
		l->y = y;
		l->at = key;
		if (!l->spec.name || !yaml_is_map(y, v))
			return yaml_refuse(y, key, -EINVAL, err,
					   "a pool is to be a name and {kind: ..., size: ...}");
		for (size_t k = 0; k < p->n_pools; k++) {
			if (!strcmp(p->pools[k].spec.name, l->spec.name))
				return yaml_refuse(y, key, -EINVAL, err, "pool %s is described twice",
						   l->spec.name);
		}
		ret = yaml_no_other_keys(y, v, keys, err);
		if (!ret)
			ret = yaml_get_str(y, v, "kind", &kind, err);
		if (!ret)
			ret = yaml_get_str(y, v, "node", &l->spec.node, err);
		if (!ret)
			ret = read_bytes(y, v, "size", &l->spec.size, err);
		if (ret)
			return ret;
		if (!kind)
			return yaml_refuse(y, key, -EINVAL, err, "pool %s has no kind", l->spec.name);
		if (hearth_kind_parse(kind, &l->spec.kind))
			return yaml_refuse(y, yaml_get(y, v, "kind"), -EINVAL, err,
					   "%s is no kind: weights, kv, scratch or account", kind);
		if ((!l->spec.size && !l->spec.node) || l->spec.size == HEARTH_UNLIMITED)
			return yaml_refuse(y, key, -EINVAL, err, "pool %s needs a size", l->spec.name);
		p->n_pools++;
	}
	return 0;
}

static int add_line(struct plan *p, const struct yaml *y, yaml_node at,
		    const struct hearth_budget_line *line)
{
	struct hearth_budget_line *lines;
	const struct yaml **in;
	yaml_node *nodes;

	lines = realloc(p->lines, (p->n_lines + 1) * sizeof(*lines));
	if (lines)
		p->lines = lines;
	nodes = realloc(p->at, (p->n_lines + 1) * sizeof(*nodes));
	if (nodes)
		p->at = nodes;
	in = realloc(p->in, (p->n_lines + 1) * sizeof(*in));
	if (in)
		p->in = in;
	if (!lines || !nodes || !in)
		return -ENOMEM;
	p->lines[p->n_lines] = *line;
	p->at[p->n_lines] = at;
	p->in[p->n_lines++] = y;
	return 0;
}

static int read_tenant(struct plan *p, const struct yaml *y, yaml_node key, yaml_node v,
		       struct hearth_err *err)
{
	static const char *const keys[] = { "class", "priority", "budget", NULL };
	static const char *const limits[] = { "min", "low", "high", "max", NULL };
	struct hearth_budget_line line = { .tenant = yaml_text(y, key), .cls = HEARTH_CLASS_OTHER };
	const char *cls = NULL;
	int64_t priority = 100;
	yaml_node budget;
	int ret;

	if (!line.tenant || !yaml_is_map(y, v))
		return yaml_refuse(y, key, -EINVAL, err,
				   "a tenant is to be a name and {class: ..., priority: ..., budget: ...}");
	for (size_t k = 0; k < p->n_lines; k++) {
		if (!strcmp(p->lines[k].tenant, line.tenant))
			return yaml_refuse(y, key, -EINVAL, err, "tenant %s is described twice",
					   line.tenant);
	}
	ret = yaml_no_other_keys(y, v, keys, err);
	if (!ret)
		ret = yaml_get_str(y, v, "class", &cls, err);
	if (!ret)
		ret = yaml_get_int(y, v, "priority", 0, 1000, &priority, err);
	if (ret)
		return ret;
	if (cls && hearth_class_parse(cls, &line.cls))
		return yaml_refuse(y, yaml_get(y, v, "class"), -EINVAL, err,
				   "%s is no class: stt, tts, llm, vad, vision, embed or other", cls);
	line.priority = (int)priority;
	budget = yaml_get(y, v, "budget");
	if (!budget || !yaml_is_map(y, budget) || !yaml_len(y, budget))
		return yaml_refuse(y, budget ? budget : key, -EINVAL, err,
				   "tenant %s needs a budget: a map of pools and their limits",
				   line.tenant);
	for (size_t i = 0; i < yaml_len(y, budget); i++) {
		yaml_node pool = yaml_key(y, budget, i), b = yaml_value(y, budget, i);

		line.pool = yaml_text(y, pool);
		hearth_budget_defaults(&line.budget);
		if (!line.pool || !yaml_is_map(y, b))
			return yaml_refuse(y, pool, -EINVAL, err,
					   "a budget is to be a pool and {min: ..., low: ..., high: ..., max: ...}");
		ret = yaml_no_other_keys(y, b, limits, err);
		if (!ret)
			ret = read_bytes(y, b, "min", &line.budget.min, err);
		if (!ret)
			ret = read_bytes(y, b, "low", &line.budget.low, err);
		if (!ret)
			ret = read_bytes(y, b, "high", &line.budget.high, err);
		if (!ret)
			ret = read_bytes(y, b, "max", &line.budget.max, err);
		if (!ret && add_line(p, y, pool, &line))
			ret = yaml_refuse(y, pool, -ENOMEM, err, "no memory");
		if (ret)
			return ret;
	}
	return 0;
}

static int read_file(struct plan *p, const char *path, struct hearth_err *err)
{
	static const char *const keys[] = { "pools", "tenants", NULL };
	const struct yaml *y;
	yaml_node root, pools, tenants;
	int ret;

	if (p->n_files == FILES_MAX)
		return -E2BIG;
	ret = yaml_load_file(path, &p->files[p->n_files], err);
	if (ret)
		return ret;
	y = p->files[p->n_files++];
	root = yaml_root(y);
	if (!root || yaml_is_null(y, root))
		return 0;
	if (!yaml_is_map(y, root))
		return yaml_refuse(y, root, -EINVAL, err, "the file is to be a map of pools and tenants");
	ret = yaml_no_other_keys(y, root, keys, err);
	pools = yaml_get(y, root, "pools");
	tenants = yaml_get(y, root, "tenants");
	if (!ret && pools && !yaml_is_null(y, pools))
		ret = read_pools(p, y, pools, err);
	if (ret || !tenants || yaml_is_null(y, tenants))
		return ret;
	if (!yaml_is_map(y, tenants))
		return yaml_refuse(y, tenants, -EINVAL, err, "tenants is to be a map of names");
	for (size_t i = 0; i < yaml_len(y, tenants) && !ret; i++)
		ret = read_tenant(p, y, yaml_key(y, tenants, i), yaml_value(y, tenants, i), err);
	return ret;
}

static int is_yaml(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return d->d_name[0] != '.' && ((n > 5 && !strcmp(d->d_name + n - 5, ".yaml")) ||
				       (n > 4 && !strcmp(d->d_name + n - 4, ".yml")));
}

/* A file, or all *.yaml of a directory in the order of their names. */
static int read_path(struct plan *p, const char *path, struct hearth_err *err)
{
	struct dirent **names = NULL;
	char file[4096];
	struct stat st;
	int n, ret = 0;

	if (stat(path, &st) || !S_ISDIR(st.st_mode))
		return read_file(p, path, err);
	n = scandir(path, &names, is_yaml, alphasort);
	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		if (!ret && snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name) >= (int)sizeof(file))
			ret = -ENAMETOOLONG;
		if (!ret)
			ret = read_file(p, file, err);
		free(names[i]);
	}
	free(names);
	return ret;
}

/* -- trying ------------------------------------------------------------------------- */

/* The size a pool will have: as written, or as it is (a node tells its own). */
static uint64_t size_to_be(struct ctl *c, const struct pool_line *l)
{
	struct hearth_pool *have = c->h ? hearth_pool_named(c->h, l->spec.name) : NULL;
	struct hearth_pool_info info;

	if (l->spec.size)
		return l->spec.size;
	if (have && !hearth_pool_info(have, &info))
		return info.size;
	return INT64_MAX / 2;
}

/*
 * Applies the plan to embedded pools that are as the device's will be, with
 * the guarantees that tenants have there who are not in the plan.
 */
static int try_it(struct ctl *c, struct plan *p, size_t *ret_bad)
{
	struct hearth_pool_spec specs[POOLS_MAX];
	struct hearth_state_row *rows = NULL;
	struct hearth_pool_info info;
	struct hearth_options o;
	struct hearth *trial = NULL;
	size_t n = 0, n_rows = 0;
	int ret = 0;

	*ret_bad = p->n_lines;
	for (size_t i = 0; i < p->n_pools; i++) {
		specs[n] = p->pools[i].spec;
		specs[n++].size = size_to_be(c, &p->pools[i]);
	}
	for (size_t i = 0; c->h && i < hearth_pool_count(c->h); i++) {
		size_t k = 0;

		if (hearth_pool_info(hearth_pool_at(c->h, i), &info))
			continue;
		while (k < p->n_pools && strcmp(p->pools[k].spec.name, info.name))
			k++;
		if (k < p->n_pools || n == POOLS_MAX)
			continue;
		specs[n++] = (struct hearth_pool_spec){
			.kind = info.kind, .size = info.size,
			.name = hearth_pool_at(c->h, i) ? strdup(info.name) : NULL,
		};
	}
	hearth_options_defaults(&o);
	o.backend = HEARTH_BACKEND_EMBEDDED;
	o.pools = specs;
	o.n_pools = n;
	ret = hearth_open(&o, &trial, &c->err);
	if (!ret && c->h)
		ret = hearth_state(c->h, &rows, &n_rows, NULL);
	for (size_t i = 0; i < n_rows && !ret; i++) {
		struct hearth_budget_line l = {
			.tenant = rows[i].tenant, .pool = rows[i].pool, .cls = rows[i].cls,
			.priority = rows[i].priority, .budget = rows[i].usage.budget,
		};
		bool planned = false;

		for (size_t k = 0; k < p->n_lines; k++)
			planned |= !strcmp(p->lines[k].tenant, l.tenant) &&
				   !strcmp(p->lines[k].pool, l.pool);
		/* what stays as it is must still fit; a shrunk pool is the plan's fault */
		if (!planned && l.budget.min)
			ret = hearth_budget_apply(trial, &l, 1, NULL, &c->err);
	}
	if (!ret)
		ret = hearth_budget_apply(trial, p->lines, p->n_lines, ret_bad, &c->err);
	hearth_close(trial);
	free(rows);
	for (size_t i = p->n_pools; i < n; i++)
		free((char *)specs[i].name);
	return ret;
}

/* -- doing --------------------------------------------------------------------------- */

/* Everything as it was, so that it can be put back. */
struct before {
	struct hearth_state_row *rows;
	size_t n;
};

/*
 * One pool as the plan wants it. Growing and making come before the budgets,
 * shrinking after them: guarantees may go down together with the pool.
 */
static int do_pool(struct ctl *c, struct pool_line *l, bool shrink)
{
	struct hearth_pool *pool = hearth_pool_named(c->h, l->spec.name);
	struct hearth_pool_info info;
	struct hearth_err was;
	int ret;

	if (!pool) {
		ret = hearth_pool_create(c->h, &l->spec, &c->err);
		l->made = !ret;
		return ret;
	}
	ret = hearth_pool_info(pool, &info);
	if (ret)
		return ret;
	if (info.kind != l->spec.kind)
		return yaml_refuse(l->y, l->at, -EINVAL, &c->err, "pool %s is there and of kind %s",
				   l->spec.name, hearth_kind_name(info.kind));
	if (!l->spec.size || info.size == l->spec.size || (l->spec.size < info.size) != shrink)
		return 0;
	ret = hearth_pool_resize(pool, l->spec.size, &c->err);
	if (ret) {
		was = c->err;
		return yaml_refuse(l->y, l->at, ret, &c->err, "%s", was.text);
	}
	l->was = info.size;
	return 0;
}

static int do_pools(struct ctl *c, struct plan *p, bool shrink)
{
	int ret = 0;

	for (size_t i = 0; i < p->n_pools && !ret; i++)
		ret = do_pool(c, &p->pools[i], shrink);
	return ret;
}

static void complain(const char *what, const char *name, const struct hearth_err *err)
{
	ctl_error(EX_FAILED, "%s %s could not be put back: %s", what, name, err->text);
}

/* The budgets of before; tenants that were not there are forgotten again. */
static void undo_budgets(struct ctl *c, struct plan *p, const struct before *was)
{
	struct hearth_budget_line *lines;
	struct hearth_err err = { 0 };
	size_t n = 0, bad;

	lines = calloc(was->n ? was->n : 1, sizeof(*lines));
	for (size_t i = 0; i < was->n && lines; i++) {
		const struct hearth_state_row *r = &was->rows[i];
		bool planned = false;

		for (size_t k = 0; k < p->n_lines; k++)
			planned |= !strcmp(p->lines[k].tenant, r->tenant);
		if (planned)
			lines[n++] = (struct hearth_budget_line){
				.tenant = r->tenant, .cls = r->cls, .priority = r->priority,
				.pool = r->pool, .budget = r->usage.budget };
	}
	if (lines && hearth_budget_apply(c->h, lines, n, &bad, &err))
		complain("tenant", lines[bad < n ? bad : 0].tenant, &err);
	free(lines);
	for (size_t i = 0; i < p->n_lines; i++) {
		size_t k = 0;

		while (k < was->n && strcmp(was->rows[k].tenant, p->lines[i].tenant))
			k++;
		if (k == was->n)
			hearth_tenant_remove(c->h, p->lines[i].tenant, &err);
	}
}

/* Those that were shrunk have their size again; the others wait for the budgets. */
static void undo_pools_shrunk(struct ctl *c, struct plan *p)
{
	struct hearth_err err = { 0 };

	for (size_t i = 0; i < p->n_pools; i++) {
		struct pool_line *l = &p->pools[i];

		if (l->made || l->was <= l->spec.size)
			continue;
		if (hearth_pool_resize(hearth_pool_named(c->h, l->spec.name), l->was, &err))
			complain("pool", l->spec.name, &err);
		l->was = 0;
	}
}

static void undo_pools(struct ctl *c, struct plan *p)
{
	struct hearth_err err = { 0 };

	for (size_t i = p->n_pools; i-- > 0;) {
		struct pool_line *l = &p->pools[i];
		struct hearth_pool *pool = hearth_pool_named(c->h, l->spec.name);
		int ret = 0;

		if (l->made)
			ret = hearth_pool_remove(pool, &err);
		else if (l->was)
			ret = hearth_pool_resize(pool, l->was, &err);
		if (ret)
			complain("pool", l->spec.name, &err);
	}
}

static void plan_free(struct plan *p)
{
	for (int i = 0; i < p->n_files; i++)
		yaml_close(p->files[i]);
	free(p->lines);
	free(p->at);
	free(p->in);
}

/* Puts file, line and column before the sentence of a line that was refused. */
static void place(struct plan *p, size_t bad, int ret, struct hearth_err *err)
{
	struct hearth_err was = *err;

	if (bad < p->n_lines)
		yaml_refuse(p->in[bad], p->at[bad], ret, err, "%s", was.text);
}

static int report(struct ctl *c, const struct plan *p, bool dry)
{
	if (c->json)
		ctl_print_json(json_pack("{s:b, s:i, s:i}", "applied", !dry,
					 "pools", (int)p->n_pools, "budgets", (int)p->n_lines));
	else
		printf("%s: %zu pools, %zu budgets\n", dry ? "would apply" : "applied", p->n_pools,
		       p->n_lines);
	return EX_DONE;
}

static int run(struct ctl *c, struct plan *p, bool dry)
{
	struct before was = { 0 };
	struct hearth_options o;
	bool budgets = false;
	size_t bad = 0;
	int ret, code;

	if (dry) {
		/* without a device the file's own pools are all there is to try it on */
		hearth_options_defaults(&o);
		o.backend = HEARTH_BACKEND_DEVICE;
		if (c->device)
			o.device = c->device;
		ret = hearth_open(&o, &c->h, &c->err);
		if (ret && (ret != -ENODEV || c->device))
			return ctl_fail(c, ret);
	} else {
		code = ctl_open(c, true);
		if (code)
			return code;
	}
	ret = try_it(c, p, &bad);
	if (ret) {
		place(p, bad, ret, &c->err);
		return ctl_error(EX_BAD_FILE, "%s", c->err.text[0] ? c->err.text : strerror(-ret));
	}
	if (dry)
		return report(c, p, true);
	ret = hearth_state(c->h, &was.rows, &was.n, NULL);
	if (!ret)
		ret = do_pools(c, p, false);
	if (!ret) {
		ret = hearth_budget_apply(c->h, p->lines, p->n_lines, &bad, &c->err);
		if (ret)
			place(p, bad, ret, &c->err);
		else
			budgets = true;
	}
	if (!ret)
		ret = do_pools(c, p, true);
	if (ret) {
		code = ctl_fail(c, ret);
		/* a pool that was shrunk grows first, or old guarantees would not fit */
		if (budgets) {
			undo_pools_shrunk(c, p);
			undo_budgets(c, p, &was);
		}
		undo_pools(c, p);
		free(was.rows);
		return code;
	}
	free(was.rows);
	return report(c, p, false);
}

int cmd_apply(struct ctl *c, int argc, char **argv)
{
	struct plan p = { 0 };
	bool dry = false;
	int code = EX_USAGE_, ret = 0;

	if (argc > 1 && !strcmp(argv[1], "--dry-run")) {
		dry = true;
		argc--;
		argv++;
	}
	if (argc < 2 || argv[1][0] == '-')
		return ctl_usage("apply needs a file or a directory");
	for (int i = 1; i < argc && !ret; i++)
		ret = read_path(&p, argv[i], &c->err);
	if (ret)
		code = ctl_error(EX_BAD_FILE, "%s", c->err.text[0] ? c->err.text : strerror(-ret));
	else
		code = run(c, &p, dry);
	plan_free(&p);
	return code;
}
