// SPDX-License-Identifier: MIT
#include "voice/account.h"

#include <link.h>
#include <malloc.h>
#include <string.h>

#include "dev/hearth.h"

static size_t heap_in_use(void)
{
#if defined(__GLIBC_PREREQ) && __GLIBC_PREREQ(2, 33)
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
#else
	/* Older ones count in an int, which wraps at 4 GiB: speech engines hold megabytes. */
	struct mallinfo m = mallinfo();

	return (size_t)(unsigned int)m.uordblks + (unsigned int)m.hblkhd;
#endif
}

int voice_charge_begin(struct voice_charge *c, const struct voice_account *acc, size_t predicted,
		       struct hearth_err *err)
{
	memset(c, 0, sizeof(*c));
	if (acc)
		c->acc = *acc;
	if (c->acc.tenant) {
		int rc = hearth_charge(c->acc.tenant, c->acc.pool, predicted, 0, err);

		if (rc) {
			c->acc.tenant = NULL;
			return rc;
		}
	}
	c->charged = predicted;
	c->heap_before = heap_in_use();
	return 0;
}

size_t voice_charge_heap(const struct voice_charge *c)
{
	size_t now = heap_in_use();

	return now > c->heap_before ? now - c->heap_before : 0;
}

int voice_charge_settle(struct voice_charge *c, size_t measured, struct hearth_err *err)
{
	int rc = 0;

	if (c->acc.tenant && measured > c->charged)
		rc = hearth_charge(c->acc.tenant, c->acc.pool, measured - c->charged, 0, err);
	else if (c->acc.tenant && measured < c->charged)
		rc = hearth_uncharge(c->acc.tenant, c->acc.pool, c->charged - measured);
	if (!rc)
		c->charged = measured;
	return rc;
}

void voice_charge_end(struct voice_charge *c)
{
	if (c->acc.tenant)
		hearth_uncharge(c->acc.tenant, c->acc.pool, c->charged);
	c->acc.tenant = NULL;
	c->charged = 0;
}

struct library_query {
	const char *part;
	size_t bytes;
};

static int add_library(struct dl_phdr_info *info, size_t size, void *data)
{
	struct library_query *q = data;

	if (!info->dlpi_name || !strstr(info->dlpi_name, q->part))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD)
			q->bytes += info->dlpi_phdr[i].p_memsz;
	return 0;
}

size_t voice_library_bytes(const char *part)
{
	struct library_query q = { .part = part };

	dl_iterate_phdr(add_library, &q);
	return q.bytes;
}
