// SPDX-License-Identifier: MIT
/* What only the embedded pools show: pieces, pages given back, lost events, threads. */
#include "unit.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

#include "base/mono.h"
#include "dev/hearth.h"

#define MIB ((uint64_t)1 << 20)

static struct hearth *open_pools(uint64_t kv, uint64_t account)
{
	struct hearth_pool_spec specs[] = {
		{ .kind = HEARTH_KIND_KV, .name = "kv", .size = kv },
		{ .kind = HEARTH_KIND_ACCOUNT, .name = "account", .size = account },
	};
	struct hearth_err err = { 0 };
	struct hearth_options o;
	struct hearth *h = NULL;

	hearth_options_defaults(&o);
	o.backend = HEARTH_BACKEND_EMBEDDED;
	o.pools = specs;
	o.n_pools = 2;
	if (hearth_open(&o, &h, &err))
		fail_msg("%s", err.text);
	return h;
}

static struct hearth_tenant *join(struct hearth *h, const char *name, int priority)
{
	struct hearth_tenant *t = NULL;
	struct hearth_err err = { 0 };

	if (hearth_tenant_open(h, name, HEARTH_CLASS_OTHER, priority, &t, &err))
		fail_msg("%s", err.text);
	return t;
}

static void a_region_may_lie_in_pieces(void **state)
{
	struct hearth_region *r[8], *whole = NULL;
	struct hearth *h = open_pools(8 * MIB, MIB);
	struct hearth_region_row *rows;
	struct hearth_tenant *t = join(h, "t", 1);
	struct hearth_err err = { 0 };
	size_t n;
	char *p;

	for (int i = 0; i < 8; i++)
		assert_int_equal(hearth_region_alloc(t, hearth_pool(h, HEARTH_KIND_KV), MIB, 0, 0, 0,
						     &r[i], &err), 0);
	for (int i = 0; i < 8; i += 2)
		hearth_region_free(r[i]);
	assert_int_equal(hearth_region_alloc(t, hearth_pool(h, HEARTH_KIND_KV), 4 * MIB, 0,
					     HEARTH_REGION_CONTIGUOUS, 0, &whole, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "1.0 MiB"));
	assert_null(whole);
	assert_int_equal(hearth_region_alloc(t, hearth_pool(h, HEARTH_KIND_KV), 4 * MIB, 1 << 21, 0, 0,
					     &whole, &err), 0);
	p = hearth_region_ptr(whole);
	assert_int_equal((uintptr_t)p % (1 << 21), 0);
	for (uint64_t i = 0; i < 4 * MIB; i += 4096)
		memcpy(p + i, &i, sizeof(i));
	for (uint64_t i = 0; i < 4 * MIB; i += 4096)
		assert_memory_equal(p + i, &i, sizeof(i));
	assert_int_equal(hearth_regions(h, &rows, &n), 0);
	assert_int_equal(n, 5);
	assert_int_equal(rows[4].extents, 4);
	free(rows);
	assert_int_equal(hearth_region_seal(whole, &err), 0);
	hearth_close(h);
}

static long rss_shmem_kb(void)
{
	char line[128];
	long kb = -1;
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "RssShmem: %ld", &kb);
	if (f)
		fclose(f);
	return kb;
}

static void a_huge_pool_costs_only_what_is_touched(void **state)
{
	struct hearth *h = open_pools((uint64_t)1 << 42, MIB);
	struct hearth_tenant *t = join(h, "t", 1);
	struct hearth_err err = { 0 };
	struct hearth_region *r;
	long before = rss_shmem_kb(), used, after;

	if (before < 0)
		SKIP("/proc/self/status does not tell RssShmem");
	if (hearth_region_alloc(t, hearth_pool(h, HEARTH_KIND_KV), (uint64_t)1 << 40, 0, 0, 0, &r, &err))
		fail_msg("%s", err.text);
	memset((char *)hearth_region_ptr(r) + ((uint64_t)1 << 39), 1, 16 * MIB);
	used = rss_shmem_kb();
	hearth_region_free(r);
	after = rss_shmem_kb();
	assert_in_range(used - before, 16 * 1024, 20 * 1024);
	assert_in_range(after - before + 64, 0, 128);
	hearth_close(h);
}

