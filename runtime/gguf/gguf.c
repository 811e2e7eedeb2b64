// SPDX-License-Identifier: MIT
#include "gguf/gguf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/head.h"
#include "gguf/quant.h"

struct part {
	char *path;              /* NULL when parsed from memory */
	struct window w;
	struct head h;
};

struct gguf {
	struct part *part;
	uint32_t n_parts;
	struct gguf_tensor *tensor; /* of all parts, in order */
	uint32_t n_tensors;
	uint32_t *slot;          /* open hash: tensor index + 1, 0 = free */
	uint32_t slots;          /* power of two, > n_tensors */
	char arch[64];
};

/* -- opening ---------------------------------------------------------------- */

static void part_close(struct part *p)
{
	head_free(&p->h);
	window_close(&p->w);
	free(p->path);
	*p = (struct part){ .w.fd = -1 };
}

static int part_open(const char *path, struct part *ret, struct hearth_err *err)
{
	struct part p = { .w.fd = -1 };
	int r;

	p.path = strdup(path);
	if (!p.path)
		return err_set(err, -ENOMEM, "no memory for a path");
	r = window_open(&p.w, path, err);
	if (r == 0) {
		r = head_parse(&p.w, &p.h, err);
		if (r < 0)
			err_prefix(err, r, "%s", path);
	}
	if (r < 0) {
		part_close(&p);
		return r;
	}
	*ret = p;
	return 0;
}

struct split {
	uint64_t no, count, tensors; /* count 0: not a part of anything */
};

static int split_of(const struct part *p, struct split *ret, struct hearth_err *err)
{
	static const char *const key[3] = { "split.no", "split.count", "split.tensors.count" };
	struct split s = { 0 };
	uint64_t *val[3] = { &s.no, &s.count, &s.tensors };

	for (int i = 0; i < 3; i++) {
		const struct head_kv *kv = head_find(&p->h, key[i]);

		if (kv && head_uint(kv, val[i]) < 0)
			return err_set(err, -EINVAL,
				       "%s: key \"%s\" is not a count (offset %" PRIu64 ")",
				       p->path, key[i], kv->at);
		if (!kv && s.count > 1)
			return err_set(err, -EINVAL,
				       "%s: a part of a split model without the key \"%s\"",
				       p->path, key[i]);
	}
	if (s.count > GGUF_MAX_PARTS || (s.count > 1 && s.no >= s.count))
		return err_set(err, -EINVAL, "%s: says that it is part %" PRIu64 " of %" PRIu64,
			       p->path, s.no == UINT64_MAX ? s.no : s.no + 1, s.count);
	*ret = s;
	return 0;
}

/* "dir/name-00002-of-00005.gguf" with @no set to another part; -EINVAL when not of this form. */
static int sibling(const char *path, const struct split *s, uint64_t no, char **ret)
{
	char tail[64], *p;
	size_t n = strlen(path), t;

	t = (size_t)snprintf(tail, sizeof(tail), "-%05" PRIu64 "-of-%05" PRIu64 ".gguf", s->no + 1,
			     s->count);
	if (n <= t || strcmp(path + n - t, tail))
		return -EINVAL;
	p = strdup(path);
	if (!p)
		return -ENOMEM;
	snprintf(tail, sizeof(tail), "-%05" PRIu64 "-of-%05" PRIu64 ".gguf", no + 1, s->count);
	memcpy(p + n - t, tail, t);
	*ret = p;
	return 0;
}

static int open_sibling(struct gguf *g, const char *path, const struct split *s, uint64_t no,
			struct hearth_err *err)
{
	struct split o;
	char *sib;
	int r;

	r = sibling(path, s, no, &sib);
	if (r == -ENOMEM)
		return err_set(err, r, "no memory for a path");
	if (r < 0)
		return err_set(err, r,
			       "%s holds part %" PRIu64 " of %" PRIu64
			       ", but its name does not end in -%05" PRIu64 "-of-%05" PRIu64
			       ".gguf, so the others cannot be found",
			       path, s->no + 1, s->count, s->no + 1, s->count);
	r = part_open(sib, &g->part[no], err);
	if (r == -ENOENT)
		r = err_set(err, r,
			    "%s is missing: part %" PRIu64 " of a model in %" PRIu64 " files", sib,
			    no + 1, s->count);
	free(sib);
	if (r < 0)
		return r;
	r = split_of(&g->part[no], &o, err);
	if (r < 0)
		return r;
	if (o.no != no || o.count != s->count || o.tensors != s->tensors)
		return err_set(err, -EINVAL,
			       "%s says that it is part %" PRIu64 " of %" PRIu64 " with %" PRIu64
			       " tensors in all; by its name and the other parts it should be "
			       "%" PRIu64 " of %" PRIu64 " with %" PRIu64,
			       g->part[no].path, o.no + 1, o.count, o.tensors, no + 1, s->count,
			       s->tensors);
	return 0;
}

