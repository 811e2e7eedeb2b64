// SPDX-License-Identifier: MIT
/* A tokenizer in use: encoding a text, and what a token is. */
#include "token/tokenizer_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* -- opening ---------------------------------------------------------------- */

int tok_open(const struct gguf *g, struct tok **ret, struct hearth_err *err)
{
	struct tok *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return err_set(err, -ENOMEM, "no memory for a tokenizer");
	r = tok_read(t, g, err);
	if (r < 0) {
		tok_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

uint64_t tok_host_bytes(const struct tok *t)
{
	const struct bpe *b = &t->bpe;

	return sizeof(*t) + b->text_cap + (uint64_t)b->cap_syms * sizeof(*b->at) +
	       3ull * b->n_tokens + (uint64_t)b->slots * sizeof(*b->slot) +
	       (uint64_t)b->pairs * sizeof(*b->pair) +
	       (uint64_t)t->first[256] * sizeof(*t->special);
}

void tok_free(struct tok *t)
{
	if (!t)
		return;
	bpe_done(&t->bpe);
	pretok_free(t->pretok);
	free(t->type);
	free(t->eog);
	free(t->special);
	free(t);
}

/* -- encoding --------------------------------------------------------------- */

int tok_ids_push(struct tok_ids *ids, int32_t id)
{
	if (ids->n == ids->cap) {
		size_t cap = ids->cap ? ids->cap * 2 : 64;
		int32_t *more = realloc(ids->id, cap * sizeof(*more));

		if (!more)
			return -ENOMEM;
		ids->id = more;
		ids->cap = cap;
	}
	ids->id[ids->n++] = id;
	return 0;
}

void tok_ids_free(struct tok_ids *ids)
{
	free(ids->id);
	*ids = (struct tok_ids){ 0 };
}

struct encoding {
	const struct tok *t;
	struct pretok_work cut;
	struct bpe_work work;
	struct tok_ids *ids;
};

static int encode_word(void *ctx, const char *w, size_t n)
{
	struct encoding *e = ctx;
	uint32_t whole;

	if (pretok_whole_words(e->t->pretok)) {
		whole = bpe_find(&e->t->bpe, w, n, false);
		if (whole != BPE_NONE && whole < e->t->bpe.n_tokens)
			return tok_ids_push(e->ids, (int32_t)whole);
	}
	return bpe_word(&e->t->bpe, &e->work, w, n, e->ids);
}

/* The longest special token that begins at @s and may be one there. */
static const struct special *special_at(const struct tok *t, const char *s, size_t n, size_t at,
					unsigned int flags, const struct tok_span *lit,
					const struct tok_span *lit_end)
{
	const struct special *p = t->special + t->first[(uint8_t)s[at]];
	const struct special *end = t->special + t->first[(uint8_t)s[at] + 1];

	for (; p < end; p++) {
		if (p->n > n - at || memcmp(p->s, s + at, p->n) ||
		    (p->control && !(flags & TOK_SPECIAL)))
			continue;
		/* @lit is the first span that ends after @at. */
		if (lit < lit_end && lit->from < at + p->n && !p->blank)
			continue;
		return p;
	}
	return NULL;
}

static int encode_all(struct encoding *e, const char *text, size_t n, unsigned int flags,
		      const struct tok_span *lit, size_t n_lit)
{
	const struct tok_span *lit_end = n_lit ? lit + n_lit : lit;
	const struct tok *t = e->t;
	size_t raw = 0, at = 0;
	int r = 0;

	while (at < n && r == 0) {
		const struct special *p = NULL;

		while (lit < lit_end && lit->to <= at)
			lit++;
		if (t->first[(uint8_t)text[at]] != t->first[(uint8_t)text[at] + 1])
			p = special_at(t, text, n, at, flags, lit, lit_end);
		if (!p) {
			at++;
			continue;
		}
		r = pretok_split(t->pretok, &e->cut, text + raw, at - raw, encode_word, e);
		if (r == 0)
			r = tok_ids_push(e->ids, p->id);
		at += p->n;
		raw = at;
	}
	return r < 0 ? r : pretok_split(t->pretok, &e->cut, text + raw, n - raw, encode_word, e);
}

int tok_encode(const struct tok *t, const char *text, size_t n, unsigned int flags,
	       const struct tok_span *literal, size_t n_literal, struct tok_ids *ids)
{
	struct encoding e = { .t = t, .ids = ids };
	size_t was = ids->n;
	int r = 0;

	if ((flags & TOK_BOS_EOS) && t->add_bos)
		r = tok_ids_push(ids, t->bos);
	if (r == 0)
		r = encode_all(&e, text, n, flags, literal, n_literal);
	if (r == 0 && (flags & TOK_BOS_EOS) && t->add_eos)
		r = tok_ids_push(ids, t->eos);
	bpe_work_done(&e.work);
	pretok_work_done(&e.cut);
	if (r < 0)
		ids->n = was;
	return r;
}

/* -- what a token is -------------------------------------------------------- */

static bool is_token(const struct tok *t, int32_t id)
{
	return id >= 0 && (uint32_t)id < t->bpe.n_tokens;
}

size_t tok_count(const struct tok *t)
{
	return t->bpe.n_tokens;
}

const char *tok_bytes(const struct tok *t, int32_t id, size_t *ret_n)
{
	return is_token(t, id) ? bpe_text(&t->bpe, (uint32_t)id, ret_n) : NULL;
}

int32_t tok_id(const struct tok *t, const char *bytes, size_t n)
{
	uint32_t s = bpe_find(&t->bpe, bytes, n, true);

	return s < t->bpe.n_tokens ? (int32_t)s : -1;
}

bool tok_is_control(const struct tok *t, int32_t id)
{
	return is_token(t, id) && t->type[id] == CONTROL;
}

bool tok_is_unused(const struct tok *t, int32_t id)
{
	return !is_token(t, id) || t->type[id] == UNUSED;
}

bool tok_is_eog(const struct tok *t, int32_t id)
{
	return is_token(t, id) && t->eog[id];
}

int32_t tok_bos(const struct tok *t)
{
	return t->bos;
}

int32_t tok_eos(const struct tok *t)
{
	return t->eos;
}

bool tok_add_bos(const struct tok *t)
{
	return t->add_bos;
}

const char *tok_pre(const struct tok *t)
{
	return t->pre;
}
