// SPDX-License-Identifier: MIT
/* The home: its file, and what each tool call answers and changes. */
#include "unit.h"

#include "home/home.h"

static const char yaml[] =
	"temperature_unit: celsius\n"
	"floors:\n"
	"  - name: Ground Floor\n"
	"    aliases: [downstairs]\n"
	"areas:\n"
	"  - {name: Kitchen, floor: Ground Floor, aliases: [galley]}\n"
	"  - {name: Hall, floor: Ground Floor}\n"
	"  - {name: Bedroom, floor: Upper Floor}\n"
	"entities:\n"
	"  - {name: Ceiling Light, aliases: [big light], domain: light, area: Kitchen, state: \"on\", brightness: 60}\n"
	"  - {name: Counter Light, domain: light, area: Kitchen, state: off}\n"
	"  - {name: Ceiling Light, domain: light, area: Bedroom}\n"
	"  - {name: Coffee Machine, domain: switch, area: Kitchen, state: \"on\"}\n"
	"  - {name: Blind, domain: cover, device_class: blind, area: Kitchen, state: closed, position: 0}\n"
	"  - {name: Front Door, domain: lock, area: Hall, state: locked}\n"
	"  - {name: Thermostat, domain: climate, area: Hall, state: heat, temperature: 20, current_temperature: 18.5}\n"
	"  - {name: Fan, domain: fan, area: Bedroom, state: \"off\", percentage: 0}\n"
	"  - {name: Speaker, domain: media_player, area: Kitchen, state: playing, volume: 35}\n"
	"  - {name: TV, domain: media_player, area: Hall, state: \"off\", volume: 95}\n"
	"  - {name: Rosie, domain: vacuum, area: Hall, state: docked}\n"
	"  - {name: Shopping List, domain: todo, items: [milk, eggs]}\n"
	"  - {name: Movie Night, domain: scene}\n"
	"clock: 2026-11-29T18:30\n";

static struct home *home;

static int setup(void **state)
{
	struct hearth_err err;

	if (home_parse("home.yaml", yaml, sizeof(yaml) - 1, &home, &err)) {
		printf("# %s\n", err.text);
		return -1;
	}
	return 0;
}

static int teardown(void **state)
{
	home_free(home);
	home = NULL;
	return 0;
}

/* @args in JSON with ' for "; checks the answer, and how many things changed. */
static void call(const char *tool, const char *args, const char *want, size_t n_changes)
{
	char text[512], wanted[512], *got, *p;
	json_t *a, *result = NULL, *changes = NULL, *before = home_state(home), *after;
	struct hearth_err err;

	snprintf(text, sizeof(text), "%s", args);
	snprintf(wanted, sizeof(wanted), "%s", want);
	for (p = text; *p; p++)
		*p = *p == '\'' ? '"' : *p;
	for (p = wanted; *p; p++)
		*p = *p == '\'' ? '"' : *p;
	a = json_loads(text, 0, NULL);
	assert_non_null(a);
	assert_int_equal(home_call(home, tool, a, &result, &changes, &err), 0);
	got = json_dumps(result, JSON_COMPACT);
	/* Quotes inside an error sentence are not compared. */
	for (p = got; *p; p++)
		if (*p == '\\')
			memmove(p, p + 1, strlen(p));
	if (strcmp(got, wanted))
		fail_msg("%s %s\n  want %s\n  got  %s", tool, text, wanted, got);
	assert_int_equal(json_array_size(changes), n_changes);
	after = home_state(home);
	if (!json_is_true(json_object_get(result, "success")))
		assert_true(json_equal(before, after));
	json_decref(before);
	json_decref(after);
	json_decref(a);
	json_decref(result);
	json_decref(changes);
	free(got);
}

