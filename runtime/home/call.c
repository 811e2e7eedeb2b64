// SPDX-License-Identifier: MIT
/*
 * Tool calls. One table says which domains a tool acts on and what it sets;
 * every call first finds its entities and checks its numbers, and only then
 * changes anything.
 */
#include "home/priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define BIT(d) (1u << (d))
#define WHY 200

struct act {
	struct home *home;
	const json_t *args;
	json_t *changes;
	const char *tool;
	double number;          /* the slot that the tool is about */
	char why[WHY];
};

static void set(json_t *state, const char *key, json_t *value)
{
	json_object_set_new(state, key, value);
}

static const char *state_of(const struct home_entity *e)
{
	const char *s = json_string_value(json_object_get(e->state, "state"));

	return s ? s : "";
}

/* What each tool does to one entity's state, which is a copy. 0, or -1 with @a->why when it cannot. */
typedef int (*apply_fn)(struct act *a, const struct home_entity *e, json_t *state);

static int turn_on(struct act *a, const struct home_entity *e, json_t *state)
{
	switch (e->domain) {
	case HOME_COVER:
		set(state, "state", json_string("open"));
		set(state, "position", json_integer(100));
		break;
	case HOME_LOCK:
		set(state, "state", json_string("locked"));
		break;
	case HOME_CLIMATE:
		if (!strcmp(state_of(e), "off"))
			set(state, "state", json_string("heat"));
		break;
	case HOME_MEDIA_PLAYER:
		if (!strcmp(state_of(e), "off") || !strcmp(state_of(e), "standby"))
			set(state, "state", json_string("on"));
		break;
	case HOME_FAN:
		if (strcmp(state_of(e), "on") && json_is_number(json_object_get(state, "percentage")))
			set(state, "percentage", json_integer(100));
		set(state, "state", json_string("on"));
		break;
	case HOME_SCENE: case HOME_SCRIPT:
		break; /* started, which is no state */
	default:
		set(state, "state", json_string("on"));
	}
	return 0;
}

static int turn_off(struct act *a, const struct home_entity *e, json_t *state)
{
	switch (e->domain) {
	case HOME_COVER:
		set(state, "state", json_string("closed"));
		set(state, "position", json_integer(0));
		break;
	case HOME_LOCK:
		set(state, "state", json_string("unlocked"));
		break;
	case HOME_FAN:
		set(state, "state", json_string("off"));
		if (json_is_number(json_object_get(state, "percentage")))
			set(state, "percentage", json_integer(0));
		break;
	default:
		set(state, "state", json_string("off"));
	}
	return 0;
}

static int light_set(struct act *a, const struct home_entity *e, json_t *state)
{
	const char *color = home_slot(a->args, "color");
	double v;

	if (home_number(a->args, "brightness", 0, 100, &v, a->why, WHY) == 1) {
		/* Dark is off; the brightness stays for the next time. */
		if (v == 0) {
			set(state, "state", json_string("off"));
			return 0;
		}
		set(state, "brightness", home_json_number(v));
	}
	set(state, "state", json_string("on"));
	if (color) {
		set(state, "color", json_string(color));
		set(state, "color_temp", json_null());
	}
	if (home_number(a->args, "temperature", 1000, 10000, &v, a->why, WHY) == 1) {
		set(state, "color_temp", home_json_number(v));
		set(state, "color", json_null());
	}
	return 0;
}

static int set_position(struct act *a, const struct home_entity *e, json_t *state)
{
	set(state, "state", json_string(a->number == 0 ? "closed" : "open"));
	set(state, "position", home_json_number(a->number));
	return 0;
}

static int fan_speed(struct act *a, const struct home_entity *e, json_t *state)
{
	set(state, "state", json_string(a->number == 0 ? "off" : "on"));
	set(state, "percentage", home_json_number(a->number));
	return 0;
}

