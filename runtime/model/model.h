/* SPDX-License-Identifier: MIT */
/*
 * A language model as the engine sees it: its shape, read once from the GGUF
 * metadata and checked, and pointers to its weights, bound once by name and
 * checked against that shape. After model_bind() nobody looks a tensor up
 * again.
 *
 * A family (qwen3, qwen2, ...) is one file: what it expects of the metadata,
 * which tensors it binds, and its forward pass, which reads top to bottom over
 * the operations of model/ops.h. A backend may run a whole step its own way
 * (struct ops .forward); it then switches on model->family->id.
 */
#ifndef HEARTH_MODEL_MODEL_H
#define HEARTH_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct gguf;
struct ops;
struct ops_ctx;
struct batch;
struct model;

enum model_family_id {
	MODEL_QWEN3,
	MODEL_QWEN2,
};

/* One weight matrix, y[rows] = W[rows, cols] x[cols]. GGUF order: a row is
 * cols weights, contiguous, in blocks of the type. */
struct mat {
	const char *name;    /* GGUF tensor name, for sentences */
	int type;            /* ggml type id (gguf/quant.h) */
	int layout;          /* 0 as in the file; else set by ops->pack */
	uint32_t rows, cols;
	size_t row_bytes;    /* bytes of one row in the file's layout */
	size_t bytes;        /* rows * row_bytes */
	void *data;          /* in the weights region; address space of the backend */
	void *priv;          /* the backend's own, NULL at bind */
};

struct model_layer {
	const float *attn_norm;        /* [d] */
	struct mat q, k, v;            /* [heads*head_dim, d] [kv_heads*head_dim, d] x2 */
	const float *q_bias, *k_bias, *v_bias;   /* [rows] or NULL */
	const float *q_norm, *k_norm;  /* [head_dim] or NULL */
	struct mat o;                  /* [d, heads*head_dim] */
	const float *ffn_norm;         /* [d] */
	struct mat gate, up;           /* [ff, d] */
	struct mat down;               /* [d, ff] */
};

struct model_shape {
	uint32_t layers;
	uint32_t d;            /* width of the residual stream */
	uint32_t ff;           /* width of the MLP */
	uint32_t heads, kv_heads, head_dim;
	uint32_t vocab;        /* rows of the embedding, and of the logits */
	uint32_t ctx_train;    /* context the file was trained for */
	float eps;             /* of every RMS norm */
	float rope_base;       /* NEOX rotation over the whole head_dim */
	bool tied;             /* the head is the embedding */
	uint64_t types;        /* bit for each ggml type that a matrix has */
	bool ragged;           /* some matrix has rows that are no multiple of 16 */
};

struct model_family {
	enum model_family_id id;
	const char *arch;      /* general.architecture */
	const char *const *layer_tensors;   /* "attn_q.weight", ..., NULL: all of a layer */
	/* Metadata to shape: refuses what is missing, absurd or not understood. */
	int (*shape)(const struct gguf *g, struct model_shape *ret, struct hearth_err *err);
	/* Tensors to pointers; layer[] has shape.layers entries. */
	int (*bind)(const struct gguf *g, struct model *m, struct hearth_err *err);
	/* One step over the ops, for backends without their own forward. */
	int (*forward)(struct ops_ctx *c, const struct batch *b, struct hearth_err *err);
};

struct model {
	const struct model_family *family;
	struct model_shape shape;
	struct mat embd;            /* [vocab, d] */
	const float *out_norm;      /* [d] */
	struct mat head;            /* [vocab, d]; equals embd when tied */
	struct model_layer *layer;  /* [layers] */
	size_t host_bytes;          /* heap taken by this struct and layer[] */
};

/*
 * Shape alone, from metadata: enough for the memory plan, before any weight is
 * read. -ENOTSUP and a sentence for an architecture that is not known.
 */
int model_shape_read(const struct gguf *g, const struct model_family **ret_family,
		     struct model_shape *ret, struct hearth_err *err);

/*
 * Binds every tensor of @g. A missing tensor, a wrong shape, a type no kernel
 * knows, or a tensor that the family does not use is refused by name.
 */
int model_bind(const struct gguf *g, struct model **ret, struct hearth_err *err);
void model_free(struct model *m);

/* Every matrix once (the tied head is not visited twice). Stops at non-zero. */
int model_each_mat(struct model *m, int (*fn)(struct mat *w, void *arg), void *arg);

#endif
