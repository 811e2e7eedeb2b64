// SPDX-License-Identifier: MIT
/*
 * Regions of the embedded pools. A region is a list of extents of its pool's
 * memfd; each handle maps them one after the other into one range of addresses
 * reserved for it. Memory becomes zero again by punching a hole, which also
 * gives the pages back to the system; so whatever is carved anew reads as
 * zeros, and a charge costs no memory before it is touched.
 */
#include "dev/embedded.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_ALIGN ((uint64_t)2 << 20)

static struct emb_rec *rec_of(const struct hearth_tenant *t)
{
	return ((const struct emb_tenant *)t)->rec;
}

/* -- extents and pages ---------------------------------------------------- */

static int need_spares(struct extent_map *m)
{
	struct extent *node;

	while (m->n_spare < EXTENT_SPARE_ALLOC) {
		node = malloc(sizeof(*node));
		if (!node)
			return -ENOMEM;
		extent_spare_put(m, node);
	}
	return 0;
}

static void give_back(struct emb_obj *obj)
{
	struct extent *ext, *next;
	struct extent *extra;

	for (ext = obj->ext; ext; ext = next) {
		next = ext->link;
		extent_free(&obj->pool->map, ext);
	}
	obj->ext = NULL;
	obj->n_ext = 0;
	while (obj->pool->map.n_spare > 64) {
		extra = extent_spare_get(&obj->pool->map);
		free(extra);
	}
}

/* Best fit in one piece; else, unless it must be one, the largest pieces. */
static int carve(struct emb_obj *obj, uint64_t align, unsigned flags)
{
	struct extent_map *m = &obj->pool->map;
	uint64_t left = obj->size, tries[3];
	struct extent *ext, **end = &obj->ext;
	int ret, n = 0;

	/* 2 MiB where it costs nothing, so that huge pages can serve */
	if (left >= HUGE_ALIGN && align < HUGE_ALIGN)
		tries[n++] = HUGE_ALIGN;
	tries[n++] = align;
	if (!(flags & HEARTH_REGION_CONTIGUOUS) && align > m->unit)
		tries[n++] = m->unit;
	ret = need_spares(m);
	for (int i = 0; i < n && !ret; i++) {
		ret = extent_alloc(m, left, tries[i], obj, &ext);
		if (!ret) {
			obj->ext = ext;
			obj->n_ext = 1;
			return 0;
		}
		if (ret == -ENOSPC)
			ret = 0;
	}
	if (ret)
		return ret;
	if (flags & HEARTH_REGION_CONTIGUOUS)
		return -ENOSPC;
	while (left) {
		ret = need_spares(m);
		if (!ret)
			ret = extent_alloc_part(m, left, obj, &ext);
		if (ret) {
			give_back(obj);
			return ret;
		}
		left -= ext->size;
		*end = ext;
		end = &ext->link;
		obj->n_ext++;
	}
	return 0;
}

/* Makes [off, off + len) of the pool's file zero, and its pages the system's. */
static void zero(int fd, uint64_t off, uint64_t len)
{
	static const char zeros[65536];
	ssize_t n;

	while (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off, (off_t)len)) {
		if (errno == EINTR)
			continue;
		/* a kernel that cannot punch memfds: by hand */
		while (len) {
			n = pwrite(fd, zeros, len < sizeof(zeros) ? len : sizeof(zeros), (off_t)off);
			if (n <= 0 && errno == EINTR)
				continue;
			if (n <= 0)
				abort();  /* never hand out what another tenant wrote */
			off += (uint64_t)n;
			len -= (uint64_t)n;
		}
		return;
	}
}

static void zero_all(const struct emb_obj *obj)
{
	for (const struct extent *ext = obj->ext; ext; ext = ext->link)
		zero(obj->pool->fd, ext->start, ext->size);
}

