// SPDX-License-Identifier: MIT
/* Names with characters that the model was not taught: how they are told, and how they are found again. */
#include "unit.h"

#include "home/home.h"
#include "home/prompt.h"

static struct home *with(const char *entities)
{
	char yaml[4096];
	struct hearth_err err;
	struct home *h;

	snprintf(yaml, sizeof(yaml), "areas: [{name: \"Küche / Flur\", floor: \"1. Stock\"}, {name: Hall, aliases: [entrée]}]\nentities:\n%s", entities);
	if (home_parse("h", yaml, strlen(yaml), &h, &err))
		fail_msg("%s", err.text);
	return h;
}

static void each_name_is_told_and_found_again(void **state)
{
	static const struct { const char *name, *told; } names[] = {
		{ "TV/Hifi", "TV Hifi" }, { "Lamp (old)", "Lamp Old" }, { "Lamp, left", "Lamp Left" }, { "Lamp: left", "Lamp Left" }, { "A&B", "A B" },
		{ "Lamp_1", "Lamp 1" }, { "Zoë", "Zoe" }, { "Straße", "Strasse" }, { "Citroën", "Citroen" }, { "O’Brien", "OBrien" }, { "O'Brien", "OBrien" },
		{ "Hall – left", "Hall Left" }, { "Кухня", "Kukhnya" }, { "Ελλάδα", "Ellada" }, { "Łódź", "Lodz" }, { "50% Lamp", "Lamp 50" }, { "Mum's Lamp", "Mum's Lamp" },
		{ "厨房", "Wonder Light" }, { "💡", "Wonder Light" }, { "💡 Lamp", "Lamp" }, { "e\xcc\x81t\xcc\xa7", "Et" }, { "(", "Wonder Light" }, { "Wi-Fi Ä", "Wi-Fi A" },
		{ "Björn", "Björn" }, { "plain lamp", "plain lamp" }, { "Œuvre", "Oeuvre" },
	};
	char yaml[512];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		json_t *args = json_pack("{s:s}", "name", names[i].told), *result, *changes, *own;
		char said[160], *told, why[100];
		struct home *h;

		snprintf(yaml, sizeof(yaml), "  - {name: Awning, domain: cover}\n  - {name: \"%s\", aliases: [Wonder Light], domain: light}\n", names[i].name);
		h = with(yaml);
		assert_string_equal(home_entity(h, 1)->told.name, names[i].told);
		assert_string_equal(home_entity(h, 1)->name, names[i].name);
		/* What the model calls it by acts on it; people read its own name. */
		assert_int_equal(home_call(h, "HassTurnOn", args, &result, &changes, NULL), 0);
		assert_true(json_is_true(json_object_get(result, "success")));
		assert_string_equal(json_string_value(json_object_get(json_array_get(json_object_get(result, "changed"), 0), "name")), names[i].told);
		assert_string_equal(json_string_value(json_object_get(json_array_get(changes, 0), "name")), names[i].name);
		assert_int_equal(home_own_args(h, "HassTurnOn", args, &own, why, sizeof(why)), 0);
		assert_string_equal(json_string_value(json_object_get(own, "name")), names[i].name);
		json_decref(own);
		/* What is said by its own name is read by that which is told. */
		snprintf(said, sizeof(said), "turn on the %s, please", names[i].name);
		assert_int_equal(home_said(h, said, &told), 0);
		snprintf(said, sizeof(said), "turn on the %s, please", names[i].told);
		assert_string_equal(told, said);
		free(told);
		json_decref(args);
		json_decref(result);
		json_decref(changes);
		home_free(h);
	}
}

static void no_two_are_told_alike(void **state)
{
	struct home *h = with("  - {name: Lamp (left), domain: light, area: Hall}\n"
			      "  - {name: Lamp left, domain: light, area: Hall}\n"
			      "  - {name: \"Lamp: left\", domain: light, area: Hall}\n"
			      "  - {name: TV/Hifi, domain: media_player, area: Hall}\n"
			      "  - {name: TV/Hifi, domain: media_player, area: Küche / Flur}\n"
			      "  - {name: 厨房, domain: light}\n"
			      "  - {name: 客厅, domain: light}\n");
	static const char *const told[] = { "Lamp Left 2", "Lamp left", "Lamp Left 3", "TV Hifi", "TV Hifi", "Light 1", "Light 2" };
	char *text;

	for (size_t i = 0; i < 7; i++)
		assert_string_equal(home_entity(h, i)->told.name, told[i]);
	assert_int_equal(home_prompt_system(h, &text), 0);
	assert_non_null(strstr(text, "\nFloors: Stock 1\nKüche Flur, Stock 1:\n- TV Hifi: media_player\nHall (entrée):\n- Lamp Left 2: light\n- Lamp left: light\n"));
	free(text);
	home_free(h);
}

