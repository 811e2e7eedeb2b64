// SPDX-License-Identifier: MIT
/*
 * Loading, on embedded pools; with the path of a device node as argument on
 * that (as root: it makes its own pool and removes it).
 */
#include "unit.h"
#include "synth.h"
#include "dev/hearth.h"
#include "gguf/load.h"
#include "gguf/quant.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define POOL (device ? 24u << 20 : 64u << 20)

static const char *device;  /* NULL: embedded */
static char dir[40];

struct box {
	struct hearth *h;
	struct hearth_tenant *t;
	struct hearth_pool *pool;
};

#define in_dir(name) path_in(dir, name)

#define OK(err, call) do { \
	int ok_ret = (call); \
	if (ok_ret < 0) \
		fail_msg("%s: %d: %s", #call, ok_ret, (err).text); \
} while (0)

static void box_open(struct box *b, uint64_t size)
{
	struct hearth_pool_spec spec = { .kind = HEARTH_KIND_WEIGHTS,
					 .name = "l-weights",
					 .size = size };
	struct hearth_options o;
	struct hearth_err err = { 0 };

	hearth_options_defaults(&o);
	o.backend = device ? HEARTH_BACKEND_DEVICE : HEARTH_BACKEND_EMBEDDED;
	o.device = device;
	o.pools = device ? NULL : &spec;
	o.n_pools = device ? 0 : 1;
	OK(err, hearth_open(&o, &b->h, &err));
	if (device) {
		OK(err, hearth_admin(b->h, &err));
		OK(err, hearth_pool_create(b->h, &spec, &err));
	}
	OK(err, hearth_tenant_open(b->h, "llm", HEARTH_CLASS_LLM, 20, &b->t, &err));
	b->pool = hearth_pool_named(b->h, "l-weights");
	assert_non_null(b->pool);
}

static void box_close(struct box *b)
{
	struct hearth_err err = { 0 };

	hearth_tenant_close(b->t);
	if (device)
		OK(err, hearth_pool_remove(b->pool, &err));
	hearth_close(b->h);
}

static uint64_t charged(const struct box *b)
{
	struct hearth_usage u;

	assert_int_equal(hearth_usage_get(b->t, b->pool, &u), 0);
	return u.current;
}

static uint64_t peak(const struct box *b)
{
	struct hearth_usage u;

	assert_int_equal(hearth_usage_get(b->t, b->pool, &u), 0);
	return u.peak;
}

/* Some megabytes, so that there are several reads and leaves. */
static const char *model(const char *name, uint32_t parts)
{
	struct synth_opts o;

	synth_defaults(&o);
	o.d_model = device ? 256 : 512; /* a guest is slow */
	o.d_ff = device ? 600 : 1500;
	o.layers = device ? 1 : 2;
	o.type = QUANT_F32;
	o.parts = parts;
	assert_int_equal(synth_model(in_dir(name), &o), 0);
	return in_dir(name);
}

static struct gguf *must_open(const char *path)
{
	struct hearth_err err = { 0 };
	struct gguf *g = NULL;

	if (gguf_open(path, &g, &err) < 0)
		fail_msg("%s", err.text);
	return g;
}

static struct load *must_load(struct box *b, struct gguf *g, const struct load_opts *o)
{
	struct hearth_err err = { 0 };
	struct load *l = NULL;

	if (load_weights(g, b->t, b->pool, o, &l, &err) < 0)
		fail_msg("%s", err.text);
	return l;
}

/* Every tensor's bytes against the file, read the plain way. */
static void same_as_files(struct gguf *g)
{
	for (uint32_t i = 0; i < gguf_n_tensors(g); i++) {
		struct gguf_tensor *t = gguf_tensor_at(g, i);
		uint8_t *is = malloc(t->nbytes);
		int fd = open(gguf_part_path(g, t->part), O_RDONLY);

		assert_int_equal(pread(fd, is, t->nbytes, (off_t)t->offset), t->nbytes);
		assert_non_null(t->data);
		assert_memory_equal(is, t->data, t->nbytes);
		close(fd);
		free(is);
	}
}