static void what_does_not_fit_the_queue_is_told_as_lost(void **state)
{
	struct hearth *h = open_pools(MIB, MIB);
	struct hearth_tenant *t = join(h, "t", 1);
	struct hearth_budget b;
	struct hearth_err err;
	struct hearth_events *e;
	struct hearth_event ev;
	uint64_t last = 0, lost = 0, got = 0;
	struct pollfd p;

	assert_int_equal(hearth_events_open(h, t, &e, &err), 0);
	while (hearth_events_read(e, &ev) == 1)
		last = ev.seq;
	hearth_budget_defaults(&b);
	for (uint64_t i = 0; i < 1000; i++) {
		b.max = MIB + i;
		assert_int_equal(hearth_budget_set(t, hearth_pool(h, HEARTH_KIND_KV), &b, &err), 0);
	}
	p = (struct pollfd){ .fd = hearth_events_fd(e), .events = POLLIN };
	while (poll(&p, 1, 0) == 1 && hearth_events_read(e, &ev) == 1) {
		if (ev.type == HEARTH_EVENT_LOST) {
			assert_int_equal(lost, 0);
			lost = ev.bytes;
		} else if (ev.type == HEARTH_EVENT_BUDGET) {
			assert_true(ev.seq > last);
			last = ev.seq;
			got++;
		}
	}
	assert_true(lost > 0);
	assert_true(got + lost >= 1000);
	/* and afterwards it hears again */
	assert_int_equal(hearth_budget_set(t, hearth_pool(h, HEARTH_KIND_KV), &b, &err), 0);
	assert_int_equal(poll(&p, 1, 0), 1);
	hearth_close(h);
}

static void closing_the_connection_closes_all_of_it(void **state)
{
	struct hearth *h = open_pools(8 * MIB, MIB);
	struct hearth_tenant *t = join(h, "t", 1);
	struct hearth_events *e;
	struct hearth_region *r;
	struct hearth_err err;

	join(h, "u", 1);
	assert_int_equal(hearth_events_open(h, t, &e, &err), 0);
	for (int i = 0; i < 5; i++) {
		char name[8];

		snprintf(name, sizeof(name), "r%d", i);
		assert_int_equal(hearth_region_alloc(t, hearth_pool(h, HEARTH_KIND_KV), MIB, 0, 0, 0,
						     &r, &err), 0);
		if (i % 2)
			assert_int_equal(hearth_region_name(r, name, NULL, &err), 0);
		if (i == 2)
			assert_int_equal(hearth_region_purgeable(r, &err), 0);
	}
	assert_int_equal(hearth_charge(t, hearth_pool(h, HEARTH_KIND_ACCOUNT), 5, 0, &err), 0);
	hearth_close(h);
	hearth_close(NULL);
	hearth_tenant_close(NULL);
}

static void a_named_purgeable_region_of_nobody_goes_whole(void **state)
{
	struct hearth *h = open_pools(4 * MIB, MIB);
	struct hearth_pool *kv = hearth_pool(h, HEARTH_KIND_KV);
	struct hearth_tenant *t = join(h, "warm", 1), *u = join(h, "u", 5);
	struct hearth_region *r, *s;
	struct hearth_state_row *rows;
	struct hearth_err err;
	size_t n;

	for (int round = 0; round < 2; round++) {
		assert_int_equal(hearth_region_alloc(t, kv, 3 * MIB, 0, 0, 0, &r, &err), 0);
		memset(hearth_region_ptr(r), 'w', 3 * MIB);
		assert_int_equal(hearth_region_name(r, "prefix", NULL, &err), 0);
		assert_int_equal(hearth_region_purgeable(r, &err), 0);
		assert_int_equal(hearth_region_find(u, kv, "prefix", NULL, &s, &err), -EBUSY);
		hearth_tenant_close(t);
		if (round) {
			/* found in time it is purgeable no more, with its content */
			assert_int_equal(hearth_region_find(u, kv, "prefix", NULL, &s, &err), 0);
			assert_int_equal(*(char *)hearth_region_ptr(s), 'w');
			assert_int_equal(hearth_region_alloc(u, kv, 2 * MIB, 0, 0, 0, &r, &err),
					 -ENOSPC);
			hearth_region_free(s);
		} else {
			assert_int_equal(hearth_region_alloc(u, kv, 2 * MIB, 0, 0, 0, &r, &err), 0);
			assert_int_equal(hearth_region_find(u, kv, "prefix", NULL, &s, &err),
					 -ENOENT);
			hearth_region_free(r);
		}
		/* with the last of its memory its tenant is forgotten */
		assert_int_equal(hearth_state(h, &rows, &n, NULL), 0);
		assert_int_equal(n, 2);
		assert_string_equal(rows[0].tenant, "u");
		free(rows);
		t = join(h, "warm", 1);
	}
	hearth_close(h);
}

