/* SPDX-License-Identifier: MIT */
/*
 * Paged keys and values. The kv region is an array of equal pages; a page
 * holds KV_PAGE consecutive tokens of one timeline for every layer, so one
 * page table per session serves the whole model and a prefix is shared by
 * sharing page ids. Pages are counted references; a page that more than one
 * holder has is never written (the writer takes a copy first).
 *
 * Inside a page, for layer l, K before V, head h:
 *
 *   int8: KV_PAGE rows of head_dim int8, then KV_PAGE rows of head_dim/32 f16
 *         scales; value = scale * q, scale = max|x| / 127 over 32 channels
 *   f16:  KV_PAGE rows of head_dim f16
 *
 * This file only keeps count of pages; the bytes are the backend's to read and
 * write (they may be in device memory).
 *
 * Locking: struct kv is guarded by its owner (the engine's worker thread).
 */
#ifndef HEARTH_CACHE_KV_H
#define HEARTH_CACHE_KV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define KV_PAGE    32u          /* tokens of one page */
#define KV_GROUP   32u          /* channels that share an int8 scale */
#define KV_NONE    UINT32_MAX   /* no page */

enum kv_type { KV_I8, KV_F16 };

struct kv_cfg {
	enum kv_type type;
	uint32_t layers, kv_heads, head_dim;   /* head_dim: a multiple of 32 */
};

/* Bytes of one head's K (or V) in a page, a multiple of 64. */
static inline size_t kv_head_bytes(const struct kv_cfg *c)
{
	return c->type == KV_I8
		? (size_t)KV_PAGE * (c->head_dim + c->head_dim / KV_GROUP * 2)
		: (size_t)KV_PAGE * c->head_dim * 2;
}

static inline size_t kv_page_bytes(const struct kv_cfg *c)
{
	return (size_t)c->layers * 2 * c->kv_heads * kv_head_bytes(c);
}

/* Where K (v = 0) or V (v = 1) of @layer and @head start in a page. */
static inline size_t kv_head_off(const struct kv_cfg *c, uint32_t layer, int v, uint32_t head)
{
	return (((size_t)layer * 2 + (size_t)v) * c->kv_heads + head) * kv_head_bytes(c);
}

/* Where the scales start behind it (int8 only). */
static inline size_t kv_scale_off(const struct kv_cfg *c)
{
	return (size_t)KV_PAGE * c->head_dim;
}

static inline uint32_t kv_pages_for(uint32_t tokens)
{
	return tokens / KV_PAGE + (tokens % KV_PAGE != 0);
}

/* -- the page pool ----------------------------------------------------------- */

struct kv;

/* Heap that kv_open() takes, to be planned and charged. */
size_t kv_host_bytes(uint32_t pages);
int kv_open(const struct kv_cfg *cfg, uint32_t pages, struct kv **ret, struct hearth_err *err);
void kv_close(struct kv *kv);

const struct kv_cfg *kv_config(const struct kv *kv);
uint32_t kv_total(const struct kv *kv);
uint32_t kv_free(const struct kv *kv);

/* A page with one reference; -ENOMEM when none is free. */
int kv_page_get(struct kv *kv, uint32_t *ret_page);
/* That page, which must be free: -EBUSY; -EINVAL: there is no such page. */
int kv_page_take(struct kv *kv, uint32_t page);
void kv_page_ref(struct kv *kv, uint32_t page);
void kv_page_put(struct kv *kv, uint32_t page);
uint32_t kv_page_refs(const struct kv *kv, uint32_t page);
/*
 * A page that is free and was in use since it was last returned here, KV_NONE
 * when there is none: its memory holds nothing that anybody will read.
 */
uint32_t kv_page_stale(struct kv *kv);

/* -- one timeline -------------------------------------------------------------- */

/*
 * Tokens 0 .. len-1 lie in page[0 .. kv_pages_for(len)-1]. token[] remembers
 * what they are, so that the next request reuses the common prefix. Both arrays
 * are sized for the whole context when the session opens.
 */
struct kv_seq {
	uint32_t len, cap;
	uint32_t n_page;
	uint32_t *page;
	int32_t *token;
};

size_t kv_seq_host_bytes(uint32_t cap);
int kv_seq_open(uint32_t cap, struct kv_seq *ret, struct hearth_err *err);
void kv_seq_close(struct kv *kv, struct kv_seq *s);

/* Forgets everything from token @len on. Pages no longer needed go back. */
void kv_seq_rewind(struct kv *kv, struct kv_seq *s, uint32_t len);

/*
 * Room for @n more tokens. Where the last page is shared, *ret_copy_dst/src
 * name the page copy that the backend must do before writing (KV_NONE when
 * none). -ENOMEM (nothing changed) when pages are short, -E2BIG over cap.
 */
int kv_seq_extend(struct kv *kv, struct kv_seq *s, uint32_t n,
		  uint32_t *ret_copy_dst, uint32_t *ret_copy_src);

#endif
