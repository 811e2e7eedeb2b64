// SPDX-License-Identifier: MIT
#include "server/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/yaml.h"
#include "engine/engine.h"

static int set_text(char **to, const char *s)
{
	char *copy = s ? strdup(s) : NULL;

	if (s && !copy)
		return -ENOMEM;
	free(*to);
	*to = copy;
	return 0;
}

int config_defaults(struct config *c, struct hearth_err *err)
{
	memset(c, 0, sizeof(*c));
	c->sessions = 4;
	c->http = (struct config_listen){ .port = 8080, .on = true };
	c->wyoming = (struct config_listen){ .port = 10300, .on = false };
	c->max_body = 25u << 20;
	c->max_connections = 128;
	c->idle_seconds = 120;
	c->request_seconds = 600;
	c->queue = 64;
	c->zeroconf = true;
	c->wake_threshold = 1e-20;
	c->jump_forward = true;
	c->cache_on = true;
	c->cache_max = 256u << 20;
	c->cache_seconds = 300;
	if (set_text(&c->http.host, "127.0.0.1") || set_text(&c->wyoming.host, "127.0.0.1") ||
	    set_text(&c->kv, "int8") || set_text(&c->backend, "auto") || set_text(&c->embeddings, "auto") || set_text(&c->voice, "slt"))
		return err_set(err, -ENOMEM, "out of memory");
	return 0;
}

static void listen_done(struct config_listen *l)
{
	free(l->host);
	free(l->unix_path);
	free(l->tls_cert);
	free(l->tls_key);
	free(l->cors);
}

void config_done(struct config *c)
{
	for (uint32_t i = 0; i < c->n_keys; i++) {
		free(c->keys[i].name);
		if (c->keys[i].secret)
			explicit_bzero(c->keys[i].secret, strlen(c->keys[i].secret));
		free(c->keys[i].secret);
	}
	for (uint32_t i = 0; i < c->n_tenants; i++)
		free(c->tenants[i].name);
	listen_done(&c->http);
	listen_done(&c->wyoming);
	for (uint32_t i = 0; i < c->n_wy; i++)
		listen_done(&c->wy[i].at);
	free(c->wy_prompt);
	free(c->chat_system);
	free(c->model);
	free(c->model_id);
	free(c->backend);
	free(c->embeddings);
	free(c->kv);
	free(c->device);
	free(c->voice);
	free(c->lm);
	free(c->wake);
	free(c->dict);
	free(c->home);
	free(c->cache);
	free(c->vad);
	free(c->cache_file);
	free(c->path);
	memset(c, 0, sizeof(*c));
}

struct reader {
	struct yaml *y;
	struct hearth_err *err;
	const char *path;          /* of the configuration */
	int rc;                    /* first failure; later reads do nothing */
};

static void text(struct reader *r, yaml_node map, const char *key, char **to)
{
	const char *s = NULL;

	if (r->rc)
		return;
	r->rc = yaml_get_str(r->y, map, key, &s, r->err);
	if (!r->rc && s && set_text(to, s))
		r->rc = err_set(r->err, -ENOMEM, "out of memory");
}

/* A file's name: one that does not begin at the root is looked for beside the configuration. */
static void file_name(struct reader *r, yaml_node map, const char *key, char **to)
{
	const char *s = NULL, *slash = strrchr(r->path, '/');
	char *whole;

	if (r->rc)
		return;
	r->rc = yaml_get_str(r->y, map, key, &s, r->err);
	if (r->rc || !s)
		return;
	if (*s == '/' || !*s || !slash) {
		if (set_text(to, s))
			r->rc = err_set(r->err, -ENOMEM, "out of memory");
		return;
	}
	if (asprintf(&whole, "%.*s/%s", (int)(slash - r->path), r->path, s) < 0) {
		r->rc = err_set(r->err, -ENOMEM, "out of memory");
		return;
	}
	free(*to);
	*to = whole;
}

static void number(struct reader *r, yaml_node map, const char *key, int64_t min, int64_t max, uint32_t *to)
{
	int64_t v = *to;

	if (!r->rc)
		r->rc = yaml_get_int(r->y, map, key, min, max, &v, r->err);
	if (!r->rc)
		*to = (uint32_t)v;
}

static void flag(struct reader *r, yaml_node map, const char *key, bool *to)
{
	if (!r->rc)
		r->rc = yaml_get_bool(r->y, map, key, to, r->err);
}

static void bytes(struct reader *r, yaml_node map, const char *key, uint64_t *to)
{
	if (!r->rc)
		r->rc = yaml_get_bytes(r->y, map, key, to, r->err);
}