static int open_parts(struct gguf *g, const char *path, struct hearth_err *err)
{
	struct part first, *more;
	struct split s;
	int r;

	r = part_open(path, &first, err);
	if (r < 0)
		return r;
	g->part[0] = first;
	g->n_parts = 1;
	r = split_of(&first, &s, err);
	if (r < 0 || s.count < 2)
		return r;
	more = calloc(s.count, sizeof(*more));
	if (!more)
		return err_set(err, -ENOMEM, "no memory for %" PRIu64 " parts", s.count);
	for (uint64_t i = 0; i < s.count; i++)
		more[i].w.fd = -1;
	free(g->part);
	g->part = more;
	g->n_parts = (uint32_t)s.count;
	g->part[s.no] = first;
	for (uint64_t i = 0; i < s.count; i++) {
		if (i == s.no)
			continue;
		r = open_sibling(g, path, &s, i, err);
		if (r < 0)
			return r;
	}
	for (uint64_t i = 0, n = 0; i < s.count; i++) {
		n += g->part[i].h.n_tensors;
		if (i + 1 == s.count && n != s.tensors)
			return err_set(err, -EINVAL,
				       "%s: its %" PRIu64 " parts hold %" PRIu64
				       " tensors, but the model has %" PRIu64,
				       path, s.count, n, s.tensors);
	}
	return 0;
}

/* -- joining ---------------------------------------------------------------- */

static uint32_t hash(const char *s)
{
	uint32_t h = 2166136261u;

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 16777619u;
	return h ^ h >> 15;
}

static uint32_t find_slot(const struct gguf *g, const char *name)
{
	uint32_t i = hash(name) & (g->slots - 1);

	/* There is always a free slot: slots > n_tensors. */
	while (g->slot[i] && strcmp(g->tensor[g->slot[i] - 1].name, name))
		i = (i + 1) & (g->slots - 1);
	return i;
}

static int join(struct gguf *g, struct hearth_err *err)
{
	uint64_t total = 0;
	uint32_t n = 0;

	for (uint32_t p = 0; p < g->n_parts; p++)
		total += g->part[p].h.n_tensors;
	if (total > 1u << 22)
		return err_set(err, -EINVAL, "%" PRIu64 " tensors, more than any model has", total);
	for (g->slots = 16; g->slots < 2 * total + 1; g->slots *= 2)
		;
	g->tensor = calloc(total ? total : 1, sizeof(*g->tensor));
	g->slot = calloc(g->slots, sizeof(*g->slot));
	if (!g->tensor || !g->slot)
		return err_set(err, -ENOMEM, "no memory for the tensor directory");
	for (uint32_t p = 0; p < g->n_parts; p++) {
		struct head *h = &g->part[p].h;

		for (uint32_t i = 0; i < h->n_tensors; i++, n++) {
			uint32_t s = find_slot(g, h->tensor[i].name);

			if (g->slot[s])
				return err_set(
					err, -EINVAL,
					"tensor \"%s\" is in part %" PRIu32
					" and again in part %" PRIu32,
					quote(h->tensor[i].name, strlen(h->tensor[i].name)).s,
					g->tensor[g->slot[s] - 1].part + 1, p + 1);
			g->tensor[n] = h->tensor[i];
			g->tensor[n].part = p;
			g->slot[s] = n + 1;
		}
		/* The joined copy is the one that callers see. */
		free(h->tensor);
		h->tensor = NULL;
	}
	g->n_tensors = n;
	return 0;
}

static int take_arch(struct gguf *g, struct hearth_err *err)
{
	struct gguf_str s = { 0 };
	int r = gguf_str(g, "general.architecture", &s, err);

	if (r == -ENOENT)
		return 0; /* an imatrix or adapter file; nobody will know "" */
	if (r < 0)
		return r;
	if (memchr(s.s, 0, s.n))
		return err_set(err, -EINVAL, "general.architecture \"%s\" has a NUL byte in it", quote(s.s, s.n).s);
	if (s.n == 0 || s.n >= sizeof(g->arch))
		return err_set(err, -EINVAL,
			       "general.architecture \"%s\" has %zu bytes (1 to %zu are allowed)",
			       quote(s.s, s.n).s, s.n, sizeof(g->arch) - 1);
	memcpy(g->arch, s.s, s.n);
	return 0;
}

static struct gguf *new_gguf(void)
{
	struct gguf *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->part = calloc(1, sizeof(*g->part));
	if (!g->part) {
		free(g);
		return NULL;
	}
	g->part[0].w.fd = -1;
	g->n_parts = 1;
	return g;
}

int gguf_open(const char *path, struct gguf **ret, struct hearth_err *err)
{
	struct gguf *g = new_gguf();
	int r;

	if (!g)
		return err_set(err, -ENOMEM, "no memory to open %s", path);
	r = open_parts(g, path, err);
	if (r == 0) {
		r = join(g, err);
		if (r == 0)
			r = take_arch(g, err);
		if (r < 0)
			err_prefix(err, r, "%s", path);
	}
	if (r < 0) {
		gguf_close(g);
		return r;
	}
	*ret = g;
	return 0;
}

