// SPDX-License-Identifier: MIT
/* Names and sentences that both backends share. */
#include "dev/priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kmod/core/args.h"

const char *text_bytes(uint64_t bytes, char buf[DEV_BYTES_LEN])
{
	static const char *const unit[] = { "KiB", "MiB", "GiB", "TiB" };
	double v = (double)bytes / 1024;
	int i = 0;

	if (bytes == HEARTH_UNLIMITED) {
		snprintf(buf, DEV_BYTES_LEN, "no limit");
	} else if (bytes < 10240) {
		snprintf(buf, DEV_BYTES_LEN, "%" PRIu64 " bytes", bytes);
	} else {
		while (v >= 1024 && i < 3) {
			v /= 1024;
			i++;
		}
		snprintf(buf, DEV_BYTES_LEN, "%.1f %s", v, unit[i]);
	}
	return buf;
}

int text_refuse(struct hearth_err *err, int code, const struct text_refusal *ref)
{
	char a[DEV_BYTES_LEN], b[DEV_BYTES_LEN], c[DEV_BYTES_LEN], d[DEV_BYTES_LEN];
	const char *late = code == -ETIMEDOUT ? " in the time given" : "";
	const char *wanted = text_bytes(ref->wanted, a), *limit = text_bytes(ref->limit_bytes, b);
	const char *can = text_bytes(ref->available, c), *held = text_bytes(ref->holder_bytes, d);

	switch (ref->limit) {
	case TEXT_BY_MAX:
		return err_set(err, code,
			       "tenant %s cannot have %s more in pool %s: its max is %s and it holds %s, so %s would fit",
			       ref->tenant, wanted, ref->pool, limit, held, can);
	case TEXT_BY_POOL:
		if (!ref->holder[0] || !strcmp(ref->holder, ref->tenant))
			return err_set(err, code,
				       "tenant %s cannot have %s more in pool %s%s: the pool has %s, %s would fit, and nobody else holds memory in it",
				       ref->tenant, wanted, ref->pool, late, limit, can);
		return err_set(err, code,
			       "tenant %s cannot have %s more in pool %s%s: the pool has %s, %s would fit, and tenant %s holds most (%s)",
			       ref->tenant, wanted, ref->pool, late, limit, can, ref->holder, held);
	case TEXT_BY_MIN:
		return err_set(err, code,
			       "tenant %s cannot have %s more in pool %s%s: %s of what is free is guaranteed to others (tenant %s may still claim %s of its min), so %s would fit",
			       ref->tenant, wanted, ref->pool, late, limit, ref->holder, held, can);
	case TEXT_BY_QUEUE:
		return err_set(err, code,
			       "tenant %s cannot have %s more in pool %s%s: tenant %s waits ahead of it for %s, so %s would fit",
			       ref->tenant, wanted, ref->pool, late, ref->holder, held, can);
	case TEXT_BY_ORDER:
		return err_set(err, code,
			       "tenant %s, pool %s: min (%s) is larger than max (%s); lower min or raise max",
			       ref->tenant, ref->pool, wanted, limit);
	case TEXT_BY_SUM:
		if (!ref->holder[0] || !strcmp(ref->holder, ref->tenant))
			return err_set(err, code,
				       "tenant %s cannot be guaranteed %s in pool %s: the pool has %s, so a min of %s would fit",
				       ref->tenant, wanted, ref->pool, limit, can);
		return err_set(err, code,
			       "tenant %s cannot be guaranteed %s in pool %s: the pool has %s, and the min of others leaves %s of it (tenant %s has %s)",
			       ref->tenant, wanted, ref->pool, limit, can, ref->holder, held);
	case TEXT_BY_PIECES:
		return err_set(err, code,
			       "tenant %s cannot have %s in one piece in pool %s: enough is free, but the longest piece that fits has %s; ask without contiguous, or for less",
			       ref->tenant, wanted, ref->pool, can);
	}
	return err_set(err, code, "tenant %s: %s in pool %s does not fit", ref->tenant, wanted,
		       ref->pool);
}

