/* SPDX-License-Identifier: MIT */
/*
 * Phrase chunker: model text in, speakable phrases out.
 *
 * Bytes are pushed as the model writes them, cut anywhere, even inside a
 * character. Each character goes through one state machine, so the phrases do
 * not depend on how the text was cut. In order:
 *
 *   1. Never spoken: think blocks (also unclosed), tool calls and other JSON
 *      objects, special tokens, code fences, markdown marks, emoji.
 *   2. Boundaries: sentence ends; clause ends once the phrase is long enough,
 *      which is sooner for the first phrase of a reply; at last a cap on words.
 *      "3.5", "22,1", "8:30", "$3.50", "a.m.", "Dr.", initials, list numbers,
 *      comma lists, ellipses and URLs hold together, a number keeps its unit.
 *   3. Each phrase is put into spoken form (speak.h).
 *
 * What a boundary waits for is bounded: by words inside the machine, and by
 * time where the caller asks chunker_deadline() and calls chunker_tick(). Time
 * is an argument: the chunker reads no clock.
 *
 * One thread at a time. Memory is bounded whatever is pushed.
 */
#ifndef HEARTH_VOICE_CHUNKER_H
#define HEARTH_VOICE_CHUNKER_H

#include <stddef.h>
#include <stdint.h>

enum chunk_why {
	CHUNK_SENTENCE, /* . ! ? or their kin, or the end of a line */
	CHUNK_CLAUSE,   /* , ; : or a dash, long enough */
	CHUNK_CAP,      /* the cap on words or bytes */
	CHUNK_TIME,     /* chunker_tick() past the deadline */
	CHUNK_END,      /* chunker_finish() */
};

struct chunk {
	unsigned int index;   /* 0 is the first phrase of the reply */
	enum chunk_why why;
	const char *text;     /* the phrase as written, marks removed; for people to read */
	const char *spoken;   /* the phrase as it is said; for the engine */
	size_t src_end;       /* bytes of the pushed text consumed when it was cut */
};

/*
 * Takes one phrase; the strings live until it returns. A return value other
 * than 0 stops the push that caused it and is returned from there; the phrase
 * counts as delivered.
 */
typedef int (*chunk_fn)(void *arg, const struct chunk *chunk);

struct chunker_opts {
	unsigned int first_words;     /* a clause end cuts the first phrase from so many words */
	unsigned int clause_words;    /* and any later one from so many */
	unsigned int first_cap_words; /* cap of the first phrase */
	unsigned int cap_words;       /* cap of later phrases */
	unsigned int first_wait_ms;   /* longest wait of the first phrase after its first character; 0: none */
	unsigned int wait_ms;         /* and of later ones */
	int in_think;                 /* the prompt already opened a think block */
};

/* The defaults: 3, 8 and 12, 30 words; 350 and 700 ms; not in a think block. */
void chunker_defaults(struct chunker_opts *opts);

struct chunker;

/* @opts NULL means the defaults. -EINVAL for zero words, -ENOMEM. */
int chunker_new(const struct chunker_opts *opts, chunk_fn fn, void *arg, struct chunker **ret_chunker);
void chunker_free(struct chunker *chunker);

/* Takes the next bytes; calls fn for each phrase that is now decided. */
int chunker_push(struct chunker *chunker, const char *text, size_t len, int64_t now_ns);

/*
 * The end of the reply: what is left is spoken, unless it belongs to a block
 * that never is. The chunker is then as new, for the next reply.
 */
int chunker_finish(struct chunker *chunker);

/* Forgets everything unspoken (barge-in). As new afterwards. */
void chunker_reset(struct chunker *chunker);

/* When chunker_tick() would cut, in the time given to push; INT64_MAX: never. */
int64_t chunker_deadline(const struct chunker *chunker);

/* Past the deadline, cuts at the last place that splits no word or number. */
int chunker_tick(struct chunker *chunker, int64_t now_ns);

#endif
