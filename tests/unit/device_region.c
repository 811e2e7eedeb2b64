// SPDX-License-Identifier: MIT
/* Regions: sizes, names, seals, purging, and memory that others can use. */
#include "device_fx.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/mono.h"

/* -- sizes ------------------------------------------------------------------------ */

void sizes_at_every_border(void **state)
{
	static const uint64_t never[] = { KV_SIZE + 1, KV_SIZE + MIB, 1ull << 63, UINT64_MAX - 1,
					  UINT64_MAX };
	struct hearth_region *r = NULL;
	struct fx *f = *state;
	const uint64_t fits[] = { 1, page - 1, page, page + 1, 2 * MIB, KV_SIZE - page, KV_SIZE };

	assert_int_equal(hearth_region_alloc(f->a, f->kv, 0, 0, 0, 0, &r, &f->err), -EINVAL);
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
		assert_int_equal(hearth_region_alloc(f->a, f->kv, never[i], 0, 0, 0, &r, &f->err),
				 -ENOSPC);
		assert_null(r);
		assert_int_equal(current_of(f, f->a, f->kv), 0);
	}
	for (size_t i = 0; i < sizeof(fits) / sizeof(fits[0]); i++) {
		uint64_t rounded = (fits[i] + page - 1) & ~(page - 1);

		OK(f, hearth_region_alloc(f->a, f->kv, fits[i], 0, 0, 0, &r, &f->err));
		assert_int_equal(hearth_region_size(r), rounded);
		assert_int_equal(current_of(f, f->a, f->kv), rounded);
		assert_true(all_bytes(hearth_region_ptr(r), 0, rounded));
		memset(hearth_region_ptr(r), 0x5a, rounded);
		hearth_region_free(r);
		r = NULL;
		assert_int_equal(current_of(f, f->a, f->kv), 0);
	}
}

void bad_arguments_of_a_region(void **state)
{
	struct hearth_region *r = NULL;
	struct fx *f = *state;

	assert_int_equal(hearth_region_alloc(f->a, f->account, page, 0, 0, 0, &r, &f->err), -EINVAL);
	assert_int_equal(hearth_region_alloc(f->a, NULL, page, 0, 0, 0, &r, &f->err), -ENOENT);
	assert_int_equal(hearth_region_alloc(f->a, f->kv, page, 3, 0, 0, &r, &f->err), -EINVAL);
	assert_int_equal(hearth_region_alloc(f->a, f->kv, page, 1ull << 31, 0, 0, &r, &f->err), -EINVAL);
	assert_int_equal(hearth_region_alloc(f->a, f->kv, page, 0, 2, 0, &r, &f->err), -EOPNOTSUPP);
	assert_null(r);
	hearth_region_free(NULL);
	hearth_region_close(NULL);
}

void addresses_are_aligned(void **state)
{
	struct hearth_region *r[12];
	struct fx *f = *state;

	for (int i = 0; i < 12; i++) {
		uint64_t align = (uint64_t)1 << (10 + i);

		OK(f, hearth_region_alloc(f->a, f->kv, page, align, 0, 0, &r[i], &f->err));
		assert_int_equal((uintptr_t)hearth_region_ptr(r[i]) % align, 0);
	}
	for (int i = 0; i < 12; i++)
		hearth_region_free(r[i]);
}

void memory_is_zero_for_the_next_owner(void **state)
{
	struct fx *f = *state;
	struct hearth_region *r;

	OK(f, hearth_region_alloc(f->a, f->kv, KV_SIZE, 0, 0, 0, &r, &f->err));
	memset(hearth_region_ptr(r), 0xee, KV_SIZE);
	hearth_region_free(r);
	OK(f, hearth_region_alloc(f->b, f->kv, KV_SIZE, 0, 0, 0, &r, &f->err));
	assert_true(all_bytes(hearth_region_ptr(r), 0, KV_SIZE));
	hearth_region_free(r);
}

/* -- sealed, named, purgeable -------------------------------------------------------- */

void a_sealed_region_is_read_only_for_good(void **state)
{
	struct hearth_region *r;
	struct fx *f = *state;
	char *p;

	OK(f, hearth_region_alloc(f->a, f->weights, MIB, 0, 0, 0, &r, &f->err));
	p = hearth_region_ptr(r);
	memset(p, 'w', MIB);
	assert_false(hearth_region_sealed(r));
	OK(f, hearth_region_seal(r, &f->err));
	assert_true(hearth_region_sealed(r));
	assert_ptr_equal(p, hearth_region_ptr(r));
	assert_true(all_bytes(p, 'w', MIB));
	assert_false(touches(p, true));
	assert_false(touches(p + MIB - 1, true));
	OK(f, hearth_region_seal(r, &f->err));
	hearth_region_free(r);
}

