/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Programs of extent calls with their results, by hand from the rules in
 * kmod/core/extent.h, which is to be included first. No libc.
 */
#ifndef HEARTH_VECTORS_EXTENT_H
#define HEARTH_VECTORS_EXTENT_H

enum extent_op {
	E_MAP,     /* a: size, b: unit -> ret; begins a new program */
	E_ALLOC,   /* slot, a: size, b: align -> ret, value: start */
	E_PART,    /* slot, a: size -> ret, value: start, size */
	E_AT,      /* slot, a: start, b: size -> ret, value: start */
	E_FREE,    /* slot */
	E_RESIZE,  /* a -> ret */
	E_LARGEST, /* -> value */
	E_TAIL,    /* -> value */
	E_BYTES,   /* -> value: free bytes */
	E_NFREE,   /* -> value: number of free extents */
};

struct extent_step {
	enum extent_op op;
	u8 slot;
	u64 a, b;
	int ret;
	u64 value, size;
};

static const struct extent_step extent_steps[] = {
	/* bad maps */
	{ .op = E_MAP, .a = 100, .b = 3, .ret = -EINVAL },
	{ .op = E_MAP, .a = 100, .b = 0, .ret = -EINVAL },
	{ .op = E_MAP, .a = 100, .b = 8, .ret = -EINVAL },
	/* an empty map has nothing and can grow */
	{ .op = E_MAP, .a = 0, .b = 4 },
	{ .op = E_ALLOC, .a = 4, .b = 4, .ret = -ENOSPC },
	{ .op = E_LARGEST, .value = 0 },
	{ .op = E_RESIZE, .a = 8 },
	{ .op = E_ALLOC, .a = 8, .b = 4, .value = 0 },

	/* sizes: 0, one below, one, all, one above, the largest number */
	{ .op = E_MAP, .a = 64, .b = 4 },
	{ .op = E_ALLOC, .a = 0, .b = 4, .ret = -EINVAL },
	{ .op = E_ALLOC, .a = 3, .b = 4, .ret = -EINVAL },
	{ .op = E_ALLOC, .a = 4, .b = 2, .ret = -EINVAL },
	{ .op = E_ALLOC, .a = 4, .b = 12, .ret = -EINVAL },
	{ .op = E_ALLOC, .a = 68, .b = 4, .ret = -ENOSPC },
	{ .op = E_ALLOC, .a = 1ull << 63, .b = 1ull << 63, .ret = -ENOSPC },
	{ .op = E_ALLOC, .slot = 0, .a = 64, .b = 4, .value = 0 },
	{ .op = E_ALLOC, .slot = 1, .a = 4, .b = 4, .ret = -ENOSPC },
	{ .op = E_BYTES, .value = 0 },
	{ .op = E_FREE, .slot = 0 },
	{ .op = E_LARGEST, .value = 64 },

	/* best fit takes the smallest hole that holds it, and joins on giving back */
	{ .op = E_MAP, .a = 100, .b = 1 },
	{ .op = E_ALLOC, .slot = 0, .a = 10, .b = 1, .value = 0 },
	{ .op = E_ALLOC, .slot = 1, .a = 20, .b = 1, .value = 10 },
	{ .op = E_ALLOC, .slot = 2, .a = 10, .b = 1, .value = 30 },
	{ .op = E_ALLOC, .slot = 3, .a = 12, .b = 1, .value = 40 },
	{ .op = E_ALLOC, .slot = 4, .a = 8, .b = 1, .value = 52 },
	{ .op = E_FREE, .slot = 1 },
	{ .op = E_FREE, .slot = 3 },
	/* holes: [10,30) [40,52) [60,100) */
	{ .op = E_NFREE, .value = 3 },
	{ .op = E_LARGEST, .value = 40 },
	{ .op = E_TAIL, .value = 40 },
	{ .op = E_ALLOC, .slot = 5, .a = 11, .b = 1, .value = 40 },
	{ .op = E_ALLOC, .slot = 6, .a = 12, .b = 1, .value = 10 },
	{ .op = E_ALLOC, .slot = 7, .a = 21, .b = 1, .value = 60 },
	/* holes: [22,30) [51,52) [81,100) */
	{ .op = E_FREE, .slot = 2 },
	{ .op = E_NFREE, .value = 3 },
	{ .op = E_ALLOC, .slot = 2, .a = 18, .b = 1, .value = 22 },
	{ .op = E_FREE, .slot = 2 },
	{ .op = E_FREE, .slot = 6 },
	{ .op = E_FREE, .slot = 5 },
	{ .op = E_FREE, .slot = 0 },
	{ .op = E_FREE, .slot = 4 },
	{ .op = E_FREE, .slot = 7 },
	{ .op = E_NFREE, .value = 1 },
	{ .op = E_LARGEST, .value = 100 },

	/* among equal holes the lowest; alignment passes over what is badly placed */
	{ .op = E_MAP, .a = 128, .b = 1 },
	{ .op = E_ALLOC, .slot = 0, .a = 3, .b = 1, .value = 0 },
	{ .op = E_ALLOC, .slot = 1, .a = 8, .b = 1, .value = 3 },
	{ .op = E_ALLOC, .slot = 2, .a = 5, .b = 1, .value = 11 },
	{ .op = E_ALLOC, .slot = 3, .a = 8, .b = 8, .value = 16 },
	{ .op = E_ALLOC, .slot = 4, .a = 8, .b = 1, .value = 24 },
	{ .op = E_FREE, .slot = 1 },
	{ .op = E_FREE, .slot = 3 },
	{ .op = E_ALLOC, .slot = 1, .a = 8, .b = 8, .value = 16 },
	{ .op = E_ALLOC, .slot = 3, .a = 8, .b = 1, .value = 3 },
	{ .op = E_ALLOC, .slot = 5, .a = 8, .b = 64, .value = 64 },
	{ .op = E_NFREE, .value = 2 },
	{ .op = E_ALLOC, .slot = 6, .a = 8, .b = 128, .ret = -ENOSPC },

	/* exactly there */
	{ .op = E_MAP, .a = 40, .b = 4 },
	{ .op = E_AT, .slot = 0, .a = 8, .b = 8, .value = 8 },
	{ .op = E_AT, .slot = 1, .a = 12, .b = 8, .ret = -EBUSY },
	{ .op = E_AT, .slot = 1, .a = 4, .b = 8, .ret = -EBUSY },
	{ .op = E_AT, .slot = 1, .a = 40, .b = 4, .ret = -EINVAL },
	{ .op = E_AT, .slot = 1, .a = 36, .b = 8, .ret = -EINVAL },
	{ .op = E_AT, .slot = 1, .a = 2, .b = 4, .ret = -EINVAL },
	{ .op = E_AT, .slot = 1, .a = 0, .b = 8, .value = 0 },
	{ .op = E_AT, .slot = 2, .a = 36, .b = 4, .value = 36 },
	/* in parts: the largest hole first, from its start */
	{ .op = E_FREE, .slot = 1 },
	{ .op = E_PART, .slot = 1, .a = 28, .value = 16, .size = 20 },
	{ .op = E_PART, .slot = 3, .a = 4, .value = 0, .size = 4 },
	{ .op = E_PART, .slot = 4, .a = 8, .value = 4, .size = 4 },
	{ .op = E_PART, .slot = 5, .a = 4, .ret = -ENOSPC },
	{ .op = E_FREE, .slot = 0 },
	{ .op = E_FREE, .slot = 2 },

	/* the end moves as far as it is free */
	{ .op = E_RESIZE, .a = 41, .ret = -EINVAL },
	{ .op = E_RESIZE, .a = 32, .ret = -EBUSY },
	{ .op = E_RESIZE, .a = 36 },
	{ .op = E_TAIL, .value = 0 },
	{ .op = E_RESIZE, .a = 64 },
	{ .op = E_TAIL, .value = 28 },
	{ .op = E_RESIZE, .a = 44 },
	{ .op = E_RESIZE, .a = 48 },
	{ .op = E_TAIL, .value = 12 },
	{ .op = E_FREE, .slot = 1 },
	{ .op = E_FREE, .slot = 3 },
	{ .op = E_FREE, .slot = 4 },
	{ .op = E_LARGEST, .value = 48 },
	{ .op = E_RESIZE, .a = 0 },
	{ .op = E_BYTES, .value = 0 },
};

