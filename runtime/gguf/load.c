// SPDX-License-Identifier: MIT
#include "gguf/load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mono.h"
#include "dev/hearth.h"
#include "gguf/head.h"
#include "gguf/pack.h"
#include "gguf/pull.h"
#include "gguf/shelf.h"
#include "gguf/touch.h"

#define BLOCK_DEFAULT (2 * DIGEST_LEAF)
#define BLOCK_MAX     (64u << 20)
#define DEPTH_DEFAULT 8
#define DEPTH_MAX     256

/*
 * A part's bytes from the page that its first tensor begins in to the end of
 * its last one, as they stand in the file, so that O_DIRECT can put them there.
 */
struct share {
	uint64_t from, to;       /* in the file */
	uint64_t at;             /* in the region */
};

struct load {
	struct gguf *g;
	struct hearth_region *region;
	struct share *share;     /* [parts] */
	uint64_t bytes;
	enum load_way way;
	char how[160];
	struct digest digest;    /* of the model: headers and data, as in the files */
	char hex[2 * DIGEST_BYTES + 1];
};

static uint64_t page(uint64_t n)
{
	uint64_t size = (uint64_t)sysconf(_SC_PAGESIZE);

	return (n + size - 1) / size * size;
}

static uint64_t plan_shares(const struct gguf *g, struct share *share)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < gguf_n_parts(g); i++) {
		struct share s = {
			.from = gguf_part_data(g, i) & ~(PULL_ALIGN - 1),
			.to = gguf_part_data_end(g, i),
			.at = at,
		};

		if (s.to < gguf_part_data(g, i))
			s.to = s.from; /* a part without tensors */
		if (share)
			share[i] = s;
		at += page(s.to - s.from);
	}
	return at;
}

uint64_t load_region_bytes(const struct gguf *g)
{
	return plan_shares(g, NULL);
}

/* -- reading ---------------------------------------------------------------- */

struct reading {
	const struct load_opts *o;
	struct piece *piece;
	size_t n_pieces;
	struct digest *leaf;     /* [leaves of all parts]; piece.tag is its first one */
	size_t n_leaves;
	uint64_t done, total;    /* bytes */
	uint64_t last_said_ns;
	struct toucher toucher;
	struct pack_run *pack;
	bool *there;             /* [n_pieces] */
	size_t upto;             /* pieces that are there without a gap */
};

static void say_progress(struct reading *rd, bool end)
{
	uint64_t now;

	if (!rd->o->progress)
		return;
	now = (uint64_t)mono_ns();
	if (!end && now - rd->last_said_ns < 20000000)
		return;
	rd->last_said_ns = now;
	rd->o->progress(rd->o->ctx, rd->done, rd->total);
}

static void hash_span(const uint8_t *p, uint64_t n, struct digest *leaf)
{
	for (uint64_t at = 0; at < n; at += DIGEST_LEAF)
		*leaf++ = digest_of(p + at, n - at < DIGEST_LEAF ? n - at : DIGEST_LEAF);
}

static void arrived(void *ctx, size_t i)
{
	struct reading *rd = ctx;
	const struct piece *q = &rd->piece[i];

	hash_span(q->dst, q->need, rd->leaf + q->tag);
	rd->done += q->need;
	rd->there[i] = true;
	while (rd->upto < rd->n_pieces && rd->there[rd->upto])
		rd->upto++;
	q = &rd->piece[rd->upto ? rd->upto - 1 : 0];
	if (rd->upto)
		pack_arrived(rd->pack, (uint64_t)(q->dst - rd->toucher.base) + q->need);
	say_progress(rd, false);
}

static bool may_ask(void *ctx, size_t i, bool wait)
{
	struct reading *rd = ctx;

	return touched(&rd->toucher, rd->piece[i].dst + rd->piece[i].need, wait);
}

