// SPDX-License-Identifier: MIT
#include "cache/prefix.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	uint64_t key;              /* of all tokens up to the end of this page */
	uint64_t parent;           /* key of the page before; ROOT for the first */
	uint64_t used;             /* clock of the last use */
	uint32_t pins;             /* bit i: prefix.pin[i] holds it */
	uint32_t depth;            /* pages before this one */
	uint32_t page;             /* KV_NONE: entry is free */
	uint32_t next;             /* entry with the same parent bucket, or KV_NONE */
	int32_t token[KV_PAGE];
};

struct pin {
	uint64_t key;              /* 0: free */
	uint64_t until;            /* 0: for good */
	uint64_t used;
};

struct prefix {
	struct kv *kv;
	uint64_t clock;
	struct pin pin[PREFIX_PINS];
	uint32_t n, buckets;       /* a power of two */
	uint32_t free;             /* list through .next */
	uint32_t *bucket;          /* by parent key: first entry */
	struct entry *e;           /* [n] */
};

#define ROOT 0x9e3779b97f4a7c15ull

static uint32_t buckets_for(uint32_t pages)
{
	uint32_t b = 16;

	while (b < pages && b < 1u << 30)
		b *= 2;
	return b;
}

size_t prefix_host_bytes(uint32_t pages)
{
	return sizeof(struct prefix) + pages * sizeof(struct entry) +
	       buckets_for(pages) * sizeof(uint32_t);
}

int prefix_open(struct kv *kv, struct prefix **ret, struct hearth_err *err)
{
	const uint32_t n = kv_total(kv);
	struct prefix *p = calloc(1, prefix_host_bytes(n));
	uint32_t i;

	if (!p)
		return err_set(err, -ENOMEM, "no memory for a prefix cache of %u pages", n);
	p->kv = kv;
	p->n = n;
	p->buckets = buckets_for(n);
	p->e = (struct entry *)(p + 1);
	p->bucket = (uint32_t *)(p->e + n);
	memset(p->bucket, 0xff, p->buckets * sizeof(uint32_t));
	for (i = 0; i < n; i++) {
		p->e[i].page = KV_NONE;
		p->e[i].next = i + 1 < n ? i + 1 : KV_NONE;
	}
	*ret = p;
	return 0;
}

void prefix_close(struct prefix *p)
{
	uint32_t i;

	if (!p)
		return;
	for (i = 0; i < p->n; i++)
		if (p->e[i].page != KV_NONE)
			kv_page_put(p->kv, p->e[i].page);
	free(p);
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h ^= v;
	h *= 0xff51afd7ed558ccdull;
	h ^= h >> 32;
	h *= 0xc4ceb9fe1a85ec53ull;
	return h ^ h >> 29;
}

static uint64_t key_of(uint64_t parent, const int32_t *token)
{
	uint64_t h = mix(parent, KV_PAGE);
	uint32_t i;

	for (i = 0; i < KV_PAGE; i++)
		h = mix(h, (uint32_t)token[i]);
	return h;
}

static uint32_t *bucket(struct prefix *p, uint64_t parent)
{
	return &p->bucket[mix(parent, 1) & (p->buckets - 1)];
}

/*
 * The child of @parent at @depth that shares most tokens with token[0..n), and
 * how many. Depth is compared too: equal keys at unequal depths would need a
 * collision, and the tokens before were compared on the way here.
 */
static uint32_t best_child(struct prefix *p, uint64_t parent, uint32_t depth, const int32_t *token,
			   uint32_t n, uint32_t *ret_common)
{
	uint32_t i, k, best = KV_NONE, common = 0;

	if (n > KV_PAGE)
		n = KV_PAGE;
	for (i = *bucket(p, parent); i != KV_NONE; i = p->e[i].next) {
		const struct entry *e = &p->e[i];

		if (e->parent != parent || e->depth != depth)
			continue;
		for (k = 0; k < n && e->token[k] == token[k]; k++)
			;
		if (k > common) {
			common = k;
			best = i;
		}
	}
	*ret_common = common;
	return best;
}

