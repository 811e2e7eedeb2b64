// SPDX-License-Identifier: MIT
/* Framing as the Python library of Wyoming 1.9 reads and writes it. */
#include "unit.h"
#include "server/base64.h"
#include "server/wyoming_frame.h"

static void feed(struct wyoming_reader *r, const char *s, size_t n, size_t step)
{
	const char *why = NULL;

	for (size_t i = 0; i < n; i += step) {
		size_t k = n - i < step ? n - i : step;

		if (wyoming_feed(r, s + i, k, &why))
			fail_msg("%s", why);
	}
}

static void every_form_of_data_is_read_however_it_is_cut(void **state)
{
	static const char stream[] =
		"{\"type\":\"a\",\"data\":{\"x\":1,\"y\":2},\"data_length\":16,\"payload_length\":3,\"new\":true}\n"
		"{\"y\": 5, \"z\": 6}pcm"
		"{\"type\": \"describe\"}\r\n"
		"{\"type\":\"b\",\"data\":null,\"payload_length\":0,\"data_length\":null}\n"
		"{\"type\":\"c\",\"data_length\":4}\nnull";

	for (size_t step = 1; step < sizeof(stream); step += 7) {
		struct wyoming_reader *r;
		struct wyoming_event e;

		assert_int_equal(wyoming_reader_new(&r), 0);
		feed(r, stream, sizeof(stream) - 1, step);
		assert_int_equal(wyoming_next(r, &e), 1);
		assert_string_equal(e.type, "a");
		assert_int_equal(json_integer_value(json_object_get(e.data, "x")), 1);
		assert_int_equal(json_integer_value(json_object_get(e.data, "y")), 5);
		assert_int_equal(json_integer_value(json_object_get(e.data, "z")), 6);
		assert_int_equal(e.n_payload, 3);
		assert_memory_equal(e.payload, "pcm", 3);
		wyoming_event_done(&e);
		for (const char *t = "dbc"; *t; t++) {
			assert_int_equal(wyoming_next(r, &e), 1);
			assert_int_equal(e.type[0], *t);
			assert_true(json_is_object(e.data));
			assert_int_equal(json_object_size(e.data), 0);
			wyoming_event_done(&e);
		}
		assert_int_equal(wyoming_next(r, &e), 0);
		wyoming_reader_free(r);
	}
}

static void what_is_no_event_is_refused_with_a_reason(void **state)
{
	static const struct { const char *bytes, *why; } bad[] = {
		{ "\n", "not a JSON object" },
		{ "[1]\n", "not a JSON object" },
		{ "{\"data\":{}}\n", "no type" },
		{ "{\"type\":5}\n", "no type" },
		{ "{\"type\":\"\xff\"}\n", "not a JSON object" },
		{ "{\"type\":\"a\",\"data_length\":-1}\n", "data_length" },
		{ "{\"type\":\"a\",\"data_length\":\"3\"}\n", "data_length" },
		{ "{\"type\":\"a\",\"data_length\":99999999}\n", "data_length" },
		{ "{\"type\":\"a\",\"payload_length\":99999999999}\n", "payload_length" },
		{ "{\"type\":\"a\",\"data_length\":3}\n[1]", "data block" },
		{ "{\"type\":\"a\",\"data_length\":3}\nxyz", "data block" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct wyoming_reader *r;
		struct wyoming_event e;
		const char *why = "";

		assert_int_equal(wyoming_reader_new(&r), 0);
		assert_int_equal(wyoming_feed(r, bad[i].bytes, strlen(bad[i].bytes), &why), -EBADMSG);
		if (!strstr(why, bad[i].why))
			fail_msg("\"%s\" does not say \"%s\"", why, bad[i].why);
		assert_int_equal(wyoming_next(r, &e), 0);
		assert_int_equal(wyoming_feed(r, "{\"type\":\"a\"}\n", 13, &why), -EBADMSG);
		wyoming_reader_free(r);
	}
}

static void an_endless_header_is_refused(void **state)
{
	struct wyoming_reader *r;
	char *big = malloc(70000);
	const char *why = "";

	memset(big, 'x', 70000);
	assert_int_equal(wyoming_reader_new(&r), 0);
	assert_int_equal(wyoming_feed(r, big, 70000, &why), -EBADMSG);
	assert_non_null(strstr(why, "64 KiB"));
	wyoming_reader_free(r);
	free(big);
}

static void what_is_written_is_read_back(void **state)
{
	json_t *d = json_pack("{s:s,s:n}", "text", "gr\xc3\xbc\xc3\x9f", "timestamp");
	struct wyoming_reader *r;
	struct wyoming_event e;
	char *buf;
	size_t n;

	assert_int_equal(wyoming_encode("audio-chunk", d, "\0\1\2", 3, &buf, &n), 0);
	/* Raw UTF-8, data in a block, nothing in the header but its length. */
	assert_null(memmem(buf, n, "\"data\":", 7));
	assert_non_null(memmem(buf, n, "gr\xc3\xbc\xc3\x9f", 6));
	assert_int_equal(wyoming_reader_new(&r), 0);
	feed(r, buf, n, 5);
	assert_int_equal(wyoming_next(r, &e), 1);
	assert_true(json_equal(e.data, d));
	assert_memory_equal(e.payload, "\0\1\2", 3);
	wyoming_event_done(&e);
	free(buf);
	assert_int_equal(wyoming_encode("pong", NULL, NULL, 0, &buf, &n), 0);
	assert_null(memmem(buf, n, "length", 6));
	free(buf);
	wyoming_reader_free(r);
	json_decref(d);
}

/* RFC 4648, section 10 */
static void base64_follows_its_vectors(void **state)
{
	static const struct { const char *plain, *coded; } v[] = {
		{ "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" }, { "foo", "Zm9v" }, { "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" }, { "foobar", "Zm9vYmFy" },
	};
	static const char *const bad[] = { "Z", "Zg=", "Zg=a", "====", "Zm9*", "=Zg=", "Zm\n=" };
	size_t n;
	int rc;

	for (size_t i = 0; i < 7; i++) {
		char *c = base64_encode(v[i].plain, strlen(v[i].plain));
		uint8_t *p = base64_decode(v[i].coded, strlen(v[i].coded), &n, &rc);

		assert_string_equal(c, v[i].coded);
		assert_non_null(p);
		assert_int_equal(n, strlen(v[i].plain));
		assert_memory_equal(p, v[i].plain, n);
		free(c);
		free(p);
		assert_null(base64_decode(bad[i], strlen(bad[i]), &n, &rc));
		assert_int_equal(rc, -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_of_data_is_read_however_it_is_cut),
		cmocka_unit_test(what_is_no_event_is_refused_with_a_reason),
		cmocka_unit_test(an_endless_header_is_refused),
		cmocka_unit_test(what_is_written_is_read_back),
		cmocka_unit_test(base64_follows_its_vectors),
	};
	return UNIT_RUN(tests);
}
