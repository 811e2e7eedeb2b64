// SPDX-License-Identifier: MIT
/* The model's tokens as a trie of bytes, laid out in the order of the walk. */
#include "grammar/vocab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

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
	free(v->rest);
	free(v->plain);
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

/* Characters of a plain token (vocab.h), 0: it is not one. */
static uint32_t plain_chars(const char *s, size_t len)
{
	uint32_t n = 0;

	for (size_t i = 0; i < len; n++) {
		const uint8_t c = (uint8_t)s[i];
		const int more = utf8_char(s + i, len - i);

		if (more <= 0 || c < 0x20 || c == '"' || c == '\\')
			return 0;
		i += (size_t)more;
	}
	return n <= GVOCAB_PLAIN ? n : 0;
}

/* The trie of those of @e, which are sorted, that are not @left_out; *ret_n: its nodes. NULL: no memory. */
static struct gvocab_node *make_trie(const struct entry *e, size_t n, const uint8_t *left_out, uint32_t *path, uint32_t *ret_n)
{
	struct gvocab_node *nodes = NULL;
	const struct entry *last;
	size_t open = 0, shared, count = 0;
	uint32_t at = 0;

	for (int pass = 0; pass < 2; pass++) {
		if (pass) {
			nodes = calloc(count ? count : 1, sizeof(*nodes));
			if (!nodes)
				return NULL;
		}
		last = NULL;
		for (size_t i = 0; i < n; i++) {
			if (left_out && left_out[e[i].id])
				continue;
			shared = 0;
			while (last && shared < e[i].len && shared < last->len && e[i].s[shared] == last->s[shared])
				shared++;
			last = &e[i];
			if (!pass) {
				count += e[i].len - shared;
				continue;
			}
			while (open > shared)
				nodes[path[--open]].skip = at;
			while (open < e[i].len) {
				nodes[at] = (struct gvocab_node){ .byte = (uint8_t)e[i].s[open], .depth = (uint16_t)open, .first = (uint32_t)i };
				path[open++] = at++;
			}
			nodes[path[open - 1]].count++;
		}
	}
	while (open)
		nodes[path[--open]].skip = at;
	*ret_n = at;
	return nodes;
}

int gvocab_create(uint32_t n_tokens, const char *(*bytes)(void *, uint32_t, size_t *), void *arg,
		  const uint32_t *eog, size_t n_eog, struct gvocab **ret, struct hearth_err *err)
{
	struct gvocab *v = calloc(1, sizeof(*v));
	struct entry *e = calloc(n_tokens ? n_tokens : 1, sizeof(*e));
	uint32_t *path = malloc((MAX_TOKEN_BYTES + 1) * sizeof(*path));
	uint8_t *plain = calloc(n_tokens ? n_tokens : 1, 1);
	size_t n = 0, total = 0;
	int rc = -ENOMEM;

	if (!v || !e || !path || !plain)
		goto fail;
	v->n_tokens = n_tokens;
	v->words = (n_tokens + 31) / 32;
	v->tok_start = calloc((size_t)n_tokens + 1, sizeof(*v->tok_start));
	v->eog = malloc((n_eog ? n_eog : 1) * sizeof(*v->eog));
	v->plain = calloc((GVOCAB_PLAIN + 1) * (size_t)(v->words ? v->words : 1), sizeof(*v->plain));
	if (!v->tok_start || !v->eog || !v->plain)
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
	for (size_t i = 0; i < n; i++) {
		const uint32_t chars = plain_chars(e[i].s, e[i].len);

		v->ids[i] = e[i].id;
		plain[e[i].id] = chars > 0;
		for (uint32_t k = chars; chars && k <= GVOCAB_PLAIN; k++)
			v->plain[k * v->words + e[i].id / 32] |= 1u << (e[i].id % 32);
	}
	for (size_t i = 0; i < n; i++)
		v->n_bytes += e[i].len == 1 && (!i || e[i - 1].len != 1 || e[i - 1].s[0] != e[i].s[0]);
	v->nodes = make_trie(e, n, NULL, path, &v->n_nodes);
	v->rest = make_trie(e, n, plain, path, &v->n_rest);
	if (!v->nodes || !v->rest)
		goto fail;
	free(plain);
	free(path);
	free(e);
	*ret = v;
	return 0;
fail:
	err_set(err, rc, "out of memory for a vocabulary of %u tokens", n_tokens);
fail_said:
	free(plain);
	free(path);
	free(e);
	gvocab_free(v);
	return rc;
}
