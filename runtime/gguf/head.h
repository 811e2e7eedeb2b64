/* SPDX-License-Identifier: MIT */
/*
 * Inside of gguf/: the header of one file, as parsed. A model of several files
 * has several heads; gguf.c joins them.
 */
#ifndef HEARTH_GGUF_HEAD_H
#define HEARTH_GGUF_HEAD_H

#include <sys/stat.h>

#include "gguf/gguf.h"

/*
 * The first bytes of a file, at an address that does not move while more of
 * them are read. [0, have) may be looked at; window_need() brings more.
 */
struct window {
	const uint8_t *base;
	uint64_t have;
	uint64_t file_size;
	/* of an opened file only */
	int fd;                  /* -1 when in memory */
	bool direct;             /* fd was opened with O_DIRECT */
	struct stat st;          /* as it was when opened */
	uint8_t *map;            /* reservation */
	uint64_t map_bytes;
};

int window_open(struct window *w, const char *path, struct hearth_err *err);
void window_memory(struct window *w, const void *head, uint64_t n, uint64_t file_size);
/* Makes [0, end) readable; -EIO or -ENODATA. @end <= file_size. */
int window_need(struct window *w, uint64_t end, struct hearth_err *err);
void window_close(struct window *w);

struct head_kv {
	struct gguf_str key;
	uint32_t type;           /* enum gguf_value_type */
	uint32_t el_type;        /* of an array */
	uint64_t n;              /* elements of an array, bytes of a string */
	const uint8_t *val;      /* scalar, string bytes or array elements */
	struct gguf_str *str;    /* index of a string array, owned */
	uint64_t at;             /* offset of the value in the file */
};

struct head {
	uint32_t version;
	uint64_t alignment;
	uint64_t bytes;          /* of the header itself */
	uint64_t data;           /* offset of the first tensor byte */
	uint64_t data_end;       /* end of the last tensor, or data */
	uint64_t file_size;
	struct head_kv *kv;
	uint64_t n_kv;
	struct gguf_tensor *tensor; /* names point into the window or into names */
	uint32_t n_tensors;
	char *names;             /* NUL-terminated copies, owned */
};

/* Reads and checks the whole header out of @w. On failure *ret is empty. */
int head_parse(struct window *w, struct head *ret, struct hearth_err *err);
void head_free(struct head *h);

const struct head_kv *head_find(const struct head *h, const char *key);
/* A value as an unsigned number: -EINVAL not an integer, -ERANGE negative. */
int head_uint(const struct head_kv *kv, uint64_t *ret);

/* place.c: turns offsets into places in the file and checks them; ends after the last byte. */
int head_place(struct head *h, struct hearth_err *err);
/* general.alignment, or its default. */
int head_alignment(const struct head *h, uint64_t *ret, struct hearth_err *err);

/* The header that speaks for all parts. */
const struct head *gguf_head(const struct gguf *g);

/* The opened file of a part, and how many bytes its header has. */
const struct window *gguf_window(const struct gguf *g, uint32_t part);
uint64_t gguf_head_bytes(const struct gguf *g, uint32_t part);

/* Text from a file made fit for a sentence: printable, at most 64 bytes and "...". */
struct quoted {
	char s[76];
};
struct quoted quote(const char *s, size_t n);

#endif
