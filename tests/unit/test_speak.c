// SPDX-License-Identifier: MIT
/*
 * Spoken forms. The right-hand sides were written by hand from how an American
 * speaker reads the left-hand sides, not taken from the code.
 */
#include "unit.h"

#include "voice/speak.h"

static void says(const char *text, const char *want)
{
	char *got = NULL;

	assert_int_equal(speak_text(text, strlen(text), &got), 0);
	if (strcmp(got, want))
		fail_msg("\"%s\"\n  says \"%s\"\n  not  \"%s\"", text, got, want);
	free(got);
}

#define CASES(name, ...) \
static void name(void **state) \
{ \
	static const char *const c[][2] = { __VA_ARGS__ }; \
	size_t i; \
	for (i = 0; i < sizeof(c) / sizeof(c[0]); i++) \
		says(c[i][0], c[i][1]); \
}

CASES(plain_text_stays,
	{ "", "" },
	{ "I turned on the kitchen light.", "I turned on the kitchen light." },
	{ "Well, that's it: done!", "Well, that's it: done!" },
	{ "He said \"yes\" (twice).", "He said \"yes\" (twice)." },
	{ "a well-known fact", "a well known fact" },
	{ "café déjà vu", "café déjà vu" },
	{ "I may go.", "I may go." },
)

CASES(numbers_are_words,
	{ "0", "zero" },
	{ "7 lights", "seven lights" },
	{ "21", "twenty one" },
	{ "100", "one hundred" },
	{ "105", "one hundred five" },
	{ "1,000", "one thousand" },
	{ "1,234,567", "one million two hundred thirty four thousand five hundred sixty seven" },
	{ "2700", "two thousand seven hundred" },
	{ "-5", "minus five" },
	{ "007", "zero zero seven" },
	{ "12345678901234567890", "one two three four five six seven eight nine zero one two three four five six seven eight nine zero" },
)

CASES(decimals_by_point_and_comma,
	{ "3.5", "three point five" },
	{ "22,1", "twenty two point one" },
	{ "0.25", "zero point two five" },
	{ "98.6", "ninety eight point six" },
	{ "1.234.567,8", "one million two hundred thirty four thousand five hundred sixty seven point eight" },
	{ "3.14159.", "three point one four one five nine." },
	{ "milk, 2, 3", "milk, two, three" },
	{ "It is 3.", "It is three." },
)

CASES(units_follow_the_number,
	{ "21 °C", "twenty one degrees Celsius" },
	{ "21.5°C", "twenty one point five degrees Celsius" },
	{ "1 °C", "one degree Celsius" },
	{ "22,1 °C", "twenty two point one degrees Celsius" },
	{ "-3°", "minus three degrees" },
	{ "70 °F outside", "seventy degrees Fahrenheit outside" },
	{ "50%", "fifty percent" },
	{ "50 %.", "fifty percent." },
	{ "30 km/h", "thirty kilometers per hour" },
	{ "5 kg of rice", "five kilograms of rice" },
	{ "1 kg", "one kilogram" },
	{ "5 min", "five minutes" },
	{ "2.5 kWh", "two point five kilowatt hours" },
	{ "60W bulb", "sixty watts bulb" },
	{ "2700 K", "two thousand seven hundred kelvin" },
	{ "5 m", "five meters" },
	{ "5 men", "five men" },
	{ "3 in the kitchen", "three in the kitchen" },
	{ "4 A batteries", "four A batteries" },
)

CASES(times_as_people_say_them,
	{ "8:30", "eight thirty" },
	{ "8:05", "eight oh five" },
	{ "8:00", "eight o'clock" },
	{ "8:30 a.m.", "eight thirty A M" },
	{ "8:00 AM", "eight A M" },
	{ "at 7 pm", "at seven P M" },
	{ "at 7 p.m. sharp", "at seven P M sharp" },
	{ "20:15", "eight fifteen P M" },
	{ "0:15", "twelve fifteen A M" },
	{ "00:00", "midnight" },
	{ "12:00", "twelve o'clock" },
	{ "The time is 21:05.", "The time is nine oh five P M." },
	{ "I am home", "I am home" },
	{ "16:9", "sixteen to nine" },
)

