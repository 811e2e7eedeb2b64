// SPDX-License-Identifier: MIT
#include "voice/lexicon.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <flite/flite.h>

#define MAX_VARIANTS 8
#define MAX_PHONES   256 /* characters of one pronunciation */

cst_lexicon *cmu_lex_init(void);

struct entry {
	const char *word;
	size_t order;                /* as given */
	char *phones[MAX_VARIANTS];
	size_t n;
};

static int by_word(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return strcmp(x->word, y->word);
}

static int by_order(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->order < y->order ? -1 : x->order > y->order;
}

/* One line of the dictionary: "word PH PH" or "word(2) PH PH". */
static int take_line(struct entry *e, size_t n, char *line)
{
	size_t len = strcspn(line, " \t");
	struct entry key = { .word = line }, *hit;
	char *phones = line + len, *paren;

	if (!*phones)
		return 0;
	*phones++ = '\0';
	phones += strspn(phones, " \t");
	phones[strcspn(phones, "\r\n")] = '\0';
	paren = len > 3 && line[len - 1] == ')' ? strrchr(line, '(') : NULL;
	if (paren)
		*paren = '\0';
	hit = bsearch(&key, e, n, sizeof(*e), by_word);
	if (!hit || hit->n == MAX_VARIANTS || !*phones)
		return 0;
	hit->phones[hit->n] = strdup(phones);
	return hit->phones[hit->n++] ? 0 : -ENOMEM;
}

static int look_up(const char *cmudict, struct entry *e, size_t n, struct hearth_err *err)
{
	FILE *f = fopen(cmudict, "re");
	char *line = NULL;
	size_t room = 0;
	int rc = 0;

	if (!f)
		return err_set(err, -errno, "%s: %s (package pocketsphinx-en-us)", cmudict, strerror(errno));
	while (!rc && getline(&line, &room, f) >= 0)
		rc = take_line(e, n, line);
	if (!rc && ferror(f))
		rc = -EIO;
	free(line);
	fclose(f);
	return rc ? err_set(err, rc, "%s: %s", cmudict, strerror(-rc)) : 0;
}

/* flite's phones are the recogniser's, but for case, stress and the schwa. */
static bool to_arpabet(const cst_val *phones, char *out, size_t room)
{
	size_t at = 0;

	for (; phones; phones = val_cdr(phones)) {
		const char *p = val_string(val_car(phones));
		char q[8];
		size_t n = 0;

		if (!strcmp(p, "pau") || !strcmp(p, "-"))
			continue;
		for (; p[n] && isalpha((unsigned char)p[n]) && n < sizeof(q) - 1; n++)
			q[n] = (char)toupper((unsigned char)p[n]);
		q[n] = '\0';
		if (!strcmp(q, "AX"))
			strcpy(q, "AH");
		else if (!strcmp(q, "AXR"))
			strcpy(q, "ER");
		if (n == 0 || at + n + 2 > room)
			return false;
		if (at > 0)
			out[at++] = ' ';
		memcpy(out + at, q, n + 1);
		at += n;
	}
	return at > 0;
}

static int guess(struct entry *e)
{
	char phones[MAX_PHONES];
	cst_lexicon *lex = cmu_lex_init();
	cst_val *v = lex ? lex_lookup(lex, e->word, NULL, NULL) : NULL;

	if (v && to_arpabet(v, phones, sizeof(phones))) {
		e->phones[0] = strdup(phones);
		if (!e->phones[0]) {
			delete_val(v);
			return -ENOMEM;
		}
		e->n = 1;
	}
	delete_val(v);
	return 0;
}

int lexicon_write(const char *cmudict, const char *const *words, size_t n, FILE *f,
		  void (*guessed)(void *ctx, const char *word, const char *phones), void *ctx,
		  struct hearth_err *err)
{
	struct entry *e = calloc(n ? n : 1, sizeof(*e));
	int rc;

	if (!e)
		return err_set(err, -ENOMEM, "no memory for a dictionary of %zu words", n);
	for (size_t i = 0; i < n; i++)
		e[i] = (struct entry){ .word = words[i], .order = i };
	qsort(e, n, sizeof(*e), by_word);
	rc = look_up(cmudict, e, n, err);
	if (rc)
		goto out;
	qsort(e, n, sizeof(*e), by_order);
	for (size_t i = 0; i < n; i++) {
		if (e[i].n == 0) {
			rc = guess(&e[i]);
			if (rc) {
				err_set(err, rc, "no memory for a dictionary of %zu words", n);
				goto out;
			}
			if (guessed)
				guessed(ctx, e[i].word, e[i].n ? e[i].phones[0] : NULL);
		}
		for (size_t k = 0; k < e[i].n; k++) {
			if (k == 0)
				fprintf(f, "%s %s\n", e[i].word, e[i].phones[k]);
			else
				fprintf(f, "%s(%zu) %s\n", e[i].word, k + 1, e[i].phones[k]);
		}
	}
	if (ferror(f))
		rc = err_set(err, -EIO, "the dictionary cannot be written");
out:
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < e[i].n; k++)
			free(e[i].phones[k]);
	free(e);
	return rc;
}
