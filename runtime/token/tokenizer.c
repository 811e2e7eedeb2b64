// SPDX-License-Identifier: MIT
#include "token/tokenizer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "token/bpe.h"
#include "token/pretok.h"

enum token_type { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER = 4, UNUSED = 5, BYTE = 6 };

/* A token that is looked for in the text itself, before words. */
struct special {
	int32_t id;
	uint32_t n;
	const char *s;
	bool control;
	bool blank;              /* white space only: harmless wherever it stands */
};

struct tok {
	struct bpe bpe;
	struct pretok *pretok;
	uint8_t *type;           /* [tokens] enum token_type */
	uint8_t *eog;            /* [tokens] */
	struct special *special; /* by first byte, then longest first */
	uint32_t first[257];     /* special[first[c] .. first[c + 1]) begin with byte c */
	int32_t bos, eos;
	bool add_bos, add_eos;
	char pre[64];
};

/* -- tokens as they stand in the file --------------------------------------- */

/*
 * GPT-2's alphabet: each byte has a printable stand-in. Bytes that print stand
 * for themselves (as code points), the others for 256, 257, ... in order.
 */
static bool prints(int c)
{
	return (c >= 33 && c <= 126) || (c >= 161 && c <= 172) || c >= 174;
}

static void stand_ins(int16_t byte_of[512])
{
	int next = 256;

	memset(byte_of, 0xff, 512 * sizeof(*byte_of));
	for (int c = 0; c < 256; c++)
		byte_of[prints(c) ? c : next++] = (int16_t)c;
}

/* Bytes that the text of a token stands for; false when it is not in that alphabet. */
static bool decode(const int16_t byte_of[512], const char *s, size_t n, char *out, size_t *ret_n)
{
	size_t o = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned int c = (uint8_t)s[i];

		if (c >= 0xc2 && c <= 0xdf && i + 1 < n && ((uint8_t)s[i + 1] & 0xc0) == 0x80)
			c = (c & 31) << 6 | ((uint8_t)s[++i] & 63);
		else if (c >= 128)
			return false;
		if (c >= 512 || byte_of[c] < 0)
			return false;
		out[o++] = (char)byte_of[c];
	}
	*ret_n = o;
	return true;
}

static int take_type(const struct gguf_array *types, uint64_t i, uint8_t *ret,
		     struct hearth_err *err)
{
	int64_t v;

	if (!types->n) {
		*ret = NORMAL;
		return 0;
	}
	if (!gguf_arr_i64(types, i, &v) || v < 0 || v > BYTE)
		return err_set(err, -EINVAL, "token %" PRIu64 " has a type that is not known", i);
	*ret = v == 0 ? NORMAL : (uint8_t)v;
	return 0;
}

/*
 * A plain token stands in the alphabet; others stand as they are. One that
 * could not have been spelled in the alphabet is never what merges lead to,
 * though its bytes may be the same as another's.
 */
static int take_token(struct tok *t, const int16_t byte_of[512], const struct gguf_str *s,
		      const struct gguf_array *types, uint64_t i, uint8_t *ret_hide,
		      struct hearth_err *err)
{
	char buf[BPE_MAX];
	bool spelled;
	size_t n = 0;
	uint32_t sym;
	int r;

	r = take_type(types, i, &t->type[i], err);
	if (r < 0)
		return r;
	if (s->n > BPE_MAX)
		return err_set(err, -EINVAL, "token %" PRIu64 " has %zu bytes (%d are allowed)", i,
			       s->n, BPE_MAX);
	spelled = decode(byte_of, s->s, s->n, buf, &n);
	if (t->type[i] != NORMAL && spelled)
		spelled = n == s->n && memcmp(buf, s->s, n) == 0;
	*ret_hide =
		!spelled || t->type[i] == CONTROL || t->type[i] == UNUSED || t->type[i] == UNKNOWN;
	if (t->type[i] == NORMAL && spelled)
		r = bpe_add(&t->bpe, buf, n, &sym);
	else
		r = bpe_add(&t->bpe, s->s, s->n, &sym);
	return r < 0 ? err_set(err, r, "no memory for token %" PRIu64, i) : 0;
}

