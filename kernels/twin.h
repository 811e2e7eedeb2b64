/* SPDX-License-Identifier: MIT */
/*
 * The C twins of the kernels: the same arguments, host pointers, plain loops
 * with double sums over exactly the values that the kernel reads (int8 or half
 * activations, packed weights). What is left between the two is rounding.
 * hk_pick() has none here: the host's sampler (sample/sampler.h) is its twin.
 */
#ifndef HEARTH_KERNELS_TWIN_H
#define HEARTH_KERNELS_TWIN_H

#include "kernels/kernels.h"

/* @file: the matrices as in the file, one per segment, before packing; @mag
 * (may be NULL) gets sum |w x| of each output, for error bounds. */
void twin_gemv(const struct hk_gemv *a, const void *const file[3], const int file_type[3],
	       float *const mag[3]);
void twin_gemm(const struct hk_gemm *a, const void *const file[3], const int file_type[3],
	       float *const mag[3], float *swiglu /* [n][rows], before halves */);
void twin_raw(const struct hk_raw *a, const void *file, int file_type);
void twin_norm(uint32_t n, uint32_t cols, const float *x, const uint32_t *row, const float *norm,
	       float eps, float *y);
void twin_embed(uint32_t n, const struct hk_step *s, const struct hk_mat *w, const void *file,
		int file_type, const float *inv_freq, uint32_t head_dim, float *x, float *cs);
void twin_rope(const struct hk_step *s, const struct hk_rope *a, float *q);
void twin_attn(const struct hk_step *s, const struct hk_attn *a, float *out);
void twin_swiglu(uint32_t n, uint32_t ff, const float *g, const float *u, float *h);
void twin_kv_copy(const struct hk_kv *kv, uint32_t layers, uint32_t dst, uint32_t src, uint32_t tokens);

#endif
