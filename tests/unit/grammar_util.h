/* SPDX-License-Identifier: MIT */
/* Whole-text questions to a grammar, over a vocabulary of bytes and a few words. */
#ifndef HEARTH_GRAMMAR_UTIL_H
#define HEARTH_GRAMMAR_UTIL_H

#include "grammar/grammar.h"

#define GU_EOG 300u

static const char *gu_words[] = {
	"{\"", "\": ", "\", \"", "\"}", "}}", "true", "null", "name", "</tool_call>", "\xc3\xa9", "\xf0\x9f\x98\x80",
	"  ", "12", "0.", "[]", "\\n", "\\u00",
};

static inline const char *gu_bytes(void *arg, uint32_t id, size_t *len)
{
	static char one[256];

	(void)arg;
	if (id < 256) {
		one[id] = (char)id;
		*len = 1;
		return &one[id];
	}
	if (id - 256 < sizeof(gu_words) / sizeof(gu_words[0])) {
		*len = strlen(gu_words[id - 256]);
		return gu_words[id - 256];
	}
	*len = 0;
	return NULL;
}

static inline struct gvocab *gu_vocab(void)
{
	static struct gvocab *v;
	uint32_t eog = GU_EOG;

	if (!v && gvocab_create(301, gu_bytes, NULL, &eog, 1, &v, NULL))
		return NULL;
	return v;
}

/* 1: the whole text is admitted, 0: it is not, -1: no match could be made. */
static inline int gu_admits(struct grammar *g, const char *text)
{
	struct gmatch *m;
	int yes;

	if (gmatch_create(g, gu_vocab(), &m))
		return -1;
	yes = gmatch_accept_bytes(m, text, strlen(text)) == 0 && gmatch_may_end(m);
	gmatch_free(m);
	return yes;
}

/*
 * Takes allowed tokens at random until the grammar may end, by the mask alone.
 * Leans to the end as the text grows. Returns the length, or -1 (also when
 * @steps tokens did not reach an end).
 */
static inline int gu_walk(struct gmatch *m, uint64_t *seed, int steps, char *out, size_t cap)
{
	size_t n = 0;

	gmatch_restart(m);
	for (int step = 0; step < steps; step++) {
		const uint32_t *mask = gmatch_mask(m);
		uint32_t pick[301], k = 0, id;
		size_t len;
		const char *s;

		if (!mask)
			return -1;
		for (uint32_t i = 0; i < 301; i++)
			if (mask[i / 32] >> (i % 32) & 1)
				pick[k++] = i;
		if (!k)
			return -1;
		*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
		id = pick[(*seed >> 33) % k];
		/* Prefer what closes: an unbounded string would never end by itself. */
		if (step > 12) {
			for (uint32_t i = 0; i < k; i++) {
				if (pick[i] == GU_EOG || (pick[i] < 128 && strchr("\"]}", (int)pick[i]) && pick[i])) {
					if ((*seed >> 20) % 3)
						id = pick[i];
				}
			}
		}
		if (gmatch_accept(m, id))
			return -1;
		if (id == GU_EOG)
			return (int)n;
		s = gu_bytes(NULL, id, &len);
		if (n + len >= cap)
			return -1;
		memcpy(out + n, s, len);
		n += len;
		out[n] = 0;
	}
	return -1;
}

#endif
