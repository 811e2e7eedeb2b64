/* SPDX-License-Identifier: MIT */
/*
 * The CUDA backend beyond its table: where weights and keys lie, and what it
 * says of itself.
 */
#ifndef HEARTH_MODEL_OPS_CUDA_H
#define HEARTH_MODEL_OPS_CUDA_H

#include <stdbool.h>
#include <stdint.h>

enum ops_cuda_where {
	OPS_CUDA_AUTO,      /* probe: a GPU that shares the CPU's memory reads it in place */
	OPS_CUDA_COPY,      /* weights and KV pages in device memory */
	OPS_CUDA_IN_PLACE,  /* the regions themselves, registered: zero-copy */
};

/* For the next ops_cuda(); -ENOTSUP from it when the device cannot. */
void ops_cuda_place(enum ops_cuda_where where);

/*
 * One line about the device in use and where the weights lie, after ops_cuda()
 * succeeded; "" before.
 */
const char *ops_cuda_line(void);

/* Rows of a step up to which the GEMV does it, where both routes can; 0: as was
 * measured to be best. For measuring. */
extern uint32_t ops_cuda_few;
extern uint32_t ops_cuda_free_sms;   /* SMs from which on gemm_free.cuh and gemm_wide.cuh are used: on all. For measuring */
/* Parts of k are added up by the product itself. For measuring. */
extern bool ops_cuda_together;

struct ops_ctx;

/* Bytes the driver took from the device for this context: buffers, and all
 * that came with them. What the plan said is ops_need.device. */
unsigned long long ops_cuda_used(const struct ops_ctx *c);

#endif
