/* SPDX-License-Identifier: MIT */
/* Random matrices of every type, on the device and as the file would hold them. */
#ifndef HEARTH_TESTS_KERNELS_H
#define HEARTH_TESTS_KERNELS_H

#include <errno.h>

#include "gguf/quant.h"
#include "kernels/pack.h"
#include "kernels/step.h"
#include "kernels/tile.h"
#include "kernels/twin.h"
#include "tests/gpu/gpu.h"

#define N_TYPES 10
extern const int TYPES[N_TYPES];
/* Types of files that no kernel reads, and numbers that are no type. */
#define N_OTHER 9
extern const int OTHER_TYPES[N_OTHER];

/* A matrix on the device, packed or not, and its bytes as in a file. */
struct tmat { uint8_t *file; struct hk_mat m; int file_type; void *dev; };

/* All bits random, but scales of a sensible size. */
uint8_t *random_mat(int type, uint32_t rows, uint32_t cols, size_t *ret_bytes);
/* @file becomes its own. */
struct tmat pack_mat(int type, uint32_t rows, uint32_t cols, uint8_t *file, size_t bytes);
struct tmat make_mat(int type, uint32_t rows, uint32_t cols, bool pack);
void drop_mat(struct tmat *t);
float *random_x(size_t n, float scale);
/* Largest |a - b| in units of the allowed error; NaN counts as infinite. */
double worst(const float *a, const float *b, const float *mag, size_t n, double tol);

/* A step: sequences over pages. */
struct tstep {
	struct step_cap cap;
	void *host, *dev;
	struct hk_step h, d;
	uint32_t n, n_pad, tiles, pages;
	struct step_seq seq[8];
	uint32_t *table[8];
	int32_t token[1024];
};

/* n[i] tokens at depth[i] each; every page of its own, in random order. */
void make_step(struct tstep *s, uint32_t n_seq, const uint32_t *n, const uint32_t *depth,
	       uint32_t group, uint32_t kvh, uint32_t pad, uint32_t splits, uint32_t vocab);
void drop_step(struct tstep *s);
struct hk_kv kv_make(uint32_t hd, uint32_t kvh, uint32_t layers, bool f16);

/* -- the tests, by what they look at; quick: fewer and smaller shapes ---------------------- */
void t_pack(bool quick);
void t_gemv(bool quick);
void t_gemm(bool quick);
void t_raw(bool quick);
void t_norm(bool quick);
void t_swiglu(bool quick);
void t_embed(bool quick);
void t_rope(bool quick);
void t_kv_copy(bool quick);
void t_attn(bool quick);
void t_attn_rope(bool quick);
void t_pick(bool quick);
void t_refuse(bool quick);

#endif
