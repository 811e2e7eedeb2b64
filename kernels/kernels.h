/* SPDX-License-Identifier: MIT */
/*
 * The kernels as C sees them: one launcher per operation. All pointers are
 * device pointers unless said otherwise; @st is a stream (cudaStream_t). A
 * launcher only checks, picks a shape and launches: 0, -EINVAL for a shape, an
 * alignment or a type that it does not take (nothing was launched), else what
 * hk_dev_error() has a sentence about, when CUDA refused the launch.
 *
 * Each has a plain C twin in kernels/twin.c with the same arguments on host
 * pointers, and the tolerance between the two stands in the tests.
 */
#ifndef HEARTH_KERNELS_KERNELS_H
#define HEARTH_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HK_GEMV_MAX 4u    /* tokens of the dp4a route */
#define HK_ROPE_MAX 64u   /* rows of a step whose rotation attention does */
#define HK_HEAD_MAX 256u  /* head_dim 64, 128, 256 */
#define HK_SMEM_MAX (163u * 1024)  /* shared memory that a block may ask for: what SM 8.0 and 8.7 have */
#define HK_SM_MIN 8       /* mma.m16n8k16 and cp.async */

/* A matrix in device memory. @packed: rows / 16 tiles (tile.h), then rows % 16
 * rows as in the file; else all as in the file. */
struct hk_mat {
	const void *w;
	int type;             /* what the kernels see: BF16 has become F16 */
	int packed;
	uint32_t rows, cols;
	size_t row_bytes;     /* of the file */
};

enum hk_mode {
	HK_STORE,    /* y = W x + bias */
	HK_ADD,      /* y += W x */
	HK_SWIGLU,   /* y = silu(W0 x) * (W1 x), seg[0] and seg[1] of equal shape and type */
};

struct hk_seg {
	struct hk_mat w;
	const float *bias;    /* [rows] or NULL */
	float *y;             /* [n][ldy], from its first row on */
	uint32_t ldy;
};

struct hk_dev_info {
	char name[64];
	int major, minor, sms;
	bool integrated, host_register, host_register_ro, pdl;
	int driver, runtime;
	size_t mem_total, mem_free;
	size_t smem;          /* shared memory that a block can have */
	bool code;            /* this build has machine code for it, or PTX that fits */
};

/* Bytes of one row of @cols activations as int8 with a scale per 16, in the
 * GEMV's order (gemv.cuh). Buffers of them are zeroed once. */
static inline size_t hk_q8_bytes(uint32_t cols)
{
	return (size_t)((cols + 255) / 256) * 384;
}

/*
 * y = W rmsnorm(x), 1 to 4 tokens, activations quantised to int8 per 16 in
 * shared memory, dp4a. Up to three matrices that share x in one launch. Bytes:
 * the matrices once. Packed matrices only, not F16.
 */
struct hk_gemv {
	uint32_t n, cols;
	const float *x;           /* [.][ldx], 16-byte aligned, ldx % 4 == 0 */
	uint32_t ldx;
	const uint32_t *row;      /* [n] rows of x, or NULL: 0 .. n-1 */
	const float *norm;        /* [cols], or NULL: x as it is */
	float eps;
	const void *q8;           /* instead of x: rows of hk_q8_bytes(cols) */
	void *q8_out;             /* HK_SWIGLU: the result so, instead of y */
	enum hk_mode mode;
	uint32_t nseg;
	struct hk_seg seg[3];
};
extern uint32_t hk_gemv_blocks;   /* an SM */
int hk_gemv(void *st, const struct hk_dev_info *d, const struct hk_gemv *a);

/*
 * The same for many tokens on half tensor cores: activations are halves in
 * fragment order (act_pos), weights become halves in registers. One launch per
 * type; where the machine would idle, k is cut and summed in a fixed order
 * through @partial. Every half of the buffer must be a number, padding too
 * (zero it once).
 */