static yaml_node section(struct reader *r, const char *name, const char *const *known)
{
	yaml_node n = yaml_get(r->y, yaml_root(r->y), name);

	if (r->rc || !n || yaml_is_null(r->y, n))
		return 0;
	if (!yaml_is_map(r->y, n)) {
		r->rc = yaml_refuse(r->y, n, -EINVAL, r->err, "\"%s\" must be a mapping", name);
		return 0;
	}
	r->rc = yaml_no_other_keys(r->y, n, known, r->err);
	return r->rc ? 0 : n;
}

static void listen_at(struct reader *r, yaml_node n, struct config_listen *l)
{
	uint32_t port = l->port;

	text(r, n, "host", &l->host);
	number(r, n, "port", 0, 65535, &port);
	l->port = (uint16_t)port;
	file_name(r, n, "unix", &l->unix_path);
	file_name(r, n, "tls_cert", &l->tls_cert);
	file_name(r, n, "tls_key", &l->tls_key);
	text(r, n, "cors", &l->cors);
	flag(r, n, "enabled", &l->on);
	if (!r->rc && !l->tls_cert != !l->tls_key)
		r->rc = yaml_refuse(r->y, n, -EINVAL, r->err, "\"tls_cert\" and \"tls_key\" belong together");
}

static void one_key(struct reader *r, struct config *c, yaml_node n)
{
	static const char *const known[] = { "name", "key", "key_file", "priority", "max_tokens", "concurrent", "requests_per_minute", "kv_max", "tenant", NULL };
	struct config_key *k = &c->keys[c->n_keys];
	char *prio = NULL, *file = NULL, *tenant = NULL;

	if (!yaml_is_map(r->y, n)) {
		r->rc = yaml_refuse(r->y, n, -EINVAL, r->err, "each entry of \"keys\" must be a mapping with name and key");
		return;
	}
	r->rc = yaml_no_other_keys(r->y, n, known, r->err);
	c->n_keys++;               /* config_done() frees what is half filled */
	k->prio = GEN_NORMAL;
	k->tenant = -1;
	text(r, n, "name", &k->name);
	text(r, n, "key", &k->secret);
	file_name(r, n, "key_file", &file);
	text(r, n, "priority", &prio);
	number(r, n, "max_tokens", 1, 1 << 20, &k->max_tokens);
	number(r, n, "concurrent", 1, 1024, &k->concurrent);
	bytes(r, n, "kv_max", &k->kv_max);
	text(r, n, "tenant", &tenant);
	for (uint32_t i = 0; tenant && i < c->n_tenants; i++)
		if (!strcmp(c->tenants[i].name, tenant))
			k->tenant = (int)i;
	if (!r->rc && tenant && k->tenant < 0)
		r->rc = yaml_refuse(r->y, yaml_get(r->y, n, "tenant"), -EINVAL, r->err, "\"memory.tenants\" names no tenant \"%.63s\"", tenant);
	number(r, n, "requests_per_minute", 1, 60000, &k->per_minute);
	if (!r->rc && !k->name)
		r->rc = yaml_refuse(r->y, n, -EINVAL, r->err, "the key has no \"name\"");
	if (!r->rc && (!*k->name || strlen(k->name) > 63 || strpbrk(k->name, "\"\\\n")))
		r->rc = yaml_refuse(r->y, n, -EINVAL, r->err, "the \"name\" of a key is 1 to 63 bytes without quotes");
	if (!r->rc && !k->secret == !file)
		r->rc = yaml_refuse(r->y, n, -EINVAL, r->err, "the key \"%s\" needs \"key\" or \"key_file\" (one of them)", k->name);
	if (!r->rc && file) {
		char line[512] = "";
		FILE *f = fopen(file, "re");

		if (!f || !fgets(line, sizeof(line), f))
			r->rc = yaml_refuse(r->y, yaml_get(r->y, n, "key_file"), f ? -EINVAL : -errno, r->err,
					    "%s: no key can be read from it", file);
		if (!r->rc && !strchr(line, '\n') && getc(f) != EOF)
			r->rc = yaml_refuse(r->y, yaml_get(r->y, n, "key_file"), -EINVAL, r->err, "%s: a key is at most %zu bytes", file, sizeof(line) - 2);
		if (f)
			fclose(f);
		line[strcspn(line, "\r\n")] = 0;
		if (!r->rc && set_text(&k->secret, line))
			r->rc = err_set(r->err, -ENOMEM, "out of memory");
		explicit_bzero(line, sizeof(line));
	}
	if (!r->rc && strlen(k->secret) < 16)
		r->rc = yaml_refuse(r->y, n, -EINVAL, r->err, "the key \"%s\" is shorter than 16 characters", k->name);
	if (!r->rc && prio) {
		if (!strcmp(prio, "voice"))
			k->prio = GEN_VOICE;
		else if (!strcmp(prio, "normal"))
			k->prio = GEN_NORMAL;
		else if (!strcmp(prio, "background"))
			k->prio = GEN_BACKGROUND;
		else
			r->rc = yaml_refuse(r->y, yaml_get(r->y, n, "priority"), -EINVAL, r->err,
					    "\"priority\" must be voice, normal or background");
	}
	for (uint32_t i = 0; !r->rc && i + 1 < c->n_keys; i++)
		if (!strcmp(c->keys[i].name, k->name) || !strcmp(c->keys[i].secret, k->secret))
			r->rc = yaml_refuse(r->y, n, -EINVAL, r->err, "the key \"%s\" has the name or the key of another", k->name);
	free(prio);
	free(file);
	free(tenant);
}

