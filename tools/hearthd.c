// SPDX-License-Identifier: MIT
/*
 * hearthd: the model behind the interfaces that clients already speak.
 * Reads its configuration, opens everything, says it is ready, serves until
 * SIGTERM or SIGINT; SIGHUP reads the configuration again.
 */
#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "paths.h"
#include "base/version.h"
#include "dev/hearth.h"
#include "home/home.h"
#include "server/alive.h"
#include "server/audio_api.h"
#include "server/chat_api.h"
#include "server/config.h"
#include "server/embed_api.h"
#include "server/home_api.h"
#include "server/http.h"
#include "server/info_api.h"
#include "server/listen.h"
#include "server/page.h"
#include "server/prompt_size.h"
#include "server/realtime.h"
#include "server/responses_api.h"
#include "server/service.h"
#include "server/speech.h"
#include "server/tls.h"
#include "server/wyoming.h"

enum { EXIT_CONFIG = 2, EXIT_MODEL = 3, EXIT_LISTEN = 4, EXIT_LOST = 5, EXIT_OUTPUT = 9 };

struct daemon {
	struct config cfg;
	struct service *service;
	struct keyring *keys;
	struct http_server *http;
	struct wyoming *wyoming;
	char *tls_cert, *tls_key;
	pthread_mutex_t log_lock;
};

static struct daemon d = { .log_lock = PTHREAD_MUTEX_INITIALIZER };

static const struct http_route routes[] = {
	{ "GET", "/health", HTTP_OPEN, api_health },
	{ "GET", "/v1/health", HTTP_OPEN, api_health },
	{ "GET", "/metrics", 0, api_metrics },
	{ "GET", "/v1/models", 0, api_models },
	{ "GET", "/models", 0, api_models },
	{ "GET", "/v1/models/", HTTP_PREFIX, api_model },
	{ "GET", "/v1/memory", 0, api_memory },
	{ "GET", "/", HTTP_OPEN, api_page },
	{ "GET", "/web/", HTTP_OPEN | HTTP_PREFIX, api_page_file },
	{ "GET", "/v1/home", 0, api_home },
	{ "POST", "/v1/home/call", 0, api_home_call },
	{ "POST", "/v1/chat/completions", 0, api_chat },
	{ "POST", "/chat/completions", 0, api_chat },
	{ "POST", "/v1/chat/completions/input_tokens", 0, api_count_tokens },
	{ "POST", "/v1/completions", 0, api_completions },
	{ "POST", "/completions", 0, api_completions },
	{ "POST", "/v1/audio/transcriptions", HTTP_MULTIPART, api_transcriptions },
	{ "POST", "/inference", HTTP_MULTIPART, api_inference },
	{ "POST", "/v1/audio/speech", 0, api_speech },
	{ "POST", "/piper", 0, api_piper },
	{ "GET", "/v1/audio/voices", 0, api_voices },
	{ "GET", "/v1/realtime", HTTP_UPGRADE, api_realtime },
	{ "POST", "/v1/responses", 0, api_responses },
	{ "POST", "/v1/responses/input_tokens", 0, api_count_response },
	{ "POST", "/v1/embeddings", 0, api_embeddings },
	{ "POST", "/tokenize", 0, api_tokenize },
	{ "POST", "/detokenize", 0, api_detokenize },
	{ "POST", "/apply-template", 0, api_apply_template },
};

static int auth(void *ctx, const char *bearer, int *ret_who)
{
	return keyring_find(d.keys, bearer, ret_who);
}

static void release(void *ctx, int who)
{
	keyring_drop(d.keys, who);
}