static uint32_t walk(struct prefix *p, const int32_t *token, uint32_t n, uint32_t *ret_page)
{
	uint64_t parent = ROOT;
	uint32_t at = 0, common, i;

	p->clock++;
	while (at < n) {
		i = best_child(p, parent, at / KV_PAGE, token + at, n - at, &common);
		if (i == KV_NONE)
			break;
		if (ret_page) {
			p->e[i].used = p->clock;
			kv_page_ref(p->kv, p->e[i].page);
			ret_page[at / KV_PAGE] = p->e[i].page;
		}
		at += common;
		if (common < KV_PAGE)
			break;
		parent = p->e[i].key;
	}
	return at;
}

uint32_t prefix_find(struct prefix *p, const int32_t *token, uint32_t n, uint32_t *ret_page)
{
	return walk(p, token, n, ret_page);
}

uint32_t prefix_peek(struct prefix *p, const int32_t *token, uint32_t n)
{
	return walk(p, token, n, NULL);
}

void prefix_keep(struct prefix *p, const struct kv_seq *s)
{
	uint64_t parent = ROOT;
	uint32_t at, common, i;

	p->clock++;
	for (at = 0; at + KV_PAGE <= s->len; at += KV_PAGE) {
		i = best_child(p, parent, at / KV_PAGE, s->token + at, KV_PAGE, &common);
		if (i == KV_NONE || common < KV_PAGE) {
			struct entry *e;
			uint32_t *b = bucket(p, parent);

			/* There are as many entries as pages, so one is free. */
			i = p->free;
			if (i == KV_NONE)
				return;
			e = &p->e[i];
			p->free = e->next;
			*e = (struct entry){
				.key = key_of(parent, s->token + at),
				.parent = parent,
				.depth = at / KV_PAGE,
				.page = s->page[at / KV_PAGE],
				.next = *b,
			};
			memcpy(e->token, s->token + at, sizeof(e->token));
			*b = i;
			kv_page_ref(p->kv, e->page);
		}
		p->e[i].used = p->clock;
		parent = p->e[i].key;
	}
}

static void drop(struct prefix *p, uint32_t i)
{
	struct entry *e = &p->e[i];
	uint32_t *at = bucket(p, e->parent);

	while (*at != i)
		at = &p->e[*at].next;
	*at = e->next;
	kv_page_put(p->kv, e->page);
	e->page = KV_NONE;
	e->next = p->free;
	p->free = i;
}

/* -- pins ------------------------------------------------------------------------- */

static bool is_pinned(const struct prefix *p, const struct entry *e, uint64_t now)
{
	uint32_t i;

	for (i = 0; e->pins >> i; i++)
		if (e->pins >> i & 1 && (!p->pin[i].until || p->pin[i].until > now))
			return true;
	return false;
}

void prefix_pin(struct prefix *p, const int32_t *token, uint32_t n, uint64_t key, uint64_t until)
{
	struct pin *to = &p->pin[0];
	uint64_t parent = ROOT;
	uint32_t at, common, i, bit, pinned = 0;

	for (i = 0; i < PREFIX_PINS; i++) {
		if (p->pin[i].key == key) {
			to = &p->pin[i];
			break;
		}
		if (!p->pin[i].key ? to->key != 0 : to->key && p->pin[i].used < to->used)
			to = &p->pin[i];
	}
	*to = (struct pin){ .key = key, .until = until, .used = ++p->clock };
	bit = 1u << (to - p->pin);
	for (i = 0; i < p->n; i++) {
		p->e[i].pins &= ~bit;
		pinned += p->e[i].page != KV_NONE && p->e[i].pins;
	}
	for (at = 0; at + KV_PAGE <= n && pinned < p->n / 2; at += KV_PAGE) {
		i = best_child(p, parent, at / KV_PAGE, token + at, KV_PAGE, &common);
		if (i == KV_NONE || common < KV_PAGE)
			break;
		pinned += !p->e[i].pins;
		p->e[i].pins |= bit;
		parent = p->e[i].key;
	}
}