/* Cuts the shares into reads; a read is a multiple of a leaf, so leaves are never cut. */
static int plan_reads(struct reading *rd, const struct load *l, struct hearth_err *err)
{
	uint32_t block = rd->o->block ? rd->o->block : BLOCK_DEFAULT;
	uint32_t parts = gguf_n_parts(l->g);
	uint8_t *base = hearth_region_ptr(l->region);
	size_t n = 0;

	for (uint32_t p = 0; p < parts; p++) {
		uint64_t bytes = l->share[p].to - l->share[p].from;

		n += (size_t)((bytes + block - 1) / block);
		rd->n_leaves += digest_leaves(bytes);
		rd->total += bytes;
	}
	rd->piece = calloc(n ? n : 1, sizeof(*rd->piece));
	rd->leaf = calloc(rd->n_leaves ? rd->n_leaves : 1, sizeof(*rd->leaf));
	rd->there = calloc(n ? n : 1, sizeof(*rd->there));
	if (!rd->piece || !rd->leaf || !rd->there)
		return err_set(err, -ENOMEM, "no memory to plan %zu reads", n);
	for (uint32_t p = 0, leaf = 0; p < parts; p++) {
		const struct share *s = &l->share[p];
		uint64_t bytes = s->to - s->from;

		for (uint64_t at = 0; at < bytes; at += block) {
			uint32_t need = bytes - at < block ? (uint32_t)(bytes - at) : block;

			rd->piece[rd->n_pieces++] = (struct piece){
				.fd = gguf_window(l->g, p)->fd,
				.off = s->from + at,
				.dst = base + s->at + at,
				.need = need,
				.ask = (uint32_t)((need + PULL_ALIGN - 1) & ~(PULL_ALIGN - 1)),
				.tag = leaf + (size_t)(at / DIGEST_LEAF),
			};
		}
		leaf += (uint32_t)digest_leaves(bytes);
	}
	return 0;
}

static int pull_by(struct reading *rd, enum load_way way, struct hearth_err *err)
{
	struct pull p = {
		.piece = rd->piece,
		.n = rd->n_pieces,
		.cancel = rd->o->cancel,
		.may_ask = may_ask,
		.arrived = arrived,
		.ctx = rd,
		.depth = rd->o->depth ? rd->o->depth : DEPTH_DEFAULT,
	};

	rd->done = 0;
	return pull_run(&p, way, err);
}

/* Best way first; each that does not work here leaves its reason in l->how. */
static int read_all(struct reading *rd, struct load *l, struct hearth_err *err)
{
	static const char *const name[] = {
		[LOAD_URING] = "O_DIRECT through io_uring", [LOAD_DIRECT] = "O_DIRECT",
		[LOAD_BUFFERED] = "through the page cache",
	};
	enum load_way first = rd->o->way == LOAD_AUTO ? LOAD_URING : rd->o->way;
	enum load_way last = rd->o->way == LOAD_AUTO ? LOAD_BUFFERED : rd->o->way;
	struct hearth_err why = { 0 };
	int r = -EOPNOTSUPP;

	for (enum load_way w = first; w <= last; w++) {
		r = pull_by(rd, w, w == last ? err : &why);
		if (r == -EOPNOTSUPP && w < last)
			continue;
		if (r == -ECANCELED)
			return err_set(err, r, "loading was cancelled");
		if (r < 0 && w < last && err)
			*err = why;
		if (r == 0) {
			l->way = w;
			snprintf(l->how, sizeof(l->how), "%s%s%.100s", name[w],
				 why.text[0] ? ": " : "", why.text);
		}
		break;
	}
	return r;
}

/* Headers first, so that equal weights under other metadata are another model. */
static int join_digest(const struct digest *heads, uint32_t parts, const struct digest *leaf,
		       size_t n, struct digest *ret, struct hearth_err *err)
{
	struct digest *all = calloc(parts + n, sizeof(*all));

	if (!all)
		return err_set(err, -ENOMEM, "no memory for a digest");
	memcpy(all, heads, parts * sizeof(*all));
	memcpy(all + parts, leaf, n * sizeof(*all));
	*ret = digest_of(all, (parts + n) * sizeof(*all));
	free(all);
	return 0;
}

static int read_and_hash(struct load *l, const struct load_opts *o, const struct digest *heads,
			 struct pack_run *pack, struct hearth_err *err)
{
	struct reading rd = { .o = o, .pack = pack };
	int r;

	r = plan_reads(&rd, l, err);
	if (r == 0) {
		touch_start(&rd.toucher, hearth_region_ptr(l->region),
			    hearth_region_size(l->region));
		r = read_all(&rd, l, err);
		touch_stop(&rd.toucher);
	}
	if (r == 0)
		r = join_digest(heads, gguf_n_parts(l->g), rd.leaf, rd.n_leaves, &l->digest, err);
	if (r == 0)
		say_progress(&rd, true);
	free(rd.piece);
	free(rd.leaf);
	free(rd.there);
	return r;
}

