// SPDX-License-Identifier: MIT
/* docs/home-prompt.md says what is written here and why; tools/home/prompt.py writes the same bytes. */
#include "home/prompt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIT(d) (1u << (d))
#define SWITCHABLE (BIT(HOME_LIGHT) | BIT(HOME_SWITCH) | BIT(HOME_FAN) | BIT(HOME_COVER) | BIT(HOME_CLIMATE) | \
		    BIT(HOME_LOCK) | BIT(HOME_MEDIA_PLAYER) | BIT(HOME_SCENE) | BIT(HOME_SCRIPT))
#define ALWAYS    (BIT(HOME_DOMAINS))
#define ANY       (BIT(HOME_DOMAINS + 1))
#define TWO_AREAS (BIT(HOME_DOMAINS + 2))
#define MEDIA BIT(HOME_MEDIA_PLAYER)
#define TIMER "start_hours", "start_minutes", "start_seconds", "name"

/* Slots that must be given end in "*". */
static const struct {
	const char *name;
	unsigned int when;
	const char *slots[8];
	const char *about;
} tools[] = {
	{ "HassTurnOn", SWITCHABLE, { "name", "area", "floor", "domain", "device_class" },
	  "Turns on, opens or locks a device, or activates a scene or script." },
	{ "HassTurnOff", SWITCHABLE, { "name", "area", "floor", "domain", "device_class" }, "Turns off, closes or unlocks a device." },
	{ "HassLightSet", BIT(HOME_LIGHT), { "name", "area", "floor", "brightness", "color", "temperature" },
	  "Sets the brightness in percent, the color by name or the color temperature in kelvin of lights." },
	{ "HassSetPosition", BIT(HOME_COVER), { "name", "area", "floor", "domain", "device_class", "position*" },
	  "Sets the position of a cover in percent open." },
	{ "HassFanSetSpeed", BIT(HOME_FAN), { "name", "area", "floor", "percentage*" }, "Sets the speed of a fan in percent." },
	{ "HassClimateSetTemperature", BIT(HOME_CLIMATE), { "name", "area", "floor", "temperature*" },
	  "Sets the target temperature of a thermostat." },
	{ "HassMediaPause", MEDIA, { "name", "area" }, "Pauses a media player." },
	{ "HassMediaUnpause", MEDIA, { "name", "area" }, "Resumes a media player." },
	{ "HassMediaNext", MEDIA, { "name", "area" }, "Skips to the next track." },
	{ "HassMediaPrevious", MEDIA, { "name", "area" }, "Goes back to the previous track." },
	{ "HassMediaPlayerMute", MEDIA, { "name", "area" }, "Mutes a media player." },
	{ "HassMediaPlayerUnmute", MEDIA, { "name", "area" }, "Unmutes a media player." },
	{ "HassSetVolume", MEDIA, { "name", "area", "volume_level*" }, "Sets the volume of a media player in percent." },
	{ "HassSetVolumeRelative", MEDIA, { "name", "area", "volume_step*" },
	  "Raises or lowers the volume of a media player by a step." },
	{ "HassMediaSearchAndPlay", MEDIA, { "search_query*", "name", "area", "media_class" }, "Searches for media and plays it." },
	{ "HassVacuumStart", BIT(HOME_VACUUM), { "name", "area" }, "Starts a vacuum cleaner." },
	{ "HassVacuumReturnToBase", BIT(HOME_VACUUM), { "name", "area" }, "Sends a vacuum cleaner back to its dock." },
	{ "HassVacuumCleanArea", BIT(HOME_VACUUM), { "area*" }, "Has the vacuum cleaner clean an area." },
	{ "HassLawnMowerStartMowing", BIT(HOME_LAWN_MOWER), { "name" }, "Starts a lawn mower." },
	{ "HassLawnMowerDock", BIT(HOME_LAWN_MOWER), { "name" }, "Sends a lawn mower back to its dock." },
	{ "HassListAddItem", BIT(HOME_TODO), { "item*", "name*" }, "Adds an item to a to-do list." },
	{ "HassListCompleteItem", BIT(HOME_TODO), { "item*", "name*" }, "Marks an item of a to-do list as done." },
	{ "HassListRemoveItem", BIT(HOME_TODO), { "item*", "name*" }, "Removes an item from a to-do list." },
	{ "HassStartTimer", ALWAYS, { "hours", "minutes", "seconds", "name", "conversation_command" },
	  "Starts a timer, which can carry out a command when it ends." },
	{ "HassCancelTimer", ALWAYS, { TIMER }, "Cancels a timer." },
	{ "HassCancelAllTimers", ALWAYS, { NULL }, "Cancels all timers." },
	{ "HassIncreaseTimer", ALWAYS, { "hours", "minutes", "seconds", TIMER }, "Adds time to a timer." },
	{ "HassDecreaseTimer", ALWAYS, { "hours", "minutes", "seconds", TIMER }, "Takes time off a timer." },
	{ "HassPauseTimer", ALWAYS, { TIMER }, "Pauses a timer." },
	{ "HassUnpauseTimer", ALWAYS, { TIMER }, "Resumes a paused timer." },
	{ "HassTimerStatus", ALWAYS, { TIMER }, "Tells how much time is left on timers." },
	{ "HassBroadcast", TWO_AREAS, { "message*" }, "Speaks a message in every room." },
	{ "GetLiveContext", ANY, { "name", "area", "domain" }, "Tells the present state of devices, sensors and areas." },
	{ "GetDateTime", ALWAYS, { NULL }, "Tells the date and time." },
};

