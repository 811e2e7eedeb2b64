// SPDX-License-Identifier: MIT
/*
 * One position in a grammar.
 *
 * A configuration is a state of the network and a stack of return states; a
 * set of configurations, closed under empty steps, calls and returns, is one
 * state of a deterministic automaton that is made as it is met. Stacks and
 * sets are hash-consed, so that equal ones have equal numbers and a transition
 * or a mask is worked out once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/compile.h"
#include "grammar/vocab.h"

#define MAX_CONFIGS  1024                /* in one set: an ambiguous grammar ends here */
#define MAX_STACK    256                 /* nested calls: deeper text is not allowed */
#define MAX_SETS     16384               /* then everything made so far is dropped */
#define MAX_MASKS    (16u << 20)         /* bytes of cached masks, likewise */
#define MAX_FRAMES   (1u << 20)
/*
 * For one mask: sets that are made and configurations that are looked at. Of a
 * grammar whose every text leads elsewhere each token would make its own; a
 * client's pattern must not hold up the others for seconds.
 */
#define MASK_SETS    32768u
#define MASK_WORK    (1u << 19)

#define SET_UNKNOWN  UINT32_MAX
#define SET_DEAD     0u                  /* the empty set */

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

static uint32_t mix(uint32_t a, uint32_t b)
{
	uint64_t x = ((uint64_t)a << 32 | b) * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(x >> 32) ^ (uint32_t)x;
}

static void *grow(struct gmatch *m, void *p, uint32_t *cap, size_t size)
{
	uint32_t want = *cap ? *cap * 2 : 1024;
	void *q = realloc(p, want * size);

	if (!q)
		m->fail = -ENOMEM;
	else
		*cap = want;
	return q;
}

/* -- stacks ------------------------------------------------------------------- */

/* Bytes that a configuration is from the end of the text, at least. */
static uint32_t needs(const struct gmatch *m, uint32_t state, uint32_t stack)
{
	const uint32_t n = m->g->states[state].need + m->frames[stack].need;

	return n < NEED_NONE ? n : NEED_NONE;
}

static uint32_t frame_push(struct gmatch *m, uint32_t ret, uint32_t below)
{
	uint32_t h = mix(ret, below) & (m->frame_buckets - 1);

	for (uint32_t i = m->frame_hash[h]; i; i = m->frames[i].chain)
		if (m->frames[i].ret == ret && m->frames[i].below == below)
			return i;
	if (m->n_frames == m->cap_frames) {
		struct frame *p = grow(m, m->frames, &m->cap_frames, sizeof(*p));

		if (!p)
			return 0;
		m->frames = p;
	}
	m->frames[m->n_frames] = (struct frame){ ret, below, m->frames[below].depth + 1, m->frame_hash[h],
						 needs(m, ret, below) };
	m->frame_hash[h] = m->n_frames;
	return m->n_frames++;
}

/* -- closure ------------------------------------------------------------------ */

#define SEEN_SLOTS (MAX_CONFIGS * 4)

/* Adds a configuration to the closure under way, once. */
static void work_add(struct gmatch *m, uint32_t state, uint32_t stack)
{
	uint32_t h = mix(state, stack) & (SEEN_SLOTS - 1);

	while (m->seen[h]) {
		struct config *c = &m->work[m->seen[h] - 1];

		if (c->state == state && c->stack == stack)
			return;
		h = (h + 1) & (SEEN_SLOTS - 1);
	}
	if (m->n_work == MAX_CONFIGS * 2) {
		m->fail = -E2BIG;
		return;
	}
	m->work[m->n_work] = (struct config){ state, stack };
	m->slots[m->n_work++] = h;
	m->seen[h] = m->n_work;
}

/* Begins a closure with nothing in it. */
static void work_begin(struct gmatch *m)
{
	for (uint32_t i = 0; i < m->n_work; i++)
		m->seen[m->slots[i]] = 0;
	m->n_work = 0;
}