static void every_way_gives_the_files_bytes(void **state)
{
	char digest[40] = "";

	for (uint32_t parts = 1; parts <= 3; parts += 2) {
		struct gguf *g;

		model("w.gguf", parts);
		g = must_open(in_dir(parts == 1 ? "w.gguf" : "w-00002-of-00003.gguf"));
		digest[0] = 0;
		for (enum load_way way = LOAD_AUTO; way <= LOAD_BUFFERED; way++) {
			struct load_opts o = { .way = way, .block = 1 << 20, .depth = 3 };
			struct hearth_err err = { 0 };
			struct load *l = NULL;
			struct box b;
			int r;

			box_open(&b, POOL);
			r = load_weights(g, b.t, b.pool, &o, &l, &err);
			if (r == -EOPNOTSUPP) {
				printf("# way %d is not to be had here: %s\n", way, err.text);
				box_close(&b);
				continue;
			}
			if (r < 0)
				fail_msg("%s", err.text);
			same_as_files(g);
			assert_int_equal(load_bytes(l), load_region_bytes(g));
			assert_int_equal(charged(&b), load_region_bytes(g));
			assert_int_equal(peak(&b), load_region_bytes(g));
			assert_int_equal(strlen(load_digest(l)), 32);
			if (digest[0])
				assert_string_equal(digest, load_digest(l));
			snprintf(digest, sizeof(digest), "%s", load_digest(l));
			load_drop(l);
			assert_int_equal(charged(&b), 0);
			assert_null(gguf_tensor_at(g, 0)->data);
			box_close(&b);
		}
		gguf_close(g);
	}
}

static void a_second_load_reads_nothing(void **state)
{
	const char *path = model("again.gguf", 1);
	struct gguf *g = must_open(path), *g2 = must_open(path);
	struct load *l, *l2;
	struct box b;

	box_open(&b, POOL);
	assert_false(load_there(g, b.t, b.pool, NULL));
	l = must_load(&b, g, NULL);
	assert_int_not_equal(load_way(l), LOAD_FOUND);
	assert_true(load_there(g2, b.t, b.pool, NULL));
	assert_false(load_there(g2, b.t, b.pool, "other"));
	l2 = must_load(&b, g2, &(struct load_opts){ .verify = true });
	assert_int_equal(load_way(l2), LOAD_FOUND);
	assert_string_equal(load_digest(l), load_digest(l2));
	same_as_files(g2);
	assert_int_equal(charged(&b), load_region_bytes(g));
	/* It outlives both. */
	load_free(l);
	load_free(l2);
	assert_null(gguf_tensor_at(g2, 0)->data);
	l = must_load(&b, g, NULL);
	assert_int_equal(load_way(l), LOAD_FOUND);
	same_as_files(g);
	load_drop(l);
	assert_int_equal(charged(&b), 0);
	l = must_load(&b, g, NULL);
	assert_int_not_equal(load_way(l), LOAD_FOUND);
	load_drop(l);
	gguf_close(g);
	gguf_close(g2);
	box_close(&b);
}

static void what_was_loaded_cannot_be_written(void **state)
{
	struct gguf *g = must_open(model("ro.gguf", 1));
	struct load *l;
	struct box b;
	int fd[2];

	box_open(&b, POOL);
	l = must_load(&b, g, NULL);
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(write(fd[1], "x", 1), 1);
	/* The kernel writes for us: EFAULT instead of a signal. */
	assert_int_equal(read(fd[0], (void *)(uintptr_t)load_base(l), 1), -1);
	assert_int_equal(errno, EFAULT);
	close(fd[0]);
	close(fd[1]);
	load_drop(l);
	gguf_close(g);
	box_close(&b);
}

static void a_changed_file_is_read_anew(void **state)
{
	const char *path = model("changed.gguf", 1);
	struct gguf *g = must_open(path), *g2;
	struct load *l, *l2;
	struct box b;
	char first[40];
	uint8_t byte;
	int fd;

	box_open(&b, POOL);
	l = must_load(&b, g, NULL);
	snprintf(first, sizeof(first), "%s", load_digest(l));
	usleep(20000);
	fd = open(path, O_RDWR);
	assert_int_equal(pread(fd, &byte, 1, (off_t)gguf_tensor_at(g, 3)->offset), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)gguf_tensor_at(g, 3)->offset), 1);
	close(fd);
	g2 = must_open(path);
	l2 = must_load(&b, g2, NULL);
	assert_int_not_equal(load_way(l2), LOAD_FOUND);
	assert_true(strcmp(first, load_digest(l2)) != 0);
	same_as_files(g2);
	load_drop(l2);
	load_drop(l);
	gguf_close(g);
	gguf_close(g2);
	box_close(&b);
}

