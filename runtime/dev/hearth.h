/* SPDX-License-Identifier: MIT */
/*
 * libhearth: memory of a small machine, shared out under budgets.
 *
 *   struct hearth          a connection: the pools of this machine
 *   struct hearth_pool     a carve-out: weights, kv, scratch, or `account`
 *                          (no memory, charges only)
 *   struct hearth_tenant   who is charged: name, class, priority, and in each
 *                          pool a budget {min, low, high, max}
 *   struct hearth_region   memory of one pool, charged to one tenant, mapped
 *   struct hearth_events   numbered statements of what changed; an fd to poll
 *
 * There are two backends with one meaning: /dev/hearth (the kernel module,
 * for all processes of the machine), and embedded pools (memfd, this process
 * only, no privilege), which serve where the module is not loaded.
 *
 * Typical use:
 *
 *	struct hearth_pool_spec pools[] = {
 *		{ .kind = HEARTH_KIND_WEIGHTS, .name = "weights", .size = 1 << 30 },
 *		{ .kind = HEARTH_KIND_KV,      .name = "kv",      .size = 256 << 20 },
 *		{ .kind = HEARTH_KIND_ACCOUNT, .name = "account", .size = 512 << 20 },
 *	};
 *	struct hearth_options o;
 *	hearth_options_defaults(&o);
 *	o.pools = pools;
 *	o.n_pools = 3;
 *	hearth_open(&o, &h, &err);
 *	hearth_tenant_open(h, "llm", HEARTH_CLASS_LLM, 20, &t, &err);
 *	hearth_region_alloc(t, hearth_pool(h, HEARTH_KIND_WEIGHTS), size, 4096,
 *			    0, 0, &r, &err);
 *	memcpy(hearth_region_ptr(r), ...);
 *	hearth_region_seal(r, &err);
 *
 * Every function returns 0 (or what its contract says) or -errno; outputs are
 * last, named ret_x, and untouched on failure. `err` may be NULL; else it
 * receives one sentence: for a refused charge it names the limit and the
 * tenant that holds the memory. A refusal changes nothing.
 *
 * All functions may be called from any thread. A handle must not be closed or
 * freed while another thread still uses it. Closing NULL is legal. Times are
 * CLOCK_MONOTONIC nanoseconds. The library never prints, never exits, and
 * reads no environment variable.
 *
 * errno, one meaning each:
 *   ENOSPC     does not fit: a limit or the pool refused; nothing was changed
 *   ETIMEDOUT  waited as long as asked, and it still does not fit
 *   ENOENT     no such pool, tenant or region
 *   EEXIST     that name is taken
 *   EINVAL     an argument that is never right (size 0, bad alignment, ...)
 *   EBUSY      still in use
 *   EPERM      only the administrator may (device backend)
 *   ENODEV     a device was asked for and is not there
 *   EACCES     the device is there and may not be opened by this user
 *   EROFS      the region is sealed
 *   ESTALE     the region was purged; all that can be done is to free it
 *   EOPNOTSUPP this backend cannot do that
 *   EUSERS     as many charges of the tenant wait, or as many have it open, as
 *              may (device backend)
 *   ENOMEM     the system had no memory for it
 */
#ifndef HEARTH_DEV_HEARTH_H
#define HEARTH_DEV_HEARTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* The same struct as in base/err.h, so that this header stands alone. */
#ifndef HEARTH_ERR_TEXT
#define HEARTH_ERR_TEXT 512
struct hearth_err {
	int code;                    /* -errno of the failure, 0 when none */
	char text[HEARTH_ERR_TEXT];  /* one sentence, NUL-terminated UTF-8 */
};
#endif

#define HEARTH_NAME_LEN   32                /* of tenants and pools, with the NUL */
#define HEARTH_REGION_NAME_LEN 64           /* of regions, with the NUL */
#define HEARTH_DIGEST_LEN 32                /* bytes of a content digest */
#define HEARTH_UNLIMITED  UINT64_MAX
#define HEARTH_DEVICE     "/dev/hearth"

struct hearth;
struct hearth_pool;
struct hearth_tenant;
struct hearth_region;
struct hearth_events;

enum hearth_backend {
	HEARTH_BACKEND_AUTO,      /* the device when it is there, else embedded */
	HEARTH_BACKEND_EMBEDDED,  /* never the device */
	HEARTH_BACKEND_DEVICE,    /* the device or -ENODEV */
};

enum hearth_kind {
	HEARTH_KIND_WEIGHTS,
	HEARTH_KIND_KV,
	HEARTH_KIND_SCRATCH,
	HEARTH_KIND_ACCOUNT,      /* charges only, for memory taken elsewhere */
	HEARTH_KIND_COUNT
};

