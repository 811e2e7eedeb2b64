/* SPDX-License-Identifier: MIT */
/*
 * What the readers of speak.c share. Each reader looks at the bytes from @i
 * on, says what it knows, and tells how many bytes that was; 0: not mine.
 */
#ifndef HEARTH_VOICE_SAY_H
#define HEARTH_VOICE_SAY_H

#include <ctype.h>
#include <stddef.h>
#include <stdint.h>

#include "voice/number.h"

struct say {
	const char *s;
	size_t n;
	size_t i;
	struct words out;
	char last[24];      /* the last word read, lower case: context for years and dates */
};

/* -- bytes (speak.c) -- */

static inline int say_digit(const struct say *c, size_t i) { return i < c->n && isdigit((unsigned char)c->s[i]); }
int say_alpha(const struct say *c, size_t i);                            /* a byte of a letter, of any alphabet */
int say_at(const struct say *c, size_t i, const char *lit);              /* in any case */
size_t say_digits_at(const struct say *c, size_t i);
uint64_t say_value_at(const struct say *c, size_t i, size_t len);

/* -- calendar and clock (say_date.c) -- */

extern const char *const say_months[12];
extern const char *const say_days[7];                                    /* from Monday */

int say_month_of(const char *w, size_t len);                             /* 1..12 by name or short form, or 0 */
char say_half_day(const struct say *c, size_t i, size_t *ret_len);       /* am, pm */
void say_half(struct say *c, char half);
size_t say_read_date(struct say *c, size_t i);
size_t say_read_time(struct say *c, size_t i);

/* -- numbers (say_number.c) -- */

struct figure {
	int minus;
	uint64_t whole;
	size_t n_whole;       /* digits of it */
	int leading_zero;
	int too_long;
	const char *frac;     /* digits behind the point, or NULL */
	size_t n_frac;
	size_t len;           /* bytes */
	size_t at;            /* of its first digit */
};

size_t say_read_figure(const struct say *c, size_t i, struct figure *f); /* says nothing yet */
void say_figure(struct say *c, const struct figure *f);
int say_is_one(const struct figure *f);
size_t say_read_vulgar(struct say *c, size_t i, int after_number);       /* one half, one sign */
size_t say_read_number(struct say *c, size_t i);                         /* whatever begins with a digit or a sign */

/* -- units and money (say_unit.c) -- */

struct currency {
	const char *sign, *one, *many, *cent, *cents;    /* no cents: NULL */
};

extern const struct currency say_currencies[5];

size_t say_read_unit(struct say *c, size_t i, int one);                  /* behind a number; a space may lie between */
int say_money_at(const struct say *c, size_t i);                         /* which currency's sign, or -1 */
void say_money(struct say *c, const struct figure *f, int k);
size_t say_read_scale(struct say *c, size_t i);                          /* " million" */
size_t say_read_money(struct say *c, size_t i);

#endif
