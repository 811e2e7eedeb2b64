/* SPDX-License-Identifier: MIT */
/*
 * Model text to plain text, a character at a time: think blocks, tool calls,
 * JSON objects, special tokens, code fences, markdown marks and emoji go; what
 * a person would read aloud stays. What is held back to decide is bounded (64
 * characters), and what a block swallows is not held at all.
 *
 * The first half of the chunker (chunker.h), apart because it knows nothing of
 * phrases.
 */
#ifndef HEARTH_VOICE_PLAIN_H
#define HEARTH_VOICE_PLAIN_H

#include <stddef.h>
#include <stdint.h>

#define PLAIN_HOLD 80

/* Takes one character of plain text; @src_end is the offset after it in the source. Nonzero stops. */
typedef int (*plain_fn)(void *arg, uint32_t cp, size_t src_end);

enum plain_state {
	PLAIN_TEXT,
	PLAIN_BLOCK,  /* until the closing mark */
	PLAIN_JSON,   /* until the braces balance */
	PLAIN_FENCE,  /* until three backticks */
	PLAIN_PAREN,  /* the address of a link, until ")" */
};

struct plain_char {
	uint32_t cp;
	size_t end;
};

struct plain {
	plain_fn fn;
	void *arg;
	enum plain_state state;
	struct plain_char hold[PLAIN_HOLD];
	unsigned int n_hold;
	uint32_t prev;          /* last character given out, '\n' at the start */
	int line_start;         /* nothing but marks since the line began */
	uint32_t word[8];       /* how the word being given out begins */
	unsigned int n_word;
	int url;                /* and it is a URL */
	const char *close;      /* PLAIN_BLOCK: what ends it, lower case */
	unsigned int matched;   /* characters of it seen */
	unsigned int depth;     /* PLAIN_JSON */
	int in_string, escaped; /* PLAIN_JSON */
	unsigned int ticks;     /* PLAIN_FENCE: backticks in a row */
};

void plain_init(struct plain *plain, int in_think, plain_fn fn, void *arg);
int plain_push(struct plain *plain, uint32_t cp, size_t src_end);

/* The end of the text: what is held is given out as it stands, blocks stay swallowed. */
int plain_finish(struct plain *plain);

#endif
