// SPDX-License-Identifier: MIT
#include "home/priv.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
	const char *name;
	const char *attributes[6];
} domains[HOME_DOMAINS] = {
	[HOME_LIGHT] = { "light", { "brightness", "color", "color_temp" } },
	[HOME_SWITCH] = { "switch", { NULL } },
	[HOME_FAN] = { "fan", { "percentage" } },
	[HOME_COVER] = { "cover", { "position" } },
	[HOME_CLIMATE] = { "climate", { "temperature", "current_temperature", "humidity" } },
	[HOME_LOCK] = { "lock", { NULL } },
	[HOME_MEDIA_PLAYER] = { "media_player", { "volume", "muted", "media_title", "source" } },
	[HOME_VACUUM] = { "vacuum", { "battery" } },
	[HOME_SCENE] = { "scene", { NULL } },
	[HOME_SCRIPT] = { "script", { NULL } },
	[HOME_TODO] = { "todo", { "items" } },
	[HOME_SENSOR] = { "sensor", { "unit" } },
	[HOME_BINARY_SENSOR] = { "binary_sensor", { NULL } },
	[HOME_LAWN_MOWER] = { "lawn_mower", { "battery" } },
};

const char *home_domain_name(enum home_domain domain)
{
	return (unsigned int)domain < HOME_DOMAINS ? domains[domain].name : "?";
}

const char *const *home_attributes(enum home_domain domain)
{
	return domains[domain].attributes;
}

static void free_names(char **names, size_t n)
{
	while (n)
		free(names[--n]);
	free(names);
}

void home_free(struct home *home)
{
	size_t i;

	if (!home)
		return;
	for (i = 0; i < home->n_floors; i++) {
		free(home->floors[i].name);
		free_names(home->floors[i].aliases, home->floors[i].n_aliases);
		home_told_names_free(&home->floors[i].told);
	}
	for (i = 0; i < home->n_areas; i++) {
		free(home->areas[i].name);
		free(home->areas[i].floor);
		free_names(home->areas[i].aliases, home->areas[i].n_aliases);
		home_told_names_free(&home->areas[i].told);
	}
	for (i = 0; i < home->n_entities; i++) {
		free(home->entities[i].name);
		free_names(home->entities[i].aliases, home->entities[i].n_aliases);
		home_told_names_free(&home->entities[i].told);
		free((char *)home->entities[i].device_class);
		json_decref(home->entities[i].state);
	}
	for (i = 0; i < home->n_timers; i++) {
		free(home->timers[i].name);
		free(home->timers[i].command);
	}
	free(home->floors);
	free(home->areas);
	free(home->entities);
	free(home);
}

size_t home_n_entities(const struct home *home) { return home->n_entities; }
const struct home_entity *home_entity(const struct home *home, size_t i) { return &home->entities[i]; }
size_t home_n_areas(const struct home *home) { return home->n_areas; }
const struct home_area *home_area(const struct home *home, size_t i) { return &home->areas[i]; }
size_t home_n_floors(const struct home *home) { return home->n_floors; }
const struct home_floor *home_floor(const struct home *home, size_t i) { return &home->floors[i]; }
const char *home_temperature_unit(const struct home *home) { return home->fahrenheit ? "fahrenheit" : "celsius"; }

json_t *home_state(const struct home *home)
{
	json_t *all = json_array();
	size_t i;

	for (i = 0; i < home->n_entities; i++) {
		const struct home_entity *e = &home->entities[i];

		json_array_append_new(all, json_pack("{s:s, s:s, s:s?, s:O}", "name", e->name, "domain",
			home_domain_name(e->domain), "area", e->area ? e->area->name : NULL, "state", e->state));
	}
	return all;
}

/* -- names -- */

static const char *skip(const char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	return s;
}

int home_same_name(const char *a, const char *b)
{
	a = skip(a), b = skip(b);
	if (!strncasecmp(a, "the ", 4))
		a = skip(a + 4);
	if (!strncasecmp(b, "the ", 4))
		b = skip(b + 4);
	for (;;) {
		int sa = isspace((unsigned char)*a), sb = isspace((unsigned char)*b);

		if (sa || sb) {
			a = skip(a), b = skip(b);
			if (*a && *b && (!sa || !sb))
				return 0;
		}
		if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
			return 0;
		if (!*a)
			return 1;
		a++, b++;
	}
}

int home_called(const char *name, char *const *aliases, size_t n_aliases, const char *said)
{
	size_t i;

	if (home_same_name(name, said))
		return 1;
	for (i = 0; i < n_aliases; i++)
		if (home_same_name(aliases[i], said))
			return 1;
	return 0;
}

const struct home_area *home_area_called(const struct home *home, const char *said)
{
	size_t i;

	for (i = 0; i < home->n_areas; i++)
		if (home_called(home->areas[i].name, home->areas[i].aliases, home->areas[i].n_aliases, said))
			return &home->areas[i];
	return NULL;
}

/* -- slots -- */

const char *home_slot(const json_t *args, const char *key)
{
	const char *s = json_string_value(json_object_get(args, key));

	return s && *s ? s : NULL;
}

