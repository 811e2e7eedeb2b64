// SPDX-License-Identifier: MIT
/* What no single key of a configuration says, but all of them together. */
#include "server/config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool config_is_loopback(const char *host)
{
	return !strncmp(host, "127.", 4) || !strcmp(host, "::1") || !strcmp(host, "localhost");
}

int config_check_open(const struct config *c, struct hearth_err *err)
{
	if (c->http.on && !c->http.unix_path && !config_is_loopback(c->http.host) && !c->n_keys)
		return err_set(err, -EINVAL, "listening on %s needs at least one entry in \"keys\"", c->http.host);
	return 0;
}

static bool everywhere(const char *host)
{
	return !strcmp(host, "0.0.0.0") || !strcmp(host, "::");
}

static const char *plain_host(const char *host)
{
	return strcmp(host, "localhost") ? host : "127.0.0.1";
}

static bool same_address(const struct config_listen *a, const struct config_listen *b)
{
	if (a->unix_path || b->unix_path)
		return a->unix_path && b->unix_path && !strcmp(a->unix_path, b->unix_path);
	if (!a->port || a->port != b->port) /* 0: any that is free */
		return false;
	return everywhere(a->host) || everywhere(b->host) || !strcmp(plain_host(a->host), plain_host(b->host));
}

static int refuse_same(const char *who, const struct config_listen *l, struct hearth_err *err)
{
	if (l->unix_path)
		return err_set(err, -EINVAL, "%s are both to listen on %s: give one of them another path", who, l->unix_path);
	return err_set(err, -EINVAL, "%s are both to listen on port %u of %s: give one of them another port", who, l->port, l->host);
}

static int check_services(const struct config_wyoming *w, const struct config *c, struct hearth_err *err)
{
	const struct { unsigned int bit; bool there; const char *name, *needs; } all[] = {
		{ WYOMING_ASR, c->stt, "asr", "speech: {stt: true}" },
		{ WYOMING_TTS, c->tts, "tts", "speech: {tts: true}" },
		{ WYOMING_INTENT, c->home, "intent", "speech: {home: FILE}" },
		{ WYOMING_WAKE, c->wake, "wake", "speech: {wake: PHRASE}" },
	};

	if (w->services == WYOMING_ALL) /* all that there is */
		return 0;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (w->services & all[i].bit && !all[i].there)
			return err_set(err, -EINVAL, "wyoming: the service \"%s\" needs %s", all[i].name, all[i].needs);
	return 0;
}

int config_check_serve(const struct config *c, struct hearth_err *err)
{
	int rc = 0;

	if (!c->http.on && !c->wyoming.on)
		return err_set(err, -EINVAL, "nothing is served: http and wyoming are both switched off");
	for (uint32_t i = 0; c->wyoming.on && i < c->n_wy && !rc; i++) {
		rc = check_services(&c->wy[i], c, err);
		if (!rc && c->http.on && same_address(&c->http, &c->wy[i].at))
			rc = refuse_same("http and wyoming", &c->wy[i].at, err);
		for (uint32_t k = 0; k < i && !rc; k++)
			if (same_address(&c->wy[k].at, &c->wy[i].at))
				rc = refuse_same("two addresses of wyoming", &c->wy[i].at, err);
	}
	return rc;
}
