/* SPDX-License-Identifier: MIT */
/*
 * A conversation about one home: the messages so far, in the order that
 * docs/home-prompt.md gives them. Several turns are one conversation; what a
 * premature turn added is taken back with talk_cut().
 */
#ifndef HEARTH_VOICE_TALK_H
#define HEARTH_VOICE_TALK_H

#include <stddef.h>

#include "base/err.h"
#include "home/home.h"
#include "token/chat.h"

struct talk;

/*
 * @here: the area of the microphone, or NULL. Begins with the message of the
 * home; @home must outlive it. -EINVAL when @here is no area.
 */
int talk_new(const struct home *home, const char *here, struct talk **ret_talk, struct hearth_err *err);
void talk_free(struct talk *talk);

/* Adds what is true now, if anything changed since it was last said. */
int talk_now(struct talk *talk, struct hearth_err *err);
int talk_user(struct talk *talk, const char *text);
/* @n_calls calls, which are copied; @content may be NULL. */
int talk_assistant(struct talk *talk, const char *content, const struct chat_call *calls, size_t n_calls);
int talk_tool(struct talk *talk, const char *result);

size_t talk_len(const struct talk *talk);
int talk_turns(const struct talk *talk); /* user messages */
/*
 * Forgets the messages from @len on. Those that told states cannot be taken
 * back one by one: cutting one tells everything again at the next talk_now().
 */
int talk_cut(struct talk *talk, size_t len);

/* The context is full: back to the message of the home alone. Returns how many turns are forgotten, or -errno. */
int talk_forget(struct talk *talk, struct hearth_err *err);

const struct chat_msg *talk_msgs(const struct talk *talk, size_t *ret_n);
const char *talk_tools(const struct talk *talk); /* JSON array of the home's tools */

#endif
