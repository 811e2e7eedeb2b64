// SPDX-License-Identifier: MIT
/*
 * Regions of the embedded pools: handles. Each maps the extents of its object
 * (embedded_obj.c) one after the other into one range of addresses reserved
 * for it.
 */
#include "dev/embedded.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
	*ret_code = emb_obj_map(obj, e->page, align, obj->sealed ? PROT_READ : PROT_READ | PROT_WRITE,
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
	struct emb_rec *rec = emb_rec_of(t);
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
	ret = emb_obj_carve(obj, align, flags);
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
		emb_obj_give_back(obj);
		emb_uncharge(e, rec, p, size);
		goto out_free;
	}
	emb_obj_link(p, obj);
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
	struct emb_rec *rec = emb_rec_of(t), *owner = obj->rec;
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
	emb_obj_take_back(obj);
	if (owner == rec || owner->handle)
		return 0;
	ret = budget_move(&emb_account(owner, p)->b, &emb_account(rec, p)->b, obj->size, &ref);
	if (ret) {
		if (offered)
			emb_obj_offer(obj);
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
		emb_obj_offer(obj);
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
	emb_obj_take_back(obj);
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