/* What the full form says of a slot's type. */
static const char *const integers[] = {
	"brightness", "position", "percentage", "volume_level", "volume_step", "hours", "minutes", "seconds", "start_hours",
	"start_minutes", "start_seconds", "temperature", NULL
};

static void put_names(FILE *f, const struct home_told_names *told)
{
	size_t i;

	fputs(told->name, f);
	for (i = 0; i < told->n_aliases; i++)
		fprintf(f, "%s%s", i ? ", " : " (", told->aliases[i]);
	if (told->n_aliases)
		fputc(')', f);
}

/* An area's floor; those that areas name are all listed. */
static const char *floor_told(const struct home *home, const char *name)
{
	for (size_t i = 0; i < home_n_floors(home); i++)
		if (!strcmp(home_floor(home, i)->name, name))
			return home_floor(home, i)->told.name;
	return name;
}

/* Closes the text of open_memstream(). */
static int done(FILE *f, char **text, char **ret_text)
{
	int bad = ferror(f);

	if (fclose(f) || bad) {
		free(*text);
		return -ENOMEM;
	}
	*ret_text = *text;
	return 0;
}

int home_prompt_system(const struct home *home, char **ret_text)
{
	char *text = NULL;
	size_t len = 0, a, i, k;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return -ENOMEM;
	fprintf(f, "You are the voice of this home. Act with the tools, use only names listed here, answer in one short sentence.\n"
		   "Temperatures are in %s.", home_temperature_unit(home));
	for (i = 0; i < home_n_floors(home); i++) {
		const struct home_floor *fl = home_floor(home, i);

		fputs(i ? ", " : "\nFloors: ", f);
		put_names(f, &fl->told);
	}
	/* The areas in their order, then what is nowhere. */
	for (a = 0; a <= home_n_areas(home); a++) {
		const struct home_area *area = a < home_n_areas(home) ? home_area(home, a) : NULL;

		if (area) {
			fputc('\n', f);
			put_names(f, &area->told);
			fprintf(f, "%s%s:", area->floor ? ", " : "", area->floor ? floor_told(home, area->floor) : "");
		}
		for (i = 0, k = 0; i < home_n_entities(home); i++) {
			const struct home_entity *e = home_entity(home, i);

			if (e->area != area)
				continue;
			if (!area && !k++)
				fputs("\nNo area:", f);
			fputs("\n- ", f);
			put_names(f, &e->told);
			fprintf(f, ": %s%s%s", home_domain_name(e->domain), *e->device_class ? " " : "", e->device_class);
		}
	}
	return done(f, &text, ret_text);
}