/* -- random programs ------------------------------------------------------------- */

enum { R_TENANTS = 4, R_SLOTS = 12 };

struct slot {
	struct hearth_region *r;
	int who;
	int byte;         /* what it is filled with */
	bool offered, gone;
};

struct program {
	struct hearth *h;
	struct hearth_pool *kv, *account;
	struct hearth_tenant *t[R_TENANTS];
	uint64_t plain[R_TENANTS];
	struct slot slot[R_SLOTS];
	uint64_t rng;
};

static uint64_t dice(struct program *x, uint64_t below)
{
	x->rng ^= x->rng << 13;
	x->rng ^= x->rng >> 7;
	x->rng ^= x->rng << 17;
	return (x->rng >> 11) % below;
}

static bool filled(const struct slot *s, int byte)
{
	const char *p = hearth_region_ptr(s->r);
	uint64_t size = hearth_region_size(s->r);

	return p[0] == byte && p[size / 2] == byte && p[size - 1] == byte;
}

/* Figures that are kept apart must agree: tenants, pools, regions. */
static void books_agree(struct program *x)
{
	uint64_t in_regions[R_TENANTS] = { 0 }, offered[R_TENANTS] = { 0 }, pool_sum = 0;
	struct hearth_region_row *regions;
	struct hearth_state_row *rows;
	struct hearth_pool_info info;
	size_t n;

	assert_int_equal(hearth_regions(x->h, &regions, &n), 0);
	for (size_t i = 0; i < n; i++) {
		int who = regions[i].tenant[1] - '0';

		/* a region that was purged is listed until it is freed, and holds nothing */
		if (!regions[i].extents)
			continue;
		in_regions[who] += regions[i].size;
		offered[who] += regions[i].purgeable ? regions[i].size : 0;
	}
	free(regions);
	assert_int_equal(hearth_state(x->h, &rows, &n, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		int who = rows[i].tenant[1] - '0';

		if (rows[i].kind == HEARTH_KIND_ACCOUNT) {
			assert_int_equal(rows[i].usage.current, x->plain[who]);
			continue;
		}
		assert_int_equal(rows[i].usage.current, in_regions[who]);
		assert_int_equal(rows[i].usage.purgeable, offered[who]);
		assert_true(rows[i].usage.peak >= rows[i].usage.current);
		pool_sum += rows[i].usage.current;
	}
	free(rows);
	assert_int_equal(hearth_pool_info(x->kv, &info), 0);
	assert_int_equal(info.charged, pool_sum);
	assert_true(info.charged <= info.size);
	assert_true(info.largest_free <= info.size - info.charged);
}

static void take(struct program *x, struct slot *s)
{
	int who = (int)dice(x, R_TENANTS);
	uint64_t size = 1 + dice(x, dice(x, 4) ? 40000 : 600000);

	if (!x->t[who] ||
	    hearth_region_alloc(x->t[who], x->kv, size, dice(x, 3) ? 0 : 1ull << dice(x, 22),
				dice(x, 4) ? 0 : HEARTH_REGION_CONTIGUOUS, 0, &s->r, NULL))
		return;
	assert_true(filled(s, 0));
	s->who = who;
	s->byte = 1 + (int)dice(x, 100);
	s->offered = s->gone = false;
	memset(hearth_region_ptr(s->r), s->byte, hearth_region_size(s->r));
}

static void use(struct program *x, struct slot *s)
{
	bool survived;
	char name[16];

	snprintf(name, sizeof(name), "n%d", (int)dice(x, 5));
	if (!s->offered && !s->gone)
		assert_true(filled(s, s->byte));
	switch (dice(x, 7)) {
	case 0:
		if (!hearth_region_purgeable(s->r, NULL))
			s->offered = true;
		break;
	case 1:
		assert_int_equal(hearth_region_take_back(s->r, &survived), 0);
		s->offered = false;
		s->gone = !survived;
		if (survived)
			assert_true(filled(s, s->byte));
		break;
	case 2:
		assert_int_equal(hearth_region_seal(s->r, NULL) == 0 || s->offered || s->gone, 1);
		break;
	case 3:
		hearth_region_name(s->r, name, NULL, NULL);
		break;
	case 4:
		hearth_region_close(s->r);
		s->r = NULL;
		break;
	default:
		hearth_region_free(s->r);
		s->r = NULL;
	}
}

/* Closes a tenant: its handles go with it. Or opens it again. */
static void toggle(struct program *x, int who)
{
	char name[8];

	if (x->t[who]) {
		for (int i = 0; i < R_SLOTS; i++) {
			if (x->slot[i].r && x->slot[i].who == who)
				x->slot[i].r = NULL;
		}
		hearth_tenant_close(x->t[who]);
		x->t[who] = NULL;
		x->plain[who] = 0;
	} else {
		snprintf(name, sizeof(name), "t%d", who);
		x->t[who] = join(x->h, name, who);
	}
}

static void step(struct program *x)
{
	int who = (int)dice(x, R_TENANTS);
	struct slot *s = &x->slot[dice(x, R_SLOTS)];
	struct hearth_budget b;
	uint64_t bytes;
	char name[16];

	snprintf(name, sizeof(name), "n%d", (int)dice(x, 5));
	switch (dice(x, 24)) {
	case 0:
		toggle(x, who);
		break;
	case 1:
		hearth_region_drop(x->kv, name, NULL);
		break;
	case 2:
		hearth_pool_resize(x->kv, (1 + dice(x, 500)) * 4096, NULL);
		break;
	case 3:
	case 4:
		if (x->t[who] && !s->r &&
		    !hearth_region_find(x->t[who], x->kv, name, NULL, &s->r, NULL)) {
			s->who = who;
			s->byte = *(char *)hearth_region_ptr(s->r);
			s->offered = s->gone = false;
		}
		break;
	case 5:
		hearth_budget_defaults(&b);
		b.min = dice(x, 3) ? 0 : dice(x, MIB);
		b.low = dice(x, MIB);
		b.high = dice(x, 2 * MIB);
		b.max = dice(x, 3) ? HEARTH_UNLIMITED : dice(x, 2 * MIB);
		if (x->t[who])
			hearth_budget_set(x->t[who], x->kv, &b, NULL);
		break;
	case 6:
		bytes = 1 + dice(x, MIB);
		if (x->t[who] && !hearth_charge(x->t[who], x->account, bytes, 0, NULL))
			x->plain[who] += bytes;
		break;
	case 7:
		bytes = 1 + dice(x, MIB);
		if (x->t[who]) {
			int ret = hearth_uncharge(x->t[who], x->account, bytes);

			assert_int_equal(ret, bytes > x->plain[who] ? -EINVAL : 0);
			x->plain[who] -= ret ? 0 : bytes;
		}
		break;
	default:
		if (s->r)
			use(x, s);
		else
			take(x, s);
	}
}

static void random_programs_keep_the_books_and_the_bytes(void **state)
{
	for (int round = 0; round < 8; round++) {
		struct program x = { .rng = 0x2545f4914f6cdd1dull + (uint64_t)round };

		x.h = open_pools(MIB + (uint64_t)round * 300000, 3 * MIB);
		x.kv = hearth_pool(x.h, HEARTH_KIND_KV);
		x.account = hearth_pool(x.h, HEARTH_KIND_ACCOUNT);
		for (int i = 0; i < 1500; i++) {
			step(&x);
			books_agree(&x);
		}
		hearth_close(x.h);
	}
}

/* -- threads -------------------------------------------------------------------- */

#define THREADS 6

struct racer {
	pthread_t thread;
	struct hearth *h;
	int id;
	uint64_t rng;
	int rounds;
	int failures;  /* of what must not fail */
};

static uint64_t roll(struct racer *x, uint64_t below)
{
	x->rng ^= x->rng << 13;
	x->rng ^= x->rng >> 7;
	x->rng ^= x->rng << 17;
	return (x->rng >> 11) % below;
}

static void race_region(struct racer *x, struct hearth_tenant *t, struct hearth_region **slot)
{
	struct hearth_pool *kv = hearth_pool(x->h, HEARTH_KIND_KV);
	uint64_t size = (1 + roll(x, 64)) * 4096;
	bool survived;
	char *p;

	if (!*slot) {
		if (hearth_region_alloc(t, kv, size, 0, 0, roll(x, 4) ? 0 : 2, slot, NULL))
			return;
		p = hearth_region_ptr(*slot);
		size = hearth_region_size(*slot);
		/* somebody else's bytes here would be the worst of faults */
		x->failures += p[0] || p[size / 2] || p[size - 1];
		memset(p, x->id + 1, size);
		return;
	}
	switch (roll(x, 4)) {
	case 0:
		x->failures += hearth_region_purgeable(*slot, NULL) != 0;
		usleep((unsigned)roll(x, 50));
		x->failures += hearth_region_take_back(*slot, &survived) != 0;
		if (survived) {
			p = hearth_region_ptr(*slot);
			x->failures += p[0] != x->id + 1 ||
				       p[hearth_region_size(*slot) - 1] != x->id + 1;
			return;
		}
		break;
	case 1:
		x->failures += hearth_region_seal(*slot, NULL) != 0;
		break;
	}
	hearth_region_free(*slot);
	*slot = NULL;
}

static void *race(void *arg)
{
	struct racer *x = arg;
	struct hearth_pool *kv = hearth_pool(x->h, HEARTH_KIND_KV);
	struct hearth_pool *account = hearth_pool(x->h, HEARTH_KIND_ACCOUNT);
	struct hearth_region *slots[4] = { 0 };
	struct hearth_state_row *rows;
	struct hearth_events *e = NULL;
	struct hearth_budget b;
	struct hearth_event ev;
	struct hearth_tenant *t;
	char name[16];
	size_t n;

	snprintf(name, sizeof(name), "racer%d", x->id);
	t = join(x->h, name, x->id);
	for (int i = 0; i < x->rounds; i++) {
		switch (roll(x, 8)) {
		case 0:
			if (!hearth_charge(t, account, 1 + roll(x, MIB), roll(x, 3) ? 0 : 1, NULL))
				x->failures += hearth_uncharge(t, account, 1) != 0;
			break;
		case 1:
			hearth_budget_defaults(&b);
			b.min = roll(x, 4) ? 0 : roll(x, 256) * 1024;
			b.high = roll(x, MIB);
			hearth_budget_set(t, roll(x, 2) ? kv : account, &b, NULL);
			break;
		case 2:
			if (!e && hearth_events_open(x->h, roll(x, 2) ? t : NULL, &e, NULL))
				x->failures++;
			while (hearth_events_read(e, &ev) == 1)
				;
			if (roll(x, 2)) {
				hearth_events_close(e);
				e = NULL;
			}
			break;
		case 3:
			if (hearth_state(x->h, &rows, &n, NULL))
				x->failures++;
			else
				free(rows);
			break;
		default:
			race_region(x, t, &slots[roll(x, 4)]);
		}
	}
	hearth_events_close(e);
	hearth_tenant_close(t);
	return NULL;
}

static void threads_leave_nothing_behind(void **state)
{
	struct hearth *h = open_pools(MIB, 2 * MIB);
	struct racer x[THREADS] = { 0 };
	struct hearth_pool_info info;

	for (int i = 0; i < THREADS; i++) {
		x[i] = (struct racer){ .h = h, .id = i, .rng = 88172645463325252ull + (uint64_t)i,
				       .rounds = 3000 };
		assert_int_equal(pthread_create(&x[i].thread, NULL, race, &x[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(x[i].thread, NULL);
		assert_int_equal(x[i].failures, 0);
	}
	for (size_t i = 0; i < hearth_pool_count(h); i++) {
		assert_int_equal(hearth_pool_info(hearth_pool_at(h, i), &info), 0);
		assert_int_equal(info.charged, 0);
		assert_int_equal(info.guaranteed, 0);
		assert_int_equal(info.regions, 0);
		assert_int_equal(info.tenants, 0);
		if (info.kind != HEARTH_KIND_ACCOUNT)
			assert_int_equal(info.largest_free, info.size);
	}
	hearth_close(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_region_may_lie_in_pieces),
		cmocka_unit_test(a_huge_pool_costs_only_what_is_touched),
		cmocka_unit_test(what_does_not_fit_the_queue_is_told_as_lost),
		cmocka_unit_test(closing_the_connection_closes_all_of_it),
		cmocka_unit_test(a_named_purgeable_region_of_nobody_goes_whole),
		cmocka_unit_test(random_programs_keep_the_books_and_the_bytes),
		cmocka_unit_test(threads_leave_nothing_behind),
	};
	return UNIT_RUN(tests);
}
