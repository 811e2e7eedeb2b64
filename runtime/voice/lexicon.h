/* SPDX-License-Identifier: MIT */
/*
 * How words sound, for the recogniser: from the CMU dictionary where it has
 * them, else by flite's letter-to-sound rules, so that every name of a home
 * can be said. The dictionary is searched, never held in memory.
 */
#ifndef HEARTH_VOICE_LEXICON_H
#define HEARTH_VOICE_LEXICON_H

#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

/*
 * Writes a dictionary of the @n @words to @f, sorted as they were given.
 * @guessed (may be NULL) is called for each word that the CMU dictionary does
 * not have; @phones is NULL where the rules gave nothing either and the word
 * is left out.
 */
int lexicon_write(const char *cmudict, const char *const *words, size_t n, FILE *f,
		  void (*guessed)(void *ctx, const char *word, const char *phones), void *ctx,
		  struct hearth_err *err);

#endif
