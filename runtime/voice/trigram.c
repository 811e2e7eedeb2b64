// SPDX-License-Identifier: MIT
/*
 * The text is kept as one array of word numbers, 0 being the border between
 * sentences. Each n-gram of it becomes one 64-bit key (20 bits a word), the
 * keys are sorted, and equal neighbours are a count: no hash table of n-grams,
 * and the contexts come out grouped.
 *
 * With c the count of a context, T the number of different words seen after
 * it, and n the count of the n-gram:
 *
 *     p(w | context) = (n + T * p(w | shorter context)) / (c + T)
 *
 * what a context gives to words not seen after it is T / (c + T), which is the
 * back-off weight of the ARPA format, so the model sums to one exactly.
 */
#include "voice/trigram.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define WORD_BITS 20
#define MAX_WORDS ((1u << WORD_BITS) - 1)
#define WORD_MASK ((uint64_t)MAX_WORDS)
#define BORDER    0u /* <s> as a context, </s> as a word */

struct trigram {
	char **words;      /* 1.. ; words[0] unused */
	size_t n_words, words_room;
	uint32_t *buckets; /* open addressing by hash; 0: free */
	size_t n_buckets;
	uint32_t *text;
	size_t n_text, text_room;
};

/* An n-gram and its count; a sorted array of them is a level of the model. */
struct gram {
	uint64_t key;
	uint32_t count;
};

struct level {
	struct gram *g;
	size_t n;
};

int trigram_new(struct trigram **ret)
{
	struct trigram *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->n_buckets = 4096;
	t->buckets = calloc(t->n_buckets, sizeof(*t->buckets));
	t->words_room = 1024;
	t->words = calloc(t->words_room, sizeof(*t->words));
	if (!t->buckets || !t->words) {
		trigram_free(t);
		return -ENOMEM;
	}
	t->n_words = 1;
	*ret = t;
	return 0;
}

void trigram_free(struct trigram *t)
{
	if (!t)
		return;
	if (t->words)
		for (size_t i = 1; i < t->n_words; i++)
			free(t->words[i]);
	free(t->words);
	free(t->buckets);
	free(t->text);
	free(t);
}

static uint64_t hash(const char *s, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
	return h;
}

static void place(struct trigram *t, uint32_t id)
{
	size_t b = hash(t->words[id], strlen(t->words[id])) & (t->n_buckets - 1);

	while (t->buckets[b])
		b = (b + 1) & (t->n_buckets - 1);
	t->buckets[b] = id;
}

static int grow(struct trigram *t)
{
	if (t->n_words == t->words_room) {
		char **w = realloc(t->words, t->words_room * 2 * sizeof(*w));

		if (!w)
			return -ENOMEM;
		t->words = w;
		t->words_room *= 2;
	}
	if (t->n_words * 2 > t->n_buckets) {
		uint32_t *b = calloc(t->n_buckets * 2, sizeof(*b));

		if (!b)
			return -ENOMEM;
		free(t->buckets);
		t->buckets = b;
		t->n_buckets *= 2;
		for (uint32_t i = 1; i < t->n_words; i++)
			place(t, i);
	}
	return 0;
}

static int intern(struct trigram *t, const char *s, size_t n, uint32_t *ret_id)
{
	size_t b = hash(s, n) & (t->n_buckets - 1);
	int rc;

	for (; t->buckets[b]; b = (b + 1) & (t->n_buckets - 1)) {
		const char *w = t->words[t->buckets[b]];

		if (!strncmp(w, s, n) && !w[n]) {
			*ret_id = t->buckets[b];
			return 0;
		}
	}
	if (t->n_words > MAX_WORDS)
		return -E2BIG;
	rc = grow(t);
	if (rc)
		return rc;
	t->words[t->n_words] = strndup(s, n);
	if (!t->words[t->n_words])
		return -ENOMEM;
	*ret_id = (uint32_t)t->n_words++;
	place(t, *ret_id);
	return 0;
}

static int append(struct trigram *t, uint32_t id)
{
	if (t->n_text == t->text_room) {
		size_t room = t->text_room ? t->text_room * 2 : 65536;
		uint32_t *text = realloc(t->text, room * sizeof(*text));

		if (!text)
			return -ENOMEM;
		t->text = text;
		t->text_room = room;
	}
	t->text[t->n_text++] = id;
	return 0;
}

int trigram_add(struct trigram *t, const char *sentence)
{
	const char *s = sentence;
	size_t before = t->n_text;
	int rc;

	if (t->n_text == 0) {
		rc = append(t, BORDER);
		if (rc)
			return rc;
	}
	for (;;) {
		size_t n;
		uint32_t id;

		s += strspn(s, " ");
		n = strcspn(s, " ");
		if (n == 0)
			break;
		rc = intern(t, s, n, &id);
		if (!rc)
			rc = append(t, id);
		if (rc) {
			t->n_text = before;
			return rc;
		}
		s += n;
	}
	if (t->text[t->n_text - 1] == BORDER)
		return 0;
	return append(t, BORDER);
}

size_t trigram_n_words(const struct trigram *t)
{
	return t->n_words - 1;
}

const char *trigram_word(const struct trigram *t, size_t i)
{
	return t->words[i + 1];
}