static int climate_set(struct act *a, const struct home_entity *e, json_t *state)
{
	set(state, "temperature", home_json_number(a->number));
	if (!strcmp(state_of(e), "off"))
		set(state, "state", json_string("heat"));
	return 0;
}

static int volume_set(struct act *a, const struct home_entity *e, json_t *state)
{
	set(state, "volume", home_json_number(a->number));
	return 0;
}

static int volume_step(struct act *a, const struct home_entity *e, json_t *state)
{
	const json_t *now = json_object_get(e->state, "volume");
	double v = json_number_value(now) + a->number;

	if (!json_is_number(now)) {
		snprintf(a->why, WHY, "the volume of \"%.60s\" is not known", e->told.name);
		return -1;
	}
	/* A knob stops at its ends; the answer says where it stands. */
	set(state, "volume", home_json_number(v < 0 ? 0 : v > 100 ? 100 : v));
	return 0;
}

static int media_pause(struct act *a, const struct home_entity *e, json_t *state)
{
	set(state, "state", json_string("paused"));
	return 0;
}

static int media_play(struct act *a, const struct home_entity *e, json_t *state)
{
	set(state, "state", json_string("playing"));
	return 0;
}

static int media_skip(struct act *a, const struct home_entity *e, json_t *state)
{
	/* What comes next is not known to this home. */
	set(state, "state", json_string("playing"));
	set(state, "media_title", json_null());
	return 0;
}

static int media_mute(struct act *a, const struct home_entity *e, json_t *state)
{
	set(state, "muted", strcmp(a->tool, "HassMediaPlayerMute") ? json_null() : json_true());
	return 0;
}

static int media_search(struct act *a, const struct home_entity *e, json_t *state)
{
	set(state, "state", json_string("playing"));
	set(state, "media_title", json_string(home_slot(a->args, "search_query")));
	return 0;
}

static int vacuum_start(struct act *a, const struct home_entity *e, json_t *state)
{
	set(state, "state", json_string("cleaning"));
	return 0;
}

static int vacuum_return(struct act *a, const struct home_entity *e, json_t *state)
{
	set(state, "state", json_string("returning"));
	return 0;
}

static int mower_dock(struct act *a, const struct home_entity *e, json_t *state)
{
	set(state, "state", json_string("docked"));
	return 0;
}

static int mower_start(struct act *a, const struct home_entity *e, json_t *state)
{
	set(state, "state", json_string("mowing"));
	return 0;
}

#define SWITCHED (BIT(HOME_LIGHT) | BIT(HOME_SWITCH) | BIT(HOME_FAN) | BIT(HOME_COVER) | BIT(HOME_LOCK) | \
		  BIT(HOME_MEDIA_PLAYER) | BIT(HOME_CLIMATE))
#define PLACE "name", "area", "floor"

