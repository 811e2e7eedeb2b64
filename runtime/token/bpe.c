// SPDX-License-Identifier: MIT
#include "token/bpe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* -- strings ---------------------------------------------------------------- */

static uint32_t hash_text(const char *s, size_t n)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (uint8_t)s[i]) * 0x100000001b3ull;
	return (uint32_t)(h ^ h >> 32);
}

static uint32_t hash_pair(uint32_t l, uint32_t r)
{
	uint64_t h = ((uint64_t)l << 32 | r) * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(h >> 32);
}

static bool hidden(const struct bpe *b, uint32_t sym)
{
	return sym < b->n_tokens && b->hidden[sym];
}

uint32_t bpe_find(const struct bpe *b, const char *s, size_t n, bool also_hidden)
{
	uint32_t i = hash_text(s, n) & (b->slots - 1);

	for (; b->slot[i]; i = (i + 1) & (b->slots - 1)) {
		uint32_t sym = b->slot[i] - 1;

		if (b->at[sym + 1] - b->at[sym] == n && memcmp(b->text + b->at[sym], s, n) == 0 &&
		    (also_hidden || !hidden(b, sym)))
			return sym;
	}
	return BPE_NONE;
}

static void put_slot(uint32_t *slot, uint32_t slots, uint32_t hash, uint32_t sym)
{
	uint32_t i = hash & (slots - 1);

	while (slot[i])
		i = (i + 1) & (slots - 1);
	slot[i] = sym + 1;
}

static int grow_slots(struct bpe *b)
{
	uint32_t slots = b->slots ? b->slots * 2 : 1024, *slot;

	while (slots < b->n_syms * 2)
		slots *= 2;
	slot = calloc(slots, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->n_syms; i++)
		put_slot(slot, slots, hash_text(b->text + b->at[i], b->at[i + 1] - b->at[i]), i);
	free(b->slot);
	b->slot = slot;
	b->slots = slots;
	return 0;
}

static int reserve(struct bpe *b, size_t n)
{
	if (b->text_n + n > UINT32_MAX || b->n_syms >= UINT32_MAX / 8)
		return -E2BIG;
	if (b->text_cap - b->text_n < n) {
		size_t cap = (b->text_n + n) * 2 + 4096;
		char *text = realloc(b->text, cap);

		if (!text)
			return -ENOMEM;
		b->text = text;
		b->text_cap = cap;
	}
	if (b->n_syms + 2 > b->cap_syms) {
		uint32_t cap = b->cap_syms ? b->cap_syms * 2 : 1024;
		uint32_t *at = realloc(b->at, cap * sizeof(*at));

		if (!at)
			return -ENOMEM;
		b->at = at;
		b->cap_syms = cap;
		if (b->n_syms == 0)
			b->at[0] = 0;
	}
	return 0;
}

int bpe_add(struct bpe *b, const char *s, size_t n, uint32_t *ret)
{
	int r = reserve(b, n);

	if (r < 0)
		return r;
	memcpy(b->text + b->text_n, s, n);
	b->text_n += n;
	b->at[++b->n_syms] = (uint32_t)b->text_n;
	/* Tokens are entered all at once, in bpe_tokens_done(). */
	if (b->slots) {
		if (b->n_syms * 2 > b->slots) {
			r = grow_slots(b);
			if (r < 0) {
				b->text_n -= n;
				b->n_syms--;
				return r;
			}
		} else {
			put_slot(b->slot, b->slots, hash_text(s, n), b->n_syms - 1);
		}
	}
	*ret = b->n_syms - 1;
	return 0;
}

static int symbol(struct bpe *b, const char *s, size_t n, uint32_t *ret)
{
	*ret = bpe_find(b, s, n, false);
	return *ret == BPE_NONE ? bpe_add(b, s, n, ret) : 0;
}

int bpe_tokens_done(struct bpe *b, uint8_t *hide, struct hearth_err *err)
{
	b->hidden = hide;
	b->n_tokens = b->n_syms;
	if (grow_slots(b) < 0)
		return err_set(err, -ENOMEM, "no memory for a vocabulary");
	/* Some vocabularies leave out bytes that no UTF-8 has, or control characters. */
	for (int i = 0; i < 256; i++) {
		char c = (char)i;

		if (symbol(b, &c, 1, &b->byte[i]) < 0)
			return err_set(err, -ENOMEM, "no memory for a vocabulary");
	}
	return 0;
}

/* -- merges ----------------------------------------------------------------- */

static struct bpe_pair *find_pair(struct bpe_pair *pair, uint32_t pairs, uint32_t l, uint32_t r)
{
	uint32_t i = hash_pair(l, r) & (pairs - 1);

	while (pair[i].rank != BPE_NONE && (pair[i].l != l || pair[i].r != r))
		i = (i + 1) & (pairs - 1);
	return &pair[i];
}

static int grow_pairs(struct bpe *b)
{
	uint32_t pairs = b->pairs ? b->pairs * 2 : 1024;
	struct bpe_pair *pair = malloc(pairs * sizeof(*pair));

	if (!pair)
		return -ENOMEM;
	memset(pair, 0xff, pairs * sizeof(*pair));
	for (uint32_t i = 0; i < b->pairs; i++)
		if (b->pair[i].rank != BPE_NONE)
			*find_pair(pair, pairs, b->pair[i].l, b->pair[i].r) = b->pair[i];
	free(b->pair);
	b->pair = pair;
	b->pairs = pairs;
	return 0;
}

