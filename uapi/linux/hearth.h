/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * /dev/hearth: pinned memory, shared out under budgets.
 *
 * THE MODEL
 *
 *  pool     a carve-out of physical memory. Kinds: weights, kv, scratch, and
 *           account, which has no memory and only counts charges (for memory
 *           that a tenant takes elsewhere: a CUDA context, an engine's heap).
 *  tenant   who is charged. Has a name, a class, a priority, and in each pool
 *           a budget {min, low, high, max}.
 *  region   memory of one pool, charged to one tenant. Can be mapped, exported
 *           as dma-buf, shared, sealed read-only, offered for purging, named
 *           and kept after its owner's death.
 *  event    a numbered statement of a change.
 *
 * DESCRIPTORS
 *
 *  An open /dev/hearth is a connection. HEARTH_IOC_JOIN makes it a connection
 *  of one tenant, for good; several connections may be of one tenant. What a
 *  connection charged with HEARTH_IOC_CHARGE is given back when its last
 *  descriptor is closed. A tenant that the administrator did not set up is
 *  forgotten when its last connection is closed and it holds no memory.
 *
 *  A region is a descriptor too (HEARTH_IOC_ALLOC, _FIND, _SHARE): mmap(2) at
 *  offset 0 up to its size, MAP_SHARED only. The memory goes back to the pool
 *  when the last descriptor, mapping and dma-buf of a region is gone and the
 *  region is not kept. Sharing a region with another process is passing its
 *  descriptor; it stays charged, once, to its tenant. A descriptor that is
 *  open O_RDONLY makes read-only mappings only.
 *
 *  Every descriptor made here is O_CLOEXEC. Identity is the open file, never a
 *  pid. Waiting is poll(2) and read(2) on the connection.
 *
 * PRIVILEGE
 *
 *  Who has CAP_SYS_ADMIN (on the machine, not in a user namespace of a
 *  container) makes a connection an administrator's with HEARTH_IOC_ADMIN; it
 *  stays one in whoever's hands it comes. Only an
 *  administrator's connection may set limits, make or change pools, give a
 *  tenant a priority above HEARTH_PRIORITY_USER_MAX, remove tenants, or drop
 *  another tenant's kept region. The figures (who is charged how much, names,
 *  digests) may be read by everybody who may open the device, and by netlink by
 *  everybody; the contents of memory only by those who have a descriptor of the
 *  region. No call tells a physical address.
 *
 * STRUCTS
 *
 *  An ioctl takes a pointer to a struct that begins with its own size in
 *  bytes. A size below the first version of the struct is EINVAL. A struct
 *  that is larger than the kernel knows is taken when the unknown tail is
 *  zero, else it is E2BIG; of a smaller one the missing fields count as zero.
 *  Fields named reserved must be zero (EINVAL). Unknown bits of a flags field
 *  are EOPNOTSUPP, and so are unknown values of an enum. Fields named out_ are
 *  written by the kernel and ignored as input. The layout is the same for
 *  32-bit and 64-bit callers.
 *
 *  A call that fails changes nothing: neither the state nor the struct. The
 *  exceptions: out_bad of HEARTH_IOC_BUDGET_SET, and, where HEARTH_IOC_ALLOC,
 *  _CHARGE, _FIND, _BUDGET_SET and _POOL_RESIZE fail with ENOSPC or ETIMEDOUT,
 *  out_refusal: which limit refused, and whose memory stands in the way. The
 *  counters of refusals count, and what was purged to make room stays purged,
 *  even where that room turns out to be in pieces too small.
 *
 * BUDGETS
 *
 *  min   guaranteed; the sum of min in a pool is at most its size
 *  low   not asked to give back while at or below low and somebody else is
 *        above theirs
 *  high  going over it succeeds, makes an event, and puts the tenant first in
 *        line when memory is wanted back
 *  max   going over it is refused
 *
 *  A charge of n bytes is admitted when current + n <= max and the pool's free
 *  bytes, less what other tenants may still claim under their min, less what
 *  waiters ahead of it want, cover n. When it does not fit, purgeable regions
 *  of others are taken (those over high first, then the lowest priority); then,
 *  if the caller gave a deadline, those who can give back are asked to
 *  (HEARTH_EV_RECLAIM) and the caller waits, highest priority first; then it is
 *  refused. Limits may be set below current: that starts a reclaim.
 *
 * MEMORY
 *
 *  Every region is zeroed before its first descriptor exists, unless all of it
 *  last belonged to the same tenant and HEARTH_ALLOC_STALE allowed that. Memory
 *  that something outside (a device driver, a pending I/O) still holds when its
 *  region goes is quarantined: counted, and not given to anybody until the last
 *  such hold is gone. Mapped memory counts as RssFile of every process that
 *  maps it.
 *
 * ERRORS, one meaning each
 *
 *  E2BIG       the struct is newer than this kernel and uses what it lacks
 *  EACCES      this descriptor does not allow that: it is read-only, the
 *              mapping would be private, executable, or writable where it
 *              may not be, or another user's tenant was to be joined
 *  EAGAIN      read: no event waits (O_NONBLOCK)
 *  EBUSY       in use: joined already, still charged, still mapped or held
 *  EEXIST      that name is taken
 *  EFAULT      a pointer does not point to memory of the caller
 *  EINTR       a signal ended the wait
 *  EINVAL      an argument that is never right
 *  EMFILE/ENFILE  no descriptor is left
 *  ENODEV      the device-tree node is missing or cannot serve as a pool (of
 *              mmap: a connection has nothing to map)
 *  ENOENT      no such pool, tenant or region
 *  ENOMEM      the system had no memory for the bookkeeping, or for the blocks
 *              of a new pool
 *  ENOSPC      does not fit: see out_refusal
 *  ENOTCONN    this connection has joined no tenant
 *  ENOTTY      no such ioctl on this descriptor
 *  EOPNOTSUPP  a flag, kind or capability that this kernel does not have
 *  EOVERFLOW   more of them than there can be (pools, tenants)
 *  EPERM       only the administrator may
 *  EROFS       the region is sealed
 *  ESTALE      the region was purged; all that can be done is to close it
 *  ETIMEDOUT   waited as long as asked, and it still does not fit
 *  EUSERS      one tenant has as many as it may have: of connections
 *              (HEARTH_CONNECTIONS_MAX), or of charges that wait in one pool
 *              (HEARTH_WAITERS_MAX)
 */