static void a_copy_of_the_file_shares_the_region(void **state)
{
	const char *path = model("orig.gguf", 1);
	struct gguf *g = must_open(path), *g2;
	struct load *l, *l2;
	struct box b;

	box_open(&b, POOL);
	l = must_load(&b, g, NULL);
	g2 = must_open(model("copy.gguf", 1));
	l2 = must_load(&b, g2, NULL);
	assert_int_equal(load_way(l2), LOAD_FOUND);
	assert_non_null(strstr(load_how(l2), "another file's name"));
	same_as_files(g2);
	assert_int_equal(charged(&b), load_region_bytes(g));
	load_free(l2);
	load_drop(l);
	gguf_close(g);
	gguf_close(g2);
	box_close(&b);
}

struct packer {
	int calls;
	int fail_at;
};

static int flip(void *ctx, const struct gguf_tensor *t, void *data, struct hearth_err *err)
{
	struct packer *p = ctx;

	if (p->calls++ == p->fail_at)
		return err_set(err, -EPROTO, "cannot pack this");
	for (uint64_t i = 0; i < t->nbytes; i++)
		((uint8_t *)data)[i] ^= 0xff;
	return 0;
}

static void a_backend_may_reorder_before_the_seal(void **state)
{
	struct packer p = { .fail_at = -1 };
	struct load_opts o = { .layout = "flipped", .pack = flip, .pack_ctx = &p, .verify = true };
	struct gguf *g = must_open(model("pack.gguf", 1)), *g2 = must_open(in_dir("pack.gguf"));
	struct load *plain, *packed, *again;
	struct box b;

	box_open(&b, POOL);
	plain = must_load(&b, g, NULL);
	packed = must_load(&b, g2, &o);
	assert_int_not_equal(load_way(packed), LOAD_FOUND);
	assert_int_equal(p.calls, gguf_n_tensors(g));
	assert_string_equal(load_digest(plain), load_digest(packed));
	for (uint32_t i = 0; i < gguf_n_tensors(g); i++) {
		const uint8_t *x = gguf_tensor_at(g, i)->data, *y = gguf_tensor_at(g2, i)->data;

		for (uint64_t k = 0; k < gguf_tensor_at(g, i)->nbytes; k++)
			if ((x[k] ^ y[k]) != 0xff)
				fail_msg("tensor %u byte %llu", i, (unsigned long long)k);
	}
	/* Found packed, and not packed twice. */
	again = must_load(&b, g2, &o);
	assert_int_equal(load_way(again), LOAD_FOUND);
	assert_int_equal(p.calls, gguf_n_tensors(g));
	load_free(again);
	load_drop(packed);
	load_drop(plain);
	assert_int_equal(charged(&b), 0);
	gguf_close(g);
	gguf_close(g2);
	box_close(&b);
}

static void a_failed_load_leaves_nothing(void **state)
{
	struct packer p = { .fail_at = 5 };
	struct load_opts o = { .layout = "flipped", .pack = flip, .pack_ctx = &p };
	struct gguf *g = must_open(model("fail.gguf", 1));
	struct hearth_err err = { 0 };
	struct load *l = NULL;
	struct box b;

	box_open(&b, POOL);
	assert_int_equal(load_weights(g, b.t, b.pool, &o, &l, &err), -EPROTO);
	assert_non_null(strstr(err.text, "tensor \"blk.0."));
	assert_non_null(strstr(err.text, "cannot pack this"));
	assert_int_equal(charged(&b), 0);
	assert_null(gguf_tensor_at(g, 0)->data);

	/* Changed after it was opened: what is known of it is not true any more. */
	assert_int_equal(truncate(in_dir("fail.gguf"), 1 << 20), 0);
	assert_int_equal(load_weights(g, b.t, b.pool, NULL, &l, &err), -ESTALE);
	assert_non_null(strstr(err.text, "fail.gguf was changed since it was opened"));
	assert_int_equal(charged(&b), 0);
	box_close(&b);
	gguf_close(g);

	/* A pool that is one page too small (a device's are whole blocks of 2 MiB). */
	g = must_open(model("fail.gguf", 1));
	box_open(&b, load_region_bytes(g) - (device ? 2u << 20 : 4096));
	assert_int_equal(load_weights(g, b.t, b.pool, NULL, &l, &err), -ENOSPC);
	assert_true(strlen(err.text) > 20);
	assert_int_equal(charged(&b), 0);
	box_close(&b);
	box_open(&b, load_region_bytes(g));
	l = must_load(&b, g, NULL);
	load_drop(l);

	/* Options that make no sense. */
	assert_int_equal(
		load_weights(g, b.t, b.pool, &(struct load_opts){ .block = 4096 }, &l, &err),
		-EINVAL);
	assert_int_equal(
		load_weights(g, b.t, b.pool, &(struct load_opts){ .depth = 100000 }, &l, &err),
		-EINVAL);
	assert_int_equal(load_weights(g, b.t, b.pool,
				      &(struct load_opts){ .layout = "a name that is much too long "
								     "for a region" },
				      &l, &err),
			 -EINVAL);
	gguf_close(g);
	box_close(&b);
}

