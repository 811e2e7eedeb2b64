/* SPDX-License-Identifier: MIT */
/*
 * The keys that are valid now, with their limits and what runs under them.
 *
 * A key has a place (its "who") for as long as anybody holds it: the ring may
 * be filled anew while requests run, and a place is given to another key only
 * when its last holder has let go. A key keeps its place, and what runs under
 * it, as long as its name stays; a key that was taken away admits nothing more.
 * Without any key everybody is let in, as who -1.
 */
#ifndef HEARTH_SERVER_KEYRING_H
#define HEARTH_SERVER_KEYRING_H

#include <stdint.h>

#include "server/config.h"

struct keyring;

struct keyring_limits {
	int prio;                  /* enum gen_prio */
	uint32_t max_tokens;       /* of one answer; 0: no limit */
	uint64_t kv_max;           /* bytes of cache for all that runs under it; 0: no limit */
	int tenant;                /* whose budget it lives under (tenants.h); -1: none of its own */
};

struct keyring_stat {
	char name[64];
	uint64_t requests, refused, tokens_in, tokens_out;
	uint32_t running;
	uint64_t kv;
};

int keyring_new(struct keyring **ret);
void keyring_free(struct keyring *k);

/*
 * From now on these keys hold and no others. -ENOSPC: keys that were taken away
 * are still held by so many that there is no place; nothing was changed.
 */
int keyring_fill(struct keyring *k, const struct config_key *keys, uint32_t n, struct hearth_err *err);

/*
 * Whose @secret this is, held until keyring_drop(). 0, or -EACCES. The time
 * taken does not depend on where a wrong secret differs, nor on which key it
 * resembles. @secret may be NULL.
 */
int keyring_find(struct keyring *k, const char *secret, int *ret_who);
void keyring_hold(struct keyring *k, int who);      /* once more; -1 is fine */
void keyring_drop(struct keyring *k, int who);

/* What @who may do; for -1 everything. */
struct keyring_limits keyring_limits(struct keyring *k, int who);

/*
 * A request begins under @who that may fill @kv bytes of the cache: -EAGAIN (a
 * limit, which the sentence names), -EACCES (the key was taken away).
 * keyring_leave() ends it, with the same @kv.
 */
int keyring_enter(struct keyring *k, int who, uint64_t kv, struct hearth_err *err);
void keyring_leave(struct keyring *k, int who, uint64_t kv, uint64_t tokens_in, uint64_t tokens_out);

/* Copies the name ("-" for nobody) to @to. */
void keyring_name(struct keyring *k, int who, char to[64]);
/* The keys that hold now; returns how many, at most @max. */
uint32_t keyring_stats(struct keyring *k, struct keyring_stat *to, uint32_t max);

#endif
