// SPDX-License-Identifier: MIT
#include "server/keyring.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/engine.h"

#define PLACES (4 * CONFIG_MAX_KEYS)

struct place {
	char *secret;              /* NULL: not valid (any more) */
	char name[64];
	int prio, tenant;
	uint32_t max_tokens, concurrent, per_minute;
	uint32_t held, running;
	int64_t tokens_ms;         /* of per_minute: the bucket is full at 60000 */
	int64_t filled_ms;         /* when it was last looked at */
	uint64_t kv_max, kv;       /* bytes of cache: allowed, and promised to what runs */
	uint64_t requests, refused, tokens_in, tokens_out;
};

struct keyring {
	pthread_mutex_t lock;
	struct place p[PLACES];
	uint32_t n_valid;
};

int keyring_new(struct keyring **ret)
{
	struct keyring *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	pthread_mutex_init(&k->lock, NULL);
	*ret = k;
	return 0;
}

static void forget(struct place *p)
{
	if (p->secret)
		explicit_bzero(p->secret, strlen(p->secret));
	free(p->secret);
	p->secret = NULL;
}

void keyring_free(struct keyring *k)
{
	if (!k)
		return;
	for (int i = 0; i < PLACES; i++)
		forget(&k->p[i]);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool is_free(const struct place *p)
{
	return !p->secret && !p->held && !p->running;
}

int keyring_fill(struct keyring *k, const struct config_key *keys, uint32_t n, struct hearth_err *err)
{
	int at[CONFIG_MAX_KEYS];
	char *secret[CONFIG_MAX_KEYS] = { NULL };
	bool taken[PLACES] = { false };
	int rc = 0;

	if (n > CONFIG_MAX_KEYS)
		return err_set(err, -ENOSPC, "at most %d keys are held", CONFIG_MAX_KEYS);
	pthread_mutex_lock(&k->lock);
	/* A name that was here keeps its place and what it has running. */
	for (uint32_t i = 0; i < n; i++) {
		at[i] = -1;
		for (int j = 0; j < PLACES && at[i] < 0; j++)
			if (k->p[j].secret && !strcmp(k->p[j].name, keys[i].name))
				at[i] = j;
		if (at[i] >= 0)
			taken[at[i]] = true;
	}
	for (uint32_t i = 0; i < n && !rc; i++) {
		for (int j = 0; j < PLACES && at[i] < 0; j++)
			if (!taken[j] && is_free(&k->p[j]))
				at[i] = j;
		if (at[i] < 0)
			rc = err_set(err, -ENOSPC, "too many requests still run under keys that were taken away");
		else
			taken[at[i]] = true;
		secret[i] = strdup(keys[i].secret);
		if (!rc && !secret[i])
			rc = err_set(err, -ENOMEM, "out of memory");
	}
	if (rc) {
		for (uint32_t i = 0; i < n; i++)
			free(secret[i]);
		pthread_mutex_unlock(&k->lock);
		return rc;
	}
	for (int j = 0; j < PLACES; j++)
		if (!taken[j])
			forget(&k->p[j]);
	for (uint32_t i = 0; i < n; i++) {
		struct place *p = &k->p[at[i]];
		bool same = p->secret != NULL;

		forget(p);
		if (!same) {
			memset(p, 0, sizeof(*p));
			snprintf(p->name, sizeof(p->name), "%s", keys[i].name);
			p->tokens_ms = 60000;
			p->filled_ms = now_ms();
		}
		p->secret = secret[i];
		p->prio = keys[i].prio;
		p->max_tokens = keys[i].max_tokens;
		p->concurrent = keys[i].concurrent;
		p->per_minute = keys[i].per_minute;
		p->kv_max = keys[i].kv_max;
		p->tenant = keys[i].tenant;
	}
	k->n_valid = n;
	pthread_mutex_unlock(&k->lock);
	return 0;
}

int keyring_find(struct keyring *k, const char *secret, int *ret_who)
{
	size_t n = secret ? strlen(secret) : 0;
	int found = -1, rc = 0;

	pthread_mutex_lock(&k->lock);
	for (int i = 0; i < PLACES; i++) {
		const char *s = k->p[i].secret;
		size_t m = s ? strlen(s) : 0;
		size_t diff = n ^ m;

		if (!s)
			continue;
		/* Every byte of every key is looked at, whatever was sent. */
		for (size_t j = 0; j < m; j++)
			diff |= (size_t)((unsigned char)s[j] ^ (unsigned char)(j < n ? secret[j] : ~s[j]));
		if (!diff)
			found = i;
	}
	if (found >= 0)
		k->p[found].held++;
	else if (k->n_valid)
		rc = -EACCES;
	pthread_mutex_unlock(&k->lock);
	if (!rc)
		*ret_who = found;
	return rc;
}

void keyring_hold(struct keyring *k, int who)
{
	if (who < 0)
		return;
	pthread_mutex_lock(&k->lock);
	k->p[who].held++;
	pthread_mutex_unlock(&k->lock);
}

void keyring_drop(struct keyring *k, int who)
{
	if (who < 0)
		return;
	pthread_mutex_lock(&k->lock);
	k->p[who].held--;
	pthread_mutex_unlock(&k->lock);
}

struct keyring_limits keyring_limits(struct keyring *k, int who)
{
	/* Nobody in particular: a key-less server's client may be a voice client. */
	struct keyring_limits l = { .prio = GEN_VOICE, .tenant = -1 };

	if (who < 0)
		return l;
	pthread_mutex_lock(&k->lock);
	l.prio = k->p[who].prio;
	l.max_tokens = k->p[who].max_tokens;
	l.kv_max = k->p[who].kv_max;
	l.tenant = k->p[who].tenant;
	pthread_mutex_unlock(&k->lock);
	return l;
}

/* A bucket of time that holds a minute; a request takes its share of one. */
static bool rate_allows(struct place *p)
{
	int64_t now = now_ms();

	if (!p->per_minute)
		return true;
	p->tokens_ms += now - p->filled_ms;
	p->filled_ms = now;
	if (p->tokens_ms > 60000)
		p->tokens_ms = 60000;
	if (p->tokens_ms < 60000 / p->per_minute)
		return false;
	p->tokens_ms -= 60000 / p->per_minute;
	return true;
}

int keyring_enter(struct keyring *k, int who, uint64_t kv, struct hearth_err *err)
{
	struct place *p;
	int rc = 0;

	if (who < 0)
		return 0;
	pthread_mutex_lock(&k->lock);
	p = &k->p[who];
	if (!p->secret)
		rc = err_set(err, -EACCES, "the key \"%s\" is no longer valid", p->name);
	else if (p->concurrent && p->running >= p->concurrent)
		rc = err_set(err, -EAGAIN, "the key \"%s\" has %u requests running, which is its limit", p->name, p->running);
	else if (p->kv_max && p->kv + kv > p->kv_max)
		rc = err_set(err, -EAGAIN, "the key \"%s\" has a budget of %.1f MiB of cache; what runs may take %.1f MiB, this request %.1f MiB", p->name,
			     (double)p->kv_max / (1 << 20), (double)p->kv / (1 << 20), (double)kv / (1 << 20));
	else if (!rate_allows(p))
		rc = err_set(err, -EAGAIN, "the key \"%s\" may make %u requests a minute, which it did", p->name, p->per_minute);
	p->requests++;
	if (rc) {
		p->refused++;
	} else {
		p->running++;
		p->kv += kv;
	}
	pthread_mutex_unlock(&k->lock);
	return rc;
}

void keyring_leave(struct keyring *k, int who, uint64_t kv, uint64_t tokens_in, uint64_t tokens_out)
{
	if (who < 0)
		return;
	pthread_mutex_lock(&k->lock);
	k->p[who].running--;
	k->p[who].kv -= kv;
	k->p[who].tokens_in += tokens_in;
	k->p[who].tokens_out += tokens_out;
	pthread_mutex_unlock(&k->lock);
}

void keyring_name(struct keyring *k, int who, char to[64])
{
	if (who < 0) {
		strcpy(to, "-");
		return;
	}
	pthread_mutex_lock(&k->lock);
	memcpy(to, k->p[who].name, 64);
	pthread_mutex_unlock(&k->lock);
}

uint32_t keyring_stats(struct keyring *k, struct keyring_stat *to, uint32_t max)
{
	uint32_t n = 0;

	pthread_mutex_lock(&k->lock);
	for (int i = 0; i < PLACES && n < max; i++) {
		const struct place *p = &k->p[i];

		if (!p->secret)
			continue;
		memcpy(to[n].name, p->name, sizeof(p->name));
		to[n].requests = p->requests;
		to[n].refused = p->refused;
		to[n].tokens_in = p->tokens_in;
		to[n].tokens_out = p->tokens_out;
		to[n].running = p->running;
		to[n].kv = p->kv;
		n++;
	}
	pthread_mutex_unlock(&k->lock);
	return n;
}