static const struct tool {
	const char *name;
	unsigned int domains;
	apply_fn apply;
	const char *number;        /* slot that must be there, a number */
	double min, max;
	const char *text;          /* slot that must be there, a text */
	const char *when;          /* without a place: the devices in this state */
	bool every;                /* without a place: all of them ("all lights to 20 percent": there is no other way to say it) */
	const char *slots[9];
} tools[] = {
	{ "HassTurnOn", SWITCHED | BIT(HOME_SCENE) | BIT(HOME_SCRIPT), turn_on, .slots = { PLACE, "domain", "device_class" } },
	{ "HassTurnOff", SWITCHED, turn_off, .slots = { PLACE, "domain", "device_class" } },
	{ "HassLightSet", BIT(HOME_LIGHT), light_set, .every = true, .slots = { PLACE, "domain", "brightness", "color", "temperature" } },
	{ "HassSetPosition", BIT(HOME_COVER), set_position, "position", 0, 100, .slots = { PLACE, "domain", "device_class" } },
	{ "HassFanSetSpeed", BIT(HOME_FAN), fan_speed, "percentage", 0, 100, .every = true, .slots = { PLACE, "domain" } },
	{ "HassClimateSetTemperature", BIT(HOME_CLIMATE), climate_set, "temperature", -1, -1, .every = true, .slots = { PLACE, "domain" } },
	{ "HassMediaPause", BIT(HOME_MEDIA_PLAYER), media_pause, .when = "playing", .slots = { PLACE } },
	{ "HassMediaUnpause", BIT(HOME_MEDIA_PLAYER), media_play, .when = "paused", .slots = { PLACE } },
	{ "HassMediaNext", BIT(HOME_MEDIA_PLAYER), media_skip, .when = "playing", .slots = { PLACE } },
	{ "HassMediaPrevious", BIT(HOME_MEDIA_PLAYER), media_skip, .when = "playing", .slots = { PLACE } },
	{ "HassMediaPlayerMute", BIT(HOME_MEDIA_PLAYER), media_mute, .when = "playing", .slots = { PLACE } },
	{ "HassMediaPlayerUnmute", BIT(HOME_MEDIA_PLAYER), media_mute, .when = "playing", .slots = { PLACE } },
	{ "HassSetVolume", BIT(HOME_MEDIA_PLAYER), volume_set, "volume_level", 0, 100, .when = "playing", .slots = { PLACE } },
	{ "HassSetVolumeRelative", BIT(HOME_MEDIA_PLAYER), volume_step, "volume_step", -100, 100, .when = "playing", .slots = { PLACE } },
	{ "HassMediaSearchAndPlay", BIT(HOME_MEDIA_PLAYER), media_search, .text = "search_query", .when = "", .slots = { PLACE, "media_class" } },
	{ "HassVacuumStart", BIT(HOME_VACUUM), vacuum_start, .when = "", .slots = { PLACE } },
	{ "HassVacuumReturnToBase", BIT(HOME_VACUUM), vacuum_return, .when = "", .slots = { PLACE } },
	{ "HassLawnMowerStartMowing", BIT(HOME_LAWN_MOWER), mower_start, .when = "", .slots = { PLACE } },
	{ "HassLawnMowerDock", BIT(HOME_LAWN_MOWER), mower_dock, .when = "", .slots = { PLACE } },
};

/* "changed" of the answer: name and state. */
static json_t *changed_entry(const struct home_entity *e, const json_t *to)
{
	json_t *entry = json_pack("{s:s}", "name", e->told.name);

	if (json_object_get(to, "state"))
		json_object_set(entry, "state", json_object_get(to, "state"));
	return entry;
}

/* {"name", "from", "to"}: only the keys that differ, for people. */
static void note_change(json_t *changes, const char *name, const json_t *from, const json_t *to)
{
	json_t *a = json_object(), *b = json_object(), *v;
	const char *key;

	json_object_foreach((json_t *)to, key, v) {
		json_t *old = json_object_get(from, key);

		if (!old || !json_equal(old, v)) {
			json_object_set(a, key, old ? old : json_null());
			json_object_set(b, key, v);
		}
	}
	json_array_append_new(changes, json_pack("{s:s, s:o, s:o}", "name", name, "from", a, "to", b));
}

static json_t *check_slots(const json_t *args, const char *tool, const char *const *slots, const char *more)
{
	const char *key;
	const json_t *v;
	int i;

	json_object_foreach((json_t *)args, key, v) {
		for (i = 0; slots[i] && strcmp(slots[i], key); i++)
			;
		if (!slots[i] && (!more || strcmp(more, key)))
			return home_fail("%s has no argument \"%.60s\"", tool, key);
	}
	return NULL;
}

