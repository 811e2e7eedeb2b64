// SPDX-License-Identifier: MIT
/* Tenants of embedded pools: who there is, and who has it open. */
#include "dev/embedded.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mono.h"

struct emb_rec *emb_rec_find(struct emb *e, const char *name)
{
	struct emb_rec *rec;

	for (rec = e->first; rec; rec = rec->next) {
		if (!strcmp(rec->name, name))
			return rec;
	}
	return NULL;
}

void emb_rec_set_priority(struct emb *e, struct emb_rec *rec, int priority)
{
	rec->priority = priority;
	for (size_t i = 0; i < e->base.n_pools; i++)
		rec->acct[i].b.priority = priority;
}

struct emb_rec *emb_rec_make(struct emb *e, const char *name, enum hearth_class cls,
				int priority)
{
	struct emb_rec *rec;
	struct emb_pool *p;

	rec = calloc(1, sizeof(*rec) + e->base.n_pools * sizeof(rec->acct[0]));
	if (!rec)
		return NULL;
	snprintf(rec->name, sizeof(rec->name), "%s", name);
	rec->cls = cls;
	rec->priority = priority;
	rec->fresh = true;
	for (size_t i = 0; i < e->base.n_pools; i++) {
		p = emb_pool_of(e->base.pools[i]);
		budget_attach(&rec->acct[i].b, &p->budget, priority, rec);
		pressure_init(&rec->acct[i].gauge, (uint64_t)mono_ns());
		emb_set_rules(&rec->acct[i], p);
	}
	rec->prev = e->last;
	if (e->last)
		e->last->next = rec;
	else
		e->first = rec;
	e->last = rec;
	return rec;
}

void emb_rec_unlink(struct emb *e, struct emb_rec *rec)
{
	for (size_t i = 0; i < e->base.n_pools; i++)
		budget_detach(&rec->acct[i].b);
	if (rec->prev)
		rec->prev->next = rec->next;
	else
		e->first = rec->next;
	if (rec->next)
		rec->next->prev = rec->prev;
	else
		e->last = rec->prev;
	free(rec);
}

/* Says once that it is there: when it is sure to stay. */
void emb_rec_announce(struct emb *e, struct emb_rec *rec)
{
	if (!rec->fresh)
		return;
	rec->fresh = false;
	emb_emit(e, rec, NULL, (struct hearth_event){ .type = HEARTH_EVENT_TENANT_NEW });
}

static bool rec_idle(struct emb *e, const struct emb_rec *rec)
{
	for (size_t i = 0; i < e->base.n_pools; i++) {
		if (rec->acct[i].b.used)
			return false;
	}
	return true;
}

void emb_rec_put(struct emb *e, struct emb_rec *rec)
{
	if (rec->handle || rec->kept || !rec_idle(e, rec))
		return;
	emb_emit(e, rec, NULL, (struct hearth_event){ .type = HEARTH_EVENT_TENANT_GONE });
	for (struct emb_stream *s = e->streams; s; s = s->next) {
		if (s->rec == rec)
			s->rec = NULL;
	}
	emb_rec_unlink(e, rec);
	pthread_cond_broadcast(&e->wake);
}

int emb_tenant_open(struct hearth *h, const char *name, enum hearth_class cls,
			   int priority, struct hearth_tenant **ret_t, struct hearth_err *err)
{
	struct emb *e = emb_of(h);
	struct emb_tenant *t;
	struct emb_rec *rec;

	t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(err, -ENOMEM, "no memory for tenant %s", name);
	t->base.h = h;
	memcpy(t->base.name, name, sizeof(t->base.name));
	pthread_mutex_lock(&e->lock);
	rec = emb_rec_find(e, name);
	if (rec && rec->handle) {
		pthread_mutex_unlock(&e->lock);
		free(t);
		return err_set(err, -EEXIST, "tenant %s is open already", name);
	}
	if (!rec) {
		rec = emb_rec_make(e, name, cls, priority);
	} else if (!rec->kept) {
		rec->cls = cls;
		emb_rec_set_priority(e, rec, priority);
	}
	if (rec) {
		rec->handle = t;
		t->rec = rec;
		emb_rec_announce(e, rec);
	}
	pthread_mutex_unlock(&e->lock);
	if (!rec) {
		free(t);
		return err_set(err, -ENOMEM, "no memory for tenant %s", name);
	}
	*ret_t = &t->base;
	return 0;
}

void emb_tenant_close(struct hearth_tenant *tenant)
{
	struct emb_tenant *t = (struct emb_tenant *)tenant;
	struct emb *e = emb_of(tenant->h);
	struct emb_rec *rec = t->rec;

	while (t->regions)
		emb_region_close(&t->regions->base, false);
	pthread_mutex_lock(&e->lock);
	for (size_t i = 0; i < e->base.n_pools; i++) {
		struct emb_account *acct = &rec->acct[i];

		if (acct->plain) {
			emb_uncharge(e, rec, emb_pool_of(e->base.pools[i]), acct->plain);
			acct->plain = 0;
		}
	}
	rec->handle = NULL;
	emb_rec_put(e, rec);
	pthread_mutex_unlock(&e->lock);
	free(t);
}

int emb_tenant_fd(const struct hearth_tenant *t)
{
	return -EOPNOTSUPP;
}

int emb_tenant_remove(struct hearth *h, const char *name, struct hearth_err *err)
{
	struct emb *e = emb_of(h);
	struct emb_rec *rec;
	int ret = 0;

	pthread_mutex_lock(&e->lock);
	rec = emb_rec_find(e, name);
	if (!rec) {
		ret = err_set(err, -ENOENT, "there is no tenant %s", name);
	} else if (rec->handle) {
		ret = err_set(err, -EBUSY, "tenant %s is open", name);
	} else if (!rec_idle(e, rec)) {
		ret = err_set(err, -EBUSY, "tenant %s holds memory; drop its regions first", name);
	} else {
		rec->kept = false;
		emb_rec_put(e, rec);
	}
	pthread_mutex_unlock(&e->lock);
	return ret;
}
