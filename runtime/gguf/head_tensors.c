// SPDX-License-Identifier: MIT
/* The directory of a GGUF file: what tensors there are, and where. */
#include "gguf/head_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/quant.h"

#define MAX_TENSORS (1u << 20)

static int bad_tensor(struct cursor *c, uint64_t at, const char *why)
{
	return err_set(c->err, -EINVAL, "tensor \"%s\" (entry at offset %" PRIu64 "): %s", c->in.s,
		       at, why);
}

static int take_dims(struct cursor *c, uint64_t at, struct gguf_tensor *t)
{
	char why[160];
	int r;

	r = head_take_u32(c, "number of dimensions", &t->n_dims);
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
		r = head_take_u64(c, "dimension", &t->ne[d]);
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

	r = head_take_u32(c, "type", &t->type);
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
	r = head_take_str(c, "name of a tensor", &name);
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
		r = head_take_u64(c, "data offset", &t->offset);
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

int head_take_tensors(struct cursor *c, uint64_t n, struct head *h)
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