struct hk_gemm {
	uint32_t n, cols;
	const void *act;          /* act_pos order, groups as below, 16-byte aligned */
	uint32_t groups;          /* 8-token groups of the buffer; n <= 8 * groups */
	const float *act_scale;   /* [n] factor per token, or NULL */
	float scale;              /* factor for all */
	enum hk_mode mode;
	uint32_t nseg;            /* 1 .. 3, all of one type */
	struct hk_seg seg[3];
	void *act_out;            /* HK_SWIGLU: halves in act_pos order, times act_out_scale */
	uint32_t groups_out;
	float act_out_scale;
	bool free;                /* gemm_free.cuh and gemm_wide.cuh where they can; more than 64 tokens may mix Q4_K and Q6_K then */
	float *partial;           /* hk_gemm_partial() floats, or NULL: no splitting */
	size_t partial_floats;
	uint32_t *count;          /* zeroed once; hk_gemm_counts() */
	/*
	 * Or, not for SwiGLU: the parts of k stay apart, for the kernel that reads
	 * them to add up (hk_norm(), hk_rope()). Part p of y[n][ldy] lies at y +
	 * p * apart, the bias in the first, nothing is added to; as many as fit
	 * into partial_floats from y on.
	 */
	size_t apart;
	uint32_t *ret_parts;
};
/* Tokens per block of the kernel that n tokens get: buffers are padded to it. */
uint32_t hk_gemm_nb(uint32_t n);
/* for measuring: tiles of a warp of gemm_wide.cuh (1: it does nothing up to 64 tokens) and its parts of k; 0: as chosen */
extern uint32_t hk_wide_tiles, hk_wide_splits;
#define HK_GEMM_COUNTS 4096u
/* Does SwiGLU of @rows rows occupy @sms SMs with all of k in a block? */
static inline bool hk_gemm_fills(uint32_t sms, uint32_t rows)
{
	return (rows / 16 + 4) / 5 * 5 >= sms * 4;
}
int hk_gemm(void *st, const struct hk_dev_info *d, const struct hk_gemm *a);

/* y[n, rows] (+)= W x in float for matrices or rest rows in file order. Slow. */
struct hk_raw {
	uint32_t n;
	const float *x;
	uint32_t ldx;
	const uint32_t *row;
	const float *norm;
	float eps;
	enum hk_mode mode;        /* HK_STORE, HK_ADD */
	struct hk_seg seg;
	uint32_t row0;            /* rows row0 .. seg.w.rows-1 */
};
int hk_raw(void *st, const struct hk_raw *a);
/* h = silu(g) * u over n rows of ff, for the routes that do not fold it in. */
int hk_swiglu(void *st, uint32_t n, uint32_t ff, const float *g, const float *u, float *h);

/*
 * What a step is about, in device memory; written by the host once per step.
 * Rows beyond @n (a padded graph) belong to no sequence.
 */
struct hk_seq {
	uint32_t first, n, pos0, page0;   /* page0: index into hk_step.page */
};
struct hk_tile {       /* 16-byte aligned */
	uint32_t seq;      /* ~0: nothing to do */
	uint32_t m0, m;    /* rows m0 .. m0+m-1 of the sequence's n * group query rows */
	uint32_t splits;   /* parts that the keys are cut into */
	struct hk_seq of;  /* that sequence, which saves a load that would wait for this one */
};
struct hk_step {
	uint32_t n, n_seq, n_tile, n_out;
	const int32_t *token;         /* [cap] */
	const uint32_t *row_seq;      /* [cap], ~0 beyond n */
	const uint32_t *row_pos;      /* [cap] */
	const uint32_t *out;          /* [cap_out] */
	const struct hk_seq *seq;
	const struct hk_tile *tile;
	const uint32_t *page;
};

/* x[n, d] = embedding; cs[n, head_dim/2] = cos, sin of the rotation. */
int hk_embed(void *st, uint32_t n, const struct hk_step *s, const struct hk_mat *embd,
	     const float *inv_freq, uint32_t head_dim, float *x, float *cs);

/* Parts of a product that were left apart: part p of [n][cols] at part + p * stride. */
struct hk_parts {
	const float *part;
	uint32_t parts;      /* 0: none */
	size_t stride;
};

/*
 * rmsnorm to halves in fragment order: act = norm(x) / act_scale, act_scale a
 * power of two that keeps a row inside F16's range. @norm NULL: x as it is.
 * With @add (and no @row) x += its parts first.
 */
int hk_norm(void *st, uint32_t n, uint32_t cols, float *x, const uint32_t *row,
	    const float *norm, float eps, void *act, uint32_t groups, float *act_scale,
	    const struct hk_parts *add);

/* The KV pool as the kernels see it (cache/kv.h). */
struct hk_kv {
	void *base;
	size_t page_bytes, head_bytes;
	uint32_t kv_heads, head_dim;
	int f16;                      /* 0: int8 with a half scale per 32 */
};

/*
 * Per head: norm, rotation, then q as halves times 1/sqrt(head_dim)*log2(e),
 * and k, v into the pages. qkv[n, (heads + 2 kv_heads) * head_dim].
 */
