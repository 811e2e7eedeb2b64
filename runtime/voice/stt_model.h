/* SPDX-License-Identifier: MIT */
/*
 * The recogniser's model of one home: a trigram language model of what people
 * say to it and a dictionary of the words in that, built in well under a
 * second from the home's names, and kept in a cache folder under a name that
 * is a digest of what it was built from.
 */
#ifndef HEARTH_VOICE_STT_MODEL_H
#define HEARTH_VOICE_STT_MODEL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "voice/phrasebook.h"

struct home;

struct stt_model {
	char lm[PATH_MAX];
	char dict[PATH_MAX];
	bool cached;      /* found, not built */
	size_t phrases;   /* patterns of the home model's sentences used; 0: only the built-in ones */
	char *guessed;    /* "word, word": pronounced by rule; NULL: none */
	char *unsayable;  /* "word, word": no pronunciation, will not be heard; NULL: none */
};

#define STT_MODEL_PHRASES "phrases-1.txt"

/*
 * Builds the files in @dir (made when missing), or finds them there. Where
 * @dir has STT_MODEL_PHRASES, which tools/speech.sh makes, it is loaded first.
 * @extra: sentences, one a line, that people also say; may be NULL.
 * @cmudict: NULL means the distribution's. -EACCES, -ENOSPC, -ENOENT...
 */
int stt_model_build(struct phrasebook *b, const char *extra, const char *cmudict,
		    const char *dir, struct stt_model *ret, struct hearth_err *err);
void stt_model_done(struct stt_model *m); /* frees what it points to */

/* Every name of the home, and its aliases, into the slots of a phrasebook. */
int stt_model_names(const struct home *home, struct phrasebook *b, struct hearth_err *err);

#endif
