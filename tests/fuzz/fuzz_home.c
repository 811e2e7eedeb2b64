// SPDX-License-Identifier: MIT
/* Any bytes as a home file: loaded or refused with a sentence, never more. */
#include <stdint.h>
#include <stdlib.h>

#include "home/home.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hearth_err err = { 0 };
	struct home *home = NULL;
	int ret = home_parse("home", (const char *)data, size, &home, &err);

	if (ret && (home || !err.text[0] || err.code != ret))
		abort();
	home_free(home);
	return 0;
}
