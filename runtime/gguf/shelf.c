// SPDX-License-Identifier: MIT
#include "gguf/shelf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/head.h"
#include "gguf/load.h"

struct file_id {
	uint64_t dev, ino, size, mtime, mtime_ns, ctime, ctime_ns;
	struct digest head;
};

static struct file_id id_of(const struct stat *st, const struct digest *head)
{
	return (struct file_id){
		.dev = st->st_dev, .ino = st->st_ino, .size = (uint64_t)st->st_size,
		.mtime = (uint64_t)st->st_mtim.tv_sec, .mtime_ns = (uint64_t)st->st_mtim.tv_nsec,
		.ctime = (uint64_t)st->st_ctim.tv_sec, .ctime_ns = (uint64_t)st->st_ctim.tv_nsec,
		.head = *head,
	};
}

static int check_one(const struct gguf *g, uint32_t part, const struct digest *head,
		     struct file_id *ret, struct hearth_err *err)
{
	const struct window *w = gguf_window(g, part);
	struct file_id was;
	struct stat st;

	if (w->fd < 0 || fstat(w->fd, &st) < 0)
		return err_set(err, -EBADF, "part %" PRIu32 " of the model is not an open file",
			       part + 1);
	was = id_of(&w->st, head);
	*ret = id_of(&st, head);
	/* No padding: the fields are all of 8 bytes and 16. */
	if (memcmp(&was, ret, sizeof(was)))
		return err_set(err, -ESTALE, "%s was changed since it was opened",
			       gguf_part_path(g, part));
	return 0;
}

int shelf_files_id(const struct gguf *g, const struct digest *heads, uint64_t *ret,
		   struct hearth_err *err)
{
	uint32_t n = gguf_n_parts(g);
	struct file_id *id = calloc(n, sizeof(*id));
	int r = 0;

	if (!id)
		return err_set(err, -ENOMEM, "no memory to load a model");
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = check_one(g, i, &heads[i], &id[i], err);
	if (r == 0)
		*ret = digest_u64(id, n * sizeof(*id));
	free(id);
	return r;
}

void shelf_name(char *buf, const char *hex, const char *layout)
{
	snprintf(buf, HEARTH_REGION_NAME_LEN, SHELF_PREFIX "%s%s%s", hex, *layout ? "." : "",
		 layout);
}

/* The layout at the end of a region's name, or NULL when it is not a name of ours. */
static const char *name_layout(const char *name)
{
	size_t n = sizeof(SHELF_PREFIX) - 1 + 2 * DIGEST_BYTES;

	if (strncmp(name, SHELF_PREFIX, sizeof(SHELF_PREFIX) - 1) || strlen(name) < n)
		return NULL;
	return name[n] == 0 ? name + n : name[n] == '.' ? name + n + 1 : NULL;
}

static bool row_is(const struct hearth_region_row *row, const char *pool, const struct wanted *want,
		   struct label *ret)
{
	const char *layout = name_layout(row->name);
	struct label label;

	memcpy(&label, row->digest, sizeof(label));
	if (!row->sealed || row->size != want->bytes || strcmp(row->pool, pool) || !layout ||
	    strcmp(layout, want->layout) || (want->file && label.file != *want->file) ||
	    (want->content && memcmp(&label.content, want->content, sizeof(label.content))))
		return false;
	*ret = label;
	return true;
}

int shelf_find(struct hearth_tenant *t, struct hearth_pool *pool, const struct wanted *want,
	       struct hearth_region **ret, struct label *ret_label, struct hearth_err *err)
{
	struct hearth_region_row *row = NULL;
	struct hearth_pool_info info;
	struct label label;
	size_t n = 0;
	int r;

	r = hearth_pool_info(pool, &info);
	if (r == 0)
		r = hearth_regions(hearth_tenant_connection(t), &row, &n);
	if (r < 0)
		return err_set(err, r, "the regions of the pool cannot be listed: %s",
			       strerror(-r));
	r = 0;
	for (size_t i = 0; i < n && r == 0; i++) {
		if (!row_is(&row[i], info.name, want, &label))
			continue;
		r = hearth_region_find(t, pool, row[i].name, row[i].digest, ret, err);
		if (r == 0) {
			*ret_label = label;
			r = 1;
		} else if (r == -ENOENT) {
			r = 0; /* dropped meanwhile */
		}
	}
	free(row);
	return r;
}

/* The window holds the header: it was parsed from it. */
struct digest *shelf_heads(const struct gguf *g)
{
	struct digest *heads = calloc(gguf_n_parts(g), sizeof(*heads));

	for (uint32_t i = 0; heads && i < gguf_n_parts(g); i++)
		heads[i] = digest_of(gguf_window(g, i)->base, (size_t)gguf_head_bytes(g, i));
	return heads;
}

bool load_there(const struct gguf *g, struct hearth_tenant *tenant, struct hearth_pool *pool,
		const char *layout)
{
	struct wanted want = { .layout = layout ? layout : "", .bytes = load_region_bytes(g) };
	struct digest *heads = shelf_heads(g);
	struct hearth_region_row *row = NULL;
	struct hearth_pool_info info;
	struct label label;
	bool there = false;
	uint64_t file;
	size_t n = 0;

	want.file = &file;
	if (heads && shelf_files_id(g, heads, &file, NULL) == 0 &&
	    hearth_pool_info(pool, &info) == 0 &&
	    hearth_regions(hearth_tenant_connection(tenant), &row, &n) == 0)
		for (size_t i = 0; i < n && !there; i++)
			there = row_is(&row[i], info.name, &want, &label) &&
				strcmp(row[i].tenant, hearth_tenant_name(tenant)) == 0;
	free(row);
	free(heads);
	return there;
}
