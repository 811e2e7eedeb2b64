/* SPDX-License-Identifier: MIT */
/*
 * Spoken forms: "21.5 °C at 8:30" as a person says it, "twenty one point five
 * degrees Celsius at eight thirty". English. Numbers, decimals (point and
 * comma), ordinals, ranges, fractions, money, units, times, dates, years,
 * titles and other abbreviations, URLs. What it does not know stays as it is.
 */
#ifndef HEARTH_VOICE_SPEAK_H
#define HEARTH_VOICE_SPEAK_H

#include <stddef.h>

/*
 * The spoken form of @len bytes of @text, NUL-terminated, from malloc. Invalid
 * UTF-8 is dropped. -ENOMEM.
 */
int speak_text(const char *text, size_t len, char **ret_spoken);

#endif
