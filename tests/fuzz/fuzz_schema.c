// SPDX-License-Identifier: MIT
/* Any JSON as a schema: refused, or every walk of its grammar parses as JSON. */
#include <string.h>

#include "grammar/schema.h"
#include "../unit/grammar_util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *s = size < 1024 ? json_loadb((const char *)data, size, JSON_DECODE_ANY, NULL) : NULL, *v;
	static char text[1 << 14];
	struct grammar *g;
	struct gmatch *m;
	uint64_t seed = size;

	if (!s)
		return 0;
	if (grammar_from_schema(s, &g, NULL) == 0) {
		if (gmatch_create(g, gu_vocab(), &m) == 0) {
			if (gu_walk(m, &seed, 200, text, sizeof(text)) >= 0) {
				v = json_loads(text, JSON_DECODE_ANY, NULL);
				if (!v)
					__builtin_trap();
				json_decref(v);
			}
			gmatch_free(m);
		}
		grammar_unref(g);
	}
	json_decref(s);
	return 0;
}