int text_name(char *to, size_t cap, const char *name, const char *what, struct hearth_err *err)
{
	char buf[HEARTH_REGION_NAME_LEN] = "";
	size_t n = name ? strlen(name) : 0;

	if (!n)
		return err_set(err, -EINVAL, "a %s needs a name", what);
	if (n >= cap || n >= sizeof(buf))
		return err_set(err, -EINVAL, "%s name \"%.40s%s\" is longer than %zu bytes", what,
			       name, n > 40 ? "..." : "", cap - 1);
	memcpy(buf, name, n);
	if (args_name(buf, sizeof(buf)))
		return err_set(err, -EINVAL,
			       "%s name \"%s\" has something else than letters, digits and . _ - : / @, or begins with . or /",
			       what, name);
	memset(to, 0, cap);
	memcpy(to, name, n);
	return 0;
}

/* -- names of enums ----------------------------------------------------------- */

static const char *const kinds[HEARTH_KIND_COUNT] = {
	[HEARTH_KIND_WEIGHTS] = "weights",
	[HEARTH_KIND_KV] = "kv",
	[HEARTH_KIND_SCRATCH] = "scratch",
	[HEARTH_KIND_ACCOUNT] = "account",
};

static const char *const classes[HEARTH_CLASS_COUNT] = {
	[HEARTH_CLASS_OTHER] = "other",
	[HEARTH_CLASS_STT] = "stt",
	[HEARTH_CLASS_TTS] = "tts",
	[HEARTH_CLASS_LLM] = "llm",
	[HEARTH_CLASS_VAD] = "vad",
	[HEARTH_CLASS_VISION] = "vision",
	[HEARTH_CLASS_EMBED] = "embed",
};

static const char *const levels[] = {
	[HEARTH_LEVEL_NONE] = "none",
	[HEARTH_LEVEL_LOW] = "low",
	[HEARTH_LEVEL_MEDIUM] = "medium",
	[HEARTH_LEVEL_CRITICAL] = "critical",
};

static const char *const events[HEARTH_EVENT_COUNT] = {
	[HEARTH_EVENT_LOST] = "lost",
	[HEARTH_EVENT_PRESSURE] = "pressure",
	[HEARTH_EVENT_HIGH] = "high",
	[HEARTH_EVENT_REFUSED] = "refused",
	[HEARTH_EVENT_RECLAIM] = "reclaim",
	[HEARTH_EVENT_PURGED] = "purged",
	[HEARTH_EVENT_BUDGET] = "budget",
	[HEARTH_EVENT_TENANT_NEW] = "tenant-new",
	[HEARTH_EVENT_TENANT_GONE] = "tenant-gone",
	[HEARTH_EVENT_POOL_NEW] = "pool-new",
	[HEARTH_EVENT_POOL_SIZE] = "pool-size",
	[HEARTH_EVENT_POOL_GONE] = "pool-gone",
};

static const char *const whys[] = {
	[0] = "?",
	[HEARTH_WHY_MAX] = "max",
	[HEARTH_WHY_POOL] = "pool",
	[HEARTH_WHY_MIN] = "min",
	[HEARTH_WHY_QUEUE] = "queue",
	[5] = "?",
	[6] = "?",
	[HEARTH_WHY_PIECES] = "pieces",
};

#define NAME_OF(table, v) ((unsigned)(v) < sizeof(table) / sizeof(table[0]) ? table[v] : "?")

const char *hearth_kind_name(enum hearth_kind kind)
{
	return NAME_OF(kinds, kind);
}

const char *hearth_class_name(enum hearth_class cls)
{
	return NAME_OF(classes, cls);
}

const char *hearth_level_name(enum hearth_level level)
{
	return NAME_OF(levels, level);
}

const char *hearth_event_name(enum hearth_event_type type)
{
	return NAME_OF(events, type);
}

const char *hearth_why_name(enum hearth_why why)
{
	return NAME_OF(whys, why);
}

int hearth_kind_parse(const char *name, enum hearth_kind *ret_kind)
{
	for (int i = 0; i < HEARTH_KIND_COUNT; i++) {
		if (!strcmp(kinds[i], name)) {
			*ret_kind = (enum hearth_kind)i;
			return 0;
		}
	}
	return -EINVAL;
}

int hearth_class_parse(const char *name, enum hearth_class *ret_cls)
{
	for (int i = 0; i < HEARTH_CLASS_COUNT; i++) {
		if (!strcmp(classes[i], name)) {
			*ret_cls = (enum hearth_class)i;
			return 0;
		}
	}
	return -EINVAL;
}
