// SPDX-License-Identifier: MIT
#include "unit.h"
#include "engine/engine.h"
#include "server/keyring.h"

static struct config_key key(const char *name, const char *secret, uint32_t concurrent, uint32_t per_minute)
{
	return (struct config_key){ .name = (char *)name, .secret = (char *)secret, .prio = GEN_NORMAL, .max_tokens = 7,
				    .concurrent = concurrent, .per_minute = per_minute };
}

static void a_key_is_found_whole_or_not_at_all(void **state)
{
	struct config_key two[] = { key("ha", "0123456789abcdef", 0, 0), key("bot", "fedcba9876543210", 0, 0) };
	static const char *const wrong[] = { "", "0123456789abcde", "0123456789abcdeX", "0123456789abcdef0", "X123456789abcdef", "fedcba9876543211" };
	struct keyring *k;
	char name[64];
	int who = 77;

	assert_int_equal(keyring_new(&k), 0);
	/* no key: everybody, as nobody in particular */
	assert_int_equal(keyring_find(k, NULL, &who), 0);
	assert_int_equal(who, -1);
	assert_int_equal(keyring_limits(k, -1).prio, GEN_VOICE);
	assert_int_equal(keyring_fill(k, two, 2, NULL), 0);
	who = 77;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(keyring_find(k, wrong[i], &who), -EACCES);
	assert_int_equal(keyring_find(k, NULL, &who), -EACCES);
	assert_int_equal(who, 77);
	assert_int_equal(keyring_find(k, "fedcba9876543210", &who), 0);
	keyring_name(k, who, name);
	assert_string_equal(name, "bot");
	assert_int_equal(keyring_limits(k, who).max_tokens, 7);
	keyring_drop(k, who);
	keyring_free(k);
}

static void a_new_fill_keeps_places_that_are_held(void **state)
{
	struct config_key old[] = { key("a", "aaaaaaaaaaaaaaaa", 2, 0), key("b", "bbbbbbbbbbbbbbbb", 0, 0) };
	struct config_key now[] = { key("b", "BBBBBBBBBBBBBBBB", 0, 0), key("c", "cccccccccccccccc", 0, 0) };
	struct hearth_err err = { 0 };
	struct keyring *k;
	char name[64];
	int a, b, b2, c;

	assert_int_equal(keyring_new(&k), 0);
	assert_int_equal(keyring_fill(k, old, 2, NULL), 0);
	assert_int_equal(keyring_find(k, "aaaaaaaaaaaaaaaa", &a), 0);
	assert_int_equal(keyring_find(k, "bbbbbbbbbbbbbbbb", &b), 0);
	assert_int_equal(keyring_enter(k, a, 0, &err), 0);
	assert_int_equal(keyring_fill(k, now, 2, NULL), 0);
	/* taken away: what runs goes on, nothing new begins, the secret opens nothing */
	assert_int_equal(keyring_enter(k, a, 0, &err), -EACCES);
	assert_non_null(strstr(err.text, "no longer valid"));
	assert_int_equal(keyring_find(k, "aaaaaaaaaaaaaaaa", &c), -EACCES);
	assert_int_equal(keyring_find(k, "bbbbbbbbbbbbbbbb", &c), -EACCES);
	assert_int_equal(keyring_find(k, "cccccccccccccccc", &c), 0);
	assert_int_not_equal(c, a);
	keyring_name(k, a, name);
	assert_string_equal(name, "a");
	/* same name, new secret: same place */
	assert_int_equal(keyring_find(k, "BBBBBBBBBBBBBBBB", &b2), 0);
	assert_int_equal(b2, b);
	keyring_leave(k, a, 0, 1, 1);
	keyring_free(k);
}

static void places_come_back_when_nobody_holds_them(void **state)
{
	struct keyring *k;
	struct hearth_err err = { 0 };
	int who, held[1024], n = 0, rc = 0;

	assert_int_equal(keyring_new(&k), 0);
	/* let go each time: any number of names may come and go */
	for (int i = 0; i < 2000; i++) {
		char name[16], secret[32];
		struct config_key one;

		snprintf(name, sizeof(name), "k%d", i);
		snprintf(secret, sizeof(secret), "%016d", i);
		one = key(name, secret, 0, 0);
		assert_int_equal(keyring_fill(k, &one, 1, &err), 0);
		assert_int_equal(keyring_find(k, secret, &who), 0);
		keyring_drop(k, who);
	}
	/* held: an end is reached, with a sentence, and the last good keys stay */
	while (!rc && n < 1024) {
		char name[16], secret[32];
		struct config_key one;

		snprintf(name, sizeof(name), "h%d", n);
		snprintf(secret, sizeof(secret), "held%012d", n);
		one = key(name, secret, 0, 0);
		rc = keyring_fill(k, &one, 1, &err);
		if (!rc)
			assert_int_equal(keyring_find(k, secret, &held[n++]), 0);
	}
	assert_int_equal(rc, -ENOSPC);
	assert_non_null(strstr(err.text, "taken away"));
	{
		char secret[32];

		snprintf(secret, sizeof(secret), "held%012d", n - 1);
		assert_int_equal(keyring_find(k, secret, &who), 0);
	}
	keyring_free(k);
}