static int by_key(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* All n-grams of order @n. None spans a border except at its ends. */
static int count(const struct trigram *t, int n, struct level *ret)
{
	uint64_t *keys = malloc(t->n_text * sizeof(*keys));
	struct gram *g = malloc(t->n_text * sizeof(*g));
	size_t n_keys = 0, n_g = 0;

	if (!keys || !g) {
		free(keys);
		free(g);
		return -ENOMEM;
	}
	for (size_t i = (size_t)n - 1; i < t->n_text; i++) {
		uint64_t key = t->text[i];

		if (n == 3 && t->text[i - 1] == BORDER)
			continue;
		for (int k = 1; k < n; k++)
			key |= (uint64_t)t->text[i - (size_t)k] << (WORD_BITS * k);
		keys[n_keys++] = key;
	}
	qsort(keys, n_keys, sizeof(*keys), by_key);
	for (size_t i = 0; i < n_keys; i++) {
		if (n_g > 0 && g[n_g - 1].key == keys[i])
			g[n_g - 1].count++;
		else
			g[n_g++] = (struct gram){ keys[i], 1 };
	}
	free(keys);
	*ret = (struct level){ g, n_g };
	return 0;
}

struct context {
	uint64_t count, types;
};

/* What follows the context @ctx in @l, whose keys begin with it. */
static struct context context_of(const struct level *l, uint64_t ctx)
{
	struct context c = { 0 };
	size_t lo = 0, hi = l->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (l->g[mid].key >> WORD_BITS < ctx)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < l->n && l->g[lo].key >> WORD_BITS == ctx; lo++) {
		c.count += l->g[lo].count;
		c.types++;
	}
	return c;
}

static double backoff(struct context c)
{
	return c.count ? (double)c.types / (double)(c.count + c.types) : 1.0;
}

static double mix(uint64_t n, struct context c, double shorter)
{
	return ((double)n + (double)c.types * shorter) / (double)(c.count + c.types);
}

static const char *name(const struct trigram *t, uint64_t id, bool context)
{
	return id == BORDER ? context ? "<s>" : "</s>" : t->words[id];
}

static double find(const struct level *l, const double *p, uint64_t key)
{
	const struct gram *g = bsearch(&key, l->g, l->n, sizeof(*g), by_key);

	return g ? p[g - l->g] : 0;
}

static void write_unigrams(struct trigram *t, FILE *f, const struct level *uni,
			   const struct level *bi, const double *p1)
{
	fprintf(f, "\n\\1-grams:\n");
	fprintf(f, "-99\t<s>\t%.5f\n", log10(backoff(context_of(bi, BORDER))));
	for (size_t i = 0; i < uni->n; i++) {
		fprintf(f, "%.5f\t%s", log10(p1[i]), name(t, uni->g[i].key, false));
		if (uni->g[i].key != BORDER)
			fprintf(f, "\t%.5f", log10(backoff(context_of(bi, uni->g[i].key))));
		fputc('\n', f);
	}
}

int trigram_write(struct trigram *t, FILE *f)
{
	struct level uni = { 0 }, bi = { 0 }, tri = { 0 };
	double *p1 = NULL, *p2 = NULL;
	uint64_t total = 0;
	int rc;

	if (t->n_text < 2)
		return -EINVAL;
	rc = count(t, 1, &uni);
	if (!rc)
		rc = count(t, 2, &bi);
	if (!rc)
		rc = count(t, 3, &tri);
	if (rc)
		goto out;
	/* The border that opens the text is no </s>. */
	uni.g[0].count--;
	p1 = malloc(uni.n * sizeof(*p1));
	p2 = malloc(bi.n * sizeof(*p2));
	if (!p1 || !p2) {
		rc = -ENOMEM;
		goto out;
	}
	for (size_t i = 0; i < uni.n; i++)
		total += uni.g[i].count;
	for (size_t i = 0; i < uni.n; i++)
		p1[i] = mix(uni.g[i].count, (struct context){ total, uni.n }, 1.0 / (double)uni.n);

	fprintf(f, "\\data\\\nngram 1=%zu\nngram 2=%zu\nngram 3=%zu\n", uni.n + 1, bi.n, tri.n);
	write_unigrams(t, f, &uni, &bi, p1);
	fprintf(f, "\n\\2-grams:\n");
	for (size_t i = 0; i < bi.n; i++) {
		uint64_t v = bi.g[i].key >> WORD_BITS, w = bi.g[i].key & WORD_MASK;

		p2[i] = mix(bi.g[i].count, context_of(&bi, v), find(&uni, p1, w));
		fprintf(f, "%.5f\t%s %s", log10(p2[i]), name(t, v, true), name(t, w, false));
		if (w != BORDER)
			fprintf(f, "\t%.5f", log10(backoff(context_of(&tri, bi.g[i].key))));
		fputc('\n', f);
	}
	fprintf(f, "\n\\3-grams:\n");
	for (size_t i = 0; i < tri.n; i++) {
		uint64_t u = tri.g[i].key >> (2 * WORD_BITS);
		uint64_t v = tri.g[i].key >> WORD_BITS & WORD_MASK, w = tri.g[i].key & WORD_MASK;

		fprintf(f, "%.5f\t%s %s %s\n",
			log10(mix(tri.g[i].count, context_of(&tri, u << WORD_BITS | v),
				  find(&bi, p2, v << WORD_BITS | w))),
			name(t, u, true), name(t, v, true), name(t, w, false));
	}
	fprintf(f, "\n\\end\\\n");
	rc = ferror(f) ? -EIO : 0;
out:
	free(p1);
	free(p2);
	free(uni.g);
	free(bi.g);
	free(tri.g);
	return rc;
}