void a_named_region_outlives_its_tenant(void **state)
{
	uint8_t digest[HEARTH_DIGEST_LEN] = { 1, 2, 3 }, other[HEARTH_DIGEST_LEN] = { 9 };
	struct hearth_region *r, *s = NULL;
	struct hearth_region_row *rows;
	struct fx *f = *state;
	size_t n;

	OK(f, hearth_region_alloc(f->a, f->weights, MIB, 0, 0, 0, &r, &f->err));
	memset(hearth_region_ptr(r), 'm', MIB);
	assert_int_equal(hearth_region_name(r, "", digest, &f->err), -EINVAL);
	assert_int_equal(hearth_region_name(r, "/x", digest, &f->err), -EINVAL);
	OK(f, hearth_region_name(r, "model", digest, &f->err));
	assert_int_equal(hearth_region_name(r, "again", digest, &f->err), -EBUSY);
	/* not sealed, its owner is there: nobody else may have it */
	assert_int_equal(hearth_region_find(f->b, f->weights, "model", NULL, &s, &f->err), -EBUSY);
	OK(f, hearth_region_seal(r, &f->err));
	assert_int_equal(hearth_region_find(f->b, f->weights, "modal", digest, &s, &f->err), -ENOENT);
	assert_int_equal(hearth_region_find(f->b, f->weights, "model", other, &s, &f->err), -ENOENT);
	assert_non_null(strstr(f->err.text, "digest"));
	assert_int_equal(hearth_region_find(f->b, f->kv, "model", NULL, &s, &f->err), -ENOENT);
	assert_null(s);
	/* shared: charged once, to its owner */
	OK(f, hearth_region_find(f->b, f->weights, "model", digest, &s, &f->err));
	assert_true(all_bytes(hearth_region_ptr(s), 'm', MIB));
	assert_true(hearth_region_sealed(s));
	assert_false(touches(hearth_region_ptr(s), true));
	assert_int_equal(current_of(f, f->a, f->weights), MIB);
	assert_int_equal(current_of(f, f->b, f->weights), 0);
	assert_int_equal(hearth_region_drop(f->weights, "model", &f->err), -EBUSY);
	hearth_region_close(s);

	hearth_tenant_close(f->a);
	OK(f, hearth_regions(f->h, &rows, &n));
	assert_int_equal(n, 1);
	assert_string_equal(rows[0].name, "model");
	assert_string_equal(rows[0].tenant, "alpha");
	assert_int_equal(rows[0].handles, 0);
	assert_int_equal(rows[0].size, MIB);
	assert_true(rows[0].sealed);
	assert_memory_equal(rows[0].digest, digest, sizeof(digest));
	free(rows);

	/* its owner is gone: the charge must fit the finder, and moves */
	limit(f, f->b, f->weights, 0, 0, HEARTH_UNLIMITED, MIB - page);
	s = NULL;
	assert_int_equal(hearth_region_find(f->b, f->weights, "model", NULL, &s, &f->err), -ENOSPC);
	assert_null(s);
	limit(f, f->b, f->weights, 0, 0, HEARTH_UNLIMITED, MIB);
	OK(f, hearth_region_find(f->b, f->weights, "model", digest, &s, &f->err));
	assert_true(all_bytes(hearth_region_ptr(s), 'm', MIB));
	assert_int_equal(current_of(f, f->b, f->weights), MIB);
	hearth_region_close(s);
	assert_int_equal(current_of(f, f->b, f->weights), MIB);
	OK(f, hearth_region_drop(f->weights, "model", &f->err));
	assert_int_equal(hearth_region_drop(f->weights, "model", &f->err), -ENOENT);
	assert_int_equal(current_of(f, f->b, f->weights), 0);
	OK(f, hearth_tenant_open(f->h, "alpha", HEARTH_CLASS_LLM, 10, &f->a, &f->err));
}

void names_are_unique_in_a_pool(void **state)
{
	struct hearth_region *r, *s;
	struct fx *f = *state;

	OK(f, hearth_region_alloc(f->a, f->weights, page, 0, 0, 0, &r, &f->err));
	OK(f, hearth_region_alloc(f->b, f->weights, page, 0, 0, 0, &s, &f->err));
	OK(f, hearth_region_name(r, "n", NULL, &f->err));
	assert_int_equal(hearth_region_name(s, "n", NULL, &f->err), -EEXIST);
	/* freeing takes the name with it */
	hearth_region_free(r);
	OK(f, hearth_region_name(s, "n", NULL, &f->err));
	hearth_region_free(s);
}

