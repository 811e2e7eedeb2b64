/* SPDX-License-Identifier: MIT */
/* From rows as they stand in a GGUF file to tiles (tile.h), in place. */
#ifndef HEARTH_KERNELS_PACK_H
#define HEARTH_KERNELS_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * Whether the tile kernels read this type at this row length: the listed types,
 * and whole units (cols % 256 for K types, cols % 64 for the others). A last
 * rows % 16 rows stay as in the file; kernels read those one by one.
 */
bool pack_can(int type, uint32_t cols);
/* Bytes of one file row; 0 for a type that no kernel reads. */
size_t pack_row_bytes(int type, uint32_t cols);
size_t pack_tmp_bytes(int type, uint32_t cols);   /* 16 file rows */

/*
 * Reorders @rows rows at @data, 16 at a time; @tmp has pack_tmp_bytes(). BF16
 * becomes F16 (bits of weight that F16 lacks round; a value beyond its range is
 * refused: -ERANGE, and @data is spoilt). *ret_type is what the kernels see.
 */
int pack_tiles(int type, uint32_t rows, uint32_t cols, void *data, void *tmp,
	       int *ret_type, struct hearth_err *err);

/* One row back to float: what the kernels read. For tests and the C twins. */
int pack_row_f32(int type, uint32_t rows, uint32_t cols, const void *data, uint32_t row,
		 float *dst);

#endif