static int take_tokens(struct tok *t, const struct gguf *g, struct hearth_err *err)
{
	struct gguf_array toks, types = { 0 };
	int16_t byte_of[512];
	uint8_t *hide;
	int r;

	r = gguf_arr(g, "tokenizer.ggml.tokens", &toks, err);
	if (r < 0)
		return r;
	if (toks.type != GGUF_STR || toks.n == 0 || toks.n > 1u << 24)
		return err_set(err, -EINVAL,
			       "tokenizer.ggml.tokens is no list of tokens (%" PRIu64
			       " of type %s)",
			       toks.n, gguf_value_type_name(toks.type));
	r = gguf_arr(g, "tokenizer.ggml.token_type", &types, err);
	if (r < 0 && r != -ENOENT)
		return r;
	if (types.n && types.n != toks.n)
		return err_set(err, -EINVAL, "%" PRIu64 " tokens have %" PRIu64 " types", toks.n,
			       types.n);
	stand_ins(byte_of);
	t->type = calloc(toks.n, 1);
	t->eog = calloc(toks.n, 1);
	hide = calloc(toks.n, 1);
	if (!t->type || !t->eog || !hide) {
		free(hide);
		return err_set(err, -ENOMEM, "no memory for %" PRIu64 " tokens", toks.n);
	}
	r = 0;
	for (uint64_t i = 0; i < toks.n && r == 0; i++)
		r = take_token(t, byte_of, &toks.str[i], &types, i, &hide[i], err);
	if (r < 0) {
		free(hide);
		return r;
	}
	return bpe_tokens_done(&t->bpe, hide, err);
}

static int take_merges(struct tok *t, const struct gguf *g, struct hearth_err *err)
{
	char l[BPE_MAX], r[BPE_MAX];
	struct gguf_array m;
	int16_t byte_of[512];
	int e;

	e = gguf_arr(g, "tokenizer.ggml.merges", &m, err);
	if (e < 0)
		return e;
	if (m.type != GGUF_STR || m.n >= BPE_NONE)
		return err_set(err, -EINVAL, "tokenizer.ggml.merges is no list of merges");
	stand_ins(byte_of);
	for (uint64_t i = 0; i < m.n; i++) {
		const struct gguf_str *s = &m.str[i];
		const char *space = s->n > 1 ? memchr(s->s + 1, ' ', s->n - 1) : NULL;
		size_t nl, nr;

		if (!space || s->n > sizeof(l) ||
		    !decode(byte_of, s->s, (size_t)(space - s->s), l, &nl) ||
		    !decode(byte_of, space + 1, s->n - (size_t)(space + 1 - s->s), r, &nr) || !nr)
			return err_set(err, -EINVAL,
				       "merge %" PRIu64
				       " of the vocabulary is not two strings of its alphabet",
				       i);
		e = bpe_merge(&t->bpe, l, nl, r, nr, (uint32_t)i);
		if (e < 0)
			return err_set(err, e, "no memory for %" PRIu64 " merges", m.n);
	}
	return 0;
}

/* -- tokens that are found in text ------------------------------------------ */

static int by_first_then_length(const void *a, const void *b)
{
	const struct special *x = a, *y = b;
	int d = (int)(uint8_t)x->s[0] - (int)(uint8_t)y->s[0];

	if (d)
		return d;
	if (x->n != y->n)
		return x->n > y->n ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static bool is_blank(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strchr(" \t\n\r", s[i]) || !s[i])
			return false;
	return true;
}

static int take_specials(struct tok *t, struct hearth_err *err)
{
	size_t n = 0, k = 0;

	for (uint32_t i = 0; i < t->bpe.n_tokens; i++)
		n += t->type[i] == CONTROL || t->type[i] == USER;
	t->special = calloc(n ? n : 1, sizeof(*t->special));
	if (!t->special)
		return err_set(err, -ENOMEM, "no memory for control tokens");
	for (uint32_t i = 0; i < t->bpe.n_tokens; i++) {
		size_t len;
		const char *s = bpe_text(&t->bpe, i, &len);

		if ((t->type[i] != CONTROL && t->type[i] != USER) || len == 0)
			continue;
		t->special[k++] = (struct special){ .id = (int32_t)i,
						    .n = (uint32_t)len,
						    .s = s,
						    .control = t->type[i] == CONTROL,
						    .blank = is_blank(s, len) };
	}
	/* bpe.text does not move any more: this comes after the merges. */
	qsort(t->special, k, sizeof(*t->special), by_first_then_length);
	for (size_t i = 0, c = 0; c <= 256; c++) {
		while (i < k && (uint8_t)t->special[i].s[0] < c)
			i++;
		t->first[c] = (uint32_t)i;
	}
	t->first[256] = (uint32_t)k;
	return 0;
}

/*
 * Files name one or two tokens that end a turn; vocabularies have more. These
 * are control tokens whose name says that nothing follows.
 */