#define EXTENT_STEPS (sizeof(extent_steps) / sizeof(extent_steps[0]))

struct extent_replay {
	struct extent_map m;
	struct extent nodes[32];
	struct extent *slot[8];
};

static bool extent_replay_step(struct extent_replay *r, const struct extent_step *s)
{
	struct extent *got = NULL;
	u64 value = 0;
	int ret = 0;
	size_t i;

	switch (s->op) {
	case E_MAP:
		memset(r, 0, sizeof(*r));
		ret = extent_map_init(&r->m, s->a, s->b, &r->nodes[0]);
		for (i = 1; !ret && i < 32; i++)
			extent_spare_put(&r->m, &r->nodes[i]);
		break;
	case E_ALLOC:
		ret = extent_alloc(&r->m, s->a, s->b, r, &got);
		break;
	case E_PART:
		ret = extent_alloc_part(&r->m, s->a, r, &got);
		if (!ret && got->size != s->size)
			return false;
		break;
	case E_AT:
		ret = extent_alloc_at(&r->m, s->a, s->b, r, &got);
		break;
	case E_FREE:
		extent_free(&r->m, r->slot[s->slot]);
		break;
	case E_RESIZE:
		ret = extent_resize(&r->m, s->a);
		break;
	case E_LARGEST:
		value = extent_largest(&r->m);
		break;
	case E_TAIL:
		value = extent_tail(&r->m);
		break;
	case E_BYTES:
		value = r->m.free;
		break;
	case E_NFREE:
		value = r->m.n_free;
		break;
	}
	if (got) {
		r->slot[s->slot] = got;
		value = got->start;
		if (got->owner != r)
			return false;
	}
	return ret == s->ret && value == s->value;
}

/* 0, or the number (from 1) of the first step that went otherwise. */
static size_t extent_replay(struct extent_replay *r)
{
	size_t i;

	for (i = 0; i < EXTENT_STEPS; i++) {
		if (!extent_replay_step(r, &extent_steps[i]))
			return i + 1;
		if (r->m.unit && extent_check(&r->m))
			return i + 1;
	}
	return 0;
}

#endif
