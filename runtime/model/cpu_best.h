/* SPDX-License-Identifier: MIT */
/* The fastest kernels that this machine runs, for whoever needs a single one. */
#ifndef HEARTH_MODEL_CPU_BEST_H
#define HEARTH_MODEL_CPU_BEST_H

#include "model/cpu.h"

const struct cpu_kern *cpu_kern_best(void);

#endif