#ifndef _UAPI_LINUX_HEARTH_H
#define _UAPI_LINUX_HEARTH_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define HEARTH_IOC_MAGIC	0xE7

#define HEARTH_NAME_MAX		32	/* pools and tenants, with the NUL */
#define HEARTH_REGION_NAME_MAX	64	/* regions, with the NUL */
#define HEARTH_DIGEST_MAX	32	/* bytes of a content digest */
#define HEARTH_BUDGETS_MAX	1024	/* entries of one HEARTH_IOC_BUDGET_SET */
#define HEARTH_CONNECTIONS_MAX	1024	/* of one tenant, at a time */
#define HEARTH_WAITERS_MAX	64	/* charges of one tenant that wait in one pool */
#define HEARTH_PRIORITY_MAX	1000
#define HEARTH_PRIORITY_USER_MAX 500	/* more needs the administrator */
#define HEARTH_NOLIMIT		(~0ULL)	/* as high and max */
#define HEARTH_NOWAIT		0ULL	/* as deadline: do not wait */
#define HEARTH_ANY_UID		(~0U)

/*
 * Names are 1 to MAX-1 bytes of letters, digits and . _ - : / @, do not begin
 * with . or /, and are filled up with zero bytes.
 */

enum hearth_pool_kind {
	HEARTH_POOL_WEIGHTS,
	HEARTH_POOL_KV,
	HEARTH_POOL_SCRATCH,
	HEARTH_POOL_ACCOUNT,	/* charges only */
};

enum hearth_backing {
	HEARTH_BACKING_NONE,	/* kind account, and only that */
	HEARTH_BACKING_BUDDY,	/* 2 MiB blocks of the page allocator, 64 KiB
				 * and 4 KiB where those cannot be had */
	HEARTH_BACKING_RESERVED,/* a device-tree reserved-memory node */
};

enum hearth_tenant_class {
	HEARTH_TENANT_OTHER,
	HEARTH_TENANT_STT,
	HEARTH_TENANT_TTS,
	HEARTH_TENANT_LLM,
	HEARTH_TENANT_VAD,
	HEARTH_TENANT_VISION,
	HEARTH_TENANT_EMBED,
};

enum hearth_pressure_level {
	HEARTH_PRESSURE_NONE,
	HEARTH_PRESSURE_LOW,
	HEARTH_PRESSURE_MEDIUM,
	HEARTH_PRESSURE_CRITICAL,
};

/* Which limit refused. */
enum hearth_limit {
	HEARTH_LIMIT_NONE,
	HEARTH_LIMIT_MAX,	/* the tenant's own max */
	HEARTH_LIMIT_POOL,	/* not that much is free */
	HEARTH_LIMIT_MIN,	/* free, but guaranteed to others */
	HEARTH_LIMIT_QUEUE,	/* free, but others wait ahead */
	HEARTH_LIMIT_ORDER,	/* a budget with min > max */
	HEARTH_LIMIT_SUM,	/* sum of min would pass the pool's size */
	HEARTH_LIMIT_PIECES,	/* free, but in pieces too small or badly
				 * placed for what was asked */
};

/**
 * struct hearth_refusal - why it does not fit
 * @limit: enum hearth_limit
 * @holder: tenant that stands in the way, 0 when nobody does
 * @wanted: bytes that were asked for
 * @limit_bytes: the value of the limit
 * @available: bytes that would have been admitted
 * @holder_bytes: what the holder holds (LIMIT_MIN: may still claim, LIMIT_SUM:
 *	its min, LIMIT_QUEUE: waits for)
 * @holder_name: the holder's name, empty when nobody does
 */
struct hearth_refusal {
	__u32 limit;
	__u32 holder;
	__aligned_u64 wanted;
	__aligned_u64 limit_bytes;
	__aligned_u64 available;
	__aligned_u64 holder_bytes;
	char holder_name[HEARTH_NAME_MAX];
};

enum {
	/* on a connection */
	HEARTH_CMD_INFO = 0,
	HEARTH_CMD_ADMIN,
	HEARTH_CMD_JOIN,
	HEARTH_CMD_POOL_CREATE = 0x10,
	HEARTH_CMD_POOL_RESIZE,
	HEARTH_CMD_POOL_REMOVE,
	HEARTH_CMD_POOL_GET,
	HEARTH_CMD_TENANT_GET = 0x20,
	HEARTH_CMD_TENANT_REMOVE,
	HEARTH_CMD_BUDGET_GET,
	HEARTH_CMD_BUDGET_SET,
	HEARTH_CMD_CHARGE = 0x30,
	HEARTH_CMD_UNCHARGE,
	HEARTH_CMD_ALLOC = 0x40,
	HEARTH_CMD_FIND,
	HEARTH_CMD_REGION_GET,	/* on a region too */
	HEARTH_CMD_DROP,
	HEARTH_CMD_WATCH = 0x50,
	HEARTH_CMD_STATE,
	/* on a region */
	HEARTH_CMD_SEAL = 0x60,
	HEARTH_CMD_OFFER,
	HEARTH_CMD_TAKE_BACK,
	HEARTH_CMD_KEEP,
	HEARTH_CMD_SHARE,
	HEARTH_CMD_EXPORT,
};