int bpe_merge(struct bpe *b, const char *l, size_t nl, const char *r, size_t nr, uint32_t rank)
{
	struct bpe_pair p = { .rank = rank }, *at;
	char both[BPE_MAX];
	int e;

	if (nl + nr > sizeof(both))
		return -E2BIG;
	memcpy(both, l, nl);
	memcpy(both + nl, r, nr);
	e = symbol(b, l, nl, &p.l);
	if (e == 0)
		e = symbol(b, r, nr, &p.r);
	if (e == 0)
		e = symbol(b, both, nl + nr, &p.to);
	if (e == 0 && (b->n_pairs + 1) * 5 > b->pairs * 3)
		e = grow_pairs(b);
	if (e < 0)
		return e;
	at = find_pair(b->pair, b->pairs, p.l, p.r);
	if (at->rank == BPE_NONE) {
		*at = p;
		b->n_pairs++;
	}
	return 0;
}

void bpe_done(struct bpe *b)
{
	free(b->text);
	free(b->at);
	free(b->hidden);
	free(b->slot);
	free(b->pair);
	*b = (struct bpe){ 0 };
}

/* -- a word -----------------------------------------------------------------
 * The best pair of all is merged until there is none: a heap of candidates by
 * rank, then place. A merge makes the candidates of its neighbours stale; they
 * are told by their symbols and thrown away when they come up.
 */

struct bpe_node {
	uint32_t sym;            /* BPE_NONE: merged into the one before */
	uint32_t prev, next;
};

struct bpe_cand {
	uint32_t rank, pos;      /* pos of the left one */
	uint32_t l, r;           /* what the two were */
	uint32_t to, end;        /* end: pos of the right one */
};

static bool before(const struct bpe_cand *a, const struct bpe_cand *b)
{
	return a->rank != b->rank ? a->rank < b->rank : a->pos < b->pos;
}

static void heap_push(struct bpe_cand *heap, size_t *n, struct bpe_cand c)
{
	size_t i = (*n)++;

	while (i && before(&c, &heap[(i - 1) / 2])) {
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = c;
}

static struct bpe_cand heap_pop(struct bpe_cand *heap, size_t *n)
{
	struct bpe_cand top = heap[0], last = heap[--*n];
	size_t i = 0, k;

	while ((k = 2 * i + 1) < *n) {
		if (k + 1 < *n && before(&heap[k + 1], &heap[k]))
			k++;
		if (!before(&heap[k], &last))
			break;
		heap[i] = heap[k];
		i = k;
	}
	heap[i] = last;
	return top;
}

static int work_reserve(struct bpe_work *w, size_t n)
{
	struct bpe_node *node;
	struct bpe_cand *heap;

	if (n <= w->cap)
		return 0;
	n = n * 2 < 256 ? 256 : n * 2;
	node = realloc(w->node, n * sizeof(*node));
	if (node)
		w->node = node;
	/* n - 1 pairs at first, then at most two more for each of n - 1 merges. */
	heap = realloc(w->heap, 3 * n * sizeof(*heap));
	if (heap)
		w->heap = heap;
	if (!node || !heap)
		return -ENOMEM;
	w->cap = n;
	return 0;
}

static void consider(const struct bpe *b, struct bpe_work *w, size_t *n_heap, uint32_t l,
		     uint32_t r)
{
	const struct bpe_pair *p;

	if (l == BPE_NONE || r == BPE_NONE || !b->pairs)
		return;
	p = find_pair(b->pair, b->pairs, w->node[l].sym, w->node[r].sym);
	if (p->rank != BPE_NONE)
		heap_push(w->heap, n_heap,
			  (struct bpe_cand){ .rank = p->rank,
					     .pos = l,
					     .l = p->l,
					     .r = p->r,
					     .to = p->to,
					     .end = r });
}

static void merge_all(const struct bpe *b, struct bpe_work *w, size_t n)
{
	size_t n_heap = 0;

	for (size_t i = 0; i + 1 < n; i++)
		consider(b, w, &n_heap, (uint32_t)i, (uint32_t)i + 1);
	while (n_heap) {
		struct bpe_cand c = heap_pop(w->heap, &n_heap);
		struct bpe_node *l = &w->node[c.pos], *r;

		if (l->sym != c.l || l->next != c.end || w->node[c.end].sym != c.r)
			continue;
		r = &w->node[c.end];
		l->sym = c.to;
		r->sym = BPE_NONE;
		l->next = r->next;
		if (l->next != BPE_NONE)
			w->node[l->next].prev = c.pos;
		consider(b, w, &n_heap, l->prev, c.pos);
		consider(b, w, &n_heap, c.pos, l->next);
	}
}

int bpe_word(const struct bpe *b, struct bpe_work *w, const char *s, size_t n, struct tok_ids *ids)
{
	size_t len;
	int r;

	if (n == 0)
		return 0;
	if (n >= UINT32_MAX / 4)
		return -ENOMEM;
	r = work_reserve(w, n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		w->node[i] = (struct bpe_node){ .sym = b->byte[(uint8_t)s[i]],
						.prev = i ? (uint32_t)i - 1 : BPE_NONE,
						.next = i + 1 < n ? (uint32_t)i + 1 : BPE_NONE };
	merge_all(b, w, n);
	for (uint32_t i = 0; i != BPE_NONE && r == 0; i = w->node[i].next) {
		uint32_t sym = w->node[i].sym;
		const char *text;

		if (sym < b->n_tokens) {
			r = tok_ids_push(ids, (int32_t)sym);
			continue;
		}
		/* Merges led to a string that is no token: its bytes are. */
		text = bpe_text(b, sym, &len);
		for (size_t k = 0; k < len && r == 0; k++) {
			sym = b->byte[(uint8_t)text[k]];
			r = sym < b->n_tokens ? tok_ids_push(ids, (int32_t)sym) : -EILSEQ;
		}
	}
	return r;
}

void bpe_work_done(struct bpe_work *w)
{
	free(w->node);
	free(w->heap);
	*w = (struct bpe_work){ 0 };
}
