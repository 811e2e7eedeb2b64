// SPDX-License-Identifier: MIT
/* Regions of /dev/hearth: a descriptor each, mapped at an address that stays. */
#include "dev/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Maps the region at a multiple of @align. */
static int map(int fd, uint64_t size, uint64_t page, uint64_t align, int prot, void **ret_ptr)
{
	uint64_t slack = align > page ? align - page : 0, whole = size + slack;
	char *base, *at;
	int ret = 0;

	if (whole < size || whole > SIZE_MAX)
		return -ENOMEM;
	base = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	at = base;
	if (slack)
		at = (char *)(((uintptr_t)base + align - 1) & ~(uintptr_t)(align - 1));
	if (at > base)
		munmap(base, (size_t)(at - base));
	if (base + whole > at + size)
		munmap(at + size, (size_t)(base + whole - (at + size)));
	if (mmap(at, size, prot, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
		ret = -errno;
		munmap(at, size);
		return ret;
	}
	*ret_ptr = at;
	return 0;
}

/* Makes the handle of a descriptor, which it owns then; on failure it is closed. */
static int region_make(struct hearth_tenant *t, struct hearth_pool *pool, int fd, uint64_t id,
		       uint64_t size, uint64_t align, bool sealed, struct dev_region **ret_r)
{
	struct dev *d = dev_of(t->h);
	struct dev_tenant *dt = (struct dev_tenant *)t;
	struct dev_region *r;
	int ret = -ENOMEM;

	r = calloc(1, sizeof(*r));
	if (r)
		ret = map(fd, size, d->page, align, sealed ? PROT_READ : PROT_READ | PROT_WRITE,
			  &r->base.ptr);
	if (ret) {
		free(r);
		close(fd);
		return ret;
	}
	r->base.t = t;
	r->base.pool = pool;
	r->base.size = size;
	r->base.sealed = sealed;
	r->fd = fd;
	r->id = id;
	pthread_mutex_lock(&d->lock);
	r->next = dt->regions;
	if (r->next)
		r->next->prev = r;
	dt->regions = r;
	pthread_mutex_unlock(&d->lock);
	*ret_r = r;
	return 0;
}

int dev_region_alloc(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t size,
		     uint64_t align, unsigned flags, unsigned wait_ms,
		     struct hearth_region **ret_r, struct hearth_err *err)
{
	struct hearth_ioc_alloc a = {
		.size = sizeof(a),
		.flags = flags & HEARTH_REGION_CONTIGUOUS ? HEARTH_ALLOC_CONTIG : 0,
		.pool = dev_pool_id(pool),
		.bytes = size,
		.deadline = dev_deadline(wait_ms),
	};
	struct dev_region *r = NULL;
	char what[80];
	int ret;

	snprintf(what, sizeof(what), "tenant %s cannot have a region", t->name);
	ret = dev_call(dev_tenant_fd(t), HEARTH_IOC_ALLOC, &a);
	if (ret)
		return dev_refuse(err, ret, t->name, pool, &a.out_refusal, what);
	ret = region_make(t, pool, a.out_fd, a.out_region, a.out_bytes, align, false, &r);
	if (ret)
		return err_set(err, ret, "%s mapped: %s", what, strerror(-ret));
	*ret_r = &r->base;
	return 0;
}

void dev_region_close(struct hearth_region *region, bool free_it)
{
	struct dev_region *r = (struct dev_region *)region;
	struct dev_tenant *t = (struct dev_tenant *)region->t;
	struct hearth_ioc_drop drop = { .size = sizeof(drop), .region = r->id };
	struct dev *d = dev_of(region->t->h);

	pthread_mutex_lock(&d->lock);
	if (r->prev)
		r->prev->next = r->next;
	else
		t->regions = r->next;
	if (r->next)
		r->next->prev = r->prev;
	pthread_mutex_unlock(&d->lock);
	/* fails where the region is another tenant's: then only the handle goes */
	if (free_it && r->named)
		dev_call(t->fd, HEARTH_IOC_DROP, &drop);
	munmap(region->ptr, region->size);
	close(r->fd);
	free(r);
}

int dev_region_seal(struct hearth_region *region, struct hearth_err *err)
{
	struct dev_region *r = (struct dev_region *)region;
	struct hearth_ioc_seal seal = { .size = sizeof(seal) };
	int ret, prot;

	if (hearth_region_sealed(region))
		return 0;
	/* no mapping that could be written may remain; the address stays ours */
	if (mmap(region->ptr, region->size, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		return err_set(err, -errno, "the region cannot be sealed: %s", strerror(errno));
	ret = dev_call(r->fd, HEARTH_IOC_SEAL, &seal);
	prot = ret ? PROT_READ | PROT_WRITE : PROT_READ;
	if (ret != -ESTALE &&
	    mmap(region->ptr, region->size, prot, MAP_SHARED | MAP_FIXED, r->fd, 0) == MAP_FAILED)
		return err_set(err, -errno, "the region cannot be mapped again: %s", strerror(errno));
	switch (ret) {
	case 0:
		__atomic_store_n(&region->sealed, true, __ATOMIC_RELEASE);
		return 0;
	case -ESTALE:
		return err_set(err, ret, "the region was purged and cannot be sealed");
	case -EBUSY:
		return err_set(err, ret,
			       "the region cannot be sealed: somebody has it mapped or exported for writing");
	default:
		return err_set(err, ret, "the region cannot be sealed: %s", strerror(-ret));
	}
}

int dev_region_name(struct hearth_region *region, const char *name, const uint8_t *digest,
		    struct hearth_err *err)
{
	struct dev_region *r = (struct dev_region *)region;
	struct hearth_ioc_keep keep = { .size = sizeof(keep) };
	int ret;

	memcpy(keep.name, name, strlen(name));
	memcpy(keep.digest, digest, sizeof(keep.digest));
	ret = dev_call(r->fd, HEARTH_IOC_KEEP, &keep);
	switch (ret) {
	case 0:
		r->named = true;
		return 0;
	case -EEXIST:
		return err_set(err, ret, "pool %s has a region %s already", region->pool->name, name);
	case -EBUSY:
		return err_set(err, ret, "the region has a name already");
	case -ESTALE:
		return err_set(err, ret, "the region was purged and cannot be named");
	default:
		return err_set(err, ret, "the region cannot be named %s: %s", name, strerror(-ret));
	}
}

int dev_region_find(struct hearth_tenant *t, struct hearth_pool *pool, const char *name,
		    const uint8_t *digest, struct hearth_region **ret_r, struct hearth_err *err)
{
	struct hearth_ioc_find f = {
		.size = sizeof(f),
		.flags = HEARTH_FIND_WRITE | (digest ? 0 : HEARTH_FIND_ANY_DIGEST),
		.pool = dev_pool_id(pool),
	};
	struct dev_region *r = NULL;
	bool sealed = false;
	char what[120];
	int ret;

	memcpy(f.name, name, strlen(name));
	if (digest)
		memcpy(f.digest, digest, sizeof(f.digest));
	ret = dev_call(dev_tenant_fd(t), HEARTH_IOC_FIND, &f);
	if (ret == -EROFS) {
		sealed = true;
		f.flags &= ~HEARTH_FIND_WRITE;
		ret = dev_call(dev_tenant_fd(t), HEARTH_IOC_FIND, &f);
	}
	switch (ret) {
	case 0:
		break;
	case -ENOENT:
		return f.out_region ?
		       err_set(err, ret, "region %s in pool %s has another digest", name, pool->name) :
		       err_set(err, ret, "pool %s has no region %s", pool->name, name);
	case -EBUSY:
		return err_set(err, ret,
			       "region %s in pool %s is not sealed or is offered for purging, and its owner has it",
			       name, pool->name);
	case -ESTALE:
		return err_set(err, ret, "region %s in pool %s was purged", name, pool->name);
	default:
		snprintf(what, sizeof(what), "tenant %s cannot have region %s", t->name, name);
		return dev_refuse(err, ret, t->name, pool, &f.out_refusal, what);
	}
	ret = region_make(t, pool, f.out_fd, f.out_region, f.out_bytes, 0, sealed, &r);
	if (ret)
		return err_set(err, ret, "region %s cannot be mapped: %s", name, strerror(-ret));
	r->named = true;
	*ret_r = &r->base;
	return 0;
}

int dev_region_purgeable(struct hearth_region *region, struct hearth_err *err)
{
	struct hearth_ioc_offer o = { .size = sizeof(o) };
	int ret;

	ret = dev_call(((struct dev_region *)region)->fd, HEARTH_IOC_OFFER, &o);
	if (!ret)
		return 0;
	return err_set(err, ret, "the region cannot be offered: %s",
		       ret == -ESTALE ? "it was purged already" :
		       ret == -EBUSY ? "somebody else has it open or exported" : strerror(-ret));
}

int dev_region_take_back(struct hearth_region *region, bool *ret_survived)
{
	struct hearth_ioc_take_back b = { .size = sizeof(b) };
	int ret;

	ret = dev_call(((struct dev_region *)region)->fd, HEARTH_IOC_TAKE_BACK, &b);
	if (!ret)
		*ret_survived = b.out_survived;
	return ret;
}

int dev_region_share(struct hearth_region *region, bool writable, int *ret_fd,
		     struct hearth_err *err)
{
	struct hearth_ioc_share s = {
		.size = sizeof(s), .flags = writable ? HEARTH_SHARE_WRITE : 0,
	};
	int ret;

	ret = dev_call(((struct dev_region *)region)->fd, HEARTH_IOC_SHARE, &s);
	if (ret)
		return err_set(err, ret, "the region cannot be shared%s: %s",
			       writable ? " for writing" : "",
			       ret == -EROFS ? "it is sealed" :
			       ret == -EACCES ? "this process has it for reading only" :
			       strerror(-ret));
	*ret_fd = s.out_fd;
	return 0;
}

int dev_region_import(struct hearth_tenant *t, int fd, struct hearth_region **ret_r,
		      struct hearth_err *err)
{
	struct hearth_ioc_region_get get = { .size = sizeof(get) };
	struct dev_region *r = NULL;
	struct dev_pool *pool;
	int ret, own;

	ret = dev_call(fd, HEARTH_IOC_REGION_GET, &get);
	/* a connection answers with EINVAL, what is not ours with ENOTTY */
	if (ret)
		return err_set(err, ret == -ENOTTY || ret == -ENOENT ? -EINVAL : ret,
			       "the descriptor %d is not one of a region", fd);
	pool = dev_pool_by_id(t->h, get.out_pool);
	if (!pool)
		return err_set(err, -ENOENT, "the region's pool was made after this connection");
	if (get.out_flags & HEARTH_REGION_PURGED)
		return err_set(err, -ESTALE, "the region was purged");
	/* taken over on success only, so a copy is what may be closed on failure */
	own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (own < 0)
		return err_set(err, -errno, "no descriptor is left: %s", strerror(errno));
	ret = region_make(t, &pool->base, own, get.region, get.out_bytes, 0,
			  get.out_flags & (HEARTH_REGION_SEALED | HEARTH_REGION_READONLY), &r);
	if (ret)
		return err_set(err, ret, "the region cannot be mapped: %s", strerror(-ret));
	close(fd);
	*ret_r = &r->base;
	return 0;
}

int dev_region_export(struct hearth_region *region, int *ret_fd, struct hearth_err *err)
{
	struct hearth_ioc_export x = {
		.size = sizeof(x),
		.flags = hearth_region_sealed(region) ? 0 : HEARTH_EXPORT_WRITE,
	};
	int ret;

	ret = dev_call(((struct dev_region *)region)->fd, HEARTH_IOC_EXPORT, &x);
	if (ret)
		return err_set(err, ret, "the region cannot be exported: %s",
			       ret == -ESTALE ? "it was purged" :
			       ret == -EBUSY ? "it is offered for purging" : strerror(-ret));
	*ret_fd = x.out_fd;
	return 0;
}

static int next_region(int fd, uint64_t after, struct hearth_ioc_region_get *get)
{
	memset(get, 0, sizeof(*get));
	get->size = sizeof(*get);
	get->flags = HEARTH_GET_NEXT;
	get->region = after;
	return dev_call(fd, HEARTH_IOC_REGION_GET, get);
}

/* The descriptor by which we may drop a region of that tenant. */
static int dropper(struct dev *d, uint32_t tenant)
{
	struct dev_tenant *t;
	int fd = d->fd;

	pthread_mutex_lock(&d->lock);
	for (t = d->tenants; t && !d->admin; t = t->next) {
		if (t->id == tenant)
			fd = t->fd;
	}
	pthread_mutex_unlock(&d->lock);
	return fd;
}

int dev_region_drop(struct hearth_pool *pool, const char *name, struct hearth_err *err)
{
	struct hearth_ioc_drop drop = { .size = sizeof(drop) };
	struct hearth_ioc_region_get get;
	struct dev *d = dev_of(pool->h);
	uint64_t id = 0;
	char what[120];
	int ret;

	while (!(ret = next_region(d->fd, id, &get))) {
		id = get.region;
		if (get.out_pool == dev_pool_id(pool) && (get.out_flags & HEARTH_REGION_KEPT) &&
		    !strncmp(get.out_name, name, sizeof(get.out_name)))
			break;
	}
	if (!ret && get.out_descriptors)
		return err_set(err, -EBUSY, "region %s in pool %s is open %u times", name, pool->name,
			       get.out_descriptors);
	if (!ret) {
		drop.region = id;
		ret = dev_call(dropper(d, get.out_tenant), HEARTH_IOC_DROP, &drop);
	}
	if (ret == -ENOENT)
		return err_set(err, ret, "pool %s has no region %s", pool->name, name);
	snprintf(what, sizeof(what), "region %s cannot be dropped", name);
	return ret ? dev_refuse(err, ret, "", pool, NULL, what) : 0;
}

static void tenant_name(int fd, uint32_t id, char *name)
{
	struct hearth_ioc_tenant_get get = { .size = sizeof(get), .tenant = id };

	if (dev_call(fd, HEARTH_IOC_TENANT_GET, &get))
		snprintf(name, HEARTH_NAME_LEN, "#%u", id);
	else
		memcpy(name, get.name, HEARTH_NAME_LEN);
}

int dev_regions(struct hearth *h, struct hearth_region_row **ret_rows, size_t *ret_n)
{
	struct hearth_region_row *rows = NULL, *row, *more;
	struct hearth_ioc_region_get get;
	struct dev *d = dev_of(h);
	struct dev_pool *p;
	size_t n = 0;
	int ret;

	for (uint64_t id = 0; !(ret = next_region(d->fd, id, &get)); id = get.region) {
		p = dev_pool_by_id(h, get.out_pool);
		if (!p)
			continue;
		more = realloc(rows, (n + 1) * sizeof(*rows));
		if (!more) {
			free(rows);
			return -ENOMEM;
		}
		rows = more;
		row = &rows[n++];
		memset(row, 0, sizeof(*row));
		memcpy(row->name, get.out_name, sizeof(row->name));
		memcpy(row->digest, get.out_digest, sizeof(row->digest));
		tenant_name(d->fd, get.out_tenant, row->tenant);
		memcpy(row->pool, p->base.name, sizeof(row->pool));
		row->size = get.out_bytes;
		row->extents = get.out_extents;
		row->handles = get.out_descriptors;
		row->sealed = get.out_flags & HEARTH_REGION_SEALED;
		row->purgeable = get.out_flags & HEARTH_REGION_OFFERED;
	}
	if (ret != -ENOENT) {
		free(rows);
		return ret;
	}
	*ret_rows = rows ? rows : calloc(1, sizeof(*rows));
	*ret_n = n;
	return *ret_rows ? 0 : -ENOMEM;
}
