/* SPDX-License-Identifier: MIT */
/*
 * The /dev/hearth backend's insides: handles over descriptors of the module.
 * The kernel keeps the books; here are only descriptors, mappings and names.
 *
 * A connection of ours has one descriptor for questions and for what an
 * administrator does, each tenant has one of its own (that is its identity),
 * and so has each stream of events and each region.
 */
#ifndef HEARTH_DEV_DEVICE_H
#define HEARTH_DEV_DEVICE_H

#include <pthread.h>

#include <linux/hearth.h>

#include "dev/priv.h"

struct dev_region;

struct dev_pool {
	struct hearth_pool base;
	uint32_t id;
};

struct dev_tenant {
	struct hearth_tenant base;
	struct dev_tenant *prev, *next;   /* under dev->lock */
	int fd;
	uint32_t id;
	struct dev_region *regions;       /* under dev->lock */
};

struct dev_region {
	struct hearth_region base;
	struct dev_region *prev, *next;   /* of one tenant, under dev->lock */
	int fd;
	uint64_t id;
	bool named;
};

/* The name of an id, also after the tenant or pool has gone. */
struct dev_name {
	uint32_t id;
	bool pool;
	char name[HEARTH_NAME_LEN];
};

struct dev_stream {
	struct hearth_events base;
	struct dev_stream *next;          /* under dev->lock */
	pthread_mutex_t lock;             /* of what follows */
	uint64_t lost;
	struct dev_name *names;
	size_t n_names;
};

struct dev {
	struct hearth base;
	int fd;
	char *path;
	bool admin;
	uint64_t page, block;
	pthread_mutex_t lock;
	struct dev_tenant *tenants;
	struct dev_stream *streams;
};

static inline struct dev *dev_of(const struct hearth *h)
{
	return (struct dev *)h;
}

static inline uint32_t dev_pool_id(const struct hearth_pool *pool)
{
	return ((const struct dev_pool *)pool)->id;
}

static inline int dev_tenant_fd(const struct hearth_tenant *t)
{
	return ((const struct dev_tenant *)t)->fd;
}

/* ioctl(2) as 0 or -errno; again when a signal came. @arg begins with its size. */
int dev_call(int fd, unsigned long request, void *arg);
/* Another descriptor of the device; -errno. */
int dev_another(const struct dev *d);
uint64_t dev_deadline(unsigned wait_ms);
/* The sentence of a refusal, or of any other error of @what. Returns @code. */
int dev_refuse(struct hearth_err *err, int code, const char *tenant,
	       const struct hearth_pool *pool, const struct hearth_refusal *ref,
	       const char *what);

/* -- device_pool.c --------------------------------------------------------------- */

struct dev_pool *dev_pool_by_id(struct hearth *h, uint32_t id);
/* Into h's list; NULL when there is no place or no memory. */
struct dev_pool *dev_pool_make(struct hearth *h, uint32_t id, uint32_t kind, const char *name);
int dev_pools_read(struct dev *d, struct hearth_err *err);
/* Finds the pools that were asked for and puts them first, in that order. */
int dev_pools_match(struct dev *d, const struct hearth_options *o, struct hearth_err *err);
int dev_pool_info(struct hearth_pool *pool, struct hearth_pool_info *ret_info);
int dev_pool_create(struct hearth *h, const struct hearth_pool_spec *spec, struct hearth_err *err);
int dev_pool_remove(struct hearth_pool *pool, struct hearth_err *err);
int dev_pool_resize(struct hearth_pool *pool, uint64_t size, struct hearth_err *err);

/* -- device_tenant.c ------------------------------------------------------------- */

int dev_tenant_open(struct hearth *h, const char *name, enum hearth_class cls, int priority,
		    struct hearth_tenant **ret_t, struct hearth_err *err);
void dev_tenant_close(struct hearth_tenant *tenant);
int dev_tenant_remove(struct hearth *h, const char *name, struct hearth_err *err);

/* -- device_budget.c ------------------------------------------------------------- */

int dev_charge(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t bytes,
	       unsigned wait_ms, struct hearth_err *err);
int dev_uncharge(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t bytes);
int dev_budget_get(int fd, uint32_t tenant, uint32_t pool, uint32_t flags,
		   struct hearth_ioc_budget_get *get);
void dev_fill_usage(const struct hearth_ioc_budget_get *get, struct hearth_usage *u);
int dev_usage_get(struct hearth_tenant *t, struct hearth_pool *pool, struct hearth_usage *ret_u);
int dev_peak_reset(struct hearth_tenant *t, struct hearth_pool *pool);
int dev_available(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t *ret_now,
		  uint64_t *ret_with_purge);
int dev_budget_set(struct hearth_tenant *t, struct hearth_pool *pool,
		   const struct hearth_budget *b, struct hearth_err *err);
int dev_budget_apply(struct hearth *h, const struct hearth_budget_line *lines, size_t n,
		     size_t *ret_bad, struct hearth_err *err);

/* -- device_state.c -------------------------------------------------------------- */

int dev_state(struct hearth *h, struct hearth_state_row **ret_rows, size_t *ret_n,
	      uint64_t *ret_seq);
int dev_system(struct hearth *h, struct hearth_system *ret_sys);

/* -- device_region.c ------------------------------------------------------------ */

int dev_region_alloc(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t size,
		     uint64_t align, unsigned flags, unsigned wait_ms,
		     struct hearth_region **ret_r, struct hearth_err *err);
void dev_region_close(struct hearth_region *r, bool free_it);
int dev_region_seal(struct hearth_region *r, struct hearth_err *err);
int dev_region_name(struct hearth_region *r, const char *name, const uint8_t *digest,
		    struct hearth_err *err);
int dev_region_find(struct hearth_tenant *t, struct hearth_pool *pool, const char *name,
		    const uint8_t *digest, struct hearth_region **ret_r, struct hearth_err *err);
int dev_region_purgeable(struct hearth_region *r, struct hearth_err *err);
int dev_region_take_back(struct hearth_region *r, bool *ret_survived);
int dev_region_share(struct hearth_region *r, bool writable, int *ret_fd, struct hearth_err *err);
int dev_region_import(struct hearth_tenant *t, int fd, struct hearth_region **ret_r,
		      struct hearth_err *err);
int dev_region_export(struct hearth_region *r, int *ret_fd, struct hearth_err *err);
int dev_region_drop(struct hearth_pool *pool, const char *name, struct hearth_err *err);
int dev_regions(struct hearth *h, struct hearth_region_row **ret_rows, size_t *ret_n);

/* -- device_event.c -------------------------------------------------------------- */

int dev_events_open(struct hearth *h, struct hearth_tenant *t, struct hearth_events **ret_e,
		    struct hearth_err *err);
void dev_events_close(struct hearth_events *e);
int dev_events_read(struct hearth_events *e, struct hearth_event *ret_ev);

#endif