static json_t *act_on(struct act *a, const struct tool *t)
{
	size_t *who = calloc(a->home->n_entities, sizeof(*who)), n, i;
	json_t **to = calloc(a->home->n_entities, sizeof(*to));
	json_t *changed = json_array(), *already = json_array(), *out = NULL;
	double min = t->min, max = t->max;

	if (!who || !to)
		out = home_fail("out of memory");
	if (!out)
		out = check_slots(a->args, t->name, t->slots, t->number ? t->number : t->text);
	if (!out && t->number) {
		if (!strcmp(t->name, "HassClimateSetTemperature"))
			min = a->home->fahrenheit ? 40 : 5, max = a->home->fahrenheit ? 95 : 35;
		i = (size_t)home_number(a->args, t->number, min, max, &a->number, a->why, WHY);
		if (i != 1)
			out = i ? home_fail("%s", a->why) : home_fail("%s is missing", t->number);
	}
	if (!out && t->text && !home_slot(a->args, t->text))
		out = home_fail("%s is missing", t->text);
	if (!out && t->apply == light_set) {
		double v;
		int b = home_number(a->args, "brightness", 0, 100, &v, a->why, WHY), k;

		k = b < 0 ? 0 : home_number(a->args, "temperature", 1000, 10000, &v, a->why, WHY);
		if (b < 0 || k < 0)
			out = home_fail("%s", a->why);
		else if (!b && !k && !home_slot(a->args, "color"))
			out = home_fail("brightness, color or temperature is missing");
	}
	if (out)
		goto done;
	n = home_select(a->home, a->args, t->domains, t->apply == turn_on || t->apply == turn_off, who, a->why, WHY);
	/* Nobody said which: those that are in the state that the wish is about, if any, else the only one. */
	if (n > 1 && !t->every && !home_slot(a->args, "name") && !home_slot(a->args, "area") && !home_slot(a->args, "floor") &&
	    !json_object_get(a->args, "domain") && !json_object_get(a->args, "device_class")) {
		size_t k = 0;

		for (i = 0; i < n && t->when && *t->when; i++)
			if (!strcmp(state_of(&a->home->entities[who[i]]), t->when))
				who[k++] = who[i];
		n = k;
		if (!n)
			snprintf(a->why, WHY, "it was not said which one");
	}
	if (!n) {
		out = home_fail("%s", a->why);
		goto done;
	}
	for (i = 0; i < n; i++) {
		const struct home_entity *e = &a->home->entities[who[i]];

		if (n == 1 && !strcmp(state_of(e), "unavailable")) {
			out = home_fail("%s is not available", e->told.name);
			goto done;
		}
		to[i] = json_deep_copy(e->state);
		if (!to[i] || t->apply(a, e, to[i])) {
			out = home_fail("%s", to[i] ? a->why : "out of memory");
			goto done;
		}
	}
	/* Nothing can fail from here on. */
	for (i = 0; i < n; i++) {
		struct home_entity *e = &a->home->entities[who[i]];

		if (e->domain == HOME_SCENE || e->domain == HOME_SCRIPT) {
			json_t *to_people = json_pack("{s:s}", "state", e->domain == HOME_SCENE ? "activated" : "started");

			json_array_append_new(changed, changed_entry(e, to[i]));
			note_change(a->changes, e->name, e->state, to_people);
			json_decref(to_people);
		} else if (json_equal(e->state, to[i]) && t->apply != media_skip && t->apply != media_search) {
			json_array_append_new(already, json_string(e->told.name));
		} else {
			json_array_append_new(changed, changed_entry(e, to[i]));
			note_change(a->changes, e->name, e->state, to[i]);
			json_decref(e->state);
			e->state = to[i];
			to[i] = NULL;
		}
	}
	out = json_pack("{s:b, s:O}", "success", 1, "changed", changed);
	if (json_array_size(already))
		json_object_set(out, "already", already);
done:
	for (i = 0; to && i < a->home->n_entities; i++)
		json_decref(to[i]);
	free(to);
	free(who);
	json_decref(changed);
	json_decref(already);
	return out;
}

