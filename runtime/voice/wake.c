// SPDX-License-Identifier: MIT
#include "voice/wake.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <pocketsphinx/pocketsphinx.h>
#include <sphinxbase/err.h>

#include "voice/lexicon.h"

#define MODEL_DIR "/usr/share/pocketsphinx/model/en-us/"
#define MAX_WORDS 8
/* An utterance of the search grows with its length: a new one is begun now and then, where the last was quiet. */
#define FRESH     (16000 * 20)
#define QUIET     300              /* mean of |sample| */

struct wake {
	ps_decoder_t *ps;
	struct voice_charge charge;
	size_t in_utterance;
	bool begun;
	char guessed[128];
};

void wake_defaults(struct wake_options *o)
{
	*o = (struct wake_options){ .phrase = "okay hearth", .threshold = 1e-20 };
}

size_t wake_predict(void)
{
	return 12u << 20;
}

struct spelling {
	const char *missing;
	char *guessed;             /* no longer than the phrase, of which each word comes once */
};

static void guessed(void *ctx, const char *word, const char *phones)
{
	struct spelling *s = ctx;

	if (!phones)
		s->missing = word;
	else
		sprintf(s->guessed + strlen(s->guessed), "%s%s", *s->guessed ? " " : "", word);
}

/* A dictionary of the phrase's words alone, in memory; returns the descriptor. */
static int dictionary(const struct wake_options *o, char *phrase, char *guessed_words, struct hearth_err *err)
{
	const char *words[MAX_WORDS];
	struct spelling sp = { .guessed = guessed_words };
	char *save = NULL, copy[128];
	size_t n = 0;
	int fd, rc;
	FILE *f;

	snprintf(copy, sizeof(copy), "%s", phrase);
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		bool twice = false;

		for (size_t i = 0; i < n; i++)
			twice |= !strcmp(words[i], w);
		if (n == MAX_WORDS)
			return err_set(err, -EINVAL, "a wake phrase has at most %d words", MAX_WORDS);
		if (!twice)
			words[n++] = w;
	}
	if (!n)
		return err_set(err, -EINVAL, "the wake phrase is empty");
	fd = memfd_create("wake", MFD_CLOEXEC);
	f = fd < 0 ? NULL : fdopen(dup(fd), "w");
	if (!f) {
		close(fd);
		return err_set(err, -ENOMEM, "no memory for the wake phrase");
	}
	rc = lexicon_write(o->cmudict ? o->cmudict : MODEL_DIR "cmudict-en-us.dict", words, n, f, guessed, &sp, err);
	fclose(f);
	if (!rc && sp.missing)
		rc = err_set(err, -ENOENT, "\"%s\" of the wake phrase cannot be spelt", sp.missing);
	if (rc)
		close(fd);
	return rc ? rc : fd;
}

static void begin(struct wake *w)
{
	if (w->begun)
		ps_end_utt(w->ps);
	w->begun = ps_start_utt(w->ps) == 0;
	w->in_utterance = 0;
}

int wake_open(const struct wake_options *o, const struct voice_account *acc, struct wake **ret, struct hearth_err *err)
{
	const char *hmm = o->acoustic ? o->acoustic : MODEL_DIR "en-us";
	struct wake *w;
	char phrase[128], guesses[128] = "", dict[64], threshold[32];
	cmd_ln_t *config;
	int fd, rc;

	if (!o->phrase || strlen(o->phrase) >= sizeof(phrase) || !(o->threshold > 0) || o->threshold > 1)
		return err_set(err, -EINVAL, "a wake phrase is at most 127 bytes, its threshold above 0 and at most 1");
	for (size_t i = 0; i <= strlen(o->phrase); i++)
		phrase[i] = (char)tolower((unsigned char)o->phrase[i]);
	if (access(hmm, R_OK))
		return err_set(err, -errno, "wake word: %s: %s", hmm, strerror(errno));
	fd = dictionary(o, phrase, guesses, err);
	if (fd < 0)
		return fd;
	w = calloc(1, sizeof(*w));
	rc = w ? voice_charge_begin(&w->charge, acc, wake_predict(), err) : err_set(err, -ENOMEM, "no memory for the wake word");
	if (!rc) {
		strcpy(w->guessed, guesses);
		snprintf(dict, sizeof(dict), "/proc/self/fd/%d", fd);
		snprintf(threshold, sizeof(threshold), "%g", o->threshold);
		err_set_logfp(NULL);
		config = cmd_ln_init(NULL, ps_args(), TRUE, "-hmm", hmm, "-dict", dict, "-keyphrase", phrase, "-kws_threshold", threshold,
				     "-mmap", "no", "-logfn", "/dev/null", NULL);
		w->ps = config ? ps_init(config) : NULL;
		if (config)
			cmd_ln_free_r(config);
		if (!w->ps)
			rc = err_set(err, -EBADMSG, "PocketSphinx does not take the wake phrase \"%s\"", phrase);
	}
	close(fd);
	if (!rc) {
		begin(w);
		if (!w->begun)
			rc = err_set(err, -EIO, "PocketSphinx does not begin");
	}
	if (!rc)
		rc = voice_charge_settle(&w->charge, voice_charge_heap(&w->charge), err);
	if (rc) {
		wake_close(w);
		return rc;
	}
	*ret = w;
	return 0;
}

const char *wake_guessed(const struct wake *w)
{
	return w->guessed;
}

void wake_close(struct wake *w)
{
	if (!w)
		return;
	if (w->begun)
		ps_end_utt(w->ps);
	if (w->ps)
		ps_free(w->ps);
	voice_charge_end(&w->charge);
	free(w);
}

void wake_reset(struct wake *w)
{
	begin(w);
}

static bool quiet(const int16_t *pcm, size_t n)
{
	int64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += abs(pcm[i]);
	return n && sum / (int64_t)n < QUIET;
}

int wake_push(struct wake *w, const int16_t *pcm, size_t n)
{
	if (!w->begun)
		begin(w);
	if (!w->begun || ps_process_raw(w->ps, pcm, n, FALSE, FALSE) < 0)
		return -EIO;
	w->in_utterance += n;
	if (ps_get_hyp(w->ps, NULL)) {
		begin(w);
		return 1;
	}
	if (w->in_utterance > FRESH && quiet(pcm, n))
		begin(w);
	return 0;
}
