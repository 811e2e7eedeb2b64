// SPDX-License-Identifier: MIT
/* The head of a GGUF file: its beginning, and the bytes that its parts take. */
#include "gguf/head_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "GGUF is read in place, little-endian");

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

int head_short(struct cursor *c, uint64_t n, const char *what)
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
int head_take(struct cursor *c, uint64_t n, const char *what, const uint8_t **ret)
{
	int r;

	if (n > c->w->file_size - c->pos)
		return head_short(c, n, what);
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

int head_take_u32(struct cursor *c, const char *what, uint32_t *ret)
{
	const uint8_t *p = NULL;
	int r = head_take(c, 4, what, &p);

	if (r == 0)
		memcpy(ret, p, 4);
	return r;
}

int head_take_u64(struct cursor *c, const char *what, uint64_t *ret)
{
	const uint8_t *p = NULL;
	int r = head_take(c, 8, what, &p);

	if (r == 0)
		memcpy(ret, p, 8);
	return r;
}

int head_take_str(struct cursor *c, const char *what, struct gguf_str *ret)
{
	const uint8_t *p = NULL;
	uint64_t n = 0;
	int r;

	r = head_take_u64(c, what, &n);
	if (r < 0)
		return r;
	r = head_take(c, n, what, &p);
	if (r < 0)
		return r;
	ret->s = (const char *)p;
	ret->n = (size_t)n;
	return 0;
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
	r = head_take(c, 4, "magic", &p);
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
		r = head_take_u32(&c, "version", &h->version);
	if (r == 0)
		r = check_version(&c, h->version);
	if (r == 0)
		r = head_take_u64(&c, "tensor count", &n_tensors);
	if (r == 0)
		r = head_take_u64(&c, "key count", &n_kv);
	if (r == 0)
		r = head_take_keys(&c, n_kv, h);
	if (r == 0)
		r = head_alignment(h, &h->alignment, err);
	c.kind = NULL;
	if (r == 0)
		r = head_take_tensors(&c, n_tensors, h);
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
