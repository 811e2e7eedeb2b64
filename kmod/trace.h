/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM hearth

#if !defined(HEARTH_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define HEARTH_TRACE_H

#include <linux/tracepoint.h>

#include "priv.h"

DECLARE_EVENT_CLASS(hearth_bytes,
	TP_PROTO(const struct hearth_budget *hb, u64 bytes),
	TP_ARGS(hb, bytes),
	TP_STRUCT__entry(
		__field(u32, tenant)
		__field(u32, pool)
		__field(u64, bytes)
		__field(u64, now)
	),
	TP_fast_assign(
		__entry->tenant = hb->tenant->id;
		__entry->pool = hb->pool->id;
		__entry->bytes = bytes;
		__entry->now = hb->b.used;
	),
	TP_printk("tenant=%u pool=%u bytes=%llu current=%llu", __entry->tenant, __entry->pool,
		  __entry->bytes, __entry->now)
);

DEFINE_EVENT(hearth_bytes, hearth_charge,
	TP_PROTO(const struct hearth_budget *hb, u64 bytes), TP_ARGS(hb, bytes));
DEFINE_EVENT(hearth_bytes, hearth_uncharge,
	TP_PROTO(const struct hearth_budget *hb, u64 bytes), TP_ARGS(hb, bytes));
DEFINE_EVENT(hearth_bytes, hearth_reclaim,
	TP_PROTO(const struct hearth_budget *hb, u64 bytes), TP_ARGS(hb, bytes));

TRACE_EVENT(hearth_refuse,
	TP_PROTO(const struct hearth_budget *hb, u64 bytes, u32 limit),
	TP_ARGS(hb, bytes, limit),
	TP_STRUCT__entry(
		__field(u32, tenant)
		__field(u32, pool)
		__field(u64, bytes)
		__field(u64, now)
		__field(u32, limit)
	),
	TP_fast_assign(
		__entry->tenant = hb->tenant->id;
		__entry->pool = hb->pool->id;
		__entry->bytes = bytes;
		__entry->now = hb->b.used;
		__entry->limit = limit;
	),
	TP_printk("tenant=%u pool=%u bytes=%llu current=%llu limit=%u", __entry->tenant,
		  __entry->pool, __entry->bytes, __entry->now, __entry->limit)
);

DECLARE_EVENT_CLASS(hearth_region,
	TP_PROTO(const struct hearth_region *r),
	TP_ARGS(r),
	TP_STRUCT__entry(
		__field(u64, region)
		__field(u32, tenant)
		__field(u32, pool)
		__field(u64, bytes)
	),
	TP_fast_assign(
		__entry->region = r->id;
		__entry->tenant = r->tenant->id;
		__entry->pool = r->pool->id;
		__entry->bytes = r->bytes;
	),
	TP_printk("region=%llu tenant=%u pool=%u bytes=%llu", __entry->region, __entry->tenant,
		  __entry->pool, __entry->bytes)
);

DEFINE_EVENT(hearth_region, hearth_region_new,
	TP_PROTO(const struct hearth_region *r), TP_ARGS(r));
DEFINE_EVENT(hearth_region, hearth_region_free,
	TP_PROTO(const struct hearth_region *r), TP_ARGS(r));
DEFINE_EVENT(hearth_region, hearth_purge,
	TP_PROTO(const struct hearth_region *r), TP_ARGS(r));

TRACE_EVENT(hearth_quarantine,
	TP_PROTO(const struct hearth_region *r, u64 held),
	TP_ARGS(r, held),
	TP_STRUCT__entry(
		__field(u64, region)
		__field(u32, tenant)
		__field(u32, pool)
		__field(u64, held)
	),
	TP_fast_assign(
		__entry->region = r->id;
		__entry->tenant = r->tenant->id;
		__entry->pool = r->pool->id;
		__entry->held = held;
	),
	TP_printk("region=%llu tenant=%u pool=%u held=%llu", __entry->region, __entry->tenant,
		  __entry->pool, __entry->held)
);

TRACE_EVENT(hearth_event,
	TP_PROTO(const struct hearth_event_record *ev),
	TP_ARGS(ev),
	TP_STRUCT__entry(
		__field(u64, seq)
		__field(u32, kind)
		__field(u32, tenant)
		__field(u32, pool)
		__field(u32, level)
		__field(u64, now)
		__field(u64, limit)
		__field(u64, bytes)
	),
	TP_fast_assign(
		__entry->seq = ev->seq;
		__entry->kind = ev->kind;
		__entry->tenant = ev->tenant;
		__entry->pool = ev->pool;
		__entry->level = ev->level;
		__entry->now = ev->current_bytes;
		__entry->limit = ev->limit;
		__entry->bytes = ev->bytes;
	),
	TP_printk("seq=%llu kind=%u tenant=%u pool=%u level=%u current=%llu limit=%llu bytes=%llu",
		  __entry->seq, __entry->kind, __entry->tenant, __entry->pool, __entry->level,
		  __entry->now, __entry->limit, __entry->bytes)
);

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
