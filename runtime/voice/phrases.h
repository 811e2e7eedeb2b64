/* SPDX-License-Identifier: MIT */
/* The patterns themselves; read by phrasebook.c only. */
#ifndef HEARTH_VOICE_PHRASES_H
#define HEARTH_VOICE_PHRASES_H

struct phrase_macro {
	const char *name;
	const char *pattern;
};

extern const struct phrase_macro phrase_macros[]; /* ends with a NULL name */
extern const char *const phrase_patterns[];       /* "WEIGHT pattern"; ends with NULL */

#endif