uint32_t prefix_shed(struct prefix *p, uint32_t pages, bool pinned, uint64_t now)
{
	uint32_t done, i, pick;
	bool held, pick_held = false;

	for (done = 0; done < pages; done++) {
		pick = KV_NONE;
		for (i = 0; i < p->n; i++) {
			const struct entry *e = &p->e[i];

			if (e->page == KV_NONE || kv_page_refs(p->kv, e->page) > 1)
				continue;
			held = is_pinned(p, e, now);
			if (held && !pinned)
				continue;
			if (pick == KV_NONE || held < pick_held ||
			    (held == pick_held && (e->used < p->e[pick].used ||
						   (e->used == p->e[pick].used && e->depth > p->e[pick].depth)))) {
				pick = i;
				pick_held = held;
			}
		}
		if (pick == KV_NONE)
			break;
		drop(p, pick);
	}
	return done;
}

/* -- for the file ------------------------------------------------------------------ */

static int by_use(const void *a, const void *b)
{
	const struct prefix_page *x = a, *y = b;

	if (x->used != y->used)
		return x->used > y->used ? -1 : 1;
	return x->depth < y->depth ? -1 : x->depth > y->depth;
}

uint32_t prefix_list(const struct prefix *p, struct prefix_page *ret, uint32_t cap)
{
	uint32_t i, n = 0;

	for (i = 0; i < p->n && n < cap; i++) {
		const struct entry *e = &p->e[i];

		if (e->page == KV_NONE)
			continue;
		ret[n] = (struct prefix_page){ .key = e->key, .parent = e->parent, .used = e->used,
					       .depth = e->depth, .page = e->page };
		memcpy(ret[n++].token, e->token, sizeof(e->token));
	}
	/* Who uses a page uses all before it: a parent is never older than its child. */
	qsort(ret, n, sizeof(*ret), by_use);
	return n;
}

bool prefix_holds(struct prefix *p, const struct prefix_page *e)
{
	uint32_t i = *bucket(p, e->parent);

	while (i != KV_NONE && (p->e[i].key != e->key || p->e[i].page != e->page || p->e[i].depth != e->depth))
		i = p->e[i].next;
	return i != KV_NONE;
}

bool prefix_wants(struct prefix *p, const struct prefix_page *e)
{
	uint32_t i, common;
	bool parent = !e->depth && e->parent == ROOT;

	if (p->free == KV_NONE || e->key != key_of(e->parent, e->token))
		return false;
	for (i = 0; !parent && e->depth && i < p->n; i++)
		parent = p->e[i].page != KV_NONE && p->e[i].key == e->parent && p->e[i].depth + 1 == e->depth;
	return parent && (best_child(p, e->parent, e->depth, e->token, KV_PAGE, &common) == KV_NONE || common < KV_PAGE);
}

int prefix_put(struct prefix *p, const struct prefix_page *e, uint32_t page)
{
	uint32_t i = p->free, *b = bucket(p, e->parent);

	if (!prefix_wants(p, e))
		return -EINVAL;
	p->free = p->e[i].next;
	p->e[i] = (struct entry){ .key = e->key, .parent = e->parent, .used = e->used, .depth = e->depth,
				  .page = page, .next = *b };
	memcpy(p->e[i].token, e->token, sizeof(e->token));
	*b = i;
	if (p->clock < e->used)
		p->clock = e->used;
	return 0;
}

uint32_t prefix_idle(const struct prefix *p)
{
	uint32_t i, n = 0;

	for (i = 0; i < p->n; i++)
		n += p->e[i].page != KV_NONE && kv_page_refs(p->kv, p->e[i].page) == 1;
	return n;
}