static int config_cmp(const void *a, const void *b)
{
	const struct config *x = a, *y = b;

	if (x->state != y->state)
		return x->state < y->state ? -1 : 1;
	return x->stack < y->stack ? -1 : x->stack > y->stack;
}

/* Closes work[] and returns the number of the set it makes. */
static uint32_t set_close(struct gmatch *m)
{
	const struct grammar *g = m->g;
	bool may_end = false;
	uint32_t kept = 0, h = 0, total, need = NEED_NONE;

	for (uint32_t i = 0; i < m->n_work && !m->fail; i++) {
		struct config c = m->work[i];

		if (g->states[c.state].is_end) {
			if (!c.stack)
				may_end = true;
			else
				work_add(m, m->frames[c.stack].ret, m->frames[c.stack].below);
		}
		for (uint32_t e = g->states[c.state].edges; e != GEDGE_NONE; e = g->edges[e].next) {
			const struct gedge *x = &g->edges[e];

			if (x->kind == GEDGE_EPS) {
				work_add(m, x->to, c.stack);
			} else if (x->kind == GEDGE_CALL) {
				uint32_t stack = c.stack;

				/* Deeper text than MAX_STACK calls is not allowed, so it is never begun. */
				if (!g->states[x->to].only_end) {
					if (m->frames[stack].depth >= MAX_STACK)
						continue;
					stack = frame_push(m, x->to, stack);
				}
				if (m->fail)
					break;
				work_add(m, g->rule_start[x->rule], stack);
			}
		}
	}
	if (m->fail)
		return SET_DEAD;
	total = m->n_work;
	m->spent += total;
	for (uint32_t i = 0; i < total; i++) {
		const uint32_t n = needs(m, m->work[i].state, m->work[i].stack);
		bool reads = false;

		/* From where no end can be reached nothing is begun. */
		if (n >= NEED_NONE)
			continue;
		for (uint32_t e = g->states[m->work[i].state].edges; e != GEDGE_NONE; e = g->edges[e].next)
			reads |= g->edges[e].kind == GEDGE_BYTES;
		if (!reads)
			continue;
		need = n < need ? n : need;
		m->work[kept++] = m->work[i];
	}
	if (may_end)
		need = 0;
	if (!kept && !may_end)
		return SET_DEAD;
	if (kept > MAX_CONFIGS) {
		m->fail = -E2BIG;
		return SET_DEAD;
	}
	qsort(m->work, kept, sizeof(*m->work), config_cmp);
	h = may_end;
	for (uint32_t i = 0; i < kept; i++)
		h = mix(h ^ m->work[i].state, m->work[i].stack);
	h &= m->set_buckets - 1;
	for (uint32_t s = m->set_hash[h]; s; s = m->sets[s].chain)
		if (m->sets[s].count == kept && m->sets[s].may_end == may_end &&
		    (!kept || !memcmp(&m->configs[m->sets[s].first], m->work, kept * sizeof(*m->work))))
			return s;
	while (m->n_configs + kept > m->cap_configs) {
		struct config *p = grow(m, m->configs, &m->cap_configs, sizeof(*p));

		if (!p)
			return SET_DEAD;
		m->configs = p;
	}
	if (m->n_sets == m->cap_sets) {
		struct set *p = grow(m, m->sets, &m->cap_sets, sizeof(*p));

		if (!p)
			return SET_DEAD;
		m->sets = p;
	}
	if (kept)
		memcpy(&m->configs[m->n_configs], m->work, kept * sizeof(*m->work));
	m->sets[m->n_sets] = (struct set){ .first = m->n_configs, .count = kept, .may_end = may_end,
					   .need = need, .chain = m->set_hash[h] };
	m->n_configs += kept;
	m->set_hash[h] = m->n_sets;
	return m->n_sets++;
}