enum hearth_class {
	HEARTH_CLASS_OTHER,
	HEARTH_CLASS_STT,
	HEARTH_CLASS_TTS,
	HEARTH_CLASS_LLM,
	HEARTH_CLASS_VAD,
	HEARTH_CLASS_VISION,
	HEARTH_CLASS_EMBED,
	HEARTH_CLASS_COUNT
};

enum hearth_level {
	HEARTH_LEVEL_NONE,
	HEARTH_LEVEL_LOW,
	HEARTH_LEVEL_MEDIUM,
	HEARTH_LEVEL_CRITICAL,
};

/* "weights", "llm", "critical", ...; "?" outside the range. */
const char *hearth_kind_name(enum hearth_kind kind);
const char *hearth_class_name(enum hearth_class cls);
const char *hearth_level_name(enum hearth_level level);
/* The inverse, or -EINVAL. */
int hearth_kind_parse(const char *name, enum hearth_kind *ret_kind);
int hearth_class_parse(const char *name, enum hearth_class *ret_cls);

/* -- connection ----------------------------------------------------------- */

struct hearth_pool_spec {
	enum hearth_kind kind;
	const char *name;
	uint64_t size;            /* bytes; rounded up to a page (device: a block, 2 MiB) */
	/* hearth_pool_create only: device-tree node of the memory; NULL: pages of the system */
	const char *node;
};

struct hearth_options {
	enum hearth_backend backend;  /* default HEARTH_BACKEND_AUTO */
	const char *device;           /* default HEARTH_DEVICE */
	/*
	 * Embedded: the pools to make. Device: pools that must be there, each
	 * found by its name, else the first of its kind; the size is what the
	 * administrator gave it. At most 16.
	 */
	const struct hearth_pool_spec *pools;
	size_t n_pools;
};

void hearth_options_defaults(struct hearth_options *ret_o);

/*
 * Opens the backend that the options want. No /dev/hearth is an error
 * (-ENODEV) only with HEARTH_BACKEND_DEVICE; a device that is there and cannot
 * be used is always one. Strings of @o are copied. Undone by hearth_close.
 */
int hearth_open(const struct hearth_options *o, struct hearth **ret_h, struct hearth_err *err);

/*
 * Closes what is still open of this connection: tenants, regions and events
 * of @h are gone after it and must not be used.
 */
void hearth_close(struct hearth *h);

/* Which one is in use: HEARTH_BACKEND_EMBEDDED or HEARTH_BACKEND_DEVICE. */
enum hearth_backend hearth_backend_of(const struct hearth *h);

/* The same as a phrase for a person, e.g. "embedded pools (no /dev/hearth)". */
const char *hearth_backend_text(const struct hearth *h);

/*
 * Makes this connection an administrator's: -EPERM without CAP_SYS_ADMIN.
 * Embedded: 0, every connection is.
 */
int hearth_admin(struct hearth *h, struct hearth_err *err);

/* -- pools ---------------------------------------------------------------- */

struct hearth_pool_info {
	char name[HEARTH_NAME_LEN];
	enum hearth_kind kind;
	uint64_t size;
	uint64_t charged;         /* sum of current of all tenants */
	uint64_t peak;            /* highest charged */
	uint64_t guaranteed;      /* sum of min of all tenants */
	uint64_t claimable;       /* part of `guaranteed` not yet charged */
	uint64_t largest_free;    /* longest free extent, 0 for `account` */
	uint64_t quarantined;     /* freed, still held by a device (module only) */
	uint64_t large, medium, small;  /* bytes in 2 MiB, 64 KiB, 4 KiB blocks (module only) */
	enum hearth_level level;
	uint32_t regions;
	uint32_t tenants;
};

/* The first pool of a kind, or of a name; NULL when there is none. */
struct hearth_pool *hearth_pool(struct hearth *h, enum hearth_kind kind);
struct hearth_pool *hearth_pool_named(struct hearth *h, const char *name);
size_t hearth_pool_count(const struct hearth *h);
struct hearth_pool *hearth_pool_at(struct hearth *h, size_t i);

int hearth_pool_info(struct hearth_pool *pool, struct hearth_pool_info *ret_info);

/*
 * Embedded: grows or shrinks a pool (to a whole page). -ENOSPC below the sum
 * of min; -EBUSY when memory past the new end is in use. Device: -EPERM unless
 * administrator.
 */
int hearth_pool_resize(struct hearth_pool *pool, uint64_t size, struct hearth_err *err);

