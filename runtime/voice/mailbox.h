/* SPDX-License-Identifier: MIT */
/*
 * What the engines' threads tell the turn thread: a bounded queue of small
 * messages from many writers to one reader. A full box holds its writers back.
 */
#ifndef HEARTH_VOICE_MAILBOX_H
#define HEARTH_VOICE_MAILBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "voice/stt.h"

enum mail_kind {
	MAIL_SPEECH,       /* speech began; ns: its first sample */
	MAIL_PAUSE,        /* ns: the last sample of speech, if nothing follows */
	MAIL_RESUME,
	MAIL_BLIP,
	MAIL_END,          /* the end of the turn is decided; ns: last sample of speech */
	MAIL_HEARD_ALL,    /* the source ended, or patience did, with no speech open */
	MAIL_SOURCE_FAILED,/* err */
	MAIL_PARTIAL,      /* stt.text */
	MAIL_FINAL,        /* stt */
	MAIL_TEXT,         /* id, text, len */
	MAIL_GENERATED,    /* id, gen */
	MAIL_SPOKEN,       /* one phrase is done; id, status */
	MAIL_STOP,
};

struct mail {
	enum mail_kind kind;
	uint64_t id;          /* of the utterance, the generation or the phrase */
	int64_t ns;           /* when it happened */
	int64_t decided;      /* MAIL_END: when that was known */
	int status;
	size_t len;
	union {
		char text[232];
		struct stt_result stt;
		struct gen_result gen;
		struct hearth_err err;
	};
};

struct mailbox;

int mailbox_new(size_t room, struct mailbox **ret);
void mailbox_free(struct mailbox *box);
void mailbox_put(struct mailbox *box, const struct mail *mail); /* waits for room; drops all once closed */
void mailbox_push(struct mailbox *box, const struct mail *mail); /* never waits, goes first: for MAIL_STOP */

/* Waits until @until_ns (INT64_MAX: for ever). false: time is up. */
bool mailbox_get(struct mailbox *box, int64_t until_ns, struct mail *ret_mail);
void mailbox_clear(struct mailbox *box); /* forgets what is in it */
void mailbox_close(struct mailbox *box); /* writers are never held back again */

#endif
