// SPDX-License-Identifier: MIT
/* The /dev/hearth backend: connection, pools, tenants, budgets, charges. */
#include "dev/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/mono.h"

int dev_call(int fd, unsigned long request, void *arg)
{
	int ret;

	/* deadlines are absolute, so that asking again waits no longer */
	do {
		ret = ioctl(fd, request, arg);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : 0;
}

int dev_another(const struct dev *d)
{
	int fd = open(d->path, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

uint64_t dev_deadline(unsigned wait_ms)
{
	return wait_ms ? (uint64_t)mono_ns() + wait_ms * 1000000ull : HEARTH_NOWAIT;
}

int dev_refuse(struct hearth_err *err, int code, const char *tenant,
	       const struct hearth_pool *pool, const struct hearth_refusal *ref,
	       const char *what)
{
	static const enum text_limit limits[] = {
		[HEARTH_LIMIT_MAX] = TEXT_BY_MAX,     [HEARTH_LIMIT_POOL] = TEXT_BY_POOL,
		[HEARTH_LIMIT_MIN] = TEXT_BY_MIN,     [HEARTH_LIMIT_QUEUE] = TEXT_BY_QUEUE,
		[HEARTH_LIMIT_ORDER] = TEXT_BY_ORDER, [HEARTH_LIMIT_SUM] = TEXT_BY_SUM,
		[HEARTH_LIMIT_PIECES] = TEXT_BY_PIECES,
	};
	char holder[HEARTH_NAME_MAX + 1] = "";

	if (code == -EPERM)
		return err_set(err, code, "%s: only the administrator may (run it as root)", what);
	if (!ref || (code != -ENOSPC && code != -ETIMEDOUT) || ref->limit == HEARTH_LIMIT_NONE ||
	    ref->limit > HEARTH_LIMIT_PIECES)
		return err_set(err, code, "%s: %s", what, strerror(-code));
	memcpy(holder, ref->holder_name, HEARTH_NAME_MAX);
	return text_refuse(err, code, &(struct text_refusal){
		.limit = limits[ref->limit],
		.tenant = tenant,
		.pool = pool->name,
		.holder = holder,
		.wanted = ref->wanted,
		.limit_bytes = ref->limit_bytes,
		.available = ref->available,
		.holder_bytes = ref->holder_bytes,
	});
}

/* -- pools ------------------------------------------------------------------------ */

struct dev_pool *dev_pool_by_id(struct hearth *h, uint32_t id)
{
	for (size_t i = 0; i < h->n_pools; i++) {
		if (dev_pool_id(h->pools[i]) == id)
			return (struct dev_pool *)h->pools[i];
	}
	return NULL;
}

struct dev_pool *dev_pool_make(struct hearth *h, uint32_t id, uint32_t kind, const char *name)
{
	struct dev_pool *p;

	if (h->n_pools == DEV_POOLS_MAX)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->base.h = h;
	p->base.index = h->n_pools;
	p->base.kind = (enum hearth_kind)kind;
	memcpy(p->base.name, name, sizeof(p->base.name));
	p->base.name[sizeof(p->base.name) - 1] = '\0';
	p->id = id;
	h->pools[h->n_pools++] = &p->base;
	return p;
}

static int pools_read(struct dev *d, struct hearth_err *err)
{
	struct hearth_ioc_pool_get get;
	uint32_t id = 0;
	int ret;

	for (;;) {
		memset(&get, 0, sizeof(get));
		get.size = sizeof(get);
		get.flags = HEARTH_GET_NEXT;
		get.pool = id;
		ret = dev_call(d->fd, HEARTH_IOC_POOL_GET, &get);
		if (ret == -ENOENT)
			return 0;
		if (ret)
			return err_set(err, ret, "%s: cannot list the pools: %s", d->path,
				       strerror(-ret));
		id = get.pool;
		/* a kind that this library does not know is not for us to use */
		if (get.out_kind >= HEARTH_KIND_COUNT)
			continue;
		if (!dev_pool_make(&d->base, id, get.out_kind, get.name))
			return err_set(err, -EOVERFLOW, "%s has more than %d pools", d->path,
				       DEV_POOLS_MAX);
	}
}

static void pool_to_front(struct hearth *h, size_t at, size_t to)
{
	struct hearth_pool *p = h->pools[at];

	memmove(&h->pools[to + 1], &h->pools[to], (at - to) * sizeof(p));
	h->pools[to] = p;
	for (size_t i = to; i <= at; i++)
		h->pools[i]->index = i;
}

/* Finds the pools that were asked for and puts them first, in that order. */
static int pools_match(struct dev *d, const struct hearth_options *o, struct hearth_err *err)
{
	struct hearth *h = &d->base;

	for (size_t i = 0; i < o->n_pools; i++) {
		size_t at = i;

		while (at < h->n_pools && strcmp(h->pools[at]->name, o->pools[i].name))
			at++;
		if (at == h->n_pools) {
			at = i;
			while (at < h->n_pools && h->pools[at]->kind != o->pools[i].kind)
				at++;
		}
		if (at >= h->n_pools)
			return err_set(err, -ENOENT,
				       "%s has no pool %s, and no other of kind %s; make one with: hearthctl pool create %s %s SIZE",
				       d->path, o->pools[i].name, hearth_kind_name(o->pools[i].kind),
				       o->pools[i].name, hearth_kind_name(o->pools[i].kind));
		if (h->pools[at]->kind != o->pools[i].kind)
			return err_set(err, -EINVAL, "pool %s on %s is of kind %s, not %s",
				       h->pools[at]->name, d->path,
				       hearth_kind_name(h->pools[at]->kind),
				       hearth_kind_name(o->pools[i].kind));
		pool_to_front(h, at, i);
	}
	return 0;
}

static int pool_get(struct hearth_pool *pool, struct hearth_ioc_pool_get *get)
{
	memset(get, 0, sizeof(*get));
	get->size = sizeof(*get);
	get->pool = dev_pool_id(pool);
	return dev_call(dev_of(pool->h)->fd, HEARTH_IOC_POOL_GET, get);
}

static int dev_pool_info(struct hearth_pool *pool, struct hearth_pool_info *ret_info)
{
	struct hearth_ioc_pool_get get;
	int ret = pool_get(pool, &get);

	if (ret)
		return ret;
	memset(ret_info, 0, sizeof(*ret_info));
	memcpy(ret_info->name, pool->name, sizeof(ret_info->name));
	ret_info->kind = pool->kind;
	ret_info->size = get.out_bytes;
	ret_info->charged = get.out_charged;
	ret_info->peak = get.out_peak;
	ret_info->guaranteed = get.out_min_sum;
	ret_info->claimable = get.out_claimable;
	ret_info->largest_free = get.out_largest;
	ret_info->quarantined = get.out_quarantined;
	ret_info->large = get.out_large;
	ret_info->medium = get.out_medium;
	ret_info->small = get.out_small;
	ret_info->level = (enum hearth_level)get.out_level;
	ret_info->regions = get.out_regions;
	ret_info->tenants = get.out_tenants;
	return 0;
}

static int dev_admin(struct hearth *h, struct hearth_err *err)
{
	struct hearth_ioc_admin admin = { .size = sizeof(admin) };
	struct dev *d = dev_of(h);
	int ret;

	ret = dev_call(d->fd, HEARTH_IOC_ADMIN, &admin);
	if (ret)
		return err_set(err, ret, "%s: %s", d->path,
			       ret == -EPERM ? "that needs the administrator (root, or CAP_SYS_ADMIN)" :
			       strerror(-ret));
	d->admin = true;
	return 0;
}

/* -- tenants ------------------------------------------------------------------------ */

static int join(struct dev *d, int fd, const char *name, enum hearth_class cls, int priority,
		unsigned flags, uint32_t *ret_id)
{
	struct hearth_ioc_join j = { .size = sizeof(j), .flags = flags };
	struct hearth_ioc_admin admin = { .size = sizeof(admin) };
	int ret;

	snprintf(j.name, sizeof(j.name), "%s", name);
	j.tenant_class = (uint32_t)cls;
	j.priority = (uint32_t)priority;
	if (d->admin)
		dev_call(fd, HEARTH_IOC_ADMIN, &admin);
	ret = dev_call(fd, HEARTH_IOC_JOIN, &j);
	if (!ret)
		*ret_id = j.out_tenant;
	return ret;
}

static bool is_open(struct dev *d, const char *name)
{
	const struct dev_tenant *t;

	pthread_mutex_lock(&d->lock);
	for (t = d->tenants; t && strcmp(t->base.name, name); t = t->next)
		;
	pthread_mutex_unlock(&d->lock);
	return t;
}

static int dev_tenant_open(struct hearth *h, const char *name, enum hearth_class cls,
			   int priority, struct hearth_tenant **ret_t, struct hearth_err *err)
{
	struct dev *d = dev_of(h);
	struct dev_tenant *t;
	int ret;

	if (is_open(d, name))
		return err_set(err, -EEXIST, "tenant %s is open already", name);
	t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(err, -ENOMEM, "no memory for tenant %s", name);
	t->base.h = h;
	snprintf(t->base.name, sizeof(t->base.name), "%s", name);
	ret = dev_another(d);
	t->fd = ret;
	if (ret >= 0)
		ret = join(d, t->fd, name, cls, priority, HEARTH_JOIN_CREATE, &t->id);
	if (ret < 0) {
		if (t->fd >= 0)
			close(t->fd);
		free(t);
		switch (ret) {
		case -EACCES:
			return err_set(err, ret, "tenant %s is another user's", name);
		case -EPERM:
			return err_set(err, ret,
				       "tenant %s: only the administrator may give a priority above %d",
				       name, HEARTH_PRIORITY_USER_MAX);
		default:
			return err_set(err, ret, "tenant %s cannot be opened: %s", name,
				       strerror(-ret));
		}
	}
	pthread_mutex_lock(&d->lock);
	t->next = d->tenants;
	if (d->tenants)
		d->tenants->prev = t;
	d->tenants = t;
	pthread_mutex_unlock(&d->lock);
	*ret_t = &t->base;
	return 0;
}

static void dev_tenant_close(struct hearth_tenant *tenant)
{
	struct dev_tenant *t = (struct dev_tenant *)tenant;
	struct dev *d = dev_of(tenant->h);

	while (t->regions)
		dev_region_close(&t->regions->base, false);
	pthread_mutex_lock(&d->lock);
	if (t->prev)
		t->prev->next = t->next;
	else
		d->tenants = t->next;
	if (t->next)
		t->next->prev = t->prev;
	pthread_mutex_unlock(&d->lock);
	close(t->fd);
	free(t);
}

static int dev_tenant_remove(struct hearth *h, const char *name, struct hearth_err *err)
{
	struct hearth_ioc_tenant_get get = { .size = sizeof(get), .flags = HEARTH_GET_BY_NAME };
	struct hearth_ioc_tenant_remove r = { .size = sizeof(r) };
	struct dev *d = dev_of(h);
	char what[80];
	int ret;

	if (strlen(name) >= sizeof(get.name))
		return err_set(err, -ENOENT, "there is no tenant %.40s...", name);
	snprintf(get.name, sizeof(get.name), "%s", name);
	ret = dev_call(d->fd, HEARTH_IOC_TENANT_GET, &get);
	if (!ret) {
		r.tenant = get.tenant;
		ret = dev_call(d->fd, HEARTH_IOC_TENANT_REMOVE, &r);
	}
	if (ret == -ENOENT || ret == -EINVAL)
		return err_set(err, -ENOENT, "there is no tenant %s", name);
	if (ret == -EBUSY)
		return err_set(err, ret, get.out_connections ?
			       "tenant %s is open: end the program that has it open first" :
			       "tenant %s holds memory: drop its regions first", name);
	snprintf(what, sizeof(what), "tenant %s cannot be removed", name);
	return ret ? dev_refuse(err, ret, name, NULL, NULL, what) : 0;
}

/* -- charges and budgets --------------------------------------------------------------- */

static int dev_charge(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t bytes,
		      unsigned wait_ms, struct hearth_err *err)
{
	struct hearth_ioc_charge c = {
		.size = sizeof(c),
		.pool = dev_pool_id(pool),
		.bytes = bytes,
		.deadline = dev_deadline(wait_ms),
	};
	char what[80];
	int ret;

	ret = dev_call(dev_tenant_fd(t), HEARTH_IOC_CHARGE, &c);
	snprintf(what, sizeof(what), "tenant %s cannot be charged", t->name);
	return ret ? dev_refuse(err, ret, t->name, pool, &c.out_refusal, what) : 0;
}

static int dev_uncharge(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t bytes)
{
	struct hearth_ioc_uncharge c = {
		.size = sizeof(c), .pool = dev_pool_id(pool), .bytes = bytes,
	};

	return dev_call(dev_tenant_fd(t), HEARTH_IOC_UNCHARGE, &c);
}

static int budget_get(int fd, uint32_t tenant, uint32_t pool, uint32_t flags,
		      struct hearth_ioc_budget_get *get)
{
	memset(get, 0, sizeof(*get));
	get->size = sizeof(*get);
	get->flags = flags;
	get->tenant = tenant;
	get->pool = pool;
	return dev_call(fd, HEARTH_IOC_BUDGET_GET, get);
}

static void fill_usage(const struct hearth_ioc_budget_get *get, struct hearth_usage *u)
{
	*u = (struct hearth_usage){
		.budget = { .min = get->out_min, .low = get->out_low,
			    .high = get->out_high, .max = get->out_max },
		.current = get->out_current,
		.peak = get->out_peak,
		.purgeable = get->out_purgeable,
		.n_charge = get->out_n_charge,
		.n_refused_max = get->out_n_refused_max,
		.n_refused_pool = get->out_n_refused_pool,
		.n_refused_min = get->out_n_refused_min,
		.n_refused_queue = get->out_n_refused_queue,
		.n_high = get->out_n_high,
		.n_reclaim = get->out_n_reclaim,
		.n_purged = get->out_n_purged,
		.purged_bytes = get->out_purged_bytes,
	};
}

static int dev_usage_get(struct hearth_tenant *t, struct hearth_pool *pool,
			 struct hearth_usage *ret_u)
{
	struct hearth_ioc_budget_get get;
	int ret = budget_get(dev_tenant_fd(t), 0, dev_pool_id(pool), 0, &get);

	if (!ret)
		fill_usage(&get, ret_u);
	return ret;
}

static int dev_peak_reset(struct hearth_tenant *t, struct hearth_pool *pool)
{
	struct hearth_ioc_budget_get get;

	return budget_get(dev_tenant_fd(t), 0, dev_pool_id(pool), HEARTH_BUDGET_RESET_PEAK, &get);
}

static int dev_available(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t *ret_now,
			 uint64_t *ret_with_purge)
{
	struct hearth_ioc_budget_get get;
	int ret = budget_get(dev_tenant_fd(t), 0, dev_pool_id(pool), 0, &get);

	if (ret)
		return ret;
	*ret_now = get.out_available;
	*ret_with_purge = get.out_available_purge;
	return 0;
}

static void fill_entry(struct hearth_budget_entry *e, const char *tenant, uint32_t pool,
		       const struct hearth_budget *b)
{
	memset(e, 0, sizeof(*e));
	e->size = sizeof(*e);
	e->mask = HEARTH_SET_MIN | HEARTH_SET_LOW | HEARTH_SET_HIGH | HEARTH_SET_MAX;
	snprintf(e->tenant, sizeof(e->tenant), "%s", tenant);
	e->pool = pool;
	e->min = b->min;
	e->low = b->low;
	e->high = b->high;
	e->max = b->max;
}

static int budgets_set(struct dev *d, struct hearth_budget_entry *entries, size_t n,
		       struct hearth_ioc_budget_set *set)
{
	memset(set, 0, sizeof(*set));
	set->size = sizeof(*set);
	set->entries = (uint64_t)(uintptr_t)entries;
	set->count = (uint32_t)n;
	set->stride = sizeof(*entries);
	return dev_call(d->fd, HEARTH_IOC_BUDGET_SET, set);
}

/* EINVAL of a set has causes that the kernel has no room to tell apart. */
static int budget_refused(struct hearth_err *err, int ret, const char *tenant,
			  const struct hearth_pool *pool, const struct hearth_budget *b,
			  const struct hearth_refusal *ref)
{
	char what[120];

	if (ret == -EINVAL && b->min > b->max)
		return text_refuse(err, ret, &(struct text_refusal){
			.limit = TEXT_BY_ORDER, .tenant = tenant, .pool = pool->name,
			.wanted = b->min, .limit_bytes = b->max });
	if (ret == -ENOENT)
		return err_set(err, ret, "there is no tenant %s, or no pool %s", tenant, pool->name);
	snprintf(what, sizeof(what), "the budget of tenant %s in pool %s", tenant, pool->name);
	return dev_refuse(err, ret, tenant, pool, ref, what);
}

static int dev_budget_set(struct hearth_tenant *t, struct hearth_pool *pool,
			  const struct hearth_budget *b, struct hearth_err *err)
{
	struct hearth_ioc_budget_set set;
	struct hearth_budget_entry e;
	int ret;

	fill_entry(&e, t->name, dev_pool_id(pool), b);
	ret = budgets_set(dev_of(t->h), &e, 1, &set);
	return ret ? budget_refused(err, ret, t->name, pool, b, &set.out_refusal) : 0;
}

static int dev_budget_apply(struct hearth *h, const struct hearth_budget_line *lines, size_t n,
			    size_t *ret_bad, struct hearth_err *err)
{
	struct hearth_ioc_budget_set set;
	struct hearth_budget_entry *e;
	size_t bad;
	int ret;

	if (n > HEARTH_BUDGETS_MAX)
		return err_set(err, -EINVAL, "%zu budgets at once are more than %d", n,
			       HEARTH_BUDGETS_MAX);
	e = calloc(n, sizeof(*e));
	if (!e)
		return err_set(err, -ENOMEM, "no memory for %zu budgets", n);
	for (size_t i = 0; i < n; i++) {
		fill_entry(&e[i], lines[i].tenant, dev_pool_id(hearth_pool_named(h, lines[i].pool)),
			   &lines[i].budget);
		e[i].mask |= HEARTH_SET_CREATE | HEARTH_SET_CLASS | HEARTH_SET_PRIORITY;
		e[i].tenant_class = (uint32_t)lines[i].cls;
		e[i].priority = (uint32_t)lines[i].priority;
	}
	ret = budgets_set(dev_of(h), e, n, &set);
	free(e);
	if (!ret)
		return 0;
	bad = set.out_bad < n ? set.out_bad : 0;
	if (ret_bad)
		*ret_bad = bad;
	if (ret == -EINVAL) {
		for (size_t k = 0; k < bad; k++) {
			if (!strcmp(lines[k].tenant, lines[bad].tenant) &&
			    !strcmp(lines[k].pool, lines[bad].pool))
				return err_set(err, ret, "tenant %s has two budgets in pool %s",
					       lines[bad].tenant, lines[bad].pool);
		}
	}
	return budget_refused(err, ret, lines[bad].tenant, hearth_pool_named(h, lines[bad].pool),
			      &lines[bad].budget, &set.out_refusal);
}

/* -- the whole state ---------------------------------------------------------------------- */

static int next_tenant(int fd, uint32_t after, struct hearth_ioc_tenant_get *get)
{
	memset(get, 0, sizeof(*get));
	get->size = sizeof(*get);
	get->flags = HEARTH_GET_NEXT;
	get->tenant = after;
	return dev_call(fd, HEARTH_IOC_TENANT_GET, get);
}

static int dev_state(struct hearth *h, struct hearth_state_row **ret_rows, size_t *ret_n,
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
			ret = budget_get(d->fd, get.tenant, dev_pool_id(h->pools[i]), 0, &b);
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
			fill_usage(&b, &row->usage);
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

static int dev_system(struct hearth *h, struct hearth_system *ret_sys)
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

/* -- connection ------------------------------------------------------------------------------ */

static void dev_close(struct hearth *h)
{
	struct dev *d = dev_of(h);

	while (d->streams)
		dev_events_close(&d->streams->base);
	while (d->tenants)
		dev_tenant_close(&d->tenants->base);
	for (size_t i = 0; i < h->n_pools; i++)
		free(h->pools[i]);
	if (d->fd >= 0)
		close(d->fd);
	pthread_mutex_destroy(&d->lock);
	free(d->path);
	free(d);
}

static const struct hearth_ops device_ops = {
	.close = dev_close,
	.admin = dev_admin,
	.pool_info = dev_pool_info,
	.pool_create = dev_pool_create,
	.pool_remove = dev_pool_remove,
	.pool_resize = dev_pool_resize,
	.tenant_open = dev_tenant_open,
	.tenant_close = dev_tenant_close,
	.tenant_fd = dev_tenant_fd,
	.tenant_remove = dev_tenant_remove,
	.budget_set = dev_budget_set,
	.budget_apply = dev_budget_apply,
	.usage_get = dev_usage_get,
	.peak_reset = dev_peak_reset,
	.available = dev_available,
	.charge = dev_charge,
	.uncharge = dev_uncharge,
	.region_alloc = dev_region_alloc,
	.region_close = dev_region_close,
	.region_seal = dev_region_seal,
	.region_name = dev_region_name,
	.region_find = dev_region_find,
	.region_purgeable = dev_region_purgeable,
	.region_take_back = dev_region_take_back,
	.region_share = dev_region_share,
	.region_import = dev_region_import,
	.region_export = dev_region_export,
	.region_drop = dev_region_drop,
	.events_open = dev_events_open,
	.events_close = dev_events_close,
	.events_read = dev_events_read,
	.state = dev_state,
	.system = dev_system,
	.regions = dev_regions,
};

/* Why the device cannot be opened, and what to do. */
static int cannot_open(const char *path, int ret, struct hearth_err *err)
{
	switch (ret) {
	case -ENOENT:
	case -ENOTDIR:
	case -ENXIO:
	case -ENODEV:
		if (!access("/sys/class/misc/hearth", F_OK))
			return err_set(err, -ENODEV,
				       "%s is not there, though the module is loaded: a container must be given the device (--device=/dev/hearth)",
				       path);
		return err_set(err, -ENODEV,
			       "%s is not there: load the module (modprobe hearth; the package hearth-dkms has it)",
			       path);
	case -EACCES:
	case -EPERM:
		return err_set(err, -EACCES,
			       "%s may not be opened by this user: join the group hearth, or become root",
			       path);
	default:
		return err_set(err, ret, "%s cannot be opened: %s", path, strerror(-ret));
	}
}

int device_open(const struct hearth_options *o, struct hearth **ret_h, struct hearth_err *err)
{
	const char *path = o->device ? o->device : HEARTH_DEVICE;
	struct hearth_ioc_info info = { .size = sizeof(info) };
	struct dev *d;
	int ret;

	d = calloc(1, sizeof(*d));
	if (d)
		d->path = strdup(path);
	if (!d || !d->path) {
		free(d);
		return err_set(err, -ENOMEM, "no memory for a connection to %s", path);
	}
	pthread_mutex_init(&d->lock, NULL);
	d->base.ops = &device_ops;
	d->base.backend = HEARTH_BACKEND_DEVICE;
	d->page = (uint64_t)sysconf(_SC_PAGESIZE);
	d->fd = dev_another(d);
	if (d->fd < 0) {
		ret = cannot_open(path, d->fd, err);
		goto out;
	}
	ret = dev_call(d->fd, HEARTH_IOC_INFO, &info);
	if (ret) {
		ret = err_set(err, ret, "%s is not a hearth device, or of another version: %s", path,
			      strerror(-ret));
		goto out;
	}
	d->block = info.out_block_size > d->page ? info.out_block_size : d->page;
	snprintf(d->base.text, sizeof(d->base.text), "%s (module %u.%u.%u)", path,
		 info.out_version >> 16, info.out_version >> 8 & 0xff, info.out_version & 0xff);
	ret = pools_read(d, err);
	if (!ret)
		ret = pools_match(d, o, err);
	if (!ret) {
		*ret_h = &d->base;
		return 0;
	}
out:
	dev_close(&d->base);
	return ret;
}
