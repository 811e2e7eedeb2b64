// SPDX-License-Identifier: MIT
#include "cache/kv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct kv {
	struct kv_cfg cfg;
	uint32_t total, n_free;
	uint32_t *free;      /* stack of free page ids, lowest on top at first */
	uint32_t *refs;      /* [total] */
	uint8_t *stale;      /* [total]: free, and was in use */
	uint32_t n_stale;
};

size_t kv_host_bytes(uint32_t pages)
{
	return sizeof(struct kv) + (size_t)pages * (2 * sizeof(uint32_t) + 1);
}

int kv_open(const struct kv_cfg *cfg, uint32_t pages, struct kv **ret, struct hearth_err *err)
{
	struct kv *kv;
	uint32_t i;

	if (!cfg->layers || !cfg->kv_heads || !cfg->head_dim || cfg->head_dim % KV_GROUP)
		return err_set(err, -EINVAL, "KV pages of %u layers, %u heads of %u channels",
			       cfg->layers, cfg->kv_heads, cfg->head_dim);
	if (!pages || pages == KV_NONE)
		return err_set(err, -EINVAL, "%u KV pages", pages);
	kv = calloc(1, kv_host_bytes(pages));
	if (!kv)
		return err_set(err, -ENOMEM, "no memory to keep count of %u KV pages", pages);
	kv->cfg = *cfg;
	kv->total = kv->n_free = pages;
	kv->free = (uint32_t *)(kv + 1);
	kv->refs = kv->free + pages;
	kv->stale = (uint8_t *)(kv->refs + pages);
	for (i = 0; i < pages; i++)
		kv->free[i] = pages - 1 - i;
	*ret = kv;
	return 0;
}

void kv_close(struct kv *kv)
{
	free(kv);
}

const struct kv_cfg *kv_config(const struct kv *kv)
{
	return &kv->cfg;
}

uint32_t kv_total(const struct kv *kv)
{
	return kv->total;
}

uint32_t kv_free(const struct kv *kv)
{
	return kv->n_free;
}

int kv_page_get(struct kv *kv, uint32_t *ret_page)
{
	uint32_t p;

	if (!kv->n_free)
		return -ENOMEM;
	p = kv->free[--kv->n_free];
	kv->refs[p] = 1;
	kv->n_stale -= kv->stale[p];
	kv->stale[p] = 0;
	*ret_page = p;
	return 0;
}

int kv_page_take(struct kv *kv, uint32_t page)
{
	uint32_t i;

	if (page >= kv->total)
		return -EINVAL;
	if (kv->refs[page])
		return -EBUSY;
	for (i = 0; kv->free[i] != page; i++)
		;
	/* To the top, where it is taken like any other. */
	memmove(kv->free + i, kv->free + i + 1, (kv->n_free - i - 1) * sizeof(*kv->free));
	kv->free[kv->n_free - 1] = page;
	return kv_page_get(kv, &page);
}

uint32_t kv_page_stale(struct kv *kv)
{
	uint32_t i;

	if (!kv->n_stale)
		return KV_NONE;
	for (i = 0; !kv->stale[i]; i++)
		;
	kv->stale[i] = 0;
	kv->n_stale--;
	return i;
}

void kv_page_ref(struct kv *kv, uint32_t page)
{
	kv->refs[page]++;
}

void kv_page_put(struct kv *kv, uint32_t page)
{
	if (--kv->refs[page] == 0) {
		kv->free[kv->n_free++] = page;
		kv->stale[page] = 1;
		kv->n_stale++;
	}
}

uint32_t kv_page_refs(const struct kv *kv, uint32_t page)
{
	return kv->refs[page];
}

/* -- one timeline ------------------------------------------------------------- */

size_t kv_seq_host_bytes(uint32_t cap)
{
	return ((size_t)kv_pages_for(cap) + cap) * sizeof(uint32_t);
}

int kv_seq_open(uint32_t cap, struct kv_seq *ret, struct hearth_err *err)
{
	uint32_t *mem = calloc(1, kv_seq_host_bytes(cap));

	if (!mem)
		return err_set(err, -ENOMEM, "no memory for a session of %u tokens", cap);
	*ret = (struct kv_seq){
		.cap = cap,
		.page = mem,
		.token = (int32_t *)(mem + kv_pages_for(cap)),
	};
	return 0;
}

void kv_seq_close(struct kv *kv, struct kv_seq *s)
{
	if (!s->page)
		return;
	kv_seq_rewind(kv, s, 0);
	free(s->page);
	*s = (struct kv_seq){ 0 };
}

void kv_seq_rewind(struct kv *kv, struct kv_seq *s, uint32_t len)
{
	if (len < s->len)
		s->len = len;
	while (s->n_page > kv_pages_for(s->len))
		kv_page_put(kv, s->page[--s->n_page]);
}

int kv_seq_extend(struct kv *kv, struct kv_seq *s, uint32_t n, uint32_t *ret_copy_dst,
		  uint32_t *ret_copy_src)
{
	uint32_t want, copy, fresh = KV_NONE, i;

	if (n > s->cap - s->len)
		return -E2BIG;
	want = kv_pages_for(s->len + n);
	/* A page only partly filled will be written: it must be ours alone. */
	copy = n && s->len % KV_PAGE && kv->refs[s->page[s->len / KV_PAGE]] > 1;
	if (want < s->n_page)
		want = s->n_page;
	if (want - s->n_page + copy > kv->n_free)
		return -ENOMEM;
	*ret_copy_dst = *ret_copy_src = KV_NONE;
	if (copy) {
		const uint32_t at = s->len / KV_PAGE;

		kv_page_get(kv, &fresh);
		*ret_copy_dst = fresh;
		*ret_copy_src = s->page[at];
		/* Somebody else holds the old one, so it stays whole until copied. */
		kv_page_put(kv, s->page[at]);
		s->page[at] = fresh;
	}
	for (i = s->n_page; i < want; i++)
		kv_page_get(kv, &s->page[i]);
	s->n_page = want;
	return 0;
}
