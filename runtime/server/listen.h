/* SPDX-License-Identifier: MIT */
#ifndef HEARTH_SERVER_LISTEN_H
#define HEARTH_SERVER_LISTEN_H

#include <stdint.h>

#include "base/err.h"

/*
 * A listening socket, or -errno with the sentence. TCP: @host is an address
 * ("localhost" too), @port 0 means any; *ret_port (may be NULL) is the port.
 * UNIX: a socket left behind by a dead program is replaced, anything else at
 * @path is not; mode 0660.
 */
/* Whether @host is such an address. */
int listen_host(const char *host, struct hearth_err *err);
int listen_tcp(const char *host, uint16_t port, uint16_t *ret_port, struct hearth_err *err);
int listen_unix(const char *path, struct hearth_err *err);

#endif
