// SPDX-License-Identifier: MIT
/*
 * The memory of regions: extents of a pool's memfd. It becomes zero again by
 * punching a hole, which also gives the pages back to the system; so whatever
 * is carved anew reads as zeros, and a charge costs no memory before it is
 * touched.
 */
#include "dev/embedded.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_ALIGN ((uint64_t)2 << 20)

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

void emb_obj_give_back(struct emb_obj *obj)
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
int emb_obj_carve(struct emb_obj *obj, uint64_t align, unsigned flags)
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
			emb_obj_give_back(obj);
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
int emb_obj_map(const struct emb_obj *obj, uint64_t page, uint64_t align, int prot, void **ret_ptr)
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

void emb_obj_link(struct emb_pool *p, struct emb_obj *obj)
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

void emb_obj_offer(struct emb_obj *obj)
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

void emb_obj_take_back(struct emb_obj *obj)
{
	if (!obj->offered)
		return;
	unoffer(obj);
	budget_purgeable(&emb_account(obj->rec, obj->pool)->b, -(s64)obj->size);
}

void emb_obj_destroy(struct emb *e, struct emb_obj *obj, void *mapping)
{
	struct emb_rec *rec = obj->rec;

	emb_obj_take_back(obj);
	obj_unlink(obj);
	/* nobody can reach it any more; it stays charged until it is clean */
	pthread_mutex_unlock(&e->lock);
	if (mapping)
		munmap(mapping, obj->size);
	zero_all(obj);
	pthread_mutex_lock(&e->lock);
	emb_obj_give_back(obj);
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
	emb_obj_give_back(obj);
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
