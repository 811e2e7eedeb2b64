// SPDX-License-Identifier: MIT
#include "gguf/head.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/quant.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "GGUF is read in place, little-endian");

/*
 * Memory follows the bytes that were really read, never a count that the file
 * claims: tables grow by doubling as entries arrive. These bounds only make a
 * sentence out of what would otherwise take long.
 */
#define MAX_KEYS    65536
#define MAX_TENSORS (1u << 20)
#define MAX_NESTING 4

struct quoted quote(const char *s, size_t n)
{
	struct quoted q;
	size_t o = 0, i;

	for (i = 0; i < n && i < 64; i++)
		q.s[o++] = s[i] >= 0x20 && s[i] < 0x7f && s[i] != '"' ? s[i] : '?';
	if (i < n) {
		memcpy(q.s + o, "...", 3);
		o += 3;
	}
	q.s[o] = 0;
	return q;
}

/* -- cursor ----------------------------------------------------------------- */

struct cursor {
	struct window *w;
	uint64_t pos;
	struct hearth_err *err;
	struct quoted in;        /* what is being read: key "x", tensor "y" */
	const char *kind;
};

static int short_file(struct cursor *c, uint64_t n, const char *what)
{
	uint64_t size = c->w->file_size;

	if (c->kind)
		return err_set(c->err, -EINVAL,
			       "%s \"%s\": the %s at offset %" PRIu64 " needs %" PRIu64
			       " bytes, but the file ends at %" PRIu64 " (cut off or damaged)",
			       c->kind, c->in.s, what, c->pos, n, size);
	return err_set(c->err, -EINVAL,
		       "the %s at offset %" PRIu64 " needs %" PRIu64
		       " bytes, but the file ends at %" PRIu64 " (cut off or damaged)",
		       what, c->pos, n, size);
}

/* Gives the next @n bytes and steps over them. */
static int take(struct cursor *c, uint64_t n, const char *what, const uint8_t **ret)
{
	int r;

	if (n > c->w->file_size - c->pos)
		return short_file(c, n, what);
	if (n > GGUF_MAX_HEAD || c->pos + n > GGUF_MAX_HEAD)
		return err_set(c->err, -EFBIG,
			       "the header is longer than %llu MiB (at the %s, offset %" PRIu64 ")",
			       GGUF_MAX_HEAD >> 20, what, c->pos);
	r = window_need(c->w, c->pos + n, c->err);
	if (r < 0)
		return r;
	*ret = c->w->base + c->pos;
	c->pos += n;
	return 0;
}

static int take_u32(struct cursor *c, const char *what, uint32_t *ret)
{
	const uint8_t *p = NULL;
	int r = take(c, 4, what, &p);

	if (r == 0)
		memcpy(ret, p, 4);
	return r;
}

static int take_u64(struct cursor *c, const char *what, uint64_t *ret)
{
	const uint8_t *p = NULL;
	int r = take(c, 8, what, &p);

	if (r == 0)
		memcpy(ret, p, 8);
	return r;
}

static int take_str(struct cursor *c, const char *what, struct gguf_str *ret)
{
	const uint8_t *p = NULL;
	uint64_t n = 0;
	int r;

	r = take_u64(c, what, &n);
	if (r < 0)
		return r;
	r = take(c, n, what, &p);
	if (r < 0)
		return r;
	ret->s = (const char *)p;
	ret->n = (size_t)n;
	return 0;
}

/* -- metadata --------------------------------------------------------------- */

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
		return short_file(c, n > UINT64_MAX / 8 ? UINT64_MAX : n * 8, "array of strings");
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
		r = take_str(c, "string of an array", &str[i]);
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
			return short_file(c, n > UINT64_MAX / size ? UINT64_MAX : n * size,
					  "array");
		r = take(c, n * size, "array", &p);
		if (r == 0 && type == GGUF_BOOL)
			r = check_bools(c, p, n);
		return r;
	}
	/* Every element takes at least 8 bytes, so the loop ends with the file. */
	if (n > (c->w->file_size - c->pos) / 8)
		return short_file(c, n > UINT64_MAX / 8 ? UINT64_MAX : n * 8, "array");
	for (uint64_t i = 0; i < n && r == 0; i++)
		r = type == GGUF_STR ? take_str(c, "string of an array", &s) :
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
	r = take_u32(c, "type of an array", &type);
	if (r == 0)
		r = take_u64(c, "length of an array", &n);
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

	r = take_u32(c, "type of the array", &kv->el_type);
	if (r == 0)
		r = take_u64(c, "length of the array", &kv->n);
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
	r = take_str(c, "key", &kv->key);
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
	r = take_u32(c, "type", &kv->type);
	if (r < 0)
		return r;
	kv->at = c->pos;
	if (kv->type == GGUF_ARR)
		return take_array(c, kv);
	if (kv->type == GGUF_STR) {
		r = take_str(c, "string", &s);
		kv->val = (const uint8_t *)s.s;
		kv->n = s.n;
		return r;
	}
	if (!scalar_bytes(kv->type))
		return bad_type(c, kv->type, at);
	r = take(c, scalar_bytes(kv->type), "value", &kv->val);
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