static void lights_turn_on_and_off(void **state)
{
	call("HassTurnOff", "{'name':'Ceiling Light','area':'Kitchen'}", "{'success':true,'changed':[{'name':'Ceiling Light','state':'off'}]}", 1);
	call("HassTurnOff", "{'name':'big light'}", "{'success':true,'changed':[],'already':['Ceiling Light']}", 0);
	call("HassTurnOn", "{'name':'the counter  light'}", "{'success':true,'changed':[{'name':'Counter Light','state':'on'}]}", 1);
	call("HassTurnOn", "{'area':'galley','domain':'light'}",
	     "{'success':true,'changed':[{'name':'Ceiling Light','state':'on'}],'already':['Counter Light']}", 1);
	call("HassTurnOff", "{'floor':'downstairs','domain':['light']}",
	     "{'success':true,'changed':[{'name':'Ceiling Light','state':'off'},{'name':'Counter Light','state':'off'}]}", 2);
}

static void a_room_alone_leaves_doors_and_covers(void **state)
{
	call("HassTurnOff", "{'area':'Kitchen'}",
	     "{'success':true,'changed':[{'name':'Ceiling Light','state':'off'},{'name':'Coffee Machine','state':'off'},{'name':'Speaker','state':'off'}],'already':['Counter Light']}", 3);
	call("HassTurnOff", "{'area':'Hall'}", "{'success':true,'changed':[],'already':['TV']}", 0);
}

static void names_must_be_known_and_clear(void **state)
{
	call("HassTurnOn", "{'name':'garage lamp'}", "{'success':false,'error':'no device called 'garage lamp''}", 0);
	call("HassTurnOn", "{'name':'Ceiling Light'}", "{'success':false,'error':'2 devices are called 'Ceiling Light'; name the area'}", 0);
	call("HassTurnOn", "{'area':'Attic'}", "{'success':false,'error':'no area called 'Attic''}", 0);
	call("HassTurnOn", "{'floor':'Cellar','domain':'light'}", "{'success':false,'error':'no floor called 'Cellar''}", 0);
	call("HassTurnOn", "{'domain':'lamp'}", "{'success':false,'error':'no domain called 'lamp''}", 0);
	call("HassTurnOn", "{}", "{'success':false,'error':'no device was named'}", 0);
	call("HassTurnOn", "{'name':'Rosie'}", "{'success':false,'error':''Rosie' cannot do that, or is not there'}", 0);
	call("HassTurnOn", "{'name':'Fan','colour':'red'}", "{'success':false,'error':'HassTurnOn has no argument 'colour''}", 0);
	call("HassFly", "{}", "{'success':false,'error':'no tool called 'HassFly''}", 0);
	call("HassTurnOff", "{'name':'Movie Night'}", "{'success':false,'error':''Movie Night' cannot do that, or is not there'}", 0);
}

static void lights_are_set(void **state)
{
	call("HassLightSet", "{'name':'Counter Light','brightness':40}", "{'success':true,'changed':[{'name':'Counter Light','state':'on'}]}", 1);
	call("HassLightSet", "{'name':'Counter Light','color':'red'}", "{'success':true,'changed':[{'name':'Counter Light','state':'on'}]}", 1);
	call("HassLightSet", "{'name':'Counter Light','temperature':2700}", "{'success':true,'changed':[{'name':'Counter Light','state':'on'}]}", 1);
	call("HassLightSet", "{'name':'Counter Light','brightness':'55%'}", "{'success':true,'changed':[{'name':'Counter Light','state':'on'}]}", 1);
	call("HassLightSet", "{'name':'Counter Light','brightness':0}", "{'success':true,'changed':[{'name':'Counter Light','state':'off'}]}", 1);
	call("HassLightSet", "{'name':'Counter Light','brightness':140}", "{'success':false,'error':'brightness must be from 0 to 100'}", 0);
	call("HassLightSet", "{'name':'Counter Light','brightness':'lots'}", "{'success':false,'error':'brightness must be a number, not 'lots''}", 0);
	call("HassLightSet", "{'name':'Counter Light'}", "{'success':false,'error':'brightness, color or temperature is missing'}", 0);
	call("HassLightSet", "{'name':'Fan','brightness':40}", "{'success':false,'error':''Fan' cannot do that, or is not there'}", 0);
}

