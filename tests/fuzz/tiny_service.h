/* SPDX-License-Identifier: MIT */
/* A service on a model of a few kilobytes, made once: for fuzzers of what hearthd reads. */
#ifndef HEARTH_FUZZ_TINY_SERVICE_H
#define HEARTH_FUZZ_TINY_SERVICE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../unit/synth.h"
#include "server/service.h"
#include "token/chat.h"

static inline const char *tiny_dir(void)
{
	static char dir[] = "/tmp/hearth-fuzz-XXXXXX";
	static int made;

	if (!made++ && !mkdtemp(dir))
		abort();
	return dir;
}

static inline void tiny_gone(void)
{
	char path[80];
	static const char *const files[] = { "model.gguf", "http" };

	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", tiny_dir(), files[i]);
		unlink(path);
	}
	rmdir(tiny_dir());
}

static inline struct service *tiny_service(void)
{
	static struct config cfg;
	static struct keyring *keys;
	struct hearth_err err = { 0 };
	struct service *s = NULL;
	struct synth_opts o;
	char path[80];

	snprintf(path, sizeof(path), "%s/model.gguf", tiny_dir());
	atexit(tiny_gone);
	synth_defaults(&o);
	o.layers = 1;
	o.d_model = 32;
	o.d_ff = 32;
	o.heads = o.kv_heads = 1;
	o.head_dim = 32;
	o.ctx = 256;
	if (synth_model(path, &o) || config_defaults(&cfg, &err) || keyring_new(&keys))
		abort();
	cfg.model = strdup(path);
	cfg.model_id = strdup("tiny");
	cfg.sessions = 2;
	cfg.threads = 1;
	cfg.ctx = 256;
	if (service_open(&cfg, keys, &s, &err)) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	/* The model's file has no template: it is one of Qwen's. */
	if (!s->chat && chat_open_named("qwen3", &s->chat, &err))
		abort();
	return s;
}

static inline int tiny_connect(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a))) {
		close(fd);
		return -1;
	}
	return fd;
}

#endif
