// SPDX-License-Identifier: MIT
/*
 * What hearthd reads of others and no library reads for it. The first byte
 * chooses: a configuration, base64, or the frames of a WebSocket, which come
 * partly as bytes read ahead and partly from the socket.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "seeds.h"
#include "server/base64.h"
#include "server/config.h"
#include "server/keyring.h"
#include "server/websocket.h"

static void a_config(const uint8_t *p, size_t n)
{
	struct hearth_err err = { 0 };
	struct keyring *k = NULL;
	struct config c;
	char path[64];
	int fd = memfd_create("config", 0), rc;

	if (fd < 0 || (n && write(fd, p, n) != (ssize_t)n)) {
		close(fd);
		return;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	rc = config_load(path, &c, &err);
	/* A refusal says something; what is taken can be used. */
	if (rc && !err.text[0])
		__builtin_trap();
	if (!rc) {
		if (!c.http.host || c.n_keys > CONFIG_MAX_KEYS || c.n_wy > CONFIG_MAX_WYOMING || (config_check_open(&c, NULL) && c.http.on))
			__builtin_trap();
		if (keyring_new(&k) == 0 && keyring_fill(k, c.keys, c.n_keys, &err))
			__builtin_trap();
		keyring_free(k);
		config_done(&c);
	}
	close(fd);
}

static void some_base64(const uint8_t *p, size_t n)
{
	size_t got = 0, again = 0;
	int rc = 0;
	uint8_t *raw = base64_decode((const char *)p, n, &got, &rc), *back;
	char *text;

	if (!raw) {
		if (rc != -EINVAL && rc != -ENOMEM)
			__builtin_trap();
		return;
	}
	/* What was read is what would be written. */
	text = base64_encode(raw, got);
	back = text ? base64_decode(text, strlen(text), &again, &rc) : NULL;
	if (!text || !back || again != got || memcmp(raw, back, got))
		__builtin_trap();
	free(back);
	free(text);
	free(raw);
}

static void a_websocket(const uint8_t *p, size_t n)
{
	struct websocket *w;
	char *msg, waste[4096];
	size_t len, ahead = n > 1 ? p[0] % n : 0;
	int s[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s))
		return;
	if (n > 60000)
		n = 60000;          /* a socket holds so much without a reader */
	if (ahead > n)
		ahead = n;
	if (websocket_open(s[0], (const char *)p, ahead, 1 << 16, &w) == 0) {
		if (n > ahead && write(s[1], p + ahead, n - ahead) < 0)
			rc = 0;
		shutdown(s[1], SHUT_WR);
		for (int i = 0; i < 100000 && (rc = websocket_read(w, 0, &msg, &len)) >= 0; i++) {
			if (rc && (len > 1 << 16 || msg[len]))
				__builtin_trap();
			if (rc) {
				websocket_send(w, "x", 1);
				free(msg);
			}
			while (recv(s[1], waste, sizeof(waste), MSG_DONTWAIT) > 0)
				;
		}
		shutdown(s[1], SHUT_RDWR);
		websocket_close(w);
	}
	close(s[0]);
	close(s[1]);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char conf[] = "\0model: {path: m.gguf, context: 64}\nhttp: {host: 0.0.0.0, port: 1, max_body: 1M}\n"
		"keys:\n  - {name: a, key: 0123456789abcdef, priority: voice, concurrent: 2, requests_per_minute: 3}\n"
		"wyoming:\n  enabled: on\n  listen:\n    - {port: 1, services: [asr, tts]}\n    - {unix: /tmp/x}\nlog: {json: yes}\n";
	static const char frames[] = "\2\0\x81\x82\0\0\0\0{}\x89\x81\0\0\0\0p\x01\x81\0\0\0\0a\x80\x81\0\0\0\0b\x88\x82\0\0\0\0\x03\xe8";

	fuzz_seed(*argc, *argv, "config", conf, sizeof(conf) - 1);
	fuzz_seed(*argc, *argv, "base64", "\1AAECAw==", 9);
	fuzz_seed(*argc, *argv, "frames", frames, sizeof(frames) - 1);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	switch (data[0] % 3) {
	case 0: a_config(data + 1, size - 1); break;
	case 1: some_base64(data + 1, size - 1); break;
	default: a_websocket(data + 1, size - 1); break;
	}
	return 0;
}
