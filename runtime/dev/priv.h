/* SPDX-License-Identifier: MIT */
/*
 * What the parts of libhearth share: the handles' common heads and the table
 * of calls that a backend fills. hearth.c checks arguments that are wrong in
 * any state, then calls the backend; a backend sees only sane arguments.
 */
#ifndef HEARTH_DEV_PRIV_H
#define HEARTH_DEV_PRIV_H

#include <stdint.h>

#include "dev/hearth.h"
#include "base/err.h"

#define DEV_POOLS_MAX 64        /* that a connection can speak of */
#define DEV_POOLS_ASK 16        /* of hearth_options */

struct hearth_ops {
	void (*close)(struct hearth *h);
	int (*pool_info)(struct hearth_pool *pool, struct hearth_pool_info *ret_info);
	int (*admin)(struct hearth *h, struct hearth_err *err);
	int (*pool_create)(struct hearth *h, const struct hearth_pool_spec *spec,
			   struct hearth_err *err);
	int (*pool_remove)(struct hearth_pool *pool, struct hearth_err *err);
	int (*pool_resize)(struct hearth_pool *pool, uint64_t size, struct hearth_err *err);
	int (*tenant_open)(struct hearth *h, const char *name, enum hearth_class cls,
			   int priority, struct hearth_tenant **ret_t, struct hearth_err *err);
	void (*tenant_close)(struct hearth_tenant *t);
	int (*tenant_fd)(const struct hearth_tenant *t);
	int (*tenant_remove)(struct hearth *h, const char *name, struct hearth_err *err);
	int (*budget_set)(struct hearth_tenant *t, struct hearth_pool *pool,
			  const struct hearth_budget *b, struct hearth_err *err);
	int (*budget_apply)(struct hearth *h, const struct hearth_budget_line *lines, size_t n,
			    size_t *ret_bad, struct hearth_err *err);
	int (*usage_get)(struct hearth_tenant *t, struct hearth_pool *pool,
			 struct hearth_usage *ret_u);
	int (*peak_reset)(struct hearth_tenant *t, struct hearth_pool *pool);
	int (*available)(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t *ret_now,
			 uint64_t *ret_with_purge);
	int (*charge)(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t bytes,
		      unsigned wait_ms, struct hearth_err *err);
	int (*uncharge)(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t bytes);
	int (*region_alloc)(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t size,
			    uint64_t align, unsigned flags, unsigned wait_ms,
			    struct hearth_region **ret_r, struct hearth_err *err);
	void (*region_close)(struct hearth_region *r, bool free_it);
	int (*region_seal)(struct hearth_region *r, struct hearth_err *err);
	int (*region_name)(struct hearth_region *r, const char *name, const uint8_t *digest,
			   struct hearth_err *err);
	int (*region_find)(struct hearth_tenant *t, struct hearth_pool *pool, const char *name,
			   const uint8_t *digest, struct hearth_region **ret_r,
			   struct hearth_err *err);
	int (*region_purgeable)(struct hearth_region *r, struct hearth_err *err);
	int (*region_take_back)(struct hearth_region *r, bool *ret_survived);
	int (*region_share)(struct hearth_region *r, bool writable, int *ret_fd,
			    struct hearth_err *err);
	int (*region_import)(struct hearth_tenant *t, int fd, struct hearth_region **ret_r,
			     struct hearth_err *err);
	int (*region_export)(struct hearth_region *r, int *ret_fd, struct hearth_err *err);
	int (*region_drop)(struct hearth_pool *pool, const char *name, struct hearth_err *err);
	int (*events_open)(struct hearth *h, struct hearth_tenant *t,
			   struct hearth_events **ret_e, struct hearth_err *err);
	void (*events_close)(struct hearth_events *e);
	int (*events_read)(struct hearth_events *e, struct hearth_event *ret_ev);
	int (*state)(struct hearth *h, struct hearth_state_row **ret_rows, size_t *ret_n,
		     uint64_t *ret_seq);
	int (*system)(struct hearth *h, struct hearth_system *ret_sys);
	int (*regions)(struct hearth *h, struct hearth_region_row **ret_rows, size_t *ret_n);
};

struct hearth {
	const struct hearth_ops *ops;
	enum hearth_backend backend;
	char text[160];
	size_t n_pools;
	struct hearth_pool *pools[DEV_POOLS_MAX];
};

struct hearth_pool {
	struct hearth *h;
	size_t index;
	enum hearth_kind kind;
	char name[HEARTH_NAME_LEN];
};

struct hearth_tenant {
	struct hearth *h;
	char name[HEARTH_NAME_LEN];
};

/* ptr and size are written before the handle is given out; sealed is read and
 * written with atomics, because a second handle of the region may seal it. */
struct hearth_region {
	struct hearth_tenant *t;
	struct hearth_pool *pool;
	void *ptr;
	uint64_t size;
	bool sealed;
};

struct hearth_events {
	struct hearth *h;
	int fd;
};

int embedded_open(const struct hearth_options *o, struct hearth **ret_h, struct hearth_err *err);
int device_open(const struct hearth_options *o, struct hearth **ret_h, struct hearth_err *err);

/* -- text.c ------------------------------------------------------------------ */

/* "512.0 MiB", "4096 bytes", "no limit". */
#define DEV_BYTES_LEN 32
const char *text_bytes(uint64_t bytes, char buf[DEV_BYTES_LEN]);

enum text_limit {
	TEXT_BY_MAX,
	TEXT_BY_POOL,
	TEXT_BY_MIN,
	TEXT_BY_QUEUE,
	TEXT_BY_ORDER,
	TEXT_BY_SUM,
	TEXT_BY_PIECES,
};

struct text_refusal {
	enum text_limit limit;
	const char *tenant;
	const char *pool;
	const char *holder;       /* "" when nobody */
	uint64_t wanted;
	uint64_t limit_bytes;
	uint64_t available;
	uint64_t holder_bytes;
};

/* The sentence of a refusal; returns @code. */
int text_refuse(struct hearth_err *err, int code, const struct text_refusal *ref);

/* Copies a name of libhearth's rules into a zeroed field; -EINVAL and a sentence. */
int text_name(char *to, size_t cap, const char *name, const char *what, struct hearth_err *err);

#endif