void an_unsealed_named_region_is_found_writable_after_its_owner(void **state)
{
	struct hearth_region *r, *s;
	struct fx *f = *state;

	OK(f, hearth_region_alloc(f->a, f->kv, page, 0, 0, 0, &r, &f->err));
	strcpy(hearth_region_ptr(r), "warm");
	OK(f, hearth_region_name(r, "prefix", NULL, &f->err));
	hearth_tenant_close(f->a);
	OK(f, hearth_tenant_open(f->h, "alpha", HEARTH_CLASS_LLM, 10, &f->a, &f->err));
	assert_int_equal(current_of(f, f->a, f->kv), page);
	OK(f, hearth_region_find(f->a, f->kv, "prefix", NULL, &s, &f->err));
	assert_string_equal(hearth_region_ptr(s), "warm");
	assert_true(touches(hearth_region_ptr(s), true));
	hearth_region_free(s);
	assert_int_equal(current_of(f, f->a, f->kv), 0);
}

void a_purgeable_region_gives_way_and_says_so(void **state)
{
	struct hearth_region *r, *s, *t = NULL;
	struct hearth_usage u;
	uint64_t now, purge;
	struct fx *f = *state;
	bool survived;

	OK(f, hearth_region_alloc(f->a, f->kv, 6 * MIB, 0, 0, 0, &r, &f->err));
	memset(hearth_region_ptr(r), 'p', 6 * MIB);
	OK(f, hearth_region_purgeable(r, &f->err));
	OK(f, hearth_region_purgeable(r, &f->err));
	OK(f, hearth_available(f->b, f->kv, &now, &purge));
	assert_int_equal(now, 2 * MIB);
	assert_int_equal(purge, KV_SIZE);
	/* what fits without it leaves it alone, and so does what would not fit with it */
	OK(f, hearth_region_alloc(f->b, f->kv, MIB, 0, 0, 0, &s, &f->err));
	assert_int_equal(hearth_region_alloc(f->b, f->kv, KV_SIZE, 0, 0, 0, &t, &f->err), -ENOSPC);
	OK(f, hearth_region_take_back(r, &survived));
	assert_true(survived);
	assert_true(all_bytes(hearth_region_ptr(r), 'p', 6 * MIB));
	/* taken back: it is safe again */
	assert_int_equal(hearth_region_alloc(f->b, f->kv, 4 * MIB, 0, 0, 0, &t, &f->err), -ENOSPC);

	OK(f, hearth_region_purgeable(r, &f->err));
	OK(f, hearth_region_alloc(f->b, f->kv, 4 * MIB, 0, 0, 0, &t, &f->err));
	assert_true(all_bytes(hearth_region_ptr(t), 0, 4 * MIB));
	assert_false(touches(hearth_region_ptr(r), false));
	OK(f, hearth_usage_get(f->a, f->kv, &u));
	assert_int_equal(u.current, 0);
	assert_int_equal(u.purgeable, 0);
	assert_int_equal(u.n_purged, 1);
	assert_int_equal(u.purged_bytes, 6 * MIB);
	OK(f, hearth_region_take_back(r, &survived));
	assert_false(survived);
	assert_int_equal(hearth_region_seal(r, &f->err), -ESTALE);
	assert_int_equal(hearth_region_purgeable(r, &f->err), -ESTALE);
	assert_int_equal(hearth_region_name(r, "gone", NULL, &f->err), -ESTALE);
	hearth_region_free(r);
	hearth_region_free(s);
	hearth_region_free(t);
}

void purging_begins_with_the_lowest_priority_and_spares_a_min(void **state)
{
	struct hearth_region *low, *high, *r = NULL;
	struct hearth_tenant *c;
	struct fx *f = *state;
	bool survived;

	OK(f, hearth_tenant_open(f->h, "asker", HEARTH_CLASS_TTS, 90, &c, &f->err));
	OK(f, hearth_region_alloc(f->a, f->kv, 4 * MIB, 0, 0, 0, &low, &f->err));
	OK(f, hearth_region_alloc(f->b, f->kv, 4 * MIB, 0, 0, 0, &high, &f->err));
	OK(f, hearth_region_purgeable(high, &f->err));
	OK(f, hearth_region_purgeable(low, &f->err));
	limit(f, f->a, f->kv, 4 * MIB, 0, HEARTH_UNLIMITED, HEARTH_UNLIMITED);
	limit(f, f->b, f->kv, 4 * MIB, 0, HEARTH_UNLIMITED, HEARTH_UNLIMITED);
	assert_int_equal(hearth_region_alloc(c, f->kv, page, 0, 0, 0, &r, &f->err), -ENOSPC);
	limit(f, f->a, f->kv, 0, 0, HEARTH_UNLIMITED, HEARTH_UNLIMITED);
	limit(f, f->b, f->kv, 0, 0, HEARTH_UNLIMITED, HEARTH_UNLIMITED);
	OK(f, hearth_region_alloc(c, f->kv, page, 0, 0, 0, &r, &f->err));
	OK(f, hearth_region_take_back(low, &survived));
	assert_false(survived);
	OK(f, hearth_region_take_back(high, &survived));
	assert_true(survived);
	hearth_region_free(low);
	hearth_region_free(high);
	hearth_tenant_close(c);
}