static void log_request(void *ctx, const char *id, const char *method, const char *path, int status, uint64_t ns, uint64_t bytes, int who)
{
	struct timespec t;
	char when[40], name[64];
	struct tm tm;

	keyring_name(d.keys, who, name);
	clock_gettime(CLOCK_REALTIME, &t);
	gmtime_r(&t.tv_sec, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
	pthread_mutex_lock(&d.log_lock);
	if (d.cfg.log_json) {
		json_t *o = json_pack("{s:s,s:s,s:s,s:s,s:s,s:i,s:f,s:I}", "time", when, "id", id, "key", name, "method", method, "path", path,
				      "status", status, "ms", (double)ns / 1e6, "bytes", (json_int_t)bytes);
		char *line = json_dumps(o, JSON_COMPACT);

		if (line)
			fprintf(stderr, "%s\n", line);
		free(line);
		json_decref(o);
	} else {
		fprintf(stderr, "%s.%03ldZ %s %s %s %.200s %d %.1f ms %llu bytes\n", when, t.tv_nsec / 1000000, id, name, method, path, status,
			(double)ns / 1e6, (unsigned long long)bytes);
	}
	pthread_mutex_unlock(&d.log_lock);
}

/* systemd's readiness protocol: one datagram to the socket it names. */
static void notify(const char *text)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	size_t n;
	int fd;

	if (!path || (n = strlen(path)) >= sizeof(a.sun_path))
		return;
	memcpy(a.sun_path, path, n);
	if (*path == '@')
		a.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0)
		fprintf(stderr, "hearthd: systemd cannot be told \"%.20s\": %s\n", text, strerror(errno));
	close(fd);
}

/* Until the model is there. */
static void loading(struct http_req *r)
{
	http_answer_header(r, "Retry-After", "1");
	if (strstr(http_path(r), "/health"))
		http_reply_json(r, 503, json_pack("{s:s,s:s}", "status", "loading", "why", "the model is being loaded"));
	else
		http_error(r, 503, "loading", NULL, "the model is being loaded");
}

static int start_http(struct hearth_err *err)
{
	struct http_opts o = {
		.host = d.cfg.http.host, .port = d.cfg.http.port, .unix_path = d.cfg.http.unix_path,
		.max_body = d.cfg.max_body, .max_connections = d.cfg.max_connections, .idle_seconds = d.cfg.idle_seconds,
		.cors = d.cfg.http.cors, .routes = routes, .n_routes = sizeof(routes) / sizeof(routes[0]),
		.auth = auth, .release = release, .log = log_request, .loading = loading,
	};

	if (d.cfg.http.tls_cert) {
		int rc = tls_read(d.cfg.http.tls_cert, d.cfg.http.tls_key, &d.tls_cert, &d.tls_key, err);

		if (rc)
			return rc;
		o.tls_cert = d.tls_cert;
		o.tls_key = d.tls_key;
	}
	return http_start(&o, &d.http, err);
}

static void announced(void *arg, const char *line)
{
	fprintf(stderr, "hearthd: Wyoming %s\n", line);
}

static void usage(FILE *f)
{
	fprintf(f,
		"usage: hearthd [-c FILE] [options]\n"
		"  -c, --config FILE   configuration (YAML; see hearthd(8))\n"
		"  -m, --model FILE    GGUF model (over the configuration's)\n"
		"  -p, --port N        HTTP port (over the configuration's)\n"
		"      --host ADDR     address to listen on; default 127.0.0.1\n"
		"      --check         check the configuration and the memory plan, start nothing\n"
		"      --help, --version\n");
}

/* @code, unless what was printed has not arrived. */
static int printed(int code)
{
	const bool lost = fflush(stdout) != 0;

	if (!lost && !ferror(stdout))
		return code;
	fprintf(stderr, "hearthd: standard output cannot be written%s%s\n", lost ? ": " : "", lost ? strerror(errno) : "");
	return EXIT_OUTPUT;
}

static int set_option(char **to, const char *s)
{
	free(*to);
	*to = strdup(s);
	return *to ? 0 : -ENOMEM;
}

/* Whether the addresses are such, and what they listen with is there. Whether they are free only the start can know. */
static int check_addresses(struct hearth_err *err)
{
	char *cert = NULL, *key = NULL;
	int rc = 0;

	if (d.cfg.http.on && !d.cfg.http.unix_path)
		rc = listen_host(d.cfg.http.host, err);
	if (!rc && d.cfg.http.on && d.cfg.http.tls_cert)
		rc = tls_read(d.cfg.http.tls_cert, d.cfg.http.tls_key, &cert, &key, err);
	free(cert);
	free(key);
	for (uint32_t i = 0; !rc && d.cfg.wyoming.on && i < d.cfg.n_wy; i++)
		if (!d.cfg.wy[i].at.unix_path)
			rc = listen_host(d.cfg.wy[i].at.host, err);
	return rc;
}

