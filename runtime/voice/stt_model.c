// SPDX-License-Identifier: MIT
#include "voice/stt_model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "voice/lexicon.h"
#include "voice/trigram.h"

#define SENTENCES 60000
#define MAX_PHRASES (64u << 20) /* bytes */
#define SEED      20261129u
#define FORMAT    "2" /* of the files; raised when what is written changes */
#define END       ";; end\n" /* the last line of dictionary and notes; a comment to PocketSphinx */
#define LM_END    "\n\\end\\\n"
#define CMUDICT   "/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict"

struct build {
	struct trigram *t;
	const char *const *words;
	size_t n_words;
	const char *cmudict;
	FILE *notes;
	const char *text; /* of the notes */
	size_t text_len;
};

static void fold(uint64_t *h, const char *s)
{
	for (; *s; s++)
		*h = (*h ^ (unsigned char)*s) * 0x100000001b3u;
	*h = (*h ^ 0xff) * 0x100000001b3u;
}

static int add_sentence(void *ctx, const char *sentence)
{
	return trigram_add(ctx, sentence);
}

static int add_extra(struct trigram *t, const char *extra)
{
	while (extra && *extra) {
		size_t n = strcspn(extra, "\n");
		char *line = strndup(extra, n), *words = NULL;
		int rc = line ? phrasebook_words(line, &words) : -ENOMEM;

		if (!rc)
			rc = trigram_add(t, words);
		free(line);
		free(words);
		if (rc)
			return rc;
		extra += n + (extra[n] == '\n');
	}
	return 0;
}

static void note_guess(void *ctx, const char *word, const char *phones)
{
	fprintf(ctx, "%s %s\n", word, phones ? phones : "-");
}

/* Writes one file beside its place and moves it there: readers see it whole or not. */
static int write_file(const char *path, struct build *b, int (*fill)(struct build *, FILE *, struct hearth_err *),
		      struct hearth_err *err)
{
	char temp[PATH_MAX + 16];
	FILE *f;
	int rc, fd;

	snprintf(temp, sizeof(temp), "%s.XXXXXX", path);
	fd = mkstemp(temp);
	if (fd < 0)
		return err_set(err, -errno, "%s: cannot be written: %s", path, strerror(errno));
	/* For every user of the machine: the names of a home are no secret of its cache. */
	if (fchmod(fd, 0644))
		errno = 0;
	f = fdopen(fd, "w");
	if (!f) {
		rc = err_set(err, -errno, "%s: cannot be written: %s", path, strerror(errno));
		close(fd);
		unlink(temp);
		return rc;
	}
	rc = fill(b, f, err);
	if (fflush(f) || ferror(f) || fsync(fileno(f)))
		rc = rc ? rc : err_set(err, -(errno ? errno : EIO), "%s: cannot be written: %s", path, strerror(errno));
	fclose(f);
	if (!rc && rename(temp, path))
		rc = err_set(err, -errno, "%s: cannot be written: %s", path, strerror(errno));
	if (rc)
		unlink(temp);
	return rc;
}

static int fill_lm(struct build *b, FILE *f, struct hearth_err *err)
{
	int rc = trigram_write(b->t, f);

	return rc == -ENOMEM ? err_set(err, rc, "no memory to build the language model") :
	       rc ? err_set(err, rc, "the language model cannot be built: %s", strerror(-rc)) : 0;
}

static int fill_dict(struct build *b, FILE *f, struct hearth_err *err)
{
	int rc = lexicon_write(b->cmudict, b->words, b->n_words, f, note_guess, b->notes, err);

	fputs(END, f);
	return rc;
}

static int fill_notes(struct build *b, FILE *f, struct hearth_err *err)
{
	fwrite(b->text, 1, b->text_len, f);
	fputs(END, f);
	return 0;
}

/* Whether a file is there to its last line: one that a crash or a full disk cut short is made again. */
static bool whole(const char *path, const char *end)
{
	char have[16];
	size_t n = strlen(end);
	FILE *f = fopen(path, "re");
	bool ok = f && !fseek(f, -(long)n, SEEK_END) && fread(have, 1, n, f) == n && !memcmp(have, end, n);

	if (f)
		fclose(f);
	return ok;
}

static int append_name(char **list, const char *word, size_t n)
{
	size_t old = *list ? strlen(*list) : 0;
	char *grown = realloc(*list, old + n + 3);

	if (!grown)
		return -ENOMEM;
	if (old)
		memcpy(grown + old, ", ", 2), old += 2;
	memcpy(grown + old, word, n);
	grown[old + n] = '\0';
	*list = grown;
	return 0;
}

static int read_notes(struct stt_model *m, const char *path, struct hearth_err *err)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	int rc = 0;

	if (!f)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	while (!rc && getline(&line, &room, f) > 0) {
		size_t n = strcspn(line, " \n");

		if (*line == *END)
			continue;
		rc = append_name(line[n] == ' ' && line[n + 1] == '-' ? &m->unsayable : &m->guessed, line, n);
	}
	free(line);
	fclose(f);
	return rc ? err_set(err, rc, "no memory to read %s", path) : 0;
}

