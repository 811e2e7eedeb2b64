/* SPDX-License-Identifier: MIT */
/*
 * The thread that looks after memory while others serve: it gives the prefix
 * cache back when the tenant, its pools or the system are under pressure, and
 * writes it to its file when something changed and nobody is being served.
 */
#ifndef HEARTH_SERVER_KEEPER_H
#define HEARTH_SERVER_KEEPER_H

#include "server/service.h"

struct keeper;

/* Reads the file first, if one is configured: service.cache_note says what came of it. */
int keeper_open(struct service *s, struct keeper **ret, struct hearth_err *err);
/* Writes the file a last time. Before the engine closes; NULL is fine. */
void keeper_close(struct keeper *k);

#endif
