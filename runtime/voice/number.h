/* SPDX-License-Identifier: MIT */
/* A growing line of words, and numbers as English words in it. */
#ifndef HEARTH_VOICE_NUMBER_H
#define HEARTH_VOICE_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/* Zero-initialised is empty. A failed allocation is kept and told by words_finish(). */
struct words {
	char *buf;
	size_t n, room;
	int space;       /* a space is due before the next word */
	int failed;
};

void words_add(struct words *w, const char *word);                  /* apart from what is before */
void words_take(struct words *w, const char *word, size_t len);
void words_glue(struct words *w, const char *tail);                 /* "fifth" + "s" */
void words_copy(struct words *w, const char *s, size_t len);        /* as written: no space but one already due */
void words_mark(struct words *w, char mark);                        /* a comma right behind the last word */
void words_space(struct words *w);
void words_undo(struct words *w, const struct words *earlier);      /* back to a copy taken before */

void words_number(struct words *w, uint64_t n);                     /* 21: "twenty one" */
void words_ordinal(struct words *w, uint64_t n);                    /* 21: "twenty first" */
void words_digits(struct words *w, const char *digits, size_t n);   /* "007": "zero zero seven" */
void words_year(struct words *w, unsigned int year);                /* 1999: "nineteen ninety nine" */

/* 0 and the line, from malloc; or -ENOMEM. The words are empty after it. */
int words_finish(struct words *w, char **ret_text);

#endif