struct hk_rope {
	uint32_t n, heads, layer;
	const float *qkv;
	uint32_t parts[3];            /* of q, of k, of v (hk_gemm.apart), 0 as 1 */
	size_t stride;
	const float *q_norm, *k_norm;
	float eps;
	const float *cs;
	void *q;                      /* [n, heads, head_dim] halves */
	struct hk_kv kv;
};
int hk_rope(void *st, const struct hk_step *s, const struct hk_rope *a);

/*
 * Causal attention over pages; query rows of the heads that share a kv head
 * are one tile of 16. Output float [n, heads * head_dim], or halves in
 * fragment order.
 */
struct hk_attn {
	uint32_t n, heads, layer;
	uint32_t tiles, splits;       /* upper bounds: the launch's shape */
	const void *q;
	/* Instead of q: what hk_rope() would do, in the same launch, for up to
	 * HK_ROPE_MAX rows; each tile of a sequence then turns its keys again. */
	const struct hk_rope *rope;
	struct hk_kv kv;
	float *out;                   /* or NULL */
	void *q8;                     /* rows for the GEMV, or NULL */
	void *act;                    /* halves for the GEMM */
	uint32_t groups;
	float *partial;               /* hk_attn_partial() floats when splits > 1 */
	uint32_t *count;              /* kv_heads * tiles, zeroed once */
};
size_t hk_attn_partial(uint32_t kv_heads, uint32_t tiles, uint32_t splits, uint32_t head_dim);
int hk_attn(void *st, const struct hk_dev_info *d, const struct hk_step *s,
	    const struct hk_attn *a);

/* First @tokens tokens of page src to page dst, all layers. */
int hk_kv_copy(void *st, const struct hk_kv *kv, uint32_t layers, uint32_t dst, uint32_t src,
	       uint32_t tokens);

/*
 * Sampling, one row a block. In @p the pointers are device pointers (or 0).
 * ret[row]: token, or -1: no token allowed, -2: NaN, -3: the choice needs more
 * than HK_PICK_CAND candidates (the host must do it).
 */
#define HK_PICK_CAND 1024u
struct hk_pick {
	uint32_t row, top_k, n_recent, recent0, mask0, has_mask;
	float temp, top_p, min_p, rep_pen, freq_pen, pres_pen;
	double u;
};
int hk_pick(void *st, uint32_t n, uint32_t vocab, const float *logits, const struct hk_pick *p,
	    const int32_t *recent, const uint32_t *mask, float *work, int32_t *ret);

/* -- the device (kernels/device.cu; the emulation brings its own) ----------------- */

/*
 * Of what fails here and in the launchers: -ENOMEM; -ENODEV, the process has lost its
 * context and nothing will run again (the sentence ends in HK_LOST); else -EIO.
 */
#define HK_LOST "the GPU's context is lost: the process must start anew"
/* A sentence about the last failed CUDA call; the error itself is cleared. */
const char *hk_dev_error(void);
/* 0; -ENODEV no GPU or driver; -ENOTSUP the kernels cannot run there. hk_dev_error() says which. */
int hk_dev_probe(int index, struct hk_dev_info *ret);
/* The second half of it (kernels/served.c): whether the kernels can run on @d, or -ENOTSUP and why. */
int hk_dev_served(const struct hk_dev_info *d, char *why, size_t size);
int hk_dev_open(int index);
int hk_dev_mem(size_t *ret_free, size_t *ret_total);
int hk_dev_alloc(size_t bytes, void **ret);
void hk_dev_free(void *p);
int hk_host_alloc(size_t bytes, void **ret);          /* pinned */
void hk_host_free(void *p);
int hk_host_register(void *p, size_t bytes, bool read_only, void **ret_dev);
void hk_host_unregister(void *p);
int hk_stream_open(void **ret);                        /* lowest priority */
int hk_stream_open_urgent(void **ret);                 /* highest: as speech would have, for measuring */
void hk_stream_close(void *st);
int hk_stream_sync(void *st);
int hk_copy_in(void *st, void *dev, const void *host, size_t bytes);    /* async */
int hk_copy_out(void *st, void *host, const void *dev, size_t bytes);   /* async */
int hk_fill(void *st, void *dev, int byte, size_t bytes);
int hk_dev_copy(void *st, void *dst, const void *src, size_t bytes);    /* within the device */
int hk_read_speed(void *st, const struct hk_dev_info *d, void *p, size_t bytes);
int hk_capture_begin(void *st);
int hk_capture_end(void *st, void **ret_graph);
int hk_graph_launch(void *st, void *graph);
int hk_graph_upload(void *st, void *graph);    /* what its first launch would allocate */
void hk_graph_free(void *graph);
int hk_event_time(void *st, int which, float *ret_ms);  /* 0: start, 1: stop, 2: read */

#ifdef __cplusplus
}
#endif
#endif
