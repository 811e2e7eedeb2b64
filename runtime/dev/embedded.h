/* SPDX-License-Identifier: MIT */
/*
 * The embedded backend's insides: memfd pools of one process under the rules
 * of kmod/core.
 *
 * One mutex per connection (e->lock) protects everything here that is not
 * said to be constant. It is never held across a system call that may take
 * long, with one exception: taking a purgeable region frees its pages under
 * the lock, because the charge that wanted them is waiting for just that.
 */
#ifndef HEARTH_DEV_EMBEDDED_H
#define HEARTH_DEV_EMBEDDED_H

#include <pthread.h>
#include <sys/types.h>

#include "dev/priv.h"
#include "kmod/core/args.h"
#include "kmod/core/budget.h"
#include "kmod/core/extent.h"
#include "kmod/core/pressure.h"

#define EMB_QUEUE 256            /* events that a stream holds */

struct emb;
struct emb_rec;

/* A region, whoever has it open. */
struct emb_obj {
	struct emb_obj *prev, *next;          /* in its pool, in order of making */
	struct emb_obj *offer_prev, *offer_next;  /* offered ones of one account */
	struct emb_pool *pool;                /* constant */
	struct emb_rec *rec;                  /* who is charged */
	uint64_t size;                        /* constant, whole pages */
	struct extent *ext;                   /* chained by ->link; NULL when purged */
	uint32_t n_ext;
	struct emb_region *handles;
	uint32_t n_handles;
	bool named, sealed, offered, purged;
	char name[HEARTH_REGION_NAME_LEN];
	uint8_t digest[HEARTH_DIGEST_LEN];
};

struct emb_region {
	struct hearth_region base;
	struct emb_obj *obj;                  /* constant */
	struct emb_region *obj_next;
	struct emb_region *t_prev, *t_next;   /* of one tenant handle */
};

struct emb_pool {
	struct hearth_pool base;
	int fd;                               /* memfd; -1: account */
	struct budget_pool budget;
	struct extent_map map;
	struct pressure gauge;
	struct pressure_rules rules;
	struct emb_obj *first, *last;
	uint32_t n_objs;
};

/* One tenant in one pool. */
struct emb_account {
	struct budget b;
	struct pressure gauge;
	struct pressure_rules rules;
	uint64_t plain;                       /* charged without memory */
	struct emb_obj *offer_first, *offer_last;  /* oldest offer first */
};

/* A tenant; outlives its handle while it is kept or holds named regions. */
struct emb_rec {
	struct emb_rec *prev, *next;
	char name[HEARTH_NAME_LEN];
	enum hearth_class cls;
	int priority;
	bool kept;
	bool fresh;                           /* not announced yet */
	struct emb_tenant *handle;            /* NULL: nobody has it open */
	struct emb_account acct[];            /* one per pool */
};

struct emb_tenant {
	struct hearth_tenant base;
	struct emb_rec *rec;
	struct emb_region *regions;
};

struct emb_stream {
	struct hearth_events base;
	struct emb_stream *next;
	bool all;                             /* hears of every tenant */
	const struct emb_rec *rec;            /* else of this one; NULL: of none */
	uint32_t head, count;
	uint64_t lost;
	struct hearth_event ring[EMB_QUEUE];
};

struct emb {
	struct hearth base;
	uint64_t page;                        /* constant */
	pthread_mutex_t lock;
	pthread_cond_t wake;                  /* something was given back */
	pthread_cond_t tick;                  /* the ticker's */
	struct emb_rec *first, *last;
	struct emb_stream *streams;
	uint64_t seq;
	pthread_t ticker;
	bool ticking, stopping;
	struct pressure system;               /* of the machine's memory in use */
	struct pressure_rules system_rules;
};

static inline struct emb *emb_of(const struct hearth *h)
{
	return (struct emb *)h;
}

static inline struct emb_pool *emb_pool_of(const struct hearth_pool *pool)
{
	return (struct emb_pool *)pool;
}

static inline struct emb_account *emb_account(struct emb_rec *rec, const struct emb_pool *pool)
{
	return &rec->acct[pool->base.index];
}

static inline struct emb_rec *emb_rec_of(const struct hearth_tenant *t)
{
	return ((const struct emb_tenant *)t)->rec;
}

/* -- embedded_pool.c ------------------------------------------------------------- */

int emb_pool_make(struct emb *e, const struct hearth_pool_spec *spec, struct hearth_err *err);
void emb_pool_free(struct emb_pool *p);
int emb_pool_info(struct hearth_pool *pool, struct hearth_pool_info *ret_info);
int emb_pool_resize(struct hearth_pool *pool, uint64_t size, struct hearth_err *err);
/* The rules of a tenant's gauge follow its max and the pool's size. Lock held. */
void emb_set_rules(struct emb_account *acct, const struct emb_pool *pool);

/* -- embedded_tenant.c ----------------------------------------------------------- */

/* These with the lock held. */
struct emb_rec *emb_rec_find(struct emb *e, const char *name);
struct emb_rec *emb_rec_make(struct emb *e, const char *name, enum hearth_class cls, int priority);
void emb_rec_unlink(struct emb *e, struct emb_rec *rec);
void emb_rec_set_priority(struct emb *e, struct emb_rec *rec, int priority);
/* Says once that it is there: when it is sure to stay. */
void emb_rec_announce(struct emb *e, struct emb_rec *rec);
/* Forgets @rec when nobody has it open, nobody keeps it, and it holds nothing. */
void emb_rec_put(struct emb *e, struct emb_rec *rec);

int emb_tenant_open(struct hearth *h, const char *name, enum hearth_class cls, int priority,
		    struct hearth_tenant **ret_t, struct hearth_err *err);