static uint32_t set_step(struct gmatch *m, uint32_t s, uint8_t byte)
{
	const struct grammar *g = m->g;
	uint32_t to, lo = 0, hi = 255;

	if (s == SET_DEAD || m->fail)
		return SET_DEAD;
	if (!m->sets[s].next && m->sets[s].some) {
		if (byte >= m->sets[s].some_lo && byte <= m->sets[s].some_hi)
			return m->sets[s].some_to;
		m->sets[s].next = malloc(256 * sizeof(uint32_t));
		if (!m->sets[s].next) {
			m->fail = -ENOMEM;
			return SET_DEAD;
		}
		memset(m->sets[s].next, 0xff, 256 * sizeof(uint32_t));
		for (uint32_t b = m->sets[s].some_lo; b <= m->sets[s].some_hi; b++)
			m->sets[s].next[b] = m->sets[s].some_to;
		m->next_bytes += 256 * sizeof(uint32_t);
	}
	if (m->sets[s].next && m->sets[s].next[byte] != SET_UNKNOWN)
		return m->sets[s].next[byte];
	work_begin(m);
	for (uint32_t i = 0; i < m->sets[s].count; i++) {
		struct config c = m->configs[m->sets[s].first + i];

		for (uint32_t e = g->states[c.state].edges; e != GEDGE_NONE; e = g->edges[e].next) {
			const struct gedge *x = &g->edges[e];

			if (x->kind != GEDGE_BYTES)
				continue;
			/* lo..hi: the bytes around this one that go the same ways. */
			if (byte < x->lo) {
				hi = x->lo - 1u < hi ? x->lo - 1u : hi;
			} else if (byte > x->hi) {
				lo = x->hi + 1u > lo ? x->hi + 1u : lo;
			} else {
				lo = x->lo > lo ? x->lo : lo;
				hi = x->hi < hi ? x->hi : hi;
				work_add(m, x->to, c.stack);
			}
		}
	}
	to = m->n_work ? set_close(m) : SET_DEAD;
	if (m->fail)
		return SET_DEAD;
	if (!m->sets[s].next) {
		m->sets[s].some_to = to;
		m->sets[s].some_lo = (uint8_t)lo;
		m->sets[s].some_hi = (uint8_t)hi;
		m->sets[s].some = true;
		return to;
	}
	for (uint32_t b = lo; b <= hi; b++)
		m->sets[s].next[b] = to;
	return to;
}

/* Where all of the bytes @lo..@hi lead, SET_UNKNOWN when that is not one place. */
static uint32_t same_step(struct gmatch *m, uint32_t s, uint32_t lo, uint32_t hi)
{
	uint32_t to;

	if (s == SET_UNKNOWN)
		return SET_UNKNOWN;
	to = set_step(m, s, (uint8_t)lo);
	while (++lo <= hi)
		if (set_step(m, s, (uint8_t)lo) != to)
			return SET_UNKNOWN;
	return to;
}

/*
 * Where every plain character (vocab.h) leads from @s, SET_UNKNOWN when that is
 * not one place: each of UTF-8's forms is looked at, but not each character.
 */
static uint32_t plain_step(struct gmatch *m, uint32_t s)
{
	static const struct { uint8_t lo, hi, lo2, hi2, more; } forms[] = {
		{ 0xc2, 0xdf, 0x80, 0xbf, 0 }, { 0xe0, 0xe0, 0xa0, 0xbf, 1 }, { 0xe1, 0xec, 0x80, 0xbf, 1 }, { 0xed, 0xed, 0x80, 0x9f, 1 },
		{ 0xee, 0xef, 0x80, 0xbf, 1 }, { 0xf0, 0xf0, 0x90, 0xbf, 2 }, { 0xf1, 0xf3, 0x80, 0xbf, 2 }, { 0xf4, 0xf4, 0x80, 0x8f, 2 },
	};
	uint32_t to, at;

	if (s == SET_DEAD)
		return SET_DEAD;
	if (m->sets[s].plain_known)
		return m->sets[s].plain;
	to = same_step(m, s, ' ', '!');
	if (same_step(m, s, '#', '[') != to || same_step(m, s, ']', 0x7f) != to)
		to = SET_UNKNOWN;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]) && to != SET_UNKNOWN; i++) {
		at = same_step(m, same_step(m, s, forms[i].lo, forms[i].hi), forms[i].lo2, forms[i].hi2);
		for (uint32_t k = 0; k < forms[i].more; k++)
			at = same_step(m, at, 0x80, 0xbf);
		if (at != to)
			to = SET_UNKNOWN;
	}
	if (m->fail)
		return SET_UNKNOWN;
	m->sets[s].plain = to;
	m->sets[s].plain_known = true;
	return to;
}