static void covers_locks_fans_and_heating(void **state)
{
	call("HassTurnOn", "{'name':'Blind'}", "{'success':true,'changed':[{'name':'Blind','state':'open'}]}", 1);
	call("HassSetPosition", "{'area':'Kitchen','device_class':'blind','position':30}", "{'success':true,'changed':[{'name':'Blind','state':'open'}]}", 1);
	call("HassSetPosition", "{'name':'Blind'}", "{'success':false,'error':'position is missing'}", 0);
	call("HassTurnOff", "{'name':'Front Door'}", "{'success':true,'changed':[{'name':'Front Door','state':'unlocked'}]}", 1);
	call("HassTurnOn", "{'name':'Front Door','domain':'lock'}", "{'success':true,'changed':[{'name':'Front Door','state':'locked'}]}", 1);
	call("HassFanSetSpeed", "{'name':'Fan','percentage':70}", "{'success':true,'changed':[{'name':'Fan','state':'on'}]}", 1);
	call("HassClimateSetTemperature", "{'temperature':21.5}", "{'success':true,'changed':[{'name':'Thermostat','state':'heat'}]}", 1);
	call("HassClimateSetTemperature", "{'name':'Thermostat','temperature':90}", "{'success':false,'error':'temperature must be from 5 to 35'}", 0);
	call("HassTurnOn", "{'name':'Movie Night'}", "{'success':true,'changed':[{'name':'Movie Night'}]}", 1);
	call("HassVacuumStart", "{}", "{'success':true,'changed':[{'name':'Rosie','state':'cleaning'}]}", 1);
	call("HassVacuumCleanArea", "{'area':'galley'}", "{'success':true,'changed':[{'name':'Rosie','state':'cleaning'}]}", 1);
	call("HassVacuumReturnToBase", "{'name':'Rosie'}", "{'success':true,'changed':[{'name':'Rosie','state':'returning'}]}", 1);
}

static void a_value_without_a_place_is_for_all(void **state)
{
	call("HassLightSet", "{'brightness':20}", "{'success':true,'changed':[{'name':'Ceiling Light','state':'on'},{'name':'Counter Light','state':'on'},{'name':'Ceiling Light','state':'on'}]}", 3);
	call("HassLightSet", "{'area':'Bedroom','brightness':35}", "{'success':true,'changed':[{'name':'Ceiling Light','state':'on'}]}", 1);
}

static void media_without_a_name_is_what_plays(void **state)
{
	call("HassSetVolume", "{'volume_level':50}", "{'success':true,'changed':[{'name':'Speaker','state':'playing'}]}", 1);
	call("HassSetVolumeRelative", "{'volume_step':-20}", "{'success':true,'changed':[{'name':'Speaker','state':'playing'}]}", 1);
	call("HassSetVolumeRelative", "{'name':'TV','volume_step':10}", "{'success':true,'changed':[{'name':'TV','state':'off'}]}", 1);
	call("HassMediaPause", "{}", "{'success':true,'changed':[{'name':'Speaker','state':'paused'}]}", 1);
	call("HassMediaPause", "{}", "{'success':false,'error':'it was not said which one'}", 0);
	call("HassMediaUnpause", "{}", "{'success':true,'changed':[{'name':'Speaker','state':'playing'}]}", 1);
	call("HassMediaPlayerMute", "{'name':'Speaker'}", "{'success':true,'changed':[{'name':'Speaker','state':'playing'}]}", 1);
	call("HassMediaSearchAndPlay", "{'search_query':'jazz','area':'Kitchen'}", "{'success':true,'changed':[{'name':'Speaker','state':'playing'}]}", 1);
}

static void lists(void **state)
{
	call("HassListAddItem", "{'item':'bread','name':'shopping list'}", "{'success':true,'list':'Shopping List','item':'bread'}", 1);
	call("HassListRemoveItem", "{'item':'eggs'}", "{'success':true,'list':'Shopping List','item':'eggs'}", 1);
	call("HassListCompleteItem", "{'item':'soap'}", "{'success':false,'error':''soap' is not on Shopping List'}", 0);
	call("HassListAddItem", "{'item':'x','name':'Chores'}", "{'success':false,'error':'no list called 'Chores''}", 0);
	call("GetLiveContext", "{'name':'Shopping List'}", "{'success':true,'states':[{'name':'Shopping List','state':'2','items':['milk','bread']}]}", 0);
}

