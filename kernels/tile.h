/* SPDX-License-Identifier: MIT */
/*
 * The order in which the kernels read weights. Plain C, shared by the packer,
 * the kernels and the tests.
 *
 * A matrix is cut into tiles of 16 rows; a tile's bytes are those of its rows,
 * so that packing happens in place. A tile is cut along the row into units of
 * 256 weights. In a unit, lane 4g+t of a warp holds weights 64t .. 64t+63 of
 * rows g and g+8: four blocks of 32, called (r, b), r = row half, b = 0, 1.
 * That is one lane of the A operand of mma.m16n8k16 for 16 steps (the order
 * of k inside a product is free, as long as the activations follow it), and
 * also whole scale blocks for dp4a. Every plane of a unit is 16-byte chunks,
 * [chunk][g][t], so a warp's load is one run of bytes.
 *
 * Types of 32-weight blocks may end in a short unit of 64, 128 or 192 weights:
 * it has nt = 1, 2 or 3 values of t, and the planes shrink with it.
 *
 * Planes, in order (cs = 128 * nt bytes is one chunk of all lanes):
 *   nibbles  4 chunks (r*2+b); byte i: weight i low, 16+i high
 *   bytes    8 chunks (r*4+b*2+h), Q8_0
 *   halves   16 chunks (r*8+b*4+j), F16: 8 weights each, in tile_half() order
 *   fifth    1 chunk: u32 (r*2+b); weight 4j+i at bit 8i+j
 *   sixth    2 chunks (r): u32 (b*2+h); weight 16h+4j+i at bits 8i+2j
 *   scales   see kernels/quant.cuh, one reader per type
 *
 * Signed types are stored as two's complement (Q4_0: q^8, Q5_0: q^16, Q6_K:
 * q^32), so that a shift to the top of the byte makes a signed int8.
 */
#ifndef HEARTH_KERNELS_TILE_H
#define HEARTH_KERNELS_TILE_H

#include <stddef.h>
#include <stdint.h>

#define TILE_ROWS 16u
#define TILE_K    256u
#define TILE_LAYOUT 1          /* struct mat .layout of a packed matrix */
#define TILE_NAME "t16x256b"   /* changes with every change of the order above */

#ifdef __CUDACC__
#define TILE_FN static __host__ __device__ __forceinline__
#else
#define TILE_FN static inline
#endif

/*
 * Where half k of a lane's 64 lies. Eight are what goes with four bytes of nibbles: of
 * a block of 32, elements 4c .. 4c+3 and 16+4c .. 16+4c+3, each four in the order
 * 0, 2, 1, 3 in which masks take them out of a word (kernels/gemm_free.cuh).
 */
TILE_FN uint32_t tile_half(uint32_t k)
{
	return k / 32 * 32 + k % 16 / 4 * 8 + k % 32 / 16 * 4 + k % 2 * 2 + k % 4 / 2;
}

/* Positions of half activations, which follow the same order of k: token n,
 * element k is half number act_pos(n, k, K) of a buffer of whole 8-token
 * groups. Four consecutive k from a multiple of four on are 8 bytes. */
TILE_FN size_t act_pos(uint32_t n, uint32_t k, uint32_t units, uint32_t n_groups)
{
	uint32_t u = k / 256, t = k % 256 / 64, h = tile_half(k % 64);

	(void)units; /* the unit stride is n_groups alone */
	return ((((size_t)u * n_groups + n / 8) * 8 + h / 8) * 32 + (n % 8) * 4 + t) * 8 + h % 8;
}

TILE_FN uint32_t tile_units(uint32_t cols) { return (cols + TILE_K - 1) / TILE_K; }

/* nt of unit u */
TILE_FN uint32_t tile_nt(uint32_t cols, uint32_t u)
{
	uint32_t left = cols - u * TILE_K;

	return left >= TILE_K ? 4 : left / 64;
}

#endif