static void tenants(struct reader *r, struct config *c, yaml_node list)
{
	static const char *const known[] = { "name", "kv_min", "kv_max", NULL };

	if (r->rc || !list || yaml_is_null(r->y, list))
		return;
	if (!yaml_is_seq(r->y, list) || yaml_len(r->y, list) > CONFIG_MAX_TENANTS) {
		r->rc = yaml_refuse(r->y, list, -EINVAL, r->err, "\"tenants\" must be a list of at most %d", CONFIG_MAX_TENANTS);
		return;
	}
	for (size_t i = 0; !r->rc && i < yaml_len(r->y, list); i++) {
		struct config_tenant *t = &c->tenants[i];
		yaml_node n = yaml_item(r->y, list, i);

		if (!yaml_is_map(r->y, n)) {
			r->rc = yaml_refuse(r->y, n, -EINVAL, r->err, "each entry of \"tenants\" must be a mapping with name");
			return;
		}
		r->rc = yaml_no_other_keys(r->y, n, known, r->err);
		c->n_tenants++;
		text(r, n, "name", &t->name);
		bytes(r, n, "kv_min", &t->kv_min);
		bytes(r, n, "kv_max", &t->kv_max);
		if (!r->rc && !t->name)
			r->rc = yaml_refuse(r->y, n, -EINVAL, r->err, "the tenant has no \"name\"");
		if (!r->rc && t->kv_max && t->kv_min > t->kv_max)
			r->rc = yaml_refuse(r->y, n, -EINVAL, r->err, "the tenant \"%.63s\" has a kv_min over its kv_max", t->name);
		for (size_t k = 0; !r->rc && k < i; k++)
			if (!strcmp(c->tenants[k].name, t->name))
				r->rc = yaml_refuse(r->y, n, -EINVAL, r->err, "the tenant \"%.63s\" stands there twice", t->name);
	}
}

static void services(struct reader *r, yaml_node n, unsigned int *to)
{
	static const char *const names[] = { "asr", "tts", "handle", "intent", "wake" };
	yaml_node list = yaml_get(r->y, n, "services");

	if (r->rc || !list || yaml_is_null(r->y, list))
		return;
	if (!yaml_is_seq(r->y, list) || !yaml_len(r->y, list)) {
		r->rc = yaml_refuse(r->y, list, -EINVAL, r->err, "\"services\" must be a list of asr, tts, handle, intent, wake");
		return;
	}
	*to = 0;
	for (size_t i = 0; i < yaml_len(r->y, list); i++) {
		const char *s = yaml_text(r->y, yaml_item(r->y, list, i));
		unsigned int bit = 0;

		for (unsigned int k = 0; k < 5; k++)
			if (s && !strcmp(s, names[k]))
				bit = 1u << k;
		if (!bit) {
			r->rc = yaml_refuse(r->y, yaml_item(r->y, list, i), -EINVAL, r->err, "a service is asr, tts, handle, intent or wake");
			return;
		}
		*to |= bit;
	}
}

