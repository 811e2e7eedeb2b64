// SPDX-License-Identifier: MIT
#include "server/alive.h"

bool alive_look(struct alive *a, uint32_t active, uint64_t steps, int64_t now_ms)
{
	if (!active || steps != a->steps || !a->since_ms) {
		a->steps = steps;
		a->since_ms = now_ms;
	}
	return now_ms - a->since_ms < ALIVE_PATIENCE_MS;
}
