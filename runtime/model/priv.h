/* SPDX-License-Identifier: MIT */
/* What families share: reading a shape, binding one tensor. */
#ifndef HEARTH_MODEL_PRIV_H
#define HEARTH_MODEL_PRIV_H

#include "gguf/gguf.h"
#include "model/model.h"
#include "model/ops.h"

extern const struct model_family model_qwen2;
extern const struct model_family model_qwen3;

/* The keys that every decoder-only family of this kind has. */
int shape_common(const struct gguf *g, struct model_shape *ret, struct hearth_err *err);

/* token_embd, output_norm, output (or tied). Sets shape.tied. */
int bind_common(const struct gguf *g, struct model *m, struct hearth_err *err);

/* blk.@layer.@name.weight as a [rows, cols] matrix. */
int bind_mat(const struct gguf *g, uint32_t layer, const char *name, uint32_t rows,
	     uint32_t cols, struct mat *ret, struct hearth_err *err);

/* blk.@layer.@name, a float vector of @n. */
int bind_vec(const struct gguf *g, uint32_t layer, const char *name, uint32_t n,
	     const float **ret, struct hearth_err *err);

#endif