int gguf_parse(const void *head, size_t n, uint64_t file_size, struct gguf **ret,
	       struct hearth_err *err)
{
	struct gguf *g;
	int r;

	if (n > file_size)
		return err_set(err, -EINVAL, "%zu bytes of a file that has %" PRIu64, n, file_size);
	g = new_gguf();
	if (!g)
		return err_set(err, -ENOMEM, "no memory for a header");
	window_memory(&g->part[0].w, head, n, file_size);
	r = head_parse(&g->part[0].w, &g->part[0].h, err);
	if (r == 0)
		r = join(g, err);
	if (r == 0)
		r = take_arch(g, err);
	if (r < 0) {
		gguf_close(g);
		return r;
	}
	*ret = g;
	return 0;
}

void gguf_close(struct gguf *g)
{
	if (!g)
		return;
	for (uint32_t i = 0; i < g->n_parts; i++)
		part_close(&g->part[i]);
	free(g->part);
	free(g->tensor);
	free(g->slot);
	free(g);
}

/* -- the file and its tensors ----------------------------------------------- */

uint32_t gguf_version(const struct gguf *g)
{
	return g->part[0].h.version;
}

uint32_t gguf_n_parts(const struct gguf *g)
{
	return g->n_parts;
}

const char *gguf_part_path(const struct gguf *g, uint32_t part)
{
	return part < g->n_parts ? g->part[part].path : NULL;
}

uint64_t gguf_part_size(const struct gguf *g, uint32_t part)
{
	return part < g->n_parts ? g->part[part].h.file_size : 0;
}

uint64_t gguf_part_data(const struct gguf *g, uint32_t part)
{
	return part < g->n_parts ? g->part[part].h.data : 0;
}

uint64_t gguf_part_data_end(const struct gguf *g, uint32_t part)
{
	return part < g->n_parts ? g->part[part].h.data_end : 0;
}

const struct head *gguf_head(const struct gguf *g)
{
	return &g->part[0].h;
}

const struct window *gguf_window(const struct gguf *g, uint32_t part)
{
	return &g->part[part].w;
}

uint64_t gguf_head_bytes(const struct gguf *g, uint32_t part)
{
	return g->part[part].h.bytes;
}

uint64_t gguf_data_bytes(const struct gguf *g)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < g->n_tensors; i++)
		n += g->tensor[i].nbytes;
	return n;
}

uint64_t gguf_host_bytes(const struct gguf *g)
{
	uint64_t n = sizeof(*g) + (uint64_t)g->n_tensors * (sizeof(*g->tensor) + GGUF_MAX_NAME) +
		     (uint64_t)g->slots * sizeof(*g->slot);

	for (uint32_t i = 0; i < g->n_parts; i++) {
		const struct part *p = &g->part[i];

		n += sizeof(*p) + (p->w.fd >= 0 ? p->w.have : 0);
		for (uint64_t k = 0; k < p->h.n_kv; k++)
			n += sizeof(p->h.kv[k]) +
			     (p->h.kv[k].str ? p->h.kv[k].n * sizeof(struct gguf_str) : 0);
	}
	return n;
}

const char *gguf_arch(const struct gguf *g)
{
	return g->arch;
}

uint32_t gguf_n_tensors(const struct gguf *g)
{
	return g->n_tensors;
}

struct gguf_tensor *gguf_tensor_at(const struct gguf *g, uint32_t i)
{
	return i < g->n_tensors ? &g->tensor[i] : NULL;
}

struct gguf_tensor *gguf_tensor(const struct gguf *g, const char *name)
{
	uint32_t s = g->slot[find_slot(g, name)];

	return s ? &g->tensor[s - 1] : NULL;
}

static void say_shape(char *buf, size_t size, uint32_t n_dims, const uint64_t *ne)
{
	size_t o = 0;

	buf[0] = 0;
	for (uint32_t d = 0; d < n_dims && o < size; d++)
		o += (size_t)snprintf(buf + o, size - o, "%s%" PRIu64, d ? " x " : "", ne[d]);
}

int gguf_need(const struct gguf *g, const char *name, uint32_t n_dims, const uint64_t *ne,
	      struct gguf_tensor **ret, struct hearth_err *err)
{
	struct gguf_tensor *t = gguf_tensor(g, name);
	char is[100], should[100];
	bool same;

	say_shape(should, sizeof(should), n_dims, ne);
	if (!t)
		return err_set(err, -ENOENT, "tensor \"%s\" [%s] is missing", name, should);
	same = t->n_dims == n_dims;
	for (uint32_t d = 0; same && d < n_dims; d++)
		same = t->ne[d] == ne[d];
	if (!same) {
		say_shape(is, sizeof(is), t->n_dims, t->ne);
		return err_set(err, -EINVAL,
			       "tensor \"%s\" (offset %" PRIu64
			       ") is [%s]; the model's metadata asks for [%s]",
			       name, t->offset, is, should);
	}
	*ret = t;
	return 0;
}