static void limits_hold(void **state)
{
	struct config_key two[] = { key("a", "aaaaaaaaaaaaaaaa", 2, 0), key("b", "bbbbbbbbbbbbbbbb", 0, 3) };
	struct hearth_err err = { 0 };
	struct keyring_stat st[4];
	struct keyring *k;
	int a, b;

	assert_int_equal(keyring_new(&k), 0);
	assert_int_equal(keyring_fill(k, two, 2, NULL), 0);
	assert_int_equal(keyring_find(k, "aaaaaaaaaaaaaaaa", &a), 0);
	assert_int_equal(keyring_find(k, "bbbbbbbbbbbbbbbb", &b), 0);
	assert_int_equal(keyring_enter(k, a, 0, &err), 0);
	assert_int_equal(keyring_enter(k, a, 0, &err), 0);
	assert_int_equal(keyring_enter(k, a, 0, &err), -EAGAIN);
	assert_non_null(strstr(err.text, "2 requests running"));
	keyring_leave(k, a, 0, 10, 5);
	assert_int_equal(keyring_enter(k, a, 0, &err), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(keyring_enter(k, b, 0, &err), 0);
		keyring_leave(k, b, 0, 0, 0);
	}
	assert_int_equal(keyring_enter(k, b, 0, &err), -EAGAIN);
	assert_non_null(strstr(err.text, "3 requests a minute"));
	assert_int_equal(keyring_stats(k, st, 4), 2);
	assert_int_equal(st[0].requests, 4);
	assert_int_equal(st[0].refused, 1);
	assert_int_equal(st[0].running, 2);
	assert_int_equal(st[0].tokens_in, 10);
	keyring_free(k);
}

static void the_cache_is_promised_once(void **state)
{
	struct config_key one = key("a", "aaaaaaaaaaaaaaaa", 0, 0);
	struct hearth_err err = { 0 };
	struct keyring *k;
	int a;

	one.kv_max = 3 << 20;
	assert_int_equal(keyring_new(&k), 0);
	assert_int_equal(keyring_fill(k, &one, 1, NULL), 0);
	assert_int_equal(keyring_find(k, "aaaaaaaaaaaaaaaa", &a), 0);
	assert_int_equal(keyring_limits(k, a).kv_max, 3 << 20);
	assert_int_equal(keyring_enter(k, a, 2 << 20, &err), 0);
	assert_int_equal(keyring_enter(k, a, (1 << 20) + 1, &err), -EAGAIN);
	assert_non_null(strstr(err.text, "budget of 3.0 MiB"));
	assert_non_null(strstr(err.text, "2.0 MiB"));
	assert_int_equal(keyring_enter(k, a, 1 << 20, &err), 0);
	keyring_leave(k, a, 2 << 20, 0, 0);
	assert_int_equal(keyring_enter(k, a, 2 << 20, &err), 0);
	keyring_leave(k, a, 2 << 20, 0, 0);
	keyring_leave(k, a, 1 << 20, 0, 0);
	keyring_free(k);
}

static void too_many_are_refused_whole(void **state)
{
	struct config_key many[CONFIG_MAX_KEYS + 1] = { { 0 } };
	struct hearth_err err = { 0 };
	struct keyring *k;

	assert_int_equal(keyring_new(&k), 0);
	assert_int_equal(keyring_fill(k, many, CONFIG_MAX_KEYS + 1, &err), -ENOSPC);
	keyring_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_is_found_whole_or_not_at_all),
		cmocka_unit_test(a_new_fill_keeps_places_that_are_held),
		cmocka_unit_test(places_come_back_when_nobody_holds_them),
		cmocka_unit_test(limits_hold),
		cmocka_unit_test(the_cache_is_promised_once),
		cmocka_unit_test(too_many_are_refused_whole),
	};

	return UNIT_RUN(tests);
}