/* One address for all services, or a list with what each serves. */
static void wyoming_addresses(struct reader *r, yaml_node n, struct config *c)
{
	static const char *const known[] = { "host", "port", "unix", "services", NULL };
	yaml_node list = yaml_get(r->y, n, "listen");
	char *tools = NULL;

	flag(r, n, "zeroconf", &c->zeroconf);
	text(r, n, "prompt", &c->wy_prompt);
	text(r, n, "tools", &tools);
	if (!r->rc && tools && strcmp(tools, "compact") && strcmp(tools, "full"))
		r->rc = yaml_refuse(r->y, yaml_get(r->y, n, "tools"), -EINVAL, r->err, "\"tools\" must be compact or full");
	c->wy_full_tools = tools && !strcmp(tools, "full");
	free(tools);
	if (!r->rc && list && (!yaml_is_seq(r->y, list) || !yaml_len(r->y, list) || yaml_len(r->y, list) > CONFIG_MAX_WYOMING))
		r->rc = yaml_refuse(r->y, list, -EINVAL, r->err, "\"listen\" must be a list of 1 to %d addresses", CONFIG_MAX_WYOMING);
	if (!r->rc && list && (yaml_get(r->y, n, "host") || yaml_get(r->y, n, "port") || yaml_get(r->y, n, "unix") || yaml_get(r->y, n, "services")))
		r->rc = yaml_refuse(r->y, list, -EINVAL, r->err, "\"listen\" stands instead of host, port, unix and services");
	for (size_t i = 0; !r->rc && i < (list ? yaml_len(r->y, list) : 1); i++) {
		struct config_wyoming *w = &c->wy[c->n_wy];
		yaml_node e = list ? yaml_item(r->y, list, i) : n;

		if (list && !yaml_is_map(r->y, e)) {
			r->rc = yaml_refuse(r->y, e, -EINVAL, r->err, "an address is a mapping with port or unix");
			return;
		}
		if (list)
			r->rc = yaml_no_other_keys(r->y, e, known, r->err);
		*w = (struct config_wyoming){ .at = { .port = 10300 }, .services = WYOMING_ALL };
		c->n_wy++;
		if (!r->rc && set_text(&w->at.host, "127.0.0.1"))
			r->rc = err_set(r->err, -ENOMEM, "out of memory");
		listen_at(r, e, &w->at);
		services(r, e, &w->services);
	}
}