/* -- on a connection ------------------------------------------------------- */

#define HEARTH_CAP_BUDDY	(1ULL << 0)
#define HEARTH_CAP_RESERVED	(1ULL << 1)	/* kernel has a device tree */
#define HEARTH_CAP_CHARGE	(1ULL << 2)
#define HEARTH_CAP_WAIT		(1ULL << 3)
#define HEARTH_CAP_SEAL		(1ULL << 4)
#define HEARTH_CAP_PURGE	(1ULL << 5)
#define HEARTH_CAP_KEEP		(1ULL << 6)
#define HEARTH_CAP_SHARE	(1ULL << 7)
#define HEARTH_CAP_DMABUF	(1ULL << 8)
#define HEARTH_CAP_EVENTS	(1ULL << 9)
#define HEARTH_CAP_NETLINK	(1ULL << 10)
#define HEARTH_CAP_SYSTEM	(1ULL << 11)	/* pressure of the whole system */

/**
 * struct hearth_ioc_info - ioctl(HEARTH_IOC_INFO): what this kernel can do
 * @size: sizeof(struct hearth_ioc_info)
 * @out_version: version of the module, major << 16 | minor << 8 | patch
 * @out_caps: HEARTH_CAP_*
 * @out_page_size: unit of every size of memory
 * @out_block_size: bytes of a large block
 * @out_tenant: id of the tenant that this connection has joined, 0: none
 * @out_admin: 1 for an administrator's connection
 * @out_pools: number of pools
 * @out_tenants: number of tenants
 * @out_regions: number of regions
 * @out_reserved: 0
 */
struct hearth_ioc_info {
	__u32 size;
	__u32 out_version;
	__aligned_u64 out_caps;
	__u32 out_page_size;
	__u32 out_block_size;
	__u32 out_tenant;
	__u32 out_admin;
	__u32 out_pools;
	__u32 out_tenants;
	__u32 out_regions;
	__u32 out_reserved;
};
#define HEARTH_IOC_INFO _IO(HEARTH_IOC_MAGIC, HEARTH_CMD_INFO)

/**
 * struct hearth_ioc_admin - ioctl(HEARTH_IOC_ADMIN): become the administrator
 * @size: sizeof(struct hearth_ioc_admin)
 * @reserved: must be 0
 *
 * EPERM without CAP_SYS_ADMIN. The connection stays an administrator's when it
 * is handed to somebody who has no such capability.
 */
struct hearth_ioc_admin {
	__u32 size;
	__u32 reserved;
};
#define HEARTH_IOC_ADMIN _IO(HEARTH_IOC_MAGIC, HEARTH_CMD_ADMIN)

#define HEARTH_JOIN_CREATE	(1U << 0)	/* make it when it is not there */
#define HEARTH_JOIN_EXCL	(1U << 1)	/* nobody else may have joined it */

/**
 * struct hearth_ioc_join - ioctl(HEARTH_IOC_JOIN): join a tenant
 * @size: sizeof(struct hearth_ioc_join)
 * @flags: HEARTH_JOIN_*
 * @name: name of the tenant
 * @tenant_class: enum hearth_tenant_class, for a tenant that is made
 * @priority: for a tenant that is made; higher is served first and asked last
 * @out_tenant: its id (never 0, not used again while the module is loaded)
 * @out_class: its class
 * @out_priority: its priority
 * @reserved: must be 0
 *
 * A tenant that is made here has, in each pool, the pool's default budget (see
 * HEARTH_BUDGET_DEFAULT). One that is there keeps its class and priority.
 * ENOENT: not there, and not to be made. EEXIST: EXCL, and others have joined.
 * EBUSY: this connection has joined already. EACCES: it is another user's.
 * EPERM: made with a priority above HEARTH_PRIORITY_USER_MAX. EUSERS: it has
 * HEARTH_CONNECTIONS_MAX connections.
 */
struct hearth_ioc_join {
	__u32 size;
	__u32 flags;
	char name[HEARTH_NAME_MAX];
	__u32 tenant_class;
	__u32 priority;
	__u32 out_tenant;
	__u32 out_class;
	__u32 out_priority;
	__u32 reserved;
};
#define HEARTH_IOC_JOIN _IO(HEARTH_IOC_MAGIC, HEARTH_CMD_JOIN)

/**
 * struct hearth_ioc_pool_create - ioctl(HEARTH_IOC_POOL_CREATE): make a pool
 * @size: sizeof(struct hearth_ioc_pool_create)
 * @flags: must be 0
 * @name: its name
 * @kind: enum hearth_pool_kind
 * @backing: enum hearth_backing
 * @bytes: its size, a multiple of the block size (kind account: any); for
 *	RESERVED 0 means all of the node, and more than the node is EINVAL
 * @node: RESERVED: name of the node under /reserved-memory; else zeros
 * @out_pool: its id (never 0, not used again while the module is loaded)
 * @reserved: must be 0
 *
 * Administrator. EEXIST: the name is taken, or the node is in another pool.
 * ENODEV: no such node, or one with no-map or reusable (the kernel log says
 * which). ENOMEM: the page allocator cannot give that much.
 */
struct hearth_ioc_pool_create {
	__u32 size;
	__u32 flags;
	char name[HEARTH_NAME_MAX];
	__u32 kind;
	__u32 backing;
	__aligned_u64 bytes;
	char node[HEARTH_REGION_NAME_MAX];
	__u32 out_pool;
	__u32 reserved;
};
#define HEARTH_IOC_POOL_CREATE _IO(HEARTH_IOC_MAGIC, HEARTH_CMD_POOL_CREATE)