/* -- memory that others can use ------------------------------------------------------------ */

void a_file_is_read_straight_into_a_region(void **state)
{
	char path[] = "region-read-XXXXXX";
	struct hearth_region *r;
	struct fx *f = *state;
	char *buf = NULL;
	ssize_t got;
	int fd;

	fd = mkstemp(path);
	if (fd < 0)
		SKIP("no file can be made here: %s", strerror(errno));
	assert_int_equal(posix_memalign((void **)&buf, 4096, MIB), 0);
	memset(buf, 'd', MIB);
	assert_int_equal(write(fd, buf, MIB), MIB);
	assert_int_equal(fsync(fd), 0);
	close(fd);
	free(buf);
	fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (fd < 0) {
		unlink(path);
		SKIP("this file system has no O_DIRECT");
	}
	OK(f, hearth_region_alloc(f->a, f->weights, MIB, 4096, 0, 0, &r, &f->err));
	got = read(fd, hearth_region_ptr(r), MIB);
	close(fd);
	unlink(path);
	assert_int_equal(got, MIB);
	assert_true(all_bytes(hearth_region_ptr(r), 'd', MIB));
	hearth_region_free(r);
}

void export_is_a_descriptor_or_says_that_it_cannot_be(void **state)
{
	struct hearth_region *r;
	struct fx *f = *state;
	int fd = -1, ret;

	OK(f, hearth_region_alloc(f->a, f->weights, MIB, 0, 0, 0, &r, &f->err));
	ret = hearth_region_export(r, &fd, &f->err);
	if (hearth_backend_of(f->h) == HEARTH_BACKEND_EMBEDDED) {
		assert_int_equal(ret, -EOPNOTSUPP);
		assert_int_equal(fd, -1);
	} else {
		OK(f, ret);
		assert_true(fd >= 0);
		close(fd);
	}
	hearth_region_free(r);
}

void a_region_is_shared_by_descriptor(void **state)
{
	struct hearth_region *r, *s = NULL;
	struct fx *f = *state;
	int fd = -1, ro = -1;

	OK(f, hearth_region_alloc(f->a, f->kv, MIB, 0, 0, 0, &r, &f->err));
	if (hearth_backend_of(f->h) == HEARTH_BACKEND_EMBEDDED) {
		assert_int_equal(hearth_region_share(r, true, &fd, &f->err), -EOPNOTSUPP);
		assert_int_equal(hearth_region_import(f->b, 0, &s, &f->err), -EOPNOTSUPP);
		hearth_region_free(r);
		return;
	}
	memset(hearth_region_ptr(r), 's', MIB);
	OK(f, hearth_region_share(r, true, &fd, &f->err));
	OK(f, hearth_region_share(r, false, &ro, &f->err));
	OK(f, hearth_region_import(f->b, fd, &s, &f->err));
	assert_true(all_bytes(hearth_region_ptr(s), 's', MIB));
	*(char *)hearth_region_ptr(s) = 't';
	assert_int_equal(*(char *)hearth_region_ptr(r), 't');
	/* charged once, to its owner */
	assert_int_equal(current_of(f, f->a, f->kv), MIB);
	assert_int_equal(current_of(f, f->b, f->kv), 0);
	hearth_region_close(s);
	OK(f, hearth_region_import(f->b, ro, &s, &f->err));
	assert_false(touches(hearth_region_ptr(s), true));
	assert_int_equal(hearth_region_share(s, true, &fd, &f->err), -EACCES);
	hearth_region_close(s);
	OK(f, hearth_region_seal(r, &f->err));
	assert_int_equal(hearth_region_share(r, true, &fd, &f->err), -EROFS);
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	s = NULL;
	assert_int_equal(hearth_region_import(f->b, fd, &s, &f->err), -EINVAL);
	assert_null(s);
	close(fd);
	hearth_region_free(r);
}