static json_t *clean_area(struct act *a)
{
	static const char *const slots[] = { "area", "name", NULL };
	const char *area = home_slot(a->args, "area");
	struct home_entity *e = NULL;
	json_t *out = check_slots(a->args, a->tool, slots, NULL), *to;
	size_t i;

	if (out)
		return out;
	if (!area)
		return home_fail("area is missing");
	for (i = 0; i < a->home->n_areas; i++)
		if (home_is(&a->home->areas[i], area))
			break;
	if (i == a->home->n_areas)
		return home_fail("no area called \"%.60s\"", area);
	area = a->home->areas[i].name;
	for (i = 0; i < a->home->n_entities && !e; i++)
		if (a->home->entities[i].domain == HOME_VACUUM &&
		    (!home_slot(a->args, "name") || home_is(&a->home->entities[i], home_slot(a->args, "name"))))
			e = &a->home->entities[i];
	if (!e)
		return home_fail("there is no vacuum cleaner");
	to = json_deep_copy(e->state);
	set(to, "state", json_string("cleaning"));
	out = json_pack("{s:b, s:[{s:s, s:s}]}", "success", 1, "changed", "name", e->told.name, "state", "cleaning");
	set(to, "area", json_string(area)); /* for people; the state itself has no such attribute */
	note_change(a->changes, e->name, e->state, to);
	json_object_del(to, "area");
	json_decref(e->state);
	e->state = to;
	return out;
}

/* HassListAddItem, CompleteItem, RemoveItem and the two of the shopping list. */
static json_t *list_call(struct act *a)
{
	static const char *const slots[] = { "item", "name", NULL };
	const char *item = home_slot(a->args, "item"), *name = home_slot(a->args, "name");
	int add = strstr(a->tool, "AddItem") != NULL, shopping = strstr(a->tool, "Shopping") != NULL;
	json_t *out = check_slots(a->args, a->tool, slots, NULL), *to, *items;
	struct home_entity *e = NULL;
	size_t i, n = 0;

	if (out)
		return out;
	if (!item)
		return home_fail("item is missing");
	for (i = 0; i < a->home->n_entities; i++) {
		struct home_entity *c = &a->home->entities[i];

		if (c->domain != HOME_TODO)
			continue;
		if (name ? home_is(c, name) : !shopping || home_is(c, "shopping list")) {
			e = c;
			n++;
		}
	}
	if (!n && name)
		return home_fail("no list called \"%.60s\"", name);
	if (!n)
		return home_fail("there is no list");
	if (n > 1)
		return home_fail("it was not said which list");
	to = json_deep_copy(e->state);
	items = json_object_get(to, "items");
	for (i = 0; i < json_array_size(items); i++)
		if (home_same_name(json_string_value(json_array_get(items, i)), item))
			break;
	if (!add && i == json_array_size(items)) {
		json_decref(to);
		return home_fail("\"%.60s\" is not on %.60s", item, e->told.name);
	}
	if (add)
		json_array_append_new(items, json_string(item));
	else
		json_array_remove(items, i);
	set(to, "state", json_sprintf("%zu", json_array_size(items)));
	note_change(a->changes, e->name, e->state, to);
	json_decref(e->state);
	e->state = to;
	return json_pack("{s:b, s:s, s:s}", "success", 1, "list", e->told.name, "item", item);
}

static json_t *live_context(struct act *a)
{
	static const char *const slots[] = { PLACE, "domain", "device_class", NULL };
	size_t *who = calloc(a->home->n_entities, sizeof(*who)), n, i;
	json_t *out = check_slots(a->args, a->tool, slots, NULL), *states;

	if (!out && !who)
		out = home_fail("out of memory");
	if (out) {
		free(who);
		return out;
	}
	n = home_select(a->home, a->args, ~0u, 0, who, a->why, WHY);
	states = json_array();
	for (i = 0; i < n; i++) {
		const struct home_entity *e = &a->home->entities[who[i]];
		json_t *entry, *v;
		const char *key;

		/* Scenes and scripts have no state to tell. */
		if (!json_object_size(e->state))
			continue;
		entry = json_pack("{s:s}", "name", e->told.name);
		json_object_foreach(e->state, key, v)
			if (!json_is_null(v))
				json_object_set(entry, key, v);
		json_array_append_new(states, entry);
	}
	free(who);
	if (!n) {
		json_decref(states);
		return home_fail("%s", a->why);
	}
	return json_pack("{s:b, s:o}", "success", 1, "states", states);
}

