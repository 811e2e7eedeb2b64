// SPDX-License-Identifier: MIT
/* Any bytes as a Wyoming stream: events or a refusal, the same however it is cut. */
#include <stdlib.h>
#include <string.h>

#include "server/wyoming_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_all(const uint8_t *data, size_t size, size_t step)
{
	struct wyoming_reader *r;
	struct wyoming_event e;
	const char *why;
	int n = 0, rc = 0;

	if (wyoming_reader_new(&r))
		return 0;
	for (size_t i = 0; i < size && !rc; i += step) {
		rc = wyoming_feed(r, data + i, size - i < step ? size - i : step, &why);
		while (wyoming_next(r, &e)) {
			char *buf;
			size_t len;

			if (!json_is_object(e.data))
				__builtin_trap();
			if (wyoming_encode(e.type, e.data, e.payload, e.n_payload, &buf, &len) == 0)
				free(buf);
			wyoming_event_done(&e);
			n++;
		}
	}
	wyoming_reader_free(r);
	return rc ? -1 : n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (read_all(data, size, size ? size : 1) != read_all(data, size, 3))
		__builtin_trap();
	return 0;
}
