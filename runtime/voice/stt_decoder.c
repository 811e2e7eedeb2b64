// SPDX-License-Identifier: MIT
#include "voice/stt_decoder.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pocketsphinx/pocketsphinx.h>
#include <sphinxbase/err.h>
#include <sphinxbase/feat.h>
#include <sphinxbase/ngram_model.h>

#define SEARCH     "_default" /* what PocketSphinx calls the search that -lm makes */
#define MODEL_DIR  "/usr/share/pocketsphinx/model/en-us/"

/*
 * Fitted (logistic regression) on flite's voices saying the hand-written
 * evaluation set, other sentences, noises and chords; docs/speech.md has what
 * it does on others. The acoustic score of a free loop of phones was tried
 * beside it and added nothing.
 */
#define SCORE_BASE   2.41
#define SCORE_LENGTH 0.22   /* times ln(words): a long text must be likelier word by word */
#define SCORE_SLOW   0.0046 /* times frames per word */
#define FIT_GOOD     39.0   /* a fit worse than minus this counts against the text: */
#define SCORE_FIT    0.1    /* in noise any words of the home are about as near as any others */

/*
 * What no speech is like. Of 300 sentences spoken by four synthetic voices
 * none had the pitch of a voice in less than 0.35 of what is loud (0.22 with
 * white noise 15 dB under it), nor words for less than 0.42 of it, nor words
 * of more than 0.75 s on the average, nor a fit better than -23. The lines
 * were drawn against sounds of a home (docs/speech.md). Whispers have no pitch
 * and are not heard.
 */
#define VOICE_LEAST  0.20
#define WORDS_LEAST  0.38   /* frames in words, of the loud ones */
#define SLOWEST      85     /* frames a word */
#define TOO_GOOD     -20.0  /* a pure tone fits some phone better than speech fits any */

/*
 * What the sound itself must be like (ear.h). Of 1,216 utterances of speech with
 * words found none had a mouth that moved by less than 10.8, none that Silero
 * let pass was under 0.3 (but for a recording of nobody), and none that was
 * taken for a command behind the energy detector was under -0.3, nor less clear
 * than 0.74. An owl moves by 8.8. The first three lines are for sounds that
 * Silero took for a voice, the others for those that were only loud.
 */
#define MOVES_LEAST  9.8
#define LIKE_VOICE   -2.5
#define LIKE_TALK    0.0    /* below it words that are no command are none */
#define MAYBE_VOICE  -0.6
#define MAYBE_CLEAR  0.72   /* a growl and a motor repeat themselves, but not as well */
#define SURE_VOICE   2.0
#define SURE_CLEAR   0.76
#define SURE_MORE    0.25   /* over the threshold: a command then */
#define SPOKEN       4.5    /* somebody spoke, even where the words are none */
#define MAYBE_MORE   0.55   /* a command, though the voice is not sure */
#define MAYBE_WORDS  3

/*
 * A voice that is unlike those that the acoustic model was made of (espeak-ng)
 * fits badly whatever it says. But where the words come in an order that the
 * home's sentences all but dictate, that is evidence of its own: other speech,
 * forced into the home's words, was never over -1.1 (docs/speech.md).
 */
#define LIKELY       -0.9    /* log10 of a word, on the average */
#define LIKELY_WORDS 4
#define LIKELY_FIT   -66.0   /* worse than that is no fit at all */

/*
 * While audio arrives, the channel (loudness, microphone) is taken to be as in
 * the utterances before. Where that goes wrong, as in a first utterance, the
 * sound fits badly; then it is decoded once more as a whole, measured by itself.
 */
#define SECOND_LOOK  -38.0
#define KEEP_S       12     /* of audio; a longer utterance gets no second look */


struct stt_decoder {
	ps_decoder_t *words;
	ngram_model_t *lm;   /* the decoder's own; asking for it each time leaks inside PocketSphinx */
	struct ear *ear;
	int16_t *kept;
	size_t n_kept, seen;
	char text[STT_TEXT];
	mfcc_t before[64]; /* the mean when the utterance began */
	mfcc_t mean[64];   /* of the cepstra, as the acoustic model's file says to begin with */
};

static int need(const char *path, struct hearth_err *err)
{
	if (!access(path, R_OK))
		return 0;
	return err_set(err, -errno, "speech recognition: %s: %s", path, strerror(errno));
}

static ps_decoder_t *make(cmd_ln_t *config)
{
	ps_decoder_t *ps = config ? ps_init(config) : NULL;

	if (config)
		cmd_ln_free_r(config);
	return ps;
}

static const char *acoustic(const struct stt_options *o)
{
	return o->acoustic ? o->acoustic : MODEL_DIR "en-us";
}

int stt_check(const struct stt_options *o, struct hearth_err *err)
{
	int rc = need(acoustic(o), err);

	if (!rc && o->lm)
		rc = need(o->lm, err);
	if (!rc && o->dict)
		rc = need(o->dict, err);
	return rc;
}