/* -- life --------------------------------------------------------------------- */

static void forget(struct gmatch *m)
{
	for (uint32_t i = 0; i < m->n_sets; i++) {
		free(m->sets[i].next);
		free(m->sets[i].mask);
	}
	memset(m->frame_hash, 0, m->frame_buckets * sizeof(*m->frame_hash));
	memset(m->set_hash, 0, m->set_buckets * sizeof(*m->set_hash));
	m->frames[0] = (struct frame){ 0 };
	m->sets[0] = (struct set){ 0 };
	m->n_frames = 1;
	m->n_sets = 1;
	m->n_configs = 0;
	m->mask_bytes = m->next_bytes = 0;
}

void gmatch_free(struct gmatch *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < m->n_sets; i++) {
		free(m->sets[i].next);
		free(m->sets[i].mask);
	}
	grammar_unref(m->g);
	free(m->frames);
	free(m->frame_hash);
	free(m->configs);
	free(m->sets);
	free(m->set_hash);
	free(m->work);
	free(m->seen);
	free(m->slots);
	free(m->depth_sets);
	free(m->within);
	free(m);
}

void gmatch_restart(struct gmatch *m)
{
	m->fail = 0;
	m->last = 0;
	work_begin(m);
	work_add(m, m->g->root, 0);
	m->cur = set_close(m);
}

int gmatch_create(struct grammar *g, const struct gvocab *v, struct gmatch **ret)
{
	struct gmatch *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->g = grammar_ref(g);
	m->v = v;
	m->frame_buckets = 8192;
	m->set_buckets = 8192;
	m->frame_hash = calloc(m->frame_buckets, sizeof(*m->frame_hash));
	m->set_hash = calloc(m->set_buckets, sizeof(*m->set_hash));
	m->frames = grow(m, NULL, &m->cap_frames, sizeof(*m->frames));
	m->sets = grow(m, NULL, &m->cap_sets, sizeof(*m->sets));
	m->work = malloc(MAX_CONFIGS * 2 * sizeof(*m->work));
	m->seen = calloc(SEEN_SLOTS, sizeof(*m->seen));
	m->slots = malloc(MAX_CONFIGS * 2 * sizeof(*m->slots));
	m->depth_sets = malloc(4097 * sizeof(*m->depth_sets));
	if (!m->frame_hash || !m->set_hash || !m->frames || !m->sets || !m->work || !m->seen || !m->slots || !m->depth_sets) {
		gmatch_free(m);
		return -ENOMEM;
	}
	forget(m);
	gmatch_restart(m);
	if (m->fail) {
		int rc = m->fail;

		gmatch_free(m);
		return rc;
	}
	*ret = m;
	return 0;
}

/*
 * Between two tokens nothing but cur is in use, so this is where what was made
 * may be dropped: the current set is carried over by its configurations.
 */
