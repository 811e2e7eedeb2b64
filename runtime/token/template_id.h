/* SPDX-License-Identifier: MIT */
/*
 * A chat template's identity: a hash of what the template does, not of how it
 * is laid out. Comments, blanks inside tags, kinds of quotes, x['y'] for x.y
 * and the marks that strip white space (once they have done so) do not count;
 * every name, operator and text does.
 */
#ifndef HEARTH_TOKEN_TEMPLATE_ID_H
#define HEARTH_TOKEN_TEMPLATE_ID_H

#include <stddef.h>
#include <stdint.h>

/* 0 for text that is not a Jinja template (a tag without an end). */
uint64_t template_id(const char *s, size_t n);

#endif
