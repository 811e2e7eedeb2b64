/* SPDX-License-Identifier: MIT */
/*
 * The Wyoming protocol: speech to text, text to speech, answers and intents for
 * Home Assistant and satellites, on TCP or UNIX sockets, one thread a
 * connection. Each address serves what the configuration gives it.
 */
#ifndef HEARTH_SERVER_WYOMING_H
#define HEARTH_SERVER_WYOMING_H

#include "server/config.h"

struct service;
struct wyoming;

/* @said gets what becomes of the announcement by zeroconf, and of texts that are not answered, a line at a time, on any thread. */
int wyoming_start(const struct config *cfg, struct service *s, void (*said)(void *arg, const char *line),
		  struct wyoming **ret, struct hearth_err *err);
unsigned int wyoming_addresses(const struct wyoming *w);
uint16_t wyoming_port(const struct wyoming *w, unsigned int i);
void wyoming_stop(struct wyoming *w);     /* ends connections, joins; NULL is fine */

#endif