/* -- a found region, looked at again ---------------------------------------- */

static int verify(const struct load *l, const struct label *label, const struct digest *heads,
		  struct hearth_err *err)
{
	const uint8_t *base = hearth_region_ptr(l->region);
	uint32_t parts = gguf_n_parts(l->g);
	struct digest *leaf, is;
	size_t n = 0, k = 0;
	bool same;
	int r;

	if (label->packed) {
		uint64_t hash;

		r = pack_hash(l->g, &hash);
		if (r < 0)
			return err_set(err, r, "no memory for a digest");
		same = hash == label->packed;
	} else {
		for (uint32_t p = 0; p < parts; p++)
			n += digest_leaves(l->share[p].to - l->share[p].from);
		leaf = calloc(n ? n : 1, sizeof(*leaf));
		if (!leaf)
			return err_set(err, -ENOMEM, "no memory for a digest");
		for (uint32_t p = 0; p < parts; p++) {
			hash_span(base + l->share[p].at, l->share[p].to - l->share[p].from,
				  leaf + k);
			k += digest_leaves(l->share[p].to - l->share[p].from);
		}
		r = join_digest(heads, parts, leaf, n, &is, err);
		free(leaf);
		if (r < 0)
			return r;
		same = memcmp(&is, &label->content, sizeof(is)) == 0;
	}
	if (!same)
		return err_set(err, -EILSEQ,
			       "the weights found in memory are not what was loaded there (%s)",
			       l->hex);
	return 0;
}

/* -- loading ---------------------------------------------------------------- */

static void point_tensors(struct load *l)
{
	const uint8_t *base = l->region ? hearth_region_ptr(l->region) : NULL;

	for (uint32_t i = 0; i < gguf_n_tensors(l->g); i++) {
		struct gguf_tensor *t = gguf_tensor_at(l->g, i);
		const struct share *s = &l->share[t->part];

		t->data = base ? base + s->at + (t->offset - s->from) : NULL;
	}
}

static void use_found(struct load *l, struct hearth_region *region, const struct label *label,
		      const char *how)
{
	l->region = region;
	l->way = LOAD_FOUND;
	l->digest = label->content;
	digest_hex(&l->digest, l->hex);
	snprintf(l->how, sizeof(l->how), "%s", how);
}

/*
 * The same content may be there under other files' names (a copy of the file,
 * or another process that loaded at the same time): then that one is used and
 * ours goes. Returns 0 with l->region set either way.
 */
static int publish(struct load *l, struct hearth_tenant *t, struct hearth_pool *pool,
		   const struct load_opts *o, uint64_t file, uint64_t packed,
		   struct hearth_err *err)
{
	struct label label = { .content = l->digest, .file = file, .packed = packed };
	struct hearth_region *other = NULL;
	struct wanted want = { .layout = o->layout ? o->layout : "",
			       .bytes = hearth_region_size(l->region),
			       .content = &l->digest };
	char name[HEARTH_REGION_NAME_LEN];
	struct label found;
	int r;

	r = hearth_region_seal(l->region, err);
	if (r < 0)
		return r;
	shelf_name(name, l->hex, want.layout);
	r = hearth_region_name(l->region, name, (const uint8_t *)&label, err);
	if (r != -EEXIST || o->fresh)
		return r == -EEXIST ? 0 : r;
	r = shelf_find(t, pool, &want, &other, &found, err);
	if (r == 1) {
		hearth_region_free(l->region);
		use_found(l, other, &found, "found in memory under another file's name");
		return 0;
	}
	return r; /* 0: a region of that name, but not of ours: keep our own, nameless */
}

static int load_fresh(struct load *l, struct hearth_tenant *t, struct hearth_pool *pool,
		      const struct load_opts *o, const struct digest *heads, uint64_t file,
		      struct hearth_err *err)
{
	uint64_t after, packed = 0;
	struct pack_run pack;
	int r;