static void trim(struct gmatch *m)
{
	struct set *s = &m->sets[m->cur];
	struct config *keep;
	uint32_t *rets, *lens, count = s->count, at = 0, total = 0;

	if (m->n_sets < MAX_SETS && m->n_frames < MAX_FRAMES)
		return;
	for (uint32_t i = 0; i < count; i++)
		total += m->frames[m->configs[s->first + i].stack].depth;
	keep = malloc((count ? count : 1) * sizeof(*keep));
	rets = malloc((total ? total : 1) * sizeof(*rets));
	lens = malloc((count ? count : 1) * sizeof(*lens));
	if (!keep || !rets || !lens) {
		m->fail = -ENOMEM;
		goto out;
	}
	for (uint32_t i = 0; i < count; i++) {
		keep[i] = m->configs[s->first + i];
		lens[i] = m->frames[keep[i].stack].depth;
		for (uint32_t f = keep[i].stack; f; f = m->frames[f].below)
			rets[at++] = m->frames[f].ret;
	}
	bool may_end = s->may_end;

	forget(m);
	work_begin(m);
	at = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t stack = 0;

		for (uint32_t k = lens[i]; k-- > 0;)
			stack = frame_push(m, rets[at + k], stack);
		at += lens[i];
		work_add(m, keep[i].state, stack);
	}
	m->cur = set_close(m);
	/* Kept configurations only read; that the text may end was known beside them. */
	if (may_end && m->cur == SET_DEAD) {
		m->sets[m->n_sets] = (struct set){ .may_end = true, .need = 0 };
		m->cur = m->n_sets++;
	} else if (may_end) {
		m->sets[m->cur].may_end = true;
		m->sets[m->cur].need = 0;
	}
out:
	free(keep);
	free(rets);
	free(lens);
}

/* -- the calls ---------------------------------------------------------------- */

int gmatch_status(const struct gmatch *m)
{
	return m->fail;
}

size_t gmatch_bytes(const struct gmatch *m)
{
	return sizeof(*m) + m->mask_bytes + m->next_bytes + m->cap_frames * sizeof(*m->frames) +
	       m->cap_configs * sizeof(*m->configs) + m->cap_sets * sizeof(*m->sets) +
	       (m->frame_buckets + m->set_buckets) * sizeof(uint32_t) +
	       MAX_CONFIGS * 2 * (sizeof(*m->work) + sizeof(*m->slots)) + SEEN_SLOTS * sizeof(*m->seen);
}

const uint32_t *gmatch_mask(struct gmatch *m)
{
	const struct gvocab *v = m->v;
	const struct gvocab_node *nodes = v->nodes;
	uint32_t i = 0, n_nodes = v->n_nodes, chars, at, to, before, worst = 0;
	uint32_t *mask;

	if (m->fail)
		return NULL;
	if (m->sets[m->cur].mask)
		return m->sets[m->cur].mask;
	trim(m);
	if (m->mask_bytes >= MAX_MASKS) {
		for (uint32_t s = 0; s < m->n_sets; s++) {
			free(m->sets[s].mask);
			m->sets[s].mask = NULL;
		}
		m->mask_bytes = 0;
	}
	mask = calloc(v->words ? v->words : 1, sizeof(*mask));
	if (!mask) {
		m->fail = -ENOMEM;
		return NULL;
	}
	before = m->n_sets;
	m->spent = 0;
	/* Inside a string most tokens are told by their length. */
	for (chars = 0, at = m->cur; chars < GVOCAB_PLAIN; chars++) {
		to = plain_step(m, at);
		if (to == SET_UNKNOWN || to == SET_DEAD)
			break;
		worst = m->sets[to].need > worst ? m->sets[to].need : worst;
		at = to;
	}
	if (chars == GVOCAB_PLAIN || to == SET_DEAD) {
		memcpy(mask, v->plain + chars * (size_t)v->words, v->words * sizeof(*mask));
		nodes = v->rest;
		n_nodes = v->n_rest;
	}
	m->depth_sets[0] = m->cur;
	while (i < n_nodes) {
		const struct gvocab_node *n = &nodes[i];
		uint32_t from = m->depth_sets[n->depth];
		uint32_t *next = m->sets[from].next;

		to = next ? next[n->byte] : SET_UNKNOWN;
		if (to == SET_UNKNOWN) {
			to = set_step(m, from, n->byte);
			if (m->n_sets - before > MASK_SETS || m->spent > MASK_WORK)
				m->fail = -E2BIG;
			if (m->fail)
				break;
		}
		if (to == SET_DEAD) {
			i = n->skip;
			continue;
		}
		if (n->count && m->sets[to].need > worst)
			worst = m->sets[to].need;
		for (uint32_t k = n->first; k < n->first + n->count; k++)
			mask[v->ids[k] >> 5] |= 1u << (v->ids[k] & 31);
		m->depth_sets[n->depth + 1] = to;
		i++;
	}
	if (m->fail) {
		free(mask);
		return NULL;
	}
	if (m->sets[m->cur].may_end)
		for (size_t k = 0; k < v->n_eog; k++)
			mask[v->eog[k] >> 5] |= 1u << (v->eog[k] & 31);
	m->sets[m->cur].worst_need = worst;
	m->sets[m->cur].mask = mask;
	m->mask_bytes += v->words * sizeof(*mask);
	return mask;
}

