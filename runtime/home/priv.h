/* SPDX-License-Identifier: MIT */
/* Inside the home: its parts, and what the files of this folder share. */
#ifndef HEARTH_HOME_PRIV_H
#define HEARTH_HOME_PRIV_H

#include <ctype.h>
#include <stdbool.h>

#include "home/home.h"

#define HOME_TIMERS 32

struct home_timer {
	char *name;            /* NULL: nobody named it */
	char *command;         /* what is said when it ends, or NULL */
	int64_t seconds;       /* as started, and changed since */
	int64_t start_seconds; /* as started */
	int64_t end_ns;        /* running: when it ends, monotonic */
	int64_t left_ns;       /* paused: what is left */
	int paused;
};

struct home {
	struct home_floor *floors;
	size_t n_floors;
	struct home_area *areas;
	size_t n_areas;
	struct home_entity *entities;
	size_t n_entities;
	int fahrenheit;
	int has_clock;
	int year, month, day, hour, minute; /* of the fixed clock */
	struct home_timer timers[HOME_TIMERS];
	size_t n_timers;
};

/* The attributes of a domain, in their order; NULL at the end. "state" is not among them. */
const char *const *home_attributes(enum home_domain domain);

/* Equal as people say names: case, spaces and a leading "the" do not count. */
int home_same_name(const char *a, const char *b);
int home_called(const char *name, char *const *aliases, size_t n_aliases, const char *said);
/* The same of an entity, area or floor: by its own names, or as they are told. */
#define home_is(x, said) (home_called((x)->name, (x)->aliases, (x)->n_aliases, said) || \
			  home_called((x)->told.name, (x)->told.aliases, (x)->told.n_aliases, said))

/* A byte of a letter or digit, as far as names go. */
static inline bool home_in_word(char c)
{
	return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* @name in characters that were taught, to be freed. *ret_lost: it has letters that cannot be told. NULL: no memory. */
char *home_taught_form(const char *name, bool *ret_lost);

/* Fills in .told everywhere, once all names are there. -ENOMEM. */
int home_tell_names(struct home *home);
void home_told_names_free(struct home_told_names *told);

/*
 * The entities that the slots name, area, floor, domain and device_class of
 * @args choose among those whose domain is in @domains (bits). Returns how many, in
 * @ret (room for all). 0 and a sentence in @why when there are none or when it is not
 * clear which.
 */
size_t home_select(const struct home *home, const json_t *args, unsigned int domains, int need_slot,
		   size_t *ret, char *why, size_t n_why);

/* A string slot, or NULL when it is absent or empty. */
const char *home_slot(const json_t *args, const char *key);

/*
 * A number slot, also as "50" or "50%": 1 when it is there, 0 when not, -1 and a
 * sentence when it is no number or outside @min..@max.
 */
int home_number(const json_t *args, const char *key, double min, double max, double *ret, char *why, size_t n_why);

json_t *home_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A number as JSON: whole ones as integers. */
json_t *home_json_number(double v);

/* The timer tools; NULL when @tool is none of them. */
json_t *home_timer_call(struct home *home, const char *tool, const json_t *args, json_t *changes);

#endif