int stt_decoder_new(const struct stt_options *o, struct stt_decoder **ret, struct hearth_err *err)
{
	const char *hmm = acoustic(o);
	struct stt_decoder *d;
	int rc = stt_check(o, err);

	if (rc)
		return rc;
	err_set_logfp(NULL); /* PocketSphinx prints unless told not to */
	d = calloc(1, sizeof(*d));
	if (d)
		d->kept = malloc(KEEP_S * STT_RATE * sizeof(*d->kept));
	if (!d || !d->kept || ear_new(&d->ear)) {
		stt_decoder_free(d);
		return err_set(err, -ENOMEM, "no memory for speech recognition");
	}
	d->words = make(cmd_ln_init(NULL, ps_args(), TRUE, "-hmm", hmm, "-lm", o->lm, "-dict", o->dict,
				    "-mmap", "no", "-fwdflat", "no", "-bestpath", "yes",
				    "-logfn", "/dev/null", NULL));
	if (!d->words) {
		stt_decoder_free(d);
		return err_set(err, -EBADMSG, "PocketSphinx will not load %s with %s and %s", hmm, o->lm, o->dict);
	}
	if (feat_cepsize(ps_get_feat(d->words)) > (int)(sizeof(d->mean) / sizeof(d->mean[0]))) {
		stt_decoder_free(d);
		return err_set(err, -EBADMSG, "the acoustic model %s has features of a size that is not known here", hmm);
	}
	d->lm = ps_get_lm(d->words, SEARCH);
	if (!d->lm) {
		stt_decoder_free(d);
		return err_set(err, -EBADMSG, "PocketSphinx has no language model after loading %s", o->lm);
	}
	cmn_live_get(ps_get_feat(d->words)->cmn_struct, d->mean);
	*ret = d;
	return 0;
}

void stt_decoder_forget(struct stt_decoder *d)
{
	cmn_live_set(ps_get_feat(d->words)->cmn_struct, d->mean);
}

void stt_decoder_free(struct stt_decoder *d)
{
	if (!d)
		return;
	if (d->words)
		ps_free(d->words);
	ear_free(d->ear);
	free(d->kept);
	free(d);
}

int stt_decoder_begin(struct stt_decoder *d)
{
	d->n_kept = d->seen = 0;
	cmn_live_get(ps_get_feat(d->words)->cmn_struct, d->before);
	return ps_start_utt(d->words) < 0 ? -EIO : 0;
}

void stt_decoder_drop(struct stt_decoder *d)
{
	/* PocketSphinx wants every utterance ended before the next begins. */
	ps_end_utt(d->words);
	cmn_live_set(ps_get_feat(d->words)->cmn_struct, d->before);
}

int stt_decoder_push(struct stt_decoder *d, const int16_t *pcm, size_t n)
{
	d->seen += n;
	if (n <= KEEP_S * STT_RATE - d->n_kept) {
		memcpy(d->kept + d->n_kept, pcm, n * sizeof(*pcm));
		d->n_kept += n;
	}
	return ps_process_raw(d->words, pcm, n, FALSE, FALSE) < 0 ? -EIO : 0;
}

/* "<sil>", "[NOISE]", "</s>" and their like are no words; a hesitation is none worth passing on. */
static bool is_word(const char *w)
{
	static const char *const hesitations[] = { "um", "uh", "er", "erm", "hm" };
	size_t n = w ? strcspn(w, " (") : 0;

	if (n == 0 || *w == '<' || *w == '[' || *w == '+')
		return false;
	for (size_t i = 0; i < sizeof(hesitations) / sizeof(hesitations[0]); i++)
		if (strlen(hesitations[i]) == n && !memcmp(hesitations[i], w, n))
			return false;
	return true;
}

/* What the language model says of a text: per word, and of its end. */
static double judge(struct stt_decoder *d, const char *text, double *ret_end)
{
	ngram_model_t *lm = d->lm;
	logmath_t *lmath = ps_get_logmath(d->words);
	char copy[STT_TEXT], *save = NULL;
	int32 past[2] = { ngram_wid(lm, "<s>"), 0 }; /* latest first */
	int n_past = 1, n = 0, used;
	double sum = 0, end;

	strcpy(copy, text);
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		int32 id = ngram_wid(lm, w);

		sum += logmath_log_to_log10(lmath, ngram_ng_prob(lm, id, past, n_past, &used));
		past[1] = past[0];
		past[0] = id;
		n_past = 2;
		n++;
	}
	end = logmath_log_to_log10(lmath, ngram_ng_prob(lm, ngram_wid(lm, "</s>"), past, n_past, &used));
	*ret_end = end;
	return n ? (sum + end) / (n + 1) : 0;
}

