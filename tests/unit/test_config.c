// SPDX-License-Identifier: MIT
#include "unit.h"
#include "engine/engine.h"
#include "server/config.h"

static char path[] = "/tmp/hearth-config-XXXXXX";

static int load(const char *text, struct config *c, struct hearth_err *err)
{
	int fd, rc;

	strcpy(path + sizeof(path) - 7, "XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	rc = config_load(path, c, err);
	unlink(path);
	return rc;
}

static void a_whole_file_is_taken(void **state)
{
	struct config c;
	struct hearth_err err = { 0 };

	if (load("model: {path: m.gguf, id: home, context: 2048, kv: f16, sessions: 2}\n"
		 "cache: {file: kv.cache}\n"
		 "memory: {kv_max: 300M, tenants: [{name: kids, kv_min: 1M, kv_max: 8M}, {name: guests}]}\n"
		 "http: {host: 0.0.0.0, port: 9000, max_body: 2M, queue: 5}\n"
		 "wyoming: {enabled: on, listen: [{port: 10400, services: [asr, intent]}, {unix: /run/x}]}\n"
		 "keys:\n - {name: ha, key: 0123456789abcdef, priority: voice, concurrent: 2}\n"
		 " - {name: bot, key: fedcba9876543210, priority: background, max_tokens: 64, requests_per_minute: 30, tenant: guests}\n"
		 "log: {json: yes}\n", &c, &err))
		fail_msg("%s", err.text);
	assert_string_equal(c.model, "/tmp/m.gguf"); /* beside the configuration */
	assert_string_equal(c.cache_file, "/tmp/kv.cache");
	assert_int_equal(c.ctx, 2048);
	assert_int_equal(c.kv_max, 300 << 20);
	assert_int_equal(c.http.port, 9000);
	assert_int_equal(c.n_wy, 2);
	assert_int_equal(c.wy[0].at.port, 10400);
	assert_int_equal(c.wy[0].services, WYOMING_ASR | WYOMING_INTENT);
	assert_int_equal(c.wy[1].services, WYOMING_ALL);
	assert_string_equal(c.wy[1].at.unix_path, "/run/x");
	assert_true(c.wyoming.on);
	assert_int_equal(c.n_keys, 2);
	assert_int_equal(c.keys[0].prio, GEN_VOICE);
	assert_int_equal(c.keys[1].max_tokens, 64);
	assert_int_equal(c.keys[1].per_minute, 30);
	assert_int_equal(c.n_tenants, 2);
	assert_string_equal(c.tenants[0].name, "kids");
	assert_int_equal(c.tenants[0].kv_min, 1 << 20);
	assert_int_equal(c.tenants[0].kv_max, 8 << 20);
	assert_int_equal(c.keys[0].tenant, -1);
	assert_int_equal(c.keys[1].tenant, 1);
	assert_true(c.log_json);
	config_done(&c);
}

static void each_mistake_has_a_line(void **state)
{
	static const struct { const char *text, *why; } bad[] = {
		{ "modle: {}\n", "line 1, column 1: the key \"modle\"" },
		{ "model: {path: a, contxt: 3}\n", "\"contxt\"" },
		{ "model: [1]\n", "\"model\" must be a mapping" },
		{ "model:\n  context: lots\n", "line 2, column 12" },
		{ "model: {kv: int4}\n", "\"kv\" must be int8 or f16" },
		{ "http: {port: 70000}\n", "\"port\"" },
		{ "http: {host: 0.0.0.0}\n", "needs at least one entry in \"keys\"" },
		{ "http: {tls_cert: a.pem}\n", "belong together" },
		{ "http: {max_body: 12}\n", "max_body" },
		{ "keys: {a: b}\n", "must be a list" },
		{ "keys:\n - {name: a, key: short}\n", "line 2, column 4: the key \"a\" is shorter" },
		{ "keys:\n - {key: 0123456789abcdef}\n", "no \"name\"" },
		{ "keys:\n - {name: a}\n", "needs \"key\" or \"key_file\"" },
		{ "keys:\n - {name: a, key: 0123456789abcdef, priority: top}\n", "voice, normal or background" },
		{ "keys:\n - {name: a, key: 0123456789abcdef}\n - {name: a, key: 0123456789abcdeg}\n", "of another" },
		{ "keys:\n - {name: a, key_file: /nonexistent/k}\n", "no key can be read" },
		{ "keys:\n - {name: a, key_file: hearth-long.key}\n", "at most 510 bytes" },
		{ "memory: {kv_min: 1M}\n", "\"kv_min\"" },
		{ "chat: {system: hi, home: true}\n", "\"system\" stands instead of \"home\"" },
		{ "chat: {home: true}\n", "line 1, column 7: \"home\" needs \"speech.home\"" },
		{ "chat: {prompt: hi}\n", "the key \"prompt\"" },
		{ "memory: {tenants: {a: b}}\n", "must be a list of at most 16" },
		{ "memory: {tenants: [a]}\n", "must be a mapping with name" },
		{ "memory: {tenants: [{kv_max: 1M}]}\n", "the tenant has no \"name\"" },
		{ "memory: {tenants: [{name: a, max: 1M}]}\n", "the key \"max\"" },
		{ "memory: {tenants: [{name: a, kv_min: 2M, kv_max: 1M}]}\n", "kv_min over its kv_max" },
		{ "memory:\n  tenants: [{name: a},\n            {name: a}]\n", "line 3, column 13: the tenant \"a\" stands there twice" },
		{ "keys:\n - {name: a, key: 0123456789abcdef, tenant: kids}\n", "line 2, column 45: \"memory.tenants\" names no tenant \"kids\"" },
		{ "- 1\n", "must be a mapping" },
		{ "keys:\n - {name: 'a\"b', key: 0123456789abcdef}\n", "without quotes" },
		{ "keys:\n - {name: a, key: 0123456789abcdef, requests_per_minute: 0}\n", "requests_per_minute" },
		{ "wyoming: {services: asr}\n", "must be a list" },
		{ "wyoming: {services: []}\n", "must be a list" },
		{ "wyoming:\n  services: [asr, sing]\n", "line 2, column 19: a service is" },
		{ "wyoming: {listen: []}\n", "1 to 8 addresses" },
		{ "wyoming: {listen: [1]}\n", "an address is a mapping" },
		{ "wyoming: {port: 1, listen: [{port: 2}]}\n", "stands instead of" },
		{ "wyoming: {listen: [{port: 2, tls_cert: x}]}\n", "tls_cert" },
		{ "speech: {wake: x, wake_threshold: 2}\n", "wake_threshold" },
		{ "wyoming: {tools: some}\n", "compact or full" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct hearth_err err = { 0 };
		struct config c;
		int rc;

		memset(&c, 0x55, sizeof(c));
		rc = load(bad[i].text, &c, &err);
		assert_true(rc < 0);
		assert_int_equal(((unsigned char *)&c)[0], 0x55);
		if (!strstr(err.text, bad[i].why))
			fail_msg("\"%s\" does not say \"%s\"", err.text, bad[i].why);
	}
}

/* One byte longer than is read at once. */
static int long_key(void **state)
{
	FILE *f = fopen("/tmp/hearth-long.key", "w");

	for (int i = 0; i < 512; i++)
		putc('k', f);
	return fclose(f);
}

static int no_key(void **state)
{
	return unlink("/tmp/hearth-long.key");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_file_is_taken),
		cmocka_unit_test_setup_teardown(each_mistake_has_a_line, long_key, no_key),
	};
	return UNIT_RUN(tests);
}
