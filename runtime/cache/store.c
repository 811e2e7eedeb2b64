// SPDX-License-Identifier: MIT
#include "cache/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gguf/digest.h"

#define MAGIC   "HEARTHKV"
#define VERSION 1u

/* Little-endian, as every machine that hearth runs on. */
struct head {
	char magic[8];
	uint32_t version, n;
	uint64_t page_bytes;
	uint32_t has_pages, entry_bytes;
	char id[STORE_ID_MAX];
	uint64_t index_sum;         /* of the entries */
	uint64_t head_sum;          /* of all before this field */
};

struct entry {
	struct prefix_page p;
	uint64_t sum;               /* of the page's bytes */
};

_Static_assert(sizeof(struct head) == 32 + STORE_ID_MAX + 16, "the head has no holes");

static int put_all(int fd, const void *p, size_t n)
{
	while (n) {
		ssize_t k = write(fd, p, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return k ? -errno : -EIO;
		p = (const char *)p + k;
		n -= (size_t)k;
	}
	return 0;
}

/* 1: all of it, 0: the file ends before, -errno. */
static int get_all(int fd, void *p, size_t n)
{
	while (n) {
		ssize_t k = read(fd, p, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return k ? -errno : 0;
		p = (char *)p + k;
		n -= (size_t)k;
	}
	return 1;
}

/* The rename is safe on disk once its folder is. */
static void sync_folder(const char *path)
{
	char *dir = strdup(path), *slash = dir ? strrchr(dir, '/') : NULL;
	int fd;

	if (slash)
		slash[slash == dir] = 0;
	fd = dir ? open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	free(dir);
}

/*
 * One page of the list: its bytes' sum, and they into the file where it has
 * pages. It is held while it is read, for what two hold is never written, and
 * no longer: all others can be had meanwhile. False: the cache gave it up since.
 */
static bool put_page(const struct store *s, const struct head *h, int fd, struct entry *e, int *ret_rc)
{
	const uint8_t *at = s->base + e->p.page * (size_t)h->page_bytes;
	bool there;

	s->lock(s->arg);
	there = prefix_holds(s->prefix, &e->p);
	if (there)
		kv_page_ref(s->kv, e->p.page);
	s->unlock(s->arg);
	if (there)
		e->sum = digest_u64(at, h->page_bytes);
	/* One that is gone keeps its place in the file; whatever is there is not believed. */
	if (h->has_pages && there)
		*ret_rc = put_all(fd, at, h->page_bytes);
	else if (h->has_pages && lseek(fd, (off_t)h->page_bytes, SEEK_CUR) < 0)
		*ret_rc = -errno;
	if (there) {
		s->lock(s->arg);
		kv_page_put(s->kv, e->p.page);
		s->unlock(s->arg);
	}
	return there;
}

/* The pages first, then what is said of them. *ret_n: how many there were still. */
static int fill(const struct store *s, struct head *h, struct entry *e, int fd, uint32_t *ret_n)
{
	const off_t pages = (off_t)(sizeof(*h) + h->n * sizeof(*e));
	uint32_t got = 0;
	int rc = 0;

	if (lseek(fd, pages, SEEK_SET) < 0)
		return -errno;
	for (uint32_t i = 0; !rc && i < h->n; i++) {
		if (put_page(s, h, fd, &e[i], &rc))
			got++;
		else
			memset(&e[i], 0, sizeof(e[i]));
	}
	if (!rc && ftruncate(fd, pages + (off_t)(h->has_pages ? h->n * h->page_bytes : 0)))
		rc = -errno;
	h->index_sum = digest_u64(e, h->n * sizeof(*e));
	h->head_sum = digest_u64(h, offsetof(struct head, head_sum));
	if (!rc && lseek(fd, 0, SEEK_SET) < 0)
		rc = -errno;
	if (!rc)
		rc = put_all(fd, h, sizeof(*h));
	if (!rc)
		rc = put_all(fd, e, h->n * sizeof(*e));
	*ret_n = got;
	return rc;
}

static int write_file(const struct store *s, const char *path, struct head *h, struct entry *e, uint32_t *ret_n, struct hearth_err *err)
{
	char *tmp = NULL;
	int fd, rc;

	if (asprintf(&tmp, "%s.new", path) < 0)
		return err_set(err, -ENOMEM, "no memory to write %s", path);
	/* What an earlier try left may belong to anybody; ours begins empty and private. */
	unlink(tmp);
	fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0) {
		rc = -errno;
		free(tmp);
		return err_set(err, rc, "%s: the prefix cache cannot be written: %s", path, strerror(-rc));
	}
	rc = fill(s, h, e, fd, ret_n);
	if (!rc && fsync(fd))
		rc = -errno;
	if (close(fd) && !rc)
		rc = -errno;
	if (!rc && rename(tmp, path))
		rc = -errno;
	if (rc)
		unlink(tmp);
	else
		sync_folder(path);
	free(tmp);
	return rc ? err_set(err, rc, "%s: the prefix cache cannot be written: %s", path, strerror(-rc)) : 0;
}

int store_save(const struct store *s, const char *path, uint64_t max_bytes, uint32_t *ret_pages, struct hearth_err *err)
{
	const size_t page = kv_page_bytes(kv_config(s->kv));
	const uint64_t each = sizeof(struct entry) + (s->in_place ? 0 : page);
	struct head h = { .version = VERSION, .page_bytes = page, .has_pages = !s->in_place, .entry_bytes = sizeof(struct entry) };
	struct prefix_page *list;
	struct entry *e = NULL;
	uint32_t n, i, got = 0;
	int rc = 0;

	list = calloc(kv_total(s->kv), sizeof(*list));
	if (!list)
		return err_set(err, -ENOMEM, "no memory to write %s", path);
	s->lock(s->arg);
	n = prefix_list(s->prefix, list, kv_total(s->kv));
	s->unlock(s->arg);
	if (max_bytes && n > (max_bytes - (max_bytes < sizeof(h) ? max_bytes : sizeof(h))) / each)
		n = (uint32_t)((max_bytes - (max_bytes < sizeof(h) ? max_bytes : sizeof(h))) / each);
	e = calloc(n + 1, sizeof(*e));
	if (e) {
		for (i = 0; i < n; i++)
			e[i].p = list[i];
		memcpy(h.magic, MAGIC, 8);
		snprintf(h.id, sizeof(h.id), "%s", s->id);
		h.n = n;
		rc = write_file(s, path, &h, e, &got, err);
	} else {
		rc = err_set(err, -ENOMEM, "no memory to write %s", path);
	}
	free(e);
	free(list);
	if (!rc)
		*ret_pages = got;
	return rc;
}

static int damaged(struct hearth_err *err, const char *path, const char *what)
{
	return err_set(err, -EILSEQ, "%s: %s; nothing of it is used", path, what);
}

static int read_head(const struct store *s, const char *path, int fd, struct head *h, struct hearth_err *err)
{
	int rc = get_all(fd, h, sizeof(*h));

	if (rc < 0)
		return err_set(err, rc, "%s: cannot be read: %s", path, strerror(-rc));
	if (!rc || memcmp(h->magic, MAGIC, 8))
		return damaged(err, path, "this is no file of a prefix cache");
	if (h->head_sum != digest_u64(h, offsetof(struct head, head_sum)))
		return damaged(err, path, "its head is damaged");
	if (h->version != VERSION)
		return err_set(err, -ESTALE, "%s: its format is %u, this is %u", path, h->version, VERSION);
	h->id[sizeof(h->id) - 1] = 0;
	if (strcmp(h->id, s->id))
		return err_set(err, -ESTALE, "%s: it was made by %s; this is %s", path, h->id, s->id);
	if (h->page_bytes != kv_page_bytes(kv_config(s->kv)) || h->entry_bytes != sizeof(struct entry))
		return err_set(err, -ESTALE, "%s: its pages have another size", path);
	return 0;
}

/* Where the page's bytes shall lie, and whether they are right; -EILSEQ, -ENOMEM, -errno of reading. */
static int take_page(const struct store *s, int fd, bool keep, const struct head *h, const struct entry *e, uint8_t *skip, uint32_t *ret)
{
	const size_t page = h->page_bytes;
	uint8_t *to = skip;
	uint32_t id = KV_NONE;
	int rc = 1;

	if (keep && !h->has_pages) {
		id = e->p.page;
		rc = kv_page_take(s->kv, id);
		if (rc)
			return rc;
		rc = 1;
	} else if (keep && kv_page_get(s->kv, &id)) {
		id = KV_NONE;
	}
	if (id != KV_NONE)
		to = s->base + id * page;
	/* Read past, if there is no use for it. */
	if (h->has_pages)
		rc = get_all(fd, to, page);
	if (rc == 1 && id != KV_NONE && digest_u64(to, page) == e->sum) {
		*ret = id;
		return 0;
	}
	if (id != KV_NONE)
		kv_page_put(s->kv, id);
	return rc < 0 ? rc : rc == 0 ? -ENODATA : id == KV_NONE ? -ENOMEM : -EILSEQ;
}

int store_load(const struct store *s, const char *path, uint32_t *ret_pages, uint32_t *ret_lost, struct hearth_err *err)
{
	struct entry *e = NULL;
	uint32_t i, page, taken = 0;
	uint8_t *skip = NULL;
	struct head h;
	struct stat st;
	int fd, rc;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_set(err, -errno, "%s: cannot be opened: %s", path, strerror(errno));
	rc = read_head(s, path, fd, &h, err);
	if (rc)
		goto out;
	if (fstat(fd, &st) || h.n > (uint64_t)st.st_size / sizeof(*e)) {
		rc = damaged(err, path, "it is shorter than it says");
		goto out;
	}
	e = calloc(h.n + 1, sizeof(*e));
	skip = malloc(h.page_bytes);
	if (!e || !skip) {
		rc = err_set(err, -ENOMEM, "no memory to read %s", path);
		goto out;
	}
	rc = get_all(fd, e, h.n * sizeof(*e));
	if (rc != 1 || digest_u64(e, h.n * sizeof(*e)) != h.index_sum) {
		rc = damaged(err, path, "its index is damaged");
		goto out;
	}
	rc = 0;
	s->lock(s->arg);
	for (i = 0; i < h.n; i++) {
		/* A page whose predecessor is missing could not be found; a known one is there already. */
		const bool keep = prefix_wants(s->prefix, &e[i].p) && (h.has_pages || s->in_place);
		int r = take_page(s, fd, keep, &h, &e[i], skip, &page);

		if (!r && prefix_put(s->prefix, &e[i].p, page))
			kv_page_put(s->kv, page);
		else if (!r)
			taken++;
		if (r == -ENODATA || (r < 0 && r != -EILSEQ && r != -ENOMEM && r != -EBUSY && r != -EINVAL))
			break;   /* the file ends early: what came is right */
	}
	s->unlock(s->arg);
	*ret_pages = taken;
	*ret_lost = h.n - taken;
out:
	free(e);
	free(skip);
	close(fd);
	return rc;
}
