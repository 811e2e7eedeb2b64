// SPDX-License-Identifier: MIT
/*
 * Any bytes, cut at places that the bytes themselves choose, give the same
 * phrases as the whole text; a phrase is valid UTF-8, ends in order, and holds
 * no block that must not be heard.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "voice/chunker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct joined {
	char *s;
	size_t n, room, last_end;
};

static int take(void *arg, const struct chunk *c)
{
	struct joined *j = arg;
	size_t a = strlen(c->text), b = strlen(c->spoken);

	if (c->src_end < j->last_end || !a)
		abort();
	j->last_end = c->src_end;
	if (j->n + a + b + 2 > j->room) {
		j->room = (j->n + a + b + 2) * 2;
		j->s = realloc(j->s, j->room);
		if (!j->s)
			abort();
	}
	memcpy(j->s + j->n, c->text, a + 1);
	memcpy(j->s + j->n + a + 1, c->spoken, b + 1);
	j->n += a + b + 2;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct joined whole = { 0 }, cut = { 0 };
	const char *text = (const char *)data;
	struct chunker *c;
	size_t i, n;

	if (size > 20000 || chunker_new(NULL, take, &whole, &c))
		return 0;
	chunker_push(c, text, size, 0);
	chunker_finish(c);
	chunker_free(c);
	if (chunker_new(NULL, take, &cut, &c))
		abort();
	for (i = 0; i < size; i += n) {
		n = 1 + data[size - 1 - i] % 7;
		if (n > size - i)
			n = size - i;
		chunker_push(c, text + i, n, (int64_t)i);
	}
	chunker_finish(c);
	/* A time cut may fall anywhere, but must hold together too. */
	for (i = 0; i < size; i += n) {
		n = 1 + data[i] % 5;
		if (n > size - i)
			n = size - i;
		cut.last_end = i == 0 ? 0 : cut.last_end;
		if (i == 0 && (whole.n != cut.n || (whole.n && memcmp(whole.s, cut.s, whole.n))))
			abort();
		chunker_push(c, text + i, n, (int64_t)i * 1000000);
		chunker_tick(c, chunker_deadline(c) == INT64_MAX ? 0 : chunker_deadline(c) - (int64_t)(data[i] & 1));
	}
	chunker_finish(c);
	chunker_free(c);
	free(whole.s);
	free(cut.s);
	return 0;
}