static void what_is_none_of_its_names_is_refused(void **state)
{
	struct home *h = with("  - {name: TV/Hifi, aliases: [Große Lampe], domain: switch}\n");
	json_t *args = json_pack("{s:s}", "name", "TVogogHifi"), *own = NULL;
	char why[100] = "", *text;

	assert_int_equal(home_own_args(h, "HassTurnOn", args, &own, why, sizeof(why)), -ENOENT);
	assert_null(own);
	assert_string_equal(why, "Sorry, there is no such device here.");
	json_object_clear(args);
	json_object_set_new(args, "area", json_string("Attic"));
	assert_int_equal(home_own_args(h, "HassTurnOn", args, &own, why, sizeof(why)), -ENOENT);
	assert_string_equal(why, "Sorry, there is no such room here.");
	/* A timer may be called anything, and its command is read by who knows the file's names. */
	json_object_clear(args);
	json_object_set_new(args, "name", json_string("pasta"));
	json_object_set_new(args, "conversation_command", json_string("turn off the tv hifi"));
	assert_int_equal(home_own_args(h, "HassStartTimer", args, &own, why, sizeof(why)), 0);
	assert_string_equal(json_string_value(json_object_get(own, "conversation_command")), "turn off the TV/Hifi");
	json_decref(own);
	json_object_clear(args);
	json_object_set_new(args, "area", json_string("küche flur"));
	assert_int_equal(home_own_args(h, "HassTurnOn", args, &own, why, sizeof(why)), 0);
	assert_string_equal(json_string_value(json_object_get(own, "area")), "Küche / Flur");
	json_decref(own);
	json_decref(args);
	/* Only whole names, whatever their case; an alias is read as the name. */
	assert_int_equal(home_said(h, "GROßE LAMPE on, tv/hifis off", &text), 0);
	assert_string_equal(text, "TV Hifi on, tv/hifis off");
	free(text);
	/* What is no UTF-8 stays, and a long text takes no long time. */
	assert_int_equal(home_said(h, "\xff tv/hifi \xc3", &text), 0);
	assert_string_equal(text, "\xff TV Hifi \xc3");
	free(text);
	{
		char *many = malloc(4000001);

		memset(many, 'g', 4000000);
		for (size_t i = 0; i < 4000000; i += 7)
			many[i] = ' ';
		many[4000000] = 0;
		assert_int_equal(home_said(h, many, &text), 0);
		assert_string_equal(text, many);
		free(text);
		free(many);
	}
	home_free(h);
}

static void what_is_said_of_a_failure_has_no_word_of_the_models(void **state)
{
	static const struct { const char *error, *say; } cases[] = {
		{ "no device called \"lock lock lock lock\"", "Sorry, there is no such device here." },
		{ "no area called \"x\"", "Sorry, there is no such room here." },
		{ "2 devices are called \"Lamp\"; name the area", "Sorry, more than one device has that name." },
		{ "\"Lamp\" cannot do that, or is not there", "Sorry, that device cannot do that." },
		{ "volume_level must be from 0 to 100", "Sorry, that did not work." },
	};
	char text[100];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *r = json_pack("{s:b,s:s}", "success", 0, "error", cases[i].error);

		home_sorry(r, text, sizeof(text));
		assert_string_equal(text, cases[i].say);
		json_decref(r);
	}
	home_sorry(NULL, text, sizeof(text));
	assert_string_equal(text, "Sorry, that did not work.");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_name_is_told_and_found_again),
		cmocka_unit_test(no_two_are_told_alike),
		cmocka_unit_test(what_is_none_of_its_names_is_refused),
		cmocka_unit_test(what_is_said_of_a_failure_has_no_word_of_the_models),
	};

	return UNIT_RUN(tests);
}
