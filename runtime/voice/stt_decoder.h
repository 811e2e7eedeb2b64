/* SPDX-License-Identifier: MIT */
/*
 * PocketSphinx for one utterance at a time, and whether what it found is a
 * command: other speech comes out as words of the home too, but in an order in
 * which nobody says them, and noise as words that last too long. Used by
 * stt.c, from one thread.
 */
#ifndef HEARTH_VOICE_STT_DECODER_H
#define HEARTH_VOICE_STT_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "voice/ear.h"
#include "voice/stt.h"

struct stt_decoder;

/* What rejection is decided from. */
struct stt_evidence {
	char text[STT_TEXT];
	int words;          /* without fillers and "uh" */
	int frames;         /* of 10 ms, in words */
	int speech_end;     /* the frame after the last word, -1 */
	double lm;          /* log10 probability of the text, per word */
	double fit;         /* acoustic score of the words per frame: 0 is perfect, lower is worse */
	struct ear_sound sound; /* in words or not */
	bool speech;        /* false: nobody spoke, whatever the words */
	double score;       /* the verdict: below the threshold (0) it is no command, unless the words are very likely */
};

int stt_decoder_new(const struct stt_options *o, struct stt_decoder **ret, struct hearth_err *err);
void stt_decoder_free(struct stt_decoder *d);

/* Forgets what it learned of the room and the voice: as new. */
void stt_decoder_forget(struct stt_decoder *d);

int stt_decoder_begin(struct stt_decoder *d);
int stt_decoder_push(struct stt_decoder *d, const int16_t *pcm, size_t n);
/* The text so far, "" when none; and how probable it is that a command ends here. */
const char *stt_decoder_partial(struct stt_decoder *d, float *ret_ends);
int stt_decoder_end(struct stt_decoder *d, struct stt_evidence *ret);
/* What that makes of the utterance; @unsure as in stt_options. */
enum stt_verdict stt_decoder_verdict(const struct stt_evidence *e, float threshold, bool unsure);
/* Ends it without a result, and learns nothing of the room from a part of an utterance. */
void stt_decoder_drop(struct stt_decoder *d);

#endif
