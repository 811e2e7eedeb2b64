// SPDX-License-Identifier: MIT
/* The metadata of a GGUF file: keys, and values as they lie there. */
#include "gguf/head_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Memory follows the bytes that were really read, never a count that the file
 * claims: tables grow by doubling as entries arrive. These bounds only make a
 * sentence out of what would otherwise take long.
 */
#define MAX_KEYS    65536
#define MAX_NESTING 4

static uint32_t scalar_bytes(uint32_t type)
{
	switch (type) {
	case GGUF_U8: case GGUF_I8: case GGUF_BOOL:
		return 1;
	case GGUF_U16: case GGUF_I16:
		return 2;
	case GGUF_U32: case GGUF_I32: case GGUF_F32:
		return 4;
	case GGUF_U64: case GGUF_I64: case GGUF_F64:
		return 8;
	default:
		return 0;
	}
}

static int bad_type(struct cursor *c, uint32_t type, uint64_t at)
{
	return err_set(c->err, -EINVAL,
		       "key \"%s\": value type %" PRIu32 " at offset %" PRIu64
		       " is not known (a newer or damaged file)", c->in.s, type, at);
}

static int check_bools(struct cursor *c, const uint8_t *p, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (p[i] > 1)
			return err_set(c->err, -EINVAL,
				       "key \"%s\": a truth value is %u, not 0 or 1 (offset "
				       "%" PRIu64 ")",
				       c->in.s, p[i], (uint64_t)(p + i - c->w->base));
	return 0;
}

/* An array's strings: checks each and notes where it is. */
static int index_strings(struct cursor *c, uint64_t n, struct gguf_str **ret)
{
	struct gguf_str *str = NULL, *more;
	uint64_t cap = 0, i;
	int r;

	if (n > (c->w->file_size - c->pos) / 8)
		return head_short(c, n > UINT64_MAX / 8 ? UINT64_MAX : n * 8, "array of strings");
	for (i = 0; i < n; i++) {
		if (i == cap) {
			cap = cap ? cap * 2 : 64;
			if (cap > n)
				cap = n;
			more = realloc(str, cap * sizeof(*str));
			if (!more) {
				free(str);
				return err_set(c->err, -ENOMEM, "no memory for %" PRIu64 " strings",
					       n);
			}
			str = more;
		}
		r = head_take_str(c, "string of an array", &str[i]);
		if (r < 0) {
			free(str);
			return r;
		}
	}
	*ret = str;
	return 0;
}

static int skip_array(struct cursor *c, unsigned int depth);

static int skip_elements(struct cursor *c, uint32_t type, uint64_t n, unsigned int depth)
{
	uint32_t size = scalar_bytes(type);
	struct gguf_str s;
	const uint8_t *p = NULL;
	int r = 0;

	if (size) {
		if (n > (c->w->file_size - c->pos) / size)
			return head_short(c, n > UINT64_MAX / size ? UINT64_MAX : n * size,
					  "array");
		r = head_take(c, n * size, "array", &p);
		if (r == 0 && type == GGUF_BOOL)
			r = check_bools(c, p, n);
		return r;
	}
	/* Every element takes at least 8 bytes, so the loop ends with the file. */
	if (n > (c->w->file_size - c->pos) / 8)
		return head_short(c, n > UINT64_MAX / 8 ? UINT64_MAX : n * 8, "array");
	for (uint64_t i = 0; i < n && r == 0; i++)
		r = type == GGUF_STR ? head_take_str(c, "string of an array", &s) :
				       skip_array(c, depth + 1);
	return r;
}

static int skip_array(struct cursor *c, unsigned int depth)
{
	uint64_t at = c->pos, n = 0;
	uint32_t type = 0;
	int r;

	if (depth > MAX_NESTING)
		return err_set(c->err, -EINVAL,
			       "key \"%s\": arrays are nested deeper than %d (offset %" PRIu64 ")",
			       c->in.s, MAX_NESTING, at);
	r = head_take_u32(c, "type of an array", &type);
	if (r == 0)
		r = head_take_u64(c, "length of an array", &n);
	if (r < 0)
		return r;
	if (!scalar_bytes(type) && type != GGUF_STR && type != GGUF_ARR)
		return bad_type(c, type, at);
	return skip_elements(c, type, n, depth);
}

