/* SPDX-License-Identifier: MIT */
/*
 * The prefix cache in a file, so that it outlives the process: an index of the
 * cached pages and, unless they stay in a region that outlives it too, the
 * pages with their scales, byte for byte.
 *
 * A file is written beside its place and renamed over it, so that there is a
 * whole one at any time. It carries what its pages depend on as a text: a file
 * of another model, template, backend or format is refused (-ESTALE) and says
 * whose it is. The index has a checksum, each page has one: a damaged page is
 * left out with all that follow it, and nothing else is believed. The file is
 * private to its owner (0600): it is what was said.
 */
#ifndef HEARTH_CACHE_STORE_H
#define HEARTH_CACHE_STORE_H

#include "cache/prefix.h"

#define STORE_ID_MAX 480u

struct store {
	struct kv *kv;
	struct prefix *prefix;
	uint8_t *base;              /* the kv region */
	const char *id;             /* what pages depend on, at most STORE_ID_MAX bytes */
	bool in_place;              /* pages stay where they are: index only */
	/* Guards kv and prefix; held for moments, never while the file is written. */
	void (*lock)(void *arg);
	void (*unlock)(void *arg);
	void *arg;
};

/*
 * Writes the most recently used pages, at most @max_bytes of file (0: all).
 * *ret_pages: how many. -errno of the file.
 */
int store_save(const struct store *s, const char *path, uint64_t max_bytes, uint32_t *ret_pages, struct hearth_err *err);

/*
 * Takes over what the file has, before anything runs. With .in_place, and a
 * file that has no pages, they are looked for where they were. -ENOENT: no
 * file; -ESTALE; -EILSEQ: it is damaged as a whole. *ret_pages: taken over;
 * *ret_lost: left out because damaged or because there was no room.
 */
int store_load(const struct store *s, const char *path, uint32_t *ret_pages, uint32_t *ret_lost, struct hearth_err *err);

#endif
