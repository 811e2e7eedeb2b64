/* SPDX-License-Identifier: MIT */
#ifndef HEARTH_GRAMMAR_GBNF_H
#define HEARTH_GRAMMAR_GBNF_H

#include "grammar/grammar.h"

/*
 * A grammar in llama.cpp's GBNF notation: name ::= alternatives; "literals"
 * with \n \r \t \\ \" \[ \] \xHH \uHHHH \UHHHHHHHH, [classes] and [^negated],
 * . for any character, (groups), * + ? {m} {m,} {m,n}, # comments. The rule
 * named root is where a match begins. -EINVAL with line and column for
 * anything else, and for what grammar_compile() refuses.
 */
int grammar_from_gbnf(const char *text, size_t len, struct grammar **ret, struct hearth_err *err);

#endif
