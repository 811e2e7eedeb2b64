// SPDX-License-Identifier: MIT
/* Any bytes are a sound or a sentence: never a crash, never without an end. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "voice/audio.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hearth_err err = { 0 };
	struct audio_in *in;
	int16_t pcm[512];
	size_t total = 0;

	if (audio_in_mem(data, size, 16000, &in, &err)) {
		if (!err.text[0])
			abort();
		return 0;
	}
	/* One byte at 1 Hz is a second of sound: enough is enough. */
	while (total < 200000) {
		ssize_t n = audio_in_read(in, pcm, 512, &err);

		if (n <= 0)
			break;
		total += (size_t)n;
	}
	audio_in_close(in);
	return 0;
}