/*
 * Makes a pool (-EEXIST), removes one that is empty (-EBUSY; its handle is
 * gone after it). Device: administrator. Embedded: -EOPNOTSUPP, its pools are
 * made by hearth_open.
 */
int hearth_pool_create(struct hearth *h, const struct hearth_pool_spec *spec,
		       struct hearth_err *err);
int hearth_pool_remove(struct hearth_pool *pool, struct hearth_err *err);

/* -- tenants and budgets -------------------------------------------------- */

/*
 * Joins the tenant of that name, or makes it with min = low = 0 and high =
 * max = unlimited in every pool. A higher @priority is served first and asked
 * to give back last; 0..1000. On a name that another handle has open: -EEXIST.
 * @cls and @priority of a tenant that an administrator set up are kept as they
 * are. Undone by hearth_tenant_close.
 */
int hearth_tenant_open(struct hearth *h, const char *name, enum hearth_class cls, int priority,
		       struct hearth_tenant **ret_t, struct hearth_err *err);

/*
 * Frees its regions that are not named, gives back its charges, and forgets
 * it unless an administrator set it up. Named regions stay, charged to its
 * name, until they are found again or dropped.
 */
void hearth_tenant_close(struct hearth_tenant *t);

const char *hearth_tenant_name(const struct hearth_tenant *t);

/*
 * The descriptor that is the tenant: what is charged through it lasts until
 * its last copy is closed, so a program that inherits it keeps the charges.
 * Owned by @t. Embedded: -EOPNOTSUPP.
 */
int hearth_tenant_fd(const struct hearth_tenant *t);
struct hearth *hearth_tenant_connection(const struct hearth_tenant *t);

struct hearth_budget {
	uint64_t min;             /* guaranteed; nobody else can take it */
	uint64_t low;             /* protected from requests to give back */
	uint64_t high;            /* over it: an event, first in line to give back */
	uint64_t max;             /* over it: refused */
};

struct hearth_usage {
	struct hearth_budget budget;
	uint64_t current;
	uint64_t peak;
	uint64_t purgeable;       /* part of current in purgeable regions */
	uint64_t n_charge;        /* charges admitted */
	uint64_t n_refused_max;   /* refused: over its own max */
	uint64_t n_refused_pool;  /* refused: the pool was full */
	uint64_t n_refused_min;   /* refused: the rest is guaranteed to others */
	uint64_t n_refused_queue; /* refused: others waited ahead */
	uint64_t n_high;          /* times it went over high */
	uint64_t n_reclaim;       /* times it was asked to give back */
	uint64_t n_purged;        /* regions of it that were purged */
	uint64_t purged_bytes;
};

/* min = low = 0, high = max = unlimited. */
void hearth_budget_defaults(struct hearth_budget *ret_b);

/*
 * Replaces the four limits. -ENOSPC when the sum of min would pass the pool's
 * size (the sentence says whose min is in the way), -EINVAL when min > max.
 * Lowering a limit below current is allowed: the tenant is asked to give back.
 * Device: -EPERM unless administrator.
 */
int hearth_budget_set(struct hearth_tenant *t, struct hearth_pool *pool,
		      const struct hearth_budget *b, struct hearth_err *err);

int hearth_usage_get(struct hearth_tenant *t, struct hearth_pool *pool,
		     struct hearth_usage *ret_u);

/* Sets peak to current. */
int hearth_peak_reset(struct hearth_tenant *t, struct hearth_pool *pool);

/* One line of a whole configuration; a tenant that is not there is made. */
struct hearth_budget_line {
	const char *tenant;
	enum hearth_class cls;
	int priority;
	const char *pool;
	struct hearth_budget budget;
};

/*
 * Sets all lines or none. Tenants named here are kept when nobody has them
 * open. @ret_bad (may be NULL) receives the index of the line that is wrong.
 */
int hearth_budget_apply(struct hearth *h, const struct hearth_budget_line *lines, size_t n,
			size_t *ret_bad, struct hearth_err *err);

/*
 * Forgets an administrator's tenant that nobody has open: -EBUSY while it is
 * open or holds memory, -ENOENT. Device: -EPERM unless administrator.
 */
int hearth_tenant_remove(struct hearth *h, const char *name, struct hearth_err *err);

/*
 * How many bytes @t could be charged in @pool now: without anybody giving
 * back, and when purgeable regions of others are taken. Only a statement of
 * this moment. Either output may be NULL.
 */
int hearth_available(struct hearth_tenant *t, struct hearth_pool *pool,
		     uint64_t *ret_now, uint64_t *ret_with_purge);

