// SPDX-License-Identifier: MIT
/* The voice detector's weights file as it comes from the net: parsed or refused. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "voice/silero.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hearth_err err = { 0 };

	/* The place to write to does not exist: what parses is refused there. */
	if (!silero_convert(data, size, "/nonexistent/weights", &err) || !err.text[0])
		abort();
	return 0;
}