/* Maps all extents one after the other at a multiple of @align. */
static int map(const struct emb_obj *obj, uint64_t page, uint64_t align, int prot, void **ret_ptr)
{
	uint64_t slack, whole;
	char *base, *at, *p;

	if (obj->size >= HUGE_ALIGN && align < HUGE_ALIGN)
		align = HUGE_ALIGN;
	slack = align > page ? align - page : 0;
	whole = obj->size + slack;
	if (whole < obj->size || whole > SIZE_MAX)
		return -ENOMEM;
	base = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	at = (char *)(((uintptr_t)base + align - 1) & ~(uintptr_t)(align - 1));
	if (at > base)
		munmap(base, (size_t)(at - base));
	if (base + whole > at + obj->size)
		munmap(at + obj->size, (size_t)(base + whole - (at + obj->size)));
	p = at;
	for (const struct extent *ext = obj->ext; ext; ext = ext->link) {
		if (mmap(p, ext->size, prot, MAP_SHARED | MAP_FIXED, obj->pool->fd,
			 (off_t)ext->start) == MAP_FAILED) {
			int ret = -errno;

			munmap(at, obj->size);
			return ret;
		}
		p += ext->size;
	}
	/* only advice: many kernels do not use huge pages for shared memory */
	if (obj->size >= HUGE_ALIGN)
		madvise(at, obj->size, MADV_HUGEPAGE);
	*ret_ptr = at;
	return 0;
}

/* -- objects, lock held ----------------------------------------------------- */

static void obj_link(struct emb_pool *p, struct emb_obj *obj)
{
	obj->prev = p->last;
	if (p->last)
		p->last->next = obj;
	else
		p->first = obj;
	p->last = obj;
	p->n_objs++;
}

static void obj_unlink(struct emb_obj *obj)
{
	struct emb_pool *p = obj->pool;

	if (obj->prev)
		obj->prev->next = obj->next;
	else
		p->first = obj->next;
	if (obj->next)
		obj->next->prev = obj->prev;
	else
		p->last = obj->prev;
	p->n_objs--;
}

static void offer(struct emb_obj *obj)
{
	struct emb_account *acct = emb_account(obj->rec, obj->pool);

	obj->offered = true;
	obj->offer_next = NULL;
	obj->offer_prev = acct->offer_last;
	if (acct->offer_last)
		acct->offer_last->offer_next = obj;
	else
		acct->offer_first = obj;
	acct->offer_last = obj;
	budget_purgeable(&acct->b, (s64)obj->size);
}

static void unoffer(struct emb_obj *obj)
{
	struct emb_account *acct = emb_account(obj->rec, obj->pool);

	if (obj->offer_prev)
		obj->offer_prev->offer_next = obj->offer_next;
	else
		acct->offer_first = obj->offer_next;
	if (obj->offer_next)
		obj->offer_next->offer_prev = obj->offer_prev;
	else
		acct->offer_last = obj->offer_prev;
	obj->offered = false;
}

static void take_back(struct emb_obj *obj)
{
	if (!obj->offered)
		return;
	unoffer(obj);
	budget_purgeable(&emb_account(obj->rec, obj->pool)->b, -(s64)obj->size);
}

void emb_obj_destroy(struct emb *e, struct emb_obj *obj, void *mapping)
{
	struct emb_rec *rec = obj->rec;

	take_back(obj);
	obj_unlink(obj);
	/* nobody can reach it any more; it stays charged until it is clean */
	pthread_mutex_unlock(&e->lock);
	if (mapping)
		munmap(mapping, obj->size);
	zero_all(obj);
	pthread_mutex_lock(&e->lock);
	give_back(obj);
	if (!obj->purged)
		emb_uncharge(e, rec, obj->pool, obj->size);
	free(obj);
	emb_rec_put(e, rec);
}