int home_number(const json_t *args, const char *key, double min, double max, double *ret, char *why, size_t n_why)
{
	const json_t *v = json_object_get(args, key);
	const char *s = json_string_value(v);
	double d;

	if (!v || json_is_null(v) || (s && !*s))
		return 0;
	if (s) {
		char *end;

		d = strtod(s, &end);
		if (end == s || (*end && strcmp(end, "%"))) {
			snprintf(why, n_why, "%s must be a number, not \"%.40s\"", key, s);
			return -1;
		}
	} else if (json_is_number(v)) {
		d = json_number_value(v);
	} else {
		snprintf(why, n_why, "%s must be a number", key);
		return -1;
	}
	if (!(d >= min && d <= max)) {
		snprintf(why, n_why, "%s must be from %g to %g", key, min, max);
		return -1;
	}
	*ret = d;
	return 1;
}

json_t *home_json_number(double v)
{
	return v == (double)(json_int_t)v ? json_integer((json_int_t)v) : json_real(v);
}

json_t *home_fail(const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return json_pack("{s:b, s:s}", "success", 0, "error", text);
}

/* Is @said the value of a slot that may be one string or a list of them? */
static int slot_has(const json_t *slot, const char *value)
{
	size_t i;

	if (json_is_string(slot))
		return !strcasecmp(json_string_value(slot), value);
	for (i = 0; i < json_array_size(slot); i++)
		if (json_is_string(json_array_get(slot, i)) && !strcasecmp(json_string_value(json_array_get(slot, i)), value))
			return 1;
	return 0;
}

static int slot_given(const json_t *slot)
{
	return (json_is_string(slot) && json_string_length(slot)) || json_array_size(slot);
}

static int domain_of(const char *name)
{
	int d;

	for (d = 0; d < HOME_DOMAINS; d++)
		if (!strcasecmp(domains[d].name, name))
			return d;
	return -1;
}

size_t home_select(const struct home *home, const json_t *args, unsigned int allowed, int need_slot,
		   size_t *ret, char *why, size_t n_why)
{
	const char *name = home_slot(args, "name"), *area = home_slot(args, "area"), *floor = home_slot(args, "floor");
	const json_t *domain = json_object_get(args, "domain"), *cls = json_object_get(args, "device_class");
	const unsigned int everyday = 1u << HOME_LIGHT | 1u << HOME_SWITCH | 1u << HOME_FAN | 1u << HOME_MEDIA_PLAYER;
	size_t i, n = 0, named = 0;

	if (need_slot && !name && !area && !floor && !slot_given(domain) && !slot_given(cls)) {
		snprintf(why, n_why, "no device was named");
		return 0;
	}
	if (json_is_string(domain) && slot_given(domain) && domain_of(json_string_value(domain)) < 0) {
		snprintf(why, n_why, "no domain called \"%.60s\"", json_string_value(domain));
		return 0;
	}
	if (area) {
		for (i = 0; i < home->n_areas; i++)
			if (home_is(&home->areas[i], area))
				break;
		if (i == home->n_areas) {
			snprintf(why, n_why, "no area called \"%.60s\"", area);
			return 0;
		}
	}
	if (floor) {
		for (i = 0; i < home->n_floors; i++)
			if (home_is(&home->floors[i], floor))
				break;
		if (i == home->n_floors) {
			snprintf(why, n_why, "no floor called \"%.60s\"", floor);
			return 0;
		}
		floor = home->floors[i].name;
	}
	/*
	 * A room alone means what people leave on when they leave it: it must not
	 * unlock a door or open a garage.
	 */
	if (!name && !slot_given(domain) && !slot_given(cls) && (area || floor) && allowed != ~0u && (allowed & everyday))
		allowed &= everyday;
	for (i = 0; i < home->n_entities; i++) {
		const struct home_entity *e = &home->entities[i];

		if (name) {
			if (!home_is(e, name))
				continue;
			named++;
		}
		if (area && !(e->area && home_is(e->area, area)))
			continue;
		if (floor && !(e->area && e->area->floor && home_same_name(e->area->floor, floor)))
			continue;
		if (slot_given(domain) && !slot_has(domain, home_domain_name(e->domain)))
			continue;
		if (slot_given(cls) && !slot_has(cls, e->device_class))
			continue;
		if (!(allowed & 1u << e->domain))
			continue;
		ret[n++] = i;
	}
	if (n > 1 && name) {
		/* A whole name beats an alias; else it must be told which. */
		size_t whole = 0, at = 0;

		for (i = 0; i < n; i++)
			if (home_same_name(home->entities[ret[i]].name, name) || home_same_name(home->entities[ret[i]].told.name, name))
				whole++, at = ret[i];
		if (whole == 1) {
			ret[0] = at;
			return 1;
		}
		snprintf(why, n_why, "%zu devices are called \"%.60s\"; name the area", n, name);
		return 0;
	}
	if (n)
		return n;
	if (name && !named)
		snprintf(why, n_why, "no device called \"%.60s\"", name);
	else if (name)
		snprintf(why, n_why, "\"%.60s\" cannot do that, or is not there", name);
	else
		snprintf(why, n_why, "no device there can do that");
	return 0;
}
