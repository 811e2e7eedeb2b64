/* SPDX-License-Identifier: MIT */
/*
 * Wyoming's framing: a line of JSON, then data_length bytes of JSON, then
 * payload_length bytes of audio. Reads what every known writer sends (data in
 * the header, in the block, or both; the block wins key by key) and refuses
 * the rest with a reason.
 */
#ifndef HEARTH_SERVER_WYOMING_FRAME_H
#define HEARTH_SERVER_WYOMING_FRAME_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WYOMING_MAX_HEADER  65536u
#define WYOMING_MAX_DATA    (1u << 20)
#define WYOMING_MAX_PAYLOAD (4u << 20)

struct wyoming_event {
	char type[64];
	json_t *data;              /* object, never NULL */
	uint8_t *payload;
	size_t n_payload;
};

struct wyoming_reader;

int wyoming_reader_new(struct wyoming_reader **ret);
void wyoming_reader_free(struct wyoming_reader *r);

/*
 * Adds bytes that came. 0, -ENOMEM, or -EBADMSG: what came is no event, and
 * nothing after it can be read (*ret_why says what).
 */
int wyoming_feed(struct wyoming_reader *r, const void *bytes, size_t n, const char **ret_why);
/* Part of an event came, the rest has not. */
bool wyoming_half(const struct wyoming_reader *r);
/* The next whole event: 1 and *ret_e (free with wyoming_event_done()), or 0. */
int wyoming_next(struct wyoming_reader *r, struct wyoming_event *ret_e);
void wyoming_event_done(struct wyoming_event *e);

/*
 * Writes an event as bytes into a malloced buffer: data in a block of its own,
 * nothing that is empty. @data may be NULL; it is not stolen.
 */
int wyoming_encode(const char *type, const json_t *data, const void *payload, size_t n_payload,
		   char **ret, size_t *ret_n);

#endif