/* The longest token that text[0..n) begins with, in bytes; 0: none. */
static size_t longest(const struct gvocab *v, const uint8_t *text, size_t n)
{
	uint32_t i = 0, end = v->n_nodes;
	size_t at = 0, found = 0;

	while (i < end && at < n) {
		const struct gvocab_node *x = &v->nodes[i];

		if (x->byte != text[at]) {
			i = x->skip;
			continue;
		}
		at++;
		if (x->count)
			found = at;
		end = x->skip;
		i++;
	}
	return found;
}

#define PROBE_BYTES 2048u           /* without a choice that are looked at for the next one */
#define WAY_MAX 65536u               /* bytes of a way to the end that is looked at */

/* The shortest text from @at to the end, its length in *ret_n; NULL where there is none to be found. */
static uint8_t *shortest(struct gmatch *m, uint32_t at, size_t *ret_n)
{
	const struct grammar *g = m->g;
	const struct set *s = &m->sets[at];
	uint32_t state = 0, stack = 0, fuel = 4 * WAY_MAX, n = 0;
	uint8_t *text;

	if (s->need > WAY_MAX)
		return NULL;
	text = malloc(s->need + 1);
	if (!text)
		return NULL;
	for (uint32_t i = 0; i < s->count; i++) {
		const struct config *c = &m->configs[s->first + i];

		if (needs(m, c->state, c->stack) == s->need) {
			state = c->state;
			stack = c->stack;
			break;
		}
	}
	while (--fuel && n <= s->need) {
		const struct gedge *x;

		if (g->states[state].best == GEDGE_NONE) {
			if (!stack)
				break;
			state = m->frames[stack].ret;
			stack = m->frames[stack].below;
			continue;
		}
		x = &g->edges[g->states[state].best];
		state = x->to;
		if (x->kind == GEDGE_BYTES) {
			if (n < s->need)
				text[n] = x->lo;
			n++;
		} else if (x->kind == GEDGE_CALL) {
			stack = frame_push(m, x->to, stack);
			state = g->rule_start[x->rule];
			if (m->fail)
				break;
		}
	}
	*ret_n = n;
	if (fuel && n == m->sets[at].need && !m->fail)
		return text;
	free(text);
	return NULL;
}

/*
 * Tokens that lead from @at to the end for certain: those that its shortest way
 * is cut into, longest first. NEED_NONE where there is none to be found.
 */
static uint32_t way(struct gmatch *m, uint32_t at)
{
	uint32_t tokens = 0;
	uint8_t *text;
	size_t from, k, n;

	if (m->sets[at].may_end)
		return 0;
	text = shortest(m, at, &n);
	if (!text)
		return NEED_NONE;
	for (from = 0; tokens != NEED_NONE && from < n; from += k) {
		k = longest(m->v, text + from, n - from);
		tokens = k ? tokens + 1 : NEED_NONE;
	}
	free(text);
	return tokens;
}

