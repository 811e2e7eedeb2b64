// SPDX-License-Identifier: MIT
/*
 * The HTTP server by itself, spoken to byte by byte: pages of a browser that
 * are not ours, bodies that are too long, what the log is told, and WebSocket
 * clients that send without end or never read.
 */
#include "unit.h"
#include "synth.h"
#include "server/flow.h"
#include "server/http.h"
#include "server/websocket.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/time.h>

#define KEY "0123456789abcdef"
#define MAX 4096u

static bool keyed;
static char logged[1024];
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int served, dropped;
static size_t most;              /* bytes that a session had read ahead */
static int ws_end;

static int auth(void *ctx, const char *bearer, int *ret_who)
{
	if (!keyed)
		return 0;        /* -1 stays: nobody in particular */
	if (!bearer || strcmp(bearer, KEY))
		return -EACCES;
	*ret_who = 0;
	return 0;
}

static void note(void *ctx, const char *id, const char *method, const char *path, int status, uint64_t ns, uint64_t bytes, int who)
{
	pthread_mutex_lock(&log_lock);
	snprintf(logged, sizeof(logged), "%s %s %d", method, path, status);
	pthread_mutex_unlock(&log_lock);
}

static void on_open(struct http_req *r, void *ctx)
{
	http_reply(r, 200, "text/plain", "open", 4);
}

static void on_echo(struct http_req *r, void *ctx)
{
	size_t n;
	const char *b = http_body(r, &n);

	http_reply(r, 200, "text/plain", b, n);
}

static long fill(void *arg, char *buf, size_t cap)
{
	memset(buf, 'x', cap);
	return (long)cap;
}

static void over(void *arg)
{
	dropped++;
}

static void on_endless(struct http_req *r, void *ctx)
{
	http_stream(r, 200, "text/plain", fill, over, NULL);
}

static void ws_drop(void *arg)
{
	dropped++;
}

/* Reads one message, naps, and counts what was taken in meanwhile. */
static void ws_run(void *arg, int fd, const char *extra, size_t n_extra)
{
	struct websocket *w;
	char *text;
	size_t n;
	int rc;

	if (websocket_open(fd, extra, n_extra, 1u << 20, &w))
		return;
	while ((rc = websocket_read(w, 2000, &text, &n)) >= 0) {
		if (!rc)
			continue;
		if (websocket_pending(w) > most)
			most = websocket_pending(w);
		free(text);
	}
	ws_end = rc;
	websocket_close(w);
	served++;
}

