/* SPDX-License-Identifier: MIT */
/*
 * What a test turns on the emulated device; on a real one emu_knobs is NULL. Weak, so
 * that one test links with both.
 */
#ifndef HEARTH_EMU_KNOBS_H
#define HEARTH_EMU_KNOBS_H

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

struct emu_knobs {
	struct hk_dev_info dev;   /* what is there */
	bool no_read_only;        /* memory that may only be read is not registered */
	/* Calls of the device until one fails with fail_rc, 0: none does; with -ENODEV all fail from there on. */
	uint32_t fail_at;
	int fail_rc;
	bool lost;                /* so they do */
	uint32_t calls;           /* that could have failed */
	int held;                 /* buffers, registrations and streams that nobody has given back */
};

/* NULL: this is no emulation. */
struct emu_knobs *emu_knobs(void) __attribute__((weak));

#ifdef __cplusplus
}
#endif
#endif