/* Tokens from set @at to the end, for certain. Never more than it has to be, in bytes. */
static uint32_t tokens_to_end(struct gmatch *m, uint32_t at)
{
	if (m->sets[at].may_end)
		return 0;
	if (!m->sets[at].tokens)
		m->sets[at].tokens = way(m, at);
	return m->sets[at].tokens;
}

bool gmatch_mask_known(const struct gmatch *m)
{
	return m->fail || m->sets[m->cur].mask;
}

bool gmatch_allows(struct gmatch *m, uint32_t token, uint32_t left)
{
	const struct gvocab *v = m->v;
	uint32_t at = m->cur;

	if (m->fail || token >= v->n_tokens)
		return false;
	for (size_t i = 0; i < v->n_eog; i++)
		if (v->eog[i] == token)
			return m->sets[m->cur].may_end;
	if (v->tok_start[token] == v->tok_start[token + 1])
		return false;
	for (uint32_t i = v->tok_start[token]; i < v->tok_start[token + 1] && at != SET_DEAD; i++)
		at = set_step(m, at, (uint8_t)v->tok_bytes[i]);
	if (at == SET_DEAD || m->fail)
		return false;
	/* Bytes first: they are known, and tokens are never more. */
	return m->sets[at].need + 2 <= left || tokens_to_end(m, at) + 2 <= left;
}

uint32_t gmatch_tokens_to_end(struct gmatch *m)
{
	const uint32_t n = m->fail ? NEED_NONE : tokens_to_end(m, m->cur);

	return n < NEED_NONE ? n : UINT32_MAX;
}

const uint32_t *gmatch_mask_within(struct gmatch *m, uint32_t left)
{
	const struct gvocab *v = m->v;
	const uint32_t *all = gmatch_mask(m);
	uint32_t worst = 0, i = 0, kept = 0;

	/* Every token is at most as far from the end as .worst says, in tokens, or in bytes, which are never fewer: nothing to do. */
	if (!all || (v->n_bytes == 256 && (uint64_t)m->sets[m->cur].worst_need + 2 <= left) || (m->sets[m->cur].worst && m->sets[m->cur].worst + 2 <= left) || tokens_to_end(m, m->cur) + 1 > left)
		return all;
	if (!m->within) {
		m->within = malloc((v->words ? v->words : 1) * sizeof(*m->within));
		if (!m->within) {
			m->fail = -ENOMEM;
			return NULL;
		}
	}
	memset(m->within, 0, v->words * sizeof(*m->within));
	m->depth_sets[0] = m->cur;
	while (i < v->n_nodes) {
		const struct gvocab_node *n = &v->nodes[i];
		const uint32_t *next = m->sets[m->depth_sets[n->depth]].next;
		uint32_t to = next ? next[n->byte] : SET_UNKNOWN, need;

		/* Where tokens were told by their length nobody went yet. */
		if (to == SET_UNKNOWN)
			to = set_step(m, m->depth_sets[n->depth], n->byte);
		if (to == SET_DEAD) {
			i = n->skip;
			continue;
		}
		if (n->count) {
			need = tokens_to_end(m, to);
			worst = need > worst ? need : worst;
			/* This one, those, and one that ends the generation. */
			for (uint32_t k = n->first; need + 2 <= left && k < n->first + n->count; k++) {
				m->within[v->ids[k] >> 5] |= 1u << (v->ids[k] & 31);
				kept++;
			}
		}
		m->depth_sets[n->depth + 1] = to;
		i++;
	}
	if (m->fail)
		return NULL;
	m->sets[m->cur].worst = worst ? worst : 1;
	if (m->sets[m->cur].may_end)
		for (size_t k = 0; k < v->n_eog; k++, kept++)
			m->within[v->eog[k] >> 5] |= 1u << (v->eog[k] & 31);
	return kept ? m->within : all;
}