static void on_ws(struct http_req *r, void *ctx)
{
	http_upgrade(r, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", ws_run, ws_drop, NULL);
}

static const struct http_route routes[] = {
	{ "GET", "/open", HTTP_OPEN, on_open },
	{ "GET", "/shut", 0, on_open },
	{ "GET", "/endless", HTTP_OPEN, on_endless },
	{ "POST", "/echo", 0, on_echo },
	{ "POST", "/form", HTTP_MULTIPART, on_echo },
	{ "GET", "/ws", HTTP_UPGRADE, on_ws },
};

static struct http_server *server;

static int up(void **state)
{
	struct http_opts o = {
		.host = "127.0.0.1", .max_body = MAX, .max_connections = 16, .idle_seconds = 30,
		.routes = routes, .n_routes = sizeof(routes) / sizeof(routes[0]), .auth = auth, .log = note,
	};
	struct hearth_err err = { 0 };

	if (http_start(&o, &server, &err)) {
		print_error("%s\n", err.text);
		return -1;
	}
	http_serve(server, &server);
	return 0;
}

static int down(void **state)
{
	http_stop(server);
	return 0;
}

static int dial(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(http_port(server)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval t = { .tv_sec = 20 };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
	return fd;
}

static void put(int fd, const void *p, size_t n)
{
	while (n) {
		ssize_t k = send(fd, p, n, MSG_NOSIGNAL);

		assert_true(k > 0);
		p = (const char *)p + k;
		n -= (size_t)k;
	}
}

/* The status of @request, whose connection is closed afterwards; 0: nothing came. */
static int ask(const char *request, char *body, size_t cap)
{
	char buf[8192] = "", *end;
	int fd = dial(), status = 0;
	size_t n = 0;
	ssize_t k;

	put(fd, request, strlen(request));
	while (n < sizeof(buf) - 1 && (k = recv(fd, buf + n, sizeof(buf) - 1 - n, 0)) > 0)
		n += (size_t)k;
	buf[n] = 0;
	close(fd);
	sscanf(buf, "HTTP/1.%*d %d", &status);
	end = strstr(buf, "\r\n\r\n");
	if (body)
		snprintf(body, cap, "%s", end ? end + 4 : "");
	return status;
}

static int get(const char *path, const char *headers)
{
	char text[1024];

	snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\n%sConnection: close\r\n\r\n", path, headers);
	return ask(text, NULL, 0);
}

/*
 * A name that an attacker's DNS points at 127.0.0.1 makes its page one of our
 * origin. Addresses and localhost cannot be had that way.
 */
static void test_rebinding(void **state)
{
	static const char *const ours[] = { "127.0.0.1", "127.0.0.1:8080", "localhost", "LocalHost:80", "[::1]:8080", "[::1]", "app.localhost", "192.168.1.5:8080" };
	static const char *const theirs[] = { "evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "notlocalhost", "[::1].evil.example", "1.2.3.4x" };
	char h[256];

	keyed = false;
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		snprintf(h, sizeof(h), "Host: %s\r\n", ours[i]);
		assert_int_equal(get("/shut", h), 200);
	}
	for (size_t i = 0; i < sizeof(theirs) / sizeof(theirs[0]); i++) {
		snprintf(h, sizeof(h), "Host: %s\r\n", theirs[i]);
		if (get("/shut", h) != 403)
			fail_msg("%s was let in", theirs[i]);
		/* Its page is of the same origin as we are, by its lights. */
		snprintf(h, sizeof(h), "Host: %s\r\nOrigin: http://%s\r\n", theirs[i], theirs[i]);
		assert_int_equal(get("/shut", h), 403);
	}
	/* What needs no key is no secret; and a key is what a foreign page does not have. */
	assert_int_equal(get("/open", "Host: evil.example\r\n"), 200);
	keyed = true;
	assert_int_equal(get("/shut", "Host: hearth.example\r\nAuthorization: Bearer " KEY "\r\n"), 200);
	assert_int_equal(get("/shut", "Host: hearth.example\r\n"), 401);
	keyed = false;
}

/* A body whose length is not said beforehand is measured as it comes, and told the same. */
static void test_too_long(void **state)
{
	static char text[64 + 8 * 2100];
	char body[1024];
	size_t n;

	for (int way = 0; way < 2; way++) {
		n = (size_t)sprintf(text, "POST %s HTTP/1.1\r\nHost: localhost\r\n%sTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
				    way ? "/form" : "/echo", way ? "Content-Type: multipart/form-data; boundary=xyz\r\n" : "");
		for (int i = 0; i < 5; i++) {
			n += (size_t)sprintf(text + n, "400\r\n");
			memset(text + n, 'a', 0x400);
			n += 0x400;
			n += (size_t)sprintf(text + n, "\r\n");
		}
		strcpy(text + n, "0\r\n\r\n");
		assert_int_equal(ask(text, body, sizeof(body)), 413);
		assert_non_null(strstr(body, "too_large"));
	}
	/* One that fits, to the byte. */
	n = (size_t)sprintf(text, "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n1000\r\n");
	memset(text + n, 'a', MAX);
	strcpy(text + n + MAX, "\r\n0\r\n\r\n");
	assert_int_equal(ask(text, NULL, 0), 200);
}

/* A path comes decoded: what it holds must not look like lines of the log, nor move a terminal's cursor. */
static void test_log(void **state)
{
	char line[1024] = "";

	get("/a%0d%0a2026-01-01T00:00:00Z%20req-1%1b[2J%7f%c3%bc%25", "Host: localhost\r\n");
	for (int i = 0; i < 200 && !*line; i++) {
		usleep(10000);
		pthread_mutex_lock(&log_lock);
		if (strstr(logged, "/a"))
			strcpy(line, logged);
		pthread_mutex_unlock(&log_lock);
	}
	assert_string_equal(line, "GET /a%0d%0a2026-01-01T00:00:00Z%20req-1%1b[2J%7f%c3%bc%25 404");
}

static const char upgrade[] = "Host: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
			      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

static int dial_ws(void)
{
	char buf[2048];
	size_t n = 0;
	ssize_t k;
	int fd = dial();

	put(fd, "GET /ws HTTP/1.1\r\n", 18);
	put(fd, upgrade, sizeof(upgrade) - 1);
	do {
		k = recv(fd, buf + n, sizeof(buf) - 1 - n, 0);
		assert_true(k > 0);
		n += (size_t)k;
		buf[n] = 0;
	} while (!strstr(buf, "\r\n\r\n"));
	assert_int_equal(strncmp(buf, "HTTP/1.1 101", 12), 0);
	return fd;
}

/* Everything that a client can send at once is not read at once: the socket holds it back. */
static void test_flood(void **state)
{
	/* A text frame of 64 KiB, masked with zeroes. */
	static uint8_t frame[14 + (64 << 10)] = { 0x81, 0xff, 0, 0, 0, 0, 0, 1, 0, 0 };
	int fd = dial_ws(), before = served;

	memset(frame + 14, 'x', sizeof(frame) - 14);
	most = 0;
	for (int i = 0; i < 600; i++)
		put(fd, frame, sizeof(frame));
	close(fd);
	for (int i = 0; i < 2000 && served == before; i++)
		usleep(10000);
	assert_int_equal(served, before + 1);
	/* 37 MiB came; what waits is bounded by a message or two besides the limit. */
	if (most > (4u << 20))
		fail_msg("%zu bytes were taken in ahead", most);
}

/* Pings are answered, but not without end to who never reads. */
static void test_pings(void **state)
{
	static uint8_t ping[64 * (6 + 125)];
	int fd = dial_ws(), before = served;
	bool over = false;

	for (size_t i = 0; i < 64; i++) {
		ping[i * 131] = 0x89;
		ping[i * 131 + 1] = 0x80 | 125;
	}
	/* 8 MiB of them are too many; a while for the server to say so. */
	for (int i = 0; i < 3000 && !over; i++) {
		ssize_t at = 0, k;

		if (i > 1200)
			usleep(10000);
		while (at < (ssize_t)sizeof(ping) && !over) {
			k = send(fd, ping + at, sizeof(ping) - (size_t)at, MSG_NOSIGNAL);
			over = k <= 0;
			at += k;
		}
	}
	assert_true(over || served != before);
	close(fd);
	for (int i = 0; i < 2000 && served == before; i++)
		usleep(10000);
	assert_int_equal(served, before + 1);
}

/* HEAD is GET without a body; of a WebSocket there is no such thing. */
static void test_head(void **state)
{
	char text[1024];

	snprintf(text, sizeof(text), "HEAD /ws HTTP/1.1\r\n%s", upgrade);
	assert_int_equal(ask(text, NULL, 0), 405);
	assert_int_equal(ask("HEAD /open HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", NULL, 0), 200);
}

static atomic_int refused_at;

/* Says more than anybody takes, and then listens. */
static void talk_run(void *arg, int fd, const char *extra, size_t n_extra)
{
	static char text[1 << 20];
	struct websocket *w;
	char *got;
	size_t n;

	assert_int_equal(websocket_open(fd, extra, n_extra, 1u << 20, &w), 0);
	memset(text, 'x', sizeof(text));
	for (int i = 0; i < 100 && !refused_at; i++)
		if (websocket_send(w, text, sizeof(text)))
			refused_at = i;
	ws_end = websocket_read(w, 1000, &got, &n);
	websocket_close(w);
	served++;
}

static void on_talk(struct http_req *r, void *ctx)
{
	http_upgrade(r, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", talk_run, ws_drop, NULL);
}

/* What is not taken is bounded, and after a message that was lost there is no connection. */
static void test_not_read(void **state)
{
	static const struct http_route talk[] = { { "GET", "/ws", HTTP_UPGRADE, on_talk } };
	struct http_opts o = { .host = "127.0.0.1", .max_body = MAX, .max_connections = 16, .idle_seconds = 30, .routes = talk, .n_routes = 1 };
	struct http_server *all = server;
	struct hearth_err err = { 0 };
	int fd, before = served;

	assert_int_equal(http_start(&o, &server, &err), 0);
	http_serve(server, &server);
	fd = dial_ws();
	for (int i = 0; i < 2000 && served == before; i++)
		usleep(10000);
	close(fd);
	http_stop(server);
	server = all;
	assert_int_equal(served, before + 1);
	assert_in_range(refused_at, 20, 60);
	assert_int_equal(ws_end, -EPIPE);
}

static struct websocket *held;
static atomic_int stop_it;

/* A session that takes a while to say goodbye. */
static void slow_run(void *arg, int fd, const char *extra, size_t n_extra)
{
	char *text;
	size_t n;

	assert_int_equal(websocket_open(fd, extra, n_extra, 1u << 20, &held), 0);
	while (!stop_it && websocket_read(held, 50, &text, &n) >= 0)
		;
	usleep(300000);
	websocket_close(held);
	served++;
}

static void on_slow(struct http_req *r, void *ctx)
{
	http_upgrade(r, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", slow_run, ws_drop, NULL);
}

/* A stop waits for the session, and what the session stands on is there until then. */
static void test_stop(void **state)
{
	static const struct http_route slow[] = { { "GET", "/ws", HTTP_UPGRADE, on_slow } };
	struct http_opts o = { .host = "127.0.0.1", .max_body = MAX, .max_connections = 16, .idle_seconds = 30, .routes = slow, .n_routes = 1 };
	struct http_server *all = server;
	struct hearth_err err = { 0 };
	int fd, before = served;
	char buf[16];

	assert_int_equal(http_start(&o, &server, &err), 0);
	http_serve(server, &server);
	fd = dial_ws();
	http_quiesce(server);
	stop_it = 1;
	http_stop(server);
	server = all;
	assert_int_equal(served, before + 1);
	/* Its close frame came, and then the end: nothing was torn off. */
	assert_int_equal(recv(fd, buf, sizeof(buf), 0), 4);
	assert_int_equal((uint8_t)buf[0], 0x88);
	assert_int_equal(recv(fd, buf, sizeof(buf), 0), 0);
	close(fd);
}

/* The pieces of a stream are written by hand: each text must be read as what it was. */
/* A stop waits for an answer under way, but not for ever. */
static void a_reader_that_takes_nothing_does_not_hold_a_stop_up(void **state)
{
	static const char ask[] = "GET /endless HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
	char c;
	int fd;

	http_stop(server);
	assert_int_equal(up(NULL), 0);
	dropped = 0;
	fd = dial();
	put(fd, ask, sizeof(ask) - 1);
	assert_int_equal(recv(fd, &c, 1, 0), 1);   /* it is under way */
	http_stop(server);
	assert_int_equal(dropped, 1);
	close(fd);
	assert_int_equal(up(NULL), 0);
}

static void a_streams_texts_are_json(void **state)
{
	uint64_t seed = 3;

	for (int i = 0; i < 2000; i++) {
		char text[64];
		size_t n = 0;
		struct flow f = { 0 };
		json_t *j;

		while (n + 4 < sizeof(text) && synth_rand(&seed) % 16) {
			static const char *const pieces[] = { "\"", "\\", "/", "\x7f", "\xc3\xa9", "\xf0\x9f\x98\x80", "a", "\n", "\r", "\t", "\b", "\f", "\x01", "\x1f" };
			const char *p = pieces[synth_rand(&seed) % (sizeof(pieces) / sizeof(pieces[0]))];

			memcpy(text + n, p, strlen(p));
			n += strlen(p);
		}
		flow_string(&f, text, n);
		j = json_loads(f.out.p, JSON_DECODE_ANY, NULL);
		assert_true(json_string_length(j) == n && !memcmp(json_string_value(j), text, n));
		json_decref(j);
		flow_done(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_streams_texts_are_json),
		cmocka_unit_test(test_rebinding),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_log),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_pings),
		cmocka_unit_test(test_head),
		cmocka_unit_test(test_not_read),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(a_reader_that_takes_nothing_does_not_hold_a_stop_up),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name(__FILE__, tests, up, down);
}
