// SPDX-License-Identifier: MIT
/* The model's tokens as a trie of bytes, laid out in the order of the walk. */
#include "grammar/vocab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TOKEN_BYTES 4096

struct entry {
	const char *s;
	size_t len;
	uint32_t id;
};

static int entry_cmp(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	size_t n = x->len < y->len ? x->len : y->len;
	int c = memcmp(x->s, y->s, n);

	if (c)
		return c;
	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return x->id < y->id ? -1 : 1;
}

void gvocab_free(struct gvocab *v)
{
	if (!v)
		return;
	free(v->nodes);
	free(v->ids);
	free(v->eog);
	free(v->tok_start);
	free(v->tok_bytes);
	free(v);
}

uint32_t gvocab_size(const struct gvocab *v)
{
	return v->n_tokens;
}

static uint32_t count_nodes(const struct entry *e, size_t n)
{
	uint32_t count = 0;
	size_t shared;

	for (size_t i = 0; i < n; i++) {
		shared = 0;
		if (i)
			while (shared < e[i].len && shared < e[i - 1].len && e[i].s[shared] == e[i - 1].s[shared])
				shared++;
		count += (uint32_t)(e[i].len - shared);
	}
	return count;
}

int gvocab_create(uint32_t n_tokens, const char *(*bytes)(void *, uint32_t, size_t *), void *arg,
		  const uint32_t *eog, size_t n_eog, struct gvocab **ret, struct hearth_err *err)
{
	struct gvocab *v = calloc(1, sizeof(*v));
	struct entry *e = calloc(n_tokens ? n_tokens : 1, sizeof(*e));
	uint32_t *path = malloc((MAX_TOKEN_BYTES + 1) * sizeof(*path));
	size_t n = 0, total = 0, open = 0;
	uint32_t at = 0;
	int rc = -ENOMEM;

	if (!v || !e || !path)
		goto fail;
	v->n_tokens = n_tokens;
	v->words = (n_tokens + 31) / 32;
	v->tok_start = calloc((size_t)n_tokens + 1, sizeof(*v->tok_start));
	v->eog = malloc((n_eog ? n_eog : 1) * sizeof(*v->eog));
	if (!v->tok_start || !v->eog)
		goto fail;
	for (size_t i = 0; i < n_eog; i++)
		if (eog[i] < n_tokens)
			v->eog[v->n_eog++] = eog[i];
	for (uint32_t id = 0; id < n_tokens; id++) {
		size_t len = 0;
		const char *s = bytes(arg, id, &len);
		bool ends = false;

		for (size_t i = 0; i < v->n_eog; i++)
			ends |= v->eog[i] == id;
		if (!s || !len || ends)
			continue;
		if (len > MAX_TOKEN_BYTES) {
			rc = err_set(err, -EINVAL, "token %u is %zu bytes long; at most %d can be masked", id, len, MAX_TOKEN_BYTES);
			goto fail_said;
		}
		e[n++] = (struct entry){ s, len, id };
		v->tok_start[id + 1] = (uint32_t)len;
		total += len;
	}
	for (uint32_t id = 0; id < n_tokens; id++)
		v->tok_start[id + 1] += v->tok_start[id];
	v->tok_bytes = malloc(total ? total : 1);
	v->ids = malloc((n ? n : 1) * sizeof(*v->ids));
	if (!v->tok_bytes || !v->ids)
		goto fail;
	for (size_t i = 0; i < n; i++)
		memcpy(v->tok_bytes + v->tok_start[e[i].id], e[i].s, e[i].len);
	qsort(e, n, sizeof(*e), entry_cmp);
	v->n_nodes = count_nodes(e, n);
	v->nodes = calloc(v->n_nodes ? v->n_nodes : 1, sizeof(*v->nodes));
	if (!v->nodes)
		goto fail;
	for (size_t i = 0; i < n; i++) {
		size_t shared = 0;

		if (i)
			while (shared < e[i].len && shared < e[i - 1].len && e[i].s[shared] == e[i - 1].s[shared])
				shared++;
		while (open > shared)
			v->nodes[path[--open]].skip = at;
		while (open < e[i].len) {
			v->nodes[at] = (struct gvocab_node){ .byte = (uint8_t)e[i].s[open], .depth = (uint16_t)open,
							     .first = (uint32_t)i };
			path[open++] = at++;
		}
		v->nodes[path[open - 1]].count++;
		v->ids[i] = e[i].id;
	}
	while (open)
		v->nodes[path[--open]].skip = at;
	free(path);
	free(e);
	*ret = v;
	return 0;
fail:
	err_set(err, rc, "out of memory for a vocabulary of %u tokens", n_tokens);
fail_said:
	free(path);
	free(e);
	gvocab_free(v);
	return rc;
}