void emb_purge_oldest(struct emb *e, struct emb_account *acct)
{
	struct emb_obj *obj = acct->offer_first;
	struct emb_region *r = obj->handles;
	struct emb_rec *rec = obj->rec;

	unoffer(obj);
	/* whoever breaks the promise not to touch it gets SIGSEGV, not others' data */
	if (r && mmap(r->base.ptr, obj->size, PROT_NONE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		mprotect(r->base.ptr, obj->size, PROT_NONE);
	zero_all(obj);
	give_back(obj);
	obj->purged = true;
	budget_purged(&acct->b, obj->size);
	emb_emit(e, rec, obj->pool, (struct hearth_event){
		.type = HEARTH_EVENT_PURGED,
		.bytes = obj->size,
		.current = acct->b.used,
	});
	emb_note(e, rec, obj->pool);
	if (!r) {
		obj_unlink(obj);
		free(obj);
		emb_rec_put(e, rec);
	}
}

static void handle_link(struct emb_region *r, struct emb_tenant *t)
{
	r->obj_next = r->obj->handles;
	r->obj->handles = r;
	r->obj->n_handles++;
	r->t_prev = NULL;
	r->t_next = t->regions;
	if (t->regions)
		t->regions->t_prev = r;
	t->regions = r;
}

static void handle_unlink(struct emb_region *r)
{
	struct emb_tenant *t = (struct emb_tenant *)r->base.t;
	struct emb_region **at;

	for (at = &r->obj->handles; *at != r; at = &(*at)->obj_next)
		;
	*at = r->obj_next;
	r->obj->n_handles--;
	if (r->t_prev)
		r->t_prev->t_next = r->t_next;
	else
		t->regions = r->t_next;
	if (r->t_next)
		r->t_next->t_prev = r->t_prev;
}

/* -- calls -------------------------------------------------------------------- */

static int no_memory(struct hearth_err *err, const struct hearth_tenant *t, int ret)
{
	return err_set(err, ret, "tenant %s: a region cannot be mapped: %s", t->name,
		       strerror(-ret));
}

/* A handle of @obj that is mapped; NULL on failure. Needs no lock. */
static struct emb_region *handle_make(struct hearth_tenant *t, struct emb_obj *obj,
				      uint64_t align, int *ret_code)
{
	struct emb *e = emb_of(t->h);
	struct emb_region *r;

	r = calloc(1, sizeof(*r));
	if (!r) {
		*ret_code = -ENOMEM;
		return NULL;
	}
	r->obj = obj;
	r->base.t = t;
	r->base.pool = &obj->pool->base;
	r->base.size = obj->size;
	r->base.sealed = obj->sealed;
	*ret_code = map(obj, e->page, align, obj->sealed ? PROT_READ : PROT_READ | PROT_WRITE,
			&r->base.ptr);
	if (*ret_code) {
		free(r);
		return NULL;
	}
	return r;
}

int emb_region_alloc(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t size,
		     uint64_t align, unsigned flags, unsigned wait_ms,
		     struct hearth_region **ret_r, struct hearth_err *err)
{
	struct emb_pool *p = emb_pool_of(pool);
	struct emb_rec *rec = rec_of(t);
	struct emb *e = emb_of(t->h);
	struct emb_region *r = NULL;
	struct emb_obj *obj;
	int ret;

	if (align < e->page)
		align = e->page;
	/* a size that cannot be rounded up is refused by the budget as it is */
	if (size <= UINT64_MAX - e->page)
		size = (size + e->page - 1) & ~(e->page - 1);
	obj = calloc(1, sizeof(*obj));
	if (!obj)
		return no_memory(err, t, -ENOMEM);
	obj->pool = p;
	obj->size = size;
	obj->rec = rec;
	pthread_mutex_lock(&e->lock);
	ret = emb_charge(e, rec, p, size, wait_ms, err);
	if (ret)
		goto out_free;
	ret = carve(obj, align, flags);
	if (ret == -ENOSPC)
		text_refuse(err, ret, &(struct text_refusal){
			.limit = TEXT_BY_PIECES, .tenant = rec->name, .pool = pool->name,
			.wanted = size, .available = extent_largest(&p->map) });
	else if (ret)
		no_memory(err, t, ret);
	if (ret) {
		emb_charge_undo(e, rec, p, size);
		goto out_free;
	}
	r = handle_make(t, obj, align, &ret);
	if (!r) {
		no_memory(err, t, ret);
		give_back(obj);
		emb_uncharge(e, rec, p, size);
		goto out_free;
	}
	obj_link(p, obj);
	handle_link(r, (struct emb_tenant *)t);
	pthread_mutex_unlock(&e->lock);
	*ret_r = &r->base;
	return 0;

out_free:
	pthread_mutex_unlock(&e->lock);
	free(obj);
	return ret;
}

void emb_region_close(struct hearth_region *region, bool free_it)
{
	struct emb_region *r = (struct emb_region *)region;
	struct emb *e = emb_of(region->t->h);
	struct emb_obj *obj = r->obj;

	pthread_mutex_lock(&e->lock);
	handle_unlink(r);
	if (free_it)
		obj->named = false;
	if (!obj->n_handles && (!obj->named || obj->purged))
		emb_obj_destroy(e, obj, region->ptr);
	else
		munmap(region->ptr, region->size);
	pthread_mutex_unlock(&e->lock);
	free(r);
}

int emb_region_seal(struct hearth_region *region, struct hearth_err *err)
{
	struct emb_region *r = (struct emb_region *)region;
	struct emb *e = emb_of(region->t->h);
	struct emb_obj *obj = r->obj;
	int ret = 0;

	pthread_mutex_lock(&e->lock);
	if (obj->purged) {
		ret = err_set(err, -ESTALE, "the region was purged and cannot be sealed");
	} else if (!obj->sealed) {
		for (struct emb_region *h = obj->handles; h && !ret; h = h->obj_next) {
			if (mprotect(h->base.ptr, h->base.size, PROT_READ))
				ret = -errno;
		}
		if (ret) {
			/* one of them may be read-only now: undo, nothing has changed */
			for (struct emb_region *h = obj->handles; h; h = h->obj_next)
				mprotect(h->base.ptr, h->base.size, PROT_READ | PROT_WRITE);
			err_set(err, ret, "the region cannot be sealed: %s", strerror(-ret));
		} else {
			obj->sealed = true;
			for (struct emb_region *h = obj->handles; h; h = h->obj_next)
				__atomic_store_n(&h->base.sealed, true, __ATOMIC_RELEASE);
		}
	}
	pthread_mutex_unlock(&e->lock);
	return ret;
}

static struct emb_obj *obj_find(const struct emb_pool *p, const char *name)
{
	struct emb_obj *obj;

	for (obj = p->first; obj; obj = obj->next) {
		if (obj->named && !strcmp(obj->name, name))
			return obj;
	}
	return NULL;
}

int emb_region_name(struct hearth_region *region, const char *name, const uint8_t *digest,
		    struct hearth_err *err)
{
	struct emb_obj *obj = ((struct emb_region *)region)->obj;
	struct emb *e = emb_of(region->t->h);
	int ret = 0;

	pthread_mutex_lock(&e->lock);
	if (obj->purged) {
		ret = err_set(err, -ESTALE, "the region was purged and cannot be named");
	} else if (obj->named) {
		ret = err_set(err, -EBUSY, "the region is named %s already", obj->name);
	} else if (obj_find(obj->pool, name)) {
		ret = err_set(err, -EEXIST, "pool %s has a region %s already",
			      region->pool->name, name);
	} else {
		snprintf(obj->name, sizeof(obj->name), "%s", name);
		memcpy(obj->digest, digest, sizeof(obj->digest));
		obj->named = true;
	}
	pthread_mutex_unlock(&e->lock);
	return ret;
}

/* Whether @t may have @obj; moves the charge where its owner is gone. */
static int admit(struct emb *e, struct hearth_tenant *t, struct emb_obj *obj,
		 struct hearth_err *err)
{
	struct emb_rec *rec = rec_of(t), *owner = obj->rec;
	struct emb_pool *p = obj->pool;
	struct budget_refusal ref = { 0 };
	bool offered = obj->offered;
	int ret;

	if (obj->purged)
		return err_set(err, -ESTALE, "region %s in pool %s was purged", obj->name,
			       p->base.name);
	if (obj->n_handles && offered)
		return err_set(err, -EBUSY, "region %s in pool %s is offered for purging", obj->name,
			       p->base.name);
	if (owner != rec && owner->handle && !obj->sealed)
		return err_set(err, -EBUSY,
			       "region %s in pool %s is not sealed, and tenant %s has it",
			       obj->name, p->base.name, owner->name);
	take_back(obj);
	if (owner == rec || owner->handle)
		return 0;
	ret = budget_move(&emb_account(owner, p)->b, &emb_account(rec, p)->b, obj->size, &ref);
	if (ret) {
		if (offered)
			offer(obj);
		return emb_refuse(err, ret, rec, p, &ref);
	}
	obj->rec = rec;
	emb_note(e, owner, p);
	emb_note(e, rec, p);
	emb_rec_put(e, owner);
	return 0;
}

int emb_region_find(struct hearth_tenant *t, struct hearth_pool *pool, const char *name,
		    const uint8_t *digest, struct hearth_region **ret_r, struct hearth_err *err)
{
	struct emb_pool *p = emb_pool_of(pool);
	struct emb *e = emb_of(t->h);
	struct emb_region *r = NULL;
	struct emb_obj *obj;
	int ret;

	pthread_mutex_lock(&e->lock);
	obj = obj_find(p, name);
	if (!obj) {
		ret = err_set(err, -ENOENT, "pool %s has no region %s", pool->name, name);
	} else if (digest && memcmp(digest, obj->digest, sizeof(obj->digest))) {
		ret = err_set(err, -ENOENT, "region %s in pool %s has another digest", name,
			      pool->name);
	} else {
		/* mapped first: then nothing can fail after the charge has moved */
		r = obj->purged ? NULL : handle_make(t, obj, e->page, &ret);
		if (!r && !obj->purged) {
			no_memory(err, t, ret);
		} else {
			ret = admit(e, t, obj, err);
			if (!ret)
				handle_link(r, (struct emb_tenant *)t);
		}
	}
	pthread_mutex_unlock(&e->lock);
	if (ret && r) {
		munmap(r->base.ptr, r->base.size);
		free(r);
	}
	if (!ret)
		*ret_r = &r->base;
	return ret;
}

int emb_region_purgeable(struct hearth_region *region, struct hearth_err *err)
{
	struct emb_obj *obj = ((struct emb_region *)region)->obj;
	struct emb *e = emb_of(region->t->h);
	int ret = 0;

	pthread_mutex_lock(&e->lock);
	if (obj->purged) {
		ret = err_set(err, -ESTALE, "the region was purged already");
	} else if (obj->n_handles > 1) {
		ret = err_set(err, -EBUSY, "the region is open %u times", obj->n_handles);
	} else if (!obj->offered) {
		offer(obj);
		pthread_cond_broadcast(&e->wake);
	}
	pthread_mutex_unlock(&e->lock);
	return ret;
}

int emb_region_take_back(struct hearth_region *region, bool *ret_survived)
{
	struct emb_obj *obj = ((struct emb_region *)region)->obj;
	struct emb *e = emb_of(region->t->h);

	pthread_mutex_lock(&e->lock);
	take_back(obj);
	*ret_survived = !obj->purged;
	pthread_mutex_unlock(&e->lock);
	return 0;
}

int emb_region_share(struct hearth_region *r, bool writable, int *ret_fd, struct hearth_err *err)
{
	return err_set(err, -EOPNOTSUPP,
		       "embedded pools are of one process; a region of them cannot be shared");
}

int emb_region_import(struct hearth_tenant *t, int fd, struct hearth_region **ret_r,
		      struct hearth_err *err)
{
	return err_set(err, -EOPNOTSUPP,
		       "embedded pools are of one process; no region comes from another");
}

int emb_region_export(struct hearth_region *r, int *ret_fd, struct hearth_err *err)
{
	return err_set(err, -EOPNOTSUPP,
		       "embedded pools are of one process; a region of them cannot be exported");
}

int emb_region_drop(struct hearth_pool *pool, const char *name, struct hearth_err *err)
{
	struct emb *e = emb_of(pool->h);
	struct emb_obj *obj;
	int ret = 0;

	pthread_mutex_lock(&e->lock);
	obj = obj_find(emb_pool_of(pool), name);
	if (!obj) {
		ret = err_set(err, -ENOENT, "pool %s has no region %s", pool->name, name);
	} else if (obj->n_handles) {
		ret = err_set(err, -EBUSY, "region %s in pool %s is open %u times", name, pool->name,
			      obj->n_handles);
	} else {
		emb_obj_destroy(e, obj, NULL);
	}
	pthread_mutex_unlock(&e->lock);
	return ret;
}

int emb_regions(struct hearth *h, struct hearth_region_row **ret_rows, size_t *ret_n)
{
	struct hearth_region_row *rows, *row;
	struct emb *e = emb_of(h);
	size_t n = 0;

	pthread_mutex_lock(&e->lock);
	for (size_t i = 0; i < h->n_pools; i++)
		n += emb_pool_of(h->pools[i])->n_objs;
	rows = calloc(n ? n : 1, sizeof(*rows));
	row = rows;
	for (size_t i = 0; i < h->n_pools && rows; i++) {
		struct emb_obj *obj = emb_pool_of(h->pools[i])->first;

		for (; obj; obj = obj->next, row++) {
			if (obj->named) {
				memcpy(row->name, obj->name, sizeof(row->name));
				memcpy(row->digest, obj->digest, sizeof(row->digest));
			}
			memcpy(row->tenant, obj->rec->name, sizeof(row->tenant));
			memcpy(row->pool, h->pools[i]->name, sizeof(row->pool));
			row->size = obj->size;
			row->extents = obj->n_ext;
			row->handles = obj->n_handles;
			row->sealed = obj->sealed;
			row->purgeable = obj->offered;
		}
	}
	pthread_mutex_unlock(&e->lock);
	if (!rows)
		return -ENOMEM;
	*ret_rows = rows;
	*ret_n = n;
	return 0;
}