static const char *const ends[] = {
	"<|im_end|>",    "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|end|>",
	"<end_of_turn>", "<|return|>",    "<|call|>",   "</s>",       "<EOT>",           "<|EOT|>",
};

static int take_id(const struct tok *t, const struct gguf *g, const char *key, int32_t *ret,
		   struct hearth_err *err)
{
	uint32_t v;
	int r;

	r = gguf_u32(g, key, &v, err);
	if (r == -ENOENT)
		return 0;
	/* Old files say "none" with 2^32 - 1. */
	if (r == 0 && v != UINT32_MAX && v >= t->bpe.n_tokens)
		return err_set(err, -EINVAL,
			       "%s is %" PRIu32 ", but there are only %" PRIu32 " tokens", key, v,
			       t->bpe.n_tokens);
	if (r == 0 && v != UINT32_MAX)
		*ret = (int32_t)v;
	return r;
}

static int take_ends(struct tok *t, const struct gguf *g, struct hearth_err *err)
{
	static const char *const also[] = { "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_"
									   "token_id" };
	int32_t id;
	int r;

	t->bos = t->eos = -1;
	r = take_id(t, g, "tokenizer.ggml.bos_token_id", &t->bos, err);
	if (r == 0)
		r = take_id(t, g, "tokenizer.ggml.eos_token_id", &t->eos, err);
	if (r == 0 && t->eos >= 0)
		t->eog[t->eos] = 1;
	for (size_t i = 0; i < 2 && r == 0; i++) {
		id = -1;
		r = take_id(t, g, also[i], &id, err);
		if (r == 0 && id >= 0)
			t->eog[id] = 1;
	}
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		id = tok_id(t, ends[i], strlen(ends[i]));
		if (id >= 0 && (t->type[id] == CONTROL || t->type[id] == USER))
			t->eog[id] = 1;
	}
	return r;
}

static int take_flag(const struct gguf *g, const char *key, bool *ret, struct hearth_err *err)
{
	int r = gguf_bool(g, key, ret, err);

	return r == -ENOENT ? 0 : r;
}

/* -- opening ---------------------------------------------------------------- */

static int take_model(struct tok *t, const struct gguf *g, struct hearth_err *err)
{
	struct gguf_str s;
	int r;

	r = gguf_str(g, "tokenizer.ggml.model", &s, err);
	if (r == -ENOENT)
		return err_set(err, r, "the file has no tokenizer");
	if (r < 0)
		return r;
	if (s.n != 4 || memcmp(s.s, "gpt2", 4))
		return err_set(err, -EOPNOTSUPP,
			       "a tokenizer of kind \"%.*s\" is not known here, only byte-level "
			       "BPE (gpt2)",
			       s.n < 40 ? (int)s.n : 40, s.s);
	r = gguf_str(g, "tokenizer.ggml.pre", &s, err);
	if (r == -ENOENT)
		return err_set(err, r,
			       "the file does not say how its tokenizer cuts words "
			       "(tokenizer.ggml.pre); it was made by an old converter");
	if (r < 0)
		return r;
	if (s.n == 0 || s.n >= sizeof(t->pre) || memchr(s.s, 0, s.n))
		return err_set(err, -EINVAL, "tokenizer.ggml.pre is no name (%zu bytes)", s.n);
	memcpy(t->pre, s.s, s.n);
	return pretok_open(t->pre, &t->pretok, err);
}

static int open_all(struct tok *t, const struct gguf *g, struct hearth_err *err)
{
	int r;

	r = take_model(t, g, err);
	if (r == 0)
		r = take_tokens(t, g, err);
	if (r == 0)
		r = take_merges(t, g, err);
	if (r == 0)
		r = take_specials(t, err);
	if (r == 0)
		r = take_ends(t, g, err);
	if (r < 0)
		return r;
	t->add_bos = pretok_wants_bos(t->pretok);
	r = take_flag(g, "tokenizer.ggml.add_bos_token", &t->add_bos, err);
	if (r == 0)
		r = take_flag(g, "tokenizer.ggml.add_eos_token", &t->add_eos, err);
	t->add_bos = t->add_bos && t->bos >= 0;
	t->add_eos = t->add_eos && t->eos >= 0;
	return r;
}

int tok_open(const struct gguf *g, struct tok **ret, struct hearth_err *err)
{
	struct tok *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return err_set(err, -ENOMEM, "no memory for a tokenizer");
	r = open_all(t, g, err);
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