/*
 * Charges without memory, for what a tenant takes elsewhere (CUDA context,
 * a speech engine's heap). Works in any pool, meant for `account`. @wait_ms:
 * 0 never waits; else up to that long for others to give back, highest
 * priority first. -ENOSPC or -ETIMEDOUT with the limit and the holder.
 */
int hearth_charge(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t bytes,
		  unsigned wait_ms, struct hearth_err *err);

/* -EINVAL when more than hearth_charge took. */
int hearth_uncharge(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t bytes);

/* -- regions -------------------------------------------------------------- */

enum hearth_region_flags {
	/* One extent; else several that are mapped one after the other. */
	HEARTH_REGION_CONTIGUOUS = 1 << 0,
};

/*
 * Charges, carves, zeroes and maps @size bytes (rounded up to a page, and
 * charged as rounded). @align: of the address, a power of two, 0 means page.
 * @wait_ms as in hearth_charge. Memory is touched only when used. Undone by
 * hearth_region_free.
 */
int hearth_region_alloc(struct hearth_tenant *t, struct hearth_pool *pool, uint64_t size,
			uint64_t align, unsigned flags, unsigned wait_ms,
			struct hearth_region **ret_r, struct hearth_err *err);

/* Unmaps and gives the memory and the charge back, also of a named region. */
void hearth_region_free(struct hearth_region *r);

/*
 * Unmaps and forgets the handle. A named region stays where it is and can be
 * found again; one without a name is freed.
 */
void hearth_region_close(struct hearth_region *r);

void *hearth_region_ptr(const struct hearth_region *r);
uint64_t hearth_region_size(const struct hearth_region *r);  /* as rounded */

/*
 * Makes it read-only for good: no writable mapping remains and none can be
 * made. The address stays. A write to it is SIGSEGV. -ESTALE when purged.
 */
int hearth_region_seal(struct hearth_region *r, struct hearth_err *err);
bool hearth_region_sealed(const struct hearth_region *r);

/*
 * Gives it a name (1..63 bytes) and a digest of its content, and lets it
 * outlive its tenant. Names are unique in a pool: -EEXIST. @digest may be
 * NULL (all zero). Only a sealed region can be found by another tenant.
 */
int hearth_region_name(struct hearth_region *r, const char *name,
		       const uint8_t digest[HEARTH_DIGEST_LEN], struct hearth_err *err);

/*
 * Finds a named region and maps it (read-only when sealed). @digest: NULL
 * means any. When its owner is gone, the charge moves to @t (-ENOSPC when that
 * does not fit); while the owner is there, it stays with the owner, and a
 * region that is not sealed is -EBUSY. -ENOENT when there is none, or it has
 * another digest (the sentence says which of the two).
 */
int hearth_region_find(struct hearth_tenant *t, struct hearth_pool *pool, const char *name,
		       const uint8_t *digest, struct hearth_region **ret_r,
		       struct hearth_err *err);

/*
 * Purgeable: the owner promises not to touch it until it is taken back, and
 * anybody whose charge does not fit may have its memory meanwhile.
 * hearth_region_take_back says whether the content is still there; when it is
 * not, the region holds no memory any more and is good only to be freed.
 */
int hearth_region_purgeable(struct hearth_region *r, struct hearth_err *err);
int hearth_region_take_back(struct hearth_region *r, bool *ret_survived);

/*
 * A descriptor of the region for another process, which maps it with
 * hearth_region_import; read-only unless @writable (-EROFS when sealed). The
 * charge stays, once, with the region's tenant. Owned by the caller. Embedded:
 * -EOPNOTSUPP.
 */
int hearth_region_share(struct hearth_region *r, bool writable, int *ret_fd,
			struct hearth_err *err);

/*
 * Maps the region of a descriptor that another process passed on: read-only
 * when the descriptor or the region is. The descriptor is taken over on
 * success. @t: whose handle it is; the charge is not moved. -ENOENT: its pool
 * came after this connection was opened. -EINVAL: no region's descriptor.
 */
int hearth_region_import(struct hearth_tenant *t, int fd, struct hearth_region **ret_r,
			 struct hearth_err *err);

/*
 * A descriptor of the region (dma-buf) for a device driver or another process; read-only when sealed. Owned by the caller. Embedded: -EOPNOTSUPP.
 */
int hearth_region_export(struct hearth_region *r, int *ret_fd, struct hearth_err *err);

/*
 * Frees a named region that nobody has open. -EBUSY when somebody has.
 * Device: -EPERM unless administrator.
 */
int hearth_region_drop(struct hearth_pool *pool, const char *name, struct hearth_err *err);