static int take_metadata(struct cursor *c, uint64_t n, struct head *h)
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

/* -- tensor directory ------------------------------------------------------- */

static int bad_tensor(struct cursor *c, uint64_t at, const char *why)
{
	return err_set(c->err, -EINVAL, "tensor \"%s\" (entry at offset %" PRIu64 "): %s", c->in.s,
		       at, why);
}

static int take_dims(struct cursor *c, uint64_t at, struct gguf_tensor *t)
{
	char why[160];
	int r;

	r = take_u32(c, "number of dimensions", &t->n_dims);
	if (r < 0)
		return r;
	if (t->n_dims < 1 || t->n_dims > GGUF_MAX_DIMS) {
		snprintf(why, sizeof(why), "%" PRIu32 " dimensions (1 to %d are allowed)",
			 t->n_dims, GGUF_MAX_DIMS);
		return bad_tensor(c, at, why);
	}
	t->n_elems = 1;
	for (uint32_t d = 0; d < GGUF_MAX_DIMS; d++) {
		t->ne[d] = 1;
		if (d >= t->n_dims)
			continue;
		r = take_u64(c, "dimension", &t->ne[d]);
		if (r < 0)
			return r;
		if (t->ne[d] == 0 || t->ne[d] > INT64_MAX ||
		    __builtin_mul_overflow(t->n_elems, t->ne[d], &t->n_elems) ||
		    t->n_elems > INT64_MAX) {
			snprintf(why, sizeof(why),
				 "dimension %" PRIu32 " is %" PRIu64 ", which no tensor can have",
				 d, t->ne[d]);
			return bad_tensor(c, at, why);
		}
	}
	return 0;
}

static int take_type(struct cursor *c, uint64_t at, struct gguf_tensor *t)
{
	const struct quant_type *q;
	char why[160];
	uint64_t row;
	int r;

	r = take_u32(c, "type", &t->type);
	if (r < 0)
		return r;
	q = quant_type(t->type);
	if (!q) {
		snprintf(why, sizeof(why),
			 "type %" PRIu32 " is not known (a newer, very old or damaged file)",
			 t->type);
		return bad_tensor(c, at, why);
	}
	r = quant_row_bytes(t->type, t->ne[0], &row);
	if (r == -EINVAL) {
		snprintf(why, sizeof(why),
			 "rows of %" PRIu64 " are not a multiple of %s's block of %" PRIu32,
			 t->ne[0], q->name, q->block);
		return bad_tensor(c, at, why);
	}
	if (r < 0 || __builtin_mul_overflow(row, t->n_elems / t->ne[0], &t->nbytes))
		return bad_tensor(c, at, "its size in bytes overflows");
	return 0;
}

static int take_tensor(struct cursor *c, struct gguf_tensor *t)
{
	uint64_t at = c->pos;
	struct gguf_str name;
	int r;

	c->kind = NULL;
	r = take_str(c, "name of a tensor", &name);
	if (r < 0)
		return r;
	if (name.n == 0 || name.n >= GGUF_MAX_NAME)
		return err_set(c->err, -EINVAL,
			       "a tensor's name at offset %" PRIu64
			       " has %zu bytes (1 to %d are allowed)",
			       at, name.n, GGUF_MAX_NAME - 1);
	if (memchr(name.s, 0, name.n))
		return err_set(c->err, -EINVAL,
			       "the tensor's name at offset %" PRIu64 " contains a NUL byte", at);
	c->kind = "tensor";
	c->in = quote(name.s, name.n);
	t->name = name.s; /* not terminated yet: copy_names() does that */
	t->part = (uint32_t)name.n; /* lent until then */
	r = take_dims(c, at, t);
	if (r == 0)
		r = take_type(c, at, t);
	if (r == 0)
		r = take_u64(c, "data offset", &t->offset);
	return r;
}

static int copy_names(struct head *h, struct hearth_err *err)
{
	size_t bytes = 0, o = 0;

	for (uint32_t i = 0; i < h->n_tensors; i++)
		bytes += h->tensor[i].part + 1;
	h->names = malloc(bytes ? bytes : 1);
	if (!h->names)
		return err_set(err, -ENOMEM, "no memory for the tensors' names");
	for (uint32_t i = 0; i < h->n_tensors; i++) {
		struct gguf_tensor *t = &h->tensor[i];

		memcpy(h->names + o, t->name, t->part);
		h->names[o + t->part] = 0;
		t->name = h->names + o;
		o += t->part + 1;
		t->part = 0;
	}
	return 0;
}