static void a_vocabulary_alone_cannot_be_loaded(void **state)
{
	struct hearth_err err = { 0 };
	struct synth_buf v = { 0 }, b = { 0 };
	struct load *l = NULL;
	struct gguf *g;
	struct box box;

	synth_head(&b, 3, 0, synth_vocab(&v));
	synth_put(&b, v.p, v.n);
	assert_int_equal(synth_save(in_dir("v.gguf"), &b), 0);
	g = must_open(in_dir("v.gguf"));
	box_open(&box, 1 << 20);
	assert_int_equal(load_weights(g, box.t, box.pool, NULL, &l, &err), -ENODATA);
	assert_non_null(strstr(err.text, "no tensors"));
	gguf_close(g);
	box_close(&box);
	free(v.p);
	free(b.p);
}

struct watcher {
	uint64_t done, total;
	int calls;
	atomic_bool cancel;
	uint64_t cancel_at;
};

static void watch(void *ctx, uint64_t done, uint64_t total)
{
	struct watcher *w = ctx;

	assert_true(done >= w->done && done <= total);
	w->done = done;
	w->total = total;
	w->calls++;
	if (w->cancel_at && done >= w->cancel_at)
		atomic_store(&w->cancel, true);
}

/* Done to the file by somebody else while it is read, at the first progress. */
static void cut(void *ctx, uint64_t done, uint64_t total)
{
	assert_int_equal(truncate(ctx, 1 << 20), 0);
}

static void scribble(void *ctx, uint64_t done, uint64_t total)
{
	int fd = open(ctx, O_WRONLY);

	usleep(20000); /* file times move by a tick of the kernel's clock, 10 ms at most */
	assert_int_equal(pwrite(fd, "x", 1, (off_t)(total / 2)), 1);
	close(fd);
}

static void a_file_that_changes_while_it_is_read_is_refused(void **state)
{
	for (int how = 0; how < 2; how++) {
		const char *path = model("moving.gguf", 1);
		struct load_opts o = { .way = LOAD_DIRECT,
				       .block = 1 << 20,
				       .progress = how ? scribble : cut,
				       .ctx = (void *)(uintptr_t)path };
		struct hearth_err err = { 0 };
		struct load *l = NULL;
		struct gguf *g = must_open(path);
		struct box b;
		int r;

		box_open(&b, POOL);
		r = load_weights(g, b.t, b.pool, &o, &l, &err);
		if (r == -EOPNOTSUPP) {
			o.way = LOAD_BUFFERED;
			r = load_weights(g, b.t, b.pool, &o, &l, &err);
		}
		assert_int_equal(r, how ? -ESTALE : -ENODATA);
		assert_non_null(strstr(err.text, how ? "was changed" : "became shorter"));
		assert_null(l);
		assert_int_equal(charged(&b), 0);
		gguf_close(g);
		box_close(&b);
	}
}

static void progress_ends_at_the_whole(void **state)
{
	struct gguf *g = must_open(model("p.gguf", 3 - 2));
	struct watcher w = { 0 };
	struct load_opts o = { .progress = watch, .ctx = &w, .block = 1 << 20 };
	struct load *l;
	struct box b;

	box_open(&b, POOL);
	l = must_load(&b, g, &o);
	assert_true(w.calls > 0);
	assert_int_equal(w.done, w.total);
	assert_true(w.total >= gguf_data_bytes(g) && w.total <= load_region_bytes(g));
	load_drop(l);
	gguf_close(g);
	box_close(&b);
}

