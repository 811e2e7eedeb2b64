/* SPDX-License-Identifier: MIT */
/*
 * The Wyoming protocol: speech to text and text to speech for Home Assistant
 * and satellites, on TCP or a UNIX socket, one thread a connection.
 */
#ifndef HEARTH_SERVER_WYOMING_H
#define HEARTH_SERVER_WYOMING_H

#include "server/config.h"

struct speech;
struct wyoming;

int wyoming_start(const struct config *cfg, struct speech *sp, struct wyoming **ret, struct hearth_err *err);
uint16_t wyoming_port(const struct wyoming *w);
void wyoming_stop(struct wyoming *w);     /* ends connections, joins; NULL is fine */

#endif