static int take_directory(struct cursor *c, uint64_t n, struct head *h)
{
	uint64_t cap = 0;
	int r;

	/* The smallest entry: a name of one byte and one dimension. */
	if (n > MAX_TENSORS || n > (c->w->file_size - c->pos) / (8 + 1 + 4 + 8 + 4 + 8))
		return err_set(c->err, -EINVAL,
			       "the header claims %" PRIu64 " tensors, more than %s", n,
			       n > MAX_TENSORS ? "any model has" : "fit into the file");
	while (h->n_tensors < n) {
		if (h->n_tensors == cap) {
			struct gguf_tensor *more;

			cap = cap ? cap * 2 : 256;
			more = realloc(h->tensor, cap * sizeof(*more));
			if (!more)
				return err_set(c->err, -ENOMEM, "no memory for %" PRIu64 " tensors",
					       n);
			h->tensor = more;
		}
		h->tensor[h->n_tensors] = (struct gguf_tensor){ 0 };
		r = take_tensor(c, &h->tensor[h->n_tensors]);
		if (r < 0)
			return r;
		h->n_tensors++;
	}
	return copy_names(h, c->err);
}

/* -- the whole -------------------------------------------------------------- */

static int check_magic(struct cursor *c)
{
	const uint8_t *p = NULL;
	int r;

	if (c->w->file_size == 0)
		return err_set(c->err, -EINVAL, "the file is empty");
	if (c->w->file_size < 4)
		return err_set(c->err, -EINVAL, "not a GGUF file: only %" PRIu64 " bytes",
			       c->w->file_size);
	r = take(c, 4, "magic", &p);
	if (r < 0)
		return r;
	if (memcmp(p, "GGUF", 4) == 0)
		return 0;
	if (memcmp(p, "FUGG", 4) == 0)
		return err_set(c->err, -EINVAL,
			       "a GGUF file in big-endian byte order; only little-endian ones are "
			       "read");
	if (memcmp(p, "lmgg", 4) == 0 || memcmp(p, "tjgg", 4) == 0 || memcmp(p, "fmgg", 4) == 0)
		return err_set(c->err, -EINVAL, "a GGML file from before GGUF; convert it anew");
	return err_set(c->err, -EINVAL, "not a GGUF file: it begins with %02x %02x %02x %02x", p[0],
		       p[1], p[2], p[3]);
}

static int check_version(struct cursor *c, uint32_t v)
{
	if (v == 2 || v == 3)
		return 0;
	if (v == 1)
		return err_set(c->err, -EINVAL,
			       "GGUF version 1 was never in wide use and is not read; convert it "
			       "anew");
	if ((v & 0xffff) == 0)
		return err_set(c->err, -EINVAL,
			       "a GGUF file in big-endian byte order; only little-endian ones are "
			       "read");
	return err_set(c->err, -EINVAL,
		       "GGUF version %" PRIu32 " is newer than 3, the newest that is known here",
		       v);
}

static int parse(struct window *w, struct head *h, struct hearth_err *err)
{
	struct cursor c = { .w = w, .err = err };
	uint64_t n_tensors = 0, n_kv = 0;
	int r;

	r = check_magic(&c);
	if (r == 0)
		r = take_u32(&c, "version", &h->version);
	if (r == 0)
		r = check_version(&c, h->version);
	if (r == 0)
		r = take_u64(&c, "tensor count", &n_tensors);
	if (r == 0)
		r = take_u64(&c, "key count", &n_kv);
	if (r == 0)
		r = take_metadata(&c, n_kv, h);
	if (r == 0)
		r = head_alignment(h, &h->alignment, err);
	c.kind = NULL;
	if (r == 0)
		r = take_directory(&c, n_tensors, h);
	if (r < 0)
		return r;
	h->bytes = c.pos;
	h->data = (c.pos + h->alignment - 1) & ~(h->alignment - 1);
	h->data_end = c.pos;
	h->file_size = w->file_size;
	return head_place(h, err);
}

int head_parse(struct window *w, struct head *ret, struct hearth_err *err)
{
	struct head h = { 0 };
	int r = parse(w, &h, err);

	if (r < 0) {
		head_free(&h);
		h = (struct head){ 0 };
	}
	*ret = h;
	return r;
}

void head_free(struct head *h)
{
	for (uint64_t i = 0; i < h->n_kv; i++)
		free(h->kv[i].str);
	free(h->kv);
	free(h->tensor);
	free(h->names);
	*h = (struct head){ 0 };
}

const struct head_kv *head_find(const struct head *h, const char *key)
{
	size_t n = strlen(key);

	for (uint64_t i = 0; i < h->n_kv; i++)
		if (h->kv[i].key.n == n && memcmp(h->kv[i].key.s, key, n) == 0)
			return &h->kv[i];
	return NULL;
}
