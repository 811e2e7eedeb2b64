/* SPDX-License-Identifier: MIT */
/*
 * A wake word, by PocketSphinx's keyphrase search: samples in, and a sentence
 * to wake up to is found or not. The words are looked up as the recogniser's
 * are, so a phrase can be any that English can spell; longer ones (three
 * syllables and more) are told apart better.
 *
 * One listener a detector, one thread at a time.
 */
#ifndef HEARTH_VOICE_WAKE_H
#define HEARTH_VOICE_WAKE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "voice/account.h"

struct wake_options {
	const char *acoustic;      /* folder of the acoustic model; NULL: the distribution's */
	const char *cmudict;       /* NULL: the distribution's */
	const char *phrase;        /* "okay hearth" */
	double threshold;          /* smaller finds more, also what was not said */
};

struct wake;

void wake_defaults(struct wake_options *o);       /* "okay hearth", 1e-20 */
size_t wake_predict(void);                        /* bytes, before one is opened */
/* -ENOENT: a word that cannot be spelt, or no model; -ENOSPC: the budget. The sentence names it. */
int wake_open(const struct wake_options *o, const struct voice_account *acc, struct wake **ret, struct hearth_err *err);
/* Words that no dictionary has, with a blank between: how they sound is a guess. "": none. */
const char *wake_guessed(const struct wake *w);
void wake_close(struct wake *w);

/* 16 kHz. 1: the phrase ended in these samples; 0: not; -EIO. */
int wake_push(struct wake *w, const int16_t *pcm, size_t n);
void wake_reset(struct wake *w);                  /* for another listener: nothing was heard yet */

#endif
