/* SPDX-License-Identifier: MIT */
/*
 * Whether the engine still works, for the watchdog: work that is there must
 * move. An engine without work is well; one whose steps stand still for longer
 * than any step takes is not, and a supervisor should be told by silence.
 */
#ifndef HEARTH_SERVER_ALIVE_H
#define HEARTH_SERVER_ALIVE_H

#include <stdbool.h>
#include <stdint.h>

#define ALIVE_PATIENCE_MS 120000

struct alive {
	uint64_t steps;
	int64_t since_ms;          /* when steps last moved, or there was nothing to do */
};

/* Looks once, at @now_ms: @active generations, @steps made so far. Zero @a first. */
bool alive_look(struct alive *a, uint32_t active, uint64_t steps, int64_t now_ms);

#endif
