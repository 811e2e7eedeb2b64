// SPDX-License-Identifier: MIT
/* A tokenizer as it stands in a GGUF file: tokens, merges, which are found in text, which end it. */
#include "token/tokenizer_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

/* -- tokens that end a text, and the whole ---------------------------------- */

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

int tok_read(struct tok *t, const struct gguf *g, struct hearth_err *err)
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