CASES(dates_as_people_say_them,
	{ "2026-11-29", "November twenty ninth, twenty twenty six" },
	{ "11/29/2026", "November twenty ninth, twenty twenty six" },
	{ "29/11/2026", "November twenty ninth, twenty twenty six" },
	{ "29.11.2026", "November twenty ninth, twenty twenty six" },
	{ "November 29", "November twenty ninth" },
	{ "Nov. 29", "November twenty ninth" },
	{ "Nov 29, 2026", "November twenty ninth, twenty twenty six" },
	{ "29 November 2026", "the twenty ninth of November twenty twenty six" },
	{ "the 3 May", "the third of May" },
	{ "in 1999", "in nineteen ninety nine" },
	{ "since 2005", "since two thousand five" },
	{ "in 1905", "in nineteen oh five" },
	{ "Sunday, November 29, 2026", "Sunday, November twenty ninth, twenty twenty six" },
	{ "On Mon. I work", "On Monday I work" },
	{ "you may 3 times", "you may three times" },
)

CASES(ordinals_fractions_ranges,
	{ "1st", "first" }, { "2nd", "second" }, { "3rd", "third" }, { "12th", "twelfth" },
	{ "21st", "twenty first" }, { "30th", "thirtieth" }, { "100th", "one hundredth" },
	{ "101st", "one hundred first" },
	{ "1/2", "one half" }, { "3/4", "three quarters" }, { "2/3", "two thirds" }, { "1/4 cup", "one quarter cup" },
	{ "½", "one half" }, { "2½ hours", "two and a half hours" },
	{ "5-10", "five to ten" }, { "5–10 min", "five to ten minutes" },
	{ "24/7", "twenty four seven" },
)

CASES(money,
	{ "$3.50", "three dollars and fifty cents" },
	{ "$1", "one dollar" },
	{ "$1.01", "one dollar and one cent" },
	{ "$0.99", "ninety nine cents" },
	{ "$5.", "five dollars." },
	{ "€20", "twenty euros" },
	{ "20 €", "twenty euros" },
	{ "3,50 €", "three point five zero euros" },
	{ "£2.50", "two pounds and fifty pence" },
	{ "$1.5 million", "one point five million dollars" },
)

CASES(sums,
	{ "2*3*4", "two times three times four" },
	{ "2 + 2 = 4", "two plus two equals four" },
	{ "6 x 7", "six times seven" },
	{ "6 × 7", "six times seven" },
	{ "5 - 3", "five minus three" },
	{ "2^10", "two to the power of ten" },
	{ "8 / 2", "eight divided by two" },
	{ "5 < 6", "five less than six" },
)

CASES(abbreviations,
	{ "Dr. Smith", "Doctor Smith" },
	{ "Mr. and Mrs. Jones", "Mister and Missus Jones" },
	{ "St. Mary", "Saint Mary" },
	{ "Main St. is closed", "Main Street is closed" },
	{ "e.g. milk", "for example milk" },
	{ "i.e. now", "that is now" },
	{ "milk, eggs, etc.", "milk, eggs, et cetera." },
	{ "cats vs. dogs", "cats versus dogs" },
	{ "No. 5", "number five" },
	{ "No. I can't.", "No. I can't." },
	{ "#3", "number three" },
	{ "salt & pepper", "salt and pepper" },
	{ "J. K. Rowling", "J K Rowling" },
	{ "the U.S. team", "the U S team" },
	{ "and/or", "and or" },
)

CASES(addresses,
	{ "https://example.com/a-b", "example dot com slash a dash b" },
	{ "See www.example.org.", "See www dot example dot org." },
	{ "example.com", "example dot com" },
	{ "me@example.com", "me at example dot com" },
	{ "home.yaml", "home dot yaml" },
	{ "192.168.1.10", "one hundred ninety two point one hundred sixty eight point one point ten" },
	{ "version 1.2.3", "version one point two point three" },
)

static void broken_utf8_is_dropped(void **state)
{
	char *got = NULL;

	assert_int_equal(speak_text("a \xff b \xc3\x28 \xe2\x82", 10, &got), 0);
	assert_string_equal(got, "a b (");
	free(got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_text_stays),
		cmocka_unit_test(numbers_are_words),
		cmocka_unit_test(decimals_by_point_and_comma),
		cmocka_unit_test(units_follow_the_number),
		cmocka_unit_test(times_as_people_say_them),
		cmocka_unit_test(dates_as_people_say_them),
		cmocka_unit_test(ordinals_fractions_ranges),
		cmocka_unit_test(money),
		cmocka_unit_test(sums),
		cmocka_unit_test(abbreviations),
		cmocka_unit_test(addresses),
		cmocka_unit_test(broken_utf8_is_dropped),
	};

	return UNIT_RUN(tests);
}