static int build_files(struct build *b, const struct phrasebook *book, const char *extra,
		       const struct stt_model *m, const char *notes, struct hearth_err *err)
{
	const char **words = NULL;
	char *note_text = NULL;
	size_t note_len = 0;
	int rc = trigram_new(&b->t);

	if (!rc)
		rc = phrasebook_expand(book, phrasebook_loaded(book) ? 2 * SENTENCES : SENTENCES, SEED,
				       add_sentence, b->t);
	if (!rc)
		rc = add_extra(b->t, extra);
	if (!rc) {
		b->n_words = trigram_n_words(b->t);
		words = calloc(b->n_words + 1, sizeof(*words));
		b->notes = open_memstream(&note_text, &note_len);
		if (!words || !b->notes)
			rc = -ENOMEM;
	}
	if (rc) {
		rc = err_set(err, rc, "no memory to build the language model");
		goto out;
	}
	for (size_t i = 0; i < b->n_words; i++)
		words[i] = trigram_word(b->t, i);
	b->words = words;
	rc = write_file(m->dict, b, fill_dict, err);
	fclose(b->notes);
	b->notes = NULL;
	if (!rc) {
		b->text = note_text;
		b->text_len = note_len;
		rc = write_file(notes, b, fill_notes, err);
	}
	/* The model is last: where it is, the others are. */
	if (!rc)
		rc = write_file(m->lm, b, fill_lm, err);
out:
	if (b->notes)
		fclose(b->notes);
	free(note_text);
	free(words);
	trigram_free(b->t);
	return rc;
}

static int make_folders(const char *dir, struct hearth_err *err)
{
	char part[PATH_MAX];

	for (size_t n = 1; ; n++) {
		if (dir[n] && dir[n] != '/')
			continue;
		snprintf(part, sizeof(part), "%.*s", (int)n, dir);
		if (mkdir(part, 0777) && errno != EEXIST)
			return err_set(err, -errno, "%s: cannot be made: %s", part, strerror(errno));
		if (!dir[n])
			return 0;
	}
}

/* No file is no error. */
static int load_phrases(struct phrasebook *book, const char *dir, struct hearth_err *err)
{
	char path[PATH_MAX], *text = NULL;
	size_t n = 0, got;
	FILE *f;
	int rc;

	if (snprintf(path, sizeof(path), "%s/" STT_MODEL_PHRASES, dir) >= (int)sizeof(path))
		return err_set(err, -ENAMETOOLONG, "the folder name is too long: %s", dir);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT || errno == ENOTDIR ? 0 : err_set(err, -errno, "%s: %s", path, strerror(errno));
	do {
		char *grown = n + 65536 < MAX_PHRASES ? realloc(text, n + 65536 + 1) : NULL;

		if (!grown) {
			free(text);
			fclose(f);
			return err_set(err, -E2BIG, "%s: too large", path);
		}
		text = grown;
		got = fread(text + n, 1, 65536, f);
		n += got;
	} while (got > 0);
	text[n] = '\0';
	fclose(f);
	rc = phrasebook_load(book, text, err);
	free(text);
	return rc ? err_prefix(err, rc, "%s", path) : 0;
}

int stt_model_build(struct phrasebook *book, const char *extra, const char *cmudict,
		    const char *dir, struct stt_model *ret, struct hearth_err *err)
{
	struct build b = { .cmudict = cmudict ? cmudict : CMUDICT };
	struct stt_model m = { 0 };
	char notes[PATH_MAX];
	uint64_t digest;
	int rc, n;

	rc = load_phrases(book, dir, err);
	if (rc)
		return rc;
	m.phrases = phrasebook_loaded(book);
	digest = phrasebook_digest(book);

	fold(&digest, FORMAT);
	fold(&digest, b.cmudict);
	fold(&digest, extra ? extra : "");
	n = snprintf(m.lm, sizeof(m.lm), "%s/stt-%016" PRIx64 ".lm", dir, digest);
	if (n >= (int)sizeof(m.lm) - 16)
		return err_set(err, -ENAMETOOLONG, "the folder name is too long: %s", dir);
	snprintf(m.dict, sizeof(m.dict), "%.*s.dict", n - 3, m.lm);
	snprintf(notes, sizeof(notes), "%.*s.notes", n - 3, m.lm);
	m.cached = whole(m.lm, LM_END) && whole(m.dict, END) && whole(notes, END);
	if (!m.cached) {
		rc = make_folders(dir, err);
		if (rc)
			return rc;
		rc = build_files(&b, book, extra, &m, notes, err);
		if (rc)
			return rc;
	}
	rc = read_notes(&m, notes, err);
	if (rc)
		stt_model_done(&m);
	else
		*ret = m;
	return rc;
}

void stt_model_done(struct stt_model *m)
{
	free(m->guessed);
	free(m->unsayable);
	m->guessed = m->unsayable = NULL;
}