static json_t *slot_type(const char *tool, const char *slot, enum home_tools_form form)
{
	int i;

	if (form == HOME_TOOLS_COMPACT)
		return json_object();
	if (!strcmp(slot, "temperature") && !strcmp(tool, "HassClimateSetTemperature"))
		return json_pack("{s:s}", "type", "number");
	for (i = 0; integers[i]; i++)
		if (!strcmp(integers[i], slot))
			return json_pack("{s:s}", "type", "integer");
	return json_pack("{s:s}", "type", "string");
}

int home_prompt_tools(const struct home *home, enum home_tools_form form, char **ret_json)
{
	unsigned int have = ALWAYS;
	int classes = 0;
	json_t *all = json_array();
	size_t i, t, k;
	char *text;

	for (i = 0; i < home_n_entities(home); i++) {
		have |= BIT(home_entity(home, i)->domain) | ANY;
		classes |= *home_entity(home, i)->device_class != 0;
	}
	if (home_n_areas(home) > 1)
		have |= TWO_AREAS;
	for (t = 0; t < sizeof(tools) / sizeof(tools[0]); t++) {
		json_t *props = json_object(), *required = json_array(), *fn = json_object(), *params;

		if (!(tools[t].when & have)) {
			json_decref(props);
			json_decref(required);
			json_decref(fn);
			continue;
		}
		for (k = 0; k < 8 && tools[t].slots[k]; k++) {
			char slot[32];
			size_t n = strcspn(tools[t].slots[k], "*");

			memcpy(slot, tools[t].slots[k], n);
			slot[n] = 0;
			if ((!strcmp(slot, "floor") && !home_n_floors(home)) || (!strcmp(slot, "device_class") && !classes))
				continue;
			json_object_set_new(props, slot, slot_type(tools[t].name, slot, form));
			if (tools[t].slots[k][n])
				json_array_append_new(required, json_string(slot));
		}
		params = json_pack("{s:s, s:o}", "type", "object", "properties", props);
		if (json_array_size(required))
			json_object_set(params, "required", required);
		json_decref(required);
		json_object_set_new(fn, "name", json_string(tools[t].name));
		if (form == HOME_TOOLS_FULL)
			json_object_set_new(fn, "description", json_string(tools[t].about));
		json_object_set_new(fn, "parameters", params);
		json_array_append_new(all, json_pack("{s:s, s:o}", "type", "function", "function", fn));
	}
	/* jansson's own separators, ", " and ": ", are those of the template. */
	text = json_dumps(all, 0);
	json_decref(all);
	if (!text)
		return -ENOMEM;
	*ret_json = text;
	return 0;
}

/* -- what is true now -- */

struct home_told {
	json_t *states;    /* of each entity as it was last told, by index; NULL: nothing was */
	char when[64];     /* the "Now:" line */
};

int home_told_new(struct home_told **ret)
{
	struct home_told *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	*ret = t;
	return 0;
}

void home_told_free(struct home_told *t)
{
	if (!t)
		return;
	json_decref(t->states);
	free(t);
}