	r = hearth_region_alloc(t, pool, l->bytes, l->bytes >= 2u << 20 ? 2u << 20 : 0, 0, 0,
				&l->region, err);
	if (r < 0)
		return r;
	point_tensors(l);
	r = pack_start(&pack, l->g, hearth_region_ptr(l->region), o, err);
	if (r < 0)
		return r;
	r = read_and_hash(l, o, heads, &pack, err);
	if (r == 0)
		r = pack_end(&pack, true, &packed, err);
	else
		pack_end(&pack, false, NULL, NULL);
	/* -ESTALE when it was changed while it was read. */
	if (r == 0)
		r = shelf_files_id(l->g, heads, &after, err);
	if (r < 0)
		return r;
	digest_hex(&l->digest, l->hex);
	return publish(l, t, pool, o, file, packed, err);
}

static int load_any(struct load *l, struct hearth_tenant *t, struct hearth_pool *pool,
		    const struct load_opts *o, const struct digest *heads, struct hearth_err *err)
{
	struct wanted want = { .layout = o->layout ? o->layout : "", .bytes = l->bytes };
	struct hearth_region *region = NULL;
	struct label label;
	uint64_t file;
	int r;

	r = shelf_files_id(l->g, heads, &file, err);
	if (r < 0)
		return r;
	if (o->fresh)
		return load_fresh(l, t, pool, o, heads, file, err);
	want.file = &file;
	r = shelf_find(t, pool, &want, &region, &label, err);
	if (r < 0)
		return r;
	if (r == 0)
		return load_fresh(l, t, pool, o, heads, file, err);
	use_found(l, region, &label, "found in memory, nothing was read");
	point_tensors(l);
	return o->verify ? verify(l, &label, heads, err) : 0;
}

static int check_opts(const struct load_opts *o, struct hearth_err *err)
{
	if (o->block % DIGEST_LEAF || o->block > BLOCK_MAX || o->depth > DEPTH_MAX ||
	    o->way < LOAD_AUTO || o->way > LOAD_BUFFERED)
		return err_set(err, -EINVAL,
			       "reads of %" PRIu32 " bytes, %" PRIu32 " at a time, cannot be made",
			       o->block, o->depth);
	if (o->layout && strlen(o->layout) > SHELF_LAYOUT_MAX)
		return err_set(err, -EINVAL, "the layout's name \"%s\" is longer than %zu bytes",
			       o->layout, SHELF_LAYOUT_MAX);
	return 0;
}

int load_weights(struct gguf *g, struct hearth_tenant *tenant, struct hearth_pool *pool,
		 const struct load_opts *opts, struct load **ret, struct hearth_err *err)
{
	static const struct load_opts defaults;
	const struct load_opts *o = opts ? opts : &defaults;
	struct digest *heads;
	struct load *l;
	int r;

	r = check_opts(o, err);
	if (r < 0)
		return r;
	l = calloc(1, sizeof(*l));
	heads = shelf_heads(g);
	if (l)
		l->share = calloc(gguf_n_parts(g), sizeof(*l->share));
	if (!l || !heads || !l->share) {
		r = err_set(err, -ENOMEM, "no memory to load a model");
		goto fail;
	}
	l->g = g;
	l->bytes = plan_shares(g, l->share);
	if (l->bytes == 0) {
		r = err_set(err, -ENODATA, "the file holds no tensors (a vocabulary only)");
		goto fail;
	}
	r = load_any(l, tenant, pool, o, heads, err);
	if (r < 0)
		goto fail;
	point_tensors(l);
	free(heads);
	*ret = l;
	return 0;
fail:
	free(heads);
	if (l && l->region && l->way == LOAD_FOUND)
		load_free(l); /* a region of others' stays */
	else
		load_drop(l);
	return r;
}

static void done(struct load *l, void (*give_up)(struct hearth_region *))
{
	if (!l)
		return;
	if (l->region) {
		give_up(l->region);
		l->region = NULL;
		point_tensors(l);
	}
	free(l->share);
	free(l);
}

void load_free(struct load *l)
{
	done(l, hearth_region_close);
}

void load_drop(struct load *l)
{
	done(l, hearth_region_free);
}

enum load_way load_way(const struct load *l)
{
	return l->way;
}

const char *load_how(const struct load *l)
{
	return l->how;
}

const char *load_digest(const struct load *l)
{
	return l->hex;
}

const void *load_base(const struct load *l)
{
	return hearth_region_ptr(l->region);
}

uint64_t load_bytes(const struct load *l)
{
	return l->bytes;
}