/* The exit code; what is wrong is in @err. */
static int check(struct hearth_err *err)
{
	struct home *home = NULL;
	struct engine_plan plan;
	struct engine_opts o;
	char note[1024] = "", said[SPEECH_NOTE] = "";
	uint64_t all;
	int rc;

	if (check_addresses(err))
		return EXIT_LISTEN;
	rc = service_plan(&d.cfg, &o, &plan, err);
	if (!rc && d.cfg.home)
		rc = home_load(d.cfg.home, &home, err);
	if (!rc)
		rc = prompt_size_of_model(&d.cfg, &plan, home, note, sizeof(note), err);
	home_free(home);
	if (!rc)
		rc = speech_check(&d.cfg, said, err);
	if (rc)
		return EXIT_MODEL;
	all = plan.total + speech_bytes(&d.cfg);
	printf("%s: %s, %s, context %u, %u sessions, %.1f MiB in all: %s\n", d.cfg.path ? d.cfg.path : "built-in configuration",
	       plan.model, plan.backend, plan.ctx, plan.sessions, (double)all / (1 << 20), plan.fits ? "fits" : "does not fit");
	printf("computing on %s: %s\n", plan.backend, plan.why);
	if (*note)
		printf("%s\n", note);
	if (*said)
		printf("%s\n", said);
	if (plan.fits)
		return 0;
	err_set(err, -ENOMEM, "the largest context that fits is %u", plan.ctx_fit);
	return EXIT_MODEL;
}

static uint64_t watchdog_us(void)
{
	const char *s = getenv("WATCHDOG_USEC");

	return s ? strtoull(s, NULL, 10) : 0;
}

static bool engine_moves(struct alive *a)
{
	struct engine_stats st;
	struct timespec t;

	engine_stats(d.service->engine, &st);
	clock_gettime(CLOCK_MONOTONIC, &t);
	return alive_look(a, st.active, st.steps, (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000);
}

/* Waits for a signal, or 0: the engine is lost. Keeps systemd's watchdog fed meanwhile, while work that is there moves. */
static int serve(int sfd)
{
	uint64_t dog = watchdog_us();
	struct alive alive = { 0 };
	bool told = false;
	struct signalfd_siginfo si;
	struct pollfd p[2] = { { .fd = sfd, .events = POLLIN }, { .fd = engine_lost_fd(d.service->engine), .events = POLLIN } };

	for (;;) {
		int n = poll(p, 2, dog ? (int)(dog / 2000) : -1);

		if (n == 0 && engine_moves(&alive)) {
			notify("WATCHDOG=1");
			told = false;
		} else if (n == 0 && !told) {
			fprintf(stderr, "hearthd: the engine has not moved for %d s; the watchdog is not fed\n", ALIVE_PATIENCE_MS / 1000);
			told = true;
		}
		if (n > 0 && p[1].revents)
			return 0;
		if (n > 0 && read(sfd, &si, sizeof(si)) == (ssize_t)sizeof(si))
			return (int)si.ssi_signo;
	}
}

/* Takes over what can change without losing a conversation; everything or nothing. */
static int take_over(struct config *next, struct hearth_err *err)
{
	int rc;

	/* The address that is open stays open, whatever the file says now, so the new keys must do for it. */
	rc = set_option(&next->http.host, d.cfg.http.host);
	free(next->http.unix_path);
	next->http.unix_path = NULL;
	if (!rc && d.cfg.http.unix_path)
		rc = set_option(&next->http.unix_path, d.cfg.http.unix_path);
	next->http.on = d.cfg.http.on;
	if (!rc)
		rc = config_check_open(next, err);
	/* Tenants are memory, which needs a restart: the keys may move among those that are there. */
	for (uint32_t i = 0; !rc && i < next->n_keys; i++) {
		struct config_key *k = &next->keys[i];
		uint32_t at;

		for (at = 0; k->tenant >= 0 && at < d.cfg.n_tenants; at++)
			if (!strcmp(d.cfg.tenants[at].name, next->tenants[k->tenant].name))
				break;
		if (k->tenant >= 0 && at == d.cfg.n_tenants)
			rc = err_set(err, -EINVAL, "the tenant \"%s\" is new, which needs a restart", next->tenants[k->tenant].name);
		else if (k->tenant >= 0)
			k->tenant = (int)at;
	}
	if (!rc)
		rc = keyring_fill(d.keys, next->keys, next->n_keys, err);
	if (rc)
		return rc;
	pthread_mutex_lock(&d.log_lock);
	d.cfg.log_json = next->log_json;
	pthread_mutex_unlock(&d.log_lock);
	d.service->queue = next->queue;
	d.service->request_seconds = next->request_seconds;
	if (d.http)
		http_set_max_body(d.http, next->max_body);
	return 0;
}

static void reload(void)
{
	struct hearth_err err = { 0 };
	struct config next;
	struct timespec t;
	char text[64];
	int rc;

	clock_gettime(CLOCK_MONOTONIC, &t);
	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)t.tv_sec * 1000000 + t.tv_nsec / 1000);
	notify(text);
	rc = d.cfg.path ? config_load(d.cfg.path, &next, &err) :
	     err_set(&err, -ENOENT, "it was started without a configuration file");
	if (!rc) {
		rc = take_over(&next, &err);
		if (!rc)
			fprintf(stderr, "hearthd: read again: %u keys, limits, log; model, memory, speech and addresses need a restart\n", next.n_keys);
		config_done(&next);
	}
	if (rc)
		fprintf(stderr, "hearthd: kept the old configuration: %s\n", err.text);
	notify("READY=1");
}

