/* SPDX-License-Identifier: MIT */
/*
 * Text to tokens and back, for byte-level BPE vocabularies out of a GGUF file.
 *
 * A vocabulary is immutable once opened and may be used by many threads; each
 * call brings its own output. Text is bytes: what is not UTF-8 is encoded byte
 * by byte and comes back the same.
 *
 * Control tokens ("<|im_end|>") are found in text only where the caller allows
 * it, so that what a person says can never become one.
 */
#ifndef HEARTH_TOKEN_TOKENIZER_H
#define HEARTH_TOKEN_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "gguf/gguf.h"

struct tok;

struct tok_ids {            /* start with { 0 }; free with tok_ids_free() */
	int32_t *id;
	size_t n, cap;
};

struct tok_span {           /* bytes [from, to) of a text */
	size_t from, to;
};

enum {
	TOK_PLAIN   = 0,
	TOK_SPECIAL = 1,    /* recognise control tokens outside `literal` spans */
	TOK_BOS_EOS = 2,    /* add BOS / EOS where the file asks for it */
};

/* Copies what it needs: @g may be closed afterwards. */
int tok_open(const struct gguf *g, struct tok **ret, struct hearth_err *err);
void tok_free(struct tok *t);
uint64_t tok_host_bytes(const struct tok *t); /* memory it takes */

/*
 * Appends the tokens of text[0..n) to @ids. @literal: @n_literal ascending
 * spans in which control tokens are plain text (what the user or a tool said);
 * word borders are not affected by them. -ENOMEM, or -EILSEQ where the
 * vocabulary has no token for a byte (some leave out control characters), leave
 * @ids as they were.
 */
int tok_encode(const struct tok *t, const char *text, size_t n, unsigned int flags,
	       const struct tok_span *literal, size_t n_literal, struct tok_ids *ids);
void tok_ids_free(struct tok_ids *ids);
int tok_ids_push(struct tok_ids *ids, int32_t id);

size_t tok_count(const struct tok *t);               /* ids are 0 .. count-1 */
const char *tok_bytes(const struct tok *t, int32_t id, size_t *ret_n); /* NULL: no such id */
int32_t tok_id(const struct tok *t, const char *bytes, size_t n);      /* exact, else -1 */
bool tok_is_control(const struct tok *t, int32_t id);  /* never shown or spoken */
bool tok_is_unused(const struct tok *t, int32_t id);   /* padding: mask it when sampling */
bool tok_is_eog(const struct tok *t, int32_t id);      /* ends a generation */
int32_t tok_bos(const struct tok *t);                  /* -1: none */
int32_t tok_eos(const struct tok *t);
bool tok_add_bos(const struct tok *t);
const char *tok_pre(const struct tok *t);              /* "qwen2", ... */

/*
 * Tokens to text as they come. What push returns is always whole UTF-8
 * characters: an unfinished one is kept back for the next token, and bytes
 * that can never become one turn into U+FFFD. A control token's text is left
 * out unless the stream was opened with @show_control. The returned pointer is
 * valid until the next call; nothing is allocated after tok_stream_open().
 */
struct tok_stream;
int tok_stream_open(const struct tok *t, bool show_control, struct tok_stream **ret);
void tok_stream_free(struct tok_stream *s);
void tok_stream_reset(struct tok_stream *s);
const char *tok_stream_push(struct tok_stream *s, int32_t id, size_t *ret_n);
const char *tok_stream_end(struct tok_stream *s, size_t *ret_n); /* what is kept back, as U+FFFD */

#endif