/**
 * struct hearth_ioc_pool_resize - ioctl(HEARTH_IOC_POOL_RESIZE)
 * @size: sizeof(struct hearth_ioc_pool_resize)
 * @pool: id of the pool
 * @bytes: its new size, a multiple of the block size (kind account: any)
 * @out_refusal: on ENOSPC
 *
 * Administrator. ENOSPC: below the sum of min. EBUSY: below what is charged,
 * or too few whole blocks are free. EINVAL: a reserved pool beyond its node. ENOMEM: the page
 * allocator cannot give that much.
 */
struct hearth_ioc_pool_resize {
	__u32 size;
	__u32 pool;
	__aligned_u64 bytes;
	struct hearth_refusal out_refusal;
};
#define HEARTH_IOC_POOL_RESIZE _IO(HEARTH_IOC_MAGIC, HEARTH_CMD_POOL_RESIZE)

/**
 * struct hearth_ioc_pool_remove - ioctl(HEARTH_IOC_POOL_REMOVE)
 * @size: sizeof(struct hearth_ioc_pool_remove)
 * @pool: id of the pool
 *
 * Administrator. EBUSY while anything is charged in it or quarantined. Budgets
 * that were set in it are forgotten.
 */
struct hearth_ioc_pool_remove {
	__u32 size;
	__u32 pool;
};
#define HEARTH_IOC_POOL_REMOVE _IO(HEARTH_IOC_MAGIC, HEARTH_CMD_POOL_REMOVE)

#define HEARTH_GET_NEXT		(1U << 0)	/* the one with the lowest id above */
#define HEARTH_GET_BY_NAME	(1U << 1)	/* look at the name, not at the id */

/**
 * struct hearth_ioc_pool_get - ioctl(HEARTH_IOC_POOL_GET): a pool's figures
 * @size: sizeof(struct hearth_ioc_pool_get)
 * @flags: HEARTH_GET_*, not both
 * @pool: in: id (0 with NEXT: from the first); out: its id
 * @out_kind: enum hearth_pool_kind
 * @name: in: with BY_NAME; out: its name
 * @out_backing: enum hearth_backing
 * @out_level: enum hearth_pressure_level
 * @out_bytes: size
 * @out_charged: sum of current
 * @out_peak: highest charged
 * @out_min_sum: sum of min
 * @out_claimable: part of min_sum that is not charged yet
 * @out_largest: bytes of the largest free extent (contiguous for the CPU's
 *	mapping; physically within one block)
 * @out_quarantined: bytes that something outside still holds
 * @out_large: bytes in 2 MiB blocks (RESERVED: all)
 * @out_medium: bytes in 64 KiB blocks
 * @out_small: bytes in single pages
 * @out_overhead: bytes of kernel memory that the pool's tables take
 * @out_regions: regions in it
 * @out_tenants: tenants with a budget in it
 * @out_default_max: max of a tenant that nobody set up
 *
 * ENOENT: none. With NEXT and ids from 0 up it lists every pool.
 */
struct hearth_ioc_pool_get {
	__u32 size;
	__u32 flags;
	__u32 pool;
	__u32 out_kind;
	char name[HEARTH_NAME_MAX];
	__u32 out_backing;
	__u32 out_level;
	__aligned_u64 out_bytes;
	__aligned_u64 out_charged;
	__aligned_u64 out_peak;
	__aligned_u64 out_min_sum;
	__aligned_u64 out_claimable;
	__aligned_u64 out_largest;
	__aligned_u64 out_quarantined;
	__aligned_u64 out_large;
	__aligned_u64 out_medium;
	__aligned_u64 out_small;
	__aligned_u64 out_overhead;
	__u32 out_regions;
	__u32 out_tenants;
	__aligned_u64 out_default_max;
};
#define HEARTH_IOC_POOL_GET _IO(HEARTH_IOC_MAGIC, HEARTH_CMD_POOL_GET)

/**
 * struct hearth_ioc_tenant_get - ioctl(HEARTH_IOC_TENANT_GET): who is there
 * @size: sizeof(struct hearth_ioc_tenant_get)
 * @flags: HEARTH_GET_*, not both
 * @tenant: in: id; out: its id
 * @out_class: enum hearth_tenant_class
 * @name: in: with BY_NAME; out: its name
 * @out_priority: its priority
 * @out_uid: who may join, HEARTH_ANY_UID: everybody
 * @out_connections: connections that have joined
 * @out_regions: regions that are charged to it
 * @out_persistent: 1: set up by the administrator
 * @out_level: enum hearth_pressure_level, the worst over the pools
 *
 * ENOENT: none.
 */
struct hearth_ioc_tenant_get {
	__u32 size;
	__u32 flags;
	__u32 tenant;
	__u32 out_class;
	char name[HEARTH_NAME_MAX];
	__u32 out_priority;
	__u32 out_uid;
	__u32 out_connections;
	__u32 out_regions;
	__u32 out_persistent;
	__u32 out_level;
};
#define HEARTH_IOC_TENANT_GET _IO(HEARTH_IOC_MAGIC, HEARTH_CMD_TENANT_GET)

/**
 * struct hearth_ioc_tenant_remove - ioctl(HEARTH_IOC_TENANT_REMOVE)
 * @size: sizeof(struct hearth_ioc_tenant_remove)
 * @tenant: id of the tenant
 *
 * Administrator. Forgets a tenant and its budgets. EBUSY while anybody has
 * joined it or anything is charged to it.
 */
struct hearth_ioc_tenant_remove {
	__u32 size;
	__u32 tenant;
};
#define HEARTH_IOC_TENANT_REMOVE _IO(HEARTH_IOC_MAGIC, HEARTH_CMD_TENANT_REMOVE)

#define HEARTH_BUDGET_RESET_PEAK (1U << 0)	/* set peak to current, after reading */