static void put_value(FILE *f, const json_t *v)
{
	size_t i;

	if (json_is_string(v))
		fputs(json_string_value(v), f);
	else if (json_is_integer(v))
		fprintf(f, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	else if (json_is_real(v))
		fprintf(f, "%g", json_real_value(v));
	else if (json_is_boolean(v))
		fputs(json_is_true(v) ? "true" : "false", f);
	for (i = 0; i < json_array_size(v); i++) {
		if (i)
			fputs(" / ", f);
		put_value(f, json_array_get(v, i));
	}
}

static void put_state(FILE *f, const struct home_entity *e)
{
	const char *key;
	json_t *v;

	fprintf(f, "%s = ", e->told.name);
	put_value(f, json_object_get(e->state, "state"));
	json_object_foreach(e->state, key, v) {
		if (!strcmp(key, "state") || json_is_null(v))
			continue;
		fprintf(f, ", %s ", key);
		put_value(f, v);
	}
}

int home_prompt_now(struct home_told *told, const struct home *home, const struct tm *now,
		    const char *here, char **ret_text)
{
	static const char *const days[] = { "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday" };
	static const char *const months[] = { "January", "February", "March", "April", "May", "June", "July", "August", "September",
					      "October", "November", "December" };
	int first = !told->states, changed = 0;
	json_t *states;
	char when[64], *text = NULL;
	const char *here_told;
	size_t len = 0, a, i, k;
	FILE *f;
	int ret;

	for (i = 0; here && i < home_n_areas(home) && strcmp(home_area(home, i)->name, here); i++)
		;
	if (here && i == home_n_areas(home))
		return -EINVAL;
	here_told = here ? home_area(home, i)->told.name : NULL;
	snprintf(when, sizeof(when), "Now: %s %d %s %d, %02d:%02d", days[now->tm_wday % 7], now->tm_mday, months[now->tm_mon % 12],
		 now->tm_year + 1900, now->tm_hour, now->tm_min);
	states = json_array();
	f = open_memstream(&text, &len);
	if (!states || !f)
		goto memory;
	fputs(when, f);
	if (first && here)
		fprintf(f, "\nHere: %s", here_told);
	for (i = 0; i < home_n_entities(home); i++)
		if (json_array_append_new(states, json_deep_copy(home_entity(home, i)->state)))
			goto memory;
	for (a = 0; a <= home_n_areas(home); a++) {
		const struct home_area *area = a < home_n_areas(home) ? home_area(home, a) : NULL;

		for (i = 0, k = 0; i < home_n_entities(home); i++) {
			const struct home_entity *e = home_entity(home, i);

			if (e->area != area || !json_object_get(e->state, "state") ||
			    (!first && json_equal(e->state, json_array_get(told->states, i))))
				continue;
			if (!k++)
				fprintf(f, "\n%s: ", area ? area->told.name : "No area");
			else
				fputs("; ", f);
			put_state(f, e);
			changed = 1;
		}
	}
	if (!first && !changed && !strcmp(when, told->when)) {
		fclose(f);
		free(text);
		json_decref(states);
		*ret_text = NULL;
		return 0;
	}
	ret = done(f, &text, ret_text);
	if (ret) {
		json_decref(states);
		return ret;
	}
	json_decref(told->states);
	told->states = states;
	strcpy(told->when, when);
	return 0;
memory:
	if (f)
		fclose(f);
	free(text);
	json_decref(states);
	return -ENOMEM;
}

int home_prompt_states(const struct home *home, json_t **ret)
{
	json_t *all = json_array();
	size_t a, i;

	for (a = 0; all && a <= home_n_areas(home); a++) {
		const struct home_area *area = a < home_n_areas(home) ? home_area(home, a) : NULL;

		for (i = 0; all && i < home_n_entities(home); i++) {
			const struct home_entity *e = home_entity(home, i);
			char *buf = NULL, *text = NULL;
			size_t len = 0;
			FILE *f;

			if (e->area != area || !json_object_get(e->state, "state"))
				continue;
			f = open_memstream(&buf, &len);
			if (f)
				put_state(f, e);
			if (!f || done(f, &buf, &text) ||
			    json_array_append_new(all, json_pack("{s:s, s:s}", "area", area ? area->name : "No area", "text", text))) {
				json_decref(all);
				all = NULL;
			}
			free(text);
		}
	}
	if (!all)
		return -ENOMEM;
	*ret = all;
	return 0;
}