static void close_all(void)
{
	realtime_stop();
	http_stop(d.http);
	service_close(d.service);
	keyring_free(d.keys);
	free(d.tls_cert);
	free(d.tls_key);
	config_done(&d.cfg);
}

static int give_up(int code, const struct hearth_err *err)
{
	fprintf(stderr, "hearthd: %s\n", err->text);
	close_all();
	return code;
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "config", required_argument, NULL, 'c' }, { "model", required_argument, NULL, 'm' },
		{ "port", required_argument, NULL, 'p' }, { "host", required_argument, NULL, 'H' },
		{ "check", no_argument, NULL, 'C' }, { "help", no_argument, NULL, 'h' }, { "version", no_argument, NULL, 'V' }, { 0 },
	};
	const char *config = NULL, *model = NULL, *port = NULL, *host = NULL;
	struct hearth_err err = { 0 };
	bool only_check = false;
	sigset_t set;
	int c, sfd, sig, rc;

	while ((c = getopt_long(argc, argv, "c:m:p:h", opts, NULL)) != -1) {
		switch (c) {
		case 'c': config = optarg; break;
		case 'm': model = optarg; break;
		case 'p': port = optarg; break;
		case 'H': host = optarg; break;
		case 'C': only_check = true; break;
		case 'V': puts("hearthd " HEARTH_VERSION); return printed(0);
		case 'h': usage(stdout); return printed(0);
		default: usage(stderr); return EXIT_CONFIG;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "hearthd: unexpected \"%s\"; a configuration is given with -c\n", argv[optind]);
		return EXIT_CONFIG;
	}
	rc = config ? config_load(config, &d.cfg, &err) : config_defaults(&d.cfg, &err);
	if (!rc && model)
		rc = set_option(&d.cfg.model, model);
	if (!rc && host)
		rc = set_option(&d.cfg.http.host, host);
	if (!rc && port) {
		char *end;
		unsigned long v = strtoul(port, &end, 10);

		if (*end || v > 65535)
			rc = err_set(&err, -EINVAL, "\"%s\" is not a port", port);
		d.cfg.http.port = (uint16_t)v;
	}
	if (!rc && !d.cfg.cache) {
		char cache[4096];

		cache_path(".", cache, sizeof(cache));
		rc = set_option(&d.cfg.cache, cache);
	}
	if (!rc && host)
		rc = config_check_open(&d.cfg, &err);
	if (!rc)
		rc = config_check_serve(&d.cfg, &err);
	if (!rc && !d.cfg.model)
		rc = err_set(&err, -EINVAL, "no model is given: use --model FILE or model: {path: FILE}");
	if (rc) {
		fprintf(stderr, "hearthd: %s\n", err.text);
		return EXIT_CONFIG;
	}
	if (only_check) {
		rc = check(&err);
		if (rc)
			fprintf(stderr, "hearthd: %s\n", err.text);
		config_done(&d.cfg);
		return printed(rc);
	}
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* A thread a connection, and by default an arena for many of them: each keeps what its busiest hour took. */
	mallopt(M_ARENA_MAX, 4);
	sfd = signalfd(-1, &set, SFD_CLOEXEC);
	rc = keyring_new(&d.keys);
	rc = rc ? err_set(&err, rc, "out of memory") : keyring_fill(d.keys, d.cfg.keys, d.cfg.n_keys, &err);
	/* The addresses first: a wrong one is known at once, and clients are told to wait. */
	if (!rc && d.cfg.http.on)
		rc = start_http(&err);
	if (rc)
		return give_up(EXIT_LISTEN, &err);
	rc = service_open(&d.cfg, d.keys, &d.service, &err);
	if (rc)
		return give_up(EXIT_MODEL, &err);
	fprintf(stderr, "hearthd: computing on %s: %s\n", engine_the_plan(d.service->engine)->backend, engine_the_plan(d.service->engine)->why);
	if (*d.service->prompt_note)
		fprintf(stderr, "hearthd: %s\n", d.service->prompt_note);
	if (*speech_note(d.service->speech))
		fprintf(stderr, "hearthd: %s\n", speech_note(d.service->speech));
	if (*d.service->cache_note)
		fprintf(stderr, "hearthd: %s\n", d.service->cache_note);
	if (d.http)
		http_serve(d.http, d.service);
	if (d.cfg.wyoming.on)
		rc = wyoming_start(&d.cfg, d.service, announced, &d.wyoming, &err);
	if (rc)
		return give_up(EXIT_LISTEN, &err);
	if (!d.http)
		fprintf(stderr, "hearthd: serving %s, HTTP is switched off\n", d.service->model_id);
	else if (d.cfg.http.unix_path)
		fprintf(stderr, "hearthd: serving %s on %s\n", d.service->model_id, d.cfg.http.unix_path);
	else
		fprintf(stderr, "hearthd: serving %s on %s://%s:%u\n", d.service->model_id, d.cfg.http.tls_cert ? "https" : "http",
			d.cfg.http.host, http_port(d.http));
	for (unsigned int i = 0; d.wyoming && i < wyoming_addresses(d.wyoming); i++) {
		if (d.cfg.wy[i].at.unix_path)
			fprintf(stderr, "hearthd: Wyoming on unix://%s\n", d.cfg.wy[i].at.unix_path);
		else
			fprintf(stderr, "hearthd: Wyoming on tcp://%s:%u\n", d.cfg.wy[i].at.host, wyoming_port(d.wyoming, i));
	}
	fprintf(stderr, "hearthd: ready\n");
	notify("READY=1");
	while ((sig = serve(sfd)) == SIGHUP)
		reload();
	notify("STOPPING=1");
	if (sig)
		fprintf(stderr, "hearthd: stopping (%s)\n", sig == SIGINT ? "interrupt" : "terminate");
	else if (engine_lost(d.service->engine, &err))
		fprintf(stderr, "hearthd: stopping: %s\n", err.text);
	if (d.http)
		http_quiesce(d.http);
	service_stop(d.service);
	wyoming_stop(d.wyoming);
	close_all();
	close(sfd);
	return sig ? 0 : EXIT_LOST;
}