static void cancel_keeps_nothing(void **state)
{
	struct gguf *g = must_open(model("c.gguf", 1));

	for (enum load_way way = LOAD_AUTO; way <= LOAD_BUFFERED; way++) {
		for (int early = 0; early < 2; early++) {
			struct watcher w = { .cancel_at = 1 };
			struct load_opts o = { .way = way,
					       .progress = watch,
					       .ctx = &w,
					       .cancel = &w.cancel,
					       .block = 1 << 20 };
			struct hearth_err err = { 0 };
			struct load *l = NULL;
			struct box b;
			int r;

			atomic_store(&w.cancel, early);
			box_open(&b, POOL);
			r = load_weights(g, b.t, b.pool, &o, &l, &err);
			if (r != -EOPNOTSUPP) {
				assert_int_equal(r, -ECANCELED);
				assert_null(l);
			}
			assert_int_equal(charged(&b), 0);
			box_close(&b);
		}
	}
	gguf_close(g);
}

/* The bound: page-cache growth from loading under 1 % of the model. */
static void loading_leaves_the_page_cache_alone(void **state)
{
	struct gguf *g = must_open(model("cache.gguf", 1));
	struct statfs fs;
	struct load *l;
	struct box b;
	size_t n, in = 0;
	uint8_t *vec;
	void *map;
	int fd;

	assert_int_equal(statfs(dir, &fs), 0);
	if (fs.f_type == 0x01021994 || fs.f_type == (long)0x858458f6) {
		gguf_close(g);
		SKIP("%s is in memory", dir);
	}
	gguf_close(g);
	fd = open(in_dir("cache.gguf"), O_RDONLY);
	fsync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	g = must_open(in_dir("cache.gguf"));
	box_open(&b, POOL);
	l = must_load(&b, g, NULL);
	n = (size_t)gguf_part_size(g, 0);
	map = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	vec = calloc(n / 4096 + 1, 1);
	assert_int_equal(mincore(map, n, vec), 0);
	for (size_t i = 0; i < (n + 4095) / 4096; i++)
		in += vec[i] & 1;
	if (in * 4096 * 100 >= n)
		fail_msg("%zu of %zu pages are in the page cache after loading %s", in, n / 4096,
			 load_how(l));
	munmap(map, n);
	free(vec);
	close(fd);
	load_drop(l);
	gguf_close(g);
	box_close(&b);
}

/* On a disk: /tmp is memory on many machines, where there is no O_DIRECT and no page cache to
 * spare. */
static bool make_dir(void)
{
	static const char *const where[] = { "/var/tmp", "/tmp", "" };

	for (size_t i = 0; i < sizeof(where) / sizeof(where[0]); i++) {
		snprintf(dir, sizeof(dir), "%s/hearth-load-XXXXXX", where[i]);
		if (mkdtemp(dir))
			return true;
	}
	return false;
}

static int drop(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	return remove(path);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_way_gives_the_files_bytes),
		cmocka_unit_test(a_second_load_reads_nothing),
		cmocka_unit_test(what_was_loaded_cannot_be_written),
		cmocka_unit_test(a_changed_file_is_read_anew),
		cmocka_unit_test(a_copy_of_the_file_shares_the_region),
		cmocka_unit_test(a_backend_may_reorder_before_the_seal),
		cmocka_unit_test(a_failed_load_leaves_nothing),
		cmocka_unit_test(a_vocabulary_alone_cannot_be_loaded),
		cmocka_unit_test(a_file_that_changes_while_it_is_read_is_refused),
		cmocka_unit_test(progress_ends_at_the_whole),
		cmocka_unit_test(cancel_keeps_nothing),
		cmocka_unit_test(loading_leaves_the_page_cache_alone),
	};

	int r;

	device = argc > 1 ? argv[1] : NULL;
	if (!make_dir()) {
		perror("no folder for files");
		return 1;
	}
	r = UNIT_RUN(tests);
	nftw(dir, drop, 8, FTW_DEPTH | FTW_PHYS);
	return r;
}
