// SPDX-License-Identifier: MIT
#include "server/zeroconf.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<avahi-client/publish.h>)
#include <avahi-client/client.h>
#include <avahi-client/publish.h>
#include <avahi-common/alternative.h>
#include <avahi-common/error.h>
#include <avahi-common/malloc.h>
#include <avahi-common/thread-watch.h>

#define MAX_PORTS 16

/* The library's functions, found at run time; the types are its header's. */
#define CALLS(X) X(avahi_client_new) X(avahi_client_free) X(avahi_client_get_state) X(avahi_client_errno) X(avahi_strerror) \
	X(avahi_entry_group_new) X(avahi_entry_group_reset) X(avahi_entry_group_commit) X(avahi_entry_group_add_service_strlst) \
	X(avahi_threaded_poll_new) X(avahi_threaded_poll_free) X(avahi_threaded_poll_get) X(avahi_threaded_poll_start) \
	X(avahi_threaded_poll_stop) X(avahi_alternative_service_name) X(avahi_free)

struct zeroconf {
	void *lib, *common;
#define FIELD(f) __typeof__(&f) f;
	CALLS(FIELD)
	AvahiThreadedPoll *poll;
	AvahiClient *client;
	AvahiEntryGroup *group;
	char *name, *type;
	uint16_t ports[MAX_PORTS];
	unsigned int n_ports, tries;
	void (*say)(void *arg, const char *line);
	void *arg;
};

static void line(struct zeroconf *z, const char *text, const char *what)
{
	char buf[256];

	snprintf(buf, sizeof(buf), "%s: %s", text, what);
	z->say(z->arg, buf);
}

static void publish(struct zeroconf *z, AvahiClient *c);

static void on_group(AvahiEntryGroup *g, AvahiEntryGroupState state, void *arg)
{
	struct zeroconf *z = arg;
	char *other;

	if (state == AVAHI_ENTRY_GROUP_ESTABLISHED) {
		line(z, "announced by zeroconf as", z->name);
	} else if (state == AVAHI_ENTRY_GROUP_COLLISION && z->tries++ < 20) {
		/* Somebody has the name already: the next one. */
		other = z->avahi_alternative_service_name(z->name);
		if (other) {
			free(z->name);
			z->name = strdup(other);
			z->avahi_free(other);
			if (z->name && z->client)
				publish(z, z->client);
		}
	} else if (state == AVAHI_ENTRY_GROUP_FAILURE || state == AVAHI_ENTRY_GROUP_COLLISION) {
		line(z, "zeroconf failed", z->client ? z->avahi_strerror(z->avahi_client_errno(z->client)) : "no client");
	}
}

static void publish(struct zeroconf *z, AvahiClient *c)
{
	char name[96];
	int rc = 0;

	if (!z->group)
		z->group = z->avahi_entry_group_new(c, on_group, z);
	if (!z->group) {
		line(z, "zeroconf failed", z->avahi_strerror(z->avahi_client_errno(c)));
		return;
	}
	z->avahi_entry_group_reset(z->group);
	for (unsigned int i = 0; i < z->n_ports && rc >= 0; i++) {
		if (i)
			snprintf(name, sizeof(name), "%.50s %u", z->name, i + 1);
		else
			snprintf(name, sizeof(name), "%.60s", z->name);
		rc = z->avahi_entry_group_add_service_strlst(z->group, AVAHI_IF_UNSPEC, AVAHI_PROTO_UNSPEC, 0, name, z->type, NULL, NULL,
							     z->ports[i], NULL);
	}
	if (rc == AVAHI_ERR_COLLISION)
		on_group(z->group, AVAHI_ENTRY_GROUP_COLLISION, z);
	else if (rc < 0 || (rc = z->avahi_entry_group_commit(z->group)) < 0)
		line(z, "zeroconf failed", z->avahi_strerror(rc));
}

static void on_client(AvahiClient *c, AvahiClientState state, void *arg)
{
	struct zeroconf *z = arg;

	z->client = c;
	if (state == AVAHI_CLIENT_S_RUNNING) {
		publish(z, c);
	} else if (state == AVAHI_CLIENT_S_COLLISION || state == AVAHI_CLIENT_S_REGISTERING) {
		if (z->group)
			z->avahi_entry_group_reset(z->group);
	} else if (state == AVAHI_CLIENT_CONNECTING) {
		line(z, "zeroconf", "no avahi-daemon answers; waiting for one");
	} else if (state == AVAHI_CLIENT_FAILURE) {
		line(z, "zeroconf failed", z->avahi_strerror(z->avahi_client_errno(c)));
	}
}

int zeroconf_start(const char *name, const char *type, const uint16_t *ports, unsigned int n_ports,
		   void (*say)(void *, const char *), void *arg, struct zeroconf **ret, struct hearth_err *err)
{
	struct zeroconf *z = calloc(1, sizeof(*z));
	const char *missing = NULL;
	int e = 0;

	if (!z || !(z->name = strdup(name)) || !(z->type = strdup(type))) {
		zeroconf_stop(z);
		return err_set(err, -ENOMEM, "out of memory");
	}
	z->say = say;
	z->arg = arg;
	z->n_ports = n_ports < MAX_PORTS ? n_ports : MAX_PORTS;
	memcpy(z->ports, ports, z->n_ports * sizeof(*ports));
	z->common = dlopen("libavahi-common.so.3", RTLD_NOW);
	z->lib = z->common ? dlopen("libavahi-client.so.3", RTLD_NOW) : NULL;
	if (!z->lib) {
		zeroconf_stop(z);
		return err_set(err, -ENOTSUP, "no zeroconf: libavahi-client3 is not installed");
	}
#define FIND(f) \
	z->f = (__typeof__(&f))dlsym(z->lib, #f); \
	if (!z->f) \
		z->f = (__typeof__(&f))dlsym(z->common, #f); \
	if (!z->f) \
		missing = #f;
	CALLS(FIND)
	if (missing) {
		zeroconf_stop(z);
		return err_set(err, -ENOTSUP, "no zeroconf: the library has no %s", missing);
	}
	z->poll = z->avahi_threaded_poll_new();
	/* NO_FAIL: a daemon that starts later, or again, is found. */
	z->client = z->poll ? z->avahi_client_new(z->avahi_threaded_poll_get(z->poll), AVAHI_CLIENT_NO_FAIL, on_client, z, &e) : NULL;
	if (!z->client || z->avahi_threaded_poll_start(z->poll) < 0) {
		err_set(err, -ENOENT, "no zeroconf: %s", e ? z->avahi_strerror(e) : "no thread");
		zeroconf_stop(z);
		return -ENOENT;
	}
	*ret = z;
	return 0;
}

void zeroconf_stop(struct zeroconf *z)
{
	if (!z)
		return;
	if (z->poll)
		z->avahi_threaded_poll_stop(z->poll);
	if (z->client)
		z->avahi_client_free(z->client);     /* its groups go with it */
	if (z->poll)
		z->avahi_threaded_poll_free(z->poll);
	/* The libraries stay loaded: D-Bus keeps thread data that outlives them. */
	free(z->name);
	free(z->type);
	free(z);
}

#else

int zeroconf_start(const char *name, const char *type, const uint16_t *ports, unsigned int n_ports,
		   void (*say)(void *, const char *), void *arg, struct zeroconf **ret, struct hearth_err *err)
{
	return err_set(err, -ENOTSUP, "no zeroconf: built without libavahi-client-dev");
}

void zeroconf_stop(struct zeroconf *z)
{
}

#endif
