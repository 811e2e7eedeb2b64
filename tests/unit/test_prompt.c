// SPDX-License-Identifier: MIT
/*
 * What the model is told of a home. The trainer's writer (tools/home/prompt.py)
 * is the independent source: for every home in the tree the bytes must be the
 * same. What only the runtime does, telling changes alone, is tested here.
 */
#include "unit.h"

#include "home/prompt.h"

static const char script[] =
	"import sys,json\n"
	"sys.path.insert(0,'tools/home')\n"
	"import house,prompt\n"
	"h=house.load(sys.argv[1])\n"
	"print(prompt.system(h)); print(json.dumps(prompt.tools(h),ensure_ascii=False)); print(json.dumps(prompt.tools(h,True),ensure_ascii=False)); print(prompt.now(h,h.areas[0].name))\n";

static void like_the_trainer(const char *path)
{
	char command[2048], want[65536], *text[4], *got = NULL;
	struct hearth_err err = { 0 };
	struct home_told *told;
	struct home *home;
	size_t n, len = 0;
	struct tm now;
	FILE *f;
	int i;

	if (home_load(path, &home, &err))
		fail_msg("%s", err.text);
	snprintf(command, sizeof(command), "python3 -c \"%s\" %s", script, path);
	f = popen(command, "r");
	assert_non_null(f);
	n = fread(want, 1, sizeof(want) - 1, f);
	want[n] = 0;
	assert_int_equal(pclose(f), 0);
	assert_int_equal(home_told_new(&told), 0);
	home_now(home, &now);
	/* A home without a clock of its own is trained at a fixed time; its file must have one. */
	assert_int_equal(home_prompt_system(home, &text[0]), 0);
	assert_int_equal(home_prompt_tools(home, HOME_TOOLS_COMPACT, &text[1]), 0);
	assert_int_equal(home_prompt_tools(home, HOME_TOOLS_FULL, &text[2]), 0);
	assert_int_equal(home_prompt_now(told, home, &now, home_area(home, 0)->name, &text[3]), 0);
	f = open_memstream(&got, &len);
	for (i = 0; i < 4; i++) {
		fprintf(f, "%s\n", text[i]);
		free(text[i]);
	}
	fclose(f);
	if (strcmp(got, want))
		fail_msg("%s:\n%s\nis not\n%s", path, got, want);
	free(got);
	home_told_free(told);
	home_free(home);
}

static void family_as_the_trainer_writes_it(void **state) { like_the_trainer("tools/home/eval/homes/family.yaml"); }
static void flat_as_the_trainer_writes_it(void **state) { like_the_trainer("tools/home/eval/homes/flat.yaml"); }
static void ranch_as_the_trainer_writes_it(void **state) { like_the_trainer("tools/home/eval/homes/ranch.yaml"); }

static const char yaml[] =
	"areas: [{name: Hall}]\n"
	"entities:\n"
	"  - {name: Lamp, domain: light, area: Hall, state: off}\n"
	"  - {name: List, domain: todo, items: [milk]}\n"
	"  - {name: Night, domain: scene}\n"
	"clock: 2026-11-29T18:05\n";

static void only_changes_are_told_again(void **state)
{
	json_t *args = json_pack("{s:s}", "name", "Lamp"), *result, *changes, *states;
	struct home_told *told;
	struct home *home;
	struct tm now;
	char *text;

	assert_int_equal(home_parse("h", yaml, sizeof(yaml) - 1, &home, NULL), 0);
	assert_int_equal(home_told_new(&told), 0);
	home_now(home, &now);
	assert_int_equal(home_prompt_now(told, home, &now, "Attic", &text), -EINVAL);
	assert_int_equal(home_prompt_now(told, home, &now, "Hall", &text), 0);
	assert_string_equal(text, "Now: Sunday 29 November 2026, 18:05\nHere: Hall\nHall: Lamp = off\nNo area: List = 1, items milk");
	free(text);
	assert_int_equal(home_prompt_now(told, home, &now, "Hall", &text), 0);
	assert_null(text);
	/* One by one, as somebody else counts them. */
	assert_int_equal(home_prompt_states(home, &states), 0);
	text = json_dumps(states, JSON_COMPACT);
	assert_string_equal(text, "[{\"area\":\"Hall\",\"text\":\"Lamp = off\"},{\"area\":\"No area\",\"text\":\"List = 1, items milk\"}]");
	free(text);
	json_decref(states);
	assert_int_equal(home_call(home, "HassTurnOn", args, &result, &changes, NULL), 0);
	assert_int_equal(home_prompt_now(told, home, &now, "Hall", &text), 0);
	assert_string_equal(text, "Now: Sunday 29 November 2026, 18:05\nHall: Lamp = on");
	free(text);
	now.tm_min = 6;
	assert_int_equal(home_prompt_now(told, home, &now, "Hall", &text), 0);
	assert_string_equal(text, "Now: Sunday 29 November 2026, 18:06");
	free(text);
	json_decref(args);
	json_decref(result);
	json_decref(changes);
	home_told_free(told);
	home_free(home);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(family_as_the_trainer_writes_it),
		cmocka_unit_test(flat_as_the_trainer_writes_it),
		cmocka_unit_test(ranch_as_the_trainer_writes_it),
		cmocka_unit_test(only_changes_are_told_again),
	};

	return UNIT_RUN(tests);
}
