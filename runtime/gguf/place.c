// SPDX-License-Identifier: MIT
/* Where in its file each tensor is, and that this can be. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/head.h"

static int by_offset(const void *a, const void *b)
{
	const struct gguf_tensor *x = *(const struct gguf_tensor *const *)a;
	const struct gguf_tensor *y = *(const struct gguf_tensor *const *)b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int by_name(const void *a, const void *b)
{
	const struct gguf_tensor *x = *(const struct gguf_tensor *const *)a;
	const struct gguf_tensor *y = *(const struct gguf_tensor *const *)b;

	return strcmp(x->name, y->name);
}

static int place(struct head *h, struct gguf_tensor *t, struct hearth_err *err)
{
	struct quoted name = quote(t->name, strlen(t->name));
	uint64_t rel = t->offset, end;

	if (rel % h->alignment)
		return err_set(err, -EINVAL,
			       "tensor \"%s\": its data offset %" PRIu64
			       " is not a multiple of %" PRIu64,
			       name.s, rel, h->alignment);
	if (__builtin_add_overflow(h->data, rel, &t->offset) ||
	    __builtin_add_overflow(t->offset, t->nbytes, &end))
		return err_set(err, -EINVAL,
			       "tensor \"%s\": data offset %" PRIu64 " is beyond any file", name.s,
			       rel);
	if (end > h->file_size)
		return err_set(err, -EINVAL,
			       "tensor \"%s\" is at offset %" PRIu64 " and has %" PRIu64
			       " bytes, but the file ends at %" PRIu64 " (cut off: %" PRIu64
			       " bytes are missing here)",
			       name.s, t->offset, t->nbytes, h->file_size, end - h->file_size);
	return 0;
}

static int check_order(struct head *h, const struct gguf_tensor **order, struct hearth_err *err)
{
	for (uint32_t i = 0; i < h->n_tensors; i++)
		order[i] = &h->tensor[i];
	qsort(order, h->n_tensors, sizeof(*order), by_name);
	for (uint32_t i = 1; i < h->n_tensors; i++)
		if (strcmp(order[i - 1]->name, order[i]->name) == 0)
			return err_set(err, -EINVAL,
				       "tensor \"%s\" is there twice, at offsets %" PRIu64
				       " and %" PRIu64,
				       quote(order[i]->name, strlen(order[i]->name)).s,
				       order[i - 1]->offset, order[i]->offset);
	qsort(order, h->n_tensors, sizeof(*order), by_offset);
	for (uint32_t i = 1; i < h->n_tensors; i++)
		if (order[i - 1]->offset + order[i - 1]->nbytes > order[i]->offset)
			return err_set(err, -EINVAL,
				       "tensors \"%s\" and \"%s\" overlap at offset %" PRIu64,
				       quote(order[i - 1]->name, strlen(order[i - 1]->name)).s,
				       quote(order[i]->name, strlen(order[i]->name)).s,
				       order[i]->offset);
	h->data_end = order[h->n_tensors - 1]->offset + order[h->n_tensors - 1]->nbytes;
	return 0;
}

static int check_places(struct head *h, struct hearth_err *err)
{
	const struct gguf_tensor **order;
	int r;

	for (uint32_t i = 0; i < h->n_tensors; i++) {
		r = place(h, &h->tensor[i], err);
		if (r < 0)
			return r;
	}
	order = malloc(h->n_tensors * sizeof(*order));
	if (!order)
		return err_set(err, -ENOMEM, "no memory for the tensor directory");
	r = check_order(h, order, err);
	free(order);
	return r;
}

static int no_tail(const struct head *h, struct hearth_err *err)
{
	uint64_t end = (h->data_end + h->alignment - 1) & ~(h->alignment - 1);

	/* A vocabulary-only file ends with its header. */
	if (h->file_size <= end)
		return 0;
	return err_set(err, -EINVAL,
		       "the model ends at offset %" PRIu64 ", but the file goes on for %" PRIu64
		       " bytes (files joined with cat, or damaged; parts of a split model must "
		       "stay apart)",
		       end, h->file_size - end);
}

int head_alignment(const struct head *h, uint64_t *ret, struct hearth_err *err)
{
	const struct head_kv *kv = head_find(h, "general.alignment");
	uint32_t a;

	if (!kv) {
		*ret = 32;
		return 0;
	}
	if (kv->type != GGUF_U32)
		return err_set(err, -EINVAL,
			       "general.alignment is a %s, not a u32 (offset %" PRIu64 ")",
			       gguf_value_type_name(kv->type), kv->at);
	memcpy(&a, kv->val, 4);
	if (a < 8 || a > (1u << 20) || (a & (a - 1)))
		return err_set(err, -EINVAL,
			       "general.alignment is %" PRIu32
			       ", not a power of two from 8 to 1048576 (offset %" PRIu64 ")",
			       a, kv->at);
	*ret = a;
	return 0;
}

int head_place(struct head *h, struct hearth_err *err)
{
	int r = h->n_tensors ? check_places(h, err) : 0;

	return r < 0 ? r : no_tail(h, err);
}
