// SPDX-License-Identifier: MIT
/* Any bytes as GBNF: refused with a sentence, or a grammar that can be walked. */
#include <string.h>

#include "grammar/gbnf.h"
#include "../unit/grammar_util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hearth_err err = { 0 };
	struct grammar *g;
	struct gmatch *m;
	uint64_t seed = size;
	char text[2048];

	if (size > 512)
		return 0;
	if (grammar_from_gbnf((const char *)data, size, &g, &err)) {
		if (!err.text[0])
			__builtin_trap();
		return 0;
	}
	if (gmatch_create(g, gu_vocab(), &m) == 0) {
		int n = gu_walk(m, &seed, 200, text, sizeof(text));

		/* What the mask led to must be what the grammar admits. */
		if (n >= 0) {
			gmatch_restart(m);
			if (gmatch_accept_bytes(m, text, (size_t)n) || !gmatch_may_end(m))
				__builtin_trap();
		}
		gmatch_free(m);
	}
	grammar_unref(g);
	return 0;
}
