/* SPDX-License-Identifier: MIT */
/* Inside of a match: what match.c keeps, and what match_*.c work out on it. */
#ifndef HEARTH_GRAMMAR_MATCH_PRIV_H
#define HEARTH_GRAMMAR_MATCH_PRIV_H

#include "grammar/compile.h"
#include "grammar/vocab.h"

#define MAX_CONFIGS  1024                /* in one set: an ambiguous grammar ends here */

#define SET_UNKNOWN  UINT32_MAX
#define SET_DEAD     0u                  /* the empty set */

#define SEEN_SLOTS (MAX_CONFIGS * 4)

struct config {
	uint32_t state, stack;
};

struct frame {                           /* one stack: top return state, and the rest */
	uint32_t ret, below, depth, chain;
	uint32_t need;                       /* bytes from here to the end of the text */
};

struct set {
	uint32_t first, count;               /* in configs[] */
	uint32_t chain;
	bool may_end;
	uint32_t need;                       /* bytes to the end of the text, at least */
	uint32_t tokens;                     /* tokens that do it for certain; 0: not worked out yet */
	uint32_t worst;                      /* most .tokens behind any token of the mask; 0: not yet */
	uint32_t worst_need;                 /* most .need behind any, or more; of .mask */
	uint32_t plain;                      /* where every plain character leads (plain_step()) */
	bool plain_known;
	uint32_t *next;                      /* [256], or NULL: then at most .some are known */
	/* The first bytes that were asked about. Inside a character that is all there is to know. */
	uint32_t some_to;
	uint8_t some_lo, some_hi;
	bool some;
	uint32_t *mask;                      /* [words], or NULL */
};

struct gmatch {
	struct grammar *g;
	const struct gvocab *v;
	uint32_t cur;
	uint8_t last;                        /* byte that led here */
	int fail;

	struct frame *frames;                /* frame 0 is the empty stack */
	uint32_t n_frames, cap_frames;
	uint32_t *frame_hash, frame_buckets;

	struct config *configs;
	uint32_t n_configs, cap_configs;
	struct set *sets;
	uint32_t n_sets, cap_sets;
	uint32_t *set_hash, set_buckets;
	size_t mask_bytes, next_bytes;       /* of all masks and tables of next */

	struct config *work;                 /* closure under way */
	uint32_t n_work;
	uint64_t spent;                      /* of MASK_WORK, since it was reset */
	uint32_t *seen;                      /* open-addressed over work, by index + 1 */
	uint32_t *slots;                     /* slots of seen[] in use, one per work entry */
	uint32_t *depth_sets;                /* walk of the trie */
	uint32_t *within;                    /* [words] mask of gmatch_mask_within(), or NULL */
};

/* Bytes that a configuration is from the end of the text, at least. */
static inline uint32_t gmatch_needs(const struct gmatch *m, uint32_t state, uint32_t stack)
{
	const uint32_t n = m->g->states[state].need + m->frames[stack].need;

	return n < NEED_NONE ? n : NEED_NONE;
}

/* match_set.c; where one fails it says so in .fail and returns SET_DEAD or stack 0. */

void *gmatch_grow(struct gmatch *m, void *p, uint32_t *cap, size_t size);
/* The stack with @ret on top of @below. */
uint32_t gframe_push(struct gmatch *m, uint32_t ret, uint32_t below);
/* A set is made of what is added between gset_begin() and gset_close(). */
void gset_begin(struct gmatch *m);
void gset_add(struct gmatch *m, uint32_t state, uint32_t stack);
uint32_t gset_close(struct gmatch *m);
/* Where @byte leads from set @s. */
uint32_t gset_step(struct gmatch *m, uint32_t s, uint8_t byte);
/* Where every plain character (vocab.h) leads, SET_UNKNOWN when that is not one place. */
uint32_t gset_plain(struct gmatch *m, uint32_t s);

/* match.c: between two tokens, drops what was made when it has become too much. */
void gmatch_trim(struct gmatch *m);

/* match_way.c */

size_t gway_longest(const struct gvocab *v, const uint8_t *text, size_t n);
uint8_t *gway_shortest(struct gmatch *m, uint32_t at, size_t *ret_n);
uint32_t gway_tokens(struct gmatch *m, uint32_t at);

#endif