/* -- events --------------------------------------------------------------- */

enum hearth_event_type {
	HEARTH_EVENT_LOST,        /* `bytes` of them did not fit the queue: read the state */
	HEARTH_EVENT_PRESSURE,    /* `level` of a tenant, a pool, or (no names) the system */
	HEARTH_EVENT_HIGH,        /* the tenant went over high */
	HEARTH_EVENT_REFUSED,     /* a charge of `bytes` was refused; `limit`: enum hearth_why */
	HEARTH_EVENT_RECLAIM,     /* please give back `bytes` before `deadline_ns` */
	HEARTH_EVENT_PURGED,      /* a purgeable region of `bytes` was taken */
	HEARTH_EVENT_BUDGET,      /* limits were changed */
	HEARTH_EVENT_TENANT_NEW,
	HEARTH_EVENT_TENANT_GONE,
	HEARTH_EVENT_POOL_NEW,
	HEARTH_EVENT_POOL_SIZE,   /* `current`: charged, `limit`: the new size */
	HEARTH_EVENT_POOL_GONE,
	HEARTH_EVENT_COUNT
};

/* Which limit refused. */
enum hearth_why {
	HEARTH_WHY_MAX = 1,       /* the tenant's own max */
	HEARTH_WHY_POOL,          /* not that much is free */
	HEARTH_WHY_MIN,           /* free, but guaranteed to others */
	HEARTH_WHY_QUEUE,         /* free, but others wait ahead */
	HEARTH_WHY_PIECES = 7,    /* free, but not in one piece */
};
const char *hearth_why_name(enum hearth_why why);

struct hearth_event {
	uint64_t seq;             /* counts every event of the machine, from 1 */
	uint64_t time_ns;
	enum hearth_event_type type;
	enum hearth_level level;
	uint64_t bytes;
	uint64_t current;         /* of the tenant, or charged of the pool */
	uint64_t limit;           /* the limit or threshold that it is about */
	uint64_t deadline_ns;     /* RECLAIM: 0 when none */
	char tenant[HEARTH_NAME_LEN];  /* "" when of no tenant */
	char pool[HEARTH_NAME_LEN];    /* "" when of no pool */
};

const char *hearth_event_name(enum hearth_event_type type);

/*
 * Opens a stream: the events of @t, of the pools, and of the system; with @t
 * NULL those of all tenants.
 */
int hearth_events_open(struct hearth *h, struct hearth_tenant *t,
		       struct hearth_events **ret_e, struct hearth_err *err);
void hearth_events_close(struct hearth_events *e);

/* Readable (poll) while an event waits. Owned by @e. */
int hearth_events_fd(const struct hearth_events *e);

/* Never blocks: 1 and an event, 0 when none waits, or -errno. */
int hearth_events_read(struct hearth_events *e, struct hearth_event *ret_ev);

/* -- the whole state ------------------------------------------------------ */

/* One tenant in one pool. */
struct hearth_state_row {
	char tenant[HEARTH_NAME_LEN];
	enum hearth_class cls;
	int priority;
	bool open;                /* somebody has it open now */
	bool kept;                /* stays when nobody has (administrator's) */
	char pool[HEARTH_NAME_LEN];
	enum hearth_kind kind;
	enum hearth_level level;
	struct hearth_usage usage;
};

/*
 * All tenants times all pools, at one moment, in the order tenants came and
 * pools were made. The array is the caller's: free(). *ret_seq (may be NULL):
 * every event up to that number is in the figures. Device: row by row, so that
 * figures may be younger than that.
 */
int hearth_state(struct hearth *h, struct hearth_state_row **ret_rows, size_t *ret_n,
		 uint64_t *ret_seq);

/* The machine's memory, reserved pools aside. */
struct hearth_system {
	enum hearth_level level;
	uint64_t total;
	uint64_t available;       /* less free CMA, which no pool can have */
	uint64_t seq;             /* the last event of the machine */
};

int hearth_system(struct hearth *h, struct hearth_system *ret_sys);

struct hearth_region_row {
	char name[HEARTH_REGION_NAME_LEN];  /* "" when it has none */
	uint8_t digest[HEARTH_DIGEST_LEN];
	char tenant[HEARTH_NAME_LEN];       /* who is charged */
	char pool[HEARTH_NAME_LEN];
	uint64_t size;
	uint32_t extents;
	uint32_t handles;                   /* open handles on it */
	bool sealed;
	bool purgeable;
};

/* All regions. free(). */
int hearth_regions(struct hearth *h, struct hearth_region_row **ret_rows, size_t *ret_n);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
