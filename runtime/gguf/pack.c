// SPDX-License-Identifier: MIT
#include "gguf/pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/digest.h"
#include "gguf/head.h"

static int by_address(const void *a, const void *b)
{
	const struct gguf_tensor *x = *(struct gguf_tensor *const *)a,
				 *y = *(struct gguf_tensor *const *)b;
	uintptr_t p = (uintptr_t)x->data, q = (uintptr_t)y->data;

	return p < q ? -1 : p > q;
}

static struct gguf_tensor **in_order(struct gguf *g)
{
	uint32_t n = gguf_n_tensors(g);
	struct gguf_tensor **order = calloc(n ? n : 1, sizeof(*order));

	for (uint32_t i = 0; order && i < n; i++)
		order[i] = gguf_tensor_at(g, i);
	if (order)
		qsort(order, n, sizeof(*order), by_address);
	return order;
}

static uint64_t hash_one(const struct gguf_tensor *t)
{
	return digest_u64(t->data, (size_t)t->nbytes);
}

int pack_hash(struct gguf *g, uint64_t *ret)
{
	struct gguf_tensor **order = in_order(g);
	uint64_t *hash = calloc(gguf_n_tensors(g) + 1, sizeof(*hash));
	int r = -ENOMEM;

	if (order && hash) {
		for (uint32_t i = 0; i < gguf_n_tensors(g); i++)
			hash[i] = hash_one(order[i]);
		*ret = digest_u64(hash, gguf_n_tensors(g) * sizeof(*hash)) | 1;
		r = 0;
	}
	free(order);
	free(hash);
	return r;
}

/* False: stop. */
static bool wait_for(struct pack_run *p, const struct gguf_tensor *t)
{
	uint64_t end = (uint64_t)((const uint8_t *)t->data - p->base) + t->nbytes;
	bool go;

	pthread_mutex_lock(&p->lock);
	while (!p->stop && p->upto < end)
		pthread_cond_wait(&p->moved, &p->lock);
	go = !p->stop;
	pthread_mutex_unlock(&p->lock);
	return go;
}

static void *pack_all(void *arg)
{
	struct pack_run *p = arg;

	for (uint32_t i = 0; i < p->n && p->r == 0 && wait_for(p, p->order[i]); i++) {
		const struct gguf_tensor *t = p->order[i];

		if (p->o->cancel && atomic_load_explicit(p->o->cancel, memory_order_relaxed)) {
			p->r = err_set(&p->err, -ECANCELED, "loading was cancelled");
			break;
		}
		p->r = p->o->pack(p->o->pack_ctx, t, (void *)(uintptr_t)t->data, &p->err);
		if (p->r < 0)
			err_prefix(&p->err, p->r, "tensor \"%s\"",
				   quote(t->name, strlen(t->name)).s);
		else
			p->hash[i] = hash_one(t);
	}
	return NULL;
}

int pack_start(struct pack_run *p, struct gguf *g, const uint8_t *base, const struct load_opts *o,
	       struct hearth_err *err)
{
	*p = (struct pack_run){ .o = o, .base = base, .n = gguf_n_tensors(g) };
	if (!o->pack)
		return 0;
	p->order = in_order(g);
	p->hash = calloc(p->n + 1, sizeof(*p->hash));
	if (!p->order || !p->hash) {
		free(p->order);
		free(p->hash);
		return err_set(err, -ENOMEM, "no memory to pack %u tensors", p->n);
	}
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->moved, NULL);
	p->runs = pthread_create(&p->thread, NULL, pack_all, p) == 0;
	return 0;
}

static void say(struct pack_run *p, uint64_t upto, bool stop)
{
	pthread_mutex_lock(&p->lock);
	p->upto = upto;
	p->stop = stop;
	pthread_cond_signal(&p->moved);
	pthread_mutex_unlock(&p->lock);
}

void pack_arrived(struct pack_run *p, uint64_t upto)
{
	if (p->runs)
		say(p, upto, false);
}

int pack_end(struct pack_run *p, bool all, uint64_t *ret_hash, struct hearth_err *err)
{
	int r = 0;

	if (!p->order) {
		if (all)
			*ret_hash = 0;
		return 0;
	}
	say(p, UINT64_MAX, !all);
	if (p->runs)
		pthread_join(p->thread, NULL);
	else if (all)
		pack_all(p); /* no thread was to be had: now, then */
	r = p->r;
	if (r < 0 && all && err)
		*err = p->err;
	if (r == 0 && all)
		*ret_hash = digest_u64(p->hash, p->n * sizeof(*p->hash)) | 1;
	pthread_mutex_destroy(&p->lock);
	pthread_cond_destroy(&p->moved);
	free(p->order);
	free(p->hash);
	return all ? r : 0;
}
