/* SPDX-License-Identifier: MIT */
/*
 * Announces services on the local network through avahi-daemon, whose client
 * library is looked for when it is needed: hearthd runs without it, and says so.
 */
#ifndef HEARTH_SERVER_ZEROCONF_H
#define HEARTH_SERVER_ZEROCONF_H

#include <stdint.h>

#include "base/err.h"

struct zeroconf;

/*
 * Announces @type ("_wyoming._tcp") at each of @ports as @name, with a number
 * behind it for all but the first. Goes on trying when the daemon comes later
 * or goes away. @say gets one line when something is known, on another thread.
 * -ENOTSUP: built without it, or the library is not installed; -ENOENT: no
 * daemon answers (none will be waited for).
 */
int zeroconf_start(const char *name, const char *type, const uint16_t *ports, unsigned int n_ports,
		   void (*say)(void *arg, const char *line), void *arg, struct zeroconf **ret, struct hearth_err *err);
void zeroconf_stop(struct zeroconf *z);   /* takes the announcement back; NULL is fine */

#endif