/* Drops "word(2)" marks and fillers. */
static void clean(const char *hyp, char *out)
{
	size_t n = 0;

	while (hyp && *hyp) {
		size_t len = strcspn(hyp, " "), keep = len;
		const char *paren = memchr(hyp, '(', len);

		if (paren)
			keep = (size_t)(paren - hyp);
		if (is_word(hyp) && keep > 0 && n + keep + 2 < STT_TEXT) {
			if (n > 0)
				out[n++] = ' ';
			memcpy(out + n, hyp, keep);
			n += keep;
		}
		hyp += len + (hyp[len] == ' ');
	}
	out[n] = '\0';
}

const char *stt_decoder_partial(struct stt_decoder *d, float *ret_ends)
{
	double end = -99;

	clean(ps_get_hyp(d->words, NULL), d->text);
	if (d->text[0])
		judge(d, d->text, &end);
	*ret_ends = (float)pow(10, end);
	return d->text;
}

/*
 * PocketSphinx leaves silence out of its count of frames, so that its words
 * cannot be found in the samples again: the sound is judged as a whole, one
 * too long to be kept by its first seconds.
 */
static int listen_to(const struct stt_decoder *d, struct stt_evidence *e)
{
	int rc = ear_hear(d->ear, d->kept, d->n_kept, &e->sound);

	if (d->n_kept != d->seen)
		e->sound.loud = e->frames;
	return rc;
}

static int weigh(struct stt_decoder *d, struct stt_evidence *ret)
{
	struct stt_evidence e = { .speech_end = -1 };
	int base = -1;
	double end;

	if (ps_end_utt(d->words) < 0)
		return -EIO;
	clean(ps_get_hyp(d->words, NULL), e.text);
	for (ps_seg_t *s = ps_seg_iter(d->words); s; s = ps_seg_next(s)) {
		int sf, ef;
		int32 acoustic, lm, back;

		ps_seg_frames(s, &sf, &ef);
		ps_seg_prob(s, &acoustic, &lm, &back);
		if (base < 0)
			base = sf; /* frames are counted on from utterance to utterance */
		if (!is_word(ps_seg_word(s)))
			continue;
		e.words++;
		e.frames += ef - sf + 1;
		e.speech_end = ef + 1 - base;
		e.fit += acoustic / 1024.0; /* the lattice keeps ten bits of fraction */
	}
	if (e.words > 0) {
		e.lm = judge(d, e.text, &end);
		e.fit /= e.frames;
		if (listen_to(d, &e))
			return -EIO;
		e.score = SCORE_BASE + e.lm - SCORE_LENGTH * log(e.words) - SCORE_SLOW * e.frames / e.words +
			  SCORE_FIT * (e.fit < -FIT_GOOD ? e.fit + FIT_GOOD : 0);
	}
	e.speech = e.words > 0 && e.sound.voice >= LIKE_VOICE && e.sound.move >= MOVES_LEAST && e.sound.voiced >= VOICE_LEAST && e.frames >= WORDS_LEAST * e.sound.loud &&
		   e.frames <= SLOWEST * e.words && e.fit <= TOO_GOOD;
	*ret = e;
	return 0;
}

int stt_decoder_end(struct stt_decoder *d, struct stt_evidence *ret)
{
	struct stt_evidence whole;
	int rc = weigh(d, ret);

	if (rc || ret->words == 0 || ret->fit >= SECOND_LOOK || d->n_kept != d->seen)
		return rc;
	if (ps_start_utt(d->words) < 0 || ps_process_raw(d->words, d->kept, d->n_kept, FALSE, TRUE) < 0)
		return -EIO;
	rc = weigh(d, &whole);
	if (!rc && whole.speech && (!ret->speech || whole.score > ret->score))
		*ret = whole;
	return rc;
}

enum stt_verdict stt_decoder_verdict(const struct stt_evidence *e, float threshold, bool unsure)
{
	const struct ear_sound *s = &e->sound;
	bool sure = s->voice >= SURE_VOICE && s->clear >= SURE_CLEAR;

	if (!e->speech)
		return STT_NOTHING;
	if (sure && e->lm >= LIKELY && e->words >= LIKELY_WORDS && e->fit >= LIKELY_FIT)
		return STT_COMMAND;
	if (!unsure)
		return e->score >= threshold ? STT_COMMAND : s->voice >= LIKE_TALK ? STT_REJECTED : STT_NOTHING;
	if (s->voice < MAYBE_VOICE || s->clear < MAYBE_CLEAR)
		return STT_NOTHING;
	if (e->score < threshold)
		return sure && s->voice >= SPOKEN ? STT_REJECTED : STT_NOTHING;
	if ((sure && e->score >= threshold + SURE_MORE) || (e->words >= MAYBE_WORDS && e->score >= threshold + MAYBE_MORE))
		return STT_COMMAND;
	return STT_REJECTED;
}
