/* SPDX-License-Identifier: MIT */
/*
 * A small home, described by a YAML file and simulated in memory: the world
 * that tool calls change. The file:
 *
 *     floors:                          # may be left out; needed only for their aliases
 *       - name: downstairs
 *         aliases: [ground floor]
 *     temperature_unit: celsius        # or fahrenheit; celsius when not given
 *     areas:
 *       - name: kitchen
 *         floor: downstairs          # may be left out
 *         aliases: [galley]          # may be left out
 *     entities:
 *       - name: kitchen light        # what people call it; unique in its area
 *         aliases: [ceiling light]
 *         domain: light              # see home_domains below
 *         area: kitchen              # one of areas
 *         state: "off"
 *         brightness: 80             # attributes of the domain
 *       - name: thermostat
 *         domain: climate
 *         state: heat
 *         temperature: 19.5          # the set point
 *         current_temperature: 18
 *       - name: shopping list
 *         domain: todo
 *         items: [milk, eggs]
 *     clock: 2026-11-29T18:30        # fixed time for GetDateTime; absent: real time
 *
 * Tool calls are Home Assistant's intents (HassTurnOn, HassLightSet, ...) with
 * its slots. The answer is what the model reads as tool response, compact JSON
 * with keys in this order:
 *
 *     {"success":true,"changed":[{"name":"kitchen light","state":"on"}]}
 *     {"success":true,"changed":[],"already":["kitchen light"]}
 *     {"success":true,"states":[{"name":"front door","state":"locked"}]}
 *     {"success":true,"timers":[{"name":"pasta","seconds":300,"left":300,"state":"running"}]}
 *     {"success":true,"list":"shopping list","item":"milk"}
 *     {"success":true,"date":"2026-11-29","weekday":"Sunday","time":"18:30"}
 *     {"success":false,"error":"no device called \"garage lamp\""}
 *
 * "changed" lists name and state (a scene has none); a cancelled timer comes
 * back with the state "cancelled", HassCancelAllTimers answers "cancelled":n.
 * A call that fails changes nothing.
 */
#ifndef HEARTH_HOME_HOME_H
#define HEARTH_HOME_HOME_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <jansson.h>

#include "base/err.h"

enum home_domain {
	HOME_LIGHT, HOME_SWITCH, HOME_FAN, HOME_COVER, HOME_CLIMATE, HOME_LOCK,
	HOME_MEDIA_PLAYER, HOME_VACUUM, HOME_SCENE, HOME_SCRIPT, HOME_TODO,
	HOME_SENSOR, HOME_BINARY_SENSOR, HOME_LAWN_MOWER,
	HOME_DOMAINS,
};

/*
 * The same names as the model is told them (docs/home-prompt.md, section 2): in
 * characters that it was taught, and each of one thing alone.
 */
struct home_told_names {
	char *name;
	char **aliases;        /* may be fewer */
	size_t n_aliases;
};

struct home_floor {
	char *name;
	char **aliases;
	size_t n_aliases;
	struct home_told_names told;
};

struct home_area {
	char *name;
	char *floor;           /* NULL when not given */
	char **aliases;
	size_t n_aliases;
	struct home_told_names told;
};

struct home_entity {
	char *name;
	char **aliases;
	size_t n_aliases;
	struct home_told_names told;
	enum home_domain domain;
	const char *device_class; /* "" when not given: "blind", "curtain", "garage", "outlet", ... */
	const struct home_area *area; /* NULL: nowhere in particular */
	json_t *state;         /* object: "state" and the domain's attributes, in a fixed order */
};

struct home;

const char *home_domain_name(enum home_domain domain); /* "media_player" */

/* Reads the file; an error says file, line, column and what is wrong there. */
int home_load(const char *path, struct home **ret_home, struct hearth_err *err);

/* The same from memory; @name is what errors call it. */
int home_parse(const char *name, const char *yaml, size_t len, struct home **ret_home, struct hearth_err *err);
void home_free(struct home *home);

size_t home_n_entities(const struct home *home);
const struct home_entity *home_entity(const struct home *home, size_t i); /* in file order */
size_t home_n_areas(const struct home *home);
const struct home_area *home_area(const struct home *home, size_t i);
/* By its name or an alias, as people say them; NULL: there is none. */
const struct home_area *home_area_called(const struct home *home, const char *said);

/* The floors: those listed under floors, then those that only an area names, in file order. */
size_t home_n_floors(const struct home *home);
const struct home_floor *home_floor(const struct home *home, size_t i);
const char *home_temperature_unit(const struct home *home); /* "celsius" or "fahrenheit" */

/*
 * Carries out one tool call. Returns 0 whenever the home could answer, also
 * with "success":false: that is the model's to read. @ret_changes lists what
 * changed, for people: [{"name":..., "from":{...}, "to":{...}}], empty when
 * nothing did. Both are new references. -EINVAL when @args is no object.
 * Names may be the home's own or as they are told; the result has them as they are
 * told, the changes as the file has them.
 */
int home_call(struct home *home, const char *tool, const json_t *args,
	      json_t **ret_result, json_t **ret_changes, struct hearth_err *err);

/* @text, which somebody said, with the names in it as the model is told them; the caller's to free(). -ENOMEM. */
int home_said(const struct home *home, const char *text, char **ret);

/*
 * The arguments of a call with the names as the home's file has them, for who knows
 * the home by those; a new reference. -ENOENT, and a sentence to speak in @why, when
 * one of them is none of the home's; -ENOMEM.
 */
int home_own_args(const struct home *home, const char *tool, const json_t *args, json_t **ret, char *why, size_t n_why);

/*
 * What is spoken after a call whose result is @result, and that failed: one short
 * sentence, without a word of the model's.
 */
void home_sorry(const json_t *result, char *text, size_t n);

/* The home's time: its fixed clock, or the local time. */
void home_now(const struct home *home, struct tm *ret_now);

/* The whole state, [{"name":..., "domain":..., "area":..., "state":{...}}]; new reference. */
json_t *home_state(const struct home *home);

#endif
