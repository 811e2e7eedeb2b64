/* SPDX-License-Identifier: MIT */
/*
 * YAML files that people write (homes, budgets, configuration), over libyaml,
 * with every complaint carrying file, line and column. JSON is YAML, so a JSON
 * file loads too. A key given twice, a tag, an alias to a container or a
 * second document is refused: nothing is guessed and nothing is overwritten.
 *
 * A reader of a mapping takes the keys it knows and then calls
 * yaml_no_other_keys(), so that a misspelt key is never silently ignored.
 */
#ifndef HEARTH_BASE_YAML_H
#define HEARTH_BASE_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define YAML_MAX_BYTES (4u << 20)

struct yaml;                      /* one loaded file */
typedef int yaml_node;            /* 0: absent */

/*
 * @name is what messages call the file. -ENOENT, -EACCES, ...: it cannot be
 * read; -EFBIG: over YAML_MAX_BYTES; -EINVAL: not YAML, or refused as above.
 */
int yaml_load_file(const char *path, struct yaml **ret, struct hearth_err *err);
int yaml_load_text(const char *name, const char *text, size_t len, struct yaml **ret, struct hearth_err *err);
void yaml_close(struct yaml *y);   /* NULL is fine */

yaml_node yaml_root(const struct yaml *y);    /* 0 for an empty file */
bool yaml_is_map(const struct yaml *y, yaml_node n);
bool yaml_is_seq(const struct yaml *y, yaml_node n);
bool yaml_is_scalar(const struct yaml *y, yaml_node n);
bool yaml_is_null(const struct yaml *y, yaml_node n);     /* null, ~ or nothing, unquoted */
bool yaml_is_quoted(const struct yaml *y, yaml_node n);

yaml_node yaml_get(const struct yaml *y, yaml_node map, const char *key);
size_t yaml_len(const struct yaml *y, yaml_node n);       /* items, or pairs */
yaml_node yaml_item(const struct yaml *y, yaml_node seq, size_t i);
yaml_node yaml_key(const struct yaml *y, yaml_node map, size_t i);
yaml_node yaml_value(const struct yaml *y, yaml_node map, size_t i);
/* Text of a scalar (owned by @y; may hold no NUL: such a file is refused), or NULL. */
const char *yaml_text(const struct yaml *y, yaml_node n);

/* "FILE line L, column C: " and the sentence; returns @code. */
int yaml_refuse(const struct yaml *y, yaml_node n, int code, struct hearth_err *err, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* -EINVAL naming the first key of @map that is not in the NULL-terminated @known. */
int yaml_no_other_keys(const struct yaml *y, yaml_node map, const char *const *known, struct hearth_err *err);

/*
 * Typed values of @key in @map. An absent (or null) key leaves *ret alone and
 * returns 0; a value of another type or out of range is -EINVAL.
 */
int yaml_get_str(const struct yaml *y, yaml_node map, const char *key, const char **ret, struct hearth_err *err);
int yaml_get_int(const struct yaml *y, yaml_node map, const char *key, int64_t min, int64_t max, int64_t *ret,
		 struct hearth_err *err);
int yaml_get_num(const struct yaml *y, yaml_node map, const char *key, double min, double max, double *ret,
		 struct hearth_err *err);
int yaml_get_bool(const struct yaml *y, yaml_node map, const char *key, bool *ret, struct hearth_err *err);
/* Bytes: a number, or with K, M, G, T (also KiB, MiB, GiB, TiB; powers of 1024) or B. */
int yaml_get_bytes(const struct yaml *y, yaml_node map, const char *key, uint64_t *ret, struct hearth_err *err);

#endif
