/* SPDX-License-Identifier: MIT */
/*
 * A GGUF file, versions 2 and 3: its metadata and its tensor directory.
 *
 * gguf_open() reads the header and nothing else, and believes none of it:
 * every count, length, offset, name and size is checked against the file
 * before it is used, so a file that opens can be loaded and walked without
 * further checks. What is wrong is said in one sentence, with the tensor or
 * key and its offset in the file. A model cut into several files is opened by
 * the name of any one of them; the parts are found and joined here.
 *
 * Tensor data arrives with load.h, which sets `data`.
 *
 * Everything returned by a getter belongs to the gguf and lives until
 * gguf_close().
 */
#ifndef HEARTH_GGUF_GGUF_H
#define HEARTH_GGUF_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define GGUF_MAX_DIMS  4
#define GGUF_MAX_NAME  64           /* bytes of a tensor's name, NUL included */
#define GGUF_MAX_KEY   65535        /* bytes of a metadata key */
#define GGUF_MAX_HEAD  (256ull << 20) /* bytes of metadata and directory */
#define GGUF_MAX_PARTS 9999

enum gguf_value_type {
	GGUF_U8 = 0, GGUF_I8 = 1, GGUF_U16 = 2, GGUF_I16 = 3, GGUF_U32 = 4,
	GGUF_I32 = 5, GGUF_F32 = 6, GGUF_BOOL = 7, GGUF_STR = 8, GGUF_ARR = 9,
	GGUF_U64 = 10, GGUF_I64 = 11, GGUF_F64 = 12,
	GGUF_VALUE_TYPES
};

struct gguf;

struct gguf_str {
	const char *s;           /* not NUL-terminated; any bytes */
	size_t n;
};

struct gguf_tensor {
	const char *name;        /* unique, NUL-terminated */
	uint32_t type;           /* enum quant_id, quant.h */
	uint32_t n_dims;         /* 1..4 */
	uint64_t ne[GGUF_MAX_DIMS]; /* ne[0] = row length; unused ones are 1 */
	uint64_t n_elems;        /* product of ne */
	uint64_t nbytes;         /* of its data */
	uint64_t offset;         /* in its part's file, from byte 0 */
	uint32_t part;           /* which file of a split model */
	const void *data;        /* NULL until loaded */
};

struct gguf_array {
	enum gguf_value_type type; /* of the elements; never GGUF_ARR */
	uint64_t n;
	const void *data;          /* packed little-endian, maybe unaligned; NULL for strings */
	const struct gguf_str *str;/* [n] when type is GGUF_STR, else NULL */
};

/* Opens @path (or any part of a split model). */
int gguf_open(const char *path, struct gguf **ret, struct hearth_err *err);

/*
 * Parses a header that is in memory: @head is the first @n bytes of a file of
 * @file_size bytes. Nothing is copied except the directory: @head must outlive
 * the result. For tests and fuzzing, and for files that are not on a disk.
 */
int gguf_parse(const void *head, size_t n, uint64_t file_size, struct gguf **ret,
	       struct hearth_err *err);

void gguf_close(struct gguf *g); /* NULL is fine */

/* -- the file ------------------------------------------------------------- */
uint32_t gguf_version(const struct gguf *g);
uint32_t gguf_n_parts(const struct gguf *g);
const char *gguf_part_path(const struct gguf *g, uint32_t part); /* NULL when parsed from memory */
uint64_t gguf_part_size(const struct gguf *g, uint32_t part);    /* bytes of the file */
uint64_t gguf_part_data(const struct gguf *g, uint32_t part); /* offset of its first tensor byte */
uint64_t gguf_part_data_end(const struct gguf *g, uint32_t part); /* end of its last tensor */
uint64_t gguf_data_bytes(const struct gguf *g); /* of all tensors together */
/* Memory that the open file takes: header, directory, tables. */
uint64_t gguf_host_bytes(const struct gguf *g);
const char *gguf_arch(const struct gguf *g);    /* general.architecture; never NULL */

/* -- tensors -------------------------------------------------------------- */
uint32_t gguf_n_tensors(const struct gguf *g);
struct gguf_tensor *gguf_tensor_at(const struct gguf *g, uint32_t i);
struct gguf_tensor *gguf_tensor(const struct gguf *g, const char *name); /* NULL when absent */

/*
 * The tensor @name with exactly the shape ne[0..n_dims-1], or a sentence that
 * names it, its shape and the expected one (-ENOENT absent, -EINVAL shape).
 * @ret is untouched on failure.
 */
int gguf_need(const struct gguf *g, const char *name, uint32_t n_dims, const uint64_t *ne,
	      struct gguf_tensor **ret, struct hearth_err *err);

/* -- metadata --------------------------------------------------------------
 * -ENOENT when the key is absent (no sentence is needed for an optional key:
 * pass err = NULL), -EINVAL when the value has another type, -ERANGE when it
 * does not fit. Outputs are untouched on failure. A key that begins with "."
 * is looked up under the architecture: ".block_count" is "qwen3.block_count".
 */
uint64_t gguf_n_keys(const struct gguf *g);
bool gguf_key_at(const struct gguf *g, uint64_t i, struct gguf_str *ret_key,
		 enum gguf_value_type *ret_type); /* false past the end */
bool gguf_has(const struct gguf *g, const char *key);
int gguf_u64(const struct gguf *g, const char *key, uint64_t *ret, struct hearth_err *err);
int gguf_u32(const struct gguf *g, const char *key, uint32_t *ret, struct hearth_err *err);
int gguf_i64(const struct gguf *g, const char *key, int64_t *ret, struct hearth_err *err);
int gguf_f64(const struct gguf *g, const char *key, double *ret, struct hearth_err *err);
int gguf_f32(const struct gguf *g, const char *key, float *ret, struct hearth_err *err);
int gguf_bool(const struct gguf *g, const char *key, bool *ret, struct hearth_err *err);
int gguf_str(const struct gguf *g, const char *key, struct gguf_str *ret, struct hearth_err *err);
int gguf_arr(const struct gguf *g, const char *key, struct gguf_array *ret, struct hearth_err *err);

/*
 * A value that is one number for all layers or an array of one per layer
 * (head_count_kv, feed_forward_length): fills ret[0..n-1] either way; an array
 * of another length is -EINVAL.
 */
int gguf_u32_each(const struct gguf *g, const char *key, uint32_t n, uint32_t *ret,
		  struct hearth_err *err);

/* Element @i of a numeric array, as integer / as double; false when it is not one. */
bool gguf_arr_i64(const struct gguf_array *a, uint64_t i, int64_t *ret);
bool gguf_arr_f64(const struct gguf_array *a, uint64_t i, double *ret);

const char *gguf_value_type_name(uint32_t type); /* "u32", ...; "?" when unknown */

#endif