static void read_all(struct reader *r, struct config *c)
{
	static const char *const top[] = { "model", "chat", "cache", "memory", "http", "speech", "wyoming", "keys", "log", NULL };
	static const char *const model[] = { "path", "id", "backend", "kv", "context", "sessions", "threads", "chunk", "thinking", "jump_forward", "embeddings", NULL };
	static const char *const chat[] = { "system", "home", NULL };
	static const char *const cache[] = { "enabled", "file", "max", "seconds", NULL };
	static const char *const memory[] = { "device", "device_required", "weights_max", "kv_max", "tenants", NULL };
	static const char *const http[] = { "enabled", "host", "port", "unix", "tls_cert", "tls_key", "cors", "max_body",
					    "max_connections", "idle_seconds", "request_seconds", "queue", NULL };
	static const char *const speech[] = { "stt", "tts", "voice", "lm", "dict", "home", "cache", "vad", "wake", "wake_threshold", NULL };
	static const char *const wyoming[] = { "enabled", "host", "port", "unix", "zeroconf", "services", "listen", "prompt", "tools", NULL };
	static const char *const log[] = { "json", NULL };
	yaml_node n, chat_at;

	if (!yaml_root(r->y))
		return;
	if (!yaml_is_map(r->y, yaml_root(r->y))) {
		r->rc = yaml_refuse(r->y, yaml_root(r->y), -EINVAL, r->err, "the file must be a mapping");
		return;
	}
	r->rc = yaml_no_other_keys(r->y, yaml_root(r->y), top, r->err);
	n = section(r, "model", model);
	file_name(r, n, "path", &c->model);
	text(r, n, "id", &c->model_id);
	text(r, n, "backend", &c->backend);
	text(r, n, "kv", &c->kv);
	number(r, n, "context", 64, 1 << 20, &c->ctx);
	number(r, n, "sessions", 1, 256, &c->sessions);
	number(r, n, "threads", 0, 1024, &c->threads);
	number(r, n, "chunk", 8, 8192, &c->chunk);
	flag(r, n, "thinking", &c->thinking);
	flag(r, n, "jump_forward", &c->jump_forward);
	text(r, n, "embeddings", &c->embeddings);
	if (!r->rc && strcmp(c->embeddings, "auto") && strcmp(c->embeddings, "mean") && strcmp(c->embeddings, "last") && strcmp(c->embeddings, "off"))
		r->rc = yaml_refuse(r->y, yaml_get(r->y, n, "embeddings"), -EINVAL, r->err, "\"embeddings\" must be auto, mean, last or off");
	if (!r->rc && strcmp(c->kv, "int8") && strcmp(c->kv, "f16"))
		r->rc = yaml_refuse(r->y, yaml_get(r->y, n, "kv"), -EINVAL, r->err, "\"kv\" must be int8 or f16");
	chat_at = section(r, "chat", chat);
	text(r, chat_at, "system", &c->chat_system);
	flag(r, chat_at, "home", &c->chat_home);
	if (!r->rc && c->chat_home && c->chat_system)
		r->rc = yaml_refuse(r->y, chat_at, -EINVAL, r->err, "\"system\" stands instead of \"home\"");
	n = section(r, "cache", cache);
	flag(r, n, "enabled", &c->cache_on);
	file_name(r, n, "file", &c->cache_file);
	bytes(r, n, "max", &c->cache_max);
	number(r, n, "seconds", 1, 86400, &c->cache_seconds);
	n = section(r, "memory", memory);
	text(r, n, "device", &c->device);
	flag(r, n, "device_required", &c->device_required);
	bytes(r, n, "weights_max", &c->weights_max);
	bytes(r, n, "kv_max", &c->kv_max);
	tenants(r, c, yaml_get(r->y, n, "tenants"));
	n = section(r, "http", http);
	listen_at(r, n, &c->http);
	bytes(r, n, "max_body", &c->max_body);
	if (!r->rc && (c->max_body < 1024 || c->max_body > 1u << 30))
		r->rc = yaml_refuse(r->y, yaml_get(r->y, n, "max_body"), -EINVAL, r->err, "\"max_body\" must be from 1K to 1G");
	number(r, n, "max_connections", 1, 65536, &c->max_connections);
	number(r, n, "idle_seconds", 1, 86400, &c->idle_seconds);
	number(r, n, "request_seconds", 1, 86400, &c->request_seconds);
	number(r, n, "queue", 1, 65536, &c->queue);
	n = section(r, "speech", speech);
	flag(r, n, "stt", &c->stt);
	flag(r, n, "tts", &c->tts);
	text(r, n, "voice", &c->voice);
	file_name(r, n, "lm", &c->lm);
	text(r, n, "wake", &c->wake);
	if (!r->rc)
		r->rc = yaml_get_num(r->y, n, "wake_threshold", 1e-80, 1, &c->wake_threshold, r->err);
	file_name(r, n, "dict", &c->dict);
	file_name(r, n, "home", &c->home);
	file_name(r, n, "cache", &c->cache);
	file_name(r, n, "vad", &c->vad);
	if (!r->rc && c->chat_home && !c->home)
		r->rc = yaml_refuse(r->y, chat_at, -EINVAL, r->err, "\"home\" needs \"speech.home\"");
	n = section(r, "wyoming", wyoming);
	listen_at(r, n, &c->wyoming);
	wyoming_addresses(r, n, c);
	n = section(r, "log", log);
	flag(r, n, "json", &c->log_json);
	n = yaml_get(r->y, yaml_root(r->y), "keys");
	if (!r->rc && n && !yaml_is_null(r->y, n) && !yaml_is_seq(r->y, n))
		r->rc = yaml_refuse(r->y, n, -EINVAL, r->err, "\"keys\" must be a list");
	if (!r->rc && yaml_len(r->y, n) > CONFIG_MAX_KEYS)
		r->rc = yaml_refuse(r->y, n, -EINVAL, r->err, "at most %d keys are held", CONFIG_MAX_KEYS);
	for (size_t i = 0; !r->rc && i < yaml_len(r->y, n); i++)
		one_key(r, c, yaml_item(r->y, n, i));
}

int config_load(const char *path, struct config *ret, struct hearth_err *err)
{
	struct reader r = { .err = err, .path = path };
	struct config c;
	int rc = yaml_load_file(path, &r.y, err);

	if (rc)
		return rc;
	rc = config_defaults(&c, err);
	if (!rc) {
		read_all(&r, &c);
		rc = r.rc;
	}
	if (!rc && set_text(&c.path, path))
		rc = err_set(err, -ENOMEM, "out of memory");
	if (!rc && config_check_open(&c, err))
		rc = yaml_refuse(r.y, yaml_get(r.y, yaml_get(r.y, yaml_root(r.y), "http"), "host"), -EINVAL, err,
				 "listening on %s needs at least one entry in \"keys\"", c.http.host);
	yaml_close(r.y);
	if (rc) {
		config_done(&c);
		return rc;
	}
	*ret = c;
	return 0;
}