static void timers(void **state)
{
	call("HassTimerStatus", "{}", "{'success':true,'timers':[]}", 0);
	call("HassCancelTimer", "{}", "{'success':false,'error':'no timer is running'}", 0);
	call("HassStartTimer", "{'minutes':5,'name':'pasta'}", "{'success':true,'timers':[{'name':'pasta','seconds':300,'left':300,'state':'running'}]}", 1);
	call("HassStartTimer", "{'hours':1,'minutes':30}", "{'success':true,'timers':[{'name':'','seconds':5400,'left':5400,'state':'running'}]}", 1);
	call("HassIncreaseTimer", "{'name':'pasta','minutes':1}", "{'success':true,'timers':[{'name':'pasta','seconds':360,'left':360,'state':'running'}]}", 1);
	call("HassDecreaseTimer", "{'name':'pasta','minutes':6}", "{'success':false,'error':'less than that is left'}", 0);
	call("HassPauseTimer", "{'start_hours':1,'start_minutes':30}", "{'success':true,'timers':[{'name':'','seconds':5400,'left':5400,'state':'paused'}]}", 1);
	call("HassUnpauseTimer", "{'start_minutes':90}", "{'success':true,'timers':[{'name':'','seconds':5400,'left':5400,'state':'running'}]}", 1);
	call("HassPauseTimer", "{'name':'eggs'}", "{'success':false,'error':'no such timer'}", 0);
	call("HassCancelTimer", "{'name':'pasta'}", "{'success':true,'timers':[{'name':'pasta','seconds':360,'left':360,'state':'cancelled'}]}", 1);
	call("HassStartTimer", "{'minutes':10,'conversation_command':'turn off the fan'}",
	     "{'success':true,'timers':[{'name':'','seconds':600,'left':600,'state':'running'}]}", 1);
	call("HassCancelAllTimers", "{}", "{'success':true,'cancelled':2}", 2);
	call("HassStartTimer", "{}", "{'success':false,'error':'hours, minutes or seconds are missing'}", 0);
	call("HassStartTimer", "{'seconds':0}", "{'success':false,'error':'a timer runs from one second to seven days'}", 0);
}

static void questions(void **state)
{
	call("GetDateTime", "{}", "{'success':true,'date':'2026-11-29','weekday':'Sunday','time':'18:30'}", 0);
	call("GetLiveContext", "{'name':'Front Door'}", "{'success':true,'states':[{'name':'Front Door','state':'locked'}]}", 0);
	call("GetLiveContext", "{'area':'Hall','domain':'climate'}",
	     "{'success':true,'states':[{'name':'Thermostat','state':'heat','temperature':20,'current_temperature':18.5}]}", 0);
	call("HassBroadcast", "{'message':'dinner'}", "{'success':true}", 1);
}

static void arguments_must_be_an_object(void **state)
{
	json_t *r = NULL, *c = NULL, *a = json_array();
	struct hearth_err err;

	assert_int_equal(home_call(home, "HassTurnOn", a, &r, &c, &err), -EINVAL);
	assert_null(r);
	json_decref(a);
}

static void refuses(const char *text, const char *want)
{
	struct hearth_err err = { 0 };
	struct home *h = NULL;
	int ret = home_parse("h", text, strlen(text), &h, &err);

	if (!ret || strcmp(err.text, want))
		fail_msg("\n%s\n  want \"%s\"\n  got  \"%s\"", text, want, ret ? err.text : "no refusal");
	assert_null(h);
}

