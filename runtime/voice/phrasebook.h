/* SPDX-License-Identifier: MIT */
/*
 * What people say to a home: some hundred patterns with slots, filled with the
 * names of one home and expanded into sentences, for the language model of the
 * recogniser. In a pattern (a|b) is a choice, [a] may be left out, {slot} is a
 * name or another pattern, {10-90} a number in words.
 */
#ifndef HEARTH_VOICE_PHRASEBOOK_H
#define HEARTH_VOICE_PHRASEBOOK_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct phrasebook;

int phrasebook_new(struct phrasebook **ret);
void phrasebook_free(struct phrasebook *b);

/*
 * One more value of a slot: light, switch, fan, cover, climate, lock, media,
 * vacuum, mower, scene, list, item, sensor, thing, area, floor, unit. Text is
 * brought into the form of the recogniser (see phrasebook_words). -EINVAL for
 * a slot that no pattern has; a value without a word in it is left out.
 */
int phrasebook_add(struct phrasebook *b, const char *slot, const char *value);

/*
 * More patterns, one a line, of words and {slots} only: what
 * tools/speech_phrases.py makes from the home model's own sentences. They are
 * drawn as often as the built-in ones. -EINVAL with the line that is wrong.
 */
int phrasebook_load(struct phrasebook *b, const char *text, struct hearth_err *err);
size_t phrasebook_loaded(const struct phrasebook *b); /* patterns */

/*
 * Lower-case words of letters and apostrophes; numbers become words; marks
 * become spaces. The caller frees. "" when nothing is left.
 */
int phrasebook_words(const char *text, char **ret);

/* @n sentences by the seed, each NUL-terminated; stops at a non-zero return. */
int phrasebook_expand(const struct phrasebook *b, size_t n, uint64_t seed,
		      int (*fn)(void *ctx, const char *sentence), void *ctx);

/* Of the patterns and all values: a part of what a built model is named by. */
uint64_t phrasebook_digest(const struct phrasebook *b);

#endif
