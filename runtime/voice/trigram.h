/* SPDX-License-Identifier: MIT */
/*
 * A trigram language model from sentences: counted, smoothed after
 * Witten and Bell (interpolated), written as an ARPA file. Small on purpose:
 * a home has a few thousand words and some ten thousand sentences.
 */
#ifndef HEARTH_VOICE_TRIGRAM_H
#define HEARTH_VOICE_TRIGRAM_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

struct trigram;

int trigram_new(struct trigram **ret);
void trigram_free(struct trigram *t);

/* Words separated by spaces. -ENOMEM, -E2BIG over a million words of vocabulary. */
int trigram_add(struct trigram *t, const char *sentence);

size_t trigram_n_words(const struct trigram *t);
const char *trigram_word(const struct trigram *t, size_t i); /* in order of first use */

/* -EINVAL without a sentence, -EIO. */
int trigram_write(struct trigram *t, FILE *f);

#endif