/**
 * struct hearth_ioc_budget_get - ioctl(HEARTH_IOC_BUDGET_GET)
 * @size: sizeof(struct hearth_ioc_budget_get)
 * @flags: HEARTH_BUDGET_RESET_PEAK (own tenant, or administrator: EPERM)
 * @tenant: id of the tenant, 0: the one that this connection has joined
 * @pool: id of the pool
 * @out_min: and so on: the limits
 * @out_current: bytes charged
 * @out_peak: highest current
 * @out_purgeable: part of current that is offered for purging
 * @out_available: what it could be charged now
 * @out_available_purge: and if the purgeable regions of others were taken
 * @out_excess: what it should give back, to be at or below high and max
 * @out_n_charge: charges admitted
 * @out_n_refused_max: charges refused by its max,
 * @out_n_refused_pool: by a full pool,
 * @out_n_refused_min: by the guarantees of others,
 * @out_n_refused_queue: by those that waited ahead
 * @out_n_high: times it went over high
 * @out_n_reclaim: times it was asked to give back
 * @out_n_purged: regions that were taken from it
 * @out_purged_bytes: their bytes
 * @out_level: enum hearth_pressure_level
 * @out_waiters: charges of it that wait
 */
struct hearth_ioc_budget_get {
	__u32 size;
	__u32 flags;
	__u32 tenant;
	__u32 pool;
	__aligned_u64 out_min;
	__aligned_u64 out_low;
	__aligned_u64 out_high;
	__aligned_u64 out_max;
	__aligned_u64 out_current;
	__aligned_u64 out_peak;
	__aligned_u64 out_purgeable;
	__aligned_u64 out_available;
	__aligned_u64 out_available_purge;
	__aligned_u64 out_excess;
	__aligned_u64 out_n_charge;
	__aligned_u64 out_n_refused_max;
	__aligned_u64 out_n_refused_pool;
	__aligned_u64 out_n_refused_min;
	__aligned_u64 out_n_refused_queue;
	__aligned_u64 out_n_high;
	__aligned_u64 out_n_reclaim;
	__aligned_u64 out_n_purged;
	__aligned_u64 out_purged_bytes;
	__u32 out_level;
	__u32 out_waiters;
};
#define HEARTH_IOC_BUDGET_GET _IO(HEARTH_IOC_MAGIC, HEARTH_CMD_BUDGET_GET)

/* What an entry sets; the rest stays as it is. */
#define HEARTH_SET_MIN		(1U << 0)
#define HEARTH_SET_LOW		(1U << 1)
#define HEARTH_SET_HIGH		(1U << 2)
#define HEARTH_SET_MAX		(1U << 3)
#define HEARTH_SET_CLASS	(1U << 4)
#define HEARTH_SET_PRIORITY	(1U << 5)
#define HEARTH_SET_UID		(1U << 6)
/* Make the tenant when it is not there, and keep it when nobody has joined. */
#define HEARTH_SET_CREATE	(1U << 7)
/*
 * Not a tenant (the name is all zero): the max that a tenant gets in this pool
 * which nobody set up. Goes with HEARTH_SET_MAX alone. At first it is
 * HEARTH_NOLIMIT; tenants that are there are not changed.
 */
#define HEARTH_BUDGET_DEFAULT	(1U << 8)

/**
 * struct hearth_budget_entry - one line of a set of budgets
 * @size: sizeof(struct hearth_budget_entry)
 * @mask: HEARTH_SET_*, HEARTH_BUDGET_DEFAULT
 * @tenant: name of the tenant
 * @pool: id of the pool; 0 when only class, priority or uid is set
 * @tenant_class: enum hearth_tenant_class
 * @priority: 0 to HEARTH_PRIORITY_MAX
 * @uid: who may join it, HEARTH_ANY_UID: everybody
 * @min: bytes, and so on
 */
struct hearth_budget_entry {
	__u32 size;
	__u32 mask;
	char tenant[HEARTH_NAME_MAX];
	__u32 pool;
	__u32 tenant_class;
	__u32 priority;
	__u32 uid;
	__aligned_u64 min;
	__aligned_u64 low;
	__aligned_u64 high;
	__aligned_u64 max;
};

/**
 * struct hearth_ioc_budget_set - ioctl(HEARTH_IOC_BUDGET_SET): all or nothing
 * @size: sizeof(struct hearth_ioc_budget_set)
 * @flags: must be 0
 * @entries: pointer to an array of struct hearth_budget_entry
 * @count: entries in it, 1 to HEARTH_BUDGETS_MAX
 * @stride: bytes from one entry to the next, at least the first version's
 * @out_bad: on any failure: index of the wrong entry, 0 when it is none of them
 * @reserved: must be 0
 * @out_refusal: on ENOSPC
 *
 * Administrator. A pair of tenant and pool may be named once (EINVAL). ENOENT:
 * no such tenant or pool. EINVAL: min > max, or an empty mask. ENOSPC: sum of
 * min. EBUSY: the priority of a tenant whose charge waits. EOVERFLOW: CREATE of
 * more than there can be. Lowering a limit below current asks the tenant to
 * give back.
 */
struct hearth_ioc_budget_set {
	__u32 size;
	__u32 flags;
	__aligned_u64 entries;
	__u32 count;
	__u32 stride;
	__u32 out_bad;
	__u32 reserved;
	struct hearth_refusal out_refusal;
};
#define HEARTH_IOC_BUDGET_SET _IO(HEARTH_IOC_MAGIC, HEARTH_CMD_BUDGET_SET)

