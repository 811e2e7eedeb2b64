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

#endif
