/* SPDX-License-Identifier: MIT */
/*
 * Who pays for a speech engine. The engines are other people's libraries and
 * take their memory from malloc, so an engine holds no region: it charges what
 * it takes to its tenant in an `account` pool. The predicted figure is charged
 * before the engine loads (a refusal costs nothing), the measured one replaces
 * it once it has loaded.
 */
#ifndef HEARTH_VOICE_ACCOUNT_H
#define HEARTH_VOICE_ACCOUNT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct hearth_pool;
struct hearth_tenant;

/* A NULL tenant means that nobody is charged (tools, tests). */
struct voice_account {
	struct hearth_tenant *tenant;
	struct hearth_pool *pool;
};

/* One engine's charge. Zero it; nothing else is needed to begin. */
struct voice_charge {
	struct voice_account acc;
	size_t charged;
	size_t heap_before;
};

/* Charges @predicted and starts to measure. @acc may be NULL. -ENOSPC. */
int voice_charge_begin(struct voice_charge *c, const struct voice_account *acc, size_t predicted,
		       struct hearth_err *err);

/*
 * Bytes taken from malloc by this process since begin. Other threads that
 * load or free meanwhile are counted with it; engines are opened one by one.
 */
size_t voice_charge_heap(const struct voice_charge *c);

/* The charge becomes @measured. On -ENOSPC the old charge stays. */
int voice_charge_settle(struct voice_charge *c, size_t measured, struct hearth_err *err);

/* Gives all of it back. */
void voice_charge_end(struct voice_charge *c);

/* Bytes of address space that the shared library with @part in its name has mapped. */
size_t voice_library_bytes(const char *part);

#endif