static void mistakes_have_line_and_column(void **state)
{
	refuses("", "h: the file is empty");
	refuses("- a", "h:1:1: the home must be written as \"key: value\" lines");
	refuses("areas: []", "h:1:1: there is no list of entities");
	refuses("entities: []", "h:1:11: entities must be a list with at least one entity");
	refuses("entities:\n  - domain: light", "h:2:5: this entity has no name");
	refuses("entities:\n  - name: a", "h:2:5: \"a\" has no domain");
	refuses("entities:\n  - name: a\n    domain: lamp", "h:3:13: there is no domain \"lamp\"");
	refuses("entities:\n  - name: a\n    domain: light\n    brightnes: 5",
		"h:4:5: light has no key \"brightnes\"; it may have: name, aliases, domain, device_class, area, state, brightness, color, color_temp");
	refuses("entities:\n  - {name: a, domain: light, brightness: 500}", "h:2:42: brightness must be a number from 0 to 100, not \"500\"");
	refuses("entities:\n  - {name: a, domain: light, state: dim}", "h:2:37: a light cannot be \"dim\"; it can be: off, on");
	refuses("entities:\n  - {name: a, domain: light, area: x}", "h:2:36: there is no area \"x\" under areas");
	refuses("entities:\n  - {name: a, domain: light}\n  - {name: A, domain: fan}", "h:3:12: there is an entity \"A\" without an area already");
	refuses("entities:\n  - {name: a, name: b, domain: light}", "h:2:15: the key \"name\" comes twice");
	refuses("entities:\n  - {name: '', domain: light}", "h:2:12: an entity's name is empty");
	refuses("areas:\n  - {name: k}\n  - {name: K}\nentities:\n  - {name: a, domain: light}", "h:3:12: there is an area \"K\" already");
	refuses("clock: soon\nentities:\n  - {name: a, domain: light}", "h:1:8: clock must be a moment like 2026-11-29T18:30");
	refuses("clock: 2026-02-29T18:30\nentities:\n  - {name: a, domain: light}", "h:1:8: clock must be a moment like 2026-11-29T18:30");
	refuses("temperature_unit: kelvin\nentities:\n  - {name: a, domain: light}", "h:1:19: temperature_unit must be celsius or fahrenheit");
	refuses("entities:\n  - {name: a, domain: scene, state: on}", "h:2:37: a scene has no state of its own");
	refuses("entities:\n  - {name: a, domain: sensor}", "h:2:5: this sensor has no state");
	refuses("rooms: []\nentities:\n  - {name: a, domain: light}", "h:1:1: the home has no key \"rooms\"; it may have: floors, temperature_unit, areas, entities, clock");
	refuses("entities:\n  - {name: a, domain: light, aliases: b}", "h:2:39: aliases must be a list, like [one, two]");
	refuses("entities:\n  - {name: a", "h:3:1: did not find expected ',' or '}', while parsing a flow mapping");
}

static void a_missing_file_is_said(void **state)
{
	struct hearth_err err;
	struct home *h = NULL;

	assert_int_equal(home_load("/nonexistent/home.yaml", &h, &err), -ENOENT);
	assert_string_equal(err.text, "/nonexistent/home.yaml: No such file or directory");
}

static void the_home_can_be_read_back(void **state)
{
	assert_int_equal(home_n_areas(home), 3);
	assert_int_equal(home_n_floors(home), 2);
	assert_string_equal(home_floor(home, 1)->name, "Upper Floor");
	assert_int_equal(home_n_entities(home), 13);
	assert_string_equal(home_entity(home, 0)->aliases[0], "big light");
	assert_string_equal(home_entity(home, 2)->area->name, "Bedroom");
	assert_string_equal(home_entity(home, 4)->device_class, "blind");
	assert_string_equal(home_temperature_unit(home), "celsius");
	assert_true(json_is_null(json_object_get(home_entity(home, 1)->state, "brightness")));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(lights_turn_on_and_off),
		T(a_room_alone_leaves_doors_and_covers),
		T(names_must_be_known_and_clear),
		T(lights_are_set),
		T(covers_locks_fans_and_heating),
		T(a_value_without_a_place_is_for_all),
		T(media_without_a_name_is_what_plays),
		T(lists),
		T(timers),
		T(questions),
		T(arguments_must_be_an_object),
		T(the_home_can_be_read_back),
		cmocka_unit_test(mistakes_have_line_and_column),
		cmocka_unit_test(a_missing_file_is_said),
	};

	return UNIT_RUN(tests);
}
