/* SPDX-License-Identifier: MIT */
/* Inside of a tokenizer: what tokenizer_read.c fills and tokenizer.c uses. */
#ifndef HEARTH_TOKEN_TOKENIZER_PRIV_H
#define HEARTH_TOKEN_TOKENIZER_PRIV_H

#include "token/bpe.h"
#include "token/pretok.h"
#include "token/tokenizer.h"

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

/* Fills a zeroed @t from the file; on an error what is there is left to tok_free(). */
int tok_read(struct tok *t, const struct gguf *g, struct hearth_err *err);

#endif