void emb_tenant_close(struct hearth_tenant *tenant);
int emb_tenant_fd(const struct hearth_tenant *t);
int emb_tenant_remove(struct hearth *h, const char *name, struct hearth_err *err);

/* -- embedded_charge.c ----------------------------------------------------------- */

/* These with the lock held. */
/* Charges, purging and waiting as the rules say; the sentence of a refusal. */
int emb_charge(struct emb *e, struct emb_rec *rec, struct emb_pool *pool, uint64_t n,
	       unsigned wait_ms, struct hearth_err *err);
void emb_uncharge(struct emb *e, struct emb_rec *rec, struct emb_pool *pool, uint64_t n);
/* The charge just made, as if it had never been: its peak and counters too. */
void emb_charge_undo(struct emb *e, struct emb_rec *rec, struct emb_pool *pool, uint64_t n);
/* After any change of a charge: pressure of the pool and of the tenant. */
void emb_note(struct emb *e, struct emb_rec *rec, struct emb_pool *pool);
int emb_refuse(struct hearth_err *err, int code, const struct emb_rec *rec,
	       const struct emb_pool *pool, const struct budget_refusal *ref);

int emb_plain_charge(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t bytes,
		     unsigned wait_ms, struct hearth_err *err);
int emb_plain_uncharge(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t bytes);
int emb_available(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t *ret_now,
		  uint64_t *ret_with_purge);

/* -- embedded_budget.c ----------------------------------------------------------- */

int emb_budget_set(struct hearth_tenant *t, struct hearth_pool *pool,
		   const struct hearth_budget *b, struct hearth_err *err);
int emb_budget_apply(struct hearth *h, const struct hearth_budget_line *lines, size_t n,
		     size_t *ret_bad, struct hearth_err *err);
int emb_usage_get(struct hearth_tenant *t, struct hearth_pool *pool, struct hearth_usage *ret_u);
int emb_peak_reset(struct hearth_tenant *t, struct hearth_pool *pool);
int emb_state(struct hearth *h, struct hearth_state_row **ret_rows, size_t *ret_n,
	      uint64_t *ret_seq);

/* -- embedded_obj.c -------------------------------------------------------------- */

/* Best fit in one piece; else, unless it must be one, the largest pieces. */
int emb_obj_carve(struct emb_obj *obj, uint64_t align, unsigned flags);
void emb_obj_give_back(struct emb_obj *obj);
/* Maps all extents one after the other at a multiple of @align. Needs no lock. */
int emb_obj_map(const struct emb_obj *obj, uint64_t page, uint64_t align, int prot, void **ret_ptr);
void emb_obj_link(struct emb_pool *p, struct emb_obj *obj);
/* The owner promises not to touch it, until it takes it back. */
void emb_obj_offer(struct emb_obj *obj);
void emb_obj_take_back(struct emb_obj *obj);
/* Takes the oldest offered region of an account. Lock held. */
void emb_purge_oldest(struct emb *e, struct emb_account *acct);
/*
 * Takes @obj out of its pool, unmaps @mapping (may be NULL), zeroes, gives
 * back. Lock held; it is dropped in between, when nobody can reach @obj.
 */
void emb_obj_destroy(struct emb *e, struct emb_obj *obj, void *mapping);

/* -- embedded_region.c ----------------------------------------------------------- */

int emb_region_alloc(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t size,
		     uint64_t align, unsigned flags, unsigned wait_ms,
		     struct hearth_region **ret_r, struct hearth_err *err);
void emb_region_close(struct hearth_region *r, bool free_it);
int emb_region_seal(struct hearth_region *r, struct hearth_err *err);
int emb_region_name(struct hearth_region *r, const char *name, const uint8_t *digest,
		    struct hearth_err *err);
int emb_region_find(struct hearth_tenant *t, struct hearth_pool *pool, const char *name,
		    const uint8_t *digest, struct hearth_region **ret_r, struct hearth_err *err);
int emb_region_purgeable(struct hearth_region *r, struct hearth_err *err);
int emb_region_take_back(struct hearth_region *r, bool *ret_survived);
int emb_region_share(struct hearth_region *r, bool writable, int *ret_fd, struct hearth_err *err);
int emb_region_import(struct hearth_tenant *t, int fd, struct hearth_region **ret_r,
		      struct hearth_err *err);
int emb_region_export(struct hearth_region *r, int *ret_fd, struct hearth_err *err);
int emb_region_drop(struct hearth_pool *pool, const char *name, struct hearth_err *err);
int emb_regions(struct hearth *h, struct hearth_region_row **ret_rows, size_t *ret_n);

/* -- embedded_event.c -------------------------------------------------------------- */

/* Fills seq, time and names, and puts it to whoever listens. Lock held. */
void emb_emit(struct emb *e, const struct emb_rec *rec, const struct emb_pool *pool,
	      struct hearth_event ev);
/* Events of a gauge of @rec (or NULL) in @pool (or NULL). Lock held. */
void emb_gauge(struct emb *e, struct pressure *p, const struct pressure_rules *rules,
	       uint64_t value, const struct emb_rec *rec, const struct emb_pool *pool);
int emb_events_open(struct hearth *h, struct hearth_tenant *t, struct hearth_events **ret_e,
		    struct hearth_err *err);
void emb_events_close(struct hearth_events *ev);
int emb_events_read(struct hearth_events *ev, struct hearth_event *ret_ev);
int emb_system(struct hearth *h, struct hearth_system *ret_sys);
void emb_ticker_stop(struct emb *e);  /* lock not held */

#endif