/**
 * struct hearth_ioc_charge - ioctl(HEARTH_IOC_CHARGE): charge without memory
 * @size: sizeof(struct hearth_ioc_charge)
 * @pool: id of the pool
 * @bytes: how much; 0 is EINVAL
 * @deadline: CLOCK_MONOTONIC nanoseconds until which to wait, HEARTH_NOWAIT:
 *	do not
 * @out_refusal: on ENOSPC and ETIMEDOUT
 *
 * Given back with HEARTH_IOC_UNCHARGE, or when the connection is closed.
 * EUSERS: it would have to wait, and HEARTH_WAITERS_MAX charges of the tenant
 * wait in the pool already.
 */
struct hearth_ioc_charge {
	__u32 size;
	__u32 pool;
	__aligned_u64 bytes;
	__aligned_u64 deadline;
	struct hearth_refusal out_refusal;
};
#define HEARTH_IOC_CHARGE _IO(HEARTH_IOC_MAGIC, HEARTH_CMD_CHARGE)

/**
 * struct hearth_ioc_uncharge - ioctl(HEARTH_IOC_UNCHARGE)
 * @size: sizeof(struct hearth_ioc_uncharge)
 * @pool: id of the pool
 * @bytes: how much; more than this connection charged is EINVAL
 */
struct hearth_ioc_uncharge {
	__u32 size;
	__u32 pool;
	__aligned_u64 bytes;
};
#define HEARTH_IOC_UNCHARGE _IO(HEARTH_IOC_MAGIC, HEARTH_CMD_UNCHARGE)

#define HEARTH_ALLOC_CONTIG	(1U << 0)	/* physically contiguous */
#define HEARTH_ALLOC_STALE	(1U << 1)	/* what the same tenant left in the
						 * memory may stay in it */

/**
 * struct hearth_ioc_alloc - ioctl(HEARTH_IOC_ALLOC): allocate a region
 * @size: sizeof(struct hearth_ioc_alloc)
 * @flags: HEARTH_ALLOC_*
 * @pool: id of the pool; one of kind account is EINVAL
 * @out_fd: descriptor of the region, O_RDWR | O_CLOEXEC
 * @bytes: size, rounded up to whole pages, and charged as rounded
 * @align: alignment of each of its extents' physical start, a power of two;
 *	0: a page; at most the block size
 * @deadline: as in struct hearth_ioc_charge, and so is EUSERS
 * @out_region: its id (never 0, not used again while the module is loaded)
 * @out_bytes: size as rounded
 * @out_extents: physically contiguous pieces
 * @reserved: must be 0
 * @label: what tables show for it, a name or all zero
 * @out_refusal: on ENOSPC and ETIMEDOUT
 */
struct hearth_ioc_alloc {
	__u32 size;
	__u32 flags;
	__u32 pool;
	__s32 out_fd;
	__aligned_u64 bytes;
	__aligned_u64 align;
	__aligned_u64 deadline;
	__aligned_u64 out_region;
	__aligned_u64 out_bytes;
	__u32 out_extents;
	__u32 reserved;
	char label[HEARTH_NAME_MAX];
	struct hearth_refusal out_refusal;
};
#define HEARTH_IOC_ALLOC _IO(HEARTH_IOC_MAGIC, HEARTH_CMD_ALLOC)

#define HEARTH_FIND_ANY_DIGEST	(1U << 0)	/* whatever its digest */
#define HEARTH_FIND_WRITE	(1U << 1)	/* O_RDWR (EROFS when sealed) */

/**
 * struct hearth_ioc_find - ioctl(HEARTH_IOC_FIND): find a kept region
 * @size: sizeof(struct hearth_ioc_find)
 * @flags: HEARTH_FIND_*
 * @pool: id of the pool
 * @out_fd: descriptor, O_CLOEXEC
 * @name: its name
 * @digest: its digest
 * @out_region: its id
 * @out_bytes: its size
 * @out_refusal: on ENOSPC
 *
 * Its own tenant finds it always. Another finds it when it is sealed (EBUSY
 * else while the owner has a connection); when no connection of the owner is
 * left, the charge moves to the finder (ENOSPC when it does not fit). EACCES:
 * it is of a tenant that this caller could not join.
 * ENOENT: none of that name, or with another digest (then out_region is its
 * id, else 0: written in this one case though the call failed).
 */
struct hearth_ioc_find {
	__u32 size;
	__u32 flags;
	__u32 pool;
	__s32 out_fd;
	char name[HEARTH_REGION_NAME_MAX];
	__u8 digest[HEARTH_DIGEST_MAX];
	__aligned_u64 out_region;
	__aligned_u64 out_bytes;
	struct hearth_refusal out_refusal;
};
#define HEARTH_IOC_FIND _IO(HEARTH_IOC_MAGIC, HEARTH_CMD_FIND)

#define HEARTH_REGION_SEALED	(1U << 0)
#define HEARTH_REGION_OFFERED	(1U << 1)	/* purgeable */
#define HEARTH_REGION_PURGED	(1U << 2)
#define HEARTH_REGION_KEPT	(1U << 3)
#define HEARTH_REGION_CONTIG	(1U << 4)
#define HEARTH_REGION_EXPORTED	(1U << 5)	/* a dma-buf of it is alive */
#define HEARTH_REGION_READONLY	(1U << 6)	/* this descriptor is */

/**
 * struct hearth_ioc_region_get - ioctl(HEARTH_IOC_REGION_GET)
 * @size: sizeof(struct hearth_ioc_region_get)
 * @flags: HEARTH_GET_NEXT on a connection; on a region must be 0
 * @region: in: id; on a region must be 0; out: its id
 * @out_bytes: size (0 bytes of memory when purged, but the size stays)
 * @out_pool: id of its pool
 * @out_tenant: id of who is charged
 * @out_flags: HEARTH_REGION_*
 * @out_extents: physically contiguous pieces
 * @out_descriptors: open descriptors, mappings and dma-bufs not counted
 * @out_reserved: 0
 * @out_label: label given at allocation
 * @out_name: name given with HEARTH_IOC_KEEP
 * @out_digest: digest given with HEARTH_IOC_KEEP
 */
