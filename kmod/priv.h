/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of the module share.
 *
 * LOCKS, outermost first:
 *
 *	mmap_lock (the kernel's, held around mmap, fault, munmap)
 *	  region->gate
 *	    region->lock
 *	hearth.lock
 *	  region->lock
 *	  conn->queue_lock
 *
 * hearth.lock is one mutex for tenants, pools, budgets, extent maps, the
 * tables of regions and the sequence of events, because every decision looks
 * at sums over all tenants of a pool, and one call changes budgets of several
 * pools at once. It is held for microseconds: zeroing, copying from and to
 * users, waiting and taking memory from the page allocator for a pool happen
 * outside. It is never taken under mmap_lock, so no user memory is touched
 * under it; and as mmap, fault and munmap take a region's own locks alone,
 * hearth.lock and mmap_lock never nest.
 *
 * What any tenant may call allocates before it takes hearth.lock, or after: an
 * allocation may enter reclaim, and would hold up all the others' charges. The
 * administrator's calls (pools, budgets) make small ones under it, GFP_KERNEL:
 * the shrinker and the OOM notifier of this module only ever trylock it.
 *
 * region->gate is what pages of a region are reached through: mmap, fault and
 * export pass it (read), and may take as long as they like; sealing, and the
 * end of a region, shut it (write) while they look at the counts of pages. It
 * is never waited for with hearth.lock held, or a slow mmap or seal of one
 * tenant would hold up every other's charge: purging, which has hearth.lock,
 * only tries it, and leaves a region that is being reached.
 *
 * region->lock guards how a region may be reached: sealed, offered, purged,
 * writers, exports. Nobody sleeps with it. Taking a region's memory away
 * (purge) needs all three, so each of them is enough to read its extents.
 *
 * LIFETIMES
 *
 *	region	kref: one for each file, each dma-buf, one while it is kept.
 *		Mappings hold the file. With the last one the memory goes back,
 *		or into quarantine, which holds the struct until it is empty.
 *	tenant	until no connection has joined it, no region is charged to it,
 *		and it is not persistent
 *	pool	until the administrator removes it or the module goes; not
 *		while anything is charged in it
 *	module	held by every file, every dma-buf and every region
 */
#ifndef HEARTH_PRIV_H
#define HEARTH_PRIV_H

#include <linux/fs.h>
#include <linux/hashtable.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/rcupdate.h>
#include <linux/rwsem.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <linux/hearth.h>

#include "core/args.h"
#include "core/budget.h"
#include "core/extent.h"
#include "core/pressure.h"

#define HEARTH_VERSION		0x000100
#define HEARTH_POOLS		16
#define HEARTH_TENANTS_MAX	4096
#define HEARTH_QUEUE		256	/* events that a connection can hold */
#define HEARTH_NAMES_BITS	7	/* a pool is less than 2 KiB: memory may be in pieces */
#define HEARTH_SPARES_KEPT	16	/* nodes of a map: for giving back when nothing can be had */

#define BLOCK_SHIFT		21
#define BLOCK_SIZE_		(1UL << BLOCK_SHIFT)
#define BLOCK_PAGES		(BLOCK_SIZE_ >> PAGE_SHIFT)

struct hearth_budget;
struct hearth_region;

/* Two MiB of a pool. All pages are order 0 (split), so each has its count. */
struct hearth_block {
	struct page *large;	/* first of BLOCK_PAGES in a row, or NULL: */
	struct page **parts;	/* one for each page */
	struct hearth_block *next;	/* taken out of its pool, to be freed */
	u32 owner;		/* tenant that had all of it last, or OWNER_MANY */
	u8 kind;		/* enum hearth_block_kind */
};

#define OWNER_MANY	0	/* several, or not ours before: must be zeroed */

enum hearth_block_kind { BLOCK_LARGE, BLOCK_MEDIUM, BLOCK_SMALL };

struct hearth_pool {
	u32 id;
	u32 index;			/* in hearth.pools and tenant->budgets */
	char name[HEARTH_NAME_MAX];
	char node[HEARTH_REGION_NAME_MAX];
	u32 kind;
	u32 backing;
	u64 default_max;
	u64 node_bytes;			/* RESERVED: of the node */
	phys_addr_t base;		/* RESERVED */

	/* all below: hearth.lock, but blocks may be read under xarray's rules */
	struct budget_pool bp;
	struct extent_map map;		/* not for ACCOUNT */
	struct xarray blocks;		/* [offset >> BLOCK_SHIFT] */
	u64 by_kind[3];			/* bytes in blocks of each kind */
	u64 overhead;
	u64 target;			/* size the administrator wants */
	bool unannounced;		/* handed memory back; nobody was told yet */
	u64 quarantined;
	struct pressure pressure;
	struct pressure_rules rules;
	u32 regions;
	u32 waiters;
	wait_queue_head_t wait;		/* those whose charge waits */
	DECLARE_HASHTABLE(names, HEARTH_NAMES_BITS);
};

struct hearth_tenant {
	u32 id;
	char name[HEARTH_NAME_MAX];
	/* hearth.lock */
	u32 class;
	u32 priority;
	u32 uid;
	bool persistent;
	u32 connections;
	u32 regions;			/* also quarantined ones */
	u32 level;			/* worst over the pools; read without the lock */
	struct hearth_budget *budgets[HEARTH_POOLS];
};

/* One tenant in one pool. hearth.lock. */
struct hearth_budget {
	struct budget b;
	struct hearth_tenant *tenant;
	struct hearth_pool *pool;
	struct pressure pressure;
	struct pressure_rules rules;
	struct list_head offered;	/* regions, the longest offered first */
	u32 waiters;
	u64 refused_ns;			/* when a refusal was last announced */
};

static inline struct hearth_budget *to_hb(const struct budget *b)
{
	return b ? container_of(b, struct hearth_budget, b) : NULL;
}

struct hearth_region {
	struct kref ref;
	u64 id;				/* 0: not published yet */
	u64 bytes;
	struct inode *inode;		/* its mappings are this inode's */
	struct hearth_pool *pool;
	char label[HEARTH_NAME_MAX];
	bool contig;

	struct rw_semaphore gate;
	struct mutex lock;
	/* hearth.lock, gate (write) and lock to change, one of them to read */
	struct extent *first;		/* linked by extent->link, in order */
	bool purged;
	/* hearth.lock and lock to change, either to read */
	bool offered;
	/* region->lock; a snapshot of sealed and exports may be read without */
	bool sealed;			/* changed with the gate shut too */
	bool reached;			/* was mapped or exported: somebody may hold pages */
	u32 writers;			/* mappings that are or may become writable */
	u32 exports;
	u32 exports_write;

	/* hearth.lock */
	struct hearth_tenant *tenant;
	u32 extents;
	u64 held;			/* bytes in quarantine */
	bool kept;
	char name[HEARTH_REGION_NAME_MAX];
	u8 digest[HEARTH_DIGEST_MAX];
	struct hlist_node by_name;	/* pool->names while kept */
	struct list_head offer;		/* budget->offered while offered */
	struct list_head dead;		/* hearth.quarantine */

	atomic_t files;
};

/* Where it is charged. hearth.lock: the tenant may change. */
static inline struct hearth_budget *hearth_region_budget(const struct hearth_region *r)
{
	return r->tenant->budgets[r->pool->index];
}

/* What the private_data of a region's file points to: the region itself. */

/* Whether a region's file gives its holder more than a look. Needs no lock. */
static inline bool hearth_may_write(const struct file *file)
{
	return file->f_mode & FMODE_WRITE;
}

struct hearth_conn {
	struct list_head list;		/* hearth.conns, hearth.lock */
	bool admin;			/* only ever becomes true */
	struct hearth_tenant *tenant;	/* set once, under hearth.lock */
	u64 charged[HEARTH_POOLS];	/* hearth.lock */
	u64 kinds;			/* watched; hearth.lock */
	bool others;			/* hearth.lock */

	wait_queue_head_t wait;
	struct mutex read_lock;		/* one reader at a time; before queue_lock */
	spinlock_t queue_lock;
	struct hearth_event_record *queue; /* HEARTH_QUEUE, or NULL: does not watch */
	u64 head, tail;			/* counted, not wrapped */
	u64 lost;
};

struct hearth_system {
	struct pressure pressure;	/* hearth.lock */
	struct pressure_rules rules;
	u64 available, total;		/* of the last sample */
	u64 samples, by_reclaim;	/* taken, and those that reclaim asked for */
	u64 oom_calls, handed_back, taken_again;
};

struct hearth_globals {
	struct mutex lock;
	struct hearth_pool *pools[HEARTH_POOLS];
	struct xarray tenants;		/* by id */
	struct xarray regions;		/* by id */
	u32 next_pool, next_tenant;
	unsigned long next_region;
	u32 n_pools, n_tenants, n_regions;
	struct list_head conns;
	struct list_head quarantine;
	u64 seq;
	u32 pool_level;			/* worst; read without the lock */
	u32 system_level;		/* read without the lock */
	struct hearth_system system;
	struct workqueue_struct *wq;
	struct delayed_work quarantine_work;
};

extern struct hearth_globals hearth;

/* charge.c */
int hearth_charge(struct hearth_budget *hb, u64 n, u64 deadline, bool *ret_over,
		  struct hearth_refusal *ref);
void hearth_charged(struct hearth_budget *hb, u64 n, bool over_high);
void hearth_charge_undo(struct hearth_budget *hb, u64 n);
void hearth_uncharge(struct hearth_budget *hb, u64 n);
void hearth_wake(struct hearth_pool *pool);
void hearth_refusal_fill(struct hearth_refusal *out, const struct budget_refusal *r);
void hearth_refusal_pieces(struct hearth_refusal *out, struct hearth_pool *pool, u64 wanted);
void hearth_reclaim_excess(struct hearth_budget *hb);
int hearth_ioctl_charge(void *who, void *arg);
int hearth_ioctl_uncharge(void *who, void *arg);

/* debugfs.c */
void hearth_debugfs_init(void);
void hearth_debugfs_exit(void);

/* device.c */
int hearth_device_init(void);
void hearth_device_exit(void);
struct hearth_ioctl {
	unsigned int cmd;
	u16 size;		/* of the struct */
	u16 min;		/* of its first version */
	u16 in;			/* bytes that are input */
	bool out;		/* has outputs on success */
	u16 fail;		/* outputs from here on are written on failure too, */
	int fail_err;		/* when that is ENOSPC, ETIMEDOUT or this */
	int (*fn)(void *who, void *arg);
};
long hearth_dispatch(const struct hearth_ioctl *table, size_t n, void *who, unsigned int cmd,
		     unsigned long arg);

/* dmabuf.c */
int hearth_ioctl_export(struct hearth_region *r, bool writable, struct hearth_ioc_export *a);

/* event.c */
void hearth_event(struct hearth_event_record *ev);
void hearth_event_tenant(u32 kind, const struct hearth_tenant *t);
void hearth_event_pool(u32 kind, const struct hearth_pool *pool);
void hearth_pressure_tenant(struct hearth_budget *hb);
void hearth_pressure_pool(struct hearth_pool *pool);
void hearth_pressure_rules(struct hearth_budget *hb);
void hearth_pressure_repeat(void);
void hearth_wake_conns(void);
u32 hearth_conn_level(const struct hearth_conn *conn);
__poll_t hearth_conn_poll(struct file *file, poll_table *wait);
ssize_t hearth_conn_read(struct file *file, char __user *buf, size_t len, loff_t *pos);
int hearth_ioctl_watch(void *who, void *arg);
int hearth_ioctl_state(void *who, void *arg);

/* file.c */
int hearth_fs_pin(void);
void hearth_fs_unpin(void);
struct inode *hearth_inode_new(u64 bytes);
struct file *hearth_file_new(struct hearth_region *r, bool writable);

/* memory.c */
int hearth_blocks_alloc(u64 n, struct hearth_block **list);
int hearth_blocks_reserved(phys_addr_t base, u64 n, struct hearth_block **list);
void hearth_block_free(u32 backing, struct hearth_block *blk);
void hearth_blocks_free(u32 backing, struct hearth_block *list);
struct page *hearth_pool_page(struct hearth_pool *pool, u64 offset);
u32 hearth_pool_pages(struct hearth_pool *pool, u64 offset, u32 n, struct page **ret_pages);
bool hearth_pool_idle(struct hearth_pool *pool, u64 offset, u64 bytes);
int hearth_pool_zero(struct hearth_pool *pool, u64 offset, u64 bytes);
bool hearth_pool_stale_ok(struct hearth_pool *pool, u64 offset, u64 bytes, u32 owner);
void hearth_pool_owner(struct hearth_pool *pool, u64 offset, u64 bytes, u32 owner);
int hearth_pool_find_run(struct hearth_pool *pool, u64 bytes, u64 align, u64 *ret_start);
bool hearth_pool_uniform(struct hearth_pool *pool);
u32 hearth_pool_runs(struct hearth_pool *pool, u64 offset, u64 bytes);

/* mmap.c */
int hearth_region_mmap(struct hearth_region *r, struct vm_area_struct *vma);
struct page *hearth_region_page(struct hearth_region *r, u64 offset);

/* netlink.c */
int hearth_netlink_init(void);
void hearth_netlink_exit(void);
void hearth_netlink_event(const struct hearth_event_record *ev);

/* pool.c */
void hearth_pools_exit(void);
struct hearth_pool *hearth_pool_get(u32 id);
void hearth_pool_figures(struct hearth_pool *pool, struct hearth_ioc_pool_get *a);
struct hearth_pool *hearth_pool_pick(u32 id, u32 flags, const char *name);
int hearth_pool_create(const char *name, u32 kind, u32 backing, u64 bytes, const char *node,
		       u32 *ret_id);
int hearth_ioctl_pool_create(void *who, void *arg);
int hearth_ioctl_pool_remove(void *who, void *arg);
int hearth_ioctl_pool_get(void *who, void *arg);

/* pool_map.c */
int hearth_nodes_get(u32 n, struct extent **ret_list);
void hearth_nodes_put(struct hearth_pool *pool, struct extent **list);
void hearth_nodes_free(struct extent *list);
u32 hearth_nodes_short(const struct hearth_pool *pool);
int hearth_spares(struct hearth_pool *pool, u32 n);
void hearth_spares_trim(struct hearth_pool *pool, u32 keep);
int hearth_pool_block_put(struct hearth_pool *pool, u64 index, struct hearth_block *blk);
int hearth_pool_block_add(struct hearth_pool *pool, struct hearth_block *blk);
void hearth_pool_block_place(struct hearth_pool *pool, struct hearth_block *blk);
u64 hearth_pool_blocks_drop(struct hearth_pool *pool, u64 n, struct hearth_block **list);
u64 hearth_pool_free_blocks(const struct hearth_pool *pool);

/* pool_param.c */
int hearth_pools_init(void);

/* pool_size.c */
u64 hearth_pool_hand_back(struct hearth_pool *pool, struct hearth_block **dropped);
bool hearth_pool_regrow(u64 bytes);
void hearth_pools_announce(void);
int hearth_ioctl_pool_resize(void *who, void *arg);

/* region.c */
struct hearth_region *hearth_region_new(u64 bytes, const char *label);
void hearth_region_extents_free(struct hearth_region *r);
bool hearth_region_idle(const struct hearth_region *r);
void hearth_region_put(struct hearth_region *r);
bool hearth_region_purge(struct hearth_region *r);
void hearth_region_figures(struct hearth_region *r, struct hearth_ioc_region_get *a);
void hearth_quarantine_work(struct work_struct *w);
int hearth_ioctl_region_get(void *who, void *arg);

/* region_alloc.c */
int hearth_ioctl_alloc(void *who, void *arg);

/* region_ioctl.c */
long hearth_region_ioctl(struct file *file, unsigned int cmd, unsigned long arg);

/* region_name.c */
void hearth_region_unname(struct hearth_region *r);
int hearth_ioctl_keep(void *who, void *arg);
int hearth_ioctl_find(void *who, void *arg);
int hearth_ioctl_drop(void *who, void *arg);

/* selftest.c */
int hearth_selftest(void);

/* system.c */
int hearth_system_init(void);
void hearth_system_exit(void);
void hearth_system_sample_soon(void);

/* tenant.c */
void hearth_tenants_exit(void);
bool hearth_may_join(const struct hearth_conn *conn, const struct hearth_tenant *t);
int hearth_pick_args(u32 flags, const char *name);
struct hearth_tenant *hearth_tenant_pick(u32 id, u32 flags, const char *name);
void hearth_tenant_figures(struct hearth_tenant *t, struct hearth_ioc_tenant_get *a);
int hearth_tenant_new(const char *name, u32 class, u32 priority, struct hearth_tenant **ret_t);
void hearth_tenant_publish(struct hearth_tenant *t, u32 id);
void hearth_tenant_free(struct hearth_tenant *t);
void hearth_tenant_maybe_free(struct hearth_tenant *t);
int hearth_budgets_for_pool(struct hearth_pool *pool);
void hearth_budgets_drop_pool(struct hearth_pool *pool);
int hearth_ioctl_join(void *who, void *arg);
int hearth_ioctl_tenant_get(void *who, void *arg);
int hearth_ioctl_tenant_remove(void *who, void *arg);

/* tenant_budget.c */
void hearth_budget_figures(struct hearth_budget *hb, struct hearth_ioc_budget_get *a);
int hearth_ioctl_budget_get(void *who, void *arg);
int hearth_ioctl_budget_set(void *who, void *arg);

#endif