static int take_array(struct cursor *c, struct head_kv *kv)
{
	uint64_t at = c->pos;
	int r;

	r = head_take_u32(c, "type of the array", &kv->el_type);
	if (r == 0)
		r = head_take_u64(c, "length of the array", &kv->n);
	if (r < 0)
		return r;
	if (!scalar_bytes(kv->el_type) && kv->el_type != GGUF_STR && kv->el_type != GGUF_ARR)
		return bad_type(c, kv->el_type, at);
	if (kv->el_type == GGUF_STR)
		return index_strings(c, kv->n, &kv->str);
	at = c->pos;
	r = skip_elements(c, kv->el_type, kv->n, 1);
	/* The window's address does not move. */
	kv->val = c->w->base + at;
	return r;
}

static int take_kv(struct cursor *c, struct head_kv *kv)
{
	uint64_t at = c->pos;
	struct gguf_str s;
	int r;

	c->kind = NULL;
	r = head_take_str(c, "key", &kv->key);
	if (r < 0)
		return r;
	if (kv->key.n == 0 || kv->key.n > GGUF_MAX_KEY)
		return err_set(c->err, -EINVAL,
			       "a key of %zu bytes at offset %" PRIu64 " (1 to %d are allowed)",
			       kv->key.n, at, GGUF_MAX_KEY);
	if (memchr(kv->key.s, 0, kv->key.n))
		return err_set(c->err, -EINVAL, "the key at offset %" PRIu64 " contains a NUL byte",
			       at);
	c->kind = "key";
	c->in = quote(kv->key.s, kv->key.n);
	at = c->pos;
	r = head_take_u32(c, "type", &kv->type);
	if (r < 0)
		return r;
	kv->at = c->pos;
	if (kv->type == GGUF_ARR)
		return take_array(c, kv);
	if (kv->type == GGUF_STR) {
		r = head_take_str(c, "string", &s);
		kv->val = (const uint8_t *)s.s;
		kv->n = s.n;
		return r;
	}
	if (!scalar_bytes(kv->type))
		return bad_type(c, kv->type, at);
	r = head_take(c, scalar_bytes(kv->type), "value", &kv->val);
	if (r == 0 && kv->type == GGUF_BOOL)
		r = check_bools(c, kv->val, 1);
	return r;
}

static int by_key(const void *a, const void *b)
{
	const struct head_kv *x = *(const struct head_kv *const *)a;
	const struct head_kv *y = *(const struct head_kv *const *)b;
	size_t n = x->key.n < y->key.n ? x->key.n : y->key.n;
	int d = memcmp(x->key.s, y->key.s, n);

	return d ? d : x->key.n < y->key.n ? -1 : x->key.n > y->key.n;
}

static int no_key_twice(struct head *h, struct hearth_err *err)
{
	const struct head_kv **order;
	int r = 0;

	if (h->n_kv < 2)
		return 0;
	order = malloc(h->n_kv * sizeof(*order));
	if (!order)
		return err_set(err, -ENOMEM, "no memory for the metadata");
	for (uint64_t i = 0; i < h->n_kv; i++)
		order[i] = &h->kv[i];
	qsort(order, h->n_kv, sizeof(*order), by_key);
	for (uint64_t i = 1; i < h->n_kv && r == 0; i++)
		if (by_key(&order[i - 1], &order[i]) == 0)
			r = err_set(err, -EINVAL,
				    "key \"%s\" is there twice (value at offset %" PRIu64 ")",
				    quote(order[i]->key.s, order[i]->key.n).s,
				    order[i]->at > order[i - 1]->at ? order[i]->at
								    : order[i - 1]->at);
	free(order);
	return r;
}

int head_take_keys(struct cursor *c, uint64_t n, struct head *h)
{
	uint64_t cap = 0;
	int r;

	/* The smallest entry: a key of one byte and a value of one. */
	if (n > MAX_KEYS || n > (c->w->file_size - c->pos) / (8 + 1 + 4 + 1))
		return err_set(c->err, -EINVAL,
			       "the header claims %" PRIu64 " metadata keys, more than %s", n,
			       n > MAX_KEYS ? "any model has" : "fit into the file");
	while (h->n_kv < n) {
		if (h->n_kv == cap) {
			struct head_kv *more;

			cap = cap ? cap * 2 : 32;
			more = realloc(h->kv, cap * sizeof(*more));
			if (!more)
				return err_set(c->err, -ENOMEM, "no memory for the metadata");
			h->kv = more;
		}
		h->kv[h->n_kv] = (struct head_kv){ 0 };
		r = take_kv(c, &h->kv[h->n_kv]);
		h->n_kv++; /* counted even when half read, so that head_free() sees it */
		if (r < 0)
			return r;
	}
	return no_key_twice(h, c->err);
}
