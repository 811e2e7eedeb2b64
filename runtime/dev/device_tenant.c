// SPDX-License-Identifier: MIT
/* Tenants of /dev/hearth: a descriptor each, which is who they are. */
#include "dev/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int join(struct dev *d, int fd, const char *name, enum hearth_class cls, int priority,
		unsigned flags, uint32_t *ret_id)
{
	struct hearth_ioc_join j = { .size = sizeof(j), .flags = flags };
	struct hearth_ioc_admin admin = { .size = sizeof(admin) };
	int ret;

	snprintf(j.name, sizeof(j.name), "%s", name);
	j.tenant_class = (uint32_t)cls;
	j.priority = (uint32_t)priority;
	if (d->admin)
		dev_call(fd, HEARTH_IOC_ADMIN, &admin);
	ret = dev_call(fd, HEARTH_IOC_JOIN, &j);
	if (!ret)
		*ret_id = j.out_tenant;
	return ret;
}

static bool is_open(struct dev *d, const char *name)
{
	const struct dev_tenant *t;

	pthread_mutex_lock(&d->lock);
	for (t = d->tenants; t && strcmp(t->base.name, name); t = t->next)
		;
	pthread_mutex_unlock(&d->lock);
	return t;
}

int dev_tenant_open(struct hearth *h, const char *name, enum hearth_class cls,
			   int priority, struct hearth_tenant **ret_t, struct hearth_err *err)
{
	struct dev *d = dev_of(h);
	struct dev_tenant *t;
	int ret;

	if (is_open(d, name))
		return err_set(err, -EEXIST, "tenant %s is open already", name);
	t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(err, -ENOMEM, "no memory for tenant %s", name);
	t->base.h = h;
	snprintf(t->base.name, sizeof(t->base.name), "%s", name);
	ret = dev_another(d);
	t->fd = ret;
	if (ret >= 0)
		ret = join(d, t->fd, name, cls, priority, HEARTH_JOIN_CREATE, &t->id);
	if (ret < 0) {
		if (t->fd >= 0)
			close(t->fd);
		free(t);
		switch (ret) {
		case -EACCES:
			return err_set(err, ret, "tenant %s is another user's", name);
		case -EPERM:
			return err_set(err, ret,
				       "tenant %s: only the administrator may give a priority above %d",
				       name, HEARTH_PRIORITY_USER_MAX);
		case -EUSERS:
			return err_set(err, ret, "tenant %s is open %d times, which is the limit",
				       name, HEARTH_CONNECTIONS_MAX);
		default:
			return err_set(err, ret, "tenant %s cannot be opened: %s", name,
				       strerror(-ret));
		}
	}
	pthread_mutex_lock(&d->lock);
	t->next = d->tenants;
	if (d->tenants)
		d->tenants->prev = t;
	d->tenants = t;
	pthread_mutex_unlock(&d->lock);
	*ret_t = &t->base;
	return 0;
}

void dev_tenant_close(struct hearth_tenant *tenant)
{
	struct dev_tenant *t = (struct dev_tenant *)tenant;
	struct dev *d = dev_of(tenant->h);

	while (t->regions)
		dev_region_close(&t->regions->base, false);
	pthread_mutex_lock(&d->lock);
	if (t->prev)
		t->prev->next = t->next;
	else
		d->tenants = t->next;
	if (t->next)
		t->next->prev = t->prev;
	pthread_mutex_unlock(&d->lock);
	close(t->fd);
	free(t);
}

int dev_tenant_remove(struct hearth *h, const char *name, struct hearth_err *err)
{
	struct hearth_ioc_tenant_get get = { .size = sizeof(get), .flags = HEARTH_GET_BY_NAME };
	struct hearth_ioc_tenant_remove r = { .size = sizeof(r) };
	struct dev *d = dev_of(h);
	char what[80];
	int ret;

	if (strlen(name) >= sizeof(get.name))
		return err_set(err, -ENOENT, "there is no tenant %.40s...", name);
	snprintf(get.name, sizeof(get.name), "%s", name);
	ret = dev_call(d->fd, HEARTH_IOC_TENANT_GET, &get);
	if (!ret) {
		r.tenant = get.tenant;
		ret = dev_call(d->fd, HEARTH_IOC_TENANT_REMOVE, &r);
	}
	if (ret == -ENOENT || ret == -EINVAL)
		return err_set(err, -ENOENT, "there is no tenant %s", name);
	if (ret == -EBUSY)
		return err_set(err, ret, get.out_connections ?
			       "tenant %s is open: end the program that has it open first" :
			       "tenant %s holds memory: drop its regions first", name);
	snprintf(what, sizeof(what), "tenant %s cannot be removed", name);
	return ret ? dev_refuse(err, ret, name, NULL, NULL, what) : 0;
}