void home_now(const struct home *home, struct tm *ret_now)
{
	time_t now;

	memset(ret_now, 0, sizeof(*ret_now));
	if (home->has_clock) {
		ret_now->tm_year = home->year - 1900, ret_now->tm_mon = home->month - 1, ret_now->tm_mday = home->day;
		ret_now->tm_hour = home->hour, ret_now->tm_min = home->minute;
		/* timegm() finds the weekday and knows no time zone. */
		now = timegm(ret_now);
		gmtime_r(&now, ret_now);
	} else {
		now = time(NULL);
		localtime_r(&now, ret_now);
	}
}

static json_t *date_time(struct act *a)
{
	static const char *const none[] = { NULL };
	char date[32], day[32], clock[32];
	json_t *out = check_slots(a->args, a->tool, none, NULL);
	struct tm tm;

	if (out)
		return out;
	home_now(a->home, &tm);
	strftime(date, sizeof(date), "%Y-%m-%d", &tm);
	strftime(clock, sizeof(clock), "%H:%M", &tm);
	snprintf(day, sizeof(day), "%s", (const char *const[]){ "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday" }[tm.tm_wday]);
	return json_pack("{s:b, s:s, s:s, s:s}", "success", 1, "date", date, "weekday", day, "time", clock);
}

static json_t *broadcast(struct act *a)
{
	static const char *const slots[] = { "message", NULL };
	json_t *out = check_slots(a->args, a->tool, slots, NULL);

	if (out)
		return out;
	if (!home_slot(a->args, "message"))
		return home_fail("message is missing");
	json_array_append_new(a->changes, json_pack("{s:s, s:{}, s:{s:s}}", "name", "broadcast", "from", "to", "message", home_slot(a->args, "message")));
	return json_pack("{s:b}", "success", 1);
}

int home_call(struct home *home, const char *tool, const json_t *args,
	      json_t **ret_result, json_t **ret_changes, struct hearth_err *err)
{
	struct act a = { .home = home, .args = args, .tool = tool };
	json_t *out = NULL;
	size_t i;

	if (!json_is_object(args))
		return err_set(err, -EINVAL, "the arguments of %s are no JSON object", tool);
	a.changes = json_array();
	if (!a.changes)
		return err_set(err, -ENOMEM, "out of memory");
	for (i = 0; i < sizeof(tools) / sizeof(tools[0]) && !out; i++)
		if (!strcmp(tools[i].name, tool))
			out = act_on(&a, &tools[i]);
	if (!out && !strcmp(tool, "HassVacuumCleanArea"))
		out = clean_area(&a);
	else if (!out && (!strcmp(tool, "HassListAddItem") || !strcmp(tool, "HassListCompleteItem") || !strcmp(tool, "HassListRemoveItem") ||
			  !strcmp(tool, "HassShoppingListAddItem") || !strcmp(tool, "HassShoppingListCompleteItem")))
		out = list_call(&a);
	else if (!out && !strcmp(tool, "GetLiveContext"))
		out = live_context(&a);
	else if (!out && !strcmp(tool, "GetDateTime"))
		out = date_time(&a);
	else if (!out && !strcmp(tool, "HassBroadcast"))
		out = broadcast(&a);
	if (!out)
		out = home_timer_call(home, tool, args, a.changes);
	if (!out)
		out = home_fail("no tool called \"%.60s\"", tool);
	*ret_result = out;
	*ret_changes = a.changes;
	return 0;
}