int gmatch_accept_bytes(struct gmatch *m, const char *s, size_t len)
{
	uint32_t at = m->cur;

	if (m->fail)
		return m->fail;
	for (size_t i = 0; i < len; i++) {
		at = set_step(m, at, (uint8_t)s[i]);
		if (at == SET_DEAD)
			return m->fail ? m->fail : -EINVAL;
	}
	m->cur = at;
	if (len)
		m->last = (uint8_t)s[len - 1];
	return 0;
}

int gmatch_accept(struct gmatch *m, uint32_t token)
{
	const struct gvocab *v = m->v;

	if (token >= v->n_tokens)
		return -EINVAL;
	for (size_t i = 0; i < v->n_eog; i++)
		if (v->eog[i] == token)
			return m->sets[m->cur].may_end ? 0 : -EINVAL;
	if (v->tok_start[token] == v->tok_start[token + 1])
		return -EINVAL;
	return gmatch_accept_bytes(m, v->tok_bytes + v->tok_start[token],
				   v->tok_start[token + 1] - v->tok_start[token]);
}

bool gmatch_may_end(struct gmatch *m)
{
	return !m->fail && m->sets[m->cur].may_end;
}

bool gmatch_must_end(struct gmatch *m)
{
	return gmatch_may_end(m) && m->sets[m->cur].count == 0;
}

/* The one byte that can follow, or -1; *ret_space: a space is among several. */
static int only_byte(const struct gmatch *m, uint32_t at, bool *ret_space)
{
	const struct grammar *g = m->g;
	const struct set *s = &m->sets[at];
	bool one = true;
	int byte = -1;

	*ret_space = false;
	for (uint32_t i = 0; i < s->count; i++) {
		uint32_t e = g->states[m->configs[s->first + i].state].edges;

		for (; e != GEDGE_NONE; e = g->edges[e].next) {
			const struct gedge *x = &g->edges[e];

			if (x->kind != GEDGE_BYTES)
				continue;
			if (x->lo != x->hi || (byte >= 0 && byte != x->lo))
				one = false;
			byte = x->lo;
			*ret_space |= x->lo <= ' ' && x->hi >= ' ';
		}
	}
	return one ? byte : -1;
}

static size_t follow(struct gmatch *m, bool guess, char *out, size_t cap)
{
	uint8_t last = m->last;
	uint32_t at = m->cur;
	bool space;
	size_t n;
	int byte;

	for (n = 0; n < cap && !m->fail && !m->sets[at].may_end; n++) {
		byte = only_byte(m, at, &space);
		if (byte < 0 && guess && space && (last == ':' || last == ','))
			byte = ' ';
		if (byte < 0)
			break;
		at = set_step(m, at, (uint8_t)byte);
		if (at == SET_DEAD)
			break;
		out[n] = (char)(last = (uint8_t)byte);
	}
	return n;
}

size_t gmatch_forced(struct gmatch *m, char *out, size_t cap)
{
	return follow(m, false, out, cap);
}

size_t gmatch_likely(struct gmatch *m, char *out, size_t cap)
{
	return follow(m, true, out, cap);
}

int gmatch_probe(struct gmatch *m, uint32_t choices)
{
	size_t n, k, left = PROBE_BYTES;
	char forced[256];
	uint8_t *text;

	gmatch_restart(m);
	for (; choices && left; choices--) {
		/* Where there is no choice there is nothing to find out. */
		while (left && (n = gmatch_likely(m, forced, left < sizeof(forced) ? left : sizeof(forced)))) {
			gmatch_accept_bytes(m, forced, n);
			left -= n;
		}
		if (!left || !gmatch_mask(m) || m->sets[m->cur].may_end)
			break;
		text = shortest(m, m->cur, &n);
		k = text ? longest(m->v, text, n) : 0;
		if (k && gmatch_accept_bytes(m, (char *)text, k))
			k = 0;
		free(text);
		if (!k)
			break;
	}
	if (m->fail)
		return m->fail;
	gmatch_restart(m);
	return 0;
}
