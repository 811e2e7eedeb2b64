/* SPDX-License-Identifier: MIT */
/*
 * What a step is about, as one block of bytes: the host fills it, one copy
 * brings it to the device, and captured graphs read it from there.
 */
#ifndef HEARTH_KERNELS_STEP_H
#define HEARTH_KERNELS_STEP_H

#include "kernels/kernels.h"

struct step_cap {
	uint32_t rows, seqs, out, pages;   /* of one step; pages: of one sequence */
	uint32_t group;                    /* query heads per kv head */
	uint32_t kv_heads;
};

/* Tiles of at most @rows rows in at most @seqs sequences. */
/* Tokens that a part of the keys has at least. */
extern uint32_t step_part;

uint32_t step_tiles(uint32_t rows, uint32_t seqs, uint32_t group);
size_t step_bytes(const struct step_cap *c);
/* Pointers into the block at @base (host or device). */
void step_bind(const struct step_cap *c, void *base, struct hk_step *ret);

struct step_seq { uint32_t first, n, pos0; const uint32_t *page; };

/*
 * Fills the host block for @n rows, padded to @n_pad rows. @splits_max: what
 * the attention launch was shaped for; @fill: blocks that fill the machine.
 * Returns the bytes to copy.
 */
size_t step_fill(const struct step_cap *c, void *base, uint32_t n, uint32_t n_pad,
		 const int32_t *token, uint32_t n_seq, const struct step_seq *seq,
		 uint32_t n_out, const uint32_t *out, uint32_t tiles_max, uint32_t splits_max,
		 uint32_t fill);

#endif