struct hearth_ioc_region_get {
	__u32 size;
	__u32 flags;
	__aligned_u64 region;
	__aligned_u64 out_bytes;
	__u32 out_pool;
	__u32 out_tenant;
	__u32 out_flags;
	__u32 out_extents;
	__u32 out_descriptors;
	__u32 out_reserved;
	char out_label[HEARTH_NAME_MAX];
	char out_name[HEARTH_REGION_NAME_MAX];
	__u8 out_digest[HEARTH_DIGEST_MAX];
};
#define HEARTH_IOC_REGION_GET _IO(HEARTH_IOC_MAGIC, HEARTH_CMD_REGION_GET)

/**
 * struct hearth_ioc_drop - ioctl(HEARTH_IOC_DROP): keep it no longer
 * @size: sizeof(struct hearth_ioc_drop)
 * @reserved: must be 0
 * @region: id of a kept region
 *
 * Of the own tenant, or by the administrator (EPERM). Whoever has a descriptor
 * keeps that; the memory goes with the last one. ENOENT: no kept region of
 * that id.
 */
struct hearth_ioc_drop {
	__u32 size;
	__u32 reserved;
	__aligned_u64 region;
};
#define HEARTH_IOC_DROP _IO(HEARTH_IOC_MAGIC, HEARTH_CMD_DROP)

enum hearth_event_kind {
	HEARTH_EV_PRESSURE = 1,	/* level of a tenant in a pool, of a pool, or
				 * (pool 0) of the system */
	HEARTH_EV_HIGH,		/* a tenant went over its high */
	HEARTH_EV_REFUSED,	/* a charge was refused (at most ten a second for a
				 * tenant in a pool; its counters count all) */
	HEARTH_EV_RECLAIM,	/* please give back bytes until deadline */
	HEARTH_EV_PURGED,	/* a region that was offered was taken */
	HEARTH_EV_BUDGET,	/* limits were changed */
	HEARTH_EV_TENANT_NEW,
	HEARTH_EV_TENANT_GONE,
	HEARTH_EV_POOL_NEW,
	HEARTH_EV_POOL_SIZE,
	HEARTH_EV_POOL_GONE,
};

/**
 * struct hearth_event_record - what read(2) on a connection gives
 * @size: bytes of this record; the next one follows there
 * @kind: enum hearth_event_kind
 * @seq: number of the event, counted over all events of the machine; what is
 *	not for this connection leaves gaps
 * @time: CLOCK_MONOTONIC nanoseconds
 * @tenant: id, 0: none
 * @pool: id, 0: none
 * @level: enum hearth_pressure_level
 * @was: PRESSURE: the level before; equal to level for a repetition
 * @lost: events for this connection that were lost, since the connection began
 *	to watch: when it grew, read the state
 * @limit: PRESSURE: the threshold in bytes; REFUSED: enum hearth_limit; HIGH:
 *	high; BUDGET: max
 * @current_bytes: bytes charged (system: bytes available)
 * @bytes: REFUSED, RECLAIM, PURGED: how much
 * @deadline: RECLAIM: CLOCK_MONOTONIC nanoseconds, 0: none
 * @region: PURGED: id of the region
 *
 * read(2) gives whole records only: EINVAL when the buffer is too small for
 * one. Without O_NONBLOCK it waits for the first.
 */
struct hearth_event_record {
	__u32 size;
	__u32 kind;
	__aligned_u64 seq;
	__aligned_u64 time;
	__u32 tenant;
	__u32 pool;
	__u32 level;
	__u32 was;
	__aligned_u64 lost;
	__aligned_u64 limit;
	__aligned_u64 current_bytes;
	__aligned_u64 bytes;
	__aligned_u64 deadline;
	__aligned_u64 region;
};

#define HEARTH_WATCH_OTHERS	(1U << 0)	/* events of other tenants too */

/**
 * struct hearth_ioc_watch - ioctl(HEARTH_IOC_WATCH): what to hear of
 * @size: sizeof(struct hearth_ioc_watch)
 * @flags: HEARTH_WATCH_*
 * @kinds: bits 1 << enum hearth_event_kind; 0 ends watching and empties the
 *	queue; unknown bits are EOPNOTSUPP
 * @out_seq: number of the last event before the first that can be heard
 *
 * Without HEARTH_WATCH_OTHERS: events of the own tenant, of pools, and of the
 * system. May be called again; what is queued stays. poll(2) says POLLIN while
 * an event is queued, and POLLPRI while the level that HEARTH_IOC_STATE gives
 * as out_level is not none (that also without watching).
 */
struct hearth_ioc_watch {
	__u32 size;
	__u32 flags;
	__aligned_u64 kinds;
	__aligned_u64 out_seq;
};
#define HEARTH_IOC_WATCH _IO(HEARTH_IOC_MAGIC, HEARTH_CMD_WATCH)

/**
 * struct hearth_ioc_state - ioctl(HEARTH_IOC_STATE): the levels as they are now
 * @size: sizeof(struct hearth_ioc_state)
 * @reserved: must be 0
 * @out_level: the worst of the three below
 * @out_system: level of the system
 * @out_pool: worst level of a pool
 * @out_tenant: worst level of the own tenant over the pools
 * @out_available: bytes available to the system, less free CMA
 * @out_total: bytes of the system, without reserved pools
 * @out_seq: number of the last event of the machine
 * @out_lost: events that this connection lost
 */
