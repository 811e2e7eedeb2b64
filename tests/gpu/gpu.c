// SPDX-License-Identifier: MIT
#include "tests/gpu/gpu.h"

int tap_n, tap_bad;
uint64_t tap_seed, rng_state;
void *gpu_stream;
struct hk_dev_info gpu_info;
