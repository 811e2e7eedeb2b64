/* SPDX-License-Identifier: MIT */
/*
 * The source thread of a turn: takes audio, at the speed of speech when it
 * comes from a file, finds speech in it, and feeds the recogniser. It tells the
 * turn thread by mail what it found.
 *
 * At a pause it asks for the transcript early (listen_opts.early); when speech
 * goes on it gives the recogniser the whole utterance anew, from its history.
 */
#ifndef HEARTH_VOICE_LISTEN_H
#define HEARTH_VOICE_LISTEN_H

#include "voice/audio.h"
#include "voice/mailbox.h"
#include "voice/stt.h"
#include "voice/trace.h"
#include "voice/vad.h"

struct listen_opts {
	bool paced, early;
	uint32_t early_ms, patience_ms, longest_ms;
};

struct listen;

int listen_new(const struct listen_opts *opts, struct listen **ret_listen);
void listen_free(struct listen *l);
size_t listen_bytes(const struct listen_opts *opts);

/* Starts to hear @in. Utterances are numbered from *@next_id on. */
int listen_start(struct listen *l, struct audio_in *in, struct vad *vad, struct stt *stt, struct mailbox *box,
		 uint64_t *next_id, struct trace *trace);

/* Any thread: the pause that ends a turn, from the next block on. */
void listen_end_wait(struct listen *l, int ms);

/* After MAIL_END: go on hearing (it was nothing), or be done. */
void listen_on(struct listen *l);
void listen_done(struct listen *l);

/* Waits for the thread. Seconds taken from the source. */
double listen_join(struct listen *l);

#endif