struct hearth_ioc_state {
	__u32 size;
	__u32 reserved;
	__u32 out_level;
	__u32 out_system;
	__u32 out_pool;
	__u32 out_tenant;
	__aligned_u64 out_available;
	__aligned_u64 out_total;
	__aligned_u64 out_seq;
	__aligned_u64 out_lost;
};
#define HEARTH_IOC_STATE _IO(HEARTH_IOC_MAGIC, HEARTH_CMD_STATE)

/* -- on a region ------------------------------------------------------------ */

/**
 * struct hearth_ioc_seal - ioctl(HEARTH_IOC_SEAL): read-only, for good
 * @size: sizeof(struct hearth_ioc_seal)
 * @reserved: must be 0
 *
 * After it mappings must be PROT_READ, by every descriptor, and no dma-buf for
 * writing can be made: no writable mapping remains or can be made. So it is
 * refused, not forced: EBUSY while a mapping exists that is or could be made
 * writable, a writable dma-buf exists, or something outside holds pages of it
 * (unmap first; I/O that has just ended may hold pages for some milliseconds,
 * which the call waits for). Mappings of read-only descriptors of the region
 * may stay; those of a read-only dma-buf cannot be told from what holds pages
 * outside, and must be gone (the dma-buf itself may stay, and can be mapped
 * again after). Sealing what is sealed is 0. EACCES on an O_RDONLY descriptor.
 */
struct hearth_ioc_seal {
	__u32 size;
	__u32 reserved;
};
#define HEARTH_IOC_SEAL _IO(HEARTH_IOC_MAGIC, HEARTH_CMD_SEAL)

/**
 * struct hearth_ioc_offer - ioctl(HEARTH_IOC_OFFER): may be purged
 * @size: sizeof(struct hearth_ioc_offer)
 * @reserved: must be 0
 *
 * The owner promises not to touch the region until it has taken it back. While
 * it is offered its memory may be given to another tenant whose charge does not
 * fit; then its mappings fault with SIGBUS. EBUSY when a dma-buf of it exists.
 * What something outside holds is not taken, nor what is being mapped, exported
 * or sealed at that moment. Offering twice is 0.
 */
struct hearth_ioc_offer {
	__u32 size;
	__u32 reserved;
};
#define HEARTH_IOC_OFFER _IO(HEARTH_IOC_MAGIC, HEARTH_CMD_OFFER)

/**
 * struct hearth_ioc_take_back - ioctl(HEARTH_IOC_TAKE_BACK)
 * @size: sizeof(struct hearth_ioc_take_back)
 * @reserved: must be 0
 * @out_survived: 1: the content is as it was; 0: it was purged, and the region
 *	holds no memory any more
 * @reserved2: must be 0
 *
 * Taking back what was not offered is 0 with out_survived 1.
 */
struct hearth_ioc_take_back {
	__u32 size;
	__u32 reserved;
	__u32 out_survived;
	__u32 reserved2;
};
#define HEARTH_IOC_TAKE_BACK _IO(HEARTH_IOC_MAGIC, HEARTH_CMD_TAKE_BACK)

/**
 * struct hearth_ioc_keep - ioctl(HEARTH_IOC_KEEP): name it, and keep it
 * @size: sizeof(struct hearth_ioc_keep)
 * @reserved: must be 0
 * @name: its name, the only one of that name in its pool (EEXIST)
 * @digest: digest of its content, whichever the tenant uses
 *
 * The region outlives its descriptors and its owner until it is dropped.
 * EBUSY: it has a name already.
 */
struct hearth_ioc_keep {
	__u32 size;
	__u32 reserved;
	char name[HEARTH_REGION_NAME_MAX];
	__u8 digest[HEARTH_DIGEST_MAX];
};
#define HEARTH_IOC_KEEP _IO(HEARTH_IOC_MAGIC, HEARTH_CMD_KEEP)

#define HEARTH_SHARE_WRITE	(1U << 0)	/* O_RDWR, else O_RDONLY */

/**
 * struct hearth_ioc_share - ioctl(HEARTH_IOC_SHARE): another descriptor
 * @size: sizeof(struct hearth_ioc_share)
 * @flags: HEARTH_SHARE_*
 * @out_fd: an open file of its own, O_CLOEXEC, to be passed on
 * @reserved: must be 0
 *
 * EACCES: WRITE on an O_RDONLY descriptor. EROFS: WRITE, and it is sealed.
 * ESTALE when purged.
 */
struct hearth_ioc_share {
	__u32 size;
	__u32 flags;
	__s32 out_fd;
	__u32 reserved;
};
#define HEARTH_IOC_SHARE _IO(HEARTH_IOC_MAGIC, HEARTH_CMD_SHARE)

#define HEARTH_EXPORT_WRITE	(1U << 0)	/* O_RDWR, else O_RDONLY */

/**
 * struct hearth_ioc_export - ioctl(HEARTH_IOC_EXPORT): as dma-buf
 * @size: sizeof(struct hearth_ioc_export)
 * @flags: HEARTH_EXPORT_*
 * @offset: first byte, a multiple of the page size
 * @bytes: how much, a multiple of the page size; 0: up to the end
 * @out_fd: the dma-buf, O_CLOEXEC
 * @reserved: must be 0
 *
 * A dma-buf that is open O_RDONLY maps for reading only (by the CPU; DMA with
 * direction TO_DEVICE). EACCES, EROFS as in HEARTH_IOC_SHARE. EBUSY while it is
 * offered for purging. ESTALE when purged.
 */
struct hearth_ioc_export {
	__u32 size;
	__u32 flags;
	__aligned_u64 offset;
	__aligned_u64 bytes;
	__s32 out_fd;
	__u32 reserved;
};
#define HEARTH_IOC_EXPORT _IO(HEARTH_IOC_MAGIC, HEARTH_CMD_EXPORT)

#endif /* _UAPI_LINUX_HEARTH_H */
