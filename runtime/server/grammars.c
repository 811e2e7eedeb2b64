// SPDX-License-Identifier: MIT
#include "server/grammars.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES  16u
#define IDLE     4u             /* matchers of one grammar: as many as run at once, mostly */
#define IDLE_MAX (4u << 20)     /* bytes of one; a bigger one is freed */
#define ALL_MAX  (16u << 20)    /* bytes of all of them */

struct entry {
	char *key;
	size_t n;
	struct grammar *g;          /* NULL: free */
	struct gmatch *idle[IDLE];
	uint32_t n_idle;
	uint64_t used;
};

struct grammars {
	const struct gvocab *v;
	pthread_mutex_t lock;
	uint64_t clock;
	size_t bytes;               /* of all idle matchers */
	struct entry e[ENTRIES];
};

int grammars_open(const struct gvocab *v, struct grammars **ret)
{
	struct grammars *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->v = v;
	pthread_mutex_init(&c->lock, NULL);
	*ret = c;
	return 0;
}

static size_t drop_idle(struct grammars *c, struct entry *e)
{
	size_t n = 0;

	while (e->n_idle) {
		struct gmatch *m = e->idle[--e->n_idle];

		n += gmatch_bytes(m);
		gmatch_free(m);
	}
	c->bytes -= n;
	return n;
}

static void drop(struct grammars *c, struct entry *e)
{
	drop_idle(c, e);
	grammar_unref(e->g);
	free(e->key);
	*e = (struct entry){ 0 };
}

void grammars_close(struct grammars *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < ENTRIES; i++)
		drop(c, &c->e[i]);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

struct grammar *grammars_get(struct grammars *c, const char *key, size_t n)
{
	struct grammar *g = NULL;

	pthread_mutex_lock(&c->lock);
	for (uint32_t i = 0; i < ENTRIES && !g; i++) {
		struct entry *e = &c->e[i];

		if (e->g && e->n == n && !memcmp(e->key, key, n)) {
			e->used = ++c->clock;
			g = grammar_ref(e->g);
		}
	}
	pthread_mutex_unlock(&c->lock);
	return g;
}

void grammars_put(struct grammars *c, const char *key, size_t n, struct grammar *g)
{
	char *copy = malloc(n ? n : 1);
	struct entry *to = NULL;

	if (!copy)
		return;
	memcpy(copy, key, n);
	pthread_mutex_lock(&c->lock);
	for (uint32_t i = 0; i < ENTRIES; i++) {
		struct entry *e = &c->e[i];

		if (e->g && e->n == n && !memcmp(e->key, key, n)) {
			/* Two asked at once; the other was first. */
			pthread_mutex_unlock(&c->lock);
			free(copy);
			return;
		}
		if (!to || e->used < to->used)
			to = e;
	}
	drop(c, to);
	*to = (struct entry){ .key = copy, .n = n, .g = grammar_ref(g), .used = ++c->clock };
	pthread_mutex_unlock(&c->lock);
}

int grammars_match(struct grammars *c, struct grammar *g, struct gmatch **ret)
{
	struct gmatch *m = NULL;

	pthread_mutex_lock(&c->lock);
	for (uint32_t i = 0; i < ENTRIES && !m; i++) {
		struct entry *e = &c->e[i];

		if (e->g != g || !e->n_idle)
			continue;
		m = e->idle[--e->n_idle];
		c->bytes -= gmatch_bytes(m);
	}
	pthread_mutex_unlock(&c->lock);
	if (!m)
		return gmatch_create(g, c->v, ret);
	gmatch_restart(m);
	*ret = m;
	return 0;
}

void grammars_give(struct grammars *c, struct grammar *g, struct gmatch *m)
{
	size_t n;

	if (!m)
		return;
	n = gmatch_bytes(m);
	pthread_mutex_lock(&c->lock);
	for (uint32_t i = 0; i < ENTRIES && m; i++) {
		struct entry *e = &c->e[i];

		if (e->g != g || e->n_idle == IDLE || gmatch_status(m) || n > IDLE_MAX || c->bytes + n > ALL_MAX)
			continue;
		e->idle[e->n_idle++] = m;
		c->bytes += n;
		m = NULL;
	}
	pthread_mutex_unlock(&c->lock);
	gmatch_free(m);
}

size_t grammars_shed(struct grammars *c)
{
	size_t n = 0;

	pthread_mutex_lock(&c->lock);
	for (uint32_t i = 0; i < ENTRIES; i++)
		n += drop_idle(c, &c->e[i]);
	pthread_mutex_unlock(&c->lock);
	return n;
}

size_t grammars_bytes(struct grammars *c)
{
	size_t n;

	pthread_mutex_lock(&c->lock);
	n = c->bytes;
	pthread_mutex_unlock(&c->lock);
	return n;
}
